//! What happens to a manager that no call is bound to: peers come and go, messages are refused, notifications are lost.

use hamlyn::{Direction, Event as Happened};
use pyo3::prelude::*;

use crate::peer::Peer;

/// What happened; `str(event)` says it in words.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Event(Happened);

impl Event {
    pub(crate) fn new(event: Happened) -> Self {
        Self(event)
    }
}

#[pymethods]
impl Event {
    /// "peer_arrived", "peer_left", "refused", "buffering", "drained", "overrun" or "missed".
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0 {
            Happened::PeerArrived { .. } => "peer_arrived",
            Happened::PeerLeft { .. } => "peer_left",
            Happened::Refused(_) => "refused",
            Happened::Buffering { .. } => "buffering",
            Happened::Drained { .. } => "drained",
            Happened::Overrun { .. } => "overrun",
            Happened::Missed { .. } => "missed",
            _ => "other",
        }
    }

    /// The direction of messages that are buffered, or were until they were taken: "outgoing" for
    /// those of this program to the peer, "incoming" for those of the peer to this program.
    #[getter]
    fn direction(&self) -> Option<&'static str> {
        match self.0 {
            Happened::Buffering { direction, .. } | Happened::Drained { direction, .. } => {
                Some(match direction {
                    Direction::Outgoing => "outgoing",
                    Direction::Incoming => "incoming",
                })
            }
            _ => None,
        }
    }

    /// The peer that arrived, left, takes nothing, or has taken what waited for it; or whose
    /// messages waited here.
    #[getter]
    fn peer(&self) -> Option<Peer> {
        match self.0 {
            Happened::PeerArrived { peer }
            | Happened::PeerLeft { peer, .. }
            | Happened::Buffering { peer, .. }
            | Happened::Drained { peer, .. } => Some(Peer::new(peer)),
            _ => None,
        }
    }

    /// Why a peer left, or a message was refused.
    #[getter]
    fn cause(&self) -> Option<String> {
        match &self.0 {
            Happened::PeerLeft { end, .. } => Some(end.to_string()),
            Happened::Refused(undelivered) => Some(undelivered.reason.to_string()),
            _ => None,
        }
    }

    /// The number of notifications lost, of arrivals and departures missed, or of bytes that wait
    /// and are not taken.
    #[getter]
    fn count(&self) -> Option<u64> {
        match self.0 {
            Happened::Overrun { lost } => Some(lost),
            Happened::Missed { count } => Some(count),
            Happened::Buffering { waiting_bytes, .. } => Some(waiting_bytes),
            _ => None,
        }
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<hamlyn.Event {}: {}>", self.kind(), self.0)
    }
}
