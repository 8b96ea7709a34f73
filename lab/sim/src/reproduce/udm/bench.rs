//! The bench: settings, each a world of its own, and the measurements that rows are judged by.

use hamlyn_crl::Kind;
use hamlyn_programs::barnes::BarnesProblem;
use hamlyn_programs::barrier::Barriers;
use hamlyn_programs::enumerate::{Counts, Enumeration};
use hamlyn_programs::lu::LuProblem;
use hamlyn_programs::synth::Synth;
use hamlyn_programs::water::WaterProblem;
use hamlyn_programs::{ProgramError, SharedProgram};

use super::costs::{self, Costs};
use super::fugu::{Fugu, Run, options, out_of_step};
use super::regions::{self, OfKinds};
use crate::machine::Machine;
use crate::reproduce::measure::Failure;
use crate::reproduce::parallel::side_by_side;
use crate::time::Span;

/// Nodes of the applications (T-178).
const NODES: usize = 8;
/// Nodes of synth-N (T-207).
const SYNTH_NODES: usize = 4;
/// Trials of each figure (T-179).
pub const TRIALS: [u64; 3] = [1, 2, 3];
/// Thousandths of a slice by which nodes are out of step in Figures 7 and 8. The paper's are lost.
pub const SKEWS: [u32; 7] = [0, 10, 50, 100, 200, 300, 500];
/// The skew of Figures 9 and 10 (T-212).
const SYNTH_SKEW: u32 = 10;
/// N of synth-N (T-211).
pub const GROUPS: [u32; 3] = [10, 100, 1_000];
/// Requests of each node of synth-N.
const REQUESTS: u32 = 4_000;
/// Cycles between requests in Figure 9. The paper's points are lost.
pub const BETWEEN: [u64; 11] = [50, 75, 100, 150, 200, 275, 350, 435, 522, 700, 1_000];
/// Cycles of the buffered path in Figure 10, the first as it is.
pub const BUFFERED: [u64; 11] = [232, 260, 300, 350, 400, 450, 500, 600, 800, 1_200, 2_000];
/// Cycles between requests in Figure 10 (T-218).
pub const BETWEEN_10: u64 = 275;
/// Cycles of the handler of a request (T-209), of which an interrupt takes 115 and its answer 7.
const HANDLER: u64 = 290;
/// The rest of them for its stall.
pub(super) const STALL: u64 = HANDLER - 115 - 7;
/// See the machine's file.
const CYCLE: Span = Span::from_ns(1);
/// Barriers of the paper.
const BARRIERS: u32 = 10_000;

/// A column of Table 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// Unprotected.
    Kernel,
    /// Atomicity in hardware.
    Hard,
    /// In software, as measured.
    Soft,
}

/// A program, and its extent or size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Program {
    /// So many barriers.
    Barrier(u32),
    /// Up to so many moves of the puzzle.
    Enum(u32),
    /// One over regions.
    Shared(SharedProgram),
    /// Groups of so many requests, with so many cycles between two.
    Synth {
        /// N.
        group: u32,
        /// T_betw.
        between: u64,
    },
}

/// The schedule of a program, in a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// It has the machine for itself.
    Alone,
    /// It shares it with null; nodes are out of step by so many thousandths of a slice.
    Skewed(u32),
    /// It has the machine for itself, and each of its messages takes the buffered path.
    AllBuffered,
}

/// A world to be measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// The machine.
    pub column: Column,
    /// The program.
    pub program: Program,
    /// Its schedule.
    pub sharing: Sharing,
    /// Cycles that an insertion takes in addition (Figure 10).
    pub added: u64,
    /// The trial.
    pub seed: u64,
}

/// The outcome of a setting, times in cycles.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// From the first beginning to the last end.
    pub elapsed: f64,
    /// The processor time of a node that it has cost ([`Run::cost`]).
    pub cost: f64,
    /// All messages.
    pub messages: u64,
    /// The part of them that took the buffered path.
    pub buffered: f64,
    /// Times that a node entered buffered mode.
    pub episodes: u64,
    /// The most pages of a node.
    pub pages_max: u64,
    /// The average time of a handler.
    pub handler: f64,
    /// The sums of an enumeration.
    pub counts: Counts,
    /// Messages of a program over regions, by kind.
    pub kinds: OfKinds,
}

fn cycles(span: Span) -> f64 {
    span.as_ps() as f64 / 1e3
}

impl Outcome {
    fn of<R>(run: &Run<R>) -> Self {
        Self {
            elapsed: cycles(run.elapsed()),
            cost: cycles(run.cost()),
            messages: run.messages(),
            buffered: run.buffered(),
            episodes: run.sum(|delivered| delivered.episodes),
            pages_max: run.pages_max(),
            handler: cycles(run.handler_time()),
            counts: Counts::default(),
            kinds: OfKinds::default(),
        }
    }

    /// Messages of a program over regions by their kinds, of those that it has.
    pub fn messages_by_kind(&self) -> impl Iterator<Item = (String, u64)> {
        let kinds = Kind::ALL.iter().zip(self.kinds);
        let sent = kinds.filter(|(_, sent)| *sent > 0);
        sent.map(|(kind, sent)| (format!("{kind:?}"), sent))
    }

    /// Cycles between a node's messages (T-245).
    pub fn between(&self) -> f64 {
        NODES as f64 * self.elapsed / self.messages.max(1) as f64
    }
}

/// The machines of the paper.
#[derive(Clone, Debug)]
pub struct Machines {
    /// Atomicity in hardware.
    pub hard: Machine,
    /// In software.
    pub soft: Machine,
}

impl Machines {
    /// Those of the files that are in the program.
    pub fn paper() -> Self {
        let machine = |name| Machine::named(name).expect("a file that is in the program");
        Self {
            hard: machine("fugu"),
            soft: machine("fugu-soft"),
        }
    }

    /// That of a column.
    pub fn of(&self, column: Column) -> Machine {
        match column {
            Column::Kernel => self.hard.free_of("protection"),
            Column::Hard => self.hard.clone(),
            Column::Soft => self.soft.clone(),
        }
    }
}

impl Setting {
    /// A program on the machine as it was measured.
    pub const fn new(program: Program, sharing: Sharing, seed: u64) -> Self {
        Self {
            column: Column::Soft,
            program,
            sharing,
            added: 0,
            seed,
        }
    }

    /// Measures it.
    pub fn measure(&self, machines: &Machines) -> Result<Outcome, Failure> {
        let mut machine = machines.of(self.column);
        if self.added > 0 {
            machine = machine.with("kernel.insert", |cycles| cycles + self.added as f64)?;
        }
        let nodes = match self.program {
            Program::Synth { .. } => SYNTH_NODES,
            _ => NODES,
        };
        let late = match self.sharing {
            Sharing::Skewed(skew) => {
                let slice = machine.schedule(Vec::new()).slice;
                Some(out_of_step(nodes, slice, f64::from(skew) / 1e3, self.seed))
            }
            _ => None,
        };
        let fugu = Fugu {
            machine,
            nodes,
            late,
            diverts_all: self.sharing == Sharing::AllBuffered,
            seed: self.seed,
        };
        // The paper measured programs on the machine with soft atomicity.
        let operation = |program| machines.soft.operation(program);
        match self.program {
            Program::Barrier(barriers) => {
                let barriers = Barriers {
                    barriers,
                    round_operations: operation("barrier").as_ns(),
                };
                let run = fugu.run(CYCLE, |group, processor| {
                    barriers.run(group, options(), processor)
                })?;
                Ok(Outcome::of(&run))
            }
            Program::Enum(moves_max) => {
                let puzzle = Enumeration {
                    moves_max,
                    ..Enumeration::PAPER
                };
                let run = fugu.run(operation("enum"), |group, processor| {
                    puzzle.run(group, options(), processor)
                })?;
                let mut outcome = Outcome::of(&run);
                let results = run.nodes.iter().map(|node| node.result);
                results.for_each(|result| outcome.counts.add(result));
                Ok(outcome)
            }
            Program::Shared(shared) => {
                let action = operation("crl");
                let run = fugu.run(
                    operation(&shared.name().to_lowercase()),
                    |group, processor| regions::run(shared, group, processor, action),
                )?;
                let serial = shared.serial().map_err(ProgramError::from);
                let serial = serial.map_err(|error| Failure::World(error.to_string()))?;
                if run.nodes[0].result.bits != serial {
                    let name = shared.name();
                    return Err(Failure::World(format!(
                        "{name} differs from its serial run"
                    )));
                }
                let mut outcome = Outcome::of(&run);
                for node in &run.nodes {
                    let sums = outcome.kinds.iter_mut().zip(node.result.sent);
                    sums.for_each(|(sum, sent)| *sum += sent);
                }
                // Some that come before a node's end belong to what another one does next.
                outcome.messages = outcome.kinds.iter().sum();
                Ok(outcome)
            }
            Program::Synth { group, between } => {
                let synth = Synth {
                    group,
                    groups: (REQUESTS / group).max(1),
                    between,
                    stall: STALL,
                    seed: self.seed,
                };
                let run = fugu.run(CYCLE, |group, processor| {
                    synth.run(group, options(), processor)
                })?;
                Ok(Outcome::of(&run))
            }
        }
    }
}

/// The extent of what is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// A tenth of it.
    pub is_quick: bool,
}

impl Extent {
    /// Barriers of Table 6.
    pub fn barriers(self) -> Program {
        Program::Barrier(if self.is_quick {
            BARRIERS / 10
        } else {
            BARRIERS
        })
    }

    /// The puzzle of Table 6.
    pub fn puzzle(self) -> Program {
        Program::Enum(if self.is_quick { 8 } else { u32::MAX })
    }

    /// Barriers and moves of a point of Figures 7 and 8.
    pub fn programs(self) -> [Program; 2] {
        match self.is_quick {
            true => [Program::Barrier(1_000), Program::Enum(7)],
            false => [Program::Barrier(2_500), Program::Enum(9)],
        }
    }

    /// The programs over regions, of the sizes of Table 6: LU, Water and Barnes.
    pub fn shared(self) -> [Program; 3] {
        let (mut lu, mut water) = (LuProblem::default(), WaterProblem::default());
        let mut barnes = BarnesProblem::default();
        if self.is_quick {
            (lu.size, water.side, barnes.bodies) = (120, 4, 256);
        }
        [
            SharedProgram::Lu(lu),
            SharedProgram::Water(water),
            SharedProgram::Barnes(barnes),
        ]
        .map(Program::Shared)
    }

    /// The programs of Figures 7 and 8 with their names.
    pub fn named(self) -> [(&'static str, Program); 5] {
        let [barrier, puzzle] = self.programs();
        let [lu, water, barnes] = self.shared();
        [
            ("barrier", barrier),
            ("enum", puzzle),
            ("LU", lu),
            ("Water", water),
            ("Barnes", barnes),
        ]
    }

    /// Trials of a point.
    pub fn trials(self) -> &'static [u64] {
        if self.is_quick { &TRIALS[..1] } else { &TRIALS }
    }

    /// All settings, the longest first.
    pub fn settings(self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for program in [self.puzzle(), self.barriers()] {
            settings.push(Setting::new(program, Sharing::Alone, TRIALS[0]));
        }
        // Barnes takes longest.
        for (_, program) in self.named().into_iter().rev() {
            for &seed in self.trials() {
                settings.push(Setting::new(program, Sharing::Alone, seed));
                for skew in SKEWS {
                    settings.push(Setting::new(program, Sharing::Skewed(skew), seed));
                }
            }
            for sharing in [Sharing::Alone, Sharing::AllBuffered] {
                for column in [Column::Kernel, Column::Hard] {
                    settings.push(Setting {
                        column,
                        ..Setting::new(program, sharing, TRIALS[0])
                    });
                }
            }
        }
        for &seed in self.trials() {
            for group in GROUPS {
                for between in BETWEEN {
                    settings.push(synth(group, between, seed));
                }
                for buffered in BUFFERED {
                    settings.push(slower_synth(group, buffered, seed));
                }
            }
        }
        settings.dedup();
        settings
    }
}

/// A point of Figure 9.
pub fn synth(group: u32, between: u64, seed: u64) -> Setting {
    let program = Program::Synth { group, between };
    Setting::new(program, Sharing::Skewed(SYNTH_SKEW), seed)
}

/// A point of Figure 10.
pub fn slower_synth(group: u32, buffered: u64, seed: u64) -> Setting {
    Setting {
        added: buffered - BUFFERED[0],
        ..synth(group, BETWEEN_10, seed)
    }
}

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bench {
    /// The part that was measured.
    pub extent: Extent,
    /// Costs of messages of no words and of fourteen, by column.
    pub costs: Vec<(Column, [Costs; 2])>,
    /// Settings with their outcomes.
    pub measured: Vec<(Setting, Outcome)>,
}

/// Words of the longest message in one cell (T-243).
pub const WORDS: f64 = 14.0;

impl Bench {
    /// Measures costs, and those settings, as many at a time as there are processors. `done` is
    /// called after each setting.
    pub fn measure(
        machines: &Machines,
        extent: Extent,
        settings: &[Setting],
        done: impl Fn() + Sync,
    ) -> Result<Self, Failure> {
        let mut costs = Vec::new();
        for column in [Column::Kernel, Column::Hard, Column::Soft] {
            let machine = machines.of(column);
            let of_words = |words| costs::measure(&machine, words);
            costs.push((column, [of_words(0)?, of_words(WORDS as usize)?]));
        }
        let measured = side_by_side(settings, |setting| {
            let outcome = setting.measure(machines);
            done();
            Ok((*setting, outcome?))
        });
        Ok(Self {
            extent,
            costs,
            measured: measured?,
        })
    }

    /// The costs of a message without words, or of fourteen.
    pub fn cost(&self, column: Column, has_words: bool) -> Result<Costs, Failure> {
        let mut all = self.costs.iter();
        let found = all.find(|(of, _)| *of == column);
        found
            .map(|(_, costs)| costs[usize::from(has_words)])
            .ok_or_else(|| Failure::World(format!("{column:?} was not measured")))
    }

    /// The outcome of a setting.
    pub fn outcome(&self, wanted: Setting) -> Result<&Outcome, Failure> {
        let mut all = self.measured.iter();
        let found = all.find(|(setting, _)| *setting == wanted);
        found
            .map(|(_, outcome)| outcome)
            .ok_or_else(|| Failure::World(format!("{wanted:?} was not measured")))
    }

    /// The average of a number over all trials of a setting.
    pub fn average(
        &self,
        setting: impl Fn(u64) -> Setting,
        number: impl Fn(&Outcome) -> f64,
    ) -> Result<f64, Failure> {
        let trials = self.extent.trials();
        let mut sum = 0.0;
        for &seed in trials {
            sum += number(self.outcome(setting(seed))?);
        }
        Ok(sum / trials.len() as f64)
    }

    /// A program of Figures 7 and 8 in all trials of a skew.
    pub fn skewed(
        &self,
        program: Program,
        skew: u32,
        number: impl Fn(&Outcome) -> f64,
    ) -> Result<f64, Failure> {
        self.average(
            |seed| Setting::new(program, Sharing::Skewed(skew), seed),
            number,
        )
    }

    /// The runtime of a program with that skew, by that without (Figure 8).
    pub fn slowdown(&self, program: Program, skew: u32) -> Result<f64, Failure> {
        let cost = |skew| self.skewed(program, skew, |outcome| outcome.cost);
        Ok(cost(skew)? / cost(0)?)
    }

    /// The part of its messages that is buffered with that skew (Figure 7).
    pub fn buffered(&self, program: Program, skew: u32) -> Result<f64, Failure> {
        self.skewed(program, skew, |outcome| outcome.buffered)
    }
}

/// A time in cycles.
pub(super) fn in_cycles(span: Span) -> f64 {
    cycles(span)
}
