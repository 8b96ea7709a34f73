//! The party in Rust. It understands the lines about mailboxes, and is a test of this very program,
//! which another process of the program runs.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::io::BufRead;
use std::process::Command;
use std::time::Duration;

use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::terminus::PostError;
use hamlyn::host::process::Options;
use hamlyn::mailbox::{self, MailboxOptions};
use hamlyn::{FenceError, Manager, ManagerOptions, SendError, Strategy, Ticket, Wait};
use hamlyn_c::status::Status;

use crate::mailboxes::{hash, pattern};

/// Set for the process that is a party.
const IS_PARTY: &str = "HAMLYN_IS_PARTY_IN_RUST";
/// The line after which a party answers.
const READY: &str = "ready";

/// The command that starts such a party.
pub(crate) fn command() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "in_rust::party", "--nocapture"]);
    command.env(IS_PARTY, "1");
    command
}

/// Skips the lines that the harness of the tests prints first.
pub(crate) fn skip_words_of_harness(answers: &mut impl BufRead) {
    let mut line = String::new();
    while line.trim_end() != READY {
        line.clear();
        let length = answers.read_line(&mut line).unwrap();
        assert!(length > 0, "the party in Rust ended");
    }
}

#[test]
fn party() {
    if std::env::var_os(IS_PARTY).is_none() {
        return;
    }
    println!("\n{READY}");
    let mut party = Party::default();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        match party.does(&line) {
            Ok(answer) => println!("0 {answer}"),
            Err(error) => println!("{} {error}", status_of(&*error) as i32),
        }
    }
}

/// Nothing came in time.
#[derive(Debug)]
struct NothingCame;

impl fmt::Display for NothingCame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing came in time")
    }
}

impl Error for NothingCame {}

fn status_of(error: &(dyn Error + 'static)) -> Status {
    if error.is::<NothingCame>() {
        return Status::TimedOut;
    }
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(FenceError::Refused { .. }), _) => Status::Refused,
        (_, Some(SendError::Refused(PostError::FastTooLong { .. }))) => Status::TooLong,
        (_, Some(SendError::OutsideTicket(_))) => Status::TooLong,
        _ => Status::Fault,
    }
}

#[derive(Default)]
struct Party {
    manager: Option<Manager>,
    receivers: HashMap<u32, mailbox::Receiver>,
    senders: HashMap<u32, mailbox::Sender>,
}

impl Party {
    fn does(&mut self, line: &str) -> Result<String, Box<dyn Error>> {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (verb, at) = (word(), word().parse().unwrap_or_default());
        let limit_ms: i64 = word().parse().unwrap_or_default();
        let (text, more) = (word(), word());
        let wait = match u64::try_from(limit_ms) {
            Ok(limit_ms) => Wait::For(Duration::from_millis(limit_ms)),
            Err(_) => Wait::Forever,
        };
        if verb == "open" {
            self.manager = Some(open(text, more)?);
            return Ok(String::new());
        }
        let manager = self.manager.as_ref().ok_or("no manager is open")?;
        let no_end = || format!("{line}: there is no such end");
        match verb {
            "poll" => {
                manager.poll_nowait()?;
            }
            "bind_mailbox" => {
                let mut options = MailboxOptions::default();
                match more.parse()? {
                    0 => {}
                    queue_bytes => options.queue_bytes = queue_bytes,
                }
                let receiver = match text {
                    "-" => mailbox::Receiver::new(manager, options)?,
                    item => manager.bind_mailbox(item, options)?,
                };
                self.receivers.insert(at, receiver);
            }
            "connect_mailbox" => {
                let sender = manager.connect_mailbox(text, wait)?;
                self.senders.insert(at, sender);
            }
            "grow_mailbox" => {
                let ticket = Ticket::from_bytes(&bytes_of(text)?)?;
                let sender = mailbox::Sender::grow(manager, &ticket, wait)?;
                self.senders.insert(at, sender);
            }
            "mail_bytes_max" | "send_mail" | "fence_mailbox" => {
                let sender = self.senders.get(&at).ok_or_else(no_end)?;
                return posts(sender, verb, wait, text, more);
            }
            _ => {
                let receiver = self.receivers.get_mut(&at).ok_or_else(no_end)?;
                return takes(receiver, verb, wait, text);
            }
        }
        Ok(String::new())
    }
}

fn open(name: &str, strategy: &str) -> Result<Manager, Box<dyn Error>> {
    let strategies = [
        Strategy::Proc,
        Strategy::Np,
        Strategy::Inject,
        Strategy::Receive,
    ];
    let mut host = Options::default();
    host.name = Some(name.to_owned());
    let options = ManagerOptions {
        strategy: strategies[strategy.parse::<usize>()?],
        ..ManagerOptions::default()
    };
    Ok(hamlyn::open_with(host, options)?)
}

/// The lines for a sending end.
fn posts(
    sender: &mailbox::Sender,
    verb: &str,
    wait: Wait,
    seed: &str,
    lengths: &str,
) -> Result<String, Box<dyn Error>> {
    match verb {
        "mail_bytes_max" => {
            let longest = sender.message_bytes_max().ok_or("the link has ended")?;
            return Ok(longest.to_string());
        }
        "send_mail" => {
            for length in lengths.split(',') {
                sender.send(&pattern(seed.parse()?, length.parse()?), wait)?;
            }
        }
        _ => sender.fence(wait)?,
    }
    Ok(String::new())
}

/// The lines for a receiving end.
fn takes(
    receiver: &mut mailbox::Receiver,
    verb: &str,
    wait: Wait,
    reason: &str,
) -> Result<String, Box<dyn Error>> {
    match verb {
        "recv_mail" => {
            let mail = receiver.recv(wait)?.ok_or(NothingCame)?;
            let process = mail.sender().ok_or("its sender is not known")?.process;
            Ok(format!("{process} {} {:x}", mail.len(), hash(&mail)))
        }
        "mailbox_ticket" => {
            let bytes = receiver.ticket().to_bytes();
            Ok(bytes.map(|byte| format!("{byte:02x}")).concat())
        }
        "revoke_mailbox" => {
            receiver.revoke()?;
            Ok(String::new())
        }
        "mailbox_info" => {
            let info = receiver.info()?;
            let reason = Refusal::ALL[reason.parse::<usize>()?];
            let (all, refused) = (info.refusals.total(), info.refusals.count(reason));
            Ok(format!(
                "{} {} {} {all} {refused}",
                info.waiting, info.waiting_bytes, info.queued
            ))
        }
        _ => Err(format!("no verb is called {verb}").into()),
    }
}

/// Bytes that two digits each stand for.
fn bytes_of(digits: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let pairs = (0..digits.len()).step_by(2);
    let bytes = pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
    Ok(bytes.collect::<Result<_, _>>()?)
}
