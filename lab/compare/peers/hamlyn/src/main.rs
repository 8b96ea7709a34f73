//! Hamlyn's own programs of the comparison, on its public interface.
//!
//! * `raw`: the raw interface. Messages that fit a packet go in fast mode, longer ones to a
//!   metadata entry.
//! * `direct`: the same with direct placement: each side stores messages of 1 KiB and more into
//!   a region that the other shares with it alone, so there is one sender.
//! * `many`: short messages of the raw interface, 64 in a call. Streams only.
//! * `tagged`: tagged writes, of one packet.
//! * `datagram`: one at a time, so round trips only.
//! * `stream`: records.
//! * `sleeping`: the raw interface; a process that waits sleeps at once.
//! * `default`: the raw interface, as it comes: a process polls for 20 µs, then sleeps.
//! * `loans`: loaned messages, to readers that each have an interface of their own. Nothing else.
//!
//! Unless said otherwise, placement is copied, and each message has a call of its own.

mod datagrams;
mod deposits;
mod loans;
mod records;

use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;

use anyhow::{Context, Result, bail};
use hamlyn::host::network::hosts::{HostName, Hosts};
use hamlyn::host::network::{ClusterSecret, NetworkOptions, Security};
use hamlyn::host::process::{NetworkUse, Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions, Wait};
use hamlyn_compare_session::{RECEIVER, Session};

use crate::deposits::Way;

/// How long setting up may wait for the other side.
pub(crate) const SETTING_UP: Wait = Wait::millis(10_000);

/// A stream has as many pieces as this has room for; the longest record needs 4,096.
const QUEUE_ENTRIES: usize = 1 << 14;

fn main() -> Result<()> {
    let session = Session::open()?;
    match session.variant.as_str() {
        "raw" | "sleeping" | "default" => deposits(session, Way::Raw),
        "direct" => deposits(session, Way::Direct),
        "many" => deposits(session, Way::Many),
        "tagged" => deposits(session, Way::Tagged),
        "datagram" => session.run(datagrams::Datagrams::open),
        "loans" => session.run(loans::Loans::open),
        "stream" => session.run(records::Records::open),
        other => bail!("no variant {other:?}"),
    }
}

fn deposits(session: Session, way: Way) -> Result<()> {
    session.run(|session| deposits::Deposits::open(session, way))
}

/// Whether the environment says that the others are on another host.
pub(crate) fn is_between() -> bool {
    std::env::var_os("HAMLYN_HOST").is_some()
}

/// The network, encrypted, as the environment says: with a secret that the receiver makes for this
/// session.
fn encrypted(session: &Session) -> Result<NetworkUse> {
    let path = session.directory.join("secret");
    if session.role == RECEIVER {
        let draft = session.directory.join("secret.draft");
        let file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft);
        file.context("a file for the secret")?
            .write_all(ClusterSecret::generate()?.to_text().as_bytes())?;
        std::fs::rename(&draft, &path).context("publishing the secret")?;
    } else {
        session.awaited("secret")?;
    }
    let of = |name| std::env::var(name).with_context(|| format!("no {name}"));
    let mut options = NetworkOptions::new(Security::Secret(path));
    let host = HostName::new(&of("HAMLYN_HOST")?)?;
    options.hosts = Hosts::read(of("COMPARE_HOSTS_ENCRYPTED")?.as_ref())?;
    // Beside the door for those in the clear.
    let own = options.hosts.listed(&host);
    options.name_service_port = own.first().context("an unknown host")?.port();
    options.host = Some(host);
    options.listen = (of("HAMLYN_LISTEN")?.parse::<IpAddr>()?, 0).into();
    Ok(NetworkUse::On(Box::new(options)))
}

/// A manager apart from all others on this machine. It polls and never sleeps, unless the variant
/// says otherwise.
pub(crate) fn open(session: &Session) -> Result<Manager<ProcessHost>> {
    let mut options = Options::default().in_namespace("compare");
    options.spin_ns = match session.variant.as_str() {
        "sleeping" => Some(0),
        "default" => None,
        _ => Some(u64::MAX / 4),
    };
    if std::env::var_os("COMPARE_ENCRYPTED").is_some() {
        options.network = encrypted(session)?;
        options = options.in_namespace("compare-encrypted");
    }
    let manager = ManagerOptions {
        queue_entries: QUEUE_ENTRIES,
        ..ManagerOptions::default()
    };
    Ok(hamlyn::open_with(options, manager)?)
}
