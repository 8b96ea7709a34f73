//! LU, Water and Barnes over shared memory in software: they compute what they compute, at the pace
//! of this host.

use std::hash::{DefaultHasher, Hasher as _};

use anyhow::{Result, ensure};
use hamlyn::Wait;
use hamlyn::zerocopy::{Immutable, IntoBytes};
use hamlyn_crl::{Courier, Crl, CrlError, CrlNull, CrlOptions, Incoming, Regions, UdmCourier};
use hamlyn_programs::barnes::{Barnes, BarnesProblem};
use hamlyn_programs::lu::{LuBlocks, LuProblem};
use hamlyn_programs::water::{Water, WaterProblem};
use hamlyn_programs::{Live, RegionProcessor};
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
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lu(_) => "LU",
            Self::Water(..) => "Water",
            Self::Barnes(..) => "Barnes",
        }
    }
}

/// Runs it on this node: the digest of the result at the first node, and before that was gathered
/// the node's progress and its use of logs.
pub(super) fn run(problem: Problem, group: &Group, tempo: &Tempo) -> Result<(u64, Progress, Logs)> {
    let courier = Watched {
        courier: UdmCourier::open(group, "crl", WAIT)?,
        tempo: tempo.clone(),
    };
    let mut options = CrlOptions::default();
    options.patience = Some(PATIENCE);
    let crl = Crl::open(courier, options)?;
    let mut end = None;
    let now = || (tempo.progress(), Logs::of(group));
    let digest = on(&crl, problem, || end = Some(now()))?;
    ensure!(crl.finish(WAIT)?, "what was sent has not left");
    let (progress, logs) = end.unwrap_or_else(now);
    Ok((digest, progress, logs))
}

/// The digest of its result without messages.
pub(super) fn serial(problem: Problem) -> Result<u64> {
    on(&CrlNull::default(), problem, || ())
}

fn on<R: Regions>(crl: &R, problem: Problem, ends: impl FnOnce()) -> Result<u64>
where
    Live: RegionProcessor<R>,
{
    match problem {
        Problem::Lu(size) => {
            let problem = LuProblem {
                size: size as usize,
                block: BLOCK,
            };
            let blocks = LuBlocks::create(crl, &Live, problem)?;
            blocks.factor()?;
            ends();
            at_first(crl, || blocks.gather())
        }
        Problem::Water(side, steps) => {
            let problem = WaterProblem {
                side: side as usize,
                steps: steps as usize,
                ..WaterProblem::default()
            };
            let water = Water::create(crl, &Live, problem)?;
            water.run()?;
            ends();
            at_first(crl, || water.gather())
        }
        Problem::Barnes(bodies, steps) => {
            let problem = BarnesProblem {
                bodies: bodies as usize,
                steps: steps as usize,
                ..BarnesProblem::default()
            };
            let barnes = Barnes::create(crl, &Live, problem)?;
            barnes.run()?;
            ends();
            at_first(crl, || barnes.gather())
        }
    }
}

/// The digest of what the first node gathers.
fn at_first<R: Regions, T: IntoBytes + Immutable>(
    crl: &R,
    gather: impl FnOnce() -> Result<Vec<T>, CrlError>,
) -> Result<u64> {
    if crl.me() > 0 {
        return Ok(0);
    }
    // The same bits give the same number in every process of this program.
    let mut hasher = DefaultHasher::new();
    hasher.write(gather()?.as_bytes());
    Ok(hasher.finish())
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
