//! The sending end in the overflow log ([`crate::overflow`]).

use core::mem::swap;
use core::ops::Range;

use super::{NoRoom, Producer, Room};
use crate::cells::{Cell, CellMemory, EPOCH, FLAG_MASK, STEP_BYTES, flag_of};
use crate::overflow::{END, ESCAPE, LogOptions, LogUse, LogWriter, PAUSE_NS, Wanted};
use crate::payload_arena::{Allocation, PayloadArena};
use crate::shared::{LINE_WORDS, PAGE_BYTES};

impl<M: CellMemory> Room<'_, M> {
    /// Whether it is in the log.
    pub fn is_in_log(&self) -> bool {
        self.producer.is_in_log
    }
}

/// No consumer's count: what is known of it when there was room the last time.
const NEVER_FULL: u64 = u64::MAX;

impl<M: CellMemory> Producer<M> {
    /// Goes on in the log of its memory when the ring is full. Nothing was sent yet.
    #[must_use]
    pub fn with_log(mut self, options: LogOptions) -> Self {
        let longest = self.arena.longest();
        let log = LogWriter::new(options, PayloadArena::put_aside(longest));
        self.log = Some(Box::new(log));
        self
    }

    /// Cells of the ring that messages use: all, but for one that the escape needs.
    pub(super) fn cells_in_use(&self) -> u64 {
        (1 << self.shift) - u64::from(self.log.is_some())
    }

    /// How many cells of the ring were returned.
    pub(super) fn returned(&self) -> u64 {
        match &self.log {
            // Those of the log were counted in between; or are returned, but not those after it.
            Some(log) => self
                .known
                .saturating_sub(self.elsewhere)
                .max(log.ring_returned),
            None => self.known,
        }
    }

    /// How many of the cells that were sent are no messages, nor continue one: those that lead to
    /// the log and back, and payload in the log.
    pub fn beside(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.beside)
    }

    /// Whether the next cell goes to the log.
    pub fn is_in_log(&self) -> bool {
        self.is_in_log
    }

    /// Until when a full ring is waited for, if the log comes next; or more memory for the log.
    pub fn overflow_due_ns(&self) -> Option<u64> {
        self.log.as_ref()?.due_ns
    }

    /// Whether it is time for the log, or to ask for more of it.
    pub(super) fn is_patience_over(&self) -> bool {
        self.overflow_due_ns()
            .is_some_and(|due_ns| self.memory.now_ns() >= due_ns)
    }

    /// The ring has no room for that: is there some in the log?
    #[cold]
    pub(super) fn overflow(&mut self, wanted: Wanted) -> Result<(), NoRoom> {
        let (known, known_when_full) = (self.known, self.known_when_full);
        self.known_when_full = known;
        let Some(log) = &mut self.log else {
            return Err(NoRoom::Full);
        };
        let now_ns = self.memory.now_ns();
        if log.due_ns.is_none() || known != known_when_full {
            log.due_ns = Some(log.patience.begin(known, now_ns));
        }
        if log.due_ns.is_some_and(|due_ns| now_ns < due_ns) {
            return Err(NoRoom::Full);
        }
        if !self.escape(wanted) {
            if let Some(log) = &mut self.log {
                log.due_ns = Some(now_ns.saturating_add(PAUSE_NS));
            }
            return Err(NoRoom::Full);
        }
        self.decide_in_log(wanted.cells())
    }

    /// Begins an episode, if there is room and memory for what is wanted.
    fn escape(&mut self, wanted: Wanted) -> bool {
        let Some(log) = &mut self.log else {
            return false;
        };
        let geometry = log.options.geometry;
        let mut begin_bytes = log.elsewhere.at_bytes;
        log.drain(self.known);
        if self.known >= log.ended {
            let end_bytes = begin_bytes;
            begin_bytes = geometry.next_lap(end_bytes);
            if begin_bytes != end_bytes {
                // The page of the last end, which its receiver has left.
                let page_end = end_bytes.next_multiple_of(PAGE_BYTES as u64);
                for part in geometry.cold(page_end - PAGE_BYTES as u64..page_end) {
                    self.memory.give_back_log(part);
                }
                if log.forgets(log.begin_bytes, begin_bytes) {
                    self.memory.give_back_log(0..geometry.bytes());
                    log.warm_bytes = 0;
                }
                log.reserved_bytes = begin_bytes + log.warm_bytes;
            }
            log.drained_bytes = begin_bytes;
        }
        let wanted_end_bytes = match wanted {
            Wanted::Cells(cells) => begin_bytes + cells * STEP_BYTES,
            Wanted::Payload(bytes) => geometry.payload(begin_bytes, bytes).end,
        };
        // One more line for the end.
        if !self.has_log_room(wanted_end_bytes + STEP_BYTES) {
            return false;
        }
        // Before its receiver can look there.
        self.memory.change_places();
        self.memory.clear(begin_bytes);
        self.memory.change_places();
        let mut cell = [0; LINE_WORDS];
        cell[0] = ESCAPE | flag_of(self.at_bytes / STEP_BYTES, self.shift) | self.flag & EPOCH;
        cell[1] = begin_bytes;
        self.memory.store(self.at_bytes, &cell);
        self.at_bytes += STEP_BYTES;
        let sent = self.sent();
        self.change_places(begin_bytes);
        if let Some(log) = &mut self.log {
            (log.escaped, log.begin_bytes) = (sent, begin_bytes);
            // Patience is over for the first message.
            (log.pause, log.eased_bytes) = (None, begin_bytes + STEP_BYTES);
            log.ring_returned = log.elsewhere.at_bytes / STEP_BYTES;
            log.beside += 1;
            log.used.episodes += 1;
        }
        self.elsewhere = sent.wrapping_sub(begin_bytes / STEP_BYTES);
        // There is room, though no credit came.
        self.known_when_full = NEVER_FULL;
        true
    }

    /// The ring and the log change places; the next cell is at that place.
    fn change_places(&mut self, at_bytes: u64) {
        let Some(log) = &mut self.log else {
            return;
        };
        log.elsewhere.at_bytes = core::mem::replace(&mut self.at_bytes, at_bytes);
        swap(&mut self.shift, &mut log.elsewhere.shift);
        swap(&mut self.arena, &mut log.arena);
        self.memory.change_places();
        self.is_in_log = !self.is_in_log;
        self.limit_bytes = at_bytes;
    }

    /// After this there is room for so many cells, or an error. The episode ends if the receiver
    /// has come to the log.
    pub(super) fn decide_in_log(&mut self, wanted: u64) -> Result<(), NoRoom> {
        self.collect()?;
        if self.end_episode() {
            return self.decide(wanted);
        }
        if self.hold_back() {
            return Err(NoRoom::Full);
        }
        // One more line for the end.
        if !self.has_log_room(self.at_bytes + (wanted + 1) * STEP_BYTES) {
            self.known_when_full = self.known;
            return Err(NoRoom::Full);
        }
        if let Some(log) = &self.log {
            self.limit_bytes = log.limit_bytes(self.at_bytes);
            self.flag = flag_of(self.at_bytes / STEP_BYTES, self.shift) | self.flag & EPOCH;
        }
        // The lines to which the receiver comes before the next look; the first is clear.
        let last_bytes = self.limit_bytes.max(self.at_bytes + wanted * STEP_BYTES);
        let mut line_bytes = self.at_bytes;
        while line_bytes < last_bytes {
            line_bytes += STEP_BYTES;
            self.memory.clear(line_bytes);
        }
        self.memory.store_sent(self.sent());
        Ok(())
    }

    /// Once three quarters of the log wait, the next message waits, too: until the receiver has
    /// taken something, or patience is over.
    fn hold_back(&mut self) -> bool {
        let (known, at_bytes) = (self.known, self.at_bytes);
        let Some(log) = &mut self.log else {
            return false;
        };
        if !log.is_nearly_full(at_bytes) {
            log.pause = None;
            return false;
        }
        let now_ns = self.memory.now_ns();
        let was_held_back = log.pause.is_some();
        let patience = &mut log.patience;
        let (due_ns, known_then) = *log
            .pause
            .get_or_insert_with(|| (patience.begin(known, now_ns), known));
        if now_ns < due_ns && known == known_then {
            log.due_ns = Some(due_ns);
            self.known_when_full = known;
            return true;
        }
        log.used.pauses += u64::from(was_held_back);
        (log.pause, log.due_ns) = (None, None);
        log.eased_bytes = at_bytes + STEP_BYTES;
        false
    }

    /// True if the next message waits so.
    pub(super) fn is_held_back(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.pause.is_some())
    }

    /// Messages are held back no longer, until so many bytes were sent as the ring has: for a
    /// sender that may not wait. False if none is held back.
    pub fn press(&mut self) -> bool {
        let at_bytes = self.at_bytes;
        let Some(log) = self.log.as_mut().filter(|log| log.pause.is_some()) else {
            return false;
        };
        (log.pause, log.due_ns) = (None, None);
        log.eased_bytes = at_bytes + (STEP_BYTES << log.elsewhere.shift);
        // There is room, though no credit came.
        self.known_when_full = NEVER_FULL;
        true
    }

    /// Ends the episode if the receiver has come to the log, and returns what was reserved and not
    /// used. True if it has ended.
    fn end_episode(&mut self) -> bool {
        let Some(log) = &mut self.log else {
            return false;
        };
        let (known, at_bytes, geometry) = (self.known, self.at_bytes, log.options.geometry);
        if !self.is_in_log || known < log.escaped {
            return false;
        }
        log.drain(known);
        if at_bytes == log.begin_bytes {
            return false;
        }
        log.note_waiting(at_bytes);
        log.used.spilled_bytes += at_bytes - log.begin_bytes;
        let mut cell = [0; LINE_WORDS];
        cell[0] = END | flag_of(at_bytes / STEP_BYTES, self.shift) | self.flag & EPOCH;
        self.memory.store(at_bytes, &cell);
        self.at_bytes += STEP_BYTES;
        let page_end = self.at_bytes.next_multiple_of(PAGE_BYTES as u64);
        if page_end < log.reserved_bytes {
            for part in geometry.cold(page_end..log.reserved_bytes) {
                self.memory.give_back_log(part);
            }
            log.reserved_bytes = page_end;
        }
        let sent = (self.at_bytes / STEP_BYTES).wrapping_add(self.elsewhere);
        self.memory.store_sent(sent);
        (log.ended, log.due_ns, log.pause) = (sent, None, None);
        log.beside += 1;
        let ring_at_bytes = log.elsewhere.at_bytes;
        self.change_places(ring_at_bytes);
        self.elsewhere = sent - ring_at_bytes / STEP_BYTES;
        true
    }

    /// How much the log was used, if there is one.
    pub fn log_use(&mut self) -> Option<LogUse> {
        let collected = self.log.is_some() && self.collect().is_ok();
        let (known, at_bytes, is_in_log) = (self.known, self.at_bytes, self.is_in_log);
        let log = self.log.as_mut().filter(|_| collected)?;
        let mut more_bytes = 0;
        if known >= log.ended && !is_in_log {
            log.note_drained();
        } else {
            let end_bytes = match is_in_log {
                true => at_bytes,
                false => log.elsewhere.at_bytes,
            };
            log.drain(known);
            log.note_waiting(end_bytes);
            if is_in_log {
                more_bytes = end_bytes - log.begin_bytes;
            }
        }
        Some(LogUse {
            spilled_bytes: log.used.spilled_bytes + more_bytes,
            ..log.used
        })
    }

    /// Ends an episode that nothing was sent in for a while, if the receiver has come to it.
    pub fn end_idle_episode(&mut self) {
        if self.is_in_log && self.collect().is_ok() {
            self.end_episode();
        }
    }

    /// Whether the log has room, and memory, up to that place.
    fn has_log_room(&mut self, end_bytes: u64) -> bool {
        let Some(log) = &mut self.log else {
            return false;
        };
        log.due_ns = None;
        if end_bytes > log.room_end_bytes() {
            return false;
        }
        while log.reserved_bytes < end_bytes {
            let places = log.next_reservation();
            let parts = log.options.geometry.parts(places.clone());
            let mut parts = parts.into_iter().filter(|part| !part.is_empty());
            if !parts.all(|part| self.memory.reserve_log(part)) {
                log.due_ns = Some(self.memory.now_ns().saturating_add(PAUSE_NS));
                return false;
            }
            log.reserved(&places);
        }
        true
    }

    /// The payload's places of a message whose cell comes next.
    fn payload_in_log(&self, payload_bytes: u64) -> Option<Range<u64>> {
        let geometry = self.log.as_ref()?.options.geometry;
        Some(geometry.payload(self.at_bytes, payload_bytes))
    }

    pub(super) fn place_in_log(&mut self, len: usize) -> Result<Allocation, NoRoom> {
        let Some(places) = self.payload_in_log(len as u64) else {
            return Err(NoRoom::Full);
        };
        // What comes next may not be this message, over whose payload it would lead the receiver; and
        // if there is no room now, credit is to be looked at.
        self.limit_bytes = self.at_bytes;
        if !self.has_log_room(places.end + STEP_BYTES) {
            self.known_when_full = self.known;
            return Err(NoRoom::Full);
        }
        let offset = places.start % (STEP_BYTES << self.shift);
        Ok(Allocation::at(
            offset as u32,
            (places.end - places.start) as u32,
        ))
    }

    /// Sends a cell with its payload after it, which is there already.
    #[cold]
    pub(super) fn publish_in_log(&mut self, mut cell: Cell, place: Allocation) {
        let Some(places) = self.payload_in_log(u64::from(place.len())) else {
            return;
        };
        cell[0] = cell[0] & !FLAG_MASK | self.flag;
        // Before its receiver can look there.
        self.memory.clear(places.end);
        self.memory.store(self.at_bytes, &cell);
        if let Some(log) = &mut self.log {
            log.beside += (places.end - self.at_bytes) / STEP_BYTES - 1;
        }
        self.at_bytes = places.end;
    }
}
