//! What a host lends to the engine, made of plain vectors: areas, packets, links.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test includes it and uses its part"
)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::memory::{
    Area, Denied, LinkId, Part, Payload, ShortSource, TxLinks, Unsent, Window, copy_all,
};
use hamlyn_engine::metadata::MetadataArea;
use hamlyn_engine::operation::{REQUEST_WORDS, leading_words};
use hamlyn_engine::packet::{Address, Flags, Header, Kind, Short, ShortInPlace, SlotName};
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::{Mode, QueueId, Rights, SlotOptions};
use hamlyn_engine::terminus::{TerminusId, TerminusOptions};
use hamlyn_engine::transmit::{Message, Transmitter};

/// An area. Its length and its contents are looked at by the tests from outside the engine.
#[derive(Clone, Debug)]
pub struct VecArea {
    pub bytes: Rc<RefCell<Vec<u8>>>,
    /// Ranges in the application's hands, where writes are denied.
    pub in_use: Rc<RefCell<Vec<Range<u64>>>>,
    /// Ranges of which the engine said that their message is complete.
    pub completed: Rc<RefCell<Vec<(u64, u64)>>>,
}

impl VecArea {
    pub fn new(length_bytes: usize) -> Self {
        Self::from_bytes(vec![0; length_bytes])
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self {
            bytes: Rc::new(RefCell::new(bytes)),
            in_use: Rc::default(),
            completed: Rc::default(),
        }
    }

    pub fn contents(&self) -> Vec<u8> {
        self.bytes.borrow().clone()
    }

    fn range(&self, offset: u64, length: usize) -> Result<Range<usize>, Denied> {
        let end = offset
            .checked_add(length as u64)
            .filter(|&end| end <= self.length_bytes())
            .ok_or(Denied::OutOfArea)?;
        Ok(offset as usize..end as usize)
    }
}

/// A part of a [`VecArea`].
#[derive(Debug)]
pub struct VecWindow(Option<(VecArea, Range<u64>)>);

impl Window for VecWindow {
    fn empty() -> Self {
        Self(None)
    }

    fn write_short(&self, offset: u64, data: &impl ShortSource) -> bool {
        let Some((area, range)) = &self.0 else {
            return false;
        };
        let place = range.start.checked_add(offset);
        let length = data.length_bytes() as u64;
        let inside = |place: &u64| {
            let end = place.checked_add(length);
            end.is_some_and(|end| end <= range.end)
        };
        place
            .filter(inside)
            .is_some_and(|place| area.write_short(place, data.copied_data()).is_ok())
    }
}

impl Area for VecArea {
    type Window = VecWindow;

    fn window(&self, offset: u64, length_bytes: u64) -> VecWindow {
        let end = offset.checked_add(length_bytes);
        let end = end.filter(|&end| end <= self.length_bytes());
        VecWindow(end.map(|end| (self.clone(), offset..end)))
    }

    fn length_bytes(&self) -> u64 {
        self.bytes.borrow().len() as u64
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), Denied> {
        let range = self.range(offset, from.len())?;
        let end = range.end as u64;
        let is_held = |held: &Range<u64>| offset < held.end && held.start < end;
        if self.in_use.borrow().iter().any(is_held) {
            return Err(Denied::InUse);
        }
        self.bytes.borrow_mut()[range].copy_from_slice(from);
        Ok(())
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Denied> {
        let range = self.range(offset, into.len())?;
        into.copy_from_slice(&self.bytes.borrow()[range]);
        Ok(())
    }

    fn complete_with_short(
        &self,
        offset: u64,
        data: &impl ShortSource,
        low: u64,
        high: u64,
    ) -> bool {
        let is_written = self.write_short(offset, data.copied_data()).is_ok();
        if is_written {
            self.message_complete(low, high);
        }
        is_written
    }

    fn message_complete(&self, low: u64, high: u64) {
        self.completed.borrow_mut().push((low, high));
    }
}

/// A short packet as if it lay in a cell; with metadata, or without.
pub struct InPlace<'a, const HAS_METADATA: bool>(pub &'a Short);

impl<const HAS_METADATA: bool> ShortInPlace for InPlace<'_, HAS_METADATA> {
    const HAS_METADATA: bool = HAS_METADATA;

    fn to(&self) -> Address {
        self.0.to
    }

    fn key(&self) -> Key {
        self.0.key
    }

    fn offset(&self) -> u64 {
        self.0.offset
    }

    fn word(&self) -> u64 {
        self.0.word
    }
}

impl<const HAS_METADATA: bool> ShortSource for InPlace<'_, HAS_METADATA> {
    fn length_bytes(&self) -> usize {
        usize::from(self.0.length_bytes)
    }

    /// What lies beyond the data in a cell may be anything.
    fn data_word<const NUMBER: usize>(&self) -> u64 {
        let bytes = self.length_bytes().saturating_sub(8 * NUMBER);
        self.0.data[NUMBER] | u64::MAX.checked_shl(8 * bytes as u32).unwrap_or(0)
    }
}

/// A packet under way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    pub header: Header,
    pub metadata: Vec<u8>,
    pub data: Vec<u8>,
}

impl Packet {
    /// A packet whose header says how long its parts are.
    pub fn new(header: Header, metadata: &[u8], data: &[u8]) -> Self {
        Self {
            header: Header {
                length_bytes: data.len() as u32,
                metadata_length_bytes: metadata.len() as u8,
                ..header
            },
            metadata: metadata.to_vec(),
            data: data.to_vec(),
        }
    }
}

impl Payload<VecArea> for Packet {
    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        into[..length_bytes].copy_from_slice(&self.metadata[..length_bytes]);
    }

    fn words(&self) -> [u64; REQUEST_WORDS] {
        leading_words(&self.data)
    }

    fn deposit(&self, area: &VecArea, offset: u64) -> Result<(), Denied> {
        area.write(offset, &self.data)
    }

    fn copy_to(&self, into: &mut [u8]) -> Result<(), Denied> {
        copy_all(&self.data, into)
    }
}

/// The link over which packets come, unless a test says otherwise.
pub const PEER: LinkId = LinkId {
    index: 1,
    generation: 1,
};

/// A header with nothing remarkable about it.
pub fn header(slot: SlotName, key: u64, offset: u64) -> Header {
    Header {
        slot,
        metadata_index: 0,
        key: Key::from_bits(key),
        offset,
        length_bytes: 0,
        word: 0,
        metadata_length_bytes: 0,
        flags: Flags::NONE,
        kind: Kind::WRITE,
    }
}

/// A message alone, to a slot that only the link knows.
pub fn message(link: LinkId) -> Message {
    Message {
        link,
        header: header(SlotName::new(3, 1), 0x4B_4559, 0),
        share: Share::whole(Default::default()),
    }
}

/// What a slot over a whole area is opened with; its key is 1.
pub fn options(
    area: &VecArea,
    mode: Mode,
    metadata: Option<&MetadataArea>,
    queue: Option<QueueId>,
) -> SlotOptions<VecArea> {
    SlotOptions {
        area: area.clone(),
        base: 0,
        length_bytes: area.bytes.borrow().len() as u64,
        key: Key::from_bits(1),
        rights: Rights::WRITE,
        mode,
        metadata: metadata.cloned(),
        queue,
        counting: Counting::Bits32,
    }
}

/// An interface that takes packets.
pub fn ready() -> Receiver<VecArea> {
    let mut receiver = Receiver::new(None);
    receiver.set_up(0);
    receiver
}

/// Takes a packet made of these.
pub fn receive(
    receiver: &mut Receiver<VecArea>,
    header: Header,
    metadata: &[u8],
    data: &[u8],
) -> Result<Received, Refusal> {
    let packet = Packet::new(header, metadata, data);
    receiver.receive(PEER, &packet.header, &packet, None)
}

/// A transmitting half with one terminus.
pub fn one() -> (Transmitter<VecArea>, TerminusId) {
    let mut transmitter = Transmitter::new();
    let terminus = transmitter
        .open_terminus(TerminusOptions::default())
        .unwrap();
    (transmitter, terminus)
}

/// A message whose place says which it is.
pub fn numbered(link: LinkId, number: u64) -> Message {
    let plain = message(link);
    Message {
        header: Header {
            offset: number * 1_000,
            ..plain.header
        },
        ..plain
    }
}

/// A link that takes packets while it has room.
#[derive(Debug)]
pub struct Wire {
    pub payload_max_bytes: usize,
    pub room: usize,
    pub packets: VecDeque<Packet>,
}

/// The links of a host; a link that is gone leaves a hole.
#[derive(Debug, Default)]
pub struct Wires {
    pub wires: Vec<Option<Wire>>,
    /// Packets offered, taken or not.
    pub offers: usize,
    /// Whether they say beforehand that a link has no room.
    pub tells_room: bool,
}

impl Wires {
    pub fn add(&mut self, payload_max_bytes: usize, room: usize) -> LinkId {
        self.wires.push(Some(Wire {
            payload_max_bytes,
            room,
            packets: VecDeque::new(),
        }));
        LinkId {
            index: self.wires.len() as u32 - 1,
            generation: 0,
        }
    }

    /// One link that takes everything.
    pub fn wide(payload_max_bytes: usize) -> (Self, LinkId) {
        let mut wires = Self::default();
        let link = wires.add(payload_max_bytes, usize::MAX);
        (wires, link)
    }

    /// One link with that much room.
    pub fn with_room(payload_max_bytes: usize, room: usize) -> (Self, LinkId) {
        let mut wires = Self::default();
        let link = wires.add(payload_max_bytes, room);
        (wires, link)
    }

    pub fn wire(&mut self, link: LinkId) -> &mut Wire {
        self.wires[link.index as usize]
            .as_mut()
            .expect("the link is there")
    }

    pub fn lose(&mut self, link: LinkId) {
        self.wires[link.index as usize] = None;
    }

    /// Takes everything that was sent on a link.
    pub fn drain(&mut self, link: LinkId) -> Vec<Packet> {
        self.wire(link).packets.drain(..).collect()
    }
}

impl TxLinks<VecArea> for Wires {
    fn payload_max_bytes(&self, link: LinkId) -> Option<usize> {
        self.wires
            .get(link.index as usize)?
            .as_ref()
            .map(|wire| wire.payload_max_bytes)
    }

    fn may_take(&self, link: LinkId) -> bool {
        let wire = self.wires[link.index as usize].as_ref();
        !self.tells_room || wire.is_some_and(|wire| wire.room > 0)
    }

    fn offer(
        &mut self,
        link: LinkId,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, VecArea>],
    ) -> Result<(), Unsent> {
        self.offers += 1;
        let Some(Some(wire)) = self.wires.get_mut(link.index as usize) else {
            return Err(Unsent::Gone);
        };
        let mut data = Vec::new();
        for part in parts {
            match part {
                Part::Bytes(bytes) => data.extend_from_slice(bytes),
                Part::Area {
                    area,
                    offset,
                    length_bytes,
                } => {
                    let start = data.len();
                    data.resize(start + *length_bytes as usize, 0);
                    area.read(*offset, &mut data[start..])
                        .expect("the engine stays within send-buffer areas");
                }
            }
        }
        let travels = !header.flags.is_placed();
        assert_eq!(
            data.len(),
            header.length_bytes as usize * usize::from(travels),
            "parts as long as the header says"
        );
        assert_eq!(metadata.len(), usize::from(header.metadata_length_bytes));
        assert!(
            data.len() + metadata.len() <= wire.payload_max_bytes,
            "packet too long for its link"
        );
        if wire.room == 0 {
            return Err(Unsent::Full);
        }
        wire.room = wire
            .room
            .saturating_sub(usize::from(wire.room != usize::MAX));
        wire.packets.push_back(Packet {
            header: *header,
            metadata: metadata.to_vec(),
            data,
        });
        Ok(())
    }
}

/// Bytes that differ from their neighbours and from those of other seeds.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64)
        .map(|at| {
            let mixed = (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
                ^ seed.wrapping_mul(0xD6E8_FEB8_6659_FD93);
            (mixed >> 29) as u8 | 1
        })
        .collect()
}
