//! A link of the embedded host: to an interface of this host, or over the wire to one of another.
//!
//! Which it is, is asked at each call: a comparison that the processor foresees. Over the wire
//! nothing goes the shortest ways, which are those of a ring: there a message is worth some
//! instructions more, and on one host the other arm holds nothing that would keep registers or make
//! values lie in memory.

use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::memory::{Denied, Part, Payload, Unsent};
use hamlyn_engine::operation::{REQUEST_WORDS, ShortRequest};
use hamlyn_engine::packet::{Header, PortAddress, Short};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::Return;
use hamlyn_ring::area::Area;
use hamlyn_ring::overflow::{LogNews, LogUse};

use crate::carrier::Carried;
use crate::pair::{PairLink, PairReceive, PairTransmit};
use crate::udp_endpoint::{ConnectionState, ReceivedPayload, UdpLink, UdpReceive, UdpTransmit};
use crate::{Link, LinkFault, ReceiveEnd, Refused, TransmitEnd};

/// See the module.
#[expect(
    clippy::large_enum_variant,
    reason = "one for each link; a box would be one more cache line for each packet"
)]
pub enum EitherLink {
    /// To an interface of this host.
    Pair(PairLink),
    /// To one of another host.
    Udp(UdpLink),
}

/// The transmitting end.
#[expect(
    clippy::large_enum_variant,
    reason = "one for each link; a box would be one more cache line for each packet"
)]
pub enum EitherTransmit {
    /// See [`EitherLink::Pair`].
    Pair(PairTransmit),
    /// See [`EitherLink::Udp`].
    Udp(UdpTransmit),
}

/// The receiving end.
#[expect(
    clippy::large_enum_variant,
    reason = "the fast path reaches its link without a pointer; there is one of these for each"
)]
pub enum EitherReceive {
    /// See [`EitherLink::Pair`].
    Pair(PairReceive),
    /// See [`EitherLink::Udp`].
    Udp(UdpReceive),
}

impl Link for EitherLink {
    type Transmit = EitherTransmit;
    type Receive = EitherReceive;

    fn split(self) -> (EitherTransmit, EitherReceive) {
        match self {
            Self::Pair(link) => {
                let (transmit, receive) = link.split();
                (EitherTransmit::Pair(transmit), EitherReceive::Pair(receive))
            }
            Self::Udp(link) => {
                let (transmit, receive) = link.split();
                (EitherTransmit::Udp(transmit), EitherReceive::Udp(receive))
            }
        }
    }
}

/// The same call of whichever it is.
macro_rules! either {
    ($self:ident, $end:ident => $call:expr) => {
        match $self {
            Self::Pair($end) => $call,
            Self::Udp($end) => $call,
        }
    };
}

impl TransmitEnd for EitherTransmit {
    #[inline]
    fn payload_max_bytes(&self) -> usize {
        either!(self, end => end.payload_max_bytes())
    }

    #[inline(always)]
    fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        match self {
            Self::Pair(end) => end.try_send(header, metadata, parts),
            Self::Udp(end) => {
                // A copy, so that on one host the header need not be in memory.
                let header = *header;
                end.try_send(&header, metadata, parts)
            }
        }
    }

    #[inline(always)]
    fn try_send_short<M>(&mut self, short: M) -> bool
    where
        Short: From<M>,
    {
        match self {
            Self::Pair(end) => end.try_send_short(short),
            Self::Udp(_) => false,
        }
    }

    #[inline(always)]
    fn try_send_in_cells(&mut self, short: &Short, data: &[u8]) -> bool {
        match self {
            Self::Pair(end) => end.try_send_in_cells(short, data),
            Self::Udp(_) => false,
        }
    }

    #[inline(always)]
    fn try_send_message(&mut self, to: &PortAddress, handler: u16, data: &[u8]) -> bool {
        match self {
            Self::Pair(end) => end.try_send_message(to, handler, data),
            Self::Udp(_) => false,
        }
    }

    #[inline(always)]
    fn try_send_request(&mut self, request: &ShortRequest) -> bool {
        match self {
            Self::Pair(end) => end.try_send_request(request),
            Self::Udp(_) => false,
        }
    }

    fn cells_bytes_max(&self) -> u64 {
        match self {
            Self::Pair(end) => end.cells_bytes_max(),
            Self::Udp(_) => 0,
        }
    }

    #[inline(always)]
    fn try_send_shorts(&mut self, next: impl FnMut() -> Option<Short>) -> usize {
        either!(self, end => end.try_send_shorts(next))
    }

    #[inline(always)]
    fn holds(&self) -> bool {
        either!(self, end => end.holds())
    }

    fn hand_over(&mut self) {
        either!(self, end => end.hand_over());
    }

    fn fault(&self) -> Option<LinkFault> {
        either!(self, end => end.fault())
    }

    fn await_credit(&mut self, is_needed: bool, fence: Option<u64>) {
        either!(self, end => end.await_credit(is_needed, fence));
    }

    fn credit_came(&self) -> bool {
        either!(self, end => end.credit_came())
    }

    fn give_back(&mut self) -> usize {
        either!(self, end => end.give_back())
    }

    fn has_spare(&self) -> bool {
        either!(self, end => end.has_spare())
    }

    fn log_use(&mut self) -> Option<LogUse> {
        either!(self, end => end.log_use())
    }

    fn overflow_due_ns(&self) -> Option<u64> {
        either!(self, end => end.overflow_due_ns())
    }

    fn press(&mut self) -> bool {
        either!(self, end => end.press())
    }

    fn reserve(&mut self) {
        either!(self, end => end.reserve());
    }

    fn sent(&self) -> u64 {
        either!(self, end => end.sent())
    }

    fn fence(&mut self) -> Result<u64, Unsent> {
        either!(self, end => end.fence())
    }

    fn is_answered(&mut self, fence: u64) -> Result<bool, Unsent> {
        either!(self, end => end.is_answered(fence))
    }

    fn may_be_answered(&self, fence: u64) -> bool {
        either!(self, end => end.may_be_answered(fence))
    }

    fn is_all_taken(&mut self) -> bool {
        either!(self, end => end.is_all_taken())
    }

    fn refused(&mut self) -> Refused {
        either!(self, end => end.refused())
    }

    fn next_returned(&mut self) -> Option<(Header, Return)> {
        either!(self, end => end.next_returned())
    }

    fn forgotten(&self) -> u64 {
        either!(self, end => end.forgotten())
    }

    fn returns_kept(&self) -> u64 {
        either!(self, end => end.returns_kept())
    }

    fn keeps_order(&self) -> bool {
        either!(self, end => end.keeps_order())
    }

    fn connection_state(&self) -> Option<ConnectionState> {
        either!(self, end => end.connection_state())
    }
}

/// The bytes that came with a packet.
#[derive(Clone, Copy)]
pub enum EitherPayload<'a> {
    /// In a ring.
    Pair(&'a Carried<'a>),
    /// In a frame.
    Udp(&'a ReceivedPayload<'a>),
}

impl Payload<Area> for EitherPayload<'_> {
    #[inline(always)]
    fn shares_memory(&self) -> bool {
        matches!(self, Self::Pair(_))
    }

    #[inline(always)]
    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        either!(self, payload => payload.metadata(into, length_bytes))
    }

    #[inline(always)]
    fn metadata_word(&self) -> Option<u64> {
        either!(self, payload => payload.metadata_word())
    }

    fn words(&self) -> [u64; REQUEST_WORDS] {
        either!(self, payload => payload.words())
    }

    #[inline(always)]
    fn deposit(&self, area: &Area, offset: u64) -> Result<(), Denied> {
        either!(self, payload => payload.deposit(area, offset))
    }

    fn copy_to(&self, into: &mut [u8]) -> Result<(), Denied> {
        either!(self, payload => payload.copy_to(into))
    }
}

impl ReceiveEnd for EitherReceive {
    type Payload<'a> = EitherPayload<'a>;
    type Shortcut = PairReceive;

    #[inline(always)]
    fn shortcut(&mut self) -> Option<&mut PairReceive> {
        match self {
            Self::Pair(end) => Some(end),
            Self::Udp(_) => None,
        }
    }

    #[inline]
    fn return_due_credit(&mut self) -> bool {
        either!(self, end => end.return_due_credit())
    }

    #[inline]
    fn taken(&self) -> u64 {
        either!(self, end => end.taken())
    }

    #[inline]
    fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &EitherPayload<'_>) -> R,
    ) -> Result<Option<R>, LinkFault> {
        match self {
            Self::Pair(end) => {
                end.receive(|header, payload| take(header, &EitherPayload::Pair(payload)))
            }
            Self::Udp(end) => {
                end.receive(|header, payload| take(header, &EitherPayload::Udp(payload)))
            }
        }
    }

    #[inline]
    fn receive_from_line<R>(
        &mut self,
        take: impl FnOnce(&Header, &EitherPayload<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        match self {
            Self::Pair(end) => {
                end.receive_from_line(|header, payload| take(header, &EitherPayload::Pair(payload)))
            }
            Self::Udp(_) => Ok(None),
        }
    }

    #[inline]
    fn receive_or_refuse<R>(
        &mut self,
        take: impl FnOnce(&Header, &EitherPayload<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        match self {
            Self::Pair(end) => {
                end.receive_or_refuse(|header, payload| take(header, &EitherPayload::Pair(payload)))
            }
            Self::Udp(end) => {
                end.receive_or_refuse(|header, payload| take(header, &EitherPayload::Udp(payload)))
            }
        }
    }

    #[inline(always)]
    fn is_pending(&self) -> bool {
        either!(self, end => end.is_pending())
    }

    #[inline]
    fn return_credit(&mut self) {
        either!(self, end => end.return_credit());
    }

    #[inline(always)]
    fn return_arena_credit(&mut self) {
        either!(self, end => end.return_arena_credit());
    }

    fn log_news(&mut self) -> Option<LogNews> {
        either!(self, end => end.log_news())
    }

    fn reserve(&mut self) {
        either!(self, end => end.reserve());
    }

    fn owes_ring(&self) -> bool {
        either!(self, end => end.owes_ring())
    }

    fn ready_bit(&self) -> u32 {
        either!(self, end => end.ready_bit())
    }

    #[inline]
    fn suppress_events(&mut self) {
        either!(self, end => end.suppress_events());
    }

    fn enable_events(&mut self) -> bool {
        either!(self, end => end.enable_events())
    }

    fn announce_sleep(&mut self) {
        either!(self, end => end.announce_sleep());
    }
}
