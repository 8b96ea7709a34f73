//! A network in memory: between each two nodes in order, otherwise in any order.

use std::collections::VecDeque;

use crate::id::RegionId;
use crate::machine::Machine;
use crate::message::{Kind, Message, Outgoing};

/// A generator of numbers, the same everywhere.
#[derive(Clone)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 33) % end
    }

    pub(super) fn is_one_in(&mut self, end: u64) -> bool {
        self.below(end) == 0
    }
}

pub(super) enum Packet {
    Message(Message, Vec<u8>),
    /// The sender is lost.
    Lost,
}

/// The way of a node's messages.
pub(super) struct Out {
    me: usize,
    piece_bytes: usize,
    sent: Vec<(usize, Packet)>,
}

impl Outgoing for Out {
    fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    fn send(&mut self, to: u32, message: &Message, bytes: &[u8]) {
        assert_ne!(to as usize, self.me, "{message:?} to itself");
        // As it would travel.
        let (mut words, used) = message.words();
        words[used..].fill(0);
        let read = Message::of_words(message.kind, &words, 8).unwrap();
        assert_eq!(read, *message);
        self.sent
            .push((to as usize, Packet::Message(read, bytes.to_vec())));
    }
}

pub(super) struct Network {
    pub(super) machines: Vec<Machine>,
    pub(super) is_alive: Vec<bool>,
    /// From node to node.
    queues: Vec<VecDeque<Packet>>,
    piece_bytes: usize,
    /// Regions whose only copy may have been lost with a node.
    pub(super) may_be_lost: Vec<RegionId>,
}

impl Network {
    pub(super) fn new(nodes: usize, cached_max: usize, piece_bytes: usize) -> Self {
        let machine = |me| Machine::new(me as u32, cached_max);
        Self {
            machines: (0..nodes).map(machine).collect(),
            is_alive: vec![true; nodes],
            queues: (0..nodes * nodes).map(|_| VecDeque::new()).collect(),
            piece_bytes,
            may_be_lost: Vec::new(),
        }
    }

    pub(super) fn nodes(&self) -> usize {
        self.machines.len()
    }

    /// Calls a machine, and takes what it sends.
    pub(super) fn call<R>(
        &mut self,
        node: usize,
        call: impl FnOnce(&mut Machine, &mut Out) -> R,
    ) -> R {
        let mut out = Out {
            me: node,
            piece_bytes: self.piece_bytes,
            sent: Vec::new(),
        };
        let result = call(&mut self.machines[node], &mut out);
        let nodes = self.nodes();
        for (to, packet) in out.sent {
            if self.is_alive[to] {
                self.queues[node * nodes + to].push_back(packet);
            } else {
                self.note_loss(&packet, &[Kind::Exclusive, Kind::Grant]);
            }
        }
        result
    }

    /// Delivers a packet of a queue that is not empty, the next one from that place on.
    pub(super) fn deliver(&mut self, first: usize, is_stalled: &[bool]) -> bool {
        let (nodes, count) = (self.nodes(), self.queues.len());
        let may = |at: &usize| !self.queues[*at].is_empty() && !is_stalled[*at % nodes];
        match (first..count).chain(0..first).find(may) {
            Some(at) => self.deliver_at(at),
            None => false,
        }
    }

    /// Delivers the next packet from that node to the other one.
    pub(super) fn deliver_from(&mut self, from: usize, to: usize) -> bool {
        self.deliver_at(from * self.nodes() + to)
    }

    fn deliver_at(&mut self, at: usize) -> bool {
        let nodes = self.nodes();
        let (from, to) = ((at / nodes) as u32, at % nodes);
        match self.queues[at].pop_front() {
            Some(Packet::Message(message, bytes)) => self.call(to, |machine, out| {
                machine.receive(from, &message, &bytes, out);
            }),
            Some(Packet::Lost) => self.call(to, |machine, out| machine.on_lost(from, out)),
            None => return false,
        }
        true
    }

    pub(super) fn deliver_all(&mut self) {
        let is_stalled = vec![false; self.nodes()];
        while self.deliver(0, &is_stalled) {}
    }

    fn note_loss(&mut self, packet: &Packet, kinds: &[Kind]) {
        if let Packet::Message(message, _) = packet
            && kinds.contains(&message.kind)
        {
            self.may_be_lost.push(message.region);
        }
    }

    /// A node dies. The last of its messages may be lost, and others hear of it in any order.
    pub(super) fn kill(&mut self, node: usize, random: &mut Random) {
        let nodes = self.nodes();
        self.is_alive[node] = false;
        let copies = self.machines[node].copies.values();
        let only = copies.filter(|copy| copy.has_exclusive());
        let only: Vec<RegionId> = only.map(|copy| copy.id).collect();
        self.may_be_lost.extend(only);
        for other in (0..nodes).filter(|other| *other != node) {
            for packet in std::mem::take(&mut self.queues[other * nodes + node]) {
                self.note_loss(&packet, &[Kind::Exclusive, Kind::Grant]);
            }
            if !self.is_alive[other] {
                continue;
            }
            let place = node * nodes + other;
            let remain = random.below(self.queues[place].len() as u64 + 1) as usize;
            for packet in self.queues[place].split_off(remain) {
                self.note_loss(&packet, &[Kind::Exclusive, Kind::Back, Kind::Flush]);
            }
            self.queues[place].push_back(Packet::Lost);
        }
    }
}
