//! The ends between which messages are counted.

use std::time::Duration;

use anyhow::Result;
use hamlyn::Wait;

/// Messages sent before they are received. Fewer than the cells of an idle ring, so none waits for
/// room.
pub const BATCH: usize = 32;
/// Time within which ends are connected.
pub(super) const CONNECTION: Duration = Duration::from_secs(5);
pub(super) const GROWTH: Wait = Wait::For(CONNECTION);

/// Both ends of a protocol, each call of which moves one message.
pub(super) trait Ends {
    fn send(&mut self, turn: usize) -> Result<()>;
    fn receive(&mut self, turn: usize) -> Result<()>;
}
