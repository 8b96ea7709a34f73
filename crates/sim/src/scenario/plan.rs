//! Plans: everything that a scenario is made of, as data, so that it can be printed, read, run again and made smaller.

use serde::{Deserialize, Serialize};

use crate::network::part::Cut;
use crate::network::{HostId, Part};
use crate::random::Random;

/// What a line carries, and how.
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
    /// Packets with wrong keys, stale names and bounds that are not granted: none may do anything.
    Hostile,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Fast,
        Self::Counted,
        Self::OneShot,
        Self::Datagram,
        Self::Tagged,
        Self::Stream,
        Self::Hostile,
    ];

    /// The longest message that such a line carries, in bytes.
    pub(crate) const fn longest_bytes(self) -> u32 {
        match self {
            Self::Fast | Self::Tagged | Self::Hostile => 256,
            Self::Datagram => 2_000,
            Self::Stream => 6_000,
            Self::Counted | Self::OneShot => 12_000,
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
    /// Whoever is free receives.
    Receive,
}

impl Driven {
    const ALL: [Self; 4] = [Self::Proc, Self::Np, Self::Inject, Self::Receive];

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
pub struct Party {
    /// On which node.
    pub node: u32,
    /// Who drives it.
    pub driven: Driven,
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

/// Messages from one party to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// How they are carried.
    pub kind: Kind,
    /// The number of the party that sends.
    pub from: usize,
    /// The number of the party that receives; both may be the same.
    pub to: usize,
    /// What is sent.
    pub items: Vec<Item>,
}

/// What befalls a party.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what", deny_unknown_fields)]
pub enum Fault {
    /// It has no processor for a while.
    Stop {
        /// Which party.
        party: usize,
        /// When.
        at_us: u32,
        /// How long.
        for_us: u32,
    },
    /// It is killed.
    Kill {
        /// Which party.
        party: usize,
        /// When.
        at_us: u32,
    },
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
    /// Who there is.
    pub parties: Vec<Party>,
    /// Who sends what to whom.
    pub lines: Vec<Line>,
    /// What befalls them.
    pub faults: Vec<Fault>,
    /// What happens to frames between nodes.
    pub network: Vec<Part>,
}

impl Plan {
    /// The plan of a seed.
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let nodes = random.within(1..4) as u32;
        let parties = (0..random.within(2..6))
            .map(|_| Party {
                node: random.below(u64::from(nodes)) as u32,
                driven: *random.one_of(&Driven::ALL).unwrap_or(&Driven::Proc),
            })
            .collect::<Vec<_>>();
        let lines = (0..random.within(1..7))
            .map(|_| line(&mut random, parties.len()))
            .collect();
        let is_calm = random.below(3) == 0;
        let (faults, network) = if is_calm {
            (Vec::new(), vec![delay(&mut random)])
        } else {
            (
                faults(&mut random, parties.len()),
                parts(&mut random, nodes),
            )
        };
        Self {
            seed,
            nodes,
            packet_payload_bytes: *random.one_of(&[256, 300, 1024, 4096]).unwrap_or(&256),
            link_packets: *random.one_of(&[1, 2, 5, 16, 64]).unwrap_or(&64),
            near_jitter_ns: *random.one_of(&[0, 0, 200, 5_000]).unwrap_or(&0),
            ring_delay_ns: *random.one_of(&[0, 500, 20_000]).unwrap_or(&0),
            parties,
            lines,
            faults,
            network,
        }
    }

    /// Whether everything that is sent must come: nobody is killed, and no frame is lost for good.
    pub fn is_lossless(&self) -> bool {
        let kills = |fault: &Fault| matches!(fault, Fault::Kill { .. });
        let loses = |part: &Part| {
            matches!(
                part,
                Part::Lose { .. } | Part::Damage { .. } | Part::Partition { .. }
            )
        };
        !self.faults.iter().any(kills) && !self.network.iter().any(loses)
    }

    /// Parties that are to be killed.
    pub fn killed(&self) -> impl Iterator<Item = usize> + '_ {
        self.faults.iter().filter_map(|fault| match fault {
            Fault::Kill { party, .. } => Some(*party),
            Fault::Stop { .. } => None,
        })
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
        for line in 0..self.lines.len() {
            with(&|plan| drop(plan.lines.remove(line)));
        }
        with(&|plan| plan.faults.clear());
        for fault in 0..self.faults.len() {
            with(&|plan| drop(plan.faults.remove(fault)));
        }
        for part in 1..self.network.len() {
            with(&|plan| drop(plan.network.remove(part)));
        }
        for line in 0..self.lines.len() {
            let count = self.lines[line].items.len();
            with(&|plan| plan.lines[line].items.truncate(count / 2));
            with(&|plan| drop(plan.lines[line].items.drain(..count / 2)));
            if count <= 8 {
                for item in 0..count {
                    with(&|plan| drop(plan.lines[line].items.remove(item)));
                }
            }
        }
        let last = self.parties.len().saturating_sub(1);
        let uses = |line: &Line| line.from == last || line.to == last;
        if last > 0 && !self.lines.iter().any(uses) {
            with(&|plan| {
                plan.parties.truncate(last);
                plan.faults.retain(|fault| match fault {
                    Fault::Stop { party, .. } | Fault::Kill { party, .. } => *party < last,
                });
            });
        }
        for party in 0..self.parties.len() {
            with(&|plan| plan.parties[party].driven = Driven::Proc);
            with(&|plan| plan.parties[party].node = 0);
        }
        with(&|plan| plan.near_jitter_ns = 0);
        with(&|plan| plan.ring_delay_ns = 0);
        with(&|plan| plan.link_packets = 64);
        with(&|plan| plan.packet_payload_bytes = 4096);
        for line in 0..self.lines.len() {
            with(&|plan| {
                let items = &mut plan.lines[line].items;
                items.iter_mut().for_each(|item| item.after_us = 0);
            });
            with(&|plan| {
                let items = &mut plan.lines[line].items;
                items.iter_mut().for_each(|item| item.length_bytes /= 2);
            });
        }
        plans
    }
}

fn line(random: &mut Random, parties: usize) -> Line {
    let kind = *random.one_of(&Kind::ALL).unwrap_or(&Kind::Fast);
    let longest = u64::from(kind.longest_bytes());
    let paced = random.below(2) == 0;
    let items = (0..random.within(1..60))
        .map(|_| Item {
            length_bytes: match random.below(4) {
                0 => 16,
                1 => random.below(longest.min(64) + 1) as u32,
                _ => random.below(longest + 1) as u32,
            },
            after_us: if paced { random.below(40) as u32 } else { 0 },
        })
        .collect();
    Line {
        kind,
        from: random.below(parties as u64) as usize,
        to: random.below(parties as u64) as usize,
        items,
    }
}

fn faults(random: &mut Random, parties: usize) -> Vec<Fault> {
    (0..random.below(4))
        .map(|_| {
            let party = random.below(parties as u64) as usize;
            let at_us = random.below(2_000) as u32;
            if random.below(3) == 0 {
                Fault::Kill { party, at_us }
            } else {
                let for_us = random.below(3_000) as u32;
                Fault::Stop {
                    party,
                    at_us,
                    for_us,
                }
            }
        })
        .collect()
}

fn delay(random: &mut Random) -> Part {
    Part::Delay {
        delay_ps: random.within(100_000..5_000_000),
    }
}

fn parts(random: &mut Random, nodes: u32) -> Vec<Part> {
    let mut parts = vec![delay(random)];
    for _ in 0..random.below(4) {
        let per_million = *random.one_of(&[1_000, 20_000, 200_000]).unwrap_or(&1_000);
        parts.push(match random.below(7) {
            0 => Part::Jitter {
                up_to_ps: random.within(1..10_000_000),
            },
            1 => Part::Bandwidth {
                ps_per_byte: random.within(10..13_000),
            },
            2 => Part::Reorder {
                per_million,
                up_to_ps: random.within(1..50_000_000),
            },
            3 => Part::Duplicate { per_million },
            4 => Part::Lose {
                per_million: per_million / 10,
                run_frames: random.within(1..4) as u32,
            },
            5 => Part::Damage {
                per_million: per_million / 10,
            },
            _ => {
                let from_ps = random.within(0..2_000_000_000);
                let one = HostId(random.below(u64::from(nodes)) as u32);
                let others = (0..nodes).map(HostId).filter(|host| *host != one);
                Part::Partition {
                    cuts: vec![Cut {
                        from_ps,
                        until_ps: from_ps + random.within(1..3_000_000_000),
                        one: vec![one],
                        other: others.collect(),
                    }],
                }
            }
        });
    }
    parts
}
