//! The offer of a stream that is bound to an item. It is for one sender. If a peer asks for it and does not present itself
//! in time, because it ended or lost interest, the stream gets new keys and is offered again.

use std::time::Duration;

use hamlyn_host::{Host, Supply};

use super::wire::StreamSeed;
use crate::error::OpenError;
use crate::item::Bound;
use crate::manager::Entered;
use crate::wait::Wait;

/// How long a peer that asked for the seed has to present itself.
const GREETING_NS: u64 = 10_000_000_000;
/// How long a receiver without a sender waits before it looks at its offer: nobody wakes it when a peer asks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Of the offers under a stream's item, the one for those who ask when the seed is given out: it says so, and stays.
const LATER: usize = 1;

/// See the module.
#[derive(Debug)]
pub(super) struct Offering {
    bound: Bound,
    /// When the offer was first seen to be gone.
    asked_ns: Option<u64>,
    /// Its sender has presented itself.
    is_over: bool,
}

impl Offering {
    pub(super) fn new(bound: Bound) -> Self {
        Self {
            bound,
            asked_ns: None,
            is_over: false,
        }
    }

    /// Whether there is still to be looked at the offer.
    pub(super) fn is_open(&self) -> bool {
        !self.is_over
    }

    /// As much of a wait as the offer may be left alone.
    pub(super) fn part_of(wait: Wait) -> Wait {
        match wait {
            Wait::For(time) if time <= LOOK_EVERY => wait,
            Wait::Poll => wait,
            Wait::For(_) | Wait::Forever => Wait::For(LOOK_EVERY),
        }
    }

    /// Whether the stream is to get new keys and to be offered again. To be called when everything that came was taken in.
    pub(super) fn is_due<H: Host>(&mut self, manager: &Entered<'_, H>, has_sender: bool) -> bool {
        if has_sender {
            self.is_over = true;
            return false;
        }
        if manager.offered_under(&self.bound) > LATER {
            self.asked_ns = None;
            return false;
        }
        let now_ns = manager.interface().host().now_ns();
        let asked_ns = *self.asked_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(asked_ns) > GREETING_NS
    }

    /// Offers the stream again.
    pub(super) fn offer<H: Host>(
        &mut self,
        manager: &mut Entered<'_, H>,
        seed: &StreamSeed,
    ) -> Result<(), OpenError> {
        self.asked_ns = None;
        manager.offer_bound(&self.bound, &seed.to_bytes(), Supply::Once)
    }
}
