//! Time slices: what becomes of a program's time where several jobs have a node's processors by
//! turns.
//!
//! All nodes serve the jobs in the same order, each job for one slice, as a loose gang scheduler
//! does (two-case delivery, section 5). A node whose clock is late changes from one to the next
//! late. What a board beside the processors does goes on in all slices. Switching costs what a
//! machine's file has for it elsewhere, or nothing.

use crate::time::{Span, Time};

/// Who has the processors of a node, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// For how long a job has them.
    pub slice: Span,
    /// How many there are, at least 1.
    pub jobs: u32,
    /// How late each node changes from one job to the next. Nodes that are not listed are on time.
    pub late: Vec<Span>,
}

impl Schedule {
    /// Where in the round of all jobs a node is.
    fn phase(&self, node: u32, at: Time) -> Span {
        let late = self.late.get(node as usize).copied().unwrap_or_default();
        let round = self.round().as_ps();
        let late = late.as_ps() % round;
        Span::from_ps((at.since(Time::ZERO).as_ps() % round + round - late) % round)
    }

    fn round(&self) -> Span {
        Span::from_ps(self.slice.as_ps().max(1)) * u64::from(self.jobs.max(1))
    }

    /// What is left of the job's slice; nothing if it is not its turn.
    fn left(&self, node: u32, job: u32, at: Time) -> Option<Span> {
        let (phase, slice) = (self.phase(node, at).as_ps(), self.slice.as_ps().max(1));
        let is_its_turn = phase / slice == u64::from(job % self.jobs.max(1));
        is_its_turn.then(|| Span::from_ps(slice - phase % slice))
    }

    /// Whether the job has the processors of that node then.
    pub fn is_on(&self, node: u32, job: u32, at: Time) -> bool {
        self.left(node, job, at).is_some()
    }

    /// When it has them next: then, if it has them then.
    pub fn next_on(&self, node: u32, job: u32, at: Time) -> Time {
        if self.is_on(node, job, at) {
            return at;
        }
        let round = self.round().as_ps();
        let begins = self.slice.as_ps().max(1) * u64::from(job % self.jobs.max(1));
        let phase = self.phase(node, at).as_ps();
        at + Span::from_ps((begins + round - phase) % round)
    }

    /// The job that has the processors of that node then.
    pub(crate) fn job_on(&self, node: u32, at: Time) -> u32 {
        let slice = self.slice.as_ps().max(1);
        (self.phase(node, at).as_ps() / slice) as u32
    }

    /// The time at which that node changes to another job next, after that instant.
    pub(crate) fn next_change(&self, node: u32, at: Time) -> Time {
        let slice = self.slice.as_ps().max(1);
        at + Span::from_ps(slice - self.phase(node, at).as_ps() % slice)
    }

    /// For how long the job has the processors of that node in between.
    pub fn time_on(&self, node: u32, job: u32, from: Time, until: Time) -> Span {
        let slice = Span::from_ps(self.slice.as_ps().max(1));
        let mut at = self.next_on(node, job, from);
        let mut had = Span::ZERO;
        while at < until {
            let left = self.left(node, job, at).unwrap_or(slice);
            had += left.min(until.since(at));
            at = self.next_on(node, job, at + left);
        }
        had
    }

    /// When the job has had a processor of that node for so long.
    pub fn after(&self, node: u32, job: u32, at: Time, busy: Span) -> Time {
        if busy == Span::ZERO {
            return at;
        }
        let at = self.next_on(node, job, at);
        let left = self.left(node, job, at).unwrap_or(busy);
        if busy <= left {
            return at + busy;
        }
        let others = self.round().as_ps() - self.slice.as_ps().max(1);
        let next = at + left + Span::from_ps(others);
        let rest = (busy - left).as_ps();
        let slices = (rest - 1) / self.slice.as_ps().max(1);
        next + Span::from_ps(rest + slices * others)
    }
}

#[cfg(test)]
mod tests;
