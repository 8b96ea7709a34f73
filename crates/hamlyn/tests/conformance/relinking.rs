//! Links that end begin anew, from either side and from both.

use hamlyn::completions::CompletionError;
use hamlyn::datagram::{Receiver, Sender};
use hamlyn::{FenceError, Message, Ticket, Wait, mailbox};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::low_level::{RxSlot, send as send_message, target};
use crate::peer::{Peer, TIMEOUT};
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

pub(crate) fn a_link_that_the_peer_ended_begins_anew(world: &World) {
    world.run(&[
        &|peer| {
            let mut inbox = inbox(peer);
            peer.put_ticket("ticket", &inbox.ticket());
            for round in 0..ROUNDS {
                take(peer, &mut inbox, round);
                peer.end_links();
            }
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            for round in 0..ROUNDS {
                send(peer, &ticket, round);
                peer.unlinked();
            }
        },
    ]);
}

/// Sleeps at the descriptor until `look` finds something; where there is none, looks again.
fn in_a_loop<R>(peer: &Peer, what: &str, mut look: impl FnMut() -> Option<R>) -> R {
    let mut handle = peer.with(|manager| manager.clone());
    peer.until(what, |_, _| {
        if let Some(found) = look() {
            return Some(found);
        }
        let descriptor = handle.descriptor().cloned();
        // Whatever is overlooked takes longer than the test may.
        let sleep = handle.prepare_sleep(Wait::For(2 * TIMEOUT)).unwrap();
        if let (Some(descriptor), Some(sleep)) = (descriptor, sleep) {
            let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
            let span = Timespec::try_from(sleep.timeout().unwrap()).unwrap();
            poll(&mut polled, Some(&span)).unwrap();
        }
        None
    })
}

pub(crate) fn a_loop_hears_of_links_that_begin_anew(world: &World) {
    world.run(&[
        &|peer| {
            let mut inbox = inbox(peer);
            peer.put_ticket("ticket", &inbox.ticket());
            for round in 0..ROUNDS {
                let had = in_a_loop(peer, "a message", || {
                    inbox.recv(Wait::Poll).unwrap().map(|came| came.to_vec())
                });
                assert_eq!(had, round.to_le_bytes());
                inbox.ready();
                peer.end_links();
            }
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            for round in 0..ROUNDS {
                send(peer, &ticket, round);
                in_a_loop(peer, "the end of the link", || {
                    peer.with(|manager| {
                        let mut session = manager.session();
                        session.poll();
                        session.peers().next().is_none().then_some(())
                    })
                });
            }
        },
    ]);
}

/// A network processor knows of a link, and takes its messages, before the program hears of either.
pub(crate) fn the_link_of_a_message_is_known_with_it(world: &World) {
    world.run(&[
        &|peer| {
            let mut at = RxSlot::new(peer, 64, |new| new);
            peer.put_ticket("ticket", &at.slot.fast_ticket(0, 64).unwrap());
            for round in 0..ROUNDS {
                peer.until("a message", |manager, _| {
                    let mut session = manager.session();
                    let told = session.rcv(&mut at.queue).unwrap()?;
                    assert_eq!(told.word, u64::from(round));
                    assert_eq!(session.link_end(told.from), None);
                    assert!(session.peers().any(|(link, _)| link == told.from));
                    assert!(session.set_link_context(told.from, 1));
                    session.disconnect(told.from);
                    Some(())
                });
            }
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            for round in 0..ROUNDS {
                let to = target(peer, &ticket);
                send_message(peer, &to, &Message::new(&[]).word(u64::from(round)));
                peer.unlinked();
            }
        },
    ]);
}

pub(crate) fn a_refusal_tells_of_its_link_though_there_is_another(world: &World) {
    world.run(&[
        &|peer| {
            let at = RxSlot::new(peer, 64, |new| new);
            peer.put_ticket("ticket", &at.slot.fast_ticket(0, 64).unwrap());
            peer.with(|manager| manager.session().revoke_slot(&at.slot))
                .unwrap();
            peer.put("revoked", &[]);
            peer.get("through");
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            peer.get("revoked");
            let links = [(); 2].map(|()| {
                let to = target(peer, &ticket);
                let link = to.link();
                let context = link.to_bits();
                peer.with(|manager| assert!(manager.session().set_link_context(link, context)));
                send_message(peer, &to, &Message::new(&[1; 16]));
                let fenced = peer.until("a fence", |manager, wait| {
                    match manager.session().fence_link(link, wait) {
                        Err(FenceError::TimedOut { .. }) => None,
                        other => Some(other),
                    }
                });
                assert!(matches!(fenced, Err(FenceError::Refused { .. })));
                peer.end_links();
                link
            });
            let to = target(peer, &ticket);
            assert!(!links.contains(&to.link()));
            let told = links.map(|_| {
                peer.with(|manager| {
                    let mut session = manager.session();
                    let queue = session.open_completions(1).unwrap();
                    session.track_refusals(&queue).unwrap();
                    let told = session.next_completion(&queue).unwrap();
                    let Err(CompletionError::Returned(refused)) = told.result else {
                        panic!("{told:?}");
                    };
                    assert_eq!(told.context, refused.link.to_bits());
                    refused.link
                })
            });
            assert_eq!(told, links);
            peer.put("through", &[]);
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
            peer.end_links();
            peer.unlinked();
            peer.put(&format!("{own} ended {round}"), &[]);
            peer.get(&format!("{other} ended {round}"));
        }
    };
    world.run(&[&|peer| role(peer, "first", "second"), &|peer| {
        role(peer, "second", "first")
    }]);
}

/// Each link ends while the other one is there, or begins.
pub(crate) fn links_of_two_peers_begin_anew_side_by_side(world: &World) {
    const SENDERS: usize = 2;
    let sender = |peer: &Peer, number: usize| {
        let ticket = peer.get_ticket("ticket");
        for round in 0..ROUNDS {
            let sender =
                peer.with(|manager| mailbox::Sender::<Host>::grow(manager, &ticket, GROW).unwrap());
            let mail = [number as u8, round as u8];
            peer.send(|_, _| sender.send(&mail, GROW)).unwrap();
            peer.unlinked();
        }
    };
    world.run(&[
        &|peer| {
            let mut mailbox = peer.with(|manager| {
                let options = mailbox::MailboxOptions::default();
                mailbox::Receiver::<Host>::new(manager, options).unwrap()
            });
            peer.put_ticket("ticket", &mailbox.ticket());
            let mut rounds = [0; SENDERS];
            while rounds != [ROUNDS; SENDERS] {
                let (mail, from) = peer.receive("mail", |_, wait| {
                    let mail = mailbox.recv(wait)?;
                    Ok(mail.map(|mail| (mail.to_vec(), mail.from())))
                });
                let next = &mut rounds[usize::from(mail[0])];
                assert_eq!(u32::from(mail[1]), *next);
                *next += 1;
                peer.with(|manager| manager.session().disconnect(from));
            }
        },
        &|peer| sender(peer, 0),
        &|peer| sender(peer, 1),
    ]);
}
