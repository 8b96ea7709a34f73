//! `hamlyn pipe`: standard input here becomes standard output there.
//!
//! The receiver publishes a name and offers the seed of a stream under it; the sender asks for the
//! seed and grows its end. Nothing but the two processes is involved.

use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hamlyn::host::process::ProcessHost;
use hamlyn::stream::StreamOptions;
use hamlyn::{Manager, ReceiveError, Wait};

use crate::partners::Partners;
use hamlyn_cli::output::Unwritten;

/// What the seed is offered as.
const ITEM: &str = "pipe";
/// Bytes of a piece; a read becomes a record of at most this size.
const PIECE_BYTES: u32 = 256 << 10;
/// Pieces: enough for both ends to be busy at once, and to fill a path of 100 ms, though what comes
/// out of a pipe is read in parts of a piece.
const PIECES: u32 = 64;

/// What a pipe into this program is to hold: as much as any user may ask for.
const PIPE_BYTES: usize = 1 << 20;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The name under which the receiver is found; of one on another host, HOST/NAME.
    name: String,
    /// Receive: write to standard output what arrives under this name.
    #[arg(long)]
    listen: bool,
    /// How long the sender waits for the receiver to appear, in seconds.
    #[arg(long, default_value_t = 10)]
    wait: u64,
    /// No progress bar.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    partners: Partners,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.listen {
        receive(arguments)?
    } else {
        send(arguments)?
    }
    Ok(ExitCode::SUCCESS)
}

fn open(arguments: &Arguments) -> Result<Manager<ProcessHost>> {
    let name = arguments.listen.then_some(arguments.name.as_str());
    arguments.partners.open(name)
}

fn bar(arguments: &Arguments, label: &str) -> indicatif::ProgressBar {
    if arguments.quiet {
        indicatif::ProgressBar::hidden()
    } else {
        hamlyn_cli::terminal::bytes_bar(None, label)
    }
}

fn receive(arguments: &Arguments) -> Result<()> {
    let manager = open(arguments)?;
    let limit_bytes = u64::from(PIECES) * u64::from(PIECE_BYTES);
    let options = StreamOptions {
        pieces: PIECES,
        piece_bytes: PIECE_BYTES,
        limit_bytes,
        ahead: false,
    };
    let mut stream = manager.bind_stream(ITEM, options)?;
    let bar = bar(arguments, &arguments.name);
    let mut out = std::io::stdout().lock();
    loop {
        match stream.recv(Wait::Forever) {
            Ok(Some(record)) => {
                out.write_all(&record).map_err(Unwritten)?;
                bar.inc(record.len() as u64);
            }
            Ok(None) => {}
            Err(ReceiveError::Closed) => break,
            Err(error) => {
                bar.abandon();
                return Err(error).context("the transfer is incomplete");
            }
        }
    }
    out.flush().map_err(Unwritten)?;
    bar.finish();
    drop(stream);
    Ok(())
}

fn send(arguments: &Arguments) -> Result<()> {
    let manager = open(arguments)?;
    let wait = Wait::For(Duration::from_secs(arguments.wait));
    let mut stream = manager.connect_stream(&format!("{}/{ITEM}", arguments.name), wait)?;
    let bar = bar(arguments, &arguments.name);
    let mut input = std::io::stdin().lock();
    // A pipe that holds more is read by whole pieces. Anything else refuses, and need not.
    let _ = rustix::pipe::fcntl_setpipe_size(&input, PIPE_BYTES);
    let mut buffer = vec![0; PIECE_BYTES as usize];
    loop {
        let length = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => bail!("reading standard input: {error}"),
        };
        stream
            .send(&buffer[..length], Wait::Forever)
            .context("the transfer is incomplete")?;
        bar.inc(length as u64);
    }
    stream
        .close(Wait::Forever)
        .context("the transfer is incomplete")?;
    bar.finish();
    Ok(())
}
