//! A lock (`hamlyn_locks`): processes count up one number, which is the value block of the lock, so
//! that none of them counts the number of another one.
//!
//! ```text
//! locks serve 2           # masters the lock until so many clients have come and gone
//! locks count 1000        # locks, counts, unlocks, so often; prints the last number
//! ```

use hamlyn::Wait;
use hamlyn::host::process::Options;
use hamlyn_am::{Node, NodeOptions, Tag};
use hamlyn_examples::Outcome;
use hamlyn_locks::{LockClient, LockServer, Mode, ServerOptions, ValueBlock};

const LONG: Wait = Wait::millis(20_000);
const SERVERS: [&str; 1] = ["locks"];

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", clients] => serve(clients.parse()?),
        ["count", times] => count(times.parse()?),
        _ => Err("usage: locks serve CLIENTS | locks count TIMES".into()),
    }
}

fn serve(clients: u64) -> Outcome {
    let node = Node::open(Options::named("locks"), NodeOptions::default())?;
    let mut server = LockServer::open(&node, "locks", &SERVERS, ServerOptions::default())?;
    loop {
        server.serve(LONG)?;
        let statistics = server.statistics();
        if statistics.clients == 0 && statistics.welcomed == clients {
            println!("{clients} clients, {} requests", statistics.requests);
            return Ok(());
        }
    }
}

fn count(times: u64) -> Outcome {
    let node = Node::open(Options::default(), NodeOptions::default())?;
    let client = LockClient::open(&node, &SERVERS, Tag::Any)?;
    // NL excludes nobody, and keeps the resource with its number between two locks.
    let mut lock = client.acquire("number", Mode::Nl, LONG)?;
    let mut number = 0;
    for _ in 0..times {
        lock.convert(Mode::Ex, LONG)?;
        number = match lock.value()? {
            ValueBlock::Missing => 0,
            ValueBlock::Valid(bytes) => u64::from_le_bytes(bytes[..8].try_into()?),
            ValueBlock::NotValid(_) => return Err("another counter died with the lock".into()),
        };
        number += 1;
        lock.set_value(&number.to_le_bytes())?;
        // Writes the number, and lets others in.
        lock.convert(Mode::Nl, LONG)?;
    }
    drop((lock, client));
    node.flush(LONG)?;
    println!("{number}");
    Ok(())
}
