use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{self, Debug, Formatter};

use proptest::prelude::*;

use super::*;
use crate::memory::{Denied, NoWindow};
use crate::packet::SlotName;

/// No area: what is written here is at hand.
#[derive(Clone)]
struct NoArea;

impl Area for NoArea {
    type Window = NoWindow;

    fn length_bytes(&self) -> u64 {
        0
    }

    fn write(&self, _: u64, _: &[u8]) -> Result<(), Denied> {
        Err(Denied::OutOfArea)
    }

    fn window(&self, _: u64, _: u64) -> NoWindow {
        NoWindow
    }

    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), Denied> {
        Err(Denied::OutOfArea)
    }
}

#[derive(Clone)]
enum Given {
    Short(Short),
    General(Header, Vec<u8>, Vec<u8>),
}

impl Debug for Given {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => write!(f, "{short:?} key {}", short.key.to_bits()),
            Self::General(header, ..) => write!(f, "{header:?} key {}", header.key.to_bits()),
        }
    }
}

/// Numbers that are often near each other.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0_u64..4,
        (0_u64..40).prop_map(|n| n * 16),
        any::<u32>().prop_map(u64::from),
        any::<u64>()
    ]
}

/// Slot, entry, key, offset, word.
fn cursor() -> impl Strategy<Value = (SlotName, u16, Key, u64, u64)> {
    (0_u32..3, 0_u16..3, number(), number(), number()).prop_map(
        |(slot, entry, key, offset, word)| {
            // Fast mode among them.
            let entry = if entry == 2 { u16::MAX } else { entry };
            (
                SlotName::from_bits(slot),
                entry,
                Key::from_bits(key),
                offset,
                word,
            )
        },
    )
}

fn given() -> impl Strategy<Value = Given> {
    prop_oneof![
        (cursor(), any::<bool>(), any::<[u64; 2]>()).prop_map(
            |((slot, entry, key, offset, word), has_metadata, data)| Given::Short(Short {
                to: Address::new(slot, entry),
                key,
                offset,
                word,
                has_metadata,
                length_bytes: 16,
                data: [data[0], data[1], 0, 0],
            })
        ),
        (
            cursor(),
            prop::collection::vec(any::<u8>(), 0..61),
            prop::collection::vec(any::<u8>(), 0..100),
            any::<u8>(),
            any::<u8>(),
        )
            .prop_map(
                |((slot, metadata_index, key, offset, word), metadata, data, flags, kind)| {
                    let flags = Flags(flags & 7);
                    let header = Header {
                        slot,
                        metadata_index,
                        key,
                        offset,
                        length_bytes: data.len() as u32,
                        word,
                        metadata_length_bytes: metadata.len() as u8,
                        flags,
                        kind: Kind(kind),
                    };
                    let data = if flags.is_placed() { vec![] } else { data };
                    Given::General(header, metadata, data)
                }
            ),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(packets in prop::collection::vec(given(), 0..40), padding in 0_usize..9) {
        let mut bytes = vec![0; 8_192 + SLACK_BYTES];
        let (mut previous, mut at) = (PreviousPacket::default(), 0);
        for packet in &packets {
            at = match packet {
                Given::Short(short) => previous.write_short(short, &mut bytes, at, 8_192).unwrap(),
                Given::General(header, metadata, data) => previous
                    .write(header, metadata, &[Part::<NoArea>::Bytes(data)], &mut bytes, at, 8_192)
                    .unwrap(),
            };
        }
        bytes[at..].fill(0);
        let bytes = &bytes[..at + padding];
        prop_assert_eq!(count(bytes), Some(packets.len() as u16));
        let mut read = Packets::new(bytes);
        for packet in &packets {
            match (packet, read.next().unwrap()) {
                (Given::Short(short), Packet::Short(seen)) => prop_assert_eq!(*short, seen),
                (Given::General(header, metadata, data), Packet::General { header: h, metadata: m, data: d }) => {
                    prop_assert_eq!(*header, h);
                    prop_assert_eq!(metadata, m);
                    prop_assert_eq!(data, d);
                }
                (given, seen) => prop_assert!(false, "{:?} {:?}", given, seen),
            }
        }
        prop_assert!(read.next().is_none());
    }

    /// The one who counts and the one who reads agree about any bytes.
    #[test]
    fn any_bytes_are_counted_as_they_are_read(
        mut bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x80_u8..0xE0, 0xA0_u8..0xA8], 0..300),
        short in any::<bool>(),
    ) {
        if short {
            // Lengths of general packets small enough to be there.
            bytes.iter_mut().filter(|byte| **byte & 0x0F == 5).for_each(|byte| *byte = 0);
        }
        let read = Packets::new(&bytes).count();
        if let Some(count) = count(&bytes) {
            prop_assert_eq!(usize::from(count), read);
        }
        prop_assert!(read * 8 <= bytes.len() + 8);
    }
}

/// A stream of messages to one place takes a byte each beside its data, and its word where that is
/// unforeseeable.
#[test]
fn short_packets_are_short() {
    let mut bytes = vec![0; 400];
    let mut previous = PreviousPacket::default();
    let mut short = Short {
        to: Address::new(SlotName::new(1, 2), u16::MAX),
        key: Key::from_bits(3),
        offset: 1 << 20,
        word: 1 << 40,
        has_metadata: false,
        length_bytes: 16,
        data: [5, 6, 0, 0],
    };
    let mut write = |short: &Short, at: usize| previous.write_short(short, &mut bytes, at, 352);
    let mut at = write(&short, 0).unwrap();
    assert_eq!(at, 1 + 14 + 4 + 8 + 16);
    for (offset, word, length) in [
        (16, 0, 17),
        (32, 1, 17),
        (32, 1, 17),
        (0, 1, 21),
        (16, 1 << 50, 25),
        (1 << 33, 1 << 50, 25),
    ] {
        short.offset = (1 << 20) + offset;
        short.word = (1 << 40) + word;
        let next = write(&short, at).unwrap();
        assert_eq!(next - at, length, "{offset} {word}");
        at = next;
    }
    assert!(write(&short, 340).is_none());
}

#[test]
fn what_is_no_packet_is_none() {
    // A byte that says there is a packet, and nothing behind it.
    assert_eq!(count(&[0x80]), None);
    // Bits in the byte with which padding begins.
    assert_eq!(count(&[0x20]), None);
    assert_eq!(count(&[0, 0x80, 1]), Some(0));
    // A general packet with 61 bytes of metadata.
    let mut bytes = vec![0; 100];
    bytes[..8].copy_from_slice(&[0xE0, 0, 0, 61, 0, 0, 0, 0]);
    assert_eq!(count(&bytes), None);
    assert_eq!(Packets::new(&bytes).count(), 0);
    bytes[3] = 60;
    assert_eq!(count(&bytes), Some(1));
    // One with more data than there are.
    bytes[7] = 0xFF;
    assert_eq!(count(&bytes), None);
    assert_eq!(Packets::new(&bytes).count(), 0);
}
