//! The cases in threads with interfaces of their own, with every strategy.

#[macro_use]
mod table;

mod bare;
mod ends;
mod histories;
mod hostile;
mod limits;
mod locks;
mod player;

use std::sync::atomic::{AtomicU32, Ordering};

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{ManagerOptions, Strategy};

use player::{Role, Stage, play};

pub(crate) type Host = ProcessHost;

/// Another interface of this program.
pub(crate) fn open_unnamed() -> hamlyn::Manager {
    hamlyn::open_unnamed().unwrap()
}

/// The place where programs live.
#[derive(Clone, Copy)]
pub(crate) struct World {
    strategy: Strategy,
    /// Rounds of a case that has more in the simulator.
    pub(crate) rounds: u64,
}

impl World {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            rounds: 2,
        }
    }

    /// Runs so many programs.
    pub(crate) fn run(self, count: usize, role: &Role<'_>) {
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let world = WORLDS.fetch_add(1, Ordering::Relaxed);
        let base = format!("locks-{}-{world}", std::process::id());
        let names: Vec<String> = (0..count)
            .map(|number| format!("{base}-{number}"))
            .collect();
        let stage = Stage::new(names);
        std::thread::scope(|scope| {
            for number in 0..count {
                let stage = &stage;
                scope.spawn(move || {
                    let options = ManagerOptions {
                        strategy: self.strategy,
                        ..ManagerOptions::default()
                    };
                    let host = Options::named(&stage.names[number]);
                    let manager = hamlyn::open_with(host, options).unwrap();
                    play(manager, number, stage, role);
                });
            }
        });
    }
}

everything!(proc_strategy, Proc);
everything!(np_strategy, Np);
everything!(inject_strategy, Inject);
everything!(receive_strategy, Receive);
