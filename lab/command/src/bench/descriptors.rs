//! File descriptors for many peers.

use anyhow::{Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the number of descriptors that this process may have, as far as it is allowed to, if it
/// is not enough.
pub(super) fn allow(needed: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    // None is no limit.
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if enough(limit.current) {
        return Ok(());
    }
    if !enough(limit.maximum) {
        bail!(
            "{needed} file descriptors are needed and {} allowed: raise the hard limit (as root: ulimit -Hn {needed}), or measure with --quick",
            limit.maximum.unwrap_or(u64::MAX)
        );
    }
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )?;
    Ok(())
}
