//! Clocks of nodes, beside the time of the world: they begin anywhere and go too fast or too slow,
//! and no two of them alike.

use serde::{Deserialize, Serialize};

use super::kernel::{self, Kernel};
use crate::time::Time;

const MILLION: u32 = 1_000_000;

/// How the clock of a node goes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clock {
    /// What it shows when the world begins.
    pub begins_ns: u64,
    /// By so much of a million it goes too fast.
    pub fast_per_million: i32,
}

impl Clock {
    fn rate(self) -> u128 {
        MILLION
            .saturating_add_signed(self.fast_per_million)
            .max(1)
            .into()
    }

    /// What it shows then, in nanoseconds.
    pub fn shows_ns(self, at: Time) -> u64 {
        let since_ns = u128::from(at.as_ns()) * self.rate() / u128::from(MILLION);
        u64::try_from(since_ns).map_or(u64::MAX, |since_ns| self.begins_ns.saturating_add(since_ns))
    }

    /// When it shows that for the first time, or more; never if that is the last number.
    pub fn time_of(self, shown_ns: u64) -> Time {
        if shown_ns == u64::MAX {
            return Time::NEVER;
        }
        let since_ns = u128::from(shown_ns.saturating_sub(self.begins_ns));
        let since_ns = (since_ns * u128::from(MILLION)).div_ceil(self.rate());
        u64::try_from(since_ns).map_or(Time::NEVER, Time::from_ns)
    }
}

/// What the clock of the calling program's node shows, in nanoseconds.
pub(crate) fn clock_ns() -> u64 {
    kernel::with(|kernel| kernel.clock_here().shows_ns(kernel.local()))
}

/// When the clock of the calling program's node shows that.
pub(crate) fn time_of(shown_ns: u64) -> Time {
    kernel::with(|kernel| kernel.clock_here().time_of(shown_ns))
}

impl Kernel {
    /// The clock of a node.
    pub(crate) fn clock_of_node(&self, node: u32) -> Clock {
        let node = self.nodes.get(node as usize);
        node.map_or(Clock::default(), |node| node.clock)
    }

    fn clock_here(&self) -> Clock {
        let process = self.tasks.running_process();
        let process = process.and_then(|process| self.processes.get(process as usize));
        process.map_or(Clock::default(), |process| self.clock_of_node(process.node))
    }
}

#[cfg(test)]
mod tests;
