//! The memory of an initiator into which reads land: each has a part of it to itself.

use std::ops::Range;

use hamlyn::Session;
use hamlyn::one_sided::{CompletionCounter, Initiator};

use crate::error::{Failure, Kind};
use crate::host::Host;

/// A part of it.
pub(crate) type Place = Range<u64>;

/// Which parts are taken.
pub(crate) struct Landing {
    length_bytes: u64,
    /// In order.
    taken: Vec<Place>,
    /// Of these, those of reads that nobody finishes, and which may still land; with what counts the end of that read alone, if anything does.
    left: Vec<(Place, Option<CompletionCounter>)>,
}

impl Landing {
    pub(crate) fn new(length_bytes: u64) -> Self {
        Self {
            length_bytes,
            taken: Vec::new(),
            left: Vec::new(),
        }
    }

    /// A part of so many bytes; nothing if there will be one when reads have landed that nobody finishes.
    pub(crate) fn take(
        &mut self,
        interface: &mut Session<'_, Host>,
        initiator: &Initiator,
        length_bytes: u64,
    ) -> Result<Option<Place>, Failure> {
        if !self.left.is_empty() {
            let awaits_any = interface.awaits_given_up(initiator);
            let taken = &mut self.taken;
            self.left.retain(|(place, counter)| {
                let has_ended = counter.as_ref().is_some_and(|counter| counter.ended() > 0);
                let awaits = awaits_any && !has_ended;
                if !awaits {
                    taken.retain(|taken| taken != place);
                }
                awaits
            });
        }
        if length_bytes > self.length_bytes {
            // The library says what is wrong with it.
            return Ok(Some(0..length_bytes));
        }
        let mut start = 0;
        let mut at = 0;
        for place in &self.taken {
            if place.start - start >= length_bytes {
                break;
            }
            start = place.end;
            at += 1;
        }
        if self.length_bytes - start >= length_bytes {
            let place = start..start + length_bytes;
            if length_bytes > 0 {
                self.taken.insert(at, place.clone());
            }
            return Ok(Some(place));
        }
        match self.left.is_empty() {
            false => Ok(None),
            true => Err(Failure::new(
                Kind::Invalid,
                "reads that were begun have all the memory for landing: finish one first, or open the initiator with more landing_bytes",
            )),
        }
    }

    pub(crate) fn give_back(&mut self, place: &Place) {
        self.taken.retain(|taken| taken != place);
    }

    /// What was to land there may still, until that has counted its end.
    pub(crate) fn leave(&mut self, place: &Place, counter: Option<&CompletionCounter>) {
        if self.taken.contains(place) {
            self.left.push((place.clone(), counter.cloned()));
        }
    }
}
