//! Translations by number. A name is connected to by the first message over it, not when it is mapped.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

use hamlyn_am::{Name, Tag, Translation};

use crate::boundary::{call, call_outside, put};
use crate::endpoint::{EndpointObject, tag_of};
use crate::names::CName;
use crate::status::{Code, Failure};

/// `AM_MaxNumTranslations`.
pub(crate) const TRANSLATIONS_MAX: usize = 1 << 20;
/// Translations of a new endpoint.
const TRANSLATIONS: usize = 256;

/// A name that is mapped.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) name: Name,
    /// The tag as the program gave it.
    pub(crate) number: u64,
    pub(crate) tag: Tag,
    /// The layer's, once a message was sent over it.
    pub(crate) inner: Cell<Option<Translation>>,
}

/// The translations of an endpoint.
#[derive(Debug)]
pub(crate) struct Translations {
    /// As long as the highest that was mapped.
    places: Vec<Option<Rc<Mapped>>>,
    count: usize,
    /// No place before it is free.
    first_free: usize,
    /// The place of each name: the one that was mapped last.
    by_name: HashMap<Name, u32>,
}

impl Default for Translations {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            count: TRANSLATIONS,
            first_free: 0,
            by_name: HashMap::new(),
        }
    }
}

impl Translations {
    /// The place of a number, or the error for it.
    fn place(&self, number: c_int) -> Result<usize, Failure> {
        let place = usize::try_from(number).ok();
        place.filter(|&place| place < self.count).ok_or_else(|| {
            let text = format!(
                "translation {number}: the endpoint has {} (AM_SetNumTranslations)",
                self.count
            );
            Failure::of(Code::BadArg, &text)
        })
    }

    #[inline]
    fn at(&self, place: usize) -> Option<&Rc<Mapped>> {
        self.places.get(place)?.as_ref()
    }

    /// The meaning of a number.
    #[inline]
    pub(crate) fn mapped(&self, number: c_int) -> Result<&Rc<Mapped>, Failure> {
        let place = usize::try_from(number).ok();
        match place.and_then(|place| self.at(place)) {
            Some(mapped) => Ok(mapped),
            None => {
                let place = self.place(number)?;
                let text = format!("translation {place} is not mapped: call AM_Map");
                Err(Failure::of(Code::BadArg, &text))
            }
        }
    }

    /// The number of a name, if it is mapped.
    pub(crate) fn number_of(&self, name: &Name) -> Option<c_int> {
        self.by_name.get(name).map(|&place| place as c_int)
    }

    /// Has at least so many places.
    pub(crate) fn have(&mut self, count: usize) {
        self.count = self.count.max(count);
    }

    /// The number over which the layer has that translation.
    pub(crate) fn number_over(&self, over: &Translation) -> Option<c_int> {
        let is_it = |mapped: &Rc<Mapped>| mapped.inner.get() == Some(*over);
        let places = self.places.iter();
        let place = places
            .map(Option::as_ref)
            .position(|mapped| mapped.is_some_and(is_it));
        place.map(|place| place as c_int)
    }

    pub(crate) fn map(&mut self, number: c_int, mapped: Mapped) -> Result<(), Failure> {
        let place = self.place(number)?;
        if self.at(place).is_some() {
            let text = format!("translation {place} is mapped: unmap it first (AM_UnMap)");
            return Err(Failure::of(Code::InUse, &text));
        }
        if self.places.len() <= place {
            self.places.resize_with(place + 1, || None);
        }
        self.by_name.insert(mapped.name, place as u32);
        self.places[place] = Some(Rc::new(mapped));
        Ok(())
    }

    fn map_any(&mut self, mapped: Mapped) -> Result<c_int, Failure> {
        let free = (self.first_free..self.count).find(|&place| self.at(place).is_none());
        let free = free.ok_or(Failure::resource(
            "all translations of the endpoint are mapped: unmap one, or have more (AM_SetNumTranslations)",
        ))?;
        self.map(free as c_int, mapped)?;
        self.first_free = free + 1;
        Ok(free as c_int)
    }

    fn unmap(&mut self, number: c_int) -> Result<Rc<Mapped>, Failure> {
        let place = self.place(number)?;
        self.mapped(number)?;
        let unmapped = self.places.get_mut(place).and_then(Option::take);
        let unmapped = unmapped.ok_or(Failure::resource("the translation is not mapped"))?;
        self.first_free = self.first_free.min(place);
        if self.by_name.get(&unmapped.name) == Some(&(place as u32)) {
            self.by_name.remove(&unmapped.name);
        }
        Ok(unmapped)
    }
}

impl EndpointObject {
    /// A name with a tag, to be mapped.
    pub(crate) fn to_map(&self, name: &CName, tag: u64) -> Result<Mapped, Failure> {
        let number = tag;
        let tag = tag_of(self.shared.dialect, number);
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
        let mapped = endpoint.to_map(&name, tag)?;
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
        let mapped = endpoint.to_map(&name, tag)?;
        let found = endpoint.shared.translations.borrow_mut().map_any(mapped)?;
        put(number, found)
    })
}

/// `AM_UnMap`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_unmap(endpoint: *mut c_void, number: c_int) -> c_int {
    call_outside(|library| {
        let endpoint = library.endpoint(endpoint)?;
        let unmapped = endpoint.shared.translations.borrow_mut().unmap(number)?;
        if let Some(inner) = unmapped.inner.take() {
            endpoint.endpoint.borrow().unmap(inner)?;
        }
        Ok(())
    })
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
        let mut translations = endpoint.shared.translations.borrow_mut();
        let name = CName::of(&translations.mapped(number)?.name);
        let mapped = endpoint.to_map(&name, tag)?;
        if let Some(inner) = translations.unmap(number)?.inner.take() {
            endpoint.endpoint.borrow().unmap(inner)?;
        }
        translations.map(number, mapped)
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
    crate::boundary::protect(|| put(count, TRANSLATIONS_MAX as c_int))
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
        let count = usize::try_from(count).ok();
        let count = count.filter(|count| (1..=TRANSLATIONS_MAX).contains(count));
        let count = count.ok_or(Failure::bad("an endpoint has 1 to 1,048,576 translations"))?;
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
