//! Services and clients that vanish, misbehave or never come.

use std::time::{Duration, Instant};

use crate::support::{LONG, namespace, open, until};
use hamlyn::service::{Answered, CallError, Client, ServiceOptions};
use hamlyn::{
    Address, ConnectError, FenceError, Host as _, ManagerOptions, Message, Strategy, Ticket, Wait,
};
use hamlyn_sim::time::Time;
use hamlyn_sim::world::{Settings, Simulation};

use hamlyn::host::process::{Options, ProcessHost};

/// Bytes before the tickets of a lane: mark, version, protocol, and two types without names.
const HEADER_BYTES: usize = 14;
const TICKET_BYTES: usize = hamlyn::ticket::TICKET_BYTES;

fn named(namespace: &str, name: &str) -> hamlyn::Manager<ProcessHost> {
    let options = Options::named(name).in_namespace(namespace);
    hamlyn::open_with(options, ManagerOptions::default()).unwrap()
}

#[test]
fn a_client_that_vanishes_costs_nothing() {
    let namespace = namespace();
    let server = named(&namespace, "server");
    let mut service = server
        .bind_service("service", ServiceOptions::default())
        .unwrap();
    let baseline = server.session().slots_open();
    for _ in 0..10 {
        let there = open(&namespace);
        let mut client = there.connect_service("server/service", LONG).unwrap();
        let lost = client.start(b"never read", LONG).unwrap();
        let call = service.next(LONG).unwrap().expect("a call");
        assert_eq!(*call, *b"never read");
        let call = call.defer();
        drop((lost, client, there));
        until("the departure", || {
            assert!(service.next(Wait::millis(1)).unwrap().is_none());
            service.request(&call).is_none().then_some(())
        });
        assert_eq!(service.reply(call, b"to nobody"), Ok(Answered::ClientGone));
        until("the lane", || {
            assert!(service.next(Wait::Poll).unwrap().is_none());
            (server.session().slots_open() == baseline).then_some(())
        });
    }
}

/// More clients than lanes are offered, from one interface, while the server sleeps.
#[test]
fn clients_connect_faster_than_lanes_are_offered() {
    const CLIENTS: usize = 10;
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let open = |name: Option<&str>| {
            let mut options = name.map_or_else(Options::default, Options::named);
            options.spin_ns = Some(0);
            let with = ManagerOptions {
                strategy,
                ..ManagerOptions::default()
            };
            hamlyn::open_with(options.in_namespace(&namespace), with).unwrap()
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let server = open(Some("server"));
                let options = ServiceOptions::default();
                let mut service = server.bind_service("service", options).unwrap();
                for _ in 0..CLIENTS {
                    let call = service.next(LONG).unwrap().expect("a call");
                    assert_eq!(call.reply(b"yes"), Ok(Answered::Sent));
                }
                // The clients leave when they have their answers.
                let fenced = server.fence(LONG);
                assert!(matches!(fenced, Ok(()) | Err(FenceError::PeerLost(_))));
            });
            let there = open(None);
            let connect = |_| there.connect_service("server/service", LONG).unwrap();
            let mut clients: Vec<_> = (0..CLIENTS).map(connect).collect();
            for client in &mut clients {
                assert_eq!(*client.call(b"?", LONG).unwrap(), *b"yes");
            }
        });
    }
}

/// Its interface stays; the server reads its greeting and its good-bye at once.
#[test]
fn a_client_that_leaves_before_it_was_heard_gives_its_lane_back() {
    let namespace = namespace();
    // Room for a few lanes: what one had is the next one's.
    let with = ManagerOptions {
        queue_entries: 64,
        ..ManagerOptions::default()
    };
    let server = Options::named("server").in_namespace(&namespace);
    let server = hamlyn::open_with(server, with).unwrap();
    let options = ServiceOptions {
        clients: 2,
        ..ServiceOptions::default()
    };
    let mut service = server.bind_service("service", options).unwrap();
    let there = open(&namespace);
    for _ in 0..40 {
        let client = there.connect_service("server/service", LONG).unwrap();
        drop(client);
        assert_eq!(there.flush(LONG), Ok(true));
        // Until the lane is offered anew; with the other one, there are two.
        until("the lane", || {
            assert!(service.next(Wait::Poll).unwrap().is_none());
            (server.session().host().offered("service") == 2).then_some(())
        });
    }
    assert_eq!(service.misbehaved(), 0);
}

/// A client whose link ended before its server heard its greeting gives its place back.
#[test]
fn a_client_that_was_lost_before_it_was_heard_gives_its_place_back() {
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let with = ManagerOptions {
            strategy,
            ..ManagerOptions::default()
        };
        let server = Options::named("server").in_namespace(&namespace);
        let server = hamlyn::open_with(server, with).unwrap();
        let options = ServiceOptions {
            clients: 1,
            ..ServiceOptions::default()
        };
        let mut service = server.bind_service("service", options).unwrap();
        let there = open(&namespace);
        let client = there.connect_service("server/service", LONG).unwrap();
        // Without a word of its own.
        let link = there.session().peers().next().unwrap().0;
        there.session().disconnect(link);
        until("the place", || {
            assert!(service.next(Wait::Poll).unwrap().is_none());
            (server.session().host().offered("service") == 1).then_some(())
        });
        let other = open(&namespace);
        let mut other = other.connect_service("server/service", LONG).unwrap();
        let call = other.start(b"?", LONG).unwrap();
        let asked = service.next(LONG).unwrap().expect("a call");
        assert_eq!(asked.reply(b"!"), Ok(Answered::Sent));
        assert_eq!(*other.reply(&call, LONG).unwrap().expect("a reply"), *b"!");
        drop(client);
    }
}

/// A look takes so many requests that were given up, and no more; what is behind them is news for
/// the next wait.
#[test]
fn calls_that_were_given_up_hide_no_other() {
    let namespace = namespace();
    let with = ManagerOptions {
        queue_entries: 1 << 14,
        ..ManagerOptions::default()
    };
    let server = Options::named("server").in_namespace(&namespace);
    let server = hamlyn::open_with(server, with).unwrap();
    let options = ServiceOptions {
        outstanding: 4_096,
        clients: 2,
        ..ServiceOptions::default()
    };
    let mut service = server.bind_service("service", options).unwrap();
    let there = hamlyn::open_with(Options::default().in_namespace(&namespace), with).unwrap();
    let connect = || there.connect_service("server/service", LONG).unwrap();
    let mut clients = [connect(), connect()];
    let start = |client: &mut Client, bytes: &[u8]| {
        until("room for a call", || {
            server.session().poll();
            client.start(bytes, Wait::Poll).ok()
        })
    };
    for client in &mut clients {
        let given_up: Vec<_> = (0..4_000).map(|_| start(client, b"given up")).collect();
        drop(given_up);
    }
    let last = clients.each_mut().map(|client| start(client, b"last"));
    for (client, last) in clients.iter_mut().zip(&last) {
        until("all to be given up", || {
            // The client says so as far as there is room.
            assert!(client.reply(last, Wait::Poll).unwrap().is_none());
            (server.session().poll() == 0).then_some(())
        });
    }
    // All that has come is known to the wait.
    server.wait(Wait::Poll).unwrap();
    for _ in last {
        let begun = Instant::now();
        let call = loop {
            match service.next(Wait::Poll).unwrap() {
                Some(call) => break call,
                None => server.wait(LONG).unwrap(),
            }
            // After five seconds it looks again, for clients that have not come.
            let waited = begun.elapsed();
            assert!(
                waited < Duration::from_secs(4),
                "there was a call: {waited:?}"
            );
        };
        assert_eq!(*call, *b"last");
    }
}

#[test]
fn a_reply_is_taken_once_and_by_its_own_client() {
    let namespace = namespace();
    let server = named(&namespace, "server");
    let mut service = server
        .bind_service("service", ServiceOptions::default())
        .unwrap();
    let there = open(&namespace);
    let connect = || there.connect_service("server/service", LONG).unwrap();
    let (mut client, mut other) = (connect(), connect());
    let call = client.start(b"?", LONG).unwrap();
    let asked = service.next(LONG).unwrap().expect("a call");
    assert_eq!(asked.reply(b"!"), Ok(Answered::Sent));
    let foreign = other.reply(&call, LONG).map(|_| ());
    assert!(matches!(foreign, Err(CallError::NotPending { .. })));
    assert_eq!(*client.reply(&call, LONG).unwrap().expect("a reply"), *b"!");
    let again = client.reply(&call, LONG).map(|_| ());
    assert!(matches!(again, Err(CallError::NotPending { .. })));
}

#[test]
fn kept_replies_stay_as_they_are_and_give_their_places_back() {
    let namespace = namespace();
    let server = named(&namespace, "server");
    let options = ServiceOptions {
        outstanding: 3,
        ..ServiceOptions::default()
    };
    let mut service = server.bind_service("service", options).unwrap();
    let there = open(&namespace);
    let connect = || there.connect_service("server/service", LONG).unwrap();
    let (mut client, other) = (connect(), connect());
    let mut answer = |client: &mut hamlyn::service::Client<_>, reply: &[u8]| {
        let call = client.start(b"?", LONG).unwrap();
        let asked = service.next(LONG).unwrap().expect("a call");
        assert_eq!(asked.reply(reply), Ok(Answered::Sent));
        let kept = client.reply(&call, LONG).unwrap().expect("a reply").keep();
        let again = client.reply(&call, LONG).map(|_| ());
        assert!(matches!(again, Err(CallError::NotPending { .. })));
        kept
    };
    let mut kept = vec![
        answer(&mut client, b"first"),
        answer(&mut client, b"second"),
        answer(&mut client, b""),
    ];
    let all: Vec<_> = kept.iter().map(|kept| client.view(kept)).collect();
    assert_eq!(all, [Some(&b"first"[..]), Some(b"second"), Some(b"")]);
    assert_eq!(other.view(&kept[0]), None, "it is another client's");
    // Waiting would not help.
    let refused = client.start(b"?", Wait::Forever).map(|_| ());
    assert!(matches!(
        refused,
        Err(CallError::AllKept { outstanding: 3, .. })
    ));
    drop(kept.remove(1));
    for turn in 0..100_u32 {
        let turn = turn.to_le_bytes();
        let one_more = answer(&mut client, &turn);
        assert_eq!(client.view(&one_more), Some(&turn[..]));
        assert_eq!(client.view(&kept[0]), Some(&b"first"[..]));
    }
}

/// What is offered to those who ask for the service: its places, and its board.
fn lane(manager: &hamlyn::Manager<ProcessHost>) -> Ticket {
    let asked = manager
        .session()
        .ask(Address::Name("server"), "service", LONG)
        .unwrap();
    Ticket::from_bytes(&asked[HEADER_BYTES..HEADER_BYTES + TICKET_BYTES]).unwrap()
}

#[test]
fn a_client_that_breaks_the_protocol_loses_its_lane_and_others_are_served() {
    let namespace = namespace();
    let server = named(&namespace, "server");
    let options = ServiceOptions::default();
    let mut service = server.bind_service("service", options).unwrap();
    let honest = open(&namespace);
    let mut client = honest.connect_service("server/service", LONG).unwrap();
    let liar = open(&namespace);
    let third = open(&namespace);
    let area = third.session().allocate(64).unwrap();
    let slot = third
        .session()
        .open_slot(hamlyn::NewSlot::new(&area))
        .unwrap();
    let anothers = slot.fast_ticket(0, 64).unwrap().to_bytes();
    let own = liar.session().allocate(64).unwrap();
    let own = liar
        .session()
        .open_slot(hamlyn::NewSlot::new(&own))
        .unwrap();
    let own = own.fast_ticket(0, 64).unwrap().to_bytes();
    let terminus = liar.terminus();
    let words = usize::from(options.outstanding) as u16;
    let lies: [(u16, &[u8], &[u8]); 5] = [
        // A greeting that is none, or in another's name;
        (words, b"", b"hello"),
        (words, b"", &anothers),
        // after its own: a word that is too short, a length that did not land, and a kind that
        // there is not.
        (0, b"four", b"word"),
        (0, b"four", &5_u64.to_le_bytes()),
        (0, b"four", &(0xF_0000_0004_u64).to_le_bytes()),
    ];
    for (number, (index, data, metadata)) in lies.into_iter().enumerate() {
        let ticket = lane(&liar);
        let mut target = liar.session().target(&ticket, LONG).unwrap();
        let mut say = |index: u16, data: &[u8], metadata: &[u8]| {
            let ticket = Ticket {
                metadata_index: index,
                ..ticket
            };
            target = target.with_ticket(ticket).unwrap();
            let message = Message::new(data).metadata(metadata);
            let sent = liar.session().send_msg(terminus, &target, &message, LONG);
            sent.unwrap();
        };
        if index != words {
            say(words, b"", &own);
        }
        say(index, data, metadata);
        until("the lie", || {
            assert!(service.next(Wait::Poll).unwrap().is_none(), "lie {number}");
            (service.misbehaved() == number as u64 + 1).then_some(())
        });
        let call = client.start(b"honest", LONG).unwrap();
        let asked = service.next(LONG).unwrap().expect("a call");
        assert_eq!(asked.reply(b"answer"), Ok(Answered::Sent));
        let reply = client.reply(&call, LONG).unwrap().expect("a reply");
        assert_eq!(*reply, *b"answer");
    }
    third.session().poll();
    assert_eq!(third.session().refusals().total(), 0);
}

/// In virtual time: somebody asks for all lanes that are offered, and never comes. Newcomers wait
/// until they are taken back.
#[test]
fn lanes_that_nobody_uses_are_taken_back() {
    let mut world = Simulation::new(Settings::default());
    let node = world.node(2);
    let open = |name| hamlyn_sim::host::open(name, ManagerOptions::default()).unwrap();
    let second = |count: u64| Wait::millis(count * 1000);
    world.process(node, "server", || {
        let server = open(Some("server"));
        // Others are offered when these are taken back, and not before.
        let options = ServiceOptions {
            clients: 4,
            ..ServiceOptions::default()
        };
        let mut service = server.bind_service("service", options).unwrap();
        let call = service.next(second(60)).unwrap().expect("a call");
        call.reply(b"welcome").unwrap();
        server.fence(second(1)).unwrap();
    });
    world.process(node, "greedy", || {
        let greedy = open(None);
        for _ in 0..4 {
            let to = Address::Name("server");
            greedy.session().ask(to, "service", second(1)).unwrap();
        }
        let fifth = greedy
            .session()
            .ask(Address::Name("server"), "service", second(1));
        assert!(fifth.is_err());
        let newcomer = open(None);
        let early = newcomer.connect_service("server/service", second(2));
        assert!(matches!(early, Err(ConnectError::Reach(_))), "{early:?}");
        let mut client = newcomer
            .connect_service("server/service", second(30))
            .unwrap();
        let reply = client.call(b"hello", second(5)).map(|reply| reply.to_vec());
        assert_eq!(reply, Ok(b"welcome".to_vec()));
    });
    let outcome = world.run(Time::from_ns(120_000_000_000));
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
}

/// Its client is told; the program that answers sees nothing of it, and goes on waiting.
#[test]
fn a_request_of_another_length_than_its_type_is_dropped() {
    let namespace = namespace();
    let server = named(&namespace, "server");
    let mut service = server
        .bind_service_of::<u64, u64>("sums", ServiceOptions::default())
        .unwrap();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let there = open(&namespace);
            let mut client = there
                .connect_service_of::<u64, u64>("server/sums", LONG)
                .unwrap();
            let short = client.bytes_mut().call(b"short", LONG).map(|_| ());
            assert!(
                matches!(short, Err(CallError::Unanswered { .. })),
                "{short:?}"
            );
            *client.call(&20, LONG).unwrap()
        });
        let call = service.next(LONG).unwrap().expect("a call");
        let answer = *call + 1;
        assert_eq!(call.reply(&answer), Ok(Answered::Sent));
        assert_eq!(asking.join().unwrap(), 21);
    });
}

/// The keys of a lane in other hands: what comes over another link than the client's is none of its
/// requests, before and after its greeting, and no good-bye of its.
#[test]
fn what_comes_over_another_link_costs_the_lane() {
    let namespace = namespace();
    let server = named(&namespace, "server");
    let options = ServiceOptions::default();
    let mut service = server.bind_service("service", options).unwrap();
    let (client, other) = (open(&namespace), open(&namespace));
    let own = client.session().allocate(64).unwrap();
    let own = client
        .session()
        .open_slot(hamlyn::NewSlot::new(&own))
        .unwrap();
    let own = own.fast_ticket(0, 64).unwrap().to_bytes();
    let greeting = options.outstanding;
    let request = 4_u64.to_le_bytes();
    for (number, (index, is_early)) in [(0, true), (0, false), (greeting + 1, false)]
        .into_iter()
        .enumerate()
    {
        let lane = lane(&client);
        let mut say =
            |by: &hamlyn::Manager<ProcessHost>, index: u16, data: &[u8], metadata: &[u8]| {
                let target = by.session().target(&lane, LONG).unwrap();
                let target = target.with_ticket(Ticket {
                    metadata_index: index,
                    ..lane
                });
                let message = Message::new(data).metadata(metadata);
                let terminus = by.terminus();
                let sent = by
                    .session()
                    .send_msg(terminus, &target.unwrap(), &message, LONG);
                sent.unwrap();
                assert_eq!(by.flush(LONG), Ok(true));
                for _ in 0..10 {
                    assert!(service.next(Wait::Poll).unwrap().is_none(), "{number}");
                }
            };
        if is_early {
            say(&other, index, b"four", &request);
            say(&client, greeting, b"", &own);
        } else {
            say(&client, greeting, b"", &own);
            let data: &[u8] = if index == 0 { b"four" } else { b"" };
            say(&other, index, data, &request);
        }
        until("the lane", || {
            assert!(service.next(Wait::Poll).unwrap().is_none(), "{number}");
            (service.misbehaved() == number as u64 + 1).then_some(())
        });
    }
}

/// What a client asked before it vanished is not asked any more, though it waits here already.
#[test]
fn nobody_is_given_the_requests_of_a_client_that_is_gone() {
    let namespace = namespace();
    let server = named(&namespace, "server");
    let options = ServiceOptions::default();
    let mut service = server.bind_service("service", options).unwrap();
    let there = open(&namespace);
    let mut client = there.connect_service("server/service", LONG).unwrap();
    let calls = [(); 3].map(|()| client.start(b"?", LONG).unwrap());
    assert_eq!(there.flush(LONG), Ok(true));
    let first = service.next(LONG).unwrap().expect("a call").defer();
    // The others wait in the server by now.
    drop((calls, client, there));
    until("the departure", || {
        server.session().poll();
        server.session().peers().next().is_none().then_some(())
    });
    assert!(service.next(Wait::Poll).unwrap().is_none());
    assert_eq!(service.reply(first, b"to nobody"), Ok(Answered::ClientGone));
}
