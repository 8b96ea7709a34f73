//! One sender of many: a process.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions, Message, Target, Ticket, Wait};
use serde::{Deserialize, Serialize};

use super::{LAST, MESSAGES_PER_LOOK, SLOT_BYTES};
use crate::bench::{SPIN_NS, memory, pin};
use hamlyn_cli::actor::{answer, from_hex, next_order};

const MESSAGE_BYTES: u64 = 16;
/// All connect at once, and the receiver answers a few at a time.
const CONNECT_WAIT: Wait = Wait::millis(60_000);

/// What it is to do next. It answers when it is done.
#[derive(Serialize, Deserialize)]
pub(super) enum Order {
    /// Stay on those processors, and open an interface.
    Open {
        processors: Vec<usize>,
        number: u64,
        ticket: String,
    },
    /// Connect. Answers with the private memory that it took.
    Connect,
    /// Send until the next order, which is to stop. No answer.
    Send,
    /// Stop. Answers with the number of messages sent.
    Stop,
}

/// One sender.
struct Sender {
    number: u64,
    manager: Manager,
    ticket: Ticket,
    target: Option<Target>,
}

impl Sender {
    fn open(number: u64, ticket: &str) -> Result<Self> {
        let mut options = Options::default().in_namespace("bench");
        // The default would be not to poll at all where there is but one processor.
        options.spin_ns = Some(SPIN_NS);
        let host = ProcessHost::open(options)?;
        Ok(Self {
            number,
            manager: Manager::new(host, ManagerOptions::default())?,
            ticket: Ticket::from_bytes(&from_hex(ticket)?)?,
            target: None,
        })
    }

    fn connect(&mut self) -> Result<()> {
        self.target = Some(self.manager.session().target(&self.ticket, CONNECT_WAIT)?);
        Ok(())
    }

    /// Sends until it is to stop. How many messages.
    fn send(&mut self, stop: &AtomicBool) -> Result<u64> {
        let target = self.target.as_ref().context("not connected")?;
        let terminus = self.manager.terminus();
        let mut turn = 0_u64;
        let mut data = [0; MESSAGE_BYTES as usize];
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..MESSAGES_PER_LOOK {
                data[..8].copy_from_slice(&turn.to_le_bytes());
                let message = Message::new(&data)
                    .at(turn % (SLOT_BYTES / MESSAGE_BYTES) * MESSAGE_BYTES)
                    .word(self.number);
                self.manager
                    .session()
                    .send_msg(terminus, target, &message, Wait::Forever)?;
                turn += 1;
            }
        }
        let last = Message::new(&data).word(self.number | LAST);
        self.manager
            .session()
            .send_msg(terminus, target, &last, Wait::Forever)?;
        self.manager.flush(Wait::Forever)?;
        Ok(turn + 1)
    }
}

/// The process.
pub(crate) fn run() -> Result<()> {
    let Some(Order::Open {
        processors,
        number,
        ticket,
    }) = next_order()?
    else {
        bail!("not told whom to send to");
    };
    pin(&processors)?;
    let mut sender = Sender::open(number, &ticket)?;
    answer(&())?;
    while let Some(order) = next_order()? {
        match order {
            Order::Open { .. } => bail!("open already"),
            Order::Connect => {
                let before = memory::used_bytes()?;
                sender.connect()?;
                answer(&memory::used_bytes()?.since(before).private)?;
            }
            Order::Send => answer(&send_until_stopped(&mut sender)?)?,
            Order::Stop => bail!("nothing is sent"),
        }
    }
    Ok(())
}

/// Sends until the next order. How many messages.
fn send_until_stopped(sender: &mut Sender) -> Result<u64> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ordered = scope.spawn(|| {
            let order = next_order();
            stop.store(true, Ordering::Relaxed);
            order
        });
        let sent = sender.send(&stop)?;
        let order = ordered
            .join()
            .map_err(|_| anyhow!("the thread that reads orders did not end well"))?;
        match order? {
            Some(Order::Stop) => Ok(sent),
            _ => bail!("told something else while sending"),
        }
    })
}
