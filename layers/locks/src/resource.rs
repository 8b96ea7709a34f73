//! One resource: its holders, its queue and its value block. A pure state machine.
//!
//! The queue is served in order: its head is granted once it is compatible with all that is held,
//! and nothing behind it before. A conversion enters before the new requests, but lets one of them
//! be passed by [`PASSES_MAX`] conversions only: so conversions cannot starve it. It always
//! passes those that its own hold blocks, as they wait for it.

use std::collections::VecDeque;

use crate::mode::{MODES, Mode};

/// Bytes of a value block.
pub const VALUE_BYTES: usize = 64;
/// Conversions that may pass a new request which they do not block by the mode that they hold.
pub(crate) const PASSES_MAX: u8 = 8;

/// A lock, by its number.
pub(crate) type LockId = u32;

/// A lock that is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub(crate) lock: LockId,
    pub(crate) mode: Mode,
    /// It was told that it blocks somebody.
    is_told: bool,
}

/// A request or a conversion that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiting {
    pub(crate) lock: LockId,
    pub(crate) wanted: Mode,
    /// It is the conversion of a lock that is held.
    is_conversion: bool,
    passed: u8,
}

/// News for the holder of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// It is held in the mode that was wanted.
    Granted(LockId),
    /// It blocks somebody who wants that mode.
    Blocking(LockId, Mode),
}

/// A value block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Value {
    pub(crate) bytes: [u8; VALUE_BYTES],
    /// No holder in PW or EX has died since it was written.
    pub(crate) is_valid: bool,
}

/// The place in the queue that a request would have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    at: usize,
    /// It would be granted at once.
    pub(crate) is_granted: bool,
    /// It excludes nothing new.
    is_free: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Resource {
    held: Vec<Held>,
    queue: VecDeque<Waiting>,
    /// Locks that are held in each mode, and that wait for each.
    held_in: [u32; 6],
    wanted_in: [u32; 6],
    value: Option<Box<Value>>,
    seen: Seen,
}

/// The part of a resource that a search for a deadlock has looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    search: u32,
    /// So much of the queue, and holders in these modes.
    before: usize,
    modes: u8,
}

impl Resource {
    pub(crate) fn is_unused(&self) -> bool {
        self.held.is_empty() && self.queue.is_empty()
    }

    /// Number of locks, counted twice while they are converted.
    pub(crate) fn len(&self) -> usize {
        self.held.len() + self.queue.len()
    }

    pub(crate) fn has_queue(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(crate) fn mode_of(&self, lock: LockId) -> Option<Mode> {
        let held = self.held.iter().find(|held| held.lock == lock);
        held.map(|held| held.mode)
    }

    pub(crate) fn is_waiting(&self, lock: LockId) -> bool {
        self.queue.iter().any(|waiting| waiting.lock == lock)
    }

    /// The locks that wait, in their order.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> impl Iterator<Item = LockId> {
        self.queue.iter().map(|one| one.lock)
    }

    pub(crate) fn value(&self) -> Option<&Value> {
        self.value.as_deref()
    }

    /// True if the mode is compatible with all that is held, but for the mode that the same lock
    /// has.
    fn is_compatible(&self, wanted: Mode, own: Option<Mode>) -> bool {
        let others = |mode: Mode| self.held_in[mode as usize] - u32::from(own == Some(mode));
        let mut modes = MODES.into_iter();
        modes.all(|mode| mode.is_compatible(wanted) || others(mode) == 0)
    }

    /// The place of a lock that wants this mode: a new one, or one that is held. It must not wait
    /// already.
    pub(crate) fn place(&self, lock: LockId, wanted: Mode) -> Place {
        let own = self.mode_of(lock);
        let is_free = wanted.is_weaker_or_same(own.unwrap_or(Mode::Nl));
        let at = match own {
            _ if is_free => 0,
            None => self.queue.len(),
            Some(own) => self.place_of_conversion(own),
        };
        Place {
            at,
            is_granted: at == 0 && self.is_compatible(wanted, own),
            is_free,
        }
    }

    fn place_of_conversion(&self, own: Mode) -> usize {
        let may_pass = |one: &&Waiting| !one.is_conversion && one.passed < PASSES_MAX;
        let passed = self.queue.iter().rev().take_while(may_pass).count();
        // Those that its own hold blocks would wait for it, and it for them.
        let blocks = |one: &Waiting| !one.wanted.is_compatible(own);
        let first_blocked = self.queue.iter().position(blocks);
        let at = self.queue.len() - passed;
        first_blocked.map_or(at, |first| first.min(at))
    }

    /// Has a lock wait at its place.
    pub(crate) fn enter(&mut self, lock: LockId, wanted: Mode, place: Place) {
        if !place.is_free {
            let passed = self.queue.range_mut(place.at..);
            passed.for_each(|one| one.passed = one.passed.saturating_add(1));
        }
        let is_conversion = self.mode_of(lock).is_some();
        let waiting = Waiting {
            lock,
            wanted,
            is_conversion,
            passed: 0,
        };
        self.queue.insert(place.at, waiting);
        self.wanted_in[wanted as usize] += 1;
    }

    /// The next time that it blocks somebody it is told again.
    pub(crate) fn untell(&mut self, lock: LockId) {
        if let Some(held) = self.held.iter_mut().find(|held| held.lock == lock) {
            held.is_told = false;
        }
    }

    /// Has a lock wait no more. False if it did not.
    pub(crate) fn leave_queue(&mut self, lock: LockId) -> bool {
        let at = self.queue.iter().position(|waiting| waiting.lock == lock);
        let Some(waiting) = at.and_then(|at| self.queue.remove(at)) else {
            return false;
        };
        self.wanted_in[waiting.wanted as usize] -= 1;
        true
    }

    /// Removes a lock that does not wait. The mode that it was held in.
    pub(crate) fn remove(&mut self, lock: LockId) -> Option<Mode> {
        let at = self.held.iter().position(|held| held.lock == lock)?;
        let mode = self.held.swap_remove(at).mode;
        self.held_in[mode as usize] -= 1;
        Some(mode)
    }

    pub(crate) fn set_value(&mut self, bytes: [u8; VALUE_BYTES]) {
        let is_valid = true;
        self.value = Some(Box::new(Value { bytes, is_valid }));
    }

    /// The holder of a lock in this mode has died: what it was about to write is lost.
    pub(crate) fn doubt_value(&mut self, mode: Mode) {
        if mode.writes_value() {
            let zeroes = || {
                Box::new(Value {
                    bytes: [0; VALUE_BYTES],
                    is_valid: false,
                })
            };
            self.value.get_or_insert_with(zeroes).is_valid = false;
        }
    }

    /// Grants what can be granted, and tells those who block somebody.
    pub(crate) fn advance(&mut self, news: &mut Vec<News>) {
        while let Some(&Waiting { lock, wanted, .. }) = self.queue.front() {
            let own = self.mode_of(lock);
            if !self.is_compatible(wanted, own) {
                break;
            }
            self.queue.pop_front();
            self.wanted_in[wanted as usize] -= 1;
            self.held_in[wanted as usize] += 1;
            match self.held.iter_mut().find(|held| held.lock == lock) {
                Some(held) => {
                    self.held_in[held.mode as usize] -= 1;
                    held.mode = wanted;
                    held.is_told = false;
                }
                None => self.held.push(Held {
                    lock,
                    mode: wanted,
                    is_told: false,
                }),
            }
            news.push(News::Granted(lock));
        }
        if self.has_queue() {
            self.tell_blocking(news);
        }
    }

    fn tell_blocking(&mut self, news: &mut Vec<News>) {
        let (wanted_in, queue) = (&self.wanted_in, &self.queue);
        for held in self.held.iter_mut().filter(|held| !held.is_told) {
            let blocks = |wanted: Mode| !wanted.is_compatible(held.mode);
            if !MODES
                .into_iter()
                .any(|mode| wanted_in[mode as usize] > 0 && blocks(mode))
            {
                continue;
            }
            // A lock that is converted does not block itself.
            let blocked = queue
                .iter()
                .find(|one| one.lock != held.lock && blocks(one.wanted));
            if let Some(blocked) = blocked {
                held.is_told = true;
                news.push(News::Blocking(held.lock, blocked.wanted));
            }
        }
    }

    /// Forgets who was told, so that the next advance tells all who block somebody.
    pub(crate) fn untell_all(&mut self) {
        self.held.iter_mut().for_each(|held| held.is_told = false);
    }

    /// Calls for each lock that a waiting one waits for: those before it in the queue, and holders
    /// that are in its way. True is said of those that conflict with it. Those that were shown in a
    /// search with the same number are not shown again, so that a search shows each lock a few
    /// times at most.
    pub(crate) fn waits_for(
        &mut self,
        lock: LockId,
        search: Option<u32>,
        mut each: impl FnMut(LockId, bool),
    ) {
        let Some(at) = self.queue.iter().position(|waiting| waiting.lock == lock) else {
            return;
        };
        let wanted = self.queue[at].wanted;
        let mut seen = match search {
            Some(search) if self.seen.search == search => self.seen,
            _ => Seen::default(),
        };
        let is_seen = |mode: Mode| seen.modes >> (mode as u8) & 1 == 1;
        for held in &self.held {
            if held.lock != lock && !held.mode.is_compatible(wanted) && !is_seen(held.mode) {
                each(held.lock, true);
            }
        }
        if seen.before < at {
            let before = self.queue.range(seen.before..at);
            before.for_each(|one| each(one.lock, !one.wanted.is_compatible(wanted)));
        }
        let blocked = MODES.into_iter().filter(|mode| !mode.is_compatible(wanted));
        seen.modes |= blocked.fold(0, |modes, mode| modes | 1 << (mode as u8));
        seen.before = seen.before.max(at);
        if let Some(search) = search {
            self.seen = Seen { search, ..seen };
        }
    }
}
