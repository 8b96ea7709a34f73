//! Programs of a case in the simulator, each on a node of its own.

use hamlyn::{Manager, ManagerOptions, Strategy};
use hamlyn_sim::host::SimHost;
use hamlyn_sim::network::{Impairment, Mesh};
use hamlyn_sim::random::Random;
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{Settings, Simulation};

#[macro_use]
mod tests_of;

pub(crate) type Host = SimHost;

/// Longer than any case, by the clock of the world.
const END: Time = Time::from_ns(600_000_000_000);
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

/// Another interface of this program.
pub(crate) fn open_unnamed() -> Manager<Host> {
    hamlyn_sim::host::open(None, ManagerOptions::default()).unwrap()
}

/// A program, of its interface, its number and the names of all.
pub(crate) type Program<'a> = dyn Fn(Manager<Host>, usize, &[String]) + Sync + 'a;

/// The place where programs live.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    strategy: Strategy,
    has_network: bool,
}

impl Place {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            has_network: false,
        }
    }

    /// Links between programs go over a network that delays, loses, doubles and reorders.
    pub(crate) fn over_a_network(strategy: Strategy) -> Self {
        Self {
            strategy,
            has_network: true,
        }
    }

    /// Runs so many programs.
    pub(crate) fn run(self, count: usize, program: &Program<'_>) {
        let names = (0..count).map(|number| format!("program-{number}"));
        let names: &Vec<String> = &names.collect();
        let mut world = Simulation::new(Settings {
            seed: crate::SEED,
            ..Settings::default()
        });
        if self.has_network {
            let network = Mesh::new(count as u32, NETWORK, &mut Random::new(7)).unwrap();
            world.set_network(Box::new(network), TIMEOUT);
        }
        for (number, name) in names.iter().enumerate() {
            let node = world.node(2);
            world.process(node, name, move || {
                let options = ManagerOptions {
                    strategy: self.strategy,
                    ..ManagerOptions::default()
                };
                let manager = hamlyn_sim::host::open(Some(name), options).unwrap();
                program(manager, number, names);
            });
        }
        let outcome = world.run(END);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    }
}

/// The tests of these cases in all places.
macro_rules! in_every_place {
    ($($cases:tt)*) => {
        tests_of!(proc_strategy, Proc, new; $($cases)*);
        tests_of!(np_strategy, Np, new; $($cases)*);
        tests_of!(inject_strategy, Inject, new; $($cases)*);
        tests_of!(receive_strategy, Receive, new; $($cases)*);
        tests_of!(between_hosts, Proc, over_a_network; $($cases)*);
        tests_of!(between_hosts_receive, Receive, over_a_network; $($cases)*);
    };
}
