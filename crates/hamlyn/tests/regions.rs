//! Regions between processes: what is shared and with whom, what is refused by name, and how
//! regions end.

mod support;

use hamlyn::engine::grant::GrantRefused;
use hamlyn::engine::limits::GRANTS_PER_SLOT_MAX;
use hamlyn::engine::memory::LinkId;
use hamlyn::engine::slot::{Mode, Rights, SlotError};
use hamlyn::host::process::ProcessHost;
use hamlyn::region::{PLACED_BYTES_MIN, SharedOptions};
use hamlyn::{
    Access, Address, Area, AttachError, Attached, DirectWindow, Holders, Manager, Message, NewSlot,
    OpenError, Placing, Region, RegionTicket, ShareError, Slot, Wait,
};
use hamlyn_host::ConnectError;
use hamlyn_host::process::codec;
use hamlyn_ring::region::ShareError as MemoryError;
use support::actor::{Actor, role, say};
use support::raw_link::{connect_to, receive, say_to};
use support::{LONG, descriptors, link_to, namespace, open, until};

const PAGE: u64 = 4096;

fn shared(pages: u64) -> Area {
    Area::shared(SharedOptions::sparse(pages * PAGE)).unwrap()
}

fn shared_slot(manager: &Manager<ProcessHost>, pages: u64, rights: Rights) -> (Area, Slot) {
    let area = shared(pages);
    let new = NewSlot::new(&area).entries(1).rights(rights);
    let slot = manager.session().open_slot(new).unwrap();
    (area, slot)
}

fn try_all(manager: &Manager<ProcessHost>, slot: &Slot) -> Result<Region, ShareError> {
    let mut session = manager.session();
    let access = match session.slot_info(slot)?.rights {
        Rights::READ => Access::ReadOnly,
        _ => Access::Writable,
    };
    session.share(slot, 0..slot.length_bytes(), access, Holders::Linked)
}

/// Shares all of a slot with all that are linked.
fn share(manager: &Manager<ProcessHost>, slot: &Slot) -> Region {
    try_all(manager, slot).unwrap()
}

/// Shares a part of it with one.
fn share_with(
    manager: &Manager<ProcessHost>,
    slot: &Slot,
    range: std::ops::Range<u64>,
    link: LinkId,
) -> Result<Region, ShareError> {
    let mut session = manager.session();
    session.share(slot, range, Access::Writable, Holders::One(link))
}

/// Links to the owner and attaches.
fn attach(manager: &Manager<ProcessHost>, ticket: &RegionTicket) -> Result<Attached, AttachError> {
    manager.session().target(&ticket.ticket, LONG).unwrap();
    manager.session().attach(ticket, LONG)
}

#[test]
fn several_peers_share_a_slot_until_it_is_revoked() {
    let namespace = namespace();
    let owner = open(&namespace);
    let (area, slot) = shared_slot(&owner, 1 << 18, Rights::ALL);
    let region = share(&owner, &slot);
    let ticket = RegionTicket::from_bytes(&region.ticket().to_bytes()).unwrap();
    let peers = [open(&namespace), open(&namespace), open(&namespace)];
    let windows: Vec<DirectWindow> = peers
        .iter()
        .map(|peer| attach(peer, &ticket).unwrap().window())
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
    owner.session().revoke(&region).unwrap();
    for window in &windows {
        assert!(!window.lasts());
        window.store_u64(0, 99).unwrap();
    }
    assert_eq!(area.load_u64(0), Ok(1));
    assert_eq!(area.load_u64(1 << 28), Ok(2));
    assert_eq!(owner.session().regions_shared(), 0);
    let again = owner.session().revoke(&region);
    assert_eq!(again, Err(ShareError::NoSuchRegion));
    let late = peers[0].session().attach(&ticket, LONG);
    assert!(is_not_shared(&late));
}

#[test]
fn a_region_that_is_attached_already_is_returned_once_more() {
    let namespace = namespace();
    let owner = open(&namespace);
    let (_area, slot) = shared_slot(&owner, 2, Rights::ALL);
    let region = share(&owner, &slot);
    let peer = open(&namespace);
    let one = attach(&peer, &region.ticket()).unwrap();
    let other = attach(&peer, &region.ticket()).unwrap();
    assert_eq!(one.window().as_ptr(), other.window().as_ptr());
    assert_eq!(peer.session().regions_attached(), 1);
    peer.session().detach(&one);
    assert!(!other.lasts() && !one.window().lasts());
    assert_eq!(peer.session().regions_attached(), 0);
    let third = attach(&peer, &region.ticket()).unwrap();
    assert!(third.lasts() && !one.lasts());
}

#[test]
fn a_slot_that_grants_reading_is_mapped_for_reading() {
    let namespace = namespace();
    let owner = open(&namespace);
    let (area, slot) = shared_slot(&owner, 2, Rights::READ);
    let region = share(&owner, &slot);
    let peer = open(&namespace);
    let window = attach(&peer, &region.ticket()).unwrap().window();
    assert!(!window.is_writable());
    area.store_u64(PAGE, 4).unwrap();
    assert_eq!(window.load_u64(PAGE), Ok(4));
    assert!(window.store_u64(PAGE, 5).is_err());
    // A ticket that claims more is not believed.
    let attached = attach(&peer, &region.ticket()).unwrap();
    peer.session().detach(&attached);
    let more = RegionTicket {
        rights: Rights::ALL,
        ..region.ticket()
    };
    let refused = attach(&peer, &more).unwrap_err();
    assert!(is_unusable(&refused), "{refused}");
}

#[test]
fn what_cannot_be_shared_with_all_is_refused_by_name() {
    let namespace = namespace();
    let owner = open(&namespace);
    let refused = |new: NewSlot| {
        let slot = owner.session().open_slot(new).unwrap();
        try_all(&owner, &slot).unwrap_err()
    };
    let area = shared(4);
    let all = || NewSlot::new(&area).rights(Rights::ALL);
    // Rights that a mapping would exceed.
    for rights in [
        Rights::NONE,
        Rights::ATOMIC,
        Rights::READ.with(Rights::ATOMIC),
    ] {
        assert_eq!(refused(all().rights(rights)), ShareError::Rights);
    }
    for rights in [Rights::ALL, Rights::WRITE, Rights::READ.with(Rights::WRITE)] {
        let slot = owner.session().open_slot(all().rights(rights)).unwrap();
        let mut session = owner.session();
        let reading = session.share(&slot, 0..PAGE, Access::ReadOnly, Holders::Linked);
        assert_eq!(reading.unwrap_err(), ShareError::Rights);
    }
    // Memory of other kinds.
    let private = owner.session().allocate(PAGE).unwrap();
    let (handover, _reader) = owner.session().allocate_handover(4, 4096).unwrap();
    for area in [private, handover] {
        let refused = refused(NewSlot::over(area).rights(Rights::ALL));
        assert_eq!(refused, ShareError::Memory(MemoryError::NotSharable));
    }
    // Pages that are shared already, by way of another slot.
    let slot = owner.session().open_slot(all()).unwrap();
    let region = share(&owner, &slot);
    let twice = ShareError::Memory(MemoryError::SharedAlready);
    assert_eq!(refused(all()), twice);
    assert_eq!(refused(all().rights(Rights::READ)), twice);
    owner.session().revoke(&region).unwrap();
    // Slots of others and slots in the paranoid modes.
    for mode in [Mode::Paranoid, Mode::ParanoidOneShot] {
        let new = all().entries(1).mode(mode);
        let refused = owner.session().open_slot(new).unwrap_err();
        assert_eq!(refused, OpenError::Slot(SlotError::SharedArea));
    }
    // Regions of others.
    let other = open(&namespace);
    let (_area, slot) = shared_slot(&other, 1, Rights::ALL);
    let foreign = try_all(&other, &slot).unwrap();
    let refused = owner.session().revoke(&foreign);
    assert_eq!(refused, Err(ShareError::NoSuchRegion));
}

fn is_not_shared(result: &Result<Attached, AttachError>) -> bool {
    matches!(
        result,
        Err(AttachError::Fetch(ConnectError::NotShared { .. }))
    )
}

fn is_unusable(error: &AttachError) -> bool {
    matches!(error, AttachError::Unusable(_))
}

#[test]
fn closing_the_slot_revokes_and_full_tables_say_so() {
    let namespace = namespace();
    let owner = open(&namespace);
    let (area, slot) = shared_slot(&owner, 1, Rights::ALL);
    let region = share(&owner, &slot);
    let peer = open(&namespace);
    let attached = attach(&peer, &region.ticket()).unwrap();
    owner.session().close_slot(slot).unwrap();
    assert_eq!(owner.session().regions_shared(), 0);
    assert!(!attached.lasts());
    attached.window().store_u64(0, 1).unwrap();
    assert_eq!(area.load_u64(0), Ok(0));
    let mut slots = Vec::new();
    let full = loop {
        let (_area, slot) = shared_slot(&owner, 1, Rights::ALL);
        match try_all(&owner, &slot) {
            Ok(export) => slots.push((slot, export)),
            Err(error) => break error,
        }
    };
    assert_eq!(slots.len(), 256);
    let said = full.to_string();
    assert!(said.contains("all 256 regions"), "{said}");
    assert_eq!(owner.session().regions_shared(), 256);
    owner.session().revoke(&slots[0].1).unwrap();
    let (_area, slot) = shared_slot(&owner, 1, Rights::ALL);
    assert!(try_all(&owner, &slot).is_ok());
}

/// The owner's answer to a request in that name.
fn fetched(namespace: &str, owner: u64, interface: u64, secret: u64) -> (codec::Message, usize) {
    let socket = connect_to(namespace, owner);
    receive(&socket).unwrap();
    say_to(&socket, &codec::Message::Fetch { interface, secret }, &[]);
    let (answer, files) = receive(&socket).unwrap();
    (codec::decode(&answer).unwrap(), files.len())
}

#[test]
fn only_linked_peers_with_the_number_are_given_the_memory() {
    let namespace = namespace();
    let owner = open(&namespace);
    let me = owner.session().identity().interface;
    let (_area, slot) = shared_slot(&owner, 3, Rights::ALL);
    let region = share(&owner, &slot);
    let secret = region.ticket().secret;
    // Somebody without a link, with the right number.
    let refused = (codec::Message::NotShared, 0);
    assert_eq!(fetched(&namespace, me, 77, secret), refused);
    // With a link, but a wrong number; and then as often as it likes.
    let peer = open(&namespace);
    let identity = peer.session().identity().interface;
    let guess = RegionTicket {
        secret: secret ^ 1,
        ..region.ticket()
    };
    assert!(is_not_shared(&attach(&peer, &guess)));
    let given = codec::Message::Region {
        length_bytes: 3 * PAGE,
    };
    for _ in 0..3 {
        assert_eq!(
            fetched(&namespace, me, identity, secret),
            (given.clone(), 2)
        );
    }
    // In the name of the owner itself.
    assert_eq!(fetched(&namespace, me, me, secret), refused);
    // Once the link is gone.
    drop(peer);
    until("the loss", || {
        owner.session().poll();
        (owner.session().peers().count() == 0).then_some(())
    });
    assert_eq!(fetched(&namespace, me, identity, secret), refused);
    owner.session().revoke(&region).unwrap();
    let peer = open(&namespace);
    assert!(is_not_shared(&attach(&peer, &region.ticket())));
    // One's own, one that nobody is linked to, and one that is longer than it is.
    let own = owner.session().attach(&region.ticket(), LONG);
    assert_eq!(own.unwrap_err(), AttachError::Loopback);
    let mut stranger = region.ticket();
    stranger.ticket.destination.interface ^= 1;
    let refused = peer.session().attach(&stranger, LONG);
    assert_eq!(refused.unwrap_err(), AttachError::NotLinked);
    let region = try_all(&owner, &slot).unwrap();
    for (base, length_bytes) in [(0, 4 * PAGE), (0, PAGE)] {
        let mut crooked = region.ticket();
        (crooked.ticket.base, crooked.ticket.length_bytes) = (base, length_bytes);
        let refused = peer.session().attach(&crooked, LONG).unwrap_err();
        assert!(matches!(refused, AttachError::Length { .. }), "{refused}");
    }
    assert_eq!(peer.session().regions_attached(), 0);
}

#[test]
fn a_region_ends_with_its_owner() {
    let namespace = namespace();
    let peer = open(&namespace);
    let mut child = Actor::start("own", &namespace);
    let ticket = RegionTicket::from_bytes(&child.hear()).unwrap();
    let attached = attach(&peer, &ticket).unwrap();
    let window = attached.window();
    assert_eq!(window.load_u64(8), Ok(5));
    child.kill();
    until("the end", || {
        peer.session().poll();
        (!window.lasts()).then_some(())
    });
    assert_eq!(peer.session().regions_attached(), 0);
    // It stays mapped.
    window.store_u64(8, 6).unwrap();
    assert_eq!(window.load_u64(8), Ok(6));
    child.ended();
}

#[test]
fn regions_of_all_leave_no_descriptors_behind() {
    let namespace = namespace();
    let owner = open(&namespace);
    let peer = open(&namespace);
    let (_area, slot) = shared_slot(&owner, 4, Rights::ALL);
    let round = || {
        let region = share(&owner, &slot);
        let attached = attach(&peer, &region.ticket()).unwrap();
        owner.session().revoke(&region).unwrap();
        peer.session().detach(&attached);
    };
    // Other tests of this process open and close some, too: so there is no number to compare with,
    // but a thousand leaked ones would show.
    let before = descriptors();
    for _ in 0..1_000 {
        round();
    }
    assert!(descriptors() < before + 500);
}

#[test]
fn paranoid_slots_are_never_shared() {
    let namespace = namespace();
    let owner = open(&namespace);
    let peer = open(&namespace);
    let (shared, normal) = shared_slot(&owner, 4, Rights::WRITE);
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
        let refused = share_with(&owner, &slot, 0..PAGE, link).unwrap_err();
        let paranoid = GrantRefused::Paranoid(slot.name());
        assert_eq!(refused, ShareError::Refused(paranoid));
    }
    // In normal mode the same memory, range and peer are granted.
    assert!(share_with(&owner, &normal, 0..PAGE, link).is_ok());
}

#[test]
fn what_cannot_be_shared_with_one_is_refused_by_name() {
    let namespace = namespace();
    let owner = open(&namespace);
    let peer = open(&namespace);
    let (area, slot) = shared_slot(&owner, 64, Rights::WRITE);
    let ticket = slot.ticket(0, 0, PAGE).unwrap();
    peer.session().target(&ticket, LONG).unwrap();
    let link = link_to(&owner, peer.session().identity().interface);
    // Itself.
    let me = owner.session().identity();
    let own = owner
        .session()
        .connect(Address::Destination(me), LONG)
        .unwrap();
    let refused = share_with(&owner, &slot, 0..PAGE, own).unwrap_err();
    assert_eq!(refused, ShareError::Loopback);
    // Memory of other kinds.
    let private = owner.session().allocate(4 * PAGE).unwrap();
    let (handover, _reader) = owner.session().allocate_handover(4, 4096).unwrap();
    for area in [private, handover] {
        let other = owner.session().open_slot(NewSlot::over(area)).unwrap();
        let refused = share_with(&owner, &other, 0..PAGE, link).unwrap_err();
        assert_eq!(refused, ShareError::Memory(MemoryError::NotSharable));
        assert_eq!(owner.session().slot_info(&other).unwrap().grants, 0);
    }
    // Ranges that are no whole pages of the area, though they are of the slot.
    for range in [0..100, 1..PAGE, 0..PAGE + 1] {
        let refused = share_with(&owner, &slot, range, link).unwrap_err();
        assert!(matches!(
            refused,
            ShareError::Memory(MemoryError::NotPages { .. })
        ));
    }
    let new = NewSlot::new(&area).entries(1).range(100..3 * PAGE);
    let crooked = owner.session().open_slot(new).unwrap();
    let refused = share_with(&owner, &crooked, 0..PAGE, link).unwrap_err();
    assert!(matches!(
        refused,
        ShareError::Memory(MemoryError::NotPages { .. })
    ));
    assert!(share_with(&owner, &crooked, PAGE - 100..2 * PAGE - 100, link).is_ok());
    // The same pages by way of another slot, and outside the slot.
    let refused = share_with(&owner, &slot, 0..2 * PAGE, link).unwrap_err();
    assert_eq!(refused, ShareError::Memory(MemoryError::SharedAlready));
    let refused = share_with(&owner, &slot, 0..65 * PAGE, link).unwrap_err();
    assert!(matches!(
        refused,
        ShareError::Refused(GrantRefused::OutsideSlot { .. })
    ));
    // Too many.
    for page in 2..2 + GRANTS_PER_SLOT_MAX as u64 {
        let range = page * PAGE..(page + 1) * PAGE;
        assert!(share_with(&owner, &slot, range, link).is_ok());
    }
    let refused = share_with(&owner, &slot, 60 * PAGE..61 * PAGE, link).unwrap_err();
    assert_eq!(refused, ShareError::Refused(GrantRefused::TooMany));
    // Nobody.
    drop(peer);
    until("the loss", || {
        owner.session().poll();
        owner.session().link_end(link)
    });
    let refused = share_with(&owner, &slot, 60 * PAGE..61 * PAGE, link).unwrap_err();
    assert!(matches!(refused, ShareError::NoLink(_)), "{refused}");
}

#[test]
fn a_region_is_for_one_peer_and_fetched_once() {
    let namespace = namespace();
    let owner = open(&namespace);
    let peer = open(&namespace);
    let thief = open(&namespace);
    let (_area, slot) = shared_slot(&owner, 4, Rights::WRITE);
    let ticket = slot.ticket(0, 0, PAGE).unwrap();
    for other in [&peer, &thief] {
        other.session().target(&ticket, LONG).unwrap();
    }
    let link = link_to(&owner, peer.session().identity().interface);
    link_to(&owner, thief.session().identity().interface);
    let region = share_with(&owner, &slot, 0..PAGE, link).unwrap();
    assert!(is_not_shared(&attach(&thief, &region.ticket())));
    let guess = RegionTicket {
        secret: region.ticket().secret ^ 1,
        ..region.ticket()
    };
    assert!(is_not_shared(&attach(&peer, &guess)));
    // Once, though whoever has it gets it again from its own table.
    let attached = attach(&peer, &region.ticket()).unwrap();
    assert!(attach(&peer, &region.ticket()).is_ok());
    peer.session().detach(&attached);
    assert!(is_not_shared(&attach(&peer, &region.ticket())));
    // The control thread counts after it has answered.
    until("the counts", || {
        let counters = owner.session().host().rendezvous_counters();
        ((counters.shared, counters.not_shared) == (1, 3)).then_some(())
    });
    // A region that was revoked before it was fetched cannot be fetched.
    owner.session().revoke(&region).unwrap();
    let region = share_with(&owner, &slot, 0..PAGE, link).unwrap();
    owner.session().revoke(&region).unwrap();
    assert!(is_not_shared(&attach(&peer, &region.ticket())));
    // A ticket that lies about the length.
    let region = share_with(&owner, &slot, 0..2 * PAGE, link).unwrap();
    let mut longer = region.ticket();
    longer.ticket.length_bytes = 3 * PAGE;
    let refused = attach(&peer, &longer).unwrap_err();
    assert!(matches!(refused, AttachError::Length { .. }), "{refused}");
}

/// What is placed is in the owner's memory as soon as it was sent; a copy is there once the owner
/// looks.
#[test]
fn only_messages_that_gain_by_it_are_placed() {
    let namespace = namespace();
    let owner = open(&namespace);
    let peer = open(&namespace);
    let (area, slot) = shared_slot(&owner, 4, Rights::WRITE);
    let ticket = slot.ticket(0, 0, 4 * PAGE).unwrap();
    let target = peer.session().target(&ticket, LONG).unwrap();
    let link = link_to(&owner, peer.session().identity().interface);
    let region = share_with(&owner, &slot, 0..4 * PAGE, link).unwrap();
    peer.session().attach(&region.ticket(), LONG).unwrap();
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

/// One packet tells of a message of many packets' length; without a region nothing is sent.
#[test]
fn a_message_of_any_length_is_placed_whole_or_not_at_all() {
    const PAGES: u64 = 256;
    let namespace = namespace();
    let owner = open(&namespace);
    let peer = open(&namespace);
    let (area, slot) = shared_slot(&owner, PAGES, Rights::WRITE);
    let ticket = slot.ticket(0, 0, PAGES * PAGE).unwrap();
    let target = peer.session().target(&ticket, LONG).unwrap();
    let link = link_to(&owner, peer.session().identity().interface);
    let data = vec![7; (PAGES * PAGE) as usize];
    let place = |offset: u64| {
        let message = Message::new(&data[offset as usize..]).at(offset);
        let terminus = peer.terminus();
        peer.session().try_place(terminus, &target, &message)
    };
    let is_placed = || {
        let mut found = vec![0; data.len()];
        area.read_at(0, &mut found).unwrap();
        found == data
    };
    assert_eq!(place(0), Ok(Placing::NotAttached));
    peer.session().flush(LONG).unwrap();
    assert_eq!(owner.session().poll(), 0);
    let region = share_with(&owner, &slot, 0..PAGES * PAGE, link).unwrap();
    peer.session().attach(&region.ticket(), LONG).unwrap();
    assert!(matches!(place(0), Ok(Placing::Sent(_))));
    assert!(is_placed());
    let packets = until("its packet", || {
        Some(owner.session().poll()).filter(|it| *it > 0)
    });
    assert_eq!(packets, 1);
    owner.session().revoke(&region).unwrap();
    assert_eq!(place(PAGE), Ok(Placing::NotAttached));
}

#[test]
fn regions_of_one_leave_no_descriptors_behind() {
    let namespace = namespace();
    let owner = open(&namespace);
    let peer = open(&namespace);
    let (_area, slot) = shared_slot(&owner, 4, Rights::WRITE);
    let ticket = slot.ticket(0, 0, PAGE).unwrap();
    peer.session().target(&ticket, LONG).unwrap();
    let link = link_to(&owner, peer.session().identity().interface);
    let round = || {
        let region = share_with(&owner, &slot, 0..4 * PAGE, link).unwrap();
        let accepted = peer.session().attach(&region.ticket(), LONG).unwrap();
        owner.session().revoke(&region).unwrap();
        peer.session().detach(&accepted);
    };
    // Other tests of this process open and close some, too: so there is no number to compare with,
    // but a thousand leaked ones would show.
    let before = descriptors();
    for _ in 0..1_000 {
        round();
    }
    assert!(descriptors() < before + 500);
}

/// What the child does: it shares, and waits to be killed.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Some((role, namespace)) = role() else {
        return;
    };
    let manager = open(&namespace);
    assert_eq!(role, "own");
    {
        let (area, slot) = shared_slot(&manager, 4, Rights::ALL);
        area.store_u64(8, 5).unwrap();
        let region = share(&manager, &slot);
        say(&region.ticket().to_bytes());
        loop {
            let _ = manager.wait(Wait::Forever);
        }
    }
}
