//! Links of the world: packets of the engine, on their way in virtual time.
//!
//! Within a node, and between nodes without a network, a link carries what it is given, in packets
//! of their own, in any order that the way between has; it loses nothing (`channel_link`). It shows
//! short packets and single ones in place, so that the engine's fast paths are simulated, too.
//! Between nodes with a network it is a link of the product's UDP endpoint (`wire`), whose sockets
//! are those of the world (`socket`, decision 0033).

pub(crate) mod channel;
mod channel_link;
pub(crate) mod frames;
pub(crate) mod observed;
pub(crate) mod socket;
pub(crate) mod wire;
mod wire_link;

pub use frames::{Carrier, Parcel};
pub use socket::SocketLimits;
pub use wire::WireSettings;

use hamlyn_engine::limits::SHORT_BYTES_MAX;
use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::packet::{Header, Short};
use hamlyn_engine::point::Point;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::Return;
use hamlyn_link::udp_endpoint::ConnectionState;
use hamlyn_link::{Link, LinkFault, ReceiveEnd, Refused, TransmitEnd};
use hamlyn_ring::area::Area;
use hamlyn_ring::reports::REPORTS_KEPT;

use crate::world::kernel;

pub(crate) use channel_link::{ChannelLink, gathered};
use channel_link::{ChannelReceive, ChannelTransmit};
pub(crate) use wire_link::WireLink;
use wire_link::{Carried, WireReceive, WireTransmit};

/// Both directions.
pub enum SimLink {
    /// Within a node, or between nodes without a network.
    Channel(ChannelLink),
    /// Over a network.
    Wire(WireLink),
}

impl Link for SimLink {
    type Transmit = SimTransmit;
    type Receive = SimReceive;

    fn split(self) -> (SimTransmit, SimReceive) {
        match self {
            Self::Channel(link) => {
                let ChannelLink { transmit, receive } = link;
                (SimTransmit::Channel(transmit), SimReceive::Channel(receive))
            }
            Self::Wire(link) => {
                let (transmit, receive) = link.split();
                (SimTransmit::Wire(transmit), SimReceive::Wire(receive))
            }
        }
    }
}

/// The transmitting end.
pub enum SimTransmit {
    /// See [`SimLink::Channel`].
    Channel(ChannelTransmit),
    /// See [`SimLink::Wire`].
    Wire(WireTransmit),
}

/// The receiving end.
pub enum SimReceive {
    /// See [`SimLink::Channel`].
    Channel(ChannelReceive),
    /// See [`SimLink::Wire`].
    Wire(WireReceive),
}

/// The same call of either end.
macro_rules! either {
    ($end:expr, $one:ident => $call:expr) => {
        match $end {
            Self::Channel($one) => $call,
            Self::Wire($one) => $call,
        }
    };
}

impl TransmitEnd for SimTransmit {
    fn payload_max_bytes(&self) -> usize {
        either!(self, end => end.payload_max_bytes())
    }

    fn cells_bytes_max(&self) -> u64 {
        SHORT_BYTES_MAX as u64
    }

    fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        either!(self, end => end.try_send(header, metadata, parts))
    }

    fn try_send_short<M>(&mut self, short: M) -> bool
    where
        Short: From<M>,
    {
        match self {
            Self::Channel(end) => end.try_send_short(short),
            // As in the product.
            Self::Wire(_) => false,
        }
    }

    fn try_send_shorts(&mut self, next: impl FnMut() -> Option<Short>) -> usize {
        either!(self, end => end.try_send_shorts(next))
    }

    fn holds(&self) -> bool {
        match self {
            Self::Channel(_) => false,
            Self::Wire(end) => end.holds(),
        }
    }

    fn hand_over(&mut self) {
        if let Self::Wire(end) = self {
            end.hand_over();
        }
    }

    fn fault(&self) -> Option<LinkFault> {
        None
    }

    fn await_credit(&mut self, is_needed: bool, fence: Option<u64>) {
        either!(self, end => end.await_credit(is_needed, fence));
    }

    fn credit_came(&self) -> bool {
        either!(self, end => end.credit_came())
    }

    fn give_back(&mut self) -> usize {
        match self {
            Self::Channel(_) => 0,
            Self::Wire(end) => end.give_back(),
        }
    }

    fn has_spare(&self) -> bool {
        match self {
            Self::Channel(_) => false,
            Self::Wire(end) => end.has_spare(),
        }
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
        match self {
            Self::Channel(_) => REPORTS_KEPT,
            Self::Wire(end) => end.returns_kept(),
        }
    }

    fn connection_state(&self) -> Option<ConnectionState> {
        match self {
            Self::Channel(_) => None,
            Self::Wire(end) => end.connection_state(),
        }
    }

    fn passes(point: Point) {
        kernel::pass(point);
    }
}

impl ReceiveEnd for SimReceive {
    type Payload<'a> = Carried<'a>;
    type Shortcut = ChannelReceive;

    fn shortcut(&mut self) -> Option<&mut ChannelReceive> {
        match self {
            Self::Channel(end) => Some(end),
            Self::Wire(_) => None,
        }
    }

    fn return_due_credit(&mut self) -> bool {
        match self {
            Self::Channel(end) => end.collect(),
            Self::Wire(_) => false,
        }
    }

    fn taken(&self) -> u64 {
        either!(self, end => end.taken())
    }

    fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
    ) -> Result<Option<R>, LinkFault> {
        match self {
            Self::Channel(end) => {
                end.receive(|header, payload| take(header, &Carried::Channel(*payload)))
            }
            Self::Wire(end) => {
                end.receive(|header, payload| take(header, &Carried::Wire(*payload)))
            }
        }
    }

    fn receive_or_refuse<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        match self {
            Self::Channel(end) => {
                end.receive_or_refuse(|header, payload| take(header, &Carried::Channel(*payload)))
            }
            Self::Wire(end) => {
                end.receive_or_refuse(|header, payload| take(header, &Carried::Wire(*payload)))
            }
        }
    }

    fn is_pending(&self) -> bool {
        either!(self, end => end.is_pending())
    }

    fn return_credit(&mut self) {
        either!(self, end => end.return_credit());
    }

    fn return_arena_credit(&mut self) {}

    fn ready_bit(&self) -> u32 {
        match self {
            Self::Channel(_) => hamlyn_ring::ready_bitmap::READY_BITS_MAX,
            Self::Wire(end) => end.ready_bit(),
        }
    }

    fn suppress_events(&mut self) {
        match self {
            Self::Channel(end) => end.announce(false),
            Self::Wire(end) => end.suppress_events(),
        }
    }

    fn enable_events(&mut self) -> bool {
        match self {
            // It has no ready bit.
            Self::Channel(_) => false,
            Self::Wire(end) => end.enable_events(),
        }
    }

    fn announce_sleep(&mut self) {
        if let Self::Channel(end) = self {
            end.announce(true);
        }
    }
}
