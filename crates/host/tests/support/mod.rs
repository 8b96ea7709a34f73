//! What the tests of the process host have in common.

#![allow(dead_code, reason = "each test binary uses its part")]

use hamlyn_engine::key::Key;
use hamlyn_engine::memory::{Part, Payload};
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_host::process::{Options, ProcessDriver, ProcessHost};
use hamlyn_host::{
    Address, ConnectError, Connected, Driver, Event, Host, HostError, LossCause, Peer,
};
use hamlyn_link::either::EitherLink;
use hamlyn_link::pair::PairLink;
use hamlyn_link::{ReceiveEnd, TransmitEnd};
use hamlyn_ring::area::Area;
pub(crate) mod place;
pub(crate) mod raw;

use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// How long a test waits for what must happen; far longer than it takes.
pub(crate) const TIMEOUT_NS: u64 = 20_000_000_000;

/// A host in the hands of somebody who also drives.
pub(crate) struct Owner {
    driver: ProcessDriver,
    host: ProcessHost,
}

impl Owner {
    pub(crate) fn open(options: Options) -> Result<Self, HostError> {
        let mut host = ProcessHost::open(options)?;
        let driver = host.take_driver().expect("nobody drives it yet");
        assert!(host.take_driver().is_none(), "one drives it");
        Ok(Self { driver, host })
    }

    pub(crate) fn connect(
        &mut self,
        to: Address<'_>,
        deadline_ns: u64,
    ) -> Result<Connected<PairLink>, ConnectError> {
        Ok(match self.host.connect(to, deadline_ns)? {
            Connected::New(peer, link) => Connected::New(peer, near(link)),
            Connected::Already { token } => Connected::Already { token },
        })
    }

    pub(crate) fn ask(
        &mut self,
        to: Address<'_>,
        item: &str,
        deadline_ns: u64,
    ) -> Result<Vec<u8>, ConnectError> {
        self.host.ask(to, item, deadline_ns)
    }

    pub(crate) fn attention(&self) -> bool {
        self.driver.attention().load(Ordering::Relaxed)
    }

    pub(crate) fn next_event(&mut self) -> Option<Event<PairLink>> {
        Some(match self.driver.next_event()? {
            Event::Linked(peer, link) => Event::Linked(peer, near(link)),
            Event::Lost { token, cause } => {
                // As the library does once it has taken all that came.
                self.disconnect(token);
                Event::Lost { token, cause }
            }
        })
    }

    pub(crate) fn prepare_sleep(&mut self) {
        self.driver.prepare_sleep();
    }

    pub(crate) fn pass_barrier(&mut self) {
        self.driver.pass_barrier();
    }

    pub(crate) fn sleep(&mut self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        self.driver.sleep(deadline_ns)
    }

    pub(crate) fn end_sleep(&mut self) {
        self.driver.end_sleep();
    }

    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.driver
            .descriptor()
            .map(|descriptor| descriptor.as_fd())
    }
}

impl Deref for Owner {
    type Target = ProcessHost;

    fn deref(&self) -> &ProcessHost {
        &self.host
    }
}

impl DerefMut for Owner {
    fn deref_mut(&mut self) -> &mut ProcessHost {
        &mut self.host
    }
}

/// A namespace that no other test uses.
pub(crate) fn namespace() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("test-{}-{number}", std::process::id())
}

pub(crate) fn named(namespace: &str, name: &str) -> Owner {
    Owner::open(Options::named(name).in_namespace(namespace)).unwrap()
}

pub(crate) fn unnamed(namespace: &str) -> Owner {
    Owner::open(Options::default().in_namespace(namespace)).unwrap()
}

pub(crate) fn after_ns(host: &Owner, span_ns: u64) -> u64 {
    host.now_ns() + span_ns
}

/// Sleeps until `look` finds something.
pub(crate) fn wait_for<R>(host: &mut Owner, mut look: impl FnMut(&mut Owner) -> Option<R>) -> R {
    let deadline_ns = after_ns(host, TIMEOUT_NS);
    loop {
        host.prepare_sleep();
        if let Some(found) = look(host) {
            host.end_sleep();
            return found;
        }
        assert!(host.now_ns() < deadline_ns, "nothing came");
        if !host.attention() {
            host.sleep(Some(deadline_ns)).unwrap();
        }
        host.end_sleep();
    }
}

/// Sleeps until something comes over that link.
pub(crate) fn packet(host: &mut Owner, link: &mut PairLink) -> Vec<u8> {
    let deadline_ns = after_ns(host, TIMEOUT_NS);
    loop {
        host.prepare_sleep();
        link.receive.announce_sleep();
        host.pass_barrier();
        if let Some(found) = try_receive(link) {
            host.end_sleep();
            link.receive.suppress_events();
            return found;
        }
        assert!(host.now_ns() < deadline_ns, "nothing came");
        if !host.attention() {
            host.sleep(Some(deadline_ns)).unwrap();
        }
        host.end_sleep();
    }
}

pub(crate) fn event(host: &mut Owner) -> Event<PairLink> {
    wait_for(host, |host| host.next_event())
}

pub(crate) fn linked(host: &mut Owner) -> (Peer, PairLink) {
    match event(host) {
        Event::Linked(peer, link) => (peer, link),
        Event::Lost { token, cause } => panic!("link {token} is lost: {cause}"),
    }
}

pub(crate) fn lost(host: &mut Owner) -> (u64, LossCause) {
    match event(host) {
        Event::Lost { token, cause } => (token, cause),
        Event::Linked(peer, _) => panic!("unexpected link: {peer:?}"),
    }
}

pub(crate) fn connect(host: &mut Owner, to: Address<'_>) -> (Peer, PairLink) {
    let deadline_ns = after_ns(host, TIMEOUT_NS);
    match host.connect(to, deadline_ns).unwrap() {
        Connected::New(peer, link) => (peer, link),
        Connected::Already { token } => panic!("linked already: {token}"),
    }
}

/// Both ends of a new link.
pub(crate) fn pair(from: &mut Owner, to: &mut Owner) -> ((Peer, PairLink), (Peer, PairLink)) {
    let destination = to.identity();
    let here = connect(from, Address::Destination(destination));
    (here, linked(to))
}

pub(crate) fn try_send(link: &mut PairLink, bytes: &[u8]) -> bool {
    let header = Header {
        slot: SlotName::new(1, 2),
        metadata_index: 3,
        key: Key::from_bits(4),
        offset: 5,
        length_bytes: bytes.len() as u32,
        word: 0,
        metadata_length_bytes: 0,
        flags: Flags::NONE,
        kind: Kind::WRITE,
    };
    link.transmit
        .try_send(&header, &[], &[Part::Bytes(bytes)])
        .is_ok()
}

pub(crate) fn try_receive(link: &mut PairLink) -> Option<Vec<u8>> {
    link.receive
        .receive(|header, payload| {
            let area = Area::new(1 << 16).unwrap();
            payload.deposit(&area, 0).unwrap();
            let mut bytes = vec![0; header.length_bytes as usize];
            area.read_at(0, &mut bytes).unwrap();
            bytes
        })
        .unwrap()
}

/// A packet each way.
pub(crate) fn exchange(a: &mut PairLink, b: &mut PairLink) {
    for bytes in [b"sixteen bytes ok".as_slice(), &[7; 5000], b"", b"x"] {
        assert!(try_send(a, bytes));
        assert_eq!(try_receive(b).as_deref(), Some(bytes));
        assert!(try_send(b, bytes));
        assert_eq!(try_receive(a).as_deref(), Some(bytes));
        a.receive.return_credit();
        b.receive.return_credit();
    }
}

/// A link to an interface of this host, as all are in these tests.
fn near(link: EitherLink) -> PairLink {
    match link {
        EitherLink::Pair(link) => link,
        EitherLink::Udp(_) => panic!("nobody is on the network here"),
    }
}
