//! Whatever link leads to an interface of this host.

use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::packet::Header;
use hamlyn_ring::area::Area;

use crate::carrier::Carried;
use crate::loopback::Loopback;
use crate::pair::PairLink;
use crate::{Link, LinkFault};

/// A link to an interface of this host.
#[allow(
    clippy::large_enum_variant,
    reason = "most links are pairs; a box would be one more load"
)]
pub enum LocalLink {
    /// To another process, or another interface of this one.
    Pair(PairLink),
    /// To the same interface.
    Loopback(Loopback),
}

impl Link for LocalLink {
    type Payload<'a> = Carried<'a>;

    #[inline]
    fn payload_max_bytes(&self) -> usize {
        match self {
            Self::Pair(link) => link.payload_max_bytes(),
            Self::Loopback(link) => link.payload_max_bytes(),
        }
    }

    #[inline(always)]
    fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        match self {
            Self::Pair(link) => link.try_send(header, metadata, parts),
            Self::Loopback(link) => link.try_send(header, metadata, parts),
        }
    }

    #[inline(always)]
    fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
    ) -> Result<Option<R>, LinkFault> {
        match self {
            Self::Pair(link) => link.receive(take),
            Self::Loopback(link) => link.receive(take),
        }
    }

    #[inline]
    fn is_pending(&self) -> bool {
        match self {
            Self::Pair(link) => link.is_pending(),
            Self::Loopback(link) => link.is_pending(),
        }
    }

    #[inline]
    fn settle(&mut self) {
        match self {
            Self::Pair(link) => link.settle(),
            Self::Loopback(link) => link.settle(),
        }
    }

    #[inline]
    fn settle_bulk(&mut self) {
        match self {
            Self::Pair(link) => link.settle_bulk(),
            Self::Loopback(link) => link.settle_bulk(),
        }
    }

    #[cold]
    fn give_back(&mut self) -> usize {
        match self {
            Self::Pair(link) => link.give_back(),
            Self::Loopback(link) => link.give_back(),
        }
    }

    #[cold]
    fn await_credit(&mut self) {
        match self {
            Self::Pair(link) => link.await_credit(),
            Self::Loopback(link) => link.await_credit(),
        }
    }

    fn credit_came(&self) -> bool {
        match self {
            Self::Pair(link) => link.credit_came(),
            Self::Loopback(link) => link.credit_came(),
        }
    }
}
