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
use crate::party::{self};

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
        &|party| {
            let arrivals = Arc::default();
            let (slot, class) = party.with(|manager| {
                let class = manager
                    .register(Box::new(Recorder(Arc::clone(&arrivals))), 3)
                    .unwrap();
                let queue = manager.queue_id();
                let area = manager.interface().allocate(64).unwrap();
                let mut new = NewSlot::new(&area).mode(Mode::ParanoidOneShot).entries(3);
                new.queue = Some(queue);
                let slot = manager.interface().open_slot(new).unwrap();
                for index in 0..3 {
                    let key = manager.interface().new_key().unwrap();
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
                party.tell_ticket(&format!("ticket {index}"), &ticket);
            }
            party.until("three arrivals", |manager, wait| {
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
            assert_eq!(party.in_order(indices), party.in_order(vec![2, 0, 1]));
            party.with(|manager| {
                manager.interface().close_slot(slot).unwrap();
                manager.unregister(class);
                // Twice is once.
                manager.unregister(class);
            });
        },
        &|party| {
            for index in [2, 0, 1] {
                let ticket = party.hear_ticket(&format!("ticket {index}"));
                send(party, &target(party, &ticket), &Message::new(b"x"));
            }
        },
    ]);
}

/// A slot in normal mode that names the manager's queue is open to fast mode, whose word is
/// the sender's: it must not reach a receiver it was not meant for.
pub(crate) fn a_class_named_by_a_fast_word_is_not_believed(world: &World) {
    world.run(&[
        &|party| {
            let arrivals: Arc<Mutex<Vec<Arrival>>> = Arc::default();
            let (slot, mut inbox, class) = party.with(|manager| {
                let class = manager
                    .register(Box::new(Recorder(Arc::clone(&arrivals))), 1)
                    .unwrap();
                let inbox = datagram::Receiver::new(manager, 64).unwrap();
                let queue = manager.queue_id();
                let area = manager.interface().allocate(64).unwrap();
                let mut new = NewSlot::new(&area);
                new.queue = Some(queue);
                (manager.interface().open_slot(new).unwrap(), inbox, class)
            });
            inbox.ready();
            party.tell("class", &class.to_bits().to_le_bytes());
            party.tell_ticket("fast", &slot.fast_ticket(0, 64).unwrap());
            party.hear("linked");
            party.linked();
            let before = party.activity();
            party.tell_ticket("inbox", &inbox.ticket());
            let data = party.receive("a datagram", |_, wait| {
                Ok(inbox.recv(wait)?.map(|datagram| datagram.to_vec()))
            });
            assert_eq!(data, b"honest");
            party.taken(before, 8 + 1);
            party.with(|manager| while manager.poll_nowait().unwrap() {});
            assert!(arrivals.lock().unwrap().is_empty());
        },
        &|party| {
            let class = u64::from_le_bytes(party.hear("class").try_into().unwrap());
            let fast = target(party, &party.hear_ticket("fast"));
            party.tell("linked", &[]);
            let inbox = party.hear_ticket("inbox");
            // The neighbours of the class are those of the other end points.
            let neighbours = (0..5).map(|number| class.wrapping_sub(2).wrapping_add(number));
            for word in neighbours.chain([0, u64::MAX, 1 << 32]) {
                send(party, &fast, &Message::new(b"x").word(word));
            }
            let outbox = party
                .with(|manager| datagram::Sender::grow(manager, &inbox, GROW))
                .unwrap();
            party.send(|_, _| outbox.send(b"honest", GROW)).unwrap();
        },
    ]);
}

pub(crate) fn the_room_of_the_queue_is_kept(world: &World) {
    world.alone(&|_| {
        let manager = &mut world.open(ManagerOptions {
            queue_entries: 16,
            ..Default::default()
        });
        let baseline = manager.interface().slots_open();
        let one = datagram::Receiver::new(manager, 64).unwrap();
        let options = |pieces| stream::StreamOptions {
            pieces,
            piece_bytes: 64,
            limit_bytes: 1 << 20,
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
        assert_eq!(manager.interface().slots_open(), baseline);
    });
}

/// An end point that is asked finds what is for another; whoever waits then must not sleep.
pub(crate) fn waiting_overlooks_nothing_found_for_another(world: &World) {
    world.run(&[
        &|party| {
            let (mut one, mut two, mut tagged) = party.with(|manager| {
                (
                    datagram::Receiver::new(manager, 64).unwrap(),
                    datagram::Receiver::new(manager, 64).unwrap(),
                    tagged_write::Receiver::new(manager, 64, 16).unwrap(),
                )
            });
            one.ready();
            two.ready();
            party.tell_ticket("one", &one.ticket());
            party.tell_ticket("tagged", &tagged.ticket());
            party.hear("ready");
            // All that has happened so far is over and done with.
            party.until("quiet", |manager, _| {
                let before = manager.interface().activity();
                manager.wait(Wait::millis(1)).unwrap();
                (manager.interface().activity() == before).then_some(())
            });
            party.tell("go", &[]);
            party.hear_only("sent");
            party.with(|manager| {
                // The datagram and the tag are for others than the one who is asked.
                assert!(two.recv(Wait::Poll).unwrap().is_none());
                let begun = party::now();
                manager.wait(Wait::millis(5_000)).unwrap();
                assert!(
                    party::now() - begun < std::time::Duration::from_secs(4),
                    "it slept"
                );
            });
            // Between hosts the other of the two may still be on its way.
            let wait = |wait| if party.is_in_order { Wait::Poll } else { wait };
            let data = party.receive("the datagram", |_, rest| {
                let found = one.recv(wait(rest))?;
                Ok(found.map(|datagram| datagram.to_vec()).or_else(|| {
                    assert!(!party.is_in_order, "it was overlooked");
                    None
                }))
            });
            assert_eq!(data, b"x");
            let tag = party.receive("the tag", |_, rest| {
                let found = tagged.get_tag(wait(rest))?;
                assert!(found.is_some() || !party.is_in_order, "it was overlooked");
                Ok(found)
            });
            assert_eq!(tag, 7);
        },
        &|party| {
            let (one, tagged) = (party.hear_ticket("one"), party.hear_ticket("tagged"));
            let outbox = party
                .with(|manager| datagram::Sender::grow(manager, &one, GROW))
                .unwrap();
            let tags = party
                .with(|manager| tagged_write::Sender::grow(manager, &tagged, GROW))
                .unwrap();
            party.tell("ready", &[]);
            party.hear_only("go");
            party.send(|_, _| outbox.send(b"x", GROW)).unwrap();
            party.send(|_, _| tags.send(0, b"x", 7, GROW)).unwrap();
            party.flush();
            party.tell("sent", &[]);
        },
    ]);
}

pub(crate) fn everything_opened_is_given_back(world: &World) {
    world.run(&[
        &|party| {
            let baseline = party.with(|manager| manager.interface().slots_open());
            for round in 0..20 {
                let (mut inbox, mut stream, tagged, mut group) = party.with(|manager| {
                    (
                        datagram::Receiver::new(manager, 64).unwrap(),
                        stream::Receiver::new(
                            manager,
                            stream::StreamOptions {
                                pieces: 4,
                                piece_bytes: 64,
                                limit_bytes: 1 << 16,
                            },
                        )
                        .unwrap(),
                        tagged_write::Receiver::new(manager, 64, 16).unwrap(),
                        group::Receiver::new(manager, 64, Default::default()).unwrap(),
                    )
                });
                inbox.ready();
                let seed = party.with(|_| stream.make_seed());
                party.tell(&format!("seed {round}"), &seed.to_bytes());
                // It grows, since nothing is released; then everything is.
                let mut records = Vec::new();
                while records.len() < 30 {
                    records.push(party.receive("a record", |_, wait| {
                        Ok(stream.recv(wait)?.map(hamlyn::stream::Record::keep))
                    }));
                }
                assert!(party.with(|_| stream.memory_bytes()) > 4 * 64);
                party.until("the end", |_, wait| match stream.recv(wait) {
                    Err(hamlyn::ReceiveError::Closed) => Some(()),
                    Ok(None) => None,
                    other => panic!("{other:?}"),
                });
                party.hear(&format!("closed {round}"));
                drop(records);
                party.with(|_| {
                    group.begin().unwrap();
                    drop(group);
                    drop(stream);
                    drop(inbox);
                    drop(tagged);
                });
                // If another thread was in a call, the next call gives back.
                party.until("all is given back", |manager, _| {
                    manager.wait(Wait::Poll).unwrap();
                    (manager.interface().slots_open() == baseline).then_some(())
                });
                party.tell(&format!("next {round}"), &[]);
            }
        },
        &|party| {
            for round in 0..20 {
                let seed = party.hear(&format!("seed {round}"));
                let seed = stream::StreamSeed::from_bytes(&seed).unwrap();
                let mut sender = party
                    .with(|manager| stream::Sender::grow(manager, &seed, GROW))
                    .unwrap();
                for record in 0..30_u8 {
                    party
                        .send(|_, wait| sender.send(&[record; 50], wait))
                        .unwrap();
                }
                party.send(|_, wait| sender.flush(wait)).unwrap();
                party.with(|_| sender.close(GROW)).unwrap();
                if !party.shares_interface() {
                    assert_eq!(party.with(|manager| manager.interface().slots_open()), 0);
                }
                party.tell(&format!("closed {round}"), &[]);
                party.hear(&format!("next {round}"));
            }
        },
    ]);
}
