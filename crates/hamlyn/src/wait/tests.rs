//! How long waits poll, and in which order they do what.

use super::*;

const MAX_NS: u64 = 20_000;

#[test]
fn who_is_always_kept_waiting_soon_stops_polling_and_learns_again() {
    let mut habit = Habit::new(MAX_NS);
    assert_eq!(habit.spin_ns, MAX_NS);
    let mut polled_ns = 0;
    for _ in 0..100 {
        polled_ns += habit.spin_ns;
        habit.slept(1_000_000, MAX_NS);
    }
    assert!(habit.spin_ns == 0 && polled_ns <= 2 * MAX_NS);
    // What comes soon would have been found.
    for _ in 0..4 {
        habit.slept(MAX_NS / 2 + WAKE_NS, MAX_NS);
    }
    assert_eq!(habit.spin_ns, MAX_NS);
    // One long wait among many short ones changes little.
    habit.slept(u64::MAX, MAX_NS);
    assert_eq!(habit.spin_ns, MAX_NS / 2);
    // Nobody polls who may not, and one who always may never stops.
    let mut never = Habit::new(0);
    never.slept(1, 0);
    assert_eq!(never.spin_ns, 0);
    let mut always = Habit::new(u64::MAX / 4);
    always.slept(1_000_000_000, u64::MAX / 4);
    assert_eq!(always.spin_ns, u64::MAX / 4);
}

#[test]
fn a_wait_polls_then_yields_now_and_then_and_then_sleeps() {
    let habit = Habit::new(MAX_NS);
    let mut patience = Patience::new(Wait::For(Duration::from_millis(1)));
    let (mut now_ns, mut spins, mut yields) = (1_000, 0, 0);
    let deadline = loop {
        match patience.next(&habit, || now_ns) {
            Next::Spin => spins += 1,
            Next::Yield => yields += 1,
            Next::Sleep(deadline) => break deadline,
            Next::Stop => panic!("too early"),
        }
        now_ns += 40;
    };
    assert_eq!(deadline, Some(1_001_000));
    assert!(yields > 0 && spins >= 31 * yields, "{spins} {yields}");
    assert_eq!(patience.waited_ns(now_ns), now_ns - 1_000);
    assert_eq!(patience.next(&habit, || 1_001_000), Next::Stop);
    assert_eq!(Patience::new(Wait::Poll).next(&habit, || 0), Next::Stop);
    // Who may not poll looks a few times all the same, and offers the processor once.
    let never = Habit::new(0);
    let mut forever = Patience::new(Wait::Forever);
    let looks: Vec<Next> = (1..EAGER_LOOKS)
        .map(|_| forever.next(&never, || 5))
        .collect();
    let offers = looks.iter().filter(|next| **next == Next::Yield).count();
    assert_eq!(offers, 1);
    assert!(
        looks
            .iter()
            .all(|next| matches!(next, Next::Spin | Next::Yield))
    );
    assert_eq!(forever.next(&never, || 5), Next::Sleep(None));
}

/// Polls with a clock that stands until the processor is offered, and says after how many looks it was.
fn looks_before_offer(patience: &mut Patience, habit: &Habit, now_ns: u64) -> u32 {
    for looks in 1..=2 * PAUSES_PER_YIELD_MAX {
        match patience.next(habit, || now_ns) {
            Next::Spin => {}
            Next::Yield => return looks,
            other => panic!("{other:?}"),
        }
    }
    panic!("never offered")
}

#[test]
fn what_others_take_to_move_messages_is_no_time_of_waiting() {
    let mut habit = Habit::new(MAX_NS);
    let mut patience = Patience::new(Wait::Forever);
    let mut now_ns = 1_000;
    // Each time they take much longer than we may poll.
    for _ in 0..20 {
        let looks = looks_before_offer(&mut patience, &habit, now_ns);
        assert!(looks <= PAUSES_PER_YIELD_MIN);
        now_ns += 10 * MAX_NS;
        patience.resumed(&mut habit, now_ns);
    }
    assert_eq!(patience.waited_ns(now_ns), 0);
    // Our own time counts.
    let slept = (0..=PAUSES_PER_CLOCK)
        .map(|_| patience.next(&habit, || now_ns + MAX_NS))
        .any(|next| next == Next::Sleep(None));
    assert!(slept);
}

#[test]
fn the_deadline_holds_whatever_others_take() {
    let mut habit = Habit::new(MAX_NS);
    let mut patience = Patience::new(Wait::For(Duration::from_nanos(3 * MAX_NS)));
    looks_before_offer(&mut patience, &habit, 1_000);
    let now_ns = 1_000 + 3 * MAX_NS;
    patience.resumed(&mut habit, now_ns);
    let stopped = (0..=PAUSES_PER_CLOCK)
        .map(|_| patience.next(&habit, || now_ns))
        .any(|next| next == Next::Stop);
    assert!(stopped);
}

#[test]
fn beside_somebody_who_computes_the_processor_is_offered_late_until_he_is_gone() {
    let mut habit = Habit::new(MAX_NS);
    let mut patience = Patience::new(Wait::Forever);
    let early = looks_before_offer(&mut patience, &habit, 1_000);
    let now_ns = 1_000 + OTHERS_COMPUTE_NS + 1;
    patience.resumed(&mut habit, now_ns);
    // What he took is waiting, so this wait polls no longer.
    let next = (0..=PAUSES_PER_CLOCK)
        .map(|_| patience.next(&habit, || now_ns))
        .find(|next| *next != Next::Spin);
    assert_eq!(next, Some(Next::Sleep(None)));
    let mut patience = Patience::new(Wait::Forever);
    let mut looks = looks_before_offer(&mut patience, &habit, now_ns);
    assert_eq!((early, looks), (PAUSES_PER_YIELD_MIN, PAUSES_PER_YIELD_MAX));
    // Offers that nobody took, or only for a while.
    while looks > early {
        patience.resumed(&mut habit, now_ns + 1);
        patience = Patience::new(Wait::Forever);
        let sooner = looks_before_offer(&mut patience, &habit, now_ns);
        assert_eq!(sooner, looks / 2);
        looks = sooner;
    }
}

#[test]
fn several_calls_of_one_wait_take_no_longer_than_it_all_together() {
    let mut patience = Patience::new(Wait::For(Duration::from_nanos(100)));
    for (now_ns, left_ns) in [(1_000, 100), (1_060, 40), (1_100, 0), (5_000, 0)] {
        let left = Wait::For(Duration::from_nanos(left_ns));
        assert_eq!(patience.left(|| now_ns), left);
    }
    assert_eq!(patience.next(&Habit::new(0), || 5_000), Next::Stop);
    for wait in [Wait::Poll, Wait::Forever] {
        assert_eq!(Patience::new(wait).left(|| 7), wait);
    }
}
