//! What a stream is opened with. What cannot be is refused with the setting's name.

use hamlyn_ring::shared::PAGE_BYTES;

use super::wire::{CONTROL_ENTRIES, PIECE_BYTES_MAX, PIECE_BYTES_MIN, PIECES_MAX};
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
    /// The sender may use all of `limit_bytes`, 1 TiB at most, from the beginning, so that it goes
    /// on while nobody reads. `pieces` is not used then. By default false: the sender has `pieces`,
    /// and gets more of them only from a receiver that reads.
    ///
    /// A page of this memory, unlike other memory of an interface, is present from the first byte
    /// that is stored there, and goes back to the system when it was read, 64 KiB at a time. So a
    /// record costs page faults, and memory that is short is no error of this stream: the system
    /// ends a process. A piece has whole pages, from 4 KiB; pieces are larger than `piece_bytes`
    /// where they would take more than half of what is free of
    /// [`ManagerOptions::queue_entries`](crate::ManagerOptions::queue_entries).
    ///
    /// If the receiver's process is stopped as a whole, what is sent waits in its overflow log,
    /// which must be as large
    /// ([`buffer_bytes_per_peer`](hamlyn_host::process::Options::buffer_bytes_per_peer)).
    pub ahead: bool,
}

/// Most bytes that a sender may go ahead.
const AHEAD_BYTES_MAX: u64 = 1 << 40;

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            pieces: 64,
            piece_bytes: 16 << 10,
            limit_bytes: 64 << 20,
            ahead: false,
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
        if self.ahead && (self.piece_bytes as usize) < PAGE_BYTES {
            return setting(
                "a stream's piece",
                u64::from(self.piece_bytes),
                "its size is 4 KiB or more where the sender may go ahead",
            );
        }
        if self.ahead && self.limit_bytes > AHEAD_BYTES_MAX {
            return setting(
                "a stream's limit",
                self.limit_bytes,
                "it is 1 TiB at most where the sender may go ahead",
            );
        }
        let pieces = if self.ahead { 1 } else { self.pieces };
        if u64::from(pieces) * u64::from(self.piece_bytes) > self.limit_bytes {
            return setting(
                "a stream's limit",
                self.limit_bytes,
                "it must cover the pieces it starts with",
            );
        }
        Ok(())
    }

    /// The same, with the pieces that the stream has at first, where its queue has `room` for so
    /// many notifications. `check` has found nothing wrong.
    pub(super) fn with_first_pieces(self, room: usize) -> Self {
        if !self.ahead {
            return self;
        }
        // Half of it: a stream that is offered anew has its old pieces for a moment, too.
        let most = (room / 2).saturating_sub(usize::from(CONTROL_ENTRIES));
        let most = (most as u64).clamp(1, u64::from(PIECES_MAX));
        let mut piece_bytes = self.piece_bytes;
        while self.limit_bytes.div_ceil(u64::from(piece_bytes)) > most
            && piece_bytes < PIECE_BYTES_MAX
        {
            piece_bytes *= 2;
        }
        Self {
            pieces: self.limit_bytes.div_ceil(u64::from(piece_bytes)) as u32,
            piece_bytes,
            ..self
        }
    }
}

#[cfg(test)]
mod tests;
