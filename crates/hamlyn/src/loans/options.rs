//! Options of a publisher.

use hamlyn_ring::pool;

use crate::error::OpenError;

/// Most samples that a reader may have.
pub(super) const DEPTH_MAX: u16 = 1024;
/// Most readers of a publisher.
pub(super) const READERS_MAX: u16 = 1024;

/// What happens when a reader has not given back as many samples as it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SlowReaders {
    /// The publisher waits, for as long as its call says.
    #[default]
    Block,
    /// The reader does not get the message; it is counted, at both ends. Of two chunks or more
    /// one is never with readers, so the publisher waits for none of them.
    Lose,
    /// As `Lose`, but readers want the newest message only. A receive gives the newest, and skips
    /// what is outdated. A reader that reads in place gets it without any call of the publisher,
    /// also if it comes late: it copies the message, unless the message was announced to it.
    /// Readers that get copies, on other hosts for example, get the newest with the publisher's
    /// next call. The pool has one chunk more, for the newest message, which stays until the next
    /// is published; and readers have one less than all others at a time, so the publisher waits
    /// for none of them. Messages beyond that are copied.
    Latest,
}

/// What a publisher is opened with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublisherOptions {
    /// Bytes of the longest message, 1 byte to less than 4 GiB. Default 1 MiB.
    pub message_bytes: u32,
    /// How many messages there may be at a time, those that are loaned and those that readers have.
    /// Default 16. The pool, less than 4 GiB, is present in full, and paid for by the publisher.
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
    pub(super) fn is_latest(&self) -> bool {
        self.slow_readers == SlowReaders::Latest
    }

    /// Chunks of the pool: with [`SlowReaders::Latest`] one is for the newest message alone.
    pub(super) fn pool_chunks(&self) -> u32 {
        self.chunks.saturating_add(u32::from(self.is_latest()))
    }

    pub(super) fn check(&self) -> Result<(), OpenError> {
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

/// Bytes of a publisher's pool, if there can be such a pool.
pub(super) fn pool_bytes(message_bytes: u32, chunks: u32, has_head: bool) -> Option<usize> {
    match has_head {
        true => pool::file_bytes_with_head(message_bytes as usize, chunks),
        false => pool::file_bytes(message_bytes as usize, chunks),
    }
}
