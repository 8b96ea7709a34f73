//! The interfaces of other hosts, as this one reaches them: finding them, asking them, linking to them, in the caller's thread.
//!
//! Every wait is bounded by the caller's deadline. A letter that is not answered is sent again; whoever gets it twice answers
//! the same.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use hamlyn_link::wire::Wire;

use super::hosts::{HostName, Hosts};
use super::letter::{Answer, Request, Side, Sought};
use super::options::NetworkOptions;
use crate::process::name::{Name, Namespace};
use crate::{Address, ConnectError, Destination, HostError};

/// An interface of another host, as somebody looks for it.
pub(crate) struct Abroad {
    host: String,
    /// Where its doorkeeper may be.
    doors: Vec<SocketAddr>,
    sought: Sought,
    /// Who it must be, if that is known.
    pub(crate) destination: Option<Destination>,
    /// For messages to people.
    pub(crate) shown: String,
}

/// What a process has on the network.
pub(crate) struct Network {
    pub(crate) options: NetworkOptions,
    pub(crate) host: HostName,
    namespace: Namespace,
    pub(crate) wire: Arc<Wire>,
    /// Hosts that we have met and that the table does not name.
    met: Mutex<BTreeMap<u32, SocketAddr>>,
}

impl Network {
    /// The number of this host in tickets.
    pub(crate) fn node(&self) -> u32 {
        self.host.node()
    }

    /// Where an address leads, if it leads to another host.
    pub(crate) fn abroad(&self, to: Address<'_>) -> Result<Option<Abroad>, ConnectError> {
        match to {
            Address::Name(name) => self.by_name(name),
            Address::Destination(to) => Ok(self.by_destination(to)),
        }
    }

    /// The host and the rest of `host/name`.
    fn parts<'a>(&self, name: &'a str) -> Option<(HostName, &'a str)> {
        let (host, rest) = name.split_once('/')?;
        Some((HostName::new(host).ok()?, rest))
    }

    /// The name without this host's own before it.
    pub(crate) fn without_own_host<'a>(&self, name: &'a str) -> &'a str {
        match self.parts(name) {
            Some((host, rest)) if host == self.host => rest,
            _ => name,
        }
    }

    fn by_name(&self, name: &str) -> Result<Option<Abroad>, ConnectError> {
        let Some((host, rest)) = self.parts(name) else {
            return Ok(None);
        };
        if host == self.host {
            return Ok(None);
        }
        let doors = self.options.hosts.addresses(&host);
        if doors.is_empty() {
            // It may be a name of this host that has a slash.
            return Ok(None);
        }
        Ok(Some(Abroad {
            host: host.as_str().to_owned(),
            doors,
            sought: Sought::Name(Name::checked(rest)?),
            destination: None,
            shown: format!("{name:?}"),
        }))
    }

    fn by_destination(&self, to: Destination) -> Option<Abroad> {
        if to.node == 0 || to.node == self.node() {
            return None;
        }
        let (host, doors) = match self.options.hosts.by_node(to.node) {
            Some(host) => (
                host.as_str().to_owned(),
                self.options.hosts.addresses(host),
            ),
            None => {
                let met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
                (format!("{:08x}", to.node), vec![*met.get(&to.node)?])
            }
        };
        let shown = format!("{:016x} of user {} on {host}", to.interface, to.user);
        Some(Abroad {
            host,
            doors,
            sought: Sought::Interface(to.interface),
            destination: Some(to),
            shown,
        })
    }

    /// The host of that number is there: what a ticket of it needs if the table does not name it.
    fn meet(&self, node: u32, at: IpAddr) {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let door = SocketAddr::new(at, self.options.door_port);
        // So that strangers who hold the secret cannot make it grow without bound.
        if met.len() < HOSTS_MET_MAX || met.contains_key(&node) {
            met.insert(node, door);
        }
    }
}

/// Hosts that are remembered beside the table.
const HOSTS_MET_MAX: usize = 4096;
