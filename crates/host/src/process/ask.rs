//! Asking somebody for what it offers, in the caller's thread.
//!
//! What is sent to us is ours: nobody else is given it. So an asker whose time is
//! up closes its ear first and then looks once more. Either an answer is there, or it
//! can no longer be sent, and is kept for somebody else.

use super::Interior;
use super::codec::Message;
use super::name::{Name, Namespace};
use super::reach::{Contact, Setback, Target, Whom};
use crate::network::handshake_payload::{Answer, Sought};
use crate::network::outside::Abroad;
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
    let whom = Whom::of(interior, to, deadline_ns)?;
    let mut backoff = whom.backoff();
    // What it said last, if it said anything.
    let mut said = None;
    loop {
        let attempt = match &whom {
            Whom::Oneself => of_oneself(interior, whom.shown(), &item),
            Whom::Another(target) => {
                of_another(interior, target, &item, deadline_ns).map(|(bytes, _)| bytes)
            }
            Whom::Abroad(abroad) => of_abroad(interior, abroad, &item, deadline_ns),
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

/// What somebody else offers, and its user, by the kernel's word.
fn of_another(
    interior: &Interior,
    target: &Target,
    item: &Name,
    deadline_ns: u64,
) -> Result<(Vec<u8>, u32), Setback> {
    let Some(contact) = target.greeted(interior, deadline_ns)? else {
        let bytes = of_oneself(interior, target.shown(), item)?;
        return Ok((bytes, interior.identity.user));
    };
    let ask = Message::Ask { item: item.clone() };
    contact.say(&ask, &[])?;
    let message = match contact.await_message(deadline_ns) {
        Ok(arrived) => arrived.message,
        Err(Setback::Late) => look_for_the_last_time(&contact)?,
        Err(setback) => return Err(setback),
    };
    match message {
        Message::Answer { bytes } => Ok((bytes, contact.credentials.user)),
        Message::NotOffered => Err(not_offered(target.shown(), item)),
        Message::Refusal { reason } => Err(target.refused(RefusedBecause(reason))),
        _ => Err(target
            .invalid("it answered with something else than was asked for")
            .into()),
    }
}

fn of_abroad(
    interior: &Interior,
    abroad: &Abroad,
    item: &Name,
    deadline_ns: u64,
) -> Result<Vec<u8>, Setback> {
    let Some(network) = &interior.network else {
        unreachable!("without a network nobody is abroad");
    };
    let setback = |why| abroad.setback(why);
    let found = network.find(abroad, deadline_ns).map_err(setback)?;
    let said = network.ask(&found, abroad, item, deadline_ns);
    match said.map_err(setback)? {
        Answer::Given(bytes) => Ok(bytes),
        Answer::Refused {
            reason: Answer::NOT_OFFERED,
        } => Err(not_offered(&abroad.shown, item)),
        Answer::Refused { reason } => Err(Setback::Final(ConnectError::Refused {
            to: abroad.shown.clone(),
            reason: RefusedBecause(reason),
        })),
        _ => Err(Setback::Final(ConnectError::Invalid {
            to: abroad.shown.clone(),
            what: "it answered with something else than was asked for",
        })),
    }
}

/// What a neighbour offers under that name, and its user, if it says so in time.
pub(crate) fn ask_neighbour(
    interior: &Interior,
    namespace: &Namespace,
    sought: &Sought,
    item: &str,
    deadline_ns: u64,
) -> Option<(Vec<u8>, u32)> {
    let item = Name::new(item).ok()?;
    let target = Target::neighbour(namespace, sought).ok()?;
    of_another(interior, &target, &item, deadline_ns).ok()
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
