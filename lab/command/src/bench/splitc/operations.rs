//! Round trips, overhead and gaps of operations on 8 bytes (`Split-C 5.1`, Table 1), and the
//! bandwidth of long ones (`5.2`).

use std::time::{Duration, Instant};

use hamlyn_splitc::{Error, GlobalPtr};

use super::Figures;
use super::processor::{LOCAL, Runtime, TARGET, at, served};
use crate::bench::{Depth, median};

/// Batches of each figure; the median counts.
const BATCHES: usize = 9;
/// Operations whose overhead is taken: so few that none waits for room.
const FEW: u32 = 16;
/// Longer than the answers to a few operations take.
const ANSWERED: Duration = Duration::from_micros(200);
/// Sizes of bulk operations.
const SIZES_BYTES: [usize; 9] = [8, 64, 512, 2048, 8192, 32_768, 131_072, 524_288, 2_097_152];
/// Bytes of a batch of a bandwidth.
const BATCH_BYTES: usize = 8 << 20;

#[derive(Clone, Copy)]
enum Operation {
    Get,
    Put,
    Store,
}

const OPERATIONS: [(Operation, &str); 3] = [
    (Operation::Get, "get"),
    (Operation::Put, "put"),
    (Operation::Store, "store"),
];

impl Operation {
    fn begin(self, runtime: &mut Runtime, proc: u32) -> Result<(), Error> {
        let pointer = GlobalPtr::<u64>::at(at(proc, TARGET));
        match self {
            Self::Get => runtime.get(LOCAL, pointer),
            Self::Put => runtime.put(pointer, 7),
            Self::Store => runtime.store(pointer, 7),
        }
    }

    /// Waits until all that was begun is done. What is read from a processor was asked for after
    /// what was stored there.
    fn complete(self, runtime: &mut Runtime, procs: std::ops::Range<u32>) -> Result<(), Error> {
        match self {
            Self::Get | Self::Put => runtime.sync(),
            Self::Store => {
                for proc in procs {
                    runtime.read(GlobalPtr::<u64>::at(at(proc, TARGET)))?;
                }
                Ok(())
            }
        }
    }
}

fn count(depth: Depth) -> u32 {
    depth.pick(20_000, 2_000, 200)
}

/// The median of batches, each of `each` operations, in nanoseconds for one.
fn batches(each: u32, mut batch: impl FnMut() -> Result<Duration, Error>) -> Result<f64, Error> {
    let mut times = Vec::new();
    for _ in 0..BATCHES {
        times.push(batch()?.as_nanos() as f64 / f64::from(each));
    }
    Ok(median(times))
}

pub(super) fn measure_pair(
    runtime: &mut Runtime,
    depth: Depth,
    figures: &mut Figures,
) -> Result<(), Error> {
    let each = count(depth);
    let word = GlobalPtr::<u64>::at(at(1, TARGET));
    let mut note = |name: &str, time: Option<f64>| {
        if let Some(time) = time {
            figures.times_ns.insert(name.to_owned(), time);
        }
    };
    let time = served(runtime, |runtime| {
        batches(each, || {
            let begun = Instant::now();
            for _ in 0..each {
                runtime.atomic(word.address(), 1, &[], &mut [0; 8])?;
            }
            Ok(begun.elapsed())
        })
    })?;
    note("round trip: atomic", time);
    let time = served(runtime, |runtime| {
        batches(each, || {
            let begun = Instant::now();
            for _ in 0..each {
                runtime.read(word)?;
            }
            Ok(begun.elapsed())
        })
    })?;
    note("round trip: read", time);
    let time = served(runtime, |runtime| {
        batches(each, || {
            let begun = Instant::now();
            for _ in 0..each {
                runtime.write(word, 5)?;
            }
            Ok(begun.elapsed())
        })
    })?;
    note("round trip: write", time);
    for (operation, name) in OPERATIONS {
        let time = served(runtime, |runtime| {
            let times = (0..each / FEW)
                .map(|_| overhead(runtime, operation))
                .collect::<Result<Vec<_>, Error>>()?;
            Ok(median(times))
        })?;
        note(&format!("overhead: {name}"), time);
        let time = served(runtime, |runtime| {
            batches(each, || gap(runtime, operation, each, 1..2))
        })?;
        note(&format!("gap: {name}"), time);
        // Both at once, each the other's.
        let other = 1 - runtime.proc();
        let time = batches(each, || {
            runtime.barrier()?;
            let begun = Instant::now();
            gap(runtime, operation, each, other..other + 1)?;
            runtime.barrier()?;
            Ok(begun.elapsed())
        })?;
        note(&format!("gap in exchange: {name}"), Some(time));
    }
    for size in SIZES_BYTES {
        let times = (BATCH_BYTES / size).clamp(1, 4_000) / depth.pick(1, 4, 40);
        let times = times.max(1);
        let moved = (times * size) as f64;
        let rate = served(runtime, |runtime| {
            let time = batches(1, || {
                let begun = Instant::now();
                for _ in 0..times {
                    runtime.get_bytes(LOCAL, at(1, TARGET), size as u64)?;
                }
                runtime.sync()?;
                Ok(begun.elapsed())
            })?;
            Ok(moved / time * 1e9)
        })?;
        if let Some(rate) = rate {
            figures
                .bandwidth
                .entry("bulk get".to_owned())
                .or_default()
                .push((size, rate));
        }
        let bytes = vec![7; size];
        let rate = served(runtime, |runtime| {
            let time = batches(1, || {
                let begun = Instant::now();
                for _ in 0..times {
                    runtime.store_bytes(at(1, TARGET), &bytes)?;
                }
                Operation::Store.complete(runtime, 1..2)?;
                Ok(begun.elapsed())
            })?;
            Ok(moved / time * 1e9)
        })?;
        if let Some(rate) = rate {
            figures
                .bandwidth
                .entry("bulk store".to_owned())
                .or_default()
                .push((size, rate));
        }
    }
    Ok(())
}

/// What the processor itself spends on an operation: to begin it, and to complete it when the
/// answer is there.
fn overhead(runtime: &mut Runtime, operation: Operation) -> Result<f64, Error> {
    let begun = Instant::now();
    for _ in 0..FEW {
        operation.begin(runtime, 1)?;
    }
    let mut spent = begun.elapsed();
    let sent = Instant::now();
    while sent.elapsed() < ANSWERED {
        std::hint::spin_loop();
    }
    let completing = Instant::now();
    match operation {
        Operation::Get | Operation::Put => {
            runtime.sync()?;
            spent += completing.elapsed();
        }
        // Nothing comes back; this only keeps the next from waiting.
        Operation::Store => operation.complete(runtime, 1..2)?,
    }
    Ok(spent.as_nanos() as f64 / f64::from(FEW))
}

fn gap(
    runtime: &mut Runtime,
    operation: Operation,
    each: u32,
    procs: std::ops::Range<u32>,
) -> Result<Duration, Error> {
    let begun = Instant::now();
    let mut left = each;
    while left > 0 {
        for proc in procs.clone().take(left as usize) {
            operation.begin(runtime, proc)?;
            left -= 1;
        }
    }
    operation.complete(runtime, procs)?;
    Ok(begun.elapsed())
}

pub(super) fn measure_three(
    runtime: &mut Runtime,
    depth: Depth,
    figures: &mut Figures,
) -> Result<(), Error> {
    let each = count(depth);
    for (operation, name) in OPERATIONS {
        let time = served(runtime, |runtime| {
            batches(each, || gap(runtime, operation, each, 1..3))
        })?;
        if let Some(time) = time {
            figures.times_ns.insert(format!("gap to two: {name}"), time);
        }
    }
    Ok(())
}
