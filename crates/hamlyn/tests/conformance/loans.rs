//! Loaned messages: read in place where memory can be shared, copied where it cannot.

use hamlyn::loans::{Kept, Publisher, PublisherOptions, SlowReaders, Subscriber};
use hamlyn::{ConnectError, ReceiveError, Wait};

use crate::peer::{Peer, pattern};
use crate::{Host, World};

const CONNECT: Wait = Wait::millis(10_000);
const CHUNKS: u32 = 8;
const MESSAGE_BYTES: u32 = 100_000;

fn options(slow_readers: SlowReaders) -> PublisherOptions {
    PublisherOptions {
        message_bytes: MESSAGE_BYTES,
        chunks: CHUNKS,
        depth: 3,
        slow_readers,
        ..PublisherOptions::default()
    }
}

/// A publisher with so many readers, or more.
fn publisher(peer: &Peer, slow_readers: SlowReaders, readers: usize) -> Publisher<Host> {
    let mut publisher = peer.with(|manager| {
        manager
            .bind_publisher("frames", options(slow_readers))
            .unwrap()
    });
    peer.put_address("frames");
    peer.until("readers", |_, wait| {
        let there = publisher.await_readers(readers, wait).unwrap();
        (there >= readers).then_some(())
    });
    publisher
}

fn subscriber(peer: &Peer) -> Subscriber<Host> {
    let to = peer.get_address("frames");
    peer.until("a lane", |manager, _| {
        let wait = match peer.shares_interface() {
            true => Wait::millis(1),
            false => CONNECT,
        };
        match manager.connect_subscriber(&to, wait) {
            Ok(subscriber) => Some(subscriber),
            Err(ConnectError::Reach(_)) => None,
            Err(error) => panic!("{error}"),
        }
    })
}

fn publish(peer: &Peer, publisher: &mut Publisher<Host>, bytes: &[u8]) -> u64 {
    let published = peer.send(|_, wait| {
        let mut loan = publisher.loan(bytes.len(), Wait::Poll).unwrap();
        loan.copy_from_slice(bytes);
        loan.publish(wait)
    });
    published.unwrap().number
}

/// Repeats until all chunks are free again: everything that was read was given back.
fn all_come_back(peer: &Peer, publisher: &mut Publisher<Host>) {
    peer.until("all chunks", |_, _| {
        publisher.poll();
        (publisher.chunks_free() == CHUNKS as usize).then_some(())
    });
}

fn length(round: usize) -> usize {
    [0, 1, 7, 8, 64, 4096, 16_384, 65_536, 99_999, 100_000][round % 10]
}

pub(crate) fn loaned_messages_of_all_sizes_reach_every_reader(world: &World) {
    const ROUNDS: usize = 60;
    let reads: &(dyn Fn(&mut Peer) + Sync) = &|peer| {
        let mut subscriber = subscriber(peer);
        assert_eq!(subscriber.message_bytes_max(), MESSAGE_BYTES);
        for round in 0..ROUNDS {
            let (number, bytes) = peer.receive("a message", |_, wait| {
                let Some(sample) = subscriber.recv(wait)? else {
                    return Ok(None);
                };
                assert_eq!(sample.view().is_some(), sample.copied().is_none());
                let mut byte = [0];
                assert!(sample.read_at(sample.len(), &mut byte).is_err());
                Ok(Some((sample.number(), sample.to_vec())))
            });
            assert_eq!(number, round as u64);
            assert!(bytes == pattern(number, length(round)), "round {round}");
        }
        assert_eq!(subscriber.lost(), 0);
        assert!(subscriber.publisher().is_some());
        peer.put(
            &format!("{} is through", subscriber.publisher().is_some()),
            &[],
        );
        let end = peer.until("the end", |_, wait| match subscriber.recv(wait) {
            Ok(None) => None,
            Ok(Some(sample)) => panic!("{sample:?}"),
            Err(error) => Some(error),
        });
        assert_eq!(end, ReceiveError::Closed);
    };
    world.run(&[
        &|peer| {
            let mut publisher = publisher(peer, SlowReaders::Block, 3);
            for round in 0..ROUNDS {
                let bytes = pattern(round as u64, length(round));
                assert_eq!(publish(peer, &mut publisher, &bytes), round as u64);
            }
            all_come_back(peer, &mut publisher);
            peer.until("room", |_, wait| {
                publisher.flush(wait).unwrap().then_some(())
            });
            assert_eq!((publisher.lost(), publisher.misbehaved()), (0, 0));
        },
        reads,
        reads,
        reads,
    ]);
}

pub(crate) fn a_slow_reader_loses_and_both_ends_know_how_much(world: &World) {
    const MESSAGES: u64 = 10;
    world.run(&[
        &|peer| {
            let mut publisher = publisher(peer, SlowReaders::Lose, 1);
            for number in 0..MESSAGES {
                publish(peer, &mut publisher, &pattern(number, 500));
            }
            assert_eq!(publisher.lost(), MESSAGES - 3);
            peer.put("published", &[]);
            all_come_back(peer, &mut publisher);
            peer.until("room", |_, wait| {
                publisher.await_room(wait).unwrap().then_some(())
            });
            assert_eq!(
                publish(peer, &mut publisher, &pattern(MESSAGES, 500)),
                MESSAGES
            );
            peer.get("read");
        },
        &|peer| {
            let mut subscriber = subscriber(peer);
            peer.get("published");
            for expected in [0, 1, 2, MESSAGES] {
                peer.receive("a message", |_, wait| {
                    let Some(sample) = subscriber.recv(wait)? else {
                        return Ok(None);
                    };
                    assert_eq!(sample.number(), expected);
                    assert!(sample.to_vec() == pattern(expected, 500));
                    Ok(Some(()))
                });
            }
            assert_eq!(subscriber.lost(), MESSAGES - 3);
            peer.put("read", &[]);
        },
    ]);
}

pub(crate) fn a_slow_reader_is_brought_up_to_date(world: &World) {
    const MESSAGES: u64 = 10;
    world.run(&[
        &|peer| {
            let mut publisher = publisher(peer, SlowReaders::Latest, 1);
            for number in 0..MESSAGES {
                publish(peer, &mut publisher, &pattern(number, 500));
            }
            peer.put("published", &[]);
            // What is kept for the reader goes out as it has room.
            peer.until("the last to be read", |_, _| {
                publisher.poll();
                peer.key_values.get("read")
            });
            all_come_back(peer, &mut publisher);
        },
        &|peer| {
            let mut subscriber = subscriber(peer);
            peer.get("published");
            let mut seen = Vec::new();
            while seen.last() != Some(&(MESSAGES - 1)) {
                seen.push(peer.receive("a message", |_, wait| {
                    let Some(sample) = subscriber.recv(wait)? else {
                        return Ok(None);
                    };
                    assert!(sample.to_vec() == pattern(sample.number(), 500));
                    Ok(Some(sample.number()))
                }));
            }
            assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
            // Of those that had been sent only the newest, then at most what was sent before it had
            // all come.
            assert!(seen.len() <= 4, "{seen:?}");
            peer.put("read", &[]);
        },
    ]);
}

/// Publishes, and makes no further call but for readers that say that they need one.
fn publishes_and_is_silent(peer: &mut Peer) {
    let mut publisher = publisher(peer, SlowReaders::Latest, 0);
    for number in 0..=NEWEST {
        publish(peer, &mut publisher, &pattern(number, 500));
    }
    peer.put("published", &[]);
    peer.until("the last to be read", |_, _| {
        if peer.key_values.get("needs a call").is_some() {
            publisher.poll();
        }
        peer.key_values.get("read")
    });
    all_come_back(peer, &mut publisher);
}

/// Where memory is shared the newest comes first, and without a call of the publisher.
fn reads_the_newest(peer: &mut Peer, mut subscriber: Subscriber<Host>) {
    let in_place = subscriber.reads_in_place();
    let mut last = None;
    while last != Some(NEWEST) {
        if !in_place {
            peer.put("needs a call", &[]);
        }
        let number = peer.receive("a message", |_, wait| {
            let Some(sample) = subscriber.recv(wait)? else {
                return Ok(None);
            };
            assert!(sample.to_vec() == pattern(sample.number(), 500));
            Ok(Some(sample.number()))
        });
        assert!(last < Some(number));
        assert!(!in_place || number == NEWEST, "{number}");
        last = Some(number);
    }
    peer.put("read", &[]);
}

const NEWEST: u64 = 50;

pub(crate) fn a_reader_that_fell_behind_sees_the_newest(world: &World) {
    world.run(&[&publishes_and_is_silent, &|peer| {
        let subscriber = subscriber(peer);
        peer.get("published");
        reads_the_newest(peer, subscriber);
    }]);
}

pub(crate) fn a_reader_that_comes_late_sees_the_newest(world: &World) {
    world.run(&[&publishes_and_is_silent, &|peer| {
        peer.get("published");
        let subscriber = subscriber(peer);
        reads_the_newest(peer, subscriber);
    }]);
}

pub(crate) fn samples_are_kept_and_given_back_in_any_order(world: &World) {
    const ROUNDS: u64 = 20;
    world.run(&[
        &|peer| {
            let mut publisher = publisher(peer, SlowReaders::Block, 1);
            for number in 0..3 * ROUNDS {
                publish(peer, &mut publisher, &pattern(number, 2000));
            }
            all_come_back(peer, &mut publisher);
            peer.put("all are back", &[]);
        },
        &|peer| {
            let mut subscriber = subscriber(peer);
            for round in 0..ROUNDS {
                let mut kept: Vec<Kept> = (0..3)
                    .map(|_| {
                        peer.receive("a message", |_, wait| {
                            Ok(subscriber.recv(wait)?.map(hamlyn::loans::Sample::keep))
                        })
                    })
                    .collect();
                for at in [round % 3, round % 2, 0] {
                    for sample in &kept {
                        let mut bytes = vec![0; sample.len()];
                        sample.read_at(0, &mut bytes).unwrap();
                        assert!(bytes == pattern(sample.number(), 2000));
                    }
                    kept.remove(at as usize);
                }
            }
            peer.with(|_| subscriber.reclaim());
            peer.until("the publisher", |_, _| {
                subscriber.reclaim();
                peer.key_values.get("all are back")
            });
        },
    ]);
}

pub(crate) fn readers_come_and_go_and_nothing_is_left(world: &World) {
    world.run(&[
        &|peer| {
            let mut publisher = publisher(peer, SlowReaders::Block, 2);
            peer.put("both are there", &[]);
            let mut published = 0;
            peer.until("the readers to leave", |_, _| {
                publisher.poll();
                if publisher.readers() > 0
                    && let Ok(mut loan) = publisher.loan(100, Wait::Poll)
                {
                    loan.copy_from_slice(&pattern(published, 100));
                    published += u64::from(loan.publish(Wait::Poll).is_ok());
                }
                (publisher.readers() == 0).then_some(())
            });
            all_come_back(peer, &mut publisher);
            assert_eq!(publisher.misbehaved(), 0);
            let idle = publisher.loan(1, Wait::Poll).unwrap();
            assert_eq!(idle.publish(Wait::Poll).unwrap().readers, 0);
            peer.put("gone", &[]);
        },
        &|peer| {
            // Reads some, and goes with samples in hand.
            let mut subscriber = subscriber(peer);
            let mut kept = Vec::new();
            for _ in 0..3 {
                kept.push(peer.receive("a message", |_, wait| {
                    Ok(subscriber.recv(wait)?.map(hamlyn::loans::Sample::keep))
                }));
            }
            peer.with(|_| drop(subscriber));
            peer.get("gone");
            for sample in kept {
                assert_eq!(sample.len(), 100);
            }
        },
        &|peer| {
            // Never reads.
            let subscriber = subscriber(peer);
            peer.get("both are there");
            peer.with(|_| drop(subscriber));
            peer.get("gone");
        },
    ]);
}

pub(crate) fn typed_values_are_loaned(world: &World) {
    const ROUNDS: u64 = 20;
    world.run(&[
        &|peer| {
            let mut publisher = peer.with(|manager| {
                let options = PublisherOptions::default();
                manager
                    .bind_publisher_of::<u64>("numbers", options)
                    .unwrap()
            });
            peer.put_address("numbers");
            peer.until("a reader", |_, wait| {
                let there = publisher.bytes_mut().await_readers(1, wait).unwrap();
                (there == 1).then_some(())
            });
            for number in 0..ROUNDS {
                let sent = peer.send(|_, wait| {
                    let mut value = publisher.loan(Wait::Poll).unwrap();
                    *value = number * number;
                    value.publish(wait)
                });
                sent.unwrap();
            }
            peer.get("read");
        },
        &|peer| {
            let to = peer.get_address("numbers");
            let other =
                peer.with(|manager| manager.connect_subscriber_of::<u32>(&to, CONNECT).err());
            assert!(
                matches!(other, Some(ConnectError::OtherType { .. })),
                "{other:?}"
            );
            let other = peer.with(|manager| manager.connect_stream(&to, CONNECT).err());
            assert!(
                matches!(other, Some(ConnectError::OtherProtocol { .. })),
                "{other:?}"
            );
            let mut subscriber = peer.until("a lane", |manager, _| {
                manager
                    .connect_subscriber_of::<u64>(&to, Wait::millis(100))
                    .ok()
            });
            for number in 0..ROUNDS {
                let value = peer.receive("a value", |_, wait| subscriber.value(wait));
                assert_eq!(value, number * number);
            }
            peer.put("read", &[]);
        },
    ]);
}
