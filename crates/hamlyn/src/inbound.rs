//! The receive half of an interface: the engine's, and the receiving ends of the links, which it
//! serves in turn (`Hamlyn 2.8`). It knows nothing of who calls it.

use hamlyn_engine::key::Key;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::MetadataEntry;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::{Address, Header};
use hamlyn_engine::port::Arrived;
use hamlyn_engine::receive::{Awaited, Received, Receiver, ShortReceived};
use hamlyn_engine::receive_observer::ReceiveObserver;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::QueueId;
use hamlyn_host::LossCause;
use hamlyn_link::{ReceiveEnd, Shortcut};
use hamlyn_ring::area::Area;
use hamlyn_ring::overflow::LogNews;
use hamlyn_ring::ready_bitmap::ReadyBitmap;

use crate::active_links::ActiveLinks;
use crate::arrival::ShortArrival;
use crate::half::Lendable;
use crate::inlet::{Found, InletName};
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

    /// The next packet of the link whose turn it is, if it announces itself in `queue`, which is
    /// empty, and can take the fast path; see [`Receiver::receive_short`].
    #[inline(always)]
    pub(crate) fn take_handed(&mut self, queue: QueueId) -> Option<Notification> {
        take_plain(self.rx_links.current()?, &mut self.receiver, queue)
    }

    /// As [`Inbound::take_handed`], for one after the other, at most so many; how many.
    #[inline(always)]
    pub(crate) fn take_many_handed(
        &mut self,
        queue: QueueId,
        most: usize,
        each: &mut impl FnMut(Notification),
    ) -> usize {
        let Some(rx_link) = self.rx_links.current() else {
            return 0;
        };
        let mut count = 0;
        while count < most
            && let Some(notification) = take_plain(rx_link, &mut self.receiver, queue)
        {
            each(notification);
            count += 1;
        }
        count
    }

    /// Packets of any kind, as long as this turn lasts: those that announce themselves in `queue`,
    /// which is empty, at most so many. How many of them.
    pub(crate) fn take_more(
        &mut self,
        queue: QueueId,
        most: usize,
        each: &mut impl FnMut(Notification),
    ) -> usize {
        let mut count = 0;
        while count < most && self.turn_packets() < BURST_PACKETS {
            match self.take_next(Some(queue)) {
                Reception::Handed(notification) => {
                    each(notification);
                    count += 1;
                }
                Reception::Taken => {}
                Reception::Nothing => break,
            }
        }
        count
    }

    /// As [`Inbound::take_handed`], for a message to a one-shot entry.
    #[inline(always)]
    pub(crate) fn take_one_shot(&mut self, queue: QueueId) -> Option<Notification> {
        let rx_link = self.rx_links.current()?;
        let from = rx_link.id;
        let received = take_short::<_, _, true>(rx_link, &mut self.receiver, queue, None)?;
        Some(received.notification(from))
    }

    /// The next packet of the link whose turn it is, of whatever kind, as long as the turn lasts:
    /// its notification, if it announces itself in `queue`, which is empty.
    #[inline]
    pub(crate) fn take_next_handed(&mut self, queue: QueueId) -> Option<Notification> {
        if !self.is_at_hand() || self.turn_packets() >= BURST_PACKETS {
            return None;
        }
        match self.take_next(Some(queue)) {
            Reception::Handed(notification) => Some(notification),
            _ => None,
        }
    }

    /// As [`Inbound::take_handed`] and [`Inbound::take_one_shot`], for a message in several cells.
    #[inline(always)]
    pub(crate) fn take_in_cells(&mut self, queue: QueueId) -> Option<Notification> {
        let has_metadata = self.rx_links.current()?.end.shortcut()?.next_in_cells()?;
        self.take_next_in_cells(queue, has_metadata)
    }

    /// Apart, so that the way of other packets stays short.
    #[inline(never)]
    fn take_next_in_cells(&mut self, queue: QueueId, has_metadata: bool) -> Option<Notification> {
        let rx_link = self.rx_links.current()?;
        let from = rx_link.id;
        let receiver = &mut self.receiver;
        let received = match has_metadata {
            false => take_in_cells::<_, _, false>(rx_link, receiver, queue, None)?,
            true => take_in_cells::<_, _, true>(rx_link, receiver, queue, None)?,
        };
        Some(received.notification(from))
    }

    /// As [`Inbound::take_handed`], for a message that is awaited, in one cell or in several; its
    /// word of metadata and where it landed.
    #[inline(always)]
    pub(crate) fn take_awaited<const IN_CELLS: bool>(
        &mut self,
        queue: &QueueId,
        awaited: &Awaited,
        entry: &MetadataEntry,
    ) -> Option<ShortArrival> {
        let rx_link = self.rx_links.current()?;
        let from = rx_link.id;
        let awaited = Some((awaited, entry));
        let receiver = &mut self.receiver;
        let received = if IN_CELLS {
            take_in_cells::<_, _, true>(rx_link, receiver, *queue, awaited)?
        } else {
            take_short::<_, _, true>(rx_link, receiver, *queue, awaited)?
        };
        Some(ShortArrival {
            word: received.metadata,
            offset: received.offset,
            length_bytes: received.length_bytes,
            from,
        })
    }

    /// The next packet of the link whose turn it is, if it is a message that may be read where it
    /// lies on behalf of that port or set; and where it lies.
    #[inline(always)]
    pub(crate) fn in_place(&mut self, inlet: &impl InletName) -> Option<(Found, &mut R::Shortcut)> {
        let rx_link = self.rx_links.current()?;
        let from = rx_link.id;
        let shortcut = rx_link.end.shortcut()?;
        let next = shortcut.peek_message()?;
        let member = inlet.takes_in_place(&self.receiver, &next.message)?;
        let arrived = Arrived {
            handler: next.message.handler,
            length_bytes: next.length_bytes.into(),
            from,
        };
        Some((Found { arrived, member }, shortcut))
    }

    /// The fast path of the link whose turn it is, to a message that was found there.
    #[inline(always)]
    pub(crate) fn shortcut(&mut self) -> Option<&mut R::Shortcut> {
        self.rx_links.current()?.end.shortcut()
    }

    /// Whether the fast paths are worth a try: if credit is due, it is returned first.
    #[inline(always)]
    pub(crate) fn may_look(&mut self) -> bool {
        let is_blind = self
            .rx_links
            .current()
            .and_then(|rx_link| rx_link.end.shortcut())
            .is_some_and(|shortcut| shortcut.is_blind());
        !is_blind || self.continues_turn()
    }

    /// Whether the fast paths may have found nothing only because credit was due, and are worth
    /// another try. At the end of a turn they are not, and the rest of the interface is looked
    /// after.
    #[cold]
    #[inline(never)]
    pub(crate) fn continues_turn(&mut self) -> bool {
        // First: at the end of a turn the credit stays due, so that no fast path sees a packet.
        self.turn_packets() < BURST_SHORT_PACKETS
            && self
                .rx_links
                .current()
                .is_some_and(|rx_link| rx_link.end.return_due_credit())
    }

    /// Whether there is one link only, and a poll would take nothing from it. If so, what a poll
    /// returns of room is returned, and the interval between two looks passes.
    #[inline]
    pub(crate) fn is_silent(&mut self) -> bool {
        if !self.active_links.is_one() {
            return false;
        }
        let Some(rx_link) = self.rx_links.current() else {
            return false;
        };
        let is_pending = |rx_link: &mut RxLink<R>| !is_silent(rx_link);
        if self.look_interval.look_once(|| is_pending(rx_link)) {
            return false;
        }
        // A receiver that polls without a pause takes the line away from under the sender's stores.
        self.look_interval.pass();
        true
    }

    /// Looks some times, pausing in between, at nothing but the link whose turn it is: whether
    /// something is there. Much cheaper than a poll, so what comes next over the link that was last
    /// busy is seen sooner.
    #[inline]
    pub(crate) fn peek(&mut self) {
        let Some(rx_link) = self.rx_links.current() else {
            return;
        };
        if self.active_links.is_one() {
            self.look_interval.look(|| rx_link.end.is_pending());
            return;
        }
        for _ in 0..LOOKS_BETWEEN_POLLS {
            if rx_link.end.is_pending() {
                return;
            }
            core::hint::spin_loop();
        }
    }

    /// Whether the link whose turn it is has something.
    #[inline]
    pub(crate) fn is_at_hand(&mut self) -> bool {
        self.rx_links
            .current()
            .is_some_and(|rx_link| rx_link.end.is_pending())
    }

    /// The link whose turn it is, with the receiver, for a request in its duplex line.
    #[inline(always)]
    pub(crate) fn current_and_receiver(
        &mut self,
    ) -> Option<(&mut RxLink<R>, &mut Receiver<Area, O>)> {
        Some((self.rx_links.current()?, &mut self.receiver))
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
            && self.rx_links.current().is_some_and(is_silent)
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
            let is_silent = self.rx_links.at(place).is_none_or(is_silent);
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
                        && self.rx_links.current().is_none_or(is_silent) =>
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

/// Whether there is nothing to take from a link, nor to do about it but to return room, which is
/// done.
#[inline]
fn is_silent<R: ReceiveEnd>(rx_link: &mut RxLink<R>) -> bool {
    if rx_link.lost.is_some() || rx_link.end.is_pending() {
        return false;
    }
    rx_link.end.return_arena_credit();
    true
}

/// The next packet of that link, if it is short and can take the fast path; see
/// [`Receiver::receive_short`].
#[inline(always)]
fn take_short<R: ReceiveEnd, O: ReceiveObserver<Area>, const HAS_METADATA: bool>(
    rx_link: &mut RxLink<R>,
    receiver: &mut Receiver<Area, O>,
    queue: QueueId,
    awaited: Option<(&Awaited, &MetadataEntry)>,
) -> Option<ShortReceived> {
    let way = rx_link.end.shortcut()?;
    let received = match way.peek_short::<HAS_METADATA>() {
        Some(short) => receiver.receive_short(&short, queue, awaited)?,
        None => return None,
    };
    way.short_done();
    Some(received)
}

/// The same of one that takes several cells.
#[inline(always)]
fn take_in_cells<R: ReceiveEnd, O: ReceiveObserver<Area>, const HAS_METADATA: bool>(
    rx_link: &mut RxLink<R>,
    receiver: &mut Receiver<Area, O>,
    queue: QueueId,
    awaited: Option<(&Awaited, &MetadataEntry)>,
) -> Option<ShortReceived> {
    let way = rx_link.end.shortcut()?;
    let (cells, received) = match way.peek_in_cells::<HAS_METADATA>() {
        Some((cells, short)) => (cells, receiver.receive_short(&short, queue, awaited)?),
        None => return None,
    };
    way.cells_done(cells);
    Some(received)
}

#[inline(always)]
fn take_plain<R: ReceiveEnd, O: ReceiveObserver<Area>>(
    rx_link: &mut RxLink<R>,
    receiver: &mut Receiver<Area, O>,
    queue: QueueId,
) -> Option<Notification> {
    let from = rx_link.id;
    let received = take_short::<_, _, false>(rx_link, receiver, queue, None)?;
    Some(received.notification(from))
}

#[cfg(test)]
mod tests;
