//! What every test of a link needs, and the conduct that all links share.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{FAST_INDEX, USER_METADATA_BYTES};
use hamlyn_engine::memory::{Part, Payload as _};
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_ring::area::Area;

use super::Carried;
use crate::pair::PairLink;
use crate::{LinkFault, ReceiveEnd, TransmitEnd};

/// A header for this much, with a metadata entry.
pub(crate) fn header(metadata: usize, length: usize) -> Header {
    Header {
        slot: SlotName::new(3, 1),
        metadata_index: 5,
        key: Key::from_bits(0x1234_5678_9abc_def0),
        offset: 40,
        length_bytes: length as u32,
        word: 0,
        metadata_length_bytes: metadata as u8,
        flags: Flags::SILENT,
        kind: Kind(200),
    }
}

/// What came with a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Packet {
    pub(crate) header: Header,
    pub(crate) metadata: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

pub(crate) fn receive(link: &mut PairLink) -> Result<Option<Packet>, LinkFault> {
    link.receive.receive(packet_of)
}

fn packet_of(header: &Header, payload: &Carried<'_>) -> Packet {
    let mut metadata = [0; USER_METADATA_BYTES];
    let metadata_length = header.metadata_length_bytes as usize;
    payload.metadata(&mut metadata, metadata_length);
    let length = header.length_bytes as usize;
    let area = Area::new(length as u64 + 3).expect("an area");
    payload.deposit(&area, 3).expect("in the area");
    let mut data = vec![0; length];
    area.read_at(3, &mut data).expect("in the area");
    Packet {
        header: *header,
        metadata: metadata[..metadata_length].to_vec(),
        data,
    }
}

pub(crate) fn bytes(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at * 31 + seed * 7 + 1) as u8)
        .collect()
}

/// Sends packets of every shape from `one` to `other`, each of which must arrive as it was.
pub(crate) fn carries_everything(
    mut send: impl FnMut(&mut PairLink, &Header, &[u8], &[Part<'_, Area>]),
    one: &mut PairLink,
    mut take: impl FnMut(&mut PairLink) -> Option<Packet>,
) {
    let payload_max = one.transmit.payload_max_bytes();
    let lengths = [
        0,
        1,
        7,
        8,
        9,
        15,
        16,
        17,
        63,
        64,
        65,
        1000,
        4096,
        payload_max - 60,
        payload_max,
    ];
    let mut seed = 0;
    for metadata_length in [0, 1, 7, 8, 9, 16, 60] {
        for length in lengths {
            if metadata_length + length > payload_max {
                continue;
            }
            for word in [0, 77] {
                seed += 1;
                let (metadata, data) = (bytes(seed, metadata_length), bytes(seed + 1, length));
                let header = Header {
                    word,
                    ..header(metadata_length, length)
                };
                let area = Area::new(length as u64 + 5).expect("an area");
                area.write_at(5, &data).expect("in the area");
                let (first, second) = data.split_at(length / 3);
                let whole = [Part::Bytes(&data)];
                let pulled = [Part::Area {
                    area: &area,
                    offset: 5,
                    length_bytes: length as u32,
                }];
                let later = Part::Area {
                    area: &area,
                    offset: 5 + first.len() as u64,
                    length_bytes: second.len() as u32,
                };
                let gathered = [Part::Bytes(first), Part::Bytes(&[]), later];
                for parts in [&whole[..], &pulled, &gathered] {
                    send(one, &header, &metadata, parts);
                    let expected = Packet {
                        header,
                        metadata: metadata.clone(),
                        data: data.clone(),
                    };
                    assert_eq!(take(one), Some(expected));
                    assert_eq!(take(one), None);
                }
            }
        }
    }
    // Fast mode: the word is the metadata.
    let header = Header {
        metadata_index: FAST_INDEX,
        word: 99,
        ..header(0, 16)
    };
    let data = bytes(1, 16);
    send(one, &header, &[], &[Part::Bytes(&data)]);
    assert_eq!(
        take(one),
        Some(Packet {
            header,
            metadata: vec![],
            data
        })
    );
}
