//! The simulated host: implements the host contract in the world.

mod asking;
mod driver;
mod receive_judge;
pub(crate) mod registry;
mod send_judge;

use std::sync::Arc;

use hamlyn::{Manager, ManagerOptions, OpenError};
use hamlyn_engine::point::Point;
use hamlyn_host::offers::Offers;
use hamlyn_host::process::RendezvousCounters;
use hamlyn_host::process::name::Name;
use hamlyn_host::waiter::{Parker, Waiter};
use hamlyn_host::{
    Address, ConnectError, Connected, Connector, Destination, Errno, Event, Given, Host, HostError,
    Peer, Supply, ThreadHandle, Wanted,
};
use hamlyn_ring::ready_bitmap::ReadyBitmap;
use hamlyn_ring::region::{ReceivedRegion, RegionFiles};

pub use driver::SimDriver;
pub use receive_judge::ReceiveJudge;
pub use send_judge::SendJudge;

use crate::link::{SimLink, wire};
use crate::world::{self, clock, kernel, task};
use asking::{expected, shown};
use registry::Found;

/// So many looks in vain without a wait, and a program waits a moment whether it wants to or not.
const LOOKS_PER_MOMENT: u64 = 64;

/// Opens an interface of the running program, with that name or none.
pub fn open(name: Option<&str>, options: ManagerOptions) -> Result<Manager<SimHost>, OpenError> {
    Manager::new(SimHost::open(name)?, options)
}

/// A host of the world. Dropping it ends its links.
pub struct SimHost {
    interface: u32,
    identity: Destination,
    driver: Option<SimDriver>,
}

impl SimHost {
    /// Does something with what this interface offers, if it is open.
    fn offers<T>(&self, act: impl FnOnce(&Offers) -> T) -> Option<T> {
        kernel::with(|kernel| kernel.offers(self.interface).map(act))
    }

    /// The same with what is offered under an item: nothing, if that is no name.
    fn with_offers<T>(&self, item: &str, act: impl FnOnce(&Offers, &Name) -> T) -> Option<T> {
        let item = Name::new(item).ok()?;
        self.offers(|offers| act(offers, &item))
    }

    /// Offers something. Those who wait for an offer look again.
    fn offering<T: Default>(
        &self,
        act: impl FnOnce(&Offers) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        let offered = self.offers(act).unwrap_or_else(|| Ok(T::default()))?;
        kernel::with(|kernel| kernel.wake_expectant());
        Ok(offered)
    }

    /// Counts of answered questions, as on the process host. No other handshakes are counted.
    pub fn rendezvous_counters(&self) -> RendezvousCounters {
        let counters = kernel::with(|kernel| kernel.rendezvous_counters(self.interface));
        counters.unwrap_or_default()
    }

    /// A host for the running program.
    pub fn open(name: Option<&str>) -> Result<Self, HostError> {
        let opened = kernel::with(|kernel| {
            let task = kernel.tasks.running();
            let process = task.and_then(|task| kernel.tasks.process_of(task))?;
            let (interface, known) = kernel.open_interface(process, name)?;
            Some(Self {
                interface,
                identity: known.identity,
                driver: Some(SimDriver::new(interface, Arc::clone(&known.attention))),
            })
        });
        opened.ok_or_else(|| HostError::NameInUse {
            name: name.unwrap_or_default().to_owned(),
            namespace: "sim".to_owned(),
        })
    }
}

/// See [`Connector`].
pub struct SimConnector(u32);

impl SimConnector {
    /// Waits until an address leads to somebody.
    fn find(&self, to: Address<'_>, deadline_ns: u64) -> Result<u32, ConnectError> {
        loop {
            let found = kernel::with(|kernel| {
                let found = kernel.registry.by_address(to);
                if let Found::Nobody = found {
                    kernel.expect_something();
                }
                found
            });
            match found {
                Found::Interface(interface) => return Ok(interface),
                Found::Gone => return Err(ConnectError::Gone { to: shown(to) }),
                Found::Nobody => {
                    self.wait_until(deadline_ns, || ConnectError::Absent { to: shown(to) })?
                }
            }
        }
    }

    /// Waits for something expected. The error if the time is over.
    fn wait_until(
        &self,
        deadline_ns: u64,
        late: impl FnOnce() -> ConnectError,
    ) -> Result<(), ConnectError> {
        match expected(deadline_ns) {
            true => Ok(()),
            false => Err(late()),
        }
    }

    /// The link to somebody.
    fn link_to(
        &self,
        to: Address<'_>,
        deadline_ns: u64,
    ) -> Result<Connected<SimLink>, ConnectError> {
        let peer = self.find(to, deadline_ns)?;
        if peer == self.0 {
            let made = kernel::with(|kernel| kernel.loopback(self.0));
            return match made {
                Some(Ok((peer, link))) => Ok(Connected::New(peer, link)),
                Some(Err(token)) => Ok(Connected::Already { token }),
                None => Err(ConnectError::Gone { to: shown(to) }),
            };
        }
        // There and back, and what both sides do for it.
        let takes = kernel::with(|kernel| {
            let settings = &kernel.settings;
            settings.costs.connect * 2 + settings.far.delay * 2
        });
        world::pause(takes);
        let (is_open, known) = kernel::with(|kernel| {
            let registry = &kernel.registry;
            let is_open = registry.is_open(peer) && registry.is_open(self.0);
            (is_open, registry.token_between(self.0, peer))
        });
        let linked = match known {
            _ if !is_open => None,
            Some(token) => Some(Connected::Already { token }),
            None => wire::link(self.0, peer).map(|(peer, link)| Connected::New(peer, link)),
        };
        linked.ok_or_else(|| match to {
            Address::Name(_) => ConnectError::Absent { to: shown(to) },
            Address::Destination(_) => ConnectError::Gone { to: shown(to) },
        })
    }
}

impl Connector for SimConnector {
    fn ask(&self, wanted: &[Wanted<'_>], deadline_ns: u64) -> Vec<Result<Given, ConnectError>> {
        asking::ask(wanted, deadline_ns)
    }

    fn connect(&self, to: Address<'_>, deadline_ns: u64) -> Result<u64, ConnectError> {
        Ok(match self.link_to(to, deadline_ns)? {
            Connected::New(peer, link) => {
                let token = peer.token;
                kernel::with(|kernel| kernel.send_event(self.0, Event::Linked(peer, link)));
                token
            }
            Connected::Already { token } => token,
        })
    }

    fn fetch(
        &self,
        from: Destination,
        secret: u64,
        deadline_ns: u64,
    ) -> Result<ReceivedRegion, ConnectError> {
        let to = Address::Destination(from);
        let owner = self.find(to, deadline_ns)?;
        kernel::with(|kernel| kernel.fetch_region(owner, self.0, secret))
            .ok_or_else(|| ConnectError::NotShared { to: shown(to) })
    }
}

impl std::fmt::Debug for SimHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimHost")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl Drop for SimHost {
    fn drop(&mut self) {
        let interface = self.interface;
        kernel::with_if_any(|kernel| {
            kernel.close_interface(interface, hamlyn_host::LossCause::Closed);
        });
    }
}

impl Host for SimHost {
    type Sharing = hamlyn_host::sharing::OneThread;
    type Link = SimLink;
    type Driver = SimDriver;
    type Connector = SimConnector;
    type ReceiveObserver = ReceiveJudge;
    type SendObserver = SendJudge;

    fn receive_observer(&self) -> ReceiveJudge {
        ReceiveJudge::new()
    }

    fn send_observer(&self) -> SendJudge {
        SendJudge::default()
    }

    const LETS_OTHERS: Option<fn()> = Some(world::let_others);

    fn connector(&self) -> SimConnector {
        SimConnector(self.interface)
    }

    fn identity(&self) -> Destination {
        self.identity
    }

    fn now_ns(&self) -> u64 {
        clock::clock_ns()
    }

    fn random_bits(&mut self) -> Result<u64, HostError> {
        Ok(kernel::with(|kernel| kernel.random.bits()))
    }

    fn share(&mut self, files: Arc<RegionFiles>, with: Option<&Peer>) -> Result<u64, HostError> {
        let holder = with.map(|peer| peer.destination.interface);
        Ok(kernel::with(|kernel| {
            kernel.share_region(self.interface, holder, files)
        }))
    }

    fn withdraw_region(&mut self, secret: u64) {
        kernel::with(|kernel| kernel.withdraw_region(self.interface, secret));
    }

    fn connect(
        &mut self,
        to: Address<'_>,
        deadline_ns: u64,
    ) -> Result<Connected<SimLink>, ConnectError> {
        self.connector().link_to(to, deadline_ns)
    }

    fn offer(&mut self, item: &str, supply: Supply, bytes: &[u8]) -> Result<(), HostError> {
        let item = Name::checked(item)?;
        self.offering(|offers| offers.offer(item, supply, bytes))
    }

    fn offer_place(&mut self, item: &str, most: u32, bytes: &[u8]) -> Result<u64, HostError> {
        let item = Name::checked(item)?;
        self.offering(|offers| offers.offer_place(item, most, bytes))
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
        // Links that nobody was told of end where the kernel is not in use.
        let mut untold = Vec::new();
        kernel::with_if_any(|kernel| untold = kernel.disconnect(self.interface, token));
        drop(untold);
    }

    fn take_driver(&mut self) -> Option<SimDriver> {
        self.driver.take()
    }

    fn new_waiter(&mut self) -> Result<Waiter, HostError> {
        Ok(Waiter::elsewhere(Box::new(TaskParker::default())))
    }

    fn spawn(
        &mut self,
        name: &str,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Box<dyn ThreadHandle>, HostError> {
        let task = world::begin_task(name, body).ok_or(HostError::System {
            call: "spawn",
            errno: Errno(0),
        })?;
        Ok(Box::new(TaskHandle(task)))
    }

    fn ready_bitmap(&mut self) -> Option<ReadyBitmap> {
        wire::ready_bitmap(self.interface)
    }

    fn relax(&mut self, _: bool) {
        relax(self.interface);
    }

    fn passes(point: Point) {
        kernel::pass(point);
    }

    fn looks(&mut self) {
        kernel::pass(Point::Looked);
        let waits = kernel::with(|kernel| {
            kernel.charge(kernel.settings.costs.look);
            kernel.tasks.look() >= LOOKS_PER_MOMENT
        });
        if waits {
            self.relax(false);
        }
    }

    fn pass_barrier(&mut self) -> Option<u64> {
        kernel::with(|kernel| kernel.channels.pass_barrier(self.interface));
        None
    }

    fn spin_ns(&self) -> u64 {
        kernel::with(|kernel| kernel.settings.spin.as_ns())
    }
}

/// The running task waits a moment, or until something comes to the interface.
fn relax(interface: u32) {
    let until = kernel::with(|kernel| kernel.relax(interface));
    task::wait(Some(until));
    kernel::with(|kernel| kernel.end_relax(interface));
}

/// The parker of a task that waits for another task.
#[derive(Default)]
struct TaskParker(std::sync::Mutex<Option<u32>>);

impl TaskParker {
    fn set(&self, task: Option<u32>) -> Option<u32> {
        let mut sleeper = self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        std::mem::replace(&mut *sleeper, task)
    }
}

impl Parker for TaskParker {
    fn sleep(&self, deadline_ns: Option<u64>) {
        self.set(kernel::with(|kernel| kernel.tasks.running()));
        task::wait(deadline_ns.map(clock::time_of));
        // Whoever wakes later finds nobody: that is to end no other wait of this task.
        self.set(None);
        kernel::pass(Point::Woken);
    }

    fn wake(&self) {
        if let Some(task) = self.set(None) {
            kernel::with(|kernel| kernel.wake(task));
        }
    }
}

/// The handle of a task beside a program.
struct TaskHandle(u32);

impl ThreadHandle for TaskHandle {
    fn unpark(&self) {
        kernel::with_if_any(|kernel| kernel.unpark(self.0));
    }

    fn join(self: Box<Self>) {
        task::join(self.0);
    }
}
