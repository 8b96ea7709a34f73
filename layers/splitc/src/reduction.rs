//! Reductions, scans and broadcasts of numbers (`all_reduce_to_one_add`, `all_scan_max`,
//! `all_bcast` and their families).

use hamlyn::Host;

use crate::control::Kind;
use crate::error::Error;
use crate::runtime::{Program, Splitc};

/// How values of all processors are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// Their sum; integers wrap.
    Add,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// Bitwise and; of integers only.
    And,
    /// Bitwise or; of integers only.
    Or,
    /// Bitwise exclusive or; of integers only.
    Xor,
    /// Their product; integers wrap.
    Mul,
}

/// A number that can be reduced: it travels in one word.
pub trait Number: Copy + sealed::Sealed {
    /// As a word.
    fn to_word(self) -> u64;
    /// From a word that is such a number.
    fn from_word(word: u64) -> Self;
    /// Two of them combined; nothing if there is no such combination.
    fn combine(reduction: Reduction, a: Self, b: Self) -> Option<Self>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! integer {
    ($($integer:ty),*) => {$(
        impl sealed::Sealed for $integer {}

        impl Number for $integer {
            fn to_word(self) -> u64 {
                self as u64
            }

            fn from_word(word: u64) -> Self {
                word as Self
            }

            fn combine(reduction: Reduction, a: Self, b: Self) -> Option<Self> {
                Some(match reduction {
                    Reduction::Add => a.wrapping_add(b),
                    Reduction::Max => a.max(b),
                    Reduction::Min => a.min(b),
                    Reduction::And => a & b,
                    Reduction::Or => a | b,
                    Reduction::Xor => a ^ b,
                    Reduction::Mul => a.wrapping_mul(b),
                })
            }
        }
    )*};
}

macro_rules! float {
    ($($float:ty),*) => {$(
        impl sealed::Sealed for $float {}

        impl Number for $float {
            fn to_word(self) -> u64 {
                self.to_bits().into()
            }

            fn from_word(word: u64) -> Self {
                Self::from_bits(word as _)
            }

            fn combine(reduction: Reduction, a: Self, b: Self) -> Option<Self> {
                Some(match reduction {
                    Reduction::Add => a + b,
                    Reduction::Max => a.max(b),
                    Reduction::Min => a.min(b),
                    Reduction::Mul => a * b,
                    Reduction::And | Reduction::Or | Reduction::Xor => return None,
                })
            }
        }
    )*};
}

integer!(i32, u32, i64, u64);
float!(f32, f64);

impl<H: Host, P: Program<H>> Splitc<H, P> {
    /// Combines a value of each processor, in the order of their numbers. The result is on
    /// processor 0; others get their own value back. Collective.
    pub fn reduce_to_one<T: Number>(&mut self, reduction: Reduction, value: T) -> Result<T, Error> {
        let combine = combination::<T>(reduction)?;
        self.enter("a reduction")?;
        let reduced = self.reduce_to_first(Kind::Reduce, value.to_word(), &combine)?;
        Ok(match self.job.proc {
            0 => T::from_word(reduced),
            _ => value,
        })
    }

    /// The same, with the same result on all processors.
    pub fn reduce_to_all<T: Number>(&mut self, reduction: Reduction, value: T) -> Result<T, Error> {
        let combine = combination::<T>(reduction)?;
        self.enter("a reduction")?;
        let reduced = self.reduce_to_first(Kind::Reduce, value.to_word(), &combine)?;
        let reduced = self.spread_from(Kind::Reduce, 0, reduced)?;
        Ok(T::from_word(reduced))
    }

    /// Combines the values of this processor and of those with lower numbers. Collective.
    pub fn scan<T: Number>(&mut self, reduction: Reduction, value: T) -> Result<T, Error> {
        let combine = combination::<T>(reduction)?;
        self.enter("a scan")?;
        let scanned = self.scan_values(value.to_word(), &combine)?;
        Ok(T::from_word(scanned))
    }

    /// Gives the bytes that `root` has to all processors. As many on each. Collective.
    pub fn broadcast(&mut self, root: u32, bytes: &mut [u8]) -> Result<(), Error> {
        if root >= self.job.procs {
            return Err(Error::BadOperation {
                what: "a broadcast from a processor that the job does not have",
            });
        }
        self.enter("a broadcast")?;
        for piece in bytes.chunks_mut(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            let value = self.spread_from(Kind::Broadcast, root, u64::from_le_bytes(word))?;
            piece.copy_from_slice(&value.to_le_bytes()[..piece.len()]);
        }
        Ok(())
    }
}

/// How words of such numbers are combined.
fn combination<T: Number>(reduction: Reduction) -> Result<impl Fn(u64, u64) -> u64, Error> {
    let zero = T::from_word(0);
    if T::combine(reduction, zero, zero).is_none() {
        return Err(Error::BadOperation {
            what: "bitwise reductions are for integers: there is no such reduction of floating-point numbers",
        });
    }
    Ok(move |a, b| {
        let combined = T::combine(reduction, T::from_word(a), T::from_word(b));
        combined.map_or(a, T::to_word)
    })
}
