//! How long waits poll, and in which order they do what.

use super::*;

const MAX_NS: u64 = 20_000;

#[test]
fn who_is_always_kept_waiting_soon_stops_polling_and_learns_again() {
    let mut adaptive_spin = AdaptiveSpin::new(MAX_NS);
    assert_eq!(adaptive_spin.spin_ns, MAX_NS);
    let mut polled_ns = 0;
    for _ in 0..100 {
        polled_ns += adaptive_spin.spin_ns;
        adaptive_spin.slept(1_000_000, MAX_NS);
    }
    assert!(adaptive_spin.spin_ns == 0 && polled_ns <= 2 * MAX_NS);
    // What comes soon would have been found.
    for _ in 0..4 {
        adaptive_spin.slept(MAX_NS / 2 + WAKE_NS, MAX_NS);
    }
    assert_eq!(adaptive_spin.spin_ns, MAX_NS);
    // One long wait among many short ones changes little.
    adaptive_spin.slept(u64::MAX, MAX_NS);
    assert_eq!(adaptive_spin.spin_ns, MAX_NS / 2);
    // Nobody polls who may not, and one who always may never stops.
    let mut never = AdaptiveSpin::new(0);
    never.slept(1, 0);
    assert_eq!(never.spin_ns, 0);
    let mut always = AdaptiveSpin::new(u64::MAX / 4);
    always.slept(1_000_000_000, u64::MAX / 4);
    assert_eq!(always.spin_ns, u64::MAX / 4);
}

#[test]
fn a_wait_polls_then_yields_now_and_then_and_then_sleeps() {
    let adaptive_spin = AdaptiveSpin::new(MAX_NS);
    let mut waiting = Waiting::new(Wait::For(Duration::from_millis(1)));
    let (mut now_ns, mut spins, mut yields) = (1_000, 0, 0);
    let deadline = loop {
        match waiting.next(&adaptive_spin, || now_ns) {
            WaitStep::Spin => spins += 1,
            WaitStep::Yield => yields += 1,
            WaitStep::Sleep(deadline) => break deadline,
            WaitStep::Stop => panic!("too early"),
        }
        now_ns += 40;
    };
    assert_eq!(deadline, Some(1_001_000));
    assert!(
        yields > 0 && spins >= (PAUSES_PER_YIELD_MIN - 1) * yields,
        "{spins} {yields}"
    );
    assert_eq!(waiting.waited_ns(now_ns), now_ns - 1_000);
    assert_eq!(waiting.next(&adaptive_spin, || 1_001_000), WaitStep::Stop);
    assert_eq!(
        Waiting::new(Wait::Poll).next(&adaptive_spin, || 0),
        WaitStep::Stop
    );
    // Who may not poll looks a few times all the same, and offers the processor once.
    let never = AdaptiveSpin::new(0);
    let mut forever = Waiting::new(Wait::Forever);
    let looks: Vec<WaitStep> = (1..EAGER_LOOKS)
        .map(|_| forever.next(&never, || 5))
        .collect();
    let offers = looks
        .iter()
        .filter(|next| **next == WaitStep::Yield)
        .count();
    assert_eq!(offers, 1);
    assert!(
        looks
            .iter()
            .all(|next| matches!(next, WaitStep::Spin | WaitStep::Yield))
    );
    assert_eq!(forever.next(&never, || 5), WaitStep::Sleep(None));
}

/// Polls with a clock that stands until the processor is offered, and says after how many looks it
/// was.
fn looks_before_offer(waiting: &mut Waiting, adaptive_spin: &AdaptiveSpin, now_ns: u64) -> u32 {
    for looks in 1..=2 * PAUSES_PER_YIELD_MAX {
        match waiting.next(adaptive_spin, || now_ns) {
            WaitStep::Spin => {}
            WaitStep::Yield => return looks,
            other => panic!("{other:?}"),
        }
    }
    panic!("never offered")
}

#[test]
fn what_others_take_to_move_messages_is_no_time_of_waiting() {
    let mut adaptive_spin = AdaptiveSpin::new(MAX_NS);
    let mut waiting = Waiting::new(Wait::Forever);
    let mut now_ns = 1_000;
    // Each time they take much longer than we may poll.
    for _ in 0..20 {
        let looks = looks_before_offer(&mut waiting, &adaptive_spin, now_ns);
        assert!(looks <= PAUSES_PER_YIELD_MIN);
        now_ns += 10 * MAX_NS;
        waiting.resumed(&mut adaptive_spin, now_ns);
    }
    assert_eq!(waiting.waited_ns(now_ns), 0);
    // Our own time counts.
    let slept = (0..=PAUSES_PER_CLOCK)
        .map(|_| waiting.next(&adaptive_spin, || now_ns + MAX_NS))
        .any(|next| next == WaitStep::Sleep(None));
    assert!(slept);
}

#[test]
fn the_deadline_holds_whatever_others_take() {
    let mut adaptive_spin = AdaptiveSpin::new(MAX_NS);
    let mut waiting = Waiting::new(Wait::For(Duration::from_nanos(3 * MAX_NS)));
    looks_before_offer(&mut waiting, &adaptive_spin, 1_000);
    let now_ns = 1_000 + 3 * MAX_NS;
    waiting.resumed(&mut adaptive_spin, now_ns);
    let stopped = (0..=PAUSES_PER_CLOCK)
        .map(|_| waiting.next(&adaptive_spin, || now_ns))
        .any(|next| next == WaitStep::Stop);
    assert!(stopped);
}

#[test]
fn beside_somebody_who_computes_the_processor_is_offered_late_until_he_is_gone() {
    let mut adaptive_spin = AdaptiveSpin::new(MAX_NS);
    let mut waiting = Waiting::new(Wait::Forever);
    let early = looks_before_offer(&mut waiting, &adaptive_spin, 1_000);
    let now_ns = 1_000 + OTHERS_COMPUTE_NS + 1;
    waiting.resumed(&mut adaptive_spin, now_ns);
    // What he took is waiting, so this wait polls no longer.
    let next = (0..=PAUSES_PER_CLOCK)
        .map(|_| waiting.next(&adaptive_spin, || now_ns))
        .find(|next| *next != WaitStep::Spin);
    assert_eq!(next, Some(WaitStep::Sleep(None)));
    let mut waiting = Waiting::new(Wait::Forever);
    let mut looks = looks_before_offer(&mut waiting, &adaptive_spin, now_ns);
    assert_eq!((early, looks), (PAUSES_PER_YIELD_MIN, PAUSES_PER_YIELD_MAX));
    // Offers that nobody took, or only for a while.
    while looks > early {
        waiting.resumed(&mut adaptive_spin, now_ns + 1);
        waiting = Waiting::new(Wait::Forever);
        let sooner = looks_before_offer(&mut waiting, &adaptive_spin, now_ns);
        assert_eq!(sooner, looks / 2);
        looks = sooner;
    }
}

#[test]
fn several_calls_of_one_wait_take_no_longer_than_it_all_together() {
    let mut waiting = Waiting::new(Wait::For(Duration::from_nanos(100)));
    for (now_ns, left_ns) in [(1_000, 100), (1_060, 40), (1_100, 0), (5_000, 0)] {
        let left = Wait::For(Duration::from_nanos(left_ns));
        assert_eq!(waiting.left(|| now_ns), left);
    }
    assert_eq!(
        waiting.next(&AdaptiveSpin::new(0), || 5_000),
        WaitStep::Stop
    );
    for wait in [Wait::Poll, Wait::Forever] {
        assert_eq!(Waiting::new(wait).left(|| 7), wait);
    }
}
