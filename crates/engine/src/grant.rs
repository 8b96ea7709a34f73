//! Grants: ranges of a slot that others map, and who of them may store there (regions,
//! decision 0050). A packet whose data its sender stored brings only the header.
//!
//! Refused: grants on slots in the paranoid modes, whose promise is that nothing changes after
//! notification; grants that overlap, since one could not be taken back without the other; and
//! every placed packet that does not lie wholly within one grant of the peer that sent it.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

use crate::limits::GRANTS_PER_SLOT_MAX;
use crate::memory::LinkId;
use crate::packet::SlotName;
use crate::refusal::Refusal;

/// The links that may store into a granted range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Holder {
    /// The peer of that link.
    Peer(LinkId),
    /// Every peer of this host that is linked.
    Linked,
    /// Nobody: others map the range to read it.
    Nobody,
}

impl Holder {
    /// True if the peer of that link is one.
    #[inline(always)]
    pub fn includes(self, link: LinkId) -> bool {
        match self {
            Self::Peer(peer) => peer == link,
            Self::Linked => true,
            Self::Nobody => false,
        }
    }
}

/// Names a grant of an interface. Never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GrantId {
    pub(crate) slot: SlotName,
    pub(crate) serial: u64,
}

/// A grant was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantRefused {
    /// The slot does not exist (any more).
    #[error("{0} is not open")]
    NotOpen(SlotName),
    /// Its mode is a paranoid one.
    #[error(
        "{0} is paranoid: its places are the owner's own after notification, so nobody may map them; send by copies, or open a slot in normal mode"
    )]
    Paranoid(SlotName),
    /// Nothing would be granted, or more than the slot has.
    #[error("the {length_bytes} bytes at {start} are none or do not lie in a slot of {slot_bytes}")]
    OutsideSlot {
        /// Where it was to begin, in the slot.
        start: u64,
        /// How long it was to be.
        length_bytes: u64,
        /// What the slot has.
        slot_bytes: u64,
    },
    /// A part of it is granted already.
    #[error(
        "a part of the {length_bytes} bytes at {start} is granted already: end that grant first"
    )]
    Overlaps {
        /// Where it was to begin, in the slot.
        start: u64,
        /// How long it was to be.
        length_bytes: u64,
    },
    /// As many as there can be are there.
    #[error("a slot has at most {GRANTS_PER_SLOT_MAX} grants: end one")]
    TooMany,
}

#[derive(Debug)]
struct Granted {
    serial: u64,
    holder: Holder,
    range: Range<u64>,
}

impl Granted {
    #[inline(always)]
    fn covers(&self, by: LinkId, place: &Range<u64>) -> bool {
        let inside = self.range.start <= place.start && place.end <= self.range.end;
        self.holder.includes(by) && inside
    }
}

/// The grants of a slot. Takes no memory while there are none.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    granted: Vec<Granted>,
    /// The place of the one that covered the last placed packet: most likely it covers the next.
    at_hand: Cell<usize>,
}

impl Grants {
    pub(crate) fn add(
        &mut self,
        slot_bytes: u64,
        range: Range<u64>,
        holder: Holder,
        serial: u64,
    ) -> Result<(), GrantRefused> {
        let start = range.start;
        let length_bytes = range.end.saturating_sub(start);
        if length_bytes == 0 || range.end > slot_bytes {
            return Err(GrantRefused::OutsideSlot {
                start,
                length_bytes,
                slot_bytes,
            });
        }
        if self.granted.len() == GRANTS_PER_SLOT_MAX {
            return Err(GrantRefused::TooMany);
        }
        let overlaps =
            |granted: &Granted| start < granted.range.end && granted.range.start < range.end;
        if self.granted.iter().any(overlaps) {
            return Err(GrantRefused::Overlaps {
                start,
                length_bytes,
            });
        }
        self.granted.push(Granted {
            serial,
            holder,
            range,
        });
        Ok(())
    }

    /// Whether there was such a grant.
    pub(crate) fn end(&mut self, serial: u64) -> bool {
        let before = self.granted.len();
        self.granted.retain(|granted| granted.serial != serial);
        self.granted.len() < before
    }

    pub(crate) fn end_all_of(&mut self, peer: LinkId) {
        let of_peer = Holder::Peer(peer);
        self.granted.retain(|granted| granted.holder != of_peer);
    }

    /// Whether the peer of that link may have stored there.
    #[inline(always)]
    pub(crate) fn cover(&self, by: LinkId, place: Range<u64>) -> Result<(), Refusal> {
        match self.granted.get(self.at_hand.get()) {
            Some(granted) if granted.covers(by, &place) => Ok(()),
            _ => self.seek(by, place.start, place.end),
        }
    }

    #[cold]
    #[inline(never)]
    fn seek(&self, by: LinkId, start: u64, end: u64) -> Result<(), Refusal> {
        let covers = |granted: &Granted| granted.covers(by, &(start..end));
        let at = self.granted.iter().position(covers);
        self.at_hand.set(at.ok_or(Refusal::NotGranted)?);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.granted.len()
    }
}
