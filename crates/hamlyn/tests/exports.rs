//! Exported memory (decision 0037) and those who abuse it: processes that guess numbers, owners
//! that export no memory, importers that store at any time and are killed, owners that are gone.

mod support;

use std::io::IoSlice;
use std::mem::MaybeUninit;

use hamlyn::engine::slot::{Mode, Rights, SlotError};
use hamlyn::export::{ExportableError, ExportableOptions};
use hamlyn::host::process::ProcessHost;
use hamlyn::{
    Area, Destination, DirectWindow, Export, ExportError, ExportTicket, Import, ImportError,
    Manager, NewSlot, OpenError, Slot, Wait,
};
use hamlyn_host::ConnectError;
use hamlyn_host::process::codec;
use hamlyn_host::process::name::Namespace;
use hamlyn_ring::export::ExportError as MemoryError;
use hamlyn_ring::memfd::Memfd;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use support::actor::{Actor, listen, role, say};
use support::raw_link::{RawLink, receive};
use support::{LONG, Random, descriptors, namespace, open, until};

const PAGE: u64 = 4096;

fn exportable(pages: u64) -> Area {
    let options = ExportableOptions {
        length_bytes: pages * PAGE,
        address: None,
    };
    Area::exportable(options).unwrap()
}

fn exportable_slot(manager: &Manager<ProcessHost>, pages: u64, rights: Rights) -> (Area, Slot) {
    let area = exportable(pages);
    let new = NewSlot::new(&area).rights(rights);
    let slot = manager.session().open_slot(new).unwrap();
    (area, slot)
}

fn export(manager: &Manager<ProcessHost>, slot: &Slot) -> Export {
    manager.session().export(slot).unwrap()
}

/// Links to the owner and imports.
fn import(manager: &Manager<ProcessHost>, ticket: &ExportTicket) -> Result<Import, ImportError> {
    manager.session().target(&ticket.ticket, LONG).unwrap();
    manager.session().import(ticket, LONG)
}

#[test]
fn several_peers_share_a_slot_until_it_is_revoked() {
    let namespace = namespace();
    let owner = open(&namespace);
    let (area, slot) = exportable_slot(&owner, 1 << 18, Rights::ALL);
    let export = export(&owner, &slot);
    let ticket = ExportTicket::from_bytes(&export.ticket().to_bytes()).unwrap();
    let peers = [open(&namespace), open(&namespace), open(&namespace)];
    let windows: Vec<DirectWindow> = peers
        .iter()
        .map(|peer| import(peer, &ticket).unwrap().window())
        .collect();
    for (number, window) in windows.iter().enumerate() {
        assert_eq!(window.length_bytes(), PAGE << 18);
        let place = (number as u64) << 28;
        window.store_u64(place, number as u64 + 1).unwrap();
    }
    for window in &windows {
        for number in 0..3 {
            assert_eq!(window.load_u64(number << 28), Ok(number + 1));
        }
    }
    assert_eq!(area.load_u64(2 << 28), Ok(3));
    owner.session().revoke_export(&export).unwrap();
    for window in &windows {
        assert!(!window.lasts());
        window.store_u64(0, 99).unwrap();
    }
    assert_eq!(area.load_u64(0), Ok(1));
    assert_eq!(area.load_u64(1 << 28), Ok(2));
    assert_eq!(owner.session().exports_made(), 0);
    let again = owner.session().revoke_export(&export);
    assert_eq!(again, Err(ExportError::NoSuchExport));
    let late = peers[0].session().import(&ticket, LONG);
    assert!(is_not_lent(&late));
}

#[test]
fn an_export_that_was_imported_already_is_given_once_more() {
    let namespace = namespace();
    let owner = open(&namespace);
    let (_area, slot) = exportable_slot(&owner, 2, Rights::ALL);
    let export = export(&owner, &slot);
    let peer = open(&namespace);
    let one = import(&peer, &export.ticket()).unwrap();
    let other = import(&peer, &export.ticket()).unwrap();
    assert_eq!(one.window().as_ptr(), other.window().as_ptr());
    assert_eq!(peer.session().imports(), 1);
    peer.session().drop_import(&one);
    assert!(!other.lasts() && !one.window().lasts());
    assert_eq!(peer.session().imports(), 0);
    let third = import(&peer, &export.ticket()).unwrap();
    assert!(third.lasts() && !one.lasts());
}

#[test]
fn a_slot_that_grants_reading_is_mapped_for_reading() {
    let namespace = namespace();
    let owner = open(&namespace);
    let (area, slot) = exportable_slot(&owner, 2, Rights::READ);
    let export = export(&owner, &slot);
    let peer = open(&namespace);
    let window = import(&peer, &export.ticket()).unwrap().window();
    assert!(!window.is_writable());
    area.store_u64(PAGE, 4).unwrap();
    assert_eq!(window.load_u64(PAGE), Ok(4));
    assert!(window.store_u64(PAGE, 5).is_err());
    // A ticket that claims more is not believed.
    let imported = import(&peer, &export.ticket()).unwrap();
    peer.session().drop_import(&imported);
    let more = ExportTicket {
        rights: Rights::ALL,
        ..export.ticket()
    };
    let refused = import(&peer, &more).unwrap_err();
    assert!(is_invalid(&refused), "{refused}");
}

#[test]
fn what_cannot_be_exported_is_refused_by_name() {
    let namespace = namespace();
    let owner = open(&namespace);
    let refused = |new: NewSlot| {
        let slot = owner.session().open_slot(new).unwrap();
        owner.session().export(&slot).unwrap_err()
    };
    let area = exportable(4);
    let all = || NewSlot::new(&area).rights(Rights::ALL);
    // Parts of areas, since all of the file would be seen.
    for range in [0..PAGE, PAGE..4 * PAGE, 0..4 * PAGE - 1] {
        let not_whole = ExportError::NotWhole {
            slot_bytes: range.end - range.start,
            area_bytes: 4 * PAGE,
        };
        assert_eq!(refused(all().range(range)), not_whole);
    }
    // Rights that the kernel does not tell apart.
    for rights in [
        Rights::NONE,
        Rights::WRITE,
        Rights::ATOMIC,
        Rights::READ.with(Rights::ATOMIC),
        Rights::READ.with(Rights::WRITE),
    ] {
        assert_eq!(refused(all().rights(rights)), ExportError::Rights);
    }
    // Memory of other kinds.
    let shared = owner.session().allocate_shared(PAGE).unwrap();
    let private = owner.session().allocate(PAGE).unwrap();
    let (handover, _reader) = owner.session().allocate_handover(4, 4096).unwrap();
    for area in [shared, private, handover] {
        let refused = refused(NewSlot::over(area).rights(Rights::ALL));
        assert_eq!(refused, ExportError::Memory(MemoryError::NotExportable));
    }
    // What is exported already, by way of another slot.
    let slot = owner.session().open_slot(all()).unwrap();
    let export = export(&owner, &slot);
    let twice = ExportError::Memory(MemoryError::ExportedAlready);
    assert_eq!(refused(all()), twice);
    assert_eq!(refused(all().rights(Rights::READ)), twice);
    owner.session().revoke_export(&export).unwrap();
    // Slots of others and slots in the paranoid modes.
    for mode in [Mode::Paranoid, Mode::ParanoidOneShot] {
        let new = all().entries(1).mode(mode);
        let refused = owner.session().open_slot(new).unwrap_err();
        assert_eq!(refused, OpenError::Slot(SlotError::SharedArea));
    }
    // Exports of others, and lengths that there are not.
    let other = open(&namespace);
    let (_area, slot) = exportable_slot(&other, 1, Rights::ALL);
    let foreign = other.session().export(&slot).unwrap();
    let refused = owner.session().revoke_export(&foreign);
    assert_eq!(refused, Err(ExportError::NoSuchExport));
    let none = ExportableOptions {
        length_bytes: 0,
        address: None,
    };
    let refused = Area::exportable(none).unwrap_err();
    assert_eq!(refused, ExportableError::Length(0));
}

fn is_not_lent(result: &Result<Import, ImportError>) -> bool {
    matches!(
        result,
        Err(ImportError::Fetch(ConnectError::NotLent { .. }))
    )
}

fn is_invalid(error: &ImportError) -> bool {
    matches!(error, ImportError::Fetch(ConnectError::Invalid { .. }))
}

#[test]
fn closing_the_slot_revokes_and_full_tables_say_so() {
    let namespace = namespace();
    let owner = open(&namespace);
    let (area, slot) = exportable_slot(&owner, 1, Rights::ALL);
    let export = export(&owner, &slot);
    let peer = open(&namespace);
    let import = import(&peer, &export.ticket()).unwrap();
    owner.session().close_slot(slot).unwrap();
    assert_eq!(owner.session().exports_made(), 0);
    assert!(!import.lasts());
    import.window().store_u64(0, 1).unwrap();
    assert_eq!(area.load_u64(0), Ok(0));
    let mut slots = Vec::new();
    let full = loop {
        let (_area, slot) = exportable_slot(&owner, 1, Rights::ALL);
        match owner.session().export(&slot) {
            Ok(export) => slots.push((slot, export)),
            Err(error) => break error,
        }
    };
    assert_eq!(slots.len(), 256);
    let said = full.to_string();
    assert!(said.contains("256 areas are exported"), "{said}");
    assert_eq!(owner.session().exports_made(), 256);
    owner.session().revoke_export(&slots[0].1).unwrap();
    let (_area, slot) = exportable_slot(&owner, 1, Rights::ALL);
    assert!(owner.session().export(&slot).is_ok());
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

/// What the owner answers to a claim in that name.
fn claimed(namespace: &str, owner: u64, interface: u64, secret: u64) -> (codec::Message, usize) {
    let socket = connect_to(namespace, owner);
    receive(&socket).unwrap();
    say_to(&socket, &codec::Message::Claim { interface, secret }, &[]);
    let (answer, files) = receive(&socket).unwrap();
    (codec::decode(&answer).unwrap(), files.len())
}

#[test]
fn only_linked_peers_with_the_number_are_given_the_memory() {
    let namespace = namespace();
    let owner = open(&namespace);
    let me = owner.session().identity().interface;
    let (_area, slot) = exportable_slot(&owner, 3, Rights::ALL);
    let export = export(&owner, &slot);
    let secret = export.ticket().secret;
    // Somebody without a link, with the right number.
    let refused = (codec::Message::NotOffered, 0);
    assert_eq!(claimed(&namespace, me, 77, secret), refused);
    // With a link, but a wrong number; and then as often as it likes.
    let peer = open(&namespace);
    let identity = peer.session().identity().interface;
    let guess = ExportTicket {
        secret: secret ^ 1,
        ..export.ticket()
    };
    assert!(is_not_lent(&import(&peer, &guess)));
    let given = codec::Message::Exported {
        length_bytes: 3 * PAGE,
    };
    for _ in 0..3 {
        assert_eq!(
            claimed(&namespace, me, identity, secret),
            (given.clone(), 2)
        );
    }
    // In the name of the owner itself.
    assert_eq!(claimed(&namespace, me, me, secret), refused);
    // Once the link is gone.
    drop(peer);
    until("the loss", || {
        owner.session().poll();
        (owner.session().peers().count() == 0).then_some(())
    });
    assert_eq!(claimed(&namespace, me, identity, secret), refused);
    owner.session().revoke_export(&export).unwrap();
    let peer = open(&namespace);
    assert!(is_not_lent(&import(&peer, &export.ticket())));
    // One's own, one that nobody is linked to, and one that is longer than it is.
    let own = owner.session().import(&export.ticket(), LONG);
    assert_eq!(own.unwrap_err(), ImportError::Loopback);
    let mut stranger = export.ticket();
    stranger.ticket.destination.interface ^= 1;
    let refused = peer.session().import(&stranger, LONG);
    assert_eq!(refused.unwrap_err(), ImportError::NotLinked);
    let export = owner.session().export(&slot).unwrap();
    for (base, length_bytes) in [(0, 4 * PAGE), (0, PAGE), (PAGE, 3 * PAGE)] {
        let mut crooked = export.ticket();
        (crooked.ticket.base, crooked.ticket.length_bytes) = (base, length_bytes);
        let refused = peer.session().import(&crooked, LONG).unwrap_err();
        assert!(matches!(refused, ImportError::Length { .. }), "{refused}");
    }
    assert_eq!(peer.session().imports(), 0);
}

/// Somebody who answers for an interface that it is linked as, and exports whatever `answer` says.
fn exports_badly(answer: impl Fn(&OwnedFd) + Sync) -> ImportError {
    const OWNER: u64 = 0x1E4E;
    let namespace = namespace();
    let victim = open(&namespace);
    let identity = victim.session().identity();
    let _link = RawLink::connect(&namespace, identity, OWNER).unwrap();
    until("a link", || {
        victim.session().poll();
        let guard = victim.session();
        let mut peers = guard.peers();
        peers
            .any(|(_, peer)| peer.destination.interface == OWNER)
            .then_some(())
    });
    let address = Namespace::new(&namespace)
        .unwrap()
        .interface_address(OWNER)
        .unwrap();
    let kind = SocketType::SEQPACKET;
    let listener =
        rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::bind(&listener, &address).unwrap();
    rustix::net::listen(&listener, 8).unwrap();
    let (_area, slot) = exportable_slot(&victim, 1, Rights::ALL);
    let mut ticket = ExportTicket {
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
        let imported = victim.session().import(&ticket, Wait::millis(2_000));
        assert_eq!(victim.session().imports(), 0);
        imported.unwrap_err()
    })
}

#[test]
fn an_owner_that_exports_what_cannot_be_mapped_is_refused() {
    let exported = |length_bytes| codec::Message::Exported { length_bytes };
    let area = |bytes: u64| Memfd::create("test", bytes as usize, 0).unwrap().into_fd();
    let state = || {
        use hamlyn_ring::pool::Pool;
        Pool::new(64, 1).unwrap().descriptor().unwrap()
    };
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
            Box::new(move |socket| say_to(socket, &exported(PAGE), &[&unsealed(), &state()])),
        ),
        (
            "a state that importers may write",
            Box::new(move |socket| say_to(socket, &exported(PAGE), &[&area(PAGE), &area(PAGE)])),
        ),
        (
            "a state that is too long",
            Box::new(move |socket| {
                use hamlyn_ring::pool::Pool;
                let long = Pool::new(8192, 1).unwrap().descriptor().unwrap();
                say_to(socket, &exported(PAGE), &[&area(PAGE), &long]);
            }),
        ),
        (
            "shorter than it says",
            Box::new(move |socket| say_to(socket, &exported(2 * PAGE), &[&area(PAGE), &state()])),
        ),
        (
            "no pages",
            Box::new(move |socket| say_to(socket, &exported(PAGE + 1), &[&area(PAGE), &state()])),
        ),
        (
            "far too many",
            Box::new(move |socket| say_to(socket, &exported(1 << 50), &[&area(PAGE), &state()])),
        ),
        (
            "none",
            Box::new(move |socket| say_to(socket, &exported(0), &[&area(PAGE), &state()])),
        ),
        (
            "only readable",
            Box::new(move |socket| say_to(socket, &exported(PAGE), &[&state(), &state()])),
        ),
        (
            "without files",
            Box::new(move |socket| say_to(socket, &exported(PAGE), &[])),
        ),
        (
            "with one",
            Box::new(move |socket| say_to(socket, &exported(PAGE), &[&area(PAGE)])),
        ),
        (
            "with three",
            Box::new(move |socket| {
                say_to(socket, &exported(PAGE), &[&area(PAGE), &state(), &state()]);
            }),
        ),
        (
            "a socket for a file",
            Box::new(move |socket| say_to(socket, &exported(PAGE), &[socket, &state()])),
        ),
        (
            "lent instead",
            Box::new(move |socket| {
                let lent = codec::Message::Lent { length_bytes: PAGE };
                say_to(socket, &lent, &[&area(2 * PAGE)]);
            }),
        ),
    ];
    for (what, answer) in bad {
        let error = exports_badly(answer);
        assert!(is_invalid(&error), "{what}: {error}");
    }
    let error =
        exports_badly(|socket| say_to(socket, &exported(2 * PAGE), &[&area(2 * PAGE), &state()]));
    assert!(matches!(error, ImportError::Length { .. }), "{error}");
}

/// What the children do: import and store for ever, or export and wait to be killed.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Some((role, namespace)) = role() else {
        return;
    };
    let manager = open(&namespace);
    if role == "own" {
        let (area, slot) = exportable_slot(&manager, 4, Rights::ALL);
        area.store_u64(8, 5).unwrap();
        let export = export(&manager, &slot);
        say(&export.ticket().to_bytes());
        loop {
            let _ = manager.wait(Wait::Forever);
        }
    }
    let ticket = ExportTicket::from_bytes(&listen()).unwrap();
    let window = import(&manager, &ticket).unwrap().window();
    say(b"begun");
    for number in 0_u64.. {
        let page = number % 4 * PAGE;
        window.write(page, &[number as u8; 4096]).unwrap();
    }
}

#[test]
fn an_importer_that_stores_while_it_is_revoked_and_killed_changes_nothing_more() {
    let namespace = namespace();
    let owner = open(&namespace);
    let (area, slot) = exportable_slot(&owner, 4, Rights::ALL);
    let mut random = Random::new(13);
    for round in 0..6 {
        let export = export(&owner, &slot);
        let mut child = Actor::start("store", &namespace);
        child.tell(&export.ticket().to_bytes());
        child.hear();
        for _ in 0..random.below(2_000) {
            owner.session().poll();
        }
        if round % 2 == 0 {
            owner.session().revoke_export(&export).unwrap();
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
            // With its holder gone, the export still stands for others.
            assert_eq!(owner.session().exports_made(), 1);
            owner.session().revoke_export(&export).unwrap();
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

#[test]
fn an_import_ends_with_its_owner() {
    let namespace = namespace();
    let peer = open(&namespace);
    let mut child = Actor::start("own", &namespace);
    let ticket = ExportTicket::from_bytes(&child.hear()).unwrap();
    let import = import(&peer, &ticket).unwrap();
    let window = import.window();
    assert_eq!(window.load_u64(8), Ok(5));
    child.kill();
    until("the end", || {
        peer.session().poll();
        (!window.lasts()).then_some(())
    });
    assert_eq!(peer.session().imports(), 0);
    // It stays mapped.
    window.store_u64(8, 6).unwrap();
    assert_eq!(window.load_u64(8), Ok(6));
    child.ended();
}

#[test]
fn exports_leave_no_descriptors_behind() {
    let namespace = namespace();
    let owner = open(&namespace);
    let peer = open(&namespace);
    let (_area, slot) = exportable_slot(&owner, 4, Rights::ALL);
    let round = || {
        let export = export(&owner, &slot);
        let import = import(&peer, &export.ticket()).unwrap();
        owner.session().revoke_export(&export).unwrap();
        peer.session().drop_import(&import);
    };
    // Other tests of this process open and close some, too: so there is no number to compare with,
    // but a thousand leaked ones would show.
    let before = descriptors();
    for _ in 0..1_000 {
        round();
    }
    assert!(descriptors() < before + 500);
}
