//! The runtime in the simulator, each processor on a node of its own, with every strategy.

#[macro_use]
mod table;

mod cases;
mod failures;
mod processor;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hamlyn::Strategy;
use hamlyn_sim::host::SimHost;
use hamlyn_sim::time::Time;
use hamlyn_sim::world::{Settings, Simulation};
use hamlyn_splitc::{Job, Placement};

use processor::{Role, play};

pub(crate) type Host = SimHost;

/// Longer than any test, by the clock of the world.
const END: Time = Time::from_ns(600_000_000_000);

/// How long a barrier may take where it fails.
pub(crate) const BARRIER_TIMEOUT: Duration = Duration::from_millis(30);

/// Where processors live.
#[derive(Clone, Copy)]
pub(crate) struct World {
    pub(crate) strategy: Strategy,
    pub(crate) placement: Placement,
}

impl World {
    /// Runs a job; what each processor came to.
    pub(crate) fn outcomes(
        self,
        procs: u32,
        change: &(dyn Fn(&mut Job) + Sync),
        role: &Role<'_>,
    ) -> Vec<Result<(), String>> {
        let outcomes = Arc::new(Mutex::new(vec![
            Err("it did not end".to_owned());
            procs as usize
        ]));
        let mut world = Simulation::new(Settings {
            seed: 16,
            ..Settings::default()
        });
        for proc in 0..procs {
            let node = world.node(2);
            let mut job = Job::alone("test");
            (job.proc, job.procs, job.strategy) = (proc, procs, self.strategy);
            job.placement = self.placement;
            change(&mut job);
            let outcomes = Arc::clone(&outcomes);
            world.process(node, &format!("processor {proc}"), move || {
                let name = job.interface_name(proc);
                let manager =
                    hamlyn_sim::host::open(Some(&name), hamlyn_splitc::manager_options(&job));
                let outcome = play(manager.unwrap(), job, role).map_err(|error| error.to_string());
                outcomes.lock().unwrap()[proc as usize] = outcome;
            });
        }
        let outcome = world.run(END);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        std::mem::take(&mut *outcomes.lock().unwrap())
    }

    pub(crate) fn run(self, procs: u32, role: &Role<'_>) {
        for outcome in self.outcomes(procs, &|_| (), role) {
            outcome.unwrap();
        }
    }
}

everything!(proc_strategy, Proc, Copied);
everything!(np_strategy, Np, Copied);
everything!(inject_strategy, Inject, Copied);
everything!(receive_strategy, Receive, Copied);
