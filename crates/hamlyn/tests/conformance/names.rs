//! Rendezvous by name and item; guards; who sent a message; events.

use hamlyn::engine::counting::Counting;
use hamlyn::service::ServiceOptions;
use hamlyn::stream::StreamOptions;
use hamlyn::typed::Typed;
use hamlyn::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use hamlyn::{ConnectError, Event, OpenError, Protocol, Wait};

use crate::World;
use crate::party::Party;

const GROW: Wait = Wait::millis(10_000);

/// The interface of a party, as words.
fn tell_identity(party: &Party, word: &str) {
    let identity = party.with(|manager| manager.interface().identity());
    party.tell(word, &identity.interface.to_le_bytes());
}

fn hear_identity(party: &Party, word: &str) -> u64 {
    u64::from_le_bytes(party.hear(word).try_into().unwrap())
}

pub(crate) fn an_end_point_is_found_by_name_and_item(world: &World) {
    world.run(&[
        &|party| {
            let (mut inbox, mut records, mut tags, mut group) = party.with(|manager| {
                let records = manager.bind_stream("records", StreamOptions::default());
                let group = manager.bind_group("group", 8, Counting::default());
                (
                    manager.bind_datagram("inbox", 64).unwrap(),
                    records.unwrap(),
                    manager.bind_tagged_write("tags", 64, 16).unwrap(),
                    group.unwrap(),
                )
            });
            party.with(|_| group.begin_shared(&[4, 4]).unwrap());
            for item in ["inbox", "records", "tags", "group"] {
                party.tell_address(item);
            }
            let came = party.receive("a datagram", |_, wait| {
                Ok(inbox.recv(wait)?.map(|datagram| datagram.to_vec()))
            });
            assert_eq!(came, b"datagram");
            let came = party.receive("a record", |_, wait| {
                Ok(records.recv(wait)?.map(|record| record.to_vec()))
            });
            assert_eq!(came, b"record");
            let came = party.receive("a tag", |_, wait| tags.get_tag(wait));
            assert_eq!(came, 7);
            let came = party.receive("a group", |_, wait| {
                Ok(group.recv(wait)?.map(<[u8]>::to_vec))
            });
            assert_eq!(came, b"onlytwos");
            party.hear("all taken");
            // Who is dropped is found no more, and the item is free.
            drop(inbox);
            let again = party.with(|manager| manager.bind_datagram("inbox", 64));
            assert!(again.is_ok());
        },
        &|party| {
            let connect = |item: &str| party.hear_address(item);
            let outbox = connect("inbox");
            let outbox = party.with(|manager| manager.connect_datagram(&outbox, GROW).unwrap());
            party
                .send(|_, wait| outbox.send(b"datagram", wait))
                .unwrap();
            let to = connect("records");
            let mut sender = party.with(|manager| manager.connect_stream(&to, GROW).unwrap());
            party.send(|_, wait| sender.send(b"record", wait)).unwrap();
            party.send(|_, wait| sender.flush(wait)).unwrap();
            // It is for one sender.
            let second = party.with(|manager| manager.connect_stream(&to, GROW));
            assert_eq!(second.unwrap_err(), ConnectError::Taken { to });
            let to = connect("tags");
            let tags = party.with(|manager| manager.connect_tagged_write(&to, GROW).unwrap());
            party.send(|_, wait| tags.send(0, b"", 7, wait)).unwrap();
            let to = connect("group");
            for part in [b"only", b"twos"] {
                let mut member = party.with(|manager| manager.connect_group(&to, GROW).unwrap());
                party
                    .send(|_, wait| member.send_last(0, part, wait))
                    .unwrap();
            }
            let third = party.with(|manager| manager.connect_group(&to, GROW));
            assert_eq!(third.unwrap_err(), ConnectError::Taken { to });
            party.flush();
            party.tell("all taken", &[]);
        },
    ]);
}

pub(crate) fn a_guard_makes_its_receiver_ready_again(world: &World) {
    const ROUNDS: u8 = 50;
    world.run(&[
        &|party| {
            let mut inbox = party.with(|manager| manager.bind_datagram("inbox", 64).unwrap());
            party.tell_address("inbox");
            for round in 0..ROUNDS {
                let came = party.receive("a datagram", |_, wait| {
                    let came = inbox.recv(wait)?;
                    Ok(came.map(|datagram| {
                        assert!(datagram.offset() == 0 && datagram.reply_ticket().is_none());
                        datagram.to_vec()
                    }))
                });
                // The guard is gone, so there is room for the next.
                assert_eq!(came, vec![round; usize::from(round % 3) * 16]);
                assert!(inbox.is_ready());
                party.tell(&format!("had {round}"), &[]);
            }
        },
        &|party| {
            let to = party.hear_address("inbox");
            let outbox = party.with(|manager| manager.connect_datagram(&to, GROW).unwrap());
            for round in 0..ROUNDS {
                let data = vec![round; usize::from(round % 3) * 16];
                party.send(|_, wait| outbox.send(&data, wait)).unwrap();
                party.hear(&format!("had {round}"));
            }
        },
    ]);
}

pub(crate) fn every_message_says_who_sent_it(world: &World) {
    world.run(&[
        &|party| {
            let (mut inbox, mut records, mut tags) = party.with(|manager| {
                let records = manager.bind_stream("records", StreamOptions::default());
                (
                    manager.bind_datagram("inbox", 64).unwrap(),
                    records.unwrap(),
                    manager.bind_tagged_write("tags", 64, 16).unwrap(),
                )
            });
            for item in ["inbox", "records", "tags"] {
                party.tell_address(item);
            }
            let sender = hear_identity(party, "sender");
            for length in [16, 40] {
                let came = party.receive("a datagram", |_, wait| {
                    let came = inbox.recv(wait)?;
                    Ok(came.map(|datagram| (datagram.len(), datagram.sender())))
                });
                assert_eq!(came.0, length);
                let who = came.1.expect("its sender");
                assert_eq!(who.interface.interface, sender);
                assert!(who.to_string().contains("user"), "{who}");
                party.tell(&format!("had {length}"), &[]);
            }
            let tag = party.receive("a tag", |_, wait| tags.recv(wait));
            let who = party.with(|_| tags.sender(&tag)).expect("its sender");
            assert_eq!((tag.tag, who.interface.interface), (9, sender));
            party.receive("a record", |_, wait| {
                Ok(records.recv(wait)?.map(|record| record.len()))
            });
            let who = party.with(|_| records.sender()).expect("its sender");
            assert_eq!(who.interface.interface, sender);
            party.hear("all sent");
        },
        &|party| {
            tell_identity(party, "sender");
            let [inbox, tags, records] =
                ["inbox", "tags", "records"].map(|it| party.hear_address(it));
            let outbox = party.with(|manager| manager.connect_datagram(&inbox, GROW).unwrap());
            for length in [16, 40] {
                let data = vec![1; length];
                party.send(|_, wait| outbox.send(&data, wait)).unwrap();
                party.hear(&format!("had {length}"));
            }
            let tags = party.with(|manager| manager.connect_tagged_write(&tags, GROW).unwrap());
            party.send(|_, wait| tags.send(0, b"", 9, wait)).unwrap();
            let mut sender = party.with(|manager| manager.connect_stream(&records, GROW).unwrap());
            party.send(|_, wait| sender.send(b"record", wait)).unwrap();
            party.send(|_, wait| sender.flush(wait)).unwrap();
            party.tell("all sent", &[]);
        },
    ]);
}

pub(crate) fn what_is_not_bound_is_named(world: &World) {
    world.run(&[
        &|party| {
            let inbox = party.with(|manager| manager.bind_datagram("inbox", 64).unwrap());
            let error = party.with(|manager| manager.bind_stream("inbox", Default::default()));
            let item = "inbox".to_owned();
            assert_eq!(error.unwrap_err(), OpenError::ItemTaken { item });
            for item in ["", "a/b", "white space", &"long".repeat(17)] {
                let error = party.with(|manager| manager.bind_datagram(item, 64).unwrap_err());
                let text = error.to_string();
                assert!(text.contains(&format!("{item:?}")), "{text}");
            }
            let offer = |bytes: &[u8]| {
                let supply = hamlyn::host::Supply::Always;
                party.with(|manager| manager.interface().offer("bytes", supply, bytes))
            };
            offer(b"no end point").unwrap();
            party.tell_address("bytes");
            party.tell_address("inbox");
            party.hear("seen");
            drop(inbox);
        },
        &|party| {
            let to = party.hear_address("inbox");
            let wrong = party.with(|manager| manager.connect_stream(&to, GROW).unwrap_err());
            assert_eq!(
                wrong,
                ConnectError::OtherProtocol {
                    to: to.clone(),
                    bound: Protocol::Datagram,
                    asked: Protocol::Stream
                }
            );
            let bytes = party.hear_address("bytes");
            let wrong = party.with(|manager| manager.connect_datagram(&bytes, GROW).unwrap_err());
            assert!(matches!(wrong, ConnectError::NotBound { .. }), "{wrong}");
            let soon = Wait::millis(1);
            let nothing = to.replace("inbox", "nothing");
            let wrong = party.with(|manager| manager.connect_datagram(&nothing, soon).unwrap_err());
            let reached = matches!(
                wrong,
                ConnectError::Reach(
                    hamlyn::host::ConnectError::NotOffered { .. }
                        | hamlyn::host::ConnectError::Stalled { .. }
                        | hamlyn::host::ConnectError::Absent { .. }
                )
            );
            assert!(reached, "{wrong}");
            for to in ["", "inbox", "/inbox", "party/", "a/b/c/d", "//"] {
                let wrong = party.with(|manager| manager.connect_datagram(to, soon).unwrap_err());
                assert_eq!(wrong, ConnectError::Address { to: to.to_owned() });
            }
            party.tell("seen", &[]);
        },
    ]);
}

pub(crate) fn arrivals_are_events(world: &World) {
    world.run(&[
        &|party| {
            let _inbox = party.with(|manager| manager.bind_datagram("inbox", 64).unwrap());
            party.tell_address("inbox");
            let newcomer = hear_identity(party, "newcomer");
            let peer = party.until("an arrival", |manager, wait| {
                match manager.next_event(wait).unwrap()? {
                    Event::PeerArrived { peer } => Some(peer),
                    other => panic!("{other}"),
                }
            });
            assert_eq!(peer.interface.interface, newcomer);
            party.tell("seen", &[]);
        },
        &|party| {
            tell_identity(party, "newcomer");
            let to = party.hear_address("inbox");
            let _outbox = party.with(|manager| manager.connect_datagram(&to, GROW).unwrap());
            party.hear("seen");
        },
    ]);
}

/// Two numbers.
#[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[zerocopy(crate = "hamlyn::zerocopy")]
#[repr(C)]
struct Pair {
    one: u64,
    other: u64,
}

impl Typed for Pair {
    const NAME: &'static str = "Pair";
}

pub(crate) fn typed_values_arrive_and_other_types_are_named(world: &World) {
    let pair = |one| Pair { one, other: !one };
    world.run(&[
        &|party| {
            let (mut pairs, mut numbers, mut sums) = party.with(|manager| {
                (
                    manager.bind_datagram_of::<Pair>("pairs").unwrap(),
                    manager
                        .bind_stream_of::<u64>("numbers", StreamOptions::default())
                        .unwrap(),
                    manager
                        .bind_service_of::<Pair, u64>("sums", ServiceOptions::default())
                        .unwrap(),
                )
            });
            for item in ["pairs", "numbers", "sums"] {
                party.tell_address(item);
            }
            let came = party.receive("a pair", |_, wait| Ok(pairs.recv(wait)?.map(|it| *it)));
            assert_eq!(came, pair(7));
            for number in 0..20 {
                let came = party.receive("a number", |_, wait| {
                    numbers.values(wait).next().transpose()
                });
                assert_eq!(came, number);
            }
            party.receive("a call", |_, wait| {
                let call = sums.next(wait)?;
                Ok(call.map(|call| {
                    let sum = call.one.wrapping_add(call.other);
                    call.reply(&sum).unwrap();
                }))
            });
            party.hear("had it");
        },
        &|party| {
            let [pairs, numbers, sums] =
                ["pairs", "numbers", "sums"].map(|item| party.hear_address(item));
            let wrong = party.with(|manager| manager.connect_datagram(&pairs, GROW).unwrap_err());
            let text = wrong.to_string();
            assert!(
                text.contains("carries Pair of 16 bytes, not bytes"),
                "{text}"
            );
            let wrong = party.with(|manager| {
                let asked = manager.connect_service_of::<Pair, i64>(&sums, GROW);
                asked.unwrap_err()
            });
            let text = wrong.to_string();
            assert!(text.contains("answered by u64 of 8 bytes, not"), "{text}");
            let outbox =
                party.with(|manager| manager.connect_datagram_of::<Pair>(&pairs, GROW).unwrap());
            party.send(|_, wait| outbox.send(&pair(7), wait)).unwrap();
            let mut sender =
                party.with(|manager| manager.connect_stream_of::<u64>(&numbers, GROW).unwrap());
            for number in 0..20 {
                party.send(|_, wait| sender.send(&number, wait)).unwrap();
            }
            party.send(|_, wait| sender.flush(wait)).unwrap();
            let mut client = party.with(|manager| {
                let asked = manager.connect_service_of::<Pair, u64>(&sums, GROW);
                asked.unwrap()
            });
            // Where all share an interface, nobody can be waited for.
            let call = party.until("room", |_, wait| {
                client.bytes_mut().start(pair(3).as_bytes(), wait).ok()
            });
            let sum = party.until("a sum", |_, wait| {
                let reply = client.bytes_mut().reply(&call, wait).unwrap();
                reply.map(|reply| u64::read_from_bytes(&reply).unwrap())
            });
            assert_eq!(sum, u64::MAX);
            party.tell("had it", &[]);
        },
    ]);
}
