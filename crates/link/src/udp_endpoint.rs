//! The UDP endpoint of a process: its links to interfaces of other hosts, over one port (decision
//! 12).
//!
//! One socket receives for all links, so a poll costs one system call however many peers there are.
//! Each link is a connection: an [`Association`](hamlyn_engine::transport::Association) with its
//! packet protection, behind a lock that its two halves and the host's control thread share. The
//! lock is seldom contended, since one thread drives at a time. Datagrams of no link
//! ([`Handshakes::next_message`]) belong to the host: they are handshakes.
//!
//! An unassociated datagram causes no allocation, no blocking and no answer here.
//!
//! The sockets are a parameter ([`DatagramSocket`]) and the clock is given, so that a simulation
//! runs the same endpoint over a network and a time of its own (decision 0033).

mod announcer;
mod connection;
mod ends;
mod handshakes;
mod probing;
mod reception;
mod sleeping;
mod state;
mod system_socket;
mod timers;

pub use connection::{Connection, ConnectionConfig};
pub use ends::{ReceivedPayload, UdpLink, UdpReceive, UdpTransmit};
pub use handshakes::Handshakes;
pub use state::ConnectionState;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hamlyn_ring::ready_bitmap::ReadyBits;

use crate::udp::batch::{Batch, Inbox};
use crate::udp::datagram_socket::DatagramSocket;
use crate::udp::socket::{CallFailed, SendError, Socket, SocketSettings};
use announcer::Announcer;
use timers::Timers;

/// Batches that are kept for the next.
const BATCHES_MAX: usize = 8;
/// Links that have ended here and say so to peers that have not heard it.
const LINGERING_MAX: usize = 64;

/// See the module.
pub struct UdpEndpoint<S = Socket> {
    reception: Mutex<Reception<S>>,
    connections: Mutex<Connections<S>>,
    handshakes: Handshakes,
    /// Bytes of frames that all links keep until they are taken.
    queued_bytes: Arc<AtomicUsize>,
    batches: Mutex<Vec<Batch>>,
    /// Called when an unassociated datagram waits, a link has ended, or something has come that a
    /// sleeper does not know of.
    notify: Arc<dyn Fn() + Send + Sync>,
    clock: fn() -> u64,
    local: SocketAddr,
    /// When a link wants to be looked after though nothing comes, at the earliest.
    deadline_ns: AtomicU64,
    /// The same of each link.
    timers: Arc<Timers>,
    /// The polling thread sleeps at the socket, until the deadline that it was told.
    asleep: AtomicBool,
    /// Its waking is to be told.
    tells_waking: AtomicBool,
    /// The thread that polls in its stead sleeps until then; 0 if none does.
    driven_until_ns: AtomicU64,
    /// Links that have ended here and still say so.
    lingering: AtomicUsize,
    /// A link has room again, or a packet came back, since the last poll.
    signalled: AtomicBool,
    /// A thread is about to sleep at the socket, or does.
    listens: AtomicBool,
    /// Another thread has taken from the socket what that one may wait for.
    untold: AtomicBool,
    /// How often the application polled.
    polls: AtomicU64,
    /// Bytes of frames that each link keeps at most until they are taken.
    waiting_bytes_max: usize,
    /// By which the interface learns for which links something has come; each link has one.
    ready_bits: OnceLock<ReadyBits>,
    /// The number of the link whose receiving half polls for all; zero if there is none.
    poller: AtomicU32,
    /// How often [`Connections`] changed.
    changes: AtomicU64,
}

/// The state of the polling thread.
struct Reception<S> {
    socket: S,
    inbox: Inbox,
    /// A copy of the table, as of that change.
    table: Vec<Option<Arc<Connection<S>>>>,
    seen: u64,
    /// The system may have more reports.
    has_reports: bool,
    /// Time of the last poll that found nothing.
    empty_ns: u64,
    /// Time of the last poll.
    polled_ns: u64,
    /// The longest time between polls since one found nothing.
    away_ns: u64,
}

/// All links.
struct Connections<S> {
    table: Vec<Option<Arc<Connection<S>>>>,
    /// Numbers that links to be have, by place.
    reserved: Vec<u32>,
    /// For the links that are due, between two looks: empty, and kept for its memory.
    due: Vec<Arc<Connection<S>>>,
}

impl<S> Default for Connections<S> {
    fn default() -> Self {
        Self {
            table: Vec::new(),
            reserved: Vec::new(),
            due: Vec::new(),
        }
    }
}

/// Locks what no panic of ours leaves half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bits of a link's number that say its place; the others are random, so that a late frame does not
/// find another link.
const PLACE_BITS: u32 = 16;

fn place_of(number: u32) -> usize {
    (number & ((1 << PLACE_BITS) - 1)) as usize
}

impl<S: DatagramSocket> UdpEndpoint<S> {
    /// An endpoint that receives from this socket, which is not connected. `clock` gives
    /// nanoseconds; `notify` is called, by any thread, when an unassociated datagram waits or a
    /// link has ended; it must not call back.
    pub fn over(socket: S, clock: fn() -> u64, notify: Box<dyn Fn() + Send + Sync>) -> Self {
        let notify = Arc::from(notify);
        Self {
            local: socket.local(),
            reception: Mutex::new(Reception {
                socket,
                inbox: Inbox::new(),
                table: Vec::new(),
                seen: 0,
                has_reports: false,
                empty_ns: 0,
                polled_ns: 0,
                away_ns: 0,
            }),
            connections: Mutex::default(),
            handshakes: Handshakes::new(Arc::clone(&notify)),
            queued_bytes: Arc::default(),
            batches: Mutex::default(),
            notify,
            clock,
            deadline_ns: AtomicU64::new(u64::MAX),
            timers: Arc::default(),
            asleep: AtomicBool::new(false),
            tells_waking: AtomicBool::new(false),
            driven_until_ns: AtomicU64::new(0),
            lingering: AtomicUsize::new(0),
            signalled: AtomicBool::new(false),
            listens: AtomicBool::new(false),
            untold: AtomicBool::new(false),
            polls: AtomicU64::new(0),
            waiting_bytes_max: usize::MAX,
            ready_bits: OnceLock::new(),
            poller: AtomicU32::new(0),
            changes: AtomicU64::new(0),
        }
    }

    /// No link keeps more bytes of frames than that until they are taken; for more the sender is
    /// told that there is no room.
    pub fn limit_waiting(&mut self, bytes: usize) {
        self.waiting_bytes_max = bytes;
    }

    /// Sets one of these bits for each link that is polled seldom and for which something has come:
    /// those of the interface's own ready bitmap. Without, such a link is found by sweeping. To be
    /// called before there is a link.
    pub fn mark_ready(&self, bits: ReadyBits) {
        let _ = self.ready_bits.set(bits);
    }

    /// The address of its socket.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn now_ns(&self) -> u64 {
        (self.clock)()
    }

    /// A number for a link to be, of which these are random bits. Must be followed by
    /// [`UdpEndpoint::link`] or [`UdpEndpoint::release`]. Nothing if there are too many links.
    pub fn reserve(&self, bits: u32) -> Option<u32> {
        let mut connections = lock(&self.connections);
        let is_free = |place: &usize| {
            connections.table[*place].is_none() && connections.reserved[*place] == 0
        };
        let place = (0..connections.table.len()).find(is_free);
        let place = place.unwrap_or(connections.table.len());
        if place >= 1 << PLACE_BITS {
            return None;
        }
        if place == connections.table.len() {
            connections.table.push(None);
            connections.reserved.push(0);
        }
        // Never zero.
        let number = (bits | 1 << 31) & !((1 << PLACE_BITS) - 1) | place as u32;
        connections.reserved[place] = number;
        Some(number)
    }

    /// The link will not be.
    pub fn release(&self, number: u32) {
        let mut connections = lock(&self.connections);
        if let Some(reserved) = connections.reserved.get_mut(place_of(number))
            && *reserved == number
        {
            *reserved = 0;
        }
    }

    /// Closes a link whose ends the application may still hold, or never got.
    pub fn close(&self, connection: &Connection<S>) {
        connection.close();
        self.request_wakeup(0);
    }

    /// The link of that number.
    pub fn link(self: &Arc<Self>, number: u32, parts: ConnectionConfig<S>) -> UdpLink<S> {
        let queued_bytes = Arc::clone(&self.queued_bytes);
        let announcer = Announcer::new(self.ready_bits.get());
        let timers = Arc::clone(&self.timers);
        let now_ns = self.now_ns();
        let connection = Connection::new(number, parts, now_ns, queued_bytes, announcer, timers);
        let connection = Arc::new(connection);
        let mut connections = lock(&self.connections);
        let place = place_of(number);
        connections.reserved[place] = 0;
        connections.table[place] = Some(Arc::clone(&connection));
        self.changes.fetch_add(1, Ordering::Release);
        self.elect_poller(&connections);
        drop(connections);
        // The first probe is due.
        connection.set_deadline(0);
        self.request_wakeup(0);
        UdpLink::new(self, &connection)
    }

    /// Elects a link whose receiving half polls for all.
    fn elect_poller(&self, connections: &Connections<S>) {
        let poller = self.poller.load(Ordering::Relaxed);
        let mut living = connections
            .table
            .iter()
            .flatten()
            .filter(|connection| connection.is_held());
        let first = living.next();
        let stays = first
            .into_iter()
            .chain(living)
            .any(|connection| connection.number() == poller);
        if !stays {
            self.poller.store(
                first.map_or(0, |connection| connection.number()),
                Ordering::Relaxed,
            );
            if let Some(connection) = first {
                connection.announcer.announce();
            }
        }
    }

    /// Nobody polls that link any more: if it polled for all, another one does from now on. Nobody
    /// else might call the endpoint until then.
    pub(crate) fn let_go(&self, connection: &Connection<S>) {
        if self.polls_for_all(connection) {
            self.elect_poller(&lock(&self.connections));
        }
    }

    /// Whether the receiving half of that link polls for all of them.
    pub(crate) fn polls_for_all(&self, connection: &Connection<S>) -> bool {
        self.poller.load(Ordering::Relaxed) == connection.number()
    }

    /// Polls for all links, if the receiving half of that link does so. Returns whether it does.
    pub(crate) fn poll_for_all(&self, connection: &Connection<S>) -> bool {
        if !self.polls_for_all(connection) {
            return false;
        }
        self.polls.fetch_add(1, Ordering::Relaxed);
        if self.poll() {
            self.tell_listener();
        }
        true
    }

    /// How often the application polled.
    pub fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    /// Receives datagrams, unless another thread is doing that, and sends the frames that are due.
    /// Returns whether there is something that a sleeping thread may wait for: packets to be taken,
    /// room, packets that came back.
    pub fn poll(&self) -> bool {
        let Ok(mut reception) = self.reception.try_lock() else {
            return false;
        };
        let now_ns = self.now_ns();
        let came = reception.take_in(self, now_ns);
        drop(reception);
        if self.deadline_ns.load(Ordering::Relaxed) <= now_ns {
            self.run_timers();
        }
        came | (self.signalled.load(Ordering::Relaxed)
            && self.signalled.swap(false, Ordering::Relaxed))
    }

    /// Runs the timers of all links whose deadline has come; forgets links that have ended and that
    /// nobody has any more.
    fn run_timers(&self) {
        let now_ns = self.now_ns();
        let mut connections = lock(&self.connections);
        // Before the links are read: a link that wants something later says so again.
        self.deadline_ns.swap(u64::MAX, Ordering::SeqCst);
        if self.timers.take_change() {
            self.sweep(&mut connections);
        }
        let mut due = core::mem::take(&mut connections.due);
        let mut look = self.timers.look();
        while let Some(place) = look.next_due(now_ns) {
            let Some(Some(connection)) = connections.table.get(place) else {
                continue;
            };
            look.disarm(&connection.armed);
            match connection.deadline_ns() {
                u64::MAX => {}
                deadline_ns if deadline_ns > now_ns => {
                    look.arm_again(place, &connection.armed, deadline_ns);
                }
                _ => due.push(Arc::clone(connection)),
            }
        }
        let next_ns = look.first_ns();
        drop(look);
        drop(connections);
        self.request_wakeup(next_ns);
        for connection in &due {
            connection.run_timers(self, now_ns);
        }
        due.clear();
        lock(&self.connections).due = due;
    }

    /// Forgets links that have ended and that nobody has.
    #[cold]
    fn sweep(&self, connections: &mut Connections<S>) {
        let mut has_forgotten = false;
        let now_ns = self.now_ns();
        for place in &mut connections.table {
            let is_over = |connection: &Arc<Connection<S>>| {
                connection.is_over() && !connection.lingers(now_ns)
            };
            if let Some(forgotten) = place.take_if(|connection| is_over(connection)) {
                if forgotten.has_lingered() {
                    self.lingering.fetch_sub(1, Ordering::Relaxed);
                }
                has_forgotten = true;
            }
        }
        if has_forgotten {
            self.changes.fetch_add(1, Ordering::Release);
            // The polling thread gives back their sockets.
            self.request_wakeup(now_ns);
        }
        self.elect_poller(connections);
    }

    /// When [`UdpEndpoint::poll`] must be called though nothing comes.
    pub fn deadline_ns(&self) -> Option<u64> {
        let deadline_ns = self.deadline_ns.load(Ordering::SeqCst);
        (deadline_ns != u64::MAX).then_some(deadline_ns)
    }

    /// Whether there are links, even if only to be brought to their end. Those that have come to it
    /// do not count, though they still say so to their peers.
    pub fn has_links(&self) -> bool {
        let connections = lock(&self.connections);
        let mut all = connections.table.iter().flatten();
        all.any(|connection| !connection.is_over())
    }

    /// True if one more link that has ended may say so for a while, as it does then.
    pub(crate) fn admits_lingering(&self) -> bool {
        let counted = |count| (count < LINGERING_MAX).then_some(count + 1);
        let lingering = &self.lingering;
        lingering
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted)
            .is_ok()
    }

    /// Datagrams of no link.
    pub fn handshakes(&self) -> &Handshakes {
        &self.handshakes
    }

    /// Answers an unassociated datagram.
    pub fn answer(&self, to: SocketAddr, bytes: &[u8]) -> Result<(), SendError> {
        let mut reception = lock(&self.reception);
        let sent = reception.socket.send_to(bytes, to);
        if sent.is_ok() {
            return sent;
        }
        // That may have been a report of something else.
        reception.has_reports = true;
        reception.socket.send_to(bytes, to)
    }

    /// A socket to that peer from the endpoint's own port; nothing if the system would send from
    /// another address.
    pub fn socket_to(
        &self,
        peer: SocketAddr,
        settings: &SocketSettings,
    ) -> Result<Option<S>, CallFailed> {
        lock(&self.reception).socket.beside(peer, settings)
    }

    pub(crate) fn take_batch(&self) -> Batch {
        lock(&self.batches).pop().unwrap_or_default()
    }

    pub(crate) fn put_batch(&self, mut batch: Batch) {
        batch.clear();
        let mut batches = lock(&self.batches);
        if batches.len() < BATCHES_MAX {
            batches.push(batch);
        }
    }
}

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod tests;
