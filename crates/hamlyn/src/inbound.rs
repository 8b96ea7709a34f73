//! The receive half of an interface: the engine's, and the receiving ends of the links, which it
//! serves in turn (`Hamlyn 2.8`). It knows nothing of who calls it.

use hamlyn_engine::grant::Holder;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::MetadataArea;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::Short;
use hamlyn_engine::receive::{Awaited, Received, Receiver};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::QueueId;
use hamlyn_host::LossCause;
use hamlyn_link::ReceiveEnd;
use hamlyn_ring::area::Area;
use hamlyn_ring::notes::Notes;

use crate::inlets::Inlets;
use crate::links::LinkEnd;
use crate::watching::Watching;

/// Packets taken from one link before the next link has its turn.
const BURST_PACKETS: u32 = 32;
/// Looks at one link between two polls of all, while waiting.
const GLANCES: u32 = 16;
/// Wrong keys from one peer before it is cut off, unless set otherwise.
const BAD_KEYS_MAX: u32 = 65_536;

/// See the module.
pub(crate) struct Inbound<R> {
    pub(crate) receiver: Receiver<Area>,
    inlets: Inlets<R>,
    watching: Watching,
    /// The link whose turn it is.
    turn: usize,
    /// Packets that it may still send before the next link has its turn.
    burst_left: u32,
    /// Packets taken, without those of the turn that is under way.
    turns_packets: u64,
    pub(crate) bad_keys_max: u32,
    /// Links that ended here and that nobody was told of yet.
    ended: Vec<(LinkId, LinkEnd)>,
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

impl<R: ReceiveEnd> Inbound<R> {
    pub(crate) fn new(receiver: Receiver<Area>, notes: Option<Notes>) -> Self {
        Self {
            receiver,
            inlets: Inlets::new(),
            watching: Watching::new(notes),
            turn: 0,
            burst_left: BURST_PACKETS,
            turns_packets: 0,
            bad_keys_max: BAD_KEYS_MAX,
            ended: Vec::new(),
        }
    }

    /// Packets taken so far.
    #[inline]
    pub(crate) fn packets(&self) -> u64 {
        self.turns_packets + u64::from(BURST_PACKETS - self.burst_left)
    }

    /// Takes in a new link, and names it. Its peer need not ring, so whoever drives must be awake, or be woken.
    pub(crate) fn insert(&mut self, token: u64, end: R) -> LinkId {
        let id = self.inlets.insert(token, end);
        self.ended.reserve(self.inlets.places());
        self.watching.enter(&mut self.inlets, id.index as usize);
        self.turn = self.watching.current();
        id
    }

    /// Notes that the peer with that token is lost: its link ends when it is empty. Nothing if that is
    /// known, or there is none.
    pub(crate) fn lose(&mut self, token: u64, cause: LossCause) -> Option<LinkId> {
        let id = self.inlets.lose(token, cause)?;
        // It has turns until all that it had sent is taken.
        self.watching.watch(&mut self.inlets, id.index as usize);
        Some(id)
    }

    /// Ends a link without a word.
    pub(crate) fn remove(&mut self, id: LinkId) {
        if self.inlets.contains(id) {
            self.take_out(id.index as usize);
        }
    }

    fn take_out(&mut self, index: usize) -> Option<LinkId> {
        let id = self.inlets.remove_at(index)?;
        self.watching.leave(index);
        self.turn = self.watching.current();
        Some(id)
    }

    /// Links that ended here since this was last called.
    pub(crate) fn next_ended(&mut self) -> Option<(LinkId, LinkEnd)> {
        self.ended.pop()
    }

    /// Returns all credit that is held back, and tells all peers that we are about to sleep. To be
    /// followed by a barrier that they pass, too, and [`Inbound::look_everywhere`].
    pub(crate) fn announce_sleep(&mut self) {
        self.inlets.settle();
        self.watching.announce_sleep(&mut self.inlets);
    }

    /// Whatever was sent by somebody who saw us awake is taken by the next poll.
    pub(crate) fn look_everywhere(&mut self) {
        self.watching.look_everywhere(&mut self.inlets);
    }

    /// We are awake.
    pub(crate) fn end_sleep(&mut self) {
        self.watching.end_sleep(&mut self.inlets);
    }

    #[cold]
    #[inline(never)]
    fn end(&mut self, index: usize, end: LinkEnd) {
        if let Some(id) = self.take_out(index) {
            self.ended.push((id, end));
        }
    }

    /// The next packet of the link whose turn it is, if it announces itself in `queue`, which is
    /// empty, and is of the kind that is taken the shortest way; see [`Receiver::receive_short`].
    #[inline(always)]
    pub(crate) fn take_handed(&mut self, queue: QueueId) -> Option<Notification> {
        self.take_short(R::peek_bare, |receiver, short| {
            receiver.receive_short(short, queue)
        })
    }

    /// As [`Inbound::take_handed`], for a message to a one-shot entry.
    #[inline(always)]
    pub(crate) fn take_guarded(&mut self, queue: QueueId) -> Option<Notification> {
        self.take_short(R::peek_worded, |receiver, short| {
            receiver.receive_guarded(short, queue)
        })
    }

    /// As [`Inbound::take_handed`], for a message that is awaited; its word of metadata. Written
    /// out: the compiler makes a call of a closure that long.
    #[inline(always)]
    pub(crate) fn take_awaited(
        &mut self,
        queue: &QueueId,
        awaited: &Awaited,
        metadata: &MetadataArea,
    ) -> Option<u64> {
        let burst_left = self.burst_left.checked_sub(1)?;
        let inlet = self.inlets.at(self.turn)?;
        let (to, key) = (awaited.to, awaited.key);
        let short = inlet.end.peek_awaited(to, key)?;
        let receiver = &mut self.receiver;
        // The same values, so that the engine's look at the same words costs nothing.
        let awaited = Awaited {
            to,
            key,
            ..*awaited
        };
        if !receiver.receive_awaited(&short, queue, &awaited, metadata) {
            return None;
        }
        inlet.end.short_done();
        self.burst_left = burst_left;
        Some(short.word)
    }

    /// If the turn of a link is over: begins the next one without a poll, and then the caller is to look
    /// after what else a poll does.
    pub(crate) fn begin_turn(&mut self) -> bool {
        if self.burst_left > 0 {
            return false;
        }
        if self.watching.is_any_unwatched() {
            self.watching.heed(&mut self.inlets);
        }
        self.next_turn();
        true
    }

    /// Whether the link whose turn it is has a packet.
    pub(crate) fn is_due(&mut self) -> bool {
        let inlet = self.inlets.at(self.turn);
        inlet.is_some_and(|inlet| inlet.end.is_due())
    }

    #[inline(always)]
    fn take_short(
        &mut self,
        peek: impl FnOnce(&R) -> Option<Short>,
        receive: impl FnOnce(&mut Receiver<Area>, &Short) -> Option<Notification>,
    ) -> Option<Notification> {
        // At the end of its turn the rest of the interface is looked after.
        let burst_left = self.burst_left.checked_sub(1)?;
        let inlet = self.inlets.at(self.turn)?;
        let short = peek(&inlet.end)?;
        let notification = receive(&mut self.receiver, &short)?;
        inlet.end.short_done();
        self.burst_left = burst_left;
        Some(notification)
    }

    /// Looks some times at nothing but the link whose turn it is: whether something is there. Much
    /// cheaper than a poll, so what comes next over the link that was last busy is seen sooner.
    #[inline]
    pub(crate) fn glance(&mut self) {
        let Some(inlet) = self.inlets.at(self.turn) else {
            return;
        };
        for _ in 0..GLANCES {
            if inlet.end.is_pending() {
                return;
            }
        }
    }

    /// Takes what has come, a turn of every link at most; stops at the first packet that announces
    /// itself in `waiting`, which must be empty.
    pub(crate) fn poll(&mut self, waiting: Option<QueueId>) -> Polled {
        let before = self.packets();
        let handed = self.poll_links(waiting);
        Polled {
            packets: self.packets() - before,
            handed,
            has_ended: !self.ended.is_empty(),
        }
    }

    fn poll_links(&mut self, waiting: Option<QueueId>) -> Option<Notification> {
        if self.watching.is_any_unwatched() {
            self.watching.heed(&mut self.inlets);
        }
        if self.burst_left == 0 {
            self.next_turn();
        }
        for _ in 0..self.watching.turns() {
            let handed = self.poll_link(self.turn, waiting);
            if handed.is_some() {
                return handed;
            }
            self.next_turn();
        }
        None
    }

    /// The next link has its turn.
    fn next_turn(&mut self) {
        let is_silent = self.burst_left == BURST_PACKETS;
        self.turns_packets = self.packets();
        self.burst_left = BURST_PACKETS;
        self.turn = self.watching.next(&mut self.inlets, is_silent);
    }

    /// Takes packets of that link until there is none, the turn is over, or one announces itself
    /// in `waiting`.
    fn poll_link(&mut self, index: usize, waiting: Option<QueueId>) -> Option<Notification> {
        while self.burst_left > 0 {
            let inlet = self.inlets.at(index)?;
            let receiver = &mut self.receiver;
            let token = inlet.token;
            let taken = inlet.end.receive(|header, payload| {
                let holder = || Some(Holder(token));
                receiver.receive_for(holder, header, payload, waiting)
            });
            match taken {
                Ok(Some(received)) => {
                    self.burst_left -= 1;
                    match received {
                        Ok(Received::Handed(notification)) => return Some(notification),
                        Ok(_) => {}
                        Err(refusal) => self.refused(index, refusal),
                    }
                }
                Ok(None) => {
                    inlet.end.settle_bulk();
                    if let Some(cause) = inlet.lost {
                        self.end(index, LinkEnd::Lost(cause));
                    }
                    return None;
                }
                Err(fault) => {
                    self.end(index, LinkEnd::Fault(fault));
                    return None;
                }
            }
        }
        None
    }

    /// A packet of that link was refused.
    #[cold]
    fn refused(&mut self, index: usize, refusal: Refusal) {
        if matches!(refusal, Refusal::BadKey | Refusal::BadEntryKey)
            && let Some(inlet) = self.inlets.at(index)
        {
            inlet.bad_keys += 1;
            if inlet.bad_keys > self.bad_keys_max {
                self.end(index, LinkEnd::BadKeys);
            }
        }
    }
}
