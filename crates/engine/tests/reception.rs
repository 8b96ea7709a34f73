//! Random histories of a receiving interface against the reference model
//! (Hamlyn 2.2 to 2.8): after every event the memory, the metadata entries, the
//! counters and the notifications are what the model says, and nothing else.

use crate::history::{
    AREA_BYTES, Event, METADATA_ENTRIES, PAYLOADS, PERIOD_NS, QUEUE_ENTRIES, Send, event, forge,
};
use crate::host::{PEER, Packet, VecArea, Wires, header, pattern};
use crate::model;
use crate::model::{Model, ReceiveEnable};
use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::key::Key;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::{MetadataArea, Permission};
use hamlyn_engine::notification::NotificationReader;
use hamlyn_engine::packet::{Flags, Header, SlotName};
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::{Mode, QueueId, Rights, SlotOptions};
use hamlyn_engine::terminus::{GatherPiece, PostError, SendTag, TerminusId};
use hamlyn_engine::transmit::{Message, Transmitter};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// The engine and the model, side by side.
struct Pairing {
    model: Model,
    receiver: Receiver<VecArea>,
    areas: Vec<VecArea>,
    metadata: Vec<MetadataArea>,
    queues: Vec<(QueueId, NotificationReader)>,
    transmitter: Transmitter<VecArea>,
    terminus: TerminusId,
    source: Vec<u8>,
    tag: SendTag,
    wires: Wires,
    links: Vec<LinkId>,
    names: Vec<SlotName>,
    under_way: Vec<Packet>,
    now_ns: u64,
}

impl Pairing {
    fn new() -> Self {
        let mut receiver = Receiver::new(Some(PERIOD_NS));
        let mut model = Model::new(&AREA_BYTES);
        model.metadata = METADATA_ENTRIES
            .map(|entries| vec![Default::default(); entries])
            .to_vec();
        model.queues = QUEUE_ENTRIES.map(model::Queue::new).to_vec();
        let mut transmitter = Transmitter::new();
        let terminus = transmitter.open_terminus(Default::default()).unwrap();
        let source = pattern(7, 140_000);
        let area = VecArea::from_bytes(source.clone());
        let tag = transmitter
            .bind_area(terminus, area, 0, source.len() as u64)
            .unwrap();
        let mut wires = Wires::default();
        Self {
            areas: AREA_BYTES.map(VecArea::new).to_vec(),
            metadata: METADATA_ENTRIES
                .map(|entries| MetadataArea::new(entries).unwrap())
                .to_vec(),
            queues: QUEUE_ENTRIES
                .map(|entries| receiver.open_queue(entries).unwrap())
                .into(),
            receiver,
            model,
            transmitter,
            terminus,
            source,
            tag,
            links: PAYLOADS
                .map(|payload| wires.add(payload, usize::MAX))
                .to_vec(),
            wires,
            names: Vec::new(),
            under_way: Vec::new(),
            now_ns: 0,
        }
    }

    /// What most histories begin with: a slot of each mode, and entries that let messages in.
    fn settle(&mut self) {
        self.happen(0, &Event::SetUp);
        for (area, mode) in [
            (2, Mode::Normal),
            (1, Mode::Paranoid),
            (2, Mode::ParanoidOneShot),
        ] {
            let length = AREA_BYTES[area] as u64 - 100;
            let (metadata, queue, counting) = (Some(1), Some(1), Counting::Bits32);
            self.happen(
                0,
                &Event::OpenSlot {
                    area,
                    base: 100,
                    length,
                    key: 1,
                    writable: true,
                    mode,
                    metadata,
                    queue,
                    counting,
                },
            );
        }
        for entry in 0..5 {
            self.happen(
                0,
                &Event::Permit {
                    area: 1,
                    entry,
                    key: entry as u64,
                    low: 0,
                    high: 80_000,
                },
            );
            self.happen(0, &Event::Arm(1, entry));
        }
    }

    fn run(&mut self, events: &[Event]) {
        for (number, event) in events.iter().enumerate() {
            self.happen(number, event);
            self.compare();
        }
    }

    fn name(&self, choice: usize) -> Option<SlotName> {
        // The latest slots are likelier to be open.
        let back = choice % 5 % self.names.len().max(1);
        self.names.iter().rev().nth(back).copied()
    }

    fn happen(&mut self, number: usize, event: &Event) {
        match *event {
            Event::OpenSlot {
                area,
                base,
                length,
                key,
                writable,
                mode,
                metadata,
                queue,
                counting,
            } => {
                let opened = self.receiver.open_slot(SlotOptions {
                    area: self.areas[area].clone(),
                    base,
                    length_bytes: length,
                    key: Key::from_bits(key),
                    rights: if writable {
                        Rights::WRITE
                    } else {
                        Rights::NONE
                    },
                    mode,
                    metadata: metadata.map(|metadata| self.metadata[metadata].clone()),
                    queue: queue.map(|queue| self.queues[queue].0),
                    counting,
                });
                let fits = base + length <= AREA_BYTES[area] as u64;
                assert_eq!(
                    opened.is_ok(),
                    fits && (mode == Mode::Normal || metadata.is_some())
                );
                if let Ok(name) = opened {
                    self.names.push(name);
                    self.model.open(
                        name,
                        model::Slot {
                            area,
                            base,
                            length,
                            key,
                            writable,
                            revoked: false,
                            mode,
                            metadata,
                            queue,
                            counting,
                            refusals: Default::default(),
                        },
                    );
                }
            }
            Event::CloseSlot(slot) => {
                let Some(name) = self.name(slot) else { return };
                let closed = self.receiver.close_slot(name).is_ok();
                assert_eq!(closed, self.model.slots.remove(&name.to_bits()).is_some());
            }
            Event::RekeySlot(slot, key) => {
                let Some(name) = self.name(slot) else { return };
                let done = self.receiver.rekey_slot(name, Key::from_bits(key)).is_ok();
                let slot = self.model.slots.get_mut(&name.to_bits());
                assert_eq!(done, slot.is_some());
                if let Some(slot) = slot {
                    slot.key = key;
                    slot.revoked = false;
                }
            }
            Event::RevokeSlot(slot) => {
                let Some(name) = self.name(slot) else { return };
                let done = self.receiver.revoke_slot(name).is_ok();
                let slot = self.model.slots.get_mut(&name.to_bits());
                assert_eq!(done, slot.is_some());
                if let Some(slot) = slot {
                    slot.revoked = true;
                }
            }
            Event::Permit {
                area,
                entry,
                key,
                low,
                high,
            } => {
                let entry = entry % METADATA_ENTRIES[area];
                self.metadata[area]
                    .entry(entry as u16)
                    .unwrap()
                    .permit(Permission {
                        key: Key::from_bits(key),
                        low,
                        high,
                    });
                let entry = &mut self.model.metadata[area][entry];
                (entry.key, entry.low, entry.high) = (key, low, high);
            }
            Event::Arm(area, entry) => {
                let entry = entry % METADATA_ENTRIES[area];
                self.metadata[area].entry(entry as u16).unwrap().arm();
                let entry = &mut self.model.metadata[area][entry];
                entry.armed = true;
                entry.accumulator = 0;
                entry.user.clear();
            }
            Event::Disarm(area, entry) => {
                let entry = entry % METADATA_ENTRIES[area];
                self.metadata[area].entry(entry as u16).unwrap().disarm();
                self.model.metadata[area][entry].armed = false;
            }
            Event::SetClass(area, entry, class) => {
                let entry = entry % METADATA_ENTRIES[area];
                self.metadata[area]
                    .entry(entry as u16)
                    .unwrap()
                    .set_receive_class(class);
                self.model.metadata[area][entry].class = class;
            }
            Event::Reset(area, entry) => {
                let entry = entry % METADATA_ENTRIES[area];
                self.metadata[area]
                    .entry(entry as u16)
                    .unwrap()
                    .reset_accumulator();
                self.model.metadata[area][entry].accumulator = 0;
            }
            Event::SetUp => {
                self.receiver.set_up(self.now_ns);
                self.model.receive_enable = ReceiveEnable::Open;
            }
            Event::HostSilent => {
                self.now_ns += PERIOD_NS;
                self.receiver.tick(self.now_ns);
                if self.model.receive_enable == ReceiveEnable::Open {
                    self.model.receive_enable = ReceiveEnable::Lapsed;
                }
            }
            Event::Handshake => {
                self.receiver.handshake(self.now_ns);
                if self.model.receive_enable == ReceiveEnable::Lapsed {
                    self.model.receive_enable = ReceiveEnable::Open;
                }
            }
            Event::Send(ref send) => {
                let packets = self.send(number, send);
                self.under_way.extend(packets);
            }
            Event::Forge(ref send, forgery) => {
                if let Some(mut packet) = self.send(number, send).into_iter().next() {
                    forge(&mut packet, forgery);
                    self.under_way.push(packet);
                }
            }
            Event::Deliver(which) => {
                if !self.under_way.is_empty() {
                    let which = which % self.under_way.len();
                    let packet = self.under_way.swap_remove(which);
                    self.deliver(&packet);
                }
            }
            Event::DeliverTwice(which) => {
                if !self.under_way.is_empty() {
                    let packet = self.under_way[which % self.under_way.len()].clone();
                    self.deliver(&packet);
                }
            }
            Event::Pop(queue) => {
                let reader = &mut self.queues[queue].1;
                let expected = self.model.queues[queue].pop();
                assert_eq!(reader.is_pending(), expected != Ok(None));
                assert_eq!(reader.pop().map_err(|overrun| overrun.lost), expected);
                assert_eq!(reader.lost(), self.model.queues[queue].lost);
            }
        }
    }

    /// Sends a message and compares its packets with how the model would cut it.
    fn send(&mut self, number: usize, send: &Send) -> Vec<Packet> {
        let Some(name) = self.name(send.slot) else {
            return Vec::new();
        };
        let slot = self.model.slots.get(&name.to_bits()).cloned();
        let right = match &slot {
            Some(slot) if slot.mode == Mode::Normal => slot.key,
            _ => self
                .model
                .entry_of(name.to_bits(), send.entry)
                .map_or(0, |entry| entry.key),
        };
        let counting = slot.map_or(Counting::Bits32, |slot| slot.counting);
        let mut share = Share::whole(counting);
        let whole: u128 = if counting == Counting::Bits32 {
            1 << 32
        } else {
            1 << 64
        };
        if send.divided {
            let mut parts = Vec::new();
            share.divide(&[1, 1], |part| parts.push(part)).unwrap();
            share = parts[0];
        }
        let fast = send.entry == 0xFFFF;
        let metadata = pattern(number as u64 + 100, send.metadata_length);
        let from = number * 31;
        let message = Message {
            link: self.links[send.payload],
            header: Header {
                metadata_index: send.entry,
                word: send.word,
                flags: if send.silent {
                    Flags::SILENT
                } else {
                    Flags::NONE
                },
                ..header(name, send.key.unwrap_or(right), send.offset)
            },
            share,
        };
        let piece = |offset: usize, length: usize| GatherPiece {
            tag: self.tag,
            offset: (from + offset) as u64,
            length_bytes: length as u64,
        };
        let half = send.length / 3;
        let pieces = [
            piece(0, half),
            piece(half, 0),
            piece(half, send.length - half),
        ];
        let posted = self.transmitter.post_gather(
            self.terminus,
            &message,
            &metadata,
            &pieces,
            &mut self.wires,
        );
        let packets = self.wires.drain(message.link);
        let payload = PAYLOADS[send.payload];
        if fast && (send.length > payload || !metadata.is_empty()) {
            assert!(
                matches!(posted, Err(PostError::FastTooLong { .. })),
                "{posted:?}"
            );
            assert!(packets.is_empty());
            return packets;
        }
        assert!(posted.unwrap().sent);
        let data = &self.source[from..from + send.length];
        let amount = u128::from(share.minus_one()) + 1;
        let cut = model::cut(send.offset, &metadata, data, payload, whole, amount);
        assert_eq!(packets.len(), cut.len());
        for (packet, (offset, metadata, data, delta)) in packets.iter().zip(cut) {
            let word = if fast { send.word } else { delta };
            let header = Header {
                offset,
                word,
                ..message.header
            };
            assert_eq!(*packet, Packet::new(header, &metadata, &data));
        }
        packets
    }

    fn deliver(&mut self, packet: &Packet) {
        let expected = self.model.receive(packet);
        assert_eq!(
            self.receiver.receive(PEER, &packet.header, packet, None),
            expected
        );
    }

    fn compare(&self) {
        for (area, expected) in self.areas.iter().zip(&self.model.areas) {
            assert!(
                *area.bytes.borrow() == *expected,
                "memory differs from the model's"
            );
        }
        for &reason in Refusal::ALL {
            let text = reason.to_string();
            assert_eq!(
                self.receiver.refusals().count(reason),
                self.model.refusals.get(&text).copied().unwrap_or(0),
                "{text}"
            );
            for (&name, slot) in &self.model.slots {
                let info = self
                    .receiver
                    .slot_info(SlotName::from_bits(name))
                    .expect("open");
                assert_eq!(
                    info.refusals.count(reason),
                    slot.refusals.get(&text).copied().unwrap_or(0),
                    "{text}"
                );
            }
        }
        assert_eq!(self.receiver.slots_open(), self.model.slots.len());
        for (area, expected) in self.metadata.iter().zip(&self.model.metadata) {
            for (index, expected) in expected.iter().enumerate() {
                let entry = area.entry(index as u16).unwrap();
                let mut bytes = [0; 60];
                let length = entry.metadata(&mut bytes);
                assert_eq!(bytes[..length], expected.user[..]);
                assert_eq!(u128::from(entry.accumulator()), expected.accumulator);
                assert_eq!(entry.is_armed(), expected.armed);
            }
        }
        for (number, area) in self.areas.iter().enumerate() {
            let expected: Vec<_> = self
                .model
                .completed
                .iter()
                .filter(|told| told.0 == number)
                .map(|told| (told.1, told.2))
                .collect();
            assert_eq!(*area.completed.borrow(), expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, max_shrink_iters: 4_000, ..ProptestConfig::default() })]

    /// Most histories enable receiving first; some forget to.
    #[test]
    fn any_history_agrees_with_the_model(
        settled in prop::bool::weighted(0.9),
        events in prop::collection::vec(event(), 1..250),
    ) {
        let mut pairing = Pairing::new();
        if settled {
            pairing.settle();
        }
        pairing.run(&events);
        // Whatever is still under way comes in at last, and everything is read.
        while let Some(packet) = pairing.under_way.pop() {
            pairing.deliver(&packet);
        }
        pairing.compare();
        for (queue, entries) in QUEUE_ENTRIES.into_iter().enumerate() {
            for _ in 0..entries + 2 {
                pairing.happen(0, &Event::Pop(queue));
            }
        }
    }

    /// Honest senders alone: each message's packets in any order among those of all others,
    /// each to its own entry. Every one is announced exactly once, at its last packet.
    #[test]
    fn packets_in_any_order_announce_each_message_at_its_last(
        lengths in prop::collection::vec((0_usize..6_000, 0_usize..=60, 0..PAYLOADS.len()), 1..12),
        order in prop::collection::vec(any::<u32>(), 1..1_200),
        counting in prop_oneof![Just(Counting::Bits32), Just(Counting::Bits64)],
    ) {
        let mut receiver = Receiver::new(None);
        receiver.set_up(0);
        let area = VecArea::new(lengths.len() * 6_000);
        let metadata = MetadataArea::new(lengths.len()).unwrap();
        let (queue, mut reader) = receiver.open_queue(lengths.len() + 1).unwrap();
        let slot = receiver.open_slot(SlotOptions {
            area: area.clone(), base: 0, length_bytes: (lengths.len() * 6_000) as u64, key: Key::from_bits(5),
            rights: Rights::WRITE, mode: Mode::Normal, metadata: Some(metadata.clone()), queue: Some(queue), counting,
        }).unwrap();
        let mut transmitter = Transmitter::<VecArea>::new();
        let terminus = transmitter.open_terminus(Default::default()).unwrap();
        let mut wires = Wires::default();
        let links = PAYLOADS.map(|payload| wires.add(payload, usize::MAX));
        let mut expected = vec![0; lengths.len() * 6_000];
        let mut packets = Vec::new();
        let mut left = vec![0_usize; lengths.len()];
        for (number, &(length, metadata_length, payload)) in lengths.iter().enumerate() {
            let data = pattern(number as u64, length);
            expected[number * 6_000..][..length].copy_from_slice(&data);
            let tag = transmitter.bind_area(terminus, VecArea::from_bytes(data), 0, length as u64).unwrap();
            let message = Message {
                link: links[payload],
                header: Header { metadata_index: number as u16, ..header(slot, 5, number as u64 * 6_000) },
                share: Share::whole(counting),
            };
            let piece = GatherPiece { tag, offset: 0, length_bytes: length as u64 };
            transmitter.post_gather(terminus, &message, &pattern(number as u64 + 50, metadata_length), &[piece], &mut wires).unwrap();
            transmitter.unbind_area(terminus, tag).unwrap();
            let new = wires.drain(links[payload]);
            left[number] = new.len();
            packets.extend(new.into_iter().map(|packet| (number, packet)));
        }
        for step in 0.. {
            if packets.is_empty() {
                break;
            }
            let which = order[step % order.len()] as usize % packets.len();
            let (number, packet) = packets.swap_remove(which);
            receiver.receive(PEER, &packet.header, &packet, None).unwrap();
            left[number] -= 1;
            let announced = reader.pop().unwrap();
            prop_assert_eq!(announced.map(|notification| usize::from(notification.metadata_index)), (left[number] == 0).then_some(number));
        }
        prop_assert!(*area.bytes.borrow() == expected);
        for (number, &(_, metadata_length, _)) in lengths.iter().enumerate() {
            let mut bytes = [0; 60];
            let entry = metadata.entry(number as u16).unwrap();
            prop_assert_eq!(entry.metadata(&mut bytes), metadata_length);
            prop_assert_eq!(&bytes[..metadata_length], &pattern(number as u64 + 50, metadata_length)[..]);
            prop_assert_eq!(entry.accumulator(), 0);
        }
    }
}

/// The histories above are worth something only if they go everywhere: over a fixed set
/// of them every refusal occurs that does not need an area's own veto, in
/// every mode messages complete, and readers are overrun.
#[test]
fn the_histories_reach_every_refusal_and_every_mode() {
    let mut runner = TestRunner::deterministic();
    let histories = prop::collection::vec(event(), 250..251);
    let mut refused = std::collections::BTreeMap::<String, u64>::new();
    let (mut fast, mut silent, mut lost, mut partial) = (0, 0, 0, 0);
    let mut complete = [0; 3];
    for round in 0..250 {
        let events = histories.new_tree(&mut runner).unwrap().current();
        let mut pairing = Pairing::new();
        if round % 10 != 0 {
            pairing.settle();
        }
        for (number, event) in events.iter().enumerate() {
            if let Event::Deliver(which) = event
                && !pairing.under_way.is_empty()
            {
                let packet = &pairing.under_way[which % pairing.under_way.len()];
                let mode = pairing
                    .model
                    .slots
                    .get(&packet.header.slot.to_bits())
                    .map(|slot| slot.mode);
                match pairing.model.clone().receive(packet) {
                    Ok(Received::Deposited) => partial += 1,
                    Ok(Received::Complete) => {
                        complete[mode.unwrap() as usize] += 1;
                        fast += u32::from(packet.header.is_fast());
                        silent += u32::from(packet.header.flags.is_silent());
                    }
                    Ok(Received::Handed(_) | Received::Asked | Received::Queued) => {
                        unreachable!("nobody waits or asks, and there is no port")
                    }
                    Err(_) => {}
                }
            }
            pairing.happen(number, event);
        }
        for (reason, count) in &pairing.model.refusals {
            *refused.entry(reason.clone()).or_default() += count;
        }
        lost += pairing
            .model
            .queues
            .iter()
            .map(|queue| queue.lost)
            .sum::<u64>();
    }
    // Of areas in pieces, of one-sided operations (`operations.rs`), and of ports (`ports.rs`).
    let of_others = [
        Refusal::PlaceInUse,
        Refusal::BadRequest,
        Refusal::NoSuchOperation,
        Refusal::Misaligned,
        Refusal::TooManyRequests,
        Refusal::PortClosed,
        Refusal::WrongGroup,
        Refusal::NoSuchHandler,
        Refusal::NotResident,
        Refusal::QueueFull,
    ];
    for reason in Refusal::ALL {
        let count = refused.get(&reason.to_string()).copied().unwrap_or(0);
        assert!(
            count >= 3 || of_others.contains(reason),
            "{reason}: {count}"
        );
    }

    assert!(complete.iter().all(|&count| count > 50), "{complete:?}");
    assert!(
        fast > 50 && silent > 50 && lost > 5 && partial > 50,
        "{fast} {silent} {lost} {partial}"
    );
}
