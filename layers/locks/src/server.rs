//! The server end: takes requests in the order in which each client made them, and tells clients
//! what has become of their locks.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use hamlyn::engine::memory::LinkId;
use hamlyn::host::process::ProcessHost;
use hamlyn::{Host, Wait};
use hamlyn_am::{
    Bundle, Call, Deferred, Endpoint, Error, Name, Node, Outcome, Reason, Tag, Translation,
};

use crate::error::LockError;
use crate::options::{Limits, ServerOptions};
use crate::table::{ClientId, Operation, Table};
use crate::wire::{
    BYE, ENDED, HELLO, Head, ITEM, REQUEST, REQUEST_WITH, Refusal, STATE, STATE_WITH, Servers,
    State, VERSION, WELCOME, read_request,
};

/// Requests of a client that may have come before an earlier one: as many as a link has records.
const EARLY_MAX: u32 = 31;
/// Clients that could not be told something are tried again after so long at the latest.
const AGAIN: Duration = Duration::from_millis(5);
/// While locks wait, holders in their way are told again so often, so that none is overlooked whose
/// client is gone; under load, after so many requests.
const CHECK: Duration = Duration::from_millis(100);
const CHECK_REQUESTS: usize = 1_024;
/// Clients that are tried again in one call.
const AGAIN_MAX: usize = 8;

/// Counts of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ServerStatistics {
    /// Clients at present.
    pub clients: usize,
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
struct Session {
    link: LinkId,
    uses: u16,
    name: Name,
    /// Its own number for this session.
    token: u32,
    /// Answered when it is ended here.
    hello: Option<Deferred>,
    /// Once it was mapped.
    to: Option<Translation>,
    is_welcome: bool,
    /// The number of its next request.
    next: u32,
    early: Vec<Early>,
    /// It ends when its requests up to this one have been taken.
    last: Option<u32>,
}

/// A request that came before an earlier one.
struct Early {
    number: u32,
    arguments: Vec<u32>,
    data: Vec<u8>,
    reply: Deferred,
}

/// An answer.
struct Answer {
    state: State,
    value: Option<[u8; crate::VALUE_BYTES]>,
}

struct ServerState {
    table: Table,
    sessions: Vec<Option<Session>>,
    limits: Limits,
    digest: [u32; 2],
    uses: u16,
    /// Replies to requests that had come early.
    late: Vec<(Deferred, Answer)>,
    /// What clients have left behind.
    ended: Vec<Session>,
    /// Clients that could not be told.
    again: Vec<ClientId>,
    /// A client was refused for want of a place.
    is_full: bool,
    statistics: ServerStatistics,
}

/// A server: masters the resources whose names lead to its node. It works while it is
/// [served](LockServer::serve).
pub struct LockServer<H: Host = ProcessHost> {
    bundle: Bundle<H>,
    endpoint: Endpoint<H>,
    state: Rc<RefCell<ServerState>>,
    unchecked: usize,
}

impl<H: Host> LockServer<H> {
    /// A server on that node, as the one of these servers that has the name `own`. All servers and
    /// clients must be given the same, in any order: a client with others is refused. Allocates.
    ///
    /// # Errors
    ///
    /// A limit that cannot be, a list of servers that is wrong, or an error of the node.
    pub fn open(
        node: &Node<H>,
        own: &str,
        servers: &[&str],
        options: ServerOptions,
    ) -> Result<Self, LockError> {
        options.limits.check()?;
        if !servers.contains(&own) {
            let what = "it does not name this server";
            return Err(LockError::Servers { what });
        }
        let state = Rc::new(RefCell::new(ServerState {
            table: Table::new(options.limits),
            sessions: Vec::new(),
            limits: options.limits,
            digest: Servers::new(servers)?.digest(),
            uses: 0,
            late: Vec::new(),
            ended: Vec::new(),
            again: Vec::new(),
            is_full: false,
            statistics: ServerStatistics::default(),
        }));
        let bundle = node.bundle()?;
        let mut endpoint = bundle.endpoint()?;
        endpoint.set_tag(options.tag)?;
        let own = Rc::clone(&state);
        endpoint.on_short(HELLO, move |call, arguments| {
            own.borrow_mut().greet(call, arguments)
        })?;
        let own = Rc::clone(&state);
        endpoint.on_short(REQUEST, move |call, arguments| {
            own.borrow_mut().take(call, arguments, &[])
        })?;
        let own = Rc::clone(&state);
        endpoint.on_medium(REQUEST_WITH, move |call, data, arguments| {
            own.borrow_mut().take(call, arguments, data)
        })?;
        let own = Rc::clone(&state);
        endpoint.on_short(BYE, move |call, arguments| {
            let state = &mut *own.borrow_mut();
            let client = arguments
                .first()
                .and_then(|id| state.client_of(*id, call.link()));
            if let Some(client) = client {
                state.leave(client, arguments.get(1).copied());
            }
            Ok(())
        })?;
        let own = Rc::clone(&state);
        endpoint.on_returned(move |back| {
            let state = &mut *own.borrow_mut();
            let is_its = |session: &Option<Session>| {
                let to = session.as_ref().and_then(|session| session.to);
                to.is_some() && to == back.translation
            };
            // One that was dropped says so itself, when all that it has sent was taken.
            let is_dropped = back.reason == Reason::BadEndpoint;
            if let Some(client) = state.sessions.iter().position(is_its)
                && !is_dropped
            {
                state.statistics.died += 1;
                state.end(client as ClientId);
            }
        })?;
        node.publish(ITEM, &endpoint.name()?)?;
        Ok(Self {
            bundle,
            endpoint,
            state,
            unchecked: 0,
        })
    }

    /// Takes requests, and tells clients of their locks; how many messages came. Waits as long as
    /// `wait` says; if locks wait, or clients do not take what they are told, it returns earlier.
    pub fn serve(&mut self, wait: Wait) -> Result<usize, LockError> {
        self.tell()?;
        let (is_again, is_waiting) = {
            let state = self.state.borrow();
            let [_, _, waiting] = state.table.counts();
            (!state.again.is_empty(), waiting > 0 || state.is_full)
        };
        let most = match (is_again, is_waiting) {
            (true, _) => Some(AGAIN),
            (false, true) => Some(CHECK),
            _ => None,
        };
        let wait = match (wait, most) {
            (Wait::For(long), Some(most)) => Wait::For(long.min(most)),
            (Wait::Forever, Some(most)) => Wait::For(most),
            _ => wait,
        };
        let taken = self.bundle.serve(wait)?;
        self.unchecked += taken;
        if wait != Wait::Poll && taken == 0 || self.unchecked >= CHECK_REQUESTS {
            self.unchecked = 0;
            self.state.borrow_mut().check();
        }
        self.tell()?;
        Ok(taken)
    }

    /// The counts of this server.
    pub fn statistics(&self) -> ServerStatistics {
        let state = self.state.borrow();
        let [resources, locks, waiting] = state.table.counts();
        ServerStatistics {
            clients: state.sessions.iter().flatten().count(),
            resources,
            locks,
            waiting,
            ..state.statistics
        }
    }

    /// Sends what clients are to be told.
    fn tell(&self) -> Result<(), LockError> {
        let state = &mut *self.state.borrow_mut();
        for (reply, Answer { state, value }) in state.late.drain(..) {
            let arguments = state.to_arguments();
            // Whoever does not want it any more has ended.
            let _ = match value {
                Some(value) => self
                    .endpoint
                    .reply_medium(reply, STATE_WITH, &value, &arguments),
                None => self.endpoint.reply(reply, STATE, &arguments),
            };
        }
        for session in state.ended.drain(..) {
            self.farewell(session);
        }
        let again = state.again.len().min(AGAIN_MAX);
        let again: Vec<ClientId> = state.again.drain(..again).collect();
        for client in std::mem::take(&mut state.table.to_tell)
            .into_iter()
            .chain(again)
        {
            self.tell_client(state, client)?;
        }
        Ok(())
    }

    fn farewell(&self, session: Session) {
        if let Some(hello) = session.hello {
            let code = Refusal::NoSuchClient.code();
            let _ = self.endpoint.reply(hello, ENDED, &[code, session.token]);
        }
        if let Some(to) = session.to {
            let _ = self.endpoint.unmap(to);
        }
    }

    /// Tells a client all that there is, or as much as can be sent.
    fn tell_client(&self, state: &mut ServerState, client: ClientId) -> Result<(), LockError> {
        let slot = state.sessions.get_mut(client as usize);
        let Some(session) = slot.and_then(Option::as_mut) else {
            return Ok(());
        };
        let sent = (|| {
            let to = match session.to {
                Some(to) => to,
                // Over the link by which it came: nobody is waited for.
                None => self.endpoint.map(&session.name, Tag::Any, Wait::Poll)?,
            };
            session.to = Some(to);
            if !session.is_welcome {
                let id = id_of(client, session.uses);
                self.endpoint
                    .request(&to, WELCOME, &[id, session.token], Wait::Poll)?;
                session.is_welcome = true;
            }
            let mut sent = Ok(());
            state.table.tell_news(client, |told| {
                let arguments = State::of(told).to_arguments();
                sent = match told.value {
                    Some(value) => {
                        let (over, data) = (STATE_WITH, &value.bytes);
                        self.endpoint
                            .request_medium(&to, over, data, &arguments, Wait::Poll)
                    }
                    None => self.endpoint.request(&to, STATE, &arguments, Wait::Poll),
                };
                sent.is_ok()
            });
            sent
        })();
        match sent {
            Ok(()) => Ok(()),
            Err(Error::WouldBlock(_)) => {
                if !state.again.contains(&client) {
                    state.again.push(client);
                }
                Ok(())
            }
            Err(error @ (Error::InHandler | Error::Host(_))) => Err(error.into()),
            // Its link has ended, or leads nowhere.
            Err(_) => {
                state.statistics.died += 1;
                state.end(client);
                Ok(())
            }
        }
    }
}

impl<H: Host> Drop for LockServer<H> {
    /// Clients are told that their locks are lost.
    fn drop(&mut self) {
        let state = &mut *self.state.borrow_mut();
        for session in state
            .sessions
            .drain(..)
            .flatten()
            .chain(state.ended.drain(..))
        {
            self.farewell(session);
        }
    }
}

impl<H: Host> std::fmt::Debug for LockServer<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockServer")
            .field("statistics", &self.statistics())
            .finish()
    }
}

/// The number of a client as it travels.
fn id_of(client: ClientId, uses: u16) -> u32 {
    client | u32::from(uses) << 16
}

impl ServerState {
    /// A client of that link.
    fn client_of(&self, id: u32, link: LinkId) -> Option<ClientId> {
        let client = id & 0xffff;
        let session = self.sessions.get(client as usize)?.as_ref()?;
        (session.link == link && id == id_of(client, session.uses)).then_some(client)
    }

    /// A client is gone.
    fn end(&mut self, client: ClientId) {
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
    fn check(&mut self) {
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

    fn greet(&mut self, call: &mut Call<'_>, arguments: &[u32]) -> Outcome {
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

    fn take(&mut self, call: &mut Call<'_>, arguments: &[u32], data: &[u8]) -> Outcome {
        let Some((head, operation)) = read_request(arguments, data) else {
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
    fn leave(&mut self, client: ClientId, last: Option<u32>) {
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
