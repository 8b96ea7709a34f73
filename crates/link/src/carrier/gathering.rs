//! Bytes of outgoing packets, from where they lie to where they travel.

use hamlyn_engine::limits::{SHORT_BYTES_MAX, SHORT_WORDS};
use hamlyn_engine::memory::{Denied, Part, Unsent};
use hamlyn_engine::packet::short_words;
use hamlyn_ring::area::Area;
use hamlyn_ring::geometry::MESSAGE_CELLS_MAX;
use hamlyn_ring::shared::{Mapping, OutOfRange, StoreKind};

use crate::{cell, short_cell};

/// The longest data of a packet in cells, of whichever kind.
pub(super) const GATHERED_BYTES_MAX: usize = short_cell::bytes_in(true, MESSAGE_CELLS_MAX) as usize;

/// Copies bytes into the payload arena.
#[inline(never)]
pub(super) fn put(
    mapping: &Mapping,
    to: usize,
    bytes: &[u8],
    way: StoreKind,
) -> Result<(), Denied> {
    match way {
        StoreKind::Temporal => mapping.copy_in(to, bytes),
        StoreKind::NonTemporal => mapping.stream_in(to, bytes),
    }
    .map_err(|OutOfRange| Denied::OutOfArea)
}

/// Copies all parts into the payload arena.
#[inline(never)]
pub(super) fn gather(
    mapping: &Mapping,
    mut to: usize,
    parts: &[Part<'_, Area>],
    way: StoreKind,
) -> Result<(), Denied> {
    for part in parts {
        match *part {
            Part::Bytes(bytes) => put(mapping, to, bytes, way),
            Part::Area {
                area,
                offset,
                length_bytes,
            } => area.read_into(offset, mapping, to, length_bytes as usize, way),
        }?;
        to += part.length_bytes();
    }
    Ok(())
}

/// The engine has checked every range, so this is an error of ours; the packet is not sent.
#[cold]
pub(super) fn impossible(denied: Denied) -> Unsent {
    debug_assert!(false, "a part that the engine has checked: {denied:?}");
    Unsent::Gone
}

pub(super) fn short_word(metadata: &[u8]) -> u64 {
    let mut bytes = [0; cell::WORD_BYTES];
    let len = metadata.len().min(bytes.len());
    bytes[..len].copy_from_slice(&metadata[..len]);
    u64::from_le_bytes(bytes)
}

/// All parts together, as many as are short.
pub(super) fn gather_short(parts: &[Part<'_, Area>]) -> Result<[u64; SHORT_WORDS], Denied> {
    let mut bytes = [0; SHORT_BYTES_MAX];
    gather_bytes(parts, &mut bytes)?;
    short_words(&bytes).ok_or(Denied::OutOfArea)
}

/// All parts together, copied to the beginning of some bytes.
#[inline(never)]
pub(super) fn gather_bytes<'a>(
    parts: &[Part<'_, Area>],
    bytes: &'a mut [u8],
) -> Result<&'a [u8], Denied> {
    let mut at = 0;
    for part in parts {
        let end = at + part.length_bytes();
        let into = bytes.get_mut(at..end).ok_or(Denied::OutOfArea)?;
        match *part {
            Part::Bytes(from) => into.copy_from_slice(from),
            Part::Area { area, offset, .. } => area.read_at(offset, into)?,
        }
        at = end;
    }
    Ok(&bytes[..at])
}
