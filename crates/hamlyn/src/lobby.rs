//! A lobby: places that are offered under an item to peers which nobody knows yet, a few at a time.
//!
//! Each asker gets what is needed to fill one place. It has ten seconds to present itself there;
//! then the place is taken back. Nobody gets all places: the host counts them for the user and the
//! process that ask ([`hamlyn_host`]), and tells those who ask in vain why.
//!
//! The owner opens what a place consists of, its *guest*, hears the greeting, and lets the guest
//! in.

use std::collections::VecDeque;
use std::time::Duration;

use hamlyn_engine::memory::LinkId;
use hamlyn_host::{Destination, Host};

use crate::error::OpenError;
use crate::item::{Bound, Place};
use crate::remains::{Leaving, Remains};
use crate::session::Session;

/// Time that an asker has to present itself, in nanoseconds.
const GREETING_NS: u64 = 10_000_000_000;
/// How often the owner looks who has asked: nobody wakes it for that.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The parts of a place before somebody has it.
pub(crate) trait Guest {
    /// The parts that are to be closed when nobody takes the place.
    fn remains(&self) -> Remains;
}

/// A place that is offered, or was asked for.
struct Offered<T> {
    place: Place,
    guest: T,
    /// When it was seen that somebody had asked for it.
    asked_ns: Option<u64>,
}

/// See the module.
pub(crate) struct Lobby<T: Guest> {
    /// Places that there may be, filled or not.
    most: u16,
    /// Places that are offered at a time.
    ahead: usize,
    /// In the order in which they are given out.
    offered: VecDeque<Offered<T>>,
    /// There may be room to offer another place.
    is_untidy: bool,
    /// Peers that had come and gone when it was last tidied.
    peers_happened: u64,
    /// Peers that broke the protocol of the owner.
    pub(crate) misbehaved: u64,
    leaving: Leaving,
}

impl<T: Guest> Drop for Lobby<T> {
    fn drop(&mut self) {
        for offered in &self.offered {
            self.leaving.leave(offered.guest.remains());
        }
    }
}

impl<T: Guest> Lobby<T> {
    /// A lobby of at most `most` places, of which `ahead` are offered at a time.
    pub(crate) fn new(most: u16, ahead: usize, leaving: Leaving) -> Self {
        Self {
            most,
            ahead,
            offered: VecDeque::new(),
            is_untidy: false,
            peers_happened: 0,
            misbehaved: 0,
            leaving,
        }
    }

    /// Offers places until enough are, as far as there may be more beside the `filled` ones. `open`
    /// gives a guest, and the bytes that its asker gets. If no further place can be had, those who
    /// ask in vain are told so.
    pub(crate) fn offer<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bound: &Bound,
        filled: usize,
        mut open: impl FnMut(&mut Session<'_, H>) -> Result<(T, Vec<u8>), OpenError>,
    ) -> Result<(), OpenError> {
        let is_open = |offered: &&Offered<T>| offered.asked_ns.is_none();
        let mut unasked = self.offered.iter().filter(is_open).count();
        while unasked < self.ahead && self.offered.len() + filled < usize::from(self.most) {
            let (guest, seed) = match open(session) {
                Ok(opened) => opened,
                Err(error) => {
                    session.core.run_short(bound);
                    return Err(error);
                }
            };
            let place = match session.core.offer_place(bound, self.most, &seed) {
                Ok(place) => place,
                Err(error) => {
                    self.leaving.leave(guest.remains());
                    session.core.reap();
                    return Err(error);
                }
            };
            self.offered.push_back(Offered {
                place,
                guest,
                asked_ns: None,
            });
            unasked += 1;
        }
        Ok(())
    }

    /// A guest that was not let in, by its number: they are in the order in which their places are
    /// given out.
    pub(crate) fn guest_mut(&mut self, at: usize) -> Option<&mut T> {
        Some(&mut self.offered.get_mut(at)?.guest)
    }

    /// The number of that guest.
    pub(crate) fn position(&self, is_it: impl Fn(&T) -> bool) -> Option<usize> {
        self.offered
            .iter()
            .position(|offered| is_it(&offered.guest))
    }

    /// A peer presents itself at the place of guest `at`, over the link `from`, as `destination`:
    /// the guest, unless the link leads elsewhere. Then the peer would have its owner write to
    /// somebody else; or its link has ended, and another has its place: then it broke no rule.
    pub(crate) fn admit<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        at: usize,
        from: LinkId,
        destination: &Destination,
    ) -> Option<(Place, T)> {
        match session.led_to(from, destination) {
            Some(true) => {
                self.is_untidy = true;
                let offered = self.offered.remove(at)?;
                Some((offered.place, offered.guest))
            }
            Some(false) => {
                self.refuse(at);
                None
            }
            None => {
                self.dismiss(at);
                None
            }
        }
    }

    /// Takes a place back: whoever asked for it broke the protocol.
    pub(crate) fn refuse(&mut self, at: usize) {
        self.misbehaved += 1;
        self.dismiss(at);
    }

    /// Takes a place back.
    pub(crate) fn dismiss(&mut self, at: usize) {
        if let Some(offered) = self.offered.remove(at) {
            self.leaving.leave(offered.guest.remains());
        }
        self.is_untidy = true;
    }

    /// A place is free again.
    pub(crate) fn vacate(&mut self) {
        self.is_untidy = true;
    }

    /// True if there may be something to offer or to take back; late askers aside.
    pub(crate) fn is_untidy<H: Host>(&self, session: &mut Session<'_, H>) -> bool {
        self.is_untidy || session.peers_happened() != self.peers_happened
    }

    /// Begins to tidy: notes who has asked, and has the owner look again in time. True if somebody who asked is late: then the owner
    /// takes in what has come, before [`Lobby::dismiss_late`], because greetings that have come
    /// count, however long nobody looked.
    pub(crate) fn begin_tidy<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bound: &Bound,
    ) -> bool {
        self.is_untidy = false;
        self.peers_happened = session.peers_happened();
        session.look_within(LOOK_EVERY);
        let now_ns = session.host().now_ns();
        let unasked = session.core.offered_under(bound);
        let asked = self.offered.len().saturating_sub(unasked);
        for offered in self.offered.iter_mut().take(asked) {
            offered.asked_ns.get_or_insert(now_ns);
        }
        self.offered.iter().any(|offered| offered.is_late(now_ns))
    }

    /// Takes back the places of those that did not present themselves in time.
    pub(crate) fn dismiss_late<H: Host>(&mut self, session: &Session<'_, H>) {
        let now_ns = session.host().now_ns();
        let leaving = &self.leaving;
        self.offered.retain(|offered| {
            let is_late = offered.is_late(now_ns);
            if is_late {
                leaving.leave(offered.guest.remains());
            }
            !is_late
        });
    }
}

impl<T> Offered<T> {
    fn is_late(&self, now_ns: u64) -> bool {
        let since_ns = self
            .asked_ns
            .map(|asked_ns| now_ns.saturating_sub(asked_ns));
        since_ns.is_some_and(|since_ns| since_ns > GREETING_NS)
    }
}
