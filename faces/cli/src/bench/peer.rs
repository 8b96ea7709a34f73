//! The other process of a benchmark, and how the first one leads it.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use hamlyn::Manager;
use hamlyn::host::process::ProcessHost;
use serde::{Deserialize, Serialize};

use super::{latency, memory, raw::Ground, throughput};
use crate::actor::{Actor, Role, answer, next_order};

/// What the other process is to do next. It answers first where there is
/// something to say, then takes part.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    /// Stay on that processor, use that memory.
    Settle { processor: usize, ground: PathBuf },
    /// The other side of the raw hand-off.
    Raw { round_trips: u64 },
    /// The other side of the raw put.
    RawPut { size: usize, bytes: usize },
    /// Open the ends of a protocol; answers with what grows the other end.
    Open { protocol: latency::Protocol },
    /// The other side of round trips with it.
    Echo {
        protocol: latency::Protocol,
        grown: Vec<String>,
        round_trips: u64,
    },
    /// Take that many short messages.
    Drain { messages: u64 },
    /// Take that many messages of that size.
    Swallow {
        size: usize,
        messages: u64,
        credit: String,
    },
    /// Connect that many idle interfaces to that ticket.
    Idle { ticket: String, peers: usize },
}

/// Both processes, as the first one sees them.
pub(crate) struct Pair {
    pub(crate) actor: Actor,
    pub(crate) ground: Ground,
    pub(crate) manager: Manager<ProcessHost>,
}

impl Pair {
    pub(crate) fn start(processor: usize) -> Result<Self> {
        let mut actor = Actor::start(Role::Bench, None)?;
        let ground = Ground::create()?;
        actor.order(&Order::Settle {
            processor,
            ground: ground.path(),
        })?;
        let () = actor.answer()?;
        Ok(Self {
            actor,
            ground,
            manager: super::open()?,
        })
    }

    /// The raw hand-off now, in nanoseconds.
    pub(crate) fn raw(&mut self, round_trips: u64) -> Result<f64> {
        self.actor.order(&Order::Raw { round_trips })?;
        let () = self.actor.answer()?;
        Ok(self.ground.lead(round_trips))
    }

    pub(crate) fn finish(self) -> Result<()> {
        drop(self.manager);
        self.actor.finish()
    }
}

/// The other process.
pub(crate) fn run() -> Result<()> {
    let Some(Order::Settle { processor, ground }) = next_order()? else {
        bail!("not told where to be");
    };
    super::pin(processor)?;
    let mut ground = Ground::open(&ground)?;
    let mut manager = super::open()?;
    answer(&())?;
    let mut latency = None;
    let mut idle = Vec::new();
    while let Some(order) = next_order()? {
        match order {
            Order::Settle { .. } => bail!("settled already"),
            Order::Raw { round_trips } => {
                answer(&())?;
                ground.follow(round_trips);
            }
            Order::RawPut { size, bytes } => {
                answer(&())?;
                ground.follow_put(size, bytes)?;
            }
            Order::Open { protocol } => {
                let end = latency::End::open(&mut manager, protocol)?;
                answer(&end.grows_from(&manager)?)?;
                latency = Some(end);
            }
            Order::Echo {
                protocol: _,
                grown,
                round_trips,
            } => {
                let end = latency.as_mut().context("no protocol is open")?;
                if !grown.is_empty() {
                    end.grow(&mut manager, &grown)?;
                }
                answer(&())?;
                end.echo(&mut manager, round_trips)?;
            }
            Order::Drain { messages } => throughput::drain(&mut manager, messages)?,
            Order::Swallow {
                size,
                messages,
                credit,
            } => {
                throughput::swallow(&mut manager, size, messages, &credit)?;
            }
            Order::Idle { ticket, peers } => {
                memory::connect_idle(&mut idle, &ticket, peers)?;
                answer(&())?;
            }
        }
    }
    Ok(())
}
