//! `hamlyn run --gang`: processes are stopped and go on by turns, and however a job ends, nothing
//! of it is left, stopped or not. Messages to processes that are stopped are tested with `hamlyn-lab
//! reproduce udm --live`.

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use support::{Room, hamlyn, text};

/// All that is waited for here happens within some quanta, but on a machine with much else to do.
const LONG: Duration = Duration::from_secs(60);
/// Prints its number, and then runs until it is told to end, which it says.
const ENDLESS: &str = "trap 'echo told; exit 5' TERM INT; echo $$; while :; do sleep 30; done";

#[test]
#[ignore = "a role of the other tests"]
fn child() {
    let quantum = Duration::from_millis(std::env::var("QUANTUM_MS").unwrap().parse().unwrap());
    let goes_on = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGCONT, Arc::clone(&goes_on)).unwrap();
    let (begun, mut before, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
    let mut stops = 0;
    while stops < 5 {
        let now = Instant::now();
        longest = longest.max(now - before);
        before = now;
        if goes_on.swap(false, Ordering::Relaxed) {
            stops += u32::from(longest >= quantum / 2);
            longest = Duration::ZERO;
        }
        assert!(begun.elapsed() < LONG, "{stops} stops, {longest:?}");
    }
}

/// Processes that compute see that they were stopped for most of a quantum, again and again.
#[test]
fn processes_see_themselves_stopped() {
    let own = std::env::current_exe().unwrap();
    let role = [own.to_str().unwrap(), "--exact", "child", "--ignored"];
    for gang in ["20ms", "20ms,skew=0.3,null"] {
        let run = ["run", "-n", "3", "--gang", gang, "--verbose"];
        let mut command = hamlyn("gang-clock", &[&run[..], &role].concat());
        let output = command.env("QUANTUM_MS", "20").output().unwrap();
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{}{errors}", text(&output.stdout));
        let with = if gang.contains("null") {
            "null"
        } else {
            "nothing"
        };
        assert!(
            errors.contains(&format!("took turns with {with}")),
            "{errors}"
        );
    }
}

/// A job whose processes run until they are told.
struct Job {
    launcher: Child,
    output: BufReader<ChildStdout>,
    processes: Vec<Pid>,
}

impl Job {
    fn start(test: &str, gang: &str, procs: usize) -> Self {
        let count = procs.to_string();
        let run = [
            "run", "-n", &count, "--gang", gang, "--label", "sh", "-c", ENDLESS,
        ];
        Self::start_by(hamlyn(test, &run), procs)
    }

    fn start_by(mut command: Command, procs: usize) -> Self {
        let mut launcher = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(launcher.stdout.take().unwrap());
        let mut lines = BTreeSet::new();
        while lines.len() < procs {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "the job ended");
            // [0] 4711
            lines.insert(line);
        }
        let pid = |line: &String| Pid::from_raw(line.split(' ').nth(1)?.trim().parse().ok()?);
        Self {
            launcher,
            output,
            processes: lines.iter().map(|line| pid(line).unwrap()).collect(),
        }
    }

    fn tell(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.launcher), signal).unwrap();
    }

    /// All that the launcher has started, and what that has started.
    fn family(&self) -> Vec<Pid> {
        let mut family = children(Pid::from_child(&self.launcher));
        let mut at = 0;
        while let Some(&process) = family.get(at) {
            family.extend(children(process));
            at += 1;
        }
        family
    }

    /// Processes of null, which are there at present.
    fn nulls(&self) -> Vec<Pid> {
        let mut started = children(Pid::from_child(&self.launcher));
        started.retain(|process| !self.processes.contains(process));
        started
    }

    /// Processes of null, one for each of the job: they are started after those.
    fn await_nulls(&self) -> Vec<Pid> {
        until("null", || self.nulls().len() == self.processes.len());
        self.nulls()
    }

    /// Its output, and its status.
    fn ends(&mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (rest, self.launcher.wait().unwrap().code())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

fn children(process: Pid) -> Vec<Pid> {
    let id = process.as_raw_nonzero();
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{id}/task")) else {
        return Vec::new();
    };
    let of_task = |task: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(task.ok()?.path().join("children")).ok()?;
        let numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
        Some(numbers.filter_map(Pid::from_raw).collect::<Vec<_>>())
    };
    tasks.filter_map(of_task).flatten().collect()
}

/// The fields of its state, from its letter on; nothing if it is gone.
fn fields(process: Pid) -> Option<String> {
    let id = process.as_raw_nonzero();
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.to_owned())
}

/// Its session.
fn session(process: Pid) -> Option<String> {
    Some(fields(process)?.split(' ').nth(3)?.to_owned())
}

/// The letter of its state; nothing if it is gone.
fn state(process: Pid) -> Option<char> {
    let letter = fields(process)?.chars().next()?;
    // A zombie whose new parent has not reaped it yet is as good as gone.
    (!matches!(letter, 'Z' | 'X')).then_some(letter)
}

fn is_stopped(process: Pid) -> bool {
    state(process) == Some('T')
}

/// Looks until that is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The part of looks at which two processes were not in the same state, up to a number of turns of
/// the first.
fn apart(one: Pid, other: Pid, turns: usize) -> f64 {
    let (mut looks, mut apart, mut seen) = (0, 0, 0);
    let mut was_stopped = is_stopped(one);
    until("turns", || {
        let is_now = is_stopped(one);
        looks += 1;
        apart += usize::from(is_now != is_stopped(other));
        seen += usize::from(is_now != was_stopped);
        was_stopped = is_now;
        seen >= turns
    });
    apart as f64 / looks as f64
}

/// Null runs while the process beside it is stopped, and the other way round.
#[test]
fn null_takes_turns_with_the_job() {
    let job = Job::start("gang-null", "20ms,null", 1);
    let nulls = job.await_nulls();
    assert!(apart(job.processes[0], nulls[0], 20) > 0.5);
    let without = Job::start("gang-no-null", "20ms", 2);
    assert_eq!(without.nulls(), []);
}

/// Processes that are out of step are stopped at different times.
#[test]
fn skew_is_between_processes() {
    let parts = ["50ms", "50ms,skew=0.5"].map(|gang| {
        let job = Job::start("gang-skew", gang, 2);
        apart(job.processes[0], job.processes[1], 20)
    });
    // Half of the time, and hardly ever.
    assert!(parts[1] > 0.25 && parts[0] < parts[1], "{parts:?}");
}

/// Those that are stopped go on to hear that they are to end, and null ends with them.
#[test]
fn signals_reach_those_that_are_stopped() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut job = Job::start("gang-signals", "200ms,skew=0.5,null", 2);
        job.await_nulls();
        let family = job.family();
        until("a stop", || job.processes.iter().any(|it| is_stopped(*it)));
        job.tell(signal);
        let (printed, code) = job.ends();
        assert_eq!(code, Some(status));
        for proc in ["[0] told", "[1] told"] {
            assert!(printed.contains(proc), "{printed}");
        }
        until("their end", || family.iter().all(|it| state(*it).is_none()));
    }
}

/// One that fails ends the other, which is stopped at that time in one case of the two; so does
/// one that is killed while it is stopped.
#[test]
fn the_end_of_one_ends_those_that_are_stopped() {
    for (rank, what, status) in [
        (0, "exit 3", 3),
        (1, "exit 3", 3),
        (0, "kill -9 $$", 137),
        (1, "kill -9 $$", 137),
    ] {
        let script = format!("if [ $HAMLYN_RANK = {rank} ]; then {what}; fi; sleep 1000 & wait");
        let gang = "400ms,skew=0.5,null";
        let run = ["run", "-n", "2", "--gang", gang, "sh", "-c", &script];
        let output = hamlyn("gang-fails", &run).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{errors}");
        assert!(errors.contains("the other process is ended"), "{errors}");
    }
    let mut job = Job::start("gang-killed-stopped", "200ms,skew=0.5,null", 2);
    job.await_nulls();
    let family = job.family();
    until("a stop", || is_stopped(job.processes[1]));
    kill_process(job.processes[1], Signal::KILL).unwrap();
    assert_eq!(job.ends().1, Some(137));
    until("their end", || family.iter().all(|it| state(*it).is_none()));
}

/// The launcher is killed: the kernel ends its processes, stopped or not, and null.
#[test]
fn nothing_is_left_when_the_launcher_is_killed() {
    let mut job = Job::start("gang-launcher", "200ms,skew=0.5,null", 2);
    let started = [job.processes.clone(), job.await_nulls()].concat();
    until("a stop", || is_stopped(job.processes[0]));
    // A stop that is still under way may come after the kernel has looked for stopped ones.
    let mut stopped = job.family();
    stopped.retain(|process| is_stopped(*process));
    job.launcher.kill().unwrap();
    job.launcher.wait().unwrap();
    until("their end", || {
        started.iter().all(|it| state(*it).is_none())
    });
    // Of what they had started, the kernel tells those that are stopped that they are orphans; they
    // are none if the first process of a container, which takes them in, is of the same session.
    if session(Pid::INIT) == session(rustix::process::getpid()) {
        return;
    }
    until("no stop", || !stopped.iter().any(|it| is_stopped(*it)));
}

/// A file that is removed when this is dropped.
struct Copied(PathBuf);

impl Drop for Copied {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A user who is not root stops processes of their own. Elsewhere than as root all tests show that.
#[test]
fn other_users_may() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // A place where that user may go. By a process of its own: a process that another test starts
    // meanwhile would have the file open to write, so that nobody could run it.
    let program = std::env::temp_dir().join(format!("hamlyn-gang-{}", std::process::id()));
    let program = Copied(program);
    let copied = Command::new("cp")
        .args([env!("CARGO_BIN_EXE_hamlyn").as_ref(), program.0.as_os_str()])
        .status();
    assert!(copied.unwrap().success());
    let mut command = Command::new(&program.0);
    let gang = "100ms,skew=0.5,null";
    command
        .args(["run", "-n", "2", "--gang", gang, "--label", "sh", "-c"])
        .arg(ENDLESS)
        .current_dir("/")
        .stdin(Stdio::null())
        .gid(65_534)
        .uid(65_534);
    let mut job = Job::start_by(command, 2);
    let mut not_yet = [job.processes.clone(), job.await_nulls()].concat();
    assert_eq!(not_yet.len(), 4);
    until("stops", || {
        not_yet.retain(|process| !is_stopped(*process));
        not_yet.is_empty()
    });
    job.tell(Signal::TERM);
    assert_eq!(job.ends().1, Some(143));
}

/// A process of null that somebody ends is told: the experiment is another one then.
#[test]
fn the_end_of_null_is_told() {
    let run = [
        "run",
        "-n",
        "1",
        "--gang",
        "20ms,null",
        "--label",
        "sh",
        "-c",
        ENDLESS,
    ];
    let mut command = hamlyn("gang-null-ends", &run);
    command.stderr(Stdio::piped());
    let mut job = Job::start_by(command, 1);
    let null = job.await_nulls()[0];
    kill_process(null, Signal::KILL).unwrap();
    until("its end", || state(null).is_none());
    job.tell(Signal::TERM);
    let mut errors = String::new();
    let mut said = job.launcher.stderr.take().unwrap();
    said.read_to_string(&mut errors).unwrap();
    assert_eq!(job.ends().1, Some(143));
    let says = "null beside process 0 ended before the job: signal: 9";
    assert!(errors.contains(says), "{errors}");
}

fn refused(output: &Output) -> String {
    assert!(!output.status.success() && output.stdout.is_empty());
    text(&output.stderr)
}

#[test]
fn a_schedule_that_cannot_be_is_refused() {
    for (gang, remedy) in [
        ("10", "say 10ms"),
        ("2s", "1ms to 500ms"),
        ("10ms,skew=1.5", "0 to 0.9"),
        ("10ms,zero", "skew=P, seed=N or null"),
    ] {
        let run = ["run", "-n", "2", "--gang", gang, "true"];
        let errors = refused(&hamlyn("gang-bad", &run).output().unwrap());
        assert!(errors.contains(remedy), "{errors}");
    }
    let errors = refused(
        &hamlyn("gang-verbose", &["run", "-n", "2", "--verbose", "true"])
            .output()
            .unwrap(),
    );
    assert!(errors.contains("--gang"), "{errors}");
    let room = Room::new("gang-hosts");
    let table = room.file("hosts");
    std::fs::write(&table, "far-1 127.0.0.1\nfar-2 127.0.0.1:9999\n").unwrap();
    let run = [
        "run", "-n", "2", "--gang", "10ms", "--hosts", &table, "true",
    ];
    let errors = refused(&hamlyn("gang-hosts", &run).output().unwrap());
    assert!(errors.contains("leave out --gang or --hosts"), "{errors}");
}
