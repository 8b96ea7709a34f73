//! Segments (`V 3.1`): memory of an endpoint into which bulk messages go, by a slot that opens when
//! the first sender asks for it; and those of others, as a sender knows them.

use std::rc::Rc;

use hamlyn::engine::slot::Rights;
use hamlyn::region::{
    Access, AttachError, Attached, Holders, REGION_TICKET_BYTES, Region, RegionTicket,
};
use hamlyn::ticket::{TICKET_BYTES, TicketKind};
use hamlyn::{Area, Host, NewSlot, Session, Slot, Target, Ticket, Wait};

use crate::dropped::Dropped;
use crate::error::Error;
use crate::wire::Place;

/// Time for which a call that waits anyway waits for memory of its receiver to be mapped.
const ATTACH_WAIT: Wait = Wait::millis(100);

/// Memory of the application.
pub(crate) struct Segment {
    pub(crate) area: Area,
    pub(crate) length_bytes: u64,
    /// No other segment of the node has or had it.
    pub(crate) number: u64,
    opened: Option<Box<Opened>>,
}

/// A slot over all of a segment, of which senders have tickets; and its memory as a region, if it
/// can be shared.
struct Opened {
    slot: Slot,
    region: Option<Region>,
}

impl Segment {
    pub(crate) fn new(area: Area, length_bytes: u64, number: u64) -> Self {
        Self {
            area,
            length_bytes,
            number,
            opened: None,
        }
    }

    /// Bytes that say where data for it go: a ticket, and one of its region if there is one. Opens
    /// the slot for the first who asks.
    pub(crate) fn tickets<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<Vec<u8>, Error> {
        let length_bytes = self.length_bytes;
        let opened = match &mut self.opened {
            Some(opened) => opened,
            opened => {
                let new = NewSlot::new(&self.area);
                let is_all = new.range == (0..length_bytes);
                let new = new.range(0..length_bytes).rights(Rights::WRITE);
                let slot = session.open_slot(new)?;
                // Memory that cannot be shared, or of which there is too much, is no error: its
                // senders send packets.
                let region = is_all.then(|| {
                    let all = 0..length_bytes;
                    session.share(&slot, all, Access::Writable, Holders::Linked)
                });
                let region = region.and_then(Result::ok);
                opened.insert(Box::new(Opened { slot, region }))
            }
        };
        let ticket = opened.slot.fast_ticket(0, length_bytes);
        let mut bytes = ticket.map_err(hamlyn::SendError::from)?.to_bytes().to_vec();
        if let Some(region) = &opened.region {
            bytes.extend_from_slice(&region.ticket().to_bytes());
        }
        Ok(bytes)
    }

    /// True if the slot of that number and key is the one that is open.
    pub(crate) fn has_slot(&self, proof: u64) -> bool {
        let opened = self.opened.as_ref();
        let ticket = opened.and_then(|opened| opened.slot.fast_ticket(0, 0).ok());
        ticket.is_some_and(|ticket| proof_of(&ticket) == proof)
    }

    /// Closes the slot: whoever had a ticket has none from now on.
    pub(crate) fn close<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), Error> {
        let Some(opened) = &mut self.opened else {
            return Ok(());
        };
        if let Some(region) = &opened.region {
            session.revoke(region)?;
            opened.region = None;
        }
        self.end(session);
        Ok(())
    }

    /// The endpoint goes: closes the slot, whatever becomes of pages that others have mapped.
    pub(crate) fn end<H: Host>(&mut self, session: &mut Session<'_, H>) {
        if let Some(opened) = self.opened.take() {
            // One that is not open any more needs no closing.
            let _ = session.close_slot(opened.slot);
        }
    }
}

/// The number by which a message names the slot that its data went to.
fn proof_of(ticket: &Ticket) -> u64 {
    ticket.key.to_bits() ^ u64::from(ticket.slot.to_bits())
}

/// The segment of a translation's endpoint, as it said itself.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) target: Target,
    /// Its region, until it was tried to map it.
    region: Option<RegionTicket>,
    /// That, once it is mapped, and who lets go of it when this goes.
    attached: Option<(Attached, Rc<Dropped>)>,
    /// Handlers that it is known to have for bulk messages.
    handlers: [u64; 4],
}

impl Remote {
    /// The segment that the peer of that target describes. Nothing if it is none of its own.
    pub(crate) fn of_bytes(at: &Target, bytes: &[u8]) -> Option<Self> {
        let (ticket, region) = bytes.split_at_checked(TICKET_BYTES)?;
        let ticket = Ticket::from_bytes(ticket).ok()?;
        let target = at.with_ticket(ticket)?;
        if ticket.kind != TicketKind::Slot {
            return None;
        }
        let region = match region.len() {
            REGION_TICKET_BYTES => Some(RegionTicket::from_bytes(region).ok()?),
            _ => None,
        };
        let is_its = |region: &RegionTicket| region.ticket.destination == ticket.destination;
        Some(Self {
            target,
            region: region.filter(is_its),
            attached: None,
            handlers: [0; 4],
        })
    }

    /// See [`proof_of`].
    pub(crate) fn proof(&self) -> u64 {
        proof_of(self.target.ticket())
    }

    /// True if the place lies in it, and it has that handler, as far as is known.
    pub(crate) fn takes(&self, place: Place, handler: u8) -> bool {
        let is_known = self.handlers[usize::from(handler / 64)] >> (handler % 64) & 1 == 1;
        let length_bytes = self.target.ticket().length_bytes;
        let room = length_bytes.checked_sub(place.offset);
        is_known && room.is_some_and(|room| place.length_bytes <= room)
    }

    /// It has that handler.
    pub(crate) fn has_handler(&mut self, handler: u8) {
        self.handlers[usize::from(handler / 64)] |= 1 << (handler % 64);
    }

    /// Handlers that were known before are still.
    pub(crate) fn take_over(&mut self, before: &Self) {
        for (own, known) in self.handlers.iter_mut().zip(before.handlers) {
            *own |= known;
        }
    }

    /// Maps its memory, if that can be and was not tried: then data are stored there at once. False
    /// if its owner did not hand it over in time, so that it is better not tried again.
    pub(crate) fn attach<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        dropped: &Rc<Dropped>,
    ) -> bool {
        let Some(region) = self.region.take() else {
            return true;
        };
        match session.attach(&region, ATTACH_WAIT) {
            Ok(attached) => self.attached = Some((attached, Rc::clone(dropped))),
            Err(AttachError::Fetch(_)) => return false,
            // They go as packets.
            Err(_) => {}
        }
        true
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Some((attached, dropped)) = self.attached.take() {
            dropped.region(attached);
        }
    }
}
