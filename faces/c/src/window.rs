//! Windows on attached regions and on a program's own areas, for access by pointer.

use std::ffi::c_void;

use hamlyn::DirectWindow;

use crate::area::AreaHandle;
use crate::boundary::{bytes, bytes_mut, call, room};
use crate::handle::{self, kind};
use crate::manager::each;
use crate::one_sided::{AtomicChange, InitiatorHandle};
use crate::region::AttachedHandle;
use crate::status::{Error, Failure, Status};

/// Memory that is mapped here and that others may write at any time. Any thread may use it, one at a time.
#[derive(Debug)]
pub struct WindowHandle {
    _of_the_library: [u8; 0],
}

kind!(WindowHandle, DirectWindow, 25, "window");

/// Opens a window on all of an attached region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_attached_window(
    attached: *mut AttachedHandle,
    window: *mut *mut WindowHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the window", window)?;
        handle::with(attached, |of| {
            place.put(handle::make_for_any_thread(
                each!(of, of => of.object.window()),
            ));
            Ok(())
        })
    })
}

/// Opens a window on the place of an initiator's ticket. HAMLYN_NOT_FOUND if that is in no region that this manager has attached.
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
                "the ticket's place is in no attached region, or that has ended: attach one, and open another initiator",
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

/// The place of a window, and the accesses that it allows.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowInfo {
    /// Its first byte, until the window is closed. Others access the memory at any time: use atomic loads and stores, or volatile ones.
    pub data: *mut c_void,
    /// Its number of bytes.
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

fn outside(_: hamlyn::region::OutOfRange) -> Failure {
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

/// Closes a window: its memory is unmapped with the last one on it, and its region or area. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_window(
    window: *mut WindowHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(window).map(drop))
}
