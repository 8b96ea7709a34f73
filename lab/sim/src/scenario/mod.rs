//! Scenarios: random programs over the library in a random world with random faults, judged by the
//! reference model.
//!
//! A seed gives a [`Plan`]; a plan is run, and judged: what came is what was sent, where it was
//! sent, once; what did not come was reported to somebody; nothing that a hostile process sends
//! does anything; when faults are over everything comes to an end, and what was opened is closed. A
//! plan in which something is wrong is made smaller as long as something stays wrong ([`shrink`]).

mod flow;
mod history;
pub mod plan;
mod process;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use crate::network::Mesh;
use crate::random::Random;
use crate::time::{Span, Time};
use crate::world::{self, AtPoint, Clock, ProcessId, Settings, Simulation};
use history::History;
pub use plan::Plan;
use plan::{Fault, TIMEOUT};

/// How often somebody looks whether a process that was killed has ended.
const UNWINDS: Span = Span::from_us(10);
/// No scenario is in flight for longer than its processes may take, so many times.
const LIVES_MAX: u64 = 4;
/// Events for each message and process, of which a scenario has some hundreds. With more, something
/// wakes in vain.
const EVENTS_EACH_MAX: u64 = 50_000;
/// Plans that are tried to make one smaller.
const SHRINKS_MAX: u32 = 2_000;

/// What became of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// What is wrong. Nothing, if all is well.
    pub violations: Vec<String>,
    /// Messages that came.
    pub messages: u64,
    /// Events that happened.
    pub events: u64,
    /// When it ended.
    pub at: Time,
    /// The same whenever the plan is run.
    pub sum: u64,
    /// What happened that not every scenario sees: ends of links, refusals, full sockets.
    pub seen: BTreeSet<Cow<'static, str>>,
    /// What happened, if that was asked for.
    pub trace: String,
}

/// Runs a plan, and writes down what happens if it `records`.
pub fn run(plan: &Plan, records: bool) -> Outcome {
    let history = Mutex::new(History::new(plan));
    let settings = Settings {
        seed: plan.seed,
        records,
        ring_delay: Span::from_ns(plan.ring_delay_ns.into()),
        shuffles: plan.shuffled,
        point_max: Span::from_ns(plan.point_ns.into()),
        link_packets: plan.link_packets,
        packet_payload_bytes: plan.packet_payload_bytes as usize,
        wire: plan.wire,
        near: world::Path {
            jitter: Span::from_ns(plan.near_jitter_ns.into()),
            ..Settings::default().near
        },
        ..Settings::default()
    };
    let mut world = Simulation::new(settings);
    let nodes: Vec<_> = (0..plan.nodes).map(|_| world.node(2)).collect();
    for (&node, &clock) in nodes.iter().zip(&plan.clocks) {
        world.set_clock(node, clock);
    }
    let mut broken = Vec::new();
    match Mesh::new(plan.nodes, &plan.network, &mut Random::new(plan.seed)) {
        Ok(network) => world.set_network(Box::new(network), TIMEOUT),
        Err(error) => broken.push(error.to_string()),
    }
    let mut ids = Vec::new();
    for (number, process) in plan.processes.iter().enumerate() {
        let node = nodes.get(process.node as usize).or(nodes.first());
        let Some(&node) = node else { continue };
        let history = &history;
        ids.push(world.process(node, &process::name(number), move || {
            process::run(plan, number, history);
        }));
    }
    for (process, again) in revivals(plan) {
        let node = plan
            .processes
            .get(process)
            .map_or(0, |process| process.node);
        let node = nodes.get(node as usize).or(nodes.first());
        let Some(&node) = node else { continue };
        let history = &history;
        let before = ids.get(process).copied();
        world.process(
            node,
            &format!("{} again", process::name(process)),
            move || {
                world::pause(again.since(Time::ZERO));
                // Who begins a program again waits for the end of the one before.
                while before.is_some_and(|before| !world::has_ended(before)) {
                    world::pause(UNWINDS);
                }
                let lives = history.lock().unwrap_or_else(PoisonError::into_inner);
                let lives = { lives }.revive(plan, process);
                if lives {
                    process::run(plan, process, history);
                }
            },
        );
    }
    for fault in &plan.faults {
        inject_fault(&mut world, &ids, fault);
    }
    for (process, [at, _]) in plan.restarts() {
        if let Some(&process) = ids.get(process) {
            world.at(at, move || world::kill(process));
        }
    }
    for cut in &plan.path_cuts {
        let (path, from) = (cut.path, Time::ZERO + Span::from_us(cut.from_us.into()));
        world.at(from, move || world::set_path(path, false));
        let until = from + Span::from_us(cut.for_us.into());
        world.at(until, move || world::set_path(path, true));
    }
    let sent: usize = plan.flows.iter().map(|flow| flow.items.len()).sum();
    world.limit_events(EVENTS_EACH_MAX * (sent + plan.processes.len()) as u64);
    let outcome = world.run(Time::ZERO + plan.settles() * LIVES_MAX);
    let mut history = history.into_inner().unwrap_or_else(PoisonError::into_inner);
    for process in plan.killed() {
        let concerned = |flow: &plan::Flow| flow.concerns(process);
        let flows = plan.flows.iter().enumerate();
        flows
            .filter(|(_, flow)| concerned(flow))
            .for_each(|(flow, _)| history.end(flow));
    }
    let messages = history.count();
    let mut seen = outcome.seen;
    let begins_anew = |clock: &Clock| {
        let [first, last] =
            [Time::ZERO, outcome.at].map(|at| clock.shows_ns(at) >> plan::STAMP_NS_BITS);
        first != last
    };
    if plan.clocks.iter().any(begins_anew) {
        seen.insert("timestamps that begin anew".into());
    }
    let crashes = |fault: &Fault| matches!(fault, Fault::Crash { .. });
    if plan.faults.iter().any(crashes) {
        seen.insert("a node that crashes".into());
    }
    let mut violations = broken;
    violations.extend(outcome.failures);
    violations.extend(history.check());
    Outcome {
        violations,
        messages,
        events: outcome.events,
        at: outcome.at,
        sum: outcome.sum,
        seen,
        trace: outcome.trace,
    }
}

/// Who lives again, and when first.
fn revivals(plan: &Plan) -> BTreeMap<usize, Time> {
    let mut revivals = BTreeMap::new();
    for (process, [_, again]) in plan.restarts() {
        if plan.restarted().any(|restarted| restarted == process) {
            revivals.entry(process).or_insert(again);
        }
    }
    revivals
}

fn inject_fault(world: &mut Simulation<'_>, ids: &[ProcessId], fault: &Fault) {
    let at = |us: u32| Time::ZERO + Span::from_us(us.into());
    match *fault {
        Fault::Stop {
            process,
            at_us,
            for_us,
        } => {
            if let Some(&process) = ids.get(process) {
                world.at(at(at_us), move || world::stop(process));
                world.at(at(at_us) + Span::from_us(for_us.into()), move || {
                    world::resume(process);
                });
            }
        }
        Fault::StopInside {
            process,
            point,
            for_us,
        } => {
            if let Some(&process) = ids.get(process) {
                let stop = AtPoint::Stop(Span::from_us(for_us.into()));
                world.at_point(process, point.into(), stop);
            }
        }
        Fault::KillInside { process, point } => {
            if let Some(&process) = ids.get(process) {
                world.at_point(process, point.into(), AtPoint::Kill);
            }
        }
        Fault::Restart { .. } | Fault::Crash { .. } => {}
        Fault::Kill { process, at_us } => {
            if let Some(&process) = ids.get(process) {
                world.at(at(at_us), move || world::kill(process));
            }
        }
    }
}

/// A plan as small as can be found in which the first thing that is wrong is still wrong, `tell`
/// being called for each that is smaller. Another violation would lead to another fault than the
/// one that was found.
pub fn shrink(plan: &Plan, tell: impl FnMut(&Plan)) -> Plan {
    shrink_by(plan, |plan| run(plan, false).violations, tell)
}

fn shrink_by(
    plan: &Plan,
    judge: impl Fn(&Plan) -> Vec<String>,
    mut tell: impl FnMut(&Plan),
) -> Plan {
    let mut smallest = plan.clone();
    let Some(kept) = judge(plan).first().map(|violation| kind(violation)) else {
        return smallest;
    };
    let mut tried = 0;
    'again: loop {
        for smaller in smallest.smaller() {
            tried += 1;
            if tried > SHRINKS_MAX {
                return smallest;
            }
            if judge(&smaller).iter().any(|other| kind(other) == kept) {
                smallest = smaller;
                tell(&smallest);
                continue 'again;
            }
        }
        return smallest;
    }
}

/// What a violation says, whatever process, message or time it names: without numbers, fields of
/// headers, and bytes.
fn kind(violation: &str) -> String {
    let mut depth = 0_usize;
    let says = |c: &char| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && !c.is_ascii_digit()
    };
    violation.chars().filter(says).collect()
}

#[cfg(test)]
mod tests;
