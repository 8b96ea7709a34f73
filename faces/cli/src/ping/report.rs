//! What was found out, for people and for programs.

use std::collections::BTreeMap;

use anyhow::Result;
use hamlyn::ConnectionState;
use hamlyn::host::Peer;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::message::Answer;

/// Digits that a histogram keeps.
const DIGITS: u8 = 3;
/// The longest time that it tells from longer ones: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
const SHOWN: [(&str, &str, f64); 6] = [
    ("min", "min_ns", 0.0),
    ("p50", "p50_ns", 0.5),
    ("p90", "p90_ns", 0.9),
    ("p99", "p99_ns", 0.99),
    ("p99.9", "p99_9_ns", 0.999),
    ("max", "max_ns", 1.0),
];

/// How it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// All messages were sent.
    Done,
    /// Somebody wanted it to end.
    Interrupted,
    /// The other side is gone.
    Lost(String),
}

/// The way there.
#[derive(Debug)]
pub(super) struct Path {
    process: u32,
    wire: Option<ConnectionState>,
}

impl Path {
    pub(super) fn new(peer: &Peer, wire: Option<ConnectionState>) -> Self {
        Self {
            process: peer.process,
            wire,
        }
    }

    pub(super) fn note(&mut self, state: ConnectionState) {
        self.wire = Some(state);
    }

    fn to_json(&self) -> Value {
        let Some(wire) = &self.wire else {
            return json!({"kind": "local", "process": self.process});
        };
        let paths: Vec<_> = wire
            .paths
            .iter()
            .map(|path| {
                json!({
                    "round_trip_ns": path.round_trip_ns,
                    "round_trip_least_ns": path.round_trip_least_ns,
                    "frames_sent": path.sent,
                    "frames_lost": path.lost,
                })
            })
            .collect();
        let transport = &wire.transport;
        json!({
            "kind": "udp",
            "encrypted": wire.is_encrypted,
            "from": wire.local.to_string(),
            "to": wire.peer.to_string(),
            "frame_bytes": wire.frame_bytes,
            "paths": paths,
            "transport": {
                "frames_sent": transport.sent,
                "frames_retransmitted": transport.retransmitted,
                "frames_acknowledged": transport.acknowledged,
                "frames_receiver_not_ready": transport.receiver_not_ready,
                "duplicates": transport.duplicates,
            },
        })
    }

    fn describe(&self) -> String {
        match &self.wire {
            None => format!("on this host, process {}", self.process),
            Some(wire) => format!(
                "over UDP, {}, {} to {}, frames of {} bytes{}",
                match wire.is_encrypted {
                    true => "encrypted",
                    false => "in the clear",
                },
                wire.local,
                wire.peer,
                wire.frame_bytes,
                match wire.paths.len() {
                    0 | 1 => String::new(),
                    paths => format!(", {paths} paths"),
                },
            ),
        }
    }

    fn transport(&self) -> Option<String> {
        let wire = self.wire.as_ref()?;
        let mean = wire.paths.iter().map(|path| path.round_trip_ns).max()?;
        let least = wire.paths.iter().map(|path| path.round_trip_least_ns);
        Some(format!(
            "transport: round trip {} µs (least {}), {} frames with messages, {} of them sent again",
            micros(mean),
            micros(least.min()?),
            wire.transport.sent,
            wire.transport.retransmitted,
        ))
    }
}

/// What is known of one way.
#[derive(Debug)]
pub(super) enum Times {
    /// Both sides read one clock.
    Measured {
        there: Histogram<u64>,
        back: Histogram<u64>,
    },
    /// They do not, for that reason: half of the round trip, without what the answering side held.
    Halved {
        half: Histogram<u64>,
        because: &'static str,
    },
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST_NS, DIGITS).unwrap_or_else(|_| unreachable!("{DIGITS} digits"))
}

impl Times {
    pub(super) fn measured() -> Self {
        Self::Measured {
            there: histogram(),
            back: histogram(),
        }
    }

    pub(super) fn halved(because: &'static str) -> Self {
        Self::Halved {
            half: histogram(),
            because,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Report {
    name: String,
    size_bytes: u32,
    pub(super) path: Path,
    times: Times,
    /// From the first message to its answer: the link was made meanwhile, and the other side began
    /// to serve.
    first_ns: u64,
    round_trips: Histogram<u64>,
    latest_ns: u64,
    /// Messages, answers; answers that came after they were given up, or not as they were sent.
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) late: u64,
    pub(super) damaged: u64,
    /// Messages that were not answered in time, and those for which there was no room.
    pub(super) late_or_lost: u64,
    pub(super) no_room: u64,
    /// Packets that came back, by reason.
    undelivered: BTreeMap<String, u64>,
    pub(super) ended: Ended,
}

impl Report {
    pub(super) fn new(
        name: &str,
        size_bytes: u32,
        path: Path,
        times: Times,
        first_ns: u64,
    ) -> Self {
        Self {
            name: name.to_owned(),
            size_bytes,
            path,
            times,
            first_ns,
            round_trips: histogram(),
            latest_ns: 0,
            sent: 0,
            answered: 0,
            late: 0,
            damaged: 0,
            late_or_lost: 0,
            no_room: 0,
            undelivered: BTreeMap::new(),
            ended: Ended::Done,
        }
    }

    pub(super) fn note_undelivered(&mut self, reason: String) {
        *self.undelivered.entry(reason).or_default() += 1;
    }

    /// An answer came at that time to what was sent at that.
    pub(super) fn note_answer(&mut self, sent_ns: u64, answer: &Answer, came_ns: u64) {
        self.answered += 1;
        let round_trip_ns = came_ns.saturating_sub(sent_ns);
        self.latest_ns = round_trip_ns;
        self.round_trips.saturating_record(round_trip_ns);
        let held_ns = u64::from(answer.held_ns);
        if let Times::Measured { there, back } = &mut self.times {
            let there_ns = answer.came_ns.checked_sub(sent_ns);
            let back_ns = came_ns.checked_sub(answer.came_ns + held_ns);
            if let (Some(there_ns), Some(back_ns)) = (there_ns, back_ns) {
                there.saturating_record(there_ns);
                back.saturating_record(back_ns);
                return;
            }
            // The answer came before the request was sent: one side reads another clock, and the
            // record is worthless.
            self.times = Times::halved("the clocks of the two processes contradict each other");
        }
        if let Times::Halved { half, .. } = &mut self.times {
            half.saturating_record(round_trip_ns.saturating_sub(held_ns) / 2);
        }
    }

    /// For people who watch.
    pub(super) fn latest(&self) -> String {
        format!("{}: {} µs", self.name, micros(self.latest_ns))
    }

    fn lost(&self) -> u64 {
        self.sent - self.answered
    }

    pub(super) fn print(&self, json: bool) -> Result<()> {
        if json {
            println!("{}", serde_json::to_string_pretty(&self.to_json())?);
        } else {
            self.show();
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        let one_way = match &self.times {
            Times::Measured { there, back } => json!({
                "measured": true,
                "there": distribution(there),
                "back": distribution(back),
            }),
            Times::Halved { half, because } => json!({
                "measured": false,
                "because": because,
                "half_of_round_trip": distribution(half),
            }),
        };
        let (ended, error) = match &self.ended {
            Ended::Done => ("done", None),
            Ended::Interrupted => ("interrupted", None),
            Ended::Lost(error) => ("peer lost", Some(error)),
        };
        json!({
            "name": self.name,
            "size_bytes": self.size_bytes,
            "sent": self.sent,
            "answered": self.answered,
            "lost": self.lost(),
            "not_answered_in_time": self.late_or_lost,
            "no_room": self.no_room,
            "answered_late": self.late,
            "damaged": self.damaged,
            "undelivered": self.undelivered,
            "first_contact_ns": self.first_ns,
            "round_trip": distribution(&self.round_trips),
            "one_way": one_way,
            "path": self.path.to_json(),
            "ended": ended,
            "error": error,
        })
    }

    fn show(&self) {
        println!("{}: {}", self.name, self.path.describe());
        let lost = self.lost();
        let share = match self.sent {
            0 => 0.0,
            sent => lost as f64 * 100.0 / sent as f64,
        };
        println!(
            "{} messages of {} bytes sent, {} answered, {lost} lost ({share:.3} %)",
            self.sent, self.size_bytes, self.answered
        );
        for (count, what) in [
            (self.late_or_lost, "not answered in time"),
            (self.no_room, "not sent: no room on the way"),
            (self.late, "answered after they were given up"),
            (self.damaged, "answered with other bytes"),
        ] {
            if count > 0 {
                println!("  {count} {what}");
            }
        }
        for (reason, count) in &self.undelivered {
            println!("  {count} packets came back: {reason}");
        }
        if self.answered > 0 {
            let mut header = vec!["µs"];
            header.extend(SHOWN.map(|(name, ..)| name));
            let mut table = hamlyn_cli::terminal::table(&header);
            table.add_row(row("round trip", &self.round_trips));
            match &self.times {
                Times::Measured { there, back } => {
                    table.add_row(row("there", there));
                    table.add_row(row("back", back));
                    println!("{table}");
                    println!("both processes read one clock: each way was measured");
                }
                Times::Halved { half, because } => {
                    table.add_row(row("half of it", half));
                    println!("{table}");
                    println!(
                        "one way was not measured ({because}): half of the round trip, less what the other side held"
                    );
                }
            }
        }
        if let Some(transport) = self.path.transport() {
            println!("{transport}");
        }
        match &self.ended {
            Ended::Done => {}
            Ended::Interrupted => println!("interrupted"),
            Ended::Lost(error) => println!("ended early: {error}"),
        }
    }
}

fn micros(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e3)
}

fn at(times: &Histogram<u64>, quantile: f64) -> u64 {
    match quantile {
        0.0 => times.min(),
        1.0 => times.max(),
        quantile => times.value_at_quantile(quantile).min(times.max()),
    }
}

fn row(what: &str, times: &Histogram<u64>) -> Vec<String> {
    let figures = SHOWN.map(|(_, _, quantile)| micros(at(times, quantile)));
    [what.to_owned()].into_iter().chain(figures).collect()
}

fn distribution(times: &Histogram<u64>) -> Value {
    if times.is_empty() {
        return Value::Null;
    }
    let figures = SHOWN.map(|(_, key, quantile)| (key.to_owned(), json!(at(times, quantile))));
    let mut all = serde_json::Map::from_iter(figures);
    all.insert("count".to_owned(), json!(times.len()));
    Value::Object(all)
}

#[cfg(test)]
mod tests;
