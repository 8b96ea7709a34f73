//! The programs under tools that watch them: sanitizers of addresses and of undefined behaviour,
//! and valgrind. The library itself is not compiled with the sanitizers; its writes to the memory
//! of programs are watched.

mod support;

use std::path::PathBuf;
use std::process::Command;

use support::{MISUSE, Outcome, REGIONS_MISUSE, UDM, answer, each_passed, launcher, passes};

const SANITIZED: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

#[test]
fn address_and_undefined_behaviour_sanitizers_find_nothing() {
    let parts: [(&str, &[&str]); 2] =
        [("misuse.c", &MISUSE), ("regions_misuse.c", &REGIONS_MISUSE)];
    for (name, arguments) in parts {
        let to = format!("sanitized-{name}");
        let program: PathBuf = UDM.compile_with(name, "gnu99", &to, &SANITIZED);
        // A forked child waits for ever for a lock of the sanitizer's allocator that a thread of its
        // parent had. These parts are run without sanitizers, in `programs` and `regions`.
        let whole = arguments.iter().filter(|part| !part.starts_with("fork"));
        for argument in whole {
            passes(Command::new(&program).arg(argument));
        }
    }
}

#[test]
fn sanitizers_find_nothing_in_jobs() {
    for (name, arguments) in [
        ("messages.c", &["2"][..]),
        ("sections.c", &[]),
        ("upcalls.c", &[]),
        ("regions.c", &["2"]),
    ] {
        let to = format!("sanitized-job-{name}");
        let program = UDM.compile_with(name, "gnu11", &to, &SANITIZED);
        let outcome = Outcome::of(launcher(&["-n", "2"]).arg(program).args(arguments));
        each_passed(&outcome, 2);
    }
}

#[test]
fn valgrind_finds_nothing() {
    if answer("valgrind", &["--version"]).is_none() {
        eprintln!("== no valgrind: the programs are not run under it");
        return;
    }
    for (name, parts) in [
        ("misuse.c", ["arguments", "handler"]),
        ("regions_misuse.c", ["arguments", "before"]),
    ] {
        let program = UDM.compile(name, "gnu99", &format!("under_valgrind_{name}"));
        for part in parts {
            let mut command = Command::new("valgrind");
            command.args(["--quiet", "--error-exitcode=9", "--fair-sched=yes"]);
            passes(command.arg(&program).arg(part));
        }
    }
}
