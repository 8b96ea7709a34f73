//! The two halves of a link to another host. The thread that drives a half of the interface owns
//! it.

use std::convert::Infallible;
use std::sync::Arc;

use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::memory::{Denied, Part, Payload, Unsent, copy_all};
use hamlyn_engine::operation::{REQUEST_WORDS, leading_words};
use hamlyn_engine::packet::{Header, Short};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{Association, Packet, Return};
use hamlyn_ring::area::Area;
use hamlyn_ring::forks::Birth;

use super::connection::{Connection, RETURNED_MAX, ReceivedBatch};
use super::{ConnectionState, UdpEndpoint};
use crate::udp::datagram_socket::DatagramSocket;
use crate::udp::socket::Socket;
use crate::{Link, LinkFault, ReceiveEnd, Refused, TransmitEnd};

/// A link to an interface of another host.
pub struct UdpLink<S: DatagramSocket = Socket> {
    transmit: UdpTransmit<S>,
    receive: UdpReceive<S>,
}

impl<S: DatagramSocket> UdpLink<S> {
    pub(super) fn new(endpoint: &Arc<UdpEndpoint<S>>, connection: &Arc<Connection<S>>) -> Self {
        Self {
            transmit: UdpTransmit {
                endpoint: Arc::clone(endpoint),
                connection: Arc::clone(connection),
                sent: 0,
                holds: false,
            },
            receive: UdpReceive {
                endpoint: Arc::clone(endpoint),
                connection: Arc::clone(connection),
                current: None,
                taken: 0,
                birth: Birth::here(),
            },
        }
    }

    /// What the host holds of it.
    pub fn connection(&self) -> &Arc<Connection<S>> {
        &self.receive.connection
    }
}

impl<S: DatagramSocket> Link for UdpLink<S> {
    type Transmit = UdpTransmit<S>;
    type Receive = UdpReceive<S>;

    fn split(self) -> (UdpTransmit<S>, UdpReceive<S>) {
        (self.transmit, self.receive)
    }
}

/// The transmitting end.
pub struct UdpTransmit<S: DatagramSocket = Socket> {
    endpoint: Arc<UdpEndpoint<S>>,
    connection: Arc<Connection<S>>,
    sent: u64,
    /// Whether packets wait for others.
    holds: bool,
}

impl<S: DatagramSocket> TransmitEnd for UdpTransmit<S> {
    fn payload_max_bytes(&self) -> usize {
        self.connection.payload_max_bytes()
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
            self.connection.offer(&self.endpoint, give)?;
        } else {
            self.holds = self.connection.offer_part(&self.endpoint, give)?;
        }
        self.sent += 1;
        Ok(())
    }

    fn holds(&self) -> bool {
        self.holds
    }

    fn hand_over(&mut self) {
        if core::mem::take(&mut self.holds) {
            self.connection
                .run_timers(&self.endpoint, self.endpoint.now_ns());
        }
    }

    fn try_send_short<M>(&mut self, _: M) -> bool
    where
        Short: From<M>,
    {
        false
    }

    #[cold]
    #[inline(never)]
    fn try_send_shorts(&mut self, mut next: impl FnMut() -> Option<Short>) -> usize {
        let mut count = 0;
        // Packets that were accepted are counted; the next call tells why no more were.
        let _ = self.connection.offer(&self.endpoint, |association| {
            while association.has_room()
                && let Some(short) = next()
            {
                let (header, word) = (short.header(), short.word.to_le_bytes());
                let metadata = if short.has_metadata { &word[..] } else { &[] };
                association.offer::<Area>(&header, metadata, &[Part::Bytes(&short.bytes())])?;
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

    fn await_credit(&mut self, _: bool, _: Option<u64>) {
        // What makes room, or answers, comes by the socket, at which the driver sleeps.
    }

    fn credit_came(&self) -> bool {
        self.connection.has_room()
    }

    fn give_back(&mut self) -> usize {
        self.connection.give_back()
    }

    fn has_spare(&self) -> bool {
        self.connection.has_spare()
    }

    fn sent(&self) -> u64 {
        self.sent
    }

    fn fence(&mut self) -> Result<u64, Unsent> {
        self.holds = false;
        self.connection.fence(&self.endpoint)
    }

    fn is_answered(&mut self, fence: u64) -> Result<bool, Unsent> {
        self.connection.is_answered(fence)
    }

    fn may_be_answered(&self, fence: u64) -> bool {
        self.connection.is_answered(fence) != Ok(false)
    }

    fn is_all_taken(&mut self) -> bool {
        self.connection.is_all_taken()
    }

    fn refused(&mut self) -> Refused {
        self.connection.refused()
    }

    fn next_returned(&mut self) -> Option<(Header, Return)> {
        self.connection.next_returned()
    }

    fn forgotten(&self) -> u64 {
        self.connection.forgotten()
    }

    fn returns_kept(&self) -> u64 {
        RETURNED_MAX as u64
    }

    fn connection_state(&self) -> Option<ConnectionState> {
        self.connection.state()
    }
}

/// The receiving end.
pub struct UdpReceive<S: DatagramSocket = Socket> {
    endpoint: Arc<UdpEndpoint<S>>,
    connection: Arc<Connection<S>>,
    /// The frames whose packets are being taken.
    current: Option<ReceivedBatch>,
    taken: u64,
    birth: Birth,
}

/// The bytes that came with a packet.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPayload<'a> {
    metadata: &'a [u8],
    data: &'a [u8],
}

impl<'a> ReceivedPayload<'a> {
    /// Its metadata and its data.
    pub fn bytes(&self) -> [&'a [u8]; 2] {
        [self.metadata, self.data]
    }
}

impl Payload<Area> for ReceivedPayload<'_> {
    fn shares_memory(&self) -> bool {
        false
    }

    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        let length_bytes = length_bytes.min(self.metadata.len());
        into[..length_bytes].copy_from_slice(&self.metadata[..length_bytes]);
    }

    fn words(&self) -> [u64; REQUEST_WORDS] {
        leading_words(self.data)
    }

    fn deposit(&self, area: &Area, offset: u64) -> Result<(), Denied> {
        area.write_at(offset, self.data)
    }

    fn copy_to(&self, into: &mut [u8]) -> Result<(), Denied> {
        copy_all(self.data, into)
    }
}

impl<S: DatagramSocket> UdpReceive<S> {
    #[cfg(test)]
    pub(super) fn connection(&self) -> &Arc<Connection<S>> {
        &self.connection
    }

    /// Gives the next packet; `refusal_of` says whether the interface would not have it.
    fn next<R>(
        &mut self,
        take: impl FnOnce(&Header, &ReceivedPayload<'_>) -> R,
        refusal_of: impl FnOnce(&R) -> Option<Refusal>,
    ) -> Option<R> {
        if self.current.is_none() {
            self.current = self.connection.next_batch();
        }
        let batch = self.current.as_mut()?;
        let result = batch.next().map(|packet| match packet {
            Packet::Short(short) => {
                let (word, data) = (short.word.to_le_bytes(), short.bytes());
                let metadata = if short.has_metadata { &word[..] } else { &[] };
                let data = &data[..];
                take(&short.header(), &ReceivedPayload { metadata, data })
            }
            Packet::General {
                header,
                metadata,
                data,
            } => take(&header, &ReceivedPayload { metadata, data }),
        });
        if let Some(result) = &result {
            self.taken += 1;
            if let Some(refusal) = refusal_of(result) {
                batch.note_refusal(refusal);
            }
        }
        if batch.is_through()
            && let Some(batch) = self.current.take()
        {
            self.connection.taken(&self.endpoint, batch);
        }
        result
    }
}

impl<S: DatagramSocket> ReceiveEnd for UdpReceive<S> {
    type Payload<'a> = ReceivedPayload<'a>;
    type Shortcut = Infallible;

    fn shortcut(&mut self) -> Option<&mut Infallible> {
        None
    }

    fn return_due_credit(&mut self) -> bool {
        false
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    #[cold]
    #[inline(never)]
    fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &ReceivedPayload<'_>) -> R,
    ) -> Result<Option<R>, LinkFault> {
        Ok(self.next(take, |_| None))
    }

    #[cold]
    #[inline(never)]
    fn receive_or_refuse<R>(
        &mut self,
        take: impl FnOnce(&Header, &ReceivedPayload<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        Ok(self.next(take, |result| result.as_ref().err().copied()))
    }

    #[cold]
    #[inline(never)]
    fn is_pending(&self) -> bool {
        if self.current.is_some() || self.connection.has_frames() {
            return true;
        }
        // One of the links polls for all. If that was polled seldom before, it must be polled often
        // now, whatever came.
        self.endpoint.poll_for_all(&self.connection)
            && (self.connection.has_frames() || self.connection.announcer.is_wanted())
    }

    #[cold]
    #[inline(never)]
    fn return_credit(&mut self) {
        self.connection.acknowledge(&self.endpoint);
    }

    fn return_arena_credit(&mut self) {}

    fn ready_bit(&self) -> u32 {
        self.connection.announcer.bit()
    }

    #[cold]
    #[inline(never)]
    fn suppress_events(&mut self) {
        self.connection.announcer.set_wanted(false);
    }

    #[cold]
    #[inline(never)]
    fn enable_events(&mut self) -> bool {
        self.connection.announcer.set_wanted(true);
        // What was so before is announced by nobody. The half that polls for all links must have
        // its turn.
        let is_idle =
            !self.connection.has_frames() && !self.endpoint.polls_for_all(&self.connection);
        if !is_idle {
            self.connection.announcer.set_wanted(false);
        }
        is_idle
    }

    fn announce_sleep(&mut self) {
        // The driver sleeps at the socket.
    }
}

impl<S: DatagramSocket> Drop for UdpReceive<S> {
    fn drop(&mut self) {
        if !self.birth.is_here() {
            return;
        }
        if let Some(batch) = self.current.take() {
            self.connection.nack(batch);
        }
        self.connection.close();
        self.endpoint.let_go(&self.connection);
        self.endpoint.request_wakeup(0);
    }
}
