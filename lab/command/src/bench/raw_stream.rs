//! The raw stream of cells: what no rate of messages of a line each can exceed by much. A ring of
//! lines, all words of which are written, the flag last; the reader takes all words and says now
//! and then how far it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use anyhow::{Result, ensure};
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::shared::{Access, LINE_BYTES, LINE_WORDS, Lines};

use super::raw::{memory_of_other, path_of};

/// Cells of the ring.
const CELLS: u64 = 256;
/// How far the reader is, in the line after a gap, so that it is not fetched with the first cell.
const READ_LINE: u64 = CELLS + 64;
/// The number of lines must be a power of two.
const LINES: usize = 2 * CELLS as usize;
const LENGTH: usize = LINES * LINE_BYTES;
/// Cells that the reader takes before it says so.
const BATCH: u64 = CELLS / 4;

const _: () = assert!(READ_LINE < LINES as u64);

/// Memory of both processes.
pub(crate) struct Stream {
    memfd: Memfd,
    lines: Lines,
    /// Cells that went through.
    count: u64,
}

impl Stream {
    pub(crate) fn create() -> Result<Self> {
        Self::over(Memfd::create("hamlyn-bench-stream", LENGTH, LENGTH)?)
    }

    /// The same memory, in the process that was told where to find it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::over(memory_of_other(path, LENGTH)?)
    }

    fn over(memfd: Memfd) -> Result<Self> {
        let lines = Lines::new(Arc::new(memfd.map(Access::Writable)?), 0, LINES)?;
        Ok(Self {
            memfd,
            lines,
            count: 0,
        })
    }

    /// Where another process of the same user finds it.
    pub(crate) fn path(&self) -> PathBuf {
        path_of(&self.memfd)
    }

    fn cell(number: u64) -> u64 {
        number % CELLS * LINE_BYTES as u64
    }

    fn read(&self) -> u64 {
        let line = self.lines.line(READ_LINE * LINE_BYTES as u64);
        line[0].load(Acquire)
    }

    /// Writes so many cells and waits until they are read. Cells per second.
    pub(crate) fn write(&mut self, cells: u64) -> f64 {
        let start = std::time::Instant::now();
        let mut read = self.count;
        for number in self.count..self.count + cells {
            while number - read >= CELLS {
                read = self.read();
            }
            let line = self.lines.line(Self::cell(number));
            for word in &line[1..] {
                word.store(number, Relaxed);
            }
            line[0].store(number + 1, Release);
        }
        self.count += cells;
        while self.read() < self.count {}
        cells as f64 / start.elapsed().as_secs_f64()
    }

    /// The other side of [`Stream::write`].
    pub(crate) fn take(&mut self, cells: u64) -> Result<()> {
        let said = self.lines.line(READ_LINE * LINE_BYTES as u64);
        let end = self.count + cells;
        let mut differences = 0;
        for number in self.count..end {
            let line = self.lines.line(Self::cell(number));
            while line[0].load(Acquire) != number + 1 {}
            for word in &line[1..LINE_WORDS] {
                differences |= word.load(Relaxed) ^ number;
            }
            if (number + 1) % BATCH == 0 {
                said[0].store(number + 1, Release);
            }
        }
        said[0].store(end, Release);
        self.count = end;
        ensure!(differences == 0, "a cell was torn");
        Ok(())
    }
}
