//! Shared lanes: one pool of buffers for the messages of many peers.
//!
//! Peers send to the ticket of a shared lane as to that of a slot (`hamlyn_open_target`, `hamlyn_send_msg`): the word of the message is its tag.

use hamlyn::engine::key::Key;
use hamlyn::lane::{self, SharedLane, SharedMessage};

use crate::boundary::{call, read_or_default, room, wait_of};
use crate::datagram::{NONE_HELD, NOTHING_CAME};
use crate::handle::{self, kind};
use crate::lanes::{LaneMessage, buffers_of};
use crate::lower::{Lower, make_lower, on};
use crate::manager::{ManagerHandle, each};
use crate::slot::reason_of;
use crate::status::{Error, Failure, Status};
use crate::ticket::{self, Ticket};

/// Settings with which a shared lane is opened; 0 in a field means its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharedLaneOptions {
    /// Its key: who knows it may send. Default: a random one.
    pub key: u64,
    /// The group of those who may send. It is no secret. Default: group 0.
    pub group: u64,
    /// Number of buffers that the program may have at a time, 1 to 4,096. Default 64.
    pub buffers: u32,
    /// Bytes of each, 1 to 65,536: the longest message. Default 4,096.
    pub buffer_bytes: u32,
    /// Number of tags, from 0 on, 1 to 4,096. Default 4,096.
    pub tags: u32,
    /// Bytes of the queue in which messages wait for a buffer, 64 to 2^30. A message there counts 64 for each 64 bytes that it begins, and 64 at
    /// least. Default 1 MiB.
    pub queue_bytes: u32,
    /// Bytes of the queue that messages of one peer may take. Default: half of it.
    pub peer_bytes: u32,
}

impl SharedLaneOptions {
    fn read(self) -> Result<lane::SharedLaneOptions, Failure> {
        let mut options = lane::SharedLaneOptions::default();
        options.buffers = buffers_of(self.buffers, options.buffers)?;
        if self.buffer_bytes != 0 {
            options.buffer_bytes = self.buffer_bytes;
        }
        let port = &mut options.port;
        port.key = (self.key != 0).then(|| Key::from_bits(self.key));
        port.group = self.group;
        if self.tags != 0 {
            port.handlers = u16::try_from(self.tags)
                .map_err(|_| Failure::new(Status::Invalid, "a shared lane has 1 to 4,096 tags"))?;
        }
        if self.queue_bytes != 0 {
            port.queue_bytes = self.queue_bytes;
        }
        if self.peer_bytes != 0 {
            port.peer_bytes = Some(self.peer_bytes);
        }
        Ok(options)
    }
}

/// A shared lane, and the messages that the program has, by numbers of their own.
pub(crate) struct Receiving {
    pub(crate) lane: SharedLane,
    held: Vec<Option<SharedMessage>>,
    free: Vec<u16>,
}

/// The receiving end of a shared lane.
#[derive(Debug)]
pub struct SharedLaneHandle {
    _of_the_library: [u8; 0],
}

kind!(SharedLaneHandle, Lower<Receiving>, 39, "shared lane");

// Handles of shared managers pass from thread to thread, with their objects.
const _: () = {
    const fn passes<T: Send>() {}
    passes::<Receiving>();
};

impl Receiving {
    /// Nothing if the program has all buffers, of which there are as many as places.
    fn hold(&mut self, message: SharedMessage) -> Option<LaneMessage> {
        let buffer = self.free.pop()?;
        let place = self.held.get_mut(usize::from(buffer))?;
        let message = place.insert(message);
        Some(LaneMessage {
            data: message.as_ptr().cast(),
            length_bytes: message.len(),
            link: message.from().to_bits(),
            tag: message.tag().into(),
            buffer: buffer.into(),
        })
    }

    fn release(&mut self, buffer: u32) -> Option<SharedMessage> {
        let message = self.held.get_mut(buffer as usize)?.take()?;
        self.free.push(buffer as u16);
        Some(message)
    }
}

/// Opens a shared lane. Null for `options`: the defaults. Does not block; allocates its queue, which takes memory as it is used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_shared_lane(
    manager: *mut ManagerHandle,
    options: *const SharedLaneOptions,
    lane: *mut *mut SharedLaneHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the shared lane", lane)?;
        let options = read_or_default(options)
            .map(SharedLaneOptions::read)
            .transpose()?;
        let options = options.unwrap_or_default();
        make_lower!(manager, place, interface => Receiving {
            lane: SharedLane::open(&mut interface, options)?,
            held: (0..options.buffers).map(|_| None).collect(),
            free: (0..options.buffers).rev().collect(),
        })
    })
}

/// Closes a shared lane. Messages that wait there are gone, and those that the program has are not valid any more. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_shared_lane(
    lane: *mut SharedLaneHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(lane).map(drop))
}

/// Tells a ticket of a shared lane, with which any number of peers send: a target's message names its tag as its word.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_shared_lane_ticket(
    lane: *mut SharedLaneHandle,
    ticket: *mut Ticket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the ticket", ticket)?;
        handle::with(lane, |of| {
            ticket::put(place, &each!(of, of => of.object.lane.ticket()));
            Ok(())
        })
    })
}

/// Takes the next message, in a buffer that is the program's until it gives it back (hamlyn_give_back_shared_lane). HAMLYN_TIMED_OUT at once if
/// the program has all buffers: then messages wait in the queue. Blocks for `wait_ns` at most. Allocates the first time that a buffer is used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_recv_shared_lane(
    lane: *mut SharedLaneHandle,
    wait_ns: i64,
    message: *mut LaneMessage,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the message", message)?;
        handle::with(lane, |of| {
            on!(of, (interface, end) => {
                let came = end.lane.recv(&mut interface, wait_of(wait_ns))?;
                let held = came.and_then(|message| end.hold(message));
                place.put(held.ok_or(NOTHING_CAME)?);
            });
            Ok(())
        })
    })
}

/// Gives the buffer of a message back. HAMLYN_HELD if the program has no message there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_give_back_shared_lane(
    lane: *mut SharedLaneHandle,
    buffer: u32,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(lane, |of| {
            each!(of, of => {
                let held = of.object.release(buffer);
                of.object.lane.give_back(held.ok_or(NONE_HELD)?);
            });
            Ok(())
        })
    })
}

/// The state of a shared lane.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedLaneInfo {
    /// Messages that wait in its queue.
    pub waiting: u64,
    /// Messages that were put into its queue so far, as they were not taken in turn.
    pub queued: u64,
    /// Messages that were refused, for all reasons (hamlyn_shared_lane_refusals).
    pub refusals: u64,
    /// Messages that were dropped because they are longer than a buffer: their senders did not keep to the ticket.
    pub too_long: u64,
    /// Buffers that the program has.
    pub taken: u32,
    /// Bytes of its queue that the messages there take.
    pub waiting_bytes: u32,
    /// Bytes that its queue holds.
    pub queue_bytes: u32,
}

/// Tells the state of a shared lane.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_shared_lane_info(
    lane: *mut SharedLaneHandle,
    info: *mut SharedLaneInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the state", info)?;
        handle::with(lane, |of| {
            on!(of, (interface, end) => {
                let found = interface.port_info(end.lane.port())?;
                place.put(SharedLaneInfo {
                    waiting: found.waiting as u64,
                    queued: found.queued,
                    refusals: found.refusals.total(),
                    too_long: end.lane.too_long(),
                    taken: end.lane.taken().into(),
                    waiting_bytes: found.waiting_bytes,
                    queue_bytes: found.queue_bytes,
                });
            });
            Ok(())
        })
    })
}

/// Tells how many messages to a shared lane were refused for that reason, a number of hamlyn_refusal. HAMLYN_NOT_FOUND if there is no such reason.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_shared_lane_refusals(
    lane: *mut SharedLaneHandle,
    reason: u32,
    count: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", count)?;
        let reason = reason_of(reason)?;
        handle::with(lane, |of| {
            on!(of, (interface, end) => {
                let info = interface.port_info(end.lane.port())?;
                place.put(info.refusals.count(reason));
            });
            Ok(())
        })
    })
}
