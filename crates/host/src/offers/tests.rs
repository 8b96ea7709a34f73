use std::net::IpAddr;

use super::*;

const OWN_USER: u32 = 1000;

fn name(item: &str) -> Name {
    Name::new(item).unwrap()
}

/// Asks for items; the answer arrives.
fn ask(offers: &Offers, items: &[&str], asker: Asker) -> Vec<Reply> {
    let arrive = |replies: &Replies| Ok::<_, ()>(replies.replies().to_vec());
    offers
        .answer(&of(items), asker, usize::MAX, &HashMap::new(), arrive)
        .unwrap()
}

fn of(items: &[&str]) -> Question {
    let items: Vec<Name> = items.iter().map(|item| name(item)).collect();
    Question::for_first(&items, usize::MAX).unwrap()
}

fn ask_one(offers: &Offers, asker: Asker) -> Reply {
    ask(offers, &["a"], asker).remove(0)
}

fn given(bytes: &[u8]) -> Reply {
    Reply::Given(bytes.to_vec())
}

const NOTHING: Reply = Reply::Refused(Reply::NOT_OFFERED);

fn refused(RefusedBecause(reason): RefusedBecause) -> Reply {
    Reply::Refused(reason)
}

fn take(offers: &Offers, item: &str) -> Option<Vec<u8>> {
    match ask(offers, &[item], Asker::Oneself).remove(0) {
        Reply::Given(bytes) => Some(bytes),
        Reply::Refused(_) => None,
    }
}

#[test]
fn what_cannot_be_given_stays_in_its_place() {
    let offers = Offers::new(OWN_USER);
    for byte in 0..3 {
        offers.offer(name("a"), Supply::Once, &[byte]).unwrap();
    }
    let keep = |replies: &Replies| Err::<(), _>(replies.replies().to_vec());
    let failed = offers.answer(
        &of(&["a"]),
        Asker::Oneself,
        usize::MAX,
        &HashMap::new(),
        keep,
    );
    assert_eq!(failed, Err(vec![given(&[0])]));
    for byte in 0..3 {
        assert_eq!(take(&offers, "a"), Some(vec![byte]));
    }
    assert_eq!(take(&offers, "a"), None);
    assert!(offers.lock().by_item.is_empty());
}

#[test]
fn the_count_follows() {
    let offers = Offers::new(OWN_USER);
    for _ in 0..3 {
        offers.offer(name("a"), Supply::Once, b"x").unwrap();
    }
    offers.offer(name("b"), Supply::Always, b"x").unwrap();
    assert_eq!(offers.lock().offers, 4);
    offers.offer(name("a"), Supply::Always, b"y").unwrap();
    offers.offer(name("a"), Supply::Once, b"z").unwrap();
    assert_eq!(offers.lock().offers, 3);
    assert_eq!(take(&offers, "a").as_deref(), Some(b"z".as_slice()));
    assert_eq!(take(&offers, "a").as_deref(), Some(b"y".as_slice()));
    assert_eq!(take(&offers, "a").as_deref(), Some(b"y".as_slice()));
    assert_eq!(offers.lock().offers, 2);
    offers.withdraw(&name("a"));
    offers.withdraw(&name("a"));
    offers.withdraw(&name("b"));
    assert_eq!(offers.lock().offers, 0);
    assert!(offers.lock().by_item.is_empty());
}

/// Offers one place after the other to that asker until it is refused; how many it got, and why no
/// more.
fn take_all(offers: &Offers, most: u32, asker: Asker) -> (u32, Reply) {
    for count in 0.. {
        let _ = offers.offer_place(name("a"), most, b"x").unwrap();
        match ask_one(offers, asker) {
            Reply::Given(_) => {}
            why => return (count, why),
        }
    }
    unreachable!("somebody got all places and more")
}

#[test]
fn no_asker_gets_all_places_and_a_newcomer_gets_one() {
    let share = || refused(RefusedBecause::SHARE);
    let process = |user, process| Asker::Process { user, process };
    let host = Asker::Host(IpAddr::from([10, 0, 0, 1]));
    for most in [3, 4, 5, 8, 64, 256, 65_535] {
        let offers = Offers::new(OWN_USER);
        let (greedy, why) = take_all(&offers, most, process(OWN_USER, 1));
        assert_eq!(
            (greedy, why),
            ((most * 2).div_ceil(3), share()),
            "of {most}"
        );
        let newcomer = take_all(&offers, most, process(OWN_USER, 2)).0;
        assert!(newcomer > 0, "of {most}");
        // Another user's programs have one half together, and so have those of a host.
        for (first, second) in [(process(1, 1), process(1, 2)), (host, host)] {
            let offers = Offers::new(OWN_USER);
            let half = take_all(&offers, most, first).0;
            assert_eq!(half, most.div_ceil(2), "of {most}");
            assert_eq!(take_all(&offers, most, second), (0, share()), "of {most}");
            assert!(take_all(&offers, most, process(2, 3)).0 > 0, "of {most}");
        }
    }
}

#[test]
fn the_only_place_is_for_anybody() {
    for asker in [
        Asker::Oneself,
        Asker::Process {
            user: 1,
            process: 0,
        },
        Asker::Host(IpAddr::from([0; 16])),
    ] {
        let offers = Offers::new(OWN_USER);
        let place = offers.offer_place(name("a"), 1, b"x").unwrap();
        let ask = || ask_one(&offers, asker);
        assert_eq!(ask(), given(b"x"));
        assert_eq!(ask(), refused(RefusedBecause::FULL));
        offers.return_place(&name("a"), place);
        assert_eq!(ask(), NOTHING);
        offers.run_short(&name("a"));
        assert_eq!(ask(), refused(RefusedBecause::SHORT));
        let _ = offers.offer_place(name("a"), 1, b"x").unwrap();
        assert_eq!(ask(), given(b"x"));
    }
}

#[test]
fn a_place_that_is_returned_is_counted_no_more() {
    let asker = Asker::Process {
        user: 1,
        process: 7,
    };
    let offers = Offers::new(OWN_USER);
    // More often than there are places.
    for _ in 0..20 {
        let taken = offers.offer_place(name("a"), 4, b"x").unwrap();
        let spare = offers.offer_place(name("a"), 4, b"y").unwrap();
        assert_eq!(ask_one(&offers, asker), given(b"x"));
        assert_eq!(offers.offered(&name("a")), 1);
        for place in [taken, spare, taken, spare] {
            offers.return_place(&name("a"), place);
        }
        assert_eq!(offers.offered(&name("a")), 0);
        let shelves = offers.lock();
        let places = shelves.by_item[&name("a")].places.as_ref().unwrap();
        assert!(places.are_all_left());
        assert_eq!(shelves.offers, 0);
    }
    offers.withdraw(&name("a"));
    assert!(offers.lock().by_item.is_empty());
}

#[test]
fn one_item_that_is_refused_fails_no_other() {
    let offers = Offers::new(OWN_USER);
    let asker = Asker::Process {
        user: 1,
        process: 7,
    };
    offers.offer(name("a"), Supply::Once, b"a").unwrap();
    let _ = offers.offer_place(name("b"), 1, b"b").unwrap();
    offers.offer(name("c"), Supply::Always, b"c").unwrap();
    let all = ["a", "none", "b", "c"];
    let replies = ask(&offers, &all, asker);
    assert_eq!(replies, [given(b"a"), NOTHING, given(b"b"), given(b"c")]);
    let replies = ask(&offers, &all, asker);
    let full = refused(RefusedBecause::FULL);
    assert_eq!(replies, [NOTHING, NOTHING, full, given(b"c")]);
}

#[test]
fn shares_are_kept_in_a_question_for_many() {
    let offers = Offers::new(OWN_USER);
    let stranger = Asker::Process {
        user: 1,
        process: 7,
    };
    for item in ["a", "b", "c"] {
        for _ in 0..4 {
            let _ = offers.offer_place(name(item), 4, b"x").unwrap();
        }
    }
    let _ = ask(&offers, &["a"], stranger);
    let all = ["a", "b", "c"];
    assert_eq!(
        ask(&offers, &all, stranger),
        [given(b"x"), given(b"x"), given(b"x")]
    );
    let share = || refused(RefusedBecause::SHARE);
    assert_eq!(
        ask(&offers, &all, stranger),
        [share(), given(b"x"), given(b"x")]
    );
    assert_eq!(ask(&offers, &all, stranger), [share(), share(), share()]);
    // The others' half is left.
    let left = all.map(|item| offers.offered(&name(item)));
    assert_eq!(left, [2, 2, 2]);
}

#[test]
fn an_answer_gives_nothing_that_it_does_not_bring() {
    let offers = Offers::new(OWN_USER);
    let asker = Asker::Oneself;
    let long = vec![7; OFFER_BYTES_MAX];
    let places = ["a", "b", "c"].map(|item| offers.offer_place(name(item), 1, &long).unwrap());
    let question = of(&["a", "b", "c"]);
    let (room, before) = (2 * Replies::ONE_BYTES_MAX, HashMap::new());
    let count = |replies: &Replies| Ok::<_, usize>(replies.replies().len());
    // It cannot be sent.
    let fail = |replies: &Replies| Err::<usize, _>(replies.replies().len());
    assert_eq!(offers.answer(&question, asker, room, &before, fail), Err(2));
    let offered = || ["a", "b", "c"].map(|item| offers.offered(&name(item)));
    assert_eq!(offered(), [1, 1, 1]);
    assert_eq!(offers.answer(&question, asker, room, &before, count), Ok(2));
    assert_eq!(offered(), [0, 0, 1]);
    for (item, place) in ["a", "b", "c"].into_iter().zip(places) {
        offers.return_place(&name(item), place);
        let shelves = offers.lock();
        let places = shelves.by_item[&name(item)].places.as_ref().unwrap();
        assert!(places.are_all_left(), "{item}");
    }
}

#[test]
fn what_was_given_in_a_lost_answer_is_given_again_and_nothing_else() {
    let offers = Offers::new(OWN_USER);
    for item in ["a", "b"] {
        for byte in 0..2 {
            offers.offer(name(item), Supply::Once, &[byte]).unwrap();
        }
    }
    let before = HashMap::from([(name("a"), vec![9])]);
    let arrive = |replies: &Replies| Ok::<_, ()>(replies.replies().to_vec());
    let replies = offers.answer(&of(&["a", "b"]), Asker::Oneself, 2_000, &before, arrive);
    assert_eq!(replies, Ok(vec![given(&[9]), given(&[0])]));
    let offered = ["a", "b"].map(|item| offers.offered(&name(item)));
    assert_eq!(offered, [2, 1]);
}
