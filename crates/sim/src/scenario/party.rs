//! The program of a party: it opens what its lines need, sends and receives until nothing is left, and closes
//! everything.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hamlyn::host::{Address, Supply};
use hamlyn::{ManagerOptions, Wait};

use crate::host;
use crate::random::Random;
use crate::scenario::ledger::Ledger;
use crate::scenario::line::{Inlet, Outlet, Sent, violate};
use crate::scenario::plan::{Kind, Plan};
use crate::time::{Span, Time};
use crate::world;

/// After the last fault everything must come within this; far longer than it takes.
pub(crate) const SETTLES_NS: u64 = 400_000_000;
/// How long a party that has nothing to do sleeps at most.
const REST: Wait = Wait::millis(1);

/// A line that begins here.
struct Outgoing {
    line: usize,
    outlet: Outlet,
    /// The next message is sent then, at the earliest.
    due: Time,
    hostile_sent: usize,
}

/// The name under which a party is found.
pub(crate) fn name(party: usize) -> String {
    format!("party-{party}")
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the party. What is wrong is told to the ledger.
pub(crate) fn run(plan: &Plan, party: usize, ledger: &Mutex<Ledger>) {
    if let Err(what) = live(plan, party, ledger) {
        lock(ledger).violate(format!("party {party}: {what}"));
    }
}

fn live(plan: &Plan, party: usize, ledger: &Mutex<Ledger>) -> Result<(), String> {
    let options = ManagerOptions {
        strategy: plan.parties[party].driven.strategy(),
        ..ManagerOptions::default()
    };
    let mut program = host::open(Some(&name(party)), options).map_err(|error| error.to_string())?;
    let baseline = program.interface().slots_open();
    let mut random = Random::new(plan.seed ^ (party as u64 + 1) << 32);
    let mut inlets = BTreeMap::new();
    for (line, _) in lines(plan, |line| line.to == party) {
        let inlet = Inlet::open(&mut program, plan.lines[line].kind)?;
        let seed = inlet.seed(&program)?;
        program
            .interface_mut()
            .offer(&format!("line-{line}"), Supply::Always, &seed)
            .map_err(|error| error.to_string())?;
        inlets.insert(line, inlet);
    }
    let mut outlets = Vec::new();
    for (line, known) in lines(plan, |line| line.from == party) {
        let to = name(known.to);
        // Whoever is killed never answers.
        let wait = Wait::millis(20);
        let asked = program
            .interface_mut()
            .ask(Address::Name(&to), &format!("line-{line}"), wait);
        let outlet = match asked {
            Ok(seed) => Outlet::grow(&mut program, known.kind, &seed, &mut random)?,
            Err(_) => None,
        };
        match outlet {
            Some(outlet) => outlets.push(Outgoing {
                line,
                outlet,
                due: Time::ZERO,
                hostile_sent: 0,
            }),
            None if plan.is_lossless() => return Err(format!("line {line} cannot be grown")),
            None => lock(ledger).end(line),
        }
    }
    let until = world::now() + Span::from_ns(SETTLES_NS);
    let mut is_done = false;
    while world::now() < until {
        let mut moved = false;
        for (&line, inlet) in &mut inlets {
            moved |= inlet
                .look(&mut program, |bytes| lock(ledger).came(line, bytes))
                .map_err(|what| format!("line {line}: {what}"))?;
        }
        for outgoing in &mut outlets {
            moved |= send(plan, &mut program, outgoing, ledger, &mut random)?;
            outgoing.outlet.flush(&mut program);
        }
        let is_through = |line: usize| lock(ledger).is_through(line);
        let is_sent = |outgoing: &Outgoing| match plan.lines[outgoing.line].kind {
            Kind::Hostile => outgoing.hostile_sent == plan.lines[outgoing.line].items.len(),
            _ => lock(ledger).is_sent(outgoing.line),
        };
        let hears_all = |line: &usize| plan.lines[*line].kind == Kind::Hostile || is_through(*line);
        if !is_done && outlets.iter().all(is_sent) && inlets.keys().all(hears_all) {
            is_done = true;
            lock(ledger).done(party);
        }
        if lock(ledger).all_done() || !lock(ledger).is_clean() {
            break;
        }
        if !moved && program.wait(REST).is_err() {
            // A peer is lost; that ends the lines to it.
            end_lost(plan, party, &program, &outlets, ledger);
        }
        end_lost(plan, party, &program, &outlets, ledger);
    }
    let _ = program.interface_mut().flush(Wait::millis(1));
    for outgoing in outlets {
        outgoing.outlet.close(&mut program);
    }
    // What is still on its way comes to rest.
    for _ in 0..20 {
        for (&line, inlet) in &mut inlets {
            inlet
                .look(&mut program, |bytes| lock(ledger).came(line, bytes))
                .map_err(|what| format!("line {line}: {what}"))?;
        }
        world::pause(Span::from_us(50));
    }
    for (line, inlet) in inlets {
        if let Err(what) = inlet.close(&mut program) {
            violate(ledger, line, &what);
        }
    }
    let open = program.interface().slots_open();
    if open != baseline {
        return Err(format!(
            "{open} slots are open at the end, and {baseline} at the beginning"
        ));
    }
    // The end of a peer interrupts the waits of others.
    world::pause(Span::from_us(2_000));
    Ok(())
}

fn lines<'a>(
    plan: &'a Plan,
    which: impl Fn(&crate::scenario::plan::Line) -> bool + 'a,
) -> impl Iterator<Item = (usize, &'a crate::scenario::plan::Line)> + 'a {
    plan.lines
        .iter()
        .enumerate()
        .filter(move |(_, line)| which(line))
}

/// Sends the next message of a line, if it is time. Whether anything was done.
fn send(
    plan: &Plan,
    program: &mut hamlyn::Manager<host::SimHost>,
    outgoing: &mut Outgoing,
    ledger: &Mutex<Ledger>,
    random: &mut Random,
) -> Result<bool, String> {
    let line = outgoing.line;
    let known = &plan.lines[line];
    if world::now() < outgoing.due {
        return Ok(false);
    }
    let is_hostile = outgoing.outlet.is_hostile();
    let number = if is_hostile {
        (outgoing.hostile_sent < known.items.len()).then_some(outgoing.hostile_sent as u64)
    } else {
        lock(ledger).next(line, known.kind.window())
    };
    let Some(number) = number else {
        return Ok(false);
    };
    let data = lock(ledger).content(line, number);
    let waits = random.below(2) == 0;
    if is_hostile {
        outgoing.hostile_sent += 1;
    } else {
        lock(ledger).sending(line, &data);
    }
    let after_us = known.items.get(number as usize + 1);
    outgoing.due = world::now() + Span::from_us(after_us.map_or(0, |item| item.after_us.into()));
    let sent = outgoing
        .outlet
        .send(program, number, &data, waits)
        .map_err(|what| format!("line {line}, message {number}: {what}"))?;
    match sent {
        Sent::Yes => Ok(true),
        Sent::NotNow => {
            if !is_hostile {
                lock(ledger).unsent(line);
            }
            Ok(false)
        }
        Sent::Lost if is_hostile => {
            outgoing.hostile_sent = known.items.len();
            Ok(true)
        }
        Sent::Lost => {
            lost(plan, ledger, line)?;
            Ok(true)
        }
    }
}

/// The peer of a line is lost, which must not be for nothing.
fn lost(plan: &Plan, ledger: &Mutex<Ledger>, line: usize) -> Result<(), String> {
    let all_done = lock(ledger).all_done();
    if plan.is_lossless() && !all_done && !lock(ledger).is_through(line) {
        return Err(format!("line {line}: its peer is lost, for no reason"));
    }
    lock(ledger).end(line);
    Ok(())
}

/// Ends lines between this party and peers that are lost.
fn end_lost(
    plan: &Plan,
    party: usize,
    program: &hamlyn::Manager<host::SimHost>,
    outlets: &[Outgoing],
    ledger: &Mutex<Ledger>,
) {
    if plan.is_lossless() {
        return;
    }
    let linked = |other: usize| {
        let name = name(other);
        let named = |peer: &hamlyn::host::Peer| peer.name.as_deref() == Some(&name);
        program.interface().peers().any(|(_, peer)| named(peer))
    };
    for (line, known) in plan.lines.iter().enumerate() {
        let other = match (known.from == party, known.to == party) {
            (true, false) => known.to,
            (false, true) => known.from,
            _ => continue,
        };
        let grown = known.to == party || outlets.iter().any(|outgoing| outgoing.line == line);
        let begun = lock(ledger).has_begun(line);
        if grown && begun && !linked(other) {
            lock(ledger).end(line);
        }
    }
}
