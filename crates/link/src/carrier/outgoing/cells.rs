//! Packets of cells alone, and messages over the line.

use std::sync::atomic::Ordering;

use hamlyn_engine::limits::{HANDLERS_MAX, SHORT_BYTES_WITH_WORD, SHORT_WORDS};
use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::operation::ShortRequest;
use hamlyn_engine::packet::{PortAddress, Short, short_words};
use hamlyn_ring::area::Area;
use hamlyn_ring::cells::Cell;

use super::{CELLS_IF_BEHIND, LINE_PAUSE_MAX_CELLS, LINE_PAUSE_MIN_CELLS, Outgoing, unsent};
use crate::carrier::gathering::{GATHERED_BYTES_MAX, gather_bytes, impossible};
use crate::cell::{self};
use crate::message_cell::{self, Abbreviations, MessageHead};
use crate::short_cell;

impl Outgoing {
    /// Sends a short packet: over the line if that is due and we may write there, else in a cell of
    /// the ring.
    #[inline(always)]
    pub(crate) fn try_send_short<M>(&mut self, short: M) -> Result<(), Unsent>
    where
        Short: From<M>,
    {
        let room = match self.is_line_due() {
            true => None,
            false => Some(self.producer.room().map_err(unsent)?),
        };
        let cell = short_cell::encode_short(&Short::from(short));
        match room {
            Some(room) => room.publish(cell),
            None => self.send_over_line(cell)?,
        }
        Ok(())
    }

    /// Sends a short packet in several cells, if its data, which do not fit one, fit them.
    #[inline(always)]
    pub(crate) fn try_send_in_cells(&mut self, short: &Short, data: &[u8]) -> bool {
        let length = data.len() as u64;
        if length <= SHORT_BYTES_WITH_WORD as u64 || length > self.cells_bytes_max {
            return false;
        }
        let cells = short_cell::cells_with_word(length);
        if self.is_bulk(cells) {
            return false;
        }
        let head = short_cell::encode_first(short);
        self.send_bytes_in_cells(cells, SHORT_BYTES_WITH_WORD, data, |_| head)
            .is_ok()
    }

    /// Sends a message to a port in cells, if its abbreviation stands for that and its data fit.
    #[inline(always)]
    pub(crate) fn try_send_message(&mut self, to: &PortAddress, handler: u16, data: &[u8]) -> bool {
        if !self.abbreviations.has(to) || handler >= HANDLERS_MAX {
            return false;
        }
        let head = MessageHead {
            abbreviation: Abbreviations::number(to),
            handler,
            length_bytes: data.len() as u16,
        };
        if data.len() > message_cell::FIRST_BYTES {
            return self.send_message_in_cells(head, data);
        }
        let room = match self.is_line_due() {
            true => None,
            false => match self.producer.room() {
                Ok(room) => Some(room),
                Err(_) => return false,
            },
        };
        match room {
            Some(room) => room.publish_bytes(head.first_word(), data),
            None => return self.send_over_line(head.encode(data)).is_ok(),
        }
        true
    }

    /// The same of one that takes several cells.
    #[inline(never)]
    fn send_message_in_cells(&mut self, head: MessageHead, data: &[u8]) -> bool {
        let length = data.len() as u64;
        let cells = message_cell::cells_of(length);
        if length > message_cell::bytes_in(self.cells_max)
            || length > self.payload_max as u64
            || self.is_bulk(cells)
        {
            return false;
        }
        let Ok(room) = self.producer.room_for(cells) else {
            return false;
        };
        room.publish_bytes(head.first_word(), data);
        self.continued += cells - 1;
        true
    }

    /// Sends a request over the line, if that is due and we may write there; whether it was sent.
    #[inline(always)]
    pub(crate) fn try_send_request(&mut self, request: &ShortRequest) -> bool {
        self.is_line_due() && self.send_over_line(cell::encode_request(request)).is_ok()
    }

    /// Whether the next packet whose data fit its cell goes over the line.
    #[inline(always)]
    pub(super) fn is_line_due(&mut self) -> bool {
        if self.producer.sent() >= self.line_due {
            if self.line.is_ours(self.line_taken.load(Ordering::Acquire)) {
                return true;
            }
            if self.line_pauses {
                self.postpone_line();
            }
        }
        false
    }

    #[inline(always)]
    pub(super) fn send_over_line(&mut self, cell: Cell) -> Result<(), Unsent> {
        if self.producer.is_closed() {
            return Err(Unsent::Gone);
        }
        let cells_sent = self.producer.sent();
        if self.line_cells == cells_sent {
            // Nothing went between the last one and its answer.
            self.line_pause_cells = LINE_PAUSE_MIN_CELLS;
        }
        self.line_cells = cells_sent;
        self.line.publish(cell, cells_sent);
        self.producer.next_epoch();
        Ok(())
    }

    /// Two packets go without an answer in between: this is no traffic for the line, so it is tried
    /// again only after a while.
    #[cold]
    fn postpone_line(&mut self) {
        self.line_due = self.producer.sent() + self.line_pause_cells;
        self.line_pause_cells = (2 * self.line_pause_cells).min(LINE_PAUSE_MAX_CELLS);
    }

    /// Sends short packets as long as there are some, and room; how many.
    #[inline(always)]
    pub(crate) fn try_send_shorts(&mut self, mut next: impl FnMut() -> Option<Short>) -> usize {
        let mut count = 0;
        while let Ok(room) = self.producer.room()
            && let Some(short) = next()
        {
            room.publish(short_cell::encode_short(&short));
            count += 1;
        }
        count
    }

    /// True if data that would take so many cells are better in the payload arena: a receiver that
    /// is behind fetches them from there sooner.
    #[inline(always)]
    pub(super) fn is_bulk(&self, cells: u64) -> bool {
        cells > CELLS_IF_BEHIND && self.producer.is_behind()
    }

    /// Sends a packet in several cells: `first_bytes` of its data in the first one, which `head`
    /// makes of the first words.
    #[inline(never)]
    pub(super) fn send_in_cells(
        &mut self,
        cells: u64,
        first_bytes: usize,
        parts: &[Part<'_, Area>],
        head: impl FnOnce([u64; SHORT_WORDS]) -> Cell,
    ) -> Result<(), Unsent> {
        if let [Part::Bytes(data)] = *parts {
            return self.send_bytes_in_cells(cells, first_bytes, data, head);
        }
        let mut gathered = [0; GATHERED_BYTES_MAX];
        let data = gather_bytes(parts, &mut gathered).map_err(impossible)?;
        self.send_bytes_in_cells(cells, first_bytes, data, head)
    }

    #[inline(always)]
    fn send_bytes_in_cells(
        &mut self,
        cells: u64,
        first_bytes: usize,
        data: &[u8],
        head: impl FnOnce([u64; SHORT_WORDS]) -> Cell,
    ) -> Result<(), Unsent> {
        let room = self.producer.room_for(cells).map_err(unsent)?;
        let first = data.get(..first_bytes).and_then(short_words);
        let head = head(first.unwrap_or_default());
        room.publish_all(head, data.get(first_bytes..).unwrap_or_default());
        self.continued += cells - 1;
        Ok(())
    }
}
