//! The receiving half of the interface: every check, then the deposit, the
//! count, and the notification (`Hamlyn 2.2` to `2.7`; ARCHITECTURE.md gives the order).
//!
//! Reception never waits for anything: not for transmission, and not for the application.

use alloc::vec::Vec;
use core::ops::Range;

pub use crate::awaited::Awaited;
use crate::grant::{GrantId, GrantRefused, Holder};
use crate::key::Key;
use crate::limits::{FAST_INDEX, SHORT_BYTES, USER_METADATA_BYTES};
use crate::memory::{Area, Denied, Payload, Window};
use crate::metadata::{MetadataArea, MetadataEntry};
use crate::notification::{
    BadQueueLength, Notification, NotificationReader, NotificationWriter, queue,
};
use crate::packet::{Flags, Header, Kind, ShortInPlace, Single, SlotName};
use crate::refusal::{Refusal, Refusals};
use crate::slot::{Mode, QueueId, Rights, SlotError, SlotInfo, SlotOptions, SlotTable};

/// What became of a packet that was let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// Deposited; more of its message or group is to come.
    Deposited,
    /// Deposited, and its message or group is complete; announced, if it was to be.
    Complete,
    /// Complete, and the announcement is here instead of in the queue: see [`Receiver::receive_for`].
    Handed(Notification),
}

/// Whether the interface takes packets (`Hamlyn 2.8`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gate {
    NotSetUp,
    Open,
    Lapsed,
}

/// The receiving half. See the module for what it does.
///
/// * For the owner: `open_slot`, `close_slot`, `rekey_slot`, `revoke_slot`,
///   `slot_info`, `open_queue`, `close_queue`, `refusals`, `grant`, `end_grant`, `end_grants_of`.
/// * For the host: `set_up`, `handshake`, `tick`.
/// * For the links: `receive`, `receive_from`.
#[derive(Debug)]
pub struct Receiver<A: Area> {
    slots: SlotTable<A>,
    queues: Vec<Option<NotificationWriter>>,
    refusals: Refusals,
    /// Notifications put into queues, all together.
    announced: u64,
    gate: Gate,
    handshake_period_ns: Option<u64>,
    handshake_ns: u64,
    grants_made: u64,
}

impl<A: Area> Receiver<A> {
    /// A half that discards everything until [`Receiver::set_up`]. If
    /// `handshake_period_ns` is given, it falls back to that whenever
    /// the host has been silent for longer.
    pub fn new(handshake_period_ns: Option<u64>) -> Self {
        Self {
            slots: SlotTable::new(),
            queues: Vec::new(),
            refusals: Refusals::default(),
            announced: 0,
            gate: Gate::NotSetUp,
            handshake_period_ns,
            handshake_ns: 0,
            grants_made: 0,
        }
    }

    /// The host is ready: packets are let in from now on.
    pub fn set_up(&mut self, now_ns: u64) {
        self.set_gate(Gate::Open);
        self.handshake_ns = now_ns;
    }

    /// The host is alive. Opens the gate again if it had lapsed; not before [`Receiver::set_up`].
    pub fn handshake(&mut self, now_ns: u64) {
        self.handshake_ns = now_ns;
        if self.gate == Gate::Lapsed {
            self.set_gate(Gate::Open);
        }
    }

    /// Lets time pass. Returns when to call again at the latest.
    pub fn tick(&mut self, now_ns: u64) -> Option<u64> {
        let deadline = self.handshake_ns.saturating_add(self.handshake_period_ns?);
        if self.gate == Gate::Open && now_ns >= deadline {
            self.set_gate(Gate::Lapsed);
        }
        (self.gate == Gate::Open).then_some(deadline)
    }

    fn set_gate(&mut self, gate: Gate) {
        self.gate = gate;
        self.slots.set_gate(gate == Gate::Open);
    }

    /// Opens a notification queue of at least `entries` entries. Allocates.
    pub fn open_queue(
        &mut self,
        entries: usize,
    ) -> Result<(QueueId, NotificationReader), BadQueueLength> {
        let (writer, reader) = queue(entries)?;
        let index = match self.queues.iter().position(Option::is_none) {
            Some(index) => index,
            None => {
                self.queues.push(None);
                self.queues.len() - 1
            }
        };
        self.queues[index] = Some(writer);
        Ok((QueueId::at(index), reader))
    }

    /// Closes a queue. Slots that still name it announce nothing any more, so
    /// close them first: the number is used again.
    pub fn close_queue(&mut self, queue: QueueId) {
        if let Some(place) = self.queues.get_mut(queue.place()) {
            *place = None;
        }
    }

    /// Opens a slot (`Hamlyn 2.2`). Allocates.
    pub fn open_slot(&mut self, options: SlotOptions<A>) -> Result<SlotName, SlotError> {
        if let Some(queue) = options.queue
            && self.queues.get(queue.place()).is_none_or(Option::is_none)
        {
            return Err(SlotError::NoSuchQueue);
        }
        self.slots.open(options)
    }

    /// Closes a slot: its name will never be good again.
    pub fn close_slot(&mut self, name: SlotName) -> Result<(), SlotError> {
        self.slots.close(name)
    }

    /// Changes a slot's key; who holds the old one is shut out. Undoes a revocation.
    pub fn rekey_slot(&mut self, name: SlotName, key: Key) -> Result<(), SlotError> {
        self.slots.change(name, |slot| {
            slot.key = key;
            slot.revoked = false;
        })
    }

    /// Shuts out everybody until the slot is re-keyed.
    pub fn revoke_slot(&mut self, name: SlotName) -> Result<(), SlotError> {
        self.slots.change(name, |slot| slot.revoked = true)
    }

    /// Lets `holder` store into that range of the slot by itself. Allocates.
    pub fn grant(
        &mut self,
        name: SlotName,
        range: Range<u64>,
        holder: Holder,
    ) -> Result<GrantId, GrantRefused> {
        let slot = self
            .slots
            .get_mut(name)
            .ok_or(GrantRefused::NotOpen(name))?;
        if slot.mode != Mode::Normal {
            return Err(GrantRefused::Paranoid(name));
        }
        let serial = self.grants_made;
        slot.grants.add(slot.length_bytes, range, holder, serial)?;
        self.grants_made += 1;
        Ok(GrantId { slot: name, serial })
    }

    /// The area of a slot, and where in it the slot begins.
    pub fn slot_place(&self, name: SlotName) -> Result<(&A, u64), SlotError> {
        let slot = self
            .slots
            .named(name)
            .map_err(|_| SlotError::NotOpen(name))?;
        Ok((&slot.area, slot.base))
    }

    /// Ends a grant: placed packets that come from now on are refused. False if it had ended,
    /// with its slot or by itself.
    pub fn end_grant(&mut self, grant: GrantId) -> bool {
        self.slots
            .get_mut(grant.slot)
            .is_some_and(|slot| slot.grants.end(grant.serial))
    }

    /// Ends all grants of a peer that is gone.
    pub fn end_grants_of(&mut self, holder: Holder) {
        for slot in self.slots.iter_mut() {
            slot.grants.end_all_of(holder);
        }
    }

    /// What is known of a slot.
    pub fn slot_info(&self, name: SlotName) -> Result<SlotInfo, SlotError> {
        self.slots.info(name)
    }

    /// Number of slots open.
    pub fn slots_open(&self) -> usize {
        self.slots.open_count()
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

    /// Takes one packet. `header` must be a private copy; `payload` may change
    /// at any time. Nothing that a packet can say panics, blocks or writes
    /// outside the bounds its key opens.
    /// It comes from nobody who could have a grant; otherwise see [`Receiver::receive_for`].
    #[inline(always)]
    pub fn receive<P: Payload<A>>(
        &mut self,
        header: &Header,
        payload: &P,
    ) -> Result<Received, Refusal> {
        self.receive_for(|| None, header, payload, None)
    }

    /// As [`Receiver::receive`], for a caller who just found the queue `waiting` empty and would
    /// take the notification out of it at once: it is handed over without the detour. `holder` is asked
    /// only if the packet says that it was placed.
    #[inline(always)]
    pub fn receive_for<P: Payload<A>>(
        &mut self,
        holder: impl FnOnce() -> Option<Holder>,
        header: &Header,
        payload: &P,
        waiting: Option<QueueId>,
    ) -> Result<Received, Refusal> {
        match self.admit(holder, header, payload, waiting) {
            Ok(received) => Ok(received),
            Err(reason) => Err(self.refuse(header, reason)),
        }
    }

    /// The shortest way: for a packet in fast mode to a slot whose key alone decides, announced in
    /// the empty queue `waiting`. Nothing for any other packet, and for one that is refused: that has
    /// had no effect, and [`Receiver::receive_for`] is to judge it.
    #[inline(always)]
    pub fn receive_short<P: ShortInPlace>(
        &mut self,
        short: &P,
        waiting: QueueId,
    ) -> Option<Notification> {
        let to = short.to();
        let way = self.slots.way(to)?;
        if P::HAS_METADATA
            || way.key != short.key()
            || way.queue != waiting
            || !way.window.write_words(short.offset(), short.data())
        {
            return None;
        }
        Some(Notification {
            slot: to.slot(),
            metadata_index: FAST_INDEX,
            word: short.word(),
        })
    }

    /// As [`Receiver::receive_short`], for a packet with a word of metadata to an entry of a
    /// `paranoid_one_shot` slot.
    #[inline(always)]
    pub fn receive_guarded<P: ShortInPlace>(
        &mut self,
        short: &P,
        waiting: QueueId,
    ) -> Option<Notification> {
        let short = &short.copied();
        let slot = self.slots.guarded(short.to)?;
        let metadata_index = short.to.metadata_index();
        let entry = slot.metadata.as_ref()?.entry(metadata_index)?;
        if !short.has_metadata || slot.queue != Some(waiting) {
            return None;
        }
        let (low, high) = entry.admit_once(short.key, short.offset, SHORT_BYTES as u64)?;
        if high > slot.length_bytes {
            return None;
        }
        // What is at most `high` lies in the slot, so nothing overflows.
        let at = slot.base + short.offset;
        slot.area
            .complete_with_words(at, short.data, slot.base + low, slot.base + high)
            .ok()?;
        entry.store_metadata_word(short.word, size_of_val(&short.word));
        let word = entry.receive_class();
        entry.spend();
        Some(Notification {
            slot: short.to.slot(),
            metadata_index,
            word,
        })
    }

    /// As [`Receiver::receive_guarded`], for the application that awaits the message to one entry and
    /// knows what it has permitted there, so that only whether it is armed need be looked up. Its word
    /// of metadata, if the message came; it is not announced. `metadata` are the entries of the slot.
    #[inline(always)]
    pub fn receive_awaited<P: ShortInPlace>(
        &mut self,
        short: &P,
        waiting: &QueueId,
        awaited: &Awaited,
        metadata: &MetadataArea,
    ) -> Option<u64> {
        let to = awaited.to;
        if !P::HAS_METADATA || short.to() != to || short.key() != awaited.key {
            return None;
        }
        let slot = self.slots.guarded(to)?;
        let entry = metadata.entry(to.metadata_index())?;
        debug_assert!(awaited.is_permitted(slot, entry));
        let offset = short.offset();
        if offset.wrapping_sub(awaited.low) > awaited.spread
            || offset > slot.last_short
            || slot.queue != Some(*waiting)
            || !entry.is_armed()
        {
            return None;
        }
        let at = slot.base + offset;
        // The limits lie in one piece, so the piece of the data is all that changes hands.
        let end = at + SHORT_BYTES as u64;
        slot.area
            .complete_with_words(at, short.data(), at, end)
            .ok()?;
        let word = short.word();
        entry.store_metadata_word(word, size_of_val(&word));
        entry.spend();
        Some(word)
    }

    /// As [`Receiver::receive_for`], for a single packet that is announced in the empty queue `waiting`: each
    /// check once. Nothing for one that is refused, a part of a message, announced elsewhere, or for a `paranoid`
    /// slot: that has had no effect, and the other is to judge it.
    /// `single` must be a private copy; `payload` may change at any time.
    #[inline(always)]
    pub fn receive_single<P: Payload<A>>(
        &mut self,
        holder: impl FnOnce() -> Option<Holder>,
        single: &Single,
        payload: &P,
        waiting: QueueId,
    ) -> Option<Notification> {
        if !self.slots.gate_is_open() {
            return None;
        }
        let slot = self.slots.named(single.to.slot()).ok()?;
        if slot.revoked || slot.queue != Some(waiting) || !slot.rights.grant(Rights::WRITE) {
            return None;
        }
        let end = single.offset.checked_add(u64::from(single.length_bytes))?;
        if end > slot.length_bytes {
            return None;
        }
        let metadata_index = single.to.metadata_index();
        let entry = if single.to.is_fast() {
            None
        } else {
            Some(slot.metadata.as_ref()?.entry(metadata_index)?)
        };
        let mut limits = None;
        match (slot.mode, entry) {
            (Mode::Normal, _) if slot.key == single.key => {}
            (Mode::ParanoidOneShot, Some(entry)) => {
                let length = u64::from(single.length_bytes);
                let (low, high) = entry.admit_once(single.key, single.offset, length)?;
                limits = Some((low, high.min(slot.length_bytes)));
            }
            _ => return None,
        }
        match entry {
            None if single.has_metadata => return None,
            // A delta that counts.
            Some(_) if !single.has_metadata && single.word != 0 => return None,
            _ => {}
        }
        if single.is_placed {
            let place = single.offset..end;
            slot.grants.cover(holder()?, place).ok()?;
        } else {
            // `base + offset` cannot overflow: the slot fits its area and the packet fits the slot.
            let at = slot.base + single.offset;
            payload.deposit(&slot.area, at).ok()?;
        }
        let Some(entry) = entry else {
            return Some(Notification {
                slot: single.to.slot(),
                metadata_index,
                word: single.word,
            });
        };
        if single.has_metadata {
            entry.store_metadata_word(single.word, size_of_val(&single.word));
        }
        let word = entry.receive_class();
        if let Some((low, high)) = limits {
            slot.area
                .message_complete(slot.base + low, slot.base + high);
            // Last: from then on the application may give the place and the entry away again.
            entry.spend();
        }
        Some(Notification {
            slot: single.to.slot(),
            metadata_index,
            word,
        })
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, header: &Header, reason: Refusal) -> Refusal {
        self.refusals.add(reason);
        self.slots.count_refusal(header, reason);
        reason
    }

    #[inline(always)]
    fn admit<P: Payload<A>>(
        &mut self,
        holder: impl FnOnce() -> Option<Holder>,
        header: &Header,
        payload: &P,
        waiting: Option<QueueId>,
    ) -> Result<Received, Refusal> {
        if !self.slots.gate_is_open() {
            return Err(match self.gate {
                Gate::NotSetUp => Refusal::NotSetUp,
                _ => Refusal::HandshakeLapsed,
            });
        }
        let slot = self.slots.named(header.slot)?;
        if slot.revoked {
            return Err(Refusal::SlotRevoked);
        }
        // Hamlyn 2.7: in the paranoid modes the entry's key supersedes the slot's.
        if slot.mode == Mode::Normal && slot.key != header.key {
            return Err(Refusal::BadKey);
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
            (Some(area), index) => Some(area.entry(index).ok_or(Refusal::NoMetadataEntry)?),
            (None, _) => return Err(Refusal::NoMetadataEntry),
        };
        let mut limits = (0, 0);
        if slot.mode != Mode::Normal
            && let Some(entry) = entry
        {
            let (permission, armed) = entry
                .admission(slot.mode == Mode::ParanoidOneShot)
                .ok_or(Refusal::BadEntryKey)?;
            if header.offset < permission.low || end > permission.high {
                return Err(Refusal::OutOfLimits);
            }
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
            let holder = holder().ok_or(Refusal::NotGranted)?;
            slot.grants.cover(holder, header.offset..end)?;
        } else {
            payload
                .deposit(&slot.area, slot.base + header.offset)
                .map_err(|denied| match denied {
                    Denied::InUse => Refusal::PlaceInUse,
                    Denied::OutOfArea => Refusal::OutOfBounds,
                })?;
        }

        let mut word = header.word;
        if let Some(entry) = entry {
            if metadata_length != 0 {
                match payload.metadata_word() {
                    Some(word) if metadata_length <= size_of::<u64>() => {
                        entry.store_metadata_word(word, metadata_length);
                    }
                    _ => store_metadata(entry, payload, metadata_length),
                }
            }
            // Hamlyn 2.5: a delta of zero announces the message without a look at the accumulator.
            let delta = slot.counting.delta(header.word);
            if delta != 0 {
                let sum = slot.counting.add(entry.accumulator(), delta);
                entry.set_accumulator(sum);
                if sum != 0 {
                    return Ok(Received::Deposited);
                }
            }
            word = entry.receive_class();
            if slot.mode == Mode::ParanoidOneShot {
                // Spent last: from then on the application may give the place and the entry away again.
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
        };
        if waiting == Some(queue) {
            return Ok(Received::Handed(notification));
        }
        if let Some(Some(writer)) = self.queues.get_mut(queue.place()) {
            writer.push(notification);
            self.announced += 1;
        }
        Ok(Received::Complete)
    }
}

/// Metadata that did not come as one word.
#[inline(never)]
fn store_metadata<A: Area, P: Payload<A>>(entry: &MetadataEntry, payload: &P, length_bytes: usize) {
    let mut metadata = [0; USER_METADATA_BYTES];
    payload.metadata(&mut metadata, length_bytes);
    entry.store_metadata(&metadata, length_bytes);
}
