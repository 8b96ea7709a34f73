//! Answers against what was asked, by a model of counts: a target may answer early, twice, or for
//! more than it was asked.

use proptest::prelude::*;

use hamlyn_engine::operation::AnswerWord;

use crate::engine::slot::Rights;
use crate::one_sided::{InitiatorOptions, Operation, Operations};
use crate::{NewSlot, Wait};

const LENGTH_BYTES: u64 = 40;

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    Ask {
        of: usize,
        bytes: u64,
    },
    Answer {
        of: usize,
        bytes: u64,
        is_last: bool,
    },
    GiveUp {
        of: usize,
    },
    Fetch {
        of: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let of = 0..4_usize;
    let step = prop_oneof![
        Just(Step::Begin),
        (of.clone(), 1..=LENGTH_BYTES).prop_map(|(of, bytes)| Step::Ask { of, bytes }),
        (of.clone(), 0..=LENGTH_BYTES, any::<bool>())
            .prop_map(|(of, bytes, is_last)| Step::Answer { of, bytes, is_last }),
        of.clone().prop_map(|of| Step::GiveUp { of }),
        of.prop_map(|of| Step::Fetch { of }),
    ];
    proptest::collection::vec(step, 0..60)
}

/// What a target may know of an operation.
#[derive(Clone, Copy)]
struct Counted {
    operation: Operation,
    asked_bytes: u64,
    answered_bytes: u64,
    requests: u32,
    is_given_up: bool,
}

impl Counted {
    fn is_answered(&self) -> bool {
        self.requests == 0 && self.answered_bytes == self.asked_bytes
    }
}

/// Carries the steps out in both; the first answer that the model refuses must be refused, and no
/// other.
fn agree(operations: &mut Operations, steps: &[Step]) {
    let mut model: Vec<Counted> = Vec::new();
    for &step in steps {
        match step {
            Step::Begin if model.len() < 4 => model.push(Counted {
                operation: operations.begin(LENGTH_BYTES).unwrap(),
                asked_bytes: 0,
                answered_bytes: 0,
                requests: 0,
                is_given_up: false,
            }),
            Step::Ask { of, bytes } if of < model.len() && !model[of].is_given_up => {
                let counted = &mut model[of];
                let bytes = bytes.min(LENGTH_BYTES - counted.asked_bytes);
                if bytes > 0 {
                    operations.asked(counted.operation, bytes);
                    counted.asked_bytes += bytes;
                    counted.requests += 1;
                }
                if counted.asked_bytes == LENGTH_BYTES {
                    operations.all_asked(counted.operation);
                }
            }
            Step::Answer { of, bytes, is_last } if of < model.len() => {
                let counted = &mut model[of];
                let word = AnswerWord {
                    token: counted.operation.to_bits(),
                    bytes: bytes as u32,
                    is_last,
                    refused: None,
                };
                let is_one = operations.answered(word.to_bits());
                let is_too_much = counted.answered_bytes + bytes > counted.asked_bytes
                    || (is_last && counted.requests == 0);
                assert_eq!(operations.is_flooded(), is_too_much, "{step:?}");
                if is_too_much {
                    return;
                }
                assert_eq!(is_one, is_last);
                counted.answered_bytes += bytes;
                counted.requests -= u32::from(is_last);
                if counted.is_given_up && counted.is_answered() {
                    model.swap_remove(of);
                }
            }
            Step::GiveUp { of } if of < model.len() => {
                let counted = &mut model[of];
                operations.give_up(counted.operation);
                counted.is_given_up = true;
                if counted.is_answered() {
                    model.swap_remove(of);
                }
            }
            Step::Fetch { of } if of < model.len() && !model[of].is_given_up => {
                let counted = model[of];
                let is_whole = counted.asked_bytes == LENGTH_BYTES && counted.is_answered();
                let fetched = operations.fetch(counted.operation);
                assert_eq!(fetched.is_some(), is_whole, "{step:?}");
                if is_whole {
                    assert_eq!(fetched, Some(Ok(())));
                    model.swap_remove(of);
                }
            }
            _ => {}
        }
        let given_up = model.iter().any(|counted| counted.is_given_up);
        assert_eq!(operations.has_given_up(), given_up);
        let kept = model.iter().filter(|counted| !counted.is_given_up).count();
        assert_eq!(operations.outstanding(), kept);
    }
}

/// With the operations of an initiator of its own.
fn with_operations(run: impl FnOnce(&mut Operations)) {
    let manager = crate::open_unnamed().unwrap();
    let mut interface = manager.session();
    let area = interface.allocate(4096).unwrap();
    let new = NewSlot::new(&area).rights(Rights::ALL);
    let slot = interface.open_slot(new).unwrap();
    let ticket = slot.fast_ticket(0, 4096).unwrap();
    let target = interface.target(&ticket, Wait::millis(5000)).unwrap();
    let options = InitiatorOptions::default();
    let initiator = interface.open_initiator(target, options).unwrap();
    run(interface.operating.of(&initiator).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn answers_are_counted_against_what_was_asked(steps in steps()) {
        with_operations(|operations| agree(operations, &steps));
    }
}

#[test]
fn an_answer_for_more_than_was_asked_is_a_flood() {
    with_operations(|operations| {
        let operation = operations.begin(1_000_000).unwrap();
        operations.asked(operation, 8192);
        let early = AnswerWord {
            token: operation.to_bits(),
            bytes: 1_000_000,
            is_last: true,
            refused: None,
        };
        assert!(!operations.answered(early.to_bits()));
        assert!(operations.is_flooded());
        operations.give_up(operation);
    });
}
