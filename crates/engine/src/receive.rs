//! The receiving half of the interface: every check, then the deposit, the
//! count, and the notification (`Hamlyn 2.2` to `2.7`; ARCHITECTURE.md gives the order).
//!
//! Reception never waits for anything: not for transmission, and not for the application.

pub use crate::awaited::Awaited;
use crate::entry_access::EntryAccess;
use crate::limits::{FAST_INDEX, QUEUES_MAX, USER_METADATA_BYTES};
use crate::memory::{Area, Denied, LinkId, Payload};
use crate::notification::{Notification, NotificationWriter};
use crate::packet::{Flags, Header, Kind};
use crate::point::Point;
use crate::port::PortTable;
use crate::receive_observer::{ReceiveEvent, ReceiveObserver, Unobserved};
use crate::received::NoDeposit;
pub use crate::received::{Received, ShortReceived};
use crate::refusal::{Refusal, Refusals};
use crate::responder::Responder;
use crate::slot::{Mode, QueueId, Rights, SlotTable};
use crate::table::Table;

/// Above it are the queues of ports ([`crate::port::queue_of`]).
const QUEUE_GENERATION_MAX: u32 = (1 << 31) - 1;

/// Whether the interface takes packets (`Hamlyn 2.8`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReceiveEnable {
    NotSetUp,
    Open,
    Lapsed,
}

/// The receiving half. See the module for what it does.
///
/// * For the owner: `open_slot`, `close_slot`, `rekey_slot`, `revoke_slot`,
///   `slot_info`, `open_queue`, `close_queue`, `refusals`, `grant`, `end_grant`, `end_grants_of`.
/// * For the host: `set_up`, `handshake`, `tick`.
/// * For the links: `receive`, and beside it the one fast path, `receive_short`; `answer`,
///   `link_ended`.
///
/// `O` watches it; see [`crate::receive_observer`].
#[derive(Debug)]
pub struct Receiver<A: Area, O = Unobserved> {
    pub(crate) slots: SlotTable<A>,
    pub(crate) ports: PortTable,
    pub(crate) queues: Table<NotificationWriter>,
    pub(crate) refusals: Refusals,
    /// Notifications put into queues, all together.
    pub(crate) announced: u64,
    receive_enable: ReceiveEnable,
    handshake_period_ns: Option<u64>,
    handshake_ns: u64,
    pub(crate) grants_made: u64,
    /// What one-sided operations are answered.
    pub(crate) responder: Responder,
    pub(crate) observer: O,
}

impl<A: Area> Receiver<A> {
    /// A half that discards everything until [`Receiver::set_up`]. If
    /// `handshake_period_ns` is given, it falls back to that whenever
    /// the host has been silent for longer.
    pub fn new(handshake_period_ns: Option<u64>) -> Self {
        Self::observed(handshake_period_ns, Unobserved)
    }
}

impl<A: Area, O: ReceiveObserver<A>> Receiver<A, O> {
    /// As [`Receiver::new`], of a half that somebody watches.
    pub fn observed(handshake_period_ns: Option<u64>, observer: O) -> Self {
        Self {
            observer,
            slots: SlotTable::new(),
            ports: PortTable::new(),
            queues: Table::new(QUEUES_MAX, QUEUE_GENERATION_MAX),
            refusals: Refusals::default(),
            announced: 0,
            receive_enable: ReceiveEnable::NotSetUp,
            handshake_period_ns,
            handshake_ns: 0,
            grants_made: 0,
            responder: Responder::default(),
        }
    }

    /// Tells who watches.
    #[inline(always)]
    pub(crate) fn tell<'a>(&mut self, event: impl FnOnce() -> ReceiveEvent<'a, A>)
    where
        A: 'a,
    {
        if O::LISTENS {
            self.observer.observe(event());
        }
    }

    /// The host is ready: packets are let in from now on.
    pub fn set_up(&mut self, now_ns: u64) {
        self.set_receive_enable(ReceiveEnable::Open);
        self.handshake_ns = now_ns;
    }

    /// The host is alive. Enables receiving again if it had lapsed; not before
    /// [`Receiver::set_up`].
    pub fn handshake(&mut self, now_ns: u64) {
        self.handshake_ns = now_ns;
        if self.receive_enable == ReceiveEnable::Lapsed {
            self.set_receive_enable(ReceiveEnable::Open);
        }
    }

    /// Lets time pass. Returns when to call again at the latest.
    pub fn tick(&mut self, now_ns: u64) -> Option<u64> {
        let deadline = self.handshake_ns.saturating_add(self.handshake_period_ns?);
        if self.receive_enable == ReceiveEnable::Open && now_ns >= deadline {
            self.set_receive_enable(ReceiveEnable::Lapsed);
        }
        (self.receive_enable == ReceiveEnable::Open).then_some(deadline)
    }

    fn set_receive_enable(&mut self, receive_enable: ReceiveEnable) {
        self.receive_enable = receive_enable;
        let is_open = receive_enable == ReceiveEnable::Open;
        self.slots.set_receive_enable(is_open);
        self.tell(|| ReceiveEvent::Enabled(is_open));
    }

    /// Packets refused by this interface, by reason.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// How many notifications were put into queues so far, all queues together. As long as it
    /// stays the same, an empty queue is empty.
    #[inline]
    pub fn announced(&self) -> u64 {
        self.announced
    }

    /// Takes one packet, which came over that link. `header` must be a private copy; `payload` may
    /// change at any time. Nothing that a packet can say panics, blocks or writes outside the
    /// bounds its key opens.
    ///
    /// A caller who just found the queue `waiting` empty, and would take the notification out of it
    /// at once, has it handed over without the detour.
    #[inline(always)]
    pub fn receive<P: Payload<A> + Clone>(
        &mut self,
        from: LinkId,
        header: &Header,
        payload: &P,
        waiting: Option<QueueId>,
    ) -> Result<Received, Refusal> {
        self.telling(from, header, payload, waiting, |receiver| {
            match receiver.admit(from, header, payload, waiting) {
                Ok(received) => Ok(received),
                Err(reason) => {
                    // Copies, so that on the way above neither need be in memory.
                    let (header, payload) = (*header, payload.clone());
                    // Neither need what is received: a word comes back.
                    receiver
                        .turn_down(from, &header, &payload, waiting, reason)
                        .map(|turned| turned.received(from, &header))
                }
            }
        })
    }

    /// The same, for links by which requests come more often than messages that are not short: the
    /// outcome is the same, sooner for a request.
    pub fn receive_from_line<P: Payload<A> + Clone>(
        &mut self,
        from: LinkId,
        header: &Header,
        payload: &P,
        waiting: Option<QueueId>,
    ) -> Result<Received, Refusal> {
        if !header.kind.is_request() || !self.slots.is_receive_enabled() {
            return self.receive(from, header, payload, waiting);
        }
        self.telling(from, header, payload, waiting, |receiver| {
            // For what it would be refused as a message does not matter: it is received as a
            // request.
            receiver
                .turn_down(from, header, payload, waiting, Refusal::UnknownKind)
                .map(|turned| turned.received(from, header))
        })
    }

    /// Receives a packet, and tells the observer of it and of what became of it.
    #[inline(always)]
    fn telling<P: Payload<A>>(
        &mut self,
        from: LinkId,
        header: &Header,
        payload: &P,
        waiting: Option<QueueId>,
        receive: impl FnOnce(&mut Self) -> Result<Received, Refusal>,
    ) -> Result<Received, Refusal> {
        self.tell(|| ReceiveEvent::Came {
            header,
            payload,
            from,
            waiting,
        });
        let reception = receive(self);
        if O::LISTENS {
            self.observer.observe(ReceiveEvent::Done {
                reception,
                refusals: &self.refusals,
            });
        }
        reception
    }

    /// A packet is no deposit that may come in: perhaps it is a request, or a message to a port.
    #[cold]
    #[inline(never)]
    fn turn_down<P: Payload<A>>(
        &mut self,
        from: LinkId,
        header: &Header,
        payload: &P,
        waiting: Option<QueueId>,
        mut reason: Refusal,
    ) -> Result<NoDeposit, Refusal> {
        if self.slots.is_receive_enabled() {
            if header.kind == Kind::MESSAGE {
                return self.receive_message(from, header, payload, waiting);
            }
            if header.kind.is_request() {
                match self.receive_request(from, header, payload) {
                    Ok(()) => return Ok(NoDeposit::Asked),
                    Err(found) => reason = found,
                }
            }
        }
        payload.passes(Point::Refused);
        self.refusals.add(reason);
        if header.kind != Kind::MESSAGE {
            self.slots.count_refusal(header, reason);
        }
        Err(reason)
    }

    #[inline(always)]
    fn admit<P: Payload<A>>(
        &mut self,
        from: LinkId,
        header: &Header,
        payload: &P,
        waiting: Option<QueueId>,
    ) -> Result<Received, Refusal> {
        payload.passes(Point::HeaderRead);
        if !self.slots.is_receive_enabled() {
            return Err(match self.receive_enable {
                ReceiveEnable::NotSetUp => Refusal::NotSetUp,
                _ => Refusal::HandshakeLapsed,
            });
        }
        let slot = self.slots.named(header.slot)?;
        payload.passes(Point::SlotRead);
        if slot.revoked {
            return Err(Refusal::SlotRevoked);
        }
        // Hamlyn 2.7: in the paranoid modes the entry's key supersedes the slot's.
        if slot.mode == Mode::Normal {
            payload.passes(Point::KeyChecked);
            if slot.key != header.key {
                return Err(Refusal::BadKey);
            }
        }
        let length = u64::from(header.length_bytes);
        let end = header
            .offset
            .checked_add(length)
            .ok_or(Refusal::OutOfBounds)?;
        if end > slot.length_bytes {
            return Err(Refusal::OutOfBounds);
        }
        let entry = match (&slot.metadata, header.metadata_index) {
            (_, FAST_INDEX) if slot.mode == Mode::Normal => None,
            (_, FAST_INDEX) => return Err(Refusal::FastToParanoid),
            (Some(area), index) => {
                let entry = area.named(index).ok_or(Refusal::NoMetadataEntry)?;
                Some(EntryAccess::new(entry, payload))
            }
            (None, _) => return Err(Refusal::NoMetadataEntry),
        };
        let mut limits = (0, 0);
        if slot.mode != Mode::Normal
            && let Some(entry) = &entry
        {
            let (permission, armed) = entry
                .admission(slot.mode == Mode::ParanoidOneShot)
                .ok_or(Refusal::BadEntryKey)?;
            if header.offset < permission.low || end > permission.high {
                return Err(Refusal::OutOfLimits);
            }
            payload.passes(Point::KeyChecked);
            if header.key != permission.key {
                return Err(Refusal::BadEntryKey);
            }
            if !armed {
                return Err(Refusal::EntrySpent);
            }
            limits = (permission.low, permission.high.min(slot.length_bytes));
        }
        if header.kind != Kind::WRITE {
            return Err(Refusal::UnknownKind);
        }
        let placed = header.flags.0 & !Flags::SILENT.0 != 0;
        if placed && header.flags.0 & !Flags::SILENT.with(Flags::PLACED).0 != 0 {
            return Err(Refusal::UnknownFlag);
        }
        if !slot.rights.grant(Rights::WRITE) {
            return Err(Refusal::NoRight);
        }
        let metadata_length = usize::from(header.metadata_length_bytes);
        if metadata_length > USER_METADATA_BYTES || (entry.is_none() && metadata_length != 0) {
            return Err(Refusal::BadMetadata);
        }

        // From here on the packet is welcome. `base + offset` cannot overflow:
        // the slot fits its area and the packet fits the slot.
        if placed {
            if !payload.shares_memory() {
                return Err(Refusal::NotGranted);
            }
            slot.grants.cover(from, header.offset..end)?;
        } else {
            payload
                .deposit(&slot.area, slot.base + header.offset)
                .map_err(|denied| match denied {
                    Denied::InUse => Refusal::PlaceInUse,
                    Denied::OutOfArea => Refusal::OutOfBounds,
                })?;
            payload.passes(Point::Deposited(header.length_bytes));
        }

        let mut word = header.word;
        if let Some(entry) = entry {
            // Hamlyn 2.5: a delta of zero announces the message without a look at the accumulator.
            let delta = slot.counting.delta(header.word);
            let before = if delta == 0 { 0 } else { entry.accumulator() };
            match payload.metadata_word() {
                // The first packet of a message that comes: nothing is known of its metadata yet.
                _ if metadata_length == 0 => {
                    if before == 0 {
                        entry.forget_metadata();
                    }
                }
                Some(word) if metadata_length <= size_of::<u64>() => {
                    entry.store_metadata_word(word, metadata_length);
                }
                _ => entry.store_metadata(metadata_length),
            }
            if slot.mode == Mode::ParanoidOneShot {
                match delta {
                    0 => entry.set_landed(header.offset, header.length_bytes),
                    _ => entry.add_landed(slot.key, header.offset, header.length_bytes),
                }
            }
            if delta != 0 {
                let sum = slot.counting.add(before, delta);
                entry.set_accumulator(sum);
                if sum != 0 {
                    return Ok(Received::Deposited);
                }
            }
            word = entry.receive_class();
            if slot.mode == Mode::ParanoidOneShot {
                // Spent last: from then on the application may give the place and the entry away
                // again.
                slot.area
                    .message_complete(slot.base + limits.0, slot.base + limits.1);
                entry.spend();
            }
        }
        let Some(queue) = slot.queue else {
            return Ok(Received::Complete);
        };
        if header.flags.is_silent() {
            return Ok(Received::Complete);
        }
        let notification = Notification {
            slot: header.slot,
            metadata_index: header.metadata_index,
            word,
            from,
        };
        if waiting == Some(queue) {
            payload.passes(Point::Notified);
            return Ok(Received::Handed(notification));
        }
        if let Some(writer) = self.queues.get_mut(queue.name()) {
            payload.passes(match slot.metadata {
                Some(_) => Point::Notified,
                None => Point::Signalled,
            });
            writer.push(notification);
            self.announced += 1;
            self.tell(|| ReceiveEvent::Announced(queue, notification));
        }
        Ok(Received::Complete)
    }
}
