//! Options of an end point.

use hamlyn::Wait;

/// When handlers run of themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Interrupt {
    /// Never: they run when the program polls.
    Polling,
    /// When the program injects, polls, or ends a section.
    #[default]
    Safepoint,
}

/// Options of an end point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdmOptions {
    /// When handlers run of themselves.
    pub interrupt: Interrupt,
    /// How long an injection waits for room.
    pub wait: Wait,
    /// Bytes of messages that were taken out of the network, but not extracted: of those that come
    /// while a section waits for room, and of those that come over a network processor. 64 to 2^30.
    pub queue_bytes: u32,
}

impl Default for UdmOptions {
    fn default() -> Self {
        Self {
            interrupt: Interrupt::default(),
            wait: Wait::Forever,
            queue_bytes: 64 << 20,
        }
    }
}
