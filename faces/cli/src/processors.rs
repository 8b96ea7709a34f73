//! The processors that a command measures on, and the middle of its figures.

use anyhow::{Context, Result};
use rustix::thread::CpuSet;

/// The processors that this process may use.
///
/// # Errors
///
/// The kernel does not say.
pub fn allowed() -> Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None).context("asking for the processors")?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

/// Keeps this thread, and those that it starts from now on, on these processors.
///
/// # Errors
///
/// This process may not use one of them.
pub fn pin(processors: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for &processor in processors {
        set.set(processor);
    }
    rustix::thread::sched_setaffinity(None, &set)
        .with_context(|| format!("staying on the processors {processors:?}"))
}

/// The middle of some figures; not a number if there are none.
#[must_use]
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
