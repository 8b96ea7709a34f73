//! Those who abuse regions: holders that store at any time and announce what they may not, owners
//! that share what is no memory, and holders that are killed.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn::engine::key::Key;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::slot::Rights;
use hamlyn::host::process::ProcessHost;
use hamlyn::region::SharedOptions;
use hamlyn::{
    Access, Area, AttachError, Destination, Holders, Manager, Message, NewSlot, Region,
    RegionTicket, Slot, Ticket, Wait,
};
use hamlyn_engine::packet::{Flags, Header, Kind};
use hamlyn_host::ConnectError;
use hamlyn_host::process::codec;
use hamlyn_host::process::name::Namespace;
use hamlyn_link::cell::{Data, Metadata, Placement, encode};
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::pool::Pool;
use hamlyn_ring::region::{AttachedRegion, ReceivedRegion};
use hamlyn_ring::streaming::StreamingHeuristic;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use support::actor::{Actor, listen, role, say};
use support::raw_link::{RawLink, connect_to, receive, say_to};
use support::{LONG, Random, link_to, namespace, open, until};

const PAGE: u64 = 4096;

fn shared_slot(manager: &Manager<ProcessHost>, pages: u64) -> (Area, Slot) {
    let area = Area::shared(SharedOptions::reserved(pages * PAGE)).unwrap();
    let new = NewSlot::new(&area).entries(1).rights(Rights::ALL);
    let slot = manager.session().open_slot(new).unwrap();
    (area, slot)
}

fn share(
    manager: &Manager<ProcessHost>,
    slot: &Slot,
    range: std::ops::Range<u64>,
    holders: Holders,
) -> Region {
    let mut session = manager.session();
    session
        .share(slot, range, Access::Writable, holders)
        .unwrap()
}

/// A peer that has the link and the region in its own hands.
struct Abuser {
    link: RawLink,
    cells: u64,
    pages: AttachedRegion,
}

impl Abuser {
    /// Announces that bytes were placed.
    fn announce(&mut self, ticket: &Ticket, offset: u64, length_bytes: u32) {
        let header = Header {
            slot: ticket.slot,
            metadata_index: ticket.metadata_index,
            key: ticket.key,
            offset,
            length_bytes,
            word: 0,
            metadata_length_bytes: 0,
            flags: Flags::PLACED,
            kind: Kind::WRITE,
        };
        let placement = Placement {
            data: Data::Placed,
            metadata: Metadata::Word(0),
        };
        let mut cell = encode(&header, &placement);
        // The flag of the first generation.
        cell[0] |= 1;
        let at = self.link.to_victim_geometry.cells_offset() + 64 * self.cells as usize;
        for word in (0..8).rev() {
            let to = self.link.to_victim.atomic_u64(at + 8 * word).unwrap();
            to.store(cell[word], Ordering::Release);
        }
        self.cells += 1;
    }
}

const ABUSER: u64 = 0xAB05E;

#[test]
fn a_holder_that_stores_at_any_time_and_announces_anything() {
    let namespace = namespace();
    let owner = open(&namespace);
    let (area, slot) = shared_slot(&owner, 8);
    let ticket = slot.ticket(0, 0, 8 * PAGE).unwrap();
    let victim = owner.session().identity();
    let link = RawLink::connect(&namespace, victim, ABUSER).unwrap();
    let link_id = link_to(&owner, ABUSER);
    let region = share(&owner, &slot, 2 * PAGE..4 * PAGE, Holders::One(link_id));
    // Fetched by hand.
    let socket = connect_to(&namespace, victim.interface);
    let (interface, secret) = (ABUSER, region.ticket().secret);
    receive(&socket).unwrap();
    say_to(&socket, &codec::Message::Fetch { interface, secret }, &[]);
    let (answer, files) = receive(&socket).unwrap();
    let length_bytes = 2 * PAGE;
    let expected = codec::Message::Region { length_bytes };
    assert_eq!(codec::decode(&answer), Ok(expected));
    let [memory, state]: [OwnedFd; 2] = files.try_into().unwrap();
    let received = ReceivedRegion {
        memory,
        state,
        length_bytes,
    };
    let pages = AttachedRegion::adopt(received, Access::Writable).unwrap();
    let mut abuser = Abuser {
        link,
        cells: 0,
        pages,
    };
    // Places that are not covered are refused, by name; others are let in.
    let announcements = [
        (2 * PAGE, 8, true),
        (2 * PAGE, 2 * PAGE as u32, true),
        (0, 8, false),
        (2 * PAGE - 1, 8, false),
        (4 * PAGE - 7, 8, false),
        (4 * PAGE, 0, true),
        (2 * PAGE, 2 * PAGE as u32 + 1, false),
    ];
    for (offset, length, _) in announcements {
        abuser.announce(&ticket, offset, length);
    }
    abuser.announce(&ticket, 2 * PAGE, u32::MAX);
    let forged = Ticket {
        key: Key::from_bits(ticket.key.to_bits() ^ 1),
        ..ticket
    };
    abuser.announce(&forged, 2 * PAGE, 8);
    let wrong = announcements.iter().filter(|(.., good)| !good).count() as u64;
    until("the refusals", || {
        owner.session().poll();
        let refusals = owner.session().refusals();
        (refusals.total() == wrong + 2).then_some(())
    });
    let refusals = owner.session().refusals();
    assert_eq!(refusals.count(Refusal::NotGranted), wrong);
    assert_eq!(refusals.count(Refusal::OutOfBounds), 1);
    assert_eq!(refusals.count(Refusal::BadKey), 1);
    // It stores all the time, and goes on when the region is revoked.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (pages, stop) = (&mut abuser.pages, &stop);
        scope.spawn(move || {
            let mut value = 0_u8;
            while !stop.load(Ordering::Relaxed) {
                value = value.wrapping_add(1);
                let bytes = [value; 2 * PAGE as usize];
                pages.store(0, &bytes, &StreamingHeuristic::new()).unwrap();
            }
        });
        let mut seen = vec![0; 8 * PAGE as usize];
        until("a store", || {
            area.read_at(0, &mut seen).unwrap();
            (seen[2 * PAGE as usize] != 0).then_some(())
        });
        // The other pages are not its.
        area.read_at(0, &mut seen).unwrap();
        let outside = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
        assert!(outside(&seen[..2 * PAGE as usize]) && outside(&seen[4 * PAGE as usize..]));
        owner.session().revoke(&region).unwrap();
        area.read_at(0, &mut seen).unwrap();
        let mut later = vec![0; seen.len()];
        for _ in 0..100 {
            std::thread::yield_now();
            area.read_at(0, &mut later).unwrap();
            assert!(later == seen, "changed after it was revoked");
        }
        stop.store(true, Ordering::Relaxed);
    });
    abuser.announce(&ticket, 2 * PAGE, 8);
    until("the refusal", || {
        owner.session().poll();
        let count = owner.session().refusals().count(Refusal::NotGranted);
        (count == wrong + 1).then_some(())
    });
    assert!(
        owner.session().link_end(link_id).is_none(),
        "counted, no more"
    );
}

/// Somebody who answers for an interface that it is linked as, and shares whatever `answer` says.
fn shares_badly(answer: impl Fn(&OwnedFd) + Sync) -> AttachError {
    const OWNER: u64 = 0x1E4E;
    let namespace = namespace();
    let victim = open(&namespace);
    let identity = victim.session().identity();
    let _link = RawLink::connect(&namespace, identity, OWNER).unwrap();
    link_to(&victim, OWNER);
    let address = Namespace::new(&namespace)
        .unwrap()
        .interface_address(OWNER)
        .unwrap();
    let kind = SocketType::SEQPACKET;
    let listener =
        rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::bind(&listener, &address).unwrap();
    rustix::net::listen(&listener, 8).unwrap();
    let (_area, slot) = shared_slot(&victim, 1);
    let mut ticket = RegionTicket {
        ticket: slot.fast_ticket(0, PAGE).unwrap(),
        rights: Rights::ALL,
        secret: 1,
    };
    ticket.ticket.destination = Destination {
        interface: OWNER,
        ..identity
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = rustix::net::accept(&listener).unwrap();
            say_to(&socket, &codec::Message::Greeting { interface: OWNER }, &[]);
            receive(&socket).unwrap();
            answer(&socket);
            // Stays until the victim has had enough.
            let _ = receive(&socket);
        });
        let attached = victim.session().attach(&ticket, Wait::millis(2_000));
        assert_eq!(victim.session().regions_attached(), 0);
        attached.unwrap_err()
    })
}

#[test]
fn an_owner_that_shares_what_cannot_be_mapped_is_refused() {
    let region = |length_bytes| codec::Message::Region { length_bytes };
    let area = |bytes: u64| Memfd::create("test", bytes as usize, 0).unwrap().into_fd();
    let state_of = |bytes| {
        let pool = Pool::new(bytes, 1).unwrap();
        let [file, _] = pool.files().descriptors();
        file.try_clone_to_owned().unwrap()
    };
    let state = move || state_of(64);
    let unsealed = || {
        let flags = rustix::fs::MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("test", flags).unwrap();
        rustix::fs::ftruncate(&file, PAGE).unwrap();
        file
    };
    type Answer = Box<dyn Fn(&OwnedFd) + Sync>;
    let bad: Vec<(&str, Answer)> = vec![
        (
            "unsealed",
            Box::new(move |socket| say_to(socket, &region(PAGE), &[&unsealed(), &state()])),
        ),
        (
            "a state that holders may write",
            Box::new(move |socket| say_to(socket, &region(PAGE), &[&area(PAGE), &area(PAGE)])),
        ),
        (
            "a state that is too long",
            Box::new(move |socket| {
                say_to(socket, &region(PAGE), &[&area(PAGE), &state_of(8192)]);
            }),
        ),
        (
            "shorter than it says",
            Box::new(move |socket| say_to(socket, &region(2 * PAGE), &[&area(PAGE), &state()])),
        ),
        (
            "no pages",
            Box::new(move |socket| say_to(socket, &region(PAGE + 1), &[&area(PAGE), &state()])),
        ),
        (
            "far too many",
            Box::new(move |socket| say_to(socket, &region(1 << 50), &[&area(PAGE), &state()])),
        ),
        (
            "none",
            Box::new(move |socket| say_to(socket, &region(0), &[&area(PAGE), &state()])),
        ),
        (
            "only readable",
            Box::new(move |socket| say_to(socket, &region(PAGE), &[&state(), &state()])),
        ),
        (
            "without files",
            Box::new(move |socket| say_to(socket, &region(PAGE), &[])),
        ),
        (
            "with one",
            Box::new(move |socket| say_to(socket, &region(PAGE), &[&area(PAGE)])),
        ),
        (
            "with three",
            Box::new(move |socket| {
                say_to(socket, &region(PAGE), &[&area(PAGE), &state(), &state()]);
            }),
        ),
        (
            "a socket for a file",
            Box::new(move |socket| say_to(socket, &region(PAGE), &[socket, &state()])),
        ),
        (
            "something else",
            Box::new(|socket| say_to(socket, &codec::Message::Greeting { interface: 1 }, &[])),
        ),
    ];
    for (what, answer) in bad {
        let error = shares_badly(answer);
        let is_invalid = matches!(
            error,
            AttachError::Unusable(_) | AttachError::Fetch(ConnectError::Invalid { .. })
        );
        assert!(is_invalid, "{what}: {error}");
    }
    let error =
        shares_badly(|socket| say_to(socket, &region(2 * PAGE), &[&area(2 * PAGE), &state()]));
    assert!(matches!(error, AttachError::Length { .. }), "{error}");
    // One that says nothing costs the time that was allowed.
    let error = shares_badly(|_| ());
    assert!(matches!(
        error,
        AttachError::Fetch(ConnectError::Stalled { .. })
    ));
}

/// The children attach a region, and place messages or store for ever.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Some((role, namespace)) = role() else {
        return;
    };
    let manager = open(&namespace);
    let ticket = Ticket::from_bytes(&listen()).unwrap();
    let target = manager.session().target(&ticket, LONG).unwrap();
    say(&manager.session().identity().interface.to_le_bytes());
    let region = RegionTicket::from_bytes(&listen()).unwrap();
    let attached = manager.session().attach(&region, LONG).unwrap();
    say(b"begun");
    if role == "store" {
        let window = attached.window();
        for number in 0_u64.. {
            let page = number % 4 * PAGE;
            window.write(page, &[number as u8; 4096]).unwrap();
        }
    }
    let terminus = manager.terminus();
    for number in 0_u64.. {
        let bytes = vec![number as u8; 4 * PAGE as usize];
        let message = Message::new(&bytes).silent();
        let _ = manager
            .session()
            .send_msg(terminus, &target, &message, LONG);
    }
}

#[test]
fn a_holder_that_is_killed_leaves_nothing() {
    let namespace = namespace();
    let owner = open(&namespace);
    let (area, slot) = shared_slot(&owner, 4);
    let ticket = slot.ticket(0, 0, 4 * PAGE).unwrap();
    let mut random = Random::new(11);
    for round in 0..12 {
        let mut child = Actor::start("place", &namespace);
        child.tell(&ticket.to_bytes());
        let interface = u64::from_le_bytes(child.hear().try_into().unwrap());
        let link = link_to(&owner, interface);
        let region = share(&owner, &slot, 0..4 * PAGE, Holders::One(link));
        child.tell(&region.ticket().to_bytes());
        if round % 3 > 0 {
            child.hear();
            let polls = random.below(2_000);
            for _ in 0..polls {
                owner.session().poll();
            }
        }
        child.kill();
        // All that it announced before is taken, then the link is gone.
        until("the loss", || {
            owner.session().poll();
            let peers = owner.session().peers().count();
            (peers == 0).then_some(())
        });
        assert!(owner.session().link_end(link).is_some());
        assert_eq!(owner.session().slot_info(&slot).unwrap().grants, 0);
        assert_eq!(owner.session().refusals().total(), 0);
        // Its pages are still to be taken back.
        assert_eq!(owner.session().regions_shared(), 1);
        owner.session().revoke(&region).unwrap();
        assert_eq!(owner.session().regions_shared(), 0);
        let mut bytes = [0; 8];
        area.read_at(0, &mut bytes).unwrap();
        child.ended();
    }
    drop(owner);
}

#[test]
fn a_holder_that_stores_while_it_is_revoked_and_killed_changes_nothing_more() {
    let namespace = namespace();
    let owner = open(&namespace);
    let (area, slot) = shared_slot(&owner, 4);
    let mut random = Random::new(13);
    for round in 0..6 {
        let region = share(&owner, &slot, 0..4 * PAGE, Holders::Linked);
        let mut child = Actor::start("store", &namespace);
        child.tell(&region.ticket().ticket.to_bytes());
        child.hear();
        child.tell(&region.ticket().to_bytes());
        child.hear();
        for _ in 0..random.below(2_000) {
            owner.session().poll();
        }
        if round % 2 == 0 {
            owner.session().revoke(&region).unwrap();
            // It goes on storing, and nothing of that arrives.
            let before = contents(&area);
            for _ in 0..100 {
                assert!(contents(&area) == before);
            }
        }
        child.kill();
        until("the loss", || {
            owner.session().poll();
            (owner.session().peers().count() == 0).then_some(())
        });
        if round % 2 == 1 {
            // With its holder gone, the region still stands for others.
            assert_eq!(owner.session().regions_shared(), 1);
            owner.session().revoke(&region).unwrap();
        }
        area.store_u64(0, round).unwrap();
        assert_eq!(area.load_u64(0), Ok(round));
        child.ended();
    }
}

fn contents(area: &Area) -> Vec<u8> {
    let mut bytes = vec![0; 4 * PAGE as usize];
    area.read_at(0, &mut bytes).unwrap();
    bytes
}
