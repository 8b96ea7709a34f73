//! Grants of an interface: those that it made, and those that it took up.

use std::ops::Range;

use hamlyn_engine::grant::GrantId;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::{Kind, SlotName};
use hamlyn_engine::send_observer::SendObserver;
use hamlyn_engine::terminus::{PostError, SendHandle, TerminusId};
use hamlyn_engine::transmit::Transmitter;
use hamlyn_link::TransmitEnd;
use hamlyn_ring::area::Area;
use hamlyn_ring::lending::{ExportedRegion, ImportedRegion};

use crate::grant::PLACED_BYTES_MIN;
use crate::message::{Message, Target, compose_as};
use crate::outbound::Outbound;

/// A grant that was made, and whose pages are still the peer's to write.
pub(super) struct Made {
    pub(super) id: GrantId,
    pub(super) slot: SlotName,
    pub(super) lent: ExportedRegion,
    pub(super) secret: u64,
    pub(super) holder: LinkId,
}

/// A grant that was taken up.
pub(super) struct Accepted {
    pub(super) link: LinkId,
    pub(super) slot: SlotName,
    pub(super) start: u64,
    pub(super) pages: ImportedRegion,
}

impl Accepted {
    /// Whether all of that range of a slot lies in the pages.
    #[inline(always)]
    fn covers(&self, link: LinkId, slot: SlotName, offset: u64, length: u64) -> bool {
        self.link == link
            && self.slot == slot
            && offset
                .checked_sub(self.start)
                .and_then(|within| within.checked_add(length))
                .is_some_and(|end| end <= self.pages.length_bytes())
    }
}

/// Both sides of the grants of an interface.
#[derive(Default)]
pub(super) struct Granting {
    pub(super) made: Vec<Made>,
    pub(super) accepted: Vec<Accepted>,
    /// The place of the accepted grant into which the last message was stored: most likely the next
    /// one goes there.
    pub(super) at_hand: usize,
}

impl Granting {
    /// Whether a message of that length might be placed.
    #[inline(always)]
    pub(super) fn may_place(&self, length_bytes: u64) -> bool {
        length_bytes >= PLACED_BYTES_MIN && !self.accepted.is_empty()
    }

    /// The grant in which all of a range lies, and where. One that has ended is let go of.
    #[inline(always)]
    fn place(
        &mut self,
        link: LinkId,
        slot: SlotName,
        offset: u64,
        length: u64,
    ) -> Option<(&ImportedRegion, u64)> {
        let is_at_hand = self
            .accepted
            .get(self.at_hand)
            .is_some_and(|accepted| accepted.covers(link, slot, offset, length));
        if !is_at_hand {
            self.reach(link.to_bits(), slot, offset, length)?;
        }
        if !self.accepted.get(self.at_hand)?.pages.lasts() {
            self.let_go();
            return None;
        }
        let accepted = self.accepted.get(self.at_hand)?;
        Some((&accepted.pages, offset - accepted.start))
    }

    /// Has the grant at hand in which all of a range lies.
    #[cold]
    #[inline(never)]
    fn reach(&mut self, link_bits: u64, slot: SlotName, offset: u64, length: u64) -> Option<()> {
        let link = LinkId::from_bits(link_bits);
        let covers = |accepted: &Accepted| accepted.covers(link, slot, offset, length);
        self.at_hand = self.accepted.iter().position(covers)?;
        Some(())
    }

    /// The grant at hand has ended.
    #[cold]
    #[inline(never)]
    fn let_go(&mut self) {
        self.accepted.swap_remove(self.at_hand);
    }

    /// Has a message stored in its place, if that was granted, and announces it. Nothing if not, or
    /// if `store` says that it was not stored.
    #[inline(always)]
    pub(super) fn post<T: TransmitEnd, S: SendObserver<Area>>(
        &mut self,
        outbound: &mut Outbound<T, S>,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        place: Range<u64>,
        store: impl Fn(&Transmitter<Area, S>, &ImportedRegion, u64) -> bool,
    ) -> Result<Option<SendHandle>, PostError> {
        if target.is_port() {
            // Its name may be that of a slot.
            return Ok(None);
        }
        let (offset, length) = (place.start, place.end - place.start);
        let (Ok(data_bytes), Some((pages, within))) = (
            u32::try_from(length),
            self.place(target.link, target.ticket.slot, offset, length),
        ) else {
            return Ok(None);
        };
        let posting = || compose_as(Kind::WRITE, target, message, offset);
        let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
        if !transmitter.has_room(terminus, target.link)? {
            return Err(PostError::QueueFull);
        }
        if !store(transmitter, pages, within) {
            return Ok(None);
        }
        let posted =
            transmitter.post_placed(terminus, posting, message.metadata, data_bytes, tx_links)?;
        Ok(Some(posted.handle))
    }
}
