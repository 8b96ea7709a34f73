//! Asks interfaces of the world for offers, as the process host does: all items of one interface in
//! one question, as far as they fit.

use hamlyn_host::process::name::Name;
use hamlyn_host::question::{Question, Reply};
use hamlyn_host::{Address, ConnectError, Given, RefusedBecause, Wanted};

use super::registry::Found;
use crate::world::{clock, kernel, task};

/// The items of one interface that have no outcome yet.
struct Asked<'a> {
    to: Address<'a>,
    /// With their places among those that are wanted.
    open: Vec<(usize, Name)>,
}

type Outcome = Option<Result<Given, ConnectError>>;

pub(super) fn ask(wanted: &[Wanted<'_>], deadline_ns: u64) -> Vec<Result<Given, ConnectError>> {
    let mut outcomes: Vec<Outcome> = wanted.iter().map(|_| None).collect();
    let mut asked: Vec<Asked<'_>> = Vec::new();
    for (at, &Wanted { to, item }) in wanted.iter().enumerate() {
        let entry = match Name::checked(item) {
            Ok(item) => (at, item),
            Err(error) => {
                outcomes[at] = Some(Err(error.into()));
                continue;
            }
        };
        match asked.iter_mut().find(|one| one.to == to) {
            Some(one) => one.open.push(entry),
            None => asked.push(Asked {
                to,
                open: vec![entry],
            }),
        }
    }
    loop {
        for one in &mut asked {
            one.ask(&mut outcomes);
        }
        asked.retain(|one| !one.open.is_empty());
        if asked.is_empty() {
            break;
        }
        kernel::with(|kernel| kernel.expect_something());
        if !expected(deadline_ns) {
            break;
        }
    }
    let outcomes = outcomes.into_iter();
    outcomes
        .map(|outcome| outcome.expect("each item has been asked for"))
        .collect()
}

impl Asked<'_> {
    /// Asks for what is open. Leaves open what may be offered yet, with an outcome for the case
    /// that there is no time left.
    fn ask(&mut self, outcomes: &mut [Outcome]) {
        let to = || shown(self.to);
        let mut pending = std::mem::take(&mut self.open);
        for (at, _) in &pending {
            outcomes[*at] = Some(Err(ConnectError::Absent { to: to() }));
        }
        let interface = match kernel::with(|kernel| kernel.registry.by_address(self.to)) {
            Found::Interface(interface) => interface,
            Found::Gone => {
                for (at, _) in pending {
                    outcomes[at] = Some(Err(ConnectError::Gone { to: to() }));
                }
                return;
            }
            Found::Nobody => {
                self.open = pending;
                return;
            }
        };
        let asked_ns = clock::clock_ns();
        let items = |pending: &[(usize, Name)]| {
            Question::for_first(pending.iter().map(|(_, item)| item), usize::MAX)
        };
        while let Some(question) = items(&pending) {
            let replies = kernel::with(|kernel| kernel.answer(interface, &question));
            let Some(replies) = replies.and_then(|replies| replies.of(&question)) else {
                self.open.append(&mut pending);
                return;
            };
            for reply in replies {
                let (at, item) = pending.remove(0);
                outcomes[at] = Some(match reply {
                    Reply::Given(bytes) => Ok(Given { bytes, asked_ns }),
                    Reply::Refused(reason) => {
                        let error = match reason {
                            Reply::NOT_OFFERED => ConnectError::NotOffered {
                                to: to(),
                                item: item.as_str().to_owned(),
                            },
                            reason => ConnectError::Refused {
                                to: to(),
                                reason: RefusedBecause(reason),
                            },
                        };
                        self.open.push((at, item));
                        Err(error)
                    }
                });
            }
        }
    }
}

/// Waits for what the running task expects. False if the time is over.
pub(super) fn expected(deadline_ns: u64) -> bool {
    if clock::clock_ns() >= deadline_ns || kernel::with(|kernel| kernel.is_dying()) {
        return false;
    }
    task::wait(Some(clock::time_of(deadline_ns)));
    kernel::with(|kernel| kernel.expect_nothing());
    true
}

pub(super) fn shown(to: Address<'_>) -> String {
    match to {
        Address::Name(name) => format!("{name:?}"),
        Address::Destination(to) => format!("interface {:016x} on node {}", to.interface, to.node),
    }
}
