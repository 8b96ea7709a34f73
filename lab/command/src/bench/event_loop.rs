//! A call from an event loop beside a call that blocks: request and reply of datagrams between two
//! processes.
//!
//! The caller waits for the reply in two ways in turn, batch by batch: with a receive that blocks,
//! and in a loop that has the manager and a timer in one epoll. The other process serves both
//! alike, with receives that block. Both processes wait as programs do: they poll for a while, then
//! sleep. Replies come at once, so that the wait ends while it polls, or after the server has
//! computed for longer than anybody polls, so that it sleeps. The median ratio of two batches that
//! follow each other is reported.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Manager, Strategy, Ticket, Wait, datagram};
use indicatif::ProgressBar;
use rustix::event::{Timespec, epoll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use serde::{Deserialize, Serialize};

use super::pair::{Order, Pair};
use super::report::Report;
use super::{Effort, median};
use hamlyn_cli::actor::{answer, from_hex, to_hex};

const WAIT: Wait = Wait::millis(5_000);
/// Calls that are not counted.
const WARM_UP: u64 = 500;
/// Requests of that size, and how long the server computes for each.
const CASES: [(u32, u64); 4] = [(16, 0), (1_024, 0), (16, 100_000), (1_024, 100_000)];
/// The timer in the loop comes due so often.
const TICK: Duration = Duration::from_millis(10);
/// What epoll says is the timer.
const TIMER: u64 = 1;

/// What is measured of one size and one server.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) bytes: u32,
    pub(crate) computes_ns: u64,
    calls: u64,
}

/// One case's.
#[derive(Serialize)]
pub(crate) struct Figures {
    pub(crate) bytes: u32,
    pub(crate) computes_ns: u64,
    pub(crate) blocking_call_ns: f64,
    pub(crate) epoll_call_ns: f64,
    pub(crate) epoll_call_over_blocking: f64,
}

/// One side: where it receives, and where it sends.
struct Ends {
    inbox: datagram::Receiver,
    outbox: datagram::Sender,
    data: Vec<u8>,
}

impl Ends {
    fn open(manager: &Manager<ProcessHost>, bytes: u32) -> Result<datagram::Receiver> {
        let mut inbox = datagram::Receiver::new(manager, bytes)?;
        inbox.ready();
        Ok(inbox)
    }

    fn grow(
        manager: &Manager<ProcessHost>,
        inbox: datagram::Receiver,
        ticket: &str,
        bytes: u32,
    ) -> Result<Self> {
        let ticket = Ticket::from_bytes(&from_hex(ticket)?)?;
        Ok(Self {
            inbox,
            outbox: datagram::Sender::grow(manager, &ticket, WAIT)?,
            data: vec![7; bytes as usize],
        })
    }

    fn send(&self) -> Result<()> {
        self.outbox.send(&self.data, WAIT)?;
        Ok(())
    }

    /// Whether there was one.
    #[inline]
    fn receive(&mut self, wait: Wait) -> Result<bool> {
        let Some(datagram) = self.inbox.recv(wait)? else {
            return Ok(false);
        };
        ensure!(datagram.len() == self.data.len(), "another message");
        Ok(true)
    }

    fn call_blocking(&mut self) -> Result<()> {
        self.send()?;
        ensure!(self.receive(WAIT)?, "no reply");
        Ok(())
    }

    fn call_in_loop(&mut self, events: &mut Events) -> Result<()> {
        self.send()?;
        loop {
            if self.receive(Wait::Poll)? {
                return Ok(());
            }
            events.turn()?;
        }
    }
}

/// The event loop of a program: a manager, and a timer.
struct Events {
    manager: Manager<ProcessHost>,
    set: OwnedFd,
    timer: OwnedFd,
    ready: Vec<epoll::Event>,
    ticks: u64,
}

impl Events {
    fn new(manager: Manager<ProcessHost>) -> Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).context("making an epoll")?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
            .context("making a timer")?;
        let tick = Timespec::try_from(TICK).context("the length of a tick")?;
        let times = Itimerspec {
            it_interval: tick,
            it_value: tick,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times).context("setting a timer")?;
        let readable = epoll::EventFlags::IN;
        let timers = epoll::EventData::new_u64(TIMER);
        epoll::add(&set, &timer, timers, readable).context("adding to an epoll")?;
        let managers = epoll::EventData::new_u64(0);
        epoll::add(&set, &manager, managers, readable).context("adding to an epoll")?;
        Ok(Self {
            manager,
            set,
            timer,
            ready: Vec::with_capacity(8),
            ticks: 0,
        })
    }

    /// One turn, after every end point was asked.
    #[inline]
    fn turn(&mut self) -> Result<()> {
        let Some(sleep) = self.manager.prepare_sleep(WAIT)? else {
            return Ok(());
        };
        let span = sleep.timeout().map(Timespec::try_from).transpose()?;
        self.ready.clear();
        let room = rustix::buffer::spare_capacity(&mut self.ready);
        epoll::wait(&self.set, room, span.as_ref()).context("waiting")?;
        drop(sleep);
        for event in &self.ready {
            if event.data.u64() == TIMER {
                rustix::io::read(&self.timer, &mut [0_u8; 8]).context("reading a timer")?;
                self.ticks += 1;
            }
        }
        Ok(())
    }
}

pub(crate) fn measure(
    processors: &[usize],
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    let mut pair = Pair::start_driven(Strategy::Proc, processors)?;
    for (bytes, computes_ns) in CASES {
        let per_batch = match computes_ns {
            0 => effort.round_trips,
            _ => effort.round_trips / 20,
        };
        let case = Case {
            bytes,
            computes_ns,
            calls: WARM_UP + 2 * per_batch * effort.batches as u64,
        };
        let figures = compare(&mut pair, case, per_batch, effort.batches)?;
        report.event_loop.push(figures);
        bar.inc(1);
    }
    pair.finish()
}

/// The number of cases.
pub(crate) const STEPS: u64 = CASES.len() as u64;

fn compare(pair: &mut Pair, case: Case, per_batch: u64, batches: usize) -> Result<Figures> {
    let inbox = Ends::open(&pair.manager, case.bytes)?;
    let ticket = to_hex(&inbox.ticket().to_bytes());
    pair.actor.order(&Order::Serve { ticket, case })?;
    let ticket: String = pair.actor.answer()?;
    let mut ends = Ends::grow(&pair.manager, inbox, &ticket, case.bytes)?;
    let mut events = Events::new(pair.manager.clone())?;
    for _ in 0..WARM_UP {
        ends.call_blocking()?;
    }
    let mut took = [const { Vec::new() }; 2];
    let mut ratios = Vec::new();
    for batch in 0..batches {
        for turn in 0..2 {
            // Each comes first as often as second.
            let is_loop = (batch + turn) % 2 == 1;
            let begun = Instant::now();
            for _ in 0..per_batch {
                if is_loop {
                    ends.call_in_loop(&mut events)?;
                } else {
                    ends.call_blocking()?;
                }
            }
            took[usize::from(is_loop)].push(begun.elapsed().as_nanos() as f64 / per_batch as f64);
        }
        ratios.push(took[1][batch] / took[0][batch]);
    }
    let () = pair.actor.answer()?;
    let [blocking, in_loop] = took.map(median);
    Ok(Figures {
        bytes: case.bytes,
        computes_ns: case.computes_ns,
        blocking_call_ns: blocking,
        epoll_call_ns: in_loop,
        epoll_call_over_blocking: median(ratios),
    })
}

/// The other process serves that many calls.
pub(crate) fn serve(manager: &Manager<ProcessHost>, ticket: &str, case: Case) -> Result<()> {
    let inbox = Ends::open(manager, case.bytes)?;
    answer(&to_hex(&inbox.ticket().to_bytes()))?;
    let mut ends = Ends::grow(manager, inbox, ticket, case.bytes)?;
    for _ in 0..case.calls {
        ensure!(ends.receive(WAIT)?, "no request");
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_nanos(case.computes_ns) {
            std::hint::spin_loop();
        }
        ends.send()?;
    }
    manager.flush(WAIT)?;
    answer(&())
}

impl Figures {
    pub(crate) const COLUMNS: [&'static str; 5] = [
        "request and reply",
        "server computes",
        "blocking, µs",
        "in epoll, µs",
        "ratio",
    ];

    pub(crate) fn row(&self) -> [String; 5] {
        [
            format!("{} bytes", self.bytes),
            format!("{:?}", Duration::from_nanos(self.computes_ns)),
            format!("{:.2}", self.blocking_call_ns / 1e3),
            format!("{:.2}", self.epoll_call_ns / 1e3),
            format!("{:.2}", self.epoll_call_over_blocking),
        ]
    }
}
