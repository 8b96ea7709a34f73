//! Fetches regions that a peer shares with this interface, in the caller's thread.

use super::Interior;
use super::codec::Message;
use super::disposal::ReceivedFile;
use super::reach::{AttemptError, Route, Target};
use crate::{Address, ConnectError, Destination, RefusedBecause};
use hamlyn_ring::region::ReceivedRegion;
use std::time::Duration;

pub(super) fn fetch(
    interior: &Interior,
    from: Destination,
    secret: u64,
    deadline_ns: u64,
) -> Result<ReceivedRegion, ConnectError> {
    let whom = Route::of(interior, Address::Destination(from), deadline_ns)?;
    let mut backoff = whom.backoff();
    let target = match whom {
        Route::Another(target) => target,
        // Memory is shared within a host, and not with the same interface.
        whom @ (Route::Loopback | Route::Remote(_)) => {
            return Err(ConnectError::NotShared {
                to: whom.shown().to_owned(),
            });
        }
    };
    loop {
        let why = match attempt(interior, &target, secret, deadline_ns) {
            Ok(region) => return Ok(region),
            Err(AttemptError::Again(why)) => why,
            Err(AttemptError::Final(why)) => return Err(why),
            Err(AttemptError::Late) => return Err(target.stalled()),
        };
        let Some(pause_ns) = backoff.next_ns(deadline_ns) else {
            return Err(why);
        };
        std::thread::sleep(Duration::from_nanos(pause_ns));
    }
}

fn attempt(
    interior: &Interior,
    target: &Target,
    secret: u64,
    deadline_ns: u64,
) -> Result<ReceivedRegion, AttemptError> {
    let not_shared = || ConnectError::NotShared {
        to: target.shown().to_owned(),
    };
    let Some(channel) = target.greeted(interior, deadline_ns)? else {
        return Err(not_shared().into());
    };
    let interface = interior.identity.interface;
    channel.send(&Message::Fetch { interface, secret }, &[])?;
    let arrived = channel.await_message(deadline_ns)?;
    match arrived.message {
        Message::Region { length_bytes } => {
            let mut files = arrived.descriptors.into_iter().map(ReceivedFile::into_fd);
            match (files.next().flatten(), files.next().flatten()) {
                (Some(memory), Some(state)) => Ok(ReceivedRegion {
                    memory,
                    state,
                    length_bytes,
                }),
                _ => Err(target
                    .invalid("it shared something that is not a memory file")
                    .into()),
            }
        }
        Message::NotShared => Err(not_shared().into()),
        Message::Refusal { reason } => Err(target.refused(RefusedBecause(reason))),
        _ => Err(target
            .invalid("it answered with something else than was asked for")
            .into()),
    }
}
