//! The host that is embedded in an application: no daemon, no configuration.
//!
//! * [`name`]: published names and their abstract socket addresses.
//! * [`codec`]: the messages of a handshake.
//! * `offers`: bytes that are kept for askers.
//! * `exchange`: one message and its descriptors over a socket.
//! * `disposal`: closes descriptors that peers sent, without waiting for them.
//! * `grant`: the memory that each side of a link lends to the other.
//! * `credentials`: who the kernel says is at the other end.
//! * `broker`: regions that peers may fetch.
//! * `reach`, `connect`, `ask`, `fetch`: the side of a handshake that begins it.
//! * `control_thread`: the other side; it also notices deaths.
//! * `driver`: events and sleep, for the thread that drives the interface.
//! * `registry`: the links, shared by the owner's thread and the control thread.
//!
//! # Trust
//!
//! Both sides of a connection may send anything at any time. Who they are, is the kernel's word
//! (`SO_PEERCRED`), never the peer's. A handshake is a few messages of bounded size, parsed by a
//! total function, and has a deadline. Memory that a peer lends is used only if the kernel confirms
//! that it cannot shrink. All that a peer can cause is bounded: handshakes at a time (and those of
//! one user), links (likewise), lines in the log, work per turn.
//!
//! Abstract addresses have no permissions: any local user may take a name
//! first. Such a squatter can keep the name from its owner, but is not
//! connected to, unless the access list names it.
//!
//! A gap that is known: a peer that the access list names can leave
//! descriptors unread in a socket, which the kernel closes with the socket or
//! when a ring is taken. If one of them is a connection that lingers, that takes as
//! long as it lingers. What is received in a handshake is not concerned (`disposal`).
//!
//! # Forking
//!
//! A forked child has neither the control thread nor a part in the rings. There the calls of the
//! host fail, its end ends nothing, and its sockets are closed ([`hamlyn_ring::forks`]). `exec`
//! closes everything.

mod ask;
mod broker;
pub(crate) mod clock;
pub mod codec;
mod connect;
mod control_thread;
pub(crate) mod counters;
mod credentials;
mod disposal;
mod driver;
mod exchange;
mod fetch;
mod grant;
pub mod name;
pub(crate) mod numbers;
mod options;
mod reach;
pub(crate) mod registry;
pub(crate) mod source;

pub(crate) use ask::ask_neighbour;
pub use counters::RendezvousCounters;
pub use driver::ProcessDriver;
pub use options::{Access, NetworkUse, Options};

use crate::network::name_service::{ENDPOINT_ITEM, NameService, located};
use crate::network::resolver::{Network, with_port};
use crate::offers::Offers;
use crate::sharing::{AnyThread, OneThread, Sharing};
use crate::waiter::Waiter;
use crate::{
    Address, ConnectError, Connected, Connector, Destination, Errno, Given, Host, HostError, Peer,
    Supply, ThreadHandle, Wanted,
};
use broker::Broker;
use control_thread::ControlThread;
use credentials::Credentials;
use disposal::Disposal;
use grant::Lender;
use hamlyn_engine::receive_observer::Unobserved;
use hamlyn_link::either::EitherLink;
use hamlyn_ring::forks::{Birth, Uninherited};
use hamlyn_ring::ready_bitmap::ReadyBitmap;
use hamlyn_ring::region::{ReceivedRegion, RegionFiles};
use name::Name;
use options::Settings;
use registry::{PeerKey, Registry};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::thread::{MembarrierCommand, membarrier};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::thread::JoinHandle;

/// Connections that the kernel keeps for us until the control thread accepts them.
const BACKLOG: i32 = 4096;
/// How long the end of a host may take until what was sent to other hosts is acknowledged.
const SETTLE_NS: u64 = 2_000_000_000;
/// The control thread needs little; a subscriber of its log may need more.
const ATTENDANT_STACK_BYTES: usize = 512 * 1024;
/// How long a sleep may last when peers may have missed that it began.
const UNANNOUNCED_SLEEP_NS: u64 = 1_000_000;

/// What the owner's thread and the control thread both need.
pub(crate) struct Interior {
    pub(crate) settings: Settings,
    pub(crate) identity: Destination,
    pub(crate) network: Option<Network>,
    lender: Lender,
    pub(crate) registry: Registry,
    disposal: Disposal,
    pub(crate) offers: Offers,
    broker: Broker,
}

impl Interior {
    fn own_key(&self) -> PeerKey {
        PeerKey::neighbour(self.identity.interface, self.identity.user)
    }

    fn allows(&self, credentials: &Credentials) -> bool {
        let Credentials { user, group, .. } = *credentials;
        self.settings.access.allows(self.identity.user, user, group)
    }

    /// See [`crate::Driver::pass_barrier`].
    fn pass_barrier(&self) -> Option<u64> {
        // For those that pass a barrier of their own, and for our own next look.
        fence(Ordering::SeqCst);
        // For those that do not, if there are any: it interrupts every processor that runs a
        // process like us.
        let may_be_missed = self.lender.takes_barriers()
            && self.registry.has_doorbells()
            && membarrier(MembarrierCommand::GlobalExpedited).is_err();
        may_be_missed.then(|| clock::now_ns().saturating_add(UNANNOUNCED_SLEEP_NS))
    }

    /// The same for a peer of another host, which says itself who it is.
    pub(crate) fn allows_peer(&self, peer: &Peer) -> bool {
        let user = peer.destination.user;
        let access = &self.settings.access;
        access.allows(self.identity.user, user, peer.group)
    }
}

/// A host that is embedded in an application. Dropping it ends all its links and frees its name.
/// `S` says whether a manager on it stays in one thread ([`ProcessHost::open`]) or serves several
/// ([`ProcessHost::open_shared`]).
pub struct ProcessHost<S = OneThread> {
    interior: Arc<Interior>,
    driver: Option<ProcessDriver>,
    /// Until the owner takes them.
    ready_bitmap: Option<ReadyBitmap>,
    control_thread: Option<JoinHandle<()>>,
    /// Taken out first: it uses the local sockets.
    name_service: Option<NameService>,
    birth: Birth,
    sharing: PhantomData<fn() -> S>,
}

impl ProcessHost {
    /// Opens a host: takes its name, if it has one, and begins to accept connections.
    pub fn open(options: Options) -> Result<Self, HostError> {
        Self::begin(options)
    }
}

impl ProcessHost<AnyThread> {
    /// As [`ProcessHost::open`], for a manager that several threads use.
    pub fn open_shared(options: Options) -> Result<Self, HostError> {
        Self::begin(options)
    }
}

impl<S> ProcessHost<S> {
    fn begin(options: Options) -> Result<Self, HostError> {
        let settings = Settings::check(options)?;
        let (interface, listener) = own_listener(&settings)?;
        let mut listeners = vec![listener];
        if let Some(name) = &settings.name {
            let address = settings
                .namespace
                .name_address(name)
                .map_err(|errno| HostError::system("bind", 0, errno))?;
            let listener = listen_at(&address)?.ok_or_else(|| HostError::NameInUse {
                name: name.as_str().to_owned(),
                namespace: settings.namespace.as_str().to_owned(),
            })?;
            listeners.push(listener);
        }
        let (lender, ready_bitmap) = Lender::new(interface, &settings)?;
        let user = settings.numbers.own_user();
        let own_key = PeerKey::neighbour(interface, user);
        let registry = Registry::new(own_key, settings.links_max)?;
        let network: Option<Network> = match settings.network.clone() {
            Some(options) => {
                let tell = registry.control_waker();
                let namespace = settings.namespace.clone();
                Some(Network::open(options, interface, namespace, tell)?)
            }
            None => None,
        };
        if let Some(network) = &network {
            network.endpoint.mark_ready(lender.ready_bits());
        }
        let identity = Destination {
            node: network.as_ref().map_or(0, Network::node),
            user,
            interface,
        };
        let interior = Arc::new(Interior {
            settings,
            identity,
            network,
            lender,
            registry,
            disposal: Disposal::default(),
            offers: Offers::new(identity.user),
            broker: Broker::new(identity.user),
        });
        let control_thread = ControlThread::new(Arc::clone(&interior), listeners)?;
        let control_thread = std::thread::Builder::new()
            .name("hamlyn-control".to_owned())
            .stack_size(ATTENDANT_STACK_BYTES)
            .spawn(|| control_thread.run())
            .map_err(no_thread)?;
        let driver = Some(ProcessDriver::new(Arc::clone(&interior)));
        let mut host = Self {
            interior,
            driver,
            ready_bitmap: Some(ready_bitmap),
            control_thread: Some(control_thread),
            name_service: None,
            birth: Birth::here(),
            sharing: PhantomData,
        };
        host.open_name_service()?;
        Ok(host)
    }

    /// Lets others find this interface, if it is on the network.
    fn open_name_service(&mut self) -> Result<(), HostError> {
        let interior = &self.interior;
        let Some(network) = &interior.network else {
            return Ok(());
        };
        let local = network.endpoint.local();
        let place = located(interior.identity, local.port());
        let item = Name::checked(ENDPOINT_ITEM)?;
        interior
            .offers
            .offer(item, Supply::Always, &place.to_bytes())?;
        let at = with_port(local, network.options.name_service_port);
        self.name_service = Some(NameService::open(Arc::clone(interior), at)?);
        Ok(())
    }

    /// What this host is called by others, if this interface is on the network.
    pub fn host_name(&self) -> Option<&str> {
        Some(self.interior.network.as_ref()?.host().as_str())
    }

    /// How the handshakes that others began ended.
    pub fn rendezvous_counters(&self) -> RendezvousCounters {
        self.interior.registry.tally.read()
    }

    /// The published name, if there is one.
    pub fn name(&self) -> Option<&str> {
        self.interior.settings.name.as_ref().map(Name::as_str)
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        self.interior.settings.namespace.as_str()
    }
}

impl<S> std::fmt::Debug for ProcessHost<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessHost")
            .field("identity", &self.interior.identity)
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl<S> Drop for ProcessHost<S> {
    fn drop(&mut self) {
        if !self.birth.is_here() {
            // A forked child ends nothing: links, threads and locks are the parent's.
            std::mem::forget(self.name_service.take());
            std::mem::forget(self.control_thread.take());
            std::mem::forget(self.driver.take());
            std::mem::forget(Arc::clone(&self.interior));
            return;
        }
        self.name_service = None;
        self.interior.registry.close();
        if let Some(network) = &self.interior.network {
            network.endpoint.drain(clock::now_ns() + SETTLE_NS);
        }
        if let Some(control_thread) = self.control_thread.take() {
            // It does not panic; if it did, there is nothing left to end.
            let _ = control_thread.join();
        }
    }
}

/// See [`Connector`].
#[derive(Clone)]
pub struct ProcessConnector(Arc<Interior>, Birth);

impl ProcessConnector {
    /// Nothing is asked of anybody in the name of a parent.
    fn interior(&self) -> Result<&Interior, HostError> {
        self.1.check()?;
        Ok(&self.0)
    }
}

impl Connector for ProcessConnector {
    fn ask(&self, wanted: &[Wanted<'_>], deadline_ns: u64) -> Vec<Result<Given, ConnectError>> {
        match self.interior() {
            Ok(interior) => ask::ask(interior, wanted, deadline_ns),
            Err(error) => wanted.iter().map(|_| Err(error.clone().into())).collect(),
        }
    }

    fn connect(&self, to: Address<'_>, deadline_ns: u64) -> Result<u64, ConnectError> {
        Ok(connect::connect(self.interior()?, to, deadline_ns)?.token)
    }

    fn fetch(
        &self,
        from: Destination,
        secret: u64,
        deadline_ns: u64,
    ) -> Result<ReceivedRegion, ConnectError> {
        fetch::fetch(self.interior()?, from, secret, deadline_ns)
    }
}

impl<S: Sharing> ProcessHost<S> {
    /// Does something with what is offered under an item. Nothing is, under an invalid name or in a
    /// child.
    fn with_offers<R>(&self, item: &str, act: impl FnOnce(&Offers, &Name) -> R) -> Option<R> {
        let name = Name::new(item).ok().filter(|_| self.birth.is_here())?;
        Some(act(&self.interior.offers, &name))
    }
}

impl<S: Sharing> Host for ProcessHost<S> {
    type Sharing = S;
    type Link = EitherLink;
    type Driver = ProcessDriver;
    type Connector = ProcessConnector;
    type ReceiveObserver = Unobserved;
    type SendObserver = Unobserved;

    fn receive_observer(&self) -> Unobserved {
        Unobserved
    }

    fn send_observer(&self) -> Unobserved {
        Unobserved
    }

    fn connector(&self) -> ProcessConnector {
        ProcessConnector(Arc::clone(&self.interior), self.birth)
    }

    fn identity(&self) -> Destination {
        self.interior.identity
    }

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn random_bits(&mut self) -> Result<u64, HostError> {
        random_bits()
    }

    fn share(&mut self, files: Arc<RegionFiles>, with: Option<&Peer>) -> Result<u64, HostError> {
        self.birth.check()?;
        let secret = random_bits()?;
        self.interior.broker.share(secret, files, with)?;
        Ok(secret)
    }

    fn withdraw_region(&mut self, secret: u64) {
        if self.birth.is_here() {
            self.interior.broker.withdraw(secret);
        }
    }

    fn connect(
        &mut self,
        to: Address<'_>,
        deadline_ns: u64,
    ) -> Result<Connected<Self::Link>, ConnectError> {
        self.birth.check().map_err(HostError::from)?;
        let interior = &self.interior;
        let linked = connect::connect(interior, to, deadline_ns)?;
        let token = linked.token;
        let new = linked.is_new.then(|| interior.registry.take_linked(token));
        Ok(match new.flatten() {
            Some((peer, link)) => Connected::New(peer, link),
            None => Connected::Already { token },
        })
    }

    fn offer(&mut self, item: &str, supply: Supply, bytes: &[u8]) -> Result<(), HostError> {
        self.birth.check()?;
        let item = Name::checked(item)?;
        self.interior.offers.offer(item, supply, bytes)
    }

    fn offer_place(&mut self, item: &str, most: u32, bytes: &[u8]) -> Result<u64, HostError> {
        self.birth.check()?;
        let item = Name::checked(item)?;
        self.interior.offers.offer_place(item, most, bytes)
    }

    fn return_place(&mut self, item: &str, place: u64) {
        self.with_offers(item, |offers, item| offers.return_place(item, place));
    }

    fn run_short(&mut self, item: &str) {
        self.with_offers(item, Offers::run_short);
    }

    fn offered(&self, item: &str) -> usize {
        let offered = self.with_offers(item, Offers::offered);
        offered.unwrap_or(0)
    }

    fn withdraw(&mut self, item: &str) {
        self.with_offers(item, Offers::withdraw);
    }

    fn disconnect(&mut self, token: u64) {
        if self.birth.is_here() {
            self.interior.registry.disconnect(token);
        }
    }

    fn take_driver(&mut self) -> Option<ProcessDriver> {
        self.driver.take()
    }

    fn new_waiter(&mut self) -> Result<Waiter, HostError> {
        Waiter::new().map_err(|errno| HostError::system("eventfd", 1, errno))
    }

    fn spawn(
        &mut self,
        name: &str,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Box<dyn ThreadHandle>, HostError> {
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(body).map_err(no_thread)?;
        Ok(Box::new(Thread(thread)))
    }

    fn ready_bitmap(&mut self) -> Option<ReadyBitmap> {
        self.ready_bitmap.take()
    }

    #[inline]
    fn relax(&mut self, yields: bool) {
        if yields {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }

    fn pass_barrier(&mut self) -> Option<u64> {
        self.interior.pass_barrier()
    }

    fn spin_ns(&self) -> u64 {
        self.interior.settings.spin_ns
    }
}

pub(crate) fn no_thread(error: std::io::Error) -> HostError {
    HostError::io("clone", 0, &error)
}

struct Thread(JoinHandle<()>);

impl ThreadHandle for Thread {
    fn unpark(&self) {
        self.0.thread().unpark();
    }

    fn join(self: Box<Self>) {
        // It does not panic; if it did, there is nothing left to end.
        let _ = self.0.join();
    }
}

pub(crate) fn random_bits() -> Result<u64, HostError> {
    getrandom::u64().map_err(|error| HostError::System {
        call: "getrandom",
        errno: Errno(error.raw_os_error().unwrap_or(0)),
    })
}

/// A new interface number, and the socket that listens for it.
fn own_listener(settings: &Settings) -> Result<(u64, Uninherited), HostError> {
    const ATTEMPTS: u32 = 8;
    for _ in 0..ATTEMPTS {
        let interface = random_bits()?;
        let address = settings
            .namespace
            .interface_address(interface)
            .map_err(|errno| HostError::system("bind", 0, errno))?;
        if let Some(listener) = listen_at(&address)? {
            return Ok((interface, listener));
        }
    }
    Err(HostError::system("bind", 0, rustix::io::Errno::ADDRINUSE))
}

/// A socket that listens at an address, or nothing if somebody else does.
fn listen_at(address: &SocketAddrUnix) -> Result<Option<Uninherited>, HostError> {
    let failed = |call| move |errno| HostError::system(call, 1, errno);
    let listener: Uninherited = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
    .map_err(failed("socket"))?
    .into();
    match rustix::net::bind(&listener, address) {
        Ok(()) => {}
        Err(rustix::io::Errno::ADDRINUSE) => return Ok(None),
        Err(errno) => return Err(failed("bind")(errno)),
    }
    rustix::net::listen(&listener, BACKLOG).map_err(failed("listen"))?;
    Ok(Some(listener))
}
