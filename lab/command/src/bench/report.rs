//! What was measured, for people and for programs.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::large::Figures;
use super::latency::Figures as Latency;
use hamlyn_counted::instructions::Instructions;

type Figure = fn(&Figures) -> f64;

/// Below this the raw hand-off, in nanoseconds, is that of two processors that share a core or its
/// caches (10 to 62 so far); above, that of two which do not (120 to 260).
const NEAR_MAX_NS: f64 = 90.0;
/// By that factor the raw hand-off may move within a run before the run says so.
const MOVED: f64 = 1.25;

#[derive(Default)]
pub(crate) struct Report {
    /// Programs that ran or wanted to on average, in the minute before.
    pub(crate) load: f64,
    /// What the raw hand-off of a line took, whenever it was measured, in nanoseconds.
    pub(crate) raw_handoffs_ns: Vec<f64>,
    /// By row and length.
    pub(crate) one_way: Vec<(&'static str, usize, Latency)>,
    /// By length.
    pub(crate) request_reply: Vec<(usize, Latency)>,
    pub(crate) service: Vec<(usize, Latency)>,
    pub(crate) large: Vec<Figures>,
    /// By size: what a link does after its first 4 MiB, over what it does later.
    pub(crate) settled: Vec<(usize, f64)>,
    pub(crate) rates: Vec<super::throughput::Figures>,
    pub(crate) loans: Vec<super::loans::Figures>,
    pub(crate) idle_peer_bytes: u64,
    pub(crate) waking: Option<super::waking::Waking>,
    pub(crate) strategies: Vec<super::strategies::Figures>,
    pub(crate) one_sided: Option<super::one_sided::Figures>,
    pub(crate) senders: Vec<super::senders::Figures>,
    pub(crate) threads: Vec<super::threads::Figures>,
    pub(crate) oversubscribed: Option<super::oversubscribed::Figures>,
    pub(crate) beside_a_stopped_peer: Vec<super::stopped::Figures>,
    pub(crate) overflow: Option<super::overflow::Figures>,
    pub(crate) active_messages: Option<super::active::Figures>,
    pub(crate) direct_messages: Option<super::direct::Figures>,
    pub(crate) event_loop: Vec<super::event_loop::Figures>,
    /// Nothing where they cannot be counted.
    pub(crate) instructions: Option<Instructions>,
}

impl Report {
    /// Remembers what the raw hand-off of a line took beside these.
    pub(crate) fn note_raw(&mut self, figures: &Latency) {
        if figures.is_line {
            self.raw_handoffs_ns.push(figures.raw_ns);
        }
    }

    pub(crate) fn raw_ns(&self) -> f64 {
        super::median(self.raw_handoffs_ns.clone())
    }

    /// The least and the most that the raw hand-off took.
    fn raw_range_ns(&self) -> [f64; 2] {
        let all = self.raw_handoffs_ns.iter().copied();
        [
            all.clone().fold(f64::INFINITY, f64::min),
            all.fold(0.0, f64::max),
        ]
    }

    /// How near the two processors were to each other; or that this changed within the run.
    pub(crate) fn state(&self) -> &'static str {
        let [least, most] = self.raw_range_ns();
        match self.raw_ns() {
            _ if self.raw_handoffs_ns.is_empty() => "not measured",
            _ if most > MOVED * least => "moved",
            raw if raw < NEAR_MAX_NS => "near",
            _ => "far",
        }
    }

    /// By row and then by length.
    fn one_way_json(&self, figure: fn(&Latency) -> f64) -> Value {
        let mut rows = json!({});
        for (row, length_bytes, latency) in &self.one_way {
            rows[row][length_bytes.to_string()] = json!(figure(latency));
        }
        rows
    }

    fn json(&self) -> Value {
        let by_length = |latencies: &[(usize, Latency)], figure: fn(&Latency) -> f64| {
            latencies
                .iter()
                .map(|(length_bytes, latency)| (length_bytes.to_string(), json!(figure(latency))))
                .collect::<Map<_, _>>()
        };
        let (request_reply, service) = (&self.request_reply, &self.service);
        let latencies = self.one_way.iter().map(|(_, _, latency)| latency);
        let latencies = latencies.chain(
            request_reply
                .iter()
                .chain(service)
                .map(|(_, latency)| latency),
        );
        let repeated: usize = latencies.map(|latency| latency.repeated).sum();
        let large = |fresh: bool| -> Map<String, Value> {
            let by_size = |figure: Figure| -> Value {
                self.large
                    .iter()
                    .filter(|figures| figures.buffers.fresh == fresh)
                    .map(|figures| {
                        (
                            figures.buffers.size_bytes.to_string(),
                            json!(figure(figures)),
                        )
                    })
                    .collect::<Map<_, _>>()
                    .into()
            };
            let figures: [(&str, Figure); 9] = [
                ("copied_bytes_per_s", |figures| figures.copied.round()),
                ("direct_bytes_per_s", |figures| figures.direct.round()),
                ("direct_over_raw_put", |figures| figures.direct_over_put),
                ("gathered_bytes_per_s", |figures| figures.gathered.round()),
                ("gathered_over_raw_put", |figures| figures.gathered_over_put),
                ("raw_put_bytes_per_s", |figures| figures.raw_put.round()),
                ("raw_two_copy_bytes_per_s", |figures| {
                    figures.raw_two_copy.round()
                }),
                ("memcpy_bytes_per_s", |figures| figures.memcpy.round()),
                ("copied_over_raw_two_copy", |figures| {
                    figures.copied_over_two_copy
                }),
            ];
            figures
                .into_iter()
                .map(|(name, figure)| (name.to_owned(), by_size(figure)))
                .collect()
        };
        let mut all = json!({
            "processor": processor(),
            "state": self.state(),
            "load_before": self.load,
            "raw_handoff_ns": self.raw_ns(),
            "raw_handoff_range_ns": self.raw_range_ns(),
            "one_way_ns": self.one_way_json(|latency| latency.one_way_ns),
            "one_way_over_raw": self.one_way_json(|latency| latency.over_raw),
            "request_reply_ns": by_length(request_reply, |latency| latency.one_way_ns),
            "request_reply_over_raw": by_length(request_reply, |latency| latency.over_raw),
            "service_ns": by_length(service, |latency| latency.one_way_ns),
            "service_over_raw": by_length(service, |latency| latency.over_raw),
            "repeated_batches": repeated,
            "message_rates": super::throughput::rates_json(&self.rates),
            "messages_over_raw_cells": super::throughput::over_raw_json(&self.rates),
            "loan_ns": super::loans::loan_json(&self.loans),
            "idle_peer_bytes": self.idle_peer_bytes,
            "wake_ns": self.waking.as_ref().map(|waking| waking.ours_ns),
            "futex_wake_ns": self.waking.as_ref().map(|waking| waking.futex_ns),
            "eventfd_wake_ns": self.waking.as_ref().map(|waking| waking.eventfd_ns),
            "strategies": self.strategies,
            "one_sided": self.one_sided,
            "senders": self.senders.iter().map(super::senders::Figures::json).collect::<Vec<_>>(),
            "threads": self.threads,
            "oversubscribed": self.oversubscribed.as_ref().map(super::oversubscribed::Figures::json),
            "beside_a_stopped_peer": self.beside_a_stopped_peer,
            "overflow": self.overflow,
            "active_messages": self.active_messages,
            "direct_messages": self.direct_messages,
            "epoll_call_over_blocking": self.event_loop,
            "instructions_per_send": self.instructions.as_ref().map(|counted| &counted.per_send),
            "instructions_per_receive": self.instructions.as_ref().map(|counted| &counted.per_receive),
            "fresh_buffers": large(true),
            "copied_after_4_mib_over_settled": self.settled.iter()
                .map(|(size_bytes, ratio)| (size_bytes.to_string(), json!(ratio)))
                .collect::<Map<_, _>>(),
        });
        if let Some(all) = all.as_object_mut() {
            all.extend(large(false));
        }
        all
    }

    pub(crate) fn print(&self, as_json: bool) -> Result<()> {
        if as_json {
            println!("{}", serde_json::to_string_pretty(&self.json())?);
            return Ok(());
        }
        if !self.raw_handoffs_ns.is_empty() {
            let [least, most] = self.raw_range_ns();
            let state = match self.state() {
                "moved" => "moved during the run".to_owned(),
                state => format!("are {state}"),
            };
            println!(
                "{}, load {:.1}: the two processors {state}; a line goes from one to the other in {:.0} ns ({least:.0} to {most:.0})",
                processor(),
                self.load,
                self.raw_ns()
            );
        }
        self.print_one_way();
        self.print_request_reply();
        if !self.rates.is_empty() {
            super::throughput::print(&self.rates);
        }
        if !self.large.is_empty() {
            self.print_large();
        }
        if !self.loans.is_empty() {
            super::loans::print(&self.loans);
        }
        if self.idle_peer_bytes > 0 {
            println!("memory per idle peer: {} KiB", self.idle_peer_bytes / 1024);
        }
        if let Some(waking) = &self.waking {
            println!(
                "waking a sleeper: {:.1} µs, by futex {:.1}, by eventfd {:.1}",
                waking.ours_ns / 1e3,
                waking.futex_ns / 1e3,
                waking.eventfd_ns / 1e3
            );
        }
        self.print_strategies();
        if let Some(figures) = &self.one_sided {
            super::one_sided::print(figures);
        }
        self.print_senders();
        if !self.threads.is_empty() {
            let mut table = hamlyn_cli::terminal::table(&super::threads::Figures::COLUMNS);
            for figures in &self.threads {
                table.add_row(figures.row());
            }
            println!("How do threads share an interface? 16 bytes\n{table}");
        }
        self.print_oversubscribed();
        if let Some(figures) = &self.overflow {
            figures.print();
        }
        if let Some(figures) = &self.active_messages {
            figures.print();
        }
        if let Some(figures) = &self.direct_messages {
            figures.print();
        }
        if !self.beside_a_stopped_peer.is_empty() {
            let mut table = hamlyn_cli::terminal::table(&super::stopped::Figures::COLUMNS);
            for figures in &self.beside_a_stopped_peer {
                table.add_row(figures.row());
            }
            println!("What do live peers get beside a stopped one?\n{table}");
        }
        if !self.event_loop.is_empty() {
            let mut table = hamlyn_cli::terminal::table(&super::event_loop::Figures::COLUMNS);
            for figures in &self.event_loop {
                table.add_row(figures.row());
            }
            println!("What does a call in an epoll loop cost beside one that blocks?\n{table}");
        }
        self.print_instructions();
        Ok(())
    }

    fn print_one_way(&self) {
        if self.one_way.is_empty() {
            return;
        }
        let mut rows = Vec::new();
        let mut lengths = Vec::new();
        for &(row, length_bytes, _) in &self.one_way {
            if !rows.contains(&row) {
                rows.push(row);
            }
            if !lengths.contains(&length_bytes) {
                lengths.push(length_bytes);
            }
        }
        let mut table = hamlyn_cli::terminal::table(&["bytes"]);
        let header = ["bytes"].into_iter().chain(rows.iter().copied());
        table.set_header(header);
        for length_bytes in lengths {
            let mut cells = vec![length_bytes.to_string()];
            for row in &rows {
                let found = self
                    .one_way
                    .iter()
                    .find(|(of, length, _)| of == row && *length == length_bytes);
                cells.push(found.map_or(String::new(), |(_, _, latency)| {
                    format!("{:.0} ({:.2})", latency.one_way_ns, latency.over_raw)
                }));
            }
            table.add_row(cells);
        }
        println!("How long does a message take, one way in a ping-pong? ns (over raw)\n{table}");
    }

    fn print_request_reply(&self) {
        if self.request_reply.is_empty() {
            return;
        }
        let columns = [
            "bytes each way",
            "fast mode, ns",
            "over raw",
            "service, ns",
            "over raw",
        ];
        let mut table = hamlyn_cli::terminal::table(&columns);
        for ((length_bytes, fast), (_, service)) in self.request_reply.iter().zip(&self.service) {
            table.add_row([
                length_bytes.to_string(),
                format!("{:.0}", fast.one_way_ns),
                format!("{:.2}", fast.over_raw),
                format!("{:.0}", service.one_way_ns),
                format!("{:.2}", service.over_raw),
            ]);
        }
        println!("How long does a request and its reply take? Half of it\n{table}");
    }

    fn print_large(&self) {
        let columns = [
            "size",
            "buffers",
            "copied",
            "raw 2 copies",
            "ratio",
            "direct",
            "raw put",
            "ratio",
            "memcpy",
        ];
        let mut table = hamlyn_cli::terminal::table(&columns);
        for figures in &self.large {
            let rate = |figure: f64| format!("{:.1}", figure / 1e9);
            table.add_row([
                indicatif::HumanBytes(figures.buffers.size_bytes as u64).to_string(),
                if figures.buffers.fresh {
                    "fresh"
                } else {
                    "reused"
                }
                .to_owned(),
                rate(figures.copied),
                rate(figures.raw_two_copy),
                format!("{:.2}", figures.copied_over_two_copy),
                rate(figures.direct),
                rate(figures.raw_put),
                format!("{:.2}", figures.direct_over_put),
                rate(figures.memcpy),
            ]);
        }
        println!("How many GB a second do long messages carry?\n{table}");
        let settled = self.settled.iter().map(|&(size_bytes, ratio)| {
            format!("{}: {ratio:.2}", indicatif::HumanBytes(size_bytes as u64))
        });
        let settled: Vec<_> = settled.collect();
        println!(
            "A new link after 4 MiB, over what it does later: {}",
            settled.join(", ")
        );
    }

    fn print_strategies(&self) {
        if self.strategies.is_empty() {
            return;
        }
        let mut table = hamlyn_cli::terminal::table(&["strategy", "one way, ns", "over raw"]);
        for figures in &self.strategies {
            table.add_row([
                figures.strategy.to_owned(),
                format!("{:.0}", figures.one_way_ns),
                format!("{:.2}", figures.over_raw),
            ]);
        }
        println!("What does a message take with each strategy? 16 bytes\n{table}");
        println!("When does it land while the receiver computes in grains? µs: median, 99 of 100");
        let mut table = hamlyn_cli::terminal::table(&["strategy"]);
        let mut header = vec!["strategy".to_owned()];
        for (at, figures) in self.strategies.iter().enumerate() {
            let mut row = vec![figures.strategy.to_owned()];
            for attentiveness in &figures.attentiveness {
                if at == 0 {
                    let grain = std::time::Duration::from_nanos(attentiveness.grain_ns);
                    header.push(format!("{grain:?}"));
                }
                row.push(format!(
                    "{:.1}, {:.1}",
                    attentiveness.median_ns / 1e3,
                    attentiveness.p99_ns / 1e3
                ));
            }
            table.add_row(row);
        }
        table.set_header(header);
        println!("{table}");
    }

    fn print_senders(&self) {
        if self.senders.is_empty() {
            return;
        }
        let mut table = hamlyn_cli::terminal::table(&super::senders::Figures::COLUMNS);
        for figures in &self.senders {
            table.add_row(figures.row());
        }
        println!("How does one receiver serve many senders? 16 bytes\n{table}");
    }

    fn print_oversubscribed(&self) {
        let Some(figures) = &self.oversubscribed else {
            return;
        };
        let columns = [
            "16 bytes",
            "processes",
            "million/s",
            "over 2 processes",
            "slowest/mean",
        ];
        let mut table = hamlyn_cli::terminal::table(&columns);
        let million = |rate: f64| format!("{:.2}", rate / 1e6);
        for rates in &figures.rates {
            let name = rates.exchange.name().replace('_', " ");
            let alone = million(rates.alone_per_s);
            table.add_row([&name, "2", &alone, "1.00", "1.00"]);
            for (how, together) in [("placed", &rates.placed), ("free", &rates.free)] {
                table.add_row([
                    name.clone(),
                    format!("{}, {how}", super::oversubscribed::Figures::PROCESSES),
                    million(together.per_s),
                    format!("{:.2}", together.ratio),
                    format!("{:.2}", together.slowest_over_mean),
                ]);
            }
        }
        println!("What do more processes than processors get done?\n{table}");
    }

    fn print_instructions(&self) {
        let Some(instructions) = &self.instructions else {
            return;
        };
        let mut table = hamlyn_cli::terminal::table(&["instructions", "send", "receive"]);
        for (protocol, send) in &instructions.per_send {
            let receive = instructions.per_receive.get(protocol);
            table.add_row([
                (*protocol).to_owned(),
                format!("{send:.1}"),
                receive.map_or(String::new(), |receive| format!("{receive:.1}")),
            ]);
        }
        println!("How many instructions does a message take?\n{table}");
    }
}

/// Programs that run or want to, on average over the last minute; nothing if the kernel does not
/// say.
pub(crate) fn load() -> f64 {
    let told = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = told.split(' ').next().and_then(|first| first.parse().ok());
    first.unwrap_or(f64::NAN)
}

/// What the processor is called.
pub(crate) fn processor() -> String {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = told
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map(|rest| rest.trim_start_matches([' ', '\t', ':']));
    model.unwrap_or(std::env::consts::ARCH).to_owned()
}
