//! `hamlyn trace`: runs a program, and writes what its interfaces say to other hosts and hear from
//! them, in the clear.
//!
//! The program is not changed: the library in it looks at HAMLYN_TRACE when it goes on the network.
//! So what it starts is traced too, into the same file.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use hamlyn::host::network::Trace;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// What Wireshark needs to read it.
const DISSECTOR: &str = include_str!("../wireshark/hamlyn.lua");

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where to write the packets (pcap-ng). A trace that is there is begun anew; anything else is
    /// left alone.
    #[arg(
        long,
        short,
        value_name = "FILE",
        required_unless_present = "dissector"
    )]
    write: Option<PathBuf>,
    /// Go on with the trace that is there.
    #[arg(long, requires = "write")]
    append: bool,
    /// Print the dissector for Wireshark (Lua), and do nothing else.
    #[arg(long, exclusive = true)]
    dissector: bool,
    /// No summary.
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments.
    #[arg(
        last = true,
        value_name = "COMMAND",
        required_unless_present = "dissector"
    )]
    command: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (Some(file), [program, rest @ ..]) = (&arguments.write, &arguments.command[..]) else {
        print!("{DISSECTOR}");
        return Ok(ExitCode::SUCCESS);
    };
    let file = begin(file, arguments.append)?;
    let before_bytes = fs::metadata(&file)?.len();
    // An interrupt at a terminal reaches the program, too; this process waits for the program's
    // end.
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .context("watching for signals")?;
    }
    let mut signals = Signals::new([SIGTERM, SIGHUP]).context("watching for signals")?;
    let watch = signals.handle();
    let mut child = Command::new(program)
        .args(rest)
        .env("HAMLYN_TRACE", &file)
        .spawn()
        .with_context(|| format!("starting {program}"))?;
    // What is meant for this process alone is passed on.
    let whom = Pid::from_child(&child);
    let passing = std::thread::spawn(move || {
        for signal in signals.forever() {
            if let Some(signal) = Signal::from_named_raw(signal) {
                // If it has ended just now there is nobody to be told.
                let _ = kill_process(whom, signal);
            }
        }
    });
    let status = child.wait().context("waiting for its end")?;
    watch.close();
    // It does not panic; if it did, there is nothing left to pass on.
    let _ = passing.join();
    let written_bytes = fs::metadata(&file)?.len().saturating_sub(before_bytes);
    if !arguments.quiet {
        eprintln!("{}", summary(&file, written_bytes));
    }
    Ok(code_of(status))
}

/// Makes the file ready; where it is, from wherever one looks.
fn begin(file: &Path, append: bool) -> Result<PathBuf> {
    let name = || file.display();
    if !append && fs::symlink_metadata(file).is_ok() {
        // What is no trace is an error here, and is not removed.
        Trace::open(file).with_context(|| format!("{}: it is not overwritten", name()))?;
        fs::remove_file(file).with_context(|| format!("removing {}", name()))?;
    }
    Trace::open(file).with_context(|| format!("{}: no trace can be written there", name()))?;
    match fs::canonicalize(file) {
        Ok(file) => Ok(file),
        Err(error) => bail!("{}: {error}", name()),
    }
}

fn summary(file: &Path, written_bytes: u64) -> String {
    let file = file.display();
    match written_bytes {
        0 => format!(
            "{file}: no packet: nothing went to another host or came from one (what stays on a host is not traced)"
        ),
        bytes => format!(
            "{file}: {bytes} bytes of packets, in the clear; to read them: hamlyn trace --dissector > hamlyn.lua; wireshark -X lua_script:hamlyn.lua {file}"
        ),
    }
}

/// What a shell would say.
fn code_of(status: ExitStatus) -> ExitCode {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
