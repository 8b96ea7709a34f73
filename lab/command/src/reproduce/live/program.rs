//! The programs of the live experiment: their extent, a run on one node, and the values that a run
//! must have.

use anyhow::Result;
use hamlyn_programs::barrier::Barriers;
use hamlyn_programs::enumerate::{Counts, Enumeration};
use hamlyn_programs::synth::Synth;
use hamlyn_sim::reproduce::udm::Machines;
use hamlyn_sim::reproduce::udm::bench::BETWEEN_10;
use hamlyn_udm::{Group, UdmOptions};
use serde::{Deserialize, Serialize};

use super::logs::Logs;
use super::regions::{self, Problem};
use super::tempo::{Progress, Tempo};

/// Cycles of the handler of a request (T-209).
const STALL: u64 = 290;

/// A program and its extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Program {
    /// So many barriers.
    Barrier(u32),
    /// The puzzle up to so many moves.
    Enum(u32),
    /// Groups of so many requests, and so many groups.
    Synth(u32, u32),
    /// Shared memory.
    Regions(Problem),
}

/// The values that nodes bring together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Values {
    positions: u64,
    moves: u64,
    requests: u64,
    /// Of the bits that shared memory has at the end.
    digest: u64,
}

impl Values {
    pub(super) fn add(&mut self, other: Self) {
        self.positions += other.positions;
        self.moves += other.moves;
        self.requests += other.requests;
        self.digest ^= other.digest;
    }
}

fn puzzle(moves_max: u32) -> Enumeration {
    Enumeration {
        moves_max,
        ..Enumeration::PAPER
    }
}

/// Cycles of an operation of that program on the model of FUGU, whose cycle is a nanosecond.
fn cycles(program: &str) -> f64 {
    Machines::paper().soft.operation(program).as_ps() as f64 / 1e3
}

impl Program {
    pub(super) fn name(self) -> String {
        match self {
            Self::Barrier(_) => "barrier".to_owned(),
            Self::Enum(_) => "enum".to_owned(),
            Self::Synth(group, _) => format!("synth-{group}"),
            Self::Regions(problem) => problem.name().to_owned(),
        }
    }

    /// Cycles of one of its operations on FUGU.
    pub(super) fn cycles_per_operation(self) -> f64 {
        match self {
            Self::Enum(_) => cycles("enum"),
            // Those over regions compute at this host's pace.
            _ => 1.0,
        }
    }

    /// Runs it on this node: its values, and before they were gathered its progress and the use of
    /// logs.
    pub(super) fn run(
        self,
        group: &Group,
        options: UdmOptions,
        tempo: &Tempo,
    ) -> Result<(Values, Progress, Logs)> {
        let mut values = Values::default();
        match self {
            Self::Barrier(barriers) => {
                let barriers = Barriers {
                    barriers,
                    round_operations: cycles("barrier") as u64,
                };
                // Messages in another order than the barriers' are an error.
                barriers.run(group, options, tempo)?;
            }
            Self::Enum(moves_max) => {
                let Counts {
                    positions, moves, ..
                } = puzzle(moves_max).run(group, options, tempo)?;
                (values.positions, values.moves) = (positions, moves);
            }
            Self::Synth(group_requests, groups) => {
                let synth = Synth {
                    group: group_requests,
                    groups,
                    between: BETWEEN_10,
                    stall: STALL,
                    seed: 1,
                };
                values.requests = synth.run(group, options, tempo)?;
            }
            Self::Regions(problem) => {
                let (digest, end, logs) = regions::run(problem, group, tempo)?;
                values.digest = digest;
                return Ok((values, end, logs));
            }
        }
        Ok((values, tempo.progress(), Logs::of(group)))
    }

    /// The values that so many nodes bring together.
    pub(super) fn expected(self, nodes: u32) -> Result<Values> {
        let mut expected = Values::default();
        match self {
            Self::Barrier(_) => {}
            Self::Enum(moves_max) => {
                let counts = puzzle(moves_max).serial()?;
                (expected.positions, expected.moves) = (counts.positions, counts.moves);
            }
            Self::Synth(group, groups) => {
                expected.requests = u64::from(nodes) * u64::from(group) * u64::from(groups);
            }
            Self::Regions(problem) => expected.digest = regions::serial(problem)?,
        }
        Ok(expected)
    }
}
