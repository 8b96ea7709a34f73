//! One process of a pair.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions, Message, NewSlot, Queue, Target, Ticket, Wait};
use serde::{Deserialize, Serialize};

use crate::bench::pin;
use hamlyn_cli::actor::{answer, from_hex, next_order, to_hex};

const SLOT_BYTES: u64 = 1024;
const MESSAGE_BYTES: u64 = 16;
/// Messages between two looks at the clock.
const MESSAGES_PER_LOOK: u64 = 16;
const CONNECT_WAIT: Wait = Wait::millis(30_000);
/// The word of the last message.
const LAST: u64 = u64::MAX;

/// What goes on between the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Exchange {
    RoundTrips,
    Stream,
}

impl Exchange {
    pub(crate) const ALL: [Exchange; 2] = [Exchange::RoundTrips, Exchange::Stream];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Exchange::RoundTrips => "round_trips",
            Exchange::Stream => "stream",
        }
    }
}

/// What the process is to do next. It answers when it is done.
#[derive(Serialize, Deserialize)]
pub(super) enum Order {
    /// Stay on those processors and open an interface; answers with the ticket for the other one.
    Settle { processors: Vec<usize> },
    /// Connect to the other one.
    Meet { ticket: String },
    /// Exchange messages with it, on those processors. The leading process answers with the number
    /// per second, during a window that begins a little after the order.
    Exchange {
        exchange: Exchange,
        processors: Vec<usize>,
        leads: bool,
        window_ns: u64,
    },
}

/// One end of the pair.
struct Process {
    manager: Manager<ProcessHost>,
    queue: Queue,
    target: Target,
}

impl Process {
    #[inline]
    fn send(&mut self, word: u64) -> Result<()> {
        let terminus = self.manager.terminus();
        let mut data = [0; MESSAGE_BYTES as usize];
        data[..8].copy_from_slice(&word.to_le_bytes());
        let place = word % (SLOT_BYTES / MESSAGE_BYTES) * MESSAGE_BYTES;
        let message = Message::new(&data).at(place).word(word);
        self.manager
            .session()
            .send_msg(terminus, &self.target, &message, Wait::Forever)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Result<u64> {
        let mut interface = self.manager.session();
        let taken = interface.rcv_block(&mut self.queue, Wait::Forever)?;
        Ok(taken.context("nothing came")?.word)
    }

    fn lead(&mut self, exchange: Exchange, window: Duration) -> Result<f64> {
        let begun = Instant::now();
        let from = begun + window / 4;
        let until = from + window;
        let mut turn = 0;
        let mut window = None;
        let rate = loop {
            for _ in 0..MESSAGES_PER_LOOK {
                self.send(turn)?;
                if exchange == Exchange::RoundTrips && self.receive()? != turn {
                    bail!("an answer to another message");
                }
                turn += 1;
            }
            let now = Instant::now();
            match window {
                None if now >= from => window = Some((now, turn)),
                Some((since, first)) if now >= until => {
                    break (turn - first) as f64 / (now - since).as_secs_f64();
                }
                _ => {}
            }
        };
        self.send(LAST)?;
        self.manager.session().flush(Wait::Forever)?;
        Ok(rate)
    }

    fn follow(&mut self, exchange: Exchange) -> Result<()> {
        let mut expected = 0;
        loop {
            match self.receive()? {
                LAST => return Ok(()),
                word if word == expected => expected += 1,
                _ => bail!("a message is missing"),
            }
            if exchange == Exchange::RoundTrips {
                self.send(expected - 1)?;
            }
        }
    }
}

/// The process.
pub(crate) fn run() -> Result<()> {
    let Some(Order::Settle { processors }) = next_order()? else {
        bail!("not told where to be");
    };
    pin(&processors)?;
    let manager = hamlyn::open_with(
        Options::default().in_namespace("bench"),
        ManagerOptions::default(),
    )?;
    let mut interface = manager.session();
    let area = interface.allocate(SLOT_BYTES)?;
    let queue = interface.open_queue(4096)?;
    let slot = interface.open_slot(NewSlot::new(&area).queue(&queue))?;
    drop(interface);
    answer(&to_hex(&slot.fast_ticket(0, SLOT_BYTES)?.to_bytes()))?;
    let Some(Order::Meet { ticket }) = next_order()? else {
        bail!("not told whom to meet");
    };
    let ticket = Ticket::from_bytes(&from_hex(&ticket)?)?;
    let target = manager.session().target(&ticket, CONNECT_WAIT)?;
    answer(&())?;
    let mut process = Process {
        manager,
        queue,
        target,
    };
    while let Some(order) = next_order()? {
        let Order::Exchange {
            exchange,
            processors,
            leads,
            window_ns,
        } = order
        else {
            bail!("settled already");
        };
        pin(&processors)?;
        if leads {
            answer(&process.lead(exchange, Duration::from_nanos(window_ns))?)?;
        } else {
            process.follow(exchange)?;
            answer(&())?;
        }
    }
    Ok(())
}
