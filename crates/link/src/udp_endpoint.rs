//! The UDP endpoint of a process: its links to interfaces of other hosts, over one port (decision
//! 12).
//!
//! One socket receives for all links, so a poll costs one system call however many peers there are.
//! Each link is a connection: an [`Association`](hamlyn_engine::transport::Association) with its
//! packet protection, behind a lock that its two halves and the host's control thread share. The
//! lock is seldom contended, since one thread drives at a time. Datagrams of no link
//! ([`UdpEndpoint::next_unassociated`]) belong to the host: they are handshakes.
//!
//! An unassociated datagram causes no allocation, no blocking and no answer here.
//!
//! The sockets are a parameter ([`DatagramSocket`]) and the clock is given, so that a simulation
//! runs the same endpoint over a network and a time of its own (decision 0033).

mod announcer;
mod connection;
mod ends;
mod probing;
mod state;
mod system_socket;
mod timers;

pub use connection::{Connection, ConnectionConfig};
pub use ends::{ReceivedPayload, UdpLink, UdpReceive, UdpTransmit};
pub use state::ConnectionState;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hamlyn_ring::ready_bitmap::ReadyBits;

use crate::udp::batch::{Batch, Datagram, Inbox};
use crate::udp::datagram_socket::DatagramSocket;
use crate::udp::handshake::MESSAGE_BYTES_MAX;
use crate::udp::packet_header::{Kind, PacketHeader, association_of};
use crate::udp::socket::{CallFailed, SendError, Socket, SocketSettings};
use announcer::Announcer;
use timers::Timers;

/// Unassociated datagrams that wait for the host at most; more are dropped.
const UNASSOCIATED_MAX: usize = 64;
/// Receive calls in one poll at most.
const BATCHES_PER_POLL: usize = 4;
/// Error reports of the system read in one poll at most.
const REPORTS_PER_POLL: usize = 4;
/// A frame may have waited in this host for so long before that counts as delay of the network: so
/// a host that receives less than its peers send slows them down before its socket is full.
const LATE_MAX_NS: u64 = 1_000_000;
/// What came was not there so long ago or less: then it counts from when it was read, and the
/// system is not asked when it came.
const JUST_NOW_NS: u64 = 20_000;
/// Batches that are kept for the next.
const BATCHES_MAX: usize = 8;

/// A handshake that the host has begun: peer, number, and channel for the answers. No answer in the
/// channel means that nobody listens there, which is a hint.
struct PendingHandshake {
    to: SocketAddr,
    number: u32,
    notify: SyncSender<Option<Vec<u8>>>,
    /// Reports, and messages from elsewhere, that may still be passed on: there must be room for
    /// answers.
    reports_left: usize,
    elsewhere_left: usize,
}

impl PendingHandshake {
    /// Whether a message from there may be passed on. A host with several addresses may answer
    /// from another one; whoever floods from elsewhere does not take the place of answers.
    fn admits(&mut self, from: SocketAddr) -> bool {
        let is_same = (from.ip().to_canonical(), from.port())
            == (self.to.ip().to_canonical(), self.to.port());
        if is_same {
            return true;
        }
        let left = self.elsewhere_left.checked_sub(1);
        self.elsewhere_left = left.unwrap_or(0);
        left.is_some()
    }
}

/// Answers for which there is room in any case.
const ANSWERS_MAX: usize = 4;
/// Reports of one handshake, and messages from elsewhere.
const REPORTS_MAX: usize = 2;
const ELSEWHERE_MAX: usize = 8;
/// All that waits for one handshake at most.
const PASSED_ON_MAX: usize = ANSWERS_MAX + REPORTS_MAX + ELSEWHERE_MAX;

/// Unassociated datagrams (messages of handshakes) that wait for the host, in memory allocated at
/// the beginning.
struct Unassociated {
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

impl Unassociated {
    fn new() -> Self {
        let spare = (0..UNASSOCIATED_MAX).map(|_| Vec::with_capacity(MESSAGE_BYTES_MAX));
        Self {
            waiting: VecDeque::with_capacity(UNASSOCIATED_MAX),
            spare: spare.collect(),
        }
    }
}

/// See the module.
pub struct UdpEndpoint<S = Socket> {
    reception: Mutex<Reception<S>>,
    connections: Mutex<Connections<S>>,
    unassociated: Mutex<Unassociated>,
    pending: Mutex<Vec<PendingHandshake>>,
    /// Bytes of frames that all links keep until they are taken.
    queued_bytes: Arc<AtomicUsize>,
    batches: Mutex<Vec<Batch>>,
    /// Called when an unassociated datagram waits, a link has ended, or something has come that a
    /// sleeper does not know of.
    notify: Box<dyn Fn() + Send + Sync>,
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
            unassociated: Mutex::new(Unassociated::new()),
            pending: Mutex::default(),
            queued_bytes: Arc::default(),
            batches: Mutex::default(),
            notify,
            clock,
            deadline_ns: AtomicU64::new(u64::MAX),
            timers: Arc::default(),
            asleep: AtomicBool::new(false),
            tells_waking: AtomicBool::new(false),
            driven_until_ns: AtomicU64::new(0),
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

    /// Whether many unassociated datagrams wait.
    pub fn is_crowded(&self) -> bool {
        lock(&self.unassociated).waiting.len() > UNASSOCIATED_MAX / 2
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

    /// A link has room again, or something came back over it.
    pub(crate) fn signal(&self) {
        self.signalled.store(true, Ordering::Relaxed);
        self.tell_listener();
    }

    /// What a thread that sleeps at the socket may wait for is no longer there: it was taken here.
    fn tell_listener(&self) {
        if self.listens.load(Ordering::SeqCst)
            && !self.untold.swap(true, Ordering::SeqCst)
            && self.is_asleep()
        {
            (self.notify)();
        }
    }

    /// A thread is about to sleep at the socket: what other threads take from there from now on, it
    /// is to be told of. To be called before it looks for the last time.
    pub fn listen(&self) {
        self.untold.store(false, Ordering::SeqCst);
        self.listens.store(true, Ordering::SeqCst);
    }

    /// That thread is awake.
    pub fn end_listening(&self) {
        self.listens.store(false, Ordering::SeqCst);
    }

    /// Whether another thread has taken something since [`UdpEndpoint::listen`].
    pub fn is_untold(&self) -> bool {
        self.untold.load(Ordering::SeqCst)
    }

    /// The same, once: who asks tells the thread that sleeps.
    pub fn take_untold(&self) -> bool {
        self.is_untold() && self.untold.swap(false, Ordering::SeqCst)
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
        for place in &mut connections.table {
            let is_over = |connection: &Arc<Connection<S>>| {
                connection.end().is_some() && !connection.is_held()
            };
            if place.as_ref().is_some_and(is_over) {
                *place = None;
                has_forgotten = true;
            }
        }
        if has_forgotten {
            self.changes.fetch_add(1, Ordering::Release);
        }
        self.elect_poller(connections);
    }

    /// When [`UdpEndpoint::poll`] must be called though nothing comes.
    pub fn deadline_ns(&self) -> Option<u64> {
        let deadline_ns = self.deadline_ns.load(Ordering::SeqCst);
        (deadline_ns != u64::MAX).then_some(deadline_ns)
    }

    /// Whether there are links, even if only to be brought to their end.
    pub fn has_links(&self) -> bool {
        lock(&self.connections).table.iter().any(Option::is_some)
    }

    /// A message of a handshake, and where it came from.
    pub fn next_unassociated(&self, message: &mut Vec<u8>) -> Option<SocketAddr> {
        let mut unassociated = lock(&self.unassociated);
        let (from, mut bytes) = unassociated.waiting.pop_front()?;
        message.clear();
        message.extend_from_slice(&bytes);
        bytes.clear();
        unassociated.spare.push(bytes);
        Some(from)
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

    /// The host begins a handshake with that address, by that number. The polling thread passes
    /// answers on until [`UdpEndpoint::end_handshake`] with that number. Several threads may ask.
    pub fn begin_handshake(&self, to: SocketAddr, number: u32) -> Receiver<Option<Vec<u8>>> {
        let (notify, answers) = mpsc::sync_channel(PASSED_ON_MAX);
        lock(&self.pending).push(PendingHandshake {
            to,
            number,
            notify,
            reports_left: REPORTS_MAX,
            elsewhere_left: ELSEWHERE_MAX,
        });
        // Somebody has to look now.
        (self.notify)();
        answers
    }

    /// Whether the host asks, and waits for what others find.
    pub fn is_handshaking(&self) -> bool {
        !lock(&self.pending).is_empty()
    }

    /// The host does not ask any more by that number.
    pub fn end_handshake(&self, number: u32) {
        lock(&self.pending).retain(|pending| pending.number != number);
    }

    /// Passes a message, or a report, on to the pending handshakes to which it belongs; whether
    /// there are any.
    fn pass_on(
        &self,
        concerns: impl Fn(&PendingHandshake) -> bool,
        message: Option<(SocketAddr, &[u8])>,
    ) -> bool {
        let mut is_any = false;
        for pending in lock(&self.pending).iter_mut() {
            if !concerns(pending) {
                continue;
            }
            is_any = true;
            let is_admitted = match message {
                Some((from, _)) => pending.admits(from),
                None => {
                    let left = pending.reports_left.checked_sub(1);
                    pending.reports_left = left.unwrap_or(0);
                    left.is_some()
                }
            };
            if is_admitted {
                let message = message.map(|(_, bytes)| bytes.to_vec());
                let _ = pending.notify.try_send(message);
            }
        }
        is_any
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

    pub(crate) fn report_end(&self) {
        (self.notify)();
    }

    /// Somebody wants to be looked after at that time.
    pub(crate) fn request_wakeup(&self, deadline_ns: u64) {
        let before_ns = self.deadline_ns.fetch_min(deadline_ns, Ordering::SeqCst);
        if deadline_ns < before_ns
            && (self.is_asleep() || deadline_ns < self.driven_until_ns.load(Ordering::SeqCst))
        {
            // The sleeper does not know of it.
            (self.notify)();
        }
    }

    /// The thread that polls in the application's stead is about to sleep, until the deadline that
    /// it is told; it is notified of an earlier one, until it calls
    /// [`UdpEndpoint::end_driver_sleep`].
    pub fn begin_driver_sleep(&self) -> Option<u64> {
        loop {
            let deadline_ns = self.deadline_ns.load(Ordering::SeqCst);
            self.driven_until_ns.store(deadline_ns, Ordering::SeqCst);
            // One that came in between was told to nobody.
            if self.deadline_ns.load(Ordering::SeqCst) >= deadline_ns {
                return (deadline_ns != u64::MAX).then_some(deadline_ns);
            }
        }
    }

    /// That thread is awake, or polls no more.
    pub fn end_driver_sleep(&self) {
        self.driven_until_ns.store(0, Ordering::SeqCst);
    }

    /// The thread that sleeps at the socket notifies when it is awake, once. Returns whether it
    /// sleeps still.
    pub fn ask_for_waking(&self) -> bool {
        self.tells_waking.store(true, Ordering::SeqCst);
        self.is_asleep()
    }

    /// Whether the polling thread sleeps at the socket.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Notes that the polling thread is about to sleep at the socket, before it asks for the
    /// deadline; or that it is awake.
    pub fn note_asleep(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::SeqCst);
        if !asleep
            && self.tells_waking.load(Ordering::SeqCst)
            && self.tells_waking.swap(false, Ordering::SeqCst)
        {
            (self.notify)();
        }
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

impl<S: DatagramSocket> Reception<S> {
    /// Learns of new links, and of those that ended.
    fn follow(&mut self, endpoint: &UdpEndpoint<S>) {
        let changes = endpoint.changes.load(Ordering::Acquire);
        if changes != self.seen {
            self.table.clone_from(&lock(&endpoint.connections).table);
            self.seen = changes;
            let lengths = self
                .table
                .iter()
                .flatten()
                .map(|connection| connection.datagram_bytes());
            self.socket.expect(lengths.max().unwrap_or(0));
        }
    }

    /// Receives datagrams, and stops once packets wait to be taken, as the polling thread will be
    /// back. Returns whether some wait.
    fn take_in(&mut self, endpoint: &UdpEndpoint<S>, polled_ns: u64) -> bool {
        let mut came = false;
        // So that the socket knows how long datagrams may be before it tells them apart.
        self.follow(endpoint);
        let mut has_heard = self.has_reports;
        if has_heard {
            self.drain_reports(endpoint);
        }
        let away_ns = polled_ns.saturating_sub(self.polled_ns);
        (self.away_ns, self.polled_ns) = (self.away_ns.max(away_ns), polled_ns);
        let mut batches = 0;
        for _ in 0..2 * BATCHES_PER_POLL {
            if came || batches == BATCHES_PER_POLL {
                break;
            }
            let since_empty_ns = polled_ns.saturating_sub(self.empty_ns);
            let received = match since_empty_ns > JUST_NOW_NS {
                true => self.socket.receive_stamped(&mut self.inbox),
                false => self.socket.receive(&mut self.inbox),
            };
            match received {
                Ok(true) => batches += 1,
                Ok(false) => {
                    (self.empty_ns, self.away_ns) = (polled_ns, 0);
                    break;
                }
                // Some are heard in each look; others do not keep it from what has come.
                Err(_) if has_heard => {
                    self.has_reports = true;
                    continue;
                }
                Err(_) => {
                    has_heard = true;
                    self.drain_reports(endpoint);
                    continue;
                }
            }
            self.follow(endpoint);
            // It came after nothing was there; perhaps while this process was not running at all.
            let late_max_ns = (LATE_MAX_NS + self.away_ns).min(since_empty_ns);
            let late_ns = self.inbox.waited_ns().map_or(0, |waited_ns| {
                // Counted from this look, as everything that it finds.
                let looked_ns = endpoint.now_ns().saturating_sub(polled_ns);
                waited_ns.saturating_sub(looked_ns).min(late_max_ns)
            });
            while let Some(datagram) = self.inbox.peek() {
                let number = association_of(datagram);
                let connection = number.and_then(|number| self.table.get(place_of(number)));
                match connection {
                    Some(Some(connection)) if Some(connection.number()) == number => {
                        came |= connection.take_in(endpoint, polled_ns, late_ns, &mut self.inbox);
                    }
                    _ => endpoint.dispatch(self.inbox.next()),
                }
            }
        }
        came
    }
}

impl<S: DatagramSocket> Reception<S> {
    /// Hears at which peers' ports nobody listens.
    #[cold]
    fn drain_reports(&mut self, endpoint: &UdpEndpoint<S>) {
        for _ in 0..REPORTS_PER_POLL {
            let Some(report) = self.socket.next_report() else {
                self.has_reports = false;
                return;
            };
            let Some(peer) = report else { continue };
            endpoint.pass_on(|pending| pending.to == peer, None);
            let connections = self.table.iter().flatten();
            for connection in connections.filter(|connection| connection.peer == Some(peer)) {
                connection.note_unreachable();
            }
        }
        self.has_reports = true;
        self.socket.put_off_reports();
    }
}

impl<S: DatagramSocket> UdpEndpoint<S> {
    /// Keeps an unassociated datagram for the host, or passes it to its pending handshake.
    #[cold]
    fn dispatch(&self, datagram: Option<Datagram<'_>>) {
        let Some(Datagram {
            source: Some(from),
            bytes,
            ..
        }) = datagram
        else {
            return;
        };
        let Some(packet_header) =
            PacketHeader::parse(bytes).filter(|_| bytes.len() <= MESSAGE_BYTES_MAX)
        else {
            return;
        };
        let is_answer = self.pass_on(
            |pending| pending.number == packet_header.association,
            Some((from, bytes)),
        );
        if is_answer || !matches!(packet_header.kind, Kind::Initiation | Kind::Payload) {
            return;
        }
        let mut unassociated = lock(&self.unassociated);
        if let Some(mut room) = unassociated.spare.pop() {
            room.extend_from_slice(bytes);
            unassociated.waiting.push_back((from, room));
            drop(unassociated);
            (self.notify)();
        }
    }
}

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod tests;
