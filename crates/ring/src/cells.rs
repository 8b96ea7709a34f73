//! The cells of one direction, as the two ends see them.
//!
//! [`CellMemory`] is all that producer and consumer know of memory, so that
//! the model checker can run the very same logic on its own atomics.
//! [`SharedCells`] is the memory they have in earnest.
//!
//! The producer goes round the cells in *generations*, each from the first cell to the last. The
//! flag of a cell is the number of the generation that wrote it, and the *epoch*: one bit, which
//! changes with each message that the producer sends over the duplex line ([`crate::duplex`]).
//!
//! A message takes one cell or several, one after the other: those that continue it
//! ([`CONTINUED`]) are stored before the first one, so that a message is there whole or not at
//! all.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::Arc;

use hamlyn_engine::limits::MORE_WORDS;
use rustix::fd::{AsFd, OwnedFd};
use rustix::time::{ClockId, clock_gettime};

use crate::geometry::Geometry;
use crate::memfd::reserve;
use crate::memory_left;
use crate::shared::{
    LINE_BYTES, LINE_REST_BYTES, LINE_WORDS, Lines, Mapping, OutOfRange, Word, claim, prefetch,
};

/// A cell: one line. The low 32 bits of its first word are the flag.
pub type Cell = [u64; LINE_WORDS];

/// The bits of a cell's first word that belong to the ring.
pub const FLAG_MASK: u64 = u32::MAX as u64;
/// The bit of a flag that is the epoch.
pub const EPOCH: u64 = 1 << 31;
/// The others: the generation.
const GENERATION_MASK: u64 = FLAG_MASK & !EPOCH;
/// The first word of a cell that continues the message before it, but for the flag.
pub const CONTINUED: u64 = 1 << 60;
/// Words of a message in a cell that continues it: all but the first.
pub const CONTINUED_WORDS: usize = LINE_WORDS - 1;
/// The same in bytes.
pub const CONTINUED_BYTES: usize = LINE_REST_BYTES;

const _: () = {
    assert!(CONTINUED_WORDS == MORE_WORDS && CONTINUED & FLAG_MASK == 0);
    assert!(CONTINUED_BYTES == CONTINUED_WORDS * size_of::<u64>());
};
/// The distance between two cells, in the unit of places.
pub(crate) const STEP_BYTES: u64 = LINE_BYTES as u64;

/// The flag of the cell of that number in a ring of `1 << shift` cells, which are numbered from 0
/// on as they are sent. A cell that was never written has a flag of zero: that of the generation
/// before the first. This is in the first epoch.
#[inline(always)]
pub(crate) const fn flag_of(number: u64, shift: u32) -> u64 {
    (number >> shift).wrapping_add(1) & GENERATION_MASK
}

/// Whether a cell with this first word is not yet the one of that flag: it is of the generation
/// before, or was sent after a message over the duplex line that is to be taken first.
#[inline(always)]
pub(crate) const fn is_before(first: u64, flag: u64) -> bool {
    let generation_before = flag.wrapping_sub(1) & GENERATION_MASK;
    first & GENERATION_MASK == generation_before || first & FLAG_MASK == flag ^ EPOCH
}

/// The number, up to `most`, that a first word has above its flag and `first` has not, if that is
/// the only difference.
#[inline(always)]
pub fn number_in(word: u64, first: u64, most: u64) -> Option<u64> {
    let number = (word ^ first).rotate_right(FLAG_MASK.count_ones());
    (number <= most).then_some(number)
}

/// A cell in place: the reader loads each word at most once, as it may change before the
/// next time.
pub trait CellInPlace {
    /// Loads the word of that number, below [`LINE_WORDS`].
    fn word<const NUMBER: usize>(&self) -> u64;
}

impl CellInPlace for Cell {
    #[inline]
    fn word<const NUMBER: usize>(&self) -> u64 {
        self[NUMBER]
    }
}

/// A cell in a mapping.
#[derive(Clone, Copy)]
pub struct SharedCell<'a>(&'a [AtomicU64; LINE_WORDS]);

impl CellInPlace for SharedCell<'_> {
    #[inline(always)]
    fn word<const NUMBER: usize>(&self) -> u64 {
        self.0[NUMBER].load(Ordering::Relaxed)
    }
}

/// Where one cell lies that both ends of a link write ([`crate::duplex`]), and the count that its
/// receiver gives back.
pub trait LineMemory {
    /// The cell in place.
    type InPlace<'a>: CellInPlace
    where
        Self: 'a;

    /// As [`CellMemory::look`].
    fn look(&self, first: u64, most: u64) -> Option<(u64, Self::InPlace<'_>)>;
    /// As [`CellMemory::load`].
    fn load(&self, expected: u64) -> Result<Cell, u64>;
    /// As [`CellMemory::load_first`].
    fn load_first(&self) -> u64;
    /// As [`CellMemory::store`].
    fn store(&self, cell: &Cell);
    /// Loads the receiver's count with acquire.
    fn load_taken(&self) -> u64;
    /// Stores the receiver's count with release.
    fn store_taken(&self, count: u64);
}

/// Where cells lie, and the count that the consumer gives back.
///
/// A *place* (`at_bytes`) is counted in bytes from the first cell, is a multiple of a line, and is
/// taken modulo the length of all cells. So the place of a cell is its number in lines.
pub trait CellMemory {
    /// A cell in place.
    type InPlace<'a>: CellInPlace
    where
        Self: 'a;

    /// Loads the first word of a cell with acquire; the cell, if that word is `first` and has a
    /// number up to `most` besides ([`number_in`]), and that number.
    fn look(&self, at_bytes: u64, first: u64, most: u64) -> Option<(u64, Self::InPlace<'_>)>;
    /// Loads the first word of a cell with acquire, and if its flag is `expected`, the other
    /// words too; else only the first word is returned. Each word is loaded once.
    fn load(&self, at_bytes: u64, expected: u64) -> Result<Cell, u64>;
    /// Loads the first word of a cell alone, with acquire.
    fn load_first(&self, at_bytes: u64) -> u64;
    /// Has a cell fetched that will be asked for soon.
    fn prefetch(&self, _at_bytes: u64) {}
    /// Stores a cell, its first word last and with release.
    fn store(&self, at_bytes: u64, cell: &Cell);
    /// Stores a cell that continues another: these bytes, of which there are at most
    /// [`CONTINUED_BYTES`], after that first word, which comes last and with release.
    fn store_continued(&self, at_bytes: u64, first: u64, bytes: &[u8]);
    /// Has the line of a cell fetched that will be stored soon. A hint, which does nothing where it
    /// is not known how.
    fn claim(&self, _at_bytes: u64) {}
    /// Loads the consumer's count with acquire.
    fn load_consumed(&self) -> u64;
    /// Stores the consumer's count with release.
    fn store_consumed(&self, count: u64);
    /// Stores the count that the producer waits for with release; zero if it waits for none.
    fn store_awaited(&self, count: u64);
    /// Loads it, after a full barrier: if the producer stored it, passed a barrier and saw no new
    /// count, its store is seen here.
    fn load_awaited(&self) -> u64;
    /// Makes sure that the first `to` bytes of payload arena are present, given that the
    /// first `from` are. False if that cannot be had.
    fn reserve_arena(&self, from: usize, to: usize) -> bool;

    /// The lines of the ring and those of the overflow log change places: all places are in the
    /// other ones from now on. These calls are made only if there is a log.
    fn change_places(&mut self) {}
    /// Makes sure that this part of the log is present. False if that cannot be had.
    fn reserve_log(&self, _part: Range<u64>) -> bool {
        false
    }
    /// Clears the first word of a line to which no receiver has come.
    fn clear(&self, _at_bytes: u64) {}
    /// Gives a part of the log back.
    fn give_back_log(&self, _part: Range<u64>) {}
    /// Stores how many cells the producer has sent, when it has gone on in the log. A hint.
    fn store_sent(&self, _count: u64) {}
    /// Loads it. It may be anything.
    fn load_sent(&self) -> u64 {
        0
    }
    /// The clock by which a sender is patient.
    fn now_ns(&self) -> u64 {
        0
    }
}

/// Lines in which cells lie, and where the payloads are which they name.
struct Space {
    lines: Lines,
    mapping: Arc<Mapping>,
    payload_offset: usize,
    payload_bytes: usize,
}

/// Where the payloads lie that cells name: there, from that offset on, within so many bytes.
#[derive(Clone, Copy)]
pub struct PayloadMemory<'a> {
    /// The memory.
    pub mapping: &'a Mapping,
    /// Where it begins there.
    pub offset: usize,
    /// Its length.
    pub bytes: usize,
}

impl PayloadMemory<'_> {
    /// Copies out what lies at that place.
    #[inline(always)]
    pub fn copy_out(&self, at: u32, into: &mut [u8]) -> Result<(), OutOfRange> {
        self.mapping.copy_out(self.offset + at as usize, into)
    }
}

/// Cells in a mapping.
pub struct SharedCells {
    space: Space,
    /// The log; or the ring, while the log is in use.
    other: Option<Space>,
    log: Option<Arc<Mapping>>,
    consumed: Word,
    awaited: Word,
    sent: Word,
    geometry: Geometry,
    file: Option<OwnedFd>,
}

impl SharedCells {
    /// The cells of a memory with this layout. `file` is what the mapping shows, if arena
    /// has to be reserved when it is first used; without it all of it is present.
    pub fn new(
        mapping: &Arc<Mapping>,
        geometry: Geometry,
        file: Option<OwnedFd>,
    ) -> Result<Self, OutOfRange> {
        if mapping.len() < geometry.total_bytes() {
            return Err(OutOfRange);
        }
        let lines = Lines::new(
            Arc::clone(mapping),
            geometry.cells_offset(),
            geometry.cells() as usize,
        )?;
        let consumed = Word::new(Arc::clone(mapping), geometry.consumed_offset())?;
        let awaited = Word::new(Arc::clone(mapping), geometry.awaited_offset())?;
        let sent = Word::new(Arc::clone(mapping), geometry.sent_offset())?;
        Ok(Self {
            space: Space {
                lines,
                mapping: Arc::clone(mapping),
                payload_offset: geometry.arena_offset(),
                payload_bytes: geometry.arena_bytes() as usize,
            },
            other: None,
            log: None,
            consumed,
            awaited,
            sent,
            geometry,
            file,
        })
    }

    /// The same with an overflow log, which is all of a mapping: a power of two of lines.
    pub fn with_log(mut self, mapping: &Arc<Mapping>) -> Result<Self, OutOfRange> {
        let count = mapping.len() / LINE_BYTES;
        self.other = Some(Space {
            lines: Lines::new(Arc::clone(mapping), 0, count)?,
            mapping: Arc::clone(mapping),
            payload_offset: 0,
            payload_bytes: mapping.len(),
        });
        self.log = Some(Arc::clone(mapping));
        Ok(self)
    }

    /// The line of a cell.
    #[inline(always)]
    pub(crate) fn line(&self, at_bytes: u64) -> &Line {
        self.space.lines.line(at_bytes)
    }

    /// Where the payloads lie that the next cells name.
    #[inline(always)]
    pub fn payload_memory(&self) -> PayloadMemory<'_> {
        PayloadMemory {
            mapping: &self.space.mapping,
            offset: self.space.payload_offset,
            bytes: self.space.payload_bytes,
        }
    }
}

type Line = [AtomicU64; LINE_WORDS];

#[inline(always)]
fn look(line: &Line, first: u64, most: u64) -> Option<(u64, SharedCell<'_>)> {
    let number = number_in(line[0].load(Ordering::Acquire), first, most)?;
    Some((number, SharedCell(line)))
}

#[inline(always)]
fn load(line: &Line, expected: u64) -> Result<Cell, u64> {
    let first = line[0].load(Ordering::Acquire);
    if first & FLAG_MASK != expected {
        return Err(first);
    }
    let word = |at: usize| line[at].load(Ordering::Relaxed);
    Ok([
        first,
        word(1),
        word(2),
        word(3),
        word(4),
        word(5),
        word(6),
        word(7),
    ])
}

#[inline(always)]
fn store(line: &Line, cell: &Cell) {
    line[1].store(cell[1], Ordering::Relaxed);
    line[2].store(cell[2], Ordering::Relaxed);
    line[3].store(cell[3], Ordering::Relaxed);
    line[4].store(cell[4], Ordering::Relaxed);
    line[5].store(cell[5], Ordering::Relaxed);
    line[6].store(cell[6], Ordering::Relaxed);
    line[7].store(cell[7], Ordering::Relaxed);
    line[0].store(cell[0], Ordering::Release);
}

impl CellMemory for SharedCells {
    type InPlace<'a> = SharedCell<'a>;

    #[inline(always)]
    fn look(&self, at_bytes: u64, first: u64, most: u64) -> Option<(u64, SharedCell<'_>)> {
        look(self.line(at_bytes), first, most)
    }

    #[inline(always)]
    fn load(&self, at_bytes: u64, expected: u64) -> Result<Cell, u64> {
        load(self.line(at_bytes), expected)
    }

    #[inline(always)]
    fn load_first(&self, at_bytes: u64) -> u64 {
        self.line(at_bytes)[0].load(Ordering::Acquire)
    }

    #[inline(always)]
    fn prefetch(&self, at_bytes: u64) {
        prefetch(self.line(at_bytes).as_ptr().cast());
    }

    #[inline(always)]
    fn store(&self, at_bytes: u64, cell: &Cell) {
        store(self.line(at_bytes), cell);
    }

    #[inline(always)]
    fn store_continued(&self, at_bytes: u64, first: u64, bytes: &[u8]) {
        self.space.lines.copy_in(at_bytes, bytes);
        self.line(at_bytes)[0].store(first, Ordering::Release);
    }

    #[inline(always)]
    fn claim(&self, at_bytes: u64) {
        claim(self.line(at_bytes).as_ptr().cast());
    }

    #[inline(always)]
    fn load_consumed(&self) -> u64 {
        self.consumed.atomic().load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store_consumed(&self, count: u64) {
        self.consumed.atomic().store(count, Ordering::Release);
    }

    #[inline]
    fn store_awaited(&self, count: u64) {
        self.awaited.atomic().store(count, Ordering::Release);
    }

    #[inline]
    fn load_awaited(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.awaited.atomic().load(Ordering::Relaxed)
    }

    fn reserve_arena(&self, from: usize, to: usize) -> bool {
        let begin = self.geometry.arena_offset() + from;
        self.file
            .as_ref()
            .is_none_or(|file| reserve(file.as_fd(), begin, to - from).is_ok())
    }

    fn change_places(&mut self) {
        if let Some(other) = &mut self.other {
            core::mem::swap(&mut self.space, other);
        }
    }

    fn reserve_log(&self, part: Range<u64>) -> bool {
        let (at, len) = (part.start as usize, (part.end - part.start) as usize);
        self.log.as_ref().is_some_and(|log| {
            memory_left::leaves_enough(len as u64) && log.populate_part(at, len).is_ok()
        })
    }

    fn clear(&self, at_bytes: u64) {
        self.line(at_bytes)[0].store(0, Ordering::Relaxed);
    }

    fn give_back_log(&self, part: Range<u64>) {
        if let Some(log) = &self.log {
            log.remove(part.start as usize, (part.end - part.start) as usize);
        }
    }

    fn store_sent(&self, count: u64) {
        self.sent.atomic().store(count, Ordering::Relaxed);
    }

    fn load_sent(&self) -> u64 {
        self.sent.atomic().load(Ordering::Relaxed)
    }

    fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

/// The duplex line of a link in a mapping.
pub struct SharedLine {
    line: Lines,
    taken: Word,
}

/// A memory of a direction, and its layout.
pub type Laid<'a> = (&'a Arc<Mapping>, Geometry);

impl SharedLine {
    /// The line in the first memory, for the direction of the second one: there its receiver's
    /// count is.
    pub fn new(line_in: Laid<'_>, direction: Laid<'_>) -> Result<Self, OutOfRange> {
        let ((line_in, line_geometry), (direction, geometry)) = (line_in, direction);
        Ok(Self {
            line: Lines::new(Arc::clone(line_in), line_geometry.duplex_offset(), 1)?,
            taken: Word::new(Arc::clone(direction), geometry.line_taken_offset())?,
        })
    }
}

impl SharedLine {
    /// Its words, but for the first one.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[AtomicU64; CONTINUED_WORDS] {
        let [_, words @ ..] = self.line.line(0);
        words
    }
}

impl LineMemory for SharedLine {
    type InPlace<'a> = SharedCell<'a>;

    #[inline(always)]
    fn look(&self, first: u64, most: u64) -> Option<(u64, SharedCell<'_>)> {
        look(self.line.line(0), first, most)
    }

    #[inline(always)]
    fn load(&self, expected: u64) -> Result<Cell, u64> {
        load(self.line.line(0), expected)
    }

    #[inline(always)]
    fn load_first(&self) -> u64 {
        self.line.line(0)[0].load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store(&self, cell: &Cell) {
        store(self.line.line(0), cell);
    }

    fn load_taken(&self) -> u64 {
        self.taken.atomic().load(Ordering::Acquire)
    }

    fn store_taken(&self, count: u64) {
        self.taken.atomic().store(count, Ordering::Release);
    }
}
