//! One-sided operations (decision 0037): requests are checked, carried out and answered.

use crate::host::{Packet, VecArea, Wires, header, options, pattern, ready};
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{FAST_INDEX, SHORT_BYTES_WITH_WORD};
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::operation::{
    AnswerWord, Atomic, Change, RESPONSES_PER_LINK, ShortRequest, Width,
};
use hamlyn_engine::packet::{Address, Flags, Header, Kind, SlotName};
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::{Mode, Rights, SlotOptions};
use proptest::prelude::*;

/// To where initiators want their answers.
const BACK: SlotName = SlotName::new(7, 3);
const BACK_KEY: u64 = 0x4241_434B;

/// A target with a slot of 100 bytes from byte 8 of its area on, and a link with room for so many
/// packets of 64 bytes.
struct Target {
    receiver: Receiver<VecArea>,
    area: VecArea,
    slot: SlotName,
    wires: Wires,
    link: LinkId,
}

impl Target {
    fn new(rights: Rights, room: usize) -> Self {
        let mut receiver = ready();
        let area = VecArea::from_bytes(pattern(1, 128));
        let options = SlotOptions {
            base: 8,
            length_bytes: 100,
            rights,
            ..options(&area, Mode::Normal, None, None)
        };
        let slot = receiver.open_slot(options).unwrap();
        let (wires, link) = Wires::with_room(64, room);
        Self {
            receiver,
            area,
            slot,
            wires,
            link,
        }
    }

    fn header(&self, kind: Kind, offset: u64, token: u32) -> Header {
        Header {
            kind,
            metadata_index: FAST_INDEX,
            word: u64::from(BACK.to_bits()) << 32 | u64::from(token),
            ..header(self.slot, 1, offset)
        }
    }

    fn take(&mut self, header: Header, metadata: &[u8], data: &[u8]) -> Result<Received, Refusal> {
        let packet = Packet::new(header, metadata, data);
        self.receiver
            .receive(self.link, &packet.header, &packet, None)
    }

    fn read(&mut self, offset: u64, to: u64, length: u32, token: u32) -> Result<Received, Refusal> {
        let words = [BACK_KEY, to | u64::from(length) << 32];
        self.take(self.header(Kind::READ, offset, token), &[], &bytes(&words))
    }

    fn put(&mut self, offset: u64, data: &[u8], token: u32) -> Result<Received, Refusal> {
        let header = self.header(Kind::PUT, offset, token);
        self.take(header, &BACK_KEY.to_le_bytes(), data)
    }

    fn change(&mut self, offset: u64, atomic: &Atomic, token: u32) -> Result<Received, Refusal> {
        let words = [BACK_KEY, atomic.operand, atomic.expected];
        let data = &bytes(&words)[..atomic.request_bytes() as usize];
        self.take(self.header(atomic.kind(), offset, token), &[], data)
    }

    /// The answers that go now.
    fn answers(&mut self) -> Vec<Packet> {
        while self.receiver.answer(&mut self.wires) > 0 {}
        let answers = self.wires.drain(self.link);
        for answer in &answers {
            let header = &answer.header;
            assert_eq!((header.slot, header.key), (BACK, Key::from_bits(BACK_KEY)));
            assert_eq!((header.kind, header.flags), (Kind::WRITE, Flags::NONE));
            assert!(header.is_fast() && answer.metadata.is_empty());
        }
        answers
    }

    /// The one answer, which has no data and refuses.
    fn refusal(&mut self) -> (Option<Refusal>, u32) {
        let answers = self.answers();
        assert_eq!(answers.len(), 1);
        assert!(answers[0].data.is_empty());
        let word = AnswerWord::from_bits(answers[0].header.word);
        assert!(word.is_last);
        (word.refusal(), word.bytes)
    }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn atomic(change: Change, width: Width) -> Atomic {
    Atomic::new(change, width, 3)
}

#[test]
fn a_read_is_answered_in_as_many_packets_as_it_takes() {
    let mut target = Target::new(Rights::READ, usize::MAX);
    assert_eq!(target.read(0, 1000, 100, 9), Ok(Received::Asked));
    assert!(target.receiver.owes_answers());
    let answers = target.answers();
    assert!(!target.receiver.owes_answers());
    let told: Vec<_> = answers
        .iter()
        .map(|answer| {
            let word = AnswerWord::from_bits(answer.header.word);
            assert_eq!((word.token, word.refused), (9, None));
            (answer.header.offset, word.bytes, word.is_last)
        })
        .collect();
    assert_eq!(told, [(1000, 64, false), (1064, 36, true)]);
    let found: Vec<u8> = answers.into_iter().flat_map(|answer| answer.data).collect();
    assert_eq!(found, target.area.contents()[8..108]);
}

#[test]
fn a_put_is_in_its_place_before_it_is_answered() {
    let mut target = Target::new(Rights::WRITE, usize::MAX);
    assert_eq!(target.put(90, b"ten bytes!", 1), Ok(Received::Asked));
    assert_eq!(target.area.contents()[98..108], *b"ten bytes!");
    assert_eq!(target.refusal(), (None, 10));
}

#[test]
fn a_change_answers_with_what_was_there_at_the_place_of_its_operation() {
    let mut target = Target::new(Rights::ATOMIC, usize::MAX);
    for width in [Width::Bits32, Width::Bits64] {
        for change in Change::ALL {
            let atomic = atomic(change, width);
            let length = width.bytes() as usize;
            let before = target.area.contents();
            // The upper half of the token is not looked at.
            assert_eq!(
                target.change(16, &atomic, 5 | 77 << 16),
                Ok(Received::Asked)
            );
            let [answer] = target.answers().try_into().unwrap();
            assert_eq!(answer.header.offset, 40);
            assert_eq!(answer.data, before[24..24 + length]);
            let mut word = [0; 8];
            word[..length].copy_from_slice(&answer.data);
            let after = atomic.changed(u64::from_le_bytes(word)).to_le_bytes();
            let found = target.area.contents();
            assert_eq!(found[24..24 + length], after[..length], "{atomic:?}");
            assert_eq!(found[..24], before[..24]);
            assert_eq!(found[24 + length..], before[24 + length..]);
        }
    }
}

#[test]
fn what_is_refused_is_counted_and_answered_and_has_no_effect() {
    let add = atomic(Change::Add, Width::Bits64);
    for rights in [Rights::NONE, Rights::READ, Rights::WRITE, Rights::ATOMIC] {
        let mut target = Target::new(rights, usize::MAX);
        let before = target.area.contents();
        let check = |found, right: Rights, expected: Refusal, bytes, target: &mut Target| {
            let expected = match rights.grant(right) {
                true => expected,
                false => Refusal::NoRight,
            };
            assert_eq!(found, Err(expected));
            assert_eq!(target.refusal(), (Some(expected), bytes));
            assert_eq!(target.area.contents(), before);
        };
        for (offset, length) in [(0, 101), (100, 1), (99, 2), (u64::MAX, 1), (1 << 40, 5)] {
            let found = target.read(offset, 0, length, 1);
            check(
                found,
                Rights::READ,
                Refusal::OutOfBounds,
                length,
                &mut target,
            );
            let found = target.put(offset, &vec![1; length as usize], 1);
            check(
                found,
                Rights::WRITE,
                Refusal::OutOfBounds,
                length,
                &mut target,
            );
        }
        for (offset, reason) in [
            (93, Refusal::OutOfBounds),
            (96, Refusal::OutOfBounds),
            (u64::MAX - 7, Refusal::OutOfBounds),
            (1, Refusal::Misaligned),
            (4, Refusal::Misaligned),
        ] {
            let found = target.change(offset, &add, 1);
            check(found, Rights::ATOMIC, reason, 8, &mut target);
        }
        let refused = target.receiver.slot_info(target.slot).unwrap().refusals;
        assert_eq!(refused.total(), 15);
        assert_eq!(&refused, target.receiver.refusals());
    }
}

#[test]
fn malformed_requests_are_refused_and_answered_if_they_say_where() {
    let mut target = Target::new(Rights::ALL, usize::MAX);
    let read = target.header(Kind::READ, 0, 1);
    let put = target.header(Kind::PUT, 0, 1);
    let words = bytes(&[BACK_KEY, 8 << 32, 0, 0]);
    let kind = |kind| Header {
        kind: Kind(kind),
        ..read
    };
    let flagged = Header {
        flags: Flags::SILENT,
        ..read
    };
    let entry = Header {
        metadata_index: 0,
        ..read
    };
    // Header, metadata, data, why, and whether the refusal is answered.
    type Refused<'a> = (Header, &'a [u8], &'a [u8], Refusal, bool);
    let refused: [Refused<'_>; 9] = [
        (read, &[], &words[..15], Refusal::BadRequest, false),
        (read, &[], &words[..24], Refusal::BadRequest, true),
        (read, &[1], &words[..16], Refusal::BadRequest, true),
        (put, &[1; 7], b"data", Refusal::BadMetadata, false),
        (
            kind(0x49),
            &[],
            &words[..16],
            Refusal::NoSuchOperation,
            true,
        ),
        (kind(0x45), &[], &words[..16], Refusal::BadRequest, true),
        (flagged, &[], &words[..16], Refusal::UnknownFlag, true),
        (entry, &[], &words[..16], Refusal::NoMetadataEntry, true),
        // No request at all.
        (kind(0x60), &[], &words[..16], Refusal::UnknownKind, false),
    ];
    for (header, metadata, data, reason, is_answered) in refused {
        assert_eq!(target.take(header, metadata, data), Err(reason));
        match is_answered {
            true => assert_eq!(target.refusal().0, Some(reason)),
            false => assert!(target.answers().is_empty()),
        }
    }
    let too_much = target.read(0, 0, 1 << 23, 1);
    assert_eq!(too_much, Err(Refusal::BadRequest));
}

#[test]
fn a_link_has_so_many_requests_under_way_and_holds_up_no_other() {
    let mut target = Target::new(Rights::READ, 0);
    for number in 0..RESPONSES_PER_LINK as u32 {
        assert_eq!(target.read(0, 0, 8, number), Ok(Received::Asked));
    }
    assert_eq!(target.read(0, 0, 8, 99), Err(Refusal::TooManyRequests));
    assert_eq!(target.receiver.answer(&mut target.wires), 0);
    let (full, other) = (target.link, target.wires.add(64, usize::MAX));
    target.link = other;
    assert_eq!(target.read(8, 0, 8, 100), Ok(Received::Asked));
    assert_eq!(target.answers().len(), 1);
    target.link = full;
    target.wires.wire(full).room = 1;
    assert_eq!(target.answers().len(), 1);
    assert_eq!(target.read(0, 0, 8, 101), Ok(Received::Asked));
    assert_eq!(target.read(0, 0, 8, 102), Err(Refusal::TooManyRequests));
    target.wires.wire(full).room = usize::MAX;
    let tokens = target.answers().into_iter();
    let tokens: Vec<u32> = tokens
        .map(|answer| AnswerWord::from_bits(answer.header.word).token)
        .collect();
    let all: Vec<u32> = (1..RESPONSES_PER_LINK as u32).chain([101]).collect();
    assert_eq!(tokens, all);
}

#[test]
fn a_slot_that_is_revoked_in_between_is_not_read_any_more() {
    let mut target = Target::new(Rights::READ, 1);
    assert_eq!(target.read(0, 0, 100, 1), Ok(Received::Asked));
    assert_eq!(target.answers().len(), 1);
    target.receiver.revoke_slot(target.slot).unwrap();
    target.wires.wire(target.link).room = 1;
    assert_eq!(target.refusal(), (Some(Refusal::SlotRevoked), 36));
}

#[test]
fn a_link_that_ends_takes_its_answers_with_it() {
    let mut target = Target::new(Rights::READ, 0);
    assert_eq!(target.read(0, 0, 8, 1), Ok(Received::Asked));
    let other = LinkId {
        generation: target.link.generation + 1,
        ..target.link
    };
    target.receiver.link_ended(other);
    assert!(target.receiver.owes_answers());
    target.receiver.link_ended(target.link);
    assert!(!target.receiver.owes_answers());
    assert_eq!(target.read(0, 0, 8, 2), Ok(Received::Asked));
    target.wires.wire(target.link).room = usize::MAX;
    assert_eq!(target.answers().len(), 1);
}

proptest! {
    #[test]
    fn the_word_of_an_answer_survives(token: u32, bytes in 0..1_u32 << 23, is_last: bool, refused in prop::option::of(0..255_u8)) {
        let word = AnswerWord { token, bytes, is_last, refused };
        prop_assert_eq!(AnswerWord::from_bits(word.to_bits()), word);
    }

    /// What the fast path answers, the other way answers alike, and leaves the same memory. What it
    /// leaves alone, is as it was. It leaves alone what is refused, what is longer than a short
    /// packet, and compare-and-swap, and nothing else.
    #[test]
    fn the_fast_path_does_what_the_other_does(
        rights in prop::sample::select(vec![Rights::ALL, Rights::READ, Rights::ATOMIC, Rights::WRITE]),
        is_revoked: bool,
        requests in prop::collection::vec((
            prop_oneof![Just(Kind::READ), (0x40..0x60_u8).prop_map(Kind), any::<u8>().prop_map(Kind)],
            prop_oneof![0..110_u64, (0..14_u64).prop_map(|word| 8 * word), any::<u64>()],
            prop_oneof![9 => Just(1), 1 => any::<u64>()],
            prop_oneof![Just(FAST_INDEX), Just(0_u16)],
            0..40_u64,
            any::<u32>(),
        ), 1..40),
    ) {
        let (mut fast, mut slow) = (Target::new(rights, usize::MAX), Target::new(rights, usize::MAX));
        for target in [&mut fast, &mut slow] {
            if is_revoked {
                target.receiver.revoke_slot(target.slot).unwrap();
            }
        }
        for (kind, offset, key, metadata_index, length_bytes, token) in requests {
            let request = ShortRequest {
                kind,
                to: Address::new(fast.slot, metadata_index),
                key: Key::from_bits(key),
                offset,
                word: u64::from(BACK.to_bits()) << 32 | u64::from(token),
                data: [BACK_KEY, u64::from(token >> 16) | length_bytes << 32],
            };
            let before = fast.area.contents();
            let answer = fast.receiver.serve_short(&request);
            let Some(answer) = answer else {
                prop_assert_eq!(fast.area.contents(), before);
                if request.kind.is_request() {
                    let (wanted, taken) = (length_bytes, slow.take(request.header(), &[], &bytes(&request.data)));
                    let is_long = kind == Kind::READ && wanted > SHORT_BYTES_WITH_WORD as u64;
                    prop_assert!(taken.is_err() || is_long, "{:?} was left alone", request);
                    slow.answers();
                }
                continue;
            };
            prop_assert!(slow.take(request.header(), &[], &bytes(&request.data)).is_ok());
            let answers = slow.answers();
            prop_assert_eq!(answers.len(), 1);
            prop_assert_eq!(answers[0].header, answer.header());
            prop_assert_eq!(&answers[0].data[..], &answer.bytes()[..]);
            prop_assert_eq!(fast.area.contents(), slow.area.contents());
            // One that found no room goes later, and is the same.
            fast.receiver.answer_later(fast.link, &answer);
            prop_assert!(fast.receiver.serve_short(&request).is_none(), "it overtakes what waits");
            let later = fast.answers();
            prop_assert_eq!(later.len(), 1);
            prop_assert_eq!(later[0].header, answer.header());
            prop_assert_eq!(&later[0].data, &answers[0].data);
        }
    }

    /// Whatever comes, nothing outside the slot changes, and answers carry no more than was asked
    /// for.
    #[test]
    fn no_request_reaches_outside_its_slot(
        requests in prop::collection::vec((any::<u8>(), 0..3_u8, prop_oneof![0..110_u64, any::<u64>()], prop::collection::vec(any::<u8>(), 0..40), 0..20_usize, any::<u64>()), 1..80),
    ) {
        let mut target = Target::new(Rights::ALL, usize::MAX);
        let before = target.area.contents();
        for (kind, flags, offset, data, metadata, word) in requests {
            let header = Header {
                kind: Kind(kind & 0x63),
                flags: Flags(flags & 1),
                metadata_index: FAST_INDEX,
                word,
                ..header(target.slot, 1, offset)
            };
            let _ = target.take(header, &vec![5; metadata], &data);
            target.receiver.answer(&mut target.wires);
            for answer in target.wires.drain(target.link) {
                prop_assert!(answer.data.len() <= 64);
            }
            let found = target.area.contents();
            prop_assert_eq!(&found[..8], &before[..8]);
            prop_assert_eq!(&found[108..], &before[108..]);
        }
    }
}
