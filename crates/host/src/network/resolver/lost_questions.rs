//! Questions to interfaces of other hosts that got no answer, so that no offer is lost with one.

use std::collections::VecDeque;

use crate::process::name::Name;
use crate::question::Question;

/// Items whose last question got no answer, and its number. An asker that uses that
/// number again is given what was in the answer. The oldest are forgotten.
#[derive(Default)]
pub(super) struct LostQuestions(VecDeque<Lost>);

struct Lost {
    /// The interface that was asked, as errors show it.
    to: String,
    item: Name,
    number: u64,
}

const LOST_MAX: usize = 1_024;

const _: () = assert!(LOST_MAX >= Question::ITEMS_MAX);

impl LostQuestions {
    pub(super) fn number_of(&self, to: &str, item: &Name) -> Option<u64> {
        let is_it = |lost: &&Lost| lost.item == *item && lost.to == to;
        self.0.iter().find(is_it).map(|lost| lost.number)
    }

    pub(super) fn forget(&mut self, to: &str, item: &Name) {
        self.0.retain(|lost| lost.item != *item || lost.to != to);
    }

    pub(super) fn note(&mut self, to: &str, item: &Name, number: u64) {
        self.forget(to, item);
        if self.0.len() == LOST_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Lost {
            to: to.to_owned(),
            item: item.clone(),
            number,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_too_many_lost_questions_are_forgotten() {
        let item = |number: usize| Name::new(&number.to_string()).unwrap();
        let mut lost = LostQuestions::default();
        for number in 0..LOST_MAX {
            lost.note("a", &item(number), 1);
        }
        lost.note("a", &item(1), 2);
        assert_eq!(lost.number_of("a", &item(0)), Some(1));
        lost.note("b", &item(0), 3);
        assert_eq!(lost.number_of("a", &item(0)), None);
        assert_eq!(lost.number_of("b", &item(0)), Some(3));
        assert_eq!(lost.number_of("a", &item(1)), Some(2));
        lost.forget("a", &item(1));
        assert_eq!(lost.number_of("a", &item(1)), None);
        assert_eq!(lost.0.len(), LOST_MAX - 1);
    }
}
