//! What becomes of those who wait for a network processor that panics.

use std::thread;

use hamlyn_host::waiter::Parker;

use super::*;

/// Rests as a thread does.
struct Parked(thread::Thread);

impl Parker for Parked {
    fn sleep(&self, _: Option<u64>) {
        thread::park();
    }

    fn wake(&self) {
        self.0.unpark();
    }
}

#[test]
fn a_panic_is_told_to_the_application_that_sleeps() {
    let rest = Box::new(Parked(thread::current()));
    let exchange = Arc::new(Exchange::<()> {
        events: Mutex::default(),
        attention: Arc::default(),
        activity: AtomicU64::new(0),
        waiter: Waiter::elsewhere(rest),
        posted: AtomicBool::new(false),
        polls: AtomicU64::new(0),
        asleep: AtomicBool::new(false),
        owed: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        waker: Box::new(|| ()),
        failure: Mutex::default(),
    });
    let seen = Arc::clone(&exchange);
    exchange.waiter.prepare();
    let processor = thread::spawn(move || supervise(&seen, || panic!("a bug of ours")));
    while exchange.failure().is_none() {
        exchange.waiter.wait(None).unwrap();
    }
    exchange.waiter.end();
    let message = "a bug of ours".to_owned();
    assert_eq!(exchange.failure(), Some(HostError::Processor { message }));
    assert_eq!(exchange.activity(), 1, "which a caller in a loop sees");
    assert!(processor.join().is_err());
}
