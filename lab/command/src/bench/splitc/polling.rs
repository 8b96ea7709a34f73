//! The polling granularity (`Split-C 5.3`, Figures 7 and 8): processors take turns to compute, with
//! a poll after each grain, while the others need a word of the one that computes before they can
//! compute themselves.

use std::time::{Duration, Instant};

use hamlyn_splitc::{Error, GlobalPtr};

use super::Figures;
use super::processor::{Runtime, TARGET, at};
use crate::bench::{Depth, median};

/// What each processor computes in a turn.
const WORK: Duration = Duration::from_micros(4_000);
/// Computation between two polls, in microseconds.
const GRAINS_US: [usize; 6] = [1, 10, 50, 200, 1_000, 4_000];

pub(super) fn measure(
    runtime: &mut Runtime,
    depth: Depth,
    figures: &mut Figures,
) -> Result<(), Error> {
    let rounds = depth.pick(15, 3, 1);
    for grain in GRAINS_US {
        let time = time_of(runtime, Duration::from_micros(grain as u64), true, rounds)?;
        figures.polling_us.push((grain, time));
    }
    figures.not_polling_us = Some(time_of(runtime, WORK, false, rounds)?);
    Ok(())
}

/// Microseconds of an iteration, in which each processor has its turn.
fn time_of(
    runtime: &mut Runtime,
    grain: Duration,
    polls: bool,
    rounds: usize,
) -> Result<f64, Error> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        runtime.barrier()?;
        let begun = Instant::now();
        for turn in 0..runtime.procs() {
            if runtime.proc() != turn {
                runtime.read(GlobalPtr::<u64>::at(at(turn, TARGET)))?;
            }
            compute(runtime, grain, polls)?;
            runtime.barrier()?;
        }
        times.push(begun.elapsed().as_nanos() as f64 / 1e3);
    }
    Ok(median(times))
}

fn compute(runtime: &mut Runtime, grain: Duration, polls: bool) -> Result<(), Error> {
    let begun = Instant::now();
    while begun.elapsed() < WORK {
        let since = Instant::now();
        while since.elapsed() < grain && begun.elapsed() < WORK {
            std::hint::spin_loop();
        }
        if polls {
            runtime.poll()?;
        }
    }
    Ok(())
}
