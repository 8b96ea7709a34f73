//! What can be set when a host is opened.

use super::name::{Name, Namespace};
use super::numbers::Numbers;
use crate::HostError;
use crate::network::NetworkOptions;
use hamlyn_engine::limits::{PACKET_PAYLOAD_MAX, PACKET_PAYLOAD_MIN};
use hamlyn_ring::caches::Caches;
use hamlyn_ring::geometry::{ARENA_MAX_BYTES, BadGeometry, Geometry};
use hamlyn_ring::overflow::LogGeometry;
use hamlyn_ring::shared::PAGE_BYTES;
use std::time::Duration;

/// Who may be linked to this interface, in either direction. The kernel vouches for each peer's
/// identity.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// The effective user of this process, and root.
    #[default]
    SameUser,
    /// These users, and members of these groups (their effective group
    /// counts, not their supplementary ones), and nobody else.
    Listed {
        /// User numbers.
        users: Vec<u32>,
        /// Group numbers.
        groups: Vec<u32>,
    },
    /// Everybody on this host.
    Anyone,
}

impl Access {
    /// Whether a process of this user and group may be linked to one of `own_user`.
    pub fn allows(&self, own_user: u32, user: u32, group: u32) -> bool {
        match self {
            Self::SameUser => user == own_user || user == 0,
            Self::Listed { users, groups } => users.contains(&user) || groups.contains(&group),
            Self::Anyone => true,
        }
    }
}

/// How a [`super::ProcessHost`] is opened. The defaults suit most programs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The name to publish, if any: 1 to 64 of `A-Z a-z 0-9 . _ / -`.
    pub name: Option<String>,
    /// Interfaces of different namespaces do not see each other. 1 to 32 of
    /// the same characters without the slash. By default what the environment
    /// says in `HAMLYN_NAMESPACE`, or else `default`.
    pub namespace: Option<String>,
    /// Who may be linked to this interface.
    pub access: Access,
    /// The cells of each ring in which we receive: a power of two from 2 to 65536. Each takes 64
    /// bytes of our memory as long as there is the link. By default 256.
    pub cells: u32,
    /// Bytes of each such ring for payloads that do not fit a cell: whole pages, 128 KiB to 64 MiB.
    /// Two pages take memory from the beginning, and more, which the sender pays for, once it has
    /// needed it, as long as there is the link. By default four times the processor's second level
    /// of cache, at least 1 MiB.
    pub arena_bytes: u32,
    /// Bytes of memory in which each peer of this host goes on when its ring is full and we take
    /// nothing, because we compute, are stopped or debugged: a power of two from 1 MiB to 512 MiB; or
    /// 0, then such a peer waits. It is address space until it is used. The sender pays for the
    /// pages, and we give them back once they are taken. By default 16 MiB.
    pub buffer_bytes_per_peer: u32,
    /// The same of all peers together. A peer gets an eighth of what is left at most, or 1 MiB; those
    /// that come last get nothing. By default 1 GiB.
    pub buffer_bytes_total: u64,
    /// How long a ring to a peer must be full, with nothing taken from it, before we go on in that
    /// memory of the peer, at least; up to 20 times as long where the peer often went on by then. At
    /// most a minute. By default 100 µs.
    pub patience: Duration,
    /// The largest payload of a packet that we take; 64 bytes to 64 KiB.
    pub payload_max_bytes: u32,
    /// How long a peer that connects to us may take for the handshake.
    pub handshake_timeout: Duration,
    /// Links at a time, those included that were lost but whose loss was not yet fetched.
    /// A user other than our own who connects to us may have half of them.
    pub links_max: u32,
    /// Handshakes at a time, begun by others. One user may have half of them.
    pub handshakes_max: u32,
    /// How long a blocking call polls at most before it sleeps, in nanoseconds; where messages are
    /// seldom it sleeps at once. By default 20 µs, or 0 if this process has but one processor.
    pub spin_ns: Option<u64>,
    /// How interfaces of other hosts are reached, and this one by them.
    pub network: NetworkUse,
}

/// Whether an interface is on the network.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum NetworkUse {
    /// If the environment says so ([`NetworkOptions::from_environment`]).
    #[default]
    Environment,
    /// No.
    Off,
    /// Yes, so.
    On(Box<NetworkOptions>),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: None,
            namespace: None,
            access: Access::default(),
            cells: Geometry::DEFAULT.cells(),
            arena_bytes: arena_bytes_here(),
            buffer_bytes_per_peer: 16 << 20,
            buffer_bytes_total: 1 << 30,
            patience: Duration::from_micros(100),
            payload_max_bytes: PACKET_PAYLOAD_MAX as u32,
            handshake_timeout: Duration::from_secs(1),
            links_max: 4096,
            handshakes_max: 64,
            spin_ns: None,
            network: NetworkUse::default(),
        }
    }
}

impl Options {
    /// The defaults, with a published name.
    pub fn named(name: &str) -> Self {
        Self {
            name: Some(name.to_owned()),
            ..Self::default()
        }
    }

    /// The defaults, but in this namespace.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }
}

/// See [`Options::arena_bytes`].
fn arena_bytes_here() -> u32 {
    let wanted = Caches::here().window_bytes().min(ARENA_MAX_BYTES as usize);
    let pages = wanted - wanted % PAGE_BYTES;
    (pages as u32).max(Geometry::DEFAULT.arena_bytes())
}

/// Options that were checked.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) name: Option<Name>,
    pub(crate) namespace: Namespace,
    pub(crate) access: Access,
    pub(crate) numbers: Numbers,
    pub(crate) geometry: Geometry,
    /// For each peer, if there is some, and for all.
    pub(crate) log: Option<LogGeometry>,
    pub(crate) logs_bytes: u64,
    pub(crate) patience_ns: u64,
    pub(crate) payload_max_bytes: u32,
    pub(crate) handshake_timeout_ns: u64,
    pub(crate) links_max: usize,
    pub(crate) handshakes_max: usize,
    pub(crate) spin_ns: u64,
    pub(crate) network: Option<NetworkOptions>,
}

const NAMESPACE_VARIABLE: &str = "HAMLYN_NAMESPACE";
const NAMESPACE_DEFAULT: &str = "default";
const SPIN_NS: u64 = 20_000;
const HANDSHAKE_TIMEOUT_MAX: Duration = Duration::from_secs(60);
const PATIENCE_MAX: Duration = Duration::from_secs(60);
const LINKS_MAX: u32 = 1 << 16;
const HANDSHAKES_MAX: u32 = 1 << 10;

impl Settings {
    pub(crate) fn check(options: Options) -> Result<Self, HostError> {
        let name = options.name.as_deref().map(Name::published).transpose()?;
        let namespace = match options.namespace {
            Some(namespace) => namespace,
            None => match std::env::var(NAMESPACE_VARIABLE) {
                Ok(namespace) => namespace,
                Err(std::env::VarError::NotPresent) => NAMESPACE_DEFAULT.to_owned(),
                Err(std::env::VarError::NotUnicode(bytes)) => bytes.to_string_lossy().into_owned(),
            },
        };
        let namespace = Namespace::new(&namespace).map_err(|reason| HostError::BadName {
            name: namespace.clone(),
            reason,
        })?;

        let payload = PACKET_PAYLOAD_MIN as u32..=PACKET_PAYLOAD_MAX as u32;
        let log = LogGeometry::new(options.buffer_bytes_per_peer);
        let bounds = [
            (
                "payload_max_bytes",
                payload.contains(&options.payload_max_bytes),
                u64::from(options.payload_max_bytes),
                "it must lie between 64 and 65536",
            ),
            (
                "handshake_timeout",
                (Duration::from_millis(1)..=HANDSHAKE_TIMEOUT_MAX)
                    .contains(&options.handshake_timeout),
                options.handshake_timeout.as_nanos() as u64,
                "it must lie between a millisecond and a minute",
            ),
            (
                "buffer_bytes_per_peer",
                options.buffer_bytes_per_peer == 0 || log.is_some(),
                u64::from(options.buffer_bytes_per_peer),
                "it must be 0, or a power of two from 1 MiB to 512 MiB",
            ),
            (
                "patience",
                options.patience <= PATIENCE_MAX,
                options.patience.as_nanos() as u64,
                "it must be a minute at most",
            ),
            (
                "links_max",
                (1..=LINKS_MAX).contains(&options.links_max),
                u64::from(options.links_max),
                "it must lie between 1 and 65536",
            ),
            (
                "handshakes_max",
                (2..=HANDSHAKES_MAX).contains(&options.handshakes_max),
                u64::from(options.handshakes_max),
                "it must lie between 2 and 1024",
            ),
        ];
        for (setting, good, value, reason) in bounds {
            if !good {
                return Err(HostError::BadSetting {
                    setting,
                    value,
                    reason,
                });
            }
        }
        let geometry =
            Geometry::new(options.cells, options.arena_bytes).map_err(|bad| match bad {
                BadGeometry::PayloadArena(bytes) => HostError::BadSetting {
                    setting: "arena_bytes",
                    value: u64::from(bytes),
                    reason: "it must be whole pages, from 128 KiB to 64 MiB",
                },
                _ => HostError::BadSetting {
                    setting: "cells",
                    value: u64::from(options.cells),
                    reason: "it must be a power of two from 2 to 65536",
                },
            })?;
        let several = std::thread::available_parallelism().is_ok_and(|many| many.get() > 1);
        let network = match options.network {
            NetworkUse::Environment => NetworkOptions::from_environment()?,
            NetworkUse::Off => None,
            NetworkUse::On(network) => Some(*network),
        };
        let numbers = Numbers::here();
        Ok(Self {
            name,
            namespace,
            access: above(options.access, &numbers),
            numbers,
            geometry,
            log,
            logs_bytes: options.buffer_bytes_total,
            patience_ns: options.patience.as_nanos() as u64,
            payload_max_bytes: options.payload_max_bytes,
            handshake_timeout_ns: options.handshake_timeout.as_nanos() as u64,
            links_max: options.links_max as usize,
            handshakes_max: options.handshakes_max as usize,
            spin_ns: options.spin_ns.unwrap_or(if several { SPIN_NS } else { 0 }),
            network,
        })
    }
}

/// The list with the numbers of the namespace above, which all programs agree on.
fn above(access: Access, numbers: &Numbers) -> Access {
    match access {
        Access::Listed { users, groups } => Access::Listed {
            users: users.into_iter().map(|user| numbers.user(user)).collect(),
            groups: groups
                .into_iter()
                .map(|group| numbers.group(group))
                .collect(),
        },
        access => access,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_lists() {
        assert!(Access::SameUser.allows(7, 7, 1));
        assert!(Access::SameUser.allows(7, 0, 1));
        assert!(!Access::SameUser.allows(7, 8, 7));
        let listed = Access::Listed {
            users: vec![5],
            groups: vec![6],
        };
        assert!(listed.allows(7, 5, 0));
        assert!(listed.allows(7, 1, 6));
        assert!(!listed.allows(7, 7, 7), "not even ourselves, unless listed");
        assert!(!listed.allows(7, 0, 0), "nor root");
        assert!(Access::Anyone.allows(7, 1, 1));
    }

    #[test]
    fn settings_are_checked() {
        let refuse = |change: fn(&mut Options)| {
            let mut options = Options::default().in_namespace("settings");
            change(&mut options);
            Settings::check(options).unwrap_err().to_string()
        };
        let text = refuse(|options| options.payload_max_bytes = 63);
        assert!(
            text.contains("payload_max_bytes") && text.contains("63"),
            "{text}"
        );
        refuse(|options| options.links_max = 0);
        refuse(|options| options.buffer_bytes_per_peer = 1 << 19);
        refuse(|options| options.buffer_bytes_per_peer = 3 << 20);
        refuse(|options| options.patience = Duration::from_secs(61));
        refuse(|options| options.handshakes_max = 1);
        refuse(|options| options.handshake_timeout = Duration::ZERO);
        refuse(|options| options.name = Some(String::new()));
        refuse(|options| options.namespace = Some("a/b".to_owned()));
    }
}
