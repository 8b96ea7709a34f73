//! Frames: what far links put on a network that may lose, double, damage and overtake.
//!
//! On a network of parts a frame is a datagram of a socket ([`crate::link::socket`]), which comes
//! damaged if it was.

use std::collections::BTreeMap;

use crate::link::socket::Datagram;
use crate::link::wire::Wires;
use crate::machine::charges::Charges;
use crate::network::{Event, Frame, HostId, Network, Payload, Refusal};
use crate::random::Random;
use crate::time::Time;
use crate::world::kernel::{self, Kernel, What};

/// What is in a frame of the world; nobody else can look inside.
#[derive(Clone, Debug)]
pub struct Parcel(Datagram);

impl Payload for Parcel {
    fn damage(&mut self, random: &mut Random) {
        self.0.damage(random);
    }
}

/// A network that carries frames of the world.
pub type Carrier = Box<dyn Network<Parcel>>;

/// Headers of IPv6 and UDP. A machine has its own.
const HEADERS_BYTES: usize = 48;

/// The frames of a world.
pub(crate) struct Frames {
    network: Carrier,
    pub(crate) wires: Wires,
    /// Refused for want of room, by host, in order.
    waiting: BTreeMap<HostId, Vec<Frame<Parcel>>>,
    numbers: u64,
    /// The instant for which the network is to be asked.
    due: Option<Time>,
    told: Vec<Event<Parcel>>,
}

impl Frames {
    pub(crate) fn new(network: Carrier, wires: Wires) -> Self {
        Self {
            network,
            wires,
            waiting: BTreeMap::new(),
            numbers: 0,
            due: None,
            told: Vec::new(),
        }
    }

    /// How many frames of a host wait for room.
    pub(crate) fn waiting_of(&self, node: u32) -> usize {
        self.waiting.get(&HostId(node)).map_or(0, Vec::len)
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
    fn frame(&mut self, ends: [u32; 2], flow: u32, bytes: usize, parcel: Parcel) -> Frame<Parcel> {
        let [from, to] = ends.map(|interface| {
            let known = self.registry.get(interface);
            HostId(known.map_or(0, |known| known.identity.node))
        });
        let number = self.frames.as_mut().map_or(0, |frames| {
            frames.numbers += 1;
            frames.numbers
        });
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut frame = Frame::new(number, from, to, bytes, parcel);
        frame.flow = flow;
        frame
    }

    /// Gives a datagram to the network, then.
    pub(super) fn send_frame(&mut self, at: Time, ends: [u32; 2], datagram: Datagram) {
        let charges = self.charges.as_ref();
        let headers = charges.map_or(HEADERS_BYTES, Charges::frame_header_bytes);
        let length_bytes = datagram.bytes.len() + headers;
        let flow = ends[0].wrapping_mul(31).wrapping_add(ends[1]);
        let frame = self.frame(ends, flow, length_bytes, Parcel(datagram));
        self.hand_over_at(at, frame);
    }

    /// The network's time must not go back, and others may send before this one's instant is
    /// reached.
    fn hand_over_at(&mut self, at: Time, frame: Frame<Parcel>) {
        if at <= self.now() {
            return self.hand_over(frame);
        }
        let hand_over = move || kernel::with(|kernel| kernel.hand_over(frame));
        self.act_at(at, Box::new(hand_over));
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
        if frame.damaged {
            self.trace
                .note(now, || format!("frame {number} is damaged"));
        }
        // The system's checksum, which every datagram has, finds damage; where frames are encrypted
        // it comes through all the same, as if it were the work of an attacker.
        if frame.damaged && !self.settings.wire.is_encrypted {
            return;
        }
        let Parcel(datagram) = frame.payload;
        self.datagram_came(number, datagram);
    }
}
