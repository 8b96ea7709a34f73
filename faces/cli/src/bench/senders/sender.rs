//! A process of senders: one, unless the system refuses so many processes.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions, Message, Target, Ticket, Wait};
use serde::{Deserialize, Serialize};

use super::{LAST, MESSAGES_PER_LOOK, SLOT_BYTES};
use crate::actor::{answer, from_hex, next_order};
use crate::bench::{SPIN_NS, memory, pin};

const MESSAGE_BYTES: u64 = 16;
/// All connect at once, and the receiver answers a few at a time.
const CONNECT_WAIT: Wait = Wait::millis(60_000);

/// What it is to do next. It answers when it is done.
#[derive(Serialize, Deserialize)]
pub(super) enum Order {
    /// Stay on those processors; open an interface for each of these numbers and tickets.
    Open {
        processors: Vec<usize>,
        tickets: Vec<(u64, String)>,
    },
    /// Connect those that were opened last. Answers with the private memory that it took.
    Connect,
    /// Send until the next order, which is to stop. No answer.
    Send { only_first: bool },
    /// Stop. Answers with the number of messages sent.
    Stop,
}

/// One sender.
struct Sender {
    number: u64,
    manager: Manager<ProcessHost>,
    ticket: Ticket,
    target: Option<Target>,
}

impl Sender {
    fn open(number: u64, ticket: &str) -> Result<Self> {
        let mut options = Options::default().in_namespace("bench");
        // The default would be not to poll at all where there is but one processor.
        options.spin_ns = Some(SPIN_NS);
        Ok(Self {
            number,
            manager: hamlyn::open_with(options, ManagerOptions::default())?,
            ticket: Ticket::from_bytes(&from_hex(ticket)?)?,
            target: None,
        })
    }

    fn connect(&mut self) -> Result<()> {
        let interface = self.manager.interface_mut();
        self.target = Some(interface.target(&self.ticket, CONNECT_WAIT)?);
        Ok(())
    }

    /// Sends until it is to stop. How many messages.
    fn send(&mut self, stop: &AtomicBool) -> Result<u64> {
        let target = self.target.as_ref().context("not connected")?;
        let terminus = self.manager.terminus();
        let interface = self.manager.interface_mut();
        let mut turn = 0_u64;
        let mut data = [0; MESSAGE_BYTES as usize];
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..MESSAGES_PER_LOOK {
                data[..8].copy_from_slice(&turn.to_le_bytes());
                let message = Message::new(&data)
                    .at(turn % (SLOT_BYTES / MESSAGE_BYTES) * MESSAGE_BYTES)
                    .word(self.number);
                interface.send_msg(terminus, target, &message, Wait::Forever)?;
                turn += 1;
            }
        }
        let last = Message::new(&data).word(self.number | LAST);
        interface.send_msg(terminus, target, &last, Wait::Forever)?;
        interface.flush(Wait::Forever)?;
        Ok(turn + 1)
    }
}

/// The process.
pub(crate) fn run() -> Result<()> {
    let mut senders: Vec<Sender> = Vec::new();
    while let Some(order) = next_order()? {
        match order {
            Order::Open {
                processors,
                tickets,
            } => {
                pin(&processors)?;
                for (number, ticket) in &tickets {
                    senders.push(Sender::open(*number, ticket)?);
                }
                answer(&())?;
            }
            Order::Connect => {
                let before = memory::used_bytes()?;
                for sender in senders.iter_mut().filter(|sender| sender.target.is_none()) {
                    sender.connect()?;
                }
                answer(&memory::used_bytes()?.since(before).private)?;
            }
            Order::Send { only_first } => {
                let many = if only_first { 1 } else { senders.len() };
                answer(&send(&mut senders[..many])?)?;
            }
            Order::Stop => bail!("nothing is sent"),
        }
    }
    Ok(())
}

/// Has all of these send until the next order.
fn send(senders: &mut [Sender]) -> Result<u64> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = senders
            .iter_mut()
            .map(|sender| scope.spawn(|| sender.send(&stop)))
            .collect();
        let order = next_order::<Order>();
        stop.store(true, Ordering::Relaxed);
        let mut sent = 0;
        for thread in threads {
            sent += thread
                .join()
                .map_err(|_| anyhow!("a sender did not end well"))??;
        }
        match order? {
            Some(Order::Stop) => Ok(sent),
            _ => bail!("told something else while sending"),
        }
    })
}
