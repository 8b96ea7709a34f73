//! Links over a wire of the world: the product's own ends, which are told the time before each
//! call.

use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::memory::{Denied, Part, Payload, Unsent};
use hamlyn_engine::operation::REQUEST_WORDS;
use hamlyn_engine::packet::{Header, Short};
use hamlyn_engine::point::Point;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::Return;
use hamlyn_link::udp_endpoint::{
    ConnectionState, ReceivedPayload, UdpLink, UdpReceive, UdpTransmit,
};
use hamlyn_link::{Link, LinkFault, ReceiveEnd, Refused, TransmitEnd};
use hamlyn_ring::area::Area;

use super::observed::{self, ObservedEnd};
use super::socket::SimSocket;
use super::wire::enter;
use crate::reference::transport::Sent;
use crate::world::kernel;

/// See the module.
pub struct WireLink {
    interface: u32,
    link: UdpLink<SimSocket>,
}

impl WireLink {
    /// Of that interface.
    pub(super) fn new(interface: u32, link: UdpLink<SimSocket>) -> Self {
        Self { interface, link }
    }

    pub(super) fn split(self) -> (WireTransmit, WireReceive) {
        let interface = self.interface;
        let observed = ObservedEnd((interface, self.link.connection().number()));
        let (transmit, receive) = self.link.split();
        let transmit = WireTransmit {
            interface,
            end: transmit,
            observed,
        };
        let receive = WireReceive {
            interface,
            end: receive,
            observed,
        };
        (transmit, receive)
    }
}

/// The transmitting end.
pub struct WireTransmit {
    interface: u32,
    end: UdpTransmit<SimSocket>,
    observed: ObservedEnd,
}

/// What unwinds was killed: it says no last words.
fn is_dying() -> bool {
    kernel::with(|kernel| kernel.is_dying())
}

/// A packet that came.
fn received(header: &Header, payload: &ReceivedPayload<'_>) -> Sent {
    Sent {
        header: *header,
        bytes: payload.bytes().concat(),
    }
}

/// So many packets were sent.
fn charge_sending(packets: usize) {
    kernel::with(|kernel| {
        let takes = kernel.settings.costs.send;
        for _ in 0..packets {
            kernel.charge(takes);
        }
    });
}

impl WireTransmit {
    fn end(&mut self) -> &mut UdpTransmit<SimSocket> {
        enter(self.interface);
        &mut self.end
    }

    pub(super) fn payload_max_bytes(&self) -> usize {
        self.end.payload_max_bytes()
    }

    pub(super) fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        if is_dying() {
            return Err(Unsent::Full);
        }
        let observed = self.observed;
        observed.offer(observed::offered(header, metadata, parts));
        let sent = self.end().try_send(header, metadata, parts);
        if sent.is_err() {
            observed.take_back_offer();
        }
        sent?;
        charge_sending(1);
        Ok(())
    }

    pub(super) fn try_send_shorts(&mut self, mut next: impl FnMut() -> Option<Short>) -> usize {
        if is_dying() {
            return 0;
        }
        let observed = self.observed;
        let mut offered = 0;
        let sent = self.end().try_send_shorts(|| {
            let short = next()?;
            offered += 1;
            observed.offer(observed::offered_short(&short));
            Some(short)
        });
        for _ in sent..offered {
            observed.take_back_offer();
        }
        charge_sending(sent);
        sent
    }

    pub(super) fn holds(&self) -> bool {
        self.end.holds()
    }

    pub(super) fn hand_over(&mut self) {
        self.end().hand_over();
    }

    pub(super) fn await_credit(&mut self, is_needed: bool, fence: Option<u64>) {
        self.end().await_credit(is_needed, fence);
    }

    pub(super) fn credit_came(&self) -> bool {
        self.end.credit_came()
    }

    pub(super) fn give_back(&mut self) -> usize {
        self.end().give_back()
    }

    pub(super) fn has_spare(&self) -> bool {
        self.end.has_spare()
    }

    pub(super) fn sent(&self) -> u64 {
        self.end.sent()
    }

    pub(super) fn fence(&mut self) -> Result<u64, Unsent> {
        let fence = self.end().fence()?;
        self.observed.fenced(fence);
        Ok(fence)
    }

    pub(super) fn is_answered(&mut self, fence: u64) -> Result<bool, Unsent> {
        let is_answered = self.end().is_answered(fence)?;
        if is_answered {
            self.observed.fence_answered(fence);
        }
        Ok(is_answered)
    }

    pub(super) fn may_be_answered(&self, fence: u64) -> bool {
        enter(self.interface);
        self.end.may_be_answered(fence)
    }

    pub(super) fn is_all_taken(&mut self) -> bool {
        self.end().is_all_taken()
    }

    pub(super) fn refused(&mut self) -> Refused {
        self.end().refused()
    }

    pub(super) fn next_returned(&mut self) -> Option<(Header, Return)> {
        let returned = self.end().next_returned();
        if let Some((header, why)) = &returned {
            self.observed.told(header, *why);
        }
        returned
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.end.forgotten()
    }

    pub(super) fn returns_kept(&self) -> u64 {
        self.end.returns_kept()
    }

    pub(super) fn connection_state(&self) -> Option<ConnectionState> {
        self.end.connection_state()
    }
}

/// The receiving end.
pub struct WireReceive {
    interface: u32,
    end: UdpReceive<SimSocket>,
    observed: ObservedEnd,
}

impl WireReceive {
    fn end(&mut self) -> &mut UdpReceive<SimSocket> {
        enter(self.interface);
        &mut self.end
    }

    pub(super) fn taken(&self) -> u64 {
        self.end.taken()
    }

    pub(super) fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &ReceivedPayload<'_>) -> R,
    ) -> Result<Option<R>, LinkFault> {
        let observed = self.observed;
        let taken = self.end().receive(|header, payload| {
            observed.receive(received(header, payload));
            let result = take(header, payload);
            observed.received(None);
            result
        })?;
        if taken.is_some() {
            kernel::with(|kernel| kernel.charge(kernel.settings.costs.receive));
        }
        Ok(taken)
    }

    pub(super) fn receive_or_refuse<R>(
        &mut self,
        take: impl FnOnce(&Header, &ReceivedPayload<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        let observed = self.observed;
        let taken = self.end().receive_or_refuse(|header, payload| {
            observed.receive(received(header, payload));
            let result = take(header, payload);
            observed.received(result.as_ref().err().copied());
            result
        })?;
        if taken.is_some() {
            kernel::with(|kernel| kernel.charge(kernel.settings.costs.receive));
        }
        Ok(taken)
    }

    pub(super) fn is_pending(&self) -> bool {
        enter(self.interface);
        self.end.is_pending()
    }

    pub(super) fn return_credit(&mut self) {
        self.end().return_credit();
    }

    pub(super) fn ready_bit(&self) -> u32 {
        self.end.ready_bit()
    }

    pub(super) fn suppress_events(&mut self) {
        self.end().suppress_events();
    }

    pub(super) fn enable_events(&mut self) -> bool {
        self.end().enable_events()
    }
}

impl Drop for WireReceive {
    fn drop(&mut self) {
        // The end that is dropped next closes its link.
        enter(self.interface);
    }
}

/// The bytes that came with a packet, by a link of either kind.
#[derive(Clone, Copy)]
pub enum Carried<'a> {
    /// By a channel.
    Channel(super::channel_link::Carried<'a>),
    /// By a wire.
    Wire(ReceivedPayload<'a>),
}

impl Payload<Area> for Carried<'_> {
    fn shares_memory(&self) -> bool {
        matches!(self, Self::Channel(_))
    }

    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        match self {
            Self::Channel(payload) => payload.metadata(into, length_bytes),
            Self::Wire(payload) => payload.metadata(into, length_bytes),
        }
    }

    fn metadata_word(&self) -> Option<u64> {
        match self {
            Self::Channel(payload) => payload.metadata_word(),
            Self::Wire(payload) => payload.metadata_word(),
        }
    }

    fn words(&self) -> [u64; REQUEST_WORDS] {
        match self {
            Self::Channel(payload) => payload.words(),
            Self::Wire(payload) => payload.words(),
        }
    }

    fn deposit(&self, area: &Area, offset: u64) -> Result<(), Denied> {
        match self {
            Self::Channel(payload) => payload.deposit(area, offset),
            Self::Wire(payload) => payload.deposit(area, offset),
        }
    }

    fn copy_to(&self, into: &mut [u8]) -> Result<(), Denied> {
        match self {
            Self::Channel(payload) => payload.copy_to(into),
            Self::Wire(payload) => payload.copy_to(into),
        }
    }

    fn passes(&self, point: Point) {
        kernel::pass(point);
    }
}
