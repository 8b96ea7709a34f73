//! Places: a number of things of one kind that peers ask for and give back, and of which nobody
//! gets all. Whoever has more than others gets less of what is left, as buffers of a switch are
//! shared by a threshold that moves with what is free.

use std::collections::HashMap;
use std::net::IpAddr;

/// Who asks, as the kernel or the handshake vouches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Asker {
    /// The process that offers. It has no share to keep to.
    Oneself,
    /// Another process of this host. The number is 0 if the process cannot be seen from here.
    Process {
        /// The user it runs as.
        user: u32,
        /// Its number.
        process: u32,
    },
    /// A program of another host. That host may claim any user, so all of its programs count as
    /// one.
    Host(IpAddr),
}

/// Whose askers share one half of the places.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Party {
    User(u32),
    Host(IpAddr),
}

/// See the module.
#[derive(Default)]
pub(crate) struct Places {
    most: u32,
    given: HashMap<u64, Asker>,
    by_asker: HashMap<Asker, u32>,
    by_party: HashMap<Party, u32>,
}

impl Asker {
    /// A process of this host, by its user and its number.
    pub(crate) fn process(user: u32, process: u32) -> Self {
        match process == std::process::id() {
            true => Self::Oneself,
            false => Self::Process { user, process },
        }
    }

    /// Nobody, for the process that offers and its user's other processes.
    fn party(self, own_user: u32) -> Option<Party> {
        match self {
            Self::Process { user, .. } if user != own_user => Some(Party::User(user)),
            Self::Host(address) => Some(Party::Host(address)),
            Self::Oneself | Self::Process { .. } => None,
        }
    }
}

impl Places {
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// How many nobody has been given.
    pub(crate) fn left(&self) -> u32 {
        self.most.saturating_sub(self.given.len() as u32)
    }

    /// Whether nobody has any.
    #[cfg(test)]
    pub(crate) fn are_all_left(&self) -> bool {
        self.given.is_empty() && self.by_asker.is_empty() && self.by_party.is_empty()
    }

    /// An asker gets a place as long as it has less than twice of what it would leave to all
    /// others, and as long as its user, unless that is ours, or its host has less than what is
    /// left. So one program ends with two thirds, and another user with half.
    pub(crate) fn has_share(&self, asker: Asker, own_user: u32) -> bool {
        let count = |of: Option<&u32>| of.copied().unwrap_or(0);
        let left = self.left();
        let by_party = asker.party(own_user).map(|party| self.by_party.get(&party));
        asker == Asker::Oneself
            || count(self.by_asker.get(&asker)) < left.saturating_mul(2)
                && by_party.is_none_or(|of| count(of) < left)
    }

    /// That place is the asker's from now on.
    pub(crate) fn give(&mut self, place: u64, asker: Asker, own_user: u32) {
        self.given.insert(place, asker);
        *self.by_asker.entry(asker).or_default() += 1;
        if let Some(party) = asker.party(own_user) {
            *self.by_party.entry(party).or_default() += 1;
        }
    }

    /// That place is nobody's any more.
    pub(crate) fn take_back(&mut self, place: u64, own_user: u32) {
        let Some(asker) = self.given.remove(&place) else {
            return;
        };
        count_down(&mut self.by_asker, asker);
        if let Some(party) = asker.party(own_user) {
            count_down(&mut self.by_party, party);
        }
    }
}

fn count_down<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, u32>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}
