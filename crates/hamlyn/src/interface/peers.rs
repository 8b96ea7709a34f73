//! An interface and its peers: connecting, first contact (`Hamlyn 6.3`), and learning of losses.

use hamlyn_engine::memory::LinkId;
use hamlyn_host::{
    Address, ConnectError, Connected, Destination, Event, Host, HostError, Peer, Supply,
};

use super::{Interface, LOSSES_KEPT};
use crate::error::PeerLost;
use crate::links::LinkEnd;
use crate::message::Target;
use crate::ticket::Ticket;
use crate::wait::{Patience, Wait};

impl<H: Host> Interface<H> {
    /// Makes a ticket usable: finds the link to its interface, connecting if there is none.
    /// Blocks for as long as `wait` says, if it must connect.
    pub fn target(&mut self, ticket: &Ticket, wait: Wait) -> Result<Target, ConnectError> {
        self.attend_if_asked();
        let link = match self.links.to(&ticket.destination) {
            Some(link) => link,
            None => self.connect(Address::Destination(ticket.destination), wait)?,
        };
        Ok(Target {
            link,
            ticket: *ticket,
        })
    }

    /// A target over a link that is there already, if only for what a lost peer sent;
    /// never connects.
    pub(crate) fn target_linked(&mut self, ticket: &Ticket) -> Option<Target> {
        self.attend_if_asked();
        let link = self.links.to_or_from(&ticket.destination)?;
        Some(Target {
            link,
            ticket: *ticket,
        })
    }

    /// Connects to another interface by name, or to this one.
    pub fn connect(&mut self, to: Address<'_>, wait: Wait) -> Result<LinkId, ConnectError> {
        let deadline_ns = Patience::deadline_ns(wait, self.host.now_ns());
        match self.host.connect(to, deadline_ns)? {
            Connected::New(peer, link) => Ok(self.links.insert(peer, link)),
            Connected::Already { token } => {
                self.attend();
                if let Some(live) = self.links.by_token(token) {
                    let destination = live.peer.destination;
                    if let Some(link) = self.links.to(&destination) {
                        return Ok(link);
                    }
                }
                Err(ConnectError::Gone { to: describe(to) })
            }
        }
    }

    /// Ends the link to a peer. What was sent to it stays sent; what is queued for it fails.
    pub fn disconnect(&mut self, link: LinkId) {
        if self.links.get(link).is_some() {
            self.remove_link(link.index as usize, LinkEnd::ClosedHere);
        }
    }

    /// The peers that are linked.
    pub fn peers(&self) -> impl Iterator<Item = (LinkId, &Peer)> {
        self.links.iter().map(|(id, live)| (id, &live.peer))
    }

    /// Why a link is not up, or nothing if it is.
    pub fn link_end(&self, link: LinkId) -> Option<LinkEnd> {
        self.links.end_of(link)
    }

    /// Whether everything that a lost peer had sent has been taken.
    pub(crate) fn is_drained(&self, link: LinkId) -> bool {
        self.links.get(link).is_none()
    }

    /// The loss of that peer, if it is not long ago.
    pub(crate) fn recent_loss(&self, peer: &Destination) -> Option<PeerLost> {
        self.losses
            .iter()
            .rev()
            .find(|lost| lost.peer == *peer)
            .copied()
    }

    /// Losses of peers so far; compare to learn of new ones.
    pub(crate) fn loss_count(&self) -> u64 {
        self.loss_count
    }

    /// The next loss that the caller has not seen; `seen` counts on.
    pub(crate) fn next_loss(&self, seen: &mut u64) -> Option<PeerLost> {
        if *seen == self.loss_count {
            return None;
        }
        let kept = self.losses.len() as u64;
        *seen = (*seen).max(self.loss_count - kept);
        let index = (*seen + kept - self.loss_count) as usize;
        *seen += 1;
        self.losses.get(index).copied()
    }

    pub(crate) fn lost(&self, target: &Target) -> PeerLost {
        PeerLost {
            peer: target.ticket.destination,
            end: self
                .links
                .end_of(target.link)
                .unwrap_or(LinkEnd::ClosedHere),
        }
    }

    /// Offers 1 to 1024 bytes, the ticket of a well-known slot or a seed say, to whoever asks for
    /// `item`, so that a program that knows only a name can make contact (`Hamlyn 6.3`).
    ///
    /// With [`Supply::Once`] one asker gets it, and several of the same name queue up; a ticket that
    /// only one peer is to have is offered so. With [`Supply::Always`] everybody
    /// gets it, and it takes the place of all that was offered under the name before.
    /// Who may be linked to this interface may ask. Answers are given while this program computes.
    pub fn offer(&mut self, item: &str, supply: Supply, bytes: &[u8]) -> Result<(), HostError> {
        self.host.offer(item, supply, bytes)
    }

    /// Takes back all that is offered under `item`. Who was given it before has it.
    pub fn withdraw(&mut self, item: &str) {
        self.host.withdraw(item);
    }

    /// Asks another interface, or this one, for what it offers under `item`. Needs no link
    /// and makes none. Blocks for as long as `wait` says while nobody has the name or nothing is
    /// offered; nothing is received meanwhile. [`Wait::Poll`] leaves no time for others to answer.
    pub fn ask(
        &mut self,
        to: Address<'_>,
        item: &str,
        wait: Wait,
    ) -> Result<Vec<u8>, ConnectError> {
        let deadline_ns = Patience::deadline_ns(wait, self.host.now_ns());
        self.host.ask(to, item, deadline_ns)
    }

    #[cold]
    pub(super) fn remove_link(&mut self, index: usize, end: LinkEnd) {
        let Some(live) = self.links.remove_at(index, end) else {
            return;
        };
        self.activity += 1;
        let id = LinkId {
            index: index as u32,
            generation: self.links.generation_at(index),
        };
        self.end_grants_with(id, live.peer.token);
        if !matches!(end, LinkEnd::Lost(_)) {
            tracing::debug!(peer = ?live.peer.destination, %end, "link closed");
            self.host.disconnect(live.peer.token);
            self.note_loss(PeerLost {
                peer: live.peer.destination,
                end,
            });
        }
    }

    fn note_loss(&mut self, lost: PeerLost) {
        if self.losses.len() == LOSSES_KEPT {
            self.losses.pop_front();
        }
        self.losses.push_back(lost);
        self.loss_count += 1;
    }

    #[inline]
    pub(super) fn attend_if_asked(&mut self) {
        if self.host.attention() {
            self.attend();
        }
    }

    #[cold]
    #[inline(never)]
    fn attend(&mut self) {
        while let Some(event) = self.host.next_event() {
            self.activity += 1;
            match event {
                Event::Linked(peer, link) => {
                    self.links.insert(peer, link);
                }
                Event::Lost { token, cause } => {
                    let Some(live) = self.links.by_token(token) else {
                        continue;
                    };
                    if live.lost.is_none() {
                        live.lost = Some(cause);
                        let peer = live.peer.destination;
                        self.note_loss(PeerLost {
                            peer,
                            end: LinkEnd::Lost(cause),
                        });
                    }
                }
            }
        }
    }
}

fn describe(to: Address<'_>) -> String {
    match to {
        Address::Name(name) => format!("{name:?}"),
        Address::Destination(destination) => crate::error::PeerName(destination).to_string(),
    }
}
