//! Publishers and readers of loaned messages that are killed at any instant: what they had comes
//! back, and nobody else notices.

mod support;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::loans::{PublisherOptions, SlowReaders};
use hamlyn::{Manager, ManagerOptions, ReceiveError, Wait};
use support::actor::{Actor, go_on, listen, role, say, stop};
use support::{LONG, Random, descriptors, namespace, open, until};

const CHUNKS: u32 = 16;
const BYTES: usize = 20_000;

const OPTIONS: PublisherOptions = PublisherOptions {
    message_bytes: BYTES as u32,
    chunks: CHUNKS,
    depth: 4,
    readers: 8,
    slow_readers: SlowReaders::Block,
};

fn named(namespace: &str, name: &str) -> Manager<ProcessHost> {
    let options = Options::named(name).in_namespace(namespace);
    hamlyn::open_with(options, ManagerOptions::default()).unwrap()
}

/// What the children do.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Some((role, namespace)) = role() else {
        return;
    };
    match role.as_str() {
        "publish" => publish_for_ever(&namespace),
        "read" => read_for_ever(&namespace),
        "publish once" => publish_once(&namespace),
        other => panic!("{other}"),
    }
}

fn publish_for_ever(namespace: &str) {
    let name = String::from_utf8(listen()).unwrap();
    let manager = named(namespace, &name);
    let mut publisher = manager.bind_publisher("frames", OPTIONS).unwrap();
    say(b"bound");
    for number in 0_u64.. {
        let mut loan = publisher
            .loan(8 + number as usize % (BYTES - 7), LONG)
            .unwrap();
        loan.fill(number as u8);
        // While nobody reads, too.
        let _ = loan.publish(LONG).unwrap();
    }
}

fn publish_once(namespace: &str) {
    let manager = named(namespace, "publisher");
    let mut publisher = manager.bind_publisher("frames", OPTIONS).unwrap();
    say(b"bound");
    assert_eq!(publisher.await_readers(1, LONG), Ok(1));
    for byte in [1, 2] {
        let mut loan = publisher.loan(8, LONG).unwrap();
        loan.fill(byte);
        loan.publish(LONG).unwrap();
    }
    say(b"published");
    listen();
}

fn read_for_ever(namespace: &str) {
    let manager = open(namespace);
    let mut subscriber = manager
        .connect_subscriber("publisher/frames", LONG)
        .unwrap();
    let mut kept = Vec::new();
    let mut random = Random::new(u64::from(std::process::id()));
    say(b"connected");
    loop {
        let Some(sample) = subscriber.recv(LONG).unwrap() else {
            continue;
        };
        let bytes = sample.to_vec();
        assert!(bytes.iter().all(|byte| *byte == bytes[0]));
        kept.push(sample.keep());
        if kept.len() > random.below(3) as usize {
            kept.clear();
        }
    }
}

/// A publisher whose process is stopped hands its pool over when it goes on: nothing that it has
/// announced is lost.
#[test]
fn a_pool_that_comes_late_loses_no_message() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let namespace = namespace();
    let mut actor = Actor::start("publish once", &namespace);
    assert_eq!(actor.hear(), b"bound");
    let reader = open(&namespace);
    let mut subscriber = reader.connect_subscriber("publisher/frames", LONG).unwrap();
    assert_eq!(actor.hear(), b"published");
    stop(actor.id());
    for wait in [Wait::Poll, Wait::millis(300), Wait::Poll] {
        assert!(subscriber.recv(wait).unwrap().is_none());
    }
    go_on(actor.id());
    for byte in [1, 2] {
        let sample = subscriber.recv(LONG).unwrap().expect("it was announced");
        assert_eq!(sample.to_vec(), [byte; 8]);
    }
    actor.tell(b"end");
    assert!(actor.ended());
    let ended = until("the end", || subscriber.recv(Wait::millis(100)).err());
    assert!(
        matches!(ended, ReceiveError::Closed | ReceiveError::PeerLost(_)),
        "{ended}"
    );
}

/// Descriptors are counted, so the tests of this file take turns.
static ALONE: Mutex<()> = Mutex::new(());

/// How many descriptors were open after one of the first rounds, at most: what is opened once is
/// open then.
#[derive(Default)]
struct OpenDescriptors(usize);

impl OpenDescriptors {
    fn check(&mut self, round: u64) {
        let now = descriptors();
        match round {
            0..=2 => self.0 = self.0.max(now),
            _ => assert!(now <= self.0 + 2, "{now} {}", self.0),
        }
    }
}

#[test]
fn readers_that_are_killed_at_any_instant_leave_nothing() {
    const ROUNDS: u64 = 30;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let namespace = namespace();
    let manager = named(&namespace, "publisher");
    let mut publisher = manager.bind_publisher("frames", OPTIONS).unwrap();
    let other = open(&namespace);
    let mut bystander = other.connect_subscriber("publisher/frames", LONG).unwrap();
    assert_eq!(publisher.await_readers(1, LONG), Ok(1));
    let mut random = Random::new(1);
    let mut published = 0_u64;
    let mut open = OpenDescriptors::default();
    for round in 0..ROUNDS {
        let mut actor = Actor::start("read", &namespace);
        assert_eq!(actor.hear(), b"connected");
        assert_eq!(publisher.await_readers(2, LONG), Ok(2));
        let last = published + random.below(400);
        let mut is_killed = false;
        // It is killed in the middle, and the publisher goes on: those who are there get
        // everything.
        let end = last + 50;
        while published < end {
            if published >= last && !is_killed {
                random.dawdle(Duration::from_micros(200));
                actor.kill();
                is_killed = true;
            }
            let mut loan = publisher.loan(BYTES, LONG).unwrap();
            loan.fill(published as u8);
            loan.publish(LONG).unwrap();
            let sample = bystander.recv(LONG).unwrap().unwrap();
            assert_eq!(sample.number(), published);
            let bytes = sample.to_vec();
            assert!(bytes.iter().all(|byte| *byte == published as u8));
            published += 1;
        }
        actor.ended();
        until("all chunks", || {
            publisher.poll();
            (publisher.readers() == 1 && publisher.chunks_free() == CHUNKS as usize).then_some(())
        });
        open.check(round);
    }
    assert_eq!(
        (publisher.lost(), publisher.misbehaved(), bystander.lost()),
        (0, 0, 0)
    );
}

#[test]
fn a_publisher_that_is_killed_at_any_instant_is_told_after_its_last_message() {
    const ROUNDS: u64 = 30;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let namespace = namespace();
    let manager = open(&namespace);
    let mut random = Random::new(2);
    let mut open = OpenDescriptors::default();
    for round in 0..ROUNDS {
        let mut actor = Actor::start("publish", &namespace);
        let name = format!("publisher{round}");
        actor.tell(name.as_bytes());
        assert_eq!(actor.hear(), b"bound");
        let to = format!("{name}/frames");
        let mut subscriber = manager.connect_subscriber(&to, LONG).unwrap();
        let last = random.below(300);
        let (mut read, mut next) = (0, None);
        let mut kept = Vec::new();
        let lost = loop {
            if read == last {
                random.dawdle(Duration::from_micros(200));
                actor.kill();
            }
            match subscriber.recv(LONG) {
                Ok(Some(sample)) => {
                    assert!(next.is_none_or(|next| next == sample.number()));
                    next = Some(sample.number() + 1);
                    let bytes = sample.to_vec();
                    assert!(bytes.iter().all(|byte| *byte == sample.number() as u8));
                    kept.push(sample.keep());
                    if kept.len() > 2 {
                        kept.clear();
                    }
                    read += 1;
                }
                Ok(None) => panic!("neither a message nor the loss"),
                Err(error) => break error,
            }
        };
        assert!(matches!(lost, ReceiveError::PeerLost(_)), "{lost}");
        assert!(subscriber.recv(Wait::Poll).is_err());
        actor.ended();
        // The memory of a dead publisher stays as it was, for as long as it is looked at.
        for sample in &kept {
            let mut bytes = vec![0; sample.len()];
            sample.read_at(0, &mut bytes).unwrap();
            assert!(bytes.iter().all(|byte| *byte == sample.number() as u8));
        }
        drop((kept, subscriber));
        manager.poll_nowait().unwrap();
        open.check(round);
    }
}
