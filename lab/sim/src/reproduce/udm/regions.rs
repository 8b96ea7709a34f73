//! Programs over regions: CRL on FUGU's nodes, whose messages interrupt what a program computes.
//!
//! The library answers in calls of its own. Here a message that comes between them interrupts the
//! program, which calls it then: so a node answers as soon as one whose handlers do.

use std::cell::Cell;

use hamlyn::Wait;
use hamlyn_crl::{
    Courier, Crl, CrlError, CrlNull, CrlOptions, Incoming, Kind, Regions, UdmCourier,
};
use hamlyn_programs::barnes::{Barnes, BarnesProblem};
use hamlyn_programs::lu::{LuBlocks, LuProblem};
use hamlyn_programs::water::{Water, WaterProblem};
use hamlyn_programs::{Live, ProgramError, RegionProcessor};
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

/// A program, and its size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shared {
    /// All of it is measured.
    Lu(LuProblem),
    /// Its last iteration is measured.
    Water(WaterProblem),
    /// The same.
    Barnes(BarnesProblem),
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

/// Called at the begin and at the end of the part of a program that is measured.
pub(super) struct Marks<'a> {
    pub(super) begin: &'a dyn Fn(),
    pub(super) end: &'a dyn Fn(),
}

impl Shared {
    /// The name of its operations in the machine's file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lu(_) => "lu",
            Self::Water(_) => "water",
            Self::Barnes(_) => "barnes",
        }
    }

    /// The result of the program alone.
    pub(super) fn serial(self) -> Result<Vec<u64>, CrlError> {
        let marks = Marks {
            begin: &|| {},
            end: &|| {},
        };
        self.run_on(&CrlNull::default(), &Live, &marks)
    }

    /// Runs it on this node of FUGU, where the library's work for a message takes so long.
    pub(super) fn run(
        self,
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
        let bits = self.run_on(&crl, processor, &marks)?;
        crl.finish(options().wait)?;
        let sent = sent.get();
        Ok(SharedResult { bits, sent })
    }

    /// All of LU is measured, and the last iteration of the others (T-188).
    pub(super) fn run_on<R: Regions>(
        self,
        crl: &R,
        processor: &impl RegionProcessor<R>,
        marks: &Marks<'_>,
    ) -> Result<Vec<u64>, CrlError> {
        let is_first = crl.me() == 0;
        match self {
            Self::Lu(problem) => {
                (marks.begin)();
                let blocks = LuBlocks::create(crl, processor, problem)?;
                blocks.factor()?;
                (marks.end)();
                gathered(is_first, || blocks.gather(), |value| [value.to_bits()])
            }
            Self::Water(problem) => {
                let water = Water::create(crl, processor, problem)?;
                water.start()?;
                let mut energy = 0.0;
                for step in 1..=problem.steps {
                    if step == problem.steps {
                        (marks.begin)();
                    }
                    energy = water.step()?;
                }
                (marks.end)();
                let mut result = gathered(
                    is_first,
                    || water.gather(),
                    |molecule| {
                        let places = molecule.places.concat();
                        let moved = places.into_iter().chain(molecule.velocities.concat());
                        moved.map(f64::to_bits).collect::<Vec<_>>()
                    },
                )?;
                if is_first {
                    result.push(energy.to_bits());
                }
                Ok(result)
            }
            Self::Barnes(problem) => {
                let barnes = Barnes::create(crl, processor, problem)?;
                for step in 1..=problem.steps {
                    if step == problem.steps {
                        (marks.begin)();
                    }
                    barnes.step()?;
                }
                (marks.end)();
                gathered(
                    is_first,
                    || barnes.gather(),
                    |body| {
                        let moved = body.place.into_iter().chain(body.velocity);
                        moved.map(f64::to_bits).collect::<Vec<_>>()
                    },
                )
            }
        }
    }
}

/// The bits of what the first node gathers.
fn gathered<T, B: IntoIterator<Item = u64>>(
    is_first: bool,
    gather: impl FnOnce() -> Result<Vec<T>, CrlError>,
    bits: impl Fn(T) -> B,
) -> Result<Vec<u64>, CrlError> {
    let all = match is_first {
        true => gather()?,
        false => Vec::new(),
    };
    Ok(all.into_iter().flat_map(bits).collect())
}
