//! Tagged writes: several senders, each with a room of its own in one area.

use hamlyn::tagged_write::{Receiver, Sender};
use hamlyn::{Host, Manager, Wait};
use hamlyn_sim::random::Random;
use hamlyn_sim::reference::Violation;
use hamlyn_sim::reference::delivery::{Deliveries, Order};
use hamlyn_sim::reference::memory::{Memory, StoreId};

use super::{GROW, failed, noise, sent};

const ROOMS: u64 = 4;
const ROOM_BYTES: u64 = 160;
const AREA_BYTES: usize = (ROOMS * ROOM_BYTES) as usize;

/// A sender, and what it has under way.
struct Room<H: Host> {
    sender: Sender<H>,
    under_way: Option<(u64, StoreId, Vec<u8>)>,
}

pub struct Rooms<H: Host> {
    receiver: Receiver<H>,
    memory: Memory,
    rooms: Vec<Room<H>>,
    pub channel: usize,
    tags: u64,
}

impl<H: Host> Rooms<H> {
    pub fn open(manager: &Manager<H>, deliveries: &mut Deliveries) -> Result<Self, Violation> {
        let receiver = Receiver::new(manager, ROOMS * ROOM_BYTES, 64);
        let receiver = receiver.map_err(failed("opening an area for tagged writes"))?;
        let mut rooms = Vec::new();
        for room in 0..ROOMS {
            let ticket = receiver.ticket_for(room * ROOM_BYTES, ROOM_BYTES);
            let ticket = ticket.map_err(failed("a ticket for a room"))?;
            rooms.push(Room {
                sender: Sender::grow(manager, &ticket, GROW).map_err(failed("grow"))?,
                under_way: None,
            });
        }
        Ok(Self {
            receiver,
            memory: Memory::new(AREA_BYTES),
            rooms,
            channel: deliveries.open(Order::Free),
            tags: 0,
        })
    }

    pub fn write(
        &mut self,
        random: &mut Random,
        deliveries: &mut Deliveries,
    ) -> Result<(), Violation> {
        let number = random.below(ROOMS);
        let room = &mut self.rooms[number as usize];
        if room.under_way.is_some() {
            return Ok(());
        }
        let length = match random.below(2) {
            0 => 16,
            _ => random.below(ROOM_BYTES + 1),
        };
        let offset = random.below(ROOM_BYTES - length + 1);
        let data = noise(random, length);
        let tag = self.tags * ROOMS + number;
        let result = room.sender.send(offset, &data, tag, Wait::Poll);
        if sent("a tagged write", result)?.is_none() {
            return Ok(());
        }
        self.tags += 1;
        deliveries.sent(self.channel, &tag.to_le_bytes());
        let at = number * ROOM_BYTES + offset;
        if let Some(store) = self.memory.store_begins(at, data.len()) {
            room.under_way = Some((tag, store, data));
        }
        Ok(())
    }

    /// Takes a tag, or one that is under way, and looks at the area.
    pub fn get(
        &mut self,
        random: &mut Random,
        deliveries: &mut Deliveries,
    ) -> Result<(), Violation> {
        let number = random.below(ROOMS) as usize;
        let sought = self.rooms[number].under_way.as_ref().map(|(tag, ..)| *tag);
        let found = match sought {
            Some(tag) if random.below(2) == 0 => self.receiver.get_specific_tag(tag, Wait::Poll),
            _ => self.receiver.get_tag(Wait::Poll),
        };
        if let Some(tag) = found.map_err(failed("getting a tag"))? {
            deliveries.delivered(self.channel, &tag.to_le_bytes())?;
            let room = &mut self.rooms[(tag % ROOMS) as usize];
            if let Some((_, store, data)) = room.under_way.take() {
                self.memory.store_ends(store, &data);
            }
        }
        let mut bytes = vec![0; AREA_BYTES];
        let read = self.receiver.area().read_at(0, &mut bytes);
        read.map_err(failed("reading the area"))?;
        self.memory.check(0, 0, &bytes)
    }
}
