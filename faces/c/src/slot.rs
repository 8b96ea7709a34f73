//! Slots (`Hamlyn 2.2`): places in this program's memory for messages of others, named, bounded and guarded by a key. Tickets to them.

use hamlyn::engine::counting::Counting;
use hamlyn::engine::refusal::Refusal as Reason;
use hamlyn::engine::slot::{Mode, QueueId, Rights, SlotError};
use hamlyn::ticket::OutsideTicket;
use hamlyn::{NewSlot, Slot};

use crate::area::AreaHandle;
use crate::boundary::{call, read_or_default, room};
use crate::handle::{self, kind};
use crate::handover;
use crate::lower::{Lower, make_lower, on, with_interface};
use crate::manager::{ManagerHandle, each};
use crate::queue::QueueHandle;
use crate::status::{Error, Failure, Status, of_slot};
use crate::ticket::{self, Ticket};

/// Holders of the key may send into the slot.
pub const RIGHT_WRITE: u32 = 1;
/// They may read it (hamlyn_begin_read).
pub const RIGHT_READ: u32 = 2;
/// They may change words of it (hamlyn_begin_atomic), and so learn what they were.
pub const RIGHT_ATOMIC: u32 = 4;
/// They may do nothing: packets are checked and discarded.
pub const RIGHT_NONE: u32 = 8;

/// The slot's bounds and key alone guard it. The default.
pub const MODE_NORMAL: u32 = 0;
/// Besides, each metadata entry has limits, and a key instead of the slot's.
pub const MODE_PARANOID: u32 = 1;
/// As paranoid, and each entry lets in one message until it is armed again.
pub const MODE_ONE_SHOT: u32 = 2;

/// What a slot is opened with; 0 in a field means its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SlotOptions {
    /// Where in the area the slot begins.
    pub offset: u64,
    /// How many bytes it covers. Default: to the end of the area.
    pub length_bytes: u64,
    /// Where arrivals are announced; null: nowhere.
    pub queue: *mut QueueHandle,
    /// Sums of HAMLYN_RIGHT_WRITE, the default, HAMLYN_RIGHT_READ and HAMLYN_RIGHT_ATOMIC; or HAMLYN_RIGHT_NONE.
    pub rights: u32,
    /// HAMLYN_MODE_NORMAL, the default, HAMLYN_MODE_PARANOID or HAMLYN_MODE_ONE_SHOT.
    pub mode: u32,
    /// Metadata entries, up to 65,535; 0: messages in fast mode and silent ones only.
    pub entries: u32,
    /// Bits of the packet accumulators: 32, the default, or 64.
    pub counting_bits: u32,
    /// Not 0: the slot counts what is stored into it (hamlyn_store), apart for each entry. It has no queue, and counts 64 bits.
    pub counts_stores: u32,
}

impl SlotOptions {
    fn invalid(text: &'static str) -> Failure {
        Failure::new(Status::Invalid, text)
    }

    fn read(&self, mut new: NewSlot, queue: Option<QueueId>) -> Result<NewSlot, Failure> {
        let area_bytes = new.range.end;
        let end = match self.length_bytes {
            0 => area_bytes.max(self.offset),
            length_bytes => (self.offset.checked_add(length_bytes))
                .ok_or(Self::invalid("the slot ends beyond all memory"))?,
        };
        new.range = self.offset..end;
        new.rights = match self.rights {
            0 => Rights::WRITE,
            RIGHT_NONE => Rights::NONE,
            rights => (u8::try_from(rights).ok().and_then(Rights::from_bits)).ok_or(
                Self::invalid("the rights are no sum of HAMLYN_RIGHT_WRITE, _READ and _ATOMIC"),
            )?,
        };
        new.mode = match self.mode {
            MODE_NORMAL => Mode::Normal,
            MODE_PARANOID => Mode::Paranoid,
            MODE_ONE_SHOT => Mode::ParanoidOneShot,
            _ => {
                return Err(Self::invalid(
                    "the mode is none of HAMLYN_MODE_NORMAL, _PARANOID and _ONE_SHOT",
                ));
            }
        };
        new.counting = match self.counting_bits {
            0 | 32 => Counting::Bits32,
            64 => Counting::Bits64,
            _ => return Err(Self::invalid("accumulators have 32 or 64 bits")),
        };
        new.entries = self.entries as usize;
        new.queue = queue;
        if self.counts_stores == 0 {
            return Ok(new);
        }
        match (self.entries, queue) {
            (0, _) => Err(Self::invalid(
                "a slot that counts stores needs entries, one for each source",
            )),
            (_, Some(_)) => Err(Self::invalid(
                "a slot that counts stores has no queue: its counts say what has come",
            )),
            (entries, None) => Ok(new.counting_stores(entries as usize)),
        }
    }
}

/// A slot of this program.
#[derive(Debug)]
pub struct SlotHandle {
    _of_the_library: [u8; 0],
}

kind!(SlotHandle, Lower<Slot>, 18, "slot");

impl From<SlotError> for Failure {
    fn from(error: SlotError) -> Self {
        Self::of(of_slot(&error), &error)
    }
}

impl From<OutsideTicket> for Failure {
    fn from(error: OutsideTicket) -> Self {
        Self::of(Status::Invalid, &error)
    }
}

fn queue_of(queue: *mut QueueHandle) -> Result<(QueueId, hamlyn::Destination), Failure> {
    handle::with(queue, |of| {
        Ok((each!(of, of => of.object.id()), of.identity()))
    })
}

/// Opens a slot over an area, or a part of it, with a fresh key. Null for `options`: the whole area, to be written, in normal mode,
/// unannounced. An area that changes hands (hamlyn_allocate_handover) becomes the slot's own: HAMLYN_HELD if it was another's. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_slot(
    manager: *mut ManagerHandle,
    area: *mut AreaHandle,
    options: *const SlotOptions,
    slot: *mut *mut SlotHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the slot", slot)?;
        let new = handle::with(area, |area| Ok(NewSlot::new(area)))?;
        let mut new = match read_or_default(options) {
            None => new,
            Some(options) if options.queue.is_null() => options.read(new, None)?,
            Some(options) => {
                let (queue, of) = queue_of(options.queue)?;
                if with_interface!(manager, interface => Ok(interface.identity()))? != of {
                    return Err(SlotOptions::invalid(
                        "the queue is another manager's: open one with this manager",
                    ));
                }
                options.read(new, Some(queue))?
            }
        };
        new.area = handle::with(area, handover::for_a_slot)?;
        make_lower!(manager, place, interface => interface.open_slot(new)?)
    })
}

/// The number of a slot in notifications.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_slot_number(
    slot: *mut SlotHandle,
    number: *mut u32,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the number", number)?;
        handle::with(slot, |of| {
            place.put(each!(of, of => of.object.name().to_bits()));
            Ok(())
        })
    })
}

/// A ticket for messages in fast mode, and for one-sided operations, to a part of the slot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_fast_ticket(
    slot: *mut SlotHandle,
    offset: u64,
    length_bytes: u64,
    ticket: *mut Ticket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the ticket", ticket)?;
        handle::with(slot, |of| {
            let made = each!(of, of => of.object.fast_ticket(offset, length_bytes))?;
            ticket::put(place, &made);
            Ok(())
        })
    })
}

/// A ticket for messages to a metadata entry, and a part of the slot. In the paranoid modes it carries the entry's key, and lies within the
/// entry's limits: permit the entry first (hamlyn_permit_entry).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_entry_ticket(
    slot: *mut SlotHandle,
    entry: u16,
    offset: u64,
    length_bytes: u64,
    ticket: *mut Ticket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the ticket", ticket)?;
        handle::with(slot, |of| {
            let made = each!(of, of => of.object.ticket(entry, offset, length_bytes))?;
            ticket::put(place, &made);
            Ok(())
        })
    })
}

/// Gives the slot a fresh key: tickets that were made before are worthless, in normal mode. Also lifts a revocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_rekey_slot(slot: *mut SlotHandle, error: *mut Error) -> Status {
    call(error, || {
        handle::with(slot, |of| {
            Ok(on!(of, (interface, slot) => interface.rekey_slot(slot))?)
        })
    })
}

/// Refuses all messages to the slot, until it has a fresh key (hamlyn_rekey_slot).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_revoke_slot(slot: *mut SlotHandle, error: *mut Error) -> Status {
    call(error, || {
        handle::with(slot, |of| {
            Ok(on!(of, (interface, slot) => interface.revoke_slot(slot))?)
        })
    })
}

/// The state of a slot.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotInfo {
    /// Bytes that it covers.
    pub length_bytes: u64,
    /// Packets that were refused, for all reasons (hamlyn_slot_refusals).
    pub refusals: u64,
    /// HAMLYN_RIGHT_WRITE and so on, summed; HAMLYN_RIGHT_NONE.
    pub rights: u32,
    /// HAMLYN_MODE_NORMAL and so on.
    pub mode: u32,
    /// How many metadata entries it has.
    pub entries: u32,
    /// Bits of its accumulators.
    pub counting_bits: u32,
    /// Regions that are shared.
    pub grants: u32,
    /// Not 0: it was revoked.
    pub revoked: u32,
}

impl SlotInfo {
    pub(crate) fn of(found: &hamlyn::engine::slot::SlotInfo) -> Self {
        Self {
            length_bytes: found.length_bytes,
            refusals: found.refusals.total(),
            rights: match found.rights.to_bits() {
                0 => RIGHT_NONE,
                bits => bits.into(),
            },
            mode: match found.mode {
                Mode::Normal => MODE_NORMAL,
                Mode::Paranoid => MODE_PARANOID,
                Mode::ParanoidOneShot => MODE_ONE_SHOT,
            },
            entries: found.metadata_entries as u32,
            counting_bits: match found.counting {
                Counting::Bits32 => 32,
                Counting::Bits64 => 64,
            },
            grants: found.grants as u32,
            revoked: found.revoked.into(),
        }
    }
}

/// Tells the state of a slot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_slot_info(
    slot: *mut SlotHandle,
    info: *mut SlotInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the state", info)?;
        handle::with(slot, |of| {
            let found = on!(of, (interface, slot) => interface.slot_info(slot))?;
            place.put(SlotInfo::of(&found));
            Ok(())
        })
    })
}

/// A reason of the caller's.
pub(crate) fn reason_of(reason: u32) -> Result<Reason, Failure> {
    let reason = Reason::ALL.get(reason as usize).copied();
    reason.ok_or(Failure::new(
        Status::NotFound,
        "there is no refusal of that number: take one of hamlyn_refusal",
    ))
}

/// How many packets to a slot were refused for that reason, a number of hamlyn_refusal. HAMLYN_NOT_FOUND if there is no such reason.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_slot_refusals(
    slot: *mut SlotHandle,
    reason: u32,
    count: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", count)?;
        let reason = reason_of(reason)?;
        handle::with(slot, |of| {
            let info = on!(of, (interface, slot) => interface.slot_info(slot))?;
            place.put(info.refusals.count(reason));
            Ok(())
        })
    })
}

/// Closes a slot: its tickets are worthless from now on, and its regions are taken back. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_slot(slot: *mut SlotHandle, error: *mut Error) -> Status {
    call(error, || {
        if let Some(of) = handle::close(slot)? {
            each!(of, of => of.manager.session().close_slot(of.object))?;
        }
        Ok(())
    })
}

/// A ticket's fields, as its sender sees them.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TicketInfo {
    /// The number of the interface that it leads to.
    pub interface_number: u64,
    /// The host of that interface, as the interface numbers it; its own is 0.
    pub node: u32,
    /// The user of that interface.
    pub user: u32,
    /// Its slot.
    pub slot: u32,
    /// The metadata entry; HAMLYN_NO_ENTRY in fast mode.
    pub entry: u16,
    /// Bits of the slot's accumulators.
    pub counting_bits: u16,
    /// Where in the slot its place begins.
    pub offset: u64,
    /// How many bytes its place has.
    pub length_bytes: u64,
}

/// Tells the fields of a ticket, or that the bytes are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_ticket_info(
    ticket: *const Ticket,
    info: *mut TicketInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the fields", info)?;
        let ticket = ticket::read(ticket)?;
        place.put(TicketInfo {
            interface_number: ticket.destination.interface,
            node: ticket.destination.node,
            user: ticket.destination.user,
            slot: ticket.slot.to_bits(),
            entry: ticket.metadata_index,
            counting_bits: match ticket.counting {
                Counting::Bits32 => 32,
                Counting::Bits64 => 64,
            },
            offset: ticket.base,
            length_bytes: ticket.length_bytes,
        });
        Ok(())
    })
}
