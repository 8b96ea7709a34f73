//! Compiles programs of the tests, and runs them.

#![allow(dead_code, reason = "each test program uses a part of this module")]

#[path = "../../../splitc/tests/support/installed.rs"]
pub(crate) mod installed;
#[path = "../../../splitc/tests/support/jobs.rs"]
mod jobs;

pub(crate) use jobs::*;

pub(crate) const AM: Library = Library {
    file: "libhamlyn_am_c.so",
    package: "hamlyn-am-c",
    options: &["-lhamlyn_am_c", "-lpthread"],
};

/// The parts of `misuse.c`.
pub(crate) const MISUSE: [&str; 6] = [
    "before",
    "arguments",
    "handler",
    "thread",
    "fork",
    "deadline",
];
