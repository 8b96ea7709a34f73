//! The connecting side of a handshake, in the caller's thread.

use super::Interior;
use super::clock::now_ns;
use super::codec::Message;
use super::grant::Unlinkable;
use super::reach::{AttemptError, Route, Target};
use super::registry::{NewLink, Outgoing, PeerKey};
use crate::network::resolver::{PendingConnection, RemoteTarget};
use crate::{Address, ConnectError, HostError, Peer, RefusedBecause};
use hamlyn_ring::duplex::LineOrder;
use std::sync::Arc;
use std::time::Duration;

/// How long the peer's own attempt is waited for, before it is tried again.
const SIMULTANEOUS_NS: u64 = 16_000_000;

/// The link to a peer: its token, and whether it was made now.
pub(super) struct Linked {
    pub(super) token: u64,
    pub(super) is_new: bool,
}

/// What became of one attempt.
enum Attempt {
    Made(Linked),
    /// The peer's own attempt, or another thread's, is to be used.
    UnderWay(PeerKey),
    /// It is ourselves.
    Loopback,
}

/// Connects. The owner is to be told of a new link, as of one that others make.
pub(super) fn connect(
    interior: &Interior,
    to: Address<'_>,
    deadline_ns: u64,
) -> Result<Linked, ConnectError> {
    let whom = Route::of(interior, to, deadline_ns)?;
    let stalled = || whom.stalled();
    let mut backoff = whom.backoff();
    loop {
        let made = match &whom {
            Route::Loopback => Ok(Attempt::Loopback),
            Route::Another(target) => attempt(interior, target, deadline_ns),
            Route::Remote(remote) => attempt_remote(interior, remote, deadline_ns),
        };
        let (why, under_way) = match made {
            Ok(Attempt::Made(linked)) => return Ok(linked),
            Ok(Attempt::Loopback) => return oneself(interior),
            Ok(Attempt::UnderWay(key)) => (stalled(), Some(key)),
            Err(AttemptError::Again(why)) => (why, None),
            Err(AttemptError::Final(why)) => return Err(why),
            Err(AttemptError::Late) => return Err(stalled()),
        };
        let Some(pause_ns) = backoff.next_ns(deadline_ns) else {
            return Err(why);
        };
        match under_way {
            None => std::thread::sleep(Duration::from_nanos(pause_ns)),
            // That attempt may fail, so this is no wait until the deadline: after a while we try
            // again.
            Some(key) => {
                let until_ns = now_ns().saturating_add(SIMULTANEOUS_NS).min(deadline_ns);
                if let Some(token) = interior.registry.await_link(key, until_ns) {
                    return Ok(Linked {
                        token,
                        is_new: false,
                    });
                }
            }
        }
    }
}

/// A link to the interface itself.
fn oneself(interior: &Interior) -> Result<Linked, ConnectError> {
    let link = interior
        .lender
        .loopback(interior.registry.waker_descriptor()?)?;
    let peer = Peer {
        token: 0,
        destination: interior.identity,
        group: interior.settings.numbers.own_group(),
        process: std::process::id(),
        name: interior
            .settings
            .name
            .as_ref()
            .map(|name| name.as_str().to_owned()),
    };
    let (token, is_new) = interior.registry.enter_loopback(peer, link);
    Ok(Linked { token, is_new })
}

/// Takes back, at the end of an attempt, the claim to be connecting.
struct Claim<'a>(&'a Interior, PeerKey);

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.registry.end_outgoing(self.1);
    }
}

fn attempt_remote(
    interior: &Interior,
    remote: &RemoteTarget,
    deadline_ns: u64,
) -> Result<Attempt, AttemptError> {
    let Some(network) = &interior.network else {
        unreachable!("without a network no interface is remote");
    };
    let attempt_error = |why| remote.attempt_error(why);
    let found = network.find(remote, deadline_ns).map_err(attempt_error)?;
    let key = PeerKey::of(&found.who);
    if found.who.node == interior.identity.node {
        // This host by another name.
        return match &remote.here(interior, &found, deadline_ns)? {
            Route::Another(target) => attempt(interior, target, deadline_ns),
            Route::Loopback | Route::Remote(_) => Ok(Attempt::Loopback),
        };
    }
    if let Some(early) = claim(interior, key, 0)? {
        return Ok(early);
    }
    let _claim = Claim(interior, key);
    let own = |pending: &PendingConnection<'_>| {
        pending.side(interior.identity, interior.settings.name.clone())
    };
    let asked = network.ask_link(&found, remote, own, deadline_ns);
    match asked.map_err(attempt_error)? {
        Ok((peer, link)) => {
            if !interior.allows_peer(&peer) {
                return Err(AttemptError::Final(ConnectError::NotAllowed {
                    to: remote.shown.clone(),
                    user: peer.destination.user,
                }));
            }
            enter(interior, NewLink::remote(peer, link))
        }
        Err(RefusedBecause::SIMULTANEOUS) => Ok(Attempt::UnderWay(key)),
        Err(reason) => Err(AttemptError::refused(&remote.shown, reason)),
    }
}

/// Claims a connection to a peer; or says that there is a link, or will be. Must be followed by a
/// [`Claim`].
fn claim(interior: &Interior, key: PeerKey, process: u32) -> Result<Option<Attempt>, AttemptError> {
    match interior.registry.begin_outgoing(key, process) {
        Outgoing::Begun => Ok(None),
        Outgoing::Linked(token) => Ok(Some(Attempt::Made(Linked {
            token,
            is_new: false,
        }))),
        Outgoing::UnderWay => Ok(Some(Attempt::UnderWay(key))),
        Outgoing::Full => {
            let allowed = interior.settings.links_max as u32;
            Err(HostError::LinksFull { allowed }.into())
        }
    }
}

fn enter(interior: &Interior, new_link: NewLink) -> Result<Attempt, AttemptError> {
    let entered = interior.registry.enter_outgoing(new_link)?;
    let is_new = entered.is_ok();
    let (Ok(token) | Err(token)) = entered;
    Ok(Attempt::Made(Linked { token, is_new }))
}

fn attempt(
    interior: &Interior,
    target: &Target,
    deadline_ns: u64,
) -> Result<Attempt, AttemptError> {
    let Some(channel) = target.greeted(interior, deadline_ns)? else {
        return Ok(Attempt::Loopback);
    };
    let key = channel.key();
    if let Some(early) = claim(interior, key, channel.credentials.process)? {
        return Ok(early);
    }
    let _claim = Claim(interior, key);
    let (lent, file) = interior.lender.lend()?;
    let hello = Message::Hello(interior.lender.offer(&lent));
    channel.send(&hello, &interior.lender.descriptors(&file))?;
    let arrived = channel.await_message(deadline_ns)?;
    let descriptors = arrived.descriptors;
    let offer = match arrived.message {
        Message::Welcome(offer) => offer,
        Message::Refusal { reason } => {
            return match RefusedBecause(reason) {
                RefusedBecause::SIMULTANEOUS => Ok(Attempt::UnderWay(key)),
                reason => Err(target.refused(reason)),
            };
        }
        _ => {
            let what = "it answered with something else than a welcome";
            return Err(target.invalid(what).into());
        }
    };
    if offer.interface != channel.interface {
        let what = "its welcome names another interface than its greeting";
        return Err(target.invalid(what).into());
    }
    // Who welcomes us has mapped our memory.
    file.seal()?;
    let link = interior
        .lender
        .join(lent, &offer, descriptors, &channel.socket, LineOrder::First)
        .map_err(|error| match error {
            Unlinkable::Invalid(what) => target.invalid(what),
            Unlinkable::Host(error) => error.into(),
        })?;
    channel.send(&Message::Mapped, &[])?;
    match channel.await_message(deadline_ns)?.message {
        Message::Sealed => {}
        Message::Refusal { reason } => return Err(target.refused(RefusedBecause(reason))),
        _ => {
            let what = "it did not say that it has the link";
            return Err(target.invalid(what).into());
        }
    }
    let control = Arc::new(channel.socket);
    let process = channel.credentials.open_process(&control);
    let peer = channel.credentials.peer(&offer);
    enter(interior, NewLink::local(peer, control, process, link))
}
