//! A peer that shakes hands as it should and then rewrites all that it shares, at
//! random, while its victim works with somebody honest. It may end its own link, and no more.

use crate::support;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::raw_link::{LOG_BYTES, RawLink};
use crate::support::{LONG, Random, StopOnDrop, namespace, open, until};
use hamlyn::engine::key::Key;
use hamlyn::engine::transport::Return;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::{
    Destination, FenceError, Host, LinkEnd, Manager, ManagerOptions, Message, ReceiveError,
    SendError, Strategy, Ticket, Wait, datagram, stream, tagged_write,
};
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::memfd::Memfd;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::thread::futex;

/// Messages that the victim and the honest peer exchange.
const ROUNDS: u64 = 1_000;

/// Writes somewhere: flags, counts, whole cells that are nearly right, the payload arena.
fn vandalise(random: &mut Random, link: &RawLink, known: &Ticket) {
    let memory = if random.below(3) == 0 {
        &link.from_victim
    } else {
        &link.to_victim
    };
    let geometry = link.to_victim_geometry;
    match random.below(8) {
        0 => {
            let offset = random.below(memory.len() as u64 / 8) as usize * 8;
            let _ = memory.store_u64(offset, random.next());
        }
        1 => {
            let count = random.below(600);
            let at = [geometry.consumed_offset(), geometry.refused_offset()];
            let _ = memory.store_u64(at[random.below(2) as usize], count);
        }
        2 => {
            let _ = memory.store_u64(geometry.awaited_offset(), random.below(600));
        }
        3 => {
            let length = random.below(200) as usize;
            let bytes = random.bytes(length);
            let offset = random.below((memory.len() - length) as u64) as usize;
            let _ = memory.copy_in(offset, &bytes);
        }
        _ => {
            // A cell for a slot that exists, with a flag that may be the next; its key is
            // right now and then.
            let cell = random.below(8);
            let at = geometry.cells_offset() + cell as usize * 64;
            let key = if random.below(2) == 0 {
                known.key.to_bits()
            } else {
                random.next()
            };
            let slot = if random.below(2) == 0 {
                u64::from(known.slot.to_bits())
            } else {
                random.below(6)
            };
            let index = [0, 1, 0xFFFF][random.below(3) as usize];
            let words = [
                0,
                slot | index << 32,
                key,
                random.below(200),
                random.below(40) | random.below(1 << 20) << 32,
                random.next(),
                random.next(),
                random.next(),
            ];
            for (number, word) in words.into_iter().enumerate().skip(1) {
                let _ = memory.store_u64(at + number * 8, word);
            }
            let first = random.below(6) | random.below(61) << 48 | random.below(4) << 56;
            let _ = memory.store_u64(at, first);
        }
    }
}

/// Leads to the log and back, or nowhere; writes and removes what lies there.
fn vandalise_log(random: &mut Random, link: &RawLink, known: &Ticket) {
    let Some((log, file)) = &link.log else {
        return;
    };
    let length = log.len() as u64;
    match random.below(6) {
        0 => {
            let geometry = link.to_victim_geometry;
            let at = geometry.cells_offset() + random.below(8) as usize * 64;
            let place = [0, 64, length, random.below(4) * length, random.next()];
            let _ = link
                .to_victim
                .store_u64(at + 8, place[random.below(5) as usize]);
            for word in 2..8 {
                let _ = link.to_victim.store_u64(at + 8 * word, 0);
            }
            let _ = link.to_victim.store_u64(at, 1 << 61 | random.below(3));
        }
        1 => {
            let place = random.below(length / 4096) * 4096;
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(file, flags, place, 4096);
        }
        2 => {
            let own = link.own_log.as_ref().unwrap_or(log);
            let at = random.below(own.len() as u64 / 8) * 8;
            let _ = own.store_u64(at as usize, random.next());
        }
        _ => {
            // One that may be next, a packet with payload or without, or an end.
            let at = random.below(8) as usize * 64;
            let words = [
                u64::from(known.slot.to_bits()) | 0xFFFF << 32,
                known.key.to_bits(),
                random.below(200),
                random.below(300)
                    | [64, 128, random.below(1 << 22)][random.below(3) as usize] << 32,
                0,
                0,
                0,
            ];
            for (number, word) in words.into_iter().enumerate() {
                let _ = log.store_u64(at + 8 * (number + 1), word);
            }
            let first = [8 << 56, 9 << 56, 16 << 32, 64 << 56];
            let first = first[random.below(4) as usize] | random.below(3);
            let _ = log.store_u64(at, first);
        }
    }
}

/// Cells as a correct peer writes them, for whatever slot, key and place.
fn forge(random: &mut Random, link: &RawLink, known: &Ticket) {
    let geometry = link.to_victim_geometry;
    for number in 0..random.below(u64::from(geometry.cells())) {
        let at = geometry.cells_offset() + number as usize * 64;
        let right = random.below(2) == 0;
        let slot = if right {
            u64::from(known.slot.to_bits())
        } else {
            random.below(6)
        };
        let first = match random.below(4) {
            // Data in the payload arena, and with a word of metadata; data in their place.
            0 => 1 << 56,
            1 => 3 << 56 | 8 << 48,
            2 => 2 << 40 | [0, 2 << 56 | 8 << 48][random.below(2) as usize],
            _ => random.below(2) << 32 | random.below(4) << 40,
        };
        let length = [random.below(17), random.below(300)][random.below(2) as usize];
        // Some places are inside the payload arena, some half, some not at all.
        let magnitude = random.below(33);
        let place = random.below(1 << magnitude) / 64 * 64;
        let words = [
            // The flag of the first generation.
            1 | first,
            slot | [0, 1, 0xFFFF][random.below(3) as usize] << 32,
            if random.below(2) == 0 {
                known.key.to_bits()
            } else {
                random.next()
            },
            random.below(200),
            length | place << 32,
            random.next(),
            random.next(),
            random.next(),
        ];
        for (word, value) in words.into_iter().enumerate().rev() {
            let _ = link.to_victim.store_u64(at + word * 8, value);
        }
    }
    link.ring();
}

/// Connects again and again, and rewrites until it is thrown out.
fn hostile(
    namespace: &str,
    victim: Destination,
    known: &Ticket,
    seed: u64,
    links: &AtomicU64,
    stop: &AtomicBool,
) {
    let mut random = Random::new(seed);
    while !stop.load(Ordering::Relaxed) {
        let log = Memfd::create("test-log", LOG_BYTES as usize, 0).unwrap();
        let log = (random.below(2) == 0).then_some(log);
        let connected = RawLink::connect_with(namespace, victim, HOSTILE + seed, log);
        let Some(link) = connected else {
            continue;
        };
        links.fetch_add(1, Ordering::Relaxed);
        if random.below(2) == 0 {
            forge(&mut random, &link, known);
            // Until the victim has been there.
            for _ in 0..random.below(100_000) {
                std::hint::spin_loop();
            }
        }
        // Now and then it is quick, now and then it lets the victim get far.
        let pause = random.below(400);
        for step in 0_u64.. {
            match random.below(2) {
                0 => vandalise(&mut random, &link, known),
                _ => vandalise_log(&mut random, &link, known),
            }
            for _ in 0..pause {
                std::hint::spin_loop();
            }
            if step.is_multiple_of(16)
                && (!link.ring() || random.below(400) == 0 || stop.load(Ordering::Relaxed))
            {
                break;
            }
        }
    }
}

/// The test goes on until the hostile peers have connected more often than this, and something of
/// theirs was refused.
const LINKS: u64 = 20;

/// Interface numbers of hostile peers begin here.
const HOSTILE: u64 = 0xBAD0_0000;

/// What the victim sends to the hostile peers: so their counts matter.
fn send_to_hostile(victim: &Manager<ProcessHost>, random: &mut Random) {
    let data = vec![1; random.below(300) as usize];
    match try_to_send(victim, &data) {
        Ok(()) | Err(SendError::WouldBlock { .. } | SendError::PeerLost(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Sends to a hostile peer, if there is one.
fn try_to_send<H: Host>(victim: &Manager<H>, data: &[u8]) -> Result<(), SendError> {
    let hostile = victim
        .session()
        .peers()
        .map(|(_, peer)| peer.destination)
        .find(|destination| destination.interface >> 16 == HOSTILE >> 16);
    let Some(destination) = hostile else {
        return Ok(());
    };
    let ticket = Ticket {
        destination,
        slot: hamlyn::engine::packet::SlotName::from_bits(7),
        metadata_index: 1,
        key: Key::from_bits(7),
        base: 0,
        length_bytes: u64::MAX,
        counting: Default::default(),
        kind: Default::default(),
    };
    let Ok(target) = victim.session().target(&ticket, Wait::Poll) else {
        return Ok(());
    };
    let terminus = victim.terminus();
    let message = Message::new(data);
    let mut interface = victim.session();
    let sent = interface.send_msg(terminus, &target, &message, Wait::Poll);
    sent.map(|_| ())
}

#[test]
fn peers_that_rewrite_all_they_share_harm_nobody_else() {
    let namespace = namespace();
    let mut lends_logs = Options::default().in_namespace(&namespace);
    (lends_logs.buffer_bytes_per_peer, lends_logs.patience) = (LOG_BYTES, Duration::ZERO);
    let victim = hamlyn::open_with(lends_logs, ManagerOptions::default()).unwrap();
    let identity = victim.session().identity();
    // The hostile peers may write here; it is all they may.
    let bait = tagged_write::Receiver::new(&victim, 128, 16).unwrap();
    let known = bait.ticket();
    let options = stream::StreamOptions {
        pieces: 4,
        piece_bytes: 512,
        limit_bytes: 1 << 14,
        ahead: false,
    };
    let mut records = stream::Receiver::new(&victim, options).unwrap();
    let seed = records.make_seed();
    let mut inbox = datagram::Receiver::new(&victim, 256).unwrap();
    inbox.ready();
    let inbox_ticket = inbox.ticket();
    let stop = AtomicBool::new(false);
    let links = AtomicU64::new(0);
    let (mut faults, mut losses) = (0, 0);
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (stop, links, namespace) = (&stop, &links, &namespace);
            scope.spawn(move || hostile(namespace, identity, &known, number + 1, links, stop));
        }
        let namespace = &namespace;
        let honest = scope.spawn(move || {
            let honest = open(namespace);
            let mut answers = datagram::Receiver::new(&honest, 256).unwrap();
            let outbox = datagram::Sender::grow(&honest, &inbox_ticket, LONG).unwrap();
            let mut sender = stream::Sender::grow(&honest, &seed, LONG).unwrap();
            for round in 0..ROUNDS {
                let data = Random::new(round).bytes((round % 700) as usize);
                sender.send(&data, LONG).unwrap();
                if round.is_multiple_of(50) {
                    answers.ready();
                    let reply = answers.ticket();
                    let question = round.to_le_bytes();
                    outbox.send_to(9, &question, Some(&reply), LONG).unwrap();
                    sender.flush(LONG).unwrap();
                    let answer = answers.recv(LONG).unwrap().unwrap();
                    assert_eq!(answer, question);
                }
            }
            sender.close(LONG).unwrap();
            assert_eq!(honest.session().refusals().total(), 0);
        });
        // If the victim fails, the hostile ones must end, or the test would not.
        let stopper = StopOnDrop(&stop);
        let mut random = Random::new(99);
        let mut round = 0;
        let mut closed = false;
        until("all records, links of hostile peers and refusals", || {
            send_to_hostile(&victim, &mut random);
            // Whatever they report, and whether they answer.
            while victim.session().next_undelivered().is_some() {}
            if let Err(FenceError::Host(error)) = victim.fence(Wait::Poll) {
                panic!("{error}");
            }
            // The honest one may be done long before the hostile ones.
            let refused = victim.session().refusals().total() > 0;
            if closed && refused && links.load(Ordering::Relaxed) > LINKS {
                return Some(());
            }
            match records.recv(Wait::millis(1)) {
                Ok(Some(record)) => {
                    let expected = Random::new(round).bytes((round % 700) as usize);
                    assert_eq!(*record, expected, "record {round}");
                    round += 1;
                }
                Ok(None) => {}
                Err(ReceiveError::Closed) => closed = true,
                Err(error) => panic!("{error}"),
            }
            let question = match inbox.recv(Wait::Poll) {
                Ok(found) => found.map(|datagram| (datagram.to_vec(), datagram.reply_ticket())),
                Err(error) => panic!("{error}"),
            };
            if let Some((question, reply)) = question {
                let outbox = datagram::Sender::grow(&victim, &reply.unwrap(), LONG).unwrap();
                outbox.send(&question, LONG).unwrap();
            }
            None
        });
        assert_eq!(round, ROUNDS);
        drop(stopper);
        honest.join().unwrap();
    });
    // How the hostile links ended.
    victim.session().poll();
    while let Some(lost) = support::next_loss(&victim, Wait::Poll) {
        faults += u64::from(matches!(lost.end, LinkEnd::Fault(_)));
        losses += 1;
    }
    let refusals = victim.session().refusals();
    println!(
        "{} hostile links; {losses} losses at last, {faults} faults; {refusals:?}",
        links.load(Ordering::Relaxed)
    );
    drop(bait);
    drop(records);
    drop(inbox);
    assert_eq!(victim.session().slots_open(), 0);
}

#[test]
fn a_fault_of_the_ring_ends_that_link_and_is_told() {
    let namespace = namespace();
    let victim = open(&namespace);
    let identity = victim.session().identity();
    for (number, at) in [(1, 0), (2, 1)] {
        let link = RawLink::connect(&namespace, identity, HOSTILE + number).unwrap();
        let cells = link.to_victim_geometry.cells_offset();
        // An impossible flag; or a possible one, and a placement outside the payload arena.
        let first = if at == 0 { 77 } else { 1 | 1 << 56 };
        link.to_victim
            .store_u64(cells + 32, 1 | u64::from(u32::MAX) << 32)
            .unwrap();
        link.to_victim.store_u64(cells, first).unwrap();
        link.ring();
        let lost = support::next_loss(&victim, LONG);
        let lost = lost.expect("the loss");
        assert!(matches!(lost.end, LinkEnd::Fault(_)), "{lost}");
        assert_eq!(lost.peer.interface, HOSTILE + number);
        assert!(
            lost.to_string().contains("broke the rules of the link"),
            "{lost}"
        );
        until("it is thrown out", || (!link.ring()).then_some(()));
    }
    assert_eq!(victim.session().peers().count(), 0);
}

/// The interface looks at what a peer returned when there is no room; the call that finds the lie
/// fails, and the loss is told of though nothing else is sent, with every strategy.
#[test]
fn a_peer_that_returns_more_than_it_was_sent_is_lost_with_every_strategy() {
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let victim = sleepy(&namespace, strategy);
        let identity = victim.session().identity();
        let link = RawLink::connect(&namespace, identity, HOSTILE).unwrap();
        until("the link", || {
            victim.session().poll();
            victim.session().peers().next().map(|_| ())
        });
        let at = Geometry::DEFAULT.consumed_offset();
        link.from_victim.store_u64(at, u64::MAX / 2).unwrap();
        // Longer than what a network processor is left to send.
        let refused = (0..1_000_000).find_map(|_| try_to_send(&victim, &[1; 1000]).err());
        let refused = refused.expect("there is an end to the room");
        assert!(matches!(refused, SendError::PeerLost(_)), "{refused}");
        let lost = support::next_loss(&victim, LONG);
        let lost = lost.expect("the loss");
        assert!(
            matches!(lost.end, LinkEnd::Fault(_)),
            "{strategy:?}: {lost}"
        );
    }
}

/// A peer may say of itself that it refused, or took, whatever it was sent. What cannot be ends its
/// link; fences to others are answered as before.
#[test]
fn a_peer_that_reports_what_cannot_be_is_lost_and_no_fence_but_its_own_fails() {
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let victim = sleepy(&namespace, strategy);
        let tags = tagged_write::Receiver::new(&victim, 64, 64).unwrap();
        let itself = tagged_write::Sender::grow(&victim, &tags.ticket(), LONG).unwrap();
        let identity = victim.session().identity();
        let link = RawLink::connect(&namespace, identity, HOSTILE).unwrap();
        until("the link", || {
            victim.session().poll();
            (victim.session().peers().count() == 2).then_some(())
        });
        let is_hostile = |peer: &hamlyn::host::Peer| peer.destination.interface == HOSTILE;
        let peers: Vec<_> = victim
            .session()
            .peers()
            .map(|(link, peer)| (link, is_hostile(peer), peer.destination))
            .collect();
        let &(hostile, _, peer) = peers.iter().find(|(_, hostile, _)| *hostile).unwrap();
        let geometry = Geometry::DEFAULT;
        // It was sent nothing, so there is nothing to be asked; whatever lies there.
        let at = geometry.reports_offset();
        link.from_victim.store_u64(at, u64::MAX).unwrap();
        itself.send(0, b"fine", 1, LONG).unwrap();
        assert_eq!(victim.fence(LONG), Ok(()));
        // It answers at once, and has refused the one packet that there is.
        try_to_send(&victim, &[1; 16]).unwrap();
        until("the packet", || {
            let cell = link.from_victim.load_u64(geometry.cells_offset()).unwrap();
            (cell != 0).then_some(())
        });
        link.from_victim
            .store_u64(geometry.refused_offset(), 1)
            .unwrap();
        link.from_victim
            .store_u64(geometry.consumed_offset(), 1)
            .unwrap();
        let fenced = victim.session().fence_link(hostile, LONG);
        match fenced {
            Err(FenceError::Refused { count: 1, last }) => {
                assert_eq!(last.reason, Return::RefusedOtherwise(u8::MAX));
                assert_eq!(victim.session().next_undelivered(), Some(last));
            }
            other => panic!("{strategy:?}: {other:?}"),
        }
        // And now more than there are.
        link.from_victim
            .store_u64(geometry.refused_offset(), 9)
            .unwrap();
        itself.send(0, b"fine", 2, LONG).unwrap();
        assert_eq!(itself.fence(LONG), Ok(()));
        if strategy == Strategy::Inject {
            // A look for refusals finds it, too.
            assert_eq!(victim.session().next_undelivered(), None);
            assert_eq!(victim.session().peers().count(), 1);
        }
        match victim.session().fence_link(hostile, LONG) {
            Err(FenceError::PeerLost(lost)) => {
                assert_eq!(lost.peer, peer);
                let end = LinkEnd::Fault(hamlyn_link::LinkFault::Report);
                assert_eq!(lost.end, end, "{strategy:?}");
            }
            other => panic!("{strategy:?}: {other:?}"),
        }
        assert_eq!(victim.fence(LONG), Ok(()));
        assert_eq!(victim.session().peers().count(), 1);
    }
}

#[test]
fn endless_rings_keep_nobody_from_his_work() {
    let namespace = namespace();
    let victim = open(&namespace);
    let mut receiver = tagged_write::Receiver::new(&victim, 64, 64).unwrap();
    let ticket = receiver.ticket();
    let identity = victim.session().identity();
    let link = RawLink::connect(&namespace, identity, HOSTILE).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stop, namespace) = (&stop, &namespace);
        scope.spawn(move || while !stop.load(Ordering::Relaxed) && link.ring() {});
        let _stopper = StopOnDrop(stop);
        // Nobody sends: the wait ends when it should.
        let begun = std::time::Instant::now();
        assert_eq!(receiver.get_tag(Wait::millis(50)), Ok(None));
        let elapsed = begun.elapsed();
        assert!(
            elapsed.as_millis() >= 50 && elapsed.as_millis() < 5_000,
            "{elapsed:?}"
        );
        scope.spawn(move || {
            let honest = open(namespace);
            let sender = tagged_write::Sender::grow(&honest, &ticket, LONG).unwrap();
            for tag in 0..1_000 {
                sender.send(0, &[1; 8], tag, LONG).unwrap();
                if tag % 32 == 31 {
                    // The receiver has room for 64.
                    std::thread::yield_now();
                }
            }
            // What found no room is still queued.
            assert_eq!(honest.session().flush(LONG), Ok(true));
        });
        let mut taken = 0;
        let mut last = None;
        while last != Some(999) {
            match receiver.get_tag(LONG) {
                Ok(tag) => {
                    taken += 1;
                    last = tag;
                    assert!(tag.is_some());
                }
                Err(ReceiveError::Overrun(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(taken + receiver.lost(), 1_000);
    });
}

/// Opens an interface that sleeps whenever it waits.
fn sleepy(namespace: &str, strategy: Strategy) -> Manager<ProcessHost<AnyThread>> {
    let mut options = Options::default().in_namespace(namespace);
    options.spin_ns = Some(0);
    let manager = ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    };
    hamlyn::open_shared(options, manager).unwrap()
}

/// Whatever a peer does to the word at which its victim sleeps, and to the threads that wait there,
/// an honest peer's messages wake the victim.
#[test]
fn a_peer_that_misuses_its_word_silences_nobody_else() {
    const ROUND_TRIPS: u64 = 2_000;
    const TRIES_MAX: u64 = 20_000;
    for strategy in [Strategy::Proc, Strategy::Np] {
        let namespace = namespace();
        let victim = sleepy(&namespace, strategy);
        let honest = sleepy(&namespace, strategy);
        let mut asked = tagged_write::Receiver::new(&victim, 64, 16).unwrap();
        let mut answered = tagged_write::Receiver::new(&honest, 64, 16).unwrap();
        let (to_victim, to_honest) = (asked.ticket(), answered.ticket());
        let link = RawLink::connect(&namespace, to_victim.destination, 77).unwrap();
        let is_over = AtomicBool::new(false);
        let (done, is_done) = std::sync::mpsc::channel();
        let (begin, may_begin) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let (is_over, link) = (&is_over, &link);
            scope.spawn(move || {
                let word = link
                    .to_victim
                    .atomic_u32(link.to_victim_geometry.wake_offset())
                    .unwrap();
                let elsewhere = AtomicU32::new(0);
                let (mut random, mut moved) = (Random::new(5), 0);
                let (mut tries, mut begin) = (0_u64, Some(begin));
                while !is_over.load(Ordering::Relaxed) {
                    let shared = futex::Flags::empty();
                    match random.below(8) {
                        0 => word.store(random.next() as u32, Ordering::Relaxed),
                        1 => drop(futex::wake(word, shared, u32::MAX)),
                        // The threads that wait at the word wait elsewhere from now on.
                        _ => moved += futex::requeue(word, shared, 0, 1, &elsewhere).unwrap_or(0),
                    }
                    tries += 1;
                    // Where nobody can sleep at words, it is the sockets that are tried.
                    if (moved > 0 || tries == TRIES_MAX)
                        && let Some(begin) = begin.take()
                    {
                        begin.send(()).unwrap();
                    }
                    std::thread::yield_now();
                }
            });
            // Their waits have no deadline at which they would look again.
            let leads = done.clone();
            scope.spawn(move || {
                let sender = tagged_write::Sender::grow(&honest, &to_victim, LONG).unwrap();
                // The victim sleeps, and was moved.
                may_begin.recv().unwrap();
                for turn in 0..ROUND_TRIPS {
                    sender.send(0, &[1; 16], turn, LONG).unwrap();
                    let answer = answered.get_tag(Wait::Forever);
                    assert_eq!(answer, Ok(Some(turn)));
                }
                leads.send(honest).unwrap();
            });
            scope.spawn(move || {
                let mut sender = None;
                for turn in 0..ROUND_TRIPS {
                    let tag = asked.get_tag(Wait::Forever);
                    assert_eq!(tag, Ok(Some(turn)));
                    let sender = sender.get_or_insert_with(|| {
                        tagged_write::Sender::grow(&victim, &to_honest, LONG).unwrap()
                    });
                    sender.send(0, &[2; 16], turn, LONG).unwrap();
                }
                done.send(victim).unwrap();
            });
            let ended = [(); 2].map(|()| is_done.recv_timeout(Duration::from_secs(100)));
            is_over.store(true, Ordering::Relaxed);
            if ended.iter().any(Result::is_err) {
                // The sleepers would be waited for.
                eprintln!("{strategy:?}: somebody was not woken");
                std::process::abort();
            }
        });
    }
}
