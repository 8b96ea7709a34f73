//! How much a fabric takes before it takes no more, and what adaptive routing gains by it.
//!
//! The paper argues for networks that reorder because adaptive routing about doubles their
//! throughput, which it cites and could not measure (Hamlyn 1 and 6.1, inventory H-019 and H-382).
//! Here every host makes frames at random instants, at a given share of its cable's rate, whatever
//! becomes of them (open loop); they wait at the host in a queue without end. Counted is what
//! arrives after a warm-up. Only integers decide, so the numbers are the same on every machine.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::topology::{Topology, TopologyError};
use super::{Event, Fabric, Frame, HostId, Network, Payload, Refusal, Routing};
use crate::event_queue::EventQueue;
use crate::random::Random;
use crate::time::{Span, Time};

/// Who sends to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// Each frame to any other host.
    Uniform,
    /// As [`Traffic::Uniform`], but so many frames of a thousand go to host 0.
    HotSpot {
        /// Of a thousand frames.
        per_mille: u32,
    },
    /// Each host to all others in turn, beginning with its neighbour.
    AllToAll,
    /// Each host always to the same other one, and each from one, drawn by the seed.
    Permutation,
    /// Each host always to the one whose number has its bits in reverse, as in a transposition: the
    /// case that ways chosen by numbers fear. Hosts that would send to themselves, or to nobody,
    /// are silent and not counted.
    BitReversal,
}

/// What is to be measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Experiment {
    /// Hosts, switches, cables.
    pub topology: Topology,
    /// Who chooses the way.
    pub routing: Routing,
    /// Who sends to whom.
    pub traffic: Traffic,
    /// Length of each frame on the wire.
    pub frame_bytes: u32,
    /// Not counted.
    pub warm_up: Span,
    /// Counted.
    pub measured: Span,
    /// The same seed makes the same frames for every routing.
    pub seed: u64,
}

/// What came of one load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Made, in thousandths of what a host's cable carries.
    pub offered_per_mille: u32,
    /// Arrived while counted, in thousandths of what the hosts' cables carry.
    pub accepted_per_mille: u32,
    /// The same for each host, in MB/s.
    pub accepted_mb_per_s: f64,
    /// From when a frame is made until its last byte is there, of those that arrived while counted.
    pub mean_latency_ns: u64,
    /// Of a hundred frames, 99 were faster.
    pub p99_latency_ns: u64,
    /// Of a million, so many came after one of the same pair that was sent later.
    pub reordered_per_million: u32,
    /// Frames that arrived while counted.
    pub frames: u64,
    /// Events of the fabric, the warm-up's included.
    pub events: u64,
}

/// Why nothing was measured.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// No such fabric.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// Nobody to send to.
    #[error("one host has nobody to send to: at least two are needed")]
    TooFewHosts,
    /// Nothing would be counted.
    #[error("the frames, the load and the time measured must not be 0")]
    Nothing,
    /// The fabric does not carry these frames between all hosts.
    #[error("no frame of this experiment can go from host {} to host {}: {refusal}", from.0, to.0)]
    Refused {
        /// From.
        from: HostId,
        /// To.
        to: HostId,
        /// Why.
        refusal: Refusal,
    },
}

/// A fabric of the paper's 8 x 8 crossbars with several ways between hosts: for 8 hosts two leaves
/// and four spines, else a fat tree of arity 4. The hosts must be 8, or a power of 4 up to 4,096.
pub fn paper_fabric(hosts: u32) -> Result<Topology, TopologyError> {
    if hosts == 8 {
        return Topology::folded_clos(2, 4, 4, 1);
    }
    match (1..=6).find(|&levels| 4u32.pow(levels) == hosts) {
        Some(levels) => Topology::fat_tree(4, levels),
        None => Err(TopologyError::Shape {
            shape: "fabric of 8 x 8 crossbars",
            remedy: "it has 8, 4, 16, 64, 256, 1024 or 4096 hosts",
        }),
    }
}

impl Experiment {
    /// The same traffic at each of these loads, in thousandths of what a host's cable carries.
    pub fn sweep(&self, loads_per_mille: &[u32]) -> Result<Vec<Point>, ExperimentError> {
        let run = |&load| self.run(load);
        loads_per_mille.iter().map(run).collect()
    }

    /// One load, in thousandths of what a host's cable carries. May be more than it carries.
    pub fn run(&self, load_per_mille: u32) -> Result<Point, ExperimentError> {
        let mut run = Run::new(self, load_per_mille)?;
        run.until(Time::ZERO + self.warm_up + self.measured)?;
        Ok(run.point(load_per_mille))
    }
}

#[derive(Clone, Copy, Debug)]
struct Stamp {
    made: Time,
    /// Among those of its pair.
    number: u32,
}

impl Payload for Stamp {}

struct Source {
    random: Random,
    partner: u32,
    made: u32,
    queue: VecDeque<(Time, HostId)>,
    is_stopped: bool,
}

struct Run<'a> {
    experiment: &'a Experiment,
    fabric: Fabric<Stamp>,
    sources: Vec<Source>,
    /// Those of them that send.
    senders: u64,
    makes: EventQueue<u32>,
    /// Mean span between two frames of a host.
    mean_ps: u64,
    ps_per_byte: u64,
    /// By pair: frames sent, and one more than the latest that arrived.
    sent: Vec<u32>,
    arrived: Vec<u32>,
    frames: u64,
    latencies_ns: Vec<u64>,
    reordered: u64,
}

impl<'a> Run<'a> {
    fn new(experiment: &'a Experiment, load_per_mille: u32) -> Result<Self, ExperimentError> {
        let topology = &experiment.topology;
        let hosts = topology.hosts.len();
        let bytes = u64::from(experiment.frame_bytes);
        if bytes == 0 || load_per_mille == 0 || experiment.measured == Span::ZERO {
            return Err(ExperimentError::Nothing);
        }
        let mut random = Random::new(experiment.seed);
        let fabric = Fabric::new(topology, experiment.routing, &mut random)?;
        if hosts < 2 {
            return Err(ExperimentError::TooFewHosts);
        }
        let is_of_host = |end: &super::topology::End| matches!(end, super::topology::End::Host(_));
        let first = topology
            .cables
            .iter()
            .find(|at| at.ends.iter().any(is_of_host));
        let ps_per_byte = first.map_or(1, |cable| cable.ps_per_byte);
        let mean_ps = (bytes * ps_per_byte * 1_000 / u64::from(load_per_mille)).max(1);
        let is_reversal = experiment.traffic == Traffic::BitReversal;
        let partners = match is_reversal {
            true => reversals(hosts as u32),
            false => partners(hosts as u32, &mut random),
        };
        let mut makes = EventQueue::new();
        let mut sources = Vec::with_capacity(hosts);
        let mut senders = 0;
        for (host, partner) in partners.into_iter().enumerate() {
            let mut random = random.fork();
            let first = Time::ZERO + exponential(&mut random, mean_ps);
            if !is_reversal || partner as usize != host {
                makes.enter(first, host as u32);
                senders += 1;
            }
            sources.push(Source {
                random,
                partner,
                made: 0,
                queue: VecDeque::new(),
                is_stopped: false,
            });
        }
        Ok(Self {
            experiment,
            fabric,
            sources,
            senders,
            makes,
            mean_ps,
            ps_per_byte,
            sent: vec![0; hosts * hosts],
            arrived: vec![0; hosts * hosts],
            frames: 0,
            latencies_ns: Vec::new(),
            reordered: 0,
        })
    }

    fn until(&mut self, end: Time) -> Result<(), ExperimentError> {
        let mut events = Vec::new();
        loop {
            let nexts = [self.fabric.next(), self.makes.next()];
            let Some(now) = nexts.into_iter().flatten().min().filter(|now| *now < end) else {
                return Ok(());
            };
            self.fabric.advance(now, &mut |event| events.push(event));
            for event in events.drain(..) {
                self.hear(event)?;
            }
            while let Some((at, host)) = self.makes.take(now) {
                self.make(at, host)?;
            }
        }
    }

    fn make(&mut self, now: Time, host: u32) -> Result<(), ExperimentError> {
        let hosts = self.sources.len() as u32;
        let source = &mut self.sources[host as usize];
        let any =
            |random: &mut Random| (host + 1 + random.below(u64::from(hosts) - 1) as u32) % hosts;
        let to = match self.experiment.traffic {
            Traffic::Uniform => any(&mut source.random),
            Traffic::HotSpot { per_mille } => {
                let is_hot = source.random.below(1_000) < u64::from(per_mille);
                if is_hot && host != 0 {
                    0
                } else {
                    any(&mut source.random)
                }
            }
            Traffic::AllToAll => (host + 1 + source.made % (hosts - 1)) % hosts,
            Traffic::Permutation | Traffic::BitReversal => source.partner,
        };
        source.made += 1;
        source.queue.push_back((now, HostId(to)));
        let next = now + exponential(&mut source.random, self.mean_ps);
        self.makes.enter(next, host);
        self.send(now, host)
    }

    fn send(&mut self, now: Time, host: u32) -> Result<(), ExperimentError> {
        let hosts = self.sources.len();
        let source = &mut self.sources[host as usize];
        while !source.is_stopped
            && let Some(&(made, to)) = source.queue.front()
        {
            let pair = host as usize * hosts + to.index();
            let number = self.sent[pair];
            let from = HostId(host);
            let stamp = Stamp { made, number };
            let frame = Frame::new(self.frames, from, to, self.experiment.frame_bytes, stamp);
            match self.fabric.send(now, frame) {
                Ok(()) => {
                    self.frames += 1;
                    self.sent[pair] += 1;
                    source.queue.pop_front();
                }
                Err((_, Refusal::Full)) => source.is_stopped = true,
                Err((_, refusal)) => return Err(ExperimentError::Refused { from, to, refusal }),
            }
        }
        Ok(())
    }

    fn hear(&mut self, event: Event<Stamp>) -> Result<(), ExperimentError> {
        match event {
            Event::Room { at, host } => {
                self.sources[host.index()].is_stopped = false;
                self.send(at, host.0)?;
            }
            Event::Delivered { at, frame, .. } => {
                let pair = frame.from.index() * self.sources.len() + frame.to.index();
                let is_late = frame.payload.number < self.arrived[pair];
                self.arrived[pair] = self.arrived[pair].max(frame.payload.number + 1);
                if at >= Time::ZERO + self.experiment.warm_up {
                    self.reordered += u64::from(is_late);
                    self.latencies_ns.push(at.since(frame.payload.made).as_ns());
                }
            }
            // A cable that loses: what does not arrive is not accepted.
            Event::Lost { .. } => {}
        }
        Ok(())
    }

    fn point(mut self, offered_per_mille: u32) -> Point {
        let frames = self.latencies_ns.len() as u64;
        let bytes = u128::from(frames) * u128::from(self.experiment.frame_bytes);
        let host_ps =
            u128::from(self.experiment.measured.as_ps()) * u128::from(self.senders.max(1));
        let sum: u64 = self.latencies_ns.iter().sum();
        let last = self.latencies_ns.len() * 99 / 100;
        let p99 = match self.latencies_ns.is_empty() {
            true => 0,
            false => *self.latencies_ns.select_nth_unstable(last).1,
        };
        Point {
            offered_per_mille,
            accepted_per_mille: (bytes * u128::from(self.ps_per_byte) * 1_000 / host_ps) as u32,
            accepted_mb_per_s: bytes as f64 * 1e6 / host_ps as f64,
            mean_latency_ns: sum / frames.max(1),
            p99_latency_ns: p99,
            reordered_per_million: (self.reordered * 1_000_000 / frames.max(1)) as u32,
            frames,
            events: self.fabric.events(),
        }
    }
}

/// For each host another one, each once: one random circle through all (Sattolo).
fn partners(hosts: u32, random: &mut Random) -> Vec<u32> {
    let mut all: Vec<u32> = (0..hosts).collect();
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at as u64) as usize);
    }
    all
}

/// For each host the one with its bits in reverse; itself if there is none.
fn reversals(hosts: u32) -> Vec<u32> {
    let bits = u32::BITS - (hosts - 1).leading_zeros();
    let reverse = |host: u32| host.reverse_bits() >> (u32::BITS - bits);
    let or_itself = |host: u32| Some(reverse(host)).filter(|&to| to < hosts).unwrap_or(host);
    (0..hosts).map(or_itself).collect()
}

/// A span between two events that know nothing of each other, of this mean. After von Neumann, who
/// only compares, so no library's logarithm decides.
fn exponential(random: &mut Random, mean_ps: u64) -> Span {
    let mut whole = 0;
    loop {
        let first = random.bits();
        let (mut last, mut falls) = (first, 1);
        loop {
            let next = random.bits();
            if next >= last {
                break;
            }
            last = next;
            falls += 1;
        }
        if falls % 2 == 1 {
            let part = (u128::from(first) * u128::from(mean_ps)) >> 64;
            return Span::from_ps(whole * mean_ps + part as u64);
        }
        whole += 1;
    }
}

#[cfg(test)]
mod tests;
