//! Inlets: that from which messages are taken, a port or a set of ports.

use hamlyn_engine::port::{Arrived, InPlace};
use hamlyn_engine::receive::Receiver;
use hamlyn_engine::receive_observer::ReceiveObserver;
use hamlyn_engine::slot::QueueId;
use hamlyn_ring::area::Area;

/// A port, or a set of ports: messages are taken from both by the same calls.
pub trait Inlet: Parts {}

/// The parts of an inlet that its callers do not see.
pub trait Parts {
    type Name: InletName;
    fn name(&self) -> &Self::Name;
    fn held(&self) -> &Held;
    fn held_mut(&mut self) -> &mut Held;
}

/// The name of an inlet: looks for its messages, also for those who do not have it in hand.
pub trait InletName: Copy {
    /// The queue that stands for it.
    fn queue(&self) -> QueueId;
    /// The member for which that message may be read where it lies.
    fn takes_in_place<O: ReceiveObserver<Area>>(
        &self,
        receiver: &Receiver<Area, O>,
        message: &InPlace<'_>,
    ) -> Option<u64>;
    fn is_empty<O: ReceiveObserver<Area>>(&self, receiver: &Receiver<Area, O>) -> bool;
    /// The next message that waits, its bytes to the beginning of the buffer.
    fn pop<O: ReceiveObserver<Area>>(
        &self,
        receiver: &mut Receiver<Area, O>,
        buffer: &mut Vec<u8>,
    ) -> Option<Found>;
}

/// A message, and the number of its port in the set from which it is taken; 0 if it is taken from
/// the port.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub(crate) arrived: Arrived,
    pub(crate) member: u64,
}

/// Memory of a port or a set, to which a message is moved that is not read where it lies.
#[derive(Debug, Default)]
pub struct Held {
    /// A message that was moved here, until it is disposed of: its bytes are the first of `buffer`.
    pub(crate) found: Option<Found>,
    pub(crate) buffer: Vec<u8>,
}

impl Held {
    /// The bytes of the message that was moved here last, of which it has so many.
    #[inline(always)]
    pub(crate) fn bytes(&self, length_bytes: u32) -> &[u8] {
        self.buffer.get(..length_bytes as usize).unwrap_or(&[])
    }
}
