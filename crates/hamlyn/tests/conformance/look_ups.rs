//! Look-ups of many end points in one question.

use hamlyn::engine::counting::Counting;
use hamlyn::host::{ConnectError as Reach, Supply};
use hamlyn::loans::PublisherOptions;
use hamlyn::mailbox::MailboxOptions;
use hamlyn::service::ServiceOptions;
use hamlyn::stream::StreamOptions;
use hamlyn::{ConnectError, Wait};

use crate::World;
use crate::peer::Peer;

const GROW: Wait = Wait::millis(10_000);
/// Time for an item that does not come; one that is there answers sooner, on a busy machine too.
const SOON: Wait = Wait::millis(1_000);
const HUNDREDS: usize = 300;

/// Questions that others asked and this peer answered.
fn questions(peer: &Peer) -> u64 {
    let counters = peer.with(|manager| manager.session().host().rendezvous_counters());
    counters.answered
}

/// Checks that others asked so many, where they ask at all. A question is counted a moment after
/// its answer has arrived.
fn assert_questions(peer: &Peer, before: u64, most: u64) {
    if peer.shares_interface() {
        return;
    }
    peer.until("a question", |_, _| {
        (questions(peer) > before).then_some(())
    });
    let asked = questions(peer) - before;
    assert!(asked <= most, "{asked} questions");
}

/// The addresses of these items, all of which are bound once the first of them is published.
fn addresses(peer: &Peer, items: &[&str]) -> Vec<String> {
    let first = peer.get_address(items[0]);
    let (name, _) = first.rsplit_once('/').unwrap();
    items.iter().map(|item| format!("{name}/{item}")).collect()
}

pub(crate) fn end_points_of_all_protocols_take_one_question(world: &World) {
    const ITEMS: [&str; 8] = [
        "mail", "inbox", "heap0", "heap1", "records", "calls", "group", "frames",
    ];
    world.run(&[
        &|peer| {
            let publisher_options = PublisherOptions {
                message_bytes: 64,
                ..PublisherOptions::default()
            };
            let (mut mail, mut inbox, mut heaps, mut records) = peer.with(|manager| {
                let heap = |item| manager.bind_tagged_write(item, 64, 4).unwrap();
                let records = manager.bind_stream("records", StreamOptions::default());
                (
                    manager
                        .bind_mailbox("mail", MailboxOptions::default())
                        .unwrap(),
                    manager.bind_datagram("inbox", 64).unwrap(),
                    ["heap0", "heap1"].map(heap),
                    records.unwrap(),
                )
            });
            let (mut calls, mut group, mut publisher) = peer.with(|manager| {
                let group = manager.bind_group("group", 4, Counting::default());
                (
                    manager
                        .bind_service("calls", ServiceOptions::default())
                        .unwrap(),
                    group.unwrap(),
                    manager.bind_publisher("frames", publisher_options).unwrap(),
                )
            });
            peer.with(|_| group.begin_shared(&[4]).unwrap());
            let before = questions(peer);
            peer.put_address(ITEMS[0]);
            let came = peer.receive("mail", |_, wait| Ok(mail.recv(wait)?.map(|it| it.to_vec())));
            assert_eq!(came, b"mail");
            let came = peer.receive("a datagram", |_, wait| {
                Ok(inbox.recv(wait)?.map(|datagram| datagram.to_vec()))
            });
            assert_eq!(came, b"datagram");
            for (number, heap) in heaps.iter_mut().enumerate() {
                let tag = peer.receive("a tag", |_, wait| heap.get_tag(wait));
                assert_eq!(tag, number as u64);
            }
            let came = peer.receive("a record", |_, wait| {
                Ok(records.recv(wait)?.map(|record| record.to_vec()))
            });
            assert_eq!(came, b"record");
            let came = peer.receive("a group", |_, wait| {
                Ok(group.recv(wait)?.map(<[u8]>::to_vec))
            });
            assert_eq!(came, b"part");
            peer.receive("a call", |_, wait| {
                let call = calls.next(wait)?;
                Ok(call.map(|call| {
                    let request = call.to_vec();
                    call.reply(&request).unwrap();
                }))
            });
            peer.until("a reader", |_, wait| {
                (publisher.await_readers(1, wait).unwrap() == 1).then_some(())
            });
            // For all of them, and none to connect.
            assert_questions(peer, before, 1);
            peer.put("had all", &[]);
        },
        &|peer| {
            let addresses = addresses(peer, &ITEMS);
            let found = peer.with(|manager| manager.look_up(&addresses, GROW));
            let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
            for (found, address) in found.iter().zip(&addresses) {
                assert_eq!(found.address(), address);
            }
            let [mail, inbox, heap0, heap1, records, calls, group, frames] =
                found.try_into().unwrap();
            let (mail, inbox, heaps, mut records) = peer.with(|manager| {
                let heap = |found| manager.connect_tagged_write(found, GROW).unwrap();
                (
                    manager.connect_mailbox(mail, GROW).unwrap(),
                    manager.connect_datagram(inbox, GROW).unwrap(),
                    [heap0, heap1].map(heap),
                    manager.connect_stream(records, GROW).unwrap(),
                )
            });
            let (mut calls, mut group, _frames) = peer.with(|manager| {
                (
                    manager.connect_service(calls, GROW).unwrap(),
                    manager.connect_group(group, GROW).unwrap(),
                    manager.connect_subscriber(frames, GROW).unwrap(),
                )
            });
            peer.send(|_, wait| mail.send(b"mail", wait)).unwrap();
            peer.send(|_, wait| inbox.send(b"datagram", wait)).unwrap();
            for (number, heap) in heaps.iter().enumerate() {
                peer.send(|_, wait| heap.send(0, b"", number as u64, wait))
                    .unwrap();
            }
            peer.send(|_, wait| records.send(b"record", wait)).unwrap();
            peer.send(|_, wait| records.flush(wait)).unwrap();
            peer.send(|_, wait| group.send_last(0, b"part", wait))
                .unwrap();
            let call = peer.until("room", |_, wait| calls.start(b"call", wait).ok());
            let reply = peer.until("a reply", |_, wait| {
                let reply = calls.reply(&call, wait).unwrap();
                reply.map(|reply| reply.to_vec())
            });
            assert_eq!(reply, b"call");
            peer.flush();
            peer.get("had all");
        },
    ]);
}

pub(crate) fn one_that_is_refused_fails_no_other(world: &World) {
    const ITEMS: [&str; 3] = ["heap", "records", "nothing"];
    world.run(&[
        &|peer| {
            let (mut heap, _records) = peer.with(|manager| {
                let records = manager.bind_stream("records", StreamOptions::default());
                (
                    manager.bind_tagged_write("heap", 64, 4).unwrap(),
                    records.unwrap(),
                )
            });
            peer.put_address("heap");
            let tag = peer.receive("a tag", |_, wait| heap.get_tag(wait));
            assert_eq!(tag, 7);
            peer.get("all told");
        },
        &|peer| {
            let mut addresses = addresses(peer, &ITEMS);
            addresses.push("no address".to_owned());
            addresses.push("nobody/heap".to_owned());
            // It is for one sender, and wanted twice.
            addresses.push(addresses[1].clone());
            let found = peer.with(|manager| manager.look_up(&addresses, SOON));
            let [heap, records, nothing, wrong, nobody, again] = found.try_into().unwrap();
            let not_offered = ConnectError::Reach(match nothing.unwrap_err() {
                ConnectError::Reach(error @ Reach::NotOffered { .. }) => error,
                error => panic!("{error}"),
            });
            assert!(not_offered.to_string().contains("nothing"), "{not_offered}");
            let to = "no address".to_owned();
            assert_eq!(wrong.unwrap_err(), ConnectError::Address { to });
            let nobody = nobody.unwrap_err().to_string();
            assert!(nobody.contains("nobody"), "{nobody}");
            let records = peer.with(|manager| manager.connect_stream(records.unwrap(), GROW));
            let again = peer.with(|manager| manager.connect_stream(again.unwrap(), GROW));
            assert!(records.is_ok());
            assert!(matches!(again.unwrap_err(), ConnectError::Taken { .. }));
            // Of another protocol than it is connected to as.
            let more = peer.with(|manager| manager.look_up(&addresses[..1], GROW));
            let more = more.into_iter().next().unwrap().unwrap();
            let other = peer.with(|manager| manager.connect_mailbox(more, GROW));
            let other = other.map(drop).unwrap_err();
            assert!(
                matches!(other, ConnectError::OtherProtocol { .. }),
                "{other}"
            );
            let heap = peer.with(|manager| manager.connect_tagged_write(heap.unwrap(), GROW));
            let heap = heap.unwrap();
            peer.send(|_, wait| heap.send(0, b"", 7, wait)).unwrap();
            peer.flush();
            peer.put("all told", &[]);
        },
    ]);
}

pub(crate) fn hundreds_take_as_few_questions_as_they_fit(world: &World) {
    let item = |number: usize| format!("ticket{number}");
    world.run(&[
        &|peer| {
            peer.with(|manager| {
                let mut session = manager.session();
                for number in 0..HUNDREDS {
                    let item = item(number);
                    session.offer(&item, Supply::Once, item.as_bytes()).unwrap();
                }
            });
            let before = questions(peer);
            peer.put_address(&item(0));
            peer.get("had all");
            // So many fit one between hosts; within one there are 64.
            assert_questions(peer, before, HUNDREDS.div_ceil(60) as u64);
        },
        &|peer| {
            let items: Vec<String> = (0..HUNDREDS).map(item).collect();
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            let addresses = addresses(peer, &items);
            let found = peer.with(|manager| manager.look_up(&addresses, GROW));
            for (item, found) in items.iter().zip(found) {
                assert_eq!(found.unwrap().offered(), item.as_bytes());
            }
            peer.put("had all", &[]);
        },
    ]);
}
