//! The shortest way of single packets lets in what the ordinary way lets in, does the same, and leaves no
//! trace of anything else (`Receiver::receive_single`); and what is posted that way is the packet
//! that is posted otherwise (`Transmitter::post_single`).

mod lent;

use hamlyn_engine::counting::Counting;
use hamlyn_engine::grant::Holder;
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::{MetadataArea, Permission};
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::{Address, Single, SlotName};
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::slot::{Mode, QueueId, Rights, SlotOptions};
use hamlyn_engine::terminus::TerminusOptions;
use hamlyn_engine::transmit::Message;
use lent::{Packet, VecArea, Wires, message, one, pattern};
use proptest::prelude::*;

const SLOT_BYTES: u64 = 256;
const BASE: u64 = 64;
const LOW: u64 = 32;
const HIGH: u64 = 224;
const SLOT_KEY: u64 = 1;
const ENTRY_KEY: u64 = 2;
const CLASS: u64 = 0xC1A55;
const ALICE: Holder = Holder(1);

/// What may be so of the one slot.
#[derive(Clone, Debug)]
struct State {
    mode: Mode,
    rights: Rights,
    has_entries: bool,
    revoked: bool,
    lapsed: bool,
    closed: bool,
    armed: bool,
    in_use: bool,
    announced_elsewhere: bool,
    /// What the entry counted before.
    accumulator: bool,
}

const USUAL: State = State {
    mode: Mode::Normal,
    rights: Rights::WRITE,
    has_entries: true,
    revoked: false,
    lapsed: false,
    closed: false,
    armed: true,
    in_use: false,
    announced_elsewhere: false,
    accumulator: false,
};

/// Contents, completed ranges, arming, accumulator, length and word of metadata, announcements.
type Trace = (Vec<u8>, Vec<(u64, u64)>, bool, u64, [u64; 2], u64);

struct World {
    receiver: Receiver<VecArea>,
    area: VecArea,
    metadata: MetadataArea,
    slot: SlotName,
    /// The queue that was found empty.
    waiting: QueueId,
}

impl World {
    fn new(state: &State) -> Self {
        let mut receiver = Receiver::new(Some(100));
        receiver.set_up(0);
        let area = VecArea::new(BASE as usize + SLOT_BYTES as usize + 64);
        let metadata = MetadataArea::new(2).unwrap();
        let (waiting, _) = receiver.open_queue(8).unwrap();
        let (elsewhere, _) = receiver.open_queue(8).unwrap();
        let has_entries = state.has_entries || state.mode != Mode::Normal;
        let slot = receiver
            .open_slot(SlotOptions {
                area: area.clone(),
                base: BASE,
                length_bytes: SLOT_BYTES,
                key: Key::from_bits(SLOT_KEY),
                rights: state.rights,
                mode: state.mode,
                metadata: has_entries.then(|| metadata.clone()),
                queue: Some(if state.announced_elsewhere {
                    elsewhere
                } else {
                    waiting
                }),
                counting: Counting::Bits32,
            })
            .unwrap();
        let entry = metadata.entry(1).unwrap();
        entry.set_receive_class(CLASS);
        entry.permit(Permission {
            key: Key::from_bits(ENTRY_KEY),
            low: LOW,
            high: HIGH,
        });
        if state.armed {
            entry.arm();
        }
        if state.mode == Mode::Normal {
            receiver.grant(slot, 64..192, ALICE).unwrap();
        }
        if state.accumulator {
            let mut header = lent::header(
                slot,
                if state.mode == Mode::Normal {
                    SLOT_KEY
                } else {
                    ENTRY_KEY
                },
                LOW,
            );
            header.metadata_index = 1;
            header.word = 5;
            let _ = lent::receive(&mut receiver, header, &[], &[]);
        }
        if state.in_use {
            let all = 0..area.contents().len() as u64;
            area.in_use.borrow_mut().push(all);
        }
        if state.revoked {
            receiver.revoke_slot(slot).unwrap();
        }
        if state.closed {
            receiver.close_slot(slot).unwrap();
        }
        if state.lapsed {
            receiver.tick(100);
        }
        Self {
            receiver,
            area,
            metadata,
            slot,
            waiting,
        }
    }

    /// All that a packet can change.
    fn trace(&self) -> Trace {
        let entry = self.metadata.entry(1).unwrap();
        let metadata = [entry.metadata_length_bytes() as u64, entry.metadata_word()];
        (
            self.area.contents(),
            self.area.completed.borrow().clone(),
            entry.is_armed(),
            entry.accumulator(),
            metadata,
            self.receiver.announced(),
        )
    }

    fn ordinary(&mut self, single: &Single, data: &[u8]) -> Option<Notification> {
        let packet = packet(single, data);
        let waiting = Some(self.waiting);
        let header = &packet.header;
        let received = self
            .receiver
            .receive_for(|| Some(ALICE), header, &packet, waiting);
        match received {
            Ok(Received::Handed(notification)) => Some(notification),
            Ok(_) | Err(_) => None,
        }
    }

    fn shortest(&mut self, single: &Single, data: &[u8]) -> Option<Notification> {
        let packet = packet(single, data);
        self.receiver
            .receive_single(|| Some(ALICE), single, &packet, self.waiting)
    }
}

/// The packet, as the ordinary way sees it.
fn packet(single: &Single, data: &[u8]) -> Packet {
    let word = single.word.to_le_bytes();
    let metadata: &[u8] = if single.has_metadata { &word } else { &[] };
    let mut packet = Packet::new(single.header(), metadata, data);
    packet.header.length_bytes = single.length_bytes;
    packet
}

fn states() -> impl Strategy<Value = State> {
    let mode = prop_oneof![
        4 => Just(Mode::Normal),
        1 => Just(Mode::Paranoid),
        3 => Just(Mode::ParanoidOneShot)
    ];
    let rarely = || prop::bool::weighted(0.07);
    let rights = prop_oneof![8 => Just(Rights::WRITE), 1 => Just(Rights::NONE)];
    (
        (mode, rights, rarely(), rarely(), rarely()),
        (rarely(), rarely(), rarely(), rarely(), rarely()),
    )
        .prop_map(
            |(
                (mode, rights, bare, revoked, lapsed),
                (closed, spent, in_use, elsewhere, accumulator),
            )| {
                State {
                    mode,
                    rights,
                    has_entries: !bare,
                    revoked,
                    lapsed,
                    closed,
                    armed: !spent,
                    in_use,
                    announced_elsewhere: elsewhere,
                    accumulator,
                }
            },
        )
}

/// A packet that is nearly right; what is added to the slot's index and generation.
fn packets() -> impl Strategy<Value = (Single, u16, u16)> {
    let index = prop_oneof![6 => Just(1_u16), 1 => Just(0), 1 => Just(2), 4 => Just(FAST_INDEX)];
    let key = prop_oneof![5 => Just(ENTRY_KEY), 5 => Just(SLOT_KEY), 1 => any::<u64>()];
    let offset = prop_oneof![
        6 => LOW..=HIGH,
        2 => LOW - 17..SLOT_BYTES + 1,
        1 => u64::MAX - 40..=u64::MAX
    ];
    let length = prop_oneof![6 => 17_u32..64, 2 => 0_u32..300, 1 => Just(SLOT_BYTES as u32)];
    let word = prop_oneof![2 => Just(0), 1 => any::<u64>()];
    let generation = prop_oneof![12 => Just(0_u16), 1 => Just(1)];
    let slot_index = prop_oneof![12 => Just(0_u16), 1 => any::<u16>()];
    (
        (index, key, offset, length, word),
        (any::<bool>(), prop::bool::weighted(0.3)),
        (generation, slot_index),
    )
        .prop_map(
            |((index, key, offset, length_bytes, word), (has_metadata, is_placed), others)| {
                let single = Single {
                    to: Address::new(SlotName::new(0, 0), index),
                    key: Key::from_bits(key),
                    offset,
                    length_bytes,
                    word,
                    has_metadata,
                    is_placed,
                };
                (single, others.0, others.1)
            },
        )
}

/// What this way is for, whatever it overlooks.
fn is_usual(state: &State, single: &Single) -> bool {
    let is_whole = single.to.is_fast() || single.has_metadata || single.word == 0;
    state.mode != Mode::Paranoid && is_whole
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8000))]

    #[test]
    fn both_ways_let_in_the_same(
        state in states(),
        (single, generation, slot_index) in packets(),
    ) {
        let mut ordinary = World::new(&state);
        let slot = ordinary.slot;
        let name = SlotName::new(
            slot.index().wrapping_add(slot_index),
            slot.generation().wrapping_add(generation),
        );
        let single = Single { to: Address::new(name, single.to.metadata_index()), ..single };
        let data = pattern(single.offset, single.length_bytes as usize);
        let mut shortest = World::new(&state);
        let before = shortest.trace();
        let expected = ordinary.ordinary(&single, &data);
        let found = shortest.shortest(&single, &data);
        if found.is_some() {
            prop_assert_eq!(found, expected);
            prop_assert_eq!(shortest.trace(), ordinary.trace());
        } else {
            // What this overlooks, the ordinary way judges.
            prop_assert_eq!(shortest.trace(), before);
            prop_assert!(expected.is_none() || !is_usual(&state, &single), "overlooked");
        }
    }

    #[test]
    fn what_is_posted_is_the_same_packet(
        (single, _, _) in packets(),
        room in 0_usize..3,
        payload_max_bytes in 64_usize..400,
        already_queued in prop::bool::weighted(0.2),
    ) {
        // Fast-mode messages have no metadata, and others no word of their own.
        let is_fast = single.to.is_fast();
        let single = Single {
            has_metadata: single.has_metadata && !is_fast,
            word: if is_fast || single.has_metadata { single.word } else { 0 },
            ..single
        };
        let length = if single.is_placed { 0 } else { single.length_bytes as usize };
        let data = pattern(1, length);
        let scene = || {
            let (wires, link) = Wires::with_room(payload_max_bytes, room);
            let (transmitter, terminus) = one();
            (wires, link, transmitter, terminus)
        };
        let (mut wires, link, mut transmitter, terminus) = scene();
        if already_queued {
            let (taken, _) = (wires.wire(link).room, wires.wire(link).room = 0);
            transmitter.post(terminus, &message(link), &[], &[1], &mut wires).unwrap();
            wires.wire(link).room = taken;
        }
        let offers = wires.offers;
        let posted = transmitter.post_single(terminus, link, &single, &data, &mut wires);
        let fits = length + usize::from(single.metadata_length_bytes()) <= payload_max_bytes;
        prop_assert_eq!(posted.is_some(), room > 0 && fits && !already_queued);
        let sent = wires.drain(link);
        prop_assert!(!already_queued || wires.offers == offers, "before its turn");
        let Some(handle) = posted else {
            prop_assert!(sent.is_empty());
            return Ok(());
        };
        prop_assert_eq!(transmitter.completions(terminus).unwrap().done(), handle.sequence);
        if single.header().offset.checked_add(u64::from(single.length_bytes)).is_some() {
            let (mut wires, link, mut transmitter, terminus) = scene();
            let word = single.word.to_le_bytes();
            let metadata = if single.has_metadata { &word[..] } else { &[] };
            let posting = Message { header: single.header(), ..message(link) };
            let other = if single.is_placed {
                let length_bytes = single.length_bytes;
                transmitter.post_placed(terminus, &posting, metadata, length_bytes, &mut wires)
            } else {
                transmitter.post(terminus, &posting, metadata, &data, &mut wires)
            };
            let other = other.unwrap();
            prop_assert!(other.sent);
            prop_assert_eq!(other.handle.sequence, handle.sequence);
            prop_assert_eq!(sent, wires.drain(link));
        }
    }
}

#[test]
fn nobody_posts_at_a_terminus_or_a_link_that_is_not_there() {
    let (mut wires, link) = Wires::wide(64);
    let (mut transmitter, terminus) = one();
    let single = Single {
        to: Address::new(SlotName::new(0, 0), FAST_INDEX),
        key: Key::from_bits(SLOT_KEY),
        offset: 0,
        length_bytes: 20,
        word: 0,
        has_metadata: false,
        is_placed: false,
    };
    let data = [1; 20];
    let absent = transmitter
        .open_terminus(TerminusOptions::default())
        .unwrap();
    transmitter.close_terminus(absent).unwrap();
    assert!(!transmitter.sends_at_once(absent));
    assert_eq!(
        transmitter.post_single(absent, link, &single, &data, &mut wires),
        None
    );
    let gone = LinkId { index: 9, ..link };
    assert_eq!(
        transmitter.post_single(terminus, gone, &single, &data, &mut wires),
        None
    );
    assert!(transmitter.sends_at_once(terminus));
    assert!(
        transmitter
            .post_single(terminus, link, &single, &data, &mut wires)
            .is_some()
    );
}

/// The property would hold of a way that overlooks everything if nothing were ever usual.
#[test]
fn what_is_right_is_let_in() {
    let single = |world: &World, index, key| Single {
        to: Address::new(world.slot, index),
        key: Key::from_bits(key),
        offset: 64,
        length_bytes: 40,
        word: 7,
        has_metadata: index != FAST_INDEX,
        is_placed: false,
    };
    let data = pattern(3, 40);
    let mut world = World::new(&USUAL);
    let fast = single(&world, FAST_INDEX, SLOT_KEY);
    assert_eq!(world.shortest(&fast, &data).unwrap().word, 7);
    assert_eq!(world.area.contents()[128..168], data);
    let named = single(&world, 1, SLOT_KEY);
    assert_eq!(world.shortest(&named, &data).unwrap().word, CLASS);
    let before = world.area.contents();
    assert!(world.shortest(&named.placed(), &data).is_some());
    assert_eq!(
        world.area.contents(),
        before,
        "what is in its place is not deposited"
    );
    let mut world = World::new(&State {
        mode: Mode::ParanoidOneShot,
        ..USUAL
    });
    let guarded = single(&world, 1, ENTRY_KEY);
    assert_eq!(world.shortest(&guarded, &data).unwrap().word, CLASS);
    assert_eq!(world.shortest(&guarded, &data), None, "once");
    assert_eq!(*world.area.completed.borrow(), [(BASE + LOW, BASE + HIGH)]);
}
