//! One-sided operations that a session waits for (decision 37): for room when they begin, and for
//! their answers when they are finished; or both in one call. In exported memory without either.

use hamlyn_engine::operation::ReturnPlace;
use hamlyn_host::Host;

use super::Session;
use crate::interface::initiators::{Asking, Begun};
use crate::interface::pieces::Pieces;
use crate::one_sided::{
    Atomic, BLOCKING_READ_BYTES, Change, CompletionCounter, Initiator, Operation, OperationError,
    Width,
};
use crate::wait::{Wait, Waiting};

impl<H: Host> Session<'_, H> {
    /// Begins to read `length_bytes` bytes at `offset` of the ticket's place, into the initiator's
    /// landing memory ([`Initiator::landed`]). Waits for room as long as `wait` says, and takes in
    /// arriving packets meanwhile. Nothing is asked if the length is zero.
    #[inline]
    pub fn begin_read(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        landing_offset: u64,
        length_bytes: u64,
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        let to = initiator.landing(landing_offset, length_bytes)?;
        self.begin(initiator, offset, length_bytes, |_| Asking::Read(to), wait)
    }

    /// Begins to put `bytes` to `offset` of the ticket's place. When this returns, the bytes were
    /// copied; when the operation is complete, all of them are in their place. They appear there in
    /// any order. Waits as [`Session::begin_read`] does.
    #[inline]
    pub fn begin_put(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        let length_bytes = bytes.len() as u64;
        self.begin(
            initiator,
            offset,
            length_bytes,
            |_| Asking::Put(bytes),
            wait,
        )
    }

    /// Begins to change the word at `offset` of the ticket's place, which must lie at a multiple of
    /// its width in the owner's area. [`Session::finish_word`] tells what the word was before.
    /// Waits as [`Session::begin_read`] does.
    #[inline]
    pub fn begin_atomic(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        atomic: Atomic,
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        let length_bytes = atomic.width.bytes();
        self.begin(
            initiator,
            offset,
            length_bytes,
            |_| Asking::Atomic(atomic),
            wait,
        )
    }

    /// Begins to read the eight bytes at `offset` of the ticket's place, for
    /// [`Session::finish_word`].
    #[inline]
    pub fn begin_read_word(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        let to = |operation: Operation| Asking::Read(ReturnPlace::value_offset(operation.token));
        self.begin(initiator, offset, size_of::<u64>() as u64, to, wait)
    }

    fn begin<'b>(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        length_bytes: u64,
        asking: impl FnOnce(Operation) -> Asking<'b>,
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        initiator.target.ticket.place(offset, length_bytes)?;
        let pieces = Pieces::one(offset, length_bytes);
        self.begin_pieces(initiator, pieces, asking, wait)
    }

    /// Begins an operation on pieces that lie in the ticket's place.
    #[inline]
    pub(super) fn begin_pieces<'b>(
        &mut self,
        initiator: &mut Initiator,
        pieces: Pieces<'_>,
        asking: impl FnOnce(Operation) -> Asking<'b>,
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        let mut wait = wait;
        if initiator.has_given_up {
            let mut waiting = Waiting::new(wait);
            if !self.await_given_up(initiator, &mut waiting)? {
                return Err(OperationError::WouldBlock);
            }
            wait = self.left(&mut waiting);
        }
        let (operation, asking) = match self.begin_operation(initiator, &pieces, asking)? {
            Begun::Asked(operation) => return Ok(operation),
            Begun::ToBeAsked(operation, asking) => (operation, asking),
        };
        let mut asked_bytes = 0;
        let asked = self.wait_for_room(wait, |session| {
            session.ask_some(initiator, operation, &pieces, &mut asked_bytes, &asking)
        });
        initiator.has_given_up |= asked_bytes > 0 && asked != Ok(Some(()));
        self.end_beginning(initiator, operation, asked)
    }

    /// Waits until an operation is complete, and fetches its result. Its place is free then; after
    /// [`OperationError::TimedOut`] it is still outstanding.
    pub fn finish(
        &mut self,
        initiator: &mut Initiator,
        operation: Operation,
        wait: Wait,
    ) -> Result<(), OperationError> {
        self.check()?;
        let finished = self.wait_for(wait, |session| session.try_finish(initiator, operation));
        finished?.ok_or(OperationError::TimedOut)
    }

    /// As [`Session::finish`], for an operation with a word: what it was before the change, or what
    /// was read.
    pub fn finish_word(
        &mut self,
        initiator: &mut Initiator,
        operation: Operation,
        wait: Wait,
    ) -> Result<u64, OperationError> {
        self.finish(initiator, operation, wait)?;
        // Its place is used again by the next operation at the earliest.
        let place = ReturnPlace::value_offset(operation.token);
        let loaded = initiator.area.load_u64(place);
        loaded.map_err(|_| OperationError::NotOutstanding)
    }

    /// Waits until all operations that are outstanding are complete. Of several that failed, one is
    /// told of, also if the wait was over before others were. Values of words are not kept.
    pub fn finish_all(
        &mut self,
        initiator: &mut Initiator,
        wait: Wait,
    ) -> Result<(), OperationError> {
        self.check()?;
        let mut failed = Ok(());
        let finished = self.wait_for(wait, |session| {
            while let Some(operation) = session.any_outstanding(initiator)? {
                match session.try_finish(initiator, operation) {
                    Ok(Some(())) => {}
                    Ok(None) => return Ok(None),
                    Err(error) => failed = failed.clone().and(Err(error)),
                }
            }
            Ok::<_, OperationError>(Some(()))
        })?;
        failed.and(finished.ok_or(OperationError::TimedOut))
    }

    /// Waits until `ended` operations that were given to the counter have come to their end, since
    /// it was made. Fails with [`OperationError::TimedOut`] if they have not in that time. Whether
    /// all were carried out says [`CompletionCounter::failed`].
    pub fn await_completions(
        &mut self,
        counter: &CompletionCounter,
        ended: u64,
        wait: Wait,
    ) -> Result<(), OperationError> {
        self.check()?;
        let is_there = || (counter.ended() >= ended).then_some(());
        let ended = self.wait_for(wait, |session| {
            if counter.ended() < ended {
                session.poll_beside_processor();
            }
            Ok::<_, OperationError>(is_there())
        });
        ended?.ok_or(OperationError::TimedOut)
    }

    /// Reads the eight bytes at `offset` of the ticket's place. Blocks as long as `wait` says.
    pub fn read_word(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        wait: Wait,
    ) -> Result<u64, OperationError> {
        self.check()?;
        if let Some(word) = self.read_word_direct(initiator, offset) {
            return Ok(word);
        }
        let operation = self.begin_read_word(initiator, offset, wait)?;
        self.finish_or_give_up(initiator, operation, wait)
    }

    /// Reads `into.len()` bytes at `offset` of the ticket's place, as many as the ticket has.
    /// Blocks as long as `wait` says. What does not come in exported memory comes in rounds of 64
    /// KiB, and is copied once more. After an error `into` may hold a part of it. Does not
    /// allocate.
    pub fn read(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        into: &mut [u8],
        wait: Wait,
    ) -> Result<(), OperationError> {
        self.check()?;
        if self.read_direct(initiator, offset, into)? {
            return Ok(());
        }
        let place = initiator.blocking_read_place();
        let mut waiting = Waiting::new(wait);
        if initiator.has_given_up && !self.await_given_up(initiator, &mut waiting)? {
            return Err(OperationError::TimedOut);
        }
        for (index, piece) in into.chunks_mut(BLOCKING_READ_BYTES).enumerate() {
            let offset = offset + (index * BLOCKING_READ_BYTES) as u64;
            let length_bytes = piece.len() as u64;
            let wait = match index {
                0 => wait,
                _ => self.left(&mut waiting),
            };
            let read = self
                .begin(
                    initiator,
                    offset,
                    length_bytes,
                    |_| Asking::Read(place),
                    wait,
                )
                .and_then(|operation| self.finish_or_give_up(initiator, operation, wait));
            read?;
            let copied = initiator.area.read_at(place, piece);
            debug_assert!(copied.is_ok(), "blocking reads have a place in the area");
        }
        Ok(())
    }

    /// Waits until nothing of operations that were given up is under way: it would land where the
    /// next read does, or come after the next change. False if the time was over first.
    #[cold]
    fn await_given_up(
        &mut self,
        initiator: &mut Initiator,
        waiting: &mut Waiting,
    ) -> Result<bool, OperationError> {
        let over = self.wait_within(waiting, |session, _| {
            let is_over = !session.awaits_given_up(initiator);
            Ok::<_, OperationError>(is_over.then_some(()))
        });
        let is_over = over?.is_some();
        initiator.has_given_up &= !is_over;
        Ok(is_over)
    }

    /// Changes the eight bytes at `offset` of the ticket's place, and returns what they were.
    /// Blocks as long as `wait` says; if that was too short, the change may be made later.
    /// [`Change::CompareSwap`] needs what is expected, and so [`Session::begin_atomic`].
    pub fn change(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        change: Change,
        operand: u64,
        wait: Wait,
    ) -> Result<u64, OperationError> {
        self.check()?;
        let atomic = Atomic::new(change, Width::Bits64, operand);
        if let Some(before) = self.change_direct(initiator, offset, &atomic) {
            return Ok(before);
        }
        let operation = self.begin_atomic(initiator, offset, atomic, wait)?;
        self.finish_or_give_up(initiator, operation, wait)
    }

    /// Puts `bytes` to `offset` of the ticket's place, and waits until they are there, as long as
    /// `wait` says.
    pub fn put(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<(), OperationError> {
        self.check()?;
        if self.put_direct(initiator, offset, bytes) {
            return Ok(());
        }
        let operation = self.begin_put(initiator, offset, bytes, wait)?;
        self.finish_or_give_up(initiator, operation, wait).map(drop)
    }

    fn finish_or_give_up(
        &mut self,
        initiator: &mut Initiator,
        operation: Operation,
        wait: Wait,
    ) -> Result<u64, OperationError> {
        let finished = self.finish_word(initiator, operation, wait);
        if let Err(OperationError::TimedOut | OperationError::Host(_)) = finished {
            initiator.has_given_up = true;
            self.give_up(initiator, operation)?;
        }
        finished
    }
}
