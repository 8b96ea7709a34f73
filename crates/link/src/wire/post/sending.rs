//! How a post sends: frames sealed and put together in batches, probes, and what a socket had no room for.

use std::net::SocketAddr;

use hamlyn_engine::transport::Verdict;

use super::super::Wire;
use super::super::probing::{PROBE_BYTES, Trial};
use super::State;
use crate::udp::batch::Batch;
use crate::udp::envelope::{ENVELOPE_BYTES, Kind};
use crate::udp::socket::SendError;

/// A frame of a batch is filled up to the length of the others if it lacks no more than this part of it.
const FILL_PART: usize = 8;

impl State {
    /// Sends frames until there is none to be sent, or no room.
    pub(super) fn pump(&mut self, wire: &Wire, now_ns: u64) {
        if !self.unstick(wire, now_ns) {
            return;
        }
        if now_ns >= self.probing.deadline_ns() && !self.probe(wire, now_ns)
            || !self.association.may_go_now(now_ns)
        {
            return;
        }
        let room_bytes = self.frame_bytes_max + self.sealer.overhead_bytes();
        let mut batch = wire.take_batch();
        let mut path = 0;
        loop {
            if batch.room(room_bytes).is_none() {
                match self.send(wire, now_ns, path, batch) {
                    true => batch = wire.take_batch(),
                    false => return,
                }
            }
            let is_empty = batch.is_empty();
            let Some(room) = batch.room(room_bytes) else {
                break;
            };
            let whole = ENVELOPE_BYTES..ENVELOPE_BYTES + self.frame_bytes_max;
            let Some(frame) = room.get_mut(whole) else {
                break;
            };
            let Some(next) = self.association.next_frame(now_ns, frame) else {
                break;
            };
            // Frames of one length go in one call.
            let mut length_bytes = next.length_bytes;
            let full_bytes = self.frame_bytes;
            let is_nearly_full = length_bytes + full_bytes / FILL_PART >= full_bytes;
            if next.is_data && is_nearly_full && length_bytes < full_bytes {
                frame[length_bytes..full_bytes].fill(0);
                length_bytes = full_bytes;
            }
            if let Some(tap) = &self.tap
                && let Some(flow) = self.flows.get(usize::from(next.path))
                && let Some(to) = flow.peer()
            {
                tap.sent(next.path, flow.local(), to, &frame[..length_bytes]);
            }
            let sealed = self
                .sealer
                .seal_in_place(Kind::Data, next.path, room, length_bytes);
            let Ok(sealed) = sealed else {
                // All packet numbers are used, which takes centuries.
                self.association.fail(Verdict::NoWay);
                break;
            };
            if next.path != path && !is_empty {
                // The others are for another path, and go first: the order is kept where that costs nothing.
                self.aside.clear();
                self.aside.extend_from_slice(&room[..sealed]);
                match self.send(wire, now_ns, path, batch) {
                    true => batch = wire.take_batch(),
                    // What is not sent now is sent again.
                    false => return,
                }
                if let Some(room) = batch.room(sealed) {
                    room.copy_from_slice(&self.aside);
                }
            }
            path = next.path;
            batch.push(sealed);
        }
        self.send(wire, now_ns, path, batch);
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
        while self.association.verdict().is_none()
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

    /// Has frames as long as the paths carry; how long the payload of a packet may be, if that is another than before.
    pub(super) fn follow(&mut self, now_ns: u64) -> Option<usize> {
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
        if frame_bytes == self.frame_bytes {
            return None;
        }
        self.frame_bytes = frame_bytes;
        self.association.limit_frames(frame_bytes);
        Some(self.association.payload_max_bytes())
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

    /// Sends a batch; whether the socket had room for it.
    fn send(&mut self, wire: &Wire, now_ns: u64, path: u8, mut batch: Batch) -> bool {
        if let Some(flow) = self.flows.get_mut(usize::from(path)) {
            while !batch.is_empty() {
                match flow.send(&mut batch) {
                    Ok(_) => break,
                    Err(SendError::Full) => {
                        self.stuck = Some((path, batch));
                        return false;
                    }
                    Err(SendError::Refused) => self.unheard = self.unheard.saturating_add(1),
                    // Whatever it is, it may pass; and if not, nobody answers.
                    Err(error) => {
                        if let SendError::TooLong { bytes } = error {
                            self.probing.too_long(now_ns, path, bytes);
                        }
                        batch.drop_first();
                    }
                }
            }
        }
        wire.put_batch(batch);
        true
    }
}
