//! Lanes: buffers of one size for one peer, with credit.

use hamlyn::lane::{
    Lane, LaneMessage, LaneOptions, LaneSeed, LaneSender, SharedLane, SharedLaneOptions,
};
use hamlyn::{FenceError, Message, NewPort, ReceiveError, SendError, Target, Ticket, Wait};

use crate::World;
use crate::peer::{Peer, pattern};

const GROW: Wait = Wait::millis(10_000);

fn open(peer: &Peer, buffers: u16, buffer_bytes: u32) -> Lane {
    let options = LaneOptions {
        buffers,
        buffer_bytes,
    };
    let lane = peer.with(|manager| Lane::open(&mut manager.session(), options).unwrap());
    peer.put("seed", &lane.seed().to_bytes());
    lane
}

fn connect(peer: &Peer) -> LaneSender {
    let seed = LaneSeed::from_bytes(&peer.get("seed")).unwrap();
    peer.with(|manager| LaneSender::connect(&mut manager.session(), &seed, GROW).unwrap())
}

fn send(peer: &Peer, sender: &mut LaneSender, tag: u32, bytes: &[u8]) -> u16 {
    let sent = peer.send(|manager, wait| sender.send(&mut manager.session(), tag, bytes, wait));
    sent.unwrap()
}

fn recv(peer: &Peer, lane: &mut Lane) -> LaneMessage {
    peer.receive("a message", |manager, wait| {
        lane.recv(&mut manager.session(), wait)
    })
}

fn end_of(peer: &Peer, lane: &mut Lane) -> ReceiveError {
    peer.until("the end", |manager, wait| {
        match lane.recv(&mut manager.session(), wait) {
            Ok(None) => None,
            Ok(Some(message)) => panic!("{message:?}"),
            Err(error) => Some(error),
        }
    })
}

/// More messages than buffers, of all lengths; some buffers are held on to, and given back in
/// another order.
pub(crate) fn a_lane_takes_messages_of_all_lengths(world: &World) {
    const MESSAGES: u32 = 60;
    const BYTES: u32 = 9_000;
    const HELD: usize = 3;
    let length = |tag: u32| match tag % 4 {
        0 => tag as usize,
        1 => BYTES as usize - tag as usize,
        2 => tag as usize * 150,
        _ => BYTES as usize,
    };
    world.run(&[
        &|peer| {
            let mut lane = open(peer, 4, BYTES);
            let mut held: Vec<LaneMessage> = Vec::new();
            let mut tags = Vec::new();
            for _ in 0..MESSAGES {
                let message = recv(peer, &mut lane);
                let tag = message.tag();
                assert_eq!(message.len(), length(tag));
                assert!(lane.bytes(&message) == pattern(tag.into(), length(tag)));
                assert_eq!(lane.bytes(&message).as_ptr().addr() % 64, 0);
                tags.push(tag);
                held.push(message);
                if held.len() == HELD {
                    let message = held.remove(tag as usize % HELD);
                    peer.with(|manager| lane.give_back(&mut manager.session(), message));
                }
            }
            assert_eq!(peer.in_order(tags), (0..MESSAGES).collect::<Vec<_>>());
            for message in held {
                assert!(lane.bytes(&message) == pattern(message.tag().into(), message.len()));
                peer.with(|manager| lane.give_back(&mut manager.session(), message));
            }
            assert_eq!(end_of(peer, &mut lane), ReceiveError::Closed);
        },
        &|peer| {
            let mut sender = connect(peer);
            assert_eq!((sender.buffers(), sender.buffer_bytes()), (4, BYTES));
            for tag in 0..MESSAGES {
                send(peer, &mut sender, tag, &pattern(tag.into(), length(tag)));
            }
            peer.until("all credit", |manager, _| {
                manager.session().poll();
                (sender.credits() == 4).then_some(())
            });
            let error = peer.with(|manager| {
                let bytes = vec![0; BYTES as usize + 1];
                sender
                    .try_send(&mut manager.session(), 0, &bytes)
                    .unwrap_err()
            });
            assert!(matches!(error, SendError::RecordTooLarge { .. }), "{error}");
            peer.with(|manager| sender.close(&mut manager.session()));
        },
    ]);
}

/// Messages to buffers of the sender's choice; what is kept comes back when the receiver ends.
pub(crate) fn what_a_lane_has_no_credit_for_comes_back(world: &World) {
    world.run(&[
        &|peer| {
            let mut lane = open(peer, 3, 500);
            let message = recv(peer, &mut lane);
            assert_eq!((message.index(), message.tag()), (2, 20));
            peer.with(|manager| lane.give_back(&mut manager.session(), message));
            peer.get("full");
            let link = lane.link().expect("a sender");
            assert!(peer.with(|manager| manager.session().identity_of(link).is_some()));
            peer.with(|manager| lane.close(&mut manager.session()));
            peer.put("gone", &[]);
        },
        &|peer| {
            let mut sender = connect(peer);
            let sent = peer.send(|manager, _| {
                let mut session = manager.session();
                let sent = sender.try_send_to(&mut session, 2, 20, b"first")?;
                let peer = sender.target().ticket().destination;
                sent.ok_or(SendError::WouldBlock { peer })
            });
            assert_eq!(sent, Ok(2));
            // A network processor may have taken the credit in.
            assert!(peer.receives_unasked() || !sender.is_free(2));
            assert!(sender.is_free(0));
            peer.until("credit", |manager, _| {
                manager.session().poll();
                sender.is_free(2).then_some(())
            });
            for tag in 0..3 {
                let mut data = pattern(tag.into(), 400);
                peer.until("room", |manager, _| {
                    let kept = std::mem::take(&mut data);
                    match sender.try_send_kept(&mut manager.session(), tag, kept) {
                        Ok(_) => Some(()),
                        Err(not_sent) => {
                            data = not_sent.data;
                            None
                        }
                    }
                });
            }
            assert_eq!(sender.credits(), 0);
            let refused = peer.with(|manager| {
                let mut session = manager.session();
                sender.try_send_kept(&mut session, 3, b"one more".to_vec())
            });
            let refused = refused.unwrap_err();
            assert!(matches!(refused.error, SendError::WouldBlock { .. }));
            assert_eq!(refused.data, b"one more");
            peer.flush();
            peer.put("full", &[]);
            peer.get("gone");
            let error = peer.until("the end", |manager, wait| {
                match sender.send(&mut manager.session(), 3, b"one more", wait) {
                    Err(SendError::WouldBlock { .. }) => None,
                    Ok(index) => panic!("buffer {index} was free"),
                    Err(error) => Some(error),
                }
            });
            assert_eq!(error, SendError::ClosedByReceiver);
            let kept = sender.take_kept();
            let tags: Vec<_> = kept.iter().map(|kept| kept.tag).collect();
            assert_eq!(tags, [0, 1, 2]);
            assert!(
                kept.iter()
                    .all(|kept| kept.data == pattern(kept.tag.into(), 400))
            );
        },
    ]);
}

/// A buffer takes one message until it is given back, whoever sends it; and who breaks the
/// protocol ends its lane, and no other.
pub(crate) fn a_hostile_sender_ends_its_own_lane_only(world: &World) {
    let raw = |peer: &Peer, target: &Target, index: u16, offset: u64, metadata: &[u8]| {
        let ticket = Ticket {
            metadata_index: index,
            ..*target.ticket()
        };
        let target = target.with_ticket(ticket).unwrap();
        let message = Message::new(b"hostile!").at(offset).metadata(metadata);
        let sent = peer.send(|manager, wait| {
            let terminus = manager.terminus();
            let mut session = manager.session();
            session.send_msg(terminus, &target, &message, wait)
        });
        sent.unwrap();
    };
    let word = |tag: u64, length: u64| (tag << 32 | length).to_le_bytes();
    world.run(&[
        &|peer| {
            let mut good = open(peer, 2, 64);
            // A length that is not its own; no word at all; the buffer of another; a greeting
            // without a ticket.
            for case in 0..4 {
                let options = LaneOptions {
                    buffers: 2,
                    buffer_bytes: 64,
                };
                let mut lane =
                    peer.with(|manager| Lane::open(&mut manager.session(), options).unwrap());
                peer.put(&format!("bad {case}"), &lane.seed().to_bytes());
                if case < 3 {
                    // Messages that came before are in order.
                    let message = recv(peer, &mut lane);
                    assert_eq!(lane.bytes(&message), b"hostile!");
                }
                for _ in 0..2 {
                    let error = end_of(peer, &mut lane);
                    assert!(matches!(error, ReceiveError::Malformed { .. }), "{error}");
                }
                peer.put(&format!("broken {case}"), &[]);
            }
            let message = recv(peer, &mut good);
            assert_eq!((message.tag(), good.bytes(&message)), (5, &b"good"[..]));
            peer.put("had it", &[]);
        },
        &|peer| {
            let mut good = connect(peer);
            for case in 0..4 {
                let seed = peer.get(&format!("bad {case}"));
                let ticket = Ticket::from_bytes(&seed[..hamlyn::ticket::TICKET_BYTES]).unwrap();
                let target = peer.with(|manager| manager.session().target(&ticket, GROW).unwrap());
                if case < 3 {
                    raw(peer, &target, 0, 0, &word(9, 8));
                    // In worlds where messages come in any order, one after the other.
                    peer.until("a fence", |manager, wait| manager.fence(wait).ok());
                    // The second is refused by the interface, and hurts nobody.
                    raw(peer, &target, 0, 0, &word(9, 8));
                    peer.until("a refusal", |manager, wait| {
                        let fenced = manager.fence(wait);
                        matches!(fenced, Err(hamlyn::FenceError::Refused { .. })).then_some(())
                    });
                }
                match case {
                    0 => raw(peer, &target, 1, 64, &word(9, 9)),
                    1 => raw(peer, &target, 1, 64, &[]),
                    2 => raw(peer, &target, 1, 72, &word(9, 8)),
                    _ => {
                        let ticket = Ticket {
                            metadata_index: 2,
                            ..ticket
                        };
                        let target = target.with_ticket(ticket).unwrap();
                        let message = Message::new(&[]).metadata(&[1; 52]);
                        let sent = peer.send(|manager, wait| {
                            let terminus = manager.terminus();
                            manager
                                .session()
                                .send_msg(terminus, &target, &message, wait)
                        });
                        sent.unwrap();
                    }
                }
                peer.get(&format!("broken {case}"));
            }
            send(peer, &mut good, 5, b"good");
            peer.get("had it");
        },
    ]);
}

/// Messages of several peers come to one pool of buffers, which the program keeps for as long as it
/// likes; beyond a peer's share of the queue they are refused by name, and their sender learns it.
pub(crate) fn a_shared_lane_takes_messages_of_several_up_to_their_shares(world: &World) {
    const SHARE: u32 = 8;
    const SENT: u32 = 13;
    let target = |peer: &Peer, key: &str| {
        let ticket = peer.get_ticket(key);
        peer.with(|manager| manager.session().target(&ticket, GROW).unwrap())
    };
    let send = |peer: &Peer, target: &Target, tag: u16, bytes: &[u8]| {
        let sent = peer.send(|manager, _| {
            let mut session = manager.session();
            session.send_message(target, tag, bytes, Wait::Poll)
        });
        sent.unwrap();
    };
    let fence = |peer: &Peer| {
        peer.until("a fence", |manager, wait| match manager.fence(wait) {
            Err(FenceError::TimedOut { .. }) => None,
            other => Some(other),
        })
    };
    let sends = |peer: &mut Peer, tag: u16, go: &str, done: &str| {
        let lane = target(peer, "lane");
        let other = target(peer, "other");
        let too_long = peer.with(|manager| {
            let mut session = manager.session();
            let sent = session.send_message(&lane, tag, &[0; 41], Wait::Poll);
            sent.unwrap_err()
        });
        assert!(
            matches!(too_long, SendError::OutsideTicket(_)),
            "{too_long}"
        );
        peer.get(go);
        for number in 0..SENT {
            send(peer, &lane, tag, &pattern(number.into(), 40));
        }
        let refused = fence(peer);
        let Err(FenceError::Refused { count, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(count, u64::from(SENT - SHARE));
        send(peer, &other, 0, b"last");
        peer.get(done);
    };
    world.run(&[
        &|peer| {
            let options = SharedLaneOptions {
                buffers: 3,
                buffer_bytes: 40,
                port: NewPort::new()
                    .handlers(4096)
                    .queue_bytes(4 * SHARE * 64)
                    .peer_bytes(SHARE * 64),
            };
            let (mut lane, mut other) = peer.with(|manager| {
                let mut session = manager.session();
                let lane = SharedLane::open(&mut session, options).unwrap();
                (lane, session.open_port(NewPort::new()).unwrap())
            });
            peer.put_ticket("lane", &lane.ticket());
            peer.put_ticket("other", &other.ticket());
            let next = |lane: &mut SharedLane| {
                peer.with(|manager| lane.next(&mut manager.session()).unwrap())
            };
            let mut came = [0; 2];
            let mut take_all = |lane: &mut SharedLane| {
                let mut held = Vec::new();
                while let Some(message) = next(lane) {
                    assert_eq!(message.len(), 40);
                    came[usize::from(message.tag())] += 1;
                    held.push(message);
                    if held.len() == 3 {
                        assert!(next(lane).is_none() && lane.taken() == 3);
                        lane.give_back(held.swap_remove(1));
                    }
                }
                held.into_iter().for_each(|message| lane.give_back(message));
            };
            for go in ["first", "second"] {
                peer.put(go, &[]);
                // All that came before is taken while another port is asked.
                peer.receive("the last", |manager, wait| {
                    let mut session = manager.session();
                    let message = session.recv_message(&mut other, wait)?;
                    Ok(message.map(|message| message.dispose()))
                });
                // Peers that share an interface have one share.
                if peer.shares_interface() {
                    take_all(&mut lane);
                }
            }
            take_all(&mut lane);
            assert_eq!(came, [SHARE; 2]);
            let info = peer.with(|manager| manager.session().port_info(lane.port()).unwrap());
            assert_eq!(info.refusals.total(), 2 * u64::from(SENT - SHARE));
            peer.put("done", &[]);
        },
        &|peer| sends(peer, 0, "first", "done"),
        &|peer| sends(peer, 1, "second", "done"),
    ]);
}
