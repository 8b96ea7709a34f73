//! One-sided operations that wait: for room when they begin, and for their answers when they are finished.

use hamlyn_engine::memory::Unsent;
use hamlyn_engine::operation::ReturnPlace;
use hamlyn_engine::point::Point;
use hamlyn_host::Host;

use super::direct::carry_out;
use super::in_hand::InHand;
use super::operating::{Asking, clear_value};
use super::pieces::Pieces;
use crate::one_sided::{Atomic, Initiator, Operation, OperationError};
use crate::wait::{Wait, WaitState};

/// See [`Interface::begin_read`](super::Interface::begin_read).
#[inline]
pub(crate) fn begin_read<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    offset: u64,
    landing_offset: u64,
    length_bytes: u64,
    wait: Wait,
) -> Result<Operation, OperationError> {
    let to = initiator.landing(landing_offset, length_bytes)?;
    let asking = |_| Asking::Read(to);
    begin(hand, initiator, offset, length_bytes, asking, wait)
}

/// See [`Interface::begin_put`](super::Interface::begin_put).
#[inline]
pub(crate) fn begin_put<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    offset: u64,
    bytes: &[u8],
    wait: Wait,
) -> Result<Operation, OperationError> {
    let length_bytes = bytes.len() as u64;
    let asking = |_| Asking::Put(bytes);
    begin(hand, initiator, offset, length_bytes, asking, wait)
}

/// See [`Interface::begin_atomic`](super::Interface::begin_atomic).
#[inline]
pub(crate) fn begin_atomic<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    offset: u64,
    atomic: Atomic,
    wait: Wait,
) -> Result<Operation, OperationError> {
    let length_bytes = atomic.width.bytes();
    let asking = |_| Asking::Atomic(atomic);
    begin(hand, initiator, offset, length_bytes, asking, wait)
}

/// See [`Interface::begin_read_word`](super::Interface::begin_read_word).
#[inline]
pub(crate) fn begin_read_word<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    offset: u64,
    wait: Wait,
) -> Result<Operation, OperationError> {
    let to = |operation: Operation| Asking::Read(ReturnPlace::value_offset(operation.token));
    let length_bytes = size_of::<u64>() as u64;
    begin(hand, initiator, offset, length_bytes, to, wait)
}

pub(super) fn begin<'a, H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    offset: u64,
    length_bytes: u64,
    asking: impl FnOnce(Operation) -> Asking<'a>,
    wait: Wait,
) -> Result<Operation, OperationError> {
    initiator.target.ticket.place(offset, length_bytes)?;
    let pieces = Pieces::one(offset, length_bytes);
    begin_pieces(hand, initiator, pieces, asking, wait)
}

/// Begins an operation on pieces that lie in the ticket's place.
#[inline]
pub(super) fn begin_pieces<'a, H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    pieces: Pieces<'_>,
    asking: impl FnOnce(Operation) -> Asking<'a>,
    wait: Wait,
) -> Result<Operation, OperationError> {
    let length_bytes = pieces.length_bytes;
    let interface = hand.interface();
    let operations = interface.operating.of(initiator)?;
    let operation = operations.begin(length_bytes)?;
    let asking = asking(operation);
    H::passes(match asking {
        Asking::Read(_) => Point::ReadBegun,
        Asking::Put(_) => Point::PutBegun,
        Asking::Atomic(_) => Point::ChangeBegun,
    });
    if let Some(window) = interface.direct(initiator) {
        let done = carry_out(window, &asking, &initiator.area, &pieces);
        if let (Ok(value), Asking::Atomic(_)) = (done, &asking) {
            let place = ReturnPlace::value_offset(operation.token);
            let stored = initiator.area.store_u64(place, value);
            debug_assert!(stored.is_ok(), "values have places in the area");
        }
        interface
            .operating
            .of(initiator)?
            .done_at_once(operation, done.err());
        return Ok(operation);
    }
    if interface.ask_at_once(initiator, operation, &pieces, &asking) {
        return Ok(operation);
    }
    if let Asking::Atomic(_) = asking {
        clear_value(initiator, operation);
    }
    let mut wait_state = WaitState::new(wait);
    let mut asked_bytes = 0;
    while asked_bytes < length_bytes {
        let interface = hand.interface();
        let error = match interface.request(initiator, operation, &pieces, asked_bytes, &asking) {
            Ok(bytes) => {
                asked_bytes += bytes;
                continue;
            }
            Err(Unsent::Gone) => {
                interface.end_broken();
                OperationError::PeerLost(interface.lost(&initiator.target))
            }
            Err(Unsent::Full) => {
                interface
                    .outbound
                    .lock(|outbound| outbound.tx_links.hand_over());
                interface.take_answers_of_link(initiator.target.link);
                match hand.pause(&mut wait_state) {
                    Ok(true) => continue,
                    Ok(false) => OperationError::WouldBlock,
                    Err(error) => error.into(),
                }
            }
        };
        let operations = hand.interface().operating.of(initiator)?;
        operations.give_up(operation);
        return Err(error);
    }
    let operations = hand.interface().operating.of(initiator)?;
    operations.all_asked(operation);
    Ok(operation)
}

/// See [`Interface::finish`](super::Interface::finish).
pub(crate) fn finish<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    operation: Operation,
    wait: Wait,
) -> Result<(), OperationError> {
    let mut wait_state = WaitState::new(wait);
    loop {
        let interface = hand.interface();
        if interface.finish_at_hand(initiator, operation) {
            return Ok(());
        }
        let link = initiator.target.link;
        // Asked before the look, so that what came before the end of the link is seen.
        let is_gone = interface.is_drained(link) && interface.link_end(link).is_some();
        interface.take_answers(initiator.slot, Some(operation));
        let operations = interface.operating.of(initiator)?;
        if let Some(result) = operations.fetch(operation) {
            return result;
        }
        if is_gone {
            operations.forget(operation);
            return Err(interface.lost(&initiator.target).into());
        }
        if !hand.pause(&mut wait_state)? {
            return Err(OperationError::TimedOut);
        }
    }
}

/// See [`Interface::finish_word`](super::Interface::finish_word).
pub(crate) fn finish_word<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    operation: Operation,
    wait: Wait,
) -> Result<u64, OperationError> {
    finish(hand, initiator, operation, wait)?;
    // Its place is used again by the next operation at the earliest.
    let place = ReturnPlace::value_offset(operation.token);
    let loaded = initiator.area.load_u64(place);
    loaded.map_err(|_| OperationError::NotOutstanding)
}

/// See [`Interface::finish_all`](super::Interface::finish_all).
pub(crate) fn finish_all<H: Host>(
    hand: &mut impl InHand<H>,
    initiator: &mut Initiator,
    wait: Wait,
) -> Result<(), OperationError> {
    let mut wait_state = WaitState::new(wait);
    let mut result = Ok(());
    while let Some(operation) = hand.interface().operating.of(initiator)?.any() {
        let left = hand.interface().left(&mut wait_state);
        match finish(hand, initiator, operation, left) {
            Ok(()) => {}
            Err(OperationError::TimedOut) => return result.and(Err(OperationError::TimedOut)),
            Err(error) => result = result.and(Err(error)),
        }
    }
    result
}
