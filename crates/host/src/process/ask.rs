//! Asking somebody for what it offers, in the caller's thread.
//!
//! What is sent to us is ours: nobody else is given it. So an asker whose time is
//! up closes its ear first and then looks once more. Either an answer is there, or it
//! can no longer be sent, and is kept for somebody else.

use super::Interior;
use super::codec::Message;
use super::name::Name;
use super::reach::{Backoff, Contact, Setback, Target, Whom};
use crate::{Address, ConnectError, RefusedBecause};
use rustix::net::{Shutdown, shutdown};
use std::convert::Infallible;
use std::time::Duration;

pub(super) fn ask(
    interior: &Interior,
    to: Address<'_>,
    item: &str,
    deadline_ns: u64,
) -> Result<Vec<u8>, ConnectError> {
    let item = Name::checked(item)?;
    let whom = Whom::of(interior, to)?;
    let mut backoff = Backoff::new();
    // What it said last, if it said anything.
    let mut said = None;
    loop {
        let attempt = match &whom {
            Whom::Oneself => of_oneself(interior, whom.shown(), &item),
            Whom::Another(target) => of_another(interior, target, &item, deadline_ns),
        };
        let why = match attempt {
            Ok(bytes) => return Ok(bytes),
            Err(Setback::Again(why)) => why,
            Err(Setback::Final(why)) => return Err(why),
            // The time of the last attempt is hardly ever enough.
            Err(Setback::Late) => {
                let to = whom.shown().to_owned();
                return Err(said.unwrap_or(ConnectError::Stalled { to }));
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

fn of_oneself(interior: &Interior, shown: &str, item: &Name) -> Result<Vec<u8>, Setback> {
    let given = interior
        .offers
        .hand_over(item, |bytes| Ok::<_, Infallible>(bytes.to_vec()));
    match given {
        Some(Ok(bytes)) => Ok(bytes),
        None => Err(not_offered(shown, item)),
    }
}

fn of_another(
    interior: &Interior,
    target: &Target,
    item: &Name,
    deadline_ns: u64,
) -> Result<Vec<u8>, Setback> {
    let Some(contact) = target.greeted(interior, deadline_ns)? else {
        return of_oneself(interior, target.shown(), item);
    };
    let ask = Message::Ask { item: item.clone() };
    contact.say(&ask, &[])?;
    let message = match contact.await_message(deadline_ns) {
        Ok(arrived) => arrived.message,
        Err(Setback::Late) => look_for_the_last_time(&contact)?,
        Err(setback) => return Err(setback),
    };
    match message {
        Message::Answer { bytes } => Ok(bytes),
        Message::NotOffered => Err(not_offered(target.shown(), item)),
        Message::Refusal { reason } => Err(target.refused(RefusedBecause(reason))),
        _ => Err(target
            .invalid("it answered with something else than was asked for")
            .into()),
    }
}

fn look_for_the_last_time(contact: &Contact<'_>) -> Result<Message, Setback> {
    // It fails only if the other end is gone, and then nothing more can come.
    let _ = shutdown(&contact.socket, Shutdown::Read);
    match contact.look() {
        Ok(Some(arrived)) => Ok(arrived.message),
        // A closed ear looks like the end of the other side.
        Ok(None) | Err(Setback::Again(_)) => Err(Setback::Late),
        Err(setback) => Err(setback),
    }
}

fn not_offered(shown: &str, item: &Name) -> Setback {
    Setback::Again(ConnectError::NotOffered {
        to: shown.to_owned(),
        item: item.as_str().to_owned(),
    })
}
