//! What a stream is opened with. What cannot be is refused with the setting's name.

use super::wire::{PIECE_BYTES_MAX, PIECE_BYTES_MIN, PIECES_MAX};
use crate::error::OpenError;

/// What a stream is opened with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamOptions {
    /// Pieces at first, 1 to 65,535. Default 64.
    pub pieces: u32,
    /// Bytes of a piece, a power of two from 64. Default 16 KiB, what a packet carries.
    pub piece_bytes: u32,
    /// Bytes that the stream may grow to. Default 64 MiB. Also bounds a record.
    pub limit_bytes: u64,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            pieces: 64,
            piece_bytes: 16 << 10,
            limit_bytes: 64 << 20,
        }
    }
}

impl StreamOptions {
    /// Whether a stream can have these.
    pub(super) fn check(&self) -> Result<(), OpenError> {
        let setting = |setting, value, reason| {
            Err(OpenError::Setting {
                setting,
                value,
                reason,
            })
        };
        if !(1..=PIECES_MAX).contains(&self.pieces) {
            return setting(
                "a stream's pieces",
                u64::from(self.pieces),
                "it has 1 to 65,535",
            );
        }
        if !(PIECE_BYTES_MIN..=PIECE_BYTES_MAX).contains(&self.piece_bytes)
            || !self.piece_bytes.is_power_of_two()
        {
            return setting(
                "a stream's piece",
                u64::from(self.piece_bytes),
                "its size is a power of two from 64 bytes to 1 GiB",
            );
        }
        if u64::from(self.pieces) * u64::from(self.piece_bytes) > self.limit_bytes {
            return setting(
                "a stream's limit",
                self.limit_bytes,
                "it must cover the pieces it starts with",
            );
        }
        Ok(())
    }
}
