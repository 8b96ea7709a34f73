//! Several things that one wait looks at.

use hamlyn_host::{Host, HostError};

use crate::completions::CompletionQueue;
use crate::interface::Interface;
use crate::port::Port;
use crate::queue::Queue;
use crate::session::Session;
use crate::wait::Wait;

/// Something that a wait looks at ([`Session::await_any`](crate::Session::await_any)).
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A queue in which messages are announced.
    Messages(&'a Queue),
    /// The messages of a port.
    Port(&'a Port),
    /// Completions.
    Completions(&'a CompletionQueue),
}

impl<H: Host> Interface<H> {
    /// The first of them that is ready.
    fn first_ready(&mut self, sources: &[Source<'_>]) -> Option<usize> {
        sources.iter().position(|source| self.is_ready(*source))
    }

    /// True if something can be taken from it at once: a message, an error that says that messages
    /// were lost, or a completion. Does not move packets.
    pub fn is_ready(&mut self, source: Source<'_>) -> bool {
        if self.is_forked() {
            return false;
        }
        match source {
            Source::Messages(queue) => queue.reader.is_pending(),
            Source::Port(port) => self.has_message(port),
            Source::Completions(queue) => self.has_completion(queue),
        }
    }
}

impl<H: Host> Session<'_, H> {
    /// Waits until one of several is ready: the first of those that are, by its place in `sources`.
    /// Nothing if none was in time. Does not allocate. At least one of them should be given.
    ///
    /// Each look moves packets, so messages lie in their queues when this returns.
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
