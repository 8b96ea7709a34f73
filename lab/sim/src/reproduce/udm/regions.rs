//! Programs over regions: CRL on FUGU's nodes, whose messages interrupt what a program computes.
//!
//! The library answers in calls of its own. Here a message that comes between them interrupts the
//! program, which calls it then: so a node answers as soon as one whose handlers do.

use std::cell::Cell;

use hamlyn::Wait;
use hamlyn_crl::{Courier, Crl, CrlError, CrlOptions, Incoming, Kind, UdmCourier};
use hamlyn_programs::{Marks, ProgramError, RegionProcessor, SharedProgram};
use hamlyn_udm::Group;

use super::fugu::{SimProcessor, options};
use crate::host::SimHost;
use crate::time::{Span, Time};
use crate::world;

/// Carries CRL's messages over User Direct Messaging: each interrupts its receiver.
#[derive(Debug)]
pub struct InterruptingCourier {
    courier: UdmCourier<SimHost>,
    processor: SimProcessor,
    /// The library's work for a message, besides its reception and what it sends.
    action: Span,
    /// The interrupt of the message that is being handled.
    interrupted: Option<Time>,
}

impl InterruptingCourier {
    /// At this node of FUGU, where the library's work for a message takes so long.
    pub(super) fn open(
        group: &Group<SimHost>,
        processor: &SimProcessor,
        action: Span,
    ) -> Result<Self, ProgramError> {
        Ok(Self {
            courier: UdmCourier::open(group, "crl", options().wait)?,
            processor: processor.clone(),
            action,
            interrupted: None,
        })
    }

    fn interrupt(&mut self) -> Result<(), String> {
        self.interrupted = Some(world::now());
        let ran = world::interrupted(|| self.courier.upcall(1));
        ran.map_err(|error| error.to_string())?;
        world::compute(self.action);
        Ok(())
    }
}

impl Courier for InterruptingCourier {
    fn me(&self) -> u32 {
        self.courier.me()
    }

    fn nodes(&self) -> u32 {
        self.courier.nodes()
    }

    fn piece_bytes(&self) -> usize {
        self.courier.piece_bytes()
    }

    fn send(&mut self, to: u32, kind: u8, words: &[u32], bytes: &[u8]) -> Result<(), String> {
        self.courier.send(to, kind, words, bytes)
    }

    /// Any wait is for ever: no node of these worlds is lost.
    fn receive(&mut self, wait: Wait) -> Result<Option<Incoming>, String> {
        // The library asks for the next message when it has handled one.
        if let Some(began) = self.interrupted.take() {
            self.processor.has_handled(1, began);
        }
        loop {
            if let Some(incoming) = self.courier.next_kept() {
                return Ok(Some(incoming));
            }
            if wait == Wait::Poll {
                if !world::is_message_there() {
                    return Ok(None);
                }
            } else {
                world::await_message();
            }
            self.interrupt()?;
        }
    }

    fn flush(&mut self, wait: Wait) -> Result<bool, String> {
        self.courier.flush(wait)
    }
}

type Node = Crl<InterruptingCourier>;

impl RegionProcessor<Node> for SimProcessor {
    fn compute(&self, crl: &Node, operations: u64) -> Result<(), CrlError> {
        let mut left = self.time_of(operations);
        while left > Span::ZERO {
            left = world::compute_until_message(left);
            if left > Span::ZERO {
                crl.serve(Wait::Poll)?;
            }
        }
        Ok(())
    }
}

/// Messages by their kinds.
pub type OfKinds = [u64; Kind::ALL.len()];

/// A node's part of a run.
pub(super) struct SharedResult {
    /// Of the first node: the bits of the result.
    pub(super) bits: Vec<u64>,
    /// Messages that it has sent in the part that is measured.
    pub(super) sent: OfKinds,
}

/// Runs a program on this node of FUGU, where the library's work for a message takes so long.
pub(super) fn run(
    program: SharedProgram,
    group: &Group<SimHost>,
    processor: &SimProcessor,
    action: Span,
) -> Result<SharedResult, ProgramError> {
    let courier = InterruptingCourier::open(group, processor, action)?;
    let crl = Crl::open(courier, CrlOptions::default())?;
    let sent = Cell::new([0; Kind::ALL.len()]);
    let add_sent = |sign: fn(u64, u64) -> u64| {
        let (statistics, mut sums) = (crl.statistics(), sent.get());
        for kind in Kind::ALL {
            let sum = &mut sums[*kind as usize];
            *sum = sign(*sum, statistics.sent(*kind));
        }
        sent.set(sums);
    };
    let marks = Marks {
        begin: &|| {
            add_sent(u64::wrapping_sub);
            processor.begin_measured();
        },
        end: &|| {
            add_sent(u64::wrapping_add);
            processor.end_measured();
        },
    };
    let bits = program.run(&crl, processor, &marks)?;
    crl.finish(options().wait)?;
    let sent = sent.get();
    Ok(SharedResult { bits, sent })
}
