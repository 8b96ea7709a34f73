//! Compiles programs of the tests, and runs them.

#![allow(dead_code, reason = "each test program uses a part of this module")]

#[path = "../../../splitc/tests/support/installed.rs"]
pub(crate) mod installed;
#[path = "../../../splitc/tests/support/jobs.rs"]
mod jobs;

pub(crate) use jobs::*;

pub(crate) const UDM: Library = Library {
    file: "libhamlyn_udm_c.so",
    package: "hamlyn-udm-c",
    options: &["-lhamlyn_udm_c", "-lpthread"],
};

/// The parts of `misuse.c`.
pub(crate) const MISUSE: [&str; 8] = [
    "before",
    "arguments",
    "handler",
    "thread",
    "fork",
    "fork in a handler",
    "fork with upcalls",
    "exit",
];

/// The parts of `regions_misuse.c`.
pub(crate) const REGIONS_MISUSE: [&str; 5] = ["before", "arguments", "thread", "fork", "upcalls"];

/// Runs a program as a job, each process of which says that all was right.
pub(crate) fn each_passes(program: &std::path::Path, procs: usize, arguments: &[&str]) {
    let text = procs.to_string();
    let mut command = launcher(&["-n", &text]);
    command.arg(program).args(arguments);
    each_passed(&Outcome::of(&mut command), procs);
}
