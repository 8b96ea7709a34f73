//! Processes that `demo` and `bench` start: this same program, told what to do
//! by lines of JSON on standard input, answering by lines on standard output.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Serialize, de::DeserializeOwned};

/// What kind of process to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Role {
    /// The other end of a benchmark.
    Bench,
    /// A sender in the demonstration.
    Demo,
    /// The program whose instructions are counted.
    Count,
    /// A sender of many in a benchmark.
    Sender,
    /// What runs on one of several hosts in the demonstration.
    Host,
    /// One of more processes than processors in a benchmark.
    Crowd,
    /// Live peers and a stopped one in a benchmark.
    Peers,
    /// A process of a soak.
    Soak,
    /// A process on one of two hosts in a benchmark.
    Network,
    /// A processor of a Split-C job in a benchmark.
    Splitc,
}

/// Takes the next order from standard input; nothing at its end.
pub(crate) fn next_order<T: DeserializeOwned>() -> Result<Option<T>> {
    let mut line = String::new();
    if std::io::stdin()
        .lock()
        .read_line(&mut line)
        .context("reading an order")?
        == 0
    {
        return Ok(None);
    }
    Ok(Some(
        serde_json::from_str(&line).context("an order that is none")?,
    ))
}

/// Answers on standard output.
pub(crate) fn answer<T: Serialize>(answer: &T) -> Result<()> {
    let mut line = serde_json::to_string(answer)?;
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Where this program is.
pub(crate) fn this_program() -> Result<PathBuf> {
    std::env::current_exe().context("finding this program")
}

/// A process of ours, killed when dropped.
pub(crate) struct Actor {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Actor {
    /// Starts one, as another user if asked and possible.
    pub(crate) fn start(role: Role, user: Option<u32>) -> Result<Self> {
        let mut command = Command::new(this_program()?);
        if let Some(user) = user {
            use std::os::unix::process::CommandExt;
            command.gid(user).uid(user);
        }
        Self::start_by(command, role)
    }

    /// Starts one by a command that runs this program, somewhere else perhaps.
    pub(crate) fn start_by(mut command: Command, role: Role) -> Result<Self> {
        let role = clap::ValueEnum::to_possible_value(&role).context("a role without a name")?;
        command
            .arg("actor")
            .arg(role.get_name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("starting another process")?;
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Self {
            child,
            orders,
            answers,
        })
    }

    /// Its number.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn order<T: Serialize>(&mut self, order: &T) -> Result<()> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        let orders = self
            .orders
            .as_mut()
            .context("the process takes no more orders")?;
        orders
            .write_all(line.as_bytes())
            .context("the other process is gone")?;
        orders.flush()?;
        Ok(())
    }

    pub(crate) fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            let status = self.child.wait()?;
            bail!("the other process ended too early: {status}");
        }
        serde_json::from_str(&line).context("an answer that is none")
    }

    /// As `kill -9`.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Lets it end by itself.
    pub(crate) fn finish(mut self) -> Result<()> {
        drop(self.orders.take());
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the other process failed: {status}");
        }
        Ok(())
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes as text, for tickets and seeds in orders.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Undoes [`to_hex`].
pub(crate) fn from_hex(text: &str) -> Result<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        bail!("not a string of hexadecimal digits");
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).context("not hexadecimal"))
        .collect()
}
