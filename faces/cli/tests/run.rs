//! `hamlyn run`: streams, signals, statuses, and that nothing is left behind. What the processes
//! are to each other is tested with the runtime of Split-C.

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use support::{hamlyn, text};

fn sorted(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<_> = text(bytes).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn processes_know_their_part_and_lines_stay_whole() {
    let script = "echo $HAMLYN_RANK of $HAMLYN_PROCS $HAMLYN_STRATEGY; echo to stderr >&2";
    let run = [
        "run",
        "-n",
        "3",
        "--strategy",
        "np",
        "--label",
        "sh",
        "-c",
        script,
    ];
    let output = hamlyn("run-parts", &run).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(
        sorted(&output.stdout),
        ["[0] 0 of 3 np", "[1] 1 of 3 np", "[2] 2 of 3 np"]
    );
    let errors = ["[0] to stderr", "[1] to stderr", "[2] to stderr"];
    assert_eq!(sorted(&output.stderr), errors);
}

#[test]
fn standard_input_is_that_of_the_first() {
    let mut command = hamlyn("run-input", &["run", "-n", "2", "--label", "cat"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // More than any pipe holds.
    let line = "a line that is passed on\n".repeat(10_000);
    let writing = std::thread::spawn(move || input.write_all(line.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(output.status.success());
    let lines = text(&output.stdout);
    assert_eq!(lines.lines().count(), 10_000);
    assert!(
        lines
            .lines()
            .all(|line| line == "[0] a line that is passed on")
    );
}

#[test]
fn the_first_that_fails_gives_the_status_and_ends_the_others() {
    for (what, status, says) in [
        ("exit 3", 3, "process 1 (pid "),
        ("kill -9 $$", 137, "was killed by signal 9 (SIGKILL)"),
        ("kill -SEGV $$", 139, "SIGSEGV"),
    ] {
        // The others would take for ever, and so would what they have started, and what ignores
        // being told.
        let script = format!(
            "if [ $HAMLYN_RANK = 1 ]; then {what}; fi; trap '' TERM; sleep 1000 & wait; wait"
        );
        let run = ["run", "-n", "3", "sh", "-c", &script];
        let output = hamlyn("run-fails", &run).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{errors}");
        assert!(errors.contains(says), "{errors}");
        assert!(
            errors.contains("the other 2 processes are ended"),
            "{errors}"
        );
    }
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let run = ["run", "-n", "2", "/no/such/program"];
    let output = hamlyn("run-nothing", &run).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/no/such/program"));
    for bad in [
        &["run", "-n", "0", "true"][..],
        &["run", "-n", "2"],
        &["run", "true"],
        &["run", "-n", "2", "--memory", "1", "true"],
        &["run", "-n", "2", "--hosts", "/no/such/file", "true"],
        &["run", "-n", "2", "--barrier-timeout", "soon", "true"],
    ] {
        let output = hamlyn("run-bad", bad).output().unwrap();
        assert!(!output.status.success(), "{bad:?}");
        assert!(!output.stderr.is_empty(), "{bad:?}");
    }
}

/// A job that prints its processes, and then waits for ever.
fn endless(test: &str) -> (std::process::Child, Vec<Pid>) {
    let script = "echo $$; trap 'exit 5' USR1; while :; do sleep 1000 & wait; done";
    let mut command = hamlyn(test, &["run", "-n", "2", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut process = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        Pid::from_raw(line.trim().parse().unwrap()).unwrap()
    };
    let processes = vec![process(), process()];
    (child, processes)
}

fn await_the_end_of(processes: &[Pid]) {
    let begun = Instant::now();
    while processes
        .iter()
        .any(|process| test_kill_process(*process).is_ok())
    {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "a process was left behind"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn signals_reach_all() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::QUIT, 131)] {
        let (mut child, processes) = endless("run-signals");
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(status));
        await_the_end_of(&processes);
    }
}

#[test]
fn nothing_is_left_behind_when_the_launcher_is_killed() {
    let (mut child, processes) = endless("run-killed");
    child.kill().unwrap();
    child.wait().unwrap();
    await_the_end_of(&processes);
}

/// The launcher was killed before its process had read the order: it becomes no program.
#[test]
fn an_order_of_a_launcher_that_is_gone_is_not_followed() {
    let status = |launcher: u32| {
        let order = serde_json::json!({
            "command": ["true"], "variables": {}, "is_remote": false, "directory": null,
            "launcher": launcher, "files": {},
        });
        let order = order.to_string();
        let mut command = hamlyn("run-orphan", &["process-of-run"]);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let length = (order.len() as u32).to_le_bytes();
        input.write_all(&length).unwrap();
        input.write_all(order.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.success(), text(&output.stderr))
    };
    assert!(status(std::process::id()).0);
    let (is_followed, errors) = status(1 << 30);
    assert!(
        !is_followed && errors.contains("the launcher has ended"),
        "{errors}"
    );
}

/// A remote shell that stays on this host: what `ssh` would be told, without the network.
#[test]
fn processes_on_other_hosts_have_streams_signals_and_ends_too() {
    let directory = support::Room::new("run-remote");
    let table = directory.file("hosts");
    std::fs::write(
        &table,
        "far-1 127.0.0.1 slots=1\nfar-2 127.0.0.1:9999 slots=2\n",
    )
    .unwrap();
    let shell = directory.file("shell");
    std::fs::write(&shell, "#!/bin/sh\nhost=$1; shift; FAR=$host exec \"$@\"\n").unwrap();
    let shell = format!("sh {shell}");
    let table = table.as_str();
    let run = |script: &str| {
        let arguments = [
            "run", "-n", "3", "--label", "--hosts", table, "sh", "-c", script,
        ];
        let mut command = hamlyn("run-remote", &arguments);
        command.env("HAMLYN_REMOTE_SHELL", &shell);
        command
    };
    let mut command = run("echo $FAR $HAMLYN_HOST $HAMLYN_JOB_HOSTS; cat; cat $HAMLYN_HOSTS >&2");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"for the first\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let expected = [
        "[0] far-1 far-1 far-1:1,far-2:2",
        "[0] for the first",
        "[1] far-2 far-2 far-1:1,far-2:2",
        "[2] far-2 far-2 far-1:1,far-2:2",
    ];
    assert_eq!(sorted(&output.stdout), expected);
    assert!(text(&output.stderr).contains("[2] far-2 127.0.0.1:9999"));
    let output = run("[ $HAMLYN_RANK = 2 ] && kill -9 $$; sleep 1000")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(137), "{}", text(&output.stderr));
    let says = "on far-2) was killed by signal 9";
    assert!(
        text(&output.stderr).contains(says),
        "{}",
        text(&output.stderr)
    );
}
