//! The fast paths of short packets let in what the general path lets in, do the same, and
//! leave no trace of anything else (`Receiver::receive_short`).

use crate::host;
use crate::host::{InPlace, Packet, VecArea};
use hamlyn_engine::counting::Counting;
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{FAST_INDEX, SHORT_BYTES_MAX};
use hamlyn_engine::metadata::{MetadataArea, Permission};
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::{Address, Short, SlotName, short_words};
use hamlyn_engine::receive::{Awaited, Received, Receiver};
use hamlyn_engine::slot::{Mode, QueueId, Rights, SlotOptions};
use proptest::prelude::*;

const SLOT_BYTES: u64 = 128;
const BASE: u64 = 64;
const LOW: u64 = 32;
const HIGH: u64 = 96;
const SLOT_KEY: u64 = 1;
const ENTRY_KEY: u64 = 2;
const CLASS: u64 = 0xC1A55;

/// What may be so of the one slot.
#[derive(Clone, Debug)]
struct State {
    mode: Mode,
    rights: Rights,
    revoked: bool,
    lapsed: bool,
    closed: bool,
    armed: bool,
    in_use: bool,
    /// Above the slot's end, or not.
    high: u64,
}

struct World {
    receiver: Receiver<VecArea>,
    area: VecArea,
    metadata: MetadataArea,
    slot: SlotName,
    queue: QueueId,
}

impl World {
    fn new(state: &State) -> Self {
        let mut receiver = Receiver::new(Some(100));
        receiver.set_up(0);
        let area = VecArea::new(256);
        let metadata = MetadataArea::new(2).unwrap();
        let (queue, _) = receiver.open_queue(8).unwrap();
        let slot = receiver
            .open_slot(SlotOptions {
                area: area.clone(),
                base: BASE,
                length_bytes: SLOT_BYTES,
                key: Key::from_bits(SLOT_KEY),
                rights: state.rights,
                mode: state.mode,
                metadata: Some(metadata.clone()),
                queue: Some(queue),
                counting: Counting::Bits32,
            })
            .unwrap();
        let entry = metadata.entry(1).unwrap();
        entry.set_receive_class(CLASS);
        entry.permit(Permission {
            key: Key::from_bits(ENTRY_KEY),
            low: LOW,
            high: state.high,
        });
        if state.armed {
            entry.arm();
        }
        if state.in_use {
            area.in_use.borrow_mut().push(0..256);
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
            queue,
        }
    }

    /// All that a packet can change.
    fn trace(&self) -> (Vec<u8>, bool, usize, u64) {
        let entry = self.metadata.entry(1).unwrap();
        let length_bytes = entry.metadata_length_bytes();
        let word = if length_bytes > 0 {
            entry.metadata_word()
        } else {
            0
        };
        (self.area.contents(), entry.is_armed(), length_bytes, word)
    }

    fn ordinary(&mut self, short: &Short) -> Option<Notification> {
        let word = short.word.to_le_bytes();
        let metadata: &[u8] = if short.has_metadata { &word } else { &[] };
        let packet = Packet::new(short.header(), metadata, &short.bytes());
        let queue = Some(self.queue);
        match self
            .receiver
            .receive(host::PEER, &packet.header, &packet, queue)
        {
            Ok(Received::Handed(notification)) => Some(notification),
            Ok(other) => panic!("a whole message that was not announced: {other:?}"),
            Err(_) => None,
        }
    }

    fn awaited(&mut self, short: &Short, high: u64) -> Option<(u64, u64)> {
        let awaited = Awaited {
            to: Address::new(self.slot, 1),
            key: Key::from_bits(ENTRY_KEY),
            low: LOW,
            length_bytes: high - LOW,
        };
        // Who awaits a message at an entry looks for one with metadata only.
        let short = short.has_metadata.then_some(InPlace::<true>(short))?;
        let entry = self.metadata.entry(1).unwrap();
        let awaited = Some((&awaited, entry));
        let taken = self.receiver.receive_short(&short, self.queue, awaited);
        taken.map(|taken| (taken.metadata, taken.offset))
    }

    fn fast(&mut self, short: &Short) -> Option<Notification> {
        let (receiver, queue) = (&mut self.receiver, self.queue);
        let taken = if short.has_metadata {
            receiver.receive_short(&InPlace::<true>(short), queue, None)
        } else {
            receiver.receive_short(&InPlace::<false>(short), queue, None)
        };
        taken.map(|taken| taken.notification(host::PEER))
    }
}

fn states() -> impl Strategy<Value = State> {
    let mode = prop_oneof![
        1 => Just(Mode::Normal),
        1 => Just(Mode::Paranoid),
        4 => Just(Mode::ParanoidOneShot)
    ];
    let rarely = || prop::bool::weighted(0.1);
    let rights = prop_oneof![8 => Just(Rights::WRITE), 1 => Just(Rights::NONE)];
    let high = prop_oneof![Just(HIGH), Just(SLOT_BYTES), Just(SLOT_BYTES + 40)];
    (
        (mode, rights, high),
        (rarely(), rarely(), rarely(), rarely(), rarely()),
    )
        .prop_map(
            |((mode, rights, high), (revoked, lapsed, closed, spent, in_use))| State {
                mode,
                rights,
                revoked,
                lapsed,
                closed,
                armed: !spent,
                in_use,
                high,
            },
        )
}

/// A packet that is nearly right; `generation` is added to that of the slot.
fn packets() -> impl Strategy<Value = (Short, u16, u16)> {
    let index = prop_oneof![6 => Just(1_u16), 1 => Just(0), 1 => Just(2), 3 => Just(FAST_INDEX)];
    let key = prop_oneof![6 => Just(ENTRY_KEY), 3 => Just(SLOT_KEY), 1 => any::<u64>()];
    let offset = prop_oneof![
        6 => LOW..=HIGH,
        2 => LOW - 17..SLOT_BYTES + 1,
        1 => u64::MAX - 40..=u64::MAX,
        1 => any::<u64>()
    ];
    let generation = prop_oneof![9 => Just(0_u16), 1 => Just(1)];
    let slot_index = prop_oneof![9 => Just(0_u16), 1 => any::<u16>()];
    (
        index,
        key,
        offset,
        any::<u64>(),
        prop_oneof![3 => Just(16_usize), 5 => 0..=SHORT_BYTES_MAX],
        any::<[u8; SHORT_BYTES_MAX]>(),
        generation,
        slot_index,
    )
        .prop_map(
            |(index, key, offset, word, length, bytes, generation, slot_index)| {
                let short = Short {
                    to: Address::new(SlotName::new(0, 0), index),
                    key: Key::from_bits(key),
                    offset,
                    word,
                    // In fast mode the word is no metadata.
                    has_metadata: index != FAST_INDEX,
                    length_bytes: length as u16,
                    data: short_words(&bytes[..length]).unwrap(),
                };
                (short, generation, slot_index)
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_way_lets_in_the_same(state in states(), (short, generation, slot_index) in packets()) {
        let mut ordinary = World::new(&state);
        let slot = ordinary.slot;
        let name = SlotName::new(
            slot.index().wrapping_add(slot_index),
            slot.generation().wrapping_add(generation),
        );
        let index = short.to.metadata_index();
        let short = Short { to: Address::new(name, index), ..short };
        let before = ordinary.trace();
        let expected = ordinary.ordinary(&short);
        let after = ordinary.trace();
        if expected.is_none() {
            prop_assert_eq!(&after, &before, "what is refused leaves no trace");
        }

        let mut fast = World::new(&state);
        match fast.fast(&short) {
            Some(notification) => {
                prop_assert_eq!(Some(notification), expected);
                prop_assert_eq!(&fast.trace(), &after);
            }
            None => prop_assert_eq!(&fast.trace(), &before),
        }

        let mut awaited = World::new(&state);
        match awaited.awaited(&short, state.high).map(|(word, at)| {
            assert_eq!(at, short.offset);
            word
        }) {
            Some(word) => {
                prop_assert_eq!(word, short.word);
                prop_assert_eq!(expected.map(|notification| notification.word), Some(CLASS));
                prop_assert_eq!(&awaited.trace(), &after);
                prop_assert_eq!(awaited.awaited(&short, state.high), None, "once");
            }
            None => {
                prop_assert_eq!(&awaited.trace(), &before);
                let is_usual = state.mode == Mode::ParanoidOneShot && index == 1 && short.length_bytes > 0;
                prop_assert!(!is_usual || expected.is_none(), "what is awaited is seen");
            }
        }
    }
}

/// The property would hold of fast paths that overlook everything.
#[test]
fn what_is_right_is_let_in() {
    let state = State {
        mode: Mode::ParanoidOneShot,
        rights: Rights::WRITE,
        revoked: false,
        lapsed: false,
        closed: false,
        armed: true,
        in_use: false,
        high: HIGH,
    };
    let mut world = World::new(&state);
    let slot = world.slot;
    let plain = State {
        mode: Mode::Normal,
        ..state
    };
    let mut plain_world = World::new(&plain);
    for length in 0..=SHORT_BYTES_MAX {
        let bytes = [length as u8; SHORT_BYTES_MAX];
        let short = Short {
            to: Address::new(slot, 1),
            key: Key::from_bits(ENTRY_KEY),
            offset: HIGH - length as u64,
            word: 7,
            has_metadata: true,
            length_bytes: length as u16,
            data: short_words(&bytes[..length]).unwrap(),
        };
        let place = (BASE + HIGH) as usize - length..(BASE + HIGH) as usize;
        // An empty message is left to the ordinary way by who awaits one.
        if length > 0 {
            assert_eq!(world.awaited(&short, HIGH), Some((7, short.offset)));
            assert_eq!(world.area.contents()[place.clone()], bytes[..length]);
            world.metadata.entry(1).unwrap().arm();
        }
        let notification = world.fast(&short).unwrap();
        assert_eq!((notification.slot, notification.word), (slot, CLASS));
        world.metadata.entry(1).unwrap().arm();
        let short = Short {
            to: Address::new(plain_world.slot, FAST_INDEX),
            key: Key::from_bits(SLOT_KEY),
            has_metadata: false,
            ..short
        };
        let notification = plain_world.fast(&short).unwrap();
        assert_eq!(notification.word, 7);
        assert_eq!(plain_world.area.contents()[place], bytes[..length]);
    }
}

/// A slot and an entry to which everything is let in, and a short packet under that key.
fn open_to(mode: Mode, key: u64, has_metadata: bool, length_bytes: u16) -> (World, Short) {
    let world = World::new(&State {
        mode,
        rights: Rights::WRITE,
        revoked: false,
        lapsed: false,
        closed: false,
        armed: true,
        in_use: false,
        high: HIGH,
    });
    let index = if has_metadata { 1 } else { FAST_INDEX };
    let short = Short {
        to: Address::new(world.slot, index),
        key: Key::from_bits(key),
        offset: LOW,
        word: 7,
        has_metadata,
        length_bytes,
        data: [1, 2, 0, 0],
    };
    (world, short)
}

/// A key that is wrong in one bit is wrong.
#[test]
fn every_bit_of_a_key_counts() {
    for wrong in (0..64).map(|bit| 1_u64 << bit).chain([0]) {
        let is_right = wrong == 0;
        let (mut world, short) = open_to(Mode::Normal, SLOT_KEY ^ wrong, false, 16);
        assert_eq!(world.fast(&short).is_some(), is_right, "{wrong:x}");
        assert_eq!(world.ordinary(&short).is_some(), is_right, "{wrong:x}");
        for mode in [Mode::Paranoid, Mode::ParanoidOneShot] {
            let (mut world, short) = open_to(mode, ENTRY_KEY ^ wrong, true, 16);
            assert_eq!(world.ordinary(&short).is_some(), is_right, "{wrong:x}");
        }
        let (mut world, short) = open_to(Mode::ParanoidOneShot, ENTRY_KEY ^ wrong, true, 16);
        assert_eq!(world.fast(&short).is_some(), is_right, "{wrong:x}");
        let (mut world, short) = open_to(Mode::ParanoidOneShot, ENTRY_KEY ^ wrong, true, 16);
        assert_eq!(world.awaited(&short, HIGH).is_some(), is_right, "{wrong:x}");
    }
}

/// No piece has the data of a message without any, so it is for the general path.
#[test]
fn an_awaited_message_without_data_is_left() {
    for length_bytes in [0, 1] {
        let (mut world, short) = open_to(Mode::ParanoidOneShot, ENTRY_KEY, true, length_bytes);
        let before = world.trace();
        let is_taken = world.awaited(&short, HIGH).is_some();
        assert_eq!(is_taken, length_bytes > 0);
        assert_eq!(world.trace() == before, !is_taken);
        assert_eq!(world.ordinary(&short).is_some(), !is_taken);
    }
}

#[test]
fn data_of_every_length_are_words() {
    let bytes: [u8; SHORT_BYTES_MAX + 1] = std::array::from_fn(|at| 0xA1 + at as u8);
    for length in 0..=SHORT_BYTES_MAX {
        let mut filled = [0; SHORT_BYTES_MAX];
        filled[..length].copy_from_slice(&bytes[..length]);
        let words: Vec<u64> = filled
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        let found = short_words(&bytes[..length]).unwrap();
        assert_eq!(found[..], words[..], "{length} bytes");
    }
    assert_eq!(short_words(&bytes), None);
}
