//! A short packet in its cell: both ways to read it say the same.

use hamlyn_engine::packet::{SlotName, short_words};
use proptest::prelude::*;

use super::*;
use crate::cell::decode;

const ARENA_BYTES: usize = 1 << 20;
const PAYLOAD_MAX: usize = 16 << 10;

fn shorts() -> impl Strategy<Value = Short> {
    let bytes = prop::collection::vec(any::<u8>(), 0..=SHORT_BYTES_MAX);
    let place = (any::<u32>(), any::<u16>(), any::<[u64; 2]>());
    let word = prop_oneof![Just(0), any::<u64>()];
    (bytes, place, word, any::<bool>()).prop_map(
        |(mut bytes, (slot, index, [key, offset]), word, has_metadata)| {
            if has_metadata || word != 0 {
                bytes.truncate(SHORT_BYTES_WITH_WORD);
            }
            let index = if has_metadata { index & 0xFF } else { index };
            Short {
                to: Address::new(SlotName::from_bits(slot), index),
                key: Key::from_bits(key),
                offset,
                word,
                has_metadata,
                length_bytes: bytes.len() as u8,
                data: short_words(&bytes).unwrap(),
            }
        },
    )
}

fn in_place(cell: &Cell) -> Option<Short> {
    let said = cell[0] & !FLAG_MASK;
    if let Some(length) = number_in(said, first_word(false), bytes_max(false)) {
        return Some(decode_short::<_, false>(length, *cell).copied());
    }
    let length = number_in(said, first_word(true), bytes_max(true))?;
    Some(decode_short::<_, true>(length, *cell).copied())
}

/// The bytes that count.
fn bytes_of(words: [u64; 4], length: usize) -> Vec<u8> {
    words.map(u64::to_le_bytes).concat()[..length].to_vec()
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded_in_place_and_as_a_copy(short in shorts(), flag: u32) {
        let mut cell = encode_short(&short);
        prop_assert_eq!(cell[0] as u32, 0, "the flag is the ring's");
        cell[0] |= u64::from(flag);
        let seen = in_place(&cell).unwrap();
        let length = usize::from(short.length_bytes);
        prop_assert_eq!(bytes_of(seen.data, length), bytes_of(short.data, length));
        prop_assert_eq!(Short { data: short.data, ..seen }, short);
        let (header, placement) = decode(&cell, ARENA_BYTES, PAYLOAD_MAX).unwrap();
        prop_assert_eq!(header, short.header());
        let metadata = if short.has_metadata { short.word } else { 0 };
        prop_assert_eq!(placement.metadata, Metadata::Word(metadata));
        let Data::Cell(words) = placement.data else { panic!("{placement:?}") };
        prop_assert_eq!(bytes_of(words, length), bytes_of(short.data, length));
        prop_assert!(fits(&header, usize::from(header.metadata_length_bytes), length));
    }

    /// Whatever a peer writes.
    #[test]
    fn the_two_ways_agree_about_anything(words: [u64; 8], length in 0_u64..40, kind in 0_u64..4) {
        let mut cell = words;
        cell[0] = kind << 56 | length << 32 | words[0] & FLAG_MASK;
        let decoded = decode(&cell, ARENA_BYTES, PAYLOAD_MAX);
        match in_place(&cell) {
            Some(short) if short.has_metadata && short.to.is_fast() => {
                prop_assert_eq!(decoded, Err(LinkFault::Placement));
            }
            Some(short) => {
                let (header, placement) = decoded.unwrap();
                prop_assert_eq!(header, short.header());
                prop_assert_eq!(placement.data, Data::Cell(short.data));
                prop_assert!(u64::from(header.length_bytes) <= bytes_max(short.has_metadata));
            }
            None => prop_assert_eq!(decoded, Err(LinkFault::Placement), "no packet has such a first word"),
        }
    }
}

#[test]
fn what_does_not_fit_is_not_short() {
    let header = Header {
        slot: SlotName::new(1, 1),
        metadata_index: 3,
        key: Key::from_bits(9),
        offset: 0,
        length_bytes: 0,
        word: 0,
        metadata_length_bytes: 0,
        flags: Flags::NONE,
        kind: Kind::WRITE,
    };
    assert!(fits(&header, 0, 32) && fits(&header, 8, 24));
    assert!(!fits(&header, 0, 33) && !fits(&header, 8, 25) && !fits(&header, 7, 8));
    let with_word = Header { word: 1, ..header };
    assert!(fits(&with_word, 0, 24) && !fits(&with_word, 0, 25));
    assert!(!fits(&with_word, 8, 8), "two words");
    let silent = Header {
        flags: Flags::SILENT,
        ..header
    };
    assert!(!fits(&silent, 0, 8));
    assert!(!fits(
        &Header {
            kind: Kind(1),
            ..header
        },
        0,
        8
    ));
}
