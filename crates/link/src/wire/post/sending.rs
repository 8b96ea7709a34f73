//! How a post sends: frames sealed and put together in batches, probes, and what a socket had no room for.

use std::net::SocketAddr;

use hamlyn_engine::transport::Verdict;

use super::super::Wire;
use super::super::probing::{PROBE_BYTES, Trial};
use super::State;
use crate::udp::batch::Batch;
use crate::udp::envelope::{ENVELOPE_BYTES, Kind};
use crate::udp::seal::Sealer;
use crate::udp::socket::SendError;

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
        if now_ns >= self.probing.deadline_ns() && !self.probe(wire, now_ns)
            || !self.association.may_go_now(now_ns)
        {
            return;
        }
        let overhead_bytes = self.sealer.overhead_bytes();
        let room_bytes = self.frame_bytes_max + overhead_bytes;
        let (mut batch, mut path) = (wire.take_batch(), 0);
        loop {
            if batch.room(room_bytes).is_none() {
                match self.send(wire, now_ns, path, batch) {
                    true => batch = wire.take_batch(),
                    false => return self.run.clear(),
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
            let Some((next, kept)) = self.association.next_in_place(now_ns, frame) else {
                break;
            };
            let mut frame_bytes = next.length_bytes;
            if let Some(mut kept) = kept {
                // Frames of one length go in one call.
                if frame_bytes + self.frame_bytes / FILL_PART >= self.frame_bytes {
                    self.association.lengthen(&mut kept, self.frame_bytes);
                    frame_bytes = kept.length_bytes();
                }
                self.show(next.path, self.association.kept(&kept));
                if !self.sealer.is_encrypting() {
                    if !self.run.has_room(next.path, frame_bytes + overhead_bytes)
                        && !self.send_run(wire, now_ns)
                    {
                        // What is not sent now is sent again.
                        return wire.put_batch(batch);
                    }
                    let tail_bytes = overhead_bytes - ENVELOPE_BYTES;
                    let room = (self.association).kept_among_mut(&kept, ENVELOPE_BYTES, tail_bytes);
                    if !seal(&mut self.sealer, next.path, room, frame_bytes) {
                        break;
                    }
                    self.run.push(next.path, kept);
                    continue;
                }
                frame[..frame_bytes].copy_from_slice(self.association.kept(&kept));
            } else {
                self.show(next.path, &frame[..frame_bytes]);
            }
            if !seal(&mut self.sealer, next.path, room, frame_bytes) {
                break;
            }
            let sealed = frame_bytes + overhead_bytes;
            if next.path != path && !is_empty {
                // The others are for another path, and go first: the order is kept where that costs nothing.
                self.aside.clear();
                self.aside.extend_from_slice(&room[..sealed]);
                match self.send(wire, now_ns, path, batch) {
                    true => batch = wire.take_batch(),
                    false => return self.run.clear(),
                }
                if let Some(room) = batch.room(sealed) {
                    room.copy_from_slice(&self.aside);
                }
            }
            path = next.path;
            batch.push(sealed);
        }
        if self.sealer.is_exhausted() {
            // All packet numbers are used, which takes centuries.
            self.association.fail(Verdict::NoWay);
        }
        match self.send_run(wire, now_ns) {
            true => {
                self.send(wire, now_ns, path, batch);
            }
            false => wire.put_batch(batch),
        }
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

    /// Sends frames from where they are kept; whether the socket had room for them. There are none then.
    fn send_run(&mut self, wire: &Wire, now_ns: u64) -> bool {
        if self.run.is_empty() {
            return true;
        }
        let path = self.run.path();
        let flow = self.flows.get_mut(usize::from(path));
        let is_sent = flow.is_some_and(|flow| self.run.send(&self.association, flow));
        let mut batch = None;
        if !is_sent {
            // Why not, and what then, the longer way tells.
            self.run.copy(&self.association, batch.insert(wire.take_batch()));
        }
        self.run.clear();
        batch.is_none_or(|batch| self.send(wire, now_ns, path, batch))
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
