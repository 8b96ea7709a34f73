//! `barrier`: all nodes meet, again and again, and do nothing else (T 5.1).
//!
//! A barrier by dissemination: in each of lg n rounds a node tells the one that is 2^round further,
//! and goes on when it was told itself.

use hamlyn::Host;
use hamlyn_udm::{Group, Udm, UdmOptions};

use crate::processor::{Processor, ProgramError};

/// The handler of a round's message: the round, and the number of the barrier.
const ARRIVED: u16 = 0;
/// Operations of a handler: it loads a count, compares it with the message, adds and stores it.
const HANDLER_OPERATIONS: u64 = 4;

/// The state of handlers.
#[derive(Debug, Default)]
struct State {
    /// By round, how many barriers' messages have come.
    came: Vec<u32>,
    /// Messages that came before or after their barrier.
    wrong: u64,
}

/// The program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Barriers {
    /// The number of times that the nodes meet.
    pub barriers: u32,
    /// Operations of the program in each round, its handlers apart.
    pub round_operations: u64,
}

impl Barriers {
    /// Runs it on this node. Each node injects lg n messages a barrier.
    ///
    /// # Errors
    ///
    /// A message came that belongs to no barrier, or none came.
    pub fn run<H: Host, P: Processor<H>>(
        &self,
        group: &Group<H>,
        options: UdmOptions,
        processor: &P,
    ) -> Result<(), ProgramError> {
        let nodes = group.nodes();
        let rounds = nodes.next_power_of_two().trailing_zeros();
        let state = State {
            came: vec![0; rounds as usize],
            wrong: 0,
        };
        let mut udm = Udm::open(group, "barrier", options, state, options.wait)?;
        let handling = processor.clone();
        udm.on(ARRIVED, move |arrival| {
            let mut call = arrival.extract();
            handling.compute_in_handler(HANDLER_OPERATIONS);
            let (round, number) = (call.word(0) as usize, call.word(1));
            let state = call.state();
            match state.came.get_mut(round) {
                // Before a node enters the next barrier, all have entered this one.
                Some(came) if *came == number => *came += 1,
                _ => state.wrong += 1,
            }
            call
        })?;
        for number in 0..self.barriers {
            for round in 0..rounds {
                processor.compute(&mut udm, self.round_operations)?;
                let to = (udm.me() + (1 << round)) % nodes;
                udm.inject(to, ARRIVED, &[round, number])?;
                while udm.state().came[round as usize] <= number {
                    processor.wait(&mut udm)?;
                }
            }
        }
        udm.flush(options.wait)?;
        match udm.state().wrong {
            0 => Ok(()),
            wrong => Err(ProgramError::Wrong {
                me: udm.me(),
                wrong,
            }),
        }
    }
}
