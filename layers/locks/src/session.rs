//! Sessions of a client with servers, and their locks as the client knows them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use hamlyn::engine::memory::LinkId;
use hamlyn::{Destination, Host, Wait};
use hamlyn_am::{Bundle, Call, Deferred, Endpoint, Error, Node, Outcome, Reason, Tag, Translation};
use slab::Slab;

use crate::error::LockError;
use crate::mode::Mode;
use crate::refusal::Refusal;
use crate::resource::{VALUE_BYTES, Value};
use crate::servers::Servers;
use crate::table::Operation;
use crate::wire::{
    BYE, ENDED, HELLO, Head, ITEM, REQUEST, REQUEST_WITH, STATE, STATE_WITH, State, VERSION,
    WELCOME, read_value, request,
};

/// A lock that is dropped waits so long for a credit of its release.
const DROP_WAIT: Wait = Wait::millis(1);

/// The client's view of a lock.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The last operation. News of others are old.
    operation: u32,
    /// It has no result yet.
    pub(crate) is_waiting: bool,
    pub(crate) held: Option<Mode>,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) blocking: Option<Mode>,
    pub(crate) value: Option<Value>,
    /// A value to be written.
    pub(crate) to_write: Option<[u8; VALUE_BYTES]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    Down,
    Greeting,
    Up,
    Refused(Refusal),
}

/// A session that is over.
struct Old {
    to: Option<Translation>,
    /// Answered by the own number there.
    watch: Option<Deferred>,
    id: u32,
}

/// A session with a server.
#[derive(Default)]
struct Session {
    stage: Stage,
    /// Counts sessions: what is of another one is old.
    epoch: u32,
    to: Option<Translation>,
    interface: Option<Destination>,
    link: Option<LinkId>,
    /// The own number there.
    id: u32,
    /// The number of the next request.
    number: u32,
    operations: u32,
    slots: Slab<Slot>,
    /// Answered when this ends.
    watch: Option<Deferred>,
    /// Releases that could not be sent.
    unsent: VecDeque<(Head, Option<[u8; VALUE_BYTES]>)>,
    lost_by: Option<Reason>,
    /// Of sessions before: to be unmapped, and to be taken leave of.
    old: Vec<Old>,
}

impl Session {
    /// The session is over, with all of its locks.
    fn end(&mut self, stage: Stage, lost_by: Option<Reason>) {
        self.old.push(Old {
            to: self.to.take(),
            watch: self.watch.take(),
            id: self.id,
        });
        self.stage = stage;
        self.epoch = self.epoch.wrapping_add(1);
        self.lost_by = lost_by;
        self.slots.clear();
        self.unsent.clear();
        self.link = None;
    }

    fn is_of(&self, link: LinkId) -> bool {
        self.stage == Stage::Up && self.link == Some(link)
    }

    /// The server tells of a lock.
    fn told(&mut self, told: &State, data: &[u8]) {
        if told.refusal == Some(Refusal::NoSuchClient) {
            return self.end(Stage::Down, None);
        }
        let Some(slot) = self.slots.get_mut(told.handle as usize) else {
            return;
        };
        if told.operation != slot.operation {
            return;
        }
        if !told.is_waiting {
            slot.held = told.held;
            if std::mem::take(&mut slot.is_waiting) {
                slot.refusal = told.refusal;
            }
            if told.refusal.is_none() {
                slot.value = read_value(data, told.is_valid).or(slot.value.take());
            }
        }
        slot.blocking = told.blocking.or(slot.blocking);
    }
}

/// The place of a lock: its server, its number there, and the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) server: usize,
    handle: u32,
    epoch: u32,
}

/// A client as its locks hold it.
pub(crate) struct Inner<H: Host> {
    node: Node<H>,
    pub(crate) bundle: Bundle<H>,
    endpoint: Endpoint<H>,
    pub(crate) servers: Servers,
    pub(crate) names: Vec<String>,
    tag: Tag,
    sessions: Rc<RefCell<Vec<Session>>>,
}

/// The token of a session, which tells of which server and which session a message is.
fn token_of(server: usize, epoch: u32) -> u32 {
    (server as u32) << 16 | epoch & 0xffff
}

fn session_of(sessions: &mut [Session], token: u32) -> Option<&mut Session> {
    let server = (token >> 16) as usize;
    let session = sessions.get_mut(server)?;
    (token_of(server, session.epoch) == token).then_some(session)
}

/// A server takes this client. It may say so again.
fn welcome(sessions: &mut [Session], call: &mut Call<'_>, arguments: &[u32]) -> Outcome {
    let (&[id, token], true) = (arguments, call.is_request()) else {
        return Ok(());
    };
    let Some(session) = session_of(sessions, token) else {
        // It was given up meanwhile.
        return call.reply(BYE, &[id]);
    };
    let from = call.source().map(|source| source.interface());
    let is_known = session.is_of(call.link()) && session.id == id;
    let is_it = |(from, to): (Destination, Destination)| from.is_same(&to);
    let is_server = from.zip(session.interface).is_some_and(is_it);
    let is_awaited = session.stage == Stage::Greeting && is_server;
    if !is_known && !is_awaited {
        return call.reply(BYE, &[id]);
    }
    session.watch = Some(call.defer()?);
    (session.id, session.link) = (id, Some(call.link()));
    session.stage = Stage::Up;
    Ok(())
}

fn told(sessions: &mut [Session], call: &Call<'_>, arguments: &[u32], data: &[u8]) -> Outcome {
    let session = sessions
        .iter_mut()
        .find(|session| session.is_of(call.link()));
    if let (Some(session), Some(state)) = (session, State::read(arguments)) {
        session.told(&state, data);
    }
    Ok(())
}

impl<H: Host> Inner<H> {
    pub(crate) fn open(node: &Node<H>, servers: &[&str], tag: Tag) -> Result<Self, LockError> {
        let sessions = servers.iter().map(|_| Session::default()).collect();
        let sessions: Rc<RefCell<Vec<Session>>> = Rc::new(RefCell::new(sessions));
        let set = Servers::new(servers)?;
        let bundle = node.bundle()?;
        let mut endpoint = bundle.endpoint()?;
        // Its name, which it tells its servers alone, is a secret.
        endpoint.set_tag(Tag::Any)?;
        let own = Rc::clone(&sessions);
        endpoint.on_short(WELCOME, move |call, arguments| {
            welcome(&mut own.borrow_mut(), call, arguments)
        })?;
        let own = Rc::clone(&sessions);
        endpoint.on_short(STATE, move |call, arguments| {
            told(&mut own.borrow_mut(), call, arguments, &[])
        })?;
        let own = Rc::clone(&sessions);
        endpoint.on_medium(STATE_WITH, move |call, data, arguments| {
            told(&mut own.borrow_mut(), call, arguments, data)
        })?;
        let own = Rc::clone(&sessions);
        endpoint.on_short(ENDED, move |_, arguments| {
            let mut sessions = own.borrow_mut();
            if let &[code, token] = arguments
                && let Some(session) = session_of(&mut sessions, token)
            {
                match session.stage {
                    Stage::Greeting => session.end(Stage::Refused(Refusal::of_code(code)), None),
                    Stage::Up => session.end(Stage::Down, None),
                    Stage::Down | Stage::Refused(_) => {}
                }
            }
            Ok(())
        })?;
        let own = Rc::clone(&sessions);
        endpoint.on_returned(move |back| {
            let mut sessions = own.borrow_mut();
            let mut sessions = sessions.iter_mut();
            let its = sessions.find(|one| one.to.is_some() && one.to == back.translation);
            if let Some(session) = its {
                session.end(Stage::Down, Some(back.reason));
            }
        })?;
        Ok(Self {
            node: node.clone(),
            bundle,
            endpoint,
            servers: set,
            names: servers.iter().map(|name| (*name).to_owned()).collect(),
            tag,
            sessions,
        })
    }

    fn lost(&self, server: usize) -> LockError {
        let reason = self.sessions.borrow()[server].lost_by;
        LockError::ServerLost {
            server: self.names[server].clone(),
            reason,
        }
    }

    pub(crate) fn refused(&self, server: usize, refusal: Refusal) -> LockError {
        LockError::Refused {
            server: self.names[server].clone(),
            refusal,
        }
    }

    /// Makes a session with a server, unless there is one.
    pub(crate) fn connect(&self, server: usize, wait: Wait) -> Result<(), LockError> {
        if self.sessions.borrow()[server].stage == Stage::Up {
            return Ok(());
        }
        self.forget_old(server);
        let name = self.node.look_up(&self.names[server], ITEM, wait)?;
        let to = self.endpoint.map(&name, self.tag, wait)?;
        let token = {
            let session = &mut self.sessions.borrow_mut()[server];
            session.stage = Stage::Greeting;
            session.to = Some(to);
            session.interface = Some(name.interface());
            (session.number, session.lost_by) = (0, None);
            token_of(server, session.epoch)
        };
        let [low, high] = self.servers.digest();
        let hello = [VERSION, low, high, token];
        let greeted = self
            .endpoint
            .request(&to, HELLO, &hello, wait)
            .and_then(|()| {
                let is_over = || self.sessions.borrow()[server].stage != Stage::Greeting;
                self.bundle.serve_until(wait, is_over)
            });
        let stage = self.sessions.borrow()[server].stage;
        match stage {
            Stage::Up => Ok(()),
            Stage::Refused(refusal) => Err(self.refused(server, refusal)),
            Stage::Down => Err(self.lost(server)),
            Stage::Greeting => {
                self.sessions.borrow_mut()[server].end(Stage::Down, None);
                match greeted {
                    Ok(_) | Err(Error::WouldBlock(_)) => Err(LockError::TimedOut),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// The place of a new lock.
    pub(crate) fn new_place(&self, server: usize) -> Place {
        let session = &mut self.sessions.borrow_mut()[server];
        Place {
            server,
            handle: session.slots.insert(Slot::default()) as u32,
            epoch: session.epoch,
        }
    }

    /// Takes leave of sessions that are over.
    fn forget_old(&self, server: usize) {
        let old = std::mem::take(&mut self.sessions.borrow_mut()[server].old);
        for Old { to, watch, id } in old {
            if let Some(watch) = watch {
                // A server that is gone does not hear it.
                let _ = self.endpoint.reply(watch, BYE, &[id]);
            }
            if let Some(to) = to {
                let _ = self.endpoint.unmap(to);
            }
        }
    }

    /// Looks at the slot of a lock; an error if its session is over.
    pub(crate) fn with<T>(
        &self,
        lock: Place,
        look: impl FnOnce(&mut Slot) -> T,
    ) -> Result<T, LockError> {
        {
            let session = &mut self.sessions.borrow_mut()[lock.server];
            if session.epoch == lock.epoch
                && let Some(slot) = session.slots.get_mut(lock.handle as usize)
            {
                return Ok(look(slot));
            }
        }
        Err(self.lost(lock.server))
    }

    /// Sends an operation on a lock, whose result is then awaited.
    pub(crate) fn send(
        &self,
        lock: Place,
        operation: &Operation<'_>,
        wait: Wait,
    ) -> Result<(), LockError> {
        self.send_unsent(lock.server, wait)?;
        self.with(lock, |_| ())?;
        let head = {
            let session = &mut self.sessions.borrow_mut()[lock.server];
            session.operations = session.operations.wrapping_add(1);
            Head {
                client: session.id,
                number: session.number,
                handle: lock.handle,
                operation: session.operations,
            }
        };
        self.request(lock.server, &head, operation, wait)?;
        self.with(lock, |slot| {
            slot.operation = head.operation;
            slot.is_waiting = true;
            slot.refusal = None;
            slot.blocking = None;
        })
    }

    /// Sends a request of the server's session.
    fn request(
        &self,
        server: usize,
        head: &Head,
        operation: &Operation<'_>,
        wait: Wait,
    ) -> Result<(), LockError> {
        let (to, epoch) = {
            let session = &self.sessions.borrow()[server];
            (session.to, session.epoch)
        };
        let Some(to) = to else {
            return Err(self.lost(server));
        };
        let (arguments, data) = request(head, operation);
        let sent = match data {
            [] => self.endpoint.request(&to, REQUEST, &arguments, wait),
            _ => self
                .endpoint
                .request_medium(&to, REQUEST_WITH, data, &arguments, wait),
        };
        let mut sessions = self.sessions.borrow_mut();
        let session = &mut sessions[server];
        // Handlers may have run.
        let is_over = session.epoch != epoch;
        match sent {
            Ok(()) if !is_over => {
                session.number = session.number.wrapping_add(1);
                return Ok(());
            }
            Err(Error::WouldBlock(_)) if !is_over => return Err(LockError::TimedOut),
            Err(Error::PeerLost(_)) if !is_over => session.end(Stage::Down, None),
            Err(error) if !is_over => return Err(error.into()),
            _ => {}
        }
        drop(sessions);
        Err(self.lost(server))
    }

    /// Sends releases that could not be sent before.
    pub(crate) fn send_unsent(&self, server: usize, wait: Wait) -> Result<(), LockError> {
        loop {
            let (head, value) = {
                let session = &self.sessions.borrow()[server];
                let Some((head, value)) = session.unsent.front().copied() else {
                    return Ok(());
                };
                (
                    Head {
                        number: session.number,
                        ..head
                    },
                    value,
                )
            };
            let operation = Operation::Release {
                value: value.as_ref(),
            };
            self.request(server, &head, &operation, wait)?;
            self.sessions.borrow_mut()[server].unsent.pop_front();
        }
    }

    /// Waits until the last operation on a lock has its result.
    pub(crate) fn settle(&self, lock: Place, wait: Wait) -> Result<bool, LockError> {
        let is_over = || !matches!(self.with(lock, |slot| slot.is_waiting), Ok(true));
        Ok(self.bundle.serve_until(wait, is_over)?)
    }

    /// Releases a lock, with the value that it is to write. The server is not waited for.
    pub(crate) fn release(&self, lock: Place) -> Result<(), LockError> {
        let (value, is_none) = self.with(lock, |slot| {
            let is_none = !slot.is_waiting && slot.held.is_none();
            (slot.to_write.take(), is_none)
        })?;
        {
            let session = &mut self.sessions.borrow_mut()[lock.server];
            session.slots.try_remove(lock.handle as usize);
            if is_none {
                // It was refused, or never asked for.
                return Ok(());
            }
            let head = Head {
                client: session.id,
                number: 0,
                handle: lock.handle,
                operation: 0,
            };
            session.unsent.push_back((head, value));
        }
        match self.send_unsent(lock.server, DROP_WAIT) {
            // It is sent by the next call of this client.
            Err(LockError::TimedOut) => Ok(()),
            sent => sent,
        }
    }
}

impl<H: Host> Drop for Inner<H> {
    /// The servers are told.
    fn drop(&mut self) {
        for server in 0..self.names.len() {
            let _ = self.send_unsent(server, DROP_WAIT);
            self.forget_old(server);
            let session = &mut self.sessions.borrow_mut()[server];
            if let Some(watch) = session.watch.take() {
                let _ = self
                    .endpoint
                    .reply(watch, BYE, &[session.id, session.number]);
            }
        }
    }
}
