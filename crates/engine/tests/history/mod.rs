//! What may happen to a receiving interface: events, and random histories of them.
#![allow(unreachable_pub, reason = "a part of one test")]

use hamlyn_engine::counting::Counting;
use hamlyn_engine::packet::{Flags, Kind, SlotName};
use hamlyn_engine::slot::Mode;
use proptest::prelude::*;

use crate::host::{Packet, pattern};

pub const AREA_BYTES: [usize; 3] = [300, 4_500, 70_000];
pub const METADATA_ENTRIES: [usize; 2] = [2, 5];
pub const QUEUE_ENTRIES: [usize; 2] = [2, 8];
pub const PAYLOADS: [usize; 7] = [64, 65, 127, 1_000, 1_500, 4_096, 65_536];
pub const PERIOD_NS: u64 = 1_000;

#[derive(Clone, Debug)]
pub enum Event {
    OpenSlot {
        area: usize,
        base: u64,
        length: u64,
        key: u64,
        writable: bool,
        mode: Mode,
        metadata: Option<usize>,
        queue: Option<usize>,
        counting: Counting,
    },
    CloseSlot(usize),
    RekeySlot(usize, u64),
    RevokeSlot(usize),
    Permit {
        area: usize,
        entry: usize,
        key: u64,
        low: u64,
        high: u64,
    },
    Arm(usize, usize),
    Disarm(usize, usize),
    SetClass(usize, usize, u64),
    Reset(usize, usize),
    SetUp,
    HostSilent,
    Handshake,
    /// A message to a slot, cut into packets by the transmitting half.
    Send(Send),
    /// A packet that no honest interface would make.
    Forge(Send, Forgery),
    /// Any of the packets under way comes in.
    Deliver(usize),
    /// One comes in, and will come in again.
    DeliverTwice(usize),
    Pop(usize),
}

#[derive(Clone, Debug)]
pub struct Send {
    pub slot: usize,
    pub entry: u16,
    /// The right one, or this.
    pub key: Option<u64>,
    pub offset: u64,
    pub length: usize,
    pub metadata_length: usize,
    pub payload: usize,
    pub silent: bool,
    pub word: u64,
    /// Divides the whole share so often, to leave accumulators half full.
    pub divided: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Forgery {
    SlotName(u32),
    Offset(u64),
    Kind(u8),
    Flags(u8),
    Length(u32),
    Delta(u64),
    LongMetadata(u8),
}

pub fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        Just(Mode::Normal),
        Just(Mode::Paranoid),
        Just(Mode::ParanoidOneShot)
    ]
}

pub fn place(limit: usize) -> impl Strategy<Value = u64> {
    let limit = limit as u64;
    prop_oneof![4 => 0..=limit.min(64), 4 => 0..=limit, 1 => limit..=limit + 2]
}

pub fn send() -> impl Strategy<Value = Send> {
    (
        (
            any::<usize>(),
            prop_oneof![8 => 0_u16..3, 1 => 3_u16..7, 3 => Just(0xFFFF), 1 => Just(0xFFFE)],
        ),
        prop_oneof![6 => Just(None), 1 => (0_u64..4).prop_map(Some)],
        prop_oneof![6 => 0_u64..40, 2 => 0_u64..5_000, 1 => 0_u64..70_000],
        prop_oneof![6 => 0_usize..3, 30 => 0_usize..200, 3 => 0_usize..4_000, 1 => 0_usize..70_000],
        prop_oneof![2 => Just(0_usize), 3 => 0_usize..=60],
        0..PAYLOADS.len(),
        (
            prop::bool::weighted(0.15),
            any::<u64>(),
            prop::bool::weighted(0.2),
        ),
    )
        .prop_map(
            |(
                (slot, entry),
                key,
                offset,
                length,
                metadata_length,
                payload,
                (silent, word, divided),
            )| Send {
                slot,
                entry,
                key,
                offset,
                length,
                metadata_length,
                payload,
                silent,
                word,
                divided,
            },
        )
}

pub fn forgery() -> impl Strategy<Value = Forgery> {
    prop_oneof![
        prop_oneof![
            0_u32..4,
            (0_u32..4).prop_map(|index| index | 1 << 16),
            any::<u32>()
        ]
        .prop_map(Forgery::SlotName),
        prop_oneof![
            Just(u64::MAX),
            (0_u64..200).prop_map(|back| u64::MAX - back),
            any::<u64>()
        ]
        .prop_map(Forgery::Offset),
        // Messages to ports and requests for one-sided operations have tests of their own.
        prop_oneof![4_u8..0x40, 0x60_u8..].prop_map(Forgery::Kind),
        prop_oneof![Just(2_u8), 2_u8..].prop_map(Forgery::Flags),
        (1_000_000_u32..).prop_map(Forgery::Length),
        prop_oneof![
            Just(0),
            Just(1 << 32),
            Just(u64::MAX),
            0_u64..3,
            any::<u64>()
        ]
        .prop_map(Forgery::Delta),
        (61_u8..).prop_map(Forgery::LongMetadata),
    ]
}

pub fn event() -> impl Strategy<Value = Event> {
    let area = prop_oneof![1 => Just(0), 3 => Just(1), 3 => Just(2)];
    let open = area
        .prop_flat_map(|area| {
            let bytes = AREA_BYTES[area];
            (Just(area), prop_oneof![3 => 0_u64..64, 1 => place(bytes)], place(bytes))
        })
        .prop_flat_map(|(area, base, length)| {
            (
                (Just(area), Just(base), prop_oneof![3 => Just((AREA_BYTES[area] as u64).saturating_sub(base)), 1 => Just(length)]),
                (0_u64..4, prop::bool::weighted(0.93), mode()),
                prop_oneof![1 => Just(None), 7 => (0..METADATA_ENTRIES.len()).prop_map(Some)],
                prop_oneof![1 => Just(None), 9 => (0..QUEUE_ENTRIES.len()).prop_map(Some)],
                prop_oneof![3 => Just(Counting::Bits32), 1 => Just(Counting::Bits64)],
            )
        })
        .prop_map(|((area, base, length), (key, writable, mode), metadata, queue, counting)| Event::OpenSlot {
            area, base, length, key, writable, mode, metadata, queue, counting,
        });
    let entry = || (0..METADATA_ENTRIES.len(), 0_usize..5);
    prop_oneof![
        4 => open,
        1 => any::<usize>().prop_map(Event::CloseSlot),
        3 => (any::<usize>(), 0_u64..4).prop_map(|(slot, key)| Event::RekeySlot(slot, key)),
        1 => any::<usize>().prop_map(Event::RevokeSlot),
        8 => (entry(), 0_u64..4, prop_oneof![4 => Just(0_u64), 1 => 0_u64..50], prop_oneof![4 => Just(80_000_u64), 2 => 0_u64..400])
            .prop_map(|((area, entry), key, low, high)| Event::Permit { area, entry, key, low, high }),
        8 => entry().prop_map(|(area, entry)| Event::Arm(area, entry)),
        1 => entry().prop_map(|(area, entry)| Event::Disarm(area, entry)),
        2 => (entry(), any::<u64>()).prop_map(|((area, entry), class)| Event::SetClass(area, entry, class)),
        1 => entry().prop_map(|(area, entry)| Event::Reset(area, entry)),
        1 => Just(Event::SetUp),
        1 => Just(Event::HostSilent),
        4 => Just(Event::Handshake),
        18 => send().prop_map(Event::Send),
        5 => (send(), forgery()).prop_map(|(send, forgery)| Event::Forge(send, forgery)),
        70 => any::<usize>().prop_map(Event::Deliver),
        1 => any::<usize>().prop_map(Event::DeliverTwice),
        6 => (0..QUEUE_ENTRIES.len()).prop_map(Event::Pop),
    ]
}

pub fn forge(packet: &mut Packet, forgery: Forgery) {
    match forgery {
        Forgery::SlotName(bits) => packet.header.slot = SlotName::from_bits(bits),
        Forgery::Offset(offset) => packet.header.offset = offset,
        Forgery::Kind(kind) => packet.header.kind = Kind(kind),
        Forgery::Flags(flags) => packet.header.flags = Flags(flags),
        Forgery::Length(length) => packet.header.length_bytes = length,
        Forgery::Delta(delta) => packet.header.word = delta,
        Forgery::LongMetadata(length) => {
            packet.header.metadata_length_bytes = length;
            packet.metadata = pattern(9, length.into());
        }
    }
}
