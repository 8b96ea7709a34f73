//! What happens to a job, and how a process ended.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::process::Signal;

/// What the launcher waits for.
pub(super) enum Event {
    /// A process has ended, and was not reaped.
    Ended {
        /// Which.
        proc: usize,
    },
    /// The launcher was sent a signal.
    Signal(i32),
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    Status(i32),
    Signal(i32),
}

/// What a shell adds to the number of a signal.
const SIGNALLED: i32 = 128;

impl Ending {
    pub(super) fn of(status: ExitStatus, is_remote: bool) -> Self {
        match (status.code(), status.signal()) {
            // On another host the process beside it says so.
            (Some(code), _) if is_remote && (129..=192).contains(&code) => {
                Self::Signal(code - SIGNALLED)
            }
            (Some(code), _) => Self::Status(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }

    /// What a shell would say; nothing if the process succeeded.
    pub(super) fn code(self) -> Option<u8> {
        match self {
            Self::Status(0) => None,
            Self::Status(code) => Some(code as u8),
            Self::Signal(signal) => Some((SIGNALLED + signal) as u8),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Status(code) => write!(f, "ended with status {code}"),
            Self::Signal(signal) => {
                write!(f, "was killed by signal {signal}")?;
                match Signal::from_named_raw(signal) {
                    Some(named) => write!(f, " ({})", name_of(named)),
                    None => Ok(()),
                }
            }
        }
    }
}

fn name_of(signal: Signal) -> String {
    // Its debugging form is `Signal::SEGV` or alike.
    let text = format!("{signal:?}");
    let name = text.rsplit("::").next().unwrap_or_default();
    let name = name.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    match name.starts_with("SIG") {
        true => name.to_owned(),
        false => format!("SIG{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_is_told_as_a_shell_would() {
        assert_eq!(Ending::Status(0).code(), None);
        assert_eq!(Ending::Status(3).code(), Some(3));
        assert_eq!(Ending::Signal(9).code(), Some(137));
        let killed = Ending::of(ExitStatus::from_raw(9), false);
        assert_eq!(killed.to_string(), "was killed by signal 9 (SIGKILL)");
        let remote = Ending::of(ExitStatus::from_raw(139 << 8), true);
        assert_eq!(remote.to_string(), "was killed by signal 11 (SIGSEGV)");
    }
}
