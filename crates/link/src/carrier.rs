//! One direction of a link: packets into cells and payload arena, and out of them.
//!
//! The way there: data go into the cell and those after it, as far as a packet may take cells
//! ([`Geometry::message_cells`]); longer ones into the payload arena, copied once, straight from
//! where they lie. The way back: the first cell is copied out and checked, then the receiver's
//! engine decides, and only then do the bytes go to their place, copied once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hamlyn_engine::limits::{
    HANDLERS_MAX, MORE_WORDS, PACKET_PAYLOAD_MAX, PACKET_PAYLOAD_MIN, SHORT_BYTES_MAX,
    SHORT_BYTES_WITH_WORD, SHORT_WORDS, USER_METADATA_BYTES,
};
use hamlyn_engine::memory::{self, Area as _, Denied, Part, ShortData, ShortSource, Unsent};
use hamlyn_engine::operation::{REQUEST_WORDS, ShortRequest, leading_words};
use hamlyn_engine::packet::{Address, Flags, Header, Kind, PortAddress, Short, short_words};
use hamlyn_engine::port::InPlace;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::Return;
use hamlyn_ring::area::Area;
use hamlyn_ring::cells::{
    CONTINUED_BYTES, CONTINUED_WORDS, Cell, FLAG_MASK, SharedCell, SharedCells, SharedLine,
};
use hamlyn_ring::consumer::Consumer;
use hamlyn_ring::duplex::{DuplexReceiver, DuplexSender, LineOrder};
use hamlyn_ring::geometry::{Geometry, MESSAGE_CELLS_MAX};
use hamlyn_ring::producer::{NoRoom, Producer};
use hamlyn_ring::reports::{Miscounted, ReportReader, Reporter, SharedReports};
use hamlyn_ring::shared::{LINE_BYTES, Mapping, OutOfRange, StoreKind, ticks};
use hamlyn_ring::streaming::StreamingHeuristic;

use crate::cell::{self, Data, INLINE_BYTES, Metadata, Placement};
use crate::copy_policy::CopyPolicy;
use crate::message_cell::{self, Abbreviations, MessageHead};
use crate::short_cell::{self, ShortInCell, ShortInCells};
use crate::{LinkError, LinkFault, MessageInPlace, Refused, report};

/// A packet that takes more cells goes through the payload arena while its receiver is behind.
const CELLS_IF_BEHIND: u64 = 2;
/// Cells that go before the line is tried again, where traffic does not alternate: at first, and if
/// it never does.
const LINE_PAUSE_MIN_CELLS: u64 = 16;
const LINE_PAUSE_MAX_CELLS: u64 = 4096;

pub(crate) fn check_payload_max(payload_max: usize) -> Result<(), LinkError> {
    if (PACKET_PAYLOAD_MIN..=PACKET_PAYLOAD_MAX).contains(&payload_max) {
        Ok(())
    } else {
        Err(LinkError::PayloadMax(payload_max))
    }
}

/// The duplex line of a link, as one direction of one of its ends has it.
pub(crate) struct LinePart {
    pub(crate) line: SharedLine,
    /// When this end writes it.
    pub(crate) order: LineOrder,
    /// The number of the last message that this end has taken from it.
    pub(crate) taken: Arc<AtomicU64>,
}

/// The sending end.
pub(crate) struct Outgoing {
    producer: Producer<SharedCells>,
    line: DuplexSender<SharedLine>,
    /// The number of the last message that was taken from the line.
    line_taken: Arc<AtomicU64>,
    /// Whether the line is left alone for a while when it is not ours. One end that pauses is
    /// enough: the other writes it only when this one did. Two that pause miss each other's turns
    /// for ever.
    line_pauses: bool,
    /// After so many cells the line is tried.
    line_due: u64,
    /// After how many more, if traffic does not alternate.
    line_pause_cells: u64,
    /// How many cells had been sent before the last message of the line.
    line_cells: u64,
    mapping: Arc<Mapping>,
    arena_offset: usize,
    payload_max: usize,
    /// The most cells of a packet.
    cells_max: u32,
    /// The most data of a short packet in so many cells.
    cells_bytes_max: u64,
    /// The number of cells sent that continue others.
    continued: u64,
    abbreviations: Abbreviations,
    copy_policy: CopyPolicy,
    reports: ReportReader<SharedReports>,
    /// How many cells were sent when a fence was the last of them, and how many messages over the
    /// line before it.
    fenced: (u64, u64),
    /// What the peer did wrong.
    fault: Option<LinkFault>,
}

impl Outgoing {
    pub(crate) fn new(
        mapping: Arc<Mapping>,
        geometry: Geometry,
        payload_max: usize,
        file: Option<std::os::fd::OwnedFd>,
        line: LinePart,
    ) -> Result<Self, OutOfRange> {
        let cells = SharedCells::new(&mapping, geometry, file)?;
        let reports = ReportReader::new(SharedReports::new(&mapping, geometry)?);
        Ok(Self {
            line: DuplexSender::new(line.line, line.order),
            line_taken: line.taken,
            line_pauses: line.order != LineOrder::Second,
            line_due: 0,
            line_pause_cells: LINE_PAUSE_MIN_CELLS,
            line_cells: u64::MAX,
            producer: Producer::new(cells, geometry, geometry.window_bytes(payload_max)),
            mapping,
            arena_offset: geometry.arena_offset(),
            payload_max,
            cells_max: geometry.message_cells(),
            cells_bytes_max: short_cell::bytes_in(true, geometry.message_cells())
                .min((payload_max - cell::WORD_BYTES) as u64),
            continued: 0,
            abbreviations: Abbreviations::default(),
            copy_policy: CopyPolicy::new(),
            reports,
            fenced: (0, 0),
            fault: None,
        })
    }

    /// What was agreed; less if there is no memory for that.
    #[inline]
    pub(crate) fn payload_max(&self) -> usize {
        self.payload_max.min(self.producer.longest() - LINE_BYTES)
    }

    pub(crate) fn await_credit(&self, is_needed: bool, fence: Option<u64>) {
        self.producer.await_credit(is_needed, fence);
    }

    pub(crate) fn credit_came(&self) -> bool {
        self.producer.credit_came()
    }

    /// What the peer did wrong, if the direction has ended.
    pub(crate) fn fault(&self) -> Option<LinkFault> {
        let is_closed = self.producer.is_closed();
        is_closed.then(|| self.fault.unwrap_or(LinkFault::Credit))
    }

    /// Sends a fence, unless nothing was sent since the last one, or all is known to be taken. Its
    /// number: how many cells must be returned until it is answered; and whether it was sent.
    pub(crate) fn fence(&mut self) -> Result<(u64, bool), Unsent> {
        let sent = (self.producer.sent(), self.line.sent());
        if sent == self.fenced || self.is_all_taken()? {
            return Ok((sent.0, false));
        }
        let room = self.producer.room().map_err(unsent)?;
        room.publish(cell::fence());
        self.fenced = (sent.0 + 1, sent.1);
        Ok((self.fenced.0, true))
    }

    /// Whether all that was sent is known to be taken.
    pub(crate) fn is_all_taken(&mut self) -> Result<bool, Unsent> {
        let sent = self.producer.sent();
        // What lay in the line before a fence was taken before the fence.
        let is_line_taken = self.line.sent() == self.fenced.1
            || self
                .line
                .is_all_taken(self.line_taken.load(Ordering::Acquire));
        Ok(is_line_taken && self.producer.has_returned(sent).map_err(unsent)?)
    }

    pub(crate) fn is_answered(&mut self, fence: u64) -> Result<bool, Unsent> {
        self.producer.has_returned(fence).map_err(unsent)
    }

    pub(crate) fn may_be_answered(&self, fence: u64) -> bool {
        self.producer.may_have_returned(fence)
    }

    /// What the peer's reports say. If they cannot be true, the direction ends.
    pub(crate) fn refused(&mut self) -> Refused {
        let sent = self.sent();
        let packets = self.reports.count(sent);
        let last = self.reports.last(sent);
        match (packets, last) {
            (Ok(packets), Ok(last)) => Refused {
                packets,
                last: last.map(|last| report::decode(&last)),
            },
            _ => {
                self.miscounted();
                Refused::default()
            }
        }
    }

    pub(crate) fn next_returned(&mut self) -> Option<(Header, Return)> {
        match self.reports.next(self.sent()) {
            Ok(report) => report.map(|report| report::decode(&report)),
            Err(Miscounted) => {
                self.miscounted();
                None
            }
        }
    }

    #[cold]
    fn miscounted(&mut self) {
        self.fault.get_or_insert(LinkFault::Report);
        self.producer.close();
    }

    /// Reports that were overwritten before they were fetched.
    pub(crate) fn missed(&self) -> u64 {
        self.reports.missed()
    }

    /// How many of them went over the line.
    #[cfg(test)]
    pub(crate) fn sent_over_line(&self) -> u64 {
        self.line.sent()
    }

    /// How many packets were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.producer.sent() - self.continued + self.line.sent()
    }

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
        self.send_bytes_in_cells(cells, message_cell::FIRST_BYTES, data, |_| {
            head.encode(data)
        })
        .is_ok()
    }

    /// Sends a request over the line, if that is due and we may write there; whether it was sent.
    #[inline(always)]
    pub(crate) fn try_send_request(&mut self, request: &ShortRequest) -> bool {
        self.is_line_due() && self.send_over_line(cell::encode_request(request)).is_ok()
    }

    /// Whether the next packet whose data fit its cell goes over the line.
    #[inline(always)]
    fn is_line_due(&mut self) -> bool {
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
    fn send_over_line(&mut self, cell: Cell) -> Result<(), Unsent> {
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
    fn is_bulk(&self, cells: u64) -> bool {
        cells > CELLS_IF_BEHIND && self.producer.is_behind()
    }

    /// Sends a packet in several cells: `first_bytes` of its data in the first one, which `head`
    /// makes of the first words.
    #[inline(never)]
    fn send_in_cells(
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

    /// Sends a packet whose header has the right lengths.
    #[inline(always)]
    pub(crate) fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        let length: usize = parts.iter().map(Part::length_bytes).sum();
        let placed = header.flags.is_placed();
        debug_assert!(if placed {
            length == 0
        } else {
            header.length_bytes as usize == length
        });
        debug_assert_eq!(header.metadata_length_bytes as usize, metadata.len());
        if metadata.len() > USER_METADATA_BYTES || metadata.len() + length > self.payload_max {
            debug_assert!(false, "the engine offers more than the link takes");
            return Err(Unsent::Gone);
        }
        // What is sent is what is here, whatever the header says.
        let header = &Header {
            length_bytes: if placed {
                header.length_bytes
            } else {
                length as u32
            },
            metadata_length_bytes: metadata.len() as u8,
            ..*header
        };
        if short_cell::fits(header, metadata.len(), length, self.cells_max) {
            let has_metadata = !metadata.is_empty();
            let short = |data| Short {
                to: Address::new(header.slot, header.metadata_index),
                key: header.key,
                offset: header.offset,
                word: header.word | short_word(metadata),
                has_metadata,
                length_bytes: length as u16,
                data,
            };
            let cells = short_cell::cells_of(has_metadata, header.word, length as u64);
            if cells == 1 {
                return self.try_send_short(short(gather_short(parts).map_err(impossible)?));
            }
            if !self.is_bulk(cells) {
                let first = SHORT_BYTES_WITH_WORD;
                let head = |data| short_cell::encode_first(&short(data));
                return self.send_in_cells(cells, first, parts, head);
            }
        }
        if header.kind.is_request()
            && metadata.is_empty()
            && length <= INLINE_BYTES
            && self.is_line_due()
        {
            // Its answer comes the same way, which takes half as long.
            let placement = Placement {
                data: Data::Cell(gather_short(parts).map_err(impossible)?),
                metadata: Metadata::Word(0),
            };
            return self.send_over_line(cell::encode(header, &placement));
        }
        if header.kind == Kind::MESSAGE {
            return self.try_send_to_port(header, metadata, parts);
        }
        self.send_general(header, metadata, parts, length)
    }

    /// Sends a message to a port, abbreviated if that stands for the port already.
    #[inline(never)]
    fn try_send_to_port(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        if let [Part::Bytes(data)] = *parts
            && header.flags == Flags::NONE
            && metadata.is_empty()
            && header.word < u64::from(HANDLERS_MAX)
            && self.try_send_message(&PortAddress::of(header), header.word as u16, data)
        {
            return Ok(());
        }
        let length = parts.iter().map(Part::length_bytes).sum();
        self.send_general(header, metadata, parts, length)?;
        self.abbreviations.note(header);
        Ok(())
    }

    /// Sends a packet that is not short.
    #[inline(always)]
    fn send_general(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
        length: usize,
    ) -> Result<(), Unsent> {
        let placed = header.flags.is_placed();
        let window_bytes = self.producer.window_bytes();
        let in_word = if metadata.is_empty() {
            Some(Metadata::Word(0))
        } else {
            cell::word_is_free(header, metadata.len()).then(|| Metadata::Word(short_word(metadata)))
        };
        if let Some(metadata) = in_word
            && length <= INLINE_BYTES
        {
            let room = self.producer.room().map_err(unsent)?;
            let data = if placed {
                Data::Placed
            } else {
                Data::Cell(gather_short(parts).map_err(impossible)?)
            };
            room.publish(cell::encode(header, &Placement { data, metadata }));
            return Ok(());
        }
        if let Some(metadata) = in_word
            && length <= cell::bytes_in(self.cells_max)
        {
            let placement = |[first, second, ..]: [u64; SHORT_WORDS]| Placement {
                data: Data::Cells {
                    first: [first, second, 0],
                    first_bytes: INLINE_BYTES as u32,
                },
                metadata,
            };
            let cells = short_cell::cells_after(INLINE_BYTES as u64, length as u64);
            if !self.is_bulk(cells) {
                let head = |data| cell::encode(header, &placement(data));
                return self.send_in_cells(cells, INLINE_BYTES, parts, head);
            }
        }
        let mut room = self.producer.room().map_err(unsent)?;
        let data_after = if in_word.is_some() {
            0
        } else {
            Placement::data_after(metadata.len())
        };
        let place = room.place(data_after + length).map_err(unsent)?;
        let begin = self.arena_offset + place.offset() as usize;
        let mapping = &self.mapping;
        if data_after + length <= CLAIMED_BYTES_MAX {
            mapping.claim(begin + CLAIM_AHEAD_BYTES, data_after + length);
        }
        if in_word.is_none() {
            mapping
                .copy_in(begin, metadata)
                .map_err(|OutOfRange| impossible(Denied::OutOfArea))?;
        }
        self.copy_policy
            .carry(length, window_bytes, ticks, |way| {
                let to = begin + data_after;
                match *parts {
                    [Part::Bytes(bytes)] => put(mapping, to, bytes, way),
                    _ => gather(mapping, to, parts, way),
                }
            })
            .map_err(impossible)?;
        let placement = Placement {
            data: if placed {
                Data::Placed
            } else {
                Data::PayloadArena(place.offset() + data_after as u32)
            },
            metadata: in_word.unwrap_or(Metadata::PayloadArena(place.offset())),
        };
        room.publish_with(cell::encode(header, &placement), place);
        Ok(())
    }
}

/// The longest data of a packet in cells, of whichever kind.
const GATHERED_BYTES_MAX: usize = short_cell::bytes_in(true, MESSAGE_CELLS_MAX) as usize;

fn unsent(reason: NoRoom) -> Unsent {
    match reason {
        NoRoom::Full => Unsent::Full,
        NoRoom::Corrupt => Unsent::Gone,
    }
}

/// Lines of the payload arena are claimed for messages up to this length: longer ones are copied by
/// instructions that have enough lines under way.
const CLAIMED_BYTES_MAX: usize = 256;
/// So far ahead of the place that is written.
const CLAIM_AHEAD_BYTES: usize = 512;

/// Copies bytes into the payload arena.
#[inline(never)]
fn put(mapping: &Mapping, to: usize, bytes: &[u8], way: StoreKind) -> Result<(), Denied> {
    match way {
        StoreKind::Temporal => mapping.copy_in(to, bytes),
        StoreKind::NonTemporal => mapping.stream_in(to, bytes),
    }
    .map_err(|OutOfRange| Denied::OutOfArea)
}

/// Copies all parts into the payload arena.
#[inline(never)]
fn gather(
    mapping: &Mapping,
    mut to: usize,
    parts: &[Part<'_, Area>],
    way: StoreKind,
) -> Result<(), Denied> {
    for part in parts {
        match *part {
            Part::Bytes(bytes) => put(mapping, to, bytes, way),
            Part::Area {
                area,
                offset,
                length_bytes,
            } => area.read_into(offset, mapping, to, length_bytes as usize, way),
        }?;
        to += part.length_bytes();
    }
    Ok(())
}

/// The engine has checked every range, so this is an error of ours; the packet is not sent.
#[cold]
fn impossible(denied: Denied) -> Unsent {
    debug_assert!(false, "a part that the engine has checked: {denied:?}");
    Unsent::Gone
}

fn short_word(metadata: &[u8]) -> u64 {
    let mut bytes = [0; cell::WORD_BYTES];
    let len = metadata.len().min(bytes.len());
    bytes[..len].copy_from_slice(&metadata[..len]);
    u64::from_le_bytes(bytes)
}

/// All parts together, as many as are short.
fn gather_short(parts: &[Part<'_, Area>]) -> Result<[u64; SHORT_WORDS], Denied> {
    let mut bytes = [0; SHORT_BYTES_MAX];
    gather_bytes(parts, &mut bytes)?;
    short_words(&bytes).ok_or(Denied::OutOfArea)
}

/// All parts together, copied to the beginning of some bytes.
#[inline(never)]
fn gather_bytes<'a>(parts: &[Part<'_, Area>], bytes: &'a mut [u8]) -> Result<&'a [u8], Denied> {
    let mut at = 0;
    for part in parts {
        let end = at + part.length_bytes();
        let into = bytes.get_mut(at..end).ok_or(Denied::OutOfArea)?;
        match *part {
            Part::Bytes(from) => into.copy_from_slice(from),
            Part::Area { area, offset, .. } => area.read_at(offset, into)?,
        }
        at = end;
    }
    Ok(&bytes[..at])
}

/// A short packet in its cell, with a word of metadata or without.
pub type InCell<'a, const HAS_METADATA: bool> = ShortInCell<SharedCell<'a>, HAS_METADATA>;

/// A short packet in several cells.
pub type InCells<'a, const HAS_METADATA: bool> = ShortInCells<'a, SharedCell<'a>, HAS_METADATA>;

/// The receiving end.
pub(crate) struct Incoming {
    consumer: Consumer<SharedCells>,
    mapping: Arc<Mapping>,
    arena_offset: usize,
    arena_bytes: usize,
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
}

/// Why a cell is no packet like others.
pub(crate) enum Stopped {
    /// It is an abbreviated message to a port.
    Message(MessageHead),
    /// It was a fence, which is answered; the next cell may be a packet.
    Fence {
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
    ) -> Result<Self, OutOfRange> {
        let cells = SharedCells::new(&mapping, geometry, None)?;
        let reporter = Reporter::new(SharedReports::new(&mapping, geometry)?);
        Ok(Self {
            reporter,
            line: DuplexReceiver::new(line.line, line.order),
            line_taken: line.taken,
            is_line_next: false,
            fenced: u64::MAX,
            consumer: Consumer::new(cells, geometry),
            mapping,
            arena_offset: geometry.arena_offset(),
            arena_bytes: geometry.arena_bytes() as usize,
            payload_max,
            cells_max: geometry.message_cells(),
            continued: 0,
            abbreviations: Abbreviations::default(),
            streaming: StreamingHeuristic::new(),
        })
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
        let words = match self.is_line_next {
            true => self.line.words(),
            false => self.consumer.words(),
        };
        words[number].load(Ordering::Relaxed)
    }

    /// See [`crate::Shortcut::copy_message`].
    #[inline(always)]
    pub(crate) fn copy_message(&self, into: &mut [u8]) {
        let (first, more) = into.split_at_mut(into.len().min(message_cell::FIRST_BYTES));
        let line = match self.is_line_next {
            true => self.line.words(),
            false => self.consumer.words(),
        };
        copy_line(line, first);
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
        match cell::decode(&cell, self.cells_max, self.arena_bytes, self.payload_max) {
            Ok((header, placement)) => {
                if header.kind == Kind::MESSAGE {
                    self.abbreviations.note(&{ header });
                }
                let cells = placement.cells(header.length_bytes);
                self.consumer
                    .continues(cells)
                    .map_err(|_| LinkFault::Flag)?;
                Ok(Some(Found { header, placement }))
            }
            // By value, so that on the other way the cell need not be in memory.
            Err(fault) => Err(self.stopped(cell, fault)),
        }
    }

    /// The message of the next cell, which is one's.
    pub(crate) fn message(&self, head: MessageHead) -> Result<Found, LinkFault> {
        let (header, placement) =
            head.decode(&self.abbreviations, self.cells_max, self.payload_max)?;
        let cells = placement.cells(header.length_bytes);
        self.consumer
            .continues(cells)
            .map_err(|_| LinkFault::Flag)?;
        Ok(Found { header, placement })
    }

    /// A cell is no packet, unless it is a message.
    #[cold]
    #[inline(never)]
    fn stopped(&mut self, cell: Cell, fault: LinkFault) -> Stopped {
        if let Some(head) = MessageHead::of_cell(&cell) {
            return Stopped::Message(head);
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
        Stopped::Fence {
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
        let Found { header, placement } = found;
        let length = header.length_bytes as usize;
        let result = self.show::<false, _>(header, placement, take, refusal_of);
        // Metadata alone take a place there too.
        let in_arena = matches!(placement.data, Data::PayloadArena(_));
        let arena_bytes = if in_arena { length.max(1) } else { 0 };
        let cells = placement.cells(header.length_bytes);
        self.continued += cells - 1;
        let rings = self.consumer.done(cells, arena_bytes);
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
        let (header, placement) = cell::decode(cell, 1, self.arena_bytes, self.payload_max)?;
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
            mapping: &self.mapping,
            arena_offset: self.arena_offset,
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

/// The bytes that came with a packet: in the copy of its first cell; and in the cells after it or
/// in the payload arena, where the peer may still change them.
#[derive(Clone, Copy)]
pub struct Carried<'a> {
    mapping: &'a Mapping,
    arena_offset: usize,
    length: u32,
    placement: Placement,
    streaming: &'a StreamingHeuristic,
    ring: &'a Consumer<SharedCells>,
    /// Of a packet in the line.
    line: Option<&'a DuplexReceiver<SharedLine>>,
}

/// The data of a packet in several cells.
struct CellsData<'a> {
    first: [u64; REQUEST_WORDS],
    first_bytes: usize,
    length_bytes: usize,
    ring: &'a Consumer<SharedCells>,
}

impl ShortSource for CellsData<'_> {
    #[inline(always)]
    fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    #[inline(always)]
    fn data_word<const NUMBER: usize>(&self) -> u64 {
        self.first.get(NUMBER).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn first_bytes(&self) -> usize {
        self.first_bytes
    }

    #[inline(always)]
    fn more(&self, number: usize) -> &[AtomicU64; MORE_WORDS] {
        self.ring.continuation(number)
    }
}

impl memory::Payload<Area> for Carried<'_> {
    #[inline(always)]
    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        match self.placement.metadata {
            Metadata::Word(word) => {
                into[..cell::WORD_BYTES].copy_from_slice(&word.to_le_bytes());
            }
            Metadata::PayloadArena(at) => {
                let into = &mut into[..length_bytes.min(USER_METADATA_BYTES)];
                let copied = self.mapping.copy_out(self.arena_offset + at as usize, into);
                debug_assert!(copied.is_ok(), "the placement was checked");
            }
        }
    }

    #[inline(always)]
    fn metadata_word(&self) -> Option<u64> {
        match self.placement.metadata {
            Metadata::Word(word) => Some(word),
            Metadata::PayloadArena(_) => None,
        }
    }

    fn words(&self) -> [u64; REQUEST_WORDS] {
        match self.placement.data {
            Data::Cell(words) => [words[0], words[1], words[2]],
            Data::Cells { first, first_bytes } => {
                let mut bytes = [0; REQUEST_WORDS * size_of::<u64>()];
                let more = self.ring.continuation(0)[0].load(Ordering::Relaxed);
                let words = match first_bytes as usize {
                    INLINE_BYTES => [first[0], first[1], more],
                    _ => first,
                };
                for (into, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
                    *into = word.to_le_bytes();
                }
                leading_words(&bytes[..bytes.len().min(self.length as usize)])
            }
            Data::PayloadArena(at) => {
                let mut bytes = [0; REQUEST_WORDS * size_of::<u64>()];
                let length = (self.length as usize).min(bytes.len());
                let into = &mut bytes[..length];
                let copied = self.mapping.copy_out(self.arena_offset + at as usize, into);
                debug_assert!(copied.is_ok(), "the placement was checked");
                leading_words(&bytes)
            }
            // No request has its data so.
            Data::Message | Data::Placed => [0; REQUEST_WORDS],
        }
    }

    fn copy_to(&self, into: &mut [u8]) -> Result<(), Denied> {
        let first_bytes = match self.placement.data {
            Data::PayloadArena(at) => {
                let from = self.arena_offset + at as usize;
                let copied = self.mapping.copy_out(from, into);
                return copied.map_err(|OutOfRange| Denied::OutOfArea);
            }
            Data::Cell(_) => SHORT_BYTES_MAX,
            Data::Cells { first_bytes, .. } => first_bytes as usize,
            Data::Message => message_cell::FIRST_BYTES,
            Data::Placed => return Ok(()),
        };
        let (begin, more) = into.split_at_mut(first_bytes.min(into.len()));
        match self.placement.data {
            Data::Cell(words) => copy_words(words.into_iter(), begin),
            Data::Cells { first, .. } => copy_words(first.into_iter(), begin),
            _ => {
                let words = match self.line {
                    Some(line) => line.words(),
                    None => self.ring.words(),
                };
                copy_line(words, begin);
            }
        }
        copy_continued(self.ring, more);
        Ok(())
    }

    #[inline(always)]
    fn deposit(&self, area: &Area, offset: u64) -> Result<(), Denied> {
        let length = self.length as usize;
        match self.placement.data {
            Data::Cell(words) => area.write_short(
                offset,
                ShortData {
                    words,
                    length_bytes: length,
                },
            ),
            Data::Cells { first, first_bytes } => area.write_words(
                offset,
                &CellsData {
                    first,
                    first_bytes: first_bytes as usize,
                    length_bytes: length,
                    ring: self.ring,
                },
            ),
            Data::PayloadArena(at) => {
                let from = self.arena_offset + at as usize;
                deposit_from_arena(self.streaming, self.mapping, from, area, offset, length)
            }
            // The engine asks for none.
            Data::Placed | Data::Message => Ok(()),
        }
    }
}

/// Copies the words of a line, but for the first word, as many as there are bytes.
#[inline(always)]
fn copy_line(words: &[AtomicU64; CONTINUED_WORDS], into: &mut [u8]) {
    copy_words(words.iter().map(|word| word.load(Ordering::Relaxed)), into);
}

/// Copies what the cells after the next one have.
#[inline(never)]
fn copy_continued(ring: &Consumer<SharedCells>, into: &mut [u8]) {
    for (number, into) in into.chunks_mut(CONTINUED_BYTES).enumerate() {
        let line = ring.continuation(number);
        match <&mut [u8; CONTINUED_BYTES]>::try_from(&mut *into) {
            // A number of words that is known is copied without a loop.
            Ok(whole) => copy_line(line, whole),
            Err(_) => copy_line(line, into),
        }
    }
}

/// Copies words to bytes, lowest byte first, as many as there are.
#[inline(always)]
fn copy_words(mut words: impl Iterator<Item = u64>, into: &mut [u8]) {
    let (whole, rest) = into.as_chunks_mut();
    for (into, word) in whole.iter_mut().zip(&mut words) {
        *into = word.to_le_bytes();
    }
    if !rest.is_empty()
        && let Some(word) = words.next()
    {
        rest.copy_from_slice(&word.to_le_bytes()[..rest.len()]);
    }
}

/// Not a method, so that what came need not lie in memory.
#[inline(never)]
fn deposit_from_arena(
    streaming: &StreamingHeuristic,
    mapping: &Mapping,
    from: usize,
    area: &Area,
    offset: u64,
    length: usize,
) -> Result<(), Denied> {
    let way = streaming.way(offset, length);
    area.write_from(offset, mapping, from, length, way)
}

#[cfg(test)]
pub(crate) mod tests;
