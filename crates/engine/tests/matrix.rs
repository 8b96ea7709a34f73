//! The transport alone over a modelled path in virtual time: from 20 microseconds of round trip to
//! 100 milliseconds, with and without loss, in front of short and deep queues, between ends that
//! look at what came only now and then.
//!
//! The model is deterministic. Each cell says which share of the path's rate must come out.

use crate::matrix_path::{Measured, Path, Pipe};
use hamlyn_engine::transport::Settings;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Base round trip, rate of the path in Mbit/s, and how long the ends take at most until they look.
const BASES: [(u64, u64, u64); 10] = [
    (20 * US, 10_000, 20 * US),
    (100 * US, 10_000, 50 * US),
    (300 * US, 10_000, 50 * US),
    (MS, 5_000, 100 * US),
    (2 * MS, 2_000, 300 * US),
    (5 * MS, 1_000, MS),
    (10 * MS, 500, MS),
    (20 * MS, 500, MS),
    (50 * MS, 300, MS),
    (100 * MS, 300, MS),
];

/// What the host makes associations with.
fn settings() -> Settings {
    Settings {
        frame_bytes: 1_420,
        keep_alive_ns: 2_000_000_000,
        no_progress_ns: 60_000_000_000,
        acknowledge_frames: 40,
        ready_frames_max: 88,
        ..Settings::default()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Queue {
    Short,
    Deep,
}

fn path(base_ns: u64, mbit: u64, look_ns: u64, lost_per_mille: u32, queue: Queue) -> Path {
    let pipe_bytes = base_ns * mbit / 8_000;
    Path {
        base_ns,
        mbit,
        look_ns,
        lost_per_mille,
        queue_bytes: match queue {
            // It holds what an end sends that looks late, or no law could do without loss.
            Queue::Short => (pipe_bytes / 4).max(64_000).max(2 * look_ns * mbit / 8_000),
            Queue::Deep => (2 * pipe_bytes).max(1 << 20),
        },
    }
}

/// After sixty round trips, or a tenth of a second, over as many more.
fn measure(path: Path) -> Measured {
    let mut pipe = Pipe::new(path, settings());
    let span_ns = (60 * path.base_ns).max(100 * MS);
    pipe.run(span_ns);
    pipe.reset();
    pipe.run(span_ns);
    let measured = pipe.measured();
    println!(
        "{:7.2} ms {:5} Mbit/s, queue {:8}, lost {:2}: share {:.3}, in vain {:.3}, {:?}",
        path.base_ns as f64 / 1e6,
        path.mbit,
        path.queue_bytes,
        path.lost_per_mille,
        measured.share,
        measured.in_vain,
        pipe.sender_path(),
    );
    measured
}

/// All bases at that loss and queue; each must come to that share.
fn all(lost_per_mille: u32, queue: Queue, least_share: f64) {
    let mut bad = Vec::new();
    for (base_ns, mbit, look_ns) in BASES {
        let measured = measure(path(base_ns, mbit, look_ns, lost_per_mille, queue));
        if measured.share < least_share {
            bad.push((base_ns, measured.share));
        }
        // The near law tolerates a sixth in front of a queue that is shorter than its target delay.
        let vain = if base_ns < MS { 0.2 } else { 0.05 };
        let vain = f64::from(lost_per_mille) / 1e3 + vain;
        assert!(measured.in_vain < vain, "{base_ns} {measured:?}");
    }
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn without_loss_and_a_deep_queue() {
    all(0, Queue::Deep, 0.85);
}

#[test]
fn without_loss_and_a_short_queue() {
    all(0, Queue::Short, 0.6);
}

#[test]
fn one_in_a_thousand_lost_and_a_deep_queue() {
    all(1, Queue::Deep, 0.8);
}

#[test]
fn one_in_a_thousand_lost_and_a_short_queue() {
    all(1, Queue::Short, 0.6);
}

#[test]
fn one_in_a_hundred_lost_and_a_deep_queue() {
    all(10, Queue::Deep, 0.6);
}

#[test]
fn one_in_a_hundred_lost_and_a_short_queue() {
    all(10, Queue::Short, 0.6);
}

/// The first second of a long path, from nothing.
#[test]
fn a_long_path_is_filled_within_thirty_round_trips() {
    for (base_ns, mbit, look_ns) in BASES {
        let mut pipe = Pipe::new(path(base_ns, mbit, look_ns, 0, Queue::Deep), settings());
        pipe.run((30 * base_ns).max(20 * MS));
        let share = pipe.measured().share;
        println!("{base_ns}: {share:.3}");
        assert!(share > 0.4, "{base_ns}: {share}");
    }
}

/// Ends that sleep until something comes measure the path and not their sleep.
#[test]
fn the_round_trip_is_that_of_the_path() {
    for (base_ns, mbit, look_ns) in BASES {
        let mut pipe = Pipe::new(
            path(base_ns, mbit, 20 * look_ns, 0, Queue::Deep),
            settings(),
        );
        pipe.run((20 * base_ns).max(20 * MS));
        let least_ns = pipe.sender_path().round_trip_least_ns;
        let wire_ns = 4 * 1_500 * 8_000 / mbit;
        assert!(
            (base_ns - 2 * US..base_ns + base_ns / 8 + wire_ns + 2 * US).contains(&least_ns),
            "{base_ns}: {least_ns}"
        );
    }
}
