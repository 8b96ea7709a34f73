//! Which of many links a poll looks at (decision 0005).
//!
//! Links that had something lately are *active*: they have turns, one after the other, and each
//! poll gives a bounded number of turns. An active link that stays silent for long becomes *idle*,
//! if more than a few links are active. The sender of an idle link sets a bit in the ready bitmap
//! for each message. Besides, polls sweep one idle link now and then, so a bit that is lost or
//! cleared only delays a message. So the cost of a poll does not depend on how many links are
//! silent, and busy links have equal turns.
//!
//! Pure: it knows indices and numbers of links, and neither their memory nor the ready bitmap.

/// Turns given by one poll.
pub const TURNS_MAX: usize = 16;
/// So many links are active, whether they have something or not.
pub const ALWAYS_ACTIVE: usize = 8;
/// Silent turns after which a link becomes idle.
pub const SILENT_TURNS: u8 = 200;
/// Polls between two sweeps.
pub const SWEEP_POLLS: u32 = 8;

const _: () = assert!(ALWAYS_ACTIVE <= TURNS_MAX);

/// What is known of one index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Vacant,
    /// With so many silent turns.
    Active(u8),
    /// At this position of the idle ones.
    Idle(u32),
}

/// The links of a receiver, by index.
#[derive(Debug, Default)]
pub struct PollSet {
    states: Vec<State>,
    /// Indices of the active links, in the order of their turns.
    active: Vec<u32>,
    /// Whose turn it is in `active`.
    turn: usize,
    idle: Vec<u32>,
    /// The idle links below this position are still to be swept in this round.
    to_sweep: usize,
    polls: u32,
}

impl PollSet {
    /// No links.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an active link at this index. Allocates if the index is new.
    pub fn insert(&mut self, index: usize) {
        if index >= self.states.len() {
            self.states.resize(index + 1, State::Vacant);
        }
        self.remove(index);
        self.states[index] = State::Active(0);
        self.active.push(index as u32);
        // Links change from one to the other without allocation.
        let most = self.states.len();
        self.active.reserve(most - self.active.len());
        self.idle.reserve(most - self.idle.len());
    }

    /// Removes the link at this index, if there is one.
    pub fn remove(&mut self, index: usize) {
        match self.states.get(index) {
            None | Some(State::Vacant) => return,
            Some(&State::Idle(at)) => self.remove_idle(at),
            Some(State::Active(_)) => {
                if let Some(at) = self.active.iter().position(|&at| at as usize == index) {
                    self.remove_turn(at);
                }
            }
        }
        self.states[index] = State::Vacant;
    }

    fn remove_idle(&mut self, at: u32) {
        self.idle.swap_remove(at as usize);
        // Rounds go downwards, so the one that was moved is not passed over.
        if let Some(&moved) = self.idle.get(at as usize) {
            self.states[moved as usize] = State::Idle(at);
        }
    }

    fn remove_turn(&mut self, at: usize) {
        self.active.remove(at);
        // The links after it move up.
        if at < self.turn {
            self.turn -= 1;
        }
        if self.turn >= self.active.len() {
            self.turn = 0;
        }
    }

    /// How many turns the next poll gives.
    #[inline]
    pub fn count(&self) -> usize {
        self.active.len().min(TURNS_MAX)
    }

    /// The indices of the active links.
    #[inline]
    pub fn active(&self) -> &[u32] {
        &self.active
    }

    /// The index whose turn it is; any number if there are no links.
    #[inline]
    pub fn current(&self) -> usize {
        self.active
            .get(self.turn)
            .map_or(0, |&index| index as usize)
    }

    /// The next link has its turn.
    #[inline]
    pub fn advance(&mut self) {
        self.turn += 1;
        if self.turn >= self.active.len() {
            self.turn = 0;
        }
    }

    /// Whether there are idle links: only then are there ready bits to take and links to sweep.
    #[inline]
    pub fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Whether the link at this index is active.
    pub fn is_active(&self, index: usize) -> bool {
        matches!(self.states.get(index), Some(State::Active(_)))
    }

    /// The link whose turn it is had something, or nothing. True if it should become idle: the
    /// caller then tells its sender and calls [`PollSet::deactivate`], or keeps it active.
    #[inline]
    pub fn had_turn(&mut self, is_silent: bool) -> bool {
        self.active.len() > ALWAYS_ACTIVE && self.count_silence(is_silent)
    }

    fn count_silence(&mut self, is_silent: bool) -> bool {
        let index = self.current();
        let Some(State::Active(silent)) = self.states.get_mut(index) else {
            return false;
        };
        *silent = if is_silent {
            silent.saturating_add(1)
        } else {
            0
        };
        *silent >= SILENT_TURNS
    }

    /// Makes the link at this index idle. If it was its turn, the next one has it.
    #[cold]
    pub fn deactivate(&mut self, index: usize) {
        if self.is_active(index)
            && let Some(at) = self.active.iter().position(|&at| at as usize == index)
        {
            self.remove_turn(at);
            self.states[index] = State::Idle(self.idle.len() as u32);
            self.idle.push(index as u32);
        }
    }

    /// Makes the link at this index active again: its turn comes after the current one. False if it
    /// is active already, or there is none.
    #[cold]
    pub fn activate(&mut self, index: usize) -> bool {
        let Some(&State::Idle(at)) = self.states.get(index) else {
            return false;
        };
        self.remove_idle(at);
        self.states[index] = State::Active(0);
        let next = (self.turn + 1).min(self.active.len());
        self.active.insert(next, index as u32);
        true
    }

    /// The idle link that this poll sweeps, if it sweeps one.
    #[inline]
    pub fn sweep(&mut self) -> Option<usize> {
        self.polls = self.polls.wrapping_add(1);
        if self.idle.is_empty() || !self.polls.is_multiple_of(SWEEP_POLLS) {
            return None;
        }
        if self.to_sweep == 0 || self.to_sweep > self.idle.len() {
            self.to_sweep = self.idle.len();
        }
        self.to_sweep -= 1;
        self.idle.get(self.to_sweep).map(|&index| index as usize)
    }
}

#[cfg(test)]
mod tests;
