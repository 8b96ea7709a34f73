//! Counts, and prints one JSON object; the program that is counted is this one.
//!
//! `hamlyn-counted` counts messages, `hamlyn-counted c FACE` what a call through C takes beside one
//! of Rust, with the sources of the C face in that folder.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use hamlyn_counted::{c_face, instructions, program};

/// What callgrind runs.
const PROGRAM: &str = "program";

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
            instructions::count(&program, &[PROGRAM])?.json()
        }
        ["c", face] => c_face::json(&c_face::count(Path::new(face))?),
        _ => bail!("usage: hamlyn-counted [c FACE]"),
    };
    println!("{}", serde_json::to_string_pretty(&counted)?);
    Ok(())
}
