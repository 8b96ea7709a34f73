//! Messages between clients and servers, as arguments and data of active messages.
//!
//! A client numbers its requests, and the server takes them in this order, as active messages may
//! come in any. A request names its lock by the client's handle, so a client cannot name locks of
//! others.

use crate::error::LockError;
use crate::mode::Mode;
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

/// Why a server refused an operation: the lock is as it was before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The lock cannot be had at once.
    #[error("another lock is in the way")]
    Busy,
    /// The client would wait for itself.
    #[error("waiting would close a circle of clients that wait for each other: release locks")]
    Deadlock,
    /// See [`Limits::locks`](crate::Limits::locks).
    #[error("the client has as many locks as it may have: release one")]
    TooManyLocks,
    /// See [`Limits::waiting`](crate::Limits::waiting).
    #[error("as many locks of the client wait as may: release one")]
    TooManyWaiting,
    /// See [`Limits::locks_of_resource`](crate::Limits::locks_of_resource).
    #[error("the resource has as many locks as it may have: try again later")]
    ResourceFull,
    /// See [`Limits::resources`](crate::Limits::resources).
    #[error("the server has as many resources as it may have: try again later")]
    TooManyResources,
    /// See [`Limits::name_bytes`](crate::Limits::name_bytes).
    #[error("the name is longer than the server takes: use a shorter one")]
    NameTooLong,
    /// See [`Limits::clients`](crate::Limits::clients).
    #[error("the server has as many clients as it may have: try again later")]
    TooManyClients,
    /// See [`Limits::clients_of_link`](crate::Limits::clients_of_link).
    #[error("this process has as many clients of the server as it may have: drop one")]
    TooManyClientsOfLink,
    /// The client was given other servers than this one.
    #[error("the server is one of other servers than the client was given: give all the same")]
    OtherServers,
    /// The client speaks another version.
    #[error("the server speaks another version: use the same")]
    Version,
    /// The server does not know the client.
    #[error("the server has ended the client: its locks are released")]
    NoSuchClient,
    /// The client has no such lock.
    #[error("the client has no such lock")]
    NoSuchLock,
    /// The client has another lock of that handle.
    #[error("the client has another lock of that handle")]
    HandleInUse,
    /// The lock waits already.
    #[error("the lock waits already: cancel that, or release it")]
    Waits,
    /// The request is none.
    #[error("the request is none")]
    BadRequest,
}

const REFUSALS: [Refusal; 16] = [
    Refusal::Busy,
    Refusal::Deadlock,
    Refusal::TooManyLocks,
    Refusal::TooManyWaiting,
    Refusal::ResourceFull,
    Refusal::TooManyResources,
    Refusal::NameTooLong,
    Refusal::TooManyClients,
    Refusal::TooManyClientsOfLink,
    Refusal::OtherServers,
    Refusal::Version,
    Refusal::NoSuchClient,
    Refusal::NoSuchLock,
    Refusal::HandleInUse,
    Refusal::Waits,
    Refusal::BadRequest,
];

impl Refusal {
    pub(crate) fn code(self) -> u32 {
        self as u32 + 1
    }

    pub(crate) fn of_code(code: u32) -> Self {
        let known = REFUSALS.get((code as usize).wrapping_sub(1)).copied();
        known.unwrap_or(Self::BadRequest)
    }
}

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

/// FNV-1a, of which the same bytes have the same in every program.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Spreads a number over 64 bits (the finaliser of splitmix64).
fn spread(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// The servers of a system, in any order.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    hashes: Vec<u64>,
}

impl Servers {
    pub(crate) fn new(names: &[&str]) -> Result<Self, LockError> {
        let what = match names {
            [] => "it is empty",
            _ if (1..names.len()).any(|at| names[..at].contains(&names[at])) => {
                "it names a server twice"
            }
            _ => {
                let hashes = names.iter().map(|name| spread(hash(name.as_bytes())));
                return Ok(Self {
                    hashes: hashes.collect(),
                });
            }
        };
        Err(LockError::Servers { what })
    }

    /// The server that masters a resource: the one with the highest weight for its name, so that
    /// another server more or less moves only what it has (rendezvous hashing).
    pub(crate) fn master(&self, name: &[u8]) -> usize {
        let name = hash(name);
        let weight = |server: &u64| spread(server ^ name);
        let heaviest = self
            .hashes
            .iter()
            .enumerate()
            .max_by_key(|(_, server)| weight(server));
        heaviest.map_or(0, |(server, _)| server)
    }

    /// The same for the same servers in any order.
    pub(crate) fn digest(&self) -> [u32; 2] {
        let sum = self
            .hashes
            .iter()
            .fold(0_u64, |sum, one| sum.wrapping_add(*one));
        [sum as u32, (sum >> 32) as u32]
    }
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

    #[test]
    fn refusals_keep_their_codes() {
        for (code, refusal) in (1..).zip(REFUSALS) {
            assert_eq!(refusal.code(), code);
            assert_eq!(Refusal::of_code(code), refusal);
        }
    }

    #[test]
    fn names_spread_over_servers_and_stay() {
        let names: Vec<String> = (0..3_000).map(|number| format!("row/{number}")).collect();
        let three = ["a", "b", "c"];
        let masters = |servers: &[&'static str]| -> Vec<&'static str> {
            let set = Servers::new(servers).unwrap();
            names
                .iter()
                .map(|name| servers[set.master(name.as_bytes())])
                .collect()
        };
        let before = masters(&three);
        assert_eq!(before, masters(&["c", "a", "b"]), "in any order");
        for server in three {
            let share = before.iter().filter(|master| **master == server).count();
            assert!((800..1200).contains(&share), "{server} has {share}");
        }
        let moved = before
            .iter()
            .zip(masters(&["a", "b"]))
            .filter(|(old, new)| *old != new);
        assert!(
            moved.into_iter().all(|(old, _)| *old == "c"),
            "only those of the one that went"
        );
        let digest = |servers: &[&str]| Servers::new(servers).unwrap().digest();
        assert_eq!(digest(&three), digest(&["b", "c", "a"]));
        assert_ne!(digest(&three), digest(&["a", "b"]));
    }
}
