//! Memory for spread arrays (`all_spread_malloc`, `spread_malloc`).

use std::ops::Range;

use hamlyn::Host;

use crate::address::GlobalAddress;
use crate::control::Kind;
use crate::error::Error;
use crate::procedure::{ALLOCATE, FREE};
use crate::runtime::{Program, Splitc};
use crate::symmetric_heap::SymmetricHeap;

/// The heap of collective allocations, and that of lone ones, which lies in the upper quarter.
pub(crate) fn heaps(places: &Range<u64>) -> (SymmetricHeap, SymmetricHeap) {
    let length_bytes = places.end.saturating_sub(places.start);
    let middle = places.start + length_bytes / 4 * 3;
    let collective = SymmetricHeap::new(places.start..middle);
    let lone = SymmetricHeap::new(middle..places.end);
    (collective, lone)
}

impl<H: Host, P: Program<H>> Splitc<H, P> {
    /// Bytes on each processor of so many elements that are spread cyclically. Nothing if they are
    /// too many for any memory.
    fn bytes_each(&self, count: u64, element_bytes: u64) -> u64 {
        let rows = count.div_ceil(u64::from(self.job.procs));
        rows.saturating_mul(element_bytes)
    }

    /// Memory for `count` elements, spread cyclically over the processors; the address of the
    /// first, on processor 0. All processors call this with the same numbers. Collective.
    pub fn all_spread_allocate(
        &mut self,
        count: u64,
        element_bytes: u64,
    ) -> Result<GlobalAddress, Error> {
        self.enter("all_spread_malloc")?;
        let length_bytes = self.bytes_each(count, element_bytes);
        // Processors that allocate different amounts would have different places from now on, and
        // corrupt each other.
        let theirs = self.spread_from(Kind::Allocation, 0, length_bytes)?;
        let differs = u64::from(theirs != length_bytes) * u64::from(self.job.proc);
        let last = self.reduce_to_first(Kind::Allocation, differs, &u64::max)?;
        let last = self.spread_from(Kind::Allocation, 0, last)?;
        if last != 0 {
            return Err(Error::UnequalAllocation { proc: last as u32 });
        }
        match self.spread_heap.allocate(length_bytes, false) {
            Some(place) => Ok(GlobalAddress::new(0, place)),
            None => Err(self.no_room(length_bytes)),
        }
    }

    /// Gives such memory back, when all processors have called this. Collective.
    pub fn all_spread_free(&mut self, array: GlobalAddress) -> Result<(), Error> {
        self.enter("all_spread_free")?;
        self.barrier_rounds("all_spread_free")?;
        match array.is_null() || self.spread_heap.free(array.place()) {
            true => Ok(()),
            false => Err(Error::NotAllocated { address: array }),
        }
    }

    /// Memory for `count` elements, spread cyclically, without the other processors' help.
    pub fn spread_allocate(
        &mut self,
        count: u64,
        element_bytes: u64,
    ) -> Result<GlobalAddress, Error> {
        let length_bytes = self.bytes_each(count, element_bytes);
        let mut place = [0; 8];
        let first = GlobalAddress::from_bits(0);
        self.call(first, ALLOCATE, &length_bytes.to_le_bytes(), &mut place)?;
        match u64::from_le_bytes(place) {
            0 => Err(self.no_room(length_bytes)),
            place => Ok(GlobalAddress::new(0, place)),
        }
    }

    /// Gives memory of [`Splitc::spread_allocate`] back. No processor may use it any more.
    pub fn spread_free(&mut self, array: GlobalAddress) -> Result<(), Error> {
        if array.is_null() {
            return Ok(());
        }
        let mut was_there = [0];
        let first = GlobalAddress::from_bits(0);
        let place = array.place().to_le_bytes();
        self.call(first, FREE, &place, &mut was_there)?;
        match was_there {
            [0] => Err(Error::NotAllocated { address: array }),
            _ => Ok(()),
        }
    }

    /// Processor 0 allocates for one of all.
    pub(crate) fn run_allocation(
        &mut self,
        procedure: u64,
        _: u64,
        arguments: &[u8],
        result: &mut [u8],
    ) -> Result<(), String> {
        let damaged = || "the request is damaged".to_owned();
        let argument = arguments.try_into().map_err(|_| damaged())?;
        let argument = u64::from_le_bytes(argument);
        let answer = match procedure {
            ALLOCATE => {
                let place = self.lone_heap.allocate(argument, true);
                place.unwrap_or_default().to_le_bytes()
            }
            _ => u64::from(self.lone_heap.free(argument)).to_le_bytes(),
        };
        let answer = answer.get(..result.len()).ok_or_else(damaged)?;
        result.copy_from_slice(answer);
        Ok(())
    }

    fn no_room(&self, length_bytes: u64) -> Error {
        Error::OutOfMemory {
            length_bytes,
            room_bytes: self.spread_room_bytes,
        }
    }
}
