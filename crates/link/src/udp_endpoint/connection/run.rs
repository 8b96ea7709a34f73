//! A run: the frames that one call sends. In the clear they are sent from the retransmission
//! buffers, so that only the system copies them; encrypted, from a batch, because a frame in flight
//! must stay as it is: it may be sent again, or come back.

use std::io::IoSlice;

use hamlyn_engine::limits::{CARRIER_HEAD_BYTES, CARRIER_TAIL_BYTES};
use hamlyn_engine::transport::{Association, InFlightFrame};

use crate::udp::DATAGRAM_BYTES_MAX;
use crate::udp::batch::{BATCH_DATAGRAMS, Batch};
use crate::udp::datagram_socket::DatagramSocket;
use crate::udp::packet_header::PACKET_HEADER_BYTES;
use crate::udp::protection::CHECKSUM_BYTES;
use crate::udp::socket::SendError;
use crate::udp_endpoint::UdpEndpoint;

const _: () =
    assert!(PACKET_HEADER_BYTES <= CARRIER_HEAD_BYTES && CHECKSUM_BYTES <= CARRIER_TAIL_BYTES);

/// See the module.
#[derive(Default)]
pub(super) struct Run {
    frames: Vec<InFlightFrame>,
    /// Their datagrams, if they are not sent from the retransmission buffers.
    batch: Option<Batch>,
    path: u8,
    bytes: usize,
    /// Of each datagram but the last, which may be shorter.
    segment_bytes: usize,
    is_last_shorter: bool,
}

/// A frame as a datagram, packet header and checksum included.
fn datagram<'a>(association: &'a Association, kept: &InFlightFrame) -> &'a [u8] {
    association.frame_with_margins(kept, PACKET_HEADER_BYTES, CHECKSUM_BYTES)
}

impl Run {
    /// The path that it is for.
    pub(super) fn path(&self) -> u8 {
        self.path
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether one call can send so many bytes more, as one datagram over that path.
    #[inline]
    pub(super) fn has_room(&self, path: u8, datagram_bytes: usize) -> bool {
        self.is_empty()
            || self.path == path
                && self.frames.len() < BATCH_DATAGRAMS
                && !self.is_last_shorter
                && datagram_bytes <= self.segment_bytes
                && self.bytes + datagram_bytes <= DATAGRAM_BYTES_MAX
    }

    /// For the datagrams, if they are not sent from the retransmission buffers.
    #[inline]
    pub(super) fn batch<S: DatagramSocket>(&mut self, endpoint: &UdpEndpoint<S>) -> &mut Batch {
        self.batch.get_or_insert_with(|| endpoint.take_batch())
    }

    /// One more, for which there is room.
    #[inline]
    pub(super) fn push(&mut self, path: u8, datagram_bytes: usize, kept: InFlightFrame) {
        if self.is_empty() {
            (self.path, self.segment_bytes) = (path, datagram_bytes);
        }
        self.is_last_shorter = datagram_bytes < self.segment_bytes;
        self.bytes += datagram_bytes;
        self.frames.push(kept);
    }

    /// Sends it. If that is not true, [`Run::take`] has what was not sent.
    pub(super) fn send<S: DatagramSocket>(
        &mut self,
        association: &Association,
        socket: &mut S,
    ) -> Result<bool, SendError> {
        if let Some(batch) = &mut self.batch {
            return socket.send(batch).map(|_| true);
        }
        if let [kept] = &self.frames[..] {
            return socket.send_one(datagram(association, kept)).map(|()| true);
        }
        let mut slices = [IoSlice::new(&[]); BATCH_DATAGRAMS];
        for (slice, kept) in slices.iter_mut().zip(&self.frames) {
            *slice = IoSlice::new(datagram(association, kept));
        }
        let slices = slices.get(..self.frames.len()).unwrap_or_default();
        socket.send_gathered(slices, self.segment_bytes as u16)
    }

    /// The datagrams of it that were not sent.
    #[cold]
    pub(super) fn take<S: DatagramSocket>(
        &mut self,
        association: &Association,
        endpoint: &UdpEndpoint<S>,
    ) -> Batch {
        self.batch.take().unwrap_or_else(|| {
            let mut batch = endpoint.take_batch();
            for kept in &self.frames {
                let datagram = datagram(association, kept);
                if let Some(room) = batch.room(datagram.len()) {
                    room.copy_from_slice(datagram);
                    batch.push(datagram.len());
                }
            }
            batch
        })
    }

    /// It is done with.
    pub(super) fn clear<S: DatagramSocket>(&mut self, endpoint: &UdpEndpoint<S>) {
        self.frames.clear();
        (self.bytes, self.is_last_shorter) = (0, false);
        if let Some(batch) = self.batch.take() {
            endpoint.put_batch(batch);
        }
    }
}
