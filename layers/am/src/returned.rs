//! Messages that come back to their sender (`V 3.1`).

use crate::error::Reason;
use crate::peer::EndpointId;
use crate::translation::Translation;
use crate::wire::Kept;

/// The kind of a message that came back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// A short request.
    Request,
    /// A medium request.
    RequestMedium,
    /// A bulk transfer.
    Transfer,
    /// A get.
    Get,
    /// A reply that was rejected.
    Reply,
}

/// A message that came back, for the function of [`Endpoint::on_returned`]. It told nothing of what
/// it was to tell, unless the reason says that this is not known.
///
/// [`Endpoint::on_returned`]: crate::Endpoint::on_returned
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Returned<'a> {
    /// The kind of message.
    pub operation: Operation,
    /// The reason.
    pub reason: Reason,
    /// The translation that it was sent over; none of a reply.
    pub translation: Option<Translation>,
    /// The handler that it was for.
    pub handler: u8,
    /// Its arguments.
    pub arguments: &'a [u32],
    /// Its data. Those of a get are none; and of a transfer that was sent by a call which waits, and
    /// which its receiver refused only after the call had ended: there they are the caller's again.
    pub data: &'a [u8],
    /// The bytes of data that it had, or that a get asked for.
    pub length_bytes: u64,
    /// The place in the remote segment that a transfer was for, or a get from.
    pub offset: u64,
}

/// A message that is to be returned when its bundle is polled.
#[derive(Debug)]
pub(crate) struct ToReturn {
    pub(crate) operation: Operation,
    pub(crate) reason: Reason,
    pub(crate) endpoint: EndpointId,
    /// The number of its translation.
    pub(crate) translation: Option<u32>,
    pub(crate) message: Kept,
    /// The data of a transfer, whose message has none.
    pub(crate) data: Option<Vec<u8>>,
    /// A credit of its translation that is free once it is returned.
    pub(crate) has_credit: bool,
}
