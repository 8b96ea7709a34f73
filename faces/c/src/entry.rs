//! Metadata entries (`Hamlyn 2.4, 2.7`): what a slot lets in, message by message, and what came with each.
//!
//! Changes are made while no packet is being received, whichever thread receives.

use hamlyn::Slot;
use hamlyn::engine::key::Key;
use hamlyn::engine::limits::USER_METADATA_BYTES;
use hamlyn::engine::metadata::{MetadataEntry, Permission};

use crate::boundary::{call, room};
use crate::handle;
use crate::lower::{on, with_interface};
use crate::manager::{ManagerHandle, each};
use crate::slot::SlotHandle;
use crate::status::{Error, Failure, Status};

/// Bytes of metadata that a message may carry.
pub const METADATA_BYTES: usize = 60;
const _: () = assert!(METADATA_BYTES == USER_METADATA_BYTES);

/// What an entry lets in, and what came there last.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Not 0 while a one-shot entry waits for its message.
    pub armed: u32,
    /// Bytes of metadata that the last message with metadata brought.
    pub metadata_bytes: u32,
    /// Those bytes; of those after them nothing is said.
    pub metadata: [u8; METADATA_BYTES],
    /// Sum of what has come of a message; 0 when nothing or all of it has.
    pub accumulator: u64,
    /// What hamlyn_set_entry_class has set.
    pub receive_class: u64,
    /// The key that packets must carry in the paranoid modes.
    pub key: u64,
    /// The first byte that may be touched, as an offset in the slot.
    pub low: u64,
    /// The first byte above those that may be touched.
    pub high: u64,
}

/// The entry of a slot of that index.
fn entry_of(slot: &Slot, index: u16) -> Result<&MetadataEntry, Failure> {
    let entries = slot.metadata();
    (entries.filter(|entries| usize::from(index) < entries.len()))
        .and_then(|entries| entries.entry(index))
        .ok_or_else(|| {
            Failure::of(
                Status::Invalid,
                &format_args!(
                    "the slot has {} metadata entries, none of index {index}: open it with more",
                    slot.metadata().map_or(0, |entries| entries.len())
                ),
            )
        })
}

/// Changes an entry between two packets.
fn change(
    slot: *mut SlotHandle,
    index: u16,
    change: impl FnOnce(&MetadataEntry),
) -> Result<(), Failure> {
    handle::with(slot, |of| {
        on!(of, (interface, slot) => {
            let entry = entry_of(slot, index)?;
            interface.between_packets(|| change(entry));
        });
        Ok(())
    })
}

/// A key of 64 random bits, for hamlyn_permit_entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_new_key(
    manager: *mut ManagerHandle,
    key: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the key", key)?;
        let key = with_interface!(manager, interface => Ok(interface.new_key()?))?;
        place.put(key.to_bits());
        Ok(())
    })
}

/// Sets what an entry of a paranoid slot lets in: messages with that key, to the bytes of the slot from `low` to below `high`. A packet that
/// comes meanwhile is judged by the old or by the new permission.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_permit_entry(
    slot: *mut SlotHandle,
    entry: u16,
    key: u64,
    low: u64,
    high: u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let key = Key::from_bits(key);
        change(slot, entry, |entry| {
            entry.permit(Permission { key, low, high });
        })
    })
}

/// Lets in one more message, in one-shot mode; permit it first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_arm_entry(
    slot: *mut SlotHandle,
    entry: u16,
    error: *mut Error,
) -> Status {
    call(error, || change(slot, entry, MetadataEntry::arm))
}

/// Lets in nothing more, in one-shot mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_disarm_entry(
    slot: *mut SlotHandle,
    entry: u16,
    error: *mut Error,
) -> Status {
    call(error, || change(slot, entry, MetadataEntry::disarm))
}

/// Forgets a message that came only in part, because its sender died for example.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_reset_entry(
    slot: *mut SlotHandle,
    entry: u16,
    error: *mut Error,
) -> Status {
    call(error, || {
        change(slot, entry, MetadataEntry::reset_accumulator)
    })
}

/// Sets what notifications of an entry's messages say in `word`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_set_entry_class(
    slot: *mut SlotHandle,
    entry: u16,
    receive_class: u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        change(slot, entry, |entry| entry.set_receive_class(receive_class))
    })
}

/// Tells what an entry lets in, and what came there last. Read it after the notification of its message, and before it is armed again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_entry(
    slot: *mut SlotHandle,
    entry: u16,
    state: *mut Entry,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the entry", state)?;
        handle::with(slot, |of| {
            let found = each!(of, of => {
                let entry = entry_of(&of.object, entry)?;
                let mut metadata = [0; METADATA_BYTES];
                let metadata_bytes = entry.metadata(&mut metadata) as u32;
                // This program alone changes it, and not in this moment.
                let permission = entry.permission();
                Entry {
                    armed: entry.is_armed().into(),
                    metadata_bytes,
                    metadata,
                    accumulator: entry.counted(),
                    receive_class: entry.receive_class(),
                    key: permission.map_or(0, |permission| permission.key.to_bits()),
                    low: permission.map_or(0, |permission| permission.low),
                    high: permission.map_or(0, |permission| permission.high),
                }
            });
            place.put(found);
            Ok(())
        })
    })
}

/// How many bytes were stored under an entry of a slot that counts stores. When the count has reached the sum of all that a source
/// has stored, all of it is in its place. The source says how many bytes a store has, so a count is as good as its word.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_stored_bytes(
    slot: *mut SlotHandle,
    entry: u16,
    bytes: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", bytes)?;
        handle::with(slot, |of| {
            let counted = each!(of, of => {
                entry_of(&of.object, entry)?;
                of.object.stored_bytes(entry)
            });
            place.put(counted.unwrap_or_default());
            Ok(())
        })
    })
}
