//! Every packet that an interface of the world receives, judged by the model of the receiving half
//! ([`crate::reference::receiving`], decision 0036).
//!
//! The model knows slots, keys, rights, grants and queues from their owner's calls. Entries belong
//! to the application, which may change them at any time; so before each packet the model takes the
//! entry as it is found. Of memory it looks at the place of the packet and the bytes on both sides.
//! If other programs of the world went on in the middle of the call, they may have written there,
//! and only the answer is judged.

use std::collections::BTreeMap;

use hamlyn_engine::counting::Counting;
use hamlyn_engine::limits::{PACKET_PAYLOAD_MAX, USER_METADATA_BYTES};
use hamlyn_engine::memory::{Area as _, LinkId, Payload};
use hamlyn_engine::metadata::MetadataEntry;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::{Header, Kind, Short, SlotName};
use hamlyn_engine::receive::{Received, ShortReceived};
use hamlyn_engine::receive_observer::{ReceiveEvent, ReceiveObserver, SlotChange};
use hamlyn_engine::refusal::{Refusal, Refusals};
use hamlyn_engine::slot::{Mode, QueueId, SlotOptions};
use hamlyn_ring::area::Area;

use smallvec::SmallVec;

use crate::reference::receiving::{Arrival, NewSlot, ReceiveEnable, Receiving};
use crate::reference::{Violation, operating};
use crate::world::kernel;

/// Bytes on both sides of a place that must stay as they are.
const NEIGHBOUR_BYTES: u64 = 64;
/// Who sends short packets that take the fast path, which does not ask.
const ANYBODY: LinkId = LinkId {
    index: u32::MAX,
    generation: u32::MAX,
};

thread_local! {
    /// Where the data of a packet are deposited to be looked at.
    static SCRATCH: Option<Area> = Area::new(PACKET_PAYLOAD_MAX as u64).ok();
}

/// Bytes of a packet, or around it. Most are few.
type Bytes = SmallVec<[u8; 256]>;

/// See the module.
#[derive(Debug)]
pub struct ReceiveJudge {
    model: Receiving,
    slots: Slots,
    /// The queues, in the order of the model's.
    queues: Vec<QueueId>,
    /// The packet that came, until it is known what became of it.
    packet: Option<Packet>,
    announced: Option<(QueueId, Notification)>,
}

/// The slots that are open.
#[derive(Debug, Default)]
struct Slots(BTreeMap<SlotName, Slot>);

#[derive(Debug)]
struct Slot {
    options: SlotOptions<Area>,
    /// Of its metadata area in the model.
    entries: Option<usize>,
}

impl Slots {
    fn get(&self, name: SlotName) -> Option<&SlotOptions<Area>> {
        self.0.get(&name).map(|slot| &slot.options)
    }

    /// The entry of a packet, and the number of its area in the model.
    fn entry(&self, header: &Header) -> Option<(usize, &MetadataEntry)> {
        let slot = self.0.get(&header.slot)?;
        let entry = slot
            .options
            .metadata
            .as_ref()?
            .entry(header.metadata_index)?;
        Some((slot.entries?, entry))
    }
}

#[derive(Debug)]
struct Packet {
    header: Header,
    metadata: Bytes,
    data: Bytes,
    from: LinkId,
    waiting: Option<QueueId>,
    is_awaited: bool,
    place: Option<Place>,
    /// Events of the world when it came.
    events: u64,
}

/// Where a packet's data go, with the bytes around.
#[derive(Debug)]
struct Place {
    area: Area,
    /// Where the packet's data begin.
    at: u64,
    /// Where the first of the bytes is.
    low: u64,
    before: Bytes,
}

impl ReceiveJudge {
    /// Of an interface that was not set up.
    pub(crate) fn new() -> Self {
        let mut model = Receiving::new();
        // All slots lie in one area of which no byte is kept.
        model.add_area(0);
        Self {
            model,
            slots: Slots::default(),
            queues: Vec::new(),
            packet: None,
            announced: None,
        }
    }

    fn slot_opened(&mut self, name: SlotName, options: SlotOptions<Area>) -> Result<(), Violation> {
        let queue = options.queue.map(|queue| {
            let known = self.queues.iter().position(|known| *known == queue);
            known.unwrap_or_else(|| {
                self.queues.push(queue);
                self.model.add_queue(1)
            })
        });
        let entries = options.metadata.as_ref();
        let entries = entries.map(|metadata| self.model.add_entries(metadata.len()));
        let new = NewSlot {
            area: 0,
            base: options.base,
            length_bytes: options.length_bytes,
            key: options.key,
            rights: options.rights,
            mode: options.mode,
            entries,
            queue,
            modulus: match options.counting {
                Counting::Bits32 => 1 << 32,
                Counting::Bits64 => 1 << 64,
            },
        };
        self.slots.0.insert(name, Slot { options, entries });
        self.model.slot_opened(name, new)
    }

    fn slot_changed(
        &mut self,
        name: SlotName,
        change: SlotChange,
        was_open: bool,
    ) -> Result<(), Violation> {
        match change {
            SlotChange::Closed => {
                self.slots.0.remove(&name);
                self.model.slot_closed(name, was_open)
            }
            SlotChange::Rekeyed(key) => self.model.slot_rekeyed(name, key, was_open),
            SlotChange::Revoked => self.model.slot_revoked(name, was_open),
        }
    }

    fn came(&mut self, mut packet: Packet) {
        packet.place = self.place(&packet.header);
        self.find_entry(&packet.header);
        self.announced = None;
        self.packet = Some(packet);
    }

    /// Takes the entry of a packet as it is.
    fn find_entry(&mut self, header: &Header) {
        if let Some((number, entry)) = self.slots.entry(header) {
            self.model.found(number, header.metadata_index, entry);
        }
    }

    /// The place of a packet and what is around it, as it is; nothing if it does not lie in its
    /// slot.
    fn place(&self, header: &Header) -> Option<Place> {
        let slot = self.slots.get(header.slot)?;
        let bytes = match operating::is_request(header) {
            true => operating::changed_bytes(header),
            false => u64::from(header.length_bytes),
        };
        let end = header.offset.checked_add(bytes)?;
        if end > slot.length_bytes {
            return None;
        }
        let at = slot.base + header.offset;
        let low = at.saturating_sub(NEIGHBOUR_BYTES);
        let high = (slot.base + end + NEIGHBOUR_BYTES).min(slot.area.length_bytes());
        let area = slot.area.clone();
        let before = bytes_of(&area, low, (high - low) as usize)?;
        Some(Place {
            area,
            at,
            low,
            before,
        })
    }

    fn done(&mut self, found: Result<Received, Refusal>) -> Result<(), Violation> {
        let Some(packet) = self.packet.take() else {
            return Ok(());
        };
        let header = &packet.header;
        let is_alone = events() == packet.events;
        if !is_alone {
            self.change_entry(&packet, found.is_ok());
        }
        let asked = packet.waiting;
        let waiting =
            asked.and_then(|waiting| self.queues.iter().position(|known| *known == waiting));
        let outcome = self.model.packet_arrived(&Arrival {
            header,
            metadata: &packet.metadata,
            data: &packet.data,
            from: packet.from,
            waiting,
            asked,
        });
        outcome.check(header, found)?;
        self.check_announced(header)?;
        if !is_alone {
            return Ok(());
        }
        if let Some((number, entry)) = self.slots.entry(header) {
            self.model.entry_is(number, header.metadata_index, entry)?;
        }
        if let (Ok(Received::Asked), Some(place)) = (found, &packet.place) {
            let at = (place.at - place.low) as usize;
            let end = at + operating::changed_bytes(header) as usize;
            let changed = operating::changed(header, &packet.data, &place.before[at..end]);
            return packet.check_place(&changed);
        }
        let is_message = header.kind == Kind::MESSAGE;
        let is_written = found.is_ok() && !header.flags.is_placed() && !is_message;
        packet.check_place(if is_written { &packet.data } else { &[] })
    }

    /// Others went on in the middle of the call. An entry that lets nothing in may be permitted and
    /// armed at any time, so a packet that was let in found it so.
    fn change_entry(&mut self, packet: &Packet, is_let_in: bool) {
        let header = &packet.header;
        let (Some(slot), Some((number, entry))) =
            (self.slots.get(header.slot), self.slots.entry(header))
        else {
            return;
        };
        let index = header.metadata_index;
        let is_one_shot = slot.mode == Mode::ParanoidOneShot;
        if is_one_shot && self.model.is_armed(number, index) {
            return;
        }
        if let Some(permission) = entry.permission() {
            self.model.permitted(number, index, permission);
        }
        if is_one_shot && is_let_in {
            self.model.armed(number, index);
        }
    }

    /// What a world has then seen, if packets are what it is about.
    fn seen(&self, event: &ReceiveEvent<'_, Area>) -> Option<&'static str> {
        let packet = self.packet.as_ref()?;
        let is_alone = events() == packet.events;
        match event {
            ReceiveEvent::DoneShort(None) => Some("a short packet that the fast path left, judged"),
            ReceiveEvent::DoneShort(_) if packet.is_awaited => Some("an awaited message judged"),
            ReceiveEvent::DoneShort(_) => Some("a short packet judged"),
            ReceiveEvent::Done { .. } if !is_alone => {
                Some("a packet judged in whose middle others went on")
            }
            ReceiveEvent::Done { .. } if packet.header.flags.is_placed() => {
                Some("a placed packet judged")
            }
            ReceiveEvent::Done { reception, .. } => Some(match reception {
                Ok(Received::Deposited) => "a part of a message judged",
                Ok(Received::Asked) => "a one-sided operation judged",
                Ok(Received::Queued) => "a message that waits at its port judged",
                Ok(_) if packet.header.kind == Kind::MESSAGE => "a message handed over judged",
                Ok(_) => "a packet judged",
                Err(_) => "a refused packet judged",
            }),
            _ => None,
        }
    }

    /// Whether what was announced is what had to be.
    fn check_announced(&mut self, header: &Header) -> Result<(), Violation> {
        let announced = self.announced.take();
        let due = self.slots.get(header.slot).and_then(|slot| slot.queue);
        let found = Ok(announced.map(|(_, notification)| notification));
        let is_there = announced.is_none_or(|(queue, _)| Some(queue) == due);
        let number = self.queues.iter().position(|known| Some(*known) == due);
        match number {
            Some(number) if is_there => self.model.notified(number, found),
            None if is_there => Ok(()),
            _ => Err(Violation::Notified {
                queue: number.unwrap_or(usize::MAX),
                expected: Ok(None),
                found,
            }),
        }
    }

    fn count(&self, refusals: &Refusals) -> Result<(), Violation> {
        self.model.counted(None, refusals)
    }

    fn short_done(&mut self, received: Option<ShortReceived>) -> Result<(), Violation> {
        let Some(received) = received else {
            // Nothing happened.
            return match self.packet.take() {
                Some(packet) if events() == packet.events => packet.check_place(&[]),
                _ => Ok(()),
            };
        };
        let Some(packet) = &self.packet else {
            return Ok(());
        };
        let mut notification = received.notification(packet.from);
        if packet.is_awaited
            && let Some((_, entry)) = self.slots.entry(&packet.header)
        {
            // It is announced to nobody.
            notification.word = entry.receive_class();
        }
        self.done(Ok(Received::Handed(notification)))
    }
}

impl Packet {
    fn general(
        header: &Header,
        payload: &dyn Payload<Area>,
        from: LinkId,
        waiting: Option<QueueId>,
    ) -> Self {
        let mut metadata = [0; USER_METADATA_BYTES];
        let metadata_bytes = usize::from(header.metadata_length_bytes).min(USER_METADATA_BYTES);
        payload.metadata(&mut metadata, metadata_bytes);
        Self {
            header: *header,
            metadata: Bytes::from_slice(&metadata[..metadata_bytes]),
            data: data_of(header, payload),
            from,
            waiting,
            is_awaited: false,
            place: None,
            events: events(),
        }
    }

    fn short(short: &Short, waiting: QueueId, is_awaited: bool) -> Self {
        let header = short.header();
        let metadata_bytes = usize::from(header.metadata_length_bytes);
        Self {
            header,
            metadata: Bytes::from_slice(&short.word.to_le_bytes()[..metadata_bytes]),
            data: Bytes::from_slice(&short.bytes()),
            from: ANYBODY,
            waiting: Some(waiting),
            is_awaited,
            place: None,
            events: events(),
        }
    }

    /// Whether nothing but these bytes was written, to the packet's place.
    fn check_place(&self, written: &[u8]) -> Result<(), Violation> {
        let Some(place) = &self.place else {
            return Ok(());
        };
        let Some(found) = bytes_of(&place.area, place.low, place.before.len()) else {
            return Ok(());
        };
        let at = (place.at - place.low) as usize;
        let end = at + written.len();
        let parts = [
            (0, &place.before[..at], &found[..at]),
            (at, written, &found[at..end]),
            (end, &place.before[end..], &found[end..]),
        ];
        let (low, expected, found) = match parts.iter().find(|(_, before, found)| before != found) {
            None => return Ok(()),
            Some(part) => *part,
        };
        let wrong = expected
            .iter()
            .zip(found)
            .take_while(|(expected, found)| expected == found);
        let wrong = wrong.count();
        Err(Violation::Byte {
            area: usize::from(self.header.slot.index()),
            offset: place.low + (low + wrong) as u64,
            expected: expected[wrong],
            found: found[wrong],
        })
    }
}

/// The data of a packet, which it deposits in memory of its own.
fn data_of(header: &Header, payload: &dyn Payload<Area>) -> Bytes {
    let length_bytes = match header.flags.is_placed() {
        true => 0,
        false => header.length_bytes as usize,
    };
    let data = SCRATCH.with(|area| {
        let area = area.as_ref()?;
        payload.deposit(area, 0).ok()?;
        bytes_of(area, 0, length_bytes)
    });
    data.unwrap_or_default()
}

fn bytes_of(area: &Area, offset: u64, length_bytes: usize) -> Option<Bytes> {
    let mut bytes = Bytes::from_elem(0, length_bytes);
    area.read_at(offset, &mut bytes).ok()?;
    Some(bytes)
}

/// How much has happened in the world. As long as it stays the same, nobody else went on.
fn events() -> u64 {
    let mut events = 0;
    kernel::with_if_any(|kernel| events = kernel.happened());
    events
}

impl ReceiveObserver<Area> for ReceiveJudge {
    const LISTENS: bool = true;

    fn observe(&mut self, event: ReceiveEvent<'_, Area>) {
        let seen = self.seen(&event);
        let judged = match event {
            ReceiveEvent::Enabled(is_enabled) => {
                self.model.receive_enable = match is_enabled {
                    true => ReceiveEnable::Open,
                    false => ReceiveEnable::Lapsed,
                };
                Ok(())
            }
            ReceiveEvent::SlotOpened { name, options } => self.slot_opened(name, options),
            ReceiveEvent::SlotChanged {
                name,
                change,
                was_open,
            } => self.slot_changed(name, change, was_open),
            ReceiveEvent::Granted {
                grant,
                slot,
                range,
                holder,
            } => {
                self.model.granted(grant, slot, holder, range);
                Ok(())
            }
            ReceiveEvent::GrantEnded(grant) => {
                self.model.grant_ended(grant);
                Ok(())
            }
            ReceiveEvent::GrantsEndedOf(holder) => {
                self.model.grants_ended_of(holder);
                Ok(())
            }
            ReceiveEvent::Came {
                header,
                payload,
                from,
                waiting,
            } => {
                self.came(Packet::general(header, payload, from, waiting));
                Ok(())
            }
            ReceiveEvent::CameShort {
                short,
                waiting,
                is_awaited,
            } => {
                self.came(Packet::short(&short, waiting, is_awaited));
                Ok(())
            }
            ReceiveEvent::Answered(link) => {
                self.model.answered(link);
                Ok(())
            }
            ReceiveEvent::LinkEnded(link) => {
                self.model.link_ended(link);
                Ok(())
            }
            ReceiveEvent::Announced(queue, notification) => {
                self.announced = Some((queue, notification));
                Ok(())
            }
            ReceiveEvent::Done {
                reception,
                refusals,
            } => self.done(reception).and_then(|()| self.count(refusals)),
            ReceiveEvent::DoneShort(received) => self.short_done(received),
            ReceiveEvent::PortOpened { name, options } => {
                self.model.port_opened(name, options);
                Ok(())
            }
            ReceiveEvent::PortChanged { name, change } => {
                self.model.port_changed(name, change);
                Ok(())
            }
            ReceiveEvent::MessagePopped {
                name,
                arrived,
                bytes,
            } => self.model.message_popped(name, arrived, bytes),
        };
        kernel::with_if_any(|kernel| {
            if let Some(seen) = seen {
                kernel.saw_often(seen);
            }
            kernel.judge(judged);
        });
    }
}
