//! The model itself can fail: each promise is broken once, and named.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::Permission;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_engine::receive::Received;
use hamlyn_engine::refusal::{Refusal, Refusals};
use hamlyn_engine::slot::{Mode, Rights};
use hamlyn_engine::transport::{CloseReason, Return};

use super::Violation;
use super::delivery::{Deliveries, Order};
use super::memory::Memory;
use super::receiving::{Arrival, NewSlot, Outcome, ReceiveEnable, Receiving};
use super::transport::{Limits, Sent, Transport};

pub(super) const KEY: Key = Key::from_bits(7);
const NAME: SlotName = SlotName::new(0, 0);
pub(super) const LINK: LinkId = LinkId {
    index: 0,
    generation: 0,
};
pub(super) const MODULUS: u128 = 1 << 32;

pub(super) fn header(metadata_index: u16, offset: u64, word: u64) -> Header {
    Header {
        slot: NAME,
        metadata_index,
        key: KEY,
        offset,
        length_bytes: 4,
        word,
        metadata_length_bytes: 0,
        flags: Flags::NONE,
        kind: Kind::WRITE,
    }
}

/// An open slot of bytes 8 to 40 of an area of 64, with two entries and a queue of two.
fn receiving(mode: Mode) -> Receiving {
    let mut model = Receiving::new();
    model.receive_enable = ReceiveEnable::Open;
    let new = NewSlot {
        area: model.add_area(64),
        base: 8,
        length_bytes: 32,
        key: KEY,
        rights: Rights::WRITE,
        mode,
        entries: Some(model.add_entries(2)),
        queue: Some(model.add_queue(2)),
        modulus: MODULUS,
    };
    model.slot_opened(NAME, new).unwrap();
    let permission = Permission {
        key: KEY,
        low: 4,
        high: 20,
    };
    model.permitted(0, 0, permission);
    model.armed(0, 0);
    model
}

fn arrive(model: &mut Receiving, header: &Header, waiting: Option<usize>) -> Outcome {
    model.packet_arrived(&Arrival {
        header,
        metadata: &[],
        data: if header.flags.is_placed() {
            &[]
        } else {
            &[1, 2, 3, 4]
        },
        from: LINK,
        waiting,
        asked: None,
    })
}

fn notification(metadata_index: u16, word: u64) -> Notification {
    Notification {
        slot: NAME,
        metadata_index,
        word,
        from: LINK,
    }
}

#[test]
fn what_is_let_in_lies_where_it_was_sent_and_is_announced_once() {
    let mut model = receiving(Mode::Normal);
    let packet = header(FAST_INDEX, 28, 9);
    let outcome = arrive(&mut model, &packet, None);
    assert_eq!(outcome.reception, Ok(Received::Complete));
    assert_eq!(outcome.written, Some((0, 36..40)));
    assert_eq!(outcome.check(&packet, Ok(Received::Complete)), Ok(()));
    let other = outcome.check(&packet, Ok(Received::Deposited));
    assert!(matches!(other, Err(Violation::Reception { .. })));
    let mut bytes = [0; 64];
    assert!(matches!(
        model.sweep(0, &bytes),
        Err(Violation::Byte {
            offset: 36,
            expected: 1,
            ..
        })
    ));
    bytes[36..40].copy_from_slice(&[1, 2, 3, 4]);
    assert_eq!(model.sweep(0, &bytes), Ok(()));
    bytes[40] = 1;
    assert!(model.sweep(0, &bytes).is_err());
    assert!(model.sweep(0, &bytes[1..]).is_err());
    let due = notification(FAST_INDEX, 9);
    assert_eq!(model.clone().notified(0, Ok(Some(due))), Ok(()));
    for wrong in [Ok(None), Ok(Some(notification(0, 9))), Err(1)] {
        assert!(model.clone().notified(0, wrong).is_err());
    }
    model.notified(0, Ok(Some(due))).unwrap();
    assert!(model.notified(0, Ok(Some(due))).is_err(), "twice");
}

#[test]
fn each_check_refuses_for_its_reason() {
    type Change = fn(&mut Receiving, &mut Header);
    let cases: [(Mode, Change, Refusal); 17] = [
        (
            Mode::Normal,
            |m, _| m.receive_enable = ReceiveEnable::NotSetUp,
            Refusal::NotSetUp,
        ),
        (
            Mode::Normal,
            |m, _| m.receive_enable = ReceiveEnable::Lapsed,
            Refusal::HandshakeLapsed,
        ),
        (
            Mode::Normal,
            |_, h| h.slot = SlotName::new(1, 0),
            Refusal::NoSuchSlot,
        ),
        (
            Mode::Normal,
            |_, h| h.slot = SlotName::new(0, 1),
            Refusal::SlotClosed,
        ),
        (
            Mode::Normal,
            |m, _| m.slot_revoked(NAME, true).unwrap(),
            Refusal::SlotRevoked,
        ),
        (
            Mode::Normal,
            |m, _| m.slot_rekeyed(NAME, Key::from_bits(8), true).unwrap(),
            Refusal::BadKey,
        ),
        (Mode::Normal, |_, h| h.offset = 29, Refusal::OutOfBounds),
        (
            Mode::Normal,
            |_, h| h.offset = u64::MAX,
            Refusal::OutOfBounds,
        ),
        (
            Mode::Normal,
            |_, h| h.metadata_index = 2,
            Refusal::NoMetadataEntry,
        ),
        (
            Mode::Paranoid,
            |_, h| h.metadata_index = FAST_INDEX,
            Refusal::FastToParanoid,
        ),
        (Mode::Paranoid, |_, h| h.offset = 17, Refusal::OutOfLimits),
        (Mode::Paranoid, |_, h| h.offset = 3, Refusal::OutOfLimits),
        (
            Mode::Paranoid,
            |_, h| h.key = Key::from_bits(8),
            Refusal::BadEntryKey,
        ),
        (
            Mode::ParanoidOneShot,
            |m, _| m.disarmed(0, 0),
            Refusal::EntrySpent,
        ),
        (Mode::Normal, |_, h| h.kind = Kind(4), Refusal::UnknownKind),
        (
            Mode::Normal,
            |m, _| m.memory_mut(0).hold(19..21),
            Refusal::PlaceInUse,
        ),
        (
            Mode::Normal,
            |_, h| h.flags = Flags::PLACED,
            Refusal::NotGranted,
        ),
    ];
    for (mode, change, reason) in cases {
        let mut model = receiving(mode);
        let mut packet = header(0, 8, 0);
        change(&mut model, &mut packet);
        let outcome = arrive(&mut model, &packet, None);
        assert_eq!(outcome.reception, Err(reason));
        assert_eq!(model.sweep(0, &[0; 64]), Ok(()), "{reason}");
        assert!(model.is_silent(0));
        assert!(model.counted(None, &Refusals::default()).is_err());
        let slot = model.counted(Some(packet.slot), &Refusals::default());
        assert_eq!(slot.is_err(), packet.slot == NAME);
    }
    for mode in [Mode::Normal, Mode::Paranoid, Mode::ParanoidOneShot] {
        let mut model = receiving(mode);
        assert!(arrive(&mut model, &header(0, 8, 0), None).reception.is_ok());
        assert_eq!(model.counted(None, &Refusals::default()), Ok(()));
    }
}

#[test]
fn a_message_is_announced_with_its_last_packet_and_spends_its_entry() {
    let mut model = receiving(Mode::ParanoidOneShot);
    model.classed(0, 0, 77);
    // A message of three packets: the last one of it comes first.
    let last = header(0, 12, (MODULUS - 2) as u64);
    assert_eq!(
        arrive(&mut model, &last, None).reception,
        Ok(Received::Deposited)
    );
    let first = header(0, 4, 1);
    assert_eq!(
        arrive(&mut model, &first, None).reception,
        Ok(Received::Deposited)
    );
    let outcome = arrive(&mut model, &header(0, 8, 1), Some(0));
    let handed = Received::Handed(notification(0, 77));
    assert_eq!(outcome.reception, Ok(handed));
    assert_eq!(outcome.completed, Some((0, 12, 28)));
    assert!(model.is_silent(0), "handed over, so not queued");
    let again = arrive(&mut model, &first, None);
    assert_eq!(again.reception, Err(Refusal::EntrySpent));
}

#[test]
fn a_full_queue_loses_the_oldest_and_says_so() {
    let mut model = receiving(Mode::Normal);
    for word in 0..5 {
        let _ = arrive(&mut model, &header(FAST_INDEX, 0, word), None);
    }
    assert!(
        model
            .clone()
            .notified(0, Ok(Some(notification(FAST_INDEX, 3))))
            .is_err()
    );
    model.notified(0, Err(3)).unwrap();
    model
        .notified(0, Ok(Some(notification(FAST_INDEX, 3))))
        .unwrap();
    model
        .notified(0, Ok(Some(notification(FAST_INDEX, 4))))
        .unwrap();
    model.notified(0, Ok(None)).unwrap();
}

#[test]
fn names_are_given_once() {
    let mut model = receiving(Mode::Normal);
    let new = NewSlot {
        area: 0,
        base: 0,
        length_bytes: 1,
        key: KEY,
        rights: Rights::WRITE,
        mode: Mode::Normal,
        entries: None,
        queue: None,
        modulus: MODULUS,
    };
    assert!(model.slot_closed(NAME, false).is_err(), "it was open");
    assert_eq!(model.slot_closed(NAME, false), Ok(()));
    assert_eq!(
        model.slot_opened(NAME, new),
        Err(Violation::NameReused(NAME))
    );
}

#[test]
fn bytes_that_a_peer_stores_are_unknown_until_it_has() {
    let mut memory = Memory::new(16);
    let store = memory.store_begins(4, 4).unwrap();
    let mut bytes = [0; 16];
    bytes[5] = 9;
    assert_eq!(memory.check(0, 0, &bytes), Ok(()), "under way");
    bytes[8] = 9;
    assert!(memory.check(0, 0, &bytes).is_err(), "beside it");
    // What is written meanwhile where it stores is anybody's.
    assert!(memory.write(7, &[5, 5]));
    assert!(memory.store_ends(store, &[1, 2, 3, 4]));
    assert!(memory.check(0, 4, &[1, 2, 3, 4, 5]).is_ok());
    assert!(memory.check(0, 4, &[1, 2, 3, 5, 5]).is_ok());
    assert!(memory.check(0, 4, &[1, 2, 9, 4, 5]).is_err());
    assert!(memory.check(0, 4, &[1, 2, 3, 4, 9]).is_err());
    // Written alone, it is known again.
    assert!(memory.write(7, &[6]));
    assert!(memory.check(0, 7, &[4]).is_err());
    assert!(memory.check(0, 7, &[6]).is_ok());
    assert!(!memory.store_ends(store, &[0; 4]), "it has ended");
    assert!(memory.store_begins(13, 4).is_none());
    assert!(memory.check(0, 13, &[0; 4]).is_err());
}

#[test]
fn messages_between_programs_come_once_and_as_they_were_sent() {
    let mut model = Deliveries::new();
    let (kept, free) = (model.open(Order::Kept), model.open(Order::Free));
    for channel in [kept, free] {
        model.sent(channel, b"one");
        model.sent(channel, b"two");
    }
    assert!(
        model.clone().delivered(kept, b"two").is_err(),
        "out of turn"
    );
    assert!(model.clone().delivered(kept, b"on").is_err(), "cut");
    assert_eq!(model.delivered(free, b"two"), Ok(1));
    assert!(model.delivered(free, b"two").is_err(), "twice");
    assert!(model.delivered(free, b"three").is_err(), "never sent");
    assert_eq!(model.delivered(free, b"one"), Ok(0));
    assert_eq!(model.delivered(kept, b"one"), Ok(0));
    assert!(model.quiet().is_err(), "one is owed");
    model.reported(kept, 1);
    assert_eq!(model.quiet(), Ok(()));
    assert_eq!(
        model.delivered(kept, b"two"),
        Ok(1),
        "it may come nevertheless"
    );
    assert_eq!((model.count(kept), model.count(free)), (2, 2));
}

const LIMITS: Limits = Limits {
    first_ns: 1_000,
    least_ns: 100,
    answer_ns: 50,
};

/// An association between ends 0 and 1. End 0 has accepted so many packets.
fn transport(packets: u64) -> Transport {
    let mut model = Transport::new();
    model.opened([0, 1], LIMITS);
    (0..packets).for_each(|number| model.offered(0, packet(number)));
    model
}

fn packet(number: u64) -> Sent {
    Sent {
        header: header(0, number, 1),
        bytes: vec![number as u8; 4],
    }
}

/// Channel, reason, and the packets that were refused: index, and why.
type Nack<'a> = (u16, u8, &'a [(u16, u8)]);

/// A frame with packets, or none; with runs of acknowledgements, and NACKs.
fn frame(packets: Option<(u16, u32)>, runs: &[[u16; 2]], nacks: &[Nack<'_>]) -> Vec<u8> {
    let (channel, sequence) = packets.unwrap_or((u16::MAX, 0));
    let mut bytes = vec![0; 10];
    bytes.extend(channel.to_le_bytes());
    bytes.extend(sequence.to_le_bytes());
    bytes.extend([0, runs.len() as u8, nacks.len() as u8, 1]);
    for [first, count] in runs {
        bytes.extend(first.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
    }
    for (channel, reason, refused) in nacks {
        bytes.extend(channel.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend([0, 0, 0, 0, *reason]);
        if *reason == 0 {
            bytes.extend((refused.len() as u16).to_le_bytes());
        }
        for (index, why) in *refused {
            bytes.extend(index.to_le_bytes());
            bytes.extend(1_u16.to_le_bytes());
            bytes.push(*why);
        }
    }
    // The packet itself is of no matter here.
    bytes.extend(packets.map(|_| 0x5a));
    bytes
}

/// End 0 sends the packet of that number in the first frame of the channel of that number.
fn send(model: &mut Transport, number: u64, now_ns: u64) -> Result<(), Violation> {
    let bytes = frame(Some((number as u16, 1)), &[], &[]);
    model.sent(0, (now_ns, 0), &bytes, |_| vec![packet(number)])
}

fn answer(model: &mut Transport, bytes: &[u8]) -> Result<(), Violation> {
    model.sent(1, (0, 0), bytes, |_| Vec::new())?;
    model.came(0, 0, bytes);
    Ok(())
}

/// The interface of end 1 gets that packet.
fn take(model: &mut Transport, number: u64, refusal: Option<Refusal>) {
    model.received(1, &packet(number)).unwrap();
    model.taken(1, refusal);
}

/// What the model says, without the number of the end.
fn what(found: Result<(), Violation>) -> String {
    match found {
        Err(Violation::Transport { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_frame_is_given_once_and_acknowledged_when_it_was_taken() {
    let mut model = transport(1);
    send(&mut model, 0, 0).unwrap();
    model.given(1, 0, 1).unwrap();
    let early = answer(&mut model, &frame(None, &[[0, 1]], &[]));
    assert!(what(early).contains("acknowledges frame 1"));
    take(&mut model, 0, None);
    assert!(what(model.given(1, 0, 1)).contains("is given frame 1"));
    answer(&mut model, &frame(None, &[[0, 1]], &[])).unwrap();
    assert!(what(send(&mut model, 0, 5_000)).contains("though it was acknowledged"));
    model.ended(0, CloseReason::Closed);
    let back = model.returned(0, &packet(0), Return::Ended(CloseReason::Closed), false);
    assert!(what(back).contains("but was acknowledged"));
}

#[test]
fn nothing_is_sent_again_without_cause() {
    let mut model = transport(2);
    send(&mut model, 0, 0).unwrap();
    // Before anything is known of the way, the first timeout is long.
    assert!(what(send(&mut model, 0, 999)).contains("without cause"));
    send(&mut model, 0, 1_000).unwrap();
    // A later frame that was taken is a cause, and a NACK is one.
    send(&mut model, 1, 1_001).unwrap();
    model.given(1, 1, 1).unwrap();
    take(&mut model, 1, None);
    answer(&mut model, &frame(None, &[[1, 1]], &[])).unwrap();
    send(&mut model, 0, 1_010).unwrap();
    assert!(what(send(&mut model, 0, 1_020)).contains("without cause"));
    answer(&mut model, &frame(None, &[], &[(0, 1, &[])])).unwrap();
    send(&mut model, 0, 1_030).unwrap();
}

#[test]
fn what_comes_back_was_refused_for_that_reason_or_the_association_ended() {
    let mut model = transport(3);
    (0..2).for_each(|number| send(&mut model, number, 0).unwrap());
    let back =
        |model: &mut Transport, number, why, never| model.returned(0, &packet(number), why, never);
    let refused = Return::Refused(Refusal::BadKey);
    assert!(what(back(&mut model, 0, refused, false)).contains("was not taken or refused"));
    model.given(1, 0, 1).unwrap();
    take(&mut model, 0, Some(Refusal::BadKey));
    let other = frame(None, &[], &[(0, 0, &[(0, Refusal::NoRight as u8)])]);
    assert!(what(answer(&mut model, &other)).contains("answers"));
    answer(
        &mut model,
        &frame(None, &[], &[(0, 0, &[(0, Refusal::BadKey as u8)])]),
    )
    .unwrap();
    let other = back(&mut model, 0, Return::Refused(Refusal::NoRight), false);
    assert!(what(other).contains("for another reason"));
    back(&mut model, 0, refused, false).unwrap();
    assert!(what(back(&mut model, 0, refused, false)).contains("second time"));
    let closed = Return::Ended(CloseReason::Closed);
    assert!(what(back(&mut model, 1, closed, false)).contains("has not ended so"));
    model.ended(0, CloseReason::Closed);
    back(&mut model, 1, closed, false).unwrap();
    back(&mut model, 2, closed, true).unwrap();
    assert!(what(back(&mut model, 2, closed, true)).contains("never sent"));
}

#[test]
fn a_fence_is_answered_after_all_before_it() {
    let mut model = transport(1);
    model.fenced(0, 7);
    assert!(what(model.fence_answered(0, 7)).contains("fence"));
    send(&mut model, 0, 0).unwrap();
    assert!(what(model.fence_answered(0, 7)).contains("fence"));
    model.given(1, 0, 1).unwrap();
    take(&mut model, 0, None);
    answer(&mut model, &frame(None, &[[0, 1]], &[])).unwrap();
    model.fence_answered(0, 7).unwrap();
    // What was accepted since is of no matter.
    model.offered(0, packet(1));
    model.fence_answered(0, 7).unwrap();
    assert!(
        what(
            model.sent(0, (0, 0), &frame(Some((0, 2)), &[], &[]), |_| vec![packet(
                2
            )])
        )
        .contains("in place of")
    );
}
