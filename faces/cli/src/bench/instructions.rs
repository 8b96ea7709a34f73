//! Instructions per message, the library included: counted by callgrind, of this very program.
//!
//! They are those that the calling thread executes in user mode, from the call of the library to its return.
//! A count does not depend on the load of the machine, so it can be compared with that of yesterday.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::one_thread::{BATCH, Counted, Order};

/// Batches that are counted.
const BATCHES: u64 = 1000;

/// Instructions per message, by what is counted.
#[derive(Default)]
pub(crate) struct Instructions {
    pub(crate) per_send: BTreeMap<&'static str, f64>,
    pub(crate) per_receive: BTreeMap<&'static str, f64>,
}

/// Counts them, or says why it cannot.
///
/// # Errors
///
/// There is no `valgrind`, or this program has no symbols, or it fails under `valgrind`.
pub(crate) fn count() -> Result<Instructions> {
    let mut instructions = Instructions::default();
    for counted in Counted::ALL {
        let profile = profile_of(counted)?;
        let per_message = |function| -> Result<f64> {
            let total = inclusive(&profile, function)?;
            Ok(total as f64 / BATCHES as f64 / BATCH as f64)
        };
        let name = counted.name();
        instructions
            .per_send
            .insert(name, per_message("counted_sends")?);
        instructions
            .per_receive
            .insert(name, per_message("counted_receives")?);
    }
    Ok(instructions)
}

/// Runs the program that is counted; what callgrind wrote about it.
fn profile_of(counted: Counted) -> Result<String> {
    let program = std::env::current_exe().context("finding this program")?;
    let directory =
        std::env::temp_dir().join(format!("hamlyn-instructions-{}", std::process::id()));
    // Fails if there is one.
    std::fs::create_dir(&directory).with_context(|| {
        format!(
            "making {}: remove it if it is a leftover",
            directory.display()
        )
    })?;
    let profile = callgrind(&program, &directory.join("profile"), counted);
    // The next run learns of files that are left behind.
    let _ = std::fs::remove_dir_all(&directory);
    profile
}

fn callgrind(program: &Path, profile: &Path, counted: Counted) -> Result<String> {
    let mut child = Command::new("valgrind")
        // Threads take turns, or one that polls can keep its control thread waiting for seconds.
        .args([
            "--tool=callgrind",
            "--compress-strings=no",
            "--fair-sched=try",
        ])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(program)
        .args(["actor", "count"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting valgrind (Debian: apt-get install valgrind)")?;
    let mut order = serde_json::to_string(&Order {
        counted,
        batches: BATCHES,
    })?;
    order.push('\n');
    let told = child
        .stdin
        .take()
        .context("no standard input")?
        .write_all(order.as_bytes());
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} under valgrind failed: {}", counted.name(), said.trim());
    }
    told.context("telling it what to do")?;
    std::fs::read_to_string(profile).context("reading what callgrind wrote")
}

/// Instructions of all calls of the functions of that name, those of what they call included.
fn inclusive(profile: &str, function: &str) -> Result<u64> {
    let (mut is_called, mut calls, mut total) = (false, 0, 0);
    let mut lines = profile.lines();
    while let Some(line) = lines.next() {
        if let Some(called) = line.strip_prefix("cfn=") {
            is_called = called.contains(function);
        } else if let Some(count) = line.strip_prefix("calls=") {
            // A line of its own follows: where, and what it cost.
            let cost = lines.next().and_then(|line| line.split(' ').nth(1));
            if is_called {
                let count = count.split(' ').next().unwrap_or_default();
                calls += count.parse::<u64>().context("a count that is none")?;
                total += cost
                    .context("a call without a cost")?
                    .parse::<u64>()
                    .context("a cost that is no number")?;
            }
        }
    }
    ensure!(
        calls == BATCHES,
        "callgrind saw {calls} calls of {function} where {BATCHES} were made: is this program without symbols?"
    );
    Ok(total)
}

#[cfg(test)]
mod tests;
