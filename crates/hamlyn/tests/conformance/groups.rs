//! Group receive and scatter-gather (`Hamlyn 2.5`).

use hamlyn::engine::counting::Counting;
use hamlyn::engine::refusal::Refusal;
use hamlyn::group::{Member, Receiver, Sender, SplitError};
use hamlyn::{SendError, Wait};

use crate::peer::{Peer, Role, pattern};
use crate::{Host, World};

const GROW: Wait = Wait::millis(10_000);

fn receiver(peer: &Peer, bytes: u32, counting: Counting) -> Receiver<Host> {
    peer.with(|manager| Receiver::new(manager, bytes, counting).unwrap())
}

fn begin(peer: &Peer, receiver: &mut Receiver<Host>) -> Member {
    peer.with(|_| receiver.begin().unwrap())
}

/// Waits for the whole group, and copies its place.
fn whole(peer: &Peer, receiver: &mut Receiver<Host>) -> Vec<u8> {
    peer.receive("the group", |_, wait| {
        Ok(receiver.recv(wait)?.map(<[u8]>::to_vec))
    })
}

fn incomplete(peer: &Peer, receiver: &mut Receiver<Host>) {
    let found = peer.with(|_| receiver.recv(Wait::Poll).map(|g| g.is_some()));
    assert_eq!(found, Ok(false), "too early");
}

/// Takes the one packet that is sent between two values of the key-value store.
fn take_one(peer: &Peer, go: &str, sent: &str) {
    peer.linked();
    let before = peer.activity();
    peer.put(go, &[]);
    peer.get(sent);
    peer.taken(before, 1);
}

fn put_member(peer: &Peer, key: &str, member: &Member) {
    peer.put(key, &member.to_bytes());
}

fn get_member(peer: &Peer, key: &str) -> Member {
    Member::from_bytes(&peer.get(key)).unwrap()
}

fn grow(peer: &Peer, member: &Member) -> Sender<Host> {
    peer.with(|manager| Sender::grow(manager, member, GROW).unwrap())
}

/// Sends in several parts of uneven length; the last one may be empty.
fn scatter(peer: &Peer, member: &Member, data: &[u8], parts: usize) {
    let mut sender = grow(peer, member);
    let mut at = 0;
    for part in 1..parts {
        let end = data.len() * part * part / (parts * parts);
        peer.send(|_, _| sender.send(at as u64, &data[at..end], GROW))
            .unwrap();
        at = end;
    }
    peer.send(|_, _| sender.send_last(at as u64, &data[at..], GROW))
        .unwrap();
    for late in [&data[..0], data] {
        let error = peer.with(|_| sender.send_last(0, late, GROW)).unwrap_err();
        assert_eq!(error, SendError::Finished);
    }
    let error = peer.with(|_| sender.send(0, &[], GROW)).unwrap_err();
    assert_eq!(error, SendError::Finished);
}

pub(crate) fn one_notification_for_all_members(world: &World) {
    const PART: u64 = 150_001;
    let member = |number: usize| {
        move |peer: &mut Peer| {
            for round in 0..3 {
                let member = get_member(peer, &format!("member {number} of {round}"));
                let data = pattern(round * 10 + number as u64, PART as usize);
                scatter(peer, &member, &data, number + 2);
            }
        }
    };
    let (one, two, three) = (member(0), member(1), member(2));
    let roles: [Role<'_>; 4] = [
        &|peer| {
            let mut receiver = receiver(peer, 3 * PART as u32, Counting::Bits32);
            for round in 0..3 {
                let members = begin(peer, &mut receiver).divide(&[PART; 3]).unwrap();
                incomplete(peer, &mut receiver);
                for (number, member) in members.iter().enumerate() {
                    put_member(peer, &format!("member {number} of {round}"), member);
                }
                let got = whole(peer, &mut receiver);
                for (number, part) in got.chunks(PART as usize).enumerate() {
                    let expected = pattern(round * 10 + number as u64, PART as usize);
                    assert!(part == expected, "member {number}");
                }
            }
            let info = peer.with(|_| receiver.info().unwrap());
            assert_eq!(info.refusals.total(), 0);
        },
        &one,
        &two,
        &three,
    ];
    world.run(&roles);
}

pub(crate) fn members_are_divided_among_delegates(world: &World) {
    // The third gets its part from the second, whom alone the receiver knows.
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, 10_000, Counting::Bits32);
            let member = begin(peer, &mut receiver);
            put_member(peer, "whole", &member);
            assert!(whole(peer, &mut receiver) == pattern(1, 10_000));
        },
        &|peer| {
            let data = pattern(1, 10_000);
            let parts = get_member(peer, "whole")
                .divide(&[4_000, 5_000, 1_000])
                .unwrap();
            put_member(peer, "delegated", &parts[1]);
            peer.get("delegate done");
            scatter(peer, &parts[2], &data[9_000..], 1);
            scatter(peer, &parts[0], &data[..4_000], 4);
        },
        &|peer| {
            let data = pattern(1, 10_000);
            let member = get_member(peer, "delegated");
            // Once more, and further.
            let parts = member.divide(&[1, 2_999, 2_000]).unwrap();
            let deeper = parts[1].divide(&[1_500, 1_499]).unwrap();
            scatter(peer, &deeper[1], &data[4_000 + 1 + 1_500..][..1_499], 2);
            scatter(peer, &parts[2], &data[7_000..9_000], 3);
            scatter(peer, &deeper[0], &data[4_001..][..1_500], 1);
            scatter(peer, &parts[0], &data[4_000..4_001], 1);
            peer.put("delegate done", &[]);
        },
    ]);
}

pub(crate) fn a_barrier_has_no_bytes(world: &World) {
    const ROUNDS: usize = 20;
    let member = |number: usize| {
        move |peer: &mut Peer| {
            for round in 0..ROUNDS {
                scatter(
                    peer,
                    &get_member(peer, &format!("{number} of {round}")),
                    &[],
                    1 + round % 2,
                );
            }
        }
    };
    let (one, two) = (member(0), member(1));
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, 0, Counting::Bits32);
            for round in 0..ROUNDS {
                let members = begin(peer, &mut receiver).divide(&[0, 0]).unwrap();
                put_member(peer, &format!("0 of {round}"), &members[0]);
                incomplete(peer, &mut receiver);
                put_member(peer, &format!("1 of {round}"), &members[1]);
                assert_eq!(whole(peer, &mut receiver), b"");
            }
        },
        &one,
        &two,
    ]);
}

pub(crate) fn a_late_member_of_an_earlier_round_is_refused(world: &World) {
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, 64, Counting::Bits32);
            let early = begin(peer, &mut receiver).divide(&[32, 32]).unwrap();
            put_member(peer, "early 0", &early[0]);
            take_one(peer, "go", "half");
            incomplete(peer, &mut receiver);
            // The round is given up half-way, and begun again.
            let again = begin(peer, &mut receiver).divide(&[32, 32]).unwrap();
            put_member(peer, "early 1", &early[1]);
            put_member(peer, "again 0", &again[0]);
            put_member(peer, "again 1", &again[1]);
            assert_eq!(whole(peer, &mut receiver), [[2; 32], [3; 32]].concat());
            peer.until("the refusal", |manager, _| {
                if !peer.is_in_order {
                    manager.session().poll();
                }
                let refused = receiver.info().unwrap().refusals;
                let refused = refused.count(Refusal::BadEntryKey);
                assert!(
                    refused == 1 || refused == 0 && !peer.is_in_order,
                    "{refused}"
                );
                (refused == 1).then_some(())
            });
        },
        &|peer| {
            let early = get_member(peer, "early 0");
            grow(peer, &early);
            peer.get("go");
            scatter(peer, &early, &[1; 32], 1);
            peer.flush();
            peer.put("half", &[]);
            scatter(peer, &get_member(peer, "early 1"), &[9; 32], 1);
            scatter(peer, &get_member(peer, "again 0"), &[2; 32], 3);
            scatter(peer, &get_member(peer, "again 1"), &[3; 32], 1);
        },
    ]);
}

pub(crate) fn a_round_that_completed_unseen_is_not_taken_for_the_next(world: &World) {
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, 0, Counting::Bits32);
            let unseen = begin(peer, &mut receiver);
            put_member(peer, "unseen", &unseen);
            take_one(peer, "go", "sent");
            // Nobody asked; the round is given up.
            let next = begin(peer, &mut receiver);
            incomplete(peer, &mut receiver);
            put_member(peer, "next", &next);
            assert_eq!(whole(peer, &mut receiver), b"");
        },
        &|peer| {
            let unseen = get_member(peer, "unseen");
            grow(peer, &unseen);
            peer.get("go");
            scatter(peer, &unseen, &[], 1);
            peer.flush();
            peer.put("sent", &[]);
            scatter(peer, &get_member(peer, "next"), &[], 1);
        },
    ]);
}

pub(crate) fn divisions_too_small_are_refused(world: &World) {
    world.alone(&|peer| {
        let mut receiver = receiver(peer, 1 << 20, Counting::Bits32);
        let member = begin(peer, &mut receiver);
        // Beyond the place.
        assert!(matches!(
            member.divide(&[1 << 20, 1]),
            Err(SplitError::Outside(_))
        ));
        assert!(matches!(
            member.divide(&[u64::MAX, 2]),
            Err(SplitError::Outside(_))
        ));
        assert!(matches!(member.divide(&[]), Err(SplitError::Share(_))));
        // Each halving leaves half the share; in the end it cannot count the bytes.
        let mut small = member;
        let error = loop {
            match small.divide(&[small.ticket.length_bytes, 0]) {
                Ok(parts) => small = parts[1],
                Err(error) => break error,
            }
            small = match small.divide(&[0; 1000]) {
                Ok(parts) => parts[0],
                Err(error) => break error,
            };
        };
        assert!(error.to_string().contains("64-bit accumulators"), "{error}");
        assert!(error.to_string().contains("fewer parts"), "{error}");
    });
}

pub(crate) fn accumulators_of_64_bits_divide_further(world: &World) {
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, 3, Counting::Bits64);
            let mut member = begin(peer, &mut receiver);
            // As deep as 32 bits would never go.
            let mut others = Vec::new();
            for _ in 0..5 {
                let mut parts = member.divide(&[3, 0, 0, 0]).unwrap();
                let mut thousand = parts[0]
                    .divide(&[[0; 999].as_slice(), &[3]].concat())
                    .unwrap();
                member = thousand.pop().unwrap();
                others.extend(parts.drain(1..));
                others.extend(thousand);
            }
            for other in &others {
                let mut sender = grow(peer, other);
                peer.send(|_, _| sender.send_last(0, &[], GROW)).unwrap();
                incomplete(peer, &mut receiver);
            }
            put_member(peer, "the last", &member);
            assert_eq!(whole(peer, &mut receiver), b"end");
        },
        &|peer| scatter(peer, &get_member(peer, "the last"), b"end", 3),
    ]);
}
