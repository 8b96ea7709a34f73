//! Tasks: the coroutines in which programs run, and how they wait.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

use generator::{Generator, Gn};

use crate::time::{Span, Time};
use crate::world::kernel::{self, What};

/// A program that calls its world so often without waiting never will.
pub(crate) const OPERATIONS_MAX: u64 = 1 << 24;

/// Of each task, in words: debug builds of the library are deep.
const STACK_WORDS: usize = 256 * 1024 / size_of::<usize>();

/// What a task does.
pub(crate) type Body<'a> = Box<dyn FnOnce() + Send + 'a>;

/// A task that has not begun.
pub(crate) struct PendingTask<'a> {
    pub(crate) task: u32,
    pub(crate) body: Body<'a>,
}

/// What unwinds a task whose process was killed. Not a failure.
struct Killed;

/// What is known of a task.
#[derive(Debug)]
struct Known {
    process: u32,
    name: String,
    /// Counts waits, so that what was to end one ends no other.
    epoch: u32,
    waits: bool,
    /// Its own instant when it began to wait: it goes on no earlier.
    not_before: Time,
    /// Woken while it did not wait: the next wait ends at once.
    notified: bool,
    /// It parks: an unpark ends the wait that is on.
    is_parked: bool,
    /// Unparked while it did not park: its next park ends at once.
    was_unparked: bool,
    /// It waits for nothing but the time that a step of its call takes.
    is_in_call: bool,
    begun: bool,
    ended: bool,
    /// Tasks that wait for its end.
    joining: Vec<u32>,
}

/// All tasks of a world.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    known: Vec<Known>,
    running: Option<u32>,
    /// Of the running one.
    debt: Span,
    /// Its looks since it last waited or did anything.
    looks: u64,
    /// Calls of the world in this turn.
    operations: u64,
}

impl Tasks {
    pub(crate) fn enter(&mut self, process: u32, name: &str) -> u32 {
        self.known.push(Known {
            process,
            name: name.to_owned(),
            epoch: 0,
            // For its first turn.
            waits: true,
            not_before: Time::ZERO,
            notified: false,
            is_parked: false,
            was_unparked: false,
            is_in_call: false,
            begun: false,
            ended: false,
            joining: Vec::new(),
        });
        self.known.len() as u32 - 1
    }

    pub(crate) fn debt(&self) -> Span {
        self.debt
    }

    pub(crate) fn charge(&mut self, span: Span) {
        if self.running.is_some() {
            self.debt += span;
        }
    }

    /// The running task does something.
    pub(crate) fn has_acted(&mut self) {
        self.looks = 0;
    }

    /// The running task looks for something: how often in vain since it last waited.
    pub(crate) fn look(&mut self) -> u64 {
        self.looks += 1;
        self.looks
    }

    /// The running task has done something. Whether it has done so much in this turn that it will
    /// never wait; said once.
    pub(crate) fn count_operation(&mut self) -> bool {
        self.operations += 1;
        self.running.is_some() && self.operations == OPERATIONS_MAX
    }

    /// The task that runs; none outside of all.
    pub(crate) fn running(&self) -> Option<u32> {
        self.running
    }

    /// The process of the task that runs.
    pub(crate) fn running_process(&self) -> Option<u32> {
        self.process_of(self.running?)
    }

    pub(crate) fn process_of(&self, task: u32) -> Option<u32> {
        self.known.get(task as usize).map(|known| known.process)
    }

    /// Notes that it was woken: which wait that ends, if it waits, and when at the earliest.
    pub(crate) fn woken(&mut self, task: u32) -> Option<(u32, Time)> {
        let known = self.known.get_mut(task as usize)?;
        if known.waits && !known.is_in_call {
            return Some((known.epoch, known.not_before));
        }
        known.notified = true;
        None
    }

    /// Notes that it was unparked: whether it parks, and is to be woken.
    pub(crate) fn unparked(&mut self, task: u32) -> bool {
        let Some(known) = self.known.get_mut(task as usize) else {
            return false;
        };
        known.was_unparked = !known.is_parked;
        known.is_parked
    }

    /// The wait of a task whose process is killed, in whose middle or outside of a call: it ends
    /// now.
    pub(crate) fn interrupted(&self, task: u32) -> Option<u32> {
        let known = self.known.get(task as usize)?;
        (known.waits && known.begun && !known.ended).then_some(known.epoch)
    }

    /// Whether it had its first turn.
    pub(crate) fn has_begun(&self, task: u32) -> bool {
        let known = self.known.get(task as usize);
        known.is_some_and(|known| known.begun && !known.ended)
    }

    /// It never begins.
    pub(crate) fn forget(&mut self, task: u32) {
        if let Some(known) = self.known.get_mut(task as usize) {
            known.ended = true;
        }
    }

    /// Whether that wake-up is for the wait that is on.
    pub(crate) fn is_due(&self, task: u32, epoch: u32) -> bool {
        self.known
            .get(task as usize)
            .is_some_and(|known| known.waits && known.epoch == epoch && !known.ended)
    }

    pub(crate) fn is_ended(&self, task: u32) -> bool {
        self.known
            .get(task as usize)
            .is_none_or(|known| known.ended)
    }

    fn begin_turn(&mut self, task: u32) {
        if let Some(known) = self.known.get_mut(task as usize) {
            known.waits = false;
            known.is_in_call = false;
            known.is_parked = false;
            known.begun = true;
        }
        self.running = Some(task);
        self.debt = Span::ZERO;
        self.looks = 0;
        self.operations = 0;
    }

    /// The turn is over: what it has cost.
    pub(crate) fn end_turn(&mut self) -> Span {
        self.running = None;
        std::mem::take(&mut self.debt)
    }

    /// The tasks of a process that have not ended.
    pub(crate) fn of_process(&self, process: u32) -> Vec<u32> {
        let of_it = |(_, known): &(usize, &Known)| known.process == process && !known.ended;
        let all = self.known.iter().enumerate().filter(of_it);
        all.map(|(number, _)| number as u32).collect()
    }

    /// True if none is left that may do anything.
    pub(crate) fn are_all_ended(&self) -> bool {
        self.known.iter().all(|known| known.ended)
    }

    /// Names of those that have not ended.
    pub(crate) fn unended(&self) -> Vec<String> {
        let all = self.known.iter().filter(|known| !known.ended);
        all.map(|known| known.name.clone()).collect()
    }
}

/// A coroutine. Gives the turn back when its task waits.
pub(crate) struct Coroutine<'a>(Generator<'a, (), ()>);

impl<'a> Coroutine<'a> {
    pub(crate) fn new(task: u32, body: Body<'a>) -> Self {
        Self(Gn::new_opt(STACK_WORDS, move || {
            let result = catch_unwind(AssertUnwindSafe(body));
            let failure = result.err().and_then(message_of);
            kernel::with(|kernel| {
                let ended = kernel.tasks.known.get_mut(task as usize);
                let Some(known) = ended else { return };
                known.ended = true;
                let joining = std::mem::take(&mut known.joining);
                let name = known.name.clone();
                joining.into_iter().for_each(|task| kernel.wake(task));
                if let Some(failure) = failure {
                    kernel.fail(format!("{name}: {failure}"));
                }
            });
        }))
    }

    /// Its turn, until it waits or ends.
    pub(crate) fn turn(&mut self, task: u32) {
        kernel::with(|kernel| kernel.tasks.begin_turn(task));
        self.0.resume();
    }
}

thread_local! {
    /// Where this thread panicked last, if that is to be remembered.
    static PANIC_PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on failures say where their panics were, which only a hook of the process learns. The
/// hook that was set before is called as well, unless `is_quiet`.
pub fn remember_panic_places(is_quiet: bool) {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if let Some(place) = panic.location() {
                // A thread that ends has no place for it.
                let _ = PANIC_PLACE.try_with(|last| *last.borrow_mut() = Some(place.to_string()));
            }
            if !is_quiet {
                before(panic);
            }
        }));
    });
}

/// What a panic says, and where it was if that is remembered; nothing for the end of a killed
/// process.
pub(crate) fn message_of(payload: Box<dyn Any + Send>) -> Option<String> {
    if payload.is::<Killed>() {
        return None;
    }
    let message = match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => match payload.downcast::<&str>() {
            Ok(message) => (*message).to_owned(),
            Err(_) => "it panicked".to_owned(),
        },
    };
    Some(match PANIC_PLACE.take() {
        Some(place) => format!("{message} (at {place})"),
        None => message,
    })
}

/// The running task waits until it is woken, or until then; what it has done so far has taken its
/// time by the end. May end early. Does nothing in a process that was killed, whose tasks are about
/// to end.
pub(crate) fn wait(until: Option<Time>) {
    wait_as(until, Way::Waits);
}

/// The running task waits until it is unparked, or until then.
pub(crate) fn park(until: Time) {
    wait_as(Some(until), Way::Parks);
}

/// The running task lets others go on until what it has done so far has taken its time. Ends no
/// earlier, and by nothing else.
pub(crate) fn pay() {
    wait_as(Some(Time::ZERO), Way::Pays);
}

/// How a task waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Waits,
    Parks,
    Pays,
}

fn wait_as(until: Option<Time>, way: Way) {
    let waits = kernel::with(|kernel| {
        let task = kernel.tasks.running()?;
        let process = kernel.tasks.process_of(task)?;
        if kernel.processes[process as usize].is_killed() {
            return None;
        }
        let local = kernel.local();
        let known = kernel.tasks.known.get_mut(task as usize)?;
        known.epoch = known.epoch.wrapping_add(1);
        known.waits = true;
        known.not_before = local;
        known.is_in_call = way == Way::Pays;
        known.is_parked = way == Way::Parks;
        let notified = match way {
            Way::Waits => std::mem::take(&mut known.notified),
            Way::Parks => std::mem::take(&mut known.was_unparked),
            Way::Pays => false,
        };
        let epoch = known.epoch;
        let until = if notified { Some(local) } else { until };
        if let Some(until) = until {
            kernel.schedule(until.max(local), What::Wake { task, epoch });
        }
        Some(process)
    });
    let Some(process) = waits else { return };
    #[expect(
        deprecated,
        reason = "the newer way needs a handle that the library between would have to hand down"
    )]
    generator::yield_with(());
    if kernel::with(|kernel| kernel.processes[process as usize].is_killed()) {
        unwind();
    }
}

/// The running task, whose process was killed, ends; nothing if it does so already.
pub(crate) fn unwind() {
    if !std::thread::panicking() {
        resume_unwind(Box::new(Killed));
    }
}

/// The running task waits for the end of another.
pub(crate) fn join(task: u32) {
    while kernel::is_here() {
        let goes_on = kernel::with(|kernel| {
            let Some(running) = kernel.tasks.running() else {
                return false;
            };
            let killed = kernel
                .tasks
                .process_of(running)
                .is_none_or(|process| kernel.processes[process as usize].is_killed());
            let Some(known) = kernel.tasks.known.get_mut(task as usize) else {
                return false;
            };
            if known.ended || killed {
                return false;
            }
            known.joining.push(running);
            true
        });
        if !goes_on {
            return;
        }
        wait(None);
    }
}
