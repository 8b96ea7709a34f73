//! A receiver that is stopped, and a sender that is not (docs/stopped-receivers.md). Run without
//! arguments, it starts itself once more, as the receiver.

use std::process::{Command, Stdio};

use hamlyn::Wait;
use hamlyn::mailbox::MailboxOptions;
use rustix::process::{Pid, Signal, kill_process};

type Outcome = Result<(), Box<dyn std::error::Error>>;
const LONG: Wait = Wait::millis(20_000);
/// Many times what a ring holds.
const MESSAGES: u64 = 50_000;

fn main() -> Outcome {
    match std::env::args().nth(1).as_deref() {
        None => send(),
        Some("receive") => receive(),
        Some(_) => Err("usage: busy [receive]".into()),
    }
}

fn receive() -> Outcome {
    let here = hamlyn::open("busy")?;
    let mut inbox = here.bind_mailbox("in", MailboxOptions::default())?;
    let mut next = 0_u64;
    while next < MESSAGES {
        let mail = inbox.recv(LONG)?.ok_or("the sender is gone")?;
        if *mail != next.to_le_bytes() {
            return Err(format!("message {next} did not come in its turn").into());
        }
        next += 1;
    }
    println!("took {next} messages, in order");
    Ok(())
}

fn send() -> Outcome {
    let mut receiver = Command::new(std::env::current_exe()?)
        .arg("receive")
        .stdout(Stdio::inherit())
        .spawn()?;
    let me = hamlyn::open_unnamed()?;
    let sender = me.connect_mailbox("busy/in", LONG)?;
    let process = Pid::from_child(&receiver);
    // A debugger, a frozen container and a long computation do the same.
    kill_process(process, Signal::STOP)?;
    for number in 0..MESSAGES {
        sender.send(&number.to_le_bytes(), LONG)?;
    }
    println!("sent {MESSAGES} messages to a process that is stopped");
    let peer = me.session().peers().next().map(|(link, _)| link);
    if let Some(used) = peer.and_then(|link| me.session().log_use(link)) {
        println!("{} MiB wait in its memory", used.waiting_bytes >> 20);
    }
    kill_process(process, Signal::CONT)?;
    match receiver.wait()?.success() {
        true => Ok(()),
        false => Err("the receiver failed".into()),
    }
}
