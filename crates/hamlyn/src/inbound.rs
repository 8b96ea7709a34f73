//! The receive half of an interface: the engine's, and the receiving ends of the links, which it
//! serves in turn (`Hamlyn 2.8`). It knows nothing of who calls it.

mod at_hand;

use hamlyn_engine::key::Key;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::{Address, Header};
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::receive_observer::ReceiveObserver;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::QueueId;
use hamlyn_host::LossCause;
use hamlyn_link::ReceiveEnd;
use hamlyn_ring::area::Area;
use hamlyn_ring::overflow::LogNews;
use hamlyn_ring::ready_bitmap::ReadyBitmap;

use crate::active_links::ActiveLinks;
use crate::half::Lendable;
use crate::look_interval::LookInterval;
use crate::peer::LinkEnd;
use crate::rx_links::{RxLink, RxLinks};

/// Packets taken from one link before the next link has its turn.
const BURST_PACKETS: u64 = 32;
/// The same for packets of the fast path, which looks only now and then whether the turn is over.
const BURST_SHORT_PACKETS: u64 = 256;
/// Looks at one link between two polls of all, while waiting for several.
const LOOKS_BETWEEN_POLLS: u32 = 2;
/// Different wrong keys from one peer before it is cut off, unless set otherwise.
const BAD_KEYS_MAX: u32 = 65_536;
/// A peer that could not be rung for is tried again after so long, if nothing else ends the sleep.
const RING_AGAIN_NS: u64 = 1_000_000;

/// See the module.
pub(crate) struct Inbound<R, O> {
    pub(crate) receiver: Receiver<Area, O>,
    rx_links: RxLinks<R>,
    active_links: ActiveLinks,
    /// How many packets had been taken from the link whose turn it is when its turn began.
    turn_from: u64,
    /// Packets taken, without those of the turn that is under way.
    turns_packets: u64,
    pub(crate) bad_keys_max: u32,
    look_interval: LookInterval,
    /// Links that ended here and were not reported yet.
    ended: Vec<(LinkId, LinkEnd)>,
    /// Memory is reserved for each link, so that packets are taken without allocation.
    is_reserved: bool,
    /// A signal handler takes packets: links end later.
    pub(crate) is_interrupt: bool,
}

/// What a poll brought.
pub(crate) struct Polled {
    /// Packets taken.
    pub(crate) packets: u64,
    /// The notification that ended the poll.
    pub(crate) handed: Option<Notification>,
    /// Whether [`Inbound::next_ended`] has something.
    pub(crate) has_ended: bool,
}

impl Polled {
    /// Nothing.
    pub(crate) const NOTHING: Self = Self {
        packets: 0,
        handed: None,
        has_ended: false,
    };
}

/// What became of the next packet.
enum Reception {
    /// It announces itself in the queue that is waited for.
    Handed(Notification),
    Taken,
    /// There is none.
    Nothing,
}

impl<R, O> Lendable for Inbound<R, O> {
    /// A poll looks at the links.
    fn is_pending(&self) -> bool {
        false
    }
}

impl<R: ReceiveEnd, O: ReceiveObserver<Area>> Inbound<R, O> {
    pub(crate) fn new(receiver: Receiver<Area, O>, ready_bitmap: Option<ReadyBitmap>) -> Self {
        Self {
            receiver,
            rx_links: RxLinks::new(),
            active_links: ActiveLinks::new(ready_bitmap),
            turn_from: 0,
            turns_packets: 0,
            bad_keys_max: BAD_KEYS_MAX,
            look_interval: LookInterval::new(),
            ended: Vec::new(),
            is_reserved: false,
            is_interrupt: false,
        }
    }

    /// From now on packets are taken without allocation, also those of links to come.
    pub(crate) fn reserve(&mut self) {
        self.is_reserved = true;
        let receiver = &mut self.receiver;
        for rx_link in self.rx_links.iter_mut() {
            receiver.reserve_for(rx_link.id);
            rx_link.end.reserve();
        }
    }

    /// Differs when anything was taken since, or a link is looked at again that had been idle: so
    /// that those look once more who sleep, or are about to.
    #[inline]
    pub(crate) fn activity(&self) -> u64 {
        self.packets() + self.active_links.activations()
    }

    /// Packets taken so far.
    #[inline]
    pub(crate) fn packets(&self) -> u64 {
        self.turns_packets + self.turn_packets()
    }

    /// Packets taken in this turn.
    #[inline]
    fn turn_packets(&self) -> u64 {
        self.rx_links
            .peek_current()
            .map_or(0, |rx_link| rx_link.end.taken() - self.turn_from)
    }

    /// This turn is over.
    #[inline]
    fn end_turn(&mut self) {
        self.turns_packets = self.packets();
        self.turn_from += self.turn_packets();
    }

    /// The link that has the next turn begins it.
    #[inline]
    fn begin_turn(&mut self, turn: usize) {
        self.rx_links.give_turn(turn);
        self.turn_from = self
            .rx_links
            .peek_current()
            .map_or(0, |rx_link| rx_link.end.taken());
    }

    /// Takes in a new link, and names it. Its peer need not ring, so the thread that drives this
    /// half must be awake, or be woken.
    pub(crate) fn insert(&mut self, token: u64, mut end: R) -> LinkId {
        self.end_turn();
        if self.is_reserved {
            end.reserve();
        }
        let id = self.rx_links.insert(token, end);
        self.ended.reserve(self.rx_links.capacity());
        if self.is_reserved {
            self.receiver.reserve_for(id);
        }
        self.active_links
            .insert(&mut self.rx_links, id.index as usize);
        if self.rx_links.current().is_none() {
            self.begin_turn(id.index as usize);
        }
        id
    }

    /// Notes that the peer with that token is lost: its link ends when it is empty. Nothing if that
    /// is known, or there is none.
    pub(crate) fn lose(&mut self, token: u64, cause: LossCause) -> Option<LinkId> {
        let id = self.rx_links.lose(token, cause)?;
        // It has turns until all that it had sent is taken.
        self.active_links
            .activate(&mut self.rx_links, id.index as usize);
        Some(id)
    }

    /// The application has heard that this link ended.
    pub(crate) fn release(&mut self, id: LinkId) {
        self.rx_links.release(id);
    }

    /// Ends a link without a word.
    pub(crate) fn remove(&mut self, id: LinkId) {
        if self.rx_links.contains(id) {
            self.take_out(id.index as usize);
        }
    }

    fn take_out(&mut self, index: usize) -> Option<LinkId> {
        self.end_turn();
        if let Some(rx_link) = self.rx_links.at(index) {
            // A fence of the peer is to know what was taken.
            rx_link.end.return_credit();
        }
        let id = self.rx_links.remove_at(index);
        if let Some(id) = id {
            self.receiver.link_ended(id);
            self.active_links.remove(index);
        }
        if self.rx_links.current().is_none() {
            self.begin_turn(self.active_links.current());
        }
        id
    }

    /// Links that ended here since this was last called.
    pub(crate) fn next_ended(&mut self) -> Option<(LinkId, LinkEnd)> {
        self.ended.pop()
    }

    /// A link of whose overflow log the program has not heard: half of it waited, or all was taken.
    pub(crate) fn next_log_news(&mut self) -> Option<(LinkId, LogNews)> {
        let mut rx_links = self.rx_links.iter_mut();
        rx_links.find_map(|rx_link| Some((rx_link.id, rx_link.end.log_news()?)))
    }

    /// All links are about to end: their peers are to know what was taken.
    pub(crate) fn end_all(&mut self) {
        self.rx_links.return_credit();
    }

    /// Returns all credit that is held back, and tells all peers that we are about to sleep. To be
    /// followed by a barrier that they pass, too, and [`Inbound::poll_all_next`]. Returns when to
    /// wake at the latest, because a peer could not be rung for; `now_ns` is asked only then.
    pub(crate) fn announce_sleep(&mut self, now_ns: impl FnOnce() -> u64) -> Option<u64> {
        let owes_rings = self.rx_links.return_credit();
        self.active_links.announce_sleep(&mut self.rx_links);
        owes_rings.then(|| now_ns().saturating_add(RING_AGAIN_NS))
    }

    /// The next poll takes everything that a peer sent before it saw the announcement of sleep.
    pub(crate) fn poll_all_next(&mut self) {
        self.active_links.poll_all_next(&mut self.rx_links);
    }

    /// A program that computes is rung for from now on, until it sleeps in a call.
    pub(crate) fn listen(&mut self) {
        self.active_links.is_listening = true;
    }

    /// We are awake.
    pub(crate) fn end_sleep(&mut self) {
        self.active_links.is_listening = false;
        self.active_links.end_sleep(&mut self.rx_links);
    }

    #[cold]
    #[inline(never)]
    fn end(&mut self, end: LinkEnd) {
        if self.is_interrupt {
            // Its memory cannot be freed here; it says the same to the next look.
            return;
        }
        if let Some(id) = self.take_out(self.rx_links.turn()) {
            self.ended.push((id, end));
        }
    }

    /// Whether [`Inbound::next_ended`] has something.
    #[inline(always)]
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Takes what has come, a turn of every link at most; stops at the first packet that announces
    /// itself in `waiting`, which must be empty.
    pub(crate) fn poll(&mut self, waiting: Option<QueueId>) -> Polled {
        if self.active_links.is_one()
            && self.rx_links.turn() == self.active_links.current()
            && self.rx_links.current().is_some_and(RxLink::is_silent)
        {
            // What most polls find.
            return Polled {
                has_ended: self.has_ended(),
                ..Polled::NOTHING
            };
        }
        let before = self.packets();
        let handed = self.poll_links(waiting);
        Polled {
            packets: self.packets() - before,
            handed,
            has_ended: self.has_ended(),
        }
    }

    fn poll_links(&mut self, waiting: Option<QueueId>) -> Option<Notification> {
        if self.active_links.has_idle() {
            self.active_links.poll_idle(&mut self.rx_links);
        }
        if self.turn_packets() >= BURST_PACKETS {
            self.end_turn();
            if self.rx_links.turn() == self.active_links.current() {
                self.active_links.next(&mut self.rx_links, false);
            }
        }
        for _ in 0..self.active_links.turns() {
            // A link that has nothing does not take the place of the one that is at hand.
            let place = self.active_links.current();
            let is_silent = self.rx_links.at(place).is_none_or(RxLink::is_silent);
            if !is_silent {
                if place != self.rx_links.turn() {
                    self.end_turn();
                    self.begin_turn(place);
                }
                let handed = self.poll_link(waiting);
                if handed.is_some() {
                    return handed;
                }
            }
            self.active_links.next(&mut self.rx_links, is_silent);
        }
        if !self.active_links.is_active(self.rx_links.turn()) {
            // Nothing is taken from a link whose peer believes that it must set its ready bit.
            self.end_turn();
            self.begin_turn(self.active_links.current());
        }
        None
    }

    /// Takes packets of the link whose turn it is until there is none, the turn is over, or one
    /// announces itself in `waiting`.
    fn poll_link(&mut self, waiting: Option<QueueId>) -> Option<Notification> {
        while self.turn_packets() < BURST_PACKETS {
            match self.take_next(waiting) {
                Reception::Handed(notification) => return Some(notification),
                // Answers are sent when this poll is over, which need not take a long look at
                // nothing first.
                Reception::Taken
                    if self.receiver.owes_answers()
                        && self.rx_links.current().is_none_or(RxLink::is_silent) =>
                {
                    break;
                }
                Reception::Taken => {}
                Reception::Nothing => break,
            }
        }
        None
    }

    /// Takes the next packet of the link whose turn it is.
    #[inline(always)]
    fn take_next(&mut self, waiting: Option<QueueId>) -> Reception {
        self.take_next_over::<false>(waiting)
    }

    /// The same, if it lies in the duplex line.
    #[inline(never)]
    fn take_next_from_line(&mut self, waiting: Option<QueueId>) -> Reception {
        self.take_next_over::<true>(waiting)
    }

    #[inline(always)]
    fn take_next_over<const LINE: bool>(&mut self, waiting: Option<QueueId>) -> Reception {
        let Some(rx_link) = self.rx_links.current() else {
            return Reception::Nothing;
        };
        let receiver = &mut self.receiver;
        let from = rx_link.id;
        let mut refused_key = None;
        // Words come out of there, not a notification: what is stored in pieces and loaded as a
        // whole takes long.
        let take = |header: &Header, payload: &R::Payload<'_>| {
            let received = match LINE {
                // Most of what is not short there is a request.
                true => receiver.receive_from_line(from, header, payload, waiting),
                false => receiver.receive(from, header, payload, waiting),
            };
            match received {
                Ok(Received::Handed(notification)) => {
                    let to = Address::new(notification.slot, notification.metadata_index);
                    Ok(Some((to, notification.word)))
                }
                Ok(_) => Ok(None),
                Err(refusal) => {
                    refused_key = Some(header.key);
                    Err(refusal)
                }
            }
        };
        let taken = if LINE {
            rx_link.end.receive_from_line(take)
        } else {
            rx_link.end.receive_or_refuse(take)
        };
        match taken {
            Ok(Some(Ok(Some((to, word))))) => {
                return Reception::Handed(Notification {
                    slot: to.slot(),
                    metadata_index: to.metadata_index(),
                    word,
                    from,
                });
            }
            Ok(Some(Ok(None))) => {}
            Ok(Some(Err(refusal))) => self.refused(refusal, refused_key),
            Ok(None) if !LINE => return self.take_next_from_line(waiting),
            Ok(None) => {
                rx_link.end.return_arena_credit();
                if let Some(cause) = rx_link.lost {
                    self.end(LinkEnd::Lost(cause));
                }
                return Reception::Nothing;
            }
            Err(fault) => {
                self.end(LinkEnd::Fault(fault));
                return Reception::Nothing;
            }
        }
        Reception::Taken
    }

    /// A packet of the link whose turn it is was refused.
    #[cold]
    fn refused(&mut self, refusal: Refusal, key: Option<Key>) {
        if matches!(refusal, Refusal::BadKey | Refusal::BadEntryKey)
            && let (Some(key), Some(rx_link)) = (key, self.rx_links.current())
            && rx_link.guessed(key) > self.bad_keys_max
        {
            self.end(LinkEnd::BadKeys);
        }
    }
}

#[cfg(test)]
mod tests;
