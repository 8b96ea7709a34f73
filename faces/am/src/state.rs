//! Bundles and endpoints as C knows them: the objects of the layer, with state that it does not
//! have.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::rc::Rc;

use hamlyn_am::{Bundle, Deferred, Endpoint, Name, Operation, Tag, Translation};

use crate::status::Failure;
use crate::translations::Translations;

/// A handler of any type.
pub(crate) type Handler = unsafe extern "C" fn();

/// The header that the program uses: its numbers, and its forms of handlers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    /// `am.h`: the numbers of AMUDP and AMMPI.
    Today,
    /// `am1996.h`: bulk handlers are told an offset, and codes are bits.
    Of1996,
}

impl Dialect {
    pub(crate) fn of(number: c_int) -> Result<Self, Failure> {
        match number {
            2 => Ok(Self::Today),
            1996 => Ok(Self::Of1996),
            _ => Err(Failure::bad(
                "the program was compiled with a header of another version: compile it anew",
            )),
        }
    }
}

pub(crate) const TAG_NONE: u64 = 0;
const TAG_ALL: u64 = 1;
const TAG_ALL_1996: u64 = 0xffff_ffff;

/// The tag of a number of C.
pub(crate) fn tag_of(dialect: Dialect, number: u64) -> Tag {
    let all = match dialect {
        Dialect::Today => TAG_ALL,
        Dialect::Of1996 => TAG_ALL_1996,
    };
    match number {
        TAG_NONE => Tag::None,
        number if number == all => Tag::Any,
        number => Tag::new(number),
    }
}

/// A bundle as C knows it.
pub(crate) struct BundleObject {
    pub(crate) handle: *mut c_void,
    pub(crate) bundle: Bundle,
    pub(crate) mask: Cell<c_int>,
    /// The translation over which a message was not sent last, for `AM_CANSEND`.
    pub(crate) blocked: Cell<Option<Translation>>,
}

/// The part of an endpoint that its handlers see.
pub(crate) struct EndpointShared {
    pub(crate) handle: *mut c_void,
    pub(crate) dialect: Dialect,
    pub(crate) name: Name,
    pub(crate) tag: Cell<u64>,
    /// The first byte, and the length.
    pub(crate) segment: Cell<(*mut c_void, usize)>,
    pub(crate) translations: RefCell<Translations>,
    /// Memory in which medium handlers have their data, to change as they like.
    pub(crate) copy: RefCell<Vec<u64>>,
}

impl EndpointShared {
    /// Shows a copy of data, aligned as for any type of C up to 8 bytes.
    pub(crate) fn with_copy(&self, data: &[u8], show: impl FnOnce(*mut c_void)) {
        let mut copy = self.copy.take();
        let words = data.len().div_ceil(8).max(1);
        if copy.len() < words {
            copy.resize(words, 0);
        }
        let place = copy.as_mut_ptr().cast::<u8>();
        // SAFETY: the copy has at least as many bytes, and is none of the data.
        unsafe { place.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        show(place.cast());
        *self.copy.borrow_mut() = copy;
    }
}

/// An endpoint as C knows it.
pub(crate) struct EndpointObject {
    pub(crate) shared: Rc<EndpointShared>,
    pub(crate) bundle: Cell<*mut c_void>,
    pub(crate) handlers: RefCell<HandlerTable>,
    /// Handler 0, unless it is the default one.
    pub(crate) returned: Cell<Option<Handler>>,
    pub(crate) endpoint: RefCell<Endpoint>,
}

/// `AM_MaxNumHandlers`.
pub(crate) const HANDLERS_MAX: usize = 256;

/// The numbers that have a handler.
#[derive(Debug)]
pub(crate) struct HandlerTable {
    pub(crate) is_set: Vec<bool>,
}

impl Default for HandlerTable {
    fn default() -> Self {
        Self {
            is_set: vec![false; HANDLERS_MAX],
        }
    }
}

/// A message that comes back without having left.
#[derive(Debug)]
pub(crate) struct OwnReturned {
    pub(crate) endpoint: *mut c_void,
    pub(crate) to: c_int,
    pub(crate) operation: Operation,
    pub(crate) handler: u8,
    pub(crate) arguments: Vec<u32>,
    pub(crate) data: Vec<u8>,
    pub(crate) offset: u64,
}

/// A request whose reply was put off.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) request: Deferred,
    pub(crate) endpoint: *mut c_void,
}
