//! Links as the engine's transmitter sees them: it offers packets to them.

use hamlyn_engine::memory::{LinkId, Part, TxLinks, Unsent};
use hamlyn_engine::packet::{Header, PortAddress, Short};
use hamlyn_engine::point::Point;
use hamlyn_link::TransmitEnd;
use hamlyn_ring::area::Area;

use super::routes::TxRoutes;

impl<T: TransmitEnd> TxLinks<Area> for TxRoutes<T> {
    #[inline]
    fn payload_max_bytes(&self, link: LinkId) -> Option<usize> {
        self.route(link).map(|route| route.end.payload_max_bytes())
    }

    fn may_take(&self, link: LinkId) -> bool {
        self.route(link)
            .is_none_or(|route| !route.needs_credit || route.end.credit_came())
    }

    #[inline(always)]
    fn offer_short<M>(&mut self, link: LinkId, short: M) -> bool
    where
        Short: From<M>,
    {
        self.reach(link)
            .is_some_and(|route| route.end.try_send_short(short))
    }

    #[inline(always)]
    fn offer_in_cells(&mut self, link: LinkId, short: &Short, data: &[u8]) -> bool {
        self.reach(link)
            .is_some_and(|route| route.end.try_send_in_cells(short, data))
    }

    #[inline(always)]
    fn offer_message(&mut self, link: LinkId, to: &PortAddress, handler: u16, data: &[u8]) -> bool {
        self.reach(link)
            .is_some_and(|route| route.end.try_send_message(to, handler, data))
    }

    #[inline(always)]
    fn offer_shorts(&mut self, link: LinkId, next: impl FnMut() -> Option<Short>) -> usize {
        self.reach(link)
            .map_or(0, |route| route.end.try_send_shorts(next))
    }

    #[inline(always)]
    fn offer(
        &mut self,
        link: LinkId,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        let Some(route) = self.reach(link) else {
            return Err(Unsent::Gone);
        };
        match route.end.try_send(header, metadata, parts) {
            Ok(()) => {
                if route.end.holds() && !self.holding.contains(&link) {
                    self.holding.push(link);
                }
                Ok(())
            }
            Err(reason) => Err(self.not_sent(reason)),
        }
    }

    #[inline(always)]
    fn passes(&self, point: Point) {
        T::passes(point);
    }
}

/// The links as seen by an application that only queues. The network processor sends what is
/// queued.
pub(crate) struct Withheld<'a, T>(pub(crate) &'a TxRoutes<T>);

impl<T: TransmitEnd> TxLinks<Area> for Withheld<'_, T> {
    const TAKES: bool = false;

    fn payload_max_bytes(&self, link: LinkId) -> Option<usize> {
        self.0.payload_max_bytes(link)
    }

    fn offer(
        &mut self,
        _: LinkId,
        _: &Header,
        _: &[u8],
        _: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        Err(Unsent::Full)
    }

    #[inline(always)]
    fn passes(&self, point: Point) {
        T::passes(point);
    }
}
