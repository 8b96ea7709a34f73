//! The two ends of a link over the wire, in the hands of whoever drives the interface.

use std::convert::Infallible;
use std::sync::Arc;

use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::memory::{Denied, Part, Payload, Unsent};
use hamlyn_engine::packet::{Header, Short};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{Association, Packet, Return};
use hamlyn_ring::area::Area;
use hamlyn_ring::notes::NOTES_MAX;

use super::post::{Arrivals, Post};
use super::{Wire, WireState};
use crate::{Link, LinkFault, ReceiveEnd, TransmitEnd};

/// A link to an interface of another host.
pub struct WireLink {
    transmit: WireTransmit,
    receive: WireReceive,
}

impl WireLink {
    pub(super) fn new(wire: &Arc<Wire>, post: &Arc<Post>) -> Self {
        Self {
            transmit: WireTransmit {
                wire: Arc::clone(wire),
                post: Arc::clone(post),
                sent: 0,
                holds: false,
            },
            receive: WireReceive {
                wire: Arc::clone(wire),
                post: Arc::clone(post),
                current: None,
                taken: 0,
            },
        }
    }

    /// What the host holds of it.
    pub fn post(&self) -> &Arc<Post> {
        &self.receive.post
    }
}

impl Link for WireLink {
    type Transmit = WireTransmit;
    type Receive = WireReceive;

    fn split(self) -> (WireTransmit, WireReceive) {
        (self.transmit, self.receive)
    }
}

/// The transmitting end.
pub struct WireTransmit {
    wire: Arc<Wire>,
    post: Arc<Post>,
    sent: u64,
    /// Whether packets wait for others.
    holds: bool,
}

impl TransmitEnd for WireTransmit {
    fn payload_max_bytes(&self) -> usize {
        self.post.payload_max_bytes()
    }

    #[cold]
    #[inline(never)]
    fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        let bytes = metadata.len() + parts.iter().map(Part::length_bytes).sum::<usize>();
        let give = |association: &mut Association| association.offer(header, metadata, parts);
        if bytes < self.payload_max_bytes() {
            self.post.offer(&self.wire, give)?;
        } else {
            self.holds = self.post.offer_part(&self.wire, give)?;
        }
        self.sent += 1;
        Ok(())
    }

    fn holds(&self) -> bool {
        self.holds
    }

    fn hand_over(&mut self) {
        if core::mem::take(&mut self.holds) {
            self.post.turn(&self.wire, self.wire.now_ns());
        }
    }

    fn try_send_short(&mut self, _: impl FnOnce() -> Short) -> bool {
        false
    }

    #[cold]
    #[inline(never)]
    fn try_send_shorts(&mut self, mut next: impl FnMut() -> Option<Short>) -> usize {
        let mut count = 0;
        // What was taken is counted; why no more was, the next call tells.
        let _ = self.post.offer(&self.wire, |association| {
            while association.has_room()
                && let Some(short) = next()
            {
                association.offer_short(&short)?;
                count += 1;
            }
            Ok(())
        });
        self.sent += count as u64;
        count
    }

    fn fault(&self) -> Option<LinkFault> {
        None
    }

    fn await_credit(&mut self) {
        // What makes room comes by the socket, at which the driver sleeps.
    }

    fn credit_came(&self) -> bool {
        self.post.has_room()
    }

    fn give_back(&mut self) -> usize {
        self.post.give_back()
    }

    fn has_spare(&self) -> bool {
        self.post.has_spare()
    }

    fn sent(&self) -> u64 {
        self.sent
    }

    fn next_returned(&mut self) -> Option<(Header, Return)> {
        self.post.next_returned()
    }

    fn wire_state(&self) -> Option<WireState> {
        self.post.state()
    }
}

/// The receiving end.
pub struct WireReceive {
    wire: Arc<Wire>,
    post: Arc<Post>,
    /// The frames whose packets are being taken.
    current: Option<Arrivals>,
    taken: u64,
}

/// The bytes that came with a packet.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    metadata: &'a [u8],
    data: &'a [u8],
}

impl Payload<Area> for Arrived<'_> {
    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        let length_bytes = length_bytes.min(self.metadata.len());
        into[..length_bytes].copy_from_slice(&self.metadata[..length_bytes]);
    }

    fn deposit(&self, area: &Area, offset: u64) -> Result<(), Denied> {
        area.write_at(offset, self.data)
    }
}

impl WireReceive {
    #[cfg(test)]
    pub(super) fn post(&self) -> &Arc<Post> {
        &self.post
    }

    /// Gives the next packet; `judge` says whether the interface would not have it.
    fn next<R>(
        &mut self,
        take: impl FnOnce(&Header, &Arrived<'_>) -> R,
        judge: impl FnOnce(&R) -> Option<Refusal>,
    ) -> Option<R> {
        if self.current.is_none() {
            self.current = self.post.next_arrivals();
        }
        let arrivals = self.current.as_mut()?;
        let result = arrivals.next().map(|packet| match packet {
            Packet::Short(short) => {
                let (word, data) = (short.word.to_le_bytes(), short.bytes());
                let metadata = if short.has_metadata { &word[..] } else { &[] };
                let data = &data[..];
                take(&short.header(), &Arrived { metadata, data })
            }
            Packet::General {
                header,
                metadata,
                data,
            } => take(&header, &Arrived { metadata, data }),
        });
        if let Some(result) = &result {
            self.taken += 1;
            if let Some(refusal) = judge(result) {
                arrivals.note_refusal(refusal);
            }
        }
        if arrivals.is_through()
            && let Some(arrivals) = self.current.take()
        {
            self.post.taken(&self.wire, arrivals);
        }
        result
    }
}

impl ReceiveEnd for WireReceive {
    type Payload<'a> = Arrived<'a>;
    type Shortcut = Infallible;

    fn shortcut(&mut self) -> Option<&mut Infallible> {
        None
    }

    fn settle_due(&mut self) -> bool {
        false
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    #[cold]
    #[inline(never)]
    fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &Arrived<'_>) -> R,
    ) -> Result<Option<R>, LinkFault> {
        Ok(self.next(take, |_| None))
    }

    #[cold]
    #[inline(never)]
    fn receive_judged<R>(
        &mut self,
        take: impl FnOnce(&Header, &Arrived<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        Ok(self.next(take, |result| result.as_ref().err().copied()))
    }

    #[cold]
    #[inline(never)]
    fn is_pending(&self) -> bool {
        if self.current.is_some() || self.post.has_frames() {
            return true;
        }
        // One of the links looks for all.
        self.wire.look_for_all(&self.post) && self.post.has_frames()
    }

    #[cold]
    #[inline(never)]
    fn settle(&mut self) {
        self.post.acknowledge(&self.wire);
    }

    fn settle_bulk(&mut self) {}

    fn peer_note(&self) -> u32 {
        NOTES_MAX
    }

    fn watch(&mut self) {}

    #[cold]
    #[inline(never)]
    fn unwatch(&mut self) -> bool {
        // Whoever looks for all must have its turn.
        !self.wire.looks_for_all(&self.post)
    }

    fn announce_sleep(&mut self) {
        // The driver sleeps at the socket.
    }
}

impl Drop for WireReceive {
    fn drop(&mut self) {
        if let Some(arrivals) = self.current.take() {
            self.post.nack(arrivals);
        }
        self.post.hang_up();
        self.wire.wants(0);
    }
}
