//! The sending end of datagrams.

use std::future::poll_fn;
use std::task::{Context, Poll};

use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::Host;
use hamlyn_host::process::ProcessHost;

use super::{PLAIN_BYTES, REPLY_BYTES, word_of};
use crate::error::{ConnectError, FenceError, SendError};
use crate::item::{EndPoint, ItemHeader};
use crate::manager::{Manager, ManagerRef};
use crate::message::{Message, Sending, Target};
use crate::session::Session;
use crate::ticket::{Ticket, TicketKind};
use crate::wait::Wait;

/// The sending end: a ticket made usable.
#[derive(Debug)]
pub struct Sender<H: Host = ProcessHost> {
    target: Target,
    /// The rest of a datagram that [`Sender::poll_send`] has begun, and its length.
    begun: Option<(usize, Sending)>,
    manager: ManagerRef<H>,
}

impl<H: Host> Clone for Sender<H> {
    fn clone(&self) -> Self {
        Self {
            target: self.target,
            begun: None,
            manager: self.manager.clone(),
        }
    }
}

impl<H: Host> Sender<H> {
    pub(crate) fn connect(
        manager: &Manager<H>,
        to: EndPoint<'_>,
        header: ItemHeader,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        let connect = |session: &mut Session<'_, H>, ticket: &[u8], left| {
            let ticket = Ticket::from_bytes(ticket)?;
            ticket.expect(TicketKind::Slot)?;
            Ok((session.target(&ticket, left)?, None))
        };
        Ok(Self {
            target: manager.enter()?.connect_to(to, header, wait, connect)?,
            begun: None,
            manager: manager.hold(),
        })
    }

    /// Makes a ticket usable here; connects if need be.
    pub fn grow(manager: &Manager<H>, ticket: &Ticket, wait: Wait) -> Result<Self, ConnectError> {
        ticket.expect(TicketKind::Slot)?;
        Ok(Self {
            target: manager.enter()?.target(ticket, wait)?,
            begun: None,
            manager: manager.hold(),
        })
    }

    /// Sends `data` to the start of the buffer. `Ok` means accepted: if the receiver is not ready
    /// when the datagram comes, it is refused there, which [`Sender::fence`] tells.
    #[inline(always)]
    pub fn send(&self, data: &[u8], wait: Wait) -> Result<SendHandle, SendError> {
        self.send_to(0, data, None, wait)
    }

    /// As [`Sender::send`], as a future, for a datagram of any length. An event loop or a task must
    /// drive the manager ([`Manager::register_waker`]). If it is dropped before it is done, the
    /// datagram is not sent, or ([`SendError::Cut`]) the receiver has a part of it and its
    /// [`Receiver::reset`](super::Receiver::reset) is needed.
    pub async fn send_async(&mut self, data: &[u8]) -> Result<SendHandle, SendError> {
        let metadata = self.metadata(data);
        let message = Message::new(data).metadata(&metadata);
        let (manager, target) = (&self.manager, &self.target);
        let mut sending = Sending::default();
        poll_fn(|context| manager.poll_send(context, target, &message, &mut sending)).await
    }

    /// As [`Sender::send_async`], for a task: it is woken when there may be room
    /// ([`Manager::register_waker`]), and the call is to be made again with the same data until it
    /// is ready. The sender notes how much of a long datagram is sent, and takes data of the same
    /// length for the same: to send another, [give it up](Sender::give_up) first. A call with data
    /// of another length does that. Does not block.
    pub fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<SendHandle, SendError>> {
        let metadata = self.metadata(data);
        let message = Message::new(data).metadata(&metadata);
        let begun = self.begun.take().filter(|begun| begun.0 == data.len());
        let mut sending = begun.map(|(_, sending)| sending).unwrap_or_default();
        let sent = self
            .manager
            .poll_send(context, &self.target, &message, &mut sending);
        if sent.is_pending() {
            self.begun = Some((data.len(), sending));
        }
        sent
    }

    /// Gives up the datagram that [`Sender::poll_send`] has begun: the next one begins anew, also
    /// if it has the same length. The receiver may have a part, and its
    /// [`Receiver::reset`](super::Receiver::reset) is needed.
    pub fn give_up(&mut self) {
        self.begun = None;
    }

    /// The metadata of a datagram to the start of the buffer.
    fn metadata(&self, data: &[u8]) -> [u8; PLAIN_BYTES] {
        word_of(self.target.ticket().base, data.len()).to_le_bytes()
    }

    /// As [`Sender::send`], to `offset` in the buffer, with a ticket for the answer if one is
    /// wanted: a [`Receiver::ticket`](super::Receiver::ticket) of this manager.
    #[inline(always)]
    pub fn send_to(
        &self,
        offset: u32,
        data: &[u8],
        reply: Option<&Ticket>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        // As in `Ticket::place`: it wraps only if the ticket was made up, and then the place is
        // wrong, no more.
        let at = self.target.ticket().base.wrapping_add(u64::from(offset));
        let word = word_of(at, data.len());
        let mut message = Message::new(data).at(u64::from(offset));
        match reply {
            None => {
                let metadata = word.to_le_bytes();
                message.metadata = &metadata;
                self.manager.send(&self.target, &message, wait)
            }
            Some(ticket) => {
                let mut metadata = [0; REPLY_BYTES];
                metadata[..PLAIN_BYTES].copy_from_slice(&word.to_le_bytes());
                metadata[PLAIN_BYTES..].copy_from_slice(&ticket.to_bytes());
                message.metadata = &metadata;
                self.manager.send(&self.target, &message, wait)
            }
        }
    }

    /// Waits until everything that was sent to the receiver's interface, by whichever sender of
    /// this manager, is in its place there, or says what was refused since the fence before. Blocks
    /// for as long as `wait` says. See [`Session::fence`].
    pub fn fence(&self, wait: Wait) -> Result<(), FenceError> {
        self.manager.enter()?.fence_to(&self.target, wait)
    }

    /// As [`Sender::fence`], as a future, for what was sent before it was first polled. An event
    /// loop or a task must drive the manager ([`Manager::register_waker`]). If it is dropped before
    /// it is done, the next fence tells what it would have told.
    pub async fn fence_async(&self) -> Result<(), FenceError> {
        self.manager.fence_async(&self.target).await
    }
}
