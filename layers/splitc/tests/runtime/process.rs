//! The runtime in processes: processors as threads with interfaces of their own, with every
//! strategy.

#[macro_use]
mod table;

mod cases;
mod failures;
mod losses;
mod processor;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hamlyn::Strategy;
use hamlyn::host::process::ProcessHost;
use hamlyn_splitc::{Job, Placement};

use processor::{Role, play};

pub(crate) type Host = ProcessHost;

/// How long a barrier may take where it fails.
pub(crate) const BARRIER_TIMEOUT: Duration = Duration::from_millis(300);

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
        static JOBS: AtomicU32 = AtomicU32::new(0);
        let number = JOBS.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{number}", std::process::id());
        std::thread::scope(|scope| {
            let start = |proc| {
                let mut job = Job::alone(&name);
                (job.proc, job.procs, job.strategy) = (proc, procs, self.strategy);
                job.placement = self.placement;
                change(&mut job);
                scope.spawn(move || {
                    let manager =
                        hamlyn::open_with(job.host_options(), hamlyn_splitc::manager_options(&job));
                    play(manager.unwrap(), job, role).map_err(|error| error.to_string())
                })
            };
            let threads: Vec<_> = (0..procs).map(start).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        })
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
everything!(proc_direct, Proc, Direct);
everything!(np_direct, Np, Direct);
everything!(inject_direct, Inject, Direct);
everything!(receive_direct, Receive, Direct);
