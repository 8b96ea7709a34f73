//! Settings that the environment has.

use crate::status::BadArgument;

/// The setting of a variable; none if it is not set. `meaning` says in the error which values it
/// may have.
pub fn setting<T>(
    variable: &str,
    meaning: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, BadArgument> {
    let Ok(value) = std::env::var(variable) else {
        return Ok(None);
    };
    match parse(&value) {
        Some(setting) => Ok(Some(setting)),
        None => {
            let text = format!("{variable} cannot be {value:?}: it is {meaning}");
            Err(BadArgument(text.into()))
        }
    }
}
