//! A stream of records: lines of standard input at one end, standard output at the other, read
//! where they landed.
//!
//! ```text
//! log collect > all.log
//! journalctl | log send
//! ```

use std::io::{BufRead as _, Write as _};

use hamlyn::stream::StreamOptions;
use hamlyn::{ReceiveError, Wait};
use hamlyn_examples::Outcome;

fn main() -> Outcome {
    match std::env::args().nth(1).as_deref() {
        Some("collect") => collect(),
        Some("send") => send(),
        _ => Err("usage: log collect | log send".into()),
    }
}

fn collect() -> Outcome {
    let collector = hamlyn::open("collector")?;
    let mut lines = collector.bind_stream("log", StreamOptions::default())?;
    let mut out = std::io::stdout().lock();
    loop {
        match lines.recv(Wait::Forever) {
            Ok(Some(line)) => {
                out.write_all(&line)?;
                out.write_all(b"\n")?;
            }
            Ok(None) => {}
            Err(ReceiveError::Closed) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn send() -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let mut log = me.connect_stream("collector/log", Wait::millis(5_000))?;
    for line in std::io::stdin().lock().lines() {
        log.send(line?.as_bytes(), Wait::Forever)?;
    }
    Ok(log.close(Wait::Forever)?)
}
