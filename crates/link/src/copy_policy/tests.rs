use core::cell::Cell;

use super::*;

const CHUNK: usize = 16 << 10;

/// A machine on which copies cost so much per way, in ticks per packet.
struct Machine {
    clock: Cell<u64>,
    through: u64,
    past: u64,
}

impl Machine {
    fn new(through: u64, past: u64) -> Self {
        let clock = Cell::new(0);
        Self {
            clock,
            through,
            past,
        }
    }

    /// Sends that many bytes; the fraction of them that went past the cache.
    fn send(&self, copy_policy: &mut CopyPolicy, bytes: u64) -> f64 {
        let packets = bytes / CHUNK as u64;
        let mut past = 0;
        for _ in 0..packets {
            copy_policy.carry(
                CHUNK,
                0,
                || self.clock.get(),
                |way| {
                    past += u64::from(way == StoreKind::NonTemporal);
                    self.clock.set(
                        self.clock.get()
                            + match way {
                                StoreKind::Temporal => self.through,
                                StoreKind::NonTemporal => self.past,
                            },
                    );
                },
            );
        }
        past as f64 / packets as f64
    }
}

const NEAR: fn() -> Machine = || Machine::new(1_000, 900);
const FAR: fn() -> Machine = || Machine::new(10_000, 1_500);

#[test]
fn processors_with_a_common_cache_use_it() {
    let mut copy_policy = CopyPolicy::new();
    let past = NEAR().send(&mut copy_policy, 1 << 30);
    assert!(past < 0.03, "{past}");
}

#[test]
fn processors_without_one_pass_it_by() {
    let mut copy_policy = CopyPolicy::new();
    FAR().send(&mut copy_policy, 64 << 20);
    let past = FAR().send(&mut copy_policy, 1 << 30);
    assert!(past > 0.98, "{past}");
}

#[test]
fn a_move_is_noticed_in_both_directions() {
    let mut copy_policy = CopyPolicy::new();
    for _ in 0..4 {
        NEAR().send(&mut copy_policy, 96 << 20);
        let past = NEAR().send(&mut copy_policy, 256 << 20);
        assert!(past < 0.05, "near: {past}");
        FAR().send(&mut copy_policy, 64 << 20);
        let past = FAR().send(&mut copy_policy, 256 << 20);
        assert!(past > 0.95, "far: {past}");
    }
}

#[test]
fn after_a_long_time_near_a_move_away_is_noticed_soon() {
    let mut copy_policy = CopyPolicy::new();
    NEAR().send(&mut copy_policy, 16 << 30);
    // With temporal stores it is slower now, and that shows without waiting for the next trial.
    FAR().send(&mut copy_policy, 64 << 20);
    let past = FAR().send(&mut copy_policy, 64 << 20);
    assert!(past > 0.9, "{past}");
}

#[test]
fn trials_become_rare() {
    let mut copy_policy = CopyPolicy::new();
    NEAR().send(&mut copy_policy, 4 << 30);
    let past = NEAR().send(&mut copy_policy, 4 << 30);
    assert!(past < 0.002, "{past}");
}

#[test]
fn one_interruption_decides_nothing() {
    let mut costs = Costs::default();
    for _ in 1..SAMPLES {
        costs.add(10);
    }
    assert_eq!(costs.mean(), None);
    costs.add(u64::MAX / 2);
    assert_eq!(costs.mean(), Some(10));
}

#[test]
fn short_payloads_are_left_alone() {
    let mut copy_policy = CopyPolicy::new();
    for _ in 0..100_000 {
        copy_policy.carry(
            WATCHED_MIN_BYTES - 1,
            CHUNK,
            || unreachable!("not timed"),
            |way| assert_eq!(way, StoreKind::Temporal),
        );
    }
}

#[test]
fn a_clock_that_stands_still_or_goes_back_does_no_harm() {
    let mut copy_policy = CopyPolicy::new();
    let clock = Cell::new(u64::MAX);
    for _ in 0..100_000 {
        clock.set(clock.get().wrapping_sub(12345));
        copy_policy.carry(CHUNK, CHUNK, || clock.get(), |_| ());
        copy_policy.carry(CHUNK, CHUNK, || 0, |_| ());
    }
}

#[test]
fn what_was_stored_past_the_cache_does_not_tell_against_it() {
    const WINDOW: u64 = 4 << 20;
    let mut copy_policy = CopyPolicy::new();
    FAR().send(&mut copy_policy, 64 << 20);
    let Machine {
        through,
        past,
        clock,
    } = NEAR();
    // With temporal stores a place costs three times as much if it was stored past it before.
    let mut through_bytes = 0;
    let mut send = |bytes: u64| {
        let mut past_bytes = 0;
        for _ in 0..bytes / CHUNK as u64 {
            copy_policy.carry(
                CHUNK,
                WINDOW as usize,
                || clock.get(),
                |way| {
                    let cost = match way {
                        StoreKind::Temporal if through_bytes < WINDOW => 3 * through,
                        StoreKind::Temporal => through,
                        StoreKind::NonTemporal => past,
                    };
                    clock.set(clock.get() + cost);
                    match way {
                        StoreKind::Temporal => through_bytes += CHUNK as u64,
                        StoreKind::NonTemporal => {
                            through_bytes = 0;
                            past_bytes += CHUNK as u64;
                        }
                    }
                },
            );
        }
        past_bytes as f64 / bytes as f64
    };
    send(128 << 20);
    let past = send(128 << 20);
    assert!(past < 0.2, "{past}");
}
