//! Receiving with the kernel's stamp of arrival: how long a datagram lay in the socket is no delay
//! of the network, and only the kernel knows it. It costs a third of a microsecond more than
//! [`Socket::receive`], for those calls where it matters.

use std::io::IoSliceMut;
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrLike as _, SockaddrStorage, recvmsg,
};
use nix::sys::time::TimeSpec;
use rustix::time::{ClockId, clock_gettime};

use super::{CallFailed, Errno, Inbox, Socket, failed, plain};
use std::net::SocketAddr;

/// Room for a stamp, and for the length of joined datagrams.
const CONTROL_BYTES: usize = 128;

impl Socket {
    /// As [`Socket::receive`]; the inbox says how long what came has waited, if the system has
    /// stamped it ([`Socket::stamp_arrivals`]).
    pub fn receive_stamped(&self, inbox: &mut Inbox) -> Result<bool, CallFailed> {
        let mut control = [0; CONTROL_BYTES];
        loop {
            let mut into = [IoSliceMut::new(&mut inbox.bytes)];
            let socket = self.socket.as_raw_fd();
            let flags = MsgFlags::empty();
            let came = recvmsg::<SockaddrStorage>(socket, &mut into, Some(&mut control), flags);
            let came = came.map(|came| {
                let stamp = came.cmsgs().ok().and_then(|mut all| {
                    all.find_map(|one| match one {
                        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
                        _ => None,
                    })
                });
                let from = came.address.filter(|_| self.peer.is_none());
                (came.bytes, from.and_then(address), stamp)
            });
            match came {
                Ok((bytes, from, stamp)) => {
                    let single = self.offload.joins().then_some(self.single_bytes_max);
                    inbox.fill(bytes, single, from);
                    if let Some(waited_ns) = stamp.and_then(since_ns) {
                        inbox.note_wait(waited_ns);
                    }
                    return Ok(true);
                }
                Err(nix::Error::EINTR) => {}
                Err(nix::Error::EMSGSIZE) if self.peer.is_some() => {}
                Err(why) => {
                    inbox.empty();
                    return match why {
                        nix::Error::EAGAIN => Ok(false),
                        why => Err(failed("recvmsg")(Errno::from_raw_os_error(why as i32))),
                    };
                }
            }
        }
    }
}

/// How long ago that was by the clock of the stamps; nothing if it lies ahead, as that clock may be
/// set.
fn since_ns(stamp: TimeSpec) -> Option<u64> {
    let now = clock_gettime(ClockId::Realtime);
    let seconds = now.tv_sec.checked_sub(stamp.tv_sec())?;
    let ns = seconds.checked_mul(1_000_000_000)? + (now.tv_nsec - stamp.tv_nsec());
    u64::try_from(ns).ok()
}

fn address(from: SockaddrStorage) -> Option<SocketAddr> {
    if from.len() == 0 {
        return None;
    }
    let v4 = from
        .as_sockaddr_in()
        .map(|from| SocketAddr::V4((*from).into()));
    let v6 = || Some(SocketAddr::V6((*from.as_sockaddr_in6()?).into()));
    v4.or_else(v6).map(plain)
}
