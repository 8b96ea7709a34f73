//! All locks of a server: resources, locks and clients, their limits, and the search for deadlocks.
//! No I/O.

use std::collections::HashMap;

use slab::Slab;

use crate::mode::Mode;
use crate::options::Limits;
use crate::refusal::Refusal;
use crate::resource::{LockId, News, Resource, VALUE_BYTES, Value};

/// A client, by its number.
pub(crate) type ClientId = u32;

/// A lock of a client, which names it by a number of its own: the *handle*.
#[derive(Debug)]
struct Lock {
    client: ClientId,
    handle: u32,
    resource: usize,
    /// The number of the client's last operation on it.
    operation: u32,
    /// Why that was refused.
    refusal: Option<Refusal>,
    /// The mode that others want, if it was told.
    blocking: Option<Mode>,
    /// Its client is to be told.
    has_news: bool,
}

#[derive(Debug, Default)]
struct Client {
    /// By handle.
    locks: Vec<Option<LockId>>,
    count: usize,
    waiting: Vec<LockId>,
    /// Locks with news.
    news: Vec<LockId>,
    /// The last search that has seen it.
    search: u32,
}

/// The state of a lock, as its client is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told<'a> {
    pub(crate) handle: u32,
    pub(crate) operation: u32,
    /// Why that was refused. A lock that is held is as it was before.
    pub(crate) refusal: Option<Refusal>,
    pub(crate) is_waiting: bool,
    pub(crate) held: Option<Mode>,
    pub(crate) blocking: Option<Mode>,
    /// Of the resource, if it has one.
    pub(crate) value: Option<&'a Value>,
}

/// An operation on a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation<'a> {
    /// A new lock on the resource of that name.
    Lock {
        mode: Mode,
        is_try: bool,
        name: &'a [u8],
    },
    /// Another mode, and before it a value to be written.
    Convert {
        mode: Mode,
        is_try: bool,
        value: Option<&'a [u8; VALUE_BYTES]>,
    },
    /// No conversion after all.
    Cancel,
    Release {
        value: Option<&'a [u8; VALUE_BYTES]>,
    },
}

#[derive(Debug)]
pub(crate) struct Table {
    limits: Limits,
    names: HashMap<Box<[u8]>, usize>,
    resources: Slab<(Box<[u8]>, Resource)>,
    locks: Slab<Lock>,
    clients: Slab<Client>,
    /// Clients that are to be told something.
    pub(crate) to_tell: Vec<ClientId>,
    news: Vec<News>,
    /// Locks that wait.
    waiting: usize,
    searches: u32,
    found: Vec<ClientId>,
}

impl Table {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            names: HashMap::new(),
            resources: Slab::new(),
            locks: Slab::new(),
            clients: Slab::new(),
            to_tell: Vec::new(),
            news: Vec::new(),
            waiting: 0,
            searches: 0,
            found: Vec::new(),
        }
    }

    /// Numbers of resources, of locks, and of those that wait.
    pub(crate) fn counts(&self) -> [usize; 3] {
        [self.resources.len(), self.locks.len(), self.waiting]
    }

    /// The mode that a lock is held in.
    #[cfg(test)]
    pub(crate) fn mode_of(&self, client: ClientId, handle: u32) -> Option<Mode> {
        let lock = self.lock_of(client, handle).ok()?;
        self.resources[self.locks[lock as usize].resource]
            .1
            .mode_of(lock)
    }

    pub(crate) fn add_client(&mut self) -> ClientId {
        self.clients.insert(Client::default()) as ClientId
    }

    /// A client is gone: its locks are released, and values that it might have written are not
    /// valid.
    pub(crate) fn remove_client(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id as usize) else {
            return;
        };
        for lock in std::mem::take(&mut client.locks).into_iter().flatten() {
            self.release(lock, None, true);
        }
        self.clients.remove(id as usize);
        self.to_tell.retain(|one| *one != id);
    }

    fn lock_of(&self, client: ClientId, handle: u32) -> Result<LockId, Refusal> {
        let client = self.clients.get(client as usize);
        let lock = client.and_then(|client| client.locks.get(handle as usize).copied().flatten());
        lock.ok_or(Refusal::NoSuchLock)
    }

    /// Carries out an operation. The answer: the state of the lock, which says if the operation was
    /// refused; nothing if it was released; a refusal if there is no lock.
    pub(crate) fn operate(
        &mut self,
        client: ClientId,
        handle: u32,
        number: u32,
        operation: Operation<'_>,
    ) -> Result<Option<Told<'_>>, Refusal> {
        let lock = match operation {
            Operation::Lock { mode, is_try, name } => {
                self.lock(client, handle, number, mode, is_try, name)?
            }
            Operation::Convert {
                mode,
                is_try,
                value,
            } => {
                let lock = self.begin(client, handle, number)?;
                let converted = self.convert(lock, mode, is_try, value);
                self.locks[lock as usize].refusal = converted.err();
                lock
            }
            Operation::Cancel => {
                let lock = self.begin(client, handle, number)?;
                self.locks[lock as usize].refusal = self.cancel(lock).err();
                lock
            }
            Operation::Release { value } => {
                let lock = self.lock_of(client, handle)?;
                self.clients[client as usize].locks[handle as usize] = None;
                self.release(lock, value, false);
                return Ok(None);
            }
        };
        Ok(self.tell(lock))
    }

    /// A new operation of a lock: from now on news are of it.
    fn begin(&mut self, client: ClientId, handle: u32, number: u32) -> Result<LockId, Refusal> {
        let lock = self.lock_of(client, handle)?;
        self.locks[lock as usize].operation = number;
        Ok(lock)
    }

    /// A lock may change: if it blocks somebody then, its client is told anew.
    fn untell(&mut self, lock: LockId) {
        let state = &mut self.locks[lock as usize];
        state.blocking = None;
        self.resources[state.resource].1.untell(lock);
    }

    fn lock(
        &mut self,
        client_id: ClientId,
        handle: u32,
        operation: u32,
        mode: Mode,
        is_try: bool,
        name: &[u8],
    ) -> Result<LockId, Refusal> {
        let limits = self.limits;
        let client = self.clients.get_mut(client_id as usize);
        let client = client.ok_or(Refusal::NoSuchClient)?;
        if handle as usize >= limits.locks || client.count >= limits.locks {
            return Err(Refusal::TooManyLocks);
        }
        if client.locks.len() <= handle as usize {
            client.locks.resize(handle as usize + 1, None);
        }
        if client.locks[handle as usize].is_some() {
            return Err(Refusal::HandleInUse);
        }
        let resource = match self.names.get(name) {
            Some(&resource) => resource,
            None if name.len() > limits.name_bytes => return Err(Refusal::NameTooLong),
            None if self.resources.len() >= limits.resources => {
                return Err(Refusal::TooManyResources);
            }
            None => {
                let entry = (Box::from(name), Resource::default());
                let resource = self.resources.insert(entry);
                self.names.insert(Box::from(name), resource);
                resource
            }
        };
        if self.resources[resource].1.len() >= limits.locks_of_resource {
            return Err(Refusal::ResourceFull);
        }
        client.count += 1;
        let lock = self.locks.insert(Lock {
            client: client_id,
            handle,
            resource,
            operation,
            refusal: None,
            blocking: None,
            has_news: false,
        }) as LockId;
        client.locks[handle as usize] = Some(lock);
        let wanted = self.want(lock, mode, is_try);
        if wanted.is_err() {
            self.clients[client_id as usize].locks[handle as usize] = None;
            self.release(lock, None, false);
        }
        wanted.map(|()| lock)
    }

    fn convert(
        &mut self,
        lock: LockId,
        mode: Mode,
        is_try: bool,
        value: Option<&[u8; VALUE_BYTES]>,
    ) -> Result<(), Refusal> {
        let resource = &mut self.resources[self.locks[lock as usize].resource].1;
        let own = resource.mode_of(lock);
        if resource.is_waiting(lock) {
            return Err(Refusal::Waits);
        }
        if let (Some(value), Some(own)) = (value, own)
            && own.writes_value()
        {
            resource.set_value(*value);
        }
        self.want(lock, mode, is_try)
    }

    /// A lock wants a mode: it is granted, waits, or is refused and as it was before.
    fn want(&mut self, lock: LockId, mode: Mode, is_try: bool) -> Result<(), Refusal> {
        self.untell(lock);
        let Lock {
            client,
            resource: number,
            ..
        } = self.locks[lock as usize];
        let resource = &mut self.resources[number].1;
        let place = resource.place(lock, mode);
        let waiting = self.clients[client as usize].waiting.len();
        if !place.is_granted && (is_try || waiting >= self.limits.waiting) {
            self.settle(number, None);
            return Err(match is_try {
                true => Refusal::Busy,
                false => Refusal::TooManyWaiting,
            });
        }
        let passes = place.is_granted && resource.has_queue();
        resource.enter(lock, mode, place);
        self.clients[client as usize].waiting.push(lock);
        self.waiting += 1;
        // One that is granted and passes others may block them, while its client waits elsewhere.
        let may_close_a_circle = !place.is_granted || (passes && waiting > 0);
        let is_deadlock = may_close_a_circle && self.is_deadlock(client);
        if is_deadlock {
            self.leave_queue(lock);
        }
        self.settle(number, Some(lock));
        match is_deadlock {
            true => Err(Refusal::Deadlock),
            false => Ok(()),
        }
    }

    fn cancel(&mut self, lock: LockId) -> Result<(), Refusal> {
        let number = self.locks[lock as usize].resource;
        if self.resources[number].1.mode_of(lock).is_none() {
            // It is released instead.
            return Err(Refusal::Waits);
        }
        self.untell(lock);
        self.leave_queue(lock);
        self.settle(number, Some(lock));
        Ok(())
    }

    fn leave_queue(&mut self, lock: LockId) {
        let resource = self.locks[lock as usize].resource;
        if self.resources[resource].1.leave_queue(lock) {
            self.waits_no_more(lock);
        }
    }

    /// A lock has left the queue of its resource.
    fn waits_no_more(&mut self, lock: LockId) {
        let client = self.locks[lock as usize].client;
        let waiting = &mut self.clients[client as usize].waiting;
        waiting.retain(|one| *one != lock);
        self.waiting -= 1;
    }

    /// Releases a lock whose handle is free already.
    fn release(&mut self, lock: LockId, value: Option<&[u8; VALUE_BYTES]>, has_died: bool) {
        self.leave_queue(lock);
        let Lock {
            client,
            resource: number,
            has_news,
            ..
        } = self.locks.remove(lock as usize);
        let client = &mut self.clients[client as usize];
        client.count -= 1;
        if has_news {
            client.news.retain(|one| *one != lock);
        }
        let resource = &mut self.resources[number].1;
        if let Some(mode) = resource.remove(lock) {
            match value {
                Some(value) if mode.writes_value() => resource.set_value(*value),
                _ if has_died => resource.doubt_value(mode),
                _ => {}
            }
        }
        self.settle(number, None);
        if self.resources[number].1.is_unused() {
            let (name, _) = self.resources.remove(number);
            self.names.remove(&name);
        }
    }

    /// Grants what can be granted. News go to those whom they concern, but for the lock whose
    /// operation this is: it is told by the answer.
    fn settle(&mut self, resource: usize, own: Option<LockId>) {
        let mut news = std::mem::take(&mut self.news);
        self.resources[resource].1.advance(&mut news);
        for one in news.drain(..) {
            let id = match one {
                News::Granted(id) => {
                    self.waits_no_more(id);
                    id
                }
                News::Blocking(id, mode) => {
                    self.locks[id as usize].blocking = Some(mode);
                    id
                }
            };
            if own != Some(id) {
                self.note(id);
            }
        }
        self.news = news;
    }

    /// A lock has news.
    fn note(&mut self, id: LockId) {
        let lock = &mut self.locks[id as usize];
        if std::mem::replace(&mut lock.has_news, true) {
            return;
        }
        let client = &mut self.clients[lock.client as usize];
        client.news.push(id);
        if client.news.len() == 1 {
            self.to_tell.push(lock.client);
        }
    }

    /// The state of a lock, which then has no news.
    fn tell(&mut self, id: LockId) -> Option<Told<'_>> {
        let lock = self.locks.get_mut(id as usize)?;
        let resource = &self.resources[lock.resource].1;
        if std::mem::take(&mut lock.has_news) {
            let news = &mut self.clients[lock.client as usize].news;
            news.retain(|one| *one != id);
        }
        Some(Told {
            handle: lock.handle,
            operation: lock.operation,
            refusal: lock.refusal,
            is_waiting: resource.is_waiting(id),
            held: resource.mode_of(id),
            blocking: lock.blocking,
            value: resource.value(),
        })
    }

    /// Shows the news of a client to `tell`, until it takes one no more (false).
    pub(crate) fn tell_news(
        &mut self,
        id: ClientId,
        mut tell: impl FnMut(&Told<'_>) -> bool,
    ) -> bool {
        while let Some(&lock) = self
            .clients
            .get(id as usize)
            .and_then(|client| client.news.first())
        {
            let Some(told) = self.tell(lock) else {
                break;
            };
            if !tell(&told) {
                self.note(lock);
                return false;
            }
        }
        true
    }

    /// Has all that block somebody told once more, so that those whose clients are gone are found.
    pub(crate) fn tell_blocking_again(&mut self) {
        let waiting: Vec<usize> = (self.resources.iter())
            .filter(|(_, (_, resource))| resource.has_queue())
            .map(|(number, _)| number)
            .collect();
        for number in waiting {
            self.resources[number].1.untell_all();
            self.settle(number, None);
        }
    }

    /// True if a client waits for itself, over any number of others.
    fn is_deadlock(&mut self, origin: ClientId) -> bool {
        self.searches = self.searches.wrapping_add(1).max(1);
        let search = self.searches;
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        found.push(origin);
        let mut is_circle = false;
        while let Some(id) = found.pop()
            && !is_circle
        {
            if std::mem::replace(&mut self.clients[id as usize].search, search) == search {
                continue;
            }
            let (locks, search) = (&self.locks, (id != origin).then_some(search));
            for &lock in &self.clients[id as usize].waiting {
                let resource = &mut self.resources[locks[lock as usize].resource].1;
                resource.waits_for(lock, search, |other, conflicts| {
                    let client = locks[other as usize].client;
                    // Of its own requests the first goes on, and is not in the way of the next.
                    is_circle |= client == origin && (conflicts || id != origin);
                    found.push(client);
                });
            }
        }
        self.found = found;
        is_circle
    }
}

#[cfg(test)]
mod tests;
