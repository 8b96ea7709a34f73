//! Why packets are refused: the numbers of the reasons, and how often each occurred.

use std::ffi::c_char;

use hamlyn::engine::refusal::Refusal as Reason;

use crate::boundary::{TextRoom, call, room};
use crate::lower::with_interface;
use crate::manager::ManagerHandle;
use crate::slot::reason_of;
use crate::status::{Error, Status};

/// Why a packet was refused. Later versions of the library add reasons at the end.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The host has not set up the interface yet (Hamlyn 2.8).
    RefusedNotSetUp = 0,
    /// The host's periodic handshake stopped (Hamlyn 2.8).
    RefusedHandshakeLapsed = 1,
    /// No slot of that number was ever opened.
    RefusedNoSuchSlot = 2,
    /// The slot was closed, perhaps opened anew under another generation.
    RefusedSlotClosed = 3,
    /// The slot was revoked.
    RefusedSlotRevoked = 4,
    /// The key is not the slot's.
    RefusedBadKey = 5,
    /// The data would not lie within the slot.
    RefusedOutOfBounds = 6,
    /// The metadata index names no entry of the slot.
    RefusedNoMetadataEntry = 7,
    /// A fast-mode packet for a paranoid slot, which needs an entry.
    RefusedFastToParanoid = 8,
    /// The data would not lie within the entry's limits.
    RefusedOutOfLimits = 9,
    /// The key is not the entry's.
    RefusedBadEntryKey = 10,
    /// The one-shot entry has had its message.
    RefusedEntrySpent = 11,
    /// The slot does not grant this kind of access.
    RefusedNoRight = 12,
    /// A kind of packet that this version does not know.
    RefusedUnknownKind = 13,
    /// A flag that this version does not know.
    RefusedUnknownFlag = 14,
    /// More than 60 bytes of metadata, or metadata beside fast mode's word.
    RefusedBadMetadata = 15,
    /// The place is in the application's hands.
    RefusedPlaceInUse = 16,
    /// The packet says that its data were placed, but it does not lie in a region that its sender may write.
    RefusedNotGranted = 17,
    /// A request whose data or metadata are not those of its kind.
    RefusedBadRequest = 18,
    /// An atomic operation that this version does not know.
    RefusedNoSuchOperation = 19,
    /// An atomic operation on a word that is not at a multiple of its width.
    RefusedMisaligned = 20,
    /// More requests of one link than are answered at a time.
    RefusedTooManyRequests = 21,
    /// No port of that name is open.
    RefusedPortClosed = 22,
    /// The port is of another group than the message.
    RefusedWrongGroup = 23,
    /// The port has no handler of that number.
    RefusedNoSuchHandler = 24,
    /// The port is parked: its owner keeps no memory ready for it.
    RefusedNotResident = 25,
    /// The messages that wait at the port, together or those of this sender, leave no room.
    RefusedQueueFull = 26,
}

// The numbers are those of the library.
const _: () = assert!(Refusal::RefusedNotSetUp as u32 == Reason::NotSetUp as u32);
const _: () = assert!(Refusal::RefusedHandshakeLapsed as u32 == Reason::HandshakeLapsed as u32);
const _: () = assert!(Refusal::RefusedNoSuchSlot as u32 == Reason::NoSuchSlot as u32);
const _: () = assert!(Refusal::RefusedSlotClosed as u32 == Reason::SlotClosed as u32);
const _: () = assert!(Refusal::RefusedSlotRevoked as u32 == Reason::SlotRevoked as u32);
const _: () = assert!(Refusal::RefusedBadKey as u32 == Reason::BadKey as u32);
const _: () = assert!(Refusal::RefusedOutOfBounds as u32 == Reason::OutOfBounds as u32);
const _: () = assert!(Refusal::RefusedNoMetadataEntry as u32 == Reason::NoMetadataEntry as u32);
const _: () = assert!(Refusal::RefusedFastToParanoid as u32 == Reason::FastToParanoid as u32);
const _: () = assert!(Refusal::RefusedOutOfLimits as u32 == Reason::OutOfLimits as u32);
const _: () = assert!(Refusal::RefusedBadEntryKey as u32 == Reason::BadEntryKey as u32);
const _: () = assert!(Refusal::RefusedEntrySpent as u32 == Reason::EntrySpent as u32);
const _: () = assert!(Refusal::RefusedNoRight as u32 == Reason::NoRight as u32);
const _: () = assert!(Refusal::RefusedUnknownKind as u32 == Reason::UnknownKind as u32);
const _: () = assert!(Refusal::RefusedUnknownFlag as u32 == Reason::UnknownFlag as u32);
const _: () = assert!(Refusal::RefusedBadMetadata as u32 == Reason::BadMetadata as u32);
const _: () = assert!(Refusal::RefusedPlaceInUse as u32 == Reason::PlaceInUse as u32);
const _: () = assert!(Refusal::RefusedNotGranted as u32 == Reason::NotGranted as u32);
const _: () = assert!(Refusal::RefusedBadRequest as u32 == Reason::BadRequest as u32);
const _: () = assert!(Refusal::RefusedNoSuchOperation as u32 == Reason::NoSuchOperation as u32);
const _: () = assert!(Refusal::RefusedMisaligned as u32 == Reason::Misaligned as u32);
const _: () = assert!(Refusal::RefusedTooManyRequests as u32 == Reason::TooManyRequests as u32);
const _: () = assert!(Refusal::RefusedPortClosed as u32 == Reason::PortClosed as u32);
const _: () = assert!(Refusal::RefusedWrongGroup as u32 == Reason::WrongGroup as u32);
const _: () = assert!(Refusal::RefusedNoSuchHandler as u32 == Reason::NoSuchHandler as u32);
const _: () = assert!(Refusal::RefusedNotResident as u32 == Reason::NotResident as u32);
const _: () = assert!(Refusal::RefusedQueueFull as u32 == Reason::QueueFull as u32);
const _: () = assert!(Reason::ALL.len() == 27);

/// How many packets this manager's interface has refused for that reason, a number of hamlyn_refusal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_refusals(
    manager: *mut ManagerHandle,
    reason: u32,
    count: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", count)?;
        let reason = reason_of(reason)?;
        let refusals = with_interface!(manager, interface => Ok(interface.refusals()))?;
        place.put(refusals.count(reason));
        Ok(())
    })
}

/// Says for people what a reason is. HAMLYN_NOT_FOUND if there is no such reason.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_refusal_text(
    reason: u32,
    text: *mut c_char,
    text_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let text = TextRoom::of(text, text_bytes)?;
        text.put(&reason_of(reason)?);
        Ok(())
    })
}
