//! The processes of a pair of a soak ([`super::pairs`]): one sends what it is told to, the other
//! takes all of it.

use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hamlyn::host::process::{NetworkUse, Options};
use hamlyn::mailbox::{self, MailboxOptions};
use hamlyn::{ManagerOptions, SendError, Strategy, Ticket, Wait};
use hamlyn_cli::actor::{answer, from_hex, next_order, to_hex};
use serde::{Deserialize, Serialize};

use super::content::{self, Kind};

const LOG_BYTES: u32 = 4 << 20;
/// The time that a message which was sent may take, beside the time for which its receiver is stopped.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The orders of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// To take all messages to the mailbox of which it says the ticket: the first order.
    Receive {
        namespace: String,
        /// The strategy by its name: it tells who drives the interface.
        strategy: String,
        /// Which pair it is.
        number: u64,
    },
    /// To say how many it has taken, once it has taken so many.
    Until(u64),
    /// To connect to that mailbox: the first order of the other process.
    Send {
        namespace: String,
        ticket: String,
        number: u64,
    },
    /// To send so many messages, or fewer if there is no room, and to say [`Used`]; if none, to
    /// hand over all that were accepted.
    Go(u64),
}

/// A sender's word of its messages and of its receiver's log.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(super) struct Used {
    pub(super) messages: u64,
    pub(super) episodes: u64,
    pub(super) spilled_bytes: u64,
    pub(super) waiting_bytes: u64,
    pub(super) most_waiting_bytes: u64,
    pub(super) pauses: u64,
    pub(super) pages: u64,
    pub(super) most_pages: u64,
    pub(super) log_bytes: u64,
}

pub(crate) fn run() -> Result<()> {
    match next_order()? {
        Some(Order::Receive {
            namespace,
            strategy,
            number,
        }) => receive(&namespace, &strategy, number),
        Some(Order::Send {
            namespace,
            ticket,
            number,
        }) => send(&namespace, &ticket, number),
        other => bail!("{other:?} is not a first order"),
    }
}

fn options(namespace: &str) -> Options {
    let mut options = Options::default().in_namespace(namespace);
    options.network = NetworkUse::Off;
    options
}

fn receive(namespace: &str, strategy: &str, number: u64) -> Result<()> {
    let mut options = options(namespace);
    options.buffer_bytes_per_peer = LOG_BYTES;
    let strategy = Strategy::ALL.into_iter().find(|it| it.name() == strategy);
    let manager_options = ManagerOptions {
        strategy: strategy.context("no such strategy")?,
        ..ManagerOptions::default()
    };
    let manager = hamlyn::open_with(options, manager_options)?;
    // A network processor moves what the ring and the log hold to the queue.
    let mailbox_options = MailboxOptions {
        queue_bytes: 1 << 28,
        ..MailboxOptions::default()
    };
    let mut inbox = mailbox::Receiver::new(&manager, mailbox_options)?;
    answer(&to_hex(&inbox.ticket().to_bytes()))?;
    let (orders, heard) = channel();
    std::thread::spawn(move || {
        // An error is the end of the conducting process, too.
        while let Ok(Some(order)) = next_order::<Order>() {
            if orders.send(order).is_err() {
                return;
            }
        }
    });
    let (mut taken, mut expected) = (0, Vec::new());
    let mut until: Option<(u64, Instant)> = None;
    loop {
        match heard.try_recv() {
            Ok(Order::Until(count)) => until = Some((count, Instant::now())),
            Ok(other) => bail!("{other:?} is no order for a receiver"),
            Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) => {}
        }
        if let Some(came) = inbox.recv(Wait::millis(20))? {
            content::message(number, Kind::Tag, taken, &mut expected);
            ensure!(
                *came == expected[..],
                "pair {number}: another message than {taken}"
            );
            taken += 1;
        }
        if let Some((count, since)) = until
            && (taken >= count || since.elapsed() > TIMEOUT)
        {
            answer(&taken)?;
            until = None;
        }
    }
}

fn send(namespace: &str, ticket: &str, number: u64) -> Result<()> {
    let manager = hamlyn::open_with(options(namespace), ManagerOptions::default())?;
    let ticket = Ticket::from_bytes(&from_hex(ticket)?)?;
    let sender = mailbox::Sender::grow(&manager, &ticket, Wait::millis(10_000))?;
    let link = manager.session().peers().next().map(|(link, _)| link);
    let link = link.context("there is no link")?;
    let (mut used, mut data) = (Used::default(), Vec::new());
    while let Some(order) = next_order()? {
        let Order::Go(count) = order else {
            bail!("{order:?} is no order for a sender");
        };
        for _ in 0..count {
            content::message(number, Kind::Tag, used.messages, &mut data);
            match sender.send(&data, Wait::millis(1)) {
                Ok(_) => used.messages += 1,
                Err(SendError::WouldBlock { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        if count == 0 {
            let are_gone = manager.flush(Wait::For(TIMEOUT))?;
            ensure!(
                are_gone,
                "pair {number}: messages wait for a receiver that runs"
            );
            // A sleep, in which it gives back what it has reserved.
            manager.next_event(Wait::millis(20))?;
        } else {
            manager.session().poll();
        }
        let log = manager.session().log_use(link).context("there is no log")?;
        used = Used {
            messages: used.messages,
            episodes: log.episodes,
            spilled_bytes: log.spilled_bytes,
            waiting_bytes: log.waiting_bytes,
            most_waiting_bytes: log.most_bytes,
            pauses: log.pauses,
            pages: log.pages,
            most_pages: log.most_pages,
            log_bytes: log.log_bytes,
        };
        answer(&used)?;
    }
    Ok(())
}
