//! Use from several threads, safe by construction: what may move and what may be shared.

use crate::support;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use crate::support::{LONG, namespace, open, open_shared};
use hamlyn::engine::slot::Rights;
use hamlyn::host::process::ProcessHost;
use hamlyn::host::sharing::AnyThread;
use hamlyn::one_sided::InitiatorOptions;
use hamlyn::stream::{self, StreamOptions, StreamSeed};
use hamlyn::{
    Destination, Detached, Interface, Manager, Message, NewSlot, Queue, ReceiveError, Slot, Target,
    Ticket, Wait, datagram, group, mailbox, tagged_write,
};

type Shared = ProcessHost<AnyThread>;

const fn may_move<T: Send>() {}
const fn may_be_shared<T: Send + Sync>() {}

/// Said to the compiler; there is nothing to run.
const _: () = {
    may_move::<Interface<ProcessHost>>();
    may_move::<Detached>();
    may_be_shared::<Manager<Shared>>();
    may_move::<Slot>();
    may_move::<hamlyn::Area>();
    may_move::<hamlyn::HandoverReader>();
    may_move::<Queue>();
    may_move::<datagram::Receiver<Shared>>();
    may_be_shared::<datagram::Sender<Shared>>();
    may_move::<stream::Receiver<Shared>>();
    may_move::<stream::Sender<Shared>>();
    may_move::<tagged_write::Receiver<Shared>>();
    may_be_shared::<tagged_write::Sender<Shared>>();
    may_move::<group::Receiver<Shared>>();
    may_move::<group::Sender<Shared>>();
    may_be_shared::<Ticket>();
    may_be_shared::<Target>();
    may_be_shared::<Destination>();
    may_be_shared::<StreamSeed>();
    may_be_shared::<group::Member>();
    may_be_shared::<hamlyn::SendError>();
    may_be_shared::<ReceiveError>();
    may_be_shared::<hamlyn::OpenError>();
    may_be_shared::<hamlyn::ConnectError>();
};

/// Every thread has an interface; each sends to each, itself included.
#[test]
fn all_to_all() {
    const THREADS: usize = 5;
    const RECORDS: usize = 300;
    let namespace = namespace();
    let seeds = std::sync::Mutex::new(vec![[const { None }; THREADS]; THREADS]);
    let posted = Barrier::new(THREADS);
    let done = Barrier::new(THREADS);
    let record = |from: usize, to: usize, number: usize| {
        vec![(from * 31 + to * 7 + number) as u8; number * 13 % 900]
    };
    std::thread::scope(|scope| {
        for me in 0..THREADS {
            let (namespace, seeds, posted, done) = (&namespace, &seeds, &posted, &done);
            scope.spawn(move || {
                let manager = open(namespace);
                let options = StreamOptions {
                    pieces: 8,
                    piece_bytes: 256,
                    limit_bytes: 8 * 256,
                    ahead: false,
                };
                let mut receivers: Vec<_> = (0..THREADS)
                    .map(|_| stream::Receiver::new(&manager, options).unwrap())
                    .collect();
                for (from, receiver) in receivers.iter().enumerate() {
                    seeds.lock().unwrap()[from][me] = Some(receiver.make_seed());
                }
                posted.wait();
                let mut senders: Vec<_> = (0..THREADS)
                    .map(|to| {
                        let seed = seeds.lock().unwrap()[me][to].unwrap();
                        stream::Sender::grow(&manager, &seed, LONG).unwrap()
                    })
                    .collect();
                let mut sent = [0; THREADS];
                let mut received = [0; THREADS];
                support::until("all records", || {
                    for to in 0..THREADS {
                        let next = record(me, to, sent[to]);
                        if sent[to] < RECORDS && senders[to].send(&next, hamlyn::Wait::Poll).is_ok()
                        {
                            sent[to] += 1;
                        }
                        if sent[to] == RECORDS {
                            let _ = senders[to].flush(hamlyn::Wait::Poll);
                        }
                    }
                    for from in 0..THREADS {
                        let found = receivers[from].recv(hamlyn::Wait::Poll).unwrap();
                        if let Some(found) = found {
                            let expected = record(from, me, received[from]);
                            assert_eq!(found, expected);
                            received[from] += 1;
                        }
                    }
                    let all = [RECORDS; THREADS];
                    (sent == all && received == all).then_some(())
                });
                // Nobody leaves while another may still wait for its last word.
                for sender in &mut senders {
                    sender.flush(LONG).unwrap();
                }
                done.wait();
            });
        }
    });
}

/// Threads that share a manager send and wait at fences at the same time; when a fence of one
/// returns, what it sent is in its place.
#[test]
fn threads_wait_at_fences_side_by_side() {
    const THREADS: u64 = 3;
    const ROUNDS: u64 = 200;
    let namespace = namespace();
    let there = open_shared(&namespace);
    let receiver = tagged_write::Receiver::new(&there, 8 * THREADS, 4096).unwrap();
    let here = open_shared(&namespace);
    let sender = tagged_write::Sender::grow(&here, &receiver.ticket(), LONG).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (there, stop) = (&there, &stop);
        let taker = scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                there.wait(hamlyn::Wait::millis(1)).unwrap();
            }
        });
        let senders: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (here, sender, area) = (here.clone(), sender.clone(), receiver.area().clone());
                scope.spawn(move || {
                    for round in 1..=ROUNDS {
                        let data = round.to_le_bytes();
                        sender.send(8 * thread, &data, round, LONG).unwrap();
                        let fenced = match round % 2 {
                            0 => here.fence(LONG),
                            _ => sender.fence(LONG),
                        };
                        assert_eq!(fenced, Ok(()));
                        let mut found = [0; 8];
                        area.read_at(8 * thread, &mut found).unwrap();
                        assert_eq!(found, data);
                    }
                })
            })
            .collect();
        for sender in senders {
            sender.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        taker.join().unwrap();
    });
}

/// A thread that sends a message of many packets by the lower layer, for which there is no room,
/// lets others use the manager: what makes room is done by one of them.
#[test]
fn a_thread_that_waits_for_room_lets_others_use_the_manager() {
    const BYTES: usize = 4 << 20;
    let namespace = namespace();
    let here = open_shared(&namespace);
    let (area, slot) = {
        let mut interface = here.session();
        let area = interface.allocate(BYTES as u64).unwrap();
        let new = NewSlot::new(&area).entries(1);
        (area, interface.open_slot(new).unwrap())
    };
    let ticket = slot.ticket(0, 0, BYTES as u64).unwrap();
    let target = here.session().target(&ticket, LONG).unwrap();
    let bytes: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
    let sent = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (there, sent) = (here.clone(), &sent);
        scope.spawn(move || {
            while !sent.load(Ordering::Relaxed) {
                there.wait(hamlyn::Wait::millis(1)).unwrap();
            }
        });
        let message = Message::new(&bytes);
        let terminus = here.terminus();
        let handle = here.session().send_msg(terminus, &target, &message, LONG);
        sent.store(true, Ordering::Relaxed);
        handle.unwrap();
    });
    assert_eq!(here.fence(LONG), Ok(()));
    let mut found = vec![0; BYTES];
    area.read_at(0, &mut found).unwrap();
    assert!(found == bytes);
    let terminus = here.terminus();
    let not_counted = here.session().store(terminus, &target, 0, b"x", LONG);
    assert!(matches!(
        not_counted,
        Err(hamlyn::SendError::NotCounted { .. })
    ));
}

/// A thread that waits in a call of the lower layer waits for what another does with the same
/// manager, or for a peer: none of them waits for the lock.
#[test]
fn one_thread_waits_in_the_lower_layer_while_another_uses_the_manager() {
    const BYTES: u64 = 1 << 20;
    const USES: usize = 2_000;
    let namespace = namespace();
    let here = open_shared(&namespace);
    let owner = open(&namespace);
    let mut queue = here.session().open_queue(16).unwrap();
    let area = here.session().allocate(64).unwrap();
    let new = NewSlot::new(&area).queue(&queue);
    let slot = here.session().open_slot(new).unwrap();
    let itself = slot.fast_ticket(0, 64).unwrap();
    let itself = here.session().target(&itself, LONG).unwrap();
    let far_area = owner.session().allocate(BYTES).unwrap();
    let new = NewSlot::new(&far_area).rights(Rights::ALL);
    let far_slot = owner.session().open_slot(new).unwrap();
    let far = far_slot.fast_ticket(0, BYTES).unwrap();
    let far = here.session().target(&far, LONG).unwrap();
    let options = InitiatorOptions::default();
    let opened = here.session().open_initiator(far, options);
    let mut initiator = opened.unwrap();

    let uses = |here: &Manager<Shared>| {
        for _ in 0..USES {
            here.poll_nowait().unwrap();
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        let shared = here.clone();
        let waits = scope.spawn(move || shared.session().rcv_block(&mut queue, LONG));
        uses(&here);
        let message = Message::new(b"x").word(47);
        let terminus = here.terminus();
        let sent = here.session().send_msg(terminus, &itself, &message, LONG);
        sent.unwrap();
        assert_eq!(waits.join().unwrap().unwrap().unwrap().word, 47);
    });
    let bytes = vec![7; BYTES as usize];
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (shared, is_over) = (here.clone(), &is_over);
        let waits = scope.spawn(move || {
            let put = shared.session().put(&mut initiator, 0, &bytes, LONG);
            let terminus = shared.terminus();
            let sent = shared
                .session()
                .send_msg(terminus, &far, &Message::new(b"y"), LONG);
            let fenced = shared.session().fence_link(far.link(), LONG);
            is_over.store(true, Ordering::Relaxed);
            (put, sent.map(drop), fenced)
        });
        uses(&here);
        while !is_over.load(Ordering::Relaxed) {
            owner.session().poll();
        }
        assert_eq!(waits.join().unwrap(), (Ok(()), Ok(()), Ok(())));
    });
    assert_eq!(far_area.load_u64(8).unwrap(), u64::from_ne_bytes([7; 8]));
}

/// A manager with its end points moves from thread to thread, and goes on where it was.
#[test]
fn a_manager_moves_between_threads_with_its_end_points() {
    let namespace = namespace();
    let mut here = open_shared(&namespace);
    let mut receiver = tagged_write::Receiver::new(&here, 64, 64).unwrap();
    let mut inbox = datagram::Receiver::new(&here, 64).unwrap();
    let mut there = open_shared(&namespace);
    let sender = tagged_write::Sender::grow(&there, &receiver.ticket(), LONG).unwrap();
    let outbox = datagram::Sender::grow(&there, &inbox.ticket(), LONG).unwrap();
    for round in 0..20_u64 {
        inbox.ready();
        let (sender, outbox) = (sender.clone(), outbox.clone());
        (here, receiver, inbox, there) = std::thread::spawn(move || {
            sender.send(0, &[1; 16], round, LONG).unwrap();
            outbox.send(&round.to_le_bytes(), LONG).unwrap();
            // Received in another thread than the one that connected.
            assert_eq!(receiver.get_tag(LONG), Ok(Some(round)));
            let data = inbox.recv(LONG).unwrap().unwrap().to_vec();
            assert_eq!(data, round.to_le_bytes());
            (here, receiver, inbox, there)
        })
        .join()
        .unwrap();
    }
}

/// A thread that has the manager in hand, for as long as it likes, keeps no other one from sending:
/// the transmit half has a lock of its own. Those that cannot send so wait, or say that they would.
#[test]
fn one_thread_sends_while_another_has_the_manager() {
    let namespace = namespace();
    let here = open_shared(&namespace);
    let there = open(&namespace);
    let mut tags = tagged_write::Receiver::new(&there, 64, 64).unwrap();
    let tag_sender = tagged_write::Sender::grow(&here, &tags.ticket(), LONG).unwrap();
    let mut datagrams = datagram::Receiver::new(&there, 64).unwrap();
    datagrams.ready();
    let ticket = datagrams.ticket();
    let datagram_sender = datagram::Sender::grow(&here, &ticket, LONG).unwrap();
    let mut mail = mailbox::Receiver::new(&there, mailbox::MailboxOptions::default()).unwrap();
    let mail_sender = mailbox::Sender::grow(&here, &mail.ticket(), LONG).unwrap();
    let mut records = stream::Receiver::new(&there, StreamOptions::default()).unwrap();
    let mut record_sender = stream::Sender::grow(&here, &records.make_seed(), LONG).unwrap();
    let mut sends = || {
        tag_sender.send(8, b"a", 47, Wait::Poll).unwrap();
        datagram_sender.send(b"b", Wait::Poll).unwrap();
        mail_sender.send(b"c", Wait::Poll).unwrap();
        record_sender.send(b"d", Wait::Poll).unwrap();
    };
    let mut came = || {
        assert_eq!(tags.recv(LONG).unwrap().unwrap().tag, 47);
        assert_eq!(&**datagrams.recv(LONG).unwrap().as_ref().unwrap(), b"b");
        assert_eq!(&*mail.recv(LONG).unwrap().unwrap(), b"c");
        assert_eq!(records.recv(LONG).unwrap().unwrap(), b"d");
    };
    // The manager sees to all that is new with a link.
    sends();
    came();
    assert_eq!(here.flush(LONG), Ok(true));
    let held = here.session();
    let (says, said) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            sends();
            says.send(()).unwrap();
        });
        let sent = said.recv_timeout(Duration::from_secs(30));
        drop(held);
        assert_eq!(sent, Ok(()));
    });
    came();
}

/// One thread sends more than there is room for while another one sleeps with the manager: what
/// makes room wakes it, whichever of them found the link full.
#[test]
fn a_thread_that_finds_no_room_is_woken_beside_one_that_sleeps() {
    const MESSAGES: u64 = 20_000;
    let namespace = namespace();
    let here = open_shared(&namespace);
    let mut last = tagged_write::Receiver::new(&here, 64, 4).unwrap();
    let to_itself = tagged_write::Sender::grow(&here, &last.ticket(), LONG).unwrap();
    let (says, said) = mpsc::channel();
    let (ends, end) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let namespace = &namespace;
        scope.spawn(move || {
            let there = open(namespace);
            let mut receiver = tagged_write::Receiver::new(&there, 4096, 4000).unwrap();
            says.send(receiver.ticket()).unwrap();
            for number in 0..MESSAGES {
                let tag = receiver.recv(LONG).unwrap();
                assert_eq!(tag.unwrap().tag, number);
            }
            // Until the other one is through, or has failed.
            let _ = end.recv();
        });
        let sender = tagged_write::Sender::grow(&here, &said.recv().unwrap(), LONG).unwrap();
        let sleeps = scope.spawn(move || last.recv(LONG).unwrap().unwrap().tag);
        for number in 0..MESSAGES {
            sender.send(0, &[7; 100], number, LONG).unwrap();
        }
        assert!(here.flush(LONG).unwrap());
        drop(ends);
        to_itself.send(0, b"end", 47, LONG).unwrap();
        assert_eq!(sleeps.join().unwrap(), 47);
    });
}

/// Threads send over one link, others receive, and one connects and disconnects meanwhile: every
/// message of a thread comes once and in order.
#[test]
fn threads_send_and_receive_side_by_side() {
    const SENDERS: u64 = 3;
    const MESSAGES: u64 = 20_000;
    const AHEAD_MAX: u64 = 512;
    let namespace = namespace();
    let here = open_shared(&namespace);
    let ways: Vec<_> = (0..SENDERS)
        .map(|_| {
            let receiver = tagged_write::Receiver::new(&here, 4096, 1024).unwrap();
            let sender = tagged_write::Sender::grow(&here, &receiver.ticket(), LONG).unwrap();
            (sender, receiver)
        })
        .collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (sender, mut receiver) in ways {
            let taken = Arc::new(AtomicU64::new(0));
            let seen = Arc::clone(&taken);
            threads.push(scope.spawn(move || {
                for number in 0..MESSAGES {
                    while number >= seen.load(Ordering::Acquire) + AHEAD_MAX {
                        std::thread::yield_now();
                    }
                    // Of one cell, of several, and of a packet with payload.
                    let data = [number as u8; 2048];
                    let length = [16, 100, 2048][number as usize % 3];
                    sender.send(0, &data[..length], number, LONG).unwrap();
                }
            }));
            threads.push(scope.spawn(move || {
                for number in 0..MESSAGES {
                    let tag = receiver.recv(LONG).unwrap();
                    assert_eq!(tag.unwrap().tag, number);
                    taken.store(number + 1, Ordering::Release);
                }
            }));
        }
        let (here, is_over, namespace) = (here.clone(), &is_over, &namespace);
        let comes_and_goes = scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let guest = open(namespace);
                let receiver = tagged_write::Receiver::new(&guest, 64, 4).unwrap();
                let sender = tagged_write::Sender::grow(&here, &receiver.ticket(), LONG).unwrap();
                sender.send(0, b"x", 0, LONG).unwrap();
                drop(guest);
                drop(receiver);
                // Until it is known to be gone.
                while sender.send(0, b"y", 1, Wait::Poll).is_ok() {}
            }
        });
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        comes_and_goes.join().unwrap();
    });
    assert!(here.flush(LONG).unwrap());
}
