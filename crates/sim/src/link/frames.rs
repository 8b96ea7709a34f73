//! Frames: packets of far links on a network that may lose, double, damage and overtake.
//!
//! The engine's assumption is a network that loses nothing (Hamlyn 2.1), and nothing here sends again. So frames are
//! numbered and summed up: what came already or is damaged is thrown away, and a link that owes a packet for too long
//! ends on both sides, with a reason. What has come is known to the sender at once: acknowledgements are not simulated.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use hamlyn_host::LossCause;

use crate::link::channel::Packet;
use crate::machine::Way;
use crate::machine::carrier::Marked;
use crate::machine::desk::Mark;
use crate::network::{Event, Frame, HostId, Network, Payload, Refusal};
use crate::time::{Span, Time};
use crate::world::kernel::{self, Kernel, What};

/// What is in a frame of the world; nobody else can look inside.
#[derive(Clone, Debug)]
pub struct Parcel {
    channel: u32,
    sequence: u64,
    packet: Rc<Packet>,
    /// What it is to a machine, if one carries it.
    mark: Option<Mark>,
}

impl Payload for Parcel {}

impl Marked for Parcel {
    fn mark(&self) -> Option<Mark> {
        self.mark
    }
}

/// A network that carries frames of the world.
pub type Carrier = Box<dyn Network<Parcel>>;

/// One channel, as its two ends see it.
#[derive(Debug, Default)]
struct Course {
    sent: u64,
    /// When what has not come was sent, by its number.
    owed: BTreeMap<u64, Time>,
    /// Everything below has come.
    next: u64,
    /// What has come beyond.
    ahead: BTreeSet<u64>,
    watched: bool,
}

/// The frames of a world.
pub(crate) struct Frames {
    network: Carrier,
    patience: Span,
    courses: BTreeMap<u32, Course>,
    /// Refused for want of room, by host, in order.
    waiting: BTreeMap<HostId, Vec<Frame<Parcel>>>,
    numbers: u64,
    /// The instant for which the network is to be asked.
    due: Option<Time>,
    told: Vec<Event<Parcel>>,
}

impl Frames {
    /// A link that owes a packet for longer than `patience` ends.
    pub(crate) fn new(network: Carrier, patience: Span) -> Self {
        Self {
            network,
            patience,
            courses: BTreeMap::new(),
            waiting: BTreeMap::new(),
            numbers: 0,
            due: None,
            told: Vec::new(),
        }
    }

    /// Sends what waits for room, as far as there is some.
    fn send_waiting(&mut self, now: Time, host: HostId) {
        let Some(waiting) = self.waiting.get_mut(&host) else {
            return;
        };
        let mut frames = std::mem::take(waiting).into_iter();
        while let Some(frame) = frames.next() {
            if let Err((frame, Refusal::Full)) = self.network.send(now, frame) {
                waiting.push(frame);
                waiting.extend(frames);
                return;
            }
        }
    }
}

impl Kernel {
    /// Gives a packet of that channel to the network.
    pub(crate) fn send_frame(&mut self, channel: u32, ends: [u32; 2], bytes: u64, packet: Packet) {
        let payload_bytes = packet.bytes.len() as u64;
        let mark = self.desk.as_mut().map(|desk| {
            let mark = desk.mark(ends[1], &packet.header, payload_bytes);
            (mark, desk.sending(&mark))
        });
        if let Some((_, takes)) = mark {
            self.charge(takes);
        }
        let at = self.local();
        let [from, to] = ends.map(|interface| {
            let known = self.registry.get(interface);
            HostId(known.map_or(0, |known| known.identity.node))
        });
        let Some(frames) = &mut self.frames else {
            return;
        };
        let course = frames.courses.entry(channel).or_default();
        let sequence = course.sent;
        course.sent += 1;
        course.owed.insert(sequence, at);
        let is_first = !std::mem::replace(&mut course.watched, true);
        frames.numbers += 1;
        let parcel = Parcel {
            channel,
            sequence,
            packet: Rc::new(packet),
            mark: mark.map(|(mark, _)| mark),
        };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut frame = Frame::new(frames.numbers, from, to, bytes, parcel);
        frame.flow = channel;
        let patience = frames.patience;
        // The network's time must not go back, and others may send before this one's instant is reached.
        let hand_over = move || kernel::with(|kernel| kernel.hand_over(frame));
        self.act_at(at, Box::new(hand_over));
        if is_first {
            self.watch_course(channel, at + patience);
        }
    }

    /// The network is given a frame, now.
    fn hand_over(&mut self, frame: Frame<Parcel>) {
        let now = self.now();
        let Some(frames) = &mut self.frames else {
            return;
        };
        let host = frame.from;
        let waiting = frames.waiting.entry(host).or_default();
        waiting.push(frame);
        if waiting.len() == 1 {
            frames.send_waiting(now, host);
        }
        self.look_at_network_again();
    }

    fn look_at_network_again(&mut self) {
        let Some(frames) = &mut self.frames else {
            return;
        };
        let Some(next) = frames.network.next() else {
            return;
        };
        if frames.due.is_none_or(|due| next < due) {
            frames.due = Some(next);
            self.schedule(next, What::Network);
        }
    }

    /// The network is asked what has happened.
    pub(crate) fn advance_network(&mut self) {
        let now = self.now();
        let Some(frames) = &mut self.frames else {
            return;
        };
        if frames.due.is_none_or(|due| due > now) {
            return;
        }
        frames.due = None;
        let mut told = std::mem::take(&mut frames.told);
        frames.network.advance(now, &mut |event| told.push(event));
        for event in told.drain(..) {
            match event {
                Event::Delivered { frame, .. } => self.frame_came(frame),
                Event::Lost { number, reason, .. } => {
                    self.trace.count(now, [6, number]);
                    self.trace
                        .note(now, || format!("frame {number} is lost: {reason}"));
                }
                Event::Room { host, .. } => {
                    if let Some(frames) = &mut self.frames {
                        frames.send_waiting(now, host);
                    }
                }
            }
        }
        if let Some(frames) = &mut self.frames {
            frames.told = told;
        }
        self.look_at_network_again();
    }

    fn frame_came(&mut self, frame: Frame<Parcel>) {
        let now = self.now();
        let number = frame.number;
        let parcel = frame.payload;
        let course = self
            .frames
            .as_mut()
            .and_then(|frames| frames.courses.get_mut(&parcel.channel));
        let Some(course) = course else {
            return;
        };
        if frame.damaged {
            self.trace
                .note(now, || format!("frame {number} is damaged"));
            return;
        }
        if parcel.sequence < course.next || !course.ahead.insert(parcel.sequence) {
            self.trace
                .note(now, || format!("frame {number} came before"));
            return;
        }
        course.owed.remove(&parcel.sequence);
        while course.ahead.remove(&course.next) {
            course.next += 1;
        }
        let mut packet = Rc::try_unwrap(parcel.packet).unwrap_or_else(|shared| (*shared).clone());
        let announced = parcel.mark.filter(|mark| mark.is_announced);
        packet.announces = announced.map(|mark| mark.way);
        self.come(parcel.channel, packet);
    }

    /// Looks then whether the channel owes a packet for too long.
    fn watch_course(&mut self, channel: u32, at: Time) {
        let look = move || kernel::with(|kernel| kernel.look_at_course(channel));
        self.act_at(at, Box::new(look));
    }

    fn look_at_course(&mut self, channel: u32) {
        let now = self.now();
        let Some(frames) = &mut self.frames else {
            return;
        };
        let patience = frames.patience;
        let Some(course) = frames.courses.get_mut(&channel) else {
            return;
        };
        match course.owed.first_key_value() {
            None => course.watched = false,
            Some((_, &sent)) if sent + patience > now => {
                self.watch_course(channel, sent + patience);
            }
            Some(_) => self.break_link(channel),
        }
    }

    /// The running task has taken a packet; on a machine, one that announces a message has to be received.
    pub(crate) fn charge_receiving(&mut self, announces: Option<Way>) {
        self.charge(self.settings.costs.receive);
        let running = self.tasks.running();
        let process = running.and_then(|task| self.tasks.process_of(task));
        let (Some(way), Some(process)) = (announces, process) else {
            return;
        };
        let (node, now) = (self.processes[process as usize].node, self.local());
        let takes = self
            .desk
            .as_mut()
            .map(|desk| desk.receiving(node, now, way));
        self.charge(takes.unwrap_or(Span::ZERO));
    }

    /// Nothing comes over that channel any more.
    pub(crate) fn forget_course(&mut self, channel: u32) {
        if let Some(frames) = &mut self.frames {
            frames.courses.remove(&channel);
        }
    }

    fn break_link(&mut self, channel: u32) {
        let now = self.now();
        self.trace
            .note(now, || format!("channel {channel} has lost packets"));
        self.end_link_of(channel, LossCause::Broken);
    }
}
