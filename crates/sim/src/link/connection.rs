//! Connections: associations of the engine between interfaces of different nodes, and what their hosts do for them
//! (decision 12).
//!
//! A program's calls offer packets and take those that came, and send what may go by then. Everything else is its host's
//! driver, which no processor limits: frames are taken in when they come, as far as there is room, answered, and sent again, whether
//! the program runs, sleeps or is stopped. The driver of a process that was killed does nothing any more, so that
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
/// Until a connection is looked after again that has something to do, but not now.
const AGAIN: Span = Span::from_ns(100);
/// In the history, numbers of connections do not meet those of channels.
const MARK: u64 = 1 << 40;

/// A frame that came, of which packets are still to be taken.
#[derive(Debug)]
struct Held {
    bytes: Rc<[u8]>,
    token: ReceiveToken,
}

/// See the module.
#[derive(Debug)]
struct Connection {
    association: Association,
    /// This end's interface, and its name of the link.
    interface: u32,
    token: u64,
    /// The connection and the interface at the other end.
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

/// All connections of a world.
#[derive(Debug)]
pub(crate) struct Connections {
    timeout: Span,
    all: Vec<Connection>,
    /// Where frames are written.
    room: Vec<u8>,
}

impl Connections {
    /// Peers that answer nothing for `timeout` are given up on.
    pub(crate) fn new(timeout: Span) -> Self {
        Self {
            timeout,
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
        let timeout_ns = self.timeout.as_ns();
        // Retries go on for longer than the timeout, so that some are left when much is lost.
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

    fn get(&self, connection: u32) -> Option<&Connection> {
        self.all.get(connection as usize)
    }

    fn get_mut(&mut self, connection: u32) -> Option<&mut Connection> {
        self.all.get_mut(connection as usize)
    }
}

impl Connection {
    fn clock_ns(&mut self, local: Time) -> u64 {
        self.clock = self.clock.max(local);
        self.clock.as_ns()
    }
}

impl Kernel {
    /// The two connections of a link between these interfaces, which have it under these tokens. Nothing if there is no network.
    pub(crate) fn open_connections(&mut self, ends: [(u32, u64); 2]) -> Option<[u32; 2]> {
        let (channels, payload) = (
            self.settings.link_packets,
            self.settings.packet_payload_bytes,
        );
        let now = self.local();
        let connections = &mut self.frames.as_mut()?.connections;
        let settings = connections.settings(channels, payload);
        let first = connections.all.len() as u32;
        let numbers = [first, first + 1];
        for (at, (interface, token)) in ends.into_iter().enumerate() {
            let association = match Association::new(settings) {
                Ok(association) => association,
                Err(error) => {
                    connections.all.truncate(first as usize);
                    self.fail(format!("no association can be made: {error}"));
                    return None;
                }
            };
            connections.all.push(Connection {
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
        connections.room.resize(settings.frame_bytes, 0);
        Some(numbers)
    }

    fn connection(&mut self, connection: u32) -> Option<&mut Connection> {
        self.frames.as_mut()?.connections.get_mut(connection)
    }

    /// The connection, unless it has fallen silent.
    fn live_connection(&mut self, number: u32) -> Option<&mut Connection> {
        let connection = self.connection(number)?;
        (!connection.is_silent).then_some(connection)
    }

    // For programs.

    /// Whether a short packet would be accepted.
    pub(crate) fn connection_has_room(&mut self, connection: u32) -> bool {
        self.connection(connection)
            .is_some_and(|connection| connection.association.has_room())
    }

    /// The largest payload of its packets.
    pub(crate) fn connection_payload_max_bytes(&self, connection: u32) -> usize {
        let connections = self.frames.as_ref().map(|frames| &frames.connections);
        let connection = connections.and_then(|connections| connections.get(connection));
        connection.map_or(0, |connection| connection.association.payload_max_bytes())
    }

    /// Sends a packet.
    pub(crate) fn connection_send(&mut self, number: u32, packet: &Packet) -> Result<(), Unsent> {
        self.charge(self.settings.costs.send);
        let local = self.local();
        let connection = self.connection(number).ok_or(Unsent::Gone)?;
        let data: &[memory::Part<'_, Area>] = &[memory::Part::Bytes(packet.data())];
        connection
            .association
            .offer(&packet.header, packet.metadata(), data)?;
        self.trace.count(
            local,
            [MARK | u64::from(number) << 8 | 2, packet.header.offset],
        );
        self.send_due(number);
        Ok(())
    }

    /// The program is about to sleep until there is room.
    pub(crate) fn connection_await_room(
        &mut self,
        number: u32,
        is_needed: bool,
        fence: Option<u64>,
    ) {
        if let Some(connection) = self.connection(number) {
            connection.awaited = is_needed;
            connection.fence = fence;
        }
    }

    /// Marks what was accepted so far.
    pub(crate) fn connection_fence(&mut self, number: u32) -> Result<u64, Unsent> {
        let connection = self.connection(number).ok_or(Unsent::Gone)?;
        if connection.association.close_reason().is_some() {
            return Err(Unsent::Gone);
        }
        let fence = connection.association.mark();
        self.send_due(number);
        Ok(fence)
    }

    /// Whether everything before that fence was acknowledged, or came back.
    pub(crate) fn connection_is_answered(
        &mut self,
        number: u32,
        fence: u64,
    ) -> Result<bool, Unsent> {
        let connection = self.connection(number).ok_or(Unsent::Gone)?;
        match connection.association.close_reason() {
            Some(_) => Err(Unsent::Gone),
            None => Ok(connection.association.is_settled(fence)),
        }
    }

    /// Whether everything that was sent is known to have been taken.
    pub(crate) fn connection_is_all_taken(&mut self, number: u32) -> bool {
        self.connection(number).is_some_and(|connection| {
            let mark = connection.association.mark();
            !connection.has_lost && connection.association.is_settled(mark)
        })
    }

    /// What the peer refused.
    pub(crate) fn connection_refused(&mut self, number: u32) -> Refused {
        self.connection(number)
            .map_or(Refused::default(), |connection| connection.refused)
    }

    /// How much came back and was forgotten.
    pub(crate) fn connection_forgotten(&mut self, number: u32) -> u64 {
        self.connection(number)
            .map_or(0, |connection| connection.forgotten)
    }

    /// What came back.
    pub(crate) fn connection_next_returned(&mut self, number: u32) -> Option<(Header, Return)> {
        self.connection(number)?.returned.pop_front()
    }

    /// Whether something has come that was not taken.
    pub(crate) fn connection_is_pending(&self, connection: u32) -> bool {
        let connections = self.frames.as_ref().map(|frames| &frames.connections);
        let connection = connections.and_then(|connections| connections.get(connection));
        connection.is_some_and(|connection| !connection.frames.is_empty())
    }

    /// Moves the packets of one frame into the receiver's hands; the frame ends with [`Kernel::connection_taken`].
    pub(crate) fn connection_collect(
        &mut self,
        connection: u32,
        into: &mut VecDeque<Packet>,
    ) -> Option<ReceiveToken> {
        let Held { bytes, token } = self.connection(connection)?.frames.pop_front()?;
        let bytes = bytes.get(token.range()).unwrap_or_default();
        into.extend(Packets::new(bytes).map(|packet| packet_of(&packet)));
        Some(token)
    }

    /// All packets of a frame were taken, but for those that were refused.
    pub(crate) fn connection_taken(
        &mut self,
        number: u32,
        token: ReceiveToken,
        refused: &[(u16, Refusal)],
    ) {
        let local = self.local();
        if let Some(connection) = self.connection(number) {
            let now_ns = connection.clock_ns(local);
            for &(index, refusal) in refused {
                connection.association.refused(&token, index, refusal);
            }
            connection.association.taken(now_ns, token);
        }
        self.send_due(number);
    }

    /// What was taken is acknowledged as soon as that can be.
    pub(crate) fn connection_settle(&mut self, number: u32) {
        self.send_due(number);
    }

    /// Nobody takes the rest of a frame.
    pub(crate) fn connection_nack(&mut self, number: u32, token: ReceiveToken) {
        let local = self.local();
        if let Some(connection) = self.connection(number) {
            let now_ns = connection.clock_ns(local);
            let nobody = NackReason::NotResident;
            connection.association.nack(now_ns, token, nobody);
        }
    }

    /// The program has no link any more: what is under way is brought to its end, then the peer is told.
    pub(crate) fn close_connection(&mut self, number: u32) {
        let Some(connection) = self.connection(number) else {
            return;
        };
        if std::mem::replace(&mut connection.is_left, true) {
            return;
        }
        while let Some(Held { token, .. }) =
            self.connection(number).and_then(|p| p.frames.pop_front())
        {
            self.connection_nack(number, token);
        }
        self.send_due(number);
    }

    /// Nothing is sent or answered from now on.
    pub(crate) fn fall_silent(&mut self, number: u32) {
        if let Some(connection) = self.connection(number) {
            (connection.is_silent, connection.is_left) = (true, true);
            connection.frames.clear();
        }
    }

    // For the network.

    /// A frame has come.
    pub(crate) fn frame_came_to(&mut self, number: u32, frame: u64, bytes: &Rc<[u8]>) {
        let now = self.now();
        let Some(connection) = self.live_connection(number) else {
            return;
        };
        let now_ns = connection.clock_ns(now);
        // Those that wait to be taken are told apart from those that were taken.
        let again = |association: &Association| {
            let statistics = association.statistics();
            statistics.duplicates + statistics.stale
        };
        let before = again(&connection.association);
        let incoming = connection.association.take_frame(now_ns, 0, bytes);
        let came_before = again(&connection.association) != before;
        let interface = connection.interface;
        let mut heard = false;
        if let Incoming::Packets(token) = incoming {
            heard = !connection.is_left && connection.frames.len() < connection.frames_max;
            if heard {
                let bytes = Rc::clone(bytes);
                connection.frames.push_back(Held { bytes, token });
            } else {
                let full = NackReason::NoRoom;
                connection.association.nack(now_ns, token, full);
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
            format!("frame {frame}, for connection {number}, {fate}")
        });
        if heard {
            self.wake_interface(interface);
            self.ring(interface);
        }
        self.send_due(number);
    }

    /// The driver looks after a connection.
    pub(crate) fn look_after(&mut self, number: u32) {
        let now = self.now();
        let Some(connection) = self.connection(number) else {
            return;
        };
        if connection.due.is_some_and(|due| due <= now) {
            connection.due = None;
            self.send_due(number);
        }
    }

    /// Sends what is to be sent by now, and sees to what follows.
    fn send_due(&mut self, number: u32) {
        let local = self.local();
        let Some(frames) = &mut self.frames else {
            return;
        };
        let mut room = std::mem::take(&mut frames.connections.room);
        while let Some(connection) = self.live_connection(number) {
            let now_ns = connection.clock_ns(local);
            if connection.is_left && connection.association.is_idle() {
                connection.association.close();
            }
            let Some(outgoing) = connection.association.next_frame(now_ns, &mut room) else {
                break;
            };
            let (at, ends) = (connection.clock, [connection.interface, connection.peer[1]]);
            let peer = connection.peer[0];
            let bytes = Rc::from(&room[..outgoing.length_bytes]);
            self.send_frame(at, ends, peer, bytes);
        }
        if let Some(frames) = &mut self.frames {
            frames.connections.room = room;
        }
        self.see_to(number);
    }

    /// After anything was done with an association.
    fn see_to(&mut self, number: u32) {
        let now = self.now();
        let Some(connection) = self.live_connection(number) else {
            return;
        };
        while let Some(returned) = connection.association.next_return() {
            if connection.returned.len() == RETURNED_MAX {
                connection.returned.pop_front();
                connection.forgotten += 1;
            }
            let back = (returned.header, returned.reason);
            if let Return::Ended(_) = back.1 {
                connection.has_lost = true;
            } else {
                connection.refused.packets += 1;
                connection.refused.last = Some(back);
            }
            connection.returned.push_back(back);
        }
        let association = &connection.association;
        let is_answered = |fence: &mut u64| association.is_settled(*fence);
        let is_answered = connection.fence.take_if(is_answered).is_some();
        let (interface, token) = (connection.interface, connection.token);
        let has_room = connection.awaited && connection.association.has_room();
        if has_room {
            connection.awaited = false;
        }
        let close_reason = connection.association.close_reason();
        let ended = close_reason
            .filter(|_| !std::mem::replace(&mut connection.is_told, close_reason.is_some()));
        let wanted = connection.association.deadline_ns().map(Time::from_ns);
        let wanted = wanted.map(|at| if at <= now { now + AGAIN } else { at });
        let wanted = wanted.filter(|at| connection.due.is_none_or(|due| *at < due));
        if let Some(at) = wanted {
            connection.due = Some(at);
            self.schedule(at, What::Connection { connection: number });
        }
        if has_room || is_answered {
            self.ring(interface);
            self.wake_interface(interface);
        }
        if let Some(close_reason) = ended {
            self.trace.note(now, || {
                format!("connection {number} has ended: {close_reason}")
            });
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
    }
}
