//! Links that end begin anew, from either side and from both.

use hamlyn::datagram::{Receiver, Sender};
use hamlyn::{Ticket, Wait};

use crate::peer::Peer;
use crate::{Host, World};

const GROW: Wait = Wait::millis(10_000);
const ROUNDS: u32 = 12;

fn inbox(peer: &Peer) -> Receiver<Host> {
    let mut inbox = peer.with(|manager| Receiver::<Host>::new(manager, 100).unwrap());
    inbox.ready();
    inbox
}

/// Links to the receiver anew, and sends it a number that it will take.
fn send(peer: &Peer, ticket: &Ticket, round: u32) {
    let sender = peer.with(|manager| Sender::grow(manager, ticket, GROW).unwrap());
    peer.send(|_, _| sender.send_to(0, &round.to_le_bytes(), None, GROW))
        .unwrap();
}

fn take(peer: &Peer, inbox: &mut Receiver<Host>, round: u32) {
    let had = peer.receive("a message", |_, wait| {
        let message = inbox.recv(wait)?;
        Ok(message.map(|message| message.to_vec()))
    });
    assert_eq!(had, round.to_le_bytes());
    inbox.ready();
}

fn end_links(peer: &Peer) {
    peer.with(|manager| {
        let mut session = manager.session();
        let links: Vec<_> = session.peers().map(|(link, _)| link).collect();
        links.into_iter().for_each(|link| session.disconnect(link));
    });
}

fn until_ended(peer: &Peer) {
    peer.until("the end of the link", |manager, _| {
        let mut session = manager.session();
        session.poll();
        session.peers().next().is_none().then_some(())
    });
}

pub(crate) fn a_link_that_the_peer_ended_begins_anew(world: &World) {
    world.run(&[
        &|peer| {
            let mut inbox = inbox(peer);
            peer.put_ticket("ticket", &inbox.ticket());
            for round in 0..ROUNDS {
                take(peer, &mut inbox, round);
                end_links(peer);
            }
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            for round in 0..ROUNDS {
                send(peer, &ticket, round);
                until_ended(peer);
            }
        },
    ]);
}

pub(crate) fn both_end_a_link_and_begin_it_anew(world: &World) {
    let role = |peer: &Peer, own: &str, other: &str| {
        let mut inbox = inbox(peer);
        peer.put_ticket(own, &inbox.ticket());
        let ticket = peer.get_ticket(other);
        for round in 0..ROUNDS {
            send(peer, &ticket, round);
            take(peer, &mut inbox, round);
            peer.put(&format!("{own} took {round}"), &[]);
            peer.get(&format!("{other} took {round}"));
            end_links(peer);
            until_ended(peer);
            peer.put(&format!("{own} ended {round}"), &[]);
            peer.get(&format!("{other} ended {round}"));
        }
    };
    world.run(&[&|peer| role(peer, "first", "second"), &|peer| {
        role(peer, "second", "first")
    }]);
}
