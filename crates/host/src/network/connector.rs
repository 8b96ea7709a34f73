//! The connector: shakes hands with an interface of another host and sends it one request, in the
//! caller's thread.
//!
//! The first attempt leaves from the endpoint's port, so that one port is enough for a firewall.
//! The polling thread receives the answer, from any address: a host with several addresses may
//! answer from another one, and the authentic message is the answer.
//!
//! While nobody answers, further attempts leave from fresh ports, and the first that is answered
//! counts. A network may lead each port by another way. A host whose port several processes share
//! leads each to one of them, and some of these may be stopped: so a name service is asked from a
//! fresh port after each short pause.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use hamlyn_link::udp::handshake::{Answered, Initiator, MESSAGE_BYTES_MAX, Taken};
use hamlyn_link::udp_endpoint::UdpEndpoint;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::resolver::Unanswered;
use crate::process::clock::now_ns;
use crate::{ConnectError, HostError};

/// The pause before the next port, where each port may lead to another process: that of one try.
const PORT_NS: u64 = 50_000_000;
/// So long the endpoint's port alone is tried there: twice.
const FIRST_PORT_NS: u64 = 150_000_000;
/// So many ports are tried so quickly. With three of four processes stopped, one look-up in ten
/// thousand needs more.
const QUICK_PORTS: u32 = 32;
/// The pause elsewhere, and after these: that of three tries. It doubles up to a maximum.
const PATIENT_NS: u64 = 350_000_000;
const PATIENT_NS_MAX: u64 = 1_000_000_000;
/// Attempts whose answers are awaited at a time.
const ATTEMPTS_MAX: usize = 16;

/// The processes to which a port of a host may lead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PortOf {
    /// One interface.
    One,
    /// Any process of the host's name service.
    Any,
}

/// Where to ask, from where, and until when.
pub(super) struct Course {
    pub(super) own: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) port_of: PortOf,
    pub(super) deadline_ns: u64,
}

/// A handshake from one source port; without a socket of its own, from that of the endpoint.
struct Attempt {
    initiator: Initiator,
    socket: Option<UdpSocket>,
    has_heard: bool,
}

/// When the next port is to be tried.
struct Ports {
    next_ns: u64,
    quick: u32,
    patient_ns: u64,
}

impl Ports {
    fn new(port_of: PortOf, now_ns: u64) -> Self {
        let (quick, first_ns) = match port_of {
            PortOf::Any => (QUICK_PORTS, FIRST_PORT_NS),
            PortOf::One => (0, PATIENT_NS),
        };
        Self {
            next_ns: now_ns.saturating_add(first_ns),
            quick,
            patient_ns: PATIENT_NS,
        }
    }

    fn next_began(&mut self, now_ns: u64) {
        let pause_ns = match self.quick.checked_sub(1) {
            Some(quick) => {
                self.quick = quick;
                PORT_NS
            }
            None => {
                let patient_ns = self.patient_ns;
                self.patient_ns = (patient_ns * 2).min(PATIENT_NS_MAX);
                patient_ns
            }
        };
        self.next_ns = now_ns.saturating_add(pause_ns);
    }

    /// Somebody answered: no other port is needed, unless that one falls silent.
    fn has_answered(&mut self, now_ns: u64) {
        self.next_ns = self.next_ns.max(now_ns.saturating_add(PATIENT_NS));
    }
}

/// The handshake of the endpoint's port, which ends with this.
struct EndpointHandshake<'a> {
    endpoint: &'a UdpEndpoint,
    number: u32,
    answers: Receiver<Option<Vec<u8>>>,
}

impl<'a> EndpointHandshake<'a> {
    fn begin(endpoint: &'a UdpEndpoint, to: SocketAddr, number: u32) -> Self {
        Self {
            endpoint,
            number,
            answers: endpoint.handshakes().begin(to, number),
        }
    }
}

impl Drop for EndpointHandshake<'_> {
    fn drop(&mut self) {
        self.endpoint.handshakes().end(self.number);
    }
}

struct Connecting<'a> {
    endpoint: &'a UdpEndpoint,
    course: &'a Course,
    attempts: VecDeque<Attempt>,
    ports: Ports,
    /// The system reports that nobody listens: believed if nobody answers either, as such reports
    /// can be forged.
    is_refused: bool,
    /// Somebody answered who has the same secret, or whose key is known.
    has_heard: bool,
}

/// Asks there until there is an answer, or that instant. `begin` makes a handshake for each port.
pub(super) fn connect(
    endpoint: &UdpEndpoint,
    course: &Course,
    mut begin: impl FnMut() -> Result<Initiator, ConnectError>,
) -> Result<Answered, Unanswered> {
    let first = begin()?;
    let handshake = EndpointHandshake::begin(endpoint, course.to, first.association());
    let mut connecting = Connecting {
        endpoint,
        course,
        attempts: VecDeque::from([Attempt {
            initiator: first,
            socket: None,
            has_heard: false,
        }]),
        ports: Ports::new(course.port_of, now_ns()),
        is_refused: false,
        has_heard: false,
    };
    let mut room = [0; MESSAGE_BYTES_MAX + 1];
    loop {
        let now_ns = now_ns();
        if now_ns >= connecting.ports.next_ns {
            connecting.begin_elsewhere(begin()?, now_ns)?;
        }
        connecting.send(now_ns)?;
        if now_ns >= course.deadline_ns {
            return Err(match connecting.is_refused {
                true => Unanswered::Absent,
                false if connecting.has_heard => Unanswered::Late,
                false => Unanswered::Silent(course.to),
            });
        }
        if let Some(answered) = connecting.receive(&handshake, now_ns, &mut room)? {
            return Ok(answered);
        }
    }
}

impl Connecting<'_> {
    /// Another attempt, from a port of its own.
    fn begin_elsewhere(&mut self, initiator: Initiator, now_ns: u64) -> Result<(), Unanswered> {
        if self.attempts.len() == ATTEMPTS_MAX {
            self.attempts.pop_front();
        }
        self.attempts.push_back(Attempt {
            initiator,
            socket: Some(self.fresh_socket()?),
            has_heard: false,
        });
        self.ports.next_began(now_ns);
        Ok(())
    }

    fn fresh_socket(&self) -> Result<UdpSocket, HostError> {
        let failed = |error: &std::io::Error| HostError::io("bind", 1, error);
        let socket = UdpSocket::bind(self.course.own).map_err(|error| failed(&error))?;
        let set = socket.set_nonblocking(true);
        set.map_err(|error| HostError::io("ioctl", 0, &error))?;
        Ok(socket)
    }

    /// Sends what is due. Only the newest attempt and those that were answered speak; the others
    /// listen.
    fn send(&mut self, now_ns: u64) -> Result<(), Unanswered> {
        let newest = self.attempts.len().saturating_sub(1);
        for at in 0..self.attempts.len() {
            let attempt = &mut self.attempts[at];
            if at != newest && !attempt.has_heard {
                continue;
            }
            let begun_anew = attempt.initiator.begun_anew();
            let Some(bytes) = attempt.initiator.poll(now_ns).map(<[u8]>::to_vec) else {
                continue;
            };
            if self.is_refused {
                return Err(Unanswered::Absent);
            }
            let to = self.course.to;
            let is_anew = attempt.initiator.begun_anew() != begun_anew;
            let is_sent =
                !is_anew && attempt.socket.is_none() && self.endpoint.answer(to, &bytes).is_ok();
            if is_sent {
                continue;
            }
            if is_anew || attempt.socket.is_none() {
                let socket = self.fresh_socket()?;
                let attempt = &mut self.attempts[at];
                (attempt.socket, attempt.has_heard) = (Some(socket), false);
            }
            if let Some(socket) = &self.attempts[at].socket
                && let Err(error) = socket.send_to(&bytes, to)
                && let Some(errno) = Errno::from_io_error(&error)
                && has_no_route(errno)
            {
                // Other errors pass: it is said again.
                return Err(Unanswered::NoRoute(to, errno));
            }
        }
        Ok(())
    }

    /// When there is something to send, at the latest.
    fn due_ns(&self) -> u64 {
        let newest = self.attempts.len().saturating_sub(1);
        let speaking = self.attempts.iter().enumerate();
        speaking
            .filter(|(at, attempt)| *at == newest || attempt.has_heard)
            .filter_map(|(_, attempt)| attempt.initiator.deadline_ns())
            .fold(self.ports.next_ns.min(self.course.deadline_ns), u64::min)
    }

    /// Waits for a message, until something is to be sent. Nothing if it was not the answer.
    fn receive(
        &mut self,
        handshake: &EndpointHandshake<'_>,
        now_ns: u64,
        room: &mut [u8],
    ) -> Result<Option<Answered>, HostError> {
        let span_ns = self.due_ns().saturating_sub(now_ns).max(1_000);
        let came = match self.attempts.iter().all(|attempt| attempt.socket.is_none()) {
            true => {
                let span = Duration::from_nanos(span_ns);
                handshake.answers.recv_timeout(span).ok()
            }
            false => {
                // The endpoint's answers are looked at in between.
                self.sleep(span_ns.min(PORT_NS))?;
                handshake.answers.try_recv().ok()
            }
        };
        self.is_refused |= came == Some(None);
        for at in 0..self.attempts.len() {
            let attempt = &self.attempts[at];
            let message = match &attempt.socket {
                None => came.as_ref().and_then(Option::as_deref),
                Some(socket) => match socket.recv(room) {
                    Ok(length) => Some(&room[..length]),
                    Err(_) => None,
                },
            };
            let Some(message) = message else { continue };
            // An invalid answer changes nothing.
            match self.attempts[at].initiator.take(now_ns, message) {
                Ok(Taken::Answered(answered)) => return Ok(Some(*answered)),
                Ok(Taken::Again) => {
                    self.is_refused = false;
                    self.has_heard = true;
                    self.attempts[at].has_heard = true;
                    self.ports.has_answered(now_ns);
                }
                Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Sleeps until a datagram came at a socket of an attempt, or so long.
    fn sleep(&self, span_ns: u64) -> Result<(), HostError> {
        let sockets = self.attempts.iter().filter_map(|one| one.socket.as_ref());
        let mut polled: Vec<_> = sockets
            .map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN))
            .collect();
        let span = Timespec {
            tv_sec: 0,
            tv_nsec: span_ns as _,
        };
        match rustix::event::poll(&mut polled, Some(&span)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(HostError::system("ppoll", 0, errno)),
        }
    }
}

/// Whether the system has no way to send there, perhaps only not yet.
fn has_no_route(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NETUNREACH | Errno::NETDOWN | Errno::HOSTUNREACH
    )
}
