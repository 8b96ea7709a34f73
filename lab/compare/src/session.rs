//! The processes of one peer: started, given orders, read, and ended in any case.
//!
//! Orders and answers are lines in FIFOs of a directory of the session; the format is in
//! `lab/compare/README.md`. Between orders the processes sleep, so they do not disturb what is
//! measured meanwhile.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;

use crate::catalogue::{Program, Start};
use crate::figure::Figure;
use crate::interruption;
use crate::network::hosts::Hosts;
use crate::pin::{Cores, Place};

/// How long a peer may take to start.
const OPENING_MAX: Duration = Duration::from_secs(25);
/// How long an order may take.
const ORDER_MAX: Duration = Duration::from_secs(45);
/// How long a peer may take to end by itself.
const ENDING_MAX: Duration = Duration::from_secs(3);
/// How often it is looked whether a process has died.
const LOOK: Duration = Duration::from_millis(200);

/// What a process says. Every field is there in some answers only.
#[derive(Deserialize, Debug)]
struct Answer {
    #[serde(default)]
    begin_ns: u64,
    #[serde(default)]
    end_ns: u64,
    #[serde(default)]
    checked: u64,
    #[serde(default)]
    open: bool,
    #[serde(default)]
    ready: bool,
    unsupported: Option<String>,
    error: Option<String>,
}

/// What came of an order.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Nanoseconds that it took.
    Took(f64),
    /// The peer cannot do that, and says why.
    Unsupported(String),
}

/// One process' lines.
struct Line {
    orders: File,
    answers: File,
    heard: Vec<u8>,
}

pub(crate) struct Session {
    directory: tempfile::TempDir,
    children: Vec<Child>,
    /// The receiver's, then the senders'.
    lines: Vec<Line>,
}

impl Session {
    /// Starts one receiver and so many senders, and waits until they are connected.
    pub(crate) fn open(program: &Program, senders: usize, cores: Cores) -> Result<Self> {
        Self::open_between(program, senders, cores, None)
    }

    /// The same, the receiver on one host and the senders on the other.
    pub(crate) fn open_between(
        program: &Program,
        senders: usize,
        cores: Cores,
        hosts: Option<&Hosts>,
    ) -> Result<Self> {
        let directory = directory()?;
        let mut lines = Vec::new();
        for role in 0..=senders {
            let orders = fifo(directory.path(), &format!("orders.{role}"))?;
            let answers = fifo(directory.path(), &format!("answers.{role}"))?;
            lines.push(Line {
                orders,
                answers,
                heard: Vec::new(),
            });
        }
        let mut session = Self {
            directory,
            children: Vec::new(),
            lines,
        };
        match program.start {
            Start::Each => {
                for role in 0..=senders {
                    let place = match (program.confined, role) {
                        (false, _) => Place::Both,
                        (true, 0) => Place::Receiver,
                        (true, _) => Place::Sender,
                    };
                    session.start(program, Some(role), senders, cores, place, hosts)?;
                }
            }
            Start::Launcher => session.start(program, None, senders, cores, Place::Both, hosts)?,
        }
        let deadline = Instant::now() + OPENING_MAX;
        for role in 0..=senders {
            let answer = session.hear(role, deadline).context("while it started")?;
            ensure!(
                answer.open,
                "role {role} said something else than that it is open"
            );
        }
        Ok(session)
    }

    fn start(
        &mut self,
        program: &Program,
        role: Option<usize>,
        senders: usize,
        cores: Cores,
        place: Place,
        hosts: Option<&Hosts>,
    ) -> Result<()> {
        let errors = File::options()
            .create(true)
            .append(true)
            .open(self.errors_path())
            .context("a file for what it says on standard error")?;
        let mut words = program.command(senders).into_iter();
        let first = words.next().context("a program without a name")?;
        let mut command = match hosts {
            Some(hosts) => hosts.command(role.unwrap_or(0), &first),
            None => Command::new(&first),
        };
        command
            .args(words)
            .arg(program.variant)
            .arg(self.directory.path())
            .arg(role.map_or_else(|| "-".to_owned(), |role| role.to_string()))
            .arg(senders.to_string())
            .arg(cores.receiver.to_string())
            .arg(cores.sender.to_string())
            .envs(program.environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(errors.try_clone()?)
            .stderr(errors)
            .process_group(0);
        let child = cores
            .confined(place, || command.spawn())?
            .with_context(|| format!("starting {}", first.to_string_lossy()))?;
        self.children.push(child);
        Ok(())
    }

    /// Orders a figure with so many messages of each sender, and checks that all of them arrived.
    pub(crate) fn order(&mut self, figure: Figure, count: u64) -> Result<Outcome> {
        let deadline = Instant::now() + ORDER_MAX;
        let order = figure.order(count);
        let senders = figure.senders();
        self.say(0, &order)?;
        let answer = self.hear(0, deadline)?;
        if let Some(reason) = answer.unsupported {
            return Ok(Outcome::Unsupported(reason));
        }
        ensure!(answer.ready, "the receiver did not say that it is ready");
        for role in 1..=senders {
            self.say(role, &order)?;
        }
        let mut begin_ns = u64::MAX;
        let mut sender_end_ns = 0;
        for role in 1..=senders {
            let sent = self.hear(role, deadline)?;
            if let Some(reason) = sent.unsupported {
                bail!("the sender cannot do what the receiver can: {reason}");
            }
            ensure!(
                sent.checked == count,
                "the sender counts {} of {count} messages",
                sent.checked
            );
            begin_ns = begin_ns.min(sent.begin_ns);
            sender_end_ns = sender_end_ns.max(sent.end_ns);
        }
        let received = self.hear(0, deadline)?;
        let expected = count * senders as u64;
        ensure!(
            received.checked == expected,
            "{} of {expected} messages arrived whole and in order",
            received.checked
        );
        let end_ns = if figure.is_round_trip() {
            sender_end_ns
        } else {
            received.end_ns
        };
        ensure!(end_ns > begin_ns, "it took no time");
        Ok(Outcome::Took((end_ns - begin_ns) as f64))
    }

    fn say(&mut self, role: usize, line: &str) -> Result<()> {
        self.lines[role]
            .orders
            .write_all(line.as_bytes())
            .with_context(|| format!("role {role} takes no orders"))
    }

    /// The next answer of a role.
    fn hear(&mut self, role: usize, deadline: Instant) -> Result<Answer> {
        loop {
            if let Some(end) = self.lines[role]
                .heard
                .iter()
                .position(|&byte| byte == b'\n')
            {
                let line: Vec<u8> = self.lines[role].heard.drain(..=end).collect();
                let text = String::from_utf8_lossy(&line);
                let answer: Answer = serde_json::from_str(&text)
                    .with_context(|| format!("role {role} answered {:?}", text.trim_end()))?;
                if let Some(error) = answer.error {
                    bail!("{error}");
                }
                return Ok(answer);
            }
            self.listen(role, deadline)?;
        }
    }

    /// Waits until the role has said something, has died, or the time is up.
    fn listen(&mut self, role: usize, deadline: Instant) -> Result<()> {
        interruption::check()?;
        let line = &mut self.lines[role];
        let timeout = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: LOOK.as_nanos() as i64,
        };
        let mut polled = [PollFd::new(&line.answers, PollFlags::IN)];
        let heard = match poll(&mut polled, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            heard => heard.context("waiting for an answer")? > 0,
        };
        if heard {
            let mut bytes = [0; 512];
            let read = line.answers.read(&mut bytes).context("reading an answer")?;
            line.heard.extend_from_slice(&bytes[..read]);
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("role {role} did not answer in time{}", self.errors());
        }
        for child in &mut self.children {
            if let Some(status) = child.try_wait()? {
                match self.last_words() {
                    Some(error) => bail!("{error}"),
                    None => bail!("it ended: {status}{}", self.errors()),
                }
            }
        }
        Ok(())
    }

    /// The error that any role has answered with, when one of them has ended.
    fn last_words(&mut self) -> Option<String> {
        self.lines.iter_mut().find_map(|line| {
            let mut bytes = [0; 4096];
            // Not to wait: there is nothing, or there is all that it had to say.
            let read = line.answers.read(&mut bytes).unwrap_or_default();
            line.heard.extend_from_slice(&bytes[..read]);
            let text = String::from_utf8_lossy(&line.heard);
            text.lines()
                .filter_map(|line| serde_json::from_str::<Answer>(line).ok())
                .find_map(|answer| answer.error)
        })
    }

    fn errors_path(&self) -> PathBuf {
        self.directory.path().join("errors")
    }

    /// The last that was said on standard error, as the end of a sentence.
    fn errors(&self) -> String {
        let text = std::fs::read(self.errors_path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut last: VecDeque<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        while last.len() > 3 {
            last.pop_front();
        }
        if last.is_empty() {
            return String::new();
        }
        let text: String = Vec::from(last).join(" / ").chars().take(400).collect();
        format!("; it said: {text}")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for line in &mut self.lines {
            // One that is gone is as good as one that was told.
            let _ = line.orders.write_all(b"quit\n");
        }
        end(&mut self.children, ENDING_MAX);
    }
}

/// Lets children end by themselves for a while, then tells their process groups to, then kills
/// them.
pub(crate) fn end(children: &mut [Child], timeout: Duration) {
    for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
        let deadline = Instant::now() + timeout;
        for child in children.iter_mut() {
            if let (Some(signal), Ok(None)) = (signal, child.try_wait())
                && let Some(group) = Pid::from_raw(child.id() as i32)
            {
                // It may have ended just now.
                let _ = kill_process_group(group, signal);
            }
        }
        while Instant::now() < deadline {
            if children
                .iter_mut()
                .all(|child| !matches!(child.try_wait(), Ok(None)))
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// In memory if possible: some peers put their buffers beside it.
fn directory() -> Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    builder.prefix("hamlyn-compare-");
    if memory.is_dir() {
        builder.tempdir_in(memory)
    } else {
        builder.tempdir()
    }
    .context("a directory for the session")
}

/// Makes one and opens it so that neither side waits for the other.
fn fifo(directory: &Path, name: &str) -> Result<File> {
    let path = directory.join(name);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .context("making a FIFO")?;
    File::options()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open(&path)
        .context("opening a FIFO")
}

#[cfg(test)]
mod tests;
