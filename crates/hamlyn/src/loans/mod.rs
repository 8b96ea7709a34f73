//! Loaned messages: a publisher writes a message in place, and its readers read it there (decision 0024). Nothing is copied, so a
//! message takes the same time whatever its length. Readers on other hosts, and a reader that shares the publisher's interface, get
//! copies through the same calls.
//!
//! The publisher has a pool of chunks. [`Publisher::loan`] takes a free one, [`Loan::publish`] announces it to all readers, and the
//! chunk is free again when the last of them has dropped its [`Sample`], or is gone. Who reads slowly is treated as
//! [`PublisherOptions::slow_readers`] says.
//!
//! ```no_run
//! use hamlyn::Wait;
//! use hamlyn::loans::PublisherOptions;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let alice = hamlyn::open("alice")?;
//! let mut frames = alice.bind_publisher("frames", PublisherOptions::default())?;
//! let mut frame = frames.loan(640 * 480, Wait::Forever)?;
//! frame.fill(0x80); // in place
//! frame.publish(Wait::Forever)?;
//!
//! let bob = hamlyn::open_unnamed()?;
//! let mut frames = bob.connect_subscriber("alice/frames", Wait::millis(1000))?;
//! if let Some(frame) = frames.recv(Wait::Forever)? {
//!     let mut line = [0; 640];
//!     frame.read_at(640 * 100, &mut line)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **What readers see.** Readers map the pool read-only; the kernel vouches that the publisher can neither shrink it nor take its
//! pages away. The publisher may write it at any time: one that breaks the rules changes a message while it is read. So a sample is
//! read by copies of what is wanted of it, and each copy is checked, not the place. A plain slice is an `unsafe` choice
//! ([`Sample::view`], [`View::as_slice`](crate::View::as_slice)) of readers that trust their publisher. Whoever may read one message
//! may read the whole pool: all that is, was, or will be in it.

mod list;
mod publisher;
mod readers;
mod returns;
mod sample;
mod subscriber;
mod typed;
mod window;
mod wire;

pub use publisher::{Loan, LoanError, Published, Publisher};
pub use sample::{Kept, Sample};
pub use subscriber::Subscriber;
pub use typed::TypedLoan;

use crate::error::OpenError;
use wire::{DEPTH_MAX, READERS_MAX, pool_bytes};

/// What happens when a reader has not given back as many samples as it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SlowReaders {
    /// The publisher waits, for as long as its call says.
    #[default]
    Block,
    /// The reader does not get the message; it is counted, at both ends.
    Lose,
    /// As `Lose`, but readers want the newest message only. A receive gives the newest, and skips
    /// what is outdated. A reader that reads in place gets it without any call of the publisher,
    /// also if it comes late: it copies the message, unless the message was announced to it.
    /// Readers that get copies, on other hosts for example, get the newest with the publisher's
    /// next call. The pool has one chunk more, for the newest message, which stays until the next
    /// is published.
    Latest,
}

/// What a publisher is opened with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublisherOptions {
    /// Bytes of the longest message, 1 byte to less than 4 GiB. Default 1 MiB.
    pub message_bytes: u32,
    /// How many messages there may be at a time, those that are loaned and those that readers have. Default 16. The pool, less
    /// than 4 GiB, is present in full, and paid for by the publisher.
    pub chunks: u32,
    /// How many samples a reader may have that it has not given back, 1 to 1,024. Default 4.
    pub depth: u16,
    /// How many readers there may be, 1 to 1,024. Default 64.
    pub readers: u16,
    /// What is done about slow readers.
    pub slow_readers: SlowReaders,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        Self {
            message_bytes: 1 << 20,
            chunks: 16,
            depth: 4,
            readers: 64,
            slow_readers: SlowReaders::Block,
        }
    }
}

impl PublisherOptions {
    fn is_latest(&self) -> bool {
        self.slow_readers == SlowReaders::Latest
    }

    /// Chunks of the pool: with [`SlowReaders::Latest`] one is for the newest message alone.
    fn pool_chunks(&self) -> u32 {
        self.chunks.saturating_add(u32::from(self.is_latest()))
    }

    fn check(&self) -> Result<(), OpenError> {
        let setting = |setting, value, reason| {
            Err(OpenError::Setting {
                setting,
                value,
                reason,
            })
        };
        let (chunks, is_latest) = (self.pool_chunks(), self.is_latest());
        if pool_bytes(self.message_bytes, chunks, is_latest).is_none() || self.chunks == 0 {
            let bytes = u64::from(self.message_bytes) * u64::from(chunks);
            return setting(
                "a publisher's pool",
                bytes,
                "it has a chunk of a byte at least, and less than 4 GiB in all",
            );
        }
        if !(1..=DEPTH_MAX).contains(&self.depth) {
            let depth = u64::from(self.depth);
            return setting("a publisher's depth", depth, "it is 1 to 1,024");
        }
        if !(1..=READERS_MAX).contains(&self.readers) {
            let readers = u64::from(self.readers);
            return setting("a publisher's readers", readers, "there are 1 to 1,024");
        }
        Ok(())
    }
}
