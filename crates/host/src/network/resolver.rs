//! The remote resolver: finds, asks and links interfaces of other hosts, in the caller's thread.
//!
//! Every wait is bounded by the caller's deadline. A request that is not answered is sent again; a
//! peer that gets it twice gives the same answer.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use hamlyn_link::trace::Trace;
use hamlyn_link::udp::handshake::{Credentials, Identity, Responder};
use hamlyn_link::udp::socket::SocketSettings;
use hamlyn_link::udp_endpoint::UdpEndpoint;

mod asking;
mod lost_questions;
mod pending_connection;

use lost_questions::LostQuestions;
pub(crate) use pending_connection::PendingConnection;

use super::credentials::{check_own_name, credentials};
use super::handshake_payload::{Side, Sought};
use super::hosts::HostName;
use super::options::{NetworkOptions, SILENCE_MAX};
use super::trace::of_this_process;
use crate::process::clock::now_ns;
use crate::process::name::{Name, Namespace};
use crate::{Address, ConnectError, Destination, Errno, HostError, Peer};

/// The largest datagram that is used, where the way carries so much: that of a jumbo frame.
const DATAGRAM_BYTES_MAX: usize = 8_952;
/// Without a word of the system, the way is taken for Ethernet.
const DATAGRAM_BYTES_USUAL: usize = 1_452;

/// Frames that are acknowledged together if they come together: most of what one call of the system
/// brings, of the length usual on Ethernet.
const ACKNOWLEDGE_FRAMES: u16 = 40;
/// Full frames that wait to be sent: two calls full.
const READY_FRAMES_MAX: u16 = 88;

/// An interface of another host that is looked for.
pub(crate) struct RemoteTarget {
    pub(crate) host: String,
    /// The possible addresses of its name service.
    name_services: Vec<SocketAddr>,
    sought: Sought,
    /// Who it must be, if that is known.
    pub(crate) destination: Option<Destination>,
    /// For messages to people.
    pub(crate) shown: String,
}

/// Where an interface of another host was found.
pub(crate) struct Found {
    pub(crate) at: SocketAddr,
    pub(crate) who: Destination,
}

/// Why a handshake payload was not answered.
pub(crate) enum Unanswered {
    /// No program listens there.
    Absent,
    /// Its host says that it is not there.
    Gone,
    /// It did not finish in time.
    Late,
    /// Nothing authentic came from there in time.
    Silent(SocketAddr),
    /// The system knows no way there, perhaps only not yet.
    NoRoute(SocketAddr, rustix::io::Errno),
    /// It cannot be answered.
    Failed(ConnectError),
}

impl<E: Into<ConnectError>> From<E> for Unanswered {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The network side of a process.
pub(crate) struct Network {
    pub(crate) options: NetworkOptions,
    host: HostName,
    namespace: Namespace,
    pub(crate) endpoint: Arc<UdpEndpoint>,
    credentials: Credentials,
    responder: Mutex<Responder>,
    trace: Option<Arc<Trace>>,
    /// The address cache: hosts that were found by their names and that the table does not name.
    address_cache: Mutex<BTreeMap<u32, SocketAddr>>,
    lost: Mutex<LostQuestions>,
    given: Mutex<VecDeque<GivenOffer>>,
}

/// An offer that was given.
pub(crate) struct GivenOffer {
    /// Its asker.
    pub(crate) asker: Identity,
    /// The number of the question.
    pub(crate) number: u64,
    pub(crate) item: Name,
    pub(crate) bytes: Vec<u8>,
}

/// How long one of several name services of a host is asked.
const NAME_SERVICE_NS: u64 = 300_000_000;
/// Hosts in the address cache.
const ADDRESS_CACHE_MAX: usize = 4096;
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time of day, in milliseconds since 1970.
pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// All addresses of IPv6 are those of IPv4 as well, where there are any of IPv6.
fn listening(at: SocketAddr) -> SocketAddr {
    if at.is_ipv6() && at.ip().is_unspecified() && UdpSocket::bind(at).is_err() {
        return SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), at.port());
    }
    at
}

impl Network {
    /// Joins the network. `tell` is called, from any thread, when an unassociated datagram has come
    /// or a link has ended.
    pub(crate) fn open(
        options: NetworkOptions,
        interface: u64,
        namespace: Namespace,
        tell: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Self, HostError> {
        let host = match &options.host {
            Some(host) => host.clone(),
            None => HostName::own()?,
        };
        if options.silence > SILENCE_MAX {
            return Err(HostError::BadSetting {
                setting: "the silence before a peer is asked, in seconds",
                value: options.silence.as_secs(),
                reason: "it can be a minute at most",
            });
        }
        let credentials = credentials(&options.security)?;
        check_own_name(&credentials, &host)?;
        if matches!(credentials, Credentials::Insecure) {
            tracing::warn!(
                %host,
                "the network is used without authentication and without encryption, as configured: any host that reaches this port may do anything"
            );
        }
        let settings = SocketSettings::default();
        let open = |at| UdpEndpoint::open(at, &settings, now_ns, tell);
        let endpoint = open(listening(options.listen))?;
        let responder = Responder::new(&credentials, interface).map_err(|_| HostError::System {
            call: "getrandom",
            errno: Errno(0),
        })?;
        Ok(Self {
            host,
            namespace,
            endpoint: Arc::new(endpoint),
            responder: Mutex::new(responder),
            credentials,
            options,
            trace: of_this_process()?,
            address_cache: Mutex::default(),
            lost: Mutex::default(),
            given: Mutex::default(),
        })
    }

    /// The number of this host in tickets.
    pub(crate) fn node(&self) -> u32 {
        self.host.node()
    }

    /// What it is called.
    pub(crate) fn host(&self) -> &HostName {
        &self.host
    }

    /// A responder for those who look for names.
    pub(crate) fn new_responder(&self) -> Option<Responder> {
        Responder::new(&self.credentials, 0).ok()
    }

    /// Where to send from, to there: from an address that was chosen, or any of the family.
    fn own_for(&self, to: SocketAddr) -> SocketAddr {
        if !self.options.listen.ip().is_unspecified() {
            return with_port(self.options.listen, 0);
        }
        match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }

    /// The responder for handshakes at the endpoint's port.
    pub(crate) fn responder(&self) -> MutexGuard<'_, Responder> {
        lock(&self.responder)
    }

    /// Offers that were given lately.
    pub(crate) fn given(&self) -> MutexGuard<'_, VecDeque<GivenOffer>> {
        lock(&self.given)
    }

    /// Where an address leads, if it leads to another host.
    pub(crate) fn resolve(
        &self,
        to: Address<'_>,
        deadline_ns: u64,
    ) -> Result<Option<RemoteTarget>, ConnectError> {
        match to {
            Address::Name(name) => self.by_name(name, deadline_ns),
            Address::Destination(to) => Ok(self.by_destination(to, deadline_ns)),
        }
    }

    /// The host that a name seems to speak of, of which nothing is known.
    pub(crate) fn unknown_host(&self, name: &str) -> Option<String> {
        let (host, _) = parts(name)?;
        (host != self.host).then(|| host.as_str().to_owned())
    }

    /// The name without this host's own before it.
    pub(crate) fn without_own_host<'a>(&self, name: &'a str) -> &'a str {
        match parts(name) {
            Some((host, rest)) if host == self.host => rest,
            _ => name,
        }
    }

    fn by_name(&self, name: &str, deadline_ns: u64) -> Result<Option<RemoteTarget>, ConnectError> {
        let Some((host, rest)) = parts(name).filter(|(host, _)| *host != self.host) else {
            return Ok(None);
        };
        let name_services = self.options.hosts.addresses(&host, deadline_ns);
        if name_services.is_empty() {
            // See `unknown_host`.
            return Ok(None);
        }
        Ok(Some(RemoteTarget {
            host: host.as_str().to_owned(),
            name_services,
            sought: Sought::Name(Name::checked(rest)?),
            destination: None,
            shown: format!("{name:?}"),
        }))
    }

    fn by_destination(&self, to: Destination, deadline_ns: u64) -> Option<RemoteTarget> {
        if to.node == 0 || to.node == self.node() {
            return None;
        }
        let hosts = &self.options.hosts;
        let listed = self.listed_by_node(to.node);
        let (host, name_services) = match hosts.by_node(to.node).cloned().or(listed) {
            Some(host) => {
                let name_services = hosts.addresses(&host, deadline_ns);
                (host.as_str().to_owned(), name_services)
            }
            None => {
                let name_service = *lock(&self.address_cache).get(&to.node)?;
                (format!("{:08x}", to.node), vec![name_service])
            }
        };
        if name_services.is_empty() {
            return None;
        }
        let shown = format!("{:016x} of user {} on {host}", to.interface, to.user);
        Some(RemoteTarget {
            host,
            name_services,
            sought: Sought::Interface(to.interface),
            destination: Some(to),
            shown,
        })
    }

    /// The host of that number in the list of keys.
    fn listed_by_node(&self, node: u32) -> Option<HostName> {
        match &self.credentials {
            Credentials::Keys { hosts, .. } => hosts.iter().find_map(|(name, _)| {
                let host = HostName::new(name).ok()?;
                (host.node() == node).then_some(host)
            }),
            Credentials::Secret(_) | Credentials::Insecure => None,
        }
    }

    /// Keeps the address of the host of that number, for tickets of a host that the table does not
    /// name. Only for a host that was looked up by the name from which its number is made: a host's
    /// own claim about its address is not believed.
    fn cache_address(&self, host: &str, node: u32, at: SocketAddr) {
        if !HostName::new(host).is_ok_and(|name| name.node() == node) {
            return;
        }
        let mut address_cache = lock(&self.address_cache);
        let name_service = with_port(at, self.options.name_service_port);
        if address_cache.len() < ADDRESS_CACHE_MAX || address_cache.contains_key(&node) {
            address_cache.insert(node, name_service);
        }
    }

    /// Whether tickets of a host of that number, which was found by that name, lead anywhere.
    fn is_called(&self, host: &str, node: u32) -> bool {
        node == self.node()
            || HostName::new(host).is_ok_and(|name| name.node() == node)
            || self.options.hosts.by_node(node).is_some()
            || self.listed_by_node(node).is_some()
            || lock(&self.address_cache).contains_key(&node)
    }
}

impl RemoteTarget {
    fn invalid(&self) -> ConnectError {
        ConnectError::Invalid {
            to: self.shown.clone(),
            what: "it answered with something else than was asked for",
        }
    }
}

/// The peer that a side says it is.
pub(crate) fn peer_of(side: &Side) -> Peer {
    Peer {
        token: 0,
        destination: side.destination,
        group: side.group,
        process: side.process,
        name: side.name.as_ref().map(|name| name.as_str().to_owned()),
    }
}

/// Whether a peer with this proved identity may speak for the host of that number.
pub(crate) fn is_of_host(identity: &Identity, node: u32) -> bool {
    match identity {
        Identity::Host(name) => HostName::new(name).is_ok_and(|name| name.node() == node),
        Identity::SecretHolder | Identity::Anyone => true,
    }
}

/// The same address, with its network interface, and that port.
pub(crate) fn with_port(mut at: SocketAddr, port: u16) -> SocketAddr {
    at.set_port(port);
    at
}

/// The host of `host/name`.
pub(crate) fn host_of(name: &str) -> Option<String> {
    Some(parts(name)?.0.to_string())
}

/// The host and the rest of `host/name`.
fn parts(name: &str) -> Option<(HostName, &str)> {
    let (host, rest) = name.split_once('/')?;
    Some((HostName::new(host).ok()?, rest))
}

#[cfg(test)]
mod shared_port_tests;
#[cfg(test)]
mod tests;
