//! The program whose memory is changed. It does nothing but let packets in.

use hamlyn::engine::slot::Rights;
use hamlyn::{Area, NewSlot, Slot, Ticket, Wait};

use super::{PLACE_BYTES, WINDOW};
use crate::reference::Violation;
use crate::reference::remote::Remote;
use crate::scenario::flow::{FlowReceiver, Program, wrong};
use crate::scenario::history::Oracle;

/// Before and behind all places.
pub(super) const GUARD_BYTES: u64 = 512;
const GUARD: u8 = 0xa5;
const AREA_BYTES: u64 = 2 * GUARD_BYTES + WINDOW * PLACE_BYTES;

/// The memory that is changed.
pub(in crate::scenario::flow) struct Owner {
    slot: Slot,
    /// Over the same memory, which it lets nobody change.
    read_only: Slot,
}

impl Owner {
    pub(in crate::scenario::flow) fn open(
        program: &Program,
        oracle: &Oracle<'_>,
    ) -> Result<Self, String> {
        let mut interface = program.session();
        let area = interface
            .allocate(AREA_BYTES)
            .map_err(wrong("allocating"))?;
        // It lies within.
        let _ = area.fill(0, AREA_BYTES, GUARD);
        let range = GUARD_BYTES..AREA_BYTES - GUARD_BYTES;
        let new = NewSlot::new(&area)
            .range(range.clone())
            .counting_stores(1)
            .rights(Rights::ALL);
        let slot = interface.open_slot(new).map_err(wrong("opening a slot"))?;
        let new = NewSlot::new(&area).range(range).rights(Rights::READ);
        let read_only = interface.open_slot(new).map_err(wrong("opening a slot"))?;
        drop(interface);
        oracle.judge(|models| {
            models.remote = Remote::new(vec![GUARD; AREA_BYTES as usize]);
            models.area = Some(area);
            Ok(())
        })?;
        Ok(Self { slot, read_only })
    }
}

impl FlowReceiver for Owner {
    fn seed(&self, _: &Program) -> Result<Vec<u8>, String> {
        let all = 0..WINDOW * PLACE_BYTES;
        let tickets = [
            self.slot.fast_ticket(all.start, all.end),
            self.slot.ticket(0, all.start, all.end),
            self.read_only.fast_ticket(all.start, all.end),
        ];
        let tickets = tickets.into_iter().collect::<Result<Vec<Ticket>, _>>();
        let tickets = tickets.map_err(wrong("a ticket"))?;
        Ok(tickets.iter().flat_map(Ticket::to_bytes).collect())
    }

    fn look(&mut self, program: &Program, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String> {
        match wait {
            Wait::Poll => drop(program.session().poll()),
            // The loss of a peer interrupts it, which is told otherwise.
            wait => drop(program.wait(wait)),
        }
        // Counted are bytes whose store was begun.
        let stored = self.slot.stored_bytes(0).unwrap_or_default();
        let begun = oracle.judge(|models| Ok(models.stored_bytes))?;
        match begun {
            Some(begun) if stored > begun => Err(format!(
                "{stored} bytes were counted of {begun} that were stored"
            )),
            _ => Ok(false),
        }
    }

    fn close(self: Box<Self>, program: &Program, oracle: &Oracle<'_>) -> Result<(), String> {
        check_memory(oracle, |remote, memory| remote.check(memory))?;
        for slot in [self.slot, self.read_only] {
            let closed = program.session().close_slot(slot);
            closed.map_err(wrong("closing"))?;
        }
        Ok(())
    }
}

/// Compares the receiver's memory, as it is at this moment, with the model.
pub(super) fn check_memory<T>(
    oracle: &Oracle<'_>,
    check: impl FnOnce(&mut Remote, &[u8]) -> Result<T, Violation>,
) -> Result<(), String> {
    let checked = oracle.judge(|models| {
        let mut memory = vec![0; AREA_BYTES as usize];
        match &models.area {
            Some(area) => drop(Area::read_at(area, 0, &mut memory)),
            None => return Ok(()),
        }
        check(&mut models.remote, &memory).map(drop)
    });
    checked.map(drop)
}
