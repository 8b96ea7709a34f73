use super::entry::Neighbour;
use super::*;
use crate::process::counters::Outcome;
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::shared::{Mapping, PAGE_BYTES};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

const OWN: PeerKey = PeerKey::neighbour(1, 1000);

fn key(interface: u64, user: u32) -> PeerKey {
    PeerKey::neighbour(interface, user)
}

fn wake_word() -> WakeWord {
    let page = Mapping::anonymous(PAGE_BYTES).unwrap();
    WakeWord::new(Arc::new(page), Geometry::DEFAULT).unwrap()
}

/// Enters a link that carries nothing; returns the other end of its socket.
fn enter(registry: &Registry, key: PeerKey) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let kind = SocketType::SEQPACKET;
    let (here, there) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
    let mut state = registry.lock();
    let token = state.new_token();
    let neighbour = Neighbour {
        control: Arc::new(here.into()),
        process: None,
        process_number: 0,
        wake_word: wake_word(),
        goodbye: false,
    };
    let entry = Entry {
        key,
        handle: PeerHandle::Local(neighbour),
        lost: false,
    };
    registry.watch_over(token, &entry).unwrap();
    state.links.insert(token, entry);
    state.by_key.insert(key, token);
    there
}

#[test]
fn no_other_user_has_more_than_half_of_the_links() {
    let registry = Registry::new(OWN, 5).unwrap();
    let mut others = Vec::new();
    for interface in 10..13 {
        let key = key(interface, 7);
        assert!(registry.begin_incoming(key).is_ok());
        registry.give_up_incoming(key);
        others.push(enter(&registry, key));
    }
    assert_eq!(registry.begin_incoming(key(13, 7)), Err(Outcome::TooMany));
    // A link that ended counts until the application has heard of it.
    others.remove(0);
    registry.peer_closed(1);
    assert_eq!(registry.begin_incoming(key(13, 7)), Err(Outcome::TooMany));
    registry.lock().pending_losses.clear();
    let mut state = registry.lock();
    registry.lose(&mut state, 1, LossCause::Closed);
    drop(state);
    assert!(matches!(
        registry.next_event(),
        Some(Event::Lost { token: 1, .. })
    ));
    assert_eq!(registry.begin_incoming(key(13, 7)), Err(Outcome::TooMany));
    registry.disconnect(1);
    assert!(registry.begin_incoming(key(13, 7)).is_ok());
    registry.give_up_incoming(key(13, 7));
    others.push(enter(&registry, key(13, 7)));
    // Others have what is left, ourselves all of it, and all of us no more than there is.
    assert!(registry.begin_incoming(key(14, 8)).is_ok());
    registry.give_up_incoming(key(14, 8));
    for interface in 20..22 {
        assert!(registry.begin_incoming(key(interface, OWN.user)).is_ok());
        registry.give_up_incoming(key(interface, OWN.user));
        others.push(enter(&registry, key(interface, OWN.user)));
    }
    for user in [7, 8, OWN.user] {
        assert_eq!(
            registry.begin_incoming(key(99, user)),
            Err(Outcome::TooMany)
        );
    }
}

#[test]
fn the_only_link_may_be_anybodys() {
    let registry = Registry::new(OWN, 1).unwrap();
    assert!(registry.begin_incoming(key(10, 7)).is_ok());
}

#[test]
fn senders_must_pass_a_barrier_only_if_there_are_any_on_this_host() {
    let alone = Registry::new(OWN, 5).unwrap();
    assert!(!alone.has_doorbells());
    alone.lock().loopback = Some((1, wake_word()));
    assert!(alone.has_doorbells());
    let linked = Registry::new(OWN, 5).unwrap();
    let _peer = enter(&linked, key(10, 7));
    assert!(linked.has_doorbells());
}

/// Handshakes that are not over count as the links that they may become, and no peer has two of
/// them.
#[test]
fn who_is_welcomed_has_the_place_of_a_link() {
    let registry = Registry::new(OWN, 3).unwrap();
    assert_eq!(registry.begin_incoming(key(10, 7)), Ok(()));
    let refused = registry.begin_incoming(key(10, 7));
    assert_eq!(refused, Err(Outcome::Simultaneous));
    assert!(matches!(
        registry.begin_outgoing(key(10, 7), 1),
        Outgoing::UnderWay
    ));
    assert_eq!(registry.begin_incoming(key(11, 7)), Ok(()));
    assert_eq!(registry.begin_incoming(key(12, 7)), Err(Outcome::TooMany));
    assert_eq!(registry.begin_incoming(key(12, 8)), Ok(()));
    assert!(matches!(
        registry.begin_outgoing(key(13, 8), 1),
        Outgoing::Full
    ));
    assert_eq!(
        registry.begin_incoming(key(13, OWN.user)),
        Err(Outcome::TooMany)
    );
    registry.give_up_incoming(key(11, 7));
    assert_eq!(registry.begin_incoming(key(12, 7)), Ok(()));
}

/// A host may name another user each time; its key says which host it is.
#[test]
fn no_other_host_has_more_than_half_of_the_links() {
    let afar = |interface, node, user| PeerKey {
        interface,
        node,
        user,
    };
    let registry = Registry::new(OWN, 6).unwrap();
    for number in 0..3 {
        let key = afar(10 + u64::from(number), 7, number);
        assert_eq!(registry.begin_incoming_from_afar(key, true), Ok(()));
    }
    for user in [3, OWN.user] {
        let refused = registry.begin_incoming_from_afar(afar(13, 7, user), true);
        assert_eq!(refused, Err(Outcome::TooMany));
    }
    assert_eq!(
        registry.begin_incoming_from_afar(afar(13, 8, 0), true),
        Ok(())
    );
    // Nor do the users that it names take the places of users of this host.
    assert_eq!(registry.begin_incoming(key(14, 1)), Ok(()));
    let registry = Registry::new(OWN, 6).unwrap();
    for interface in 10..13 {
        let key = afar(interface, 7, 1);
        assert_eq!(registry.begin_incoming_from_afar(key, false), Ok(()));
    }
    let refused = registry.begin_incoming_from_afar(afar(13, 8, 1), false);
    assert_eq!(refused, Err(Outcome::TooMany));
    assert_eq!(registry.begin_incoming(key(14, 1)), Ok(()));
}

/// The number of an interface and its user are known to others; its process is known to the
/// kernel.
#[test]
fn only_the_process_that_is_shaken_hands_with_is_linked() {
    let registry = Registry::new(OWN, 6).unwrap();
    let (key, process) = (key(10, 7), 77);
    assert!(!registry.is_linked(key, process));
    let begun = registry.begin_outgoing(key, process);
    assert!(matches!(begun, Outgoing::Begun));
    assert!(registry.is_linked(key, process));
    assert!(!registry.is_linked(key, process + 1));
    registry.end_outgoing(key);
    assert!(!registry.is_linked(key, process));
}
