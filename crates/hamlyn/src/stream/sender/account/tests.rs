//! What a sender makes of what its receiver says, in any order, with anything lost, and with lies
//! among it.

use hamlyn_engine::key::Key;
use hamlyn_engine::packet::SlotName;
use proptest::prelude::*;

use super::*;

fn credit(released: u64, extent: u64, answers: u16) -> Credit {
    Credit {
        released: released as u32,
        extent: extent as u16 & EXTENT_MASK,
        answers,
        denied: false,
        closed: false,
    }
}

fn note(serial: u64, pieces: u32, answers: u16) -> ExtentNote {
    ExtentNote {
        serial,
        slot: SlotName::from_bits(3),
        key: Key::from_bits(4),
        pieces,
        piece_bytes: 1 << 14,
        answers,
    }
}

/// An account of so many pieces, of which so many are filled.
fn filled(pieces: u32, count: u64) -> Account {
    let mut account = Account::new(pieces);
    for _ in 0..count {
        account.fill();
    }
    account
}

fn request_growth(account: &mut Account, record_bytes: u64, pieces_needed: u64) {
    let grow_request = account
        .grow_request(record_bytes)
        .expect("none is under way");
    account.grow_requested(grow_request, pieces_needed);
}

#[test]
fn what_is_released_only_grows_and_is_never_more_than_was_filled() {
    let mut account = filled(8, 5);
    account.apply_credit(credit(3, 0, 0));
    assert_eq!((account.released, account.free()), (3, 6));
    for lie in [2, 6, 1 << 31, u64::from(u32::MAX)] {
        account.apply_credit(credit(lie, 0, 0));
        assert_eq!(account.released, 3, "{lie}");
    }
    account.apply_credit(credit(5, 0, 0));
    assert_eq!(account.free(), 8);
}

/// The word has 32 bits of the count; the stream goes on beyond them.
#[test]
fn credit_counts_beyond_its_bits() {
    let mut account = Account::new(8);
    for start in [(1 << 32) - 3, (1 << 48) - 3, u64::MAX - 9] {
        account.next = start + 6;
        account.released = start;
        for released in start..=start + 6 {
            account.apply_credit(credit(released, 0, 0));
            assert_eq!(account.released, released);
            account.apply_credit(credit(start, 0, 0));
            assert_eq!(account.released, released);
        }
    }
}

#[test]
fn one_demand_at_a_time_and_any_later_word_answers_it() {
    let mut account = filled(4, 4);
    request_growth(&mut account, 100, 1);
    assert!(account.is_held());
    assert_eq!(account.grow_request(100), None);
    // The answer is lost; so are some words after it. An old one comes late.
    account.apply_credit(credit(2, 0, 0));
    assert!(account.is_held());
    account.apply_credit(credit(3, 0, 1));
    assert!(!account.is_held());
    account.apply_credit(credit(1, 0, 0));
    assert!(!account.is_held());
    assert_eq!(account.free(), 3);
    request_growth(&mut account, 100, 1);
    account.apply_credit(credit(3, 0, 1));
    assert!(account.is_held(), "that was the answer to the first");
}

#[test]
fn answers_count_round() {
    let mut account = Account::new(4);
    for answers in (0..=u16::MAX).chain(0..9) {
        request_growth(&mut account, 1, 1);
        account.apply_credit(credit(0, 0, answers));
        assert!(account.is_held());
        account.apply_credit(credit(0, 0, answers.wrapping_add(1)));
        assert!(!account.is_held());
    }
}

#[test]
fn an_announcement_answers_or_leaves_the_demand_behind() {
    // The grow request is answered by it.
    let mut account = filled(4, 4);
    request_growth(&mut account, 999, 9);
    assert!(account.go_over(&note(1, 9, 1)));
    assert!(!account.is_held());
    assert_eq!((account.free(), account.place().extent), (9, 1));
    assert!(account.grow_request(1).is_some());
    // It was made while the grow request was on its way, which does not hold the sender up there.
    let mut account = filled(4, 4);
    request_growth(&mut account, 999, 9);
    assert!(account.go_over(&note(1, 8, 0)));
    assert!(!account.is_held());
    assert_eq!(account.grow_request(999), None, "one at a time");
    account.apply_credit(credit(0, 1, 1));
    assert!(account.grow_request(999).is_some());
}

#[test]
fn announcements_are_news_once_and_in_order() {
    let mut account = filled(4, 4);
    for serial in [0, 2, u64::MAX] {
        assert!(!account.go_over(&note(serial, 8, 0)), "{serial}");
    }
    assert!(account.go_over(&note(1, 8, 0)));
    account.fill();
    assert!(!account.go_over(&note(1, 8, 0)));
    assert_eq!(account.place().position, 1);
}

/// Credit of the next extent comes before its announcement: the present one ends, though a grow
/// request in it is answered.
#[test]
fn credit_before_the_announcement_holds_the_sender_up() {
    let mut account = filled(4, 2);
    request_growth(&mut account, 999, 9);
    account.apply_credit(credit(0, 1, 1));
    assert!(account.is_held());
    assert_eq!(account.grow_request(999), None);
    account.apply_credit(credit(2, 0, 0));
    assert!(account.is_held());
    assert!(account.go_over(&note(1, 8, 0)));
    assert!(!account.is_held());
}

#[test]
fn a_refusal_is_for_records_as_long_and_is_said_once() {
    let refusal = Credit {
        denied: true,
        ..credit(0, 0, 1)
    };
    let mut account = filled(4, 0);
    request_growth(&mut account, 1000, 9);
    account.apply_credit(refusal);
    account.apply_credit(refusal);
    assert!(!account.take_refusal(999));
    assert!(account.take_refusal(1000));
    assert!(!account.take_refusal(1000));
    // What is refused to a record that would fit says nothing of longer ones.
    let mut account = filled(4, 4);
    request_growth(&mut account, 10, 1);
    account.apply_credit(refusal);
    assert!(!account.is_held());
    assert!(!account.take_refusal(1000));
}

/// What was refused in an extent that is left says nothing of the one that came: the record may fit
/// there.
#[test]
fn a_refusal_that_comes_after_an_extent_is_void() {
    let mut account = filled(4, 0);
    request_growth(&mut account, 1000, 9);
    assert!(account.go_over(&note(1, 20, 0)));
    account.apply_credit(Credit {
        denied: true,
        ..credit(0, 1, 1)
    });
    assert!(!account.is_held() && !account.take_refusal(1000));
}

#[test]
fn a_stream_that_was_closed_stays_closed() {
    let mut account = Account::new(4);
    account.apply_credit(Credit {
        closed: true,
        ..credit(7, 9, 9)
    });
    account.apply_credit(credit(0, 0, 0));
    assert!(account.closed);
}

proptest! {
    /// Words and notes that nobody honest says, between what a sender does.
    #[test]
    fn no_lie_leads_to_an_impossible_account(
        pieces in 1_u32..9,
        steps in prop::collection::vec((0..5_u8, any::<u64>(), any::<u32>()), 0..200),
    ) {
        let mut account = Account::new(pieces);
        for (what, word, small) in steps {
            let (extent, before) = (account.place().extent, account.released);
            let near = u64::from(small % 11);
            match what {
                0 => account.apply_credit(Credit::from_word(word)),
                1 => account.apply_credit(credit((account.next + near).wrapping_sub(5), extent + near % 3, small as u16 % 4)),
                2 => {
                    account.go_over(&note(extent + near % 3, 1 + small % 7, small as u16 % 4));
                }
                3 => {
                    if let Some(grow_request) = account.grow_request(word) {
                        account.grow_requested(grow_request, near);
                    }
                }
                _ if account.free() > 0 && !account.is_held() => account.fill(),
                _ => {}
            }
            prop_assert!(account.released <= account.next);
            prop_assert!(account.free() <= account.pieces);
            prop_assert_eq!(u64::from(account.next_index), account.next % account.pieces);
            prop_assert!(account.place().extent > extent || account.released >= before);
        }
    }
}
