//! What a stream's receiver and its sender say to each other beside the records: who the sender
//! is, where it ends, what was released, and whether there is more memory.

use hamlyn_engine::limits::{FAST_INDEX, USER_METADATA_BYTES};
use hamlyn_engine::mutation::{Mutation, is_on};
use hamlyn_host::Host;

use super::{Owed, Receiver, malformed};
use crate::error::ReceiveError;
use crate::manager::Manager;
use crate::message::Message;
use crate::stream::extent::Extent;
use crate::stream::wire::{
    CLOSE, CONTROL_ENTRIES, CREDIT_BYTES, Credit, ENLARGE, EXTENT_MASK, HELLO, PIECES_MAX,
    extent_note, read_enlarge_note,
};
use crate::ticket::{TICKET_BYTES, Ticket};
use crate::wait::Wait;

impl Receiver {
    /// Takes in what the sender says beside its records.
    #[inline(never)]
    pub(super) fn take_control<H: Host>(
        &mut self,
        manager: &mut Manager<H>,
        index: usize,
        control: u32,
    ) -> Result<(), ReceiveError> {
        let newest = self.newest();
        let serial = self.first + index as u64;
        let extent = &mut self.extents[index];
        let mut metadata = [0; USER_METADATA_BYTES];
        let length = extent.control(control, &mut metadata);
        let metadata = &metadata[..length];
        match control {
            HELLO => {
                let ticket = metadata
                    .get(..TICKET_BYTES)
                    .and_then(|bytes| Ticket::from_bytes(bytes).ok())
                    .filter(|ticket| ticket.metadata_index == FAST_INDEX);
                // Only a peer that is linked to us, or was until now, is believed: credit must not
                // make us connect to strangers.
                let (Some(ticket), None) = (ticket, self.sender()) else {
                    return self.fail("a sender that does not say who it is");
                };
                self.credit = manager.interface_mut().target_linked(&ticket);
                if self.credit.is_none() {
                    self.gone = manager.interface().recent_loss(&ticket.destination);
                    if self.gone.is_none() {
                        return self.fail("a sender that is not linked to us");
                    }
                }
                if let Some((position, record_bytes)) = self.early.take() {
                    return self.meet(manager, position, record_bytes);
                }
            }
            CLOSE => {
                let position = metadata.try_into().map(u64::from_le_bytes);
                match position {
                    Ok(position) if serial == newest && extent.may_end_at(position) => {
                        let early = u64::from(is_on(Mutation::EndEarly) && position > 0);
                        extent.end = Some(position - early);
                        self.closed = true;
                    }
                    // It closed before it heard of the newest extent, which stays empty.
                    Ok(position) if serial + 1 == newest && extent.end == Some(position) => {
                        if let Some(newest) = self.extents.last_mut() {
                            newest.end = Some(0);
                        }
                        self.closed = true;
                    }
                    _ => return self.fail("an end at an impossible position"),
                }
            }
            ENLARGE => {
                let Some((position, record_bytes)) = read_enlarge_note(metadata) else {
                    return self.fail("a demand for memory that is none");
                };
                // A larger extent may be on its way already.
                if serial == newest && !self.closed {
                    if self.credit.is_none() && self.gone.is_none() {
                        // It has overtaken the greeting, for which this extent must stay open.
                        self.early = Some((position, record_bytes));
                        return Ok(());
                    }
                    return self.meet(manager, position, record_bytes);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Meets a demand for memory in the newest extent.
    fn meet<H: Host>(
        &mut self,
        manager: &mut Manager<H>,
        position: u64,
        record_bytes: u64,
    ) -> Result<(), ReceiveError> {
        let Some(extent) = self.extents.last_mut() else {
            return Ok(());
        };
        if !extent.may_end_at(position) {
            return self.fail("a demand for memory at an impossible position");
        }
        let index = extent.pieces() + ENLARGE;
        extent.arm(index);
        let needed = record_bytes.div_ceil(u64::from(self.options.piece_bytes));
        if needed > u64::from(extent.pieces()) || extent.is_held_whole() {
            self.enlarge(manager, position, needed);
        } else {
            // It fits; the sender only waits for credit.
            self.hungry = Some(position);
            self.owed = Some(Owed::Credit { denied: false });
            self.pay(manager);
        }
        Ok(())
    }

    pub(super) fn fail(&mut self, what: &'static str) -> Result<(), ReceiveError> {
        self.broken = Some(what);
        Err(malformed(what))
    }

    /// Opens a larger extent, where the stream goes on after `position`; or tells
    /// the sender that there will be none.
    pub(super) fn enlarge<H: Host>(
        &mut self,
        manager: &mut Manager<H>,
        position: u64,
        pieces_needed: u64,
    ) {
        let replaces = self.is_drained_at(position);
        let used = if replaces { 0 } else { self.memory_bytes() };
        let piece_bytes = u64::from(self.options.piece_bytes);
        let left = self.options.limit_bytes.saturating_sub(used) / piece_bytes;
        let present = self.extents.last().map_or(1, Extent::pieces);
        let room = manager.room().saturating_sub(CONTROL_ENTRIES as usize) as u64;
        let most = left.min(room).min(u64::from(PIECES_MAX));
        let wanted = pieces_needed.max(u64::from(present) * 2).min(most);
        let opened = if wanted >= pieces_needed.max(1) {
            self.open_extent(manager, wanted as u32)
        } else {
            None
        };
        match opened {
            Some(extent) => {
                if let Some(old) = self.extents.last_mut() {
                    old.end = Some(position);
                }
                self.extents.push(extent);
                self.hungry = None;
                self.refused = None;
                self.owed = Some(Owed::Extent);
                if replaces {
                    self.move_on();
                    self.drop_first_extent(manager);
                }
            }
            None => {
                self.hungry = Some(position);
                self.refused = Some(position);
                self.owed = Some(Owed::Credit { denied: true });
            }
        }
        self.pay(manager);
    }

    /// Whether the stream's only extent ends there and nothing of it is held, so that another
    /// can take its place within the limit.
    fn is_drained_at(&self, position: u64) -> bool {
        self.extents.len() == 1
            && self.packed.is_none()
            && self
                .extents
                .last()
                .is_some_and(|extent| extent.released == position)
    }

    /// Tells the sender what it waits for, if there is room; otherwise later.
    pub(super) fn pay<H: Host>(&mut self, manager: &mut Manager<H>) {
        let paid = match self.owed {
            None => return,
            Some(Owed::Credit { denied }) => {
                let credit = Credit {
                    answer: true,
                    denied,
                    ..self.credit_now()
                };
                let paid = self.send_credit(manager, credit);
                if paid {
                    self.reported = credit.released;
                }
                paid
            }
            Some(Owed::Extent) => self.announce(manager),
        };
        if paid {
            self.owed = None;
        }
    }

    fn open_extent<H: Host>(&mut self, manager: &mut Manager<H>, pieces: u32) -> Option<Extent> {
        let entries = (pieces + CONTROL_ENTRIES) as usize;
        manager.reserve(self.class, entries).ok()?;
        let opened = Extent::open(manager, self.class, pieces, self.options.piece_bytes);
        if opened.is_err() {
            manager.unreserve(self.class, entries);
        }
        opened.ok()
    }

    fn announce<H: Host>(&mut self, manager: &mut Manager<H>) -> bool {
        let (Some(credit), Some(extent)) = (self.credit, self.extents.last()) else {
            return false;
        };
        let seed = extent.seed(manager.interface().identity());
        let note = extent_note(&seed.ticket, seed.pieces);
        // The sender's slot has one metadata entry for such notes.
        let ticket = Ticket {
            metadata_index: 0,
            ..*credit.ticket()
        };
        let Some(target) = credit.with_ticket(ticket) else {
            return true;
        };
        let terminus = manager.terminus();
        let message = Message::new(&[]).metadata(&note);
        manager
            .interface_mut()
            .send_msg(terminus, &target, &message, Wait::Poll)
            .is_ok()
    }

    /// The credit of the extent that the sender fills. All that it counts may be filled again.
    pub(super) fn credit_now(&mut self) -> Credit {
        if let Some(extent) = self.extents.last_mut() {
            extent.open_released();
        }
        Credit {
            released: self.extents.last().map_or(0, |extent| extent.released),
            extent: self.newest() as u16 & EXTENT_MASK,
            answer: false,
            denied: false,
            closed: false,
        }
    }

    /// Reports what was released, a quarter of the extent at a time, or at once if the sender said
    /// that it waits. Held back while the
    /// sender is being moved to another extent: it must not go on in this one.
    pub(super) fn report<H: Host>(&mut self, manager: &mut Manager<H>) {
        if self.delivering != self.newest() {
            return;
        }
        let Some(extent) = self.extents.last() else {
            return;
        };
        if self
            .hungry
            .is_some_and(|position| extent.has_come(position))
        {
            self.hungry = None;
        }
        let owed = extent.released.saturating_sub(self.reported);
        if owed >= self.report_after(extent) {
            let credit = self.credit_now();
            if self.send_credit(manager, credit) {
                self.reported = credit.released;
            }
        }
    }

    /// How many pieces are released before that is reported.
    pub(super) fn report_after(&self, extent: &Extent) -> u64 {
        match self.hungry {
            Some(_) => 1,
            None => u64::from(extent.pieces()).div_ceil(4),
        }
    }

    pub(super) fn send_credit<H: Host>(
        &mut self,
        manager: &mut Manager<H>,
        credit: Credit,
    ) -> bool {
        let Some(target) = self.credit else {
            return false;
        };
        let terminus = manager.terminus();
        // With data that say nothing it is a short packet, which is sent and received the shortest way.
        let message = Message::new(&[0; CREDIT_BYTES]).word(credit.to_word());
        manager
            .interface_mut()
            .send_msg(terminus, &target, &message, Wait::Poll)
            .is_ok()
    }
}
