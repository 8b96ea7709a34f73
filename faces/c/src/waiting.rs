//! Waits for several queues at a time, and for time-outs of the program's own.

use std::ffi::c_void;
use std::time::Duration;

use hamlyn::Destination;

use crate::boundary::{call, room, wait_of};
use crate::completions::CompletionQueueHandle;
use crate::datagram::NOTHING_CAME;
use crate::handle::{self, Entered};
use crate::lower::with_interface;
use crate::manager::{Manager, ManagerHandle, each};
use crate::queue::QueueHandle;
use crate::shared_lanes::SharedLaneHandle;
use crate::status::{Error, Failure, Status};

/// The handle of a source is a hamlyn_queue.
pub const SOURCE_MESSAGES: u32 = 0;
/// The handle of a source is a hamlyn_completion_queue.
pub const SOURCE_COMPLETIONS: u32 = 1;
/// The handle of a source is a hamlyn_shared_lane. It is ready as long as messages wait, also while the program has all buffers.
pub const SOURCE_SHARED_LANE: u32 = 2;

/// Something that hamlyn_await_any looks at.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// HAMLYN_SOURCE_MESSAGES, HAMLYN_SOURCE_COMPLETIONS or HAMLYN_SOURCE_SHARED_LANE.
    pub kind: u32,
    /// A handle of that kind.
    pub handle: *mut c_void,
}

/// A source that this call uses.
enum InUse<'a> {
    Messages(Entered<'a, QueueHandle>),
    Completions(Entered<'a, CompletionQueueHandle>),
    SharedLane(Entered<'a, SharedLaneHandle>),
}

impl InUse<'_> {
    fn enter(source: Source, interface: Destination) -> Result<Self, Failure> {
        match source.kind {
            SOURCE_MESSAGES => {
                let queue = handle::enter_for_several::<QueueHandle>(source.handle.cast())?;
                queue.value().check(interface, "queue")?;
                Ok(Self::Messages(queue))
            }
            SOURCE_COMPLETIONS => {
                let queue =
                    handle::enter_for_several::<CompletionQueueHandle>(source.handle.cast())?;
                queue.value().check(interface, "completion queue")?;
                Ok(Self::Completions(queue))
            }
            SOURCE_SHARED_LANE => {
                let lane = handle::enter_for_several::<SharedLaneHandle>(source.handle.cast())?;
                lane.value().check(interface, "shared lane")?;
                Ok(Self::SharedLane(lane))
            }
            _ => Err(Failure::new(
                Status::Invalid,
                "a source is none of HAMLYN_SOURCE_MESSAGES, HAMLYN_SOURCE_COMPLETIONS and HAMLYN_SOURCE_SHARED_LANE",
            )),
        }
    }

    fn source(&self) -> hamlyn::Source<'_> {
        match self {
            Self::Messages(queue) => {
                hamlyn::Source::Messages(each!(queue.value(), of => &of.object))
            }
            Self::Completions(queue) => {
                hamlyn::Source::Completions(each!(queue.value(), of => &of.object))
            }
            Self::SharedLane(lane) => {
                hamlyn::Source::Port(each!(lane.value(), of => of.object.lane.port()))
            }
        }
    }
}

/// Waits until one of `count` queues has something, a message or a completion, and tells the place in the array of the first that has. Blocks
/// for `wait_ns` at most. All of them are of that manager, each is given once, and no other call may use them meanwhile. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_await_any(
    manager: *mut ManagerHandle,
    sources: *const Source,
    count: usize,
    wait_ns: i64,
    ready: *mut usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the number", ready)?;
        let invalid = |text| Failure::new(Status::Invalid, text);
        if count == 0 || sources.is_null() || !sources.is_aligned() {
            return Err(invalid("the sources are null, or there are none"));
        }
        if count > isize::MAX as usize / size_of::<Source>() {
            return Err(invalid("there are more sources than memory can hold"));
        }
        handle::with(manager, |Manager(manager)| {
            // SAFETY: there are so many, which nobody writes meanwhile, as the header demands.
            let given = unsafe { std::slice::from_raw_parts(sources, count) };
            let mut all: Vec<_> = (given.iter())
                .map(|source| (source.kind, source.handle.addr()))
                .collect();
            all.sort_unstable();
            if all.windows(2).any(|two| two[0] == two[1]) {
                return Err(invalid("a source is given twice"));
            }
            let found = each!(manager, manager => {
                let manager = manager.end()?;
                let identity = manager.session().identity();
                let in_use = (given.iter()).map(|source| InUse::enter(*source, identity));
                let in_use = in_use.collect::<Result<Vec<_>, Failure>>()?;
                let sources: Vec<_> = in_use.iter().map(InUse::source).collect();
                manager.session().await_any(&sources, wait_of(wait_ns))?
            });
            place.put(found.ok_or(NOTHING_CAME)?);
            Ok(())
        })
    })
}

/// Has all waits with this manager look again after so long at the latest, event loops included, though nothing happens until then. For
/// protocols with time-outs, which ask for it in each look, since the earliest time of all counts, once. Does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_look_within(
    manager: *mut ManagerHandle,
    span_ns: u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        with_interface!(manager, interface => {
            interface.look_within(Duration::from_nanos(span_ns));
            Ok(())
        })
    })
}
