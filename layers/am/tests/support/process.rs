//! Programs of a case in threads, with interfaces of their own.

use std::sync::atomic::{AtomicU32, Ordering};

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions, Strategy};

#[macro_use]
mod tests_of;

pub(crate) type Host = ProcessHost;

/// Another interface of this program.
pub(crate) fn open_unnamed() -> Manager {
    hamlyn::open_unnamed().unwrap()
}

/// A program, of its interface, its number and the names of all.
pub(crate) type Program<'a> = dyn Fn(Manager<Host>, usize, &[String]) + Sync + 'a;

/// The place where programs live.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    strategy: Strategy,
}

impl Place {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self { strategy }
    }

    /// Runs so many programs.
    pub(crate) fn run(self, count: usize, program: &Program<'_>) {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let base = format!("{}-{}-{run}", env!("CARGO_PKG_NAME"), std::process::id());
        let names = (0..count).map(|number| format!("{base}-{number}"));
        let names: &Vec<String> = &names.collect();
        std::thread::scope(|scope| {
            for (number, name) in names.iter().enumerate() {
                scope.spawn(move || {
                    let options = ManagerOptions {
                        strategy: self.strategy,
                        ..ManagerOptions::default()
                    };
                    let manager = hamlyn::open_with(Options::named(name), options).unwrap();
                    program(manager, number, names);
                });
            }
        });
    }
}

/// The tests of these cases in all places.
macro_rules! in_every_place {
    ($($cases:tt)*) => {
        tests_of!(proc_strategy, Proc, new; $($cases)*);
        tests_of!(np_strategy, Np, new; $($cases)*);
        tests_of!(inject_strategy, Inject, new; $($cases)*);
        tests_of!(receive_strategy, Receive, new; $($cases)*);
    };
}
