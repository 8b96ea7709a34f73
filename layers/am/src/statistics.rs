//! Counts of a node.

/// Counts since a node was opened. None of them ever falls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Requests that were accepted here, those of transfers included.
    pub requests_sent: u64,
    /// Requests whose handler ran here, or that the layer answered.
    pub requests_taken: u64,
    /// Replies of handlers, without empty ones.
    pub replies_sent: u64,
    /// Replies that ran a handler here.
    pub replies_taken: u64,
    /// Requests that were answered by an empty reply here.
    pub empty_replies: u64,
    /// Messages of credits, which carry those empty replies.
    pub credit_messages: u64,
    /// Messages that were refused and sent again.
    pub sent_again: u64,
    /// Requests among these that were sent again at once, as their endpoint was said to be resident.
    pub sent_on_hint: u64,
    /// Requests that came back here.
    pub returned: u64,
    /// Replies that were rejected, and came back here.
    pub replies_rejected: u64,
    /// Messages that break the protocol, and had no other effect.
    pub violations: u64,
    /// Endpoint faults because a message came for an endpoint that was not resident (`V 3.2`).
    pub faults_by_message: u64,
    /// Endpoint faults because the application sent by such an endpoint.
    pub faults_by_call: u64,
    /// Endpoints that were unloaded.
    pub unloaded: u64,
}
