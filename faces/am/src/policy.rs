//! The default handler 0: it reports messages that come back, and goes on.

use std::cell::Cell;
use std::ffi::c_int;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::dispatch::Back;
use hamlyn_boundary::setting;

use crate::status::Failure;

/// The action of the default handler 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Policy {
    /// One line on standard error, at most each second.
    Report,
    /// The same, and the end of the process.
    Abort,
    /// Nothing but the count.
    Silent,
}

const VARIABLE: &str = "HAMLYN_AM_RETURNED";
const BETWEEN_REPORTS: Duration = Duration::from_secs(1);

impl Policy {
    pub(crate) fn of(number: c_int) -> Result<Self, Failure> {
        match number {
            0 => Ok(Self::Report),
            1 => Ok(Self::Abort),
            2 => Ok(Self::Silent),
            _ => Err(Failure::bad(
                "the policy is AMX_RETURN_REPORT, AMX_RETURN_ABORT or AMX_RETURN_SILENT",
            )),
        }
    }

    pub(crate) fn of_environment() -> Result<Self, Failure> {
        let policy = setting(VARIABLE, "report, abort or silent", |value| match value {
            "report" => Some(Self::Report),
            "abort" => Some(Self::Abort),
            "silent" => Some(Self::Silent),
            _ => None,
        })?;
        Ok(policy.unwrap_or(Self::Report))
    }
}

thread_local! {
    static REPORTED: Cell<Option<Instant>> = const { Cell::new(None) };
    static UNREPORTED: Cell<u64> = const { Cell::new(0) };
    static POLICY: Cell<Policy> = const { Cell::new(Policy::Report) };
}

pub(crate) fn set(policy: Policy) {
    POLICY.set(policy);
}

/// The default handler 0.
pub(crate) fn report(back: &Back<'_>) {
    let policy = POLICY.get();
    if policy == Policy::Silent {
        return;
    }
    let is_due = REPORTED
        .get()
        .is_none_or(|last| last.elapsed() >= BETWEEN_REPORTS);
    if !is_due && policy == Policy::Report {
        return UNREPORTED.set(UNREPORTED.get() + 1);
    }
    REPORTED.set(Some(Instant::now()));
    let before = match UNREPORTED.take() {
        0 => String::new(),
        count => format!(" ({count} before it were not reported)"),
    };
    let (operation, handler, reason) = (back.operation, back.handler, back.reason);
    let (arguments, data) = (back.arguments.len(), back.data.len());
    // Nobody is left to be told if it cannot be written.
    let _ = writeln!(
        std::io::stderr(),
        "am: {operation:?} for handler {handler} with {arguments} arguments and {data} bytes came back: {reason}{before}; \
         set handler 0 to treat such messages"
    );
    if policy == Policy::Abort {
        std::process::abort();
    }
}
