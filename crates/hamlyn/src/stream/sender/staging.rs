//! What is copied because its sender would not wait, records and packs of them, and goes as the
//! link has room.

use hamlyn_engine::terminus::Completion;
use hamlyn_host::Host;

use super::Sender;
use super::staged::{Cut, Staged};
use crate::error::{NotSent, SendError};
use crate::message::{Message, Sending};
use crate::session::Session;
use crate::stream::wire::{Kind, piece_word};
use crate::wait::Waiting;

impl Sender {
    /// Copies a record or a pack, which is one piece, so that it can go as the link has room. Of a
    /// record whose beginning is sent already, [`Kind::Next`] is the rest.
    pub(super) fn stage(&mut self, kind: Kind, data: &[u8]) {
        if kind != Kind::Next {
            self.record_at = self.account.next;
        }
        let is_one_piece = data.len() <= self.piece_bytes;
        self.staged = Some(Staged {
            pieces: data.chunks(self.piece_bytes).map(Vec::from).collect(),
            kind: match kind {
                Kind::Whole if !is_one_piece => Kind::First,
                kind => kind,
            },
            told_bytes: data.len(),
            last: None,
        });
    }

    /// Queues as much of a staged record as the terminus takes.
    pub(super) fn push_staged<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<(), SendError> {
        let terminus = session.core.terminus();
        if let Some(cut) = &mut self.cut {
            let message = Message::new(&cut.data).metadata(&cut.metadata);
            let sent = session.send_some(terminus, &cut.target, &message, &mut cut.sending)?;
            if sent.is_none() {
                return Ok(());
            }
            self.cut = None;
        }
        while let Some(staged) = &mut self.staged {
            let Some(piece) = staged.pieces.pop_front() else {
                if let Some(last) = staged.last
                    && matches!(session.completion(last), Ok(Completion::Pending))
                {
                    session.poll();
                }
                self.drop_staged(session);
                return Ok(());
            };
            let told_bytes = match staged.kind {
                Kind::Next => piece.len(),
                _ => staged.told_bytes,
            };
            let metadata = piece_word(staged.kind, told_bytes as u32).to_le_bytes();
            let offset = u64::from(self.account.next_index) * self.piece_bytes as u64;
            let message = Message::new(&[]).at(offset).metadata(&metadata);
            match session
                .core
                .interface
                .try_send_owned(terminus, &self.target, &message, piece)
            {
                Ok(handle) => {
                    staged.last = Some(handle);
                    staged.kind = Kind::Next;
                    self.filled();
                }
                Err(NotSent { error, data }) => {
                    staged.pieces.push_front(data);
                    if let SendError::WouldBlock { .. } = error {
                        return Ok(());
                    }
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Keeps what is left of a piece that was cut, so that it can go as the link has room.
    pub(super) fn keep_cut(&mut self, sending: Sending, metadata: [u8; 8], data: &[u8]) {
        debug_assert!(self.cut.is_none(), "the rest of another piece goes first");
        self.cut = Some(Cut {
            target: self.target,
            sending,
            data: data.to_vec(),
            metadata,
        });
        self.record_at = self.account.next;
        self.filled();
    }

    /// Forgets a staged record that was handed over.
    pub(super) fn drop_staged<H: Host>(&mut self, session: &mut Session<'_, H>) {
        if let Some(staged) = &self.staged
            && staged.is_all_queued()
            && staged
                .last
                .is_none_or(|last| !matches!(session.completion(last), Ok(Completion::Pending)))
        {
            self.staged = None;
        }
    }

    pub(super) fn finish_staged<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        waiting: &mut Waiting,
    ) -> Result<(), SendError> {
        let finished = session.wait_within(waiting, |session, _| {
            self.check(session)?;
            Ok::<_, SendError>((!self.is_staging()).then_some(()))
        });
        finished?.ok_or_else(|| self.would_block())
    }
}
