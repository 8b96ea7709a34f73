//! Short messages per second, by length: one call each, and many in a call; and beside them, in the
//! same runs, what the machine does with nothing but cells of a line.

use anyhow::{Result, ensure};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Manager, Message, NewSlot, Ticket, Wait};
use hamlyn_ring::shared::LINE_BYTES;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::latency::USUAL_BYTES;
use super::pair::{Order, Pair};
use super::report::Report;
use super::{Effort, median};
use hamlyn_cli::actor::{answer, from_hex, to_hex};

const WAIT: Wait = Wait::millis(5000);
/// Runs of each throughput; the median and the best are reported.
const RUNS: usize = 9;
/// Messages of one call of the many.
const MANY: u64 = 64;
/// Lengths that are measured, in bytes.
pub(crate) const LENGTHS_BYTES: [usize; 10] = [0, 8, 16, 32, 64, 128, 256, 512, 1024, 4096];
/// What a line has room for beside a header. A longer message is compared with as many raw cells
/// as its header and its data have lines.
const CELL_BYTES: usize = 32;
/// Fewer messages of other lengths than the usual one, and fewer still of long ones, so that it
/// does not take for ever.
const NEIGHBOUR_DIVISOR: u64 = 4;
const LONG_DIVISOR: u64 = 20;
/// Places that messages land at, in turn.
const PLACES: u64 = 64;

/// How messages are sent and taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Calls {
    /// One call for each.
    Each,
    /// One call for [`MANY`].
    Many,
}

/// What is sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Flood {
    calls: Calls,
    length_bytes: usize,
}

impl Flood {
    /// Bytes between two messages in the receiver's area.
    fn stride(self) -> u64 {
        (self.length_bytes as u64).next_multiple_of(16).max(16)
    }

    /// The place of a message there.
    fn place(self, turn: u64) -> u64 {
        turn % PLACES * self.stride()
    }
}

/// Messages a second.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) median: f64,
    best: f64,
    /// Over the raw cells of the same round, as many for each message as it has lines, the median.
    over_raw: f64,
}

impl Rate {
    fn of(rates: &[f64], raws: &[f64], lines: f64) -> Self {
        Self {
            best: rates.iter().copied().fold(0.0, f64::max),
            median: median(rates.to_vec()),
            over_raw: median(
                rates
                    .iter()
                    .zip(raws)
                    .map(|(rate, raw)| rate * lines / raw)
                    .collect(),
            ),
        }
    }

    fn json(self) -> Value {
        json!({ "median": self.median.round(), "best": self.best.round() })
    }
}

/// What was measured of one length.
pub(crate) struct Figures {
    pub(crate) length_bytes: usize,
    pub(crate) each: Rate,
    pub(crate) many: Rate,
    pub(crate) raw: Rate,
}

impl Figures {
    /// Whether such a message fits the line that a raw cell is.
    pub(crate) fn fits_a_cell(&self) -> bool {
        lines(self.length_bytes) == 1
    }
}

/// The lines of a message of that length: of its header, and of data that do not fit beside it.
fn lines(length_bytes: usize) -> usize {
    match length_bytes {
        ..=CELL_BYTES => 1,
        _ => 1 + length_bytes.div_ceil(LINE_BYTES),
    }
}

/// Messages a second by length, with those of raw cells.
pub(crate) fn rates_json(all: &[Figures]) -> Value {
    let of = |figures: &Figures| {
        let rates = json!({
            "one_call_each": figures.each.json(),
            "many_in_a_call": figures.many.json(),
            "raw_cells": figures.raw.json(),
        });
        (figures.length_bytes.to_string(), rates)
    };
    all.iter().map(of).collect::<Map<_, _>>().into()
}

/// The same over raw cells: of the usual length, and by length.
pub(crate) fn over_raw_json(all: &[Figures]) -> Value {
    let of = |figures: &Figures| {
        json!({
            "one_call_each": figures.each.over_raw,
            "many_in_a_call": figures.many.over_raw,
        })
    };
    let usual = all
        .iter()
        .find(|figures| figures.length_bytes == USUAL_BYTES);
    let mut json = usual.map_or_else(|| json!({}), of);
    json["by_length"] = all
        .iter()
        .map(|figures| (figures.length_bytes.to_string(), of(figures)))
        .collect::<Map<_, _>>()
        .into();
    json
}

pub(crate) fn print(all: &[Figures]) {
    let columns = [
        "bytes",
        "one call each, million/s",
        "over raw cells",
        "64 in a call, million/s",
        "over raw cells",
        "raw cells, million/s",
    ];
    let mut table = hamlyn_cli::terminal::table(&columns);
    for figures in all {
        let million = |rate: Rate| format!("{:.1}", rate.median / 1e6);
        let over_raw = |rate: Rate| format!("{:.2}", rate.over_raw);
        table.add_row([
            figures.length_bytes.to_string(),
            million(figures.each),
            over_raw(figures.each),
            million(figures.many),
            over_raw(figures.many),
            million(figures.raw),
        ]);
    }
    println!("How many messages a second, one way, fast mode?");
    println!("Over raw cells: as many for each message as it has lines\n{table}");
}

pub(crate) fn measure(
    pair: &mut Pair,
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    for length_bytes in LENGTHS_BYTES {
        let messages = match length_bytes {
            USUAL_BYTES => effort.messages,
            ..=CELL_BYTES => effort.messages / NEIGHBOUR_DIVISOR,
            _ => effort.messages / LONG_DIVISOR,
        };
        let flood_by = |pair: &mut Pair, calls| {
            let flood = Flood {
                calls,
                length_bytes,
            };
            self::flood(pair, messages, flood)
        };
        let (mut each, mut many, mut raw) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..effort.depth.pick(RUNS, RUNS, 1) {
            raw.push(pair.raw_stream(messages)?);
            each.push(flood_by(pair, Calls::Each)?);
            many.push(flood_by(pair, Calls::Many)?);
        }
        let lines = lines(length_bytes) as f64;
        report.rates.push(Figures {
            length_bytes,
            each: Rate::of(&each, &raw, lines),
            many: Rate::of(&many, &raw, lines),
            raw: Rate::of(&raw, &raw, 1.0),
        });
        bar.inc(1);
    }
    Ok(())
}

/// Sends messages in fast mode, each with a word. Messages per second.
fn flood(pair: &mut Pair, messages: u64, flood: Flood) -> Result<f64> {
    pair.actor.order(&Order::Drain { messages, flood })?;
    let ticket: String = pair.actor.answer()?;
    let ticket = Ticket::from_bytes(&from_hex(&ticket)?)?;
    let terminus = pair.manager.terminus();
    let mut interface = pair.manager.session();
    let target = interface.target(&ticket, WAIT)?;
    let length_bytes = flood.length_bytes;
    let mut data = vec![vec![0; length_bytes]; MANY as usize];
    let start = std::time::Instant::now();
    match flood.calls {
        Calls::Each => {
            let data = &mut data[0];
            for turn in 0..messages {
                number(data, turn);
                let message = Message::new(data).at(flood.place(turn)).word(turn);
                interface.send_msg(terminus, &target, &message, Wait::Forever)?;
            }
        }
        Calls::Many => {
            for first in (0..messages).step_by(MANY as usize) {
                let turns = first..messages.min(first + MANY);
                for (turn, data) in turns.clone().zip(&mut data) {
                    number(data, turn);
                }
                let expected = turns.clone().count();
                let batch = turns
                    .zip(&data)
                    .map(|(turn, data)| Message::new(data).at(flood.place(turn)).word(turn));
                let sent = interface.send_many(terminus, &target, batch, Wait::Forever)?;
                ensure!(sent.count == expected, "a batch was cut short");
            }
        }
    }
    // What still waits for room goes now; the other side answers when it has them all.
    interface.flush(Wait::Forever)?;
    let () = pair.actor.answer()?;
    Ok(messages as f64 / start.elapsed().as_secs_f64())
}

/// Writes which one it is into a message that has room.
#[inline]
fn number(data: &mut [u8], turn: u64) {
    if let Some(first) = data.first_chunk_mut() {
        *first = turn.to_le_bytes();
    }
}

/// The other side of [`flood`].
pub(crate) fn drain(manager: &Manager<ProcessHost>, messages: u64, flood: Flood) -> Result<()> {
    let mut interface = manager.session();
    let bytes = PLACES * flood.stride();
    let area = interface.allocate(bytes)?;
    let mut queue = interface.open_queue(4096)?;
    let slot = interface.open_slot(NewSlot::new(&area).queue(&queue))?;
    answer(&to_hex(&slot.fast_ticket(0, bytes)?.to_bytes()))?;
    let mut expected = 0;
    while expected < messages {
        match flood.calls {
            Calls::Each => {
                if let Some(notification) = interface.rcv(&mut queue)? {
                    ensure!(notification.word == expected, "a message is missing");
                    expected += 1;
                }
            }
            Calls::Many => {
                let mut in_order = true;
                interface.receive_many(&mut queue, MANY as usize, |notification| {
                    in_order &= notification.word == expected;
                    expected += 1;
                })?;
                ensure!(in_order, "a message is missing");
            }
        }
    }
    let last = flood.place(messages - 1);
    let is_last = flood.length_bytes < 8 || area.load_u64(last)? == messages - 1;
    ensure!(is_last, "a message with other bytes");
    answer(&())?;
    interface.close_slot(slot)?;
    interface.close_queue(queue);
    Ok(())
}
