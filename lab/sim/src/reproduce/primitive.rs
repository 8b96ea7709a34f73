//! Primitives: what programs of the library take for a message on a machine, with a strategy as it
//! is.
//!
//! The messages are those of the interface's own calls, in fast mode: one packet, announced, that
//! the receiver takes. [`measure`] has the engine alone on the paper's boards; here are the
//! library, its strategies and the programs' processors, in a world. Nodes have a processor for the
//! program, and one more if the strategy uses a network processor.
//!
//! [`measure`]: super::measure

use std::sync::{Mutex, PoisonError};

use hamlyn::host::{Address, Supply};
use hamlyn::{Manager, ManagerOptions, Message, NewSlot, Queue, Session, Strategy, Target};
use hamlyn::{Ticket, Wait};

use super::measure::Failure;
use crate::host::SimHost;
use crate::link::WireSettings;
use crate::machine::Machine;
use crate::network::{Fabric, Routing, Topology};
use crate::random::Random;
use crate::time::{Span, Time};
use crate::world::{self, NodeId, Settings, Simulation};

/// Messages of a round-trip experiment, each way.
const ROUNDS: u64 = 40;
/// Those of them that count.
const COUNTED: std::ops::Range<u64> = 10..30;
const AREA_BYTES: u64 = 65_536;
const QUEUE_ENTRIES: usize = 4_096;
/// Everything is ready by then, and nothing of it is left.
const QUIET: Span = Span::from_us(5_000);
/// Between the beginnings of clients.
const APART: Span = Span::from_us(50);
/// Of links over a network: far longer than any message takes.
const TIMEOUT: Span = Span::from_us(1_000_000);
/// No experiment lasts so long.
const END: Time = Time::from_ns(60_000_000_000);

/// How a receiver waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// It looks until something is there.
    Polls,
    /// It sleeps until it is woken.
    Sleeps,
}

/// A machine, who drives its interfaces, and what is sent.
#[derive(Clone, Debug)]
pub struct Primitive {
    /// The machine.
    pub machine: Machine,
    /// Who drives the interfaces.
    pub strategy: Strategy,
    /// Bytes of a message.
    pub data_bytes: usize,
    /// How receivers wait.
    pub waiting: Waiting,
    /// Programs are on neighbouring hosts of a network; otherwise they are far apart.
    pub are_neighbours: bool,
    /// See [`Settings::lets_go_at_once`].
    pub lets_go_at_once: bool,
}

/// A program's end of an experiment.
pub(super) struct Party {
    manager: Manager<SimHost>,
    queue: Queue,
    data: Vec<u8>,
}

/// What a program sends to.
pub(super) struct Peer(Target);

impl Party {
    fn session(&mut self) -> Session<'_, SimHost> {
        self.manager.session()
    }

    /// The way to a program that offers a ticket.
    pub(super) fn peer(&mut self, name: &str) -> Peer {
        let bytes = self
            .session()
            .ask(Address::Name(name), "ticket", Wait::Forever)
            .expect("every program of the experiment offers a ticket");
        let ticket = Ticket::from_bytes(&bytes).expect("a ticket as it was offered");
        let target = self.session().target(&ticket, Wait::Forever);
        Peer(target.expect("every program lives until all is done"))
    }

    pub(super) fn send(&mut self, to: &Peer, word: u64) {
        let terminus = self.manager.terminus();
        let data = std::mem::take(&mut self.data);
        let message = Message::new(&data).word(word);
        self.session()
            .send_msg(terminus, &to.0, &message, Wait::Forever)
            .expect("every program lives until all is done");
        self.data = data;
    }

    /// Waits for a message: its word.
    pub(super) fn receive(&mut self) -> u64 {
        let Self { manager, queue, .. } = self;
        let came = manager.session().rcv_block(queue, Wait::Forever);
        came.ok().flatten().expect("a message is on its way").word
    }
}

/// A program of an experiment: its name, and what it does with its end.
pub(super) type PartOf<'a, E> = (&'a str, Box<dyn FnOnce(&mut E) + Send + 'a>);
/// A program of an experiment with messages.
pub(super) type Part<'a> = PartOf<'a, Party>;

/// A program's end of an experiment.
pub(super) trait ProgramEnd {
    /// Waits until what it has sent is handed to its links.
    fn flush(&self);
}

impl ProgramEnd for Party {
    fn flush(&self) {
        let _ = self.manager.session().flush(Wait::Forever);
    }
}

impl Primitive {
    /// Messages of 16 bytes between programs that poll.
    pub fn new(machine: &Machine, strategy: Strategy) -> Self {
        Self {
            machine: machine.clone(),
            strategy,
            data_bytes: 16,
            waiting: Waiting::Polls,
            are_neighbours: false,
            lets_go_at_once: false,
        }
    }

    /// Runs programs to their ends, each on a node of its own.
    pub(super) fn run(&self, parts: Vec<Part<'_>>) -> Result<(), Failure> {
        self.run_ends(|manager| offer(manager, self.data_bytes), parts)
    }

    /// The same, of programs whose ends `open` makes.
    pub(super) fn run_ends<E: ProgramEnd>(
        &self,
        open: impl Fn(Manager<SimHost>) -> E + Send + Sync,
        parts: Vec<PartOf<'_, E>>,
    ) -> Result<(), Failure> {
        let mut world = Simulation::new(Settings {
            spin: match self.waiting {
                Waiting::Polls => END.since(Time::ZERO),
                Waiting::Sleeps => Span::ZERO,
            },
            lets_go_at_once: self.lets_go_at_once,
            wire: WireSettings {
                // Boards of these machines send as fast as they can.
                delay_target_ns: TIMEOUT.as_ns() / 100,
                ..WireSettings::default()
            },
            ..Settings::default()
        });
        world.set_machine(match self.strategy {
            Strategy::Inject | Strategy::Receive => self.machine.sharing(),
            _ => self.machine.clone(),
        });
        let topology = self.machine.topology();
        if let Some(topology) = topology {
            let fabric = Fabric::new(topology, Routing::Pair, &mut Random::new(0));
            let fabric = fabric.expect("it was checked when the machine's file was read");
            world.set_network(Box::new(fabric), TIMEOUT);
        }
        let processors = 1 + usize::from(self.strategy != Strategy::Proc);
        let hosts = topology.map_or(parts.len(), Topology::host_count);
        let nodes: Vec<NodeId> = (0..hosts).map(|_| world.node(processors)).collect();
        // A prime apart, so that they are not all neighbours where there are more hosts.
        let apart = match self.are_neighbours || hosts == parts.len() {
            true => 1,
            false => 37,
        };
        let open = &open;
        for (place, (name, part)) in parts.into_iter().enumerate() {
            let node = nodes[place * apart % hosts];
            world.process(node, name, move || {
                let options = ManagerOptions {
                    strategy: self.strategy,
                    ..ManagerOptions::default()
                };
                let manager =
                    crate::host::open(Some(name), options).expect("an interface of its own");
                let mut end = open(manager);
                part(&mut end);
                end.flush();
                // Others may still answer.
                world::pause(QUIET);
            });
        }
        let outcome = world.run(END);
        if outcome.failures.is_empty() {
            Ok(())
        } else {
            Err(Failure::World(outcome.failures.join("; ")))
        }
    }

    /// Half of a round trip between two programs, on average.
    pub fn one_way(&self) -> Result<Span, Failure> {
        Ok(Span::from_ps(self.round_trip_with(1)?.as_ps() / 2))
    }

    /// There and back, on average, where each message finds a receiver that has waited for long.
    pub fn rare_round_trip(&self) -> Result<Span, Failure> {
        self.round_trips(1, QUIET)
    }

    /// There and back, on average, of each of so many clients of one server, all of whom ask again
    /// as soon as they are answered.
    pub fn round_trip_with(&self, clients: usize) -> Result<Span, Failure> {
        self.round_trips(clients, Span::ZERO)
    }

    fn round_trips(&self, clients: usize, between: Span) -> Result<Span, Failure> {
        let names: Vec<String> = (0..clients).map(|at| format!("client-{at}")).collect();
        let total = Mutex::new(Span::ZERO);
        let mut parts: Vec<Part<'_>> = Vec::new();
        let asked = ROUNDS * clients as u64;
        let of_server = &names;
        parts.push((
            "server",
            Box::new(move |end| {
                let peers: Vec<Peer> = of_server.iter().map(|name| end.peer(name)).collect();
                for _ in 0..asked {
                    let who = end.receive();
                    end.send(&peers[who as usize], who);
                }
            }),
        ));
        for (who, name) in names.iter().enumerate() {
            let total = &total;
            parts.push((
                name,
                Box::new(move |end| {
                    let server = end.peer("server");
                    // One after the other: a network takes long to get over a beginning of all at
                    // once.
                    world::pause(QUIET + APART * who as u64);
                    let mut took = Span::ZERO;
                    for round in 0..ROUNDS {
                        world::pause(between);
                        let takes = timed(|| {
                            end.send(&server, who as u64);
                            end.receive();
                        });
                        // At first and at last not all of them ask.
                        if COUNTED.contains(&round) {
                            took += takes;
                        }
                    }
                    *total.lock().unwrap_or_else(PoisonError::into_inner) += took;
                }),
            ));
        }
        self.run(parts)?;
        let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
        let counted = (COUNTED.end - COUNTED.start) * clients as u64;
        Ok(Span::from_ps(total.as_ps() / counted))
    }
}

/// What a call takes of its program's time.
fn timed(call: impl FnOnce()) -> Span {
    let began = world::now();
    call();
    world::now().since(began)
}

/// Opens what messages land in, and offers the ticket to it.
fn offer(manager: Manager<SimHost>, data_bytes: usize) -> Party {
    let (queue, ticket) = {
        let mut interface = manager.session();
        let area = interface.allocate(AREA_BYTES).expect("memory");
        let queue = interface.open_queue(QUEUE_ENTRIES).expect("a queue");
        let slot = NewSlot::new(&area).queue(&queue).entries(1);
        let slot = interface.open_slot(slot).expect("a slot");
        let ticket = slot.fast_ticket(0, AREA_BYTES).expect("a ticket for it");
        (queue, ticket)
    };
    manager
        .session()
        .offer("ticket", Supply::Always, &ticket.to_bytes())
        .expect("an offer");
    Party {
        manager,
        queue,
        data: vec![0; data_bytes],
    }
}
