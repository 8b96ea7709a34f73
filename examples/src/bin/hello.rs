//! Datagrams. One program receives, others send; they know each other by name.
//!
//! ```text
//! hello receive 2          # ends after two messages
//! hello send "good morning"
//! ```

use hamlyn::{FenceError, Wait};
use hamlyn_examples::Outcome;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", count] => receive(count.parse()?),
        ["send", text] => send(text),
        _ => Err("usage: hello receive COUNT | hello send TEXT".into()),
    }
}

fn receive(count: usize) -> Outcome {
    let alice = hamlyn::open("alice")?;
    let mut inbox = alice.bind_datagram("inbox", 4096)?;
    for _ in 0..count {
        if let Some(message) = inbox.recv(Wait::Forever)? {
            let sender = message
                .sender()
                .map_or("somebody".into(), |it| it.to_string());
            println!("{sender} says: {}", String::from_utf8_lossy(&message));
        } // The next message is let in where this one goes.
    }
    Ok(())
}

fn send(text: &str) -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let outbox = me.connect_datagram("alice/inbox", Wait::millis(5_000))?;
    loop {
        outbox.send(text.as_bytes(), Wait::Forever)?;
        match outbox.fence(Wait::millis(5_000)) {
            // Another sender was first, and its message is still being read.
            Err(FenceError::Refused { .. }) => {}
            // The receiver ended; perhaps this was the last message that it took.
            Ok(()) | Err(FenceError::PeerLost(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
