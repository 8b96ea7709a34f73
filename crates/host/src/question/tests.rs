use super::*;
use proptest::prelude::*;

fn name(item: &str) -> Name {
    Name::new(item).unwrap()
}

fn names(count: usize, length: usize) -> Vec<Name> {
    let item = |at: usize| name(&format!("{at:0length$}"));
    (0..count).map(item).collect()
}

fn question(items: &[Name]) -> Question {
    Question::for_first(items, usize::MAX).unwrap()
}

fn bytes_of(question: &Question) -> Vec<u8> {
    let mut bytes = Vec::new();
    question.put(&mut bytes);
    bytes
}

#[test]
fn a_question_has_the_first_items_that_fit() {
    let ask = |items: &[Name], room| {
        let asked = Question::for_first(items, room).map(|question| question.items().len());
        asked.unwrap_or(0)
    };
    let items = names(200, Name::BYTES_MAX);
    assert_eq!(ask(&items, usize::MAX), Question::ITEMS_MAX);
    assert_eq!(bytes_of(&question(&items)).len(), Question::BYTES_MAX);
    assert_eq!(ask(&items, Question::BYTES_MAX), Question::ITEMS_MAX);
    assert_eq!(
        ask(&items, Question::BYTES_MAX - 1),
        Question::ITEMS_MAX - 1
    );
    assert_eq!(ask(&items, Question::bytes_of_longest(3)), 3);
    assert_eq!(ask(&items, Question::bytes_of_longest(1) - 1), 0);
    assert_eq!(ask(&[], usize::MAX), 0);
    // An item that is wanted twice is for the next question, and all that come after it.
    let twice = ["a", "b", "a", "c"].map(name);
    assert_eq!(ask(&twice, usize::MAX), 2);
}

#[test]
fn an_answer_has_the_first_replies_that_fit() {
    let question = question(&names(4, 2));
    let answer = |lengths: [usize; 4], room| {
        let mut lengths = lengths.into_iter();
        let replies = Replies::to(&question, room, |_| match lengths.next() {
            Some(length) if length > 0 => Reply::Given(vec![7; length]),
            _ => Reply::Refused(Reply::NOT_OFFERED),
        });
        let mut bytes = Vec::new();
        replies.put(&mut bytes);
        assert!(bytes.len() <= room);
        assert_eq!(Replies::take(&bytes), Ok(replies.clone()));
        replies.of(&question).unwrap().len()
    };
    let least = Replies::ONE_BYTES_MAX;
    assert_eq!(answer([OFFER_BYTES_MAX, 1, 1, 1], least), 1);
    assert_eq!(answer([1, OFFER_BYTES_MAX, 1, 1], least), 1);
    assert_eq!(answer([1, OFFER_BYTES_MAX - 3, 1, 1], least), 2);
    assert_eq!(answer([0, 300, 0, 300], least), 4);
    assert_eq!(answer([OFFER_BYTES_MAX; 4], 3 * least), 3);
}

#[test]
fn lists_that_lie_are_refused() {
    let items = ["a", "bc", "d"].map(name);
    let good = bytes_of(&question(&items));
    assert_eq!(good, [3, 1, b'a', 2, b'b', b'c', 1, b'd']);
    let why = |bytes: &[u8]| Question::take(bytes).unwrap_err();
    for length in 0..good.len() {
        assert_eq!(why(&good[..length]), "its list is cut");
    }
    assert_eq!(why(&[0]), "its list is empty");
    assert_eq!(why(&[65]), "its list is too long");
    assert_eq!(why(&[255]), "its list is too long");
    assert_eq!(why(&[2, 1, b'a', 1, b'a']), "it asks for an item twice");
    assert_eq!(why(&[1, 2, b'a']), "its list is cut");
    assert_eq!(why(&[1, 255, b'a']), "its list is cut");
    assert_eq!(why(&[1, 1, b'a', 0]), "there is more than its list says");
    assert_eq!(why(&[1, 1, 0xff]), "an item that is no text");
    for bad in [
        &[1, 0][..],
        &[1, 1, b' '],
        &[[1, 65].as_slice(), &[b'a'; 65]].concat(),
    ] {
        assert!(Question::take(bad).is_err(), "{bad:?}");
    }

    let why = |bytes: &[u8]| Replies::take(bytes).unwrap_err();
    let good = [2, 2, 0, 7, 8, 0, 0, 101, 0];
    assert!(Replies::take(&good).is_ok());
    for length in 0..good.len() {
        assert_eq!(why(&good[..length]), "its list is cut");
    }
    assert_eq!(why(&[0]), "its list is empty");
    assert_eq!(why(&[65]), "its list is too long");
    assert_eq!(why(&[1, 1, 4]), "it gives too much");
    assert_eq!(why(&[1, 1, 0, 7, 7]), "there is more than its list says");
    let more = Replies::take(&good).unwrap();
    assert_eq!(more.of(&Question::one(name("a"))), None);
}

proptest! {
    /// Any bytes are refused, or are the one encoding of their meaning.
    #[test]
    fn any_bytes_are_a_list_or_invalid(bytes in prop::collection::vec(0u8..4, 0..40)) {
        let letter = |&byte: &u8| if byte == 3 { b'a' } else { byte };
        let letters: Vec<u8> = bytes.iter().map(letter).collect();
        for bytes in [bytes, letters] {
            let mut again = Vec::new();
            if let Ok(question) = Question::take(&bytes) {
                question.put(&mut again);
                prop_assert_eq!(&again, &bytes);
            }
            again.clear();
            if let Ok(replies) = Replies::take(&bytes) {
                replies.put(&mut again);
                prop_assert_eq!(&again, &bytes);
            }
        }
    }
}
