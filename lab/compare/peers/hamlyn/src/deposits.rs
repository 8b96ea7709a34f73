//! Messages whose places the sender names: the raw interface, with one call for each message or for
//! many, with copied or direct placement; and tagged write.
//!
//! Sender and receiver walk through the same places. In a stream of messages that are longer than a
//! cell, the receiver says from time to time how many it has seen, so that no place is written
//! again before it was read.

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::ProcessHost;
use hamlyn::region::SharedOptions;
use hamlyn::tagged_write;
use hamlyn::{
    Access, Area, Holders, Manager, Message, NewSlot, Queue, RegionTicket, Slot, Target, Ticket,
    Wait,
};
use hamlyn_compare_session::{
    MESSAGE_BYTES_MAX, Order, Peer, RECEIVER, REGION_BYTES, Session, Stamp,
};

use crate::{SETTING_UP, is_between, open};

/// Metadata entries, and so the most messages in flight that are longer than a packet.
const ENTRIES: u64 = 64;
/// In flight, all together; more would leave the cache.
const WINDOW_BYTES: u64 = 256 << 10;
/// Messages up to this size are not counted back: there are more places than messages on their way.
const UNCOUNTED_BYTES_MAX: usize = 64;
const UNCOUNTED_PLACES: u64 = 1 << 14;
/// What the answer of a round trip needs.
const BACK_BYTES: u64 = 1 << 20;
/// Packets on one host carry this much unless set otherwise, and between hosts so much over any
/// network.
const PACKET_BYTES: usize = 16 << 10;
const PACKET_BYTES_BETWEEN: usize = 1 << 10;
const QUEUE_ENTRIES: usize = 1 << 16;
/// Messages of a call, where one call takes many.
const MANY: usize = 64;

/// By which calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Raw,
    /// The raw interface, each side storing into a region that the other shares.
    Direct,
    /// The raw interface, many messages in a call.
    Many,
    Tagged,
}

/// The receiving end.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one, and it is used for every message"
)]
enum Inbox {
    Raw {
        slot: Slot,
        queue: Queue,
        area: Area,
    },
    Tagged(tagged_write::Receiver),
}

impl Inbox {
    fn area(&self) -> &Area {
        match self {
            Inbox::Raw { area, .. } => area,
            Inbox::Tagged(receiver) => receiver.area(),
        }
    }
}

/// The sending end.
struct Outbox {
    fast: Target,
    /// For messages longer than a packet, by metadata entry.
    entries: Vec<Target>,
    tagged: Option<tagged_write::Sender>,
}

/// The places of an order.
#[derive(Clone, Copy, Default)]
struct Places {
    size: u64,
    /// Where this sender's begin.
    base: u64,
    many: u64,
    /// Messages in flight at most; 0 if they are not counted.
    window: u64,
}

impl Places {
    fn of(order: &Order, sender: usize) -> Self {
        let size = order.size_bytes as u64;
        if order.is_latency {
            return Self {
                size,
                base: 0,
                many: (4096 / size).max(1),
                window: 0,
            };
        }
        if order.size_bytes <= UNCOUNTED_BYTES_MAX {
            return Self {
                size,
                base: (sender as u64 - 1) * UNCOUNTED_PLACES * size,
                many: UNCOUNTED_PLACES,
                window: 0,
            };
        }
        let least = if size > (16 << 20) { 2 } else { 4 };
        let window = (WINDOW_BYTES / size).clamp(least, ENTRIES);
        let many = if order.is_fresh {
            REGION_BYTES as u64 / size
        } else {
            window
        };
        Self {
            size,
            base: 0,
            many,
            window,
        }
    }

    /// Messages that are reported together.
    #[inline]
    fn batch(&self) -> u64 {
        (self.window / 4).max(1)
    }

    #[inline]
    fn at(&self, turn: u64) -> u64 {
        self.base + turn % self.many * self.size
    }
}

pub(crate) struct Deposits {
    manager: Manager<ProcessHost>,
    way: Way,
    /// Whether a wait is a blocking call, which sleeps; else it is a loop that polls.
    blocks: bool,
    role: usize,
    inbox: Inbox,
    /// To the receiver; or, if this is the receiver, to the first sender.
    outbox: Outbox,
    order: Order,
    places: Places,
    sent: u64,
    received: u64,
    /// Sent messages that the receiver has seen.
    seen: u64,
    /// Whether the two are on different hosts.
    is_between: bool,
    /// Whether the inbox was touched all over, as fresh places must have been.
    touched: bool,
}

impl Deposits {
    pub(crate) fn open(session: &Session, way: Way) -> Result<Self> {
        let manager = open(session)?;
        let bytes = if session.role == RECEIVER {
            REGION_BYTES.max(MESSAGE_BYTES_MAX * 2) as u64
        } else {
            BACK_BYTES
        };
        let inbox = match way {
            Way::Raw | Way::Direct | Way::Many => {
                let mut interface = manager.session();
                let area = if way == Way::Direct {
                    Area::shared(SharedOptions::reserved(bytes))?
                } else {
                    interface.allocate(bytes)?
                };
                let queue = interface.open_queue(QUEUE_ENTRIES)?;
                let new = NewSlot::new(&area).queue(&queue).entries(ENTRIES as usize);
                let slot = interface.open_slot(new)?;
                Inbox::Raw { slot, queue, area }
            }
            Way::Tagged => {
                Inbox::Tagged(tagged_write::Receiver::new(&manager, bytes, QUEUE_ENTRIES)?)
            }
        };
        let (fast, entry) = match &inbox {
            Inbox::Raw { slot, .. } => (slot.fast_ticket(0, bytes)?, slot.ticket(0, 0, bytes)?),
            Inbox::Tagged(receiver) => (receiver.ticket(), receiver.ticket()),
        };
        let tickets = [fast.to_bytes(), entry.to_bytes()].concat();
        session.publish(&format!("tickets.{}", session.role), &tickets)?;
        let other = if session.role == RECEIVER {
            1
        } else {
            RECEIVER
        };
        let tickets = session.awaited(&format!("tickets.{other}"))?;
        let (fast, entry) = tickets
            .split_at_checked(tickets.len() / 2)
            .context("no tickets")?;
        let fast = Ticket::from_bytes(fast)?;
        let entry = Ticket::from_bytes(entry)?;
        let tagged = match way {
            Way::Raw | Way::Direct | Way::Many => None,
            Way::Tagged => Some(tagged_write::Sender::grow(&manager, &fast, SETTING_UP)?),
        };
        let mut interface = manager.session();
        let entries: Result<Vec<Target>, _> = (0..ENTRIES)
            .map(|index| {
                let metadata_index = index as u16;
                interface.target(
                    &Ticket {
                        metadata_index,
                        ..entry
                    },
                    SETTING_UP,
                )
            })
            .collect();
        let outbox = Outbox {
            fast: interface.target(&fast, SETTING_UP)?,
            entries: entries?,
            tagged,
        };
        if let (Way::Direct, Inbox::Raw { slot, area, .. }) = (way, &inbox) {
            // Pages that are there are mapped in advance at the other side.
            fill(area, bytes)?;
            let holders = Holders::One(outbox.fast.link());
            let region = interface.share(slot, 0..bytes, Access::Writable, holders)?;
            session.publish(
                &format!("region.{}", session.role),
                &region.ticket().to_bytes(),
            )?;
            let ticket = session.awaited(&format!("region.{other}"))?;
            interface.attach(&RegionTicket::from_bytes(&ticket)?, SETTING_UP)?;
        }
        drop(interface);
        Ok(Self {
            manager,
            way,
            blocks: ["sleeping", "default"].contains(&session.variant.as_str()),
            role: session.role,
            inbox,
            outbox,
            order: Order {
                is_latency: true,
                size_bytes: 8,
                count: 1,
                senders: 1,
                is_fresh: false,
                readers: 0,
                category: None,
            },
            places: Places::default(),
            sent: 0,
            received: 0,
            seen: 0,
            is_between: is_between(),
            touched: way == Way::Direct,
        })
    }

    /// Whether it is several packets, so that a metadata entry has to count them. What is stored in
    /// place is one packet whatever its length; so if that were not done, the longer ones would be
    /// refused.
    fn is_long(&self) -> bool {
        let packet_bytes = if self.is_between {
            PACKET_BYTES_BETWEEN
        } else {
            PACKET_BYTES
        };
        self.way != Way::Direct && self.order.size_bytes > packet_bytes
    }

    /// The next notification's word and metadata entry, if there is one; in a blocking call, once
    /// there is one.
    #[inline]
    fn notification(&mut self) -> Result<Option<(u64, u16)>> {
        let blocks = self.blocks;
        Ok(match &mut self.inbox {
            Inbox::Raw { queue, .. } => {
                let mut interface = self.manager.session();
                let notification = if blocks {
                    interface.rcv_block(queue, Wait::Forever)?
                } else {
                    interface.rcv(queue)?
                };
                notification.map(|notification| (notification.word, notification.metadata_index))
            }
            Inbox::Tagged(receiver) => receiver.get_tag(Wait::Poll)?.map(|tag| (tag, 0)),
        })
    }

    /// Waits until fewer than `in_flight` messages are on their way.
    fn await_seen(&mut self, in_flight: u64) -> Result<()> {
        while self.sent - self.seen >= in_flight {
            if let Some((word, _)) = self.notification()? {
                self.seen = word;
            }
        }
        Ok(())
    }

    /// Tells the sender how many messages were seen.
    fn report(&mut self) -> Result<()> {
        let terminus = self.manager.terminus();
        let message = Message::new(&[]).word(self.received);
        self.manager
            .session()
            .send_msg(terminus, &self.outbox.fast, &message, Wait::Forever)?;
        Ok(())
    }
}

/// Touches it all over.
fn fill(area: &Area, bytes: u64) -> Result<()> {
    area.fill(0, bytes, 1).ok().context("the area is too short")
}

/// The stamp of a message where it lies.
#[inline]
fn stamp_at(area: &Area, place: u64, size: u64) -> Option<Stamp> {
    Some(Stamp {
        first: area.load_u64(place).ok()?,
        last: area.load_u64(place + size - 8).ok()?,
    })
}

impl Peer for Deposits {
    fn prepare(&mut self, order: &Order) -> Result<Option<String>> {
        self.order = *order;
        self.places = Places::of(order, if self.role == RECEIVER { 1 } else { self.role });
        (self.sent, self.received, self.seen) = (0, 0, 0);
        if self.is_long() && self.outbox.tagged.is_some() {
            return Ok(Some("a tagged write is one packet".to_owned()));
        }
        let is_short_stream = !order.is_latency && order.size_bytes <= UNCOUNTED_BYTES_MAX;
        if self.way == Way::Many && !is_short_stream {
            return Ok(Some("a call for many is for short messages".to_owned()));
        }
        if order.is_fresh && self.role == RECEIVER && !self.touched {
            fill(self.inbox.area(), REGION_BYTES as u64)?;
            self.touched = true;
        }
        Ok(None)
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<()> {
        let place = self.places.at(self.sent);
        if self.places.window > 0 && self.sent - self.seen >= self.places.window {
            self.await_seen(self.places.window)?;
        }
        let wait = Wait::Forever;
        if let Some(tagged) = &self.outbox.tagged {
            tagged.send(place, message, place, wait)?;
        } else {
            let target = if self.is_long() {
                let entries = self.places.window.max(1);
                &self.outbox.entries[(self.sent % entries) as usize]
            } else {
                &self.outbox.fast
            };
            let put = Message::new(message).at(place);
            let put = if self.is_long() { put } else { put.word(place) };
            let terminus = self.manager.terminus();
            self.manager
                .session()
                .send_msg(terminus, target, &put, wait)?;
        }
        self.sent += 1;
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Result<Stamp> {
        let (word, index) = loop {
            if let Some(found) = self.notification()? {
                break found;
            }
        };
        let place = if self.is_long() {
            let entries = self.places.window.max(1);
            ensure!(
                u64::from(index) == self.received % entries,
                "a message is missing"
            );
            self.places.at(self.received)
        } else {
            word
        };
        let stamp = stamp_at(self.inbox.area(), place, self.places.size)
            .context("a place outside the area")?;
        self.received += 1;
        // In batches, but so that the sender never waits for one that has begun.
        if self.places.window > 0 && self.received.is_multiple_of(self.places.batch()) {
            self.report()?;
        }
        Ok(stamp)
    }

    fn settle(&mut self) -> Result<()> {
        if self.places.window > 0 && self.role == RECEIVER {
            if !self.received.is_multiple_of(self.places.batch()) {
                self.report()?;
            }
        } else if self.places.window > 0 {
            self.await_seen(1)?;
        }
        ensure!(
            self.way != Way::Direct || self.manager.session().regions_attached() == 1,
            "the region has ended"
        );
        ensure!(
            self.manager.session().flush(SETTING_UP)?,
            "what was sent is still waiting"
        );
        Ok(())
    }

    fn many(&self) -> usize {
        if self.way == Way::Many { MANY } else { 1 }
    }

    #[inline]
    fn send_many(&mut self, messages: &[u8], size_bytes: usize) -> Result<()> {
        let terminus = self.manager.terminus();
        let (places, sent) = (self.places, self.sent);
        let batch = (sent..)
            .map(|turn| places.at(turn))
            .zip(messages.chunks_exact(size_bytes))
            .map(|(place, message)| Message::new(message).at(place).word(place));
        let expected = messages.len() / size_bytes;
        let mut interface = self.manager.session();
        let sent = interface.send_many(terminus, &self.outbox.fast, batch, Wait::Forever)?;
        ensure!(sent.count == expected, "a batch was cut short");
        self.sent += expected as u64;
        Ok(())
    }

    #[inline]
    fn receive_many(&mut self, most: u64, mut each: impl FnMut(Stamp)) -> Result<u64> {
        let Inbox::Raw { queue, area, .. } = &mut self.inbox else {
            anyhow::bail!("a tagged write is taken by itself");
        };
        let size = self.places.size;
        let most = most.min(MANY as u64) as usize;
        let mut outside = false;
        let mut interface = self.manager.session();
        let taken = interface.receive_many(queue, most, |notification| {
            match stamp_at(area, notification.word, size) {
                Some(stamp) => each(stamp),
                None => outside = true,
            }
        })?;
        ensure!(!outside, "a place outside the area");
        self.received += taken as u64;
        Ok(taken as u64)
    }
}
