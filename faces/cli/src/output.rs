//! Standard output. When nobody reads it any more, as behind `head`, the command ends quietly: it
//! unwinds, so that what it opened is closed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::{fmt, io};

/// As the standard library's, but what cannot be written is no panic.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::output::write(format_args!($($text)*)) };
}
/// As the standard library's, but what cannot be written is no panic.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($text:tt)*) => { $crate::print!("{}\n", format_args!($($text)*)) };
}

/// How a process ends that SIGPIPE ended, as a shell says it.
const NOBODY_READS: u8 = 128 + 13;

/// Standard output took no more.
#[derive(Debug, thiserror::Error)]
#[error("writing standard output: {0}")]
pub struct Unwritten(pub io::Error);

/// Writes to standard output, for [`print!`](crate::print).
pub fn write(text: fmt::Arguments<'_>) {
    if let Err(error) = io::Write::write_fmt(&mut io::stdout(), text) {
        resume_unwind(Box::new(Unwritten(error)));
    }
}

/// Runs a command of that program: its log goes to standard error as HAMLYN_LOG says, and so does
/// its error.
pub fn run(program: &str, command: impl FnOnce() -> anyhow::Result<ExitCode>) -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_env("HAMLYN_LOG"))
        .with_writer(io::stderr)
        .init();
    match catch(command) {
        Ok(status) => status,
        Err(error) => match error.downcast_ref::<Unwritten>() {
            Some(Unwritten(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                NOBODY_READS.into()
            }
            _ => {
                eprintln!("{program}: {error:#}");
                ExitCode::FAILURE
            }
        },
    }
}

/// What [`write`] unwound with is the command's error.
fn catch<T>(command: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let unwound = match catch_unwind(AssertUnwindSafe(command)) {
        Ok(result) => return result,
        Err(unwound) => unwound,
    };
    match unwound.downcast::<Unwritten>() {
        Ok(unwritten) => Err((*unwritten).into()),
        Err(other) => resume_unwind(other),
    }
}
