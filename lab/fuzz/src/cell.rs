//! Arbitrary bytes as a cell of a ring. For any bytes: no panic, and what is accepted lies in the
//! bulk, is as long as was agreed at most, and looks the same when it is written again.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{
    HANDLERS_MAX, SHORT_BYTES_MAX, SHORT_BYTES_WITH_WORD, USER_METADATA_BYTES,
};
use hamlyn_engine::packet::{Address, PortAddress, PortName, Short, ShortInPlace};
use hamlyn_link::LinkFault;
use hamlyn_link::cell::{
    DATA_ALIGNMENT_BYTES, Data, Metadata, Placement, WORD_BYTES, decode, encode, is_fence,
};
use hamlyn_link::message_cell::{Abbreviations, FIRST_BYTES, MessageHead};
use hamlyn_link::short_cell::{bytes_in_one, decode_short, encode_first, encode_short, first_word};
use hamlyn_ring::cells::{Cell, FLAG_MASK, number_in};
use hamlyn_ring::geometry::MESSAGE_CELLS_MAX;

/// Of a short packet in several cells, the bytes in the first one.
const SHORT_FIRST_BYTES: u32 = SHORT_BYTES_WITH_WORD as u32;

/// Bytes of a cell.
pub const CELL_BYTES: usize = 64;

/// What the first bytes choose, and then the cell. Nothing if there are too few.
pub fn run(bytes: &[u8]) -> Option<Result<Placement, LinkFault>> {
    let (choice, bytes) = bytes.split_first()?;
    let arena_bytes = [128 << 10, 1 << 20, 64 << 20][usize::from(*choice) % 3];
    let payload_max_bytes = [64, 16 << 10, 64 << 10][usize::from(*choice) / 3 % 3];
    let bytes: &[u8; CELL_BYTES] = bytes.first_chunk()?;
    let mut cell = [0; CELL_BYTES / 8];
    for (word, bytes) in cell.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u64::from(byte));
    }
    let cells = [1, 2, MESSAGE_CELLS_MAX][usize::from(*choice) / 9 % 3];
    if let Some(decoded) = message(&cell, cells, payload_max_bytes) {
        return Some(decoded);
    }
    let decoded = decode(&cell, cells, arena_bytes, payload_max_bytes);
    assert!(!is_fence(&cell) || decoded.is_err(), "a fence is no packet");
    let said = cell[0] & !FLAG_MASK;
    let bare = number_in(said, first_word(false), bytes_in_one(false))
        .map(|length| decode_short::<_, false>(length, cell).copied());
    let short = bare.or_else(|| {
        let length = number_in(said, first_word(true), bytes_in_one(true))?;
        Some(decode_short::<_, true>(length, cell).copied())
    });
    if let Some(short) = &short
        && !(short.has_metadata && short.to.is_fast())
    {
        // The short way agrees with the long one.
        let data = Data::Cell(short.data);
        let metadata = Metadata::Word(if short.has_metadata { short.word } else { 0 });
        assert_eq!(decoded, Ok((short.header(), Placement { data, metadata })));
    }
    let (header, placement) = match decoded {
        Ok(accepted) => accepted,
        Err(fault) => return Some(Err(fault)),
    };
    // Placed data do not travel.
    let length = if header.flags.is_placed() {
        assert_eq!(placement.data, Data::Placed);
        0
    } else {
        header.length_bytes as usize
    };
    let metadata_length = usize::from(header.metadata_length_bytes);
    assert!(metadata_length <= USER_METADATA_BYTES);
    assert!(metadata_length + length <= payload_max_bytes);
    match placement.data {
        Data::Placed => assert!(header.flags.is_placed()),
        Data::Cell(_) => assert!(length <= SHORT_BYTES_MAX),
        Data::Cells { first_bytes, .. } => {
            assert!(length > first_bytes as usize);
            let taken = placement.cells(header.length_bytes);
            assert!(taken > 1 && taken <= u64::from(cells));
        }
        Data::Message => panic!("a message, and no message's cell: {placement:?}"),
        Data::PayloadArena(at) => {
            assert!(at as usize + length <= arena_bytes);
            assert!((at as usize).is_multiple_of(DATA_ALIGNMENT_BYTES));
        }
    }
    match placement.metadata {
        Metadata::Word(_) => assert!(metadata_length <= WORD_BYTES),
        Metadata::PayloadArena(at) => {
            assert!(at as usize + metadata_length <= arena_bytes);
            match placement.data {
                Data::PayloadArena(data_at) => {
                    assert!(at as usize + metadata_length <= data_at as usize)
                }
                Data::Placed => {}
                Data::Cell(_) | Data::Cells { .. } | Data::Message => {
                    panic!("metadata in the bulk and data in the cell: {placement:?}")
                }
            }
        }
    }
    let again = match (&short, placement.data) {
        (Some(short), _) => encode_short(short),
        (
            None,
            Data::Cells {
                first: [first, second, third],
                first_bytes: SHORT_FIRST_BYTES,
            },
        ) => {
            let Metadata::Word(metadata) = placement.metadata else {
                panic!("a short packet with long metadata: {placement:?}");
            };
            encode_first(&Short {
                to: Address::new(header.slot, header.metadata_index),
                key: header.key,
                offset: header.offset,
                word: if metadata_length > 0 {
                    metadata
                } else {
                    header.word
                },
                has_metadata: metadata_length > 0,
                length_bytes: header.length_bytes as u16,
                data: [first, second, third, 0],
            })
        }
        _ => encode(&header, &placement),
    };
    assert_eq!(
        decode(&again, cells, arena_bytes, payload_max_bytes),
        Ok((header, placement))
    );
    Some(Ok(placement))
}

/// The cell as a message's, of which the abbreviations with even numbers stand for ports. What is
/// accepted is no longer than was agreed, is a message to the port that the abbreviation stands
/// for, and looks the same when it is written again.
fn message(
    cell: &Cell,
    cells: u32,
    payload_max_bytes: usize,
) -> Option<Result<Placement, LinkFault>> {
    let to = |number: u32| PortAddress {
        port: PortName::from_bits(number | 0x0300),
        key: Key::from_bits(u64::from(number) << 20),
        group: u64::MAX - u64::from(number),
    };
    let mut abbreviations = Abbreviations::default();
    for number in (0..256).step_by(2) {
        abbreviations.note(&to(number).header(0, 0));
    }
    let head = MessageHead::of_cell(cell)?;
    let (header, placement) = match head.decode(&abbreviations, cells, payload_max_bytes) {
        Ok(accepted) => accepted,
        Err(fault) => return Some(Err(fault)),
    };
    assert_eq!(
        header,
        to(head.abbreviation.into()).header(head.handler.into(), head.length_bytes.into())
    );
    assert!(head.abbreviation % 2 == 0 && head.handler < HANDLERS_MAX);
    assert!(header.length_bytes as usize <= payload_max_bytes);
    assert!(placement.cells(header.length_bytes) <= u64::from(cells));
    assert_eq!(placement.data, Data::Message);
    let mut bytes = [0; CELL_BYTES];
    for (into, word) in bytes.as_chunks_mut().0.iter_mut().zip(&cell[1..]) {
        *into = word.to_le_bytes();
    }
    let length = usize::from(head.length_bytes).min(FIRST_BYTES);
    let again = head.encode(&bytes[..length]);
    assert_eq!(again[0], cell[0] & !FLAG_MASK);
    for (at, (again, cell)) in again.iter().zip(cell).enumerate().skip(1) {
        let left = length.saturating_sub(8 * (at - 1)).min(8) as u32;
        let mask = u64::MAX.checked_shr(64 - 8 * left).unwrap_or(0);
        assert_eq!(*again, cell & mask, "word {at}");
    }
    Some(Ok(placement))
}
