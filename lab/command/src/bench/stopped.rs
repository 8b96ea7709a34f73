//! Destinations are independent: what live peers get while one peer beside them has stopped.
//!
//! One sender, on the first processor, sends to several live peers in turn. All peers are
//! interfaces of one process on the second processor, where one thread takes what came for each in
//! turn. One more peer is linked to the same sender, and nobody polls it: it has stopped. In the
//! runs *alone* nothing is sent to it. Before a run *beside* its ring and the sender's queue for it
//! are filled, and during the run the sender offers one more message at every look at the clock.
//! The two take turns, and the median of the ratios is reported.
//!
//! No call waits: a message that finds no room is counted as not sent. So a sender that the stopped
//! peer holds up has a ratio near zero, and the measurement ends.

pub(crate) mod peers;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hamlyn::host::process::ProcessHost;
use hamlyn::stream::StreamSeed;
use hamlyn::{Manager, Message, NewSlot, Queue, SendError, Slot, Target, Ticket, Wait};
use hamlyn::{datagram, stream, tagged_write};
use indicatif::ProgressBar;
use serde::Serialize;

use super::report::Report;
use super::{Effort, median};
use crate::Role;
use hamlyn_cli::actor::{Actor, from_hex, to_hex};
use peers::{Order, Protocol};

/// What is measured: the protocol, live peers, and bytes of a message. The last two are neighbours
/// of the first.
const CASES: [(Protocol, usize, usize); 5] = [
    (Protocol::TaggedWrite, 9, 16),
    (Protocol::Datagram, 9, 16),
    (Protocol::Stream, 9, 16),
    (Protocol::TaggedWrite, 3, 16),
    (Protocol::TaggedWrite, 9, 1_000),
];
pub(crate) const STEPS: u64 = CASES.len() as u64;
/// Most runs of each case.
const RUNS_MAX: usize = 7;
const WAIT: Wait = Wait::millis(10_000);
/// Rounds over all live peers between two looks at the clock.
const ROUNDS_PER_LOOK: usize = 16;
/// A peer that takes nothing is full when it had no room for so long.
const FULL: Duration = Duration::from_millis(20);

/// What was found in one case.
#[derive(Serialize)]
pub(crate) struct Figures {
    protocol: Protocol,
    #[serde(rename = "live_peers")]
    peers: usize,
    #[serde(rename = "message_bytes")]
    bytes: usize,
    alone_per_s: f64,
    beside_per_s: f64,
    ratio: f64,
}

impl Figures {
    /// A row of the table whose columns are [`Figures::COLUMNS`].
    pub(crate) fn row(&self) -> [String; 6] {
        [
            self.protocol.name().replace('_', " "),
            self.peers.to_string(),
            self.bytes.to_string(),
            format!("{:.2}", self.alone_per_s / 1e6),
            format!("{:.2}", self.beside_per_s / 1e6),
            format!("{:.2}", self.ratio),
        ]
    }

    /// See [`Figures::row`].
    pub(crate) const COLUMNS: [&str; 6] = [
        "protocol",
        "live peers",
        "bytes",
        "alone, million/s",
        "beside a stopped one",
        "ratio",
    ];
}

/// Measures all cases. This thread stays on the first of these processors.
pub(crate) fn measure(
    processors: &[usize],
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    for case in CASES {
        report
            .beside_a_stopped_peer
            .push(measure_case(processors[1], effort, case)?);
        bar.inc(1);
    }
    Ok(())
}

fn measure_case(
    elsewhere: usize,
    effort: Effort,
    (protocol, peers, bytes): (Protocol, usize, usize),
) -> Result<Figures> {
    let mut sender = Sender::start(elsewhere, protocol, peers, bytes)?;
    let window = effort.window / 2;
    let (mut alone, mut beside, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.runs.min(RUNS_MAX) {
        let without = sender.run(window, false)?;
        let with = sender.run(window, true)?;
        alone.push(without);
        beside.push(with);
        ratios.push(with / without);
    }
    sender.finish()?;
    Ok(Figures {
        protocol,
        peers,
        bytes,
        alone_per_s: median(alone).round(),
        beside_per_s: median(beside).round(),
        ratio: median(ratios),
    })
}

/// The sending end for one live peer.
enum Line {
    TaggedWrite(tagged_write::Sender),
    /// Also whether the peer is ready for the next one.
    Datagram(datagram::Sender, bool),
    Stream(Box<stream::Sender>),
}

struct Sender {
    manager: Manager<ProcessHost>,
    process: Actor,
    lines: Vec<Line>,
    /// Where the peers say that they are ready.
    ready: Queue,
    _slot: Slot,
    stopped: Target,
    data: Vec<u8>,
}

impl Sender {
    fn start(elsewhere: usize, protocol: Protocol, peers: usize, bytes: usize) -> Result<Self> {
        let manager = super::open()?;
        let mut interface = manager.session();
        let area = interface.allocate(64)?;
        let ready = interface.open_queue(64)?;
        let slot = interface.open_slot(NewSlot::new(&area).queue(&ready))?;
        drop(interface);
        let mut process = Actor::start(Role::Peers, None)?;
        process.order(&Order::Open {
            processor: elsewhere,
            protocol,
            peers,
            bytes,
            ready: to_hex(&slot.fast_ticket(0, 64)?.to_bytes()),
        })?;
        let places: Vec<String> = process.answer()?;
        let mut places = places.iter().map(|place| from_hex(place));
        let stopped = places.next().context("no stopped peer")??;
        let stopped = Ticket::from_bytes(&stopped)?;
        let stopped = manager.session().target(&stopped, WAIT)?;
        let lines = places
            .map(|place| Line::grow(&manager, protocol, &place?))
            .collect::<Result<_>>()?;
        Ok(Self {
            manager,
            process,
            lines,
            ready,
            _slot: slot,
            stopped,
            data: vec![7; bytes],
        })
    }

    /// Messages to live peers in a second.
    fn run(&mut self, window: Duration, beside: bool) -> Result<f64> {
        if beside {
            self.fill()?;
        }
        self.process.order(&Order::Take)?;
        self.send_for(window / 4, beside)?;
        let start = Instant::now();
        let sent = self.send_for(window, beside)?;
        let rate = sent as f64 / start.elapsed().as_secs_f64();
        // From now on the stopped one takes, too.
        self.process.order(&Order::TakeAll)?;
        ensure!(
            self.manager.session().flush(WAIT)?,
            "messages are stuck though all peers take them"
        );
        let begun = Instant::now();
        while !self.is_ready()? {
            ensure!(
                begun.elapsed() < Duration::from_secs(10),
                "a datagram is lost"
            );
        }
        self.process.order(&Order::Stop)?;
        let () = self.process.answer()?;
        Ok(rate)
    }

    /// Sends to the stopped peer until nothing goes any more.
    fn fill(&mut self) -> Result<()> {
        let mut full_since = Instant::now();
        while full_since.elapsed() < FULL {
            if self.offer()? {
                full_since = Instant::now();
            }
        }
        Ok(())
    }

    /// One message for the stopped peer: whether it found room.
    fn offer(&mut self) -> Result<bool> {
        let terminus = self.manager.terminus();
        let mut interface = self.manager.session();
        let message = Message::new(&[7; 16]);
        let sent = interface.send_msg(terminus, &self.stopped, &message, Wait::Poll);
        Ok(found_room(sent)?.is_some())
    }

    /// How many messages found room.
    fn send_for(&mut self, window: Duration, beside: bool) -> Result<u64> {
        let begun = Instant::now();
        let mut sent = 0;
        while begun.elapsed() < window {
            for _ in 0..ROUNDS_PER_LOOK {
                for line in &mut self.lines {
                    sent += u64::from(line.send(&self.manager, &self.data)?);
                }
                self.take_answers()?;
            }
            if beside {
                self.offer()?;
            }
            self.manager.session().poll();
        }
        Ok(sent)
    }

    fn take_answers(&mut self) -> Result<()> {
        if !matches!(self.lines[0], Line::Datagram(..)) {
            return Ok(());
        }
        while let Some(came) = self.manager.session().rcv(&mut self.ready)? {
            match self.lines.get_mut(came.word as usize) {
                Some(Line::Datagram(_, is_ready)) => *is_ready = true,
                _ => bail!("a word of nobody"),
            }
        }
        Ok(())
    }

    /// Whether every peer had what was sent, where that can be known.
    fn is_ready(&mut self) -> Result<bool> {
        self.take_answers()?;
        let is_ready = |line: &Line| !matches!(line, Line::Datagram(_, false));
        Ok(self.lines.iter().all(is_ready))
    }

    fn finish(self) -> Result<()> {
        drop((self.lines, self.manager));
        self.process.finish()
    }
}

impl Line {
    fn grow(manager: &Manager<ProcessHost>, protocol: Protocol, place: &[u8]) -> Result<Self> {
        Ok(match protocol {
            Protocol::TaggedWrite => {
                let ticket = Ticket::from_bytes(place)?;
                Line::TaggedWrite(tagged_write::Sender::grow(manager, &ticket, WAIT)?)
            }
            Protocol::Datagram => {
                let ticket = Ticket::from_bytes(place)?;
                Line::Datagram(datagram::Sender::grow(manager, &ticket, WAIT)?, true)
            }
            Protocol::Stream => {
                let seed = StreamSeed::from_bytes(place)?;
                Line::Stream(Box::new(stream::Sender::grow(manager, &seed, WAIT)?))
            }
        })
    }

    /// Whether it found room.
    #[inline]
    fn send(&mut self, _: &Manager<ProcessHost>, data: &[u8]) -> Result<bool> {
        let sent = match self {
            Line::TaggedWrite(sender) => sender.send(0, data, 7, Wait::Poll).map(|_| ()),
            Line::Datagram(_, false) => return Ok(false),
            Line::Datagram(sender, is_ready) => {
                let sent = sender.send(data, Wait::Poll).map(|_| ());
                *is_ready = sent.is_err();
                sent
            }
            Line::Stream(sender) => sender.send(data, Wait::Poll),
        };
        Ok(found_room(sent)?.is_some())
    }
}

fn found_room<T>(sent: Result<T, SendError>) -> Result<Option<T>> {
    match sent {
        Ok(sent) => Ok(Some(sent)),
        Err(SendError::WouldBlock { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
