//! The transmit half of an interface: the engine's, and the transmitting ends of the links. It
//! knows nothing of who calls it.

use hamlyn_engine::memory::{LinkId, Outlet, Part, Unsent};
use hamlyn_engine::packet::{Header, Short};
use hamlyn_engine::transmit::Transmitter;
use hamlyn_link::{LinkFault, TransmitEnd};
use hamlyn_ring::area::Area;

/// Packets of queued messages sent at a time.
const BURST_PACKETS: usize = 64;
/// How long nothing must have been sent before memory that was needed is given back. Much longer
/// than the pauses of a conversation: to give memory back and to get it again takes as long as many messages.
const SPARE_NS: u64 = 100_000_000;

/// See the module.
pub(crate) struct Outbound<T> {
    pub(crate) transmitter: Transmitter<Area>,
    pub(crate) outlets: Outlets<T>,
}

impl<T: TransmitEnd> Outbound<T> {
    pub(crate) fn new() -> Self {
        Self {
            transmitter: Transmitter::new(),
            outlets: Outlets {
                places: Vec::new(),
                broken: Vec::new(),
                sent_seen: 0,
                idle_since_ns: 0,
            },
        }
    }

    /// Sends what is queued, a burst at most; how many packets.
    pub(crate) fn pump(&mut self) -> usize {
        if !self.transmitter.is_waiting() {
            return 0;
        }
        self.transmitter
            .pump(&mut self.outlets, BURST_PACKETS)
            .packets
    }
}

struct Place<T> {
    /// The generation of the link that is here and whose peer is not lost; else zero.
    sendable: u32,
    /// A packet found no room, and none has come since.
    starving: bool,
    end: Option<T>,
}

/// The links that packets go to.
pub(crate) struct Outlets<T> {
    places: Vec<Place<T>>,
    /// Links whose peer broke the rules, and that nobody was told of yet.
    broken: Vec<(LinkId, LinkFault)>,
    /// Packets sent over all links when that was last looked at.
    sent_seen: u64,
    /// Since when it was so.
    idle_since_ns: u64,
}

impl<T: TransmitEnd> Outlets<T> {
    /// A new link, under the name that the receive half gave it.
    pub(crate) fn insert(&mut self, id: LinkId, end: T) {
        let index = id.index as usize;
        while self.places.len() <= index {
            self.places.push(Place {
                sendable: 0,
                starving: false,
                end: None,
            });
        }
        self.broken.reserve(self.places.len());
        self.places[index] = Place {
            sendable: id.generation,
            starving: false,
            end: Some(end),
        };
    }

    /// Nothing goes to this link any more; its end is dropped.
    pub(crate) fn remove(&mut self, id: LinkId) {
        if let Some(place) = self.places.get_mut(id.index as usize)
            && place.sendable == id.generation
        {
            place.sendable = 0;
            place.end = None;
        }
    }

    /// A link whose peer was found to break the rules since this was last called.
    pub(crate) fn next_broken(&mut self) -> Option<(LinkId, LinkFault)> {
        self.broken.pop()
    }

    /// Whether [`Outlets::next_broken`] has something.
    #[inline]
    pub(crate) fn has_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// For who is about to sleep: those links that had no room are to wake him when they have. True if
    /// one has room already: then there is something to do.
    pub(crate) fn await_credit(&mut self) -> bool {
        let mut came = false;
        for place in &mut self.places {
            if let Some(end) = &mut place.end
                && place.starving
            {
                if end.credit_came() {
                    place.starving = false;
                    came = true;
                } else {
                    end.await_credit();
                }
            }
        }
        came
    }

    /// Whether a link that had no room may have some.
    pub(crate) fn credit_came(&self) -> bool {
        let came = |place: &Place<T>| {
            place.starving && place.end.as_ref().is_some_and(TransmitEnd::credit_came)
        };
        self.places.iter().any(came)
    }

    /// Gives back memory that links do not need, if nothing was sent for a while. To be called
    /// before sleeping; if there is something to give that is still too fresh, returns when to call again.
    pub(crate) fn give_back_if_idle(&mut self, now_ns: u64) -> Option<u64> {
        let ends = self
            .places
            .iter_mut()
            .filter_map(|place| place.end.as_mut());
        let (mut sent, mut has_spare) = (0_u64, false);
        for end in ends {
            sent = sent.wrapping_add(end.sent());
            has_spare |= end.has_spare();
        }
        if !has_spare {
            return None;
        }
        if sent != self.sent_seen {
            (self.sent_seen, self.idle_since_ns) = (sent, now_ns);
        }
        let due_ns = self.idle_since_ns.saturating_add(SPARE_NS);
        if now_ns < due_ns {
            return Some(due_ns);
        }
        for place in &mut self.places {
            if let Some(end) = &mut place.end {
                end.give_back();
            }
        }
        // What the peer has not returned yet can be given the next time.
        self.idle_since_ns = now_ns;
        None
    }

    #[cold]
    #[inline(never)]
    fn not_sent(&mut self, link: LinkId, reason: Unsent) -> Unsent {
        if let Some(place) = self.places.get_mut(link.index as usize)
            && let Some(end) = &place.end
        {
            match reason {
                Unsent::Full => place.starving = true,
                Unsent::Gone => {
                    if let Some(fault) = end.fault() {
                        self.broken.push((link, fault));
                        place.sendable = 0;
                        place.end = None;
                    }
                }
            }
        }
        reason
    }

    #[inline(always)]
    fn sendable(&mut self, link: LinkId) -> Option<&mut T> {
        match self.places.get_mut(link.index as usize) {
            Some(place) if place.sendable == link.generation => place.end.as_mut(),
            _ => None,
        }
    }
}

impl<T: TransmitEnd> Outlet<Area> for Outlets<T> {
    #[inline]
    fn payload_max_bytes(&self, link: LinkId) -> Option<usize> {
        self.places
            .get(link.index as usize)
            .filter(|place| place.sendable == link.generation)?
            .end
            .as_ref()
            .map(TransmitEnd::payload_max_bytes)
    }

    #[inline(always)]
    fn offer_short(&mut self, link: LinkId, short: &Short) -> Result<(), Unsent> {
        let Some(end) = self.sendable(link) else {
            return Err(Unsent::Gone);
        };
        match end.try_send_short(short) {
            Ok(()) => Ok(()),
            Err(reason) => Err(self.not_sent(link, reason)),
        }
    }

    #[inline]
    fn offer(
        &mut self,
        link: LinkId,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        let Some(end) = self.sendable(link) else {
            return Err(Unsent::Gone);
        };
        match end.try_send(header, metadata, parts) {
            Ok(()) => Ok(()),
            Err(reason) => Err(self.not_sent(link, reason)),
        }
    }
}

/// The links as seen by whoever only queues: there is never room. What is queued, the network
/// processor sends.
pub(crate) struct Withheld<'a, T>(pub(crate) &'a Outlets<T>);

impl<T: TransmitEnd> Outlet<Area> for Withheld<'_, T> {
    fn payload_max_bytes(&self, link: LinkId) -> Option<usize> {
        self.0.payload_max_bytes(link)
    }

    fn offer(
        &mut self,
        _: LinkId,
        _: &Header,
        _: &[u8],
        _: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        Err(Unsent::Full)
    }
}
