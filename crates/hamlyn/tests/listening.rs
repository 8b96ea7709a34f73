//! A program that computes, and is rung for: it makes no call, and a doorbell tells of messages.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::Duration;

use hamlyn::host::process::Options;
use hamlyn::{Listening, ManagerOptions, NewPort, Session, Wait};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const WAIT: Wait = Wait::millis(20_000);

fn options(test: &str) -> Options {
    Options::default().in_namespace(&format!("{test}-{}", std::process::id()))
}

/// Listens until nothing has come.
fn listen(session: &mut Session<'_>) {
    let is_quiet = |listening: Listening| listening.is_quiet;
    assert!((0..100).any(|_| is_quiet(session.listen())));
    assert!(session.is_listening());
}

/// The doorbells, which are looked at while no call is made.
fn doorbells(session: &Session<'_>) -> Vec<OwnedFd> {
    let mut all = Vec::new();
    session.each_doorbell(|descriptor| all.push(descriptor.try_clone_to_owned().unwrap()));
    all
}

fn is_rung(doorbells: &[OwnedFd], span: Duration) -> bool {
    assert_eq!(doorbells.len(), 1);
    let doorbell = doorbells[0].as_fd();
    let span = Timespec::try_from(span).unwrap();
    poll(&mut [PollFd::new(&doorbell, PollFlags::IN)], Some(&span)).unwrap() > 0
}

/// Each announcement is rung for once, also in the middle of many messages, and takes the rings of
/// before.
#[test]
fn each_announcement_is_rung_for() {
    let here = hamlyn::open_with(options("rung"), ManagerOptions::default()).unwrap();
    let mut session = here.session();
    let mut port = session.open_port(NewPort::new()).unwrap();
    session.reserve_for_interrupts(&mut port);
    let ticket = port.ticket();
    let (tell, told) = channel::<u32>();
    let (said, hear) = channel::<()>();
    let sender = std::thread::spawn(move || {
        let there = hamlyn::open_with(options("rung"), ManagerOptions::default()).unwrap();
        let mut session = there.session();
        let target = session.target(&ticket, WAIT).unwrap();
        while let Ok(messages) = told.recv() {
            for _ in 0..messages {
                session.send_message(&target, 0, &[], WAIT).unwrap();
            }
            assert!(session.flush(WAIT).unwrap());
            said.send(()).unwrap();
        }
    });
    tell.send(1).unwrap();
    let first = session.recv_message(&mut port, WAIT).unwrap();
    first.expect("a message comes").dispose();
    hear.recv().unwrap();
    let doorbells = doorbells(&session);
    for round in 0..200 {
        listen(&mut session);
        assert!(!is_rung(&doorbells, Duration::ZERO), "round {round}");
        let messages = 1 + round % 3;
        tell.send(messages).unwrap();
        assert!(
            is_rung(&doorbells, Duration::from_secs(20)),
            "round {round}"
        );
        hear.recv().unwrap();
        for _ in 0..messages {
            let message = session.next_message(&mut port).unwrap();
            message.expect("it is there").dispose();
        }
        assert!(!session.is_listening());
    }
    // Nobody rings for a program that has taken it back.
    listen(&mut session);
    session.end_wait();
    tell.send(1).unwrap();
    hear.recv().unwrap();
    assert!(!is_rung(&doorbells, Duration::ZERO));
    drop(tell);
    sender.join().unwrap();
}

/// A call that sleeps ends the announcement, and says so.
#[test]
fn a_sleep_ends_it_and_tells() {
    let mut options = options("told");
    options.spin_ns = Some(0);
    let here = hamlyn::open_with(options, ManagerOptions::default()).unwrap();
    let mut session = here.session();
    let mut port = session.open_port(NewPort::new()).unwrap();
    let ended = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&ended);
    session.set_listener(Some(Box::new(move || {
        counted.fetch_add(1, Relaxed);
    })));
    listen(&mut session);
    assert_eq!(ended.load(Relaxed), 0);
    let message = session.recv_message(&mut port, Wait::millis(20)).unwrap();
    assert!(message.is_none());
    assert!(!session.is_listening());
    assert!(ended.load(Relaxed) > 0);
    let before = ended.load(Relaxed);
    session.end_wait();
    assert_eq!(ended.load(Relaxed), before, "it was over");
    drop(session);
    // A manager that a call has in hand is not to be interrupted.
    assert!(here.interrupt().is_some());
    let session = here.session();
    assert!(here.interrupt().is_none());
    drop(session);
}
