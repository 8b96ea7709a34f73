//! A process of a job, from its own side. It reads its order, and becomes the program. On another
//! host it starts the program instead, stays beside it, and ends it when the launcher says so or
//! the connection to the launcher ends.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{MemfdFlags, Mode, fchmod, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};

use super::plan::Order;

/// The hidden command that a process is at first.
pub(super) const PROCESS_COMMAND: &str = "process-of-run";
/// The longest order.
const ORDER_BYTES_MAX: u32 = 16 << 20;
const INPUT_BYTES_MAX: u32 = 1 << 16;
/// What a shell adds to the number of a signal.
const SIGNALLED: i32 = 128;

/// What the launcher tells a process of another host.
pub(super) enum Frame {
    Input(Vec<u8>),
    EndOfInput,
    Signal(i32),
}

const INPUT: u8 = 0;
const END_OF_INPUT: u8 = 1;
const SIGNAL: u8 = 2;

pub(super) fn send_order(to: &mut impl Write, order: &Order) -> Result<()> {
    let text = serde_json::to_vec(order)?;
    to.write_all(&(text.len() as u32).to_le_bytes())?;
    to.write_all(&text)?;
    Ok(to.flush()?)
}

fn read_order(from: &mut impl Read) -> Result<Order> {
    let mut length = [0; 4];
    from.read_exact(&mut length).context("reading its order")?;
    let length = u32::from_le_bytes(length);
    ensure!(
        length <= ORDER_BYTES_MAX,
        "what it reads is no order: this command is started by `hamlyn run` only"
    );
    let mut text = vec![0; length as usize];
    from.read_exact(&mut text).context("reading its order")?;
    serde_json::from_slice(&text)
        .context("its order is of another version: install the same version on all hosts")
}

pub(super) fn send_frame(to: &mut impl Write, frame: &Frame) -> std::io::Result<()> {
    let (kind, bytes) = match frame {
        Frame::Input(bytes) => (INPUT, bytes.clone()),
        Frame::EndOfInput => (END_OF_INPUT, Vec::new()),
        Frame::Signal(signal) => (SIGNAL, signal.to_le_bytes().to_vec()),
    };
    let mut text = vec![kind];
    text.extend((bytes.len() as u32).to_le_bytes());
    text.extend(bytes);
    to.write_all(&text)?;
    to.flush()
}

/// The next frame; nothing when the connection has ended.
fn read_frame(from: &mut impl Read) -> Option<Frame> {
    let mut header = [0; 5];
    from.read_exact(&mut header).ok()?;
    let [kind, length @ ..] = header;
    let length = u32::from_le_bytes(length);
    let mut bytes = vec![0; length.min(INPUT_BYTES_MAX) as usize];
    from.read_exact(&mut bytes).ok()?;
    match kind {
        INPUT => Some(Frame::Input(bytes)),
        END_OF_INPUT => Some(Frame::EndOfInput),
        SIGNAL => bytes
            .try_into()
            .ok()
            .map(|bytes| Frame::Signal(i32::from_le_bytes(bytes))),
        _ => None,
    }
}

/// Reads the order of the launcher from standard input, and becomes the program that it names.
pub fn run() -> Result<ExitCode> {
    // Not through the buffer of the standard library: what follows the order is the program's.
    let input = std::io::stdin();
    let mut input = std::fs::File::from(rustix::io::dup(&input)?);
    let order = read_order(&mut input)?;
    if order.is_remote {
        return stay(order, input);
    }
    die_with_launcher(order.launcher)?;
    if order.command.is_empty() {
        compute_for_ever();
    }
    let files = provide(&order)?;
    let mut command = command_of(&order, &files)?;
    drop(input);
    let error = command.exec();
    Err(error).with_context(|| format!("starting {}", order.command[0]))
}

/// Ends this process when the one that started it ends, whatever ends that.
fn die_with_launcher(launcher: u32) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("asking for its parent's end")?;
    // It may have ended before; then another process is the parent.
    let parent = rustix::process::getppid().map(Pid::as_raw_pid);
    ensure!(
        parent.and_then(|parent| u32::try_from(parent).ok()) == Some(launcher),
        "the launcher has ended"
    );
    Ok(())
}

/// The work of null until it is killed.
fn compute_for_ever() -> ! {
    loop {
        std::hint::black_box(0);
    }
}

/// Makes the files that the program needs, in memory, which it inherits.
fn provide(order: &Order) -> Result<Vec<(String, OwnedFd)>> {
    let mut files = Vec::new();
    for (variable, text) in &order.files {
        let file = memfd_create("hamlyn-run", MemfdFlags::empty()).context("making a file")?;
        fchmod(&file, Mode::RUSR | Mode::WUSR).context("making a file private")?;
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest).context("writing a file")?;
            rest = &rest[written..];
        }
        files.push((variable.clone(), file));
    }
    Ok(files)
}

fn command_of(order: &Order, files: &[(String, OwnedFd)]) -> Result<Command> {
    let Some((program, arguments)) = order.command.split_first() else {
        bail!("its order names no program");
    };
    let mut command = Command::new(program);
    command.args(arguments).envs(&order.variables);
    for (variable, file) in files {
        let path = OsString::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        command.env(variable, path);
    }
    if let Some(directory) = &order.directory {
        // There may be no such directory on another host; then it is the home directory.
        if std::path::Path::new(directory).is_dir() {
            command.current_dir(directory);
        }
    }
    Ok(command)
}

/// Starts a process that becomes the program, and ends with this one, and stays beside it.
fn stay(order: Order, mut orders: std::fs::File) -> Result<ExitCode> {
    let own = std::env::current_exe().context("finding this program")?;
    let mut child = Command::new(own)
        .arg(PROCESS_COMMAND)
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .context("starting a process")?;
    let whom = Pid::from_child(&child);
    let mut input = child.stdin.take();
    let order = Order {
        is_remote: false,
        launcher: std::process::id(),
        ..order
    };
    if let Some(input) = &mut input {
        send_order(input, &order)?;
    }
    std::thread::spawn(move || {
        loop {
            match read_frame(&mut orders) {
                Some(Frame::Input(bytes)) => {
                    let is_gone = input
                        .as_mut()
                        .is_some_and(|to| to.write_all(&bytes).is_err());
                    if is_gone {
                        input = None;
                    }
                }
                Some(Frame::EndOfInput) => input = None,
                Some(Frame::Signal(signal)) => {
                    if let Some(signal) = Signal::from_named_raw(signal) {
                        let _ = kill_process_group(whom, signal);
                    }
                }
                None => {
                    // The launcher or the way to it is gone.
                    let _ = kill_process_group(whom, Signal::KILL);
                    return;
                }
            }
        }
    });
    let status = child.wait().context("waiting for the program")?;
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, signal) => SIGNALLED + signal.unwrap_or_default(),
    };
    Ok(ExitCode::from(code as u8))
}
