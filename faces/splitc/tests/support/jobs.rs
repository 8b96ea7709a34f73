//! Compiles programs of the tests, and runs them as jobs: for the faces whose programs are jobs,
//! which include this file.

#![allow(dead_code, reason = "each test program uses a part of this module")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The directory of everything that cargo builds.
fn target() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().unwrap().parent().unwrap().to_owned()
}

/// A file that cargo builds from a package: now, if nobody has.
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

/// A library of a face: its file, its package, and how programs are linked with it.
pub(crate) struct Library {
    pub(crate) file: &'static str,
    pub(crate) package: &'static str,
    pub(crate) options: &'static [&'static str],
}

impl Library {
    /// A program, compiled for one test.
    pub(crate) fn compile(&self, name: &str, standard: &str, test: &str) -> PathBuf {
        self.compile_with(name, standard, test, &[])
    }

    /// The same with options of the compiler.
    pub(crate) fn compile_with(
        &self,
        name: &str,
        standard: &str,
        test: &str,
        options: &[&str],
    ) -> PathBuf {
        self.compile_file(&source(name), standard, test, options)
    }

    /// The same of a program that lies elsewhere.
    pub(crate) fn compile_file(
        &self,
        file: &Path,
        standard: &str,
        test: &str,
        options: &[&str],
    ) -> PathBuf {
        let library = built(self.file, self.package);
        let library = library.parent().unwrap();
        let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
        let mut command = compiler(standard);
        command.args(options).arg(file).arg("-o").arg(&to);
        command.arg("-L").arg(library).args(self.options);
        // Before the folders of cargo, in one of which an older one may lie.
        command.arg(format!(
            "-Wl,--disable-new-dtags,-rpath,{}",
            library.display()
        ));
        run_ok(&mut command);
        to
    }
}

/// Compiles each header by itself, in each version of C and C++.
pub(crate) fn headers_compile_alone(headers: &[&str]) {
    for header in headers {
        for standard in [
            "c99", "c11", "c17", "c2x", "gnu99", "c++11", "c++17", "c++20",
        ] {
            let language = if standard.contains("++") { "c++" } else { "c" };
            let mut command = compiler(standard);
            command.args(["-pedantic", "-fsyntax-only", "-x", language, "-include"]);
            run_ok(command.arg(include().join(header)).arg("/dev/null"));
        }
    }
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

/// The end of a job: its status, and all that it printed.
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

    /// The job ended well, and the line of each process is in its output once.
    pub(crate) fn each_said(&self, procs: usize, line: impl Fn(usize) -> String) {
        let (out, errors) = (&self.out, &self.errors);
        assert_eq!(self.status, Some(0), "{out}{errors}");
        for proc in 0..procs {
            assert_eq!(out.matches(&line(proc)).count(), 1, "{out}{errors}");
        }
    }
}

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

/// `hamlyn run` of processes on the two hosts of a testbed, with files of the test.
pub(crate) fn on_two_hosts(
    testbed: &hamlyn_testbed::Testbed,
    test: &str,
) -> impl Fn(usize) -> Command + use<> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut table = String::new();
    for host in testbed.hosts() {
        table += &format!("{} {}\n", host.name(), host.address());
    }
    let (hosts, script) = (
        directory.join(format!("{test}.table")),
        directory.join(format!("{test}.sh")),
    );
    std::fs::write(&hosts, table).unwrap();
    std::fs::write(&script, testbed.remote_shell(|_| "\"$@\"".to_owned())).unwrap();
    move |procs| {
        let mut command = launcher(&["-n", &procs.to_string(), "--hosts"]);
        command.arg(&hosts);
        command.env("HAMLYN_REMOTE_SHELL", format!("sh {}", script.display()));
        command
    }
}

/// The output of a command, if it ends well.
pub(crate) fn answer(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .stderr(Stdio::null())
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Its part that binds processes shares what it knows of the machine at an address that it guesses
/// to be free, and dies now and then when that is where its own stack grows.
pub(crate) const UNBOUND: [&str; 3] = ["--mca", "rtc", "^hwloc"];

/// `mpirun` of so many processes, more than there are cores if need be, with a directory for its
/// files.
pub(crate) fn mpirun(procs: usize, directory: &Path) -> Command {
    let mut command = Command::new("mpirun");
    command.args(UNBOUND);
    command.args(["--oversubscribe", "-n", &procs.to_string()]);
    command.env("TMPDIR", directory);
    // It refuses root otherwise, which tests of a container run as.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// A directory of the test, empty, for what launchers write; none if there is no `mpirun` of Open
/// MPI.
pub(crate) fn open_mpi(test: &str) -> Option<PathBuf> {
    // Its sockets have long names.
    let directory = std::env::temp_dir().join(format!("hamlyn-{}-{test}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let found = answer("mpirun", &["--version"]).is_some_and(|text| text.contains("Open MPI"));
    // A sandbox may forbid what it needs.
    if found && Outcome::of(mpirun(1, &directory).arg("true")).status == Some(0) {
        return Some(directory);
    }
    std::fs::remove_dir_all(&directory).unwrap();
    eprintln!("== no mpirun of Open MPI (Debian: openmpi-bin): {test} is skipped");
    None
}

/// Of all that the launcher and the programs wrote, nothing is left but directories of the
/// launcher.
pub(crate) fn nothing_is_left_in(directory: PathBuf) {
    let mut left: Vec<PathBuf> = vec![directory.clone()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            assert!(path.is_dir(), "{} was left behind", path.display());
            left.push(path);
        }
    }
    std::fs::remove_dir_all(directory).unwrap();
}
