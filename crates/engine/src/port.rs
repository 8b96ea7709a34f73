//! Ports: places that receive without memory of the application (decision 49).
//!
//! A message to a port names a handler, brings its bytes in one packet, and is read where it lies.
//! One that its owner does not take in turn waits in the port's queue, which is bounded, also for
//! each sender; beyond the bound it is refused by name. A port that is *parked* takes none, and
//! remembers who knocked.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::key::Key;
use crate::limits::{
    HANDLERS_MAX, KNOCKS_MAX, PACKET_PAYLOAD_MAX, PORT_QUEUE_BYTES_MAX, PORT_QUEUE_UNIT_BYTES,
    PORTS_MAX,
};
use crate::memory::{Area, LinkId, Payload};
pub use crate::message_queue::Arrived;
use crate::message_queue::{MessageQueue, Spares};
use crate::packet::{Header, PortAddress, PortName, SlotName};
use crate::point::{Point, PortPoint};
use crate::port_set::{Member, Sets, is_awaited, leave, list};
pub use crate::port_set::{PortSetName, queue_of_set};
use crate::received::NoDeposit;
use crate::refusal::{Refusal, Refusals};
use crate::slot::QueueId;
use crate::table::{Name, Table};

/// The settings of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortOptions {
    /// The protection key.
    pub key: Key,
    /// The group of those who may send to it.
    pub group: u64,
    /// Handlers it has, numbered from 0 on.
    pub handlers: u16,
    /// Bytes that its queue holds. A message counts 64 bytes for each that it begins, at least 64.
    pub queue_bytes: u32,
    /// Bytes that messages of one link may take there.
    pub peer_bytes: u32,
}

/// A port could not be opened or used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// A number of handlers that no port has.
    #[error("{0} handlers: a port has from 1 to {HANDLERS_MAX}")]
    Handlers(u16),
    /// A queue of a length that no port has.
    #[error("a queue of {0} bytes: from {PORT_QUEUE_UNIT_BYTES} to {PORT_QUEUE_BYTES_MAX}")]
    QueueBytes(u32),
    /// A share of one peer that holds no message.
    #[error("{0} bytes of the queue for one peer: at least {PORT_QUEUE_UNIT_BYTES}")]
    PeerBytes(u32),
    /// All ports are in use.
    #[error("all {PORTS_MAX} ports are in use: close one")]
    TooMany,
    /// The set of ports does not exist (any more).
    #[error("the set of ports is not open")]
    NoSuchSet,
    /// The port does not exist (any more).
    #[error("{0} is not open")]
    NotOpen(PortName),
    /// The interface is that of the process from which the caller was forked.
    #[error(
        "the port is of an interface that was opened before this process was forked: open a manager of its own in the child"
    )]
    Forked,
}

/// The state of a port, for its owner.
#[derive(Clone, Copy, Debug)]
pub struct PortInfo {
    /// Its handlers.
    pub handlers: u16,
    /// Bytes that its queue holds.
    pub queue_bytes: u32,
    /// Bytes of memory that it has for that: none while it is parked and no message waits.
    pub held_bytes: u32,
    /// True if it is parked.
    pub is_parked: bool,
    /// Messages that wait in its queue.
    pub waiting: usize,
    /// Bytes that these take of it.
    pub waiting_bytes: u32,
    /// Messages that were put into its queue so far, as they were not taken in turn.
    pub queued: u64,
    /// Packets refused, by reason.
    pub refusals: Refusals,
}

/// A message was refused as its port was parked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Knock {
    /// The link over which it came.
    pub from: LinkId,
    /// The port.
    pub port: PortName,
    /// The number of the port in its set; 0 if it is in none.
    pub member: u64,
}

/// A message of a port as it lies where its sender can still write.
#[derive(Clone, Copy, Debug)]
pub struct InPlace<'a> {
    /// The port that it goes to.
    pub to: &'a PortAddress,
    /// The handler, which may be none of the port.
    pub handler: u16,
}

/// The queue that a caller of [`Receiver::receive`](crate::receive::Receiver::receive) waits for,
/// if it waits for messages of that port.
pub const fn queue_of(port: PortName) -> QueueId {
    // No queue of notifications has such a name.
    QueueId::new(Name {
        index: port.0.index() as u32,
        generation: 1 << 31 | port.0.generation() as u32,
    })
}

/// An open port as the reception path sees it.
#[derive(Debug)]
pub(crate) struct Port {
    key: Key,
    group: u64,
    handlers: u16,
    /// True if a message may be read where it lies: the port is not parked, and none waits.
    takes_in_place: bool,
    is_parked: bool,
    pub(crate) queue: MessageQueue,
    pub(crate) member: Option<Member>,
    /// The senders that were refused while it was parked, each once.
    knocks: VecDeque<LinkId>,
    refusals: Box<Refusals>,
}

impl Port {
    fn update(&mut self) {
        self.takes_in_place = !self.is_parked && self.queue.waiting.is_empty();
    }

    /// Its number in its set; 0 if it is in none.
    fn number(&self) -> u64 {
        self.member.as_ref().map_or(0, |member| member.number)
    }

    /// True if that message, which names this port, may be read where it lies.
    #[inline(always)]
    pub(crate) fn takes(&self, message: &InPlace<'_>) -> bool {
        message.to.key == self.key
            && message.to.group == self.group
            && message.handler < self.handlers
            && self.takes_in_place
    }

    /// The handler of a message that may come in.
    fn admit(&self, header: &Header) -> Result<u16, Refusal> {
        let to = PortAddress::of(header);
        if self.key != to.key {
            return Err(Refusal::BadKey);
        }
        if self.group != to.group {
            return Err(Refusal::WrongGroup);
        }
        if header.flags.0 != 0 {
            return Err(Refusal::UnknownFlag);
        }
        if header.metadata_length_bytes != 0 || !header.is_fast() {
            return Err(Refusal::BadMetadata);
        }
        match u16::try_from(header.word) {
            Ok(handler) if handler < self.handlers => Ok(handler),
            _ => Err(Refusal::NoSuchHandler),
        }
    }

    /// True if nobody else had knocked.
    fn knocked(&mut self, from: LinkId) -> bool {
        let is_first = self.knocks.is_empty();
        if self.knocks.len() < KNOCKS_MAX && !self.knocks.contains(&from) {
            self.knocks.push_back(from);
        }
        is_first
    }
}

/// The first bytes of a buffer, which grows if it has fewer.
#[inline(always)]
pub fn room_in(buffer: &mut Vec<u8>, length_bytes: usize) -> &mut [u8] {
    if buffer.len() < length_bytes {
        grow(buffer, length_bytes);
    }
    &mut buffer[..length_bytes]
}

#[cold]
fn grow(buffer: &mut Vec<u8>, length_bytes: usize) {
    buffer.resize(length_bytes, 0);
}

/// A port's name as the table has it.
#[inline(always)]
pub(crate) const fn place(name: PortName) -> Name {
    Name {
        index: name.0.index() as u32,
        generation: name.0.generation() as u32,
    }
}

/// The port of that name.
pub(crate) fn named(ports: &mut Table<Port, 16>, name: PortName) -> Result<&mut Port, PortError> {
    ports.get_mut(place(name)).ok_or(PortError::NotOpen(name))
}

/// The ports of an interface.
#[derive(Debug)]
pub(crate) struct PortTable {
    pub(crate) ports: Table<Port, 16>,
    pub(crate) sets: Sets,
    spares: Spares,
    /// Ports at which somebody knocked, each once.
    knocked: VecDeque<PortName>,
    /// The bytes of a message that was handed over, and the number of its port in its set.
    handed: Vec<u8>,
    handed_to: u64,
}

impl PortTable {
    pub(crate) fn new() -> Self {
        Self {
            ports: Table::new(PORTS_MAX, u16::MAX as u32),
            sets: Table::new(PORTS_MAX, u32::MAX >> 1),
            spares: Vec::new(),
            knocked: VecDeque::new(),
            handed: Vec::new(),
            handed_to: 0,
        }
    }

    pub(crate) fn open(&mut self, options: &PortOptions) -> Result<PortName, PortError> {
        let PortOptions {
            key,
            group,
            handlers,
            queue_bytes,
            peer_bytes,
        } = *options;
        if handlers == 0 || handlers > HANDLERS_MAX {
            return Err(PortError::Handlers(handlers));
        }
        if !(PORT_QUEUE_UNIT_BYTES..=PORT_QUEUE_BYTES_MAX).contains(&queue_bytes) {
            return Err(PortError::QueueBytes(queue_bytes));
        }
        if peer_bytes < PORT_QUEUE_UNIT_BYTES {
            return Err(PortError::PeerBytes(peer_bytes));
        }
        // In units, so that what is skipped at its end is, too.
        let queue_bytes = queue_bytes.next_multiple_of(PORT_QUEUE_UNIT_BYTES);
        let port = Port {
            key,
            group,
            handlers,
            takes_in_place: true,
            is_parked: false,
            queue: MessageQueue::new(queue_bytes, peer_bytes, &mut self.spares),
            member: None,
            knocks: VecDeque::new(),
            refusals: Box::default(),
        };
        let name = self.ports.insert(port).ok_or(PortError::TooMany)?;
        Ok(PortName(SlotName::new(
            name.index as u16,
            name.generation as u16,
        )))
    }

    /// See [`Receiver::reserve_for`](crate::receive::Receiver::reserve_for).
    pub(crate) fn reserve_for(&mut self, link: LinkId) {
        let names: Vec<Name> = self.ports.iter().map(|(name, _)| name).collect();
        for name in names {
            if let Some(port) = self.ports.get_mut(name) {
                port.queue.reserve_peers(link.index as usize);
            }
        }
        self.handed
            .reserve(PACKET_PAYLOAD_MAX.saturating_sub(self.handed.len()));
    }

    pub(crate) fn close(&mut self, name: PortName) -> Result<(), PortError> {
        let closed = self.ports.remove(place(name));
        let mut closed = closed.ok_or(PortError::NotOpen(name))?;
        leave(&mut self.sets, &mut closed.member, name);
        if !closed.knocks.is_empty() {
            self.knocked.retain(|knocked| *knocked != name);
        }
        Ok(())
    }

    pub(crate) fn rekey(&mut self, name: PortName, key: Key) -> Result<(), PortError> {
        named(&mut self.ports, name)?.key = key;
        Ok(())
    }

    pub(crate) fn park(&mut self, name: PortName, is_parked: bool) -> Result<(), PortError> {
        let port = named(&mut self.ports, name)?;
        port.is_parked = is_parked;
        match is_parked {
            true => port.queue.release(&mut self.spares),
            false => port.queue.reserve(&mut self.spares),
        }
        port.update();
        Ok(())
    }

    pub(crate) fn next_knock(&mut self) -> Option<Knock> {
        // A port that is closed leaves the list, and one that is there has knocks.
        let name = *self.knocked.front()?;
        let port = self.ports.get_mut(place(name))?;
        let from = port.knocks.pop_front()?;
        if port.knocks.is_empty() {
            self.knocked.pop_front();
        }
        Some(Knock {
            from,
            port: name,
            member: port.number(),
        })
    }

    pub(crate) fn info(&self, name: PortName) -> Result<PortInfo, PortError> {
        let port = self.ports.get(place(name));
        let port = port.ok_or(PortError::NotOpen(name))?;
        Ok(PortInfo {
            handlers: port.handlers,
            queue_bytes: port.queue.queue_bytes,
            held_bytes: port.queue.bytes.len() as u32,
            is_parked: port.is_parked,
            waiting: port.queue.waiting.len(),
            waiting_bytes: port.queue.used_bytes,
            queued: port.queue.queued,
            refusals: *port.refusals,
        })
    }

    /// True if that message may be read where it lies: it is for that port, and the next one.
    #[inline(always)]
    pub(crate) fn takes_in_place(&self, name: PortName, message: &InPlace<'_>) -> bool {
        let Some(port) = self.ports.stamped(u64::from(name.to_bits())) else {
            return false;
        };
        message.to.port == name && port.takes(message)
    }

    /// True if no message waits at the port.
    #[inline]
    pub(crate) fn is_empty(&self, name: PortName) -> bool {
        self.ports
            .get(place(name))
            .is_none_or(|port| port.queue.waiting.is_empty())
    }

    /// A message came.
    pub(crate) fn receive<A: Area>(
        &mut self,
        from: LinkId,
        header: &Header,
        payload: &impl Payload<A>,
        waiting: Option<QueueId>,
    ) -> Result<NoDeposit, Refusal> {
        let name = PortAddress::of(header).port;
        let port = self.ports.get_mut(place(name)).ok_or(Refusal::PortClosed)?;
        payload.passes(Point::Port(PortPoint::PortRead));
        payload.passes(Point::Port(PortPoint::KeyChecked));
        let taken = port.admit(header).and_then(|handler| {
            if port.is_parked {
                if port.knocked(from) {
                    self.knocked.push_back(name);
                }
                return Err(Refusal::NotResident);
            }
            let arrived = Arrived {
                handler,
                length_bytes: header.length_bytes,
                from,
            };
            let copy = |into: &mut [u8]| payload.copy_to(into).map_err(|_| Refusal::OutOfBounds);
            let is_next = waiting == Some(queue_of(name))
                || is_awaited(&self.sets, port.member.as_ref(), waiting);
            if is_next && port.takes_in_place {
                copy(room_in(&mut self.handed, header.length_bytes as usize))?;
                self.handed_to = port.number();
                return Ok(NoDeposit::Handed);
            }
            port.queue.push(arrived, copy)?;
            port.update();
            list(&mut self.sets, &mut port.member, name);
            Ok(NoDeposit::Queued)
        });
        taken.inspect_err(|&reason| port.refusals.add(reason))
    }

    /// Exchanges the bytes of the message that was handed over last for a buffer; the number of its
    /// port in its set.
    pub(crate) fn swap_handed(&mut self, buffer: &mut Vec<u8>) -> u64 {
        core::mem::swap(&mut self.handed, buffer);
        self.handed_to
    }

    /// Takes out the next message that waits, its bytes to the beginning of `buffer`, which grows
    /// as needed.
    pub(crate) fn pop(&mut self, name: PortName, buffer: &mut Vec<u8>) -> Option<Arrived> {
        let port = self.ports.get_mut(place(name))?;
        let arrived = port
            .queue
            .pop(|bytes| room_in(buffer, bytes.len()).copy_from_slice(bytes));
        if port.is_parked {
            port.queue.release(&mut self.spares);
        }
        port.update();
        arrived
    }
}

#[cfg(test)]
#[path = "port/tests.rs"]
mod tests;
