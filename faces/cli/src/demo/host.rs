//! What runs on each host of the demonstration: a program like any other, which was told of the
//! network by its environment. It is reached by a name, takes messages there, and sends to names of
//! other hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hamlyn::host::Supply;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Address, Manager, ManagerOptions, SendError, Ticket, Wait, tagged_write};
use serde::{Deserialize, Serialize};

use hamlyn_cli::actor::{answer, next_order};

/// Its name, and what it offers there.
pub(super) const DESK: &str = "desk";
const ITEM: &str = "ticket";
const AREA_BYTES: u64 = 4096;
/// Tags that wait to be taken at most.
const TAGS: usize = 1 << 16;
const TIMEOUT: Duration = Duration::from_secs(30);
const WAIT: Wait = Wait::For(TIMEOUT);
/// How often somebody is written to who may be gone.
const KNOCK: Duration = Duration::from_millis(5);

/// What is to be done.
#[derive(Serialize, Deserialize)]
pub(super) enum Order {
    /// Send so many messages to each of these, and take as many from them; answers with a
    /// [`Route`].
    Exchange {
        to: Vec<String>,
        from: u64,
        messages: u64,
    },
    /// Look for somebody for so long; answers with the error, if there is one.
    Seek { whom: String, seconds: u64 },
    /// Send until it turns out that nobody is there; answers with the [`Loss`].
    Persist { to: String },
}

/// How messages went.
#[derive(Serialize, Deserialize)]
pub(super) struct Route {
    pub(super) is_encrypted: bool,
    pub(super) local: String,
    pub(super) peer: String,
}

/// What somebody heard of the end of another.
#[derive(Serialize, Deserialize)]
pub(super) struct Loss {
    pub(super) error: String,
    pub(super) seconds: f64,
    /// Packets that came back.
    pub(super) returned: u64,
}

struct Program {
    manager: Manager<ProcessHost>,
    inbox: tagged_write::Receiver,
    /// To whom there is a link, unless it has ended.
    senders: BTreeMap<String, tagged_write::Sender>,
}

pub(crate) fn run() -> Result<()> {
    let manager = hamlyn::open_with(Options::named(DESK), ManagerOptions::default())?;
    let inbox = tagged_write::Receiver::new(&manager, AREA_BYTES, TAGS)?;
    let ticket = inbox.ticket().to_bytes();
    manager.session().offer(ITEM, Supply::Always, &ticket)?;
    let mut program = Program {
        manager,
        inbox,
        senders: BTreeMap::new(),
    };
    answer(&())?;
    while let Some(order) = next_order()? {
        match order {
            Order::Exchange { to, from, messages } => {
                answer(&program.exchange(&to, from, messages)?)?;
            }
            Order::Seek { whom, seconds } => {
                let wait = Wait::For(Duration::from_secs(seconds));
                let found = program
                    .manager
                    .session()
                    .ask(Address::Name(&whom), ITEM, wait);
                answer(&found.err().map(|error| error.to_string()))?;
            }
            Order::Persist { to } => answer(&program.persist(&to)?)?,
        }
    }
    Ok(())
}

impl Program {
    fn sender(&mut self, to: &str) -> Result<tagged_write::Sender> {
        let ticket = self.manager.session().ask(Address::Name(to), ITEM, WAIT)?;
        let ticket = Ticket::from_bytes(&ticket)?;
        let sender = tagged_write::Sender::grow(&self.manager, &ticket, WAIT)?;
        self.senders.insert(to.to_owned(), sender.clone());
        Ok(sender)
    }

    /// Sends and takes in turn: a message is acknowledged when it was taken, so somebody who only
    /// sends holds up the others.
    fn exchange(&mut self, to: &[String], from: u64, messages: u64) -> Result<Route> {
        let mut senders = Vec::new();
        for name in to {
            senders.push(self.sender(name)?);
        }
        let peers = senders.len() as u64;
        let all = peers * messages;
        let (mut sent, mut tags) = (0, BTreeSet::new());
        let mut progress = Instant::now();
        while sent < all || (tags.len() as u64) < all {
            let mut is_idle = true;
            while sent < all {
                let (number, turn) = (sent / peers, (sent % peers) as usize);
                let tag = from << 32 | number;
                let (place, data) = (number % 64 * 8, tag.to_le_bytes());
                let sender = &senders[turn];
                match sender.send(place, &data, tag, Wait::Poll) {
                    Ok(_) => sent += 1,
                    Err(SendError::WouldBlock { .. }) => break,
                    Err(error) => return Err(error.into()),
                }
                is_idle = false;
            }
            while let Some(tag) = self.take()? {
                ensure!(tags.insert(tag), "message {tag:#x} came twice");
                is_idle = false;
            }
            if is_idle {
                ensure!(
                    progress.elapsed() < TIMEOUT,
                    "{sent} of {all} sent, {} came, and nothing more happens",
                    tags.len()
                );
                self.manager.wait(Wait::For(KNOCK))?;
            } else {
                progress = Instant::now();
            }
        }
        ensure!(
            self.manager.session().flush(WAIT)?,
            "messages are left over"
        );
        ensure!(self.take()?.is_none(), "more came than were sent");
        let interface = self.manager.session();
        let mut states = interface
            .peers()
            .filter_map(|(link, _)| interface.connection_state(link));
        let state = states.next().context("no link over the wire")?;
        Ok(Route {
            is_encrypted: state.is_encrypted,
            local: state.local.ip().to_string(),
            peer: state.peer.ip().to_string(),
        })
    }

    fn take(&mut self) -> Result<Option<u64>> {
        Ok(self.inbox.get_tag(Wait::Poll)?)
    }

    fn persist(&mut self, to: &str) -> Result<Loss> {
        let sender = self.senders.get(to);
        let sender = sender.with_context(|| format!("{to} was never written to"))?;
        let begun = Instant::now();
        let error = loop {
            match sender.send(0, &[0; 8], u64::MAX, Wait::For(KNOCK)) {
                // A message for which there is no room is one more that waits.
                Ok(_) | Err(SendError::WouldBlock { .. }) => {}
                Err(error) => break error,
            }
            ensure!(
                begun.elapsed() < TIMEOUT,
                "nobody noticed that {to} is cut off"
            );
            self.manager.wait(Wait::For(KNOCK))?;
        };
        let mut returned = 0;
        while self.manager.session().next_undelivered().is_some() {
            returned += 1;
        }
        Ok(Loss {
            error: error.to_string(),
            seconds: begun.elapsed().as_secs_f64(),
            returned,
        })
    }
}
