//! What is offered, and who gets it.

mod support;

use hamlyn_host::offers::OFFER_BYTES_MAX;
use hamlyn_host::process::codec::{self, MESSAGE_BYTES, MESSAGE_BYTES_MAX, Message};
use hamlyn_host::process::name::Name;
use hamlyn_host::process::{Access, Options, RendezvousCounters};
use hamlyn_host::question::{Question, Replies, Reply};
use hamlyn_host::{
    Address, ConnectError, Connected, Destination, Host, HostError, RefusedBecause, Supply,
};
use rustix::fd::AsFd;
use rustix::net::{Shutdown, shutdown};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::raw::{Memory, Raw, RawListener};
use support::*;

const SHOP: Address<'_> = Address::Name("shop");
/// A span in which somebody answers who is there.
const SOON_NS: u64 = 50_000_000;

fn ask(host: &mut Owner, item: &str) -> Result<Vec<u8>, ConnectError> {
    let deadline_ns = after_ns(host, TIMEOUT_NS);
    host.ask(SHOP, item, deadline_ns)
}

/// For what is not there.
fn ask_soon(host: &mut Owner, item: &str) -> Result<Vec<u8>, ConnectError> {
    let mut span_ns = SOON_NS;
    loop {
        let deadline_ns = after_ns(host, span_ns);
        match host.ask(SHOP, item, deadline_ns) {
            // This machine is busy.
            Err(ConnectError::Stalled { .. }) if span_ns < TIMEOUT_NS => span_ns *= 2,
            result => return result,
        }
    }
}

fn has_nothing(host: &mut Owner, item: &str) -> bool {
    let wanted = item;
    match ask_soon(host, item) {
        Err(ConnectError::NotOffered { to, item }) => to == "\"shop\"" && item == wanted,
        other => panic!("{other:?}"),
    }
}

/// What happened is counted a moment later.
fn counted(host: &Owner, is_so: impl Fn(&RendezvousCounters) -> bool) {
    let deadline_ns = after_ns(host, TIMEOUT_NS);
    loop {
        let counters = host.rendezvous_counters();
        if is_so(&counters) {
            return;
        }
        assert!(host.now_ns() < deadline_ns, "{counters:?}");
        std::thread::yield_now();
    }
}

#[test]
fn once_is_for_one_and_always_for_everybody() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let mut askers = [unnamed(&namespace), unnamed(&namespace)];
    shop.offer("seat", Supply::Once, b"A1").unwrap();
    shop.offer("menu", Supply::Always, b"soup").unwrap();
    for asker in &mut askers {
        for _ in 0..3 {
            assert_eq!(ask(asker, "menu").unwrap(), b"soup");
        }
    }
    let [first, second] = &mut askers;
    assert_eq!(ask(first, "seat").unwrap(), b"A1");
    assert!(has_nothing(second, "seat") && has_nothing(first, "seat"));
    counted(&shop, |counters| counters.answered == 7);
    counted(&shop, |counters| counters.not_offered >= 2);
    assert_eq!(shop.rendezvous_counters().accepted, 0);
}

#[test]
fn what_is_offered_once_goes_out_in_order_and_first() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let mut asker = unnamed(&namespace);
    shop.offer("x", Supply::Once, b"lost").unwrap();
    shop.offer("x", Supply::Always, b"old").unwrap();
    shop.offer("x", Supply::Always, b"always").unwrap();
    for byte in 0..5 {
        shop.offer("x", Supply::Once, &[byte]).unwrap();
    }
    for byte in 0..5 {
        assert_eq!(ask(&mut asker, "x").unwrap(), [byte]);
    }
    for _ in 0..2 {
        assert_eq!(ask(&mut asker, "x").unwrap(), b"always");
    }
}

#[test]
fn sizes_and_names_have_bounds() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let mut asker = unnamed(&namespace);
    let longest = "n".repeat(64);
    let bytes: Vec<u8> = (0..OFFER_BYTES_MAX).map(|at| at as u8).collect();
    shop.offer(&longest, Supply::Once, &bytes).unwrap();
    assert_eq!(ask(&mut asker, &longest).unwrap(), bytes);
    for bytes in [0, OFFER_BYTES_MAX + 1] {
        let refused = shop.offer("x", Supply::Once, &vec![1; bytes]);
        let expected = HostError::BadOffer {
            item: "x".to_owned(),
            bytes: bytes as u64,
            allowed: 1024,
        };
        assert_eq!(refused, Err(expected));
    }
    for bad in ["", "a b", "ä", &"n".repeat(65)] {
        let refused = shop.offer(bad, Supply::Once, b"x");
        assert!(matches!(refused, Err(HostError::BadName { .. })));
        let refused = asker.ask(SHOP, bad, 0);
        let is_named = matches!(
            refused,
            Err(ConnectError::Host(HostError::BadName { name, .. })) if name == bad
        );
        assert!(is_named);
        shop.withdraw(bad);
    }
}

#[test]
fn there_is_a_limit() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    for number in 0..4096u32 {
        let item = format!("i{}", number % 100);
        shop.offer(&item, Supply::Once, b"x").unwrap();
    }
    let full = Err(HostError::OffersFull { allowed: 4096 });
    assert_eq!(shop.offer("i0", Supply::Once, b"x"), full);
    assert_eq!(shop.offer("new", Supply::Always, b"x"), full);
    // This takes the place of many.
    shop.offer("i0", Supply::Always, b"x").unwrap();
    shop.offer("new", Supply::Always, b"x").unwrap();
    shop.withdraw("i1");
    for _ in 0..41 + 39 {
        shop.offer("i2", Supply::Once, b"x").unwrap();
    }
    assert_eq!(shop.offer("i2", Supply::Once, b"x"), full);
    // What is given makes room.
    ask(&mut shop, "i2").unwrap();
    shop.offer("i2", Supply::Once, b"x").unwrap();
}

#[test]
fn what_is_withdrawn_is_gone() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let mut asker = unnamed(&namespace);
    shop.offer("x", Supply::Always, b"1").unwrap();
    shop.offer("x", Supply::Once, b"2").unwrap();
    shop.offer("y", Supply::Once, b"3").unwrap();
    shop.withdraw("x");
    shop.withdraw("unknown");
    assert!(has_nothing(&mut asker, "x"));
    assert_eq!(ask(&mut asker, "y").unwrap(), b"3");
    shop.offer("x", Supply::Once, b"4").unwrap();
    assert_eq!(ask(&mut asker, "x").unwrap(), b"4");
}

#[test]
fn offers_end_with_their_interface() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let mut asker = unnamed(&namespace);
    shop.offer("x", Supply::Always, b"1").unwrap();
    let former = shop.identity();
    drop(shop);
    let absent = ask_soon(&mut asker, "x");
    assert!(matches!(absent, Err(ConnectError::Absent { .. })));
    let _shop = named(&namespace, "shop");
    assert!(has_nothing(&mut asker, "x"));
    // At once.
    let gone = asker.ask(Address::Destination(former), "x", u64::MAX);
    assert!(matches!(gone, Err(ConnectError::Gone { .. })));
    let elsewhere = Address::Destination(Destination { node: 1, ..former });
    let remote = asker.ask(elsewhere, "x", u64::MAX);
    assert!(matches!(remote, Err(ConnectError::NoNetwork { .. })));
}

#[test]
fn one_may_ask_oneself() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let identity = Address::Destination(shop.identity());
    shop.offer("x", Supply::Once, b"1").unwrap();
    shop.offer("x", Supply::Once, b"2").unwrap();
    assert_eq!(shop.ask(SHOP, "x", 0).unwrap(), b"1");
    assert_eq!(shop.ask(identity, "x", 0).unwrap(), b"2");
    let nothing = shop.ask(identity, "x", 0);
    assert!(matches!(nothing, Err(ConnectError::NotOffered { .. })));
    assert!(shop.next_event().is_none());
}

#[test]
fn an_asker_waits_for_the_name_and_for_the_offer() {
    let namespace = namespace();
    let mut asker = unnamed(&namespace);
    std::thread::scope(|scope| {
        let namespace = &namespace;
        let shop = scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(60));
            let mut shop = named(namespace, "shop");
            std::thread::sleep(Duration::from_millis(60));
            shop.offer("x", Supply::Once, b"late").unwrap();
            shop
        });
        assert_eq!(ask(&mut asker, "x").unwrap(), b"late");
        let shop = shop.join().unwrap();
        counted(&shop, |counters| counters.answered == 1);
        counted(&shop, |counters| counters.not_offered >= 1);
    });
}

#[test]
fn links_are_neither_made_nor_needed_nor_in_the_way() {
    let namespace = namespace();
    let mut options = Options::named("shop").in_namespace(&namespace);
    options.links_max = 1;
    let mut shop = Owner::open(options).unwrap();
    let mut asker = unnamed(&namespace);
    shop.offer("x", Supply::Always, b"x").unwrap();
    ask(&mut asker, "x").unwrap();
    assert!(!shop.attention() && shop.next_event().is_none());
    let ((to_shop, mut here), (_, mut there)) = pair(&mut asker, &mut shop);
    ask(&mut asker, "x").unwrap();
    // Now there is no place for another link.
    ask(&mut unnamed(&namespace), "x").unwrap();
    exchange(&mut here, &mut there);
    assert!(!shop.attention() && shop.next_event().is_none());
    let again = asker.connect(SHOP, after_ns(&asker, TIMEOUT_NS));
    assert!(matches!(again, Ok(Connected::Already { token }) if token == to_shop.token));
}

#[test]
fn two_may_ask_each_other_at_once() {
    let namespace = namespace();
    let names = ["left", "right"];
    std::thread::scope(|scope| {
        for (own, other) in [(0, 1), (1, 0)] {
            let mut host = named(&namespace, names[own]);
            scope.spawn(move || {
                for number in 0..100u32 {
                    let bytes = number.to_le_bytes();
                    host.offer("turn", Supply::Once, &bytes).unwrap();
                    let deadline_ns = after_ns(&host, TIMEOUT_NS);
                    let answer = host.ask(Address::Name(names[other]), "turn", deadline_ns);
                    assert_eq!(answer.unwrap(), bytes);
                }
                // The other may be a turn behind.
                counted(&host, |counters| counters.answered == 100);
            });
        }
    });
}

/// Askers that share what is offered, each of them for `span_ns`;
/// everything is given to exactly one.
fn everything_is_given_once(items: u32, span_ns: impl Fn(u32) -> u64 + Sync) -> u32 {
    const ASKERS: u32 = 8;
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    let all_given = AtomicBool::new(false);
    let (mut given, mut in_vain) = (Vec::new(), 0);
    std::thread::scope(|scope| {
        let askers: Vec<_> = (0..ASKERS)
            .map(|_| {
                let mut asker = unnamed(&namespace);
                let (span_ns, all_given) = (&span_ns, &all_given);
                scope.spawn(move || {
                    let (mut given, mut turn, mut in_vain) = (Vec::new(), 0, 0);
                    while !all_given.load(Ordering::Relaxed) {
                        turn += 1;
                        let deadline_ns = after_ns(&asker, span_ns(turn));
                        match asker.ask(SHOP, "ticket", deadline_ns) {
                            Ok(bytes) => given.push(u32::from_le_bytes(bytes.try_into().unwrap())),
                            Err(
                                ConnectError::NotOffered { .. }
                                | ConnectError::Stalled { .. }
                                | ConnectError::Refused {
                                    reason: RefusedBecause::BUSY,
                                    ..
                                },
                            ) => in_vain += 1,
                            Err(error) => panic!("{error}"),
                        }
                    }
                    (given, in_vain)
                })
            })
            .collect();
        for number in 0..items {
            let bytes = number.to_le_bytes();
            shop.offer("ticket", Supply::Once, &bytes).unwrap();
        }
        counted(&shop, |counters| counters.answered == u64::from(items));
        all_given.store(true, Ordering::Relaxed);
        for asker in askers {
            let (its, failures) = asker.join().unwrap();
            given.extend(its);
            in_vain += failures;
        }
    });
    assert_eq!(given.len(), items as usize, "none is lost or doubled");
    let distinct: BTreeSet<u32> = given.into_iter().collect();
    assert_eq!(distinct, (0..items).collect());
    in_vain
}

#[test]
fn many_askers_at_once_share_what_is_offered_once() {
    everything_is_given_once(1000, |_| SOON_NS);
}

#[test]
fn nothing_is_lost_when_askers_run_out_of_time() {
    // From no time at all to about as much as an answer takes, and on a busy machine more and more.
    let in_vain = everything_is_given_once(500, |turn| {
        u64::from(turn % 100) * 2_000 * u64::from(1 + turn / 400)
    });
    assert!(in_vain > 0);
}

#[test]
fn an_asker_that_closes_its_ear_takes_nothing() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    shop.offer("x", Supply::Once, b"kept").unwrap();
    for _ in 0..20 {
        let client = Raw::connect(&namespace, shop.identity().interface);
        client.greeted();
        shutdown(&client.0, Shutdown::Read).unwrap();
        assert!(client.send(&ask_for("x"), &[]));
    }
    counted(&shop, |counters| counters.peer_closed == 20);
    assert_eq!(ask(&mut unnamed(&namespace), "x").unwrap(), b"kept");
}

/// A user that we are not.
fn somebody_else() -> Access {
    Access::Listed {
        users: vec![rustix::process::geteuid().as_raw() + 12345],
        groups: vec![],
    }
}

#[test]
fn access_lists_hold_in_both_directions() {
    let namespace = namespace();
    let open = |name: &str, access| {
        let mut options = Options::named(name).in_namespace(&namespace);
        options.access = access;
        Owner::open(options).unwrap()
    };
    let mut shop = open("shop", somebody_else());
    shop.offer("x", Supply::Once, b"kept").unwrap();
    let mut asker = open("asker", Access::SameUser);
    let refused = ask(&mut asker, "x");
    assert!(matches!(
        refused,
        Err(ConnectError::Refused {
            reason: RefusedBecause::NOT_ALLOWED,
            ..
        })
    ));
    asker.offer("y", Supply::Always, b"y").unwrap();
    let refused = shop.ask(Address::Name("asker"), "y", u64::MAX);
    assert!(matches!(refused, Err(ConnectError::NotAllowed { .. })));
    assert_eq!(asker.rendezvous_counters().answered, 0);
    assert_eq!(ask(&mut shop, "x").unwrap(), b"kept");
    let forged = Destination {
        user: shop.identity().user + 1,
        ..asker.identity()
    };
    let mut third = open("third", Access::Anyone);
    let refused = third.ask(Address::Destination(forged), "y", u64::MAX);
    assert!(matches!(refused, Err(ConnectError::OtherUser { .. })));
}

fn ask_for(item: &str) -> Vec<u8> {
    codec::encode(&Message::Ask(Question::one(Name::new(item).unwrap())))
}

/// An answer to a question for one item.
fn answer(reply: Reply) -> Message {
    let question = Question::one(Name::new("x").unwrap());
    Message::Answer(Replies::to(&question, usize::MAX, |_| reply.clone()))
}

fn gives(bytes: &[u8]) -> Message {
    answer(Reply::Given(bytes.to_vec()))
}

#[test]
fn askers_that_send_nonsense_are_refused() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    shop.offer("x", Supply::Once, b"kept").unwrap();
    let changed = |at: usize, to: &[u8]| {
        let mut bytes = ask_for("x");
        bytes[at..][..to.len()].copy_from_slice(to);
        bytes
    };
    let list = |list: &[u8]| [&ask_for("x")[..16], list].concat();
    let too_many: Vec<u8> = [65]
        .into_iter()
        .chain((0..65).flat_map(|at| [1, at + 46]))
        .collect();
    let nonsense = [
        // The number of items.
        changed(16, &[0]),
        changed(16, &[2]),
        changed(16, &[65]),
        changed(16, &[0xff]),
        list(&[]),
        list(&[2, 1, b'x', 1]),
        list(&too_many),
        // One of them twice.
        list(&[2, 1, b'x', 1, b'x']),
        list(&[3, 1, b'x', 1, b'y', 1, b'x']),
        // Lengths of the item.
        changed(17, &[0]),
        changed(17, &[2]),
        changed(17, &[65]),
        changed(17, &[0xff]),
        // The item.
        changed(18, b"\0"),
        changed(18, b" "),
        changed(18, b"\xff"),
        list(&[2, 1, b'x', 1, b' ']),
        // What is not used.
        changed(12, &[1]),
        changed(14, &[1]),
        ask_for("x")[..17].to_vec(),
        [ask_for("x"), vec![0]].concat(),
        // What only the other side says.
        codec::encode(&Message::NotShared),
        codec::encode(&gives(b"x")),
        vec![b'x'; 60_000],
    ];
    let count = nonsense.len() as u64;
    for (number, bytes) in nonsense.into_iter().enumerate() {
        let client = Raw::connect(&namespace, shop.identity().interface);
        client.greeted();
        assert!(client.send(&bytes, &[]));
        let reason = RefusedBecause(client.refusal());
        assert_eq!(reason, RefusedBecause::INVALID, "number {number}");
    }
    // An ask comes without descriptors.
    let memory = Memory::new();
    let client = Raw::connect(&namespace, shop.identity().interface);
    assert!(client.send(&ask_for("x"), &[memory.ready_bitmap.as_fd()]));
    assert_eq!(RefusedBecause(client.refusal()), RefusedBecause::INVALID);
    let mut other_version = ask_for("x");
    other_version[8] = 77;
    let client = Raw::connect(&namespace, shop.identity().interface);
    assert!(client.send(&other_version, &[]));
    assert_eq!(RefusedBecause(client.refusal()), RefusedBecause::VERSION);

    let counters = shop.rendezvous_counters();
    assert_eq!((counters.invalid, counters.answered), (count + 1, 0));
    assert_eq!(ask(&mut unnamed(&namespace), "x").unwrap(), b"kept");
}

#[test]
fn one_ask_has_one_answer() {
    let namespace = namespace();
    let mut shop = named(&namespace, "shop");
    shop.offer("x", Supply::Once, b"1").unwrap();
    shop.offer("x", Supply::Once, b"2").unwrap();
    let client = Raw::connect(&namespace, shop.identity().interface);
    client.greeted();
    assert!(client.send(&ask_for("x"), &[]));
    client.send(&ask_for("x"), &[]);
    assert_eq!(client.message(), Some(gives(b"1")));
    assert_eq!(client.receive(), None);
    assert_eq!(ask(&mut unnamed(&namespace), "x").unwrap(), b"2");
}

#[test]
fn askers_that_stall_hold_up_nobody_for_long() {
    let namespace = namespace();
    let mut options = Options::named("shop").in_namespace(&namespace);
    options.handshakes_max = 8;
    // All of them come within this time, on a loaded machine, too.
    options.handshake_timeout = Duration::from_secs(2);
    let mut shop = Owner::open(options).unwrap();
    shop.offer("x", Supply::Once, b"kept").unwrap();
    let stalled: Vec<Raw> = (0..4)
        .map(|_| {
            let client = Raw::connect(&namespace, shop.identity().interface);
            client.greeted();
            client
        })
        .collect();
    let mut asker = unnamed(&namespace);
    let busy = ask_soon(&mut asker, "x");
    assert!(matches!(
        busy,
        Err(ConnectError::Refused {
            reason: RefusedBecause::BUSY,
            ..
        })
    ));
    assert_eq!(ask(&mut asker, "x").unwrap(), b"kept");
    for client in stalled {
        assert_eq!(client.receive(), None);
    }
    counted(&shop, |counters| counters.stalled == 4);
}

/// Asks a listener that does what `listener` does.
fn ask_of(
    listener: impl FnOnce(RawListener) + Send,
    span_ns: u64,
) -> Result<Vec<u8>, ConnectError> {
    let namespace = namespace();
    let mut asker = unnamed(&namespace);
    let raw = RawListener::named(&namespace, "shop");
    let deadline_ns = after_ns(&asker, span_ns);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| listener(raw));
        asker.ask(SHOP, "x", deadline_ns)
    });
    let late_ns = asker.now_ns().saturating_sub(deadline_ns);
    assert!(late_ns < 5_000_000_000, "{late_ns} ns after the deadline");
    result
}

fn greeting() -> Vec<u8> {
    codec::encode(&Message::Greeting { interface: 7 })
}

#[test]
fn an_answer_is_taken_even_from_somebody_strange() {
    let result = ask_of(
        |listener| {
            let client = listener.accept();
            client.send(&greeting(), &[]);
            assert_eq!(client.receive().as_deref(), Some(&ask_for("x")[..]));
            client.send(&codec::encode(&gives(&[9; OFFER_BYTES_MAX])), &[]);
        },
        TIMEOUT_NS,
    );
    assert_eq!(result.unwrap(), [9; OFFER_BYTES_MAX]);
}

#[test]
fn answerers_that_send_nonsense_are_named() {
    let answer = |length: usize| codec::encode(&gives(&vec![1; length]));
    let changed = |at: usize, to: u8| {
        let mut bytes = answer(9);
        bytes[at] = to;
        bytes
    };
    let two = {
        let question = Question::for_first(&["x", "y"].map(|item| Name::new(item).unwrap()), 100);
        let reply = |_: &Name| Reply::Given(vec![1]);
        codec::encode(&Message::Answer(Replies::to(
            &question.unwrap(),
            100,
            reply,
        )))
    };
    let memory = Memory::new();
    let mut unused = answer(5);
    unused[13] = 1;
    let mut long_refusal = codec::encode(&Message::Refusal { reason: 1 });
    long_refusal.push(0);
    let nonsense = [
        vec![1, 2, 3],
        vec![0; MESSAGE_BYTES],
        // The number of replies.
        changed(16, 0),
        changed(16, 2),
        changed(16, 255),
        // More than were asked for.
        two,
        // The length of the offer.
        changed(17, 8),
        changed(17, 10),
        changed(18, 255),
        answer(9)[..16].to_vec(),
        [answer(OFFER_BYTES_MAX), vec![0; 100_000]].concat(),
        vec![0xff; MESSAGE_BYTES_MAX],
        answer(9)[..12].to_vec(),
        unused,
        long_refusal,
        greeting(),
        ask_for("x"),
        codec::encode(&Message::Hello(memory.offer(7))),
        codec::encode(&Message::Welcome(memory.offer(7))),
    ];
    let lends_nothing = nonsense.map(|bytes| (bytes, false));
    let lends_something = [(answer(5), true)];
    for (number, (bytes, lends)) in lends_nothing.into_iter().chain(lends_something).enumerate() {
        let memory = &memory;
        let result = ask_of(
            move |listener| {
                let client = listener.accept();
                client.send(&greeting(), &[]);
                client.receive();
                let descriptors = [memory.ready_bitmap.as_fd()];
                client.send(&bytes, &descriptors[..usize::from(lends)]);
                while client.receive().is_some() {}
            },
            TIMEOUT_NS,
        );
        assert!(
            matches!(result, Err(ConnectError::Invalid { .. })),
            "number {number}: {result:?}"
        );
    }
    // An answer before the greeting.
    let result = ask_of(
        |listener| {
            let client = listener.accept();
            client.send(&answer(5), &[]);
            client.receive();
        },
        TIMEOUT_NS,
    );
    assert!(matches!(result, Err(ConnectError::Invalid { .. })));
}

#[test]
fn an_answerer_of_another_version_is_named() {
    let result = ask_of(
        |listener| {
            let client = listener.accept();
            client.send(&greeting(), &[]);
            client.receive();
            let mut answer = codec::encode(&gives(&[1]));
            answer[8..10].copy_from_slice(&999u16.to_le_bytes());
            client.send(&answer, &[]);
            client.receive();
        },
        TIMEOUT_NS,
    );
    assert!(matches!(
        result,
        Err(ConnectError::Version { theirs: 999, .. })
    ));
}

#[test]
fn answerers_that_stall_are_left_at_the_deadline() {
    for greets in [false, true] {
        let result = ask_of(
            |listener| {
                let client = listener.accept();
                if greets {
                    client.send(&greeting(), &[]);
                    client.receive();
                }
                assert_eq!(client.receive(), None);
            },
            20_000_000,
        );
        assert!(
            matches!(result, Err(ConnectError::Stalled { .. })),
            "{result:?}"
        );
    }
}

#[test]
fn answerers_that_hang_up_are_asked_again() {
    let result = ask_of(
        |listener| {
            drop(listener.accept());
            let client = listener.accept();
            client.send(&greeting(), &[]);
            client.receive();
            drop(client);
            let client = listener.accept();
            client.send(&greeting(), &[]);
            client.receive();
            let nothing = answer(Reply::Refused(Reply::NOT_OFFERED));
            client.send(&codec::encode(&nothing), &[]);
            let client = listener.accept();
            client.send(&greeting(), &[]);
            client.receive();
            client.send(&codec::encode(&gives(&[3])), &[]);
        },
        TIMEOUT_NS,
    );
    assert_eq!(result.unwrap(), [3]);
}

#[test]
fn somebody_else_at_the_address_of_a_ticket() {
    let namespace = namespace();
    let mut asker = unnamed(&namespace);
    let listener = RawListener::of_interface(&namespace, 5);
    let destination = Destination {
        interface: 5,
        ..asker.identity()
    };
    let deadline_ns = after_ns(&asker, TIMEOUT_NS);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            let client = listener.accept();
            client.send(&greeting(), &[]);
            client.receive();
        });
        asker.ask(Address::Destination(destination), "x", deadline_ns)
    });
    assert!(matches!(result, Err(ConnectError::Invalid { .. })));
}
