//! A post: one association of the wire, with what seals and opens its frames, and the frames that wait to be taken.
//!
//! It is shared by the two ends of its link, whoever looks at the socket, and the attendant; each holds its lock
//! for as long as it takes to seal or to open what there is, and none sleeps meanwhile.

mod arrivals;
mod run;
mod sending;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use hamlyn_engine::memory::Unsent;
use hamlyn_engine::packet::Header;
use hamlyn_engine::transport::{Association, CloseReason, Incoming, NackReason, Return};

pub(super) use arrivals::Arrivals;
use arrivals::{Arrival, Spare};
use run::Run;

use super::probing::Probing;
use super::state::WireState;
use super::{Wire, lock};
use crate::trace::Tap;
use crate::udp::DATAGRAM_BYTES_MAX;
use crate::udp::batch::{BATCH_DATAGRAMS, Batch, Datagram, Inbox};
use crate::udp::envelope::{ENVELOPE_BYTES, Kind, association_of};
use crate::udp::seal::{Opener, Sealer};
use crate::udp::socket::Flow;

/// Bytes of frames that wait to be taken; for more the sender is told that there is no room. Twice what one of our kind may have under way.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// The same for all links of a wire, but for what each may keep in any case.
const POOL_BYTES: usize = 256 << 20;
const SHARE_BYTES: usize = 64 << 10;
/// How long full frames wait for more of their kind, unless nothing follows.
const HELD_NS: u64 = 10_000;
/// How long after a full socket sending is tried again.
const FULL_NS: u64 = 50_000;
/// Reports in a row that nobody listens at the peer's port, after which it is believed if the peer says nothing. Linux sends six of
/// them to a host at once, and then one in a second.
const UNHEARD_MAX: u32 = 8;
/// How long the peer must have said nothing for that.
const UNHEARD_NS: u64 = 300_000_000;
/// Packets that came back and are kept; of more, the oldest are forgotten and counted.
const RETURNED_MAX: usize = 1_024;

/// How many bytes one link may keep while all of a wire keep so many: a quarter of what is left, so that whoever comes later finds something.
fn share_bytes(kept_bytes: usize) -> usize {
    let left = POOL_BYTES.saturating_sub(kept_bytes) / 4;
    left.clamp(SHARE_BYTES, WAITING_BYTES_MAX)
}

/// What a post is made of.
pub struct PostParts {
    /// The transport.
    pub association: Association,
    /// For frames to the peer.
    pub sealer: Sealer,
    /// For frames from the peer.
    pub opener: Opener,
    /// The ways to the peer, each connected; as many as the association has paths.
    pub flows: Vec<Flow>,
    /// Where its frames are written to, too.
    pub tap: Option<Tap>,
}

/// See the module.
pub struct Post {
    /// By which number frames for it go.
    number: u32,
    /// Where its frames go.
    pub(super) peer: Option<SocketAddr>,
    state: Mutex<State>,
    payload_max_bytes: AtomicUsize,
    /// The longest datagram, of either direction.
    datagram_bytes: usize,
    /// Frames that wait.
    waiting: AtomicUsize,
    /// Bytes that all links of the wire keep.
    kept_bytes: Arc<AtomicUsize>,
    /// Whether a packet would find room.
    has_room: AtomicBool,
    /// When it wants to be looked after, at the latest.
    deadline_ns: AtomicU64,
    /// Whether somebody has the link.
    held: AtomicBool,
    /// How it ended.
    end: OnceLock<CloseReason>,
}

struct State {
    association: Association,
    sealer: Sealer,
    opener: Opener,
    flows: Vec<Flow>,
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
    arrivals: VecDeque<Arrivals>,
    waiting_bytes: usize,
    /// How many may wait at present.
    share_bytes: usize,
    /// Frames of a call that is being looked through.
    fresh: Vec<Arrival>,
    spare: Spare,
    /// A frame that goes alone, as a datagram.
    aside: Vec<u8>,
    /// What the socket of that path had no room for.
    stuck: Option<(u8, Batch)>,
    unheard: u32,
    /// Datagrams that had been sent when the peer was heard last.
    answered: u64,
    heard_ns: u64,
    /// Nobody takes what comes any more.
    is_left: bool,
    /// What came back, the oldest first; and how much was forgotten.
    returned: VecDeque<(Header, Return)>,
    forgotten: u64,
}

impl Post {
    pub(super) fn new(
        number: u32,
        parts: PostParts,
        now_ns: u64,
        kept_bytes: Arc<AtomicUsize>,
    ) -> Self {
        let PostParts {
            mut association,
            sealer,
            opener,
            flows,
            tap,
        } = parts;
        let frame_bytes_max = association.settings().frame_bytes;
        let datagram_bytes = frame_bytes_max + sealer.overhead_bytes();
        let probing = Probing::new(flows.len(), datagram_bytes, now_ns);
        let frame_bytes = probing.datagram_bytes() - sealer.overhead_bytes();
        association.limit_frames(frame_bytes);
        Self {
            number,
            peer: flows.first().and_then(Flow::peer),
            payload_max_bytes: AtomicUsize::new(association.payload_max_bytes()),
            datagram_bytes,
            waiting: AtomicUsize::new(0),
            kept_bytes,
            has_room: AtomicBool::new(true),
            // The first probe is due.
            deadline_ns: AtomicU64::new(0),
            held: AtomicBool::new(true),
            end: OnceLock::new(),
            state: Mutex::new(State {
                association,
                sealer,
                opener,
                flows,
                tap,
                probing,
                is_cutting: false,
                run: Run::default(),
                held_ns: None,
                frame_bytes_max,
                frame_bytes: frame_bytes.min(frame_bytes_max),
                arrivals: VecDeque::new(),
                waiting_bytes: 0,
                share_bytes: 0,
                fresh: Vec::new(),
                spare: Spare::default(),
                aside: vec![0; datagram_bytes],
                stuck: None,
                unheard: 0,
                answered: 0,
                heard_ns: now_ns,
                is_left: false,
                returned: VecDeque::new(),
                forgotten: 0,
            }),
        }
    }

    /// By which number frames for it go.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The system reports that nobody listens there.
    pub(super) fn note_unheard(&self) {
        lock(&self.state).note_unheard();
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

    /// What is under way is brought to its end if the peer answers; then the peer is told that the link is closed.
    pub fn hang_up(&self) {
        let mut state = lock(&self.state);
        state.is_left = true;
        self.held.store(false, Ordering::Release);
        let heard_ns = state.heard_ns;
        while let Some(arrivals) = state.arrivals.pop_front() {
            self.kept_bytes
                .fetch_sub(arrivals.packet_bytes(), Ordering::Relaxed);
            state.nack(heard_ns, arrivals);
        }
        self.waiting.store(0, Ordering::Release);
        // Whoever looks next sees to the rest.
        self.deadline_ns.store(0, Ordering::Release);
    }

    /// The peer has given the link up without a word that came: it asks for another.
    pub fn forsake(&self, wire: &Wire) {
        let mut state = lock(&self.state);
        state.association.fail(CloseReason::ClosedByPeer);
        self.leave(&mut state, wire, wire.now_ns());
    }

    /// When the peer was heard last, or when the link began, in nanoseconds of the wire's clock.
    pub fn heard_ns(&self) -> u64 {
        lock(&self.state).heard_ns
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
        self.deadline_ns.load(Ordering::Acquire)
    }

    /// Sends something.
    pub(super) fn offer(
        &self,
        wire: &Wire,
        give: impl FnOnce(&mut Association) -> Result<(), Unsent>,
    ) -> Result<(), Unsent> {
        let mut state = lock(&self.state);
        let given = give(&mut state.association);
        // What can go only after an acknowledgement is sent when that comes.
        if state.association.has_fresh() {
            let now_ns = wire.now_ns();
            state.pump(wire, now_ns);
            self.leave(&mut state, wire, now_ns);
        }
        self.note_room(&mut state, given)
    }

    /// As [`Post::offer`], of a packet that fills a frame, so that others are likely to follow at once: it waits for them. Whether it does: then
    /// somebody must [`Post::turn`] soon, which whoever looks will do.
    pub(super) fn offer_part(
        &self,
        wire: &Wire,
        give: impl FnOnce(&mut Association) -> Result<(), Unsent>,
    ) -> Result<bool, Unsent> {
        let mut state = lock(&self.state);
        let given = give(&mut state.association);
        let ready = state.association.ready();
        let waits = given.is_ok() && ready < state.run_frames();
        if !waits || state.held_ns.is_none() {
            let now_ns = wire.now_ns();
            match waits {
                true => state.held_ns = Some(now_ns),
                false => state.pump(wire, now_ns),
            }
            self.leave(&mut state, wire, now_ns);
        }
        self.note_room(&mut state, given).map(|()| waits)
    }

    /// Whoever found no room is told when there is some.
    #[inline]
    fn note_room(&self, state: &mut State, given: Result<(), Unsent>) -> Result<(), Unsent> {
        if given.is_err() && !state.association.has_room() {
            self.has_room.store(false, Ordering::Relaxed);
        }
        given
    }

    /// The frames that wait for longest, all that came with them.
    pub(super) fn next_arrivals(&self) -> Option<Arrivals> {
        if !self.has_frames() {
            return None;
        }
        let mut state = lock(&self.state);
        let arrivals = state.arrivals.pop_front();
        let bytes = arrivals.as_ref().map_or(0, Arrivals::packet_bytes);
        state.waiting_bytes -= bytes;
        self.kept_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.waiting.store(state.arrivals.len(), Ordering::Release);
        arrivals
    }

    /// All packets of these frames were taken. What came together is acknowledged together.
    pub(super) fn taken(&self, wire: &Wire, mut arrivals: Arrivals) {
        let mut state = lock(&self.state);
        // What is to be said of them is due no later than if they were taken at once.
        let heard_ns = state.heard_ns;
        state.take(heard_ns, &mut arrivals);
        state.spare.put(arrivals);
        let due_ns = state
            .association
            .acknowledgement_due_ns()
            .unwrap_or(u64::MAX);
        if due_ns <= heard_ns {
            self.turn_locked(&mut state, wire, wire.now_ns());
        } else if due_ns < self.deadline_ns() {
            // Nothing else has changed.
            self.want(wire, due_ns);
        }
    }

    /// What came is acknowledged as soon as that can be.
    pub(super) fn acknowledge(&self, wire: &Wire) {
        self.turn(wire, wire.now_ns());
    }

    /// Nobody takes the rest of these frames.
    pub(super) fn nack(&self, mut arrivals: Arrivals) {
        let mut state = lock(&self.state);
        let heard_ns = state.heard_ns;
        state.take(heard_ns, &mut arrivals);
        state.nack(heard_ns, arrivals);
    }

    /// Sends what is to be sent by now.
    pub(super) fn turn(&self, wire: &Wire, now_ns: u64) {
        let mut state = lock(&self.state);
        self.turn_locked(&mut state, wire, now_ns);
    }

    fn turn_locked(&self, state: &mut State, wire: &Wire, now_ns: u64) {
        state.pump(wire, now_ns);
        self.leave(state, wire, now_ns);
        // Now, for it was perhaps only an acknowledgement that was to be sent, and nothing would come back to it.
        if state.is_left
            && state.association.is_idle()
            && state.association.close_reason().is_none()
        {
            state.association.close();
            state.pump(wire, now_ns);
            self.leave(state, wire, now_ns);
        }
    }

    /// Takes in the next datagram of the inbox, which is for this post, and those after it as long as they are, too; and sends what is to be sent
    /// then. Whether there is something to be taken.
    pub(super) fn take_in(
        &self,
        wire: &Wire,
        now_ns: u64,
        late_ns: u64,
        inbox: &mut Inbox,
    ) -> bool {
        let mut state = lock(&self.state);
        let state = &mut *state;
        state.share_bytes = share_bytes(self.kept_bytes.load(Ordering::Relaxed));
        while let Some(datagram) = inbox.next() {
            state.take_in(wire, now_ns, late_ns, datagram);
            if inbox.peek().and_then(association_of) != Some(self.number) {
                break;
            }
        }
        let came = !state.fresh.is_empty();
        if came {
            let arrivals = state.spare.keep(&mut state.fresh, inbox);
            self.kept_bytes
                .fetch_add(arrivals.packet_bytes(), Ordering::Relaxed);
            state.arrivals.push_back(arrivals);
            self.waiting.store(state.arrivals.len(), Ordering::Release);
        }
        // If full frames wait for more, it is not yet due: whoever fills these sends them soon, and what is to be said with them.
        state.follow(now_ns);
        let due_ns = state.due_ns(now_ns);
        if due_ns <= now_ns || state.is_left {
            self.turn_locked(state, wire, now_ns);
        } else {
            self.leave_until(state, wire, now_ns, due_ns);
        }
        came
    }

    /// To be called before the lock is given back.
    fn leave(&self, state: &mut State, wire: &Wire, now_ns: u64) {
        state.follow(now_ns);
        let due_ns = state.due_ns(now_ns);
        self.leave_until(state, wire, now_ns, due_ns);
    }

    /// As [`Post::leave`], if frames are as long as the paths carry, and it is known when it wants to be looked after.
    fn leave_until(&self, state: &mut State, wire: &Wire, now_ns: u64, due_ns: u64) {
        while let Some(returned) = state.association.next_return() {
            if state.returned.len() == RETURNED_MAX {
                state.returned.pop_front();
                state.forgotten += 1;
            }
            let back = (returned.header, returned.reason);
            state.returned.push_back(back);
            wire.stir();
        }
        let payload_max_bytes = state.association.payload_max_bytes();
        self.payload_max_bytes
            .store(payload_max_bytes, Ordering::Relaxed);
        if !self.has_room.load(Ordering::Relaxed) && state.association.has_room() {
            self.has_room.store(true, Ordering::Relaxed);
            wire.stir();
        }
        if state.unheard >= UNHEARD_MAX && now_ns.saturating_sub(state.heard_ns) > UNHEARD_NS {
            state.association.fail(CloseReason::PeerDead);
        }
        if let Some(close_reason) = state.association.close_reason()
            && self.end.set(close_reason).is_ok()
        {
            wire.tell_of_end();
        }
        if state.is_left && self.end().is_some() {
            // It can be forgotten.
            wire.wants(now_ns);
        }
        self.want(wire, due_ns);
    }

    fn want(&self, wire: &Wire, due_ns: u64) {
        self.deadline_ns.store(due_ns, Ordering::Release);
        wire.wants(due_ns);
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

    /// What is known of the link. Nothing if it has no way to the peer.
    pub(super) fn state(&self) -> Option<WireState> {
        let state = lock(&self.state);
        let first = state.flows.first()?;
        let association = &state.association;
        let paths = 0..state.flows.len() as u8;
        Some(WireState {
            local: first.local(),
            peer: self.peer?,
            end: self.end(),
            is_sealed: state.sealer.is_encrypting(),
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
}

impl State {
    /// So many full frames one call sends; fewer wait for more of their kind.
    fn run_frames(&self) -> usize {
        let datagram_bytes = self.frame_bytes + self.sealer.overhead_bytes();
        (DATAGRAM_BYTES_MAX / datagram_bytes).min(BATCH_DATAGRAMS)
    }

    /// When it wants to be looked after, at the latest.
    fn due_ns(&self, now_ns: u64) -> u64 {
        let mut due_ns = self.association.deadline_ns().unwrap_or(u64::MAX);
        if self.association.close_reason().is_none() {
            due_ns = due_ns.min(self.probing.deadline_ns());
        }
        if let Some(held_ns) = self.held_ns {
            due_ns = due_ns.max(held_ns + HELD_NS);
        }
        if self.stuck.is_some() {
            due_ns = due_ns.min(now_ns + FULL_NS);
        }
        due_ns
    }

    /// A datagram has come.
    fn take_in(&mut self, wire: &Wire, now_ns: u64, late_ns: u64, datagram: Datagram<'_>) {
        let datagram_bytes = datagram.bytes.len();
        let Ok(opened) = self.opener.open(datagram.bytes) else {
            return;
        };
        self.heard_ns = now_ns;
        (self.unheard, self.answered) = (0, self.sealer.packets());
        let (path, plain) = (opened.path, opened.frame);
        match opened.kind {
            Kind::Data => {}
            Kind::Probe => return self.probing.came(path, plain, datagram_bytes),
            Kind::ProbeAnswer => return self.probing.answered(now_ns, path, plain),
            _ => return,
        }
        if let Some(tap) = &self.tap {
            let to = self.own_address(wire, path);
            tap.came(path, datagram.source.unwrap_or(to), to, plain);
        }
        let association = &mut self.association;
        let incoming = association.take_delayed_frame(now_ns, late_ns, path, plain);
        let Incoming::Packets(token) = incoming else {
            return;
        };
        if self.is_left || self.waiting_bytes >= self.share_bytes {
            self.association.nack(now_ns, token, NackReason::NoRoom);
            return;
        }
        let arrival = Arrival::new(token, datagram.at + ENVELOPE_BYTES);
        self.waiting_bytes += arrival.packet_bytes();
        self.fresh.push(arrival);
    }

    /// The interface has seen all packets of those frames that were read to their end.
    fn take(&mut self, now_ns: u64, arrivals: &mut Arrivals) {
        arrivals.take_through(|token, refusals| {
            for &(_, index, refusal) in refusals {
                self.association.refused(&token, index, refusal);
            }
            self.association.taken(now_ns, token);
        });
    }

    /// Nobody takes these frames, as far as they were not taken yet.
    fn nack(&mut self, heard_ns: u64, arrivals: Arrivals) {
        for token in arrivals.into_tokens() {
            let nobody = NackReason::NotResident;
            self.association.nack(heard_ns, token, nobody);
        }
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        let state = lock(&self.state);
        let association = &state.association;
        tracing::debug!(
            number = self.number,
            statistics = ?association.statistics(),
            paths = ?(0..state.flows.len() as u8).map(|path| association.path_statistics(path)).collect::<Vec<_>>(),
            unheard = state.unheard,
            "the end of an association"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many links are stuffed, what all keep has its limit, and whoever comes last still gets its share.
    #[test]
    fn what_all_links_keep_is_bounded() {
        let (mut kept_bytes, links) = (0, 4_096);
        for _ in 0..links {
            let mut own_bytes = 0;
            while own_bytes < share_bytes(kept_bytes) {
                let frame_bytes = 8_900;
                own_bytes += frame_bytes;
                kept_bytes += frame_bytes;
            }
            assert!((SHARE_BYTES..WAITING_BYTES_MAX + 8_900).contains(&own_bytes));
        }
        assert!(kept_bytes <= POOL_BYTES + links * (SHARE_BYTES + 8_900));
        assert_eq!(share_bytes(0), WAITING_BYTES_MAX);
    }
}
