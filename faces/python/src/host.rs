//! Where interfaces run, and their handles.

use hamlyn::host::process::ProcessHost;
use hamlyn::host::sharing::AnyThread;

/// Where interfaces run. Any thread may use the managers of this host, one at a time, so that those that are opened as shared need no other
/// code; all others pay for a lock that is always free.
pub(crate) type Host = ProcessHost<AnyThread>;
/// A handle of a manager of the library.
pub(crate) type Handle = hamlyn::Manager<Host>;
