//! How a connection sends: it protects frames and joins them to batches; it sends probes, and the
//! transmit backlog of a full socket.

use std::net::SocketAddr;

use hamlyn_engine::point::Point;
use hamlyn_engine::transport::{CloseReason, InFlightFrame, Outgoing};

use super::super::UdpEndpoint;
use super::super::probing::{PROBE_BYTES, Trial};
use super::State;
use crate::udp::batch::Batch;
use crate::udp::datagram_socket::{ConnectionStep, DatagramSocket};
use crate::udp::packet_header::{Kind, PACKET_HEADER_BYTES};
use crate::udp::protection::{CHECKSUM_BYTES, TxProtection};
use crate::udp::socket::SendError;

/// Control frames (without packets) that one pump sends at most; more wait for the next, so that no
/// peer keeps others waiting.
const CONTROL_FRAMES_MAX: usize = 64;
/// A frame of a batch is filled up to the length of the others if it lacks no more than this part
/// of it.
const FILL_PART: usize = 8;

/// Protects a frame that lies behind the room for its packet header; false if all packet numbers
/// are used.
#[inline]
fn protect(
    tx_protection: &mut TxProtection,
    path: u8,
    room: &mut [u8],
    frame_bytes: usize,
) -> bool {
    tx_protection
        .protect_in_place(Kind::Data, path, room, frame_bytes)
        .is_ok()
}

impl<S: DatagramSocket> State<S> {
    /// Sends frames until there is none to be sent, or no room.
    pub(super) fn pump(&mut self, endpoint: &UdpEndpoint<S>, now_ns: u64) {
        self.held_ns = None;
        if !self.flush_backlog(endpoint, now_ns) {
            return;
        }
        if now_ns >= self.probing.deadline_ns() && !self.probe(endpoint, now_ns) {
            return;
        }
        let mut controls = 0;
        while controls < CONTROL_FRAMES_MAX
            && let Some(control) = self.control.get_mut(PACKET_HEADER_BYTES..)
            && let Some((next, kept)) = self.association.next_in_place(now_ns, control)
        {
            let has_room = match kept {
                Some(kept) => self.add(endpoint, now_ns, next.path, kept),
                None => {
                    controls += 1;
                    S::passes(Point::AnswerMade);
                    self.send_control(endpoint, now_ns, next)
                }
            };
            if !has_room {
                // The frames that are not sent now are retransmitted.
                return self.run.clear(endpoint);
            }
        }
        self.send_run(endpoint, now_ns);
    }

    /// Puts a frame to those that one call sends; whether there was room in the socket for those
    /// that could not wait for it.
    #[inline]
    fn add(
        &mut self,
        endpoint: &UdpEndpoint<S>,
        now_ns: u64,
        path: u8,
        mut kept: InFlightFrame,
    ) -> bool {
        // Frames of one length go in one call.
        if kept.length_bytes() + self.frame_bytes / FILL_PART >= self.frame_bytes {
            self.association.pad(&mut kept, self.frame_bytes);
        }
        self.show(path, self.association.frame(&kept));
        let frame_bytes = kept.length_bytes();
        let datagram_bytes = frame_bytes + self.tx_protection.overhead_bytes();
        if !self.run.has_room(path, datagram_bytes) && !self.send_run(endpoint, now_ns) {
            return false;
        }
        let is_encrypted = if self.tx_protection.is_encrypting() {
            let batch = self.run.batch(endpoint);
            let protected = batch.room(datagram_bytes).is_some_and(|room| {
                room[PACKET_HEADER_BYTES..PACKET_HEADER_BYTES + frame_bytes]
                    .copy_from_slice(self.association.frame(&kept));
                protect(&mut self.tx_protection, path, room, frame_bytes)
            });
            if protected {
                batch.push(datagram_bytes);
            }
            protected
        } else {
            let association = &mut self.association;
            let room =
                association.frame_with_margins_mut(&kept, PACKET_HEADER_BYTES, CHECKSUM_BYTES);
            protect(&mut self.tx_protection, path, room, frame_bytes)
        };
        if is_encrypted {
            self.run.push(path, datagram_bytes, kept);
        } else {
            // All packet numbers are used, which takes centuries.
            self.association.fail(CloseReason::NoWay);
        }
        true
    }

    /// Sends a frame that has no packets; whether there was room in the socket.
    fn send_control(&mut self, endpoint: &UdpEndpoint<S>, now_ns: u64, next: Outgoing) -> bool {
        let Outgoing {
            path, length_bytes, ..
        } = next;
        let frame = PACKET_HEADER_BYTES..PACKET_HEADER_BYTES + length_bytes;
        self.show(path, &self.control[frame]);
        if !protect(
            &mut self.tx_protection,
            path,
            &mut self.control,
            length_bytes,
        ) {
            self.association.fail(CloseReason::NoWay);
            return true;
        }
        let datagram = &self.control[..length_bytes + self.tx_protection.overhead_bytes()];
        let Some(socket) = self.sockets.get_mut(usize::from(path)) else {
            return true;
        };
        let Err(why) = socket.send_one(datagram) else {
            return true;
        };
        let mut batch = endpoint.take_batch();
        if let Some(room) = batch.room(datagram.len()) {
            room.copy_from_slice(datagram);
            batch.push(datagram.len());
        }
        self.send_rest(endpoint, now_ns, path, batch, Some(why))
    }

    /// Shows a frame to a socket that listens, and writes it to the trace, if there is one.
    #[inline]
    fn show(&self, path: u8, frame: &[u8]) {
        S::observe(self.number, || ConnectionStep::Sent { path, frame });
        if let Some(tap) = &self.tap
            && let Some(socket) = self.sockets.get(usize::from(path))
            && let Some(to) = socket.peer()
        {
            tap.sent(path, socket.local(), to, frame);
        }
    }

    /// Sends the frames that were put together; whether the socket had room for them. There are
    /// none then.
    fn send_run(&mut self, endpoint: &UdpEndpoint<S>, now_ns: u64) -> bool {
        if self.run.is_empty() {
            return true;
        }
        let path = self.run.path();
        let socket = self.sockets.get_mut(usize::from(path));
        let sent = socket.map(|socket| self.run.send(&self.association, socket));
        let is_sent = matches!(sent, None | Some(Ok(true)));
        let unsent = (!is_sent).then(|| self.run.take(&self.association, endpoint));
        self.run.clear(endpoint);
        unsent.is_none_or(|batch| {
            let why = sent.and_then(Result::err);
            self.send_rest(endpoint, now_ns, path, batch, why)
        })
    }

    /// Where the peer's frames come to: the address that this side has on the way to it.
    #[cold]
    pub(super) fn own_address(&self, endpoint: &UdpEndpoint<S>, path: u8) -> SocketAddr {
        let local = endpoint.local();
        let socket = self.sockets.get(usize::from(path)).or(self.sockets.first());
        socket.map_or(local, |socket| {
            SocketAddr::new(socket.local().ip(), local.port())
        })
    }

    /// Sends what the socket had no room for; whether it has room now.
    fn flush_backlog(&mut self, endpoint: &UdpEndpoint<S>, now_ns: u64) -> bool {
        match self.backlog.take() {
            None => true,
            Some((path, batch)) => self.send(endpoint, now_ns, path, batch),
        }
    }

    /// Sends probes that are due, and answers those that came; whether the socket had room for
    /// them.
    #[cold]
    fn probe(&mut self, endpoint: &UdpEndpoint<S>, now_ns: u64) -> bool {
        while self.association.close_reason().is_none()
            && let Some(trial) = self.probing.next(now_ns)
        {
            let overhead_bytes = self.tx_protection.overhead_bytes();
            let (kind, path, said, bytes) = match trial {
                Trial::Probe(path, bytes) => (Kind::Probe, path, bytes as u16, bytes),
                Trial::Answer(path, said) => {
                    let bytes = PROBE_BYTES + overhead_bytes;
                    (Kind::ProbeAnswer, path, said, bytes)
                }
            };
            let mut batch = endpoint.take_batch();
            let plain_bytes = bytes.saturating_sub(overhead_bytes);
            let protected = batch.room(bytes).and_then(|room| {
                let plain = room.get_mut(PACKET_HEADER_BYTES..PACKET_HEADER_BYTES + plain_bytes)?;
                plain.fill(0);
                plain
                    .get_mut(..PROBE_BYTES)?
                    .copy_from_slice(&said.to_le_bytes());
                let protected = self
                    .tx_protection
                    .protect_in_place(kind, path, room, plain_bytes);
                protected.ok()
            });
            let Some(protected) = protected else {
                endpoint.put_batch(batch);
                continue;
            };
            batch.push(protected);
            // A probe that is cut would prove nothing.
            let is_cutting = self.is_cutting;
            self.cut(false);
            let is_sent = self.send(endpoint, now_ns, path, batch);
            self.cut(is_cutting);
            if !is_sent {
                return false;
            }
        }
        true
    }

    /// Has frames as long as the paths carry.
    pub(super) fn follow(&mut self, now_ns: u64) {
        let overhead_bytes = self.tx_protection.overhead_bytes();
        for path in 0..self.sockets.len() as u8 {
            let (frames, least_bytes) = self.association.losses(path);
            let least_bytes = least_bytes.saturating_add(overhead_bytes);
            self.probing.lost(now_ns, path, frames, least_bytes);
        }
        let frame_bytes = self.probing.datagram_bytes() - overhead_bytes;
        let frame_bytes = frame_bytes.min(self.frame_bytes_max);
        if self.probing.has_narrowed() {
            self.cut(true);
        } else if self.is_cutting && self.association.longest_frame_bytes() <= frame_bytes {
            self.cut(false);
        }
        if frame_bytes != self.frame_bytes {
            self.frame_bytes = frame_bytes;
            self.association.limit_frames(frame_bytes);
        }
    }

    /// Allows the network to fragment datagrams that have become too long for a path, or forbids
    /// that again.
    #[cold]
    fn cut(&mut self, is_cutting: bool) {
        self.is_cutting = is_cutting;
        for socket in &mut self.sockets {
            // If it cannot, long frames are lost until a long probe passes.
            let _ = socket.cut(is_cutting);
        }
    }

    /// The system reports that nobody listens there. No more count than datagrams were sent: such
    /// reports can be forged.
    pub(super) fn note_unreachable(&mut self) {
        if u64::from(self.unreachable_reports) < self.tx_protection.packets() - self.answered {
            self.unreachable_reports += 1;
        }
    }

    /// Sends a batch; whether the socket had room for it.
    fn send(&mut self, endpoint: &UdpEndpoint<S>, now_ns: u64, path: u8, batch: Batch) -> bool {
        self.send_rest(endpoint, now_ns, path, batch, None)
    }

    /// The same, if it was tried before, and why its first datagram was not sent.
    fn send_rest(
        &mut self,
        endpoint: &UdpEndpoint<S>,
        now_ns: u64,
        path: u8,
        mut batch: Batch,
        mut why: Option<SendError>,
    ) -> bool {
        loop {
            match why {
                None => {}
                Some(SendError::Full) => {
                    self.backlog = Some((path, batch));
                    self.full_ns = now_ns;
                    return false;
                }
                Some(SendError::Refused) => self.note_unreachable(),
                // The probe may pass in spite of the error; otherwise nobody answers.
                Some(error) => {
                    if let SendError::TooLong { bytes } = error {
                        self.probing.too_long(now_ns, path, bytes);
                    }
                    batch.drop_first();
                }
            }
            let socket = self.sockets.get_mut(usize::from(path));
            let Some(socket) = socket.filter(|_| !batch.is_empty()) else {
                break;
            };
            match socket.send(&mut batch) {
                Ok(_) => break,
                Err(error) => why = Some(error),
            }
        }
        endpoint.put_batch(batch);
        true
    }
}
