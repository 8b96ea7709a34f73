//! Errors of the description of a job.

/// A variable of the environment has a value that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the environment variable {variable} cannot be {value:?}: {reason}")]
pub struct Error {
    /// The variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// The fault of it, with the remedy.
    pub reason: String,
}

pub(crate) fn environment(variable: &'static str, value: &str, reason: &str) -> Error {
    Error {
        variable,
        value: value.to_owned(),
        reason: reason.to_owned(),
    }
}
