//! Asks interfaces for offers, in the caller's thread.
//!
//! All items of one interface go in one question, as far as they fit. An answer that is sent to us
//! is given to no other asker. So an asker whose time is up shuts its receiving side first and then
//! looks once more. Either an answer is there, or it can no longer be sent, and is kept for another
//! asker.

use super::Interior;
use super::clock::now_ns;
use super::codec::Message;
use super::name::{Name, Namespace};
use super::reach::{AttemptError, Backoff, ControlChannel, Route, Target};
use crate::network::handshake_payload::{Answer, Sought};
use crate::network::resolver::{Found, RemoteTarget};
use crate::offers::Asker;
use crate::question::{Question, Reply};
use crate::{Address, ConnectError, Given, RefusedBecause, Wanted};
use rustix::net::{Shutdown, shutdown};
use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

/// Time that one of several interfaces has at first, before the next is asked.
const TURN_NS: u64 = 100_000_000;

/// The outcome for an item, once it is known.
type Outcome = Option<Result<Given, ConnectError>>;

/// An item that has no outcome yet.
struct Open {
    /// Its place among those that are wanted.
    at: usize,
    item: Name,
    /// The last refusal, if the interface said anything last.
    refused: Option<ConnectError>,
    /// The outcome if there is no time left.
    why: Option<ConnectError>,
}

/// The open items of one interface.
struct Asked {
    route: Route,
    open: Vec<Open>,
    backoff: Backoff,
    due_ns: u64,
    turn_ns: u64,
}

/// The replies to the first of the items that were asked for.
struct Answered {
    replies: Vec<Reply>,
    asked_ns: u64,
}

const OTHER_ANSWER: &str = "it answered with something else than was asked for";

pub(super) fn ask(
    interior: &Interior,
    wanted: &[Wanted<'_>],
    deadline_ns: u64,
) -> Vec<Result<Given, ConnectError>> {
    let mut outcomes: Vec<Outcome> = wanted.iter().map(|_| None).collect();
    let mut asked = by_interface(interior, wanted, deadline_ns, &mut outcomes);
    let mut is_over = false;
    while !asked.is_empty() && !is_over {
        let is_alone = asked.len() == 1;
        for one in &mut asked {
            if one.due_ns <= now_ns() {
                one.take_turn(interior, is_alone, deadline_ns, &mut outcomes);
            }
        }
        asked.retain(|one| !one.open.is_empty());
        let now_ns = now_ns();
        is_over = now_ns >= deadline_ns;
        let due_ns = asked.iter().map(|one| one.due_ns).min();
        if let Some(due_ns) = due_ns.filter(|_| !is_over) {
            let pause_ns = due_ns.min(deadline_ns).saturating_sub(now_ns);
            std::thread::sleep(Duration::from_nanos(pause_ns));
        }
    }
    for Asked { route, open, .. } in asked {
        for Open { at, why, .. } in open {
            outcomes[at] = Some(Err(why.unwrap_or_else(|| route.stalled())));
        }
    }
    outcomes
        .into_iter()
        .map(|outcome| outcome.expect("each item was given, refused or left open"))
        .collect()
}

/// The items, by the interfaces that are to be asked for them.
fn by_interface(
    interior: &Interior,
    wanted: &[Wanted<'_>],
    deadline_ns: u64,
    outcomes: &mut [Outcome],
) -> Vec<Asked> {
    let mut places: HashMap<Address<'_>, Result<usize, ConnectError>> = HashMap::new();
    let mut asked: Vec<Asked> = Vec::new();
    for (at, Wanted { to, item }) in wanted.iter().enumerate() {
        let mut enter = || {
            let item = Name::checked(item)?;
            let place = places.entry(*to).or_insert_with(|| {
                let route = Route::of(interior, *to, deadline_ns)?;
                asked.push(Asked::new(route));
                Ok(asked.len() - 1)
            });
            let one = &mut asked[place.clone()?];
            one.open.push(Open {
                at,
                item,
                refused: None,
                why: None,
            });
            Ok(())
        };
        outcomes[at] = enter().err().map(Err);
    }
    asked
}

impl Asked {
    fn new(route: Route) -> Self {
        Self {
            backoff: route.backoff(),
            route,
            open: Vec::new(),
            due_ns: 0,
            turn_ns: TURN_NS,
        }
    }

    /// Asks for all open items, question after question, until one is not answered. An interface
    /// that is not alone has a bounded time.
    fn take_turn(
        &mut self,
        interior: &Interior,
        is_alone: bool,
        deadline_ns: u64,
        outcomes: &mut [Outcome],
    ) {
        let until_ns = match is_alone {
            true => deadline_ns,
            false => deadline_ns.min(now_ns().saturating_add(self.turn_ns)),
        };
        let mut found = None;
        let mut pending = std::mem::take(&mut self.open);
        while !pending.is_empty() {
            let items = pending.iter().map(|open| &open.item);
            let attempt = match &self.route {
                Route::Loopback => of_loopback(interior, items),
                Route::Another(target) => {
                    let question = Question::for_first(items, usize::MAX);
                    let question = question.expect("an item is pending");
                    of_another(interior, target, question, until_ns).map(|(answered, _)| answered)
                }
                Route::Remote(remote) => of_remote(interior, remote, &mut found, items, until_ns),
            };
            let Answered { replies, asked_ns } = match attempt {
                Ok(answered) => answered,
                Err(error) => {
                    if now_ns() >= until_ns {
                        self.turn_ns = self.turn_ns.saturating_mul(2);
                    }
                    self.fail(pending, &error, outcomes);
                    break;
                }
            };
            let answered = pending.drain(..replies.len().min(pending.len()));
            for (open, reply) in answered.zip(replies) {
                let at = open.at;
                match reply {
                    Reply::Given(bytes) => outcomes[at] = Some(Ok(Given { bytes, asked_ns })),
                    Reply::Refused(reason) => match refused(self.route.shown(), &open.item, reason)
                    {
                        AttemptError::Final(why) => outcomes[at] = Some(Err(why)),
                        AttemptError::Again(why) => self.open.push(open.refused(why)),
                        AttemptError::Late => self.open.push(open),
                    },
                }
            }
        }
        self.due_ns = match self.backoff.next_ns(deadline_ns) {
            Some(pause_ns) => now_ns().saturating_add(pause_ns),
            None => deadline_ns,
        };
    }

    /// The interface answered none of these.
    fn fail(&mut self, pending: Vec<Open>, error: &AttemptError, outcomes: &mut [Outcome]) {
        let late = self.route.stalled();
        for mut open in pending {
            let why = match error {
                AttemptError::Final(why) => {
                    outcomes[open.at] = Some(Err(why.clone()));
                    continue;
                }
                AttemptError::Again(why) => why,
                AttemptError::Late => &late,
            };
            open.refused = match why {
                ConnectError::Refused { .. } => Some(why.clone()),
                // The time of the last attempt is hardly ever enough: what it said before counts.
                ConnectError::Stalled { .. } => open.refused,
                _ => None,
            };
            open.why = Some(open.refused.as_ref().unwrap_or(why).clone());
            self.open.push(open);
        }
    }
}

impl Open {
    fn refused(self, why: ConnectError) -> Self {
        Self {
            refused: Some(why.clone()),
            why: Some(why),
            ..self
        }
    }
}

/// The error of a reply that gives nothing.
fn refused(shown: &str, item: &Name, reason: u16) -> AttemptError {
    match reason {
        Reply::NOT_OFFERED => AttemptError::Again(ConnectError::NotOffered {
            to: shown.to_owned(),
            item: item.as_str().to_owned(),
        }),
        reason => AttemptError::refused(shown, RefusedBecause(reason)),
    }
}

fn of_loopback<'a>(
    interior: &Interior,
    items: impl Iterator<Item = &'a Name>,
) -> Result<Answered, AttemptError> {
    let question = Question::for_first(items, usize::MAX).expect("an item is pending");
    Ok(of_oneself(interior, &question))
}

fn of_oneself(interior: &Interior, question: &Question) -> Answered {
    let asked_ns = now_ns();
    let (asker, before) = (Asker::Oneself, HashMap::new());
    let answered = interior
        .offers
        .answer(question, asker, usize::MAX, &before, |replies| {
            Ok::<_, Infallible>(replies.replies().to_vec())
        });
    let Ok(replies) = answered;
    Answered { replies, asked_ns }
}

/// The offers of another interface, and its user as the kernel reports it.
fn of_another(
    interior: &Interior,
    target: &Target,
    question: Question,
    deadline_ns: u64,
) -> Result<(Answered, u32), AttemptError> {
    let Some(channel) = target.greeted(interior, deadline_ns)? else {
        return Ok((of_oneself(interior, &question), interior.identity.user));
    };
    let asked_ns = now_ns();
    let ask = Message::Ask(question.clone());
    channel.send(&ask, &[])?;
    let message = match channel.await_message(deadline_ns) {
        Ok(arrived) => arrived.message,
        Err(AttemptError::Late) => poll_last(&channel)?,
        Err(attempt_error) => return Err(attempt_error),
    };
    let replies = match message {
        Message::Answer(replies) => replies.of(&question),
        Message::Refusal { reason } => return Err(target.refused(RefusedBecause(reason))),
        _ => None,
    };
    let replies = replies.ok_or_else(|| target.invalid(OTHER_ANSWER))?;
    Ok((Answered { replies, asked_ns }, channel.credentials.user))
}

fn of_remote<'a>(
    interior: &Interior,
    remote: &RemoteTarget,
    found: &mut Option<Found>,
    items: impl Iterator<Item = &'a Name>,
    deadline_ns: u64,
) -> Result<Answered, AttemptError> {
    let Some(network) = &interior.network else {
        unreachable!("without a network no interface is remote");
    };
    let attempt_error = |why| remote.attempt_error(why);
    if found.is_none() {
        let there = network.find(remote, deadline_ns).map_err(attempt_error)?;
        if there.who.node == interior.identity.node {
            remote.here(interior, &there, deadline_ns)?;
        }
        *found = Some(there);
    }
    let Some(there) = found else {
        unreachable!("it was found");
    };
    let asked_ns = now_ns();
    let asked = network.ask(there, remote, items, deadline_ns);
    let (question, answer) = asked.map_err(attempt_error)?;
    let replies = match answer {
        Answer::Answered(replies) => replies.of(&question),
        Answer::Refused { reason } => {
            return Err(AttemptError::refused(&remote.shown, RefusedBecause(reason)));
        }
        _ => None,
    };
    let replies = replies.ok_or_else(|| ConnectError::Invalid {
        to: remote.shown.clone(),
        what: OTHER_ANSWER,
    })?;
    Ok(Answered { replies, asked_ns })
}

/// The offer of a neighbour under that name, and the neighbour's user, if it answers in time.
pub(crate) fn ask_neighbour(
    interior: &Interior,
    namespace: &Namespace,
    sought: &Sought,
    item: &str,
    deadline_ns: u64,
) -> Option<(Vec<u8>, u32)> {
    let question = Question::one(Name::new(item).ok()?);
    let target = Target::neighbour(namespace, sought).ok()?;
    let (answered, user) = of_another(interior, &target, question, deadline_ns).ok()?;
    match answered.replies.into_iter().next()? {
        Reply::Given(bytes) => Some((bytes, user)),
        Reply::Refused(_) => None,
    }
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
