//! The receiving end in the overflow log ([`crate::overflow`]).

use core::mem::{replace, swap};

use super::{Consumer, Corrupt};
use crate::cells::{Cell, CellMemory, FLAG_MASK, STEP_BYTES};
use crate::overflow::{END, ESCAPE, Filling, LogGeometry, LogNews, LogReader};

impl<M: CellMemory> Consumer<M> {
    /// Follows its sender into the log of its memory. Nothing was taken yet.
    #[must_use]
    pub fn with_log(mut self, geometry: LogGeometry) -> Self {
        self.log = Some(Box::new(LogReader::new(geometry)));
        self
    }

    /// Whether the next cell comes from the log.
    #[inline]
    pub fn is_in_log(&self) -> bool {
        self.is_in_log
    }

    /// If the next cell, of which this is a copy, leads to the log or back: goes there. In it, true
    /// as for [`Consumer::done`]. An episode without a cell breaks the rules, so that nobody keeps us
    /// here.
    #[cold]
    pub fn follow(&mut self, cell: &Cell) -> Option<Result<bool, Corrupt>> {
        let [first, place_bytes, rest @ ..] = cell;
        if rest.iter().any(|word| *word != 0) {
            return None;
        }
        match (first & !FLAG_MASK, place_bytes) {
            (ESCAPE, _) if !self.is_in_log => Some(self.escape(*place_bytes)),
            (END, 0) if self.is_in_log => Some(self.end_episode()),
            _ => None,
        }
    }

    fn escape(&mut self, place_bytes: u64) -> Result<bool, Corrupt> {
        let log = self.log.as_mut().ok_or(Corrupt)?;
        let at_bytes = log.elsewhere.at_bytes;
        let lap_bytes = log.geometry.next_lap(at_bytes);
        if ![at_bytes, lap_bytes].contains(&place_bytes) {
            return Err(Corrupt);
        }
        if place_bytes != at_bytes {
            log.given_back_bytes = place_bytes;
        }
        log.begin_bytes = place_bytes;
        self.at_bytes += STEP_BYTES;
        Ok(self.change_places(place_bytes))
    }

    fn end_episode(&mut self) -> Result<bool, Corrupt> {
        let log = self.log.as_mut().ok_or(Corrupt)?;
        if self.at_bytes == log.begin_bytes {
            return Err(Corrupt);
        }
        let ring_at_bytes = log.elsewhere.at_bytes;
        self.at_bytes += STEP_BYTES;
        self.give_back_log(true);
        Ok(self.change_places(ring_at_bytes))
    }

    /// The ring and the log change places; the next cell is at that place.
    fn change_places(&mut self, at_bytes: u64) -> bool {
        let taken = self.taken();
        if let Some(log) = &mut self.log {
            log.elsewhere.at_bytes = replace(&mut self.at_bytes, at_bytes);
            swap(&mut self.shift, &mut log.elsewhere.shift);
        }
        self.memory.change_places();
        self.is_in_log = !self.is_in_log;
        self.elsewhere = taken.wrapping_sub(at_bytes / STEP_BYTES);
        self.ahead_bytes = 0;
        self.expect(at_bytes / STEP_BYTES);
        self.give_back()
    }

    /// The lines of the log that a message takes whose cell is next and says that so many bytes of
    /// payload lie at that place.
    pub fn lines_in_log(&self, offset: u32, payload_bytes: usize) -> Result<u64, Corrupt> {
        let geometry = self.log.as_ref().ok_or(Corrupt)?.geometry;
        let places = geometry.payload(self.at_bytes, payload_bytes as u64);
        match places.start % geometry.bytes() == u64::from(offset) {
            true => Ok((places.end - self.at_bytes) / STEP_BYTES),
            false => Err(Corrupt),
        }
    }

    /// The message in the log that was last shown, of so many lines, is done with. As
    /// [`Consumer::done`].
    #[must_use]
    pub fn done_in_log(&mut self, lines: u64) -> bool {
        self.at_bytes += lines * STEP_BYTES;
        self.is_blind() && self.step()
    }

    /// Bytes that wait in the log, as its sender says: more than all of it is nothing that a
    /// correct one says.
    fn waiting_in_log(&self, geometry: LogGeometry) -> u64 {
        let cells = self.memory.load_sent().saturating_sub(self.taken());
        cells.saturating_mul(STEP_BYTES).min(geometry.bytes())
    }

    /// Credit is returned: gives pages back that were taken, and looks how much waits.
    #[cold]
    #[inline(never)]
    pub(super) fn go_on_in_log(&mut self) {
        self.give_back_log(false);
        self.note_waiting();
    }

    fn note_waiting(&mut self) {
        let Some(geometry) = self.log.as_ref().map(|log| log.geometry) else {
            return;
        };
        let waiting_bytes = self.waiting_in_log(geometry);
        if let Some(log) = &mut self.log
            && log.filling() == Filling::Little
            && waiting_bytes >= geometry.bytes() / 2
        {
            log.set_filling(Filling::Half(waiting_bytes));
        }
    }

    /// News of the log that the program has not heard: that half of it waited when this end came to
    /// it, and that all was taken then. A peer that lies invents that, as often as cells of its log
    /// are taken at most, and nothing else.
    pub fn log_news(&mut self) -> Option<LogNews> {
        let filling = self.log.as_ref()?.filling();
        if filling == Filling::Little {
            return None;
        }
        let geometry = self.log.as_ref()?.geometry;
        // Its sender's word alone could keep the program looking for ever.
        let is_drained =
            !self.is_pending() || (!self.is_in_log && self.waiting_in_log(geometry) == 0);
        let log = self.log.as_mut()?;
        match filling {
            Filling::Half(waiting_bytes) => {
                log.set_filling(Filling::Told);
                let log_bytes = geometry.bytes();
                Some(LogNews::HalfFull {
                    waiting_bytes,
                    log_bytes,
                })
            }
            Filling::Told if is_drained => {
                log.set_filling(Filling::Little);
                Some(LogNews::Drained)
            }
            _ => None,
        }
    }

    /// Gives back pages that were taken. A sender that leads beyond all laps breaks the rules.
    pub(super) fn give_back_log(&mut self, is_all_taken: bool) {
        let Some(log) = &mut self.log else {
            return;
        };
        if log.geometry.is_beyond(self.at_bytes) {
            return self.close();
        }
        for part in log.due(self.at_bytes, is_all_taken).into_iter().flatten() {
            self.memory.give_back_log(part);
        }
    }
}
