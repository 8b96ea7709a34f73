//! A bell is heard wherever the other side waits.

use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;

use rustix::event::{PollFd, PollFlags, Timespec};

use super::*;

fn is_readable(bell: &Bell) -> bool {
    let descriptor = bell.descriptor().unwrap();
    let mut polled = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&Timespec::default())).unwrap() > 0
}

#[test]
fn a_descriptor_is_rung_once_for_each_wait_and_only_then() {
    let bell = Bell::new().unwrap();
    bell.ring();
    assert!(!is_readable(&bell), "nobody waits");
    for _ in 0..3 {
        bell.prepare();
        assert!(bell.is_awaited() && !is_readable(&bell));
        bell.ring();
        bell.ring();
        assert!(!bell.is_awaited() && is_readable(&bell));
        // Who was rung for before it slept does not sleep.
        bell.wait(None).unwrap();
        bell.end();
        assert!(!is_readable(&bell));
    }
    bell.prepare();
    let deadline_ns = clock::now_ns() + 1_000_000;
    while clock::now_ns() < deadline_ns {
        bell.wait(Some(deadline_ns)).unwrap();
    }
    bell.end();
    assert!(!bell.is_awaited() && !is_readable(&bell));
}

/// Two threads that wait for each other, never until a deadline.
#[test]
fn no_ring_is_lost_between_two_sleepers() {
    const TURNS: u64 = 20_000;
    let bells = [Bell::new().unwrap(), Bell::new().unwrap()];
    let turn = AtomicU64::new(0);
    let deadline_ns = clock::now_ns() + 100_000_000_000;
    let await_turn = |own: &Bell, number| {
        while turn.load(Ordering::Acquire) != number {
            own.prepare();
            if turn.load(Ordering::Acquire) != number {
                own.wait(Some(deadline_ns)).unwrap();
            }
            own.end();
            assert!(clock::now_ns() < deadline_ns, "it slept through its turn");
        }
    };
    let play = |side: u64| {
        for number in (side..TURNS).step_by(2) {
            await_turn(&bells[side as usize], number);
            turn.store(number + 1, Ordering::Release);
            bells[1 - side as usize].ring();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| play(0));
        play(1);
    });
    assert_eq!(turn.load(Ordering::Relaxed), TURNS);
}

#[test]
fn a_forked_child_is_told_that_it_cannot_wait() {
    let not_ours = std::process::id() + 1;
    let bell = Bell::at(Place::Here(Event::new().unwrap(), not_ours));
    bell.prepare();
    assert!(matches!(bell.wait(None), Err(HostError::Forked)));
}
