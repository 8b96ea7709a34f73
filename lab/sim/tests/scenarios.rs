//! Random programs in random worlds: nothing goes wrong, a seed is one history, and a plan in which
//! something goes wrong is made smaller.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hamlyn_sim::network::Impairment;
use hamlyn_sim::scenario::plan::{Driven, Fault};
use hamlyn_sim::scenario::{Outcome, Plan, run, shrink};
use hamlyn_sim::time::Time;

const SEEDS: u64 = 300;
const THREADS: usize = 2;

/// What some hundreds of scenarios must have seen: reasons of refusals, states and ends of links,
/// limits of sockets.
const SEEN: [&str; 50] = [
    "a call of a terminus judged",
    "a datagram lost with its path",
    "a datagram that finds no room",
    "a datagram that finds nobody",
    "a datagram too long for its way",
    "a frame of an earlier use",
    "a frame sent again",
    "a frame that came twice",
    "a frame with a refused packet",
    "a full socket",
    "a link ended: the peer closed the association",
    "a link ended: the peer does not answer",
    "a link in the clear",
    "a link of several paths",
    "a link that is encrypted",
    "a message handed over judged",
    "a message that waits at its port judged",
    "a node that crashes",
    "a packet came back: refused: the port's queue is full",
    "a packet came back: refused: wrong key",
    "a packet came back: the peer does not answer",
    "a packet judged",
    "a packet judged in whose middle others went on",
    "a packet judged that left at once",
    "a packet judged that left later",
    "a packet was refused: fast mode to a paranoid slot",
    "a packet was refused: no such metadata entry",
    "a packet was refused: outside the entry's limits",
    "a packet was refused: outside the slot's bounds",
    "a packet was refused: placed without a grant",
    "a packet was refused: the one-shot entry is spent",
    "a packet was refused: the port's queue is full",
    "a packet was refused: the slot does not grant this",
    "a packet was refused: the slot was closed",
    "a packet was refused: the slot was revoked",
    "a packet was refused: wrong key",
    "a packet was refused: wrong key for the entry",
    "a part of a message judged",
    "a placed packet judged",
    "a process killed in the middle of a call",
    "a process stopped in the middle of a call",
    "a receiver that is not ready",
    "a refused packet judged",
    "a short packet judged",
    "a short packet judged as it left",
    "a short packet that the fast path left, judged",
    "a streaming send judged",
    "an awaited message judged",
    "numbers of frames that begin anew",
    "timestamps that begin anew",
];

/// A plan of which no network can be made.
fn broken() -> Plan {
    let plans = (0..SEEDS).map(Plan::of_seed);
    let mut calm = plans.filter(|plan| plan.is_lossless() && plan.flows.len() > 2);
    let mut plan = calm.next().expect("most plans are");
    // More than always.
    plan.network.push(Impairment::Bandwidth { ps_per_byte: 10 });
    plan.network.push(Impairment::Lose {
        per_million: 2_000_000,
        run_frames: 1,
    });
    plan
}

#[test]
fn nothing_goes_wrong_in_some_hundreds() {
    let next = AtomicU64::new(0);
    let wrong = Mutex::new(Vec::new());
    let messages = AtomicU64::new(0);
    let seen = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    if seed >= SEEDS {
                        return;
                    }
                    let outcome = run(&Plan::of_seed(seed), false);
                    messages.fetch_add(outcome.messages, Relaxed);
                    seen.lock().unwrap().extend(outcome.seen);
                    if !outcome.violations.is_empty() {
                        wrong.lock().unwrap().push((seed, outcome.violations));
                    }
                }
            });
        }
    });
    assert_eq!(wrong.into_inner().unwrap(), Vec::new());
    let messages = messages.into_inner();
    assert!(messages > 20 * SEEDS, "{messages} messages say little");
    // What a scenario cannot reach is not checked by any.
    let seen = seen.into_inner().unwrap();
    let unseen = SEEN.iter().filter(|what| !seen.contains(**what));
    let unseen: Vec<_> = unseen.collect();
    assert!(unseen.is_empty(), "{unseen:?} of {seen:#?}");
}

/// At many of the first points, whatever drives the interface: nobody waits for what a killed
/// process held, and what a stopped one has begun goes on.
#[test]
fn a_process_is_killed_or_stopped_at_any_point_of_its_calls() {
    const POINTS: u32 = 60;
    const STEP: usize = 4;
    const DRIVEN: [Driven; 4] = [Driven::Proc, Driven::Np, Driven::Inject, Driven::Receive];
    let plans = (0..SEEDS).map(Plan::of_seed);
    let is_lively = |plan: &Plan| plan.faults.is_empty() && plan.flows.len() > 3;
    let items = |plan: &Plan| {
        plan.flows
            .iter()
            .map(|flow| flow.items.len())
            .sum::<usize>()
    };
    let plan = plans.filter(is_lively).min_by_key(items).expect("many are");
    let process = plan.flows[0].from;
    let mut seen = BTreeSet::new();
    for (first, driven) in (1..).zip(DRIVEN) {
        for point in (first..=POINTS).step_by(STEP) {
            let stop = Fault::StopInside {
                process,
                point,
                for_us: 50,
            };
            for fault in [stop, Fault::KillInside { process, point }] {
                let mut plan = plan.clone();
                plan.processes[process].driven = driven;
                plan.faults.push(fault);
                let outcome = run(&plan, false);
                let violations = outcome.violations;
                assert_eq!(violations, Vec::<String>::new(), "{:?}", plan.faults);
                seen.extend(outcome.seen);
            }
        }
    }
    assert!(seen.contains("a process killed in the middle of a call"));
    assert!(seen.contains("a process stopped in the middle of a call"));
}

#[test]
fn a_thousand_hosts_share_one_world() {
    let plan = Plan::of_hosts(1, 1_000);
    let sent: usize = plan.flows.iter().map(|flow| flow.items.len()).sum();
    let outcome = run(&plan, false);
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert_eq!(outcome.messages, sent as u64);
    // A program that hears nothing of its messages would wait for the end of the world.
    assert!(outcome.at < Time::from_ns(100_000_000), "{:?}", outcome.at);
}

#[test]
fn a_seed_is_one_history() {
    let history = |seed| -> Outcome { run(&Plan::of_seed(seed), true) };
    for seed in 0..8 {
        let (one, other) = (history(seed), history(seed));
        assert!(!one.trace.is_empty());
        assert_eq!(one, other, "seed {seed}");
    }
    assert_ne!(history(1).sum, history(2).sum);
}

#[test]
fn a_plan_is_written_and_read() {
    for seed in 0..50 {
        let plan = Plan::of_seed(seed);
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }
}

/// Plans in which something was wrong once.
#[test]
fn what_was_wrong_is_right() {
    let plans = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans");
    let mut count = 0;
    for entry in std::fs::read_dir(plans).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let plan: Plan = toml::from_str(&text).unwrap();
        let outcome = run(&plan, false);
        assert_eq!(outcome.violations, Vec::<String>::new(), "{path:?}");
        // What attackers send is not delivered.
        let mut kinds = text.lines().filter(|flow| flow.starts_with("kind = "));
        let delivers = kinds.any(|kind| kind != "kind = \"hostile\"");
        assert!(outcome.messages > 0 || !delivers, "{path:?}");
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn what_is_wrong_is_made_smaller_and_stays_wrong() {
    let plan = broken();
    assert!(!run(&plan, false).violations.is_empty());
    let mut steps = 0;
    let small = shrink(&plan, |_| steps += 1);
    assert!(!run(&small, false).violations.is_empty());
    assert!(steps > 0 && small.flows.len() < plan.flows.len());
    // What made it wrong is all that is left of the network.
    let loses = |part: &Impairment| matches!(part, Impairment::Lose { .. });
    assert!(small.network.iter().any(loses) && small.flows.is_empty());
}
