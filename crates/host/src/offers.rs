//! Offers: how peers that know a name, and nothing else, come
//! by their first ticket (`Hamlyn 6.3`).
//!
//! It lies in the private memory of this process, and ends with it. The owner puts
//! in, the thread that serves requests hands out; neither is on the path of a message.
//!
//! Of an item with a number of places ([`crate::Host::offer_place`]) nobody gets all.

pub use crate::places::Asker;

use crate::places::Places;
use crate::process::name::Name;
use crate::{HostError, RefusedBecause, Supply};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Offers of one interface at a time.
pub const OFFERS_MAX: usize = 4096;
/// Most bytes of an offer.
pub const OFFER_BYTES_MAX: usize = 1024;

/// See the module.
pub struct Offers {
    shelves: Mutex<Shelves>,
    own_user: u32,
}

#[derive(Default)]
struct Shelves {
    /// None of them is empty.
    by_item: HashMap<Name, Shelf>,
    offers: usize,
    /// The place that was offered last.
    places: u64,
}

/// Why an asker is given nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotGiven {
    /// Nothing is offered there at present.
    Nothing,
    /// Something may be given later; until then, this is the reason.
    Because(RefusedBecause),
}

#[derive(Default)]
struct Shelf {
    once: VecDeque<Once>,
    always: Option<Box<[u8]>>,
    /// For an item with a number of places.
    places: Option<Places>,
    /// The owner has no room for more of them.
    is_short: bool,
}

struct Once {
    /// 0 if it is no place.
    place: u64,
    bytes: Box<[u8]>,
}

impl Shelf {
    fn offers(&self) -> usize {
        self.once.len() + usize::from(self.always.is_some())
    }

    /// Why there is nothing for that asker, if so.
    fn refuses(&self, asker: Asker, own_user: u32) -> Option<NotGiven> {
        let is_place = self.once.front().is_some_and(|once| once.place != 0);
        let because = |reason| Some(NotGiven::Because(reason));
        match &self.places {
            Some(places) if is_place && !places.has_share(asker, own_user) => {
                because(RefusedBecause::SHARE)
            }
            _ if self.offers() > 0 => None,
            Some(places) if places.left() == 0 => because(RefusedBecause::FULL),
            Some(_) if self.is_short => because(RefusedBecause::SHORT),
            _ => Some(NotGiven::Nothing),
        }
    }
}

impl Offers {
    /// Of an interface of that user.
    pub fn new(own_user: u32) -> Self {
        Self {
            shelves: Mutex::default(),
            own_user,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shelves> {
        // Every critical section leaves the shelves whole at each step that can panic.
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something in, in the way of [`crate::Host::offer`].
    pub fn offer(&self, item: Name, supply: Supply, bytes: &[u8]) -> Result<(), HostError> {
        self.put(item, supply, bytes).map(drop)
    }

    /// Puts something in, in the way of [`crate::Host::offer_place`].
    pub fn offer_place(&self, item: Name, most: u32, bytes: &[u8]) -> Result<u64, HostError> {
        let mut shelves = self.put(item.clone(), Supply::Once, bytes)?;
        shelves.places += 1;
        let place = shelves.places;
        if let Some(shelf) = shelves.by_item.get_mut(&item) {
            shelf.places.get_or_insert_with(|| Places::new(most));
            shelf.is_short = false;
            if let Some(once) = shelf.once.back_mut() {
                once.place = place;
            }
        }
        Ok(place)
    }

    /// See [`crate::Host::return_place`].
    pub fn return_place(&self, item: &Name, place: u64) {
        let mut shelves = self.lock();
        let Some(shelf) = shelves.by_item.get_mut(item) else {
            return;
        };
        if let Some(places) = &mut shelf.places {
            places.take_back(place, self.own_user);
        }
        let before = shelf.once.len();
        shelf.once.retain(|once| once.place != place);
        let withdrawn = before - shelf.once.len();
        shelves.offers -= withdrawn;
    }

    /// See [`crate::Host::run_short`].
    pub fn run_short(&self, item: &Name) {
        if let Some(shelf) = self.lock().by_item.get_mut(item) {
            shelf.is_short = true;
        }
    }

    fn put(
        &self,
        item: Name,
        supply: Supply,
        bytes: &[u8],
    ) -> Result<MutexGuard<'_, Shelves>, HostError> {
        if !(1..=OFFER_BYTES_MAX).contains(&bytes.len()) {
            return Err(HostError::BadOffer {
                item: item.as_str().to_owned(),
                bytes: bytes.len() as u64,
                allowed: OFFER_BYTES_MAX as u64,
            });
        }
        let mut shelves = self.lock();
        let replaced = match (supply, shelves.by_item.get(&item)) {
            (Supply::Always, Some(shelf)) => shelf.offers(),
            (Supply::Afterwards, Some(shelf)) => usize::from(shelf.always.is_some()),
            _ => 0,
        };
        let offers = shelves.offers - replaced + 1;
        if offers > OFFERS_MAX {
            return Err(HostError::OffersFull {
                allowed: OFFERS_MAX as u32,
            });
        }
        shelves.offers = offers;
        let shelf = shelves.by_item.entry(item).or_default();
        match supply {
            Supply::Once => shelf.once.push_back(Once {
                place: 0,
                bytes: bytes.into(),
            }),
            Supply::Always => {
                shelf.once.clear();
                shelf.always = Some(bytes.into());
            }
            Supply::Afterwards => shelf.always = Some(bytes.into()),
        }
        Ok(shelves)
    }

    /// How much is offered under `item`.
    pub fn offered(&self, item: &Name) -> usize {
        self.lock().by_item.get(item).map_or(0, Shelf::offers)
    }

    /// Takes back all that is offered under `item`.
    pub fn withdraw(&self, item: &Name) {
        let mut shelves = self.lock();
        if let Some(shelf) = shelves.by_item.remove(item) {
            shelves.offers -= shelf.offers();
        }
    }

    /// Gives the offer under `item`, if there is one for that asker. An offer that was given once
    /// is gone; what could not be given stays, in its place. `give` must not block, since nobody
    /// else is served meanwhile.
    pub fn hand_over<T, E>(
        &self,
        item: &Name,
        asker: Asker,
        give: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<Result<T, E>, NotGiven> {
        let mut shelves = self.lock();
        let shelf = shelves.by_item.get_mut(item).ok_or(NotGiven::Nothing)?;
        if let Some(why) = shelf.refuses(asker, self.own_user) {
            return Err(why);
        }
        let Some(once) = shelf.once.front() else {
            let always = shelf.always.as_deref().ok_or(NotGiven::Nothing)?;
            return Ok(give(always));
        };
        let place = once.place;
        let given = give(&once.bytes);
        if given.is_ok() {
            shelf.once.pop_front();
            match &mut shelf.places {
                Some(places) if place != 0 => places.give(place, asker, self.own_user),
                _ => {}
            }
            let is_empty = shelf.offers() == 0 && shelf.places.is_none();
            shelves.offers -= 1;
            if is_empty {
                shelves.by_item.remove(item);
            }
        }
        Ok(given)
    }
}

#[cfg(test)]
mod tests;
