//! Short messages per second: one call each, and many in a call; and beside them, in the same runs, what the
//! machine does with nothing but such cells.

use anyhow::{Result, ensure};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Manager, Message, NewSlot, Ticket, Wait};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::pair::{Order, Pair};
use super::report::Report;
use super::{Effort, median};
use crate::actor::{answer, from_hex, to_hex};

const WAIT: Wait = Wait::millis(5000);
/// Runs of each throughput; the median and the best are reported.
const RUNS: usize = 9;
/// Messages of one call of the many.
const MANY: u64 = 64;

/// How messages are sent and taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Calls {
    /// One call for each.
    Each,
    /// One call for [`MANY`].
    Many,
}

/// Messages a second.
#[derive(Clone, Copy)]
struct Rate {
    median: f64,
    best: f64,
}

impl Rate {
    fn of(rates: Vec<f64>) -> Self {
        Self {
            best: rates.iter().copied().fold(0.0, f64::max),
            median: median(rates),
        }
    }

    fn json(self) -> Value {
        json!({ "median": self.median.round(), "best": self.best.round() })
    }
}

/// What was measured.
pub(crate) struct Figures {
    each: Rate,
    many: Rate,
    raw: Rate,
    /// The raw hand-off before and after, which tells how near the processors were to each other.
    raw_handoff_ns: [f64; 2],
}

impl Figures {
    /// Messages a second, one call each.
    pub(crate) fn messages_per_s(&self) -> f64 {
        self.each.median.round()
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "one_call_each": self.each.json(),
            "many_in_a_call": self.many.json(),
            "raw_cells": self.raw.json(),
            "raw_handoff_ns": self.raw_handoff_ns,
        })
    }

    pub(crate) fn print(&self) {
        let columns = ["16 bytes", "million a second: median", "best", "over raw"];
        let mut table = crate::terminal::table(&columns);
        for (name, rate) in [
            ("raw cells", self.raw),
            ("one call each", self.each),
            ("many in a call", self.many),
        ] {
            table.add_row([
                name.to_owned(),
                format!("{:.1}", rate.median / 1e6),
                format!("{:.1}", rate.best / 1e6),
                format!("{:.2}", rate.median / self.raw.median),
            ]);
        }
        println!("{table}");
    }
}

pub(crate) fn measure(
    pair: &mut Pair,
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    let before_ns = pair.raw(effort.round_trips)?;
    let (mut each, mut many, mut raw) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        raw.push(pair.raw_stream(effort.messages)?);
        each.push(flood(pair, effort.messages, Calls::Each)?);
        many.push(flood(pair, effort.messages, Calls::Many)?);
    }
    let after_ns = pair.raw(effort.round_trips)?;
    report.rate = Some(Figures {
        each: Rate::of(each),
        many: Rate::of(many),
        raw: Rate::of(raw),
        raw_handoff_ns: [before_ns, after_ns],
    });
    bar.inc(1);
    Ok(())
}

/// The place of a message in the receiver's area.
fn place(turn: u64) -> u64 {
    turn % 64 * 16
}

/// Sends short messages in fast mode. Messages per second.
fn flood(pair: &mut Pair, messages: u64, calls: Calls) -> Result<f64> {
    pair.actor.order(&Order::Drain { messages, calls })?;
    let ticket: String = pair.actor.answer()?;
    let ticket = Ticket::from_bytes(&from_hex(&ticket)?)?;
    let terminus = pair.manager.terminus();
    let mut interface = pair.manager.interface();
    let target = interface.target(&ticket, WAIT)?;
    let mut data = [[0; 16]; MANY as usize];
    let start = std::time::Instant::now();
    match calls {
        Calls::Each => {
            for turn in 0..messages {
                let data = &mut data[0];
                data[..8].copy_from_slice(&turn.to_le_bytes());
                let message = Message::new(data).at(place(turn)).word(turn);
                interface.send_msg(terminus, &target, &message, Wait::Forever)?;
            }
        }
        Calls::Many => {
            for first in (0..messages).step_by(MANY as usize) {
                let turns = first..messages.min(first + MANY);
                for (turn, data) in turns.clone().zip(&mut data) {
                    data[..8].copy_from_slice(&turn.to_le_bytes());
                }
                let expected = turns.clone().count();
                let batch = turns
                    .zip(&data)
                    .map(|(turn, data)| Message::new(data).at(place(turn)).word(turn));
                let sent = interface.send_many(terminus, &target, batch, Wait::Forever)?;
                ensure!(sent.count == expected, "a batch was cut short");
            }
        }
    }
    // The other side answers when it has them all.
    let () = pair.actor.answer()?;
    Ok(messages as f64 / start.elapsed().as_secs_f64())
}

/// The other side of [`flood`].
pub(crate) fn drain(manager: &Manager<ProcessHost>, messages: u64, calls: Calls) -> Result<()> {
    let mut interface = manager.interface();
    let area = interface.allocate(4096)?;
    let mut queue = interface.open_queue(4096)?;
    let slot = interface.open_slot(NewSlot::new(&area).queue(&queue))?;
    answer(&to_hex(&slot.fast_ticket(0, 4096)?.to_bytes()))?;
    let mut expected = 0;
    while expected < messages {
        match calls {
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
    answer(&())?;
    interface.close_slot(slot)?;
    interface.close_queue(queue);
    Ok(())
}
