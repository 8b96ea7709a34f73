//! Members of groups as bytes (`Hamlyn 3.3`): parts of a round that travel by any way, and are divided among delegates.

use hamlyn::group::{self, MEMBER_BYTES};

use crate::boundary::{call, lengths, room, to_travel, travelled, wait_of};
use crate::group::{GroupReceiver, GroupReceiverHandle, GroupSender, GroupSenderHandle};
use crate::handle;
use crate::manager::{ManagerHandle, each, make_end};
use crate::status::{Error, Failure, Status};

/// Bytes of a member.
pub const MEMBER_LENGTH_BYTES: usize = 96;
/// Of these so many are used.
pub const MEMBER_USED_BYTES: usize = 60;
const _: () = assert!(MEMBER_USED_BYTES == MEMBER_BYTES && MEMBER_LENGTH_BYTES >= MEMBER_BYTES);

/// A part of a group's place, and of what its receiver counts. A capability, like a ticket; to be used by one holder, once. May be copied
/// and sent as bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Meaningful to the library only. Programs in Rust and Python take the first HAMLYN_MEMBER_USED_BYTES alone; the others are 0.
    pub bytes: [u8; MEMBER_LENGTH_BYTES],
}

impl Member {
    fn of(member: &group::Member) -> Self {
        let bytes = to_travel(&member.to_bytes());
        Self { bytes }
    }
}

/// A member of the caller.
fn read(member: *const Member) -> Result<group::Member, Failure> {
    let bytes = travelled::<MEMBER_BYTES, MEMBER_LENGTH_BYTES>("the member", member.cast())?;
    group::Member::from_bytes(&bytes).map_err(|error| Failure::of(Status::Invalid, &error))
}

/// Begins a round as hamlyn_begin_group does, with the whole place as one member, which is offered to nobody: divide it, and give the parts to
/// the senders.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_begin_member(
    receiver: *mut GroupReceiverHandle,
    member: *mut Member,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the member", member)?;
        handle::with(receiver, |GroupReceiver(end)| {
            let begun = each!(end, end => end.begin())?;
            place.put(Member::of(&begun));
            Ok(())
        })
    })
}

/// Divides a member into consecutive parts of the given lengths, into an array of as many. Allocates. HAMLYN_INVALID if they are longer than
/// it, or more than it can count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_divide_member(
    member: *const Member,
    lengths_bytes: *const u64,
    count: usize,
    parts: *mut Member,
    error: *mut Error,
) -> Status {
    call(error, || {
        let lengths = lengths(lengths_bytes, count)?;
        if count > 0 && parts.is_null() {
            return Err(Failure::new(
                Status::Invalid,
                "the array for the parts is null",
            ));
        }
        let divided = read(member)?
            .divide(&lengths)
            .map_err(|error| Failure::of(Status::Invalid, &error))?;
        for (index, part) in divided.iter().enumerate() {
            // SAFETY: the array has room for `count`, as the header demands, and there are as many parts; a member needs no alignment.
            unsafe { parts.add(index).write(Member::of(part)) };
        }
        Ok(())
    })
}

/// Becomes the sender of a member. Blocks for `wait_ns` at most while it connects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_grow_group(
    manager: *mut ManagerHandle,
    member: *const Member,
    wait_ns: i64,
    sender: *mut *mut GroupSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the sender", sender)?;
        let member = read(member)?;
        make_end!(manager, place, GroupSender, manager => group::Sender::grow(manager, &member, wait_of(wait_ns))?)
    })
}

/// Closes a sender, and gives what is left of its member, to be divided among delegates. HAMLYN_FINISHED if all of it was sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_take_member(
    sender: *mut GroupSenderHandle,
    member: *mut Member,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the member", member)?;
        let Some(GroupSender(end)) = handle::close(sender)? else {
            return Err(Failure::new(Status::BadHandle, "the sender is null"));
        };
        let left = each!(end, end => end.into_member())?;
        place.put(Member::of(&left));
        Ok(())
    })
}
