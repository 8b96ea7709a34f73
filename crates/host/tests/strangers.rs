//! Strangers from the network: some hold the cluster's secret and lie, some are too many.

mod support;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use hamlyn_host::network::handshake_payload::{Answer, Request, Side};
use hamlyn_host::network::hosts::{HostName, NAME_SERVICE_PORT};
use hamlyn_host::network::{NetworkOptions, Security};
use hamlyn_host::process::codec::{self, Message};
use hamlyn_host::process::name::Name;
use hamlyn_host::process::{Access, NetworkUse, Options};
use hamlyn_host::question::{Question, Replies, Reply};
use hamlyn_host::{Address, ConnectError, Connected, Destination, Host, RefusedBecause, Supply};
use hamlyn_link::udp::handshake::{COOKIE_MESSAGE_BYTES, Credentials, Heard, Responder, Taken};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};
use support::place::{Place, TIMEOUT, wall_ms};
use support::raw::{Raw, RawListener};
use support::{Owner, TIMEOUT_NS, after_ns};

/// With a cluster's secret.
const RESPONSE_BYTES: usize = 108;

fn link_of(destination: Destination) -> Request {
    Request::Link(Side {
        destination,
        group: 0,
        process: 1,
        name: None,
        association: 1 << 31 | 7,
        channels: 16,
        frame_bytes: 1_200,
        paths: 1,
        port: 9,
    })
}

#[test]
fn nobody_elsewhere_takes_a_neighbours_place() {
    let place = Place::new(1);
    let mut victim = place.open("victim");
    let neighbour = place.open("neighbour");
    let (port, located) = place.located("victim");
    assert_eq!(located, victim.identity());
    // Who says that it is of this host comes over the network for nothing.
    let refused = place
        .ask(port, located.interface, &link_of(neighbour.identity()))
        .0;
    let reason = RefusedBecause::NOT_ALLOWED.0;
    assert_eq!(refused, Answer::Refused { reason });
    // Of another host it may have whatever number it likes.
    let impostor = Destination {
        node: located.node ^ 1,
        ..neighbour.identity()
    };
    let linked = place.ask(port, located.interface, &link_of(impostor)).0;
    assert!(matches!(linked, Answer::Linked(_)), "{linked:?}");
    let deadline_ns = after_ns(&victim, TIMEOUT_NS);
    let wanted = Address::Destination(neighbour.identity());
    match victim.connect(wanted, deadline_ns).unwrap() {
        Connected::New(peer, _) => assert_eq!(peer.destination.node, 0),
        Connected::Already { .. } => panic!("the impostor has its place"),
    }
}

#[test]
fn a_doorkeeper_that_is_behind_wants_proofs_and_serves_who_has_them() {
    const QUESTIONS: usize = 400;
    let place = Place::new(2);
    let _shop = place.open("shop");
    place.located("shop");
    let questions: Vec<Vec<u8>> = (0..QUESTIONS)
        .map(|_| {
            let mut initiator = place.initiator(0, &place.locate("shop"));
            initiator.poll(0).unwrap().to_vec()
        })
        .collect();
    let flood = place.socket();
    flood.set_nonblocking(true).unwrap();
    let door = SocketAddr::from((place.address, NAME_SERVICE_PORT));
    let (mut room, mut proofs, mut answers) = ([0; 2048], 0, 0);
    let begun = std::time::Instant::now();
    // It is behind as soon as the machine gives it less time than us; a first round may find it
    // quick.
    while proofs == 0 {
        assert!(
            begun.elapsed() < TIMEOUT,
            "{answers} answers, and no proof was wanted"
        );
        for question in &questions {
            // What its socket has no room for is lost.
            let _ = flood.send_to(question, door);
        }
        while let Ok(length) = flood.recv(&mut room) {
            match length {
                COOKIE_MESSAGE_BYTES => proofs += 1,
                _ => answers += 1,
            }
        }
    }
    assert!(matches!(
        place.ask(NAME_SERVICE_PORT, 0, &place.locate("shop")).0,
        Answer::Located { .. }
    ));
}

#[test]
fn no_silence_is_waited_for_longer_than_can_be() {
    let place = Place::new(3);
    let open = |seconds| {
        let mut network = NetworkOptions::new(Security::Secret(place.file.clone()));
        network.host = Some(HostName::new("here").unwrap());
        network.listen = (place.address, 0).into();
        network.silence = Duration::from_secs(seconds);
        let mut options = Options::named("quiet").in_namespace(&place.namespace);
        options.network = NetworkUse::On(Box::new(network));
        Owner::open(options).map(|_| ())
    };
    assert_eq!(open(60), Ok(()));
    let refused = open(61).unwrap_err().to_string();
    assert!(
        refused.contains("silence") && refused.contains("61"),
        "{refused}"
    );
}

/// An attacker has recorded what somebody said who asked for a link. It does not know the secret.
#[test]
fn a_replayed_handshake_makes_no_peer() {
    let place = Place::new(4);
    let (asked, other) = (place.open("asked"), place.open("other"));
    let (port, located) = place.located("asked");
    let (other_port, _) = place.located("other");
    let peer = Destination {
        node: located.node ^ 1,
        interface: located.interface ^ 1,
        ..located
    };
    let mut initiator = place.initiator(located.interface, &link_of(peer));
    let recorded = initiator.poll(0).unwrap().to_vec();
    let attacker = place.socket();
    attacker
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let mut room = [0; 10_000];
    for port in [port, other_port] {
        attacker.send_to(&recorded, (place.address, port)).unwrap();
        let mut received = 0;
        while let Ok(length) = attacker.recv(&mut room) {
            received += length;
        }
        assert!(received <= 3 * recorded.len(), "{received} bytes");
    }
    assert!(!asked.attention() && !other.attention(), "there is a peer");
    // Who has the keys of its handshake is one.
    let linked = place.ask(port, located.interface, &link_of(peer)).0;
    assert!(matches!(linked, Answer::Linked(_)), "{linked:?}");
    assert!(asked.attention() && !other.attention());
}

#[test]
fn what_is_offered_once_is_given_again_to_who_lost_the_answer() {
    let place = Place::new(5);
    let mut shop = place.open("shop");
    let (port, located) = place.located("shop");
    for ticket in [b"first", b"other"] {
        shop.offer("ticket", Supply::Once, ticket).unwrap();
    }
    let ask = |number| {
        let request = Request::Ask {
            question: Question::one(Name::new("ticket").unwrap()),
            user: located.user,
            group: 0,
            number,
        };
        place.ask(port, located.interface, &request).0
    };
    let answered = |reply: Reply| {
        let question = Question::one(Name::new("ticket").unwrap());
        Answer::Answered(Replies::to(&question, 2_000, |_| reply.clone()))
    };
    let given = |bytes: &[u8]| answered(Reply::Given(bytes.to_vec()));
    assert_eq!(ask(1), given(b"first"));
    assert_eq!(ask(2), given(b"other"));
    assert_eq!(ask(1), given(b"first"));
    assert_eq!(ask(3), answered(Reply::Refused(Reply::NOT_OFFERED)));
}

/// A host that is not ours, at two addresses: asked at one, it answers from the other. Gives what
/// it was asked for tickets, and answers these from the second on.
fn two_homed(place: &Place, requests: usize) -> (SocketAddr, std::thread::JoinHandle<Vec<u64>>) {
    const INTERFACE: u64 = 77;
    let [a, b, c, d] = place.address.octets();
    let bind = |last| UdpSocket::bind((Ipv4Addr::new(a, b, c, last), 0)).unwrap();
    let (asked, answers) = (bind(d + 100), bind(d + 101));
    let credentials = Credentials::Secret(place.secret.clone());
    let at = asked.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        // The one who knows the names, and the interface, are at the same port.
        let mut responders = [0, INTERFACE].map(|who| Responder::new(&credentials, who).unwrap());
        let (mut numbers, mut room) = (Vec::new(), [0; 2048]);
        while numbers.len() < requests {
            let (length, from) = asked.recv_from(&mut room).unwrap();
            for responder in &mut responders {
                let said = match responder.take(0, wall_ms(), from, &room[..length], false) {
                    Ok(Heard::Reply(bytes)) => {
                        answers.send_to(bytes, from).unwrap();
                        continue;
                    }
                    Ok(Heard::Said(said)) => said,
                    Err(_) => continue,
                };
                let answer = match Request::from_bytes(&said.payload).unwrap() {
                    Request::Ask {
                        number, question, ..
                    } => {
                        numbers.push(number);
                        if numbers.len() == 1 {
                            continue;
                        }
                        let reply = |_: &Name| Reply::Given(b"ticket".to_vec());
                        Answer::Answered(Replies::to(&question, 2_000, reply))
                    }
                    _ => Answer::Located {
                        interface: INTERFACE,
                        node: HostName::new("there").unwrap().node(),
                        user: rustix::process::geteuid().as_raw(),
                        port: at.port(),
                    },
                };
                let bytes = responder.answer(said.number, &answer.to_bytes());
                let (to, bytes) = bytes.unwrap().unwrap();
                answers.send_to(bytes, to).unwrap();
            }
        }
        numbers
    });
    (at, thread)
}

#[test]
fn answers_may_come_from_another_address_and_who_got_none_asks_for_the_same() {
    let place = Place::new(6);
    let (at, there) = two_homed(&place, 2);
    let mut options = place.options("asker");
    let NetworkUse::On(network) = &mut options.network else {
        unreachable!("it is on the network");
    };
    let name = HostName::new("there").unwrap();
    network.hosts.insert(name, at).unwrap();
    let mut asker = Owner::open(options).unwrap();
    let to = Address::Name("there/shop");
    let deadline_ns = after_ns(&asker, 200_000_000);
    asker.ask(to, "ticket", deadline_ns).unwrap_err();
    let deadline_ns = after_ns(&asker, TIMEOUT_NS);
    let given = asker.ask(to, "ticket", deadline_ns).unwrap();
    assert_eq!(given, b"ticket");
    let numbers = there.join().unwrap();
    assert_eq!(numbers[0], numbers[1]);
}

/// Who comes and says that it is of some host does not have that host's tickets lead to itself.
#[test]
fn nobody_says_of_himself_where_a_host_is() {
    let place = Place::new(10);
    let mut victim = place.open("victim");
    let (port, located) = place.located("victim");
    let zeus = Destination {
        node: HostName::new("zeus").unwrap().node(),
        interface: located.interface ^ 1,
        ..located
    };
    let linked = place.ask(port, located.interface, &link_of(zeus)).0;
    assert!(matches!(linked, Answer::Linked(_)), "{linked:?}");
    let another = Destination {
        interface: located.interface ^ 2,
        ..zeus
    };
    let deadline_ns = after_ns(&victim, TIMEOUT_NS);
    let refused = victim.connect(Address::Destination(another), deadline_ns);
    let refused = refused.map(|_| ()).unwrap_err();
    assert!(
        matches!(refused, ConnectError::UnknownHost { .. }),
        "{refused}"
    );
}

/// The name service finds processes, too, that would not be linked to it.
#[test]
fn who_keeps_to_others_is_found() {
    let place = Place::new(7);
    let _shop = place.open("shop");
    place.located("shop");
    let mut options = place.options("private");
    options.access = Access::Listed {
        users: vec![u32::MAX - 1],
        groups: Vec::new(),
    };
    let private = Owner::open(options).unwrap();
    for _ in 0..8 {
        assert_eq!(place.located("private").1, private.identity());
    }
    // That is all that it says.
    let raw = Raw::connect(&place.namespace, private.identity().interface);
    let item = Name::new("ticket").unwrap();
    raw.greeted();
    let ask = Message::Ask(Question::one(item));
    assert!(raw.send(&codec::encode(&ask), &[]));
    assert_eq!(raw.refusal(), RefusedBecause::NOT_ALLOWED.0);
    // Nor does it say more in one question with that.
    let items = ["hamlyn/wire", "ticket"].map(|item| Name::new(item).unwrap());
    let both = Message::Ask(Question::for_first(&items, 100).unwrap());
    let raw = Raw::connect(&place.namespace, private.identity().interface);
    raw.greeted();
    assert!(raw.send(&codec::encode(&both), &[]));
    assert_eq!(raw.refusal(), RefusedBecause::NOT_ALLOWED.0);
}

/// A process that is stopped keeps those waiting who look for it, and nobody else.
#[test]
fn who_is_stopped_keeps_nobody_else_waiting() {
    const ROUNDS: usize = 100;
    let place = Place::new(8);
    let _shop = place.open("shop");
    let _stopped = RawListener::named(&place.namespace, "stopped");
    let door = SocketAddr::from((place.address, NAME_SERVICE_PORT));
    place.located("shop");
    // If the machine gives us no time for so long that the answer is there, another round may be
    // quicker.
    let is_overtaken = (0..ROUNDS).any(|_| {
        let socket = place.socket();
        socket.connect(door).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        let (mut initiator, mut room) = (place.initiator(0, &place.locate("stopped")), [0; 2048]);
        // The initiation and what it calls for, perhaps with a cookie; then the handshake payload.
        let mut length = 0;
        while length != RESPONSE_BYTES {
            socket.send(initiator.poll(0).unwrap()).unwrap();
            length = socket.recv(&mut room).unwrap();
            assert!(matches!(
                initiator.take(0, &room[..length]),
                Ok(Taken::Again)
            ));
        }
        socket.send(initiator.poll(0).unwrap()).unwrap();
        place.located("shop");
        socket.set_nonblocking(true).unwrap();
        socket.recv(&mut room).is_err()
    });
    assert!(is_overtaken, "a look for other hosts waits, too");
}

/// A process that is stopped may have the port that all processes share: a repeated request reaches
/// another process.
#[test]
fn who_is_stopped_and_keeps_the_door_is_passed_by() {
    let place = Place::new(9);
    let mut shop = place.open("shop");
    shop.offer("ticket", Supply::Always, b"ticket").unwrap();
    place.located("shop");
    let flags = SocketFlags::CLOEXEC;
    let stopped = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None);
    let stopped = stopped.unwrap();
    sockopt::set_socket_reuseport(&stopped, true).unwrap();
    let door = SocketAddr::from((place.address, NAME_SERVICE_PORT));
    rustix::net::bind(&stopped, &door).unwrap();
    let mut options = place.options("asker");
    let NetworkUse::On(network) = &mut options.network else {
        unreachable!("it is on the network");
    };
    network.host = Some(HostName::new("there").unwrap());
    network.listen = (Ipv4Addr::LOCALHOST, 0).into();
    network.name_service_port = 7_408;
    network
        .hosts
        .insert(HostName::new("here").unwrap(), door)
        .unwrap();
    // Some are led to the one that is stopped, by the port from which they ask, and all are
    // answered.
    let is_passed_by = (0..64).any(|_| {
        let mut asker = Owner::open(options.clone()).unwrap();
        let deadline_ns = after_ns(&asker, TIMEOUT_NS);
        let given = asker.ask(Address::Name("here/shop"), "ticket", deadline_ns);
        assert_eq!(given.unwrap(), b"ticket");
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        rustix::net::recv(&stopped, &mut [0; 1][..], flags).is_ok()
    });
    assert!(is_passed_by, "nobody was led there");
}
