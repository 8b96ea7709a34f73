//! Ports: places that receive without memory of the application (decision 49).
//!
//! A message to a port names a *handler* and brings up to one packet of bytes. Its receiver reads
//! it where it lies: [`Interface::next_message`] shows the next one, [`PortMessage::dispose`] has
//! done with it. [`Interface::drain_messages`] hands one after the other to a function that may send.
//!
//! ```no_run
//! use hamlyn::{NewPort, Wait};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let here = hamlyn::open("server")?;
//! let mut session = here.session();
//! let mut port = session.open_port(NewPort::new().handlers(8))?;
//! session.offer("port", hamlyn::host::Supply::Always, &port.ticket().to_bytes())?;
//! while let Some(message) = session.recv_message(&mut port, Wait::Forever)? {
//!     println!("handler {}: {:#x}", message.handler(), message.word(0));
//!     message.dispose();
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A message that is not taken in turn, because its receiver looks for another one, waits in the
//! port's queue. The queue is bounded, for all senders together and for each; a message that finds
//! no room there is refused ([`Refusal::QueueFull`]), and its sender learns it as of any refusal:
//! by a fence, or [`Interface::next_undelivered`]. Messages wait whenever packets are moved by a
//! call that does not ask for them: for another end point, before a sleep, for room to send. With a
//! strategy by which a network processor receives, all of them go through the queue.
//!
//! On one host the messages of a sender come in the order in which it sent them, but for those that
//! were refused. Between hosts they come in any order: a layer that promises one numbers them.
//!
//! Several ports may be in a [`PortSet`](crate::PortSet), from which their messages are taken together.
//!
//! A port that is *parked* refuses all messages ([`Refusal::NotResident`]), and notes who sent them
//! ([`Interface::next_knock`]).
//!
//! [`Interface::next_message`]: crate::Interface::next_message
//! [`Interface::drain_messages`]: crate::Interface::drain_messages
//! [`Interface::next_knock`]: crate::Interface::next_knock
//! [`Interface::next_undelivered`]: crate::Interface::next_undelivered
//! [`Refusal::QueueFull`]: crate::engine::refusal::Refusal::QueueFull
//! [`Refusal::NotResident`]: crate::engine::refusal::Refusal::NotResident

use std::fmt;

use hamlyn_engine::counting::Counting;
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{FAST_INDEX, PACKET_PAYLOAD_MAX};
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::{PortName, SlotName};
use hamlyn_engine::port::{InPlace, queue_of};
pub use hamlyn_engine::port::{Knock, PortError, PortInfo};
use hamlyn_engine::receive::Receiver;
use hamlyn_engine::receive_observer::ReceiveObserver;
use hamlyn_engine::slot::QueueId;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Destination, Host};
use hamlyn_link::{ReceiveEnd, Shortcut};
use hamlyn_ring::area::Area;

use crate::inlet::{Found, Held, Inlet, InletName, Parts};
use crate::interface::ReceiveEndOf;
use crate::ticket::{Ticket, TicketKind};

const WORD_BYTES: usize = size_of::<u64>();
/// Bytes of a port's queue, unless set otherwise.
const QUEUE_BYTES: u32 = 1 << 20;

/// A port to be opened: by default with a random key, group 0, one handler, and a queue of 1 MiB
/// of which the messages of one link may take half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewPort {
    /// The key; a random one if none. Who knows it may send to the port.
    pub key: Option<Key>,
    /// The group of those who may send to it. A message of another group is refused by name. It is
    /// no secret; the key is.
    pub group: u64,
    /// Handlers, numbered from 0 on: 1 to 4,096. A message for another one is refused.
    pub handlers: u16,
    /// Bytes of its queue, 64 to 2^30. A message there counts 64 for each 64 bytes that it begins,
    /// and 64 at least. One that is longer than this or the share of a link is refused if it has to
    /// wait.
    pub queue_bytes: u32,
    /// Bytes of the queue that messages of one link may take, 64 at least; half of it if none.
    pub peer_bytes: Option<u32>,
}

impl Default for NewPort {
    fn default() -> Self {
        Self {
            key: None,
            group: 0,
            handlers: 1,
            queue_bytes: QUEUE_BYTES,
            peer_bytes: None,
        }
    }
}

impl NewPort {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// With that key.
    #[must_use]
    pub fn key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// For that group.
    #[must_use]
    pub fn group(mut self, group: u64) -> Self {
        self.group = group;
        self
    }

    /// With so many handlers.
    #[must_use]
    pub fn handlers(mut self, handlers: u16) -> Self {
        self.handlers = handlers;
        self
    }

    /// With a queue of so many bytes.
    #[must_use]
    pub fn queue_bytes(mut self, bytes: u32) -> Self {
        self.queue_bytes = bytes;
        self
    }

    /// With so many bytes of the queue for one link.
    #[must_use]
    pub fn peer_bytes(mut self, bytes: u32) -> Self {
        self.peer_bytes = Some(bytes);
        self
    }
}

/// An open port, in its owner's hands. Closed by [`crate::Interface::close_port`]; dropping this
/// closes nothing.
#[derive(Debug)]
pub struct Port {
    pub(crate) name: PortName,
    pub(crate) key: Key,
    pub(crate) group: u64,
    pub(crate) destination: Destination,
    pub(crate) held: Held,
}

impl Port {
    /// Its name.
    pub fn name(&self) -> PortName {
        self.name
    }

    /// Its key.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Its group.
    pub fn group(&self) -> u64 {
        self.group
    }

    /// A ticket for it. Good until its key is changed.
    pub fn ticket(&self) -> Ticket {
        Ticket {
            destination: self.destination,
            slot: SlotName::from_bits(self.name.to_bits()),
            metadata_index: FAST_INDEX,
            key: self.key,
            base: self.group,
            length_bytes: PACKET_PAYLOAD_MAX as u64,
            counting: Counting::Bits32,
            kind: TicketKind::Port,
        }
    }

    /// The bytes of the message that was moved here last, of which it has so many.
    #[inline(always)]
    pub(crate) fn bytes(&self, length_bytes: u32) -> &[u8] {
        self.held.bytes(length_bytes)
    }
}

impl Inlet for Port {}

impl Parts for Port {
    type Name = PortName;

    #[inline(always)]
    fn name(&self) -> &PortName {
        &self.name
    }

    #[inline(always)]
    fn held(&self) -> &Held {
        &self.held
    }

    #[inline(always)]
    fn held_mut(&mut self) -> &mut Held {
        &mut self.held
    }
}

impl InletName for PortName {
    fn queue(&self) -> QueueId {
        queue_of(*self)
    }

    #[inline(always)]
    fn takes_in_place<O: ReceiveObserver<Area>>(
        &self,
        receiver: &Receiver<Area, O>,
        message: &InPlace<'_>,
    ) -> Option<u64> {
        receiver.takes_in_place(*self, message).then_some(0)
    }

    fn is_empty<O: ReceiveObserver<Area>>(&self, receiver: &Receiver<Area, O>) -> bool {
        receiver.is_port_empty(*self)
    }

    fn pop<O: ReceiveObserver<Area>>(
        &self,
        receiver: &mut Receiver<Area, O>,
        buffer: &mut Vec<u8>,
    ) -> Option<Found> {
        let popped = receiver.pop_message(*self, buffer);
        popped.map(|arrived| Found { arrived, member: 0 })
    }
}

/// The next message of a port, as it lies there. It stays the next one until it is disposed of.
///
/// If it lies in its sender's ring ([`PortMessage::is_in_place`]), the sender can still write it:
/// what is read twice may differ. Check what you have read, not what you read again.
pub struct PortMessage<'a, H: Host = ProcessHost> {
    pub(crate) place: MessagePlace<'a, <ReceiveEndOf<H> as ReceiveEnd>::Shortcut>,
    pub(crate) found: Found,
}

/// Where a message lies.
pub(crate) enum MessagePlace<'a, S> {
    /// In the cells of its link, whose next packet it is.
    InCells(&'a mut S),
    /// In the memory of its port or set.
    Held(&'a mut Held),
}

impl<H: Host> PortMessage<'_, H> {
    /// The handler that it names, which the port has.
    #[inline(always)]
    pub fn handler(&self) -> u16 {
        self.found.arrived.handler
    }

    /// The number of its port in the set from which it was taken; 0 if it was taken from the port.
    #[inline(always)]
    pub fn member(&self) -> u64 {
        self.found.member
    }

    /// Its number of bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.found.arrived.length_bytes as usize
    }

    /// True if it has no bytes.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.found.arrived.length_bytes == 0
    }

    /// The link over which it came: [`crate::Interface::identity_of`] says who sent it.
    #[inline(always)]
    pub fn from(&self) -> LinkId {
        self.found.arrived.from
    }

    /// True if its sender can still write it.
    #[inline(always)]
    pub fn is_in_place(&self) -> bool {
        matches!(self.place, MessagePlace::InCells(_))
    }

    /// Eight of its bytes as a number, lowest first: those from eight times `number` on; zero
    /// beyond its end.
    #[inline(always)]
    pub fn word(&self, number: usize) -> u64 {
        if number < self.len() / WORD_BYTES {
            return match &self.place {
                MessagePlace::InCells(shortcut) => shortcut.message_word(number),
                MessagePlace::Held(_) => self.held_word(number),
            };
        }
        self.last_word(number)
    }

    #[inline(never)]
    fn last_word(&self, number: usize) -> u64 {
        let rest = self.len() % WORD_BYTES;
        if number != self.len() / WORD_BYTES || rest == 0 {
            return 0;
        }
        match &self.place {
            MessagePlace::InCells(shortcut) => {
                let beyond = (WORD_BYTES - rest) * u8::BITS as usize;
                shortcut.message_word(number) & u64::MAX >> beyond
            }
            MessagePlace::Held(_) => self.held_word(number),
        }
    }

    #[inline(never)]
    fn held_word(&self, number: usize) -> u64 {
        let bytes = self.as_bytes().unwrap_or(&[]);
        let bytes = &bytes[number * WORD_BYTES..];
        let mut word = [0; WORD_BYTES];
        let there = bytes.len().min(WORD_BYTES);
        word[..there].copy_from_slice(&bytes[..there]);
        u64::from_le_bytes(word)
    }

    /// Copies as many of its bytes as `into` holds, from the first on; how many.
    #[inline]
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        let length = into.len().min(self.len());
        let into = &mut into[..length];
        match &self.place {
            MessagePlace::InCells(shortcut) => shortcut.copy_message(into),
            MessagePlace::Held(held) => {
                into.copy_from_slice(&held.bytes(self.found.arrived.length_bytes)[..length]);
            }
        }
        length
    }

    /// Its bytes, unless its sender can still write them.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.place {
            MessagePlace::InCells(_) => None,
            MessagePlace::Held(held) => Some(held.bytes(self.found.arrived.length_bytes)),
        }
    }

    /// Has done with it: its place is the sender's again, and the next message is shown.
    #[inline(always)]
    pub fn dispose(self) {
        match self.place {
            MessagePlace::InCells(shortcut) => {
                shortcut.message_done(self.found.arrived.length_bytes as u16);
            }
            MessagePlace::Held(held) => held.found = None,
        }
    }
}

impl<H: Host> fmt::Debug for PortMessage<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortMessage")
            .field("handler", &self.handler())
            .field("length_bytes", &self.len())
            .field("from", &self.from())
            .finish_non_exhaustive()
    }
}
