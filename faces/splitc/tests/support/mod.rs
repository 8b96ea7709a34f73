//! Compiles programs of the tests, and runs them as jobs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where cargo puts what it builds.
fn target() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().unwrap().parent().unwrap().to_owned()
}

/// What cargo builds, which it builds now if nobody has.
fn built(file: &str, package: &str) -> PathBuf {
    let places = [target().join(file), target().join("deps").join(file)];
    // Tests build the library in one place, and everything else in the other.
    let newest = || {
        let built = places.iter().filter(|place| place.exists());
        built.max_by_key(|place| place.metadata().unwrap().modified().unwrap())
    };
    if let Some(found) = newest() {
        return found.clone();
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--locked", "--package", package]);
    if target().ends_with("release") {
        command.arg("--release");
    }
    assert!(command.status().unwrap().success(), "building {package}");
    newest()
        .unwrap_or_else(|| panic!("{file} was not built"))
        .clone()
}

pub(crate) fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

/// The compiler for a language, with its standard and all warnings.
pub(crate) fn compiler(standard: &str) -> Command {
    let program = if standard.contains("++") { "c++" } else { "cc" };
    let mut command = Command::new(program);
    command.arg(format!("-std={standard}"));
    command.args(["-Wall", "-Wextra", "-Werror", "-O2", "-g", "-I"]);
    command.arg(include());
    command
}

/// A program, compiled for one test.
pub(crate) fn compile(name: &str, standard: &str, test: &str) -> PathBuf {
    let library = built("libsplitc.so", "hamlyn-splitc-c");
    let library = library.parent().unwrap();
    let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let mut command = compiler(standard);
    command.arg(source(name)).arg("-no-pie").arg("-o").arg(&to);
    command.arg("-L").arg(library).arg("-lsplitc");
    command.arg(format!("-Wl,-rpath,{}", library.display()));
    run_ok(&mut command);
    to
}

pub(crate) fn run_ok(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}: {errors}",
        output.status
    );
    output
}

#[allow(dead_code, reason = "each test program uses a part of this module")]
/// `hamlyn run` with these arguments, before the program.
pub(crate) fn launcher(arguments: &[&str]) -> Command {
    let mut command = hamlyn(&["run"]);
    command.args(arguments);
    command
}

/// The command.
pub(crate) fn hamlyn(arguments: &[&str]) -> Command {
    let mut command = Command::new(built("hamlyn", "hamlyn-cli"));
    command.args(arguments);
    command
}

/// What a job printed, with its status.
pub(crate) struct Outcome {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) errors: String,
}

impl Outcome {
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        Self {
            status: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
