//! Jobs of several processes: their start, collective operations, and ends of all kinds.

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use support::{
    AM, Outcome, each_passed, hamlyn, launcher, mpirun, nothing_is_left_in, on_two_hosts, open_mpi,
};

/// Each process of a job says that all was right, and that it leaves.
fn passed(outcome: &Outcome, procs: usize) {
    each_passed(outcome, procs);
    outcome.each_said(procs, |proc| {
        format!("process {proc} of {procs} leaves with 0")
    });
}

#[test]
fn hamlyn_run_starts_a_job() {
    let program = AM.compile("spmd.c", "gnu99", "hamlyn_run_starts");
    for strategy in ["proc", "np", "inject", "receive"] {
        for procs in [1, 2, 4] {
            let text = procs.to_string();
            let mut command = launcher(&["-n", &text, "--strategy", strategy]);
            passed(&Outcome::of(command.arg(&program).arg(&text)), procs);
        }
    }
    for form in ["as AMMPI", "as AMUDP"] {
        let mut command = launcher(&["-n", "2"]);
        passed(&Outcome::of(command.arg(&program).args(["2", form])), 2);
    }
    let mut command = launcher(&["-n", "2"]);
    let outcome = Outcome::of(command.arg(&program).args(["2", "other number"]));
    assert_eq!(outcome.status, Some(0), "{}", outcome.errors);
    // `AM_Init` before the start changes nothing.
    let mut command = launcher(&["-n", "2"]);
    let outcome = Outcome::of(command.arg(&program).args(["2", "", "init"]));
    passed(&outcome, 2);
}

#[test]
fn a_program_starts_its_job_itself() {
    let program = AM.compile("spmd.c", "gnu99", "starts_itself");
    passed(&Outcome::of(Command::new(&program).args(["1"])), 1);
    let run = hamlyn(&[]);
    let mut command = Command::new(&program);
    command.args(["3", "alone"]);
    command.env("HAMLYN_COMMAND", run.get_program());
    passed(&Outcome::of(&mut command), 3);
    command.env("HAMLYN_COMMAND", "/nowhere/hamlyn");
    let outcome = Outcome::of(&mut command);
    assert_eq!(outcome.status, Some(1), "{}", outcome.errors);
    assert!(
        outcome.errors.contains("hamlyn run -n 3"),
        "{}",
        outcome.errors
    );
}

#[test]
fn operations_that_differ_are_told_to_all() {
    let program = AM.compile("spmd.c", "gnu99", "operations_differ");
    let mut command = launcher(&["-n", "3"]);
    passed(&Outcome::of(command.arg(&program).args(["3", "differ"])), 3);
}

#[test]
fn a_job_ends_when_a_process_fails() {
    let program = AM.compile("spmd.c", "gnu99", "a_process_fails");
    for (end, status, says) in [
        ("killed", 137, "SIGKILL"),
        ("fails", 7, "ended with status 7"),
    ] {
        let begun = Instant::now();
        let mut command = launcher(&["-n", "3"]);
        let outcome = Outcome::of(command.arg(&program).args(["3", end]));
        assert_eq!(outcome.status, Some(status), "{end}: {}", outcome.errors);
        assert!(outcome.errors.contains(says), "{end}: {}", outcome.errors);
        assert!(begun.elapsed() < Duration::from_secs(60), "{end}");
    }
}

#[test]
fn a_process_that_leaves_early_is_missed() {
    let program = AM.compile("spmd.c", "gnu99", "leaves_early");
    for end in ["leaves", "first leaves"] {
        let mut command = launcher(&["-n", "2"]);
        let outcome = Outcome::of(command.arg(&program).args(["2", end]));
        assert_eq!(outcome.status, Some(9), "{end}: {}", outcome.errors);
        let heard = outcome.out.matches("hears of it").count();
        assert_eq!(heard, 1, "{end}: {}{}", outcome.out, outcome.errors);
    }
}

#[test]
fn a_process_that_never_comes_is_named() {
    let program = AM.compile("spmd.c", "gnu99", "never_comes");
    for (rank, missing) in [("0", "process 1"), ("1", "process 0")] {
        let mut command = Command::new(&program);
        command.arg("2").env("HAMLYN_RANK", rank);
        command.env("HAMLYN_JOB", format!("never-{}", std::process::id()));
        command
            .env("HAMLYN_PROCS", "2")
            .env("HAMLYN_START_TIMEOUT", "0.5");
        let outcome = Outcome::of(&mut command);
        assert_eq!(outcome.status, Some(1), "{}", outcome.errors);
        assert!(outcome.errors.contains(missing), "{}", outcome.errors);
    }
}

#[test]
fn mpirun_starts_a_job() {
    let Some(directory) = open_mpi("mpirun_starts_a_job_of_am") else {
        return;
    };
    let programs = [
        AM.compile("spmd.c", "gnu99", "mpirun_spmd"),
        AM.compile("forms.c", "c99", "mpirun_forms"),
    ];
    for procs in [1, 2, 4] {
        let text = procs.to_string();
        let mut command = mpirun(procs, &directory);
        passed(&Outcome::of(command.arg(&programs[0]).arg(&text)), procs);
    }
    let mut command = mpirun(2, &directory);
    let outcome = Outcome::of(command.arg(&programs[1]).arg("2"));
    assert_eq!(outcome.status, Some(0), "{}", outcome.errors);
    assert_eq!(outcome.out.matches("of 2 passed").count(), 2);
    let outcome = Outcome::of(mpirun(2, &directory).arg(&programs[0]).args(["2", "fails"]));
    assert_eq!(outcome.status, Some(7), "{}", outcome.errors);
    nothing_is_left_in(directory);
}

/// Two hosts in network namespaces; the launcher is told how to reach them.
#[test]
fn a_job_may_have_processes_on_two_hosts() {
    let Some(testbed) = hamlyn_testbed::Testbed::or_skip(2) else {
        return;
    };
    let run = on_two_hosts(&testbed, "am");
    let program = AM.compile("spmd.c", "gnu99", "two_hosts_spmd");
    for procs in [2, 4] {
        let text = procs.to_string();
        let mut command = run(procs);
        passed(&Outcome::of(command.arg(&program).arg(&text)), procs);
    }
    let forms = AM.compile("forms.c", "c99", "two_hosts_forms");
    for procs in [2, 4] {
        let text = procs.to_string();
        let mut command = run(procs);
        let outcome = Outcome::of(command.arg(&forms).args([&text, "two hosts"]));
        let (out, errors) = (&outcome.out, &outcome.errors);
        assert_eq!(outcome.status, Some(0), "{out}{errors}");
        let line = format!("of {procs} passed");
        assert_eq!(out.matches(&line).count(), procs, "{out}{errors}");
    }
    let mut command = run(3);
    let outcome = Outcome::of(command.arg(&program).args(["3", "killed"]));
    assert_eq!(outcome.status, Some(137), "{}", outcome.errors);
}
