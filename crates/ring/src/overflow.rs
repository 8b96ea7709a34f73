//! The overflow log of one direction (docs/decisions/0053-overflow-log.md): memory of the receiver
//! in which the sender goes on when the ring is full and its receiver takes nothing. Neither needs
//! the other for that, so it works while the whole receiver is stopped, and after the sender has
//! exited.
//!
//! The log is a sparse file of lines, which are written and read as the cells of the ring are: the
//! ring and the log change places in both ends. An *episode* begins with an `ESCAPE` in the last
//! free cell of the ring, which names the place in the log at which it goes on, and ends with an
//! `END` in the log, after which it goes on in the ring. So both are cells of the stream itself,
//! and nothing else is to be looked at. All cells are counted in one row, wherever they lie.
//!
//! Places of the log only grow, modulo its length (and begin anew after 2^31 laps), so the flags of
//! its cells tell laps as those of the ring tell generations. An episode that begins when all before
//! it is known to be taken begins a lap: then the first [`WARM_BYTES`] are used again and again, and
//! stay present. All other pages are reserved by the sender, which is charged for them, and given
//! back by the receiver once they are taken, or by the sender if they were not used.
//!
//! The payload of a message lies in the lines after its cell. A line with another flag than the
//! due one is not there yet, whatever it is: the memory keeps lines of former laps, and holes are
//! zeros. Old payload may have any flag, so the sender clears the first word of each line before
//! its receiver can come to it.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::cells::{STEP_BYTES, flag_of};
use crate::geometry::CELLS_MAX;
use crate::payload_arena::PayloadArena;
use crate::shared::PAGE_BYTES;

/// Fewest bytes of a log; there are a power of two of them.
pub const LOG_BYTES_MIN: u32 = 1 << 20;
/// Most bytes of a log.
pub const LOG_BYTES_MAX: u32 = 1 << 29;
/// So much of a log stays present once it was used.
pub const WARM_BYTES: u64 = 15 * PAGE_BYTES as u64;

/// The first word of a cell after which the log goes on, but for the flag. The next word is the
/// place there, the others are zero.
pub(crate) const ESCAPE: u64 = 1 << 61;
/// The first word of a line of the log after which the ring goes on, but for the flag. The other
/// words are zero.
pub(crate) const END: u64 = 1 << 62;

/// The sender reserves at least, and at most, so much at a time.
const RESERVED_MIN_BYTES: u64 = 64 << 10;
const RESERVED_MAX_BYTES: u64 = 1 << 20;
/// The receiver gives back so much at a time: less than this lies behind it, and a page.
const GIVEN_BACK_BYTES: u64 = 256 << 10;
/// The sender looks this often whether the receiver has come to the log.
const LOOK_CELLS: u64 = 8;
/// After so many laps, as a power of two, nothing of before is left in the log, so that flags may
/// come again.
const LAPS_KEPT: u32 = 30;
/// How long a sender does not ask again that found no room, or no memory, in the log.
pub(crate) const PAUSE_NS: u64 = 10_000_000;

/// Laps, after which places begin anew.
const LAPS: u64 = (1 << 31) - 1;

const PAGE: u64 = PAGE_BYTES as u64;

const _: () = {
    assert!(flag_of(LAPS, 0) == 0 && flag_of(LAPS - 1, 0) != 0);
    assert!(LOG_BYTES_MIN as u64 >= 2 * (GIVEN_BACK_BYTES + PAGE));
    assert!(LOG_BYTES_MIN as u64 >= RESERVED_MAX_BYTES && WARM_BYTES < RESERVED_MIN_BYTES);
    // Cells that are not taken yet are told apart in a flag of the duplex line.
    assert!(LOG_BYTES_MAX as u64 / STEP_BYTES + (CELLS_MAX as u64) < 1 << 24);
};

mod patience;

use patience::Patience;

/// The layout of a log: how many lines it has, as a power of two. A value of this type is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogGeometry {
    shift: u32,
}

impl LogGeometry {
    /// A log of so many bytes, which may come from a peer.
    pub const fn new(bytes: u32) -> Option<Self> {
        if !bytes.is_power_of_two() || bytes < LOG_BYTES_MIN || bytes > LOG_BYTES_MAX {
            return None;
        }
        let shift = bytes.trailing_zeros() - STEP_BYTES.trailing_zeros();
        Some(Self { shift })
    }

    /// This one, or as much smaller as there are bytes for; nothing if these are too few.
    pub fn within(self, bytes: u64) -> Option<Self> {
        let most = 1 << bytes.checked_ilog2()?;
        Self::new(self.bytes().min(most) as u32)
    }

    /// Its length.
    pub const fn bytes(self) -> u64 {
        STEP_BYTES << self.shift
    }

    pub(crate) const fn shift(self) -> u32 {
        self.shift
    }

    const fn lap_of(self, at_bytes: u64) -> u64 {
        at_bytes / self.bytes()
    }

    /// Memory that was never written has the flag of the first lap that is not, and no lap after
    /// it is reached.
    const fn is_lap_usable(self, lap: u64) -> bool {
        lap < LAPS
    }

    /// No place that a correct sender comes to.
    pub(crate) const fn is_beyond(self, at_bytes: u64) -> bool {
        !self.is_lap_usable(self.lap_of(at_bytes))
    }

    /// Where the lap begins that an episode may begin when all before that place is taken.
    pub(crate) const fn next_lap(self, at_bytes: u64) -> u64 {
        let lap = at_bytes.div_ceil(self.bytes());
        match self.is_lap_usable(lap) {
            true => lap * self.bytes(),
            // After all others.
            false => 0,
        }
    }

    /// Where the payload of a message lies whose cell is at that place: after it, and in one piece.
    pub(crate) const fn payload(self, cell_at_bytes: u64, payload_bytes: u64) -> Range<u64> {
        let lines_bytes = match payload_bytes {
            0 => STEP_BYTES,
            _ => payload_bytes.next_multiple_of(STEP_BYTES),
        };
        let after = cell_at_bytes + STEP_BYTES;
        let left = self.bytes() - after % self.bytes();
        let begin = match lines_bytes <= left {
            true => after,
            false => after + left,
        };
        begin..begin + lines_bytes
    }

    /// The parts of the file in which these places lie, which are less than a lap.
    pub(crate) fn parts(self, places: Range<u64>) -> [Range<u64>; 2] {
        let (bytes, lap) = (self.bytes(), self.lap_of(places.start));
        let end = (lap + 1) * bytes;
        let first = places.start - lap * bytes..places.end.min(end) - lap * bytes;
        [first, 0..places.end.saturating_sub(end)]
    }

    /// The same but for those that stay present.
    pub(crate) fn cold(self, places: Range<u64>) -> [Range<u64>; 2] {
        self.parts(places)
            .map(|part| part.start.max(WARM_BYTES)..part.end.max(WARM_BYTES))
    }
}

/// Of an end: what it keeps of the ring while it is in the log, and of the log while it is in the
/// ring.
#[derive(Clone, Copy)]
pub(crate) struct Elsewhere {
    /// The place of the next cell there.
    pub(crate) at_bytes: u64,
    /// How many cells there are, as a power of two.
    pub(crate) shift: u32,
}

/// How a sender uses its log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogOptions {
    /// The log.
    pub geometry: LogGeometry,
    /// The time for which the ring must be full, without any credit, before the sender goes on in the
    /// log, at least; up to 20 times as long where the receiver often came back by then.
    pub patience_ns: u64,
}

/// How much a sender has used its log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogUse {
    /// How often it went on in the log.
    pub episodes: u64,
    /// Bytes that it wrote there, in all.
    pub spilled_bytes: u64,
    /// Those that its receiver has not returned, at present: an upper bound.
    pub waiting_bytes: u64,
    /// The most that these were when somebody looked, or when an episode ended.
    pub most_bytes: u64,
    /// Times that messages were held back, as three quarters of the log waited.
    pub pauses: u64,
    /// Pages of it that are present, at present: an upper bound.
    pub pages: u64,
    /// The most that these were, as for `most_bytes`.
    pub most_pages: u64,
    /// Length of the log.
    pub log_bytes: u64,
}

/// Something that a program hears of the log into which a peer goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogNews {
    /// Half of it waits to be taken.
    HalfFull {
        /// Bytes that waited when that was seen, as the sender said.
        waiting_bytes: u64,
        /// Length of the log.
        log_bytes: u64,
    },
    /// After that: all was taken.
    Drained,
}

/// What a message needs.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// So many cells.
    Cells(u64),
    /// A cell, and so many bytes of payload.
    Payload(u64),
}

impl Wanted {
    /// The cells alone.
    pub(crate) const fn cells(self) -> u64 {
        match self {
            Self::Cells(cells) => cells,
            Self::Payload(_) => 1,
        }
    }
}

/// What a sender knows of its log.
pub(crate) struct LogWriter {
    pub(crate) options: LogOptions,
    pub(crate) elsewhere: Elsewhere,
    /// The payload arena of the ring, while the log is in use.
    pub(crate) arena: PayloadArena,
    /// How many cells were sent with the escape of the last episode: once they are returned, the
    /// receiver is in the log.
    pub(crate) escaped: u64,
    /// How many with its end: once they are returned, nothing of the log is needed.
    pub(crate) ended: u64,
    /// The cells of the ring before this one are returned.
    pub(crate) ring_returned: u64,
    /// The place at which the last episode began.
    pub(crate) begin_bytes: u64,
    /// The places before this one are free.
    pub(crate) drained_bytes: u64,
    /// The places before this one are present.
    pub(crate) reserved_bytes: u64,
    /// So much of a new lap is present.
    pub(crate) warm_bytes: u64,
    /// Cells that are no messages, and lines of payload.
    pub(crate) beside: u64,
    /// The time to try again though no credit came: the ring is full, and patience is over then, or
    /// there was no memory for more of the log.
    pub(crate) due_ns: Option<u64>,
    pub(crate) patience: Patience,
    /// The next message is held back: until then at most, or until there are more than so many
    /// cells returned.
    pub(crate) pause: Option<(u64, u64)>,
    /// No message is held back that begins before this place.
    pub(crate) eased_bytes: u64,
    /// Without the episode that has not ended.
    pub(crate) used: LogUse,
}

impl LogWriter {
    pub(crate) fn new(options: LogOptions, arena: PayloadArena) -> Self {
        Self {
            options,
            elsewhere: Elsewhere {
                at_bytes: 0,
                shift: options.geometry.shift(),
            },
            arena,
            escaped: 0,
            ended: 0,
            ring_returned: 0,
            begin_bytes: 0,
            drained_bytes: 0,
            reserved_bytes: 0,
            warm_bytes: 0,
            beside: 0,
            due_ns: None,
            patience: Patience::new(options.patience_ns),
            pause: None,
            eased_bytes: 0,
            used: LogUse {
                log_bytes: options.geometry.bytes(),
                ..LogUse::default()
            },
        }
    }

    /// So many cells are known to be returned: those of the log before them are free.
    pub(crate) fn drain(&mut self, known: u64) {
        if known >= self.escaped {
            let drained_bytes = self.begin_bytes + (known - self.escaped) * STEP_BYTES;
            self.drained_bytes = self.drained_bytes.max(drained_bytes);
        }
    }

    /// The log was written up to that place.
    pub(crate) fn note_waiting(&mut self, end_bytes: u64) {
        self.used.waiting_bytes = end_bytes.saturating_sub(self.drained_bytes);
        self.used.most_bytes = self.used.most_bytes.max(self.used.waiting_bytes);
        self.used.pages = self.pages(self.drained_bytes);
        self.used.most_pages = self.used.most_pages.max(self.used.pages);
    }

    /// All of it is taken.
    pub(crate) fn note_drained(&mut self) {
        self.used.waiting_bytes = 0;
        self.used.pages = self.pages(self.elsewhere.at_bytes);
    }

    /// Pages that were reserved, without those that hold places before this one alone.
    fn pages(&self, drained_bytes: u64) -> u64 {
        let from = drained_bytes / PAGE * PAGE;
        let cold = self
            .options
            .geometry
            .cold(from..self.reserved_bytes.max(from));
        let cold_bytes: u64 = cold.iter().map(|part| part.end - part.start).sum();
        (self.warm_bytes + cold_bytes) / PAGE
    }

    /// True if a message that begins there comes when three quarters of the room are taken.
    pub(crate) fn is_nearly_full(&self, at_bytes: u64) -> bool {
        let most_bytes = self.options.geometry.bytes() - GIVEN_BACK_BYTES - PAGE;
        at_bytes >= self.eased_bytes
            && at_bytes.saturating_sub(self.drained_bytes) >= most_bytes / 4 * 3
    }

    /// The places from this one on are not to be used yet: what is given back late may lie there,
    /// or a lap begins whose flag says nothing.
    pub(crate) fn room_end_bytes(&self) -> u64 {
        let geometry = self.options.geometry;
        let end = self.drained_bytes + geometry.bytes() - GIVEN_BACK_BYTES - PAGE;
        let lap = geometry.lap_of(end);
        match geometry.is_lap_usable(lap) {
            true => end,
            false => end.min(lap * geometry.bytes()),
        }
    }

    /// What is to be reserved next: nothing where untaken messages may lie, as what is not used is
    /// given back.
    pub(crate) fn next_reservation(&self) -> Range<u64> {
        let from = self.reserved_bytes;
        let in_lap = from % self.options.geometry.bytes();
        let unit = match in_lap.checked_ilog2() {
            Some(log) => (1 << log).clamp(RESERVED_MIN_BYTES, RESERVED_MAX_BYTES),
            None => RESERVED_MIN_BYTES,
        };
        let end = from + unit - in_lap % unit;
        from..end.min(self.room_end_bytes().next_multiple_of(PAGE))
    }

    pub(crate) fn reserved(&mut self, part: &Range<u64>) {
        self.reserved_bytes = part.end;
        let lap = self.options.geometry.lap_of(self.begin_bytes);
        let in_lap = part.end.saturating_sub(lap * self.options.geometry.bytes());
        self.warm_bytes = self.warm_bytes.max(in_lap.min(WARM_BYTES));
    }

    /// After how many cells the sender looks again, which begins at that place and wants room for
    /// so many cells.
    pub(crate) fn limit_bytes(&self, at_bytes: u64) -> u64 {
        let lap_end = (self.options.geometry.lap_of(at_bytes) + 1) * self.options.geometry.bytes();
        // One line is kept for the end.
        let usable_end = self.reserved_bytes.min(self.room_end_bytes()) - STEP_BYTES;
        let look_at = at_bytes + LOOK_CELLS * STEP_BYTES;
        lap_end.min(usable_end).min(look_at)
    }

    /// Whether so many laps lie between two episodes that flags may come again.
    pub(crate) fn forgets(&self, begin_bytes: u64, next_begin_bytes: u64) -> bool {
        let era = |at_bytes| self.options.geometry.lap_of(at_bytes) >> LAPS_KEPT;
        era(begin_bytes) != era(next_begin_bytes)
    }
}

/// What a receiver knows of its log.
pub(crate) struct LogReader {
    pub(crate) geometry: LogGeometry,
    pub(crate) elsewhere: Elsewhere,
    /// The place at which the last episode began.
    pub(crate) begin_bytes: u64,
    /// The pages before this place were given back.
    pub(crate) given_back_bytes: u64,
    /// The news that the program is to hear of it, or has heard.
    filling: Filling,
}

/// The logs of receivers in this process of which a program is to hear something.
static FILLED: AtomicUsize = AtomicUsize::new(0);

/// True if a receiving end of this process may have news of its log: so that those who ask look at
/// their links only then.
#[inline]
pub fn may_have_news() -> bool {
    FILLED.load(Ordering::Relaxed) != 0
}

/// The fill of a log, as far as the program knows of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filling {
    /// Less than half of it, at the last look.
    Little,
    /// Half of it or more, which it has not heard: so many bytes.
    Half(u64),
    /// It has heard that.
    Told,
}

impl LogReader {
    pub(crate) fn new(geometry: LogGeometry) -> Self {
        Self {
            geometry,
            elsewhere: Elsewhere {
                at_bytes: 0,
                shift: geometry.shift(),
            },
            begin_bytes: 0,
            given_back_bytes: 0,
            filling: Filling::Little,
        }
    }

    pub(crate) fn filling(&self) -> Filling {
        self.filling
    }

    pub(crate) fn set_filling(&mut self, filling: Filling) {
        let is_filled = |filling| usize::from(filling != Filling::Little);
        // Another look of the same thread sees it.
        FILLED.fetch_add(is_filled(filling), Ordering::Relaxed);
        FILLED.fetch_sub(is_filled(self.filling), Ordering::Relaxed);
        self.filling = filling;
    }

    /// The places before `at_bytes` are taken: those to give back now, in whole pages. All of them
    /// if nothing is there to be taken, otherwise many together.
    pub(crate) fn due(&mut self, at_bytes: u64, is_all_taken: bool) -> Option<[Range<u64>; 2]> {
        let end = at_bytes / PAGE * PAGE;
        let held = end.saturating_sub(self.given_back_bytes);
        if held == 0 || (!is_all_taken && held < GIVEN_BACK_BYTES) {
            return None;
        }
        let places = self.given_back_bytes..end;
        self.given_back_bytes = end;
        Some(self.geometry.cold(places))
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        self.set_filling(Filling::Little);
    }
}

#[cfg(test)]
mod tests;
