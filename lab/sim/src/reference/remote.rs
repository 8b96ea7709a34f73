//! Memory that one program changes in another's slot: an operation that is complete, or that a
//! fence was answered after, has had its effect, once, and nothing else changes.

use std::collections::BTreeMap;

use super::Violation;

/// A change that was begun.
#[derive(Clone, Debug)]
struct Change {
    at: usize,
    after: Vec<u8>,
}

/// The memory as it must be, and changes that may be there already.
#[derive(Clone, Debug, Default)]
pub struct Remote {
    bytes: Vec<u8>,
    under_way: BTreeMap<u64, Change>,
}

impl Remote {
    /// Memory of which nothing was changed yet.
    pub fn new(bytes: Vec<u8>) -> Self {
        let under_way = BTreeMap::new();
        Self { bytes, under_way }
    }

    /// What lies there, but for what is under way.
    pub fn read(&self, at: usize, length: usize) -> &[u8] {
        self.bytes.get(at..at + length).unwrap_or_default()
    }

    /// A change is about to begin. No other is under way to these bytes.
    pub fn beginning(&mut self, number: u64, at: usize, after: Vec<u8>) {
        self.under_way.insert(number, Change { at, after });
    }

    /// It did not begin after all.
    pub fn unbegun(&mut self, number: u64) {
        self.under_way.remove(&number);
    }

    /// A change is complete: it is in the memory.
    pub fn completed(&mut self, number: u64, memory: &[u8]) -> Result<(), Violation> {
        let Some(change) = self.under_way.remove(&number) else {
            return Ok(());
        };
        let place = change.at..change.at + change.after.len();
        if memory.get(place.clone()) != Some(&change.after) {
            return Err(Violation::Operation {
                number,
                why: "is said to be complete, and its bytes are not in their place",
            });
        }
        if let Some(bytes) = self.bytes.get_mut(place) {
            bytes.copy_from_slice(&change.after);
        }
        self.check(memory)
    }

    /// A value came back: it was there before.
    pub fn returned(&self, number: u64, at: usize, value: &[u8]) -> Result<(), Violation> {
        match self.read(at, value.len()) == value {
            true => Ok(()),
            false => Err(Violation::Operation {
                number,
                why: "gave other bytes than lay there",
            }),
        }
    }

    /// A fence was answered: all that was begun before it is in the memory.
    pub fn fenced(&self, begun: &[u64], memory: &[u8]) -> Result<(), Violation> {
        for (number, change) in &self.under_way {
            let place = change.at..change.at + change.after.len();
            if begun.contains(number) && memory.get(place) != Some(&change.after) {
                return Err(Violation::Operation {
                    number: *number,
                    why: "was fenced, and its bytes are not in their place",
                });
            }
        }
        self.check(memory)
    }

    /// Each byte is as it must be, or as a change makes it that is under way.
    pub fn check(&self, memory: &[u8]) -> Result<(), Violation> {
        if memory == self.bytes {
            return Ok(());
        }
        let mut expected = self.bytes.clone();
        for change in self.under_way.values() {
            for (at, after) in (change.at..).zip(&change.after) {
                if memory.get(at) == Some(after) {
                    expected[at] = *after;
                }
            }
        }
        let found = memory
            .iter()
            .zip(&expected)
            .position(|(one, other)| one != other);
        match found {
            None => Ok(()),
            Some(at) => Err(Violation::Byte {
                area: 0,
                offset: at as u64,
                expected: expected[at],
                found: memory[at],
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_there_when_it_is_complete() {
        let mut remote = Remote::new(vec![0; 8]);
        remote.beginning(1, 2, vec![7, 8]);
        assert_eq!(remote.check(&[0; 8]), Ok(()));
        assert_eq!(remote.check(&[0, 0, 0, 8, 0, 0, 0, 0]), Ok(()));
        assert!(remote.check(&[0, 0, 9, 8, 0, 0, 0, 0]).is_err());
        assert!(remote.check(&[1, 0, 7, 8, 0, 0, 0, 0]).is_err());
        assert!(
            remote
                .clone()
                .completed(1, &[0, 0, 0, 8, 0, 0, 0, 0])
                .is_err()
        );
        assert_eq!(remote.completed(1, &[0, 0, 7, 8, 0, 0, 0, 0]), Ok(()));
        assert!(remote.check(&[0; 8]).is_err());
        assert_eq!(remote.returned(2, 2, &[7, 8]), Ok(()));
        assert!(remote.returned(2, 2, &[0, 8]).is_err());
    }

    #[test]
    fn a_fence_is_answered_after_all_that_was_begun_before_it() {
        let mut remote = Remote::new(vec![0; 4]);
        remote.beginning(1, 0, vec![1]);
        remote.beginning(2, 1, vec![2]);
        assert!(remote.fenced(&[1, 2], &[1, 0, 0, 0]).is_err());
        assert_eq!(remote.fenced(&[1], &[1, 0, 0, 0]), Ok(()));
        remote.unbegun(2);
        assert!(remote.fenced(&[1], &[1, 2, 0, 0]).is_err());
    }
}
