//! Sets of ports: whatever is done with ports and sets, messages come out as a small model says.

use std::collections::VecDeque;

use hamlyn_engine::key::Key;
use hamlyn_engine::packet::{PortAddress, PortName};
use hamlyn_engine::port::{InPlace, PortError, PortOptions, PortSetName, queue_of_set};
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::refusal::Refusal;
use proptest::prelude::*;

use crate::host::{PEER, Packet, VecArea};

const KEY: Key = Key::from_bits(0x5E7);
const PORTS: usize = 4;
const SETS: usize = 2;
const TURN: u16 = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(usize),
    /// As the receiver that waits for that set.
    SendAwaited(usize, usize),
    Take(usize),
    TakeFromPort(usize),
    Join(usize, usize),
    Leave(usize),
    Park(usize, bool),
    /// Closed, and another one opened in its stead.
    Reopen(usize),
    ReopenSet(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let (port, set) = (0..PORTS, 0..SETS);
    prop_oneof![
        6 => port.clone().prop_map(Step::Send),
        2 => (port.clone(), set.clone()).prop_map(|(port, set)| Step::SendAwaited(port, set)),
        8 => set.clone().prop_map(Step::Take),
        2 => port.clone().prop_map(Step::TakeFromPort),
        3 => (port.clone(), set.clone()).prop_map(|(port, set)| Step::Join(port, set)),
        1 => port.clone().prop_map(Step::Leave),
        1 => (port.clone(), any::<bool>()).prop_map(|(port, is)| Step::Park(port, is)),
        1 => port.prop_map(Step::Reopen),
        1 => set.prop_map(Step::ReopenSet),
    ]
}

#[derive(Default)]
struct PortModel {
    waiting: VecDeque<u16>,
    set: Option<usize>,
    is_parked: bool,
}

#[derive(Default)]
struct SetModel {
    /// Members with messages, in the order of their turns.
    turns: VecDeque<usize>,
    taken: u16,
}

/// Ports and sets, and what they should have.
struct World {
    receiver: Receiver<VecArea>,
    ports: Vec<(PortName, PortModel)>,
    sets: Vec<(PortSetName, SetModel)>,
    sent: u16,
}

fn open(receiver: &mut Receiver<VecArea>) -> PortName {
    let options = PortOptions {
        key: KEY,
        group: 0,
        handlers: 4096,
        queue_bytes: 1 << 16,
        peer_bytes: 1 << 16,
    };
    receiver.open_port(options).unwrap()
}

fn number(port: usize) -> u64 {
    100 + port as u64
}

impl World {
    fn new() -> Self {
        let mut receiver = Receiver::new(Some(100));
        receiver.set_up(0);
        let ports = (0..PORTS).map(|_| (open(&mut receiver), PortModel::default()));
        let ports = ports.collect();
        let sets = (0..SETS).map(|_| (receiver.open_port_set(TURN).unwrap(), SetModel::default()));
        let sets = sets.collect();
        Self {
            receiver,
            ports,
            sets,
            sent: 0,
        }
    }

    fn send(&mut self, port: usize, awaited: Option<usize>) {
        self.sent = (self.sent + 1) % 4096;
        let name = self.ports[port].0;
        let to = PortAddress {
            port: name,
            key: KEY,
            group: 0,
        };
        let in_place = InPlace {
            to: &to,
            handler: self.sent,
        };
        let model = &mut self.ports[port].1;
        let is_next_of = |set: usize| {
            let is_silent = self.sets[set].1.turns.is_empty();
            model.set == Some(set) && is_silent && !model.is_parked && model.waiting.is_empty()
        };
        for (at, (set, _)) in self.sets.iter().enumerate() {
            let shown = self.receiver.set_takes_in_place(*set, &in_place);
            assert_eq!(shown, is_next_of(at).then(|| number(port)));
        }
        let packet = Packet::new(
            to.header(self.sent.into(), 2),
            &[],
            &self.sent.to_le_bytes(),
        );
        let waiting = awaited.map(|set| queue_of_set(self.sets[set].0));
        let taken = self
            .receiver
            .receive(PEER, &packet.header, &packet, waiting);
        if model.is_parked {
            return assert_eq!(taken, Err(Refusal::NotResident));
        }
        if awaited.is_some_and(is_next_of) {
            assert!(matches!(taken, Ok(Received::Handed(_))), "{taken:?}");
            let mut bytes = Vec::new();
            assert_eq!(self.receiver.swap_handed(&mut bytes), number(port));
            return assert_eq!(bytes[..2], self.sent.to_le_bytes());
        }
        assert_eq!(taken, Ok(Received::Queued));
        model.waiting.push_back(self.sent);
        self.list(port);
    }

    fn list(&mut self, port: usize) {
        let model = &self.ports[port].1;
        if let Some(set) = model.set
            && !model.waiting.is_empty()
        {
            let turns = &mut self.sets[set].1.turns;
            if !turns.contains(&port) {
                turns.push_back(port);
            }
        }
    }

    fn leave(&mut self, port: usize) {
        if let Some(set) = self.ports[port].1.set.take() {
            let set = &mut self.sets[set].1;
            if set.turns.front() == Some(&port) {
                set.taken = 0;
            }
            set.turns.retain(|other| *other != port);
        }
    }

    fn take(&mut self, set: usize) {
        let mut buffer = Vec::new();
        let (name, model) = &mut self.sets[set];
        let found = self.receiver.pop_message_of_set(*name, &mut buffer);
        // Ports whose messages were taken by themselves meanwhile lose their turns.
        while let Some(port) = model.turns.front().copied() {
            let waiting = &mut self.ports[port].1.waiting;
            let message = waiting.pop_front();
            model.taken += 1;
            if waiting.is_empty() || model.taken >= TURN {
                model.taken = 0;
                model.turns.pop_front();
                if !waiting.is_empty() {
                    model.turns.push_back(port);
                }
            }
            if let Some(message) = message {
                let (of, arrived) = found.unwrap();
                assert_eq!((of, arrived.handler), (number(port), message));
                return assert_eq!(buffer[..2], message.to_le_bytes());
            }
        }
        assert_eq!(found, None);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send(port) => self.send(port, None),
            Step::SendAwaited(port, set) => self.send(port, Some(set)),
            Step::Take(set) => self.take(set),
            Step::TakeFromPort(port) => {
                let (name, model) = &mut self.ports[port];
                let popped = self.receiver.pop_message(*name, &mut Vec::new());
                assert_eq!(popped.map(|one| one.handler), model.waiting.pop_front());
            }
            Step::Join(port, set) => {
                self.leave(port);
                let into = Some((self.sets[set].0, number(port)));
                self.receiver
                    .join_port_set(self.ports[port].0, into)
                    .unwrap();
                self.ports[port].1.set = Some(set);
                self.list(port);
            }
            Step::Leave(port) => {
                self.leave(port);
                let name = self.ports[port].0;
                self.receiver.join_port_set(name, None).unwrap();
            }
            Step::Park(port, is_parked) => {
                self.ports[port].1.is_parked = is_parked;
                let name = self.ports[port].0;
                self.receiver.park_port(name, is_parked).unwrap();
            }
            Step::Reopen(port) => {
                self.leave(port);
                let name = self.ports[port].0;
                self.receiver.close_port(name).unwrap();
                let joined = self.receiver.join_port_set(name, None);
                assert_eq!(joined, Err(PortError::NotOpen(name)));
                self.ports[port] = (open(&mut self.receiver), PortModel::default());
            }
            Step::ReopenSet(set) => {
                let before = self.sets[set].0;
                self.receiver.close_port_set(before);
                for (_, model) in &mut self.ports {
                    model.set = model.set.filter(|other| *other != set);
                }
                let into = Some((before, 0));
                let joined = self.receiver.join_port_set(self.ports[0].0, into);
                assert_eq!(joined, Err(PortError::NoSuchSet));
                self.leave(0);
                let opened = self.receiver.open_port_set(TURN).unwrap();
                self.sets[set] = (opened, SetModel::default());
            }
        }
        for (name, model) in &self.sets {
            let is_empty = self.receiver.is_port_set_empty(*name);
            assert_eq!(is_empty, model.turns.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn messages_of_a_set_come_as_the_model_says(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
    }
}

/// A port that always has messages does not keep the others from theirs.
#[test]
fn ports_with_messages_take_turns() {
    let mut world = World::new();
    for port in 0..2 {
        world.step(Step::Join(port, 0));
    }
    for _ in 0..10 {
        world.send(0, None);
    }
    world.send(1, None);
    let mut buffer = Vec::new();
    let mut order = Vec::new();
    while let Some((of, _)) = world
        .receiver
        .pop_message_of_set(world.sets[0].0, &mut buffer)
    {
        order.push(of - number(0));
    }
    assert_eq!(order, [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
}
