//! Tagged remote write (`Hamlyn 3.3`): bytes to a place in the receiver's area, and a tag that is queued for it.

use std::ffi::{c_char, c_void};

use hamlyn::Wait;
use hamlyn::engine::memory::LinkId;
use hamlyn::tagged_write::{self, Tag};

use crate::at_once::{Arguments, at_once, received, sent};
use crate::boundary::{bytes, bytes_at_once, bytes_mut, call, room, room_at_once, text, wait_of};
use crate::datagram::NOTHING_CAME;
use crate::handle::{self, kind};
use crate::manager::{ManagerHandle, Of, OneThread, Threads, each, make_end};
use crate::peer::{self, Peer};
use crate::status::{Error, Failure, NO_ROOM, Status};
use crate::ticket::{self, Ticket};

type Receiving<H> = (tagged_write::Receiver<H>, Option<LinkId>);

/// The receiving end of tagged writes, and the link over which the last tag came.
#[derive(Debug)]
pub struct TagReceiverHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct TagReceiver(pub(crate) Of<Receiving<OneThread>, Receiving<Threads>>);

kind!(TagReceiverHandle, TagReceiver, 6, "tag receiver");

/// A sending end of tagged writes.
#[derive(Debug)]
pub struct TagSenderHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct TagSender(Of<tagged_write::Sender<OneThread>, tagged_write::Sender<Threads>>);

kind!(TagSenderHandle, TagSender, 7, "tag sender");

/// Binds an area of `area_bytes` that any number of senders write, with room for so many tags that have not been taken. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_bind_tagged_write(
    manager: *mut ManagerHandle,
    item: *const c_char,
    area_bytes: u64,
    tags: u32,
    receiver: *mut *mut TagReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the receiver", receiver)?;
        let item = text("the item", item)?;
        make_end!(manager, place, TagReceiver, manager => (manager.bind_tagged_write(item, area_bytes, tags as usize)?, None))
    })
}

/// Takes the next tag. What was written with it is in its place. Blocks for `wait_ns` at most. Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_recv_tag(
    receiver: *mut TagReceiverHandle,
    wait_ns: i64,
    tag: *mut u64,
    error: *mut Error,
) -> Status {
    at_once(
        receiver.cast_const(),
        Arguments {
            others: (receiver, tag),
            wait_ns,
            error,
        },
        move |end, error| {
            let (end, last) = end.alone(|TagReceiver(end)| end);
            let place = room_at_once(tag)?;
            received(error, end.recv(Wait::Poll), |tag| {
                place.put(tag.tag);
                *last = Some(tag.from);
            })
        },
        NOTHING_CAME,
        |(receiver, tag), wait_ns, error| recv_tag(receiver, wait_ns, tag, error),
    )
}

#[cold]
#[inline(never)]
fn recv_tag(
    receiver: *mut TagReceiverHandle,
    wait_ns: i64,
    tag: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the tag", tag)?;
        handle::with(receiver, |TagReceiver(end)| {
            each!(end, (end, last) => {
                let Some(tag) = end.recv(wait_of(wait_ns))? else {
                    return Err(NOTHING_CAME);
                };
                place.put(tag.tag);
                *last = Some(tag.from);
            });
            Ok(())
        })
    })
}

/// Waits for that very tag; others that come meanwhile stay queued, in order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_recv_specific_tag(
    receiver: *mut TagReceiverHandle,
    tag: u64,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(receiver, |TagReceiver(end)| {
            let came = each!(end, (end, _) => end.get_specific_tag(tag, wait_of(wait_ns)))?;
            came.map(drop).ok_or(NOTHING_CAME)
        })
    })
}

/// Who sent the tag that hamlyn_recv_tag took last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_tag_peer(
    receiver: *mut TagReceiverHandle,
    peer: *mut Peer,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the peer", peer)?;
        handle::with(receiver, |TagReceiver(end)| {
            peer::put(
                place,
                each!(end, (end, last) => last.and_then(|from| end.sender(&Tag { tag: 0, from }))),
            )
        })
    })
}

/// Copies from the area. Senders may write there meanwhile: the copy is what was there, byte by byte, at some time of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_read_area(
    receiver: *mut TagReceiverHandle,
    offset: u64,
    into: *mut c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let into = bytes_mut(into, length_bytes)?;
        handle::with(receiver, |TagReceiver(end)| {
            let read = each!(end, (end, _) => end.area().read_at(offset, into));
            read.map_err(|outside| Failure::of(Status::Invalid, &outside))
        })
    })
}

/// Copies to the area.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_write_area(
    receiver: *mut TagReceiverHandle,
    offset: u64,
    data: *const c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        handle::with(receiver, |TagReceiver(end)| {
            let written = each!(end, (end, _) => end.area().write_at(offset, data));
            written.map_err(|outside| Failure::of(Status::Invalid, &outside))
        })
    })
}

/// A ticket for a part of the area. Its holder's library keeps to that part; what guards the area is one key, so who makes tickets up from this
/// one reaches all of it. For parts that are guarded apart, bind several.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_area_ticket(
    receiver: *mut TagReceiverHandle,
    offset: u64,
    length_bytes: u64,
    ticket: *mut Ticket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the ticket", ticket)?;
        handle::with(receiver, |TagReceiver(end)| {
            let made = each!(end, (end, _) => end.ticket_for(offset, length_bytes));
            ticket::put(
                place,
                &made.map_err(|outside| Failure::of(Status::Invalid, &outside))?,
            );
            Ok(())
        })
    })
}

/// Takes back all tickets of the area. Those who connect from now on are given a new one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_revoke_area(
    receiver: *mut TagReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(receiver, |TagReceiver(end)| {
            Ok(each!(end, (end, _) => end.revoke())?)
        })
    })
}

/// Closes a receiver. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_tag_receiver(
    receiver: *mut TagReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(receiver).map(drop))
}

/// Connects to an area that is written with tags. Blocks for `wait_ns` at most. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_connect_tagged_write(
    manager: *mut ManagerHandle,
    to: *const c_char,
    wait_ns: i64,
    sender: *mut *mut TagSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the sender", sender)?;
        let to = text("the address", to)?;
        make_end!(manager, place, TagSender, manager => manager.connect_tagged_write(to, wait_of(wait_ns))?)
    })
}

/// The same, by a ticket of the receiver: `offset` counts from where the ticket begins.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_grow_tagged_write(
    manager: *mut ManagerHandle,
    ticket: *const Ticket,
    wait_ns: i64,
    sender: *mut *mut TagSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the sender", sender)?;
        let ticket = ticket::read(ticket)?;
        make_end!(manager, place, TagSender, manager => tagged_write::Sender::grow(manager, &ticket, wait_of(wait_ns))?)
    })
}

/// Writes to `offset` in the receiver's area, one packet at most, and queues the tag there. Blocks for `wait_ns` at most while there is no
/// room. Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_send_tag(
    sender: *mut TagSenderHandle,
    offset: u64,
    data: *const c_void,
    length_bytes: usize,
    tag: u64,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    at_once(
        sender.cast_const(),
        Arguments {
            others: (sender, offset, data, length_bytes, tag),
            wait_ns,
            error,
        },
        move |end, error| {
            let end = end.alone(|TagSender(end)| end);
            let data = bytes_at_once(data, length_bytes)?;
            sent(error, end.send(offset, data, tag, Wait::Poll))
        },
        NO_ROOM,
        |(sender, offset, data, length_bytes, tag), wait_ns, error| {
            send_tag(sender, offset, data, length_bytes, tag, wait_ns, error)
        },
    )
}

#[cold]
#[inline(never)]
fn send_tag(
    sender: *mut TagSenderHandle,
    offset: u64,
    data: *const c_void,
    length_bytes: usize,
    tag: u64,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        handle::with(sender, |TagSender(end)| {
            each!(end, end => end.send(offset, data, tag, wait_of(wait_ns)))?;
            Ok(())
        })
    })
}

/// Waits until all that this manager sent to the receiver's interface is in its place, or says what was refused since the fence before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_fence_tags(
    sender: *mut TagSenderHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(sender, |TagSender(end)| {
            Ok(each!(end, end => end.fence(wait_of(wait_ns)))?)
        })
    })
}

/// Closes a sender. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_tag_sender(
    sender: *mut TagSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(sender).map(drop))
}
