//! Instructions per message, the library included: counted by callgrind.
//!
//! They are those that the calling thread executes in user mode, from the call of the library to
//! its return. A count does not depend on the load of the machine, so it can be compared with that
//! of yesterday.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::program::{BATCH, Counted, Order};

/// Batches that are counted.
pub const BATCHES: u64 = 1000;

/// Instructions per message, by what is counted.
#[derive(Default)]
pub struct Instructions {
    /// Of a send.
    pub per_send: BTreeMap<&'static str, f64>,
    /// Of a receive.
    pub per_receive: BTreeMap<&'static str, f64>,
}

impl Instructions {
    /// A line for each: what it is of, its name, and the count.
    pub fn lines(&self) -> String {
        let all = [("send", &self.per_send), ("receive", &self.per_receive)];
        let lines = all.into_iter().flat_map(|(what, counts)| {
            let line = move |(name, count)| format!("{what} {name} {count}\n");
            counts.iter().map(line)
        });
        lines.collect()
    }
}

/// Counts them of a program which, with these arguments, is [`crate::program::run`]; or says why it
/// cannot.
///
/// # Errors
///
/// There is no `valgrind`, or the program has no symbols, or it fails under `valgrind`.
pub fn count(program: &Path, arguments: &[&str]) -> Result<Instructions> {
    let mut instructions = Instructions::default();
    for counted in Counted::ALL {
        let (send, receive) = per_message(&profile_of(program, arguments, counted)?)?;
        instructions.per_send.insert(counted.name(), send);
        instructions.per_receive.insert(counted.name(), receive);
    }
    Ok(instructions)
}

/// Instructions per message, of its send and of its receive.
pub(crate) fn per_message(profile: &str) -> Result<(f64, f64)> {
    let of = |function| -> Result<f64> {
        Ok(inclusive(profile, function)? as f64 / BATCHES as f64 / BATCH as f64)
    };
    Ok((of("counted_sends")?, of("counted_receives")?))
}

/// Runs the program, told what to count; what callgrind wrote about it.
fn profile_of(program: &Path, arguments: &[&str], counted: Counted) -> Result<String> {
    let batches = BATCHES;
    let order = Order { counted, batches };
    profile(counted.name(), program, arguments, &order.line())
}

/// Runs a program that calls what is counted in [`BATCHES`] batches of [`BATCH`]; what callgrind
/// wrote about it.
pub(crate) fn profile(
    name: &str,
    program: &Path,
    arguments: &[&str],
    input: &str,
) -> Result<String> {
    let directory =
        std::env::temp_dir().join(format!("hamlyn-instructions-{}", std::process::id()));
    // Fails if there is one.
    std::fs::create_dir(&directory).with_context(|| {
        format!(
            "making {}: remove it if it is a leftover",
            directory.display()
        )
    })?;
    let file = directory.join("profile");
    let profile = callgrind(name, program, arguments, input, &file);
    // The next run learns of files that are left behind.
    let _ = std::fs::remove_dir_all(&directory);
    profile
}

fn callgrind(
    name: &str,
    program: &Path,
    arguments: &[&str],
    input: &str,
    profile: &Path,
) -> Result<String> {
    let mut child = Command::new("valgrind")
        // Threads take turns, or one that polls can keep its control thread waiting for seconds.
        .args([
            "--tool=callgrind",
            "--compress-strings=no",
            "--fair-sched=try",
        ])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting valgrind (Debian: apt-get install valgrind)")?;
    let told = child
        .stdin
        .take()
        .context("no standard input")?
        .write_all(input.as_bytes());
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{name} under valgrind failed: {}", said.trim());
    }
    // A program that is told nothing has perhaps ended before.
    if !input.is_empty() {
        told.context("telling it what to do")?;
    }
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
