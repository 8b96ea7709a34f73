//! Packet counting (`Hamlyn 2.5`).
//!
//! The deltas of a message's packets sum to its share; the shares of a group
//! sum to the accumulator's modulus; so the accumulator is zero again exactly when
//! everything has come, without anybody knowing how many packets there are.
//!
//! The paper's rule alone can notify early. Here a share is an integer from 1 to
//! the modulus, shares sum to exactly the modulus, and no sender sends more packets
//! than its share. Then every delta is at least 1, every proper partial sum lies
//! strictly between zero and the modulus, and only the last packet of all brings
//! it back to zero. Whatever would break the rule is refused before the first packet.

use crate::limits::USER_METADATA_BYTES;

/// Width of the accumulators of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counting {
    /// 32 bits, as in the paper.
    #[default]
    Bits32,
    /// 64 bits, which lifts the limit on delegation in practice.
    Bits64,
}

impl Counting {
    /// Modulus minus one.
    #[inline]
    const fn mask(self) -> u64 {
        match self {
            Counting::Bits32 => u32::MAX as u64,
            Counting::Bits64 => u64::MAX,
        }
    }

    /// Adds a delta to an accumulator.
    #[inline]
    pub(crate) fn add(self, accumulator: u64, delta: u64) -> u64 {
        accumulator.wrapping_add(delta) & self.mask()
    }

    /// A delta as this width sees it.
    #[inline]
    pub(crate) const fn delta(self, word: u64) -> u64 {
        word & self.mask()
    }
}

/// A sender's part of a count: an integer from 1 to 2^32 (or 2^64).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The share minus one, so that the modulus itself can be written.
    minus_one: u64,
    counting: Counting,
}

/// A share cannot be divided as asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DivideError {
    /// No parts were asked for.
    #[error("a share is divided into at least one part")]
    NoParts,
    /// A part would be too small for what it must count.
    #[error(
        "a share of {packets} packets cannot give {parts} parts that need {needed} packets in all: divide it into fewer parts, or give the group 64-bit accumulators"
    )]
    TooSmall {
        /// Packets that the whole share can count.
        packets: u64,
        /// Parts asked for.
        parts: usize,
        /// Packets that the parts need together.
        needed: u64,
    },
}

/// A message needs more packets than its share can count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the message needs {packets} packets but its share counts only {share}: send less, take a larger share, or give the group 64-bit accumulators"
)]
pub struct ShareTooSmall {
    /// Packets needed.
    pub packets: u64,
    /// Packets that the share can count.
    pub share: u64,
}

impl Share {
    /// The whole count: a message alone, or a group before it is divided.
    #[inline]
    pub const fn whole(counting: Counting) -> Self {
        Self {
            minus_one: counting.mask(),
            counting,
        }
    }

    /// A share from its value minus one, as it travels with a ticket. Nothing
    /// if it exceeds the width.
    pub const fn from_minus_one(minus_one: u64, counting: Counting) -> Option<Self> {
        if minus_one > counting.mask() {
            return None;
        }
        Some(Self {
            minus_one,
            counting,
        })
    }

    /// The share minus one.
    pub const fn minus_one(self) -> u64 {
        self.minus_one
    }

    /// Width of the accumulator that it belongs to.
    pub const fn counting(self) -> Counting {
        self.counting
    }

    /// The most packets that may be sent on it (2^64 is given as 2^64 - 1).
    pub const fn packets_max(self) -> u64 {
        self.minus_one.saturating_add(1)
    }

    /// Whether this is the whole count.
    pub const fn is_whole(self) -> bool {
        self.minus_one == self.counting.mask()
    }

    /// The terminus' packet counter before the first packet: the paper's Y.
    #[inline]
    pub(crate) const fn counter(self) -> u64 {
        self.minus_one.wrapping_add(1) & self.counting.mask()
    }

    /// The counter after one more packet that is not the last.
    #[inline]
    pub(crate) const fn decrement(self, counter: u64) -> u64 {
        counter.wrapping_sub(1) & self.counting.mask()
    }

    /// Refuses a message that the share cannot count.
    #[inline]
    pub const fn check(self, packets: u64) -> Result<(), ShareTooSmall> {
        if packets.saturating_sub(1) > self.minus_one {
            return Err(ShareTooSmall {
                packets,
                share: self.packets_max(),
            });
        }
        Ok(())
    }

    /// Takes a share for exactly `packets` packets (at least one) off this one; the
    /// second result is what remains, at least one.
    pub const fn take(self, packets: u64) -> Result<(Share, Share), ShareTooSmall> {
        let packets = if packets == 0 { 1 } else { packets };
        if packets > self.minus_one {
            return Err(ShareTooSmall {
                packets: packets.saturating_add(1),
                share: self.packets_max(),
            });
        }
        let counting = self.counting;
        Ok((
            Share {
                minus_one: packets - 1,
                counting,
            },
            Share {
                minus_one: self.minus_one - packets,
                counting,
            },
        ))
    }

    /// Divides the share so that part `i` can count at least `needed[i]`
    /// packets (at least one each); what is left over is spread evenly. `give`
    /// is called once per part, in order. The parts sum to exactly this share.
    pub fn divide(self, needed: &[u64], mut give: impl FnMut(Share)) -> Result<(), DivideError> {
        let parts = needed.len();
        if parts == 0 {
            return Err(DivideError::NoParts);
        }
        let whole = u128::from(self.minus_one) + 1;
        let sum: u128 = needed
            .iter()
            .map(|&packets| u128::from(packets.max(1)))
            .sum();
        if sum > whole {
            return Err(DivideError::TooSmall {
                packets: self.packets_max(),
                parts,
                needed: u64::try_from(sum).unwrap_or(u64::MAX),
            });
        }
        let left_over = whole - sum;
        let each = left_over / parts as u128;
        let mut odd = left_over % parts as u128;
        for &packets in needed {
            let extra = u128::from(odd > 0);
            odd -= extra;
            // The sum of all parts is at most 2^64, so each less one fits.
            let amount = u128::from(packets.max(1)) + each + extra;
            give(Share {
                minus_one: (amount - 1) as u64,
                counting: self.counting,
            });
        }
        Ok(())
    }
}

/// How many packets a message takes on a link whose packets carry at most
/// `payload_max_bytes`; its metadata travel in the first (`Hamlyn 2.3`).
#[inline]
pub const fn packets_needed(
    data_bytes: u64,
    metadata_bytes: usize,
    payload_max_bytes: usize,
) -> u64 {
    debug_assert!(metadata_bytes <= USER_METADATA_BYTES && metadata_bytes <= payload_max_bytes);
    let first = (payload_max_bytes - metadata_bytes) as u64;
    if data_bytes <= first {
        1
    } else {
        1 + (data_bytes - first).div_ceil(payload_max_bytes as u64)
    }
}
