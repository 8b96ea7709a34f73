//! Lobbies: places for peers that nobody knows yet.

use hamlyn::host::{ConnectError as Reach, RefusedBecause};
use hamlyn::lane::{Lane, LaneOptions, LaneSender};
use hamlyn::lobby::{Admitted, GREETING, Lobby, LobbyOptions};
use hamlyn::{
    Address, ConnectError, Manager, Message, NewSlot, ReceiveError, SendError, Ticket, Wait,
};

use crate::peer::{Peer, now};
use crate::{Host, World};

const PROTOCOL: &str = "sums/1";
const LANE: LaneOptions = LaneOptions {
    buffers: 2,
    buffer_bytes: 64,
};

fn bind(peer: &Peer, places: u16) -> Lobby<Lane> {
    let options = LobbyOptions { places, offered: 2 };
    let lobby = peer.with(|manager| {
        Lobby::bind(&mut manager.session(), "lobby", PROTOCOL, options, LANE).unwrap()
    });
    peer.put_address("lobby");
    lobby
}

fn admit(peer: &Peer, lobby: &mut Lobby<Lane>) -> Admitted<Lane> {
    peer.until("a guest", |manager, wait| {
        let mut session = manager.session();
        session
            .wait_for(wait, |session| lobby.next(session))
            .unwrap()
    })
}

/// The text that a guest sends first.
fn hear(peer: &Peer, guest: &mut Lane) -> Vec<u8> {
    peer.receive("a message", |manager, wait| {
        let mut session = manager.session();
        let Some(message) = guest.recv(&mut session, wait)? else {
            return Ok(None);
        };
        let text = guest.bytes(&message).to_vec();
        guest.give_back(&mut session, message);
        Ok(Some(text))
    })
}

/// The address of the lobby, and how long an attempt waits there: where all share an interface,
/// nobody else can act meanwhile.
fn find(peer: &Peer) -> (String, Wait) {
    let wait = match peer.shares_interface() {
        true => Wait::millis(1),
        false => Wait::millis(200),
    };
    (peer.get_address("lobby"), wait)
}

fn connect(peer: &Peer) -> LaneSender {
    let (to, wait) = find(peer);
    peer.until("a place", |manager, _| {
        let mut session = manager.session();
        match LaneSender::connect_to(&mut session, &to, PROTOCOL, wait) {
            Ok(sender) => Some(sender),
            Err(ConnectError::Reach(_)) => None,
            Err(error) => panic!("{error}"),
        }
    })
}

/// The error of a sender that is not let in.
fn refusal(peer: &Peer, protocol: &'static str) -> ConnectError {
    refused(peer, |manager, to, wait| {
        LaneSender::connect_to(&mut manager.session(), to, protocol, wait).map(drop)
    })
}

/// The error of an attempt that has reached the peer.
fn refused(
    peer: &Peer,
    connect: impl Fn(&Manager<Host>, &str, Wait) -> Result<(), ConnectError>,
) -> ConnectError {
    let (to, wait) = find(peer);
    peer.until("the peer", |manager, _| match connect(manager, &to, wait) {
        // On a loaded machine an attempt may not get there in its time.
        Err(ConnectError::Reach(Reach::Stalled { .. })) => None,
        refused => Some(refused.unwrap_err()),
    })
}

fn send(peer: &Peer, sender: &mut LaneSender, bytes: &[u8]) {
    let sent = peer.send(|manager, wait| sender.send(&mut manager.session(), 0, bytes, wait));
    sent.unwrap();
}

fn end_of_guest(peer: &Peer, guest: &mut Lane) -> ReceiveError {
    peer.until("the end", |manager, wait| {
        guest.recv(&mut manager.session(), wait).err()
    })
}

/// More guests than places, who come and go; each is told when it is let in.
pub(crate) fn guests_are_let_in_and_their_places_given_again(world: &World) {
    const ROUNDS: usize = 3;
    let visits = |peer: &Peer, text: &[u8]| {
        for round in 0..ROUNDS {
            let mut sender = connect(peer);
            if round == 0 {
                peer.put(&String::from_utf8_lossy(text), &[]);
            }
            send(peer, &mut sender, text);
            peer.until("to be let in", |manager, wait| {
                let mut session = manager.session();
                let admitted = sender.await_admission(&mut session, wait);
                admitted.unwrap().then_some(())
            });
            peer.with(|manager| sender.close(&mut manager.session()));
        }
    };
    world.run(&[
        &|peer| {
            let mut lobby = bind(peer, 2);
            // Both have presented themselves, and nobody has looked.
            peer.get("one");
            peer.get("two");
            let mut heard = Vec::new();
            for _ in 0..2 * ROUNDS {
                let mut admitted = admit(peer, &mut lobby);
                assert!((1..=2).contains(&lobby.taken()));
                let link = admitted.link;
                assert!(peer.with(|manager| manager.session().identity_of(link).is_some()));
                heard.push(hear(peer, &mut admitted.guest));
                let end = end_of_guest(peer, &mut admitted.guest);
                assert_eq!(end, ReceiveError::Closed);
            }
            heard.sort();
            assert_eq!(heard, [&b"one"[..], b"one", b"one", b"two", b"two", b"two"]);
            assert_eq!((lobby.taken(), lobby.misbehaved()), (0, 0));
        },
        &|peer| visits(peer, b"one"),
        &|peer| visits(peer, b"two"),
    ]);
}

/// A peer that speaks another protocol, or another version, is told which there is.
pub(crate) fn another_protocol_in_a_lobby_is_named(world: &World) {
    world.run(&[
        &|peer| {
            let _lobby = bind(peer, 4);
            peer.get("was told");
        },
        &|peer| {
            let error = refusal(peer, "sums/2");
            let text = error.to_string();
            assert!(matches!(error, ConnectError::OtherType { .. }), "{text}");
            assert!(text.contains(PROTOCOL) && text.contains("sums/2"), "{text}");
            let error = refused(peer, |manager, to, wait| {
                manager.connect_stream(to, wait).map(drop)
            });
            assert!(
                matches!(error, ConnectError::OtherProtocol { .. }),
                "{error}"
            );
            peer.put("was told", &[]);
        },
    ]);
}

/// A guest that is evicted is told, and its place is given to another.
pub(crate) fn an_evicted_guest_is_told(world: &World) {
    world.run(&[
        &|peer| {
            let mut lobby = bind(peer, 1);
            drop(admit(peer, &mut lobby));
            let mut admitted = admit(peer, &mut lobby);
            assert_eq!(hear(peer, &mut admitted.guest), b"again");
            drop(lobby);
            peer.with(|manager| manager.session().poll());
            peer.put("over", &[]);
            assert_eq!(hear(peer, &mut admitted.guest), b"and again");
            peer.get("through");
        },
        &|peer| {
            let mut sender = connect(peer);
            let error = peer.until("the end", |manager, wait| {
                sender
                    .send(&mut manager.session(), 0, b"text", wait)
                    .err()
                    .filter(|error| !matches!(error, SendError::WouldBlock { .. }))
            });
            assert_eq!(error, SendError::ClosedByReceiver);
            drop(sender);
            let mut sender = connect(peer);
            send(peer, &mut sender, b"again");
            peer.get("over");
            // A guest outlives the lobby.
            send(peer, &mut sender, b"and again");
            let error = refusal(peer, PROTOCOL);
            assert!(matches!(error, ConnectError::Reach(_)), "{error}");
            peer.put("through", &[]);
        },
    ]);
}

/// An asker that does not present itself has its time, and no more.
pub(crate) fn a_place_whose_asker_does_not_come_is_given_to_another(world: &World) {
    world.run(&[
        &|peer| {
            let mut lobby = bind(peer, 1);
            peer.get("asked");
            let begun = now();
            let mut admitted = peer.until("a guest", |manager, _| {
                let mut session = manager.session();
                // So long that simulated time passes.
                let look = session.wait_for(Wait::millis(50), |session| lobby.next(session));
                look.unwrap()
            });
            assert!(now() - begun >= GREETING);
            assert_eq!(hear(peer, &mut admitted.guest), b"late");
            peer.put("over", &[]);
        },
        &|peer| {
            let asked = ask(peer);
            assert!(!asked.is_empty());
            peer.put("asked", &[]);
            peer.until("the end", |manager, _| {
                // So long that simulated time passes.
                manager.wait(Wait::millis(50)).unwrap();
                peer.key_values.get("over")
            });
        },
        &|peer| {
            peer.get("asked");
            let error = refusal(peer, PROTOCOL);
            assert!(is_refused(&error, RefusedBecause::FULL), "{error}");
            let mut sender = connect(peer);
            send(peer, &mut sender, b"late");
        },
    ]);
}

/// A program other than the owner's leaves some to others; the owner's own may take all.
pub(crate) fn nobody_takes_all_places_of_a_lobby(world: &World) {
    const PLACES: u16 = 6;
    world.run(&[
        &|peer| {
            let mut lobby = bind(peer, PLACES);
            let mut guests = Vec::new();
            peer.until("the newcomer", |manager, _| {
                guests.extend(lobby.next(&mut manager.session()).unwrap());
                guests.retain_mut(|admitted| {
                    let next = admitted.guest.next(&mut manager.session());
                    !matches!(next, Err(ReceiveError::Closed))
                });
                assert!(lobby.taken() <= usize::from(PLACES));
                peer.key_values.get("came")
            });
        },
        &|peer| {
            let mut senders = Vec::new();
            let (to, wait) = find(peer);
            let mut in_vain = 0;
            peer.until("a refusal", |manager, _| {
                // The owner looks meanwhile.
                match LaneSender::connect_to(&mut manager.session(), &to, PROTOCOL, wait) {
                    Ok(sender) => {
                        senders.push(sender);
                        in_vain = 0;
                    }
                    Err(error) => {
                        assert!(matches!(error, ConnectError::Reach(_)), "{error}");
                        in_vain += 1;
                    }
                }
                (in_vain == 20).then_some(())
            });
            let keeps_rest = senders.len() < usize::from(PLACES);
            assert!(senders.len() >= usize::from(PLACES) / 2);
            peer.put("has taken", &[u8::from(keeps_rest)]);
            if !keeps_rest {
                peer.get("was refused");
                let last = senders.pop().expect("it took some");
                peer.with(|manager| last.close(&mut manager.session()));
            }
            peer.get("came");
        },
        &|peer| {
            if peer.get("has taken") == [0] {
                let error = refusal(peer, PROTOCOL);
                assert!(is_refused(&error, RefusedBecause::FULL), "{error}");
                peer.put("was refused", &[]);
            }
            let sender = connect(peer);
            peer.put("came", &[]);
            drop(sender);
        },
    ]);
}

/// Greetings that are none, or in another's name: each costs its place, which is offered again.
pub(crate) fn a_greeting_that_is_none_costs_the_place(world: &World) {
    world.run(&[
        &|peer| {
            let mut lobby = bind(peer, 1);
            for lies in 1..=2 {
                peer.until("a lie", |manager, _| {
                    let admitted = lobby.next(&mut manager.session()).unwrap();
                    assert!(admitted.is_none(), "{admitted:?}");
                    (lobby.misbehaved() == lies).then_some(())
                });
                peer.put(&format!("heard {lies}"), &[]);
            }
            let mut admitted = admit(peer, &mut lobby);
            assert_eq!(hear(peer, &mut admitted.guest), b"honest");
            assert_eq!((lobby.taken(), lobby.misbehaved()), (1, 2));
        },
        &|peer| {
            // Where all share an interface there is no other name.
            let anothers = match peer.shares_interface() {
                true => b"none".to_vec(),
                false => peer.get("ticket"),
            };
            for (lies, words) in [(1, &b"none"[..]), (2, &anothers)] {
                let offer = ask(peer);
                let seed = &offer[offer.len() - hamlyn::lane::SEED_BYTES..];
                let ticket = Ticket::from_bytes(&seed[..hamlyn::ticket::TICKET_BYTES]).unwrap();
                let greeting = Ticket {
                    metadata_index: LANE.buffers,
                    ..ticket
                };
                let sent = peer.send(|manager, wait| {
                    let mut session = manager.session();
                    let target = session.target(&greeting, Wait::millis(10_000)).unwrap();
                    let terminus = session.terminus();
                    let message = Message::new(&[]).metadata(words);
                    session.send_msg(terminus, &target, &message, wait)
                });
                sent.unwrap();
                peer.get(&format!("heard {lies}"));
            }
            let mut sender = connect(peer);
            send(peer, &mut sender, b"honest");
        },
        &|peer| {
            let ticket = peer.with(|manager| {
                let mut session = manager.session();
                let area = session.allocate(64).unwrap();
                let slot = session.open_slot(NewSlot::new(&area)).unwrap();
                slot.fast_ticket(0, 64).unwrap()
            });
            peer.put_ticket("ticket", &ticket);
        },
    ]);
}

/// Why an attempt was in vain; the simulator tells no reason.
fn is_refused(error: &ConnectError, because: RefusedBecause) -> bool {
    use hamlyn::host::ConnectError as Reach;
    match error {
        ConnectError::Reach(Reach::Refused { reason, .. }) => *reason == because,
        ConnectError::Reach(_) => because == RefusedBecause::FULL,
        _ => false,
    }
}

/// The seed that an asker gets.
fn ask(peer: &Peer) -> Vec<u8> {
    let (to, wait) = find(peer);
    let (name, item) = to.rsplit_once('/').unwrap();
    peer.until("an offer", |manager, _| {
        manager.ask(Address::Name(name), item, wait).ok()
    })
}
