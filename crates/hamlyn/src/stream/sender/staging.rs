//! What is copied because its sender would not wait, records and packs of them, and goes as the
//! link has room.

use hamlyn_engine::terminus::{Completion, GatherPiece};
use hamlyn_host::Host;

use super::Sender;
use super::staged::{Cut, Staged};
use crate::error::SendError;
use crate::message::Message;
use crate::message::Sending;
use crate::session::Session;
use crate::stream::wire::{Kind, piece_word};
use crate::wait::Waiting;

impl Sender {
    /// Copies a record or a pack, which is one piece, so that it can go as the link has room.
    pub(super) fn stage<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        kind: Kind,
        data: &[u8],
    ) -> Result<(), SendError> {
        if kind != Kind::Next {
            self.record_at = self.account.next;
        }
        session.core.sweep_areas();
        let terminus = session.core.terminus();
        let area = session.allocate(data.len() as u64)?;
        area.write_at(0, data).map_err(|_| SendError::Finished)?;
        let tag = session
            .bind_area(terminus, &area, 0..data.len() as u64)
            .map_err(|_| self.would_block())?;
        self.staged = Some(Staged {
            _area: area,
            tag,
            kind,
            length_bytes: data.len(),
            sent_bytes: 0,
            last: None,
        });
        self.push_staged(session)
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
        while let Some(staged) = &self.staged {
            if staged.is_all_queued() {
                if let Some(last) = staged.last
                    && matches!(session.completion(last), Ok(Completion::Pending))
                {
                    session.poll();
                }
                self.drop_staged(session);
                return Ok(());
            }
            let left = staged.length_bytes - staged.sent_bytes;
            let length = left.min(self.piece_bytes);
            let (kind, said) = if staged.sent_bytes > 0 || staged.kind == Kind::Next {
                (Kind::Next, length)
            } else if staged.length_bytes <= self.piece_bytes {
                (staged.kind, length)
            } else {
                (Kind::First, staged.length_bytes)
            };
            let piece = GatherPiece {
                tag: staged.tag,
                offset: staged.sent_bytes as u64,
                length_bytes: length as u64,
            };
            let metadata = piece_word(kind, said as u32).to_le_bytes();
            let offset = self.next_offset();
            let message = Message::new(&[]).at(offset).metadata(&metadata);
            match session.send_gather(terminus, &self.target, &message, &[piece]) {
                Ok(handle) => {
                    self.filled();
                    if let Some(staged) = &mut self.staged {
                        staged.sent_bytes += length;
                        staged.last = Some(handle);
                    }
                }
                Err(SendError::WouldBlock { .. }) => return Ok(()),
                Err(error) => {
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Keeps what is left of a piece that was cut, so that it can go as the link has room.
    pub(super) fn keep_cut(&mut self, sending: Sending, metadata: [u8; 8], data: &[u8]) {
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
            session.core.retire_area(staged.tag);
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
