//! Runs the mutants of the copy: first all programs with no mutant on, noting which mutants each
//! reaches, then each mutant in the programs that reach it, the quickest first, until one fails.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use std::os::unix::process::CommandExt as _;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::Serialize;

use super::build::Program;
use super::find::Mutant;
use super::{COPY, Options};

const SCENARIOS: &str = "sim mutant_scenarios";
const ON_VARIABLE: &str = "HAMLYN_MUTANT";
const REACHED_VARIABLE: &str = "HAMLYN_MUTANTS_REACHED";
const SEEDS_VARIABLE: &str = "HAMLYN_MUTANT_SEEDS";
const LOOK: Duration = Duration::from_millis(10);

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// By that program.
    Killed(String),
    /// By that program, which did not end.
    Hung(String),
    Lived,
    /// No program reaches it.
    Unreached,
}

impl Verdict {
    pub(super) fn is_killed(&self) -> bool {
        matches!(self, Verdict::Killed(_) | Verdict::Hung(_))
    }
}

#[derive(Clone, Serialize)]
pub(super) struct Outcome {
    pub(super) number: usize,
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) function: String,
    pub(super) change: String,
    pub(super) tests: Verdict,
    pub(super) scenarios: Verdict,
}

/// A program that passes with no mutant on.
struct Runnable {
    program: Program,
    takes: Duration,
    reaches: BTreeSet<usize>,
}

#[derive(PartialEq, Eq)]
enum End {
    Passed,
    Failed,
    Hung,
}

pub(super) fn run(
    root: &Path,
    options: &Options,
    sample: &[&Mutant],
    programs: Vec<Program>,
) -> Result<Vec<Outcome>> {
    let copy = root.join(COPY);
    let mut runnable = Vec::new();
    let bar = bar(programs.len(), "programs with no mutant on");
    for program in programs {
        bar.set_message(program.name.clone());
        let (name, reached) = (program.name.clone(), copy.join("target/reached"));
        match reach(program, &reached, options)? {
            Some(found) => runnable.push(found),
            None => {
                bar.suspend(|| eprintln!("mutants: {name} is left out: fails or takes too long"))
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    runnable.sort_by_key(|program| program.takes);
    for program in &runnable {
        let (takes, reaches) = (program.takes.as_secs_f64(), program.reaches.len());
        eprintln!(
            "    {:32} {takes:6.1} s, reaches {reaches}",
            program.program.name
        );
    }
    let (scenarios, tests): (Vec<_>, Vec<_>) = runnable
        .into_iter()
        .partition(|one| one.program.name == SCENARIOS);
    if scenarios.is_empty() {
        bail!("the scenarios fail with no mutant on");
    }
    // As they are found, for whoever ends this early.
    let log = std::fs::File::create(copy.join("target/outcomes.jsonl"))?;
    let outcomes = Mutex::new((Vec::new(), log));
    let (next, error) = (AtomicUsize::new(0), Mutex::new(None));
    let bar = self::bar(sample.len(), "mutants");
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Relaxed);
            let Some(mutant) = sample.get(number) else {
                return Ok(());
            };
            bar.inc(1);
            if options
                .only
                .as_ref()
                .is_some_and(|only| !only.contains(&number))
            {
                continue;
            }
            let outcome = Outcome {
                number,
                file: mutant.file.clone(),
                line: mutant.line,
                function: mutant.function.clone(),
                change: mutant.change.clone(),
                tests: judge(number, &tests, options)?,
                scenarios: judge(number, &scenarios, options)?,
            };
            let mut outcomes = outcomes.lock().expect("nobody panics with it");
            writeln!(outcomes.1, "{}", serde_json::to_string(&outcome)?)?;
            outcomes.0.push(outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                if let Err(found) = work() {
                    *error.lock().expect("nobody panics with it") = Some(found);
                }
            });
        }
    });
    bar.finish_and_clear();
    if let Some(error) = error.into_inner().expect("nobody panics with it") {
        return Err(error);
    }
    let mut outcomes = outcomes.into_inner().expect("nobody panics with it").0;
    outcomes.sort_by_key(|outcome| outcome.number);
    Ok(outcomes)
}

fn bar(length: usize, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} {eta} {msg}");
    let bar = ProgressBar::new(length as u64);
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.with_prefix(what)
}

/// Runs a program with no mutant on. None, if it does not pass.
fn reach(program: Program, reached: &Path, options: &Options) -> Result<Option<Runnable>> {
    let _ = std::fs::remove_file(reached);
    let from = Instant::now();
    let mut command = command(&program, options);
    command.env(REACHED_VARIABLE, reached);
    let end = end(&mut command, options.longest)?;
    let takes = from.elapsed();
    let text = std::fs::read_to_string(reached).unwrap_or_default();
    let reaches = text.lines().map(str::parse).collect::<Result<_, _>>();
    let reaches = reaches.context("reading which mutants are reached")?;
    Ok((end == End::Passed).then_some(Runnable {
        program,
        takes,
        reaches,
    }))
}

fn judge(number: usize, programs: &[Runnable], options: &Options) -> Result<Verdict> {
    let mut verdict = Verdict::Unreached;
    for program in programs
        .iter()
        .filter(|program| program.reaches.contains(&number))
    {
        verdict = Verdict::Lived;
        let mut command = command(&program.program, options);
        command.env(ON_VARIABLE, number.to_string());
        let name = program.program.name.clone();
        let limit = program.takes * 4 + Duration::from_secs(15);
        let mut found = end(&mut command, limit)?;
        if found == End::Hung {
            // Other work may have kept the processors busy.
            found = end(&mut command, limit * 4)?;
        }
        match found {
            End::Passed => {}
            End::Failed => return Ok(Verdict::Killed(name)),
            End::Hung => return Ok(Verdict::Hung(name)),
        }
    }
    Ok(verdict)
}

/// A program of tests in a group of its own. A mutant that takes all memory is refused it.
fn command(program: &Program, options: &Options) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -v 16000000; ulimit -c 0; exec \"$0\" -q"])
        .arg(&program.path)
        .current_dir(&program.directory)
        .env("CARGO_MANIFEST_DIR", &program.directory)
        .env("PROPTEST_FAILURE_PERSISTENCE", "off")
        .env(SEEDS_VARIABLE, options.scenarios.to_string())
        .env_remove(ON_VARIABLE)
        .env_remove(REACHED_VARIABLE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    command
}

/// Waits for a program for so long, and ends all of its group: a mutant may leave processes behind.
fn end(command: &mut Command, longest: Duration) -> Result<End> {
    let mut child = command.spawn().context("running a test program")?;
    let group = Pid::from_child(&child);
    let deadline = Instant::now() + longest;
    let mut has_ended = false;
    while !has_ended && Instant::now() < deadline {
        std::thread::sleep(LOOK);
        // Not taken yet: its identifier, and so its group's, stays its own until the group is
        // ended.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        has_ended = waitid(WaitId::Pid(group), options)?.is_some();
    }
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait()?;
    Ok(match (has_ended, status.success()) {
        (true, true) => End::Passed,
        (true, false) => End::Failed,
        (false, _) => End::Hung,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOREVER: Duration = Duration::from_secs(1_000_000);

    #[test]
    fn a_program_passes_fails_or_hangs() {
        let of = |script: &str, longest| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).process_group(0);
            end(&mut command, longest).expect("it runs")
        };
        assert!(of("exit 0", FOREVER) == End::Passed);
        assert!(of("exit 3", FOREVER) == End::Failed);
        assert!(of("kill -KILL $$", FOREVER) == End::Failed);
        assert!(of("cat /dev/zero >/dev/null", Duration::ZERO) == End::Hung);
    }
}
