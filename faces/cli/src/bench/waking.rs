//! How long it takes until a sleeper runs: by a message, by a futex, by an eventfd.
//!
//! The sleeper is a thread on a processor of its own in all three, so that nothing but the way of waking
//! differs. Each sleep is given time to become one. The three take turns, and the medians are reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Release};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions, Message, NewSlot, Wait};
use indicatif::ProgressBar;
use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::futex;

use super::report::Report;
use super::{Effort, median};

/// Rounds in which each way has its turn.
const ROUNDS: usize = 5;
/// How long a sleeper is left alone, so that it sleeps.
const SETTLED: Duration = Duration::from_micros(300);
/// How long a sleeper that nobody wakes waits.
const PATIENCE: Wait = Wait::millis(5_000);

/// Medians, in nanoseconds.
pub(crate) struct Waking {
    pub(crate) ours_ns: f64,
    pub(crate) futex_ns: f64,
    pub(crate) eventfd_ns: f64,
}

/// What both threads know of a round.
struct Score {
    epoch: Instant,
    about_to_sleep: AtomicU64,
    woken_by_ns: AtomicU64,
    took_ns: AtomicU64,
    awake: AtomicU64,
}

impl Score {
    fn new() -> Self {
        Self {
            epoch: Instant::now(),
            about_to_sleep: AtomicU64::new(0),
            woken_by_ns: AtomicU64::new(0),
            took_ns: AtomicU64::new(0),
            awake: AtomicU64::new(0),
        }
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

/// Lets a thread sleep so often, and wakes it each time. What each waking took.
fn wakings(
    processor: usize,
    times: u64,
    mut sleep: impl FnMut() -> Result<()> + Send,
    mut wake: impl FnMut() -> Result<()>,
) -> Result<Vec<f64>> {
    let score = &Score::new();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(move || -> Result<()> {
            super::pin(&[processor])?;
            for time in 1..=times {
                score.about_to_sleep.store(time, Release);
                sleep()?;
                let now_ns = score.now_ns();
                let took_ns = now_ns.saturating_sub(score.woken_by_ns.load(Acquire));
                score.took_ns.store(took_ns, Release);
                score.awake.store(time, Release);
            }
            Ok(())
        });
        let mut took = Vec::new();
        for time in 1..=times {
            while score.about_to_sleep.load(Acquire) < time && !sleeper.is_finished() {
                std::hint::spin_loop();
            }
            std::thread::sleep(SETTLED);
            score.woken_by_ns.store(score.now_ns(), Release);
            wake()?;
            while score.awake.load(Acquire) < time && !sleeper.is_finished() {
                std::hint::spin_loop();
            }
            took.push(score.took_ns.load(Acquire) as f64);
        }
        sleeper
            .join()
            .map_err(|_| anyhow!("the sleeper did not end well"))??;
        Ok(took)
    })
}

fn by_futex(processor: usize, times: u64) -> Result<Vec<f64>> {
    let word = Arc::new(AtomicU32::new(0));
    let theirs = Arc::clone(&word);
    let mut seen = 0;
    wakings(
        processor,
        times,
        move || {
            while theirs.load(Acquire) == seen {
                // Shared, as between processes.
                match futex::wait(&theirs, futex::Flags::empty(), seen, None) {
                    Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                    Err(errno) => return Err(errno).context("sleeping on a futex"),
                }
            }
            seen = theirs.load(Acquire);
            Ok(())
        },
        || {
            word.fetch_add(1, Release);
            futex::wake(&word, futex::Flags::empty(), 1).context("waking by futex")?;
            Ok(())
        },
    )
}

fn by_eventfd(processor: usize, times: u64) -> Result<Vec<f64>> {
    let event = eventfd(0, EventfdFlags::CLOEXEC).context("making an eventfd")?;
    wakings(
        processor,
        times,
        || {
            rustix::io::read(&event, &mut [0_u8; 8]).context("sleeping on an eventfd")?;
            Ok(())
        },
        || {
            rustix::io::write(&event, &1_u64.to_ne_bytes()).context("waking by eventfd")?;
            Ok(())
        },
    )
}

fn open() -> Result<Manager<ProcessHost>> {
    let mut options = Options::default().in_namespace("bench");
    options.spin_ns = Some(0);
    Ok(hamlyn::open_with(options, ManagerOptions::default())?)
}

fn by_message(processor: usize, times: u64) -> Result<Vec<f64>> {
    let (mut there, mut here) = (open()?, open()?);
    let interface = there.interface_mut();
    let area = interface.allocate(64)?;
    let mut queue = interface.open_queue(1024)?;
    let slot = interface.open_slot(NewSlot::new(&area).queue(&queue))?;
    let ticket = slot.fast_ticket(0, 64)?;
    let target = here.interface_mut().target(&ticket, PATIENCE)?;
    let terminus = here.terminus();
    wakings(
        processor,
        times,
        move || {
            let taken = there.interface_mut().rcv_block(&mut queue, PATIENCE)?;
            taken.map(|_| ()).context("nothing came")
        },
        || {
            let message = Message::new(&[7; 16]);
            here.interface_mut()
                .send_msg(terminus, &target, &message, PATIENCE)?;
            Ok(())
        },
    )
}

pub(crate) fn measure(
    processor: usize,
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    let times = effort.batches as u64 * 4;
    let (mut ours, mut futexes, mut eventfds) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        futexes.extend(by_futex(processor, times)?);
        ours.extend(by_message(processor, times)?);
        eventfds.extend(by_eventfd(processor, times)?);
    }
    report.waking = Some(Waking {
        ours_ns: median(ours),
        futex_ns: median(futexes),
        eventfd_ns: median(eventfds),
    });
    bar.inc(1);
    Ok(())
}
