//! One-sided operations (decision 37; `Split-C 2`): this program reads, puts and changes memory of a slot whose owner grants it, and the
//! owner's program does nothing.

use std::ffi::c_void;

use hamlyn::engine::limits::FAST_INDEX;
use hamlyn::one_sided::{
    Atomic, Change, CompletionCounter, Initiator, InitiatorOptions, Operation, OperationError,
    Strided as StridedPieces, Width,
};

use crate::boundary::{Room, bytes, bytes_mut, call, room, wait_of};
use crate::handle::{self, kind};
use crate::lower::{Lower, make_lower, on};
use crate::manager::{ManagerHandle, each};
use crate::status::{Error, Failure, Status};
use crate::ticket::{self, Ticket};

/// Adds; wraps.
pub const CHANGE_ADD: u32 = 0;
/// Bitwise and.
pub const CHANGE_AND: u32 = 1;
/// Bitwise or.
pub const CHANGE_OR: u32 = 2;
/// Bitwise exclusive or.
pub const CHANGE_XOR: u32 = 3;
/// Stores the operand.
pub const CHANGE_SWAP: u32 = 4;
/// Stores the operand if the word is what is expected.
pub const CHANGE_COMPARE_SWAP: u32 = 5;
/// The lesser, of numbers with sign.
pub const CHANGE_MIN: u32 = 6;
/// The greater, of numbers with sign.
pub const CHANGE_MAX: u32 = 7;
/// Adds floating-point numbers: the operand has the bits of a float or double.
pub const CHANGE_FLOAT_ADD: u32 = 8;

/// An atomic change of a word.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicChange {
    /// HAMLYN_CHANGE_ADD and so on.
    pub change: u32,
    /// Bits of the word: 64, or 32; 0: 64.
    pub bits: u32,
    /// With what; of 32 bits the lower half.
    pub operand: u64,
    /// What HAMLYN_CHANGE_COMPARE_SWAP expects.
    pub expected: u64,
}

impl AtomicChange {
    /// A change of the caller's.
    pub(crate) fn read(change: *const Self) -> Result<Atomic, Failure> {
        let invalid = |text| Failure::new(Status::Invalid, text);
        if change.is_null() || !change.is_aligned() {
            return Err(invalid("the change is null"));
        }
        // SAFETY: a change that is not null can be read and was set, as the header demands.
        let given = unsafe { *change };
        let kinds = Change::ALL.into_iter();
        let found = (kinds.into_iter()).find(|&kind| u32::from(kind as u8) == given.change);
        let width = match given.bits {
            0 | 64 => Width::Bits64,
            32 => Width::Bits32,
            _ => return Err(invalid("words that are changed have 32 or 64 bits")),
        };
        Ok(Atomic {
            change: found.ok_or(invalid(
                "the change is none of HAMLYN_CHANGE_ADD to HAMLYN_CHANGE_FLOAT_ADD",
            ))?,
            width,
            operand: given.operand,
            expected: given.expected,
        })
    }
}

/// Pieces of memory at equal distances, of one length each.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strided {
    /// Where the first begins, in the ticket's place.
    pub offset: u64,
    /// How far the beginning of each is from that of the one before.
    pub stride_bytes: u64,
    /// How long each is.
    pub piece_bytes: u64,
    /// How many there are.
    pub pieces: u64,
}

impl Strided {
    fn read(strided: *const Self) -> Result<StridedPieces, Failure> {
        if strided.is_null() || !strided.is_aligned() {
            return Err(Failure::new(Status::Invalid, "the pieces are null"));
        }
        // SAFETY: what is not null can be read and was set, as the header demands.
        let given = unsafe { *strided };
        Ok(StridedPieces {
            offset: given.offset,
            stride_bytes: given.stride_bytes,
            piece_bytes: given.piece_bytes,
            pieces: given.pieces,
        })
    }
}

/// Offsets of the caller's.
fn offsets<'a>(offsets: *const u64, count: usize) -> Result<&'a [u64], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if offsets.is_null() || !offsets.is_aligned() || count > isize::MAX as usize / size_of::<u64>()
    {
        return Err(Failure::new(
            Status::Invalid,
            "the offsets are null, or more than memory can hold",
        ));
    }
    // SAFETY: there are so many, which nobody writes meanwhile, as the header demands.
    Ok(unsafe { std::slice::from_raw_parts(offsets, count) })
}

/// Access to the memory that a ticket names. Up to 64 operations may be outstanding.
#[derive(Debug)]
pub struct InitiatorHandle {
    _of_the_library: [u8; 0],
}

kind!(InitiatorHandle, Lower<Initiator>, 21, "initiator");

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        let status = match &error {
            // Programs that poll meet these often.
            OperationError::WouldBlock => {
                return Self::timed_out(
                    "no room at present for one more operation: try again, or wait longer",
                );
            }
            OperationError::TimedOut => {
                return Self::timed_out("the target has not answered yet: wait longer");
            }
            OperationError::Refused(_) | OperationError::RefusedOtherwise(_) => Status::Refused,
            OperationError::TooMany => Status::Limit,
            OperationError::Flooded => Status::Malformed,
            OperationError::Abandoned => Status::BadHandle,
            OperationError::PeerLost(_) => Status::PeerLost,
            OperationError::Host(host) => return host.clone().into(),
            _ => Status::Invalid,
        };
        Self::of(status, &error)
    }
}

/// Opens access to what a ticket for fast mode names (hamlyn_fast_ticket). `landing_bytes` of memory are for what is read, enough for all reads
/// that are outstanding at a time; 0: 64 KiB. If this manager has attached the place (hamlyn_attach_region), operations are made in its
/// memory. Connects if need be, for which it blocks for `wait_ns` at most. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_initiator(
    manager: *mut ManagerHandle,
    ticket: *const Ticket,
    landing_bytes: u64,
    wait_ns: i64,
    initiator: *mut *mut InitiatorHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the initiator", initiator)?;
        let ticket = ticket::read(ticket)?;
        if ticket.metadata_index != FAST_INDEX {
            return Err(Failure::new(
                Status::Invalid,
                "the ticket names a metadata entry: ask for one that hamlyn_fast_ticket made",
            ));
        }
        let mut options = InitiatorOptions::default();
        if landing_bytes != 0 {
            options.landing_bytes = landing_bytes;
        }
        make_lower!(manager, place, interface => {
            let target = interface.target(&ticket, wait_of(wait_ns));
            let target = target.map_err(hamlyn::ConnectError::from)?;
            interface.open_initiator(target, options)?
        })
    })
}

/// Begins an operation, and tells its number.
macro_rules! begin {
    ($handle:ident, $operation:ident, $error:ident, ($interface:ident, $initiator:ident) => $begin:expr) => {
        call($error, || {
            let place: Room<u32> = room("the place for the operation", $operation)?;
            handle::with($handle, |of| {
                let begun: Operation = on!(of, ($interface, $initiator) => $begin)?;
                place.put(begun.to_bits());
                Ok(())
            })
        })
    };
}

/// Begins to read bytes at `offset` of the ticket's place into the landing memory (hamlyn_landed). Blocks for `wait_ns` at most while there is no
/// room. `operation` is told its number, for hamlyn_finish.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_begin_read(
    initiator: *mut InitiatorHandle,
    offset: u64,
    landing_offset: u64,
    length_bytes: u64,
    wait_ns: i64,
    operation: *mut u32,
    error: *mut Error,
) -> Status {
    begin!(initiator, operation, error, (interface, initiator) => {
        interface.begin_read(initiator, offset, landing_offset, length_bytes, wait_of(wait_ns))
    })
}

/// Begins to put bytes to `offset` of the ticket's place. They were copied when this returns, and are in their place when the operation is
/// complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_begin_put(
    initiator: *mut InitiatorHandle,
    offset: u64,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    operation: *mut u32,
    error: *mut Error,
) -> Status {
    begin!(initiator, operation, error, (interface, initiator) => {
        let data = bytes(data, length_bytes)?;
        interface.begin_put(initiator, offset, data, wait_of(wait_ns))
    })
}

/// Begins to change the word at `offset` of the ticket's place, a multiple of its width in the owner's area. hamlyn_finish_word tells what it
/// was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_begin_atomic(
    initiator: *mut InitiatorHandle,
    offset: u64,
    change: *const AtomicChange,
    wait_ns: i64,
    operation: *mut u32,
    error: *mut Error,
) -> Status {
    begin!(initiator, operation, error, (interface, initiator) => {
        let atomic = AtomicChange::read(change)?;
        interface.begin_atomic(initiator, offset, atomic, wait_of(wait_ns))
    })
}

/// Begins to read the eight bytes at `offset` of the ticket's place, for hamlyn_finish_word.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_begin_read_word(
    initiator: *mut InitiatorHandle,
    offset: u64,
    wait_ns: i64,
    operation: *mut u32,
    error: *mut Error,
) -> Status {
    begin!(initiator, operation, error, (interface, initiator) => {
        interface.begin_read_word(initiator, offset, wait_of(wait_ns))
    })
}

/// Begins to read pieces at equal distances, one behind the other into the landing memory. With HAMLYN_POLL no more than 64 packets can be
/// asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_begin_read_strided(
    initiator: *mut InitiatorHandle,
    pieces: *const Strided,
    landing_offset: u64,
    wait_ns: i64,
    operation: *mut u32,
    error: *mut Error,
) -> Status {
    begin!(initiator, operation, error, (interface, initiator) => {
        let pieces = Strided::read(pieces)?;
        interface.begin_read_strided(initiator, &pieces, landing_offset, wait_of(wait_ns))
    })
}

/// Begins to put bytes to pieces at equal distances, as many bytes as all of them have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_begin_put_strided(
    initiator: *mut InitiatorHandle,
    pieces: *const Strided,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    operation: *mut u32,
    error: *mut Error,
) -> Status {
    begin!(initiator, operation, error, (interface, initiator) => {
        let (pieces, data) = (Strided::read(pieces)?, bytes(data, length_bytes)?);
        interface.begin_put_strided(initiator, &pieces, data, wait_of(wait_ns))
    })
}

/// Begins to read pieces of `piece_bytes` at these offsets, one behind the other into the landing memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_begin_read_indexed(
    initiator: *mut InitiatorHandle,
    piece_offsets: *const u64,
    pieces: usize,
    piece_bytes: u64,
    landing_offset: u64,
    wait_ns: i64,
    operation: *mut u32,
    error: *mut Error,
) -> Status {
    begin!(initiator, operation, error, (interface, initiator) => {
        let at = offsets(piece_offsets, pieces)?;
        interface.begin_read_indexed(initiator, at, piece_bytes, landing_offset, wait_of(wait_ns))
    })
}

/// Begins to put bytes, in pieces of `piece_bytes`, to these offsets; where pieces overlap, either is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_begin_put_indexed(
    initiator: *mut InitiatorHandle,
    piece_offsets: *const u64,
    pieces: usize,
    piece_bytes: u64,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    operation: *mut u32,
    error: *mut Error,
) -> Status {
    begin!(initiator, operation, error, (interface, initiator) => {
        let (at, data) = (offsets(piece_offsets, pieces)?, bytes(data, length_bytes)?);
        interface.begin_put_indexed(initiator, at, piece_bytes, data, wait_of(wait_ns))
    })
}

/// Waits until an operation is complete, for `wait_ns` at most, and tells how it went. Its number is free then; after HAMLYN_TIMED_OUT it is
/// still outstanding. HAMLYN_REFUSED: the target did not allow it, and it had no effect. HAMLYN_PEER_LOST: it is not known whether
/// it had.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_finish(
    initiator: *mut InitiatorHandle,
    operation: u32,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(initiator, |of| {
            let operation = Operation::from_bits(operation);
            Ok(on!(of, (interface, initiator) => {
                interface.finish(initiator, operation, wait_of(wait_ns))
            })?)
        })
    })
}

/// The same for an operation with a word: what it was before the change, or what was read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_finish_word(
    initiator: *mut InitiatorHandle,
    operation: u32,
    wait_ns: i64,
    value: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the word", value)?;
        handle::with(initiator, |of| {
            let operation = Operation::from_bits(operation);
            place.put(on!(of, (interface, initiator) => {
                interface.finish_word(initiator, operation, wait_of(wait_ns))
            })?);
            Ok(())
        })
    })
}

/// Waits until all operations that are outstanding are complete. Of several that failed, one is told. Values of words are not kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_finish_all(
    initiator: *mut InitiatorHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(initiator, |of| {
            Ok(on!(of, (interface, initiator) => {
                interface.finish_all(initiator, wait_of(wait_ns))
            })?)
        })
    })
}

/// How many operations are outstanding.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_outstanding(
    initiator: *mut InitiatorHandle,
    operations: *mut usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the number", operations)?;
        handle::with(initiator, |of| {
            place.put(on!(of, (interface, initiator) => interface.outstanding(initiator)));
            Ok(())
        })
    })
}

/// Copies out of the landing memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_landed(
    initiator: *mut InitiatorHandle,
    landing_offset: u64,
    into: *mut c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let into = bytes_mut(into, length_bytes)?;
        handle::with(initiator, |of| {
            Ok(each!(of, of => of.object.landed(landing_offset, into))?)
        })
    })
}

/// Reads bytes at `offset` of the ticket's place to where the program wants them, as many as the ticket has, and waits for them. What does
/// not come in attached memory comes in rounds of 64 KiB. After an error a part of the bytes may be there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_read(
    initiator: *mut InitiatorHandle,
    offset: u64,
    into: *mut c_void,
    length_bytes: usize,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let into = bytes_mut(into, length_bytes)?;
        handle::with(initiator, |of| {
            Ok(on!(of, (interface, initiator) => {
                interface.read(initiator, offset, into, wait_of(wait_ns))
            })?)
        })
    })
}

/// Puts bytes to `offset` of the ticket's place, and waits until they are there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_put(
    initiator: *mut InitiatorHandle,
    offset: u64,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        handle::with(initiator, |of| {
            Ok(on!(of, (interface, initiator) => {
                interface.put(initiator, offset, data, wait_of(wait_ns))
            })?)
        })
    })
}

/// Reads the eight bytes at `offset` of the ticket's place, and waits for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_read_word(
    initiator: *mut InitiatorHandle,
    offset: u64,
    wait_ns: i64,
    value: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the word", value)?;
        handle::with(initiator, |of| {
            place.put(on!(of, (interface, initiator) => {
                interface.read_word(initiator, offset, wait_of(wait_ns))
            })?);
            Ok(())
        })
    })
}

/// Changes the word at `offset` of the ticket's place, and tells what it was. If the time was too short, the change may be made later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_change(
    initiator: *mut InitiatorHandle,
    offset: u64,
    change: *const AtomicChange,
    wait_ns: i64,
    before: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the word", before)?;
        let atomic = AtomicChange::read(change)?;
        handle::with(initiator, |of| {
            let was = on!(of, (interface, initiator) => {
                let wait = wait_of(wait_ns);
                if atomic.width == Width::Bits64 && atomic.change != Change::CompareSwap {
                    interface.change(initiator, offset, atomic.change, atomic.operand, wait)?
                } else {
                    let operation = interface.begin_atomic(initiator, offset, atomic, wait)?;
                    let finished = interface.finish_word(initiator, operation, wait);
                    if finished == Err(OperationError::TimedOut) {
                        interface.count_completion(initiator, operation, &CompletionCounter::new())?;
                    }
                    finished?
                }
            });
            place.put(was);
            Ok(())
        })
    })
}

/// Closes an initiator. Answers that are under way reach nothing; whether their operations were carried out is not known. Null is
/// allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_initiator(
    initiator: *mut InitiatorHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(initiator).map(drop))
}
