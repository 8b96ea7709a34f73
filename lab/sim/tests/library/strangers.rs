//! Slots of one's own making, and senders of whom some hold tickets that are stolen, stale or made
//! up.

use hamlyn::engine::counting::Counting;
use hamlyn::engine::key::Key;
use hamlyn::engine::limits::FAST_INDEX;
use hamlyn::engine::metadata::Permission;
use hamlyn::engine::slot::{Mode, Rights};
use hamlyn::engine::terminus::Completion;
use hamlyn::{Area, Host, Manager, Message, NewSlot, Queue, ReceiveError, Slot, Ticket, Wait};
use hamlyn_engine::packet::{Flags, Header, Kind};
use hamlyn_sim::random::Random;
use hamlyn_sim::reference::Violation;
use hamlyn_sim::reference::receiving::{self, Arrival, ReceiveEnable, Receiving};

use super::{GROW, failed, noise, sent};

const AREA_BYTES: usize = 1_024;
const SLOTS: usize = 3;
const ENTRIES: usize = 2;
const QUEUE_ENTRIES: usize = 64;
/// Looks at the queue in which a message must have come, if something shows that it has; and if
/// nothing does.
const LOOKS_MAX: u32 = 1_000;
const LOOKS_MIN: u32 = 8;

struct Place {
    slot: Slot,
    mode: Mode,
    /// Number of its metadata entries in the model.
    entries: usize,
}

pub struct Strangers {
    area: Area,
    queue: Queue,
    model: Receiving,
    places: Vec<Place>,
    /// Tickets that were good once.
    stale: Vec<Ticket>,
}

impl Strangers {
    pub fn open<H: Host>(manager: &Manager<H>) -> Result<Self, Violation> {
        let area = manager.session().allocate(AREA_BYTES as u64);
        let queue = manager.session().open_queue(QUEUE_ENTRIES);
        let mut model = Receiving::new();
        model.receive_enable = ReceiveEnable::Open;
        model.add_area(AREA_BYTES);
        model.add_queue(QUEUE_ENTRIES);
        Ok(Self {
            area: area.map_err(failed("allocating an area"))?,
            queue: queue.map_err(failed("opening a queue"))?,
            model,
            places: Vec::new(),
            stale: Vec::new(),
        })
    }

    pub fn act<H: Host>(
        &mut self,
        manager: &Manager<H>,
        random: &mut Random,
    ) -> Result<(), Violation> {
        let at = random.below(SLOTS as u64) as usize;
        if at >= self.places.len() {
            return self.open_slot(manager, random);
        }
        match random.below(40) {
            0 => self.close_slot(manager, at),
            1..4 => self.rekey(manager, at),
            4..20 => self.permit(manager, random, at),
            _ => self.send(manager, random, at),
        }
    }

    fn open_slot<H: Host>(
        &mut self,
        manager: &Manager<H>,
        random: &mut Random,
    ) -> Result<(), Violation> {
        let base = random.below(AREA_BYTES as u64 / 2);
        let length_bytes = random.within(64..AREA_BYTES as u64 - base + 1);
        let mode = [Mode::Normal, Mode::Paranoid, Mode::ParanoidOneShot];
        let mode = mode[random.below(3) as usize];
        let rights = match random.below(8) {
            0 => Rights::NONE,
            _ => Rights::WRITE,
        };
        let new = NewSlot::new(&self.area)
            .range(base..base + length_bytes)
            .mode(mode)
            .entries(ENTRIES)
            .queue(&self.queue)
            .rights(rights);
        let slot = manager.session().open_slot(new);
        let slot = slot.map_err(failed("opening a slot"))?;
        let entries = self.model.add_entries(ENTRIES);
        let new = receiving::NewSlot {
            area: 0,
            base,
            length_bytes,
            key: key(&slot)?,
            rights,
            mode,
            entries: Some(entries),
            queue: Some(0),
            modulus: 1 << 32,
        };
        self.model.slot_opened(slot.name(), new)?;
        self.places.push(Place {
            slot,
            mode,
            entries,
        });
        Ok(())
    }

    fn close_slot<H: Host>(&mut self, manager: &Manager<H>, at: usize) -> Result<(), Violation> {
        let place = self.places.swap_remove(at);
        let name = place.slot.name();
        let found = manager.session().close_slot(place.slot).is_ok();
        self.model.slot_closed(name, found)
    }

    fn rekey<H: Host>(&mut self, manager: &Manager<H>, at: usize) -> Result<(), Violation> {
        let slot = &mut self.places[at].slot;
        let done = manager.session().rekey_slot(slot);
        done.map_err(failed("re-keying a slot"))?;
        self.model.slot_rekeyed(slot.name(), key(slot)?, true)
    }

    fn permit<H: Host>(
        &mut self,
        manager: &Manager<H>,
        random: &mut Random,
        at: usize,
    ) -> Result<(), Violation> {
        let place = &self.places[at];
        let index = random.below(ENTRIES as u64) as u16;
        let Some(entry) = place.slot.metadata().and_then(|area| area.entry(index)) else {
            return Ok(());
        };
        let low = random.below(20);
        let permission = Permission {
            key: manager.session().new_key().map_err(failed("a new key"))?,
            low,
            high: low + random.below(44),
        };
        entry.permit(permission);
        self.model.permitted(place.entries, index, permission);
        entry.arm();
        self.model.armed(place.entries, index);
        Ok(())
    }

    /// What the owner of a slot would hand out, or something near it.
    fn ticket<H: Host>(
        &mut self,
        manager: &Manager<H>,
        random: &mut Random,
        at: usize,
    ) -> Result<Ticket, Violation> {
        let place = &self.places[at];
        let index = match (place.mode, random.below(2 + ENTRIES as u64)) {
            (Mode::Normal, 0 | 1) => FAST_INDEX,
            (_, index) => (index % ENTRIES as u64) as u16,
        };
        let metadata = place.slot.metadata();
        let entry = metadata.and_then(|area| area.entry(index));
        let permission = entry.and_then(|entry| entry.permission());
        let (key, base, length_bytes) = match permission {
            Some(permission) if place.mode != Mode::Normal => (
                permission.key,
                permission.low,
                permission.high - permission.low,
            ),
            _ => (key(&place.slot)?, 0, place.slot.length_bytes()),
        };
        let good = Ticket {
            destination: manager.session().identity(),
            slot: place.slot.name(),
            metadata_index: index,
            key,
            base,
            length_bytes,
            counting: Counting::Bits32,
            kind: hamlyn::ticket::TicketKind::Slot,
        };
        let mut ticket = good;
        match random.below(14) {
            0 => ticket.key = Key::from_bits(random.bits()),
            1 => ticket.metadata_index = FAST_INDEX,
            2 => ticket.metadata_index = random.below(4) as u16,
            // A place that ends just behind the slot, or behind the entry's limits, or begins
            // before them.
            3 => ticket.base = place.slot.length_bytes() - 15,
            4 => ticket.length_bytes += 1,
            5 => ticket.base = ticket.base.saturating_sub(1),
            6 | 7 if !self.stale.is_empty() => {
                ticket = self.stale[random.below(self.stale.len() as u64) as usize];
            }
            _ => {}
        }
        if self.stale.len() == 16 {
            self.stale.remove(0);
        }
        self.stale.push(good);
        Ok(ticket)
    }

    fn send<H: Host>(
        &mut self,
        manager: &Manager<H>,
        random: &mut Random,
        at: usize,
    ) -> Result<(), Violation> {
        let ticket = self.ticket(manager, random, at)?;
        let is_fast = ticket.metadata_index == FAST_INDEX;
        let length = match random.below(3) {
            0 => random.below(ticket.length_bytes + 1),
            // All of it, so that one byte more shows.
            1 => ticket.length_bytes,
            _ => ticket.length_bytes.min(16),
        };
        let offset = random.below(ticket.length_bytes - length + 1);
        let metadata = match random.below(3) {
            _ if is_fast => 0,
            0 => random.below(61),
            _ => 8,
        };
        let (metadata, data) = (noise(random, metadata), noise(random, length));
        let word = if is_fast { random.bits() } else { 0 };
        let is_silent = random.below(16) == 0;
        let mut message = Message::new(&data).at(offset).metadata(&metadata);
        message.word = word;
        message.silent = is_silent;
        let terminus = manager.terminus();
        let target = manager
            .session()
            .target(&ticket, GROW)
            .map_err(failed("grow"))?;
        let result = manager
            .session()
            .send_msg(terminus, &target, &message, Wait::Poll);
        let Some(handle) = sent("a message", result)? else {
            return Ok(());
        };
        let header = Header {
            slot: ticket.slot,
            metadata_index: ticket.metadata_index,
            key: ticket.key,
            offset: ticket.base + offset,
            length_bytes: data.len() as u32,
            word,
            metadata_length_bytes: metadata.len() as u8,
            flags: if is_silent {
                Flags::SILENT
            } else {
                Flags::NONE
            },
            kind: Kind::WRITE,
        };
        let expected = self.model.packet_arrived(&Arrival {
            header: &header,
            metadata: &metadata,
            data: &data,
            from: target.link(),
            waiting: None,
            asked: None,
        });
        // A silent message shows by nothing.
        let looks = match expected.reception {
            Ok(_) if is_silent => LOOKS_MIN,
            _ => LOOKS_MAX,
        };
        self.look(manager, looks)?;
        let completion = manager.session().completion(handle);
        match completion.map_err(failed("asking for a completion"))? {
            Completion::Sent => Ok(()),
            found => Err(Violation::Completion {
                terminus: 0,
                sequence: handle.sequence,
                expected: Completion::Sent,
                found,
            }),
        }
    }

    /// Reads what is announced until all is there that must be, and looks at everything.
    fn look<H: Host>(&mut self, manager: &Manager<H>, looks: u32) -> Result<(), Violation> {
        for look in 0..looks {
            match manager.session().rcv(&mut self.queue) {
                Ok(None) => {}
                Ok(found) => self.model.notified(0, Ok(found))?,
                Err(ReceiveError::Overrun(overrun)) => {
                    self.model.notified(0, Err(overrun.lost))?;
                }
                Err(error) => return Err(failed("reading a queue")(error)),
            }
            let refused = manager.session().refusals().total();
            let is_there = self.model.is_silent(0) && refused >= self.model.refused();
            if is_there && look >= LOOKS_MIN {
                break;
            }
        }
        if !self.model.is_silent(0) {
            self.model.notified(0, Ok(None))?;
        }
        self.model.counted(None, &manager.session().refusals())?;
        for place in &self.places {
            let info = manager.session().slot_info(&place.slot);
            let info = info.map_err(failed("looking at a slot"))?;
            let name = place.slot.name();
            self.model.counted(Some(name), &info.refusals)?;
            for index in 0..ENTRIES as u16 {
                if let Some(entry) = place.slot.metadata().and_then(|area| area.entry(index)) {
                    self.model.entry_is(place.entries, index, entry)?;
                }
            }
        }
        let mut bytes = vec![0; AREA_BYTES];
        let read = self.area.read_at(0, &mut bytes);
        read.map_err(failed("reading the area"))?;
        self.model.sweep(0, &bytes)
    }

    pub fn close<H: Host>(mut self, manager: &Manager<H>) -> Result<(), Violation> {
        while !self.places.is_empty() {
            self.close_slot(manager, 0)?;
        }
        manager.session().close_queue(self.queue);
        Ok(())
    }
}

fn key(slot: &Slot) -> Result<Key, Violation> {
    let ticket = slot.fast_ticket(0, 0).map_err(failed("a ticket"))?;
    Ok(ticket.key)
}
