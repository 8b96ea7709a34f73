//! The beginning of every handshake: the peer is looked for, found, checked, and
//! says who it is.
//!
//! Every wait is bounded by the caller's deadline. A name that nobody holds is
//! looked for again until then, because its program may be about to start; a destination that
//! is gone is gone for ever, since interface numbers are not used twice.

use super::Interior;
use super::clock::{now_ns, wait_readable};
use super::codec::{Message, NotAMessage, VERSION};
use super::credentials::Credentials;
use super::exchange::{self, ReceiveError, ReceivedMessage};
use super::name::{Name, Namespace};
use super::registry::PeerKey;
use crate::network::handshake_payload::Sought;
use crate::network::resolver::{Found, RemoteTarget, Unanswered, host_of};
use crate::{Address, ConnectError, Destination, Errno, HostError, RefusedBecause, Silence};
use hamlyn_ring::forks::Uninherited;
use rustix::fd::BorrowedFd;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Descriptors that a connection needs on our side: the socket, the memories
/// of both sides, the peer's ready bitmap and its process.
const DESCRIPTORS: u32 = 5;

/// The route that an address means.
pub(super) enum Route {
    Loopback,
    Another(Target),
    /// An interface of another host.
    Remote(RemoteTarget),
}

/// The interface that a call wants to reach.
pub(super) struct Target {
    address: SocketAddrUnix,
    destination: Option<Destination>,
    /// For messages to people.
    shown: String,
    /// Where it is if it is not here.
    or_else: Elsewhere,
    /// It is only asked for the address of its UDP endpoint, whatever its user.
    only_sought: bool,
}

/// Where a peer may be that is not on this host.
enum Elsewhere {
    /// Nowhere.
    Nowhere,
    /// On another host, and we are not on the network.
    NoNetwork,
    /// Perhaps on a host of that name, and we are not on the network.
    PerhapsOn(String),
    /// On a host of that name, of which nothing is known.
    UnknownHost(String),
}

/// Why an attempt came to nothing.
pub(super) enum AttemptError {
    /// Trying again cannot help.
    Final(ConnectError),
    /// Worth trying again; if there is no time left, this is the error.
    Again(ConnectError),
    /// The deadline passed while we waited for the other end.
    Late,
}

impl<E: Into<ConnectError>> From<E> for AttemptError {
    fn from(error: E) -> Self {
        Self::Final(error.into())
    }
}

impl AttemptError {
    /// The one that was asked gave that reason.
    pub(super) fn refused(shown: &str, reason: RefusedBecause) -> Self {
        let to = shown.to_owned();
        let error = ConnectError::Refused { to, reason };
        match reason.is_for_now() {
            true => Self::Again(error),
            false => Self::Final(error),
        }
    }
}

impl RemoteTarget {
    /// This host was found by another name: the way to that interface of it. An error if it is
    /// another host of the same name.
    pub(super) fn here(
        &self,
        interior: &Interior,
        found: &Found,
        deadline_ns: u64,
    ) -> Result<Route, AttemptError> {
        let here = Route::of(interior, Address::Destination(found.who), deadline_ns)?;
        match &here {
            Route::Another(target) => match target.connected() {
                Err(AttemptError::Final(ConnectError::Gone { .. })) => {
                    let own = interior.network.as_ref().map(|own| own.host().to_string());
                    Err(AttemptError::Final(ConnectError::SameName {
                        host: self.host.clone(),
                        own: own.unwrap_or_default(),
                    }))
                }
                Err(attempt_error) => Err(attempt_error),
                Ok(_) => Ok(here),
            },
            Route::Loopback | Route::Remote(_) => Ok(here),
        }
    }

    /// The error for a target that did not answer.
    pub(super) fn attempt_error(&self, why: Unanswered) -> AttemptError {
        let to = self.shown.clone();
        match why {
            Unanswered::Failed(error) => AttemptError::Final(error),
            // The network may come up yet.
            Unanswered::NoRoute(at, errno) => {
                let (host, errno) = (self.host.clone(), Errno(errno.raw_os_error()));
                AttemptError::Again(HostError::NoRoute { host, at, errno }.into())
            }
            Unanswered::Late => AttemptError::Again(ConnectError::Stalled { to, silence: None }),
            Unanswered::Silent(at) => AttemptError::Again(ConnectError::Stalled {
                to,
                silence: Some(Box::new(Silence {
                    host: self.host.clone(),
                    at,
                })),
            }),
            // An interface that is gone does not come back; a name may be published yet.
            Unanswered::Gone if self.destination.is_some() => {
                AttemptError::Final(ConnectError::Gone { to })
            }
            Unanswered::Gone | Unanswered::Absent => {
                AttemptError::Again(ConnectError::Absent { to })
            }
        }
    }
}

/// The control socket of a peer that has greeted us and is allowed.
pub(super) struct ControlChannel<'a> {
    interior: &'a Interior,
    target: &'a Target,
    pub(super) socket: Uninherited,
    pub(super) credentials: Credentials,
    pub(super) interface: u64,
}

/// Pauses between attempts, longer each time.
pub(super) struct Backoff {
    pause_ns: u64,
    max_ns: u64,
}

impl Backoff {
    const FIRST_NS: u64 = 500_000;
    /// On this host, where an attempt costs two microseconds.
    const MAX_NS: u64 = 16_000_000;
    /// Elsewhere, where it costs four datagrams and another thread's time.
    const REMOTE_MAX_NS: u64 = 250_000_000;

    /// How long to pause now. Nothing if the deadline has passed.
    pub(super) fn next_ns(&mut self, deadline_ns: u64) -> Option<u64> {
        let left_ns = deadline_ns.checked_sub(now_ns()).filter(|left| *left > 0)?;
        let pause_ns = self.pause_ns.min(left_ns);
        self.pause_ns = (self.pause_ns * 2).min(self.max_ns);
        Some(pause_ns)
    }
}

fn bad(errno: rustix::io::Errno) -> HostError {
    HostError::system("bind", 0, errno)
}

impl Route {
    /// May look for a host's addresses, until that instant at most.
    pub(super) fn of(
        interior: &Interior,
        to: Address<'_>,
        deadline_ns: u64,
    ) -> Result<Self, ConnectError> {
        let namespace = &interior.settings.namespace;
        if let Some(network) = &interior.network
            && let Some(remote) = network.resolve(to, deadline_ns)?
        {
            return Ok(Self::Remote(remote));
        }
        match to {
            Address::Name(to) => {
                let (to, or_else) = match &interior.network {
                    Some(network) => {
                        let unknown = network.unknown_host(to).map(Elsewhere::UnknownHost);
                        (network.without_own_host(to), unknown)
                    }
                    None => (to, host_of(to).map(Elsewhere::PerhapsOn)),
                };
                let name = Name::checked(to)?;
                if interior.settings.name.as_ref() == Some(&name) {
                    return Ok(Self::Loopback);
                }
                Ok(Self::Another(Target {
                    address: namespace.name_address(&name).map_err(bad)?,
                    shown: format!("{:?}", name.as_str()),
                    destination: None,
                    // It may be a name of this host that has a slash.
                    or_else: or_else.unwrap_or(Elsewhere::Nowhere),
                    only_sought: false,
                }))
            }
            Address::Destination(destination) => {
                if destination.is_same(&interior.identity) {
                    return Ok(Self::Loopback);
                }
                let Destination {
                    node,
                    user,
                    interface,
                } = destination;
                let shown = format!("{interface:016x} of user {user}");
                let is_here = node == 0 || interior.identity.node == node;
                if !is_here && interior.network.is_some() {
                    return Err(ConnectError::UnknownHost {
                        host: format!("of number {node:08x} (in a ticket)"),
                    });
                }
                Ok(Self::Another(Target {
                    address: namespace.interface_address(interface).map_err(bad)?,
                    shown,
                    destination: Some(destination),
                    // It may be here all the same, on the network while we are not.
                    or_else: match is_here {
                        true => Elsewhere::Nowhere,
                        false => Elsewhere::NoNetwork,
                    },
                    only_sought: false,
                }))
            }
        }
    }
}

impl Target {
    /// A neighbour, in any namespace, to be asked for the address of its UDP endpoint.
    pub(super) fn neighbour(namespace: &Namespace, sought: &Sought) -> Result<Self, ConnectError> {
        let (address, shown) = match sought {
            Sought::Name(name) => (namespace.name_address(name), format!("{:?}", name.as_str())),
            Sought::Interface(interface) => (
                namespace.interface_address(*interface),
                format!("{interface:016x}"),
            ),
        };
        Ok(Self {
            address: address.map_err(bad)?,
            destination: None,
            shown,
            or_else: Elsewhere::Nowhere,
            only_sought: true,
        })
    }
}

impl Route {
    /// Pauses between attempts at it.
    pub(super) fn backoff(&self) -> Backoff {
        Backoff {
            pause_ns: Backoff::FIRST_NS,
            max_ns: match self {
                Self::Loopback | Self::Another(_) => Backoff::MAX_NS,
                Self::Remote(_) => Backoff::REMOTE_MAX_NS,
            },
        }
    }

    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Loopback => "this interface",
            Self::Remote(remote) => &remote.shown,
            Self::Another(target) => &target.shown,
        }
    }

    /// It did not complete the handshake in time.
    pub(super) fn stalled(&self) -> ConnectError {
        ConnectError::Stalled {
            to: self.shown().to_owned(),
            silence: None,
        }
    }
}

impl Target {
    /// Whom we look for, for messages to people.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// Connects, checks the peer's credentials, and waits for the greeting. Nothing if the peer is
    /// this interface.
    pub(super) fn greeted<'a>(
        &'a self,
        interior: &'a Interior,
        deadline_ns: u64,
    ) -> Result<Option<ControlChannel<'a>>, AttemptError> {
        let socket = self.connected()?;
        let credentials = Credentials::of(&socket, &interior.settings.numbers)?;
        if let Some(destination) = self.destination
            && destination.user != credentials.user
        {
            return Err(AttemptError::Final(ConnectError::OtherUser {
                to: self.shown.clone(),
                named: destination.user,
                user: credentials.user,
            }));
        }
        if !self.only_sought && !interior.allows(&credentials) {
            return Err(AttemptError::Final(ConnectError::NotAllowed {
                to: self.shown.clone(),
                user: credentials.user,
            }));
        }
        if interior.disposal.is_saturated(credentials.user) {
            return Err(self
                .invalid("it has sent descriptors that cannot be closed")
                .into());
        }
        let mut channel = ControlChannel {
            interior,
            target: self,
            socket,
            credentials,
            interface: 0,
        };
        channel.interface = match channel.await_message(deadline_ns)?.message {
            Message::Greeting { interface } => interface,
            Message::Refusal { reason } => return Err(self.refused(RefusedBecause(reason))),
            _ => return Err(self.invalid("it did not begin with a greeting").into()),
        };
        if channel.key() == interior.own_key() {
            return Ok(None);
        }
        if self
            .destination
            .is_some_and(|wanted| wanted.interface != channel.interface)
        {
            return Err(self.invalid("it answers for another interface").into());
        }
        Ok(Some(channel))
    }

    fn connected(&self) -> Result<Uninherited, AttemptError> {
        let socket: Uninherited = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
        .map_err(|errno| HostError::system("socket", DESCRIPTORS, errno))?
        .into();
        match rustix::net::connect(&socket, &self.address) {
            Ok(()) => Ok(socket),
            Err(rustix::io::Errno::CONNREFUSED | rustix::io::Errno::NOENT) => {
                let to = self.shown.clone();
                Err(match (self.destination, &self.or_else) {
                    (_, Elsewhere::NoNetwork) => {
                        AttemptError::Final(ConnectError::NoNetwork { to })
                    }
                    (_, Elsewhere::UnknownHost(host)) => {
                        let host = host.clone();
                        AttemptError::Again(ConnectError::UnknownHost { host })
                    }
                    (Some(_), _) => AttemptError::Final(ConnectError::Gone { to }),
                    (None, Elsewhere::PerhapsOn(host)) => {
                        let host = host.clone();
                        AttemptError::Again(ConnectError::AbsentHere { to, host })
                    }
                    (None, Elsewhere::Nowhere) => AttemptError::Again(ConnectError::Absent { to }),
                })
            }
            // So many wait already that there is no room to wait.
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
                Err(AttemptError::Again(self.stalled()))
            }
            Err(errno) => Err(HostError::system("connect", DESCRIPTORS, errno).into()),
        }
    }

    /// It would not have us. Some reasons pass.
    pub(super) fn refused(&self, reason: RefusedBecause) -> AttemptError {
        AttemptError::refused(&self.shown, reason)
    }

    pub(super) fn stalled(&self) -> ConnectError {
        ConnectError::Stalled {
            to: self.shown.clone(),
            silence: None,
        }
    }

    pub(super) fn invalid(&self, what: &'static str) -> ConnectError {
        ConnectError::Invalid {
            to: self.shown.clone(),
            what,
        }
    }
}

impl ControlChannel<'_> {
    pub(super) fn key(&self) -> PeerKey {
        PeerKey::neighbour(self.interface, self.credentials.user)
    }

    pub(super) fn send(
        &self,
        message: &Message,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), ConnectError> {
        let Err(Errno(errno)) = exchange::send(&self.socket, message, descriptors) else {
            return Ok(());
        };
        // A listener that closed may have said why before.
        if errno == rustix::io::Errno::PIPE.raw_os_error()
            || errno == rustix::io::Errno::CONNRESET.raw_os_error()
        {
            return Ok(());
        }
        Err(HostError::System {
            call: "sendmsg",
            errno: Errno(errno),
        }
        .into())
    }

    pub(super) fn await_message(&self, deadline_ns: u64) -> Result<ReceivedMessage, AttemptError> {
        loop {
            if let Some(arrived) = self.poll()? {
                return Ok(arrived);
            }
            let ready = wait_readable(&self.socket, deadline_ns)
                .map_err(|errno| HostError::system("ppoll", 0, errno))?;
            if !ready {
                return Err(AttemptError::Late);
            }
        }
    }

    /// The message that has come, if one has.
    pub(super) fn poll(&self) -> Result<Option<ReceivedMessage>, AttemptError> {
        let target = self.target;
        let (user, disposal) = (self.credentials.user, &self.interior.disposal);
        let error = match exchange::receive(&self.socket, user, disposal) {
            Ok(arrived) => return Ok(Some(arrived)),
            Err(ReceiveError::NotYet) => return Ok(None),
            // It ended just now. Whether somebody takes its place is for the next attempt to see.
            Err(ReceiveError::PeerClosed) => return Err(AttemptError::Again(target.stalled())),
            Err(ReceiveError::NotAMessage(NotAMessage::Version(theirs))) => ConnectError::Version {
                to: target.shown.clone(),
                theirs,
                ours: VERSION,
            },
            Err(ReceiveError::NotAMessage(NotAMessage::Invalid(what))) => target.invalid(what),
            Err(ReceiveError::OutOfDescriptors) => HostError::Descriptors {
                needed: exchange::DESCRIPTORS_MAX as u32,
            }
            .into(),
            Err(ReceiveError::System(errno)) => HostError::System {
                call: "recvmsg",
                errno,
            }
            .into(),
        };
        Err(AttemptError::Final(error))
    }
}
