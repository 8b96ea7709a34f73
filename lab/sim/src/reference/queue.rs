//! Notification queues as they must be (`Hamlyn 2.6`).

use std::collections::VecDeque;

use hamlyn_engine::notification::Notification;

use super::Violation;

/// A queue: what was announced and not yet read, and how much of it was overwritten.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    capacity: usize,
    unread: VecDeque<Notification>,
    lost: u64,
}

impl Queue {
    /// A notification more, over the oldest if the owner did not keep up.
    pub(super) fn announce(&mut self, notification: Notification) {
        if self.unread.len() == self.capacity {
            self.unread.pop_front();
            self.lost += 1;
        }
        self.unread.push_back(notification);
    }

    /// An empty one for at least so many notifications.
    pub(super) fn new(entries: usize) -> Self {
        Self {
            capacity: entries.next_power_of_two(),
            unread: VecDeque::new(),
            lost: 0,
        }
    }

    /// Whether it has nothing to give.
    pub(super) fn is_silent(&self) -> bool {
        self.unread.is_empty() && self.lost == 0
    }

    /// Whether that is what its owner had to read.
    pub(super) fn notified(
        &mut self,
        number: usize,
        found: Result<Option<Notification>, u64>,
    ) -> Result<(), Violation> {
        let expected = if self.lost > 0 {
            Err(std::mem::take(&mut self.lost))
        } else {
            Ok(self.unread.pop_front())
        };
        if expected == found {
            return Ok(());
        }
        Err(Violation::Notified {
            queue: number,
            expected,
            found,
        })
    }
}
