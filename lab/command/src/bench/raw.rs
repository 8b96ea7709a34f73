//! What the machine itself can do: cache lines handed over there and back, a copy into the other
//! process' memory or two through a buffer with a flag behind them, a copy within one process.
//! Nothing of the interface is used but its ways to map memory and to copy.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::shared::{Access, LINE_BYTES, LINE_WORDS, Lines, Mapping};
use serde::{Deserialize, Serialize};

use super::large::Buffers;
use super::latency::{AREA_BYTES, LENGTH_MAX_BYTES, place};

/// The lines of both directions. Those of one direction are far enough from the other's not to be
/// fetched together.
const LINES: usize = 128;
const LINES_PER_DIRECTION: usize = LINES / 2;
/// Then the memory of longer messages, for each direction.
const COPIES_OFFSET: usize = LINES * LINE_BYTES;
const LENGTH: usize = COPIES_OFFSET + 2 * AREA_BYTES as usize;

/// What is handed over there and back, with a flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum HandOff {
    /// 16 bytes in the line of the flag, and that many more lines. None more is what no message
    /// over a line for each direction can be faster than.
    Lines { more: u64 },
    /// That many bytes, stored into memory of the receiver.
    Put { length_bytes: usize, store: Store },
    /// That many bytes, copied into a buffer and out of it, in so many pieces with a flag each.
    TwoCopies {
        length_bytes: usize,
        store: Store,
        pieces: usize,
    },
}

/// How the sender stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Store {
    /// Through the caches.
    Through,
    /// Past them.
    Past,
}

impl HandOff {
    /// The line that all others are compared with.
    pub(crate) const LINE: Self = Self::Lines { more: 0 };

    /// As many lines as a header and that many bytes take.
    pub(crate) const fn lines_of(length_bytes: usize) -> Self {
        Self::Lines {
            more: length_bytes.div_ceil(LINE_BYTES) as u64,
        }
    }
}

/// Memory of both processes.
pub(crate) struct Ground {
    memfd: Memfd,
    mapping: Arc<Mapping>,
    lines: Lines,
    turns: u64,
    /// Memory of this process: where messages come from, and where the receiver of two copies wants
    /// them.
    source: Vec<u8>,
    target: Vec<u8>,
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
        let lines = Lines::new(Arc::clone(&mapping), 0, LINES)?;
        Ok(Self {
            memfd,
            mapping,
            lines,
            turns: 0,
            source: vec![7; LENGTH_MAX_BYTES],
            target: vec![0; AREA_BYTES as usize],
        })
    }

    /// Where another process of the same user finds it.
    pub(crate) fn path(&self) -> PathBuf {
        path_of(&self.memfd)
    }

    /// Hands over and awaits the same back, so often. Nanoseconds one way.
    pub(crate) fn lead(&mut self, hand_off: HandOff, round_trips: u64) -> Result<f64> {
        self.run::<true>(hand_off, round_trips)
    }

    /// The other side of [`Ground::lead`].
    pub(crate) fn follow(&mut self, hand_off: HandOff, round_trips: u64) -> Result<()> {
        self.run::<false>(hand_off, round_trips).map(drop)
    }

    fn run<const LEADS: bool>(&mut self, hand_off: HandOff, round_trips: u64) -> Result<f64> {
        match hand_off {
            HandOff::Lines { more: 0 } => self.exchange::<LEADS>(
                round_trips,
                |ground, direction, turn| {
                    ground.put_line(direction, turn);
                    Ok(())
                },
                |ground, direction, turn| Ok(ground.take_line(direction, turn)),
            ),
            HandOff::Lines { more } => {
                ensure!(
                    more < LINES_PER_DIRECTION as u64,
                    "so many lines are not there"
                );
                self.exchange::<LEADS>(
                    round_trips,
                    |ground, direction, turn| {
                        for number in 1..=more {
                            for word in ground.line(direction, number) {
                                word.store(turn, Relaxed);
                            }
                        }
                        ground.put_line(direction, turn);
                        Ok(())
                    },
                    |ground, direction, turn| {
                        let mut differences = ground.take_line(direction, turn);
                        for number in 1..=more {
                            for word in ground.line(direction, number) {
                                differences |= word.load(Relaxed) ^ turn;
                            }
                        }
                        Ok(differences)
                    },
                )
            }
            HandOff::Put {
                length_bytes,
                store,
            } => self.exchange::<LEADS>(
                round_trips,
                |ground, direction, turn| ground.copy_in(direction, turn, length_bytes, 1, store),
                |ground, direction, turn| {
                    let differences = ground.take_line(direction, turn);
                    let at = copies_at(direction, turn, length_bytes);
                    let first = ground.mapping.load_u64(at)?;
                    let last = ground.mapping.load_u64(at + length_bytes - 8)?;
                    Ok(differences | first ^ turn | last ^ !turn)
                },
            ),
            HandOff::TwoCopies {
                length_bytes,
                store,
                pieces,
            } => {
                ensure!(
                    pieces < LINES_PER_DIRECTION && length_bytes.is_multiple_of(8 * pieces),
                    "such pieces are not there"
                );
                self.exchange::<LEADS>(
                    round_trips,
                    |ground, direction, turn| {
                        ground.copy_in(direction, turn, length_bytes, pieces, store)
                    },
                    |ground, direction, turn| {
                        ground.copy_out(direction, turn, length_bytes, pieces)
                    },
                )
            }
        }
    }

    /// What came is compared with what was sent, every time.
    #[inline]
    fn exchange<const LEADS: bool>(
        &mut self,
        round_trips: u64,
        send: impl Fn(&mut Self, usize, u64) -> Result<()>,
        take: impl Fn(&mut Self, usize, u64) -> Result<u64>,
    ) -> Result<f64> {
        let (out, back) = (usize::from(!LEADS), usize::from(LEADS));
        let mut differences = 0;
        let start = Instant::now();
        for turn in self.turns + 1..=self.turns + round_trips {
            if LEADS {
                send(self, out, turn)?;
            }
            differences |= take(self, back, turn)?;
            if !LEADS {
                send(self, out, turn)?;
            }
        }
        let elapsed = start.elapsed();
        self.turns += round_trips;
        ensure!(
            differences == 0,
            "a raw hand-off brought other bytes than were sent"
        );
        Ok(elapsed.as_nanos() as f64 / round_trips as f64 / 2.0)
    }

    /// A word of one of the lines, for measurements that use them otherwise.
    pub(super) fn word(&self, line: u64, word: usize) -> &std::sync::atomic::AtomicU64 {
        &self.lines.line(line * LINE_BYTES as u64)[word % LINE_WORDS]
    }

    #[inline]
    fn line(&self, direction: usize, number: u64) -> &[std::sync::atomic::AtomicU64; LINE_WORDS] {
        let number = (direction * LINES_PER_DIRECTION) as u64 + number;
        self.lines.line(number * LINE_BYTES as u64)
    }

    #[inline]
    fn put_line(&self, direction: usize, turn: u64) {
        let line = self.line(direction, 0);
        line[1].store(turn, Relaxed);
        line[2].store(!turn, Relaxed);
        line[0].store(turn, Release);
    }

    /// Waits for it; zero if it says what was sent.
    #[inline]
    fn take_line(&self, direction: usize, turn: u64) -> u64 {
        let line = self.line(direction, 0);
        while line[0].load(Acquire) != turn {}
        line[1].load(Relaxed) ^ turn | line[2].load(Relaxed) ^ !turn
    }

    /// Copies into the memory of both. A line behind that of the last piece's flag has the flag of
    /// each other piece.
    #[inline]
    fn copy_in(
        &mut self,
        direction: usize,
        turn: u64,
        length_bytes: usize,
        pieces: usize,
        store: Store,
    ) -> Result<()> {
        mark(&mut self.source[..length_bytes], turn);
        let at = copies_at(direction, turn, length_bytes);
        let piece_bytes = length_bytes / pieces;
        for piece in 0..pieces {
            let part = piece * piece_bytes;
            let bytes = &self.source[part..part + piece_bytes];
            match store {
                Store::Through => self.mapping.copy_in(at + part, bytes)?,
                Store::Past => self.mapping.stream_in(at + part, bytes)?,
            }
            if piece + 1 < pieces {
                self.line(direction, 1 + piece as u64)[0].store(turn, Release);
            }
        }
        self.put_line(direction, turn);
        Ok(())
    }

    /// Copies out of the memory of both, piece by piece as they come; zero if that is what was
    /// sent.
    #[inline]
    fn copy_out(
        &mut self,
        direction: usize,
        turn: u64,
        length_bytes: usize,
        pieces: usize,
    ) -> Result<u64> {
        let from = copies_at(direction, turn, length_bytes);
        let to = place(turn, length_bytes) as usize;
        let piece_bytes = length_bytes / pieces;
        let mut differences = 0;
        for piece in 0..pieces {
            if piece + 1 < pieces {
                while self.line(direction, 1 + piece as u64)[0].load(Acquire) != turn {}
            } else {
                differences = self.take_line(direction, turn);
            }
            let part = piece * piece_bytes;
            let target = &mut self.target[to + part..to + part + piece_bytes];
            self.mapping.copy_out(from + part, target)?;
        }
        let (first, last) = ends(&self.target[to..to + length_bytes]);
        Ok(differences | first ^ turn | last ^ !turn)
    }
}

/// Where the bytes of that turn lie.
#[inline]
fn copies_at(direction: usize, turn: u64, length_bytes: usize) -> usize {
    COPIES_OFFSET + direction * AREA_BYTES as usize + place(turn, length_bytes) as usize
}

/// Writes that turn at both ends of a message, as far as it is long enough.
#[inline]
pub(super) fn mark(message: &mut [u8], turn: u64) {
    if message.len() > 32
        && let Some(last) = message.last_chunk_mut()
    {
        *last = (!turn).to_le_bytes();
    }
    if message.is_empty() {
        // To fill nothing takes 100 ns where the C library does so by a masked store, as the place
        // of nothing is no memory.
        return;
    }
    match message.first_chunk_mut() {
        Some(first) => *first = turn.to_le_bytes(),
        None => message.fill(turn as u8),
    }
}

/// The words at both ends of a message of at least eight bytes.
#[inline]
pub(super) fn ends(message: &[u8]) -> (u64, u64) {
    let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    (word(message.first_chunk()), word(message.last_chunk()))
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
        let start = Instant::now();
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

#[cfg(test)]
mod tests;
