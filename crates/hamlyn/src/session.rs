//! A manager in the hands of one call, or of several: the only place of the library that waits
//! (decision 47).
//!
//! An [`Interface`] never waits: each of its calls is a step that returns at once. A session makes
//! waits of steps with one function, [`Session::wait_for`], and so may any layer:
//!
//! ```no_run
//! use hamlyn::{ReceiveError, Wait};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let manager = hamlyn::open("alice")?;
//! let mut session = manager.session();
//! let mut queue = session.open_queue(64)?;
//! // The next message, or nothing after a second. Another thread may use the manager meanwhile.
//! let step = |session: &mut hamlyn::Session<'_, _>| session.rcv(&mut queue);
//! let next = session.wait_for(Wait::millis(1000), step)?;
//! # let _: Option<hamlyn::engine::notification::Notification> = next;
//! # Ok(())
//! # }
//! ```

mod attaching;
mod connecting;
mod fencing;
mod one_sided;
mod pieces;
mod receiving;
mod sending;
mod storing;

use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;

use hamlyn_engine::slot::QueueId;
use hamlyn_engine::terminus::TerminusId;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::sharing::{Shared, Sharing, await_readable};
use hamlyn_host::{Host, HostError};

pub use sending::Sent;

use crate::core::{Core, Held};
use crate::interface::Interface;
use crate::interface::sleepers::Joined;
use crate::wait::{Wait, WaitStep, Waiting};

/// A manager in the hands of one call, or of several
/// ([`Manager::session`](crate::Manager::session)). It has the calls of an [`Interface`], which
/// never wait, and those that wait: for as long as their [`Wait`] says, and they take in arriving
/// packets meanwhile.
///
/// While it lives, no other call of the manager or of its end points can be made in this thread.
/// Other threads use a manager that is shared ([`open_shared`](crate::open_shared)) while a call of
/// this waits: so one thread may wait for what another one does.
pub struct Session<'a, H: Host = ProcessHost> {
    held: &'a Held<H>,
    pub(crate) core: <Held<H> as Shared<Core<H>>>::Guard<'a>,
}

impl<H: Host> Deref for Session<'_, H> {
    type Target = Interface<H>;

    #[inline(always)]
    fn deref(&self) -> &Interface<H> {
        &self.core.interface
    }
}

impl<H: Host> DerefMut for Session<'_, H> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Interface<H> {
        &mut self.core.interface
    }
}

impl<H: Host> Drop for Session<'_, H> {
    /// What this call took may be what a thread that sleeps awaits. Within one thread, those that
    /// take messages look after tasks that sleep.
    #[inline(always)]
    fn drop(&mut self) {
        if Self::AMONG_THREADS && self.sleepers.is_any() {
            self.wake_sleepers_if_active();
        }
    }
}

/// A step of a wait for room, which may panic.
struct RoomStep<'s, 'a, H: Host> {
    session: &'s mut Session<'a, H>,
    before: bool,
}

impl<H: Host> Drop for RoomStep<'_, '_, H> {
    fn drop(&mut self) {
        self.session.awaits_room = self.before;
    }
}

impl<'a, H: Host> Session<'a, H> {
    const AMONG_THREADS: bool = H::Sharing::AMONG_THREADS;

    #[inline(always)]
    #[track_caller]
    pub(crate) fn new(held: &'a Held<H>) -> Self {
        let core = held.enter();
        Self { held, core }
    }

    /// Nothing if another call has the manager in hand.
    pub(crate) fn try_new(held: &'a Held<H>) -> Option<Self> {
        let core = held.try_enter()?;
        Some(Self { held, core })
    }

    /// The terminus over which this manager's senders send.
    pub fn terminus(&self) -> TerminusId {
        self.core.terminus()
    }

    /// The notification queue that the slots of this manager's receivers name.
    pub fn queue_id(&self) -> QueueId {
        self.core.queue().id()
    }

    /// Waits until `step` finds something. Nothing if it has not when the time is over; it was
    /// tried once more then. Its error ends the wait.
    ///
    /// The step is called at once, and again whenever anything may have happened to the interface:
    /// a packet came, or room for one, a peer came or went, another thread or a network processor
    /// did something. It must look at all that it waits for each time, and must not wait itself. It
    /// moves packets if it calls [`Interface::poll`] or receives from a queue; at least one of its
    /// looks in each wait must.
    ///
    /// The wait polls for as long as that has been worth while lately, 20 µs at most unless set
    /// otherwise, and then sleeps. A host that cannot sleep is an error.
    #[inline]
    pub fn wait_for<T, E: From<HostError>>(
        &mut self,
        wait: Wait,
        mut step: impl FnMut(&mut Self) -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        self.wait_within(&mut Waiting::new(wait), |session, _| step(session))
    }

    /// Like [`Session::wait_for`], for a step that sends: where three quarters of the memory are
    /// full that its receiver lends for what it does not take, messages wait until it takes
    /// something, or until the patience of this program is over (decision 53): each of them, or
    /// eight cells of short ones together. Steps of other waits, and calls that do not wait, are
    /// not held back so.
    ///
    /// With [`Wait::Poll`] this does not wait either.
    pub fn wait_for_room<T, E: From<HostError>>(
        &mut self,
        wait: Wait,
        mut step: impl FnMut(&mut Self) -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        self.wait_for(wait, |session| {
            // Only for this step: other threads send while it waits.
            let before = session.awaits_room;
            session.awaits_room |= wait != Wait::Poll;
            let step_of_room = RoomStep { session, before };
            step(step_of_room.session)
        })
    }

    /// As [`Session::wait_for`], for one of several waits that are to take no longer all together.
    /// The step is shown how far the wait is.
    #[inline]
    pub(crate) fn wait_within<T, E: From<HostError>>(
        &mut self,
        waiting: &mut Waiting,
        mut step: impl FnMut(&mut Self, &Waiting) -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        self.check().map_err(HostError::from)?;
        let ended = loop {
            match step(self, waiting) {
                Ok(None) => {}
                found => break found,
            }
            match self.pause(waiting) {
                Ok(true) => {}
                Ok(false) => break Ok(None),
                Err(error) => break Err(error.into()),
            }
        };
        if self.sleepers.is_any() {
            // What was taken may be what a task of this thread awaits that sleeps.
            self.wake_sleepers_if_active();
        }
        ended
    }

    /// One pause of a wait: false when its time is over. Other threads may have used the manager
    /// meanwhile.
    #[inline]
    pub(crate) fn pause(&mut self, waiting: &mut Waiting) -> Result<bool, HostError> {
        self.core.reap();
        match self.step(waiting) {
            WaitStep::Stop => Ok(false),
            WaitStep::Spin | WaitStep::Yield => Ok(true),
            WaitStep::Sleep(deadline_ns) => self.sleep(waiting, deadline_ns),
        }
    }

    /// Sleeps, if nothing has changed since this wait was last here: what the step looked at first
    /// may have changed by what it did last.
    fn sleep(
        &mut self,
        waiting: &mut Waiting,
        deadline_ns: Option<u64>,
    ) -> Result<bool, HostError> {
        let activity = self.activity();
        if waiting.is_news(activity) {
            return Ok(true);
        }
        // Where others may use the interface meanwhile, its thread sleeps as theirs do: at the
        // descriptor.
        let elsewhere = Self::AMONG_THREADS || self.sleepers.is_any();
        match self.join_sleepers(activity, deadline_ns, elsewhere)? {
            Joined::Ready => {}
            Joined::Crowded => {
                let span = self.nap(deadline_ns);
                match Self::AMONG_THREADS {
                    true => self.held.await_others(&mut self.core, Some(span)),
                    false => std::thread::sleep(span),
                }
                return Ok(true);
            }
            Joined::Asleep(until_ns) => {
                let slept = match elsewhere {
                    true => self.sleep_at_descriptor(until_ns),
                    false => self.sleep_here(until_ns),
                };
                self.leave_sleepers();
                self.held.notify();
                slept?;
            }
        }
        self.learn(waiting);
        Ok(true)
    }

    fn sleep_at_descriptor(&mut self, until_ns: Option<u64>) -> Result<(), HostError> {
        let span = self.span_until(until_ns);
        let Some(descriptor) = self.shared_descriptor().cloned() else {
            return Ok(());
        };
        let sleep = || await_readable(descriptor.as_fd(), span);
        Held::<H>::let_others(&mut self.core, sleep).map(drop)
    }

    /// Lets other threads use the manager while `act` runs.
    pub(crate) fn let_others<R>(&mut self, act: impl FnOnce() -> R) -> R {
        if Self::AMONG_THREADS {
            self.wake_sleepers_if_active();
        }
        Held::<H>::let_others(&mut self.core, act)
    }

    /// What to do next in a wait. If that is to look again, what is to be done before is done, and
    /// other threads may have used the manager meanwhile.
    #[inline]
    pub(crate) fn step(&mut self, waiting: &mut Waiting) -> WaitStep {
        if !Self::AMONG_THREADS {
            return self.core.interface.step(waiting);
        }
        self.wake_sleepers_if_active();
        let next = self.next_step(waiting);
        match next {
            WaitStep::Spin => Held::<H>::let_others(&mut self.core, std::hint::spin_loop),
            WaitStep::Yield => {
                Held::<H>::let_others(&mut self.core, std::thread::yield_now);
                self.resumed(waiting);
            }
            WaitStep::Stop | WaitStep::Sleep(_) => {}
        }
        next
    }

    /// Ends a [`Sleep`](crate::Sleep).
    pub(crate) fn wake(&mut self, waiting: &Waiting) {
        let before = self.activity();
        self.leave_sleepers();
        self.held.notify();
        self.poll_beside_processor();
        // If something else woke the program, that says nothing of when messages come.
        if self.activity() != before || self.has_waited_long(waiting) {
            self.learn(waiting);
        }
    }
}

#[cfg(test)]
mod tests;
