//! A session fetches regions that peers share. Other threads use the manager meanwhile.

use hamlyn_host::{Connector, Destination, Host};
use hamlyn_ring::pool::SharedPool;
use hamlyn_ring::region::AttachedRegion;

use super::Session;
use crate::region::{AttachError, Attached, RegionTicket};
use crate::wait::Wait;

impl<H: Host> Session<'_, H> {
    /// Attaches a region of a peer, if the kernel confirms what must hold of its memory
    /// ([`crate::region`]). There must be a link to the peer ([`Session::target`] makes one). A
    /// region that is attached already is returned once more. Initiators that are open on that part
    /// of the slot, or are opened later, operate in the memory.
    ///
    /// Messages that were sent there before, shorter ones, and those that lie only partly in the
    /// region, go as copies, and may land after what is stored later. A page that nobody has
    /// touched is made by whoever touches it first, and counts as that program's memory. Allocates.
    /// Blocks for as long as `wait` says; nothing is received meanwhile.
    pub fn attach(&mut self, ticket: &RegionTicket, wait: Wait) -> Result<Attached, AttachError> {
        self.check()?;
        if let Err(attached) = self.way_to_attach(ticket)? {
            return Ok(attached);
        }
        let (connector, deadline_ns) = self.connector(wait);
        let (from, access) = (ticket.ticket.destination, ticket.access());
        let region = self.let_others(|| {
            let received = connector.fetch(from, ticket.secret, deadline_ns)?;
            Ok::<_, AttachError>(AttachedRegion::adopt(received, access)?)
        })?;
        self.take_up(ticket, region)
    }

    /// Fetches a pool that a linked peer of this host shows, if the kernel confirms its seals, its
    /// size, and that all of its pages are there. Allocates. Blocks for as long as `wait` says;
    /// nothing is received meanwhile.
    pub fn fetch_pool(
        &mut self,
        from: Destination,
        number: u64,
        wait: Wait,
    ) -> Result<SharedPool, AttachError> {
        self.check()?;
        let (connector, deadline_ns) = self.connector(wait);
        self.let_others(|| {
            let received = connector.fetch(from, number, deadline_ns)?;
            Ok(SharedPool::adopt(received)?)
        })
    }

    /// Like [`Session::fetch_pool`], for a pool that is shown to all. One that this interface reads
    /// already is mapped once.
    pub(crate) fn attach_pool(
        &mut self,
        from: Destination,
        number: u64,
        wait: Wait,
    ) -> Result<SharedPool, AttachError> {
        if let Some(pool) = self.attached_pool(&from, number) {
            return Ok(pool);
        }
        let pool = self.fetch_pool(from, number, wait)?;
        self.take_up_pool(&from, number, &pool);
        Ok(pool)
    }
}
