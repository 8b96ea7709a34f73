//! Bundles: polled and waited for.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

use hamlyn::Wait;
use hamlyn_am::{Events, Translation};

use crate::boundary::{call, call_outside, put, wait_of};
use crate::library::Library;
use crate::returned;
use crate::state::BundleObject;
use crate::status::{Code, Failure, NOT_SENT, TOO_MANY};

const AM_SEQ: c_int = 0;
const AM_PAR: c_int = 1;
const NOT_EMPTY: c_int = 1;
const CAN_SEND: c_int = 2;

const PARALLEL: Failure =
    Failure::resource("AM_PAR is not there yet: one thread uses a bundle (AM_SEQ)");

/// Makes a bundle.
pub(crate) fn allocate(library: &Library) -> Result<Rc<BundleObject>, Failure> {
    let bundle = library.node.bundle()?;
    let mut bundles = library.bundles.borrow_mut();
    let made = bundles.insert(|handle| {
        Rc::new(BundleObject {
            handle,
            bundle,
            mask: Cell::new(0),
            blocked: Cell::new(None),
        })
    });
    let (_, made) = made.ok_or(TOO_MANY)?;
    Ok(Rc::clone(made))
}

/// `AM_AllocateBundle`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_allocate_bundle(kind: c_int, bundle: *mut *mut c_void) -> c_int {
    call_outside(|library| {
        match kind {
            AM_SEQ => {}
            AM_PAR => return Err(PARALLEL),
            _ => return Err(Failure::bad("the type of a bundle is AM_SEQ or AM_PAR")),
        }
        if bundle.is_null() {
            return Err(Failure::bad("the place for the bundle is null"));
        }
        put(bundle, allocate(library)?.handle)
    })
}

/// `AM_FreeBundle`: with the endpoints in it.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_free_bundle(bundle: *mut c_void) -> c_int {
    call_outside(|library| {
        library.bundle(bundle)?;
        let inside: Vec<*mut c_void> = {
            let endpoints = library.endpoints.borrow();
            let inside = endpoints
                .iter()
                .filter(|endpoint| endpoint.bundle.get() == bundle);
            inside.map(|endpoint| endpoint.shared.handle).collect()
        };
        for endpoint in inside {
            drop(library.endpoints.borrow_mut().remove(endpoint));
        }
        drop(library.bundles.borrow_mut().remove(bundle));
        Ok(())
    })
}

/// `AM_GetEventMask`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_get_event_mask(bundle: *mut c_void, mask: *mut c_int) -> c_int {
    call(|library| put(mask, library.bundle(bundle)?.mask.get()))
}

/// `AM_SetEventMask`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_set_event_mask(bundle: *mut c_void, mask: c_int) -> c_int {
    call(|library| {
        let bundle = library.bundle(bundle)?;
        if mask & !(NOT_EMPTY | CAN_SEND) != 0 {
            return Err(Failure::bad(
                "an event mask is made of AM_NOTEMPTY and AM_CANSEND, or AM_NOEVENTS",
            ));
        }
        bundle.mask.set(mask);
        Ok(())
    })
}

/// Runs the handlers of the messages that are there, and gives their number.
pub(crate) fn poll(library: &Rc<Library>, bundle: &BundleObject) -> Result<usize, Failure> {
    let own = returned::deliver(library, bundle.handle);
    Ok(own + bundle.bundle.poll()?)
}

/// `AM_Poll`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_poll(bundle: *mut c_void) -> c_int {
    call_outside(|library| {
        let bundle = library.bundle(bundle)?;
        poll(library, &bundle)?;
        Ok(())
    })
}

/// `AM_WaitSema` and `AMX_WaitSemaFor`: waits for an event of the mask, for so many milliseconds
/// or, below 0, for ever, and polls.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_wait(bundle: *mut c_void, milliseconds: i64) -> c_int {
    call_outside(|library| {
        let bundle = library.bundle(bundle)?;
        let mask = bundle.mask.get();
        if mask == 0 {
            return Err(Failure::bad(
                "the bundle has no event mask, so the wait would never end: call AM_SetEventMask first",
            ));
        }
        let wait = match milliseconds {
            0 => Wait::Poll,
            milliseconds => wait_of(milliseconds),
        };
        let blocked = bundle.blocked.get().filter(|_| mask & CAN_SEND != 0);
        let can_send_now = mask & CAN_SEND != 0 && blocked.is_none();
        if !can_send_now && !returned::has_any(library, bundle.handle) {
            let events = blocked.map_or(Events::NotEmpty, Events::CanSend);
            let happened = match bundle.bundle.wait(events, wait) {
                // It was unmapped: nothing is waited for.
                Err(hamlyn_am::Error::NotMapped { .. }) => true,
                other => other?,
            };
            if !happened {
                return Err(Failure::new(
                    Code::NotSent,
                    "no event of the mask happened in time",
                ));
            }
        }
        bundle.blocked.set(None);
        poll(library, &bundle)?;
        Ok(())
    })
}

/// Notes the translation over which a message was not sent, and says so.
pub(crate) fn note_blocked(
    library: &Library,
    bundle: *mut c_void,
    over: Option<Translation>,
) -> Failure {
    if let Ok(bundle) = library.bundle(bundle) {
        bundle.blocked.set(over);
    }
    NOT_SENT
}
