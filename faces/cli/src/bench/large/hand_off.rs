//! What the machine itself can do with large messages: one copy into the other process' memory,
//! and two copies through a bounded buffer. Nothing of the interface is used but its ways to map
//! memory and to copy.

use std::hint::spin_loop;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

use anyhow::Result;
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::shared::{self, Access, Mapping};
use serde::{Deserialize, Serialize};

use super::{Buffers, REGION_BYTES};
use crate::bench::raw::memory_of_other;

/// A page that counts for each side, then the bounded buffer of two copies, then the memory that one
/// copy goes to.
const SENT_OFFSET: usize = 0;
const TAKEN_OFFSET: usize = 4096;
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
    mapping: Mapping,
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
        let mapping = memfd.map(Access::Writable)?;
        mapping.prefer_huge_pages(REGION_OFFSET, REGION_BYTES);
        Ok(Self {
            memfd,
            mapping,
            own: None,
        })
    }

    /// Where another process of the same user finds it.
    pub(crate) fn path(&self) -> PathBuf {
        use std::os::fd::{AsFd, AsRawFd};
        let fd = self.memfd.as_fd().as_raw_fd();
        format!("/proc/{}/fd/{fd}", std::process::id()).into()
    }

    /// Sends so many messages, the first of which has that number. Bytes per second.
    pub(crate) fn lead(
        &self,
        transfer: Transfer,
        buffers: Buffers,
        source: &[u8],
        first: u64,
        messages: u64,
    ) -> Result<f64> {
        let (sent, taken) = self.counts()?;
        let pieces = Pieces::of(transfer, buffers.size_bytes);
        let start = std::time::Instant::now();
        let mut seen = 0;
        let total = messages * pieces.per_message;
        for piece in 0..total {
            while piece - seen >= pieces.on_their_way(transfer, buffers) {
                seen = taken.load(Acquire);
                if piece - seen >= pieces.on_their_way(transfer, buffers) {
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
            sent.store(piece + 1, Release);
        }
        while taken.load(Acquire) != total {
            spin_loop();
        }
        let elapsed = start.elapsed().as_secs_f64();
        sent.store(0, Release);
        while taken.load(Acquire) != 0 {
            spin_loop();
        }
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
        let (sent, taken) = self.counts()?;
        let pieces = Pieces::of(transfer, buffers.size_bytes);
        let total = messages * pieces.per_message;
        for piece in 0..total {
            while sent.load(Acquire) <= piece {
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
            taken.store(piece + 1, Release);
        }
        while sent.load(Acquire) != 0 {
            spin_loop();
        }
        taken.store(0, Release);
        Ok(())
    }

    fn counts(&self) -> Result<(&AtomicU64, &AtomicU64)> {
        Ok((
            self.mapping.atomic_u64(SENT_OFFSET)?,
            self.mapping.atomic_u64(TAKEN_OFFSET)?,
        ))
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
            Transfer::Put(_) => buffers.on_their_way(),
            Transfer::TwoCopies { window_bytes, .. } => (window_bytes / self.bytes) as u64,
        }
    }

    fn place(self, transfer: Transfer, piece: u64) -> usize {
        (piece % self.on_their_way(transfer, Buffers::default())) as usize * self.bytes
    }
}
