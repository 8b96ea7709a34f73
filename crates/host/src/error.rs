//! What a host reports when it fails: each error names its object and the remedy.

use std::net::SocketAddr;

use hamlyn_link::udp::socket::CallFailed;
use hamlyn_ring::forks::Forked;

use crate::network::NetworkError;

/// A service of the host failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// No memory for what was asked.
    #[error("no memory for {needed_bytes} bytes: {errno}; free some, or ask for less")]
    Memory {
        /// How much was asked for.
        needed_bytes: u64,
        /// The system's reason.
        errno: Errno,
    },
    /// The caller is a forked child of the process that opened the interface.
    #[error(
        "this interface was opened before this process was forked, and is the parent's: open a manager of its own in the child"
    )]
    Forked,
    /// Too few descriptors.
    #[error("out of file descriptors ({needed} more needed): raise the limit (ulimit -n)")]
    Descriptors {
        /// How many were needed.
        needed: u32,
    },
    /// The name is in use.
    #[error(
        "the name {name:?} is in use in namespace {namespace:?}: choose another, or end the program that holds it"
    )]
    NameInUse {
        /// The name.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// A name that cannot be used.
    #[error("the name {name:?} cannot be used: {reason}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A setting that cannot be used.
    #[error("the setting {setting} cannot be {value}: {reason}")]
    BadSetting {
        /// Which.
        setting: &'static str,
        /// Its value.
        value: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// As many links as this interface allows itself are there.
    #[error("this interface has its {allowed} links already: end some, or allow more")]
    LinksFull {
        /// How many are allowed.
        allowed: u32,
    },
    /// As many things are offered as can be at a time.
    #[error("{allowed} things are offered here already: withdraw some")]
    OffersFull {
        /// How many there can be.
        allowed: u32,
    },
    /// Too much or nothing was to be offered.
    #[error("{item:?} cannot be offered with {bytes} bytes: it must have 1 to {allowed}")]
    BadOffer {
        /// Under which name.
        item: String,
        /// How much it was.
        bytes: u64,
        /// How much there can be.
        allowed: u64,
    },
    /// As many regions as there can be may be fetched.
    #[error("{allowed} regions can be fetched from here already: revoke some")]
    RegionsFull {
        /// How many there can be.
        allowed: u32,
    },
    /// As many regions wait for this peer, or its user, as its share of what there can be.
    #[error(
        "the peer's share of the {allowed} regions that can be fetched is used up: it fetches none of them; revoke some"
    )]
    RegionsShare {
        /// How many there can be for all.
        allowed: u32,
    },
    /// The network cannot be used as was said.
    #[error(transparent)]
    Network(#[from] Box<NetworkError>),
    /// The network processor of an interface panicked, which is an error of this library.
    #[error(
        "the network processor of this interface panicked ({message}): it moves no packets any more; close the interface and open it again"
    )]
    Processor {
        /// What it said.
        message: String,
    },
    /// The system knows no way to another host, and did not until the deadline.
    #[error("no route to the host {host} at {at}: {errno}; is the network up?")]
    NoRoute {
        /// Which host.
        host: String,
        /// Where it is said to be.
        at: SocketAddr,
        /// The system's reason.
        errno: Errno,
    },
    /// Another call of the system failed.
    #[error("{call} failed: {errno}")]
    System {
        /// Which call.
        call: &'static str,
        /// The system's reason.
        errno: Errno,
    },
}

impl From<Forked> for HostError {
    fn from(_: Forked) -> Self {
        Self::Forked
    }
}

impl From<NetworkError> for HostError {
    fn from(error: NetworkError) -> Self {
        Self::Network(Box::new(error))
    }
}

impl HostError {
    /// There was no memory for so many bytes.
    pub fn memory(needed_bytes: u64) -> impl FnOnce(hamlyn_ring::Errno) -> Self {
        move |errno| Self::Memory {
            needed_bytes,
            errno: Errno(errno.raw_os_error()),
        }
    }
}

/// An error number of the operating system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub i32);

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

/// A connection did not come about.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No interface is there, and none came until the deadline.
    #[error("nobody answers at {to}: is the program running, and in the same namespace?")]
    Absent {
        /// Whom we looked for.
        to: String,
    },
    /// No interface of that name is on this host, and none came until the deadline; the name may
    /// be one of another host, but this program is not on the network.
    #[error(
        "nobody answers at {to} on this host: is the program running, and in the same namespace? If {host} is another host: this program is not on the network; name the secret of the cluster (HAMLYN_SECRET), or keys (HAMLYN_KEY and HAMLYN_KNOWN)"
    )]
    AbsentHere {
        /// Whom we looked for.
        to: String,
        /// The host that the name may speak of.
        host: String,
    },
    /// The interface of a ticket no longer exists. Retrying cannot help.
    #[error("the interface {to} is gone: its program ended or was restarted; ask for a new ticket")]
    Gone {
        /// Which.
        to: String,
    },
    /// It is there, but offers nothing of that name, and did not until the deadline.
    #[error("{to} offers nothing under {item:?} at present: wait for longer, or ask for another")]
    NotOffered {
        /// Whom we asked.
        to: String,
        /// For what.
        item: String,
    },
    /// It is there, but shares nothing with us under that number. Trying again cannot help.
    #[error(
        "{to} shares no region with this interface under that number: it was fetched already, has ended, or is for another process"
    )]
    NotShared {
        /// Whom we asked.
        to: String,
    },
    /// It is there, but did not complete the handshake in time.
    #[error("{to} did not complete the handshake before the deadline{}", silence_hint(silence.as_deref()))]
    Stalled {
        /// Which.
        to: String,
        /// It is on another host, from which nothing authentic came.
        silence: Option<Box<Silence>>,
    },
    /// It would not have us.
    #[error("{to} refused the connection: {reason}")]
    Refused {
        /// Which.
        to: String,
        /// Its reason.
        reason: RefusedBecause,
    },
    /// We would not have it: it runs as a user that our access list does not name.
    #[error("{to} runs as user {user}, which is not allowed here: name it in the access list")]
    NotAllowed {
        /// Which.
        to: String,
        /// The user the kernel reports.
        user: u32,
    },
    /// Its user is not the one that the ticket names.
    #[error(
        "{to} runs as user {user} here, and the ticket names user {named}: it is in another user namespace, which has no number for this user, or another program took its place"
    )]
    OtherUser {
        /// Which.
        to: String,
        /// The user that the ticket names.
        named: u32,
        /// The user the kernel reports.
        user: u32,
    },
    /// It speaks another version.
    #[error("{to} speaks version {theirs}, we speak {ours}: update the older program")]
    Version {
        /// Which.
        to: String,
        /// Its version.
        theirs: u16,
        /// Ours.
        ours: u16,
    },
    /// What it sent is no handshake.
    #[error("{to} sent an invalid handshake: {what}")]
    Invalid {
        /// Which.
        to: String,
        /// What was wrong.
        what: &'static str,
    },
    /// A host whose address is not known.
    #[error(
        "the host {host} is not known: name it, as it calls itself, and its address (HAMLYN_HOSTS)"
    )]
    UnknownHost {
        /// Which.
        host: String,
    },
    /// A host that was found under a name which is not its own: tickets of its programs would lead
    /// nowhere.
    #[error(
        "the host {host} calls itself otherwise: set HAMLYN_HOST={host} there, or name it here as it calls itself"
    )]
    OtherName {
        /// The name under which it was found.
        host: String,
    },
    /// Another host that has the name of this one.
    #[error(
        "the host {host} calls itself {own}, as this one does: give each host a name of its own (HAMLYN_HOST)"
    )]
    SameName {
        /// The name under which it was found.
        host: String,
        /// The name that both have.
        own: String,
    },
    /// It is on another host, and this interface is not on the network.
    #[error(
        "{to} is on another host, and this program is not on the network: name the secret of the cluster (HAMLYN_SECRET), or keys (HAMLYN_KEY and HAMLYN_KNOWN)"
    )]
    NoNetwork {
        /// Which.
        to: String,
    },
    /// The handshake with another host could not be begun.
    #[error("no handshake with {to}: {reason}")]
    Handshake {
        /// With whom.
        to: String,
        /// Why not.
        reason: String,
    },
    /// Something failed on our side.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Nothing authentic came from another host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Silence {
    /// Which host was asked.
    pub host: String,
    /// Where.
    pub at: SocketAddr,
}

fn silence_hint(silence: Option<&Silence>) -> String {
    silence.map_or(String::new(), |Silence { host, at }| {
        format!(
            ": nothing authentic came from {host} at UDP {at}. Does a program run there, does a firewall let the port \
             pass, and have both hosts the same secret (HAMLYN_SECRET) or each other's keys (HAMLYN_KNOWN)?"
        )
    })
}

impl From<Forked> for ConnectError {
    fn from(forked: Forked) -> Self {
        Self::Host(forked.into())
    }
}

impl HostError {
    /// A call of the system failed that needs so many descriptors.
    pub(crate) fn system(call: &'static str, needed: u32, errno: rustix::io::Errno) -> Self {
        match errno {
            rustix::io::Errno::MFILE | rustix::io::Errno::NFILE => Self::Descriptors { needed },
            errno => Self::System {
                call,
                errno: Errno(errno.raw_os_error()),
            },
        }
    }

    /// The same, as the standard library says it.
    pub(crate) fn io(call: &'static str, needed: u32, error: &std::io::Error) -> Self {
        match rustix::io::Errno::from_io_error(error) {
            Some(errno) => Self::system(call, needed, errno),
            None => Self::System {
                call,
                errno: Errno(0),
            },
        }
    }
}

impl From<CallFailed> for HostError {
    fn from(failed: CallFailed) -> Self {
        // A socket of UDP.
        Self::system(failed.call, 1, failed.errno)
    }
}

/// The reason a peer gives for refusing a connection. Open: an unknown number is shown as such.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefusedBecause(pub u16);

impl RefusedBecause {
    /// Its access list does not name us.
    pub const NOT_ALLOWED: Self = Self(1);
    /// It speaks another version.
    pub const VERSION: Self = Self(2);
    /// It has as many links as it allows itself.
    pub const TOO_MANY: Self = Self(3);
    /// It is out of memory or descriptors.
    pub const RESOURCES: Self = Self(4);
    /// Our handshake was invalid in its eyes.
    pub const INVALID: Self = Self(5);
    /// Both sides connected at once and the other attempt is used.
    pub const SIMULTANEOUS: Self = Self(6);
    /// Too many shake hands with it at once; it is worth trying again.
    pub const BUSY: Self = Self(7);
    /// Our key is, in its list, that of another host than we say that we are.
    pub const NOT_ITS_KEY: Self = Self(8);
    /// All places of the item are taken; it is worth trying again.
    pub const FULL: Self = Self(9);
    /// Our program, user or host has its share of the item's places; it is worth trying again.
    pub const SHARE: Self = Self(10);
    /// It has no room for another place of the item; it is worth trying again.
    pub const SHORT: Self = Self(11);

    /// It may pass.
    pub(crate) fn is_for_now(self) -> bool {
        matches!(self, Self::BUSY | Self::FULL | Self::SHARE | Self::SHORT)
    }
}

impl core::fmt::Display for RefusedBecause {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::NOT_ALLOWED => f.write_str("its access list does not name this user or group"),
            Self::VERSION => f.write_str("it speaks another version"),
            Self::TOO_MANY => f.write_str("it has no room for another link"),
            Self::RESOURCES => f.write_str("it is out of memory or descriptors"),
            Self::INVALID => f.write_str("it found our handshake invalid"),
            Self::SIMULTANEOUS => f.write_str("both sides connected at once"),
            Self::BUSY => f.write_str("too many others are connecting to it at once"),
            Self::NOT_ITS_KEY => f.write_str(
                "its list (HAMLYN_KNOWN) has our key under another name than this host's (HAMLYN_HOST)",
            ),
            Self::FULL => f.write_str("it has as many clients or readers there as it takes"),
            Self::SHARE => f.write_str(
                "it keeps the rest of its places there for other programs, users and hosts",
            ),
            Self::SHORT => f.write_str(
                "its manager has no room for another peer there: its program opens the manager with more queue entries",
            ),
            Self(other) => write!(f, "reason {other}"),
        }
    }
}
