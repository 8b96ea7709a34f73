//! A session fetches memory that a peer lends: granted pages, exported areas, pools. Other threads
//! use the manager meanwhile.

use hamlyn_host::{ConnectError, Connector, Destination, Host};
use hamlyn_ring::lending::ImportedRegion;
use hamlyn_ring::pool::SharedPool;

use super::Session;
use crate::export::{ExportTicket, Import, ImportError};
use crate::grant::{AcceptError, GrantTicket};
use crate::interface::exporting::import_access;
use crate::wait::Wait;

impl<H: Host> Session<'_, H> {
    /// Takes up a grant: from now on, messages of [`PLACED_BYTES_MIN`] and more to that part of the
    /// slot are stored in place, in the order in which they are sent. What was sent there before, a
    /// shorter message, and one that lies only partly in the granted pages, goes as a copy, and may
    /// land after what is stored later. Blocks for as long as `wait` says while the pages are
    /// fetched; nothing is received meanwhile. There must be a link to its owner.
    ///
    /// [`PLACED_BYTES_MIN`]: crate::grant::PLACED_BYTES_MIN
    pub fn accept_grant(&mut self, ticket: &GrantTicket, wait: Wait) -> Result<(), AcceptError> {
        self.check()?;
        self.way_to_accept(ticket)?;
        let (connector, deadline_ns) = self.connector(wait);
        let adopt = ImportedRegion::adopt;
        let fetch = || connector.borrow(ticket.destination, ticket.secret, adopt, deadline_ns);
        let pages = self.let_others(fetch)?;
        self.take_up_grant(ticket, pages)
    }

    /// Maps the memory of a slot that a peer exports, if the kernel confirms what must hold of it.
    /// There must be a link to the peer ([`Session::target`] makes one). Initiators that are opened
    /// from now on with tickets of that slot use it. An export that was taken up already is given
    /// once more. A page that nobody has touched is made by whoever touches it first, and counts as
    /// that program's memory: an importer pays for what it reads, as the owner pays for what is
    /// written. Allocates. Blocks for as long as `wait` says; nothing is received meanwhile.
    pub fn import(&mut self, ticket: &ExportTicket, wait: Wait) -> Result<Import, ImportError> {
        self.check()?;
        if let Err(import) = self.way_to_import(ticket)? {
            return Ok(import);
        }
        let (connector, deadline_ns) = self.connector(wait);
        let (from, secret) = (ticket.ticket.destination, ticket.secret);
        let access = import_access(ticket);
        let area = self.let_others(|| connector.import(from, secret, access, deadline_ns))?;
        self.take_up_export(ticket, area)
    }

    /// Fetches a pool that a linked peer of this host shows, if the kernel confirms its seals, its
    /// size, and that all of its pages are there. Allocates. Blocks for as long as `wait` says;
    /// nothing is received meanwhile.
    pub fn fetch_pool(
        &mut self,
        from: Destination,
        number: u64,
        wait: Wait,
    ) -> Result<SharedPool, ConnectError> {
        self.check()?;
        let (connector, deadline_ns) = self.connector(wait);
        self.let_others(|| connector.borrow(from, number, SharedPool::adopt, deadline_ns))
    }
}
