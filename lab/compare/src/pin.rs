//! Which cores the programs run on.

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Receivers run on the first, senders on the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cores {
    pub(crate) receiver: usize,
    pub(crate) sender: usize,
}

/// Which of them a process may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Receiver,
    Sender,
    Both,
}

impl Cores {
    /// The two that were asked for, or the first two that this process may use.
    pub(crate) fn choose(asked: &[usize]) -> Result<Self> {
        let set = sched_getaffinity(None).context("asking for the cores")?;
        let allowed: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|&core| set.is_set(core))
            .collect();
        let chosen = if asked.is_empty() { &allowed } else { asked };
        let [receiver, sender, ..] = *chosen else {
            bail!(
                "two cores are needed; this process may use {}",
                allowed.len()
            );
        };
        ensure!(receiver != sender, "--cores: two different ones are needed");
        for core in [receiver, sender] {
            ensure!(
                allowed.contains(&core),
                "--cores: core {core} is not among those that this process may use: {allowed:?}"
            );
        }
        Ok(Self { receiver, sender })
    }

    fn set(self, place: Place) -> CpuSet {
        let mut set = CpuSet::new();
        if place != Place::Sender {
            set.set(self.receiver);
        }
        if place != Place::Receiver {
            set.set(self.sender);
        }
        set
    }

    /// Starts something from a thread that is confined there: a child inherits it.
    pub(crate) fn confined<T>(self, place: Place, start: impl FnOnce() -> T) -> Result<T> {
        let before = sched_getaffinity(None).context("asking for the cores")?;
        sched_setaffinity(None, &self.set(place)).context("choosing cores")?;
        let started = start();
        sched_setaffinity(None, &before).context("giving the cores back")?;
        Ok(started)
    }
}
