//! Where the two hosts are: in network namespaces joined by one cable, or, where this process may
//! not make those, both on the loopback device, which is no wire: nothing is cut into packets
//! there, and both hosts share one network stack.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use hamlyn::host::network::hosts::{HostName, Hosts};
use hamlyn::host::network::{ClusterSecret, NetworkOptions, Security};
use hamlyn::host::process::NetworkUse;
use hamlyn_testbed::Testbed;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, Mode};
use serde::{Deserialize, Serialize};

/// The first port at which doorkeepers listen; each way of protection has one for each host, so
/// that they can also share a host.
const NAME_SERVICE_PORT: u16 = 27_407;

/// What protects the frames of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) enum Protection {
    /// Nothing but checksums (`--insecure`).
    Clear,
    /// Encrypted and authenticated.
    Encrypted,
}

impl Protection {
    pub(super) const ALL: [Self; 2] = [Self::Clear, Self::Encrypted];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Encrypted => "encrypted",
        }
    }
}

/// One of the two hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Side {
    /// That leads: its processes send.
    First,
    /// That follows.
    Second,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::First, Self::Second];

    fn name(self) -> &'static str {
        match self {
            Self::First => "one",
            Self::Second => "other",
        }
    }
}

/// See the module.
pub(super) struct Place {
    testbed: Option<Testbed>,
    /// Why there are no namespaces.
    pub(super) why_not: Option<String>,
    pub(super) mtu_bytes: u32,
    secret: OwnedFd,
}

impl Place {
    /// Two hosts, joined by a cable with that MTU.
    pub(super) fn make(mtu_bytes: u32) -> Result<Self> {
        let names = Side::BOTH.map(Side::name);
        let (testbed, why_not) = match Testbed::with_names(&names, mtu_bytes) {
            Ok(testbed) => (Some(testbed), None),
            Err(error) if error.is_want_of_rights() => (None, Some(error.to_string())),
            Err(error) => return Err(error).context("joining two hosts"),
        };
        if let Some(why_not) = &why_not {
            eprintln!(
                "hamlyn: no two hosts, so both are measured on the loopback device, which is no wire: {why_not}"
            );
        }
        Ok(Self {
            testbed,
            why_not,
            mtu_bytes,
            secret: secret()?,
        })
    }

    pub(super) fn address(&self, side: Side) -> IpAddr {
        match &self.testbed {
            Some(testbed) => testbed.hosts()[side as usize].address().into(),
            None => IpAddr::from([127, 0, 0, 1]),
        }
    }

    /// What runs this program there.
    pub(super) fn command(&self, side: Side) -> Result<Command> {
        let program = std::env::current_exe().context("finding this program")?;
        Ok(match &self.testbed {
            Some(testbed) => testbed.hosts()[side as usize].command(program),
            None => Command::new(program),
        })
    }

    /// How an interface there enters the network.
    pub(super) fn entry(&self, side: Side, protection: Protection) -> Entry {
        let secret = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            self.secret.as_raw_fd()
        );
        Entry {
            side,
            protection,
            addresses: Side::BOTH.map(|side| self.address(side)),
            secret: (protection == Protection::Encrypted).then(|| secret.into()),
        }
    }
}

/// How an interface enters the network.
#[derive(Serialize, Deserialize)]
pub(super) struct Entry {
    side: Side,
    protection: Protection,
    addresses: [IpAddr; 2],
    secret: Option<PathBuf>,
}

impl Entry {
    /// Interfaces in different ones do not see each other.
    pub(super) fn namespace(&self) -> String {
        format!("bench-network-{}", self.protection.name())
    }

    pub(super) fn network(&self) -> Result<NetworkUse> {
        let security = match (&self.secret, self.protection) {
            (Some(secret), Protection::Encrypted) => Security::Secret(secret.clone()),
            (None, Protection::Clear) => Security::Insecure,
            _ => bail!("a secret is for what is encrypted"),
        };
        let mut options = NetworkOptions::new(security);
        let door = |side: Side| NAME_SERVICE_PORT + 2 * self.protection as u16 + side as u16;
        options.host = Some(HostName::new(self.side.name())?);
        options.listen = (self.addresses[self.side as usize], 0).into();
        options.name_service_port = door(self.side);
        let mut hosts = Hosts::new();
        for side in Side::BOTH {
            let at = (self.addresses[side as usize], door(side)).into();
            hosts.insert(HostName::new(side.name())?, at)?;
        }
        options.hosts = hosts;
        Ok(NetworkUse::On(Box::new(options)))
    }
}

/// A cluster's secret for this run, in memory: nothing is left when this process ends.
fn secret() -> Result<OwnedFd> {
    let file = rustix::fs::memfd_create("hamlyn-bench-secret", MemfdFlags::CLOEXEC)
        .context("making a file in memory")?;
    rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR).context("keeping the secret")?;
    let text = ClusterSecret::generate()?.to_text();
    let written = rustix::io::write(&file, text.as_bytes()).context("writing the secret")?;
    if written != text.len() {
        bail!("the secret was not written whole");
    }
    Ok(file)
}
