//! Connecting: other threads use the manager while one waits for somebody to be found, or to answer.

use hamlyn_engine::memory::LinkId;
use hamlyn_host::{Address, ConnectError, Connector, Given, Host, HostError};

use crate::manager::{Entered, Manager};
use crate::message::Target;
use crate::ticket::Ticket;
use crate::wait::Wait;

impl<H: Host> Manager<H> {
    /// As [`crate::Interface::ask`], and other threads use the manager while this one waits. Blocks for as long as `wait` says while no
    /// interface has the name or nothing is offered.
    ///
    /// # Errors
    ///
    /// The address or the item cannot be used, nobody has the name, or nothing was offered before the time was over.
    pub fn ask(
        &self,
        to: Address<'_>,
        item: &str,
        wait: Wait,
    ) -> Result<Vec<u8>, crate::error::ConnectError> {
        Ok(self.enter()?.ask(to, item, wait)?)
    }
}

impl<H: Host> Entered<'_, H> {
    /// As [`crate::Interface::ask`].
    pub(crate) fn ask(
        &mut self,
        to: Address<'_>,
        item: &str,
        wait: Wait,
    ) -> Result<Vec<u8>, ConnectError> {
        Ok(self.ask_when(to, item, wait)?.bytes)
    }

    /// As [`Entered::ask`], and when that was.
    pub(crate) fn ask_when(
        &mut self,
        to: Address<'_>,
        item: &str,
        wait: Wait,
    ) -> Result<Given, ConnectError> {
        let (connector, deadline_ns) = self.interface.connector(wait);
        self.let_others(|| connector.ask(to, item, deadline_ns))
    }

    /// As [`crate::Interface::target`].
    pub(crate) fn target(&mut self, ticket: &Ticket, wait: Wait) -> Result<Target, ConnectError> {
        let to = &ticket.destination;
        let link = match self.interface.link_to(to) {
            Some(link) => link,
            None => self.connect(Address::Destination(*to), wait)?,
        };
        Ok(Target::new(link, *ticket))
    }

    /// As [`crate::Interface::connect`].
    pub(crate) fn connect(&mut self, to: Address<'_>, wait: Wait) -> Result<LinkId, ConnectError> {
        let (connector, deadline_ns) = self.interface.connector(wait);
        let connect = || connector.connect(to, deadline_ns);
        let token = match self.let_others(connect) {
            Err(ConnectError::Host(HostError::LinksFull { .. }))
                if self.interface.clear_links() =>
            {
                self.let_others(connect)
            }
            other => other,
        };
        self.interface.linked(token?, to, deadline_ns)
    }
}
