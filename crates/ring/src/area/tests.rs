//! Areas: bounds, copies of every length and alignment, and handing over.

use hamlyn_engine::memory::Area as _;
use hamlyn_engine::packet::short_words;
use proptest::prelude::*;

use super::*;

#[test]
fn an_empty_area_is_legal() {
    let area = Area::new(0).unwrap();
    assert_eq!(area.length_bytes(), 0);
    assert_eq!(area.write(0, &[]), Ok(()));
    assert_eq!(area.read(0, &mut []), Ok(()));
    assert_eq!(area.write(0, &[1]), Err(Denied::OutOfArea));
    assert_eq!(area.write(1, &[]), Err(Denied::OutOfArea));
}

#[test]
fn too_much_memory_is_an_error() {
    assert!(Area::new(1 << 60).is_err());
    assert!(Area::new(u64::MAX).is_err());
    assert!(Area::handover(u32::MAX, 1 << 31).is_err());
    assert_eq!(Area::handover(4, 1000).unwrap_err(), Errno::INVAL);
    assert_eq!(Area::handover(u32::MAX, 1).unwrap_err(), Errno::INVAL);
}

#[test]
fn nothing_outside_is_touched() {
    let area = Area::new(100).unwrap();
    for offset in [101, u64::MAX, u64::MAX - 7] {
        assert_eq!(area.write(offset, &[]), Err(Denied::OutOfArea));
        assert_eq!(area.load_u64(offset), Err(Denied::OutOfArea));
    }
    assert_eq!(area.write(93, &[0; 8]), Err(Denied::OutOfArea));
    assert_eq!(area.store_u64(93, 1), Err(Denied::OutOfArea));
    assert_eq!(area.fill(1, 100, 0), Err(Denied::OutOfArea));
    assert_eq!(
        area.write_short(90, short([0; 4], 11)),
        Err(Denied::OutOfArea)
    );
    assert_eq!(
        area.write_short(0, short([0; 4], 33)),
        Err(Denied::OutOfArea)
    );
    assert_eq!(area.write_short(84, short([1, 2, 0, 0], 16)), Ok(()));
}

#[test]
fn every_length_and_alignment_is_copied_exactly() {
    let pattern: Vec<u8> = (0..4000_u32).map(|n| (n * 7 % 251) as u8 + 1).collect();
    let (area, other) = (Area::new(5000).unwrap(), Area::new(5000).unwrap());
    for len in (0..=300).chain([1023, 1024, 1025, 3000]) {
        for to in [0, 1, 7, 8, 13] {
            for from in [0, 3, 8] {
                area.fill(0, 5000, 0).unwrap();
                other.fill(0, 5000, 0).unwrap();
                area.write_at(to, &pattern[from..from + len]).unwrap();
                let mut bytes = vec![0; len];
                area.read_at(to, &mut bytes).unwrap();
                other.write_at(from as u64, &bytes).unwrap();
                let mut back = vec![0; 5000];
                for (area, at) in [(&area, to as usize), (&other, from)] {
                    area.read_at(0, &mut back).unwrap();
                    let mut expected = vec![0; 5000];
                    expected[at..at + len].copy_from_slice(&pattern[from..from + len]);
                    assert!(back == expected, "{len} bytes from {from} to {to}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn copies_are_those_of_memory(
        writes in prop::collection::vec(
            (0_usize..700, prop::collection::vec(any::<u8>(), 0..300)), 1..20),
        read in (0_usize..700, 0_usize..700),
    ) {
        let area = Area::new(600).unwrap();
        let mut model = vec![0; 600];
        for (offset, bytes) in writes {
            let expected = match model.get_mut(offset..offset + bytes.len()) {
                Some(range) => { range.copy_from_slice(&bytes); Ok(()) }
                None => Err(Denied::OutOfArea),
            };
            prop_assert_eq!(area.write_at(offset as u64, &bytes), expected);
        }
        let mut bytes = vec![0; read.1];
        match model.get(read.0..read.0 + read.1) {
            Some(range) => {
                prop_assert_eq!(area.read_at(read.0 as u64, &mut bytes), Ok(()));
                prop_assert_eq!(&bytes, range);
            }
            None => prop_assert!(area.read_at(read.0 as u64, &mut bytes).is_err()),
        }
    }

    #[test]
    fn short_words_are_bytes(words: [u64; 4], len in 0_usize..=32, offset in 0_u64..=32) {
        let area = Area::new(64).unwrap();
        area.write_short(offset, short(words, len)).unwrap();
        let mut expected = [0; 64];
        let bytes = words.map(u64::to_le_bytes).concat();
        let offset = offset as usize;
        expected[offset..offset + len].copy_from_slice(&bytes[..len]);
        let mut back = [0; 64];
        area.read_at(0, &mut back).unwrap();
        prop_assert_eq!(back, expected);
    }
}

#[test]
fn pieces_are_either_open_or_held() {
    let (area, mut reader) = Area::handover(4, 64).unwrap();
    assert_eq!((reader.pieces(), reader.piece_bytes()), (4, 64));
    assert_eq!(area.write(0, &[1]), Err(Denied::InUse));
    assert_eq!(reader.view(0, 256), Some(&[0; 256][..]));

    reader.open(1..3);
    assert_eq!(area.write(64, &[7; 128]), Ok(()));
    assert_eq!(
        area.write(63, &[7; 2]),
        Err(Denied::InUse),
        "reaches into a held piece"
    );
    assert_eq!(area.write(191, &[7; 2]), Err(Denied::InUse));
    assert_eq!(area.store_u64(0, 1), Err(Denied::InUse));
    assert_eq!(area.fill(0, 256, 1), Err(Denied::InUse));
    assert_eq!(area.write_short(0, short([1; 4], 16)), Err(Denied::InUse));
    assert_eq!(reader.view(64, 1), None);
    assert_eq!(reader.view(0, 65), None);
    assert!(reader.is_held(0) && !reader.is_held(1) && !reader.is_held(9));

    // A message that touches part of a piece hands over all of it.
    area.message_complete(70, 71);
    assert_eq!(reader.view(64, 64), Some(&[7; 64][..]));
    assert_eq!(area.write(64, &[8]), Err(Denied::InUse));
    assert_eq!(area.write(128, &[8]), Ok(()));
    area.message_complete(0, u64::MAX);
    assert_eq!(reader.view(128, 1), Some(&[8][..]));
    assert_eq!(reader.view(250, 7), None, "outside");
    assert_eq!(reader.view(u64::MAX, 1), None);
    area.message_complete(300, 200);
    reader.open(3..99);
    assert!(!reader.is_held(3));
}

#[test]
fn pages_of_a_sparse_area_come_and_go() {
    const PIECE: usize = 2 * PAGE_BYTES;
    assert_eq!(Area::sparse_handover(4, 2048).unwrap_err(), Errno::INVAL);
    let too_much = Area::sparse_handover(1 << 20, 1 << 30);
    assert_eq!(too_much.unwrap_err(), Errno::NOMEM);
    let (area, mut reader) = Area::sparse_handover(4096, PIECE as u32).unwrap();
    reader.open(0..4096);
    assert_eq!(area.memory().present_pages(), 0);
    area.write_at(0, &[7; 8 * PIECE]).unwrap();
    area.message_complete(0, 8 * PIECE as u64);
    assert_eq!(area.memory().present_pages(), 16);

    // One of them that is open may be written at this moment.
    reader.open(4..9);
    assert_eq!(area.memory().present_pages(), 16);
    reader.open(0..3);
    assert_eq!(area.memory().present_pages(), 10);
    assert_eq!(reader.view(3 * PIECE as u64, PIECE), Some(&[7; PIECE][..]));
    area.write_at(0, &[8]).unwrap();
    area.message_complete(0, 1);
    assert_eq!(
        reader.view(0, 2),
        Some(&[8, 0][..]),
        "what was there before"
    );
    reader.open_one(3);
    assert_eq!(area.memory().present_pages(), 11);
    reader.open(4096..9999);

    // The last piece ends where the area does, and another area has all of its pages.
    let last = 4095 * PIECE as u64;
    area.write_at(last, &[9; PIECE]).unwrap();
    area.message_complete(last, last + 1);
    assert_eq!(area.memory().present_pages(), 13);
    reader.open(4095..u32::MAX);
    assert_eq!(area.memory().present_pages(), 11);
    let (full, mut reader) = Area::handover(4, PIECE as u32).unwrap();
    reader.open(0..4);
    assert_eq!(full.memory().present_pages(), 8);
}

#[test]
fn a_range_names_the_pieces_that_it_touches() {
    let (_area, reader) = Area::handover(4, 64).unwrap();
    assert_eq!(reader.pieces_of(0, 64), Some(0..1));
    assert_eq!(reader.pieces_of(63, 2), Some(0..2));
    assert_eq!(reader.pieces_of(64, 192), Some(1..4));
    assert_eq!(reader.pieces_of(256, 0), Some(0..0));
    assert_eq!(reader.pieces_of(64, 193), None);
    assert_eq!(reader.pieces_of(257, 0), None);
    assert_eq!(reader.pieces_of(u64::MAX, 1), None);
    assert_eq!(reader.pieces_of(1, usize::MAX), None);
}

/// Only the area that was made with the pieces writes them; not its clones.
#[test]
fn clones_of_a_handover_area_read_only() {
    let (area, mut reader) = Area::handover(2, 64).unwrap();
    reader.open(0..2);
    let clone = area.clone();
    assert!(area.may_write() && !clone.may_write());
    let plain = Area::new(64).unwrap();
    assert!(plain.may_write() && plain.clone().may_write());
    assert_eq!(clone.write_at(0, b"no"), Err(Denied::InUse));
    memory::Area::message_complete(&clone, 0, 64);
    assert!(!reader.is_held(0));
    assert_eq!(area.write_at(0, b"yes"), Ok(()));
    let mut seen = [0; 3];
    clone.read_at(0, &mut seen).unwrap();
    assert_eq!(&seen, b"yes");
    fn moves<T: Send>(_: &T) {}
    moves(&area);
}

fn short(words: [u64; 4], length_bytes: usize) -> ShortData {
    ShortData {
        words,
        length_bytes,
    }
}

/// A model in bytes of what a short message does to pieces of 64 bytes.
#[derive(Clone, PartialEq, Debug)]
struct Model {
    bytes: Vec<u8>,
    held: Vec<bool>,
}

impl Model {
    fn complete_with_short(
        &mut self,
        offset: u64,
        data: &[u8],
        low: u64,
        high: u64,
    ) -> Result<(), Denied> {
        let end = offset
            .checked_add(data.len() as u64)
            .ok_or(Denied::OutOfArea)?;
        if end > self.bytes.len() as u64 {
            return Err(Denied::OutOfArea);
        }
        if !data.is_empty() && (offset / 64..=(end - 1) / 64).any(|piece| self.held[piece as usize])
        {
            return Err(Denied::InUse);
        }
        self.bytes[offset as usize..end as usize].copy_from_slice(data);
        for (piece, held) in self.held.iter_mut().enumerate() {
            let (begin, end) = (piece as u64 * 64, piece as u64 * 64 + 64);
            *held |= low < end && begin < high;
        }
        Ok(())
    }
}

proptest! {
    /// Whether the words and the limits lie in one piece or in several.
    #[test]
    fn short_data_that_complete_a_message_do_what_the_two_steps_do_or_nothing(
        steps in prop::collection::vec(
            (0_u64..270, prop::collection::vec(any::<u8>(), 0..33), 0_u64..256, 1_u64..150, prop::option::of(0_u32..4)),
            1..20,
        ),
    ) {
        let (area, mut reader) = Area::handover(4, 64).unwrap();
        let mut model = Model { bytes: vec![0; 256], held: vec![true; 4] };
        for (offset, bytes, low, length, open) in steps {
            let words = short_words(&bytes).unwrap();
            let data = ShortData { words, length_bytes: bytes.len() };
            if let Some(piece) = open {
                reader.open_one(piece);
                model.held[piece as usize] = false;
            }
            let high = low + length;
            prop_assert_eq!(
                area.clone().complete_with_short(offset, &data, low, high),
                false,
                "a clone has not the write token"
            );
            let before = model.clone();
            let expected = model.complete_with_short(offset, &bytes, low, high).is_ok();
            let is_done = area.complete_with_short(offset, &data, low, high);
            if is_done {
                prop_assert!(expected);
            } else {
                // The two steps must do it, if that can be done.
                let last = offset + (bytes.len() as u64).saturating_sub(1);
                let pieces = [offset, last, low, high - 1].map(|at| at / 64);
                let is_one = pieces.iter().all(|piece| *piece == pieces[0]);
                prop_assert!(!expected || !is_one || bytes.is_empty());
                model = before;
            }
            let mut bytes = vec![0; 256];
            area.read_at(0, &mut bytes).unwrap();
            prop_assert_eq!(&bytes, &model.bytes);
            for piece in 0..4 {
                prop_assert_eq!(reader.is_held(piece), model.held[piece as usize]);
                let at = u64::from(piece) * 64;
                let seen = reader.view(at + 3, 61);
                let expected = &model.bytes[at as usize + 3..][..61];
                prop_assert_eq!(seen, model.held[piece as usize].then_some(expected));
            }
        }
    }
}
