//! The wire: the links of one process to interfaces of other hosts, over one port of UDP (decision 12).
//!
//! One socket takes what comes for all of them, so a look costs one system call however many peers there are. Each link is an
//! [`Association`](hamlyn_engine::transport::Association) with what seals and opens its frames, behind a lock that its two halves and the
//! host's attendant share; it is hardly ever contended, since one thread drives at a time. What is no frame of a link
//! ([`Wire::next_stranger`]) is the host's affair: handshakes.
//!
//! Nothing that comes from strangers allocates, blocks or answers here.

mod ends;
mod post;
mod probing;
mod state;

pub use ends::{Arrived, WireLink, WireReceive, WireTransmit};
pub use post::{Post, PostParts};
pub use state::WireState;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::udp::batch::{Batch, Datagram, Inbox};
use crate::udp::envelope::{Envelope, Kind, association_of};
use crate::udp::handshake::MESSAGE_BYTES_MAX;
use crate::udp::socket::{CallFailed, Flow, FlowSettings, SendError};

/// Messages of strangers that wait for the host at most; more are dropped.
const STRANGERS_MAX: usize = 64;
/// Looks at the socket in one poll at most.
const BATCHES_PER_POLL: usize = 4;
/// Reports of the system heard in one poll at most.
const REPORTS_PER_POLL: usize = 4;
/// What comes may have waited in this host for so long before it counts as delay of the network: so a host that takes in less than its peers
/// send slows them down before its socket is full.
const LATE_MAX_NS: u64 = 1_000_000;
/// Batches that are kept for the next.
const BATCHES_MAX: usize = 8;

/// Whom the host asks, by which number, and how it hears of answers: of none if nobody listens there, which is a hint.
struct Asked {
    to: SocketAddr,
    number: u32,
    tell: SyncSender<Option<Vec<u8>>>,
    /// Reports that may still be passed on: there must be room for answers.
    reports_left: usize,
}
/// Answers that wait at most; more are dropped.
const ANSWERS_MAX: usize = 4;

/// Messages of handshakes that wait for the host, in memory that there is from the beginning.
struct Strangers {
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

impl Strangers {
    fn new() -> Self {
        let spare = (0..STRANGERS_MAX).map(|_| Vec::with_capacity(MESSAGE_BYTES_MAX));
        Self {
            waiting: VecDeque::with_capacity(STRANGERS_MAX),
            spare: spare.collect(),
        }
    }
}

/// See the module.
pub struct Wire {
    reception: Mutex<Reception>,
    posts: Mutex<Posts>,
    strangers: Mutex<Strangers>,
    asked: Mutex<Option<Asked>>,
    /// Bytes of frames that all links keep until they are taken.
    kept_bytes: Arc<AtomicUsize>,
    batches: Mutex<Vec<Batch>>,
    /// Called when there is a stranger, a link has ended, or something is to be done at a time that a sleeper does not know.
    tell: Box<dyn Fn() + Send + Sync>,
    clock: fn() -> u64,
    local: SocketAddr,
    /// When a link wants to be looked after though nothing comes, at the earliest.
    deadline_ns: AtomicU64,
    /// Whoever looks sleeps at the socket, until the deadline that there was.
    asleep: AtomicBool,
    /// A link has room again, or something came back over it, since somebody last looked.
    stirred: AtomicBool,
    /// How often the application looked.
    looks: AtomicU64,
    /// The number of the link whose receiving end looks for all; of none, if it is zero.
    looker: AtomicU32,
    /// How often [`Posts`] changed.
    changes: AtomicU64,
}

/// What whoever looks at the socket has in hand.
struct Reception {
    socket: Flow,
    inbox: Inbox,
    /// A copy of the table, as of that change.
    table: Vec<Option<Arc<Post>>>,
    seen: u64,
    /// The system may have more reports.
    has_reports: bool,
    /// When it was looked last and nothing was there.
    empty_ns: u64,
    /// When it was looked last.
    looked_ns: u64,
    /// The longest time without a look since nothing was there.
    away_ns: u64,
}

/// All links.
#[derive(Default)]
struct Posts {
    table: Vec<Option<Arc<Post>>>,
    /// Numbers that links to be have, by place.
    reserved: Vec<u32>,
}

/// Locks what no panic of ours leaves half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bits of a link's number that say its place; the others are random, so that a late frame does not find another link.
const PLACE_BITS: u32 = 16;

fn place_of(number: u32) -> usize {
    (number & ((1 << PLACE_BITS) - 1)) as usize
}

impl Wire {
    /// A wire at this address; port 0 lets the system choose. `clock` gives nanoseconds; `tell` is called, by
    /// anybody, when there is a stranger or a link has ended; it must not call back.
    pub fn open(
        at: SocketAddr,
        settings: &FlowSettings,
        clock: fn() -> u64,
        tell: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Self, CallFailed> {
        let socket = Flow::bind(at, settings)?;
        socket.hear_reports();
        Ok(Self {
            local: socket.local(),
            reception: Mutex::new(Reception {
                socket,
                inbox: Inbox::new(),
                table: Vec::new(),
                seen: 0,
                has_reports: false,
                empty_ns: 0,
                looked_ns: 0,
                away_ns: 0,
            }),
            posts: Mutex::default(),
            strangers: Mutex::new(Strangers::new()),
            asked: Mutex::default(),
            kept_bytes: Arc::default(),
            batches: Mutex::default(),
            tell,
            clock,
            deadline_ns: AtomicU64::new(u64::MAX),
            asleep: AtomicBool::new(false),
            stirred: AtomicBool::new(false),
            looks: AtomicU64::new(0),
            looker: AtomicU32::new(0),
            changes: AtomicU64::new(0),
        })
    }

    /// The address of its socket.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Its socket, to be watched.
    pub fn with_socket<R>(&self, watch: impl FnOnce(BorrowedFd<'_>) -> R) -> R {
        watch(lock(&self.reception).socket.as_fd())
    }

    /// Whether many strangers wait.
    pub fn is_crowded(&self) -> bool {
        lock(&self.strangers).waiting.len() > STRANGERS_MAX / 2
    }

    pub(crate) fn now_ns(&self) -> u64 {
        (self.clock)()
    }

    /// A number for a link to be, of which these are random bits. Must be followed by [`Wire::link`] or [`Wire::release`].
    /// Nothing if there are too many links.
    pub fn reserve(&self, bits: u32) -> Option<u32> {
        let mut posts = lock(&self.posts);
        let is_free = |place: &usize| posts.table[*place].is_none() && posts.reserved[*place] == 0;
        let place = (0..posts.table.len()).find(is_free);
        let place = place.unwrap_or(posts.table.len());
        if place >= 1 << PLACE_BITS {
            return None;
        }
        if place == posts.table.len() {
            posts.table.push(None);
            posts.reserved.push(0);
        }
        // Never zero.
        let number = (bits | 1 << 31) & !((1 << PLACE_BITS) - 1) | place as u32;
        posts.reserved[place] = number;
        Some(number)
    }

    /// The link will not be.
    pub fn release(&self, number: u32) {
        let mut posts = lock(&self.posts);
        if let Some(reserved) = posts.reserved.get_mut(place_of(number))
            && *reserved == number
        {
            *reserved = 0;
        }
    }

    /// The link of that number.
    pub fn link(self: &Arc<Self>, number: u32, parts: PostParts) -> WireLink {
        let kept_bytes = Arc::clone(&self.kept_bytes);
        let post = Arc::new(Post::new(number, parts, self.now_ns(), kept_bytes));
        let mut posts = lock(&self.posts);
        let place = place_of(number);
        posts.reserved[place] = 0;
        posts.table[place] = Some(Arc::clone(&post));
        self.changes.fetch_add(1, Ordering::Release);
        self.appoint(&posts);
        drop(posts);
        self.wants(0);
        WireLink::new(self, &post)
    }

    /// Sees that the receiving end of some link looks for all.
    fn appoint(&self, posts: &Posts) {
        let looker = self.looker.load(Ordering::Relaxed);
        let mut living = posts.table.iter().flatten().filter(|post| post.is_held());
        let first = living.next();
        let stays = first
            .into_iter()
            .chain(living)
            .any(|post| post.number() == looker);
        if !stays {
            self.looker
                .store(first.map_or(0, |post| post.number()), Ordering::Relaxed);
        }
    }

    /// Whether a link's receiving end looks for all of them.
    pub(crate) fn looks_for_all(&self, post: &Post) -> bool {
        self.looker.load(Ordering::Relaxed) == post.number()
    }

    /// Looks for all links, if that one's receiving end does that. Whether it does.
    pub(crate) fn look_for_all(&self, post: &Post) -> bool {
        if !self.looks_for_all(post) {
            return false;
        }
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.look();
        true
    }

    /// How often the application looked.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Takes in what has come, unless somebody is doing that, and sends what is to be sent by now. Whether there is something that
    /// another who sleeps may wait for: packets to be taken, room, packets that came back.
    pub fn look(&self) -> bool {
        let Ok(mut reception) = self.reception.try_lock() else {
            return false;
        };
        let now_ns = self.now_ns();
        let came = reception.take_in(self, now_ns);
        drop(reception);
        if self.deadline_ns.load(Ordering::Relaxed) <= now_ns {
            self.turn();
        }
        came | (self.stirred.load(Ordering::Relaxed) && self.stirred.swap(false, Ordering::Relaxed))
    }

    /// A link has room again, or something came back over it.
    pub(crate) fn stir(&self) {
        self.stirred.store(true, Ordering::Relaxed);
    }

    /// Looks after all links whose time has come; forgets those that have ended and that nobody has any more.
    fn turn(&self) {
        let now_ns = self.now_ns();
        let mut posts = lock(&self.posts);
        // Before the look at the links: whoever wants something later than that says so again.
        self.deadline_ns.swap(u64::MAX, Ordering::SeqCst);
        let due: Vec<Arc<Post>> = posts
            .table
            .iter()
            .flatten()
            .filter(|post| post.deadline_ns() <= now_ns)
            .cloned()
            .collect();
        let later = posts.table.iter().flatten().map(|post| post.deadline_ns());
        self.wants(later.filter(|at| *at > now_ns).min().unwrap_or(u64::MAX));
        let mut ended = false;
        for place in &mut posts.table {
            if place
                .as_ref()
                .is_some_and(|post| post.end().is_some() && !post.is_held())
            {
                *place = None;
                ended = true;
            }
        }
        if ended {
            self.changes.fetch_add(1, Ordering::Release);
        }
        self.appoint(&posts);
        drop(posts);
        for post in due {
            post.turn(self, now_ns);
        }
    }

    /// When [`Wire::look`] must be called though nothing comes.
    pub fn deadline_ns(&self) -> Option<u64> {
        let deadline_ns = self.deadline_ns.load(Ordering::SeqCst);
        (deadline_ns != u64::MAX).then_some(deadline_ns)
    }

    /// Whether there are links, even if only to be brought to their end.
    pub fn has_links(&self) -> bool {
        lock(&self.posts).table.iter().any(Option::is_some)
    }

    /// A message of a handshake, and where it came from.
    pub fn next_stranger(&self, message: &mut Vec<u8>) -> Option<SocketAddr> {
        let mut strangers = lock(&self.strangers);
        let (from, mut bytes) = strangers.waiting.pop_front()?;
        message.clear();
        message.extend_from_slice(&bytes);
        bytes.clear();
        strangers.spare.push(bytes);
        Some(from)
    }

    /// A flow to that peer from the wire's own port; nothing if the system would send from another address.
    pub fn flow_to(
        &self,
        peer: SocketAddr,
        settings: &FlowSettings,
    ) -> Result<Option<Flow>, CallFailed> {
        lock(&self.reception).socket.beside(peer, settings)
    }

    /// The host begins a handshake with who is there, by that number. What is said to that, whoever looks passes on, until
    /// [`Wire::end_asking`]. One thread at a time asks.
    pub fn ask(&self, to: SocketAddr, number: u32) -> Receiver<Option<Vec<u8>>> {
        let (tell, told) = mpsc::sync_channel(ANSWERS_MAX);
        *lock(&self.asked) = Some(Asked {
            to,
            number,
            tell,
            reports_left: ANSWERS_MAX / 2,
        });
        // Somebody has to look now.
        (self.tell)();
        told
    }

    /// Whether the host asks, and waits for what others find.
    pub fn is_asking(&self) -> bool {
        lock(&self.asked).is_some()
    }

    /// The host does not ask any more.
    pub fn end_asking(&self) {
        *lock(&self.asked) = None;
    }

    /// Passes on what concerns who asks, if this does.
    fn pass_on(&self, concerns: impl Fn(&Asked) -> bool, message: Option<&[u8]>) -> bool {
        let mut asked = lock(&self.asked);
        let Some(asked) = asked.as_mut().filter(|asked| concerns(asked)) else {
            return false;
        };
        if message.is_none() {
            let Some(left) = asked.reports_left.checked_sub(1) else {
                return true;
            };
            asked.reports_left = left;
        }
        let _ = asked.tell.try_send(message.map(<[u8]>::to_vec));
        true
    }

    /// Answers a stranger.
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

    /// Brings all links to their end that nobody has any more, as far as that can be done until then: what was sent is acknowledged, or given
    /// up. Blocks.
    pub fn settle(&self, until_ns: u64) {
        self.wants(0);
        loop {
            self.look();
            let now_ns = self.now_ns();
            if now_ns >= until_ns || !self.has_links() {
                return;
            }
            let wake_ns = self.deadline_ns().unwrap_or(until_ns).min(until_ns);
            let span_ns = wake_ns.saturating_sub(now_ns);
            let span = Timespec {
                tv_sec: (span_ns / 1_000_000_000) as i64,
                tv_nsec: (span_ns % 1_000_000_000) as i64,
            };
            self.with_socket(|socket| {
                let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
                // If it cannot wait, it looks again at once.
                let _ = rustix::event::poll(&mut polled, Some(&span));
            });
        }
    }

    pub(crate) fn tell_of_end(&self) {
        (self.tell)();
    }

    /// Somebody wants to be looked after at that time.
    pub(crate) fn wants(&self, deadline_ns: u64) {
        let before_ns = self.deadline_ns.fetch_min(deadline_ns, Ordering::SeqCst);
        if deadline_ns < before_ns && self.is_asleep() {
            // Whoever sleeps does not know of it.
            (self.tell)();
        }
    }

    /// Whether whoever looks sleeps at the socket.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Notes that whoever looks is about to sleep at the socket, before it asks for the deadline; or that it is awake.
    pub fn note_asleep(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::SeqCst);
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

impl Reception {
    /// Learns of new links, and of those that ended.
    fn follow(&mut self, wire: &Wire) {
        let changes = wire.changes.load(Ordering::Acquire);
        if changes != self.seen {
            self.table.clone_from(&lock(&wire.posts).table);
            self.seen = changes;
            let lengths = self
                .table
                .iter()
                .flatten()
                .map(|post| post.datagram_bytes());
            self.socket.expect(lengths.max().unwrap_or(0));
        }
    }

    /// Takes in some of what has come: no more once there is something to be taken, as whoever looks will be back. Whether there is.
    fn take_in(&mut self, wire: &Wire, looked_ns: u64) -> bool {
        let mut came = false;
        // So that the socket knows how long datagrams may be before it tells them apart.
        self.follow(wire);
        let mut has_heard = self.has_reports;
        if has_heard {
            self.hear_reports(wire);
        }
        let away_ns = looked_ns.saturating_sub(self.looked_ns);
        (self.away_ns, self.looked_ns) = (self.away_ns.max(away_ns), looked_ns);
        let mut batches = 0;
        for _ in 0..2 * BATCHES_PER_POLL {
            if came || batches == BATCHES_PER_POLL {
                break;
            }
            match self.socket.receive(&mut self.inbox) {
                Ok(true) => batches += 1,
                Ok(false) => {
                    (self.empty_ns, self.away_ns) = (looked_ns, 0);
                    break;
                }
                // Some are heard in each look; others do not keep it from what has come.
                Err(_) if has_heard => {
                    self.has_reports = true;
                    continue;
                }
                Err(_) => {
                    has_heard = true;
                    self.hear_reports(wire);
                    continue;
                }
            }
            self.follow(wire);
            // It came after nothing was there; perhaps while this process was not running at all.
            let late_max_ns = LATE_MAX_NS + self.away_ns;
            let late_ns = looked_ns.saturating_sub(self.empty_ns).min(late_max_ns);
            while let Some(datagram) = self.inbox.peek() {
                let number = association_of(datagram);
                let post = number.and_then(|number| self.table.get(place_of(number)));
                match post {
                    Some(Some(post)) if Some(post.number()) == number => {
                        came |= post.take_in(wire, looked_ns, late_ns, &mut self.inbox);
                    }
                    _ => wire.heed(self.inbox.next()),
                }
            }
        }
        came
    }
}

impl Reception {
    /// Hears at which peers' ports nobody listens.
    #[cold]
    fn hear_reports(&mut self, wire: &Wire) {
        for _ in 0..REPORTS_PER_POLL {
            let Some(report) = self.socket.next_report() else {
                self.has_reports = false;
                return;
            };
            let Some(peer) = report else { continue };
            wire.pass_on(|asked| asked.to == peer, None);
            let posts = self.table.iter().flatten();
            for post in posts.filter(|post| post.peer == Some(peer)) {
                post.note_unheard();
            }
        }
        self.has_reports = true;
        self.socket.put_off_reports();
    }
}

impl Wire {
    /// Keeps what a stranger says for the host, or passes it to who asked.
    #[cold]
    fn heed(&self, datagram: Option<Datagram<'_>>) {
        let Some(Datagram {
            source: Some(from),
            bytes,
            ..
        }) = datagram
        else {
            return;
        };
        let Some(envelope) = Envelope::parse(bytes).filter(|_| bytes.len() <= MESSAGE_BYTES_MAX)
        else {
            return;
        };
        let is_answer = self.pass_on(|asked| asked.number == envelope.association, Some(bytes));
        if is_answer || !matches!(envelope.kind, Kind::Initiation | Kind::Letter) {
            return;
        }
        let mut strangers = lock(&self.strangers);
        if let Some(mut room) = strangers.spare.pop() {
            room.extend_from_slice(bytes);
            strangers.waiting.push_back((from, room));
            drop(strangers);
            (self.tell)();
        }
    }
}

#[cfg(test)]
mod tests;
