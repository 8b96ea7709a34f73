//! Endpoints: names, tags, segments.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::rc::Rc;

use hamlyn::Area;

use crate::boundary::{call, call_outside, put};
use crate::library::Library;
use crate::names::CName;
use crate::returned;
use crate::state::{BundleObject, EndpointObject, EndpointShared, TAG_NONE, tag_of};
use crate::status::{Failure, TOO_MANY};

/// Makes an endpoint in a bundle.
pub(crate) fn allocate(
    library: &Library,
    bundle: &BundleObject,
) -> Result<Rc<EndpointObject>, Failure> {
    let endpoint = bundle.bundle.endpoint()?;
    let name = endpoint.name()?;
    let mut endpoints = library.endpoints.borrow_mut();
    let made = endpoints.insert(|handle| {
        let shared = EndpointShared {
            handle,
            dialect: library.dialect,
            name,
            tag: Cell::new(TAG_NONE),
            segment: Cell::new((null_mut(), 0)),
            translations: RefCell::default(),
            copy: RefCell::default(),
        };
        Rc::new(EndpointObject {
            shared: Rc::new(shared),
            bundle: Cell::new(bundle.handle),
            handlers: RefCell::default(),
            returned: Cell::new(None),
            endpoint: RefCell::new(endpoint),
        })
    });
    let (_, made) = made.ok_or(TOO_MANY)?;
    returned::set_default(made)?;
    Ok(Rc::clone(made))
}

/// `AM_AllocateEndpoint`. The name may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_allocate_endpoint(
    bundle: *mut c_void,
    endpoint: *mut *mut c_void,
    name: *mut CName,
) -> c_int {
    call_outside(|library| {
        let bundle = library.bundle(bundle)?;
        if endpoint.is_null() {
            return Err(Failure::bad("the place for the endpoint is null"));
        }
        let made = allocate(library, &bundle)?;
        if !name.is_null() {
            put(name, CName::of(&made.shared.name))?;
        }
        put(endpoint, made.shared.handle)
    })
}

/// `AM_FreeEndpoint`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_free_endpoint(endpoint: *mut c_void) -> c_int {
    call_outside(|library| {
        library.endpoint(endpoint)?;
        drop(library.endpoints.borrow_mut().remove(endpoint));
        Ok(())
    })
}

/// `AM_MoveEndpoint`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_move_endpoint(
    endpoint: *mut c_void,
    from: *mut c_void,
    to: *mut c_void,
) -> c_int {
    call_outside(|library| {
        let endpoint = library.endpoint(endpoint)?;
        library.bundle(from)?;
        let bundle = library.bundle(to)?;
        if endpoint.bundle.get() != from {
            return Err(Failure::resource(
                "the endpoint is not in the bundle from which it is to be moved",
            ));
        }
        bundle.bundle.adopt(&*endpoint.endpoint.borrow())?;
        endpoint.bundle.set(to);
        Ok(())
    })
}

/// `AMX_GetEndpointName`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_endpoint_name(endpoint: *mut c_void, name: *mut CName) -> c_int {
    call(|library| {
        let endpoint = library.endpoint(endpoint)?;
        put(name, CName::of(&endpoint.shared.name))
    })
}

/// Sets the tag of an endpoint to that of a number of C.
pub(crate) fn set_tag(endpoint: &EndpointObject, tag: u64) -> Result<(), Failure> {
    let set = tag_of(endpoint.shared.dialect, tag);
    endpoint.endpoint.borrow_mut().set_tag(set)?;
    endpoint.shared.tag.set(tag);
    Ok(())
}

/// `AM_SetTag`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_set_tag(endpoint: *mut c_void, tag: u64) -> c_int {
    call_outside(|library| set_tag(&*library.endpoint(endpoint)?, tag))
}

/// `AM_GetTag`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_get_tag(endpoint: *mut c_void, tag: *mut u64) -> c_int {
    call(|library| put(tag, library.endpoint(endpoint)?.shared.tag.get()))
}

/// `AM_SetSeg`. Null and 0 is no segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_set_segment(
    endpoint: *mut c_void,
    start: *mut c_void,
    length_bytes: usize,
) -> c_int {
    call_outside(|library| {
        let endpoint = library.endpoint(endpoint)?;
        let is_none = length_bytes == 0;
        let fits = length_bytes <= isize::MAX as usize - start as usize % isize::MAX as usize;
        let segment = match NonNull::new(start.cast::<u8>()) {
            _ if is_none => None,
            None => return Err(Failure::bad("the segment is null")),
            Some(_) if !fits => return Err(Failure::bad("the segment is longer than memory")),
            Some(place) => {
                // SAFETY: the header demands that the memory stays until the segment is another
                // one, or the endpoint is freed. No Rust reference into it is made; accesses of C
                // are the program's to order.
                let area = unsafe { Area::from_raw(place, length_bytes, ()) };
                Some((area, length_bytes as u64))
            }
        };
        endpoint.endpoint.borrow_mut().set_segment(segment)?;
        endpoint.shared.segment.set((start, length_bytes));
        Ok(())
    })
}

/// `AM_GetSeg`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_get_segment(
    endpoint: *mut c_void,
    start: *mut *mut c_void,
    length_bytes: *mut usize,
) -> c_int {
    call(|library| {
        let (place, length) = library.endpoint(endpoint)?.shared.segment.get();
        put(start, place)?;
        put(length_bytes, length)
    })
}

/// `AM_SetExpectedResources`: a hint, which changes nothing here.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_set_expected_resources(
    endpoint: *mut c_void,
    endpoints: c_int,
    outstanding: c_int,
) -> c_int {
    call(|library| {
        library.endpoint(endpoint)?;
        match endpoints > 0 && outstanding > 0 {
            true => Ok(()),
            false => Err(Failure::bad(
                "an endpoint expects one endpoint and one outstanding request at least",
            )),
        }
    })
}
