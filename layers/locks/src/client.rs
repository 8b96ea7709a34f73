//! The client end.

use std::rc::Rc;

use hamlyn::host::process::ProcessHost;
use hamlyn::{Host, Wait};
use hamlyn_am::{Node, Tag};

use crate::error::LockError;
use crate::lock::Lock;
use crate::mode::Mode;
use crate::options::NAME_BYTES_MAX;
use crate::session::Inner;
use crate::table::Operation;

/// A client: one owner of locks. Locks of different clients exclude each other, also within a
/// program; circles are looked for among clients.
///
/// It stays in the thread of its node. Its calls run its own handlers only.
pub struct LockClient<H: Host = ProcessHost> {
    inner: Rc<Inner<H>>,
}

impl<H: Host> LockClient<H> {
    /// A client of these servers, by the names of their nodes: all clients must be given the same,
    /// in any order. `tag` is that of the servers ([`ServerOptions::tag`](crate::ServerOptions)).
    /// Connects to none yet. Allocates.
    pub fn open(node: &Node<H>, servers: &[&str], tag: Tag) -> Result<Self, LockError> {
        let inner = Inner::open(node, servers, tag)?;
        Ok(Self {
            inner: Rc::new(inner),
        })
    }

    /// Locks the resource of that name, and waits until the lock is held, as long as `wait` says.
    /// If it is not by then, it is cancelled. The first lock of a server connects to it, which may
    /// take as long once more, and allocates.
    ///
    /// # Errors
    ///
    /// [`LockError::TimedOut`], [`LockError::Refused`] and [`LockError::ServerLost`] above all.
    pub fn acquire(&self, name: &str, mode: Mode, wait: Wait) -> Result<Lock<H>, LockError> {
        let lock = self.begin(name, mode, false, wait)?;
        lock.granted(wait)?;
        Ok(lock)
    }

    /// The same, but it never waits for another lock: it is refused as
    /// [busy](crate::Refusal::Busy) if one is in the way.
    /// `wait` is for the server.
    pub fn try_acquire(&self, name: &str, mode: Mode, wait: Wait) -> Result<Lock<H>, LockError> {
        let lock = self.begin(name, mode, true, wait)?;
        lock.granted(wait)?;
        Ok(lock)
    }

    /// Asks for a lock, and does not wait for it: [`Lock::granted`] does. `wait` is for the
    /// connection, and for a credit of the server.
    pub fn enqueue(&self, name: &str, mode: Mode, wait: Wait) -> Result<Lock<H>, LockError> {
        self.begin(name, mode, false, wait)
    }

    fn begin(
        &self,
        name: &str,
        mode: Mode,
        is_try: bool,
        wait: Wait,
    ) -> Result<Lock<H>, LockError> {
        let name = name.as_bytes();
        if name.len() > NAME_BYTES_MAX {
            let (length_bytes, most_bytes) = (name.len(), NAME_BYTES_MAX);
            return Err(LockError::NameTooLong {
                length_bytes,
                most_bytes,
            });
        }
        let server = self.inner.servers.master(name);
        self.inner.connect(server, wait)?;
        // From now on it is removed when it is dropped.
        let lock = Lock::new(Rc::clone(&self.inner), self.inner.new_place(server));
        let operation = Operation::Lock { mode, is_try, name };
        self.inner.send(lock.place, &operation, wait)?;
        Ok(lock)
    }

    /// Hears of locks, as long as `wait` says: which were granted, and which block others
    /// ([`Lock::blocking`]). Returns the number of messages that came. Sends releases that could not
    /// be sent.
    pub fn serve(&self, wait: Wait) -> Result<usize, LockError> {
        for server in 0..self.inner.names.len() {
            match self.inner.send_unsent(server, Wait::Poll) {
                Ok(()) | Err(LockError::TimedOut | LockError::ServerLost { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.inner.bundle.serve(wait)?)
    }

    /// The server that masters the resource of that name.
    pub fn server_of(&self, name: &str) -> &str {
        &self.inner.names[self.inner.servers.master(name.as_bytes())]
    }
}

impl<H: Host> std::fmt::Debug for LockClient<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockClient")
            .field("servers", &self.inner.names)
            .finish_non_exhaustive()
    }
}
