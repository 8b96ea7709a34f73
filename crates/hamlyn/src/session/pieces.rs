//! One-sided operations on many pieces of memory in one call, complete as one (decision 37):
//! strided and indexed reads and puts. Each piece is asked for as an operation on one would be, and
//! at most 64 requests are under way at a time: an operation of more takes in answers while it
//! begins, so with [`Wait::Poll`] it cannot begin.
//!
//! Refused: pieces that do not all lie in the ticket's place, before anything is asked; and bytes
//! that are not as many as the pieces have.

use hamlyn_host::Host;

use super::Session;
use crate::interface::initiators::Asking;
use crate::interface::pieces::Pieces;
use crate::one_sided::{Initiator, Operation, OperationError, Strided};
use crate::wait::Wait;

impl<H: Host> Session<'_, H> {
    /// Begins to read pieces at equal distances, one behind the other into the initiator's landing
    /// memory, as [`Session::begin_read`] reads one. The operation is complete when all are there.
    pub fn begin_read_strided(
        &mut self,
        initiator: &mut Initiator,
        strided: &Strided,
        landing_offset: u64,
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        let pieces = Pieces::strided(strided, &initiator.target.ticket)?;
        let to = initiator.landing(landing_offset, pieces.length_bytes)?;
        self.begin_pieces(initiator, pieces, |_| Asking::Read(to), wait)
    }

    /// Begins to put `bytes` to pieces at equal distances, as [`Session::begin_put`] puts one. The
    /// operation is complete when all are in their places.
    pub fn begin_put_strided(
        &mut self,
        initiator: &mut Initiator,
        strided: &Strided,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        let pieces = Pieces::strided(strided, &initiator.target.ticket)?;
        pieces.check_length(bytes)?;
        self.begin_pieces(initiator, pieces, |_| Asking::Put(bytes), wait)
    }

    /// Begins to read pieces of `piece_bytes` bytes at these offsets of the ticket's place, one
    /// behind the other into the initiator's landing memory. The operation is complete when all are
    /// there.
    pub fn begin_read_indexed(
        &mut self,
        initiator: &mut Initiator,
        offsets: &[u64],
        piece_bytes: u64,
        landing_offset: u64,
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        let pieces = Pieces::indexed(offsets, piece_bytes, &initiator.target.ticket)?;
        let to = initiator.landing(landing_offset, pieces.length_bytes)?;
        self.begin_pieces(initiator, pieces, |_| Asking::Read(to), wait)
    }

    /// Begins to put `bytes`, in pieces of `piece_bytes`, to these offsets of the ticket's place.
    /// The operation is complete when all are in their places; where pieces overlap, either is
    /// there.
    pub fn begin_put_indexed(
        &mut self,
        initiator: &mut Initiator,
        offsets: &[u64],
        piece_bytes: u64,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        let pieces = Pieces::indexed(offsets, piece_bytes, &initiator.target.ticket)?;
        pieces.check_length(bytes)?;
        self.begin_pieces(initiator, pieces, |_| Asking::Put(bytes), wait)
    }
}
