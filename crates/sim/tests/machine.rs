//! Programs of the library on the paper's machine: the figures of Table 4 and of longer messages come out of its own calls.

use std::sync::Mutex;

use hamlyn::host::{Address, Supply};
use hamlyn::{
    Manager, ManagerOptions, Message, NewSlot, Strategy, Ticket, Wait, datagram, tagged_write,
};
use hamlyn_sim::host::SimHost;
use hamlyn_sim::machine::{Parameters, Protocol};
use hamlyn_sim::reproduce::measure::{Shape, ping_pong};
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{self, Outcome, Settings, Simulation};

const ROUNDS: u64 = 100;

/// One of two programs: offers its ticket, takes the other's.
fn exchange(manager: &Manager<SimHost>, peer: &str, ticket: &Ticket) -> Ticket {
    manager
        .interface()
        .offer("ticket", Supply::Always, &ticket.to_bytes())
        .unwrap();
    let bytes = manager
        .interface()
        .ask(Address::Name(peer), "ticket", Wait::Forever)
        .unwrap();
    Ticket::from_bytes(&bytes).unwrap()
}

/// Sends when it is told to, and waits for one message, by turns.
trait Program {
    fn send(&mut self, manager: &Manager<SimHost>, round: u64);
    fn receive(&mut self, manager: &Manager<SimHost>, round: u64);
}

/// The interface itself: in fast mode, or with normal messages.
struct Raw {
    area: hamlyn::Area,
    queue: hamlyn::Queue,
    // Keeps its place open.
    _slot: hamlyn::Slot,
    target: hamlyn::Target,
    is_fast: bool,
    data_bytes: usize,
    metadata_bytes: usize,
}

const AREA_BYTES: u64 = 65_536;

impl Raw {
    fn new(
        manager: &Manager<SimHost>,
        peer: &str,
        is_fast: bool,
        data_bytes: usize,
        metadata_bytes: usize,
    ) -> Self {
        let area = manager.interface().allocate(AREA_BYTES).unwrap();
        let queue = manager.interface().open_queue(64).unwrap();
        let slot = manager
            .interface()
            .open_slot(NewSlot::new(&area).queue(&queue).entries(1))
            .unwrap();
        let ours = if is_fast {
            slot.fast_ticket(0, AREA_BYTES)
        } else {
            slot.ticket(0, 0, AREA_BYTES)
        };
        let theirs = exchange(manager, peer, &ours.unwrap());
        let target = manager.interface().target(&theirs, Wait::Forever);
        let target = target.unwrap();
        Self {
            area,
            queue,
            _slot: slot,
            target,
            is_fast,
            data_bytes,
            metadata_bytes,
        }
    }

    fn fast(manager: &Manager<SimHost>, peer: &str) -> Self {
        Self::new(manager, peer, true, 16, 0)
    }
}

impl Program for Raw {
    fn send(&mut self, manager: &Manager<SimHost>, round: u64) {
        let terminus = manager.terminus();
        let data = vec![round as u8; self.data_bytes];
        let metadata = vec![round as u8; self.metadata_bytes];
        let message = if self.is_fast {
            Message::new(&data).word(round)
        } else {
            Message::new(&data).metadata(&metadata)
        };
        manager
            .interface()
            .send_msg(terminus, &self.target, &message, Wait::Forever)
            .unwrap();
    }

    fn receive(&mut self, manager: &Manager<SimHost>, round: u64) {
        let came = manager
            .interface()
            .rcv_block(&mut self.queue, Wait::Forever)
            .unwrap();
        let came = came.unwrap();
        assert_eq!(came.is_fast(), self.is_fast);
        assert!(!self.is_fast || came.word == round);
        let mut data = vec![0; self.data_bytes];
        self.area.read_at(0, &mut data).unwrap();
        assert_eq!(data, vec![round as u8; self.data_bytes]);
    }
}

struct Tagged {
    receiver: tagged_write::Receiver<SimHost>,
    sender: tagged_write::Sender<SimHost>,
}

impl Tagged {
    fn new(manager: &Manager<SimHost>, peer: &str) -> Self {
        let receiver = tagged_write::Receiver::new(manager, 4096, 64).unwrap();
        let theirs = exchange(manager, peer, &receiver.ticket());
        let sender = tagged_write::Sender::grow(manager, &theirs, Wait::Forever).unwrap();
        Self { receiver, sender }
    }
}

impl Program for Tagged {
    fn send(&mut self, _: &Manager<SimHost>, round: u64) {
        self.sender.send(0, &[7; 16], round, Wait::Forever).unwrap();
    }

    fn receive(&mut self, _: &Manager<SimHost>, round: u64) {
        let tag = self.receiver.get_tag(Wait::Forever).unwrap();
        assert_eq!(tag, Some(round));
    }
}

struct Datagrams {
    receiver: datagram::Receiver<SimHost>,
    sender: datagram::Sender<SimHost>,
    data: Vec<u8>,
}

impl Datagrams {
    fn new(manager: &Manager<SimHost>, peer: &str, data_bytes: usize) -> Self {
        let mut receiver = datagram::Receiver::new(manager, 65_536).unwrap();
        receiver.ready();
        let theirs = exchange(manager, peer, &receiver.ticket());
        let sender = datagram::Sender::grow(manager, &theirs, Wait::Forever).unwrap();
        let data = (0..data_bytes).map(|at| (at * 7 + 3) as u8).collect();
        Self {
            receiver,
            sender,
            data,
        }
    }
}

impl Program for Datagrams {
    fn send(&mut self, _: &Manager<SimHost>, _round: u64) {
        self.sender.send(&self.data, Wait::Forever).unwrap();
    }

    fn receive(&mut self, _: &Manager<SimHost>, _round: u64) {
        let came = self.receiver.recv(Wait::Forever).unwrap();
        assert_eq!(*came.unwrap(), *self.data);
    }
}

/// Microseconds one way: half of what there and back takes, on average.
fn one_way<P: Program>(
    machine: Parameters,
    fast: Protocol,
    packet_bytes: usize,
    begin: impl Fn(&Manager<SimHost>, &str) -> P + Sync,
) -> f64 {
    let taken = Mutex::new(Span::ZERO);
    let mut world = Simulation::new(Settings {
        packet_payload_bytes: packet_bytes,
        ..Settings::default()
    });
    world.set_machine(machine, 2, fast);
    let nodes = [world.node(1), world.node(1)];
    for (at, (name, peer)) in [("ping", "pong"), ("pong", "ping")].into_iter().enumerate() {
        let (taken, begin) = (&taken, &begin);
        world.process(nodes[at], name, move || {
            let options = ManagerOptions {
                strategy: Strategy::Proc,
                ..ManagerOptions::default()
            };
            let manager = hamlyn_sim::host::open(Some(name), options).unwrap();
            let mut program = begin(&manager, peer);
            // What is made ready takes a while; then both wait for the first message.
            world::pause(Span::from_us(1_000));
            let began = world::now();
            for round in 0..ROUNDS {
                if at == 0 {
                    program.send(&manager, round);
                }
                program.receive(&manager, round);
                if at == 1 {
                    program.send(&manager, round);
                }
            }
            if at == 0 {
                *taken.lock().unwrap() = world::now().since(began);
            }
            manager.interface().flush(Wait::Forever).unwrap();
            world::pause(Span::from_us(1_000));
        });
    }
    let outcome = world.run(Time::from_ns(10_000_000_000));
    assert_eq!(outcome.failures, Vec::<String>::new());
    taken.into_inner().unwrap().as_us_f64() / (2 * ROUNDS) as f64
}

/// As the paper says.
fn within(what: &str, ours: f64, expected: f64) {
    assert!(
        (ours - expected).abs() <= expected * 0.05,
        "{what}: {ours} instead of {expected} µs"
    );
}

/// As the engine alone on the machine: the library adds nothing but what is charged for it.
fn same(what: &str, ours: f64, expected: f64) {
    assert!(
        (ours - expected).abs() < 0.001,
        "{what}: {ours} instead of {expected} µs"
    );
}

const PAPER: Parameters = Parameters::PAPER;

#[test]
fn table_4_comes_out_of_programs_of_the_library() {
    let raw = one_way(PAPER, Protocol::Raw, 256, Raw::fast);
    within("16 bytes, raw", raw, 12.7);
    let tagged = one_way(PAPER, Protocol::Tagged, 256, Tagged::new);
    within("16 bytes, tagged remote write", tagged, 14.1);
}

/// Microseconds of the engine alone on the machine.
fn alone(packet_bytes: usize, data_bytes: usize, metadata_bytes: usize) -> f64 {
    let shape = Shape {
        metadata_bytes,
        ..Shape::datagram(packet_bytes, data_bytes)
    };
    ping_pong(&PAPER, &shape, 10).unwrap().span.as_us_f64()
}

#[test]
fn normal_messages_take_what_the_paper_says() {
    for (packet_bytes, data_bytes, metadata_bytes) in [
        (256, 0, 0),
        (256, 16, 0),
        (256, 256, 4),
        (256, 1_000, 60),
        (1_024, 4_096, 0),
        (4_096, 40_960, 0),
    ] {
        let ours = one_way(PAPER, Protocol::Raw, packet_bytes, |manager, peer| {
            Raw::new(manager, peer, false, data_bytes, metadata_bytes)
        });
        let what = format!("{data_bytes} bytes, {metadata_bytes} of metadata");
        same(&what, ours, alone(packet_bytes, data_bytes, metadata_bytes));
        if (data_bytes, metadata_bytes) == (0, 0) {
            within("without data", ours, 17.4);
        }
    }
}

/// The library's datagrams say their place and length in 8 bytes of metadata, which the paper's baseline has none of.
#[test]
fn datagrams_are_normal_messages_with_8_bytes_of_metadata() {
    for data_bytes in [0, 256, 4_096] {
        let ours = one_way(PAPER, Protocol::Raw, 256, |manager, peer| {
            Datagrams::new(manager, peer, data_bytes)
        });
        let what = format!("datagram of {data_bytes} bytes");
        same(&what, ours, alone(256, data_bytes, 8));
    }
}

/// Nothing of it is written down: another machine, another figure.
#[test]
fn the_machine_decides() {
    let slow = Parameters {
        switch: Span::from_us(5),
        ..PAPER
    };
    let [paper, slower] =
        [PAPER, slow].map(|machine| one_way(machine, Protocol::Raw, 256, Raw::fast));
    assert!((slower - paper - 4.5).abs() < 0.01, "{slower} and {paper}");
    let modern = one_way(Parameters::MODERN, Protocol::Tagged, 256, Tagged::new);
    let alone = ping_pong(&Parameters::MODERN, &Shape::short(Protocol::Tagged), 10).unwrap();
    same("today, tagged remote write", modern, alone.span.as_us_f64());
}

/// Three programs that write to one as fast as they may, over links with little room: when the last tag came.
fn crowd(machine: Parameters, seed: u64) -> (Time, Outcome) {
    const EACH: u64 = 100;
    let last = Mutex::new(Time::ZERO);
    let mut world = Simulation::new(Settings {
        seed,
        records: true,
        link_packets: 8,
        packet_payload_bytes: 256,
        ..Settings::default()
    });
    world.set_machine(machine, 4, Protocol::Tagged);
    let last_of = &last;
    let node = world.node(1);
    world.process(node, "receiver", move || {
        let manager = hamlyn_sim::host::open(Some("r"), ManagerOptions::default()).unwrap();
        let mut receiver = tagged_write::Receiver::new(&manager, 4096, 1024).unwrap();
        let ticket = receiver.ticket().to_bytes();
        manager
            .interface()
            .offer("ticket", Supply::Always, &ticket)
            .unwrap();
        let mut tags = std::collections::BTreeSet::new();
        while tags.len() < 3 * EACH as usize {
            // Senders that have done close their links, which interrupts waits.
            if let Ok(tag) = receiver.get_tag(Wait::Forever) {
                assert!(tags.insert(tag.unwrap()));
            }
        }
        *last_of.lock().unwrap() = world::now();
    });
    for sender in 1..4 {
        let node = world.node(1);
        world.process(node, "sender", move || {
            let manager = hamlyn_sim::host::open(None, ManagerOptions::default()).unwrap();
            let ticket = manager
                .interface()
                .ask(Address::Name("r"), "ticket", Wait::Forever)
                .unwrap();
            let ticket = Ticket::from_bytes(&ticket).unwrap();
            let to = tagged_write::Sender::grow(&manager, &ticket, Wait::Forever).unwrap();
            for number in 0..EACH {
                let tag = sender * EACH + number;
                to.send(0, &[1; 200], tag, Wait::Forever).unwrap();
            }
            assert!(manager.interface().flush(Wait::Forever).unwrap());
            world::pause(Span::from_us(100_000));
        });
    }
    let outcome = world.run(Time::from_ns(10_000_000_000));
    assert_eq!(outcome.failures, Vec::<String>::new());
    (last.into_inner().unwrap(), outcome)
}

#[test]
fn a_crowd_is_bound_by_the_receiver_and_loses_nothing() {
    let (last, outcome) = crowd(PAPER, 1);
    assert_eq!(crowd(PAPER, 1).1, outcome);
    // No faster than one card can receive 300 packets of 200 bytes.
    let steps = [PAPER.check_packet, PAPER.deposit, PAPER.notify];
    let each = steps
        .into_iter()
        .fold(PAPER.dma_in(200), |sum, step| sum + step);
    assert!(last.since(Time::ZERO) > each * 300);
    // And not by what the senders wait for each other's cards: a slower check makes it slower by as much.
    let slow = Parameters {
        check_packet: PAPER.check_packet + Span::from_us(10),
        ..PAPER
    };
    let slower = crowd(slow, 1).0.since(last);
    assert!(slower > Span::from_us(10 * 290), "{slower:?}");
}
