//! How long it takes until a sleeper runs: by a message, by a futex, by an eventfd.
//!
//! One thread, on a processor of its own, sleeps in each way in turn, and another wakes it, so that
//! nothing but the way differs: both are in the same state of caches, clocks and neighbours. Each
//! sleep is given time to become one, and the order of the three changes all the time. The medians
//! are reported.

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

/// How often everything is set up anew.
const ROUNDS: usize = 5;
/// How long a sleeper is left alone, so that it sleeps.
const SETTLED: Duration = Duration::from_micros(300);
/// How long a sleeper that nobody wakes waits.
const TIMEOUT: Wait = Wait::millis(5_000);

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

/// A way to sleep, and to be woken.
struct Wakeup<'a> {
    /// What the sleeper's thread makes its sleep of.
    sleeper: Box<dyn FnOnce() -> Act<'a> + Send + 'a>,
    wake: Act<'a>,
}

type Act<'a> = Box<dyn FnMut() -> Result<()> + 'a>;

/// The order in which three wakeups have their turns, which is another each time.
fn order(time: u64) -> [usize; 3] {
    const ORDERS: [[usize; 3]; 6] = [
        [0, 1, 2],
        [2, 1, 0],
        [1, 2, 0],
        [0, 2, 1],
        [2, 0, 1],
        [1, 0, 2],
    ];
    ORDERS[(time % ORDERS.len() as u64) as usize]
}

/// Lets a thread sleep so often in each way, and wakes it each time. What each waking took.
fn wakings(processor: usize, times: u64, wakeups: [Wakeup<'_>; 3]) -> Result<[Vec<f64>; 3]> {
    let score = &Score::new();
    let mut wakes = Vec::new();
    let mut sleepers = Vec::new();
    for Wakeup { sleeper, wake } in wakeups {
        sleepers.push(sleeper);
        wakes.push(wake);
    }
    let turns = (0..times).flat_map(order).zip(1_u64..);
    std::thread::scope(|scope| {
        let theirs = turns.clone();
        let sleeper = scope.spawn(move || -> Result<()> {
            super::pin(&[processor])?;
            let mut sleeps: Vec<_> = sleepers.into_iter().map(|make| make()).collect();
            for (way, turn) in theirs {
                score.about_to_sleep.store(turn, Release);
                sleeps[way]()?;
                let now_ns = score.now_ns();
                let took_ns = now_ns.saturating_sub(score.woken_by_ns.load(Acquire));
                score.took_ns.store(took_ns, Release);
                score.awake.store(turn, Release);
            }
            Ok(())
        });
        let mut took = [const { Vec::new() }; 3];
        for (way, turn) in turns {
            while score.about_to_sleep.load(Acquire) < turn && !sleeper.is_finished() {
                std::hint::spin_loop();
            }
            std::thread::sleep(SETTLED);
            score.woken_by_ns.store(score.now_ns(), Release);
            wakes[way]()?;
            while score.awake.load(Acquire) < turn && !sleeper.is_finished() {
                std::hint::spin_loop();
            }
            took[way].push(score.took_ns.load(Acquire) as f64);
        }
        sleeper
            .join()
            .map_err(|_| anyhow!("the sleeper did not end well"))??;
        Ok(took)
    })
}

fn by_futex() -> Wakeup<'static> {
    let word = Arc::new(AtomicU32::new(0));
    let theirs = Arc::clone(&word);
    Wakeup {
        sleeper: Box::new(move || {
            let mut seen = 0;
            Box::new(move || {
                while theirs.load(Acquire) == seen {
                    // Shared, as between processes.
                    match futex::wait(&theirs, futex::Flags::empty(), seen, None) {
                        Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                        Err(errno) => return Err(errno).context("sleeping on a futex"),
                    }
                }
                seen = theirs.load(Acquire);
                Ok(())
            })
        }),
        wake: Box::new(move || {
            word.fetch_add(1, Release);
            futex::wake(&word, futex::Flags::empty(), 1).context("waking by futex")?;
            Ok(())
        }),
    }
}

fn by_eventfd() -> Result<Wakeup<'static>> {
    let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).context("making an eventfd")?);
    let theirs = Arc::clone(&event);
    Ok(Wakeup {
        sleeper: Box::new(move || {
            Box::new(move || {
                rustix::io::read(&theirs, &mut [0_u8; 8]).context("sleeping on an eventfd")?;
                Ok(())
            })
        }),
        wake: Box::new(move || {
            rustix::io::write(&event, &1_u64.to_ne_bytes()).context("waking by eventfd")?;
            Ok(())
        }),
    })
}

fn open() -> Result<Manager> {
    let mut options = Options::default().in_namespace("bench");
    options.spin_ns = Some(0);
    Ok(Manager::new(
        ProcessHost::open(options)?,
        ManagerOptions::default(),
    )?)
}

/// A receiver that does not poll before it sleeps, and a sender to it.
fn by_message() -> Result<Wakeup<'static>> {
    let (there, here) = (open()?, open()?);
    let (mut queue, slot) = {
        let mut there = there.session();
        let area = there.allocate(64)?;
        let queue = there.open_queue(1024)?;
        let slot = there.open_slot(NewSlot::new(&area).queue(&queue))?;
        (queue, slot)
    };
    let target = here.session().target(&slot.fast_ticket(0, 64)?, TIMEOUT)?;
    let there = there.detach().map_err(|_| anyhow!("it has an end point"))?;
    Ok(Wakeup {
        sleeper: Box::new(move || {
            let there = there.attach();
            Box::new(move || {
                let taken = there.session().rcv_block(&mut queue, TIMEOUT)?;
                taken.map(|_| ()).context("nothing came")
            })
        }),
        wake: Box::new(move || {
            let message = Message::new(&[7; 16]);
            let mut here = here.session();
            let terminus = here.terminus();
            here.send_msg(terminus, &target, &message, TIMEOUT)?;
            Ok(())
        }),
    })
}

pub(crate) fn measure(
    processor: usize,
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    let times = effort.batches as u64 * 4;
    let mut took = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        let wakeups = [by_message()?, by_futex(), by_eventfd()?];
        for (all, some) in took.iter_mut().zip(wakings(processor, times, wakeups)?) {
            all.extend(some);
        }
    }
    let [ours_ns, futex_ns, eventfd_ns] = took.map(median);
    report.waking = Some(Waking {
        ours_ns,
        futex_ns,
        eventfd_ns,
    });
    bar.inc(1);
    Ok(())
}
