//! Compiles programs of the tests, and runs them.

#![allow(dead_code, reason = "each test program uses a part of this module")]

#[path = "../../../splitc/tests/support/jobs.rs"]
mod jobs;

pub(crate) use jobs::*;

const AM: Library = Library {
    file: "libhamlyn_am_c.so",
    package: "hamlyn-am-c",
    options: &["-lhamlyn_am_c", "-lpthread"],
};

/// A program, compiled for one test.
pub(crate) fn compile(name: &str, standard: &str, test: &str) -> std::path::PathBuf {
    AM.compile(name, standard, test)
}

/// The same with options of the compiler.
pub(crate) fn compile_with(
    name: &str,
    standard: &str,
    test: &str,
    options: &[&str],
) -> std::path::PathBuf {
    AM.compile_with(name, standard, test, options)
}

/// The same of a program that lies elsewhere.
pub(crate) fn compile_file(
    file: &std::path::Path,
    standard: &str,
    test: &str,
) -> std::path::PathBuf {
    AM.compile_file(file, standard, test, &[])
}
