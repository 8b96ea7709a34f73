//! Readers of a publisher with `SlowReaders::Latest` get the newest message without any further
//! call of the publisher, unless they get copies.

use crate::support;
use std::sync::mpsc::channel;

use crate::support::{LONG, Random, namespace, open, until};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::loans::{LoanError, Publisher, PublisherOptions, SlowReaders, Subscriber};
use hamlyn::{Manager, ManagerOptions, ReceiveError, Strategy, Wait};

const BYTES: u32 = 4096;
const CHUNKS: u32 = 4;
const DEPTH: u16 = 2;

fn open_as(host: Options, namespace: &str, strategy: Strategy) -> Manager<ProcessHost> {
    let options = ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    };
    hamlyn::open_with(host.in_namespace(namespace), options).unwrap()
}

fn publisher(namespace: &str, strategy: Strategy) -> (Manager<ProcessHost>, Publisher) {
    publisher_to(SlowReaders::Latest, namespace, strategy)
}

fn publisher_to(
    slow_readers: SlowReaders,
    namespace: &str,
    strategy: Strategy,
) -> (Manager<ProcessHost>, Publisher) {
    let manager = open_as(Options::named("publisher"), namespace, strategy);
    let options = PublisherOptions {
        message_bytes: BYTES,
        chunks: CHUNKS,
        depth: DEPTH,
        slow_readers,
        ..PublisherOptions::default()
    };
    let publisher = manager.bind_publisher("field", options).unwrap();
    (manager, publisher)
}

fn subscriber(manager: &Manager<ProcessHost>) -> Subscriber {
    manager.connect_subscriber("publisher/field", LONG).unwrap()
}

fn version(number: u64) -> Vec<u8> {
    let len = 8 + number as usize * 37 % (BYTES as usize - 8);
    Random::new(number + 1).bytes(len)
}

fn publish(publisher: &mut Publisher, number: u64) {
    let bytes = version(number);
    let mut loan = publisher.loan(bytes.len(), LONG).unwrap();
    loan.copy_from_slice(&bytes);
    assert_eq!(loan.publish(Wait::Poll).unwrap().number, number);
}

/// The number of the message that comes, which is whole.
fn read(subscriber: &mut Subscriber, wait: Wait) -> Option<u64> {
    let sample = subscriber.recv(wait).unwrap()?;
    assert!(sample.to_vec() == version(sample.number()));
    assert_eq!(sample.view().is_some(), sample.copied().is_none());
    Some(sample.number())
}

#[test]
fn a_reader_ends_at_the_newest_of_a_burst() {
    const VERSIONS: u64 = 1000;
    for strategy in [Strategy::Proc, Strategy::Np] {
        let namespace = namespace();
        let (_manager, mut publisher) = publisher(&namespace, strategy);
        let reader = open_as(Options::default(), &namespace, strategy);
        let mut subscriber = subscriber(&reader);
        assert_eq!(publisher.await_readers(1, LONG), Ok(1));
        let mut last = None;
        for number in 0..VERSIONS {
            publish(&mut publisher, number);
            if number % 100 == 3 {
                last = read(&mut subscriber, Wait::Poll).or(last);
            }
        }
        // The first receive has the newest already.
        assert_eq!(read(&mut subscriber, LONG), Some(VERSIONS - 1));
        assert!(last.unwrap() < VERSIONS - 1);
        for _ in 0..100 {
            assert_eq!(read(&mut subscriber, Wait::Poll), None, "{strategy:?}");
        }
        // All goes on as before, and comes back.
        publish(&mut publisher, VERSIONS);
        assert_eq!(read(&mut subscriber, LONG), Some(VERSIONS));
        until("all chunks", || {
            publisher.poll();
            assert_eq!(read(&mut subscriber, Wait::Poll), None);
            (publisher.chunks_free() == CHUNKS as usize).then_some(())
        });
    }
}

#[test]
fn a_reader_that_comes_after_the_last_call_gets_the_newest() {
    for strategy in [Strategy::Proc, Strategy::Np] {
        let namespace = namespace();
        let (_manager, mut publisher) = publisher(&namespace, strategy);
        for number in 0..3 {
            publish(&mut publisher, number);
        }
        let mut readers = Vec::new();
        for _ in 0..6 {
            let reader = open_as(Options::default(), &namespace, strategy);
            let mut subscriber = subscriber(&reader);
            assert_eq!(read(&mut subscriber, Wait::Poll), Some(2), "{strategy:?}");
            assert_eq!(read(&mut subscriber, Wait::Poll), None);
            assert!(subscriber.reads_in_place());
            assert_eq!(subscriber.lost(), 0);
            readers.push((subscriber, reader));
        }
        // The next one comes to all of them, though nobody waited for readers.
        publish(&mut publisher, 3);
        if strategy == Strategy::Proc {
            assert_eq!(publisher.readers(), readers.len());
        }
        for (subscriber, _) in &mut readers {
            assert_eq!(read(subscriber, LONG), Some(3));
        }
    }
}

#[test]
fn nothing_comes_before_the_first() {
    let namespace = namespace();
    let (_manager, mut publisher) = publisher(&namespace, Strategy::Proc);
    let reader = open(&namespace);
    let mut subscriber = subscriber(&reader);
    assert_eq!(read(&mut subscriber, Wait::Poll), None);
    assert_eq!(read(&mut subscriber, Wait::millis(30)), None);
    let loan = publisher.loan(9, Wait::Poll).unwrap();
    assert_eq!(read(&mut subscriber, Wait::Poll), None);
    drop(loan);
    publish(&mut publisher, 0);
    assert_eq!(read(&mut subscriber, LONG), Some(0));
}

#[test]
fn a_reader_that_keeps_up_reads_in_place() {
    let namespace = namespace();
    let (_manager, mut publisher) = publisher(&namespace, Strategy::Proc);
    let reader = open(&namespace);
    let mut subscriber = subscriber(&reader);
    assert_eq!(publisher.await_readers(1, LONG), Ok(1));
    for number in 0..200 {
        publish(&mut publisher, number);
        let sample = subscriber.recv(LONG).unwrap().unwrap();
        assert_eq!(sample.number(), number);
        assert!(sample.view().is_some() && sample.to_vec() == version(number));
    }
}

/// A reader that keeps as much as it may, and sleeps: nothing can be announced to it.
#[test]
fn a_sleeping_reader_without_room_is_woken() {
    for strategy in [Strategy::Proc, Strategy::Np] {
        let namespace = namespace();
        let (_manager, mut publisher) = publisher(&namespace, strategy);
        let (say, said) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let say = say;
                let reader = open_as(Options::default(), &namespace, strategy);
                let mut subscriber = subscriber(&reader);
                let mut kept = Vec::new();
                for _ in 0..100 {
                    let sample = subscriber.recv(Wait::Forever).unwrap().unwrap();
                    let number = sample.number();
                    assert!(sample.to_vec() == version(number));
                    if sample.view().is_some() {
                        kept.push(sample.keep());
                    }
                    say.send(number).unwrap();
                }
                // A network processor may announce late, so that the head is seen first.
                assert!(strategy == Strategy::Np || kept.len() == usize::from(DEPTH));
            });
            assert_eq!(publisher.await_readers(1, LONG), Ok(1));
            for number in 0..100 {
                publish(&mut publisher, number);
                assert_eq!(said.recv_timeout(support::TIMEOUT), Ok(number));
            }
        });
    }
}

#[test]
fn the_newest_stays_while_the_next_is_written_and_after_the_end() {
    let namespace = namespace();
    let (manager, mut publisher) = publisher(&namespace, Strategy::Proc);
    let reader = open(&namespace);
    let mut subscriber = subscriber(&reader);
    for number in 0..10 {
        publish(&mut publisher, number);
        // As many as there are; but the newest is none of them.
        for _ in 0..CHUNKS + 1 {
            let mut loan = publisher.loan(BYTES as usize, Wait::Poll).unwrap();
            loan.fill(0xaa);
        }
    }
    let mut loan = publisher.loan(BYTES as usize, Wait::Poll).unwrap();
    loan.fill(0xbb);
    assert_eq!(read(&mut subscriber, Wait::Poll), Some(9));
    drop(loan);
    for number in 10..20 {
        publish(&mut publisher, number);
    }
    // Nothing is lost with the publisher, though the reader has no room.
    assert_eq!(publisher.flush(Wait::Poll), Ok(true));
    assert_eq!(publisher.readers(), 1);
    drop((publisher, manager));
    assert_eq!(read(&mut subscriber, LONG), Some(19));
    let end = until("the end", || subscriber.recv(LONG).err());
    assert!(
        matches!(end, ReceiveError::Closed | ReceiveError::PeerLost(_)),
        "{end:?}"
    );
}

/// The program has as many loans as it asked for, whatever is newest.
#[test]
fn the_newest_is_beside_the_chunks_that_were_asked_for() {
    let namespace = namespace();
    let (_manager, mut publisher) = publisher(&namespace, Strategy::Proc);
    assert_eq!(publisher.chunks_free(), CHUNKS as usize);
    publish(&mut publisher, 0);
    assert_eq!(publisher.chunks_free(), CHUNKS as usize);
    let reader = open(&namespace);
    let mut subscriber = subscriber(&reader);
    assert_eq!(publisher.await_readers(1, LONG), Ok(1));
    let mut kept = Vec::new();
    for number in 1..=u64::from(DEPTH) {
        publish(&mut publisher, number);
        kept.push(subscriber.recv(LONG).unwrap().unwrap().keep());
    }
    publish(&mut publisher, 3);
    // Two are kept, one is the newest, and so held for the reader as well.
    assert_eq!(
        publisher.chunks_free(),
        CHUNKS as usize - usize::from(DEPTH)
    );
    let too_long = publisher.loan(BYTES as usize + 1, Wait::Poll).unwrap_err();
    assert!(matches!(too_long, LoanError::TooLong { .. }));
    assert_eq!(read(&mut subscriber, Wait::Poll), Some(3));
}

/// They hold messages of different ages, more of them than there are chunks.
#[test]
fn readers_that_keep_samples_do_not_make_the_publisher_wait() {
    const READERS: usize = 5;
    const VERSIONS: u64 = 60;
    for (slow_readers, strategy) in [SlowReaders::Latest, SlowReaders::Lose]
        .into_iter()
        .flat_map(|slow| [Strategy::Proc, Strategy::Np].map(|strategy| (slow, strategy)))
    {
        let namespace = namespace();
        let (_manager, mut publisher) = publisher_to(slow_readers, &namespace, strategy);
        let reader = open_as(Options::default(), &namespace, strategy);
        let mut subscribers: Vec<Subscriber> = Vec::new();
        for readers in 1..=READERS {
            subscribers.push(subscriber(&reader));
            assert_eq!(publisher.await_readers(readers, LONG), Ok(readers));
        }
        let mut kept = Vec::new();
        for number in 0..VERSIONS {
            let bytes = version(number);
            let mut loan = publisher.loan(bytes.len(), Wait::Poll).unwrap();
            loan.copy_from_slice(&bytes);
            loan.publish(Wait::Poll).unwrap();
            let subscriber = &mut subscribers[number as usize % READERS];
            kept.extend(
                subscriber
                    .recv(Wait::Poll)
                    .unwrap()
                    .map(|sample| sample.keep()),
            );
        }
        for sample in &kept {
            let mut bytes = vec![0; sample.len()];
            sample.read_at(0, &mut bytes).unwrap();
            assert!(bytes == version(sample.number()), "{}", sample.number());
        }
        if slow_readers == SlowReaders::Latest {
            for subscriber in &mut subscribers {
                let newest = read(subscriber, Wait::Poll);
                assert!(matches!(newest, None | Some(59)), "{newest:?}");
            }
        }
        drop(kept);
        until("all chunks", || {
            publisher.poll();
            for subscriber in &mut subscribers {
                read(subscriber, Wait::Poll);
            }
            (publisher.chunks_free() == CHUNKS as usize).then_some(())
        });
    }
}

/// It has no pool, and gets the newest with a call of the publisher, if it comes late, too.
#[test]
fn a_late_reader_that_gets_copies_has_the_newest_after_a_poll() {
    let namespace = namespace();
    let (manager, mut publisher) = publisher(&namespace, Strategy::Proc);
    publish(&mut publisher, 0);
    let mut subscriber = subscriber(&manager);
    assert!(!subscriber.reads_in_place());
    let number = until("the newest", || {
        publisher.poll();
        read(&mut subscriber, Wait::Poll)
    });
    assert_eq!(number, 0);
}
