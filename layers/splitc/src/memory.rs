//! What a processor shares: stretches of its memory, each an area with a slot.

use std::fmt::Write as _;

use hamlyn::region::REGION_TICKET_BYTES;
use hamlyn::{Area, RegionTicket, Slot, Ticket};

/// A stretch of memory that a processor gives to the job: an area, and at which place of the
/// processor's memory it begins. Rust programs choose the place; in C it is the address.
#[derive(Debug)]
pub struct SharedMemory {
    /// The place of its first byte.
    pub start: u64,
    /// The memory.
    pub area: Area,
    /// How many bytes.
    pub length_bytes: u64,
}

/// One of this processor's own.
#[derive(Debug)]
pub(crate) struct OwnSegment {
    pub(crate) span: Span,
    pub(crate) area: Area,
    pub(crate) slot: Slot,
}

/// A stretch of places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) length_bytes: u64,
}

impl Span {
    /// Where in it those places are, if all of them lie in it.
    #[inline]
    pub(crate) fn offset(self, place: u64, length_bytes: u64) -> Option<u64> {
        let offset = place.checked_sub(self.start)?;
        let room_bytes = self.length_bytes.checked_sub(offset)?;
        (length_bytes <= room_bytes).then_some(offset)
    }
}

/// The spans in words, for messages.
pub(crate) fn describe(spans: impl Iterator<Item = Span>) -> String {
    let mut text = String::new();
    for Span {
        start,
        length_bytes,
    } in spans
    {
        let separator = if text.is_empty() { "" } else { ", " };
        let end = start.saturating_add(length_bytes);
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}{start:#x} to {end:#x}");
    }
    match text.is_empty() {
        true => "nothing".to_owned(),
        false => text,
    }
}

/// Most stretches of memory that a processor shares: their tickets fit an offer.
pub(crate) const SEGMENTS_MAX: usize = 4;

/// What a processor tells the others: its part in the job, its control area, and what it shares.
#[derive(Debug)]
pub(crate) struct Description {
    pub(crate) procs: u32,
    pub(crate) control: Shared,
    pub(crate) segments: Vec<(Span, Shared)>,
}

/// How others reach a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shared {
    /// By operations.
    Sent(Ticket),
    /// By operations, and processors of the same host by mapping it.
    Region(RegionTicket),
}

impl Shared {
    pub(crate) fn ticket(&self) -> Ticket {
        match self {
            Self::Sent(ticket) => *ticket,
            Self::Region(region) => region.ticket,
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Sent(ticket) => {
                bytes.push(0);
                bytes.extend(ticket.to_bytes());
            }
            Self::Region(region) => {
                bytes.push(1);
                bytes.extend(region.to_bytes());
            }
        }
    }

    fn read(rest: &mut &[u8]) -> Option<Self> {
        match take::<1>(rest)? {
            [0] => {
                let ticket = Ticket::from_bytes(&take::<TICKET_BYTES>(rest)?);
                ticket.ok().map(Self::Sent)
            }
            [1] => {
                let region = RegionTicket::from_bytes(&take::<REGION_TICKET_BYTES>(rest)?);
                region.ok().map(Self::Region)
            }
            _ => None,
        }
    }
}

/// The bytes of another program or version.
#[derive(Debug)]
pub(crate) struct BadDescription(pub(crate) &'static str);

/// Changes with the layout of the control area and of descriptions.
const VERSION: u32 = 2;
const TICKET_BYTES: usize = hamlyn::ticket::TICKET_BYTES;

impl Description {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.procs.to_le_bytes());
        self.control.write(&mut bytes);
        for (span, shared) in &self.segments {
            bytes.extend(span.start.to_le_bytes());
            bytes.extend(span.length_bytes.to_le_bytes());
            shared.write(&mut bytes);
        }
        bytes
    }

    /// Total: any bytes give a description or an error.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, BadDescription> {
        let mut rest = bytes;
        let version = take::<4>(&mut rest).map(u32::from_le_bytes);
        if version != Some(VERSION) {
            return Err(BadDescription(
                "it was linked with another version of the runtime",
            ));
        }
        let damaged = BadDescription("its description is damaged");
        let Some(procs) = take::<4>(&mut rest).map(u32::from_le_bytes) else {
            return Err(damaged);
        };
        let Some(control) = Shared::read(&mut rest) else {
            return Err(damaged);
        };
        let mut segments = Vec::new();
        while !rest.is_empty() && segments.len() < SEGMENTS_MAX {
            let start = take::<8>(&mut rest).map(u64::from_le_bytes);
            let length_bytes = take::<8>(&mut rest).map(u64::from_le_bytes);
            let (Some(start), Some(length_bytes), Some(shared)) =
                (start, length_bytes, Shared::read(&mut rest))
            else {
                return Err(damaged);
            };
            segments.push((
                Span {
                    start,
                    length_bytes,
                },
                shared,
            ));
        }
        Ok(Self {
            procs,
            control,
            segments,
        })
    }
}

fn take<const BYTES: usize>(rest: &mut &[u8]) -> Option<[u8; BYTES]> {
    let (taken, left) = rest.split_first_chunk::<BYTES>()?;
    *rest = left;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_knows_what_lies_in_it() {
        let span = Span {
            start: 100,
            length_bytes: 50,
        };
        assert_eq!(span.offset(100, 50), Some(0));
        assert_eq!(span.offset(149, 1), Some(49));
        assert_eq!(span.offset(150, 0), Some(50));
        for (place, length_bytes) in [(99, 1), (100, 51), (149, 2), (150, 1), (0, u64::MAX)] {
            assert_eq!(span.offset(place, length_bytes), None);
        }
        assert_eq!(describe([span].into_iter()), "0x64 to 0x96");
    }

    #[test]
    fn any_bytes_are_a_description_or_refused() {
        for length in 0..300 {
            let mut bytes = vec![0x55; length];
            bytes.splice(
                0..4.min(length),
                VERSION.to_le_bytes().into_iter().take(length),
            );
            assert!(Description::from_bytes(&bytes).is_err());
        }
    }
}
