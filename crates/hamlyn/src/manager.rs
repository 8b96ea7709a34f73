//! The manager (`Hamlyn 3.3`): the upper layer's view of an interface. One for
//! each send terminus; it owns the notification queue that its receivers share
//! and leads every arrival to the receiver it is for.
//!
//! A manager is a handle: its end points hold the same interface, which is closed with the last of
//! them. Its host says whether they stay in one thread, which costs a flag, or may be used by any,
//! for the price of a lock ([`hamlyn_host::sharing`]). Within one thread the compiler sees to it:
//!
//! ```compile_fail,E0277
//! let here = hamlyn::open("alice").unwrap();
//! std::thread::spawn(move || here.poll_nowait());
//! ```

use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use hamlyn_engine::slot::QueueId;
use hamlyn_engine::terminus::{SendHandle, TerminusId};
use hamlyn_host::process::ProcessHost;
use hamlyn_host::sharing::{Shared, Sharing};
use hamlyn_host::{Address, Host, HostError};
use hamlyn_ring::forks::{Birth, Forked};

pub use crate::arrival::{Arrival, ClassId, ReceiverClass};
pub use crate::core::ManagerOptions;
use crate::core::{Core, Held};
use crate::error::{ConnectError, OpenError, ReceiveError, SendError};
use crate::event::Event;
use crate::message::{Message, Target};
use crate::remains::{Leaving, Remains};

use crate::interface::ports::to_handler;
use crate::sending_half::SendingHalf;
use crate::session::Session;
use crate::tasks::{Waiter, Woken};
use crate::wait::Wait;

/// See the module.
pub struct Manager<H: Host = ProcessHost> {
    /// Where threads share it: how they send while another one has it. Dropped before what it is
    /// the half of.
    sending_half: Option<Arc<SendingHalf<H>>>,
    held: Held<H>,
    birth: Birth,
    pub(crate) descriptor: Option<Arc<OwnedFd>>,
    /// What had happened when a wait of this handle last ended.
    pub(crate) activity_seen: AtomicU64,
    /// Such a wait ended because something was at hand.
    pub(crate) was_at_hand: AtomicBool,
    /// How often [`Manager::prepare_sleep`] has had news since there was none.
    pub(crate) news_in_a_row: u32,
    /// Its task.
    pub(crate) waiter: Waiter,
    leaving: Leaving,
    /// Tasks that it is about to wake.
    pub(crate) woken: Woken,
}

/// A manager that an end point holds. When that is gone, what it leaves behind is seen to at once,
/// if no call is under way; to be the last field, as the others leave it.
#[derive(Debug)]
pub(crate) struct ManagerRef<H: Host>(Manager<H>);

impl<H: Host> Deref for ManagerRef<H> {
    type Target = Manager<H>;

    #[inline(always)]
    fn deref(&self) -> &Manager<H> {
        &self.0
    }
}

impl<H: Host> Drop for ManagerRef<H> {
    fn drop(&mut self) {
        // A half that another thread holds is waited for; see `Host::LETS_OTHERS` why not there.
        if H::LETS_OTHERS.is_some() && std::thread::panicking() {
            return;
        }
        self.0.abandon(&self.0.waiter);
        if self.0.birth.is_here()
            && let Some(mut session) = Session::<H>::try_new(&self.0.held)
        {
            session.core.reap();
        }
    }
}

impl<H: Host> Clone for ManagerRef<H> {
    fn clone(&self) -> Self {
        self.0.hold()
    }
}

impl<H: Host> Clone for Manager<H> {
    fn clone(&self) -> Self {
        Self::of(
            self.held.clone(),
            self.descriptor.clone(),
            self.birth,
            self.leaving.clone(),
            self.sending_half.clone(),
        )
    }
}

impl<H: Host> Manager<H> {
    fn of(
        held: Held<H>,
        descriptor: Option<Arc<OwnedFd>>,
        birth: Birth,
        leaving: Leaving,
        sending_half: Option<Arc<SendingHalf<H>>>,
    ) -> Self {
        Self {
            held,
            birth,
            descriptor,
            sending_half,
            activity_seen: AtomicU64::new(0),
            was_at_hand: AtomicBool::new(false),
            news_in_a_row: 0,
            waiter: Waiter::new(),
            leaving,
            woken: Woken::default(),
        }
    }

    /// A manager for an interface on that host.
    pub fn new(host: H, options: ManagerOptions) -> Result<Self, OpenError> {
        Ok(Self::around(Core::new(host, options)?))
    }

    fn around(core: Core<H>) -> Self {
        let descriptor = core.interface.shared_descriptor().cloned();
        let birth = core.interface.birth();
        let leaving = core.interface.leaving.clone();
        let sending_half = core.interface.sending_half(core.terminus()).map(Arc::new);
        Self::of(Shared::new(core), descriptor, birth, leaving, sending_half)
    }

    /// Fails in a forked child: all that the manager has is the parent's.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<(), Forked> {
        self.birth.check()
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn enter(&self) -> Result<Session<'_, H>, Forked> {
        self.check()?;
        Ok(Session::new(&self.held))
    }

    /// Like [`Manager::enter`], for calls that have no error to return and look at private memory.
    ///
    /// # Panics
    ///
    /// In a forked child, if another thread of the parent had the manager in hand.
    #[track_caller]
    fn enter_to_read(&self) -> Session<'_, H> {
        if let Ok(session) = self.enter() {
            return session;
        }
        match Session::try_new(&self.held) {
            Some(session) => session,
            None => panic!("a manager in use by another thread: {Forked}"),
        }
    }

    /// The manager, unless a call has it in hand; nothing in a forked child.
    pub(crate) fn try_session(&self) -> Option<Session<'_, H>> {
        self.check().ok()?;
        Session::try_new(&self.held)
    }

    /// Like [`Manager::enter`], for a drop. Nothing in a forked child, and while a panic unwinds in
    /// a call of this manager.
    #[track_caller]
    pub(crate) fn enter_to_leave(&self) -> Option<Session<'_, H>> {
        if !std::thread::panicking() {
            return self.enter().ok();
        }
        self.check().ok()?;
        Session::try_new(&self.held)
    }

    /// Sends a message over the manager's terminus, as [`Session::send_msg`].
    #[inline(always)]
    pub(crate) fn send(
        &self,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        self.check()?;
        if let Some(sending_half) = self.sending_half() {
            if let Some(handle) = sending_half.send(target, message) {
                return Ok(handle);
            }
        } else {
            let mut session = Session::<H>::new(&self.held);
            let terminus = session.terminus();
            if let Some(handle) = session.send_short(terminus, target, message) {
                return Ok(handle);
            }
        }
        // A copy, so that on the way above the message need not be in memory.
        let message = *message;
        self.send_longer(target, &message, wait)
    }

    /// Sends a message to a port, for a handler, over the manager's terminus, as
    /// [`Session::send_message`].
    #[inline(always)]
    pub(crate) fn send_message(
        &self,
        target: &Target,
        handler: u16,
        data: &[u8],
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        self.check()?;
        let sent = match self.sending_half() {
            Some(sending_half) => sending_half.send_message(target, handler, data),
            None => {
                let mut session = Session::<H>::new(&self.held);
                let terminus = session.terminus();
                session.send_message_at_once(terminus, target, handler, data)
            }
        };
        match sent {
            Some(handle) => Ok(handle),
            None => self.send_longer(target, &to_handler(handler, data), wait),
        }
    }

    /// Within one thread none, which the compiler knows.
    #[inline(always)]
    pub(crate) fn sending_half(&self) -> Option<&SendingHalf<H>> {
        match H::Sharing::AMONG_THREADS {
            true => self.sending_half.as_deref(),
            false => None,
        }
    }

    /// Apart, so that the session of a call that takes the fast path lies in registers.
    #[inline(never)]
    fn send_longer(
        &self,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        let mut session = self.enter()?;
        let terminus = session.terminus();
        session.send_longer(terminus, target, message, wait)
    }

    /// No task waits there any more.
    pub(crate) fn abandon(&self, waiter: &Waiter) {
        if let Some(waiting) = waiter.waits_at() {
            self.leaving.leave(Remains {
                waiting: Some(waiting),
                ..Remains::default()
            });
        }
    }

    /// For an end point.
    pub(crate) fn hold(&self) -> ManagerRef<H> {
        ManagerRef(self.clone())
    }

    /// The manager in hand, for calls of the lower layer, and for waits of a layer's own
    /// ([`Session::wait_for`]).
    ///
    /// # Panics
    ///
    /// While another call of this manager is under way: while what this returned before is not
    /// dropped, or from within a [`ReceiverClass`]. In a forked child, where the calls of what this
    /// returns fail, while another thread of the parent had the manager.
    #[inline]
    #[track_caller]
    pub fn session(&self) -> Session<'_, H> {
        self.enter_to_read()
    }

    /// As [`Session::ask`], and other threads use the manager while this one waits. Blocks for as
    /// long as `wait` says while no interface has the name or nothing is offered.
    ///
    /// # Errors
    ///
    /// The address or the item cannot be used, nobody has the name, or nothing was offered before
    /// the time was over.
    pub fn ask(&self, to: Address<'_>, item: &str, wait: Wait) -> Result<Vec<u8>, ConnectError> {
        Ok(self.enter()?.ask(to, item, wait)?)
    }

    /// The terminus over which this manager's senders send.
    pub fn terminus(&self) -> TerminusId {
        self.enter_to_read().terminus()
    }

    /// The notification queue that the slots of this manager's receivers name.
    pub fn queue_id(&self) -> QueueId {
        self.enter_to_read().queue_id()
    }

    /// Notifications that were lost because that queue was overrun.
    pub fn lost(&self) -> u64 {
        self.enter_to_read().core.queue().lost()
    }

    /// Registers a receiver of the application's own making, whose entries may have
    /// `entries` notifications outstanding. Its slots must be `paranoid_one_shot`, or else their
    /// senders can overrun the queue that it shares with the manager's other receivers.
    pub fn register(
        &self,
        class: Box<dyn ReceiverClass>,
        entries: usize,
    ) -> Result<ClassId, OpenError> {
        self.enter()?.core.register(class, entries)
    }

    /// Forgets a receiver. Its slots must be closed before.
    pub fn unregister(&self, id: ClassId) {
        if let Ok(mut session) = self.enter() {
            session.core.unregister(id);
        }
    }

    /// Takes the next notification, if there is one, and leads it to its receiver
    /// (`Hamlyn 3.3`). True if there was one.
    pub fn poll_nowait(&self) -> Result<bool, ReceiveError> {
        self.enter()?.core.poll_nowait()
    }

    /// Waits until anything has happened since this was last called: a packet, a connection, a
    /// loss; or until the time is over. For programs that serve several end points: ask each until
    /// it has nothing, then wait. What one end point finds for another while it is asked counts, so
    /// nothing is overlooked. Among threads each takes a handle of its own.
    /// [`Manager::prepare_sleep`] is for programs that wait for something else as well.
    pub fn wait(&self, wait: Wait) -> Result<(), ReceiveError> {
        self.enter()?.wait_for(wait, |session| {
            session.core.reap();
            session.poll();
            let activity = session.activity();
            let is_news = activity != self.activity_seen.swap(activity, Relaxed);
            Ok::<_, ReceiveError>(is_news.then_some(()))
        })?;
        Ok(())
    }

    /// The next event. Nothing if there was none in time. Packets are taken in meanwhile; to wait
    /// for messages and events at once, there is [`Manager::wait`].
    pub fn next_event(&self, wait: Wait) -> Result<Option<Event>, HostError> {
        self.enter()?.wait_for(wait, |session| {
            session.poll();
            Ok(session.core.next_event())
        })
    }

    /// As [`Manager::next_event`], as a future. An event loop or a task must drive the manager
    /// ([`Manager::register_waker`]), and the waiting task takes a handle of its own. Dropping it
    /// loses nothing.
    pub async fn next_event_async(&self) -> Result<Event, HostError> {
        poll_fn(|context| {
            self.poll_look(context, |session| {
                session.poll_beside_processor();
                Ok(session.core.next_event())
            })
        })
        .await
    }

    /// Waits until nothing is queued any more: every message that was accepted is handed over to
    /// its link, or has failed with it. False if the time was over first. A peer that takes nothing
    /// keeps it from ending well.
    ///
    /// Here the application's own calls move its messages, so a program that sends and then does
    /// something else for long, or ends, calls this in between.
    pub fn flush(&self, wait: Wait) -> Result<bool, HostError> {
        self.enter()?.flush(wait)
    }

    /// The manager, to be moved to another thread, if no end point and no other handle holds it.
    pub fn detach(self) -> Result<Detached<H>, Self> {
        match self.held.into_inner() {
            Ok(core) => Ok(Detached(core)),
            Err(held) => Err(Self::of(
                held,
                self.descriptor,
                self.birth,
                self.leaving,
                self.sending_half,
            )),
        }
    }
}

/// A manager without end points, on its way to another thread.
pub struct Detached<H: Host = ProcessHost>(Core<H>);

impl<H: Host> Detached<H> {
    /// The manager, for the thread that calls this.
    pub fn attach(self) -> Manager<H> {
        Manager::around(self.0)
    }
}

impl<H: Host> fmt::Debug for Manager<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Manager");
        if let Some(core) = self.held.try_enter() {
            shown.field("interface", &core.interface);
        }
        shown.finish_non_exhaustive()
    }
}
