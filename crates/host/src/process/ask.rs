//! Asks an interface for an offer, in the caller's thread.
//!
//! An answer that is sent to us is given to no other asker. So an asker whose time is
//! up shuts its receiving side first and then looks once more. Either an answer is there, or it
//! can no longer be sent, and is kept for another asker.

use super::Interior;
use super::clock::now_ns;
use super::codec::Message;
use super::name::{Name, Namespace};
use super::reach::{AttemptError, ControlChannel, Route, Target};
use crate::network::handshake_payload::{Answer, Sought};
use crate::network::resolver::RemoteTarget;
use crate::offers::{Asker, NotGiven};
use crate::{Address, ConnectError, Given, RefusedBecause};
use rustix::net::{Shutdown, shutdown};
use std::convert::Infallible;
use std::time::Duration;

pub(super) fn ask(
    interior: &Interior,
    to: Address<'_>,
    item: &str,
    deadline_ns: u64,
) -> Result<Given, ConnectError> {
    let item = Name::checked(item)?;
    let whom = Route::of(interior, to, deadline_ns)?;
    let mut backoff = whom.backoff();
    // What it said last, if it said anything.
    let mut said = None;
    loop {
        let attempt = match &whom {
            Route::Loopback => of_loopback(interior, whom.shown(), &item),
            Route::Another(target) => {
                of_another(interior, target, &item, deadline_ns).map(|(given, _)| given)
            }
            Route::Remote(remote) => of_remote(interior, remote, &item, deadline_ns),
        };
        let why = match attempt {
            Ok(given) => return Ok(given),
            Err(AttemptError::Again(why)) => why,
            Err(AttemptError::Final(why)) => return Err(why),
            // The time of the last attempt is hardly ever enough.
            Err(AttemptError::Late) => {
                let to = whom.shown().to_owned();
                return Err(said.unwrap_or(ConnectError::Stalled { to, silence: None }));
            }
        };
        let Some(pause_ns) = backoff.next_ns(deadline_ns) else {
            return Err(why);
        };
        said = match why {
            ConnectError::NotOffered { .. } | ConnectError::Refused { .. } => Some(why),
            _ => None,
        };
        std::thread::sleep(Duration::from_nanos(pause_ns));
    }
}

fn of_loopback(interior: &Interior, shown: &str, item: &Name) -> Result<Given, AttemptError> {
    let asked_ns = now_ns();
    let given = interior.offers.hand_over(item, Asker::Oneself, |bytes| {
        Ok::<_, Infallible>(bytes.to_vec())
    });
    match given {
        Ok(Ok(bytes)) => Ok(Given { bytes, asked_ns }),
        Err(NotGiven::Nothing) => Err(not_offered(shown, item)),
        Err(NotGiven::Because(reason)) => Err(AttemptError::refused(shown, reason)),
    }
}

/// The offer of another interface, and its user as the kernel reports it.
fn of_another(
    interior: &Interior,
    target: &Target,
    item: &Name,
    deadline_ns: u64,
) -> Result<(Given, u32), AttemptError> {
    let Some(channel) = target.greeted(interior, deadline_ns)? else {
        let given = of_loopback(interior, target.shown(), item)?;
        return Ok((given, interior.identity.user));
    };
    let asked_ns = now_ns();
    let ask = Message::Ask { item: item.clone() };
    channel.send(&ask, &[])?;
    let message = match channel.await_message(deadline_ns) {
        Ok(arrived) => arrived.message,
        Err(AttemptError::Late) => poll_last(&channel)?,
        Err(attempt_error) => return Err(attempt_error),
    };
    match message {
        Message::Answer { bytes } => Ok((Given { bytes, asked_ns }, channel.credentials.user)),
        Message::NotOffered => Err(not_offered(target.shown(), item)),
        Message::Refusal { reason } => Err(target.refused(RefusedBecause(reason))),
        _ => Err(target
            .invalid("it answered with something else than was asked for")
            .into()),
    }
}

fn of_remote(
    interior: &Interior,
    remote: &RemoteTarget,
    item: &Name,
    deadline_ns: u64,
) -> Result<Given, AttemptError> {
    let Some(network) = &interior.network else {
        unreachable!("without a network no interface is remote");
    };
    let attempt_error = |why| remote.attempt_error(why);
    let found = network.find(remote, deadline_ns).map_err(attempt_error)?;
    if found.who.node == interior.identity.node {
        remote.here(interior, &found, deadline_ns)?;
    }
    let asked_ns = now_ns();
    let said = network.ask(&found, remote, item, deadline_ns);
    match said.map_err(attempt_error)? {
        Answer::Given(bytes) => Ok(Given { bytes, asked_ns }),
        Answer::Refused {
            reason: Answer::NOT_OFFERED,
        } => Err(not_offered(&remote.shown, item)),
        Answer::Refused { reason } => {
            Err(AttemptError::refused(&remote.shown, RefusedBecause(reason)))
        }
        _ => Err(AttemptError::Final(ConnectError::Invalid {
            to: remote.shown.clone(),
            what: "it answered with something else than was asked for",
        })),
    }
}

/// The offer of a neighbour under that name, and the neighbour's user, if it answers in time.
pub(crate) fn ask_neighbour(
    interior: &Interior,
    namespace: &Namespace,
    sought: &Sought,
    item: &str,
    deadline_ns: u64,
) -> Option<(Vec<u8>, u32)> {
    let item = Name::new(item).ok()?;
    let target = Target::neighbour(namespace, sought).ok()?;
    let (given, user) = of_another(interior, &target, &item, deadline_ns).ok()?;
    Some((given.bytes, user))
}

fn poll_last(channel: &ControlChannel<'_>) -> Result<Message, AttemptError> {
    // It fails only if the other end is gone, and then nothing more can come.
    let _ = shutdown(&channel.socket, Shutdown::Read);
    match channel.poll() {
        Ok(Some(arrived)) => Ok(arrived.message),
        // A closed ear looks like the end of the other side.
        Ok(None) | Err(AttemptError::Again(_)) => Err(AttemptError::Late),
        Err(attempt_error) => Err(attempt_error),
    }
}

fn not_offered(shown: &str, item: &Name) -> AttemptError {
    AttemptError::Again(ConnectError::NotOffered {
        to: shown.to_owned(),
        item: item.as_str().to_owned(),
    })
}
