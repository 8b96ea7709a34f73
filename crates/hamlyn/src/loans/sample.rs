//! Messages in the hands of a reader.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::rc::Rc;
use std::task::{Context, Poll};

use hamlyn_host::Host;
use hamlyn_host::process::ProcessHost;
use hamlyn_ring::pool::{SharedPool, View};
use hamlyn_ring::shared::OutOfRange;

use super::returns::{Came, Place};
use super::subscriber::{Route, Subscriber};
use crate::drop_list::DropList;
use crate::error::ReceiveError;
use crate::wait::Wait;

/// A message that was published, to be read in place or as a copy. It is given back when it is
/// dropped. Its subscriber receives no other meanwhile, unless it is kept.
pub struct Sample<'a, H: Host = ProcessHost> {
    subscriber: &'a mut Subscriber<H>,
    came: Came,
    /// What it is kept in gives it back.
    is_kept: bool,
}

impl<H: Host> Subscriber<H> {
    /// The next message. Nothing if none came in time. [`ReceiveError::Closed`] when the publisher
    /// has ended and [`ReceiveError::PeerLost`] when it is gone, after all that it had announced;
    /// what it had announced is lost if it was gone before the first receive, and copies that it
    /// had not sent ([`Publisher::flush`](super::Publisher::flush)). Does not allocate, but for the
    /// first message, and for copies. Blocks for as long as `wait` says; the first call that finds
    /// the publisher's answer fetches its pool, which takes 2 seconds more if the publisher's
    /// process does not hand it over, as one that is stopped: messages stay announced until it
    /// does.
    #[inline]
    pub fn recv(&mut self, wait: Wait) -> Result<Option<Sample<'_, H>>, ReceiveError> {
        let came = self.next_message(wait)?;
        Ok(came.map(|came| Sample {
            subscriber: self,
            came,
            is_kept: false,
        }))
    }
}

impl<H: Host> Subscriber<H> {
    /// Like [`Subscriber::recv`], for a task: it is woken when there may be a message
    /// ([`Manager::register_waker`](crate::Manager::register_waker)). Does not block, but for the
    /// first call that fetches the pool.
    pub fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Sample<'_, H>, ReceiveError>> {
        self.poll_message(context).map_ok(|came| Sample {
            subscriber: self,
            came,
            is_kept: false,
        })
    }

    /// Like [`Subscriber::recv`], as a future. An event loop or a task must drive the manager
    /// ([`Manager::register_waker`](crate::Manager::register_waker)). Dropping it loses nothing.
    pub async fn recv_async(&mut self) -> Result<Sample<'_, H>, ReceiveError> {
        let came = poll_fn(|context| self.poll_message(context)).await?;
        Ok(Sample {
            subscriber: self,
            came,
            is_kept: false,
        })
    }
}

impl<H: Host> Sample<'_, H> {
    /// Its number: they count all that its publisher published.
    pub fn number(&self) -> u64 {
        self.came.number
    }

    /// How many bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match (self.came.place, &self.subscriber.route) {
            (Some(place), _) => place.len,
            (None, Route::Copies(copies)) => copies.bytes().len(),
            (None, Route::Views(list)) => list.copy.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies bytes out, from `offset` on. The publisher may change the message at any time: check
    /// what was copied, and copy it once. Does not allocate.
    #[inline]
    pub fn read_at(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfRange> {
        match self.view() {
            Some(view) => view.read_at(offset, into),
            None => {
                let end = offset.checked_add(into.len()).ok_or(OutOfRange)?;
                let from = self.copied().and_then(|copy| copy.get(offset..end));
                into.copy_from_slice(from.ok_or(OutOfRange)?);
                Ok(())
            }
        }
    }

    /// A copy of all of it. Allocates.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        let read = self.read_at(0, &mut bytes);
        debug_assert!(read.is_ok(), "a sample has its length");
        bytes
    }

    /// The message where the publisher wrote it; nothing if it was copied.
    #[inline]
    pub fn view(&self) -> Option<View<'_>> {
        let (Some(place), Route::Views(list)) = (self.came.place, &self.subscriber.route) else {
            return None;
        };
        list.pool.as_ref()?.view(place.offset, place.len)
    }

    /// The message if it was copied to here: nobody changes it.
    pub fn copied(&self) -> Option<&[u8]> {
        match &self.subscriber.route {
            Route::Copies(copies) => Some(copies.bytes()),
            Route::Views(list) => self.came.place.is_none().then_some(&*list.copy),
        }
    }

    /// Keeps the message beyond the next one. Samples may be given back in any order, but the place
    /// of a message in the reader's list is taken by the one that comes [`Subscriber::depth`]
    /// messages later: as long as it is kept, its reader gets no more than those in between.
    /// Allocates.
    pub fn keep(mut self) -> Kept {
        let body = match (self.came, &self.subscriber.route) {
            (
                Came {
                    place: Some(place),
                    position: Some(position),
                    ..
                },
                Route::Views(list),
            ) => {
                let released = list.returns.released.clone();
                let pool = list.pool.clone();
                pool.map(|pool| (pool, place, position, released))
            }
            _ => None,
        };
        // What is copied to here needs nothing of the publisher's any more, and is given back at
        // once.
        let body = match body {
            Some((pool, place, position, released)) => {
                self.is_kept = true;
                KeptBody::Place {
                    pool,
                    place,
                    position,
                    released,
                }
            }
            None => KeptBody::Copy(match &mut self.subscriber.route {
                Route::Copies(copies) => copies.bytes().to_vec(),
                Route::Views(list) => std::mem::take(&mut list.copy),
            }),
        };
        let number = self.came.number;
        Kept {
            number,
            body,
            in_thread: PhantomData,
        }
    }
}

impl<H: Host> Drop for Sample<'_, H> {
    #[inline]
    fn drop(&mut self) {
        let Subscriber { route, manager, .. } = &mut *self.subscriber;
        match route {
            Route::Views(list) => {
                let Some(position) = self.came.position.filter(|_| !self.is_kept) else {
                    return;
                };
                match manager.enter_to_leave() {
                    Some(mut session) => list.returns.give_back(&mut session, position),
                    None => list.returns.untold.push(position),
                }
            }
            // Otherwise by the subscriber's next call.
            Route::Copies(copies) => {
                if let Some(mut session) = manager.enter_to_leave() {
                    copies.give_back(&mut session);
                }
            }
        }
    }
}

impl<H: Host> fmt::Debug for Sample<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, len) = (self.number(), self.len());
        write!(f, "Sample({number}, {len} bytes)")
    }
}

/// A message that is kept. It is given back at the subscriber's next call after this is dropped. It
/// stays in its thread, so that the subscriber does not wait asleep for a publisher that waits for
/// this message.
pub struct Kept {
    number: u64,
    body: KeptBody,
    in_thread: PhantomData<Rc<()>>,
}

enum KeptBody {
    Place {
        pool: SharedPool,
        place: Place,
        position: u64,
        released: DropList<u64>,
    },
    Copy(Vec<u8>),
}

impl Kept {
    /// Its number, as [`Sample::number`].
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        match &self.body {
            KeptBody::Place { place, .. } => place.len,
            KeptBody::Copy(copy) => copy.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As [`Sample::read_at`].
    pub fn read_at(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfRange> {
        match &self.body {
            KeptBody::Place { pool, place, .. } => {
                let view = pool.view(place.offset, place.len).ok_or(OutOfRange)?;
                view.read_at(offset, into)
            }
            KeptBody::Copy(copy) => {
                let end = offset.checked_add(into.len()).ok_or(OutOfRange)?;
                into.copy_from_slice(copy.get(offset..end).ok_or(OutOfRange)?);
                Ok(())
            }
        }
    }

    /// As [`Sample::view`].
    pub fn view(&self) -> Option<View<'_>> {
        match &self.body {
            KeptBody::Place { pool, place, .. } => pool.view(place.offset, place.len),
            KeptBody::Copy(_) => None,
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let KeptBody::Place {
            position, released, ..
        } = &self.body
        {
            released.note(*position);
        }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, len) = (self.number, self.len());
        write!(f, "Kept({number}, {len} bytes)")
    }
}
