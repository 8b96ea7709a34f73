//! Opening a manager in this process, with no daemon and no configuration, and rendezvous in one
//! step: an end point is bound to an item of its manager, and others connect to it as `name/item`,
//! or `host/name/item` across hosts (`Hamlyn 6.3`).
//!
//! Underneath, what a sender needs (a ticket, a seed) is offered under the item and asked for;
//! [`Interface::offer`] and [`Manager::ask`] do that for programs that hand out more than one
//! ticket, or to chosen peers only.
//!
//! [`Interface::offer`]: crate::Interface::offer

use hamlyn_engine::counting::Counting;
use hamlyn_host::Host;
use hamlyn_host::process::{Options, ProcessHost};
use hamlyn_host::sharing::AnyThread;

use crate::error::{ConnectError, OpenError};

use crate::item::{EndPoint, Found, ItemHeader, Protocol, TypeName};
use crate::manager::{Manager, ManagerOptions};
use crate::stream::StreamOptions;
use crate::wait::Wait;
use crate::{datagram, group, loans, mailbox, service, stream, tagged_write};

const DATAGRAM: ItemHeader = ItemHeader::new(Protocol::Datagram, TypeName::BYTES);
const STREAM: ItemHeader = ItemHeader::new(Protocol::Stream, TypeName::BYTES);
const LOANS: ItemHeader = ItemHeader::new(Protocol::Loans, TypeName::BYTES);
const SERVICE: ItemHeader = ItemHeader::new(Protocol::Service, TypeName::BYTES);

/// A manager whose interface others can connect to by `name`.
pub fn open(name: &str) -> Result<Manager<ProcessHost>, OpenError> {
    open_with(Options::named(name), ManagerOptions::default())
}

/// A manager whose interface others reach by its tickets only.
pub fn open_unnamed() -> Result<Manager<ProcessHost>, OpenError> {
    open_with(Options::default(), ManagerOptions::default())
}

/// A manager with the given settings.
pub fn open_with(
    host: Options,
    manager: ManagerOptions,
) -> Result<Manager<ProcessHost>, OpenError> {
    Manager::new(ProcessHost::open(host)?, manager)
}

/// As [`open_with`], for a manager and end points that several threads use, one at a time. Each
/// call takes a lock; a call that waits lets others have it meanwhile. Datagrams, tagged writes,
/// mail, messages of groups and small records of streams that fit a packet are sent under a lock of
/// their own: a thread sends them while another one has the manager.
pub fn open_shared(
    host: Options,
    manager: ManagerOptions,
) -> Result<Manager<ProcessHost<AnyThread>>, OpenError> {
    Manager::new(ProcessHost::open_shared(host)?, manager)
}

/// Binding end points, and connecting to them.
///
/// An item has 1 to 64 letters, digits, dots, underscores and hyphens. An end point that is dropped
/// is not found any more. Binding allocates and does not block. Connecting allocates, and blocks
/// for as long as `wait` says while no interface has the name or nothing is bound to the item, so
/// both programs may start in any order; [`Wait::Poll`] leaves others no time to answer. While a
/// thread connects, the other threads of a shared manager use it.
///
/// A program that connects to many end points looks them up together first
/// ([`Manager::look_up`]), and connects to each that was found.
impl<H: Host> Manager<H> {
    /// Looks up many end points, by their addresses: for each, in that order, what was found, or
    /// why nothing was. All end points of one interface take one question (a handshake) instead of
    /// one each, and connecting to what was found takes none.
    ///
    /// One that cannot be had fails no other. Blocks for as long as `wait` says, while one of the
    /// interfaces or items is not there yet, and asks for those again; nothing is received
    /// meanwhile, but other threads use the manager. Interfaces are asked in turn, and one that
    /// does not answer takes no more than a share of the time. Allocates.
    ///
    /// There may be any number of addresses, of any protocols. A question has 64 items at most, or
    /// as many as there is room for: between hosts 15 of the longest, and about 15 tickets in an
    /// answer. The library asks several questions for more, and for an address that is there twice.
    ///
    /// # Errors
    ///
    /// Each as when one connects to that address: it is none, nobody has the name, nothing was
    /// bound to the item before the time was over, or its owner keeps its last places for others.
    /// Its protocol and type are checked when something connects.
    ///
    /// ```
    /// use hamlyn::{ConnectError, Wait};
    ///
    /// # let there = format!("there-{}", std::process::id());
    /// # let bob = hamlyn::open(&there)?;
    /// # let _inbox = bob.bind_mailbox("inbox", Default::default())?;
    /// # let _heaps = [0, 1].map(|at| bob.bind_tagged_write(&format!("heap{at}"), 64, 4).unwrap());
    /// # let here = hamlyn::open_unnamed()?;
    /// let addresses = ["inbox", "heap0", "heap1"].map(|item| format!("{there}/{item}"));
    /// let mut found = here.look_up(&addresses, Wait::millis(10_000)).into_iter();
    /// let inbox = here.connect_mailbox(found.next().unwrap()?, Wait::millis(10_000))?;
    /// let heaps: Vec<_> = found
    ///     .map(|found| here.connect_tagged_write(found?, Wait::millis(10_000)))
    ///     .collect::<Result<_, ConnectError>>()?;
    /// # let _ = (inbox, heaps);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn look_up(
        &self,
        addresses: &[impl AsRef<str>],
        wait: Wait,
    ) -> Vec<Result<Found, ConnectError>> {
        match self.enter() {
            Ok(mut session) => session.look_up(addresses, wait),
            Err(forked) => addresses.iter().map(|_| Err(forked.into())).collect(),
        }
    }

    /// A receiver for datagrams of up to `buffer_bytes`, 1 byte to 2 GiB, ready for the first. Any
    /// number of senders may connect.
    pub fn bind_datagram(
        &self,
        item: &str,
        buffer_bytes: u32,
    ) -> Result<datagram::Receiver<H>, OpenError> {
        datagram::Receiver::bind(self, item, buffer_bytes, DATAGRAM)
    }

    /// Connects to a receiver of datagrams.
    pub fn connect_datagram<'a>(
        &self,
        to: impl Into<EndPoint<'a>>,
        wait: Wait,
    ) -> Result<datagram::Sender<H>, ConnectError> {
        datagram::Sender::connect(self, to.into(), DATAGRAM, wait)
    }

    /// The receiving end of a stream, for the one sender that connects first; others get
    /// [`ConnectError::Taken`].
    pub fn bind_stream(
        &self,
        item: &str,
        options: StreamOptions,
    ) -> Result<stream::Receiver<H>, OpenError> {
        stream::Receiver::bind(self, item, options, STREAM)
    }

    /// Connects to a stream, as its only sender. An attempt that had no time keeps the stream for
    /// the next one of this manager.
    pub fn connect_stream<'a>(
        &self,
        to: impl Into<EndPoint<'a>>,
        wait: Wait,
    ) -> Result<stream::Sender<H>, ConnectError> {
        stream::Sender::connect(self, to.into(), STREAM, wait)
    }

    /// A mailbox for messages of any number of senders.
    pub fn bind_mailbox(
        &self,
        item: &str,
        options: mailbox::MailboxOptions,
    ) -> Result<mailbox::Receiver<H>, OpenError> {
        mailbox::Receiver::bind(self, item, options)
    }

    /// Connects to a mailbox.
    pub fn connect_mailbox<'a>(
        &self,
        to: impl Into<EndPoint<'a>>,
        wait: Wait,
    ) -> Result<mailbox::Sender<H>, ConnectError> {
        mailbox::Sender::connect(self, to.into(), wait)
    }

    /// An area of that many bytes which any number of senders write, and room for that many tags
    /// that have not been taken.
    pub fn bind_tagged_write(
        &self,
        item: &str,
        area_bytes: u64,
        tags: usize,
    ) -> Result<tagged_write::Receiver<H>, OpenError> {
        tagged_write::Receiver::bind(self, item, area_bytes, tags)
    }

    /// Connects to an area that is written with tags.
    pub fn connect_tagged_write<'a>(
        &self,
        to: impl Into<EndPoint<'a>>,
        wait: Wait,
    ) -> Result<tagged_write::Sender<H>, ConnectError> {
        tagged_write::Sender::connect(self, to.into(), wait)
    }

    /// A group with a place of that size, 0 to 2 GiB. Its members are found when
    /// [`group::Receiver::begin_shared`] offers them.
    pub fn bind_group(
        &self,
        item: &str,
        place_bytes: u32,
        counting: Counting,
    ) -> Result<group::Receiver<H>, OpenError> {
        group::Receiver::bind(self, item, place_bytes, counting)
    }

    /// A service that answers calls of many clients.
    pub fn bind_service(
        &self,
        item: &str,
        options: service::ServiceOptions,
    ) -> Result<service::Service<H>, OpenError> {
        service::Service::bind(self, item, options, SERVICE)
    }

    /// Connects to a service.
    pub fn connect_service<'a>(
        &self,
        to: impl Into<EndPoint<'a>>,
        wait: Wait,
    ) -> Result<service::Client<H>, ConnectError> {
        service::Client::connect(self, to.into(), SERVICE, wait)
    }

    /// A publisher of messages that its readers read where it wrote them.
    pub fn bind_publisher(
        &self,
        item: &str,
        options: loans::PublisherOptions,
    ) -> Result<loans::Publisher<H>, OpenError> {
        loans::Publisher::bind(self, item, options, LOANS)
    }

    /// Connects to a publisher, as one of its readers. It gives the reader messages from its next
    /// call on.
    pub fn connect_subscriber<'a>(
        &self,
        to: impl Into<EndPoint<'a>>,
        wait: Wait,
    ) -> Result<loans::Subscriber<H>, ConnectError> {
        loans::Subscriber::connect(self, to.into(), LOANS, wait)
    }

    /// Connects to a group as the next of its members.
    pub fn connect_group<'a>(
        &self,
        to: impl Into<EndPoint<'a>>,
        wait: Wait,
    ) -> Result<group::Sender<H>, ConnectError> {
        group::Sender::connect(self, to.into(), wait)
    }
}
