//! The links that packets go to.

use std::collections::VecDeque;

use hamlyn_engine::memory::{LinkId, Unsent};
use hamlyn_engine::operation::ShortRequest;
use hamlyn_engine::packet::SlotName;
use hamlyn_host::Destination;
use hamlyn_link::udp_endpoint::ConnectionState;
use hamlyn_link::{LinkFault, TransmitEnd};
use hamlyn_ring::overflow::{LogNews, LogUse};

use super::ended::{ANY_FENCE, Ended};
use super::route::{NewlyRefused, TxRoute};
use crate::cached_table::CachedTable;
use crate::links::Links;
use crate::peer::Undelivered;

/// How long nothing must have been sent before memory that was needed is given back. Much longer
/// than the pauses of a conversation: to give memory back and to get it again takes as long as many
/// messages.
const SPARE_NS: u64 = 100_000_000;

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
    pub(super) holding: Vec<LinkId>,
    pub(crate) ended: Ended,
    /// A signal handler sends: links end later.
    pub(crate) is_interrupt: bool,
    /// Memory is reserved for each link, so that packets are sent without allocation.
    is_reserved: bool,
}

/// Packets that came back and are kept, of each link and of all that have ended; of more, the
/// oldest are forgotten and counted.
const RETURNED_MAX: usize = 1_024;

impl<T: TransmitEnd> TxRoutes<T> {
    pub(super) fn new() -> Self {
        Self {
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
        }
    }

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
    pub(super) fn remove(
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
                let refused = route.newly_refused();
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
        } else {
            self.ended.note_refused(link, Some(to), &refused);
        }
    }

    /// Has packets go that those links hold back. False if none do.
    pub(super) fn press(&mut self, is_meant: impl Fn(LinkId) -> bool) -> bool {
        let mut is_held_back = false;
        for route in self.routes.iter_mut() {
            if is_meant(LinkId::from_bits(route.link)) {
                is_held_back |= route.end.press();
            }
        }
        is_held_back
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
    pub(super) fn route(&self, link: LinkId) -> Option<&TxRoute<T>> {
        let is_it = |route: &&TxRoute<T>| route.link == link.to_bits();
        let current = self.routes.current().filter(is_it);
        current.or_else(|| self.routes.get(link.index as usize).filter(is_it))
    }

    /// The link, if there is one of that name; it is at hand from now on.
    #[inline(always)]
    pub(super) fn reach(&mut self, link: LinkId) -> Option<&mut TxRoute<T>> {
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
    pub(super) fn give_back_if_idle(&mut self, now_ns: u64, mut has_spare: bool) -> Option<u64> {
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
    pub(super) fn not_sent(&mut self, reason: Unsent) -> Unsent {
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
