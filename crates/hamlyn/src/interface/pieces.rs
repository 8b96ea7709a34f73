//! One-sided operations on many pieces of memory in one call, complete as one (decision 0037): strided and indexed reads and puts.
//! Each piece is asked for as an operation on one would be, and at most 64 requests are under way at a time: an operation of more
//! takes in answers while it begins, so with [`Wait::Poll`] it cannot begin.
//!
//! Refused: pieces that do not all lie in the ticket's place, before anything is asked; and bytes that are not as many as the
//! pieces have.

use hamlyn_host::Host;

use super::Interface;
use super::awaiting::begin_pieces;
use super::in_hand::InHand;
use super::operating::Asking;
use crate::one_sided::{Initiator, Operation, OperationError, Strided};
use crate::ticket::{OutsideTicket, Ticket};
use crate::wait::Wait;

/// Where pieces lie, in the ticket's place.
#[derive(Clone, Copy)]
enum Places<'a> {
    Strided { offset: u64, stride_bytes: u64 },
    Indexed(&'a [u64]),
}

/// The pieces of an operation, all of one length.
#[derive(Clone, Copy)]
pub(super) struct Pieces<'a> {
    places: Places<'a>,
    pub(super) piece_bytes: u64,
    pub(super) length_bytes: u64,
}

impl<'a> Pieces<'a> {
    /// One.
    #[inline]
    pub(super) fn one(offset: u64, length_bytes: u64) -> Self {
        Self {
            places: Places::Strided {
                offset,
                stride_bytes: 0,
            },
            piece_bytes: length_bytes,
            length_bytes,
        }
    }

    fn strided(strided: &Strided, ticket: &Ticket) -> Result<Self, OperationError> {
        let &Strided {
            offset,
            stride_bytes,
            piece_bytes,
            pieces,
        } = strided;
        let outside = OutsideTicket {
            offset,
            length_bytes: u64::MAX,
            ticket_bytes: ticket.length_bytes,
        };
        let length_bytes = pieces.checked_mul(piece_bytes).ok_or(outside)?;
        if let Some(last) = pieces.checked_sub(1) {
            let last = last.checked_mul(stride_bytes);
            let last = last.and_then(|last| last.checked_add(offset));
            ticket.place(offset, piece_bytes)?;
            ticket.place(last.ok_or(outside)?, piece_bytes)?;
        }
        Ok(Self {
            places: Places::Strided {
                offset,
                stride_bytes,
            },
            piece_bytes,
            length_bytes,
        })
    }

    fn indexed(
        offsets: &'a [u64],
        piece_bytes: u64,
        ticket: &Ticket,
    ) -> Result<Self, OperationError> {
        for &offset in offsets {
            ticket.place(offset, piece_bytes)?;
        }
        // Each piece lies in the ticket, so with one piece or more the sum of a slice's length is the only product at stake.
        let length_bytes = (offsets.len() as u64).checked_mul(piece_bytes);
        Ok(Self {
            places: Places::Indexed(offsets),
            piece_bytes,
            length_bytes: length_bytes.ok_or(OutsideTicket {
                offset: 0,
                length_bytes: u64::MAX,
                ticket_bytes: ticket.length_bytes,
            })?,
        })
    }

    /// Where the byte of that number lies, in the ticket's place, and how many follow it in its piece.
    #[inline]
    pub(super) fn at(&self, position: u64) -> (u64, u64) {
        let (piece, within) = match position < self.piece_bytes {
            true => (0, position),
            false => (position / self.piece_bytes, position % self.piece_bytes),
        };
        let start = match self.places {
            // Those that lie in the ticket's place do not overflow.
            Places::Strided {
                offset,
                stride_bytes,
            } => offset + piece * stride_bytes,
            Places::Indexed(offsets) => offsets[piece as usize],
        };
        (start + within, self.piece_bytes - within)
    }
}

/// Whether the bytes are as many as the pieces have.
fn fits(pieces: &Pieces<'_>, bytes: &[u8]) -> Result<(), OperationError> {
    match bytes.len() as u64 == pieces.length_bytes {
        true => Ok(()),
        false => Err(OperationError::PiecesLength {
            length_bytes: bytes.len() as u64,
            pieces_bytes: pieces.length_bytes,
        }),
    }
}

impl<H: Host> Interface<H> {
    /// Begins to read pieces at equal distances, one behind the other into the initiator's landing memory, as
    /// [`Interface::begin_read`] reads one. The operation is complete when all are there.
    pub fn begin_read_strided(
        &mut self,
        initiator: &mut Initiator,
        strided: &Strided,
        landing_offset: u64,
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        begin_read_strided(self, initiator, strided, landing_offset, wait)
    }

    /// Begins to put `bytes` to pieces at equal distances, as [`Interface::begin_put`] puts one. The operation is complete when all
    /// are in their places.
    pub fn begin_put_strided(
        &mut self,
        initiator: &mut Initiator,
        strided: &Strided,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        begin_put_strided(self, initiator, strided, bytes, wait)
    }

    /// Begins to read pieces of `piece_bytes` bytes at these offsets of the ticket's place, one behind the other into the
    /// initiator's landing memory. The operation is complete when all are there.
    pub fn begin_read_indexed(
        &mut self,
        initiator: &mut Initiator,
        offsets: &[u64],
        piece_bytes: u64,
        landing_offset: u64,
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        begin_read_indexed(self, initiator, offsets, piece_bytes, landing_offset, wait)
    }

    /// Begins to put `bytes`, in pieces of `piece_bytes`, to these offsets of the ticket's place. The operation is complete when all
    /// are in their places; where pieces overlap, either is there.
    pub fn begin_put_indexed(
        &mut self,
        initiator: &mut Initiator,
        offsets: &[u64],
        piece_bytes: u64,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        begin_put_indexed(self, initiator, offsets, piece_bytes, bytes, wait)
    }
}

/// See [`Interface::begin_read_strided`].
pub(crate) fn begin_read_strided<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    strided: &Strided,
    landing_offset: u64,
    wait: Wait,
) -> Result<Operation, OperationError> {
    let pieces = Pieces::strided(strided, &initiator.target.ticket)?;
    let to = initiator.landing(landing_offset, pieces.length_bytes)?;
    begin_pieces(hand, initiator, pieces, |_| Asking::Read(to), wait)
}

/// See [`Interface::begin_put_strided`].
pub(crate) fn begin_put_strided<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    strided: &Strided,
    bytes: &[u8],
    wait: Wait,
) -> Result<Operation, OperationError> {
    let pieces = Pieces::strided(strided, &initiator.target.ticket)?;
    fits(&pieces, bytes)?;
    begin_pieces(hand, initiator, pieces, |_| Asking::Put(bytes), wait)
}

/// See [`Interface::begin_read_indexed`].
pub(crate) fn begin_read_indexed<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    offsets: &[u64],
    piece_bytes: u64,
    landing_offset: u64,
    wait: Wait,
) -> Result<Operation, OperationError> {
    let pieces = Pieces::indexed(offsets, piece_bytes, &initiator.target.ticket)?;
    let to = initiator.landing(landing_offset, pieces.length_bytes)?;
    begin_pieces(hand, initiator, pieces, |_| Asking::Read(to), wait)
}

/// See [`Interface::begin_put_indexed`].
pub(crate) fn begin_put_indexed<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    offsets: &[u64],
    piece_bytes: u64,
    bytes: &[u8],
    wait: Wait,
) -> Result<Operation, OperationError> {
    let pieces = Pieces::indexed(offsets, piece_bytes, &initiator.target.ticket)?;
    fits(&pieces, bytes)?;
    begin_pieces(hand, initiator, pieces, |_| Asking::Put(bytes), wait)
}
