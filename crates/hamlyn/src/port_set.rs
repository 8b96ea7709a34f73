//! Sets of ports, from which messages are taken together (decision 58).
//!
//! ```
//! use hamlyn::{NewPort, Wait};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let manager = hamlyn::open_unnamed()?;
//! let mut session = manager.session();
//! let mut set = session.open_port_set(64)?;
//! let ports = [session.open_port(NewPort::new())?, session.open_port(NewPort::new())?];
//! for (number, port) in ports.iter().enumerate() {
//!     session.join_port_set(port, &set, number as u64)?;
//!     let to = session.target(&port.ticket(), Wait::millis(1000))?;
//!     session.send_message(&to, 0, b"to a member", Wait::Forever)?;
//! }
//! let mut from = Vec::new();
//! while from.len() < 2 {
//!     session.await_messages(&mut set, 64, Wait::Forever, |message, _| {
//!         from.push(message.member());
//!     })?;
//! }
//! assert_eq!(from, [0, 1]);
//! # Ok(())
//! # }
//! ```

use hamlyn_engine::port::{InPlace, PortSetName, queue_of_set};
use hamlyn_engine::receive::Receiver;
use hamlyn_engine::receive_observer::ReceiveObserver;
use hamlyn_engine::slot::QueueId;
use hamlyn_ring::area::Area;

use crate::inlet::{Found, Held, Inlet, InletName, Parts};

/// A set of ports, in its owner's hands: messages are taken from it as from a port, and each tells
/// the number of its port ([`PortMessage::member`](crate::PortMessage::member)). A look costs the same
/// however many ports it has. Closed by
/// [`Interface::close_port_set`](crate::Interface::close_port_set); dropping this closes nothing.
#[derive(Debug)]
pub struct PortSet {
    pub(crate) name: PortSetName,
    pub(crate) held: Held,
}

impl Inlet for PortSet {}

impl Parts for PortSet {
    type Name = PortSetName;

    #[inline(always)]
    fn name(&self) -> &PortSetName {
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

impl InletName for PortSetName {
    fn queue(&self) -> QueueId {
        queue_of_set(*self)
    }

    #[inline(always)]
    fn takes_in_place<O: ReceiveObserver<Area>>(
        &self,
        receiver: &Receiver<Area, O>,
        message: &InPlace<'_>,
    ) -> Option<u64> {
        receiver.set_takes_in_place(*self, message)
    }

    fn is_empty<O: ReceiveObserver<Area>>(&self, receiver: &Receiver<Area, O>) -> bool {
        receiver.is_port_set_empty(*self)
    }

    fn pop<O: ReceiveObserver<Area>>(
        &self,
        receiver: &mut Receiver<Area, O>,
        buffer: &mut Vec<u8>,
    ) -> Option<Found> {
        let popped = receiver.pop_message_of_set(*self, buffer);
        popped.map(|(member, arrived)| Found { arrived, member })
    }
}
