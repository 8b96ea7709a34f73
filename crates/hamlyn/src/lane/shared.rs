//! Shared lanes: one pool of buffers for the messages of many peers.
//!
//! A shared lane is a port ([`crate::port`]) whose messages are taken into buffers of one size,
//! which the program may keep: a shared receive queue. It needs nothing of its own from the
//! interface, because the port's queue is bounded for all peers together and for each, and refuses
//! by name what finds no room. Messages come in the order of a port's.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use hamlyn_engine::limits::PACKET_PAYLOAD_MAX;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::PortName;
use hamlyn_host::Host;

use super::{BUFFERS_MAX, check_sizes};
use crate::error::{OpenError, ReceiveError};
use crate::interface::Interface;
use crate::port::{NewPort, Port};
use crate::remains::{Leaving, Remains};
use crate::session::Session;
use crate::ticket::Ticket;
use crate::wait::Wait;

/// Messages that are too long and dropped in one look.
const TOO_LONG_MAX: u32 = 4_096;

/// Options of a shared lane. It takes `buffers * buffer_bytes` bytes of memory, allocated as
/// messages come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedLaneOptions {
    /// Number of buffers that the program may have at a time, 1 to 4,096. Default 64.
    pub buffers: u16,
    /// Bytes of each, 1 to 65,536: the longest message, as the ticket says. Default 4,096.
    pub buffer_bytes: u32,
    /// The port: its key, its group, its handlers, which are the tags of messages, and the queue in
    /// which messages wait for a buffer, with the share of each peer. Default: all 4,096 tags, and
    /// 1 MiB, of which a peer may have half.
    pub port: NewPort,
}

impl Default for SharedLaneOptions {
    fn default() -> Self {
        Self {
            buffers: 64,
            buffer_bytes: 4096,
            port: NewPort::new().handlers(4096),
        }
    }
}

/// The receiving end. Peers send to its ticket as to any port's, with [`Session::send_message`] or
/// [`Interface::try_send_owned`]; the handler is the tag of the message. A layer with longer tags
/// puts them into the message.
#[derive(Debug)]
pub struct SharedLane {
    port: Port,
    options: SharedLaneOptions,
    /// Buffers that were given back.
    free: Vec<Box<[u8]>>,
    /// Buffers that the program has.
    taken: u16,
    too_long: u64,
    leaving: Leaving,
}

/// A message in a buffer of a shared lane. It reads as its bytes. The buffer counts as taken until
/// [`SharedLane::give_back`], also if this is dropped.
#[must_use = "a buffer is free again when its message is given back"]
pub struct SharedMessage {
    buffer: Box<[u8]>,
    length_bytes: u32,
    tag: u16,
    from: LinkId,
    port: PortName,
}

impl SharedMessage {
    /// The tag that its sender gave it.
    pub fn tag(&self) -> u16 {
        self.tag
    }

    /// The link over which it came: [`Interface::identity_of`] says who sent it.
    pub fn from(&self) -> LinkId {
        self.from
    }
}

impl Deref for SharedMessage {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[..self.length_bytes as usize]
    }
}

impl fmt::Debug for SharedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMessage")
            .field("tag", &self.tag)
            .field("from", &self.from)
            .field("length_bytes", &self.length_bytes)
            .finish_non_exhaustive()
    }
}

impl Drop for SharedLane {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            port: Some(self.port.name()),
            ..Remains::default()
        });
    }
}

impl SharedLane {
    /// Opens a shared lane. Does not block; allocates the queue, which takes memory as it is used.
    pub fn open<H: Host>(
        session: &mut Session<'_, H>,
        options: SharedLaneOptions,
    ) -> Result<Self, OpenError> {
        check_sizes(
            [
                (
                    "a shared lane's buffers",
                    options.buffers.into(),
                    BUFFERS_MAX.into(),
                ),
                (
                    "the bytes of a shared lane's buffers",
                    options.buffer_bytes,
                    PACKET_PAYLOAD_MAX as u32,
                ),
            ],
            "a shared lane has 1 to 4,096 buffers of 1 byte to 65,536 bytes",
        )?;
        Ok(Self {
            port: session.open_port(options.port)?,
            options,
            free: Vec::with_capacity(usize::from(options.buffers)),
            taken: 0,
            too_long: 0,
            leaving: session.leaving.clone(),
        })
    }

    /// A ticket for it, for messages that fit a buffer. Good until it is dropped.
    pub fn ticket(&self) -> Ticket {
        Ticket {
            length_bytes: self.options.buffer_bytes.into(),
            ..self.port.ticket()
        }
    }

    /// The next message, in a buffer that is the program's until it gives it back. Nothing if none
    /// came, or the program has all buffers: then messages wait in the queue. Does not block;
    /// allocates the first time that a buffer is used.
    pub fn next<H: Host>(
        &mut self,
        interface: &mut Interface<H>,
    ) -> Result<Option<SharedMessage>, ReceiveError> {
        if self.taken == self.options.buffers {
            return Ok(None);
        }
        let buffer_bytes = self.options.buffer_bytes as usize;
        let port = self.port.name();
        // Those that are too long hide none that waits behind them; at most so many, so that a
        // flood of them ends.
        let mut too_long = 0;
        let message = loop {
            let Some(message) = interface.next_message(&mut self.port)? else {
                return Ok(None);
            };
            if message.len() <= buffer_bytes {
                break message;
            }
            message.dispose();
            self.too_long += 1;
            too_long += 1;
            if too_long == TOO_LONG_MAX {
                interface.look_within(Duration::ZERO);
                return Ok(None);
            }
        };
        let buffer = self.free.pop();
        let mut buffer = buffer.unwrap_or_else(|| vec![0; buffer_bytes].into());
        let (tag, from) = (message.handler(), message.from());
        let length_bytes = message.copy_to(&mut buffer) as u32;
        message.dispose();
        self.taken += 1;
        Ok(Some(SharedMessage {
            buffer,
            length_bytes,
            tag,
            from,
            port,
        }))
    }

    /// Waits for the next message. Nothing if none came in time, or the program has all buffers.
    pub fn recv<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        wait: Wait,
    ) -> Result<Option<SharedMessage>, ReceiveError> {
        let wait = match self.taken == self.options.buffers {
            true => Wait::Poll,
            false => wait,
        };
        session.wait_for(wait, |session| self.next(session))
    }

    /// Gives a buffer back.
    pub fn give_back(&mut self, message: SharedMessage) {
        if message.port == self.port.name() && self.taken > 0 {
            self.taken -= 1;
            self.free.push(message.buffer);
        }
    }

    /// Number of buffers that the program has.
    pub fn taken(&self) -> u16 {
        self.taken
    }

    /// Messages that were dropped because they are longer than a buffer: their senders did not keep
    /// to the ticket.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    /// Its port, for [`Interface::port_info`] and as a [`Source`](crate::Source) of a wait. While
    /// the program has all buffers, the port may be ready although [`SharedLane::next`] takes
    /// nothing.
    pub fn port(&self) -> &Port {
        &self.port
    }
}
