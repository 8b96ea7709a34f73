//! `hamlyn run`: starts the processes of a job, here or on several hosts, and ends all of them when
//! one fails (decision 0038).
//!
//! Each process is first this command again (`process`), which learns on its standard input what it
//! is to be, and becomes the program. On another host, reached by a remote shell, it stays beside
//! the program and ends it when the connection ends.

mod event;
mod gang;
mod hosts;
mod options;
mod plan;
pub mod process;
mod started;

use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use event::{Ending, Event};
use gang::Gang;
use gang::options::GangOptions;
pub use options::Arguments;
use plan::Plan;
use started::Started;

/// How long the others have to end before the first that failed is named: one that was killed is
/// the cause of those that noticed.
const CAUSE_WITHIN: Duration = Duration::from_millis(100);
/// How long processes have to end by themselves once they were told to.
const GRACE: Duration = Duration::from_secs(2);

/// The state of a job under way.
struct Job {
    processes: Vec<Started>,
    running: usize,
    /// What is told of the first that failed, as an exit status.
    status: Option<u8>,
    /// What failed first, and when it is told.
    first: Option<(usize, Ending, Instant)>,
    /// When those that are left are killed.
    kill_at: Option<Instant>,
    /// The turns of the processes, until they are to end.
    gang: Option<Gang>,
    is_verbose: bool,
}

/// Starts the processes of a job, and ends with its status.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let plan = Plan::new(arguments)?;
    let (sender, events) = channel();
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGQUIT, SIGHUP]).context("watching for signals")?;
    let of_signals = sender.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if of_signals.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    });
    let mut job = Job {
        processes: Vec::new(),
        running: 0,
        status: None,
        first: None,
        kill_at: None,
        gang: None,
        is_verbose: arguments.verbose,
    };
    // In this thread, which lasts: processes end when the thread that started them does.
    for part in &plan.parts {
        match Started::start(&plan, part, &sender) {
            Ok(started) => {
                job.processes.push(started);
                job.running += 1;
            }
            Err(error) => {
                job.end_all(Signal::KILL);
                return Err(error);
            }
        }
    }
    drop(sender);
    if let Err(error) = job.run_to_end(arguments.gang.as_ref(), &events) {
        job.end_all(Signal::KILL);
        return Err(error);
    }
    job.end_turns();
    job.tell_first();
    for process in &mut job.processes {
        process.finish_output();
    }
    Ok(ExitCode::from(job.status.unwrap_or(0)))
}

impl Job {
    fn run_to_end(&mut self, gang: Option<&GangOptions>, events: &Receiver<Event>) -> Result<()> {
        let begin = |options| Gang::begin(options, &mut self.processes);
        self.gang = gang.map(begin).transpose()?;
        while self.running > 0 {
            if let Some(gang) = &mut self.gang {
                gang.keep(&mut self.processes)?;
            }
            let due = self.first.as_ref().map(|(_, _, due)| *due);
            let due = due.into_iter().chain(self.kill_at);
            let due = due.chain(self.gang.as_ref().map(Gang::next)).min();
            let event = match due {
                Some(at) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(Event::Ended { proc }) => self.ended(proc)?,
                Ok(Event::Signal(signal)) => self.signalled(signal),
                Err(RecvTimeoutError::Timeout) => self.timed_out(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(())
    }

    fn ended(&mut self, proc: usize) -> Result<()> {
        self.running -= 1;
        let ending = self.processes[proc].reap()?;
        if ending.code().is_none() || self.status.is_some() {
            return Ok(());
        }
        match &mut self.first {
            None => self.first = Some((proc, ending, Instant::now() + CAUSE_WITHIN)),
            Some((first, known, _)) => {
                if likelihood(ending) > likelihood(*known) {
                    (*first, *known) = (proc, ending);
                }
            }
        }
        Ok(())
    }

    fn timed_out(&mut self) {
        let now = Instant::now();
        if self.first.as_ref().is_some_and(|(_, _, due)| *due <= now) {
            self.tell_first();
            self.end_all(Signal::TERM);
            self.kill_at = Some(now + GRACE);
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.end_all(Signal::KILL);
            self.kill_at = None;
        }
    }

    /// Says what failed first.
    fn tell_first(&mut self) {
        let Some((proc, ending, _)) = self.first.take() else {
            return;
        };
        let others = match self.running {
            0 => String::new(),
            1 => "; the other process is ended".to_owned(),
            others => format!("; the other {others} processes are ended"),
        };
        let process = &mut self.processes[proc];
        // What it printed before stands before this.
        process.finish_output();
        eprintln!("hamlyn run: {} {ending}{others}", process.what);
        self.status = ending.code();
    }

    fn signalled(&mut self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else {
            return;
        };
        self.status
            .get_or_insert(Ending::Signal(signal.as_raw()).code().unwrap_or(1));
        self.end_all(signal);
        self.kill_at.get_or_insert(Instant::now() + GRACE);
    }

    /// Tells all that are left.
    fn end_all(&mut self, signal: Signal) {
        for process in &mut self.processes {
            process.signal(signal);
        }
        // A process that is stopped does not hear before it goes on.
        self.end_turns();
    }

    /// Lets all that are left run.
    fn end_turns(&mut self) {
        if let Some(gang) = self.gang.take() {
            gang.end(&mut self.processes, self.is_verbose);
        }
    }
}

/// How likely it is that this ending is the cause of others that are heard of within moments.
fn likelihood(ending: Ending) -> u8 {
    match ending {
        Ending::Signal(_) => 2,
        Ending::Status(hamlyn_job::STATUS_OF_A_CONSEQUENCE) => 0,
        Ending::Status(_) => 1,
    }
}
