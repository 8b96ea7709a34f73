//! What happens to processes: they are killed, or stopped for a while, between calls of their
//! library or inside of one.

use crate::time::{Span, Time};
use crate::world::ProcessId;
use crate::world::kernel::{self, Kernel, What};

/// What happens to a process in the middle of a call of its library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtPoint {
    /// It is killed.
    Kill,
    /// It has no processor for so long.
    Stop(Span),
}

/// Kills a process: it does nothing any more, and its peers learn of it.
pub fn kill(process: ProcessId) {
    kernel::with(|kernel| kernel.kill(process.0));
}

/// When a process was killed, if it was.
pub fn killed_at(process: ProcessId) -> Option<Time> {
    kernel::with(|kernel| kernel.processes.get(process.0 as usize)?.killed_at)
}

/// Whether a process has come to its end and given back what it had, such as names. One that is
/// killed in the middle of a call does so a little later.
pub fn has_ended(process: ProcessId) -> bool {
    kernel::with(|kernel| kernel.tasks.of_process(process.0).is_empty())
}

/// Stops a process until [`resume`]: it has no processor.
pub fn stop(process: ProcessId) {
    kernel::with(|kernel| {
        if let Some(process) = kernel.processes.get_mut(process.0 as usize) {
            process.held.get_or_insert_default();
        }
    });
}

/// Lets a stopped process go on.
pub fn resume(process: ProcessId) {
    kernel::with(|kernel| {
        let process = kernel.processes.get_mut(process.0 as usize);
        let held = process.and_then(|process| process.held.take());
        let now = kernel.local();
        for (task, epoch) in held.into_iter().flatten() {
            kernel.schedule(now, What::Wake { task, epoch });
        }
    });
}

impl Kernel {
    /// What is to happen to the running task's process at this point begins: from now on none of
    /// its tasks has a processor. Whether anything does.
    pub(super) fn begin_fault(&mut self) -> bool {
        let process = self.tasks.running_process();
        let Some(number) = process.filter(|_| !self.is_dying()) else {
            return false;
        };
        let process = &mut self.processes[number as usize];
        process.points += 1;
        let Some(fault) = process.at_points.remove(&process.points) else {
            return false;
        };
        process.held.get_or_insert_default();
        let (at, process) = (self.local(), ProcessId(number));
        self.saw(match fault {
            AtPoint::Kill => "a process killed in the middle of a call",
            AtPoint::Stop(_) => "a process stopped in the middle of a call",
        });
        match fault {
            // Not by itself: its tasks unwind in the order of any kill.
            AtPoint::Kill => self.act_at(at, Box::new(move || kill(process))),
            AtPoint::Stop(span) => {
                self.act_at(at + span, Box::new(move || resume(process)));
            }
        }
        true
    }

    fn kill(&mut self, process: u32) {
        let now = self.local();
        let Some(known) = self.processes.get_mut(process as usize) else {
            return;
        };
        if known.is_killed() {
            return;
        }
        known.killed_at = Some(now);
        let held = known.held.take();
        self.trace
            .note(now, || format!("process {process} is killed"));
        self.lose_interfaces_of(process);
        for (task, epoch) in held.into_iter().flatten() {
            self.schedule(now, What::Wake { task, epoch });
        }
        for task in self.tasks.of_process(process) {
            if let Some(epoch) = self.tasks.interrupted(task) {
                self.schedule(now, What::Wake { task, epoch });
            } else if self.tasks.has_begun(task) {
                self.wake(task);
            } else {
                self.tasks.forget(task);
            }
        }
    }
}
