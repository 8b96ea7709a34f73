//! Mailboxes: messages of many senders, each up to one packet, without readiness (decision 49).
//!
//! A mailbox is an end point on a [port](crate::port). Its senders need not wait until it is ready,
//! as those of a [datagram](crate::datagram) receiver must: messages that come while its program
//! does something else wait in its queue, on one host in the order of each sender. A message that
//! finds no room there is refused, and its sender learns it by [`Sender::fence`]. Datagrams are for
//! those who choose the place.

use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::task::{Context, Poll};

use hamlyn_engine::key::Key;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::port::{Arrived, PortInfo};
use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Host, Supply};

use crate::error::{ConnectError, FenceError, OpenError, ReceiveError, SendError};
use crate::item::{Bound, EndPoint, ItemHeader, Protocol, TypeName};
use crate::manager::{Manager, ManagerRef};
use crate::message::Target;
use crate::peer::PeerIdentity;
use crate::port::{NewPort, Port};
use crate::remains::{Leaving, Remains};
use crate::session::Session;
use crate::tasks::Interest;
use crate::ticket::{Ticket, TicketKind};
use crate::wait::Wait;

const HEADER: ItemHeader = ItemHeader::new(Protocol::Mailbox, TypeName::BYTES);
/// The handler of all messages.
const HANDLER: u16 = 0;

/// The queue that a mailbox is opened with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MailboxOptions {
    /// Bytes of its queue, 64 to 2^30. A message there counts 64 for each 64 bytes that it begins,
    /// and 64 at least. Default 1 MiB, which takes memory only as it is used.
    pub queue_bytes: u32,
    /// Bytes of it that the messages of one link may take, 64 at least. Half of it if none.
    pub peer_bytes: Option<u32>,
}

impl Default for MailboxOptions {
    fn default() -> Self {
        Self {
            queue_bytes: NewPort::default().queue_bytes,
            peer_bytes: None,
        }
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Receiver<H: Host = ProcessHost> {
    inbox: Inbox,
    /// The item under which others find it.
    bound: Option<Bound>,
    manager: ManagerRef<H>,
}

#[derive(Debug)]
struct Inbox {
    port: Port,
    leaving: Leaving,
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            port: Some(self.port.name),
            ..Remains::default()
        });
    }
}

/// A message that came, until the next one is asked for. Its bytes are in memory of the receiver's
/// own.
pub struct Mail<'a, H: Host = ProcessHost> {
    port: &'a Port,
    arrived: Arrived,
    manager: &'a ManagerRef<H>,
}

impl<H: Host> Mail<'_, H> {
    /// Who sent it, as the kernel or the handshake vouches. Nothing if the link over which it came
    /// ended long ago.
    pub fn sender(&self) -> Option<PeerIdentity> {
        self.manager.enter().ok()?.identity_of(self.arrived.from)
    }

    /// The link over which it came.
    pub fn from(&self) -> LinkId {
        self.arrived.from
    }
}

impl<H: Host> Deref for Mail<'_, H> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.port.bytes(self.arrived.length_bytes)
    }
}

impl<H: Host, B: AsRef<[u8]>> PartialEq<B> for Mail<'_, H> {
    fn eq(&self, bytes: &B) -> bool {
        **self == *bytes.as_ref()
    }
}

impl<H: Host> AsRef<[u8]> for Mail<'_, H> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<H: Host> fmt::Debug for Mail<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail")
            .field("from", &self.arrived.from)
            .field("bytes", &&**self)
            .finish()
    }
}

impl<H: Host> Receiver<H> {
    /// A mailbox without a name.
    pub fn new(manager: &Manager<H>, options: MailboxOptions) -> Result<Self, OpenError> {
        let mut session = manager.enter()?;
        let port = session.open_port(NewPort {
            queue_bytes: options.queue_bytes,
            peer_bytes: options.peer_bytes,
            ..NewPort::default()
        })?;
        Ok(Self {
            inbox: Inbox {
                port,
                leaving: session.leaving.clone(),
            },
            bound: None,
            manager: manager.hold(),
        })
    }

    /// A mailbox that others find under `item`.
    pub(crate) fn bind(
        manager: &Manager<H>,
        item: &str,
        options: MailboxOptions,
    ) -> Result<Self, OpenError> {
        let mut receiver = Self::new(manager, options)?;
        let ticket = receiver.ticket().to_bytes();
        let bound = manager
            .enter()?
            .core
            .bind(item, HEADER, &ticket, Supply::Always)?;
        receiver.bound = Some(bound);
        Ok(receiver)
    }

    /// A ticket for it. Good until [`Receiver::revoke`].
    pub fn ticket(&self) -> Ticket {
        self.inbox.port.ticket()
    }

    /// The next message. Nothing if none came in time. Allocates only for a message that is longer
    /// than all before.
    #[inline(always)]
    pub fn recv(&mut self, wait: Wait) -> Result<Option<Mail<'_, H>>, ReceiveError> {
        let port = &mut self.inbox.port;
        let at_hand = self.manager.enter()?.take_message(port);
        let arrived = match at_hand {
            Some(arrived) => Some(arrived),
            None => recv_slowly(&self.manager, port, wait)?,
        };
        Ok(arrived.map(|arrived| Mail {
            port: &self.inbox.port,
            arrived,
            manager: &self.manager,
        }))
    }

    /// Like [`Receiver::recv`], for a task: it is woken when there may be a message
    /// ([`Manager::register_waker`]). Does not block.
    pub fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Mail<'_, H>, ReceiveError>> {
        let port = &mut self.inbox.port;
        let came = poll_port(&self.manager, port, context);
        came.map_ok(|arrived| Mail {
            port: &self.inbox.port,
            arrived,
            manager: &self.manager,
        })
    }

    /// Like [`Receiver::recv`], as a future. An event loop or a task must drive the manager
    /// ([`Manager::register_waker`]). Dropping it loses nothing.
    pub async fn recv_async(&mut self) -> Result<Mail<'_, H>, ReceiveError> {
        let (manager, port) = (&self.manager, &mut self.inbox.port);
        let arrived = poll_fn(|context| poll_port(manager, port, context)).await?;
        Ok(Mail {
            port: &self.inbox.port,
            arrived,
            manager: &self.manager,
        })
    }

    /// Changes the key: tickets handed out before are worthless, and messages that were sent with
    /// them and have not come are refused. Those that wait stay. A mailbox with a name is found
    /// with the new key by those who connect from now on.
    pub fn revoke(&mut self) -> Result<(), OpenError> {
        let mut session = self.manager.enter()?;
        session.rekey_port(&mut self.inbox.port, None::<Key>)?;
        match &self.bound {
            Some(bound) => {
                let ticket = self.inbox.port.ticket().to_bytes();
                session.core.offer_bound(bound, &ticket, Supply::Always)
            }
            None => Ok(()),
        }
    }

    /// Its queue, packets refused by reason, and more.
    pub fn info(&self) -> Result<PortInfo, OpenError> {
        Ok(self.manager.enter()?.port_info(&self.inbox.port)?)
    }
}

#[inline(never)]
fn recv_slowly<H: Host>(
    manager: &ManagerRef<H>,
    port: &mut Port,
    wait: Wait,
) -> Result<Option<Arrived>, ReceiveError> {
    manager
        .enter()?
        .wait_for(wait, |session| look(session, port))
}

/// The step of a wait for a message.
fn look<H: Host>(
    session: &mut Session<'_, H>,
    port: &mut Port,
) -> Result<Option<Arrived>, ReceiveError> {
    Ok(session.take_message_slowly(port))
}

/// The same, for a task.
fn poll_port<H: Host>(
    manager: &ManagerRef<H>,
    port: &mut Port,
    context: &Context<'_>,
) -> Poll<Result<Arrived, ReceiveError>> {
    manager.poll_look_for(context, |session| {
        let found = look(session, port)?;
        Ok(found.ok_or(Interest::Port(port.name)))
    })
}

/// The sending end: a ticket made usable.
#[derive(Debug)]
pub struct Sender<H: Host = ProcessHost> {
    target: Target,
    manager: ManagerRef<H>,
}

impl<H: Host> Clone for Sender<H> {
    fn clone(&self) -> Self {
        Self {
            target: self.target,
            manager: self.manager.clone(),
        }
    }
}

impl<H: Host> Sender<H> {
    pub(crate) fn connect(
        manager: &Manager<H>,
        to: EndPoint<'_>,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        let connect = |session: &mut Session<'_, H>, ticket: &[u8], left| {
            let ticket = Ticket::from_bytes(ticket)?;
            ticket.expect(TicketKind::Port)?;
            Ok((session.target(&ticket, left)?, None))
        };
        Ok(Self {
            target: manager.enter()?.connect_to(to, HEADER, wait, connect)?,
            manager: manager.hold(),
        })
    }

    /// Makes a ticket usable here; connects if need be.
    pub fn grow(manager: &Manager<H>, ticket: &Ticket, wait: Wait) -> Result<Self, ConnectError> {
        ticket.expect(TicketKind::Port)?;
        Ok(Self {
            target: manager.enter()?.target(ticket, wait)?,
            manager: manager.hold(),
        })
    }

    /// Sends `data`, one packet's worth at most ([`Sender::message_bytes_max`]). `Ok` means
    /// accepted: a message that finds no room on its way leaves with later calls
    /// ([`Manager::flush`]), and if there is no room in the mailbox when it comes, it is refused
    /// there, which [`Sender::fence`] tells. Blocks for as long as `wait` says.
    #[inline(always)]
    pub fn send(&self, data: &[u8], wait: Wait) -> Result<SendHandle, SendError> {
        self.manager.send_message(&self.target, HANDLER, data, wait)
    }

    /// Like [`Sender::send`], for a task: it is woken when there may be room
    /// ([`Manager::register_waker`]), and the call is to be made again. Does not block.
    pub fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<SendHandle, SendError>> {
        let target = &self.target;
        self.manager.poll_look(context, |session| {
            let terminus = session.terminus();
            session.try_send_message(terminus, target, HANDLER, data)
        })
    }

    /// Like [`Sender::send`], as a future. An event loop or a task must drive the manager
    /// ([`Manager::register_waker`]). If it is dropped before it is done, nothing is sent.
    pub async fn send_async(&mut self, data: &[u8]) -> Result<SendHandle, SendError> {
        poll_fn(|context| self.poll_send(context, data)).await
    }

    /// Bytes of the longest message that link and ticket take: 64 KiB on one host unless set
    /// otherwise, and what a datagram of the network has room for between hosts, which may grow
    /// while the path is probed. Nothing if the link has ended.
    pub fn message_bytes_max(&self) -> Option<usize> {
        let session = self.manager.enter().ok()?;
        let most = session.packet_bytes_max(self.target.link())?;
        let allowed = usize::try_from(self.target.ticket().length_bytes);
        Some(most.min(allowed.unwrap_or(usize::MAX)))
    }

    /// Waits until everything that was sent to the receiver's interface, by whichever sender of
    /// this manager, has come, or says what was refused since the fence before. Blocks for as long
    /// as `wait` says. See [`Session::fence`].
    pub fn fence(&self, wait: Wait) -> Result<(), FenceError> {
        self.manager.enter()?.fence_to(&self.target, wait)
    }

    /// Like [`Sender::fence`], as a future, for what was sent before it was first polled. An event
    /// loop or a task must drive the manager ([`Manager::register_waker`]). If it is dropped before
    /// it is done, the next fence tells what it would have told.
    pub async fn fence_async(&self) -> Result<(), FenceError> {
        self.manager.fence_async(&self.target).await
    }
}
