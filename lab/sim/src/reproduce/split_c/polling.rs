//! Figures 7 and 8: how often a program must poll that computes (`Split-C 5.3`).
//!
//! In turn each processor is the busy one: it computes in pieces of a given length, and may poll
//! after each. The others ask it for one item, and cannot go on to the next turn, and so to their
//! own, without it. An iteration is a turn of each. If requests are answered at once, all turns'
//! computing goes on at the same time.

use super::Machines;
use super::end::WORD_BYTES;
use super::programs::{MACHINES, Node, Runs, version};
use super::table::Bench;
use crate::reproduce::measure::Failure;
use crate::reproduce::parallel::side_by_side;
use crate::reproduce::report::{Curve, Plot};
use crate::time::Span;

/// Lengths of a piece, in microseconds.
const GRAINS_US: [u64; 12] = [2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 20_000];
/// Where the item of a processor lies, and where it puts those of others.
const ITEM: u32 = 0;
const SCRATCH: u32 = 1;
const SHARED_BYTES: u64 = 2 * WORD_BYTES as u64;

/// Who answers requests to a busy processor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Attention {
    /// Itself, when it has finished its turn.
    Never,
    /// Itself, after each piece.
    Polls,
    /// Its network processor.
    NetworkProcessor,
}

impl Attention {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Never, "Proc, no polls"),
        (Self::Polls, "Proc, polls after each piece"),
        (Self::NetworkProcessor, "NP"),
    ];
}

/// Times of an iteration on a machine.
#[derive(Clone, PartialEq, Debug)]
struct Iterations {
    machine: &'static str,
    attention: Attention,
    /// By the length of a piece in microseconds, in microseconds.
    points: Vec<(f64, f64)>,
}

/// All of Figures 7 and 8.
#[derive(Clone, PartialEq, Debug)]
pub struct Granularities(Vec<Iterations>);

impl Granularities {
    /// Measures both machines.
    pub fn all(machines: &Machines, runs: &Runs) -> Result<Self, Failure> {
        Self::of_grains(machines, runs, &GRAINS_US)
    }

    /// The same for pieces of those lengths.
    pub(super) fn of_grains(
        machines: &Machines,
        runs: &Runs,
        grains_us: &[u64],
    ) -> Result<Self, Failure> {
        let all: Vec<_> = MACHINES
            .iter()
            .flat_map(|machine| Attention::ALL.map(|(attention, _)| (machine, attention)))
            .collect();
        let measured = side_by_side(&all, |&(&(machine, procs, versions), attention)| {
            let name = versions[usize::from(attention == Attention::NetworkProcessor)];
            let version = version(name).ok_or_else(|| Failure::Unmatched {
                id: name.to_owned(),
            })?;
            let bench = Bench {
                version,
                machine: &machines[version.machine],
            };
            let point = |&grain_us: &u64| {
                let grain = Span::from_us(grain_us);
                let took = bench.iteration(procs, runs, attention, grain)?;
                Ok((grain_us as f64, took.as_us_f64()))
            };
            let points: Result<_, Failure> = grains_us.iter().map(point).collect();
            Ok(Iterations {
                machine,
                attention,
                points: points?,
            })
        })?;
        Ok(Self(measured))
    }

    /// The curve of a machine: pieces and iterations, in microseconds.
    pub fn of(&self, machine: &str, attention: Attention) -> &[(f64, f64)] {
        let mut all = self.0.iter();
        let found = all.find(|one| one.machine == machine && one.attention == attention);
        found.map_or(&[], |one| &one.points)
    }

    /// Figures 7 and 8.
    pub fn plots(&self) -> Vec<Plot> {
        let plot = |machine: &str, name: &str, title: &str| Plot {
            name: name.to_owned(),
            title: title.to_owned(),
            across: "µs between polls",
            unit: "µs per iteration",
            curves: Attention::ALL
                .iter()
                .map(|&(attention, label)| Curve {
                    label: label.to_owned(),
                    points: self.of(machine, attention).to_vec(),
                })
                .collect(),
            anchors: Vec::new(),
        };
        vec![
            plot(
                "Meiko",
                "splitc-polling-cs2",
                "Polling granularity, 16 nodes of a CS-2 (Figure 7)",
            ),
            plot(
                "Paragon",
                "splitc-polling-paragon",
                "Polling granularity, 8 nodes of a Paragon (Figure 8)",
            ),
        ]
    }
}

impl Bench<'_> {
    fn iteration(
        &self,
        procs: usize,
        runs: &Runs,
        attention: Attention,
        grain: Span,
    ) -> Result<Span, Failure> {
        let polling = runs.polling();
        let pieces = polling.turn().as_ps() / grain.as_ps();
        let act = |node: &mut Node<'_>| {
            let rank = node.rank();
            node.set(ITEM, item_of(rank));
            node.begin_timing();
            let mut items = Vec::new();
            for turn in 0..procs {
                if turn != rank {
                    items.push(node.read(turn, ITEM, SCRATCH).into());
                    continue;
                }
                for _ in 0..pieces {
                    node.compute_for(grain);
                    if attention == Attention::Polls {
                        node.compute_for(polling.poll());
                        node.poll();
                    }
                }
            }
            node.end_timing();
            items
        };
        let (took, items) = self.nodes(procs, Span::ZERO, SHARED_BYTES, act)?;
        let expected = |rank: usize| {
            let others = (0..procs).filter(move |&other| other != rank);
            others.map(|other| u64::from(item_of(other)))
        };
        match (0..procs).all(|rank| expected(rank).eq(items[rank].iter().copied())) {
            true => Ok(took),
            false => Err(Failure::World(
                "an item was not what was asked for".to_owned(),
            )),
        }
    }
}

fn item_of(rank: usize) -> u32 {
    1_000 + rank as u32
}
