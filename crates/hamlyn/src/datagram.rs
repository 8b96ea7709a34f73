//! The simple datagram protocol (`Hamlyn 3.3`): one message into one buffer, if the receiver is
//! ready for it; one that comes while the receiver is not ready is refused, and counted there. A
//! little metadata says where in the buffer the data lie and how the receiver may answer.
//!
//! A receiver has one metadata entry and no queue. It is ready from when it is bound until a
//! datagram comes, and again when that datagram is dropped. Where several senders share a receiver,
//! or one sends before it has an answer, refusals are to be expected; [`crate::service`] has a
//! buffer for each client and each of its requests.

mod sender;

use std::fmt;
use std::future::poll_fn;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::task::{Context, Poll};

use hamlyn_engine::counting::Counting;
use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::slot::SlotInfo;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Host, Supply};

use crate::error::{OpenError, ReceiveError};

use crate::arrival::ShortArrival;
use crate::item::{Bound, ItemHeader};
use crate::manager::{Manager, ManagerRef};
use crate::peer::PeerIdentity;
use crate::receive_buffer::{Arrived, ReceiveBuffer};
use crate::session::Session;
use crate::tasks::Interest;
use crate::ticket::{TICKET_BYTES, Ticket};
use crate::wait::Wait;

pub use sender::Sender;

/// Bytes of metadata without a reply ticket: offset and length, 32 bits each.
const PLAIN_BYTES: usize = 8;
/// Bytes of metadata with one.
const REPLY_BYTES: usize = PLAIN_BYTES + TICKET_BYTES;

const _: () = assert!(REPLY_BYTES <= USER_METADATA_BYTES);

/// In [`Inbox::came`]: nothing yet, it waits for a datagram.
const READY: u64 = u64::MAX;
/// In [`Inbox::came`]: nothing, and it waits for nothing. Neither is the word of a datagram that
/// fits a buffer.
const NOTHING: u64 = READY - 1;

/// The word of metadata of a datagram: its offset, and its length.
#[inline]
const fn word_of(offset: u64, length_bytes: usize) -> u64 {
    offset & 0xFFFF_FFFF | (length_bytes as u64) << 32
}

const fn malformed(what: &'static str) -> ReceiveError {
    ReceiveError::Malformed {
        protocol: "datagram",
        what,
    }
}

const OTHER_BYTES: ReceiveError = malformed("its data are not those that it names");

/// The receiving end. See the module.
#[derive(Debug)]
pub struct Receiver<H: Host = ProcessHost> {
    inbox: Inbox,
    /// The item under which others find it.
    bound: Option<Bound>,
    manager: ManagerRef<H>,
}

/// What a receiver has, but for its manager.
#[derive(Debug)]
struct Inbox {
    buffer: ReceiveBuffer,
    /// The word of the last datagram, once it was compared with what landed; or [`READY`] or
    /// [`NOTHING`].
    came: u64,
    /// The link over which it came.
    from: Option<LinkId>,
    /// Nobody can tell any more whether its reply ticket is its sender's own.
    hides_reply: bool,
}

/// A datagram in its receiver's buffer; no copy was made. It reads as its bytes. While it lives the
/// receiver accepts no other; when it is dropped, the receiver is ready for the next one, which may
/// lie over it.
pub struct Datagram<'a, H: Host = ProcessHost> {
    inbox: &'a mut Inbox,
    manager: &'a ManagerRef<H>,
}

impl<H: Host> Datagram<'_, H> {
    /// Where in the buffer it lies.
    pub fn offset(&self) -> u32 {
        self.inbox.came as u32
    }

    /// Where the sender awaits an answer: at the interface from which the datagram came. Nothing
    /// also if the link over which it came ended long ago: nobody awaits one then.
    pub fn reply_ticket(&self) -> Option<Ticket> {
        if self.inbox.hides_reply {
            return None;
        }
        self.inbox.reply().ok().flatten()
    }

    /// Who sent it, as the kernel or the handshake vouches; of a datagram of several packets, who
    /// sent the last of them: holders of one ticket can send parts of one datagram. Nothing if the
    /// link over which it came ended long ago, or if its sender had it come without notification.
    pub fn sender(&self) -> Option<PeerIdentity> {
        let from = self.inbox.from?;
        self.manager.enter().ok()?.identity_of(from)
    }

    /// Leaves the receiver as it is: it accepts nothing, and [`Receiver::latest`] shows this
    /// datagram, until [`Receiver::ready`] is called.
    pub fn keep(self) {
        let _kept = ManuallyDrop::new(self);
    }
}

impl<H: Host> Deref for Datagram<'_, H> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // It was compared with what landed, and the receiver was not made ready since.
        self.inbox.data().unwrap_or(&[])
    }
}

impl<H: Host> Drop for Datagram<'_, H> {
    #[inline(always)]
    fn drop(&mut self) {
        self.inbox.ready();
    }
}

impl<H: Host, B: AsRef<[u8]>> PartialEq<B> for Datagram<'_, H> {
    fn eq(&self, bytes: &B) -> bool {
        **self == *bytes.as_ref()
    }
}

impl<H: Host> AsRef<[u8]> for Datagram<'_, H> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<H: Host> fmt::Debug for Datagram<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Datagram")
            .field("offset", &self.offset())
            .field("bytes", &&**self)
            .finish()
    }
}

impl<H: Host> Receiver<H> {
    /// A receiver with a buffer of 1 byte to 2 GiB, without a name. It is not ready yet; one that
    /// [`Manager::bind_datagram`] opens is.
    pub fn new(manager: &Manager<H>, buffer_bytes: u32) -> Result<Self, OpenError> {
        if buffer_bytes == 0 || buffer_bytes > 1 << 31 {
            return Err(OpenError::Setting {
                setting: "a datagram buffer",
                value: u64::from(buffer_bytes),
                reason: "it has 1 byte to 2 GiB",
            });
        }
        let buffer = ReceiveBuffer::open(&mut manager.enter()?, buffer_bytes, Counting::Bits32)?;
        Ok(Self {
            inbox: Inbox {
                buffer,
                came: NOTHING,
                from: None,
                hides_reply: false,
            },
            bound: None,
            manager: manager.hold(),
        })
    }

    /// A ready receiver that others find under `item`.
    pub(crate) fn bind(
        manager: &Manager<H>,
        item: &str,
        buffer_bytes: u32,
        header: ItemHeader,
    ) -> Result<Self, OpenError> {
        let mut receiver = Self::new(manager, buffer_bytes)?;
        receiver.ready();
        let ticket = receiver.ticket().to_bytes();
        let bound = manager
            .enter()?
            .core
            .bind(item, header, &ticket, Supply::Always)?;
        receiver.bound = Some(bound);
        Ok(receiver)
    }

    /// A ticket for the whole buffer. Good until [`Receiver::revoke`].
    pub fn ticket(&self) -> Ticket {
        self.inbox.buffer.ticket()
    }

    /// Makes the receiver ready for one datagram; the buffer is the sender's until it has come. A
    /// [`Datagram`] that is dropped does the same.
    #[inline]
    pub fn ready(&mut self) {
        self.inbox.ready();
    }

    /// Whether it waits for a datagram.
    pub fn is_ready(&self) -> bool {
        self.inbox.came == READY
    }

    /// Changes the key: tickets handed out before are worthless, and when this returns nothing sent
    /// with them is being written any more. Makes no call of the operating system but for the
    /// random bits. A receiver with a name is found with the new key by those who connect from now
    /// on.
    pub fn revoke(&mut self) -> Result<(), ReceiveError> {
        let mut session = self.manager.enter()?;
        let key = session.new_key()?;
        self.inbox.buffer.change(&mut session, Some(key));
        if let Some(bound) = &self.bound {
            let ticket = self.inbox.buffer.ticket().to_bytes();
            session.core.offer_bound(bound, &ticket, Supply::Always)?;
        }
        Ok(())
    }

    /// Forgets a datagram that came only in part, because its sender died or gave up. If the
    /// receiver is ready it stays so, and tickets stay good. Never needed after datagrams of one
    /// packet.
    pub fn reset(&mut self) {
        if let Ok(mut session) = self.manager.enter() {
            self.inbox.buffer.change(&mut session, None);
        }
    }

    /// Waits for a datagram. Nothing if none came in time. The receiver is ready for the next one
    /// when what this returns is dropped, and after [`ReceiveError::Malformed`]: a holder of its
    /// ticket broke the protocol. Does not allocate.
    #[inline(always)]
    pub fn recv(&mut self, wait: Wait) -> Result<Option<Datagram<'_, H>>, ReceiveError> {
        let inbox = &mut self.inbox;
        self.manager.check()?;
        if inbox.came != READY {
            return Err(ReceiveError::NotReady);
        }
        let short = inbox.buffer.next_short(&mut self.manager.enter()?.core);
        let came = match short {
            Some(short) => inbox.read_short(short)?,
            None => inbox.receive_slowly(&self.manager, wait)?,
        };
        // Made only if there is one: its drop makes the receiver ready.
        Ok(came.then(|| Datagram {
            inbox,
            manager: &self.manager,
        }))
    }

    /// As [`Receiver::recv`], for a task: it is woken when there may be a datagram
    /// ([`Manager::register_waker`]). Does not block, nor allocate.
    pub fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Datagram<'_, H>, ReceiveError>> {
        self.poll_came(context).map_ok(|()| Datagram {
            inbox: &mut self.inbox,
            manager: &self.manager,
        })
    }

    /// As [`Receiver::recv`], as a future. An event loop or a task must drive the manager
    /// ([`Manager::register_waker`]). Dropping it loses nothing.
    pub async fn recv_async(&mut self) -> Result<Datagram<'_, H>, ReceiveError> {
        poll_fn(|context| self.poll_came(context)).await?;
        Ok(Datagram {
            inbox: &mut self.inbox,
            manager: &self.manager,
        })
    }

    fn poll_came(&mut self, context: &Context<'_>) -> Poll<Result<(), ReceiveError>> {
        let inbox = &mut self.inbox;
        if inbox.came != READY {
            return Poll::Ready(Err(ReceiveError::NotReady));
        }
        self.manager.poll_look_for(context, |session| {
            session.look_again();
            let found = inbox.look(session)?;
            Ok(found.ok_or_else(|| Interest::Message(inbox.buffer.metadata())))
        })
    }

    /// The bytes of the datagram that was kept ([`Datagram::keep`]), as long as the receiver was
    /// not made ready again.
    pub fn latest(&self) -> Option<&[u8]> {
        self.inbox.data()
    }

    /// Packets refused at this receiver, by reason, and more.
    pub fn info(&self) -> Result<SlotInfo, OpenError> {
        self.inbox.buffer.info(&*self.manager.enter()?)
    }
}

impl Inbox {
    #[inline]
    fn ready(&mut self) {
        if self.came != READY {
            self.buffer.arm();
            self.came = READY;
        }
    }

    /// A datagram that breaks the protocol is told of once, and does not keep others out.
    #[cold]
    #[inline(never)]
    fn forget(&mut self) {
        self.came = NOTHING;
        self.ready();
    }

    /// Whether a datagram came in time.
    #[inline(never)]
    fn receive_slowly<H: Host>(
        &mut self,
        manager: &ManagerRef<H>,
        wait: Wait,
    ) -> Result<bool, ReceiveError> {
        let mut session = manager.enter()?;
        session.look_again();
        let came = session.wait_for(wait, |session| self.look(session))?;
        Ok(came.is_some())
    }

    /// The step of a wait for a datagram.
    fn look<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<Option<()>, ReceiveError> {
        match self.buffer.next_message(session) {
            None => return Ok(None),
            Some(Arrived::Short(short)) => drop(self.read_short(short)?),
            Some(Arrived::Message(from)) => {
                if let Err(error) = self.read(session, from) {
                    self.forget();
                    return Err(error);
                }
            }
        }
        Ok(Some(()))
    }

    /// Compares what a datagram says of itself with what landed: short data at that offset.
    #[inline(always)]
    fn read_short(&mut self, short: ShortArrival) -> Result<bool, ReceiveError> {
        if short.word != word_of(short.offset, short.length_bytes) {
            self.forget();
            return Err(OTHER_BYTES);
        }
        self.came = short.word;
        self.from = Some(short.from);
        Ok(true)
    }

    /// The bytes of the datagram that came last, as long as the receiver was not made ready again.
    #[inline(always)]
    fn data(&self) -> Option<&[u8]> {
        if self.came >= NOTHING {
            return None;
        }
        let (offset, length_bytes) = (u64::from(self.came as u32), (self.came >> 32) as usize);
        self.buffer.reader.view(offset, length_bytes)
    }

    /// Compares what a datagram says of itself with what landed.
    #[inline(never)]
    fn read<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        from: Option<LinkId>,
    ) -> Result<(), ReceiveError> {
        self.came = NOTHING;
        let entry = self.buffer.entry().ok_or(ReceiveError::NotReady)?;
        let length = entry.metadata_length_bytes();
        if length != PLAIN_BYTES && length != REPLY_BYTES {
            return Err(malformed("its metadata have the wrong length"));
        }
        let word = entry.metadata_word();
        let (offset, length_bytes) = (u64::from(word as u32), (word >> 32) as u32);
        let end = offset + u64::from(length_bytes);
        if end > self.buffer.slot.length_bytes() {
            return Err(malformed("its data lie outside the buffer"));
        }
        if !entry.has_landed(self.buffer.slot.key, offset, length_bytes) {
            return Err(OTHER_BYTES);
        }
        self.hides_reply = false;
        if let Some(reply) = self.reply()? {
            let led_to = |from| session.led_to(from, &reply.destination);
            match from.map(led_to) {
                Some(Some(true)) => {}
                // Its link is gone, and another has its place.
                Some(None) => self.hides_reply = true,
                // Its sender would have us write to somebody else in our name.
                Some(Some(false)) | None => {
                    return Err(malformed("its reply ticket is not its sender's own"));
                }
            }
        }
        self.came = word;
        self.from = from;
        match self.data() {
            Some(_) => Ok(()),
            None => Err(OTHER_BYTES),
        }
    }

    /// The reply ticket of the message that came.
    fn reply(&self) -> Result<Option<Ticket>, ReceiveError> {
        let mut metadata = [0; USER_METADATA_BYTES];
        match self.buffer.entry() {
            Some(entry) if entry.metadata(&mut metadata) == REPLY_BYTES => {
                Ticket::of_slot(&metadata[PLAIN_BYTES..REPLY_BYTES])
                    .map(Some)
                    .map_err(|_| malformed("its reply ticket is none"))
            }
            _ => Ok(None),
        }
    }
}
