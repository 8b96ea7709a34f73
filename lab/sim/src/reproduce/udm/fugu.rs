//! FUGU: nodes on which a program of User Direct Messaging runs, alone or by turns with a program
//! that does nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hamlyn::{ManagerOptions, Strategy, Wait};
use hamlyn_programs::{Processor, ProgramError};
use hamlyn_udm::{Group, GroupOptions, Interrupt, Udm, UdmOptions};

use crate::host::SimHost;
use crate::machine::Machine;
use crate::random::Random;
use crate::reproduce::measure::Failure;
use crate::time::{Span, Time};
use crate::world::{self, Delivered, NodeId, ProcessId, Schedule, Settings, Simulation};

/// No experiment lasts so long.
const END: Time = Time::from_ns(3_600_000_000_000);
/// More than any program has under way: the network holds as much as is sent (T 3).
const LINK_PACKETS: u32 = 1 << 24;
/// Programs begin up to so late: in the same cycle on all nodes they would stay in step for ever,
/// as their messages take no time.
const BEGIN: Span = Span::from_ns(1_000);

/// Options of every end point: messages interrupt the program by themselves.
pub fn options() -> UdmOptions {
    UdmOptions {
        interrupt: Interrupt::Polling,
        wait: Wait::Forever,
        ..UdmOptions::default()
    }
}

/// The machine in an experiment.
#[derive(Clone, Debug)]
pub struct Fugu {
    /// The machine.
    pub machine: Machine,
    /// Its nodes.
    pub nodes: usize,
    /// The delay with which each node changes from job to job, if the program shares them with
    /// another.
    pub late: Option<Vec<Span>>,
    /// Every message takes the buffered path.
    pub diverts_all: bool,
    /// Decides when programs begin, and what their operations take.
    pub seed: u64,
}

/// Nodes that are out of step by a part of a slice: one is on time, one late by all of it, the
/// others in between, as the seed says.
pub fn out_of_step(nodes: usize, slice: Span, skew: f64, seed: u64) -> Vec<Span> {
    let mut random = Random::new(seed);
    let latest = (slice.as_ps() as f64 * skew) as u64;
    let mut late: Vec<u64> = (0..nodes).map(|_| random.below(latest + 1)).collect();
    let first = random.below(nodes as u64) as usize;
    let last = (first + 1 + random.below(nodes as u64 - 1) as usize) % nodes;
    (late[first], late[last]) = (0, latest);
    late.into_iter().map(Span::from_ps).collect()
}

/// Handlers that ran.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Handled {
    /// Their number.
    pub count: u64,
    /// The time that they took, from the interrupt until the program goes on.
    pub time: Span,
}

/// An instant of a program, with what was before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mark {
    at: Time,
    handled: Handled,
    delivered: Delivered,
}

/// A node's processor, in the hands of a program.
#[derive(Clone, Debug)]
pub struct SimProcessor {
    operation: Span,
    spread_per_mille: u64,
    /// Decides by how much operations take more or less.
    random: Arc<Mutex<Random>>,
    handled: Arc<Mutex<Handled>>,
    /// The begin and the end of the part that is measured, if it is not all.
    marks: Arc<Mutex<[Option<Mark>; 2]>>,
}

/// A value that handlers, which may be sent between threads, share with their program.
fn held<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimProcessor {
    fn new(operation: Span, spread_per_mille: u64, random: Random) -> Self {
        Self {
            operation,
            spread_per_mille,
            random: Arc::new(Mutex::new(random)),
            handled: Arc::default(),
            marks: Arc::default(),
        }
    }

    /// The part of the program that is measured begins.
    pub fn begin_measured(&self) {
        held(&self.marks)[0] = Some(self.mark());
    }

    /// The part of the program that is measured ends.
    pub fn end_measured(&self) {
        held(&self.marks)[1] = Some(self.mark());
    }

    fn mark(&self) -> Mark {
        Mark {
            at: world::now(),
            handled: *held(&self.handled),
            delivered: world::delivered(),
        }
    }

    /// So many handlers have run, from then until now.
    pub(super) fn has_handled(&self, count: u64, began: Time) {
        let mut handled = held(&self.handled);
        handled.count += count;
        handled.time += world::now().since(began);
    }

    pub(super) fn time_of(&self, operations: u64) -> Span {
        let span = (self.operation * operations).as_ps();
        let width = span * self.spread_per_mille / 1_000;
        Span::from_ps(span - width + held(&self.random).below(2 * width + 1))
    }

    /// Has a message interrupt the program. False if the program is in an atomic section.
    fn interrupt<S>(&self, udm: &mut Udm<S, SimHost>) -> Result<bool, ProgramError> {
        if udm.uac() & hamlyn_udm::INTERRUPT_DISABLE != 0 {
            return Ok(false);
        }
        let began = world::now();
        let ran = world::interrupted(|| udm.upcall(1))?;
        self.has_handled(ran as u64, began);
        Ok(true)
    }
}

impl Processor<SimHost> for SimProcessor {
    fn compute<S>(&self, udm: &mut Udm<S, SimHost>, operations: u64) -> Result<(), ProgramError> {
        let mut left = self.time_of(operations);
        while left > Span::ZERO {
            left = world::compute_until_message(left);
            if left > Span::ZERO && !self.interrupt(udm)? {
                world::compute(left);
                break;
            }
        }
        Ok(())
    }

    fn compute_in_handler(&self, operations: u64) {
        world::compute(self.operation * operations);
    }

    fn wait<S>(&self, udm: &mut Udm<S, SimHost>) -> Result<(), ProgramError> {
        world::await_message();
        self.interrupt(udm)?;
        Ok(())
    }
}

/// A node's part of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ran<R> {
    /// The result of its program.
    pub result: R,
    /// Handlers that ran there in the part that is measured.
    pub handled: Handled,
    /// Its messages in that.
    pub delivered: Delivered,
    /// The begin of that part, or of its program.
    pub began: Time,
    /// Its end.
    pub ended: Time,
}

/// A run of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct Run<R> {
    /// By node.
    pub nodes: Vec<Ran<R>>,
    schedule: Option<Schedule>,
}

impl<R> Run<R> {
    /// From the first beginning to the last end.
    pub fn elapsed(&self) -> Span {
        let began = self.nodes.iter().map(|node| node.began).min();
        self.ended().since(began.unwrap_or_default())
    }

    fn ended(&self) -> Time {
        let ended = self.nodes.iter().map(|node| node.ended).max();
        ended.unwrap_or_default()
    }

    /// The processor time of an average node that the run has cost: the slices that it had until
    /// its end, and insertions made for it in those of others (T 5.1).
    pub fn cost(&self) -> Span {
        let until = self.ended();
        let of_node = |(node, ran): (usize, &Ran<R>)| {
            let had = match &self.schedule {
                Some(schedule) => schedule.time_on(node as u32, 0, ran.began, until),
                None => until.since(ran.began),
            };
            had + ran.delivered.inserted_elsewhere
        };
        let all = self.nodes.iter().enumerate().map(of_node);
        let sum = all.fold(Span::ZERO, |sum, one| sum + one);
        Span::from_ps(sum.as_ps() / self.nodes.len().max(1) as u64)
    }

    /// Messages that came.
    pub fn messages(&self) -> u64 {
        self.sum(|delivered| delivered.direct + delivered.buffered)
    }

    /// The part of them that took the buffered path.
    pub fn buffered(&self) -> f64 {
        self.sum(|delivered| delivered.buffered) as f64 / self.messages().max(1) as f64
    }

    /// The sum of a count over all nodes.
    pub fn sum(&self, count: impl Fn(&Delivered) -> u64) -> u64 {
        self.nodes.iter().map(|node| count(&node.delivered)).sum()
    }

    /// The most pages that a node's buffer had at once.
    pub fn pages_max(&self) -> u64 {
        let pages = self.nodes.iter().map(|node| node.delivered.pages_max);
        pages.max().unwrap_or(0)
    }

    /// The average time of a handler.
    pub fn handler_time(&self) -> Span {
        let count: u64 = self.nodes.iter().map(|node| node.handled.count).sum();
        let times = self.nodes.iter().map(|node| node.handled.time);
        let time = times.fold(Span::ZERO, |sum, one| sum + one);
        Span::from_ps(time.as_ps() / count.max(1))
    }
}

impl Fugu {
    /// Runs a program on all nodes, whose operations take so long.
    pub fn run<R: Send>(
        &self,
        operation: Span,
        program: impl Fn(&Group<SimHost>, &SimProcessor) -> Result<R, ProgramError> + Sync,
    ) -> Result<Run<R>, Failure> {
        let addresses: Vec<String> = (0..self.nodes).map(|node| format!("node-{node}")).collect();
        type Place<R> = Option<(R, [Mark; 2], bool)>;
        let places: Vec<Mutex<Place<R>>> = addresses.iter().map(|_| Mutex::new(None)).collect();
        let mut world = Simulation::new(Settings {
            seed: self.seed,
            spin: END.since(Time::ZERO),
            link_packets: LINK_PACKETS,
            ..Settings::default()
        });
        world.set_machine(self.machine.clone());
        if self.diverts_all {
            world.divert_all();
        }
        let late = self.late.clone();
        let schedule = late.map(|late| self.machine.schedule(late));
        if let Some(schedule) = &schedule {
            world.set_schedule(schedule.clone());
        }
        let spread = self.machine.spread_per_mille();
        let mut begins = Random::new(self.seed).fork();
        let nodes: Vec<NodeId> = addresses.iter().map(|_| world.node(1)).collect();
        let mut processes: Vec<ProcessId> = Vec::new();
        for (me, (node, place)) in nodes.into_iter().zip(&places).enumerate() {
            let (addresses, program) = (&addresses, &program);
            let random = begins.fork();
            let begin = Span::from_ps(begins.below(BEGIN.as_ps()));
            processes.push(world.process(node, &addresses[me], move || {
                let manager_options = ManagerOptions {
                    strategy: Strategy::Proc,
                    ..ManagerOptions::default()
                };
                let manager = crate::host::open(Some(&addresses[me]), manager_options)
                    .expect("an interface of its own");
                let group = GroupOptions {
                    name: "fugu".to_owned(),
                    me: me as u32,
                    addresses: addresses.clone(),
                };
                let group = Group::new(manager, group).expect("a group of these nodes");
                let processor = SimProcessor::new(operation, spread, random);
                world::pause(begin);
                let began = processor.mark();
                let result = program(&group, &processor).unwrap_or_else(|error| panic!("{error}"));
                let [begin, end] = *held(&processor.marks);
                let all = [began, processor.mark()];
                let is_part = begin.is_some() && end.is_some();
                let marks = [begin.unwrap_or(all[0]), end.unwrap_or(all[1])];
                *place.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some((result, marks, is_part));
                // An interface that is gone would refuse the last messages of others.
                world::pause(Span::from_us(1_000));
            }));
        }
        let outcome = world.run(END);
        if !outcome.failures.is_empty() {
            return Err(Failure::World(outcome.failures.join("; ")));
        }
        let mut nodes = Vec::new();
        for (place, process) in places.into_iter().zip(processes) {
            let ran = place.into_inner().unwrap_or_else(PoisonError::into_inner);
            let Some((result, [began, ended], is_part)) = ran else {
                return Err(Failure::World("a program has no result".to_owned()));
            };
            let of_all = outcome.delivered.get(&process).copied().unwrap_or_default();
            nodes.push(Ran {
                result,
                handled: Handled {
                    count: ended.handled.count - began.handled.count,
                    time: ended.handled.time - began.handled.time,
                },
                delivered: match is_part {
                    true => ended.delivered.since(&began.delivered),
                    false => of_all,
                },
                began: began.at,
                ended: ended.at,
            });
        }
        Ok(Run { nodes, schedule })
    }
}
