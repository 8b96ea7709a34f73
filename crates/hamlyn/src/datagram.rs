//! The simple datagram protocol (`Hamlyn 3.3`): raw semantics, with a little
//! metadata that says where in the buffer the data are and how the receiver
//! may answer.
//!
//! A receiver has one metadata entry and no queue: it is ready or it is not.
//! What arrives while it is not ready is refused and counted, not kept; so whoever
//! hands out a ticket says with it who may send when.

use hamlyn_engine::counting::Counting;
use hamlyn_engine::limits::{SHORT_BYTES, USER_METADATA_BYTES};
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::slot::SlotInfo;
use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::Host;
use hamlyn_host::process::ProcessHost;

use crate::error::{FenceError, GrowError, OpenError, ReceiveError, SendError};
use crate::manager::{Entered, Holder, Manager};
use crate::message::{Message, Target};
use crate::place::{Came, Place};
use crate::ticket::{TICKET_BYTES, Ticket};
use crate::wait::Wait;

/// Bytes of metadata without a reply ticket: offset and length, 32 bits each.
const PLAIN_BYTES: usize = 8;
/// Bytes of metadata with one.
const REPLY_BYTES: usize = PLAIN_BYTES + TICKET_BYTES;

const _: () = assert!(REPLY_BYTES <= USER_METADATA_BYTES);

/// In [`Inbox::came`]: nothing yet, it waits for a datagram.
const READY: u64 = u64::MAX;
/// In [`Inbox::came`]: nothing, and it waits for nothing. Neither is the word of a datagram that fits a buffer.
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
    manager: Holder<H>,
}

/// What a receiver has, but for its manager.
#[derive(Debug)]
struct Inbox {
    place: Place,
    /// The word of the last datagram, once it was compared with what landed; or [`READY`] or [`NOTHING`].
    came: u64,
}

/// A datagram in its receiver's buffer. No copy was made.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The data.
    pub data: &'a [u8],
    /// Where in the buffer they are.
    pub offset: u32,
    /// Where the sender awaits an answer: at the interface from which the datagram came.
    pub reply: Option<Ticket>,
}

impl<H: Host> Receiver<H> {
    /// A receiver with a buffer of 1 byte to 2 GiB. It is not ready yet.
    pub fn new(manager: &Manager<H>, buffer_bytes: u32) -> Result<Self, OpenError> {
        if buffer_bytes == 0 || buffer_bytes > 1 << 31 {
            return Err(OpenError::Setting {
                setting: "a datagram buffer",
                value: u64::from(buffer_bytes),
                reason: "it has 1 byte to 2 GiB",
            });
        }
        let place = Place::open(&mut manager.enter(), buffer_bytes, Counting::Bits32)?;
        Ok(Self {
            inbox: Inbox {
                place,
                came: NOTHING,
            },
            manager: manager.hold(),
        })
    }

    /// A ticket for the whole buffer, to be given to whoever may send. Good until [`Receiver::revoke`].
    pub fn ticket(&self) -> Ticket {
        self.inbox.place.ticket()
    }

    /// Makes the receiver ready for one datagram; the buffer is the sender's until it
    /// has come.
    #[inline]
    pub fn ready(&mut self) {
        let inbox = &mut self.inbox;
        if inbox.came != READY {
            inbox.place.arm();
            inbox.came = READY;
        }
    }

    /// Whether it waits for a datagram.
    pub fn is_ready(&self) -> bool {
        self.inbox.came == READY
    }

    /// Changes the key: tickets handed out before are worthless, and when this returns nothing sent with them
    /// is being written any more. Without any call of the operating system but for the random bits.
    pub fn revoke(&mut self) -> Result<(), ReceiveError> {
        let mut manager = self.manager.enter();
        let key = manager.interface_mut().new_key()?;
        self.inbox.place.change(&mut manager, Some(key));
        Ok(())
    }

    /// Forgets a datagram that came only in part, because its sender died or gave up. If the receiver
    /// is ready it stays so, and tickets stay good. Never needed after datagrams of one packet.
    pub fn reset(&mut self) {
        self.inbox.place.change(&mut self.manager.enter(), None);
    }

    /// Waits for a datagram. Nothing if none came in time. Afterwards the receiver is
    /// not ready, and the data stay as they are until it is made ready again.
    #[inline(always)]
    pub fn receive(&mut self, wait: Wait) -> Result<Option<Datagram<'_>>, ReceiveError> {
        let inbox = &mut self.inbox;
        if inbox.came != READY {
            return Err(ReceiveError::NotReady);
        }
        let mut manager = self.manager.enter();
        match inbox.place.short_at_hand(&mut manager) {
            Some((word, offset)) => inbox.read_short(word, offset),
            None => inbox.receive_slowly(&mut manager, wait),
        }
    }

    /// The datagram that came last, as long as the receiver was not made ready again.
    pub fn latest(&self) -> Result<Datagram<'_>, ReceiveError> {
        self.inbox.latest()
    }

    /// Packets refused at this receiver, by reason, and more.
    pub fn info(&self) -> Result<SlotInfo, OpenError> {
        self.inbox.place.info(&self.manager.enter())
    }
}

impl Inbox {
    #[inline(never)]
    fn receive_slowly<H: Host>(
        &mut self,
        manager: &mut Entered<'_, H>,
        wait: Wait,
    ) -> Result<Option<Datagram<'_>>, ReceiveError> {
        match self.place.await_message(manager, wait)? {
            Came::Nothing => Ok(None),
            Came::Short(word, offset) => self.read_short(word, offset),
            Came::Message(from) => self.read(manager, from).map(Some),
        }
    }

    /// Compares what a datagram says of itself with what landed: short data at that offset.
    #[inline(always)]
    fn read_short(&mut self, word: u64, offset: u64) -> Result<Option<Datagram<'_>>, ReceiveError> {
        if word != word_of(offset, SHORT_BYTES) {
            self.came = NOTHING;
            return Err(OTHER_BYTES);
        }
        self.came = word;
        match self.place.reader.view(offset, SHORT_BYTES) {
            Some(data) => Ok(Some(Datagram {
                data,
                offset: offset as u32,
                reply: None,
            })),
            None => Err(OTHER_BYTES),
        }
    }

    /// The datagram that came last, as long as the receiver was not made ready again.
    fn latest(&self) -> Result<Datagram<'_>, ReceiveError> {
        if self.came >= NOTHING {
            return Err(ReceiveError::NotReady);
        }
        let (offset, length_bytes) = (self.came as u32, (self.came >> 32) as usize);
        let reader = &self.place.reader;
        let data = reader
            .view(u64::from(offset), length_bytes)
            .ok_or(OTHER_BYTES)?;
        Ok(Datagram {
            data,
            offset,
            reply: self.reply()?,
        })
    }

    /// Compares what a datagram says of itself with what landed.
    #[inline(never)]
    fn read<H: Host>(
        &mut self,
        manager: &mut Entered<'_, H>,
        from: Option<LinkId>,
    ) -> Result<Datagram<'_>, ReceiveError> {
        self.came = NOTHING;
        let entry = self.place.entry().ok_or(ReceiveError::NotReady)?;
        let length = entry.metadata_length_bytes();
        if length != PLAIN_BYTES && length != REPLY_BYTES {
            return Err(malformed("its metadata have the wrong length"));
        }
        let word = entry.metadata_word();
        let (offset, length_bytes) = (u64::from(word as u32), (word >> 32) as u32);
        let end = offset + u64::from(length_bytes);
        if end > self.place.slot.length_bytes() {
            return Err(malformed("its data lie outside the buffer"));
        }
        if !entry.has_landed(self.place.slot.key, offset, length_bytes) {
            return Err(OTHER_BYTES);
        }
        // Otherwise its sender could have us write to somebody else in our name.
        if let Some(reply) = self.reply()?
            && from.and_then(|from| manager.interface_mut().led_to(from, &reply.destination))
                != Some(true)
        {
            return Err(malformed("its reply ticket is not its sender's own"));
        }
        self.came = word;
        self.latest()
    }

    /// The reply ticket of the message that came.
    fn reply(&self) -> Result<Option<Ticket>, ReceiveError> {
        let mut metadata = [0; USER_METADATA_BYTES];
        match self.place.entry() {
            Some(entry) if entry.metadata(&mut metadata) == REPLY_BYTES => {
                Ticket::from_bytes(&metadata[PLAIN_BYTES..REPLY_BYTES])
                    .map(Some)
                    .map_err(|_| malformed("its reply ticket is none"))
            }
            _ => Ok(None),
        }
    }
}

/// The sending end: a ticket made usable.
#[derive(Debug)]
pub struct Sender<H: Host = ProcessHost> {
    target: Target,
    manager: Holder<H>,
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
    /// Makes a ticket usable here; connects if need be.
    pub fn grow(manager: &Manager<H>, ticket: &Ticket, wait: Wait) -> Result<Self, GrowError> {
        Ok(Self {
            target: manager.interface().target(ticket, wait)?,
            manager: manager.hold(),
        })
    }

    /// Sends `data` to `offset` in the buffer, with a ticket for the answer if one is
    /// wanted. If the receiver was not ready, the datagram is refused, which [`Sender::fence`] tells.
    #[inline(always)]
    pub fn send(
        &self,
        offset: u32,
        data: &[u8],
        reply: Option<&Ticket>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        // As in `Ticket::place`: it wraps only if the ticket was made up, and then the place is wrong, no more.
        let at = self.target.ticket().base.wrapping_add(u64::from(offset));
        let word = word_of(at, data.len());
        let mut manager = self.manager.enter();
        let mut message = Message::new(data).at(u64::from(offset));
        match reply {
            None => {
                let metadata = word.to_le_bytes();
                message.metadata = &metadata;
                manager.send_msg(&self.target, &message, wait)
            }
            Some(ticket) => {
                let mut metadata = [0; REPLY_BYTES];
                metadata[..PLAIN_BYTES].copy_from_slice(&word.to_le_bytes());
                metadata[PLAIN_BYTES..].copy_from_slice(&ticket.to_bytes());
                message.metadata = &metadata;
                manager.send_msg(&self.target, &message, wait)
            }
        }
    }

    /// Waits until everything that was sent to the receiver's interface, by whichever sender of this manager, is in its place
    /// there, or says what was refused since the fence before. Blocks for as long as `wait` says. See [`crate::Interface::fence`].
    pub fn fence(&self, wait: Wait) -> Result<(), FenceError> {
        self.manager.enter().fence_to(&self.target, wait)
    }
}
