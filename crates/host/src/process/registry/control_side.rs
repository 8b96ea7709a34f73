//! The control thread's side of the registry: links that peers ask for, and those that end.

use std::sync::Arc;

use hamlyn_link::udp_endpoint::Connection;
use rustix::event::{PollFlags, epoll};
use rustix::fd::{AsFd, BorrowedFd};

use super::entry::{Entry, NewLink, PeerHandle, PeerKey};
use super::{Registry, State, release};
use crate::process::clock::{self, now_ns};
use crate::process::counters::Outcome;
use crate::{Event, HostError, LossCause};

/// A peer whose socket ended without goodbye is given so long to be dead, too: on a busy machine it
/// may not come to that at once. The death of a process is known at once.
const LOSS_GRACE_NS: u64 = 500_000_000;
/// A link to another host that has been silent for so long is aborted when its peer asks for
/// another: longer than two requests that cross take.
const SILENT_NS: u64 = 1_000_000_000;

/// Those that share half of the links.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharer {
    /// A user, as the kernel or the other host says.
    User,
    /// A host that has proved which one it is: it may name any users.
    Host,
}

impl Registry {
    pub(crate) fn watch(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    /// Succeeds if `key`, which asks for a link, may have one. Must be followed by
    /// [`Registry::end_incoming`] or [`Registry::give_up_incoming`] if so.
    ///
    /// When both sides ask at once, the attempt of the smaller interface number
    /// is used. The other side's attempt is refused, and it finds the link that it wanted.
    pub(crate) fn begin_incoming(&self, key: PeerKey) -> Result<(), Outcome> {
        self.begin_incoming_of(key, Sharer::User)
    }

    /// The same for a peer of another host; `is_proved` says whether its key has proved which host
    /// it is.
    pub(crate) fn begin_incoming_from_afar(
        &self,
        key: PeerKey,
        is_proved: bool,
    ) -> Result<(), Outcome> {
        let sharer = match is_proved {
            true => Sharer::Host,
            false => Sharer::User,
        };
        self.begin_incoming_of(key, sharer)
    }

    fn begin_incoming_of(&self, key: PeerKey, sharer: Sharer) -> Result<(), Outcome> {
        let mut state = self.lock();
        if key.interface == self.own.interface {
            return Err(Outcome::Invalid);
        }
        let ours_is_used = state.is_connecting(key) && self.own.interface < key.interface;
        let is_under_way = state.accepting.contains(&key);
        if ours_is_used || is_under_way || self.linked_to(&mut state, key).is_some() {
            return Err(Outcome::Simultaneous);
        }
        if self.is_full(&state) || self.has_its_share(&state, key, sharer) {
            return Err(Outcome::TooMany);
        }
        state.accepting.push(key);
        Ok(())
    }

    /// The link to a remote peer that asks for one, if the link has been silent for long: a peer
    /// that has a link does not ask, so its other end is gone, or never was, because the answer to
    /// its request came too late.
    pub(crate) fn silent_connection(&self, key: PeerKey, now_ns: u64) -> Option<Arc<Connection>> {
        let state = self.lock();
        let token = state.by_key.get(&key)?;
        match &state.links.get(token)?.handle {
            PeerHandle::Remote(connection)
                if now_ns.saturating_sub(connection.received_ns()) >= SILENT_NS =>
            {
                Some(Arc::clone(connection))
            }
            _ => None,
        }
    }

    /// The control thread's handshake is over, and this is the link. The owner can use it once
    /// `tell` has told the peer, and the peer hears of it only when the owner can know.
    pub(crate) fn end_incoming(
        &self,
        key: PeerKey,
        new_link: NewLink,
        tell: impl FnOnce(),
    ) -> Result<(), HostError> {
        let mut state = self.lock();
        state.accepting.retain(|&other| other != key);
        let (peer, link) = self.enter(&mut state, new_link)?;
        self.tally.count(Outcome::Accepted);
        self.send_event(&mut state, Event::Linked(peer, link));
        tell();
        drop(state);
        self.linked.notify_all();
        Ok(())
    }

    /// The control thread's handshake is over, without success.
    pub(crate) fn give_up_incoming(&self, key: PeerKey) {
        self.lock().accepting.retain(|&other| other != key);
        self.linked.notify_all();
    }

    /// The control socket of a link ended. The cause is reported at once, if it can be known at
    /// once.
    pub(crate) fn peer_closed(&self, token: u64) {
        let mut state = self.lock();
        let Some(entry) = state.links.get_mut(&token) else {
            return;
        };
        let key = entry.key;
        let Some(neighbour) = entry.neighbour() else {
            return;
        };
        neighbour.drain_control();
        let ended = match &neighbour.process {
            Some(process) => clock::shows(process, PollFlags::IN),
            None => true,
        };
        if neighbour.goodbye || ended {
            let cause = neighbour.cause();
            return self.lose(&mut state, token, cause);
        }
        // A process that is killed loses its sockets a moment before it is dead.
        let control = Arc::clone(&neighbour.control);
        let due_ns = now_ns().saturating_add(LOSS_GRACE_NS);
        state.pending_losses.push_back((due_ns, token));
        let _ = epoll::delete(&self.watch, &control);
        let _ = epoll::delete(&self.doorbells, &control);
        release(&mut state, key, token);
    }

    /// The process at the other end of a link ended, though somebody may still hold its socket.
    pub(crate) fn process_ended(&self, token: u64) {
        let mut state = self.lock();
        let neighbour = state.links.get_mut(&token).and_then(Entry::neighbour);
        if let Some(neighbour) = neighbour {
            neighbour.drain_control();
            let cause = neighbour.cause();
            self.lose(&mut state, token, cause);
        }
    }

    /// Reports losses whose grace period is over, and returns the next deadline.
    pub(crate) fn report_due_losses(&self) -> Option<u64> {
        let mut state = self.lock();
        while let Some((due_ns, token)) = state.pending_losses.front().copied() {
            if due_ns > now_ns() {
                return Some(due_ns);
            }
            state.pending_losses.pop_front();
            self.lose(&mut state, token, LossCause::Closed);
        }
        None
    }

    /// Clears what woke the control thread.
    pub(crate) fn take_command(&self) {
        self.command.clear();
    }

    /// Notes which links to other hosts have ended.
    pub(crate) fn note_ended_connections(&self) {
        let mut state = self.lock();
        let ended = state
            .links
            .iter()
            .filter_map(|(token, entry)| match &entry.handle {
                PeerHandle::Remote(connection) if !entry.lost => Some((*token, connection.end()?)),
                _ => None,
            });
        for (token, end) in ended.collect::<Vec<_>>() {
            if let Some(cause) = LossCause::of(end) {
                self.lose(&mut state, token, cause);
            }
        }
    }

    fn is_full(&self, state: &State) -> bool {
        state.links.len() + state.accepting.len() >= self.links_max
    }

    /// True if a user other than our own, or another host, has half of the links that there may
    /// be, so that nobody can take all of them. What another host says of its users takes no share
    /// of a user of this host.
    fn has_its_share(&self, state: &State, key: PeerKey, sharer: Sharer) -> bool {
        let shares = |other: &PeerKey| match sharer {
            Sharer::Host => other.node == key.node,
            Sharer::User => (other.node == 0) == (key.node == 0) && other.user == key.user,
        };
        if sharer == Sharer::User && key.user == self.own.user {
            return false;
        }
        let linked = state.links.values().map(|entry| entry.key);
        let all = linked.chain(state.accepting.iter().copied());
        all.filter(shares).count() >= self.links_max.div_ceil(2)
    }
}
