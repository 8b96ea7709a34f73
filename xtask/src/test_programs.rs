//! Runs the test programs of the workspace side by side, as many as there are processors:
//! `cargo test` runs one after the other, while all processors but one have nothing to do.
//!
//! `xtask/data/tests.toml` names programs that measure, which run while no other does, and those
//! that take longest, which start first. What a program printed is shown if it failed; lines with
//! `SKIPPED` always are. A program that does not end within its time is killed, and has failed.
//!
//! `--beside python` runs `make python` as one of the programs: it waits for its processes most of
//! the time.
//!
//! Each line says how long a program took, and how many seconds of a processor it and its processes
//! used: much of the one and little of the other is a program that waits.
//!
//! A program that failed beside others runs once more by itself, if no more than two failed: some
//! tests measure time, and a loaded machine has none to spare. If it passes then, the run passes,
//! and says that the program failed before.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::Deserialize;
use serde_json::Value;

pub(crate) const USAGE: &str = "[--beside MAKE-TARGET] [CARGO TEST OPTIONS]";

const SETTINGS: &str = "xtask/data/tests.toml";
const LOGS: &str = "target/tests";
/// How long a program may take.
const TIME_MAX: Duration = Duration::from_secs(1_800);
/// Begins the name of what the Makefile makes.
const MAKE: &str = "make ";
const LOOK: Duration = Duration::from_millis(20);
/// Most programs that are run a second time.
const REPEATED_MAX: usize = 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// They run while no other does.
    alone: Vec<String>,
    /// They start first, in this order.
    first: Vec<String>,
}

/// A program of tests.
struct Program {
    name: String,
    command: Vec<String>,
    directory: PathBuf,
    log: PathBuf,
}

/// A program that runs.
struct Running {
    program: Program,
    child: Child,
    start: Instant,
}

/// A program that ran.
struct Ended {
    program: Program,
    took: Duration,
    /// Of a processor, by it and the processes for which it waited.
    used: Duration,
    /// None if it passed.
    fault: Option<String>,
}

/// Whether all passed.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<bool> {
    let text = std::fs::read_to_string(root.join(SETTINGS)).context(SETTINGS)?;
    let settings: Settings = toml::from_str(&text).context(SETTINGS)?;
    let logs = root.join(LOGS);
    std::fs::create_dir_all(&logs).with_context(|| logs.display().to_string())?;
    let (beside, options) = match options {
        ["--beside", target, options @ ..] => (Some(*target), options),
        _ => (None, options),
    };
    let mut programs = build(root, &logs, options)?;
    programs.extend(beside.map(|target| made(root, &logs, target)));
    if options.is_empty() {
        programs.push(documents(root, &logs));
        let names: Vec<&str> = programs.iter().map(|it| it.name.as_str()).collect();
        for name in settings.alone.iter().chain(&settings.first) {
            ensure!(
                names.contains(&name.as_str()) || name.starts_with(MAKE),
                "{SETTINGS} names {name}, which is no program of tests"
            );
        }
    }
    let place = |program: &Program| {
        let at = settings.first.iter().position(|name| *name == program.name);
        at.unwrap_or(usize::MAX)
    };
    programs.sort_by_key(place);
    let (alone, beside): (Vec<_>, Vec<_>) = programs
        .into_iter()
        .partition(|program| settings.alone.contains(&program.name));
    let start = Instant::now();
    let count = alone.len() + beside.len();
    let bar = bar(count);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut ended = run_beside(beside, jobs, &bar)?;
    ended.extend(run_beside(alone, 1, &bar)?);
    bar.finish_and_clear();
    report(ended, start.elapsed())
}

/// Builds the programs and lists them.
fn build(root: &Path, logs: &Path, options: &[&str]) -> Result<Vec<Program>> {
    let scope: &[&str] = if options.is_empty() {
        &["--workspace"]
    } else {
        options
    };
    let mut command = Command::new(cargo());
    let output = without_cargo(&mut command)
        .args(["test", "--no-run", "--locked"])
        .arg("--message-format=json-render-diagnostics")
        .args(scope)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    ensure!(output.status.success(), "the tests do not build");
    let mut programs = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line).context("what cargo says")?;
        let Some(path) = message["executable"].as_str() else {
            continue;
        };
        if message["profile"]["test"] != true {
            continue;
        }
        let manifest = message["manifest_path"].as_str().context("a manifest")?;
        let directory = Path::new(manifest).parent().context("it lies somewhere")?;
        let within = directory.strip_prefix(root).unwrap_or(directory);
        let target = message["target"]["name"].as_str().context("a name")?;
        let kind = message["target"]["kind"][0].as_str().unwrap_or_default();
        let mut name = format!("{} {target}", within.display());
        if kind == "bin" {
            name.push_str(" (program)");
        }
        programs.push(Program {
            log: log_of(logs, &name),
            name,
            command: vec![path.to_owned(), "--show-output".to_owned()],
            directory: directory.to_owned(),
        });
    }
    if programs.is_empty() {
        bail!("cargo built no tests");
    }
    Ok(programs)
}

/// The examples in the documentation, which cargo compiles and runs.
fn documents(root: &Path, logs: &Path) -> Program {
    let name = "documentation";
    let command = [
        "cargo",
        "test",
        "--workspace",
        "--locked",
        "--doc",
        "--quiet",
    ];
    Program {
        name: name.to_owned(),
        command: command.map(str::to_owned).to_vec(),
        directory: root.to_owned(),
        log: log_of(logs, name),
    }
}

/// A target of the Makefile.
fn made(root: &Path, logs: &Path, target: &str) -> Program {
    let name = format!("{MAKE}{target}");
    Program {
        command: ["make", "--no-print-directory", target]
            .map(str::to_owned)
            .to_vec(),
        directory: root.to_owned(),
        log: log_of(logs, &name),
        name,
    }
}

fn log_of(logs: &Path, name: &str) -> PathBuf {
    logs.join(name.replace(['/', ' '], "-"))
        .with_extension("log")
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Without what cargo tells its children of the package that it runs. A build script that asks for
/// these (that of `ring`) runs again when they change, and with it is built anew all that stands on
/// it: by each program of tests that builds something.
fn without_cargo(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let is_of_package = name.to_str().is_some_and(|name| {
            ["CARGO_PKG_", "CARGO_MANIFEST_"]
                .iter()
                .any(|start| name.starts_with(start))
        });
        if is_of_package || name == "OUT_DIR" {
            command.env_remove(name);
        }
    }
    command
}

/// Runs them, so many at once.
fn run_beside(programs: Vec<Program>, jobs: usize, bar: &ProgressBar) -> Result<Vec<Ended>> {
    let mut waiting = VecDeque::from(programs);
    let mut running: Vec<Running> = Vec::new();
    let mut ended = Vec::new();
    loop {
        while running.len() < jobs
            && let Some(program) = waiting.pop_front()
        {
            running.push(start(program)?);
        }
        if running.is_empty() {
            return Ok(ended);
        }
        let mut at = 0;
        while at < running.len() {
            match fault_of(&mut running[at])? {
                None => at += 1,
                Some((used, fault)) => {
                    let Running { program, start, .. } = running.swap_remove(at);
                    let one = Ended {
                        program,
                        took: start.elapsed(),
                        used,
                        fault,
                    };
                    bar.suspend(|| one.show())?;
                    bar.inc(1);
                    ended.push(one);
                }
            }
        }
        std::thread::sleep(LOOK);
    }
}

fn start(program: Program) -> Result<Running> {
    let log = File::create(&program.log).with_context(|| program.log.display().to_string())?;
    let mut command = match program.command[0].as_str() {
        "cargo" => Command::new(cargo()),
        path => Command::new(path),
    };
    without_cargo(&mut command)
        .args(&program.command[1..])
        .current_dir(&program.directory)
        .env("CARGO", cargo())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    if program.name.starts_with(MAKE) {
        // Cargo has its tests find libraries that may be of an earlier build.
        command.env_remove("LD_LIBRARY_PATH");
    }
    let child = command
        .spawn()
        .with_context(|| format!("starting {}", program.name))?;
    Ok(Running {
        program,
        child,
        start: Instant::now(),
    })
}

/// None while it runs, then what it used of a processor, and its fault if it has one.
fn fault_of(running: &mut Running) -> Result<Option<(Duration, Option<String>)>> {
    let id = Pid::from_child(&running.child);
    // What it used can be read until it is waited for.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if waitid(WaitId::Pid(id), options)?.is_some() {
        let used = used(id).unwrap_or_default();
        let status = running.child.wait()?;
        let fault = (!status.success()).then(|| status.to_string());
        return Ok(Some((used, fault)));
    }
    if running.start.elapsed() < TIME_MAX {
        return Ok(None);
    }
    let used = used(id).unwrap_or_default();
    // Gone already is as good.
    let _ = kill_process_group(id, Signal::KILL);
    running.child.wait()?;
    let fault = format!("it did not end within {} s", TIME_MAX.as_secs());
    Ok(Some((used, Some(fault))))
}

/// What a process and the children for which it waited used of a processor: fields 14 to 17 of its
/// state.
fn used(id: Pid) -> Option<Duration> {
    let state = std::fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).ok()?;
    // The name, in parentheses, may have spaces.
    let fields = state.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: u64 = fields.take(4).filter_map(|it| it.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(
        ticks * 1_000 / clock_ticks_per_second(),
    ))
}

impl Ended {
    /// One line, and what it skipped; if it failed, all that it printed.
    fn show(&self) -> Result<()> {
        let said = std::fs::read(&self.program.log)
            .with_context(|| self.program.log.display().to_string())?;
        let said = String::from_utf8_lossy(&said);
        let (took, used) = (self.took.as_secs_f64(), self.used.as_secs_f64());
        match &self.fault {
            None => println!("ok     {took:7.1} s {used:7.1} s  {}", self.program.name),
            Some(fault) => {
                println!(
                    "FAILED {took:7.1} s {used:7.1} s  {}: {fault}",
                    self.program.name
                );
                println!("{said}");
            }
        }
        for line in said.lines().filter(|line| line.contains("SKIPPED")) {
            println!("                  {}", line.trim());
        }
        Ok(())
    }
}

fn bar(programs: usize) -> ProgressBar {
    let bar = ProgressBar::new(programs as u64).with_message("test programs");
    match ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Says how it went; runs again by themselves the few that failed.
fn report(ended: Vec<Ended>, took: Duration) -> Result<bool> {
    let count = ended.len();
    let mut slowest: Vec<(Duration, Duration, String)> = ended
        .iter()
        .map(|one| (one.took, one.used, one.program.name.clone()))
        .collect();
    slowest.sort();
    println!("the slowest, and what they used of a processor:");
    for (took, used, name) in slowest.iter().rev().take(15) {
        let (took, used) = (took.as_secs_f64(), used.as_secs_f64());
        println!("       {took:7.1} s {used:7.1} s  {name}");
    }
    let used: Duration = ended.iter().map(|one| one.used).sum();
    let failed: Vec<Ended> = ended
        .into_iter()
        .filter(|one| one.fault.is_some())
        .collect();
    let names: Vec<String> = failed.iter().map(|one| one.program.name.clone()).collect();
    let summary = format!(
        "{count} test programs in {} s, {} s of a processor",
        took.as_secs(),
        used.as_secs()
    );
    if failed.is_empty() {
        println!("{summary}: all passed");
        return Ok(true);
    }
    println!("{summary}: {} failed: {}", names.len(), names.join(", "));
    if names.len() > REPEATED_MAX {
        return Ok(false);
    }
    println!("once more, each by itself:");
    let again = failed.into_iter().map(|one| one.program).collect();
    let again = run_beside(again, 1, &ProgressBar::hidden())?;
    let passes = again.iter().all(|one| one.fault.is_none());
    if passes {
        println!(
            "FAILED BESIDE OTHERS, passed by itself: {}. The run passes; the test is to be mended.",
            names.join(", ")
        );
    }
    Ok(passes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that is a shell script.
    fn script(name: &str, text: &str) -> Program {
        let directory = std::env::temp_dir();
        let command = ["/bin/sh", "-c", text];
        Program {
            name: name.to_owned(),
            command: command.map(str::to_owned).to_vec(),
            log: log_of(&directory, &format!("xtask-{}-{name}", std::process::id())),
            directory,
        }
    }

    #[test]
    fn what_a_program_used_of_a_processor_is_known() {
        let busy = script("busy", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done");
        let idle = script("idle", "sleep 0.4");
        let logs = [busy.log.clone(), idle.log.clone()];
        let mut ended = run_beside(vec![busy, idle], 2, &ProgressBar::hidden()).unwrap();
        for log in logs {
            std::fs::remove_file(log).unwrap();
        }
        ended.sort_by_key(|one| one.program.name.clone());
        assert!(!ended[0].used.is_zero());
        assert!(ended[1].used < Duration::from_millis(200) && ended[1].took > ended[1].used);
    }

    fn faults(programs: Vec<Program>, jobs: usize) -> Vec<(String, Option<String>)> {
        let logs: Vec<PathBuf> = programs.iter().map(|it| it.log.clone()).collect();
        let ended = run_beside(programs, jobs, &ProgressBar::hidden()).unwrap();
        for log in logs {
            std::fs::remove_file(log).unwrap();
        }
        let mut faults: Vec<_> = ended
            .into_iter()
            .map(|one| (one.program.name, one.fault))
            .collect();
        faults.sort();
        faults
    }

    #[test]
    fn a_program_that_fails_is_named_and_others_pass() {
        let ended = faults(vec![script("bad", "exit 3"), script("good", "true")], 2);
        assert_eq!(ended[1], ("good".to_owned(), None));
        assert_eq!(ended[0].0, "bad");
        assert!(
            ended[0].1.as_ref().is_some_and(|it| it.contains('3')),
            "{ended:?}"
        );
    }

    /// Each waits until the other is there: one after the other they would not end.
    #[test]
    fn programs_run_side_by_side() {
        let meet = std::env::temp_dir().join(format!("xtask-meet-{}", std::process::id()));
        std::fs::create_dir_all(&meet).unwrap();
        let meets = |own: &str, other: &str| {
            let (own, other) = (meet.join(own), meet.join(other));
            format!(
                "touch {}; n=0; while [ ! -e {} ] && [ $n -lt 3000 ]; do n=$((n+1)); sleep 0.01; done; [ -e {} ]",
                own.display(),
                other.display(),
                other.display()
            )
        };
        let both = vec![
            script("one", &meets("a", "b")),
            script("two", &meets("b", "a")),
        ];
        let ended = faults(both, 2);
        std::fs::remove_dir_all(&meet).unwrap();
        assert!(ended.iter().all(|(_, fault)| fault.is_none()), "{ended:?}");
    }

    fn passes(text: &str) -> bool {
        let program = script("repeated", text);
        let log = program.log.clone();
        let ended = run_beside(vec![program], 1, &ProgressBar::hidden()).unwrap();
        let passes = report(ended, Duration::ZERO).unwrap();
        std::fs::remove_file(log).unwrap();
        passes
    }

    #[test]
    fn a_program_that_fails_twice_fails_the_run() {
        assert!(!passes("exit 1"));
        let mark = std::env::temp_dir().join(format!("xtask-mark-{}", std::process::id()));
        let once = format!("[ -e {0} ] || {{ touch {0}; exit 1; }}", mark.display());
        assert!(passes(&once));
        std::fs::remove_file(mark).unwrap();
    }
}
