//! Nodes that end, and interfaces that are no nodes.

use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::transport::Return;
use hamlyn::host::Supply;
use hamlyn::ticket::TICKET_BYTES;
use hamlyn::{Address, NewPort, Ticket, Wait};
use hamlyn_udm::{Error, Event, Group, GroupOptions, HANDLERS_MAX, InjectError, Udm, UdmOptions};

use crate::world::{LONG, adds, serve_until};
use crate::{World, open_unnamed};

/// Messages of a node that has ended arrive; then it is lost by name, and others go on.
pub(crate) fn a_node_that_ends_is_lost_by_name(world: World) {
    world.run_group(3, |group| {
        let options = UdmOptions::default();
        let mut udm = Udm::open(&group, "main", options, 0_u32, LONG).unwrap();
        adds(&mut udm, 0, 1);
        adds(&mut udm, 1, 1000);
        udm.barrier(LONG).unwrap();
        if udm.me() == 2 {
            for to in [0, 1] {
                for _ in 0..100 {
                    udm.inject(to, 0, &[]).unwrap();
                }
            }
            assert!(udm.flush(LONG).unwrap());
            return;
        }
        while udm.lost(2).is_none() {
            udm.serve(LONG).unwrap();
        }
        // Some of it may have been about to be taken.
        while *udm.state() % 1000 < 100 {
            udm.serve(LONG).unwrap();
        }
        assert_eq!(*udm.state() % 1000, 100);
        let mut events = std::iter::from_fn(|| group.next_event());
        assert!(events.any(|event| matches!(event, Event::Lost { node: 2, .. })));
        let sent = udm.inject(2, 0, &[]);
        assert!(
            matches!(sent, Err(InjectError::Lost { to: 2, .. })),
            "{sent:?}"
        );
        let other = 1 - udm.me();
        udm.inject(other, 1, &[]).unwrap();
        while *udm.state() != 1100 {
            udm.serve(LONG).unwrap();
        }
        assert!(udm.flush(LONG).unwrap());
        if udm.me() == 1 {
            while udm.lost(0).is_none() {
                udm.serve(LONG).unwrap();
            }
            return;
        }
        // Of node 2 it awaits a message in the first round.
        let barrier = udm.barrier(LONG);
        assert!(
            matches!(barrier, Err(Error::Lost { node: 2, .. })),
            "{barrier:?}"
        );
    });
}

/// The ticket of the port that an end point offers.
fn ticket_of(offer: &[u8]) -> Ticket {
    Ticket::from_bytes(&offer[..TICKET_BYTES]).unwrap()
}

/// A node whose link has ended is lost, also if its interface makes another one: whatever was under
/// way over the first is not known.
pub(crate) fn a_node_that_links_anew_is_lost(world: World) {
    world.place.run(2, &|manager, number, names| {
        let options = GroupOptions {
            name: "cases".into(),
            me: number as u32,
            addresses: names.to_vec(),
        };
        let group = Group::new(manager.clone(), options).unwrap();
        let mut udm = Udm::open(&group, "main", UdmOptions::default(), 0_u32, LONG).unwrap();
        adds(&mut udm, 0, 1);
        udm.barrier(LONG).unwrap();
        let other = 1 - udm.me();
        if number == 0 {
            // The barrier's message may wait in this node.
            assert!(udm.flush(LONG).unwrap());
            let mut session = manager.session();
            let address = Address::Name(&names[1]);
            let ticket = session.ask(address, "udm.main", LONG).unwrap();
            let links: Vec<_> = session.peers().map(|(link, _)| link).collect();
            links.into_iter().for_each(|link| session.disconnect(link));
            let to = session.target(&ticket_of(&ticket), LONG).unwrap();
            session.send_message(&to, 0, &[], LONG).unwrap();
            assert!(session.flush(LONG).unwrap());
        }
        while udm.lost(other).is_none() {
            udm.serve(Wait::millis(10)).unwrap();
        }
        let mut events = std::iter::from_fn(|| group.next_event());
        assert!(events.any(|event| matches!(event, Event::Lost { node, .. } if node == other)));
        while number == 1 && udm.statistics().strangers == 0 {
            udm.serve(Wait::millis(10)).unwrap();
        }
        assert_eq!(*udm.state(), 0, "a handler ran for a node that was lost");
        let sent = udm.inject(other, 0, &[]);
        assert!(matches!(sent, Err(InjectError::Lost { .. })), "{sent:?}");
        // Another end point would not know what its messages miss.
        let again = Udm::open(&group, "again", UdmOptions::default(), (), LONG);
        assert!(
            matches!(again, Err(Error::Lost { .. })),
            "{:?}",
            again.err()
        );
    });
}

/// What was refused over a link that has ended is nothing of the node that is met over another one.
pub(crate) fn what_an_old_link_did_is_not_the_nodes(world: World) {
    /// More than a node hears of before it has met the others, and as many as are kept.
    const REFUSED: u32 = 60;
    let has_refused = AtomicBool::new(false);
    world.place.run(2, &|manager, number, names| {
        let has_peers = || manager.session().peers().next().is_some();
        if number == 0 {
            let mut session = manager.session();
            let ticket = session.ask(Address::Name(&names[1]), "port", LONG);
            let ticket = Ticket::from_bytes(&ticket.unwrap()).unwrap();
            let to = session.target(&ticket, LONG).unwrap();
            for _ in 0..REFUSED {
                session.send_message(&to, 0, &[], LONG).unwrap();
            }
            // What was refused is known by now, and not heard.
            let _ = session.fence(LONG);
            session.disconnect(to.link());
            has_refused.store(true, Ordering::SeqCst);
        } else {
            let port = manager.session().open_port(NewPort::new()).unwrap();
            let mut ticket = port.ticket();
            ticket.base = 57;
            let offered = manager
                .session()
                .offer("port", Supply::Always, &ticket.to_bytes());
            offered.unwrap();
            while !has_refused.load(Ordering::SeqCst) || has_peers() {
                manager.wait(Wait::millis(1)).unwrap();
            }
        }
        let options = GroupOptions {
            name: "cases".into(),
            me: number as u32,
            addresses: names.to_vec(),
        };
        let group = Group::new(manager.clone(), options).unwrap();
        let mut udm = Udm::open(&group, "main", UdmOptions::default(), 0_u32, LONG).unwrap();
        adds(&mut udm, 0, 1);
        udm.inject(1 - udm.me(), 0, &[]).unwrap();
        serve_until(&mut udm, |had| *had == 1);
        udm.barrier(LONG).unwrap();
        // The other one may have ended meanwhile.
        let mut events = std::iter::from_fn(|| group.next_event());
        assert!(events.all(|event| matches!(event, Event::Lost { .. })));
        assert!(udm.flush(LONG).unwrap());
    });
}

/// An interface that learns the ticket of a port reaches no handler without being a node.
pub(crate) fn strangers_reach_no_handler(world: World) {
    world.run_group(2, |group| {
        let mut udm = Udm::open(&group, "main", UdmOptions::default(), 0_u32, LONG).unwrap();
        adds(&mut udm, 0, 1);
        adds(&mut udm, 1, 100);
        udm.barrier(LONG).unwrap();
        let other = 1 - udm.me();
        if udm.me() == 0 {
            let stranger = open_unnamed();
            let mut session = stranger.session();
            let ticket = session.ask(
                Address::Name(group.address(other).unwrap()),
                "udm.main",
                LONG,
            );
            let to = session.target(&ticket_of(&ticket.unwrap()), LONG).unwrap();
            session.send_message(&to, 0, b"let me in", LONG).unwrap();
            session.fence(LONG).unwrap();
            drop(session);
            udm.inject(other, 1, &[]).unwrap();
            assert!(udm.flush(LONG).unwrap());
            return;
        }
        serve_until(&mut udm, |had| *had == 100);
        while udm.statistics().strangers == 0 {
            udm.serve(Wait::millis(10)).unwrap();
        }
        assert_eq!((*udm.state(), udm.statistics().strangers), (100, 1));
    });
}

/// Nodes that take themselves for another group hear that they are none.
pub(crate) fn other_groups_are_refused(world: World) {
    // A barrier would be refused, too.
    let has_opened = AtomicBool::new(false);
    world.place.run(2, &|manager, number, names| {
        let options = GroupOptions {
            name: format!("group-{number}"),
            me: number as u32,
            addresses: names.to_vec(),
        };
        let group = Group::new(manager, options).unwrap();
        let mut udm = Udm::open(&group, "main", UdmOptions::default(), (), LONG).unwrap();
        let other = 1 - udm.me();
        if number == 0 {
            has_opened.store(true, Ordering::Relaxed);
            while udm.lost(other).is_none() {
                udm.serve(LONG).unwrap();
            }
            assert_eq!(udm.statistics().received, 0);
            return;
        }
        while !has_opened.load(Ordering::Relaxed) {
            udm.serve(Wait::millis(1)).unwrap();
        }
        udm.inject(other, 0, &[]).unwrap();
        let reason = loop {
            match group.next_event() {
                Some(Event::Refused { node: 0, reason }) => break reason,
                Some(event) => panic!("{event:?}"),
                None => drop(udm.serve(Wait::millis(10)).unwrap()),
            }
        };
        assert_eq!(reason, Return::Refused(Refusal::WrongGroup));
    });
}

/// An end point that is dropped refuses what comes, by name; the others of its group go on, and
/// another one may be opened.
pub(crate) fn a_dropped_end_point_refuses(world: World) {
    world.run_group(2, |group| {
        let options = UdmOptions::default();
        let mut first = Udm::open(&group, "first", options, 0_u32, LONG).unwrap();
        adds(&mut first, 0, 1);
        let mut second = Udm::open(&group, "second", options, (), LONG).unwrap();
        first.barrier(LONG).unwrap();
        let other = 1 - group.me();
        if group.me() == 1 {
            let twice = Udm::open(&group, "second", options, (), LONG);
            assert_eq!(twice.err(), Some(Error::NameInUse));
            drop(second);
            first.barrier(LONG).unwrap();
        } else {
            first.barrier(LONG).unwrap();
            second.inject(other, 0, &[]).unwrap();
            let reason = loop {
                match group.next_event() {
                    Some(Event::Refused { node: 1, reason }) => break reason,
                    Some(event) => panic!("{event:?}"),
                    None => drop(first.serve(Wait::millis(10)).unwrap()),
                }
            };
            assert_eq!(reason, Return::Refused(Refusal::PortClosed));
        }
        first.inject(other, 0, &[]).unwrap();
        serve_until(&mut first, |had| *had == 1);
        first.barrier(LONG).unwrap();
        let mut again = Udm::open(&group, "third", options, (), LONG).unwrap();
        again.barrier(LONG).unwrap();
        assert!(first.flush(LONG).unwrap());
    });
}

/// A sender that does not follow the rules changes nothing beyond its data, and runs no handler.
pub(crate) fn data_that_are_none_are_counted(world: World) {
    world.place.run(2, &|manager, number, names| {
        let options = GroupOptions {
            name: "cases".into(),
            me: number as u32,
            addresses: names.to_vec(),
        };
        let group = Group::new(manager.clone(), options).unwrap();
        let area_bytes = 64;
        let options = UdmOptions {
            area_bytes,
            ..UdmOptions::default()
        };
        let mut udm = Udm::open(&group, "main", options, 0_u32, LONG).unwrap();
        adds(&mut udm, 0, 1);
        udm.barrier(LONG).unwrap();
        if number == 0 {
            let layer = HANDLERS_MAX + 1;
            // Handler, bytes of words, zero, begin, place, words, data.
            let piece = |handler: u16, words: u16, begin: u64, at: u64, rest: &[u8]| {
                let mut bytes = Vec::new();
                bytes.extend_from_slice(&handler.to_le_bytes());
                bytes.extend_from_slice(&words.to_le_bytes());
                bytes.extend_from_slice(&[0; 4]);
                bytes.extend_from_slice(&begin.to_le_bytes());
                bytes.extend_from_slice(&at.to_le_bytes());
                bytes.extend_from_slice(rest);
                bytes
            };
            let bad = [
                Vec::new(),
                piece(0, 0, 0, 0, &[])[..23].to_vec(),
                piece(0, 0, 0, 61, &[1; 4]),
                piece(0, 0, 0, u64::MAX, &[1; 4]),
                piece(0, 0, u64::MAX - 1, u64::MAX - 1, &[1; 4]),
                piece(0, 0, 9, 8, &[1; 4]),
                piece(0, 60, 0, 0, &[1; 64]),
                piece(0, 4, 0, 0, &[1; 3]),
                piece(HANDLERS_MAX, 0, 0, 0, &[1; 4]),
                piece(HANDLERS_MAX + 1, 0, 0, 0, &[1; 4]),
            ];
            let mut session = manager.session();
            let offer = session.ask(Address::Name(&names[1]), "udm.main", LONG);
            let mut ticket = ticket_of(&offer.unwrap());
            // That of the group.
            let sum = ring::digest::digest(&ring::digest::SHA256, b"cases");
            ticket.base = u64::from_le_bytes(sum.as_ref()[..8].try_into().unwrap());
            let to = session.target(&ticket, LONG).unwrap();
            // Between hosts messages have numbers, of which the barrier had the first.
            let is_far = session.connection_state(to.link()).is_some();
            for (number, bytes) in (1_u32..).zip(&bad) {
                let numbered = [&number.to_le_bytes()[..], bytes].concat();
                let bytes = if is_far { &numbered } else { bytes };
                session.send_message(&to, layer, bytes, LONG).unwrap();
            }
            assert!(session.flush(LONG).unwrap());
            drop(session);
            while udm.lost(1).is_none() {
                udm.serve(Wait::millis(10)).unwrap();
            }
            return;
        }
        while udm.statistics().wrong < 10 {
            udm.serve(Wait::millis(10)).unwrap();
        }
        assert_eq!((*udm.state(), udm.statistics().wrong), (0, 10));
        assert!(udm.area().iter().all(|byte| *byte == 0));
    });
}
