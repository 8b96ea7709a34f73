//! How a small record is sent: with the manager in hand, or beside those who have it.

use hamlyn_host::Host;

use crate::core::Core;
use crate::message::{Message, Target};
use crate::queue::Queue;
use crate::sending_half::SendingHalf;

/// See the module.
pub(crate) trait ShortWay {
    /// True if nothing waits in the queue, as far as is known at once.
    fn is_known_empty(&self, queue: &Queue) -> bool;

    /// Sends a message, if nothing stands in its way. True if it was sent.
    fn send(&mut self, target: &Target, message: &Message<'_>) -> bool;
}

/// With the manager in hand.
impl<H: Host> ShortWay for Core<H> {
    #[inline(always)]
    fn is_known_empty(&self, queue: &Queue) -> bool {
        self.interface.is_known_empty(queue)
    }

    #[inline(always)]
    fn send(&mut self, target: &Target, message: &Message<'_>) -> bool {
        let terminus = self.terminus();
        let sent = self.interface.send_short(terminus, target, message);
        sent.is_some()
    }
}

/// Beside those who have it. They take in what comes, and so the news of this queue.
impl<H: Host> ShortWay for &SendingHalf<H> {
    fn is_known_empty(&self, queue: &Queue) -> bool {
        !queue.reader.is_pending()
    }

    fn send(&mut self, target: &Target, message: &Message<'_>) -> bool {
        SendingHalf::send(self, target, message).is_some()
    }
}
