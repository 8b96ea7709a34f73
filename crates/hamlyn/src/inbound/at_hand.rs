//! The fast path: messages of the link whose turn it is, without a look at anything else.

use hamlyn_engine::metadata::MetadataEntry;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::port::Arrived;
use hamlyn_engine::receive::{Awaited, Receiver, ShortReceived};
use hamlyn_engine::receive_observer::ReceiveObserver;
use hamlyn_engine::slot::QueueId;
use hamlyn_link::{ReceiveEnd, Shortcut};
use hamlyn_ring::area::Area;

use super::{BURST_PACKETS, BURST_SHORT_PACKETS, Inbound, LOOKS_BETWEEN_POLLS, Reception};
use crate::arrival::ShortArrival;
use crate::inlet::{Found, InletName};
use crate::rx_links::RxLink;

impl<R: ReceiveEnd, O: ReceiveObserver<Area>> Inbound<R, O> {
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

    /// True if the fast paths are worth a try: if credit is due, it is returned first.
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
        let is_pending = |rx_link: &mut RxLink<R>| !rx_link.is_silent();
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
