//! Drives both halves of an engine with random operations, packets in random order and hostile
//! packets, and asks the reference model after every event.
#![allow(
    unreachable_pub,
    dead_code,
    reason = "a part of several tests, which need different parts of it"
)]

mod arrivals;
mod host;
mod messages;

use std::collections::VecDeque;
use std::ops::Range;

use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::grant::{GrantId, Holder};
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::SHORT_BYTES_WITH_WORD;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::{MetadataArea, Permission};
use hamlyn_engine::notification::NotificationReader;
use hamlyn_engine::packet::{Address, Header, Short, SlotName, short_words};
use hamlyn_engine::receive::Receiver;
use hamlyn_engine::slot::{Mode, QueueId, Rights, SlotOptions};
use hamlyn_engine::terminus::{SendTag, TerminusId, TerminusOptions};
use hamlyn_engine::transmit::Transmitter;
use hamlyn_sim::random::Random;
use hamlyn_sim::reference::Violation;
use hamlyn_sim::reference::receiving::{NewSlot, ReceiveEnable, Receiving};
use hamlyn_sim::reference::sending::Sending;

use host::{Packet, VecArea, Wires};

const AREA_BYTES: [usize; 3] = [160, 700, 5_000];
const ENTRIES: [usize; 2] = [2, 5];
const QUEUE_ENTRIES: [usize; 3] = [2, 8, 32];
const WORK_ENTRIES: [usize; 2] = [2, 5];
const PAYLOADS: [usize; 4] = [64, 100, 256, 1_500];
const SEND_AREA_BYTES: usize = 3_000;
const PERIOD_NS: u64 = 1_000;
const SLOTS: usize = 5;
/// Events between two looks at everything.
const SWEEP_EVENTS: u64 = 16;

/// A slot that is open.
#[derive(Clone, Debug)]
struct Opened {
    name: SlotName,
    new: NewSlot,
    counting: Counting,
    /// What its key was before it was re-keyed.
    old_key: Key,
    grants: Vec<(GrantId, LinkId, Range<u64>)>,
    revoked: bool,
}

/// A terminus that is open.
struct Sender {
    id: TerminusId,
    /// Its send-buffer area.
    area: VecArea,
    tag: SendTag,
    /// Messages that may still be asked about.
    sent: VecDeque<u64>,
}

/// Where a message may go.
#[derive(Clone, Copy, Debug)]
struct Goal {
    slot: SlotName,
    index: u16,
    key: Key,
    low: u64,
    high: u64,
    counting: Counting,
}

/// A violation, and where in its history.
#[derive(Debug)]
pub struct Found {
    /// Which event it was.
    pub event: u64,
    /// What was done.
    pub act: &'static str,
    /// What was wrong.
    pub violation: Box<Violation>,
}

/// What happened in a history without violation; so that one sees that it was not empty.
#[derive(Clone, Copy, Default, Debug)]
pub struct Figures {
    pub posted: u64,
    pub arrived: u64,
    pub refused: u64,
    pub announced: u64,
    pub short_ways: u64,
    pub overruns: u64,
    pub failed: u64,
    pub placed: u64,
}

pub struct Driver {
    random: Random,
    receiver: Receiver<VecArea>,
    transmitter: Transmitter<VecArea>,
    receiving: Receiving,
    sending: Sending,
    areas: Vec<VecArea>,
    entries: Vec<MetadataArea>,
    queues: Vec<(QueueId, NotificationReader)>,
    slots: Vec<Opened>,
    termini: Vec<Sender>,
    wires: Wires,
    links: Vec<LinkId>,
    under_way: Vec<Packet>,
    /// Parts of a group that are still to be sent.
    group: Vec<(Goal, Share)>,
    now_ns: u64,
    figures: Figures,
}

/// Runs the history of a seed, so many events of it.
pub fn run(seed: u64, events: u64) -> Result<Figures, Found> {
    let mut driver = Driver::new(seed);
    for event in 0..events {
        let (act, mut result) = driver.step();
        if result.is_ok() && event % SWEEP_EVENTS == 0 {
            result = driver.sweep();
        }
        result.map_err(|violation| Found {
            event,
            act,
            violation: Box::new(violation),
        })?;
    }
    driver.settle().map_err(|violation| Found {
        event: events,
        act: "settle",
        violation: Box::new(violation),
    })?;
    Ok(driver.figures)
}

impl Driver {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut receiver = Receiver::new(Some(PERIOD_NS));
        let mut receiving = Receiving::new();
        receiver.set_up(0);
        receiving.receive_enable = ReceiveEnable::Open;
        let mut transmitter = Transmitter::new();
        let mut sending = Sending::new();
        for length in AREA_BYTES {
            receiving.add_area(length);
        }
        let entries = ENTRIES.map(|count| {
            receiving.add_entries(count);
            MetadataArea::new(count).unwrap()
        });
        let queues = QUEUE_ENTRIES.map(|count| {
            receiving.add_queue(count);
            receiver.open_queue(count).unwrap()
        });
        let termini = WORK_ENTRIES.map(|queue_entries| {
            sending.open(queue_entries);
            let options = TerminusOptions {
                queue_entries,
                priority: 1 + random.below(3) as u8,
                ..TerminusOptions::default()
            };
            let id = transmitter.open_terminus(options).unwrap();
            let area = VecArea::from_bytes(noise(&mut random, SEND_AREA_BYTES));
            let length = SEND_AREA_BYTES as u64;
            Sender {
                id,
                tag: transmitter.bind_area(id, area.clone(), 0, length).unwrap(),
                area,
                sent: VecDeque::new(),
            }
        });
        let mut wires = Wires::default();
        let links = [0, 1].map(|peer| {
            let payload = *random.one_of(&PAYLOADS).unwrap();
            wires.add(payload, host::peer(peer))
        });
        Self {
            random,
            receiver,
            transmitter,
            receiving,
            sending,
            areas: AREA_BYTES
                .map(|length| VecArea::from_bytes(vec![0; length]))
                .into(),
            entries: entries.into(),
            queues: queues.into(),
            slots: Vec::new(),
            termini: termini.into(),
            wires,
            links: links.into(),
            under_way: Vec::new(),
            group: Vec::new(),
            now_ns: 0,
            figures: Figures::default(),
        }
    }

    fn key(&mut self) -> Key {
        // Few of them, so that a wrong one is often another's.
        Key::from_bits(1 + self.random.below(5))
    }

    fn step(&mut self) -> (&'static str, Result<(), Violation>) {
        match self.random.below(200) {
            0..6 => ("open a slot", self.open_slot()),
            6..7 => ("close a slot", self.close_slot()),
            7..10 | 196..200 => ("re-key a slot", self.rekey()),
            10..11 => ("revoke a slot", self.revoke()),
            11..37 => ("permit and arm", self.permit()),
            37..40 => ("arm, disarm or class", self.touch_entry()),
            40..41 => ("the host falls silent", self.lapse()),
            41..50 => ("the host is there", self.handshake()),
            50..51 => ("hold bytes", self.hold()),
            51..56 => ("release bytes", self.release()),
            56..59 => ("grant", self.grant()),
            59..60 => ("end a grant", self.end_grant()),
            60..64 => ("announce what was placed", self.post_placed()),
            64..65 => ("lose a link", self.lose_link()),
            65..67 => ("replace a send-buffer area", self.rebind()),
            67..75 => ("pump", self.pump()),
            75..120 => ("post", self.post()),
            120..124 => ("send streaming", self.send_streaming()),
            124..130 => ("a hostile packet", self.forge()),
            130..134 => ("read a queue", self.pop()),
            134..140 => ("ask for a completion", self.ask()),
            _ => ("a packet arrives", self.deliver()),
        }
    }

    fn open_slot(&mut self) -> Result<(), Violation> {
        if self.slots.len() >= SLOTS {
            return Ok(());
        }
        let area = self.random.below(AREA_BYTES.len() as u64) as usize;
        let area_bytes = AREA_BYTES[area] as u64;
        let base = self.random.below(area_bytes / 2) & !7;
        let length_bytes = match self.random.below(3) {
            0 => area_bytes - base,
            _ => self.random.within(1..area_bytes - base + 1),
        };
        let mode = [Mode::Normal, Mode::Paranoid, Mode::ParanoidOneShot];
        let mode = mode[self.random.below(3) as usize];
        let counting = match self.random.below(3) {
            0 => Counting::Bits64,
            _ => Counting::Bits32,
        };
        let has_entries = mode != Mode::Normal || self.random.below(4) != 0;
        let has_queue = self.random.below(10) != 0;
        let new = NewSlot {
            area,
            base,
            length_bytes,
            key: self.key(),
            rights: match self.random.below(20) {
                0 => Rights::NONE,
                _ => Rights::WRITE,
            },
            mode,
            entries: has_entries.then(|| self.random.below(ENTRIES.len() as u64) as usize),
            queue: has_queue.then(|| self.random.below(QUEUE_ENTRIES.len() as u64) as usize),
            modulus: modulus(counting),
        };
        let options = SlotOptions {
            area: self.areas[area].clone(),
            base,
            length_bytes,
            key: new.key,
            rights: new.rights,
            mode,
            metadata: new.entries.map(|entries| self.entries[entries].clone()),
            queue: new.queue.map(|queue| self.queues[queue].0),
            counting,
        };
        let name = self
            .receiver
            .open_slot(options)
            .map_err(|error| Violation::Unfinished(format!("no slot: {error}")))?;
        self.slots.push(Opened {
            name,
            new: new.clone(),
            counting,
            old_key: new.key,
            grants: Vec::new(),
            revoked: false,
        });
        self.receiving.slot_opened(name, new)
    }

    /// The place of an open slot in the list, if there is any.
    fn any_slot(&mut self) -> Option<usize> {
        let count = self.slots.len() as u64;
        (count > 0).then(|| self.random.below(count) as usize)
    }

    fn close_slot(&mut self) -> Result<(), Violation> {
        let Some(at) = self.any_slot() else {
            return Ok(());
        };
        let slot = self.slots.swap_remove(at);
        let found = self.receiver.close_slot(slot.name).is_ok();
        self.receiving.slot_closed(slot.name, found)
    }

    fn rekey(&mut self) -> Result<(), Violation> {
        let Some(any) = self.any_slot() else {
            return Ok(());
        };
        // Those that were revoked first, so that not all are in the end.
        let revoked = self.slots.iter().position(|slot| slot.revoked);
        if revoked.is_none() && self.random.below(2) == 0 {
            return Ok(());
        }
        let key = self.key();
        let slot = &mut self.slots[revoked.unwrap_or(any)];
        slot.revoked = false;
        slot.old_key = slot.new.key;
        slot.new.key = key;
        let found = self.receiver.rekey_slot(slot.name, key).is_ok();
        self.receiving.slot_rekeyed(slot.name, key, found)
    }

    fn revoke(&mut self) -> Result<(), Violation> {
        let Some(at) = self.any_slot() else {
            return Ok(());
        };
        self.slots[at].revoked = true;
        let name = self.slots[at].name;
        let found = self.receiver.revoke_slot(name).is_ok();
        self.receiving.slot_revoked(name, found)
    }

    fn any_entry(&mut self) -> (usize, u16) {
        let entries = self.random.below(ENTRIES.len() as u64) as usize;
        (entries, self.random.below(ENTRIES[entries] as u64) as u16)
    }

    fn permit(&mut self) -> Result<(), Violation> {
        let (entries, index) = self.any_entry();
        let Some(entry) = self.entries[entries].entry(index) else {
            return Ok(());
        };
        // What was permitted mostly stays until it was used.
        if entry.is_armed() && self.random.below(4) != 0 {
            return Ok(());
        }
        // Of a slot that has these entries, if there is one.
        let slot = self
            .slots
            .iter()
            .find(|slot| slot.new.entries == Some(entries));
        let most = slot.map_or(100, |slot| slot.new.length_bytes);
        let low = match self.random.below(3) {
            0 => 0,
            _ => self.random.below(most / 2 + 1),
        };
        let high = match self.random.below(4) {
            0 => most,
            1 => most + 20,
            _ => self.random.within(low..most + 1),
        };
        let permission = Permission {
            key: Key::from_bits(1 + self.random.below(5)),
            low,
            high,
        };
        entry.permit(permission);
        self.receiving.permitted(entries, index, permission);
        entry.arm();
        self.receiving.armed(entries, index);
        self.receiving.entry_is(entries, index, entry)
    }

    fn touch_entry(&mut self) -> Result<(), Violation> {
        let (entries, index) = self.any_entry();
        let class = self.random.bits();
        let Some(entry) = self.entries[entries].entry(index) else {
            return Ok(());
        };
        match class % 4 {
            0 => {
                entry.disarm();
                self.receiving.disarmed(entries, index);
            }
            1 => {
                entry.set_receive_class(class);
                self.receiving.classed(entries, index, class);
            }
            _ => {
                entry.arm();
                self.receiving.armed(entries, index);
            }
        }
        self.receiving.entry_is(entries, index, entry)
    }

    fn lapse(&mut self) -> Result<(), Violation> {
        if self.random.below(2) == 0 {
            return Ok(());
        }
        self.now_ns += PERIOD_NS;
        self.receiver.tick(self.now_ns);
        self.receiving.receive_enable = ReceiveEnable::Lapsed;
        Ok(())
    }

    fn handshake(&mut self) -> Result<(), Violation> {
        self.receiver.handshake(self.now_ns);
        self.receiving.receive_enable = ReceiveEnable::Open;
        Ok(())
    }

    fn hold(&mut self) -> Result<(), Violation> {
        let area = self.random.below(AREA_BYTES.len() as u64) as usize;
        let start = self.random.below(AREA_BYTES[area] as u64);
        let range = start..start + self.random.below(64);
        self.areas[area].in_use.borrow_mut().push(range.clone());
        self.receiving.memory_mut(area).hold(range);
        Ok(())
    }

    fn release(&mut self) -> Result<(), Violation> {
        for (number, area) in self.areas.iter().enumerate() {
            area.in_use.borrow_mut().clear();
            self.receiving.memory_mut(number).release_all();
        }
        Ok(())
    }

    fn grant(&mut self) -> Result<(), Violation> {
        let Some(at) = self.any_slot() else {
            return Ok(());
        };
        let slot = &mut self.slots[at];
        let start = self.random.below(slot.new.length_bytes);
        let end = self.random.within(start..slot.new.length_bytes) + 1;
        let peer = host::peer(self.random.below(2));
        let holder = match self.random.below(4) {
            0 => Holder::Linked,
            _ => Holder::Peer(peer),
        };
        if let Ok(grant) = self.receiver.grant(slot.name, start..end, holder) {
            self.receiving.granted(grant, slot.name, holder, start..end);
            slot.grants.push((grant, peer, start..end));
        }
        Ok(())
    }

    fn end_grant(&mut self) -> Result<(), Violation> {
        let Some(at) = self.any_slot() else {
            return Ok(());
        };
        // It stays in the list, so that its holder goes on to use it.
        if let Some((grant, _, _)) = self.random.one_of(&self.slots[at].grants) {
            self.receiver.end_grant(*grant);
            self.receiving.grant_ended(*grant);
        }
        Ok(())
    }

    fn pop(&mut self) -> Result<(), Violation> {
        let number = self.random.below(QUEUE_ENTRIES.len() as u64) as usize;
        for _ in 0..=self.random.below(6) {
            self.pop_one(number)?;
        }
        Ok(())
    }

    /// Reads one notification; whether there was one.
    fn pop_one(&mut self, number: usize) -> Result<bool, Violation> {
        let found = self.queues[number].1.pop().map_err(|overrun| overrun.lost);
        self.figures.overruns += u64::from(found.is_err());
        self.receiving.notified(number, found)?;
        Ok(found != Ok(None))
    }

    /// Looks at everything.
    fn sweep(&mut self) -> Result<(), Violation> {
        for (number, area) in self.areas.iter().enumerate() {
            self.receiving.sweep(number, &area.bytes.borrow())?;
        }
        for (number, entries) in self.entries.iter().enumerate() {
            for index in 0..entries.len() as u16 {
                if let Some(entry) = entries.entry(index) {
                    self.receiving.entry_is(number, index, entry)?;
                }
            }
        }
        self.receiving.counted(None, self.receiver.refusals())?;
        for slot in &self.slots {
            if let Ok(info) = self.receiver.slot_info(slot.name) {
                self.receiving.counted(Some(slot.name), &info.refusals)?;
            }
        }
        Ok(())
    }

    /// All that is under way arrives, all is read, and nothing is left.
    fn settle(&mut self) -> Result<(), Violation> {
        self.handshake()?;
        self.release()?;
        for wire in self.wires.wires.iter_mut().flatten() {
            wire.room = u64::MAX;
        }
        self.transmitter.pump(&mut self.wires, usize::MAX);
        self.note_departures()?;
        self.sending.quiet()?;
        if self.transmitter.is_waiting() {
            return Err(Violation::Unfinished("messages wait".to_owned()));
        }
        while !self.under_way.is_empty() {
            self.deliver()?;
        }
        for number in 0..self.queues.len() {
            while self.pop_one(number)? {}
        }
        for number in 0..self.termini.len() {
            while let Some(sequence) = self.termini[number].sent.pop_front() {
                self.ask_for(number, sequence)?;
            }
        }
        self.sweep()?;
        while !self.slots.is_empty() {
            self.close_slot()?;
        }
        let open = self.receiver.slots_open();
        if open != 0 {
            return Err(Violation::Unfinished(format!("{open} slots are open")));
        }
        Ok(())
    }
}

fn modulus(counting: Counting) -> u128 {
    match counting {
        Counting::Bits32 => 1 << 32,
        Counting::Bits64 => 1 << 64,
    }
}

/// The short packet with that header, word and data, if there are no more data than a short packet
/// has.
fn short_of(header: &Header, word: u64, data: &[u8]) -> Option<Short> {
    let to = Address::new(header.slot, header.metadata_index);
    let length = Some(data.len()).filter(|&length| length <= SHORT_BYTES_WITH_WORD)?;
    Some(Short {
        to,
        key: header.key,
        offset: header.offset,
        word,
        has_metadata: !to.is_fast(),
        length_bytes: length as u16,
        data: short_words(data)?,
    })
}

fn noise(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.bits() as u8 | 1).collect()
}

impl Figures {
    pub fn add(&mut self, other: &Self) {
        self.posted += other.posted;
        self.arrived += other.arrived;
        self.refused += other.refused;
        self.announced += other.announced;
        self.short_ways += other.short_ways;
        self.overruns += other.overruns;
        self.failed += other.failed;
        self.placed += other.placed;
    }

    /// Whether each kind of thing happened often enough to say something.
    pub fn are_lively(&self) -> bool {
        let rare = [self.overruns, self.failed, self.placed];
        let half = self.arrived / 2;
        self.refused < half
            && self.announced > self.arrived / 5
            && self.short_ways > 1_000
            && rare.iter().all(|&count| count > 100)
    }
}
