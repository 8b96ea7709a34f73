//! Event suppression: which of many links a poll looks at (decision 0005).
//!
//! Links that had something lately are *watched*: they have turns, one after the other, and each poll
//! gives a bounded number of turns. A watched link that stays silent for long is unwatched, if there are
//! more than a few; from then on its sender leaves notes, and besides one unwatched link is swept now and then, so
//! that a note that was lost or wiped out only delays. So the cost of a poll does not depend on how many
//! links are silent, and busy links have equal turns.
//!
//! Pure: it knows places and numbers of links, and neither their memory nor what a note is.

/// Turns given by one poll.
pub const TURNS_MAX: usize = 16;
/// So many links are watched, whether they have something or not.
pub const WATCHED_ALWAYS: usize = 8;
/// Silent turns after which a link is no longer watched.
pub const SILENT_TURNS: u8 = 200;
/// Polls between two sweeps.
pub const SWEEP_POLLS: u32 = 8;

const _: () = assert!(WATCHED_ALWAYS <= TURNS_MAX);

/// What is known of one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Vacant,
    /// With so many silent turns.
    Watched(u8),
    /// At this index of the unwatched ones.
    Unwatched(u32),
}

/// The links of a receiver, by place.
#[derive(Debug, Default)]
pub struct Turns {
    places: Vec<Place>,
    /// Places that are watched, in the order of their turns.
    watched: Vec<u32>,
    /// Whose turn it is in `watched`.
    turn: usize,
    unwatched: Vec<u32>,
    /// The unwatched ones below this index are still to be swept in this round.
    to_sweep: usize,
    polls: u32,
}

impl Turns {
    /// No links.
    pub fn new() -> Self {
        Self::default()
    }

    /// A link has this place from now on, and is watched. Allocates if the place is new.
    pub fn enter(&mut self, place: usize) {
        if place >= self.places.len() {
            self.places.resize(place + 1, Place::Vacant);
        }
        self.leave(place);
        self.places[place] = Place::Watched(0);
        self.watched.push(place as u32);
    }

    /// The link of this place is gone.
    pub fn leave(&mut self, place: usize) {
        match self.places.get(place) {
            None | Some(Place::Vacant) => return,
            Some(&Place::Unwatched(at)) => self.remove_unwatched(at),
            Some(Place::Watched(_)) => {
                if let Some(at) = self.watched.iter().position(|&at| at as usize == place) {
                    self.remove_turn(at);
                }
            }
        }
        self.places[place] = Place::Vacant;
    }

    fn remove_unwatched(&mut self, at: u32) {
        self.unwatched.swap_remove(at as usize);
        // Rounds go downwards, so the one that was moved is not passed over.
        if let Some(&moved) = self.unwatched.get(at as usize) {
            self.places[moved as usize] = Place::Unwatched(at);
        }
    }

    fn remove_turn(&mut self, at: usize) {
        self.watched.remove(at);
        // Whoever comes after it moves up.
        if at < self.turn {
            self.turn -= 1;
        }
        if self.turn >= self.watched.len() {
            self.turn = 0;
        }
    }

    /// How many turns the next poll gives.
    #[inline]
    pub fn count(&self) -> usize {
        self.watched.len().min(TURNS_MAX)
    }

    /// How many links are watched.
    pub fn watched(&self) -> usize {
        self.watched.len()
    }

    /// The places of those that are watched.
    pub fn watched_places(&self) -> &[u32] {
        &self.watched
    }

    /// The place whose turn it is; any number if there are no links.
    #[inline]
    pub fn current(&self) -> usize {
        self.watched
            .get(self.turn)
            .map_or(0, |&place| place as usize)
    }

    /// The next link has its turn.
    #[inline]
    pub fn advance(&mut self) {
        self.turn += 1;
        if self.turn >= self.watched.len() {
            self.turn = 0;
        }
    }

    /// Whether there are links that are not watched: only then are there notes to take and links to sweep.
    #[inline]
    pub fn is_any_unwatched(&self) -> bool {
        !self.unwatched.is_empty()
    }

    /// Whether this place is watched.
    pub fn is_watched(&self, place: usize) -> bool {
        matches!(self.places.get(place), Some(Place::Watched(_)))
    }

    /// The link whose turn it is had something, or nothing. True if it is to be unwatched: the
    /// caller then says so to its sender and calls [`Turns::unwatch`], or keeps it.
    #[inline]
    pub fn had_turn(&mut self, is_silent: bool) -> bool {
        self.watched.len() > WATCHED_ALWAYS && self.count_silence(is_silent)
    }

    fn count_silence(&mut self, is_silent: bool) -> bool {
        let place = self.current();
        let Some(Place::Watched(silent)) = self.places.get_mut(place) else {
            return false;
        };
        *silent = if is_silent {
            silent.saturating_add(1)
        } else {
            0
        };
        *silent >= SILENT_TURNS
    }

    /// The link at this place is no longer watched. If it was its turn, the next one has it.
    #[cold]
    pub fn unwatch(&mut self, place: usize) {
        if self.is_watched(place)
            && let Some(at) = self.watched.iter().position(|&at| at as usize == place)
        {
            self.remove_turn(at);
            self.places[place] = Place::Unwatched(self.unwatched.len() as u32);
            self.unwatched.push(place as u32);
        }
    }

    /// The link at this place is watched again: it has the next turn but the one that is on. False if it was
    /// watched, or there is none.
    #[cold]
    pub fn watch(&mut self, place: usize) -> bool {
        let Some(&Place::Unwatched(at)) = self.places.get(place) else {
            return false;
        };
        self.remove_unwatched(at);
        self.places[place] = Place::Watched(0);
        let next = (self.turn + 1).min(self.watched.len());
        self.watched.insert(next, place as u32);
        true
    }

    /// The unwatched link that this poll sweeps, if it sweeps one.
    #[inline]
    pub fn sweep(&mut self) -> Option<usize> {
        self.polls = self.polls.wrapping_add(1);
        if self.unwatched.is_empty() || !self.polls.is_multiple_of(SWEEP_POLLS) {
            return None;
        }
        if self.to_sweep == 0 || self.to_sweep > self.unwatched.len() {
            self.to_sweep = self.unwatched.len();
        }
        self.to_sweep -= 1;
        self.unwatched
            .get(self.to_sweep)
            .map(|&place| place as usize)
    }
}

#[cfg(test)]
mod tests;
