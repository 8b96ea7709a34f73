//! The cases in threads with interfaces of their own, with every strategy.

#[macro_use]
mod table;

mod ends;
mod hostile;
mod messages;
mod misuse;
mod player;
mod random;
mod residency;
mod returns;

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{ManagerOptions, Strategy};
use hamlyn_am::NodeOptions;

use player::{Role, play};

pub(crate) type Host = ProcessHost;

/// Another interface of this program.
pub(crate) fn open_unnamed() -> hamlyn::Manager {
    hamlyn::open_unnamed().unwrap()
}

/// The place where programs live.
#[derive(Clone, Copy)]
pub(crate) struct World {
    strategy: Strategy,
    pub(crate) options: NodeOptions,
}

impl World {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            options: NodeOptions::default(),
        }
    }

    /// Runs so many programs.
    pub(crate) fn run(self, count: usize, role: &Role<'_>) {
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let world = WORLDS.fetch_add(1, Ordering::Relaxed);
        let base = format!("am-{}-{world}", std::process::id());
        let finished = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for number in 0..count {
                let (base, finished) = (&base, &finished);
                scope.spawn(move || {
                    let names = |number: usize| format!("{base}-{number}");
                    let options = ManagerOptions {
                        strategy: self.strategy,
                        ..ManagerOptions::default()
                    };
                    let host = Options::named(&names(number));
                    let manager = hamlyn::open_with(host, options).unwrap();
                    play(manager, self.options, number, count, &names, finished, role);
                });
            }
        });
    }
}

everything!(proc_strategy, Proc);
everything!(np_strategy, Np);
everything!(inject_strategy, Inject);
everything!(receive_strategy, Receive);
