//! The pieces of memory that a one-sided operation is on (decision 37).

use crate::one_sided::{OperationError, Strided};
use crate::ticket::{OutsideTicket, Ticket};

/// Where pieces lie, in the ticket's place.
#[derive(Clone, Copy)]
enum Places<'a> {
    Strided { offset: u64, stride_bytes: u64 },
    Indexed(&'a [u64]),
}

/// The pieces of an operation, all of one length.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a> {
    places: Places<'a>,
    pub(crate) piece_bytes: u64,
    pub(crate) length_bytes: u64,
}

impl<'a> Pieces<'a> {
    /// One.
    #[inline]
    pub(crate) fn one(offset: u64, length_bytes: u64) -> Self {
        Self {
            places: Places::Strided {
                offset,
                stride_bytes: 0,
            },
            piece_bytes: length_bytes,
            length_bytes,
        }
    }

    pub(crate) fn strided(strided: &Strided, ticket: &Ticket) -> Result<Self, OperationError> {
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

    pub(crate) fn indexed(
        offsets: &'a [u64],
        piece_bytes: u64,
        ticket: &Ticket,
    ) -> Result<Self, OperationError> {
        for &offset in offsets {
            ticket.place(offset, piece_bytes)?;
        }
        // Each piece lies in the ticket, so with one piece or more the sum of a slice's length is
        // the only product at stake.
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

    /// Where the byte of that number lies, in the ticket's place, and how many follow it in its
    /// piece.
    #[inline]
    pub(crate) fn at(&self, position: u64) -> (u64, u64) {
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

    /// Refuses bytes that are not as many as the pieces have.
    pub(crate) fn check_length(&self, bytes: &[u8]) -> Result<(), OperationError> {
        match bytes.len() as u64 == self.length_bytes {
            true => Ok(()),
            false => Err(OperationError::PiecesLength {
                length_bytes: bytes.len() as u64,
                pieces_bytes: self.length_bytes,
            }),
        }
    }
}
