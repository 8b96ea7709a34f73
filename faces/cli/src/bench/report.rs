//! What was measured, for people and for programs.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::SIZES_BYTES;

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
    pub(crate) waking: Option<super::waking::Waking>,
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
            "wake_ns": self.waking.as_ref().map(|waking| waking.ours_ns),
            "futex_wake_ns": self.waking.as_ref().map(|waking| waking.futex_ns),
            "eventfd_wake_ns": self.waking.as_ref().map(|waking| waking.eventfd_ns),
        })
    }

    pub(crate) fn print(&self, as_json: bool) -> Result<()> {
        if as_json {
            println!("{}", serde_json::to_string_pretty(&self.json())?);
            return Ok(());
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
        if self.bandwidths.is_empty() {
            return Ok(());
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
        if let Some(waking) = &self.waking {
            println!(
                "waking a sleeper: {:.1} µs, by futex {:.1}, by eventfd {:.1}",
                waking.ours_ns / 1e3,
                waking.futex_ns / 1e3,
                waking.eventfd_ns / 1e3
            );
        }
        debug_assert!(self.bandwidths.len() <= SIZES_BYTES.len());
        Ok(())
    }
}
