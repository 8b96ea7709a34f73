//! LU, Water and Barnes as one kind of program: run, and its result compared with the serial run's.

use hamlyn_crl::{CrlError, CrlNull, Regions};

use crate::barnes::{Barnes, BarnesProblem};
use crate::lu::{LuBlocks, LuProblem};
use crate::processor::{Live, RegionProcessor};
use crate::water::{Water, WaterProblem};

/// A program over regions, and its size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SharedProgram {
    /// All of it is measured.
    Lu(LuProblem),
    /// Its last iteration is measured.
    Water(WaterProblem),
    /// The same.
    Barnes(BarnesProblem),
}

/// Called at the begin and at the end of the part of a program that is measured.
pub struct Marks<'a> {
    /// At the begin.
    pub begin: &'a dyn Fn(),
    /// At the end, before the result is gathered.
    pub end: &'a dyn Fn(),
}

impl std::fmt::Debug for Marks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Marks")
    }
}

impl SharedProgram {
    /// Its name in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lu(_) => "LU",
            Self::Water(_) => "Water",
            Self::Barnes(_) => "Barnes",
        }
    }

    /// The bits of its result without messages.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn serial(self) -> Result<Vec<u64>, CrlError> {
        let marks = Marks {
            begin: &|| {},
            end: &|| {},
        };
        self.run(&CrlNull::default(), &Live, &marks)
    }

    /// Runs it on this node: at the first node the bits of its result, at others nothing. All of LU
    /// is measured, and the last iteration of the others (T-188).
    ///
    /// # Errors
    ///
    /// Those of regions: a node is lost, or did not come in time.
    pub fn run<R: Regions>(
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
