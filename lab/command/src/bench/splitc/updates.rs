//! Updates of random words of a table that lies over all processors (random access, GUPS), by
//! atomic changes; beside what the locked instruction alone does at the same places, where memory
//! is reached directly.
//!
//! The numbers are those of the HPC Challenge: each is the one before, shifted, and combined with a
//! polynomial. Updating a second time with the same numbers must leave the table as it was.

use std::time::Instant;

use hamlyn::DirectWindow;
use hamlyn::one_sided::{Atomic, Change, Width};
use hamlyn_splitc::{Error, Placement};
use serde::{Deserialize, Serialize};

use super::processor::{Runtime, TARGET, at};
use super::{Depth, Figures, median};

/// Bytes of the whole table: what fits a second-level cache, what fits a third-level cache, and
/// more.
pub(super) const TABLES_BYTES: [u64; 3] = [64 << 10, 4 << 20, 64 << 20];
/// As many at most lie on one processor.
pub(super) const TABLE_BYTES_MAX: u64 = TABLES_BYTES[TABLES_BYTES.len() - 1];
/// The polynomial of the HPC Challenge.
const POLYNOMIAL: u64 = 7;
/// Rounds, in each of which every number is used once. An even number leaves the table as it was.
const ROUNDS: usize = 6;

/// Updates of a table by so many processors.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Updates {
    pub(crate) processors: u32,
    pub(crate) table_bytes: u64,
    /// Of all processors together.
    pub(crate) updates_per_s: f64,
    /// The same by the locked instruction alone; nothing where memory is not reached directly.
    pub(crate) plain_updates_per_s: Option<f64>,
    pub(crate) over_plain: Option<f64>,
}

impl Updates {
    pub(super) fn name(&self) -> String {
        let kib = self.table_bytes >> 10;
        match self.processors {
            1 => format!("1 processor, {kib} KiB"),
            many => format!("{many} processors, {kib} KiB"),
        }
    }
}

/// A figure of the largest table by number of processors.
pub(super) fn by_processors(
    updates: &[Updates],
    figure: impl Fn(&Updates) -> Option<f64>,
) -> Vec<(usize, f64)> {
    let largest = updates
        .iter()
        .filter(|it| it.table_bytes == TABLE_BYTES_MAX);
    largest
        .filter_map(|it| Some((it.processors as usize, figure(it)?)))
        .collect()
}

/// Random numbers, and which word each of them updates.
struct Numbers {
    number: u64,
    words: u64,
    procs: u32,
}

impl Numbers {
    fn new(runtime: &Runtime, table_bytes: u64) -> Self {
        Self {
            // Other numbers on each processor.
            number: 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(u64::from(runtime.proc()) + 1) | 1,
            words: table_bytes / 8,
            procs: runtime.procs(),
        }
    }

    /// The processor, the place in its part of the table, and the number.
    fn next(&mut self) -> (u32, u64, u64) {
        let carry = (self.number >> 63).wrapping_neg() & POLYNOMIAL;
        self.number = self.number << 1 ^ carry;
        // The words are as many as a power of two.
        let word = self.number & (self.words - 1);
        let procs = u64::from(self.procs);
        ((word % procs) as u32, word / procs * 8, self.number)
    }
}

fn exclusive_or(operand: u64) -> Atomic {
    Atomic::new(Change::Xor, Width::Bits64, operand)
}

pub(super) fn measure(
    runtime: &mut Runtime,
    depth: Depth,
    figures: &mut Figures,
) -> Result<(), Error> {
    let is_direct = runtime.job().placement == Placement::Direct;
    let count = match is_direct {
        true => depth.pick(400_000, 40_000, 4_000),
        false => depth.pick(4_000, 400, 40),
    };
    for table_bytes in TABLES_BYTES {
        let mut windows = Vec::new();
        for proc in 0..runtime.procs() {
            if let Some(memory) = runtime.direct_memory(proc)? {
                windows.extend(memory.segments.into_iter().map(|(_, window)| window));
            }
        }
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(timed(runtime, count, |runtime| {
                let mut numbers = Numbers::new(runtime, table_bytes);
                for _ in 0..count {
                    let (proc, place, number) = numbers.next();
                    runtime.change(at(proc, TARGET + place), exclusive_or(number))?;
                }
                Ok(())
            })?);
            if is_direct {
                plain.push(timed(runtime, count, |runtime| {
                    update_directly(Numbers::new(runtime, table_bytes), &windows, count)
                })?);
            }
        }
        if !runtime.program().is_as_it_was() {
            return Err(Error::BadOperation {
                what: "an update of the table was lost, or made twice",
            });
        }
        let updates_per_s = median(ours);
        let plain_updates_per_s = is_direct.then(|| median(plain));
        figures.updates.push(Updates {
            processors: runtime.procs(),
            table_bytes,
            updates_per_s,
            plain_updates_per_s,
            over_plain: plain_updates_per_s.map(|plain| updates_per_s / plain),
        });
    }
    Ok(())
}

/// Updates a second of all processors, from the moment at which all begin until all are done.
fn timed(
    runtime: &mut Runtime,
    count: u64,
    update: impl FnOnce(&mut Runtime) -> Result<(), Error>,
) -> Result<f64, Error> {
    runtime.barrier()?;
    let begun = Instant::now();
    update(runtime)?;
    runtime.barrier()?;
    Ok((count * u64::from(runtime.procs())) as f64 / begun.elapsed().as_secs_f64())
}

/// The windows are those of the processors, in order.
fn update_directly(
    mut numbers: Numbers,
    windows: &[DirectWindow],
    count: u64,
) -> Result<(), Error> {
    for _ in 0..count {
        let (proc, place, number) = numbers.next();
        let offset = TARGET - super::processor::START + place;
        let changed = windows[proc as usize].change(offset, &exclusive_or(number));
        changed.map_err(|_| Error::BadOperation {
            what: "a place of the table lies outside of the memory",
        })?;
    }
    Ok(())
}
