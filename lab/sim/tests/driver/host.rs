//! What the driver lends to the engine, made of plain vectors. Nothing here asserts: a mutated
//! engine may ask for anything, and it is the model that judges.

use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::memory::{Area, Denied, LinkId, Part, Payload, TxLinks, Unsent, copy_all};
use hamlyn_engine::operation::{REQUEST_WORDS, leading_words};
use hamlyn_engine::packet::Header;

/// What the engine's own tests lend to it. Its areas and packets in place serve here, too; its
/// links assert.
#[path = "../../../../crates/engine/tests/host/mod.rs"]
mod engine;

pub use engine::{InPlace, VecArea};

/// A packet under way.
#[derive(Clone, Debug)]
pub struct Packet {
    pub header: Header,
    pub metadata: Vec<u8>,
    pub data: Vec<u8>,
    /// Who sent it.
    pub from: LinkId,
}

impl Packet {
    /// Its metadata as one word, if that is what they are.
    pub fn word(&self) -> Option<u64> {
        let bytes: [u8; 8] = self.metadata.as_slice().try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }
}

/// The link to that peer, as its receiver calls it.
pub fn peer(number: u64) -> LinkId {
    LinkId {
        index: number as u32,
        generation: 1,
    }
}

impl Payload<VecArea> for Packet {
    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        let length = length_bytes.min(self.metadata.len()).min(into.len());
        into[..length].copy_from_slice(&self.metadata[..length]);
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

/// A link: how long its packets may be, and how many it still takes.
#[derive(Debug)]
pub struct Wire {
    pub payload_max_bytes: usize,
    pub room: u64,
    /// Who sends over it, as the receiver calls the link.
    pub peer: LinkId,
}

/// All links; a link that is gone leaves a hole.
#[derive(Debug, Default)]
pub struct Wires {
    pub wires: Vec<Option<Wire>>,
    /// What left, in order.
    pub left: Vec<(LinkId, Packet)>,
}

impl Wires {
    pub fn add(&mut self, payload_max_bytes: usize, peer: LinkId) -> LinkId {
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

impl TxLinks<VecArea> for Wires {
    fn payload_max_bytes(&self, link: LinkId) -> Option<usize> {
        let wire = self.wires.get(link.index as usize)?.as_ref();
        wire.map(|wire| wire.payload_max_bytes)
    }

    fn offer(
        &mut self,
        link: LinkId,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, VecArea>],
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
                from: wire.peer,
            },
        ));
        Ok(())
    }
}
