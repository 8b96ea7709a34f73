//! The programs under tools that watch them: sanitizers of addresses and of undefined behaviour,
//! and valgrind. The library itself is not compiled with the sanitizers; what it writes to the
//! memory of programs is watched.

mod support;

use std::path::PathBuf;
use std::process::Command;

use support::{Outcome, answer, compile, compile_with};

/// Each program with each of its arguments.
const PROGRAMS: [(&str, &str, &[&str]); 4] = [
    (
        "misuse.c",
        "gnu99",
        &[
            "before",
            "arguments",
            "handler",
            "thread",
            "fork",
            "deadline",
        ],
    ),
    (
        "returns.c",
        "gnu99",
        &[
            "tag",
            "handler",
            "offset",
            "length",
            "endpoint",
            "rejected",
            "unreachable",
        ],
    ),
    ("old.c", "gnu99", &[""]),
    ("objects.cpp", "c++17", &[""]),
];

fn passes(command: &mut Command) {
    let outcome = Outcome::of(command);
    let (out, errors) = (&outcome.out, &outcome.errors);
    assert_eq!(outcome.status, Some(0), "{command:?}: {out}{errors}");
    assert!(out.contains("passed"), "{command:?}: {out}{errors}");
}

#[test]
fn address_and_undefined_behaviour_sanitizers_find_nothing() {
    const SANITIZED: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    for (name, standard, arguments) in PROGRAMS {
        let to = format!("sanitized-{name}");
        let program: PathBuf = compile_with(name, standard, &to, &SANITIZED);
        for argument in arguments {
            let mut command = Command::new(&program);
            if *argument == "fork" {
                // The child leaves alone what it has of its parent's.
                command.env("ASAN_OPTIONS", "detect_leaks=0");
            }
            passes(command.arg(argument));
        }
    }
}

#[test]
fn valgrind_finds_nothing() {
    if answer("valgrind", &["--version"]).is_none() {
        eprintln!("== no valgrind: the programs are not run under it");
        return;
    }
    let program = compile("misuse.c", "gnu99", "under_valgrind");
    for argument in ["arguments", "handler"] {
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=9", "--fair-sched=yes"]);
        passes(command.arg(&program).arg(argument));
    }
}
