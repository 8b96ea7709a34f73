//! Handles that are dropped while a task waits for their owner: a peer waits for what they give
//! back, so the task is woken, though nothing comes.

use std::future::Future;

use hamlyn::Wait;
use hamlyn::loans::PublisherOptions;
use hamlyn::service::{CallError, ServiceOptions};
use hamlyn::stream::{self, StreamOptions};

use crate::support::LONG;
use crate::support::counted_tasks::{Scene, Task};

/// A task that waits in vain, until `drops` wakes it, which looks again and waits on.
fn is_woken_by(
    scene: &mut Scene,
    waits: impl Future<Output = ()> + 'static,
    drops: impl FnOnce(),
) -> Task<()> {
    let mut tasks = [Task::new(waits)];
    scene.begin(&mut tasks);
    drops();
    assert!(tasks[0].take_woken() > 0);
    assert!(tasks[0].poll().is_none());
    let [task] = tasks;
    task
}

#[test]
fn a_call_that_was_put_off_is_dropped() {
    let mut scene = Scene::open(Default::default());
    let _bystander = scene.bystander();
    let options = ServiceOptions::default();
    let mut service = scene.here.bind_service("service", options).unwrap();
    let mut client = scene.there.connect_service("here/service", LONG).unwrap();
    let call = client.start(b"?", LONG).unwrap();
    let deferred = service.next(LONG).unwrap().unwrap().defer();
    let waits = async move {
        let _ = service.next_async().await.map(drop);
    };
    let _task = is_woken_by(&mut scene, waits, || drop(deferred));
    let error = client.reply(&call, LONG).unwrap_err();
    assert!(matches!(error, CallError::Unanswered { .. }), "{error}");
}

#[test]
fn a_record_that_was_kept_is_dropped() {
    const PIECES: u32 = 4;
    let mut scene = Scene::open(Default::default());
    let _bystander = scene.bystander();
    let options = StreamOptions {
        pieces: PIECES,
        piece_bytes: 1024,
        limit_bytes: 4096,
        ahead: false,
    };
    let mut receiver = stream::Receiver::new(&scene.here, options).unwrap();
    let mut sender = stream::Sender::grow(&scene.there, &receiver.make_seed(), LONG).unwrap();
    let mut kept = Vec::new();
    for _ in 0..PIECES {
        sender.send(&[7; 1024], LONG).unwrap();
        scene.there.flush(LONG).unwrap();
        kept.push(receiver.recv(LONG).unwrap().unwrap().keep());
    }
    assert!(sender.send(&[8; 1024], Wait::Poll).is_err());
    let waits = async move {
        let _ = receiver.recv_async().await.map(drop);
    };
    let _task = is_woken_by(&mut scene, waits, || drop(kept));
    sender.send(&[8; 1024], LONG).unwrap();
}

#[test]
fn a_sample_that_was_kept_is_dropped() {
    let mut scene = Scene::open(Default::default());
    let _bystander = scene.bystander();
    let options = PublisherOptions {
        message_bytes: 64,
        chunks: 1,
        ..PublisherOptions::default()
    };
    let mut publisher = scene.there.bind_publisher("news", options).unwrap();
    let subscriber = scene.here.connect_subscriber("there/news", LONG);
    let mut subscriber = subscriber.unwrap();
    scene.here.flush(LONG).unwrap();
    assert_eq!(publisher.await_readers(1, LONG), Ok(1));
    publisher.loan(8, LONG).unwrap().publish(LONG).unwrap();
    let kept = subscriber.recv(LONG).unwrap().unwrap().keep();
    assert!(publisher.loan(8, Wait::Poll).is_err());
    let waits = async move {
        let _ = subscriber.recv_async().await.map(drop);
    };
    let _task = is_woken_by(&mut scene, waits, || drop(kept));
    publisher.loan(8, LONG).unwrap();
}
