//! The world: nodes with processors, processes with tasks, and the run from the first event to the
//! last.
//!
//! [`Simulation`] is made, given nodes and programs, and run. Inside a program the library is used
//! as everywhere ([`crate::host::open`]); besides, there are [`now`], [`pause`], and what a parent
//! may do to processes.

pub(crate) mod clock;
mod fault;
pub(crate) mod input_queue;
pub(crate) mod kernel;
mod schedule;
mod settings;
pub(crate) mod task;
pub(crate) mod trace;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::link::Carrier;
use crate::link::frames::Frames;
use crate::link::wire::{self, Wires};
use crate::machine::Machine;
use crate::machine::charges::Charges;
use crate::time::{Span, Time};
pub use clock::Clock;
pub use fault::{AtPoint, has_ended, kill, killed_at, resume, stop};
use input_queue::InputQueues;
pub use input_queue::{
    Delivered, await_message, compute_until_message, delivered, interrupted, is_message_there,
};
use kernel::{Act, Kernel, What};
pub use schedule::Schedule;
pub use settings::{Costs, Path, Settings};
pub use task::remember_panic_places;
use task::{Coroutine, PendingTask};

/// A node of the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub(crate) u32);

/// A process of the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessId(pub(crate) u32);

/// What is known of a node.
#[derive(Debug)]
pub(crate) struct Node {
    processors: usize,
    /// When each of its processors is free, by the job that has it: jobs have them at different
    /// times.
    free: Vec<Vec<Time>>,
    clock: Clock,
}

impl Node {
    fn free(&mut self, job: u32) -> &mut Vec<Time> {
        let job = job as usize;
        if self.free.len() <= job {
            self.free.resize(job + 1, vec![Time::ZERO; self.processors]);
        }
        &mut self.free[job]
    }
}

/// What is known of a process.
pub(crate) struct Process {
    pub(crate) node: u32,
    pub(crate) user: u32,
    /// When it was killed, if it was.
    killed_at: Option<Time>,
    /// Points of its interfaces' work that it has passed, and what happens to it at some.
    pub(crate) points: u64,
    pub(crate) at_points: BTreeMap<u64, AtPoint>,
    /// Wake-ups that came while it was stopped; nothing while it is not.
    pub(crate) held: Option<Vec<(u32, u32)>>,
    /// Its tasks that want something which another of them holds.
    wanting: Vec<u32>,
    /// Which of the jobs it is of that share the node's processors.
    job: u32,
    /// For how long it has had processors so far.
    user_time: Span,
    /// Rings when that time is this.
    user_timer: Option<(Span, Act)>,
}

impl Process {
    pub(crate) fn is_killed(&self) -> bool {
        self.killed_at.is_some()
    }
}

/// How a world ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// When.
    pub at: Time,
    /// Events that happened.
    pub events: u64,
    /// The same for two runs of a seed.
    pub sum: u64,
    /// What happened, a line each, if it was to be written down.
    pub trace: String,
    /// What happened that not every world sees: ends of links, refusals, full sockets.
    pub seen: BTreeSet<Cow<'static, str>>,
    /// Messages by the case in which they were delivered, of each process that took some, where
    /// nodes have an input queue.
    pub delivered: BTreeMap<ProcessId, Delivered>,
    /// What went wrong: panics first, of programs or of what carries for them, then programs that
    /// nothing can wake any more.
    pub failures: Vec<String>,
}

/// A world with programs whose borrows outlive it.
pub struct Simulation<'a> {
    kernel: Kernel,
    pending_tasks: Vec<PendingTask<'a>>,
}

impl<'a> Simulation<'a> {
    /// A world without anything.
    pub fn new(settings: Settings) -> Self {
        Self {
            kernel: Kernel::new(settings),
            pending_tasks: Vec::new(),
        }
    }

    /// Has links between nodes go over that network, whose hosts are the nodes in their order: what
    /// is lost is sent again. A link ends whose peer answers nothing for `timeout`, or takes
    /// nothing for ten times that; it should be far longer than a round trip.
    pub fn set_network(&mut self, network: Carrier, timeout: Span) {
        let wires = Wires::new(
            timeout,
            self.kernel.settings.wire,
            self.kernel.random.fork(),
        );
        self.kernel.frames = Some(Frames::new(network, wires));
    }

    /// Has programs take what that machine says, at the points that the library's code passes and
    /// on the wire between nodes. Nothing else that programs do takes time then.
    pub fn set_machine(&mut self, machine: Machine) {
        let link = machine.link();
        self.kernel.settings.far = Path {
            delay: link.switch.0 + link.start.0 * 2,
            jitter: Span::ZERO,
            per_byte: link.byte.0,
        };
        self.kernel.settings.costs = Costs::NOTHING;
        self.kernel.input_queues = machine.kernel().map(InputQueues::new);
        if self.kernel.input_queues.is_some() {
            // Its nodes are one machine (see the registry), and none of its ways is shorter.
            self.kernel.settings.near = self.kernel.settings.far;
        }
        // Looks take no time there, and each point that another task passes is looked at at once.
        self.kernel.settings.moment = Span::from_us(1_000);
        self.kernel.charges = Some(Charges::new(machine));
    }

    /// Has nodes with an input queue divert every message into the buffer of its process, to be
    /// called after [`Self::set_machine`].
    pub fn divert_all(&mut self) {
        if let Some(queues) = &mut self.kernel.input_queues {
            queues.diverts_all = true;
        }
    }

    /// Has several jobs share the processors of all nodes. Programs are of job 0 unless
    /// [`Self::set_job`] says otherwise.
    pub fn set_schedule(&mut self, schedule: Schedule) {
        self.kernel.time_slices = Some(schedule);
    }

    /// Which job a process is of.
    pub fn set_job(&mut self, process: ProcessId, job: u32) {
        if let Some(process) = self.kernel.processes.get_mut(process.0 as usize) {
            process.job = job;
        }
    }

    /// A node with so many processors, at least one.
    pub fn node(&mut self, processors: usize) -> NodeId {
        let nodes = &mut self.kernel.nodes;
        nodes.push(Node {
            processors: processors.max(1),
            free: Vec::new(),
            clock: Clock::default(),
        });
        NodeId(nodes.len() as u32 - 1)
    }

    /// Has the clock of a node go like that.
    pub fn set_clock(&mut self, node: NodeId, clock: Clock) {
        if let Some(node) = self.kernel.nodes.get_mut(node.0 as usize) {
            node.clock = clock;
        }
    }

    /// A process of that node, which begins with the world.
    pub fn process(
        &mut self,
        node: NodeId,
        name: &str,
        body: impl FnOnce() + Send + 'a,
    ) -> ProcessId {
        let (process, task) = enter_process(&mut self.kernel, node, name);
        let body = Box::new(body);
        self.pending_tasks.push(PendingTask { task, body });
        process
    }

    /// Has that happen to a process when it passes the so-manieth point of its interfaces' work,
    /// from 1 on.
    pub fn at_point(&mut self, process: ProcessId, point: u64, fault: AtPoint) {
        if let Some(process) = self.kernel.processes.get_mut(process.0 as usize) {
            process.at_points.insert(point, fault);
        }
    }

    /// Has something be done to the world then.
    pub fn at(&mut self, at: Time, act: impl FnOnce() + 'static) {
        self.kernel.act_at(at, Box::new(act));
    }

    /// Has the world end with a failure after so many events: programs that wake each other in vain
    /// may never end.
    pub fn limit_events(&mut self, most: u64) {
        self.kernel.events_max = most;
    }

    /// Runs until every program has ended, nothing can happen any more, or that instant.
    ///
    /// Panics if another world runs on this thread.
    pub fn run(self, until: Time) -> Outcome {
        let installed = kernel::install(self.kernel);
        assert!(installed, "one world at a time on a thread");
        let _end = End;
        kernel::with(Kernel::begin_input_queues);
        let mut run = Run {
            pending_tasks: self.pending_tasks,
            coroutines: BTreeMap::new(),
        };
        // Outside of programs too, the world ends at a panic, and says so: whoever runs many worlds
        // keeps the seed.
        let ended = catch_unwind(AssertUnwindSafe(|| run.go_on(until)));
        if let Some(failure) = ended.err().and_then(task::message_of) {
            kernel::with(|kernel| kernel.fail(format!("outside of programs: {failure}")));
        }
        let stuck = kernel::with(|kernel| kernel.tasks.unended());
        let late = kernel::with(|kernel| kernel.is_live());
        let has_failed = kernel::with(|kernel| !kernel.failures.is_empty());
        // Coroutines that are left unwind while there is a kernel to tell.
        run.end_all();
        let mut kernel = kernel::remove().expect("it was installed above");
        // A world that a failure has ended leaves all of its programs where they were, which says
        // nothing.
        let stuck = if has_failed { Vec::new() } else { stuck };
        for name in stuck {
            let why = if late {
                "has not ended in time"
            } else {
                "waits, and nothing can wake it"
            };
            kernel.fail(format!("{name}: {why}"));
        }
        let delivered = kernel.delivered();
        Outcome {
            at: kernel.now(),
            events: kernel.happened(),
            sum: kernel.trace.sum(),
            trace: kernel.trace.take_text(),
            seen: kernel.seen,
            delivered,
            failures: kernel.failures,
        }
    }
}

/// The programs of a world that runs.
struct Run<'a> {
    pending_tasks: Vec<PendingTask<'a>>,
    coroutines: BTreeMap<u32, Coroutine<'a>>,
}

impl Run<'_> {
    fn go_on(&mut self, until: Time) {
        loop {
            self.begin_pending_tasks();
            let Some(what) = kernel::with(|kernel| kernel.next(until)) else {
                return;
            };
            match what {
                What::Wake { task, epoch } => self.turn(task, epoch),
                What::Arrive { channel, packet } => {
                    kernel::with(|kernel| kernel.arrive(channel, packet));
                }
                What::Look { channel } => {
                    kernel::with(|kernel| kernel.ring_if_asleep(channel));
                }
                What::Network => kernel::with(Kernel::advance_network),
                What::Endpoint { interface } => wire::drive(interface),
                What::Change { node } => kernel::with(|kernel| kernel.change_job(node)),
                What::Show { process } => kernel::with(|kernel| kernel.show_next(process)),
                What::Act { number } => {
                    if let Some(act) = kernel::with(|kernel| kernel.take_act(number)) {
                        act();
                    }
                }
            }
            if kernel::with(|kernel| !kernel.failures.is_empty()) {
                return;
            }
        }
    }

    fn begin_pending_tasks(&mut self) {
        if kernel::with(|kernel| kernel.pending_tasks.is_empty()) && self.pending_tasks.is_empty() {
            return;
        }
        let ours = std::mem::take(&mut self.pending_tasks);
        let theirs = kernel::with(|kernel| std::mem::take(&mut kernel.pending_tasks));
        for PendingTask { task, body } in ours.into_iter().chain(theirs) {
            self.coroutines.insert(task, Coroutine::new(task, body));
        }
    }

    fn turn(&mut self, task: u32, epoch: u32) {
        let Some(processor) = kernel::with(|kernel| kernel.begin_turn(task, epoch)) else {
            return;
        };
        if let Some(coroutine) = self.coroutines.get_mut(&task) {
            coroutine.turn(task);
        }
        let ended = kernel::with(|kernel| {
            kernel.end_turn(task, processor);
            kernel.tasks.is_ended(task)
        });
        if ended {
            self.coroutines.remove(&task);
        }
    }

    /// Has every task that is left unwind, as if its process were killed.
    fn end_all(&mut self) {
        kernel::with(|kernel| {
            let now = kernel.now();
            for process in &mut kernel.processes {
                process.killed_at.get_or_insert(now);
            }
        });
        // Those beside programs first, as they may hold what the programs' ends need.
        let (first, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.coroutines)
            .into_iter()
            .partition(|(task, _)| kernel::with(|kernel| kernel.beside.contains(task)));
        for (task, mut coroutine) in first.into_iter().chain(rest) {
            if kernel::with(|kernel| kernel.tasks.has_begun(task)) {
                coroutine.turn(task);
                kernel::with(|kernel| {
                    kernel.tasks.end_turn();
                });
            }
        }
    }
}

/// Removes the kernel, also if something panics.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        kernel::remove();
    }
}

impl Kernel {
    /// Gives a task a processor of its node for its turn, or puts it off until one is free.
    fn begin_turn(&mut self, task: u32, epoch: u32) -> Option<usize> {
        if !self.tasks.is_due(task, epoch) {
            return None;
        }
        let number = self.tasks.process_of(task)? as usize;
        let now = self.now();
        let process = self.processes.get_mut(number)?;
        if process.is_killed() {
            // It only unwinds. What is beside a program goes first, as it may hold what the
            // program's end needs.
            if !self.beside.contains(&task) && self.unwinds_beside(number as u32) {
                self.schedule(now, What::Wake { task, epoch });
                return None;
            }
            return Some(usize::MAX);
        }
        if let Some(held) = &mut process.held {
            held.push((task, epoch));
            return None;
        }
        let (node, job) = (process.node, process.job);
        let slices = self.time_slices.as_ref();
        let slices = slices.filter(|_| !self.is_on_board(task));
        let next = slices.map_or(now, |slices| slices.next_on(node, job, now));
        if next > now {
            self.schedule(next, What::Wake { task, epoch });
            return None;
        }
        let processors = self.nodes.get_mut(node as usize)?.free(job);
        let (processor, free) = processors
            .iter()
            .copied()
            .enumerate()
            .min_by_key(|&(_, at)| at)?;
        if free > now {
            self.schedule(free, What::Wake { task, epoch });
            return None;
        }
        self.trace.count(now, [1, u64::from(task)]);
        Some(processor)
    }

    /// Whether a killed process has tasks beside its program that are still to unwind.
    fn unwinds_beside(&self, process: u32) -> bool {
        let mut all = self.tasks.of_process(process).into_iter();
        all.any(|task| self.beside.contains(&task) && self.tasks.has_begun(task))
    }

    fn end_turn(&mut self, task: u32, processor: usize) {
        let debt = self.tasks.end_turn();
        let now = self.now();
        let Some(process) = self.tasks.process_of(task) else {
            return;
        };
        let known = &mut self.processes[process as usize];
        let (node, job) = (known.node as usize, known.job);
        // It may have let go of what others want. The task itself may be one of them, and waits on.
        let (own, others): (Vec<u32>, Vec<u32>) = std::mem::take(&mut known.wanting)
            .into_iter()
            .partition(|&one| one == task);
        known.wanting = own;
        // A turn ends where a point takes time: what it let go of, it did before.
        let let_go = if self.settings.lets_go_at_once {
            now
        } else {
            now + debt
        };
        for other in others {
            self.wake_at(other, let_go);
        }
        if let Some(free) = self.nodes[node].free(job).get_mut(processor) {
            *free = now + debt;
        }
    }
}

fn enter_process(kernel: &mut Kernel, node: NodeId, name: &str) -> (ProcessId, u32) {
    let number = kernel.processes.len() as u32;
    kernel.processes.push(Process {
        node: node.0,
        user: 1000,
        killed_at: None,
        points: 0,
        at_points: BTreeMap::new(),
        held: None,
        wanting: Vec::new(),
        job: 0,
        user_time: Span::ZERO,
        user_timer: None,
    });
    let task = enter_task(kernel, number, name);
    (ProcessId(number), task)
}

fn enter_task(kernel: &mut Kernel, process: u32, name: &str) -> u32 {
    let task = kernel.tasks.enter(process, name);
    let at = kernel.local();
    kernel.schedule(at, What::Wake { task, epoch: 0 });
    task
}

/// Begins a task of the running process.
pub(crate) fn begin_task(name: &str, body: task::Body<'static>) -> Option<u32> {
    kernel::with(|kernel| {
        let process = kernel.tasks.running_process()?;
        let task = enter_task(kernel, process, name);
        kernel.beside.insert(task);
        kernel.pending_tasks.push(PendingTask { task, body });
        Some(task)
    })
}

// What programs may call.

/// The virtual instant at which the calling program is.
pub fn now() -> Time {
    kernel::with(|kernel| kernel.local())
}

/// The calling program waits for so long.
pub fn pause(span: Span) {
    let until = now() + span;
    while now() < until {
        let before = now();
        task::wait(Some(until));
        if now() == before {
            // The process was killed, or it was woken at once.
            if kernel::with(|kernel| kernel.is_dying()) {
                return;
            }
        }
    }
}

/// The running task waits until another of its process has had a turn: that holds what this one
/// needs.
pub(crate) fn let_others() {
    kernel::with(|kernel| {
        let task = kernel.tasks.running();
        let process = kernel.tasks.running_process();
        if let (Some(task), Some(process)) = (task, process) {
            kernel.processes[process as usize].wanting.push(task);
        }
    });
    task::wait(None);
    // In a process that was killed nothing waits, and what holds it may not get another turn.
    if kernel::with(|kernel| kernel.is_dying()) {
        task::unwind();
    }
}

/// The calling program computes for so long: it has its processor, and does nothing else.
pub fn compute(span: Span) {
    kernel::with(|kernel| kernel.charge(span));
    task::wait(Some(Time::ZERO));
}

/// For how long the calling program has had processors so far.
pub fn user_time() -> Span {
    kernel::with(|kernel| kernel.own().map_or(Span::ZERO, |own| own.user_time))
}

/// Has something be done when the calling program has had processors for so long from now on,
/// unless that is taken back before. Time in which it sleeps, or another job has its processors,
/// does not count. A program has one such timer: the last that it set.
pub fn set_user_timer(after: Span, act: impl FnOnce() + 'static) {
    kernel::with(|kernel| {
        if let Some(own) = kernel.own() {
            own.user_timer = Some((own.user_time + after, Box::new(act)));
        }
    });
}

/// Takes the calling program's timer back.
pub fn clear_user_timer() {
    kernel::with(|kernel| {
        if let Some(own) = kernel.own() {
            own.user_timer = None;
        }
    });
}

/// Begins another process on that node.
pub fn begin_process(node: NodeId, name: &str, body: impl FnOnce() + Send + 'static) -> ProcessId {
    kernel::with(|kernel| {
        let (process, task) = enter_process(kernel, node, name);
        let body = Box::new(body);
        kernel.pending_tasks.push(PendingTask { task, body });
        process
    })
}

/// Has something be done to the world so long from now.
pub fn after(span: Span, act: impl FnOnce() + 'static) {
    kernel::with(|kernel| {
        let at = kernel.local() + span;
        kernel.act_at(at, Box::new(act));
    });
}

/// From now on the network carries datagrams of up to so many bytes, and says so to nobody.
pub fn set_way_bytes_max(bytes: usize) {
    kernel::with(|kernel| {
        if let Some(frames) = &mut kernel.frames {
            frames.wires.set_way_bytes_max(bytes);
        }
    });
}

/// From now on that path of all links over a network carries nothing, or does again.
pub fn set_path(path: u8, is_up: bool) {
    kernel::with(|kernel| {
        if let Some(frames) = &mut kernel.frames {
            frames.wires.set_path(path, is_up);
        }
    });
}

impl Kernel {
    /// The running task's process.
    fn own(&mut self) -> Option<&mut Process> {
        let process = self.tasks.running_process()?;
        self.processes.get_mut(process as usize)
    }

    /// Whether a task runs on a board beside the processors.
    fn is_on_board(&self, task: u32) -> bool {
        let has_board = self.charges.as_ref().is_some_and(Charges::has_board);
        has_board && self.beside.contains(&task)
    }

    /// Puts the cost of what the running task does to its account, other jobs' slices included.
    pub(crate) fn charge(&mut self, span: Span) {
        let Some(task) = self.tasks.running().filter(|_| span != Span::ZERO) else {
            return;
        };
        if self.is_on_board(task) {
            return self.tasks.charge(span);
        }
        let local = self.local();
        let slices = self.time_slices.as_ref();
        let process = self.tasks.process_of(task);
        let process = process.and_then(|process| self.processes.get_mut(process as usize));
        let Some(process) = process else { return };
        let (node, job) = (process.node, process.job);
        let after = |busy| match slices {
            Some(slices) => slices.after(node, job, local, busy),
            None => local + busy,
        };
        let had = process.user_time;
        process.user_time += span;
        let rings = process.user_timer.take_if(|(at, _)| *at <= had + span);
        let rings = rings.map(|(at, act)| (after(at - had), act));
        self.tasks.charge(after(span).since(local));
        if let Some((at, act)) = rings {
            self.act_at(at, act);
        }
    }

    pub(crate) fn is_dying(&self) -> bool {
        let process = self.tasks.running_process();
        process.is_none_or(|process| self.processes[process as usize].is_killed())
    }
}
