//! A table whose places are used again under new names: slots, termini, notification queues, and whatever a host or
//! library names by index and generation.
//!
//! It refuses a name whose thing was removed, for ever: a place whose generations are used up is never used again. An
//! index may be a peer's: it is compared with the table's end and masked as well, so that not even speculation leaves
//! the table.

use alloc::vec::Vec;

/// The name of a thing in a [`Table`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Name {
    /// Its place.
    pub index: u32,
    /// Which use of that place.
    pub generation: u32,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// See the module.
#[derive(Debug)]
pub struct Table<T> {
    /// Padded to a power of two with vacant places.
    places: Vec<Place<T>>,
    /// Places that were used and may be used again; the last one is next.
    free: Vec<u32>,
    /// Places that were ever used.
    used: usize,
    open: usize,
    places_max: usize,
    generation_max: u32,
}

impl<T> Table<T> {
    /// An empty table of at most `places_max` places, whose generations go up to `generation_max`. Takes no memory.
    pub const fn new(places_max: usize, generation_max: u32) -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            used: 0,
            open: 0,
            places_max,
            generation_max,
        }
    }

    /// Puts a thing into the table, and names it. Nothing if the table is full. Allocates.
    pub fn insert(&mut self, value: T) -> Option<Name> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.used >= self.places_max => return None,
            None => {
                if self.used == self.places.len() {
                    let vacant = || Place {
                        generation: 0,
                        value: None,
                    };
                    self.places.resize_with((self.used * 2).max(8), vacant);
                }
                self.used += 1;
                (self.used - 1) as u32
            }
        };
        let place = self.places.get_mut(index as usize)?;
        place.value = Some(value);
        self.open += 1;
        Some(Name {
            index,
            generation: place.generation,
        })
    }

    /// Takes a thing out of the table. Its name is never good again.
    pub fn remove(&mut self, name: Name) -> Option<T> {
        let place = self.places.get_mut(name.index as usize)?;
        if place.generation != name.generation {
            return None;
        }
        let value = place.value.take()?;
        self.open -= 1;
        if place.generation < self.generation_max {
            place.generation += 1;
            self.free.push(name.index);
        }
        Some(value)
    }

    /// The thing of that name.
    #[inline(always)]
    pub fn get(&self, name: Name) -> Option<&T> {
        let index = name.index as usize;
        if index >= self.places.len() {
            return None;
        }
        let place = &self.places[index & (self.places.len() - 1)];
        match &place.value {
            Some(value) if place.generation == name.generation => Some(value),
            _ => None,
        }
    }

    /// The thing of that name.
    #[inline(always)]
    pub fn get_mut(&mut self, name: Name) -> Option<&mut T> {
        let index = name.index as usize;
        if index >= self.places.len() {
            return None;
        }
        let mask = self.places.len() - 1;
        let place = &mut self.places[index & mask];
        match &mut place.value {
            Some(value) if place.generation == name.generation => Some(value),
            _ => None,
        }
    }

    /// The thing in that place, with its name.
    pub fn at_mut(&mut self, index: usize) -> Option<(Name, &mut T)> {
        let place = self.places.get_mut(index)?;
        let name = Name {
            index: index as u32,
            generation: place.generation,
        };
        place.value.as_mut().map(|value| (name, value))
    }

    /// Whether there is a thing of that name.
    pub fn contains(&self, name: Name) -> bool {
        self.get(name).is_some()
    }

    /// Whether that place was ever used.
    pub fn was_used(&self, index: usize) -> bool {
        index < self.used
    }

    /// How many places there are, vacant ones and padding included: zero, or a power of two.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.open
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// All there are, with their names, in order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (Name, &T)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let name = Name {
                index: index as u32,
                generation: place.generation,
            };
            place.value.as_ref().map(|value| (name, value))
        })
    }

    /// All there are, in order of their places.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places
            .iter_mut()
            .filter_map(|place| place.value.as_mut())
    }
}
