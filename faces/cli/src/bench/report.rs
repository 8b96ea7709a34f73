//! What was measured, for people and for programs.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::SIZES_BYTES;
use super::instructions::Instructions;
use super::strategies::Figures;

struct Latency {
    protocol: &'static str,
    one_way_ns: f64,
    over_raw: f64,
    raw_ns: f64,
    repeated: usize,
}

struct Bandwidth {
    size: usize,
    ours: f64,
    put: f64,
    memcpy: f64,
}

#[derive(Default)]
pub(crate) struct Report {
    latencies: Vec<Latency>,
    bandwidths: Vec<Bandwidth>,
    pub(crate) messages_per_s: f64,
    pub(crate) idle_peer_bytes: u64,
    pub(crate) strategies: Vec<Figures>,
    /// Nothing where they cannot be counted.
    pub(crate) instructions: Option<Instructions>,
}

impl Report {
    pub(crate) fn add_latency(
        &mut self,
        protocol: &'static str,
        one_way_ns: f64,
        over_raw: f64,
        raw_ns: f64,
        repeated: usize,
    ) {
        self.latencies.push(Latency {
            protocol,
            one_way_ns,
            over_raw,
            raw_ns,
            repeated,
        });
    }

    pub(crate) fn add_bandwidth(&mut self, size: usize, ours: f64, put: f64, memcpy: f64) {
        self.bandwidths.push(Bandwidth {
            size,
            ours,
            put,
            memcpy,
        });
    }

    fn raw_ns(&self) -> f64 {
        super::median(
            self.latencies
                .iter()
                .map(|latency| latency.raw_ns)
                .collect(),
        )
    }

    fn json(&self) -> Value {
        let by_protocol = |figure: fn(&Latency) -> f64| -> Map<String, Value> {
            self.latencies
                .iter()
                .map(|latency| (latency.protocol.to_owned(), json!(figure(latency))))
                .collect()
        };
        let by_size = |figure: fn(&Bandwidth) -> f64| -> Map<String, Value> {
            self.bandwidths
                .iter()
                .map(|bandwidth| (bandwidth.size.to_string(), json!(figure(bandwidth).round())))
                .collect()
        };
        json!({
            "raw_handoff_ns": self.raw_ns(),
            "one_way_ns": by_protocol(|latency| latency.one_way_ns),
            "one_way_over_raw": by_protocol(|latency| latency.over_raw),
            "repeated": by_protocol(|latency| latency.repeated as f64),
            "messages_per_s": self.messages_per_s.round(),
            "bandwidth_bytes_per_s": by_size(|bandwidth| bandwidth.ours),
            "raw_put_bytes_per_s": by_size(|bandwidth| bandwidth.put),
            "memcpy_bytes_per_s": by_size(|bandwidth| bandwidth.memcpy),
            "idle_peer_bytes": self.idle_peer_bytes,
            "strategies": self.strategies.iter().map(Figures::json).collect::<Vec<_>>(),
            "instructions_per_send": self.instructions.as_ref().map(|counted| &counted.per_send),
            "instructions_per_receive": self.instructions.as_ref().map(|counted| &counted.per_receive),
        })
    }

    pub(crate) fn print(&self, as_json: bool) -> Result<()> {
        if as_json {
            println!("{}", serde_json::to_string_pretty(&self.json())?);
            return Ok(());
        }
        self.print_latencies();
        self.print_bandwidths();
        self.print_strategies();
        self.print_instructions();
        Ok(())
    }

    fn print_latencies(&self) {
        if self.latencies.is_empty() {
            return;
        }
        let mut table = crate::terminal::table(&["16 bytes, one way", "ns", "over raw"]);
        table.add_row([
            "raw cache-line hand-off",
            &format!("{:.0}", self.raw_ns()),
            "1.00",
        ]);
        for latency in &self.latencies {
            table.add_row([
                latency.protocol,
                &format!("{:.0}", latency.one_way_ns),
                &format!("{:.2}", latency.over_raw),
            ]);
        }
        println!("{table}");
    }

    fn print_bandwidths(&self) {
        if self.bandwidths.is_empty() {
            return;
        }
        println!(
            "short messages: {:.1} million a second",
            self.messages_per_s / 1e6
        );
        let mut table = crate::terminal::table(&["size", "GB/s", "raw put", "memcpy", "of put"]);
        for bandwidth in &self.bandwidths {
            table.add_row([
                indicatif::HumanBytes(bandwidth.size as u64).to_string(),
                format!("{:.1}", bandwidth.ours / 1e9),
                format!("{:.1}", bandwidth.put / 1e9),
                format!("{:.1}", bandwidth.memcpy / 1e9),
                format!("{:.2}", bandwidth.ours / bandwidth.put),
            ]);
        }
        println!("{table}");
        println!("memory per idle peer: {} KiB", self.idle_peer_bytes / 1024);
        debug_assert!(self.bandwidths.len() <= SIZES_BYTES.len());
    }

    fn print_strategies(&self) {
        if self.strategies.is_empty() {
            return;
        }
        let mut table = crate::terminal::table(&["strategy", "one way, ns", "over raw"]);
        for figures in &self.strategies {
            table.add_row([
                figures.strategy.to_owned(),
                format!("{:.0}", figures.one_way_ns),
                format!("{:.2}", figures.over_raw),
            ]);
        }
        println!("{table}");
        println!("in the receiver's memory while it computes in grains, µs: median, 99 of 100");
        let mut table = crate::terminal::table(&["strategy"]);
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

    fn print_instructions(&self) {
        let Some(instructions) = &self.instructions else {
            return;
        };
        let mut table = crate::terminal::table(&["instructions, 16 bytes", "send", "receive"]);
        for (protocol, send) in &instructions.per_send {
            let receive = instructions.per_receive.get(protocol);
            table.add_row([
                (*protocol).to_owned(),
                format!("{send:.1}"),
                receive.map_or(String::new(), |receive| format!("{receive:.1}")),
            ]);
        }
        println!("{table}");
    }
}
