//! Slots: naming and protecting message areas (`Hamlyn 2.2`).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::counting::Counting;
use crate::grant::Grants;
use crate::key::Key;
use crate::limits::{FAST_INDEX, SHORT_BYTES, SLOTS_MAX};
use crate::memory::{Area, Window};
use crate::metadata::MetadataArea;
use crate::packet::{Address, Header, SlotName};
use crate::refusal::{Refusal, Refusals};

/// What holders of the key may do. Reading and atomic operations will join.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rights(u8);

impl Rights {
    /// Nothing: packets are checked and discarded.
    pub const NONE: Rights = Rights(0);
    /// Deposit data.
    pub const WRITE: Rights = Rights(1);

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

/// Names a notification queue of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueId(pub(crate) NonZeroU32);

impl QueueId {
    /// The queue at that place of the table.
    pub(crate) const fn at(place: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(place as u32))
    }

    /// Its place in the table.
    #[inline]
    pub(crate) const fn place(self) -> usize {
        self.0.get() as usize - 1
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
    /// The last offset at which short data fit.
    pub(crate) last_short: u64,
    pub(crate) grants: Grants,
    refusals: Box<Refusals>,
}

impl<A> Slot<A> {
    /// Whether nothing about the slot itself keeps short data out.
    fn takes_short(&self) -> bool {
        !self.revoked && self.rights.grant(Rights::WRITE) && self.length_bytes >= SHORT_BYTES as u64
    }
}

/// The shortest way into a slot, for short packets in fast mode that its key alone lets in: all that
/// decides about them, side by side.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Way<W> {
    /// The address of those packets, or [`Address::NOBODY`]. So one comparison says that the interface
    /// takes packets and the slot is open under that name, in normal mode, writable and not revoked.
    pub(crate) to: Address,
    pub(crate) key: Key,
    pub(crate) queue: QueueId,
    /// The slot, by its bounds.
    pub(crate) window: W,
}

impl<W: Window> Way<W> {
    fn closed() -> Self {
        Self {
            to: Address::NOBODY,
            key: Key::from_bits(0),
            // Of no matter: no packet has that address.
            queue: QueueId::at(0),
            window: W::empty(),
        }
    }
}

#[derive(Debug)]
struct Place<A> {
    /// The address of entry 0 of a `paranoid_one_shot` slot, as [`Way::to`].
    guarded: Address,
    generation: u16,
    slot: Option<Slot<A>>,
}

impl<A> Place<A> {
    const VACANT: Self = Self {
        guarded: Address::NOBODY,
        generation: 0,
        slot: None,
    };
}

#[derive(Debug)]
pub(crate) struct SlotTable<A: Area> {
    /// Padded to a power of two with closed places, so that a masked index is always inside.
    places: Vec<Place<A>>,
    /// Of each place.
    ways: Vec<Way<A::Window>>,
    /// What an address is masked with to find its way: not even speculation leaves the table, and as the
    /// whole address is compared, no more is needed.
    index_mask: u64,
    free: Vec<u16>,
    used: usize,
    gate_is_open: bool,
}

impl<A: Area> SlotTable<A> {
    pub(crate) fn new() -> Self {
        Self {
            places: Vec::new(),
            ways: Vec::new(),
            index_mask: 0,
            free: Vec::new(),
            used: 0,
            gate_is_open: false,
        }
    }

    /// Whether the interface takes packets at all.
    #[inline]
    pub(crate) fn gate_is_open(&self) -> bool {
        self.gate_is_open
    }

    /// Opens or closes all slots at once.
    pub(crate) fn set_gate(&mut self, open: bool) {
        if self.gate_is_open != open {
            self.gate_is_open = open;
            for index in 0..self.places.len() {
                self.note_ways(index as u16);
            }
        }
    }

    /// To be called after every change of the slot of that place, or of the gate.
    fn note_ways(&mut self, index: u16) {
        let place = &mut self.places[usize::from(index)];
        let way = &mut self.ways[usize::from(index)];
        (place.guarded, *way) = (Address::NOBODY, Way::closed());
        let name = SlotName::new(index, place.generation);
        match &place.slot {
            Some(slot) if self.gate_is_open && slot.takes_short() => {
                match (slot.mode, slot.queue) {
                    (Mode::Normal, Some(queue)) => {
                        *way = Way {
                            to: Address::new(name, FAST_INDEX),
                            key: slot.key,
                            queue,
                            window: slot.area.window(slot.base, slot.length_bytes),
                        };
                    }
                    (Mode::ParanoidOneShot, _) => place.guarded = Address::new(name, 0),
                    _ => {}
                }
            }
            _ => {}
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
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                if self.used == SLOTS_MAX {
                    return Err(SlotError::TooMany);
                }
                if self.used == self.places.len() {
                    let length = (self.used * 2).clamp(8, SLOTS_MAX);
                    self.places.resize_with(length, || Place::VACANT);
                    self.ways.resize_with(length, Way::closed);
                    self.index_mask = length as u64 - 1;
                }
                self.used += 1;
                (self.used - 1) as u16
            }
        };
        let place = &mut self.places[usize::from(index)];
        place.slot = Some(Slot {
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
            last_short: options.length_bytes.saturating_sub(SHORT_BYTES as u64),
            grants: Grants::default(),
            refusals: Box::default(),
        });
        let name = SlotName::new(index, place.generation);
        self.note_ways(index);
        Ok(name)
    }

    pub(crate) fn close(&mut self, name: SlotName) -> Result<(), SlotError> {
        self.get_mut(name).ok_or(SlotError::NotOpen(name))?;
        self.places[usize::from(name.index())].slot = None;
        self.note_ways(name.index());
        let place = &mut self.places[usize::from(name.index())];
        // A place whose generations are used up is never opened again.
        if let Some(generation) = place.generation.checked_add(1) {
            place.generation = generation;
            self.free.push(name.index());
        }
        Ok(())
    }

    /// Changes an open slot.
    pub(crate) fn change(
        &mut self,
        name: SlotName,
        change: impl FnOnce(&mut Slot<A>),
    ) -> Result<(), SlotError> {
        change(self.get_mut(name).ok_or(SlotError::NotOpen(name))?);
        self.note_ways(name.index());
        Ok(())
    }

    /// For what has no part in how packets are let in; see [`SlotTable::change`].
    pub(crate) fn get_mut(&mut self, name: SlotName) -> Option<&mut Slot<A>> {
        let place = self.places.get_mut(usize::from(name.index()))?;
        if place.generation != name.generation() {
            return None;
        }
        place.slot.as_mut()
    }

    /// The way of the packets with this address, if it is a short one.
    #[inline(always)]
    pub(crate) fn way(&self, to: Address) -> Option<&Way<A::Window>> {
        let way = self.ways.get((to.to_bits() & self.index_mask) as usize)?;
        (way.to == to).then_some(way)
    }

    /// The `paranoid_one_shot` slot of whose entries a packet names one, or would.
    #[inline(always)]
    pub(crate) fn guarded(&self, to: Address) -> Option<&Slot<A>> {
        let mask = self.places.len().wrapping_sub(1);
        let place = self.places.get(usize::from(to.slot().index()) & mask)?;
        if place.guarded != Address::new(to.slot(), 0) {
            return None;
        }
        place.slot.as_ref()
    }

    /// All that are open.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot<A>> {
        self.places
            .iter_mut()
            .filter_map(|place| place.slot.as_mut())
    }

    /// The slot that a packet names. The index is the peer's: after the bounds
    /// check it is masked as well, so that not even speculation leaves the table.
    #[inline(always)]
    pub(crate) fn named(&self, name: SlotName) -> Result<&Slot<A>, Refusal> {
        let index = usize::from(name.index());
        if index >= self.places.len() {
            return Err(Refusal::NoSuchSlot);
        }
        let place = &self.places[index & (self.places.len() - 1)];
        match &place.slot {
            Some(slot) if place.generation == name.generation() => Ok(slot),
            _ => Err(self.absent(index)),
        }
    }

    #[cold]
    fn absent(&self, index: usize) -> Refusal {
        if index < self.used {
            Refusal::SlotClosed
        } else {
            Refusal::NoSuchSlot
        }
    }

    #[cold]
    pub(crate) fn count_refusal(&mut self, header: &Header, reason: Refusal) {
        let Some(slot) = self.get_mut(header.slot) else {
            return;
        };
        slot.refusals.add(reason);
    }

    pub(crate) fn info(&self, name: SlotName) -> Result<SlotInfo, SlotError> {
        let slot = self
            .places
            .get(usize::from(name.index()))
            .filter(|place| place.generation == name.generation())
            .and_then(|place| place.slot.as_ref())
            .ok_or(SlotError::NotOpen(name))?;
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
        self.places
            .iter()
            .filter(|place| place.slot.is_some())
            .count()
    }
}
