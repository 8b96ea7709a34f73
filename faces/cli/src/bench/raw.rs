//! What the machine itself can do: a cache line handed over, a copy into the other's memory.
//! Nothing of the interface is used but its way to map memory.

use std::hint::spin_loop;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use anyhow::{Context, Result};
use hamlyn_ring::memfd::{Memfd, Require};
use hamlyn_ring::shared::{Access, LINE_BYTES, Lines, Mapping};

use super::SIZES_BYTES;

/// First the lines of both directions, then a page that counts, then two buffers.
const LINES: usize = 128;
const COUNT_OFFSET: usize = 16 << 10;
const BUFFERS_OFFSET: usize = 64 << 10;
const BUFFER_BYTES: usize = SIZES_BYTES[SIZES_BYTES.len() - 1];
const LENGTH: usize = BUFFERS_OFFSET + 2 * BUFFER_BYTES;
/// One line each way, far enough apart not to be fetched together; in bytes.
const THERE: u64 = 0;
const BACK: u64 = 64 * LINE_BYTES as u64;

/// Memory of both processes.
pub(crate) struct Ground {
    memfd: Memfd,
    mapping: Arc<Mapping>,
    lines: Lines,
    turns: u64,
}

impl Ground {
    pub(crate) fn create() -> Result<Self> {
        Self::over(Memfd::create("hamlyn-bench", LENGTH, LENGTH)?)
    }

    /// The same memory, in the process that was told where to find it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .context("opening the other process' memory")?;
        Self::over(Memfd::adopt(file.into(), LENGTH, Require::Ring)?)
    }

    fn over(memfd: Memfd) -> Result<Self> {
        let mapping = Arc::new(memfd.map(Access::Writable)?);
        let lines = Lines::new(mapping.clone(), 0, LINES)?;
        Ok(Self {
            memfd,
            mapping,
            lines,
            turns: 0,
        })
    }

    /// Where another process of the same user finds it.
    pub(crate) fn path(&self) -> std::path::PathBuf {
        use std::os::fd::{AsFd, AsRawFd};
        let fd = self.memfd.as_fd().as_raw_fd();
        format!("/proc/{}/fd/{fd}", std::process::id()).into()
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

    /// One copy into the other process' memory and a flag, two buffers in turn. Bytes per second.
    pub(crate) fn lead_put(&self, size: usize, bytes: usize) -> Result<f64> {
        let source = vec![1_u8; size];
        let messages = (bytes / size).max(16) as u64;
        let (sent, taken) = self.counts()?;
        let start = std::time::Instant::now();
        for message in 0..messages {
            while message - taken.load(Acquire) >= 2 {
                spin_loop();
            }
            let buffer = BUFFERS_OFFSET + (message & 1) as usize * BUFFER_BYTES;
            self.mapping.copy_in(buffer, &source)?;
            sent.store(message + 1, Release);
        }
        while taken.load(Acquire) != messages {
            spin_loop();
        }
        let elapsed = start.elapsed().as_secs_f64();
        sent.store(0, Release);
        while taken.load(Acquire) != 0 {
            spin_loop();
        }
        Ok(messages as f64 * size as f64 / elapsed)
    }

    /// The other side of [`Ground::lead_put`].
    pub(crate) fn follow_put(&self, size: usize, bytes: usize) -> Result<()> {
        let messages = (bytes / size).max(16) as u64;
        let (sent, taken) = self.counts()?;
        for message in 0..messages {
            while sent.load(Acquire) <= message {
                spin_loop();
            }
            taken.store(message + 1, Release);
        }
        while sent.load(Acquire) != 0 {
            spin_loop();
        }
        taken.store(0, Release);
        Ok(())
    }

    fn counts(&self) -> Result<(&std::sync::atomic::AtomicU64, &std::sync::atomic::AtomicU64)> {
        Ok((
            self.mapping.atomic_u64(COUNT_OFFSET)?,
            self.mapping.atomic_u64(COUNT_OFFSET + 4096)?,
        ))
    }
}

/// A copy within one process, buffers used again and again. Bytes per second.
pub(crate) fn memcpy(size: usize, bytes: usize) -> f64 {
    let source = vec![1_u8; size];
    let mut target = vec![0_u8; size];
    let times = (bytes / size).max(16);
    let start = std::time::Instant::now();
    for _ in 0..times {
        target.copy_from_slice(std::hint::black_box(&source));
        std::hint::black_box(&mut target);
    }
    times as f64 * size as f64 / start.elapsed().as_secs_f64()
}
