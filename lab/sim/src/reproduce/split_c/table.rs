//! Table 1: round trips, overheads and gaps of the operations, measured as the paper does
//! (`Split-C 5.1`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Machines;
use super::end::{End, Primitive};
use super::versions::{VERSIONS, Version};
use crate::machine::Machine;
use crate::reproduce::measure::Failure;
use crate::reproduce::parallel::side_by_side;
use crate::reproduce::primitive::{self, PartOf};
use crate::time::Span;
use crate::world;

/// Round trips of which the second half counts.
const ROUNDS: u64 = 16;
/// Operations of a flow that are answered, of which the second half counts.
const OPERATIONS: u64 = 160;
/// The same of stores, at whose beginning queues fill.
const STORES: u64 = 600;
/// Everything is ready by then, and nothing of it is left.
const QUIET: Span = Span::from_us(5_000);
/// How long a program waits that has nothing to do.
const REST: Span = Span::from_us(100);

/// What is measured of an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Measure {
    /// All of its time, when nothing else is under way.
    Latency,
    /// What it takes of the processor's time, to begin and to end it.
    Overhead,
    /// From operation to operation, when many are under way.
    Gap,
    /// The same, to two nodes by turns.
    GapToTwo,
    /// The same, of each of two nodes that do it to each other.
    GapInExchange,
}

impl Measure {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Latency, "lat"),
        (Self::Overhead, "ovh"),
        (Self::Gap, "gap"),
        (Self::GapToTwo, "gap2"),
        (Self::GapInExchange, "gapx"),
    ];
}

/// A cell of Table 1: a row in a column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cell {
    /// What is measured.
    pub measure: Measure,
    /// Of what.
    pub primitive: Primitive,
    /// In which version, by its place in [`VERSIONS`].
    pub version: usize,
}

impl Cell {
    /// What a row measures, by the second and third part of its identifier.
    fn row(measure: &str, operation: &str) -> Option<(Measure, Primitive)> {
        let mut all = Measure::ALL.iter();
        let (measure, _) = *all.find(|(_, name)| *name == measure)?;
        let primitive = match (measure, operation) {
            (Measure::Latency, "AM") => Primitive::ActiveMessage,
            (Measure::Latency, "read") => Primitive::Get,
            (Measure::Latency, "write") => Primitive::Put,
            (Measure::Latency, _) => return None,
            (_, "get") => Primitive::Get,
            (_, "put") => Primitive::Put,
            (_, "store") => Primitive::Store,
            _ => return None,
        };
        Some((measure, primitive))
    }

    /// The cell of an identifier such as `G-TAB1.gap.store.CM5`.
    pub fn named(id: &str) -> Option<Self> {
        let mut parts = id.strip_prefix("G-TAB1.")?.splitn(3, '.');
        let (measure, operation, column) = (parts.next()?, parts.next()?, parts.next()?);
        let (measure, primitive) = Self::row(measure, operation)?;
        let version = VERSIONS.iter().position(|version| version.name == column)?;
        Some(Self {
            measure,
            primitive,
            version,
        })
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        use Primitive::{ActiveMessage, Get, Put, Store};
        let rows = Measure::ALL.into_iter().flat_map(|(measure, _)| {
            let of = match measure {
                Measure::Latency => [ActiveMessage, Get, Put],
                _ => [Get, Put, Store],
            };
            of.map(|primitive| (measure, primitive))
        });
        rows.flat_map(|(measure, primitive)| {
            (0..VERSIONS.len()).map(move |version| Self {
                measure,
                primitive,
                version,
            })
        })
    }
}

/// Table 1 as measured, in microseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured(BTreeMap<Cell, f64>);

impl Measured {
    /// All of it.
    pub fn all(machines: &Machines) -> Result<Self, Failure> {
        Self::of_cells(machines, Cell::all())
    }

    /// Those cells.
    pub fn of_cells(
        machines: &Machines,
        cells: impl Iterator<Item = Cell>,
    ) -> Result<Self, Failure> {
        let cells: Vec<Cell> = cells.collect();
        let spans = side_by_side(&cells, |&cell| {
            let version = VERSIONS[cell.version];
            let machine = &machines[version.machine];
            Bench { version, machine }.measure(cell)
        })?;
        let us = spans.iter().map(|span| span.as_us_f64());
        Ok(Self(cells.into_iter().zip(us).collect()))
    }

    /// A cell of what was measured.
    pub fn of(&self, cell: Cell) -> f64 {
        self.0[&cell]
    }

    /// What was measured.
    pub fn cells(&self) -> impl Iterator<Item = (Cell, f64)> + '_ {
        self.0.iter().map(|(&cell, &us)| (cell, us))
    }
}

/// A version on its machine.
pub(super) struct Bench<'a> {
    pub(super) version: Version,
    pub(super) machine: &'a Machine,
}

impl Bench<'_> {
    fn measure(&self, cell: Cell) -> Result<Span, Failure> {
        let of = cell.primitive;
        match cell.measure {
            Measure::Latency => self.beside_targets(1, |end| latency(end, of)),
            Measure::Overhead => self.beside_targets(1, |end| overhead(end, of)),
            Measure::Gap => self.beside_targets(1, |end| flow(end, of, 1)),
            Measure::GapToTwo => self.beside_targets(2, |end| flow(end, of, 2)),
            Measure::GapInExchange => self.exchange(of),
        }
    }

    /// Runs `source` beside so many programs that only serve.
    pub(super) fn beside_targets(
        &self,
        targets: usize,
        source: impl Fn(&mut End) -> Span + Send + Sync,
    ) -> Result<Span, Failure> {
        let names = &["first", "second"][..targets];
        let found = Mutex::new(Span::ZERO);
        let is_over = AtomicBool::new(false);
        let (taken, over, source) = (&found, &is_over, &source);
        let mut parts: Vec<PartOf<'_, End>> = vec![(
            "source",
            Box::new(move |end| {
                end.meet(0, names);
                world::pause(QUIET);
                let span = source(end);
                world::pause(QUIET);
                *taken.lock().unwrap_or_else(PoisonError::into_inner) = span;
                over.store(true, Ordering::Relaxed);
            }),
        )];
        for name in names {
            parts.push((
                name,
                Box::new(move |end| {
                    end.meet(0, &["source"]);
                    while !over.load(Ordering::Relaxed) {
                        serve(end);
                    }
                }),
            ));
        }
        self.run(parts)?;
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Two programs that do it to each other.
    fn exchange(&self, of: Primitive) -> Result<Span, Failure> {
        let found = Mutex::new(Span::ZERO);
        let ended = AtomicUsize::new(0);
        let part = |peer: &'static str| {
            let (found, ended) = (&found, &ended);
            move |end: &mut End| {
                end.meet(0, &[peer]);
                world::pause(QUIET);
                let span = flow(end, of, 1);
                *found.lock().unwrap_or_else(PoisonError::into_inner) = span;
                ended.fetch_add(1, Ordering::Relaxed);
                while ended.load(Ordering::Relaxed) < 2 {
                    serve(end);
                }
            }
        };
        self.run(vec![
            ("one", Box::new(part("other"))),
            ("other", Box::new(part("one"))),
        ])?;
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn run(&self, parts: Vec<PartOf<'_, End>>) -> Result<(), Failure> {
        let primitive = primitive::Primitive::new(self.machine, self.version.strategy);
        let open = |manager| End::open(manager, self.machine, self.version);
        primitive.run_ends(open, parts).map(drop)
    }
}

/// A program that has nothing to do but what others ask of it.
fn serve(end: &mut End) {
    match end.is_asked_of_program() {
        true => drop(end.look()),
        false => world::pause(REST),
    }
}

fn latency(end: &mut End, of: Primitive) -> Span {
    let mut took = Span::ZERO;
    for round in 0..ROUNDS {
        // What the one before has left to be done is done.
        world::pause(REST);
        let began = world::now();
        end.begin(of, 0);
        end.sync();
        if round >= ROUNDS / 2 {
            took += world::now().since(began);
        }
    }
    Span::from_ps(took.as_ps() / (ROUNDS / 2))
}

fn overhead(end: &mut End, of: Primitive) -> Span {
    let began = world::now();
    end.begin(of, 0);
    let begin = world::now().since(began);
    // The answer comes while nobody looks.
    world::pause(QUIET);
    let looked = world::now();
    end.sync();
    begin + world::now().since(looked)
}

fn flow(end: &mut End, of: Primitive, peers: usize) -> Span {
    let mut middle = world::now();
    let count = match of {
        Primitive::Store => STORES,
        _ => OPERATIONS,
    };
    for number in 0..count {
        if number == count / 2 {
            middle = world::now();
        }
        end.begin(of, number as usize % peers);
        while end.is_awaiting() && end.look() {}
    }
    let took = world::now().since(middle);
    end.sync();
    Span::from_ps(took.as_ps() / (count / 2))
}
