//! Offers: how peers that know a name, and nothing else, come
//! by their first ticket (`Hamlyn 6.3`).
//!
//! It lies in the private memory of this process, and ends with it. The owner puts
//! in, the thread that serves requests hands out; neither is on the path of a message.

use crate::process::name::Name;
use crate::{HostError, Supply};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Offers of one interface at a time.
pub const OFFERS_MAX: usize = 4096;
/// Most bytes of an offer.
pub const OFFER_BYTES_MAX: usize = 1024;

/// See the module.
#[derive(Default)]
pub struct Offers(Mutex<Shelves>);

#[derive(Default)]
struct Shelves {
    /// None of them is empty.
    by_item: HashMap<Name, Shelf>,
    offers: usize,
}

#[derive(Default)]
struct Shelf {
    once: VecDeque<Box<[u8]>>,
    always: Option<Box<[u8]>>,
}

impl Shelf {
    fn offers(&self) -> usize {
        self.once.len() + usize::from(self.always.is_some())
    }
}

impl Offers {
    fn lock(&self) -> MutexGuard<'_, Shelves> {
        // Every critical section leaves the shelves whole at each step that can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something in, in the way of [`crate::Host::offer`].
    pub fn offer(&self, item: Name, supply: Supply, bytes: &[u8]) -> Result<(), HostError> {
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
            Supply::Once => shelf.once.push_back(bytes.into()),
            Supply::Always => {
                shelf.once.clear();
                shelf.always = Some(bytes.into());
            }
            Supply::Afterwards => shelf.always = Some(bytes.into()),
        }
        Ok(())
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

    /// Gives the offer under `item`, if there is one. An offer that was given once is
    /// gone; what could not be given stays, in its place. `give` must not block, since
    /// nobody else is served meanwhile.
    pub fn hand_over<T, E>(
        &self,
        item: &Name,
        give: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        let mut shelves = self.lock();
        let shelf = shelves.by_item.get_mut(item)?;
        let (bytes, is_once) = match (shelf.once.front(), &shelf.always) {
            (Some(bytes), _) => (bytes, true),
            (None, Some(bytes)) => (bytes, false),
            (None, None) => return None,
        };
        let given = give(bytes);
        if is_once && given.is_ok() {
            shelf.once.pop_front();
            let is_empty = shelf.offers() == 0;
            shelves.offers -= 1;
            if is_empty {
                shelves.by_item.remove(item);
            }
        }
        Some(given)
    }
}

#[cfg(test)]
mod tests;
