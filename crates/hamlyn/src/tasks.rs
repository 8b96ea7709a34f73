//! Tasks that wait for a manager: what an executor runs again when something has happened (decision
//! 0021).
//!
//! A task that waits for one thing is woken when that has something. Otherwise it is left where it
//! waits: who drives the manager asks for all that wait whenever there is news.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::Waker;

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::MetadataArea;
use hamlyn_engine::notification::Unread;
use hamlyn_engine::packet::{PortName, SlotName};
use hamlyn_engine::port::PortSetName;
use hamlyn_engine::table::Name;
use hamlyn_host::HostError;

use crate::arrival::ClassId;
use crate::message::Target;

/// Tasks that wait at a time. If there are more, all are woken and look for themselves.
const TASKS_MAX: usize = 1 << 16;

/// Something that a task waits for.
#[derive(Debug)]
pub(crate) enum Interest {
    /// Anything that happens. Also what is told by a store of a peer that nobody announces, as room
    /// for a message.
    Anything,
    /// Messages that are announced in a queue, or the end of the peer that sends them.
    Messages(Unread, Option<Answerer>),
    /// The message of a one-shot entry, the first of these.
    Message(MetadataArea),
    /// Messages that the manager leads to a receiver, or the end of a peer.
    Arrivals(ClassId, Option<Answerer>),
    Port(PortName),
    /// A message of a port of that set.
    PortSet(PortSetName),
    /// A completion queue.
    Completions(Name),
    /// The answer to a fence of that number.
    Fence(LinkId, u64),
}

/// A slot at a peer whose owner is to answer. If a packet that came back says that it is closed,
/// nobody will.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answerer {
    pub(crate) link: LinkId,
    pub(crate) slot: SlotName,
}

impl From<&Target> for Answerer {
    fn from(target: &Target) -> Self {
        Self {
            link: target.link(),
            slot: target.ticket().slot,
        }
    }
}

impl Interest {
    fn is_selective(&self) -> bool {
        !matches!(self, Self::Anything)
    }

    /// True if a task that waits for this looks when a link has ended, and when it is time to look
    /// again.
    pub(crate) fn heeds_ends(&self) -> bool {
        matches!(self, Self::Messages(_, Some(_)) | Self::Arrivals(..))
    }

    /// True if the transmit half knows of it.
    pub(crate) fn is_of_sender(&self) -> bool {
        matches!(
            self,
            Self::Messages(_, Some(_)) | Self::Arrivals(_, Some(_)) | Self::Fence(..)
        )
    }
}

/// A place where one task waits at a time: a handle of the manager, an end point, a future.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// A number that nobody else of this process has.
    number: u64,
    /// Where its task waits, or did.
    place: AtomicUsize,
}

/// The number of the next.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// The place of those for which no task has waited.
const NOWHERE: usize = usize::MAX;

impl Waiter {
    pub(crate) fn new() -> Self {
        Self {
            number: NUMBERS.fetch_add(1, Relaxed),
            place: AtomicUsize::new(NOWHERE),
        }
    }

    /// Where a task of it waits, if one does.
    pub(crate) fn waits_at(&self) -> Option<WaitsAt> {
        let place = self.place.load(Relaxed);
        (place != NOWHERE).then_some(WaitsAt {
            number: self.number,
            place,
        })
    }
}

/// See [`Waiter::waits_at`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitsAt {
    number: u64,
    place: usize,
}

/// A task that waits.
struct Task {
    /// The number of its waiter.
    number: u64,
    interest: Interest,
    waker: Waker,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Tasks {
    /// A task stays where it is until it is woken.
    places: Vec<Option<Task>>,
    /// Those that are empty.
    free: Vec<usize>,
    /// Tasks that wait for one thing.
    selective: usize,
    /// Why nothing will happen any more.
    failure: Option<HostError>,
}

/// Tasks to be woken, without the manager in hand: they may want it.
#[derive(Default)]
pub(crate) struct Woken(Vec<Waker>);

/// The outcome for a task that is to wait.
#[must_use]
pub(crate) enum Registered {
    /// It waits, instead of the task before it, if there was one.
    Waits(Option<Waker>),
    /// There are too many: none of them waits any more, and all look for themselves.
    Full(Woken),
}

impl Registered {
    /// To be called without the manager in hand: a task may be dropped with its waker.
    pub(crate) fn finish(self, waker: &Waker) {
        match self {
            Self::Waits(former) => drop(former),
            Self::Full(mut woken) => {
                woken.wake();
                waker.wake_by_ref();
            }
        }
    }
}

impl Tasks {
    /// A task waits for that waiter, instead of the one before.
    pub(crate) fn register(
        &mut self,
        waiter: &Waiter,
        interest: Interest,
        waker: &Waker,
    ) -> Result<Registered, HostError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if let Some(at) = waiter.waits_at()
            && let Some(task) = self.task_at(at)
        {
            let former = (!task.waker.will_wake(waker))
                .then(|| std::mem::replace(&mut task.waker, waker.clone()));
            self.set_interest(at, interest);
            return Ok(Registered::Waits(former));
        }
        if self.waiting() >= TASKS_MAX {
            let mut woken = Woken::default();
            self.take_all(&mut woken);
            return Ok(Registered::Full(woken));
        }
        self.selective += usize::from(interest.is_selective());
        let task = Some(Task {
            number: waiter.number,
            interest,
            waker: waker.clone(),
        });
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place] = task;
                place
            }
            None => {
                self.places.push(task);
                self.places.len() - 1
            }
        };
        waiter.place.store(place, Relaxed);
        Ok(Registered::Waits(None))
    }

    fn task_at(&mut self, at: WaitsAt) -> Option<&mut Task> {
        let task = self.places.get_mut(at.place)?.as_mut();
        task.filter(|task| task.number == at.number)
    }

    /// The task of that waiter waits for this from now on, if it still waits.
    pub(crate) fn wait_for(&mut self, waiter: &Waiter, interest: Interest) {
        if let Some(at) = waiter.waits_at() {
            self.set_interest(at, interest);
        }
    }

    fn set_interest(&mut self, at: WaitsAt, interest: Interest) {
        if let Some(task) = self.task_at(at) {
            let is_selective = interest.is_selective();
            let before = std::mem::replace(&mut task.interest, interest);
            self.selective += usize::from(is_selective);
            self.selective -= usize::from(before.is_selective());
        }
    }

    /// Its waiter is gone: what is left of the task goes with the next news.
    pub(crate) fn abandon(&mut self, at: WaitsAt) {
        self.set_interest(at, Interest::Anything);
    }

    /// Its waiter has what it waited for. The waker is to be dropped without the manager in hand.
    pub(crate) fn take_of(&mut self, waiter: &Waiter) -> Option<Waker> {
        let at = waiter.waits_at()?;
        waiter.place.store(NOWHERE, Relaxed);
        self.task_at(at)?;
        self.take_at(at.place)
    }

    fn take_at(&mut self, place: usize) -> Option<Waker> {
        let task = self.places.get_mut(place)?.take()?;
        self.free.push(place);
        self.selective -= usize::from(task.interest.is_selective());
        Some(task.waker)
    }

    /// Nothing will happen any more, and every task that waits is to hear of it.
    pub(crate) fn fail(&mut self, failure: &HostError) {
        self.failure.get_or_insert_with(|| failure.clone());
    }

    fn waiting(&self) -> usize {
        self.places.len() - self.free.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting() == 0
    }

    /// True if it matters what there is news of. The only task that waits is woken for anything,
    /// so that it may take what is at hand the shortest way.
    #[inline]
    pub(crate) fn is_selective(&self) -> bool {
        self.selective > 0 && self.waiting() > 1
    }

    /// True if a task waits for that.
    pub(crate) fn is_any(&self, is_it: impl Fn(&Interest) -> bool) -> bool {
        let mut tasks = self.places.iter().flatten();
        tasks.any(|task| is_it(&task.interest))
    }

    /// Takes all that wait.
    pub(crate) fn take_all(&mut self, woken: &mut Woken) {
        let tasks = self.places.drain(..).flatten();
        woken.0.extend(tasks.map(|task| task.waker));
        self.free.clear();
        self.selective = 0;
    }

    /// Takes those that wait for what is ready.
    pub(crate) fn take_ready(
        &mut self,
        woken: &mut Woken,
        mut is_ready: impl FnMut(&Interest) -> bool,
    ) {
        for place in 0..self.places.len() {
            if let Some(task) = &self.places[place]
                && is_ready(&task.interest)
            {
                woken.0.extend(self.take_at(place));
            }
        }
        if self.is_empty() {
            self.places.clear();
            self.free.clear();
        }
    }
}

impl Woken {
    pub(crate) fn wake(&mut self) {
        for waker in self.0.drain(..) {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests;
