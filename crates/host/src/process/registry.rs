//! The links of an interface, and what its owner is yet to be told of them:
//! the one place that the owner's thread and the control thread share.
//!
//! A link is known by the interface and by the user that the kernel reports at its
//! other end, so no other user's process can take the place of a peer. Of two
//! attempts to link the same pair at once, exactly one survives; both sides
//! apply the same rule ([`Registry::begin_incoming`]).

mod control_side;
mod entry;

pub(crate) use entry::{NewLink, PeerKey};

use entry::{Entry, PeerHandle};

use super::clock::{self, now_ns};
use super::counters::Tally;
use super::source::Source;
use crate::waker::{EventFd, Waker};
use crate::{Event, HostError, LossCause, Peer};
use hamlyn_link::either::EitherLink;
use hamlyn_link::pair::PairLink;
use hamlyn_link::udp_endpoint::UdpEndpoint;
use hamlyn_ring::wake::{WaitSet, WakeWord};
use rustix::event::{PollFlags, epoll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Default)]
struct State {
    events: VecDeque<Event<EitherLink>>,
    links: HashMap<u64, Entry>,
    by_key: HashMap<PeerKey, u64>,
    /// Whom the owner is shaking hands with, one thread with each, and which process that is (0 on
    /// another host).
    connecting: Vec<(PeerKey, u32)>,
    /// Whom the control thread is about to link.
    accepting: Vec<PeerKey>,
    loopback: Option<(u64, WakeWord)>,
    /// Links whose control sockets ended without goodbye, and when each counts as closed
    /// by a process that lives on; the earliest first.
    pending_losses: VecDeque<(u64, u64)>,
    tokens: u64,
    stopping: bool,
}

impl State {
    fn new_token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    fn is_connecting(&self, key: PeerKey) -> bool {
        self.connecting.iter().any(|&(other, _)| other == key)
    }
}

/// Whether a connection may be begun.
pub(crate) enum Outgoing {
    /// Yes, and it was.
    Begun,
    /// There is a link already.
    Linked(u64),
    /// The control thread, or another thread of the owner, is about to complete one.
    UnderWay,
    /// As many links as allowed are there.
    Full,
}

/// See the module.
pub(crate) struct Registry {
    own: PeerKey,
    links_max: usize,
    attention: Arc<AtomicBool>,
    state: Mutex<State>,
    linked: Condvar,
    /// What an owner waits for that does not sleep at words: doorbell sockets, and the waker.
    doorbells: Arc<OwnedFd>,
    waker: Waker,
    /// What the control thread waits for.
    watch: OwnedFd,
    command: Arc<EventFd>,
    pub(crate) tally: Tally,
}

/// Descriptors that a registry needs.
const DESCRIPTORS: u32 = 4;

impl Registry {
    pub(crate) fn new(own: PeerKey, links_max: usize) -> Result<Self, HostError> {
        let failed = |call| move |errno| HostError::system(call, DESCRIPTORS, errno);
        let set = || epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed("epoll_create1"));
        let waker = Waker::new().map_err(failed("eventfd"))?;
        let command = Arc::new(EventFd::new().map_err(failed("eventfd"))?);
        let (doorbells, watch) = (set()?, set()?);
        let readable = epoll::EventFlags::IN;
        for (set, source) in [
            (&doorbells, waker.event.descriptor()),
            (&watch, command.descriptor()),
        ] {
            epoll::add(set, source, Source::Command.data(), readable)
                .map_err(failed("epoll_ctl"))?;
        }
        Ok(Self {
            own,
            links_max,
            attention: Arc::default(),
            state: Mutex::default(),
            linked: Condvar::new(),
            doorbells: Arc::new(doorbells),
            waker,
            watch,
            command,
            tally: Tally::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every critical section leaves the state whole at each step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The owner's side. That of the control thread is in `control_side`.

    /// Whether there is an event.
    #[inline]
    pub(crate) fn attention(&self) -> &Arc<AtomicBool> {
        &self.attention
    }

    /// A descriptor to call the waker with.
    pub(crate) fn waker_descriptor(&self) -> Result<OwnedFd, HostError> {
        self.waker
            .event
            .descriptor()
            .try_clone_to_owned()
            .map_err(|_| HostError::Descriptors { needed: 1 })
    }

    /// Calls the control thread.
    pub(crate) fn control_waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let command = Arc::clone(&self.command);
        Box::new(move || command.signal())
    }

    /// Ends the owner's sleep, or the next one.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Adds the words of all links to what the owner is to sleep at. False if there are too many.
    pub(crate) fn add_words(&self, wait_set: &mut WaitSet) -> bool {
        let state = self.lock();
        let loopback = state.loopback.iter().map(|(_, word)| word);
        let living = state.links.values().filter(|entry| !entry.lost);
        let mut links = living.map(|entry| match &entry.handle {
            PeerHandle::Local(neighbour) => Some(&neighbour.wake_word),
            // It does not ring at a word.
            PeerHandle::Remote(_) => None,
        });
        let mut add = |word: &WakeWord| wait_set.add(word.clone());
        links.all(|word| word.is_some_and(&mut add)) && loopback.into_iter().all(add)
    }

    pub(crate) fn next_event(&self) -> Option<Event<EitherLink>> {
        if !self.attention.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.lock();
        let event = state.events.pop_front();
        self.attention
            .store(!state.events.is_empty(), Ordering::Relaxed);
        event
    }

    /// Readable when a peer rings its doorbell or an event comes.
    pub(crate) fn doorbells(&self) -> &Arc<OwnedFd> {
        &self.doorbells
    }

    /// Drains the doorbells, so that old rings do not disturb the next sleep.
    pub(crate) fn drain_doorbells(&self) -> rustix::io::Result<()> {
        let mut room = [const { std::mem::MaybeUninit::uninit() }; 64];
        let at_once = rustix::event::Timespec::default();
        let (rung, _) = epoll::wait(&self.doorbells, &mut room, Some(&at_once))?;
        for event in rung {
            match Source::of(event.data) {
                Some(Source::Command) => self.waker.event.clear(),
                Some(Source::Control(token)) => self.drain_doorbell(token),
                _ => {}
            }
        }
        Ok(())
    }

    /// Shows the sockets of all living links of this host, at which their peers ring.
    pub(crate) fn each_doorbell(&self, act: &mut dyn FnMut(BorrowedFd<'_>)) {
        let state = self.lock();
        for entry in state.links.values().filter(|entry| !entry.lost) {
            if let PeerHandle::Local(neighbour) = &entry.handle {
                act(neighbour.control.as_fd());
            }
        }
    }

    fn drain_doorbell(&self, token: u64) {
        let mut state = self.lock();
        if let Some(entry) = state.links.get_mut(&token)
            && let Some(neighbour) = entry.neighbour()
            && neighbour.drain_control()
        {
            // The control thread tells of it; here it would only keep us awake.
            let _ = epoll::delete(&self.doorbells, &neighbour.control);
        }
    }

    /// Enters a link of the interface to itself and tells of it, unless there is one. The token,
    /// and whether it is new.
    pub(crate) fn enter_loopback(&self, mut peer: Peer, link: PairLink) -> (u64, bool) {
        let mut state = self.lock();
        if let Some((token, _)) = state.loopback {
            return (token, false);
        }
        let token = state.new_token();
        peer.token = token;
        state.loopback = Some((token, link.receive.wake_word().clone()));
        self.send_event(&mut state, Event::Linked(peer, EitherLink::Pair(link)));
        (token, true)
    }

    /// Whether that process is linked as that interface, or is about to be: the owner shakes hands
    /// with it, and it may have the link already.
    pub(crate) fn is_linked(&self, key: PeerKey, process: u32) -> bool {
        let state = self.lock();
        let entry = state
            .by_key
            .get(&key)
            .and_then(|token| state.links.get(token));
        let of_process = |entry: &Entry| match &entry.handle {
            PeerHandle::Local(neighbour) => !entry.lost && neighbour.process_number == process,
            PeerHandle::Remote(_) => false,
        };
        entry.is_some_and(of_process) || state.connecting.contains(&(key, process))
    }

    /// Whether anything comes by rings: from other processes, or from this one.
    pub(crate) fn has_doorbells(&self) -> bool {
        let state = self.lock();
        let is_local = |entry: &Entry| !entry.lost && matches!(entry.handle, PeerHandle::Local(_));
        state.loopback.is_some() || state.links.values().any(is_local)
    }

    /// True if the owner has links to other hosts, for which it polls the endpoint.
    pub(crate) fn has_remote_links(&self) -> bool {
        let is_remote = |entry: &Entry| match &entry.handle {
            PeerHandle::Remote(connection) => !entry.lost && connection.end().is_none(),
            PeerHandle::Local(_) => false,
        };
        self.lock().links.values().any(is_remote)
    }

    /// Whether the owner may shake hands with `key`, which is that process as the kernel says (0
    /// on another host). Must be followed by [`Registry::end_outgoing`] if it began.
    pub(crate) fn begin_outgoing(&self, key: PeerKey, process: u32) -> Outgoing {
        let mut state = self.lock();
        if let Some(token) = self.linked_to(&mut state, key) {
            return Outgoing::Linked(token);
        }
        if state.accepting.contains(&key) || state.is_connecting(key) {
            return Outgoing::UnderWay;
        }
        if state.links.len() + state.accepting.len() + state.connecting.len() >= self.links_max {
            return Outgoing::Full;
        }
        state.connecting.push((key, process));
        Outgoing::Begun
    }

    /// The owner's handshake is over, with or without success.
    pub(crate) fn end_outgoing(&self, key: PeerKey) {
        self.lock().connecting.retain(|&(other, _)| other != key);
        self.linked.notify_all();
    }

    /// Enters a link that the owner made, and tells of it. If the peer's own attempt came first,
    /// that link's token is the error, and this one is dropped.
    pub(crate) fn enter_outgoing(&self, new_link: NewLink) -> Result<Result<u64, u64>, HostError> {
        let mut state = self.lock();
        let key = PeerKey::of(&new_link.peer.destination);
        if let Some(token) = self.linked_to(&mut state, key) {
            return Ok(Err(token));
        }
        let (peer, link) = self.enter(&mut state, new_link)?;
        let token = peer.token;
        self.send_event(&mut state, Event::Linked(peer, link));
        Ok(Ok(token))
    }

    /// Takes a link of which the owner was to be told; nothing if it has been.
    pub(crate) fn take_linked(&self, token: u64) -> Option<(Peer, EitherLink)> {
        let mut state = self.lock();
        let is_of_token = |event: &Event<EitherLink>| matches!(event, Event::Linked(peer, _) if peer.token == token);
        let at = state.events.iter().position(is_of_token)?;
        let event = state.events.remove(at);
        self.attention
            .store(!state.events.is_empty(), Ordering::Relaxed);
        match event {
            Some(Event::Linked(peer, link)) => Some((peer, link)),
            _ => None,
        }
    }

    /// Waits until there is a link to `key`.
    pub(crate) fn await_link(&self, key: PeerKey, deadline_ns: u64) -> Option<u64> {
        let mut state = self.lock();
        loop {
            if let Some(token) = self.linked_to(&mut state, key) {
                return Some(token);
            }
            let left = deadline_ns.saturating_sub(now_ns());
            if left == 0 {
                return None;
            }
            let waited = self.linked.wait_timeout(state, Duration::from_nanos(left));
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn disconnect(&self, token: u64) {
        let mut state = self.lock();
        state.loopback.take_if(|(own, _)| *own == token);
        let entry = state.links.remove(&token);
        if let Some(entry) = entry.filter(|entry| !entry.lost) {
            self.unwatch(&mut state, token, &entry);
            entry.close_control();
            if let PeerHandle::Remote(_) = entry.handle {
                // It was perhaps the last one for which the owner polled the endpoint.
                self.command.signal();
            }
        }
        let of_token = |event: &Event<EitherLink>| match event {
            Event::Linked(peer, _) => peer.token == token,
            Event::Lost { token: lost, .. } => *lost == token,
        };
        state.events.retain(|event| !of_token(event));
        self.attention
            .store(!state.events.is_empty(), Ordering::Relaxed);
    }

    /// Ends all links, and tells the control thread to end.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.stopping = true;
        for (_, entry) in state.links.drain() {
            if !entry.lost {
                entry.close_control();
            }
        }
        self.command.signal();
    }

    // Both sides.

    /// The link to `key`, unless its other end has already closed: then the
    /// place is free, and the control thread will tell of the loss.
    fn linked_to(&self, state: &mut State, key: PeerKey) -> Option<u64> {
        let token = *state.by_key.get(&key)?;
        let entry = state.links.get(&token)?;
        let has_ended = match &entry.handle {
            PeerHandle::Local(neighbour) => {
                clock::shows(&neighbour.control, PollFlags::RDHUP | PollFlags::HUP)
            }
            PeerHandle::Remote(connection) => connection.end().is_some(),
        };
        if has_ended {
            release(state, key, token);
            return None;
        }
        Some(token)
    }

    fn enter(&self, state: &mut State, new_link: NewLink) -> Result<(Peer, EitherLink), HostError> {
        let NewLink {
            mut peer,
            handle,
            link,
        } = new_link;
        let key = PeerKey::of(&peer.destination);
        let token = state.new_token();
        peer.token = token;
        let entry = Entry {
            key,
            handle,
            lost: false,
        };
        if let Err(errno) = self.watch_over(token, &entry) {
            self.unwatch(state, token, &entry);
            entry.close_control();
            return Err(HostError::system("epoll_ctl", 0, errno));
        }
        state.links.insert(token, entry);
        state.by_key.insert(key, token);
        Ok((peer, link))
    }

    fn watch_over(&self, token: u64, entry: &Entry) -> rustix::io::Result<()> {
        let PeerHandle::Local(neighbour) = &entry.handle else {
            // The endpoint's socket is watched for all of them.
            return Ok(());
        };
        let (readable, ended) = (epoll::EventFlags::IN, epoll::EventFlags::RDHUP);
        let of_link = Source::Control(token).data();
        epoll::add(&self.doorbells, &neighbour.control, of_link, readable)?;
        epoll::add(&self.watch, &neighbour.control, of_link, ended)?;
        if let Some(process) = &neighbour.process {
            epoll::add(
                &self.watch,
                process,
                Source::Process(token).data(),
                readable,
            )?;
        }
        Ok(())
    }

    fn unwatch(&self, state: &mut State, token: u64, entry: &Entry) {
        if let PeerHandle::Local(neighbour) = &entry.handle {
            // Errors only say that something was not there.
            let _ = epoll::delete(&self.doorbells, &neighbour.control);
            let _ = epoll::delete(&self.watch, &neighbour.control);
            if let Some(process) = &neighbour.process {
                let _ = epoll::delete(&self.watch, process);
            }
        }
        release(state, entry.key, token);
    }

    fn lose(&self, state: &mut State, token: u64, cause: LossCause) {
        // The entry stays until the owner's application has heard of it, so that peers who come and
        // go count against the limit.
        let Some(mut entry) = state.links.remove(&token) else {
            return;
        };
        if !entry.lost {
            self.unwatch(state, token, &entry);
            entry.lost = true;
            if let Some(neighbour) = entry.neighbour() {
                neighbour.process = None;
            }
            self.send_event(state, Event::Lost { token, cause });
        }
        state.links.insert(token, entry);
    }

    fn send_event(&self, state: &mut State, event: Event<EitherLink>) {
        state.events.push_back(event);
        self.attention.store(true, Ordering::Relaxed);
        self.waker.wake();
    }
}

/// Adds the endpoint's socket to that set, or removes it.
pub(crate) fn watch_udp(
    set: BorrowedFd<'_>,
    endpoint: &UdpEndpoint,
    hears: bool,
) -> rustix::io::Result<()> {
    endpoint.with_socket(|socket| match hears {
        true => epoll::add(set, socket, Source::Udp.data(), epoll::EventFlags::IN),
        false => epoll::delete(set, socket),
    })
}

fn release(state: &mut State, key: PeerKey, token: u64) {
    if state.by_key.get(&key) == Some(&token) {
        state.by_key.remove(&key);
    }
}

#[cfg(test)]
mod tests;
