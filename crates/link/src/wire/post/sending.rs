//! How a post sends: frames sealed and put together in batches, probes, and what a socket had no room for.

use std::net::SocketAddr;

use hamlyn_engine::transport::{CloseReason, InFlightFrame, Outgoing};

use super::super::Wire;
use super::super::probing::{PROBE_BYTES, Trial};
use super::State;
use crate::udp::batch::Batch;
use crate::udp::envelope::{ENVELOPE_BYTES, Kind};
use crate::udp::seal::{CHECKSUM_BYTES, Sealer};
use crate::udp::socket::SendError;

/// Frames without packets that one pump sends; more wait for the next, so that nothing that a peer asks for keeps others waiting.
const ASIDE_MAX: usize = 64;
/// A frame of a batch is filled up to the length of the others if it lacks no more than this part of it.
const FILL_PART: usize = 8;

/// Seals a frame that lies behind the room for its envelope; false if there are no packet numbers any more.
#[inline]
fn seal(sealer: &mut Sealer, path: u8, room: &mut [u8], frame_bytes: usize) -> bool {
    sealer
        .seal_in_place(Kind::Data, path, room, frame_bytes)
        .is_ok()
}

impl State {
    /// Sends frames until there is none to be sent, or no room.
    pub(super) fn pump(&mut self, wire: &Wire, now_ns: u64) {
        self.held_ns = None;
        if !self.unstick(wire, now_ns) {
            return;
        }
        if now_ns >= self.probing.deadline_ns() && !self.probe(wire, now_ns) {
            return;
        }
        let mut asides = 0;
        while asides < ASIDE_MAX
            && let Some(aside) = self.aside.get_mut(ENVELOPE_BYTES..)
            && let Some((next, kept)) = self.association.next_in_place(now_ns, aside)
        {
            let has_room = match kept {
                Some(kept) => self.add(wire, now_ns, next.path, kept),
                None => {
                    asides += 1;
                    self.send_aside(wire, now_ns, next)
                }
            };
            if !has_room {
                // What is not sent now is sent again.
                return self.run.clear(wire);
            }
        }
        self.send_run(wire, now_ns);
    }

    /// Puts a frame to those that one call sends; whether there was room in the socket for those that could not wait for it.
    #[inline]
    fn add(&mut self, wire: &Wire, now_ns: u64, path: u8, mut kept: InFlightFrame) -> bool {
        // Frames of one length go in one call.
        if kept.length_bytes() + self.frame_bytes / FILL_PART >= self.frame_bytes {
            self.association.pad(&mut kept, self.frame_bytes);
        }
        self.show(path, self.association.frame(&kept));
        let frame_bytes = kept.length_bytes();
        let datagram_bytes = frame_bytes + self.sealer.overhead_bytes();
        if !self.run.has_room(path, datagram_bytes) && !self.send_run(wire, now_ns) {
            return false;
        }
        let is_sealed = if self.sealer.is_encrypting() {
            let batch = self.run.batch(wire);
            let sealed = batch.room(datagram_bytes).is_some_and(|room| {
                room[ENVELOPE_BYTES..ENVELOPE_BYTES + frame_bytes]
                    .copy_from_slice(self.association.frame(&kept));
                seal(&mut self.sealer, path, room, frame_bytes)
            });
            if sealed {
                batch.push(datagram_bytes);
            }
            sealed
        } else {
            let association = &mut self.association;
            let room = association.frame_with_margins_mut(&kept, ENVELOPE_BYTES, CHECKSUM_BYTES);
            seal(&mut self.sealer, path, room, frame_bytes)
        };
        if is_sealed {
            self.run.push(path, datagram_bytes, kept);
        } else {
            // All packet numbers are used, which takes centuries.
            self.association.fail(CloseReason::NoWay);
        }
        true
    }

    /// Sends a frame that has no packets; whether there was room in the socket.
    fn send_aside(&mut self, wire: &Wire, now_ns: u64, next: Outgoing) -> bool {
        let Outgoing {
            path, length_bytes, ..
        } = next;
        let frame = ENVELOPE_BYTES..ENVELOPE_BYTES + length_bytes;
        self.show(path, &self.aside[frame]);
        if !seal(&mut self.sealer, path, &mut self.aside, length_bytes) {
            self.association.fail(CloseReason::NoWay);
            return true;
        }
        let datagram = &self.aside[..length_bytes + self.sealer.overhead_bytes()];
        let Some(flow) = self.flows.get_mut(usize::from(path)) else {
            return true;
        };
        let Err(why) = flow.send_one(datagram) else {
            return true;
        };
        let mut batch = wire.take_batch();
        if let Some(room) = batch.room(datagram.len()) {
            room.copy_from_slice(datagram);
            batch.push(datagram.len());
        }
        self.send_rest(wire, now_ns, path, batch, Some(why))
    }

    /// Shows a frame to whoever looks on.
    #[inline]
    fn show(&self, path: u8, frame: &[u8]) {
        if let Some(tap) = &self.tap
            && let Some(flow) = self.flows.get(usize::from(path))
            && let Some(to) = flow.peer()
        {
            tap.sent(path, flow.local(), to, frame);
        }
    }

    /// Sends the frames that were put together; whether the socket had room for them. There are none then.
    fn send_run(&mut self, wire: &Wire, now_ns: u64) -> bool {
        if self.run.is_empty() {
            return true;
        }
        let path = self.run.path();
        let flow = self.flows.get_mut(usize::from(path));
        let sent = flow.map(|flow| self.run.send(&self.association, flow));
        let is_sent = matches!(sent, None | Some(Ok(true)));
        let unsent = (!is_sent).then(|| self.run.take(&self.association, wire));
        self.run.clear(wire);
        unsent.is_none_or(|batch| {
            let why = sent.and_then(Result::err);
            self.send_rest(wire, now_ns, path, batch, why)
        })
    }

    /// Where the peer's frames come to: the address that this side has on the way to it.
    #[cold]
    pub(super) fn own_address(&self, wire: &Wire, path: u8) -> SocketAddr {
        let local = wire.local();
        let flow = self.flows.get(usize::from(path)).or(self.flows.first());
        flow.map_or(local, |flow| {
            SocketAddr::new(flow.local().ip(), local.port())
        })
    }

    /// Sends what the socket had no room for; whether it has room now.
    fn unstick(&mut self, wire: &Wire, now_ns: u64) -> bool {
        match self.stuck.take() {
            None => true,
            Some((path, batch)) => self.send(wire, now_ns, path, batch),
        }
    }

    /// Sends probes that are due, and answers those that came; whether the socket had room for them.
    #[cold]
    fn probe(&mut self, wire: &Wire, now_ns: u64) -> bool {
        while self.association.close_reason().is_none()
            && let Some(trial) = self.probing.next(now_ns)
        {
            let overhead_bytes = self.sealer.overhead_bytes();
            let (kind, path, said, bytes) = match trial {
                Trial::Probe(path, bytes) => (Kind::Probe, path, bytes as u16, bytes),
                Trial::Answer(path, said) => {
                    let bytes = PROBE_BYTES + overhead_bytes;
                    (Kind::ProbeAnswer, path, said, bytes)
                }
            };
            let mut batch = wire.take_batch();
            let plain_bytes = bytes.saturating_sub(overhead_bytes);
            let sealed = batch.room(bytes).and_then(|room| {
                let plain = room.get_mut(ENVELOPE_BYTES..ENVELOPE_BYTES + plain_bytes)?;
                plain.fill(0);
                plain
                    .get_mut(..PROBE_BYTES)?
                    .copy_from_slice(&said.to_le_bytes());
                let sealed = self.sealer.seal_in_place(kind, path, room, plain_bytes);
                sealed.ok()
            });
            let Some(sealed) = sealed else {
                wire.put_batch(batch);
                continue;
            };
            batch.push(sealed);
            // A probe that is cut would prove nothing.
            let is_cutting = self.is_cutting;
            self.cut(false);
            let is_sent = self.send(wire, now_ns, path, batch);
            self.cut(is_cutting);
            if !is_sent {
                return false;
            }
        }
        true
    }

    /// Has frames as long as the paths carry.
    pub(super) fn follow(&mut self, now_ns: u64) {
        let overhead_bytes = self.sealer.overhead_bytes();
        for path in 0..self.flows.len() as u8 {
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

    /// What is too long for a path by now may be cut on the way, or need not be any more.
    #[cold]
    fn cut(&mut self, is_cutting: bool) {
        self.is_cutting = is_cutting;
        for flow in &mut self.flows {
            // If it cannot, long frames are lost until a long probe passes.
            let _ = flow.cut(is_cutting);
        }
    }

    /// The system reports that nobody listens there. No more count than datagrams were sent: such reports can be forged.
    pub(super) fn note_unheard(&mut self) {
        if u64::from(self.unheard) < self.sealer.packets() - self.answered {
            self.unheard += 1;
        }
    }

    /// Sends a batch; whether the socket had room for it.
    fn send(&mut self, wire: &Wire, now_ns: u64, path: u8, batch: Batch) -> bool {
        self.send_rest(wire, now_ns, path, batch, None)
    }

    /// The same, if it was tried before, and why its first datagram was not sent.
    fn send_rest(
        &mut self,
        wire: &Wire,
        now_ns: u64,
        path: u8,
        mut batch: Batch,
        mut why: Option<SendError>,
    ) -> bool {
        loop {
            match why {
                None => {}
                Some(SendError::Full) => {
                    self.stuck = Some((path, batch));
                    return false;
                }
                Some(SendError::Refused) => self.note_unheard(),
                // Whatever it is, it may pass; and if not, nobody answers.
                Some(error) => {
                    if let SendError::TooLong { bytes } = error {
                        self.probing.too_long(now_ns, path, bytes);
                    }
                    batch.drop_first();
                }
            }
            let flow = self.flows.get_mut(usize::from(path));
            let Some(flow) = flow.filter(|_| !batch.is_empty()) else {
                break;
            };
            match flow.send(&mut batch) {
                Ok(_) => break,
                Err(error) => why = Some(error),
            }
        }
        wire.put_batch(batch);
        true
    }
}
