//! Tables 4 and 5: the cycles of a message, by sending one to a node that polls, that is
//! interrupted, or whose program does not run.

use hamlyn_programs::{Processor, ProgramError};
use hamlyn_udm::{Group, Udm};

use super::fugu::{Fugu, SimProcessor, options};
use crate::host::SimHost;
use crate::machine::Machine;
use crate::reproduce::measure::Failure;
use crate::time::{Span, Time};
use crate::world;

const HANDLER: u16 = 0;
/// Messages that are buffered one after the other: more than a page of them.
const MANY: u32 = 400;
/// The sender begins then: all is ready, and the receiver's program, if it is half a slice late,
/// has no processor.
const SENDS: Time = Time::from_ns(1_050_000);
/// The receiver that polls begins then.
const POLLS: Time = Time::from_ns(1_200_000);

/// A message of so many words.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Costs {
    /// The call that injects it.
    pub send: Span,
    /// From the interrupt to its handler.
    pub entry: Span,
    /// From the interrupt until the program goes on: the handler only extracts it.
    pub interrupt: Span,
    /// The call that polls once.
    pub polling: Span,
    /// Its shortest insertion into a buffer.
    pub insertion: Span,
    /// The longest, with a page for it.
    pub insertion_with_page: Span,
    /// Its handler out of the buffer.
    pub extraction: Span,
}

/// The way in which the receiver learns of messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Learns {
    Polls,
    IsInterrupted,
}

/// Times of the receiver, or of the sender.
#[derive(Clone, Copy, Default)]
struct Times {
    send: Span,
    entry: Span,
    whole: Span,
}

fn exchange(
    group: &Group<SimHost>,
    processor: &SimProcessor,
    (words, messages): (usize, u32),
    learns: Learns,
) -> Result<Times, ProgramError> {
    let mut udm = Udm::open(group, "costs", options(), Time::ZERO, options().wait)?;
    udm.on(HANDLER, |arrival| {
        let entered = world::now();
        let mut call = arrival.extract();
        *call.state() = entered;
        call
    })?;
    let mut times = Times::default();
    if udm.me() == 0 {
        world::pause(SENDS.since(world::now()));
        for _ in 0..messages {
            let began = world::now();
            udm.inject(1, HANDLER, &vec![7; words])?;
            times.send = world::now().since(began);
        }
        return Ok(times);
    }
    if learns == Learns::Polls {
        world::pause(POLLS.since(world::now()));
    }
    for _ in 0..messages {
        let began = match learns {
            Learns::Polls => {
                let began = world::now();
                udm.poll(1)?;
                began
            }
            Learns::IsInterrupted => {
                world::await_message();
                let began = world::now();
                processor.wait(&mut udm)?;
                began
            }
        };
        times.whole = world::now().since(began);
        times.entry = udm.state().since(began);
    }
    Ok(times)
}

/// Measures a message of so many words on that machine.
pub fn measure(machine: &Machine, words: usize) -> Result<Costs, Failure> {
    let alone = Fugu {
        machine: machine.clone(),
        nodes: 2,
        late: None,
        diverts_all: false,
        seed: 0,
    };
    let run = |fugu: &Fugu, messages, learns| {
        fugu.run(Span::ZERO, |group, processor| {
            exchange(group, processor, (words, messages), learns)
        })
    };
    // The layer looks twice at the first message of a node, and learns whose it is.
    let polling = run(&alone, 2, Learns::Polls)?;
    let interrupt = run(&alone, 2, Learns::IsInterrupted)?;
    // The receiver's node is half a slice late: its program does not run while the sender sends.
    let slice = machine.schedule(Vec::new()).slice;
    let late = vec![Span::ZERO, Span::from_ps(slice.as_ps() / 2)];
    let apart = Fugu {
        late: Some(late),
        ..alone
    };
    let buffered = run(&apart, MANY, Learns::IsInterrupted)?;
    let receiver = &buffered.nodes[1];
    if receiver.delivered.buffered != u64::from(MANY) {
        return Err(Failure::World(format!("{:?}", receiver.delivered)));
    }
    Ok(Costs {
        send: interrupt.nodes[0].result.send,
        entry: interrupt.nodes[1].result.entry,
        interrupt: interrupt.nodes[1].result.whole,
        polling: polling.nodes[1].result.whole,
        insertion: receiver.delivered.insertion_min,
        insertion_with_page: receiver.delivered.insertion_max,
        extraction: receiver.result.whole,
    })
}
