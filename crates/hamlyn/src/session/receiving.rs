//! A session receives, and waits for a message.

use hamlyn_engine::notification::Notification;
use hamlyn_host::Host;

use super::Session;
use crate::error::ReceiveError;
use crate::queue::Queue;
use crate::wait::Wait;

impl<H: Host> Session<'_, H> {
    /// Waits for a message (`h_rcv_block`). Nothing if none came in time.
    pub fn rcv_block(
        &mut self,
        queue: &mut Queue,
        wait: Wait,
    ) -> Result<Option<Notification>, ReceiveError> {
        self.check()?;
        self.wait_for(wait, |session| Ok(session.next_notification(queue)?))
    }
}
