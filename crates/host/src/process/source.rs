//! What a readiness event is about: a value that fits the 64 bits of epoll.

use rustix::event::epoll::EventData;

/// Where an event comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// Somebody in this process wants the sleeper's attention.
    Command,
    /// A listening socket, by its place.
    Listener(u64),
    /// A handshake that somebody began, by its number.
    Handshake(u64),
    /// The socket of a link, by its token.
    Control(u64),
    /// The process at the other end of a link, by the link's token.
    Process(u64),
    /// The socket of the UDP endpoint.
    Udp,
}

const NUMBER_BITS: u32 = 56;

impl Source {
    pub(crate) fn data(self) -> EventData {
        let (kind, number) = match self {
            Self::Command => (0, 0),
            Self::Listener(place) => (1, place),
            Self::Handshake(number) => (2, number),
            Self::Control(token) => (3, token),
            Self::Process(token) => (4, token),
            Self::Udp => (5, 0),
        };
        EventData::new_u64(kind << NUMBER_BITS | number)
    }

    pub(super) fn of(data: EventData) -> Option<Self> {
        let number = data.u64() & ((1 << NUMBER_BITS) - 1);
        Some(match data.u64() >> NUMBER_BITS {
            0 => Self::Command,
            1 => Self::Listener(number),
            2 => Self::Handshake(number),
            3 => Self::Control(number),
            4 => Self::Process(number),
            5 => Self::Udp,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_survives_the_kernel() {
        for source in [
            Source::Command,
            Source::Listener(1),
            Source::Handshake(2),
            Source::Control((1 << NUMBER_BITS) - 1),
            Source::Process(0),
            Source::Udp,
        ] {
            assert_eq!(Source::of(source.data()), Some(source));
        }
        assert_eq!(Source::of(EventData::new_u64(u64::MAX)), None);
    }
}
