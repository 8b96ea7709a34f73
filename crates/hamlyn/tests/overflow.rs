//! Receivers that are stopped, and senders that go on (decision 53). The processes are this program
//! again.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hamlyn::engine::memory::LinkId;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::mailbox::{self, MailboxOptions};
use hamlyn::stream::{self, StreamOptions, StreamSeed};
use hamlyn::{
    Direction, Event, Manager, ManagerOptions, ReceiveError, SendError, Strategy, Ticket, Wait,
};
use support::actor::{Actor, go_on, listen, role, say, stop};
use support::control_group::ControlGroup;
use support::{LONG, TIMEOUT, link_to, namespace, until};

/// Memory behind a ring of a receiver here, and the pages of it that stay.
const LOG_BYTES: u32 = 4 << 20;
const KEPT_BYTES: u64 = 64 << 10;
const PAGE_BYTES: u64 = 4 << 10;
/// Bytes of the memory that find room: the receiver may hold back the rest when it was taken.
const ROOM_BYTES: u64 = LOG_BYTES as u64 - (256 << 10) - PAGE_BYTES;
/// Many times what a ring holds.
const MESSAGES: u64 = 20_000;
/// Some of them take several cells, and some a place for their payload.
const LENGTHS: [usize; 5] = [8, 40, 300, 8, 3_000];

/// Bytes that the sender of a stream may go ahead, and the records that fill it.
const AHEAD_BYTES: u64 = 64 << 20;
const RECORD_BYTES: usize = 64 << 10;
/// Some of them.
const RECORDS_FIRST: u64 = 515;

/// A receiver that lends so much memory to each peer, and to all of them.
fn options(namespace: &str, each: u32, all: u64) -> Options {
    let mut options = Options::default().in_namespace(namespace);
    (options.buffer_bytes_per_peer, options.buffer_bytes_total) = (each, all);
    options
}

fn open(options: Options, strategy: Strategy) -> Manager<ProcessHost> {
    let manager = ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    };
    hamlyn::open_with(options, manager).unwrap()
}

/// A manager of its own, and its way to that mailbox.
fn sender_to(
    mailbox: &Ticket,
    namespace: &str,
    strategy: Strategy,
) -> (Manager<ProcessHost>, mailbox::Sender) {
    let manager = open(Options::default().in_namespace(namespace), strategy);
    let sender = mailbox::Sender::grow(&manager, mailbox, LONG).unwrap();
    (manager, sender)
}

/// The message of that number.
fn mail(number: u64) -> Vec<u8> {
    let length = LENGTHS[number as usize % LENGTHS.len()];
    let mut bytes = vec![number as u8; length];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// What the children do.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Some((role, namespace)) = role() else {
        return;
    };
    match role.as_str() {
        "receive" | "receive np" => {
            let strategy = match role.as_str() {
                "receive" => Strategy::Proc,
                _ => Strategy::Np,
            };
            receive(&open(options(&namespace, LOG_BYTES, 1 << 30), strategy));
        }
        "send" => {
            let ticket = Ticket::from_bytes(&listen()).unwrap();
            let (_manager, sender) = sender_to(&ticket, &namespace, Strategy::Proc);
            say(b"ready");
            listen();
            for number in 0..MESSAGES / 10 {
                sender.send(&mail(number), LONG).unwrap();
            }
        }
        "send for ever" => {
            let ticket = Ticket::from_bytes(&listen()).unwrap();
            let (_manager, sender) = sender_to(&ticket, &namespace, Strategy::Proc);
            for number in 0.. {
                sender.send(&mail(number), LONG).unwrap();
                if number % 100 == 99 {
                    say(b"100 more");
                }
            }
        }
        "send until full" => {
            let ticket = Ticket::from_bytes(&listen()).unwrap();
            let (_manager, sender) = sender_to(&ticket, &namespace, Strategy::Proc);
            say(b"ready");
            listen();
            let mut number: u64 = 0;
            while sender.send(&mail(number), Wait::millis(100)).is_ok() {
                number += 1;
            }
            say(&number.to_le_bytes());
            listen();
            sender.send(&mail(number), LONG).unwrap();
            say(b"sent");
            listen();
        }
        "read" => read(&open(
            options(&namespace, 2 * AHEAD_BYTES as u32, 1 << 30),
            Strategy::Proc,
        )),
        "write" => {
            let manager = open(Options::default().in_namespace(&namespace), Strategy::Proc);
            let seed = StreamSeed::from_bytes(&listen()).unwrap();
            let mut sender = stream::Sender::grow(&manager, &seed, LONG).unwrap();
            say(b"ready");
            listen();
            for number in 0..AHEAD_BYTES / RECORD_BYTES as u64 {
                sender.send(&[number as u8; RECORD_BYTES], LONG).unwrap();
            }
            sender.close(LONG).unwrap();
        }
        other => panic!("{other}"),
    }
}

/// Has all of a stream come without a look at it, and reads it then; says how much of its memory
/// is present before, when some was read, and afterwards.
fn read(manager: &Manager<ProcessHost>) {
    let options = StreamOptions {
        piece_bytes: RECORD_BYTES as u32,
        limit_bytes: AHEAD_BYTES,
        ahead: true,
        ..StreamOptions::default()
    };
    let mut receiver = stream::Receiver::new(manager, options).unwrap();
    let say_present = || say(&ahead_bytes().to_le_bytes());
    say(&receiver.make_seed().to_bytes());
    say_present();
    listen();
    until("all of the stream", || {
        while manager.session().poll() > 0 {}
        (ahead_bytes() == AHEAD_BYTES).then_some(())
    });
    say_present();
    let records = AHEAD_BYTES / RECORD_BYTES as u64;
    for number in 0..records {
        if number == RECORDS_FIRST {
            say_present();
        }
        let record = receiver.recv(LONG).unwrap().expect("it was sent");
        assert!(record == [number as u8; RECORD_BYTES], "record {number}");
    }
    say_present();
    let end = receiver.recv(LONG).unwrap_err();
    assert!(matches!(end, ReceiveError::Closed), "{end}");
    say(&present_bytes().to_le_bytes());
}

/// Bytes that are present of the one mapping that is as long as the stream's limit.
fn ahead_bytes() -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = maps.lines().filter_map(|line| line.split_once(':'));
    let kib = |text: &str| text.trim().trim_end_matches(" kB").parse::<u64>();
    let mut is_it =
        |(name, text): (&str, &str)| name == "Size" && kib(text) == Ok(AHEAD_BYTES >> 10);
    assert!(lines.any(&mut is_it));
    let (_, present) = lines.find(|(name, _)| *name == "Rss").unwrap();
    kib(present).unwrap() << 10
}

/// Takes as many messages as it is told, in order, and says how much of logs is present then.
fn receive(manager: &Manager<ProcessHost>) {
    // A network processor moves all of it to the queue.
    let options = MailboxOptions {
        queue_bytes: 1 << 28,
        ..MailboxOptions::default()
    };
    let mut inbox = mailbox::Receiver::new(manager, options).unwrap();
    say(&inbox.ticket().to_bytes());
    let mut next = 0;
    loop {
        let until = u64::from_le_bytes(listen().try_into().unwrap());
        while next < until {
            let expected = mail(next);
            let came = inbox.recv(LONG).unwrap().expect("it was sent");
            assert!(came == expected, "another message than {next}");
            next += 1;
        }
        assert!(inbox.recv(Wait::Poll).unwrap().is_none());
        say(&present_bytes().to_le_bytes());
    }
}

/// Bytes of logs that are mapped here.
fn present_bytes() -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = maps.lines();
    let mut present = 0;
    while lines.any(|line| line.contains("hamlyn-overflow")) {
        let rss = lines.find_map(|line| line.strip_prefix("Rss:"));
        let kib = rss.unwrap().trim().trim_end_matches(" kB");
        present += kib.parse::<u64>().unwrap() << 10;
    }
    present
}

/// One test at a time: each counts what is present in this process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Receiving(Actor, Ticket);

impl Receiving {
    fn start(role: &str, namespace: &str) -> Self {
        let mut actor = Actor::start(role, namespace);
        let ticket = Ticket::from_bytes(&actor.hear()).unwrap();
        Self(actor, ticket)
    }

    /// Has it take all messages before that one; bytes of its logs that are present then.
    fn take_until(&mut self, number: u64) -> u64 {
        self.0.tell(&number.to_le_bytes());
        u64::from_le_bytes(self.0.hear().try_into().unwrap())
    }
}

fn sends_to_a_stopped_receiver(receiver: &str, strategy: Strategy) {
    let _alone = alone();
    let namespace = namespace();
    let mut receiving = Receiving::start(receiver, &namespace);
    let (manager, sender) = sender_to(&receiving.1, &namespace, strategy);
    // Over and over, so that episodes begin while others are not drained.
    let mut number = 0;
    for round in 0..4 {
        stop(receiving.0.id());
        for _ in 0..MESSAGES / 10 {
            sender.send(&mail(number), LONG).unwrap();
            number += 1;
        }
        assert!(present_bytes() > KEPT_BYTES, "round {round}");
        go_on(receiving.0.id());
        if round % 2 == 1 {
            receiving.take_until(number);
        }
    }
    // The sender gives back what it has reserved and not used, once it has rested for a while.
    until("pages that are given back", || {
        let _ = manager.session().poll();
        let _ = manager.next_event(Wait::millis(10)).unwrap();
        let there_bytes = receiving.take_until(number);
        (there_bytes.max(present_bytes()) <= KEPT_BYTES).then_some(())
    });
}

#[test]
fn a_stopped_receiver_does_not_stop_its_sender() {
    sends_to_a_stopped_receiver("receive", Strategy::Proc);
}

#[test]
fn one_with_a_network_processor_does_not_either() {
    for strategy in [Strategy::Np, Strategy::Inject, Strategy::Receive] {
        sends_to_a_stopped_receiver("receive np", strategy);
    }
}

/// Nobody but the receiver has the messages then.
#[test]
fn messages_outlast_their_sender() {
    let _alone = alone();
    let namespace = namespace();
    let mut receiving = Receiving::start("receive", &namespace);
    let mut sending = Actor::start("send", &namespace);
    sending.tell(&receiving.1.to_bytes());
    assert_eq!(sending.hear(), b"ready");
    stop(receiving.0.id());
    sending.tell(b"go");
    assert!(sending.ended());
    go_on(receiving.0.id());
    receiving.take_until(MESSAGES / 10);
}

/// A container that is paused: no thread of it runs, and no signal was sent.
#[test]
fn a_frozen_receiver_does_not_stop_its_sender() {
    let _alone = alone();
    let Some(group) = ControlGroup::or_skip("freezer") else {
        return;
    };
    let namespace = namespace();
    let mut receiving = Receiving::start("receive", &namespace);
    group.add(receiving.0.id());
    let (_manager, sender) = sender_to(&receiving.1, &namespace, Strategy::Proc);
    for round in 0..3 {
        group.freeze(true);
        for number in 0..MESSAGES / 10 {
            sender
                .send(&mail(round * MESSAGES / 10 + number), LONG)
                .unwrap();
        }
        group.freeze(false);
        receiving.take_until((round + 1) * MESSAGES / 10);
    }
}

/// A sender that is killed anywhere in an episode leaves what it had sent, each message whole, in
/// order and once, and then it is gone.
#[test]
fn a_killed_sender_leaves_what_it_had_sent() {
    let _alone = alone();
    let namespace = namespace();
    let receiver = open(options(&namespace, LOG_BYTES, 1 << 30), Strategy::Proc);
    let mut inbox = mailbox::Receiver::new(&receiver, MailboxOptions::default()).unwrap();
    for round in 1..=16 {
        let mut sending = Actor::start("send for ever", &namespace);
        sending.tell(&inbox.ticket().to_bytes());
        let mut next = 0;
        let mut take = |most: u64, wait: Wait| {
            let mut taken = 0;
            while taken < most
                && let Some(came) = inbox.recv(wait).unwrap()
            {
                assert!(came == mail(next), "another message than {next}");
                next += 1;
                taken += 1;
            }
            taken
        };
        for _ in 0..4 + round {
            assert_eq!(sending.hear(), b"100 more");
        }
        // In the first episode, or in one that began while others were not drained.
        take(100 * (round % 3), LONG);
        sending.kill();
        assert!(!sending.ended());
        until("the end of the sender", || {
            take(u64::MAX, Wait::millis(1));
            match receiver.next_event(Wait::Poll).unwrap() {
                Some(Event::PeerLeft { .. }) => Some(()),
                _ => None,
            }
        });
        take(u64::MAX, Wait::Poll);
        assert!(next > 256, "{next}");
    }
}

/// One that is killed takes what waited for it along, and its sender hears of it.
#[test]
fn a_killed_receiver_takes_its_memory_along() {
    let _alone = alone();
    let namespace = namespace();
    let receiving = Receiving::start("receive", &namespace);
    let (manager, sender) = sender_to(&receiving.1, &namespace, Strategy::Proc);
    stop(receiving.0.id());
    for number in 0..MESSAGES / 10 {
        sender.send(&mail(number), LONG).unwrap();
    }
    drop(receiving);
    until("an error", || {
        match sender.send(&mail(0), Wait::millis(1)) {
            Err(SendError::PeerLost(_)) => Some(()),
            Ok(_) | Err(SendError::WouldBlock { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    });
    until("memory that is gone", || {
        let _ = manager.next_event(Wait::millis(1)).unwrap();
        (present_bytes() == 0).then_some(())
    });
}

/// The sender of a stream sends all that its receiver may hold, and exits; the receiver is stopped
/// all the while, and keeps none of the memory.
#[test]
fn a_stream_goes_ahead_of_a_stopped_receiver() {
    let _alone = alone();
    let namespace = namespace();
    let mut reading = Actor::start("read", &namespace);
    let mut writing = Actor::start("write", &namespace);
    let present = |reading: &mut Actor| u64::from_le_bytes(reading.hear().try_into().unwrap());
    writing.tell(&reading.hear());
    assert_eq!(present(&mut reading), 0, "nothing was written");
    assert_eq!(writing.hear(), b"ready");
    stop(reading.id());
    writing.tell(b"go");
    assert!(writing.ended());
    go_on(reading.id());
    reading.tell(b"read");
    assert_eq!(present(&mut reading), AHEAD_BYTES);
    let unread_bytes = AHEAD_BYTES - RECORDS_FIRST * RECORD_BYTES as u64;
    assert_eq!(present(&mut reading), unread_bytes);
    assert_eq!(present(&mut reading), 0, "all was read");
    assert!(present(&mut reading) <= KEPT_BYTES, "the log");
    assert!(reading.ended());
}

/// A sender is slowed by one receiver only, and only once that has no memory left.
#[test]
fn a_full_log_stops_the_messages_to_its_receiver_only() {
    let _alone = alone();
    let namespace = namespace();
    let mut stopped = Receiving::start("receive", &namespace);
    let mut other = Receiving::start("receive", &namespace);
    let manager = open(Options::default().in_namespace(&namespace), Strategy::Proc);
    let to_stopped = mailbox::Sender::grow(&manager, &stopped.1, LONG).unwrap();
    let to_other = mailbox::Sender::grow(&manager, &other.1, LONG).unwrap();
    stop(stopped.0.id());
    let mut sent = 0;
    until("an end of the memory", || {
        match to_stopped.send(&mail(sent), Wait::millis(100)) {
            Ok(_) => {
                sent += 1;
                assert!(sent < 1_000_000, "more than the log has");
                None
            }
            Err(SendError::WouldBlock { .. }) => Some(()),
            Err(error) => panic!("{error}"),
        }
    });
    assert!(sent > 2_000, "{sent}");
    for number in 0..1_000 {
        to_other.send(&mail(number), LONG).unwrap();
        if number % 100 == 99 {
            other.take_until(number + 1);
        }
    }
    go_on(stopped.0.id());
    stopped.take_until(sent);
    to_stopped.send(&mail(sent), LONG).unwrap();
    stopped.take_until(sent + 1);
}

/// The sender pays for what waits for its receiver, and its control group may not have that much.
#[test]
fn a_sender_whose_memory_is_limited_finds_no_room() {
    let _alone = alone();
    let Some(group) = ControlGroup::or_skip("memory") else {
        return;
    };
    let namespace = namespace();
    let mut receiving = Receiving::start("receive", &namespace);
    let mut sending = Actor::start("send until full", &namespace);
    sending.tell(&receiving.1.to_bytes());
    assert_eq!(sending.hear(), b"ready");
    group.add(sending.id());
    group.limit_memory(2 << 20);
    stop(receiving.0.id());
    sending.tell(b"go");
    let sent = u64::from_le_bytes(sending.hear().try_into().unwrap());
    // More than its ring, and less than the log.
    assert!((512..4_000).contains(&sent), "{sent}");
    go_on(receiving.0.id());
    receiving.take_until(sent);
    sending.tell(b"go on");
    assert_eq!(sending.hear(), b"sent");
    receiving.take_until(sent + 1);
}

/// Has a sender go on until three quarters of its receiver's log wait; the number of messages.
fn fill_three_quarters(
    manager: &Manager<ProcessHost>,
    sender: &mailbox::Sender,
    link: LinkId,
) -> u64 {
    let mut sent = 0;
    loop {
        let used = manager.session().log_use(link).unwrap();
        if used.waiting_bytes >= ROOM_BYTES / 4 * 3 {
            return sent;
        }
        assert_eq!(used.pauses, 0, "{used:?}");
        sender.send(&mail(sent), LONG).unwrap();
        sent += 1;
    }
}

/// A sender that waits is slowed before it is stopped, so a receiver that takes something now and
/// then is never filled up.
#[test]
fn a_sender_that_waits_is_slowed_before_its_receiver_is_full() {
    let _alone = alone();
    let namespace = namespace();
    let (ticket_there, ticket) = std::sync::mpsc::channel();
    let (go, gone) = std::sync::mpsc::channel::<u64>();
    let sent = Arc::new(AtomicU64::new(0));
    // Long beside what the receiver takes for a batch of messages.
    let patience = Duration::from_secs(2);
    let (receiving_namespace, sent_seen) = (namespace.clone(), Arc::clone(&sent));
    let receiving = std::thread::spawn(move || {
        let options = options(&receiving_namespace, LOG_BYTES, 1 << 30);
        let receiver = open(options, Strategy::Proc);
        let mut inbox = mailbox::Receiver::new(&receiver, MailboxOptions::default()).unwrap();
        ticket_there.send(inbox.ticket()).unwrap();
        let all = gone.recv().unwrap();
        let mut before = sent_seen.load(Ordering::Relaxed);
        for number in 0..all {
            assert_eq!(inbox.recv(LONG).unwrap().unwrap(), mail(number));
            // Its sender goes on by then, while nothing of the log is taken.
            if number < 192 && number % 64 == 63 {
                let now = || sent_seen.load(Ordering::Relaxed);
                until("a message more", || (now() > before).then_some(()));
                before = now();
            }
        }
    });
    let mut patient = Options::default().in_namespace(&namespace);
    patient.patience = patience;
    let manager = open(patient, Strategy::Proc);
    let ticket: Ticket = ticket.recv_timeout(TIMEOUT).unwrap();
    let sender = mailbox::Sender::grow(&manager, &ticket, LONG).unwrap();
    let link = link_to(&manager, ticket.destination.interface);
    let first = fill_three_quarters(&manager, &sender, link);
    let all = 2 * first;
    go.send(all).unwrap();
    for number in first..all {
        sender.send(&mail(number), LONG).unwrap();
        sent.store(number, Ordering::Relaxed);
    }
    let used = manager.session().log_use(link).unwrap();
    assert!(used.pauses > 0, "{used:?}");
    assert!(used.most_bytes < ROOM_BYTES / 8 * 7, "{used:?}");
    assert!(manager.session().flush(LONG).unwrap());
    receiving.join().unwrap();
}

/// One that may not wait finds all of the room, and no call fails before.
#[test]
fn a_sender_that_does_not_wait_is_not_slowed() {
    for strategy in [Strategy::Proc, Strategy::Np] {
        let _alone = alone();
        let namespace = namespace();
        let mut receiving = Receiving::start("receive", &namespace);
        let mut patient = Options::default().in_namespace(&namespace);
        // To wait so long for each few lines of a quarter of the log would take an hour.
        patient.patience = Duration::from_secs(1);
        let manager = open(patient, strategy);
        let sender = mailbox::Sender::grow(&manager, &receiving.1, LONG).unwrap();
        let link = link_to(&manager, receiving.1.destination.interface);
        let used = || manager.session().log_use(link).unwrap();
        stop(receiving.0.id());
        let mut sent = fill_three_quarters(&manager, &sender, link);
        let begun = Instant::now();
        loop {
            match sender.send(&mail(sent), Wait::Poll) {
                Ok(_) => sent += 1,
                Err(SendError::WouldBlock { .. })
                    if strategy == Strategy::Proc || used().waiting_bytes > ROOM_BYTES - 4_096 =>
                {
                    break;
                }
                // The network processor has not sent what is queued yet.
                Err(SendError::WouldBlock { .. }) => assert!(begun.elapsed() < TIMEOUT),
                Err(error) => panic!("{error}"),
            }
        }
        // No message is longer than 48 lines, and a queue of short ones may wait behind one.
        let used_then = used();
        assert!(
            used_then.waiting_bytes > ROOM_BYTES - 4_096,
            "{used_then:?}"
        );
        // All pages are this program's.
        assert_eq!(used_then.pages * PAGE_BYTES, present_bytes());
        go_on(receiving.0.id());
        receiving.take_until(sent);
        until("pages that are given back", || {
            let _ = manager.session().poll();
            let _ = manager.next_event(Wait::millis(10)).unwrap();
            let used = used();
            // A network processor gives back what it has reserved when it wakes next.
            let is_given_back = used.pages <= KEPT_BYTES / PAGE_BYTES || strategy != Strategy::Proc;
            // Credit for a batch of the last ones is not returned at once.
            (used.waiting_bytes <= 32 * 64 && is_given_back).then_some(())
        });
        assert!(used().most_pages >= used_then.pages);
    }
}

/// A program that ends flushes what is queued: it goes while there is room.
#[test]
fn a_flush_does_not_wait_for_a_receiver_that_is_nearly_full() {
    let _alone = alone();
    let namespace = namespace();
    let mut receiving = Receiving::start("receive", &namespace);
    let mut patient = Options::default().in_namespace(&namespace);
    patient.patience = Duration::from_secs(1);
    let manager = open(patient, Strategy::Proc);
    let sender = mailbox::Sender::grow(&manager, &receiving.1, LONG).unwrap();
    let link = link_to(&manager, receiving.1.destination.interface);
    stop(receiving.0.id());
    let mut sent = fill_three_quarters(&manager, &sender, link);
    while !sent.is_multiple_of(LENGTHS.len() as u64) {
        sender.send(&mail(sent), LONG).unwrap();
        sent += 1;
    }
    for by_link in [true, false] {
        // The next two are short enough to be queued, and the one after them is not.
        for _ in 0..2 {
            sender.send(&mail(sent), Wait::Poll).unwrap();
            sent += 1;
        }
        let mut session = manager.session();
        let is_flushed = match by_link {
            true => session.flush_link(link, Wait::Poll),
            false => session.flush(Wait::Poll),
        };
        assert!(is_flushed.unwrap(), "{by_link}");
        drop(session);
        while !sent.is_multiple_of(LENGTHS.len() as u64) {
            sender.send(&mail(sent), LONG).unwrap();
            sent += 1;
        }
    }
    go_on(receiving.0.id());
    receiving.take_until(sent);
}

/// A receiver hears that it was behind when it comes to what waits, and that it has taken all.
#[test]
fn a_receiver_hears_that_messages_wait_for_it() {
    for strategy in [Strategy::Proc, Strategy::Np] {
        let _alone = alone();
        let namespace = namespace();
        let receiver = open(options(&namespace, LOG_BYTES, 1 << 30), Strategy::Proc);
        let mut inbox = mailbox::Receiver::new(&receiver, MailboxOptions::default()).unwrap();
        // Nobody takes anything meanwhile, nor when events are asked for.
        let (sender, target) = sender_to(&inbox.ticket(), &namespace, strategy);
        let link = link_to(&sender, inbox.ticket().destination.interface);
        let incoming = || loop {
            match receiver.session().next_event() {
                Some(Event::PeerArrived { .. }) => {}
                news => return news,
            }
        };
        for round in 0..2 {
            let begun = sender.session().log_use(link).unwrap().spilled_bytes;
            let mut sent = 0;
            loop {
                let used = sender.session().log_use(link).unwrap();
                if used.waiting_bytes > u64::from(LOG_BYTES) / 2 + 4_096 {
                    assert!(used.spilled_bytes > begun);
                    break;
                }
                target.send(&mail(sent), LONG).unwrap();
                sent += 1;
            }
            assert!(sender.session().flush(LONG).unwrap());
            until("news of the sender", || {
                match sender.next_event(Wait::Poll).unwrap() {
                    Some(Event::PeerArrived { .. }) => None,
                    Some(Event::Buffering {
                        direction: Direction::Outgoing,
                        ..
                    }) => Some(()),
                    other => panic!("{other:?}"),
                }
            });
            let mut taken = 0;
            let mut heard = Vec::new();
            while taken < sent {
                assert_eq!(inbox.recv(LONG).unwrap().unwrap(), mail(taken));
                taken += 1;
                heard.extend(incoming().map(|event| (taken, event)));
            }
            assert!(inbox.recv(Wait::Poll).unwrap().is_none());
            heard.extend(incoming().map(|event| (taken, event)));
            let [
                (
                    at,
                    Event::Buffering {
                        direction: Direction::Incoming,
                        waiting_bytes,
                        limit_bytes,
                        ..
                    },
                ),
                (
                    end,
                    Event::Drained {
                        direction: Direction::Incoming,
                        ..
                    },
                ),
            ] = heard[..]
            else {
                panic!("round {round}: {heard:?}");
            };
            assert!(at < 300, "when it came to the log, not {at}");
            assert!(waiting_bytes >= limit_bytes / 2 && limit_bytes == LOG_BYTES.into());
            assert_eq!(end, sent);
            until("the end of the episode", || {
                // It returns credit when it sleeps.
                assert_eq!(receiver.next_event(Wait::millis(1)).unwrap(), None);
                match sender.next_event(Wait::millis(10)).unwrap() {
                    Some(Event::Drained {
                        direction: Direction::Outgoing,
                        ..
                    }) => Some(()),
                    None => None,
                    other => panic!("{other:?}"),
                }
            });
        }
    }
}

/// A program hears that messages wait, and that they were taken, once each.
#[test]
fn a_sender_hears_when_its_receiver_takes_nothing() {
    let _alone = alone();
    let namespace = namespace();
    let mut receiving = Receiving::start("receive", &namespace);
    let (manager, sender) = sender_to(&receiving.1, &namespace, Strategy::Proc);
    let news = || {
        loop {
            match manager.next_event(Wait::Poll).unwrap() {
                Some(Event::PeerArrived { .. }) => {}
                news => return news,
            }
        }
    };
    let link = link_to(&manager, receiving.1.destination.interface);
    for round in 1..3 {
        let log_use = || manager.session().log_use(link).unwrap();
        stop(receiving.0.id());
        let mut sent = 5_000 * (round - 1);
        while log_use().waiting_bytes < u64::from(LOG_BYTES / 2) {
            assert_eq!(news(), None, "not yet half");
            sender.send(&mail(sent), LONG).unwrap();
            sent += 1;
        }
        assert!(sent < 5_000 * round, "{sent}");
        match news() {
            Some(Event::Buffering {
                direction: Direction::Outgoing,
                waiting_bytes,
                limit_bytes,
                ..
            }) => assert!(waiting_bytes >= limit_bytes / 2 && limit_bytes == LOG_BYTES.into()),
            other => panic!("{other:?}"),
        }
        assert_eq!(news(), None, "once");
        while sent < 5_000 * round {
            sender.send(&mail(sent), LONG).unwrap();
            sent += 1;
        }
        go_on(receiving.0.id());
        receiving.take_until(sent);
        until("the end of the episode", || {
            let _ = manager.session().poll();
            // In a sleep, as it has nothing to send.
            news().or_else(|| manager.next_event(Wait::millis(10)).unwrap())
        });
        let used = log_use();
        assert_eq!((used.waiting_bytes, used.episodes), (0, round));
        assert!(used.most_bytes >= u64::from(LOG_BYTES / 2) && used.spilled_bytes > 0);
    }
}

/// A peer gets an eighth of what is left, or the least that a log has; the last one gets nothing.
#[test]
fn all_logs_together_have_a_limit() {
    let _alone = alone();
    let namespace = namespace();
    let receiver = open(options(&namespace, LOG_BYTES, 17 << 20), Strategy::Proc);
    let inbox = mailbox::Receiver::new(&receiver, MailboxOptions::default()).unwrap();
    let ticket = inbox.ticket();
    // Nobody takes what is sent.
    let most = |manager: &Manager<ProcessHost>| {
        let sender = mailbox::Sender::grow(manager, &ticket, LONG).unwrap();
        let bytes = [7; 8];
        let mut sent = 0_u64;
        let begun = Instant::now();
        loop {
            // Long beside the time for which a busy machine takes a processor away.
            match sender.send(&bytes, Wait::millis(200)) {
                Ok(_) => sent += 1,
                Err(SendError::WouldBlock { .. }) => break sent,
                Err(error) => panic!("{error}"),
            }
            assert!(begun.elapsed() < TIMEOUT);
        }
    };
    let peers: Vec<_> = (0..17)
        .map(|_| open(Options::default().in_namespace(&namespace), Strategy::Proc))
        .collect();
    let counts: Vec<_> = peers.iter().map(most).collect();
    let [first, second, .., before_last, last] = counts[..] else {
        panic!("{counts:?}");
    };
    assert!(first > second && before_last > 512, "{counts:?}");
    assert!(last <= 512, "a ring, and what waits to be sent: {counts:?}");
    // What ends gives back its part.
    drop(peers);
    until("a link that has ended", || {
        let _ = receiver.next_event(Wait::Poll);
        let session = receiver.session();
        (session.peers().count() == 0).then_some(())
    });
    let again = open(Options::default().in_namespace(&namespace), Strategy::Proc);
    assert!(most(&again) > second);
}

/// A receiver that takes at its pace is waited for, and the log stays unused.
#[test]
fn patience_outlasts_a_slow_receiver() {
    let _alone = alone();
    let namespace = namespace();
    let receiver = open(options(&namespace, LOG_BYTES, 1 << 30), Strategy::Proc);
    let mut inbox = mailbox::Receiver::new(&receiver, MailboxOptions::default()).unwrap();
    let mut patient = Options::default().in_namespace(&namespace);
    patient.patience = Duration::from_secs(30);
    let sender = open(patient, Strategy::Proc);
    let sender = mailbox::Sender::grow(&sender, &inbox.ticket(), LONG).unwrap();
    let mut sent = 0;
    for number in 0..2_000 {
        while sent < 2_000 && sender.send(&mail(sent), Wait::Poll).is_ok() {
            sent += 1;
        }
        let came = inbox.recv(LONG).unwrap().unwrap();
        assert_eq!(came, mail(number));
    }
    assert_eq!(present_bytes(), 0);
}
