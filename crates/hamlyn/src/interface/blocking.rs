//! One-sided operations that a program waits for (decision 37): begun, and finished or given up, in one call; in exported memory
//! without either.

use hamlyn_host::Host;

use super::Interface;
use super::operating::Asking;
use crate::one_sided::{
    Atomic, BLOCKING_READ_BYTES, Change, Initiator, Operation, OperationError, Width,
};
use crate::wait::{Wait, WaitState};

impl<H: Host> Interface<H> {
    /// Reads the eight bytes at `offset` of the ticket's place. Blocks as long as `wait` says.
    pub fn read_word(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        wait: Wait,
    ) -> Result<u64, OperationError> {
        if let Some(word) = self.read_word_direct(initiator, offset) {
            return Ok(word);
        }
        let operation = self.begin_read_word(initiator, offset, wait)?;
        self.finish_or_give_up(initiator, operation, wait)
    }

    /// Reads `into.len()` bytes at `offset` of the ticket's place, as many as the ticket has. Blocks as long as `wait` says. What
    /// does not come in exported memory comes in rounds of 64 KiB, and is copied once more. After an error `into` may hold a
    /// part of it. Does not allocate.
    pub fn read(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        into: &mut [u8],
        wait: Wait,
    ) -> Result<(), OperationError> {
        if self.read_direct(initiator, offset, into)? {
            return Ok(());
        }
        if initiator.is_read_given_up {
            self.await_given_up(initiator, wait)?;
        }
        let place = initiator.blocking_read_place();
        let mut wait_state = WaitState::new(wait);
        for (index, piece) in into.chunks_mut(BLOCKING_READ_BYTES).enumerate() {
            let offset = offset + (index * BLOCKING_READ_BYTES) as u64;
            let length_bytes = piece.len() as u64;
            let wait = match index {
                0 => wait,
                _ => self.left(&mut wait_state),
            };
            let asking = |_| Asking::Read(place);
            let read = self
                .begin(initiator, offset, length_bytes, asking, wait)
                .and_then(|operation| self.finish_or_give_up(initiator, operation, wait));
            if let Err(error) = read {
                initiator.is_read_given_up = true;
                return Err(error);
            }
            let copied = initiator.area.read_at(place, piece);
            debug_assert!(copied.is_ok(), "blocking reads have a place in the area");
        }
        Ok(())
    }

    /// Whether something of operations is under way whose results nobody fetches: those that were given to a counter, or begun in part only.
    /// What they read may still land, so its place must not be used again before. Does not block.
    pub fn awaits_given_up(&mut self, initiator: &Initiator) -> bool {
        let has_given_up = |interface: &mut Self| {
            let operations = interface.operating.of(initiator);
            operations.is_ok_and(|operations| operations.has_given_up())
        };
        if !has_given_up(self) {
            return false;
        }
        let link = initiator.target.link;
        // Asked before the look, so that what came before the end of the link is seen.
        let is_gone = self.is_drained(link) && self.link_end(link).is_some();
        self.take_answers(initiator.slot, None);
        !is_gone && has_given_up(self)
    }

    /// Waits until nothing of operations that were given up is under way: it would land where the next read does.
    #[cold]
    fn await_given_up(
        &mut self,
        initiator: &mut Initiator,
        wait: Wait,
    ) -> Result<(), OperationError> {
        let mut wait_state = WaitState::new(wait);
        while self.awaits_given_up(initiator) {
            if !self.pause(&mut wait_state)? {
                return Err(OperationError::TimedOut);
            }
        }
        initiator.is_read_given_up = false;
        Ok(())
    }

    /// Changes the eight bytes at `offset` of the ticket's place, and returns what they were. Blocks as long as `wait` says; if
    /// that was too short, the change may be made later. [`Change::CompareSwap`] needs what is expected, and so
    /// [`Interface::begin_atomic`].
    pub fn change(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        change: Change,
        operand: u64,
        wait: Wait,
    ) -> Result<u64, OperationError> {
        let atomic = Atomic::new(change, Width::Bits64, operand);
        if let Some(before) = self.change_direct(initiator, offset, &atomic) {
            return Ok(before);
        }
        let operation = self.begin_atomic(initiator, offset, atomic, wait)?;
        self.finish_or_give_up(initiator, operation, wait)
    }

    /// Puts `bytes` to `offset` of the ticket's place, and waits until they are there, as long as `wait` says.
    pub fn put(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<(), OperationError> {
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
        if finished == Err(OperationError::TimedOut) {
            self.operating.of(initiator)?.give_up(operation, 0);
        }
        finished
    }
}
