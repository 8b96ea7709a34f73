//! Event loops (decision 0021): a manager beside other things that a program waits for, in one
//! `poll` or `epoll_wait`.
//!
//! One call, [`Manager::prepare_sleep`], polls as a call that blocks would, and only then gives a
//! [`Sleep`] to wait in:
//!
//! ```no_run
//! # use std::os::fd::AsFd;
//! # use hamlyn::{Wait, tagged_write};
//! # fn wait_for_events(_: Option<std::time::Duration>) {}
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut here = hamlyn::open("alice")?;
//! let mut tags = tagged_write::Receiver::new(&here, 4096, 64)?;
//! // Register `here.as_fd()` with epoll, for reading, once.
//! loop {
//!     while let Some(tag) = tags.get_tag(Wait::Poll)? {
//!         println!("{tag}");
//!     }
//!     if let Some(sleep) = here.prepare_sleep(Wait::Forever)? {
//!         // epoll_wait, and what has come from elsewhere.
//!         wait_for_events(sleep.timeout());
//!     }
//! }
//! # }
//! ```

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::sharing::Sharing;
use hamlyn_host::{Host, HostError};

use crate::error::SendError;
use crate::interface::sleepers::Joined;
use crate::manager::Manager;
use crate::message::Sending;
use crate::message::{Message, Target};
use crate::session::Session;
use crate::tasks::{Interest, Waiter};
use crate::wait::{Wait, WaitStep, Waiting};

/// Times in a row that [`Manager::prepare_sleep`] may have news, before the program is to look at
/// what else it waits for.
const NEWS_IN_A_ROW: u32 = 64;

/// What a look brought: see [`Manager::look`].
#[derive(Debug)]
pub enum Look<'a, H: Host = ProcessHost> {
    /// Something has happened: ask each end point until it has nothing, and begin a new wait.
    Ready,
    /// Nothing yet, and it is too early to sleep: look again, soon.
    Again,
    /// Nothing: sleep.
    Sleep(Sleep<'a, H>),
}

impl<H: Host> Manager<H> {
    /// The descriptor of this manager, for `poll`, `epoll` and their like; it stays the same. None
    /// in a simulator. It says something only while there is a [`Sleep`].
    ///
    /// It becomes readable when a peer sends or comes or goes, and stays so until the next sleep is
    /// prepared, which sees to that: nothing is to be read from it. Both level and edge triggered
    /// waiting work.
    pub fn descriptor(&self) -> Option<&Arc<OwnedFd>> {
        self.descriptor.as_ref()
    }

    /// Prepares to wait elsewhere, with [`Manager::descriptor`] among other things: polls for as
    /// long as a call that blocks would, and returns nothing as soon as something has happened
    /// since this was last called for this handle. Then each end point is to be asked until it has
    /// nothing. Otherwise it announces to all peers that this program sleeps, until what it returns
    /// is dropped.
    ///
    /// Blocks for as long as a call that blocks would poll (20 µs, unless set otherwise), and for
    /// `wait` at most. Does not allocate. It moves packets meanwhile, and wakes the tasks that wait
    /// for this manager ([`Manager::register_waker`]).
    ///
    /// If there always is something, one call of 64 returns a [`Sleep`] of no time at all, so that
    /// a program that calls this in a loop looks at everything else that it waits for.
    ///
    /// Among threads each takes a handle of its own. Whatever other handles and end points do
    /// meanwhile, here or in other threads, ends the sleep if it may matter.
    ///
    /// # Errors
    ///
    /// Those of the host, or of the network processor: it cannot go on.
    pub fn prepare_sleep(&mut self, wait: Wait) -> Result<Option<Sleep<'_, H>>, HostError> {
        if self.news_in_a_row >= NEWS_IN_A_ROW {
            self.news_in_a_row = 0;
            return Ok(Some(Sleep::at_once(self)));
        }
        let mut waiting = Waiting::new(wait);
        loop {
            match self.step_towards_sleep(&mut waiting)? {
                Step::Again => {}
                Step::Ready => {
                    self.news_in_a_row += 1;
                    return Ok(None);
                }
                Step::Sleep(deadline_ns) => {
                    self.news_in_a_row = 0;
                    return Ok(Some(Sleep {
                        manager: self,
                        waiting,
                        slept: Some(Slept { deadline_ns }),
                    }));
                }
                Step::Over => {
                    self.news_in_a_row = 0;
                    return Ok(Some(Sleep::at_once(self)));
                }
            }
        }
    }

    /// One step of [`Manager::prepare_sleep`], for runtimes that do something else between two
    /// looks. Does not block.
    pub fn look(&mut self, waiting: &mut Waiting) -> Result<Look<'_, H>, HostError> {
        Ok(match self.step_towards_sleep(waiting)? {
            Step::Again => Look::Again,
            Step::Ready => Look::Ready,
            Step::Over => Look::Sleep(Sleep::at_once(self)),
            Step::Sleep(deadline_ns) => Look::Sleep(Sleep {
                manager: self,
                waiting: std::mem::replace(waiting, Waiting::new(Wait::Poll)),
                slept: Some(Slept { deadline_ns }),
            }),
        })
    }

    /// The task of that waker waits for this handle: it is woken when anything has happened, once,
    /// and then looks for itself. To be called before each look at an end point, so that nothing is
    /// missed in between. One task for each handle: the last. [`Manager::ready`] is for a task that
    /// waits for one queue, port or completion queue.
    ///
    /// An event loop, or a task of the runtime (`hamlyn-tokio`), must call
    /// [`Manager::prepare_sleep`] or [`Manager::look`] meanwhile. Does not block, nor allocate but
    /// for more tasks than waited before.
    ///
    /// # Errors
    ///
    /// The error of those calls: no task will be woken any more.
    pub fn register_waker(&self, waker: &Waker) -> Result<(), HostError> {
        let registered = self.enter()?.core.register_task(&self.waiter, waker)?;
        registered.finish(waker);
        Ok(())
    }

    #[inline]
    fn step_towards_sleep(&mut self, waiting: &mut Waiting) -> Result<Step, HostError> {
        let mut session = self.enter()?;
        let step = self.step_with(&mut session, waiting);
        match &step {
            Ok(Step::Ready) => {}
            Ok(_) => return step,
            Err(error) => session.core.tasks.fail(error),
        }
        if session.core.tasks.is_empty() {
            return step;
        }
        drop(session);
        let mut woken = std::mem::take(&mut self.woken);
        let mut session = self.enter()?;
        match &step {
            Ok(_) => session.core.take_tasks(&mut woken),
            Err(_) => session.core.tasks.take_all(&mut woken),
        }
        drop(session);
        woken.wake();
        self.woken = woken;
        step
    }

    #[inline]
    fn step_with(
        &self,
        session: &mut Session<'_, H>,
        waiting: &mut Waiting,
    ) -> Result<Step, HostError> {
        session.core.reap();
        // What is at hand costs least if its end point takes it; only once, as it may be for none
        // that is asked. Whose it is, is not known.
        let is_at_hand = !self.was_at_hand.load(Relaxed)
            && !session.core.tasks.is_selective()
            && session.is_at_hand();
        self.was_at_hand.store(is_at_hand, Relaxed);
        if is_at_hand {
            return Ok(Step::Ready);
        }
        session.poll_beside_processor();
        let activity = session.activity();
        if activity != self.activity_seen.swap(activity, Relaxed) {
            return Ok(Step::Ready);
        }
        match session.step(waiting) {
            WaitStep::Stop => Ok(Step::Over),
            WaitStep::Spin | WaitStep::Yield => Ok(Step::Again),
            WaitStep::Sleep(deadline_ns) => {
                Ok(match session.join_sleepers(activity, deadline_ns, true)? {
                    Joined::Asleep(until_ns) => Step::Sleep(until_ns),
                    Joined::Ready => Step::Ready,
                    // The descriptor is readable, and stays so.
                    Joined::Crowded => Step::Over,
                })
            }
        }
    }
}

/// What a step brought.
enum Step {
    Again,
    Ready,
    /// It is announced that this program sleeps, until then at the latest.
    Sleep(Option<u64>),
    /// There is no time to sleep.
    Over,
}

impl<S: Sharing> AsFd for Manager<ProcessHost<S>> {
    /// As [`Manager::descriptor`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.descriptor() {
            Some(descriptor) => descriptor.as_fd(),
            None => unreachable!("a process host has a descriptor"),
        }
    }
}

/// This program sleeps, or is about to: it waits for [`Manager::descriptor`] and for whatever else
/// it likes, at most as long as [`Sleep::timeout`] says, and drops this as soon as it is awake.
/// While it lives, peers ring, which costs them a system call.
pub struct Sleep<'a, H: Host = ProcessHost> {
    manager: &'a Manager<H>,
    waiting: Waiting,
    slept: Option<Slept>,
}

/// A sleep that was announced.
struct Slept {
    deadline_ns: Option<u64>,
}

impl<'a, H: Host> Sleep<'a, H> {
    /// No sleep, but a look at other things.
    fn at_once(manager: &'a Manager<H>) -> Self {
        Self {
            manager,
            waiting: Waiting::new(Wait::Poll),
            slept: None,
        }
    }

    /// For how long to wait at most; none if there is no limit. Zero, if something has happened
    /// since, or if the time is over. A clock of coarser units must round up, or it is asked again
    /// and again.
    pub fn timeout(&self) -> Option<Duration> {
        let Some(slept) = &self.slept else {
            return Some(Duration::ZERO);
        };
        let Ok(session) = self.manager.enter() else {
            return Some(Duration::ZERO);
        };
        if !session.is_asleep() {
            return Some(Duration::ZERO);
        }
        session.span_until(slept.deadline_ns)
    }
}

impl<S: Sharing> AsFd for Sleep<'_, ProcessHost<S>> {
    /// As [`Manager::descriptor`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.manager.as_fd()
    }
}

impl<H: Host> Drop for Sleep<'_, H> {
    fn drop(&mut self) {
        if self.slept.is_some()
            && let Some(mut session) = self.manager.enter_to_leave()
        {
            session.wake(&self.waiting);
        }
    }
}

impl<H: Host> fmt::Debug for Sleep<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").finish_non_exhaustive()
    }
}

impl<H: Host> Manager<H> {
    /// A task of this handle asks whether there is what it waits for: the step of a wait
    /// ([`Session::wait_for`]). It is woken when anything has happened.
    pub(crate) fn poll_look<T, E: From<HostError>>(
        &self,
        context: &Context<'_>,
        step: impl FnOnce(&mut Session<'_, H>) -> Result<Option<T>, E>,
    ) -> Poll<Result<T, E>> {
        self.poll_look_for(context, |session| {
            Ok(step(session)?.ok_or(Interest::Anything))
        })
    }

    /// Like [`Manager::poll_look`], but a step that finds nothing says for what the task waits, and
    /// the task is woken when that has something. Unless it waits alone: then it is woken for
    /// anything.
    #[inline]
    pub(crate) fn poll_look_for<T, E: From<HostError>>(
        &self,
        context: &Context<'_>,
        step: impl FnOnce(&mut Session<'_, H>) -> Result<Result<T, Interest>, E>,
    ) -> Poll<Result<T, E>> {
        self.poll_look_by(&self.waiter, context, step)
    }

    /// The task of this handle, which has looked for itself since it was registered and found
    /// nothing, waits for this and is woken for nothing else.
    pub(crate) fn wait_as_task(&self, interest: Interest) {
        if let Ok(mut session) = self.enter() {
            session.core.tasks.wait_for(&self.waiter, interest);
        }
    }

    /// The task of this handle has what it waited for.
    pub(crate) fn stop_waiting(&self) {
        if let Ok(mut session) = self.enter() {
            let waker = session.core.tasks.take_of(&self.waiter);
            drop(session);
            drop(waker);
        }
    }

    /// The same as [`Manager::poll_look_for`], for a waiter that is not this handle's.
    pub(crate) fn poll_look_by<T, E: From<HostError>>(
        &self,
        waiter: &Waiter,
        context: &Context<'_>,
        step: impl FnOnce(&mut Session<'_, H>) -> Result<Result<T, Interest>, E>,
    ) -> Poll<Result<T, E>> {
        // Dropped after the session, also if the step panics.
        let (registered, found);
        let mut session = match self.enter() {
            Ok(session) => session,
            Err(forked) => return Poll::Ready(Err(HostError::from(forked).into())),
        };
        // For anything, until the look is over: it may let other threads have the manager.
        registered = match session.core.register_task(waiter, context.waker()) {
            Ok(registered) => registered,
            Err(error) => return Poll::Ready(Err(error.into())),
        };
        let looked = step(&mut session);
        let tasks = &mut session.core.tasks;
        let polled = match looked {
            Ok(Err(interest)) => {
                tasks.wait_for(waiter, interest);
                found = None;
                Poll::Pending
            }
            Ok(Ok(looked_for)) => {
                found = tasks.take_of(waiter);
                Poll::Ready(Ok(looked_for))
            }
            Err(error) => {
                found = tasks.take_of(waiter);
                Poll::Ready(Err(error))
            }
        };
        drop(session);
        registered.finish(context.waker());
        drop(found);
        polled
    }

    /// Sends a message of any length, as far as there is room.
    pub(crate) fn poll_send(
        &self,
        context: &Context<'_>,
        target: &Target,
        message: &Message<'_>,
        sending: &mut Sending,
    ) -> Poll<Result<SendHandle, SendError>> {
        self.poll_look(context, |session| {
            let terminus = session.terminus();
            session.send_some(terminus, target, message, sending)
        })
    }
}
