//! Notification queues (`Hamlyn 2.6`): what came to the slots that name one, in the order in which it was whole.

use hamlyn::Queue;
use hamlyn::engine::limits::FAST_INDEX;
use hamlyn::engine::notification::Notification as Arrived;

use crate::at_once::{Arguments, at_once, received};
use crate::boundary::{call, room, room_at_once, wait_of};
use crate::datagram::NOTHING_CAME;
use crate::handle::{self, kind};
use crate::lower::{Lower, make_lower, on};
use crate::manager::{ManagerHandle, each};
use crate::status::{Error, Failure, Status};

/// The entry of messages in fast mode: none.
pub const NO_ENTRY: u16 = 65_535;
const _: () = assert!(NO_ENTRY == FAST_INDEX);

/// A notification queue, read by this program alone.
#[derive(Debug)]
pub struct QueueHandle {
    _of_the_library: [u8; 0],
}

kind!(QueueHandle, Lower<Queue>, 17, "notification queue");

/// A message has arrived whole.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Notification {
    /// The number of the slot that it came to (hamlyn_slot_number).
    pub slot: u32,
    /// Its metadata entry; HAMLYN_NO_ENTRY in fast mode.
    pub entry: u16,
    /// In fast mode the word of the message; otherwise the receive class of its entry.
    pub word: u64,
    /// The link over which it, or the last packet of it, came: hamlyn_link_peer says whose that is.
    pub link: u64,
}

impl From<Arrived> for Notification {
    #[inline(always)]
    fn from(arrived: Arrived) -> Self {
        Self {
            slot: arrived.slot.to_bits(),
            entry: arrived.metadata_index,
            word: arrived.word,
            link: arrived.from.to_bits(),
        }
    }
}

/// Opens a queue of that many entries, 2 to 1,048,576, rounded up to a power of two. One that is too short for what may arrive loses
/// the oldest, and says so. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_queue(
    manager: *mut ManagerHandle,
    entries: usize,
    queue: *mut *mut QueueHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the queue", queue)?;
        make_lower!(manager, place, interface => interface.open_queue(entries)?)
    })
}

/// Takes the next notification (h_rcv, h_rcv_block). Blocks for `wait_ns` at most. Does not allocate. HAMLYN_OVERRUN if
/// notifications were lost: the next call goes on with the oldest that is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_rcv(
    queue: *mut QueueHandle,
    wait_ns: i64,
    notification: *mut Notification,
    error: *mut Error,
) -> Status {
    at_once(
        queue.cast_const(),
        Arguments {
            others: (queue, notification),
            wait_ns,
            error,
        },
        move |of, error| {
            let of = of.alone(|of| of);
            let place = room_at_once(notification)?;
            let mut interface = of.manager.session();
            let came = interface.rcv(&mut of.object);
            received(error, came, |arrived| place.put(arrived.into()))
        },
        NOTHING_CAME,
        |(queue, notification), wait_ns, error| rcv(queue, wait_ns, notification, error),
    )
}

#[cold]
#[inline(never)]
fn rcv(
    queue: *mut QueueHandle,
    wait_ns: i64,
    notification: *mut Notification,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the notification", notification)?;
        handle::with(queue, |of| {
            let arrived = on!(of, (interface, queue) => match interface.rcv(queue)? {
                None if wait_ns != 0 => interface.rcv_block(queue, wait_of(wait_ns))?,
                arrived => arrived,
            });
            place.put(arrived.ok_or(NOTHING_CAME)?.into());
            Ok(())
        })
    })
}

/// Takes up to `most` notifications that have come, into an array of as many, and says how many: for less than one by one. Does not block.
/// HAMLYN_OVERRUN if notifications were lost after those `count` that were taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_rcv_many(
    queue: *mut QueueHandle,
    notifications: *mut Notification,
    most: usize,
    count: *mut usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", count)?;
        if most > 0 && (notifications.is_null() || !notifications.is_aligned()) {
            return Err(Failure::new(
                Status::Invalid,
                "the array for the notifications is null",
            ));
        }
        if most > isize::MAX as usize / size_of::<Notification>() {
            return Err(Failure::new(
                Status::Invalid,
                "the array for the notifications is longer than memory can be",
            ));
        }
        handle::with(queue, |of| {
            let mut taken = 0;
            let mut take = |arrived: Arrived| {
                // SAFETY: the array has room for `most`, as the header demands, and no more than that are taken.
                unsafe { notifications.add(taken).write(arrived.into()) };
                taken += 1;
            };
            let received =
                on!(of, (interface, queue) => interface.receive_many(queue, most, &mut take));
            // Also if some were lost: what came before has been taken.
            place.put(taken);
            received?;
            Ok(())
        })
    })
}

/// How many notifications a queue has lost so far because it was too short.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_queue_lost(
    queue: *mut QueueHandle,
    lost: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", lost)?;
        handle::with(queue, |of| {
            place.put(each!(of, of => of.object.lost()));
            Ok(())
        })
    })
}

/// How many entries a queue has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_queue_entries(
    queue: *mut QueueHandle,
    entries: *mut usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", entries)?;
        handle::with(queue, |of| {
            place.put(each!(of, of => of.object.capacity()));
            Ok(())
        })
    })
}

/// Closes a queue. Close its slots first: what comes to them afterwards is not announced. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_queue(queue: *mut QueueHandle, error: *mut Error) -> Status {
    call(error, || {
        if let Some(of) = handle::close(queue)? {
            each!(of, of => of.manager.session().close_queue(of.object));
        }
        Ok(())
    })
}
