//! The stream protocol (`Hamlyn 3.3`): what its ends say to each other crosses on the way, or is overwritten.

use hamlyn::stream::{Kept, Receiver, Sender, StreamSeed};
use hamlyn::{ReceiveError, SendError, Wait};

use crate::World;
use crate::party::{self};
use crate::streams::{GROW, close, ended, next, options, receiver, release, send, sender};

/// The receiver makes more memory of its own accord while the sender closes.
pub(crate) fn closing_right_after_filling_the_extent(world: &World) {
    world.run(&[
        &|party| {
            for round in 0..30 {
                let mut receiver =
                    party.with(|manager| Receiver::new(manager, options(4, 64, 4096)).unwrap());
                let seed = party.with(|_| receiver.make_seed());
                party.tell(&format!("seed {round}"), &seed.to_bytes());
                for number in 0..4 {
                    let record = next(party, &mut receiver);
                    assert_eq!(receiver.view(&record).unwrap(), [number; 64]);
                }
                ended(party, &mut receiver);
                party.with(|_| drop(receiver));
            }
        },
        &|party| {
            for round in 0..30 {
                let seed = party.hear(&format!("seed {round}"));
                let seed = StreamSeed::from_bytes(&seed).unwrap();
                let mut sender = party.with(|manager| Sender::grow(manager, &seed, GROW).unwrap());
                for number in 0..4 {
                    send(party, &mut sender, &[number; 64]);
                }
                close(party, sender);
            }
        },
    ]);
}

/// The receiver goes over to another extent of its own accord and gives the old one back at once, while
/// the sender, which has not heard of it, closes in the old one: at a moment that differs from round to round.
pub(crate) fn closing_while_everything_moves_on(world: &World) {
    const ROUNDS: u8 = 40;
    world.run(&[
        &|party| {
            for round in 0..ROUNDS {
                let mut receiver =
                    party.with(|manager| Receiver::new(manager, options(4, 64, 4096)).unwrap());
                let seed = party.with(|_| receiver.make_seed());
                party.tell(&format!("seed {round}"), &seed.to_bytes());
                let records: Vec<Kept> = (0..4).map(|_| next(party, &mut receiver)).collect();
                // All is held, so there is more memory at the first look, and the second is in there;
                // unless the end is here already.
                for _ in 0..2 {
                    let none =
                        party.with(|_| receiver.recv(Wait::Poll).map(|record| record.is_some()));
                    assert!(
                        matches!(none, Ok(false) | Err(ReceiveError::Closed)),
                        "{none:?}"
                    );
                }
                drop(records);
                party.with(|_| receiver.reclaim());
                ended(party, &mut receiver);
                party.with(|_| drop(receiver));
            }
        },
        &|party| {
            for round in 0..ROUNDS {
                let seed = party.hear(&format!("seed {round}"));
                let seed = StreamSeed::from_bytes(&seed).unwrap();
                let mut sender = party.with(|manager| Sender::grow(manager, &seed, GROW).unwrap());
                for number in 0..4 {
                    send(party, &mut sender, &[number; 64]);
                }
                for _ in 0..round {
                    party.with(|manager| manager.interface().poll());
                    party::pause();
                }
                close(party, sender);
            }
        },
    ]);
}

/// A sender asks for memory and closes before it is answered; its receiver, which holds nothing, goes over
/// to the larger extent at the demand, and only then hears of the end.
pub(crate) fn closing_before_a_demand_is_met(world: &World) {
    world.run(&[
        &|party| {
            let mut receiver = receiver(party, options(4, 64, 4096));
            let record = next(party, &mut receiver);
            assert_eq!(receiver.view(&record).unwrap(), [7; 60]);
            release(party, &mut receiver, record);
            party.tell("released", &[]);
            party.hear_only("closed");
            ended(party, &mut receiver);
            // Between hosts the end may come before the demand.
            let memory = receiver.memory_bytes();
            assert!(
                memory == 1024 || !party.is_in_order && memory == 256,
                "{memory}"
            );
        },
        &|party| {
            let mut sender = sender(party);
            send(party, &mut sender, &[7; 60]);
            party.hear("released");
            let long = party.with(|_| sender.send(&[8; 1000], Wait::Poll));
            assert!(matches!(long, Err(SendError::WouldBlock { .. })));
            close(party, sender);
            party.tell("closed", &[]);
        },
    ]);
}

/// More is said to a sender than can wait there, and the answer to its demand comes first.
pub(crate) fn an_answer_that_is_overwritten_is_not_lost(world: &World) {
    // More than twice as many as the words that can wait.
    const PIECES: u8 = 200;
    let bytes = u64::from(PIECES) * 64;
    world.run(&[
        &|party| {
            let mut receiver = receiver(party, options(PIECES.into(), 64, bytes));
            party.hear("asked");
            let records: Vec<Kept> = (0..PIECES).map(|_| next(party, &mut receiver)).collect();
            // Its demand is refused: all is held, and the limit is reached.
            let none = party.with(|_| receiver.recv(Wait::millis(1)).unwrap().is_none());
            assert!(none);
            // It waits for credit, however little, so each is reported by itself.
            for record in records {
                release(party, &mut receiver, record);
                party.flush();
            }
            party.tell("released", &[]);
            let record = next(party, &mut receiver);
            assert_eq!(receiver.view(&record).unwrap(), [PIECES; 50]);
            ended(party, &mut receiver);
        },
        &|party| {
            let mut sender = sender(party);
            for number in 0..PIECES {
                send(party, &mut sender, &[number; 50]);
            }
            party.flush();
            let full = party.with(|_| sender.send(&[PIECES; 50], Wait::Poll));
            assert!(matches!(full, Err(SendError::WouldBlock { .. })));
            party.flush();
            party.tell("asked", &[]);
            party.hear("released");
            send(party, &mut sender, &[PIECES; 50]);
            close(party, sender);
        },
    ]);
}
