//! A node: one interface, with bundles of endpoints.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use hamlyn::engine::memory::LinkId;
use hamlyn::host::Supply;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Address, Host, Manager, ManagerOptions, NewPort, PeerIdentity, Wait};

use crate::bundle::Bundle;
use crate::dropped::Dropped;
use crate::error::Error;
use crate::name::Name;
use crate::options::NodeOptions;
use crate::poll::{FENCES_MAX, NodeState};
use crate::residence::Residence;
use crate::shared::Shared;
use crate::state::{BUNDLES_MAX, BundleState, State};
use crate::statistics::Statistics;
use crate::traffic::Traffic;

/// Stamps of messages, which a port calls handlers.
const STAMPS: u16 = 1 << 12;

/// A node: an interface with its bundles, the paper's network interface (`V 3.2`). It may be
/// cloned; it ends with the last of its clones, bundles and endpoints.
pub struct Node<H: Host = ProcessHost> {
    shared: Rc<Shared<H>>,
}

impl<H: Host> Clone for Node<H> {
    fn clone(&self) -> Self {
        Self {
            shared: Rc::clone(&self.shared),
        }
    }
}

impl Node {
    /// A node of this process. Starts a thread that sleeps while nobody connects. Allocates.
    pub fn open(host: Options, options: NodeOptions) -> Result<Self, Error> {
        let manager = hamlyn::open_with(host, ManagerOptions::default())?;
        Self::new(manager, options)
    }
}

impl<H: Host> Node<H> {
    /// A node on that manager, which must have no end points of its own.
    ///
    /// # Errors
    ///
    /// An option that cannot be, or no memory.
    pub fn new(manager: Manager<H>, options: NodeOptions) -> Result<Self, Error> {
        options.check()?;
        let mut session = manager.session();
        let new = NewPort::new()
            .handlers(STAMPS)
            .queue_bytes(options.reply_queue_bytes);
        let replies = session.open_port(new)?;
        let fences = session.open_completions(FENCES_MAX)?;
        let host = session.identity().node;
        drop(session);
        let dropped = Rc::new(Dropped::default());
        let traffic = Traffic::new(options, Rc::clone(&dropped));
        let residence = Residence::new(options.frames);
        let node = NodeState::new(replies, fences, residence, State::new(host, traffic));
        Ok(Self {
            shared: Rc::new(Shared {
                manager,
                node: RefCell::new(node),
                dropped,
            }),
        })
    }

    /// A new bundle. A node has 32,768 at most. Allocates.
    pub fn bundle(&self) -> Result<Bundle<H>, Error> {
        let (mut node, mut session) = self.shared.enter()?;
        node.clean_up(&mut session)?;
        let bundles = &mut node.state.bundles;
        let is_free = |bundle: &BundleState| !bundle.is_held && bundle.endpoints.is_empty();
        let free = bundles.iter().position(is_free);
        let number = free.unwrap_or(bundles.len());
        if number >= BUNDLES_MAX {
            let (what, most) = ("bundles", BUNDLES_MAX);
            return Err(Error::TooMany { what, most });
        }
        if number == bundles.len() {
            let set = session.open_port_set(node.state.traffic.options.visit)?;
            node.sets.push(set);
            node.state.bundles.push(Default::default());
        }
        node.state.bundles[number].is_held = true;
        drop((node, session));
        Ok(Bundle::new(Rc::clone(&self.shared), number as u32))
    }

    /// Offers the name of an endpoint under `item` to all who ask this node for it.
    pub fn publish(&self, item: &str, name: &Name) -> Result<(), Error> {
        let (_, mut session) = self.shared.enter()?;
        Ok(session.offer(item, Supply::Always, &name.to_bytes())?)
    }

    /// The name that another node publishes under `item`. Blocks, as long as `wait` says, until the
    /// node is there and has published it; handlers do not run meanwhile.
    pub fn look_up(&self, node: &str, item: &str, wait: Wait) -> Result<Name, Error> {
        let (_node, mut session) = self.shared.enter()?;
        let bytes = session.ask(Address::Name(node), item, wait)?;
        Ok(Name::from_bytes(&bytes)?)
    }

    /// The peer at the other end of a link, for which the kernel or the handshake vouches; nothing
    /// if its link ended long ago.
    pub fn identity_of(&self, link: LinkId) -> Result<Option<PeerIdentity>, Error> {
        let (_node, mut session) = self.shared.enter()?;
        Ok(session.identity_of(link))
    }

    /// The time of the host's clock in nanoseconds, from any beginning: for the end of what takes
    /// several waits.
    pub fn now_ns(&self) -> Result<u64, Error> {
        Ok(self.shared.enter()?.1.host().now_ns())
    }

    /// The counts of this node.
    pub fn statistics(&self) -> Result<Statistics, Error> {
        Ok(self.shared.enter()?.0.state.traffic.statistics)
    }

    /// The options that the node was opened with.
    pub fn options(&self) -> Result<NodeOptions, Error> {
        Ok(self.shared.enter()?.0.state.traffic.options)
    }

    /// Waits until what was sent is handed to its links, messages to be sent again included, twice
    /// as long as `wait` says at most. False if the time was over first. A program that ends calls
    /// this last, when nothing that it has sent is
    /// [outstanding](crate::Endpoint::outstanding): the rest of transfers is not waited for. Runs
    /// no handlers.
    pub fn flush(&self, wait: Wait) -> Result<bool, Error> {
        let (mut node, mut session) = self.shared.enter()?;
        if self.shared.dropped.is_any() {
            node.clean_up(&mut session)?;
        }
        let sent = session.wait_for(wait, |session| {
            session.poll();
            if let Some(due_ns) = node.state.send_due(session) {
                session.look_within(Duration::from_nanos(due_ns));
            }
            node.state.tell_credits(session);
            Ok::<_, Error>(node.state.traffic.retries.is_empty().then_some(()))
        })?;
        Ok(session.flush(wait)? && sent.is_some())
    }
}

impl<H: Host> std::fmt::Debug for Node<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}
