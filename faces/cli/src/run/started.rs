//! A process of a job, from the launcher's side: its streams and its end.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::event::{Ending, Event};
use super::plan::{Part, Plan};
use super::process::{Frame, PROCESS_COMMAND, send_frame, send_order};

/// How long the output of a process that has ended may take.
const OUTPUT_WITHIN: Duration = Duration::from_secs(2);
/// A line that is longer is passed on in parts.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// See the module.
pub(super) struct Started {
    /// In words.
    pub(super) what: String,
    child: Child,
    is_remote: bool,
    /// To tell a process of another host of signals.
    control: Option<Arc<Mutex<ChildStdin>>>,
    streams: Vec<JoinHandle<()>>,
    has_ended: bool,
}

impl Started {
    pub(super) fn start(plan: &Plan, part: &Part, events: &Sender<Event>) -> Result<Self> {
        let own = std::env::current_exe().context("finding this program")?;
        let (mut command, place) = match &part.host {
            None => (Command::new(&own), String::new()),
            Some(host) => {
                let (shell, first) = plan
                    .remote_shell
                    .split_first()
                    .context("HAMLYN_REMOTE_SHELL is empty: name a program such as ssh")?;
                let mut command = Command::new(shell);
                command.args(first).arg(host).arg(&own);
                (command, format!(" on {host}"))
            }
        };
        command
            .arg(PROCESS_COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // All that it starts is ended with it.
            .process_group(0);
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .spawn()
            .with_context(|| format!("starting process {} with {name}", part.proc))?;
        let what = format!("process {} (pid {}{place})", part.proc, child.id());
        let stdin = child.stdin.take().context("its standard input")?;
        let stdin = Arc::new(Mutex::new(stdin));
        let is_remote = part.host.is_some();
        let told = send_order(&mut *lock(&stdin), &part.order);
        // If it has ended just now, that is told as its end.
        let _ = told;
        let mut streams = Vec::new();
        let label = plan.label.then(|| format!("[{}] ", part.proc));
        if let Some(output) = child.stdout.take() {
            let label = label.clone();
            streams.push(std::thread::spawn(move || forward(output, label, false)));
        }
        if let Some(output) = child.stderr.take() {
            streams.push(std::thread::spawn(move || forward(output, label, true)));
        }
        if part.proc == 0 {
            let to = Arc::clone(&stdin);
            // It ends with this process: it may wait for a terminal.
            std::thread::spawn(move || feed(&to, is_remote));
        } else if is_remote {
            let _ = send_frame(&mut *lock(&stdin), &Frame::EndOfInput);
        }
        let proc = part.proc as usize;
        let control = (is_remote).then(|| Arc::clone(&stdin));
        drop(stdin);
        let whom = Pid::from_child(&child);
        let events = events.clone();
        std::thread::spawn(move || {
            // It stays a zombie, so that its number is nobody else's until it is reaped.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(whom), options) {}
            // The launcher may be gone already.
            let _ = events.send(Event::Ended { proc });
        });
        Ok(Self {
            what,
            child,
            is_remote,
            control,
            streams,
            has_ended: false,
        })
    }

    /// Sends it a signal, and all that it has started.
    pub(super) fn signal(&mut self, signal: Signal) {
        if self.has_ended {
            return;
        }
        if let (Some(control), true) = (&self.control, signal != Signal::KILL) {
            // A connection that is gone ends the process there.
            let _ = send_frame(&mut *lock(control), &Frame::Signal(signal.as_raw()));
            return;
        }
        // It may have ended just now.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }

    /// Lets it, and all that it has started, run or not. Not for one of another host.
    pub(super) fn set_running(&mut self, runs: bool) -> Result<()> {
        if self.has_ended {
            return Ok(());
        }
        let signal = match runs {
            true => Signal::CONT,
            false => Signal::STOP,
        };
        match kill_process_group(Pid::from_child(&self.child), signal) {
            // It has ended just now.
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error).with_context(|| {
                let what = &self.what;
                format!("stopping {what}: run a program of your own user, or leave out --gang")
            }),
        }
    }

    /// How it ended. What it has started ends with it.
    pub(super) fn reap(&mut self) -> Result<Ending> {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        self.has_ended = true;
        let status = self.child.wait().context("waiting for a process")?;
        Ok(Ending::of(status, self.is_remote))
    }

    /// Waits until all that it printed has been passed on; but not for ever for what it left behind
    /// in another session.
    pub(super) fn finish_output(&mut self) {
        let until = Instant::now() + OUTPUT_WITHIN;
        for stream in self.streams.drain(..) {
            while !stream.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes output on, line by line, so that lines of different processes do not mix.
fn forward(output: impl Read, label: Option<String>, is_error: bool) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = output
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line);
        if read.unwrap_or(0) == 0 {
            return;
        }
        if label.is_some() && !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        let text = [label.as_deref().unwrap_or_default().as_bytes(), &line].concat();
        // If nobody reads this any more, the job goes on.
        let _ = match is_error {
            true => std::io::stderr().lock().write_all(&text),
            false => {
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(&text).and_then(|()| stdout.flush())
            }
        };
    }
}

/// Passes this process's standard input on to process 0.
fn feed(to: &Mutex<ChildStdin>, is_remote: bool) {
    let mut input = std::io::stdin();
    let mut bytes = [0; 4096];
    loop {
        let length = input.read(&mut bytes).unwrap_or(0);
        let piece = &bytes[..length];
        let sent = match (is_remote, length) {
            (true, 0) => send_frame(&mut *lock(to), &Frame::EndOfInput),
            (true, _) => send_frame(&mut *lock(to), &Frame::Input(piece.to_vec())),
            (false, _) => lock(to).write_all(piece),
        };
        if length == 0 || sent.is_err() {
            return;
        }
    }
}
