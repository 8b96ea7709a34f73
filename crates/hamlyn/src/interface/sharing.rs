//! An interface shares regions of its slots, and stores into those that it has attached
//! ([`crate::region`]).

use std::ops::Range;
use std::sync::Arc;

use hamlyn_engine::grant::{GrantRefused, Holder};
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::{Kind, SlotName};
use hamlyn_engine::slot::Rights;
use hamlyn_engine::terminus::{PostError, SendHandle, TerminusId};
use hamlyn_host::{Destination, Host, HostError, Peer};
use hamlyn_ring::pool::{Pool, SharedPool};
use hamlyn_ring::region::{AttachedRegion, SharedRegion};
use hamlyn_ring::shared::Access;

use super::regions::{Mapped, Shared};
use super::{Interface, TransmitterOf};
use crate::error::SendError;
use crate::half::Half;
use crate::message::{Message, Target, compose_as};
use crate::outbound::Outbound;
use crate::peer::LinkEnd;
use crate::region::{
    ATTACHED_MAX, AttachError, Attached, Holders, REGIONS_MAX, Region, RegionTicket, ShareError,
};
use crate::slot::Slot;

/// Result of an attempt to place a message ([`Interface::try_place`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placing {
    /// It is stored in its place, and announced.
    Sent(SendHandle),
    /// There is no room to announce it at present.
    Full,
    /// Its place is in no region that is attached for writing.
    NotAttached,
}

impl<H: Host> Interface<H> {
    /// Lets peers attach these pages of the slot; see [`crate::region`]. The range is relative to
    /// the slot, and must be whole pages of its area, which [`Area::shared`](crate::Area::shared)
    /// has made. [`Access::ReadOnly`] needs a slot that grants [`Rights::READ`] alone, as holders
    /// of the ticket have the slot's key; [`Access::Writable`] one that grants [`Rights::WRITE`].
    /// Memory that cannot be shared, of [`Area::from_raw`](crate::Area::from_raw) say, is
    /// [`ShareError::Memory`], and the slot stays as it is: its peers send packets.
    ///
    /// Allocates. If the range is not all of its area, copies the pages, and what is stored into
    /// them meanwhile, by other threads or other interfaces, may be lost.
    pub fn share(
        &mut self,
        slot: &Slot,
        range: Range<u64>,
        access: Access,
        holders: Holders,
    ) -> Result<Region, ShareError> {
        self.check()?;
        self.drain_events_if_asked();
        let peer = self.holder(holders)?;
        if self.shared.len() >= REGIONS_MAX {
            return Err(ShareError::TooMany);
        }
        let rights = self.slot_info(slot)?.rights;
        let holder = match (access, holders) {
            (Access::ReadOnly, _) if rights == Rights::READ => Holder::Nobody,
            (Access::Writable, Holders::One(link)) if rights.grant(Rights::WRITE) => {
                Holder::Peer(link)
            }
            (Access::Writable, Holders::Linked) if rights.grant(Rights::WRITE) => Holder::Linked,
            _ => return Err(ShareError::Rights),
        };
        let (name, place) = (slot.name, range.clone());
        let (id, region) = self.inbound.lock(|inbound| -> Result<_, ShareError> {
            let receiver = &mut inbound.receiver;
            let id = receiver.grant(name, place.clone(), holder)?;
            let shared = receiver.slot_place(name).map(|(area, base)| {
                // The range lies in the slot and the slot in its area, so neither sum overflows.
                SharedRegion::share(area, base + place.start..base + place.end, access)
            });
            match shared {
                Ok(Ok(region)) => Ok((id, region)),
                Ok(Err(error)) => {
                    receiver.end_grant(id);
                    Err(error.into())
                }
                Err(_) => Err(GrantRefused::NotOpen(name).into()),
            }
        })?;
        // The granted range lies in the slot, but this handle may be another interface's.
        let of_pages = slot.fast_ticket(range.start, region.length_bytes());
        let of_pages = of_pages.map_err(|_| GrantRefused::NotOpen(name).into());
        let shared = of_pages.and_then(|ticket| {
            let secret = self.host.share(Arc::clone(region.files()), peer.as_ref())?;
            Ok(RegionTicket {
                ticket,
                rights,
                secret,
            })
        });
        let ticket = match shared {
            Ok(ticket) => ticket,
            Err(error) => {
                self.inbound.lock(|inbound| inbound.receiver.end_grant(id));
                return Err(error);
            }
        };
        self.shared.push(Shared {
            id,
            slot: name,
            region,
            secret: ticket.secret,
            holder: match holders {
                Holders::One(link) => Holder::Peer(link),
                Holders::Linked => Holder::Linked,
            },
        });
        Ok(Region { id, ticket })
    }

    /// The one peer that is to hold something.
    fn holder(&self, holders: Holders) -> Result<Option<Peer>, ShareError> {
        let Holders::One(link) = holders else {
            return Ok(None);
        };
        let Some(peer) = self.links.peer(link) else {
            let end = self.links.end_of(link).unwrap_or(LinkEnd::ClosedHere);
            return Err(ShareError::NoLink(end));
        };
        match peer.destination == self.host.identity() {
            true => Err(ShareError::Loopback),
            false => Ok(Some(peer.clone())),
        }
    }

    /// Ends a region. When this has returned, nothing that holders do changes the area any more.
    /// Messages that a holder placed and announced, but that were not yet received here, are
    /// refused and counted (`Refusal::NotGranted`). Holders that go on learn of it by themselves
    /// and send packets.
    ///
    /// Copies the pages that are there, and allocates as much. If there is no memory for that, no
    /// message is placed and nobody can attach the region any more, but holders can still write the
    /// pages: free some memory and call this again.
    pub fn revoke(&mut self, region: &Region) -> Result<(), ShareError> {
        self.check()?;
        let is_it =
            |shared: &Shared| shared.id == region.id && shared.secret == region.ticket.secret;
        let at = self.shared.iter().position(is_it);
        self.take_back(at.ok_or(ShareError::NoSuchRegion)?)
    }

    fn take_back(&mut self, at: usize) -> Result<(), ShareError> {
        let shared = &mut self.shared[at];
        self.host.withdraw_region(shared.secret);
        // While nobody deposits: what is copied to fresh pages is all that was received.
        self.inbound.lock(|inbound| {
            inbound.receiver.end_grant(shared.id);
            shared.region.take_back()
        })?;
        self.shared.swap_remove(at);
        Ok(())
    }

    /// The slot is about to be closed: its regions end with it.
    pub(super) fn end_regions_on(&mut self, slot: SlotName) {
        let mut at = 0;
        while at < self.shared.len() {
            if self.shared[at].slot != slot {
                at += 1;
                continue;
            }
            if let Err(error) = self.take_back(at) {
                // The region can still be revoked.
                tracing::warn!(%slot, %error, "shared pages of a closed slot were not taken back");
                at += 1;
            }
        }
    }

    /// The peer is gone: regions that were shared with it alone end.
    pub(super) fn end_regions_with(&mut self, link: LinkId) {
        let of_peer = |shared: &&Shared| shared.holder == Holder::Peer(link);
        if self.shared.iter().any(|shared| of_peer(&shared)) {
            self.inbound
                .lock(|inbound| inbound.receiver.end_grants_of(link));
        }
        for shared in self.shared.iter().filter(of_peer) {
            self.host.withdraw_region(shared.secret);
            shared.region.mark_ended();
        }
    }

    /// Regions whose pages were not taken back yet, also those that ended with their peer.
    pub fn regions_shared(&self) -> usize {
        self.shared.len()
    }

    /// Lets peers of this host fetch a pool with the number that this returns:
    /// [`crate::Session::fetch_pool`]. They map it for reading and keep the mapping for as long as
    /// they like: what a pool holds, now or later, is not secret from anybody to whom it was shown.
    pub fn show_pool(&mut self, pool: &Pool, holders: Holders) -> Result<u64, ShareError> {
        self.check()?;
        self.drain_events_if_asked();
        let peer = self.holder(holders)?;
        Ok(self.share_pool(pool, peer.as_ref())?)
    }

    pub(crate) fn share_pool(
        &mut self,
        pool: &Pool,
        with: Option<&Peer>,
    ) -> Result<u64, HostError> {
        self.check()?;
        self.host.share(Arc::clone(pool.files()), with)
    }

    /// A pool that was shown cannot be fetched any more.
    pub fn hide_pool(&mut self, number: u64) {
        if !self.is_forked() {
            self.host.withdraw_region(number);
        }
    }

    /// The pool of a peer with that number, if a program reads it already.
    pub(crate) fn attached_pool(&self, from: &Destination, number: u64) -> Option<SharedPool> {
        self.attached.pool(self.links.to(from)?, number)
    }

    pub(crate) fn take_up_pool(&mut self, from: &Destination, number: u64, pool: &SharedPool) {
        if let Some(link) = self.links.to(from) {
            self.attached.insert_pool(link, number, pool);
        }
    }

    /// Takes up a region that was mapped.
    pub(crate) fn take_up(
        &mut self,
        ticket: &RegionTicket,
        region: AttachedRegion,
    ) -> Result<Attached, AttachError> {
        if region.length_bytes() != ticket.ticket.length_bytes {
            return Err(AttachError::Length {
                found_bytes: region.length_bytes(),
                expected_bytes: ticket.ticket.length_bytes,
            });
        }
        // Others may have used the interface while it was fetched.
        let link = match self.way_to_attach(ticket)? {
            Ok(link) => link,
            Err(attached) => return Ok(attached),
        };
        let attached = Attached {
            link,
            ticket: *ticket,
            region: Arc::new(region),
        };
        self.attached.insert(attached.clone());
        self.note_regions();
        self.operating.attach(link, &self.attached);
        Ok(attached)
    }

    /// The link to the owner of a region, if there is one, and room for one more; or the region, if
    /// it is attached already.
    pub(crate) fn way_to_attach(
        &mut self,
        ticket: &RegionTicket,
    ) -> Result<Result<LinkId, Attached>, AttachError> {
        self.drain_events_if_asked();
        let destination = ticket.ticket.destination;
        if destination.is_same(&self.host.identity()) {
            return Err(AttachError::Loopback);
        }
        let link = self.links.to(&destination).ok_or(AttachError::NotLinked)?;
        self.attached.prune();
        self.note_regions();
        if let Some(attached) = self.attached.find(link, ticket) {
            return Ok(Err(attached));
        }
        match self.attached.len() < ATTACHED_MAX {
            true => Ok(Ok(link)),
            false => Err(AttachError::TooMany),
        }
    }

    /// Lets go of a region: messages and operations go as packets again. Windows on it stay mapped
    /// as long as they live, and say that it does not [last](crate::region::DirectWindow::lasts).
    pub fn detach(&mut self, attached: &Attached) {
        if !self.is_forked() {
            attached.region.detach();
            self.attached.prune();
            self.note_regions();
        }
    }

    /// The transmit half knows whether there are any.
    pub(super) fn note_regions(&mut self) {
        let has_regions = self.attached.len() > 0;
        self.outbound
            .lock(|outbound| outbound.has_regions = has_regions);
    }

    /// Regions of others that are attached.
    pub fn regions_attached(&self) -> usize {
        self.attached.len()
    }

    /// Stores a message in its place and announces it, if all of its place is attached for writing
    /// ([`Session::attach`]): one packet without data, however long the message is, up to
    /// 2^32 - 1 bytes. Otherwise nothing was sent, and [`Interface::try_send`] sends it in packets. If
    /// there is no room to announce it, packets were moved ([`Interface::poll`]), and it is to be
    /// tried again. Does not block.
    ///
    /// # Errors
    ///
    /// Those of [`Interface::try_send`].
    ///
    /// [`Session::attach`]: crate::Session::attach
    pub fn try_place(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Result<Placing, SendError> {
        self.check()?;
        let placed = self.place_at_once(terminus, target, message)?;
        if placed == Placing::Full {
            self.poll();
        }
        Ok(placed)
    }

    /// The same, and moves no packets.
    pub(super) fn place_at_once(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Result<Placing, SendError> {
        self.drain_events_if_asked();
        let length = message.data.len() as u64;
        let store = |_: &_, to: &Mapped, at| to.store(at, message.data);
        self.send_placed(terminus, target, message, length, store)
    }

    /// Stores a message in its place and announces it, if its place is attached, and nothing stands
    /// in its way.
    #[inline(never)]
    pub(super) fn send_placed_at_once(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Option<SendHandle> {
        if self.is_asked() || self.outbound.is_shared() {
            return None;
        }
        let length = message.data.len() as u64;
        let store = |_: &_, to: &Mapped, at| to.store(at, message.data);
        match self.place(terminus, target, message, length, store) {
            Ok(Ok(placed)) => placed,
            _ => None,
        }
    }

    /// Stores a message in its place and announces it, if its place is attached. `store` copies the
    /// data of the message to where they belong in the region; false if they are not to be had.
    #[inline(always)]
    pub(super) fn send_placed(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        length: u64,
        store: impl Fn(&TransmitterOf<H>, &Mapped, u64) -> bool,
    ) -> Result<Placing, SendError> {
        let mut placed = self.place(terminus, target, message, length, &store)?;
        while matches!(placed, Err(PostError::QueueFull)) && self.press(target.link) {
            placed = self.place(terminus, target, message, length, &store)?;
        }
        // A message that found no room gives a network processor nothing to do.
        if let (Half::Shared(_), Some(processor)) = (&self.outbound, &self.processor)
            && !matches!(placed, Ok(None) | Err(PostError::QueueFull))
        {
            processor.exchange.post();
        }
        match placed {
            Ok(Some(handle)) => Ok(Placing::Sent(handle)),
            Ok(None) => Ok(Placing::NotAttached),
            Err(PostError::QueueFull) => Ok(Placing::Full),
            Err(PostError::LinkGone) => Err(self.lost(target).into()),
            Err(other) => Err(other.into()),
        }
    }

    /// Nothing if its place is not attached, or if `store` says that it was not stored.
    #[inline(always)]
    fn place(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        length: u64,
        store: impl Fn(&TransmitterOf<H>, &Mapped, u64) -> bool,
    ) -> Result<Result<Option<SendHandle>, PostError>, SendError> {
        let offset = target.ticket.place(message.offset, length)?;
        let data_bytes = match u32::try_from(length) {
            // Its name may be that of a slot.
            Ok(data_bytes) if !target.is_port() => data_bytes,
            _ => return Ok(Ok(None)),
        };
        let Self {
            attached, outbound, ..
        } = self;
        let place = attached.covers(target.link, target.ticket.slot, offset, length);
        let Some((region, within)) = place else {
            return Ok(Ok(None));
        };
        Ok(outbound.lock(|outbound| {
            let Outbound {
                transmitter,
                tx_links,
                ..
            } = outbound;
            if !transmitter.has_room(terminus, target.link)? {
                return Err(PostError::QueueFull);
            }
            if !store(transmitter, region, within) {
                return Ok(None);
            }
            let posting = || compose_as(Kind::WRITE, target, message, offset);
            let posted = transmitter.post_placed(
                terminus,
                posting,
                message.metadata,
                data_bytes,
                tx_links,
            )?;
            Ok(Some(posted.handle))
        }))
    }
}
