//! One-sided operations that a program waits for (decision 37): begun, and finished or given up, in one call; in exported memory
//! without either.

use hamlyn_host::Host;

use super::Interface;
use super::awaiting::{begin, begin_atomic, begin_put, begin_read_word, finish_word};
use super::in_hand::InHand;
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
        self.check()?;
        read_word(self, initiator, offset, wait)
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
        self.check()?;
        read(self, initiator, offset, into, wait)
    }

    /// Whether something of operations is under way whose results nobody fetches: those that were given to a counter, or begun in part only.
    /// What they read may still land, so its place must not be used again before. Does not block.
    pub fn awaits_given_up(&mut self, initiator: &Initiator) -> bool {
        if self.is_forked() {
            return false;
        }
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
        self.check()?;
        self::change(self, initiator, offset, change, operand, wait)
    }

    /// Puts `bytes` to `offset` of the ticket's place, and waits until they are there, as long as `wait` says.
    pub fn put(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<(), OperationError> {
        self.check()?;
        put(self, initiator, offset, bytes, wait)
    }
}

/// See [`Interface::read_word`].
pub(crate) fn read_word<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    offset: u64,
    wait: Wait,
) -> Result<u64, OperationError> {
    if let Some(word) = hand.interface().read_word_direct(initiator, offset) {
        return Ok(word);
    }
    let operation = begin_read_word(hand, initiator, offset, wait)?;
    finish_or_give_up(hand, initiator, operation, wait)
}

/// See [`Interface::read`].
pub(crate) fn read<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    offset: u64,
    into: &mut [u8],
    wait: Wait,
) -> Result<(), OperationError> {
    if hand.interface().read_direct(initiator, offset, into)? {
        return Ok(());
    }
    if initiator.is_read_given_up {
        await_given_up(hand, initiator, wait)?;
    }
    let place = initiator.blocking_read_place();
    let mut wait_state = WaitState::new(wait);
    for (index, piece) in into.chunks_mut(BLOCKING_READ_BYTES).enumerate() {
        let offset = offset + (index * BLOCKING_READ_BYTES) as u64;
        let length_bytes = piece.len() as u64;
        let wait = match index {
            0 => wait,
            _ => hand.interface().left(&mut wait_state),
        };
        let asking = |_| Asking::Read(place);
        let read = begin(hand, initiator, offset, length_bytes, asking, wait)
            .and_then(|operation| finish_or_give_up(hand, initiator, operation, wait));
        if let Err(error) = read {
            initiator.is_read_given_up = true;
            return Err(error);
        }
        let copied = initiator.area.read_at(place, piece);
        debug_assert!(copied.is_ok(), "blocking reads have a place in the area");
    }
    Ok(())
}

/// Waits until nothing of operations that were given up is under way: it would land where the next read does.
#[cold]
fn await_given_up<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    wait: Wait,
) -> Result<(), OperationError> {
    let mut wait_state = WaitState::new(wait);
    while hand.interface().awaits_given_up(initiator) {
        if !hand.pause(&mut wait_state)? {
            return Err(OperationError::TimedOut);
        }
    }
    initiator.is_read_given_up = false;
    Ok(())
}

/// See [`Interface::change`].
pub(crate) fn change<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    offset: u64,
    change: Change,
    operand: u64,
    wait: Wait,
) -> Result<u64, OperationError> {
    let atomic = Atomic::new(change, Width::Bits64, operand);
    if let Some(before) = hand.interface().change_direct(initiator, offset, &atomic) {
        return Ok(before);
    }
    let operation = begin_atomic(hand, initiator, offset, atomic, wait)?;
    finish_or_give_up(hand, initiator, operation, wait)
}

/// See [`Interface::put`].
pub(crate) fn put<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    offset: u64,
    bytes: &[u8],
    wait: Wait,
) -> Result<(), OperationError> {
    if hand.interface().put_direct(initiator, offset, bytes) {
        return Ok(());
    }
    let operation = begin_put(hand, initiator, offset, bytes, wait)?;
    finish_or_give_up(hand, initiator, operation, wait).map(drop)
}

fn finish_or_give_up<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    operation: Operation,
    wait: Wait,
) -> Result<u64, OperationError> {
    let finished = finish_word(hand, initiator, operation, wait);
    if finished == Err(OperationError::TimedOut) {
        hand.interface().operating.of(initiator)?.give_up(operation);
    }
    finished
}
