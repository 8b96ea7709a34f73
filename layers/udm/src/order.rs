//! Messages of a node of another host, in the order in which they were sent: between hosts packets
//! may arrive in any order, so each has a number there.

use std::collections::BTreeMap;

/// Messages that wait for earlier ones: more than a transport has under way.
const EARLY_MAX: usize = 1 << 16;
/// Their bytes.
const EARLY_BYTES_MAX: usize = 64 << 20;

/// The order of the messages of one node.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The number of the message that is next.
    next: u32,
    /// Those that came before their turn, with their handlers, by how far they are ahead of the
    /// first number of all.
    early: BTreeMap<u64, (u16, Vec<u8>)>,
    early_bytes: usize,
    /// Messages that had their turn.
    taken: u64,
}

/// The place of a message in its order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// It is its turn.
    Now,
    /// It waits for its turn.
    Later,
    /// It has a number that was there before, or more wait than there can be: its sender does not
    /// follow the rules.
    Wrong,
}

impl Order {
    /// A message came with that number.
    pub(crate) fn came(&mut self, number: u32, handler: u16, bytes: &[u8]) -> Turn {
        let ahead = number.wrapping_sub(self.next);
        if ahead == 0 {
            self.took_one();
            return Turn::Now;
        }
        let place = self.taken + u64::from(ahead);
        let is_in_reach = ahead < u32::MAX / 2
            && self.early.len() < EARLY_MAX
            && self.early_bytes + bytes.len() <= EARLY_BYTES_MAX;
        if !is_in_reach || self.early.contains_key(&place) {
            return Turn::Wrong;
        }
        self.early_bytes += bytes.len();
        self.early.insert(place, (handler, bytes.to_vec()));
        Turn::Later
    }

    /// A message that has waited, and whose turn it is.
    pub(crate) fn next(&mut self) -> Option<(u16, Vec<u8>)> {
        let waited = self.early.remove(&self.taken)?;
        self.early_bytes -= waited.1.len();
        self.took_one();
        Some(waited)
    }

    /// True if [`Order::next`] has one.
    pub(crate) fn has_next(&self) -> bool {
        self.early.contains_key(&self.taken)
    }

    fn took_one(&mut self) {
        self.next = self.next.wrapping_add(1);
        self.taken += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// In any order of arrival, they have their turns in that of their numbers, each once.
        #[test]
        fn any_order_becomes_the_right_one(
            begin in prop_oneof![Just(0), Just(u32::MAX - 3)],
            order in Just((0..40_u32).collect::<Vec<_>>()).prop_shuffle(),
            again in 0..40_usize,
        ) {
            let mut held = Order { next: begin, ..Order::default() };
            let mut had = Vec::new();
            for number in &order {
                let bytes = number.to_le_bytes();
                match held.came(begin.wrapping_add(*number), *number as u16, &bytes) {
                    Turn::Now => had.push(*number),
                    Turn::Later => {
                        let twice = held.came(begin.wrapping_add(*number), 0, &bytes);
                        prop_assert_eq!(twice, Turn::Wrong);
                    }
                    Turn::Wrong => prop_assert!(false, "{} is in reach", number),
                }
                prop_assert_eq!(held.has_next(), held.early.contains_key(&held.taken));
                while let Some((handler, bytes)) = held.next() {
                    prop_assert_eq!(bytes, u32::from(handler).to_le_bytes());
                    had.push(handler.into());
                }
            }
            prop_assert_eq!(had, (0..40).collect::<Vec<_>>());
            prop_assert_eq!(held.early_bytes, 0);
            let again = begin.wrapping_add(order[again]);
            prop_assert_eq!(held.came(again, 0, &[]), Turn::Wrong);
        }
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut held = Order::default();
        for number in 1..=EARLY_MAX as u32 {
            assert_eq!(held.came(number, 0, &[]), Turn::Later);
        }
        assert_eq!(held.came(EARLY_MAX as u32 + 1, 0, &[]), Turn::Wrong);
        let mut held = Order::default();
        let large = vec![0; EARLY_BYTES_MAX / 2 + 1];
        assert_eq!(held.came(1, 0, &large), Turn::Later);
        assert_eq!(held.came(2, 0, &large), Turn::Wrong);
        assert_eq!(held.came(u32::MAX / 2, 0, &[]), Turn::Wrong);
    }
}
