//! What the tests of the process host have in common.

#![allow(dead_code, reason = "each test binary uses its part")]

use hamlyn_engine::key::Key;
use hamlyn_engine::memory::{Part, Payload};
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_host::process::{Options, ProcessHost};
use hamlyn_host::{Address, Connected, Event, Host, LossCause, Peer};
use hamlyn_link::Link;
use hamlyn_link::pair::PairLink;
use hamlyn_ring::area::Area;
pub(crate) mod raw;

use std::sync::atomic::{AtomicU32, Ordering};

/// How long a test waits for what must happen; far longer than it takes.
pub(crate) const PATIENCE_NS: u64 = 20_000_000_000;

/// A namespace that no other test uses.
pub(crate) fn namespace() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("test-{}-{number}", std::process::id())
}

pub(crate) fn named(namespace: &str, name: &str) -> ProcessHost {
    ProcessHost::open(Options::named(name).in_namespace(namespace)).unwrap()
}

pub(crate) fn unnamed(namespace: &str) -> ProcessHost {
    ProcessHost::open(Options::default().in_namespace(namespace)).unwrap()
}

pub(crate) fn after_ns(host: &ProcessHost, span_ns: u64) -> u64 {
    host.now_ns() + span_ns
}

/// Sleeps until `look` finds something.
pub(crate) fn wait_for<R>(
    host: &mut ProcessHost,
    mut look: impl FnMut(&mut ProcessHost) -> Option<R>,
) -> R {
    let deadline_ns = after_ns(host, PATIENCE_NS);
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
pub(crate) fn packet(host: &mut ProcessHost, link: &mut PairLink) -> Vec<u8> {
    let deadline_ns = after_ns(host, PATIENCE_NS);
    loop {
        link.announce_sleep();
        host.prepare_sleep();
        if let Some(found) = try_receive(link) {
            host.end_sleep();
            link.watch();
            return found;
        }
        assert!(host.now_ns() < deadline_ns, "nothing came");
        if !host.attention() {
            host.sleep(Some(deadline_ns)).unwrap();
        }
        host.end_sleep();
    }
}

pub(crate) fn event(host: &mut ProcessHost) -> Event<PairLink> {
    wait_for(host, |host| host.next_event())
}

pub(crate) fn linked(host: &mut ProcessHost) -> (Peer, PairLink) {
    match event(host) {
        Event::Linked(peer, link) => (peer, link),
        Event::Lost { token, cause } => panic!("link {token} is lost: {cause}"),
    }
}

pub(crate) fn lost(host: &mut ProcessHost) -> (u64, LossCause) {
    match event(host) {
        Event::Lost { token, cause } => (token, cause),
        Event::Linked(peer, _) => panic!("unexpected link: {peer:?}"),
    }
}

pub(crate) fn connect(host: &mut ProcessHost, to: Address<'_>) -> (Peer, PairLink) {
    let deadline_ns = after_ns(host, PATIENCE_NS);
    match host.connect(to, deadline_ns).unwrap() {
        Connected::New(peer, link) => (peer, link),
        Connected::Already { token } => panic!("linked already: {token}"),
    }
}

/// Both ends of a new link.
pub(crate) fn pair(
    from: &mut ProcessHost,
    to: &mut ProcessHost,
) -> ((Peer, PairLink), (Peer, PairLink)) {
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
    link.try_send(&header, &[], &[Part::Bytes(bytes)]).is_ok()
}

pub(crate) fn try_receive(link: &mut PairLink) -> Option<Vec<u8>> {
    link.receive(|header, payload| {
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
        a.settle();
        b.settle();
    }
}
