//! Lanes: buffers of one size for the messages of one peer, read where they landed and given back in any order.

use std::collections::VecDeque;
use std::ffi::c_void;

use hamlyn::lane::{self, Kept, Lane, LaneSeed, LaneSender, SEED_BYTES};

use crate::boundary::{
    Room, bytes, call, read_or_default, room, room_if_asked, to_travel, travelled, wait_of,
};
use crate::datagram::{NONE_HELD, NOTHING_CAME};
use crate::handle::{self, kind};
use crate::lower::{Lower, make_lower, on};
use crate::manager::{ManagerHandle, each};
use crate::status::{Error, Failure, Status};

/// Settings with which a lane is opened; 0 in a field means its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaneOptions {
    /// Number of buffers, 1 to 4,096. Default 16.
    pub buffers: u32,
    /// Bytes of each, 1 to 128 MiB. Default 4,096.
    pub buffer_bytes: u32,
}

/// A number of buffers; the default for 0. The library refuses what is none.
pub(crate) fn buffers_of(given: u32, default: u16) -> Result<u16, Failure> {
    match given {
        0 => Ok(default),
        _ => u16::try_from(given)
            .map_err(|_| Failure::new(Status::Invalid, "a lane has 1 to 4,096 buffers")),
    }
}

impl LaneOptions {
    fn read(self) -> Result<lane::LaneOptions, Failure> {
        let mut options = lane::LaneOptions::default();
        options.buffers = buffers_of(self.buffers, options.buffers)?;
        if self.buffer_bytes != 0 {
            options.buffer_bytes = self.buffer_bytes;
        }
        Ok(options)
    }
}

/// Bytes of the seed of a lane.
pub const LANE_SEED_LENGTH_BYTES: usize = 96;
/// Number of its bytes that are significant.
pub const LANE_SEED_USED_BYTES: usize = 60;
const _: () = assert!(LANE_SEED_USED_BYTES == SEED_BYTES && LANE_SEED_LENGTH_BYTES >= SEED_BYTES);

/// All that the sending end of a lane needs. A capability, like a ticket; to be used by one holder, once. May be copied and sent as bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneSeedBytes {
    /// Meaningful to the library only. Programs in Rust take the first HAMLYN_LANE_SEED_USED_BYTES alone; the others are 0.
    pub bytes: [u8; LANE_SEED_LENGTH_BYTES],
}

/// A message in a buffer of a lane or of a shared lane.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneMessage {
    /// Its bytes: valid until its buffer is given back, or the lane is closed.
    pub data: *const c_void,
    /// Number of bytes.
    pub length_bytes: usize,
    /// The link over which it came (hamlyn_link_peer).
    pub link: u64,
    /// The number that its sender gave it.
    pub tag: u32,
    /// The number of its buffer.
    pub buffer: u32,
}

/// A lane, and the messages that the program has, by the numbers of their buffers.
pub(crate) struct Receiving {
    lane: Lane,
    held: Vec<Option<lane::LaneMessage>>,
}

/// The receiving end of a lane.
#[derive(Debug)]
pub struct LaneHandle {
    _of_the_library: [u8; 0],
}

kind!(LaneHandle, Lower<Receiving>, 37, "lane");

/// A sending end, and messages without credit that it is about to tell.
pub(crate) struct Sending {
    sender: LaneSender,
    kept: VecDeque<Kept>,
    /// The one that was told last.
    told: Option<Kept>,
}

/// The sending end of a lane.
#[derive(Debug)]
pub struct LaneSenderHandle {
    _of_the_library: [u8; 0],
}

kind!(LaneSenderHandle, Lower<Sending>, 38, "lane sender");

// Handles of shared managers pass from thread to thread, with their objects.
const _: () = {
    const fn passes<T: Send>() {}
    passes::<Receiving>();
    passes::<Sending>();
};

impl Receiving {
    fn hold(&mut self, message: lane::LaneMessage) -> LaneMessage {
        let data = self.lane.bytes(&message);
        let told = LaneMessage {
            data: data.as_ptr().cast(),
            length_bytes: data.len(),
            link: self.lane.link().map_or(0, |link| link.to_bits()),
            tag: message.tag(),
            buffer: message.index().into(),
        };
        let buffer = usize::from(message.index());
        if let Some(place) = self.held.get_mut(buffer) {
            *place = Some(message);
        }
        told
    }
}

/// Opens a lane, all of whose buffers are free. It takes as many entries of the manager's queue, and two more. Null for `options`: the
/// defaults. Does not block; allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_lane(
    manager: *mut ManagerHandle,
    options: *const LaneOptions,
    lane: *mut *mut LaneHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the lane", lane)?;
        let options = read_or_default(options)
            .map(LaneOptions::read)
            .transpose()?;
        let options = options.unwrap_or_default();
        make_lower!(manager, place, interface => Receiving {
            lane: Lane::open(&mut interface, options)?,
            held: (0..options.buffers).map(|_| None).collect(),
        })
    })
}

/// Closes a lane, and tells its sender as soon as there is room. Messages that the program has are not valid any more. Does not block. Null is
/// allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_lane(lane: *mut LaneHandle, error: *mut Error) -> Status {
    call(error, || {
        if let Some(of) = handle::close(lane)? {
            each!(of, of => of.object.lane.close(&mut of.manager.session()));
        }
        Ok(())
    })
}

/// Tells the seed of a lane's sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_lane_seed(
    lane: *mut LaneHandle,
    seed: *mut LaneSeedBytes,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the seed", seed)?;
        handle::with(lane, |of| {
            let seed = each!(of, of => of.object.lane.seed());
            let bytes = to_travel(&seed.to_bytes());
            place.put(LaneSeedBytes { bytes });
            Ok(())
        })
    })
}

/// Takes the next message, in a buffer that is the program's until it gives it back (hamlyn_give_back_lane). Any number of buffers may be the
/// program's. Blocks for `wait_ns` at most. HAMLYN_FINISHED if the sender has ended and everything was taken; HAMLYN_PEER_LOST if it is gone;
/// HAMLYN_MALFORMED if it broke the protocol. Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_recv_lane(
    lane: *mut LaneHandle,
    wait_ns: i64,
    message: *mut LaneMessage,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the message", message)?;
        handle::with(lane, |of| {
            on!(of, (interface, end) => {
                let came = end.lane.recv(&mut interface, wait_of(wait_ns))?;
                place.put(end.hold(came.ok_or(NOTHING_CAME)?));
            });
            Ok(())
        })
    })
}

/// Gives the buffer of a message back to the sender. HAMLYN_HELD if the program has no message there. Does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_give_back_lane(
    lane: *mut LaneHandle,
    buffer: u32,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(lane, |of| {
            on!(of, (interface, end) => {
                let held = end.held.get_mut(buffer as usize).and_then(Option::take);
                end.lane.give_back(&mut interface, held.ok_or(NONE_HELD)?);
            });
            Ok(())
        })
    })
}

/// Makes this program the sender of a lane. Blocks for `wait_ns` at most while it connects. Of a second sender of one seed the greeting is refused,
/// as a fence shows. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_connect_lane(
    manager: *mut ManagerHandle,
    seed: *const LaneSeedBytes,
    wait_ns: i64,
    sender: *mut *mut LaneSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the sender", sender)?;
        let bytes = travelled::<SEED_BYTES, LANE_SEED_LENGTH_BYTES>("the seed", seed.cast())?;
        let seed = LaneSeed::from_bytes(&bytes)?;
        make_lower!(manager, place, interface => Sending {
            sender: LaneSender::connect(&mut interface, &seed, wait_of(wait_ns))?,
            kept: VecDeque::new(),
            told: None,
        })
    })
}

/// Closes a sender. The receiver gets all that was sent, and then learns that nothing more comes. Does not block. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_lane_sender(
    sender: *mut LaneSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        if let Some(of) = handle::close(sender)? {
            each!(of, of => of.object.sender.close(&mut of.manager.session()));
        }
        Ok(())
    })
}

/// Where the number of the buffer goes, if anybody asks.
fn buffer_place(place: *mut u32) -> Result<Option<Room<u32>>, Failure> {
    room_if_asked("the place for the number", place)
}

fn put_buffer(place: Option<Room<u32>>, buffer: u16) {
    if let Some(place) = place {
        place.put(buffer.into());
    }
}

/// Sends a message to the next free buffer, and tells its number; null for `buffer`: nobody asks. Blocks for `wait_ns` at most while no buffer is
/// free, or there is no room on the way. HAMLYN_TOO_LONG if it is longer than a buffer; HAMLYN_FINISHED if the receiver closed the lane.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_send_lane(
    sender: *mut LaneSenderHandle,
    tag: u32,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    buffer: *mut u32,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        let place = buffer_place(buffer)?;
        handle::with(sender, |of| {
            let sent = on!(of, (interface, end) => {
                end.sender.send(&mut interface, tag, data, wait_of(wait_ns))
            });
            put_buffer(place, sent?);
            Ok(())
        })
    })
}

/// The same to a buffer of the program's choice, as soon as that is free. HAMLYN_INVALID if there is no such buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_send_lane_to(
    sender: *mut LaneSenderHandle,
    buffer: u32,
    tag: u32,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        handle::with(sender, |of| {
            let sent = on!(of, (interface, end) => {
                let buffer = buffer_of(&end.sender, buffer)?;
                end.sender.send_to(&mut interface, buffer, tag, data, wait_of(wait_ns))
            });
            Ok(sent.map(drop)?)
        })
    })
}

/// Sends a message to the next free buffer, and keeps a copy until credit comes for it: hamlyn_next_kept tells those for which none came. Otherwise
/// like hamlyn_send_lane. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_send_lane_kept(
    sender: *mut LaneSenderHandle,
    tag: u32,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    buffer: *mut u32,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        let place = buffer_place(buffer)?;
        handle::with(sender, |of| {
            let sent = on!(of, (interface, end) => {
                end.sender.send_kept(&mut interface, tag, data.to_vec(), wait_of(wait_ns))
            });
            put_buffer(place, sent.map_err(|not_sent| not_sent.error)?);
            Ok(())
        })
    })
}

/// Tells a message that was sent by hamlyn_send_lane_kept and for which no credit came, the oldest first; its link is the receiver's. The receiver
/// may have had it, and the lane keeps it no longer. Its bytes are valid until this is called again, or the sender is closed. HAMLYN_NOT_FOUND if
/// there is none. Does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_next_kept(
    sender: *mut LaneSenderHandle,
    message: *mut LaneMessage,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the message", message)?;
        handle::with(sender, |of| {
            each!(of, of => {
                let end = &mut of.object;
                if end.kept.is_empty() {
                    end.kept.extend(end.sender.take_kept());
                }
                end.told = end.kept.pop_front();
                let kept = end.told.as_ref().ok_or(Failure::new(
                    Status::NotFound,
                    "credit came for every message that was to be kept, or they were told",
                ))?;
                place.put(LaneMessage {
                    data: kept.data.as_ptr().cast(),
                    length_bytes: kept.data.len(),
                    link: end.sender.target().link().to_bits(),
                    tag: kept.tag,
                    buffer: kept.index.into(),
                });
            });
            Ok(())
        })
    })
}

/// The state of a lane's sending end.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneSenderInfo {
    /// The link to the receiver (hamlyn_fence_link, hamlyn_track_fence).
    pub link: u64,
    /// Number of buffers.
    pub buffers: u32,
    /// Bytes of each: the longest message.
    pub buffer_bytes: u32,
    /// Number of free buffers, as far as credit has come.
    pub credits: u32,
}

/// Tells the state of a sending end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_lane_sender_info(
    sender: *mut LaneSenderHandle,
    info: *mut LaneSenderInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place: Room<_> = room("the place for the state", info)?;
        handle::with(sender, |of| {
            let sender = each!(of, of => &of.object.sender);
            place.put(LaneSenderInfo {
                link: sender.target().link().to_bits(),
                buffers: sender.buffers().into(),
                buffer_bytes: sender.buffer_bytes(),
                credits: sender.credits() as u32,
            });
            Ok(())
        })
    })
}

/// Not 0 for `is_free`: that buffer was never filled, or given back since. HAMLYN_INVALID if there is no such buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_is_lane_buffer_free(
    sender: *mut LaneSenderHandle,
    buffer: u32,
    is_free: *mut u32,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the answer", is_free)?;
        handle::with(sender, |of| {
            let sender = each!(of, of => &of.object.sender);
            place.put(sender.is_free(buffer_of(sender, buffer)?).into());
            Ok(())
        })
    })
}

fn buffer_of(sender: &LaneSender, buffer: u32) -> Result<u16, Failure> {
    let found = u16::try_from(buffer).ok();
    found
        .filter(|buffer| *buffer < sender.buffers())
        .ok_or_else(|| {
            let (last, text) = (sender.buffers() - 1, "the lane has buffers 0 to");
            Failure::of(
                Status::Invalid,
                &format_args!("{text} {last}, not {buffer}"),
            )
        })
}
