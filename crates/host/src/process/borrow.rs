//! Fetches pages and areas that a peer exported to this interface (decisions 0006, 0037), in the
//! caller's thread.

use super::Interior;
use super::codec::Message;
use super::exchange::ReceivedMessage;
use super::reach::{AttemptError, Route, Target};
use crate::{Address, ConnectError, Destination, RefusedBecause};
use hamlyn_ring::export::{ExportFiles, ImportedArea};
use hamlyn_ring::lending::BorrowError;
use hamlyn_ring::shared::Access;
use rustix::fd::OwnedFd;
use std::time::Duration;

/// What comes of an answer, if it brings what was asked for.
type Taken<R> = Option<Result<R, BorrowError>>;

pub(super) fn borrow<R>(
    interior: &Interior,
    from: Destination,
    secret: u64,
    adopt: fn(OwnedFd, u64) -> Result<R, BorrowError>,
    deadline_ns: u64,
) -> Result<R, ConnectError> {
    let take = |answer: ReceivedMessage| match answer {
        ReceivedMessage {
            message: Message::Lent { length_bytes },
            pages: Some(file),
            ..
        } => Some(adopt(file.into_fd()?, length_bytes)),
        _ => None,
    };
    fetch(interior, from, secret, take, deadline_ns)
}

pub(super) fn import(
    interior: &Interior,
    from: Destination,
    secret: u64,
    access: Access,
    deadline_ns: u64,
) -> Result<ImportedArea, ConnectError> {
    let take = |answer: ReceivedMessage| match answer {
        ReceivedMessage {
            message: Message::Exported { length_bytes },
            descriptors: Some([area, state]),
            ..
        } => {
            let (area, state) = (area.into_fd()?, state.into_fd()?);
            let files = ExportFiles { area, state };
            Some(ImportedArea::adopt(files, length_bytes, access))
        }
        _ => None,
    };
    fetch(interior, from, secret, take, deadline_ns)
}

fn fetch<R>(
    interior: &Interior,
    from: Destination,
    secret: u64,
    take: impl Fn(ReceivedMessage) -> Taken<R>,
    deadline_ns: u64,
) -> Result<R, ConnectError> {
    let whom = Route::of(interior, Address::Destination(from), deadline_ns)?;
    let mut backoff = whom.backoff();
    let target = match whom {
        Route::Another(target) => target,
        // Memory is exported within a host, and not to the same interface.
        whom @ (Route::Loopback | Route::Remote(_)) => {
            return Err(ConnectError::NotLent {
                to: whom.shown().to_owned(),
            });
        }
    };
    loop {
        let why = match attempt(interior, &target, secret, &take, deadline_ns) {
            Ok(borrowed) => return Ok(borrowed),
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

fn attempt<R>(
    interior: &Interior,
    target: &Target,
    secret: u64,
    take: impl Fn(ReceivedMessage) -> Taken<R>,
    deadline_ns: u64,
) -> Result<R, AttemptError> {
    let not_lent = || ConnectError::NotLent {
        to: target.shown().to_owned(),
    };
    let Some(channel) = target.greeted(interior, deadline_ns)? else {
        return Err(not_lent().into());
    };
    let interface = interior.identity.interface;
    channel.send(&Message::Claim { interface, secret }, &[])?;
    let arrived = channel.await_message(deadline_ns)?;
    match arrived.message {
        Message::NotOffered => Err(not_lent().into()),
        Message::Refusal { reason } => Err(target.refused(RefusedBecause(reason))),
        _ => match take(arrived) {
            Some(Ok(taken)) => Ok(taken),
            Some(Err(_)) => {
                let what = "what it lent is not sealed memory of the size that it announced";
                Err(target.invalid(what).into())
            }
            None => Err(target
                .invalid("it answered with something else than was asked for")
                .into()),
        },
    }
}
