//! Programs of the library on a machine, with a strategy as it is.
//!
//! Each program is on a node of its own, whose machine's file says what the points of the library's
//! code take. Nodes have a processor for the program, and one more if the strategy uses a network
//! processor.

use hamlyn::{Manager, ManagerOptions, Strategy};

use super::measure::Failure;
use crate::host::SimHost;
use crate::link::WireSettings;
use crate::machine::Machine;
use crate::network::{Fabric, Routing, Topology};
use crate::random::Random;
use crate::time::{Span, Time};
use crate::world::{self, NodeId, Settings, Simulation};

/// Everything is ready by then, and nothing of it is left.
const QUIET: Span = Span::from_us(5_000);
/// Of links over a network: far longer than any message takes.
const TIMEOUT: Span = Span::from_us(1_000_000);
/// No experiment lasts so long.
const END: Time = Time::from_ns(60_000_000_000);

/// A machine, and who drives its interfaces. Programs poll.
#[derive(Clone, Debug)]
pub struct Primitive {
    /// The machine.
    pub machine: Machine,
    /// Who drives the interfaces.
    pub strategy: Strategy,
    /// Programs are on neighbouring hosts of a network; otherwise they are far apart.
    pub are_neighbours: bool,
    /// See [`Settings::lets_go_at_once`].
    pub lets_go_at_once: bool,
}

/// A program of an experiment: its name, and what it does with its end.
pub(super) type PartOf<'a, E> = (&'a str, Box<dyn FnOnce(&mut E) + Send + 'a>);

/// A program's end of an experiment.
pub(super) trait ProgramEnd {
    /// Waits until what it has sent is handed to its links.
    fn flush(&self);
}

impl Primitive {
    /// Programs far apart.
    pub fn new(machine: &Machine, strategy: Strategy) -> Self {
        Self {
            machine: machine.clone(),
            strategy,
            are_neighbours: false,
            lets_go_at_once: false,
        }
    }

    /// Runs programs to their ends, whose ends of the experiment `open` makes.
    pub(super) fn run_ends<E: ProgramEnd>(
        &self,
        open: impl Fn(Manager<SimHost>) -> E + Send + Sync,
        parts: Vec<PartOf<'_, E>>,
    ) -> Result<(), Failure> {
        let mut world = Simulation::new(Settings {
            spin: END.since(Time::ZERO),
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
}
