//! Posts: associations of the engine between interfaces of different nodes, and what their hosts do for them
//! (decision 12).
//!
//! A program's calls offer packets and take those that came, and send what may go by then. Everything else is its host's
//! keeper, which no processor limits: frames are taken in when they come, as far as there is room, answered, and sent again, whether
//! the program runs, sleeps or is stopped. The keeper of a process that was killed does nothing any more, so that
//! its peers find out by asking in vain, idle ones after some silence.

use std::collections::VecDeque;
use std::rc::Rc;

use hamlyn_engine::limits::{CHANNELS_MAX, FRAME_BYTES_MAX, FRAME_BYTES_MIN};
use hamlyn_engine::memory::{self, Unsent};
use hamlyn_engine::packet::Header;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{
    self, Association, Incoming, NackReason, Packets, ReceiveToken, Return, Settings,
};
use hamlyn_host::LossCause;
use hamlyn_link::Refused;
use hamlyn_ring::area::Area;
use smallvec::SmallVec;

use crate::link::channel::Packet;
use crate::time::{Span, Time};
use crate::world::kernel::{Kernel, What};

/// Packets that came back and are kept; of more, the oldest are forgotten.
const RETURNED_MAX: usize = 1_024;
/// Times of an association are at most this, in nanoseconds.
const TIME_MAX_NS: u64 = 60_000_000_000;
/// Until a post is looked after again that has something to do, but not now.
const AGAIN: Span = Span::from_ns(100);
/// In the history, numbers of posts do not meet those of channels.
const MARK: u64 = 1 << 40;

/// A frame that came, of which packets are still to be taken.
#[derive(Debug)]
struct Held {
    bytes: Rc<[u8]>,
    token: ReceiveToken,
}

/// See the module.
#[derive(Debug)]
struct Post {
    association: Association,
    /// This end's interface, and its name of the link.
    interface: u32,
    token: u64,
    /// The post and the interface at the other end.
    peer: [u32; 2],
    frames: VecDeque<Held>,
    /// For so many frames there is room until they are taken.
    frames_max: usize,
    returned: VecDeque<(Header, Return)>,
    forgotten: u64,
    refused: Refused,
    has_lost: bool,
    /// When it is looked after next.
    due: Option<Time>,
    /// Programs are ahead of the world; here time does not go back.
    clock: Time,
    /// The program sleeps until there is room.
    awaited: bool,
    /// The program sleeps until that fence is answered.
    fence: Option<u64>,
    /// The program has no link any more.
    is_left: bool,
    /// The process was killed.
    is_silent: bool,
    /// The program was told of the end.
    is_told: bool,
}

/// All posts of a world.
#[derive(Debug)]
pub(crate) struct Posts {
    patience: Span,
    all: Vec<Post>,
    /// Where frames are written.
    room: Vec<u8>,
}

impl Posts {
    /// Peers that answer nothing for `patience` are given up on.
    pub(crate) fn new(patience: Span) -> Self {
        Self {
            patience,
            all: Vec::new(),
            room: Vec::new(),
        }
    }

    /// What associations are made with: so many frames without acknowledgement, and packets with such a payload.
    fn settings(&self, channels: u32, payload_bytes: usize) -> Settings {
        let defaults = Settings::default();
        let besides = defaults.frame_bytes - defaults.payload_max_bytes();
        let frame_bytes = (payload_bytes + besides).clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX);
        let channels = (channels as usize).clamp(1, CHANNELS_MAX) as u16;
        let timeout_ns = self.patience.as_ns();
        // Retries go on for longer than the patience, so that some are left when much is lost.
        let part_ns = |part: u64| (timeout_ns / part).clamp(1, TIME_MAX_NS);
        Settings {
            channels,
            frame_bytes,
            paths: 1,
            buffer_bytes_max: Settings::one_buffer_bytes(frame_bytes)
                * usize::from(channels.max(2)),
            ready_frames_max: (channels / 2).max(1),
            eager_frames: 4,
            retries_max: 80,
            no_answer_ns: timeout_ns,
            no_progress_ns: timeout_ns.saturating_mul(10).max(1),
            resend_initial_ns: part_ns(100),
            resend_min_ns: part_ns(1_000),
            resend_max_ns: part_ns(50),
            not_ready_backoff_ns: part_ns(4_000),
            // So that an end that only waits learns of a verdict of the other, which nothing may have told it. It asks eight
            // times in that span, so often enough before its own verdict though much is lost.
            keep_alive_ns: part_ns(8),
            acknowledge_frames: (channels / 4).clamp(1, 16),
            acknowledge_ns: part_ns(4_000),
            window_max_frames: channels.max(defaults.window_initial_frames),
            ..defaults
        }
    }

    fn get(&self, post: u32) -> Option<&Post> {
        self.all.get(post as usize)
    }

    fn get_mut(&mut self, post: u32) -> Option<&mut Post> {
        self.all.get_mut(post as usize)
    }
}

impl Post {
    fn clock_ns(&mut self, local: Time) -> u64 {
        self.clock = self.clock.max(local);
        self.clock.as_ns()
    }
}

impl Kernel {
    /// The two posts of a link between these interfaces, which have it under these tokens. Nothing if there is no network.
    pub(crate) fn open_posts(&mut self, ends: [(u32, u64); 2]) -> Option<[u32; 2]> {
        let (channels, payload) = (
            self.settings.link_packets,
            self.settings.packet_payload_bytes,
        );
        let now = self.local();
        let posts = &mut self.frames.as_mut()?.posts;
        let settings = posts.settings(channels, payload);
        let first = posts.all.len() as u32;
        let numbers = [first, first + 1];
        for (at, (interface, token)) in ends.into_iter().enumerate() {
            let association = match Association::new(settings) {
                Ok(association) => association,
                Err(error) => {
                    posts.all.truncate(first as usize);
                    self.fail(format!("no association can be made: {error}"));
                    return None;
                }
            };
            posts.all.push(Post {
                association,
                interface,
                token,
                peer: [numbers[1 - at], ends[1 - at].0],
                frames: VecDeque::new(),
                frames_max: usize::from(settings.channels / 2).max(1),
                returned: VecDeque::new(),
                forgotten: 0,
                refused: Refused::default(),
                has_lost: false,
                due: None,
                clock: now,
                awaited: false,
                fence: None,
                is_left: false,
                is_silent: false,
                is_told: false,
            });
        }
        posts.room.resize(settings.frame_bytes, 0);
        Some(numbers)
    }

    fn post(&mut self, post: u32) -> Option<&mut Post> {
        self.frames.as_mut()?.posts.get_mut(post)
    }

    // For programs.

    /// Whether a short packet would be accepted.
    pub(crate) fn post_has_room(&mut self, post: u32) -> bool {
        self.post(post)
            .is_some_and(|post| post.association.has_room())
    }

    /// The largest payload of its packets.
    pub(crate) fn post_payload_max_bytes(&self, post: u32) -> usize {
        let posts = self.frames.as_ref().map(|frames| &frames.posts);
        let post = posts.and_then(|posts| posts.get(post));
        post.map_or(0, |post| post.association.payload_max_bytes())
    }

    /// Sends a packet.
    pub(crate) fn post_send(&mut self, number: u32, packet: &Packet) -> Result<(), Unsent> {
        self.charge(self.settings.costs.send);
        let local = self.local();
        let post = self.post(number).ok_or(Unsent::Gone)?;
        let data: &[memory::Part<'_, Area>] = &[memory::Part::Bytes(packet.data())];
        post.association
            .offer(&packet.header, packet.metadata(), data)?;
        self.trace.count(
            local,
            [MARK | u64::from(number) << 8 | 2, packet.header.offset],
        );
        self.send_due(number);
        Ok(())
    }

    /// The program is about to sleep until there is room.
    pub(crate) fn post_await_room(&mut self, number: u32, is_needed: bool, fence: Option<u64>) {
        if let Some(post) = self.post(number) {
            post.awaited = is_needed;
            post.fence = fence;
        }
    }

    /// Marks what was accepted so far.
    pub(crate) fn post_fence(&mut self, number: u32) -> Result<u64, Unsent> {
        let post = self.post(number).ok_or(Unsent::Gone)?;
        if post.association.close_reason().is_some() {
            return Err(Unsent::Gone);
        }
        let fence = post.association.mark();
        self.send_due(number);
        Ok(fence)
    }

    /// Whether everything before that fence was acknowledged, or came back.
    pub(crate) fn post_is_answered(&mut self, number: u32, fence: u64) -> Result<bool, Unsent> {
        let post = self.post(number).ok_or(Unsent::Gone)?;
        match post.association.close_reason() {
            Some(_) => Err(Unsent::Gone),
            None => Ok(post.association.is_settled(fence)),
        }
    }

    /// Whether everything that was sent is known to have been taken.
    pub(crate) fn post_is_all_taken(&mut self, number: u32) -> bool {
        self.post(number).is_some_and(|post| {
            let mark = post.association.mark();
            !post.has_lost && post.association.is_settled(mark)
        })
    }

    /// What the peer refused.
    pub(crate) fn post_refused(&mut self, number: u32) -> Refused {
        self.post(number)
            .map_or(Refused::default(), |post| post.refused)
    }

    /// How much came back and was forgotten.
    pub(crate) fn post_forgotten(&mut self, number: u32) -> u64 {
        self.post(number).map_or(0, |post| post.forgotten)
    }

    /// What came back.
    pub(crate) fn post_next_returned(&mut self, number: u32) -> Option<(Header, Return)> {
        self.post(number)?.returned.pop_front()
    }

    /// Whether something has come that was not taken.
    pub(crate) fn post_is_pending(&self, post: u32) -> bool {
        let posts = self.frames.as_ref().map(|frames| &frames.posts);
        let post = posts.and_then(|posts| posts.get(post));
        post.is_some_and(|post| !post.frames.is_empty())
    }

    /// Moves the packets of one frame into the receiver's hands; the frame ends with [`Kernel::post_taken`].
    pub(crate) fn post_collect(
        &mut self,
        post: u32,
        into: &mut VecDeque<Packet>,
    ) -> Option<ReceiveToken> {
        let Held { bytes, token } = self.post(post)?.frames.pop_front()?;
        let bytes = bytes.get(token.range()).unwrap_or_default();
        into.extend(Packets::new(bytes).map(|packet| packet_of(&packet)));
        Some(token)
    }

    /// All packets of a frame were taken, but for those that were refused.
    pub(crate) fn post_taken(
        &mut self,
        number: u32,
        token: ReceiveToken,
        refused: &[(u16, Refusal)],
    ) {
        let local = self.local();
        if let Some(post) = self.post(number) {
            let now_ns = post.clock_ns(local);
            for &(index, refusal) in refused {
                post.association.refused(&token, index, refusal);
            }
            post.association.taken(now_ns, token);
        }
        self.send_due(number);
    }

    /// What was taken is acknowledged as soon as that can be.
    pub(crate) fn post_settle(&mut self, number: u32) {
        self.send_due(number);
    }

    /// Nobody takes the rest of a frame.
    pub(crate) fn post_nack(&mut self, number: u32, token: ReceiveToken) {
        let local = self.local();
        if let Some(post) = self.post(number) {
            let now_ns = post.clock_ns(local);
            let nobody = NackReason::NotResident;
            post.association.nack(now_ns, token, nobody);
        }
    }

    /// The program has no link any more: what is under way is brought to its end, then the peer is told.
    pub(crate) fn hang_up(&mut self, number: u32) {
        let Some(post) = self.post(number) else {
            return;
        };
        if std::mem::replace(&mut post.is_left, true) {
            return;
        }
        while let Some(Held { token, .. }) = self.post(number).and_then(|p| p.frames.pop_front()) {
            self.post_nack(number, token);
        }
        self.send_due(number);
    }

    /// Nothing is sent or answered from now on.
    pub(crate) fn fall_silent(&mut self, number: u32) {
        if let Some(post) = self.post(number) {
            (post.is_silent, post.is_left) = (true, true);
            post.frames.clear();
        }
    }

    // For the network.

    /// A frame has come.
    pub(crate) fn frame_came_to(&mut self, number: u32, frame: u64, bytes: &Rc<[u8]>) {
        let now = self.now();
        let Some(post) = self.post(number).filter(|post| !post.is_silent) else {
            return;
        };
        let now_ns = post.clock_ns(now);
        // Those that wait to be taken are told apart from those that were taken.
        let again = |association: &Association| {
            let statistics = association.statistics();
            statistics.duplicates + statistics.stale
        };
        let before = again(&post.association);
        let incoming = post.association.take_frame(now_ns, 0, bytes);
        let came_before = again(&post.association) != before;
        let interface = post.interface;
        let mut heard = false;
        if let Incoming::Packets(token) = incoming {
            heard = !post.is_left && post.frames.len() < post.frames_max;
            if heard {
                let bytes = Rc::clone(bytes);
                post.frames.push_back(Held { bytes, token });
            } else {
                let full = NackReason::NoRoom;
                post.association.nack(now_ns, token, full);
            }
        }
        self.trace
            .count(now, [MARK | u64::from(number) << 8 | 3, frame]);
        self.trace.note(now, || {
            let fate = match (came_before, heard) {
                (true, _) => "came before",
                (_, true) => "brings packets",
                _ => "brings nothing that is taken",
            };
            format!("frame {frame}, for post {number}, {fate}")
        });
        if heard {
            self.wake_interface(interface);
            self.ring(interface);
        }
        self.send_due(number);
    }

    /// The keeper looks after a post.
    pub(crate) fn look_after(&mut self, number: u32) {
        let now = self.now();
        let Some(post) = self.post(number) else {
            return;
        };
        if post.due.is_some_and(|due| due <= now) {
            post.due = None;
            self.send_due(number);
        }
    }

    /// Sends what is to be sent by now, and sees to what follows.
    fn send_due(&mut self, number: u32) {
        let local = self.local();
        let Some(frames) = &mut self.frames else {
            return;
        };
        let mut room = std::mem::take(&mut frames.posts.room);
        while let Some(post) = self.post(number).filter(|post| !post.is_silent) {
            let now_ns = post.clock_ns(local);
            if post.is_left && post.association.is_idle() {
                post.association.close();
            }
            let Some(outgoing) = post.association.next_frame(now_ns, &mut room) else {
                break;
            };
            let (at, ends) = (post.clock, [post.interface, post.peer[1]]);
            let peer = post.peer[0];
            let bytes = Rc::from(&room[..outgoing.length_bytes]);
            self.send_frame(at, ends, peer, bytes);
        }
        if let Some(frames) = &mut self.frames {
            frames.posts.room = room;
        }
        self.see_to(number);
    }

    /// After anything was done with an association.
    fn see_to(&mut self, number: u32) {
        let now = self.now();
        let Some(post) = self.post(number).filter(|post| !post.is_silent) else {
            return;
        };
        while let Some(returned) = post.association.next_return() {
            if post.returned.len() == RETURNED_MAX {
                post.returned.pop_front();
                post.forgotten += 1;
            }
            let back = (returned.header, returned.reason);
            if let Return::Ended(_) = back.1 {
                post.has_lost = true;
            } else {
                post.refused.packets += 1;
                post.refused.last = Some(back);
            }
            post.returned.push_back(back);
        }
        let association = &post.association;
        let is_answered = |fence: &mut u64| association.is_settled(*fence);
        let is_answered = post.fence.take_if(is_answered).is_some();
        let (interface, token) = (post.interface, post.token);
        let has_room = post.awaited && post.association.has_room();
        if has_room {
            post.awaited = false;
        }
        let close_reason = post.association.close_reason();
        let ended =
            close_reason.filter(|_| !std::mem::replace(&mut post.is_told, close_reason.is_some()));
        let wanted = post.association.deadline_ns().map(Time::from_ns);
        let wanted = wanted.map(|at| if at <= now { now + AGAIN } else { at });
        let wanted = wanted.filter(|at| post.due.is_none_or(|due| *at < due));
        if let Some(at) = wanted {
            post.due = Some(at);
            self.schedule(at, What::Post { post: number });
        }
        if has_room || is_answered {
            self.ring(interface);
            self.wake_interface(interface);
        }
        if let Some(close_reason) = ended {
            self.trace
                .note(now, || format!("post {number} has ended: {close_reason}"));
            self.end_link(
                interface,
                token,
                LossCause::of(close_reason).unwrap_or(LossCause::Closed),
            );
        }
    }
}

/// A packet of a frame, by itself.
fn packet_of(packet: &transport::Packet<'_>) -> Packet {
    let header = packet.header();
    let bytes = match packet {
        transport::Packet::Short(short) => {
            let metadata = short.word.to_le_bytes();
            let mut bytes =
                SmallVec::from_slice(&metadata[..usize::from(header.metadata_length_bytes)]);
            bytes.extend_from_slice(&short.bytes());
            bytes
        }
        transport::Packet::General { metadata, data, .. } => {
            let mut bytes = SmallVec::from_slice(metadata);
            bytes.extend_from_slice(data);
            bytes
        }
    };
    Packet {
        header,
        bytes,
        number: 0,
        announces: None,
    }
}
