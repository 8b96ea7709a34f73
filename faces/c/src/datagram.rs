//! Datagrams (`Hamlyn 3.3`): one message into one buffer, if its receiver is ready.

use std::ffi::{c_char, c_void};

use hamlyn::{Wait, datagram};

use crate::at_once::{Arguments, at_once, received, release_at_once, sent};
use crate::boundary::{
    bytes, bytes_at_once, call, room, room_at_once, text, text_or_none, wait_of,
};
use crate::handle::{self, kind};
use crate::holding::Holding;
use crate::manager::{ManagerHandle, Of, OneThread, Threads, each, make_end};
use crate::peer::{self, Peer};
use crate::status::{Error, Failure, NO_ROOM, Status};
use crate::ticket::{self, Ticket};

/// A message that is held: where it lies, and how long it is. Valid until it is released, or its handle closed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Its bytes. Nobody writes them while the message is held.
    pub data: *const c_void,
    /// How many.
    pub length_bytes: usize,
}

impl Message {
    #[inline(always)]
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr().cast(),
            length_bytes: bytes.len(),
        }
    }
}

pub(crate) const NOTHING_CAME: Failure = Failure::timed_out("nothing came in time");
pub(crate) const IS_HELD: Failure =
    Failure::new(Status::Held, "a message is held: release it first");
pub(crate) const NONE_HELD: Failure = Failure::new(Status::Held, "no message is held");

type Receiving<H> = Holding<datagram::Receiver<H>, datagram::Datagram<'static, H>>;

/// The receiving end of datagrams.
#[derive(Debug)]
pub struct DatagramReceiverHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct DatagramReceiver(pub(crate) Of<Receiving<OneThread>, Receiving<Threads>>);

kind!(
    DatagramReceiverHandle,
    DatagramReceiver,
    2,
    "datagram receiver"
);

/// A sending end of datagrams.
#[derive(Debug)]
pub struct DatagramSenderHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct DatagramSender(Of<datagram::Sender<OneThread>, datagram::Sender<Threads>>);

kind!(DatagramSenderHandle, DatagramSender, 3, "datagram sender");

/// Binds a receiver for datagrams of up to `buffer_bytes`, 1 byte to 2 GiB, ready for the first. Any number of senders may connect to
/// manager/item. Null for `item`: senders use its ticket. Allocates; does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_bind_datagram(
    manager: *mut ManagerHandle,
    item: *const c_char,
    buffer_bytes: u32,
    receiver: *mut *mut DatagramReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the receiver", receiver)?;
        let item = text_or_none("the item", item)?;
        make_end!(manager, place, DatagramReceiver, manager => {
            let mut receiver = match item {
                Some(item) => manager.bind_datagram(item, buffer_bytes)?,
                None => datagram::Receiver::new(manager, buffer_bytes)?,
            };
            receiver.ready();
            Holding::new(receiver)
        })
    })
}

/// Receives the next datagram, where it landed. It is held, and the receiver takes no other, until hamlyn_release_datagram. Blocks for
/// `wait_ns` at most. Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_recv_datagram(
    receiver: *mut DatagramReceiverHandle,
    wait_ns: i64,
    message: *mut Message,
    error: *mut Error,
) -> Status {
    at_once(
        receiver.cast_const(),
        Arguments {
            others: (receiver, message),
            wait_ns,
            error,
        },
        move |end, error| {
            let end = end.alone(|DatagramReceiver(end)| end);
            let place = room_at_once(message)?;
            let came = end.hold_at_once(|end| end.recv(Wait::Poll))?;
            received(error, came, |datagram| place.put(Message::of(datagram)))
        },
        NOTHING_CAME,
        |(receiver, message), wait_ns, error| recv_datagram(receiver, wait_ns, message, error),
    )
}

#[cold]
#[inline(never)]
fn recv_datagram(
    receiver: *mut DatagramReceiverHandle,
    wait_ns: i64,
    message: *mut Message,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the message", message)?;
        handle::with(receiver, |DatagramReceiver(end)| {
            each!(end, end => match end.hold(|end| Ok(end.recv(wait_of(wait_ns))?))? {
                Some(datagram) => place.put(Message::of(datagram)),
                None => return Err(NOTHING_CAME),
            });
            Ok(())
        })
    })
}

/// Who sent the datagram that is held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_datagram_peer(
    receiver: *mut DatagramReceiverHandle,
    peer: *mut Peer,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the peer", peer)?;
        handle::with(receiver, |DatagramReceiver(end)| {
            peer::put(place, each!(end, end => end.message()?.sender()))
        })
    })
}

/// Where the sender of the datagram that is held awaits an answer. HAMLYN_NOT_FOUND if it awaits none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_datagram_reply_ticket(
    receiver: *mut DatagramReceiverHandle,
    ticket: *mut Ticket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the ticket", ticket)?;
        handle::with(receiver, |DatagramReceiver(end)| {
            match each!(end, end => end.message()?.reply_ticket()) {
                Some(ticket) => ticket::put(place, &ticket),
                None => {
                    return Err(Failure::new(
                        Status::NotFound,
                        "this datagram came without a ticket for an answer",
                    ));
                }
            }
            Ok(())
        })
    })
}

/// Gives the buffer back: the receiver is ready for the next datagram, which may lie over this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_release_datagram(
    receiver: *mut DatagramReceiverHandle,
    error: *mut Error,
) -> Status {
    release_at_once(receiver, |DatagramReceiver(end)| end)
        .unwrap_or_else(|| release(receiver, error))
}

#[cold]
#[inline(never)]
fn release(receiver: *mut DatagramReceiverHandle, error: *mut Error) -> Status {
    call(error, || {
        handle::with(receiver, |DatagramReceiver(end)| end.release())
    })
}

/// A ticket with which others can send to this receiver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_datagram_ticket(
    receiver: *mut DatagramReceiverHandle,
    ticket: *mut Ticket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the ticket", ticket)?;
        handle::with(receiver, |DatagramReceiver(end)| {
            ticket::put(place, &each!(end, end => end.end()?.ticket()));
            Ok(())
        })
    })
}

/// Takes back all tickets of this receiver. Those who connect from now on are given a new one. What had landed and was not received is lost;
/// a message must not be held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_revoke_datagram(
    receiver: *mut DatagramReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(receiver, |DatagramReceiver(end)| {
            each!(end, end => {
                let end = end.end()?;
                end.revoke()?;
                end.ready();
            });
            Ok(())
        })
    })
}

/// Closes a receiver; a message that is held is not valid any more. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_datagram_receiver(
    receiver: *mut DatagramReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(receiver).map(drop))
}

/// Connects to a receiver of datagrams: manager/item, or host/manager/item. Blocks for `wait_ns` at most while nobody has the name or
/// has bound the item, so both programs may start in any order. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_connect_datagram(
    manager: *mut ManagerHandle,
    to: *const c_char,
    wait_ns: i64,
    sender: *mut *mut DatagramSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the sender", sender)?;
        let to = text("the address", to)?;
        make_end!(manager, place, DatagramSender, manager => manager.connect_datagram(to, wait_of(wait_ns))?)
    })
}

/// The same, by a ticket of the receiver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_grow_datagram(
    manager: *mut ManagerHandle,
    ticket: *const Ticket,
    wait_ns: i64,
    sender: *mut *mut DatagramSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the sender", sender)?;
        let ticket = ticket::read(ticket)?;
        make_end!(manager, place, DatagramSender, manager => datagram::Sender::grow(manager, &ticket, wait_of(wait_ns))?)
    })
}

/// Sends a datagram. HAMLYN_OK means accepted: if the receiver is not ready when it comes, it is refused there, which
/// hamlyn_fence_datagram tells. Blocks for `wait_ns` at most while there is no room. Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_send_datagram(
    sender: *mut DatagramSenderHandle,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    at_once(
        sender.cast_const(),
        Arguments {
            others: (sender, data, length_bytes),
            wait_ns,
            error,
        },
        move |end, error| {
            let end = end.alone(|DatagramSender(end)| end);
            sent(
                error,
                end.send(bytes_at_once(data, length_bytes)?, Wait::Poll),
            )
        },
        NO_ROOM,
        |(sender, data, length_bytes), wait_ns, error| {
            send_datagram(sender, data, length_bytes, wait_ns, error)
        },
    )
}

#[cold]
#[inline(never)]
fn send_datagram(
    sender: *mut DatagramSenderHandle,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        handle::with(sender, |DatagramSender(end)| {
            each!(end, end => end.send(data, wait_of(wait_ns)))?;
            Ok(())
        })
    })
}

/// Sends a datagram to `offset` in the receiver's buffer, with a ticket for the answer: of a receiver of this manager. Null: no ticket.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_send_datagram_to(
    sender: *mut DatagramSenderHandle,
    offset: u32,
    data: *const c_void,
    length_bytes: usize,
    reply: *const Ticket,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        let reply = match reply.is_null() {
            true => None,
            false => Some(ticket::read(reply)?),
        };
        handle::with(sender, |DatagramSender(end)| {
            each!(end, end => end.send_to(offset, data, reply.as_ref(), wait_of(wait_ns)))?;
            Ok(())
        })
    })
}

/// Waits until all that this manager sent to the receiver's interface is in its place, or says what was refused since the fence before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_fence_datagram(
    sender: *mut DatagramSenderHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(sender, |DatagramSender(end)| {
            each!(end, end => end.fence(wait_of(wait_ns)))?;
            Ok(())
        })
    })
}

/// Closes a sender. What it sent arrives all the same. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_datagram_sender(
    sender: *mut DatagramSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(sender).map(drop))
}
