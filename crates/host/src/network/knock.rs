//! Somebody is asked over the network, in the caller's thread: the sockets of an [`Initiator`].
//!
//! Two of them share a port. One is connected, so that the system tells of a port at which nobody listens. The other takes what comes
//! from elsewhere: a host with several addresses may answer from another than was asked, and what is authentic is the answer.
//! If nobody answers for long, all begins anew from another port: a network, or a host whose port several processes serve, may lead it elsewhere.

use std::net::SocketAddr;

use hamlyn_link::udp::handshake::{Answered, Initiator, MESSAGE_BYTES_MAX, Taken};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use super::outside::Unanswered;
use crate::HostError;
use crate::process::clock::{now_ns, until};

/// The two sockets.
struct Port {
    connected: OwnedFd,
    open: OwnedFd,
}

fn failed(call: &'static str) -> impl Fn(Errno) -> HostError {
    move |errno| HostError::system(call, 2, errno)
}

/// A socket at this address that lets others of this user have the same.
pub(super) fn shared_socket(at: SocketAddr) -> Result<OwnedFd, (&'static str, Errno)> {
    let family = match at {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None);
    let socket = socket.map_err(|errno| ("socket", errno))?;
    let shared = sockopt::set_socket_reuseport(&socket, true);
    shared.map_err(|errno| ("setsockopt(SO_REUSEPORT)", errno))?;
    rustix::net::bind(&socket, &at).map_err(|errno| ("bind", errno))?;
    Ok(socket)
}

impl Port {
    fn new(own: SocketAddr, to: SocketAddr) -> Result<Self, HostError> {
        let socket = |at| shared_socket(at).map_err(|(call, errno)| failed(call)(errno));
        let open = socket(own)?;
        let local = rustix::net::getsockname(&open).map_err(failed("getsockname"))?;
        let local = SocketAddr::try_from(local).map_err(failed("getsockname"))?;
        let connected = socket(SocketAddr::new(own.ip(), local.port()))?;
        rustix::net::connect(&connected, &to).map_err(failed("connect"))?;
        Ok(Self { connected, open })
    }

    /// Waits until something came, or that instant.
    fn wait(&self, until_ns: u64) -> Result<(), HostError> {
        let mut polled =
            [&self.connected, &self.open].map(|socket| PollFd::new(socket, PollFlags::IN));
        match rustix::event::poll(&mut polled, Some(&until(until_ns))) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(failed("ppoll")(errno)),
        }
    }

    /// The length of what came; nothing if nothing has.
    fn receive(&self, room: &mut [u8]) -> Result<Option<usize>, Unanswered> {
        for socket in [&self.connected, &self.open] {
            match rustix::net::recv(socket, &mut *room, RecvFlags::empty()) {
                Ok((length, _)) => return Ok(Some(length)),
                Err(Errno::CONNREFUSED) => return Err(Unanswered::Absent),
                Err(_) => {}
            }
        }
        Ok(None)
    }
}

/// Asks there until there is an answer, or that instant.
pub(super) fn knock(
    mut initiator: Initiator,
    own: SocketAddr,
    to: SocketAddr,
    deadline_ns: u64,
) -> Result<Answered, Unanswered> {
    let mut port = Port::new(own, to)?;
    let mut begun_anew = initiator.begun_anew();
    let mut room = [0; MESSAGE_BYTES_MAX + 1];
    loop {
        let now_ns = now_ns();
        if let Some(bytes) = initiator.poll(now_ns).map(<[u8]>::to_vec) {
            if initiator.begun_anew() != begun_anew {
                begun_anew = initiator.begun_anew();
                port = Port::new(own, to)?;
            }
            let sent = rustix::net::send(&port.connected, &bytes, SendFlags::empty());
            if sent == Err(Errno::CONNREFUSED) {
                return Err(Unanswered::Absent);
            }
        }
        if now_ns >= deadline_ns {
            return Err(Unanswered::Late);
        }
        let again_ns = initiator.deadline_ns().unwrap_or(deadline_ns);
        port.wait(again_ns.min(deadline_ns))?;
        while let Some(length) = port.receive(&mut room)? {
            // What is no answer changes nothing.
            if let Ok(Taken::Answered(answered)) = initiator.take(now_ns, &room[..length]) {
                return Ok(*answered);
            }
        }
    }
}
