//! Grants (decision 0006) and those who abuse them: holders that store at any time and announce
//! what they may not, owners that lend what is no memory, and holders that are killed.

mod support;

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn::engine::grant::GrantRefused;
use hamlyn::engine::key::Key;
use hamlyn::engine::limits::GRANTS_PER_SLOT_MAX;
use hamlyn::engine::memory::LinkId;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::slot::{Mode, SlotError};
use hamlyn::grant::PLACED_BYTES_MIN;
use hamlyn::host::process::ProcessHost;
use hamlyn::{
    AcceptError, Address, Destination, GrantError, GrantTicket, Manager, Message, NewSlot,
    OpenError, Slot, Ticket, Wait,
};
use hamlyn_engine::packet::{Flags, Header, Kind};
use hamlyn_host::ConnectError;
use hamlyn_host::process::codec;
use hamlyn_host::process::name::Namespace;
use hamlyn_link::cell::{Data, Metadata, Placement, encode};
use hamlyn_ring::lending::{ImportedRegion, LendError};
use hamlyn_ring::memfd::Memfd;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use support::actor::{Actor, listen, role, say};
use support::raw_link::{RawLink, receive};
use support::{LONG, Random, descriptors, namespace, open, until};

const PAGE: u64 = 4096;

/// A slot in normal mode over pages that can be granted.
fn shared_slot(manager: &Manager<ProcessHost>, pages: u64) -> (hamlyn::Area, Slot) {
    let area = manager.session().allocate_shared(pages * PAGE).unwrap();
    let slot = manager
        .session()
        .open_slot(NewSlot::new(&area).entries(1))
        .unwrap();
    (area, slot)
}

/// Waits for the link to somebody.
fn link_to(manager: &Manager<ProcessHost>, interface: u64) -> LinkId {
    until("a link", || {
        manager.session().poll();
        let guard = manager.session();
        guard
            .peers()
            .find(|(_, peer)| peer.destination.interface == interface)
            .map(|(link, _)| link)
    })
}

fn grant_to(
    manager: &Manager<ProcessHost>,
    slot: &Slot,
    range: std::ops::Range<u64>,
    link: LinkId,
) -> Result<hamlyn::Grant, GrantError> {
    manager.session().grant(slot, range, link)
}

#[test]
fn paranoid_slots_are_never_granted() {
    let namespace = namespace();
    let owner = open(&namespace);
    let peer = open(&namespace);
    let (shared, normal) = shared_slot(&owner, 4);
    let ticket = normal.ticket(0, 0, PAGE).unwrap();
    peer.session().target(&ticket, LONG).unwrap();
    let link = link_to(&owner, peer.session().identity().interface);
    for mode in [Mode::Paranoid, Mode::ParanoidOneShot] {
        // Neither is memory for grants memory for a paranoid slot,
        let new = NewSlot::new(&shared).entries(1).mode(mode);
        let refused = owner.session().open_slot(new).unwrap_err();
        assert_eq!(refused, OpenError::Slot(SlotError::SharedArea));
        // nor is a slot over other memory granted.
        let area = owner.session().allocate(4 * PAGE).unwrap();
        let new = NewSlot::new(&area).entries(1).mode(mode);
        let slot = owner.session().open_slot(new).unwrap();
        let refused = grant_to(&owner, &slot, 0..PAGE, link).unwrap_err();
        let paranoid = GrantRefused::Paranoid(slot.name());
        assert_eq!(refused, GrantError::Refused(paranoid));
    }
    // In normal mode the same memory, range and peer are granted.
    assert!(grant_to(&owner, &normal, 0..PAGE, link).is_ok());
}

#[test]
fn what_cannot_be_granted_is_refused_by_name() {
    let namespace = namespace();
    let owner = open(&namespace);
    let peer = open(&namespace);
    let (area, slot) = shared_slot(&owner, 64);
    let ticket = slot.ticket(0, 0, PAGE).unwrap();
    peer.session().target(&ticket, LONG).unwrap();
    let link = link_to(&owner, peer.session().identity().interface);
    // Itself.
    let me = owner.session().identity();
    let own = owner
        .session()
        .connect(Address::Destination(me), LONG)
        .unwrap();
    let refused = grant_to(&owner, &slot, 0..PAGE, own).unwrap_err();
    assert_eq!(refused, GrantError::Loopback);
    // Memory of other kinds.
    let private = owner.session().allocate(4 * PAGE).unwrap();
    let (handover, _reader) = owner.session().allocate_handover(4, 4096).unwrap();
    for area in [private, handover] {
        let other = owner.session().open_slot(NewSlot::over(area)).unwrap();
        let refused = grant_to(&owner, &other, 0..PAGE, link).unwrap_err();
        assert_eq!(refused, GrantError::Memory(LendError::NotLendable));
        assert_eq!(owner.session().slot_info(&other).unwrap().grants, 0);
    }
    // Ranges that are no whole pages of the area, though they are of the slot.
    for range in [0..100, 1..PAGE, 0..PAGE + 1] {
        let refused = grant_to(&owner, &slot, range, link).unwrap_err();
        assert!(matches!(
            refused,
            GrantError::Memory(LendError::NotPages { .. })
        ));
    }
    let new = NewSlot::new(&area).entries(1).range(100..3 * PAGE);
    let crooked = owner.session().open_slot(new).unwrap();
    let refused = grant_to(&owner, &crooked, 0..PAGE, link).unwrap_err();
    assert!(matches!(
        refused,
        GrantError::Memory(LendError::NotPages { .. })
    ));
    assert!(grant_to(&owner, &crooked, PAGE - 100..2 * PAGE - 100, link).is_ok());
    // The same pages by way of another slot, and outside the slot.
    let refused = grant_to(&owner, &slot, 0..2 * PAGE, link).unwrap_err();
    assert_eq!(refused, GrantError::Memory(LendError::LentAlready));
    let refused = grant_to(&owner, &slot, 0..65 * PAGE, link).unwrap_err();
    assert!(matches!(
        refused,
        GrantError::Refused(GrantRefused::OutsideSlot { .. })
    ));
    // Too many.
    for page in 2..2 + GRANTS_PER_SLOT_MAX as u64 {
        let range = page * PAGE..(page + 1) * PAGE;
        assert!(grant_to(&owner, &slot, range, link).is_ok());
    }
    let refused = grant_to(&owner, &slot, 60 * PAGE..61 * PAGE, link).unwrap_err();
    assert_eq!(refused, GrantError::Refused(GrantRefused::TooMany));
    // Nobody.
    drop(peer);
    until("the loss", || {
        owner.session().poll();
        owner.session().link_end(link)
    });
    let refused = grant_to(&owner, &slot, 60 * PAGE..61 * PAGE, link).unwrap_err();
    assert!(matches!(refused, GrantError::NoLink(_)), "{refused}");
}

#[test]
fn a_grant_is_for_one_peer_and_fetched_once() {
    let namespace = namespace();
    let owner = open(&namespace);
    let mut peer = open(&namespace);
    let mut thief = open(&namespace);
    let (_area, slot) = shared_slot(&owner, 4);
    let ticket = slot.ticket(0, 0, PAGE).unwrap();
    for other in [&mut peer, &mut thief] {
        other.session().target(&ticket, LONG).unwrap();
    }
    let link = link_to(&owner, peer.session().identity().interface);
    link_to(&owner, thief.session().identity().interface);
    let grant = grant_to(&owner, &slot, 0..PAGE, link).unwrap();
    let accept = |manager: &Manager<ProcessHost>, ticket: &GrantTicket| {
        manager.session().accept_grant(ticket, LONG)
    };
    let is_not_lent = |result| {
        matches!(
            result,
            Err(AcceptError::Fetch(ConnectError::NotLent { .. }))
        )
    };
    assert!(is_not_lent(accept(&mut thief, &grant.ticket())));
    let guess = GrantTicket {
        secret: grant.ticket().secret ^ 1,
        ..grant.ticket()
    };
    assert!(is_not_lent(accept(&mut peer, &guess)));
    // Once.
    accept(&mut peer, &grant.ticket()).unwrap();
    assert!(is_not_lent(accept(&mut peer, &grant.ticket())));
    // The control thread counts after it has answered.
    until("the counts", || {
        let counters = owner.session().host().rendezvous_counters();
        ((counters.lent, counters.not_lent) == (1, 3)).then_some(())
    });
    // What was revoked before it was fetched cannot be fetched.
    owner.session().revoke_grant(&grant).unwrap();
    let grant = grant_to(&owner, &slot, 0..PAGE, link).unwrap();
    owner.session().revoke_grant(&grant).unwrap();
    assert!(is_not_lent(accept(&mut peer, &grant.ticket())));
    let stranger = GrantTicket {
        destination: Destination {
            interface: 5,
            ..grant.ticket().destination
        },
        ..grant.ticket()
    };
    assert_eq!(accept(&mut peer, &stranger), Err(AcceptError::NotLinked));
    // A ticket that lies about the length.
    let grant = grant_to(&owner, &slot, 0..2 * PAGE, link).unwrap();
    let longer = GrantTicket {
        length_bytes: 3 * PAGE,
        ..grant.ticket()
    };
    assert!(matches!(
        accept(&mut peer, &longer),
        Err(AcceptError::Length { .. })
    ));
    // Let go of, messages go as copies.
    let grant = grant_to(&owner, &slot, 2 * PAGE..4 * PAGE, link).unwrap();
    accept(&mut peer, &grant.ticket()).unwrap();
    assert!(peer.session().drop_grant(&grant.ticket()));
    assert!(!peer.session().drop_grant(&grant.ticket()));
}

/// A peer that has the link and the lent pages in its own hands.
struct Abuser {
    link: RawLink,
    cells: u64,
    pages: ImportedRegion,
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

fn connect_to(namespace: &str, interface: u64) -> OwnedFd {
    let address = Namespace::new(namespace)
        .unwrap()
        .interface_address(interface)
        .unwrap();
    let kind = SocketType::SEQPACKET;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    socket
}

fn say_to(socket: &OwnedFd, message: &codec::Message, descriptors: &[&OwnedFd]) {
    let descriptors: Vec<_> = descriptors.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    }
    let bytes = codec::encode(message);
    let parts = [IoSlice::new(&bytes)];
    // The other side may have hung up in disgust.
    let _ = rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL);
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
    let grant = grant_to(&owner, &slot, 2 * PAGE..4 * PAGE, link_id).unwrap();
    // The claim, by hand.
    let socket = connect_to(&namespace, victim.interface);
    let (interface, secret) = (ABUSER, grant.ticket().secret);
    receive(&socket).unwrap();
    say_to(&socket, &codec::Message::Claim { interface, secret }, &[]);
    let (answer, mut files) = receive(&socket).unwrap();
    let length_bytes = 2 * PAGE;
    let expected = codec::Message::Lent { length_bytes };
    assert_eq!(codec::decode(&answer), Ok(expected));
    let pages = ImportedRegion::adopt(files.pop().unwrap(), length_bytes).unwrap();
    let mut abuser = Abuser {
        link,
        cells: 0,
        pages,
    };
    // What is not covered is refused, by name; what is, is let in.
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
    // It stores all the time, and goes on when the grant is revoked.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (pages, stop) = (&mut abuser.pages, &stop);
        scope.spawn(move || {
            let mut value = 0_u8;
            while !stop.load(Ordering::Relaxed) {
                value = value.wrapping_add(1);
                pages.store(0, &[value; 2 * PAGE as usize]).unwrap();
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
        owner.session().revoke_grant(&grant).unwrap();
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

/// Somebody who answers for an interface that it is linked as, and lends whatever `lend` says.
fn lends_badly(lend: impl Fn(&OwnedFd) + Sync) -> AcceptError {
    const LENDER: u64 = 0x1E4D;
    let namespace = namespace();
    let victim = open(&namespace);
    let identity = victim.session().identity();
    let _link = RawLink::connect(&namespace, identity, LENDER).unwrap();
    link_to(&victim, LENDER);
    let address = Namespace::new(&namespace)
        .unwrap()
        .interface_address(LENDER)
        .unwrap();
    let kind = SocketType::SEQPACKET;
    let listener =
        rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::bind(&listener, &address).unwrap();
    rustix::net::listen(&listener, 8).unwrap();
    let ticket = GrantTicket {
        destination: Destination {
            interface: LENDER,
            ..identity
        },
        slot: hamlyn::engine::packet::SlotName::from_bits(0),
        start: 0,
        length_bytes: PAGE,
        secret: 1,
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = rustix::net::accept(&listener).unwrap();
            let interface = LENDER;
            say_to(&socket, &codec::Message::Greeting { interface }, &[]);
            receive(&socket).unwrap();
            lend(&socket);
            // Stays until the victim has had enough.
            let _ = receive(&socket);
        });
        let accepted = victim.session().accept_grant(&ticket, Wait::millis(2_000));
        assert_eq!(victim.session().grants_accepted(), 0);
        accepted.unwrap_err()
    })
}

/// What is placed is in the owner's memory as soon as it was sent; a copy is there once the owner
/// looks.
#[test]
fn only_messages_that_gain_by_it_are_placed() {
    let namespace = namespace();
    let owner = open(&namespace);
    let peer = open(&namespace);
    let (area, slot) = shared_slot(&owner, 4);
    let ticket = slot.ticket(0, 0, 4 * PAGE).unwrap();
    let target = peer.session().target(&ticket, LONG).unwrap();
    let link = link_to(&owner, peer.session().identity().interface);
    let grant = grant_to(&owner, &slot, 0..4 * PAGE, link).unwrap();
    peer.session().accept_grant(&grant.ticket(), LONG).unwrap();
    let lengths = [
        1,
        8,
        24,
        25,
        100,
        PLACED_BYTES_MIN - 1,
        PLACED_BYTES_MIN,
        PAGE,
    ];
    for (turn, length) in lengths.into_iter().enumerate() {
        let mark = turn as u8 + 1;
        let data = vec![mark; length as usize];
        let terminus = peer.terminus();
        peer.session()
            .send_msg(terminus, &target, &Message::new(&data), LONG)
            .unwrap();
        let last = || {
            let mut byte = 0;
            area.read_at(length - 1, std::slice::from_mut(&mut byte))
                .unwrap();
            byte == mark
        };
        assert_eq!(last(), length >= PLACED_BYTES_MIN, "{length} bytes");
        until("the message", || {
            owner.session().poll();
            last().then_some(())
        });
    }
}

#[test]
fn an_owner_that_lends_what_cannot_be_mapped_is_refused() {
    let lent = |length_bytes| codec::Message::Lent { length_bytes };
    let sealed = |bytes: u64| Memfd::create("test", bytes as usize, 0).unwrap().into_fd();
    let unsealed = || {
        let flags = rustix::fs::MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("test", flags).unwrap();
        rustix::fs::ftruncate(&file, 2 * PAGE).unwrap();
        file
    };
    let is_invalid =
        |error: &AcceptError| matches!(error, AcceptError::Fetch(ConnectError::Invalid { .. }));
    type Lend = Box<dyn Fn(&OwnedFd) + Sync>;
    let bad: Vec<(&str, Lend)> = vec![
        (
            "unsealed",
            Box::new(move |socket| say_to(socket, &lent(PAGE), &[&unsealed()])),
        ),
        (
            "shorter than it says",
            Box::new(move |socket| say_to(socket, &lent(PAGE), &[&sealed(PAGE)])),
        ),
        (
            "no pages",
            Box::new(move |socket| say_to(socket, &lent(PAGE + 1), &[&sealed(2 * PAGE)])),
        ),
        (
            "far too many",
            Box::new(move |socket| say_to(socket, &lent(1 << 40), &[&sealed(2 * PAGE)])),
        ),
        (
            "none",
            Box::new(move |socket| say_to(socket, &lent(0), &[&sealed(PAGE)])),
        ),
        (
            "without a file",
            Box::new(move |socket| say_to(socket, &lent(PAGE), &[])),
        ),
        (
            "with two",
            Box::new(move |socket| {
                say_to(socket, &lent(PAGE), &[&sealed(2 * PAGE), &sealed(2 * PAGE)]);
            }),
        ),
        (
            "a socket for a file",
            Box::new(move |socket| say_to(socket, &lent(PAGE), &[socket])),
        ),
        (
            "something else",
            Box::new(|socket| say_to(socket, &codec::Message::Greeting { interface: 1 }, &[])),
        ),
    ];
    for (what, lend) in bad {
        let error = lends_badly(lend);
        assert!(is_invalid(&error), "{what}: {error}");
    }
    // More pages than the ticket says are no pages of this grant.
    let error = lends_badly(|socket| say_to(socket, &lent(2 * PAGE), &[&sealed(3 * PAGE)]));
    assert!(matches!(error, AcceptError::Length { .. }), "{error}");
    // One that says nothing costs the time that was allowed.
    let error = lends_badly(|_| ());
    assert!(matches!(
        error,
        AcceptError::Fetch(ConnectError::Stalled { .. })
    ));
}

/// What the children do: take up a grant and place for ever.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Some((role, namespace)) = role() else {
        return;
    };
    assert_eq!(role, "place");
    let manager = open(&namespace);
    let ticket = Ticket::from_bytes(&listen()).unwrap();
    let target = manager.session().target(&ticket, LONG).unwrap();
    say(&manager.session().identity().interface.to_le_bytes());
    let grant = GrantTicket::from_bytes(&listen()).unwrap();
    manager.session().accept_grant(&grant, LONG).unwrap();
    say(b"begun");
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
        let grant = grant_to(&owner, &slot, 0..4 * PAGE, link).unwrap();
        child.tell(&grant.ticket().to_bytes());
        if round % 3 > 0 {
            child.hear();
            let polls = random.below(2_000);
            for _ in 0..polls {
                owner.session().poll();
            }
        }
        child.kill();
        // What it announced before is taken, then the link is gone.
        until("the loss", || {
            owner.session().poll();
            let peers = owner.session().peers().count();
            (peers == 0).then_some(())
        });
        assert!(owner.session().link_end(link).is_some());
        assert_eq!(owner.session().slot_info(&slot).unwrap().grants, 0);
        assert_eq!(owner.session().refusals().total(), 0);
        // Its pages are still to be taken back.
        assert_eq!(owner.session().grants_made(), 1);
        owner.session().revoke_grant(&grant).unwrap();
        assert_eq!(owner.session().grants_made(), 0);
        let mut bytes = [0; 8];
        area.read_at(0, &mut bytes).unwrap();
        child.ended();
    }
    drop(owner);
}

#[test]
fn grants_leave_no_descriptors_behind() {
    let namespace = namespace();
    let owner = open(&namespace);
    let peer = open(&namespace);
    let (_area, slot) = shared_slot(&owner, 4);
    let ticket = slot.ticket(0, 0, PAGE).unwrap();
    peer.session().target(&ticket, LONG).unwrap();
    let link = link_to(&owner, peer.session().identity().interface);
    let round = || {
        let grant = grant_to(&owner, &slot, 0..4 * PAGE, link).unwrap();
        let accepted = peer.session().accept_grant(&grant.ticket(), LONG);
        accepted.unwrap();
        owner.session().revoke_grant(&grant).unwrap();
        assert!(peer.session().drop_grant(&grant.ticket()));
    };
    // Other tests of this process open and close some, too: so there is no number to compare with,
    // but a thousand leaked ones would show.
    let before = descriptors();
    for _ in 0..1_000 {
        round();
    }
    assert!(descriptors() < before + 500);
}
