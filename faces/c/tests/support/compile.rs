//! Compiling programs in C and C++ with the header, and linking them with the library that lies
//! where the running test does. The tests of the examples do so, too.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a program with that compiler and its options, and says where it is.
pub(crate) fn compile(headers: &Path, source: &Path, to: &str, compiler: &[&str]) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let libraries = this.parent().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Another process may compile the same, or run what is there.
    let ours = folder.join(format!("{to}.{}", std::process::id()));
    let to = folder.join(to);
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]);
    command.args(["-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    command.arg("-I").arg(headers).arg(source);
    command.arg("-o").arg(&ours).arg("-L").arg(libraries);
    command.arg(format!("-Wl,-rpath,{}", libraries.display()));
    command.args(["-lhamlyn_c", "-lpthread"]);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", source.display());
    std::fs::rename(&ours, &to).unwrap();
    to
}
