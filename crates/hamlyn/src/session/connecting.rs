//! A session connects: other threads use the manager while one waits for a peer to be found, or to
//! answer.

use std::time::Duration;

use hamlyn_engine::memory::LinkId;
use hamlyn_host::{Address, ConnectError, Connector, Given, Host, HostError, Wanted};

use super::Session;
use crate::message::Target;
use crate::peer::PeerName;
use crate::ticket::Ticket;
use crate::wait::{Wait, Waiting};

/// How long a network processor has to tell of a link that the host has, in nanoseconds; it takes
/// some microseconds.
const NEWS_NS: u64 = 500_000_000;

impl<H: Host> Session<'_, H> {
    /// Asks another interface, or this one, for what it offers under `item`. Needs no link and
    /// makes none. Blocks for as long as `wait` says while no interface has the name or nothing is
    /// offered; nothing is received meanwhile. [`Wait::Poll`] leaves no time for others to answer.
    pub fn ask(
        &mut self,
        to: Address<'_>,
        item: &str,
        wait: Wait,
    ) -> Result<Vec<u8>, ConnectError> {
        self.check()?;
        let asked = self.ask_all(&[Wanted { to, item }], wait);
        // One for each that is wanted.
        let given = asked.into_iter().next();
        given.map_or(Ok(Vec::new()), |given| Ok(given?.bytes))
    }

    /// As [`Session::ask`], for several items in as few questions as they fit; and when that was.
    pub(crate) fn ask_all(
        &mut self,
        wanted: &[Wanted<'_>],
        wait: Wait,
    ) -> Vec<Result<Given, ConnectError>> {
        let (connector, deadline_ns) = self.connector(wait);
        self.let_others(|| connector.ask(wanted, deadline_ns))
    }

    /// Makes a ticket usable: finds the link to its interface, connecting if there is none.
    /// Blocks for as long as `wait` says, if it must connect.
    pub fn target(&mut self, ticket: &Ticket, wait: Wait) -> Result<Target, ConnectError> {
        self.check()?;
        let to = &ticket.destination;
        let link = match self.link_to(to) {
            Some(link) => link,
            None => self.connect(Address::Destination(*to), wait)?,
        };
        Ok(Target::new(link, *ticket))
    }

    /// Connects to another interface by name, or to this one. Blocks for as long as `wait` says;
    /// nothing is received meanwhile.
    pub fn connect(&mut self, to: Address<'_>, wait: Wait) -> Result<LinkId, ConnectError> {
        self.check()?;
        // Peers that left count until it is heard that they did.
        self.drain_events_if_asked();
        let (connector, deadline_ns) = self.connector(wait);
        let connect = || connector.connect(to, deadline_ns);
        let token = match self.let_others(connect) {
            Err(ConnectError::Host(HostError::LinksFull { .. })) if self.clear_links() => {
                self.let_others(connect)
            }
            other => other,
        };
        self.linked(token?, to, deadline_ns)
    }

    /// The connector of the host, and until when it may wait.
    pub(super) fn connector(&self, wait: Wait) -> (H::Connector, u64) {
        let host = self.host();
        (host.connector(), Waiting::deadline_ns(wait, host.now_ns()))
    }

    /// The link of that token to that peer, which the host has. A network processor may know of it
    /// before it has told.
    fn linked(
        &mut self,
        token: u64,
        to: Address<'_>,
        deadline_ns: u64,
    ) -> Result<LinkId, ConnectError> {
        let now_ns = self.host().now_ns();
        let told_by_ns = deadline_ns.min(now_ns.saturating_add(NEWS_NS));
        // Once: it wakes us when it has looked, and would be woken by us again.
        let has_processor = self.wake_processor();
        let mut heard = self.link_of(token);
        if heard.is_none() && has_processor {
            heard = match self.sleepers.is_any() {
                // Their sleep is announced where ours would be.
                true => {
                    let left = Duration::from_nanos(told_by_ns.saturating_sub(now_ns));
                    let look = |session: &mut Self| Ok::<_, HostError>(session.link_of(token));
                    self.wait_for(Wait::For(left), look)?
                }
                false => self.await_news_of(token, told_by_ns)?,
            };
        }
        let is_late = heard.is_none() && has_processor && told_by_ns == deadline_ns;
        heard.flatten().ok_or_else(|| match is_late {
            true => ConnectError::Stalled {
                to: describe(to),
                silence: None,
            },
            false => ConnectError::Gone { to: describe(to) },
        })
    }

    /// Sleeps until the network processor tells of the link of that token, as `link_of` does, and
    /// takes no packets. Nothing if it does not in time.
    fn await_news_of(
        &mut self,
        token: u64,
        until_ns: u64,
    ) -> Result<Option<Option<LinkId>>, HostError> {
        while self.host().now_ns() < until_ns {
            let Some(waiter) = self.news_waiter() else {
                return Ok(None);
            };
            waiter.prepare();
            let waited = match self.is_asked() {
                true => Ok(()),
                false => waiter.wait(Some(until_ns)),
            };
            waiter.end();
            waited?;
            let heard = self.link_of(token);
            if heard.is_some() {
                return Ok(heard);
            }
        }
        Ok(None)
    }
}

fn describe(to: Address<'_>) -> String {
    match to {
        Address::Name(name) => format!("{name:?}"),
        Address::Destination(destination) => PeerName(destination).to_string(),
    }
}
