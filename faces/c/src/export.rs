//! Exported memory (decision 37): all of a slot, mapped by any number of peers, whose operations are then loads and stores; and windows on
//! it, and on a program's own areas, for access by pointer.

use std::ffi::c_void;

use hamlyn::export::{Export, ExportError, ExportTicket as EngineTicket, ImportError};
use hamlyn::ticket::TicketError;
use hamlyn::{DirectWindow, Import};

use crate::area::AreaHandle;
use crate::boundary::{bytes, bytes_mut, call, room, to_travel, travelled, wait_of};
use crate::handle::{self, kind};
use crate::lower::{Lower, make_beside, make_lower, on};
use crate::manager::{ManagerHandle, each};
use crate::one_sided::{AtomicChange, InitiatorHandle};
use crate::slot::SlotHandle;
use crate::status::{Error, Failure, Status};

/// Bytes of the ticket of an export.
pub const EXPORT_TICKET_LENGTH_BYTES: usize = 64;
/// Of these so many are used.
pub const EXPORT_TICKET_USED_BYTES: usize = 64;
const _: () = assert!(
    EXPORT_TICKET_USED_BYTES == hamlyn::export::EXPORT_TICKET_BYTES
        && EXPORT_TICKET_LENGTH_BYTES >= EXPORT_TICKET_USED_BYTES
);

/// The right to map the memory of a slot, for every peer that has it and a link to its owner. May be copied and sent as bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportTicket {
    /// Meaningful to the library only. Programs in Rust and Python take the first HAMLYN_EXPORT_TICKET_USED_BYTES alone; the others are 0.
    pub bytes: [u8; EXPORT_TICKET_LENGTH_BYTES],
}

/// An export, in the hands of the slot's owner.
#[derive(Debug)]
pub struct ExportHandle {
    _of_the_library: [u8; 0],
}

kind!(ExportHandle, Lower<Export>, 23, "export");

/// An area of a peer that this manager has mapped.
#[derive(Debug)]
pub struct ImportHandle {
    _of_the_library: [u8; 0],
}

kind!(ImportHandle, Lower<Import>, 24, "import");

/// Memory that is mapped here and that others may write at any time. Any thread may use it, one at a time.
#[derive(Debug)]
pub struct WindowHandle {
    _of_the_library: [u8; 0],
}

kind!(WindowHandle, DirectWindow, 25, "window");

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Host(host) => host.into(),
            ExportError::Slot(slot) => slot.into(),
            other => Self::of(Status::Invalid, &other),
        }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Fetch(reach) => hamlyn::ConnectError::from(reach).into(),
            ImportError::NotLinked => Self::of(Status::NotFound, &error),
            ImportError::TooMany => Self::of(Status::Limit, &error),
            other => Self::of(Status::Invalid, &other),
        }
    }
}

impl From<TicketError> for Failure {
    fn from(error: TicketError) -> Self {
        Self::of(Status::Invalid, &error)
    }
}

/// Lets peers map the memory of a slot, which must be over all of an area of HAMLYN_AREA_EXPORTABLE, and grant reading or everything.
/// Importers see all of it, now and later. `ticket` is told what they take it up with. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_export_slot(
    slot: *mut SlotHandle,
    export: *mut *mut ExportHandle,
    ticket: *mut ExportTicket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the export", export)?;
        let ticket_place = room("the place for the ticket", ticket)?;
        let mut bytes = [0; EXPORT_TICKET_LENGTH_BYTES];
        let result: Result<(), Failure> = make_beside!(slot, place, (interface, slot) => {
            let export = interface.export(slot)?;
            bytes = to_travel(&export.ticket().to_bytes());
            export
        });
        result?;
        ticket_place.put(ExportTicket { bytes });
        Ok(())
    })
}

/// Ends an export: when this has returned, nothing that importers do changes the area any more. Copies the pages that are there. If there is no
/// memory for that, importers may still write: free some, and call this again. The handle is to be closed afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_revoke_export(
    export: *mut ExportHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(export, |of| {
            Ok(on!(of, (interface, export) => interface.revoke_export(export))?)
        })
    })
}

/// Closes the handle of an export, which lasts until it is revoked or its slot is closed. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_export(
    export: *mut ExportHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(export).map(drop))
}

/// Maps the memory of a slot that a peer exports. There must be a link to the peer (hamlyn_open_target makes one). Initiators that are opened
/// afterwards with tickets of that slot operate in it. Blocks for `wait_ns` at most. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_import_slot(
    manager: *mut ManagerHandle,
    ticket: *const ExportTicket,
    wait_ns: i64,
    import: *mut *mut ImportHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the import", import)?;
        let bytes = travelled::<EXPORT_TICKET_USED_BYTES, EXPORT_TICKET_LENGTH_BYTES>(
            "the ticket",
            ticket.cast(),
        )?;
        let ticket = EngineTicket::from_bytes(&bytes)?;
        make_lower!(manager, place, interface => interface.import(&ticket, wait_of(wait_ns))?)
    })
}

/// Whether an export still lasts, and there is a link to its owner: HAMLYN_OK, or HAMLYN_PEER_LOST. It may end right after the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_check_import(
    import: *mut ImportHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(import, |of| match each!(of, of => of.object.lasts()) {
            true => Ok(()),
            false => Err(Failure::new(
                Status::PeerLost,
                "the export has ended: its owner has revoked it, or is gone",
            )),
        })
    })
}

/// Lets go of an import: operations go as packets again. Windows on it stay mapped until they are closed. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_import(
    import: *mut ImportHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        if let Some(of) = handle::close(import)? {
            each!(of, of => of.manager.session().drop_import(&of.object));
        }
        Ok(())
    })
}

/// Opens a window on all of an import.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_import_window(
    import: *mut ImportHandle,
    window: *mut *mut WindowHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the window", window)?;
        handle::with(import, |of| {
            place.put(handle::make_for_any_thread(
                each!(of, of => of.object.window()),
            ));
            Ok(())
        })
    })
}

/// Opens a window on the place of an initiator's ticket. HAMLYN_NOT_FOUND if that is not in memory that this manager has imported.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_initiator_window(
    initiator: *mut InitiatorHandle,
    window: *mut *mut WindowHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the window", window)?;
        handle::with(initiator, |of| {
            let window = each!(of, of => of.object.window().cloned());
            let window = window.ok_or(Failure::new(
                Status::NotFound,
                "the ticket's place is not imported here, or that has ended: import it, and open another initiator",
            ))?;
            place.put(handle::make_for_any_thread(window));
            Ok(())
        })
    })
}

/// Opens a window on a part of an own area. HAMLYN_INVALID if the part does not lie in it, or if it changes hands (hamlyn_view_pieces).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_area_window(
    area: *mut AreaHandle,
    offset: u64,
    length_bytes: u64,
    window: *mut *mut WindowHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the window", window)?;
        handle::with(area, |area| {
            let range = (offset.checked_add(length_bytes)).map(|end| offset..end);
            let window = range.and_then(|range| area.direct_window(range));
            let window = window.ok_or(Failure::new(
                Status::Invalid,
                "the window does not lie in the area, or the area changes hands",
            ))?;
            place.put(handle::make_for_any_thread(window));
            Ok(())
        })
    })
}

/// Where a window lies, and what may be done there.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowInfo {
    /// Its first byte, until the window is closed. Others access the memory at any time: use atomic loads and stores, or volatile ones.
    pub data: *mut c_void,
    /// How many bytes it has.
    pub length_bytes: u64,
    /// Not 0: it may be written. Otherwise the kernel ends a program that does.
    pub is_writable: u32,
    /// Not 0: the memory is still that of its owner. What is stored after that reaches nobody.
    pub lasts: u32,
}

/// Tells where a window lies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_window(
    window: *mut WindowHandle,
    info: *mut WindowInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the answer", info)?;
        handle::with(window, |window| {
            place.put(WindowInfo {
                data: window.as_ptr().cast(),
                length_bytes: window.length_bytes(),
                is_writable: window.is_writable().into(),
                lasts: window.lasts().into(),
            });
            Ok(())
        })
    })
}

fn outside(_: hamlyn::export::OutOfRange) -> Failure {
    Failure::new(
        Status::Invalid,
        "that does not lie in the window, is not aligned to its width, or may only be read",
    )
}

/// Copies bytes out of a window. Those that others write meanwhile come out old or new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_read_window(
    window: *mut WindowHandle,
    offset: u64,
    into: *mut c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let into = bytes_mut(into, length_bytes)?;
        handle::with(window, |window| window.read(offset, into).map_err(outside))
    })
}

/// Copies bytes into a window.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_write_window(
    window: *mut WindowHandle,
    offset: u64,
    data: *const c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        handle::with(window, |window| window.write(offset, data).map_err(outside))
    })
}

/// Changes the word at `offset`, a multiple of its width in the owner's area, and tells what it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_change_window(
    window: *mut WindowHandle,
    offset: u64,
    change: *const AtomicChange,
    before: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the word", before)?;
        let atomic = AtomicChange::read(change)?;
        handle::with(window, |window| {
            place.put(window.change(offset, &atomic).map_err(outside)?);
            Ok(())
        })
    })
}

/// Closes a window: its memory is unmapped with the last one on it, and its import or area. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_window(
    window: *mut WindowHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(window).map(drop))
}
