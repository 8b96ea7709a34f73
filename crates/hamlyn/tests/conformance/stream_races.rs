//! The stream protocol (`Hamlyn 3.3`): what its ends say to each other crosses on the way, or is
//! overwritten.

use hamlyn::stream::{Kept, Receiver, Sender, StreamSeed};
use hamlyn::{ReceiveError, SendError, Wait};

use crate::World;
use crate::peer::{self};
use crate::streams::{GROW, close, ended, next, options, receiver, release, send, sender};

/// The receiver makes more memory unasked while the sender closes.
pub(crate) fn closing_right_after_filling_the_extent(world: &World) {
    world.run(&[
        &|peer| {
            for round in 0..30 {
                let mut receiver =
                    peer.with(|manager| Receiver::new(manager, options(4, 64, 4096)).unwrap());
                let seed = peer.with(|_| receiver.make_seed());
                peer.put(&format!("seed {round}"), &seed.to_bytes());
                for number in 0..4 {
                    let record = next(peer, &mut receiver);
                    assert_eq!(receiver.view(&record).unwrap(), [number; 64]);
                }
                ended(peer, &mut receiver);
                peer.with(|_| drop(receiver));
            }
        },
        &|peer| {
            for round in 0..30 {
                let seed = peer.get(&format!("seed {round}"));
                let seed = StreamSeed::from_bytes(&seed).unwrap();
                let mut sender = peer.with(|manager| Sender::grow(manager, &seed, GROW).unwrap());
                for number in 0..4 {
                    send(peer, &mut sender, &[number; 64]);
                }
                close(peer, sender);
            }
        },
    ]);
}

/// The receiver goes over to another extent unasked and gives the old one back at once, while the
/// sender, which has not heard of it, closes in the old one: at a moment that differs from round to
/// round.
pub(crate) fn closing_while_everything_moves_on(world: &World) {
    const ROUNDS: u8 = 40;
    world.run(&[
        &|peer| {
            for round in 0..ROUNDS {
                let mut receiver =
                    peer.with(|manager| Receiver::new(manager, options(4, 64, 4096)).unwrap());
                let seed = peer.with(|_| receiver.make_seed());
                peer.put(&format!("seed {round}"), &seed.to_bytes());
                let records: Vec<Kept> = (0..4).map(|_| next(peer, &mut receiver)).collect();
                // All is held, so there is more memory at the first look, and the second is in
                // there; unless the end is here already.
                for _ in 0..2 {
                    let none =
                        peer.with(|_| receiver.recv(Wait::Poll).map(|record| record.is_some()));
                    assert!(
                        matches!(none, Ok(false) | Err(ReceiveError::Closed)),
                        "{none:?}"
                    );
                }
                drop(records);
                peer.with(|_| receiver.reclaim());
                ended(peer, &mut receiver);
                peer.with(|_| drop(receiver));
            }
        },
        &|peer| {
            for round in 0..ROUNDS {
                let seed = peer.get(&format!("seed {round}"));
                let seed = StreamSeed::from_bytes(&seed).unwrap();
                let mut sender = peer.with(|manager| Sender::grow(manager, &seed, GROW).unwrap());
                for number in 0..4 {
                    send(peer, &mut sender, &[number; 64]);
                }
                for _ in 0..round {
                    peer.with(|manager| manager.session().poll());
                    peer::pause();
                }
                close(peer, sender);
            }
        },
    ]);
}

/// A sender asks for memory and closes before it is answered; its receiver, which holds nothing,
/// goes over to the larger extent at the grow request, and only then hears of the end.
pub(crate) fn closing_before_a_demand_is_met(world: &World) {
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(4, 64, 4096));
            let record = next(peer, &mut receiver);
            assert_eq!(receiver.view(&record).unwrap(), [7; 60]);
            release(peer, &mut receiver, record);
            peer.put("released", &[]);
            peer.get_without_polling("closed");
            ended(peer, &mut receiver);
            // Between hosts the end may come before the grow request.
            let memory = receiver.memory_bytes();
            assert!(
                memory == 1024 || !peer.is_in_order && memory == 256,
                "{memory}"
            );
        },
        &|peer| {
            let mut sender = sender(peer);
            send(peer, &mut sender, &[7; 60]);
            peer.get("released");
            let long = peer.with(|_| sender.send(&[8; 1000], Wait::Poll));
            assert!(matches!(long, Err(SendError::WouldBlock { .. })));
            close(peer, sender);
            peer.put("closed", &[]);
        },
    ]);
}

/// More is said to a sender than can wait there, and the answer to its grow request comes first.
pub(crate) fn an_answer_that_is_overwritten_is_not_lost(world: &World) {
    // More than twice as many as the words that can wait.
    const PIECES: u8 = 200;
    let bytes = u64::from(PIECES) * 64;
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(PIECES.into(), 64, bytes));
            peer.get("asked");
            let records: Vec<Kept> = (0..PIECES).map(|_| next(peer, &mut receiver)).collect();
            // Its grow request is refused: all is held, and the limit is reached.
            let none = peer.with(|_| receiver.recv(Wait::millis(1)).unwrap().is_none());
            assert!(none);
            // It waits for credit, however little, so each is reported by itself.
            for record in records {
                release(peer, &mut receiver, record);
                peer.flush();
            }
            peer.put("released", &[]);
            let record = next(peer, &mut receiver);
            assert_eq!(receiver.view(&record).unwrap(), [PIECES; 50]);
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            for number in 0..PIECES {
                send(peer, &mut sender, &[number; 50]);
            }
            peer.flush();
            let full = peer.with(|_| sender.send(&[PIECES; 50], Wait::Poll));
            assert!(matches!(full, Err(SendError::WouldBlock { .. })));
            peer.flush();
            peer.put("asked", &[]);
            peer.get("released");
            send(peer, &mut sender, &[PIECES; 50]);
            close(peer, sender);
        },
    ]);
}
