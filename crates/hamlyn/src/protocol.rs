//! The protocols of end points, as offers and errors name them.

use std::fmt;

/// What an end point speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum Protocol {
    /// [`crate::datagram`].
    Datagram = 1,
    /// [`crate::stream`].
    Stream = 2,
    /// [`crate::tagged_write`].
    TaggedWrite = 3,
    /// [`crate::group`].
    Group = 4,
    /// [`crate::service`].
    Service = 5,
    /// [`crate::loans`].
    Loans = 6,
    /// [`crate::mailbox`].
    Mailbox = 7,
    /// A layer's, in a [`crate::lobby`].
    Layer = 8,
}

impl Protocol {
    /// Each of its offers is for one peer, for as long as the end point lasts. Members of groups
    /// are not: the next round has others.
    pub(crate) fn is_offered_to_one(self) -> bool {
        matches!(
            self,
            Self::Stream | Self::Service | Self::Loans | Self::Layer
        )
    }

    pub(crate) const ALL: [Self; 8] = [
        Self::Datagram,
        Self::Stream,
        Self::TaggedWrite,
        Self::Group,
        Self::Service,
        Self::Loans,
        Self::Mailbox,
        Self::Layer,
    ];
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Datagram => "datagram",
            Self::Stream => "stream",
            Self::TaggedWrite => "tagged write",
            Self::Group => "group",
            Self::Service => "service",
            Self::Loans => "publisher of loaned messages",
            Self::Mailbox => "mailbox",
            Self::Layer => "layer",
        })
    }
}
