//! A table that keeps its last entry at hand: the entry that was used last is most likely used
//! next, and is found without a look at the table.

/// See the module. Places are numbered from 0 on, and may be vacant.
pub(crate) struct CachedTable<T> {
    /// Nothing where a place is vacant or at hand.
    places: Vec<Option<Box<T>>>,
    place: usize,
    current: Option<Box<T>>,
}

impl<T> CachedTable<T> {
    /// No places.
    pub(crate) fn new() -> Self {
        Self {
            places: Vec::new(),
            place: 0,
            current: None,
        }
    }

    /// How many places there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Has that place at hand from now on; it may be vacant, or not exist.
    #[inline]
    pub(crate) fn reach(&mut self, place: usize) {
        if place == self.place {
            return;
        }
        if let Some(vacated) = self.places.get_mut(self.place) {
            *vacated = self.current.take();
        }
        self.place = place;
        self.current = self.places.get_mut(place).and_then(Option::take);
    }

    /// The place that is at hand.
    #[inline]
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// What is at hand.
    #[inline(always)]
    pub(crate) fn current(&self) -> Option<&T> {
        self.current.as_deref()
    }

    /// What is at hand.
    #[inline(always)]
    pub(crate) fn current_mut(&mut self) -> Option<&mut T> {
        self.current.as_deref_mut()
    }

    fn entry(&mut self, place: usize) -> Option<&mut Option<Box<T>>> {
        let entry = self.places.get_mut(place)?;
        Some(if place == self.place {
            &mut self.current
        } else {
            entry
        })
    }

    /// What is in that place.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        let entry = self.places.get(place)?;
        if place == self.place {
            self.current()
        } else {
            entry.as_deref()
        }
    }

    /// What is in that place.
    #[inline]
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.entry(place)?.as_deref_mut()
    }

    /// Puts something into a place. Allocates.
    pub(crate) fn put(&mut self, place: usize, value: T) {
        if place >= self.len() {
            self.places.resize_with(place + 1, || None);
        }
        if let Some(entry) = self.entry(place) {
            *entry = Some(Box::new(value));
        }
    }

    /// Vacates a place.
    pub(crate) fn take(&mut self, place: usize) -> Option<Box<T>> {
        self.entry(place)?.take()
    }

    /// All there are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let others = self.places.iter().filter_map(Option::as_deref);
        self.current().into_iter().chain(others)
    }

    /// All there are.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let others = self.places.iter_mut().filter_map(Option::as_deref_mut);
        self.current.as_deref_mut().into_iter().chain(others)
    }
}

#[cfg(test)]
mod tests;
