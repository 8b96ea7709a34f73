//! An interface shows a pool that it writes to peers that only read it (loans, decision 0024).

use hamlyn_engine::memory::LinkId;
use hamlyn_host::{Host, HostError};
use hamlyn_ring::pool::Pool;

use super::Interface;
use crate::grant::GrantError;
use crate::peer::LinkEnd;

impl<H: Host> Interface<H> {
    /// Lets a peer of this host fetch a pool, once, with the number that this returns:
    /// [`crate::Session::fetch_pool`]. The peer maps it read-only and keeps the mapping for as long
    /// as it likes: what a pool holds, now or later, is not secret from anybody to whom it was
    /// shown. At most 256 files may wait to be fetched.
    pub fn show_pool(&mut self, pool: &Pool, peer: LinkId) -> Result<u64, GrantError> {
        self.check()?;
        self.drain_events_if_asked();
        let Some(to) = self.links.peer(peer).cloned() else {
            let end = self.links.end_of(peer).unwrap_or(LinkEnd::ClosedHere);
            return Err(GrantError::NoLink(end));
        };
        if to.destination == self.host.identity() {
            return Err(GrantError::Loopback);
        }
        let file = pool
            .descriptor()
            .map_err(HostError::memory(pool.length_bytes()))?;
        Ok(self.host.lend(&to, file, pool.length_bytes())?)
    }

    /// Lets every peer of this host that is linked to this interface fetch a pool, as often as it
    /// asks, with the number that this returns.
    pub(crate) fn show_pool_to_all(&mut self, pool: &Pool) -> Result<u64, HostError> {
        self.check()?;
        let file = pool
            .descriptor()
            .map_err(HostError::memory(pool.length_bytes()))?;
        self.host.lend_to_all(file, pool.length_bytes())
    }

    /// A pool that was shown and not fetched cannot be fetched any more.
    pub fn hide_pool(&mut self, number: u64) {
        if self.is_forked() {
            return;
        }
        self.host.withdraw_lent(number);
    }
}
