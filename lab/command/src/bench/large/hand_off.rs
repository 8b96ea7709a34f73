//! What the machine itself can do with large messages: one copy into the other process' memory,
//! and two copies through a bounded buffer. Nothing of the interface is used but its ways to map
//! memory and to copy.

use std::hint::spin_loop;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

use anyhow::{Result, ensure};
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::shared::{self, Access, LINE_BYTES, Lines, Mapping};
use serde::{Deserialize, Serialize};

use super::ours::Placement;
use super::{Buffers, REGION_BYTES, word_at};
use crate::bench::raw::{memory_of_other, path_of};

/// A line for the flag of each piece, so that the reader of one does not hold up the writer of the
/// next; what was taken; the bounded buffer of two copies; the memory that one copy goes to.
const FLAGS: usize = 1024;
const TAKEN_OFFSET: usize = 1 << 20;
const WINDOW_OFFSET: usize = 2 << 20;
const REGION_OFFSET: usize = 34 << 20;
const LENGTH: usize = REGION_OFFSET + REGION_BYTES;
/// Room for the bounded buffer.
pub(crate) const WINDOW_MAX_BYTES: usize = REGION_OFFSET - WINDOW_OFFSET;

/// How bytes are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Copy {
    /// Through the caches.
    Through,
    /// Past them.
    Past,
}

/// How the sender's bytes get to the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Transfer {
    /// One copy into the receiver's memory.
    Put(Copy),
    /// A copy into a bounded buffer, a copy out of it.
    TwoCopies {
        /// Bytes of the buffer.
        window_bytes: usize,
        /// Bytes that are handed over at a time.
        chunk_bytes: usize,
        copy_in: Copy,
        copy_out: Copy,
    },
}

/// Memory of both processes.
pub(crate) struct Field {
    memfd: Memfd,
    mapping: Arc<Mapping>,
    flags: Lines,
    /// Pieces that were handed over before.
    pieces: u64,
    /// Where the receiver of two copies wants the bytes.
    own: Option<Mapping>,
}

impl Field {
    /// New memory, of which only what is used takes any.
    pub(crate) fn create() -> Result<Self> {
        Self::over(Memfd::create("hamlyn-bench-large", LENGTH, 0)?)
    }

    /// The same memory, in the process that was told where to find it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::over(memory_of_other(path, LENGTH)?)
    }

    fn over(memfd: Memfd) -> Result<Self> {
        let mapping = Arc::new(memfd.map(Access::Writable)?);
        let flags = Lines::new(Arc::clone(&mapping), 0, FLAGS)?;
        mapping.prefer_huge_pages(REGION_OFFSET, REGION_BYTES);
        Ok(Self {
            memfd,
            mapping,
            flags,
            pieces: 0,
            own: None,
        })
    }

    /// Where another process of the same user finds it.
    pub(crate) fn path(&self) -> PathBuf {
        path_of(&self.memfd)
    }

    /// The flag of a piece: the number of the next one.
    #[inline]
    fn flag(&self, piece: u64) -> &AtomicU64 {
        &self.flags.line(piece * LINE_BYTES as u64)[0]
    }

    fn taken(&self) -> Result<&AtomicU64> {
        Ok(self.mapping.atomic_u64(TAKEN_OFFSET)?)
    }

    /// Sends so many messages, the first of which has that number. Bytes per second.
    pub(crate) fn lead(
        &mut self,
        transfer: Transfer,
        buffers: Buffers,
        source: &[u8],
        first: u64,
        messages: u64,
    ) -> Result<f64> {
        let taken = self.taken()?;
        let pieces = Pieces::of(transfer, buffers.size_bytes);
        let on_their_way = pieces.on_their_way(transfer, buffers);
        let before = self.pieces;
        let start = std::time::Instant::now();
        let mut seen = 0;
        let total = messages * pieces.per_message;
        for piece in 0..total {
            while piece - seen >= on_their_way {
                seen = taken.load(Acquire) - before;
                if piece - seen >= on_their_way {
                    spin_loop();
                }
            }
            let message = first + piece / pieces.per_message;
            let part = (piece % pieces.per_message) as usize * pieces.bytes;
            let from = buffers.source_offset(message) + part;
            let bytes = &source[from..from + pieces.bytes];
            let to = match transfer {
                Transfer::Put(_) => REGION_OFFSET + buffers.target_offset(message),
                Transfer::TwoCopies { .. } => WINDOW_OFFSET + pieces.place(transfer, piece),
            };
            match transfer {
                Transfer::Put(Copy::Through)
                | Transfer::TwoCopies {
                    copy_in: Copy::Through,
                    ..
                } => self.mapping.copy_in(to, bytes)?,
                Transfer::Put(Copy::Past)
                | Transfer::TwoCopies {
                    copy_in: Copy::Past,
                    ..
                } => self.mapping.stream_in(to, bytes)?,
            }
            let number = before + piece;
            self.flag(number).store(number + 1, Release);
        }
        while taken.load(Acquire) != before + total {
            spin_loop();
        }
        let elapsed = start.elapsed().as_secs_f64();
        self.pieces += total;
        Ok(messages as f64 * buffers.size_bytes as f64 / elapsed)
    }

    /// The other side of [`Field::lead`].
    pub(crate) fn follow(
        &mut self,
        transfer: Transfer,
        buffers: Buffers,
        first: u64,
        messages: u64,
    ) -> Result<()> {
        if self.own.is_none() {
            self.own = Some(Mapping::anonymous(REGION_BYTES)?);
        }
        let taken = self.taken()?;
        let pieces = Pieces::of(transfer, buffers.size_bytes);
        let before = self.pieces;
        // It is told of several at a time, if there are several, as senders of messages are.
        let batch = (pieces.on_their_way(transfer, buffers) / 8).max(1);
        let total = messages * pieces.per_message;
        for piece in 0..total {
            let number = before + piece;
            while self.flag(number).load(Acquire) != number + 1 {
                spin_loop();
            }
            if let (Transfer::TwoCopies { copy_out, .. }, Some(own)) = (transfer, &self.own) {
                let message = first + piece / pieces.per_message;
                let part = (piece % pieces.per_message) as usize * pieces.bytes;
                let to = buffers.target_offset(message) + part;
                let from = WINDOW_OFFSET + pieces.place(transfer, piece);
                let copy = match copy_out {
                    Copy::Through => shared::StoreKind::Temporal,
                    Copy::Past => shared::StoreKind::NonTemporal,
                };
                Mapping::copy_between(&self.mapping, from, own, to, pieces.bytes, copy)?;
            }
            if (piece + 1) % batch == 0 || piece + 1 == total {
                taken.store(number + 1, Release);
            }
        }
        self.pieces += total;
        Ok(())
    }

    /// Forgets what those messages brought.
    pub(crate) fn clear(
        &mut self,
        transfer: Transfer,
        buffers: Buffers,
        first: u64,
        messages: u64,
    ) -> Result<()> {
        self.samples(transfer, buffers, first, messages, |mapping, at, _| {
            Ok(mapping.store_u64(at, 0)?)
        })
    }

    /// Compares what those messages brought with what their sender has.
    pub(crate) fn check(
        &mut self,
        transfer: Transfer,
        buffers: Buffers,
        first: u64,
        messages: u64,
    ) -> Result<()> {
        self.samples(transfer, buffers, first, messages, |mapping, at, from| {
            ensure!(
                mapping.load_u64(at)? == word_at(from),
                "a raw transfer brought other bytes than were sent"
            );
            Ok(())
        })
    }

    /// Some words of each of those messages that is not written over: where the receiver has them,
    /// and the sender.
    fn samples(
        &mut self,
        transfer: Transfer,
        buffers: Buffers,
        first: u64,
        messages: u64,
        mut each: impl FnMut(&Mapping, usize, usize) -> Result<()>,
    ) -> Result<()> {
        if self.own.is_none() {
            self.own = Some(Mapping::anonymous(REGION_BYTES)?);
        }
        let (mapping, base) = match (transfer, &self.own) {
            (Transfer::TwoCopies { .. }, Some(own)) => (own, 0),
            _ => (&*self.mapping, REGION_OFFSET),
        };
        let last = first + messages;
        for message in last - messages.min(buffers.count())..last {
            for part in [0, buffers.size_bytes / 2, buffers.size_bytes - 8] {
                let to = base + buffers.target_offset(message) + part;
                each(mapping, to, buffers.source_offset(message) + part)?;
            }
        }
        Ok(())
    }
}

/// A message as it is handed over.
#[derive(Clone, Copy)]
struct Pieces {
    bytes: usize,
    per_message: u64,
}

impl Pieces {
    fn of(transfer: Transfer, size_bytes: usize) -> Self {
        let bytes = match transfer {
            Transfer::Put(_) => size_bytes,
            Transfer::TwoCopies { chunk_bytes, .. } => chunk_bytes.min(size_bytes),
        };
        Self {
            bytes,
            per_message: (size_bytes / bytes) as u64,
        }
    }

    fn on_their_way(self, transfer: Transfer, buffers: Buffers) -> u64 {
        match transfer {
            Transfer::Put(_) => buffers.on_their_way(Placement::Direct),
            Transfer::TwoCopies { window_bytes, .. } => {
                (window_bytes / self.bytes).min(FLAGS) as u64
            }
        }
    }

    fn place(self, transfer: Transfer, piece: u64) -> usize {
        (piece % self.on_their_way(transfer, Buffers::default())) as usize * self.bytes
    }
}
