//! The bytes of a packet that came, on their way to their place.

use std::sync::atomic::{AtomicU64, Ordering};

use hamlyn_engine::limits::{MORE_WORDS, SHORT_BYTES_MAX, USER_METADATA_BYTES};
use hamlyn_engine::memory::{self, Area as _, Denied, ShortData, ShortSource};
use hamlyn_engine::operation::{REQUEST_WORDS, leading_words};
use hamlyn_ring::area::Area;
use hamlyn_ring::cells::{
    CONTINUED_BYTES, CONTINUED_WORDS, PayloadMemory, SharedCells, SharedLine,
};
use hamlyn_ring::consumer::Consumer;
use hamlyn_ring::duplex::DuplexReceiver;
use hamlyn_ring::shared::{Mapping, OutOfRange};
use hamlyn_ring::streaming::StreamingHeuristic;

use crate::cell::{self, Data, INLINE_BYTES, Metadata, Placement};
use crate::message_cell;

/// The bytes that came with a packet: in the copy of its first cell; and in the cells after it or
/// in the payload arena, where the peer may still change them.
#[derive(Clone, Copy)]
pub struct Carried<'a> {
    pub(super) memory: PayloadMemory<'a>,
    pub(super) length: u32,
    pub(super) placement: Placement,
    pub(super) streaming: &'a StreamingHeuristic,
    pub(super) ring: &'a Consumer<SharedCells>,
    /// Of a packet in the line.
    pub(super) line: Option<&'a DuplexReceiver<SharedLine>>,
}

/// The data of a packet in several cells.
struct CellsData<'a> {
    first: [u64; REQUEST_WORDS],
    first_bytes: usize,
    length_bytes: usize,
    ring: &'a Consumer<SharedCells>,
}

impl ShortSource for CellsData<'_> {
    #[inline(always)]
    fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    #[inline(always)]
    fn data_word<const NUMBER: usize>(&self) -> u64 {
        self.first.get(NUMBER).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn first_bytes(&self) -> usize {
        self.first_bytes
    }

    #[inline(always)]
    fn more(&self, number: usize) -> &[AtomicU64; MORE_WORDS] {
        self.ring.continuation(number)
    }
}

impl memory::Payload<Area> for Carried<'_> {
    #[inline(always)]
    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        match self.placement.metadata {
            Metadata::Word(word) => {
                into[..cell::WORD_BYTES].copy_from_slice(&word.to_le_bytes());
            }
            Metadata::PayloadArena(at) => {
                let into = &mut into[..length_bytes.min(USER_METADATA_BYTES)];
                let copied = self.memory.copy_out(at, into);
                debug_assert!(copied.is_ok(), "the placement was checked");
            }
        }
    }

    #[inline(always)]
    fn metadata_word(&self) -> Option<u64> {
        match self.placement.metadata {
            Metadata::Word(word) => Some(word),
            Metadata::PayloadArena(_) => None,
        }
    }

    fn words(&self) -> [u64; REQUEST_WORDS] {
        match self.placement.data {
            Data::Cell(words) => [words[0], words[1], words[2]],
            Data::Cells { first, first_bytes } => {
                let mut bytes = [0; REQUEST_WORDS * size_of::<u64>()];
                let more = self.ring.continuation(0)[0].load(Ordering::Relaxed);
                let words = match first_bytes as usize {
                    INLINE_BYTES => [first[0], first[1], more],
                    _ => first,
                };
                for (into, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
                    *into = word.to_le_bytes();
                }
                leading_words(&bytes[..bytes.len().min(self.length as usize)])
            }
            Data::PayloadArena(at) => {
                let mut bytes = [0; REQUEST_WORDS * size_of::<u64>()];
                let length = (self.length as usize).min(bytes.len());
                let into = &mut bytes[..length];
                let copied = self.memory.copy_out(at, into);
                debug_assert!(copied.is_ok(), "the placement was checked");
                leading_words(&bytes)
            }
            // No request has its data so.
            Data::Message | Data::Placed => [0; REQUEST_WORDS],
        }
    }

    fn copy_to(&self, into: &mut [u8]) -> Result<(), Denied> {
        let first_bytes = match self.placement.data {
            Data::PayloadArena(at) => {
                let copied = self.memory.copy_out(at, into);
                return copied.map_err(|OutOfRange| Denied::OutOfArea);
            }
            Data::Cell(_) => SHORT_BYTES_MAX,
            Data::Cells { first_bytes, .. } => first_bytes as usize,
            Data::Message => message_cell::FIRST_BYTES,
            Data::Placed => return Ok(()),
        };
        let (begin, more) = into.split_at_mut(first_bytes.min(into.len()));
        match self.placement.data {
            Data::Cell(words) => copy_words(words.into_iter(), begin),
            Data::Cells { first, .. } => copy_words(first.into_iter(), begin),
            _ => {
                let words = match self.line {
                    Some(line) => line.words(),
                    None => self.ring.words(),
                };
                copy_line(words, begin);
            }
        }
        copy_continued(self.ring, more);
        Ok(())
    }

    #[inline(always)]
    fn deposit(&self, area: &Area, offset: u64) -> Result<(), Denied> {
        let length = self.length as usize;
        match self.placement.data {
            Data::Cell(words) => area.write_short(
                offset,
                ShortData {
                    words,
                    length_bytes: length,
                },
            ),
            Data::Cells { first, first_bytes } => area.write_words(
                offset,
                &CellsData {
                    first,
                    first_bytes: first_bytes as usize,
                    length_bytes: length,
                    ring: self.ring,
                },
            ),
            Data::PayloadArena(at) => {
                let PayloadMemory {
                    mapping,
                    offset: begin,
                    ..
                } = self.memory;
                let from = begin + at as usize;
                deposit_from_arena(self.streaming, mapping, from, area, offset, length)
            }
            // The engine asks for none.
            Data::Placed | Data::Message => Ok(()),
        }
    }
}

/// Copies the words of a line, but for the first word, as many as there are bytes.
#[inline(always)]
pub(super) fn copy_line(words: &[AtomicU64; CONTINUED_WORDS], into: &mut [u8]) {
    copy_words(words.iter().map(|word| word.load(Ordering::Relaxed)), into);
}

/// Copies what the cells after the next one have.
#[inline(never)]
pub(super) fn copy_continued(ring: &Consumer<SharedCells>, into: &mut [u8]) {
    for (number, into) in into.chunks_mut(CONTINUED_BYTES).enumerate() {
        let line = ring.continuation(number);
        match <&mut [u8; CONTINUED_BYTES]>::try_from(&mut *into) {
            // A number of words that is known is copied without a loop.
            Ok(whole) => copy_line(line, whole),
            Err(_) => copy_line(line, into),
        }
    }
}

/// Copies words to bytes, lowest byte first, as many as there are.
#[inline(always)]
fn copy_words(mut words: impl Iterator<Item = u64>, into: &mut [u8]) {
    let (whole, rest) = into.as_chunks_mut();
    for (into, word) in whole.iter_mut().zip(&mut words) {
        *into = word.to_le_bytes();
    }
    if !rest.is_empty()
        && let Some(word) = words.next()
    {
        rest.copy_from_slice(&word.to_le_bytes()[..rest.len()]);
    }
}

/// Not a method, so that what came need not lie in memory.
#[inline(never)]
fn deposit_from_arena(
    streaming: &StreamingHeuristic,
    mapping: &Mapping,
    from: usize,
    area: &Area,
    offset: u64,
    length: usize,
) -> Result<(), Denied> {
    let way = streaming.way(offset, length);
    area.write_from(offset, mapping, from, length, way)
}
