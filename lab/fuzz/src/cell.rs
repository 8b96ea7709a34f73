//! Arbitrary bytes as a cell of a ring. For any bytes: no panic, and what is accepted lies in the
//! bulk, is as long as was agreed at most, and looks the same when it is written again.

use hamlyn_engine::limits::{SHORT_BYTES_MAX, USER_METADATA_BYTES};
use hamlyn_engine::packet::ShortInPlace;
use hamlyn_link::LinkFault;
use hamlyn_link::cell::{
    DATA_ALIGNMENT_BYTES, Data, Metadata, Placement, WORD_BYTES, decode, encode, is_fence,
};
use hamlyn_link::short_cell::{bytes_max, decode_short, encode_short, first_word};
use hamlyn_ring::cells::{FLAG_MASK, number_in};

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
    let decoded = decode(&cell, arena_bytes, payload_max_bytes);
    assert!(!is_fence(&cell) || decoded.is_err(), "a fence is no packet");
    let said = cell[0] & !FLAG_MASK;
    let bare = number_in(said, first_word(false), bytes_max(false))
        .map(|length| decode_short::<_, false>(length, cell).copied());
    let short = bare.or_else(|| {
        let length = number_in(said, first_word(true), bytes_max(true))?;
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
                Data::Cell(_) => panic!("metadata in the bulk and data in the cell: {placement:?}"),
            }
        }
    }
    let again = match &short {
        Some(short) => encode_short(short),
        None => encode(&header, &placement),
    };
    assert_eq!(
        decode(&again, arena_bytes, payload_max_bytes),
        Ok((header, placement))
    );
    Some(Ok(placement))
}
