//! Links by channels: within a node, or between nodes without a network.

use std::collections::VecDeque;

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{SHORT_BYTES_WITH_WORD, USER_METADATA_BYTES};
use hamlyn_engine::memory::{Denied, Part, Payload, ShortSource, Unsent, copy_all};
use hamlyn_engine::operation::{REQUEST_WORDS, leading_words};
use hamlyn_engine::packet::{Address, Flags, Header, Kind, Short, ShortInPlace, short_words};
use hamlyn_engine::point::Point;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::Return;
use hamlyn_link::{LinkFault, Refused, Shortcut};
use hamlyn_ring::area::Area;
use smallvec::SmallVec;

use super::channel::Packet;
use crate::world::kernel;

/// The part of a link's room that is held back before it is returned.
const HELD_PART: u64 = 4;

/// Both directions.
pub struct ChannelLink {
    pub(super) transmit: ChannelTransmit,
    pub(super) receive: ChannelReceive,
}

impl ChannelLink {
    /// Sends into one channel, takes from the other.
    pub(crate) fn new(into: u32, out_of: u32, payload_max_bytes: usize, room: u32) -> Self {
        Self {
            transmit: ChannelTransmit {
                channel: into,
                payload_max_bytes,
                sent: 0,
                seen: 0,
            },
            receive: ChannelReceive {
                channel: out_of,
                inbox: VecDeque::new(),
                taken: 0,
                held: 0,
                held_max: (u64::from(room) / HELD_PART).max(1),
            },
        }
    }
}

/// The transmitting end.
pub struct ChannelTransmit {
    channel: u32,
    payload_max_bytes: usize,
    sent: u64,
    /// Room that had been returned when it was last found full.
    seen: u64,
}

impl ChannelTransmit {
    /// To be called when there is room.
    fn send(&mut self, packet: Packet) -> Result<(), Unsent> {
        let sent = kernel::with(|kernel| kernel.send(self.channel, packet));
        self.sent += u64::from(sent.is_ok());
        sent
    }

    fn has_room(&mut self) -> bool {
        kernel::with(|kernel| {
            // What unwinds was killed: it says no last words.
            if kernel.is_dying() {
                return false;
            }
            self.seen = kernel.channels.returned(self.channel);
            kernel.has_room(self.channel)
        })
    }

    /// Sends a short packet, which passes the engine's points on the way.
    fn send_short(&mut self, short: &Short) -> bool {
        let packet = packet_of(short);
        pass(Point::RequestWritten {
            pieces: 0,
            data_bytes: packet.bytes.len() as u32,
        });
        pass(Point::RequestRead);
        pass(Point::PacketCut);
        let is_sent = self.send(packet).is_ok();
        if is_sent {
            pass(Point::MessageOut);
        }
        is_sent
    }

    pub(super) fn payload_max_bytes(&self) -> usize {
        self.payload_max_bytes
    }

    pub(super) fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        if !self.has_room() {
            return Err(Unsent::Full);
        }
        let bytes = gathered(metadata, parts)?;
        // What is sent is what is here, whatever the header says.
        let placed = header.flags.is_placed();
        let length_bytes = (bytes.len() - metadata.len()) as u32;
        let header = Header {
            length_bytes: if placed {
                header.length_bytes
            } else {
                length_bytes
            },
            metadata_length_bytes: metadata.len() as u8,
            ..*header
        };
        self.send(Packet {
            header,
            bytes,
            number: 0,
        })
    }

    pub(super) fn try_send_short<M>(&mut self, short: M) -> bool
    where
        Short: From<M>,
    {
        self.has_room() && self.send_short(&Short::from(short))
    }

    pub(super) fn try_send_shorts(&mut self, mut next: impl FnMut() -> Option<Short>) -> usize {
        let mut count = 0;
        while self.has_room()
            && let Some(short) = next()
            && self.send_short(&short)
        {
            count += 1;
        }
        count
    }

    pub(super) fn await_credit(&mut self, is_needed: bool, fence: Option<u64>) {
        kernel::with(|kernel| {
            kernel.channels.await_credit(self.channel, is_needed, fence);
        });
    }

    pub(super) fn credit_came(&self) -> bool {
        kernel::with(|kernel| kernel.channels.returned(self.channel) != self.seen)
    }

    /// All packets before it have these numbers; that they were taken is known at once.
    pub(super) fn fence(&mut self) -> Result<u64, Unsent> {
        Ok(self.sent)
    }

    pub(super) fn is_answered(&mut self, fence: u64) -> Result<bool, Unsent> {
        Ok(self.may_be_answered(fence))
    }

    pub(super) fn may_be_answered(&self, fence: u64) -> bool {
        kernel::with(|kernel| kernel.channels.is_taken(self.channel, fence))
    }

    pub(super) fn is_all_taken(&mut self) -> bool {
        self.may_be_answered(self.sent)
    }

    pub(super) fn refused(&mut self) -> Refused {
        kernel::with(|kernel| kernel.channels.refused(self.channel))
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) fn next_returned(&mut self) -> Option<(Header, Return)> {
        kernel::with(|kernel| kernel.channels.next_returned(self.channel))
    }

    pub(super) fn forgotten(&self) -> u64 {
        kernel::with(|kernel| kernel.channels.forgotten(self.channel))
    }
}

fn pass(point: Point) {
    kernel::pass(point);
}

/// The metadata of a packet, and after it the data of all parts.
pub(crate) fn gathered(
    metadata: &[u8],
    parts: &[Part<'_, Area>],
) -> Result<SmallVec<[u8; 24]>, Unsent> {
    let mut bytes = SmallVec::from_slice(metadata);
    for part in parts {
        let begin = bytes.len();
        match part {
            Part::Bytes(data) => bytes.extend_from_slice(data),
            Part::Area { area, offset, .. } => {
                bytes.resize(begin + part.length_bytes(), 0);
                // The engine has checked that it lies inside.
                area.read_at(*offset, &mut bytes[begin..])
                    .map_err(|_| Unsent::Gone)?;
            }
        }
    }
    Ok(bytes)
}

fn packet_of(short: &Short) -> Packet {
    let header = short.header();
    let metadata = short.word.to_le_bytes();
    let metadata = &metadata[..usize::from(header.metadata_length_bytes)];
    let mut bytes = SmallVec::from_slice(metadata);
    bytes.extend_from_slice(&short.bytes());
    Packet {
        header,
        bytes,
        number: 0,
    }
}

/// The receiving end.
pub struct ChannelReceive {
    channel: u32,
    /// What has come and was collected.
    inbox: VecDeque<Packet>,
    taken: u64,
    /// Of these the room is not returned yet.
    held: u64,
    held_max: u64,
}

impl ChannelReceive {
    pub(super) fn collect(&mut self) -> bool {
        if !self.inbox.is_empty() {
            return false;
        }
        kernel::with(|kernel| kernel.channels.collect(self.channel, &mut self.inbox));
        !self.inbox.is_empty()
    }

    fn take_first(&mut self) -> Option<Packet> {
        let packet = self.inbox.pop_front()?;
        self.taken += 1;
        kernel::with(|kernel| {
            kernel.charge(kernel.settings.costs.receive);
            kernel.note_taken(self.channel, packet.number);
        });
        self.held += 1;
        if self.held >= self.held_max {
            self.return_credit();
        }
        Some(packet)
    }

    fn peek<const HAS_METADATA: bool>(&self) -> Option<InPlace<'_, HAS_METADATA>> {
        let packet = self.inbox.front()?;
        let metadata_bytes = if HAS_METADATA { size_of::<u64>() } else { 0 };
        let header = &packet.header;
        let is_short = header.kind == Kind::WRITE
            && header.flags == Flags::NONE
            && header.length_bytes as usize <= SHORT_BYTES_WITH_WORD
            && usize::from(header.metadata_length_bytes) == metadata_bytes
            && (!HAS_METADATA || header.word == 0 && !header.is_fast());
        is_short.then_some(InPlace(packet))
    }
}

impl ChannelReceive {
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
    ) -> Result<Option<R>, LinkFault> {
        self.collect();
        let Some(packet) = self.inbox.front() else {
            return Ok(None);
        };
        let result = take(&packet.header, &Carried(packet));
        self.take_first();
        Ok(Some(result))
    }

    pub(super) fn receive_or_refuse<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        self.collect();
        let Some(packet) = self.inbox.front() else {
            return Ok(None);
        };
        let result = take(&packet.header, &Carried(packet));
        if let Err(refusal) = &result {
            let (header, reason) = (packet.header, Return::Refused(*refusal));
            kernel::with(|kernel| kernel.channels.report(self.channel, header, reason));
        }
        self.take_first();
        Ok(Some(result))
    }

    pub(super) fn is_pending(&self) -> bool {
        !self.inbox.is_empty() || kernel::with(|kernel| kernel.channels.is_pending(self.channel))
    }

    pub(super) fn return_credit(&mut self) {
        if self.held > 0 {
            let held = std::mem::take(&mut self.held);
            kernel::with(|kernel| kernel.give_back(self.channel, held));
        }
    }

    pub(super) fn announce(&self, asleep: bool) {
        kernel::with(|kernel| kernel.channels.announce(self.channel, asleep));
    }
}

impl Drop for ChannelReceive {
    fn drop(&mut self) {
        kernel::with_if_any(|kernel| kernel.channels.deafen(self.channel));
    }
}

/// A short packet, where it lies.
pub struct InPlace<'a, const HAS_METADATA: bool>(&'a Packet);

fn word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl<const HAS_METADATA: bool> ShortInPlace for InPlace<'_, HAS_METADATA> {
    const HAS_METADATA: bool = HAS_METADATA;

    fn to(&self) -> Address {
        Address::new(self.0.header.slot, self.0.header.metadata_index)
    }

    fn key(&self) -> Key {
        self.0.header.key
    }

    fn offset(&self) -> u64 {
        self.0.header.offset
    }

    fn word(&self) -> u64 {
        if HAS_METADATA {
            word(self.0.metadata())
        } else {
            self.0.header.word
        }
    }

    fn passes(&self, point: Point) {
        pass(point);
    }
}

impl<const HAS_METADATA: bool> ShortSource for InPlace<'_, HAS_METADATA> {
    fn length_bytes(&self) -> usize {
        self.0.data().len()
    }

    fn data_word<const NUMBER: usize>(&self) -> u64 {
        short_words(self.0.data()).unwrap_or_default()[NUMBER]
    }
}

/// The bytes that came with a packet.
#[derive(Clone, Copy)]
pub struct Carried<'a>(&'a Packet);

impl Payload<Area> for Carried<'_> {
    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        for (to, from) in into.iter_mut().zip(self.0.metadata()).take(length_bytes) {
            *to = *from;
        }
    }

    fn metadata_word(&self) -> Option<u64> {
        let metadata = self.0.metadata();
        (metadata.len() <= size_of::<u64>()).then(|| {
            let mut word = [0; size_of::<u64>()];
            word[..metadata.len()].copy_from_slice(metadata);
            u64::from_le_bytes(word)
        })
    }

    fn words(&self) -> [u64; REQUEST_WORDS] {
        leading_words(self.0.data())
    }

    fn deposit(&self, area: &Area, offset: u64) -> Result<(), Denied> {
        if self.0.header.flags.is_placed() {
            return Ok(());
        }
        area.write_at(offset, self.0.data())
    }

    fn copy_to(&self, into: &mut [u8]) -> Result<(), Denied> {
        copy_all(self.0.data(), into)
    }

    fn passes(&self, point: Point) {
        pass(point);
    }
}

impl Shortcut for ChannelReceive {
    type InCell<'a, const HAS_METADATA: bool> = InPlace<'a, HAS_METADATA>;
    type InCells<'a, const HAS_METADATA: bool> = InPlace<'a, HAS_METADATA>;

    fn peek_short<const HAS_METADATA: bool>(&self) -> Option<InPlace<'_, HAS_METADATA>> {
        self.peek()
    }

    fn is_blind(&self) -> bool {
        self.inbox.is_empty()
    }

    fn short_done(&mut self) {
        self.take_first();
    }
}
