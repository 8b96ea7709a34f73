//! Two users who do not trust each other (as root, who may become anybody). The receiver lets one
//! user in; the kernel says who sends, whatever the sender says.
//!
//! ```text
//! users receive 65534      # lets that user in, and ends after one message
//! users send 65534 "hello" # becomes that user
//! ```

use hamlyn::host::process::{Access, Options};
use hamlyn::{ManagerOptions, Wait};
use hamlyn_examples::Outcome;
use rustix::process::{Gid, Uid};

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", user] => receive(user.parse()?),
        ["send", user, text] => send(user.parse()?, text),
        _ => Err("usage: users receive USER | users send USER TEXT".into()),
    }
}

fn options(name: Option<&str>, other: u32) -> Options {
    let mut options = name.map_or_else(Options::default, Options::named);
    options.access = Access::Listed {
        users: vec![other],
        groups: Vec::new(),
    };
    options
}

fn receive(user: u32) -> Outcome {
    let vault = hamlyn::open_with(options(Some("vault"), user), ManagerOptions::default())?;
    let mut slot = vault.bind_datagram("slot", 256)?;
    if let Some(message) = slot.recv(Wait::Forever)? {
        let sender = message.sender().ok_or("its sender is gone")?;
        println!(
            "user {}: {}",
            sender.interface.user,
            String::from_utf8_lossy(&message)
        );
    }
    Ok(())
}

fn send(user: u32, text: &str) -> Outcome {
    let before = rustix::process::getuid().as_raw();
    rustix::thread::set_thread_gid(Gid::from_raw(user))?;
    rustix::thread::set_thread_uid(Uid::from_raw(user))?;
    let me = hamlyn::open_with(options(None, before), ManagerOptions::default())?;
    let slot = me.connect_datagram("vault/slot", Wait::millis(5_000))?;
    slot.send(text.as_bytes(), Wait::Forever)?;
    me.flush(Wait::millis(5_000))?;
    Ok(())
}
