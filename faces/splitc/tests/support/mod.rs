//! Compiles programs of the tests, and runs them as jobs.

mod jobs;

pub(crate) use jobs::*;

const SPLITC: Library = Library {
    file: "libsplitc.so",
    package: "hamlyn-splitc-c",
    options: &["-no-pie", "-lsplitc"],
};

/// A program, compiled for one test.
pub(crate) fn compile(name: &str, standard: &str, test: &str) -> std::path::PathBuf {
    SPLITC.compile(name, standard, test)
}
