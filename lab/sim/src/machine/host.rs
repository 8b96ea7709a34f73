//! One host: its processor, its memory, its board, and the two halves of the engine in it.

use std::collections::VecDeque;
use std::rc::Rc;

use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{DIRECT_BYTES_MAX, FAST_INDEX, USER_METADATA_BYTES};
use hamlyn_engine::memory::{Area, LinkId};
use hamlyn_engine::metadata::MetadataArea;
use hamlyn_engine::notification::{Notification, NotificationReader};
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_engine::point::Point;
use hamlyn_engine::receive::Receiver;
use hamlyn_engine::slot::{Mode, Rights, SlotOptions};
use hamlyn_engine::terminus::{GatherPiece, PostError, SendTag, TerminusId, TerminusOptions};
use hamlyn_engine::transmit::{Message, Transmitter};

use super::boards::{Reception, Segment};
use super::component::{Component, ComponentTimes};
use super::machine_file::{Machine, Software};
use super::memory::{Arriving, Memory, Packet, Source};
use super::system::{Arrival, OutgoingMessage, Protocol};
use crate::random::Random;
use crate::time::{Span, Time};

/// Bytes of each message area.
const AREA_BYTES: usize = 128 * 1024;
/// Metadata entries that a sender uses in turn: more than it can have under way.
const ENTRIES_EACH: u64 = 512;
/// Entries of a notification queue.
const NOTIFICATIONS: usize = 256;

/// The host's processor: does one thing after the other.
#[derive(Debug, Default)]
pub(super) struct Processor {
    free_at: Time,
    /// Work that is done when there is nothing else to do, but before the next message is looked
    /// at.
    deferred: Span,
    pub(super) busy: Span,
}

impl Processor {
    /// Works for so long, as soon as it is free. When that is done.
    pub(super) fn work(&mut self, now: Time, span: Span) -> Time {
        self.free_at = self.free_at.max(now) + span;
        self.busy += span;
        self.free_at
    }

    /// Receives a message: what was put off comes first, what this one leaves over comes later.
    pub(super) fn receive(&mut self, now: Time, software: Software) -> Time {
        self.free_at += self.deferred;
        self.deferred = software.afterwards();
        self.busy += software.afterwards();
        self.work(now, software.receive())
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) processor: Processor,
    /// How its application receives.
    pub(super) listens: Protocol,
    pub(super) is_asleep: bool,
    pub(super) arrivals: VecDeque<Arrival>,
    pub(super) sending_area: Memory,
    pub(super) receiving_area: Memory,
    metadata: MetadataArea,
    pub(super) reader: NotificationReader,
    key: Key,
    pub(super) slot: SlotName,

    transmitter: Transmitter<Memory>,
    terminus: TerminusId,
    tag: SendTag,
    source: Source,
    receiver: Receiver<Memory>,
    messages_sent: u64,
    pub(super) refused: u64,

    /// Messages in the work queue: when the doorbell rang, and what they had cost by then.
    pub(super) posted: VecDeque<(Time, ComponentTimes)>,
}

impl Host {
    pub(super) fn new(hosts: usize, packet_bytes: usize, random: &mut Random) -> Self {
        let sending_area = Memory::new(AREA_BYTES);
        let receiving_area = Memory::new(AREA_BYTES);
        let area_bytes = receiving_area.length_bytes();
        let mut transmitter = Transmitter::new();
        let terminus = transmitter
            .open_terminus(TerminusOptions::default())
            .expect("the first terminus with the default options");
        let tag = transmitter
            .bind_area(terminus, sending_area.clone(), 0, area_bytes)
            .expect("the first area, all of it");
        let mut receiver = Receiver::new(None);
        receiver.set_up(0);
        let (queue, reader) = receiver
            .open_queue(NOTIFICATIONS)
            .expect("a length within the limits");
        let metadata =
            MetadataArea::new(ENTRIES_EACH as usize * hosts).expect("entries for a few hosts");
        let key = Key::from_bits(random.bits());
        let slot = receiver
            .open_slot(SlotOptions {
                area: receiving_area.clone(),
                base: 0,
                length_bytes: area_bytes,
                key,
                rights: Rights::WRITE,
                mode: Mode::Normal,
                metadata: Some(metadata.clone()),
                queue: Some(queue),
                counting: Counting::Bits32,
            })
            .expect("the first slot, over all of its area");
        Self {
            processor: Processor::default(),
            listens: Protocol::Datagram,
            is_asleep: false,
            arrivals: VecDeque::new(),
            sending_area,
            receiving_area,
            metadata,
            reader,
            key,
            slot,
            transmitter,
            terminus,
            tag,
            source: Source::new(packet_bytes),
            receiver,
            messages_sent: 0,
            refused: 0,
            posted: VecDeque::new(),
        }
    }

    /// The key that the message's sender shows.
    pub(super) fn key_for(&self, outgoing: &OutgoingMessage) -> Key {
        if outgoing.has_key {
            self.key
        } else {
            Key::from_bits(!self.key.to_bits())
        }
    }

    /// Puts a message into the work queue; what the processor wrote for it.
    pub(super) fn post(
        &mut self,
        from: usize,
        outgoing: &OutgoingMessage,
        slot: SlotName,
        key: Key,
    ) -> Result<Vec<Point>, PostError> {
        // What a full queue refused before was not written after all.
        drop(self.source.points());
        let is_fast = outgoing.protocol != Protocol::Datagram;
        let message = Message {
            link: LinkId {
                index: outgoing.to as u32,
                generation: 0,
            },
            header: Header {
                slot,
                metadata_index: if is_fast {
                    FAST_INDEX
                } else {
                    // Each sender has entries of its own, as tickets would give them.
                    (from as u64 * ENTRIES_EACH + self.messages_sent % ENTRIES_EACH) as u16
                },
                key,
                offset: 0,
                length_bytes: 0,
                word: self.messages_sent,
                metadata_length_bytes: 0,
                flags: if outgoing.is_silent {
                    Flags::SILENT
                } else {
                    Flags::NONE
                },
                kind: Kind::WRITE,
            },
            share: Share::whole(Counting::Bits32),
        };
        let metadata = [METADATA_BYTE; USER_METADATA_BYTES];
        let metadata =
            metadata
                .get(..outgoing.metadata_bytes)
                .ok_or(PostError::MetadataTooLong {
                    length_bytes: outgoing.metadata_bytes,
                })?;
        let terminus = self.terminus;
        if is_fast && outgoing.data_bytes <= DIRECT_BYTES_MAX {
            let mut data = [0; DIRECT_BYTES_MAX];
            let data = &mut data[..outgoing.data_bytes];
            self.sending_area
                .read(0, data)
                .map_err(|_| PostError::TooLong)?;
            self.transmitter
                .post(terminus, &message, metadata, data, &mut self.source)?;
        } else {
            let piece = GatherPiece {
                tag: self.tag,
                offset: 0,
                length_bytes: outgoing.data_bytes as u64,
            };
            self.transmitter.post_gather(
                terminus,
                &message,
                metadata,
                &[piece],
                &mut self.source,
            )?;
        }
        self.messages_sent += 1;
        Ok(self.source.points())
    }

    /// Since when a message waits, and what it has cost, if one waits.
    pub(super) fn waiting(&self) -> Option<(Time, ComponentTimes)> {
        if !self.transmitter.is_waiting() {
            return None;
        }
        self.posted.front().copied()
    }

    /// The next packet, from the engine.
    pub(super) fn segment(&mut self) -> Option<Segment> {
        let before = self.transmitter.waiting();
        self.source.open();
        self.transmitter.pump(&mut self.source, 1);
        let (link, packet) = self.source.close()?;
        if self.transmitter.waiting() != before {
            self.posted.pop_front();
        }
        Some(Segment {
            to: link.index as usize,
            packet,
            points: self.source.points(),
        })
    }

    /// Hands a packet to the engine.
    pub(super) fn accept(&mut self, packet: &Packet) -> Reception {
        let arriving = Arriving {
            packet,
            points: Rc::default(),
        };
        let received = self
            .receiver
            .receive(SWITCH, &packet.header, &arriving, None);
        if received.is_err() {
            self.refused += 1;
        }
        Reception {
            points: arriving.points.take(),
        }
    }

    /// A notification can be seen: when the application has the message, and what it has cost.
    pub(super) fn told(
        &mut self,
        machine: &Machine,
        now: Time,
        mut times: ComponentTimes,
    ) -> (Time, ComponentTimes) {
        let software = self.listens.software(machine);
        let mut wake_up = Span::ZERO;
        if self.is_asleep {
            self.is_asleep = false;
            wake_up = machine.wake_up();
            self.processor.work(now, wake_up);
            times.add(Component::WakeUp, wake_up);
        }
        let at_hand = self.processor.receive(now, software);
        times.add(Component::HostSoftware, software.receive());
        let taken = at_hand.since(now);
        times.add(Component::Waiting, taken - software.receive() - wake_up);
        (at_hand, times)
    }

    pub(super) fn noticed(&mut self, now: Time, times: ComponentTimes) {
        if let Ok(Some(notification)) = self.reader.pop() {
            self.arrivals.push_back(Arrival {
                at: now,
                times,
                notification,
            });
        }
    }

    pub(super) fn metadata_of(&self, notification: &Notification) -> Vec<u8> {
        let mut bytes = [0; USER_METADATA_BYTES];
        let length = self
            .metadata
            .entry(notification.metadata_index)
            .map_or(0, |entry| entry.metadata(&mut bytes));
        bytes[..length].to_vec()
    }
}

/// What packets come over.
const SWITCH: LinkId = LinkId {
    index: 0,
    generation: 1,
};
/// What metadata consist of.
pub(super) const METADATA_BYTE: u8 = 0x6D;
