//! Wires: the product's UDP endpoints ([`UdpEndpoint`]) in the world, and what their hosts do for
//! them (decision 0033).
//!
//! Each interface with a peer on another node has an endpoint over a socket of the world
//! ([`super::socket`]). A program's calls reach its links as in the product, and poll the endpoint.
//! Besides, its host's driver polls, which no processor limits: when datagrams come, when a
//! deadline has come, and when the endpoint asks for it; whether the program runs, sleeps or is
//! stopped. The driver of a process that was killed does nothing any more, and its port is closed,
//! so that its peers find out by asking in vain, idle ones after some silence.
//!
//! Two interfaces that are linked shake hands with the product's state machines and get the keys
//! that these agree on. The messages of that handshake do not travel: a connection of the world is
//! made in an instant.
//!
//! Nothing of an endpoint may be called while the kernel is in use, as it uses the kernel by
//! itself.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hamlyn_engine::limits::{CHANNELS_MAX, FRAME_BYTES_MAX, FRAME_BYTES_MIN};
use hamlyn_engine::transport::{Association, Settings};
use hamlyn_host::{LossCause, Peer};
use hamlyn_link::udp::handshake::{Credentials, Heard, Initiator, Keys, Responder, Taken};
use hamlyn_link::udp::key_file::ClusterSecret;
use hamlyn_link::udp::protection::{OVERHEAD_BYTES_MAX, RxProtection, TxProtection};
use hamlyn_link::udp::randomness::{NoRandom, Randomness};
use hamlyn_link::udp::socket::SocketSettings;
use hamlyn_link::udp_endpoint::{Connection, ConnectionConfig, UdpEndpoint, UdpLink};
use hamlyn_ring::ready_bitmap::{READY_BITMAP_BYTES, ReadyBitmap, ReadyBits};
use hamlyn_ring::shared::Mapping;
use serde::{Deserialize, Serialize};

use super::SimLink;
use super::observed;
use super::socket::{Ports, SimSocket, SocketLimits, address};
use super::wire_link::WireLink;
use crate::random::Random;
use crate::time::{Span, Time};
use crate::world::clock::Clock;
use crate::world::kernel::{self, Kernel, What};

/// Times of an association are at most this, in nanoseconds.
const TIME_MAX_NS: u64 = 60_000_000_000;
/// Until an endpoint is polled again that wants it at once.
const AGAIN: Span = Span::from_ns(100);
/// The time of day when a world begins, in milliseconds.
const BEGIN_MS: u64 = 1_790_000_000_000;

type Endpoint = Arc<UdpEndpoint<SimSocket>>;

/// What the links between hosts are like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WireSettings {
    /// Frames are encrypted; otherwise they are in the clear, with a checksum.
    pub is_encrypted: bool,
    /// Sockets of each connection, and so paths.
    pub paths: u8,
    /// Number of the first frame of each channel.
    pub first_sequence: u32,
    /// The delay that the congestion control of a path aims at, in nanoseconds.
    pub delay_target_ns: u64,
    /// Of sockets and ways.
    pub limits: SocketLimits,
}

impl Default for WireSettings {
    fn default() -> Self {
        Self {
            is_encrypted: false,
            paths: 1,
            first_sequence: 1,
            delay_target_ns: Settings::default().delay_target_ns,
            limits: SocketLimits::default(),
        }
    }
}

/// The endpoint of an interface.
struct Wire {
    endpoint: Endpoint,
    /// Programs are ahead of the world; here time does not go back.
    clock: Time,
    /// When it is polled next for want of something else.
    due: Option<Time>,
    /// When it was last polled by its host.
    driven: Option<Time>,
    /// Its links that have not ended, by their tokens.
    links: BTreeMap<u64, Arc<Connection<SimSocket>>>,
    /// Links that the host has to close.
    leaving: Vec<Arc<Connection<SimSocket>>>,
}

/// All endpoints of a world.
pub(crate) struct Wires {
    timeout: Span,
    settings: WireSettings,
    by_interface: BTreeMap<u32, Wire>,
    pub(super) ports: Ports,
    random: Arc<Seeded>,
}

thread_local! {
    /// The time of the endpoint that is being used, in nanoseconds.
    static CLOCK: Cell<u64> = const { Cell::new(0) };
    /// Whose that is.
    static ENTERED: Cell<u32> = const { Cell::new(u32::MAX) };
}

fn clock() -> u64 {
    CLOCK.get()
}

/// Random bytes from the world's seed.
struct Seeded(Mutex<Random>);

impl Seeded {
    fn bits(&self) -> u64 {
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        random.bits()
    }
}

impl Randomness for Seeded {
    fn fill(&self, into: &mut [u8]) -> Result<(), NoRandom> {
        for part in into.chunks_mut(8) {
            let bits = self.bits().to_le_bytes();
            part.copy_from_slice(&bits[..part.len()]);
        }
        Ok(())
    }
}

impl Wires {
    /// Peers that answer nothing for `timeout` are given up on.
    pub(crate) fn new(timeout: Span, settings: WireSettings, mut random: Random) -> Self {
        Self {
            timeout,
            settings,
            by_interface: BTreeMap::new(),
            ports: Ports::new(settings.limits, random.fork()),
            random: Arc::new(Seeded(Mutex::new(random))),
        }
    }

    pub(crate) fn set_way_bytes_max(&mut self, bytes: usize) {
        self.ports.limits.way_bytes_max = bytes;
    }

    pub(crate) fn set_path(&mut self, path: u8, is_up: bool) {
        self.ports.set_path(path, is_up);
    }

    /// The time of an endpoint.
    pub(super) fn clock_of(&self, interface: u32) -> Time {
        let wire = self.by_interface.get(&interface);
        wire.map_or(Time::ZERO, |wire| wire.clock)
    }

    /// What associations are made with: so many frames without acknowledgement, and packets with
    /// such a payload.
    fn association_settings(&self, channels: u32, payload_bytes: usize) -> Settings {
        let defaults = Settings::default();
        let besides = defaults.frame_bytes - defaults.payload_max_bytes();
        let limits = &self.settings.limits;
        let frame_bytes_max = limits.out_bytes_max.saturating_sub(OVERHEAD_BYTES_MAX);
        let frame_bytes = (payload_bytes + besides).min(frame_bytes_max);
        let frame_bytes = frame_bytes.clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX);
        let channels = (channels as usize).clamp(1, CHANNELS_MAX) as u16;
        let timeout_ns = self.timeout.as_ns();
        // Retries go on for longer than the timeout, so that some are left when much is lost.
        let part_ns = |part: u64| (timeout_ns / part).clamp(1, TIME_MAX_NS);
        Settings {
            channels,
            frame_bytes,
            paths: self.settings.paths.max(1),
            delay_target_ns: self.settings.delay_target_ns,
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
            // So that an end that only waits learns of a verdict of the other, which nothing may
            // have told it. It asks eight times in that span, so often enough before its own
            // verdict though much is lost.
            keep_alive_ns: part_ns(8),
            acknowledge_frames: (channels / 4).clamp(1, 16),
            acknowledge_ns: part_ns(4_000),
            window_max_frames: channels.max(defaults.window_initial_frames),
            ..defaults
        }
    }

    fn credentials(&self) -> Option<Credentials> {
        if !self.settings.is_encrypted {
            return Some(Credentials::Insecure);
        }
        // Any secret will do that looks like one.
        let text: String = (0..32u8).map(|byte| format!("{byte:02x}")).collect();
        ClusterSecret::parse(&text).ok().map(Credentials::Secret)
    }
}

/// The time of the endpoint of that interface is that of the running task, or of the world. To be
/// called before the endpoint is.
pub(crate) fn enter(interface: u32) {
    ENTERED.set(interface);
    kernel::with_if_any(|kernel| {
        let local = kernel.local();
        let clock = kernel.clock_of(interface);
        let frames = kernel.frames.as_mut();
        if let Some(wire) = frames.and_then(|frames| frames.wires.by_interface.get_mut(&interface))
        {
            wire.clock = wire.clock.max(local);
            let shown_ns = clock.shows_ns(wire.clock);
            CLOCK.set(shown_ns);
            observed::enter(interface, shown_ns);
        }
    });
}

/// None is in use: another world begins.
pub(crate) fn leave() {
    ENTERED.set(u32::MAX);
    CLOCK.set(0);
}

/// Which endpoint is in use.
pub(crate) fn entered() -> u32 {
    ENTERED.get()
}

/// The keys that two sides agree on.
fn shake_hands(random: &Arc<Seeded>, credentials: &Credentials, now_ns: u64) -> Option<[Keys; 2]> {
    let wall_ms = BEGIN_MS + now_ns / 1_000_000;
    let given = || Arc::clone(random) as Arc<dyn Randomness>;
    let interface = random.bits();
    let mut initiator =
        Initiator::with_randomness(given(), credentials, None, interface, &[], now_ns, wall_ms)
            .ok()?;
    let mut responder = Responder::with_randomness(given(), credentials, interface).ok()?;
    let source = address(0, 0);
    let mut theirs = None;
    loop {
        let message = initiator.poll(now_ns)?.to_vec();
        let heard = responder.take(now_ns, wall_ms, source, &message, false);
        let reply = match heard.ok()? {
            Heard::Reply(reply) => reply.to_vec(),
            Heard::Said(said) => {
                theirs = Some(said.keys);
                let (_, answer) = responder.answer(said.number, &[]).ok()??;
                answer.to_vec()
            }
        };
        if let Taken::Answered(answered) = initiator.take(now_ns, &reply).ok()? {
            return Some([answered.keys, theirs?]);
        }
    }
}

/// What is needed to make a link.
struct Prepared {
    endpoints: [Endpoint; 2],
    settings: Settings,
    paths: u8,
    first_sequence: u32,
    credentials: Credentials,
    random: Arc<Seeded>,
    tokens: [u64; 2],
}

/// A link between two interfaces that have none: this side's end; the other is told. The kernel
/// must not be in use.
pub(crate) fn link(from: u32, to: u32) -> Option<(Peer, SimLink)> {
    if !kernel::with(|kernel| kernel.are_on_a_network(from, to)) {
        return kernel::with(|kernel| kernel.link_by_channels(from, to));
    }
    let prepared = kernel::with(|kernel| kernel.prepare_link(from, to))?;
    enter(from);
    let keys = shake_hands(&prepared.random, &prepared.credentials, clock())?;
    let numbers = prepared.endpoints.each_ref().map(|endpoint| {
        let bits = prepared.random.bits();
        endpoint.reserve(bits as u32)
    });
    let numbers = [numbers[0]?, numbers[1]?];
    let mut links = Vec::new();
    for (at, (interface, keys)) in [from, to].into_iter().zip(&keys).enumerate() {
        enter(interface);
        let endpoint = &prepared.endpoints[at];
        let peer = prepared.endpoints[1 - at].local();
        let socket = |path| {
            let socket = endpoint.socket_to(peer, &SocketSettings::default());
            Some(socket.ok()??.on_path(path))
        };
        let parts = ConnectionConfig {
            association: Association::beginning_at(prepared.settings, prepared.first_sequence)
                .ok()?,
            tx_protection: TxProtection::new(&keys.send, numbers[1 - at]),
            rx_protection: RxProtection::new(&keys.receive, numbers[at]),
            sockets: (0..prepared.paths).map_while(socket).collect(),
            tap: None,
        };
        links.push(endpoint.link(numbers[at], parts));
    }
    let links = <[UdpLink<SimSocket>; 2]>::try_from(links).ok()?;
    kernel::with(|kernel| {
        kernel.observe_link([(from, numbers[0]), (to, numbers[1])], &prepared.settings);
        kernel.enter_links([from, to], prepared.tokens, links)
    })
}

/// The bitmap by which an interface learns for which of its links something has come, if they go
/// over a network.
pub(crate) fn ready_bitmap(interface: u32) -> Option<ReadyBitmap> {
    let endpoint = kernel::with(|kernel| kernel.endpoint_of(interface))?;
    let page = Mapping::anonymous(READY_BITMAP_BYTES).ok()?;
    let (bits, bitmap) = ReadyBits::new(Arc::new(page)).ok()?;
    endpoint.mark_ready(bits);
    Some(bitmap)
}

/// The driver of a host polls the endpoint of an interface.
pub(crate) fn drive(interface: u32) {
    let Some((endpoint, leaving)) = kernel::with(|kernel| kernel.take_turn(interface)) else {
        return;
    };
    enter(interface);
    for connection in leaving {
        endpoint.close(&connection);
    }
    let came = endpoint.poll() | endpoint.take_untold();
    kernel::with(|kernel| kernel.end_turn_of_driver(interface, came));
}

impl Kernel {
    /// The thread that drives an interface is about to sleep, or is awake.
    pub(crate) fn note_listening(&self, interface: u32, listens: bool) {
        let frames = self.frames.as_ref();
        let wire = frames.and_then(|frames| frames.wires.by_interface.get(&interface));
        if let Some(wire) = wire {
            match listens {
                true => wire.endpoint.listen(),
                false => wire.endpoint.end_listening(),
            }
        }
    }

    /// The clock of an interface's node.
    fn clock_of(&self, interface: u32) -> Clock {
        let known = self.registry.get(interface);
        known.map_or(Clock::default(), |known| {
            self.clock_of_node(known.identity.node)
        })
    }

    fn prepare_link(&mut self, from: u32, to: u32) -> Option<Prepared> {
        let endpoints = [self.endpoint_of(from)?, self.endpoint_of(to)?];
        let tokens = [self.registry.new_token(), self.registry.new_token()];
        let wires = &self.frames.as_ref()?.wires;
        Some(Prepared {
            endpoints,
            settings: wires.association_settings(
                self.settings.link_packets,
                self.settings.packet_payload_bytes,
            ),
            paths: wires.settings.paths.max(1),
            first_sequence: wires.settings.first_sequence,
            credentials: wires.credentials()?,
            random: Arc::clone(&wires.random),
            tokens,
        })
    }

    /// The endpoint of an interface, made if there is none.
    fn endpoint_of(&mut self, interface: u32) -> Option<Endpoint> {
        let node = self.registry.get(interface)?.identity.node;
        let clock_now = self.local();
        let wires = &mut self.frames.as_mut()?.wires;
        let waiting_bytes_max = wires.settings.limits.waiting_bytes_max;
        wires.ports.open(interface);
        let wire = wires.by_interface.entry(interface).or_insert_with(|| {
            let notify = move || kernel::with_if_any(|kernel| kernel.look_at_endpoint(interface));
            let socket = SimSocket::of(node, interface);
            let mut endpoint = UdpEndpoint::over(socket, clock, Box::new(notify));
            endpoint.limit_waiting(waiting_bytes_max);
            // So that it says whenever it wants to be polled.
            endpoint.note_asleep(true);
            Wire {
                endpoint: Arc::new(endpoint),
                clock: clock_now,
                due: None,
                driven: None,
                links: BTreeMap::new(),
                leaving: Vec::new(),
            }
        });
        Some(Arc::clone(&wire.endpoint))
    }

    fn enter_links(
        &mut self,
        ends: [u32; 2],
        tokens: [u64; 2],
        links: [UdpLink<SimSocket>; 2],
    ) -> Option<(Peer, SimLink)> {
        let wires = &mut self.frames.as_mut()?.wires;
        for ((interface, token), link) in ends.into_iter().zip(tokens).zip(&links) {
            let wire = wires.by_interface.get_mut(&interface)?;
            wire.links.insert(token, Arc::clone(link.connection()));
        }
        let [ours, theirs] = links;
        let ours = SimLink::Wire(WireLink::new(ends[0], ours));
        let theirs = SimLink::Wire(WireLink::new(ends[1], theirs));
        self.enter_far_link(ends, tokens, ours, theirs)
    }

    /// The endpoint asks for a poll, or something of it has ended.
    fn look_at_endpoint(&mut self, interface: u32) {
        let local = self.local();
        let frames = self.frames.as_mut();
        let wire = frames.and_then(|frames| frames.wires.by_interface.get_mut(&interface));
        let Some(wire) = wire else {
            return;
        };
        // Not twice in one instant, or time would not go on.
        let at = match wire.driven {
            Some(driven) if driven >= local => driven + AGAIN,
            _ => local,
        };
        if wire.due.is_none_or(|due| at < due) {
            wire.due = Some(at);
            self.schedule(at, What::Endpoint { interface });
        }
    }

    /// The endpoint to be polled by its host, and the links that are to be closed.
    fn take_turn(&mut self, interface: u32) -> Option<(Endpoint, Vec<Arc<Connection<SimSocket>>>)> {
        let now = self.now();
        let wire = self
            .frames
            .as_mut()?
            .wires
            .by_interface
            .get_mut(&interface)?;
        wire.due = wire.due.filter(|due| *due > now);
        wire.driven = Some(now);
        Some((
            Arc::clone(&wire.endpoint),
            std::mem::take(&mut wire.leaving),
        ))
    }

    fn end_turn_of_driver(&mut self, interface: u32, came: bool) {
        let now = self.now();
        let clock = self.clock_of(interface);
        let Some(frames) = &mut self.frames else {
            return;
        };
        let Some(wire) = frames.wires.by_interface.get_mut(&interface) else {
            return;
        };
        let mut ended = Vec::new();
        wire.links.retain(|token, connection| {
            let end = connection.end();
            ended.extend(end.map(|reason| (*token, reason)));
            end.is_none()
        });
        // Time does not go on so that links which ended are forgotten.
        let wanted = wire.endpoint.deadline_ns();
        let wanted = wanted.filter(|_| wire.endpoint.has_links());
        let wanted = wanted.map(|at| clock.time_of(at));
        let wanted = wanted.map(|at| if at <= now { now + AGAIN } else { at });
        let wanted = wanted.filter(|at| wire.due.is_none_or(|due| *at < due));
        wire.due = wanted.or(wire.due);
        if let Some(at) = wanted {
            self.schedule(at, What::Endpoint { interface });
        }
        if came {
            self.ring(interface);
            self.wake_interface(interface);
        }
        for (token, reason) in ended {
            self.saw(format!("a link ended: {reason}"));
            self.trace.note(now, || {
                format!("the link {token} of interface {interface} has ended: {reason}")
            });
            let cause = LossCause::of(reason).unwrap_or(LossCause::Closed);
            self.end_link(interface, token, cause);
        }
    }

    /// The host closes a link: what is under way is brought to its end, then the peer is told.
    pub(crate) fn leave_link(&mut self, interface: u32, token: u64) {
        let frames = self.frames.as_mut();
        let wire = frames.and_then(|frames| frames.wires.by_interface.get_mut(&interface));
        if let Some(wire) = wire {
            wire.leaving.extend(wire.links.remove(&token));
            self.look_at_endpoint(interface);
        }
    }

    /// Nothing is sent or answered there from now on.
    pub(crate) fn fall_silent(&mut self, interface: u32) {
        if let Some(frames) = &mut self.frames {
            frames.wires.ports.close(interface);
            frames.wires.by_interface.remove(&interface);
        }
    }
}
