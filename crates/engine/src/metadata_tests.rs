//! Where one-shot messages landed. Beside [`crate::metadata`], which loom compiles by itself.

use crate::key::Key;
use crate::metadata::MetadataArea;

const SECRET: Key = Key::from_bits(0x0123_4567_89AB_CDEF);

fn landed(secret: Key, pieces: &[(u64, u32)]) -> MetadataArea {
    let area = MetadataArea::new(1).unwrap();
    let entry = area.entry(0).unwrap();
    for &(offset, length_bytes) in pieces {
        entry.add_landed(secret, offset, length_bytes);
        entry.set_accumulator(1);
    }
    area
}

fn has_landed(area: &MetadataArea, secret: Key, offset: u64, length_bytes: u32) -> bool {
    area.entry(0)
        .unwrap()
        .has_landed(secret, offset, length_bytes)
}

#[test]
fn one_packet_landed_where_it_did_and_as_long_as_it_was() {
    let area = MetadataArea::new(1).unwrap();
    let entry = area.entry(0).unwrap();
    entry.set_landed(5, 7);
    assert!(entry.has_landed(SECRET, 5, 7));
    for (offset, length_bytes) in [(5, 6), (5, 8), (4, 7), (6, 7), (0, 0)] {
        assert!(!entry.has_landed(SECRET, offset, length_bytes));
    }
}

/// All bits of the sum are compared: of a hundred thousand other places none passes for the right
/// one.
#[test]
fn pieces_landed_side_by_side_and_nowhere_else() {
    let entry = landed(SECRET, &[(20, 10), (10, 10), (30, 1)]);
    assert!(has_landed(&entry, SECRET, 10, 21));
    for offset in 11..100_000 {
        assert!(!has_landed(&entry, SECRET, offset, 21), "{offset}");
    }
    let overlapping = landed(SECRET, &[(10, 10), (19, 12)]);
    assert!(!has_landed(&overlapping, SECRET, 10, 21));
}

/// A sender that knows the places, but not the secret, finds no others that pass for them.
#[test]
fn where_pieces_landed_is_judged_by_a_secret() {
    let other = Key::from_bits(SECRET.to_bits() ^ 1);
    let entry = landed(SECRET, &[(10, 10), (20, 10)]);
    assert!(!has_landed(&entry, other, 10, 20));
    assert!(has_landed(&entry, SECRET, 10, 20));
}
