//! The receiving end of a direction: packets out of cells and payload arena.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hamlyn_engine::operation::ShortRequest;
use hamlyn_engine::packet::{Header, Kind};
use hamlyn_engine::port::InPlace;
use hamlyn_engine::refusal::Refusal;
use hamlyn_ring::cells::{CONTINUED_WORDS, Cell, FLAG_MASK, SharedCell, SharedCells, SharedLine};
use hamlyn_ring::consumer::Consumer;
use hamlyn_ring::duplex::DuplexReceiver;
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::overflow::{LogGeometry, LogNews};
use hamlyn_ring::reports::{Reporter, SharedReports};
use hamlyn_ring::shared::{Mapping, OutOfRange};
use hamlyn_ring::streaming::StreamingHeuristic;

use super::LinePart;
use super::carried::{Carried, copy_continued, copy_line};
use crate::cell::{self, Data, Metadata, Placement};
use crate::message_cell::{self, Abbreviations, MessageHead};
use crate::short_cell::{self, ShortInCell, ShortInCells};
use crate::{LinkFault, MessageInPlace, report};

/// A short packet in its cell, with a word of metadata or without.
pub type InCell<'a, const HAS_METADATA: bool> = ShortInCell<SharedCell<'a>, HAS_METADATA>;

/// A short packet in several cells.
pub type InCells<'a, const HAS_METADATA: bool> = ShortInCells<'a, SharedCell<'a>, HAS_METADATA>;

/// The overflow log of a direction, all of that memory.
pub(crate) type IncomingLog = (Arc<Mapping>, LogGeometry);

/// The receiving end.
pub(crate) struct Incoming {
    consumer: Consumer<SharedCells>,
    payload_max: usize,
    /// The most cells of a packet.
    cells_max: u32,
    /// The number of cells taken that continue others.
    continued: u64,
    abbreviations: Abbreviations,
    streaming: StreamingHeuristic,
    reporter: Reporter<SharedReports>,
    line: DuplexReceiver<SharedLine>,
    line_taken: Arc<AtomicU64>,
    /// Where the fast path looks: in the line, as the packet before was there, or in the ring.
    is_line_next: bool,
    /// How many cells and messages of the line had been taken when a fence was the last of them.
    fenced: u64,
}

/// A packet that is there: in the copy of its cell, and perhaps in the payload arena.
pub(crate) struct Found {
    header: Header,
    placement: Placement,
    /// How many cells it takes.
    cells: u64,
}

/// Why a cell is no packet like others.
pub(crate) enum Stopped {
    /// It is an abbreviated message to a port.
    Message(MessageHead),
    /// It was a fence, which is answered, or led to the overflow log or back; the next cell may be
    /// a packet.
    Passed {
        /// Whether the sender must be rung for.
        rings: bool,
    },
    /// The peer broke the rules.
    Fault(LinkFault),
}

impl From<LinkFault> for Stopped {
    fn from(fault: LinkFault) -> Self {
        Self::Fault(fault)
    }
}

impl Incoming {
    pub(crate) fn new(
        mapping: Arc<Mapping>,
        geometry: Geometry,
        payload_max: usize,
        line: LinePart,
        log: Option<IncomingLog>,
    ) -> Result<Self, OutOfRange> {
        let mut cells = SharedCells::new(&mapping, geometry, None)?;
        if let Some((log, _)) = &log {
            cells = cells.with_log(log)?;
        }
        let mut consumer = Consumer::new(cells, geometry);
        if let Some((_, geometry)) = log {
            consumer = consumer.with_log(geometry);
        }
        let reporter = Reporter::new(SharedReports::new(&mapping, geometry)?);
        Ok(Self {
            reporter,
            line: DuplexReceiver::new(line.line, line.order),
            line_taken: line.taken,
            is_line_next: false,
            fenced: u64::MAX,
            consumer,
            payload_max,
            cells_max: geometry.message_cells(),
            continued: 0,
            abbreviations: Abbreviations::default(),
            streaming: StreamingHeuristic::new(),
        })
    }

    /// See [`crate::ReceiveEnd::reserve`].
    pub(crate) fn reserve(&mut self) {
        self.abbreviations.reserve();
    }

    /// See [`crate::Shortcut::peek_short`].
    #[inline(always)]
    pub(crate) fn peek_short<const HAS_METADATA: bool>(&self) -> Option<InCell<'_, HAS_METADATA>> {
        let first = short_cell::first_word(HAS_METADATA);
        let most = short_cell::bytes_in_one(HAS_METADATA);
        let (length, cell) = if self.is_line_next {
            self.line.look(first, most, self.consumer.taken())?
        } else {
            self.consumer.look(first, most)?
        };
        Some(short_cell::decode_short(length, cell))
    }

    /// See [`crate::Shortcut::next_in_cells`].
    #[inline(always)]
    pub(crate) fn next_in_cells(&self) -> Option<bool> {
        let (said, _) = self.consumer.look(0, short_cell::SAID_MOST)?;
        short_cell::has_metadata_in_cells(said)
    }

    /// See [`crate::Shortcut::peek_in_cells`].
    #[inline(always)]
    pub(crate) fn peek_in_cells<const HAS_METADATA: bool>(
        &self,
    ) -> Option<(u64, InCells<'_, HAS_METADATA>)> {
        let first = short_cell::first_word(HAS_METADATA);
        let most = short_cell::said_most(HAS_METADATA, self.cells_max);
        let (said, cell) = self.consumer.look(first, most)?;
        let (length, cells) = short_cell::extent(HAS_METADATA, said, self.cells_max)?;
        let metadata_bytes = if HAS_METADATA { cell::WORD_BYTES } else { 0 };
        if length as usize + metadata_bytes > self.payload_max {
            return None;
        }
        if cells == 1 || self.consumer.continues(cells).is_err() {
            return None;
        }
        let first = short_cell::decode_short(length, cell);
        Some((cells, ShortInCells::new(first, &self.consumer)))
    }

    /// See [`crate::Shortcut::peek_message`].
    #[inline(always)]
    pub(crate) fn peek_message(&self) -> Option<MessageInPlace<'_>> {
        let most = message_cell::SAID_MOST;
        let (said, cells_max) = if self.is_line_next {
            let taken = self.consumer.taken();
            (self.line.look(message_cell::MESSAGE, most, taken)?.0, 1)
        } else {
            (
                self.consumer.look(message_cell::MESSAGE, most)?.0,
                self.cells_max,
            )
        };
        let head = MessageHead::of(said);
        let to = self.abbreviations.get(head.abbreviation)?;
        let length_bytes = head.length_bytes;
        if usize::from(length_bytes) > message_cell::FIRST_BYTES
            && !self.is_whole(length_bytes, cells_max)
        {
            return None;
        }
        Some(MessageInPlace {
            message: InPlace {
                to,
                handler: head.handler,
            },
            length_bytes,
        })
    }

    /// True if the cells after the next one are there that a message of that length takes.
    #[inline(never)]
    fn is_whole(&self, length_bytes: u16, cells_max: u32) -> bool {
        let length = u64::from(length_bytes);
        let cells = message_cell::cells_of(length);
        cells <= u64::from(cells_max)
            && length <= self.payload_max as u64
            && self.consumer.continues(cells).is_ok()
    }

    /// See [`crate::Shortcut::message_word`].
    #[inline(always)]
    pub(crate) fn message_word(&self, number: usize) -> u64 {
        if number >= CONTINUED_WORDS {
            return self.continued_word(number - CONTINUED_WORDS);
        }
        self.first_words()[number].load(Ordering::Relaxed)
    }

    /// The words of the message that was last shown, in its first cell.
    #[inline(always)]
    fn first_words(&self) -> &[AtomicU64; CONTINUED_WORDS] {
        match self.is_line_next {
            true => self.line.words(),
            false => self.consumer.words(),
        }
    }

    /// See [`crate::Shortcut::copy_message`].
    #[inline(always)]
    pub(crate) fn copy_message(&self, into: &mut [u8]) {
        let (first, more) = into.split_at_mut(into.len().min(message_cell::FIRST_BYTES));
        copy_line(self.first_words(), first);
        if !more.is_empty() {
            copy_continued(&self.consumer, more);
        }
    }

    #[inline(never)]
    fn continued_word(&self, number: usize) -> u64 {
        let words = self.consumer.continuation(number / CONTINUED_WORDS);
        words[number % CONTINUED_WORDS].load(Ordering::Relaxed)
    }

    /// See [`crate::Shortcut::message_done`].
    #[inline(always)]
    pub(crate) fn message_done(&mut self, length_bytes: u16) {
        if usize::from(length_bytes) > message_cell::FIRST_BYTES {
            self.cells_done(message_cell::cells_of(u64::from(length_bytes)));
        } else {
            self.short_done();
        }
    }

    /// See [`crate::Shortcut::peek_request`].
    #[inline(always)]
    pub(crate) fn peek_request(&self) -> Option<ShortRequest> {
        if !self.is_line_next {
            return None;
        }
        let taken = self.consumer.taken();
        let (kind, cell) = self.line.look(cell::REQUEST_FIRST, cell::KIND_MAX, taken)?;
        cell::decode_request(kind, &cell)
    }

    /// See [`crate::Shortcut::request_done`].
    #[inline(always)]
    pub(crate) fn request_done(&mut self) {
        self.line_done();
    }

    /// See [`crate::Shortcut::is_blind`].
    #[inline(always)]
    pub(crate) fn is_blind(&self) -> bool {
        self.consumer.is_blind()
    }

    /// The packet that was last shown in one cell is taken.
    #[inline(always)]
    pub(crate) fn short_done(&mut self) {
        if self.is_line_next {
            self.line_done();
        } else {
            self.consumer.took();
        }
    }

    /// The packet that was last shown in so many cells is taken.
    #[inline(always)]
    pub(crate) fn cells_done(&mut self, cells: u64) {
        self.is_line_next = false;
        self.continued += cells - 1;
        self.consumer.took_all(cells);
    }

    #[inline(always)]
    pub(crate) fn line_done(&mut self) {
        // Release: it is written over when this is seen.
        let number = self.line.took();
        self.line_taken.store(number, Ordering::Release);
        self.consumer.next_epoch();
    }

    /// Does what is due before the next packet. If there was something, whether the sender must be
    /// rung for.
    #[inline]
    pub(crate) fn return_due_credit(&mut self) -> Option<bool> {
        self.consumer.return_due_credit()
    }

    /// Whether credit is due before the next packet.
    #[inline(always)]
    pub(crate) fn is_credit_due(&self) -> bool {
        self.consumer.is_step_due()
    }

    /// How many packets were taken.
    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        self.consumer.taken() - self.continued + self.line.taken()
    }

    /// The next packet of the ring, if there is one. It is to be [taken](Incoming::take). If there
    /// is none, there may be one in the [line](Incoming::take_from_line).
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<Found>, Stopped> {
        let Some(cell) = self.consumer.peek().map_err(|_| LinkFault::Flag)? else {
            return Ok(None);
        };
        let arena_bytes = self.consumer.payload_memory().bytes;
        match cell::decode(&cell, self.cells_max, arena_bytes, self.payload_max) {
            Ok((header, placement)) => {
                if header.kind == Kind::MESSAGE {
                    self.abbreviations.note(&{ header });
                }
                Ok(Some(self.found(header, placement)?))
            }
            // By value, so that on the other way the cell need not be in memory.
            Err(fault) => Err(self.stopped(cell, fault)),
        }
    }

    /// A packet whose other cells are there.
    #[inline(always)]
    fn found(&self, header: Header, placement: Placement) -> Result<Found, LinkFault> {
        let mut cells = placement.cells(header.length_bytes);
        self.consumer
            .continues(cells)
            .map_err(|_| LinkFault::Flag)?;
        if self.consumer.is_in_log() {
            cells = self.lines_in_log(&header, placement, cells)?;
        }
        Ok(Found {
            header,
            placement,
            cells,
        })
    }

    /// How many lines of the log a packet takes, which has so many cells.
    #[cold]
    #[inline(never)]
    fn lines_in_log(
        &self,
        header: &Header,
        placement: Placement,
        cells: u64,
    ) -> Result<u64, LinkFault> {
        let metadata_bytes = usize::from(header.metadata_length_bytes);
        let (offset, before_bytes) = match (placement.metadata, placement.data) {
            (Metadata::PayloadArena(offset), _) => (offset, Placement::data_after(metadata_bytes)),
            (_, Data::PayloadArena(offset)) => (offset, 0),
            _ => return Ok(cells),
        };
        let data_bytes = match placement.data {
            Data::PayloadArena(_) => header.length_bytes as usize,
            _ => 0,
        };
        let lines = self
            .consumer
            .lines_in_log(offset, before_bytes + data_bytes);
        lines.map_err(|_| LinkFault::Placement)
    }

    /// The message of the next cell, which is one's.
    pub(crate) fn message(&self, head: MessageHead) -> Result<Found, LinkFault> {
        let (header, placement) =
            head.decode(&self.abbreviations, self.cells_max, self.payload_max)?;
        self.found(header, placement)
    }

    /// A cell is no packet, unless it is a message.
    #[cold]
    #[inline(never)]
    fn stopped(&mut self, cell: Cell, fault: LinkFault) -> Stopped {
        if let Some(head) = MessageHead::of_cell(&cell) {
            return Stopped::Message(head);
        }
        if let Some(followed) = self.consumer.follow(&cell) {
            let Ok(rings) = followed else {
                return Stopped::Fault(LinkFault::Log);
            };
            self.continued += 1;
            return Stopped::Passed { rings };
        }
        if !cell::is_fence(&cell) {
            return Stopped::Fault(fault);
        }
        if self.taken() == self.fenced {
            // No correct sender does that, and a sender that did it for ever would keep us here.
            return Stopped::Fault(LinkFault::Fence);
        }
        let rings = self.consumer.done(1, 0);
        self.fenced = self.taken();
        Stopped::Passed {
            rings: self.consumer.return_credit() || rings,
        }
    }

    /// What `take` made of that packet; and whether the sender must be rung for, because it waits
    /// for the room. `refusal_of` says whether the interface would not have it; then the sender is
    /// told.
    #[inline(always)]
    pub(crate) fn take<R>(
        &mut self,
        found: Found,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
        refusal_of: impl FnOnce(&R) -> Option<Refusal>,
    ) -> (R, bool) {
        self.is_line_next = false;
        let Found {
            header,
            placement,
            cells,
        } = found;
        let length = header.length_bytes as usize;
        let result = self.show::<false, _>(header, placement, take, refusal_of);
        // Metadata alone take a place there too.
        let in_arena = matches!(placement.data, Data::PayloadArena(_));
        let arena_bytes = if in_arena { length.max(1) } else { 0 };
        self.continued += cells - 1;
        let rings = match self.consumer.is_in_log() {
            false => self.consumer.done(cells, arena_bytes),
            true => self.consumer.done_in_log(cells),
        };
        (result, rings)
    }

    /// As [`Incoming::next`] and [`Incoming::take`], for the line, where every packet has its data
    /// in its cell.
    #[inline]
    pub(crate) fn take_from_line<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
        refusal_of: impl FnOnce(&R) -> Option<Refusal>,
    ) -> Result<Option<R>, LinkFault> {
        self.line.begin_row();
        let Some(cell) = self.line.peek(self.consumer.taken()) else {
            return Ok(None);
        };
        let (header, placement) = match short_cell::decode_copy(cell[0] & !FLAG_MASK, &cell, 1) {
            Some(short) => short?,
            None => match MessageHead::of_cell(&cell) {
                Some(head) => head.decode(&self.abbreviations, 1, self.payload_max)?,
                None => self.decode_from_line(&cell)?,
            },
        };
        self.is_line_next = true;
        let result = self.show::<true, _>(header, placement, take, refusal_of);
        self.line_done();
        Ok(Some(result))
    }

    /// A packet of the line that is not short: a request. What lies in the payload arena does not
    /// come this way, as it is counted with the cells of the ring.
    fn decode_from_line(&self, cell: &Cell) -> Result<(Header, Placement), LinkFault> {
        let arena_bytes = self.consumer.payload_memory().bytes;
        let (header, placement) = cell::decode(cell, 1, arena_bytes, self.payload_max)?;
        match placement {
            Placement {
                data: Data::Cell(_),
                metadata: Metadata::Word(_),
            } if header.kind.is_request() => Ok((header, placement)),
            _ => Err(LinkFault::Placement),
        }
    }

    #[inline(always)]
    fn show<const LINE: bool, R>(
        &mut self,
        header: Header,
        placement: Placement,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
        refusal_of: impl FnOnce(&R) -> Option<Refusal>,
    ) -> R {
        let carried = Carried {
            memory: self.consumer.payload_memory(),
            length: header.length_bytes,
            placement,
            streaming: &self.streaming,
            ring: &self.consumer,
            line: LINE.then_some(&self.line),
        };
        let result = take(&header, &carried);
        if let Some(refusal) = refusal_of(&result) {
            // By value, so that on the other way the header need not be in memory.
            self.report(header, refusal);
        }
        result
    }

    #[cold]
    #[inline(never)]
    fn report(&mut self, header: Header, refusal: Refusal) {
        self.reporter.add(&report::encode(&header, refusal));
    }

    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.consumer.is_pending() || self.line.is_pending(self.consumer.taken())
    }

    /// See [`crate::ReceiveEnd::log_news`].
    pub(crate) fn log_news(&mut self) -> Option<LogNews> {
        self.consumer.log_news()
    }

    /// Whether the sender must be rung for.
    #[inline]
    pub(crate) fn return_credit(&mut self) -> bool {
        self.line.return_taken();
        self.consumer.return_credit()
    }

    /// As for [`Incoming::return_credit`], but nothing is returned unless packets held payload in
    /// the arena.
    #[inline(always)]
    pub(crate) fn return_arena_credit(&mut self) -> bool {
        self.consumer.return_arena_credit()
    }

    pub(crate) fn close(&mut self) {
        self.consumer.close();
        self.line.close();
    }
}
