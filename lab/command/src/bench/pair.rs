//! The two processes of a benchmark, as the first one sees them, and what it orders the other to
//! do.

use std::path::PathBuf;

use anyhow::{Context, Result};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Manager, Strategy};
use serde::{Deserialize, Serialize};

use super::large::Buffers;
use super::large::hand_off::Transfer;
use super::large::ours::Placement;
use super::latency::Exchange;
use super::raw::{Ground, HandOff};
use super::raw_stream::Stream;
use super::throughput::Flood;
use hamlyn_cli::actor::Actor;

use crate::Role;

/// What the other process is to do next. It answers first where there is
/// something to say, then takes part.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    /// Stay on that processor, use that memory, open an interface.
    Settle {
        processor: usize,
        ground: PathBuf,
        /// None to poll and never to sleep, driven by the one thread.
        driven: Option<Driven>,
    },
    /// The other side of the raw hand-off.
    Raw { hand_off: HandOff, round_trips: u64 },
    /// Open the ends of an exchange; answers with what grows the other end.
    Open { exchange: Exchange },
    /// Grow the sending end.
    Grow { grown: String },
    /// Take up that grant; answers with one of its own.
    Grant { grant: String },
    /// The other side of round trips with them.
    Echo { round_trips: u64 },
    /// Open a service; answers with its address.
    OpenService,
    /// Answer that many calls.
    AnswerCalls { calls: u64 },
    /// Take that many short messages.
    Drain { messages: u64, flood: Flood },
    /// Use that memory for a raw stream of cells, and take so many.
    RawStream { path: PathBuf, cells: u64 },
    /// Use that memory for raw hand-offs of large messages.
    LargeField { path: PathBuf },
    /// The other side of raw hand-offs; answers again when all came, and was what it should be if
    /// that is to be checked.
    LargeFollow {
        transfer: Transfer,
        buffers: Buffers,
        first: u64,
        messages: u64,
        is_checked: bool,
    },
    /// Let go of it.
    LargeDone,
    /// Open a slot for large messages and tell its ticket.
    LargeOpen {
        buffers: Buffers,
        placement: Placement,
        credit: String,
    },
    /// Compute and poll by turns until that many messages are in memory; answers with what opens it
    /// to them, then how long each took, in nanoseconds.
    Compute { grain_ns: u64, messages: u64 },
    /// Answer with a ticket for requests, and serve those of one case.
    Serve {
        ticket: String,
        case: super::event_loop::Case,
    },
    /// Grant its memory.
    LargeGrant,
    /// Take that many of them.
    LargeTake { placement: Placement, messages: u64 },
    /// Close it.
    LargeClose { placement: Placement },
    /// Read that many loaned messages, with so many readers; answers when all have given back all.
    ReadLoans {
        address: String,
        readers: usize,
        messages: u64,
    },
    /// Open memory for one-sided operations; answers with its export ticket.
    ShareMemory,
    /// Serve it, or compute, until an initiator says so; answers with the word by which it does,
    /// and again afterwards.
    ServeMemory { attends: bool },
    /// Change a word of the memory of another process.
    ChangeWord {
        order: super::one_sided::ChangeOrder,
    },
    /// Connect that many idle interfaces to that ticket.
    Idle { ticket: String, peers: usize },
}

/// Who drives an interface, and on which processors a network processor may run: not on the one
/// where the application does.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Driven {
    pub(crate) strategy: String,
    pub(crate) processors: Vec<usize>,
}

/// Both processes, as the first one sees them.
pub(crate) struct Pair {
    pub(crate) actor: Actor,
    pub(crate) ground: Ground,
    pub(crate) manager: Manager<ProcessHost>,
    /// A second interface, so that each direction can have a link of its own.
    back: Option<Manager<ProcessHost>>,
}

impl Pair {
    pub(crate) fn start(processor: usize) -> Result<Self> {
        let mut actor = Actor::start(Role::Bench, None)?;
        let ground = Ground::create()?;
        actor.order(&Order::Settle {
            processor,
            ground: ground.path(),
            driven: None,
        })?;
        let () = actor.answer()?;
        Ok(Self {
            actor,
            ground,
            manager: super::open()?,
            back: None,
        })
    }

    /// Both with interfaces that are driven in that way, and that sleep when there is nothing to
    /// do.
    pub(crate) fn start_driven(strategy: Strategy, processors: &[usize]) -> Result<Self> {
        let mut actor = Actor::start(Role::Bench, None)?;
        let ground = Ground::create()?;
        let driven = Driven {
            strategy: strategy.name().to_owned(),
            processors: processors.to_vec(),
        };
        actor.order(&Order::Settle {
            processor: processors[1],
            ground: ground.path(),
            driven: Some(driven.clone()),
        })?;
        let () = actor.answer()?;
        Ok(Self {
            actor,
            ground,
            manager: super::open_driven(&driven, processors[0])?,
            back: None,
        })
    }

    /// The interface for messages that come back over a link of their own.
    pub(crate) fn back(&mut self) -> Result<Manager<ProcessHost>> {
        second(&mut self.back)
    }

    /// A raw hand-off now, in nanoseconds one way.
    pub(crate) fn raw(&mut self, hand_off: HandOff, round_trips: u64) -> Result<f64> {
        self.actor.order(&Order::Raw {
            hand_off,
            round_trips,
        })?;
        let () = self.actor.answer()?;
        self.ground.lead(hand_off, round_trips)
    }

    /// A raw stream of cells now, in cells per second.
    pub(crate) fn raw_stream(&mut self, cells: u64) -> Result<f64> {
        let mut stream = Stream::create()?;
        let path = stream.path();
        self.actor.order(&Order::RawStream { path, cells })?;
        let () = self.actor.answer()?;
        let rate = stream.write(cells);
        let () = self.actor.answer()?;
        Ok(rate)
    }

    pub(crate) fn finish(self) -> Result<()> {
        drop(self.back);
        drop(self.manager);
        self.actor.finish()
    }
}

/// Opens it when it is first needed.
pub(super) fn second(back: &mut Option<Manager<ProcessHost>>) -> Result<Manager<ProcessHost>> {
    if back.is_none() {
        *back = Some(super::open()?);
    }
    back.clone().context("it was opened")
}
