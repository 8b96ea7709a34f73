//! Many items in one question: what it costs, and what becomes of each item.

mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn_host::offers::OFFER_BYTES_MAX;
use hamlyn_host::process::codec::{self, Message, REPLIES_BYTES_MAX};
use hamlyn_host::process::name::Name;
use hamlyn_host::question::{Question, Reply};
use hamlyn_host::{
    Address, ConnectError, Connector, Given, Host, HostError, RefusedBecause, Supply, Wanted,
};
use rustix::net::{Shutdown, shutdown};
use support::raw::{Raw, RawListener};
use support::*;

const SHOP: Address<'_> = Address::Name("shop");

type Outcome = Result<Vec<u8>, ConnectError>;

/// Asks for all of these at once.
fn ask_at(host: &Owner, wanted: &[(Address<'_>, &str)], span_ns: u64) -> Vec<Outcome> {
    let wanted: Vec<_> = wanted
        .iter()
        .map(|&(to, item)| Wanted { to, item })
        .collect();
    let deadline_ns = after_ns(host, span_ns);
    let asked = host.connector().ask(&wanted, deadline_ns);
    assert_eq!(asked.len(), wanted.len());
    asked
        .into_iter()
        .map(|given| given.map(|Given { bytes, .. }| bytes))
        .collect()
}

fn ask(host: &Owner, items: &[impl AsRef<str>]) -> Vec<Outcome> {
    let wanted: Vec<_> = items.iter().map(|item| (SHOP, item.as_ref())).collect();
    ask_at(host, &wanted, TIMEOUT_NS)
}

fn items(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("item{at}")).collect()
}

/// Questions that were answered: counted a moment after the last answer, which `last` waits for.
fn answered(host: &Owner, least: u64) -> u64 {
    let deadline_ns = after_ns(host, TIMEOUT_NS);
    loop {
        let counters = host.rendezvous_counters();
        if counters.answered >= least {
            return counters.answered;
        }
        assert!(host.now_ns() < deadline_ns, "{counters:?}");
        std::thread::yield_now();
    }
}

#[test]
fn many_items_take_one_question_and_more_take_as_few_as_they_fit() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let asker = unnamed(&namespace);
    let all = items(200);
    for item in &all {
        shop.offer(item, Supply::Always, item.as_bytes()).unwrap();
    }
    let mut questions = 0;
    for (count, takes) in [(1, 1), (2, 1), (64, 1), (65, 2), (200, 4)] {
        let given = ask(&asker, &all[..count]);
        for (item, given) in all.iter().zip(given) {
            assert_eq!(given.unwrap(), item.as_bytes());
        }
        questions += takes;
        assert_eq!(answered(&shop, questions), questions, "{count} items");
    }
    assert_eq!(shop.rendezvous_counters().accepted, 0);
    // The interface itself is asked without a handshake.
    assert!(ask(&shop, &all).iter().all(Result::is_ok));
    assert_eq!(answered(&shop, questions), questions);
    assert!(ask(&asker, &[""; 0]).is_empty());
}

#[test]
fn long_offers_go_in_as_many_answers_as_they_need() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let asker = unnamed(&namespace);
    let all = items(20);
    for item in &all {
        shop.offer(item, Supply::Once, &[7; OFFER_BYTES_MAX])
            .unwrap();
    }
    for given in ask(&asker, &all) {
        assert_eq!(given.unwrap(), [7; OFFER_BYTES_MAX]);
    }
    let each = REPLIES_BYTES_MAX / (2 + OFFER_BYTES_MAX);
    assert_eq!(answered(&shop, 3), 20_usize.div_ceil(each) as u64);
}

#[test]
fn an_item_that_is_refused_fails_no_other() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let mut asker = unnamed(&namespace);
    shop.offer("menu", Supply::Always, b"soup").unwrap();
    let _ = shop.offer_place("seat", 1, b"A1").unwrap();
    assert_eq!(asker.ask(SHOP, "seat", u64::MAX).unwrap(), b"A1");
    asker.offer("own", Supply::Always, b"mine").unwrap();
    let itself = Address::Destination(asker.identity());
    let wanted = [
        (SHOP, "menu"),
        (SHOP, "nothing"),
        (SHOP, "seat"),
        (SHOP, "bad name"),
        (Address::Name("nobody"), "x"),
        (Address::Name(""), "x"),
        (itself, "own"),
        (itself, "nothing"),
        (SHOP, "menu"),
    ];
    let outcomes = ask_at(&asker, &wanted, 100_000_000);
    assert_eq!(outcomes[0].as_deref(), Ok(&b"soup"[..]));
    assert!(
        matches!(&outcomes[1], Err(ConnectError::NotOffered { item, .. }) if item == "nothing")
    );
    let full = RefusedBecause::FULL;
    assert!(matches!(&outcomes[2], Err(ConnectError::Refused { reason, .. }) if *reason == full));
    for bad in [3, 5] {
        let error = outcomes[bad].as_ref().unwrap_err();
        let is_bad = matches!(error, ConnectError::Host(HostError::BadName { .. }));
        assert!(is_bad, "{error}");
    }
    assert!(matches!(&outcomes[4], Err(ConnectError::Absent { to }) if to == "\"nobody\""));
    assert_eq!(outcomes[6].as_deref(), Ok(&b"mine"[..]));
    assert!(matches!(&outcomes[7], Err(ConnectError::NotOffered { .. })));
    assert_eq!(outcomes[8].as_deref(), Ok(&b"soup"[..]));
}

#[test]
fn an_item_that_is_wanted_twice_is_asked_for_in_two_questions() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let asker = unnamed(&namespace);
    for seat in [b"A1", b"A2"] {
        shop.offer("seat", Supply::Once, seat).unwrap();
    }
    shop.offer("menu", Supply::Always, b"soup").unwrap();
    let given = ask(&asker, &["seat", "menu", "seat"]);
    let given: Vec<_> = given.into_iter().map(Result::unwrap).collect();
    assert_eq!(given, [&b"A1"[..], b"soup", b"A2"]);
    assert_eq!(answered(&shop, 2), 2);
}

#[test]
fn items_that_come_later_are_waited_for_and_others_are_not_asked_for_again() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let asker = unnamed(&namespace);
    shop.offer("first", Supply::Once, b"1").unwrap();
    let asked = std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&asker, &["first", "second", "third"]));
        // It has been told that there is no other one.
        answered(&shop, 1);
        for item in ["first", "second", "third"] {
            shop.offer(item, Supply::Once, b"2").unwrap();
        }
        asking.join().unwrap()
    });
    let given: Vec<_> = asked.into_iter().map(Result::unwrap).collect();
    assert_eq!(given, [b"1", b"2", b"2"]);
    assert_eq!(shop.offered("first"), 1);
}

#[test]
fn a_question_takes_one_place_of_each_item() {
    const PLACES: u32 = 6;
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    for item in ["a", "b"] {
        for _ in 0..PLACES {
            let _ = shop.offer_place(item, PLACES, b"x").unwrap();
        }
    }
    let question = Question::for_first(&["a", "b"].map(|item| Name::new(item).unwrap()), 100);
    let ask = codec::encode(&Message::Ask(question.unwrap()));
    for round in 0..=PLACES {
        let client = Raw::connect(&namespace, shop.identity().interface);
        client.greeted();
        assert!(client.send(&ask, &[]));
        let Some(Message::Answer(replies)) = client.message() else {
            panic!("no answer");
        };
        let expected = match round < PLACES {
            true => Reply::Given(b"x".to_vec()),
            false => Reply::Refused(RefusedBecause::FULL.0),
        };
        assert_eq!(replies.replies(), [expected.clone(), expected]);
    }
}

/// An interface that does not answer does not keep the others' items until the deadline.
#[test]
fn one_that_stalls_leaves_time_for_others() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let asker = unnamed(&namespace);
    let _stalled = RawListener::named(&namespace, "stalled");
    let is_late = AtomicBool::new(false);
    let wanted = [
        (Address::Name("stalled"), "x"),
        (SHOP, "late"),
        (Address::Name("stalled"), "y"),
    ];
    let outcomes = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let outcomes = ask_at(&asker, &wanted, 2_000_000_000);
            is_late.store(true, Ordering::Relaxed);
            outcomes
        });
        // It was asked, after the one that stalls.
        let deadline_ns = after_ns(&shop, TIMEOUT_NS);
        while shop.rendezvous_counters().not_offered == 0 {
            assert!(shop.now_ns() < deadline_ns);
            std::thread::yield_now();
        }
        shop.offer("late", Supply::Once, b"given").unwrap();
        asking.join().unwrap()
    });
    assert_eq!(outcomes[1].as_deref(), Ok(&b"given"[..]));
    for stalled in [0, 2] {
        let outcome = &outcomes[stalled];
        assert!(
            matches!(outcome, Err(ConnectError::Stalled { .. })),
            "{outcome:?}"
        );
    }
}

#[test]
fn nothing_is_lost_when_askers_of_many_run_out_of_time() {
    const ASKERS: usize = 4;
    const ITEMS: usize = 8;
    const EACH: u32 = 60;
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let all = items(ITEMS);
    for item in &all {
        for number in 0..EACH {
            shop.offer(item, Supply::Once, &number.to_le_bytes())
                .unwrap();
        }
    }
    let deadline_ns = after_ns(&shop, TIMEOUT_NS);
    let mut given: Vec<(usize, u32)> = Vec::new();
    let (all, shop, namespace) = (&all, &shop, &namespace);
    std::thread::scope(|scope| {
        let askers: Vec<_> = (0..ASKERS)
            .map(|_| {
                scope.spawn(move || {
                    let asker = unnamed(namespace);
                    let wanted: Vec<_> = all.iter().map(|item| (SHOP, item.as_str())).collect();
                    let (mut given, mut turn) = (Vec::new(), 0);
                    while all.iter().any(|item| shop.offered(item) > 0) {
                        turn += 1;
                        assert!(asker.now_ns() < deadline_ns);
                        let span_ns = turn % 100 * 2_000 * (1 + turn / 400);
                        for (at, outcome) in
                            ask_at(&asker, &wanted, span_ns).into_iter().enumerate()
                        {
                            if let Ok(bytes) = outcome {
                                given.push((at, u32::from_le_bytes(bytes.try_into().unwrap())));
                            }
                        }
                    }
                    given
                })
            })
            .collect();
        for asker in askers {
            given.extend(asker.join().unwrap());
        }
    });
    assert_eq!(
        given.len(),
        ITEMS * EACH as usize,
        "none is lost or doubled"
    );
    let distinct: BTreeSet<_> = given.into_iter().collect();
    assert_eq!(distinct.len(), ITEMS * EACH as usize);
}

#[test]
fn an_asker_of_many_that_closes_its_ear_takes_nothing() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let mut places = Vec::new();
    for item in ["a", "b"] {
        places.push(shop.offer_place(item, 1, item.as_bytes()).unwrap());
    }
    let question = Question::for_first(
        &["a", "none", "b"].map(|item| Name::new(item).unwrap()),
        100,
    );
    let ask_for = codec::encode(&Message::Ask(question.unwrap()));
    for _ in 0..20 {
        let client = Raw::connect(&namespace, shop.identity().interface);
        client.greeted();
        shutdown(&client.0, Shutdown::Read).unwrap();
        assert!(client.send(&ask_for, &[]));
    }
    let deadline_ns = after_ns(&shop, TIMEOUT_NS);
    while shop.rendezvous_counters().peer_closed < 20 {
        assert!(shop.now_ns() < deadline_ns);
        std::thread::yield_now();
    }
    let given = ask(&unnamed(&namespace), &["a", "b"]);
    assert_eq!(given, [Ok(b"a".to_vec()), Ok(b"b".to_vec())]);
}
