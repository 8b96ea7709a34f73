//! The errors of one-sided operations, and the limit that one of them names.

use hamlyn_engine::refusal::Refusal;
use hamlyn_host::HostError;

use crate::forks::from_forked;
use crate::peer::PeerLost;
use crate::ticket::OutsideTicket;

/// Operations that an initiator may have outstanding: those that were begun, and whose result was
/// not fetched.
pub const OPERATIONS_MAX: usize = 64;

/// An operation was not carried out, or it is not known whether it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The target refused it: it had no effect, or, of a long one, a part of it had none.
    #[error("the target refused the operation: {0}")]
    Refused(Refusal),
    /// The target refused it for a reason that this version does not know.
    #[error(
        "the target refused the operation for a reason of a later version ({0}): update this program"
    )]
    RefusedOtherwise(u8),
    /// It does not lie in the ticket's bounds.
    #[error(transparent)]
    OutsideTicket(#[from] OutsideTicket),
    /// It does not lie in the memory for landing.
    #[error(
        "{length_bytes} bytes at {offset} do not lie in the {landing_bytes} bytes for landing: open the initiator with more"
    )]
    OutsideLanding {
        /// Where it was to land.
        offset: u64,
        /// How many bytes.
        length_bytes: u64,
        /// How many there are.
        landing_bytes: u64,
    },
    /// The bytes to be put are not as many as the pieces have.
    #[error("{length_bytes} bytes cannot be put to pieces of {pieces_bytes} bytes together")]
    PiecesLength {
        /// How many were to be put.
        length_bytes: u64,
        /// The bytes that the pieces have.
        pieces_bytes: u64,
    },
    /// There was no room within the wait. Of a long operation a part may have been carried out.
    #[error("no room at present for one more operation: try again, or wait longer")]
    WouldBlock,
    /// The wait was over before the operation was; it is still outstanding.
    #[error("the target has not answered yet: wait longer, or see whether it still takes packets")]
    TimedOut,
    /// As many operations as there may be are outstanding.
    #[error("{OPERATIONS_MAX} operations are outstanding: finish one")]
    TooMany,
    /// The initiator was dropped before it was known whether the operation was carried out.
    #[error("the initiator was dropped before it was known whether the operation was carried out")]
    Abandoned,
    /// There is no such operation, or its result was fetched before.
    #[error("the operation is not outstanding: it was finished, or is another initiator's")]
    NotOutstanding,
    /// The target sent more answers than it was asked for.
    #[error(
        "the target sent answers that nobody asked for: open another initiator, or disconnect it"
    )]
    Flooded,
    /// The target is gone; whether the operation was carried out is not known.
    #[error(transparent)]
    PeerLost(#[from] PeerLost),
    /// Waiting failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl OperationError {
    /// The target refused the operation for that reason.
    pub(super) fn refused(reason: u8) -> Self {
        let known = Refusal::ALL.get(usize::from(reason));
        known.map_or(OperationError::RefusedOtherwise(reason), |&reason| {
            OperationError::Refused(reason)
        })
    }
}

from_forked! {
    OperationError: Self::Host;
}
