//! The kernel of the world: the event queue, and the running task.
//!
//! Everything that happens is an entry of the queue with an instant and a number; the numbers
//! decide among entries of one instant, so a seed decides all. A program that runs is at an instant
//! of its own: what its calls cost is put down as a debt, and paid when it next waits.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;

use hamlyn_engine::point::Point;

use crate::event_queue::EventQueue;
use crate::host::registry::Registry;
use crate::link::channel::Channels;
use crate::link::frames::Frames;
use crate::link::observed::Observed;
use crate::link::wire;
use crate::machine::charges::Charges;
use crate::random::Random;
use crate::reference::Violation;
use crate::time::{Span, Time};
use crate::world::input_queue::InputQueues;
use crate::world::task::{self, OPERATIONS_MAX, PendingTask, Tasks};
use crate::world::trace::Trace;
use crate::world::{Node, Process, Schedule, Settings};

/// More events at one instant than that, and the world ends: no scenario has a thousandth of it.
const EVENTS_AT_ONCE_MAX: u64 = 1 << 22;

/// What an entry of the queue is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// A task goes on, if it still waits for that.
    Wake { task: u32, epoch: u32 },
    /// A packet comes to the end of its way.
    Arrive { channel: u32, packet: u32 },
    /// The sender of a channel checks whether its receiver sleeps.
    Look { channel: u32 },
    /// The network is to be asked what happened.
    Network,
    /// The UDP endpoint of an interface is polled by its host.
    Endpoint { interface: u32 },
    /// A node changes from job to job.
    Change { node: u32 },
    /// A message that was inserted into the buffer of a process can be read.
    Show { process: u32 },
    /// A number of the world's own actions is due.
    Act { number: u32 },
}

/// Something that the world does at an instant. It uses the kernel by itself.
pub(crate) type Act = Box<dyn FnOnce()>;

/// See the module.
pub(crate) struct Kernel {
    pub(crate) settings: Settings,
    now: Time,
    queue: EventQueue<What>,
    happened: u64,
    /// More than that, and the world ends.
    pub(crate) events_max: u64,
    /// How many of them at this instant.
    at_this_instant: u64,
    pub(crate) tasks: Tasks,
    pub(crate) pending_tasks: Vec<PendingTask<'static>>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) processes: Vec<Process>,
    pub(crate) registry: Registry,
    pub(crate) channels: Channels,
    /// Of far links, if they go over a network of their own.
    pub(crate) frames: Option<Frames>,
    /// What a machine takes for packets of far links, if they go over one.
    pub(crate) charges: Option<Charges>,
    /// The input queues of nodes, if each has one for all of its links.
    pub(crate) input_queues: Option<InputQueues>,
    /// Tasks that the library began beside programs.
    pub(crate) beside: BTreeSet<u32>,
    /// Judges the connections between nodes.
    pub(crate) observed: Observed,
    pub(crate) random: Random,
    pub(crate) trace: Trace,
    acts: Vec<Option<Act>>,
    acts_free: Vec<u32>,
    /// See [`crate::world::Outcome::seen`].
    pub(crate) seen: BTreeSet<Cow<'static, str>>,
    /// What of it happens all the time.
    seen_often: Vec<&'static str>,
    /// By whose turns jobs have processors, if several share them.
    pub(crate) time_slices: Option<Schedule>,
    /// What was found wrong. The first is what the world ends with.
    pub(crate) failures: Vec<String>,
}

impl Kernel {
    pub(crate) fn new(settings: Settings) -> Self {
        let mut random = Random::new(settings.seed);
        Self {
            now: Time::ZERO,
            queue: EventQueue::new(),
            happened: 0,
            events_max: u64::MAX,
            at_this_instant: 0,
            tasks: Tasks::default(),
            pending_tasks: Vec::new(),
            nodes: Vec::new(),
            processes: Vec::new(),
            registry: Registry::default(),
            channels: Channels::new(random.fork()),
            frames: None,
            charges: None,
            input_queues: None,
            beside: BTreeSet::new(),
            observed: Observed::default(),
            random,
            trace: Trace::new(settings.records),
            acts: Vec::new(),
            acts_free: Vec::new(),
            seen: BTreeSet::new(),
            seen_often: Vec::new(),
            time_slices: None,
            failures: Vec::new(),
            settings,
        }
    }

    /// The instant of the event that happens.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// The instant of the running task: its work since it last waited has taken time.
    pub(crate) fn local(&self) -> Time {
        self.now + self.tasks.debt()
    }

    /// The running task passes that point of an interface's work, which takes time on a machine, or
    /// a random time. Whether it took any.
    fn charge_point(&mut self, point: Point) -> bool {
        let local = self.local();
        let mut takes = Span::ZERO;
        let most = self.settings.point_max;
        if most != Span::ZERO {
            takes += Span::from_ps(self.random.below(most.as_ps() + 1));
        }
        if let (Some(charges), Some(task)) = (&mut self.charges, self.tasks.running()) {
            let process = self.tasks.process_of(task);
            let node = process.and_then(|process| self.processes.get(process as usize));
            let node = node.map_or(0, |process| process.node);
            takes += match (&self.input_queues, process) {
                (Some(queues), Some(process)) => {
                    charges.pass_for(queues.delivery(process), node, point, local)
                }
                _ => charges.pass(node, self.beside.contains(&task), point, local),
            };
        }
        self.charge(takes);
        takes != Span::ZERO && self.tasks.running().is_some()
    }

    /// The transport of an interface passes a point. It is locked meanwhile, so what this takes is
    /// paid at the task's next point. A host that looks after the transport for want of a task
    /// occupies its machine.
    pub(crate) fn charge_transport(&mut self, point: Point) {
        if self.tasks.running().is_some() {
            self.charge_point(point);
        } else if let Some(charges) = &mut self.charges {
            let known = self.registry.get(wire::entered());
            let node = known.map_or(0, |known| known.identity.node);
            charges.pass(node, true, point, self.now);
        }
    }

    /// On a machine, those of the running task's process that look all the time see what it does as
    /// soon as it is done.
    fn wake_lookers(&mut self) {
        if self.charges.is_none() {
            return;
        }
        if let Some(process) = self.tasks.running_process() {
            self.wake_interfaces_of(process);
        }
    }

    /// Events so far.
    pub(crate) fn happened(&self) -> u64 {
        self.happened
    }

    /// Has that happen then, or now if that is past; not at all if it is never.
    pub(crate) fn schedule(&mut self, at: Time, what: What) {
        if at == Time::NEVER {
            return;
        }
        let at = at.max(self.now);
        // Which of those that are ready goes first is anybody's guess.
        if self.settings.shuffles && matches!(what, What::Wake { .. }) {
            let turn = self.random.bits() as u16;
            self.queue.enter_in_turn(at, turn, what);
        } else {
            self.queue.enter(at, what);
        }
    }

    /// Has the world do something then.
    pub(crate) fn act_at(&mut self, at: Time, act: Act) {
        let number = self.acts_free.pop().unwrap_or(self.acts.len() as u32);
        match self.acts.get_mut(number as usize) {
            Some(place) => *place = Some(act),
            None => self.acts.push(Some(act)),
        }
        self.schedule(at, What::Act { number });
    }

    /// Whether something would still happen.
    pub(crate) fn is_live(&self) -> bool {
        self.queue.next().is_some()
    }

    /// The next event, unless it is later than that. Time goes on to it.
    pub(crate) fn next(&mut self, until: Time) -> Option<What> {
        let (at, what) = self.queue.take(until)?;
        self.at_this_instant = if at == self.now {
            self.at_this_instant + 1
        } else {
            0
        };
        if self.at_this_instant > EVENTS_AT_ONCE_MAX {
            let names = self.tasks.unended().join(", ");
            self.fail(format!(
                "{EVENTS_AT_ONCE_MAX} events at {at:?}, and no time passes: programs wake each other without end, among {names}"
            ));
            return None;
        }
        self.now = at;
        self.happened += 1;
        if self.happened > self.events_max {
            let names = self.tasks.unended().join(", ");
            self.fail(format!(
                "more than {} events: programs keep each other awake, among {names}",
                self.events_max
            ));
            return None;
        }
        Some(what)
    }

    /// Takes what [`What::Act`] names.
    pub(crate) fn take_act(&mut self, number: u32) -> Option<Act> {
        let act = self.acts.get_mut(number as usize)?.take();
        self.acts_free.push(number);
        act
    }

    /// A task goes on as soon as its node has a processor for it.
    pub(crate) fn wake(&mut self, task: u32) {
        let at = self.local();
        self.wake_at(task, at);
    }

    /// A task that parks goes on; one that waits for anything else does not, as a thread that
    /// sleeps elsewhere.
    pub(crate) fn unpark(&mut self, task: u32) {
        if self.tasks.unparked(task) {
            self.wake(task);
        }
    }

    /// A task goes on then, as soon as its node has a processor for it.
    pub(crate) fn wake_at(&mut self, task: u32, at: Time) {
        if let Some((epoch, not_before)) = self.tasks.woken(task) {
            self.schedule(at.max(not_before), What::Wake { task, epoch });
        }
    }

    /// That happened.
    pub(crate) fn saw(&mut self, what: impl Into<Cow<'static, str>>) {
        self.seen.insert(what.into());
    }

    /// The same of what happens all the time.
    pub(crate) fn saw_often(&mut self, what: &'static str) {
        let is_known = |known: &&str| std::ptr::eq(*known, what);
        if !self.seen_often.iter().any(is_known) {
            self.seen_often.push(what);
            self.saw(what);
        }
    }

    /// Notes what a model of the world found.
    pub(crate) fn judge(&mut self, judged: Result<(), Violation>) {
        if let Err(violation) = judged {
            self.fail(violation.to_string());
        }
    }

    /// Notes that something is wrong with the world.
    pub(crate) fn fail(&mut self, what: String) {
        self.trace.note(self.now, || format!("FAILED {what}"));
        self.failures.push(what);
    }
}

thread_local! {
    static KERNEL: RefCell<Option<Kernel>> = const { RefCell::new(None) };
}

/// Uses the kernel of the world that runs on this thread. Nothing that waits may be called inside.
pub(crate) fn with<R>(act: impl FnOnce(&mut Kernel) -> R) -> R {
    let (result, is_endless) = KERNEL.with_borrow_mut(|kernel| {
        let kernel = kernel
            .as_mut()
            .expect("a simulated host is used in its world only");
        (act(kernel), kernel.tasks.count_operation())
    });
    // What unwinds already has been told.
    if is_endless && !std::thread::panicking() {
        panic!(
            "it has done {OPERATIONS_MAX} things without waiting, and no time passes: have it wait, or call `world::pause`"
        );
    }
    result
}

/// The same, unless the world has ended: for what is dropped late.
pub(crate) fn with_if_any(act: impl FnOnce(&mut Kernel)) {
    let _ = KERNEL.try_with(|kernel| {
        if let Ok(mut kernel) = kernel.try_borrow_mut()
            && let Some(kernel) = kernel.as_mut()
        {
            act(kernel);
        }
    });
}

/// The running task passes that point, in the middle of a call. If it takes time, others go on
/// before the next step of the task's call. There its process may be killed or stopped as a whole.
pub(crate) fn pass(point: Point) {
    // These came late: they draw nothing and count for no fault, and pass only on a machine that
    // says what they take, so that older scenarios and experiments stay what they were.
    let is_heard = |kernel: &mut Kernel| match &kernel.charges {
        Some(charges) => charges.hears(point),
        None => false,
    };
    if matches!(point, Point::Port(_) | Point::Udm(_)) && !with(is_heard) {
        return;
    }
    with(|kernel| kernel.begins_point(point));
    let unwinds = std::thread::panicking();
    let waits = with(|kernel| kernel.charge_point(point) | (!unwinds && kernel.begin_fault()));
    if waits && !unwinds {
        let entered = wire::entered();
        task::pay();
        wire::enter(entered);
    }
    with(|kernel| kernel.has_passed(point));
    if point != Point::Looked {
        with(|kernel| {
            kernel.tasks.has_acted();
            kernel.wake_lookers();
        });
    }
}

/// Whether there is a world on this thread.
pub(crate) fn is_here() -> bool {
    KERNEL.with_borrow(Option::is_some)
}

/// Begins a world on this thread. False if there is one.
pub(crate) fn install(kernel: Kernel) -> bool {
    KERNEL.with_borrow_mut(|place| {
        let is_free = place.is_none();
        if is_free {
            wire::leave();
            *place = Some(kernel);
        }
        is_free
    })
}

/// Ends the world of this thread.
pub(crate) fn remove() -> Option<Kernel> {
    KERNEL.with_borrow_mut(Option::take)
}
