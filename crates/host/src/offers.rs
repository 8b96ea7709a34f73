//! Offers: how peers that know a name, and nothing else, come
//! by their first ticket (`Hamlyn 6.3`).
//!
//! It lies in the private memory of this process, and ends with it. The owner puts
//! in, the thread that serves requests hands out; neither is on the path of a message.
//!
//! Of an item with a number of places ([`crate::Host::offer_place`]) nobody gets all.

pub use crate::places::Asker;
pub use crate::question::OFFER_BYTES_MAX;

use crate::places::Places;
use crate::process::name::Name;
use crate::question::{Question, Replies, Reply};
use crate::{HostError, RefusedBecause, Supply};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Offers of one interface at a time.
pub const OFFERS_MAX: usize = 4096;

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

    /// The next offer for that asker, or the reason why it gets none.
    fn reply(&self, asker: Asker, own_user: u32) -> Reply {
        let once = self.once.front();
        let is_place = once.is_some_and(|once| once.place != 0);
        let offer = once.map(|once| &once.bytes).or(self.always.as_ref());
        let refused = |RefusedBecause(reason)| Reply::Refused(reason);
        match (&self.places, offer) {
            (Some(places), _) if is_place && !places.has_share(asker, own_user) => {
                refused(RefusedBecause::SHARE)
            }
            (_, Some(offer)) => Reply::Given(offer.to_vec()),
            (Some(places), None) if places.left() == 0 => refused(RefusedBecause::FULL),
            (Some(_), None) if self.is_short => refused(RefusedBecause::SHORT),
            _ => Reply::Refused(Reply::NOT_OFFERED),
        }
    }
}

impl Shelves {
    fn reply(&self, item: &Name, asker: Asker, own_user: u32) -> Reply {
        let shelf = self.by_item.get(item);
        shelf.map_or(Reply::Refused(Reply::NOT_OFFERED), |shelf| {
            shelf.reply(asker, own_user)
        })
    }

    /// That asker was given what was next under that item.
    fn note_given(&mut self, item: &Name, asker: Asker, own_user: u32) {
        let Some(shelf) = self.by_item.get_mut(item) else {
            return;
        };
        let Some(Once { place, .. }) = shelf.once.pop_front() else {
            return;
        };
        match &mut shelf.places {
            Some(places) if place != 0 => places.give(place, asker, own_user),
            _ => {}
        }
        self.offers -= 1;
        if shelf.offers() == 0 && shelf.places.is_none() {
            self.by_item.remove(item);
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

    /// Answers a question: `give` sends the replies. An offer that was given once is gone; if
    /// `give` fails, all stay, each in its place. `given_before` has what this asker was given in
    /// an answer to this question that was lost: it is given that again. `give` must not block,
    /// since nobody else is served meanwhile.
    pub fn answer<T, E>(
        &self,
        question: &Question,
        asker: Asker,
        room_bytes: usize,
        given_before: &HashMap<Name, Vec<u8>>,
        give: impl FnOnce(&Replies) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut shelves = self.lock();
        let replies = Replies::to(question, room_bytes, |item| match given_before.get(item) {
            Some(bytes) => Reply::Given(bytes.clone()),
            None => shelves.reply(item, asker, self.own_user),
        });
        let given = give(&replies)?;
        for (item, reply) in question.items().iter().zip(replies.replies()) {
            // No item stands twice in a question, so what was looked at is still the next.
            if matches!(reply, Reply::Given(_)) && !given_before.contains_key(item) {
                shelves.note_given(item, asker, self.own_user);
            }
        }
        Ok(given)
    }
}

#[cfg(test)]
mod tests;
