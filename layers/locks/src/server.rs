//! The server end: takes requests in the order in which each client made them, and tells clients
//! the state of their locks.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use hamlyn::host::process::ProcessHost;
use hamlyn::{Host, Wait};
use hamlyn_am::{Bundle, Endpoint, Error, Node, POLL_MESSAGES_MAX, Reason, Tag};

use crate::clients::{Answer, ServerState, ServerStatistics, Session, id_of};
use crate::error::LockError;
use crate::options::ServerOptions;
use crate::refusal::Refusal;
use crate::servers::Servers;
use crate::table::ClientId;
use crate::wire::{
    BYE, ENDED, HELLO, ITEM, REQUEST, REQUEST_WITH, STATE, STATE_WITH, State, WELCOME,
};

/// Clients that could not be told something are tried again after so long at the latest.
const AGAIN: Duration = Duration::from_millis(5);
/// While locks wait, holders in their way are told again so often, so that none is overlooked whose
/// client is gone; under load, after so many requests.
const CHECK: Duration = Duration::from_millis(100);
const CHECK_REQUESTS: usize = 1_024;
/// Clients that are tried again in one call.
const AGAIN_MAX: usize = 8;

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
        let digest = Servers::new(servers)?.digest();
        let state = Rc::new(RefCell::new(ServerState::new(options.limits, digest)));
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
                state.died(client as ClientId);
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
            let is_again = !state.again.is_empty() || !state.leaving.is_empty();
            (is_again, waiting > 0 || state.is_full)
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
        let gone = self.take_gone();
        let taken = self.bundle.serve(wait);
        // After an error they are looked at again, as after a look that was full.
        self.end_gone(gone, *taken.as_ref().unwrap_or(&POLL_MESSAGES_MAX));
        let taken = taken?;
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

    /// Sends what clients are to be told. The first error, when all were tried.
    fn tell(&self) -> Result<(), LockError> {
        // In a handler nothing can be told, and an answer that is tried there is gone.
        self.endpoint.is_resident()?;
        let state = &mut *self.state.borrow_mut();
        for (reply, Answer { state, value }) in state.late.drain(..) {
            let arguments = state.to_arguments();
            // A client that does not want it any more has ended.
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
        let mut result = Ok(());
        for client in std::mem::take(&mut state.table.to_tell)
            .into_iter()
            .chain(again)
        {
            result = result.and(self.tell_client(state, client));
        }
        result
    }

    /// Clients whose links bring nothing more.
    fn take_gone(&self) -> Vec<u32> {
        let state = &mut *self.state.borrow_mut();
        let leaving = std::mem::take(&mut state.leaving);
        let is_gone = |id: &u32| {
            let to = state.session(*id).and_then(|(_, session)| session.to);
            to.is_none_or(|to| self.endpoint.is_drained(&to).unwrap_or(true))
        };
        let (gone, leaving) = leaving.into_iter().partition(is_gone);
        state.leaving = leaving;
        gone
    }

    /// Ends them, if all that they had sent was among what was taken since.
    fn end_gone(&self, gone: Vec<u32>, taken: usize) {
        let state = &mut *self.state.borrow_mut();
        if taken >= POLL_MESSAGES_MAX {
            return state.leaving.extend(gone);
        }
        for id in gone {
            if let Some((client, _)) = state.session(id) {
                state.died(client);
            }
        }
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
            Err(error @ (Error::WouldBlock(_) | Error::Host(_))) => {
                if !state.again.contains(&client) {
                    state.again.push(client);
                }
                match error {
                    Error::WouldBlock(_) => Ok(()),
                    error => Err(error.into()),
                }
            }
            // Its link has ended, or leads nowhere.
            Err(_) => {
                let id = id_of(client, session.uses);
                if !state.leaving.contains(&id) {
                    state.leaving.push(id);
                }
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
