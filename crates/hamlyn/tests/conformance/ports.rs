//! Ports and mailboxes (decision 49): messages without a place, for a handler.

use hamlyn::engine::key::Key;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::transport::Return;
use hamlyn::mailbox::{self, MailboxOptions};
use hamlyn::{ConnectError, FenceError, NewPort, Port, SendError, Target, Ticket, Wait};

use crate::low_level::target;
use crate::peer::{Peer, pattern};
use crate::{Host, World};

const GROW: Wait = Wait::millis(10_000);

fn open(peer: &Peer, new: NewPort) -> Port {
    peer.with(|manager| manager.session().open_port(new).unwrap())
}

fn send(peer: &Peer, target: &Target, handler: u16, data: &[u8]) {
    peer.send(|manager, _| {
        let mut session = manager.session();
        session.send_message(target, handler, data, Wait::Poll)
    })
    .unwrap();
}

/// The next message: its handler and its bytes.
fn recv(peer: &Peer, port: &mut Port) -> (u16, Vec<u8>) {
    peer.receive("a message", |manager, wait| {
        let mut session = manager.session();
        let Some(message) = session.recv_message(port, wait)? else {
            return Ok(None);
        };
        let mut bytes = vec![0; message.len()];
        message.copy_to(&mut bytes);
        let handler = message.handler();
        message.dispose();
        Ok(Some((handler, bytes)))
    })
}

fn fence(peer: &Peer, mut call: impl FnMut(Wait) -> Result<(), FenceError>) -> (u64, Refusal) {
    let fenced = peer.until("a fence", |_, wait| match call(wait) {
        Err(FenceError::TimedOut { .. }) => None,
        other => Some(other),
    });
    refused(fenced)
}

fn fence_all(peer: &Peer) -> (u64, Refusal) {
    refused(
        peer.until("a fence", |manager, wait| match manager.fence(wait) {
            Err(FenceError::TimedOut { .. }) => None,
            other => Some(other),
        }),
    )
}

fn refused(fenced: Result<(), FenceError>) -> (u64, Refusal) {
    match fenced {
        Err(FenceError::Refused { count, last }) => match last.reason {
            Return::Refused(reason) => (count, reason),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

pub(crate) fn messages_of_all_lengths_reach_their_handlers(world: &World) {
    const LENGTHS: [usize; 14] = [
        0, 1, 8, 55, 56, 57, 112, 113, 500, 1024, 1064, 1065, 1300, 4000,
    ];
    const ROUNDS: u64 = 4;
    world.run(&[
        &|peer| {
            let mut port = open(peer, NewPort::new().handlers(4096).group(u64::MAX - 3));
            peer.put_ticket("ticket", &port.ticket());
            let count = u64::from_le_bytes(peer.get("count").try_into().unwrap());
            let mut seen = Vec::new();
            for _ in 0..count {
                let (handler, bytes) = recv(peer, &mut port);
                assert!(bytes == pattern(handler.into(), bytes.len()), "{handler}");
                seen.push((handler, bytes.len()));
            }
            let most = u64::from_le_bytes(peer.get("most").try_into().unwrap()) as usize;
            let sent = (0..ROUNDS).flat_map(|round| {
                let lengths = LENGTHS.iter().copied().filter(|length| *length <= most);
                lengths
                    .enumerate()
                    .map(move |(at, length)| ((at as u64 * ROUNDS + round) as u16 * 73, length))
            });
            let mut sent: Vec<_> = sent.collect();
            if !peer.is_in_order {
                sent.sort_unstable();
            }
            assert_eq!(peer.in_order(seen), sent);
            peer.put("had them", &[]);
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            let most = peer.with(|manager| manager.session().packet_bytes_max(target.link()));
            let most = most.expect("a link");
            let lengths: Vec<_> = LENGTHS
                .into_iter()
                .filter(|length| *length <= most)
                .collect();
            let count = lengths.len() as u64 * ROUNDS;
            peer.put("count", &count.to_le_bytes());
            peer.put("most", &(most as u64).to_le_bytes());
            for round in 0..ROUNDS {
                for (at, &length) in lengths.iter().enumerate() {
                    let handler = (at as u64 * ROUNDS + round) as u16 * 73;
                    send(peer, &target, handler, &pattern(handler.into(), length));
                }
            }
            peer.get("had them");
        },
    ]);
}

pub(crate) fn a_message_of_a_packet_arrives_and_a_longer_one_is_refused_here(world: &World) {
    world.run(&[
        &|peer| {
            let mut port = open(peer, NewPort::new());
            peer.put_ticket("ticket", &port.ticket());
            let most = u64::from_le_bytes(peer.get("most").try_into().unwrap()) as usize;
            assert!(recv(peer, &mut port).1 == pattern(3, most));
            peer.put("had it", &[]);
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            let target = target(peer, &ticket);
            let most = peer.with(|manager| manager.session().packet_bytes_max(target.link()));
            let most = most.expect("a link");
            let too_long = |length: usize| {
                peer.with(|manager| {
                    let mut session = manager.session();
                    session
                        .send_message(&target, 0, &vec![0; length], Wait::Poll)
                        .unwrap_err()
                })
            };
            for length in [most + 1, 65_537] {
                let error = too_long(length);
                let is_named = matches!(error, SendError::Refused(_) | SendError::OutsideTicket(_));
                assert!(is_named, "{error}");
            }
            send(peer, &target, 0, &pattern(3, most));
            peer.put("most", &(most as u64).to_le_bytes());
            peer.get("had it");
        },
    ]);
}

pub(crate) fn messages_for_another_port_wait_in_their_order(world: &World) {
    const MESSAGES: u64 = 60;
    world.run(&[
        &|peer| {
            let mut ports = [open(peer, NewPort::new()), open(peer, NewPort::new())];
            peer.put_ticket("first", &ports[0].ticket());
            peer.put_ticket("second", &ports[1].ticket());
            for port in ports.iter_mut().rev() {
                let numbers = (0..MESSAGES).map(|_| {
                    let (_, bytes) = recv(peer, port);
                    let number = u64::from_le_bytes(*bytes.first_chunk().unwrap());
                    assert!(bytes[8..] == pattern(number, bytes.len() - 8));
                    number
                });
                let numbers = peer.in_order(numbers.collect());
                assert_eq!(numbers, (0..MESSAGES).collect::<Vec<_>>());
            }
            let info = peer.with(|manager| manager.session().port_info(&ports[0]).unwrap());
            // All of the first port's came before the last of the second's.
            assert!(info.queued > 0 && info.waiting == 0, "{info:?}");
            assert_eq!(info.refusals.total(), 0);
            peer.put("had them", &[]);
        },
        &|peer| {
            let targets = ["first", "second"].map(|key| target(peer, &peer.get_ticket(key)));
            for number in 0..MESSAGES {
                for target in &targets {
                    let mut data = number.to_le_bytes().to_vec();
                    data.extend(pattern(number, number as usize * 3));
                    send(peer, target, 0, &data);
                }
            }
            peer.get("had them");
        },
    ]);
}

pub(crate) fn a_full_queue_refuses_by_name_and_only_there(world: &World) {
    world.run(&[
        &|peer| {
            let mut port = open(peer, NewPort::new().queue_bytes(16 * 64).peer_bytes(8 * 64));
            let mut other = open(peer, NewPort::new());
            peer.put_ticket("full", &port.ticket());
            peer.put_ticket("other", &other.ticket());
            // All packets before the fence's answer are taken while the other port is asked.
            let (_, last) = recv(peer, &mut other);
            assert_eq!(last, b"last");
            peer.put("had it", &[]);
            for _ in 0..8 {
                assert_eq!(recv(peer, &mut port).1, b"kept");
            }
            let none = peer.with(|manager| {
                let mut session = manager.session();
                session.next_message(&mut port).unwrap().is_none()
            });
            assert!(none);
            let info = peer.with(|manager| manager.session().port_info(&port).unwrap());
            assert_eq!(info.refusals.count(Refusal::QueueFull), 5);
        },
        &|peer| {
            let full = target(peer, &peer.get_ticket("full"));
            let other = target(peer, &peer.get_ticket("other"));
            for _ in 0..13 {
                send(peer, &full, 0, b"kept");
            }
            assert_eq!(fence_all(peer), (5, Refusal::QueueFull));
            send(peer, &other, 0, b"last");
            peer.get("had it");
        },
    ]);
}

pub(crate) fn what_a_port_does_not_take_is_refused_by_name(world: &World) {
    world.run(&[
        &|peer| {
            let key = Key::from_bits(0x5EED);
            let mut port = open(peer, NewPort::new().key(key).group(5).handlers(2));
            assert_eq!((port.key(), port.group()), (key, 5));
            peer.put_ticket("ticket", &port.ticket());
            peer.get("strangers");
            // Parked: refused, and who knocked is known.
            peer.with(|manager| manager.session().park_port(&port, true).unwrap());
            peer.put("parked", &[]);
            peer.get("knocked");
            let knocked = peer.with(|manager| {
                let mut session = manager.session();
                let knock = session.next_knock().expect("a knock").from;
                assert!(session.next_knock().is_none());
                session.identity_of(knock).is_some()
            });
            assert!(knocked || peer.shares_interface());
            peer.with(|manager| {
                let mut session = manager.session();
                session.park_port(&port, false).unwrap();
                session.rekey_port(&mut port, None).unwrap();
            });
            assert_ne!(port.key(), key);
            peer.put("rekeyed", &[]);
            peer.get("old key");
            peer.put_ticket("new ticket", &port.ticket());
            assert_eq!(recv(peer, &mut port), (1, b"welcome".to_vec()));
            peer.with(|manager| manager.session().close_port(port).unwrap());
            peer.put("closed", &[]);
            peer.get("done");
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            let sends_in_vain = |ticket: &Ticket, handler, length: usize, expected: Refusal| {
                let target = target(peer, ticket);
                // Also where an abbreviation of the port is known, and in several cells.
                for _ in 0..2 {
                    send(peer, &target, handler, &vec![0; length]);
                }
                assert_eq!(fence_all(peer), (2, expected), "{length} bytes");
            };
            for length in [0, 56, 300, 1200] {
                let wrong_key = Ticket {
                    key: Key::from_bits(0x5EED + 1),
                    ..ticket
                };
                sends_in_vain(&wrong_key, 0, length, Refusal::BadKey);
                sends_in_vain(
                    &Ticket { base: 6, ..ticket },
                    0,
                    length,
                    Refusal::WrongGroup,
                );
                sends_in_vain(&ticket, 2, length, Refusal::NoSuchHandler);
                let slot = hamlyn::engine::packet::SlotName::from_bits(
                    ticket.slot.to_bits() ^ 0x0001_0000,
                );
                sends_in_vain(&Ticket { slot, ..ticket }, 0, length, Refusal::PortClosed);
            }
            peer.put("strangers", &[]);
            peer.get("parked");
            sends_in_vain(&ticket, 0, 8, Refusal::NotResident);
            peer.put("knocked", &[]);
            peer.get("rekeyed");
            sends_in_vain(&ticket, 0, 8, Refusal::BadKey);
            peer.put("old key", &[]);
            let new = peer.get_ticket("new ticket");
            send(peer, &target(peer, &new), 1, b"welcome");
            peer.get("closed");
            sends_in_vain(&new, 1, 8, Refusal::PortClosed);
            peer.put("done", &[]);
        },
    ]);
}

pub(crate) fn handlers_answer_while_their_message_lies_in_place(world: &World) {
    const CALLS: u64 = 100;
    world.run(&[
        &|peer| {
            let mut port = open(peer, NewPort::new().handlers(2));
            peer.put_ticket("question", &port.ticket());
            let back = target(peer, &peer.get_ticket("answer"));
            let mut answered = 0;
            while answered < CALLS {
                let count = peer.receive("questions", |manager, _| {
                    let mut session = manager.session();
                    let handled =
                        session.await_messages(&mut port, 7, Wait::Poll, |message, outbox| {
                            let mut data = vec![0; message.len()];
                            message.copy_to(&mut data);
                            data.reverse();
                            let handler = message.handler();
                            let sent = outbox.send_message(&back, handler, &data);
                            assert!(sent.unwrap().is_some());
                        })?;
                    Ok((handled > 0).then_some(handled as u64))
                });
                assert!(count <= 7);
                answered += count;
            }
            peer.flush();
            peer.get("had all");
        },
        &|peer| {
            let mut port = open(peer, NewPort::new().handlers(2));
            peer.put_ticket("answer", &port.ticket());
            let to = target(peer, &peer.get_ticket("question"));
            for call in 0..CALLS {
                let mut question = pattern(call, (call * 11 % 1200) as usize);
                send(peer, &to, (call % 2) as u16, &question);
                let (handler, answer) = recv(peer, &mut port);
                question.reverse();
                assert!(answer == question && u64::from(handler) == call % 2);
            }
            peer.put("had all", &[]);
        },
    ]);
}

pub(crate) fn a_mailbox_takes_messages_of_many_senders(world: &World) {
    const MESSAGES: u64 = 100;
    let sender = |peer: &mut Peer| {
        let address = peer.get_address("letters");
        let other = peer.with(|manager| {
            manager
                .connect_datagram(&address, GROW)
                .map(drop)
                .unwrap_err()
        });
        assert!(
            matches!(other, ConnectError::OtherProtocol { .. }),
            "{other}"
        );
        let outbox = peer.until("a mailbox", |manager, _| {
            manager.connect_mailbox(&address, GROW).ok()
        });
        assert!(outbox.message_bytes_max().is_some_and(|most| most > 1000));
        let mine = pattern(peer.name.len() as u64, 3);
        for number in 0..MESSAGES {
            let mut letter = number.to_le_bytes().to_vec();
            letter.extend(&mine);
            letter.extend(pattern(number, (number * 13 % 990) as usize));
            peer.send(|_, _| outbox.send(&letter, Wait::Poll)).unwrap();
        }
        peer.flush();
        peer.get("had all");
    };
    world.run(&[
        &|peer| {
            let mut inbox: mailbox::Receiver<Host> = peer.with(|manager| {
                let options = MailboxOptions::default();
                manager.bind_mailbox("letters", options).unwrap()
            });
            peer.put_address("letters");
            let mut numbers = Vec::new();
            for _ in 0..2 * MESSAGES {
                let letter = peer.receive("a letter", |_, wait| {
                    let Some(mail) = inbox.recv(wait)? else {
                        return Ok(None);
                    };
                    let bytes = mail.to_vec();
                    Ok(Some((bytes, mail.from())))
                });
                let (bytes, from) = letter;
                let number = u64::from_le_bytes(*bytes.first_chunk().unwrap());
                assert!(bytes[11..] == pattern(number, (number * 13 % 990) as usize));
                numbers.push((from, number));
            }
            if peer.is_in_order && !peer.shares_interface() {
                // Those of each sender are in its order.
                let mut next = std::collections::BTreeMap::new();
                for (from, number) in &numbers {
                    let due = next.entry(*from).or_insert(0);
                    assert_eq!(number, due);
                    *due += 1;
                }
            }
            let mut all: Vec<_> = numbers.into_iter().map(|(_, number)| number).collect();
            all.sort_unstable();
            let due: Vec<_> = (0..MESSAGES).flat_map(|number| [number; 2]).collect();
            assert_eq!(all, due);
            assert_eq!(inbox.info().unwrap().refusals.total(), 0);
            peer.put("had all", &[]);
        },
        &sender,
        &sender,
    ]);
}

pub(crate) fn a_mailbox_that_is_dropped_or_revoked_refuses(world: &World) {
    world.run(&[
        &|peer| {
            let new = |manager: &hamlyn::Manager<Host>| {
                mailbox::Receiver::new(manager, MailboxOptions::default()).unwrap()
            };
            let mut inbox = peer.with(new);
            peer.put_ticket("ticket", &inbox.ticket());
            let first = peer.receive("mail", |_, wait| {
                Ok(inbox.recv(wait)?.map(|mail| mail.to_vec()))
            });
            assert_eq!(first, b"first");
            peer.with(|_| inbox.revoke().unwrap());
            peer.put_ticket("second ticket", &inbox.ticket());
            peer.get("revoked");
            peer.with(|_| drop(inbox));
            peer.put("dropped", &[]);
            peer.get("done");
        },
        &|peer| {
            let grow = |ticket: &Ticket| {
                peer.with(|manager| mailbox::Sender::grow(manager, ticket, GROW).unwrap())
            };
            let outbox: mailbox::Sender<Host> = grow(&peer.get_ticket("ticket"));
            let send = |outbox: &mailbox::Sender<Host>, data: &[u8]| {
                peer.send(|_, _| outbox.send(data, Wait::Poll)).unwrap();
            };
            send(&outbox, b"first");
            let second = grow(&peer.get_ticket("second ticket"));
            send(&outbox, b"too late");
            assert_eq!(fence(peer, |wait| outbox.fence(wait)), (1, Refusal::BadKey));
            peer.put("revoked", &[]);
            peer.get("dropped");
            send(&second, b"too late");
            assert_eq!(
                fence(peer, |wait| second.fence(wait)),
                (1, Refusal::PortClosed)
            );
            peer.put("done", &[]);
        },
    ]);
}
