//! The codec: what is written is what is read, and nothing foreign leads outside.

use hamlyn_engine::limits::{PACKET_PAYLOAD_MAX, SHORT_BYTES_MAX};
use hamlyn_ring::geometry::MESSAGE_CELLS_MAX;
use proptest::prelude::*;

use super::*;

const BULK_BYTES: usize = 1 << 20;
const PAYLOAD_MAX: usize = 16 << 10;
const CELLS: u32 = MESSAGE_CELLS_MAX;

fn any_header() -> impl Strategy<Value = Header> {
    (
        any::<[u64; 2]>(),
        any::<(u32, u16, u8, u8)>(),
        prop_oneof![Just(0), any::<u64>()],
    )
        .prop_map(|([key, offset], (slot, index, flags, kind), word)| Header {
            slot: SlotName::from_bits(slot),
            metadata_index: if index % 4 == 0 { FAST_INDEX } else { index },
            key: Key::from_bits(key),
            offset,
            length_bytes: 0,
            word,
            metadata_length_bytes: 0,
            // Placed data are another matter, below.
            flags: Flags(flags & !Flags::PLACED.0),
            kind: Kind(kind),
        })
}

/// A cell in which small numbers are as likely as any.
fn any_cell() -> impl Strategy<Value = Cell> {
    let word = prop_oneof![any::<u64>(), (0_u64..70), (0_u64..70).prop_map(|n| n << 48)];
    let place = (0_u64..8, 0_u64..64, any::<u32>());
    (prop::array::uniform8(word), place, any::<bool>()).prop_map(|(mut cell, place, mix)| {
        if mix {
            cell[0] = place.0 << 56 | place.1 << 48 | u64::from(place.2);
            cell[4] = u64::from(place.2) << 38 | place.1;
        }
        cell
    })
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        header in any_header(),
        metadata_length in 0_usize..=60,
        length in prop_oneof![0_usize..=16, 0_usize..8000],
        line in 0_u32..10_000,
        data: [u64; 2],
        word: u64,
        flag: u32,
        is_apart: bool,
    ) {
        let header = Header {
            length_bytes: length as u32,
            metadata_length_bytes: metadata_length as u8,
            ..header
        };
        let in_word = metadata_length == 0 || word_is_free(&header, metadata_length);
        let offset = line * 64;
        let placement = if in_word {
            Placement {
                data: if length <= 16 {
                    Data::Cell([data[0], data[1], 0, 0])
                } else if length <= bytes_in(CELLS) && !is_apart {
                    Data::Cells { first: [data[0], data[1], 0], first_bytes: 16 }
                } else {
                    Data::PayloadArena(offset)
                },
                metadata: Metadata::Word(if metadata_length == 0 { 0 } else { word }),
            }
        } else {
            let data_after = Placement::data_after(metadata_length) as u32;
            Placement {
                data: Data::PayloadArena(offset + data_after),
                metadata: Metadata::PayloadArena(offset),
            }
        };
        let mut cell = encode(&header, &placement);
        // The ring's bits are not the codec's affair.
        prop_assert_eq!(cell[0] as u32, 0);
        cell[0] |= u64::from(flag);
        // The encoder names the place; the data begin after the metadata.
        prop_assert_eq!(decode(&cell, CELLS, BULK_BYTES, PAYLOAD_MAX), Ok((header, placement)));
    }

    #[test]
    fn placed_data_do_not_travel_however_many(
        header in any_header(),
        length: u32,
        metadata_length in 0_usize..=60,
        line in 0_u32..10_000,
        word: u64,
    ) {
        let header = Header {
            length_bytes: length,
            metadata_length_bytes: metadata_length as u8,
            flags: header.flags.with(Flags::PLACED),
            ..header
        };
        let metadata = if metadata_length == 0 {
            Metadata::Word(0)
        } else if word_is_free(&header, metadata_length) {
            Metadata::Word(word)
        } else {
            Metadata::PayloadArena(line * 64)
        };
        let placement = Placement { data: Data::Placed, metadata };
        let cell = encode(&header, &placement);
        prop_assert_eq!(decode(&cell, CELLS, BULK_BYTES, PAYLOAD_MAX), Ok((header, placement)));
    }

    /// Whatever a peer writes, the bytes named lie inside and are as many as agreed.
    #[test]
    fn nothing_foreign_leads_outside(
        cell in any_cell(),
        arena_bytes in 0..=BULK_BYTES,
        cells in 1..=MESSAGE_CELLS_MAX,
        payload_max in 64..=PACKET_PAYLOAD_MAX,
    ) {
        let decoded = decode(&cell, cells, arena_bytes, payload_max);
        if let Ok((header, placement)) = decoded {
            let placed = header.flags.is_placed();
            prop_assert_eq!(placed, placement.data == Data::Placed);
            let length = if placed { 0 } else { header.length_bytes as usize };
            let metadata_length = header.metadata_length_bytes as usize;
            prop_assert!(metadata_length <= 60 && length + metadata_length <= payload_max);
            match placement.data {
                Data::Placed => {}
                Data::Cell(_) => prop_assert!(length <= SHORT_BYTES_MAX),
                Data::Cells { first_bytes, .. } => {
                    prop_assert!(length > first_bytes as usize);
                    let taken = placement.cells(header.length_bytes);
                    prop_assert!(taken > 1 && taken <= u64::from(cells));
                }
                Data::PayloadArena(at) => prop_assert!(at as usize + length <= arena_bytes),
                Data::Message => prop_assert!(false, "a message"),
            }
            match placement.metadata {
                Metadata::Word(_) => prop_assert!(metadata_length <= 8),
                Metadata::PayloadArena(at) => prop_assert!(at as usize + metadata_length <= arena_bytes),
            }
        }
    }
}

#[test]
fn each_lie_about_placement_is_refused() {
    let refused = |change: &dyn Fn(&mut Cell)| {
        let header = Header {
            slot: SlotName::new(1, 1),
            metadata_index: 3,
            key: Key::from_bits(9),
            offset: 0,
            length_bytes: 100,
            word: 0,
            metadata_length_bytes: 20,
            flags: Flags::NONE,
            kind: Kind::WRITE,
        };
        let placement = Placement {
            data: Data::PayloadArena(32),
            metadata: Metadata::PayloadArena(0),
        };
        let mut cell = encode(&header, &placement);
        assert!(decode(&cell, CELLS, BULK_BYTES, PAYLOAD_MAX).is_ok());
        change(&mut cell);
        decode(&cell, CELLS, BULK_BYTES, PAYLOAD_MAX) == Err(LinkFault::Placement)
    };
    let set_metadata =
        |cell: &mut Cell, length: u64| cell[0] = cell[0] & !(0xff << 48) | length << 48;
    let place = |cell: &mut Cell, offset: u64| cell[4] = cell[4] & 0xffff_ffff | offset << 32;
    assert!(refused(&|cell| cell[0] |= 4 << 56), "unknown placement");
    assert!(refused(&|cell| cell[0] |= 0x80 << 56), "unknown placement");
    assert!(refused(&|cell| set_metadata(cell, 61)), "too much metadata");
    assert!(refused(&|cell| cell[4] |= 0x8000), "longer than agreed");
    assert!(refused(&|cell| cell[0] |= 2 << 56), "20 bytes in a word");
    assert!(
        refused(&|cell| cell[0] &= !(1 << 56)),
        "20 bytes of metadata in cells"
    );
    assert!(
        refused(&|cell| cell[0] |= 0x10 << 56),
        "a cell that continues"
    );
    assert!(
        refused(&|cell| {
            set_metadata(cell, 0);
            cell[0] &= !(1 << 56);
            cell[4] = bytes_in(CELLS) as u64 + 1;
        }),
        "a byte more than cells have"
    );
    assert!(
        !refused(&|cell| {
            set_metadata(cell, 0);
            cell[0] &= !(1 << 56);
            cell[4] = bytes_in(CELLS) as u64;
        }),
        "as many as cells have"
    );
    assert!(refused(&|cell| place(cell, 8)), "not at a line");
    assert!(refused(&|cell| place(cell, BULK_BYTES as u64)), "outside");
    assert!(
        refused(&|cell| place(cell, BULK_BYTES as u64 - 64)),
        "partly outside"
    );
    assert!(
        refused(&|cell| place(cell, BULK_BYTES as u64 - 128)),
        "4 bytes outside"
    );
    assert!(refused(&|cell| place(cell, 0xffff_ffc0)), "far outside");
    assert!(
        refused(&|cell| {
            set_metadata(cell, 4);
            cell[0] |= 2 << 56;
            cell[1] |= 0xffff << 32;
        }),
        "metadata in the word of fast mode"
    );
    assert!(
        refused(&|cell| {
            set_metadata(cell, 0);
            cell[0] |= 2 << 56;
        }),
        "no metadata in the word"
    );
    assert!(
        !refused(&|cell| place(cell, BULK_BYTES as u64 - 192)),
        "just inside"
    );
}
