//! Places of services and publishers: nobody takes all of them, whoever gets none is told why, and
//! whoever is connected is served, however full links and tables are.

mod support;

use std::time::Duration;

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::{Address, ConnectError as Reach, RefusedBecause};
use hamlyn::lane::{Lane, LaneOptions, LaneSender};
use hamlyn::loans::{Publisher, PublisherOptions, SlowReaders, Subscriber};
use hamlyn::lobby::{Lobby, LobbyOptions};
use hamlyn::service::{Service, ServiceOptions};
use hamlyn::stream::StreamOptions;
use hamlyn::{ConnectError, Manager, ManagerOptions, OpenError, ReceiveError, SendError, Wait};
use support::actor::{Actor, listen, role, say};
use support::{LONG, namespace, open, open_shared, until};

/// Places of what is bound here.
const PLACES: u16 = 16;
/// Two thirds of them: what one program gets.
const SHARE: usize = 11;
/// How long an attempt waits that is to be refused.
const REFUSED_AFTER: Wait = Wait::For(Duration::from_millis(200));

const SERVICE: ServiceOptions = ServiceOptions {
    request_bytes: 64,
    reply_bytes: 64,
    outstanding: 1,
    clients: PLACES,
};

const PUBLISHER: PublisherOptions = PublisherOptions {
    message_bytes: 64,
    chunks: 64,
    depth: 4,
    readers: PLACES,
    slow_readers: SlowReaders::Lose,
};

/// Takes in what has come, and does what is left to be done.
fn look(manager: &Manager<ProcessHost>) {
    while manager.next_event(Wait::Poll).unwrap().is_some() {}
}

fn named(namespace: &str, name: &str) -> Manager<ProcessHost> {
    let options = Options::named(name).in_namespace(namespace);
    hamlyn::open_with(options, ManagerOptions::default()).unwrap()
}

/// What the children do.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Some((role, namespace)) = role() else {
        return;
    };
    let manager = open(&namespace);
    match role.as_str() {
        "clients" => take_all(&manager, |wait| manager.connect_service("alice/echo", wait)),
        "readers" => take_all(&manager, |wait| {
            manager.connect_subscriber("alice/news", wait)
        }),
        "askers" => take_all(&manager, |wait| {
            Ok(manager
                .session()
                .ask(Address::Name("alice"), "echo", wait)?)
        }),
        "guests" => take_all(&manager, |wait| {
            LaneSender::connect_to(&mut manager.session(), "alice/work", "work/1", wait)
        }),
        "visits" => {
            let mut session = manager.session();
            let mut sender =
                LaneSender::connect_to(&mut session, "alice/work", "work/1", LONG).unwrap();
            assert_eq!(sender.await_admission(&mut session, LONG), Ok(true));
            drop(session);
            say(b"let in");
            listen();
            drop(sender);
        }
        "calls" => {
            let mut client = manager.connect_service("alice/echo", LONG).unwrap();
            let reply = client.call(b"?", LONG).unwrap();
            say(&reply);
        }
        "hears" => {
            let mut reader = manager.connect_subscriber("alice/news", LONG).unwrap();
            say(b"connected");
            let sample = reader.recv(LONG).unwrap().unwrap();
            say(&sample.to_vec());
        }
        other => panic!("{other}"),
    }
    // Whatever it has, it keeps until the test is over.
    listen();
}

/// Takes as much as it gets, and says how much that is and why it is no more.
fn take_all<E>(manager: &Manager<ProcessHost>, take: impl Fn(Wait) -> Result<E, ConnectError>) {
    let mut taken = Vec::new();
    let error = loop {
        match take(REFUSED_AFTER) {
            Ok(end) => taken.push(end),
            Err(error) => break error,
        }
        assert!(taken.len() < 5_000, "nobody is refused");
        look(manager);
    };
    say(&(taken.len() as u64).to_le_bytes());
    say(error.to_string().as_bytes());
    listen();
}

/// What a child that takes all got, and why no more.
fn heard(actor: &mut Actor) -> (usize, String) {
    let count = u64::from_le_bytes(actor.hear().try_into().unwrap());
    (count as usize, String::from_utf8(actor.hear()).unwrap())
}

/// Drives something until an actor has said what it has to say.
fn while_driven<R: Send>(mut drive: impl FnMut(), hear: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let hearing = scope.spawn(hear);
        while !hearing.is_finished() {
            drive();
        }
        hearing.join().unwrap()
    })
}

fn serve(service: &mut Service<ProcessHost>) {
    if let Some(call) = service.next(Wait::millis(1)).unwrap() {
        call.reply(b"!").unwrap();
    }
}

#[test]
fn a_program_that_takes_all_lanes_of_a_service_leaves_a_third() {
    for greedy in ["clients", "askers"] {
        let namespace = namespace();
        let alice = named(&namespace, "alice");
        let mut service = alice.bind_service("echo", SERVICE).unwrap();
        let mut greedy = Actor::start(greedy, &namespace);
        let (count, why) = while_driven(|| serve(&mut service), || heard(&mut greedy));
        assert_eq!(count, SHARE, "{why}");
        assert!(why.contains("keeps the rest of its places"), "{why}");
        let mut honest = Actor::start("calls", &namespace);
        let reply = while_driven(|| serve(&mut service), || honest.hear());
        assert_eq!(reply, b"!");
        assert_eq!(service.misbehaved(), 0);
    }
}

#[test]
fn a_program_that_takes_all_places_of_a_lobby_leaves_a_third() {
    let namespace = namespace();
    let alice = named(&namespace, "alice");
    let places = LobbyOptions {
        places: PLACES,
        ..LobbyOptions::default()
    };
    let lanes = LaneOptions::default();
    let lobby = Lobby::<Lane>::bind(&mut alice.session(), "work", "work/1", places, lanes);
    let mut lobby = lobby.unwrap();
    let mut guests = Vec::new();
    let mut admit = || {
        let mut session = alice.session();
        let admitted = session.wait_for(Wait::millis(1), |session| lobby.next(session));
        guests.extend(admitted.unwrap());
    };
    let mut greedy = Actor::start("guests", &namespace);
    let (count, why) = while_driven(&mut admit, || heard(&mut greedy));
    assert_eq!(count, SHARE, "{why}");
    assert!(why.contains("keeps the rest of its places"), "{why}");
    let mut honest = Actor::start("visits", &namespace);
    let said = while_driven(&mut admit, || honest.hear());
    assert_eq!(said, b"let in");
    assert_eq!((guests.len(), lobby.misbehaved()), (SHARE + 1, 0));
}

#[test]
fn a_program_that_takes_all_places_of_a_publisher_leaves_a_third() {
    let namespace = namespace();
    let alice = named(&namespace, "alice");
    let mut publisher = alice.bind_publisher("news", PUBLISHER).unwrap();
    let mut greedy = Actor::start("readers", &namespace);
    let (count, why) = while_driven(|| publisher.poll(), || heard(&mut greedy));
    assert_eq!(count, SHARE, "{why}");
    assert!(why.contains("keeps the rest of its places"), "{why}");
    hears(&mut publisher, &namespace);
}

/// Another program hears of what is published from now on.
fn hears(publisher: &mut Publisher<ProcessHost>, namespace: &str) {
    let mut honest = Actor::start("hears", namespace);
    while_driven(|| publisher.poll(), || honest.hear());
    let heard = while_driven(|| publish(publisher), || honest.hear());
    assert_eq!(heard, b"news");
}

fn publish(publisher: &mut Publisher<ProcessHost>) {
    let mut loan = publisher.loan(4, LONG).unwrap();
    loan.copy_from_slice(b"news");
    loan.publish(LONG).unwrap();
    std::thread::sleep(Duration::from_millis(1));
}

#[test]
fn a_client_of_a_service_that_is_full_hears_so() {
    let namespace = namespace();
    let alice = named(&namespace, "alice");
    let one = ServiceOptions {
        clients: 1,
        ..SERVICE
    };
    let mut service = alice.bind_service("echo", one).unwrap();
    let refused = |me: &Manager<ProcessHost>| {
        let error = me.connect_service("alice/echo", REFUSED_AFTER).unwrap_err();
        let reason = RefusedBecause::FULL;
        assert!(
            matches!(&error, ConnectError::Reach(Reach::Refused { reason: why, .. }) if *why == reason),
            "{error}"
        );
        error.to_string()
    };
    let (bob, carol) = (open(&namespace), open(&namespace));
    let client = bob.connect_service("alice/echo", LONG).unwrap();
    serve(&mut service);
    let why = refused(&carol);
    assert!(why.contains("as many clients or readers"), "{why}");
    // The place of one that has left is another's.
    drop(client);
    look(&bob);
    let client = until("the place", || {
        serve(&mut service);
        carol.connect_service("alice/echo", Wait::Poll).ok()
    });
    refused(&bob);
    drop(client);
}

#[test]
fn a_service_for_more_clients_than_the_queue_has_room_for_is_refused_when_it_is_bound() {
    let namespace = namespace();
    let options = |clients| ServiceOptions { clients, ..SERVICE };
    let opened = |name: &str, queue_entries| {
        let manager = ManagerOptions {
            queue_entries,
            ..ManagerOptions::default()
        };
        hamlyn::open_with(Options::named(name).in_namespace(&namespace), manager).unwrap()
    };
    // Each client takes three entries, and one is always free.
    let alice = opened("alice", 64);
    for clients in [22, 64, u16::MAX] {
        let error = alice.bind_service("echo", options(clients)).unwrap_err();
        assert!(matches!(error, OpenError::ServiceRoom { .. }), "{error}");
        let text = error.to_string();
        let told = format!("{clients} clients with 1 calls each");
        assert!(
            text.contains(&told) && text.contains("64 entries"),
            "{text}"
        );
    }
    // Whoever does not say how many has as many as fit.
    let many_calls = ServiceOptions {
        outstanding: 61,
        ..ServiceOptions::default()
    };
    drop(alice.bind_service("calls", many_calls).unwrap());
    let outstanding = 62;
    let too_many_calls = ServiceOptions {
        outstanding,
        ..many_calls
    };
    let error = alice.bind_service("calls", too_many_calls).unwrap_err();
    assert!(error.to_string().contains("1 clients with 62"), "{error}");
    let mut service = alice.bind_service("echo", options(21)).unwrap();
    let me = open(&namespace);
    let clients: Vec<_> = connected(
        21,
        || me.connect_service("alice/echo", Wait::Poll).ok(),
        || serve(&mut service),
    );
    assert_eq!(clients.len(), 21);
    drop((clients, service));
}

fn connected<E>(count: usize, connect: impl Fn() -> Option<E>, mut drive: impl FnMut()) -> Vec<E> {
    let mut ends = Vec::new();
    while ends.len() < count {
        let end = until("another place", || {
            drive();
            connect()
        });
        ends.push(end);
    }
    ends
}

/// Services share the queue of their manager: whoever finds no room there is told that, and not
/// that all places are taken.
#[test]
fn a_client_for_whom_the_queue_has_no_room_hears_so() {
    let namespace = namespace();
    let manager = ManagerOptions {
        queue_entries: 64,
        ..ManagerOptions::default()
    };
    let options = Options::named("alice").in_namespace(&namespace);
    let alice = hamlyn::open_with(options, manager).unwrap();
    let mut first = alice.bind_service("echo", SERVICE).unwrap();
    let mut second = alice.bind_service("other", SERVICE).unwrap();
    let me = open(&namespace);
    let mut drive = || {
        serve(&mut first);
        serve(&mut second);
    };
    let clients = connected(
        15,
        || me.connect_service("alice/echo", Wait::Poll).ok(),
        &mut drive,
    );
    let mut others = Vec::new();
    let why = until("the end of the room", || {
        drive();
        match me.connect_service("alice/other", REFUSED_AFTER) {
            Ok(client) => {
                others.push(client);
                None
            }
            Err(error) => Some(error.to_string()),
        }
    });
    assert!(why.contains("more queue entries"), "{why}");
    assert!(others.len() < usize::from(PLACES));
    drop(clients);
}

/// A publisher and the program of its readers, with a link between them that can be filled.
struct Busy {
    alice: Manager<ProcessHost>,
    bob: Manager<ProcessHost>,
    inbox: hamlyn::datagram::Receiver,
    sender: hamlyn::datagram::Sender,
    publisher: Publisher<ProcessHost>,
}

impl Busy {
    fn open(readers: u16) -> Self {
        let namespace = namespace();
        let (alice, bob) = (named(&namespace, "alice"), named(&namespace, "bob"));
        let options = PublisherOptions {
            readers,
            ..PUBLISHER
        };
        Self {
            inbox: bob.bind_datagram("inbox", 64).unwrap(),
            sender: alice.connect_datagram("bob/inbox", LONG).unwrap(),
            publisher: alice.bind_publisher("news", options).unwrap(),
            alice,
            bob,
        }
    }
}

/// Sends until the link has no room.
fn fill(sender: &mut hamlyn::datagram::Sender) {
    loop {
        match sender.send(b"in the way", Wait::Poll) {
            Ok(_) => {}
            Err(SendError::WouldBlock { .. }) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_reader_that_greets_while_the_link_is_full_hears_all_the_same() {
    const READERS: usize = 40;
    let Busy {
        alice: _alice,
        bob,
        inbox,
        mut sender,
        mut publisher,
    } = Busy::open(READERS as u16);
    let mut readers: Vec<Subscriber> = Vec::new();
    let mut were_kept_waiting = 0;
    while readers.len() < READERS {
        fill(&mut sender);
        publisher.poll();
        if let Ok(reader) = bob.connect_subscriber("alice/news", Wait::millis(50)) {
            readers.push(reader);
        }
        fill(&mut sender);
        publisher.poll();
        were_kept_waiting += readers.len().saturating_sub(publisher.readers());
    }
    assert!(were_kept_waiting > 0, "the link was never full");
    drop((inbox, sender));
    assert_all_hear(&mut publisher, &bob, &mut readers);
}

fn assert_all_hear(
    publisher: &mut Publisher<ProcessHost>,
    bob: &Manager<ProcessHost>,
    readers: &mut [Subscriber],
) {
    until("all readers", || {
        look(bob);
        for reader in readers.iter_mut() {
            // It fetches the pool.
            assert!(reader.recv(Wait::Poll).unwrap().is_none());
        }
        publisher.poll();
        (publisher.readers() == readers.len()).then_some(())
    });
    // One link does not hold a message for each of them.
    let mut deaf: Vec<&mut Subscriber> = readers.iter_mut().collect();
    until("a message for all readers", || {
        publish(publisher);
        deaf.retain_mut(|reader| match reader.recv(Wait::Poll).unwrap() {
            None => true,
            Some(sample) => sample.to_vec() != b"news",
        });
        deaf.is_empty().then_some(())
    });
}

/// More than there can be pools that wait to be fetched.
#[test]
fn readers_that_fetch_late_all_hear() {
    const READERS: usize = 600;
    let namespace = namespace();
    let (alice, bob) = (named(&namespace, "alice"), open(&namespace));
    let options = PublisherOptions {
        readers: READERS as u16,
        ..PUBLISHER
    };
    let mut publisher = alice.bind_publisher("news", options).unwrap();
    let mut readers = connected(
        READERS,
        || bob.connect_subscriber("alice/news", Wait::Poll).ok(),
        || publisher.poll(),
    );
    publisher.poll();
    assert!(publisher.readers() < READERS, "all pools were lent at once");
    assert_all_hear(&mut publisher, &bob, &mut readers);
}

/// A program that greets as a reader and fetches nothing keeps no other from what waits to be
/// fetched.
#[test]
fn readers_that_never_fetch_are_in_nobodys_way() {
    let namespace = namespace();
    let alice = named(&namespace, "alice");
    let options = PublisherOptions {
        readers: 1_000,
        ..PUBLISHER
    };
    let mut publisher = alice.bind_publisher("news", options).unwrap();
    let mut hoarder = Actor::start("readers", &namespace);
    let (count, why) = while_driven(|| publisher.poll(), || heard(&mut hoarder));
    assert_eq!(count, 667, "{why}");
    hears(&mut publisher, &namespace);
}

#[test]
fn the_end_of_a_publisher_reaches_all_readers_of_a_link_that_was_full() {
    const READERS: usize = 300;
    let Busy {
        alice,
        bob,
        inbox,
        mut sender,
        mut publisher,
    } = Busy::open(READERS as u16);
    let mut readers = connected(
        READERS,
        || bob.connect_subscriber("alice/news", Wait::Poll).ok(),
        || publisher.poll(),
    );
    assert_all_hear(&mut publisher, &bob, &mut readers);
    fill(&mut sender);
    drop(publisher);
    look(&alice);
    drop(inbox);
    for reader in &mut readers {
        let ended = until("the end", || {
            look(&alice);
            look(&bob);
            reader.recv(Wait::Poll).map(drop).err()
        });
        assert_eq!(ended, ReceiveError::Closed);
    }
}

/// An attempt that had no time keeps its offer. The next one is connected to what is there then.
#[test]
fn whoever_comes_back_is_connected_to_what_is_there() {
    let options = StreamOptions::default();
    let mut failed = 0;
    for round in 0..60_u64 {
        let namespace = namespace();
        let (alice, bob) = (named(&namespace, "alice"), open_shared(&namespace));
        let log = alice.bind_stream("log", options).unwrap();
        let wait = Wait::For(Duration::from_micros(20 + 10 * round));
        if bob.connect_stream("alice/log", wait).is_ok() {
            continue;
        }
        failed += 1;
        drop(log);
        let mut log = alice.bind_stream("log", options).unwrap();
        let came = std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let mut sender = bob.connect_stream("alice/log", LONG).unwrap();
                sender.send(b"came", LONG).unwrap();
                sender.close(LONG).unwrap();
            });
            let came = log.recv(LONG).unwrap().map(|record| record.to_vec());
            sending.join().unwrap();
            came
        });
        assert_eq!(came.as_deref(), Some(&b"came"[..]), "round {round}");
    }
    assert!(failed > 0, "each attempt had time enough");
}
