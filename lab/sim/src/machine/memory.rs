//! The memory that the hosts of the machine lend to the engine, and its packets on their way.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::memory::{
    Area, Denied, LinkId, NoWindow, Part, Payload, TxLinks, Unsent, Window, copy_all,
};
use hamlyn_engine::operation::{REQUEST_WORDS, leading_words};
use hamlyn_engine::packet::Header;
use hamlyn_engine::point::Point;

/// A piece of a host's main memory. Clones name the same bytes.
#[derive(Clone, Debug)]
pub struct Memory(Rc<RefCell<Vec<u8>>>);

impl Memory {
    /// So many bytes, all zero.
    pub fn new(length_bytes: usize) -> Self {
        Self(Rc::new(RefCell::new(vec![0; length_bytes])))
    }

    /// A copy of a part of it; nothing if it does not lie inside.
    pub fn copy(&self, range: Range<usize>) -> Option<Vec<u8>> {
        self.0.borrow().get(range).map(<[u8]>::to_vec)
    }

    fn range(&self, offset: u64, length: usize) -> Result<Range<usize>, Denied> {
        let end = offset
            .checked_add(length as u64)
            .filter(|&end| end <= self.length_bytes())
            .ok_or(Denied::OutOfArea)?;
        Ok(offset as usize..end as usize)
    }
}

impl Area for Memory {
    type Window = NoWindow;

    fn length_bytes(&self) -> u64 {
        self.0.borrow().len() as u64
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), Denied> {
        let range = self.range(offset, from.len())?;
        self.0.borrow_mut()[range].copy_from_slice(from);
        Ok(())
    }

    fn window(&self, _: u64, _: u64) -> NoWindow {
        NoWindow::empty()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Denied> {
        let range = self.range(offset, into.len())?;
        into.copy_from_slice(&self.0.borrow()[range]);
        Ok(())
    }
}

/// A packet as the engine made it.
#[derive(Clone, Debug)]
pub struct Packet {
    /// What it says of itself.
    pub header: Header,
    /// Its metadata.
    pub metadata: Vec<u8>,
    /// Its data.
    pub data: Vec<u8>,
}

impl Packet {
    /// Bytes of metadata and data.
    pub fn payload_bytes(&self) -> u64 {
        (self.metadata.len() + self.data.len()) as u64
    }
}

/// A packet that is received, and the points that its reception passed.
#[derive(Clone, Debug)]
pub(super) struct Arriving<'a> {
    pub(super) packet: &'a Packet,
    pub(super) points: Rc<RefCell<Vec<Point>>>,
}

impl Payload<Memory> for Arriving<'_> {
    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        into[..length_bytes].copy_from_slice(&self.packet.metadata[..length_bytes]);
    }

    fn words(&self) -> [u64; REQUEST_WORDS] {
        leading_words(&self.packet.data)
    }

    fn deposit(&self, area: &Memory, offset: u64) -> Result<(), Denied> {
        area.write(offset, &self.packet.data)
    }

    fn copy_to(&self, into: &mut [u8]) -> Result<(), Denied> {
        copy_all(&self.packet.data, into)
    }

    fn passes(&self, point: Point) {
        self.points.borrow_mut().push(point);
    }
}

/// The source of packets: takes the next packet from the engine when the interface processor asks
/// for it, and none otherwise.
#[derive(Debug)]
pub struct Source {
    packet_max_bytes: usize,
    is_open: bool,
    taken: Option<(LinkId, Packet)>,
    points: RefCell<Vec<Point>>,
}

impl Source {
    /// For packets with so much payload at most.
    pub fn new(packet_max_bytes: usize) -> Self {
        Self {
            packet_max_bytes,
            is_open: false,
            taken: None,
            points: RefCell::default(),
        }
    }

    /// Lets one packet out.
    pub fn open(&mut self) {
        self.is_open = true;
    }

    /// The points that were passed since this was last asked.
    pub(super) fn points(&mut self) -> Vec<Point> {
        self.points.take()
    }

    /// The packet, if one came; closes the source.
    pub fn close(&mut self) -> Option<(LinkId, Packet)> {
        self.is_open = false;
        self.taken.take()
    }
}

impl TxLinks<Memory> for Source {
    fn payload_max_bytes(&self, _: LinkId) -> Option<usize> {
        Some(self.packet_max_bytes)
    }

    fn offer(
        &mut self,
        link: LinkId,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Memory>],
    ) -> Result<(), Unsent> {
        if !self.is_open || self.taken.is_some() {
            return Err(Unsent::Full);
        }
        let mut data = Vec::with_capacity(header.length_bytes as usize);
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
                    // The engine has bounded it, and areas are never unbound here.
                    area.read(*offset, &mut data[start..])
                        .map_err(|_| Unsent::Gone)?;
                }
            }
        }
        let packet = Packet {
            header: *header,
            metadata: metadata.to_vec(),
            data,
        };
        self.taken = Some((link, packet));
        Ok(())
    }

    fn passes(&self, point: Point) {
        // A closed source is no link: what is offered to it waits, and is cut when it is sent.
        if self.is_open || matches!(point, Point::RequestWritten { .. }) {
            self.points.borrow_mut().push(point);
        }
    }
}
