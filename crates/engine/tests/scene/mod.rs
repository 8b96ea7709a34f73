//! One slot of each mode, where a packet is welcome or refused without a trace.
#![allow(
    unreachable_pub,
    dead_code,
    reason = "a part of several tests, which need different parts of it"
)]

use hamlyn_engine::counting::Counting;
use hamlyn_engine::key::Key;
use hamlyn_engine::metadata::{MetadataArea, Permission};
use hamlyn_engine::notification::NotificationReader;
use hamlyn_engine::packet::{Header, SlotName};
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::{Mode, Rights, SlotOptions};

use crate::host::{PEER, Packet, VecArea, header};

pub const KEY: u64 = 0xA11CE;
pub const ENTRY_KEY: u64 = 0xB0B;

/// An interface with one slot of bytes 64 to 192 of an area, four entries, and a queue.
pub struct Scene {
    pub receiver: Receiver<VecArea>,
    pub area: VecArea,
    pub metadata: MetadataArea,
    pub reader: NotificationReader,
    pub slot: SlotName,
    pub key: u64,
}

impl Scene {
    pub fn new(mode: Mode) -> Self {
        let mut receiver = Receiver::new(Some(100));
        receiver.set_up(0);
        let area = VecArea::new(256);
        let metadata = MetadataArea::new(4).unwrap();
        let (queue, reader) = receiver.open_queue(8).unwrap();
        let slot = receiver
            .open_slot(SlotOptions {
                area: area.clone(),
                base: 64,
                length_bytes: 128,
                key: Key::from_bits(KEY),
                rights: Rights::WRITE,
                mode,
                metadata: Some(metadata.clone()),
                queue: Some(queue),
                counting: Counting::Bits32,
            })
            .unwrap();
        let entry = metadata.entry(0).unwrap();
        entry.permit(Permission {
            key: Key::from_bits(ENTRY_KEY),
            low: 32,
            high: 96,
        });
        entry.arm();
        let key = if mode == Mode::Normal { KEY } else { ENTRY_KEY };
        Self {
            receiver,
            area,
            metadata,
            reader,
            slot,
            key,
        }
    }

    /// A header that is welcome, at byte 40 of the slot.
    pub fn welcome(&self) -> Header {
        header(self.slot, self.key, 40)
    }

    pub fn receive(&mut self, header: Header, data: &[u8]) -> Result<Received, Refusal> {
        self.receive_packet(&Packet::new(header, &[], data))
    }

    pub fn receive_packet(&mut self, packet: &Packet) -> Result<Received, Refusal> {
        self.receiver.receive(PEER, &packet.header, packet, None)
    }

    /// The packet is refused for that reason; it is counted once in the right places and
    /// leaves no other trace.
    pub fn refuses(&mut self, packet: &Packet, reason: Refusal) {
        let memory = self.area.contents();
        let total = self.receiver.refusals().total();
        let of_reason = self.receiver.refusals().count(reason);
        let of_slot = self.receiver.slot_info(self.slot).map(|info| info.refusals);
        let entry = |scene: &Self| {
            let entry = scene.metadata.entry(0).unwrap();
            (
                entry.accumulator(),
                entry.is_armed(),
                entry.metadata_length_bytes(),
            )
        };
        let entry_before = entry(self);
        assert_eq!(self.receive_packet(packet), Err(reason));
        assert_eq!(self.area.contents(), memory, "a refused packet wrote");
        assert_eq!(
            entry(self),
            entry_before,
            "a refused packet changed its entry"
        );
        assert_eq!(
            self.reader.pop(),
            Ok(None),
            "a refused packet was announced"
        );
        assert_eq!(self.receiver.refusals().total(), total + 1);
        assert_eq!(self.receiver.refusals().count(reason), of_reason + 1);
        if let Ok(before) = of_slot {
            let after = self.receiver.slot_info(self.slot).unwrap().refusals;
            let to_slot = u64::from(packet.header.slot == self.slot);
            assert_eq!(after.total(), before.total() + to_slot);
            assert_eq!(after.count(reason), before.count(reason) + to_slot);
        }
    }

    pub fn refuses_header(&mut self, header: Header, reason: Refusal) {
        self.refuses(&Packet::new(header, &[], &[7; 4]), reason);
    }
}
