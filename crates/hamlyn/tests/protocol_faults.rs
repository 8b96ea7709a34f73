//! What peers can do to the end points of the protocols, whichever thread drives the interface:
//! nothing that lasts, and nothing that concerns another peer.

use crate::support;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::support::by_hand::{HELLO, control_ticket, raw};
use crate::support::{LONG, Random, namespace, open, until};
use hamlyn::engine::counting::Share;
use hamlyn::engine::refusal::Refusal;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{
    Manager, ManagerOptions, Message, ReceiveError, SendError, Strategy, Target, Ticket, Wait,
    datagram, group, stream, tagged_write,
};

fn open_with(namespace: &str, strategy: Strategy) -> Manager<ProcessHost> {
    let options = ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    };
    hamlyn::open_with(Options::default().in_namespace(namespace), options).unwrap()
}

/// Once for each strategy of the receiving interface: it, and one that sends.
fn with_each_strategy(test: impl Fn(Strategy, &Manager<ProcessHost>, &Manager<ProcessHost>)) {
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let (mut here, mut there) = (open_with(&namespace, strategy), open(&namespace));
        test(strategy, &mut here, &mut there);
    }
}

fn send_raw(manager: &Manager<ProcessHost>, target: &Target, message: &Message<'_>) {
    let terminus = manager.terminus();
    manager
        .session()
        .send_msg(terminus, target, message, LONG)
        .expect("it is sent");
}

fn target(manager: &Manager<ProcessHost>, ticket: &Ticket) -> Target {
    manager.session().target(ticket, LONG).unwrap()
}

/// What a datagram says of itself.
fn word(offset: u32, length_bytes: u32) -> [u8; 8] {
    (u64::from(offset) | u64::from(length_bytes) << 32).to_le_bytes()
}

#[test]
fn a_silent_datagram_does_not_make_its_receiver_deaf() {
    with_each_strategy(|strategy, here, there| {
        let mut inbox = datagram::Receiver::new(here, 64).unwrap();
        let raw = target(there, &inbox.ticket());
        for data in [&[7; 16][..], &[8; 3]] {
            inbox.ready();
            let metadata = word(4, data.len() as u32);
            let message = Message::new(data).at(4).metadata(&metadata).silent();
            send_raw(there, &raw, &message);
            let came = inbox.recv(LONG).expect("no error");
            assert_eq!(came.expect("the datagram"), data, "{strategy:?}");
            inbox.ready();
            let outbox = datagram::Sender::grow(there, &inbox.ticket(), LONG).unwrap();
            outbox.send(b"and another", LONG).unwrap();
            let came = inbox.recv(LONG).expect("no error");
            assert_eq!(came.expect("a datagram"), b"and another");
        }
    });
}

/// The packets of one datagram: where each begins and how long it is.
fn send_parts(there: &Manager<ProcessHost>, raw: &Target, says: [u8; 8], parts: &[(u64, usize)]) {
    let mut left = Share::whole(raw.ticket().counting);
    for (index, &(offset, length)) in parts.iter().enumerate() {
        let data = vec![b'b'; length];
        let message = Message::new(&data)
            .at(offset)
            .metadata(if index == 0 { &says } else { &[] });
        if index + 1 == parts.len() {
            send_raw(there, raw, &message.share(left));
        } else {
            let (part, rest) = left.take(1).unwrap();
            send_raw(there, raw, &message.share(part));
            left = rest;
        }
    }
}

#[test]
fn a_datagram_is_what_landed_and_nothing_of_one_before() {
    /// What it says of itself, and what comes.
    type Lie = (u32, u32, &'static [(u64, usize)]);
    const LIES: [Lie; 8] = [
        // A short packet, a longer one, and none at all.
        (0, 32, &[(0, 16)]),
        (0, 8, &[(0, 16)]),
        (8, 16, &[(0, 16)]),
        (0, 32, &[(0, 24)]),
        (0, 60, &[]),
        // Several: too few, with a gap, or with as many bytes as it says of which some came twice.
        (0, 60, &[(0, 20), (20, 20)]),
        (0, 60, &[(0, 20), (40, 20)]),
        (0, 60, &[(0, 40), (20, 20)]),
    ];
    with_each_strategy(|strategy, here, there| {
        let mut inbox = datagram::Receiver::new(here, 64).unwrap();
        let raw = target(there, &inbox.ticket());
        for (offset, length, parts) in LIES {
            inbox.ready();
            send_parts(there, &raw, word(0, 64), &[(0, 64)]);
            assert!(inbox.recv(LONG).unwrap().is_some());
            inbox.ready();
            match parts {
                [] => send_raw(
                    there,
                    &raw,
                    &Message::new(&[]).metadata(&word(offset, length)),
                ),
                &[(at, length_bytes)] => {
                    let (data, says) = (vec![b'b'; length_bytes], word(offset, length));
                    send_raw(there, &raw, &Message::new(&data).at(at).metadata(&says));
                }
                _ => send_parts(there, &raw, word(offset, length), parts),
            }
            let came = inbox.recv(LONG).map(|came| came.map(|d| d.len()));
            let expected = matches!(
                came,
                Err(ReceiveError::Malformed {
                    protocol: "datagram",
                    ..
                })
            );
            assert!(
                expected,
                "{strategy:?}: {offset}, {length}, {parts:?}: {came:?}"
            );
            assert!(inbox.latest().is_none());
        }
        // In whatever order they come.
        for parts in [
            &[(0, 20), (20, 20), (40, 20)],
            &[(40, 20), (0, 20), (20, 20)],
        ] {
            inbox.ready();
            send_parts(there, &raw, word(0, 60), parts);
            let came = inbox.recv(LONG).unwrap().expect("a datagram");
            assert_eq!(came, [b'b'; 60]);
            came.keep();
            assert_eq!(inbox.latest().unwrap(), [b'b'; 60]);
        }
    });
}

#[test]
fn an_offset_outside_a_made_up_ticket_is_refused_and_no_panic() {
    with_each_strategy(|_, here, there| {
        let inbox = datagram::Receiver::new(here, 64).unwrap();
        let ticket = Ticket {
            base: u64::MAX - 64,
            ..inbox.ticket()
        };
        let ticket = Ticket::from_bytes(&ticket.to_bytes()).expect("a possible ticket");
        let outbox = datagram::Sender::grow(there, &ticket, LONG).unwrap();
        let sent = outbox.send_to(u32::MAX, b"far", None, LONG);
        assert!(matches!(sent, Err(SendError::OutsideTicket(_))), "{sent:?}");
    });
}

#[test]
fn strangers_that_leave_fail_no_receive_and_are_told_of_to_those_who_ask() {
    const STRANGERS: usize = 3;
    const SOON: Wait = Wait::millis(2);
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let here = open_with(&namespace, strategy);
        let mut inbox = datagram::Receiver::new(&here, 64).unwrap();
        inbox.ready();
        let mut tags = tagged_write::Receiver::new(&here, 64, 16).unwrap();
        let mut group = group::Receiver::new(&here, 64, Default::default()).unwrap();
        group.begin().unwrap();
        let mut records = stream::Receiver::new(&here, Default::default()).unwrap();
        let mut queue = here.session().open_queue(16).unwrap();
        for wait in [SOON, Wait::Poll] {
            let mut left = Vec::new();
            for _ in 0..STRANGERS {
                let stranger = open(&namespace);
                target(&stranger, &inbox.ticket());
                left.push(stranger.session().identity());
            }
            until("the ends of all links", || {
                here.wait(SOON).expect("no error");
                assert_eq!(inbox.recv(wait).map(|came| came.is_some()), Ok(false));
                assert_eq!(tags.get_tag(wait), Ok(None));
                assert_eq!(tags.get_specific_tag(7, wait), Ok(None));
                assert_eq!(group.recv(wait), Ok(None));
                assert!(records.recv(wait).unwrap().is_none());
                assert_eq!(here.session().rcv_block(&mut queue, wait), Ok(None));
                let lost = support::next_loss(&here, Wait::Poll);
                left.retain(|&peer| lost.is_none_or(|lost| lost.peer != peer));
                left.is_empty().then_some(())
            });
            assert_eq!(
                support::next_loss(&here, Wait::Poll),
                None,
                "each is told of once"
            );
        }
    }
}

/// Sends with whatever ticket was last given to it, as fast as it can.
fn flood(namespace: &str, tickets: &mpsc::Receiver<Ticket>, stop: &AtomicBool) {
    let manager = open(namespace);
    let mut target = target(&manager, &tickets.recv().unwrap());
    let terminus = manager.terminus();
    let (data, says) = ([7; 15 << 10], word(0, 15 << 10));
    while !stop.load(Ordering::Relaxed) {
        if let Ok(ticket) = tickets.try_recv() {
            target = target.with_ticket(ticket).unwrap();
        }
        let message = Message::new(&data).metadata(&says);
        let _ = manager
            .session()
            .send_msg(terminus, &target, &message, Wait::millis(10));
    }
}

/// With the key changed, what its holder sent is either all there or will never be: also if a
/// network processor receives it at that moment.
#[test]
fn a_revoked_ticket_writes_nothing_more_and_makes_nothing_malformed() {
    const ROUNDS: u32 = 1_000;
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let mut here = open_with(&namespace, strategy);
        here.session().set_bad_keys_max(u32::MAX);
        let mut inbox = datagram::Receiver::new(&here, 16 << 10).unwrap();
        let stop = AtomicBool::new(false);
        let (tell, tickets) = mpsc::channel();
        std::thread::scope(|scope| {
            let (namespace, stopped) = (&namespace, &stop);
            scope.spawn(move || flood(namespace, &tickets, stopped));
            let mut random = Random::new(3);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let until_refused = |inbox: &datagram::Receiver, here: &Manager<_>, why| {
                    let refused = |_: &Manager<_>| inbox.info().unwrap().refusals.count(why);
                    let before = refused(here);
                    until("a refusal", || {
                        here.session().poll();
                        (refused(here) != before).then_some(())
                    });
                };
                for _ in 0..ROUNDS {
                    tell.send(inbox.ticket()).unwrap();
                    until_refused(&inbox, &mut here, Refusal::EntrySpent);
                    inbox.ready();
                    random.dawdle(Duration::from_micros(4));
                    inbox.revoke().unwrap();
                    if let Some(came) = inbox.recv(Wait::Poll).unwrap() {
                        came.keep();
                        continue;
                    }
                    until_refused(&inbox, &mut here, Refusal::BadEntryKey);
                    let came = inbox.recv(Wait::Poll).unwrap();
                    assert!(came.is_none(), "{strategy:?}: under a revoked key");
                }
            }));
            stop.store(true, Ordering::Relaxed);
            if let Err(panic) = result {
                std::panic::resume_unwind(panic);
            }
        });
    }
}

/// A peer cannot have us write to a third one in our name: what we are to answer to must be its
/// own.
#[test]
fn nobody_is_answered_in_the_name_of_another() {
    with_each_strategy(|strategy, here, liar| {
        let namespace = here.session().host().namespace().to_owned();
        let third = open(&namespace);
        // What the third would count as wrong keys, and then cut us off for.
        let area = third.session().allocate(64).unwrap();
        let slot = hamlyn::NewSlot::new(&area);
        let slot = third.session().open_slot(slot).unwrap();
        let anothers = slot.fast_ticket(0, 64).unwrap();
        let mut inbox = datagram::Receiver::new(here, 64).unwrap();
        target(&third, &inbox.ticket());
        let outbox = datagram::Sender::grow(liar, &inbox.ticket(), LONG).unwrap();
        inbox.ready();
        outbox
            .send_to(0, b"answer me", Some(&anothers), LONG)
            .unwrap();
        let came = inbox.recv(LONG).map(|came| came.map(|came| came.len()));
        let expected = matches!(
            came,
            Err(ReceiveError::Malformed {
                protocol: "datagram",
                ..
            })
        );
        assert!(expected, "{strategy:?}: {came:?}");
        let mut records = stream::Receiver::new(here, Default::default()).unwrap();
        let control = control_ticket(&records.make_seed(), HELLO);
        let control = target(liar, &control);
        let hello = anothers.to_bytes();
        assert!(raw(liar, &control, &Message::new(&[]).metadata(&hello)));
        let came = records.recv(LONG).map(|record| record.is_some());
        let expected = matches!(
            came,
            Err(ReceiveError::Malformed {
                protocol: "stream",
                ..
            })
        );
        assert!(expected, "{strategy:?}: {came:?}");
        drop(records);
        third.session().poll();
        let mut bytes = [0; 64];
        area.read_at(0, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 64]);
        assert_eq!(third.session().refusals().total(), 0);
        // One's own is answered.
        let mut own = datagram::Receiver::new(liar, 64).unwrap();
        own.ready();
        inbox.ready();
        outbox
            .send_to(0, b"answer me", Some(&own.ticket()), LONG)
            .unwrap();
        let came = inbox.recv(LONG).unwrap().expect("a datagram");
        let reply = came.reply_ticket().expect("a ticket");
        let back = datagram::Sender::grow(here, &reply, LONG).unwrap();
        back.send(b"answer", LONG).unwrap();
        assert_eq!(own.recv(LONG).unwrap().unwrap(), b"answer");
    });
}
