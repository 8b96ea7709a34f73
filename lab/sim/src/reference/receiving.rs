//! The receiving half: which packets are let in, what they write, and what is announced
//! (`Hamlyn 2.2` to `2.8`).
//!
//! What a packet does is decided by its header alone, so hostile packets are judged like others: a
//! holder of a key may lie about deltas, and then the accumulator is what it is.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use hamlyn_engine::grant::{GrantId, Holder};
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{FAST_INDEX, USER_METADATA_BYTES};
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::{MetadataEntry, Permission};
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::{Flags, Header, Kind, PortName, SlotName};
use hamlyn_engine::port::{Arrived, PortOptions};
use hamlyn_engine::receive::Received;
use hamlyn_engine::receive_observer::PortChange;
use hamlyn_engine::refusal::{Refusal, Refusals};
use hamlyn_engine::slot::{Mode, QueueId, Rights};

use super::Violation;
use super::entry::{Entries, Entry};
use super::memory::{Memory, StoreId};
use super::operating::{self, Answers};
use super::ports::Ports;
use super::queue::Queue;

/// What became of a packet.
pub type Reception = Result<Received, Refusal>;

/// A slot as it is opened.
#[derive(Clone, Debug)]
pub struct NewSlot {
    /// Number of its area.
    pub area: usize,
    /// Where in the area it begins.
    pub base: u64,
    /// How long it is.
    pub length_bytes: u64,
    /// Its key.
    pub key: Key,
    /// What holders of the key may do.
    pub rights: Rights,
    /// Its mode.
    pub mode: Mode,
    /// Number of its metadata area, which several slots may share.
    pub entries: Option<usize>,
    /// Number of its queue.
    pub queue: Option<usize>,
    /// The modulus of its accumulators: 2^32 or 2^64.
    pub modulus: u128,
}

#[derive(Clone, Debug)]
struct Slot {
    new: NewSlot,
    revoked: bool,
    grants: Vec<(GrantId, Holder, Range<u64>)>,
    refusals: Counts,
}

/// Refusals by reason.
type Counts = Vec<u64>;

fn no_counts() -> Counts {
    vec![0; Refusal::ALL.len()]
}

/// Whether packets are taken at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveEnable {
    /// The host has not set up the interface.
    NotSetUp,
    /// They are.
    Open,
    /// The host has been silent for too long.
    Lapsed,
}

/// A packet as it comes in.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// What it says.
    pub header: &'a Header,
    /// Its metadata.
    pub metadata: &'a [u8],
    /// Its data; none if they were placed.
    pub data: &'a [u8],
    /// Who sent it, if that one may have grants.
    pub from: LinkId,
    /// Number of the queue whose next notification is handed over instead of queued.
    pub waiting: Option<usize>,
    /// The queue that stands for the port, or set of ports, whose next message is handed over
    /// instead of queued; or that one.
    pub asked: Option<QueueId>,
}

/// What a packet must have done.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Outcome {
    /// What became of it.
    pub reception: Reception,
    /// What it wrote: area and bytes of it.
    pub written: Option<(usize, Range<u64>)>,
    /// What a one-shot entry completed: area, first byte, first byte after.
    pub completed: Option<(usize, u64, u64)>,
}

impl Outcome {
    /// Whether that is what became of the packet.
    pub fn check(&self, header: &Header, found: Reception) -> Result<(), Violation> {
        if self.reception == found {
            return Ok(());
        }
        Err(Violation::Reception {
            header: *header,
            expected: self.reception,
            found,
        })
    }
}

/// The receiving half of an interface, with all that its application gave it.
#[derive(Clone, Debug)]
pub struct Receiving {
    /// Whether packets are taken.
    pub receive_enable: ReceiveEnable,
    areas: Vec<Memory>,
    entries: Vec<Entries>,
    slots: BTreeMap<SlotName, Slot>,
    names: BTreeSet<SlotName>,
    indices: BTreeSet<u16>,
    queues: Vec<Queue>,
    refusals: Counts,
    answers: Answers,
    ports: Ports,
}

impl Default for Receiving {
    fn default() -> Self {
        Self::new()
    }
}

impl Receiving {
    /// An interface that was not set up.
    pub fn new() -> Self {
        Self {
            receive_enable: ReceiveEnable::NotSetUp,
            areas: Vec::new(),
            entries: Vec::new(),
            slots: BTreeMap::new(),
            names: BTreeSet::new(),
            indices: BTreeSet::new(),
            queues: Vec::new(),
            refusals: no_counts(),
            answers: Answers::default(),
            ports: Ports::default(),
        }
    }

    /// The owner opened a port.
    pub fn port_opened(&mut self, name: PortName, options: PortOptions) {
        self.ports.opened(name, options);
    }

    /// The owner changed a port that was open.
    pub fn port_changed(&mut self, name: PortName, change: PortChange) {
        self.ports.changed(name, change);
    }

    /// The owner took out the next message that waited at a port.
    pub fn message_popped(
        &mut self,
        name: PortName,
        arrived: Arrived,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        self.ports.popped(name, arrived, bytes)
    }

    fn message_arrived(&mut self, arrival: &Arrival<'_>) -> Outcome {
        let (from, header) = (arrival.from, arrival.header);
        let reception = self
            .ports
            .arrived(from, header, arrival.data, arrival.asked);
        if let Err(reason) = reception {
            self.refusals[reason as usize] += 1;
        }
        Outcome {
            reception,
            written: None,
            completed: None,
        }
    }

    /// An answer to a one-sided operation was sent.
    pub fn answered(&mut self, link: LinkId) {
        self.answers.sent(link);
    }

    /// A link is gone, with the answers that waited for it.
    pub fn link_ended(&mut self, link: LinkId) {
        self.answers.link_ended(link);
    }

    /// An area of zeros more; its number.
    pub fn add_area(&mut self, length_bytes: usize) -> usize {
        self.areas.push(Memory::new(length_bytes));
        self.areas.len() - 1
    }

    /// A metadata area more; its number.
    pub fn add_entries(&mut self, count: usize) -> usize {
        self.entries.push(Entries::new(count));
        self.entries.len() - 1
    }

    /// A queue more, for at least so many notifications; its number.
    pub fn add_queue(&mut self, entries: usize) -> usize {
        self.queues.push(Queue::new(entries));
        self.queues.len() - 1
    }

    /// An area, to change it as its owner does.
    pub fn memory_mut(&mut self, area: usize) -> &mut Memory {
        &mut self.areas[area]
    }

    /// An area as it must be.
    pub fn memory(&self, area: usize) -> &Memory {
        &self.areas[area]
    }

    /// A slot was opened under that name.
    pub fn slot_opened(&mut self, name: SlotName, new: NewSlot) -> Result<(), Violation> {
        self.indices.insert(name.index());
        if !self.names.insert(name) {
            return Err(Violation::NameReused(name));
        }
        self.slots.insert(
            name,
            Slot {
                new,
                revoked: false,
                grants: Vec::new(),
                refusals: no_counts(),
            },
        );
        Ok(())
    }

    /// The owner closed a slot; `found` is whether it was said to have been open.
    pub fn slot_closed(&mut self, name: SlotName, found: bool) -> Result<(), Violation> {
        let expected = self.slots.remove(&name).is_some();
        opened(name, expected, found)
    }

    /// The owner changed its key.
    pub fn slot_rekeyed(&mut self, name: SlotName, key: Key, found: bool) -> Result<(), Violation> {
        let slot = self.slots.get_mut(&name);
        let expected = slot.is_some();
        if let Some(slot) = slot {
            slot.new.key = key;
            slot.revoked = false;
        }
        opened(name, expected, found)
    }

    /// The owner shut everybody out.
    pub fn slot_revoked(&mut self, name: SlotName, found: bool) -> Result<(), Violation> {
        let slot = self.slots.get_mut(&name);
        let expected = slot.is_some();
        if let Some(slot) = slot {
            slot.revoked = true;
        }
        opened(name, expected, found)
    }

    /// Slots that are open.
    pub fn slots_open(&self) -> usize {
        self.slots.len()
    }

    /// The owner let others map a part of a slot.
    pub fn granted(&mut self, grant: GrantId, slot: SlotName, holder: Holder, range: Range<u64>) {
        if let Some(slot) = self.slots.get_mut(&slot) {
            slot.grants.push((grant, holder, range));
        }
    }

    /// It ended that.
    pub fn grant_ended(&mut self, grant: GrantId) {
        for slot in self.slots.values_mut() {
            slot.grants.retain(|(id, _, _)| *id != grant);
        }
    }

    /// It ended all grants of a peer.
    pub fn grants_ended_of(&mut self, peer: LinkId) {
        let holder = Holder::Peer(peer);
        for slot in self.slots.values_mut() {
            slot.grants.retain(|(_, other, _)| *other != holder);
        }
    }

    /// The holder of a grant begins to store into the slot by itself; nothing if it has no such
    /// slot.
    pub fn store_begins(
        &mut self,
        slot: SlotName,
        offset: u64,
        length_bytes: usize,
    ) -> Option<(usize, StoreId)> {
        let new = &self.slots.get(&slot)?.new;
        let store = self.areas[new.area].store_begins(new.base + offset, length_bytes)?;
        Some((new.area, store))
    }

    fn entry_mut(&mut self, entries: usize, index: u16) -> Option<&mut Entry> {
        self.entries.get_mut(entries)?.get_mut(index)
    }

    /// The owner changed what an entry permits.
    pub fn permitted(&mut self, entries: usize, index: u16, permission: Permission) {
        if let Some(entry) = self.entry_mut(entries, index) {
            entry.permission = permission;
        }
    }

    /// The owner armed it for one more message.
    pub fn armed(&mut self, entries: usize, index: u16) {
        if let Some(entry) = self.entry_mut(entries, index) {
            entry.armed = true;
            entry.accumulator = 0;
            entry.metadata.clear();
        }
    }

    /// The owner disarmed it.
    pub fn disarmed(&mut self, entries: usize, index: u16) {
        if let Some(entry) = self.entry_mut(entries, index) {
            entry.armed = false;
        }
    }

    /// The owner, who may do so at any time, has it as it is found now. Whether it could be read:
    /// not while its permission changes.
    pub fn found(&mut self, entries: usize, index: u16, entry: &MetadataEntry) -> bool {
        let found = Entry::found(entry);
        let is_read = found.is_some();
        if let (Some(known), Some(found)) = (self.entry_mut(entries, index), found) {
            *known = found;
        }
        is_read
    }

    /// Whether it is armed.
    pub fn is_armed(&self, entries: usize, index: u16) -> bool {
        self.entries[entries]
            .get(index)
            .is_some_and(|entry| entry.armed)
    }

    /// The owner gave it a receive class.
    pub fn classed(&mut self, entries: usize, index: u16, class: u64) {
        if let Some(entry) = self.entry_mut(entries, index) {
            entry.class = class;
        }
    }

    /// A packet came in: what it must do. From now on that is how things are.
    pub fn packet_arrived(&mut self, arrival: &Arrival<'_>) -> Outcome {
        let is_message = arrival.header.kind == Kind::MESSAGE;
        if is_message && self.receive_enable == ReceiveEnable::Open {
            return self.message_arrived(arrival);
        }
        let is_request = operating::is_request(arrival.header);
        let refusal = match is_request && self.receive_enable == ReceiveEnable::Open {
            true => self.request_refusal(arrival),
            false => self.refusal(arrival),
        };
        match refusal {
            None if is_request => self.carry_out(arrival),
            None => self.accept(arrival),
            Some(reason) => {
                let name = (!is_message).then_some(arrival.header.slot);
                let counted = name.and_then(|name| self.slots.get_mut(&name));
                let counts = counted.map(|slot| &mut slot.refusals);
                for counts in [Some(&mut self.refusals), counts].into_iter().flatten() {
                    counts[reason as usize] += 1;
                }
                Outcome {
                    reception: Err(reason),
                    written: None,
                    completed: None,
                }
            }
        }
    }

    /// Why a request is not carried out.
    fn request_refusal(&mut self, arrival: &Arrival<'_>) -> Option<Refusal> {
        let name = arrival.header.slot;
        let slot = match self.slots.get(&name) {
            Some(slot) if slot.revoked => Err(Refusal::SlotRevoked),
            Some(slot) => Ok(&slot.new),
            None if self.indices.contains(&name.index()) => Err(Refusal::SlotClosed),
            None => Err(Refusal::NoSuchSlot),
        };
        let (header, answers) = (arrival.header, &mut self.answers);
        let judged = operating::judge(answers, arrival.from, header, arrival.data, slot);
        if let (Ok(()), Ok(slot)) = (judged, slot) {
            let (at, bytes) = (slot.base + header.offset, operating::changed_bytes(header));
            let is_held = bytes > 0 && self.areas[slot.area].is_held(at, bytes);
            return is_held.then_some(Refusal::PlaceInUse);
        }
        judged.err()
    }

    /// A request changes what it names.
    fn carry_out(&mut self, arrival: &Arrival<'_>) -> Outcome {
        let mut written = None;
        if let Some(slot) = self.slots.get(&arrival.header.slot) {
            let slot = &slot.new;
            let (at, memory) = (
                slot.base + arrival.header.offset,
                &mut self.areas[slot.area],
            );
            let bytes = operating::changed_bytes(arrival.header);
            if let Some(before) = memory.known(at, bytes) {
                memory.write(
                    at,
                    &operating::changed(arrival.header, arrival.data, &before),
                );
            }
            written = (bytes > 0).then_some((slot.area, at..at + bytes));
        }
        Outcome {
            reception: Ok(Received::Asked),
            written,
            completed: None,
        }
    }

    /// Why the packet is not let in: the first of the reasons, in the order that ARCHITECTURE.md
    /// gives.
    fn refusal(&self, arrival: &Arrival<'_>) -> Option<Refusal> {
        match self.receive_enable {
            ReceiveEnable::NotSetUp => return Some(Refusal::NotSetUp),
            ReceiveEnable::Lapsed => return Some(Refusal::HandshakeLapsed),
            ReceiveEnable::Open => {}
        }
        let header = arrival.header;
        let Some(slot) = self.slots.get(&header.slot) else {
            return Some(if self.indices.contains(&header.slot.index()) {
                Refusal::SlotClosed
            } else {
                Refusal::NoSuchSlot
            });
        };
        if slot.revoked {
            return Some(Refusal::SlotRevoked);
        }
        let is_paranoid = slot.new.mode != Mode::Normal;
        if !is_paranoid && header.key != slot.new.key {
            return Some(Refusal::BadKey);
        }
        let low = u128::from(header.offset);
        let high = low + u128::from(header.length_bytes);
        if high > u128::from(slot.new.length_bytes) {
            return Some(Refusal::OutOfBounds);
        }
        let is_fast = header.metadata_index == FAST_INDEX;
        let entries = slot.new.entries.map(|entries| &self.entries[entries]);
        let entry = entries.and_then(|entries| entries.get(header.metadata_index));
        match entry {
            _ if is_fast && is_paranoid => return Some(Refusal::FastToParanoid),
            None if !is_fast => return Some(Refusal::NoMetadataEntry),
            Some(entry) if is_paranoid => {
                let permission = &entry.permission;
                if low < u128::from(permission.low) || high > u128::from(permission.high) {
                    return Some(Refusal::OutOfLimits);
                }
                if header.key != permission.key {
                    return Some(Refusal::BadEntryKey);
                }
                if slot.new.mode == Mode::ParanoidOneShot && !entry.armed {
                    return Some(Refusal::EntrySpent);
                }
            }
            _ => {}
        }
        if header.kind != Kind::WRITE {
            return Some(Refusal::UnknownKind);
        }
        let known = Flags::SILENT.0 | Flags::PLACED.0;
        if header.flags.0 & !known != 0 {
            return Some(Refusal::UnknownFlag);
        }
        if !slot.new.rights.grant(Rights::WRITE) {
            return Some(Refusal::NoRight);
        }
        let metadata = usize::from(header.metadata_length_bytes);
        if metadata > USER_METADATA_BYTES || (is_fast && metadata > 0) {
            return Some(Refusal::BadMetadata);
        }
        if header.flags.is_placed() {
            let covers = |(_, holder, range): &(GrantId, Holder, Range<u64>)| {
                holder.includes(arrival.from)
                    && low >= u128::from(range.start)
                    && high <= u128::from(range.end)
            };
            return (!slot.grants.iter().any(covers)).then_some(Refusal::NotGranted);
        }
        let at = slot.new.base + header.offset;
        self.areas[slot.new.area]
            .is_held(at, u64::from(header.length_bytes))
            .then_some(Refusal::PlaceInUse)
    }

    fn accept(&mut self, arrival: &Arrival<'_>) -> Outcome {
        let header = arrival.header;
        let mut outcome = Outcome {
            reception: Ok(Received::Complete),
            written: None,
            completed: None,
        };
        let Some(slot) = self.slots.get(&header.slot) else {
            return outcome;
        };
        let slot = &slot.new;
        let at = slot.base + header.offset;
        if !header.flags.is_placed() {
            self.areas[slot.area].write(at, arrival.data);
            let end = at + arrival.data.len() as u64;
            outcome.written = Some((slot.area, at..end));
        }
        let mut word = header.word;
        let entries = slot.entries.map(|entries| &mut self.entries[entries]);
        let entry = entries.and_then(|entries| entries.get_mut(header.metadata_index));
        if let Some(entry) = entry {
            let delta = u128::from(header.word) % slot.modulus;
            // Metadata are a message's own: none are left of the one before.
            if !arrival.metadata.is_empty() || delta == 0 || entry.accumulator == 0 {
                entry.metadata.clear();
                entry.metadata.extend_from_slice(arrival.metadata);
            }
            // A delta of zero is a message alone, whatever else the entry counts.
            if delta != 0 {
                entry.accumulator = (entry.accumulator + delta) % slot.modulus;
                if entry.accumulator != 0 {
                    outcome.reception = Ok(Received::Deposited);
                    return outcome;
                }
            }
            word = entry.class;
            if slot.mode == Mode::ParanoidOneShot {
                entry.armed = false;
                let high = entry.permission.high.min(slot.length_bytes);
                let (low, high) = (slot.base + entry.permission.low, slot.base + high);
                outcome.completed = Some((slot.area, low, high));
            }
        }
        if let Some(queue) = slot.queue
            && !header.flags.is_silent()
        {
            let notification = Notification {
                slot: header.slot,
                metadata_index: header.metadata_index,
                word,
                from: arrival.from,
            };
            if arrival.waiting == Some(queue) {
                outcome.reception = Ok(Received::Handed(notification));
            } else {
                self.queues[queue].announce(notification);
            }
        }
        outcome
    }

    /// Whether a queue has nothing to give.
    pub fn is_silent(&self, queue: usize) -> bool {
        self.queues[queue].is_silent()
    }

    /// What the owner read from a queue; in the error, so many were lost.
    pub fn notified(
        &mut self,
        number: usize,
        found: Result<Option<Notification>, u64>,
    ) -> Result<(), Violation> {
        self.queues[number].notified(number, found)
    }

    /// Whether bytes that lie in an area may lie there.
    pub fn memory_is(&self, area: usize, offset: u64, found: &[u8]) -> Result<(), Violation> {
        self.areas[area].check(area, offset, found)
    }

    /// Whether all of an area is as it must be.
    pub fn sweep(&self, area: usize, found: &[u8]) -> Result<(), Violation> {
        let length_bytes = self.areas[area].length_bytes();
        if found.len() as u64 != length_bytes {
            return Err(Violation::NoSuchMemory {
                area,
                offset: 0,
                length_bytes: found.len() as u64,
            });
        }
        self.memory_is(area, 0, found)
    }

    /// Whether an entry is as it must be.
    pub fn entry_is(
        &self,
        entries: usize,
        index: u16,
        found: &MetadataEntry,
    ) -> Result<(), Violation> {
        let Some(expected) = self.entries[entries].get(index) else {
            return Ok(());
        };
        expected.check(entries, index, found)
    }

    /// Packets that had to be refused so far.
    pub fn refused(&self) -> u64 {
        self.refusals.iter().sum()
    }

    /// Whether refusals were counted as they must be: of the interface, or of a slot.
    pub fn counted(&self, slot: Option<SlotName>, found: &Refusals) -> Result<(), Violation> {
        let counts = match slot {
            None => &self.refusals,
            Some(name) => match self.slots.get(&name) {
                Some(slot) => &slot.refusals,
                None => return Ok(()),
            },
        };
        for &reason in Refusal::ALL {
            let (expected, found) = (counts[reason as usize], found.count(reason));
            if expected != found {
                let what = match slot {
                    None => format!("packets refused ({reason})"),
                    Some(name) => format!("packets refused at {name} ({reason})"),
                };
                return Err(Violation::Count {
                    what,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }
}

fn opened(name: SlotName, expected: bool, found: bool) -> Result<(), Violation> {
    if expected == found {
        return Ok(());
    }
    Err(Violation::Open {
        name,
        expected,
        found,
    })
}
