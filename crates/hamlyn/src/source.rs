//! Several things that one wait looks at, and tasks that wait for one of them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use hamlyn_engine::packet::PortName;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Host, HostError};

use crate::completions::CompletionQueue;
use crate::interface::Interface;
use crate::manager::Manager;
use crate::port::Port;
use crate::port_set::PortSet;
use crate::queue::Queue;
use crate::session::Session;
use crate::tasks::{Interest, Waiter};
use crate::wait::Wait;

/// Something that a wait looks at ([`Session::await_any`](crate::Session::await_any),
/// [`Manager::ready`](crate::Manager::ready)).
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A queue in which messages are announced.
    Messages(&'a Queue),
    /// The messages of a port.
    Port(&'a Port),
    /// The messages of a port that another thread has in hand: none of them has been shown and kept.
    PortOf(PortName),
    /// The messages of a set of ports.
    PortSet(&'a PortSet),
    /// Completions.
    Completions(&'a CompletionQueue),
}

impl Source<'_> {
    fn interest(&self) -> Interest {
        match self {
            Self::Messages(queue) => Interest::Messages(queue.reader.unread(), None),
            Self::Port(port) => Interest::Port(port.name),
            Self::PortOf(name) => Interest::Port(*name),
            Self::PortSet(set) => Interest::PortSet(set.name),
            Self::Completions(queue) => Interest::Completions(queue.name),
        }
    }
}

impl<H: Host> Interface<H> {
    /// The first of them that is ready.
    fn first_ready(&mut self, sources: &[Source<'_>]) -> Option<usize> {
        sources.iter().position(|source| self.is_ready(*source))
    }
}

impl<H: Host> Session<'_, H> {
    /// Waits until one of several is ready: the first of those that are, by its place in `sources`.
    /// Nothing if none was in time. Does not allocate. At least one of them should be given.
    ///
    /// Moves packets while none is ready, so messages lie in their queues when this returns; and
    /// none as long as one is, so take what that has, or leave it out.
    pub fn await_any(
        &mut self,
        sources: &[Source<'_>],
        wait: Wait,
    ) -> Result<Option<usize>, HostError> {
        self.wait_for(wait, |session| {
            if let Some(ready) = session.first_ready(sources) {
                return Ok(Some(ready));
            }
            session.poll_beside_processor();
            Ok(session.first_ready(sources))
        })
    }
}

impl<H: Host> Manager<H> {
    /// Waits, as a future, until that source is ready: something can be taken from it at once
    /// ([`Interface::is_ready`](crate::Interface::is_ready)). The task is woken when it is, and not
    /// for what comes to others; only if no other task waits for this manager, it may look once for
    /// each. A task may wait for several, with a future for each.
    ///
    /// An event loop or a task must drive the manager ([`Manager::register_waker`]). Does not
    /// block, nor allocate but for more tasks than waited before. Dropping it loses nothing.
    ///
    /// # Errors
    ///
    /// The manager cannot be driven any more.
    pub fn ready<'a>(&'a self, source: Source<'a>) -> Ready<'a, H> {
        Ready {
            manager: self,
            source,
            waiter: Waiter::new(),
        }
    }
}

/// A future that is ready when a source is: [`Manager::ready`](crate::Manager::ready).
#[must_use = "a future does nothing unless it is awaited"]
pub struct Ready<'a, H: Host = ProcessHost> {
    manager: &'a Manager<H>,
    source: Source<'a>,
    waiter: Waiter,
}

impl<H: Host> Future for Ready<'_, H> {
    type Output = Result<(), HostError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let source = self.source;
        self.manager.poll_look_by(&self.waiter, context, |session| {
            if !session.is_ready(source) {
                session.poll_beside_processor();
            }
            Ok(match session.is_ready(source) {
                true => Ok(()),
                false => Err(source.interest()),
            })
        })
    }
}

impl<H: Host> Drop for Ready<'_, H> {
    fn drop(&mut self) {
        self.manager.abandon(&self.waiter);
    }
}

impl<H: Host> fmt::Debug for Ready<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
