//! The plan of a seed: how often what is chosen.

use crate::link::{SocketLimits, WireSettings};
use crate::network::impairment::{Cut, WhenFull};
use crate::network::{HostId, Impairment};
use crate::random::Random;
use crate::scenario::plan::{
    Driven, Fault, Flow, Item, Kind, PathCut, Plan, Process, STAMP_NS_BITS, TIMEOUT, WORK_QUEUE,
};
use crate::world::Clock;

/// Most drive themselves, as most programs do.
/// Tells the clocks of a seed from the rest of its plan.
const CLOCKS: u64 = 0x636c_6f63_6b73;
/// Tells the flows of later kinds.
const LATER: u64 = 0x006c_6174_6572;
/// Tells the flows of the latest kinds.
const LATEST: u64 = 0x6c61_7465_7374;
const STAMPS_NS: u64 = 1 << STAMP_NS_BITS;
/// Most worlds have not ended so soon.
const SOON_NS: u64 = 3_000_000;

const DRIVEN: [Driven; 5] = [
    Driven::Proc,
    Driven::Proc,
    Driven::Np,
    Driven::Inject,
    Driven::Receive,
];

/// The plan that these numbers give.
pub(super) fn plan(random: &mut Random, seed: u64) -> Plan {
    let nodes = *random.one_of(&[1, 1, 2, 2, 3]).unwrap_or(&2);
    // Now and then more than the links of an interface have room for at first.
    let count = match random.below(16) {
        0 => random.within(9..13),
        _ => random.within(2..6),
    };
    let processes = (0..count)
        .map(|_| Process {
            node: random.below(u64::from(nodes)) as u32,
            driven: *random.one_of(&DRIVEN).unwrap_or(&Driven::Proc),
            work_queue: *random.one_of(&[1, 2, 5, WORK_QUEUE]).unwrap_or(&WORK_QUEUE),
        })
        .collect::<Vec<_>>();
    let most = if count > 8 { 14 } else { 7 };
    let mut flows = (0..random.within(1..most))
        .map(|_| flow(random, &Kind::FIRST, processes.len()))
        .collect::<Vec<_>>();
    let later = &mut Random::new(seed ^ LATER);
    for _ in 0..later.below(3) {
        flows.push(flow(later, &Kind::LATER, processes.len()));
    }
    let latest = &mut Random::new(seed ^ LATEST);
    if latest.below(2) == 0 {
        flows.push(flow(latest, &Kind::LATEST, processes.len()));
    }
    // These rely on the order that links of one node keep.
    let is_ordered = |flow: &Flow| matches!(flow.kind, Kind::Granted | Kind::Loans);
    let is_ordered = flows.iter().any(is_ordered);
    let is_calm = random.below(3) == 0;
    let (faults, network) = if is_calm {
        (Vec::new(), vec![delay(random)])
    } else {
        (
            faults(random, processes.len(), nodes),
            impairments(random, nodes),
        )
    };
    // Drawn apart, so that the rest of a plan is what its seed gave before there were clocks.
    let apart = &mut Random::new(seed ^ CLOCKS);
    let clocks = clocks(apart, nodes);
    let wire = WireSettings {
        first_sequence: first_sequence(apart),
        ..wire(random)
    };
    let path_cuts = path_cuts(random, wire.paths);
    Plan {
        seed,
        nodes,
        wire,
        clocks,
        path_cuts,
        packet_payload_bytes: *random.one_of(&[256, 300, 1024, 4096]).unwrap_or(&256),
        link_packets: *random.one_of(&[1, 2, 5, 16, 64]).unwrap_or(&64),
        near_jitter_ns: match random.one_of(&[0, 0, 200, 5_000]) {
            Some(&jitter_ns) if !is_ordered => jitter_ns,
            _ => 0,
        },
        ring_delay_ns: *random.one_of(&[0, 500, 20_000]).unwrap_or(&0),
        shuffled: random.below(2) == 0,
        point_ns: *random.one_of(&[0, 0, 100, 3_000]).unwrap_or(&0),
        processes,
        flows,
        faults,
        network,
    }
}

/// What programs of many hosts say to each other: no two of one host, and nothing that takes many
/// packets a message.
const OF_HOSTS: [Kind; 6] = [
    Kind::Fast,
    Kind::Counted,
    Kind::Datagram,
    Kind::Tagged,
    Kind::Stream,
    Kind::Silent,
];

/// A program on each of so many hosts, which sends to its neighbour and to somebody else, over a
/// network that loses a few frames.
pub(super) fn plan_of_hosts(random: &mut Random, seed: u64, hosts: u32) -> Plan {
    let processes = (0..hosts)
        .map(|node| Process {
            node,
            driven: Driven::Proc,
            work_queue: WORK_QUEUE,
        })
        .collect();
    let mut flows = Vec::new();
    for from in 0..hosts as usize {
        let neighbour = (from + 1) % hosts as usize;
        let somebody = random.below(hosts.into()) as usize;
        for to in [neighbour, somebody] {
            let kind = *random.one_of(&OF_HOSTS).unwrap_or(&Kind::Fast);
            let longest = u64::from(kind.longest_bytes().min(1_500));
            let items = (0..random.within(1..9)).map(|_| Item {
                length_bytes: random.below(longest + 1) as u32,
                after_us: random.below(40) as u32,
            });
            flows.push(Flow {
                kind,
                from,
                to,
                with: Vec::new(),
                renewed_after: 0,
                items: items.collect(),
            });
        }
    }
    let lose = Impairment::Lose {
        per_million: 1_000,
        run_frames: 1,
    };
    Plan {
        seed,
        nodes: hosts,
        packet_payload_bytes: 1_024,
        link_packets: 16,
        processes,
        flows,
        faults: Vec::new(),
        network: vec![delay(random), lose],
        wire: WireSettings::default(),
        clocks: Vec::new(),
        path_cuts: Vec::new(),
        // How the world goes about it is drawn as for any plan.
        ..plan(random, seed)
    }
}

/// Most sockets and ways are wide; the others are narrow in one thing or several.
fn wire(random: &mut Random) -> WireSettings {
    let wide = SocketLimits::default();
    let mut one_of = |choices: [usize; 4]| *random.one_of(&choices).unwrap_or(&choices[0]);
    let limits = SocketLimits {
        out_bytes_max: one_of([wide.out_bytes_max, wide.out_bytes_max, 8_952, 1_452]),
        way_bytes_max: one_of([wide.way_bytes_max, wide.way_bytes_max, 4_100, 1_452]),
        waiting_frames_max: one_of([wide.waiting_frames_max, 1, 2, 16]),
        unread_bytes_max: one_of([wide.unread_bytes_max, wide.unread_bytes_max, 50_000, 10_000]),
        waiting_bytes_max: one_of([wide.waiting_bytes_max, wide.waiting_bytes_max, 8_000, 1]),
    };
    WireSettings {
        delay_target_ns: *random
            .one_of(&[250_000, 250_000, 20_000, 10_000_000])
            .unwrap_or(&250_000),
        is_encrypted: random.below(3) == 0,
        paths: *random.one_of(&[1, 1, 2, 3]).unwrap_or(&1),
        limits,
        ..WireSettings::default()
    }
}

/// The numbers of frames begin anew soon, or change their sign, or neither.
fn first_sequence(random: &mut Random) -> u32 {
    match random.below(3) {
        0 => u32::MAX - random.below(20) as u32,
        1 => (1 << 31) - random.below(20) as u32,
        _ => 1,
    }
}

/// Half of all worlds have clocks that go like their time. Those of the others begin anywhere, many
/// of them soon before timestamps begin anew, or their sign changes.
fn clocks(random: &mut Random, nodes: u32) -> Vec<Clock> {
    if random.below(2) == 0 {
        return Vec::new();
    }
    let clock = |_| Clock {
        begins_ns: match random.below(4) {
            0 => 0,
            1 => random.below(1 << 50),
            2 => (random.below(64) << STAMP_NS_BITS) + STAMPS_NS - random.below(SOON_NS),
            _ => (random.below(64) << STAMP_NS_BITS) + STAMPS_NS / 2 - random.below(SOON_NS),
        },
        fast_per_million: *random
            .one_of(&[0, -100, 100, -10_000, 10_000])
            .unwrap_or(&0),
    };
    (0..nodes).map(clock).collect()
}

/// One of several paths goes down, and comes back.
fn path_cuts(random: &mut Random, paths: u8) -> Vec<PathCut> {
    if paths < 2 || random.below(2) == 0 {
        return Vec::new();
    }
    vec![PathCut {
        path: random.below(paths.into()) as u8,
        from_us: random.below(1_000) as u32,
        for_us: random.below(50_000) as u32,
    }]
}

fn flow(random: &mut Random, kinds: &[Kind], processes: usize) -> Flow {
    let kind = *random.one_of(kinds).unwrap_or(&Kind::Fast);
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
    let mut process = || random.below(processes as u64) as usize;
    let (from, to) = (process(), process());
    let with = match kind {
        Kind::Group | Kind::Loans | Kind::Mailbox => vec![process(), process()],
        _ => Vec::new(),
    };
    let renewed_after = match random.below(3) {
        0 => random.within(1..20) as u32,
        _ => 0,
    };
    Flow {
        kind,
        from,
        to,
        with,
        renewed_after,
        items,
    }
}

fn faults(random: &mut Random, processes: usize, nodes: u32) -> Vec<Fault> {
    (0..random.below(4))
        .map(|_| {
            let process = random.below(processes as u64) as usize;
            let at_us = random.below(2_000) as u32;
            let span_us = random.below(3_000) as u32;
            let point = 1 + random.below(600) as u32;
            match random.below(10) {
                0 => Fault::Kill { process, at_us },
                1 => Fault::Restart {
                    process,
                    at_us,
                    after_us: span_us,
                },
                2 => Fault::KillInside { process, point },
                3 => Fault::Crash {
                    node: random.below(nodes.into()) as u32,
                    at_us,
                    after_us: span_us,
                },
                4 | 5 => Fault::StopInside {
                    process,
                    point,
                    for_us: span_us,
                },
                // For so long that its peers may give it up, as it takes nothing.
                6 if random.below(3) == 0 => Fault::Stop {
                    process,
                    at_us,
                    for_us: 100 * span_us,
                },
                // Longer than the timeout of its peers: its host answers meanwhile.
                7 if random.below(2) == 0 => Fault::Stop {
                    process,
                    at_us,
                    for_us: 20 * span_us,
                },
                _ => Fault::Stop {
                    process,
                    at_us,
                    for_us: span_us,
                },
            }
        })
        .collect()
}

fn delay(random: &mut Random) -> Impairment {
    Impairment::Delay {
        delay_ps: random.within(100_000..5_000_000),
    }
}

fn impairments(random: &mut Random, nodes: u32) -> Vec<Impairment> {
    let mut impairments = vec![delay(random)];
    for _ in 0..random.below(5) {
        let per_million = *random.one_of(&[1_000, 20_000, 200_000]).unwrap_or(&1_000);
        let impairment = match random.below(11) {
            0 => Impairment::Jitter {
                up_to_ps: random.within(1..10_000_000),
            },
            1 => Impairment::Bandwidth {
                ps_per_byte: random.within(10..13_000),
            },
            2 => Impairment::Reorder {
                per_million,
                up_to_ps: random.within(1..50_000_000),
            },
            3 => Impairment::Duplicate { per_million },
            4..=6 => {
                let run_frames = random.within(1..4) as u32;
                Impairment::Lose {
                    per_million: per_million / run_frames,
                    run_frames,
                }
            }
            7 => Impairment::Damage { per_million },
            8 => {
                let when_full = match random.below(2) {
                    0 => WhenFull::Drop,
                    _ => WhenFull::Refuse,
                };
                impairments.push(Impairment::Buffer {
                    limit_bytes: random.within(1_500..20_000),
                    when_full,
                });
                let ps_per_byte = random.within(1_000..13_000);
                Impairment::Bandwidth { ps_per_byte }
            }
            _ => partition(random, nodes),
        };
        impairments.push(impairment);
    }
    impairments
}

/// Heals before anybody is given up, but for a few.
fn partition(random: &mut Random, nodes: u32) -> Impairment {
    let longest_ps = TIMEOUT.as_ps() / 5;
    let from_ps = random.within(0..2_000_000_000);
    let for_ps = match random.below(16) {
        0 => random.within(longest_ps..3 * TIMEOUT.as_ps()),
        _ => random.within(1..longest_ps),
    };
    let one = HostId(random.below(u64::from(nodes)) as u32);
    let others = (0..nodes).map(HostId).filter(|host| *host != one);
    Impairment::Partition {
        cuts: vec![Cut {
            from_ps,
            until_ps: from_ps + for_ps,
            one: vec![one],
            other: others.collect(),
        }],
    }
}
