//! The programs under tools that watch them: sanitizers of addresses and of undefined behaviour,
//! and valgrind. The library itself is not compiled with the sanitizers; its writes to the memory
//! of programs are watched.

mod support;

use std::path::PathBuf;
use std::process::Command;

use support::{AM, MISUSE, answer, passes};

/// Each program with each of its arguments.
const PROGRAMS: [(&str, &str, &[&str]); 4] = [
    ("misuse.c", "gnu99", &MISUSE),
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

#[test]
fn address_and_undefined_behaviour_sanitizers_find_nothing() {
    const SANITIZED: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    for (name, standard, arguments) in PROGRAMS {
        let to = format!("sanitized-{name}");
        let program: PathBuf = AM.compile_with(name, standard, &to, &SANITIZED);
        // A forked child waits for ever for a lock of the sanitizer's allocator that a thread of its
        // parent had. These parts run without sanitizers in `programs`.
        let whole = arguments.iter().filter(|part| !part.starts_with("fork"));
        for argument in whole {
            passes(Command::new(&program).arg(argument));
        }
    }
}

#[test]
fn valgrind_finds_nothing() {
    if answer("valgrind", &["--version"]).is_none() {
        eprintln!("== no valgrind: the programs are not run under it");
        return;
    }
    let program = AM.compile("misuse.c", "gnu99", "under_valgrind");
    for argument in ["arguments", "handler"] {
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=9", "--fair-sched=yes"]);
        passes(command.arg(&program).arg(argument));
    }
}
