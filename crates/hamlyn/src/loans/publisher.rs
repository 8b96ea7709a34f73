//! The publishing end.

use std::fmt;
use std::ops::{Deref, DerefMut};

use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Host, HostError};
use hamlyn_ring::pool::{Chunk, Pool};

use super::options::{PublisherOptions, SlowReaders};
use super::readers::{Published, Readers};
use super::window::Held;
use crate::error::{OpenError, SendError};
use crate::forks::from_forked;

use crate::item::ItemHeader;
use crate::manager::{Manager, ManagerRef};
use crate::session::Session;
use crate::wait::{Wait, Waiting};

/// Calls after which messages of readers are taken in, if nothing has made that necessary before.
const CALLS_BETWEEN_LOOKS: u32 = 16;

/// The publishing end. See [the module](crate::loans).
pub struct Publisher<H: Host = ProcessHost> {
    end: End,
    manager: ManagerRef<H>,
}

/// A publisher without its manager.
struct End {
    readers: Readers,
    held: Held,
    options: PublisherOptions,
    /// The number of the next message.
    next: u64,
    /// Calls until messages of readers are taken in.
    unlooked: u32,
}

/// A message was not loaned.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoanError {
    /// It would be too long.
    #[error(
        "a message of {length_bytes} bytes, but this publisher's have at most {limit_bytes}: open it with longer ones"
    )]
    TooLong {
        /// Length of the message.
        length_bytes: usize,
        /// The longest.
        limit_bytes: u32,
    },
    /// All chunks were in use when the time was over.
    #[error(
        "all {chunks} messages are loaned or with readers: wait longer, or open the publisher with more"
    )]
    AllInUse {
        /// How many there are.
        chunks: u32,
    },
    /// Waiting failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl<H: Host> Publisher<H> {
    pub(crate) fn bind(
        manager: &Manager<H>,
        item: &str,
        options: PublisherOptions,
        header: ItemHeader,
    ) -> Result<Self, OpenError> {
        options.check()?;
        let (message_bytes, chunks) = (options.message_bytes as usize, options.pool_chunks());
        let held = match options.slow_readers {
            SlowReaders::Latest => Held::with_newest(Pool::with_head(message_bytes, chunks)?),
            SlowReaders::Lose => Held::with_spare(Pool::new(message_bytes, chunks)?),
            SlowReaders::Block => Held::new(Pool::new(message_bytes, chunks)?),
        };
        let mut entered = manager.enter()?;
        let readers = Readers::bind(&mut entered, item, header, options, &held)?;
        drop(entered);
        let end = End {
            readers,
            held,
            options,
            next: 0,
            unlooked: 0,
        };
        Ok(Self {
            end,
            manager: manager.hold(),
        })
    }

    /// A message of `len` bytes, to be written in place. Its bytes are those of some message
    /// before, or zeros. Does not allocate, and takes the same time whatever the length. Blocks for
    /// as long as `wait` says while all chunks are in use.
    #[inline]
    pub fn loan(&mut self, len: usize, wait: Wait) -> Result<Loan<'_, H>, LoanError> {
        // Its chunks are the parent's, and the parent's readers see them.
        self.manager.check()?;
        let chunk = match self.end.held.take(len) {
            Some(chunk) => chunk,
            None => self.await_chunk(len, wait)?,
        };
        Ok(Loan {
            publisher: self,
            chunk: Some(chunk),
        })
    }

    #[cold]
    #[inline(never)]
    fn await_chunk(&mut self, len: usize, wait: Wait) -> Result<Chunk, LoanError> {
        let PublisherOptions {
            message_bytes,
            chunks,
            ..
        } = self.end.options;
        if len > message_bytes as usize {
            return Err(LoanError::TooLong {
                length_bytes: len,
                limit_bytes: message_bytes,
            });
        }
        let chunk = self.wait_for(wait, |end, _| end.held.take(len))?;
        chunk.ok_or(LoanError::AllInUse { chunks })
    }

    /// Takes in what readers have said: who came, who left, what was given back; and sends what is
    /// kept for those that have room again. Other calls do the same when they need it. Does not
    /// block.
    pub fn poll(&mut self) {
        if let Ok(mut session) = self.manager.enter() {
            self.end.look(&mut session, true);
        }
    }

    /// Waits until there are as many readers. Their number; less than that if the time was over.
    pub fn await_readers(&mut self, readers: usize, wait: Wait) -> Result<usize, HostError> {
        self.wait_for(wait, |end, _| {
            (end.readers.count() >= readers).then_some(())
        })?;
        Ok(self.readers())
    }

    /// Waits until every reader has room for a message; false if the time was over. The room stays
    /// until the next message is published.
    pub fn await_room(&mut self, wait: Wait) -> Result<bool, HostError> {
        let mut session = self.manager.enter()?;
        self.end.await_room(&mut session, &mut Waiting::new(wait))
    }

    /// Waits until all that was published is handed over: every reader has the pool, and every copy
    /// is sent; false if the time was over. To be called before a publisher is dropped whose last
    /// messages matter: what a reader has not got by then, it loses. A reader fetches the pool in
    /// its first receive.
    pub fn flush(&mut self, wait: Wait) -> Result<bool, HostError> {
        let flushed = self.wait_for(wait, |end, session| {
            end.readers.is_flushed(session).then_some(())
        });
        Ok(flushed?.is_some())
    }

    fn wait_for<R>(
        &mut self,
        wait: Wait,
        is_there: impl FnMut(&mut End, &Session<'_, H>) -> Option<R>,
    ) -> Result<Option<R>, HostError> {
        let mut session = self.manager.enter()?;
        self.end
            .wait_for(&mut session, &mut Waiting::new(wait), is_there)
    }

    /// How many readers there are.
    pub fn readers(&self) -> usize {
        self.end.readers.count()
    }

    /// Messages that readers did not get because they were slow, those gone included.
    pub fn lost(&self) -> u64 {
        self.end.readers.lost()
    }

    /// Readers that lost their place because they broke the protocol.
    pub fn misbehaved(&self) -> u64 {
        self.end.readers.misbehaved()
    }

    /// Chunks that are neither loaned nor with readers, as far as is known: [`Publisher::poll`]
    /// takes in what was given back.
    pub fn chunks_free(&self) -> usize {
        // The chunk of the newest message is not one of those.
        self.end.held.free().min(self.end.options.chunks as usize)
    }
}

impl End {
    fn look<H: Host>(&mut self, session: &mut Session<'_, H>, rests: bool) {
        // Readers that have come lately are told of the next message, or sleep on.
        self.unlooked = match self.options.is_latest() {
            true => 0,
            false => CALLS_BETWEEN_LOOKS,
        };
        self.readers.look(session, &mut self.held, rests);
    }

    /// Waits until `is_there` finds something, or the time is over. What was given back is taken in
    /// at once, all else before the wait sleeps.
    fn wait_for<H: Host, R>(
        &mut self,
        session: &mut Session<'_, H>,
        waiting: &mut Waiting,
        mut is_there: impl FnMut(&mut Self, &Session<'_, H>) -> Option<R>,
    ) -> Result<Option<R>, HostError> {
        let mut seen = None;
        session.wait_within(waiting, |session, waiting| {
            session.poll();
            self.readers.collect(&mut self.held);
            if let Some(found) = is_there(self, session) {
                return Ok(Some(found));
            }
            let (activity, rests) = (Some(session.activity()), !waiting.polls());
            if activity == seen && !rests {
                return Ok(None);
            }
            seen = activity;
            self.look(session, rests);
            Ok(is_there(self, session))
        })
    }

    fn await_room<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        waiting: &mut Waiting,
    ) -> Result<bool, HostError> {
        if self.readers.full().is_none() {
            return Ok(true);
        }
        let has_room = |end: &mut Self, _: &Session<'_, H>| match end.readers.full() {
            Some(_) => None,
            None => Some(()),
        };
        Ok(self.wait_for(session, waiting, has_room)?.is_some())
    }

    fn publish<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        mut chunk: Chunk,
        wait: Wait,
    ) -> Result<Published, SendError> {
        let mut waiting = Waiting::new(match self.options.slow_readers {
            SlowReaders::Block => wait,
            _ => Wait::Poll,
        });
        match self.unlooked.checked_sub(1) {
            Some(unlooked) => self.unlooked = unlooked,
            None => self.look(session, false),
        }
        if let Some(peer) = self.readers.full() {
            let has_room = match self.options.slow_readers {
                SlowReaders::Block => self.await_room(session, &mut waiting),
                _ => {
                    self.look(session, false);
                    Ok(true)
                }
            };
            if has_room != Ok(true) {
                self.held.give_back(chunk);
                has_room?;
                return Err(SendError::WouldBlock { peer });
            }
        }
        let number = self.next;
        self.next += 1;
        self.held.number(&mut chunk, number);
        let index = self.held.hold(chunk);
        let mut published = Published {
            number,
            readers: 0,
            lost: 0,
        };
        let (readers, held) = (&mut self.readers, &mut self.held);
        readers.announce(session, held, index, &mut waiting, &mut published);
        if self.options.is_latest() {
            // Announced first, so that a reader that has room finds it in its list.
            held.show_newest(index, number);
            readers.ring(session);
        }
        held.release(index);
        Ok(published)
    }
}

impl<H: Host> fmt::Debug for Publisher<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("lobby", self.end.readers.lobby())
            .field("options", &self.end.options)
            .field("readers", &self.readers())
            .finish_non_exhaustive()
    }
}

/// A message to be written in place. It reads and writes as its bytes. One that is dropped is not
/// published.
pub struct Loan<'a, H: Host = ProcessHost> {
    publisher: &'a mut Publisher<H>,
    /// There until it is published.
    chunk: Option<Chunk>,
}

impl<H: Host> Loan<'_, H> {
    /// Announces the message to all readers. Nobody should write it any more, and nobody can by
    /// this library. Does not allocate, and takes the same time whatever the length, but for
    /// readers that get copies. With [`SlowReaders::Block`] it blocks for as long as `wait` says
    /// while a reader has no room; if the time is over, the message is given up, and nobody gets it
    /// ([`Publisher::await_room`] waits before). Once it is announced, a copy that is not handed
    /// over when the time is over is sent by later calls. It never blocks otherwise.
    #[inline]
    pub fn publish(mut self, wait: Wait) -> Result<Published, SendError> {
        match self.chunk.take() {
            Some(chunk) => {
                let Publisher { end, manager } = &mut *self.publisher;
                end.publish(&mut manager.enter()?, chunk, wait)
            }
            None => Err(SendError::Finished),
        }
    }
}

impl<H: Host> Deref for Loan<'_, H> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.chunk.as_deref().unwrap_or_default()
    }
}

impl<H: Host> DerefMut for Loan<'_, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.chunk.as_deref_mut().unwrap_or_default()
    }
}

impl<H: Host> Drop for Loan<'_, H> {
    fn drop(&mut self) {
        if let Some(chunk) = self.chunk.take() {
            self.publisher.end.held.give_back(chunk);
        }
    }
}

impl<H: Host> fmt::Debug for Loan<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loan({} bytes)", self.len())
    }
}

from_forked! {
    LoanError: Self::Host;
}
