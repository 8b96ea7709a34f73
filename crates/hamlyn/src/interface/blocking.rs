//! One-sided operations that a program waits for (decision 37): begun, and finished or given up, in one call; in exported memory
//! without either.

use hamlyn_host::Host;

use super::Interface;
use crate::one_sided::{Atomic, Change, Initiator, Operation, OperationError, Width};
use crate::wait::Wait;

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
