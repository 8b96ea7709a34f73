//! Handlers that interrupt a program which makes no calls: in a thread of their own.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use hamlyn::engine::packet::PortName;
use hamlyn::host::process::ProcessHost;
use hamlyn::host::sharing::AnyThread;
use hamlyn::{Host, Manager, Source, Wait};

use crate::error::Error;
use crate::group::Shared;
use crate::limits::{BARRIER, VISIT, VISITS_MAX};
use crate::options::Interrupt;
use crate::uac::INTERRUPT_DISABLE;
use crate::udm::Udm;

/// An end point whose handlers run in a thread of their own, at once when messages come, also while
/// the program computes; never while it is in a section. The thread sleeps while none come. It
/// takes an interface that threads share ([`hamlyn::open_shared`]).
///
/// The paper suspends the program's thread for a handler; here both run at the same time outside of
/// sections, and what they share is reached in sections only (decision 59).
pub struct Upcalls<S: Send + 'static, H: Host = ProcessHost<AnyThread>> {
    shared: Arc<Mutex<Udm<S, H>>>,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A section of the program: the end point in its hands, and no handler runs. Its end runs the
/// handlers of messages that are there.
pub struct Exclusive<'a, S: 'static, H: Host = ProcessHost<AnyThread>> {
    udm: MutexGuard<'a, Udm<S, H>>,
    is_ended: bool,
}

impl<S: Send + 'static, H: Host + 'static> Udm<S, H>
where
    Udm<S, H>: Send,
    Manager<H>: Send + Sync,
{
    /// Gives handlers a thread of their own, which it starts.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub fn with_upcalls(mut self) -> Result<Upcalls<S, H>, Error> {
        // The end of a section runs what the section has taken out of the network.
        self.interrupt = Interrupt::Safepoint;
        self.end_atomic(INTERRUPT_DISABLE)?;
        let group = Arc::clone(&self.context.endpoint.group);
        let port = self.context.endpoint.port_name();
        let shared = Arc::new(Mutex::new(self));
        let stops = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new().name("udm upcalls".into());
        let its = (Arc::clone(&shared), Arc::clone(&stops));
        let spawned = thread.spawn(move || {
            let (shared, stops) = its;
            loop {
                // It waits for the end of a section. Messages that are at hand are not told again,
                // so the first look is before the first wait.
                let Ok(mut udm) = shared.lock() else {
                    return;
                };
                if let Err(error) = udm.upcall(VISIT) {
                    // The program hears of it when it begins a section.
                    udm.fail_later(error);
                    return;
                }
                let has_more = udm.context.endpoint.has_more();
                drop(udm);
                // Others that wait for the lock have their turn.
                std::thread::yield_now();
                // The message that says so may have been taken just now.
                if stops.load(Ordering::Relaxed) || !has_more && !await_messages(&group, port) {
                    return;
                }
            }
        });
        Ok(Upcalls {
            thread: Some(spawned.map_err(|_| Error::NoThread)?),
            shared,
            stops,
        })
    }
}

/// Returns when messages are there: false if the interface is of no use any more.
fn await_messages<H: Host>(group: &Shared<H>, port: PortName) -> bool {
    let mut session = group.manager.session();
    let sources = [Source::PortOf(port)];
    session.await_any(&sources, Wait::Forever).is_ok()
}

impl<S: Send + 'static, H: Host> Upcalls<S, H> {
    /// Begins a section: waits for a handler that runs. A thread begins one at a time, and holds no
    /// session of the manager meanwhile.
    ///
    /// # Errors
    ///
    /// A handler or a section has panicked, or the interface is of no use any more.
    pub fn atomic(&self) -> Result<Exclusive<'_, S, H>, Error> {
        let mut udm = self.shared.lock().map_err(|_| Error::HandlerPanicked)?;
        udm.check()?;
        udm.begin_atomic(INTERRUPT_DISABLE)?;
        Ok(Exclusive {
            udm,
            is_ended: false,
        })
    }
}

impl<S: Send + 'static, H: Host> Drop for Upcalls<S, H> {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        // A message to this node wakes the thread, and is no round of a barrier.
        let woken = {
            let mut udm = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            let me = udm.me();
            let no_round = u32::MAX.to_le_bytes();
            udm.context
                .endpoint
                .send_any(me, BARRIER, &no_round, Wait::Forever)
        };
        // Without an interface the thread has ended, or does at its next look.
        if let (Ok(()), Some(thread)) = (woken, self.thread.take()) {
            // It panicked where a handler did, which the program has heard.
            let _ = thread.join();
        }
    }
}

impl<S: 'static, H: Host> Exclusive<'_, S, H> {
    /// Ends the section, as dropping it does, which cannot tell of errors.
    pub fn end(mut self) -> Result<(), Error> {
        self.finish()
    }

    /// Runs handlers until no message is there: of those that the section took out of the network
    /// the thread does not hear. After so many it hears of those that go on coming.
    fn finish(&mut self) -> Result<(), Error> {
        self.is_ended = true;
        self.udm.end_atomic(INTERRUPT_DISABLE)?;
        for _ in 0..VISITS_MAX {
            let ran = self.udm.upcall(VISIT)?;
            if ran == 0 && !self.udm.context.endpoint.has_more() {
                break;
            }
        }
        Ok(())
    }
}

impl<S: 'static, H: Host> Deref for Exclusive<'_, S, H> {
    type Target = Udm<S, H>;

    fn deref(&self) -> &Udm<S, H> {
        &self.udm
    }
}

impl<S: 'static, H: Host> DerefMut for Exclusive<'_, S, H> {
    fn deref_mut(&mut self) -> &mut Udm<S, H> {
        &mut self.udm
    }
}

impl<S: 'static, H: Host> Drop for Exclusive<'_, S, H> {
    fn drop(&mut self) {
        // After a panic the lock tells of it, and no handler sees what was changed in part.
        if !self.is_ended
            && !std::thread::panicking()
            && let Err(error) = self.finish()
        {
            self.udm.fail_later(error);
        }
    }
}
