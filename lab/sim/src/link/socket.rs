//! Sockets of the world: what the product's UDP endpoint sends and receives by (decision 0033).
//!
//! A [`SimSocket`] is a name, the rest is in the kernel of the world: each interface that has an
//! endpoint has a *port*, a queue of datagrams with an end. What is sent becomes a frame of the
//! network, which may lose, double, delay and damage it. In the clear the system's checksum finds
//! damage, and throws the datagram away; where frames are encrypted a damaged datagram comes as it
//! is, and the endpoint has to find out. A socket is full while so many frames of its host wait for
//! the network. A datagram that is too long for the way out is refused; one that is too long for
//! the way beyond vanishes, unless it may be cut.
//!
//! Datagrams of one source and length that wait together come together, as the system joins them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IoSlice;
use std::net::{Ipv6Addr, SocketAddr};
use std::rc::Rc;

use hamlyn_engine::point::Point;
use hamlyn_link::udp::batch::{BATCH_DATAGRAMS, Batch, Inbox};
use hamlyn_link::udp::datagram_socket::{ConnectionStep, DatagramSocket};
use hamlyn_link::udp::socket::{CallFailed, SendError, SocketSettings};
use hamlyn_link::udp::{DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN};
use serde::{Deserialize, Serialize};

use super::observed;
use crate::random::Random;
use crate::time::Time;
use crate::world::kernel::{self, Kernel, What};

/// Of a million calls that could send a run at once, so many are interrupted and say that they
/// cannot.
const INTERRUPTED_PER_MILLION: u32 = 20_000;
/// In the history, numbers of ports do not meet those of channels.
const MARK: u64 = 1 << 40;

/// What sockets and the ways between them are like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SocketLimits {
    /// The longest datagram that a host can send, in bytes; it is told of longer ones.
    pub out_bytes_max: usize,
    /// The longest one that comes through the network, in bytes; of longer ones nobody is told.
    pub way_bytes_max: usize,
    /// Frames of a host that wait for the network before its sockets are full.
    pub waiting_frames_max: usize,
    /// Bytes of datagrams that wait in a port; more are lost.
    pub unread_bytes_max: usize,
    /// Bytes of frames that a link keeps until they are taken; of more their sender is told.
    pub waiting_bytes_max: usize,
}

impl Default for SocketLimits {
    fn default() -> Self {
        Self {
            out_bytes_max: DATAGRAM_BYTES_MAX,
            way_bytes_max: DATAGRAM_BYTES_MAX,
            waiting_frames_max: 256,
            unread_bytes_max: 4 << 20,
            waiting_bytes_max: 4 << 20,
        }
    }
}

/// Where an interface of a node receives.
pub(super) fn address(node: u32, interface: u32) -> SocketAddr {
    let [a, b] = [node >> 16, node].map(|part| part as u16);
    let high = (interface >> 15) as u16;
    let ip = Ipv6Addr::new(0xfd00, 0, 0, a, b, 0, 0, high);
    (ip, 1 << 15 | interface as u16 & 0x7fff).into()
}

/// The interface that receives there.
fn interface_at(at: SocketAddr) -> u32 {
    let SocketAddr::V6(at) = at else {
        return u32::MAX;
    };
    let [.., high] = at.ip().segments();
    u32::from(high) << 15 | u32::from(at.port() & 0x7fff)
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(super) struct Datagram {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) bytes: Rc<[u8]>,
}

impl Datagram {
    /// Noise on the wire.
    pub(super) fn damage(&mut self, random: &mut Random) {
        let mut bytes = self.bytes.to_vec();
        crate::network::Payload::damage(&mut bytes, random);
        self.bytes = bytes.into();
    }
}

/// What waits at an interface.
#[derive(Debug, Default)]
struct Port {
    /// With the time at which each came.
    unread: VecDeque<(Time, Datagram)>,
    unread_bytes: usize,
    /// Nobody reads any more.
    is_closed: bool,
}

/// All ports of a world.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(super) limits: SocketLimits,
    by_interface: BTreeMap<u32, Port>,
    /// Paths that carry nothing at present.
    paths_down: BTreeSet<u8>,
    random: Random,
}

impl Ports {
    pub(super) fn new(limits: SocketLimits, random: Random) -> Self {
        Self {
            limits,
            by_interface: BTreeMap::new(),
            paths_down: BTreeSet::new(),
            random,
        }
    }

    pub(super) fn set_path(&mut self, path: u8, is_up: bool) {
        match is_up {
            true => self.paths_down.remove(&path),
            false => self.paths_down.insert(path),
        };
    }

    pub(super) fn open(&mut self, interface: u32) {
        self.by_interface.entry(interface).or_default();
    }

    /// Nothing comes or goes there any more.
    pub(super) fn close(&mut self, interface: u32) {
        let port = self.by_interface.entry(interface).or_default();
        *port = Port {
            is_closed: true,
            ..Port::default()
        };
    }

    fn is_closed(&self, interface: u32) -> bool {
        let port = self.by_interface.get(&interface);
        port.is_none_or(|port| port.is_closed)
    }

    /// The next datagram, and those of its kind that wait behind it.
    fn read(&mut self, interface: u32, into: &mut Vec<u8>) -> Option<(SocketAddr, Time)> {
        let port = self.by_interface.get_mut(&interface)?;
        let (came, Datagram { from, bytes, .. }) = port.unread.pop_front()?;
        let segment_bytes = bytes.len();
        into.clear();
        into.extend_from_slice(&bytes);
        for _ in 1..BATCH_DATAGRAMS {
            let joins = |(_, next): &&(Time, Datagram)| {
                next.from == from
                    && next.bytes.len() <= segment_bytes
                    && into.len() + next.bytes.len() <= DATAGRAM_BYTES_MAX
            };
            if port.unread.front().filter(joins).is_none() {
                break;
            }
            let Some((_, next)) = port.unread.pop_front() else {
                break;
            };
            into.extend_from_slice(&next.bytes);
            if next.bytes.len() < segment_bytes {
                break;
            }
        }
        port.unread_bytes -= into.len();
        Some((from, came))
    }
}

/// One socket of the world. See the module.
#[derive(Debug)]
pub(crate) struct SimSocket {
    local: SocketAddr,
    peer: Option<SocketAddr>,
    /// Which path of its connection it is.
    path: u8,
    /// The network may cut what it sends.
    cuts: bool,
    single_bytes_max: usize,
}

impl SimSocket {
    /// The socket of an interface, at its port.
    pub(super) fn of(node: u32, interface: u32) -> Self {
        Self {
            local: address(node, interface),
            peer: None,
            path: 0,
            cuts: false,
            single_bytes_max: DATAGRAM_BYTES_MIN,
        }
    }

    /// The same as another path of its connection.
    pub(super) fn on_path(self, path: u8) -> Self {
        Self { path, ..self }
    }

    fn give(&self, datagram: &[u8], to: SocketAddr) -> Result<(), SendError> {
        kernel::with(|kernel| {
            kernel.may_send(self.local, datagram.len(), self.cuts)?;
            kernel.put_on_its_way(self, to, datagram);
            Ok(())
        })
    }
}

impl DatagramSocket for SimSocket {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    fn beside(&self, peer: SocketAddr, _: &SocketSettings) -> Result<Option<Self>, CallFailed> {
        Ok(Some(Self {
            peer: Some(peer),
            ..Self { ..*self }
        }))
    }

    fn expect(&mut self, single_bytes_max: usize) {
        self.single_bytes_max = single_bytes_max.max(DATAGRAM_BYTES_MIN);
    }

    fn cut(&mut self, is_allowed: bool) -> Result<(), CallFailed> {
        self.cuts = is_allowed;
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch) -> Result<usize, SendError> {
        let mut sent = 0;
        while let Some(first) = batch.first() {
            self.send_one(first)?;
            batch.drop_first();
            sent += 1;
        }
        Ok(sent)
    }

    fn send_gathered(
        &mut self,
        datagrams: &[IoSlice<'_>],
        segment_bytes: u16,
    ) -> Result<bool, SendError> {
        let Some(to) = self.peer else {
            return Ok(false);
        };
        // What is cut is not segmented, as in the product.
        if self.cuts && datagrams.len() > 1 {
            return Ok(false);
        }
        kernel::with(|kernel| {
            let frames = kernel.frames.as_mut();
            if frames
                .is_some_and(|frames| frames.wires.ports.random.happens(INTERRUPTED_PER_MILLION))
            {
                return Ok(false);
            }
            kernel.may_send(self.local, segment_bytes.into(), self.cuts)?;
            for datagram in datagrams {
                kernel.put_on_its_way(self, to, datagram);
            }
            Ok(true)
        })
    }

    fn send_one(&mut self, datagram: &[u8]) -> Result<(), SendError> {
        self.peer.map_or(Ok(()), |to| self.give(datagram, to))
    }

    fn send_to(&mut self, datagram: &[u8], to: SocketAddr) -> Result<(), SendError> {
        self.give(datagram, to)
    }

    fn receive(&self, inbox: &mut Inbox) -> Result<bool, CallFailed> {
        let mut came = Vec::new();
        let interface = interface_at(self.local);
        let from = kernel::with(|kernel| {
            let now = kernel.local();
            let ports = &mut kernel.frames.as_mut()?.wires.ports;
            let (from, at) = ports.read(interface, &mut came)?;
            Some((from, now.as_ps().saturating_sub(at.as_ps()) / 1_000))
        });
        match from {
            Some((from, waited_ns)) => {
                inbox.load(&came, Some(self.single_bytes_max), from);
                inbox.note_wait(waited_ns);
            }
            None => inbox.empty(),
        }
        Ok(from.is_some())
    }

    fn passes(point: Point) {
        kernel::with_if_any(|kernel| kernel.charge_transport(point));
    }

    fn next_report(&self) -> Option<Option<SocketAddr>> {
        None
    }

    fn put_off_reports(&self) {}

    fn observe<'a>(number: u32, step: impl FnOnce() -> ConnectionStep<'a>) {
        observed::observe(number, step());
    }
}

/// What stands for a datagram in the history: its last bytes, which depend on all of it.
fn mark_of(bytes: &[u8]) -> u64 {
    let last = bytes.last_chunk().copied().unwrap_or_default();
    u64::from_le_bytes(last) ^ (bytes.len() as u64) << 48
}

impl Kernel {
    /// Whether a datagram of so many bytes may be sent from there now.
    fn may_send(&mut self, from: SocketAddr, bytes: usize, cuts: bool) -> Result<(), SendError> {
        let Some(frames) = &self.frames else {
            return Ok(());
        };
        let limits = &frames.wires.ports.limits;
        if bytes > limits.out_bytes_max && !cuts {
            self.saw("a datagram too long for its host");
            return Err(SendError::TooLong { bytes });
        }
        let known = self.registry.get(interface_at(from));
        let node = known.map_or(0, |known| known.identity.node);
        if frames.waiting_of(node) >= limits.waiting_frames_max {
            self.saw("a full socket");
            return Err(SendError::Full);
        }
        Ok(())
    }

    fn put_on_its_way(&mut self, socket: &SimSocket, to: SocketAddr, bytes: &[u8]) {
        let &SimSocket {
            local: from,
            path,
            cuts,
            ..
        } = socket;
        let ends = [interface_at(from), interface_at(to)];
        let Some(frames) = &self.frames else {
            return;
        };
        let ports = &frames.wires.ports;
        let is_too_long = bytes.len() > ports.limits.way_bytes_max && !cuts;
        let is_down = ports.paths_down.contains(&path);
        if frames.wires.ports.is_closed(ends[0]) {
            return;
        }
        let at = frames.wires.clock_of(ends[0]).max(self.local());
        let port = u64::from(ends[0]);
        self.trace.count(at, [MARK | port << 8 | 2, mark_of(bytes)]);
        if is_too_long {
            let length_bytes = bytes.len();
            self.trace.note(at, || {
                format!("a datagram of {length_bytes} bytes is too long for the way")
            });
            return self.saw("a datagram too long for its way");
        }
        if is_down {
            self.trace
                .note(at, || format!("a datagram is lost with path {path}"));
            return self.saw("a datagram lost with its path");
        }
        let bytes = Rc::from(bytes);
        self.send_frame(at, ends, Datagram { from, to, bytes });
    }

    /// A datagram has come.
    pub(super) fn datagram_came(&mut self, frame: u64, datagram: Datagram) {
        let now = self.now();
        let interface = interface_at(datagram.to);
        let Some(frames) = &mut self.frames else {
            return;
        };
        let Ports {
            limits,
            by_interface,
            ..
        } = &mut frames.wires.ports;
        let length_bytes = datagram.bytes.len();
        let mark = mark_of(&datagram.bytes);
        let port = by_interface.get_mut(&interface);
        let fate = match port.filter(|port| !port.is_closed) {
            None => "a datagram that finds nobody",
            Some(port) if port.unread_bytes + length_bytes > limits.unread_bytes_max => {
                "a datagram that finds no room"
            }
            Some(port) => {
                port.unread_bytes += length_bytes;
                port.unread.push_back((now, datagram));
                "comes"
            }
        };
        self.trace
            .count(now, [MARK | u64::from(interface) << 8 | 3, mark]);
        self.trace.note(now, || {
            format!("frame {frame}, {length_bytes} bytes for interface {interface}: {fate}")
        });
        if fate != "comes" {
            return self.saw(fate);
        }
        self.wake_interface(interface);
        let at = self.driver_looks_at(now);
        self.schedule(at, What::Endpoint { interface });
    }

    /// When the driver of a host sees what has come now.
    fn driver_looks_at(&mut self, now: Time) -> Time {
        let delay_ps = self.settings.ring_delay.as_ps();
        let random = self
            .frames
            .as_mut()
            .map(|frames| &mut frames.wires.ports.random);
        match random {
            Some(random) if delay_ps > 0 => {
                now + crate::time::Span::from_ps(random.below(delay_ps))
            }
            _ => now,
        }
    }
}
