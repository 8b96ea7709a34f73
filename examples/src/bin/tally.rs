//! Counts votes, on one host or over several: the program of the tutorial (docs/tutorial-rust.md).
//!
//! ```text
//! tally serve 3                      # counts three votes
//! tally vote tally/votes tea         # on the same host
//! tally vote zeus/tally/votes tea    # from another host, if this one is zeus
//! ```

use std::collections::HashMap;

use hamlyn::Wait;
use hamlyn::service::ServiceOptions;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", votes] => serve(votes.parse()?),
        ["vote", address, choice] => vote(address, choice),
        _ => Err("usage: tally serve VOTES | tally vote ADDRESS CHOICE".into()),
    }
}

fn serve(votes: usize) -> Outcome {
    let here = hamlyn::open("tally")?;
    let mut service = here.bind_service("votes", ServiceOptions::default())?;
    let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
    for _ in 0..votes {
        if let Some(call) = service.next(Wait::Forever)? {
            let count = counts.entry(call.to_vec()).or_default();
            *count += 1;
            call.reply(count.to_string().as_bytes())?;
        }
    }
    // The last reply is at its client's before this program ends; or the client is gone, and nobody
    // waits for it.
    match here.fence(Wait::millis(5_000)) {
        Ok(()) | Err(hamlyn::FenceError::PeerLost(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn vote(address: &str, choice: &str) -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let mut votes = me.connect_service(address, Wait::millis(10_000))?;
    let reply = votes.call(choice.as_bytes(), Wait::millis(10_000))?;
    println!("{choice}: {}", String::from_utf8_lossy(&reply));
    Ok(())
}
