//! An interface begins fences, and goes on with them ([`super::fence`]).

use hamlyn_engine::memory::{LinkId, Unsent};
use hamlyn_host::{Destination, Host};

use super::Interface;
use super::fence::{Fence, Leg, Refusals, Step};
use crate::error::FenceError;
use crate::message::Target;
use crate::outbound::Outbound;
use crate::peer::LinkEnd;
use crate::peer::{PeerLost, Undelivered};

impl<H: Host> Interface<H> {
    /// A fence to all links.
    pub(crate) fn begin_fence(&mut self) -> Fence {
        self.untell_refusals();
        let links = &self.links;
        let (accepted, legs) = self.outbound.lock(|outbound| {
            let leg = |link| {
                let to = links.destination(link)?;
                Some(Leg {
                    link,
                    to,
                    asked: None,
                })
            };
            let legs: Vec<Leg> = outbound.tx_links.links().filter_map(leg).collect();
            (outbound.transmitter.accepted(), legs)
        });
        Fence {
            accepted,
            legs,
            is_to_all: true,
            refusals: Vec::new(),
            lost: None,
            untold: self.untold.clone(),
        }
    }

    /// True if a packet that came back said that the peer of a target has closed the target's slot,
    /// or port. For those that wait for an answer: nobody is there to give it.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_closed_there(&mut self, target: &Target) -> bool {
        let (link, place, is_port) = (target.link(), target.ticket().slot, target.is_port());
        self.outbound
            .lock(|outbound| outbound.tx_links.is_gone(link, place, is_port))
    }

    /// What fences that were given up did not tell, the next one does.
    fn untell_refusals(&mut self) {
        for Refusals { link, to, refused } in self.untold.take() {
            self.outbound
                .lock(|outbound| outbound.tx_links.untell(link, to, refused));
        }
    }

    /// A fence to one link.
    pub(crate) fn begin_fence_of(&mut self, link: LinkId) -> Result<Fence, FenceError> {
        self.drain_events_if_asked();
        let to = self.links.destination(link);
        Ok(self.begin_fence_to(link, to.ok_or(FenceError::NoSuchLink)?))
    }

    /// A fence to one link, which leads there.
    pub(crate) fn begin_fence_to(&mut self, link: LinkId, to: Destination) -> Fence {
        self.untell_refusals();
        let accepted = self
            .outbound
            .read(|outbound| outbound.transmitter.accepted());
        Fence {
            accepted,
            legs: vec![Leg {
                link,
                to,
                asked: None,
            }],
            is_to_all: false,
            refusals: Vec::new(),
            lost: None,
            untold: self.untold.clone(),
        }
    }

    /// Moves packets, and looks for answers; true if all peers have answered.
    pub(crate) fn continue_fence(&mut self, fence: &mut Fence) -> bool {
        self.poll();
        self.advance_fence(fence)
    }

    /// Asks what is to be asked, and looks for answers; true if all peers have answered.
    pub(super) fn advance_fence(&mut self, fence: &mut Fence) -> bool {
        let mut legs = std::mem::take(&mut fence.legs);
        legs.retain_mut(|leg| match self.advance_leg(fence, leg) {
            Step::Waits => true,
            Step::Answered => false,
            Step::Gone => {
                let (peer, end) = (leg.to, self.why_gone(leg.link, &leg.to));
                fence.lost.get_or_insert(PeerLost { peer, end });
                false
            }
        });
        fence.legs = legs;
        fence.legs.is_empty()
    }

    fn advance_leg(&mut self, fence: &mut Fence, leg: &mut Leg) -> Step {
        let accepted = fence.accepted;
        let stepped = self
            .outbound
            .lock(|outbound| leg.advance(accepted, outbound));
        match stepped {
            Ok(None) => Step::Waits,
            Ok(Some(refused)) => {
                if refused.last.is_some() {
                    let (link, to) = (leg.link, leg.to);
                    fence.refusals.push(Refusals { link, to, refused });
                }
                // Others may wait for this answer, or for a later one, and are not rung for any
                // more.
                self.other_activity += 1;
                Step::Answered
            }
            Err(Unsent::Full) => Step::Waits,
            Err(Unsent::Gone) => {
                // If its peer broke the rules, the link ends now.
                self.end_broken();
                Step::Gone
            }
        }
    }

    /// The result of a fence, after all peers have answered or the time is over.
    pub(crate) fn end_fence(&mut self, mut fence: Fence) -> Result<(), FenceError> {
        let (mut count, mut last) = (0, None);
        if fence.is_to_all {
            let ended = |outbound: &mut Outbound<_, _>| outbound.tx_links.ended.take_refused();
            let (refused, last_ended) = self.outbound.lock(ended);
            count = refused;
            last = last_ended;
        }
        for Refusals { link, to, refused } in std::mem::take(&mut fence.refusals) {
            count += refused.packets;
            if let Some((header, reason)) = refused.last {
                last = Some(Undelivered::new(link, Some(to), &header, reason));
            }
        }
        if let Some(last) = last {
            return Err(FenceError::Refused { count, last });
        }
        let lost = fence.lost.take();
        if let Some(lost) = lost.or_else(|| self.unplaced(fence.is_to_all)) {
            let forget = |outbound: &mut Outbound<_, _>| outbound.tx_links.ended.forget(&lost.peer);
            self.outbound.lock(forget);
            return Err(lost.into());
        }
        match fence.legs.first() {
            Some(leg) => Err(FenceError::TimedOut { peer: leg.to }),
            None => Ok(()),
        }
    }

    /// A peer that was gone before it had taken everything, and that no fence has told of.
    fn unplaced(&self, is_to_all: bool) -> Option<PeerLost> {
        let unplaced = |outbound: &Outbound<_, _>| outbound.tx_links.ended.unplaced();
        let peer = self.outbound.read(unplaced).filter(|_| is_to_all)?;
        let known = self.links.recent_loss(&peer);
        let end = known.map_or(LinkEnd::ClosedHere, |lost| lost.end);
        Some(PeerLost { peer, end })
    }
}

#[cfg(test)]
mod tests;
