//! Hosts by name: where each is, and by which number tickets mean it.
//!
//! A host is its name: 1 to 63 letters, digits, dots, underscores and hyphens, small and large
//! letters being the same answer. What is not in the table is asked of the resolver of the
//! operating system, each time.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::NetworkError;
use crate::process::clock::now_ns;

mod address;

pub use address::{BadAddress, address_of};
pub(crate) use address::{is_ambiguous, own_address_of};

/// The default port of the name service.
pub const NAME_SERVICE_PORT: u16 = 7407;

/// The name of a host.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostName(String);

impl HostName {
    /// The longest name.
    pub const BYTES_MAX: usize = 63;

    /// Checks a name; the error says what is wrong with it.
    pub fn new(name: &str) -> Result<Self, NetworkError> {
        let bad = |reason| NetworkError::HostName {
            name: name.to_owned(),
            reason,
        };
        if name.is_empty() {
            return Err(bad("it is empty"));
        }
        if name.len() > Self::BYTES_MAX {
            return Err(bad("it is longer than 63 bytes"));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !name.bytes().all(allowed) {
            return Err(bad("only letters, digits and . _ - are allowed"));
        }
        Ok(Self(name.to_ascii_lowercase()))
    }

    /// What this host calls itself.
    pub fn own() -> Result<Self, NetworkError> {
        let system = rustix::system::uname();
        Self::new(&system.nodename().to_string_lossy())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number that stands for it in tickets: the same wherever it is computed, and never 0,
    /// which is the host at hand. Two names of a cluster may share a number by bad luck;
    /// [`Hosts::insert`] refuses the second.
    pub fn node(&self) -> u32 {
        // FNV-1a, folded.
        let hash = self
            .0
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        ((hash >> 32) as u32 ^ hash as u32).max(1)
    }
}

impl core::fmt::Display for HostName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Hosts whose addresses are known without asking.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hosts {
    addresses: BTreeMap<HostName, Vec<SocketAddr>>,
    names: BTreeMap<u32, HostName>,
}

impl Hosts {
    /// No host.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a host, or an address to it.
    pub fn insert(&mut self, name: HostName, address: SocketAddr) -> Result<(), NetworkError> {
        let node = name.node();
        match self.names.get(&node) {
            Some(other) if *other != name => {
                return Err(NetworkError::SameNumber {
                    one: other.clone(),
                    other: name,
                });
            }
            _ => {}
        }
        self.names.insert(node, name.clone());
        let addresses = self.addresses.entry(name).or_default();
        if !addresses.contains(&address) {
            addresses.push(address);
        }
        Ok(())
    }

    /// Reads a table: a line for each host, its name first, then its addresses (`192.0.2.7`,
    /// `192.0.2.7:9000`, `[2001:db8::7]:9000`, `fe80::7%eth0`), all parted by blanks. What follows
    /// a `#` is for people.
    pub fn parse(text: &str) -> Result<Self, NetworkError> {
        let mut hosts = Self::new();
        for (index, line) in text.lines().enumerate() {
            let at = |reason: String| NetworkError::HostsLine {
                line: index + 1,
                reason,
            };
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(name) = words.next() else { continue };
            let name = HostName::new(name)?;
            let mut any = false;
            for word in words {
                let address = address_of(word).map_err(|bad| at(format!("{word}: {bad}")))?;
                hosts.insert(name.clone(), address)?;
                any = true;
            }
            if !any {
                return Err(at(format!("{name} is a host without an address")));
            }
        }
        Ok(hosts)
    }

    /// Reads a file as of [`Hosts::parse`].
    pub fn read(path: &Path) -> Result<Self, NetworkError> {
        let text = std::fs::read_to_string(path).map_err(|error| NetworkError::File {
            what: "the table of hosts (HAMLYN_HOSTS)",
            path: path.to_owned(),
            error: error.to_string(),
        })?;
        Self::parse(&text)
    }

    /// The host of that number, if it is in the table.
    pub fn by_node(&self, node: u32) -> Option<&HostName> {
        self.names.get(&node)
    }

    /// Whether the host is in the table.
    pub fn contains(&self, name: &HostName) -> bool {
        self.addresses.contains_key(name)
    }

    /// Where a host's name service listens, as the table says; nothing if it does not.
    pub fn listed(&self, name: &HostName) -> &[SocketAddr] {
        self.addresses.get(name).map_or(&[], Vec::as_slice)
    }

    /// Where a host's name service listens: what the table says, or else the resolver, if it
    /// answers before that instant of the host's clock.
    pub(crate) fn addresses(&self, name: &HostName, deadline_ns: u64) -> Vec<SocketAddr> {
        if let Some(addresses) = self.addresses.get(name) {
            return addresses.clone();
        }
        let name = name.clone();
        let resolve = move || {
            let found = (name.as_str(), NAME_SERVICE_PORT).to_socket_addrs();
            found.map(Iterator::collect).unwrap_or_default()
        };
        let left_ns = deadline_ns.saturating_sub(now_ns());
        within(Duration::from_nanos(left_ns), resolve).unwrap_or_default()
    }
}

/// Look-ups of the resolver that nobody waits for any more may go on, so many at most.
const LOOKUPS_MAX: usize = 16;

/// The result of a call that cannot be cancelled, if it comes in time. Nothing if too many such
/// calls go on.
fn within<R: Send + 'static>(
    span: Duration,
    call: impl FnOnce() -> R + Send + 'static,
) -> Option<R> {
    static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
    if LOOKUPS.fetch_add(1, Ordering::Relaxed) >= LOOKUPS_MAX {
        LOOKUPS.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    let (tell, told) = mpsc::sync_channel(1);
    let begun = std::thread::Builder::new()
        .name("hamlyn-resolver".to_owned())
        .spawn(move || {
            let result = call();
            LOOKUPS.fetch_sub(1, Ordering::Relaxed);
            // Perhaps nobody waits any more.
            let _ = tell.send(result);
        });
    if begun.is_err() {
        LOOKUPS.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    told.recv_timeout(span).ok()
}

#[cfg(test)]
mod tests;
