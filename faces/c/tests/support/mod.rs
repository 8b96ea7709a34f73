//! Compiling programs with the header, linking them with the library, and running them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

#[path = "compile.rs"]
mod compilation;

/// Compiles a program with that compiler and its options, and says where it is.
pub(crate) fn compile(source: &Path, to: &str, compiler: &[&str]) -> PathBuf {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    compilation::compile(&headers, source, to, compiler)
}

/// Compiles a program of `tests/programs`.
#[allow(dead_code, reason = "each test program uses a part of this module")]
pub(crate) fn compiled(file: &str, to: &str, compiler: &[&str]) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    compile(&programs.join(file), to, compiler)
}

/// How programs in C are compiled.
#[allow(dead_code, reason = "each test program uses a part of this module")]
pub(crate) const OF_C: [&str; 3] = ["cc", "-std=c11", "-D_GNU_SOURCE"];

#[allow(dead_code, reason = "each test program uses a part of this module")]
pub(crate) fn start(program: &Path, namespace: &str, arguments: &[&str]) -> Child {
    start_under(&[], program, namespace, arguments)
}

/// Starts a program with a tool that watches it.
pub(crate) fn start_under(
    tool: &[&str],
    program: &Path,
    namespace: &str,
    arguments: &[&str],
) -> Child {
    let mut command = match tool.split_first() {
        None => Command::new(program),
        Some((tool, with)) => {
            let mut command = Command::new(tool);
            command.args(with).arg(program);
            command
        }
    };
    command.args(arguments).env("HAMLYN_NAMESPACE", namespace);
    // It names a folder where a library of an earlier build may lie, which would be taken instead
    // of this one.
    command.env_remove("LD_LIBRARY_PATH");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Starts a program that finds its libraries in that folder.
#[allow(dead_code, reason = "each test program uses a part of this module")]
pub(crate) fn start_with_libraries(
    libraries: &Path,
    program: &Path,
    namespace: &str,
    arguments: &[&str],
) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).env("HAMLYN_NAMESPACE", namespace);
    command.env("LD_LIBRARY_PATH", libraries);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The program ends well, and has printed that.
#[allow(dead_code, reason = "each test program uses a part of this module")]
pub(crate) fn passed_with(child: Child, printed: &str) {
    all_passed_with(vec![child], printed);
}

/// All programs end well, and each has printed that. Those that do not are told of together: one
/// often fails because another did.
#[allow(dead_code, reason = "each test program uses a part of this module")]
pub(crate) fn all_passed_with(children: Vec<Child>, printed: &str) {
    let mut failed = String::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() || said != printed {
            let errors = String::from_utf8_lossy(&output.stderr);
            failed += &format!("{}: {said}{errors}\n", output.status);
        }
    }
    assert!(failed.is_empty(), "{failed}");
}
