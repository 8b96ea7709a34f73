//! The program of a process: opens the end points of its flows, sends and receives until nothing is
//! left, and closes everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hamlyn::engine::memory::LinkId;
use hamlyn::engine::terminus::TerminusOptions;
use hamlyn::host::{Address, Destination, Supply};
use hamlyn::{ConnectionState, ManagerOptions, Wait};

use crate::host;
use crate::random::Random;
use crate::scenario::flow::{self, FlowReceiver, FlowSender, Program, Step, Turn};
use crate::scenario::history::{History, Oracle};
use crate::scenario::plan::{Plan, TIMEOUT};
use crate::time::{Span, Time};
use crate::world::{self, kernel};

/// How long a process that has nothing to do sleeps: at first, and at most.
const REST_FIRST: Span = Span::from_us(20);
const REST_MAX: Span = Span::from_us(1_000);
/// How long an answer may take at a time, and how often it is asked for.
const ANSWER: Wait = Wait::For(std::time::Duration::from_micros(500));
const QUESTIONS: u32 = 40;
/// So long after the death of a process those that never met it know of it, and those that have a
/// link to it on which they have nothing to send: whom nothing is asked, nobody misses.
const STRANGERS: Span = Span::from_us(5_000);
const IDLERS: Span = Span::from_us(3 * TIMEOUT.as_ns() / 1_000);
/// At the end, what is still on its way comes to rest in so many looks, and such pauses.
const LAST_LOOKS: u32 = 5;
const LAST_PAUSE: Span = Span::from_us(200);

/// A flow that ends here.
struct Incoming<'a> {
    oracle: Oracle<'a>,
    receiver: Option<Box<dyn FlowReceiver>>,
}

/// A flow that begins here.
struct Outgoing<'a> {
    oracle: Oracle<'a>,
    sender: Option<Box<dyn FlowSender>>,
    questions: u32,
    /// The next message is sent then, at the earliest.
    due: Time,
}

struct Process<'a> {
    plan: &'a Plan,
    number: usize,
    history: &'a Mutex<History>,
    program: Program,
    random: Random,
    incoming: Vec<Incoming<'a>>,
    outgoing: Vec<Outgoing<'a>>,
    /// Those with which it has a flow in common.
    peers: BTreeSet<usize>,
    /// Links to them that were seen.
    known: BTreeMap<usize, BTreeMap<LinkId, Destination>>,
}

/// The name under which a process is found.
pub(crate) fn name(process: usize) -> String {
    format!("process-{process}")
}

/// Runs the process. Violations go to the history.
pub(crate) fn run(plan: &Plan, number: usize, history: &Mutex<History>) {
    let lived = Process::begin(plan, number, history).and_then(|mut process| {
        process.live()?;
        process.end()
    });
    if let Err(what) = lived {
        let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
        history.violate(format!("process {number}: {what}"));
    }
}

/// Of what a flow is called at its receiver's process.
fn item(oracle: &Oracle<'_>) -> String {
    format!("flow-{}-{}", oracle.flow, oracle.life)
}

/// Says of which line something is.
fn of_flow(oracle: &Oracle<'_>) -> impl Fn(String) -> String {
    let flow = oracle.flow;
    move |what| format!("flow {flow}: {what}")
}

impl<'a> Process<'a> {
    fn begin(plan: &'a Plan, number: usize, history: &'a Mutex<History>) -> Result<Self, String> {
        let known = &plan.processes[number];
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
        program.session().set_bad_keys_max(u32::MAX);
        let flows = || plan.flows.iter().enumerate();
        let oracle = |flow: usize| Oracle::new(plan, history, flow);
        Ok(Self {
            plan,
            number,
            history,
            program,
            random: Random::new(plan.seed ^ (number as u64 + 1) << 32),
            incoming: flows()
                .filter(|(_, flow)| flow.to == number)
                .map(|(flow, _)| Incoming {
                    oracle: oracle(flow),
                    receiver: None,
                })
                .collect(),
            outgoing: flows()
                .filter(|(_, flow)| flow.sends(number))
                .map(|(flow, _)| Outgoing {
                    oracle: oracle(flow),
                    sender: None,
                    questions: 0,
                    due: Time::ZERO,
                })
                .collect(),
            peers: plan.peers_of(number),
            known: BTreeMap::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'a, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&mut self) -> Result<(), String> {
        let until = world::now() + self.plan.settles();
        let mut rest = REST_FIRST;
        loop {
            let mut moved = self.open_receivers()?;
            moved |= self.grow_senders()?;
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
        let sender = |outgoing: &Outgoing<'_>| match &outgoing.sender {
            Some(sender) => sender.is_done(&outgoing.oracle),
            None => outgoing.oracle.is_through(),
        };
        let receiver = |incoming: &Incoming<'_>| match &incoming.receiver {
            Some(receiver) => receiver.is_done(&incoming.oracle),
            None => incoming.oracle.is_through(),
        };
        self.outgoing.iter().all(sender) && self.incoming.iter().all(receiver)
    }

    fn unfinished(&self) -> String {
        let mut flows = String::new();
        for Outgoing { oracle, sender, .. } in &self.outgoing {
            if !sender.as_ref().is_some_and(|sender| sender.is_done(oracle)) {
                flows += &format!(
                    ", flow {} ({:?}) to {}",
                    oracle.flow,
                    oracle.known().kind,
                    oracle.known().to
                );
            }
        }
        for Incoming { oracle, receiver } in &self.incoming {
            if !receiver
                .as_ref()
                .is_some_and(|receiver| receiver.is_done(oracle))
            {
                flows += &format!(
                    ", flow {} ({:?}) from {}",
                    oracle.flow,
                    oracle.known().kind,
                    oracle.known().from
                );
            }
        }
        format!("does not come to an end{flows}")
    }

    /// Opens what is not open, and opens anew what belongs to an earlier life of a peer.
    fn open_receivers(&mut self) -> Result<bool, String> {
        let mut opened = false;
        for incoming in &mut self.incoming {
            if incoming.receiver.is_some() && !incoming.oracle.is_old() {
                continue;
            }
            if let Some(receiver) = incoming.receiver.take() {
                self.program.session().withdraw(&item(&incoming.oracle));
                let closed = receiver.close(&self.program, &incoming.oracle);
                closed.map_err(of_flow(&incoming.oracle))?;
            }
            let oracle = Oracle::new(self.plan, self.history, incoming.oracle.flow);
            let receiver = flow::open_receiver(&self.program, &oracle).map_err(of_flow(&oracle))?;
            let seed = receiver.seed(&self.program)?;
            self.program
                .session()
                .offer(&item(&oracle), Supply::Always, &seed)
                .map_err(|error| error.to_string())?;
            (incoming.receiver, incoming.oracle) = (Some(receiver), oracle);
            opened = true;
        }
        Ok(opened)
    }

    fn grow_senders(&mut self) -> Result<bool, String> {
        let mut grown = false;
        for outgoing in &mut self.outgoing {
            if outgoing.oracle.is_old() {
                if let Some(sender) = &mut outgoing.sender {
                    let given_back = sender.give_back(&self.program, &outgoing.oracle);
                    if !given_back.map_err(of_flow(&outgoing.oracle))? {
                        continue;
                    }
                }
                if let Some(sender) = outgoing.sender.take() {
                    let closed = sender.close(&self.program, &outgoing.oracle);
                    closed.map_err(of_flow(&outgoing.oracle))?;
                }
                outgoing.oracle = Oracle::new(self.plan, self.history, outgoing.oracle.flow);
                (outgoing.questions, outgoing.due) = (0, Time::ZERO);
            }
            let oracle = &outgoing.oracle;
            if outgoing.sender.is_some() || oracle.is_ended() {
                continue;
            }
            let to = name(oracle.known().to);
            let seed = self
                .program
                .session()
                .ask(Address::Name(&to), &item(oracle), ANSWER);
            let sender = match seed {
                Ok(seed) => flow::grow_sender(&self.program, oracle, &seed)?,
                Err(_) => None,
            };
            outgoing.questions += 1;
            grown |= sender.is_some();
            outgoing.sender = sender;
            if outgoing.sender.is_none() && outgoing.questions > QUESTIONS && !oracle.is_old() {
                // A process that is killed never answers.
                if self.plan.is_lossless() {
                    return Err(format!("flow {} cannot be grown", oracle.flow));
                }
                self.history
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .end(oracle.flow);
            }
        }
        Ok(grown)
    }

    fn look(&mut self, wait: Wait) -> Result<bool, String> {
        let mut moved = false;
        for Incoming { oracle, receiver } in &mut self.incoming {
            let Some(receiver) = receiver else { continue };
            let looked = receiver.look(&self.program, oracle, wait);
            moved |= looked.map_err(of_flow(oracle))?;
        }
        Ok(moved)
    }

    /// Takes what came back, and tells the flows.
    fn take_back(&mut self) -> Result<bool, String> {
        let mut moved = false;
        while let Some(packet) = self.program.session().next_undelivered() {
            moved = true;
            kernel::with(|kernel| kernel.saw(format!("a packet came back: {}", packet.reason)));
            for Outgoing { oracle, sender, .. } in &mut self.outgoing {
                if let Some(sender) = sender {
                    sender.came_back(&packet, oracle).map_err(of_flow(oracle))?;
                }
            }
        }
        Ok(moved)
    }

    fn send(&mut self) -> Result<bool, String> {
        let now = world::now();
        let mut moved = false;
        for outgoing in &mut self.outgoing {
            let oracle = &outgoing.oracle;
            let Some(sender) = &mut outgoing.sender else {
                continue;
            };
            if oracle.is_ended() || oracle.is_old() {
                continue;
            }
            let turn = Turn {
                oracle,
                random: &mut self.random,
                process: self.number,
                is_due: now >= outgoing.due,
            };
            let step = sender.step(&self.program, turn);
            match step.map_err(of_flow(oracle))? {
                Step::Nothing => {}
                Step::Moved => moved = true,
                Step::Sent => {
                    moved = true;
                    let next = oracle.known().items.get(oracle.sent() as usize);
                    let after_us = next.map_or(0, |item| item.after_us);
                    outgoing.due = world::now() + Span::from_us(after_us.into());
                }
                Step::Lost => {
                    moved = true;
                    lost(self.plan, oracle)?;
                }
            }
        }
        Ok(moved)
    }

    /// Waits for anything at all, or in one of the receiver for what comes there. How long the next
    /// rest is.
    fn rest(&mut self, rest: Span) -> Result<Span, String> {
        let now = world::now();
        let due = self.outgoing.iter().map(|outgoing| outgoing.due);
        let due = due.filter(|due| *due > now).min();
        let until = due.map_or(now + rest, |due| due.min(now + rest));
        let wait = std::time::Duration::from_nanos(until.since(now).as_ns().max(1));
        let blocks = !self.incoming.is_empty() && self.random.below(4) == 0;
        if blocks {
            let at = self.random.below(self.incoming.len() as u64) as usize;
            let Incoming { oracle, receiver } = &mut self.incoming[at];
            if let Some(receiver) = receiver {
                let looked = receiver.look(&self.program, oracle, Wait::For(wait));
                looked.map_err(of_flow(oracle))?;
            }
        } else {
            // The loss of a peer interrupts it: that ends the flows to it.
            let _ = self.program.wait(Wait::For(wait));
        }
        Ok((rest * 2).min(REST_MAX))
    }

    /// Ends flows between this process and peers that are lost.
    fn end_lost(&mut self) -> Result<(), String> {
        for &other in &self.peers {
            let name = name(other);
            let named = |peer: &hamlyn::host::Peer| peer.name.as_deref() == Some(&name);
            let interface = self.program.session();
            let links = interface.peers().filter(|(_, peer)| named(peer));
            let links = links.map(|(link, peer)| (link, peer.destination));
            let links: BTreeMap<_, _> = links.collect();
            drop(interface);
            let mut known = self.known.remove(&other).unwrap_or_default();
            // A peer that gave this process up may be linked again before the old link ends here:
            // what was under way over that is lost all the same. Where nobody gives up, the second
            // link is one too many, and goes.
            let is_relinked = known.iter().any(|(link, interface)| {
                !links.contains_key(link) && links.values().any(|other| other == interface)
            });
            let is_kept = !links.is_empty() && (!is_relinked || self.plan.is_lossless());
            let killed_at = self.lock().killed_at(other);
            if world::now() <= killed_at + IDLERS && is_kept {
                known.extend(links);
                self.known.insert(other, known);
                continue;
            }
            // Nobody is told of the death of those that he never met.
            let is_dead = world::now() > killed_at + STRANGERS;
            if known.is_empty() && !is_dead {
                continue;
            }
            if self.plan.is_lossless() {
                return Err(format!("process {other} is lost, for no reason"));
            }
            for (number, flow) in self.plan.flows.iter().enumerate() {
                let is_between = flow.to == self.number && flow.sends(other)
                    || flow.sends(self.number) && flow.to == other;
                let oracle = Oracle::new(self.plan, self.history, number);
                // Though all of it came, a stream's receiver may still wait for its end.
                if is_between && !oracle.is_ended() {
                    oracle.lose();
                }
            }
        }
        Ok(())
    }

    /// What a world has seen, as far as this process knows.
    fn tell_what_it_saw(&self) {
        let interface = self.program.session();
        let refusals = interface.refusals();
        let peers = interface.peers();
        let states = peers.filter_map(|(link, _)| interface.connection_state(link));
        let states: Vec<_> = states.collect();
        kernel::with(|kernel| {
            for (refusal, _) in refusals.iter() {
                kernel.saw(format!("a packet was refused: {refusal}"));
            }
            for state in states {
                let ConnectionState {
                    transport, paths, ..
                } = &state;
                let seen = [
                    (state.is_encrypted, "a link that is encrypted"),
                    (!state.is_encrypted, "a link in the clear"),
                    (paths.len() > 1, "a link of several paths"),
                    (transport.retransmitted > 0, "a frame sent again"),
                    (transport.refused > 0, "a frame with a refused packet"),
                    (
                        transport.receiver_not_ready > 0,
                        "a receiver that is not ready",
                    ),
                    (transport.duplicates > 0, "a frame that came twice"),
                    (transport.stale > 0, "a frame of an earlier use"),
                ];
                let seen = seen.into_iter().filter(|(is_seen, _)| *is_seen);
                seen.for_each(|(_, what)| kernel.saw(what));
            }
        });
    }

    /// Ends all links. A slot for answers stays open until they have come, or their link has ended,
    /// and a host that crashed is given up late.
    fn disconnect_all(&self) {
        let peers = self.program.session();
        let links: Vec<_> = peers.peers().map(|(link, _)| link).collect();
        drop(peers);
        for link in links {
            self.program.session().disconnect(link);
        }
        self.program.session().poll();
    }

    fn end(mut self) -> Result<(), String> {
        self.tell_what_it_saw();
        let _ = self.program.session().flush(Wait::millis(1));
        for outgoing in std::mem::take(&mut self.outgoing) {
            if let Some(sender) = outgoing.sender {
                let closed = sender.close(&self.program, &outgoing.oracle);
                closed.map_err(of_flow(&outgoing.oracle))?;
            }
        }
        // What is still on its way comes to rest.
        for _ in 0..LAST_LOOKS {
            self.look(Wait::Poll)?;
            // What dropped ends left behind is done in the next call, and a process without
            // receiver has made none.
            let _ = self.program.wait(Wait::Poll);
            world::pause(LAST_PAUSE);
        }
        for incoming in std::mem::take(&mut self.incoming) {
            if let Some(receiver) = incoming.receiver {
                let closed = receiver.close(&self.program, &incoming.oracle);
                closed.map_err(of_flow(&incoming.oracle))?;
            }
        }
        if !self.plan.is_lossless() {
            self.disconnect_all();
        }
        let open = self.program.session().slots_open();
        if open != 0 {
            return Err(format!("{open} slots are open at the end"));
        }
        // The end of a peer interrupts the waits of others.
        world::pause(Span::from_us(2_000));
        Ok(())
    }
}

/// The peer of a flow is lost, which must not be for nothing.
fn lost(plan: &Plan, oracle: &Oracle<'_>) -> Result<(), String> {
    let all_done = oracle.lock().all_done();
    if plan.is_lossless() && !all_done && !oracle.is_through() {
        return Err(format!(
            "flow {}: its peer is lost, for no reason",
            oracle.flow
        ));
    }
    oracle.lose();
    Ok(())
}
