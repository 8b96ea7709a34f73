//! A group: the nodes of one parallel program, as one of them has it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hamlyn::engine::memory::LinkId;
use hamlyn::engine::packet::SlotName;
use hamlyn::engine::transport::Return;
use hamlyn::host::Supply;
use hamlyn::host::process::ProcessHost;
use hamlyn::ticket::TicketKind;
use hamlyn::{
    Address, Destination, Event as InterfaceEvent, Host, LinkEnd, LogUse, Manager, Session, Target,
    Ticket, TicketError, Wait,
};
use hamlyn_job::Job;
use ring::digest;

use crate::error::Error;
use crate::event::Event;
use crate::limits::NODES_MAX;

/// Events that are kept until they are asked for.
const EVENTS_MAX: usize = 64;
/// Events that one look takes.
const EVENTS_PER_LOOK: usize = 16;

/// The description of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupOptions {
    /// Its name, from which its identity follows: messages of another group are refused.
    pub name: String,
    /// The number of this node.
    pub me: u32,
    /// The addresses of the interfaces of all nodes, by number; that of this node included.
    pub addresses: Vec<String>,
}

impl GroupOptions {
    /// The group of a job, which `hamlyn run`, `mpirun` or `srun` has started.
    pub fn of_job(job: &Job) -> Self {
        Self {
            name: job.name.clone(),
            me: job.proc,
            addresses: (0..job.procs)
                .map(|proc| job.interface_address(proc))
                .collect(),
        }
    }
}

/// The nodes of one parallel program, and the interface by which this node reaches them. Any number
/// of end points ([`Udm`](crate::Udm)) share it. It may be cloned.
pub struct Group<H: Host = ProcessHost> {
    shared: Arc<Shared<H>>,
}

pub(crate) struct Shared<H: Host> {
    pub(crate) manager: Manager<H>,
    pub(crate) me: u32,
    /// The identity of the group (`T 4.1`, GID), by which the receiver's interface tells its
    /// messages from those of others.
    pub(crate) gid: u64,
    addresses: Vec<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The interfaces of the nodes, as far as they are known.
    interfaces: Vec<Option<Destination>>,
    /// Nodes that are gone, of which messages may still be in the network, with their links.
    leaving: Vec<(u32, LinkId, LinkEnd)>,
    lost: Vec<Option<LinkEnd>>,
    /// By node, the link over which it was met. It is a node as long as this lasts: another one of
    /// the same interface would not know what its messages miss.
    links: Vec<Option<LinkId>>,
    /// By node and port that was met, why it has refused a message of this one, if it has.
    refused: BTreeMap<(u32, u32), Option<Return>>,
    /// Items of end points that are open here.
    open: BTreeSet<String>,
    events: VecDeque<Event>,
    missed: u64,
    /// Counts losses and refusals.
    changes: u64,
}

/// An end point, as its node offers it to the others.
#[derive(Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) ticket: Ticket,
    pub(crate) area_bytes: u64,
    pub(crate) queue_bytes: u64,
}

impl Offer {
    fn to_bytes(self) -> Vec<u8> {
        let ticket = self.ticket.to_bytes();
        let (area, queue) = (
            self.area_bytes.to_le_bytes(),
            self.queue_bytes.to_le_bytes(),
        );
        [&ticket[..], &area, &queue].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, TicketError> {
        let (rest, queue) = bytes.split_last_chunk().unwrap_or((bytes, &[0; 8]));
        let (ticket, area) = rest.split_last_chunk().unwrap_or((rest, &[0; 8]));
        Ok(Self {
            ticket: Ticket::from_bytes(ticket)?,
            area_bytes: u64::from_le_bytes(*area),
            queue_bytes: u64::from_le_bytes(*queue),
        })
    }
}

/// The end point of a node that was met.
pub(crate) struct Met {
    pub(crate) target: Target,
    /// Its link goes to another host.
    pub(crate) is_far: bool,
    pub(crate) area_bytes: u64,
    pub(crate) queue_bytes: u64,
}

impl State {
    fn node_of(&self, interface: &Destination) -> Option<u32> {
        let is_it = |known: &Option<Destination>| known.is_some_and(|it| it.is_same(interface));
        self.interfaces
            .iter()
            .position(is_it)
            .map(|node| node as u32)
    }

    /// The node that was met over that link.
    fn node_over(&self, link: LinkId) -> Option<u32> {
        let met = self.links.iter().position(|met| *met == Some(link));
        met.map(|node| node as u32)
    }

    /// A node that is gone is lost once all that it had sent was taken out of the network.
    #[cold]
    fn end_leaving<H: Host>(&mut self, session: &Session<'_, H>) {
        for (node, link, end) in std::mem::take(&mut self.leaving) {
            if !session.is_drained(link) {
                self.leaving.push((node, link, end));
                continue;
            }
            self.changes += 1;
            self.lost[node as usize] = Some(end);
            self.tell(Event::Lost { node, end });
        }
    }

    /// A peer can invent refusals: those of ports that were met count.
    fn refuse(&mut self, node: u32, port: SlotName, reason: Return) {
        if let Some(refused) = self.refused.get_mut(&(node, port.to_bits())) {
            refused.get_or_insert(reason);
        }
    }

    /// Finds nodes that are gone: those whose links have ended.
    #[cold]
    fn find_gone<H: Host>(&mut self, session: &Session<'_, H>, among: Range<usize>) {
        for node in among {
            let link = &self.links[node];
            let is_known = |leaving: &(u32, LinkId, LinkEnd)| leaving.0 == node as u32;
            if let Some(link) = *link
                && let Some(end) = session.link_end(link)
                && self.lost[node].is_none()
                && !self.leaving.iter().any(is_known)
            {
                self.leaving.push((node as u32, link, end));
            }
        }
    }

    fn tell(&mut self, event: Event) {
        if self.events.len() == EVENTS_MAX {
            self.missed += 1;
        } else {
            self.events.push_back(event);
        }
    }
}

impl<H: Host> Clone for Group<H> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<H: Host> Group<H> {
    /// A group over the interface of that manager, whose name is the one by which the others reach
    /// this node. It takes the manager's events. Allocates, and does not block: nodes are met when
    /// end points are opened.
    ///
    /// # Errors
    ///
    /// No nodes, more than [`NODES_MAX`], or none with the number of this one.
    pub fn new(manager: Manager<H>, options: GroupOptions) -> Result<Self, Error> {
        let GroupOptions {
            name,
            me,
            addresses,
        } = options;
        let nodes = addresses.len();
        if nodes > NODES_MAX as usize || me as usize >= nodes {
            let most = NODES_MAX;
            return Err(Error::BadGroup { me, nodes, most });
        }
        let sum = digest::digest(&digest::SHA256, name.as_bytes());
        let first = sum.as_ref().first_chunk().copied().unwrap_or_default();
        let mut state = State {
            interfaces: vec![None; nodes],
            lost: vec![None; nodes],
            links: vec![None; nodes],
            ..State::default()
        };
        state.interfaces[me as usize] = Some(manager.session().identity());
        Ok(Self {
            shared: Arc::new(Shared {
                manager,
                me,
                gid: u64::from_le_bytes(first),
                addresses,
                state: Mutex::new(state),
            }),
        })
    }

    /// The number of this node.
    pub fn me(&self) -> u32 {
        self.shared.me
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.shared.nodes()
    }

    /// The address of a node's interface.
    pub fn address(&self, node: u32) -> Option<&str> {
        self.shared.addresses.get(node as usize).map(String::as_str)
    }

    /// The use that messages of this node have made of the memory that another one lends for those
    /// which it does not take (the buffered case, `T 4.2`), by all end points of the group. Nothing
    /// if no node of that number on this host was met, or it lends none. Does not allocate; not for
    /// the path of a message.
    pub fn log_use(&self, node: u32) -> Option<LogUse> {
        let mut session = self.shared.manager.session();
        let link = self.shared.state().links.get(node as usize).copied()??;
        session.log_use(link)
    }

    /// The next event of the nodes of this group, if there is one. Moves no packets.
    pub fn next_event(&self) -> Option<Event> {
        let mut session = self.shared.manager.session();
        self.shared.hear(&mut session);
        let mut state = self.shared.state();
        state.events.pop_front().or_else(|| {
            let count = std::mem::take(&mut state.missed);
            (count > 0).then_some(Event::Missed { count })
        })
    }

    pub(crate) fn shared(&self) -> Arc<Shared<H>> {
        Arc::clone(&self.shared)
    }
}

impl<H: Host> std::fmt::Debug for Group<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Group")
            .field("me", &self.me())
            .field("nodes", &self.nodes())
            .finish_non_exhaustive()
    }
}

impl<H: Host> Shared<H> {
    /// For a moment: it is never held while a node is waited for. Its thread has the manager in
    /// hand, so that no handler of a signal comes that waits for it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn nodes(&self) -> u32 {
        self.addresses.len() as u32
    }

    /// Takes a name for an end point. False if one of that name is open.
    pub(crate) fn take(&self, item: &str) -> bool {
        let _session = self.manager.session();
        self.state().open.insert(item.to_owned())
    }

    pub(crate) fn give_up(&self, item: &str) {
        self.state().open.remove(item);
    }

    /// Offers a port to the nodes, and asks each for its own; all of them, by number. Blocks until
    /// all have opened theirs, twice that long for each at most.
    pub(crate) fn meet(&self, item: &str, own: &Offer, wait: Wait) -> Result<Vec<Met>, Error> {
        let mut session = self.manager.session();
        session.offer(item, Supply::Always, &own.to_bytes())?;
        let mut all = Vec::new();
        all.resize_with(self.addresses.len(), || None);
        for step in 0..self.nodes() {
            // Not all ask one at the same time.
            let node = (self.me + step) % self.nodes();
            self.hear(&mut session);
            if let Some(end) = self.lost(node) {
                return Err(Error::Lost { node, end });
            }
            let connect = |cause| Error::Connect { node, cause };
            let mut theirs = if node == self.me {
                *own
            } else {
                let address = Address::Name(&self.addresses[node as usize]);
                let bytes = session.ask(address, item, wait).map_err(connect)?;
                Offer::from_bytes(&bytes).map_err(|cause| Error::Offer { node, cause })?
            };
            // Its own group, not that which the receiver's ticket names: the receiver compares.
            theirs.ticket.base = self.gid;
            let ticket = theirs.ticket;
            let other = self.state().node_of(&ticket.destination);
            if let Some(other) = other.filter(|other| *other != node) {
                return Err(Error::SameInterface { node, other });
            }
            let target = session.target(&ticket, wait).map_err(connect)?;
            let is_far = session.connection_state(target.link()).is_some();
            let mut state = self.state();
            state.interfaces[node as usize] = Some(ticket.destination);
            let met = *state.links[node as usize].get_or_insert(target.link());
            if let Some(end) = session.link_end(met) {
                return Err(Error::Lost { node, end });
            }
            state.refused.insert((node, ticket.slot.to_bits()), None);
            all[node as usize] = Some(Met {
                target,
                is_far,
                area_bytes: theirs.area_bytes,
                queue_bytes: theirs.queue_bytes,
            });
        }
        Ok(all.into_iter().flatten().collect())
    }

    /// The node that was met over that link.
    pub(crate) fn node_over(&self, link: LinkId) -> Option<u32> {
        self.state().node_over(link)
    }

    /// Hears of nodes that are gone and of messages that came back. Counts those.
    pub(crate) fn hear(&self, session: &mut Session<'_, H>) -> u64 {
        let mut state = self.state();
        let mut events = 0;
        while events < EVENTS_PER_LOOK
            && let Some(event) = session.next_event()
        {
            events += 1;
            match event {
                InterfaceEvent::PeerLeft { peer, .. } => {
                    if let Some(node) = state.node_over(peer.link) {
                        let node = node as usize;
                        state.find_gone(session, node..node + 1);
                    }
                }
                InterfaceEvent::Refused(returned) if returned.kind == TicketKind::Port => {
                    if let Some(node) = state.node_over(returned.link) {
                        let reason = returned.reason;
                        state.changes += 1;
                        state.refuse(node, returned.slot, reason);
                        state.tell(Event::Refused { node, reason });
                    }
                }
                InterfaceEvent::Buffering {
                    peer,
                    direction,
                    waiting_bytes,
                    limit_bytes,
                } => {
                    if let Some(node) = state.node_over(peer.link) {
                        state.tell(Event::Buffering {
                            node,
                            direction,
                            waiting_bytes,
                            limit_bytes,
                        });
                    }
                }
                InterfaceEvent::Drained { peer, direction } => {
                    if let Some(node) = state.node_over(peer.link) {
                        state.tell(Event::Drained { node, direction });
                    }
                }
                InterfaceEvent::Missed { count } => {
                    state.missed += count;
                    let all = 0..state.links.len();
                    state.find_gone(session, all);
                }
                _ => {}
            }
        }
        if events == EVENTS_PER_LOOK {
            // There may be more.
            session.look_within(Duration::ZERO);
        }
        if !state.leaving.is_empty() {
            state.end_leaving(session);
        }
        state.changes
    }

    /// Why a node is gone, if it is.
    pub(crate) fn lost(&self, node: u32) -> Option<LinkEnd> {
        *self.state().lost.get(node as usize)?
    }

    /// Why a port of a node has refused a message, if it has.
    pub(crate) fn refused(&self, node: u32, port: SlotName) -> Option<Return> {
        let state = self.state();
        *state.refused.get(&(node, port.to_bits()))?
    }
}
