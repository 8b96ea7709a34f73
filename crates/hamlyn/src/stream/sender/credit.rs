//! The reports of the receiver to a stream's sender, and the sender's requests.

use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_host::Host;

use super::{CREDIT_ENTRIES, Sender, no_room};
use crate::error::SendError;
use crate::session::Session;
use crate::stream::wire::{Credit, ENLARGE, ExtentNote, Kind, StreamPosition};
use crate::ticket::Ticket;
use crate::wait::{Wait, Waiting};

/// Fruitless looks for credit before the receiver is asked for it.
const LOOKS_BEFORE_ASKING: u32 = 12;

const _: () = assert!(LOOKS_BEFORE_ASKING < crate::wait::EAGER_LOOKS);
impl Sender {
    /// Takes in all that the receiver reported.
    pub(super) fn absorb<H: Host>(&mut self, session: &mut Session<'_, H>) {
        // No more than can wait at once: a receiver that sends them without end must not keep us
        // here.
        for _ in 0..2 * CREDIT_ENTRIES {
            if !self.absorb_next(session) {
                return;
            }
        }
    }

    /// Takes in what the receiver reported, as far as that is needed for a small record to go.
    pub(super) fn absorb_some<H: Host>(&mut self, session: &mut Session<'_, H>) {
        for _ in 0..2 * CREDIT_ENTRIES {
            if !self.absorb_next(session)
                || self.account.is_ahead_little() && !self.queue.reader.is_pending()
            {
                return;
            }
        }
    }

    /// Takes in the next report; false if there is none.
    fn absorb_next<H: Host>(&mut self, session: &mut Session<'_, H>) -> bool {
        match session.next_notification(&mut self.queue) {
            Ok(Some(notification)) if notification.is_fast() => {
                self.account
                    .apply_credit(Credit::from_word(notification.word));
            }
            Ok(None) => return false,
            // After an overrun too: what was lost may have been that there is news.
            Ok(Some(_)) | Err(_) => self.poll_extent(),
        }
        true
    }

    /// Goes over to the extent that the receiver announced, if that was not done before.
    fn poll_extent(&mut self) {
        let mut metadata = [0; USER_METADATA_BYTES];
        let Some(entry) = self.slot.metadata().and_then(|area| area.entry(0)) else {
            return;
        };
        let length = entry.metadata(&mut metadata);
        let Some(note) = ExtentNote::from_bytes(&metadata[..length]) else {
            return;
        };
        if !self.account.go_over(&note) {
            return;
        }
        // A receiver that got all of a staged record may be quicker than our look at it.
        self.is_over |= !self.is_all_queued();
        self.piece_bytes = note.piece_bytes as usize;
        // Packs were made for those of the seed, so no receiver's are smaller.
        self.is_over |= self.piece_bytes < self.pack_bytes;
        let ticket = Ticket {
            slot: note.slot,
            metadata_index: 0,
            key: note.key,
            length_bytes: u64::from(note.pieces) * self.piece_bytes as u64,
            ..*self.target.ticket()
        };
        match self.target.with_ticket(ticket) {
            Some(target) => self.target = target,
            None => self.is_over = true,
        }
    }

    /// Waits until the pieces for a record can be filled, one after the other, without a wrap.
    pub(super) fn await_pieces<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        record_bytes: usize,
        waiting: &mut Waiting,
    ) -> Result<(), SendError> {
        let mut looks = 0_u32;
        let mut asked_at = None;
        let may_fill = session.wait_within(waiting, |session, _| {
            let may_fill = self.look_for_pieces(session, record_bytes)?;
            looks += 1;
            if !may_fill && looks >= LOOKS_BEFORE_ASKING {
                self.ask_once(session, record_bytes, &mut asked_at)?;
            }
            Ok::<_, SendError>(may_fill.then_some(()))
        })?;
        if may_fill.is_none() {
            self.ask_once(session, record_bytes, &mut asked_at)?;
            return Err(self.would_block());
        }
        Ok(())
    }

    /// The step of that wait.
    fn look_for_pieces<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        record_bytes: usize,
    ) -> Result<bool, SendError> {
        loop {
            self.check(session)?;
            let needed = self.pieces_for(record_bytes);
            if self.may_fill() {
                let before_end = self.account.pieces - u64::from(self.account.next_index);
                if needed > self.account.pieces {
                    self.ask(session, record_bytes)?;
                } else if needed <= before_end && self.account.free() >= needed {
                    return Ok(true);
                } else if needed > before_end && self.account.free() > 0 {
                    match self.send_piece(session, Kind::Skip, 0, &[], Wait::Poll) {
                        Ok(()) => continue,
                        Err(error) => no_room(error)?,
                    }
                }
            }
            // It may have closed the stream before the greeting came.
            if session.is_closed_there(&self.control) {
                self.account.closed = true;
                return Err(SendError::ClosedByReceiver);
            }
            return Ok(false);
        }
    }

    /// True if the next piece is this sender's to fill.
    fn may_fill(&self) -> bool {
        !self.is_staging() && !self.account.is_held()
    }

    /// Asks the receiver for what is lacking: credit may have been held back, or all memory be in
    /// the application's hands. Once is enough in one place, but what was asked elsewhere does not
    /// count here.
    fn ask_once<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        record_bytes: usize,
        asked_at: &mut Option<StreamPosition>,
    ) -> Result<(), SendError> {
        let place = self.account.place();
        if self.may_fill() && *asked_at != Some(place) && self.ask(session, record_bytes)? {
            *asked_at = Some(place);
        }
        Ok(())
    }

    /// Pieces that a record takes.
    fn pieces_for(&self, record_bytes: usize) -> u64 {
        (record_bytes.div_ceil(self.piece_bytes) as u64).max(1)
    }

    /// Tells the receiver that we cannot go on; false if that has to wait.
    fn ask<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        record_bytes: usize,
    ) -> Result<bool, SendError> {
        let needed = self.pieces_for(record_bytes);
        if needed > self.account.pieces && self.account.take_refusal(record_bytes as u64) {
            return Err(SendError::RecordTooLarge {
                length_bytes: record_bytes as u64,
                limit_bytes: self.account.pieces * self.piece_bytes as u64,
            });
        }
        let Some(grow_request) = self.account.grow_request(record_bytes as u64) else {
            return Ok(false);
        };
        match self.send_control(session, ENLARGE, &grow_request.to_bytes(), Wait::Poll) {
            Ok(_) => {
                self.account.grow_requested(grow_request, needed);
                Ok(true)
            }
            Err(error) => no_room(error).map(|()| false),
        }
    }
}
