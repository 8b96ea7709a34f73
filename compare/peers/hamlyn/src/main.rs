//! Hamlyn's own programs of the comparison, on its public interface.
//!
//! * `raw`: the raw interface. Messages that fit a packet go in fast mode, longer ones to a metadata entry.
//! * `tagged`: tagged writes, of one packet.
//! * `datagram`: one at a time, so round trips only.
//! * `stream`: records.
//!
//! Placement is copied. Direct placement would be one more variant.

mod datagrams;
mod deposits;
mod records;

use anyhow::{Result, bail};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions, Wait};
use hamlyn_compare_session::Session;

/// How long setting up may wait for the other side.
pub(crate) const SETTING_UP: Wait = Wait::millis(10_000);

/// A stream has as many pieces as this has room for; the longest record needs 4,096.
const QUEUE_ENTRIES: usize = 1 << 14;

fn main() -> Result<()> {
    let session = Session::open()?;
    match session.variant.as_str() {
        "raw" => session.run(|session| deposits::Deposits::open(session, deposits::Way::Raw)),
        "tagged" => session.run(|session| deposits::Deposits::open(session, deposits::Way::Tagged)),
        "datagram" => session.run(datagrams::Datagrams::open),
        "stream" => session.run(records::Records::open),
        other => bail!("no variant {other:?}"),
    }
}

/// A manager that polls and never sleeps, apart from all others on this machine.
pub(crate) fn open() -> Result<Manager<ProcessHost>> {
    let mut options = Options::default().in_namespace("compare");
    options.spin_ns = Some(u64::MAX / 4);
    let manager = ManagerOptions {
        queue_entries: QUEUE_ENTRIES,
        ..ManagerOptions::default()
    };
    Ok(hamlyn::open_with(options, manager)?)
}
