//! Whether the figures of a run may replace those that are committed: only of code that has a
//! commit, and of a machine that does nothing else.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// How long the machine is watched before, and how much of it others may use.
const WATCHED: Duration = Duration::from_secs(2);
const BUSY_MAX: f64 = 0.05;
/// What a run writes is no change of the code.
const WRITTEN: [&str; 2] = [":!lab/compare/results", ":!docs/comparison.md"];

const INSTEAD: &str = "or keep the figures elsewhere with --output DIR";

/// Refuses to publish what would not say of which code it is, or what else the machine did.
pub(crate) fn permit(checkout: &Path) -> Result<()> {
    let changes = changes(checkout)?;
    ensure!(
        changes.is_empty(),
        "the tree differs from its commit, so the figures would be of no commit: commit or stash, {INSTEAD}:\n{changes}"
    );
    let before = Used::now()?;
    std::thread::sleep(WATCHED);
    let busy = Used::now()?.since(&before);
    ensure!(
        busy <= BUSY_MAX,
        "{:.0} % of the processors are in use by others: stop what runs, {INSTEAD}",
        100.0 * busy
    );
    Ok(())
}

/// The commit that is checked out, and whether the tree differs from it; nothing where git does not
/// know.
pub(crate) fn commit(checkout: &Path) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(checkout)
        .args(["rev-parse", "--short=9", "HEAD"])
        .output()
        .ok()?;
    let commit = String::from_utf8(output.stdout).ok()?;
    let changes = changes(checkout).ok()?;
    let changed = if changes.is_empty() { "" } else { ", changed" };
    (output.status.success()).then(|| format!("{}{changed}", commit.trim()))
}

/// Files that differ from the commit, but for what a run writes.
fn changes(checkout: &Path) -> Result<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(checkout)
        .args(["status", "--porcelain", "--", ":/"])
        .args(WRITTEN.map(|path| path.replacen(":!", ":(top,exclude)", 1)))
        .output()
        .context("starting git, which knows the commit")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "git does not know the commit ({}): publish from a checkout, {INSTEAD}",
        said.trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Time of all processors since they started, in the kernel's ticks.
struct Used {
    idle: u64,
    all: u64,
}

impl Used {
    fn now() -> Result<Self> {
        let told = std::fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
        Self::told_by(&told).context("/proc/stat does not tell what the processors do")
    }

    /// By the first line: user, nice, system, idle, waiting for a disk, interrupts.
    fn told_by(told: &str) -> Option<Self> {
        let ticks = told.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = ticks
            .split_whitespace()
            .map_while(|tick| tick.parse().ok())
            .collect();
        let idle = ticks.get(3)? + ticks.get(4)?;
        Some(Self {
            idle,
            all: ticks.iter().take(8).sum(),
        })
    }

    /// The share of the time since then that was not idle.
    fn since(&self, before: &Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        let idle = self.idle.saturating_sub(before.idle);
        1.0 - idle as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_idle_is_busy() {
        let used = |line: &str| Used::told_by(line).expect("a line of the kernel's");
        let before = used("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3\n");
        let busy = used("cpu  190 0 60 890 60 0 0 0 0 0\n").since(&before);
        assert!((busy - 0.5).abs() < 1e-9, "{busy}");
        assert_eq!(
            used("cpu  100 0 50 1000 50 0 0 0 0 0\n").since(&before),
            0.0
        );
        assert!(Used::told_by("intr 5\n").is_none());
    }

    #[test]
    fn a_changed_file_is_a_change_but_a_result_is_none() {
        let directory =
            std::env::temp_dir().join(format!("hamlyn-publication-{}", std::process::id()));
        let git = |arguments: &[&str]| {
            let output = Command::new("git")
                .arg("-C")
                .arg(&directory)
                .args([
                    "-c",
                    "user.name=a",
                    "-c",
                    "user.email=a@b",
                    "-c",
                    "commit.gpgsign=false",
                ])
                .args(arguments)
                .output()
                .expect("git starts");
            assert!(output.status.success(), "{output:?}");
        };
        std::fs::create_dir_all(directory.join("lab/compare/results")).expect("a directory");
        assert!(changes(&directory).is_err());
        git(&["init", "-q"]);
        std::fs::write(directory.join("code"), "one").expect("a file");
        git(&["add", "code"]);
        git(&["commit", "-q", "-m", "one"]);
        std::fs::write(directory.join("lab/compare/results/table.md"), "new").expect("a file");
        // From wherever in the checkout.
        assert_eq!(
            changes(&directory.join("lab/compare")).expect("a commit"),
            ""
        );
        std::fs::write(directory.join("code"), "two").expect("a file");
        assert!(
            changes(&directory.join("lab/compare"))
                .expect("a commit")
                .contains("code")
        );
        std::fs::remove_dir_all(&directory).expect("ours to remove");
    }
}
