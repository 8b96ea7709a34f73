//! LU, Water and Barnes over shared memory in software: they compute what they compute, at the pace
//! of this host.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hasher as _};

use anyhow::{Context, Result, ensure};
use hamlyn::Wait;
use hamlyn_crl::{Courier, Crl, CrlOptions, Incoming, UdmCourier};
use hamlyn_programs::barnes::BarnesProblem;
use hamlyn_programs::lu::LuProblem;
use hamlyn_programs::water::WaterProblem;
use hamlyn_programs::{Live, Marks, SharedProgram};
use hamlyn_udm::Group;
use serde::{Deserialize, Serialize};

use super::logs::Logs;
use super::tempo::{PATIENCE, Progress, Tempo, WAIT};

/// Rows of a block of LU.
const BLOCK: usize = 25;

/// A program over regions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Problem {
    /// LU of a matrix with so many rows.
    Lu(u32),
    /// Water with so many molecules along a side of its cube, and so many iterations.
    Water(u32, u32),
    /// Barnes with so many bodies, and so many iterations.
    Barnes(u32, u32),
}

impl Problem {
    fn program(self) -> SharedProgram {
        match self {
            Self::Lu(size) => SharedProgram::Lu(LuProblem {
                size: size as usize,
                block: BLOCK,
            }),
            Self::Water(side, steps) => SharedProgram::Water(WaterProblem {
                side: side as usize,
                steps: steps as usize,
                ..WaterProblem::default()
            }),
            Self::Barnes(bodies, steps) => SharedProgram::Barnes(BarnesProblem {
                bodies: bodies as usize,
                steps: steps as usize,
                ..BarnesProblem::default()
            }),
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.program().name()
    }
}

/// Runs it on this node: the digest of the result at the first node, and before that was gathered
/// the node's progress and its use of logs. All of it is timed.
pub(super) fn run(problem: Problem, group: &Group, tempo: &Tempo) -> Result<(u64, Progress, Logs)> {
    let courier = Watched {
        courier: UdmCourier::open(group, "crl", WAIT)?,
        tempo: tempo.clone(),
    };
    let mut options = CrlOptions::default();
    options.patience = Some(PATIENCE);
    let crl = Crl::open(courier, options)?;
    let end = Cell::new(None);
    let marks = Marks {
        begin: &|| {},
        end: &|| end.set(Some((tempo.progress(), Logs::of(group)))),
    };
    let bits = problem.program().run(&crl, &Live, &marks)?;
    ensure!(crl.finish(WAIT)?, "what was sent has not left");
    let (progress, logs) = end.take().context("a program that did not end")?;
    Ok((digest(&bits), progress, logs))
}

/// The digest of its result without messages.
pub(super) fn serial(problem: Problem) -> Result<u64> {
    Ok(digest(&problem.program().serial()?))
}

/// A number for the bits of a result; 0 where there is none.
fn digest(bits: &[u64]) -> u64 {
    if bits.is_empty() {
        return 0;
    }
    // The same bits give the same number in every process of this program.
    let mut hasher = DefaultHasher::new();
    bits.iter().for_each(|word| hasher.write_u64(*word));
    hasher.finish()
}

/// A courier that notes which messages are received after a stop.
struct Watched {
    courier: UdmCourier,
    tempo: Tempo,
}

impl Watched {
    fn look(&mut self, wait: Wait) -> Result<Option<Incoming>, String> {
        let received = self.courier.receive(wait)?;
        // It may have been stopped while it waited.
        self.tempo.looks();
        let is_message = matches!(received, Some(Incoming::Message { .. }));
        self.tempo.looked(usize::from(is_message), 1);
        Ok(received)
    }
}

impl Courier for Watched {
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

    fn receive(&mut self, wait: Wait) -> Result<Option<Incoming>, String> {
        self.tempo.looks();
        match self.look(Wait::Poll)? {
            None if wait != Wait::Poll => self.look(wait),
            received => Ok(received),
        }
    }

    fn flush(&mut self, wait: Wait) -> Result<bool, String> {
        self.courier.flush(wait)
    }
}
