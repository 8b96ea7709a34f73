//! The name service: a thread that tells other hosts, at the host's known port, the port of an
//! interface.
//!
//! All processes of one user that are on the network share the port, and the system spreads
//! requests over them by their source ports. A stopped process delays some requests: they come
//! again from other ports, and reach another process (`connector`). Processes of other users wait
//! until the port is free. The name service asks its neighbours over the local sockets, where the
//! kernel vouches for them. A neighbour that stalls delays only those who look for it.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use hamlyn_link::udp::handshake::{Heard, MESSAGE_BYTES_MAX, Responder};
use hamlyn_link::udp::socket::{CallFailed, Socket, SocketSettings};
use hamlyn_ring::forks::ClosedInChildren;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::handshake_payload::{Answer, Request, Sought};
use super::resolver::wall_ms;
use super::unheard::note_stranger;
use crate::process::clock::now_ns;
use crate::process::counters::LogBudget;
use crate::process::name::Namespace;
use crate::process::{Interior, ask_neighbour, no_thread};
use crate::waker::EventFd;
use crate::{Destination, HostError, RefusedBecause};

/// The item under which a process offers the address of its UDP endpoint.
pub(crate) const ENDPOINT_ITEM: &str = "hamlyn/wire";
/// How often a process tries to bind the port that another user holds.
const RETRY_MS: i64 = 500;
/// How long who has the port may take to answer, and how often that is waited for.
const SERVED_NS: u64 = 200_000_000;
const SERVED_IN_VAIN_MAX: u32 = 3;
/// How long a neighbour may take to answer.
const NEIGHBOUR_NS: u64 = 100_000_000;
/// After this many datagrams without a pause, initiators must prove their address with a cookie.
const LOADED: u32 = 32;
/// Datagrams handled before anything else has its turn.
const MESSAGES_PER_TURN: u32 = 256;
/// Neighbours that are asked at a time.
const LOOKUPS_MAX: usize = 16;
const STACK_BYTES: usize = 256 * 1024;

/// The address of that interface's UDP endpoint: what a process offers under [`ENDPOINT_ITEM`].
pub(crate) fn located(identity: Destination, port: u16) -> Answer {
    Answer::Located {
        interface: identity.interface,
        node: identity.node,
        user: identity.user,
        port,
    }
}

/// See the module. Dropping it ends the thread.
pub(crate) struct NameService {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl NameService {
    /// Begins to try for the port.
    pub(crate) fn open(interior: Arc<Interior>, at: SocketAddr) -> Result<Self, HostError> {
        let failed = |errno| HostError::system("eventfd", 1, errno);
        let stop = Arc::new(EventFd::new().map_err(failed)?);
        let heard = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("hamlyn-names".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || keep(&interior, at, &heard))
            .map_err(no_thread)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for NameService {
    fn drop(&mut self) {
        self.stop.signal();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, there is nothing left to end.
            let _ = thread.join();
        }
    }
}

/// Waits until one of these is readable, or so long; whether it is time to stop.
fn wait(stop: &EventFd, others: &[BorrowedFd<'_>], milliseconds: Option<i64>) -> bool {
    let all = [stop.descriptor()]
        .into_iter()
        .chain(others.iter().copied());
    let mut polled: Vec<_> = all
        .map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN))
        .collect();
    let span = milliseconds.map(|milliseconds| Timespec {
        tv_sec: milliseconds / 1_000,
        tv_nsec: milliseconds % 1_000 * 1_000_000,
    });
    let _ = rustix::event::poll(&mut polled, span.as_ref());
    polled[0].revents().intersects(PollFlags::IN)
}

fn keep(interior: &Arc<Interior>, at: SocketAddr, stop: &EventFd) {
    let Some(network) = &interior.network else {
        return;
    };
    let (Some(responder), Ok(bell)) = (network.new_responder(), EventFd::new()) else {
        tracing::error!("no randomness, or no descriptor: this process serves no names");
        return;
    };
    let settings = SocketSettings {
        is_offloaded: false,
        is_shared: true,
        ..SocketSettings::default()
    };
    let mut has_warned = false;
    let mut in_vain = 0;
    loop {
        match Socket::bind(at, &settings) {
            Ok(socket) => {
                let (tell, told) = mpsc::channel();
                let socket = UdpSocket::from(OwnedFd::from(socket));
                let mut service = Service {
                    _in_children: ClosedInChildren::new(socket.as_fd()),
                    interior,
                    responder,
                    socket,
                    bell: Arc::new(bell),
                    lookups: Vec::new(),
                    tell,
                    told,
                    log: LogBudget::of_strangers(),
                };
                return service.serve(stop);
            }
            // Another user's program serves names, or the port has another purpose.
            Err(CallFailed {
                errno: Errno::ADDRINUSE,
                ..
            }) => {
                if !has_warned && !network.is_served_here(at, SERVED_NS) {
                    in_vain += 1;
                    has_warned = in_vain == SERVED_IN_VAIN_MAX;
                    if has_warned {
                        tracing::warn!(address = %at, "another program has the UDP port of the name service, and does not answer as one of this cluster: other hosts find no name of this host");
                    }
                }
            }
            Err(CallFailed { call, errno }) if !has_warned => {
                has_warned = true;
                tracing::warn!(%errno, call, address = %at, "the name service cannot listen: other hosts do not find names of this host, unless another process serves them");
            }
            Err(_) => {}
        }
        if wait(stop, &[], Some(RETRY_MS)) {
            return;
        }
    }
}

/// The interface that a peer looks for.
type Wanted = (Namespace, Sought);
/// The answer of a neighbour; nothing if it did not answer in time.
type Found = Option<Answer>;

/// A query to a neighbour, in its own thread, so that a stopped neighbour keeps nobody else
/// waiting.
struct Lookup {
    wanted: Wanted,
    /// The handshakes of those who wait for it.
    askers: Vec<u32>,
    thread: JoinHandle<()>,
}

/// Answering, as long as this process has the port, or shares it.
struct Service<'a> {
    interior: &'a Arc<Interior>,
    responder: Responder,
    /// Of the socket: else datagrams go to a child that reads none.
    _in_children: ClosedInChildren,
    socket: UdpSocket,
    /// Signalled when a query to a neighbour is done.
    bell: Arc<EventFd>,
    lookups: Vec<Lookup>,
    tell: mpsc::Sender<(Wanted, Found)>,
    told: mpsc::Receiver<(Wanted, Found)>,
    log: LogBudget,
}

impl Service<'_> {
    fn serve(&mut self, stop: &EventFd) {
        let bell = Arc::clone(&self.bell);
        while !wait(stop, &[bell.descriptor(), self.socket.as_fd()], None) {
            bell.clear();
            while let Ok((wanted, found)) = self.told.try_recv() {
                self.found(&wanted, found);
            }
            let mut room = [0; MESSAGE_BYTES_MAX + 1];
            for in_a_row in 0..MESSAGES_PER_TURN {
                let Ok((length, from)) = self.socket.recv_from(&mut room) else {
                    break;
                };
                self.handle_datagram(from, &room[..length], in_a_row > LOADED);
            }
        }
        for lookup in self.lookups.drain(..) {
            // Each ends within a moment.
            let _ = lookup.thread.join();
        }
    }

    fn handle_datagram(&mut self, from: SocketAddr, message: &[u8], is_loaded: bool) {
        let heard = self
            .responder
            .take(now_ns(), wall_ms(), from, message, is_loaded);
        let said = match heard {
            Ok(Heard::Reply(bytes)) => {
                let _ = self.socket.send_to(bytes, from);
                return;
            }
            Ok(Heard::Said(said)) => said,
            Err(why) => {
                note_stranger(&self.interior.registry.tally, &mut self.log, from, why);
                return;
            }
        };
        match Request::from_bytes(&said.payload) {
            Ok(Request::Locate { namespace, sought }) => {
                self.locate((namespace, sought), said.number);
            }
            _ => self.answer(said.number, &refused(RefusedBecause::INVALID.0)),
        }
    }

    fn locate(&mut self, wanted: Wanted, asker: u32) {
        if let Some(lookup) = self.lookups.iter_mut().find(|one| one.wanted == wanted) {
            // No more than the responder keeps.
            return lookup.askers.push(asker);
        }
        let settings = &self.interior.settings;
        let is_own = wanted.0 == settings.namespace
            && match &wanted.1 {
                Sought::Name(name) => settings.name.as_ref() == Some(name),
                Sought::Interface(interface) => self.interior.identity.interface == *interface,
            };
        if is_own && let Some(network) = &self.interior.network {
            let port = network.endpoint.local().port();
            return self.answer(asker, &located(self.interior.identity, port));
        }
        let busy = refused(RefusedBecause::BUSY.0);
        if self.lookups.len() >= LOOKUPS_MAX {
            return self.answer(asker, &busy);
        }
        let (interior, tell, bell) = (
            Arc::clone(self.interior),
            self.tell.clone(),
            Arc::clone(&self.bell),
        );
        let asked = wanted.clone();
        let thread = std::thread::Builder::new()
            .name("hamlyn-lookup".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let found = ask(&interior, &asked);
                let _ = tell.send((asked, found));
                bell.signal();
            });
        match thread {
            Ok(thread) => self.lookups.push(Lookup {
                wanted,
                askers: vec![asker],
                thread,
            }),
            Err(_) => self.answer(asker, &busy),
        }
    }

    fn found(&mut self, wanted: &Wanted, found: Found) {
        let at = self.lookups.iter().position(|one| one.wanted == *wanted);
        let Some(at) = at else { return };
        let lookup = self.lookups.swap_remove(at);
        // It has nothing more to do.
        let _ = lookup.thread.join();
        let answer = found.unwrap_or_else(|| refused(RefusedBecause::BUSY.0));
        for asker in lookup.askers {
            self.answer(asker, &answer);
        }
    }

    fn answer(&mut self, asker: u32, answer: &Answer) {
        if let Ok(Some((to, bytes))) = self.responder.answer(asker, &answer.to_bytes()) {
            let _ = self.socket.send_to(bytes, to);
        }
    }
}

fn refused(reason: u16) -> Answer {
    Answer::Refused { reason }
}

/// Asks a neighbour for the address of its UDP endpoint.
fn ask(interior: &Interior, (namespace, sought): &Wanted) -> Found {
    let deadline_ns = now_ns().saturating_add(NEIGHBOUR_NS);
    let place = ask_neighbour(interior, namespace, sought, ENDPOINT_ITEM, deadline_ns);
    if place.is_none() && now_ns() >= deadline_ns {
        return None;
    }
    let answer = place.and_then(|(bytes, its_user)| {
        let answer = Answer::from_bytes(&bytes).ok()?;
        // A neighbour speaks only for itself, and must be the interface that was asked for.
        let is_its = matches!(answer, Answer::Located { interface, node, user, .. }
            if (user, node) == (its_user, interior.identity.node)
                && sought.is_or_may_be(interface));
        is_its.then_some(answer)
    });
    Some(answer.unwrap_or(refused(Answer::NOBODY)))
}
