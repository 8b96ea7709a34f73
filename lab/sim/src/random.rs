//! Randomness that is decided by a seed.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A stream of numbers, the same for the same seed on every machine.
#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// A stream of its own for one part of the world, so that what one part draws changes nothing
    /// for the others.
    pub fn fork(&mut self) -> Self {
        Self::new(self.bits())
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // A bias of less than 2^-64 times `end`.
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A number of a range, its end excluded; its beginning if it is empty.
    pub fn within(&mut self, range: core::ops::Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// True so many times of a million.
    pub fn happens(&mut self, parts_per_million: u32) -> bool {
        parts_per_million != 0 && self.below(1_000_000) < u64::from(parts_per_million)
    }

    /// One of these; nothing if there are none.
    pub fn one_of<'a, T>(&mut self, among: &'a [T]) -> Option<&'a T> {
        among.get(self.below(among.len() as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_all_and_forks_are_apart() {
        let draw = |random: &mut Random| (0..64).map(|_| random.below(1000)).collect::<Vec<_>>();
        let (mut one, mut other) = (Random::new(7), Random::new(7));
        assert_eq!(draw(&mut one.fork()), draw(&mut other.fork()));
        assert_eq!(draw(&mut one), draw(&mut other));
        assert_ne!(draw(&mut one), draw(&mut Random::new(8)));
        assert!((0..1000).all(|_| (5..9).contains(&one.within(5..9))));
        assert!(!(0..1000).any(|_| one.happens(0)) && (0..1000).all(|_| one.happens(1_000_000)));
        assert_eq!(
            (one.below(0), one.within(4..4), one.one_of::<u8>(&[])),
            (0, 4, None)
        );
    }
}
