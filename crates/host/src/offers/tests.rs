use std::net::IpAddr;

use super::*;

const OWN_USER: u32 = 1000;

fn name(item: &str) -> Name {
    Name::new(item).unwrap()
}

fn take(offers: &Offers, item: &str) -> Option<Vec<u8>> {
    let copy = |bytes: &[u8]| Ok::<_, ()>(bytes.to_vec());
    let given = offers.hand_over(&name(item), Asker::Oneself, copy);
    given.ok().map(Result::unwrap)
}

#[test]
fn what_cannot_be_given_stays_in_its_place() {
    let offers = Offers::new(OWN_USER);
    for byte in 0..3 {
        offers.offer(name("a"), Supply::Once, &[byte]).unwrap();
    }
    let keep = |bytes: &[u8]| Err::<(), _>(bytes.to_vec());
    let failed = offers.hand_over(&name("a"), Asker::Oneself, keep);
    assert_eq!(failed, Ok(Err(vec![0])));
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
fn take_all(offers: &Offers, most: u32, asker: Asker) -> (u32, NotGiven) {
    for count in 0.. {
        let _ = offers.offer_place(name("a"), most, b"x").unwrap();
        match offers.hand_over(&name("a"), asker, |_| Ok::<_, ()>(())) {
            Ok(given) => given.unwrap(),
            Err(why) => return (count, why),
        }
    }
    unreachable!("somebody got all places and more")
}

#[test]
fn no_asker_gets_all_places_and_a_newcomer_gets_one() {
    let share = NotGiven::Because(RefusedBecause::SHARE);
    let process = |user, process| Asker::Process { user, process };
    let host = Asker::Host(IpAddr::from([10, 0, 0, 1]));
    for most in [3, 4, 5, 8, 64, 256, 65_535] {
        let offers = Offers::new(OWN_USER);
        let (greedy, why) = take_all(&offers, most, process(OWN_USER, 1));
        assert_eq!((greedy, why), ((most * 2).div_ceil(3), share), "of {most}");
        let newcomer = take_all(&offers, most, process(OWN_USER, 2)).0;
        assert!(newcomer > 0, "of {most}");
        // Another user's programs have one half together, and so have those of a host.
        for (first, second) in [(process(1, 1), process(1, 2)), (host, host)] {
            let offers = Offers::new(OWN_USER);
            let half = take_all(&offers, most, first).0;
            assert_eq!(half, most.div_ceil(2), "of {most}");
            assert_eq!(take_all(&offers, most, second), (0, share), "of {most}");
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
        let ask = || offers.hand_over(&name("a"), asker, |_| Ok::<_, ()>(()));
        assert_eq!(ask(), Ok(Ok(())));
        assert_eq!(ask(), Err(NotGiven::Because(RefusedBecause::FULL)));
        offers.return_place(&name("a"), place);
        assert_eq!(ask(), Err(NotGiven::Nothing));
        offers.run_short(&name("a"));
        assert_eq!(ask(), Err(NotGiven::Because(RefusedBecause::SHORT)));
        let _ = offers.offer_place(name("a"), 1, b"x").unwrap();
        assert_eq!(ask(), Ok(Ok(())));
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
        let given = offers.offer_place(name("a"), 4, b"x").unwrap();
        let spare = offers.offer_place(name("a"), 4, b"y").unwrap();
        let got = offers.hand_over(&name("a"), asker, |bytes| Ok::<_, ()>(bytes.to_vec()));
        assert_eq!(got, Ok(Ok(b"x".to_vec())));
        assert_eq!(offers.offered(&name("a")), 1);
        for place in [given, spare, given, spare] {
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
