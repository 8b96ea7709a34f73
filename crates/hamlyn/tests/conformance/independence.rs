//! Destinations are independent: what one peer does holds up nothing that is sent to another.

use hamlyn::engine::refusal::Refusal;
use hamlyn::{Message, SendError, Target, Wait};

use crate::World;
use crate::low_level::{Inlet, send, sizes, target};
use crate::party::{Party, pattern};

/// More than any ring or window holds.
const FLOOD: u64 = 1 << 15;
const FLOOD_BYTES: usize = 600;

/// Sends to a peer that takes nothing until nothing more is accepted, or so much that it must be taking it.
fn fill(party: &Party, target: &Target) -> u64 {
    let data = pattern(9, FLOOD_BYTES);
    party.with(|manager| {
        let terminus = manager.terminus();
        let mut sent = 0;
        loop {
            // Not longer than the work queue holds, or a call that polls sends nothing.
            let message = Message::new(&data[..100]);
            match manager
                .interface()
                .send_msg(terminus, target, &message, Wait::Poll)
            {
                Ok(_) => sent += 1,
                Err(SendError::WouldBlock { .. }) => return sent,
                Err(error) => panic!("{error}"),
            }
            if sent == FLOOD {
                assert!(party.receives_unasked(), "it took everything unasked");
                return sent;
            }
        }
    })
}

pub(crate) fn a_peer_that_takes_nothing_holds_up_no_other(world: &World) {
    world.run(&[
        // It neither receives nor sends while the others do.
        &|party| {
            let inlet = Inlet::new(party, FLOOD_BYTES as u64, |slot| slot);
            let ticket = inlet.slot.fast_ticket(0, FLOOD_BYTES as u64).unwrap();
            party.tell_ticket("stopped", &ticket);
            party.hear_only("all came");
            party.hear("the rest is sent");
            inlet.refused(party, Refusal::BadKey, 0);
        },
        &|party| {
            let mut inlet = Inlet::new(party, 1 << 20, |slot| slot.entries(1));
            let ticket = inlet.slot.ticket(0, 0, 1 << 20).unwrap();
            party.tell_ticket("live", &ticket);
            for (number, size) in sizes().into_iter().enumerate() {
                inlet.next(party);
                assert!(
                    inlet.bytes(0, size) == pattern(number as u64, size),
                    "{size}"
                );
                party.tell(&format!("came {number}"), &[]);
            }
            party.hear_only("all came");
        },
        &|party| {
            let stopped = target(party, &party.hear_ticket("stopped"));
            let live = target(party, &party.hear_ticket("live"));
            fill(party, &stopped);
            for (number, size) in sizes().into_iter().enumerate() {
                send(party, &live, &Message::new(&pattern(number as u64, size)));
                party.until("a flush", |manager, wait| {
                    manager
                        .interface()
                        .flush_link(live.link(), wait)
                        .unwrap()
                        .then_some(())
                });
                party.hear(&format!("came {number}"));
            }
            party.tell("all came", &[]);
            // And nothing of the other's is lost.
            party.flush();
            party.tell("the rest is sent", &[]);
        },
    ]);
}
