//! A connection: one association of the endpoint, its packet protection, its sockets, and the
//! frames that wait to be received.
//!
//! The two halves of its link, the thread that polls the socket and the control thread share a
//! connection. Each holds its lock while it protects or unprotects the frames at hand, and none
//! sleeps meanwhile.

mod ending;
mod fencing;
mod receive_queue;
mod receiving;
mod run;
mod sending;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use hamlyn_engine::limits::CHANNELS_MAX;
use hamlyn_engine::memory::Unsent;
use hamlyn_engine::packet::Header;
use hamlyn_engine::point::Point;
use hamlyn_engine::transport::{Association, CloseReason, Return};

pub(super) use receive_queue::ReceivedBatch;
use receive_queue::{ReceivedFrame, Spare};
use run::Run;

use super::announcer::Announcer;
use super::probing::Probing;
use super::state::ConnectionState;
use super::timers::{Armed, Timers};
use super::{UdpEndpoint, lock};
use crate::Refused;
use crate::trace::Tap;
use crate::udp::DATAGRAM_BYTES_MAX;
use crate::udp::batch::{BATCH_DATAGRAMS, Batch};
use crate::udp::datagram_socket::DatagramSocket;
use crate::udp::protection::{RxProtection, TxProtection};
use crate::udp::socket::Socket;

/// Bytes of frames that wait to be taken; for more the sender is told that there is no room. More
/// than one of our kind may have under way on an Ethernet.
const WAITING_BYTES_MAX: usize = 8 << 20;
const _: () = assert!(WAITING_BYTES_MAX > CHANNELS_MAX * 1_500);
/// The same for all links of a wire, but for what each may keep in any case.
pub(super) const POOL_BYTES: usize = 256 << 20;
const SHARE_BYTES: usize = 64 << 10;
/// How long full frames wait for more of their kind, unless nothing follows.
const HELD_NS: u64 = 10_000;
/// How long after a full socket sending is tried again.
const FULL_NS: u64 = 50_000;
/// Packets that came back and are kept; of more, the oldest are forgotten and counted.
pub(super) const RETURNED_MAX: usize = 1_024;

/// How many bytes one link may queue while all links of an endpoint queue so many: a quarter of the
/// rest, so that a later link finds room.
fn share_bytes(queued_bytes: usize) -> usize {
    let left = POOL_BYTES.saturating_sub(queued_bytes) / 4;
    left.clamp(SHARE_BYTES, WAITING_BYTES_MAX)
}

/// What a connection is made of.
pub struct ConnectionConfig<S = Socket> {
    /// The transport.
    pub association: Association,
    /// For frames to the peer.
    pub tx_protection: TxProtection,
    /// For frames from the peer.
    pub rx_protection: RxProtection,
    /// The ways to the peer, each connected; as many as the association has paths.
    pub sockets: Vec<S>,
    /// Where its frames are written to, too.
    pub tap: Option<Tap>,
}

/// See the module.
pub struct Connection<S = Socket> {
    /// By which number frames for it go.
    number: u32,
    /// Where its frames go.
    pub(super) peer: Option<SocketAddr>,
    state: Mutex<State<S>>,
    payload_max_bytes: AtomicUsize,
    /// The longest datagram, of either direction.
    datagram_bytes: usize,
    /// Frames that wait.
    waiting: AtomicUsize,
    /// Tells the interface of them.
    pub(super) announcer: Announcer,
    /// Bytes that all links of the endpoint queue.
    queued_bytes: Arc<AtomicUsize>,
    /// Whether a packet would find room.
    has_room: AtomicBool,
    /// When it wants to be looked after, at the latest.
    deadline_ns: AtomicU64,
    pub(super) armed: Armed,
    timers: Arc<Timers>,
    /// How often somebody looked at its deadline.
    #[cfg(test)]
    pub(super) looks: AtomicU64,
    /// Whether somebody has the link.
    held: AtomicBool,
    /// How it ended.
    end: OnceLock<CloseReason>,
    /// It ended here, and until then says so to whatever comes; 0 if it says nothing more.
    forget_ns: AtomicU64,
}

struct State<S> {
    number: u32,
    association: Association,
    tx_protection: TxProtection,
    rx_protection: RxProtection,
    sockets: Vec<S>,
    tap: Option<Tap>,
    probing: Probing,
    is_cutting: bool,
    /// Frames that are about to be sent.
    run: Run,
    /// Since when full frames wait for more of their kind.
    held_ns: Option<u64>,
    /// The longest frame that there can be, and at present.
    frame_bytes_max: usize,
    frame_bytes: usize,
    receive_queue: VecDeque<ReceivedBatch>,
    waiting_bytes: usize,
    /// How many may wait at present.
    share_bytes: usize,
    /// Frames of a call that is being looked through.
    fresh: Vec<ReceivedFrame>,
    spare: Spare,
    /// The control buffer: a frame without packets, as a datagram.
    control: Vec<u8>,
    /// The transmit backlog: datagrams for which the socket of that path had no room.
    backlog: Option<(u8, Batch)>,
    /// When the socket was found full.
    full_ns: u64,
    unreachable_reports: u32,
    /// Datagrams that had been sent when the peer was heard last.
    answered: u64,
    received_ns: u64,
    /// The application has dropped the receiving half.
    is_closing: bool,
    /// Returned packets, the oldest first; and how many were forgotten.
    returned: VecDeque<(Header, Return)>,
    forgotten: u64,
    /// What the peer refused, and whether anything came back because the link ended.
    refused: Refused,
    has_lost: bool,
    /// A fence that somebody waits for, and the last of those that were answered.
    fence: Option<u64>,
    answered_fence: Option<u64>,
}

impl<S: DatagramSocket> Connection<S> {
    pub(super) fn new(
        number: u32,
        parts: ConnectionConfig<S>,
        now_ns: u64,
        queued_bytes: Arc<AtomicUsize>,
        announcer: Announcer,
        timers: Arc<Timers>,
    ) -> Self {
        let ConnectionConfig {
            mut association,
            tx_protection,
            rx_protection,
            sockets,
            tap,
        } = parts;
        let frame_bytes_max = association.settings().frame_bytes;
        let datagram_bytes = frame_bytes_max + tx_protection.overhead_bytes();
        let probing = Probing::new(sockets.len(), datagram_bytes, now_ns);
        let frame_bytes = probing.datagram_bytes() - tx_protection.overhead_bytes();
        association.limit_frames(frame_bytes);
        Self {
            number,
            peer: sockets.first().and_then(S::peer),
            payload_max_bytes: AtomicUsize::new(association.payload_max_bytes()),
            datagram_bytes,
            waiting: AtomicUsize::new(0),
            announcer,
            queued_bytes,
            has_room: AtomicBool::new(true),
            // The first probe is due.
            deadline_ns: AtomicU64::new(0),
            armed: Armed::default(),
            timers,
            #[cfg(test)]
            looks: AtomicU64::new(0),
            held: AtomicBool::new(true),
            forget_ns: AtomicU64::new(0),
            end: OnceLock::new(),
            state: Mutex::new(State {
                number,
                association,
                tx_protection,
                rx_protection,
                sockets,
                tap,
                probing,
                is_cutting: false,
                run: Run::default(),
                held_ns: None,
                frame_bytes_max,
                frame_bytes: frame_bytes.min(frame_bytes_max),
                receive_queue: VecDeque::new(),
                waiting_bytes: 0,
                share_bytes: 0,
                fresh: Vec::new(),
                spare: Spare::default(),
                control: vec![0; datagram_bytes],
                backlog: None,
                full_ns: 0,
                unreachable_reports: 0,
                answered: 0,
                received_ns: now_ns,
                is_closing: false,
                returned: VecDeque::new(),
                forgotten: 0,
                refused: Refused::default(),
                has_lost: false,
                fence: None,
                answered_fence: None,
            }),
        }
    }

    /// By which number frames for it go.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The system reports that nobody listens there.
    pub(super) fn note_unreachable(&self) {
        lock(&self.state).note_unreachable();
    }

    pub(super) fn payload_max_bytes(&self) -> usize {
        self.payload_max_bytes.load(Ordering::Relaxed)
    }

    /// The longest datagram, of either direction.
    pub(super) fn datagram_bytes(&self) -> usize {
        self.datagram_bytes
    }

    /// Has the link looked after at that time, at the latest, if the endpoint is polled then.
    pub(super) fn set_deadline(&self, deadline_ns: u64) {
        // Sequentially consistent: either this sees that the link is armed for later, or who
        // disarms it sees the deadline.
        self.deadline_ns.store(deadline_ns, Ordering::SeqCst);
        let place = super::place_of(self.number);
        self.timers.arm(place, &self.armed, deadline_ns);
    }

    /// When the peer was heard last, or when the link began, in nanoseconds of the endpoint's
    /// clock.
    pub fn received_ns(&self) -> u64 {
        lock(&self.state).received_ns
    }

    /// Whether frames wait to be taken.
    #[inline]
    pub(super) fn has_frames(&self) -> bool {
        self.waiting.load(Ordering::Acquire) != 0
    }

    pub(super) fn has_room(&self) -> bool {
        self.has_room.load(Ordering::Relaxed)
    }

    pub(super) fn deadline_ns(&self) -> u64 {
        #[cfg(test)]
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.deadline_ns.load(Ordering::SeqCst)
    }

    /// Sends something.
    pub(super) fn offer(
        &self,
        endpoint: &UdpEndpoint<S>,
        give: impl FnOnce(&mut Association) -> Result<(), Unsent>,
    ) -> Result<(), Unsent> {
        let mut state = lock(&self.state);
        let given = give(&mut state.association);
        // What can go only after an acknowledgement is sent when that comes.
        if state.association.has_fresh() {
            let now_ns = endpoint.now_ns();
            state.pump(endpoint, now_ns);
            self.leave(&mut state, endpoint, now_ns);
        }
        self.note_room(&mut state, given)
    }

    /// As [`Connection::offer`], of a packet that fills a frame, so that others are likely to
    /// follow at once: it waits for them. Whether it does: then somebody must call
    /// [`Connection::run_timers`] soon, as the polling thread does.
    pub(super) fn offer_part(
        &self,
        endpoint: &UdpEndpoint<S>,
        give: impl FnOnce(&mut Association) -> Result<(), Unsent>,
    ) -> Result<bool, Unsent> {
        let mut state = lock(&self.state);
        let given = give(&mut state.association);
        let ready = state.association.ready();
        let waits = given.is_ok() && ready < state.run_frames();
        if !waits || state.held_ns.is_none() {
            let now_ns = endpoint.now_ns();
            match waits {
                true => state.held_ns = Some(now_ns),
                false => state.pump(endpoint, now_ns),
            }
            self.leave(&mut state, endpoint, now_ns);
        }
        self.note_room(&mut state, given).map(|()| waits)
    }

    /// Remembers that a sender found no room, so that it is told when there is some.
    #[inline]
    fn note_room(&self, state: &mut State<S>, given: Result<(), Unsent>) -> Result<(), Unsent> {
        if given.is_err() && !state.association.has_room() {
            self.has_room.store(false, Ordering::Relaxed);
        }
        given
    }

    /// Sends everything that is due.
    pub(super) fn run_timers(&self, endpoint: &UdpEndpoint<S>, now_ns: u64) {
        let mut state = lock(&self.state);
        self.run_timers_locked(&mut state, endpoint, now_ns);
    }

    fn run_timers_locked(&self, state: &mut State<S>, endpoint: &UdpEndpoint<S>, now_ns: u64) {
        state.pump(endpoint, now_ns);
        self.leave(state, endpoint, now_ns);
        // Now, for it was perhaps only an acknowledgement that was to be sent, and nothing would
        // come back to it.
        if state.is_closing
            && state.association.may_close()
            && state.association.close_reason().is_none()
        {
            state.association.close();
            state.pump(endpoint, now_ns);
            self.leave(state, endpoint, now_ns);
        }
    }

    fn request_wakeup(&self, endpoint: &UdpEndpoint<S>, due_ns: u64) {
        S::passes(Point::TimerSet);
        self.set_deadline(due_ns);
        endpoint.request_wakeup(due_ns);
    }

    pub(super) fn give_back(&self) -> usize {
        let mut state = lock(&self.state);
        let spare = state.spare.give_back();
        let buffers = state.association.buffer_bytes();
        state.association.give_back();
        spare + buffers - state.association.buffer_bytes()
    }

    pub(super) fn has_spare(&self) -> bool {
        let state = lock(&self.state);
        !state.spare.is_empty()
            || state.association.is_idle() && state.association.buffer_bytes() > 0
    }

    /// The state of the link. Nothing if it has no socket to the peer.
    pub(super) fn state(&self) -> Option<ConnectionState> {
        let state = lock(&self.state);
        let first = state.sockets.first()?;
        let association = &state.association;
        let paths = 0..state.sockets.len() as u8;
        Some(ConnectionState {
            local: first.local(),
            peer: self.peer?,
            end: self.end(),
            is_encrypted: state.tx_protection.is_encrypting(),
            frame_bytes: state.frame_bytes,
            transport: *association.statistics(),
            forgotten: state.forgotten,
            paths: paths
                .filter_map(|path| association.path_statistics(path))
                .collect(),
        })
    }

    pub(super) fn next_returned(&self) -> Option<(Header, Return)> {
        lock(&self.state).returned.pop_front()
    }

    pub(super) fn forgotten(&self) -> u64 {
        lock(&self.state).forgotten
    }
}

impl<S: DatagramSocket> State<S> {
    /// So many full frames one call sends; fewer wait for more of their kind.
    fn run_frames(&self) -> usize {
        let datagram_bytes = self.frame_bytes + self.tx_protection.overhead_bytes();
        (DATAGRAM_BYTES_MAX / datagram_bytes).min(BATCH_DATAGRAMS)
    }

    /// When it wants to be looked after, at the latest.
    fn due_ns(&self) -> u64 {
        let mut due_ns = self.association.deadline_ns().unwrap_or(u64::MAX);
        if self.association.close_reason().is_none() {
            due_ns = due_ns.min(self.probing.deadline_ns());
        }
        if let Some(held_ns) = self.held_ns {
            due_ns = due_ns.max(held_ns + HELD_NS);
        }
        if self.backlog.is_some() {
            // Nothing else is sent before: whoever waits for what is due already would try again
            // without a pause.
            due_ns = self.full_ns + FULL_NS;
        }
        due_ns
    }
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        // Nobody else has it, unless a thread of a forked child's parent did.
        let Ok(state) = self.state.try_lock() else {
            return;
        };
        let association = &state.association;
        tracing::debug!(
            number = self.number,
            statistics = ?association.statistics(),
            paths = ?(0..state.sockets.len() as u8).map(|path| association.path_statistics(path)).collect::<Vec<_>>(),
            unreachable_reports = state.unreachable_reports,
            "the end of an association"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many links are full, the sum of their queues is bounded, and the last link still
    /// gets its share.
    #[test]
    fn what_all_links_keep_is_bounded() {
        let (mut queued_bytes, links) = (0, 4_096);
        for _ in 0..links {
            let mut own_bytes = 0;
            while own_bytes < share_bytes(queued_bytes) {
                let frame_bytes = 8_900;
                own_bytes += frame_bytes;
                queued_bytes += frame_bytes;
            }
            assert!((SHARE_BYTES..WAITING_BYTES_MAX + 8_900).contains(&own_bytes));
        }
        assert!(queued_bytes <= POOL_BYTES + links * (SHARE_BYTES + 8_900));
        assert_eq!(share_bytes(0), WAITING_BYTES_MAX);
    }
}
