//! One-way time of short messages, by protocol and length: half of a round trip, over what the
//! machine itself needs for as many bytes in the same seconds.
//!
//! In fast mode each direction has a link of its own, so that the messages on a link all go one
//! way: this is the time over the ring. All others go there and back over one link, as programs
//! have it; [`super::request_reply`] does so in fast mode. Messages of [`LONG_BYTES`] and more go
//! *copied* (by the receiver's interface) and *direct* (stored by the sender into pages that it was
//! granted).

mod ends;

use anyhow::{Context, Result};
use hamlyn::Manager;
use hamlyn::host::process::ProcessHost;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use super::pair::{Order, Pair};
use super::raw::{HandOff, Store};
use super::report::Report;
use super::{Effort, median};
use ends::{Receiving, Sending};
pub(crate) use hamlyn_counted::Protocol;

/// The most by which the raw hand-off may move during a measurement.
const STEADY: f64 = 0.15;
/// Lengths that are compared with the raw hand-off of one line, then with that of as many lines.
const LENGTHS_BYTES: [usize; 12] = [0, 1, 8, 16, 24, 32, 33, 56, 64, 128, 256, 512];
/// The longest message that fits the line of its header; of a port, too.
const LINE_MESSAGE_BYTES: usize = 32;
const PORT_LINE_MESSAGE_BYTES: usize = 56;
/// Those that are copied or placed directly.
const LONG_LENGTHS_BYTES: [usize; 2] = [LONG_BYTES, LENGTH_MAX_BYTES];
const LONG_BYTES: usize = 1024;
pub(crate) const LENGTH_MAX_BYTES: usize = 4096;
/// What was measured before there were several lengths, and what strategies are compared with.
pub(crate) const USUAL_BYTES: usize = 16;

/// Memory that messages land in, in turn.
pub(crate) const AREA_BYTES: u64 = 2 * LENGTH_MAX_BYTES as u64;

/// Where the message of a turn lands. With a short one few lines are written again and again; two
/// of the longest have room.
#[inline]
pub(crate) fn place(turn: u64, length_bytes: usize) -> u64 {
    let stride = (length_bytes as u64).next_multiple_of(16);
    if stride <= 16 {
        return turn % 64 * 16;
    }
    turn % (AREA_BYTES / 2 / stride).max(2) * stride
}

/// What goes there and back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Exchange {
    pub(crate) protocol: Protocol,
    pub(crate) length_bytes: usize,
    /// Whether a word of metadata goes with each message; of fast mode only.
    pub(crate) has_word: bool,
    /// Whether each direction has a link of its own.
    pub(crate) is_apart: bool,
    /// Whether the sender stores into pages that it was granted; of fast mode, over one link, only.
    pub(crate) is_direct: bool,
}

impl Exchange {
    /// There and back over one link.
    pub(crate) const fn over_one_link(protocol: Protocol, length_bytes: usize) -> Self {
        Self {
            protocol,
            length_bytes,
            has_word: true,
            is_apart: false,
            is_direct: false,
        }
    }

    /// The row that it belongs to.
    fn row(self) -> &'static str {
        match self.protocol {
            Protocol::Raw if self.is_direct => "direct",
            Protocol::Raw if self.length_bytes >= LONG_BYTES => "copied",
            protocol => protocol.name(),
        }
    }

    /// What the machine itself does with as many bytes: the best of these.
    fn raw(self) -> Vec<HandOff> {
        let length_bytes = self.length_bytes;
        let stores = [Store::Through, Store::Past];
        let in_line = match self.protocol {
            Protocol::Port | Protocol::Mailbox => PORT_LINE_MESSAGE_BYTES,
            _ => LINE_MESSAGE_BYTES,
        };
        match length_bytes {
            _ if length_bytes <= in_line => vec![HandOff::LINE],
            _ if length_bytes < LONG_BYTES => vec![HandOff::lines_of(length_bytes)],
            _ if self.is_direct => stores
                .map(|store| HandOff::Put {
                    length_bytes,
                    store,
                })
                .to_vec(),
            _ => [(Store::Through, 1), (Store::Through, 4), (Store::Past, 1)]
                .map(|(store, pieces)| HandOff::TwoCopies {
                    length_bytes,
                    store,
                    pieces,
                })
                .to_vec(),
        }
    }

    /// All that are measured of a protocol.
    fn all_of(protocol: Protocol) -> Vec<Self> {
        let mut all: Vec<_> = LENGTHS_BYTES
            .map(|length_bytes| Self {
                is_apart: protocol == Protocol::Raw,
                ..Self::over_one_link(protocol, length_bytes)
            })
            .to_vec();
        if protocol == Protocol::Raw {
            for length_bytes in LONG_LENGTHS_BYTES {
                let copied = Self::over_one_link(protocol, length_bytes);
                all.push(copied);
                all.push(Self {
                    is_direct: true,
                    ..copied
                });
            }
        }
        all
    }
}

/// One process' receiving and sending end.
pub(crate) struct End {
    exchange: Exchange,
    receiving: Receiving,
    sending: Option<Sending>,
    data: Vec<u8>,
    turn: u64,
}

impl End {
    /// Receives with the interface of that manager.
    pub(crate) fn open(manager: &Manager<ProcessHost>, exchange: Exchange) -> Result<Self> {
        Ok(Self {
            exchange,
            receiving: Receiving::open(manager, exchange)?,
            sending: None,
            data: vec![7; exchange.length_bytes],
            turn: 0,
        })
    }

    /// What the other process grows its sending end from.
    pub(crate) fn grows_from(&self) -> Result<String> {
        self.receiving.grows_from()
    }

    /// Sends with the interface of that manager.
    pub(crate) fn grow(&mut self, manager: &Manager<ProcessHost>, grown: &str) -> Result<()> {
        self.sending = Some(Sending::grow(manager, self.exchange, grown)?);
        Ok(())
    }

    /// Grants the memory to the other process, with which this end has one link.
    pub(crate) fn grant(&self) -> Result<String> {
        let sending = self
            .sending
            .as_ref()
            .context("the sending end was not grown")?;
        self.receiving.grant(sending)
    }

    /// Takes up what the other process granted.
    pub(crate) fn accept(&self, grant: &str) -> Result<()> {
        let sending = self
            .sending
            .as_ref()
            .context("the sending end was not grown")?;
        sending.accept(grant)
    }

    /// Sends and awaits the answer, so often.
    pub(crate) fn lead(&mut self, round_trips: u64) -> Result<()> {
        for _ in 0..round_trips {
            self.send()?;
            self.receive()?;
            self.turn += 1;
        }
        Ok(())
    }

    /// Awaits and answers, so often.
    pub(crate) fn echo(&mut self, round_trips: u64) -> Result<()> {
        for _ in 0..round_trips {
            self.receive()?;
            self.send()?;
            self.turn += 1;
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self) -> Result<()> {
        let sending = self
            .sending
            .as_mut()
            .context("the sending end was not grown")?;
        sending.send(self.exchange, &mut self.data, self.turn)
    }

    /// Waits for a message and reads what it brought.
    #[inline]
    fn receive(&mut self) -> Result<()> {
        self.receiving.receive(self.exchange, self.turn)
    }
}

/// Round trips that are measured of these protocols.
pub(crate) fn steps(protocols: &[Protocol]) -> u64 {
    let of = |&protocol| Exchange::all_of(protocol).len() as u64;
    protocols.iter().map(of).sum()
}

pub(crate) fn measure(
    pair: &mut Pair,
    protocols: &[Protocol],
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    for &protocol in protocols {
        for exchange in Exchange::all_of(protocol) {
            let figures = one_way(pair, exchange, effort)?;
            report.note_raw(&figures);
            report
                .one_way
                .push((exchange.row(), exchange.length_bytes, figures));
            bar.inc(1);
        }
    }
    Ok(())
}

/// Medians of the batches.
pub(crate) struct Figures {
    pub(crate) one_way_ns: f64,
    pub(crate) over_raw: f64,
    /// What the machine itself does with as many bytes.
    pub(crate) raw_ns: f64,
    /// Whether that is the plain hand-off of a line.
    pub(crate) is_line: bool,
    /// Batches that were measured again, because the raw hand-off moved meanwhile.
    pub(crate) repeated: usize,
}

/// Measures one exchange between the two.
pub(crate) fn one_way(pair: &mut Pair, exchange: Exchange, effort: Effort) -> Result<Figures> {
    let mut end = open(pair, exchange)?;
    let ours = |pair: &mut Pair| {
        let round_trips = effort.round_trips;
        pair.actor.order(&Order::Echo { round_trips })?;
        let () = pair.actor.answer()?;
        let start = std::time::Instant::now();
        end.lead(round_trips)?;
        Ok(start.elapsed().as_nanos() as f64 / round_trips as f64 / 2.0)
    };
    beside_raw(pair, &exchange.raw(), effort, ours)
}

/// Opens both ends and joins them.
fn open(pair: &mut Pair, exchange: Exchange) -> Result<End> {
    let there = pair.manager.clone();
    let back = if exchange.is_apart {
        pair.back()?
    } else {
        there.clone()
    };
    let mut end = End::open(&back, exchange)?;
    pair.actor.order(&Order::Open { exchange })?;
    let theirs: String = pair.actor.answer()?;
    end.grow(&there, &theirs)?;
    let grown = end.grows_from()?;
    pair.actor.order(&Order::Grow { grown })?;
    let () = pair.actor.answer()?;
    if exchange.is_direct {
        let grant = end.grant()?;
        pair.actor.order(&Order::Grant { grant })?;
        let theirs: String = pair.actor.answer()?;
        end.accept(&theirs)?;
    }
    Ok(end)
}

/// Nanoseconds of something that both do, over the best of these hand-offs just before and just
/// after; batch by batch.
pub(crate) fn beside_raw(
    pair: &mut Pair,
    hand_offs: &[HandOff],
    effort: Effort,
    mut ours: impl FnMut(&mut Pair) -> Result<f64>,
) -> Result<Figures> {
    let best = |pair: &mut Pair| -> Result<f64> {
        let mut best = f64::INFINITY;
        for &hand_off in hand_offs {
            best = best.min(pair.raw(hand_off, effort.round_trips)?);
        }
        Ok(best)
    };
    // All warm up.
    ours(pair)?;
    let mut before = best(pair)?;
    let (mut figures, mut ratios, mut raws) = (Vec::new(), Vec::new(), Vec::new());
    let mut repeated = 0;
    while figures.len() < effort.batches {
        let took = ours(pair)?;
        let after = best(pair)?;
        let moved = (before - after).abs() > STEADY * before.min(after);
        let raw = (before + after) / 2.0;
        before = after;
        // On a machine that never keeps still the figures are what they are, and the report says
        // so.
        if moved && repeated < effort.batches {
            repeated += 1;
            continue;
        }
        figures.push(took);
        ratios.push(took / raw);
        raws.push(raw);
    }
    Ok(Figures {
        one_way_ns: median(figures),
        over_raw: median(ratios),
        raw_ns: median(raws),
        is_line: hand_offs == [HandOff::LINE],
        repeated,
    })
}
