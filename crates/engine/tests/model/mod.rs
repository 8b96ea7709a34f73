//! The reference model: what Hamlyn 2.2 to 2.8 promise, written as plainly as
//! possible and without a line of the engine's. Vectors, maps and wide integers.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test includes it and uses its part"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hamlyn_engine::counting::Counting;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::receive::Received;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::Mode;

use crate::host::{PEER, Packet};

/// A metadata entry.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub user: Vec<u8>,
    pub accumulator: u128,
    pub armed: bool,
    pub key: u64,
    pub low: u64,
    pub high: u64,
    pub class: u64,
}

/// A slot.
#[derive(Clone, Debug)]
pub struct Slot {
    pub area: usize,
    pub base: u64,
    pub length: u64,
    pub key: u64,
    pub writable: bool,
    pub revoked: bool,
    pub mode: Mode,
    /// Which metadata area, if any: slots may share one.
    pub metadata: Option<usize>,
    pub queue: Option<usize>,
    pub counting: Counting,
    pub refusals: BTreeMap<String, u64>,
}

/// A queue: everything ever announced, and how far the reader is.
#[derive(Clone, Debug)]
pub struct Queue {
    pub capacity: usize,
    pub announced: Vec<Notification>,
    pub read: usize,
    pub lost: u64,
}

impl Queue {
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.next_power_of_two(),
            announced: Vec::new(),
            read: 0,
            lost: 0,
        }
    }

    /// What a pop should give: an entry, nothing, or so many lost.
    pub fn pop(&mut self) -> Result<Option<Notification>, u64> {
        let oldest_left = self.announced.len().saturating_sub(self.capacity);
        if self.read < oldest_left {
            let lost = (oldest_left - self.read) as u64;
            self.read = oldest_left;
            self.lost += lost;
            return Err(lost);
        }
        let next = self.announced.get(self.read).copied();
        self.read += usize::from(next.is_some());
        Ok(next)
    }
}

/// Whether packets are taken at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveEnable {
    Closed,
    Open,
    Lapsed,
}

/// A receiving interface with all that its application gave it.
#[derive(Clone, Debug)]
pub struct Model {
    pub receive_enable: ReceiveEnable,
    pub areas: Vec<Vec<u8>>,
    pub metadata: Vec<Vec<Entry>>,
    pub slots: BTreeMap<u32, Slot>,
    pub names_given: BTreeSet<u32>,
    pub queues: Vec<Queue>,
    pub refusals: BTreeMap<String, u64>,
    /// Ranges of areas that were told to be complete: area, low, high.
    pub completed: Vec<(usize, u64, u64)>,
}

impl Model {
    pub fn new(areas: &[usize]) -> Self {
        Self {
            receive_enable: ReceiveEnable::Closed,
            areas: areas.iter().map(|&length| vec![0; length]).collect(),
            metadata: Vec::new(),
            slots: BTreeMap::new(),
            names_given: BTreeSet::new(),
            queues: Vec::new(),
            refusals: BTreeMap::new(),
            completed: Vec::new(),
        }
    }

    /// The engine chose a name; it must be new.
    pub fn open(&mut self, name: SlotName, slot: Slot) {
        assert!(
            self.names_given.insert(name.to_bits()),
            "{name} was given twice"
        );
        self.slots.insert(name.to_bits(), slot);
    }

    pub fn entry_of(&mut self, name: u32, index: u16) -> Option<&mut Entry> {
        let area = self.slots.get(&name)?.metadata?;
        self.metadata[area].get_mut(usize::from(index))
    }

    /// What becomes of a packet.
    pub fn receive(&mut self, packet: &Packet) -> Result<Received, Refusal> {
        let result = self.check(packet).map(|()| self.accept(packet));
        if let Err(reason) = result {
            *self.refusals.entry(reason.to_string()).or_default() += 1;
            if let Some(slot) = self.slots.get_mut(&packet.header.slot.to_bits()) {
                *slot.refusals.entry(reason.to_string()).or_default() += 1;
            }
        }
        result
    }

    fn check(&mut self, packet: &Packet) -> Result<(), Refusal> {
        match self.receive_enable {
            ReceiveEnable::Closed => return Err(Refusal::NotSetUp),
            ReceiveEnable::Lapsed => return Err(Refusal::HandshakeLapsed),
            ReceiveEnable::Open => {}
        }
        let header = &packet.header;
        let Some(slot) = self.slots.get(&header.slot.to_bits()) else {
            let index = header.slot.to_bits() & 0xFFFF;
            let known = self.names_given.iter().any(|name| name & 0xFFFF == index);
            return Err(if known {
                Refusal::SlotClosed
            } else {
                Refusal::NoSuchSlot
            });
        };
        let slot = slot.clone();
        let paranoid = slot.mode != Mode::Normal;
        let (low, high) = (
            u128::from(header.offset),
            u128::from(header.offset) + u128::from(header.length_bytes),
        );
        if slot.revoked {
            return Err(Refusal::SlotRevoked);
        }
        if !paranoid && header.key.to_bits() != slot.key {
            return Err(Refusal::BadKey);
        }
        if high > u128::from(slot.length) {
            return Err(Refusal::OutOfBounds);
        }
        let fast = header.metadata_index == 0xFFFF;
        if fast && paranoid {
            return Err(Refusal::FastToParanoid);
        }
        let entry = self
            .entry_of(header.slot.to_bits(), header.metadata_index)
            .cloned();
        if !fast && entry.is_none() {
            return Err(Refusal::NoMetadataEntry);
        }
        if let (true, Some(entry)) = (paranoid, &entry) {
            if low < u128::from(entry.low) || high > u128::from(entry.high) {
                return Err(Refusal::OutOfLimits);
            }
            if header.key.to_bits() != entry.key {
                return Err(Refusal::BadEntryKey);
            }
            if slot.mode == Mode::ParanoidOneShot && !entry.armed {
                return Err(Refusal::EntrySpent);
            }
        }
        if header.kind.0 != 0 {
            return Err(Refusal::UnknownKind);
        }
        if header.flags.0 > 3 {
            return Err(Refusal::UnknownFlag);
        }
        if !slot.writable {
            return Err(Refusal::NoRight);
        }
        if header.metadata_length_bytes > 60 || (fast && header.metadata_length_bytes > 0) {
            return Err(Refusal::BadMetadata);
        }
        // Placed, and nobody has a grant here; see `grants.rs`.
        if header.flags.0 & 2 != 0 {
            return Err(Refusal::NotGranted);
        }
        Ok(())
    }

    fn accept(&mut self, packet: &Packet) -> Received {
        let header = &packet.header;
        let name = header.slot.to_bits();
        let slot = self.slots[&name].clone();
        let start = (slot.base + header.offset) as usize;
        self.areas[slot.area][start..start + packet.data.len()].copy_from_slice(&packet.data);
        let modulus: u128 = match slot.counting {
            Counting::Bits32 => 1 << 32,
            Counting::Bits64 => 1 << 64,
        };
        let mut word = header.word;
        if let Some(entry) = self.entry_of(name, header.metadata_index) {
            let delta = u128::from(header.word) % modulus;
            // Metadata are a message's own: none are left of the one before.
            if header.metadata_length_bytes > 0 || delta == 0 || entry.accumulator == 0 {
                entry.user = packet.metadata.clone();
            }
            if delta != 0 {
                entry.accumulator = (entry.accumulator + delta) % modulus;
                if entry.accumulator != 0 {
                    return Received::Deposited;
                }
            }
            word = entry.class;
            if slot.mode == Mode::ParanoidOneShot {
                entry.armed = false;
                let range = (
                    slot.area,
                    slot.base + entry.low,
                    slot.base + entry.high.min(slot.length),
                );
                self.completed.push(range);
            }
        }
        if header.flags.0 & 1 == 0
            && let Some(queue) = slot.queue
        {
            self.queues[queue].announced.push(Notification {
                slot: header.slot,
                metadata_index: header.metadata_index,
                word,
                from: PEER,
            });
        }
        Received::Complete
    }
}

/// How a message should be cut: offset, data, metadata and delta of each packet.
pub fn cut(
    offset: u64,
    metadata: &[u8],
    data: &[u8],
    payload_max_bytes: usize,
    whole: u128,
    share: u128,
) -> Vec<(u64, Vec<u8>, Vec<u8>, u64)> {
    let mut left: VecDeque<u8> = data.iter().copied().collect();
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let mut room = payload_max_bytes - metadata.len();
    while pieces.is_empty() || !left.is_empty() {
        pieces.push(left.drain(..room.min(left.len())).collect());
        room = payload_max_bytes;
    }
    let count = pieces.len();
    let mut at = offset;
    pieces
        .into_iter()
        .enumerate()
        .map(|(number, piece)| {
            let delta = if number + 1 == count {
                (share - (count as u128 - 1)) % whole
            } else {
                1
            };
            let metadata = if number == 0 {
                metadata.to_vec()
            } else {
                Vec::new()
            };
            let place = at;
            at += piece.len() as u64;
            (place, metadata, piece, delta as u64)
        })
        .collect()
}
