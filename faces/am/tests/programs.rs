//! Programs in C and C++ of one or two processes: errors, misuse, bundles, names, and the header
//! of 1996.

mod support;

use std::process::Command;

use support::{AM, MISUSE, Outcome, headers_compile_alone, passes};

#[test]
fn headers_compile_alone_in_each_language() {
    headers_compile_alone(&["am.h", "am_spmd.h", "am1996.h", "hamlyn_am.h"]);
}

#[test]
fn each_reason_comes_back_with_the_message_once() {
    let program = AM.compile("returns.c", "gnu99", "each_reason");
    for what in [
        "tag",
        "handler",
        "offset",
        "length",
        "endpoint",
        "congestion",
        "rejected",
    ] {
        let errors = passes(
            Command::new(&program)
                .arg(what)
                .env("HAMLYN_AM_CONGESTION", "0.3"),
        );
        assert_eq!(errors, "", "{what}");
    }
    passes(Command::new(&program).arg("unreachable"));
    passes(Command::new(&program).args(["unreachable", "while it lives"]));
}

#[test]
fn the_default_handler_reports_and_ends_the_program_only_if_asked() {
    let program = AM.compile("returns.c", "gnu99", "the_default_handler");
    let errors = passes(Command::new(&program).args(["default", "0"]));
    let lines = errors.lines().count();
    assert!((1..10).contains(&lines), "{errors}");
    assert!(errors.contains("for handler 99"), "{errors}");
    let errors = passes(Command::new(&program).args(["default", "2"]));
    assert_eq!(errors, "");
    let outcome = Outcome::of(Command::new(&program).args(["default", "1"]));
    // Killed by a signal.
    assert_eq!(outcome.status, None, "{}", outcome.errors);
    assert!(outcome.errors.contains("came back"), "{}", outcome.errors);
    // The environment decides before the program does.
    let mut command = Command::new(&program);
    command
        .arg("before the policy")
        .env("HAMLYN_AM_RETURNED", "loud");
    let outcome = Outcome::of(&mut command);
    assert_eq!(outcome.status, Some(1), "{}", outcome.errors);
    assert!(outcome.errors.contains("HAMLYN_AM_RETURNED"));
}

#[test]
fn misuse_is_an_error_code() {
    let program = AM.compile("misuse.c", "gnu99", "misuse");
    for part in MISUSE {
        passes(Command::new(&program).arg(part));
    }
}

#[test]
fn endpoints_move_and_change_under_traffic() {
    for standard in ["c++11", "c++20"] {
        let program = AM.compile("objects.cpp", standard, &format!("objects_{standard}"));
        passes(Command::new(&program).env("HAMLYN_AM_FRAMES", "8"));
        passes(&mut Command::new(&program));
    }
}

#[test]
fn programs_meet_without_a_launcher() {
    let program = AM.compile("names.c", "gnu99", "programs_meet");
    let name = format!("am-names-{}", std::process::id());
    // In either order.
    for first in ["serve", "ask"] {
        let second = if first == "serve" { "ask" } else { "serve" };
        std::thread::scope(|scope| {
            let run = |what: &'static str| {
                let (program, name) = (&program, &name);
                move || passes(Command::new(program).args([what, name]))
            };
            let other = scope.spawn(run(first));
            run(second)();
            other.join().unwrap();
        });
    }
}

#[test]
fn a_program_of_1996_runs() {
    for standard in ["gnu99", "gnu17"] {
        let program = AM.compile("old.c", standard, &format!("old_{standard}"));
        passes(&mut Command::new(&program));
    }
}

#[test]
fn settings_of_the_environment_that_cannot_be_are_named() {
    let program = AM.compile("returns.c", "gnu99", "settings");
    for (variable, value) in [
        ("HAMLYN_AM_DEADLINE", "soon"),
        ("HAMLYN_AM_CONGESTION", "-1"),
        ("HAMLYN_AM_CREDITS", "many"),
        ("HAMLYN_AM_FRAMES", "70000"),
        ("HAMLYN_AM_RETURNED", "loud"),
    ] {
        let outcome = Outcome::of(Command::new(&program).arg("tag").env(variable, value));
        assert_eq!(outcome.status, Some(1), "{variable}");
        assert!(outcome.errors.contains(variable), "{}", outcome.errors);
    }
}
