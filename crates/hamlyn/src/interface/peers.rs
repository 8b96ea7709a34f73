//! An interface and its peers: connecting, first contact (`Hamlyn 6.3`), and learning of losses.

use hamlyn_engine::memory::LinkId;
use hamlyn_host::waiter::Waiter;
use hamlyn_host::{Destination, Driver, Host, HostError, LossCause, Peer, Supply};
use hamlyn_link::udp_endpoint::ConnectionState;
use hamlyn_ring::overflow::{LogNews, LogUse, may_have_news};

use std::sync::atomic::Ordering;

use super::{Interface, TransmitEndOf};
use crate::event::{Direction, Event};
use crate::message::Target;
use crate::peer::{LinkEnd, PeerIdentity};
use crate::peer::{PeerLost, Undelivered};
use crate::processor::{DriverEvent, take_event};

/// Looks for the end of a lost link before another is given up on for want of room. One takes
/// several if much came over it.
const CLEARING_LOOKS: u32 = 64;

impl<H: Host> Interface<H> {
    /// Whether that link leads there, or led there before it ended; nothing if it ended so long ago
    /// that this is not known.
    pub(crate) fn led_to(&mut self, link: LinkId, destination: &Destination) -> Option<bool> {
        // A network processor may know of a link whose application does not.
        self.drain_events_if_asked();
        self.links.led_to(link, destination)
    }

    /// The peer at the other end of a link; also after its end, as long as no other link has its
    /// place.
    pub fn identity_of(&mut self, link: LinkId) -> Option<PeerIdentity> {
        if self.is_forked() {
            return None;
        }
        // A network processor may know of a link whose application does not.
        self.drain_events_if_asked();
        self.links.identity(link)
    }

    /// Counts the peers that came and went.
    pub(crate) fn peers_happened(&mut self) -> u64 {
        self.drain_events_if_asked();
        self.links.happened()
    }

    /// The link of that token, which the host has, or had: nothing if that is not known here yet,
    /// and no name if there is no link to its peer any more.
    pub(crate) fn link_of(&mut self, token: u64) -> Option<Option<LinkId>> {
        self.drain_events();
        self.links.by_token(token)
    }

    /// The network processor looks at what its host has to tell; false if there is none.
    pub(crate) fn wake_processor(&self) -> bool {
        let processor = self.processor.as_ref();
        processor
            .inspect(|processor| processor.exchange.wake())
            .is_some()
    }

    /// The link that leads there, if there is one.
    pub(crate) fn link_to(&mut self, destination: &Destination) -> Option<LinkId> {
        self.drain_events_if_asked();
        self.links.to(destination)
    }

    /// Takes what lost peers had sent, so that their links end; whether any did.
    #[cold]
    pub(crate) fn clear_links(&mut self) -> bool {
        let links = self.links.iter().count();
        for _ in 0..CLEARING_LOOKS {
            self.poll();
            if self.links.iter().count() < links {
                return true;
            }
        }
        false
    }

    /// The waiter of a program that sleeps until its network processor has news.
    pub(crate) fn news_waiter(&self) -> Option<&Waiter> {
        let processor = self.processor.as_ref()?;
        Some(&processor.exchange.waiter)
    }

    /// Ends the link to a peer. What was sent to it stays sent; what is queued for it fails.
    pub fn disconnect(&mut self, link: LinkId) {
        if self.is_forked() {
            return;
        }
        if self.links.contains(link) {
            self.inbound.lock(|inbound| inbound.remove(link));
            self.apply_event(DriverEvent::Ended(link, LinkEnd::ClosedHere));
            // Another task of this thread may wait for something of that peer.
            self.wake_sleepers_if_active();
        }
    }

    /// The peers that are linked.
    pub fn peers(&self) -> impl Iterator<Item = (LinkId, &Peer)> {
        self.links.iter()
    }

    /// How a link to another host is, and what its transport did: addresses, round trips, losses.
    /// Nothing if the link is gone, or leads to an interface of this host. Allocates; not for the
    /// path of a message.
    pub fn connection_state(&self, link: LinkId) -> Option<ConnectionState> {
        if self.is_forked() {
            return None;
        }
        self.outbound
            .read(|outbound| outbound.tx_links.connection_state(link))
    }

    /// Gives a link a number of the program's own, which is 0 before; false if there is no such
    /// link.
    pub fn set_link_context(&mut self, link: LinkId, context: u64) -> bool {
        !self.is_forked() && self.links.set_context(link, context)
    }

    /// The number of the program's own that the link has, also after its end, as long as no other
    /// link has its place; otherwise 0.
    pub fn link_context(&self, link: LinkId) -> u64 {
        self.links.context(link)
    }

    /// Why a link is not up, or nothing if it is.
    pub fn link_end(&self, link: LinkId) -> Option<LinkEnd> {
        self.links.end_of(link)
    }

    /// True if a link has ended and nothing more comes over it: everything that its peer had sent
    /// is in its place, though queues of it may still hold messages. So a program that asks this
    /// first, and then takes what there is until it finds nothing, has taken all.
    pub fn is_drained(&self, link: LinkId) -> bool {
        !self.links.contains(link)
    }

    /// The loss of that peer, if it is not long ago.
    pub(crate) fn recent_loss(&self, peer: &Destination) -> Option<PeerLost> {
        self.links.recent_loss(peer)
    }

    /// The next event, if there is one. Does not block. Losses of notifications are the queue's
    /// that lost them, and not told here.
    pub fn next_event(&mut self) -> Option<Event> {
        if self.is_forked() {
            return None;
        }
        self.drain_events_if_asked();
        let happened = self.links.next_event(&mut self.events_told);
        happened
            .or_else(|| self.next_undelivered().map(Event::Refused))
            .or_else(|| self.next_log_news())
    }

    fn next_log_news(&mut self) -> Option<Event> {
        let outgoing = self
            .outbound
            .lock(|outbound| outbound.tx_links.next_log_news());
        let (link, direction, news) = match outgoing {
            Some((link, news)) => (link, Direction::Outgoing, news),
            None => {
                if !may_have_news() {
                    return None;
                }
                let (link, news) = self.inbound.lock(|inbound| inbound.next_log_news())?;
                (link, Direction::Incoming, news)
            }
        };
        let peer = self.links.identity(link)?;
        Some(match news {
            LogNews::Drained => Event::Drained { peer, direction },
            LogNews::HalfFull {
                waiting_bytes,
                log_bytes: limit_bytes,
            } => Event::Buffering {
                peer,
                direction,
                waiting_bytes,
                limit_bytes,
            },
        })
    }

    /// The use that messages to a peer of this host have made of the memory that it lends for those
    /// which it does not take ([`Options::buffer_bytes_per_peer`]). Nothing if it lends none, or
    /// the link is gone. Does not allocate; not for the path of a message.
    ///
    /// [`Options::buffer_bytes_per_peer`]: crate::host::process::Options::buffer_bytes_per_peer
    pub fn log_use(&mut self, link: LinkId) -> Option<LogUse> {
        if self.is_forked() {
            return None;
        }
        self.outbound
            .lock(|outbound| outbound.tx_links.log_use(link))
    }

    pub(crate) fn lost(&mut self, target: &Target) -> PeerLost {
        // A fault that was found with the link is why it ended.
        self.end_broken();
        let peer = target.ticket.destination;
        PeerLost {
            peer,
            end: self.why_gone(target.link, &peer),
        }
    }

    /// The loss of the peer of a link that has ended, if it is known where that led.
    pub(crate) fn lost_over(&self, link: LinkId) -> Option<PeerLost> {
        let peer = self.links.destination(link)?;
        let end = self.why_gone(link, &peer);
        Some(PeerLost { peer, end })
    }

    /// Why nothing goes over that link, which led there.
    pub(super) fn why_gone(&self, link: LinkId, to: &Destination) -> LinkEnd {
        self.links
            .end_to(link, to)
            .or_else(|| self.end_on_wire(link))
            .unwrap_or(LinkEnd::ClosedHere)
    }

    /// A sender may find a link ended before anybody has told of it.
    fn end_on_wire(&self, link: LinkId) -> Option<LinkEnd> {
        let end = self.connection_state(link)?.end?;
        LossCause::of(end).map(LinkEnd::Lost)
    }

    /// A packet that was sent and not delivered: its receiver refused it, or (between hosts) its
    /// link ended before it was acknowledged; then it may have been delivered. Each is told once,
    /// on one host and between hosts, at the latest when a fence that follows it is answered
    /// ([`Session::fence`](crate::Session::fence)). Does not block. On one host a refusal alone
    /// does not wake a sender that sleeps; a fence does when it is answered.
    ///
    /// Until the program fetches them, the newest of each link are kept, 1,024 between hosts and 63
    /// on one host, and the others counted ([`Interface::undelivered_forgotten`]). On one host the
    /// receiver itself reports what it refused; a receiver that lies can hide or invent refusals of
    /// what was sent to it, and nothing else.
    pub fn next_undelivered(&mut self) -> Option<Undelivered> {
        if self.is_forked() {
            return None;
        }
        Some(self.next_returned()?.0)
    }

    /// The same with the number of the program's own that the link has, or had when it ended.
    pub(super) fn next_returned(&mut self) -> Option<(Undelivered, u64)> {
        let links = &self.links;
        let (returned, has_broken) = self.outbound.lock(|outbound| {
            let returned = outbound.tx_links.next_returned(links);
            (returned, outbound.tx_links.has_broken())
        });
        if has_broken {
            self.end_broken();
        }
        returned
    }

    /// How many packets were not delivered, were not fetched by [`Interface::next_undelivered`],
    /// and were forgotten because there were too many. Allocates; not for the path of a message.
    pub fn undelivered_forgotten(&self) -> u64 {
        if self.is_forked() {
            return 0;
        }
        self.outbound.read(|outbound| outbound.tx_links.forgotten())
    }

    /// The number of packets of that link which may come back between two looks at
    /// [`Interface::next_undelivered`], so that none is forgotten: 63 on one host, 1,024 between
    /// hosts. Nothing if the link has ended.
    pub fn undelivered_kept(&self, link: LinkId) -> Option<u64> {
        self.order(link).map(|(kept, _)| kept)
    }

    /// True if the peer of that link takes packets in the order in which they were sent, so that a
    /// message tells of those before it. Between hosts it does not: there a
    /// [fence](Interface::track_fence) tells. False if the link has ended.
    pub fn keeps_order(&self, link: LinkId) -> bool {
        self.order(link).is_some_and(|(_, keeps)| keeps)
    }

    fn order(&self, link: LinkId) -> Option<(u64, bool)> {
        match self.is_forked() {
            true => None,
            false => self.outbound.read(|outbound| outbound.tx_links.order(link)),
        }
    }

    /// Offers 1 to 1024 bytes, the ticket of a well-known slot or a seed say, to any peer that asks
    /// for `item`, so that a program that knows only a name can make contact (`Hamlyn 6.3`).
    ///
    /// With [`Supply::Once`] one asker gets the bytes, and several offers of the same name queue
    /// up; offer so a ticket that only one peer should have. With [`Supply::Always`] every asker
    /// gets them, and they replace all that was offered under the name before. Every peer that may
    /// be linked to this interface may ask. The control thread answers while this program computes.
    pub fn offer(&mut self, item: &str, supply: Supply, bytes: &[u8]) -> Result<(), HostError> {
        self.check()?;
        self.host.offer(item, supply, bytes)
    }

    /// Offers one of `most` places under `item` ([`Host::offer_place`]); its number.
    pub(crate) fn offer_place(
        &mut self,
        item: &str,
        most: u32,
        bytes: &[u8],
    ) -> Result<u64, HostError> {
        self.check()?;
        self.host.offer_place(item, most, bytes)
    }

    /// A place is free again.
    pub(crate) fn return_place(&mut self, item: &str, place: u64) {
        if !self.is_forked() {
            self.host.return_place(item, place);
        }
    }

    /// There is no room for another place under `item`.
    pub(crate) fn run_short(&mut self, item: &str) {
        if !self.is_forked() {
            self.host.run_short(item);
        }
    }

    /// Takes back all offers under `item`. Peers that were given one keep it.
    pub fn withdraw(&mut self, item: &str) {
        if self.is_forked() {
            return;
        }
        self.host.withdraw(item);
    }

    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.attention.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn drain_events_if_asked(&mut self) {
        if self.is_asked() {
            self.drain_events();
        }
    }

    /// Hears what there is to hear: from the host, or from the network processor.
    #[cold]
    #[inline(never)]
    pub(super) fn drain_events(&mut self) {
        if self.is_interrupt {
            return;
        }
        loop {
            let news = if let Some(driver) = &mut self.driver {
                let Some(event) = driver.next_event() else {
                    break;
                };
                self.inbound.lock(|inbound| take_event(inbound, event))
            } else if let Some(processor) = &self.processor {
                let Some(news) = processor.exchange.next_event() else {
                    break;
                };
                Some(news)
            } else {
                break;
            };
            self.other_activity += 1;
            if let Some(news) = news {
                self.apply_event(news);
            }
        }
        self.end_broken();
        self.close_remains();
        self.wake_sleepers_if_active();
    }

    /// Ends links whose peers were found to break the rules while we sent.
    #[cold]
    pub(super) fn end_broken(&mut self) {
        if self.is_interrupt {
            return;
        }
        while let Some((id, fault)) = self
            .outbound
            .lock(|outbound| outbound.tx_links.next_broken())
        {
            self.inbound.lock(|inbound| inbound.remove(id));
            self.apply_event(DriverEvent::Ended(id, LinkEnd::Fault(fault)));
        }
        self.wake_sleepers_if_active();
    }

    /// Ends links that ended while we received.
    #[cold]
    pub(super) fn end_ended(&mut self) {
        if self.is_interrupt {
            return;
        }
        // What the network processor told before is older: a link is known before it ends.
        self.drain_events();
        while let Some((id, end)) = self.inbound.lock(|inbound| inbound.next_ended()) {
            self.apply_event(DriverEvent::Ended(id, end));
        }
    }

    /// Nothing goes over that link any more.
    fn stop_sending(&mut self, link: LinkId) {
        let (to, context) = (self.links.destination(link), self.links.context(link));
        self.outbound
            .lock(|outbound| outbound.remove(link, to, context));
    }

    /// The receive half knows it already.
    fn apply_event(&mut self, event: DriverEvent<TransmitEndOf<H>>) {
        match event {
            DriverEvent::Linked(id, peer, transmit) => {
                if let Some(transmit) = transmit {
                    self.outbound
                        .lock(|outbound| outbound.tx_links.insert(id, transmit));
                }
                self.links.insert(id, peer);
            }
            DriverEvent::Lost(id, cause) => {
                self.ends_and_looks += 1;
                self.stop_sending(id);
                // Failures are not remembered for ever.
                self.complete_sends(usize::MAX);
                self.attached.end_of(id);
                self.note_regions();
                self.links.lose(id, cause);
            }
            DriverEvent::Ended(id, end) => {
                self.other_activity += 1;
                self.ends_and_looks += 1;
                self.stop_sending(id);
                // Failures are not remembered for ever.
                self.complete_sends(usize::MAX);
                self.inbound.lock(|inbound| inbound.release(id));
                self.end_regions_with(id);
                self.attached.end_of(id);
                self.note_regions();
                if let Some(peer) = self.links.end(id, end) {
                    tracing::debug!(peer = ?peer.destination, %end, "link closed");
                    self.host.disconnect(peer.token);
                    // The host has no more to tell; end points may have.
                    self.close_remains();
                }
            }
        }
    }
}
