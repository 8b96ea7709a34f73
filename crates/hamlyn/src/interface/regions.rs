//! Regions of an interface: those that it shares, and those of others that it has attached.

use std::sync::{Arc, Weak};

use hamlyn_engine::grant::{GrantId, Holder};
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::SlotName;
use hamlyn_ring::pool::SharedPool;
use hamlyn_ring::region::{AttachedRegion, SharedRegion};
use hamlyn_ring::shared::DirectWindow;
use hamlyn_ring::streaming::StreamingHeuristic;

use crate::region::{Attached, PLACED_BYTES_MIN, RegionTicket};
use crate::ticket::Ticket;

/// A region whose pages are not taken back yet.
pub(super) struct Shared {
    pub(super) id: GrantId,
    pub(super) slot: SlotName,
    pub(super) region: SharedRegion,
    pub(super) secret: u64,
    pub(super) holder: Holder,
}

/// Memory of a peer that is mapped here.
pub(super) struct Mapped {
    attached: Attached,
    /// Its beginning in the slot.
    start: u64,
    pub(super) streaming: StreamingHeuristic,
}

impl Mapped {
    /// True if all of that range of a slot lies in it.
    #[inline(always)]
    fn covers(&self, slot: SlotName, offset: u64, length: u64) -> bool {
        self.attached.ticket.ticket.slot == slot
            && offset
                .checked_sub(self.start)
                .and_then(|within| within.checked_add(length))
                .is_some_and(|end| end <= self.region().length_bytes())
    }

    /// Stores bytes; false if they do not lie in it.
    #[inline(always)]
    pub(super) fn store(&self, at: u64, bytes: &[u8]) -> bool {
        self.region().store(at, bytes, &self.streaming).is_ok()
    }

    #[inline(always)]
    pub(super) fn region(&self) -> &AttachedRegion {
        &self.attached.region
    }
}

/// The regions of one peer.
#[derive(Default)]
struct OfLink {
    link: Option<LinkId>,
    mapped: Vec<Mapped>,
    /// The place of the one into which the last message was stored: most likely the next one goes
    /// there.
    recent: usize,
}

/// Every region that is attached, by the index of the link to its owner. Placed messages, one-sided
/// operations and readers of pools ask it.
#[derive(Default)]
pub(super) struct AttachedRegions {
    /// Empty if none is attached: then sends do not look.
    by_link: Vec<OfLink>,
    /// Pools, by their owner and their number, as long as a program reads them.
    pools: Vec<(LinkId, u64, Weak<AttachedRegion>)>,
}

impl AttachedRegions {
    /// True if a message of that length might be placed.
    #[inline(always)]
    pub(super) fn may_place(&self, length_bytes: u64) -> bool {
        length_bytes >= PLACED_BYTES_MIN && !self.by_link.is_empty()
    }

    fn of(&self, link: LinkId) -> Option<&OfLink> {
        let of = self.by_link.get(link.index as usize)?;
        (of.link == Some(link)).then_some(of)
    }

    fn of_mut(&mut self, link: LinkId) -> &mut OfLink {
        let index = link.index as usize;
        if self.by_link.len() <= index {
            self.by_link.resize_with(index + 1, OfLink::default);
        }
        let of = &mut self.by_link[index];
        if of.link != Some(link) {
            *of = OfLink {
                link: Some(link),
                ..OfLink::default()
            };
        }
        of
    }

    /// The region in which all of a range may be stored, and where. One that has ended is let go.
    #[inline(always)]
    pub(super) fn covers(
        &mut self,
        link: LinkId,
        slot: SlotName,
        offset: u64,
        length: u64,
    ) -> Option<(&Mapped, u64)> {
        let of = self.by_link.get_mut(link.index as usize)?;
        if of.link != Some(link) {
            return None;
        }
        let is_recent = |mapped: &Mapped| mapped.covers(slot, offset, length);
        if !of.mapped.get(of.recent).is_some_and(is_recent) {
            of.recent = of.mapped.iter().position(is_recent)?;
        }
        if !of.mapped.get(of.recent)?.region().lasts() {
            of.mapped.swap_remove(of.recent);
            return None;
        }
        let mapped = of.mapped.get(of.recent)?;
        let is_writable = mapped.region().is_writable();
        is_writable.then(|| (mapped, offset - mapped.start))
    }

    /// The window in which operations on a ticket's place may be made.
    pub(super) fn window(&self, link: LinkId, ticket: &Ticket) -> Option<DirectWindow> {
        let Ticket {
            base, length_bytes, ..
        } = *ticket;
        let mut all = self.of(link)?.mapped.iter();
        let mapped = all.find(|mapped| {
            let of = &mapped.attached.ticket;
            mapped.covers(ticket.slot, base, length_bytes)
                && of.ticket.key == ticket.key
                && of.serves_operations()
                && mapped.region().lasts()
        })?;
        let from = base - mapped.start;
        mapped
            .attached
            .region
            .direct_window(from..from + length_bytes)
    }

    /// The pool with that number, if a program reads it already.
    pub(super) fn pool(&self, link: LinkId, number: u64) -> Option<SharedPool> {
        let mut pools = self.pools.iter();
        let (.., region) = pools.find(|(of, known, _)| (*of, *known) == (link, number))?;
        let region = region.upgrade().filter(|region| region.lasts())?;
        Some(SharedPool::of_region(region))
    }

    pub(super) fn insert_pool(&mut self, link: LinkId, number: u64, pool: &SharedPool) {
        let is_it = |of: LinkId, known: u64| (of, known) == (link, number);
        self.pools
            .retain(|(of, known, region)| !is_it(*of, *known) && region.strong_count() > 0);
        self.pools
            .push((link, number, Arc::downgrade(pool.region())));
    }

    /// The region of that ticket, if it is attached already.
    pub(super) fn find(&self, link: LinkId, ticket: &RegionTicket) -> Option<Attached> {
        let mut all = self.of(link)?.mapped.iter().map(|mapped| &mapped.attached);
        all.find(|attached| attached.ticket == *ticket).cloned()
    }

    pub(super) fn insert(&mut self, attached: Attached) {
        self.of_mut(attached.link).mapped.push(Mapped {
            start: attached.ticket.ticket.base,
            attached,
            streaming: StreamingHeuristic::new(),
        });
    }

    /// Forgets regions that have ended.
    pub(super) fn prune(&mut self) {
        for of in &mut self.by_link {
            of.mapped.retain(|mapped| mapped.attached.lasts());
        }
        self.forget_if_empty();
    }

    fn forget_if_empty(&mut self) {
        if self.by_link.iter().all(|of| of.mapped.is_empty()) {
            self.by_link.clear();
        }
    }

    /// The peer is gone: nobody answers for what its memory says.
    pub(super) fn end_of(&mut self, link: LinkId) {
        if self.of(link).is_some() {
            let of = &mut self.by_link[link.index as usize];
            for mapped in &of.mapped {
                mapped.region().detach();
            }
            *of = OfLink::default();
            self.forget_if_empty();
        }
        self.pools.retain(|(of, ..)| *of != link);
    }

    pub(super) fn len(&self) -> usize {
        self.by_link.iter().map(|of| of.mapped.len()).sum()
    }
}
