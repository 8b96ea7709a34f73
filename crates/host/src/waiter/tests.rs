//! A wake is seen wherever the other side waits.

use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;

use rustix::event::{PollFd, PollFlags, Timespec};

use super::*;

fn is_readable(waiter: &Waiter) -> bool {
    let descriptor = waiter.descriptor().unwrap();
    let mut polled = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&Timespec::default())).unwrap() > 0
}

#[test]
fn a_descriptor_is_rung_once_for_each_wait_and_only_then() {
    let waiter = Waiter::new().unwrap();
    waiter.wake();
    assert!(!is_readable(&waiter), "nobody waits");
    for _ in 0..3 {
        waiter.prepare();
        assert!(waiter.is_awaited() && !is_readable(&waiter));
        waiter.wake();
        waiter.wake();
        assert!(!waiter.is_awaited() && is_readable(&waiter));
        // A waiter that was woken before it slept does not sleep.
        waiter.wait(None).unwrap();
        waiter.end();
        assert!(!is_readable(&waiter));
    }
    waiter.prepare();
    let deadline_ns = clock::now_ns() + 1_000_000;
    while clock::now_ns() < deadline_ns {
        waiter.wait(Some(deadline_ns)).unwrap();
    }
    waiter.end();
    assert!(!waiter.is_awaited() && !is_readable(&waiter));
}

/// Two threads that wait for each other, never until a deadline.
#[test]
fn no_ring_is_lost_between_two_sleepers() {
    const TURNS: u64 = 20_000;
    let waiters = [Waiter::new().unwrap(), Waiter::new().unwrap()];
    let turn = AtomicU64::new(0);
    let deadline_ns = clock::now_ns() + 100_000_000_000;
    let await_turn = |own: &Waiter, number| {
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
            await_turn(&waiters[side as usize], number);
            turn.store(number + 1, Ordering::Release);
            waiters[1 - side as usize].wake();
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
    let waiter = Waiter::at(Backend::Futex(EventFd::new().unwrap(), not_ours));
    waiter.prepare();
    assert!(matches!(waiter.wait(None), Err(HostError::Forked)));
}
