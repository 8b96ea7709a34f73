//! Nodes with one input queue for all links, as those of a direct network interface (T 4): the
//! kernel behind it diverts messages that their program cannot take.
//!
//! [`Divert`] decides. This module gives it the time: messages come, jobs change, programs dispose
//! of messages, and an insertion takes the node's processor from the job that has it. Of all
//! messages for a process its interface sees the one at the head only, and the next one when the
//! layer has disposed of that one. So they are taken in the order in which they came.
//!
//! A machine's file with a `[kernel]` section makes such nodes. A job has one process of a node.

use std::collections::BTreeMap;

use hamlyn_engine::point::{Point, UdmPoint};

use super::kernel::{self, Kernel, What};
use super::{ProcessId, now, task};
use crate::divert::{Case, Divert, Gid, Limits, Step};
use crate::machine::charges::Delivery;
use crate::machine::machine_file::KernelSection;
use crate::time::{Span, Time};

/// A packet of a channel, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Parcel {
    channel: u32,
    number: u64,
}

/// The messages of a process, by the case in which they were delivered.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Delivered {
    /// Out of the input queue.
    pub direct: u64,
    /// Out of the process's buffer.
    pub buffered: u64,
    /// Times that the process entered buffered mode.
    pub episodes: u64,
    /// The most pages of its buffer at once.
    pub pages_max: u64,
    /// The time that its insertions took while another job had the processor.
    pub inserted_elsewhere: Span,
    /// The time of its shortest insertion.
    pub insertion_min: Span,
    /// The time of its longest.
    pub insertion_max: Span,
}

impl Delivered {
    /// Those that were delivered after `before`: all counts but the extremes, which are of all.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            direct: self.direct - before.direct,
            buffered: self.buffered - before.buffered,
            episodes: self.episodes - before.episodes,
            inserted_elsewhere: self.inserted_elsewhere - before.inserted_elsewhere,
            ..*self
        }
    }
}

/// A node.
#[derive(Debug)]
struct NodeQueue {
    processes: Vec<u32>,
    kernel: Divert<Parcel>,
    /// Its kernel inserts until then.
    busy_until: Time,
    /// The time from which those that were inserted can be read.
    readable: BTreeMap<Parcel, Time>,
    /// By job: the time that the kernel has taken from it.
    taken: BTreeMap<u32, Span>,
}

/// The side of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Reader {
    /// The message at the head, once its interface sees it.
    shown: Option<(Parcel, Case)>,
    /// The case of the message whose handler runs.
    served: Option<Case>,
    /// A message interrupts the program.
    is_interrupt: bool,
    /// The task that computes, or waits, until a message is there.
    interrupts: Option<u32>,
    inserted_elsewhere: Span,
    insertion_min: Option<Span>,
    insertion_max: Span,
}

/// All nodes of a world.
#[derive(Debug)]
pub(crate) struct InputQueues {
    section: KernelSection,
    /// Every message is diverted, though its program runs.
    pub(super) diverts_all: bool,
    nodes: Vec<NodeQueue>,
    readers: BTreeMap<u32, Reader>,
    steps: Vec<Step<Parcel>>,
}

impl InputQueues {
    pub(crate) fn new(section: &KernelSection) -> Self {
        Self {
            section: *section,
            diverts_all: false,
            nodes: Vec::new(),
            readers: BTreeMap::new(),
            steps: Vec::new(),
        }
    }

    /// The way in which the message comes that a process handles, or would handle.
    pub(crate) fn delivery(&self, process: u32) -> Delivery {
        let Some(reader) = self.readers.get(&process) else {
            return Delivery::Polled;
        };
        let of_head = reader.shown.map(|(_, case)| case);
        match reader.served.or(of_head) {
            Some(Case::Buffered) => Delivery::Buffered,
            _ if reader.is_interrupt => Delivery::Interrupt,
            _ => Delivery::Polled,
        }
    }
}

impl Kernel {
    /// The nodes and processes are complete.
    pub(crate) fn begin_input_queues(&mut self) {
        let Some(mut queues) = self.input_queues.take() else {
            return;
        };
        let section = &queues.section;
        let limits = Limits {
            page_bytes: section.page_bytes.0,
            line_bytes: section.line_bytes.0,
            frames: u64::MAX,
            advise_pages: u64::MAX,
            suspend_pages: u64::MAX,
        };
        queues.nodes = (self.nodes.iter())
            .map(|_| NodeQueue {
                processes: Vec::new(),
                kernel: Divert::new(limits),
                busy_until: Time::ZERO,
                readable: BTreeMap::new(),
                taken: BTreeMap::new(),
            })
            .collect();
        for (number, process) in self.processes.iter().enumerate() {
            let node = &mut queues.nodes[process.node as usize];
            node.kernel.enter(Gid(process.job));
            node.processes.push(number as u32);
        }
        let nodes = queues.nodes.len() as u32;
        self.input_queues = Some(queues);
        (0..nodes).for_each(|node| self.change_job(node));
    }

    /// A node changes from job to job, if several share it.
    pub(crate) fn change_job(&mut self, node: u32) {
        let now = self.now();
        let job = self.job_on(node, now);
        let diverts_all = self
            .input_queues
            .as_ref()
            .is_some_and(|queues| queues.diverts_all);
        let running = (!diverts_all).then_some(Gid(job));
        self.with_kernel(node, |kernel, steps| kernel.schedule(running, steps));
        let next = self
            .time_slices
            .as_ref()
            .map(|slices| slices.next_change(node, now));
        if let Some(next) = next
            && !self.tasks.are_all_ended()
        {
            self.schedule(next, What::Change { node });
        }
    }

    fn job_on(&self, node: u32, at: Time) -> u32 {
        let slices = self.time_slices.as_ref();
        slices.map_or(0, |slices| slices.job_on(node, at))
    }

    /// A packet has come to its receiver's node.
    pub(crate) fn enter_input_queue(&mut self, channel: u32, number: u64, data_bytes: u64) {
        let to = self.channels.receiver(channel);
        let known = to.and_then(|to| self.registry.get(to));
        let process = known.and_then(|known| self.processes.get(known.process as usize));
        let (Some(process), Some(queues)) = (process, &self.input_queues) else {
            return;
        };
        let (node, gid) = (process.node, Gid(process.job));
        let bytes = queues.section.header_bytes.0 + data_bytes;
        let parcel = Parcel { channel, number };
        self.with_kernel(node, |kernel, steps| {
            kernel.arrive(gid, bytes, parcel, steps)
        });
    }

    /// Does something with the kernel of a node, pays for its steps, and shows programs the
    /// messages at their heads.
    fn with_kernel<R>(
        &mut self,
        node: u32,
        act: impl FnOnce(&mut Divert<Parcel>, &mut Vec<Step<Parcel>>) -> R,
    ) -> Option<R> {
        let queues = self.input_queues.as_mut()?;
        let mut steps = std::mem::take(&mut queues.steps);
        let result = act(&mut queues.nodes.get_mut(node as usize)?.kernel, &mut steps);
        for step in steps.drain(..) {
            match step {
                Step::Inserted {
                    gid,
                    message,
                    pages,
                } => self.pay_for_insertion(node, gid, message, pages),
                // No run fills so many pages.
                Step::AdviseGang { .. } | Step::Suspend { .. } => {}
                Step::Refused { gid, .. } | Step::Stalled { gid } => {
                    self.fail(format!("node {node} takes no message of {gid:?}: {step:?}"));
                }
            }
        }
        let mut next = 0;
        while let Some(queues) = &mut self.input_queues {
            let Some(&process) = queues.nodes[node as usize].processes.get(next) else {
                queues.steps = steps;
                break;
            };
            self.show_next(process);
            next += 1;
        }
        Some(result)
    }

    fn process_of(&self, node: u32, gid: Gid) -> Option<u32> {
        let mut all = self.processes.iter();
        let found = all.position(|process| process.node == node && process.job == gid.0);
        found.map(|process| process as u32)
    }

    fn reader_of(&mut self, node: u32, gid: Gid) -> Option<&mut Reader> {
        let process = self.process_of(node, gid)?;
        let queues = self.input_queues.as_mut()?;
        Some(queues.readers.entry(process).or_default())
    }

    /// The kernel inserts a message: that takes its node's processor, one after the other, from the
    /// job that has it.
    fn pay_for_insertion(&mut self, node: u32, gid: Gid, parcel: Parcel, pages: u64) {
        let now = self.now();
        let Some(queues) = &mut self.input_queues else {
            return;
        };
        let takes = queues.section.insert.0 + queues.section.page.0 * pages;
        let Some(queue) = queues.nodes.get_mut(node as usize) else {
            return;
        };
        let begun = queue.busy_until.max(now);
        queue.busy_until = begun + takes;
        queue.readable.insert(parcel, begun + takes);
        let slices = self.time_slices.as_ref();
        let job = slices.map_or(0, |slices| slices.job_on(node, begun));
        *queue.taken.entry(job).or_default() += takes;
        // The task that has the processor goes on later by so much.
        for free in self.nodes[node as usize].free(job) {
            let at = begun.max(*free);
            *free = match slices {
                Some(slices) => slices.after(node, job, at, takes),
                None => at + takes,
            };
        }
        if let Some(reader) = self.reader_of(node, gid) {
            if job != gid.0 {
                reader.inserted_elsewhere += takes;
            }
            let least = reader.insertion_min.unwrap_or(takes);
            reader.insertion_min = Some(least.min(takes));
            reader.insertion_max = reader.insertion_max.max(takes);
        }
    }

    /// Shows a process the message at its head, once that can be read.
    pub(crate) fn show_next(&mut self, process: u32) {
        let now = self.now();
        let Some(known) = self.processes.get(process as usize) else {
            return;
        };
        let (node, gid) = (known.node as usize, Gid(known.job));
        let Some(queues) = &mut self.input_queues else {
            return;
        };
        let reader = queues.readers.entry(process).or_default();
        let queue = &mut queues.nodes[node];
        // The message in the program's hands may have been diverted meanwhile.
        let (Some((parcel, case)), is_shown) = (queue.kernel.head(gid), reader.shown.is_some())
        else {
            return;
        };
        if is_shown {
            reader.shown = Some((parcel, case));
            return;
        }
        let readable = queue.readable.get(&parcel).copied().unwrap_or(now);
        if readable > now {
            return self.schedule(readable, What::Show { process });
        }
        queue.readable.remove(&parcel);
        reader.shown = Some((parcel, case));
        let waiting = reader.interrupts.take();
        self.channels.show(parcel.channel, parcel.number);
        self.tell_receiver(parcel.channel);
        if let Some(task) = waiting {
            self.wake_at(task, now);
        }
    }

    /// The running task begins with a point.
    pub(crate) fn begins_point(&mut self, point: Point) {
        let is_handled = matches!(point, Point::Udm(UdmPoint::Upcall | UdmPoint::HandlerBegun));
        if let Some(reader) = self.own_reader().filter(|_| is_handled)
            && reader.served.is_none()
        {
            reader.served = reader.shown.map(|(_, case)| case);
        }
    }

    /// The running task has passed a point, and paid for it.
    pub(crate) fn has_passed(&mut self, point: Point) {
        match point {
            Point::Udm(UdmPoint::Disposed) => self.dispose(),
            Point::Udm(UdmPoint::HandlerEnded) => {
                if let Some(reader) = self.own_reader() {
                    reader.served = None;
                }
            }
            _ => {}
        }
    }

    fn own_reader(&mut self) -> Option<&mut Reader> {
        self.input_queues.as_ref()?;
        let process = self.tasks.running_process()?;
        let queues = self.input_queues.as_mut()?;
        Some(queues.readers.entry(process).or_default())
    }

    /// The program of the running task has disposed of the message at its head.
    fn dispose(&mut self) {
        let Some(process) = self.tasks.running_process() else {
            return;
        };
        let Some(reader) = self.own_reader() else {
            return;
        };
        let Some((parcel, _)) = reader.shown.take() else {
            let what = "disposed of a message that it was not shown";
            return self.fail(format!("process {process} {what}"));
        };
        let known = &self.processes[process as usize];
        let (node, gid) = (known.node, Gid(known.job));
        if let Some(queues) = &mut self.input_queues {
            queues.nodes[node as usize].readable.remove(&parcel);
        }
        let disposed = self.with_kernel(node, |kernel, steps| kernel.dispose(gid, steps));
        if let Some(Err(error)) = disposed {
            self.fail(error.to_string());
        }
    }

    /// See [`super::Outcome::delivered`].
    pub(crate) fn delivered(&self) -> BTreeMap<ProcessId, Delivered> {
        let Some(queues) = &self.input_queues else {
            return BTreeMap::new();
        };
        let processes = queues.readers.keys();
        let of = |process: &u32| Some((ProcessId(*process), self.delivered_to(*process)?));
        processes.filter_map(of).collect()
    }

    fn delivered_to(&self, process: u32) -> Option<Delivered> {
        let queues = self.input_queues.as_ref()?;
        let reader = queues.readers.get(&process)?;
        let known = self.processes.get(process as usize)?;
        let kernel = &queues.nodes.get(known.node as usize)?.kernel;
        let counts = kernel.counts(Gid(known.job));
        Some(Delivered {
            direct: counts.direct,
            buffered: counts.buffered,
            episodes: counts.episodes,
            pages_max: counts.pages_max,
            inserted_elsewhere: reader.inserted_elsewhere,
            insertion_min: reader.insertion_min.unwrap_or_default(),
            insertion_max: reader.insertion_max,
        })
    }

    /// For how long the running task's job has had its processor from then until now, without what
    /// the kernel took; and what that has taken in all.
    fn computed_since(&self, from: Time, taken_before: Span) -> (Span, Span) {
        let now = self.local();
        let process = self.tasks.running_process();
        let Some(known) = process.and_then(|process| self.processes.get(process as usize)) else {
            return (Span::ZERO, taken_before);
        };
        let had = match &self.time_slices {
            Some(slices) => slices.time_on(known.node, known.job, from, now),
            None => now.since(from),
        };
        let queue = self
            .input_queues
            .as_ref()
            .map(|queues| &queues.nodes[known.node as usize]);
        let taken = queue.and_then(|queue| queue.taken.get(&known.job));
        let taken = taken.copied().unwrap_or_default();
        let had = had.as_ps().saturating_sub((taken - taken_before).as_ps());
        (Span::from_ps(had), taken)
    }

    /// Has the running task be woken when a message is there for its program. False if one is.
    fn await_interrupt(&mut self) -> bool {
        let running = self.tasks.running();
        let Some(reader) = self.own_reader() else {
            return true;
        };
        if reader.shown.is_some() {
            return false;
        }
        reader.interrupts = running;
        true
    }

    fn await_nothing(&mut self) {
        if let Some(reader) = self.own_reader() {
            reader.interrupts = None;
        }
    }
}

/// The calling program computes for so long, or until a message is there for it: what is left to
/// compute. Between messages for others, and insertions, it goes on later.
pub fn compute_until_message(span: Span) -> Span {
    let mut left = span;
    let mut taken = kernel::with(|kernel| kernel.computed_since(kernel.local(), Span::ZERO).1);
    while left > Span::ZERO && kernel::with(Kernel::await_interrupt) {
        let from = now();
        let until = kernel::with(|kernel| kernel.when_computed(left));
        task::wait(Some(until));
        let had;
        (had, taken) = kernel::with(|kernel| kernel.computed_since(from, taken));
        left = Span::from_ps(left.as_ps().saturating_sub(had.as_ps()));
        if kernel::with(|kernel| kernel.is_dying()) {
            break;
        }
    }
    kernel::with(Kernel::await_nothing);
    left
}

/// The calling program waits until a message is there for it.
pub fn await_message() {
    while kernel::with(Kernel::await_interrupt) {
        task::wait(None);
        if kernel::with(|kernel| kernel.is_dying()) {
            break;
        }
    }
    kernel::with(Kernel::await_nothing);
}

/// True if a message is there for the calling program, once what it has done so far has taken its
/// time.
pub fn is_message_there() -> bool {
    task::pay();
    kernel::with(|kernel| {
        let reader = kernel.own_reader();
        reader.is_some_and(|reader| reader.shown.is_some())
    })
}

/// The messages of the calling program's process so far.
pub fn delivered() -> Delivered {
    kernel::with(|kernel| {
        let process = kernel.tasks.running_process();
        let delivered = process.and_then(|process| kernel.delivered_to(process));
        delivered.unwrap_or_default()
    })
}

/// Runs `upcall` as an interrupt of the calling program: points that it passes take what the
/// machine's file says of an interrupt.
pub fn interrupted<R>(upcall: impl FnOnce() -> R) -> R {
    let set = |is_interrupt| {
        kernel::with(|kernel| {
            if let Some(reader) = kernel.own_reader() {
                reader.is_interrupt = is_interrupt;
            }
        });
    };
    set(true);
    let result = upcall();
    set(false);
    result
}

impl Kernel {
    /// The time at which the running task will have computed for so long, if nothing interrupts it.
    fn when_computed(&self, span: Span) -> Time {
        let local = self.local();
        let process = self.tasks.running_process();
        let known = process.and_then(|process| self.processes.get(process as usize));
        match (&self.time_slices, known) {
            (Some(slices), Some(known)) => slices.after(known.node, known.job, local, span),
            _ => local + span,
        }
    }
}
