//! Who may be interrupted, by which signal, and until when.

use std::mem::zeroed;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use hamlyn::host::process::Options;
use hamlyn::{ManagerOptions, Strategy, Wait};
use hamlyn_udm::{Error, Group, GroupOptions, SignalOptions, Udm, UdmOptions};

use super::{LONG, Seen, by_signal, compute_until, finish, group, open, open_in};
use super::{start, unique};

fn action_of(signal: i32) -> usize {
    // SAFETY: all zero is a good value, and the call only reads.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        assert_eq!(libc::sigaction(signal, null(), &raw mut action), 0);
        action.sa_sigaction
    }
}

fn set_action(signal: i32, handler: usize) {
    // SAFETY: all zero is a good value, and the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = handler;
        assert_eq!(
            libc::sigaction(signal, &raw const action, std::ptr::null_mut()),
            0
        );
    }
}

extern "C" fn nothing(_: i32) {}

/// A node alone, with that signal.
fn alone(name: &str, signal: i32) -> Result<hamlyn_udm::Signals<super::State>, Error> {
    let (udm, _) = open(&unique(name), 1, 0);
    // SAFETY: the handlers do only what the handler of a signal may do.
    unsafe { udm.with_signals(SignalOptions::of(signal)) }
}

#[test]
fn a_wrong_signal_is_refused_by_name() {
    for signal in [
        0,
        -1,
        libc::SIGKILL,
        libc::SIGTERM,
        libc::SIGCHLD,
        libc::SIGRTMIN() + 3,
    ] {
        let refused = alone(&format!("wrong{signal}"), signal).err();
        assert_eq!(refused, Some(Error::BadSignal { signal }));
    }
    set_action(libc::SIGUSR1, nothing as *const () as usize);
    let refused = alone("taken", libc::SIGUSR1).err();
    let signal = libc::SIGUSR1;
    assert_eq!(refused, Some(Error::SignalInUse { signal }));
    assert_eq!(action_of(signal), nothing as *const () as usize);
    set_action(signal, libc::SIG_DFL);
    let signals = alone("free", signal).unwrap();
    assert_eq!(signals.signal(), signal);
}

/// The last end point of a signal gives it back, also one that is pending and would end a process.
#[test]
fn the_action_of_a_signal_is_restored() {
    let signal = libc::SIGUSR2;
    for before in [libc::SIG_DFL, libc::SIG_IGN] {
        set_action(signal, before);
        let first = alone("restores-1", signal).unwrap();
        let second = alone("restores-2", signal).unwrap();
        let ours = action_of(signal);
        assert_ne!(ours, before);
        drop(first);
        assert_eq!(action_of(signal), ours);
        // SAFETY: a set of this function; the signal is handled, or pending.
        unsafe {
            let mut set = zeroed();
            libc::sigaddset(&raw mut set, signal);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::raise(signal);
            drop(second);
            assert_eq!(action_of(signal), before);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        }
    }
}

#[test]
fn an_interface_interrupts_for_one_end_point_without_a_network_processor() {
    let base = unique("one");
    let mut asker = start("two", &base, 2, 1, 50);
    let group = group(&base, 2, 0);
    let seen = Arc::new(Seen::default());
    let udm = open_in(&group, Arc::clone(&seen));
    let signals = by_signal(udm);
    assert_eq!(asker.hear(), b"ready");
    compute_until(&seen, 50);
    finish(&signals);
    // The other end point is refused, and the first one goes on.
    let mut other = Udm::open(&group, "other", UdmOptions::default(), (), LONG).unwrap();
    other.barrier(LONG).unwrap();
    assert!(other.flush(LONG).unwrap());
    // It sleeps, which ends what the first one has announced.
    assert!(!other.await_message(Wait::millis(50)).unwrap());
    // SAFETY: it has no handlers.
    let refused = unsafe { other.with_signals(SignalOptions::default()) };
    assert!(matches!(refused.err(), Some(Error::NoSignals { .. })));
    asker.tell(b"go");
    compute_until(&seen, 100);
    finish(&signals);
    let processor = ManagerOptions {
        strategy: Strategy::Np,
        ..ManagerOptions::default()
    };
    let name = unique("np");
    let manager = hamlyn::open_with(Options::named(&name), processor).unwrap();
    let options = GroupOptions {
        name: name.clone(),
        me: 0,
        addresses: vec![name],
    };
    let group = Group::new(manager, options).unwrap();
    let udm = Udm::open(&group, "main", UdmOptions::default(), (), LONG).unwrap();
    // SAFETY: it has no handlers.
    let refused = unsafe { udm.with_signals(SignalOptions::default()) };
    assert!(matches!(refused.err(), Some(Error::NoSignals { .. })));
}

/// End points of two threads interrupt each its own.
#[test]
fn each_thread_is_interrupted_for_its_own() {
    let bases = [unique("thread-1"), unique("thread-2")];
    let mut askers = [0, 1].map(|at| start("asker", &bases[at], 2, 1, 300));
    for asker in &mut askers {
        // Each opens when the thread below does.
        let _ = asker.id();
    }
    std::thread::scope(|scope| {
        for base in &bases {
            scope.spawn(move || {
                let (udm, seen) = open(base, 2, 0);
                let signals = by_signal(udm);
                compute_until(&seen, 300);
                assert_eq!(seen.wrong.load(Relaxed), 0);
                finish(&signals);
            });
        }
    });
}

/// In a forked child the signal does nothing, and the parent is interrupted as before.
#[test]
fn a_forked_child_handles_nothing() {
    let base = unique("fork");
    let mut asker = start("asker", &base, 2, 1, 400);
    let (udm, seen) = open(&base, 2, 0);
    let signals = by_signal(udm);
    assert_eq!(asker.hear(), b"ready");
    compute_until(&seen, 100);
    // SAFETY: the child makes calls that handlers of signals may make, and ends without running
    // anything of the parent's.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let before = seen.handled.load(Relaxed);
            for _ in 0..1000 {
                libc::raise(libc::SIGURG);
            }
            libc::_exit(i32::from(seen.handled.load(Relaxed) != before));
        }
        let mut status = -1;
        while libc::waitpid(child, &raw mut status, 0) != child {}
        assert_eq!(status, 0);
    }
    compute_until(&seen, 400);
    assert_eq!(seen.wrong.load(Relaxed), 0);
    finish(&signals);
}

/// A thread that blocks the signal is interrupted when it does so no longer.
#[test]
fn a_blocked_signal_waits() {
    let base = unique("blocked");
    let mut sender = start("sender", &base, 2, 1, 100);
    let (udm, seen) = open(&base, 2, 0);
    let signals = by_signal(udm);
    assert_eq!(sender.hear(), b"ready");
    // SAFETY: a set of this function.
    let change = |how| unsafe {
        let mut set = zeroed();
        libc::sigaddset(&raw mut set, libc::SIGURG);
        libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut());
    };
    change(libc::SIG_BLOCK);
    sender.tell(b"go");
    assert_eq!(sender.hear(), b"sent");
    assert_eq!(seen.handled.load(Relaxed), 0);
    change(libc::SIG_UNBLOCK);
    compute_until(&seen, 100);
    finish(&signals);
}

/// A handler that panics ends the end point by name, and not the program.
#[test]
fn a_handler_that_panics_is_an_error() {
    let base = unique("panics");
    let mut sender = start("sender", &base, 2, 1, 1);
    let ran = Arc::new(AtomicU32::new(0));
    let group = group(&base, 2, 0);
    let options = UdmOptions {
        area_bytes: super::AREA_BYTES,
        ..UdmOptions::default()
    };
    let mut udm = Udm::open(&group, "main", options, Arc::clone(&ran), LONG).unwrap();
    udm.on(super::COUNT, |arrival| {
        arrival.extract().state().store(1, Relaxed);
        std::panic::panic_any("a handler of a test")
    })
    .unwrap();
    // SAFETY: the program that it interrupts below only looks at a number.
    let signals = unsafe { udm.with_signals(SignalOptions::default()) }.unwrap();
    assert_eq!(sender.hear(), b"ready");
    sender.tell(b"go");
    while ran.load(Relaxed) == 0 {
        std::hint::spin_loop();
    }
    assert_eq!(signals.atomic().err(), Some(Error::HandlerPanicked));
}

/// Many begin and end, with messages under way.
#[test]
fn they_end_while_messages_come() {
    for round in 0..10 {
        let base = unique(&format!("ends-{round}"));
        let mut busy = start("busy", &base, 2, 1, 0);
        let (udm, seen) = open(&base, 2, 0);
        let signals = by_signal(udm);
        assert_eq!(busy.hear(), b"ready");
        compute_until(&seen, 1_000);
        assert_eq!(seen.wrong.load(Relaxed), 0);
        drop(signals);
    }
}
