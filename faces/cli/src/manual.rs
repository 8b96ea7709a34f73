//! `hamlyn completions` and `hamlyn manual`: what shells and `man` want to know of the command,
//! made of the same description of its arguments that reads them, so that neither can fall behind.
//! Packages are made with these two.
//!
//! Pages of the same name are overwritten; the directory must exist, so that a slip of the pen
//! makes none.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap_complete::Shell;

const NAME: &str = "hamlyn";

#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell. Its manual says where the text belongs: for bash, in a file `hamlyn` in
    /// ~/.local/share/bash-completion/completions.
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct Pages {
    /// Where the pages go, one for each subcommand: `man` finds those in ~/.local/share/man/man1.
    directory: PathBuf,
}

pub(crate) fn print_completions(
    arguments: &Completions,
    mut command: clap::Command,
) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, NAME, &mut text);
    print!("{}", String::from_utf8_lossy(&text));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn write_pages(arguments: &Pages, command: clap::Command) -> Result<ExitCode> {
    let directory = &arguments.directory;
    clap_mangen::generate_to(command, directory).with_context(|| {
        format!(
            "{}: the pages cannot be written there; make the directory first",
            directory.display()
        )
    })?;
    Ok(ExitCode::SUCCESS)
}
