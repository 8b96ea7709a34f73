//! Mailboxes: messages of many senders, each up to one packet, which wait in a queue until they
//! are taken.
//!
//! No message is held: its bytes lie in the receiver's memory until the next one is taken, and
//! nothing else moves them.

use std::ffi::{c_char, c_void};

use hamlyn::engine::memory::LinkId;
use hamlyn::host::Host;
use hamlyn::{Manager, Wait, mailbox};

use crate::at_once::{Arguments, at_once, received, sent};
use crate::boundary::{
    bytes, bytes_at_once, call, read_or_default, room, room_at_once, text, text_or_none, wait_of,
};
use crate::datagram::{Message, NOTHING_CAME};
use crate::handle::{self, kind};
use crate::manager::{ManagerHandle, Of, OneThread, Threads, each, make_end};
use crate::peer::{self, Peer};
use crate::status::{Error, Failure, NO_ROOM, Status};
use crate::ticket::{self, Ticket};

/// Settings with which a mailbox is opened; 0 in a field means its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MailboxOptions {
    /// Bytes of its queue, 64 to 2^30. A message there counts 64 for each 64 bytes that it
    /// begins, and 64 at least. Default 1 MiB.
    pub queue_bytes: u32,
    /// Bytes of the queue that the messages of one peer may take. Default: half of it.
    pub peer_bytes: u32,
}

impl MailboxOptions {
    fn read(self) -> mailbox::MailboxOptions {
        let mut options = mailbox::MailboxOptions::default();
        if self.queue_bytes != 0 {
            options.queue_bytes = self.queue_bytes;
        }
        if self.peer_bytes != 0 {
            options.peer_bytes = Some(self.peer_bytes);
        }
        options
    }
}

/// A receiver, the link over which its last message came, and the manager that knows whose link
/// that is.
pub(crate) struct Receiving<H: Host> {
    pub(crate) end: mailbox::Receiver<H>,
    last: Option<LinkId>,
    manager: Manager<H>,
}

/// The receiving end of a mailbox.
#[derive(Debug)]
pub struct MailboxReceiverHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct MailboxReceiver(pub(crate) Of<Receiving<OneThread>, Receiving<Threads>>);

kind!(
    MailboxReceiverHandle,
    MailboxReceiver,
    33,
    "mailbox receiver"
);

/// A sending end of a mailbox.
#[derive(Debug)]
pub struct MailboxSenderHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct MailboxSender(Of<mailbox::Sender<OneThread>, mailbox::Sender<Threads>>);

kind!(MailboxSenderHandle, MailboxSender, 34, "mailbox sender");

// Handles of shared managers pass from thread to thread, with what is in them.
const _: () = {
    const fn passes<T: Send>() {}
    passes::<Receiving<Threads>>();
};

/// Binds a mailbox. Any number of senders may connect to manager/item, and send whether the
/// mailbox is asked for messages or not: those that are not taken wait in its queue, in the order
/// of each sender. Null for `item`: senders use its ticket. Null for `options`: the defaults.
/// Allocates its queue, which takes memory only as it is used; does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_bind_mailbox(
    manager: *mut ManagerHandle,
    item: *const c_char,
    options: *const MailboxOptions,
    receiver: *mut *mut MailboxReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the receiver", receiver)?;
        let item = text_or_none("the item", item)?;
        let options = read_or_default(options)
            .map(MailboxOptions::read)
            .unwrap_or_default();
        make_end!(manager, place, MailboxReceiver, manager => {
            let end = match item {
                Some(item) => manager.bind_mailbox(item, options)?,
                None => mailbox::Receiver::new(manager, options)?,
            };
            Receiving { end, last: None, manager: manager.clone() }
        })
    })
}

/// Takes the next message. Its bytes are valid until the next one is taken, or the receiver
/// closed; nothing is to be released. Blocks for `wait_ns` at most. Allocates only for a message
/// that is longer than all before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_recv_mail(
    receiver: *mut MailboxReceiverHandle,
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
        move |of, error| {
            let of = of.alone(|MailboxReceiver(of)| of);
            let place = room_at_once(message)?;
            received(error, of.end.recv(Wait::Poll), |mail| {
                of.last = Some(mail.from());
                place.put(Message::of(&mail));
            })
        },
        NOTHING_CAME,
        |(receiver, message), wait_ns, error| recv_mail(receiver, wait_ns, message, error),
    )
}

#[cold]
#[inline(never)]
fn recv_mail(
    receiver: *mut MailboxReceiverHandle,
    wait_ns: i64,
    message: *mut Message,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the message", message)?;
        handle::with(receiver, |MailboxReceiver(of)| {
            each!(of, of => {
                let Some(mail) = of.end.recv(wait_of(wait_ns))? else {
                    return Err(NOTHING_CAME);
                };
                of.last = Some(mail.from());
                place.put(Message::of(&mail));
            });
            Ok(())
        })
    })
}

/// Tells who sent the message that was taken last. HAMLYN_NOT_FOUND if none was, or if its link
/// ended long ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_mail_peer(
    receiver: *mut MailboxReceiverHandle,
    peer: *mut Peer,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the peer", peer)?;
        handle::with(receiver, |MailboxReceiver(of)| {
            let who = each!(of, of => {
                of.last.and_then(|from| of.manager.session().identity_of(from))
            });
            peer::put(place, who)
        })
    })
}

/// A ticket with which others can send to this mailbox.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_mailbox_ticket(
    receiver: *mut MailboxReceiverHandle,
    ticket: *mut Ticket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the ticket", ticket)?;
        handle::with(receiver, |MailboxReceiver(of)| {
            ticket::put(place, &each!(of, of => of.end.ticket()));
            Ok(())
        })
    })
}

/// Takes back all tickets of this mailbox: messages that were sent with them and have not come
/// are refused. Those that wait stay. Those who connect from now on are given a new one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_revoke_mailbox(
    receiver: *mut MailboxReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(receiver, |MailboxReceiver(of)| {
            Ok(each!(of, of => of.end.revoke())?)
        })
    })
}

/// Closes a receiver. Messages that wait there are gone, and the one that was taken last is not
/// valid any more. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_mailbox_receiver(
    receiver: *mut MailboxReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(receiver).map(drop))
}

/// Connects to a mailbox: manager/item, or host/manager/item. Blocks for `wait_ns` at most while
/// nobody has the name or has bound the item, so both programs may start in any order. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_connect_mailbox(
    manager: *mut ManagerHandle,
    to: *const c_char,
    wait_ns: i64,
    sender: *mut *mut MailboxSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the sender", sender)?;
        let to = text("the address", to)?;
        make_end!(manager, place, MailboxSender, manager => manager.connect_mailbox(to, wait_of(wait_ns))?)
    })
}

/// The same, by a ticket of the receiver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_grow_mailbox(
    manager: *mut ManagerHandle,
    ticket: *const Ticket,
    wait_ns: i64,
    sender: *mut *mut MailboxSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the sender", sender)?;
        let ticket = ticket::read(ticket)?;
        make_end!(manager, place, MailboxSender, manager => mailbox::Sender::grow(manager, &ticket, wait_of(wait_ns))?)
    })
}

/// Sends a message, one packet at most (hamlyn_mail_bytes_max). HAMLYN_OK means accepted: if the
/// mailbox has no room when it comes, it is refused there, which hamlyn_fence_mailbox tells.
/// Blocks for `wait_ns` at most while there is no room on the way. Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_send_mail(
    sender: *mut MailboxSenderHandle,
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
            let end = end.alone(|MailboxSender(end)| end);
            sent(
                error,
                end.send(bytes_at_once(data, length_bytes)?, Wait::Poll),
            )
        },
        NO_ROOM,
        |(sender, data, length_bytes), wait_ns, error| {
            send_mail(sender, data, length_bytes, wait_ns, error)
        },
    )
}

#[cold]
#[inline(never)]
fn send_mail(
    sender: *mut MailboxSenderHandle,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        handle::with(sender, |MailboxSender(end)| {
            each!(end, end => end.send(data, wait_of(wait_ns)))?;
            Ok(())
        })
    })
}

/// Tells the length of the longest message that the link to the mailbox takes: 64 KiB on one host
/// unless set otherwise, and as much as a frame of the network has room for between hosts.
/// HAMLYN_PEER_LOST if the link has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_mail_bytes_max(
    sender: *mut MailboxSenderHandle,
    length_bytes: *mut usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the length", length_bytes)?;
        handle::with(sender, |MailboxSender(end)| {
            let longest = each!(end, end => end.message_bytes_max());
            place.put(longest.ok_or(Failure::new(
                Status::PeerLost,
                "the link to the mailbox has ended: connect again",
            ))?);
            Ok(())
        })
    })
}

/// Waits until all that this manager sent to the mailbox's interface has come, or says what was
/// refused since the fence before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_fence_mailbox(
    sender: *mut MailboxSenderHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(sender, |MailboxSender(end)| {
            Ok(each!(end, end => end.fence(wait_of(wait_ns)))?)
        })
    })
}

/// Closes a sender. What it sent arrives all the same. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_mailbox_sender(
    sender: *mut MailboxSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(sender).map(drop))
}
