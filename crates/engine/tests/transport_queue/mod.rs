//! A small model of a network, for rates and not for faults: senders with links of their own, one
//! queue that all of them share, receivers behind it, and answers that come back without a queue.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test includes it and uses its part"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::packet::{Address, Flags, Header, Kind, Short, SlotName};
use hamlyn_engine::transport::{Association, Incoming, Packets, Settings};

use crate::host;
use crate::transport_world::random::Random;

/// Bytes of a datagram besides its frame, down to the Ethernet.
pub const OUTSIDE_BYTES: u64 = 98;

/// What the network is like.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    pub senders: usize,
    /// Of each sender's own link, in bits per microsecond (Mbit/s).
    pub own_mbit: u64,
    /// Of the shared queue.
    pub shared_mbit: u64,
    /// Bytes that the shared queue holds.
    pub queue_bytes: u64,
    /// There and back, without queues.
    pub round_trip_ns: u64,
    /// Frames that are lost, in each direction, in a thousand.
    pub loss: u32,
    /// Bytes of data of a packet; 16 makes it short.
    pub data_bytes: usize,
    /// A path that is dead from that time on.
    pub dead: Option<(u8, u64)>,
    /// A path on which more is lost than elsewhere: so many in a thousand.
    pub lossy: Option<(u8, u32)>,
    /// Packets that are offered to each sender.
    pub packets: u64,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A sender's link is free, or a deadline of that end has come.
    Awake(usize),
    /// At the shared queue.
    Queue(usize, u8, Vec<u8>),
    /// At that end.
    Arrive(usize, u8, Vec<u8>),
}

/// What was measured since the last [`Model::reset`].
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Packets that came out, of each sender.
    pub packets: Vec<u64>,
    /// The longest queue.
    pub queue_bytes_max: u64,
    /// Bytes that went through the shared queue.
    pub shared_bytes: u64,
    pub dropped: u64,
    /// How often a sender had packets and a free link, and might not send.
    pub waited: u64,
    /// How long in all.
    pub waited_ns: u64,
    /// Frames with packets that were sent over a dead path.
    pub into_death: u64,
    /// When the last of these was sent.
    pub last_into_death_ns: u64,
}

/// The network in motion.
pub struct Model {
    pub network: Network,
    /// Senders, then receivers.
    pub ends: Vec<Association>,
    pub measured: Measured,
    pub now_ns: u64,
    offered: Vec<u64>,
    taken: Vec<u64>,
    free_ns: Vec<u64>,
    waiting_since_ns: Vec<Option<u64>>,
    awake_ns: Vec<u64>,
    queue_free_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    number: u64,
    random: Random,
    frame: Vec<u8>,
    data: Vec<u8>,
}

impl Model {
    pub fn new(network: Network, settings: Settings) -> Self {
        let senders = network.senders;
        let end = || Association::new(settings).expect("good settings");
        let mut this = Self {
            ends: (0..2 * senders).map(|_| end()).collect(),
            measured: Measured::default(),
            now_ns: 0,
            offered: vec![0; senders],
            taken: vec![0; senders],
            free_ns: vec![0; 2 * senders],
            waiting_since_ns: vec![None; senders],
            awake_ns: vec![u64::MAX; 2 * senders],
            queue_free_ns: 0,
            events: BinaryHeap::new(),
            number: 0,
            random: Random::new(11),
            frame: vec![0; settings.frame_bytes],
            data: vec![7; network.data_bytes],
            network,
        };
        this.reset();
        for sender in 0..senders {
            this.at(0, Event::Awake(sender));
        }
        this
    }

    /// Measures anew.
    pub fn reset(&mut self) {
        self.measured = Measured {
            packets: vec![0; self.network.senders],
            ..Measured::default()
        };
        // Who waits now is not counted.
        self.waiting_since_ns.fill(None);
    }

    /// Lets that time pass, or less if nothing is left to happen.
    pub fn run(&mut self, for_ns: u64) {
        let end_ns = self.now_ns + for_ns;
        while let Some(Reverse((at_ns, ..))) = self.events.peek()
            && *at_ns <= end_ns
        {
            let Some(Reverse((at_ns, _, event))) = self.events.pop() else {
                return;
            };
            self.now_ns = at_ns;
            match event {
                Event::Awake(end) => {
                    if self.awake_ns[end] <= at_ns {
                        self.awake_ns[end] = u64::MAX;
                    }
                    self.pump(end);
                }
                Event::Queue(sender, path, frame) => self.queue(sender, path, frame),
                Event::Arrive(end, path, frame) => self.arrive(end, path, &frame),
            }
        }
        self.now_ns = end_ns;
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.number += 1;
        self.events.push(Reverse((at_ns, self.number, event)));
    }

    fn offer(&mut self, sender: usize) {
        while self.offered[sender] < self.network.packets {
            let number = self.offered[sender];
            let association = &mut self.ends[sender];
            let offered = if self.network.data_bytes == 16 {
                association.offer_short(&Short {
                    to: Address::new(SlotName::new(3, 1), FAST_INDEX),
                    key: Key::from_bits(77),
                    offset: number % 4_096 * 16,
                    word: number * 3,
                    has_metadata: false,
                    length_bytes: 16,
                    data: [number, 0, 0, 0],
                })
            } else {
                let header = Header {
                    slot: SlotName::new(3, 1),
                    metadata_index: 1,
                    key: Key::from_bits(77),
                    offset: 0,
                    length_bytes: self.data.len() as u32,
                    word: 1,
                    metadata_length_bytes: 0,
                    flags: Flags::NONE,
                    kind: Kind::WRITE,
                };
                association.offer::<host::VecArea>(&header, &[], &[Part::Bytes(&self.data)])
            };
            match offered {
                Ok(()) => self.offered[sender] += 1,
                Err(Unsent::Full) => return,
                Err(Unsent::Gone) => panic!("sender {sender}: {:?}", association.close_reason()),
            }
        }
    }

    fn pump(&mut self, end: usize) {
        let senders = self.network.senders;
        let now_ns = self.now_ns;
        loop {
            if self.free_ns[end] > now_ns {
                return;
            }
            if end < senders {
                self.offer(end);
            }
            let Some(outgoing) = self.ends[end].next_frame(now_ns, &mut self.frame) else {
                break;
            };
            let frame = self.frame[..outgoing.length_bytes].to_vec();
            let bytes = frame.len() as u64 + OUTSIDE_BYTES;
            self.free_ns[end] = now_ns + bytes * 8_000 / self.network.own_mbit;
            let sent_ns = self.free_ns[end];
            self.at(sent_ns, Event::Awake(end));
            if end < senders
                && let Some(since_ns) = self.waiting_since_ns[end].take()
            {
                self.measured.waited += 1;
                self.measured.waited_ns += now_ns - since_ns;
            }
            let is_dead = self
                .network
                .dead
                .is_some_and(|(path, from_ns)| path == outgoing.path && now_ns >= from_ns);
            if is_dead && outgoing.is_data {
                self.measured.into_death += 1;
                self.measured.last_into_death_ns = now_ns;
            }
            let of_path = self.network.lossy.filter(|bad| bad.0 == outgoing.path);
            let loss = of_path.map_or(self.network.loss, |(_, loss)| loss);
            if is_dead || self.random.chance(loss) {
                continue;
            }
            let half_ns = self.network.round_trip_ns / 2;
            if end < senders {
                let queue = Event::Queue(end, outgoing.path, frame);
                self.at(sent_ns + half_ns / 2, queue);
            } else {
                let arrive = Event::Arrive(end - senders, outgoing.path, frame);
                self.at(sent_ns + half_ns, arrive);
            }
        }
        if end < senders && self.offered[end] < self.network.packets {
            self.waiting_since_ns[end].get_or_insert(now_ns);
        }
        if let Some(deadline_ns) = self.ends[end].deadline_ns()
            && deadline_ns < self.awake_ns[end]
        {
            assert!(deadline_ns > now_ns, "a deadline with nothing to send");
            self.awake_ns[end] = deadline_ns;
            self.at(deadline_ns, Event::Awake(end));
        }
    }

    fn queue(&mut self, sender: usize, path: u8, frame: Vec<u8>) {
        let begin_ns = self.queue_free_ns.max(self.now_ns);
        let waiting = (begin_ns - self.now_ns) * self.network.shared_mbit / 8_000;
        let bytes = frame.len() as u64 + OUTSIDE_BYTES;
        if waiting + bytes > self.network.queue_bytes {
            self.measured.dropped += 1;
            return;
        }
        let queued = &mut self.measured.queue_bytes_max;
        *queued = (*queued).max(waiting + bytes);
        self.measured.shared_bytes += bytes;
        self.queue_free_ns = begin_ns + bytes * 8_000 / self.network.shared_mbit;
        let at_ns = self.queue_free_ns + self.network.round_trip_ns / 4;
        self.at(
            at_ns,
            Event::Arrive(self.network.senders + sender, path, frame),
        );
    }

    fn arrive(&mut self, end: usize, path: u8, frame: &[u8]) {
        let senders = self.network.senders;
        let now_ns = self.now_ns;
        if let Incoming::Packets(token) = self.ends[end].take_frame(now_ns, path, frame) {
            let sender = end - senders;
            for packet in Packets::new(&frame[token.range()]) {
                assert_eq!(
                    packet.header().length_bytes as usize,
                    self.network.data_bytes
                );
                self.measured.packets[sender] += 1;
                self.taken[sender] += 1;
            }
            self.ends[end].taken(now_ns, token);
        }
        self.pump(end);
    }

    /// Packets of all senders that came out, ever.
    pub fn taken(&self) -> u64 {
        self.taken.iter().sum()
    }
}

/// Jain's index: 1 if all have the same, 1/n if one has all.
pub fn fairness(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    sum * sum / (shares.len() as f64 * squares)
}
