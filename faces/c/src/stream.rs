//! Streams (`Hamlyn 3.3`): records in order, from one sender to one receiver.

use std::ffi::{c_char, c_void};

use hamlyn::Wait;
use hamlyn::stream::{self, SEED_BYTES, StreamSeed};

use crate::at_once::{Arguments, at_once, received, release_at_once, sent};
use crate::boundary::{
    bytes, bytes_at_once, call, read_or_default, room, room_at_once, text, text_or_none, to_travel,
    travelled, wait_of,
};
use crate::datagram::{Message, NOTHING_CAME};
use crate::handle::{self, kind};
use crate::holding::Holding;
use crate::manager::{ManagerHandle, Of, OneThread, Threads, each, make_end};
use crate::peer::{self, Peer};
use crate::status::{Error, Failure, NO_ROOM, Status};

/// What a stream is opened with; 0 in a field means its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StreamOptions {
    /// Pieces at first, up to 65,535. Default 64.
    pub pieces: u32,
    /// Bytes of a piece, a power of two from 64. Default 16 KiB, what a packet carries.
    pub piece_bytes: u32,
    /// Bytes that the stream may grow to; also bounds a record. Default 64 MiB.
    pub limit_bytes: u64,
    /// Not 0: the sender may use all of limit_bytes from the beginning, 1 TiB at most, so that it goes on while this program reads nothing;
    /// pieces is not used, and pieces have 4 KiB or more. This memory takes pages as records come, and gives them back as they are read; if
    /// memory is short then, the system ends a process. If this process is stopped as a whole, what is sent waits in the memory of
    /// buffer_bytes_per_peer, which must be as large.
    pub ahead: u32,
    /// Zero.
    pub reserved: u32,
}

impl StreamOptions {
    fn read(self) -> stream::StreamOptions {
        let defaults = stream::StreamOptions::default();
        let or = |given: u32, default: u32| if given == 0 { default } else { given };
        stream::StreamOptions {
            pieces: or(self.pieces, defaults.pieces),
            piece_bytes: or(self.piece_bytes, defaults.piece_bytes),
            limit_bytes: if self.limit_bytes == 0 {
                defaults.limit_bytes
            } else {
                self.limit_bytes
            },
            ahead: self.ahead != 0,
        }
    }
}

type Receiving<H> = Holding<stream::Receiver<H>, stream::Record<'static, H>>;

/// The receiving end of a stream.
#[derive(Debug)]
pub struct StreamReceiverHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct StreamReceiver(pub(crate) Of<Receiving<OneThread>, Receiving<Threads>>);

kind!(StreamReceiverHandle, StreamReceiver, 4, "stream receiver");

/// The sending end of a stream.
#[derive(Debug)]
pub struct StreamSenderHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct StreamSender(Of<stream::Sender<OneThread>, stream::Sender<Threads>>);

kind!(StreamSenderHandle, StreamSender, 5, "stream sender");

/// Binds the receiving end of a stream, for the one sender that connects first. Null for `options`: the defaults. Null for `item`: its sender
/// grows from its seed. Allocates; does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_bind_stream(
    manager: *mut ManagerHandle,
    item: *const c_char,
    options: *const StreamOptions,
    receiver: *mut *mut StreamReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the receiver", receiver)?;
        let item = text_or_none("the item", item)?;
        let options = read_or_default(options)
            .map_or_else(stream::StreamOptions::default, StreamOptions::read);
        make_end!(manager, place, StreamReceiver, manager => Holding::new(match item {
            Some(item) => manager.bind_stream(item, options)?,
            None => stream::Receiver::new(manager, options)?,
        }))
    })
}

/// Bytes of a seed.
pub const SEED_LENGTH_BYTES: usize = 96;
/// Of these so many are used.
pub const SEED_USED_BYTES: usize = 76;
const _: () = assert!(SEED_USED_BYTES == SEED_BYTES && SEED_LENGTH_BYTES >= SEED_BYTES);

/// What the sending end of a stream grows from. A capability, like a ticket; to be used by one holder, once. May be copied and sent as bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed {
    /// Meaningful to the library only. Programs in Rust and Python take the first HAMLYN_SEED_USED_BYTES alone; the others are 0.
    pub bytes: [u8; SEED_LENGTH_BYTES],
}

/// A stream's seed, for a sender that is not to find it by a name. No record may be held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_stream_seed(
    receiver: *mut StreamReceiverHandle,
    seed: *mut Seed,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the seed", seed)?;
        handle::with(receiver, |StreamReceiver(end)| {
            let made = each!(end, end => end.end()?.make_seed());
            let bytes = to_travel(&made.to_bytes());
            place.put(Seed { bytes });
            Ok(())
        })
    })
}

/// Becomes the sender of a stream by its seed. Blocks for `wait_ns` at most while it connects. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_grow_stream(
    manager: *mut ManagerHandle,
    seed: *const Seed,
    wait_ns: i64,
    sender: *mut *mut StreamSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the sender", sender)?;
        let bytes = travelled::<SEED_BYTES, SEED_LENGTH_BYTES>("the seed", seed.cast())?;
        let seed =
            StreamSeed::from_bytes(&bytes).map_err(|error| Failure::of(Status::Invalid, &error))?;
        make_end!(manager, place, StreamSender, manager => stream::Sender::grow(manager, &seed, wait_of(wait_ns))?)
    })
}

/// Receives the next record, where it landed. It is held until hamlyn_release_record. Blocks for `wait_ns` at most. HAMLYN_FINISHED when the
/// sender has closed and all is received; HAMLYN_PEER_LOST when it is gone without a word.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_recv_record(
    receiver: *mut StreamReceiverHandle,
    wait_ns: i64,
    record: *mut Message,
    error: *mut Error,
) -> Status {
    at_once(
        receiver.cast_const(),
        Arguments {
            others: (receiver, record),
            wait_ns,
            error,
        },
        move |end, error| {
            let end = end.alone(|StreamReceiver(end)| end);
            let place = room_at_once(record)?;
            let came = end.hold_at_once(|end| end.recv(Wait::Poll))?;
            received(error, came, |record| place.put(Message::of(record)))
        },
        NOTHING_CAME,
        |(receiver, record), wait_ns, error| recv_record(receiver, wait_ns, record, error),
    )
}

#[cold]
#[inline(never)]
fn recv_record(
    receiver: *mut StreamReceiverHandle,
    wait_ns: i64,
    record: *mut Message,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the record", record)?;
        handle::with(receiver, |StreamReceiver(end)| {
            each!(end, end => match end.hold(|end| Ok(end.recv(wait_of(wait_ns))?))? {
                Some(record) => place.put(Message::of(record)),
                None => return Err(NOTHING_CAME),
            });
            Ok(())
        })
    })
}

/// Gives the memory of the record back to its sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_release_record(
    receiver: *mut StreamReceiverHandle,
    error: *mut Error,
) -> Status {
    release_at_once(receiver, |StreamReceiver(end)| end).unwrap_or_else(|| release(receiver, error))
}

#[cold]
#[inline(never)]
fn release(receiver: *mut StreamReceiverHandle, error: *mut Error) -> Status {
    call(error, || {
        handle::with(receiver, |StreamReceiver(end)| end.release())
    })
}

/// Who sends. No record may be held. HAMLYN_NOT_FOUND before a sender has presented itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_stream_peer(
    receiver: *mut StreamReceiverHandle,
    peer: *mut Peer,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the peer", peer)?;
        handle::with(receiver, |StreamReceiver(end)| {
            peer::put(place, each!(end, end => end.end()?.sender()))
        })
    })
}

/// Closes the receiving end: its sender is told. A record that is held is not valid any more. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_stream_receiver(
    receiver: *mut StreamReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(receiver).map(drop))
}

/// Connects to a stream, as its only sender. Blocks for `wait_ns` at most while nobody has the name or has bound the item. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_connect_stream(
    manager: *mut ManagerHandle,
    to: *const c_char,
    wait_ns: i64,
    sender: *mut *mut StreamSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the sender", sender)?;
        let to = text("the address", to)?;
        make_end!(manager, place, StreamSender, manager => manager.connect_stream(to, wait_of(wait_ns))?)
    })
}

/// Sends a record. Blocks for `wait_ns` at most while the receiver has no memory for it. Short records may wait for more of their kind, until
/// hamlyn_flush_stream, the next long one, or any call of the manager that waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_send_record(
    sender: *mut StreamSenderHandle,
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
            let end = end.alone(|StreamSender(end)| end);
            sent(
                error,
                end.send(bytes_at_once(data, length_bytes)?, Wait::Poll),
            )
        },
        NO_ROOM,
        |(sender, data, length_bytes), wait_ns, error| {
            send_record(sender, data, length_bytes, wait_ns, error)
        },
    )
}

#[cold]
#[inline(never)]
fn send_record(
    sender: *mut StreamSenderHandle,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        handle::with(sender, |StreamSender(end)| {
            Ok(each!(end, end => end.send(data, wait_of(wait_ns)))?)
        })
    })
}

/// Sends what waits for more of its kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_flush_stream(
    sender: *mut StreamSenderHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(sender, |StreamSender(end)| {
            Ok(each!(end, end => end.flush(wait_of(wait_ns)))?)
        })
    })
}

/// Waits until all records that were sent are in their places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_fence_stream(
    sender: *mut StreamSenderHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(sender, |StreamSender(end)| {
            Ok(each!(end, end => end.fence(wait_of(wait_ns)))?)
        })
    })
}

/// Says that the stream is whole: the receiver finds its end after the last record. Then the handle is to be closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_finish_stream(
    sender: *mut StreamSenderHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(sender, |StreamSender(end)| {
            Ok(each!(end, end => end.close(wait_of(wait_ns)))?)
        })
    })
}

/// Closes the sending end, as hamlyn_finish_stream does without waiting. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_stream_sender(
    sender: *mut StreamSenderHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(sender).map(drop))
}
