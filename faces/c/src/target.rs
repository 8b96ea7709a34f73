//! Targets: tickets that were made usable, and messages to them (`Hamlyn 3.2`, h_send_msg).
//!
//! In Rust a message is sent by a terminus and to a target. Here a target belongs to the terminus by which it was made usable, so that
//! one handle says both, and is checked once.

use std::ffi::c_void;

use hamlyn::engine::counting::{Counting, Share, packets_needed};
use hamlyn::engine::limits::{GATHER_PIECES_HELD, GATHER_PIECES_MAX};
use hamlyn::engine::terminus::{
    Completion as Outcome, GatherPiece, PostError, SendHandle, SendTag, TerminusId,
};
use hamlyn::{Message, Target, Wait};

use crate::at_once::{Arguments, at_once, sent};
use crate::boundary::{Room, bytes, bytes_at_once, call, room, room_if_asked, wait_of};
use crate::handle::{self, kind};
use crate::lower::{Lower, make_beside, on};
use crate::manager::each;
use crate::status::{Error, Failure, NO_ROOM, Status};
use crate::terminus::TerminusHandle;
use crate::ticket::{self, Ticket};

/// A terminus, and a ticket that can be sent to.
#[derive(Debug)]
pub struct TargetHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct At {
    pub(crate) terminus: TerminusId,
    pub(crate) target: Target,
}

kind!(TargetHandle, Lower<At>, 20, "target");

impl From<PostError> for Failure {
    fn from(error: PostError) -> Self {
        hamlyn::SendError::from(error).into()
    }
}

/// A message to be sent; set all of it to 0 first, then what it needs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OutgoingMessage {
    /// Its bytes. Not used by hamlyn_send_gather.
    pub data: *const c_void,
    /// How many.
    pub length_bytes: usize,
    /// Where in the ticket's place they go.
    pub offset: u64,
    /// In fast mode: a word of the program's, which the notification tells.
    pub word: u64,
    /// To an entry: up to HAMLYN_METADATA_BYTES of metadata.
    pub metadata: *const c_void,
    /// How many.
    pub metadata_bytes: usize,
    /// A part of the count of a message that several send together (hamlyn_divide_share); 0: it is whole.
    pub share: u64,
    /// Not 0: it lands unannounced.
    pub silent: u32,
}

impl OutgoingMessage {
    /// A message of the caller's, with its data and its metadata.
    #[inline(always)]
    fn read<'a>(message: *const Self) -> Result<(&'a Self, &'a [u8], &'a [u8]), Failure> {
        let given = match message.is_aligned() {
            true => Self::read_at_once(message),
            false => None,
        };
        let given = given.ok_or(Failure::new(Status::Invalid, "the message is null"))?;
        let data = bytes(given.data, given.length_bytes)?;
        let metadata = bytes(given.metadata, given.metadata_bytes)?;
        Ok((given, data, metadata))
    }

    /// The message alone, if it can be read.
    #[inline(always)]
    fn read_at_once<'a>(message: *const Self) -> Option<&'a Self> {
        // SAFETY: a message that is not null can be read, is aligned, was set, and stays as it is during the call, as the header
        // demands.
        unsafe { message.as_ref() }
    }

    /// The message with these. Made where it is sent, so that on the fast path it is not in memory.
    #[inline(always)]
    fn message<'a>(&self, data: &'a [u8], metadata: &'a [u8], share: Option<Share>) -> Message<'a> {
        Message {
            offset: self.offset,
            data,
            metadata,
            word: self.word,
            share,
            silent: self.silent != 0,
        }
    }

    #[cold]
    fn share(&self, counting: Counting) -> Result<Option<Share>, Failure> {
        match self.share.checked_sub(1) {
            None => Ok(None),
            Some(minus_one) => {
                (Share::from_minus_one(minus_one, counting).map(Some)).ok_or(Failure::new(
                    Status::Invalid,
                    "the share is larger than the accumulators of the slot count",
                ))
            }
        }
    }
}

/// Makes a ticket usable: finds the link to its interface, or connects, for which it blocks for `wait_ns` at most. What is sent to the target
/// goes by that terminus.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_target(
    terminus: *mut TerminusHandle,
    ticket: *const Ticket,
    wait_ns: i64,
    target: *mut *mut TargetHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the target", target)?;
        let ticket = ticket::read(ticket)?;
        make_beside!(terminus, place, (interface, terminus) => At {
            terminus: *terminus,
            target: interface.target(&ticket, wait_of(wait_ns)).map_err(hamlyn::ConnectError::from)?,
        })
    })
}

/// Gives a target another ticket to the same interface, without connecting. HAMLYN_INVALID if the ticket leads to another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_retarget(
    target: *mut TargetHandle,
    ticket: *const Ticket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let ticket = ticket::read(ticket)?;
        handle::with(target, |of| {
            each!(of, of => {
                let found = of.object.target.with_ticket(ticket);
                of.object.target = found.ok_or(Failure::new(
                    Status::Invalid,
                    "the ticket leads to another interface: open a target for it",
                ))?;
            });
            Ok(())
        })
    })
}

/// The link over which a target's messages go (hamlyn_link_peer, hamlyn_fence_link).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_target_link(
    target: *mut TargetHandle,
    link: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the link", link)?;
        handle::with(target, |of| {
            place.put(each!(of, of => of.object.target.link().to_bits()));
            Ok(())
        })
    })
}

fn sequence_place(sequence: *mut u64) -> Result<Option<Room<u64>>, Failure> {
    room_if_asked("the place for the sequence number", sequence)
}

fn put_sequence(place: Option<Room<u64>>, sent: SendHandle) {
    if let Some(place) = place {
        place.put(sent.sequence);
    }
}

/// Sends a message (h_send_msg). A short one waits in the work queue if the link has no room; a longer one is sent from where it lies, so the
/// call lasts until all of it is handed to the link, for `wait_ns` at most. With HAMLYN_POLL nothing is sent rather than waited for, and so
/// never a message that is longer than both a packet and the 128 bytes that the work queue holds. `sequence` is told its number,
/// for hamlyn_get_completion; null: nobody asks. Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_send_msg(
    target: *mut TargetHandle,
    message: *const OutgoingMessage,
    wait_ns: i64,
    sequence: *mut u64,
    error: *mut Error,
) -> Status {
    at_once(
        target.cast_const(),
        Arguments {
            others: (target, message, sequence),
            wait_ns,
            error,
        },
        move |of, error| {
            let of = of.alone(|of| of);
            let given = OutgoingMessage::read_at_once(message)?;
            // Most messages are whole, are announced, have no metadata, and their number is not asked for. One test of all takes the
            // fewest instructions.
            let unusual = given.share | given.metadata_bytes as u64 | u64::from(given.silent);
            if unusual | sequence.addr() as u64 != 0 {
                return None;
            }
            let data = bytes_at_once(given.data, given.length_bytes)?;
            let message = Message::new(data).at(given.offset).word(given.word);
            let at = &of.object;
            let mut interface = of.manager.session();
            let result = interface.send_msg(at.terminus, &at.target, &message, Wait::Poll);
            sent(error, result)
        },
        NO_ROOM,
        |(target, message, sequence), wait_ns, error| {
            send_msg(target, message, wait_ns, sequence, error)
        },
    )
}

#[cold]
#[inline(never)]
fn send_msg(
    target: *mut TargetHandle,
    message: *const OutgoingMessage,
    wait_ns: i64,
    sequence: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let (given, data, metadata) = OutgoingMessage::read(message)?;
        let sequence = sequence_place(sequence)?;
        handle::with(target, |of| {
            let sent = on!(of, (interface, at) => {
                let share = match given.share {
                    0 => None,
                    _ => given.share(at.target.ticket().counting)?,
                };
                let message = given.message(data, metadata, share);
                interface.send_msg(at.terminus, &at.target, &message, wait_of(wait_ns))?
            });
            put_sequence(sequence, sent);
            Ok(())
        })
    })
}

/// Sends `count` messages of an array in order, for less than one by one. Blocks as hamlyn_send_msg does. `sent` is told how many went; the
/// first that cannot be sent ends the call, and its error is returned. `sequence` is told the number of the last that went; null:
/// nobody asks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_send_many(
    target: *mut TargetHandle,
    messages: *const OutgoingMessage,
    count: usize,
    wait_ns: i64,
    sent: *mut usize,
    sequence: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", sent)?;
        let sequence = sequence_place(sequence)?;
        let length_bytes = count.checked_mul(size_of::<OutgoingMessage>());
        let length_bytes = length_bytes.filter(|&bytes| isize::try_from(bytes).is_ok());
        if length_bytes.is_none() || (count > 0 && (messages.is_null() || !messages.is_aligned())) {
            return Err(Failure::new(
                Status::Invalid,
                "the messages are null, or more than memory can hold",
            ));
        }
        handle::with(target, |of| {
            on!(of, (interface, at) => {
                let counting = at.target.ticket().counting;
                // The first that is none ends the row.
                let mut refused = None;
                let each = (0..count).map_while(|index| {
                    // SAFETY: there are so many messages, as the header demands.
                    let read = OutgoingMessage::read(unsafe { messages.add(index) });
                    let read = read.and_then(|(given, data, metadata)| {
                        Ok(given.message(data, metadata, given.share(counting)?))
                    });
                    read.map_err(|failure| refused = Some(failure)).ok()
                });
                let wait = wait_of(wait_ns);
                let row = interface.send_many(at.terminus, &at.target, each, wait);
                let (count, last, stopped_by) = match row {
                    Ok(row) => (row.count, row.last, row.stopped_by),
                    Err(error) => (0, None, Some(error)),
                };
                place.put(count);
                if let Some(last) = last {
                    put_sequence(sequence, last);
                }
                match (stopped_by, refused) {
                    (Some(error), _) => Err(error.into()),
                    (None, Some(failure)) => Err(failure),
                    (None, None) => Ok(()),
                }
            })
        })
    })
}

/// A part of a send-buffer area (hamlyn_bind_area).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Where in the area it begins.
    pub offset: u64,
    /// How many bytes it has.
    pub length_bytes: u64,
    /// Which area.
    pub tag: u16,
}

impl Piece {
    /// A piece of the caller's.
    pub(crate) fn read(piece: *const Self) -> Result<GatherPiece, Failure> {
        if piece.is_null() || !piece.is_aligned() {
            return Err(Failure::new(Status::Invalid, "the piece is null"));
        }
        // SAFETY: a piece that is not null can be read and was set, as the header demands.
        let given = unsafe { *piece };
        Ok(GatherPiece {
            tag: SendTag(given.tag),
            offset: given.offset,
            length_bytes: given.length_bytes,
        })
    }
}

/// Sends a message gathered from up to 1,024 pieces of send-buffer areas, packet by packet, as the link has room. Never blocks; allocates for
/// more than 8 pieces. If it is HAMLYN_TIMED_OUT, packets have been moved. The pieces must
/// stay as they are until hamlyn_get_completion says that the message is sent. The data of `message` are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_send_gather(
    target: *mut TargetHandle,
    message: *const OutgoingMessage,
    pieces: *const Piece,
    count: usize,
    sequence: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let (given, data, metadata) = OutgoingMessage::read(message)?;
        let sequence = sequence_place(sequence)?;
        if count > GATHER_PIECES_MAX {
            return Err(PostError::TooManyPieces { pieces: count }.into());
        }
        if count > 0 && (pieces.is_null() || !pieces.is_aligned()) {
            return Err(Failure::new(Status::Invalid, "the pieces are null"));
        }
        let no_piece = GatherPiece {
            tag: SendTag(0),
            offset: 0,
            length_bytes: 0,
        };
        let mut held = [no_piece; GATHER_PIECES_HELD];
        let mut many = Vec::new();
        let gathered = match held.get_mut(..count) {
            Some(held) => held,
            None => {
                many.resize(count, no_piece);
                &mut many[..]
            }
        };
        for (index, gathered) in gathered.iter_mut().enumerate() {
            *gathered = Piece::read(pieces.wrapping_add(index))?;
        }
        handle::with(target, |of| {
            let sent = on!(of, (interface, at) => {
                let share = given.share(at.target.ticket().counting)?;
                let message = given.message(data, metadata, share);
                interface.send_gather(at.terminus, &at.target, &message, gathered)?
            });
            put_sequence(sequence, sent);
            Ok(())
        })
    })
}

/// What became of a message that was sent.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// It waits: its buffers must stay as they are.
    MessagePending = 0,
    /// It was handed to the link whole: its buffers are free.
    MessageSent = 1,
    /// Its link was lost before all of it was handed over; its buffers are free.
    MessageFailed = 2,
}

/// Tells what became of a message of that number. Does not look at what has come: hamlyn_poll moves messages on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_completion(
    target: *mut TargetHandle,
    sequence: u64,
    completion: *mut Completion,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place: Room<Completion> = room("the place for the answer", completion)?;
        handle::with(target, |of| {
            let found = on!(of, (interface, at) => {
                let terminus = at.terminus;
                interface.completion(SendHandle { terminus, sequence })?
            });
            place.put(match found {
                Outcome::Pending => Completion::MessagePending,
                Outcome::Sent => Completion::MessageSent,
                Outcome::Failed => Completion::MessageFailed,
            });
            Ok(())
        })
    })
}

/// Stores bytes at `offset` of the target's place, which counts them under the entry of its ticket (hamlyn_stored_bytes); nothing comes back
/// (Split-C 2). The ticket must be one of a slot that counts stores. Blocks as hamlyn_send_msg does. Those of several packets
/// may land in any order; a fence tells when all is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_store(
    target: *mut TargetHandle,
    offset: u64,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        handle::with(target, |of| {
            Ok(on!(of, (interface, at) => {
                interface.store(at.terminus, &at.target, offset, data, wait_of(wait_ns))
            })?)
        })
    })
}

/// Closes a target. What was sent arrives all the same. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_target(
    target: *mut TargetHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(target).map(drop))
}

fn counting_of(counting_bits: u32) -> Result<Counting, Failure> {
    match counting_bits {
        0 | 32 => Ok(Counting::Bits32),
        64 => Ok(Counting::Bits64),
        _ => Err(Failure::new(
            Status::Invalid,
            "accumulators have 32 or 64 bits",
        )),
    }
}

/// How many packets a message takes on a link whose packets carry that much.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_packets_needed(
    data_bytes: u64,
    metadata_bytes: usize,
    payload_bytes: usize,
    packets: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the number", packets)?;
        if metadata_bytes > crate::entry::METADATA_BYTES || payload_bytes < PAYLOAD_BYTES_MIN {
            return Err(Failure::new(
                Status::Invalid,
                "a packet carries 64 bytes and more, and a message up to 60 bytes of metadata",
            ));
        }
        place.put(packets_needed(data_bytes, metadata_bytes, payload_bytes));
        Ok(())
    })
}

/// What every link carries in a packet.
const PAYLOAD_BYTES_MIN: usize = 64;

/// Divides a share of a count among several senders (Hamlyn 2.5): part i is at least `needed[i]`, the packets that its sender needs. 0 for
/// `share`: the whole count. All of them together are the share, and the receiver is told when all that they send is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_divide_share(
    share: u64,
    counting_bits: u32,
    needed: *const u64,
    parts: *mut u64,
    count: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let counting = counting_of(counting_bits)?;
        let invalid = |text| Failure::new(Status::Invalid, text);
        if count > isize::MAX as usize / size_of::<u64>() {
            return Err(invalid("there are more parts than memory can hold"));
        }
        if count > 0 && (needed.is_null() || parts.is_null()) {
            return Err(invalid("the array of needs or of parts is null"));
        }
        if !needed.is_aligned() || !parts.is_aligned() {
            return Err(invalid("the array of needs or of parts is not aligned"));
        }
        let share = match share.checked_sub(1) {
            None => Share::whole(counting),
            Some(minus_one) => Share::from_minus_one(minus_one, counting)
                .ok_or(invalid("the share is larger than the accumulators count"))?,
        };
        let needed = match count {
            0 => &[],
            // SAFETY: it is not null, aligned, and there are so many, as the header demands.
            _ => unsafe { std::slice::from_raw_parts(needed, count) },
        };
        let mut given = 0;
        let divided = share.divide(needed, |part| {
            // The whole count of 64 bits, as it is told to hamlyn_send_msg.
            let value = part.minus_one().wrapping_add(1);
            // SAFETY: there is room for as many parts as there are needs, as the header demands; each gives one.
            unsafe { parts.add(given).write(value) };
            given += 1;
        });
        divided.map_err(|error| Failure::of(Status::Invalid, &error))
    })
}
