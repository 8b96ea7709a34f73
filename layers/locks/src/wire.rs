//! Messages between clients and servers, as arguments and data of active messages.
//!
//! A client numbers its requests, and the server takes them in this order, as active messages may
//! come in any. A request names its lock by the client's handle, so a client cannot name locks of
//! others.

use crate::mode::Mode;
use crate::refusal::Refusal;
use crate::resource::{VALUE_BYTES, Value};
use crate::table::{Operation, Told};

/// Handlers of the server. A client's first request, which is answered when the server ends it.
pub(crate) const HELLO: u8 = 1;
pub(crate) const REQUEST: u8 = 2;
/// A request with data.
pub(crate) const REQUEST_WITH: u8 = 3;
/// The reply to [`WELCOME`]: the client has ended.
pub(crate) const BYE: u8 = 4;

/// Handlers of the client. The server's first request, which is answered when the client ends.
pub(crate) const WELCOME: u8 = 1;
/// The state of a lock: the reply to a request, or by itself.
pub(crate) const STATE: u8 = 2;
/// The same with a value.
pub(crate) const STATE_WITH: u8 = 3;
/// The reply to [`HELLO`]: the server does not take the client, or no more.
pub(crate) const ENDED: u8 = 4;

/// The item under which a server publishes its name.
pub(crate) const ITEM: &str = "locks";
pub(crate) const VERSION: u32 = 1;

/// A request as it travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) client: u32,
    /// Its number among all of the client.
    pub(crate) number: u32,
    pub(crate) handle: u32,
    /// Its number among those of the lock.
    pub(crate) operation: u32,
}

const LOCK: u32 = 1;
const CONVERT: u32 = 2;
const CANCEL: u32 = 3;
const RELEASE: u32 = 4;
const TRY: u32 = 1 << 16;

/// The arguments of a request, and its data.
pub(crate) fn request<'a>(head: &Head, operation: &Operation<'a>) -> ([u32; 5], &'a [u8]) {
    let word = |kind: u32, mode: Mode, is_try: bool| {
        kind | (mode as u32) << 8 | if is_try { TRY } else { 0 }
    };
    let bytes = |value: Option<&'a [u8; VALUE_BYTES]>| value.map_or(&[][..], |value| value);
    let (word, data) = match *operation {
        Operation::Lock { mode, is_try, name } => (word(LOCK, mode, is_try), name),
        Operation::Convert {
            mode,
            is_try,
            value,
        } => (word(CONVERT, mode, is_try), bytes(value)),
        Operation::Cancel => (CANCEL, &[][..]),
        Operation::Release { value } => (RELEASE, bytes(value)),
    };
    (
        [head.client, head.number, head.handle, head.operation, word],
        data,
    )
}

/// Reads a request. Total; without its head it has no answer.
pub(crate) fn read_request<'a>(
    arguments: &[u32],
    data: &'a [u8],
) -> Option<(Head, Result<Operation<'a>, Refusal>)> {
    let &[client, number, handle, operation, word] = arguments else {
        return None;
    };
    let head = Head {
        client,
        number,
        handle,
        operation,
    };
    let mode = Mode::of_code((word >> 8) as u8);
    let is_try = word & TRY != 0;
    let value = match data.len() {
        0 => Some(None),
        _ => data.try_into().ok().map(Some),
    };
    let operation = match (word & 0xff, mode, value) {
        (LOCK, Some(mode), _) => Some(Operation::Lock {
            mode,
            is_try,
            name: data,
        }),
        (CONVERT, Some(mode), Some(value)) => Some(Operation::Convert {
            mode,
            is_try,
            value,
        }),
        (CANCEL, ..) => Some(Operation::Cancel),
        (RELEASE, _, Some(value)) => Some(Operation::Release { value }),
        _ => None,
    };
    Some((head, operation.ok_or(Refusal::BadRequest)))
}

/// The state of a lock as it travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct State {
    pub(crate) handle: u32,
    pub(crate) operation: u32,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) is_waiting: bool,
    pub(crate) held: Option<Mode>,
    pub(crate) blocking: Option<Mode>,
    /// The value that comes with it is valid.
    pub(crate) is_valid: bool,
}

const WAITING: u32 = 1 << 24;
const VALID: u32 = 1 << 25;

impl State {
    pub(crate) fn of(told: &Told<'_>) -> Self {
        Self {
            handle: told.handle,
            operation: told.operation,
            refusal: told.refusal,
            is_waiting: told.is_waiting,
            held: told.held,
            blocking: told.blocking,
            is_valid: told.value.is_some_and(|value| value.is_valid),
        }
    }

    pub(crate) fn refused(head: &Head, refusal: Refusal) -> Self {
        Self {
            handle: head.handle,
            operation: head.operation,
            refusal: Some(refusal),
            is_waiting: false,
            held: None,
            blocking: None,
            is_valid: false,
        }
    }

    pub(crate) fn to_arguments(self) -> [u32; 3] {
        let mode = |mode: Option<Mode>| mode.map_or(0, |mode| mode as u32 + 1);
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let word = self.refusal.map_or(0, Refusal::code)
            | mode(self.held) << 8
            | mode(self.blocking) << 16
            | flag(self.is_waiting, WAITING)
            | flag(self.is_valid, VALID);
        [self.handle, self.operation, word]
    }

    pub(crate) fn read(arguments: &[u32]) -> Option<Self> {
        let &[handle, operation, word] = arguments else {
            return None;
        };
        let mode = |at: u32| Mode::of_code(((word >> at) as u8).wrapping_sub(1));
        let refusal = word & 0xff;
        Some(Self {
            handle,
            operation,
            refusal: (refusal > 0).then(|| Refusal::of_code(refusal)),
            is_waiting: word & WAITING != 0,
            held: mode(8),
            blocking: mode(16),
            is_valid: word & VALID != 0,
        })
    }
}

/// A value as it travels.
pub(crate) fn read_value(data: &[u8], is_valid: bool) -> Option<Value> {
    let bytes = data.try_into().ok()?;
    Some(Value { bytes, is_valid })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_arguments_are_read(arguments: Vec<u32>, data: Vec<u8>) {
            let _ = State::read(&arguments);
            if let Some((head, Ok(operation))) = read_request(&arguments, &data) {
                let (again, bytes) = request(&head, &operation);
                prop_assert_eq!(read_request(&again, bytes), Some((head, Ok(operation))));
            }
        }

        #[test]
        fn states_come_back(handle: u32, operation: u32, refusal in 0_u32..17, held in 0_u8..7,
                            blocking in 0_u8..7, flags in 0_u32..4) {
            let mode = |code: u8| Mode::of_code(code.wrapping_sub(1));
            let state = State {
                handle, operation,
                refusal: (refusal > 0).then(|| Refusal::of_code(refusal)),
                is_waiting: flags & 1 > 0, held: mode(held), blocking: mode(blocking),
                is_valid: flags & 2 > 0,
            };
            prop_assert_eq!(State::read(&state.to_arguments()), Some(state));
        }
    }
}
