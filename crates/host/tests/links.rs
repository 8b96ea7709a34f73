//! Links between hosts of one process: made, used, ended.

mod support;

use hamlyn_host::process::{Access, Options};
use hamlyn_host::{
    Address, ConnectError, Connected, Destination, Event, Host, HostError, LossCause,
    RefusedBecause,
};
use hamlyn_link::pair::PairLink;
use hamlyn_link::{ReceiveEnd, TransmitEnd};
use hamlyn_ring::wake::WORDS_MAX;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use support::*;

#[test]
fn packets_go_both_ways() {
    let namespace = namespace();
    let mut alice = named(&namespace, "alice");
    let mut bob = named(&namespace, "bob/1");
    let (to_bob, mut here) = connect(&mut alice, Address::Name("bob/1"));
    let (to_alice, mut there) = linked(&mut bob);
    assert_eq!(to_bob.destination, bob.identity());
    assert_eq!(to_alice.destination, alice.identity());
    assert_eq!(to_bob.name.as_deref(), Some("bob/1"));
    assert_eq!(to_alice.name.as_deref(), Some("alice"));
    assert_eq!(to_bob.process, std::process::id());
    assert_eq!(to_alice.process, std::process::id());
    exchange(&mut here, &mut there);
    assert_eq!(bob.rendezvous_counters().accepted, 1);
    assert!(!bob.attention() && bob.next_event().is_none());
}

#[test]
fn the_lesser_payload_limit_counts() {
    let namespace = namespace();
    let mut small = Options::default().in_namespace(&namespace);
    small.payload_max_bytes = 64;
    let mut small = Owner::open(small).unwrap();
    let mut large = unnamed(&namespace);
    let ((_, here), (_, there)) = pair(&mut small, &mut large);
    assert_eq!(
        (
            here.transmit.payload_max_bytes(),
            there.transmit.payload_max_bytes()
        ),
        (64, 64)
    );
}

#[test]
fn a_second_connection_finds_the_first() {
    let namespace = namespace();
    let mut alice = named(&namespace, "alice");
    let mut bob = named(&namespace, "bob");
    let ((to_bob, _here), (to_alice, _there)) = pair(&mut alice, &mut bob);
    let again = alice.connect(Address::Name("bob"), after_ns(&alice, TIMEOUT_NS));
    assert!(matches!(again, Ok(Connected::Already { token }) if token == to_bob.token));
    let back = bob.connect(Address::Name("alice"), after_ns(&bob, TIMEOUT_NS));
    assert!(matches!(back, Ok(Connected::Already { token }) if token == to_alice.token));
}

#[test]
fn the_link_to_oneself() {
    let namespace = namespace();
    let mut alice = named(&namespace, "alice");
    let identity = alice.identity();
    let (peer, mut link) = connect(&mut alice, Address::Name("alice"));
    assert_eq!(peer.destination, identity);
    assert!(try_send(&mut link, b"me"));
    assert_eq!(try_receive(&mut link).as_deref(), Some(b"me".as_slice()));
    let again = alice.connect(Address::Destination(identity), 0);
    assert!(matches!(again, Ok(Connected::Already { token }) if token == peer.token));
    alice.disconnect(peer.token);
    let (other, _link) = connect(&mut alice, Address::Destination(identity));
    assert_ne!(other.token, peer.token);
}

#[test]
fn a_closed_interface_is_told_at_once() {
    let namespace = namespace();
    let mut alice = unnamed(&namespace);
    let mut bob = unnamed(&namespace);
    let ((to_bob, mut here), (_, mut there)) = pair(&mut alice, &mut bob);
    assert!(try_send(&mut there, b"last words"));
    // The application keeps its end of the link; the host alone is dropped.
    drop(bob);
    let closed = Instant::now();
    assert_eq!(lost(&mut alice), (to_bob.token, LossCause::Closed));
    println!(
        "a closed interface was noticed after {:?}",
        closed.elapsed()
    );
    assert_eq!(
        try_receive(&mut here).as_deref(),
        Some(b"last words".as_slice())
    );
    drop(there);
}

#[test]
fn a_disconnected_link_is_lost_over_there_and_can_be_made_again() {
    let namespace = namespace();
    let mut alice = unnamed(&namespace);
    let mut bob = unnamed(&namespace);
    for _ in 0..20 {
        let ((to_bob, here), (to_alice, there)) = pair(&mut alice, &mut bob);
        alice.disconnect(to_bob.token);
        drop(here);
        // Over there it may not be known yet; the new link must come all the same answer.
        let ((to_bob, mut here), (_, mut there_again)) = {
            let (peer, link) = connect(&mut alice, Address::Destination(bob.identity()));
            let mut linked = None;
            let mut lost = None;
            while linked.is_none() || lost.is_none() {
                match event(&mut bob) {
                    Event::Linked(peer, link) => linked = Some((peer, link)),
                    Event::Lost { token, cause } => lost = Some((token, cause)),
                }
            }
            assert_eq!(lost, Some((to_alice.token, LossCause::Closed)));
            ((peer, link), linked.unwrap())
        };
        drop(there);
        exchange(&mut here, &mut there_again);
        alice.disconnect(to_bob.token);
        assert_eq!(lost(&mut bob).1, LossCause::Closed);
    }
}

#[test]
fn a_name_is_held_by_one() {
    let namespace = namespace();
    let first = named(&namespace, "server");
    let options = Options::named("server").in_namespace(&namespace);
    match Owner::open(options.clone()) {
        Err(HostError::NameInUse { name, namespace: n }) => {
            assert_eq!((name.as_str(), n), ("server", namespace.clone()));
        }
        other => panic!("{:?}", other.err()),
    }
    drop(first);
    Owner::open(options).expect("the name is free as soon as the host is dropped");
}

#[test]
fn a_restarted_server_is_found_but_its_former_self_is_gone() {
    let namespace = namespace();
    let mut client = unnamed(&namespace);
    let server = named(&namespace, "server");
    let former = server.identity();
    let (peer, _link) = connect(&mut client, Address::Name("server"));
    drop(server);
    // Absent for a while: the client waits for the name to come back.
    let (opened, open) = mpsc::channel::<()>();
    let in_namespace = namespace.clone();
    let restart = std::thread::spawn(move || {
        open.recv().unwrap();
        let mut server = named(&in_namespace, "server");
        let linked = linked(&mut server);
        (server, linked)
    });
    let gone = client.connect(Address::Destination(former), after_ns(&client, TIMEOUT_NS));
    assert!(matches!(gone, Err(ConnectError::Gone { .. })));
    let absent = client.connect(Address::Name("server"), after_ns(&client, 3_000_000));
    assert!(
        matches!(absent, Err(ConnectError::Absent { .. })),
        "{:?}",
        absent.err()
    );
    opened.send(()).unwrap();
    let (new_peer, mut here) = connect(&mut client, Address::Name("server"));
    let (server, (_, mut there)) = restart.join().unwrap();
    assert_eq!(new_peer.destination, server.identity());
    assert_ne!(new_peer.destination.interface, former.interface);
    assert_eq!(lost(&mut client), (peer.token, LossCause::Closed));
    exchange(&mut here, &mut there);
}

#[test]
fn namespaces_do_not_see_each_other() {
    let mut here = unnamed(&namespace());
    let there = named(&namespace(), "server");
    let absent = here.connect(Address::Name("server"), after_ns(&here, 1_000_000));
    assert!(matches!(absent, Err(ConnectError::Absent { .. })));
    let gone = here.connect(Address::Destination(there.identity()), u64::MAX);
    assert!(matches!(gone, Err(ConnectError::Gone { .. })));
}

#[test]
fn bad_names_and_other_nodes() {
    let mut host = unnamed(&namespace());
    for name in ["", "a b", &"x".repeat(65)] {
        let refused = host.connect(Address::Name(name), 0);
        assert!(matches!(
            refused,
            Err(ConnectError::Host(HostError::BadName { .. }))
        ));
    }
    let elsewhere = Destination {
        node: 1,
        interface: !host.identity().interface,
        ..host.identity()
    };
    let refused = host.connect(Address::Destination(elsewhere), 0);
    assert!(matches!(refused, Err(ConnectError::NoNetwork { .. })));
}

/// A user that we are not.
fn somebody_else() -> u32 {
    rustix::process::geteuid().as_raw() + 12345
}

#[test]
fn access_lists_hold_in_both_directions() {
    let namespace = namespace();
    let nobody = Access::Listed {
        users: vec![somebody_else()],
        groups: vec![],
    };
    let mut closed = Options::named("closed").in_namespace(&namespace);
    closed.access = nobody.clone();
    let mut closed = Owner::open(closed).unwrap();
    let mut open = named(&namespace, "open");
    let refused = open.connect(Address::Name("closed"), after_ns(&open, TIMEOUT_NS));
    assert!(matches!(
        refused,
        Err(ConnectError::Refused {
            reason: RefusedBecause::NOT_ALLOWED,
            ..
        })
    ));
    assert_eq!(closed.rendezvous_counters().not_allowed, 1);
    let refused = closed.connect(Address::Name("open"), after_ns(&closed, TIMEOUT_NS));
    let own = rustix::process::geteuid().as_raw();
    assert!(matches!(refused, Err(ConnectError::NotAllowed { user, .. }) if user == own));
    assert_eq!(open.rendezvous_counters().accepted, 0);
}

#[test]
fn a_ticket_that_names_another_user_is_not_followed() {
    let namespace = namespace();
    let mut alice = unnamed(&namespace);
    let bob = unnamed(&namespace);
    let forged = Destination {
        user: somebody_else(),
        ..bob.identity()
    };
    let refused = alice.connect(Address::Destination(forged), after_ns(&alice, TIMEOUT_NS));
    assert!(matches!(refused, Err(ConnectError::OtherUser { .. })));
}

#[test]
fn links_are_limited_on_both_sides() {
    let namespace = namespace();
    let mut small = Options::named("small").in_namespace(&namespace);
    small.links_max = 1;
    let mut small = Owner::open(small).unwrap();
    let mut first = unnamed(&namespace);
    let mut second = named(&namespace, "second");
    let ((to_small, _link), (_, _there)) = pair(&mut first, &mut small);
    let refused = second.connect(Address::Name("small"), after_ns(&second, TIMEOUT_NS));
    assert!(matches!(
        refused,
        Err(ConnectError::Refused {
            reason: RefusedBecause::TOO_MANY,
            ..
        })
    ));
    let full = small.connect(Address::Name("second"), after_ns(&small, TIMEOUT_NS));
    assert!(matches!(
        full,
        Err(ConnectError::Host(HostError::LinksFull { allowed: 1 }))
    ));
    first.disconnect(to_small.token);
    lost(&mut small);
    connect(&mut second, Address::Name("small"));
}

#[test]
fn a_sleeper_is_woken_by_a_packet() {
    const ROUNDS: usize = 2000;
    let namespace = namespace();
    let mut alice = unnamed(&namespace);
    let mut bob = unnamed(&namespace);
    let ((_, mut here), (_, mut there)) = pair(&mut alice, &mut bob);
    let echo = std::thread::spawn(move || {
        for _ in 0..ROUNDS {
            let bytes = packet(&mut bob, &mut there);
            assert!(try_send(&mut there, &bytes));
            there.receive.return_credit();
        }
        (bob, there)
    });
    let began = Instant::now();
    for round in 0..ROUNDS {
        let bytes = (round as u64).to_le_bytes();
        assert!(try_send(&mut here, &bytes));
        let back = packet(&mut alice, &mut here);
        assert_eq!(back, bytes);
        here.receive.return_credit();
    }
    println!(
        "a round trip between sleepers took {:?}",
        began.elapsed() / ROUNDS as u32
    );
    drop(echo.join().unwrap());
}

/// With few links a sleeper waits at their words, with more at a descriptor for all.
#[test]
fn each_of_any_number_of_links_wakes_a_sleeper() {
    let namespace = namespace();
    let mut sleeper = unnamed(&namespace);
    let mut peers: Vec<(Owner, PairLink)> = Vec::new();
    let mut links = Vec::new();
    for wanted in [1, WORDS_MAX, WORDS_MAX + 1] {
        while peers.len() < wanted {
            let mut peer = unnamed(&namespace);
            let ((_, there), (_, here)) = pair(&mut peer, &mut sleeper);
            peers.push((peer, there));
            links.push(here);
        }
        std::thread::scope(|scope| {
            let (asleep, may_send) = mpsc::channel();
            let senders = &mut peers;
            scope.spawn(move || {
                while let Ok(number) = may_send.recv() {
                    let (_, link): &mut (Owner, PairLink) = &mut senders[number];
                    assert!(try_send(link, b"wake"));
                }
            });
            for number in [0, wanted / 2, wanted - 1] {
                let deadline_ns = after_ns(&sleeper, TIMEOUT_NS);
                let mut asked = false;
                loop {
                    // Who is not woken would find it when the time is over.
                    assert!(sleeper.now_ns() < deadline_ns, "it was not woken");
                    sleeper.prepare_sleep();
                    links
                        .iter_mut()
                        .for_each(|link| link.receive.announce_sleep());
                    sleeper.pass_barrier();
                    if let Some(bytes) = try_receive(&mut links[number]) {
                        assert_eq!(bytes, b"wake");
                        sleeper.end_sleep();
                        break;
                    }
                    if !asked {
                        asleep.send(number).unwrap();
                        asked = true;
                    }
                    sleeper.sleep(Some(deadline_ns)).unwrap();
                    sleeper.end_sleep();
                }
                links
                    .iter_mut()
                    .for_each(|link| link.receive.suppress_events());
            }
        });
    }
}

#[test]
fn sleep_ends_at_its_deadline() {
    let mut host = unnamed(&namespace());
    for span_ns in [0, 300_000, 20_000_000] {
        let deadline_ns = after_ns(&host, span_ns);
        host.prepare_sleep();
        while host.now_ns() < deadline_ns {
            host.sleep(Some(deadline_ns)).unwrap();
        }
        host.end_sleep();
        let late = Duration::from_nanos(host.now_ns() - deadline_ns);
        assert!(late < Duration::from_secs(5), "{late:?}");
    }
}

fn is_readable(host: &Owner, span: Duration) -> bool {
    let descriptor = host.descriptor().unwrap();
    let span = Timespec::try_from(span).unwrap();
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&span)).unwrap() > 0
}

#[test]
fn the_descriptor_serves_an_event_loop() {
    let namespace = namespace();
    let mut alice = unnamed(&namespace);
    let mut bob = unnamed(&namespace);
    let ((_, mut here), (_, mut there)) = pair(&mut alice, &mut bob);
    // Left over from the announcement of the link, perhaps.
    bob.prepare_sleep();
    bob.end_sleep();
    for _ in 0..50 {
        bob.prepare_sleep();
        there.receive.announce_sleep();
        bob.pass_barrier();
        assert!(!is_readable(&bob, Duration::ZERO));
        assert!(try_send(&mut here, b"ding"));
        assert!(is_readable(&bob, Duration::from_secs(20)));
        bob.end_sleep();
        there.receive.suppress_events();
        assert!(try_receive(&mut there).is_some());
        there.receive.return_credit();
    }
    // A link whose other end is gone does not keep the descriptor readable.
    drop(alice);
    drop(here);
    lost(&mut bob);
    bob.prepare_sleep();
    bob.end_sleep();
    bob.prepare_sleep();
    assert!(!is_readable(&bob, Duration::ZERO));
    bob.end_sleep();
}

#[test]
fn a_connection_takes_little_time() {
    const ROUNDS: u32 = 200;
    let namespace = namespace();
    let mut server = named(&namespace, "server");
    let mut client = unnamed(&namespace);
    let mut spent = Duration::ZERO;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let (peer, link) = connect(&mut client, Address::Name("server"));
        spent += began.elapsed();
        client.disconnect(peer.token);
        drop(link);
        drop(linked(&mut server));
        lost(&mut server);
    }
    println!("a connection took {:?}", spent / ROUNDS);
}
