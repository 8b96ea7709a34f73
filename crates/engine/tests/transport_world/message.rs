//! Packets whose number says all of what is in them.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::packet::{Address, Flags, Header, Kind, Short, SlotName};
use hamlyn_engine::transport::Association;

use super::random::Random;
use crate::host::VecArea;

/// A packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    pub header: Header,
    pub metadata: Vec<u8>,
    pub data: Vec<u8>,
}

/// The packet of that number: short ones of all kinds, and others up to the largest.
pub fn message(number: u64, payload_max_bytes: usize) -> Message {
    let mut random = Random::new(number);
    let form = random.below(10);
    let is_fast = form < 4;
    // Neighbours often go to the same place.
    let place = number / 5;
    let mut header = Header {
        slot: SlotName::from_bits((place % 7) as u32 * 77_777),
        metadata_index: if is_fast {
            FAST_INDEX
        } else {
            (place % 3) as u16
        },
        key: Key::from_bits((place % 7).wrapping_mul(0x1234_5678_9ABC_DEF1)),
        offset: match random.below(4) {
            0 => 64,
            1 => number * 16,
            2 => random.below(1 << 32),
            _ => random.next(),
        },
        length_bytes: 16,
        word: 0,
        metadata_length_bytes: 0,
        flags: Flags::NONE,
        kind: Kind::WRITE,
    };
    match form {
        0..4 => header.word = [0, number, random.next(), 5][random.below(4) as usize],
        4..7 => header.metadata_length_bytes = (random.below(2) * 8) as u8,
        _ => {
            header.metadata_length_bytes = random.below(61) as u8;
            let room = payload_max_bytes - usize::from(header.metadata_length_bytes);
            let most = if random.chance(300) {
                room
            } else {
                room.min(150)
            };
            header.length_bytes = 8 + random.below(most as u64 - 7) as u32;
            header.word = random.below(3);
            if random.chance(100) {
                header.flags = Flags::SILENT;
            }
        }
    }
    let mut fill =
        |length: usize| -> Vec<u8> { (0..length).map(|_| random.next() as u8).collect() };
    let metadata = fill(usize::from(header.metadata_length_bytes));
    let mut data = fill(header.length_bytes as usize);
    data[..8].copy_from_slice(&number.to_le_bytes());
    Message {
        header,
        metadata,
        data,
    }
}

impl Message {
    /// The number of a packet with such data.
    pub fn number(data: &[u8]) -> Option<u64> {
        data.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Offers it, by one of the calls that may offer it.
    pub fn offer(&self, to: &mut Association, way: u64) -> Result<(), Unsent> {
        let header = &self.header;
        let (metadata, data) = (&self.metadata[..], &self.data[..]);
        let is_short = data.len() == 16
            && header.flags == Flags::NONE
            && (header.is_fast() && metadata.is_empty()
                || !header.is_fast() && header.word == 0 && matches!(metadata.len(), 0 | 8));
        if is_short && way.is_multiple_of(2) {
            let word = metadata.try_into().map(u64::from_le_bytes);
            let half = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
            return to.offer_short(&Short {
                to: Address::new(header.slot, header.metadata_index),
                key: header.key,
                offset: header.offset,
                word: word.unwrap_or(header.word),
                has_metadata: word.is_ok(),
                length_bytes: 16,
                data: [half(0), half(8), 0, 0],
            });
        }
        if way.is_multiple_of(3) {
            let area = VecArea::from_bytes(data.to_vec());
            let cut = data.len() / 3;
            let parts = [
                Part::Bytes(&data[..cut]),
                Part::Area {
                    area: &area,
                    offset: cut as u64,
                    length_bytes: (data.len() - cut) as u32,
                },
            ];
            return to.offer(header, metadata, &parts);
        }
        to.offer::<VecArea>(header, metadata, &[Part::Bytes(data)])
    }
}
