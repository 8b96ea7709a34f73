//! A short packet in its cell: both ways to read it say the same.

use hamlyn_engine::packet::{SlotName, short_words};
use proptest::prelude::*;

use super::*;
use crate::cell::decode;

const ARENA_BYTES: usize = 1 << 20;
const PAYLOAD_MAX: usize = 16 << 10;
const CELLS: u32 = MESSAGE_CELLS_MAX;

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
                length_bytes: bytes.len() as u16,
                data: short_words(&bytes).unwrap(),
            }
        },
    )
}

fn in_place(cell: &Cell) -> Option<Short> {
    let said = cell[0] & !FLAG_MASK;
    if let Some(length) = number_in(said, first_word(false), bytes_in_one(false)) {
        return Some(decode_short::<_, false>(length, *cell).copied());
    }
    let length = number_in(said, first_word(true), bytes_in_one(true))?;
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
        let (header, placement) = decode(&cell, CELLS, ARENA_BYTES, PAYLOAD_MAX).unwrap();
        prop_assert_eq!(header, short.header());
        let metadata = if short.has_metadata { short.word } else { 0 };
        prop_assert_eq!(placement.metadata, Metadata::Word(metadata));
        let Data::Cell(words) = placement.data else { panic!("{placement:?}") };
        prop_assert_eq!(bytes_of(words, length), bytes_of(short.data, length));
        prop_assert!(fits(&header, usize::from(header.metadata_length_bytes), length, 1));
    }

    /// Whatever a peer writes.
    #[test]
    fn the_two_ways_agree_about_anything(
        words: [u64; 8],
        length in prop_oneof![0_u64..40, 0_u64..1200, WORD_IS_KEPT..WORD_IS_KEPT + 40],
        kind in 0_u64..4,
    ) {
        let mut cell = words;
        cell[0] = kind << 56 | length << 32 | words[0] & FLAG_MASK;
        let decoded = decode(&cell, CELLS, ARENA_BYTES, PAYLOAD_MAX);
        match in_place(&cell) {
            Some(short) if short.has_metadata && short.to.is_fast() => {
                prop_assert_eq!(decoded, Err(LinkFault::Placement));
            }
            Some(short) => {
                let (header, placement) = decoded.unwrap();
                prop_assert_eq!(header, short.header());
                prop_assert_eq!(placement.data, Data::Cell(short.data));
                prop_assert!(u64::from(header.length_bytes) <= bytes_in_one(short.has_metadata));
            }
            None => {
                let has_metadata = kind == 2;
                let extent = extent(has_metadata, length, CELLS).filter(|_| kind % 2 == 0);
                let Ok((header, placement)) = decoded else {
                    let is_fast = Address::from_bits(cell[1]).is_fast();
                    prop_assert!(extent.is_none() || has_metadata && is_fast);
                    return Ok(());
                };
                let (length, cells) = extent.unwrap();
                prop_assert_eq!(u64::from(header.length_bytes), length);
                prop_assert_eq!(placement.cells(header.length_bytes), cells);
                prop_assert!(cells > 1 && cells <= u64::from(CELLS));
                let first = [cell[5], cell[6], cell[7]];
                prop_assert_eq!(placement.data, Data::Cells { first, first_bytes: 24 });
                prop_assert_eq!(header.word, if has_metadata { 0 } else { cell[4] });
            }
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
    assert!(fits(&header, 0, 32, 1) && fits(&header, 8, 24, 1));
    assert!(!fits(&header, 0, 33, 1) && !fits(&header, 8, 25, 1) && !fits(&header, 7, 8, 1));
    assert!(fits(&header, 0, 80, 2) && fits(&header, 8, 80, 2));
    assert!(!fits(&header, 0, 81, 2) && !fits(&header, 8, 81, 2));
    assert!(fits(&header, 0, 81, 3) && !fits(&header, 0, usize::MAX, CELLS));
    let with_word = Header { word: 1, ..header };
    assert!(fits(&with_word, 0, 24, 1) && !fits(&with_word, 0, 25, 1));
    assert!(fits(&with_word, 0, 25, 2), "the word stays in its place");
    assert!(!fits(&with_word, 8, 8, CELLS), "two words");
    let silent = Header {
        flags: Flags::SILENT,
        ..header
    };
    assert!(!fits(&silent, 0, 8, CELLS));
    assert!(!fits(
        &Header {
            kind: Kind(1),
            ..header
        },
        0,
        8,
        CELLS
    ));
}

/// Each length that can be said takes the cells that its bytes need, and no length two ways.
#[test]
fn lengths_and_cells_fit_each_other() {
    for has_metadata in [false, true] {
        let mut seen = std::collections::BTreeSet::new();
        for said in 0..=2 * WORD_IS_KEPT {
            let Some((length, cells)) = extent(has_metadata, said, CELLS) else {
                continue;
            };
            let keeps_word = said != length;
            assert!(seen.insert((length, keeps_word)));
            assert!(length <= bytes_in(has_metadata, cells as u32));
            let word = u64::from(keeps_word);
            assert_eq!(cells_of(has_metadata, word, length), cells);
            for fewer in 1..cells as u32 {
                assert_eq!(extent(has_metadata, said, fewer), None);
            }
            if !keeps_word && cells > 1 {
                assert!(length > bytes_in(has_metadata, cells as u32 - 1));
            }
        }
        let kept = seen.iter().filter(|(_, keeps_word)| *keeps_word).count();
        assert_eq!(kept, if has_metadata { 0 } else { 8 });
        assert_eq!(
            seen.len() - kept,
            1 + bytes_in(has_metadata, CELLS) as usize
        );
    }
}
