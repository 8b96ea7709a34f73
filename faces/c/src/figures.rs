//! What end points tell of themselves: counts, limits, and the slots that they stand on.

use crate::boundary::{call, room, wait_of};
use crate::datagram::{DatagramReceiver, DatagramReceiverHandle};
use crate::group::{GroupReceiver, GroupReceiverHandle};
use crate::handle;
use crate::loans::{Publisher, PublisherHandle, Subscriber, SubscriberHandle};
use crate::mailbox::{MailboxReceiver, MailboxReceiverHandle};
use crate::manager::{Manager, ManagerHandle, each};
use crate::peer::{self, Peer};
use crate::service::{Client, ClientHandle, Service, ServiceHandle};
use crate::slot::{SlotInfo, reason_of};
use crate::status::{Error, Failure, Status};
use crate::stream::{StreamReceiver, StreamReceiverHandle};
use crate::tagged_write::{TagReceiver, TagReceiverHandle};

/// How many notifications this manager's receivers have lost, because its queue was too short.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_notifications_lost(
    manager: *mut ManagerHandle,
    lost: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", lost)?;
        handle::with(manager, |Manager(manager)| {
            place.put(each!(manager, manager => manager.end()?.lost()));
            Ok(())
        })
    })
}

/// Forgets a datagram that came only in part, because its sender died or gave up. A message must not be held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_reset_datagram(
    receiver: *mut DatagramReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(receiver, |DatagramReceiver(end)| {
            each!(end, end => end.end()?.reset());
            Ok(())
        })
    })
}

/// The state of the slot that a datagram receiver stands on: what it refused, above all. A message must not be held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_datagram_info(
    receiver: *mut DatagramReceiverHandle,
    info: *mut SlotInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the state", info)?;
        handle::with(receiver, |DatagramReceiver(end)| {
            place.put(SlotInfo::of(&each!(end, end => end.end()?.info())?));
            Ok(())
        })
    })
}

/// The state of the slot that an area for tagged writes stands on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_tags_info(
    receiver: *mut TagReceiverHandle,
    info: *mut SlotInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the state", info)?;
        handle::with(receiver, |TagReceiver(end)| {
            place.put(SlotInfo::of(&each!(end, (end, _) => end.info())?));
            Ok(())
        })
    })
}

/// How many tags a receiver has lost, because there were more than it has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_tags_lost(
    receiver: *mut TagReceiverHandle,
    lost: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", lost)?;
        handle::with(receiver, |TagReceiver(end)| {
            place.put(each!(end, (end, _) => end.lost()));
            Ok(())
        })
    })
}

/// The state of a mailbox.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MailboxInfo {
    /// Messages that wait in its queue.
    pub waiting: u64,
    /// Messages that were put into its queue so far, as they were not taken in turn.
    pub queued: u64,
    /// Messages that were refused, for all reasons (hamlyn_mailbox_refusals).
    pub refusals: u64,
    /// Bytes of its queue that the messages there take.
    pub waiting_bytes: u32,
    /// Bytes that its queue holds.
    pub queue_bytes: u32,
}

/// Tells the state of a mailbox. The message that was taken last stays valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_mailbox_info(
    receiver: *mut MailboxReceiverHandle,
    info: *mut MailboxInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the state", info)?;
        handle::with(receiver, |MailboxReceiver(of)| {
            let found = each!(of, of => of.end.info())?;
            place.put(MailboxInfo {
                waiting: found.waiting as u64,
                queued: found.queued,
                refusals: found.refusals.total(),
                waiting_bytes: found.waiting_bytes,
                queue_bytes: found.queue_bytes,
            });
            Ok(())
        })
    })
}

/// Tells how many messages to a mailbox were refused for that reason, a number of hamlyn_refusal.
/// HAMLYN_NOT_FOUND if there is no such reason.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_mailbox_refusals(
    receiver: *mut MailboxReceiverHandle,
    reason: u32,
    count: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", count)?;
        let reason = reason_of(reason)?;
        handle::with(receiver, |MailboxReceiver(of)| {
            let info = each!(of, of => of.end.info())?;
            place.put(info.refusals.count(reason));
            Ok(())
        })
    })
}

/// The state of the slot that a group stands on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_group_info(
    receiver: *mut GroupReceiverHandle,
    info: *mut SlotInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the state", info)?;
        handle::with(receiver, |GroupReceiver(end)| {
            place.put(SlotInfo::of(&each!(end, end => end.info())?));
            Ok(())
        })
    })
}

/// The state of the slot that a stream stands on at present, and how much memory the stream has. HAMLYN_NOT_FOUND before a sender has connected.
/// A record must not be held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_stream_info(
    receiver: *mut StreamReceiverHandle,
    info: *mut SlotInfo,
    memory_bytes: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the state", info)?;
        let memory = room("the place for the amount of memory", memory_bytes)?;
        handle::with(receiver, |StreamReceiver(end)| {
            let (info, bytes) = each!(end, end => {
                let end = end.end()?;
                (end.info()?, end.memory_bytes())
            });
            memory.put(bytes);
            place.put(SlotInfo::of(&info.ok_or(Failure::new(
                Status::NotFound,
                "the stream has no slot at present: no sender has connected, or it has ended",
            ))?));
            Ok(())
        })
    })
}

/// How many clients lost their place in a service because they broke the protocol. No call may be held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_service_misbehaved(
    service: *mut ServiceHandle,
    clients: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", clients)?;
        handle::with(service, |Service(end)| {
            place.put(each!(end, end => end.end()?.misbehaved()));
            Ok(())
        })
    })
}

/// How many calls of a client may be outstanding, and how long a request may be. No reply may be held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_client_limits(
    client: *mut ClientHandle,
    outstanding_max: *mut u16,
    request_bytes_max: *mut u32,
    error: *mut Error,
) -> Status {
    call(error, || {
        let outstanding = room("the place for the number of calls", outstanding_max)?;
        let request = room("the place for the length", request_bytes_max)?;
        handle::with(client, |Client(end)| {
            each!(end, end => {
                let end = end.end()?;
                outstanding.put(end.outstanding_max());
                request.put(end.request_bytes_max());
            });
            Ok(())
        })
    })
}

/// What a publisher knows of its readers.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublisherInfo {
    /// How many readers there are.
    pub readers: u64,
    /// Messages that readers did not get because they were slow.
    pub lost: u64,
    /// Readers that lost their place because they broke the protocol.
    pub misbehaved: u64,
    /// Messages that can be had on loan, as far as is known: hamlyn_poll_publisher takes in what was given back.
    pub chunks_free: u64,
}

/// Tells what a publisher knows of its readers. No message may be on loan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_publisher_info(
    publisher: *mut PublisherHandle,
    info: *mut PublisherInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the answer", info)?;
        handle::with(publisher, |Publisher(end)| {
            place.put(each!(end, end => {
                let end = end.end()?;
                PublisherInfo {
                    readers: end.readers() as u64,
                    lost: end.lost(),
                    misbehaved: end.misbehaved(),
                    chunks_free: end.chunks_free() as u64,
                }
            }));
            Ok(())
        })
    })
}

/// Takes in what readers have said: who came, who left, what was given back; and sends what is kept for those that have room again. Other calls
/// do the same when they need it. Does not block. No message may be on loan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_poll_publisher(
    publisher: *mut PublisherHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(publisher, |Publisher(end)| {
            each!(end, end => end.end()?.poll());
            Ok(())
        })
    })
}

/// Waits until every reader has room for a message. HAMLYN_TIMED_OUT if one had none when the time was over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_await_room(
    publisher: *mut PublisherHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(publisher, |Publisher(end)| {
            match each!(end, end => end.end()?.await_room(wait_of(wait_ns)))? {
                true => Ok(()),
                false => Err(Failure::timed_out(
                    "a reader had no room when the time was over",
                )),
            }
        })
    })
}

/// Waits until all that was published is handed over to its readers: before a publisher is closed whose last messages matter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_flush_publisher(
    publisher: *mut PublisherHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(publisher, |Publisher(end)| {
            match each!(end, end => end.end()?.flush(wait_of(wait_ns)))? {
                true => Ok(()),
                false => Err(Failure::timed_out(
                    "not everything was handed over when the time was over: wait longer",
                )),
            }
        })
    })
}

/// What a subscriber knows of its publisher.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubscriberInfo {
    /// Messages that it did not get.
    pub lost: u64,
    /// Bytes of the longest message.
    pub message_bytes_max: u32,
    /// How many messages it may have that it has not given back.
    pub depth: u32,
    /// Not 0: messages are read where the publisher wrote them; otherwise they are copied to here.
    pub reads_in_place: u32,
}

/// Tells what a subscriber knows of its publisher. No message may be held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_subscriber_info(
    subscriber: *mut SubscriberHandle,
    info: *mut SubscriberInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the answer", info)?;
        handle::with(subscriber, |Subscriber(end)| {
            place.put(each!(end, end => {
                let end = end.end()?;
                SubscriberInfo {
                    lost: end.lost(),
                    message_bytes_max: end.message_bytes_max(),
                    depth: end.depth().into(),
                    reads_in_place: end.reads_in_place().into(),
                }
            }));
            Ok(())
        })
    })
}

/// Who publishes. HAMLYN_NOT_FOUND if its link ended long ago. No message may be held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_publisher_peer(
    subscriber: *mut SubscriberHandle,
    peer: *mut Peer,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the peer", peer)?;
        handle::with(subscriber, |Subscriber(end)| {
            peer::put(place, each!(end, end => end.end()?.publisher()))
        })
    })
}
