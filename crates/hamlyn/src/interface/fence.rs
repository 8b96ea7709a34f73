//! Fences: completion at the receiver (decision 0020; `Hamlyn 6.2` has completion at the sender
//! only).
//!
//! A fence first waits until what was queued is handed to the links, then asks each peer to say
//! when it has taken all that was sent, and waits for the answers. Peers answer apart: one that
//! does not keeps the fence from ending well, and holds up nothing else.

use hamlyn_engine::memory::{LinkId, Unsent};
use hamlyn_engine::send_observer::SendObserver;
use hamlyn_host::Destination;
use hamlyn_link::TransmitEnd;
use hamlyn_ring::area::Area;

use crate::drop_list::DropList;
use crate::outbound::{NewlyRefused, Outbound};
use crate::peer::PeerLost;
use crate::tasks::Interest;

/// A fence under way.
pub(crate) struct Fence {
    /// Messages that had been accepted when it began: those that wait are waited for.
    pub(super) accepted: u64,
    /// Links whose peers have not answered.
    pub(super) legs: Vec<Leg>,
    /// Whether it is to all links, also to those that ended since the fence before.
    pub(super) is_to_all: bool,
    /// What those that have answered had refused, if anything.
    pub(super) refusals: Vec<Refusals>,
    pub(super) lost: Option<PeerLost>,
    /// Where refusals are noted of which this fence tells nobody after all.
    pub(super) untold: Untold,
}

/// What a peer had refused when it answered a fence.
pub(crate) struct Refusals {
    pub(super) link: LinkId,
    pub(super) to: Destination,
    pub(super) refused: NewlyRefused,
}

/// Refusals that fences were told of which were given up. The next fence tells of them.
pub(crate) type Untold = DropList<Refusals>;

impl Fence {
    /// The interest of a task while peers have not answered.
    pub(crate) fn interest(&self) -> Interest {
        match self.legs.as_slice() {
            &[
                Leg {
                    link,
                    asked: Some(asked),
                    ..
                },
            ] => Interest::Fence(link, asked),
            // There was no room for a question; or the answers of several peers are waited for.
            _ => Interest::Anything,
        }
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        for refusals in self.refusals.drain(..) {
            self.untold.note(refusals);
        }
    }
}

pub(super) struct Leg {
    pub(super) link: LinkId,
    pub(super) to: Destination,
    /// The number of the question, once it is put.
    pub(super) asked: Option<u64>,
}

/// What became of a leg.
pub(super) enum Step {
    Waits,
    Answered,
    Gone,
}

impl Leg {
    /// Asks when nothing of it waits any more, then looks for the answer.
    pub(super) fn advance<T: TransmitEnd, S: SendObserver<Area>>(
        &mut self,
        accepted: u64,
        outbound: &mut Outbound<T, S>,
    ) -> Result<Option<NewlyRefused>, Unsent> {
        let tx_links = &mut outbound.tx_links;
        let asked = match self.asked {
            Some(asked) => asked,
            None if outbound.transmitter.waits_before(self.link, accepted) => return Ok(None),
            None => *self.asked.insert(tx_links.fence(self.link)?),
        };
        tx_links.answer(self.link, asked)
    }
}
