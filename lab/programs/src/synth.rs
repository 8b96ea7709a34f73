//! `synth-N`: producers and consumers, with any amount of synchronisation (T 5.2).
//!
//! Each node sends groups of N requests to the others at random, and waits for all answers of a
//! group. A handler stalls for a while and answers.

use hamlyn::Host;
use hamlyn_udm::{Group, Udm, UdmOptions};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::processor::{Processor, ProgramError};

const REQUEST: u16 = 0;
const REPLY: u16 = 1;
/// A node needs no more answers.
const DONE: u16 = 2;

/// The program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Synth {
    /// Requests of a group.
    pub group: u32,
    /// Groups of each node.
    pub groups: u32,
    /// Operations between two requests, on average: twice as many at most.
    pub between: u64,
    /// Operations of a request's handler.
    pub stall: u64,
    /// Decides destinations and intervals.
    pub seed: u64,
}

/// The state of handlers.
#[derive(Debug, Default)]
struct State {
    requests: u64,
    replies: u64,
    done: u32,
    /// Injections of handlers that failed.
    unanswered: u64,
}

/// A number below `end`.
fn below(random: &mut Pcg64Mcg, end: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(end)) >> 64) as u64
}

impl Synth {
    /// Runs it on this node: the requests that it has answered.
    ///
    /// # Errors
    ///
    /// An answer could not be sent, or none came.
    pub fn run<H: Host, P: Processor<H>>(
        &self,
        group: &Group<H>,
        options: UdmOptions,
        processor: &P,
    ) -> Result<u64, ProgramError> {
        let mut udm = Udm::open(group, "synth", options, State::default(), options.wait)?;
        let (handling, stall) = (processor.clone(), self.stall);
        udm.on(REQUEST, move |arrival| {
            let mut call = arrival.extract();
            handling.compute_in_handler(stall);
            let source = call.source();
            let is_sent = call.inject(source, REPLY, &[]).is_ok();
            let state = call.state();
            state.requests += 1;
            state.unanswered += u64::from(!is_sent);
            call
        })?;
        udm.on(REPLY, |arrival| {
            let mut call = arrival.extract();
            call.state().replies += 1;
            call
        })?;
        udm.on(DONE, |arrival| {
            let mut call = arrival.extract();
            call.state().done += 1;
            call
        })?;
        let (me, nodes) = (udm.me(), udm.nodes());
        let mut random = Pcg64Mcg::seed_from_u64(self.seed ^ u64::from(me) << 32);
        let mut sent = 0;
        for _ in 0..self.groups {
            for _ in 0..self.group {
                processor.compute(&mut udm, below(&mut random, 2 * self.between + 1))?;
                let other = below(&mut random, u64::from(nodes) - 1) as u32;
                let to = if other < me { other } else { other + 1 };
                udm.inject(to, REQUEST, &[])?;
                sent += 1;
            }
            while udm.state().replies < sent {
                processor.wait(&mut udm)?;
            }
        }
        for other in (1..nodes).map(|step| (me + step) % nodes) {
            udm.inject(other, DONE, &[])?;
        }
        while udm.state().done < nodes - 1 {
            processor.wait(&mut udm)?;
        }
        udm.flush(options.wait)?;
        let state = udm.state();
        let wrong = state.unanswered + (state.replies - sent);
        match wrong {
            0 => Ok(state.requests),
            wrong => Err(ProgramError::Wrong { me, wrong }),
        }
    }
}
