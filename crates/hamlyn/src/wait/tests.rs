//! How long waits poll, and in which order they do what.

use super::*;

const MAX_NS: u64 = 20_000;

#[test]
fn who_is_always_kept_waiting_soon_stops_polling_and_learns_again() {
    let mut habit = Habit::new(MAX_NS);
    assert_eq!(habit.spin_ns(), MAX_NS);
    let mut polled_ns = 0;
    for _ in 0..100 {
        polled_ns += habit.spin_ns();
        habit.slept(1_000_000, MAX_NS);
    }
    assert!(habit.spin_ns() == 0 && polled_ns <= 2 * MAX_NS);
    // What comes soon would have been found.
    for _ in 0..4 {
        habit.slept(MAX_NS / 2 + WAKE_NS, MAX_NS);
    }
    assert_eq!(habit.spin_ns(), MAX_NS);
    // One long wait among many short ones changes little.
    habit.slept(u64::MAX, MAX_NS);
    assert_eq!(habit.spin_ns(), MAX_NS / 2);
    // Nobody polls who may not, and one who always may never stops.
    let mut never = Habit::new(0);
    never.slept(1, 0);
    assert_eq!(never.spin_ns(), 0);
    let mut always = Habit::new(u64::MAX / 4);
    always.slept(1_000_000_000, u64::MAX / 4);
    assert_eq!(always.spin_ns(), u64::MAX / 4);
}

#[test]
fn a_wait_polls_then_yields_now_and_then_and_then_sleeps() {
    let mut patience = Patience::new(Wait::For(Duration::from_millis(1)));
    let (mut now_ns, mut spins, mut yields) = (1_000, 0, 0);
    let deadline = loop {
        match patience.next(MAX_NS, || now_ns) {
            Next::Spin => spins += 1,
            Next::Yield => yields += 1,
            Next::Sleep(deadline) => break deadline,
            Next::Stop => panic!("too early"),
        }
        now_ns += 40;
    };
    assert_eq!(deadline, Some(1_001_000));
    assert!(yields > 0 && spins > 50 * yields, "{spins} {yields}");
    assert_eq!(patience.waited_ns(now_ns), now_ns - 1_000);
    assert_eq!(patience.next(MAX_NS, || 1_001_000), Next::Stop);
    assert_eq!(Patience::new(Wait::Poll).next(MAX_NS, || 0), Next::Stop);
    // Who may not poll looks a few times all the same.
    let mut forever = Patience::new(Wait::Forever);
    for _ in 1..EAGER_LOOKS {
        assert_eq!(forever.next(0, || 5), Next::Spin);
    }
    assert_eq!(forever.next(0, || 5), Next::Sleep(None));
}
