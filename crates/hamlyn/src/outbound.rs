//! The transmit half of an interface: the engine's, and the transmitting ends of the links. It
//! knows nothing of who calls it.

mod ended;
mod offering;
mod route;
mod routes;

use hamlyn_engine::limits::SHORT_BYTES_MAX;
use hamlyn_engine::memory::{LinkId, TxLinks};
use hamlyn_engine::packet::PortAddress;
use hamlyn_engine::send_observer::SendObserver;
use hamlyn_engine::terminus::{SendHandle, TerminusId};
use hamlyn_engine::transmit::Transmitter;
use hamlyn_host::Destination;
use hamlyn_link::TransmitEnd;
use hamlyn_ring::area::Area;

use crate::half::Lendable;
use crate::message::{Message, Target, compose_at};
use crate::region::PLACED_BYTES_MIN;

pub(crate) use offering::Withheld;
pub(crate) use route::NewlyRefused;
use routes::TxRoutes;

/// Packets of queued messages sent at a time.
const BURST_PACKETS: usize = 64;
/// See the module.
pub(crate) struct Outbound<T, S> {
    pub(crate) transmitter: Transmitter<Area, S>,
    pub(crate) tx_links: TxRoutes<T>,
    /// Regions are attached: a message may have to be stored in one.
    pub(crate) has_regions: bool,
}

impl<T: TransmitEnd, S: SendObserver<Area>> Lendable for Outbound<T, S> {
    #[inline(always)]
    fn is_pending(&self) -> bool {
        self.transmitter.is_waiting() || self.tx_links.has_broken()
    }
}

impl<T: TransmitEnd, S: SendObserver<Area>> Outbound<T, S> {
    pub(crate) fn new(observer: S) -> Self {
        Self {
            transmitter: Transmitter::observed(observer),
            tx_links: TxRoutes::new(),
            has_regions: false,
        }
    }

    /// Sends a message that is one packet, if nothing stands in its way.
    #[inline(always)]
    pub(crate) fn send_at_once(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Option<SendHandle> {
        let (transmitter, tx_links) = (&mut self.transmitter, &mut self.tx_links);
        match target.inline_form(message) {
            Some(form) => {
                let short = target.short(message, form);
                transmitter.post_short(terminus, target.link, short, tx_links)
            }
            None => self.send_longer_at_once(terminus, target, message),
        }
    }

    /// The same of a message that needs more than one cell.
    #[inline(always)]
    pub(crate) fn send_longer_at_once(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Option<SendHandle> {
        let (transmitter, tx_links) = (&mut self.transmitter, &mut self.tx_links);
        if let Some(short) = target.in_cells(message) {
            let data = message.data;
            let sent = transmitter.post_in_cells(terminus, target.link, &short, data, tx_links);
            if sent.is_some() {
                return sent;
            }
        }
        if !message.metadata.is_empty() {
            return None;
        }
        let length_bytes = message.data.len() as u64;
        let offset = target.ticket.place(message.offset, length_bytes).ok()?;
        let posting = || compose_at(target, message, offset);
        transmitter.post_at_once(terminus, posting, message.data, tx_links)
    }

    /// Sends a message to a port, for a handler, in cells, if nothing stands in its way.
    #[inline(always)]
    pub(crate) fn send_message_at_once(
        &mut self,
        terminus: TerminusId,
        link: LinkId,
        to: &PortAddress,
        handler: u16,
        data: &[u8],
    ) -> Option<SendHandle> {
        let (transmitter, tx_links) = (&mut self.transmitter, &mut self.tx_links);
        transmitter.post_message(terminus, link, to, handler, data, tx_links)
    }

    /// True if a message of that length to a port goes so when there is room for it, and if nothing
    /// waits before it.
    pub(crate) fn may_go_in_cells(&self, link: LinkId, length_bytes: usize) -> bool {
        let most = self.tx_links.cells_bytes_max(link);
        most > 0 && length_bytes as u64 <= most && !self.transmitter.is_waiting_for(link)
    }

    /// True if a message of that length may have to be stored in a region.
    #[inline(always)]
    pub(crate) fn may_place(&self, length_bytes: usize) -> bool {
        self.has_regions && length_bytes as u64 >= PLACED_BYTES_MIN
    }

    /// True if such a message goes so when there is room for it, and if nothing waits before it.
    pub(crate) fn may_go_at_once(&self, target: &Target, message: &Message<'_>) -> bool {
        let link = target.link;
        if self.transmitter.is_waiting_for(link) || self.may_place(message.data.len()) {
            return false;
        }
        let is_in_cells =
            || target.inline_form(message).is_some() || target.in_cells(message).is_some();
        if self.tx_links.cells_bytes_max(link) > 0 && is_in_cells() {
            return true;
        }
        let length_bytes = message.data.len();
        let most = self.tx_links.payload_max_bytes(link).unwrap_or(0);
        message.metadata.is_empty() && (SHORT_BYTES_MAX + 1..=most).contains(&length_bytes)
    }

    /// Has messages to that link go that are held back ([`TransmitEnd::press`]), and sends what is
    /// queued. False if none are.
    #[cold]
    pub(crate) fn press(&mut self, link: LinkId) -> bool {
        let is_held_back = self
            .tx_links
            .reach(link)
            .is_some_and(|route| route.end.press());
        if is_held_back {
            self.pump();
        }
        is_held_back
    }

    /// The same for that link, or for all, where something is queued.
    pub(crate) fn press_queued(&mut self, link: Option<LinkId>) -> bool {
        let transmitter = &self.transmitter;
        let is_meant = |to| link.is_none_or(|link| link == to) && transmitter.is_waiting_for(to);
        let is_held_back = self.tx_links.press(is_meant);
        // More than a burst may have room now.
        while is_held_back && self.pump() > 0 {}
        is_held_back
    }

    /// A link has ended, which led there and has that number of the program's: nothing goes to it
    /// any more, and what waits for it fails.
    pub(crate) fn remove(&mut self, id: LinkId, to: Option<Destination>, context: u64) {
        let may_be_placed = !self.transmitter.is_waiting_for(id);
        self.tx_links.remove(id, (to, context), may_be_placed);
        self.transmitter.link_ended(id);
    }

    /// Gives back memory that links and work queues do not need, if nothing was sent for a while.
    /// To be called before sleeping; if there is something to give that is still too fresh, returns
    /// when to call again.
    pub(crate) fn give_back_if_idle(&mut self, now_ns: u64) -> Option<u64> {
        let has_spare = self.transmitter.has_spare();
        let due_ns = self.tx_links.give_back_if_idle(now_ns, has_spare);
        if has_spare && due_ns.is_none() {
            self.transmitter.shrink();
        }
        due_ns
    }

    /// Sends what is queued, a burst at most; how many packets.
    #[inline]
    pub(crate) fn pump(&mut self) -> usize {
        match self.transmitter.is_waiting() {
            true => self.pump_waiting(),
            false => 0,
        }
    }

    #[inline(never)]
    fn pump_waiting(&mut self) -> usize {
        let pumped = self.transmitter.pump(&mut self.tx_links, BURST_PACKETS);
        // If more follows at once, it may go with what waits.
        if !pumped.waiting || pumped.packets < BURST_PACKETS {
            self.tx_links.hand_over();
        }
        pumped.packets
    }
}
