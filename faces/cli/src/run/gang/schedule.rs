//! The turns of two jobs, as a plan in time: nothing here waits or reads a clock.

use std::time::Duration;

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::options::GangOptions;

/// A turn of a process begins or ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Switch {
    /// The time since the beginning.
    pub(super) at: Duration,
    pub(super) proc: usize,
    /// True if the process goes on, false if it stops.
    pub(super) runs: bool,
}

/// The turns of a job that has each second quantum. Each process has its turns at times that are
/// multiples of two quanta after its first: deadlines do not drift, however late each one is kept.
pub(super) struct Schedule {
    /// Two quanta.
    period: Duration,
    /// The switches of a period, in their order.
    switches: Vec<Switch>,
    /// The period of the next one, and its place there.
    lap: u64,
    place: usize,
}

impl Schedule {
    pub(super) fn new(options: &GangOptions, procs: usize) -> Self {
        let quantum = options.quantum;
        let of = |(proc, late)| {
            let switch = |at, runs| Switch { at, proc, runs };
            [switch(late, true), switch(late + quantum, false)]
        };
        let late = out_of_step(procs, quantum.mul_f64(options.skew), options.seed);
        let mut switches: Vec<Switch> = late.into_iter().enumerate().flat_map(of).collect();
        // Those that stop make room.
        switches.sort_by_key(|switch| (switch.at, switch.runs, switch.proc));
        Self {
            period: quantum * 2,
            switches,
            lap: 0,
            place: 0,
        }
    }

    /// The processes that do not run at the beginning, since their turn comes later.
    pub(super) fn late(&self) -> impl Iterator<Item = usize> {
        let begins_late = |switch: &&Switch| switch.runs && !switch.at.is_zero();
        self.switches
            .iter()
            .filter(begins_late)
            .map(|switch| switch.proc)
    }

    /// The next switch.
    pub(super) fn next(&self) -> Switch {
        let switch = self.switches[self.place];
        let begin_ns = u128::from(self.lap) * self.period.as_nanos();
        let begin = Duration::from_nanos(u64::try_from(begin_ns).unwrap_or(u64::MAX));
        Switch {
            at: begin.saturating_add(switch.at),
            ..switch
        }
    }

    /// Takes the next switch if it is due, that long after the beginning.
    pub(super) fn take_due(&mut self, now: Duration) -> Option<Switch> {
        // Whole periods that nobody has kept change nothing.
        let lap = u64::try_from(now.as_nanos() / self.period.as_nanos()).unwrap_or(u64::MAX);
        self.lap = self.lap.max(lap.saturating_sub(1));
        let switch = self.next();
        if switch.at > now {
            return None;
        }
        self.place += 1;
        if self.place == self.switches.len() {
            (self.lap, self.place) = (self.lap + 1, 0);
        }
        Some(switch)
    }
}

/// By how much each process is late: at random between nothing and `latest`, and one process is not
/// late at all and another one by all of that, as in the experiments of the paper (`T 5.1`) and on
/// the model of its machine.
fn out_of_step(procs: usize, latest: Duration, seed: u64) -> Vec<Duration> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut below = |end: u64| ((u128::from(random.next_u64()) * u128::from(end)) >> 64) as u64;
    // Half a second at most.
    let latest_ns = latest.as_nanos() as u64;
    let mut late: Vec<u64> = (0..procs).map(|_| below(latest_ns + 1)).collect();
    let first = below(procs as u64) as usize;
    if procs > 1 {
        let last = (first + 1 + below(procs as u64 - 1) as usize) % procs;
        late[last] = latest_ns;
    }
    late[first] = 0;
    late.into_iter().map(Duration::from_nanos).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_millis(10);

    fn schedule(skew: f64, seed: u64, procs: usize) -> Schedule {
        let options = GangOptions {
            quantum: QUANTUM,
            skew,
            seed,
            has_null: true,
        };
        Schedule::new(&options, procs)
    }

    /// The switches up to a time, looked for at these intervals.
    fn kept(schedule: &mut Schedule, step: Duration, end: Duration) -> Vec<Switch> {
        let mut taken = Vec::new();
        let mut now = Duration::ZERO;
        while now <= end {
            while let Some(switch) = schedule.take_due(now) {
                assert!(switch.at <= now);
                taken.push(switch);
            }
            assert!(schedule.next().at > now);
            now += step;
        }
        taken
    }

    #[test]
    fn turns_alternate_and_do_not_drift() {
        for skew in [0.0, 0.1, 0.9] {
            let mut schedule = schedule(skew, 3, 5);
            let late: Vec<usize> = schedule.late().collect();
            // Looked for at times that are no divisors of a quantum.
            let taken = kept(
                &mut schedule,
                Duration::from_micros(730),
                Duration::from_secs(20),
            );
            for proc in 0..5 {
                let mut of_proc = taken.iter().filter(|switch| switch.proc == proc);
                let first = of_proc.next().unwrap();
                assert!(first.runs && first.at <= QUANTUM.mul_f64(skew));
                assert_eq!(late.contains(&proc), !first.at.is_zero());
                let mut count = 1;
                for switch in of_proc {
                    assert_eq!(switch.runs, count % 2 == 0);
                    assert_eq!(switch.at, first.at + QUANTUM * count);
                    count += 1;
                }
                assert!(count >= 1_999, "{count} switches");
            }
        }
    }

    #[test]
    fn one_is_first_and_one_is_late_by_all_of_the_skew() {
        let latest = QUANTUM.mul_f64(0.3);
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..100 {
            let late = out_of_step(8, latest, seed);
            assert_eq!(late, out_of_step(8, latest, seed));
            assert_eq!(late.iter().min(), Some(&Duration::ZERO));
            assert_eq!(late.iter().max(), Some(&latest));
            seen.insert(late);
        }
        assert!(seen.len() > 90, "a seed decides");
        assert_eq!(out_of_step(1, latest, 0), [Duration::ZERO]);
        assert_eq!(out_of_step(3, Duration::ZERO, 0), [Duration::ZERO; 3]);
    }

    /// After an hour in which the launcher was stopped itself, each process is where it belongs, by
    /// a few signals.
    #[test]
    fn what_nobody_kept_is_not_made_up_for() {
        let mut schedule = schedule(0.5, 1, 3);
        let late = out_of_step(3, QUANTUM.mul_f64(0.5), 1);
        let mut runs = [true; 3];
        schedule.late().for_each(|proc| runs[proc] = false);
        let mut switches = 0;
        for now in [
            Duration::from_millis(3),
            Duration::from_micros(3_600_003_700),
            Duration::from_micros(7_200_012_300),
        ] {
            while let Some(switch) = schedule.take_due(now) {
                runs[switch.proc] = switch.runs;
                switches += 1;
            }
            for proc in 0..3 {
                let into = (now + QUANTUM * 2 - late[proc]).as_nanos() % (QUANTUM * 2).as_nanos();
                assert_eq!(runs[proc], into < QUANTUM.as_nanos(), "{proc} at {now:?}");
            }
        }
        assert!(switches <= 3 * 2 * 5, "{switches} switches");
    }
}
