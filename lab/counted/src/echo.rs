//! What `faces/c/measure/echo.c` does, in Rust, for `hamlyn-lab bench --faces`.

use std::error::Error;
use std::time::Instant;

use hamlyn::host::process::Options;
use hamlyn::stream::{self, StreamOptions};
use hamlyn::{ManagerOptions, ReceiveError, Wait};

const BATCHES: u32 = 11;
const LONG: Wait = Wait::millis(60_000);

type Done = Result<(), Box<dyn Error + Send + Sync>>;

struct Ends {
    incoming: stream::Receiver,
    outgoing: stream::Sender,
    bytes: Vec<u8>,
}

impl Ends {
    fn send(&mut self) -> Done {
        Ok(self.outgoing.send(&self.bytes, LONG)?)
    }

    /// Looks at the record where it lies. Whether there was one more.
    fn receive(&mut self) -> Result<bool, Box<dyn Error + Send + Sync>> {
        let record = match self.incoming.recv(LONG) {
            Err(ReceiveError::Closed) => return Ok(false),
            came => came?.ok_or("no record came")?,
        };
        let is_it = record.len() == self.bytes.len()
            && record.first() == Some(&7)
            && record.last() == Some(&7);
        match is_it {
            true => Ok(true),
            false => Err("another record came".into()),
        }
    }

    fn lead(&mut self, count: u32) -> Done {
        for _ in 0..count {
            self.send()?;
            if !self.receive()? {
                return Err("the stream ended".into());
            }
        }
        Ok(())
    }

    fn answer(&mut self) -> Done {
        while self.receive()? {
            self.send()?;
        }
        Ok(())
    }
}

/// One of the two programs, `lead` or `answer`. The one that leads prints, for each batch of so
/// many round trips, the nanoseconds that one way took.
///
/// # Errors
///
/// A call fails, or another record came than was sent.
pub fn run(role: &str, length_bytes: usize, count: u32, namespace: &str) -> Done {
    let leads = role == "lead";
    let options = Options::named(role).in_namespace(namespace);
    let manager = hamlyn::open_with(options, ManagerOptions::default())?;
    let other = if leads { "answer/in" } else { "lead/in" };
    let mut ends = Ends {
        incoming: manager.bind_stream("in", StreamOptions::default())?,
        outgoing: manager.connect_stream(other, LONG)?,
        bytes: vec![7; length_bytes],
    };
    if leads {
        ends.lead(count)?;
        for _ in 0..BATCHES {
            let begun = Instant::now();
            ends.lead(count)?;
            let one_way_ns = begun.elapsed().as_secs_f64() * 1e9 / f64::from(count) / 2.0;
            println!("{one_way_ns:.1}");
        }
        ends.outgoing.close(LONG)?;
        // The other closes when it has seen the end, and is waited for.
        ends.receive()?;
    } else {
        ends.answer()?;
    }
    Ok(())
}
