//! Programs of several nodes whose processors serve another job by turns, well or badly in step
//! (two-case delivery, section 5.1).
//!
//! The paper asks how many messages come while their program has no processor, and how much longer
//! programs take. Here the programs are those whose messages the paper describes: one synchronises
//! all the time, one hardly ever. Messages of the library land in their program's memory also while
//! another job has the processor, so none is buffered; what is counted is how many would be.

use std::sync::{Mutex, PoisonError};

use super::measure::Failure;
use super::primitive::{Part, Party, Peer, Primitive};
use crate::machine::Machine;
use crate::time::{Span, Time};
use crate::world::{self, Arrivals, Schedule};

/// Of the paper's simulated system (T-178).
const NODES: usize = 8;
/// So much of its own slices a program runs before it is measured, and then.
const WARM_UP_SLICES: u64 = 1;
const MEASURED_SLICES: u64 = 2;

/// What the program does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    /// All nodes meet, again and again, in a dissemination barrier (T-183, T-247).
    Barrier,
    /// Every node sends to the others by turns, and takes what has come; nobody waits (T-182).
    Scatter,
}

/// How it went.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ran {
    /// Messages that one node has sent for each slice's time that passed.
    pub rate: f64,
    /// Of all messages, those that came while their program had no processor.
    pub out_of_turn: f64,
}

/// A program, and how long a node computes before it sends.
#[derive(Clone, Debug)]
pub struct Gang {
    /// The machine, whose file says for how long jobs have processors.
    pub machine: Machine,
    /// The program.
    pub program: Program,
    /// Between its messages.
    pub between: Span,
}

/// When one node sent each of its messages.
type Notes = Vec<Time>;

impl Gang {
    /// The program has the processors for itself.
    pub fn alone(&self) -> Result<Ran, Failure> {
        self.run(None)
    }

    /// Another job has them by turns. Nodes change from one to the other at times that differ by up
    /// to so much of a slice.
    pub fn shared(&self, skew: f64) -> Result<Ran, Failure> {
        let slice = self.machine.schedule(Vec::new()).slice;
        let latest = slice.as_ps() as f64 * skew;
        let late = |node| Span::from_ps((latest * node as f64 / (NODES - 1) as f64) as u64);
        self.run(Some((0..NODES).map(late).collect()))
    }

    fn run(&self, late: Option<Vec<Span>>) -> Result<Ran, Failure> {
        let Schedule { slice, jobs, .. } = self.machine.schedule(Vec::new());
        // As many as in so many slices if they took no time of their own, and some for the
        // beginning.
        let own = slice * (WARM_UP_SLICES + MEASURED_SLICES + 1);
        let messages = own.as_ps() / self.between.as_ps().max(1);
        let meetings = messages / u64::from(NODES.ilog2());
        let sent = (meetings * u64::from(NODES.ilog2())).next_multiple_of(NODES as u64 - 1);
        let names: Vec<String> = (0..NODES).map(|node| format!("node-{node}")).collect();
        let notes = Mutex::new(Notes::new());
        let mut parts: Vec<Part<'_>> = Vec::new();
        for (node, name) in names.iter().enumerate() {
            let (names, notes) = (&names, &notes);
            parts.push((
                name,
                Box::new(move |end| {
                    let others = (1..NODES).map(|after| (node + after) % NODES);
                    let peers: Vec<Peer> = others.map(|other| end.peer(&names[other])).collect();
                    let mut own = Notes::new();
                    match self.program {
                        Program::Barrier => self.meet(end, &peers, meetings, &mut own),
                        Program::Scatter => self.scatter(end, &peers, sent, &mut own),
                    }
                    if node == 0 {
                        *notes.lock().unwrap_or_else(PoisonError::into_inner) = own;
                    }
                }),
            ));
        }
        let jobs = late.as_ref().map_or(1, |_| jobs);
        let primitive = Primitive {
            data_bytes: 0,
            late,
            ..Primitive::new(&self.machine, hamlyn::Strategy::Proc)
        };
        let arrivals = primitive.run(parts)?;
        let notes = notes.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(ran(&notes, slice, jobs, arrivals))
    }

    /// Meets all others so often.
    fn meet(&self, end: &mut Party, peers: &[Peer], meetings: u64, notes: &mut Notes) {
        let rounds = NODES.ilog2();
        let mut came = vec![0; rounds as usize];
        for meeting in 0..meetings {
            for round in 0..rounds {
                world::compute(self.between);
                end.send(&peers[(1 << round) - 1], round.into());
                notes.push(world::now());
                while came[round as usize] <= meeting {
                    let word = end.receive();
                    came[word as usize] += 1;
                }
            }
        }
    }

    /// Sends so many messages, and takes as many.
    fn scatter(&self, end: &mut Party, peers: &[Peer], messages: u64, notes: &mut Notes) {
        let mut came = 0;
        for number in 0..messages {
            world::compute(self.between);
            end.send(&peers[number as usize % peers.len()], 0);
            notes.push(world::now());
            while end.look() {
                came += 1;
            }
        }
        while came < messages {
            end.receive();
            came += 1;
        }
    }
}

/// From whole rounds of all jobs, so that it does not matter where in a slice the program began.
fn ran(notes: &Notes, slice: Span, jobs: u32, arrivals: Arrivals) -> Ran {
    let round = slice * u64::from(jobs);
    let began = notes.first().copied().unwrap_or_default();
    let from = began + round * WARM_UP_SLICES;
    let until = from + round * MEASURED_SLICES;
    let sent = notes.iter().filter(|&&at| at >= from && at < until).count();
    let slices = round.as_ps() as f64 * MEASURED_SLICES as f64 / slice.as_ps().max(1) as f64;
    Ran {
        rate: sent as f64 / slices,
        out_of_turn: arrivals.out_of_turn as f64 / arrivals.all.max(1) as f64,
    }
}
