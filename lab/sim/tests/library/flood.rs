//! More messages than a link has room for, of one cell or of two, each to a place of its own and
//! unannounced.

use hamlyn::{Area, Host, Manager, Message, NewSlot, Slot, Target, Wait};
use hamlyn_sim::reference::Violation;
use hamlyn_sim::reference::memory::Memory;

use super::{GROW, failed, sent};

/// Of a flood, in turn.
const LENGTHS_BYTES: [usize; 2] = [16, 64];
/// Of a place.
const PLACE_BYTES: usize = 64;
/// More than the cells of a ring and the entries of a work queue.
const MESSAGES: usize = 20_000;
const AREA_BYTES: usize = MESSAGES * PLACE_BYTES;
/// Looks at what came in before the sender goes on.
const POLLS: u32 = 4;
/// Polls in which all of it must have come.
const POLLS_MAX: u32 = 10_000;

pub struct Flood {
    slot: Slot,
    area: Area,
    target: Target,
    memory: Memory,
    floods: u64,
}

impl Flood {
    pub fn open<H: Host>(manager: &Manager<H>) -> Result<Self, Violation> {
        let area = manager.session().allocate(AREA_BYTES as u64);
        let area = area.map_err(failed("allocating an area"))?;
        let slot = manager.session().open_slot(NewSlot::new(&area));
        let slot = slot.map_err(failed("opening a slot"))?;
        let ticket = slot.fast_ticket(0, AREA_BYTES as u64);
        let ticket = ticket.map_err(failed("a ticket"))?;
        let target = manager
            .session()
            .target(&ticket, GROW)
            .map_err(failed("grow"))?;
        Ok(Self {
            slot,
            area,
            target,
            memory: Memory::new(AREA_BYTES),
            floods: 0,
        })
    }

    /// Sends until there is no room, looks a little, goes on; and in the end all of it is there.
    pub fn send<H: Host>(&mut self, manager: &Manager<H>) -> Result<(), Violation> {
        self.floods += 1;
        let terminus = manager.terminus();
        let length_bytes = LENGTHS_BYTES[self.floods as usize % LENGTHS_BYTES.len()];
        let mut blocked = 0;
        for number in 0..MESSAGES {
            let word = (self.floods << 32 | number as u64) + 1;
            let mut data = [number as u8; PLACE_BYTES];
            data[..8].copy_from_slice(&word.to_le_bytes());
            data[length_bytes - 8..length_bytes].copy_from_slice(&(!word).to_le_bytes());
            let data = &data[..length_bytes];
            let offset = (number * PLACE_BYTES) as u64;
            let message = Message::new(data).at(offset).silent();
            while sent(
                "a short message",
                manager
                    .session()
                    .send_msg(terminus, &self.target, &message, Wait::Poll),
            )?
            .is_none()
            {
                blocked += 1;
                for _ in 0..POLLS {
                    manager.session().poll();
                }
            }
            self.memory.write(offset, data);
        }
        if blocked == 0 {
            return Err(Violation::Unfinished("a link that is never full".into()));
        }
        let mut found = vec![0; AREA_BYTES];
        for _ in 0..POLLS_MAX {
            manager.session().poll();
            let last = AREA_BYTES - PLACE_BYTES;
            let read = self.area.read_at(last as u64, &mut found[last..]);
            read.map_err(failed("reading the area"))?;
            if found[last..] == self.memory.bytes()[last..] {
                break;
            }
        }
        let read = self.area.read_at(0, &mut found);
        read.map_err(failed("reading the area"))?;
        self.memory.check(0, 0, &found)
    }

    pub fn close<H: Host>(self, manager: &Manager<H>) -> Result<(), Violation> {
        let closed = manager.session().close_slot(self.slot);
        closed.map_err(failed("closing a slot"))
    }
}
