//! Protection keys (`Hamlyn 2.2`, `6.5`).

use core::fmt;

/// A 64-bit protection key. A sender that presents it may write where its slot or
/// metadata entry allows.
///
/// Its value never appears in `Debug` output, so that logs do not leak it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Key(u64);

impl Key {
    /// A key from 64 bits, which should come from the operating system's random source.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits, to be put into a packet or a ticket.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(..)")
    }
}
