//! The transmit half of an interface: the engine's, and the transmitting ends of the links. It
//! knows nothing of who calls it.

use std::collections::VecDeque;

use hamlyn_engine::limits::SHORT_BYTES_MAX;
use hamlyn_engine::memory::{LinkId, Part, TxLinks, Unsent};
use hamlyn_engine::operation::ShortRequest;
use hamlyn_engine::packet::{Header, Kind, PortAddress, Short, SlotName};
use hamlyn_engine::point::Point;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::send_observer::SendObserver;
use hamlyn_engine::terminus::{SendHandle, TerminusId};
use hamlyn_engine::transmit::Transmitter;
use hamlyn_engine::transport::Return;
use hamlyn_host::Destination;
use hamlyn_link::udp_endpoint::ConnectionState;
use hamlyn_link::{LinkFault, TransmitEnd};
use hamlyn_ring::area::Area;
use hamlyn_ring::overflow::{LogNews, LogUse};

use crate::cached_table::CachedTable;
use crate::half::Lendable;
use crate::links::Links;
use crate::message::{Message, Target, compose_at};
use crate::peer::Undelivered;
use crate::region::PLACED_BYTES_MIN;

/// Packets of queued messages sent at a time.
const BURST_PACKETS: usize = 64;
/// How long nothing must have been sent before memory that was needed is given back. Much longer
/// than the pauses of a conversation: to give memory back and to get it again takes as long as many
/// messages.
const SPARE_NS: u64 = 100_000_000;

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
            tx_links: TxRoutes {
                routes: CachedTable::new(),
                broken: Vec::new(),
                credit_waits: 0,
                is_awaiting: false,
                sent_seen: 0,
                idle_since_ns: 0,
                returned: VecDeque::new(),
                forgotten: 0,
                holding: Vec::new(),
                ended: Ended::default(),
                is_interrupt: false,
                is_reserved: false,
            },
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
        let mut is_held_back = false;
        for route in self.tx_links.routes.iter_mut() {
            let to = LinkId::from_bits(route.link);
            if link.is_none_or(|link| link == to) && transmitter.is_waiting_for(to) {
                is_held_back |= route.end.press();
            }
        }
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

/// A link that packets go to.
struct TxRoute<T> {
    /// Its name, as a number.
    link: u64,
    /// A packet found no room, and none has come since.
    needs_credit: bool,
    /// The first fence that a call waits for.
    fence: Option<u64>,
    /// The program was told that messages wait in the overflow log of the peer.
    told_of_log: bool,
    /// Refused packets that fences have told of.
    told: u64,
    /// Packets that came back, and that the program has not asked for yet.
    returned: VecDeque<(Header, Return)>,
    /// Places that are not there any more, as packets said that came back lately: slots, and with
    /// `true` ports.
    gone: VecDeque<(SlotName, bool)>,
    end: T,
}

/// Places that are remembered to be gone, for each link.
const GONE_MAX: usize = 64;

impl<T: TransmitEnd> TxRoute<T> {
    /// A call waits for the answer to that fence. True if none did that comes as soon.
    fn await_answer(&mut self, fence: u64) -> bool {
        let is_first = self.fence.is_none_or(|awaited| fence < awaited);
        if is_first {
            self.fence = Some(fence);
        }
        is_first
    }

    /// The next packet that came back, from the link.
    fn fetch_returned(&mut self) -> Option<(Header, Return)> {
        let (header, reason) = self.end.next_returned()?;
        let is_gone = matches!(
            reason,
            Return::Refused(
                Refusal::NoSuchSlot | Refusal::SlotClosed | Refusal::SlotRevoked | Refusal::BadKey
            )
        );
        // A port may have the number of a slot.
        let place = (header.slot, header.kind == Kind::MESSAGE);
        if is_gone && !self.gone.contains(&place) {
            self.gone.truncate(GONE_MAX - 1);
            self.gone.push_front(place);
        }
        Some((header, reason))
    }
}

/// The links that packets go to. The one that had the last packet is at hand.
pub(crate) struct TxRoutes<T> {
    routes: CachedTable<TxRoute<T>>,
    /// Links whose peer broke the rules, and that were not reported yet.
    broken: Vec<(LinkId, LinkFault)>,
    /// How often a link ran out of room, or had an answer to be waited for: what a sleep that was
    /// announced before does not know.
    pub(crate) credit_waits: u64,
    /// Something was announced by the last [`TxRoutes::await_credit`].
    pub(crate) is_awaiting: bool,
    /// Packets sent over all links when that was last looked at.
    sent_seen: u64,
    /// Since when it was so.
    idle_since_ns: u64,
    /// Packets that came back over links that have ended, and that the program has not asked for
    /// yet.
    returned: VecDeque<(Undelivered, u64)>,
    /// Packets that came back over links that are gone and were forgotten.
    forgotten: u64,
    /// Links in which packets wait for others.
    holding: Vec<LinkId>,
    pub(crate) ended: Ended,
    /// A signal handler sends: links end later.
    pub(crate) is_interrupt: bool,
    /// Memory is reserved for each link, so that packets are sent without allocation.
    is_reserved: bool,
}

/// Packets that were refused and that no fence has told of: how many, and the last.
#[derive(Clone, Copy, Default)]
pub(crate) struct NewlyRefused {
    pub(crate) packets: u64,
    pub(crate) last: Option<(Header, Return)>,
}

/// What was refused since a fence told of it. Nothing while the peer overwrites its reports faster
/// than they can be read.
fn newly_refused<T: TransmitEnd>(route: &mut TxRoute<T>) -> Option<NewlyRefused> {
    let refused = route.end.refused();
    let packets = refused.packets.saturating_sub(route.told);
    if packets > 0 && refused.last.is_none() {
        return None;
    }
    route.told += packets;
    let last = refused.last.filter(|_| packets > 0);
    Some(NewlyRefused { packets, last })
}

/// Of links that have ended: what a fence is to tell of them.
#[derive(Default)]
pub(crate) struct Ended {
    /// Fences that had been answered when their link ended: all of a link whose peer had taken all
    /// that was sent; and packets that were refused before, which those are told of that ask for
    /// this link alone.
    answered: VecDeque<(LinkId, u64, NewlyRefused)>,
    /// Interfaces that were gone before they had taken all that was sent to them.
    unplaced: VecDeque<Destination>,
    /// Refused packets, and the last of them.
    refused: u64,
    last: Option<Undelivered>,
}

/// No fence has a greater number.
const ANY_FENCE: u64 = u64::MAX;

/// Ended links that are remembered, each way.
const ENDED_MAX: usize = 64;

impl Ended {
    /// A link has ended that led there. Not all is in its place if messages to it waited in the
    /// queue.
    fn note<T: TransmitEnd>(
        &mut self,
        route: &mut TxRoute<T>,
        to: Option<Destination>,
        may_be_placed: bool,
    ) {
        let refused = newly_refused(route).unwrap_or_default();
        let is_placed = may_be_placed && route.end.is_all_taken();
        let answered = match is_placed {
            true => Some(ANY_FENCE),
            false => (route.fence).filter(|&fence| route.end.is_answered(fence) == Ok(true)),
        };
        if let Some(fence) = answered {
            self.answered.truncate(ENDED_MAX - 1);
            let link = LinkId::from_bits(route.link);
            self.answered.push_front((link, fence, refused));
        }
        if let Some((header, reason)) = refused.last {
            self.refused += refused.packets;
            let link = LinkId::from_bits(route.link);
            self.last = Some(Undelivered::new(link, to, &header, reason));
        }
        if !is_placed {
            self.note_unplaced(to);
        }
    }

    /// True if the peer of that link had taken all that was sent when it ended.
    fn is_placed(&self, link: LinkId) -> bool {
        let mut answered = self.answered.iter();
        answered.any(|&(ended, fence, _)| ended == link && fence == ANY_FENCE)
    }

    fn note_unplaced(&mut self, to: Option<Destination>) {
        if let Some(to) = to
            && !self.unplaced.contains(&to)
        {
            self.unplaced.truncate(ENDED_MAX - 1);
            self.unplaced.push_front(to);
        }
    }

    /// If that fence had been answered when its link ended, the packets that were refused before,
    /// and that no fence has told of.
    fn take_answered(&mut self, link: LinkId, fence: u64) -> Option<NewlyRefused> {
        let is_it = |(ended, answered, _): &&mut (LinkId, u64, NewlyRefused)| {
            *ended == link && fence <= *answered
        };
        let (_, _, refused) = self.answered.iter_mut().find(is_it)?;
        let refused = std::mem::take(refused);
        self.refused -= refused.packets;
        if self.refused == 0 {
            self.last = None;
        }
        Some(refused)
    }

    /// Refused packets that no fence has told of.
    pub(crate) fn take_refused(&mut self) -> (u64, Option<Undelivered>) {
        for (_, _, refused) in &mut self.answered {
            *refused = NewlyRefused::default();
        }
        (std::mem::take(&mut self.refused), self.last.take())
    }

    /// An interface that was gone before it had taken all that was sent to it, and that no fence
    /// has told of.
    pub(crate) fn unplaced(&self) -> Option<Destination> {
        self.unplaced.back().copied()
    }

    /// A fence tells of that one.
    pub(crate) fn forget(&mut self, to: &Destination) {
        self.unplaced.retain(|unplaced| unplaced != to);
    }
}

/// Packets that came back and are kept, of each link and of all that have ended; of more, the
/// oldest are forgotten and counted.
const RETURNED_MAX: usize = 1_024;

impl<T: TransmitEnd> TxRoutes<T> {
    /// Packets are sent without allocation from now on, also over links to come.
    pub(crate) fn reserve(&mut self) {
        self.is_reserved = true;
        for route in self.routes.iter_mut() {
            route.end.reserve();
        }
    }

    /// A new link, under the name that the receive half gave it.
    pub(crate) fn insert(&mut self, id: LinkId, mut end: T) {
        if self.is_reserved {
            end.reserve();
        }
        let route = TxRoute {
            link: id.to_bits(),
            needs_credit: false,
            told_of_log: false,
            fence: None,
            told: 0,
            returned: VecDeque::new(),
            gone: VecDeque::new(),
            end,
        };
        self.routes.put(id.index as usize, route);
        self.broken.reserve(self.routes.len());
    }

    /// Nothing goes to this link any more, which led there; its end is dropped.
    fn remove(
        &mut self,
        id: LinkId,
        (to, context): (Option<Destination>, u64),
        may_be_placed: bool,
    ) {
        if self.route(id).is_some()
            && let Some(mut route) = self.routes.take(id.index as usize)
        {
            self.ended.note(&mut route, to, may_be_placed);
            let next = |route: &mut TxRoute<T>| {
                let returned = route.returned.pop_front();
                returned.or_else(|| route.fetch_returned())
            };
            while let Some((header, reason)) = next(&mut route) {
                if self.returned.len() == RETURNED_MAX {
                    self.returned.pop_front();
                    self.forgotten += 1;
                }
                // Nobody could tell where it went once the link's place is another's.
                let undelivered = Undelivered::new(id, to, &header, reason);
                self.returned.push_back((undelivered, context));
            }
            self.forgotten += route.end.forgotten();
        }
    }

    /// The links.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.routes
            .iter()
            .map(|route| LinkId::from_bits(route.link))
    }

    /// Asks the peer of that link to say when it has taken what was sent so far
    /// ([`TransmitEnd::fence`]).
    pub(crate) fn fence(&mut self, link: LinkId) -> Result<u64, Unsent> {
        let Some(route) = self.reach(link) else {
            // As if it had been asked in time.
            let is_placed = self.ended.is_placed(link);
            return is_placed.then_some(ANY_FENCE).ok_or(Unsent::Gone);
        };
        route.end.fence().map_err(|reason| self.not_sent(reason))
    }

    /// Whether the peer has taken what was sent before that fence; if so, what it refused since a
    /// fence was answered last.
    pub(crate) fn answer(
        &mut self,
        link: LinkId,
        fence: u64,
    ) -> Result<Option<NewlyRefused>, Unsent> {
        let Some(route) = self.reach(link) else {
            let answered = self.ended.take_answered(link, fence);
            return answered.map(Some).ok_or(Unsent::Gone);
        };
        let answered = route.end.is_answered(fence);
        match answered {
            Ok(true) => {
                route.fence.take_if(|awaited| *awaited <= fence);
                let refused = newly_refused(route);
                if route.end.fault().is_some() {
                    return Err(self.not_sent(Unsent::Gone));
                }
                Ok(refused)
            }
            Ok(false) => {
                self.credit_waits += u64::from(route.await_answer(fence));
                Ok(None)
            }
            Err(reason) => Err(self.not_sent(reason)),
        }
    }

    /// True if [`TxRoutes::answer`] has something to say. Otherwise that answer is waited for,
    /// though another one, or a sleep, may have ended the wait for it.
    pub(crate) fn is_fence_over(&mut self, link: LinkId, fence: u64) -> bool {
        let Some(route) = self.reach(link) else {
            return true;
        };
        if route.end.is_answered(fence) != Ok(false) {
            return true;
        }
        self.credit_waits += u64::from(route.await_answer(fence));
        false
    }

    /// True if a packet that came back from the peer of that link said that this place is not
    /// there any more.
    pub(crate) fn is_gone(&mut self, link: LinkId, place: SlotName, is_port: bool) -> bool {
        let Some(route) = self.reach(link) else {
            return false;
        };
        let mut forgotten = 0;
        while let Some(returned) = route.fetch_returned() {
            if route.returned.len() == RETURNED_MAX {
                route.returned.pop_front();
                forgotten += 1;
            }
            route.returned.push_back(returned);
        }
        let is_gone = route.gone.contains(&(place, is_port));
        self.forgotten += forgotten;
        is_gone
    }

    /// Refused packets of that link are to be told of by a fence anew; it leads there, or led.
    pub(crate) fn untell(&mut self, link: LinkId, to: Destination, refused: NewlyRefused) {
        if let Some(route) = self.reach(link) {
            route.told = route.told.saturating_sub(refused.packets);
        } else if let Some((header, reason)) = refused.last {
            self.ended.refused += refused.packets;
            self.ended.last = Some(Undelivered::new(link, Some(to), &header, reason));
        }
    }

    /// The longest message that lies in cells of that link; 0 if it has none.
    pub(crate) fn cells_bytes_max(&self, link: LinkId) -> u64 {
        self.route(link)
            .map_or(0, |route| route.end.cells_bytes_max())
    }

    /// Sends a request by the fast path; whether it was sent.
    #[inline(always)]
    pub(crate) fn offer_request(&mut self, link: LinkId, request: &ShortRequest) -> bool {
        self.reach(link)
            .is_some_and(|route| route.end.try_send_request(request))
    }

    /// Nothing more is sent for now.
    #[inline]
    pub(crate) fn hand_over(&mut self) {
        if !self.holding.is_empty() {
            self.hand_over_all();
        }
    }

    #[cold]
    fn hand_over_all(&mut self) {
        while let Some(link) = self.holding.pop() {
            if let Some(route) = self.reach(link) {
                route.end.hand_over();
            }
        }
    }

    /// The number of packets that came back which a link keeps, and whether its packets arrive in
    /// order. Nothing if the link has ended.
    pub(crate) fn order(&self, link: LinkId) -> Option<(u64, bool)> {
        let end = &self.route(link)?.end;
        Some((end.returns_kept(), end.keeps_order()))
    }

    /// How many packets came back and were forgotten.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
            + self
                .routes
                .iter()
                .map(|route| route.end.forgotten())
                .sum::<u64>()
    }

    /// A packet that was sent and came back, with the program's number of its link; `links` knows
    /// those that there are.
    pub(crate) fn next_returned(&mut self, links: &Links) -> Option<(Undelivered, u64)> {
        if let Some(returned) = self.returned.pop_front() {
            return Some(returned);
        }
        let broken = &mut self.broken;
        self.routes.iter_mut().find_map(|route| {
            let link = LinkId::from_bits(route.link);
            let returned = route.returned.pop_front();
            let Some((header, reason)) = returned.or_else(|| route.fetch_returned()) else {
                // Its peer may have reported what cannot be.
                broken.extend(route.end.fault().map(|fault| (link, fault)));
                return None;
            };
            let to = links.destination(link);
            let undelivered = Undelivered::new(link, to, &header, reason);
            Some((undelivered, links.context(link)))
        })
    }

    /// True if [`TxRoutes::next_returned`] has something.
    pub(crate) fn has_returned(&mut self) -> bool {
        let mut routes = self.routes.iter_mut();
        !self.returned.is_empty()
            || routes.any(|route| {
                if route.returned.is_empty() {
                    let fetched = route.fetch_returned();
                    route.returned.extend(fetched);
                }
                !route.returned.is_empty()
            })
    }

    /// What is known of the way to that link's peer, if it leads over the wire.
    pub(crate) fn connection_state(&self, link: LinkId) -> Option<ConnectionState> {
        self.route(link)?.end.connection_state()
    }

    #[inline(always)]
    fn route(&self, link: LinkId) -> Option<&TxRoute<T>> {
        let is_it = |route: &&TxRoute<T>| route.link == link.to_bits();
        let current = self.routes.current().filter(is_it);
        current.or_else(|| self.routes.get(link.index as usize).filter(is_it))
    }

    /// The link, if there is one of that name; it is at hand from now on.
    #[inline(always)]
    fn reach(&mut self, link: LinkId) -> Option<&mut TxRoute<T>> {
        let is_at_hand = |route: &TxRoute<T>| route.link == link.to_bits();
        if !self.routes.current().is_some_and(is_at_hand) {
            self.reach_another(link.to_bits());
        }
        self.routes.current_mut().filter(|route| is_at_hand(route))
    }

    #[inline(never)]
    fn reach_another(&mut self, link_bits: u64) {
        self.routes
            .reach(LinkId::from_bits(link_bits).index as usize);
    }

    /// A link whose peer was found to break the rules since this was last called.
    pub(crate) fn next_broken(&mut self) -> Option<(LinkId, LinkFault)> {
        self.broken.pop()
    }

    /// Whether [`TxRoutes::next_broken`] has something.
    #[inline]
    pub(crate) fn has_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// Called before a sleep: links that had no room wake the sleeper when they have room, and
    /// links that owe an answer when they give it. True if one has done so already: then there is
    /// something to do.
    pub(crate) fn await_credit(&mut self) -> bool {
        let mut came = false;
        self.is_awaiting = false;
        let waited_for = |route: &&mut TxRoute<T>| route.needs_credit || route.fence.is_some();
        for route in self.routes.iter_mut().filter(waited_for) {
            let has_room = route.needs_credit && route.end.credit_came();
            let answered = route
                .fence
                .take_if(|fence| route.end.may_be_answered(*fence));
            if has_room || answered.is_some() {
                route.needs_credit &= !has_room;
                came = true;
            } else {
                route.end.await_credit(route.needs_credit, route.fence);
                self.is_awaiting = true;
            }
        }
        came
    }

    /// Whether a link that had no room may have some, or one that was asked may have answered.
    pub(crate) fn credit_came(&self) -> bool {
        let came = |route: &TxRoute<T>| {
            route.needs_credit && route.end.credit_came()
                || route
                    .fence
                    .is_some_and(|fence| route.end.may_be_answered(fence))
        };
        self.routes.iter().any(came)
    }

    /// How much the overflow log of that link's peer was used.
    pub(crate) fn log_use(&mut self, link: LinkId) -> Option<LogUse> {
        let mut routes = self.routes.iter_mut();
        let route = routes.find(|route| route.link == link.to_bits())?;
        route.end.log_use()
    }

    /// A link whose log has become half full, or empty after that.
    pub(crate) fn next_log_news(&mut self) -> Option<(LinkId, LogNews)> {
        let routes = self.routes.iter_mut();
        // Only those that may have some are asked, as that reads what the peer writes.
        let mut in_use = routes.filter(|route| route.told_of_log || route.end.has_spare());
        in_use.find_map(|route| {
            let used = route.end.log_use()?;
            let (waiting_bytes, log_bytes) = (used.waiting_bytes, used.log_bytes);
            let news = match route.told_of_log {
                false if waiting_bytes >= log_bytes / 2 => LogNews::HalfFull {
                    waiting_bytes,
                    log_bytes,
                },
                true if waiting_bytes == 0 => LogNews::Drained,
                _ => return None,
            };
            route.told_of_log = news != LogNews::Drained;
            Some((LinkId::from_bits(route.link), news))
        })
    }

    /// When a link that has no room goes on in the overflow log of its peer.
    pub(crate) fn overflow_due_ns(&self) -> Option<u64> {
        let full = self.routes.iter().filter(|route| route.needs_credit);
        full.filter_map(|route| route.end.overflow_due_ns()).min()
    }

    /// See [`Outbound::give_back_if_idle`]; others may have something to give, too.
    fn give_back_if_idle(&mut self, now_ns: u64, mut has_spare: bool) -> Option<u64> {
        let mut sent = 0_u64;
        for route in self.routes.iter() {
            sent = sent.wrapping_add(route.end.sent());
            has_spare |= route.end.has_spare();
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
        for route in self.routes.iter_mut() {
            route.end.give_back();
        }
        // What the peer has not returned yet can be given the next time.
        self.idle_since_ns = now_ns;
        None
    }

    /// The link at hand did not take a packet.
    #[cold]
    #[inline(never)]
    fn not_sent(&mut self, reason: Unsent) -> Unsent {
        if let Some(route) = self.routes.current_mut() {
            let link = LinkId::from_bits(route.link);
            match reason {
                Unsent::Full => {
                    self.credit_waits += u64::from(!route.needs_credit);
                    route.needs_credit = true;
                }
                Unsent::Gone => {
                    if let Some(fault) = route.end.fault()
                        // In a signal handler nothing can be freed; the next attempt finds the same.
                        && !self.is_interrupt
                    {
                        self.broken.push((link, fault));
                        // What such a peer has reported is worth nothing, so it does not matter
                        // where it led.
                        self.remove(link, (None, 0), false);
                    }
                }
            }
        }
        reason
    }
}

impl<T: TransmitEnd> TxLinks<Area> for TxRoutes<T> {
    #[inline]
    fn payload_max_bytes(&self, link: LinkId) -> Option<usize> {
        self.route(link).map(|route| route.end.payload_max_bytes())
    }

    fn may_take(&self, link: LinkId) -> bool {
        self.route(link)
            .is_none_or(|route| !route.needs_credit || route.end.credit_came())
    }

    #[inline(always)]
    fn offer_short<M>(&mut self, link: LinkId, short: M) -> bool
    where
        Short: From<M>,
    {
        self.reach(link)
            .is_some_and(|route| route.end.try_send_short(short))
    }

    #[inline(always)]
    fn offer_in_cells(&mut self, link: LinkId, short: &Short, data: &[u8]) -> bool {
        self.reach(link)
            .is_some_and(|route| route.end.try_send_in_cells(short, data))
    }

    #[inline(always)]
    fn offer_message(&mut self, link: LinkId, to: &PortAddress, handler: u16, data: &[u8]) -> bool {
        self.reach(link)
            .is_some_and(|route| route.end.try_send_message(to, handler, data))
    }

    #[inline(always)]
    fn offer_shorts(&mut self, link: LinkId, next: impl FnMut() -> Option<Short>) -> usize {
        self.reach(link)
            .map_or(0, |route| route.end.try_send_shorts(next))
    }

    #[inline(always)]
    fn offer(
        &mut self,
        link: LinkId,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        let Some(route) = self.reach(link) else {
            return Err(Unsent::Gone);
        };
        match route.end.try_send(header, metadata, parts) {
            Ok(()) => {
                if route.end.holds() && !self.holding.contains(&link) {
                    self.holding.push(link);
                }
                Ok(())
            }
            Err(reason) => Err(self.not_sent(reason)),
        }
    }

    #[inline(always)]
    fn passes(&self, point: Point) {
        T::passes(point);
    }
}

/// The links as seen by an application that only queues. The network processor sends what is
/// queued.
pub(crate) struct Withheld<'a, T>(pub(crate) &'a TxRoutes<T>);

impl<T: TransmitEnd> TxLinks<Area> for Withheld<'_, T> {
    const TAKES: bool = false;

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

    #[inline(always)]
    fn passes(&self, point: Point) {
        T::passes(point);
    }
}
