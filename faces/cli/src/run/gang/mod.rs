//! `hamlyn run --gang`: loosely synchronised quanta for a job of this host, as the scheduler of the
//! paper gives them (`T 5.1`; decision 0064). Two jobs take turns: the command, and *null*, which
//! computes and sends nothing. A process whose turn is over is stopped as a whole, by SIGSTOP, so
//! what comes for it waits in its memory.
//!
//! One thread, which also reaps the processes, sends the signals; so none goes to a number that
//! belongs to another process by now.

pub(super) mod options;
mod schedule;

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use options::GangOptions;
use schedule::Schedule;

use super::plan::Order;
use super::process::{PROCESS_COMMAND, send_order};
use super::started::Started;

/// The turns of a job under way.
pub(super) struct Gang {
    schedule: Schedule,
    begun: Instant,
    /// A process of null for each of the job, or none.
    nulls: Vec<Null>,
    /// By how much switches were late, in microseconds.
    late_us: Histogram<u64>,
}

impl Gang {
    /// Begins the turns of these processes, whose number does not change any more.
    pub(super) fn begin(options: &GangOptions, processes: &mut [Started]) -> Result<Self> {
        let nulls = match options.has_null {
            true => processes.iter().map(|_| Null::start()).collect(),
            false => Ok(Vec::new()),
        };
        let mut gang = Self {
            schedule: Schedule::new(options, processes.len()),
            begun: Instant::now(),
            nulls: nulls?,
            late_us: Histogram::new(3)?,
        };
        let late: Vec<usize> = gang.schedule.late().collect();
        for proc in 0..processes.len() {
            gang.switch(processes, proc, !late.contains(&proc))?;
        }
        gang.begun = Instant::now();
        Ok(gang)
    }

    /// The time of the next switch.
    pub(super) fn next(&self) -> Instant {
        let at = self.begun.checked_add(self.schedule.next().at);
        // Centuries away.
        at.unwrap_or_else(|| self.begun + Duration::from_secs(u64::from(u32::MAX)))
    }

    /// Makes the switches that are due.
    pub(super) fn keep(&mut self, processes: &mut [Started]) -> Result<()> {
        let now = self.begun.elapsed();
        while let Some(switch) = self.schedule.take_due(now) {
            self.switch(processes, switch.proc, switch.runs)?;
            let late = self.begun.elapsed().saturating_sub(switch.at);
            self.late_us.saturating_record(late.as_micros() as u64);
        }
        Ok(())
    }

    /// The one that stops does so first.
    fn switch(&mut self, processes: &mut [Started], proc: usize, runs: bool) -> Result<()> {
        let null = self.nulls.get(proc);
        if runs {
            null.map_or(Ok(()), |null| null.signal(Signal::STOP))?;
        }
        processes[proc].set_running(runs)?;
        if !runs {
            null.map_or(Ok(()), |null| null.signal(Signal::CONT))?;
        }
        Ok(())
    }

    /// Ends the turns: all processes go on, and null ends. Says what of null had ended before.
    pub(super) fn end(self, processes: &mut [Started], is_verbose: bool) {
        for process in processes {
            // It ends in a moment, or is not this user's, of which there was an error before.
            let _ = process.set_running(true);
        }
        if is_verbose {
            eprintln!("hamlyn run: {}", self.summary());
        }
        for (proc, mut null) in self.nulls.into_iter().enumerate() {
            if let Ok(Some(status)) = null.child.try_wait() {
                eprintln!(
                    "hamlyn run: null beside process {proc} ended before the job: {status}; \
                     that process had its processor for itself since"
                );
            }
        }
    }

    fn summary(&self) -> String {
        let count = self.late_us.len();
        let ms = |us: u64| us as f64 / 1e3;
        let with = match self.nulls.is_empty() {
            true => "nothing",
            false => "null",
        };
        format!(
            "the job took turns with {with} for {:.2} s: {count} switches, half of them at most \
             {:.2} ms late, 99 % at most {:.2} ms, the latest {:.2} ms",
            self.begun.elapsed().as_secs_f64(),
            ms(self.late_us.value_at_quantile(0.5)),
            ms(self.late_us.value_at_quantile(0.99)),
            ms(self.late_us.max()),
        )
    }
}

/// A process that computes and sends nothing. It is killed when this is dropped.
struct Null {
    child: Child,
}

impl Null {
    fn start() -> Result<Self> {
        let own = std::env::current_exe().context("finding this program")?;
        let mut child = Command::new(own)
            .arg(PROCESS_COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Signals of the launcher's terminal are not for it.
            .process_group(0)
            .spawn()
            .context("starting a process of null")?;
        let input = child.stdin.take();
        let null = Self { child };
        // If it has ended just now, that is told when the turns end.
        let _ = send_order(&mut input.context("its standard input")?, &Order::null());
        Ok(null)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        // It is not reaped before this is dropped.
        match kill_process(Pid::from_child(&self.child), signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error).context("sending a signal to a process of null"),
        }
    }
}

impl Drop for Null {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
