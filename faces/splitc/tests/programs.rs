//! Programs in C and C++, run as jobs by `hamlyn run`: with every strategy and placement they do
//! what they should, and what is wrong ends all processes with a message that names it.

mod support;

use std::time::{Duration, Instant};

use support::{Outcome, compile, compiler, include, launcher, on_two_hosts, run_ok, source};

const STRATEGIES: [&str; 4] = ["proc", "np", "inject", "receive"];
const PLACEMENTS: [&str; 2] = ["direct", "copied"];

fn passed(outcome: &Outcome, procs: usize) {
    assert_eq!(outcome.status, Some(0), "{}", outcome.errors);
    let mut lines: Vec<_> = outcome.out.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<_> = (0..procs)
        .map(|proc| format!("processor {proc} of {procs} passed"))
        .collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
    assert_eq!(outcome.errors, "");
}

#[test]
fn headers_are_c_and_c_plus_plus_of_every_standard() {
    for standard in ["c99", "c11", "c17", "gnu89", "c++11", "c++17", "c++20"] {
        let name = if standard.contains("++") {
            "pointers.cpp"
        } else {
            "everything.c"
        };
        let mut command = compiler(standard);
        run_ok(command.arg("-fsyntax-only").arg(source(name)));
    }
    // Each header stands alone.
    for header in ["splitc_abi.h", "splitc.h"] {
        for standard in ["c99", "c++17"] {
            let mut command = compiler(standard);
            let language = if standard == "c99" { "c" } else { "c++" };
            command.args(["-fsyntax-only", "-x", language, "-include"]);
            run_ok(command.arg(include().join(header)).arg("/dev/null"));
        }
    }
}

fn everything(strategy: &str, test: &str) {
    let program = compile("everything.c", "c99", test);
    for placement in PLACEMENTS {
        for procs in [1, 2, 3, 4, 16] {
            let procs_text = procs.to_string();
            let mut command = launcher(&[
                "-n",
                &procs_text,
                "--strategy",
                strategy,
                "--placement",
                placement,
            ]);
            let outcome = Outcome::of(command.arg(&program).arg(&procs_text));
            passed(&outcome, procs);
        }
    }
}

#[test]
fn everything_works_with_the_program_alone() {
    everything("proc", "everything_proc");
}

#[test]
fn everything_works_with_a_network_processor() {
    everything("np", "everything_np");
}

#[test]
fn everything_works_with_injection_by_the_program() {
    everything("inject", "everything_inject");
}

#[test]
fn everything_works_with_reception_by_both() {
    everything("receive", "everything_receive");
}

#[test]
fn pointers_of_c_plus_plus_work() {
    let program = compile("pointers.cpp", "c++17", "pointers");
    for placement in PLACEMENTS {
        for procs in [1, 2, 5] {
            let procs_text = procs.to_string();
            let mut command = launcher(&["-n", &procs_text, "--placement", placement]);
            passed(&Outcome::of(command.arg(&program)), procs);
        }
    }
}

#[test]
fn a_program_that_is_started_alone_is_a_job_of_one() {
    let program = compile("everything.c", "c11", "alone");
    let outcome = Outcome::of(std::process::Command::new(program).arg("1"));
    passed(&outcome, 1);
}

#[test]
fn another_launcher_may_start_the_job() {
    let program = compile("everything.c", "c11", "other_launcher");
    let name = format!("test-{}", std::process::id());
    let start = |proc: u32| {
        std::process::Command::new(&program)
            .arg("2")
            .env("OMPI_COMM_WORLD_RANK", proc.to_string())
            .env("OMPI_COMM_WORLD_SIZE", "2")
            .env("PMIX_NAMESPACE", &name)
            .spawn()
            .unwrap()
    };
    for mut process in [start(0), start(1)] {
        assert!(process.wait().unwrap().success());
    }
}

#[test]
fn wrong_accesses_name_processor_file_and_line() {
    let program = compile("failures.c", "gnu99", "wrong_accesses");
    for (what, line, says) in [
        ("null", 21, "null global pointer"),
        ("wild", 24, "does not share"),
        ("processor", 26, "this job has processors 0 to 2"),
        ("end", 31, "does not share"),
        ("library", 35, "does not share"),
        ("memory", 53, "--memory"),
    ] {
        for placement in PLACEMENTS {
            let mut command = launcher(&["-n", "3", "--placement", placement]);
            let outcome = Outcome::of(command.arg(&program).arg(what));
            let errors = &outcome.errors;
            assert_eq!(outcome.status, Some(1), "{what}: {errors}");
            assert!(
                errors.contains(&format!("failures.c:{line}: ")),
                "{what}: {errors}"
            );
            assert!(errors.contains(says), "{what}: {errors}");
            assert!(errors.contains("processor "), "{what}: {errors}");
        }
    }
}

#[test]
fn the_first_that_fails_is_named_and_all_end() {
    let program = compile("failures.c", "gnu99", "first_that_fails");
    for (what, status, says) in [
        ("kill", 137, "was killed by signal 9 (SIGKILL)"),
        ("segv", 139, "was killed by signal 11 (SIGSEGV)"),
        ("status", 7, "ended with status 7"),
        ("fail", 1, "processor 2: "),
    ] {
        for strategy in STRATEGIES {
            let mut command = launcher(&["-n", "3", "--strategy", strategy]);
            let begun = Instant::now();
            let outcome = Outcome::of(command.arg(&program).arg(what));
            let errors = &outcome.errors;
            assert_eq!(outcome.status, Some(status), "{what}: {errors}");
            assert!(errors.contains(says), "{what}: {errors}");
            assert!(errors.contains("hamlyn run: process 2"), "{what}: {errors}");
            assert_eq!(outcome.out.matches("begins").count(), 3, "{}", outcome.out);
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "the others did not end"
            );
        }
    }
}

#[test]
fn a_processor_that_leaves_early_is_named() {
    let program = compile("failures.c", "gnu99", "leaves_early");
    for what in ["exit", "return"] {
        for placement in PLACEMENTS {
            let mut command = launcher(&["-n", "3", "--placement", placement]);
            // All others end because it is gone.
            let outcome = Outcome::of(command.arg(&program).arg(what));
            assert_eq!(outcome.status, Some(75), "{what}: {}", outcome.errors);
            let says = "processor 2 is gone (it has come to its end";
            assert!(outcome.errors.contains(says), "{what}: {}", outcome.errors);
        }
    }
}

#[test]
fn exit_by_all_is_the_end() {
    let program = compile("failures.c", "gnu99", "all_exit");
    let outcome = Outcome::of(launcher(&["-n", "3"]).arg(&program).arg("all exit"));
    assert_eq!(outcome.status, Some(0), "{}", outcome.errors);
    assert_eq!(outcome.out.matches("exits").count(), 3);
}

#[test]
fn a_barrier_that_one_never_reaches_names_it() {
    let program = compile("failures.c", "gnu99", "never_reaches");
    for placement in PLACEMENTS {
        let mut command = launcher(&[
            "-n",
            "3",
            "--barrier-timeout",
            "1",
            "--placement",
            placement,
        ]);
        let outcome = Outcome::of(command.arg(&program).arg("never"));
        assert_eq!(outcome.status, Some(1), "{}", outcome.errors);
        let says = "the barrier was not reached within 1s by processor 2";
        assert!(outcome.errors.contains(says), "{}", outcome.errors);
        assert!(
            outcome.errors.contains("failures.c:58: "),
            "{}",
            outcome.errors
        );
    }
}

#[test]
fn a_job_may_have_processors_on_two_hosts() {
    let Some(testbed) = hamlyn_testbed::Testbed::or_skip(2) else {
        return;
    };
    let program = compile("everything.c", "c99", "two_hosts");
    let run = on_two_hosts(&testbed, "splitc");
    for placement in PLACEMENTS {
        for procs in [2, 4] {
            let mut command = run(procs);
            command.args(["--placement", placement]);
            command.arg(&program).arg(procs.to_string());
            passed(&Outcome::of(&mut command), procs);
        }
    }
    let failures = compile("failures.c", "gnu99", "two_hosts_failures");
    let outcome = Outcome::of(run(4).arg(&failures).arg("kill"));
    assert_eq!(outcome.status, Some(137), "{}", outcome.errors);
    assert!(outcome.errors.contains("processor 3"), "{}", outcome.errors);
}
