//! Notification queues, in the hands of their owner.

use hamlyn_engine::notification::NotificationReader;
use hamlyn_engine::slot::QueueId;

/// A notification queue with its reading end.
#[derive(Debug)]
pub struct Queue {
    pub(crate) id: QueueId,
    pub(crate) reader: NotificationReader,
    /// How much the interface had announced when the queue was last found empty.
    pub(crate) empty_at: u64,
}

impl Queue {
    /// What slots are opened with in order to announce arrivals here.
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// Number of entries.
    pub fn capacity(&self) -> usize {
        self.reader.capacity()
    }

    /// Notifications lost to overrun so far.
    pub fn lost(&self) -> u64 {
        self.reader.lost()
    }
}
