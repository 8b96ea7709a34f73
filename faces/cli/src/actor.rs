//! Processes that a command starts: this same program, told what to do by lines of JSON on
//! standard input, answering by lines on standard output. A program that starts them has a
//! subcommand `actor`, with the name of a role.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::{Serialize, de::DeserializeOwned};

/// Takes the next order from standard input; nothing at its end.
pub fn next_order<T: DeserializeOwned>() -> Result<Option<T>> {
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
pub fn answer<T: Serialize>(answer: &T) -> Result<()> {
    let mut line = serde_json::to_string(answer)?;
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Where this program is.
pub fn this_program() -> Result<PathBuf> {
    std::env::current_exe().context("finding this program")
}

/// A process of ours, killed when dropped.
pub struct Actor {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Actor {
    /// Starts one, as another user if asked and possible.
    pub fn start<R: ValueEnum>(role: R, user: Option<u32>) -> Result<Self> {
        let mut command = Command::new(this_program()?);
        if let Some(user) = user {
            use std::os::unix::process::CommandExt;
            command.gid(user).uid(user);
        }
        Self::start_by(command, role)
    }

    /// Starts one by a command that runs this program, somewhere else perhaps.
    pub fn start_by<R: ValueEnum>(mut command: Command, role: R) -> Result<Self> {
        let role = role.to_possible_value().context("a role without a name")?;
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
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Tells it what to do next.
    pub fn order<T: Serialize>(&mut self, order: &T) -> Result<()> {
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

    /// Waits for its next answer.
    pub fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            let status = self.child.wait()?;
            bail!("the other process ended too early: {status}");
        }
        serde_json::from_str(&line).context("an answer that is none")
    }

    /// As `kill -9`.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Lets it end by itself.
    pub fn finish(mut self) -> Result<()> {
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
pub fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Undoes [`to_hex`].
pub fn from_hex(text: &str) -> Result<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        bail!("not a string of hexadecimal digits");
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).context("not hexadecimal"))
        .collect()
}
