//! Two interfaces that never poll: whatever they wait for, they sleep. What is missed here is
//! missed for ever, so a lost wake-up shows as a wait that ends without result.

use std::time::Duration;

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions, Strategy, Wait, stream, tagged_write};

const WAIT: Wait = Wait::millis(20_000);

fn sleeper(test: &str) -> Manager<ProcessHost> {
    let mut options = Options::default().in_namespace(&format!("{test}-{}", std::process::id()));
    options.spin_ns = Some(0);
    hamlyn::open_with(options, ManagerOptions::default()).expect("an interface opens")
}

/// The work queue fills, empties in the sender's last look before sleep, and fills again.
#[test]
fn flood_of_short_messages_between_sleepers_is_complete() {
    const MESSAGES: u64 = 50_000;
    let here = sleeper("flood");
    let mut receiver = tagged_write::Receiver::new(&here, 512, 8192).expect("a receiver");
    let ticket = receiver.ticket();
    let sender = std::thread::spawn(move || {
        let there = sleeper("flood");
        let sender = tagged_write::Sender::grow(&there, &ticket, WAIT).expect("a sender");
        for tag in 0..MESSAGES {
            let data = tag.to_le_bytes();
            sender
                .send(tag % 64 * 8, &data, tag, WAIT)
                .expect("it is sent");
        }
        assert_eq!(there.session().flush(WAIT), Ok(true));
    });
    for expected in 0..MESSAGES {
        let tag = receiver.get_tag(WAIT).expect("no error");
        assert_eq!(tag, Some(expected));
    }
    sender.join().expect("the sender ends");
}

/// Records that need all pieces, so that the sender waits for every release.
#[test]
fn large_records_between_sleepers_are_complete() {
    const RECORDS: usize = 300;
    let here = sleeper("records");
    let options = stream::StreamOptions {
        pieces: 4,
        piece_bytes: 64 << 10,
        limit_bytes: 256 << 10,
        ahead: false,
    };
    let mut receiver = stream::Receiver::new(&here, options).expect("a receiver");
    let seed = receiver.make_seed();
    let sender = std::thread::spawn(move || {
        let there = sleeper("records");
        let mut sender = stream::Sender::grow(&there, &seed, WAIT).expect("a sender");
        for index in 0..RECORDS {
            let record = vec![index as u8; (index * 7919) % (256 << 10)];
            sender.send(&record, WAIT).expect("it is sent");
        }
        sender.close(WAIT).expect("it closes");
    });
    for index in 0..RECORDS {
        let record = receiver.recv(WAIT).expect("no error").expect("a record");
        let bytes = &*record;
        assert_eq!(bytes.len(), (index * 7919) % (256 << 10));
        assert!(bytes.iter().all(|&byte| byte == index as u8));
        drop(record);
    }
    sender.join().expect("the sender ends");
}

/// An application falls asleep while its network processor, awake, puts the answer into its queue.
#[test]
fn answers_are_not_slept_upon_when_a_network_processor_receives() {
    const ROUND_TRIPS: u64 = 20_000;
    const DEADLINE: Duration = Duration::from_secs(100);
    for strategy in [Strategy::Np, Strategy::Inject, Strategy::Receive] {
        let namespace = format!("answers-{}-{}", strategy.name(), std::process::id());
        let open = move || {
            let mut options = Options::default().in_namespace(&namespace);
            options.spin_ns = Some(5_000);
            let manager = ManagerOptions {
                strategy,
                ..ManagerOptions::default()
            };
            hamlyn::open_shared(options, manager).expect("an interface opens")
        };
        let (here, there) = (open(), open());
        let mut ours = tagged_write::Receiver::new(&here, 64, 64).expect("a receiver");
        let mut theirs = tagged_write::Receiver::new(&there, 64, 64).expect("a receiver");
        let (to_us, to_them) = (ours.ticket(), theirs.ticket());
        let (done, is_done) = std::sync::mpsc::channel();
        let leads = done.clone();
        // The waits are for ever: at a deadline a sleeper would look again and find what it missed.
        std::thread::spawn(move || {
            let sender = tagged_write::Sender::grow(&here, &to_them, WAIT).expect("a sender");
            for turn in 0..ROUND_TRIPS {
                let sent = sender.send(0, &[1; 16], turn, Wait::Forever);
                sent.expect("it is sent");
                let answer = ours.get_tag(Wait::Forever).expect("no error");
                assert_eq!(answer, Some(turn));
            }
            leads.send(here).expect("it is waited for");
        });
        std::thread::spawn(move || {
            let sender = tagged_write::Sender::grow(&there, &to_us, WAIT).expect("a sender");
            for turn in 0..ROUND_TRIPS {
                let asked = theirs.get_tag(Wait::Forever).expect("no error");
                assert_eq!(asked, Some(turn));
                let sent = sender.send(0, &[2; 16], turn, Wait::Forever);
                sent.expect("it is sent");
            }
            done.send(there).expect("it is waited for");
        });
        // Both interfaces live until the last answer is there.
        let first = is_done.recv_timeout(DEADLINE);
        let second = is_done.recv_timeout(DEADLINE);
        assert!(
            first.is_ok() && second.is_ok(),
            "{strategy:?}: a message was slept upon"
        );
    }
}

/// A program that waits at a fence falls asleep while its peer, which sleeps too, answers; and its
/// peer's answer needs no other message.
#[test]
fn fences_are_not_slept_upon() {
    const ROUNDS: u64 = 5_000;
    const DEADLINE: Duration = Duration::from_secs(100);
    for strategy in Strategy::ALL {
        let namespace = format!("fences-{}-{}", strategy.name(), std::process::id());
        let open = move || {
            let mut options = Options::default().in_namespace(&namespace);
            options.spin_ns = Some(0);
            let manager = ManagerOptions {
                strategy,
                ..ManagerOptions::default()
            };
            hamlyn::open_shared(options, manager).expect("an interface opens")
        };
        let (here, there) = (open(), open());
        let mut tags =
            tagged_write::Receiver::new(&here, 64, 2 * ROUNDS as usize).expect("a receiver");
        let ticket = tags.ticket();
        let (done, is_done) = std::sync::mpsc::channel();
        let sends = done.clone();
        // The waits are for ever: at a deadline a sleeper would look again and find what it missed.
        std::thread::spawn(move || {
            let sender = tagged_write::Sender::grow(&there, &ticket, WAIT).expect("a sender");
            for turn in 0..ROUNDS {
                sender
                    .send(0, &[1; 16], turn, Wait::Forever)
                    .expect("it is sent");
                let fenced = match turn % 2 {
                    0 => sender.fence(Wait::Forever),
                    _ => there.fence(Wait::Forever),
                };
                assert_eq!(fenced, Ok(()));
            }
            sender
                .send(0, &[1; 16], ROUNDS, Wait::Forever)
                .expect("it is sent");
            sends.send(there).expect("it is waited for");
        });
        std::thread::spawn(move || {
            for turn in 0..=ROUNDS {
                assert_eq!(tags.get_tag(Wait::Forever), Ok(Some(turn)));
            }
            done.send(here).expect("it is waited for");
        });
        // Both interfaces live until the last answer is there.
        let first = is_done.recv_timeout(DEADLINE);
        let second = is_done.recv_timeout(DEADLINE);
        assert!(
            first.is_ok() && second.is_ok(),
            "{strategy:?}: a fence was slept upon"
        );
    }
}
