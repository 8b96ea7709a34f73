//! The transmit half and those who send by it: also while a message lies in the receive half.

use hamlyn_engine::limits::DIRECT_BYTES_MAX;
use hamlyn_engine::memory::{LinkId, TxLinks as _};
use hamlyn_engine::point::Point;
use hamlyn_engine::terminus::{PostError, SendHandle, TerminusId};
use hamlyn_engine::transmit::Message as EngineMessage;
use hamlyn_host::Host;

use super::ports::to_handler;
use super::{InboundOf, Interface, OutboundOf, TransmitEndOf};
use crate::error::SendError;
use crate::half::Half;
use crate::links::Links;
use crate::message::{Message, Target, compose_at};
use crate::outbound::Withheld;
use crate::peer::{LinkEnd, PeerIdentity, PeerLost};
use crate::processor::Processor;
use crate::ticket::Ticket;

/// Sends for a handler of messages, over one terminus, while the message lies where it came
/// ([`Interface::drain_messages`]). It moves no packets that come, and never waits.
pub struct Outbox<'a, H: Host> {
    outbound: &'a mut OutboundOf<H>,
    processor: Option<&'a Processor<TransmitEndOf<H>>>,
    links: &'a Links,
    terminus: TerminusId,
}

/// The longest payload of a packet of that link.
pub(super) fn packet_bytes_max<H: Host>(outbound: &OutboundOf<H>, link: LinkId) -> Option<usize> {
    outbound.read(|outbound| outbound.tx_links.payload_max_bytes(link))
}

impl<H: Host> Interface<H> {
    /// The receive half, and beside it a way to send.
    #[inline(always)]
    pub(super) fn halves(&mut self, terminus: TerminusId) -> (&mut InboundOf<H>, Outbox<'_, H>) {
        let outbox = Outbox {
            outbound: &mut self.outbound,
            processor: self.processor.as_ref(),
            links: &self.links,
            terminus,
        };
        (&mut self.inbound, outbox)
    }
}

impl<H: Host> Outbox<'_, H> {
    /// The longest payload of a packet of that link; nothing if the link has ended.
    pub fn packet_bytes_max(&self, link: LinkId) -> Option<usize> {
        packet_bytes_max::<H>(self.outbound, link)
    }

    /// Sends a message, or queues it: like [`Interface::try_send`], but if there is no room, nothing
    /// is done about it. A message to an attached region is sent as any other.
    pub fn send(
        &mut self,
        target: &Target,
        message: &Message<'_>,
    ) -> Result<Option<SendHandle>, SendError> {
        let length = message.data.len() as u64;
        let offset = target.ticket.place(message.offset, length)?;
        let posted = loop {
            match self.post_if_room(target, message, offset) {
                // Nobody waits.
                Ok(None) if self.press(target.link) => {}
                posted => break posted,
            }
        };
        posted.map_err(|error| match error {
            PostError::LinkGone => {
                let peer = target.ticket.destination;
                let end = self.links.end_to(target.link, &peer);
                let end = end.unwrap_or(LinkEnd::ClosedHere);
                PeerLost { peer, end }.into()
            }
            other => other.into(),
        })
    }

    /// The peer at the other end of a link: like [`Interface::identity_of`], for a handler that
    /// asks who sent its message.
    pub fn identity_of(&self, link: LinkId) -> Option<PeerIdentity> {
        self.links.identity(link)
    }

    /// Makes a ticket usable over that link, by which the message came: so a handler answers a peer
    /// that says where its answers go. Nothing if the link does not lead to the ticket's interface.
    pub fn target(&self, link: LinkId, ticket: &Ticket) -> Option<Target> {
        let leads_there = self.links.led_to(link, &ticket.destination)?;
        leads_there.then(|| Target::new(link, *ticket))
    }

    /// Posts a message to that offset. Nothing if there is no room for it at present.
    pub(super) fn post_if_room(
        &mut self,
        target: &Target,
        message: &Message<'_>,
        offset: u64,
    ) -> Result<Option<SendHandle>, PostError> {
        match self.post(target, message, offset) {
            Err(PostError::QueueFull) => Ok(None),
            // One packet goes as soon as the link has room.
            Err(PostError::TooLongToQueue { .. }) if self.is_one_packet(target, message) => {
                Ok(None)
            }
            posted => posted.map(Some),
        }
    }

    /// See [`Outbound::press`](crate::outbound::Outbound::press).
    #[cold]
    pub(super) fn press(&mut self, link: LinkId) -> bool {
        self.outbound.lock(|outbound| outbound.press(link))
    }

    fn is_one_packet(&self, target: &Target, message: &Message<'_>) -> bool {
        let payload_bytes = message.data.len() + message.metadata.len();
        let most = packet_bytes_max::<H>(self.outbound, target.link);
        most.is_some_and(|most| payload_bytes <= most)
    }

    /// The same of a message to a port, for a handler.
    #[inline(always)]
    pub fn send_message(
        &mut self,
        target: &Target,
        handler: u16,
        data: &[u8],
    ) -> Result<Option<SendHandle>, SendError> {
        if let Half::Own(outbound) = &mut *self.outbound
            && let Some(to) = target.port_for(data.len())
        {
            let sent =
                outbound.send_message_at_once(self.terminus, target.link, &to, handler, data);
            if sent.is_some() {
                return Ok(sent);
            }
        }
        self.send(target, &to_handler(handler, data))
    }

    /// Sends what goes at once, queues what may wait. With a network processor that transmits,
    /// all that may wait is queued for it, and only what is too long for that goes at once.
    #[inline(always)]
    fn post(
        &mut self,
        target: &Target,
        message: &Message<'_>,
        offset: u64,
    ) -> Result<SendHandle, PostError> {
        let Some(outbound) = self.outbound.own() else {
            return self.post_shared(&compose_at(target, message, offset), message);
        };
        let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
        let posting = || compose_at(target, message, offset);
        let (metadata, data) = (message.metadata, message.data);
        let posted = transmitter.post_made(self.terminus, posting, metadata, data, tx_links)?;
        Ok(posted.handle)
    }

    #[inline(never)]
    fn post_shared(
        &mut self,
        posting: &EngineMessage,
        message: &Message<'_>,
    ) -> Result<SendHandle, PostError> {
        let (terminus, metadata, data) = (self.terminus, message.metadata, message.data);
        if let Half::Lent(handoff_lock) = &*self.outbound {
            let mut outbound = handoff_lock.enter_soon();
            let outbound = &mut *outbound;
            let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
            let posted = transmitter.post(terminus, posting, metadata, data, tx_links)?;
            return Ok(posted.handle);
        }
        let is_left = data.len() <= DIRECT_BYTES_MAX;
        if is_left {
            H::passes(Point::HandedOver);
        }
        let (posted, has_broken) = self.outbound.lock(|outbound| {
            let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
            let posted = if is_left {
                transmitter.post(terminus, posting, metadata, data, &mut Withheld(tx_links))
            } else {
                transmitter.post(terminus, posting, metadata, data, tx_links)
            };
            (posted, tx_links.has_broken())
        });
        // It sends what was queued, and sees to links that were found broken. A message that found
        // no room gives it nothing to do: it would look in vain, wake this thread, and be woken
        // again.
        if let Some(processor) = self.processor
            && (posted.is_ok() || has_broken)
        {
            processor.exchange.post();
        }
        Ok(posted?.handle)
    }
}
