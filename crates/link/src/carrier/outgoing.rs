//! The sending end of a direction: packets into cells and payload arena.

mod cells;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hamlyn_engine::limits::{
    HANDLERS_MAX, SHORT_BYTES_WITH_WORD, SHORT_WORDS, USER_METADATA_BYTES,
};
use hamlyn_engine::memory::{Denied, Part, Unsent};
use hamlyn_engine::packet::{Address, Flags, Header, Kind, PortAddress, Short};
use hamlyn_engine::transport::Return;
use hamlyn_ring::area::Area;
use hamlyn_ring::cells::{SharedCells, SharedLine};
use hamlyn_ring::duplex::{DuplexSender, LineOrder};
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::overflow::{LogOptions, LogUse};
use hamlyn_ring::producer::{NoRoom, Producer};
use hamlyn_ring::reports::{Miscounted, ReportReader, SharedReports};
use hamlyn_ring::shared::{LINE_BYTES, Mapping, OutOfRange, ticks};

use super::LinePart;
use super::gathering::{gather, gather_short, impossible, put, short_word};
use crate::cell::{self, Data, INLINE_BYTES, Metadata, Placement};
use crate::copy_policy::CopyPolicy;
use crate::message_cell::Abbreviations;
use crate::short_cell;
use crate::{LinkFault, Refused, report};

/// A packet that takes more cells goes through the payload arena while its receiver is behind.
const CELLS_IF_BEHIND: u64 = 2;
/// Cells that go before the line is tried again, where traffic does not alternate: at first, and if
/// it never does.
const LINE_PAUSE_MIN_CELLS: u64 = 16;
const LINE_PAUSE_MAX_CELLS: u64 = 4096;

/// Lines of the payload arena are claimed for messages up to this length: longer ones are copied by
/// instructions that have enough lines under way.
const CLAIMED_BYTES_MAX: usize = 256;
/// So far ahead of the place that is written.
const CLAIM_AHEAD_BYTES: usize = 512;

/// The overflow log of a direction, all of that memory, and how its sender uses it.
pub(crate) type OutgoingLog = (Arc<Mapping>, LogOptions);

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
    /// How many cells were sent when a fence was the last of them.
    fence: u64,
    /// How many packets had been sent then, and how many messages over the line before it.
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
        log: Option<OutgoingLog>,
    ) -> Result<Self, OutOfRange> {
        let mut cells = SharedCells::new(&mapping, geometry, file)?;
        if let Some((log, _)) = &log {
            cells = cells.with_log(log)?;
        }
        let mut producer = Producer::new(cells, geometry, geometry.window_bytes(payload_max));
        if let Some((_, options)) = log {
            producer = producer.with_log(options);
        }
        let reports = ReportReader::new(SharedReports::new(&mapping, geometry)?);
        Ok(Self {
            line: DuplexSender::new(line.line, line.order),
            line_taken: line.taken,
            line_pauses: line.order != LineOrder::Second,
            line_due: 0,
            line_pause_cells: LINE_PAUSE_MIN_CELLS,
            line_cells: u64::MAX,
            producer,
            payload_max,
            cells_max: geometry.message_cells(),
            cells_bytes_max: short_cell::bytes_in(true, geometry.message_cells())
                .min((payload_max - cell::WORD_BYTES) as u64),
            continued: 0,
            abbreviations: Abbreviations::default(),
            copy_policy: CopyPolicy::new(),
            reports,
            fence: 0,
            fenced: (0, 0),
            fault: None,
        })
    }

    /// See [`crate::TransmitEnd::reserve`].
    pub(crate) fn reserve(&mut self) {
        self.abbreviations.reserve();
        self.producer.reserve();
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
        if (self.sent(), self.line.sent()) == self.fenced {
            return Ok((self.fence, false));
        }
        if self.is_all_taken()? {
            return Ok((self.producer.sent(), false));
        }
        if self.producer.room().is_err() {
            // A question is no load.
            self.producer.press();
        }
        let room = self.producer.room().map_err(unsent)?;
        room.publish(cell::fence());
        self.fence = self.producer.sent();
        self.fenced = (self.sent(), self.line.sent());
        Ok((self.fence, true))
    }

    /// True if all packets that were sent are known to be taken. A fence that is last is none: a
    /// peer that has taken all may have ended before it came to it.
    pub(crate) fn is_all_taken(&mut self) -> Result<bool, Unsent> {
        let sent = self.producer.sent();
        let is_fence_last = self.fence == sent && (self.sent(), self.line.sent()) == self.fenced;
        if is_fence_last && self.producer.has_returned(sent).map_err(unsent)? {
            return Ok(true);
        }
        // What lay in the line before a fence was taken before the fence.
        let is_line_taken = !is_fence_last && self.line.sent() == self.fenced.1
            || self
                .line
                .is_all_taken(self.line_taken.load(Ordering::Acquire));
        let packets = sent - u64::from(is_fence_last && sent > 0);
        Ok(is_line_taken && self.producer.has_returned(packets).map_err(unsent)?)
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
        self.producer.sent() - self.producer.beside() - self.continued + self.line.sent()
    }

    /// See [`crate::TransmitEnd::overflow_due_ns`].
    pub(crate) fn overflow_due_ns(&self) -> Option<u64> {
        self.producer.overflow_due_ns()
    }

    /// See [`crate::TransmitEnd::press`].
    pub(crate) fn press(&mut self) -> bool {
        self.producer.press()
    }

    /// Packets go to the overflow log.
    pub(crate) fn is_in_log(&self) -> bool {
        self.producer.is_in_log()
    }

    /// See [`crate::TransmitEnd::log_use`].
    pub(crate) fn log_use(&mut self) -> Option<LogUse> {
        self.producer.log_use()
    }

    /// Nothing was sent for a while.
    pub(crate) fn end_idle_episode(&mut self) {
        self.producer.end_idle_episode();
    }

    /// The most data of a message in cells.
    pub(crate) fn cells_bytes_max(&self) -> u64 {
        self.cells_bytes_max
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
        let memory = room.payload_memory();
        let begin = memory.offset + place.offset() as usize;
        let mapping = memory.mapping;
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

fn unsent(reason: NoRoom) -> Unsent {
    match reason {
        NoRoom::Full => Unsent::Full,
        NoRoom::Corrupt => Unsent::Gone,
    }
}
