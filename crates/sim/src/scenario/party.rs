//! The program of a party: it opens what its lines need, sends and receives until nothing is left, and closes
//! everything.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hamlyn::engine::terminus::TerminusOptions;
use hamlyn::host::{Address, Supply};
use hamlyn::{ManagerOptions, Wait};

use crate::host;
use crate::random::Random;
use crate::scenario::ledger::{Desk, Ledger};
use crate::scenario::line::{self, Inlet, Outlet, Program, Step, Turn};
use crate::scenario::plan::{PATIENCE, Plan};
use crate::time::{Span, Time};
use crate::world;

/// After the last fault everything must come within this; far longer than it takes, also where half of all frames are lost and one
/// packet of 256 bytes is under way at a time.
pub(crate) const SETTLES_NS: u64 = 1_600_000_000;
/// How long a party that has nothing to do sleeps: at first, and at most.
const REST_FIRST: Span = Span::from_us(20);
const REST_MAX: Span = Span::from_us(1_000);
/// How long an answer may take at a time, and how often it is asked for.
const ANSWER: Wait = Wait::For(std::time::Duration::from_micros(500));
const QUESTIONS: u32 = 40;
/// So long after the death of a party those that never met it know of it, and those that have a link to it on which they have nothing
/// to send: whom nothing is asked, nobody misses.
const STRANGERS: Span = Span::from_us(5_000);
const IDLERS: Span = Span::from_us(3 * PATIENCE.as_ns() / 1_000);
/// At the end, what is still on its way comes to rest in so many looks, and such pauses.
const LAST_LOOKS: u32 = 5;
const LAST_PAUSE: Span = Span::from_us(200);

/// A line that ends here.
struct Incoming<'a> {
    desk: Desk<'a>,
    inlet: Option<Box<dyn Inlet>>,
}

/// A line that begins here.
struct Outgoing<'a> {
    desk: Desk<'a>,
    outlet: Option<Box<dyn Outlet>>,
    questions: u32,
    /// The next message is sent then, at the earliest.
    due: Time,
}

struct Party<'a> {
    plan: &'a Plan,
    number: usize,
    ledger: &'a Mutex<Ledger>,
    program: Program,
    random: Random,
    incoming: Vec<Incoming<'a>>,
    outgoing: Vec<Outgoing<'a>>,
    /// Other parties that were linked.
    known: BTreeSet<usize>,
}

/// The name under which a party is found.
pub(crate) fn name(party: usize) -> String {
    format!("party-{party}")
}

/// Runs the party. What is wrong is told to the ledger.
pub(crate) fn run(plan: &Plan, number: usize, ledger: &Mutex<Ledger>) {
    let lived = Party::begin(plan, number, ledger).and_then(|mut party| {
        party.live()?;
        party.end()
    });
    if let Err(what) = lived {
        let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.violate(format!("party {number}: {what}"));
    }
}

/// Of what a line is called at its inlet's party.
fn item(desk: &Desk<'_>) -> String {
    format!("line-{}-{}", desk.line, desk.life)
}

/// Says of which line something is.
fn of_line(desk: &Desk<'_>) -> impl Fn(String) -> String {
    let line = desk.line;
    move |what| format!("line {line}: {what}")
}

impl<'a> Party<'a> {
    fn begin(plan: &'a Plan, number: usize, ledger: &'a Mutex<Ledger>) -> Result<Self, String> {
        let known = &plan.parties[number];
        let options = ManagerOptions {
            strategy: known.driven.strategy(),
            terminus: TerminusOptions {
                queue_entries: known.work_queue.into(),
                ..TerminusOptions::default()
            },
            ..ManagerOptions::default()
        };
        let program = host::open(Some(&name(number)), options);
        let program = program.map_err(|error| error.to_string())?;
        program.interface().set_bad_keys_max(u32::MAX);
        let lines = || plan.lines.iter().enumerate();
        let desk = |line: usize| Desk::new(plan, ledger, line);
        Ok(Self {
            plan,
            number,
            ledger,
            program,
            random: Random::new(plan.seed ^ (number as u64 + 1) << 32),
            incoming: lines()
                .filter(|(_, line)| line.to == number)
                .map(|(line, _)| Incoming {
                    desk: desk(line),
                    inlet: None,
                })
                .collect(),
            outgoing: lines()
                .filter(|(_, line)| line.sends(number))
                .map(|(line, _)| Outgoing {
                    desk: desk(line),
                    outlet: None,
                    questions: 0,
                    due: Time::ZERO,
                })
                .collect(),
            known: BTreeSet::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'a, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&mut self) -> Result<(), String> {
        let until = world::now() + Span::from_ns(SETTLES_NS);
        let mut rest = REST_FIRST;
        loop {
            let mut moved = self.open_inlets()?;
            moved |= self.grow_outlets()?;
            moved |= self.look(Wait::Poll)?;
            moved |= self.send()?;
            moved |= self.take_back()?;
            let is_done = self.is_done();
            if is_done {
                self.lock().done(self.number);
            }
            if self.lock().all_done() || !self.lock().is_clean() {
                return Ok(());
            }
            if world::now() >= until {
                return match is_done {
                    true => Ok(()),
                    false => Err(self.unfinished()),
                };
            }
            self.end_lost()?;
            rest = match moved {
                true => REST_FIRST,
                false => self.rest(rest)?,
            };
        }
    }

    fn is_done(&self) -> bool {
        let outlet = |outgoing: &Outgoing<'_>| match &outgoing.outlet {
            Some(outlet) => outlet.is_done(&outgoing.desk),
            None => outgoing.desk.is_through(),
        };
        let inlet = |incoming: &Incoming<'_>| match &incoming.inlet {
            Some(inlet) => inlet.is_done(&incoming.desk),
            None => incoming.desk.is_through(),
        };
        self.outgoing.iter().all(outlet) && self.incoming.iter().all(inlet)
    }

    fn unfinished(&self) -> String {
        let mut lines = String::new();
        for Outgoing { desk, outlet, .. } in &self.outgoing {
            if !outlet.as_ref().is_some_and(|outlet| outlet.is_done(desk)) {
                lines += &format!(
                    ", line {} ({:?}) to {}",
                    desk.line,
                    desk.known().kind,
                    desk.known().to
                );
            }
        }
        for Incoming { desk, inlet } in &self.incoming {
            if !inlet.as_ref().is_some_and(|inlet| inlet.is_done(desk)) {
                lines += &format!(
                    ", line {} ({:?}) from {}",
                    desk.line,
                    desk.known().kind,
                    desk.known().from
                );
            }
        }
        format!("does not come to an end{lines}")
    }

    /// Opens what is not open, and opens anew what belongs to an earlier life of a peer.
    fn open_inlets(&mut self) -> Result<bool, String> {
        let mut opened = false;
        for incoming in &mut self.incoming {
            if incoming.inlet.is_some() && !incoming.desk.is_old() {
                continue;
            }
            if let Some(inlet) = incoming.inlet.take() {
                self.program.interface().withdraw(&item(&incoming.desk));
                let closed = inlet.close(&self.program, &incoming.desk);
                closed.map_err(of_line(&incoming.desk))?;
            }
            let desk = Desk::new(self.plan, self.ledger, incoming.desk.line);
            let inlet = line::open_inlet(&self.program, &desk).map_err(of_line(&desk))?;
            let seed = inlet.seed(&self.program)?;
            self.program
                .interface()
                .offer(&item(&desk), Supply::Always, &seed)
                .map_err(|error| error.to_string())?;
            (incoming.inlet, incoming.desk) = (Some(inlet), desk);
            opened = true;
        }
        Ok(opened)
    }

    fn grow_outlets(&mut self) -> Result<bool, String> {
        let mut grown = false;
        for outgoing in &mut self.outgoing {
            if outgoing.desk.is_old() {
                if let Some(outlet) = outgoing.outlet.take() {
                    let closed = outlet.close(&self.program, &outgoing.desk);
                    closed.map_err(of_line(&outgoing.desk))?;
                }
                outgoing.desk = Desk::new(self.plan, self.ledger, outgoing.desk.line);
                (outgoing.questions, outgoing.due) = (0, Time::ZERO);
            }
            let desk = &outgoing.desk;
            if outgoing.outlet.is_some() || desk.is_ended() {
                continue;
            }
            let to = name(desk.known().to);
            let seed = self
                .program
                .interface()
                .ask(Address::Name(&to), &item(desk), ANSWER);
            let outlet = match seed {
                Ok(seed) => line::grow_outlet(&self.program, desk, &seed)?,
                Err(_) => None,
            };
            outgoing.questions += 1;
            grown |= outlet.is_some();
            outgoing.outlet = outlet;
            if outgoing.outlet.is_none() && outgoing.questions > QUESTIONS && !desk.is_old() {
                // Whoever is killed never answers.
                if self.plan.is_lossless() {
                    return Err(format!("line {} cannot be grown", desk.line));
                }
                self.ledger
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .end(desk.line);
            }
        }
        Ok(grown)
    }

    fn look(&mut self, wait: Wait) -> Result<bool, String> {
        let mut moved = false;
        for Incoming { desk, inlet } in &mut self.incoming {
            let Some(inlet) = inlet else { continue };
            let looked = inlet.look(&self.program, desk, wait);
            moved |= looked.map_err(of_line(desk))?;
        }
        Ok(moved)
    }

    /// Takes what came back, and tells the lines.
    fn take_back(&mut self) -> Result<bool, String> {
        let mut moved = false;
        while let Some(packet) = self.program.interface().next_undelivered() {
            moved = true;
            for Outgoing { desk, outlet, .. } in &mut self.outgoing {
                if let Some(outlet) = outlet {
                    outlet.came_back(&packet, desk).map_err(of_line(desk))?;
                }
            }
        }
        Ok(moved)
    }

    fn send(&mut self) -> Result<bool, String> {
        let now = world::now();
        let mut moved = false;
        for outgoing in &mut self.outgoing {
            let desk = &outgoing.desk;
            let Some(outlet) = &mut outgoing.outlet else {
                continue;
            };
            if desk.is_ended() || desk.is_old() {
                continue;
            }
            let turn = Turn {
                desk,
                random: &mut self.random,
                party: self.number,
                is_due: now >= outgoing.due,
            };
            let step = outlet.step(&self.program, turn);
            match step.map_err(of_line(desk))? {
                Step::Nothing => {}
                Step::Moved => moved = true,
                Step::Sent => {
                    moved = true;
                    let next = desk.known().items.get(desk.sent() as usize);
                    let after_us = next.map_or(0, |item| item.after_us);
                    outgoing.due = world::now() + Span::from_us(after_us.into());
                }
                Step::Lost => {
                    moved = true;
                    lost(self.plan, desk)?;
                }
            }
        }
        Ok(moved)
    }

    /// Waits for anything at all, or in one of the inlets for what comes there. How long the next rest is.
    fn rest(&mut self, rest: Span) -> Result<Span, String> {
        let now = world::now();
        let due = self.outgoing.iter().map(|outgoing| outgoing.due);
        let due = due.filter(|due| *due > now).min();
        let until = due.map_or(now + rest, |due| due.min(now + rest));
        let wait = std::time::Duration::from_nanos(until.since(now).as_ns().max(1));
        let blocks = !self.incoming.is_empty() && self.random.below(4) == 0;
        if blocks {
            let at = self.random.below(self.incoming.len() as u64) as usize;
            let Incoming { desk, inlet } = &mut self.incoming[at];
            if let Some(inlet) = inlet {
                let looked = inlet.look(&self.program, desk, Wait::For(wait));
                looked.map_err(of_line(desk))?;
            }
        } else {
            // The loss of a peer interrupts it: that ends the lines to it.
            let _ = self.program.wait(Wait::For(wait));
        }
        Ok((rest * 2).min(REST_MAX))
    }

    /// Ends lines between this party and peers that are lost.
    fn end_lost(&mut self) -> Result<(), String> {
        for other in 0..self.plan.parties.len() {
            let name = name(other);
            let named = |peer: &hamlyn::host::Peer| peer.name.as_deref() == Some(&name);
            let interface = self.program.interface();
            let is_linked = interface.peers().any(|(_, peer)| named(peer));
            drop(interface);
            let killed_at = self.plan.killed_at(other);
            if world::now() <= killed_at + IDLERS && is_linked {
                self.known.insert(other);
                continue;
            }
            // Nobody is told of the death of those that he never met.
            let is_dead = world::now() > killed_at + STRANGERS;
            if !self.known.remove(&other) && !is_dead {
                continue;
            }
            if self.plan.is_lossless() {
                return Err(format!("party {other} is lost, for no reason"));
            }
            for (number, line) in self.plan.lines.iter().enumerate() {
                let is_between = line.to == self.number && line.sends(other)
                    || line.sends(self.number) && line.to == other;
                let desk = Desk::new(self.plan, self.ledger, number);
                // Though all of it came, a stream's receiver may still wait for its end.
                if is_between && !desk.is_ended() {
                    desk.lose();
                }
            }
        }
        Ok(())
    }

    fn end(mut self) -> Result<(), String> {
        let _ = self.program.interface().flush(Wait::millis(1));
        for outgoing in std::mem::take(&mut self.outgoing) {
            if let Some(outlet) = outgoing.outlet {
                let closed = outlet.close(&self.program, &outgoing.desk);
                closed.map_err(of_line(&outgoing.desk))?;
            }
        }
        // What is still on its way comes to rest.
        for _ in 0..LAST_LOOKS {
            self.look(Wait::Poll)?;
            // What dropped ends left behind is done in the next call, and a party without inlets has made none.
            let _ = self.program.wait(Wait::Poll);
            world::pause(LAST_PAUSE);
        }
        for incoming in std::mem::take(&mut self.incoming) {
            if let Some(inlet) = incoming.inlet {
                let closed = inlet.close(&self.program, &incoming.desk);
                closed.map_err(of_line(&incoming.desk))?;
            }
        }
        let open = self.program.interface().slots_open();
        if open != 0 {
            return Err(format!("{open} slots are open at the end"));
        }
        // The end of a peer interrupts the waits of others.
        world::pause(Span::from_us(2_000));
        Ok(())
    }
}

/// The peer of a line is lost, which must not be for nothing.
fn lost(plan: &Plan, desk: &Desk<'_>) -> Result<(), String> {
    let all_done = desk.lock().all_done();
    if plan.is_lossless() && !all_done && !desk.is_through() {
        return Err(format!(
            "line {}: its peer is lost, for no reason",
            desk.line
        ));
    }
    desk.lose();
    Ok(())
}
