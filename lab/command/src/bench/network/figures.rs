//! What was measured between two hosts, for people and for programs, beside the goals.

use anyhow::Result;
use hamlyn_sim::reproduce::Plot;
use hamlyn_sim::reproduce::report::Curve;
use serde_json::{Map, Value, json};

use super::loss::Unit;
use super::ours::{LARGE_BYTES, RECORD_BYTES};
use super::place::{Place, Protection};
use super::{PROTOCOLS, Protocol};
use crate::bench::median;

/// One way, over plain UDP, at most.
const GOAL_ONE_WAY: f64 = 1.2;
/// Bytes a second, over plain UDP, at least.
const GOAL_STREAM_CLEAR: f64 = 0.9;
const GOAL_STREAM_ENCRYPTED: f64 = 0.5;
/// 16-byte messages a second, at least.
const GOAL_MESSAGES_PER_S: f64 = 10e6;
/// What is left of the stream when one in a hundred is lost, at least.
const GOAL_LOSS: f64 = 0.9;
const GOAL_LOSS_PERCENT: f64 = 1.0;

/// What ours did in a round.
pub(super) struct Ours {
    pub(super) stream_bytes_per_s: f64,
    pub(super) large_bytes_per_s: f64,
    pub(super) each_per_s: f64,
    pub(super) many_per_s: f64,
}

/// What was measured one after the other.
pub(super) struct Round {
    pub(super) udp_bytes_per_s: f64,
    pub(super) ours: Vec<(Protection, Ours)>,
}

/// The stream under loss.
pub(super) struct Lossy {
    pub(super) protection: Protection,
    pub(super) unit: Unit,
    pub(super) percent: f64,
    /// Bytes a second.
    pub(super) rates: Vec<f64>,
}

/// One way, in one round.
struct OneWay {
    protocol: Protocol,
    protection: Protection,
    ns: f64,
    udp_ns: f64,
}

/// All of it.
pub(crate) struct Figures {
    why_no_wire: Option<String>,
    mtu_bytes: u32,
    one_ways: Vec<OneWay>,
    udp_one_way_ns: Vec<f64>,
    pub(super) rounds: Vec<Round>,
    pub(super) lossy: Vec<Lossy>,
}

/// Of several rounds.
#[derive(Clone, Copy)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(figures: Vec<f64>) -> Self {
        Self {
            least: figures.iter().copied().fold(f64::INFINITY, f64::min),
            most: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            median: median(figures),
        }
    }

    fn json(self) -> Value {
        json!({ "median": self.median, "least": self.least, "most": self.most })
    }

    /// In units of so many.
    fn shown(self, unit: f64, digits: usize) -> String {
        let [median, least, most] = [self.median, self.least, self.most].map(|one| one / unit);
        format!("{median:.digits$} ({least:.digits$} to {most:.digits$})")
    }
}

/// A goal, and how far it is reached.
struct Goal {
    name: &'static str,
    wanted: f64,
    reached: f64,
    /// Whether less is better.
    is_limit: bool,
}

impl Goal {
    fn is_met(&self) -> bool {
        if self.is_limit {
            self.reached <= self.wanted
        } else {
            self.reached >= self.wanted
        }
    }
}

type Rate = fn(&Ours) -> f64;

const RATES: [(&str, Rate); 4] = [
    ("bytes_per_s", |ours| ours.stream_bytes_per_s),
    ("large_bytes_per_s", |ours| ours.large_bytes_per_s),
    ("messages_per_s", |ours| ours.each_per_s),
    ("messages_per_s_many", |ours| ours.many_per_s),
];

impl Figures {
    pub(super) fn new(place: &Place) -> Self {
        Self {
            why_no_wire: place.why_not.clone(),
            mtu_bytes: place.mtu_bytes,
            one_ways: Vec::new(),
            udp_one_way_ns: Vec::new(),
            rounds: Vec::new(),
            lossy: Vec::new(),
        }
    }

    pub(super) fn add_one_way(
        &mut self,
        protocol: Protocol,
        udp_ns: f64,
        ours: &[(Protection, f64)],
    ) {
        self.udp_one_way_ns.push(udp_ns);
        self.one_ways
            .extend(ours.iter().map(|&(protection, ns)| OneWay {
                protocol,
                protection,
                ns,
                udp_ns,
            }));
    }

    fn one_way(
        &self,
        protocol: Protocol,
        protection: Protection,
        figure: fn(&OneWay) -> f64,
    ) -> Spread {
        let is_it = |one: &&OneWay| one.protocol == protocol && one.protection == protection;
        Spread::of(self.one_ways.iter().filter(is_it).map(figure).collect())
    }

    /// A rate of ours in each round, over what that says of the round.
    fn rate(&self, protection: Protection, rate: Rate, over: fn(&Round) -> f64) -> Spread {
        let of = |round: &Round| {
            let mut ours = round.ours.iter();
            let (_, ours) = ours.find(|(other, _)| *other == protection)?;
            Some(rate(ours) / over(round))
        };
        Spread::of(self.rounds.iter().filter_map(of).collect())
    }

    fn udp_one_way_ns(&self) -> Spread {
        Spread::of(self.udp_one_way_ns.clone())
    }

    fn udp_bytes_per_s(&self) -> Spread {
        let rates = self.rounds.iter().map(|round| round.udp_bytes_per_s);
        Spread::of(rates.collect())
    }

    /// The stream with that loss over the stream without.
    fn left(&self, lossy: &Lossy) -> f64 {
        let is_whole = |other: &&Lossy| {
            other.percent == 0.0 && other.unit == lossy.unit && other.protection == lossy.protection
        };
        let whole = self.lossy.iter().find(is_whole);
        median(lossy.rates.clone()) / whole.map_or(f64::NAN, |whole| median(whole.rates.clone()))
    }

    fn goals(&self) -> Vec<Goal> {
        let over_udp = |protection| {
            let [(_, stream), ..] = RATES;
            self.rate(protection, stream, |round| round.udp_bytes_per_s)
                .median
        };
        let one_way =
            |protection| self.one_way(PROTOCOLS[0], protection, |one| one.ns / one.udp_ns);
        let each = |protection| {
            self.rate(protection, |ours| ours.each_per_s, |_| 1.0)
                .median
        };
        let many = |protection| {
            self.rate(protection, |ours| ours.many_per_s, |_| 1.0)
                .median
        };
        let left = |protection| {
            let is_it = |lossy: &&Lossy| {
                lossy.percent == GOAL_LOSS_PERCENT && lossy.protection == protection
            };
            let left = self.lossy.iter().filter(is_it);
            left.map(|lossy| self.left(lossy)).reduce(f64::min)
        };
        let goal = |name, wanted, reached, is_limit| Goal {
            name,
            wanted,
            reached,
            is_limit,
        };
        let [clear, encrypted] = Protection::ALL;
        let mut goals = vec![
            goal(
                "one way over UDP, clear",
                GOAL_ONE_WAY,
                one_way(clear).median,
                true,
            ),
            goal(
                "one way over UDP, encrypted",
                GOAL_ONE_WAY,
                one_way(encrypted).median,
                true,
            ),
            goal(
                "stream over UDP, clear",
                GOAL_STREAM_CLEAR,
                over_udp(clear),
                false,
            ),
            goal(
                "stream over UDP, encrypted",
                GOAL_STREAM_ENCRYPTED,
                over_udp(encrypted),
                false,
            ),
            goal(
                "messages a second, one call each, clear",
                GOAL_MESSAGES_PER_S,
                each(clear),
                false,
            ),
            goal(
                "messages a second, one call each, encrypted",
                GOAL_MESSAGES_PER_S,
                each(encrypted),
                false,
            ),
            goal(
                "messages a second, 64 in a call, clear",
                GOAL_MESSAGES_PER_S,
                many(clear),
                false,
            ),
            goal(
                "messages a second, 64 in a call, encrypted",
                GOAL_MESSAGES_PER_S,
                many(encrypted),
                false,
            ),
        ];
        if let (Some(in_clear), Some(in_secret)) = (left(clear), left(encrypted)) {
            goals.extend([
                goal("stream left at 1 % loss, clear", GOAL_LOSS, in_clear, false),
                goal(
                    "stream left at 1 % loss, encrypted",
                    GOAL_LOSS,
                    in_secret,
                    false,
                ),
            ]);
        }
        goals
    }

    pub(super) fn plots(&self) -> Vec<Plot> {
        let mut curves = Vec::new();
        for unit in Unit::ALL {
            for protection in Protection::ALL {
                let of = self
                    .lossy
                    .iter()
                    .filter(|lossy| lossy.unit == unit && lossy.protection == protection);
                curves.push(Curve {
                    label: format!("{}, {} lost", protection.name(), unit.name()),
                    points: of
                        .map(|lossy| (lossy.percent, median(lossy.rates.clone()) / 1e6))
                        .collect(),
                });
            }
        }
        vec![Plot {
            name: "network-loss".to_owned(),
            title: "A stream between two hosts, under loss".to_owned(),
            across: "lost in each direction, %",
            unit: "MB a second",
            curves,
            anchors: Vec::new(),
        }]
    }

    fn json(&self) -> Value {
        let by_protection = |figure: &dyn Fn(Protection) -> Value| -> Value {
            Protection::ALL
                .map(|protection| (protection.name().to_owned(), figure(protection)))
                .into_iter()
                .collect::<Map<_, _>>()
                .into()
        };
        let one_way = |protocol| {
            by_protection(&|protection| {
                json!(self.one_way(protocol, protection, |one| one.ns).median)
            })
        };
        let mut all = Map::new();
        let mut spread = Map::new();
        all.insert("place".into(), json!(self.place()));
        all.insert("why_no_wire".into(), json!(self.why_no_wire));
        all.insert("mtu_bytes".into(), json!(self.mtu_bytes));
        all.insert("record_bytes".into(), json!(RECORD_BYTES));
        all.insert("large_message_bytes".into(), json!(LARGE_BYTES));
        let udp = [
            ("udp_raw_one_way_ns", self.udp_one_way_ns()),
            ("udp_raw_bytes_per_s", self.udp_bytes_per_s()),
        ];
        for (name, figure) in udp {
            all.insert(name.into(), json!(figure.median));
            spread.insert(name.into(), figure.json());
        }
        all.insert("one_way_ns".into(), one_way(PROTOCOLS[0]));
        let by_protocol: Map<_, _> = PROTOCOLS
            .map(|protocol| (protocol.name().to_owned(), one_way(protocol)))
            .into_iter()
            .collect();
        all.insert("one_way_ns_by_protocol".into(), by_protocol.into());
        let over = by_protection(&|protection| {
            let spread = self.one_way(PROTOCOLS[0], protection, |one| one.ns / one.udp_ns);
            json!(spread.median)
        });
        all.insert("one_way_over_udp_raw".into(), over);
        spread.insert(
            "one_way_ns".into(),
            by_protection(&|protection| {
                self.one_way(PROTOCOLS[0], protection, |one| one.ns).json()
            }),
        );
        for (name, rate) in RATES {
            let of = |protection| self.rate(protection, rate, |_| 1.0);
            let medians = by_protection(&|protection| json!(of(protection).median.round()));
            all.insert(name.into(), medians);
            spread.insert(
                name.into(),
                by_protection(&|protection| of(protection).json()),
            );
        }
        let over = by_protection(&|protection| {
            let [(_, stream), ..] = RATES;
            let over = self.rate(protection, stream, |round| round.udp_bytes_per_s);
            json!(over.median)
        });
        all.insert("bytes_over_udp_raw".into(), over);
        all.insert("spread".into(), spread.into());
        let lossy = self.lossy.iter().map(|lossy| {
            json!({
                "protection": lossy.protection.name(),
                "lost_in": lossy.unit.name(),
                "percent": lossy.percent,
                "bytes_per_s": Spread::of(lossy.rates.clone()).json(),
                "left": self.left(lossy),
            })
        });
        all.insert("loss".into(), lossy.collect());
        let goals = self.goals();
        let goals = goals.iter().map(|goal| {
            json!({
                "name": goal.name,
                "goal": goal.wanted,
                "reached": goal.reached,
                "less_is_better": goal.is_limit,
                "met": goal.is_met(),
            })
        });
        all.insert("goals".into(), goals.collect());
        json!({ "network": all })
    }

    fn place(&self) -> &'static str {
        match self.why_no_wire {
            None => "network namespaces joined by a veth pair",
            Some(_) => "loopback",
        }
    }

    pub(crate) fn print(&self, as_json: bool) -> Result<()> {
        if as_json {
            println!("{}", serde_json::to_string_pretty(&self.json())?);
            return Ok(());
        }
        println!(
            "Two hosts: {}, MTU {} bytes. Medians (and the least and the most).",
            self.place(),
            self.mtu_bytes
        );
        self.print_one_way();
        self.print_rates();
        self.print_loss();
        let columns = ["goal", "wanted", "reached", ""];
        let mut table = hamlyn_cli::terminal::table(&columns);
        for goal in self.goals() {
            let shown = |figure: f64| match figure {
                figure if figure > 1e6 => format!("{:.1} million", figure / 1e6),
                figure => format!("{figure:.2}"),
            };
            let limit = if goal.is_limit { "at most" } else { "at least" };
            table.add_row([
                goal.name.to_owned(),
                format!("{limit} {}", shown(goal.wanted)),
                shown(goal.reached),
                if goal.is_met() { "met" } else { "NOT MET" }.to_owned(),
            ]);
        }
        println!("{table}");
        Ok(())
    }

    fn print_one_way(&self) {
        let columns = ["16 bytes, one way", "µs", "over UDP"];
        let mut table = hamlyn_cli::terminal::table(&columns);
        let udp = self.udp_one_way_ns();
        table.add_row(["UDP".to_owned(), udp.shown(1e3, 2), String::new()]);
        for protocol in PROTOCOLS {
            for protection in Protection::ALL {
                let of = |figure| self.one_way(protocol, protection, figure);
                table.add_row([
                    format!("{}, {}", protocol.name(), protection.name()),
                    of(|one| one.ns).shown(1e3, 2),
                    of(|one| one.ns / one.udp_ns).shown(1.0, 2),
                ]);
            }
        }
        println!("{table}");
    }

    fn print_rates(&self) {
        let columns = ["a second", "", "over UDP"];
        let mut table = hamlyn_cli::terminal::table(&columns);
        let udp = self.udp_bytes_per_s();
        table.add_row([
            "UDP, MB that arrived".to_owned(),
            udp.shown(1e6, 0),
            String::new(),
        ]);
        let labels = [
            "stream, MB",
            "1 MiB messages, MB",
            "16-byte messages, million",
            "the same, 64 in a call",
        ];
        for ((_, rate), label) in RATES.into_iter().zip(labels) {
            for protection in Protection::ALL {
                let is_bytes = label.ends_with("MB");
                let over = self.rate(protection, rate, |round| round.udp_bytes_per_s);
                let rate = self.rate(protection, rate, |_| 1.0);
                table.add_row([
                    format!("{label}, {}", protection.name()),
                    rate.shown(1e6, if is_bytes { 0 } else { 2 }),
                    if is_bytes {
                        over.shown(1.0, 2)
                    } else {
                        String::new()
                    },
                ]);
            }
        }
        println!("{table}");
    }

    fn print_loss(&self) {
        if self.lossy.is_empty() {
            return;
        }
        let columns = ["lost", "of", "", "stream, MB a second", "left"];
        let mut table = hamlyn_cli::terminal::table(&columns);
        for lossy in &self.lossy {
            table.add_row([
                format!("{} %", lossy.percent),
                lossy.unit.name().to_owned(),
                lossy.protection.name().to_owned(),
                Spread::of(lossy.rates.clone()).shown(1e6, 0),
                format!("{:.2}", self.left(lossy)),
            ]);
        }
        println!("{table}");
    }
}
