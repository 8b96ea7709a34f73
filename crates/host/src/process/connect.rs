//! The connecting side of a handshake, in the caller's thread.
//!
//! Every wait is bounded by the caller's deadline. A name that nobody holds is
//! looked for again until then, because its program may be about to start; a destination that
//! is gone is gone for ever, since interface numbers are not used twice.

use super::Interior;
use super::clock::{now_ns, wait_readable};
use super::codec::{Message, NotAMessage, Offer, VERSION};
use super::credentials::Credentials;
use super::exchange::{self, Arrived, Mishap};
use super::grant::Unlinkable;
use super::name::Name;
use super::registry::{Entrant, Outgoing, PeerKey};
use crate::{
    Address, ConnectError, Connected, Destination, Errno, HostError, Peer, RefusedBecause,
};
use hamlyn_link::local::LocalLink;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::sync::Arc;
use std::time::Duration;

/// Descriptors that a connection needs on our side: the socket, the memories
/// of both sides, the peer's bell and its process.
const DESCRIPTORS: u32 = 5;
const BACKOFF_FIRST_NS: u64 = 500_000;
const BACKOFF_MAX_NS: u64 = 16_000_000;

/// Whom we connect to.
struct Target {
    address: SocketAddrUnix,
    destination: Option<Destination>,
    /// For messages to people.
    shown: String,
}

/// What became of one attempt.
#[expect(
    clippy::large_enum_variant,
    reason = "it is made once and taken apart at once"
)]
enum Attempt {
    Made(Connected<LocalLink>),
    /// Worth trying again; if there is no time left, this is the error.
    Again(ConnectError),
    /// The peer's own attempt is to be used.
    Incoming(PeerKey),
    /// It is ourselves.
    Oneself,
}

pub(super) fn connect(
    interior: &Interior,
    to: Address<'_>,
    deadline_ns: u64,
) -> Result<Connected<LocalLink>, ConnectError> {
    let target = match to {
        Address::Name(name) => {
            let name = Name::new(name).map_err(|reason| HostError::BadName {
                name: name.to_owned(),
                reason,
            })?;
            if interior.settings.name.as_ref() == Some(&name) {
                return oneself(interior);
            }
            Target {
                address: interior
                    .settings
                    .namespace
                    .name_address(&name)
                    .map_err(bad)?,
                shown: format!("{:?}", name.as_str()),
                destination: None,
            }
        }
        Address::Destination(destination) => {
            if destination == interior.identity {
                return oneself(interior);
            }
            let Destination {
                node,
                user,
                interface,
            } = destination;
            let shown = format!("{interface:016x} of user {user}");
            if node != 0 {
                // This host has no way to others.
                return Err(ConnectError::Absent {
                    to: format!("{shown} on node {node}"),
                });
            }
            let namespace = &interior.settings.namespace;
            Target {
                address: namespace.interface_address(interface).map_err(bad)?,
                shown,
                destination: Some(destination),
            }
        }
    };
    let mut backoff_ns = BACKOFF_FIRST_NS;
    loop {
        let (why, incoming) = match target.attempt(interior, deadline_ns)? {
            Attempt::Made(connected) => return Ok(connected),
            Attempt::Oneself => return oneself(interior),
            Attempt::Again(why) => (why, None),
            Attempt::Incoming(key) => (target.stalled(), Some(key)),
        };
        let now_ns = now_ns();
        if now_ns >= deadline_ns {
            return Err(why);
        }
        let pause_ns = backoff_ns.min(deadline_ns - now_ns);
        backoff_ns = (backoff_ns * 2).min(BACKOFF_MAX_NS);
        match incoming {
            None => std::thread::sleep(Duration::from_nanos(pause_ns)),
            // The peer may have failed after it refused us, so this is no wait
            // until the deadline: after a while we try again.
            Some(key) => {
                let until_ns = now_ns.saturating_add(BACKOFF_MAX_NS).min(deadline_ns);
                if let Some(token) = interior.registry.await_link(key, until_ns) {
                    return Ok(Connected::Already { token });
                }
            }
        }
    }
}

fn bad(errno: rustix::io::Errno) -> HostError {
    exchange::system("bind", 0, errno)
}

/// A link to the interface itself.
fn oneself(interior: &Interior) -> Result<Connected<LocalLink>, ConnectError> {
    let link = interior.lender.loopback()?;
    let (token, is_new) = interior.registry.loopback();
    if !is_new {
        return Ok(Connected::Already { token });
    }
    let peer = Peer {
        token,
        destination: interior.identity,
        group: rustix::process::getegid().as_raw(),
        process: std::process::id(),
        name: interior
            .settings
            .name
            .as_ref()
            .map(|name| name.as_str().to_owned()),
    };
    Ok(Connected::New(peer, link))
}

/// Takes back, at the end of an attempt, the claim to be connecting.
struct Claim<'a>(&'a Interior);

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.registry.end_outgoing();
    }
}

impl Target {
    fn attempt(&self, interior: &Interior, deadline_ns: u64) -> Result<Attempt, ConnectError> {
        let socket = match self.reach()? {
            Ok(socket) => socket,
            Err(again) => return Ok(again),
        };
        let credentials = Credentials::of(&socket)?;
        let is_expected = self
            .destination
            .is_none_or(|destination| destination.user == credentials.user);
        if !is_expected || !interior.allows(&credentials) {
            return Err(ConnectError::NotAllowed {
                to: self.shown.clone(),
                user: credentials.user,
            });
        }
        if interior.disposal.is_saturated(credentials.user) {
            return Err(self.invalid("it has sent descriptors that cannot be closed"));
        }

        let greeting = match self.await_message(interior, &credentials, &socket, deadline_ns)? {
            Ok(arrived) => arrived.message,
            Err(again) => return Ok(again),
        };
        let interface = match greeting {
            Message::Greeting { interface } => interface,
            Message::Refusal { reason } => return self.refused(RefusedBecause(reason), None),
            _ => return Err(self.invalid("it did not begin with a greeting")),
        };
        let key = PeerKey {
            interface,
            user: credentials.user,
        };
        if key == interior.own_key() {
            return Ok(Attempt::Oneself);
        }
        if self
            .destination
            .is_some_and(|wanted| wanted.interface != interface)
        {
            return Err(self.invalid("it answers for another interface"));
        }

        match interior.registry.begin_outgoing(key) {
            Outgoing::Begun => {}
            Outgoing::Linked(token) => return Ok(Attempt::Made(Connected::Already { token })),
            Outgoing::Incoming => return Ok(Attempt::Incoming(key)),
            Outgoing::Full => {
                return Err(HostError::LinksFull {
                    allowed: interior.settings.links_max as u32,
                }
                .into());
            }
        }
        let _claim = Claim(interior);
        let (lent, file) = interior.lender.lend()?;
        let hello = Message::Hello(interior.lender.offer());
        let sent = exchange::send(&socket, &hello, &interior.lender.descriptors(&file));
        drop(file);
        if let Err(Errno(errno)) = sent {
            // A listener that hung up may have said why before.
            if errno != rustix::io::Errno::PIPE.raw_os_error()
                && errno != rustix::io::Errno::CONNRESET.raw_os_error()
            {
                return Err(HostError::System {
                    call: "sendmsg",
                    errno: Errno(errno),
                }
                .into());
            }
        }
        let arrived = match self.await_message(interior, &credentials, &socket, deadline_ns)? {
            Ok(arrived) => arrived,
            Err(again) => return Ok(again),
        };
        let (offer, descriptors) = match (arrived.message, arrived.descriptors) {
            (Message::Welcome(offer), Some(descriptors)) => (offer, descriptors),
            (Message::Refusal { reason }, _) => {
                return self.refused(RefusedBecause(reason), Some(key));
            }
            _ => return Err(self.invalid("it answered with something else than a welcome")),
        };
        if offer.interface != interface {
            return Err(self.invalid("its welcome names another interface than its greeting"));
        }
        let control = Arc::new(socket);
        let link = interior
            .lender
            .join(lent, &offer, descriptors, &control)
            .map_err(|error| match error {
                Unlinkable::Invalid(what) => self.invalid(what),
                Unlinkable::Host(error) => error.into(),
            })?;
        self.enter(interior, credentials, &offer, control, link)
    }

    fn enter(
        &self,
        interior: &Interior,
        credentials: Credentials,
        offer: &Offer,
        control: Arc<OwnedFd>,
        link: LocalLink,
    ) -> Result<Attempt, ConnectError> {
        let entrant = Entrant {
            peer: credentials.peer(offer),
            process: credentials.open_process(&control),
            control,
            link,
        };
        Ok(Attempt::Made(
            match interior.registry.enter_outgoing(entrant)? {
                Ok((peer, link)) => Connected::New(peer, link),
                Err(token) => Connected::Already { token },
            },
        ))
    }

    /// A socket that is connected to the target.
    fn reach(&self) -> Result<Result<OwnedFd, Attempt>, ConnectError> {
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
        .map_err(|errno| exchange::system("socket", DESCRIPTORS, errno))?;
        match rustix::net::connect(&socket, &self.address) {
            Ok(()) => Ok(Ok(socket)),
            Err(rustix::io::Errno::CONNREFUSED | rustix::io::Errno::NOENT) => {
                let to = self.shown.clone();
                match self.destination {
                    Some(_) => Err(ConnectError::Gone { to }),
                    None => Ok(Err(Attempt::Again(ConnectError::Absent { to }))),
                }
            }
            // So many wait already that there is no room to wait.
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
                Ok(Err(Attempt::Again(self.stalled())))
            }
            Err(errno) => Err(exchange::system("connect", DESCRIPTORS, errno).into()),
        }
    }

    fn await_message(
        &self,
        interior: &Interior,
        credentials: &Credentials,
        socket: &OwnedFd,
        deadline_ns: u64,
    ) -> Result<Result<Arrived, Attempt>, ConnectError> {
        loop {
            match exchange::receive(socket, credentials.user, &interior.disposal) {
                Ok(arrived) => return Ok(Ok(arrived)),
                Err(Mishap::NotYet) => {
                    let ready = wait_readable(socket, deadline_ns)
                        .map_err(|errno| exchange::system("ppoll", 0, errno))?;
                    if !ready {
                        return Err(self.stalled());
                    }
                }
                // It ended just now. Whether somebody takes its place is for the next attempt to see.
                Err(Mishap::HungUp) => return Ok(Err(Attempt::Again(self.stalled()))),
                Err(Mishap::NotAMessage(NotAMessage::Version(theirs))) => {
                    return Err(ConnectError::Version {
                        to: self.shown.clone(),
                        theirs,
                        ours: VERSION,
                    });
                }
                Err(Mishap::NotAMessage(NotAMessage::Invalid(what))) => {
                    return Err(self.invalid(what));
                }
                Err(Mishap::OutOfDescriptors) => {
                    return Err(HostError::Descriptors {
                        needed: exchange::DESCRIPTORS as u32,
                    }
                    .into());
                }
                Err(Mishap::System(errno)) => {
                    return Err(HostError::System {
                        call: "recvmsg",
                        errno,
                    }
                    .into());
                }
            }
        }
    }

    fn refused(
        &self,
        reason: RefusedBecause,
        key: Option<PeerKey>,
    ) -> Result<Attempt, ConnectError> {
        let error = ConnectError::Refused {
            to: self.shown.clone(),
            reason,
        };
        match (reason, key) {
            (RefusedBecause::SIMULTANEOUS, Some(key)) => Ok(Attempt::Incoming(key)),
            (RefusedBecause::BUSY, _) => Ok(Attempt::Again(error)),
            _ => Err(error),
        }
    }

    fn stalled(&self) -> ConnectError {
        ConnectError::Stalled {
            to: self.shown.clone(),
        }
    }

    fn invalid(&self, what: &'static str) -> ConnectError {
        ConnectError::Invalid {
            to: self.shown.clone(),
            what,
        }
    }
}
