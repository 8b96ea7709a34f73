//! Rendezvous by name and item; guards; who sent a message; events.

use hamlyn::engine::counting::Counting;
use hamlyn::service::ServiceOptions;
use hamlyn::stream::StreamOptions;
use hamlyn::typed::Typed;
use hamlyn::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use hamlyn::{ConnectError, Event, OpenError, Protocol, Wait};

use crate::World;
use crate::peer::Peer;

const GROW: Wait = Wait::millis(10_000);

/// The interface of a peer, published under a key.
fn put_identity(peer: &Peer, key: &str) {
    let identity = peer.with(|manager| manager.session().identity());
    peer.put(key, &identity.interface.to_le_bytes());
}

fn get_identity(peer: &Peer, key: &str) -> u64 {
    u64::from_le_bytes(peer.get(key).try_into().unwrap())
}

pub(crate) fn an_end_point_is_found_by_name_and_item(world: &World) {
    world.run(&[
        &|peer| {
            let (mut inbox, mut records, mut tags, mut group) = peer.with(|manager| {
                let records = manager.bind_stream("records", StreamOptions::default());
                let group = manager.bind_group("group", 8, Counting::default());
                (
                    manager.bind_datagram("inbox", 64).unwrap(),
                    records.unwrap(),
                    manager.bind_tagged_write("tags", 64, 16).unwrap(),
                    group.unwrap(),
                )
            });
            peer.with(|_| group.begin_shared(&[4, 4]).unwrap());
            for item in ["inbox", "records", "tags", "group"] {
                peer.put_address(item);
            }
            let came = peer.receive("a datagram", |_, wait| {
                Ok(inbox.recv(wait)?.map(|datagram| datagram.to_vec()))
            });
            assert_eq!(came, b"datagram");
            let came = peer.receive("a record", |_, wait| {
                Ok(records.recv(wait)?.map(|record| record.to_vec()))
            });
            assert_eq!(came, b"record");
            let came = peer.receive("a tag", |_, wait| tags.get_tag(wait));
            assert_eq!(came, 7);
            let came = peer.receive("a group", |_, wait| {
                Ok(group.recv(wait)?.map(<[u8]>::to_vec))
            });
            assert_eq!(came, b"onlytwos");
            peer.get("all taken");
            // Who is dropped is found no more, and the item is free.
            drop(inbox);
            let again = peer.with(|manager| manager.bind_datagram("inbox", 64));
            assert!(again.is_ok());
        },
        &|peer| {
            let connect = |item: &str| peer.get_address(item);
            let outbox = connect("inbox");
            let outbox = peer.with(|manager| manager.connect_datagram(&outbox, GROW).unwrap());
            peer.send(|_, wait| outbox.send(b"datagram", wait)).unwrap();
            let to = connect("records");
            let mut sender = peer.with(|manager| manager.connect_stream(&to, GROW).unwrap());
            peer.send(|_, wait| sender.send(b"record", wait)).unwrap();
            peer.send(|_, wait| sender.flush(wait)).unwrap();
            // It is for one sender.
            let second = peer.with(|manager| manager.connect_stream(&to, GROW));
            assert_eq!(second.unwrap_err(), ConnectError::Taken { to });
            let to = connect("tags");
            let tags = peer.with(|manager| manager.connect_tagged_write(&to, GROW).unwrap());
            peer.send(|_, wait| tags.send(0, b"", 7, wait)).unwrap();
            let to = connect("group");
            for part in [b"only", b"twos"] {
                let mut member = peer.with(|manager| manager.connect_group(&to, GROW).unwrap());
                peer.send(|_, wait| member.send_last(0, part, wait))
                    .unwrap();
            }
            let third = peer.with(|manager| manager.connect_group(&to, GROW));
            assert_eq!(third.unwrap_err(), ConnectError::Taken { to });
            peer.flush();
            peer.put("all taken", &[]);
        },
    ]);
}

pub(crate) fn a_guard_makes_its_receiver_ready_again(world: &World) {
    const ROUNDS: u8 = 50;
    world.run(&[
        &|peer| {
            let mut inbox = peer.with(|manager| manager.bind_datagram("inbox", 64).unwrap());
            peer.put_address("inbox");
            for round in 0..ROUNDS {
                let came = peer.receive("a datagram", |_, wait| {
                    let came = inbox.recv(wait)?;
                    Ok(came.map(|datagram| {
                        assert!(datagram.offset() == 0 && datagram.reply_ticket().is_none());
                        datagram.to_vec()
                    }))
                });
                // The guard is gone, so there is room for the next.
                assert_eq!(came, vec![round; usize::from(round % 3) * 16]);
                assert!(inbox.is_ready());
                peer.put(&format!("had {round}"), &[]);
            }
        },
        &|peer| {
            let to = peer.get_address("inbox");
            let outbox = peer.with(|manager| manager.connect_datagram(&to, GROW).unwrap());
            for round in 0..ROUNDS {
                let data = vec![round; usize::from(round % 3) * 16];
                peer.send(|_, wait| outbox.send(&data, wait)).unwrap();
                peer.get(&format!("had {round}"));
            }
        },
    ]);
}

pub(crate) fn every_message_says_who_sent_it(world: &World) {
    world.run(&[
        &|peer| {
            let (mut inbox, mut records, mut tags) = peer.with(|manager| {
                let records = manager.bind_stream("records", StreamOptions::default());
                (
                    manager.bind_datagram("inbox", 64).unwrap(),
                    records.unwrap(),
                    manager.bind_tagged_write("tags", 64, 16).unwrap(),
                )
            });
            for item in ["inbox", "records", "tags"] {
                peer.put_address(item);
            }
            let sender = get_identity(peer, "sender");
            for length in [16, 40] {
                let came = peer.receive("a datagram", |_, wait| {
                    let came = inbox.recv(wait)?;
                    Ok(came.map(|datagram| (datagram.len(), datagram.sender())))
                });
                assert_eq!(came.0, length);
                let who = came.1.expect("its sender");
                assert_eq!(who.interface.interface, sender);
                assert!(who.to_string().contains("user"), "{who}");
                peer.put(&format!("had {length}"), &[]);
            }
            let tag = peer.receive("a tag", |_, wait| tags.recv(wait));
            let who = peer.with(|_| tags.sender(&tag)).expect("its sender");
            assert_eq!((tag.tag, who.interface.interface), (9, sender));
            peer.receive("a record", |_, wait| {
                Ok(records.recv(wait)?.map(|record| record.len()))
            });
            let who = peer.with(|_| records.sender()).expect("its sender");
            assert_eq!(who.interface.interface, sender);
            peer.get("all sent");
        },
        &|peer| {
            put_identity(peer, "sender");
            let [inbox, tags, records] =
                ["inbox", "tags", "records"].map(|it| peer.get_address(it));
            let outbox = peer.with(|manager| manager.connect_datagram(&inbox, GROW).unwrap());
            for length in [16, 40] {
                let data = vec![1; length];
                peer.send(|_, wait| outbox.send(&data, wait)).unwrap();
                peer.get(&format!("had {length}"));
            }
            let tags = peer.with(|manager| manager.connect_tagged_write(&tags, GROW).unwrap());
            peer.send(|_, wait| tags.send(0, b"", 9, wait)).unwrap();
            let mut sender = peer.with(|manager| manager.connect_stream(&records, GROW).unwrap());
            peer.send(|_, wait| sender.send(b"record", wait)).unwrap();
            peer.send(|_, wait| sender.flush(wait)).unwrap();
            peer.put("all sent", &[]);
        },
    ]);
}

pub(crate) fn what_is_not_bound_is_named(world: &World) {
    world.run(&[
        &|peer| {
            let inbox = peer.with(|manager| manager.bind_datagram("inbox", 64).unwrap());
            let error = peer.with(|manager| manager.bind_stream("inbox", Default::default()));
            let item = "inbox".to_owned();
            assert_eq!(error.unwrap_err(), OpenError::ItemTaken { item });
            for item in ["", "a/b", "white space", &"long".repeat(17)] {
                let error = peer.with(|manager| manager.bind_datagram(item, 64).unwrap_err());
                let text = error.to_string();
                assert!(text.contains(&format!("{item:?}")), "{text}");
            }
            let offer = |bytes: &[u8]| {
                let supply = hamlyn::host::Supply::Always;
                peer.with(|manager| manager.session().offer("bytes", supply, bytes))
            };
            offer(b"no end point").unwrap();
            peer.put_address("bytes");
            peer.put_address("inbox");
            peer.get("seen");
            drop(inbox);
        },
        &|peer| {
            let to = peer.get_address("inbox");
            let wrong = peer.with(|manager| manager.connect_stream(&to, GROW).unwrap_err());
            assert_eq!(
                wrong,
                ConnectError::OtherProtocol {
                    to: to.clone(),
                    bound: Protocol::Datagram,
                    asked: Protocol::Stream
                }
            );
            let bytes = peer.get_address("bytes");
            let wrong = peer.with(|manager| manager.connect_datagram(&bytes, GROW).unwrap_err());
            assert!(matches!(wrong, ConnectError::NotBound { .. }), "{wrong}");
            let soon = Wait::millis(1);
            let nothing = to.replace("inbox", "nothing");
            let wrong = peer.with(|manager| manager.connect_datagram(&nothing, soon).unwrap_err());
            let reached = matches!(
                wrong,
                ConnectError::Reach(
                    hamlyn::host::ConnectError::NotOffered { .. }
                        | hamlyn::host::ConnectError::Stalled { .. }
                        | hamlyn::host::ConnectError::Absent { .. }
                )
            );
            assert!(reached, "{wrong}");
            for to in ["", "inbox", "/inbox", "peer/", "a/b/c/d", "//"] {
                let wrong = peer.with(|manager| manager.connect_datagram(to, soon).unwrap_err());
                assert_eq!(wrong, ConnectError::Address { to: to.to_owned() });
            }
            peer.put("seen", &[]);
        },
    ]);
}

pub(crate) fn arrivals_are_events(world: &World) {
    world.run(&[
        &|peer| {
            let _inbox = peer.with(|manager| manager.bind_datagram("inbox", 64).unwrap());
            peer.put_address("inbox");
            let newcomer = get_identity(peer, "newcomer");
            let arrived = peer.until("an arrival", |manager, wait| {
                match manager.next_event(wait).unwrap()? {
                    Event::PeerArrived { peer: arrived } => Some(arrived),
                    other => panic!("{other}"),
                }
            });
            assert_eq!(arrived.interface.interface, newcomer);
            peer.put("seen", &[]);
        },
        &|peer| {
            put_identity(peer, "newcomer");
            let to = peer.get_address("inbox");
            let _outbox = peer.with(|manager| manager.connect_datagram(&to, GROW).unwrap());
            peer.get("seen");
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
        &|peer| {
            let (mut pairs, mut numbers, mut sums) = peer.with(|manager| {
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
                peer.put_address(item);
            }
            let came = peer.receive("a pair", |_, wait| Ok(pairs.recv(wait)?.map(|it| *it)));
            assert_eq!(came, pair(7));
            for number in 0..20 {
                let came = peer.receive("a number", |_, wait| {
                    numbers.values(wait).next().transpose()
                });
                assert_eq!(came, number);
            }
            peer.receive("a call", |_, wait| {
                let call = sums.next(wait)?;
                Ok(call.map(|call| {
                    let sum = call.one.wrapping_add(call.other);
                    call.reply(&sum).unwrap();
                }))
            });
            peer.get("had it");
        },
        &|peer| {
            let [pairs, numbers, sums] =
                ["pairs", "numbers", "sums"].map(|item| peer.get_address(item));
            let wrong = peer.with(|manager| manager.connect_datagram(&pairs, GROW).unwrap_err());
            let text = wrong.to_string();
            assert!(
                text.contains("carries Pair of 16 bytes, not bytes"),
                "{text}"
            );
            let wrong = peer.with(|manager| {
                let asked = manager.connect_service_of::<Pair, i64>(&sums, GROW);
                asked.unwrap_err()
            });
            let text = wrong.to_string();
            assert!(text.contains("answered by u64 of 8 bytes, not"), "{text}");
            let outbox =
                peer.with(|manager| manager.connect_datagram_of::<Pair>(&pairs, GROW).unwrap());
            peer.send(|_, wait| outbox.send(&pair(7), wait)).unwrap();
            let mut sender =
                peer.with(|manager| manager.connect_stream_of::<u64>(&numbers, GROW).unwrap());
            for number in 0..20 {
                peer.send(|_, wait| sender.send(&number, wait)).unwrap();
            }
            peer.send(|_, wait| sender.flush(wait)).unwrap();
            let mut client = peer.with(|manager| {
                let asked = manager.connect_service_of::<Pair, u64>(&sums, GROW);
                asked.unwrap()
            });
            // Where all share an interface, nobody can be waited for.
            let call = peer.until("room", |_, wait| {
                client.bytes_mut().start(pair(3).as_bytes(), wait).ok()
            });
            let sum = peer.until("a sum", |_, wait| {
                let reply = client.bytes_mut().reply(&call, wait).unwrap();
                reply.map(|reply| u64::read_from_bytes(&reply).unwrap())
            });
            assert_eq!(sum, u64::MAX);
            peer.put("had it", &[]);
        },
    ]);
}
