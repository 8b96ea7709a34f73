//! What the machine itself can do: a cache line handed over, a copy within one process.
//! Nothing of the interface is used but its way to map memory.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use anyhow::{Context, Result};
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::shared::{Access, LINE_BYTES, Lines};

use super::large::Buffers;

/// The lines of both directions.
const LINES: usize = 128;
const LENGTH: usize = LINES * LINE_BYTES;
/// One line each way, far enough apart not to be fetched together; in bytes.
const THERE: u64 = 0;
const BACK: u64 = 64 * LINE_BYTES as u64;

/// Memory of both processes.
pub(crate) struct Ground {
    memfd: Memfd,
    lines: Lines,
    turns: u64,
}

/// Memory that another process of the same user made, and told where to find it.
pub(super) fn memory_of_other(path: &Path, length_bytes: usize) -> Result<Memfd> {
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .context("opening the other process' memory")?;
    Ok(Memfd::adopt(file.into(), length_bytes)?)
}

/// Where another process of the same user finds a memory of ours.
pub(super) fn path_of(memfd: &Memfd) -> PathBuf {
    let fd = memfd.as_fd().as_raw_fd();
    format!("/proc/{}/fd/{fd}", std::process::id()).into()
}

impl Ground {
    pub(crate) fn create() -> Result<Self> {
        Self::over(Memfd::create("hamlyn-bench", LENGTH, LENGTH)?)
    }

    /// The same memory, in the process that was told where to find it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::over(memory_of_other(path, LENGTH)?)
    }

    fn over(memfd: Memfd) -> Result<Self> {
        let mapping = Arc::new(memfd.map(Access::Writable)?);
        let lines = Lines::new(mapping, 0, LINES)?;
        Ok(Self {
            memfd,
            lines,
            turns: 0,
        })
    }

    /// Where another process of the same user finds it.
    pub(crate) fn path(&self) -> PathBuf {
        path_of(&self.memfd)
    }

    /// 16 bytes and a flag in one line, there and back: what no message can be faster than.
    /// Nanoseconds one way.
    pub(crate) fn lead(&mut self, round_trips: u64) -> f64 {
        let start = std::time::Instant::now();
        for turn in self.turns + 1..=self.turns + round_trips {
            self.put(THERE, turn, turn);
            let answer = self.take(BACK, turn);
            debug_assert_eq!(answer, turn);
        }
        self.turns += round_trips;
        start.elapsed().as_nanos() as f64 / round_trips as f64 / 2.0
    }

    /// The other side of [`Ground::lead`].
    pub(crate) fn follow(&mut self, round_trips: u64) {
        for turn in self.turns + 1..=self.turns + round_trips {
            let value = self.take(THERE, turn);
            self.put(BACK, turn, value);
        }
        self.turns += round_trips;
    }

    #[inline]
    fn put(&self, line: u64, turn: u64, value: u64) {
        let line = self.lines.line(line);
        line[1].store(value, Relaxed);
        line[2].store(!value, Relaxed);
        line[0].store(turn, Release);
    }

    #[inline]
    fn take(&self, line: u64, turn: u64) -> u64 {
        let line = self.lines.line(line);
        while line[0].load(Acquire) != turn {}
        line[1].load(Relaxed) & !line[2].load(Relaxed)
    }
}

/// A copy within one process, from and to the memory that messages have. Bytes per second.
pub(crate) fn memcpy(buffers: Buffers, source: &[u8], first: u64, messages: u64) -> f64 {
    thread_local! {
        static TARGET: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    TARGET.with_borrow_mut(|target| {
        if target.len() < buffers.target_bytes() {
            target.resize(buffers.target_bytes(), 0);
        }
        let start = std::time::Instant::now();
        for message in first..first + messages {
            let from = buffers.source_offset(message);
            let to = buffers.target_offset(message);
            let size = buffers.size_bytes;
            target[to..to + size].copy_from_slice(std::hint::black_box(&source[from..from + size]));
            std::hint::black_box(&mut *target);
        }
        messages as f64 * buffers.size_bytes as f64 / start.elapsed().as_secs_f64()
    })
}
