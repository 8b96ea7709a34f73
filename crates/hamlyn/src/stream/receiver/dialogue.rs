//! What a stream's receiver and its sender say to each other beside the records: who the sender
//! is, where it ends, what was released, and whether there is more memory.

use hamlyn_engine::limits::{FAST_INDEX, USER_METADATA_BYTES};
use hamlyn_engine::memory::LinkId;
use hamlyn_host::Host;

use super::{Receiver, malformed};
use crate::error::ReceiveError;
use crate::manager::Arrival;
use crate::message::{Message, Target};
use crate::session::Session;
use crate::stream::extent::Extent;
use crate::stream::options::StreamOptions;
use crate::stream::wire::{
    CLOSE, Credit, ENLARGE, EXTENT_MASK, GIVEN_UP, GrowRequest, HELLO, PIECES_MAX, StreamPosition,
};
use crate::ticket::{TICKET_BYTES, Ticket};
use crate::wait::Wait;

impl Receiver {
    /// Takes in what the sender says beside its records, in whatever order it comes.
    #[inline(never)]
    pub(super) fn take_control<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        arrival: Arrival,
    ) -> Result<(), ReceiveError> {
        let mut metadata = [0; USER_METADATA_BYTES];
        let length = self.control.heard(arrival.metadata_index, &mut metadata);
        let heard = &metadata[..length];
        match arrival.metadata_index {
            HELLO => self.greet(session, arrival.from, heard),
            CLOSE => self.end(heard),
            ENLARGE => {
                self.grow_request = GrowRequest::from_bytes(heard);
                if self.grow_request.is_none() {
                    return self.fail("an invalid grow request");
                }
                self.answer_grow_request(session)
            }
            _ => Ok(()),
        }
    }

    /// The sender presents itself.
    fn greet<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        from: LinkId,
        heard: &[u8],
    ) -> Result<(), ReceiveError> {
        let ticket = heard
            .get(..TICKET_BYTES)
            .and_then(|bytes| Ticket::of_slot(bytes).ok())
            .filter(|ticket| ticket.metadata_index == FAST_INDEX);
        let (Some(ticket), None) = (ticket, self.sender()) else {
            return self.fail("a sender that does not say who it is");
        };
        // Credit goes back over the link by which the greeting came, and only if the ticket is of
        // the peer there: otherwise the sender could have us write to somebody else in our name.
        self.greeted_by = Some(from);
        match session.led_to(from, &ticket.destination) {
            Some(true) => self.credit = Some(Target::new(from, ticket)),
            Some(false) => return self.fail("a sender that says it is another"),
            None => self.gone = session.recent_loss(&ticket.destination),
        }
        if self.sender().is_none() {
            return self.fail("a sender that is not linked to us");
        }
        self.answer_grow_request(session)
    }

    /// The sender says where it ended.
    fn end(&mut self, heard: &[u8]) -> Result<(), ReceiveError> {
        let newest = self.newest();
        let mut place = StreamPosition::from_bytes(heard);
        if let Some(place) = &mut place {
            self.is_given_up = place.extent & GIVEN_UP != 0;
            place.extent &= !GIVEN_UP;
        }
        let end = match place {
            Some(StreamPosition { extent, position }) if extent == newest => Some(position),
            // It closed before it heard of the newest extent, which stays empty.
            Some(StreamPosition { extent, position })
                if extent.checked_add(1) == Some(newest) && self.ended == Some(position) =>
            {
                Some(0)
            }
            _ => None,
        };
        match (end, self.extents.last_mut()) {
            (Some(position), Some(extent)) if extent.may_end_at(position) => {
                extent.end = Some(position);
                self.closed = true;
                Ok(())
            }
            _ => self.fail("an end at an impossible position"),
        }
    }

    /// Answers the sender's grow request, if there is one and it is known who made it.
    pub(super) fn answer_grow_request<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<(), ReceiveError> {
        // It may have overtaken the greeting.
        if self.credit.is_none() && self.gone.is_none() {
            return Ok(());
        }
        let Some(GrowRequest {
            place,
            record_bytes,
        }) = self.grow_request.take()
        else {
            return Ok(());
        };
        // Nobody waits for an answer.
        if self.closed {
            return Ok(());
        }
        let newest = self.newest();
        let Some(extent) = self.extents.last() else {
            return Ok(());
        };
        let mut denied = false;
        let request = GrowRequest {
            place,
            record_bytes,
        };
        // A grow request made in an earlier extent was granted before it came, and is only
        // answered.
        if place.extent == newest && extent.may_end_at(place.position) {
            if record_bytes > extent.length_bytes() {
                let is_last_try = self.is_drained_at(place.position);
                denied = !self.enlarge(session, place.position, record_bytes);
                if denied && !is_last_try && record_bytes <= self.limit_bytes() {
                    // Records that are still held are in its way: it is answered when they are
                    // released.
                    self.grow_request = Some(request);
                    return Ok(());
                }
            } else if extent.is_held_whole() {
                denied = !self.enlarge(session, place.position, 1);
            } else {
                // It fits; the sender only waits for credit.
                self.needs_credit_at = Some(place.position);
            }
        } else if place.extent >= newest {
            return self.fail("a grow request at an impossible position");
        }
        // Before it can be told of the answer: it may ask again at once.
        self.control.arm(ENLARGE);
        self.answers = self.answers.wrapping_add(1);
        self.denied = denied;
        self.flush_credit(session);
        Ok(())
    }

    pub(super) fn fail(&mut self, what: &'static str) -> Result<(), ReceiveError> {
        self.broken = Some(what);
        Err(malformed(what))
    }

    /// Bytes that the stream may have, in whole pieces; also the longest record.
    pub(super) fn limit_bytes(&self) -> u64 {
        let piece_bytes = u64::from(self.options.piece_bytes);
        self.options.limit_bytes.next_multiple_of(piece_bytes)
    }

    /// Opens a larger extent, where the stream goes on after `position`, with room for a record of
    /// so many bytes; false if there can be none. The sender is still to be told.
    pub(super) fn enlarge<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        position: u64,
        record_bytes: u64,
    ) -> bool {
        let replaces = self.is_drained_at(position);
        let used = if replaces { 0 } else { self.memory_bytes() };
        let free_bytes = self.limit_bytes().saturating_sub(used);
        let present_bytes = self.extents.last().map_or(0, Extent::length_bytes);
        // The session's queue needs an entry for each piece: where it is short, pieces are larger.
        let most = (session.core.room() as u64).min(u64::from(PIECES_MAX));
        let mut piece_bytes = u64::from(self.options.piece_bytes);
        while record_bytes.div_ceil(piece_bytes) > most && piece_bytes < record_bytes {
            piece_bytes *= 2;
        }
        let needed = record_bytes.div_ceil(piece_bytes).max(1);
        // Larger pieces may end behind the limit, but within a piece of it.
        let left = match replaces {
            true => free_bytes.div_ceil(piece_bytes),
            false => free_bytes / piece_bytes,
        };
        let wanted = needed.max(present_bytes * 2 / piece_bytes);
        let wanted = wanted.min(left).min(most);
        let opened = if wanted >= needed {
            let options = StreamOptions {
                pieces: wanted as u32,
                piece_bytes: piece_bytes as u32,
                ..self.options
            };
            self.open_extent(session, &options)
        } else {
            None
        };
        let Some(extent) = opened else {
            self.needs_credit_at = Some(position);
            self.refused = Some(position);
            return false;
        };
        if let Some(old) = self.extents.last_mut() {
            old.end = Some(position);
        }
        self.ended = Some(position);
        self.extents.push(extent);
        self.needs_credit_at = None;
        self.refused = None;
        self.denied = false;
        if replaces {
            self.move_on();
            self.drop_first_extent(session);
        }
        true
    }

    /// Whether the stream's only extent ends there and nothing of it is held, so that another
    /// can take its place within the limit.
    pub(super) fn is_drained_at(&self, position: u64) -> bool {
        self.extents.len() == 1
            && self.packed.is_none()
            && self
                .extents
                .last()
                .is_some_and(|extent| extent.released == position)
    }

    /// Tells the sender of a new extent and of answers, if there is room; otherwise later.
    pub(super) fn flush_credit<H: Host>(&mut self, session: &mut Session<'_, H>) {
        if self.announced != self.newest() {
            self.announce(session);
        } else if self.answers_told != self.answers {
            self.report_credit(session);
        }
    }

    pub(super) fn open_extent<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        options: &StreamOptions,
    ) -> Option<Extent> {
        let entries = options.pieces as usize;
        session.core.reserve(self.class, entries).ok()?;
        let opened = Extent::open(session, self.class, options);
        if opened.is_err() {
            session.core.unreserve(self.class, entries);
        }
        opened.ok()
    }

    fn announce<H: Host>(&mut self, session: &mut Session<'_, H>) {
        let (Some(credit), Some(extent)) = (self.credit, self.extents.last()) else {
            return;
        };
        let (newest, answers) = (self.newest(), self.answers);
        let note = extent.note(newest, answers).to_bytes();
        // The sender's slot has one metadata entry for such notes.
        let mut target = credit;
        target.set_metadata_index(0);
        let message = Message::new(&[]).metadata(&note);
        if session.send(&target, &message, Wait::Poll).is_ok() {
            self.announced = newest;
            self.answers_told = answers;
        }
    }

    /// The credit of the extent that the sender fills. All that it counts may be filled again.
    fn credit_now(&mut self) -> Credit {
        if let Some(extent) = self.extents.last_mut() {
            extent.open_released();
        }
        self.state()
    }

    /// How things stand.
    pub(super) fn state(&self) -> Credit {
        Credit {
            released: self.extents.last().map_or(0, |extent| extent.released) as u32,
            extent: self.newest() as u16 & EXTENT_MASK,
            answers: self.answers,
            denied: self.denied,
            closed: false,
        }
    }

    /// Reports what was released, many pieces at a time, or at once if the sender said that it
    /// waits. Held back while the sender is being moved to another extent: it must not go on in
    /// this one.
    pub(super) fn report<H: Host>(&mut self, session: &mut Session<'_, H>) {
        if self.delivering != self.newest() {
            return;
        }
        let Some(extent) = self.extents.last() else {
            return;
        };
        if self
            .needs_credit_at
            .is_some_and(|position| extent.has_come(position))
        {
            self.needs_credit_at = None;
        }
        if self.is_report_due() {
            self.report_credit(session);
        }
    }

    /// True if enough was released since the last report.
    fn is_report_due(&self) -> bool {
        self.extents.last().is_some_and(|extent| {
            let owed = extent.released.saturating_sub(self.reported);
            owed >= self.report_after(extent)
        })
    }

    /// True if there was no room to tell the sender all that it is to know.
    pub(super) fn owes_credit(&self) -> bool {
        self.credit.is_some()
            && (self.announced != self.newest()
                || self.answers_told != self.answers
                || self.delivering == self.newest() && self.is_report_due())
    }

    /// Tells the sender how things stand.
    #[inline]
    fn report_credit<H: Host>(&mut self, session: &mut Session<'_, H>) {
        let credit = self.credit_now();
        if self.send_credit(session, credit) {
            self.reported = self.extents.last().map_or(0, |extent| extent.released);
            self.answers_told = credit.answers;
        }
    }

    /// How many pieces are released before that is reported.
    pub(super) fn report_after(&self, extent: &Extent) -> u64 {
        match self.needs_credit_at {
            Some(_) => 1,
            None => extent.report_after(),
        }
    }

    fn send_credit<H: Host>(&mut self, session: &mut Session<'_, H>, credit: Credit) -> bool {
        let Some(target) = self.credit else {
            return false;
        };
        // Without data it is a short packet, which takes the fast path at both ends.
        let message = Message::new(&[]).word(credit.to_word());
        session.send(&target, &message, Wait::Poll).is_ok()
    }
}
