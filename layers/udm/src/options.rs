//! Options of an end point.

use hamlyn::Wait;

/// The times at which handlers run of themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Interrupt {
    /// Never: they run when the program polls.
    Polling,
    /// Also when it ends a section, and while an injection waits for room.
    #[default]
    Safepoint,
}

/// Options of an end point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdmOptions {
    /// The times at which handlers run of themselves.
    pub interrupt: Interrupt,
    /// The time that an injection waits for room.
    pub wait: Wait,
    /// Bytes of messages that were taken out of the network, but not extracted: of those that come
    /// while a section waits for room, and of those that come over a network processor. 64 to 2^30.
    /// More are refused, and their senders told ([`Event::Refused`](crate::Event::Refused)). Messages
    /// of other hosts that came before their turn have 64 MiB of each node besides.
    pub queue_bytes: u32,
    /// Bytes of this node's area, into which others bring data ([`Udm::inject_bulk`]): 0 for none.
    ///
    /// [`Udm::inject_bulk`]: crate::Udm::inject_bulk
    pub area_bytes: usize,
}

impl Default for UdmOptions {
    fn default() -> Self {
        Self {
            interrupt: Interrupt::default(),
            wait: Wait::Forever,
            queue_bytes: 64 << 20,
            area_bytes: 0,
        }
    }
}
