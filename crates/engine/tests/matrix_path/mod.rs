//! One sender, one receiver, and a path between them: a base round trip, a rate with a queue, and
//! loss in both directions. What came waits at an end until that looks, as in a socket; the end is
//! told how long, as a kernel's stamps tell it.
#![allow(unreachable_pub, reason = "one test includes it")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hamlyn_engine::key::Key;
use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_engine::transport::{Association, Incoming, Packets, PathStatistics, Settings};

use crate::host;
use crate::transport_world::random::Random;

/// Bytes of a datagram besides its frame, down to the Ethernet.
const OUTSIDE_BYTES: u64 = 98;
/// Bytes of data of a packet.
const DATA_BYTES: usize = 1_300;
/// Datagrams that an end takes in before it looks at its timers, as one call joins them.
const BATCH: usize = 44;

#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// There and back, without queues.
    pub base_ns: u64,
    pub mbit: u64,
    /// An end looks so long after something came, or a deadline passed, at most.
    pub look_ns: u64,
    pub lost_per_mille: u32,
    pub queue_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Of the path's rate, headers and all.
    pub share: f64,
    /// The part of the frames sent that did not bring anything new.
    pub in_vain: f64,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Look(usize),
    Arrive(usize, Vec<u8>),
}

const SENDER: usize = 0;
const RECEIVER: usize = 1;

struct End {
    association: Association,
    /// What came and was not looked at, and when it came.
    unread: VecDeque<(u64, Vec<u8>)>,
    look_ns: u64,
}

/// The path in motion.
pub struct Pipe {
    path: Path,
    ends: [End; 2],
    now_ns: u64,
    since_ns: u64,
    queue_free_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    number: u64,
    random: Random,
    frame: Vec<u8>,
    bytes: u64,
    sent: u64,
    brought: u64,
}

impl Pipe {
    pub fn new(path: Path, settings: Settings) -> Self {
        let end = || End {
            association: Association::new(settings).expect("good settings"),
            unread: VecDeque::new(),
            look_ns: u64::MAX,
        };
        let mut this = Self {
            path,
            ends: [end(), end()],
            now_ns: 0,
            since_ns: 0,
            queue_free_ns: 0,
            events: BinaryHeap::new(),
            number: 0,
            random: Random::new(7),
            frame: vec![0; settings.frame_bytes],
            bytes: 0,
            sent: 0,
            brought: 0,
        };
        this.look_at(SENDER, 0);
        this
    }

    pub fn reset(&mut self) {
        (self.bytes, self.sent, self.brought) = (0, 0, 0);
        self.since_ns = self.now_ns;
    }

    pub fn measured(&self) -> Measured {
        let could = (self.now_ns - self.since_ns) as f64 * self.path.mbit as f64 / 8_000.0;
        Measured {
            share: self.bytes as f64 / could,
            in_vain: 1.0 - self.brought as f64 / self.sent.max(1) as f64,
        }
    }

    pub fn sender_path(&self) -> PathStatistics {
        let sender = &self.ends[SENDER].association;
        sender.path_statistics(0).expect("there is one")
    }

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
                Event::Look(end) if self.ends[end].look_ns == at_ns => {
                    self.ends[end].look_ns = u64::MAX;
                    self.look(end);
                }
                Event::Look(_) => {}
                Event::Arrive(end, frame) => {
                    self.ends[end].unread.push_back((at_ns, frame));
                    self.look_after(end, at_ns);
                }
            }
        }
        self.now_ns = end_ns;
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.number += 1;
        self.events.push(Reverse((at_ns, self.number, event)));
    }

    fn look_at(&mut self, end: usize, at_ns: u64) {
        if at_ns < self.ends[end].look_ns {
            self.ends[end].look_ns = at_ns;
            self.at(at_ns, Event::Look(end));
        }
    }

    fn look_after(&mut self, end: usize, at_ns: u64) {
        // Who looks already does not look again for this.
        if self.ends[end].look_ns > at_ns + self.path.look_ns {
            let late_ns = self.random.below(self.path.look_ns.max(1));
            self.look_at(end, at_ns + late_ns);
        }
    }

    fn look(&mut self, end: usize) {
        let now_ns = self.now_ns;
        let was_empty = self.ends[end].unread.is_empty();
        loop {
            for _ in 0..BATCH {
                let Some((came_ns, frame)) = self.ends[end].unread.pop_front() else {
                    break;
                };
                self.take(end, now_ns, now_ns - came_ns, &frame);
            }
            self.pump(end, now_ns);
            if self.ends[end].unread.is_empty() {
                break;
            }
        }
        if let Some(deadline_ns) = self.ends[end].association.deadline_ns() {
            if deadline_ns > now_ns {
                return self.look_after(end, deadline_ns);
            }
            // What was due when the last frame came was done; nothing more has come since, so more
            // may be.
            assert!(!was_empty, "a deadline with nothing to send");
            self.look_at(end, now_ns + 1);
        }
    }

    fn take(&mut self, end: usize, now_ns: u64, waited_ns: u64, frame: &[u8]) {
        let association = &mut self.ends[end].association;
        let incoming = association.take_delayed_frame(now_ns, waited_ns, 0, frame);
        if let Incoming::Packets(token) = incoming {
            let packets = Packets::new(&frame[token.range()]).count();
            assert!(packets > 0);
            association.taken(now_ns, token);
            self.bytes += frame.len() as u64 + OUTSIDE_BYTES;
            self.brought += 1;
        }
    }

    fn offer(&mut self) {
        let data = [7; DATA_BYTES];
        let header = Header {
            slot: SlotName::new(3, 1),
            metadata_index: 1,
            key: Key::from_bits(77),
            offset: 0,
            length_bytes: DATA_BYTES as u32,
            word: 1,
            metadata_length_bytes: 0,
            flags: Flags::NONE,
            kind: Kind::WRITE,
        };
        let sender = &mut self.ends[SENDER].association;
        loop {
            match sender.offer::<host::VecArea>(&header, &[], &[Part::Bytes(&data)]) {
                Ok(()) => {}
                Err(Unsent::Full) => return,
                Err(Unsent::Gone) => panic!("the end: {:?}", sender.close_reason()),
            }
        }
    }

    fn pump(&mut self, end: usize, now_ns: u64) {
        loop {
            if end == SENDER {
                self.offer();
            }
            let association = &mut self.ends[end].association;
            let Some(outgoing) = association.next_frame(now_ns, &mut self.frame) else {
                return;
            };
            self.sent += u64::from(outgoing.is_data);
            let frame = self.frame[..outgoing.length_bytes].to_vec();
            self.send(end, now_ns, frame);
        }
    }

    fn send(&mut self, end: usize, now_ns: u64, frame: Vec<u8>) {
        let half_ns = self.path.base_ns / 2;
        if self.random.chance(self.path.lost_per_mille) {
            return;
        }
        if end == RECEIVER {
            return self.at(now_ns + half_ns, Event::Arrive(SENDER, frame));
        }
        let begin_ns = self.queue_free_ns.max(now_ns);
        let waiting_bytes = (begin_ns - now_ns) * self.path.mbit / 8_000;
        let bytes = frame.len() as u64 + OUTSIDE_BYTES;
        if waiting_bytes + bytes > self.path.queue_bytes {
            return;
        }
        self.queue_free_ns = begin_ns + bytes * 8_000 / self.path.mbit;
        self.at(self.queue_free_ns + half_ns, Event::Arrive(RECEIVER, frame));
    }
}
