//! Completion queues (decision 50): the ends of sends, fences and one-sided operations, each with a number of the program's own, and packets
//! that came back.

use hamlyn::engine::memory::LinkId;
use hamlyn::engine::terminus::SendHandle;
use hamlyn::engine::transport::Return;
use hamlyn::one_sided::Operation;
use hamlyn::{CompletionError, CompletionQueue, TrackError};

use crate::boundary::{self, call, room, wait_of};
use crate::datagram::NOTHING_CAME;
use crate::handle::{self, kind};
use crate::links::Undelivered;
use crate::lower::{Lower, make_lower, on};
use crate::manager::{ManagerHandle, each};
use crate::one_sided::InitiatorHandle;
use crate::status::{Error, Failure, Status};
use crate::target::TargetHandle;

/// A completion queue: the ends of what was given to it (hamlyn_track_send, hamlyn_track_fence, hamlyn_track_operation, hamlyn_track_word), each
/// with a number of the program's own. Each takes a place until its completion is fetched, so no completion is lost. They come in any order.
#[derive(Debug)]
pub struct CompletionQueueHandle {
    _of_the_library: [u8; 0],
}

kind!(
    CompletionQueueHandle,
    Lower<CompletionQueue>,
    36,
    "completion queue"
);

impl From<TrackError> for Failure {
    fn from(error: TrackError) -> Self {
        match error {
            TrackError::Full { .. } => Self::of(Status::Limit, &error),
            TrackError::Terminus(error) => error.into(),
            TrackError::Fence(error) => error.into(),
            TrackError::Operation(error) => error.into(),
            _ => Self::of(Status::Invalid, &error),
        }
    }
}

/// With the status that the same error has in the call that waits.
impl From<CompletionError> for Failure {
    fn from(error: CompletionError) -> Self {
        match error {
            CompletionError::NotSent => Self::of(Status::PeerLost, &error),
            CompletionError::Fence(error) => error.into(),
            CompletionError::Operation(error) => error.into(),
            CompletionError::Returned(packet) => {
                let status = match packet.reason {
                    Return::Refused(_) | Return::RefusedOtherwise(_) => Status::Refused,
                    _ => Status::PeerLost,
                };
                Self::of(status, &packet)
            }
            _ => Self::of(Status::Invalid, &error),
        }
    }
}

/// Opens a completion queue of that many places, 1 to 65,536. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_completions(
    manager: *mut ManagerHandle,
    places: usize,
    queue: *mut *mut CompletionQueueHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the completion queue", queue)?;
        make_lower!(manager, place, interface => interface.open_completions(places)?)
    })
}

/// Closes a completion queue. All that it tracks goes on; no completion of it is told any more. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_completions(
    queue: *mut CompletionQueueHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(queue).map(drop))
}

/// Completes with that context when the message of that number (hamlyn_send_msg, hamlyn_send_gather) is handed to the link whole, so that its
/// buffers are free; HAMLYN_PEER_LOST if its link is lost before. HAMLYN_LIMIT if all places are taken: the message goes all the
/// same, and hamlyn_get_completion says how it ends. A number that no send has told takes its place until the queue is closed. Does not
/// block; may allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_track_send(
    queue: *mut CompletionQueueHandle,
    target: *mut TargetHandle,
    sequence: u64,
    context: u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        with_queue_and(queue, target, |queue, of| {
            Ok(on!(of, (interface, at) => {
                let terminus = at.terminus;
                interface.track_send(queue, SendHandle { terminus, sequence }, context)
            })?)
        })
    })
}

/// Completes with that context when everything that was accepted for that link before is in its place at its receiver; otherwise with the
/// status that hamlyn_fence_link has. So a message that is followed by this is complete when it is delivered, and one fence answers for all
/// messages before it. Does not block; allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_track_fence(
    queue: *mut CompletionQueueHandle,
    link: u64,
    context: u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(queue, |of| {
            Ok(on!(of, (interface, queue) => {
                interface.track_fence(queue, LinkId::from_bits(link), context)
            })?)
        })
    })
}

/// Gives an operation to a queue: it completes there with that context and the status that hamlyn_finish has, cannot be finished any more,
/// and its place among the initiator's is free when it ends. HAMLYN_BAD_HANDLE if the initiator is closed before. Does not block. The first such
/// call of an initiator allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_track_operation(
    queue: *mut CompletionQueueHandle,
    initiator: *mut InitiatorHandle,
    operation: u32,
    context: u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        with_queue_and(queue, initiator, |queue, of| {
            let operation = Operation::from_bits(operation);
            Ok(on!(of, (interface, initiator) => {
                interface.track_operation(queue, initiator, operation, context)
            })?)
        })
    })
}

/// The same for an operation with a word (hamlyn_begin_atomic, hamlyn_begin_read_word): the completion has the word.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_track_word(
    queue: *mut CompletionQueueHandle,
    initiator: *mut InitiatorHandle,
    operation: u32,
    context: u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        with_queue_and(queue, initiator, |queue, of| {
            let operation = Operation::from_bits(operation);
            Ok(on!(of, (interface, initiator) => {
                interface.track_word(queue, initiator, operation, context)
            })?)
        })
    })
}

/// Uses a queue and an object of the same manager.
fn with_queue_and<K, T>(
    queue: *mut CompletionQueueHandle,
    handle: *mut K,
    act: impl FnOnce(&CompletionQueue, &mut Lower<T>) -> Result<(), Failure>,
) -> Result<(), Failure>
where
    K: handle::Kind<Value = Lower<T>>,
{
    handle::with(handle, |of| {
        let identity = of.identity();
        handle::with(queue, |queue| {
            queue.check(identity, "completion queue")?;
            act(each!(queue, queue => &queue.object), of)
        })
    })
}

/// From now on this queue tells packets that came back, in place of hamlyn_next_undelivered, whenever nothing else is complete; no other queue of
/// the manager does any more. They take no places. Their context is that of the link (hamlyn_set_link_context).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_track_refusals(
    queue: *mut CompletionQueueHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(queue, |of| {
            Ok(on!(of, (interface, queue) => interface.track_refusals(queue))?)
        })
    })
}

/// The end of what was given to a completion queue, or a packet that came back.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkCompletion {
    /// The number that it was given to the queue with; of a packet that came back that of its link (hamlyn_set_link_context).
    pub context: u64,
    /// Of an operation that was given by hamlyn_track_word: the word before its change, or as it was read. Otherwise 0.
    pub word: u64,
    /// HAMLYN_OK, or the status of the same error in the call that waits: hamlyn_fence_link, hamlyn_finish.
    pub status: Status,
    /// Not 0: a packet came back, and `packet` says which (hamlyn_track_refusals).
    pub is_returned: u32,
    /// The packet that came back; otherwise zeros.
    pub packet: Undelivered,
}

/// The next completion. Blocks for `wait_ns` at most. Does not allocate, unless one is told that failed. HAMLYN_OK also if that which was
/// tracked failed: see its status, of which `why` is given a text; null: nobody reads it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_next_completion(
    queue: *mut CompletionQueueHandle,
    wait_ns: i64,
    completion: *mut WorkCompletion,
    why: *mut Error,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the completion", completion)?;
        handle::with(queue, |of| {
            let next = on!(of, (interface, queue) => match interface.next_completion(queue) {
                None if wait_ns != 0 => interface.await_completion(queue, wait_of(wait_ns))?,
                next => next,
            });
            let next = next.ok_or(NOTHING_CAME)?;
            let mut found = WorkCompletion {
                context: next.context,
                word: 0,
                status: Status::Ok,
                is_returned: 0,
                packet: Undelivered::default(),
            };
            match next.result {
                Ok(word) => found.word = word,
                Err(failed) => {
                    if let CompletionError::Returned(packet) = &failed {
                        found.is_returned = 1;
                        found.packet = packet.into();
                    }
                    found.status = boundary::tell(why, failed.into());
                }
            }
            place.put(found);
            Ok(())
        })
    })
}

/// Not 0 for `has_room`: a message to that target could be queued, if its link has no room itself. For programs that ask before they prepare a
/// message. Not 0 also if the link or the terminus is gone: then a send says so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_has_room(
    target: *mut TargetHandle,
    has_room: *mut u32,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the answer", has_room)?;
        handle::with(target, |of| {
            let found = on!(of, (interface, at) => {
                interface.has_room(at.terminus, at.target.link())
            });
            place.put(found.into());
            Ok(())
        })
    })
}
