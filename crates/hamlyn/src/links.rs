//! Who an interface is linked to, and how links ended: the application's view of them.

use std::collections::VecDeque;

use hamlyn_engine::memory::LinkId;
use hamlyn_host::{Destination, LossCause, Peer};

use crate::event::Event;
use crate::peer::{LinkEnd, PeerIdentity, PeerLost};

/// Arrivals and departures that are remembered for those who have not asked yet.
const EVENTS_KEPT: usize = 256;

/// A link in use.
struct Linked {
    peer: Peer,
    /// The peer is gone; what it sent is still to be taken.
    lost: Option<LossCause>,
}

#[derive(Default)]
struct LinkEntry {
    generation: u32,
    linked: Option<Linked>,
    /// Why the last link of this place ended.
    cause: Option<LinkEnd>,
    /// To whom it leads, or led.
    to: Option<PeerIdentity>,
    /// A number of the program's own.
    context: u64,
}

/// A peer came, or is gone.
#[derive(Clone, Copy)]
struct Happened {
    peer: PeerIdentity,
    /// The host's name of the link.
    token: u64,
    end: Option<LinkEnd>,
}

/// All links of an interface, and who came and went lately.
pub(crate) struct Links {
    places: Vec<LinkEntry>,
    happened: VecDeque<Happened>,
    /// How much has happened so far.
    count: u64,
    /// The number of this host, if it has one.
    here: u32,
}

impl Links {
    pub(crate) fn new(here: u32) -> Self {
        Self {
            here,
            places: Vec::new(),
            happened: VecDeque::with_capacity(EVENTS_KEPT),
            count: 0,
        }
    }

    /// A new link, under the name that the receive half gave it.
    pub(crate) fn insert(&mut self, id: LinkId, peer: Peer) {
        let index = id.index as usize;
        if self.places.len() <= index {
            self.places.resize_with(index + 1, LinkEntry::default);
        }
        let identity = PeerIdentity {
            link: id,
            interface: peer.destination,
            group: peer.group,
            process: peer.process,
        };
        self.note(identity, peer.token, None);
        self.places[index] = LinkEntry {
            to: Some(identity),
            generation: id.generation,
            linked: Some(Linked { peer, lost: None }),
            cause: None,
            context: 0,
        };
    }

    pub(crate) fn set_context(&mut self, id: LinkId, context: u64) -> bool {
        let place = self.at_mut(id);
        place.map(|place| place.context = context).is_some()
    }

    pub(crate) fn context(&self, id: LinkId) -> u64 {
        self.at(id).map_or(0, |place| place.context)
    }

    fn at(&self, id: LinkId) -> Option<&LinkEntry> {
        self.places
            .get(id.index as usize)
            .filter(|place| place.generation == id.generation)
    }

    fn at_mut(&mut self, id: LinkId) -> Option<&mut LinkEntry> {
        self.places
            .get_mut(id.index as usize)
            .filter(|place| place.generation == id.generation)
    }

    /// The peer is lost; what it sent is still to be taken.
    pub(crate) fn lose(&mut self, id: LinkId, cause: LossCause) {
        if let Some(place) = self.at_mut(id)
            && let Some(linked) = &mut place.linked
            && linked.lost.is_none()
            && let Some(peer) = place.to
        {
            linked.lost = Some(cause);
            let token = linked.peer.token;
            self.note(peer, token, Some(LinkEnd::Lost(cause)));
        }
    }

    /// The link has ended. Its peer, which the host may forget.
    pub(crate) fn end(&mut self, id: LinkId, end: LinkEnd) -> Option<Peer> {
        let place = self.at_mut(id)?;
        let linked = place.linked.take()?;
        place.cause = Some(end);
        if linked.lost.is_none()
            && let Some(peer) = place.to
        {
            self.note(peer, linked.peer.token, Some(end));
        }
        Some(linked.peer)
    }

    fn note(&mut self, peer: PeerIdentity, token: u64, end: Option<LinkEnd>) {
        if self.happened.len() == EVENTS_KEPT {
            self.happened.pop_front();
        }
        self.happened.push_back(Happened { peer, token, end });
        self.count += 1;
    }

    /// Counts who came and went.
    pub(crate) fn happened(&self) -> u64 {
        self.count
    }

    /// The peer of a link, unless it is lost.
    pub(crate) fn peer(&self, id: LinkId) -> Option<&Peer> {
        let linked = self.at(id)?.linked.as_ref()?;
        linked.lost.is_none().then_some(&linked.peer)
    }

    /// To whom a link leads, or led, if its place has not been taken by another.
    pub(crate) fn identity(&self, id: LinkId) -> Option<PeerIdentity> {
        self.at(id)?.to
    }

    /// Where a link leads, or led.
    pub(crate) fn destination(&self, id: LinkId) -> Option<Destination> {
        Some(self.identity(id)?.interface)
    }

    /// Whether both are the same interface. A destination may name this host by its number; without
    /// one, it is on this host.
    fn are_same(&self, one: &Destination, other: &Destination) -> bool {
        let plain = |node: u32| if node == self.here { 0 } else { node };
        let is_same_node = self.here == 0 || plain(one.node) == plain(other.node);
        is_same_node && one.interface == other.interface && one.user == other.user
    }

    /// Whether there is a link of that name, if only with what a lost peer sent.
    pub(crate) fn contains(&self, id: LinkId) -> bool {
        self.at(id).is_some_and(|place| place.linked.is_some())
    }

    /// Why a link is not up, or nothing if it is.
    pub(crate) fn end_of(&self, id: LinkId) -> Option<LinkEnd> {
        match self.at(id) {
            Some(LinkEntry {
                linked: Some(linked),
                ..
            }) => linked.lost.map(LinkEnd::Lost),
            Some(place) => Some(place.cause.unwrap_or(LinkEnd::ClosedHere)),
            None => Some(LinkEnd::Lost(LossCause::Closed)),
        }
    }

    /// Why a link that led there is not up, though its place may be another's by now.
    pub(crate) fn end_to(&self, id: LinkId, to: &Destination) -> Option<LinkEnd> {
        let recent = || Some(self.recent_loss(to)?.end);
        match self.at(id) {
            Some(_) => self.end_of(id),
            None => recent().or_else(|| self.end_of(id)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LinkId, &Peer)> {
        self.living().map(|(id, linked)| (id, &linked.peer))
    }

    fn living(&self) -> impl Iterator<Item = (LinkId, &Linked)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let id = LinkId {
                index: index as u32,
                generation: place.generation,
            };
            place.linked.as_ref().map(|linked| (id, linked))
        })
    }

    /// The link of that token, or another one to its peer if it has ended lately: nothing if that
    /// has not been heard of, and no name if there is none.
    pub(crate) fn by_token(&self, token: u64) -> Option<Option<LinkId>> {
        let is_it =
            |(_, linked): &(LinkId, &Linked)| linked.peer.token == token && linked.lost.is_none();
        if let Some((link, _)) = self.living().find(is_it) {
            return Some(Some(link));
        }
        let has_ended = |happened: &&Happened| happened.token == token && happened.end.is_some();
        let ended = self.happened.iter().find(has_ended)?;
        Some(self.to(&ended.peer.interface))
    }

    /// The link to that destination.
    pub(crate) fn to(&self, destination: &Destination) -> Option<LinkId> {
        self.living()
            .find(|(_, linked)| {
                linked.lost.is_none() && self.are_same(&linked.peer.destination, destination)
            })
            .map(|(id, _)| id)
    }

    /// Whether that link leads there, or led there before it ended; nothing if it ended so long ago
    /// that this is not known.
    pub(crate) fn led_to(&self, id: LinkId, destination: &Destination) -> Option<bool> {
        let to = self.destination(id)?;
        Some(self.are_same(&to, destination))
    }

    /// The loss of that peer, if it is not long ago.
    pub(crate) fn recent_loss(&self, peer: &Destination) -> Option<PeerLost> {
        let mut latest = self.happened.iter().rev();
        latest.find_map(|happened| {
            let lost = PeerLost {
                peer: happened.peer.interface,
                end: happened.end?,
            };
            self.are_same(&lost.peer, peer).then_some(lost)
        })
    }

    /// What happened next that the caller has not seen; `seen` counts on.
    pub(crate) fn next_event(&self, seen: &mut u64) -> Option<Event> {
        let oldest = self.count - self.happened.len() as u64;
        if *seen < oldest {
            let count = oldest - *seen;
            *seen = oldest;
            return Some(Event::Missed { count });
        }
        let &Happened { peer, end, .. } = self.happened.get((*seen - oldest) as usize)?;
        *seen += 1;
        Some(match end {
            None => Event::PeerArrived { peer },
            Some(end) => Event::PeerLeft { peer, end },
        })
    }
}
