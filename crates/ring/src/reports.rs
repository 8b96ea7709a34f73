//! Reports from the receiving end of a direction to its sending end: what it refused, and why
//! (decision 0020).
//!
//! The receiving end writes reports into a few fixed lines of its control page and counts them; it
//! never waits and never allocates. If the sending end does not fetch them, the oldest are
//! overwritten, and the count says how many it missed. What a report means is the link's affair;
//! here it is four words.
//!
//! Refused here: a count that goes back, or ahead of what was sent. A report that was overwritten
//! while it was read is never shown.

use core::sync::atomic::{Ordering, fence};
use std::sync::Arc;

use crate::geometry::Geometry;
use crate::shared::{LINE_BYTES, LINE_WORDS, Lines, Mapping, OutOfRange, Word};

/// Words of a report.
pub const REPORT_WORDS: usize = 4;
/// A report.
pub type Report = [u64; REPORT_WORDS];

/// Places for reports.
pub const REPORTS: u64 = 64;
/// Reports that can be read at a time: the place after the newest may be being written.
pub const REPORTS_KEPT: u64 = REPORTS - 1;
/// Lines that they take.
pub const REPORT_LINES: usize = REPORTS as usize * REPORT_WORDS / LINE_WORDS;

/// Reads of one report before the reader lets the writer go on: only a writer that overwrites all
/// of them in the meantime, again and again, makes it try so often.
const TRIES: u32 = 4;

/// Where reports lie.
pub trait ReportMemory {
    /// Stores a report at the place of that number, modulo their number; after whatever was stored
    /// before.
    fn store(&self, number: u64, report: &Report);
    /// Loads the report at the place of that number, before whatever is loaded afterwards.
    fn load(&self, number: u64) -> Report;
    /// Stores the count with release.
    fn store_count(&self, count: u64);
    /// Loads the count with acquire.
    fn load_count(&self) -> u64;
}

/// Reports in a mapping.
pub struct SharedReports {
    lines: Lines,
    count: Word,
}

impl SharedReports {
    /// Those of a memory with this layout.
    pub fn new(mapping: &Arc<Mapping>, geometry: Geometry) -> Result<Self, OutOfRange> {
        Ok(Self {
            lines: Lines::new(Arc::clone(mapping), geometry.reports_offset(), REPORT_LINES)?,
            count: Word::new(Arc::clone(mapping), geometry.refused_offset())?,
        })
    }

    /// Line and first word of the report of that number.
    fn place(number: u64) -> (u64, usize) {
        let word = (number % REPORTS) as usize * REPORT_WORDS;
        ((word / LINE_WORDS * LINE_BYTES) as u64, word % LINE_WORDS)
    }
}

impl ReportMemory for SharedReports {
    fn store(&self, number: u64, report: &Report) {
        let (line, first) = Self::place(number);
        let line = self.lines.line(line);
        // A reader that sees a word of this report sees the count that was stored before it.
        fence(Ordering::Release);
        for (word, &value) in line[first..].iter().zip(report) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn load(&self, number: u64) -> Report {
        let (line, first) = Self::place(number);
        let line = self.lines.line(line);
        let report = core::array::from_fn(|at| line[first + at].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        report
    }

    fn store_count(&self, count: u64) {
        self.count.atomic().store(count, Ordering::Release);
    }

    fn load_count(&self) -> u64 {
        self.count.atomic().load(Ordering::Acquire)
    }
}

/// The receiving end's side.
pub struct Reporter<M> {
    memory: M,
    count: u64,
}

impl<M: ReportMemory> Reporter<M> {
    /// Over an unused memory.
    pub fn new(memory: M) -> Self {
        Self { memory, count: 0 }
    }

    /// Adds a report; the oldest is overwritten. To be called before the credit of what it is about
    /// is returned, so that who sees the credit sees the report.
    pub fn add(&mut self, report: &Report) {
        self.memory.store(self.count, report);
        self.count += 1;
        self.memory.store_count(self.count);
    }
}

/// The count had a value that no correct receiving end writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the consumer counted its reports wrong")]
pub struct Miscounted;

/// The sending end's side.
pub struct ReportReader<M> {
    memory: M,
    /// The count when it was last read.
    known: u64,
    /// Number of the next report to be fetched.
    next: u64,
    missed: u64,
}

impl<M: ReportMemory> ReportReader<M> {
    /// Over an unused memory.
    pub fn new(memory: M) -> Self {
        Self {
            memory,
            known: 0,
            next: 0,
            missed: 0,
        }
    }

    /// How many reports were written; there is one at most for each of the `sent` packets.
    pub fn count(&mut self, sent: u64) -> Result<u64, Miscounted> {
        let count = self.memory.load_count();
        if count < self.known || count > sent {
            return Err(Miscounted);
        }
        self.known = count;
        Ok(count)
    }

    /// The next report, each once, as long as it was not overwritten. Does not block.
    pub fn next(&mut self, sent: u64) -> Result<Option<Report>, Miscounted> {
        for _ in 0..TRIES {
            let count = self.count(sent)?;
            if self.next == count {
                return Ok(None);
            }
            let oldest = count.saturating_sub(REPORTS_KEPT);
            self.missed += oldest.saturating_sub(self.next);
            self.next = self.next.max(oldest);
            if let Some(report) = self.read(self.next, sent)? {
                self.next += 1;
                return Ok(Some(report));
            }
        }
        Ok(None)
    }

    /// The newest report, which stays where it is.
    pub fn last(&mut self, sent: u64) -> Result<Option<Report>, Miscounted> {
        for _ in 0..TRIES {
            let Some(last) = self.count(sent)?.checked_sub(1) else {
                return Ok(None);
            };
            let report = self.read(last, sent)?;
            if report.is_some() {
                return Ok(report);
            }
        }
        Ok(None)
    }

    /// The report of that number, unless it was overwritten meanwhile.
    fn read(&mut self, number: u64, sent: u64) -> Result<Option<Report>, Miscounted> {
        let report = self.memory.load(number);
        let is_whole = self.count(sent)? - number <= REPORTS_KEPT;
        Ok(is_whole.then_some(report))
    }

    /// How many reports were overwritten before they were fetched, as far as that was noticed.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

#[cfg(test)]
mod tests;
