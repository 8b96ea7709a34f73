//! Compiles programs of the tests, and runs them.

#![allow(dead_code, reason = "each test program uses a part of this module")]

#[path = "../../../splitc/tests/support/jobs.rs"]
mod jobs;

use std::process::Command;

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

/// Runs a program that says that it passed. Gives its standard error.
pub(crate) fn passes(command: &mut Command) -> String {
    let outcome = Outcome::of(command);
    let (out, errors) = (&outcome.out, &outcome.errors);
    assert_eq!(outcome.status, Some(0), "{command:?}: {out}{errors}");
    assert!(out.contains("passed"), "{command:?}: {out}{errors}");
    outcome.errors
}

/// Each process of a job says that all was right.
pub(crate) fn each_passed(outcome: &Outcome, procs: usize) {
    outcome.each_said(procs, |proc| format!("process {proc} of {procs} passed"));
}
