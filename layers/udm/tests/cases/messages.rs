//! Messages arrive whole, once, and in order.

use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn::Wait;
use hamlyn_udm::{
    BYTES_MAX, Error, Event, Group, GroupOptions, HANDLERS_MAX, InjectError, Udm, UdmOptions,
    WORDS_MAX,
};

use crate::World;
use crate::world::{LONG, Node, adds, serve_until};

/// A sequence of words that differs for each number and length.
fn words(number: usize) -> Vec<u32> {
    (0..number)
        .map(|at| (number * 100 + at) as u32 ^ 0xa5a5_0000)
        .collect()
}

pub(crate) fn every_number_of_words_arrives(world: World) {
    world.run(2, UdmOptions::default(), Vec::new, |udm| {
        udm.on(7, |arrival| {
            assert_eq!(arrival.peek().handler(), 7);
            let mut call = arrival.extract();
            let (message, state): (_, &mut Vec<(u32, Vec<u32>)>) = call.parts();
            let words = (0..message.words()).map(|at| message.word(at)).collect();
            assert_eq!(message.word(message.words()), 0);
            state.push((message.source(), words));
            call
        })
        .unwrap();
        let me = udm.me();
        // To itself, too.
        for to in [1 - me, me] {
            for number in 0..=WORDS_MAX {
                udm.inject(to, 7, &words(number)).unwrap();
            }
        }
        serve_until(udm, |had| had.len() == 2 * (WORDS_MAX + 1));
        for from in [0, 1] {
            let had = udm.state().iter().filter(|(source, _)| *source == from);
            let had: Vec<_> = had.map(|(_, words)| words.clone()).collect();
            assert_eq!(had, (0..=WORDS_MAX).map(words).collect::<Vec<_>>());
        }
        let statistics = udm.statistics();
        assert_eq!((statistics.strangers, statistics.unhandled), (0, 0));
    });
}

pub(crate) fn bytes_of_every_length_arrive(world: World) {
    world.run(2, UdmOptions::default(), Vec::new, |udm| {
        udm.on(0, |arrival| {
            let mut call = arrival.extract();
            let bytes = call.message().as_bytes().to_vec();
            call.state().push(bytes);
            call
        })
        .unwrap();
        let to = 1 - udm.me();
        let most = udm.bytes_max(to).unwrap();
        assert!(most <= BYTES_MAX);
        let lengths = [
            0,
            1,
            3,
            4,
            31,
            55,
            56,
            57,
            64,
            127,
            128,
            1023,
            1024,
            1025,
            most - 1,
            most,
        ];
        let bytes = |length: usize| (0..length).map(|at| (at * 7 + length) as u8).collect();
        for length in lengths {
            let bytes: Vec<u8> = bytes(length);
            udm.inject_bytes(to, 0, &bytes).unwrap();
        }
        serve_until(udm, |had: &Vec<Vec<u8>>| had.len() == lengths.len());
        for (had, length) in udm.state().iter().zip(lengths) {
            assert_eq!(*had, bytes(length), "{length}");
        }
    });
}

pub(crate) fn messages_of_one_node_are_in_order(world: World) {
    const COUNT: u32 = 2000;
    world.run(
        3,
        UdmOptions::default(),
        || vec![0_u32; 3],
        |udm| {
            udm.on(1, |arrival| {
                let mut call = arrival.extract();
                let (source, number) = (call.source() as usize, call.word(0));
                assert_eq!(call.state()[source], number);
                call.state()[source] += 1;
                call
            })
            .unwrap();
            let me = udm.me();
            for number in 0..COUNT {
                for to in 0..3 {
                    if to != me {
                        // Lengths that travel in different ways.
                        let mut message = number.to_le_bytes().to_vec();
                        message.resize(4 + (number as usize * 37) % 300, 1);
                        udm.inject_bytes(to, 1, &message).unwrap();
                    }
                }
            }
            let me = me as usize;
            serve_until(udm, |had| {
                (0..3).all(|node| node == me || had[node] == COUNT)
            });
            assert_eq!(udm.statistics().wrong, 0);
        },
    );
}

/// Handlers inject at nodes that inject at them: nobody waits for ever.
pub(crate) fn all_nodes_flood_each_other(world: World) {
    const COUNT: u32 = 300;
    const NODES: u32 = 4;
    world.run(
        NODES as usize,
        UdmOptions::default(),
        || 0_u32,
        |udm| {
            udm.on(2, |arrival| {
                let mut call = arrival.extract();
                let (to, left) = (call.source(), call.word(0));
                if left > 0 {
                    call.inject(to, 2, &[left - 1]).unwrap();
                }
                *call.state() += 1;
                call
            })
            .unwrap();
            for _ in 0..COUNT {
                for to in 0..NODES {
                    udm.inject(to, 2, &[3]).unwrap();
                }
            }
            // Of each message of mine two answers come back, and two answers go, as others do the same.
            serve_until(udm, |had| *had == COUNT * NODES * 4);
        },
    );
}

pub(crate) fn end_points_of_a_group_are_apart(world: World) {
    world.run_group(2, |group| {
        let options = UdmOptions::default();
        let mut first = Udm::open(&group, "first", options, 0_u32, LONG).unwrap();
        let mut second = Udm::open(&group, "second", options, 0_u32, LONG).unwrap();
        for udm in [&mut first, &mut second] {
            udm.on(0, move |arrival| {
                let mut call = arrival.extract();
                let words = call.message().words() as u32;
                *call.state() += 100 + words;
                call
            })
            .unwrap();
        }
        let to = 1 - group.me();
        first.inject(to, 0, &[1]).unwrap();
        second.inject(to, 0, &[1, 2]).unwrap();
        serve_until(&mut second, |had| *had == 102);
        assert_eq!(*first.state(), 0);
        serve_until(&mut first, |had| *had == 101);
        first.barrier(LONG).unwrap();
        second.barrier(LONG).unwrap();
        assert!(first.flush(LONG).unwrap());
    });
}

pub(crate) fn barriers_separate_phases(world: World) {
    for nodes in [1, 2, 3, 5] {
        world.run(
            nodes,
            UdmOptions::default(),
            || vec![0_u32; nodes],
            |udm| {
                udm.on(0, |arrival| {
                    let mut call = arrival.extract();
                    let source = call.source() as usize;
                    call.state()[source] += 1;
                    call
                })
                .unwrap();
                for phase in 1..=10 {
                    for to in 0..udm.nodes() {
                        udm.inject(to, 0, &[]).unwrap();
                    }
                    udm.barrier(LONG).unwrap();
                    // Its messages were before those of the barrier, over some nodes perhaps by others.
                    serve_until(udm, |had| had.iter().all(|&had| had >= phase));
                    assert!(udm.state().iter().all(|&had| had <= phase + 1));
                }
                let rounds = u64::from((nodes as u32).next_power_of_two().trailing_zeros());
                assert_eq!(udm.statistics().sent, 10 * (nodes as u64 + rounds));
            },
        );
    }
}

pub(crate) fn what_cannot_be_sent_is_refused_by_name(world: World) {
    world.run(
        2,
        UdmOptions::default(),
        || (),
        |udm| {
            let to = 1 - udm.me();
            let sent = udm.inject(2, 0, &[]);
            assert_eq!(sent, Err(InjectError::NoSuchNode { to: 2, nodes: 2 }));
            let sent = udm.inject(to, HANDLERS_MAX, &[]);
            let handler = HANDLERS_MAX;
            assert_eq!(sent, Err(InjectError::BadHandler { handler }));
            assert!(udm.on(handler, |arrival| arrival.extract()).is_err());
            let sent = udm.inject(to, 0, &[0; WORDS_MAX + 1]);
            assert!(matches!(sent, Err(InjectError::TooLong { .. })));
            let most = udm.bytes_max(to).unwrap();
            let sent = udm.inject_bytes(to, 0, &vec![0; most + 1]);
            assert!(
                matches!(sent, Err(InjectError::TooLong { most_bytes, .. }) if most_bytes == most),
                "{sent:?}"
            );
            assert!(udm.bytes_max(2).is_err());
            assert_eq!(udm.statistics().sent, 0);
            assert!(udm.extract().unwrap().is_none());
            assert!(!udm.is_available().unwrap());
            assert_eq!(udm.serve(Wait::Poll).unwrap(), 0);
        },
    );
}

pub(crate) fn handlers_that_nobody_has_set_are_counted(world: World) {
    world.run(
        2,
        UdmOptions::default(),
        || 0_u32,
        |udm| {
            adds(udm, 9, 1);
            let to = 1 - udm.me();
            for handler in [8, 10, 9] {
                udm.inject(to, handler, &[1]).unwrap();
            }
            serve_until(udm, |had| *had == 1);
            assert_eq!(udm.statistics().unhandled, 2);
        },
    );
}

/// Data of every length lie in the area, whole, when the handler runs, and words come with them.
pub(crate) fn data_lie_in_the_area_before_their_handler_runs(world: World) {
    const AREA_BYTES: usize = 300_000;
    const LENGTHS: [usize; 9] = [
        0,
        1,
        7,
        4_096,
        32_767,
        32_768,
        32_769,
        100_000,
        AREA_BYTES - 5,
    ];
    let options = UdmOptions {
        area_bytes: AREA_BYTES,
        ..UdmOptions::default()
    };
    let filled = |length: usize, seed: usize| -> Vec<u8> {
        let byte = |at: usize| (at * 31 + seed * 7 + (at >> 8)) as u8;
        (0..length).map(byte).collect()
    };
    world.run(2, options, Vec::new, |udm: &mut Node<Vec<usize>>| {
        udm.on(3, move |arrival| {
            let place = arrival.peek().place().unwrap();
            let mut call = arrival.extract();
            let (number, words) = (call.word(1) as usize, call.message().words());
            assert_eq!((call.word(0), words), (77, 2));
            let at = if number % 2 == 0 { 0 } else { 5 };
            assert_eq!(place, at..at + LENGTHS[number]);
            let (data, had) = call.data();
            assert!(data == filled(LENGTHS[number], number), "{number}");
            had.push(number);
            call
        })
        .unwrap();
        udm.on(4, |arrival| {
            assert_eq!(arrival.peek().place(), None);
            let mut call = arrival.extract();
            assert_eq!(call.data().0, []);
            call.state().push(usize::MAX);
            call
        })
        .unwrap();
        udm.barrier(LONG).unwrap();
        if udm.me() == 0 {
            for (number, length) in LENGTHS.into_iter().enumerate() {
                let at = if number % 2 == 0 { 0 } else { 5 };
                let data = filled(length, number);
                udm.inject_bulk(1, 3, &[77, number as u32], &data, at)
                    .unwrap();
                udm.inject(1, 4, &[]).unwrap();
            }
            for (at, length_bytes) in [(AREA_BYTES, 1), (usize::MAX, 1), (1, AREA_BYTES)] {
                let data = vec![0; length_bytes];
                let sent = udm.inject_bulk(1, 3, &[], &data, at);
                let outside = InjectError::OutsideArea {
                    to: 1,
                    at,
                    length_bytes,
                    area_bytes: AREA_BYTES as u64,
                };
                assert_eq!(sent, Err(outside));
            }
            let many = udm.inject_bulk(1, 3, &[0; 15], &[], 0);
            assert!(matches!(many, Err(InjectError::TooLong { .. })), "{many:?}");
            let none = udm.inject_bulk(1, HANDLERS_MAX, &[], &[], 0);
            assert!(matches!(none, Err(InjectError::BadHandler { .. })));
            let none = udm.inject_bulk(2, 3, &[], &[], 0);
            assert!(matches!(none, Err(InjectError::NoSuchNode { .. })));
        } else {
            let all = (0..LENGTHS.len()).flat_map(|number| [number, usize::MAX]);
            let all: Vec<usize> = all.collect();
            serve_until(udm, |had| had.len() == all.len());
            assert_eq!(*udm.state(), all);
        }
    });
}

/// Data of which a part was refused run no handler; its sender hears of that, and may send again.
pub(crate) fn data_in_part_run_no_handler(world: World) {
    // Four pieces fill the queue but for 128 bytes, so the last one finds room after refused ones.
    const QUEUE_BYTES: u32 = 4 * 1024 + 128;
    const AREA_BYTES: usize = 61 * (QUEUE_BYTES as usize / 4 - 80) + 8;
    const PART_BYTES: usize = 500;
    let options = UdmOptions {
        area_bytes: AREA_BYTES,
        queue_bytes: QUEUE_BYTES,
        ..UdmOptions::default()
    };
    let (has_sent, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    world.place.run(2, &|manager, number, names| {
        let nodes = GroupOptions {
            name: "cases".into(),
            me: number as u32,
            addresses: names.to_vec(),
        };
        let group = Group::new(manager.clone(), nodes).unwrap();
        let mut udm = Udm::open(&group, "main", options, 0_u32, LONG).unwrap();
        udm.on(1, |arrival| {
            let mut call = arrival.extract();
            let number = call.word(0);
            let (data, last) = call.data();
            assert_eq!(
                data.len(),
                if number == 1 { AREA_BYTES } else { PART_BYTES }
            );
            let is_its = |byte: &u8| *byte == number as u8;
            assert!(data.iter().all(is_its), "{number} is there in part");
            *last = number;
            call
        })
        .unwrap();
        udm.barrier(LONG).unwrap();
        if udm.me() == 0 {
            // It takes nothing until all was sent: where a network processor receives, its queue
            // has no room for all.
            while !has_sent.load(Ordering::Relaxed) {
                let nothing = |_: &mut _| Ok::<Option<()>, Error>(None);
                let waited = manager.session().wait_for(Wait::millis(1), nothing);
                assert_eq!(waited, Ok(None));
            }
            while *udm.state() == 0 && !is_over.load(Ordering::Relaxed) {
                udm.serve(Wait::millis(10)).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
            return;
        }
        for number in 1.. {
            // Once some of it was refused, as much as finds room whenever it comes.
            let length = if number == 1 { AREA_BYTES } else { PART_BYTES };
            let data = vec![number as u8; length];
            let sent = udm.inject_bulk(0, 1, &[number], &data, 0);
            has_sent.store(true, Ordering::Relaxed);
            match sent {
                Ok(()) => {}
                // Between hosts nothing is sent after that.
                Err(InjectError::Refused { .. } | InjectError::Lost { .. }) => break,
                Err(error) => panic!("{error}"),
            }
            let is_refused = |event| matches!(event, Event::Refused { node: 0, .. });
            while !is_over.load(Ordering::Relaxed)
                && !std::iter::from_fn(|| group.next_event()).any(is_refused)
            {
                udm.serve(Wait::millis(1)).unwrap();
            }
            if is_over.load(Ordering::Relaxed) {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
