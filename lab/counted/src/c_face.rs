//! What a call through C costs: instructions of a short send and of a short receive by a program in
//! C beside the same in Rust.
//!
//! The program in C is `faces/c/measure/count.c`, compiled with the committed header and linked
//! with the library, which is built as the command itself is, link-time optimization included; so
//! this needs a checkout, a C compiler and valgrind. Beside it stands [`crate::calls`], which calls
//! functions with bytes of which nothing is known, as C does. Messages whose length the compiler
//! knows, by calls that it inlines, take less: `hamlyn-lab bench --instructions` counts those.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::Protocol;
use crate::instructions::{BATCHES, per_message, profile};

/// The programs in Rust, beside the library: `calls` and `echo` are among its arguments.
pub const RUST_PROGRAM: &str = "hamlyn-counted";

/// The program in C, in the folder of its face.
const PROGRAM: &str = "measure/count.c";

/// Instructions of a send and of a receive.
pub struct Figures {
    /// What carries the message.
    pub protocol: Protocol,
    /// By functions of Rust.
    pub rust: (f64, f64),
    /// By functions of C.
    pub c: (f64, f64),
}

/// Those that the C face has.
const PROTOCOLS: [Protocol; 5] = [
    Protocol::Raw,
    Protocol::Tagged,
    Protocol::Datagram,
    Protocol::Stream,
    Protocol::Mailbox,
];

/// Counts them, with the sources of the C face in that folder.
///
/// # Errors
///
/// There is no cargo, no C compiler or no valgrind, or one of them fails.
pub fn count(face: &Path) -> Result<Vec<Figures>> {
    let directory = std::env::temp_dir().join(format!("hamlyn-c-{}", std::process::id()));
    std::fs::create_dir(&directory).with_context(|| format!("making {}", directory.display()))?;
    let counted = count_in(face, &face.join(PROGRAM), &directory);
    // What is left behind is told of by the next run.
    let _ = std::fs::remove_dir_all(&directory);
    counted
}

fn count_in(face: &Path, program: &Path, directory: &Path) -> Result<Vec<Figures>> {
    let built = build(face)?;
    let compiled = directory.join("count");
    compile(face, program, &compiled, &built)?;
    let namespace = format!("count-c-{}", std::process::id());
    let batches = BATCHES.to_string();
    let figures = PROTOCOLS.into_iter().map(|protocol| {
        let arguments = ["calls", protocol.name(), &batches, &namespace];
        let count = |program: &Path, arguments: &[&str]| {
            per_message(&profile(protocol.name(), program, arguments, "")?)
        };
        Ok(Figures {
            protocol,
            rust: count(&built.join(RUST_PROGRAM), &arguments)?,
            c: count(&compiled, &arguments[1..])?,
        })
    });
    figures.collect()
}

/// Compiles a program in C with the committed header, and links it with the library that was built
/// there.
///
/// # Errors
///
/// There is no C compiler, or it fails.
pub fn compile(face: &Path, program: &Path, to: &Path, built: &Path) -> Result<()> {
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-g", "-I"]);
    compiler.arg(face.join("include")).arg(program);
    compiler.arg("-o").arg(to).arg("-L").arg(built);
    compiler.arg(format!("-Wl,-rpath,{}", built.display()));
    compiler.arg("-lhamlyn_c");
    succeed(&mut compiler, "cc (Debian: apt-get install gcc)")
}

/// Builds the library for C, and [`RUST_PROGRAM`]; where they are.
///
/// # Errors
///
/// There is no cargo, or it fails.
pub fn build(face: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for what in [
        // Beside a library for Rust, cargo would not optimize it when it is linked.
        &[
            "rustc",
            "--package=hamlyn-c",
            "--lib",
            "--crate-type=cdylib",
        ][..],
        &["build", "--package=hamlyn-counted"],
    ] {
        let mut command = Command::new(&cargo);
        command
            .args(what)
            .args(["--release", "--locked", "--quiet"]);
        command.current_dir(face);
        succeed(&mut command, "cargo, which builds the library")?;
    }
    let workspace = face
        .ancestors()
        .nth(2)
        .context("the face lies in a workspace")?;
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(target) => workspace.join(target),
        None => workspace.join("target"),
    };
    Ok(target.join("release"))
}

fn succeed(command: &mut Command, what: &str) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("starting {what}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{what} failed: {}", said.trim());
    }
    Ok(())
}

/// A line for each: what it is of, its protocol, the count in Rust and that in C.
pub fn lines(all: &[Figures]) -> String {
    let mut lines = String::new();
    for figures in all {
        let (name, rust, c) = (figures.protocol.name(), figures.rust, figures.c);
        lines += &format!("send {name} {} {}\n", rust.0, c.0);
        lines += &format!("receive {name} {} {}\n", rust.1, c.1);
    }
    lines
}
