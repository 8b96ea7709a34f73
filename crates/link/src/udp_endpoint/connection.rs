//! A connection: one association of the endpoint, its packet protection, its sockets, and the
//! frames that wait to be received.
//!
//! The two halves of its link, the thread that polls the socket and the control thread share a
//! connection. Each holds its lock while it protects or unprotects the frames at hand, and none
//! sleeps meanwhile.

mod fencing;
mod receive_queue;
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
use hamlyn_engine::transport::{Association, CloseReason, Incoming, NackReason, Return};

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
use crate::udp::batch::{BATCH_DATAGRAMS, Batch, Datagram, Inbox};
use crate::udp::datagram_socket::{ConnectionStep, DatagramSocket};
use crate::udp::packet_header::{Kind, PACKET_HEADER_BYTES, association_of};
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
/// Reports in a row that nobody listens at the peer's port, after which it is believed if the peer
/// says nothing. Linux sends six of them to a host at once, and then one in a second.
const UNREACHABLE_REPORTS_MAX: u32 = 8;
/// How long the peer must have said nothing for that.
const UNREACHABLE_NS: u64 = 300_000_000;
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

/// For how long one that ended here says so: its peer asks, if it is silent, each two seconds.
const LINGER_NS: u64 = 5_000_000_000;

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

    /// How the link ended, if it has.
    pub fn end(&self) -> Option<CloseReason> {
        self.end.get().copied()
    }

    /// Delivers the frames in flight if the peer answers; then tells the peer that the link is
    /// closed.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closing = true;
        self.held.store(false, Ordering::Release);
        let received_ns = state.received_ns;
        while let Some(batch) = state.receive_queue.pop_front() {
            self.queued_bytes
                .fetch_sub(batch.packet_bytes(), Ordering::Relaxed);
            state.nack(received_ns, batch);
        }
        self.waiting.store(0, Ordering::Release);
        // The next poll does the rest.
        self.set_deadline(0);
        self.timers.note_change();
    }

    /// Has the link looked after at that time, at the latest, if the endpoint is polled then.
    pub(super) fn set_deadline(&self, deadline_ns: u64) {
        // Sequentially consistent: either this sees that the link is armed for later, or who
        // disarms it sees the deadline.
        self.deadline_ns.store(deadline_ns, Ordering::SeqCst);
        let place = super::place_of(self.number);
        self.timers.arm(place, &self.armed, deadline_ns);
    }

    /// The peer has given the link up without a word that came: it asks for another.
    pub fn abort(&self, endpoint: &UdpEndpoint<S>) {
        let mut state = lock(&self.state);
        state.association.fail(CloseReason::ClosedByPeer);
        self.leave(&mut state, endpoint, endpoint.now_ns());
    }

    /// When the peer was heard last, or when the link began, in nanoseconds of the endpoint's
    /// clock.
    pub fn received_ns(&self) -> u64 {
        lock(&self.state).received_ns
    }

    /// True if it has ended, and nobody has it.
    pub(super) fn is_over(&self) -> bool {
        self.end().is_some() && !self.is_held()
    }

    /// True if it is over, and still says so to a peer that has not heard it.
    pub(super) fn lingers(&self, now_ns: u64) -> bool {
        now_ns < self.forget_ns.load(Ordering::Relaxed)
    }

    /// True if it was one of those that linger.
    pub(super) fn has_lingered(&self) -> bool {
        self.forget_ns.load(Ordering::Relaxed) != 0
    }

    /// Whether somebody has the link.
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
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

    /// The frames that wait for longest, all that came with them.
    pub(super) fn next_batch(&self) -> Option<ReceivedBatch> {
        if !self.has_frames() {
            return None;
        }
        let mut state = lock(&self.state);
        let batch = state.receive_queue.pop_front();
        let bytes = batch.as_ref().map_or(0, ReceivedBatch::packet_bytes);
        state.waiting_bytes -= bytes;
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.waiting
            .store(state.receive_queue.len(), Ordering::Release);
        batch
    }

    /// All packets of these frames were received. Frames that came together are acknowledged
    /// together.
    pub(super) fn taken(&self, endpoint: &UdpEndpoint<S>, mut batch: ReceivedBatch) {
        let mut state = lock(&self.state);
        // Their acknowledgements are due no later than if the frames had been received at once.
        let received_ns = state.received_ns;
        state.take(received_ns, &mut batch);
        state.spare.put(batch);
        let due_ns = state
            .association
            .acknowledgement_due_ns()
            .unwrap_or(u64::MAX);
        if due_ns <= received_ns {
            self.run_timers_locked(&mut state, endpoint, endpoint.now_ns());
        } else if due_ns < self.deadline_ns() {
            // Nothing else has changed.
            self.request_wakeup(endpoint, due_ns);
        }
    }

    /// Acknowledges received frames as soon as possible.
    pub(super) fn acknowledge(&self, endpoint: &UdpEndpoint<S>) {
        self.run_timers(endpoint, endpoint.now_ns());
    }

    /// Nobody takes the rest of these frames.
    pub(super) fn nack(&self, mut batch: ReceivedBatch) {
        let mut state = lock(&self.state);
        let received_ns = state.received_ns;
        state.take(received_ns, &mut batch);
        state.nack(received_ns, batch);
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

    /// Takes in the next datagram of the inbox, which is for this connection, and those after it as
    /// long as they are, too; and sends what is to be sent then. Whether there is something to be
    /// taken.
    pub(super) fn take_in(
        &self,
        endpoint: &UdpEndpoint<S>,
        now_ns: u64,
        late_ns: u64,
        inbox: &mut Inbox,
    ) -> bool {
        let mut state = lock(&self.state);
        let state = &mut *state;
        state.share_bytes =
            share_bytes(self.queued_bytes.load(Ordering::Relaxed)).min(endpoint.waiting_bytes_max);
        while let Some(datagram) = inbox.next() {
            state.take_in(endpoint, now_ns, late_ns, datagram);
            if inbox.peek().and_then(association_of) != Some(self.number) {
                break;
            }
        }
        let came = !state.fresh.is_empty();
        if came {
            let batch = state.spare.keep(&mut state.fresh, inbox);
            self.queued_bytes
                .fetch_add(batch.packet_bytes(), Ordering::Relaxed);
            state.receive_queue.push_back(batch);
            self.waiting
                .store(state.receive_queue.len(), Ordering::Release);
            self.announcer.announce();
        }
        // If full frames wait for more, nothing is due yet: the sender that fills these frames
        // sends them soon, with the acknowledgements.
        state.follow(now_ns);
        let due_ns = state.due_ns();
        if due_ns <= now_ns || state.is_closing {
            self.run_timers_locked(state, endpoint, now_ns);
        } else {
            self.leave_until(state, endpoint, now_ns, due_ns);
        }
        came
    }

    /// To be called before the lock is given back.
    fn leave(&self, state: &mut State<S>, endpoint: &UdpEndpoint<S>, now_ns: u64) {
        state.follow(now_ns);
        let due_ns = state.due_ns();
        self.leave_until(state, endpoint, now_ns, due_ns);
    }

    /// As [`Connection::leave`], if frames are as long as the paths carry, and it is known when it
    /// wants to be looked after.
    fn leave_until(
        &self,
        state: &mut State<S>,
        endpoint: &UdpEndpoint<S>,
        now_ns: u64,
        due_ns: u64,
    ) {
        if let Some(close_reason) = state.association.close_reason() {
            S::observe(self.number, || ConnectionStep::Ended(close_reason));
        }
        while let Some(returned) = state.association.next_return() {
            S::observe(self.number, || ConnectionStep::Returned(returned));
            if state.returned.len() == RETURNED_MAX {
                state.returned.pop_front();
                state.forgotten += 1;
            }
            let back = (returned.header, returned.reason);
            if let Return::Ended(_) = back.1 {
                state.has_lost = true;
            } else {
                state.refused.packets += 1;
                state.refused.last = Some(back);
            }
            state.returned.push_back(back);
            endpoint.signal();
        }
        // After what came back, which an answered fence must know of.
        if state.answer_fence() {
            endpoint.signal();
        }
        let payload_max_bytes = state.association.payload_max_bytes();
        self.payload_max_bytes
            .store(payload_max_bytes, Ordering::Relaxed);
        if !self.has_room.load(Ordering::Relaxed) && state.association.has_room() {
            self.has_room.store(true, Ordering::Relaxed);
            endpoint.signal();
        }
        if state.unreachable_reports >= UNREACHABLE_REPORTS_MAX
            && now_ns.saturating_sub(state.received_ns) > UNREACHABLE_NS
        {
            state.association.fail(CloseReason::PeerDead);
        }
        if let Some(close_reason) = state.association.close_reason()
            && self.end().is_none()
        {
            if close_reason == CloseReason::Closed && endpoint.admits_lingering() {
                let forget_ns = now_ns.saturating_add(LINGER_NS);
                self.forget_ns.store(forget_ns, Ordering::Relaxed);
                state.spare.give_back();
                state.association.give_back();
            }
            // Last, as it may be forgotten then.
            let _ = self.end.set(close_reason);
            self.timers.note_change();
            endpoint.report_end();
        }
        let mut due_ns = due_ns;
        if state.is_closing && self.end().is_some() {
            let forget_ns = self.forget_ns.load(Ordering::Relaxed);
            if forget_ns <= now_ns {
                self.timers.note_change();
            }
            due_ns = due_ns.min(forget_ns.max(now_ns));
        }
        self.request_wakeup(endpoint, due_ns);
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

    /// A datagram has come.
    fn take_in(
        &mut self,
        endpoint: &UdpEndpoint<S>,
        now_ns: u64,
        late_ns: u64,
        datagram: Datagram<'_>,
    ) {
        let datagram_bytes = datagram.bytes.len();
        let Ok(opened) = self.rx_protection.unprotect(datagram.bytes) else {
            return;
        };
        self.received_ns = now_ns;
        (self.unreachable_reports, self.answered) = (0, self.tx_protection.packets());
        let (path, plain) = (opened.path, opened.frame);
        match opened.kind {
            Kind::Data => {}
            Kind::Probe => return self.probing.came(path, plain, datagram_bytes),
            Kind::ProbeAnswer => return self.probing.answered(now_ns, path, plain),
            _ => return,
        }
        if let Some(tap) = &self.tap {
            let to = self.own_address(endpoint, path);
            tap.came(path, datagram.source.unwrap_or(to), to, plain);
        }
        S::observe(self.number, || ConnectionStep::Came(plain));
        let association = &mut self.association;
        let incoming = association.take_delayed_frame(now_ns, late_ns, path, plain);
        let Incoming::Packets(token) = incoming else {
            return;
        };
        if self.is_closing || self.waiting_bytes >= self.share_bytes {
            let why = match self.is_closing {
                true => NackReason::Leaving,
                false => NackReason::NoRoom,
            };
            self.association.nack(now_ns, token, why);
            return;
        }
        S::observe(self.number, || ConnectionStep::Queued {
            channel: token.channel(),
            sequence: token.sequence(),
        });
        let received = ReceivedFrame::new(token, datagram.at + PACKET_HEADER_BYTES);
        self.waiting_bytes += received.packet_bytes();
        self.fresh.push(received);
    }

    /// The interface has seen all packets of those frames that were read to their end.
    fn take(&mut self, now_ns: u64, batch: &mut ReceivedBatch) {
        batch.take_through(|token, refusals| {
            for &(_, index, refusal) in refusals {
                self.association.refused(&token, index, refusal);
            }
            self.association.taken(now_ns, token);
        });
    }

    /// Nobody takes these frames, as far as they were not taken yet.
    fn nack(&mut self, received_ns: u64, batch: ReceivedBatch) {
        for token in batch.into_tokens() {
            let nobody = NackReason::Leaving;
            self.association.nack(received_ns, token, nobody);
        }
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
