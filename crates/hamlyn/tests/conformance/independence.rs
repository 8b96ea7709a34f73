//! Destinations are independent: what one peer does holds up nothing that is sent to another.

use hamlyn::engine::refusal::Refusal;
use hamlyn::{Message, SendError, Target, Wait};

use crate::World;
use crate::low_level::{RxSlot, send, sizes, target};
use crate::peer::{Peer, TIMEOUT, pattern};

/// More than any ring or window holds.
const FLOOD: u64 = 1 << 15;
const FLOOD_BYTES: usize = 600;
const AREA: u64 = 64;

/// Sends to a peer that takes nothing until nothing more is accepted, or so much that it must be
/// taking it.
fn fill(peer: &Peer, target: &Target) -> u64 {
    let data = pattern(9, FLOOD_BYTES);
    peer.with(|manager| {
        let terminus = manager.terminus();
        let mut sent = 0;
        loop {
            // Not longer than the work queue holds, or a call that polls sends nothing.
            let message = Message::new(&data[..100]);
            match manager
                .session()
                .send_msg(terminus, target, &message, Wait::Poll)
            {
                Ok(_) => sent += 1,
                Err(SendError::WouldBlock { .. }) => return sent,
                Err(error) => panic!("{error}"),
            }
            if sent == FLOOD {
                assert!(peer.receives_unasked(), "it took everything unasked");
                return sent;
            }
        }
    })
}

pub(crate) fn a_peer_that_takes_nothing_holds_up_no_other(world: &World) {
    world.run(&[
        // It neither receives nor sends while the others do.
        &|peer| {
            let rx_slot = RxSlot::new(peer, FLOOD_BYTES as u64, |slot| slot);
            let ticket = rx_slot.slot.fast_ticket(0, FLOOD_BYTES as u64).unwrap();
            peer.put_ticket("stopped", &ticket);
            peer.get_without_polling("all came");
            peer.get("the rest is sent");
            rx_slot.refused(peer, Refusal::BadKey, 0);
        },
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 1 << 20, |slot| slot.entries(1));
            let ticket = rx_slot.slot.ticket(0, 0, 1 << 20).unwrap();
            peer.put_ticket("live", &ticket);
            for (number, size) in sizes().into_iter().enumerate() {
                rx_slot.next(peer);
                assert!(
                    rx_slot.bytes(0, size) == pattern(number as u64, size),
                    "{size}"
                );
                peer.put(&format!("came {number}"), &[]);
            }
            peer.get_without_polling("all came");
        },
        &|peer| {
            let stopped = target(peer, &peer.get_ticket("stopped"));
            let live = target(peer, &peer.get_ticket("live"));
            fill(peer, &stopped);
            for (number, size) in sizes().into_iter().enumerate() {
                send(peer, &live, &Message::new(&pattern(number as u64, size)));
                peer.until("a flush", |manager, wait| {
                    manager
                        .session()
                        .flush_link(live.link(), wait)
                        .unwrap()
                        .then_some(())
                });
                peer.get(&format!("came {number}"));
            }
            peer.put("all came", &[]);
            // And nothing of the other's is lost.
            peer.flush();
            peer.put("the rest is sent", &[]);
        },
    ]);
}

/// A look is at some of what is tracked; before a program sleeps, it is at all.
pub(crate) fn fences_that_wait_hide_none_that_is_answered(world: &World) {
    const WAITING: u64 = 400;
    let slot_of = |peer: &Peer, key: &str| {
        let slot = RxSlot::new(peer, AREA, |new| new);
        peer.put_ticket(key, &slot.slot.fast_ticket(0, AREA).unwrap());
        slot
    };
    world.run(&[
        &|peer| {
            let [to_stopped, to_awake] =
                ["stopped", "awake"].map(|key| target(peer, &peer.get_ticket(key)));
            let queue = peer.with(|manager| manager.session().open_completions(1_000).unwrap());
            for to in [&to_stopped, &to_awake] {
                send(peer, to, &Message::new(&[1; 16]));
            }
            peer.with(|manager| {
                let mut session = manager.session();
                for number in 0..WAITING {
                    session
                        .track_fence(&queue, to_stopped.link(), number)
                        .unwrap();
                }
                session
                    .track_fence(&queue, to_awake.link(), WAITING)
                    .unwrap();
            });
            peer.put("tracked", &[]);
            // The others are complete, too, where a network processor answers for a stopped peer.
            let next = || {
                let ended = peer.with(|manager| {
                    let long = Wait::For(TIMEOUT / 2);
                    manager.session().await_completion(&queue, long).unwrap()
                });
                ended.expect("the fence that is answered").context
            };
            while next() != WAITING {}
            peer.put("through", &[]);
        },
        &|peer| {
            let _slot = slot_of(peer, "stopped");
            peer.linked();
            peer.get_without_polling("through");
        },
        &|peer| {
            let _slot = slot_of(peer, "awake");
            peer.linked();
            peer.get_without_polling("tracked");
            peer.get("through");
        },
    ]);
}
