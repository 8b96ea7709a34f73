//! An interface grants pages to peers, and stores into those that it was granted
//! (direct placement, decision 0006).

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::terminus::{PostError, SendHandle, TerminusId};
use hamlyn_host::{Host, HostError};
use hamlyn_ring::area::Area;
use hamlyn_ring::lending::{ExportedRegion, ImportedRegion};

use super::grants::{Accepted, Made};
use super::{Interface, TransmitterOf};
use crate::error::SendError;
use crate::grant::{ACCEPTED_MAX, AcceptError, GRANTS_MAX, Grant, GrantError, GrantTicket};
use crate::half::Half;
use crate::message::{Message, Target};
use crate::peer::LinkEnd;
use crate::slot::Slot;

/// What became of a message whose place may have been granted.
pub(super) enum Placing {
    /// It is stored in its place, and announced.
    Sent(SendHandle),
    /// There is no room to announce it.
    Full,
    /// Its place is not granted.
    NotGranted,
}

impl<H: Host> Interface<H> {
    /// Memory for a message area of whole pages (the length is rounded up), parts of which may be
    /// granted to peers. It cannot back a paranoid slot.
    pub fn allocate_shared(&mut self, length_bytes: u64) -> Result<Area, HostError> {
        Area::lendable(length_bytes).map_err(HostError::memory(length_bytes))
    }

    /// Lets a peer store into these pages of the slot by itself; see [`crate::grant`]. The range is
    /// relative to the slot, and must be whole pages of the area. Copies the pages, so it takes as
    /// long as that, and allocates as much. What is stored into them meanwhile, by other threads or
    /// other interfaces, may be lost.
    pub fn grant(
        &mut self,
        slot: &Slot,
        range: std::ops::Range<u64>,
        peer: LinkId,
    ) -> Result<Grant, GrantError> {
        self.check()?;
        self.drain_events_if_asked();
        let no_link = |end: Option<LinkEnd>| GrantError::NoLink(end.unwrap_or(LinkEnd::ClosedHere));
        let Some(to) = self.links.peer(peer).cloned() else {
            return Err(no_link(self.links.end_of(peer)));
        };
        if to.destination == self.host.identity() {
            return Err(GrantError::Loopback);
        }
        if self.granting.made.len() >= GRANTS_MAX {
            return Err(GrantError::TooMany);
        }
        let id = self
            .inbound
            .lock(|inbound| inbound.receiver.grant(slot.name, range.clone(), peer))?;
        match self.lend(slot, &range, &to) {
            Ok((lent, secret)) => {
                let ticket = GrantTicket {
                    destination: self.host.identity(),
                    slot: slot.name,
                    start: range.start,
                    length_bytes: lent.length_bytes(),
                    secret,
                };
                self.granting.made.push(Made {
                    id,
                    slot: slot.name,
                    lent,
                    secret,
                    holder: peer,
                });
                Ok(Grant { id, ticket })
            }
            Err(error) => {
                self.inbound.lock(|inbound| inbound.receiver.end_grant(id));
                Err(error)
            }
        }
    }

    fn lend(
        &mut self,
        slot: &Slot,
        range: &std::ops::Range<u64>,
        to: &hamlyn_host::Peer,
    ) -> Result<(ExportedRegion, u64), GrantError> {
        let (lent, file) = self.inbound.lock(|inbound| {
            let (area, base) = inbound
                .receiver
                .slot_place(slot.name)
                .map_err(|_| hamlyn_engine::grant::GrantRefused::NotOpen(slot.name))?;
            // The range lies in the slot and the slot in its area, so neither sum overflows.
            let lent = ExportedRegion::lend(area, base + range.start..base + range.end)?;
            Ok::<_, GrantError>(lent)
        })?;
        let secret = self.host.lend(to, file, lent.length_bytes())?;
        Ok((lent, secret))
    }

    /// Ends a grant. When this has returned, nothing that the peer does changes the area any more;
    /// what it placed and announced, but was not yet received here, is refused and counted
    /// (`Refusal::NotGranted`). A peer that is still sending learns of it by itself and sends
    /// copies.
    ///
    /// Copies the pages, and allocates as much. If there is no memory for that, packets are refused
    /// from now on, but the peer can still write the pages: free some memory and call this again.
    pub fn revoke_grant(&mut self, grant: &Grant) -> Result<(), GrantError> {
        self.check()?;
        let at = self
            .granting
            .made
            .iter()
            .position(|made| made.id == grant.id && made.secret == grant.ticket.secret)
            .ok_or(GrantError::NoSuchGrant)?;
        self.take_back(at)
    }

    /// Takes the pages of that grant back.
    fn take_back(&mut self, at: usize) -> Result<(), GrantError> {
        let made = &mut self.granting.made[at];
        self.host.withdraw_lent(made.secret);
        // While nobody deposits: what is copied to fresh pages is all that was received.
        self.inbound.lock(|inbound| {
            inbound.receiver.end_grant(made.id);
            made.lent.take_back()
        })?;
        self.granting.made.swap_remove(at);
        Ok(())
    }

    /// The slot is about to be closed: its grants end with it.
    pub(super) fn end_grants_on(&mut self, slot: SlotName) {
        let mut at = 0;
        while at < self.granting.made.len() {
            if self.granting.made[at].slot != slot {
                at += 1;
                continue;
            }
            if let Err(error) = self.take_back(at) {
                // The grant can still be revoked.
                tracing::warn!(%slot, %error, "granted pages of a closed slot were not taken back");
                at += 1;
            }
        }
    }

    /// The peer is gone: what it had, and what we had from it.
    pub(super) fn end_grants_with(&mut self, link: LinkId) {
        if self.granting.made.iter().any(|made| made.holder == link) {
            self.inbound
                .lock(|inbound| inbound.receiver.end_grants_of(link));
        }
        for made in &self.granting.made {
            if made.holder == link {
                self.host.withdraw_lent(made.secret);
                made.lent.mark_ended();
            }
        }
        self.granting
            .accepted
            .retain(|accepted| accepted.link != link);
    }

    /// Grants whose pages were not taken back yet, also those that ended with their peer.
    pub fn grants_made(&self) -> usize {
        self.granting.made.len()
    }

    /// Takes up a grant whose pages were fetched.
    pub(crate) fn take_up_grant(
        &mut self,
        ticket: &GrantTicket,
        pages: ImportedRegion,
    ) -> Result<(), AcceptError> {
        if pages.length_bytes() != ticket.length_bytes {
            return Err(AcceptError::Length {
                found_bytes: pages.length_bytes(),
                expected_bytes: ticket.length_bytes,
            });
        }
        // Others may have used the interface while they were fetched.
        let link = self.way_to_accept(ticket)?;
        self.granting.accepted.push(Accepted {
            link,
            slot: ticket.slot,
            start: ticket.start,
            pages,
        });
        Ok(())
    }

    /// The link to the owner of a grant, if there is one, and room for one more grant.
    pub(crate) fn way_to_accept(&mut self, ticket: &GrantTicket) -> Result<LinkId, AcceptError> {
        self.drain_events_if_asked();
        let link = self.links.to(&ticket.destination);
        let link = link.ok_or(AcceptError::NotLinked)?;
        self.granting
            .accepted
            .retain(|accepted| accepted.pages.lasts());
        match self.granting.accepted.len() < ACCEPTED_MAX {
            true => Ok(link),
            false => Err(AcceptError::TooMany),
        }
    }

    /// Lets go of a grant that was taken up: messages go as copies again. False if it was not there
    /// (any more).
    pub fn drop_grant(&mut self, ticket: &GrantTicket) -> bool {
        if self.is_forked() {
            return false;
        }
        let links = &self.links;
        let before = self.granting.accepted.len();
        self.granting.accepted.retain(|accepted| {
            let of_owner = links.is_to(accepted.link, &ticket.destination);
            !(of_owner && accepted.slot == ticket.slot && accepted.start == ticket.start)
        });
        self.granting.accepted.len() < before
    }

    /// Number of grants that were taken up.
    pub fn grants_accepted(&self) -> usize {
        self.granting.accepted.len()
    }

    /// Stores a message in its place and announces it, if its place was granted, and nothing stands
    /// in its way.
    #[inline(never)]
    pub(super) fn send_placed_at_once(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Option<SendHandle> {
        if self.is_asked() {
            return None;
        }
        let outbound = self.outbound.own()?;
        let length = message.data.len() as u64;
        let start = target.ticket.place(message.offset, length).ok()?;
        let place = start..start.saturating_add(length);
        let store = |_: &_, pages: &ImportedRegion, at| pages.store(at, message.data).is_ok();
        let placed = self
            .granting
            .post(outbound, terminus, target, message, place, store);
        placed.ok()?
    }

    /// Stores a message in its place and announces it, if its place was granted. `store` copies the
    /// data of the message to where they belong in the granted pages; false if they are not to be
    /// had.
    #[inline(always)]
    pub(super) fn send_placed(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        length: u64,
        store: impl Fn(&TransmitterOf<H>, &ImportedRegion, u64) -> bool,
    ) -> Result<Placing, SendError> {
        let start = target.ticket.place(message.offset, length)?;
        let place = start..start.saturating_add(length);
        let granting = &mut self.granting;
        let placed = self
            .outbound
            .lock(|outbound| granting.post(outbound, terminus, target, message, place, store));
        // A message that found no room gives a network processor nothing to do.
        if let (Half::Shared(_), Some(processor)) = (&self.outbound, &self.processor)
            && !matches!(placed, Ok(None) | Err(PostError::QueueFull))
        {
            processor.exchange.post();
        }
        match placed {
            Ok(Some(handle)) => Ok(Placing::Sent(handle)),
            Ok(None) => Ok(Placing::NotGranted),
            Err(PostError::QueueFull) => Ok(Placing::Full),
            Err(PostError::LinkGone) => Err(self.lost(target).into()),
            Err(other) => Err(other.into()),
        }
    }
}
