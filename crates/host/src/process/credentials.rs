//! Whom the kernel says that a socket is connected to.
//!
//! The one place where `nix` is used: `rustix` reads a process number of 0, which
//! is what the kernel reports for a process that cannot be seen from our process
//! namespace (a container's, say), into a type that must not be 0.

use super::codec::Offer;
use super::numbers::Numbers;
use crate::offers::Asker;
use crate::{Destination, Errno, HostError, Peer};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::{PeerCredentials, PeerPidfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// User, group and process at the other end of a socket, as they were when it
/// was connected or began to listen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Credentials {
    pub(super) user: u32,
    pub(super) group: u32,
    /// 0 if it cannot be seen from here.
    pub(super) process: u32,
}

impl Credentials {
    /// With the numbers of the namespace above.
    pub(super) fn of(socket: &impl AsFd, numbers: &Numbers) -> Result<Self, HostError> {
        let credentials =
            getsockopt(socket, PeerCredentials).map_err(|errno| HostError::System {
                call: "getsockopt(SO_PEERCRED)",
                errno: Errno(errno as i32),
            })?;
        Ok(Self {
            user: numbers.user(credentials.uid()),
            group: numbers.group(credentials.gid()),
            process: u32::try_from(credentials.pid()).unwrap_or(0),
        })
    }

    /// Who asks for an offer.
    pub(super) fn asker(&self) -> Asker {
        Asker::process(self.user, self.process)
    }

    /// Something that becomes readable when the process at the other end of
    /// `socket` ends, if that can be had.
    pub(super) fn open_process(&self, socket: &impl AsFd) -> Option<OwnedFd> {
        // The kernel remembers the process itself, not only its number.
        if let Ok(process) = getsockopt(socket, PeerPidfd) {
            return Some(process);
        }
        // Kernels before 6.5 have but the number. It belongs to the peer as long as the
        // socket is connected, unless somebody else holds that, too.
        let process = i32::try_from(self.process).ok().and_then(Pid::from_raw)?;
        pidfd_open(process, PidfdFlags::empty()).ok()
    }

    /// The peer that these credentials and its own offer make up.
    pub(super) fn peer(&self, offer: &Offer) -> Peer {
        Peer {
            token: 0,
            destination: Destination {
                node: 0,
                user: self.user,
                interface: offer.interface,
            },
            group: self.group,
            process: self.process,
            name: offer.name.as_ref().map(|name| name.as_str().to_owned()),
        }
    }
}
