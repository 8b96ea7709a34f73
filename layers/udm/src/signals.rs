//! Handlers that interrupt a program which makes no calls: in its own thread, by a signal.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use hamlyn::Strategy;
use hamlyn::host::process::ProcessHost;

use crate::error::Error;
use crate::limits::{VISIT, VISITS_MAX};
use crate::options::Interrupt;
use crate::signal::{
    Held, Interruptible, SIGNALS, SOON, Serve, check_signal, raise_at, raise_none_at,
};
use crate::uac::INTERRUPT_DISABLE;
use crate::udm::Udm;

/// The longest time after which a handler tries again that found the interface in use.
const LATE: Duration = Duration::from_millis(10);

/// Options of handlers by signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SignalOptions {
    /// The number of the signal: `SIGURG` (default), `SIGIO`, `SIGUSR1` or `SIGUSR2`.
    pub signal: i32,
}

impl Default for SignalOptions {
    fn default() -> Self {
        Self { signal: SIGNALS[0] }
    }
}

impl SignalOptions {
    /// With that signal.
    pub const fn of(signal: i32) -> Self {
        Self { signal }
    }

    /// Checks them before an end point is opened for them.
    ///
    /// # Errors
    ///
    /// The signal is none of the four, or has a handler already.
    pub fn check(&self) -> Result<(), Error> {
        check_signal(self.signal)
    }
}

/// An end point whose handlers interrupt the program's own thread (`T 3`): a message that comes
/// while the program computes suspends it, its handler runs, and the program goes on. Never in a
/// section, and so never in a call of the end point: a signal that comes there is noted, and the
/// end of the section runs the handlers.
///
/// Peers ring a program that is asleep; this one announces itself asleep while it computes, and
/// again after each interrupt. Its peers need to know nothing of it. It belongs to the thread that
/// made it, which must not block the signal: handlers wait as long as it does. Dropping it takes
/// the announcement back and restores the action that the signal had. In a forked child nothing
/// raises the signal, and nothing is handled.
pub struct Signals<S: 'static> {
    served: Interruptible<Served<S>>,
}

/// A section of the program: the end point in its hands, and no handler runs. Its end runs the
/// handlers of messages that are there.
pub struct Suspension<'a, S: 'static> {
    held: Held<'a, Served<S>>,
    is_ended: bool,
}

struct Served<S: 'static> {
    udm: Udm<S>,
    /// The time after which to try again, if the interface is in use the next time.
    again: Duration,
    /// Doorbells raise the signal, and the interface tells when they are needed anew.
    is_armed: bool,
}

impl<S: 'static> Udm<S> {
    /// Has handlers interrupt this thread. Makes a timer of the system, and allocates some hundred
    /// kilobytes for messages that come in a handler. Runs the handlers of messages that are there.
    ///
    /// # Safety
    ///
    /// Handlers run between any two instructions of this thread that are not in a section: also in
    /// the middle of the allocator, of a lock that the thread holds, or of output. Until the value
    /// is dropped, handlers that may be called (those that were set before, and those that are set
    /// later) do nothing but what a signal handler may do (`signal-safety(7)`), and:
    ///
    /// * They allocate and free nothing, take no lock that code of this thread takes outside of
    ///   sections, write to no stream of the standard library, touch no thread-local variable that
    ///   such code uses, and do not panic.
    /// * Of this crate they use the state and the area, the message (and a [`Message`] with
    ///   [room](crate::Message::reserve) for further ones), injections of words, bytes and data, and
    ///   the register; no [spawn](crate::Context::spawn).
    /// * The interface of the group is used for nothing but end points of this crate.
    ///
    /// Data that sections and handlers share are safe: a handler never runs in a section.
    ///
    /// [`Message`]: crate::Message
    ///
    /// # Errors
    ///
    /// The signal is none of the four, or has a handler already; a network processor drives the
    /// interface, a node is on another host, or another end point of this interface interrupts; the
    /// system has no timer left.
    #[allow(unsafe_code)]
    pub unsafe fn with_signals(mut self, options: SignalOptions) -> Result<Signals<S>, Error> {
        // The end of a section runs what the section has taken out of the network.
        self.interrupt = Interrupt::Safepoint;
        self.end_atomic(INTERRUPT_DISABLE)?;
        let endpoint = &mut self.context.endpoint;
        let group = Arc::clone(&endpoint.group);
        if group.manager.session().strategy() != Strategy::Proc {
            let reason = "a network processor receives (open the interface with Strategy::Proc)";
            return Err(Error::NoSignals { reason });
        }
        endpoint.prepare_interrupts()?;
        self.context.message.reserve_all();
        let served = Served {
            udm: self,
            again: SOON,
            is_armed: false,
        };
        let served = Interruptible::new(served, options.signal)?;
        let signals = Signals { served };
        let Some(mut held) = signals.served.hold() else {
            return Err(Error::SectionOpen);
        };
        let mut armed = Ok(true);
        group.manager.session().each_doorbell(|descriptor| {
            if armed == Ok(true) {
                armed = raise_at(descriptor, options.signal);
                held.is_armed |= armed == Ok(true);
            }
        });
        if !armed? {
            let reason = "another end point of this interface interrupts (give it its own)";
            return Err(Error::NoSignals { reason });
        }
        held.is_armed = true;
        let listener = Box::new(signals.served.raiser());
        group.manager.session().set_listener(Some(listener));
        held.serve_now(false);
        drop(held);
        Ok(signals)
    }
}

impl<S: 'static> Signals<S> {
    /// Begins a section. No handler runs until it ends, but for those that it polls for. Makes no
    /// call of the system.
    ///
    /// # Errors
    ///
    /// The program is in a section, a handler or a section has panicked, or the interface is of no
    /// use any more.
    pub fn atomic(&self) -> Result<Suspension<'_, S>, Error> {
        let mut held = self.served.hold().ok_or(Error::SectionOpen)?;
        held.udm.check()?;
        held.udm.begin_atomic(INTERRUPT_DISABLE)?;
        Ok(Suspension {
            held,
            is_ended: false,
        })
    }

    /// The signal.
    pub fn signal(&self) -> i32 {
        self.served.signal()
    }
}

impl<S: 'static> Drop for Served<S> {
    fn drop(&mut self) {
        let manager = &self.udm.context.endpoint.group.manager;
        let mut session = manager.session();
        if self.is_armed {
            session.set_listener(None);
            session.each_doorbell(raise_none_at);
            session.end_wait();
        }
    }
}

impl<S: 'static> Serve for Served<S> {
    fn serve(&mut self, is_interrupt: bool) -> Option<Duration> {
        let group = Arc::clone(&self.udm.context.endpoint.group);
        let mut interruption = None;
        if is_interrupt {
            interruption = group.manager.interrupt();
            if interruption.is_none() {
                // A call of another end point has it.
                let again = self.again;
                self.again = (again * 2).min(LATE);
                return Some(again);
            }
        }
        self.again = SOON;
        self.udm.context.endpoint.is_interrupt = is_interrupt;
        let settled = settle(&mut self.udm);
        self.udm.context.endpoint.is_interrupt = false;
        drop(interruption);
        settled.unwrap_or_else(|error| {
            // The program hears of it when it begins a section.
            self.udm.fail_later(error);
            None
        })
    }
}

/// Runs handlers until no message is there, and every peer that sends one from now on rings. If
/// messages go on coming, the rest is for later, after the time that is returned.
fn settle<S: 'static>(udm: &mut Udm<S>) -> Result<Option<Duration>, Error> {
    for _ in 0..VISITS_MAX {
        let ran = udm.upcall(VISIT)?;
        let endpoint = &udm.context.endpoint;
        if ran == VISIT || endpoint.has_more() {
            continue;
        }
        let listening = endpoint.group.manager.session().listen();
        if listening.is_quiet {
            return Ok(listening.again);
        }
    }
    Ok(Some(SOON))
}

impl<S: 'static> Suspension<'_, S> {
    /// Ends the section, as dropping it does, which cannot tell of errors.
    pub fn end(mut self) -> Result<(), Error> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.is_ended = true;
        self.held.udm.end_atomic(INTERRUPT_DISABLE)?;
        let ran = self.held.udm.upcall(VISIT)?;
        let manager = &self.held.udm.context.endpoint.group.manager;
        let is_listening = manager.session().is_listening();
        if ran > 0 || !is_listening || self.held.take_pending() {
            self.held.serve_now(false);
            self.held.udm.check()?;
        }
        Ok(())
    }
}

impl<S: 'static> Deref for Suspension<'_, S> {
    type Target = Udm<S>;

    fn deref(&self) -> &Udm<S> {
        &self.held.udm
    }
}

impl<S: 'static> DerefMut for Suspension<'_, S> {
    fn deref_mut(&mut self) -> &mut Udm<S> {
        &mut self.held.udm
    }
}

impl<S: 'static> Drop for Suspension<'_, S> {
    fn drop(&mut self) {
        if self.is_ended {
            return;
        }
        if std::thread::panicking() {
            // No handler sees what was changed in part.
            self.held.udm.break_off();
        } else if let Err(error) = self.finish() {
            self.held.udm.fail_later(error);
        }
    }
}

/// The host of an end point by signal: handlers and program are one thread.
const _: fn(Udm<()>) -> Udm<(), ProcessHost> = |udm| udm;
