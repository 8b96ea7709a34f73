//! Groups (`Hamlyn 3.3`): one receive that is complete when all members have sent their parts.

use std::ffi::{c_char, c_void};

use hamlyn::engine::counting::Counting;
use hamlyn::group::{self, BeginError};

use crate::boundary::{bytes, call, lengths, room, text, text_or_none, wait_of};
use crate::datagram::{Message, NOTHING_CAME};
use crate::handle::{self, kind};
use crate::manager::{ManagerHandle, Of, OneThread, Threads, each, make_end};
use crate::status::{Error, Failure, Status};

/// The receiving end of a group.
#[derive(Debug)]
pub struct GroupReceiverHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct GroupReceiver(
    pub(crate) Of<group::Receiver<OneThread>, group::Receiver<Threads>>,
);

kind!(GroupReceiverHandle, GroupReceiver, 12, "group receiver");

/// A member of a group: the right to send a part.
#[derive(Debug)]
pub struct GroupSenderHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct GroupSender(pub(crate) Of<group::Sender<OneThread>, group::Sender<Threads>>);

kind!(GroupSenderHandle, GroupSender, 13, "group sender");

impl From<BeginError> for Failure {
    fn from(error: BeginError) -> Self {
        match error {
            BeginError::Receive(receive) => receive.into(),
            _ => Self::of(Status::Invalid, &error),
        }
    }
}

/// Binds a group with a place of `place_bytes`, 0 to 2 GiB; 0 for a barrier. Its members are found when hamlyn_begin_group offers them. Null for
/// `item`: it is reached by members of hamlyn_begin_member only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_bind_group(
    manager: *mut ManagerHandle,
    item: *const c_char,
    place_bytes: u32,
    receiver: *mut *mut GroupReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the receiver", receiver)?;
        let item = text_or_none("the item", item)?;
        make_end!(manager, place, GroupReceiver, manager => match item {
            Some(item) => manager.bind_group(item, place_bytes, Counting::Bits64)?,
            None => group::Receiver::new(manager, place_bytes, Counting::Bits64)?,
        })
    })
}

/// Begins a round: the place is divided into consecutive parts of the given lengths, and each is offered to one member, in that order. Members
/// of earlier rounds are worthless.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_begin_group(
    receiver: *mut GroupReceiverHandle,
    lengths_bytes: *const u64,
    members: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let lengths = lengths(lengths_bytes, members)?;
        handle::with(receiver, |GroupReceiver(end)| {
            Ok(each!(end, end => end.begin_shared(&lengths))?)
        })
    })
}

/// Waits until everything from all members has come: the whole place, valid until the next round begins or the handle is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_recv_group(
    receiver: *mut GroupReceiverHandle,
    wait_ns: i64,
    message: *mut Message,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the message", message)?;
        handle::with(receiver, |GroupReceiver(end)| {
            each!(end, end => match end.recv(wait_of(wait_ns))? {
                Some(bytes) => place.put(Message::of(bytes)),
                None => return Err(NOTHING_CAME),
            });
            Ok(())
        })
    })
}

/// Closes a group. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_group_receiver(
    receiver: *mut GroupReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(receiver).map(drop))
}

/// Connects to a group as the next of its members. Blocks for `wait_ns` at most.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_connect_group(
    manager: *mut ManagerHandle,
    to: *const c_char,
    wait_ns: i64,
    sender: *mut *mut GroupSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the member", sender)?;
        let to = text("the address", to)?;
        make_end!(manager, place, GroupSender, manager => manager.connect_group(to, wait_of(wait_ns))?)
    })
}

/// Sends to `offset` of this member's part. `is_last` not 0: this completes the member, and nothing can be sent after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_send_part(
    sender: *mut GroupSenderHandle,
    offset: u64,
    data: *const c_void,
    length_bytes: usize,
    is_last: u32,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        handle::with(sender, |GroupSender(end)| {
            each!(end, end => match is_last {
                0 => end.send(offset, data, wait_of(wait_ns)),
                _ => end.send_last(offset, data, wait_of(wait_ns)),
            })?;
            Ok(())
        })
    })
}

/// Waits until all that this manager sent to the receiver's interface is in its place, or says what was refused since the fence before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_fence_group(
    sender: *mut GroupSenderHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(sender, |GroupSender(end)| {
            Ok(each!(end, end => end.fence(wait_of(wait_ns)))?)
        })
    })
}

/// Closes a member. If it has not sent its last part, the round is never complete. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_group_sender(
    sender: *mut GroupSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(sender).map(drop))
}
