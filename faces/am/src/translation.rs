//! Translations, as C maps them.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use hamlyn_am::Tag;

use crate::boundary::{call, call_outside, count_of, protect, put};
use crate::names::CName;
use crate::state::{Dialect, EndpointObject, tag_of};
use crate::status::{Code, Failure};
use crate::translations::{Mapped, TRANSLATIONS_MAX};

/// A name with a tag, to be mapped.
fn to_map(dialect: Dialect, name: &CName, tag: u64) -> Result<Mapped, Failure> {
    let number = tag;
    let tag = tag_of(dialect, number);
    if tag == Tag::None {
        return Err(Failure::bad(
            "AM_NONE opens no endpoint: map the name with its tag, or with AM_ALL",
        ));
    }
    Ok(Mapped {
        name: name.name()?,
        number,
        tag,
        inner: Cell::new(None),
    })
}

/// Unmaps a translation, in the layer too if a message was sent over it.
fn unmap(endpoint: &EndpointObject, number: c_int) -> Result<(), Failure> {
    let unmapped = endpoint.shared.translations.borrow_mut().unmap(number)?;
    if let Some(inner) = unmapped.inner.take() {
        endpoint.endpoint.borrow().unmap(inner)?;
    }
    Ok(())
}

/// `AM_Map`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_map(
    endpoint: *mut c_void,
    number: c_int,
    name: CName,
    tag: u64,
) -> c_int {
    call_outside(|library| {
        let endpoint = library.endpoint(endpoint)?;
        let mapped = to_map(library.dialect, &name, tag)?;
        endpoint
            .shared
            .translations
            .borrow_mut()
            .map(number, mapped)
    })
}

/// `AM_MapAny`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_map_any(
    endpoint: *mut c_void,
    number: *mut c_int,
    name: CName,
    tag: u64,
) -> c_int {
    call_outside(|library| {
        let endpoint = library.endpoint(endpoint)?;
        if number.is_null() {
            return Err(Failure::bad("the place for the number is null"));
        }
        let mapped = to_map(library.dialect, &name, tag)?;
        let found = endpoint.shared.translations.borrow_mut().map_any(mapped)?;
        put(number, found)
    })
}

/// `AM_UnMap`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_unmap(endpoint: *mut c_void, number: c_int) -> c_int {
    call_outside(|library| unmap(&*library.endpoint(endpoint)?, number))
}

/// `AM_GetTranslationInuse`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_translation_in_use(endpoint: *mut c_void, number: c_int) -> c_int {
    call(|library| {
        let endpoint = library.endpoint(endpoint)?;
        let translations = endpoint.shared.translations.borrow();
        let place = translations.place(number)?;
        match translations.at(place) {
            Some(_) => Ok(()),
            None => Err(Failure::resource("the translation is not mapped")),
        }
    })
}

/// `AM_GetTranslationTag`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_translation_tag(
    endpoint: *mut c_void,
    number: c_int,
    tag: *mut u64,
) -> c_int {
    call(|library| {
        let endpoint = library.endpoint(endpoint)?;
        let translations = endpoint.shared.translations.borrow();
        put(tag, translations.mapped(number)?.number)
    })
}

/// `AMX_SetTranslationTag`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_set_translation_tag(
    endpoint: *mut c_void,
    number: c_int,
    tag: u64,
) -> c_int {
    call_outside(|library| {
        let endpoint = library.endpoint(endpoint)?;
        let translations = &endpoint.shared.translations;
        let name = CName::of(&translations.borrow().mapped(number)?.name);
        let mapped = to_map(library.dialect, &name, tag)?;
        unmap(&endpoint, number)?;
        translations.borrow_mut().map(number, mapped)
    })
}

/// `AM_GetTranslationName`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_translation_name(
    endpoint: *mut c_void,
    number: c_int,
    name: *mut CName,
) -> c_int {
    call(|library| {
        let endpoint = library.endpoint(endpoint)?;
        let translations = endpoint.shared.translations.borrow();
        put(name, CName::of(&translations.mapped(number)?.name))
    })
}

/// `AM_MaxNumTranslations`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_max_num_translations(count: *mut c_int) -> c_int {
    protect(|| put(count, TRANSLATIONS_MAX as c_int))
}

/// `AM_GetNumTranslations`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_get_num_translations(
    endpoint: *mut c_void,
    count: *mut c_int,
) -> c_int {
    call(|library| {
        let endpoint = library.endpoint(endpoint)?;
        let translations = endpoint.shared.translations.borrow().count;
        put(count, translations as c_int)
    })
}

/// `AM_SetNumTranslations`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_set_num_translations(endpoint: *mut c_void, count: c_int) -> c_int {
    call_outside(|library| {
        let endpoint = library.endpoint(endpoint)?;
        let most = TRANSLATIONS_MAX;
        let count = count_of(count, most, "an endpoint has 1 to 1,048,576 translations")?;
        let mut translations = endpoint.shared.translations.borrow_mut();
        if translations.places.iter().skip(count).any(Option::is_some) {
            return Err(Failure::new(
                Code::InUse,
                "a translation of a higher number is mapped: unmap it first",
            ));
        }
        translations.places.truncate(count);
        translations.count = count;
        Ok(())
    })
}
