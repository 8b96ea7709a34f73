//! The translations of an endpoint, by number. A name is connected to by the first message over
//! it.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::rc::Rc;

use hamlyn_am::{Name, Tag, Translation};

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
    pub(crate) places: Vec<Option<Rc<Mapped>>>,
    pub(crate) count: usize,
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
    pub(crate) fn place(&self, number: c_int) -> Result<usize, Failure> {
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
    pub(crate) fn at(&self, place: usize) -> Option<&Rc<Mapped>> {
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

    pub(crate) fn map_any(&mut self, mapped: Mapped) -> Result<c_int, Failure> {
        let free = (self.first_free..self.count).find(|&place| self.at(place).is_none());
        let free = free.ok_or(Failure::resource(
            "all translations of the endpoint are mapped: unmap one, or have more (AM_SetNumTranslations)",
        ))?;
        self.map(free as c_int, mapped)?;
        self.first_free = free + 1;
        Ok(free as c_int)
    }

    pub(crate) fn unmap(&mut self, number: c_int) -> Result<Rc<Mapped>, Failure> {
        let place = self.place(number)?;
        let unmapped = Rc::clone(self.mapped(number)?);
        self.places[place] = None;
        self.first_free = self.first_free.min(place);
        if self.by_name.get(&unmapped.name) == Some(&(place as u32)) {
            self.by_name.remove(&unmapped.name);
        }
        Ok(unmapped)
    }
}
