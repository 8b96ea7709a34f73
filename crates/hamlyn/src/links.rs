//! The links of an interface, as its transmitting half sees them.

use hamlyn_engine::memory::{LinkId, Outlet, Part, Unsent};
use hamlyn_engine::packet::Header;
use hamlyn_host::{Destination, LossCause, Peer};
use hamlyn_link::Link;
use hamlyn_ring::area::Area;

/// A link in use.
pub(crate) struct Live<L> {
    pub(crate) link: L,
    pub(crate) peer: Peer,
    /// The peer is gone; what it sent is still to be taken.
    pub(crate) lost: Option<LossCause>,
    /// A packet found no room since the last sleep.
    pub(crate) starving: bool,
    /// Packets with a wrong key that came over it.
    pub(crate) bad_keys: u32,
}

struct Place<L> {
    generation: u32,
    live: Option<Live<L>>,
    /// Why the last link of this place ended.
    cause: Option<LinkEnd>,
}

/// Why there is no link any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkEnd {
    /// The host lost the peer.
    #[error("{0}")]
    Lost(#[from] LossCause),
    /// The peer broke the rules of the link.
    #[error("it broke the rules of the link ({0})")]
    Fault(#[from] hamlyn_link::LinkFault),
    /// The peer presented too many wrong keys.
    #[error("it presented too many wrong keys")]
    BadKeys,
    /// We closed the link.
    #[error("this side closed the link")]
    ClosedHere,
}

/// All links of an interface.
pub(crate) struct Links<L> {
    places: Vec<Place<L>>,
}

impl<L: Link> Links<L> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new() }
    }

    pub(crate) fn insert(&mut self, peer: Peer, link: L) -> LinkId {
        let index = match self.places.iter().position(|place| place.live.is_none()) {
            Some(index) => index,
            None => {
                self.places.push(Place {
                    generation: 0,
                    live: None,
                    cause: None,
                });
                self.places.len() - 1
            }
        };
        let place = &mut self.places[index];
        place.generation = place.generation.wrapping_add(1);
        place.cause = None;
        place.live = Some(Live {
            link,
            peer,
            lost: None,
            starving: false,
            bad_keys: 0,
        });
        LinkId {
            index: index as u32,
            generation: place.generation,
        }
    }

    /// Number of places; a place may be vacant.
    #[inline]
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    #[inline]
    pub(crate) fn at(&mut self, index: usize) -> Option<&mut Live<L>> {
        self.places.get_mut(index)?.live.as_mut()
    }

    /// Which use of that place the last one was.
    pub(crate) fn generation_at(&self, index: usize) -> u32 {
        self.places.get(index).map_or(0, |place| place.generation)
    }

    pub(crate) fn remove_at(&mut self, index: usize, cause: LinkEnd) -> Option<Live<L>> {
        let place = self.places.get_mut(index)?;
        let live = place.live.take()?;
        place.cause = Some(cause);
        Some(live)
    }

    #[inline]
    pub(crate) fn get(&self, id: LinkId) -> Option<&Live<L>> {
        self.places
            .get(id.index as usize)
            .filter(|place| place.generation == id.generation)?
            .live
            .as_ref()
    }

    /// Why a link that is not up any more ended, as far as it is still known.
    pub(crate) fn end_of(&self, id: LinkId) -> Option<LinkEnd> {
        match self.places.get(id.index as usize) {
            Some(place) if place.generation == id.generation => match &place.live {
                Some(live) => live.lost.map(LinkEnd::Lost),
                None => Some(place.cause.unwrap_or(LinkEnd::ClosedHere)),
            },
            _ => Some(LinkEnd::Lost(LossCause::Closed)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LinkId, &Live<L>)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let id = LinkId {
                index: index as u32,
                generation: place.generation,
            };
            place.live.as_ref().map(|live| (id, live))
        })
    }

    pub(crate) fn by_token(&mut self, token: u64) -> Option<&mut Live<L>> {
        self.places
            .iter_mut()
            .filter_map(|place| place.live.as_mut())
            .find(|live| live.peer.token == token)
    }

    /// The links over which a packet could not be sent for lack of room.
    pub(crate) fn starving(&mut self) -> impl Iterator<Item = &mut Live<L>> {
        self.places
            .iter_mut()
            .filter_map(|place| place.live.as_mut())
            .filter(|live| live.starving)
    }

    /// The link to that destination, even if the peer is gone and only what it sent is left.
    pub(crate) fn to_or_from(&self, destination: &Destination) -> Option<LinkId> {
        self.to(destination).or_else(|| {
            self.iter()
                .find(|(_, live)| live.peer.destination == *destination)
                .map(|(id, _)| id)
        })
    }

    pub(crate) fn to(&self, destination: &Destination) -> Option<LinkId> {
        self.iter()
            .find(|(_, live)| live.lost.is_none() && live.peer.destination == *destination)
            .map(|(id, _)| id)
    }
}

impl<L: Link> Outlet<Area> for Links<L> {
    #[inline]
    fn payload_max_bytes(&self, link: LinkId) -> Option<usize> {
        self.get(link)
            .filter(|live| live.lost.is_none())
            .map(|live| live.link.payload_max_bytes())
    }

    #[inline(always)]
    fn offer(
        &mut self,
        link: LinkId,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        match self.places.get_mut(link.index as usize) {
            Some(Place {
                generation,
                live: Some(live),
                ..
            }) if *generation == link.generation && live.lost.is_none() => {
                let sent = live.link.try_send(header, metadata, parts);
                if let Err(Unsent::Full) = sent {
                    live.starving = true;
                }
                sent
            }
            _ => Err(Unsent::Gone),
        }
    }
}
