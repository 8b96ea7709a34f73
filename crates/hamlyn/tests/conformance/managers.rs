//! The manager (`Hamlyn 3.3`), and what is given back in the end.

use std::sync::{Arc, Mutex};

use hamlyn::engine::metadata::Permission;
use hamlyn::engine::slot::Mode;
use hamlyn::manager::{Arrival, ReceiverClass};
use hamlyn::{
    ManagerOptions, Message, NewSlot, OpenError, Wait, datagram, group, stream, tagged_write,
};

use crate::World;
use crate::low_level::{send, target};
use crate::peer::{self};

const GROW: Wait = Wait::millis(10_000);

/// A receiver of the application's own making.
struct Recorder(Arc<Mutex<Vec<Arrival>>>);

impl ReceiverClass for Recorder {
    fn process_arrival(&mut self, arrival: Arrival) {
        self.0.lock().unwrap().push(arrival);
    }
}

pub(crate) fn an_own_receiver_class_records_arrivals(world: &World) {
    world.run(&[
        &|peer| {
            let arrivals = Arc::default();
            let (slot, class) = peer.with(|manager| {
                let class = manager
                    .register(Box::new(Recorder(Arc::clone(&arrivals))), 3)
                    .unwrap();
                let queue = manager.queue_id();
                let area = manager.session().allocate(64).unwrap();
                let mut new = NewSlot::new(&area).mode(Mode::ParanoidOneShot).entries(3);
                new.queue = Some(queue);
                let slot = manager.session().open_slot(new).unwrap();
                for index in 0..3 {
                    let key = manager.session().new_key().unwrap();
                    let entry = slot.metadata().unwrap().entry(index).unwrap();
                    entry.set_receive_class(class.to_bits());
                    entry.permit(Permission {
                        key,
                        low: 0,
                        high: 64,
                    });
                    entry.arm();
                }
                (slot, class)
            });
            for index in 0..3 {
                let ticket = slot.ticket(index, 0, 64).unwrap();
                peer.put_ticket(&format!("ticket {index}"), &ticket);
            }
            peer.until("three arrivals", |manager, wait| {
                manager
                    .wait(if wait == Wait::Poll {
                        wait
                    } else {
                        Wait::millis(10)
                    })
                    .unwrap();
                while manager.poll_nowait().unwrap() {}
                (arrivals.lock().unwrap().len() == 3).then_some(())
            });
            let came = arrivals.lock().unwrap().clone();
            assert!(came.iter().all(|arrival| arrival.slot == slot.name()));
            let indices = came.iter().map(|arrival| arrival.metadata_index).collect();
            assert_eq!(peer.in_order(indices), peer.in_order(vec![2, 0, 1]));
            peer.with(|manager| {
                manager.session().close_slot(slot).unwrap();
                manager.unregister(class);
                // Twice is once.
                manager.unregister(class);
            });
        },
        &|peer| {
            for index in [2, 0, 1] {
                let ticket = peer.get_ticket(&format!("ticket {index}"));
                send(peer, &target(peer, &ticket), &Message::new(b"x"));
            }
        },
    ]);
}

/// A slot in normal mode that names the manager's queue is open to fast mode, whose word is
/// the sender's: it must not reach a receiver it was not meant for.
pub(crate) fn a_class_named_by_a_fast_word_is_not_believed(world: &World) {
    world.run(&[
        &|peer| {
            let arrivals: Arc<Mutex<Vec<Arrival>>> = Arc::default();
            let (slot, mut inbox, class) = peer.with(|manager| {
                let class = manager
                    .register(Box::new(Recorder(Arc::clone(&arrivals))), 1)
                    .unwrap();
                let inbox = datagram::Receiver::new(manager, 64).unwrap();
                let queue = manager.queue_id();
                let area = manager.session().allocate(64).unwrap();
                let mut new = NewSlot::new(&area);
                new.queue = Some(queue);
                (manager.session().open_slot(new).unwrap(), inbox, class)
            });
            inbox.ready();
            peer.put("class", &class.to_bits().to_le_bytes());
            peer.put_ticket("fast", &slot.fast_ticket(0, 64).unwrap());
            peer.get("linked");
            peer.linked();
            let before = peer.activity();
            peer.put_ticket("inbox", &inbox.ticket());
            let data = peer.receive("a datagram", |_, wait| {
                Ok(inbox.recv(wait)?.map(|datagram| datagram.to_vec()))
            });
            assert_eq!(data, b"honest");
            peer.taken(before, 8 + 1);
            peer.with(|manager| while manager.poll_nowait().unwrap() {});
            assert!(arrivals.lock().unwrap().is_empty());
        },
        &|peer| {
            let class = u64::from_le_bytes(peer.get("class").try_into().unwrap());
            let fast = target(peer, &peer.get_ticket("fast"));
            peer.put("linked", &[]);
            let inbox = peer.get_ticket("inbox");
            // The neighbours of the class are those of the other end points.
            let neighbours = (0..5).map(|number| class.wrapping_sub(2).wrapping_add(number));
            for word in neighbours.chain([0, u64::MAX, 1 << 32]) {
                send(peer, &fast, &Message::new(b"x").word(word));
            }
            let outbox = peer
                .with(|manager| datagram::Sender::grow(manager, &inbox, GROW))
                .unwrap();
            peer.send(|_, _| outbox.send(b"honest", GROW)).unwrap();
        },
    ]);
}

pub(crate) fn the_room_of_the_queue_is_kept(world: &World) {
    world.alone(&|_| {
        let manager = &mut world.open(ManagerOptions {
            queue_entries: 16,
            ..Default::default()
        });
        let baseline = manager.session().slots_open();
        let one = datagram::Receiver::new(manager, 64).unwrap();
        let options = |pieces| stream::StreamOptions {
            pieces,
            piece_bytes: 64,
            limit_bytes: 1 << 20,
            ahead: false,
        };
        let error = stream::Receiver::new(manager, options(12)).unwrap_err();
        assert_eq!(
            error,
            OpenError::QueueRoom {
                needed: 15,
                capacity: 16,
                left: 14
            }
        );
        assert!(error.to_string().contains("longer queue"), "{error}");
        let stream = stream::Receiver::new(manager, options(11)).unwrap();
        let error = datagram::Receiver::new(manager, 64).unwrap_err();
        assert_eq!(
            error,
            OpenError::QueueRoom {
                needed: 1,
                capacity: 16,
                left: 0
            }
        );
        let error = group::Receiver::new(manager, 64, Default::default()).unwrap_err();
        assert!(matches!(error, OpenError::QueueRoom { .. }));
        // Tagged remote writes have a queue of their own.
        let tagged = tagged_write::Receiver::new(manager, 64, 16).unwrap();
        // What is closed makes room.
        drop(stream);
        let another = stream::Receiver::new(manager, options(11)).unwrap();
        drop(another);
        drop(one);
        drop(tagged);
        assert_eq!(manager.session().slots_open(), baseline);
    });
}

/// A call of one end point finds a message for another; the thread that waits for that message must
/// not sleep.
pub(crate) fn waiting_overlooks_nothing_found_for_another(world: &World) {
    world.run(&[
        &|peer| {
            let (mut one, mut two, mut tagged) = peer.with(|manager| {
                (
                    datagram::Receiver::new(manager, 64).unwrap(),
                    datagram::Receiver::new(manager, 64).unwrap(),
                    tagged_write::Receiver::new(manager, 64, 16).unwrap(),
                )
            });
            one.ready();
            two.ready();
            peer.put_ticket("one", &one.ticket());
            peer.put_ticket("tagged", &tagged.ticket());
            peer.get("ready");
            // All that has happened so far is over and done with.
            peer.until("quiet", |manager, _| {
                let before = manager.session().activity();
                manager.wait(Wait::millis(1)).unwrap();
                (manager.session().activity() == before).then_some(())
            });
            peer.put("go", &[]);
            peer.get_without_polling("sent");
            peer.with(|manager| {
                // The datagram and the tag are for others than the one who is asked.
                assert!(two.recv(Wait::Poll).unwrap().is_none());
                let begun = peer::now();
                manager.wait(Wait::millis(5_000)).unwrap();
                assert!(
                    peer::now() - begun < std::time::Duration::from_secs(4),
                    "it slept"
                );
            });
            // Between hosts the other of the two may still be on its way.
            let wait = |wait| if peer.is_in_order { Wait::Poll } else { wait };
            let data = peer.receive("the datagram", |_, rest| {
                let found = one.recv(wait(rest))?;
                Ok(found.map(|datagram| datagram.to_vec()).or_else(|| {
                    assert!(!peer.is_in_order, "it was overlooked");
                    None
                }))
            });
            assert_eq!(data, b"x");
            let tag = peer.receive("the tag", |_, rest| {
                let found = tagged.get_tag(wait(rest))?;
                assert!(found.is_some() || !peer.is_in_order, "it was overlooked");
                Ok(found)
            });
            assert_eq!(tag, 7);
        },
        &|peer| {
            let (one, tagged) = (peer.get_ticket("one"), peer.get_ticket("tagged"));
            let outbox = peer
                .with(|manager| datagram::Sender::grow(manager, &one, GROW))
                .unwrap();
            let tags = peer
                .with(|manager| tagged_write::Sender::grow(manager, &tagged, GROW))
                .unwrap();
            peer.put("ready", &[]);
            peer.get_without_polling("go");
            peer.send(|_, _| outbox.send(b"x", GROW)).unwrap();
            peer.send(|_, _| tags.send(0, b"x", 7, GROW)).unwrap();
            peer.flush();
            peer.put("sent", &[]);
        },
    ]);
}

pub(crate) fn everything_opened_is_given_back(world: &World) {
    world.run(&[
        &|peer| {
            let baseline = peer.with(|manager| manager.session().slots_open());
            for round in 0..20 {
                let (mut inbox, mut stream, tagged, mut group) = peer.with(|manager| {
                    (
                        datagram::Receiver::new(manager, 64).unwrap(),
                        stream::Receiver::new(
                            manager,
                            stream::StreamOptions {
                                pieces: 4,
                                piece_bytes: 64,
                                limit_bytes: 1 << 16,
                                ahead: false,
                            },
                        )
                        .unwrap(),
                        tagged_write::Receiver::new(manager, 64, 16).unwrap(),
                        group::Receiver::new(manager, 64, Default::default()).unwrap(),
                    )
                });
                inbox.ready();
                let seed = peer.with(|_| stream.make_seed());
                peer.put(&format!("seed {round}"), &seed.to_bytes());
                // It grows, since nothing is released; then everything is.
                let mut records = Vec::new();
                while records.len() < 30 {
                    records.push(peer.receive("a record", |_, wait| {
                        Ok(stream.recv(wait)?.map(hamlyn::stream::Record::keep))
                    }));
                }
                assert!(peer.with(|_| stream.memory_bytes()) > 4 * 64);
                peer.until("the end", |_, wait| match stream.recv(wait) {
                    Err(hamlyn::ReceiveError::Closed) => Some(()),
                    Ok(None) => None,
                    other => panic!("{other:?}"),
                });
                peer.get(&format!("closed {round}"));
                drop(records);
                peer.with(|_| {
                    group.begin().unwrap();
                    drop(group);
                    drop(stream);
                    drop(inbox);
                    drop(tagged);
                });
                // If another thread was in a call, the next call gives back.
                peer.until("all is given back", |manager, _| {
                    manager.wait(Wait::Poll).unwrap();
                    (manager.session().slots_open() == baseline).then_some(())
                });
                peer.put(&format!("next {round}"), &[]);
            }
        },
        &|peer| {
            for round in 0..20 {
                let seed = peer.get(&format!("seed {round}"));
                let seed = stream::StreamSeed::from_bytes(&seed).unwrap();
                let mut sender = peer
                    .with(|manager| stream::Sender::grow(manager, &seed, GROW))
                    .unwrap();
                for record in 0..30_u8 {
                    peer.send(|_, wait| sender.send(&[record; 50], wait))
                        .unwrap();
                }
                peer.send(|_, wait| sender.flush(wait)).unwrap();
                peer.with(|_| sender.close(GROW)).unwrap();
                if !peer.shares_interface() {
                    assert_eq!(peer.with(|manager| manager.session().slots_open()), 0);
                }
                peer.put(&format!("closed {round}"), &[]);
                peer.get(&format!("next {round}"));
            }
        },
    ]);
}
