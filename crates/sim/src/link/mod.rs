//! Links of the world: packets of the engine, on their way in virtual time.
//!
//! Within a node a link carries what it is given, in packets of their own, in any order that the way between has; it loses
//! nothing. Between nodes with a network it is an association of the engine (`connection`). Both show
//! short packets and single ones in place, so that the engine's fast paths are simulated, too.

pub(crate) mod channel;
pub(crate) mod connection;
pub(crate) mod frames;

pub use frames::{Carrier, Parcel};

use std::collections::VecDeque;

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{SHORT_BYTES_WITH_WORD, USER_METADATA_BYTES};
use hamlyn_engine::memory::{Denied, Part, Payload, ShortSource, Unsent};
use hamlyn_engine::packet::{Address, Flags, Header, Kind, Short, ShortInPlace, short_words};
use hamlyn_engine::point::Point;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{ReceiveToken, Return};
use hamlyn_link::{Link, LinkFault, ReceiveEnd, Refused, Shortcut, TransmitEnd};
use hamlyn_ring::area::Area;
use smallvec::SmallVec;

use crate::world::kernel;
use channel::Packet;

/// The part of a link's room that is held back before it is returned.
const HELD_PART: u64 = 4;

/// Both directions.
pub struct SimLink {
    pub(crate) transmit: SimTransmit,
    pub(crate) receive: SimReceive,
}

impl Link for SimLink {
    type Transmit = SimTransmit;
    type Receive = SimReceive;

    fn split(self) -> (SimTransmit, SimReceive) {
        (self.transmit, self.receive)
    }
}

impl SimLink {
    /// Sends into one channel, takes from the other.
    pub(crate) fn new(into: u32, out_of: u32, payload_max_bytes: usize, room: u32) -> Self {
        let held_max = (u64::from(room) / HELD_PART).max(1);
        Self::of(
            Medium::Channel(into),
            Medium::Channel(out_of),
            payload_max_bytes,
            held_max,
        )
    }

    /// Sends and takes by that connection.
    pub(crate) fn far(connection: u32, payload_max_bytes: usize) -> Self {
        Self::of(
            Medium::Connection(connection),
            Medium::Connection(connection),
            payload_max_bytes,
            u64::MAX,
        )
    }

    fn of(into: Medium, out_of: Medium, payload_max_bytes: usize, held_max: u64) -> Self {
        Self {
            transmit: SimTransmit {
                medium: into,
                payload_max_bytes,
                sent: 0,
                seen: 0,
            },
            receive: SimReceive {
                medium: out_of,
                inbox: VecDeque::new(),
                token: None,
                index: 0,
                refused: Vec::new(),
                taken: 0,
                held: 0,
                held_max,
            },
        }
    }
}

/// What an end uses.
#[derive(Clone, Copy, Debug)]
enum Medium {
    /// Within a node, or over a machine.
    Channel(u32),
    /// Over a network.
    Connection(u32),
}

/// The transmitting end.
pub struct SimTransmit {
    medium: Medium,
    payload_max_bytes: usize,
    sent: u64,
    /// Room that had been returned when it was last found full.
    seen: u64,
}

impl SimTransmit {
    /// To be called when there is room.
    fn send(&mut self, packet: Packet) -> Result<(), Unsent> {
        let sent = kernel::with(|kernel| match self.medium {
            Medium::Channel(channel) => kernel.send(channel, packet),
            Medium::Connection(connection) => kernel.connection_send(connection, &packet),
        });
        self.sent += u64::from(sent.is_ok());
        sent
    }

    fn has_room(&mut self) -> bool {
        kernel::with(|kernel| match self.medium {
            // What unwinds was killed: it says no last words.
            _ if kernel.is_dying() => false,
            Medium::Channel(channel) => {
                self.seen = kernel.channels.returned(channel);
                kernel.has_room(channel)
            }
            Medium::Connection(connection) => kernel.connection_has_room(connection),
        })
    }
}

impl SimTransmit {
    /// Sends a short packet, which passes the engine's points on the way.
    fn send_short(&mut self, short: &Short) -> bool {
        let packet = packet_of(short);
        Self::passes(Point::RequestWritten {
            pieces: 0,
            data_bytes: packet.bytes.len() as u32,
        });
        Self::passes(Point::RequestRead);
        Self::passes(Point::PacketCut);
        let is_sent = self.send(packet).is_ok();
        if is_sent {
            Self::passes(Point::MessageOut);
        }
        is_sent
    }
}

impl TransmitEnd for SimTransmit {
    fn payload_max_bytes(&self) -> usize {
        self.payload_max_bytes
    }

    fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        if !self.has_room() {
            return Err(Unsent::Full);
        }
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

    fn try_send_short(&mut self, short: impl FnOnce() -> Short) -> bool {
        self.has_room() && self.send_short(&short())
    }

    fn try_send_shorts(&mut self, mut next: impl FnMut() -> Option<Short>) -> usize {
        let mut count = 0;
        while self.has_room()
            && let Some(short) = next()
            && self.send_short(&short)
        {
            count += 1;
        }
        count
    }

    fn fault(&self) -> Option<LinkFault> {
        None
    }

    fn await_credit(&mut self, is_needed: bool, fence: Option<u64>) {
        kernel::with(|kernel| match self.medium {
            Medium::Channel(channel) => kernel.channels.await_credit(channel, is_needed, fence),
            Medium::Connection(connection) => {
                kernel.connection_await_room(connection, is_needed, fence)
            }
        });
    }

    fn fence(&mut self) -> Result<u64, Unsent> {
        match self.medium {
            // All packets before it have these numbers; that they were taken is known at once.
            Medium::Channel(_) => Ok(self.sent),
            Medium::Connection(connection) => {
                kernel::with(|kernel| kernel.connection_fence(connection))
            }
        }
    }

    fn is_answered(&mut self, fence: u64) -> Result<bool, Unsent> {
        kernel::with(|kernel| match self.medium {
            Medium::Channel(channel) => Ok(kernel.channels.is_taken(channel, fence)),
            Medium::Connection(connection) => kernel.connection_is_answered(connection, fence),
        })
    }

    fn may_be_answered(&self, fence: u64) -> bool {
        kernel::with(|kernel| match self.medium {
            Medium::Channel(channel) => kernel.channels.is_taken(channel, fence),
            Medium::Connection(connection) => {
                kernel.connection_is_answered(connection, fence) != Ok(false)
            }
        })
    }

    fn is_all_taken(&mut self) -> bool {
        kernel::with(|kernel| match self.medium {
            Medium::Channel(channel) => kernel.channels.is_taken(channel, self.sent),
            Medium::Connection(connection) => kernel.connection_is_all_taken(connection),
        })
    }

    fn refused(&mut self) -> Refused {
        kernel::with(|kernel| match self.medium {
            Medium::Channel(channel) => kernel.channels.refused(channel),
            Medium::Connection(connection) => kernel.connection_refused(connection),
        })
    }

    fn credit_came(&self) -> bool {
        kernel::with(|kernel| match self.medium {
            Medium::Channel(channel) => kernel.channels.returned(channel) != self.seen,
            Medium::Connection(connection) => kernel.connection_has_room(connection),
        })
    }

    fn give_back(&mut self) -> usize {
        0
    }

    fn has_spare(&self) -> bool {
        false
    }

    fn sent(&self) -> u64 {
        self.sent
    }

    fn next_returned(&mut self) -> Option<(Header, Return)> {
        match self.medium {
            Medium::Channel(channel) => {
                kernel::with(|kernel| kernel.channels.next_returned(channel))
            }
            Medium::Connection(connection) => {
                kernel::with(|kernel| kernel.connection_next_returned(connection))
            }
        }
    }

    fn forgotten(&self) -> u64 {
        kernel::with(|kernel| match self.medium {
            Medium::Channel(channel) => kernel.channels.forgotten(channel),
            Medium::Connection(connection) => kernel.connection_forgotten(connection),
        })
    }

    fn passes(point: Point) {
        kernel::with(|kernel| kernel.pass(point));
    }
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
pub struct SimReceive {
    medium: Medium,
    /// What has come and was collected.
    inbox: VecDeque<Packet>,
    /// From afar: the frame that it was in, how many of its packets were taken, and which of these were not welcome.
    token: Option<ReceiveToken>,
    index: u16,
    refused: Vec<(u16, Refusal)>,
    taken: u64,
    /// Of these the room is not returned yet.
    held: u64,
    held_max: u64,
}

impl SimReceive {
    fn collect(&mut self) -> bool {
        if !self.inbox.is_empty() {
            return false;
        }
        match self.medium {
            Medium::Channel(channel) => {
                kernel::with(|kernel| kernel.channels.collect(channel, &mut self.inbox));
            }
            Medium::Connection(connection) => {
                self.token =
                    kernel::with(|kernel| kernel.connection_collect(connection, &mut self.inbox));
                self.index = 0;
                self.end_frame(connection);
            }
        }
        !self.inbox.is_empty()
    }

    fn take_first(&mut self) -> Option<Packet> {
        let packet = self.inbox.pop_front()?;
        self.taken += 1;
        kernel::with(|kernel| kernel.charge(kernel.settings.costs.receive));
        match self.medium {
            Medium::Channel(channel) => {
                kernel::with(|kernel| kernel.note_taken(channel, packet.number));
                self.held += 1;
                if self.held >= self.held_max {
                    self.return_credit();
                }
            }
            Medium::Connection(connection) => {
                self.index += 1;
                self.end_frame(connection);
            }
        }
        Some(packet)
    }

    /// If all packets of a frame were taken, it is done with.
    fn end_frame(&mut self, connection: u32) {
        if self.inbox.is_empty()
            && let Some(token) = self.token.take()
        {
            kernel::with(|kernel| kernel.connection_taken(connection, token, &self.refused));
            self.refused.clear();
        }
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
        kernel::with(|kernel| kernel.pass(point));
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

    fn deposit(&self, area: &Area, offset: u64) -> Result<(), Denied> {
        if self.0.header.flags.is_placed() {
            return Ok(());
        }
        area.write_at(offset, self.0.data())
    }

    fn passes(&self, point: Point) {
        kernel::with(|kernel| kernel.pass(point));
    }
}

impl Shortcut for SimReceive {
    type InCell<'a, const HAS_METADATA: bool> = InPlace<'a, HAS_METADATA>;

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

impl ReceiveEnd for SimReceive {
    type Payload<'a> = Carried<'a>;
    type Shortcut = Self;

    fn shortcut(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    fn return_due_credit(&mut self) -> bool {
        self.collect()
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &Self::Payload<'_>) -> R,
    ) -> Result<Option<R>, LinkFault> {
        self.collect();
        let Some(packet) = self.inbox.front() else {
            return Ok(None);
        };
        let result = take(&packet.header, &Carried(packet));
        self.take_first();
        Ok(Some(result))
    }

    fn receive_or_refuse<R>(
        &mut self,
        take: impl FnOnce(&Header, &Self::Payload<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        self.collect();
        let Some(packet) = self.inbox.front() else {
            return Ok(None);
        };
        let result = take(&packet.header, &Carried(packet));
        if let Err(refusal) = &result {
            match self.medium {
                Medium::Connection(_) => self.refused.push((self.index, *refusal)),
                Medium::Channel(channel) => {
                    let (header, reason) = (packet.header, Return::Refused(*refusal));
                    kernel::with(|kernel| kernel.channels.report(channel, header, reason));
                }
            }
        }
        self.take_first();
        Ok(Some(result))
    }

    fn is_pending(&self) -> bool {
        !self.inbox.is_empty()
            || kernel::with(|kernel| match self.medium {
                Medium::Channel(channel) => kernel.channels.is_pending(channel),
                Medium::Connection(connection) => kernel.connection_is_pending(connection),
            })
    }

    fn return_credit(&mut self) {
        match self.medium {
            Medium::Channel(channel) if self.held > 0 => {
                let held = std::mem::take(&mut self.held);
                kernel::with(|kernel| kernel.give_back(channel, held));
            }
            Medium::Channel(_) => {}
            Medium::Connection(connection) => {
                kernel::with(|kernel| kernel.connection_settle(connection))
            }
        }
    }

    fn return_arena_credit(&mut self) {}

    fn ready_bit(&self) -> u32 {
        hamlyn_ring::ready_bitmap::READY_BITS_MAX
    }

    fn suppress_events(&mut self) {
        self.announce(false);
    }

    fn enable_events(&mut self) -> bool {
        // There are no ready bits here.
        false
    }

    fn announce_sleep(&mut self) {
        self.announce(true);
    }
}

impl SimReceive {
    fn announce(&self, asleep: bool) {
        // What comes over a network rings for every frame.
        if let Medium::Channel(channel) = self.medium {
            kernel::with(|kernel| kernel.channels.announce(channel, asleep));
        }
    }
}

impl Drop for SimReceive {
    fn drop(&mut self) {
        let (medium, token) = (self.medium, self.token.take());
        kernel::with_if_any(|kernel| match medium {
            Medium::Channel(channel) => kernel.channels.deafen(channel),
            Medium::Connection(connection) => {
                if let Some(token) = token {
                    kernel.connection_nack(connection, token);
                }
                kernel.close_connection(connection);
            }
        });
    }
}
