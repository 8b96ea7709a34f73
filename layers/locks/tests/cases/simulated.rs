//! The cases in the simulator, each program on a node of its own, with every strategy, and over a
//! network that delays, loses, doubles and reorders.

#[macro_use]
mod table;

mod bare;
mod ends;
mod histories;
mod hostile;
mod limits;
mod locks;
mod player;

use hamlyn::{ManagerOptions, Strategy};
use hamlyn_sim::host::SimHost;
use hamlyn_sim::network::{Impairment, Mesh};
use hamlyn_sim::random::Random;
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{Settings, Simulation};

use player::{Role, Stage, play};

pub(crate) type Host = SimHost;

/// Longer than any case, by the clock of the world.
const END: Time = Time::from_ns(600_000_000_000);

/// Another interface of this program.
pub(crate) fn open_unnamed() -> hamlyn::Manager<SimHost> {
    hamlyn_sim::host::open(None, ManagerOptions::default()).unwrap()
}

/// Silence after which a link ends.
const TIMEOUT: Span = Span::from_us(50_000);
const NETWORK: &[Impairment] = &[
    Impairment::Delay {
        delay_ps: 2_000_000,
    },
    Impairment::Lose {
        per_million: 30_000,
        run_frames: 1,
    },
    Impairment::Duplicate {
        per_million: 20_000,
    },
    Impairment::Reorder {
        per_million: 100_000,
        up_to_ps: 30_000_000,
    },
];

/// The place where programs live.
#[derive(Clone, Copy)]
pub(crate) struct World {
    strategy: Strategy,
    has_network: bool,
    /// Rounds of a case that has fewer between threads.
    pub(crate) rounds: u64,
}

impl World {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            has_network: false,
            rounds: 12,
        }
    }

    /// Links between programs go over a network that delays, loses, doubles and reorders.
    pub(crate) fn over_a_network(strategy: Strategy) -> Self {
        Self {
            has_network: true,
            ..Self::new(strategy)
        }
    }

    /// Runs so many programs.
    pub(crate) fn run(self, count: usize, role: &Role<'_>) {
        let names = (0..count).map(|number| format!("program-{number}"));
        let stage = &Stage::new(names.collect());
        let mut world = Simulation::new(Settings {
            seed: 57,
            ..Settings::default()
        });
        if self.has_network {
            let network = Mesh::new(count as u32, NETWORK, &mut Random::new(7)).unwrap();
            world.set_network(Box::new(network), TIMEOUT);
        }
        for number in 0..count {
            let node = world.node(2);
            world.process(node, &stage.names[number], move || {
                let options = ManagerOptions {
                    strategy: self.strategy,
                    ..ManagerOptions::default()
                };
                let manager = hamlyn_sim::host::open(Some(&stage.names[number]), options);
                play(manager.unwrap(), number, stage, role);
            });
        }
        let outcome = world.run(END);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    }
}

everything!(proc_strategy, Proc);
everything!(np_strategy, Np);
everything!(inject_strategy, Inject);
everything!(receive_strategy, Receive);
everything!(between_hosts, Proc, over_a_network);
everything!(between_hosts_receive, Receive, over_a_network);
