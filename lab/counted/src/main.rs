//! Counts, and prints a line for each count; the program that is counted is this one.
//!
//! `hamlyn-counted` counts messages, `hamlyn-counted c FACE` what a call through C takes beside one
//! of Rust, with the sources of the C face in that folder. `calls` and `echo` are the programs in
//! Rust that stand beside those of `FACE/measure`: here, so that the library is built once.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Error, Result, bail};
use hamlyn_counted::{c_face, calls, echo, instructions, program};

/// What callgrind runs.
const PROGRAM: &str = "program";
const USAGE: &str = "usage: hamlyn-counted [c FACE | calls PROTOCOL BATCHES NAMESPACE | \
                     echo lead|answer LENGTH COUNT NAMESPACE]";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hamlyn-counted: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<()> {
    let counted = match arguments {
        [PROGRAM] => return program::run(),
        [] => {
            let program = std::env::current_exe().context("finding this program")?;
            instructions::count(&program, &[PROGRAM])?.lines()
        }
        ["calls", protocol, batches, namespace] => {
            let done = calls::run(protocol, batches.parse().context(USAGE)?, namespace);
            return done.map_err(Error::from_boxed);
        }
        ["echo", role, length, count, namespace] => {
            let (length, count) = (length.parse().context(USAGE)?, count.parse()?);
            return echo::run(role, length, count, namespace).map_err(Error::from_boxed);
        }
        ["c", face] => c_face::lines(&c_face::count(Path::new(face))?),
        _ => bail!(USAGE),
    };
    print!("{counted}");
    Ok(())
}
