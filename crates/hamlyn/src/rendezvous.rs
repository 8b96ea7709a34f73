//! Opening a manager in this process, with no daemon and no configuration.

use hamlyn_host::process::{Options, ProcessHost};
use hamlyn_host::sharing::AnyThread;

use crate::error::OpenError;
use crate::manager::{Manager, ManagerOptions};

/// A manager whose interface others can connect to by `name`.
pub fn open(name: &str) -> Result<Manager<ProcessHost>, OpenError> {
    open_with(Options::named(name), ManagerOptions::default())
}

/// A manager whose interface others reach by its tickets only.
pub fn open_unnamed() -> Result<Manager<ProcessHost>, OpenError> {
    open_with(Options::default(), ManagerOptions::default())
}

/// A manager with settings of one's own.
pub fn open_with(
    host: Options,
    manager: ManagerOptions,
) -> Result<Manager<ProcessHost>, OpenError> {
    Manager::new(ProcessHost::open(host)?, manager)
}

/// As [`open_with`], for a manager and end points that several threads use, one at a time. Each call takes a lock; a call that
/// waits lets others have it meanwhile.
pub fn open_shared(
    host: Options,
    manager: ManagerOptions,
) -> Result<Manager<ProcessHost<AnyThread>>, OpenError> {
    Manager::new(ProcessHost::open_shared(host)?, manager)
}
