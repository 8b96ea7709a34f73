//! The stream protocol (`Hamlyn 3.3`): records, one way, from one sender to one
//! receiver, in order, without a copy at the receiver.
//!
//! The receiver's memory is an *extent*: pieces of equal size, a one-shot metadata entry for each.
//! The sender fills pieces in order, so it knows every ticket it will ever use, and all that comes
//! back is a count of pieces released. A record that is longer than a piece takes several that lie
//! side by side; several small ones may share a piece. When the receiver holds on to all pieces, or
//! a record is longer than the extent, the stream moves to a larger extent, up to the receiver's
//! limit. Or the first extent is as large as the limit, and sparse ([`StreamOptions::ahead`]).
//!
//! What the sender writes is hostile to the receiver and the other way round: positions, kinds
//! and lengths are checked, and a peer that breaks the protocol breaks only this stream.

mod control;
mod extent;
mod keeping;
mod offering;
mod options;
mod receiver;
mod sender;
mod short_way;
mod wire;

use std::fmt;
use std::future::poll_fn;
use std::mem::ManuallyDrop;
use std::ops::{ControlFlow, Deref};
use std::task::{Context, Poll};

use hamlyn_engine::slot::SlotInfo;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Destination, Host, Supply};

use crate::error::{ConnectError, FenceError, OpenError, ReceiveError, SendError};

use crate::item::{EndPoint, ItemHeader};
use crate::manager::{Manager, ManagerRef};
use crate::peer::PeerIdentity;
use crate::session::Session;
use crate::tasks::Interest;
use crate::wait::{Wait, Waiting};
use offering::{LOOK_EVERY, Offering};
use sender::fence_error;

pub use keeping::Kept;
pub use options::StreamOptions;
pub use wire::{SEED_BYTES, StreamSeed};

/// The receiving end. See the module.
#[derive(Debug)]
pub struct Receiver<H: Host = ProcessHost> {
    end: receiver::Receiver,
    /// How its sender finds it, if it is bound to an item.
    offering: Option<Offering>,
    manager: ManagerRef<H>,
}

/// A record, where it landed. It reads as its bytes, and gives their memory back when it is
/// dropped. Its stream delivers no other meanwhile.
pub struct Record<'a, H: Host = ProcessHost> {
    stream: &'a mut Receiver<H>,
}

impl<H: Host> Record<'_, H> {
    /// As [`Receiver::sender`].
    pub fn sender(&self) -> Option<PeerIdentity> {
        self.stream.sender()
    }

    /// Keeps the record beyond the next one. Read it with [`Receiver::view`]. Records may be given
    /// back in any order, but their sender is told of memory in order: it has to wait, or the
    /// stream has to grow, as long as an old record is kept. Allocates now and then.
    pub fn keep(self) -> Kept {
        let mut record = ManuallyDrop::new(self);
        record.stream.end.keep()
    }
}

impl<H: Host> Deref for Record<'_, H> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // It is held until this is dropped.
        self.stream.end.latest().unwrap_or(&[])
    }
}

impl<H: Host> Drop for Record<'_, H> {
    #[inline(always)]
    fn drop(&mut self) {
        let Receiver { end, manager, .. } = &mut *self.stream;
        if !end.release_at_once()
            && let Ok(mut session) = manager.enter()
        {
            end.release_slowly(&mut session);
        }
    }
}

impl<H: Host, B: AsRef<[u8]>> PartialEq<B> for Record<'_, H> {
    fn eq(&self, bytes: &B) -> bool {
        **self == *bytes.as_ref()
    }
}

impl<H: Host> AsRef<[u8]> for Record<'_, H> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<H: Host> fmt::Debug for Record<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Record").field(&&**self).finish()
    }
}

impl<H: Host> Receiver<H> {
    /// Opens the receiving end, with all the memory it starts with.
    pub fn new(manager: &Manager<H>, options: StreamOptions) -> Result<Self, OpenError> {
        Ok(Self {
            end: receiver::Receiver::new(&mut manager.enter()?, options)?,
            offering: None,
            manager: manager.hold(),
        })
    }

    /// A receiving end that its one sender finds under `item`.
    pub(crate) fn bind(
        manager: &Manager<H>,
        item: &str,
        options: StreamOptions,
        header: ItemHeader,
    ) -> Result<Self, OpenError> {
        let mut receiver = Self::new(manager, options)?;
        let seed = receiver.make_seed().to_bytes();
        let bound = manager
            .enter()?
            .core
            .bind(item, header, &seed, Supply::Once)?;
        receiver.offering = Some(Offering::new(bound));
        Ok(receiver)
    }

    /// What the sending end grows from (`Hamlyn 3.3`). For one sender.
    pub fn make_seed(&self) -> StreamSeed {
        self.end.make_seed()
    }

    /// The next record. Nothing if none came in time. [`ReceiveError::Closed`] when the sender has
    /// closed and all is received, and [`ReceiveError::PeerLost`] when the sender is gone. Before a
    /// sender has presented itself, none is bound to the stream; [`crate::Manager::next_event`]
    /// tells losses until then.
    #[inline(always)]
    pub fn recv(&mut self, wait: Wait) -> Result<Option<Record<'_, H>>, ReceiveError> {
        let is_delivered =
            self.end.deliver_short(&mut self.manager.enter()?.core) || self.recv_slowly(wait)?;
        // Made only if there is one: its drop gives the record's memory back.
        Ok(is_delivered.then(|| Record { stream: self }))
    }

    #[inline(never)]
    fn recv_slowly(&mut self, wait: Wait) -> Result<bool, ReceiveError> {
        let (end, offering) = (&mut self.end, &mut self.offering);
        let mut session = self.manager.enter()?;
        Ok(end.look_for_short(&mut session) || receive_slowly(end, offering, &mut session, wait)?)
    }

    /// As [`Receiver::recv`], for a task: it is woken when there may be a record
    /// ([`Manager::register_waker`]). Does not block, nor allocate.
    pub fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Record<'_, H>, ReceiveError>> {
        self.poll_delivered(context)
            .map_ok(|()| Record { stream: self })
    }

    /// As [`Receiver::recv`], as a future. An event loop or a task must drive the manager
    /// ([`Manager::register_waker`]). Dropping it loses nothing.
    pub async fn recv_async(&mut self) -> Result<Record<'_, H>, ReceiveError> {
        poll_fn(|context| self.poll_delivered(context)).await?;
        Ok(Record { stream: self })
    }

    fn poll_delivered(&mut self, context: &Context<'_>) -> Poll<Result<(), ReceiveError>> {
        let (end, offering) = (&mut self.end, &mut self.offering);
        end.will_wake_when_released(context.waker());
        self.manager.poll_look_for(context, |session| {
            let is_delivered = end.deliver_short(&mut session.core)
                || end.look_for_short(session)
                || receive_slowly(end, offering, session, Wait::Poll)?;
            Ok(match is_delivered {
                true => Ok(()),
                false => Err(end.interest()),
            })
        })
    }

    /// The bytes of a record that is kept. Nothing if it is another stream's.
    pub fn view(&self, kept: &Kept) -> Option<&[u8]> {
        self.end.kept(kept)
    }

    /// Gives back the memory of kept records that were dropped, as the next [`Receiver::recv`]
    /// would: for a program that makes none for long.
    pub fn reclaim(&mut self) {
        if let Ok(mut session) = self.manager.enter() {
            self.end.reclaim(&mut session);
        }
    }

    /// Shows each record to `each`, until it breaks, the time between two records is over, or the
    /// stream has ended. What it broke with; nothing otherwise.
    pub fn for_each<B>(
        &mut self,
        wait: Wait,
        mut each: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>, ReceiveError> {
        loop {
            match self.recv(wait) {
                Ok(Some(record)) => {
                    if let ControlFlow::Break(with) = each(&record) {
                        return Ok(Some(with));
                    }
                }
                Ok(None) | Err(ReceiveError::Closed) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// The sender's identity, for which the kernel or the handshake vouches, once it has presented
    /// itself; also after it is gone, as long as no other link has its place. The keys of a stream
    /// are for one holder: a peer that was given them before, and passed them on, may have sent
    /// records, too.
    pub fn sender(&self) -> Option<PeerIdentity> {
        let link = self.end.sender_link()?;
        self.manager.enter().ok()?.identity_of(link)
    }

    /// Bytes of memory that the stream has at present; with [`StreamOptions::ahead`] they are
    /// address space, of which pages are present as they are used.
    pub fn memory_bytes(&self) -> u64 {
        self.end.memory_bytes()
    }

    /// Packets refused at this stream's present memory, by reason, and more.
    pub fn info(&self) -> Result<Option<SlotInfo>, OpenError> {
        self.end.info(&*self.manager.enter()?)
    }
}

/// The next record, if it is no short one that lies ready.
#[inline(always)]
fn receive_slowly<H: Host>(
    end: &mut receiver::Receiver,
    offering: &mut Option<Offering>,
    session: &mut Session<'_, H>,
    wait: Wait,
) -> Result<bool, ReceiveError> {
    match offering.as_mut().filter(|it| it.is_open()) {
        None => end.receive_slowly(session, wait),
        Some(offering) => receive_first(end, offering, session, wait),
    }
}

/// The same, as long as the stream has no sender: its offer is looked at.
#[cold]
#[inline(never)]
fn receive_first<H: Host>(
    end: &mut receiver::Receiver,
    offering: &mut Offering,
    session: &mut Session<'_, H>,
    wait: Wait,
) -> Result<bool, ReceiveError> {
    let mut waiting = Waiting::new(wait);
    let received = session.wait_within(&mut waiting, |session, _| {
        let is_delivered = end.receive_slowly(session, Wait::Poll)?;
        let is_due = offering.is_due(session, end.sender().is_some());
        // A record that is delivered lies in the memory that would be renewed.
        if is_due && !is_delivered && end.renew(session)? {
            offering.offer(session, &end.make_seed())?;
        }
        let is_over = is_delivered || !offering.is_open();
        if !is_over {
            session.look_within(LOOK_EVERY);
        }
        Ok::<_, ReceiveError>(is_over.then_some(is_delivered))
    });
    match received? {
        // Its sender has come.
        Some(false) => {
            let left = session.left(&mut waiting);
            end.receive_slowly(session, left)
        }
        received => Ok(received.is_some()),
    }
}

/// The sending end. See the module.
#[derive(Debug)]
pub struct Sender<H: Host = ProcessHost> {
    end: sender::Sender,
    manager: ManagerRef<H>,
}

impl<H: Host> Sender<H> {
    pub(crate) fn connect(
        manager: &Manager<H>,
        to: EndPoint<'_>,
        header: ItemHeader,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        let connect = |session: &mut Session<'_, H>, seed: &[u8], left| {
            let end = sender::Sender::grow(session, &StreamSeed::from_bytes(seed)?, left)?;
            let greeted = *end.control();
            Ok((end, Some(greeted)))
        };
        Ok(Self {
            end: manager.enter()?.connect_to(to, header, wait, connect)?,
            manager: manager.hold(),
        })
    }

    /// Grows the sending end from a seed; connects if need be, and presents itself.
    pub fn grow(manager: &Manager<H>, seed: &StreamSeed, wait: Wait) -> Result<Self, ConnectError> {
        Ok(Self {
            end: sender::Sender::grow(&mut manager.enter()?, seed, wait)?,
            manager: manager.hold(),
        })
    }

    /// Sends a record of any length up to the receiver's limit. Large ones go out of `data` itself
    /// and the call lasts until they are handed over; small ones may be held back to share a piece
    /// when the receiver is behind, until [`Sender::flush`] or a later send. With [`Wait::Poll`] it
    /// never blocks: what cannot go at once is copied, and if not even that is possible, nothing is
    /// sent. So it is with what is left of a record of which a part was sent when the wait was
    /// over: it is copied and goes later, as the link has room. What was copied goes on with the
    /// next calls of this sender, [`Sender::flush`] among them; the manager's polls alone do not
    /// move it.
    #[inline(always)]
    pub fn send(&mut self, data: &[u8], wait: Wait) -> Result<(), SendError> {
        let is_sent = match self.manager.sending_half() {
            Some(mut sending_half) => {
                self.manager.check()?;
                self.end.send_short(&mut sending_half, data)
            }
            None => {
                let mut session = self.manager.enter()?;
                self.end.send_short(&mut *session.core, data)
            }
        };
        match is_sent {
            true => Ok(()),
            false => self.send_slowly(data, wait),
        }
    }

    #[inline(never)]
    fn send_slowly(&mut self, data: &[u8], wait: Wait) -> Result<(), SendError> {
        self.end.send(&mut self.manager.enter()?, data, wait)
    }

    /// As [`Sender::send`], for a task: it is woken when there may be room
    /// ([`Manager::register_waker`]), and the call is to be made again. Does not block.
    pub fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<(), SendError>> {
        let end = &mut self.end;
        self.manager.poll_look_for(context, |session| {
            let sent = end.send(session, data, Wait::Poll);
            unless_blocked(sent, end)
        })
    }

    /// As [`Sender::send`], as a future. An event loop or a task must drive the manager
    /// ([`Manager::register_waker`]). If it is dropped before it is done, the record is not sent.
    pub async fn send_async(&mut self, data: &[u8]) -> Result<(), SendError> {
        poll_fn(|context| self.poll_send(context, data)).await
    }

    /// As [`Sender::close`], as a future. If it is dropped before it is done, it may be called
    /// again.
    pub async fn close_async(&mut self) -> Result<(), SendError> {
        let end = &mut self.end;
        let mut close = |session: &mut Session<'_, H>| {
            let closed = end.close(session, Wait::Poll);
            unless_blocked(closed, end)
        };
        poll_fn(|context| self.manager.poll_look_for(context, &mut close)).await
    }

    /// Sends what was held back.
    pub fn flush(&mut self, wait: Wait) -> Result<(), SendError> {
        self.end.flush(&mut self.manager.enter()?, wait)
    }

    /// Sends what was held back, and waits until every record that was accepted is in its place at
    /// the receiver's interface, whether its program has taken it or not; or says what was refused
    /// since the fence before. Blocks for as long as `wait` says. See [`Session::fence`].
    pub fn fence(&mut self, wait: Wait) -> Result<(), FenceError> {
        self.end.fence(&mut self.manager.enter()?, wait)
    }

    /// As [`Sender::flush`], as a future. An event loop or a task must drive the manager
    /// ([`Manager::register_waker`]). If it is dropped before it is done, it may be called again.
    pub async fn flush_async(&mut self) -> Result<(), SendError> {
        let end = &mut self.end;
        let mut flush = |session: &mut Session<'_, H>| {
            let flushed = end.flush(session, Wait::Poll);
            unless_blocked(flushed, end)
        };
        poll_fn(|context| self.manager.poll_look_for(context, &mut flush)).await
    }

    /// As [`Sender::fence`], as a future. An event loop or a task must drive the manager
    /// ([`Manager::register_waker`]). If it is dropped before it is done, the next fence tells what
    /// it would have told.
    pub async fn fence_async(&mut self) -> Result<(), FenceError> {
        self.flush_async().await.map_err(fence_error)?;
        self.fence_sent_async().await
    }

    /// As [`Sender::fence_async`], for records that have left before it was first polled: it sends
    /// nothing that is held back. It borrows nothing of the sender, which may send meanwhile.
    pub fn fence_sent_async(&self) -> impl Future<Output = Result<(), FenceError>> + use<H> {
        let (manager, target) = (self.manager.clone(), *self.end.target());
        async move { manager.fence_async(&target).await }
    }

    /// Flushes and closes. The receiver learns of it after the last record. When the call returns,
    /// all is handed over, so the program may end. With [`SendError::WouldBlock`] nothing that was
    /// accepted is lost, and the call may be repeated; with any other error the sender is closed as
    /// well. One that is dropped before it is closed sends nothing more, and its receiver is told
    /// whether that was all.
    pub fn close(&mut self, wait: Wait) -> Result<(), SendError> {
        self.end.close(&mut self.manager.enter()?, wait)
    }

    /// The receiver's end of the connection.
    pub fn receiver(&self) -> Destination {
        self.end.receiver()
    }

    /// Pieces that could be filled now.
    pub fn pieces_free(&self) -> u64 {
        self.end.pieces_free()
    }
}

/// No room now is no failure of a task that waits.
fn unless_blocked(
    sent: Result<(), SendError>,
    end: &sender::Sender,
) -> Result<Result<(), Interest>, SendError> {
    match sent {
        Ok(()) => Ok(Ok(())),
        Err(SendError::WouldBlock { .. } | SendError::Cut { .. }) => Ok(Err(end.interest())),
        Err(error) => Err(error),
    }
}
