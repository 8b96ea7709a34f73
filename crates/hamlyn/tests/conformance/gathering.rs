//! Send-buffer areas, gather lists and completions (`Hamlyn 2.3`, `6.2`).

use hamlyn::engine::terminus::{
    Completion, GatherPiece, PostError, SendTag, TerminusError, TerminusOptions,
};
use hamlyn::{Message, SendError, Wait};

use crate::World;
use crate::low_level::{RxSlot, send, target};
use crate::peer::{Peer, pattern};

/// An area of that content, bound to the manager's terminus.
fn bound(peer: &Peer, content: &[u8]) -> SendTag {
    peer.with(|manager| {
        let terminus = manager.terminus();
        let area = manager
            .session()
            .allocate(content.len() as u64 + 10)
            .unwrap();
        area.write_at(10, content).unwrap();
        manager
            .session()
            .bind_area(terminus, &area, 10..10 + content.len() as u64)
            .unwrap()
    })
}

fn piece(tag: SendTag, offset: u64, length_bytes: u64) -> GatherPiece {
    GatherPiece {
        tag,
        offset,
        length_bytes,
    }
}

pub(crate) fn a_message_is_gathered_from_several_areas(world: &World) {
    let contents = || [pattern(1, 50_000), pattern(2, 7), pattern(3, 20_000)];
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 200_000, |slot| slot.entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 200_000).unwrap());
            rx_slot.next(peer);
            let [one, two, three] = contents();
            let whole = [
                &one[100..],
                &[],
                &two[..],
                &three[1..19_000],
                &two[3..5],
                &one[..1],
            ]
            .concat();
            assert!(rx_slot.bytes(77, whole.len()) == whole);
            assert_eq!(rx_slot.metadata(0), b"gathered");
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            let [one, two, three] = contents().map(|content| bound(peer, &content));
            let list = [
                piece(one, 100, 49_900),
                piece(three, 20_000, 0),
                piece(two, 0, 7),
                piece(three, 1, 18_999),
                piece(two, 3, 2),
                piece(one, 0, 1),
            ];
            let message = Message::new(&[]).at(77).metadata(b"gathered");
            let handle = peer
                .send(|manager, _| {
                    let terminus = manager.terminus();
                    manager
                        .session()
                        .send_gather(terminus, &target, &message, &list)
                })
                .unwrap();
            peer.until("completion", |manager, wait| {
                let completion = manager.session().drain(handle, wait).unwrap();
                (completion == Completion::Sent).then_some(())
            });
            for tag in [one, two, three] {
                peer.with(|manager| {
                    let terminus = manager.terminus();
                    manager.session().unbind_area(terminus, tag).unwrap();
                });
            }
        },
    ]);
}

pub(crate) fn a_message_is_gathered_from_hundreds_of_areas(world: &World) {
    const AREAS: u64 = 200;
    const PIECES: u64 = 1_000;
    // Long ones among short ones.
    let length = |number: u64| {
        if number.is_multiple_of(50) {
            900
        } else {
            number % 7
        }
    };
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 100_000, |slot| slot.entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 100_000).unwrap());
            rx_slot.next(peer);
            let whole: Vec<u8> = (0..PIECES)
                .flat_map(|number| {
                    let bytes = pattern(number % AREAS, 1_000);
                    bytes[number as usize % 100..][..length(number) as usize].to_vec()
                })
                .collect();
            assert!(rx_slot.bytes(0, whole.len()) == whole);
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            let (terminus, tags) = peer.with(|manager| {
                let mut session = manager.session();
                let options = TerminusOptions {
                    send_areas: AREAS as usize,
                    ..TerminusOptions::default()
                };
                let terminus = session.open_terminus(options).unwrap();
                let mut bind = |seed| {
                    let area = session.allocate(1_000).unwrap();
                    area.write_at(0, &pattern(seed, 1_000)).unwrap();
                    session.bind_area(terminus, &area, 0..1_000)
                };
                let tags: Vec<_> = (0..AREAS).map(|seed| bind(seed).unwrap()).collect();
                let areas = AREAS as usize;
                assert_eq!(bind(0), Err(TerminusError::TooManyAreas { areas }));
                (terminus, tags)
            });
            let list: Vec<_> = (0..PIECES)
                .map(|number| {
                    let tag = tags[(number % AREAS) as usize];
                    piece(tag, number % 100, length(number))
                })
                .collect();
            let message = Message::new(&[]);
            let sent = peer.send(|manager, _| {
                let mut session = manager.session();
                session.send_gather(terminus, &target, &message, &list)
            });
            let handle = sent.unwrap();
            peer.until("completion", |manager, wait| {
                let completion = manager.session().drain(handle, wait).unwrap();
                (completion == Completion::Sent).then_some(())
            });
        },
    ]);
}

/// Packets move in calls that find no room, as in all others that send.
pub(crate) fn a_program_that_only_gathers_again_gets_on(world: &World) {
    const MESSAGES: u64 = 3_000;
    world.run(&[
        &|peer| {
            let queue = peer.with(|manager| manager.session().open_queue(MESSAGES as usize));
            let mut queue = queue.unwrap();
            let rx_slot = RxSlot::new(peer, 64, |slot| slot.queue(&queue));
            peer.put_ticket("ticket", &rx_slot.slot.fast_ticket(0, 64).unwrap());
            let mut words: Vec<_> = (0..MESSAGES)
                .map(|_| {
                    let next = peer.receive("a message", |manager, wait| {
                        manager.session().rcv_block(&mut queue, wait)
                    });
                    next.word
                })
                .collect();
            words.sort_unstable();
            assert!(words.into_iter().eq(0..MESSAGES));
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            let tag = bound(peer, &[7; 64]);
            for number in 0..MESSAGES {
                let message = Message::new(&[]).word(number);
                let sent = peer.until("room", |manager, _| {
                    let mut session = manager.session();
                    let terminus = session.terminus();
                    let list = [piece(tag, 0, 64)];
                    match session.send_gather(terminus, &target, &message, &list) {
                        Err(SendError::WouldBlock { .. }) => None,
                        sent => Some(sent),
                    }
                });
                sent.unwrap();
            }
            peer.flush();
        },
    ]);
}

pub(crate) fn metadata_are_gathered_too(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |slot| slot.entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 64).unwrap());
            rx_slot.next(peer);
            assert_eq!(rx_slot.metadata(0), pattern(4, 60)[..33]);
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            let tag = bound(peer, &pattern(4, 60));
            let mut metadata = [0; 60];
            let length = peer.with(|manager| {
                let terminus = manager.terminus();
                let too_long =
                    manager
                        .session()
                        .gather_metadata(terminus, &piece(tag, 0, 61), &mut metadata);
                assert!(matches!(
                    too_long,
                    Err(PostError::MetadataTooLong { length_bytes: 61 })
                ));
                let outside =
                    manager
                        .session()
                        .gather_metadata(terminus, &piece(tag, 60, 1), &mut metadata);
                assert!(matches!(outside, Err(PostError::OutsideArea { .. })));
                manager
                    .session()
                    .gather_metadata(terminus, &piece(tag, 0, 33), &mut metadata)
                    .unwrap()
            });
            send(
                peer,
                &target,
                &Message::new(b"x").metadata(&metadata[..length]),
            );
        },
    ]);
}

/// A buffer of one area is used again and again; what arrives is never a mixture.
pub(crate) fn a_completion_says_when_a_buffer_is_free(world: &World) {
    const BYTES: u64 = 100_000;
    const MESSAGES: u8 = 50;
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, BYTES, |slot| slot.entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, BYTES).unwrap());
            for number in 1..=MESSAGES {
                rx_slot.next(peer);
                assert!(
                    rx_slot
                        .bytes(0, BYTES as usize)
                        .iter()
                        .all(|&byte| byte == number)
                );
                peer.put(&format!("had {number}"), &[]);
            }
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            let (area, tag) = peer.with(|manager| {
                let terminus = manager.terminus();
                let area = manager.session().allocate(BYTES).unwrap();
                let tag = manager
                    .session()
                    .bind_area(terminus, &area, 0..BYTES)
                    .unwrap();
                (area, tag)
            });
            let mut sequence = 0;
            for number in 1..=MESSAGES {
                area.fill(0, BYTES, number).unwrap();
                let handle = peer
                    .send(|manager, _| {
                        let terminus = manager.terminus();
                        let list = [piece(tag, 0, BYTES)];
                        manager
                            .session()
                            .send_gather(terminus, &target, &Message::new(&[]), &list)
                    })
                    .unwrap();
                assert_eq!(
                    handle.sequence,
                    sequence + 1,
                    "sequence numbers count messages"
                );
                sequence = handle.sequence;
                peer.until("completion", |manager, wait| {
                    let completion = manager.session().drain(handle, wait).unwrap();
                    let again = manager.session().completion(handle).unwrap();
                    // A network processor may send it between the two calls; nothing takes that
                    // back.
                    let is_sent = completion == Completion::Sent;
                    assert!(again == completion || !is_sent && again == Completion::Sent);
                    is_sent.then_some(())
                });
                // The buffer is ours: the receiver may not have it yet, but the link does.
                area.fill(0, BYTES, 0xEE).unwrap();
                peer.get(&format!("had {number}"));
            }
        },
    ]);
}

pub(crate) fn bad_gather_lists_are_refused(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |slot| slot.entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 64).unwrap());
            rx_slot.next(peer);
            assert_eq!(rx_slot.bytes(0, 2), b"ok");
            rx_slot.nothing(peer);
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            let tag = bound(peer, &[1; 32]);
            let post = |list: &[GatherPiece]| {
                peer.with(|manager| {
                    let terminus = manager.terminus();
                    let message = Message::new(&[]);
                    manager
                        .session()
                        .send_gather(terminus, &target, &message, list)
                })
            };
            let error = post(&[piece(SendTag(7), 0, 1)]).unwrap_err();
            assert_eq!(
                error,
                SendError::Refused(PostError::NoSuchArea { tag: SendTag(7) })
            );
            let error = post(&[piece(SendTag(200), 0, 0)]).unwrap_err();
            assert!(error.to_string().contains("bind one first"), "{error}");
            for outside in [
                piece(tag, 32, 1),
                piece(tag, 33, 0),
                piece(tag, u64::MAX, 2),
            ] {
                let error = post(&[outside]).unwrap_err();
                assert!(
                    matches!(
                        error,
                        SendError::Refused(PostError::OutsideArea { .. })
                            | SendError::OutsideTicket(_)
                    ),
                    "{error:?}"
                );
            }
            let error = post(&[piece(tag, 0, 0); 1_025]).unwrap_err();
            assert_eq!(
                error,
                SendError::Refused(PostError::TooManyPieces { pieces: 1_025 })
            );
            // Longer than the ticket.
            let error =
                post(&[piece(tag, 0, 32), piece(tag, 0, 32), piece(tag, 0, 1)]).unwrap_err();
            assert!(matches!(error, SendError::OutsideTicket(_)), "{error:?}");
            let overflow = [piece(tag, 0, u64::MAX), piece(tag, 0, 2)];
            assert_eq!(
                post(&overflow).unwrap_err(),
                SendError::Refused(PostError::TooLong)
            );
            peer.with(|manager| {
                let terminus = manager.terminus();
                manager.session().unbind_area(terminus, tag).unwrap();
                let again = manager.session().unbind_area(terminus, tag);
                assert_eq!(again, Err(TerminusError::NoSuchArea { tag }));
                let closed = manager
                    .session()
                    .open_terminus(TerminusOptions::default())
                    .unwrap();
                manager.session().close_terminus(closed).unwrap();
                let message = Message::new(b"no");
                let error = manager
                    .session()
                    .send_msg(closed, &target, &message, Wait::Poll)
                    .unwrap_err();
                assert_eq!(error, SendError::Refused(PostError::NoSuchTerminus));
            });
            send(peer, &target, &Message::new(b"ok"));
        },
    ]);
}
