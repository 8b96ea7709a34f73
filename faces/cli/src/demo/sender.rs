//! The senders of the demonstration: processes of their own, of other users
//! where that may be. They know nothing but the tickets they are given.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result};
use hamlyn::group::{self, Member};
use hamlyn::host::process::{Access, Options};
use hamlyn::stream::{self, StreamSeed};
use hamlyn::{ManagerOptions, Message, Ticket, Wait, datagram, tagged_write};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use hamlyn_cli::actor::{answer, from_hex, next_order, to_hex};

const WAIT: Wait = Wait::millis(10_000);

/// What a sender is to do.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    /// Say who it is.
    Introduce,
    /// Send short messages with a tag each.
    Short { ticket: String, messages: u64 },
    /// Send a file as a stream; answers with its digest.
    Stream { seed: String, file: PathBuf },
    /// Send one's part of a group.
    Group { member: String, fill: u8 },
    /// Divide a part of a group in two; answers with the parts.
    Delegate { member: String },
    /// Send to a slot with a key that was made up.
    Forge { ticket: String },
    /// Send beyond the bounds of a ticket.
    Overrun { ticket: String },
    /// Send twice where once is allowed.
    Replay { ticket: String },
    /// Send a message that will not end.
    Endless { ticket: String, length_bytes: usize },
}

pub(crate) fn run() -> Result<()> {
    let mut options = Options::default().in_namespace("demo");
    options.access = Access::Anyone;
    let mut manager = hamlyn::open_with(options, ManagerOptions::default())?;
    while let Some(order) = next_order()? {
        match order {
            Order::Introduce => answer(&rustix::process::geteuid().as_raw())?,
            Order::Short { ticket, messages } => {
                let ticket = Ticket::from_bytes(&from_hex(&ticket)?)?;
                let sender = tagged_write::Sender::grow(&manager, &ticket, WAIT)?;
                for tag in 0..messages {
                    let data = tag.to_le_bytes();
                    sender.send(tag % 64 * 8, &data, tag, WAIT)?;
                }
                anyhow::ensure!(manager.session().flush(WAIT)?, "messages are left over");
                answer(&())?;
            }
            Order::Stream { seed, file } => {
                let seed = StreamSeed::from_bytes(&from_hex(&seed)?)?;
                let mut sender = stream::Sender::grow(&manager, &seed, WAIT)?;
                let mut file = std::fs::File::open(&file).context("opening the file")?;
                let mut digest = Sha256::new();
                let mut buffer = vec![0; 64 << 10];
                loop {
                    let length = file.read(&mut buffer)?;
                    if length == 0 {
                        break;
                    }
                    digest.update(&buffer[..length]);
                    sender.send(&buffer[..length], WAIT)?;
                }
                sender.close(WAIT)?;
                answer(&to_hex(&digest.finalize()))?;
            }
            Order::Group { member, fill } => {
                let member = Member::from_bytes(&from_hex(&member)?)?;
                let length = usize::try_from(member.ticket.length_bytes)?;
                let mut sender = group::Sender::grow(&manager, &member, WAIT)?;
                let data = vec![fill; length];
                let (first, last) = data.split_at(length / 3);
                sender.send(0, first, WAIT)?;
                sender.send_last(first.len() as u64, last, WAIT)?;
                anyhow::ensure!(manager.session().flush(WAIT)?, "messages are left over");
                answer(&())?;
            }
            Order::Delegate { member } => {
                let member = Member::from_bytes(&from_hex(&member)?)?;
                let half = member.ticket.length_bytes / 2;
                let parts = member.divide(&[half, member.ticket.length_bytes - half])?;
                let parts: Vec<String> =
                    parts.iter().map(|part| to_hex(&part.to_bytes())).collect();
                answer(&parts)?;
            }
            Order::Forge { ticket } => {
                let mut ticket = Ticket::from_bytes(&from_hex(&ticket)?)?;
                ticket.key = hamlyn::engine::key::Key::from_bits(ticket.key.to_bits() ^ 1);
                send_raw(&mut manager, &ticket, 0, b"let me in")?;
                answer(&())?;
            }
            Order::Overrun { ticket } => {
                let mut ticket = Ticket::from_bytes(&from_hex(&ticket)?)?;
                let end = ticket.length_bytes;
                // The library would refuse; a liar widens the ticket first.
                ticket.length_bytes += 64;
                send_raw(&mut manager, &ticket, end - 8, &[0; 64])?;
                answer(&())?;
            }
            Order::Replay { ticket } => {
                let ticket = Ticket::from_bytes(&from_hex(&ticket)?)?;
                let sender = datagram::Sender::grow(&manager, &ticket, WAIT)?;
                sender.send(b"once", WAIT)?;
                sender.send(b"twice", WAIT)?;
                answer(&())?;
            }
            Order::Endless {
                ticket,
                length_bytes,
            } => {
                let ticket = Ticket::from_bytes(&from_hex(&ticket)?)?;
                let target = manager.session().target(&ticket, WAIT)?;
                answer(&())?;
                let data = vec![1; length_bytes];
                let terminus = manager.terminus();
                let message = Message::new(&data);
                manager
                    .session()
                    .send_msg(terminus, &target, &message, Wait::Forever)?;
            }
        }
    }
    Ok(())
}

fn send_raw<H: hamlyn::Host>(
    manager: &mut hamlyn::Manager<H>,
    ticket: &Ticket,
    offset: u64,
    data: &[u8],
) -> Result<()> {
    let target = manager.session().target(ticket, WAIT)?;
    let terminus = manager.terminus();
    let message = Message::new(data).at(offset);
    manager
        .session()
        .send_msg(terminus, &target, &message, WAIT)?;
    Ok(())
}
