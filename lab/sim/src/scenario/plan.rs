//! Plans: everything that a scenario is made of, as data, so that it can be printed, read, run
//! again and made smaller.

mod chance;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::link::{SocketLimits, WireSettings};
use crate::network::Impairment;
use crate::random::Random;
use crate::time::{Span, Time};
use crate::world::Clock;

/// Timestamps of frames begin anew after so many nanoseconds, as a power of two.
pub(crate) const STAMP_NS_BITS: u32 = 38;
/// What a work queue holds unless the plan says otherwise (Hamlyn 2.3).
pub(crate) const WORK_QUEUE: u16 = hamlyn::engine::limits::WORK_QUEUE_ENTRIES as u16;

/// A peer that answers nothing for so long is given up on.
pub(crate) const TIMEOUT: Span = Span::from_us(20_000);
/// After the last fault everything must come within this; far longer than it takes, also where half
/// of all frames are lost and one packet of 256 bytes is in flight at a time.
const SETTLES: Span = Span::from_us(1_600_000);

/// Peers of a process that is stopped for so long may have given it up: it takes nothing.
const STOPPED_LOST_US: u32 = (9 * TIMEOUT.as_ns() / 1_000) as u32;

/// What a flow carries, and how.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One packet, announced with a word (Hamlyn 2.7, fast mode).
    Fast,
    /// Many packets, counted at an entry, with metadata (Hamlyn 2.5).
    Counted,
    /// The same to paranoid entries that take one message each (Hamlyn 2.7).
    OneShot,
    /// Simple datagrams (Hamlyn 3.4).
    Datagram,
    /// Tagged remote writes (Hamlyn 3.4).
    Tagged,
    /// A stream of records (Hamlyn 3.4).
    Stream,
    /// Many packets each, which nothing announces (Hamlyn 2.5).
    Silent,
    /// Many packets, gathered from send-buffer areas, which are used again as soon as that is
    /// allowed (Hamlyn 2.3).
    Gather,
    /// Parts of several senders, and of those to whom they delegate, announced once (Hamlyn 2.5).
    Group,
    /// More announcements than their queue holds: those that are lost are counted.
    Flood,
    /// As counted ones, to memory that the sender is granted and loses again (decision 0006).
    Granted,
    /// Packets with wrong keys, stale names and bounds that are not granted: none may do anything.
    Hostile,
    /// Calls of a service and their replies, over whose ends either side goes on.
    Service,
    /// One-sided operations, stores and silent messages, with their completions and with fences.
    OneSided,
    /// Messages that readers read where their publisher wrote them (decision 0024).
    Loans,
    /// Messages of several senders, which wait at their receiver or come back.
    Mailbox,
}

impl Kind {
    /// Those that plans had from the beginning.
    pub(crate) const FIRST: [Self; 12] = [
        Self::Fast,
        Self::Counted,
        Self::OneShot,
        Self::Datagram,
        Self::Tagged,
        Self::Stream,
        Self::Silent,
        Self::Gather,
        Self::Group,
        Self::Flood,
        Self::Granted,
        Self::Hostile,
    ];
    /// Those that are drawn apart, so that the rest of a plan is what its seed gave without them.
    pub(crate) const LATER: [Self; 3] = [Self::Service, Self::OneSided, Self::Loans];
    /// Those that are drawn apart from these, too.
    pub(crate) const LATEST: [Self; 1] = [Self::Mailbox];

    /// The longest message that such a flow carries, in bytes.
    pub(crate) const fn longest_bytes(self) -> u32 {
        match self {
            Self::Fast | Self::Tagged => 256,
            Self::Flood => 16,
            Self::Hostile => 1_500,
            Self::Datagram | Self::Silent => 2_000,
            Self::Stream | Self::Group | Self::Loans => 6_000,
            Self::Service | Self::OneSided => 3_000,
            Self::Granted => 4_000,
            // A little more than a packet of any link takes; longer ones are cut to what it does.
            Self::Mailbox => 5_000,
            Self::Counted | Self::OneShot | Self::Gather => 12_000,
        }
    }
}

/// Who drives an interface; [`hamlyn::Strategy`], as it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Driven {
    /// The program.
    Proc,
    /// A network processor.
    Np,
    /// The program sends, a network processor receives.
    Inject,
    /// The program or the network processor receives, whichever is free.
    Receive,
}

impl Driven {
    pub(crate) fn strategy(self) -> hamlyn::Strategy {
        match self {
            Self::Proc => hamlyn::Strategy::Proc,
            Self::Np => hamlyn::Strategy::Np,
            Self::Inject => hamlyn::Strategy::Inject,
            Self::Receive => hamlyn::Strategy::Receive,
        }
    }
}

/// A process with an interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// On which node.
    pub node: u32,
    /// Who drives it.
    pub driven: Driven,
    /// Messages that its work queue holds, 1 to 4,095.
    pub work_queue: u16,
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Its bytes.
    pub length_bytes: u32,
    /// How long after the one before it is sent at the earliest.
    pub after_us: u32,
}

/// Messages from one process to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// How they are carried.
    pub kind: Kind,
    /// The number of the process that sends.
    pub from: usize,
    /// The number of the process that receives; both may be the same.
    pub to: usize,
    /// Who sends besides, in a group or to a mailbox; who reads besides, of loans.
    #[serde(default)]
    pub with: Vec<usize>,
    /// After so many messages their place is closed and opened anew, or gets another key; 0 for
    /// never.
    #[serde(default)]
    pub renewed_after: u32,
    /// What is sent.
    pub items: Vec<Item>,
}

impl Flow {
    /// Whether a process is one of its ends.
    pub fn concerns(&self, process: usize) -> bool {
        self.to == process || self.sends(process)
    }

    /// Whether a process sends on it.
    pub fn sends(&self, process: usize) -> bool {
        self.from == process || self.with.contains(&process)
    }
}

/// A fault that is injected into a process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what", deny_unknown_fields)]
pub enum Fault {
    /// It has no processor for a while.
    Stop {
        /// Which process.
        process: usize,
        /// When.
        at_us: u32,
        /// How long.
        for_us: u32,
    },
    /// It is killed.
    Kill {
        /// Which process.
        process: usize,
        /// When.
        at_us: u32,
    },
    /// It has no processor for a while, from the middle of a call of its library on.
    StopInside {
        /// Which process.
        process: usize,
        /// At the so-manieth point of its interface's work.
        point: u32,
        /// How long.
        for_us: u32,
    },
    /// It is killed in the middle of a call of its library.
    KillInside {
        /// Which process.
        process: usize,
        /// At the so-manieth point of its interface's work.
        point: u32,
    },
    /// All processes of a node are killed at once, and when it is there again new ones take their
    /// names and work.
    Crash {
        /// Which node.
        node: u32,
        /// When.
        at_us: u32,
        /// How long it is away.
        after_us: u32,
    },
    /// It is killed, and a new process takes its name and its work.
    Restart {
        /// Which process.
        process: usize,
        /// When.
        at_us: u32,
        /// How long nobody has the name.
        after_us: u32,
    },
}

impl Fault {
    /// The process that it is injected into; a crash is injected into a node.
    pub fn process(&self) -> Option<usize> {
        match self {
            Self::Stop { process, .. }
            | Self::StopInside { process, .. }
            | Self::Kill { process, .. }
            | Self::KillInside { process, .. }
            | Self::Restart { process, .. } => Some(*process),
            Self::Crash { .. } => None,
        }
    }

    /// Whether peers may have given it up when it is over.
    fn loses_peers(&self) -> bool {
        match self {
            Self::Stop { for_us, .. } | Self::StopInside { for_us, .. } => {
                *for_us >= STOPPED_LOST_US
            }
            _ => true,
        }
    }
}

/// One of several paths that carries nothing for a while.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathCut {
    /// Which.
    pub path: u8,
    /// When.
    pub from_us: u32,
    /// How long.
    pub for_us: u32,
}

/// A scenario.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Decides what the plan leaves open.
    pub seed: u64,
    /// How many nodes.
    pub nodes: u32,
    /// The largest payload of a packet.
    pub packet_payload_bytes: u32,
    /// Packets that a link holds.
    pub link_packets: u32,
    /// By how much packets between interfaces of one node may overtake each other.
    pub near_jitter_ns: u32,
    /// By how much senders may be late to ring for a receiver that sleeps.
    pub ring_delay_ns: u32,
    /// Whether programs that are ready at the same instant go on in a random order.
    #[serde(default)]
    pub shuffled: bool,
    /// How long a step of an interface's work may take.
    #[serde(default)]
    pub point_ns: u32,
    /// What links between hosts are like.
    #[serde(default)]
    pub wire: WireSettings,
    /// How the clocks of the nodes go; those that are not named like the time of the world.
    #[serde(default)]
    pub clocks: Vec<Clock>,
    /// When paths of links between hosts are down.
    #[serde(default)]
    pub path_cuts: Vec<PathCut>,
    /// The processes.
    pub processes: Vec<Process>,
    /// The flows.
    pub flows: Vec<Flow>,
    /// Injected faults.
    pub faults: Vec<Fault>,
    /// What happens to frames between nodes.
    pub network: Vec<Impairment>,
}

impl Plan {
    /// The plan of a seed.
    pub fn of_seed(seed: u64) -> Self {
        chance::plan(&mut Random::new(seed), seed)
    }

    /// A plan of so many hosts, at least one, with a program each that sends to two others.
    pub fn of_hosts(seed: u64, hosts: u32) -> Self {
        chance::plan_of_hosts(&mut Random::new(seed), seed, hosts.max(1))
    }

    /// How long a process may take. Where more than half of all frames are lost, fewer than a
    /// quarter of what is sent is heard to have come, and the rest waits for a time-out.
    pub fn settles(&self) -> Span {
        let passes = |part: &Impairment| match *part {
            Impairment::Lose {
                per_million,
                run_frames,
            } => 1.0 - f64::from(per_million) * f64::from(run_frames) / 1e6,
            Impairment::Damage { per_million } => 1.0 - f64::from(per_million) / 1e6,
            _ => 1.0,
        };
        let passing: f64 = self.network.iter().map(passes).product();
        SETTLES * if passing < 0.5 { 4 } else { 1 }
    }

    /// Whether everything that is sent must come: nobody is killed, and no two nodes are apart for
    /// so long that they give each other up. Whatever else the network does, what is lost is sent
    /// again.
    pub fn is_lossless(&self) -> bool {
        let apart_ps = |part: &Impairment| match part {
            Impairment::Partition { cuts } => cuts
                .iter()
                .map(|cut| cut.until_ps.saturating_sub(cut.from_ps))
                .fold(0, u64::saturating_add),
            _ => 0,
        };
        let apart_ps = self.network.iter().map(apart_ps);
        let apart_ps = apart_ps.fold(0, u64::saturating_add);
        // As long as one path is up, nobody is apart.
        let is_cut = |path| self.path_cuts.iter().any(|cut| cut.path == path);
        let cut_us = match (0..self.wire.paths.max(1)).all(is_cut) {
            true => self.path_cuts.iter().map(|cut| u64::from(cut.for_us)).sum(),
            false => 0,
        };
        let apart_ps = apart_ps.saturating_add(Span::from_us(cut_us).as_ps());
        !self.faults.iter().any(Fault::loses_peers) && apart_ps < TIMEOUT.as_ps()
    }

    /// Processes that are to be killed for good, if they come so far.
    pub fn killed(&self) -> impl Iterator<Item = usize> + '_ {
        let kills = |fault: &&Fault| matches!(fault, Fault::Kill { .. } | Fault::KillInside { .. });
        self.faults.iter().filter(kills).filter_map(Fault::process)
    }

    /// Which processes are killed to live again, when, and when that is.
    pub(crate) fn restarts(&self) -> impl Iterator<Item = (usize, [Time; 2])> + '_ {
        let span = |us: u32| Span::from_us(us.into());
        let of_fault = move |fault: &Fault| {
            let (at_us, after_us) = match *fault {
                Fault::Restart {
                    at_us, after_us, ..
                }
                | Fault::Crash {
                    at_us, after_us, ..
                } => (at_us, after_us),
                _ => return Vec::new(),
            };
            let at = Time::ZERO + span(at_us);
            let is_struck = |number: &usize| match *fault {
                Fault::Crash { node, .. } => self.processes[*number].node == node,
                _ => fault.process() == Some(*number),
            };
            let struck = (0..self.processes.len()).filter(is_struck);
            struck
                .map(|process| (process, [at, at + span(after_us)]))
                .collect()
        };
        self.faults.iter().flat_map(of_fault)
    }

    /// Processes that are to be killed, and to live again.
    pub fn restarted(&self) -> impl Iterator<Item = usize> + '_ {
        let killed = |process: &usize| !self.killed().any(|killed| killed == *process);
        let all: BTreeSet<_> = self.restarts().map(|(process, _)| process).collect();
        all.into_iter().filter(killed)
    }

    /// The processes with which that one has a flow in common.
    pub(crate) fn peers_of(&self, process: usize) -> BTreeSet<usize> {
        let flows = self.flows.iter().filter(|flow| flow.concerns(process));
        let ends = |flow: &Flow| [flow.from, flow.to].into_iter().chain(flow.with.clone());
        flows.flat_map(ends).collect()
    }

    /// Plans that are a little smaller, the greatest steps first.
    pub fn smaller(&self) -> Vec<Self> {
        let mut plans = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut plan = self.clone();
            change(&mut plan);
            if plan != *self {
                plans.push(plan);
            }
        };
        for flow in 0..self.flows.len() {
            with(&|plan| drop(plan.flows.remove(flow)));
        }
        with(&|plan| plan.faults.clear());
        for fault in 0..self.faults.len() {
            with(&|plan| {
                plan.faults.remove(fault);
            });
        }
        for part in 1..self.network.len() {
            with(&|plan| drop(plan.network.remove(part)));
        }
        for flow in 0..self.flows.len() {
            let count = self.flows[flow].items.len();
            with(&|plan| plan.flows[flow].items.truncate(count / 2));
            with(&|plan| drop(plan.flows[flow].items.drain(..count / 2)));
            if count <= 8 {
                for item in 0..count {
                    with(&|plan| {
                        plan.flows[flow].items.remove(item);
                    });
                }
            }
        }
        let last = self.processes.len().saturating_sub(1);
        let uses = |flow: &Flow| flow.concerns(last);
        if last > 0 && !self.flows.iter().any(uses) {
            with(&|plan| {
                plan.processes.truncate(last);
                plan.faults
                    .retain(|fault| fault.process().is_none_or(|process| process < last));
            });
        }
        for process in 0..self.processes.len() {
            with(&|plan| plan.processes[process].driven = Driven::Proc);
            with(&|plan| plan.processes[process].node = 0);
            with(&|plan| plan.processes[process].work_queue = WORK_QUEUE);
        }
        with(&|plan| plan.near_jitter_ns = 0);
        with(&|plan| plan.ring_delay_ns = 0);
        with(&|plan| plan.shuffled = false);
        with(&|plan| plan.point_ns = 0);
        with(&|plan| plan.wire = WireSettings::default());
        with(&|plan| plan.wire.is_encrypted = false);
        with(&|plan| plan.wire.paths = 1);
        with(&|plan| plan.wire.limits = SocketLimits::default());
        with(&|plan| plan.wire.first_sequence = 1);
        with(&|plan| plan.clocks.clear());
        with(&|plan| plan.path_cuts.clear());
        with(&|plan| plan.link_packets = 64);
        with(&|plan| plan.packet_payload_bytes = 4096);
        for flow in 0..self.flows.len() {
            with(&|plan| plan.flows[flow].renewed_after = 0);
            with(&|plan| {
                plan.flows[flow].with.pop();
            });
            with(&|plan| {
                let items = &mut plan.flows[flow].items;
                items.iter_mut().for_each(|item| item.after_us = 0);
            });
            with(&|plan| {
                let items = &mut plan.flows[flow].items;
                items.iter_mut().for_each(|item| item.length_bytes /= 2);
            });
        }
        plans
    }
}
