//! Hamlyn's own programs of the comparison, on its public interface.
//!
//! * `raw`: the raw interface. Messages that fit a packet go in fast mode, longer ones to a metadata entry.
//! * `direct`: the same with direct placement: each side stores messages of 1 KiB and more into pages that the
//!   other granted. A grant is for one peer, so there is one sender.
//! * `many`: short messages of the raw interface, 64 in a call. Streams only.
//! * `tagged`: tagged writes, of one packet.
//! * `datagram`: one at a time, so round trips only.
//! * `stream`: records.
//!
//! Unless said otherwise, placement is copied, and each message has a call of its own.

mod datagrams;
mod deposits;
mod records;

use anyhow::{Result, bail};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions, Wait};
use hamlyn_compare_session::Session;

use crate::deposits::Way;

/// How long setting up may wait for the other side.
pub(crate) const SETTING_UP: Wait = Wait::millis(10_000);

/// A stream has as many pieces as this has room for; the longest record needs 4,096.
const QUEUE_ENTRIES: usize = 1 << 14;

fn main() -> Result<()> {
    let session = Session::open()?;
    match session.variant.as_str() {
        "raw" => deposits(session, Way::Raw),
        "direct" => deposits(session, Way::Direct),
        "many" => deposits(session, Way::Many),
        "tagged" => deposits(session, Way::Tagged),
        "datagram" => session.run(datagrams::Datagrams::open),
        "stream" => session.run(records::Records::open),
        other => bail!("no variant {other:?}"),
    }
}

fn deposits(session: Session, way: Way) -> Result<()> {
    session.run(|session| deposits::Deposits::open(session, way))
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
