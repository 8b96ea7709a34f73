//! The simple datagram protocol (`Hamlyn 3.3`): raw semantics, with a little
//! metadata that says where in the buffer the data are and how the receiver
//! may answer.
//!
//! A receiver has one metadata entry and no queue: it is ready or it is not.
//! What arrives while it is not ready is refused and counted, not kept; so whoever
//! hands out a ticket says with it who may send when.

use hamlyn_engine::counting::Counting;
use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::metadata::MetadataEntry;
use hamlyn_engine::slot::SlotInfo;
use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::Host;

use crate::error::{GrowError, OpenError, ReceiveError, SendError};
use crate::manager::Manager;
use crate::message::{Message, Target};
use crate::place::Place;
use crate::ticket::{TICKET_BYTES, Ticket};
use crate::wait::Wait;

/// Bytes of metadata without a reply ticket: offset and length, 32 bits each.
const PLAIN_BYTES: usize = 8;
/// Bytes of metadata with one.
const REPLY_BYTES: usize = PLAIN_BYTES + TICKET_BYTES;

const _: () = assert!(REPLY_BYTES <= USER_METADATA_BYTES);

/// Offset and length, from the first word of metadata.
#[inline]
fn place_of(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// The receiving end. See the module.
#[derive(Debug)]
pub struct Receiver {
    place: Place,
    ready: bool,
}

/// A datagram in its receiver's buffer. No copy was made.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The data.
    pub data: &'a [u8],
    /// Where in the buffer they are.
    pub offset: u32,
    /// Where the sender awaits an answer.
    pub reply: Option<Ticket>,
}

impl Receiver {
    /// A receiver with a buffer of 1 byte to 4 GiB less one. It is not ready yet.
    pub fn new<H: Host>(manager: &mut Manager<H>, buffer_bytes: u32) -> Result<Self, OpenError> {
        if buffer_bytes == 0 || buffer_bytes > 1 << 31 {
            return Err(OpenError::Setting {
                setting: "a datagram buffer",
                value: u64::from(buffer_bytes),
                reason: "it has 1 byte to 2 GiB",
            });
        }
        Ok(Self {
            place: Place::open(manager, buffer_bytes, Counting::Bits32)?,
            ready: false,
        })
    }

    #[inline]
    fn entry(&self) -> Option<&MetadataEntry> {
        self.place.entry()
    }

    /// A ticket for the whole buffer, to be given to whoever may send. Good until [`Receiver::revoke`].
    pub fn ticket(&self) -> Ticket {
        self.place.ticket()
    }

    /// Makes the receiver ready for one datagram; the buffer is the sender's until it
    /// has come.
    #[inline]
    pub fn ready(&mut self) {
        if !self.ready {
            self.place.arm();
            self.ready = true;
        }
    }

    /// Whether it waits for a datagram.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Changes the key: tickets handed out before are worthless. Without any call of the
    /// operating system but for the random bits.
    pub fn revoke<H: Host>(&mut self, manager: &mut Manager<H>) -> Result<(), ReceiveError> {
        let key = manager.interface_mut().new_key()?;
        self.place.permit(key);
        self.reset();
        Ok(())
    }

    /// Forgets a datagram that came only in part, because its sender died or gave up. If the receiver
    /// is ready it stays so, and tickets stay good. Never needed after datagrams of one packet.
    pub fn reset(&mut self) {
        // If it is spent, a datagram has come and is still to be received.
        if let Some(entry) = self.entry()
            && entry.is_armed()
        {
            entry.arm();
        }
    }

    /// Waits for a datagram. Nothing if none came in time. Afterwards the receiver is
    /// not ready, and the data stay as they are until it is made ready again.
    #[inline(always)]
    pub fn receive<H: Host>(
        &mut self,
        manager: &mut Manager<H>,
        wait: Wait,
    ) -> Result<Option<Datagram<'_>>, ReceiveError> {
        if !self.ready {
            return Err(ReceiveError::NotReady);
        }
        let word = self.place.short_at_hand(manager);
        if word.is_none() && !self.place.await_message(manager, wait)? {
            return Ok(None);
        }
        self.ready = false;
        if let Some((offset, length_bytes)) = word.map(place_of)
            && let Some(data) = self.data(offset, length_bytes)
        {
            return Ok(Some(Datagram {
                data,
                offset,
                reply: None,
            }));
        }
        self.read().map(Some)
    }

    /// The datagram that came last, as long as the receiver was not made ready again.
    pub fn latest(&self) -> Result<Datagram<'_>, ReceiveError> {
        if self.ready {
            Err(ReceiveError::NotReady)
        } else {
            self.read()
        }
    }

    /// Those bytes of the buffer, if they are in our hands.
    #[inline(always)]
    fn data(&self, offset: u32, length_bytes: u32) -> Option<&[u8]> {
        let end = u64::from(offset) + u64::from(length_bytes);
        if end > self.place.slot.length_bytes() {
            return None;
        }
        let reader = &self.place.reader;
        reader.view(u64::from(offset), length_bytes as usize)
    }

    #[inline(never)]
    fn read(&self) -> Result<Datagram<'_>, ReceiveError> {
        let malformed = |what| ReceiveError::Malformed {
            protocol: "datagram",
            what,
        };
        let Some(entry) = self.entry() else {
            return Err(ReceiveError::NotReady);
        };
        let length = entry.metadata_length_bytes();
        if length != PLAIN_BYTES && length != REPLY_BYTES {
            return Err(malformed("its metadata have the wrong length"));
        }
        let (offset, length_bytes) = place_of(entry.metadata_word());
        let Some(data) = self.data(offset, length_bytes) else {
            return Err(malformed("its data lie outside the buffer"));
        };
        let reply = if length == REPLY_BYTES {
            let mut metadata = [0; USER_METADATA_BYTES];
            entry.metadata(&mut metadata);
            let ticket = Ticket::from_bytes(&metadata[PLAIN_BYTES..REPLY_BYTES])
                .map_err(|_| malformed("its reply ticket is none"))?;
            Some(ticket)
        } else {
            None
        };
        Ok(Datagram {
            data,
            offset,
            reply,
        })
    }

    /// Packets refused at this receiver, by reason, and more.
    pub fn info<H: Host>(&self, manager: &Manager<H>) -> Result<SlotInfo, OpenError> {
        self.place.info(manager)
    }

    /// Closes the receiver; its tickets are worthless.
    pub fn close<H: Host>(self, manager: &mut Manager<H>) -> Result<(), OpenError> {
        self.place.close(manager)
    }
}

/// The sending end: a ticket made usable.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    target: Target,
}

impl Sender {
    /// Makes a ticket usable here; connects if need be.
    pub fn grow<H: Host>(
        manager: &mut Manager<H>,
        ticket: &Ticket,
        wait: Wait,
    ) -> Result<Self, GrowError> {
        Ok(Self {
            target: manager.interface_mut().target(ticket, wait)?,
        })
    }

    /// Sends `data` to `offset` in the buffer, with a ticket for the answer if one is
    /// wanted. Whether the receiver was ready is not reported: it answers, or it does not.
    #[inline(always)]
    pub fn send<H: Host>(
        &self,
        manager: &mut Manager<H>,
        offset: u32,
        data: &[u8],
        reply: Option<&Ticket>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        let base = self.target.ticket().base;
        let word = (base + u64::from(offset)) & 0xFFFF_FFFF | (data.len() as u64) << 32;
        let terminus = manager.terminus();
        let mut message = Message::new(data).at(u64::from(offset));
        match reply {
            None => {
                let metadata = word.to_le_bytes();
                message.metadata = &metadata;
                manager
                    .interface_mut()
                    .send_msg(terminus, &self.target, &message, wait)
            }
            Some(ticket) => {
                let mut metadata = [0; REPLY_BYTES];
                metadata[..PLAIN_BYTES].copy_from_slice(&word.to_le_bytes());
                metadata[PLAIN_BYTES..].copy_from_slice(&ticket.to_bytes());
                message.metadata = &metadata;
                manager
                    .interface_mut()
                    .send_msg(terminus, &self.target, &message, wait)
            }
        }
    }
}
