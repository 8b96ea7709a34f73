//! The receiving half and its ports ([`crate::port`]), apart from the way of deposits.

use alloc::vec::Vec;

use crate::key::Key;
use crate::memory::{Area, LinkId, Payload};
use crate::packet::{Header, PortName};
use crate::point::{Point, PortPoint};
use crate::port::{
    Arrived, InPlace, Knock, PortError, PortInfo, PortOptions, PortSetName, queue_of_set,
};
use crate::receive::Receiver;
use crate::receive_observer::{PortChange, ReceiveEvent, ReceiveObserver};
use crate::received::NoDeposit;
use crate::refusal::Refusal;
use crate::slot::QueueId;

impl<A: Area, O: ReceiveObserver<A>> Receiver<A, O> {
    /// Opens a port. Allocates its queue.
    pub fn open_port(&mut self, options: PortOptions) -> Result<PortName, PortError> {
        let name = self.ports.open(&options)?;
        self.tell(|| ReceiveEvent::PortOpened { name, options });
        Ok(name)
    }

    /// Closes a port, with the messages that wait there: its name will never be good again.
    pub fn close_port(&mut self, name: PortName) -> Result<(), PortError> {
        self.ports.close(name)?;
        self.port_changed(name, PortChange::Closed);
        Ok(())
    }

    /// Changes a port's key; messages with the old one are refused. Those that wait stay.
    pub fn rekey_port(&mut self, name: PortName, key: Key) -> Result<(), PortError> {
        self.ports.rekey(name, key)?;
        self.port_changed(name, PortChange::Rekeyed(key));
        Ok(())
    }

    /// Parks a port, or ends that. A parked port refuses messages ([`Refusal::NotResident`]), and
    /// remembers who sent them ([`Receiver::next_knock`]). Those that wait stay.
    pub fn park_port(&mut self, name: PortName, is_parked: bool) -> Result<(), PortError> {
        self.ports.park(name, is_parked)?;
        self.port_changed(name, PortChange::Parked(is_parked));
        Ok(())
    }

    /// Opens a set of ports, whose ports with messages have turns of that many, one at least.
    pub fn open_port_set(&mut self, turn: u16) -> Result<PortSetName, PortError> {
        self.ports.open_set(turn)
    }

    /// Closes a set of ports, which stay open, and are in none.
    pub fn close_port_set(&mut self, set: PortSetName) {
        self.ports.close_set(set);
    }

    /// Puts a port into a set, where it is known by that number, or into none. It leaves the one in
    /// which it was. Allocates as a set grows.
    pub fn join_port_set(
        &mut self,
        name: PortName,
        into: Option<(PortSetName, u64)>,
    ) -> Result<(), PortError> {
        self.ports.join(name, into)?;
        let queue = into.map(|(set, _)| queue_of_set(set));
        self.port_changed(name, PortChange::Joined(queue));
        Ok(())
    }

    /// True if no message waits at a port of the set.
    #[inline]
    pub fn is_port_set_empty(&self, set: PortSetName) -> bool {
        self.ports.is_set_empty(set)
    }

    /// As [`Receiver::takes_in_place`], on behalf of any port of the set: the number of that.
    #[inline(always)]
    pub fn set_takes_in_place(&self, set: PortSetName, message: &InPlace<'_>) -> Option<u64> {
        match self.slots.is_receive_enabled() {
            true => self.ports.set_takes_in_place(set, message),
            false => None,
        }
    }

    /// Takes out the next message of the set that waits, with the number of its port, as
    /// [`Receiver::pop_message`] does.
    pub fn pop_message_of_set(
        &mut self,
        set: PortSetName,
        buffer: &mut Vec<u8>,
    ) -> Option<(u64, Arrived)> {
        let (name, number, arrived) = self.ports.pop_of_set(set, buffer)?;
        self.message_popped(name, arrived, buffer);
        Some((number, arrived))
    }

    fn message_popped(&mut self, name: PortName, arrived: Arrived, buffer: &[u8]) {
        self.tell(|| ReceiveEvent::MessagePopped {
            name,
            arrived,
            bytes: &buffer[..arrived.length_bytes as usize],
        });
    }

    fn port_changed(&mut self, name: PortName, change: PortChange) {
        self.tell(|| ReceiveEvent::PortChanged { name, change });
    }

    /// A link whose message was refused as its port was parked. Each is named once for each port
    /// until it is asked for, and not more than [`KNOCKS_MAX`](crate::limits::KNOCKS_MAX) of them.
    pub fn next_knock(&mut self) -> Option<Knock> {
        self.ports.next_knock()
    }

    /// The state of a port.
    pub fn port_info(&self, name: PortName) -> Result<PortInfo, PortError> {
        self.ports.info(name)
    }

    /// True if no message waits at the port.
    #[inline]
    pub fn is_port_empty(&self, name: PortName) -> bool {
        self.ports.is_empty(name)
    }

    /// The fast path: true if the message, which is the next of its link, may be read where it lies
    /// on behalf of that port. False for any other message, and for one that is refused: then
    /// [`Receiver::receive`] must decide.
    #[inline(always)]
    pub fn takes_in_place(&self, name: PortName, message: &InPlace<'_>) -> bool {
        self.slots.is_receive_enabled() && self.ports.takes_in_place(name, message)
    }

    /// Takes out the next message that waits at the port, its bytes to the beginning of `buffer`,
    /// which grows as needed.
    pub fn pop_message(&mut self, name: PortName, buffer: &mut Vec<u8>) -> Option<Arrived> {
        let arrived = self.ports.pop(name, buffer);
        if let Some(arrived) = arrived {
            self.message_popped(name, arrived, buffer);
        }
        arrived
    }

    /// Exchanges `buffer` for that of the message that [`Receiver::receive`] handed over last, which
    /// is at its beginning; the number that its port has in its set.
    pub fn swap_handed(&mut self, buffer: &mut Vec<u8>) -> u64 {
        self.ports.swap_handed(buffer)
    }

    /// A message to a port came.
    pub(crate) fn receive_message<P: Payload<A>>(
        &mut self,
        from: LinkId,
        header: &Header,
        payload: &P,
        waiting: Option<QueueId>,
    ) -> Result<NoDeposit, Refusal> {
        let taken = self.ports.receive(from, header, payload, waiting);
        if let Ok(NoDeposit::Queued) = taken {
            self.announced += 1;
        }
        match taken {
            Ok(_) => {
                payload.passes(Point::Deposited(header.length_bytes));
                payload.passes(Point::Port(PortPoint::Notified));
            }
            Err(_) => payload.passes(Point::Refused),
        }
        taken.inspect_err(|&reason| self.refusals.add(reason))
    }
}
