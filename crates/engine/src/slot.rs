//! Slots: naming and protecting message areas (`Hamlyn 2.2`).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use crate::counting::Counting;
use crate::grant::Grants;
use crate::key::Key;
use crate::limits::{FAST_INDEX, SLOTS_MAX};
use crate::memory::{Area, Window};
use crate::metadata::MetadataArea;
use crate::packet::{Address, Header, SlotName};
use crate::refusal::{Refusal, Refusals};
use crate::table::{Name, Table};

/// What holders of the key may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rights(u8);

impl Rights {
    /// Nothing: packets are checked and discarded.
    pub const NONE: Rights = Rights(0);
    /// Deposit data.
    pub const WRITE: Rights = Rights(1);
    /// Read what is there (decision 0037).
    pub const READ: Rights = Rights(2);
    /// Change words atomically, and so learn what they were.
    pub const ATOMIC: Rights = Rights(4);
    /// All of these.
    pub const ALL: Rights = Rights(7);

    /// As one byte.
    #[inline]
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// What [`Rights::to_bits`] gave as this byte; nothing if it names rights that there are not.
    #[inline]
    pub const fn from_bits(bits: u8) -> Option<Rights> {
        if bits & !Self::ALL.0 == 0 {
            Some(Rights(bits))
        } else {
            None
        }
    }

    /// These and those.
    #[inline]
    #[must_use]
    pub const fn with(self, others: Rights) -> Rights {
        Rights(self.0 | others.0)
    }

    /// Whether any of those is granted.
    #[inline]
    pub const fn grant_any(self, of: Rights) -> bool {
        self.0 & of.0 != 0
    }

    /// Whether all of `wanted` is granted.
    #[inline]
    pub const fn grant(self, wanted: Rights) -> bool {
        self.0 & wanted.0 == wanted.0
    }
}

/// Mode of operation (`Hamlyn 2.7`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// The slot's bounds and key alone.
    #[default]
    Normal,
    /// Besides, the metadata entry's limits; and its key instead of the slot's.
    Paranoid,
    /// As paranoid, and each entry lets in one message until it is re-armed.
    ParanoidOneShot,
}

/// Names a notification queue of an interface. Never used twice for different queues.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueId(NonZeroU64);

impl QueueId {
    /// The queue of that name, as one number: so it is compared at once, and nothing but a queue is
    /// zero.
    pub(crate) const fn new(name: Name) -> Self {
        Self(NonZeroU64::MIN.saturating_add(name.to_bits()))
    }

    /// Its name in the table.
    #[inline]
    pub(crate) const fn name(self) -> Name {
        Name::from_bits(self.0.get() - 1)
    }
}

/// What a slot is opened with.
#[derive(Clone, Debug)]
pub struct SlotOptions<A> {
    /// The message area.
    pub area: A,
    /// Where in the area the slot begins.
    pub base: u64,
    /// How many bytes it covers.
    pub length_bytes: u64,
    /// The protection key.
    pub key: Key,
    /// What holders of the key may do.
    pub rights: Rights,
    /// Mode of operation.
    pub mode: Mode,
    /// Metadata entries; none if all messages come in fast mode or silently.
    pub metadata: Option<MetadataArea>,
    /// Where arrivals are announced; nowhere if none.
    pub queue: Option<QueueId>,
    /// Width of the packet accumulators.
    pub counting: Counting,
}

/// A slot could not be opened or used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SlotError {
    /// The bounds exceed the area.
    #[error("a slot of {length_bytes} bytes at {base} does not fit its area of {area_bytes} bytes")]
    DoesNotFit {
        /// Where the slot was to begin.
        base: u64,
        /// How long it was to be.
        length_bytes: u64,
        /// How long the area is.
        area_bytes: u64,
    },
    /// A paranoid slot without entries.
    #[error("a paranoid slot needs a metadata area, whose entries hold its limits and keys")]
    NoMetadataArea,
    /// A paranoid slot over memory that others may be given.
    #[error(
        "a paranoid slot needs memory that nobody can be granted: allocate a private area for it"
    )]
    SharedArea,
    /// The queue does not exist.
    #[error("the notification queue does not exist")]
    NoSuchQueue,
    /// All slots are in use.
    #[error("all {SLOTS_MAX} slots are in use: close one")]
    TooMany,
    /// The slot does not exist (any more).
    #[error("{0} is not open")]
    NotOpen(SlotName),
    /// The interface is that of the process from which the caller was forked.
    #[error(
        "the slot is of an interface that was opened before this process was forked: open a manager of its own in the child"
    )]
    Forked,
}

/// What the owner can learn of a slot.
#[derive(Clone, Debug)]
pub struct SlotInfo {
    /// Bytes that it covers.
    pub length_bytes: u64,
    /// Mode of operation.
    pub mode: Mode,
    /// Rights of key holders.
    pub rights: Rights,
    /// Whether it was revoked.
    pub revoked: bool,
    /// Number of metadata entries.
    pub metadata_entries: usize,
    /// Width of its accumulators.
    pub counting: Counting,
    /// Grants that are in force.
    pub grants: usize,
    /// Packets refused, by reason.
    pub refusals: Refusals,
}

/// An open slot as the reception path sees it.
#[derive(Debug)]
pub(crate) struct Slot<A> {
    pub(crate) area: A,
    pub(crate) base: u64,
    pub(crate) length_bytes: u64,
    pub(crate) key: Key,
    pub(crate) mode: Mode,
    pub(crate) rights: Rights,
    pub(crate) counting: Counting,
    pub(crate) revoked: bool,
    pub(crate) metadata: Option<MetadataArea>,
    pub(crate) queue: Option<QueueId>,
    /// The queue, if short packets to its entries may take the fast path: what
    /// [`SlotTable::update_fast_slot`] found.
    pub(crate) one_shot_queue: Option<QueueId>,
    pub(crate) grants: Grants,
    refusals: Box<Refusals>,
}

impl<A> Slot<A> {
    /// Whether nothing about the slot itself keeps short data out.
    fn takes_short(&self) -> bool {
        let writable = self.rights.grant(Rights::WRITE);
        !self.revoked && writable
    }
}

/// What decides about short packets in fast mode that a slot's key alone lets in, side by side.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct FastSlot<W> {
    /// The address of those packets, or one that is never compared with this entry. So one
    /// comparison says that the interface takes packets and the slot is open under that name, in
    /// normal mode, writable and not revoked.
    to: Address,
    pub(crate) key: Key,
    pub(crate) queue: Option<QueueId>,
    /// The slot, by its bounds.
    pub(crate) window: W,
}

impl<W: Window> FastSlot<W> {
    /// The entry of that place while nothing comes in by it.
    fn closed(index: usize) -> Self {
        Self {
            to: elsewhere(index),
            key: Key::from_bits(0),
            queue: None,
            window: W::empty(),
        }
    }
}

/// An address that leads to another place than that one, in a table of any size. So no number that
/// a peer writes for an address is found to be equal to that of a closed entry.
fn elsewhere(index: usize) -> Address {
    Address::from_bits(!(index as u64))
}

#[derive(Debug)]
pub(crate) struct SlotTable<A: Area> {
    slots: Table<Slot<A>, 16>,
    /// Of each place.
    fast_slots: Vec<FastSlot<A::Window>>,
    /// What an address is masked with to find its entry: not even speculation leaves the table, and
    /// as the whole address is compared, no more is needed.
    index_mask: u64,
    is_receive_enabled: bool,
}

/// A slot's name as the table has it.
#[inline(always)]
const fn place(name: SlotName) -> Name {
    Name {
        index: name.index() as u32,
        generation: name.generation() as u32,
    }
}

impl<A: Area> SlotTable<A> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Table::new(SLOTS_MAX, u16::MAX as u32),
            fast_slots: Vec::new(),
            index_mask: 0,
            is_receive_enabled: false,
        }
    }

    /// Whether the interface takes packets at all.
    #[inline]
    pub(crate) fn is_receive_enabled(&self) -> bool {
        self.is_receive_enabled
    }

    /// Opens or closes all slots at once.
    pub(crate) fn set_receive_enable(&mut self, open: bool) {
        if self.is_receive_enabled != open {
            self.is_receive_enabled = open;
            for index in 0..self.fast_slots.len() {
                self.update_fast_slot(index);
            }
        }
    }

    /// To be called after every change of the slot of that place, or of the receive enable.
    fn update_fast_slot(&mut self, index: usize) {
        let Some(fast_slot) = self.fast_slots.get_mut(index) else {
            return;
        };
        *fast_slot = FastSlot::closed(index);
        let Some((name, slot)) = self.slots.at_mut(index) else {
            return;
        };
        let takes_short = self.is_receive_enabled && slot.takes_short();
        let is_one_shot = takes_short && slot.mode == Mode::ParanoidOneShot;
        slot.one_shot_queue = slot.queue.filter(|_| is_one_shot);
        if takes_short && slot.mode == Mode::Normal && slot.queue.is_some() {
            let name = SlotName::new(name.index as u16, name.generation as u16);
            *fast_slot = FastSlot {
                to: Address::new(name, FAST_INDEX),
                key: slot.key,
                queue: slot.queue,
                window: slot.area.window(slot.base, slot.length_bytes),
            };
        }
    }

    pub(crate) fn open(&mut self, options: SlotOptions<A>) -> Result<SlotName, SlotError> {
        let area_bytes = options.area.length_bytes();
        if options
            .base
            .checked_add(options.length_bytes)
            .is_none_or(|end| end > area_bytes)
        {
            return Err(SlotError::DoesNotFit {
                base: options.base,
                length_bytes: options.length_bytes,
                area_bytes,
            });
        }
        if options.mode != Mode::Normal && options.metadata.is_none() {
            return Err(SlotError::NoMetadataArea);
        }
        // Pages of it could be granted by way of another slot.
        if options.mode != Mode::Normal && !options.area.is_private() {
            return Err(SlotError::SharedArea);
        }
        let slot = Slot {
            area: options.area,
            base: options.base,
            length_bytes: options.length_bytes,
            key: options.key,
            mode: options.mode,
            rights: options.rights,
            counting: options.counting,
            revoked: false,
            metadata: options.metadata,
            queue: options.queue,
            one_shot_queue: None,
            grants: Grants::default(),
            refusals: Box::default(),
        };
        let name = self.slots.insert(slot).ok_or(SlotError::TooMany)?;
        if self.fast_slots.len() < self.slots.capacity() {
            let places = self.fast_slots.len()..self.slots.capacity();
            self.fast_slots.extend(places.map(FastSlot::closed));
            self.index_mask = self.fast_slots.len() as u64 - 1;
        }
        self.update_fast_slot(name.index as usize);
        Ok(SlotName::new(name.index as u16, name.generation as u16))
    }

    pub(crate) fn close(&mut self, name: SlotName) -> Result<(), SlotError> {
        let closed = self.slots.remove(place(name));
        closed.ok_or(SlotError::NotOpen(name))?;
        self.update_fast_slot(usize::from(name.index()));
        Ok(())
    }

    /// Changes an open slot.
    pub(crate) fn change(
        &mut self,
        name: SlotName,
        change: impl FnOnce(&mut Slot<A>),
    ) -> Result<(), SlotError> {
        change(self.get_mut(name).ok_or(SlotError::NotOpen(name))?);
        self.update_fast_slot(usize::from(name.index()));
        Ok(())
    }

    /// For what has no part in how packets are let in; see [`SlotTable::change`].
    pub(crate) fn get_mut(&mut self, name: SlotName) -> Option<&mut Slot<A>> {
        self.slots.get_mut(place(name))
    }

    /// What decides about short packets in fast mode with this address, if the fast path is open to
    /// them.
    #[inline(always)]
    pub(crate) fn fast_slot(&self, to: Address) -> Option<&FastSlot<A::Window>> {
        let fast_slot = self
            .fast_slots
            .get((to.to_bits() & self.index_mask) as usize)?;
        (fast_slot.to == to).then_some(fast_slot)
    }

    /// All that are open.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot<A>> {
        self.slots.values_mut()
    }

    /// The slot that a packet names.
    #[inline(always)]
    pub(crate) fn named(&self, name: SlotName) -> Result<&Slot<A>, Refusal> {
        match self.slots.stamped(u64::from(name.to_bits())) {
            Some(slot) => Ok(slot),
            None => Err(self.absent(name)),
        }
    }

    #[cold]
    fn absent(&self, name: SlotName) -> Refusal {
        if self.slots.was_used(usize::from(name.index())) {
            Refusal::SlotClosed
        } else {
            Refusal::NoSuchSlot
        }
    }

    #[cold]
    pub(crate) fn count_refusal(&mut self, header: &Header, reason: Refusal) {
        if let Some(slot) = self.get_mut(header.slot) {
            slot.refusals.add(reason);
        }
    }

    pub(crate) fn info(&self, name: SlotName) -> Result<SlotInfo, SlotError> {
        let slot = self.slots.get(place(name));
        let slot = slot.ok_or(SlotError::NotOpen(name))?;
        Ok(SlotInfo {
            length_bytes: slot.length_bytes,
            mode: slot.mode,
            rights: slot.rights,
            revoked: slot.revoked,
            metadata_entries: slot.metadata.as_ref().map_or(0, MetadataArea::len),
            counting: slot.counting,
            grants: slot.grants.len(),
            refusals: *slot.refusals,
        })
    }

    pub(crate) fn open_count(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
#[path = "slot/tests.rs"]
mod tests;
