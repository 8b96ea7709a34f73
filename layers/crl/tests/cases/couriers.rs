//! Couriers alone: the order of messages, and the loss of nodes.

use std::sync::atomic::{AtomicUsize, Ordering};

use hamlyn::Wait;
use hamlyn_crl::{Courier, Incoming, WORDS_MAX};

use crate::World;
use crate::random::Random;
use crate::world::LONG;

/// Messages of each node to each other one.
const MESSAGES: usize = 300;

/// The words and bytes of a message, from a generator that sender and receiver have.
fn message(random: &mut Random, piece_bytes: usize) -> (u8, Vec<u32>, Vec<u8>) {
    let words = (0..random.below(WORDS_MAX as u64 + 1)).map(|_| random.below(1 << 30) as u32);
    let words: Vec<u32> = words.collect();
    let bytes = match random.below(3) {
        0 => random.below(piece_bytes as u64 + 1),
        1 => random.below(60),
        _ => 0,
    };
    let kind = random.below(31) as u8;
    let bytes = (0..bytes).map(|_| random.below(256) as u8).collect();
    (kind, words, bytes)
}

/// Messages that a node expects of another one.
struct Expected {
    random: Random,
    count: usize,
    is_lost: bool,
}

/// A node of a case, and all that it is to receive.
pub(crate) struct Node<'a> {
    pub(crate) courier: &'a mut dyn Courier,
    from: Vec<Expected>,
    /// Of the messages of all.
    pub(crate) piece_bytes: usize,
}

fn stream(from: u32, to: u32) -> Random {
    Random(u64::from(from * 100 + to))
}

impl<'a> Node<'a> {
    pub(crate) fn new(courier: &'a mut dyn Courier) -> Self {
        let (me, nodes) = (courier.me(), courier.nodes());
        let expected = |node| Expected {
            random: stream(node, me),
            count: 0,
            is_lost: false,
        };
        // The least of any world.
        let piece_bytes = courier.piece_bytes().min(250);
        Self {
            courier,
            from: (0..nodes).map(expected).collect(),
            piece_bytes,
        }
    }

    fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let (me, nodes) = (self.courier.me(), self.courier.nodes());
        (0..nodes).filter(move |node| *node != me)
    }

    /// Sends so many messages to each of these nodes, and receives now and then.
    pub(crate) fn send(&mut self, to: &[u32], count: usize, receives: bool) {
        let me = self.courier.me();
        let mut streams: Vec<_> = to.iter().map(|to| (*to, stream(me, *to))).collect();
        for number in 0..count {
            for (to, stream) in &mut streams {
                let (kind, words, bytes) = message(stream, self.piece_bytes);
                self.courier.send(*to, kind, &words, &bytes).unwrap();
            }
            if receives && number % 7 == 0 {
                self.receive(Wait::Poll);
            }
        }
    }

    /// Receives what there is, and checks it. False if it was nothing.
    pub(crate) fn receive(&mut self, wait: Wait) -> bool {
        let me = self.courier.me();
        match self.courier.receive(wait).unwrap() {
            None => return false,
            Some(Incoming::Lost { node }) => {
                let was_lost = std::mem::replace(&mut self.from[node as usize].is_lost, true);
                assert!(!was_lost && node != me, "{node} is lost once");
            }
            Some(Incoming::Message {
                from,
                kind,
                words,
                bytes,
            }) => {
                let expected = &mut self.from[from as usize];
                assert!(!expected.is_lost, "a message of {from}, which is lost");
                let (number, next) = (
                    expected.count,
                    message(&mut expected.random, self.piece_bytes),
                );
                let (used, zeros) = words.split_at(next.1.len());
                assert!(zeros.iter().all(|word| *word == 0));
                let found = (kind, used.to_vec(), bytes);
                assert!(found == next, "message {number} of {from} to {me}");
                expected.count += 1;
            }
        }
        true
    }

    /// Receives until that holds.
    pub(crate) fn receive_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        // A wait may end early for no reason.
        let mut vain = 0;
        while !holds(self) {
            vain = if self.receive(LONG) { 0 } else { vain + 1 };
            assert!(vain < 16, "{what} does not come");
        }
    }

    /// True if all that they send has come.
    pub(crate) fn has_all_of(&self, nodes: &[u32], count: usize) -> bool {
        let has = |node: &u32| self.count_of(*node) >= count;
        nodes.iter().all(has)
    }

    pub(crate) fn count_of(&self, node: u32) -> usize {
        self.from[node as usize].count
    }

    pub(crate) fn is_lost(&self, node: u32) -> bool {
        self.from[node as usize].is_lost
    }
}

/// In any order of sending and receiving, by any number of nodes.
pub(crate) fn messages_keep_their_order(world: World) {
    for nodes in [2, 5] {
        let done = AtomicUsize::new(0);
        world.run_couriers(nodes, &|mut courier| {
            let mut node = Node::new(&mut *courier);
            let others: Vec<u32> = node.others().collect();
            let (me, last) = (node.courier.me(), nodes as u32 - 1);
            node.send(&others, MESSAGES, me % 2 == 0);
            node.receive_until("a message", |node| node.has_all_of(&others, MESSAGES));
            assert!(node.courier.flush(LONG).unwrap());
            done.fetch_add(1, Ordering::SeqCst);
            while done.load(Ordering::SeqCst) < nodes {
                node.receive(Wait::millis(1));
            }
            if me == last {
                return;
            }
            // Each wait is for ever: nothing but the loss ends it.
            while !node.is_lost(last) {
                node.receive(Wait::Forever);
            }
            // To send to it is no error, and tells nothing more.
            for _ in 0..100 {
                node.courier.send(last, 0, &[1], &[2; 100]).unwrap();
                node.receive(Wait::Poll);
            }
        });
    }
}
