//! How a stream's sender ends.

use hamlyn_engine::terminus::Completion;
use hamlyn_host::Host;

use super::Sender;
use super::staged::Staged;
use crate::error::SendError;
use crate::remains::{LastWord, Remains};
use crate::session::Session;
use crate::stream::wire::{CLOSE, GIVEN_UP};
use crate::wait::{Wait, Waiting};

impl Sender {
    pub(crate) fn close<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        wait: Wait,
    ) -> Result<(), SendError> {
        let result = self.close_within(session, &mut Waiting::new(wait));
        if !matches!(result, Err(SendError::WouldBlock { .. })) {
            let last_word = self.last_word(false);
            self.leave(last_word);
            self.is_over = true;
            session.core.reap();
        }
        self.note_way();
        result
    }

    fn close_within<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        waiting: &mut Waiting,
    ) -> Result<(), SendError> {
        let handle = match self.closing {
            Some(handle) => handle,
            None => {
                self.flush_all(session, waiting)?;
                let place = self.account.place().to_bytes();
                let left = session.left(waiting);
                let handle = self.send_control(session, CLOSE, &place, left)?;
                self.is_over = true;
                *self.closing.insert(handle)
            }
        };
        let left = session.left(waiting);
        match session.drain(handle, left)? {
            Completion::Sent => Ok(()),
            Completion::Pending => Err(self.would_block()),
            Completion::Failed => Err(session.lost(&self.target).into()),
        }
    }

    /// What the receiver is still to be told: where the last whole record ended, and whether there
    /// was to be more.
    fn last_word(&self, is_given_up: bool) -> Option<LastWord> {
        if self.closing.is_some() || self.account.closed {
            return None;
        }
        let mut place = self.account.place();
        let is_partly_sent = self.is_over || !self.is_all_queued();
        if is_partly_sent {
            place.position = self.record_at;
        }
        if is_given_up || is_partly_sent || !self.pack.is_empty() {
            place.extent |= GIVEN_UP;
        }
        let mut target = self.control;
        target.set_metadata_index(CLOSE);
        Some(LastWord::new(target, place.to_bytes().to_vec()))
    }

    /// Whether no record is sent in part only.
    pub(super) fn is_all_queued(&self) -> bool {
        self.cut.is_none() && self.staged.as_ref().is_none_or(Staged::is_all_queued)
    }

    /// Leaves what is to be done when this is gone, once.
    pub(super) fn leave(&mut self, last_word: Option<LastWord>) {
        if let Some(leaving) = self.leaving.take() {
            // The rest of what is staged is given up.
            self.staged = None;
            leaving.leave(Remains {
                slots: vec![self.slot.name()],
                queue: Some(self.queue.id()),
                last_word,
                ..Remains::default()
            });
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // A program that panics between two records did not mean the stream to end here.
        let last_word = self.last_word(std::thread::panicking());
        self.leave(last_word);
    }
}
