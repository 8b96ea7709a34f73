//! Hosts: what gives an interface its clock, memory, links, waiting and liveness.
//!
//! [`Host`] is the one contract through which the library sees its
//! surroundings. It is resolved when a program is compiled; no call of it
//! stands on the path of a message, but for one plain load ([`Driver::attention`]).
//! [`process`] is the host that is embedded in an application.

#![forbid(unsafe_code)]

mod error;
pub mod network;
pub mod offers;
mod places;
pub mod process;
pub mod question;
pub mod sharing;
pub mod waiter;
mod waker;

pub use error::{ConnectError, Errno, HostError, RefusedBecause, Silence};

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::waiter::Waiter;
use hamlyn_engine::point::Point;
use hamlyn_engine::receive_observer::ReceiveObserver;
use hamlyn_engine::send_observer::SendObserver;
use hamlyn_engine::transport::CloseReason;
use hamlyn_link::Link;
use hamlyn_ring::area::Area;
use hamlyn_ring::ready_bitmap::ReadyBitmap;
use hamlyn_ring::region::{ReceivedRegion, RegionFiles};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Where an interface is: what a ticket needs in order to be usable anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Destination {
    /// Which host; 0 is the one at hand.
    pub node: u32,
    /// The user that the interface runs as. A link to another user's interface that
    /// claims the same identity is not used for this destination.
    pub user: u32,
    /// Random, new for every interface that is opened; so it tells one
    /// incarnation of a program from the next.
    pub interface: u64,
}

impl Destination {
    /// Whether both are the same interface: a host at hand may go by its number, too.
    pub fn is_same(&self, other: &Self) -> bool {
        let same_node = self.node == other.node || self.node == 0 || other.node == 0;
        self.interface == other.interface && self.user == other.user && same_node
    }
}

/// What to connect to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Address<'a> {
    /// A published name, in the host's namespace.
    Name(&'a str),
    /// The destination of a ticket.
    Destination(Destination),
}

/// The other end of a link, as the operating system vouches for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Which link of this host this is. Never used twice.
    pub token: u64,
    /// Who it is. `user` comes from the kernel, not from the peer.
    pub destination: Destination,
    /// The peer's group, from the kernel.
    pub group: u32,
    /// The peer's process, from the kernel; 0 if it is not visible here.
    pub process: u32,
    /// The name under which the peer says that it can be reached, if any.
    pub name: Option<String>,
}

/// Why a link ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LossCause {
    /// The peer's process ended, by itself or killed.
    #[error("its process ended")]
    Died,
    /// The peer closed its interface.
    #[error("it closed its interface")]
    Closed,
    /// It is on another host, and answered nothing, however often it was asked: it, its host or the
    /// way to it is gone.
    #[error("neither it nor its host answers")]
    NoAnswer,
    /// It is on another host, and answered, but would take nothing for too long.
    #[error("it answers, but takes nothing")]
    NoProgress,
}

impl LossCause {
    /// What the end of an association means. Nothing if this side closed it.
    pub fn of(reason: CloseReason) -> Option<Self> {
        Some(match reason {
            CloseReason::Closed => return None,
            CloseReason::ClosedByPeer => Self::Closed,
            CloseReason::NoProgress => Self::NoProgress,
            CloseReason::PeerDead | CloseReason::PeerRestarted => Self::Died,
            _ => Self::NoAnswer,
        })
    }
}

/// What a host has to tell its interface.
pub enum Event<L> {
    /// A peer connected to this interface.
    Linked(Peer, L),
    /// A peer is gone. What it sent before is still in the link.
    Lost {
        /// [`Peer::token`].
        token: u64,
        /// Why.
        cause: LossCause,
    },
}

/// Result of [`Host::connect`].
pub enum Connected<L> {
    /// A new link.
    New(Peer, L),
    /// There is a link to that peer already (or one is about to be announced
    /// by [`Driver::next_event`]): the peer with this token.
    Already {
        /// [`Peer::token`].
        token: u64,
    },
}

/// How many askers an offer is given to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Supply {
    /// To the first asker only.
    Once,
    /// To every asker, for as long as it is offered.
    Always,
    /// To every asker while no offer of the same name that is given once is left.
    Afterwards,
}

/// Finds other interfaces and connects to them, in a thread of its own if need be: while it waits,
/// everything else of its host can be used.
pub trait Connector: Send + 'static {
    /// Asks interfaces for what they offer under items, as [`Host::ask`] does for one: the
    /// outcomes, in that order. All items of one interface go in one question, or in as few as
    /// they fit ([`question::Question`]); interfaces are asked in turn. Returns when each item was
    /// given or refused for good, and at the deadline.
    fn ask(&self, wanted: &[Wanted<'_>], deadline_ns: u64) -> Vec<Result<Given, ConnectError>>;

    /// As [`Host::connect`], but the interface is told of a new link as of one that others make
    /// ([`Event::Linked`]). Returns [`Peer::token`].
    fn connect(&self, to: Address<'_>, deadline_ns: u64) -> Result<u64, ConnectError>;

    /// Fetches a region that another interface shares with this one. Nothing of it is judged yet.
    /// Blocks until `deadline_ns`.
    fn fetch(
        &self,
        from: Destination,
        secret: u64,
        deadline_ns: u64,
    ) -> Result<ReceivedRegion, ConnectError>;
}

/// An item that is to be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted<'a> {
    /// The interface to ask.
    pub to: Address<'a>,
    /// The item.
    pub item: &'a str,
}

/// An offer that was given to an asker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// The offer.
    pub bytes: Vec<u8>,
    /// When the question left, by [`Host::now_ns`]: the offer was given out no sooner.
    pub asked_ns: u64,
}

/// The contract between an interface and its surroundings.
pub trait Host: std::fmt::Debug + 'static {
    /// What moves packets here.
    type Link: Link;
    /// How the end points of a manager on this host share it.
    type Sharing: sharing::Sharing;
    /// See [`Driver`].
    type Driver: Driver<Link = Self::Link> + Send + 'static;
    /// See [`Connector`].
    type Connector: Connector;
    /// Who watches an interface on it receive: nobody, but in the simulator.
    type ReceiveObserver: ReceiveObserver<Area> + Send + 'static;
    /// Who watches it send.
    type SendObserver: SendObserver<Area> + Send + 'static;

    /// How a thread waits for what another of its interface holds. None: as the system has it. In
    /// the simulator, where all programs are one thread's, a call that lets the others go on. It
    /// does nothing in a thread that unwinds, as a killed process does: such a thread waits for no
    /// other, which may have been killed with it, and have ended with what it held.
    const LETS_OTHERS: Option<fn()> = None;

    /// What connects for this host.
    fn connector(&self) -> Self::Connector;

    /// Where tickets to this interface point.
    fn identity(&self) -> Destination;

    /// Who watches the interface on this host receive.
    fn receive_observer(&self) -> Self::ReceiveObserver;

    /// Who watches it send.
    fn send_observer(&self) -> Self::SendObserver;

    /// Time since an arbitrary start, in nanoseconds; never goes back.
    fn now_ns(&self) -> u64;

    /// 64 random bits. For keys; may make a system call.
    fn random_bits(&mut self) -> Result<u64, HostError>;

    /// Holds a region ready to be fetched with the number that is returned, which is random: once,
    /// by that peer; or without one by all peers that are linked to this interface, as often as
    /// they ask, until it is withdrawn.
    fn share(&mut self, files: Arc<RegionFiles>, with: Option<&Peer>) -> Result<u64, HostError>;

    /// A region cannot be fetched any more. Peers that have fetched it keep it.
    fn withdraw_region(&mut self, secret: u64);

    /// Connects to another interface, or to itself. Blocks until `deadline_ns` (by
    /// [`Host::now_ns`]).
    fn connect(
        &mut self,
        to: Address<'_>,
        deadline_ns: u64,
    ) -> Result<Connected<Self::Link>, ConnectError>;

    /// Offers 1 to 1024 bytes, for example a ticket or a seed, to each peer that asks for `item` (1
    /// to 64 letters, digits, dots, underscores, hyphens and slashes) and may be linked to this
    /// interface.
    ///
    /// What is offered once queues up, and goes to one asker each in that order, before what is
    /// always offered under the same name. What is always offered takes the place of all that was
    /// offered under the name before; what is offered afterwards, only of what was offered so
    /// before.
    ///
    /// An offer of [`Supply::Once`] is given to one asker only. It stays offered if an
    /// asker ends or gives up before it is sent; it is lost with an asker that
    /// ends between that and the return of its [`Host::ask`].
    ///
    /// Offers are private memory of this interface, and end with it. There may be 4096 of them.
    fn offer(&mut self, item: &str, supply: Supply, bytes: &[u8]) -> Result<(), HostError>;

    /// Offers one of `most` places under `item`, as [`Supply::Once`] does, and returns its number.
    /// The place counts as taken by its asker until it is returned. A program other than this one
    /// gets places as long as it has less than twice of what it leaves to others, and another user,
    /// or another host, as long as it has less than what is left. An asker in vain is told whether
    /// all are taken, or its share is.
    fn offer_place(&mut self, item: &str, most: u32, bytes: &[u8]) -> Result<u64, HostError>;

    /// A place under `item` is free again, or is taken back. [`Host::withdraw`] does that for all
    /// of them.
    fn return_place(&mut self, item: &str, place: u64);

    /// There is no memory for another place under `item`: whoever asks in vain is told, until one
    /// is offered.
    fn run_short(&mut self, item: &str);

    /// How many offers under `item` no asker was given yet.
    fn offered(&self, item: &str) -> usize;

    /// Takes back all offers under `item`. Askers that were given one keep it.
    fn withdraw(&mut self, item: &str);

    /// Asks another interface, or this one, for what it offers under `item`. Works
    /// whether or not there is a link to it, and makes none. Access lists count in both directions.
    ///
    /// Blocks until `deadline_ns` while no interface has the name or nothing is offered. A deadline
    /// that has passed leaves time only for this interface itself to answer.
    fn ask(
        &mut self,
        to: Address<'_>,
        item: &str,
        deadline_ns: u64,
    ) -> Result<Vec<u8>, ConnectError> {
        let asked = self.connector().ask(&[Wanted { to, item }], deadline_ns);
        // One for each that is wanted.
        let given = asked.into_iter().next();
        given.map_or(Ok(Vec::new()), |given| Ok(given?.bytes))
    }

    /// Ends a link from this side. The link itself must be dropped by the caller. Events of the
    /// link that were not yet fetched are dropped. Called for each link once the application knows
    /// that it ended, after [`Event::Lost`] too: until then it counts against the limit of links.
    fn disconnect(&mut self, token: u64);

    /// The driver of the interface. Only the first call returns it.
    fn take_driver(&mut self) -> Option<Self::Driver>;

    /// A waiter of this process, for a thread that waits for the thread that drives.
    fn new_waiter(&mut self) -> Result<Waiter, HostError>;

    /// Runs `body` beside this program: a thread, or what stands for one here.
    fn spawn(
        &mut self,
        name: &str,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Box<dyn ThreadHandle>, HostError>;

    /// The ready bitmap of the interface; to be taken once. Without it, links that are looked at
    /// seldom are found only by looking.
    fn ready_bitmap(&mut self) -> Option<ReadyBitmap>;

    /// Called in loops that wait without sleeping: pauses the processor, or with `yields` lets
    /// others have it, if there are any. In the simulator it lets time pass.
    fn relax(&mut self, yields: bool);

    /// Called at the beginning of each look at the links that is not the shortest, and of each
    /// attempt to send that is not. Nothing; but in the simulator, where time passes only while
    /// programs wait, one that looks again and again without a call that blocks waits a moment
    /// here.
    #[inline(always)]
    fn looks(&mut self) {}

    /// The library passes that point of an application's work with its interface. Nothing, unless
    /// somebody listens.
    #[inline(always)]
    fn passes(point: Point) {
        let _ = point;
    }

    /// [`Driver::pass_barrier`], for the application's thread where a network processor has the
    /// driver: what this thread announced on its sending ends is seen as well.
    fn pass_barrier(&mut self) -> Option<u64>;

    /// How long a blocking call polls at most before it sleeps, in nanoseconds.
    fn spin_ns(&self) -> u64;
}

/// The part of a host for the thread that drives the interface: the application's thread, or a
/// network processor (ARCHITECTURE.md, strategies).
pub trait Driver {
    /// What moves packets here.
    type Link: Link;

    /// Set when [`Driver::next_event`] has something.
    fn attention(&self) -> &Arc<AtomicBool>;

    /// The next event, if any. Does not block.
    fn next_event(&mut self) -> Option<Event<Self::Link>>;

    /// Begins a sleep: a wake after this ends the sleep, or prevents it. To be called before the
    /// sleep is announced on the links ([`hamlyn_link::ReceiveEnd::announce_sleep`]), since a peer
    /// wakes once for each announcement, and at any time after it. In order: this; the
    /// announcements; [`Driver::pass_barrier`]; one more look at the links and at
    /// [`Driver::attention`]; [`Driver::sleep`], only if there is nothing; [`Driver::end_sleep`],
    /// in any case.
    fn prepare_sleep(&mut self);

    /// All peers see what was announced before this, or what they sent is seen here after it. When
    /// to wake at the latest, if a peer may not see what was announced.
    fn pass_barrier(&mut self) -> Option<u64>;

    /// Sleeps until a peer wakes it, an event comes, the waker is called, or `deadline_ns` passes.
    /// May wake early.
    fn sleep(&mut self, deadline_ns: Option<u64>) -> Result<(), HostError>;

    /// The program is about to sleep at [`Driver::descriptor`], instead of in [`Driver::sleep`]:
    /// sees to it that all that would end such a sleep makes the descriptor readable. When to wake
    /// at the latest.
    fn sleep_elsewhere(&mut self) -> Option<u64> {
        None
    }

    /// Ends what [`Driver::prepare_sleep`] began.
    fn end_sleep(&mut self);

    /// Lets another thread end a sleep, or make the next one short.
    fn waker(&self) -> Box<dyn Fn() + Send + Sync>;

    /// The host's clock: [`Host::now_ns`].
    fn now_ns(&self) -> u64;

    /// A descriptor that becomes readable when a peer wakes us or an event comes after
    /// [`Driver::prepare_sleep`], and stays so until that is called again. None in a simulator.
    fn descriptor(&self) -> Option<&Arc<OwnedFd>>;

    /// Takes the rings of peers that are there, so that later ones make the doorbells readable
    /// anew. To be called before a program announces that it is to be rung for while it computes.
    /// Does not block, allocate or free.
    fn take_rings(&mut self) {}

    /// Shows each descriptor at which a peer of this host rings for a program that does not sleep
    /// in [`Driver::sleep`]. None of them where nobody rings at a descriptor. They are this
    /// host's: nothing is to be read from them.
    fn each_doorbell(&self, act: &mut dyn FnMut(BorrowedFd<'_>)) {
        let _ = act;
    }

    /// Called by a [`ThreadHandle`] that drives: leaves everything alone for so long, or until
    /// [`ThreadHandle::unpark`]. For no time at all, between looks that find nothing, only the
    /// simulator's time passes.
    fn park(&mut self, span_ns: u64);
}

/// What [`Host::spawn`] runs, in its owner's hands.
pub trait ThreadHandle: Send {
    /// Ends its [`Driver::park`], or the next one.
    fn unpark(&self);

    /// Waits until it has ended.
    fn join(self: Box<Self>);
}
