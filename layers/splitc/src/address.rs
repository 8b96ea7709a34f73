//! Global addresses (`Split-C 2`): a processor, and a place in its memory, in one word.
//!
//! The upper 16 bits name the processor, the lower 48 the place. Zero is null. A global pointer's
//! arithmetic stays on its processor; a spread pointer's steps from processor to processor.

use std::fmt;
use std::marker::PhantomData;

/// The part of a global address that is a place.
const PLACE_MASK: u64 = (1 << 48) - 1;

/// A processor and a place in its memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GlobalAddress(u64);

impl GlobalAddress {
    /// No place.
    pub const NULL: Self = Self(0);

    /// That place of that processor. The upper 16 bits of the place do not count; place 0 is null
    /// on every processor.
    pub const fn new(proc: u32, place: u64) -> Self {
        match place & PLACE_MASK {
            0 => Self::NULL,
            place => Self((proc as u64) << 48 | place),
        }
    }

    /// The address of these bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// As one word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// On which processor.
    pub const fn proc(self) -> u32 {
        (self.0 >> 48) as u32
    }

    /// Which place there.
    pub const fn place(self) -> u64 {
        self.0 & PLACE_MASK
    }

    /// Whether it is no place.
    pub const fn is_null(self) -> bool {
        self.place() == 0
    }

    /// So many bytes further on the same processor. Wraps within the 48 bits of a place.
    #[must_use]
    pub const fn add_bytes(self, bytes: i64) -> Self {
        let place = self.0.wrapping_add(bytes as u64) & PLACE_MASK;
        Self(self.0 & !PLACE_MASK | place)
    }

    /// So many elements further, cyclically over `procs` processors.
    #[must_use]
    pub const fn spread_add(self, elements: i64, element_bytes: u64, procs: u32) -> Self {
        let at = self.proc() as i64 + elements;
        let rows = at.div_euclid(procs as i64);
        let proc = at.rem_euclid(procs as i64) as u64;
        let place = self
            .place()
            .wrapping_add((rows as u64).wrapping_mul(element_bytes))
            & PLACE_MASK;
        Self(proc << 48 | place)
    }
}

impl fmt::Display for GlobalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} of processor {}", self.place(), self.proc())
    }
}

impl fmt::Debug for GlobalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:#x}", self.proc(), self.place())
    }
}

/// A pointer to a value in the memory of any processor. Its arithmetic stays on that processor.
pub struct GlobalPtr<T> {
    address: GlobalAddress,
    of: PhantomData<fn() -> T>,
}

/// A pointer into an array that is spread over the processors: the next element lies on the next
/// processor, and after the last processor follows the next row on the first.
pub struct SpreadPtr<T> {
    address: GlobalAddress,
    procs: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> GlobalPtr<T> {
    /// To no place.
    pub const NULL: Self = Self::at(GlobalAddress::NULL);

    /// To a value at that address.
    pub const fn at(address: GlobalAddress) -> Self {
        Self {
            address,
            of: PhantomData,
        }
    }

    /// Where it points.
    pub const fn address(self) -> GlobalAddress {
        self.address
    }

    /// To which processor (`toproc`).
    pub const fn proc(self) -> u32 {
        self.address.proc()
    }

    /// Whether it points to no place.
    pub const fn is_null(self) -> bool {
        self.address.is_null()
    }

    /// So many values further on the same processor.
    #[must_use]
    pub const fn add(self, values: i64) -> Self {
        Self::at(
            self.address
                .add_bytes(values.wrapping_mul(size_of::<T>() as i64)),
        )
    }

    /// The same place as a value of another type.
    pub const fn cast<U>(self) -> GlobalPtr<U> {
        GlobalPtr::at(self.address)
    }
}

impl<T> SpreadPtr<T> {
    /// To a value at that address, in an array over `procs` processors.
    pub const fn at(address: GlobalAddress, procs: u32) -> Self {
        Self {
            address,
            procs,
            of: PhantomData,
        }
    }

    /// Where it points.
    pub const fn address(self) -> GlobalAddress {
        self.address
    }

    /// So many elements further, cyclically over the processors.
    #[must_use]
    pub const fn add(self, elements: i64) -> Self {
        let element_bytes = size_of::<T>() as u64;
        let address = self.address.spread_add(elements, element_bytes, self.procs);
        Self::at(address, self.procs)
    }

    /// The element to which it points, as a global pointer.
    pub const fn global(self) -> GlobalPtr<T> {
        GlobalPtr::at(self.address)
    }
}

macro_rules! pointer {
    ($pointer:ident) => {
        impl<T> Clone for $pointer<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $pointer<T> {}

        impl<T> PartialEq for $pointer<T> {
            fn eq(&self, other: &Self) -> bool {
                self.address == other.address
            }
        }

        impl<T> Eq for $pointer<T> {}

        impl<T> fmt::Debug for $pointer<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.address, f)
            }
        }
    };
}

pointer!(GlobalPtr);
pointer!(SpreadPtr);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_pointers_step_cyclically_both_ways() {
        let first = SpreadPtr::<u32>::at(GlobalAddress::new(0, 0x1000), 3);
        assert_eq!(first.add(1).address(), GlobalAddress::new(1, 0x1000));
        assert_eq!(first.add(3).address(), GlobalAddress::new(0, 0x1004));
        assert_eq!(first.add(7).address(), GlobalAddress::new(1, 0x1008));
        for elements in 0..20 {
            assert_eq!(first.add(elements).add(-elements), first);
        }
    }

    #[test]
    fn global_pointers_stay_on_their_processor() {
        let pointer = GlobalPtr::<u64>::at(GlobalAddress::new(5, 0x10));
        assert_eq!(pointer.add(-1).address(), GlobalAddress::new(5, 0x8));
        // It does not run over into the number of the processor.
        assert_eq!(pointer.add(-3).proc(), 5);
        assert!(GlobalAddress::new(4, 0).is_null());
    }
}
