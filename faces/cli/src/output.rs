//! Standard output. When nobody reads it any more, as behind `head`, the command ends quietly: it unwinds, so that what
//! it opened is closed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::{fmt, io};

/// As the standard library's, but what cannot be written is no panic.
macro_rules! print {
    ($($text:tt)*) => { $crate::output::write(format_args!($($text)*)) };
}
macro_rules! println {
    () => { print!("\n") };
    ($($text:tt)*) => { print!("{}\n", format_args!($($text)*)) };
}

/// Standard output took no more.
#[derive(Debug, thiserror::Error)]
#[error("writing standard output: {0}")]
pub(crate) struct Unwritten(pub(crate) io::Error);

pub(crate) fn write(text: fmt::Arguments<'_>) {
    if let Err(error) = io::Write::write_fmt(&mut io::stdout(), text) {
        resume_unwind(Box::new(Unwritten(error)));
    }
}

/// Runs a command. What [`write`] unwound with is its error.
pub(crate) fn catch<T>(command: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let unwound = match catch_unwind(AssertUnwindSafe(command)) {
        Ok(result) => return result,
        Err(unwound) => unwound,
    };
    match unwound.downcast::<Unwritten>() {
        Ok(unwritten) => Err((*unwritten).into()),
        Err(other) => resume_unwind(other),
    }
}
