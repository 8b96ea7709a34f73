//! What the driver lends to the engine, made of plain vectors. Nothing here asserts: a mutated engine may ask for anything,
//! and it is the model that judges.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use hamlyn_engine::grant::Holder;
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::memory::{Area, Denied, LinkId, Outlet, Part, Payload, Unsent, Window};
use hamlyn_engine::packet::{Address, Header, Short, ShortInPlace};

/// An area.
#[derive(Clone, Debug)]
pub struct Plain {
    pub bytes: Rc<RefCell<Vec<u8>>>,
    /// In the application's hands, where writes are denied.
    pub held: Rc<RefCell<Vec<Range<u64>>>>,
    /// What the engine said is complete.
    pub completed: Rc<RefCell<Vec<(u64, u64)>>>,
}

impl Plain {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes: Rc::new(RefCell::new(bytes)),
            held: Rc::default(),
            completed: Rc::default(),
        }
    }

    fn range(&self, offset: u64, length: usize) -> Result<Range<usize>, Denied> {
        let end = offset
            .checked_add(length as u64)
            .filter(|&end| end <= self.length_bytes())
            .ok_or(Denied::OutOfArea)?;
        Ok(offset as usize..end as usize)
    }
}

/// A part of a [`Plain`], or nothing.
#[derive(Debug)]
pub struct PlainWindow(Option<(Plain, Range<u64>)>);

impl Window for PlainWindow {
    fn empty() -> Self {
        Self(None)
    }

    fn write_words(&self, offset: u64, words: [u64; 2]) -> bool {
        let Some((area, range)) = &self.0 else {
            return false;
        };
        let inside = |place: &u64| place.checked_add(16).is_some_and(|end| end <= range.end);
        let place = range.start.checked_add(offset).filter(inside);
        place.is_some_and(|place| area.write_words(place, words).is_ok())
    }
}

impl Area for Plain {
    type Window = PlainWindow;

    fn window(&self, offset: u64, length_bytes: u64) -> PlainWindow {
        let end = offset.checked_add(length_bytes);
        let end = end.filter(|&end| end <= self.length_bytes());
        PlainWindow(end.map(|end| (self.clone(), offset..end)))
    }

    fn length_bytes(&self) -> u64 {
        self.bytes.borrow().len() as u64
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), Denied> {
        let range = self.range(offset, from.len())?;
        let end = range.end as u64;
        let is_held = |held: &Range<u64>| offset < held.end && held.start < end;
        if self.held.borrow().iter().any(is_held) {
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

    fn message_complete(&self, low: u64, high: u64) {
        self.completed.borrow_mut().push((low, high));
    }
}

/// A packet under way.
#[derive(Clone, Debug)]
pub struct Packet {
    pub header: Header,
    pub metadata: Vec<u8>,
    pub data: Vec<u8>,
    /// Who sent it.
    pub holder: Option<Holder>,
}

impl Packet {
    /// Its metadata as one word, if that is what they are.
    pub fn word(&self) -> Option<u64> {
        let bytes: [u8; 8] = self.metadata.as_slice().try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }
}

impl Payload<Plain> for Packet {
    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        let length = length_bytes.min(self.metadata.len()).min(into.len());
        into[..length].copy_from_slice(&self.metadata[..length]);
    }

    fn deposit(&self, area: &Plain, offset: u64) -> Result<(), Denied> {
        area.write(offset, &self.data)
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

    fn data(&self) -> [u64; 2] {
        self.0.data
    }
}

/// A link: how long its packets may be, and how many it still takes.
#[derive(Debug)]
pub struct Wire {
    pub payload_max_bytes: usize,
    pub room: u64,
    /// Who sends over it.
    pub peer: Holder,
}

/// All links; a link that is gone leaves a hole.
#[derive(Debug, Default)]
pub struct Wires {
    pub wires: Vec<Option<Wire>>,
    /// What left, in order.
    pub left: Vec<(LinkId, Packet)>,
}

impl Wires {
    pub fn add(&mut self, payload_max_bytes: usize, peer: Holder) -> LinkId {
        self.wires.push(Some(Wire {
            payload_max_bytes,
            room: 4,
            peer,
        }));
        LinkId {
            index: self.wires.len() as u32 - 1,
            generation: 0,
        }
    }
}

impl Outlet<Plain> for Wires {
    fn payload_max_bytes(&self, link: LinkId) -> Option<usize> {
        let wire = self.wires.get(link.index as usize)?.as_ref();
        wire.map(|wire| wire.payload_max_bytes)
    }

    fn offer(
        &mut self,
        link: LinkId,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Plain>],
    ) -> Result<(), Unsent> {
        let Some(Some(wire)) = self.wires.get_mut(link.index as usize) else {
            return Err(Unsent::Gone);
        };
        if wire.room == 0 {
            return Err(Unsent::Full);
        }
        let mut data = Vec::new();
        for part in parts {
            match part {
                Part::Bytes(bytes) => data.extend_from_slice(bytes),
                Part::Area {
                    area,
                    offset,
                    length_bytes,
                } => {
                    let mut bytes = vec![0; *length_bytes as usize];
                    // What could not be read is missing, and the model sees that.
                    if area.read(*offset, &mut bytes).is_ok() {
                        data.append(&mut bytes);
                    }
                }
            }
        }
        wire.room -= 1;
        self.left.push((
            link,
            Packet {
                header: *header,
                metadata: metadata.to_vec(),
                data,
                holder: Some(wire.peer),
            },
        ));
        Ok(())
    }
}
