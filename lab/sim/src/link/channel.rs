//! Channels: one direction of a link each, from one interface to another.
//!
//! A channel has room for so many packets, like a ring. What is on the way, what has come, and what
//! was taken but not returned counts. The receiver's announcements and the sender's wish to be
//! woken are kept here, as the ring keeps them in shared memory.

use std::collections::{BTreeSet, VecDeque};

use hamlyn_engine::memory::Unsent;
use hamlyn_engine::packet::Header;
use hamlyn_engine::transport::Return;
use hamlyn_link::Refused;
use hamlyn_ring::reports::REPORTS_KEPT;
use smallvec::SmallVec;

use crate::random::Random;
use crate::time::{Span, Time};
use crate::world::Path;
use crate::world::kernel::{Kernel, What};

/// Bytes of a header on its way.
const HEADER_BYTES: u64 = 48;

/// A packet on its way, or come.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) header: Header,
    /// Metadata, then data.
    pub(crate) bytes: SmallVec<[u8; 24]>,
    /// The how manieth of its channel it is, from 1 on.
    pub(crate) number: u64,
}

impl Packet {
    pub(crate) fn metadata(&self) -> &[u8] {
        let length = usize::from(self.header.metadata_length_bytes);
        self.bytes.get(..length).unwrap_or(&[])
    }

    pub(crate) fn data(&self) -> &[u8] {
        let length = usize::from(self.header.metadata_length_bytes);
        self.bytes.get(length..).unwrap_or(&[])
    }
}

/// What a receiver has said of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Announced {
    Awake,
    /// With the number of the announcement.
    Asleep(u64),
}

/// Until when a sender sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Awaited {
    /// There is room.
    is_needed: bool,
    /// Packets up to that number were taken.
    fence: Option<u64>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Channel {
    from: u32,
    to: u32,
    path: Path,
    room: u64,
    sent: u64,
    returned: u64,
    on_the_way: u32,
    /// The wire is busy until then.
    busy_until: Time,
    arrived: VecDeque<Packet>,
    /// The receiver sees no packets beyond that number: others are before them in the input queue
    /// of its node.
    shown: u64,
    announced: Announced,
    announcements: u64,
    /// What was announced since the last barrier of the receiver, or of the sender, and the other
    /// end does not see yet.
    announced_unseen: Option<Announced>,
    awaited_unseen: Option<Awaited>,
    /// The announcement that the sender last rang for.
    rung: u64,
    awaited: Awaited,
    /// All packets up to that number were taken; and these, which overtook others.
    taken: u64,
    taken_ahead: BTreeSet<u64>,
    /// What was refused and not fetched; and how much was forgotten.
    reports: VecDeque<(Header, Return)>,
    forgotten: u64,
    refused: Refused,
    /// Nobody takes what arrives.
    deaf: bool,
    /// To be called when nothing is on the way any more.
    at_rest: Option<AtRest>,
}

impl Channel {
    /// True if the receiver sees a packet that has come and was not taken.
    fn shows_first(&self) -> bool {
        let first = self.arrived.front();
        first.is_some_and(|packet| packet.number <= self.shown)
    }
}

/// What follows when a channel has come to rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtRest {
    pub(crate) interface: u32,
    pub(crate) token: u64,
    pub(crate) cause: hamlyn_host::LossCause,
}

/// All channels of a world, and the packets on their way.
pub(crate) struct Channels {
    all: Vec<Channel>,
    packets: Vec<Option<Packet>>,
    free: Vec<u32>,
    /// Channels of which something was announced since the last barrier, and is not seen yet.
    unseen: Vec<u32>,
    /// How much was announced in all.
    announced: u64,
    random: Random,
}

impl Channels {
    pub(crate) fn new(random: Random) -> Self {
        Self {
            all: Vec::new(),
            packets: Vec::new(),
            free: Vec::new(),
            unseen: Vec::new(),
            announced: 0,
            random,
        }
    }

    pub(crate) fn open(&mut self, from: u32, to: u32, path: Path, room: u32) -> u32 {
        self.all.push(Channel {
            from,
            to,
            path,
            room: u64::from(room.max(1)),
            sent: 0,
            returned: 0,
            on_the_way: 0,
            busy_until: Time::ZERO,
            arrived: VecDeque::new(),
            shown: u64::MAX,
            announced: Announced::Awake,
            announcements: 0,
            rung: 0,
            announced_unseen: None,
            awaited_unseen: None,
            awaited: Awaited::default(),
            taken: 0,
            taken_ahead: BTreeSet::new(),
            reports: VecDeque::new(),
            forgotten: 0,
            refused: Refused::default(),
            deaf: false,
            at_rest: None,
        });
        self.all.len() as u32 - 1
    }

    fn get(&self, channel: u32) -> Option<&Channel> {
        self.all.get(channel as usize)
    }

    fn get_mut(&mut self, channel: u32) -> Option<&mut Channel> {
        self.all.get_mut(channel as usize)
    }

    fn put_down(&mut self, packet: Packet) -> u32 {
        match self.free.pop() {
            Some(free) => {
                self.packets[free as usize] = Some(packet);
                free
            }
            None => {
                self.packets.push(Some(packet));
                self.packets.len() as u32 - 1
            }
        }
    }

    /// Whether something has come that was not taken.
    pub(crate) fn is_pending(&self, channel: u32) -> bool {
        self.get(channel)
            .is_some_and(|channel| channel.shows_first())
    }

    /// Moves what has come into the receiver's hands.
    pub(crate) fn collect(&mut self, channel: u32, into: &mut VecDeque<Packet>) {
        let Some(channel) = self.get_mut(channel) else {
            return;
        };
        if channel.shown == u64::MAX {
            return into.append(&mut channel.arrived);
        }
        while channel.shows_first() {
            into.extend(channel.arrived.pop_front());
        }
    }

    /// The receiver sees packets up to that number.
    pub(crate) fn show(&mut self, channel: u32, number: u64) {
        if let Some(channel) = self.get_mut(channel) {
            channel.shown = number;
        }
    }

    /// The receiver of a channel.
    pub(crate) fn receiver(&self, channel: u32) -> Option<u32> {
        self.get(channel).map(|channel| channel.to)
    }

    pub(crate) fn returned(&self, channel: u32) -> u64 {
        self.get(channel).map_or(0, |channel| channel.returned)
    }

    pub(crate) fn await_credit(&mut self, channel: u32, is_needed: bool, fence: Option<u64>) {
        let awaited = Awaited { is_needed, fence };
        // A wait that is over may be seen late without harm.
        let is_seen = awaited == Awaited::default() || self.is_seen_at_once();
        let Some(of) = self.all.get_mut(channel as usize) else {
            return;
        };
        if is_seen {
            of.awaited_unseen = None;
            of.awaited = awaited;
        } else {
            of.awaited_unseen = Some(awaited);
            self.unseen.push(channel);
        }
    }

    /// Whether the next announcement is seen before the barrier that follows it: now and then.
    fn is_seen_at_once(&mut self) -> bool {
        self.announced += 1;
        self.announced.count_ones().is_multiple_of(2)
    }

    /// All see what that interface has announced; until then, another may overlook it.
    pub(crate) fn pass_barrier(&mut self, interface: u32) {
        let all = &mut self.all;
        self.unseen.retain(|channel| {
            let Some(channel) = all.get_mut(*channel as usize) else {
                return false;
            };
            if channel.from == interface {
                channel.awaited = channel.awaited_unseen.take().unwrap_or(channel.awaited);
            }
            if channel.to == interface {
                let unseen = channel.announced_unseen.take();
                channel.announced = unseen.unwrap_or(channel.announced);
            }
            channel.awaited_unseen.is_some() || channel.announced_unseen.is_some()
        });
    }

    /// Whether all packets up to that number were taken.
    pub(crate) fn is_taken(&self, channel: u32, number: u64) -> bool {
        self.get(channel)
            .is_some_and(|channel| channel.taken >= number)
    }

    /// A packet was refused.
    pub(crate) fn report(&mut self, channel: u32, header: Header, reason: Return) {
        let Some(channel) = self.get_mut(channel) else {
            return;
        };
        if channel.reports.len() as u64 == REPORTS_KEPT {
            channel.reports.pop_front();
            channel.forgotten += 1;
        }
        channel.reports.push_back((header, reason));
        channel.refused.packets += 1;
        channel.refused.last = Some((header, reason));
    }

    pub(crate) fn refused(&self, channel: u32) -> Refused {
        self.get(channel)
            .map_or(Refused::default(), |channel| channel.refused)
    }

    pub(crate) fn next_returned(&mut self, channel: u32) -> Option<(Header, Return)> {
        self.get_mut(channel)?.reports.pop_front()
    }

    pub(crate) fn forgotten(&self, channel: u32) -> u64 {
        self.get(channel).map_or(0, |channel| channel.forgotten)
    }

    pub(crate) fn announce(&mut self, channel: u32, asleep: bool) {
        let is_seen = asleep && self.is_seen_at_once();
        let Some(of) = self.all.get_mut(channel as usize) else {
            return;
        };
        if asleep {
            of.announcements += 1;
            let announced = Announced::Asleep(of.announcements);
            if is_seen {
                (of.announced, of.announced_unseen) = (announced, None);
            } else {
                of.announced_unseen = Some(announced);
                self.unseen.push(channel);
            }
        } else {
            of.announced_unseen = None;
            of.announced = Announced::Awake;
        }
    }

    /// Nobody takes what comes from now on.
    pub(crate) fn deafen(&mut self, channel: u32) {
        if let Some(channel) = self.get_mut(channel) {
            channel.deaf = true;
            channel.arrived.clear();
        }
    }

    /// Calls for what follows when nothing is on the way any more. True if that is so now.
    pub(crate) fn end(&mut self, channel: u32, at_rest: AtRest) -> bool {
        let Some(channel) = self.get_mut(channel) else {
            return true;
        };
        if channel.on_the_way == 0 {
            return true;
        }
        channel.at_rest = Some(at_rest);
        false
    }
}

impl Kernel {
    /// Whether the channel has room for a packet.
    pub(crate) fn has_room(&self, channel: u32) -> bool {
        self.channels
            .get(channel)
            .is_some_and(|channel| channel.sent - channel.returned < channel.room)
    }

    /// Puts a packet on its way.
    pub(crate) fn send(&mut self, number: u32, mut packet: Packet) -> Result<(), Unsent> {
        self.charge(self.settings.costs.send);
        let local = self.local();
        let header_bytes = match &self.charges {
            Some(charges) => charges.machine.link().header.0,
            None => HEADER_BYTES,
        };
        let Channels { all, random, .. } = &mut self.channels;
        let Some(channel) = all.get_mut(number as usize) else {
            return Err(Unsent::Gone);
        };
        if channel.sent - channel.returned >= channel.room {
            return Err(Unsent::Full);
        }
        channel.sent += 1;
        packet.number = channel.sent;
        channel.on_the_way += 1;
        let length_bytes = header_bytes + packet.bytes.len() as u64;
        let offset = packet.header.offset;
        self.trace
            .count(local, [u64::from(number) << 8 | 2, offset]);
        let path = channel.path;
        channel.busy_until = channel.busy_until.max(local) + path.per_byte * length_bytes;
        let jitter = Span::from_ps(random.below(path.jitter.as_ps()));
        let at = channel.busy_until + path.delay + jitter;
        let packet = self.channels.put_down(packet);
        let channel = number;
        self.schedule(at, What::Arrive { channel, packet });
        Ok(())
    }

    /// A packet has come to the end of its way.
    pub(crate) fn arrive(&mut self, number: u32, packet: u32) {
        let taken = self.channels.packets.get_mut(packet as usize);
        let Some(content) = taken.and_then(Option::take) else {
            return;
        };
        self.channels.free.push(packet);
        self.come(number, content);
    }

    /// A packet is there.
    fn come(&mut self, number: u32, content: Packet) {
        let now = self.now();
        let Some(channel) = self.channels.get_mut(number) else {
            return;
        };
        channel.on_the_way -= 1;
        let at_rest = channel.at_rest.take_if(|_| channel.on_the_way == 0);
        let header = content.header;
        let (packet, packet_bytes) = (content.number, content.bytes.len() as u64);
        let heard = !channel.deaf;
        if heard {
            channel.arrived.push_back(content);
        }
        self.trace
            .count(now, [u64::from(number) << 8 | 3, header.offset]);
        self.trace.note(now, || {
            let fate = if heard { "arrives" } else { "finds nobody" };
            format!(
                "channel {number}: {} bytes for {} at {} {fate}",
                header.length_bytes, header.slot, header.offset
            )
        });
        if heard {
            if self.input_queues.is_some() {
                self.enter_input_queue(number, packet, packet_bytes);
            } else {
                self.tell_receiver(number);
            }
        }
        if let Some(AtRest {
            interface,
            token,
            cause,
        }) = at_rest
        {
            self.send_lost(interface, token, cause);
        }
    }

    /// The receiver finds a packet, if it looks, and its sender sees to it that it does.
    pub(crate) fn tell_receiver(&mut self, number: u32) {
        let Some(to) = self.channels.receiver(number) else {
            return;
        };
        self.wake_interface(to);
        let delay = self.settings.ring_delay;
        if delay == Span::ZERO {
            self.ring_if_asleep(number);
        } else {
            let later = Span::from_ps(self.channels.random.below(delay.as_ps()));
            self.schedule(self.now() + later, What::Look { channel: number });
        }
    }

    /// The sender looks whether the receiver sleeps, and rings once for each announcement. That may
    /// be long after the packet has come, and been taken.
    pub(crate) fn ring_if_asleep(&mut self, channel: u32) {
        let Some(channel) = self.channels.get_mut(channel) else {
            return;
        };
        if let Announced::Asleep(number) = channel.announced
            && std::mem::replace(&mut channel.rung, number) != number
        {
            let to = channel.to;
            self.ring(to);
        }
    }

    /// The packet of that number was taken.
    pub(crate) fn note_taken(&mut self, channel: u32, number: u64) {
        let Some(channel) = self.channels.get_mut(channel) else {
            return;
        };
        if number != channel.taken + 1 {
            channel.taken_ahead.insert(number);
            return;
        }
        channel.taken = number;
        while channel.taken_ahead.remove(&(channel.taken + 1)) {
            channel.taken += 1;
        }
        let (from, taken) = (channel.from, channel.taken);
        let fence = &mut channel.awaited.fence;
        if fence.take_if(|fence| *fence <= taken).is_some() {
            self.ring(from);
            self.wake_interface(from);
        }
    }

    /// Returns the room of so many packets.
    pub(crate) fn give_back(&mut self, channel: u32, packets: u64) {
        let Some(channel) = self.channels.get_mut(channel) else {
            return;
        };
        channel.returned += packets;
        let is_needed = std::mem::take(&mut channel.awaited.is_needed);
        let from = channel.from;
        if is_needed {
            self.ring(from);
        }
        self.wake_interface(from);
    }
}
