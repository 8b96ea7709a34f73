//! The time to interrupt a program that computes: from the injection of a message to its handler,
//! which a signal runs in the program's thread (decision 66); and beside it, in the same seconds,
//! from a byte in a socket to the bare handler of a signal that the socket raises.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};

use anyhow::{Context, Result, anyhow, ensure};
use hamlyn::{ManagerOptions, Wait};
use hamlyn_cli::processors::{median, pin};
use hamlyn_udm::{Group, GroupOptions, SignalOptions, Udm, UdmOptions};
use indicatif::ProgressBar;
use libc::{c_int, c_void};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::active::{Amount, Row, compare, host};

/// Pauses between two interrupts: longer than an interrupt, so that each finds the program at work.
const PAUSE_NS: u64 = 30_000;
/// An interrupt that takes longer is none.
const LONG_NS: u64 = 1_000_000_000;
const COUNT: u16 = 0;
const WAIT: Wait = Wait::millis(10_000);
/// The signal of the bare socket; the other one has the usual one.
const BARE: c_int = libc::SIGUSR2;

/// When a handler last ran; 0 until it does.
static HANDLED_NS: AtomicU64 = AtomicU64::new(0);
/// The end of the bare socket from which its handler reads.
static BARE_END: AtomicI32 = AtomicI32::new(-1);

/// The median time of an interrupt in nanoseconds, by a message and by a bare socket.
#[derive(Serialize)]
pub(super) struct Figures {
    interrupt_ns: Row,
}

impl Figures {
    pub(super) fn print(&self) {
        let mut times =
            hamlyn_cli::terminal::table(&["to a handler", "UDM, ns", "bare socket", "quotient"]);
        times.add_row(self.interrupt_ns.cells("by signal".to_owned(), 1.0, 0));
        println!("How long does it take to interrupt a program that computes?\n{times}\n");
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn note() {
    HANDLED_NS.store(now_ns(), Release);
}

extern "C" fn on_bare(_: c_int) {
    note();
    let mut byte = [0_u8; 1];
    let at = byte.as_mut_ptr().cast::<c_void>();
    // SAFETY: one byte may be written there.
    unsafe { libc::recv(BARE_END.load(Relaxed), at, 1, libc::MSG_DONTWAIT) };
}

/// Has the bare socket raise its signal in this thread.
fn raise_at(end: &UnixStream) -> Result<()> {
    const F_SETSIG: c_int = 10;
    const F_SETOWN_EX: c_int = 15;
    let descriptor = end.as_raw_fd();
    BARE_END.store(descriptor, Relaxed);
    // SAFETY: the handler does what the handler of a signal may do, and the commands take these
    // arguments.
    let results = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bare as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        // A thread: kind 0.
        let owner = [0, libc::gettid()];
        [
            libc::sigaction(BARE, &raw const action, std::ptr::null_mut()),
            libc::fcntl(descriptor, F_SETOWN_EX, owner.as_ptr()),
            libc::fcntl(descriptor, F_SETSIG, BARE),
            libc::fcntl(descriptor, libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK),
        ]
    };
    ensure!(
        results.iter().all(|result| *result >= 0),
        "no signal of a socket"
    );
    Ok(())
}

fn open(me: u32) -> Result<Udm<()>> {
    let name = |node: u32| format!("interrupt-{node}");
    let mut options = host();
    options.name = Some(name(me));
    let group = Group::new(
        hamlyn::open_with(options, ManagerOptions::default())?,
        GroupOptions {
            name: "interrupts".to_owned(),
            me,
            addresses: vec![name(0), name(1)],
        },
    )?;
    let mut udm = Udm::open(&group, "bench", UdmOptions::default(), (), WAIT)?;
    udm.on(COUNT, |arrival| {
        note();
        arrival.extract()
    })?;
    udm.barrier(WAIT)?;
    Ok(udm)
}

/// Measures with this thread as the sender, and a program that computes on that processor.
pub(super) fn measure(there: usize, effort: Amount, bar: &ProgressBar) -> Result<Figures> {
    let (near, far) = UnixStream::pair()?;
    let is_ready = AtomicBool::new(false);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (is_ready, is_over) = (&is_ready, &is_over);
        let program = scope.spawn(move || -> Result<()> {
            pin(&[there])?;
            raise_at(&far)?;
            // SAFETY: the handler notes the time, and the program waits.
            let signals = unsafe { open(1)?.with_signals(SignalOptions::default()) }?;
            is_ready.store(true, Release);
            while !is_over.load(Relaxed) {
                std::hint::spin_loop();
            }
            drop(signals);
            Ok(())
        });
        let measured = (|| {
            let mut udm = open(0)?;
            while !is_ready.load(Acquire) && !program.is_finished() {
                std::hint::spin_loop();
            }
            let trips = effort.round_trips.min(2_000);
            let interrupt_ns = compare(
                effort.rounds,
                0,
                &mut udm,
                |udm| interrupts(trips, || Ok(udm.inject(1, COUNT, &[])?)),
                |_| {
                    interrupts(trips, || {
                        let sent = rustix::io::write(&near, &[1])?;
                        ensure!(sent == 1, "no byte was sent");
                        Ok(())
                    })
                },
            )?;
            bar.inc(1);
            Ok(Figures { interrupt_ns })
        })();
        is_over.store(true, Relaxed);
        let ended = program
            .join()
            .map_err(|_| anyhow!("the program panicked"))?;
        ended.context("being interrupted")?;
        measured
    })
}

/// The median time from `send` to the handler.
fn interrupts(trips: u64, mut send: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..trips.max(1) {
        let pause_until = now_ns() + PAUSE_NS;
        while now_ns() < pause_until {
            std::hint::spin_loop();
        }
        HANDLED_NS.store(0, Relaxed);
        let begun = now_ns();
        send()?;
        let handled = loop {
            match HANDLED_NS.load(Acquire) {
                0 => ensure!(
                    now_ns() - begun < LONG_NS,
                    "the program was not interrupted"
                ),
                handled => break handled,
            }
        };
        times.push(handled.saturating_sub(begun) as f64);
    }
    Ok(median(times))
}
