//! One-sided operations on many pieces of a place at once, of more requests than are under way at a
//! time.

use hamlyn::Wait;
use hamlyn::one_sided::{Initiator, InitiatorOptions, Operation, OperationError, Strided};

use crate::World;
use crate::low_level::target;
use crate::one_sided::{AREA, finish, initiator, open, read, serve_pattern};
use crate::peer::{Peer, pattern};

/// Begins an operation that may be of more requests than there is room for: a call that only polls
/// would never get through.
fn begin_long(
    peer: &Peer,
    begin: impl FnOnce(&mut hamlyn::Session<'_, crate::Host>, Wait) -> Result<Operation, OperationError>,
) -> Operation {
    peer.with(|manager| begin(&mut manager.session(), Wait::millis(20_000)))
        .unwrap()
}

/// Reads and puts pieces of every shape, and compares with the bytes as they should be.
pub(crate) fn pieces_of_every_shape(peer: &Peer, initiator: &mut Initiator, all: &mut [u8]) {
    let shapes = [
        (0, 0, 0, 0),
        (7, 100, 8, 1),
        (3, 24, 8, 500),
        (5, 9000, 8185, 30),
        (1, 20_000, 17_000, 12),
        (11, 4, 4, 1000),
        (100, 3, 8, 50),
        (9, 64, 0, 40),
    ];
    for (number, (offset, stride_bytes, piece_bytes, pieces)) in shapes.into_iter().enumerate() {
        let strided = Strided {
            offset,
            stride_bytes,
            piece_bytes,
            pieces,
        };
        let places: Vec<u64> = (0..pieces)
            .map(|piece| offset + piece * stride_bytes)
            .collect();
        let expected = |all: &[u8]| -> Vec<u8> {
            let piece = |&at: &u64| all[at as usize..(at + piece_bytes) as usize].to_vec();
            places.iter().flat_map(piece).collect()
        };
        let length = (pieces * piece_bytes) as usize;
        let mut found = vec![0; length];
        let operation = begin_long(peer, |interface, wait| {
            interface.begin_read_strided(initiator, &strided, 5, wait)
        });
        finish(peer, initiator, operation).unwrap();
        initiator.landed(5, &mut found).unwrap();
        assert!(found == expected(all), "{strided:?}");
        let backwards: Vec<u64> = places.iter().rev().copied().collect();
        let operation = begin_long(peer, |interface, wait| {
            interface.begin_read_indexed(initiator, &backwards, piece_bytes, 0, wait)
        });
        finish(peer, initiator, operation).unwrap();
        initiator.landed(0, &mut found).unwrap();
        let piece = |&at: &u64| all[at as usize..(at + piece_bytes) as usize].to_vec();
        let reversed: Vec<u8> = backwards.iter().flat_map(piece).collect();
        assert!(found == reversed, "{strided:?}");
        if stride_bytes < piece_bytes {
            // Which of two overlapping pieces is there is not said.
            continue;
        }
        for by_index in [false, true] {
            let bytes = pattern(number as u64 * 2 + u64::from(by_index), length);
            let operation = begin_long(peer, |interface, wait| match by_index {
                false => interface.begin_put_strided(initiator, &strided, &bytes, wait),
                true => interface.begin_put_indexed(initiator, &places, piece_bytes, &bytes, wait),
            });
            finish(peer, initiator, operation).unwrap();
            for (piece, &at) in places.iter().enumerate() {
                let from = piece * piece_bytes as usize;
                all[at as usize..(at + piece_bytes) as usize]
                    .copy_from_slice(&bytes[from..from + piece_bytes as usize]);
            }
        }
        assert!(
            read(peer, initiator, 0, all.len()).unwrap() == all,
            "{strided:?}"
        );
    }
    assert_eq!(
        peer.with(|manager| manager.session().outstanding(initiator)),
        0
    );
}

pub(crate) fn pieces_are_read_and_put_in_one_operation(world: &World) {
    world.run(&[&|peer| drop(serve_pattern(peer)), &|peer| {
        let to = target(peer, &peer.get_ticket("ticket"));
        let options = InitiatorOptions {
            landing_bytes: 2 * AREA,
        };
        let mut initiator = peer
            .with(|manager| manager.session().open_initiator(to, options))
            .unwrap();
        let mut all = pattern(1, AREA as usize);
        pieces_of_every_shape(peer, &mut initiator, &mut all);
        peer.put("through", &[]);
    }]);
}

pub(crate) fn pieces_that_do_not_fit_are_refused_before_anything_is_asked(world: &World) {
    world.run(&[
        &|peer| {
            let (_area, slot) = open(peer, |slot| slot);
            peer.put_ticket("ticket", &slot.fast_ticket(0, 1000).unwrap());
            peer.get("through");
            assert_eq!(peer.with(|manager| manager.session().refusals()).total(), 0);
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let mut initiator = initiator(peer, to);
            peer.with(|manager| {
                let mut interface = manager.session();
                let strided = |offset, stride_bytes, piece_bytes, pieces| Strided {
                    offset,
                    stride_bytes,
                    piece_bytes,
                    pieces,
                };
                for outside in [
                    strided(0, 100, 8, 11),
                    strided(993, 0, 8, 1),
                    strided(0, u64::MAX, 8, 2),
                    strided(8, u64::MAX, 8, 2),
                    strided(0, 0, 2, u64::MAX),
                    strided(u64::MAX, 1, 1, 2),
                    strided(0, 1 << 60, 8, 1 << 59),
                ] {
                    let begun =
                        interface.begin_read_strided(&mut initiator, &outside, 0, Wait::Poll);
                    let is_outside = matches!(begun, Err(OperationError::OutsideTicket(_)));
                    assert!(is_outside, "{outside:?}: {begun:?}");
                }
                let fits = strided(0, 100, 8, 10);
                let begun =
                    interface.begin_read_strided(&mut initiator, &fits, AREA - 79, Wait::Poll);
                assert!(matches!(begun, Err(OperationError::OutsideLanding { .. })));
                let begun =
                    interface.begin_put_strided(&mut initiator, &fits, &[0; 79], Wait::Poll);
                let uneven = Err(OperationError::PiecesLength {
                    length_bytes: 79,
                    pieces_bytes: 80,
                });
                assert_eq!(begun, uneven);
                for offsets in [[0, 993], [u64::MAX, 0], [1000, 5]] {
                    let begun =
                        interface.begin_read_indexed(&mut initiator, &offsets, 8, 0, Wait::Poll);
                    assert!(matches!(begun, Err(OperationError::OutsideTicket(_))));
                    let begun = interface.begin_put_indexed(
                        &mut initiator,
                        &offsets,
                        8,
                        &[0; 16],
                        Wait::Poll,
                    );
                    assert!(matches!(begun, Err(OperationError::OutsideTicket(_))));
                }
                let offsets = [0, 8];
                let begun =
                    interface.begin_put_indexed(&mut initiator, &offsets, 8, &[0; 15], Wait::Poll);
                assert!(matches!(begun, Err(OperationError::PiecesLength { .. })));
                assert_eq!(interface.outstanding(&initiator), 0);
            });
            peer.put("through", &[]);
        },
    ]);
}

/// A program that waits for room sleeps while there is none, and no longer: its peer answers at any
/// moment of its going to sleep.
pub(crate) fn room_that_comes_at_any_moment_is_used(world: &World) {
    const ROUNDS: u64 = 200;
    const PIECES: u64 = 200;
    world.run(&[&|peer| drop(serve_pattern(peer)), &|peer| {
        let to = target(peer, &peer.get_ticket("ticket"));
        let mut initiator = initiator(peer, to);
        let all = pattern(1, AREA as usize);
        for round in 0..ROUNDS {
            let from = round as usize * 8;
            let strided = Strided {
                offset: from as u64,
                stride_bytes: 16,
                piece_bytes: 8,
                pieces: PIECES,
            };
            let operation = begin_long(peer, |interface, wait| {
                interface.begin_read_strided(&mut initiator, &strided, 0, wait)
            });
            finish(peer, &mut initiator, operation).unwrap();
            let mut found = vec![0; PIECES as usize * 8];
            initiator.landed(0, &mut found).unwrap();
            let places = all[from..].chunks(16).take(PIECES as usize);
            assert!(
                found
                    == places
                        .flat_map(|place| &place[..8])
                        .copied()
                        .collect::<Vec<_>>()
            );
        }
        peer.put("through", &[]);
    }]);
}
