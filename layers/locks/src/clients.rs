//! The state of a server: its clients, and the requests of each in the client's order.

use hamlyn::engine::memory::LinkId;
use hamlyn_am::{Call, Deferred, Name, Outcome, Translation};

use crate::options::Limits;
use crate::refusal::Refusal;
use crate::table::{ClientId, Operation, Table};
use crate::wire::{ENDED, Head, STATE, STATE_WITH, State, VERSION, read_request};

/// Requests of a client that may have come before an earlier one: as many as a link has records.
const EARLY_MAX: u32 = 31;

/// Counts of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ServerStatistics {
    /// Clients at present.
    pub clients: usize,
    /// Clients that were taken.
    pub welcomed: u64,
    /// Resources that have a lock.
    pub resources: usize,
    /// Locks, held or waiting.
    pub locks: usize,
    /// Locks that wait.
    pub waiting: usize,
    /// Requests that were taken.
    pub requests: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Those among them that would have closed a circle.
    pub deadlocks: u64,
    /// Messages that break the protocol, and had no other effect.
    pub violations: u64,
    /// Clients that ended without saying so.
    pub died: u64,
}

/// A client.
pub(crate) struct Session {
    pub(crate) link: LinkId,
    pub(crate) uses: u16,
    pub(crate) name: Name,
    /// Its own number for this session.
    pub(crate) token: u32,
    /// Answered when it is ended here.
    pub(crate) hello: Option<Deferred>,
    /// Once it was mapped.
    pub(crate) to: Option<Translation>,
    pub(crate) is_welcome: bool,
    /// The number of its next request.
    pub(crate) next: u32,
    pub(crate) early: Vec<Early>,
    /// It ends when its requests up to this one have been taken.
    pub(crate) last: Option<u32>,
}

/// A request that came before an earlier one.
pub(crate) struct Early {
    number: u32,
    arguments: Vec<u32>,
    data: Vec<u8>,
    reply: Deferred,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) state: State,
    pub(crate) value: Option<[u8; crate::VALUE_BYTES]>,
}

pub(crate) struct ServerState {
    pub(crate) table: Table,
    pub(crate) sessions: Vec<Option<Session>>,
    pub(crate) limits: Limits,
    pub(crate) digest: [u32; 2],
    pub(crate) uses: u16,
    /// Replies to requests that had come early.
    pub(crate) late: Vec<(Deferred, Answer)>,
    /// Sessions of clients that have ended: to be taken leave of.
    pub(crate) ended: Vec<Session>,
    /// Clients that could not be told.
    pub(crate) again: Vec<ClientId>,
    /// Clients whose links have ended, by their numbers as they travel. What they had sent may not
    /// be taken yet.
    pub(crate) leaving: Vec<u32>,
    /// A client was refused for want of a place.
    pub(crate) is_full: bool,
    pub(crate) statistics: ServerStatistics,
}

/// The number of a client as it travels.
pub(crate) fn id_of(client: ClientId, uses: u16) -> u32 {
    client | u32::from(uses) << 16
}

impl ServerState {
    pub(crate) fn new(limits: Limits, digest: [u32; 2]) -> Self {
        Self {
            table: Table::new(limits),
            sessions: Vec::new(),
            limits,
            digest,
            uses: 0,
            late: Vec::new(),
            ended: Vec::new(),
            again: Vec::new(),
            leaving: Vec::new(),
            is_full: false,
            statistics: ServerStatistics::default(),
        }
    }

    /// A client of that link.
    pub(crate) fn client_of(&self, id: u32, link: LinkId) -> Option<ClientId> {
        let (client, session) = self.session(id)?;
        (session.link == link).then_some(client)
    }

    /// The client of that number as it travels, if it is here.
    pub(crate) fn session(&self, id: u32) -> Option<(ClientId, &Session)> {
        let client = id & 0xffff;
        let session = self.sessions.get(client as usize)?.as_ref()?;
        (id == id_of(client, session.uses)).then_some((client, session))
    }

    /// A client is gone without a word.
    pub(crate) fn died(&mut self, client: ClientId) {
        self.statistics.died += 1;
        self.end(client);
    }

    /// A client is gone.
    pub(crate) fn end(&mut self, client: ClientId) {
        if let Some(session) = self
            .sessions
            .get_mut(client as usize)
            .and_then(Option::take)
        {
            self.table.remove_client(client);
            self.ended.push(session);
        }
    }

    /// Has those told again that are in the way of others, and, if places are wanted, all clients:
    /// so each whose link has ended is found.
    pub(crate) fn check(&mut self) {
        self.table.tell_blocking_again();
        if std::mem::take(&mut self.is_full) {
            for (client, session) in (0..).zip(&mut self.sessions) {
                if let Some(session) = session {
                    session.is_welcome = false;
                    self.table.to_tell.push(client);
                }
            }
        }
    }

    pub(crate) fn greet(&mut self, call: &mut Call<'_>, arguments: &[u32]) -> Outcome {
        if !call.is_request() {
            self.statistics.violations += 1;
            return Ok(());
        }
        let link = call.link();
        let of_link = self
            .sessions
            .iter()
            .flatten()
            .filter(|session| session.link == link);
        let token = arguments.get(3).copied().unwrap_or(0);
        let refusal = match (arguments, call.source()) {
            (&[version, ..], _) if version != VERSION => Refusal::Version,
            (&[_, low, high, _], Some(name)) => {
                let clients = self.sessions.iter().flatten().count();
                if [low, high] != self.digest {
                    Refusal::OtherServers
                } else if of_link.count() >= self.limits.clients_of_link {
                    Refusal::TooManyClientsOfLink
                } else if clients >= self.limits.clients {
                    self.is_full = true;
                    Refusal::TooManyClients
                } else {
                    return self.admit(call, name, token);
                }
            }
            _ => Refusal::BadRequest,
        };
        self.statistics.refused += 1;
        call.reply(ENDED, &[refusal.code(), token])
    }

    fn admit(&mut self, call: &mut Call<'_>, name: Name, token: u32) -> Outcome {
        let hello = Some(call.defer()?);
        let client = self.table.add_client();
        self.statistics.welcomed += 1;
        self.uses = self.uses.wrapping_add(1);
        if self.sessions.len() <= client as usize {
            self.sessions.resize_with(client as usize + 1, || None);
        }
        self.sessions[client as usize] = Some(Session {
            link: call.link(),
            uses: self.uses,
            name,
            token,
            hello,
            to: None,
            is_welcome: false,
            next: 0,
            early: Vec::new(),
            last: None,
        });
        self.table.to_tell.push(client);
        Ok(())
    }

    pub(crate) fn take(&mut self, call: &mut Call<'_>, arguments: &[u32], data: &[u8]) -> Outcome {
        let read = read_request(arguments, data).filter(|_| call.is_request());
        let Some((head, operation)) = read else {
            self.statistics.violations += 1;
            return Ok(());
        };
        let Some(client) = self.client_of(head.client, call.link()) else {
            self.statistics.violations += 1;
            let refused = State::refused(&head, Refusal::NoSuchClient);
            return call.reply(STATE, &refused.to_arguments());
        };
        let Some(session) = &mut self.sessions[client as usize] else {
            return Ok(());
        };
        match head.number.wrapping_sub(session.next) {
            0 => {}
            1..EARLY_MAX
                if session
                    .early
                    .iter()
                    .all(|early| early.number != head.number) =>
            {
                let (arguments, data) = (arguments.to_vec(), data.to_vec());
                let (number, reply) = (head.number, call.defer()?);
                session.early.push(Early {
                    number,
                    arguments,
                    data,
                    reply,
                });
                return Ok(());
            }
            _ => {
                self.statistics.violations += 1;
                return Ok(());
            }
        }
        session.next = session.next.wrapping_add(1);
        let is_more = !session.early.is_empty() || session.last.is_some();
        let result = match self.carry_out(client, &head, operation) {
            Some(Answer {
                state,
                value: Some(value),
            }) => call.reply_medium(STATE_WITH, &value, &state.to_arguments()),
            Some(Answer { state, .. }) => call.reply(STATE, &state.to_arguments()),
            None => Ok(()),
        };
        if is_more {
            self.take_early(client);
        }
        result
    }

    /// A client ends: when its requests up to that one have been taken, or at once.
    pub(crate) fn leave(&mut self, client: ClientId, last: Option<u32>) {
        match (self.sessions.get_mut(client as usize), last) {
            (Some(Some(session)), Some(last)) => session.last = Some(last),
            _ => return self.end(client),
        }
        self.take_early(client);
    }

    /// Takes requests that came early, as far as their turn has come.
    fn take_early(&mut self, client: ClientId) {
        while let Some(Some(session)) = self.sessions.get_mut(client as usize) {
            let next = session.next;
            if session.last == Some(next) {
                return self.end(client);
            }
            let is_next = |early: &Early| early.number == next;
            let Some(at) = session.early.iter().position(is_next) else {
                return;
            };
            let early = session.early.swap_remove(at);
            session.next = next.wrapping_add(1);
            if let Some((head, operation)) = read_request(&early.arguments, &early.data)
                && let Some(answer) = self.carry_out(client, &head, operation)
            {
                self.late.push((early.reply, answer));
            }
        }
    }

    /// Carries out a request. No answer if it was a release.
    fn carry_out(
        &mut self,
        client: ClientId,
        head: &Head,
        operation: Result<Operation<'_>, Refusal>,
    ) -> Option<Answer> {
        self.statistics.requests += 1;
        let told = operation.and_then(|operation| {
            self.table
                .operate(client, head.handle, head.operation, operation)
        });
        let answer = match told {
            Ok(told) => told.map(|told| Answer {
                state: State::of(&told),
                value: told.value.map(|value| value.bytes),
            }),
            Err(refusal) => Some(Answer {
                state: State::refused(head, refusal),
                value: None,
            }),
        };
        let refusal = answer.as_ref().and_then(|answer| answer.state.refusal);
        self.statistics.refused += u64::from(refusal.is_some());
        self.statistics.deadlocks += u64::from(refusal == Some(Refusal::Deadlock));
        answer
    }
}
