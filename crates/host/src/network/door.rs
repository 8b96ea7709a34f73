//! The doorkeeper: a thread of one process of each host that answers at the host's known port on which port somebody is.
//!
//! Every process that is on the network tries to be it; the first has the port, and when it ends, another takes it within a
//! moment. It asks its neighbours over the local sockets, where the kernel says who they are, and only those whom it may be linked
//! to; a neighbour that stalls costs its questioners their time, and others a moment.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;

use hamlyn_link::udp::handshake::{Asked, Heard, INITIATION_BYTES_MAX, Responder};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::letter::{Answer, Request, Sought};
use super::outside::wall_ms;
use crate::alarm::Event as Signal;
use crate::process::clock::now_ns;
use crate::process::{Interior, ask_neighbour, no_thread, random_bits};
use crate::{Destination, HostError};

/// Under which name a process offers where its wire is.
pub(crate) const WIRE_ITEM: &str = "hamlyn/wire";
/// How often somebody who has not the port tries to have it.
const RETRY_MS: i64 = 500;
/// How long a neighbour may take to say where its wire is.
const NEIGHBOUR_NS: u64 = 100_000_000;
/// So many strangers one after the other, none of whom had to be waited for, are more than can be believed unproved.
const LOADED: u32 = 32;
const STACK_BYTES: usize = 256 * 1024;

/// What a process offers under [`WIRE_ITEM`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WirePlace {
    pub(crate) interface: u64,
    pub(crate) node: u32,
    pub(crate) user: u32,
    pub(crate) port: u16,
}

impl WirePlace {
    pub(crate) fn of(identity: Destination, port: u16) -> Self {
        Self {
            interface: identity.interface,
            node: identity.node,
            user: identity.user,
            port,
        }
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.interface.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.node.to_le_bytes());
        bytes.extend_from_slice(&self.user.to_le_bytes());
        bytes.extend_from_slice(&self.port.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (interface, rest) = bytes.split_first_chunk()?;
        let (node, rest) = rest.split_first_chunk()?;
        let (user, rest) = rest.split_first_chunk()?;
        let port = u16::from_le_bytes(rest.try_into().ok()?);
        (port != 0).then_some(Self {
            interface: u64::from_le_bytes(*interface),
            node: u32::from_le_bytes(*node),
            user: u32::from_le_bytes(*user),
            port,
        })
    }
}

/// See the module. Dropping it ends the thread.
pub(crate) struct Door {
    stop: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    /// Begins to try for the port.
    pub(crate) fn open(interior: Arc<Interior>, at: SocketAddr) -> Result<Self, HostError> {
        let failed = |errno| HostError::system("eventfd", 1, errno);
        let stop = Arc::new(Signal::new().map_err(failed)?);
        let heard = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("hamlyn-door".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || keep(&interior, at, &heard))
            .map_err(no_thread)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.ring();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, there is nothing left to end.
            let _ = thread.join();
        }
    }
}

/// Waits for the socket, or so long; whether it is time to stop.
fn wait(stop: &Signal, socket: Option<&UdpSocket>, milliseconds: Option<i64>) -> bool {
    let stop = stop.descriptor();
    let mut polled = vec![PollFd::from_borrowed_fd(stop, PollFlags::IN)];
    polled.extend(socket.map(|socket| PollFd::new(socket, PollFlags::IN)));
    let span = milliseconds.map(|milliseconds| Timespec {
        tv_sec: milliseconds / 1_000,
        tv_nsec: milliseconds % 1_000 * 1_000_000,
    });
    let _ = rustix::event::poll(&mut polled, span.as_ref());
    polled[0].revents().intersects(PollFlags::IN)
}

fn keep(interior: &Interior, at: SocketAddr, stop: &Signal) {
    let Some(network) = &interior.network else {
        return;
    };
    let Some(mut responder) = network.new_responder() else {
        tracing::error!("no randomness: this process keeps no door");
        return;
    };
    let mut has_warned = false;
    loop {
        match UdpSocket::bind(at) {
            Ok(socket) => {
                if socket.set_nonblocking(true).is_ok() {
                    serve(interior, &mut responder, &socket, stop);
                }
                return;
            }
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
            Err(error) if !has_warned => {
                has_warned = true;
                tracing::warn!(%error, address = %at, "the door cannot be kept: names of this host are not found by others, unless another process keeps it");
            }
            Err(_) => {}
        }
        if wait(stop, None, Some(RETRY_MS)) {
            return;
        }
    }
}

fn serve(interior: &Interior, responder: &mut Responder, socket: &UdpSocket, stop: &Signal) {
    let mut room = [0; INITIATION_BYTES_MAX + 1];
    while !wait(stop, Some(socket), None) {
        let mut in_a_row = 0;
        while let Ok((length, from)) = socket.recv_from(&mut room) {
            in_a_row += 1;
            let is_loaded = in_a_row > LOADED;
            let datagram = &room[..length];
            let asked = match responder.take(now_ns(), wall_ms(), from, datagram, is_loaded) {
                Ok(Heard::Reply(bytes)) => {
                    let _ = socket.send_to(bytes, from);
                    continue;
                }
                Ok(Heard::Asked(asked)) => asked,
                Err(_) => continue,
            };
            let answer = answer(interior, &asked).to_bytes();
            let Ok(number) = random_bits() else { continue };
            let accepted = responder.accept(now_ns(), *asked, number as u32 | 1, &answer);
            if let Ok(accepted) = accepted {
                let _ = socket.send_to(accepted.response, from);
            }
        }
    }
}

fn answer(interior: &Interior, asked: &Asked) -> Answer {
    let Ok(Request::Locate { namespace, sought }) = Request::from_bytes(asked.payload()) else {
        return Answer::Refused {
            reason: crate::RefusedBecause::INVALID.0,
        };
    };
    let deadline_ns = now_ns().saturating_add(NEIGHBOUR_NS);
    let place = ask_neighbour(interior, &namespace, &sought, WIRE_ITEM, deadline_ns);
    let place = place.as_deref().and_then(WirePlace::from_bytes);
    // Whoever is asked for by its number must be it.
    let place = place.filter(|place| match sought {
        Sought::Interface(interface) => place.interface == interface,
        Sought::Name(_) => true,
    });
    match place {
        Some(place) => Answer::Located {
            interface: place.interface,
            node: place.node,
            user: place.user,
            port: place.port,
        },
        None => Answer::Refused {
            reason: Answer::NOBODY,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = WirePlace {
            interface: 0x0123_4567_89ab_cdef,
            node: 7,
            user: 1000,
            port: 40_000,
        };
        let bytes = place.to_bytes();
        assert_eq!(WirePlace::from_bytes(&bytes), Some(place));
        assert_eq!(WirePlace::from_bytes(&bytes[1..]), None);
        assert_eq!(WirePlace::from_bytes(&[0; 18]), None);
    }
}
