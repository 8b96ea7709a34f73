//! The offer of a stream that is bound to an item. It is for one sender. If a peer asks for it and
//! does not present itself in time, because it ended or lost interest, the stream gets new keys and
//! is offered again.

use std::time::Duration;

use hamlyn_host::{Host, Supply};

use super::wire::StreamSeed;
use crate::error::OpenError;
use crate::item::Bound;
use crate::session::Session;

/// How long a peer that asked for the seed has to present itself.
const GREETING_NS: u64 = 10_000_000_000;
/// How long a receiver without a sender waits before it looks at its offer: nobody wakes it when a
/// peer asks.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Of the offers under a stream's item, the one for those who ask when the seed is given out: it
/// says so, and stays.
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

    /// Whether the stream is to get new keys and to be offered again. To be called when everything
    /// that came was taken in.
    pub(super) fn is_due<H: Host>(&mut self, session: &Session<'_, H>, has_sender: bool) -> bool {
        if has_sender {
            self.is_over = true;
            return false;
        }
        if session.core.offered_under(&self.bound) > LATER {
            self.asked_ns = None;
            return false;
        }
        let now_ns = session.host().now_ns();
        let asked_ns = *self.asked_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(asked_ns) > GREETING_NS
    }

    /// Offers the stream again.
    pub(super) fn offer<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        seed: &StreamSeed,
    ) -> Result<(), OpenError> {
        self.asked_ns = None;
        session
            .core
            .offer_bound(&self.bound, &seed.to_bytes(), Supply::Once)
    }
}
