//! Why a packet comes back, why a frame is not taken, and why an association has ended.

use core::fmt;

use crate::limits::USER_METADATA_BYTES;
use crate::packet::Header;
use crate::refusal::Refusal;

/// Why a frame is not taken; but for [`NackReason::Leaving`], it may be when it comes again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NackReason {
    /// No room for its packets.
    NoRoom,
    /// The interface is not resident (4.4.4).
    NotResident,
    /// The receiver is about to close, and takes nothing any more: it lets its own frames arrive
    /// first.
    Leaving,
}

impl NackReason {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::NoRoom => 1,
            Self::NotResident => 2,
            // 3 says that a part was taken.
            Self::Leaving => 4,
        }
    }
}

/// Why an association has ended. The first reason stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// A frame was sent again as often as may be, and nothing came back (4.4.2).
    NoAnswer,
    /// The peer answers, but takes nothing.
    NoProgress,
    /// The peer said that it closes.
    ClosedByPeer,
    /// This side closed.
    Closed,
    /// The carrier knows that the peer is dead.
    PeerDead,
    /// The carrier knows that the peer was restarted: it is another one now.
    PeerRestarted,
    /// The carrier has no way to the peer (4.4.2: unreachable at once).
    NoWay,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAnswer => "the peer does not answer",
            Self::NoProgress => "the peer answers, but takes nothing",
            Self::ClosedByPeer => "the peer closed the association",
            Self::Closed => "the association was closed",
            Self::PeerDead => "the peer is dead",
            Self::PeerRestarted => "the peer was restarted",
            Self::NoWay => "there is no way to the peer",
        })
    }
}

/// Why a packet comes back to its sender, or is reported to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Return {
    /// The receiver's interface would not have it. It was not delivered.
    Refused(Refusal),
    /// The same, for a reason of that number, which this version does not know.
    RefusedOtherwise(u8),
    /// The association ended before the packet was acknowledged. It may have been delivered, unless
    /// it was never sent; the sender cannot know.
    Ended(CloseReason),
}

impl Return {
    /// Refused for the reason of that number, as it travels.
    pub fn of_code(code: u8) -> Self {
        match Refusal::ALL.get(usize::from(code)) {
            Some(&reason) => Self::Refused(reason),
            None => Self::RefusedOtherwise(code),
        }
    }
}

impl fmt::Display for Return {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reason) => write!(f, "refused: {reason}"),
            Self::RefusedOtherwise(code) => write!(f, "refused for reason {code}"),
            Self::Ended(close_reason) => fmt::Display::fmt(close_reason, f),
        }
    }
}

/// A packet that was not delivered, with the copy that was kept of it (4.4: return to sender needs
/// no other).
#[derive(Clone, Copy, Debug)]
pub struct Returned<'a> {
    /// Its header.
    pub header: Header,
    pub(super) metadata: [u8; USER_METADATA_BYTES],
    /// Its data.
    pub data: &'a [u8],
    /// Why.
    pub reason: Return,
    /// Whether it was never given to the wire, so that it is certain that it was not delivered.
    /// Refused packets were.
    pub was_never_sent: bool,
}

impl Returned<'_> {
    /// Its metadata.
    pub fn metadata(&self) -> &[u8] {
        let length = usize::from(self.header.metadata_length_bytes);
        self.metadata.get(..length).unwrap_or_default()
    }
}
