//! A [`Socket`]: one UDP socket, and so one path through a network that spreads by ports.
//!
//! It never blocks, and does not fragment: a datagram that is too long for the way out is refused.
//! What the network reports (nobody listens there, the way out became narrower) are hints with
//! types of their own, for anyone on the path can forge them; nothing is decided here. Marks of
//! congestion (ECN) are ignored: the transport measures delay. One call sends a run of equal
//! datagrams and one call receives a run that the kernel had joined, both without control messages,
//! unless the kernel is to tell when they arrived. `sendmmsg` and `recvmmsg` would save a tenth of
//! a microsecond of the one or two that a datagram costs without runs, and cost more than that
//! where there is one datagram; they are not used.

use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Once;

use nix::sys::socket::sockopt as sockopt_of_nix;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use rustix::net::sockopt;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType,
};

use super::batch::{Batch, Inbox};
use super::offload::Offload;
use super::{DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN};
use hamlyn_ring::Errno;
use hamlyn_ring::forks::ClosedInChildren;

/// Headers of IPv4 and UDP.
const HEADERS_V4_BYTES: u32 = 28;
/// Headers of IPv6 and UDP.
const HEADERS_V6_BYTES: u32 = 48;
/// More than any system gives, and not more than can be asked for.
const BUFFER_BYTES_MAX: usize = 1 << 30;

/// Groups for use within a site, which nobody joins.
const NOBODYS_V4: Ipv4Addr = Ipv4Addr::new(239, 255, 74, 7);
const NOBODYS_V6: Ipv6Addr = Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0x4841, 0x4d4c);

/// Settings of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketSettings {
    /// Bytes that the socket may hold unsent.
    pub send_buffer_bytes: usize,
    /// Bytes that the socket may hold unread.
    pub receive_buffer_bytes: usize,
    /// Whether runs are cut and joined by the kernel where it can.
    pub is_offloaded: bool,
    /// Whether other sockets of this user that say the same may have its port, too.
    pub is_shared: bool,
}

impl Default for SocketSettings {
    fn default() -> Self {
        Self {
            send_buffer_bytes: 4 << 20,
            receive_buffer_bytes: 4 << 20,
            is_offloaded: true,
            is_shared: false,
        }
    }
}

/// A call of the system failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{call} failed: {errno}")]
pub struct CallFailed {
    /// Which.
    pub call: &'static str,
    /// The system's reason.
    pub errno: Errno,
}

/// Datagrams were not sent. Those that were are out of the batch; the others are still in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The socket's buffer, or the interface's queue, is full. Later there is room.
    #[error("the socket's buffer is full")]
    Full,
    /// A host said that nobody listens at the peer's port. A hint: it may be forged, and it may
    /// have been about an earlier datagram. Sending may be tried again at once.
    #[error("nobody listens at the peer's port")]
    Refused,
    /// The way out does not carry datagrams of so many bytes any more.
    #[error("{bytes} bytes are too long for the way to the peer")]
    TooLong {
        /// Length of the datagram.
        bytes: usize,
    },
    /// Anything else; that no way to the peer is known is a hint, too.
    #[error(transparent)]
    System(#[from] CallFailed),
}

/// One UDP socket. Nothing of it allocates once it is made.
#[derive(Debug)]
pub struct Socket {
    /// Dropped before the socket. The port is the parent's.
    in_children: ClosedInChildren,
    socket: OwnedFd,
    local: SocketAddr,
    peer: Option<SocketAddr>,
    offload: Offload,
    /// The network may cut datagrams.
    cuts: bool,
    /// A received datagram is hardly longer; usually both directions take the same route.
    single_bytes_max: usize,
}

fn failed(call: &'static str) -> impl Fn(Errno) -> CallFailed {
    move |errno| CallFailed { call, errno }
}

impl Socket {
    /// A socket at this address; port 0 lets the system choose. It receives from anyone until it is
    /// connected. At all addresses of IPv6 (`[::]`) it has those of IPv4 as well, as long as it is
    /// not connected.
    pub fn bind(at: SocketAddr, settings: &SocketSettings) -> Result<Self, CallFailed> {
        let (family, is_v6) = match at.ip() {
            IpAddr::V4(_) => (AddressFamily::INET, false),
            IpAddr::V6(_) => (AddressFamily::INET6, true),
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)
            .map_err(failed("socket"))?;
        // PROBE: never fragment, and let the length be found by those who can tell (`udp::mtu`),
        // not by an attacker who can forge a report to the kernel.
        if is_v6 {
            let only = !at.ip().is_unspecified();
            sockopt::set_ipv6_v6only(&socket, only).map_err(failed("setsockopt(IPV6_V6ONLY)"))?;
            sockopt::set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)
                .map_err(failed("setsockopt(IPV6_MTU_DISCOVER)"))?;
        } else {
            sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)
                .map_err(failed("setsockopt(IP_MTU_DISCOVER)"))?;
        }
        share(socket.as_fd(), settings.is_shared)?;
        rustix::net::bind(&socket, &at).map_err(failed("bind"))?;
        let offload = Offload::probe(socket.as_fd(), settings.is_offloaded);
        size_buffers(socket.as_fd(), settings)?;
        let local = own_address(socket.as_fd())?;
        Ok(Self {
            in_children: ClosedInChildren::new(socket.as_fd()),
            socket,
            local,
            peer: None,
            offload,
            cuts: false,
            single_bytes_max: DATAGRAM_BYTES_MIN,
        })
    }

    /// A socket to this peer from the port of this one, to which everything still comes: the new
    /// one is bound to a group that nobody joins, so the system leads nothing to it, and sends from
    /// the host's own address all the same (decision 0018). Nothing if that is not the address at
    /// which this one listens.
    pub fn beside(
        &self,
        peer: SocketAddr,
        settings: &SocketSettings,
    ) -> Result<Option<Self>, CallFailed> {
        let (any, nobodys): (IpAddr, IpAddr) = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), NOBODYS_V4.into()),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), NOBODYS_V6.into()),
        };
        // The system does not say where the new one sends from: from where any other does.
        let mut other = Self::bind(SocketAddr::new(any, 0), settings)?;
        other.connect(peer)?;
        let local = SocketAddr::new(other.local.ip(), self.local.port());
        if !self.local.ip().is_unspecified() && self.local.ip() != local.ip() {
            return Ok(None);
        }
        // No longer than it takes: another program of this user could be given the port, too.
        let shared = SocketSettings {
            is_shared: true,
            ..*settings
        };
        share(self.as_fd(), true)?;
        let bound = Self::bind(SocketAddr::new(nobodys, local.port()), &shared);
        share(self.as_fd(), false)?;
        let mut socket = bound?;
        socket.connect(peer)?;
        socket.local = local;
        Ok(Some(socket))
    }

    /// From now on the system reports what becomes of datagrams that sockets beside this one send:
    /// [`Socket::receive`] fails once there is a report, and [`Socket::next_report`] must be called
    /// until there is none.
    pub fn drain_reports(&self) {
        // Without it, it takes longer until it is known that nobody listens.
        let _ = setsockopt(&self.socket, sockopt_of_nix::Ipv4RecvErr, &true);
        if self.local.is_ipv6() {
            let _ = setsockopt(&self.socket, sockopt_of_nix::Ipv6RecvErr, &true);
        }
    }

    /// From now on the system stamps datagrams when they arrive, for [`Socket::receive_stamped`].
    /// Whether it does.
    pub fn stamp_arrivals(&self) -> bool {
        setsockopt(&self.socket, sockopt_of_nix::ReceiveTimestampns, &true).is_ok()
    }

    /// Receiving goes on though there are more reports: the system tells of each before it gives
    /// what has come.
    #[cold]
    pub fn put_off_reports(&self) {
        let _ = rustix::net::sockopt::socket_error(&self.socket);
    }

    /// The next report: where nobody listens, if it says that. As [`SendError::Refused`], a hint.
    #[cold]
    pub fn next_report(&self) -> Option<Option<SocketAddr>> {
        let mut said = [0; 128];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let socket = self.socket.as_raw_fd();
        // A byte of what was sent, though nobody wants it: emulators of the system tell nothing
        // beside no data.
        let mut sent = [0];
        let mut sent = [IoSliceMut::new(&mut sent)];
        let report = recvmsg::<SockaddrStorage>(socket, &mut sent, Some(&mut said), flags).ok()?;
        let refused = Errno::CONNREFUSED.raw_os_error() as u32;
        let is_refused = report.cmsgs().is_ok_and(|mut all| {
            all.any(|one| match one {
                ControlMessageOwned::Ipv4RecvErr(why, _)
                | ControlMessageOwned::Ipv6RecvErr(why, _) => why.ee_errno == refused,
                _ => false,
            })
        });
        let to = report.address.filter(|_| is_refused).and_then(|to| {
            let v4 = to.as_sockaddr_in().map(|to| SocketAddr::V4((*to).into()));
            v4.or_else(|| Some(SocketAddr::V6((*to.as_sockaddr_in6()?).into())))
        });
        Some(to.map(plain))
    }

    /// From now on this peer alone is sent to and received from: the system throws everybody else's
    /// datagrams away. What came before may still be in the socket, from anyone;
    /// [`Socket::receive`] does not name its source.
    pub fn connect(&mut self, peer: SocketAddr) -> Result<(), CallFailed> {
        rustix::net::connect(&self.socket, &peer).map_err(failed("connect"))?;
        self.local = own_address(self.socket.as_fd())?;
        self.peer = Some(peer);
        self.single_bytes_max = self.route_datagram_bytes().unwrap_or(DATAGRAM_BYTES_MIN);
        Ok(())
    }

    /// What comes here is sent in datagrams of up to so many bytes. A socket that is not connected
    /// knows no way to learn that from; until it is told, runs of longer ones are told apart by
    /// more than their word for it, and contents that look like packet headers can spoil that where
    /// they are not encrypted.
    pub fn expect(&mut self, single_bytes_max: usize) {
        self.single_bytes_max = single_bytes_max.max(DATAGRAM_BYTES_MIN);
    }

    /// From now on the network may cut long datagrams to pieces, or may not (the default). For
    /// those whose length cannot be changed any more, when a way has become too narrow for them.
    /// The socket must be connected.
    pub fn cut(&mut self, is_allowed: bool) -> Result<(), CallFailed> {
        if is_allowed == self.cuts {
            return Ok(());
        }
        self.cuts = is_allowed;
        let (v4, v6) = match is_allowed {
            true => (Ipv4PathMtuDiscovery::DONT, Ipv6PathMtuDiscovery::DONT),
            false => (Ipv4PathMtuDiscovery::PROBE, Ipv6PathMtuDiscovery::PROBE),
        };
        if self.local.is_ipv6() {
            sockopt::set_ipv6_mtu_discover(&self.socket, v6)
                .map_err(failed("setsockopt(IPV6_MTU_DISCOVER)"))
        } else {
            sockopt::set_ip_mtu_discover(&self.socket, v4)
                .map_err(failed("setsockopt(IP_MTU_DISCOVER)"))
        }
    }

    /// The address of this socket, with the port that the system chose.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whom it is connected to.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The longest datagram, in bytes, that the system believes the way to the peer carries;
    /// nothing if the socket is not connected, or the system does not know.
    pub fn route_datagram_bytes(&self) -> Option<usize> {
        let packet_bytes = match self.peer?.ip() {
            IpAddr::V4(_) => sockopt::ip_mtu(&self.socket)
                .ok()?
                .checked_sub(HEADERS_V4_BYTES)?,
            IpAddr::V6(_) => sockopt::ipv6_mtu(&self.socket)
                .ok()?
                .checked_sub(HEADERS_V6_BYTES)?,
        };
        Some((packet_bytes as usize).min(DATAGRAM_BYTES_MAX))
    }

    /// Sends the datagrams of a batch to the peer, in order; how many. After an error some may have
    /// been sent: [`Batch::waiting`] tells. The socket must be connected.
    pub fn send(&mut self, batch: &mut Batch) -> Result<usize, SendError> {
        let mut sent = 0;
        // Datagrams that the network may fragment are not segmented by the system.
        let datagrams_max = if self.cuts {
            1
        } else {
            self.offload.datagrams_max()
        };
        while let Some(run) = batch.run(datagrams_max) {
            if !self
                .offload
                .prepare(self.socket.as_fd(), run.datagrams, run.segment_bytes)
            {
                continue;
            }
            match rustix::net::send(&self.socket, run.bytes, SendFlags::empty()) {
                Ok(_) => {
                    let (datagrams, bytes) = (run.datagrams, run.bytes.len());
                    batch.done(datagrams, bytes);
                    sent += datagrams;
                }
                Err(Errno::INTR) => {}
                Err(errno) => self.unsent(errno, run.datagrams, run.segment_bytes)?,
            }
        }
        Ok(sent)
    }

    /// Sends datagrams of which each but the last has so many bytes, and the last no more, in one
    /// call, from wherever they lie: all of them or none. False if one call cannot, but
    /// [`Socket::send`] may. At most 64; the socket must be connected.
    pub fn send_gathered(
        &mut self,
        datagrams: &[IoSlice<'_>],
        segment_bytes: u16,
    ) -> Result<bool, SendError> {
        let (socket, count) = (self.socket.as_fd(), datagrams.len());
        let most = match self.cuts {
            true => 1,
            false => self.offload.datagrams_max(),
        };
        if count > most || !self.offload.prepare(socket, count, segment_bytes) {
            return Ok(false);
        }
        let mut nothing = SendAncillaryBuffer::default();
        match rustix::net::sendmsg(socket, datagrams, &mut nothing, SendFlags::empty()) {
            Ok(_) => Ok(true),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => self.unsent(errno, count, segment_bytes).map(|()| false),
        }
    }

    /// Sends one datagram to the peer, without a batch.
    #[inline]
    pub fn send_one(&mut self, datagram: &[u8]) -> Result<(), SendError> {
        let length = datagram.len().min(DATAGRAM_BYTES_MAX + 1) as u16;
        loop {
            self.offload.prepare(self.socket.as_fd(), 1, length);
            match rustix::net::send(&self.socket, datagram, SendFlags::empty()) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => self.unsent(errno, 1, length)?,
            }
        }
    }

    /// Sends one datagram to anyone; for the few that precede a connection.
    pub fn send_to(&mut self, datagram: &[u8], to: SocketAddr) -> Result<(), SendError> {
        let to = match (self.local, to) {
            // So the system calls it here.
            (SocketAddr::V6(_), SocketAddr::V4(to)) => (to.ip().to_ipv6_mapped(), to.port()).into(),
            _ => to,
        };
        let length = datagram.len().min(DATAGRAM_BYTES_MAX + 1) as u16;
        loop {
            self.offload.prepare(self.socket.as_fd(), 1, length);
            match rustix::net::sendto(&self.socket, datagram, SendFlags::empty(), &to) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => self.unsent(errno, 1, length)?,
            }
        }
    }

    /// Why a run was not sent; nothing if it is to be tried once more, in another way.
    #[cold]
    fn unsent(&mut self, errno: Errno, datagrams: usize, length: u16) -> Result<(), SendError> {
        let bytes = usize::from(length);
        match errno {
            Errno::AGAIN | Errno::NOBUFS => Err(SendError::Full),
            Errno::CONNREFUSED => Err(SendError::Refused),
            // Some kernels compare what segments are set to, though nothing would be cut.
            Errno::MSGSIZE if datagrams == 1 && self.offload.is_stricter(bytes) => {
                self.offload.rest(self.socket.as_fd());
                Ok(())
            }
            Errno::MSGSIZE => {
                // The system remembers this error, and would report it once more, of a datagram
                // that is not too long.
                let _ = sockopt::socket_error(&self.socket);
                Err(SendError::TooLong { bytes })
            }
            Errno::IO | Errno::INVAL if self.offload.segments() => {
                self.offload.give_up(self.socket.as_fd());
                Ok(())
            }
            errno => Err(CallFailed {
                call: "send",
                errno,
            }
            .into()),
        }
    }

    /// Fills an inbox by one call: with one datagram, or with several that the system had joined.
    /// False if there is none. What the inbox still held is gone. An error is a hint, as
    /// [`SendError::Refused`]; receiving may go on at once.
    #[inline]
    pub fn receive(&self, inbox: &mut Inbox) -> Result<bool, CallFailed> {
        loop {
            let into = &mut inbox.bytes[..];
            // The plainest call there is: on the systems measured it takes a fifth less than
            // `recvmsg`.
            let came = if self.peer.is_some() {
                rustix::net::recv(&self.socket, into, RecvFlags::empty())
                    .map(|(bytes, _)| (bytes, None))
            } else {
                rustix::net::recvfrom(&self.socket, into, RecvFlags::empty())
                    .map(|(bytes, _, from)| (bytes, from))
            };
            match came {
                Ok((bytes, from)) => {
                    let from = from
                        .and_then(|from| SocketAddr::try_from(from).ok())
                        .map(plain);
                    let single = self.offload.joins().then_some(self.single_bytes_max);
                    inbox.fill(bytes, single, from);
                    return Ok(true);
                }
                Err(Errno::INTR) => {}
                // About something that was sent, and was said then. Where reports are heard, it is
                // one of them.
                Err(Errno::MSGSIZE) if self.peer.is_some() => {}
                Err(errno) => {
                    inbox.fill(0, None, None);
                    return match errno {
                        Errno::AGAIN => Ok(false),
                        errno => Err(failed("recv")(errno)),
                    };
                }
            }
        }
    }
}

mod stamped;

/// An address of IPv4 as such.
fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => (ip, address.port()).into(),
        // With its scope.
        IpAddr::V6(_) => address,
    }
}

fn share(socket: BorrowedFd<'_>, is_shared: bool) -> Result<(), CallFailed> {
    sockopt::set_socket_reuseport(socket, is_shared).map_err(failed("setsockopt(SO_REUSEPORT)"))
}

fn own_address(socket: BorrowedFd<'_>) -> Result<SocketAddr, CallFailed> {
    let address = rustix::net::getsockname(socket).map_err(failed("getsockname"))?;
    SocketAddr::try_from(address).map_err(failed("getsockname"))
}

/// Linux gives twice what it is asked for, as half of it is for its own records, and less in
/// silence if the administrator's limit is lower. Gives what there is, to send and to receive.
fn size_buffers(
    socket: BorrowedFd<'_>,
    settings: &SocketSettings,
) -> Result<[usize; 2], CallFailed> {
    static WARNED: Once = Once::new();
    let [ask_send, ask_receive] = [settings.send_buffer_bytes, settings.receive_buffer_bytes]
        .map(|bytes| bytes.min(BUFFER_BYTES_MAX));
    let call = failed("setsockopt(SO_SNDBUF)");
    sockopt::set_socket_send_buffer_size(socket, ask_send).map_err(call)?;
    let call = failed("setsockopt(SO_RCVBUF)");
    sockopt::set_socket_recv_buffer_size(socket, ask_receive).map_err(call)?;
    let got = || -> Result<(usize, usize), Errno> {
        let send = sockopt::socket_send_buffer_size(socket)?;
        Ok((send / 2, sockopt::socket_recv_buffer_size(socket)? / 2))
    };
    let (mut send, mut receive) = got().map_err(failed("getsockopt(SO_RCVBUF)"))?;
    if send < settings.send_buffer_bytes || receive < settings.receive_buffer_bytes {
        // The administrator may go beyond the limit; everybody else is told no.
        let _ = sockopt::set_socket_send_buffer_size_force(socket, ask_send);
        let _ = sockopt::set_socket_recv_buffer_size_force(socket, ask_receive);
        (send, receive) = got().map_err(failed("getsockopt(SO_RCVBUF)"))?;
    }
    if send < settings.send_buffer_bytes || receive < settings.receive_buffer_bytes {
        WARNED.call_once(|| {
            tracing::warn!(
                send_bytes = send,
                receive_bytes = receive,
                "the socket buffers are smaller than wanted ({} and {} bytes): raise net.core.wmem_max and net.core.rmem_max",
                settings.send_buffer_bytes,
                settings.receive_buffer_bytes,
            );
        });
    }
    Ok([send, receive])
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> Self {
        drop(socket.in_children);
        socket.socket
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests;
