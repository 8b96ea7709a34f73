//! Packets that come in: honest ones in any order, and hostile ones; by whichever way is open to
//! them.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{FAST_INDEX, SHORT_BYTES_WITH_WORD};
use hamlyn_engine::packet::{Address, Flags, Kind, Short, SlotName};
use hamlyn_engine::receive::{Awaited, Received};
use hamlyn_engine::slot::Mode;
use hamlyn_sim::reference::Violation;
use hamlyn_sim::reference::receiving::{Arrival, Reception};

use super::host::{self, InPlace, Packet};
use super::{AREA_BYTES, Driver, noise, short_of};

/// Bytes on both sides of what was written that are looked at as well.
const MARGIN_BYTES: u64 = 16;

impl Driver {
    /// One of the packets under way arrives; now and then it will again.
    pub(super) fn deliver(&mut self) -> Result<(), Violation> {
        let count = self.under_way.len() as u64;
        if count == 0 {
            return Ok(());
        }
        // Mostly one of the latest; some are very late.
        let latest = if self.random.below(4) == 0 {
            count
        } else {
            count.min(6)
        };
        let at = count - 1 - self.random.below(latest);
        let packet = self.under_way.remove(at as usize);
        if self.random.below(60) == 0 {
            self.under_way.push(packet.clone());
        }
        self.arrive(&packet)
    }

    /// A packet that no honest interface would send: a goal with something wrong about it.
    pub(super) fn forge(&mut self) -> Result<(), Violation> {
        let Some(goal) = self.goal() else {
            return Ok(());
        };
        let length = match self.random.below(3) {
            0 => self.random.below(SHORT_BYTES_WITH_WORD as u64 + 1),
            _ => self.random.below(40),
        };
        let span = goal.high.saturating_sub(goal.low);
        let offset = goal.low + self.random.below(span.saturating_sub(length) + 1);
        let mut header = self.header(&goal, offset);
        let is_fast = header.metadata_index == FAST_INDEX;
        let metadata = if is_fast { 0 } else { 8 * self.random.below(2) };
        header.word = if is_fast { self.random.bits() } else { 0 };
        let mut metadata = noise(&mut self.random, metadata as usize);
        let slot = self.slots.iter().find(|slot| slot.name == goal.slot);
        let (bound, old_key) = slot.map_or((goal.high, goal.key), |slot| {
            (slot.new.length_bytes, slot.old_key)
        });
        match self.random.below(16) {
            0 => header.key = Key::from_bits(1 + self.random.below(6)),
            1 => header.key = old_key,
            2 => header.key = Key::from_bits(self.random.bits()),
            // Just too far, in three ways.
            3 => header.offset = (bound + 1).saturating_sub(length),
            4 => header.offset = (goal.high + 1).saturating_sub(length),
            5 => header.offset = (bound + 1).saturating_sub(length) + self.random.below(100),
            6 => header.offset = goal.low.saturating_sub(1 + self.random.below(8)),
            7 => header.offset = u64::MAX - self.random.below(40),
            8 => header.metadata_index = FAST_INDEX,
            9 => header.metadata_index = self.random.below(7) as u16,
            10 => {
                let generation = goal.slot.generation().wrapping_sub(1);
                header.slot = SlotName::new(goal.slot.index(), generation);
            }
            11 => header.slot = SlotName::from_bits(self.random.below(10) as u32),
            12 => header.kind = Kind(1 + self.random.below(255) as u8),
            13 => header.flags = Flags(self.random.below(8) as u8),
            14 => header.word = self.random.bits() >> self.random.below(64),
            _ => metadata = noise(&mut self.random, 61),
        }
        if header.metadata_index == FAST_INDEX && self.random.below(4) != 0 {
            metadata.clear();
        }
        header.length_bytes = length as u32;
        header.metadata_length_bytes = metadata.len() as u8;
        let data = if header.flags.is_placed() {
            Vec::new()
        } else {
            noise(&mut self.random, length as usize)
        };
        let packet = Packet {
            header,
            metadata,
            data,
            from: host::peer(self.random.below(3)),
        };
        self.arrive(&packet)
    }

    /// A packet comes in; all that it did is looked at.
    fn arrive(&mut self, packet: &Packet) -> Result<(), Violation> {
        let header = &packet.header;
        let slot = self.slots.iter().find(|slot| slot.name == header.slot);
        let new = slot.map(|slot| slot.new.clone());
        let queue = new.as_ref().and_then(|new| new.queue);
        // Who waits has found the queue empty.
        let waiting = queue.filter(|_| self.random.below(2) == 0);
        if let Some(queue) = waiting {
            while self.pop_one(queue)? {}
        }
        let outcome = self.receiving.packet_arrived(&Arrival {
            header,
            metadata: &packet.metadata,
            data: &packet.data,
            from: packet.from,
            waiting,
            asked: None,
        });
        let (found, is_awaited) = self.take(packet, waiting);
        self.figures.arrived += 1;
        self.figures.refused += u64::from(found.is_err());
        self.figures.announced += u64::from(matches!(
            found,
            Ok(Received::Complete | Received::Handed(_))
        ));
        outcome.check(header, found)?;
        if let Some(new) = new {
            self.look(packet, new.area, new.base.wrapping_add(header.offset))?;
            if let Some(entries) = new.entries {
                for index in [header.metadata_index, header.metadata_index.wrapping_add(1)] {
                    if let Some(entry) = self.entries[entries].entry(index) {
                        self.receiving.entry_is(entries, index, entry)?;
                    }
                }
            }
        }
        // Who awaits a message takes back no more than its bytes.
        let expected = match (&outcome.written, outcome.completed) {
            (Some((area, written)), Some(_)) if is_awaited => {
                Some((*area, written.start, written.end))
            }
            (_, completed) => completed,
        };
        let mut found = None;
        for (number, area) in self.areas.iter().enumerate() {
            for (low, high) in area.completed.borrow_mut().drain(..) {
                found = Some((number, low, high));
            }
        }
        if found != expected {
            return Err(Violation::Completed { expected, found });
        }
        Ok(())
    }

    /// Looks at where the packet's data are, or would be.
    fn look(&self, packet: &Packet, area: usize, at: u64) -> Result<(), Violation> {
        let area_bytes = AREA_BYTES[area] as u64;
        let start = at.saturating_sub(MARGIN_BYTES).min(area_bytes);
        let end = at
            .saturating_add(packet.data.len() as u64 + MARGIN_BYTES)
            .min(area_bytes);
        let bytes = self.areas[area].bytes.borrow();
        self.receiving
            .memory_is(area, start, &bytes[start as usize..end as usize])
    }

    /// Gives a packet to the engine by one of the ways that its form allows; whether it was taken
    /// as awaited.
    fn take(&mut self, packet: &Packet, waiting: Option<usize>) -> (Reception, bool) {
        let waiting = waiting.map(|queue| self.queues[queue].0);
        let way = self.random.below(4);
        if way <= 2
            && let Some(queue) = waiting
            && let Some(short) = short(packet)
        {
            let awaited = if way == 1 { self.awaited(&short) } else { None };
            let name = short.to.slot();
            let slot = self.slots.iter().find(|slot| slot.name == name);
            let entries = slot.and_then(|slot| Some(&self.entries[slot.new.entries?]));
            let entry = entries.and_then(|entries| entries.entry(short.to.metadata_index()));
            let awaited = awaited.as_ref().zip(entry);
            let receiver = &mut self.receiver;
            let taken = if short.has_metadata {
                receiver.receive_short(&InPlace::<true>(&short), queue, awaited)
            } else {
                receiver.receive_short(&InPlace::<false>(&short), queue, None)
            };
            // Its metadata must be the message's; without metadata there are none to say.
            let metadata = if short.has_metadata { short.word } else { 0 };
            if let Some(taken) = taken.filter(|taken| taken.metadata == metadata) {
                self.figures.short_ways += 1;
                let mut notification = taken.notification(packet.from);
                // It is not announced; but it would have been, with the class of its entry.
                if let Some((_, entry)) = awaited {
                    notification.word = entry.receive_class();
                }
                return (Ok(Received::Handed(notification)), awaited.is_some());
            }
        }
        let (from, header) = (packet.from, &packet.header);
        let reception = self.receiver.receive(from, header, packet, waiting);
        (reception, false)
    }

    /// What the application knows that awaits such a packet at its entry.
    fn awaited(&self, short: &Short) -> Option<Awaited> {
        let name = short.to.slot();
        let slot = self.slots.iter().find(|slot| slot.name == name)?;
        if slot.new.mode != Mode::ParanoidOneShot {
            return None;
        }
        let entries = &self.entries[slot.new.entries?];
        let permission = entries.entry(short.to.metadata_index())?.permission()?;
        let span = permission.high.checked_sub(permission.low)?;
        Some(Awaited {
            to: short.to,
            key: permission.key,
            low: permission.low,
            length_bytes: span,
        })
    }
}

/// The packet as a short one, if it has that form.
fn short(packet: &Packet) -> Option<Short> {
    let header = &packet.header;
    let to = Address::new(header.slot, header.metadata_index);
    // With metadata it is for an entry, without it is in fast mode. A word of metadata leaves no
    // room for a delta.
    let word = match packet.word() {
        None if packet.metadata.is_empty() && to.is_fast() => header.word,
        Some(metadata) if !to.is_fast() && header.word == 0 => metadata,
        _ => return None,
    };
    let is_short = header.kind == Kind::WRITE && header.flags == Flags::NONE;
    is_short.then(|| short_of(header, word, &packet.data))?
}
