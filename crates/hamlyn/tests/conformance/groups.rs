//! Group receive and scatter-gather (`Hamlyn 2.5`).

use hamlyn::engine::counting::Counting;
use hamlyn::engine::refusal::Refusal;
use hamlyn::group::{Member, Receiver, Sender, SplitError};
use hamlyn::{SendError, Wait};

use crate::party::{Party, Role, pattern};
use crate::{Host, World};

const GROW: Wait = Wait::millis(10_000);

fn receiver(party: &Party, bytes: u32, counting: Counting) -> Receiver<Host> {
    party.with(|manager| Receiver::new(manager, bytes, counting).unwrap())
}

fn begin(party: &Party, receiver: &mut Receiver<Host>) -> Member {
    party.with(|_| receiver.begin().unwrap())
}

/// Waits for the whole group, and copies its place.
fn whole(party: &Party, receiver: &mut Receiver<Host>) -> Vec<u8> {
    party.receive("the group", |_, wait| {
        Ok(receiver.recv(wait)?.map(<[u8]>::to_vec))
    })
}

fn incomplete(party: &Party, receiver: &mut Receiver<Host>) {
    let found = party.with(|_| receiver.recv(Wait::Poll).map(|g| g.is_some()));
    assert_eq!(found, Ok(false), "too early");
}

/// Takes the one packet that is sent between two words.
fn take_one(party: &Party, go: &str, sent: &str) {
    party.linked();
    let before = party.activity();
    party.tell(go, &[]);
    party.hear(sent);
    party.taken(before, 1);
}

fn tell(party: &Party, word: &str, member: &Member) {
    party.tell(word, &member.to_bytes());
}

fn hear(party: &Party, word: &str) -> Member {
    Member::from_bytes(&party.hear(word)).unwrap()
}

fn grow(party: &Party, member: &Member) -> Sender<Host> {
    party.with(|manager| Sender::grow(manager, member, GROW).unwrap())
}

/// Sends in several parts of uneven length; the last one may be empty.
fn scatter(party: &Party, member: &Member, data: &[u8], parts: usize) {
    let mut sender = grow(party, member);
    let mut at = 0;
    for part in 1..parts {
        let end = data.len() * part * part / (parts * parts);
        party
            .send(|_, _| sender.send(at as u64, &data[at..end], GROW))
            .unwrap();
        at = end;
    }
    party
        .send(|_, _| sender.send_last(at as u64, &data[at..], GROW))
        .unwrap();
    for late in [&data[..0], data] {
        let error = party.with(|_| sender.send_last(0, late, GROW)).unwrap_err();
        assert_eq!(error, SendError::Finished);
    }
    let error = party.with(|_| sender.send(0, &[], GROW)).unwrap_err();
    assert_eq!(error, SendError::Finished);
}

pub(crate) fn one_notification_for_all_members(world: &World) {
    const PART: u64 = 150_001;
    let member = |number: usize| {
        move |party: &mut Party| {
            for round in 0..3 {
                let member = hear(party, &format!("member {number} of {round}"));
                let data = pattern(round * 10 + number as u64, PART as usize);
                scatter(party, &member, &data, number + 2);
            }
        }
    };
    let (one, two, three) = (member(0), member(1), member(2));
    let roles: [Role<'_>; 4] = [
        &|party| {
            let mut receiver = receiver(party, 3 * PART as u32, Counting::Bits32);
            for round in 0..3 {
                let members = begin(party, &mut receiver).divide(&[PART; 3]).unwrap();
                incomplete(party, &mut receiver);
                for (number, member) in members.iter().enumerate() {
                    tell(party, &format!("member {number} of {round}"), member);
                }
                let got = whole(party, &mut receiver);
                for (number, part) in got.chunks(PART as usize).enumerate() {
                    let expected = pattern(round * 10 + number as u64, PART as usize);
                    assert!(part == expected, "member {number}");
                }
            }
            let info = party.with(|_| receiver.info().unwrap());
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
        &|party| {
            let mut receiver = receiver(party, 10_000, Counting::Bits32);
            let member = begin(party, &mut receiver);
            tell(party, "whole", &member);
            assert!(whole(party, &mut receiver) == pattern(1, 10_000));
        },
        &|party| {
            let data = pattern(1, 10_000);
            let parts = hear(party, "whole").divide(&[4_000, 5_000, 1_000]).unwrap();
            tell(party, "delegated", &parts[1]);
            party.hear("delegate done");
            scatter(party, &parts[2], &data[9_000..], 1);
            scatter(party, &parts[0], &data[..4_000], 4);
        },
        &|party| {
            let data = pattern(1, 10_000);
            let member = hear(party, "delegated");
            // Once more, and further.
            let parts = member.divide(&[1, 2_999, 2_000]).unwrap();
            let deeper = parts[1].divide(&[1_500, 1_499]).unwrap();
            scatter(party, &deeper[1], &data[4_000 + 1 + 1_500..][..1_499], 2);
            scatter(party, &parts[2], &data[7_000..9_000], 3);
            scatter(party, &deeper[0], &data[4_001..][..1_500], 1);
            scatter(party, &parts[0], &data[4_000..4_001], 1);
            party.tell("delegate done", &[]);
        },
    ]);
}

pub(crate) fn a_barrier_has_no_bytes(world: &World) {
    const ROUNDS: usize = 20;
    let member = |number: usize| {
        move |party: &mut Party| {
            for round in 0..ROUNDS {
                scatter(
                    party,
                    &hear(party, &format!("{number} of {round}")),
                    &[],
                    1 + round % 2,
                );
            }
        }
    };
    let (one, two) = (member(0), member(1));
    world.run(&[
        &|party| {
            let mut receiver = receiver(party, 0, Counting::Bits32);
            for round in 0..ROUNDS {
                let members = begin(party, &mut receiver).divide(&[0, 0]).unwrap();
                tell(party, &format!("0 of {round}"), &members[0]);
                incomplete(party, &mut receiver);
                tell(party, &format!("1 of {round}"), &members[1]);
                assert_eq!(whole(party, &mut receiver), b"");
            }
        },
        &one,
        &two,
    ]);
}

pub(crate) fn a_late_member_of_an_earlier_round_is_refused(world: &World) {
    world.run(&[
        &|party| {
            let mut receiver = receiver(party, 64, Counting::Bits32);
            let early = begin(party, &mut receiver).divide(&[32, 32]).unwrap();
            tell(party, "early 0", &early[0]);
            take_one(party, "go", "half");
            incomplete(party, &mut receiver);
            // The round is given up half-way, and begun again.
            let again = begin(party, &mut receiver).divide(&[32, 32]).unwrap();
            tell(party, "early 1", &early[1]);
            tell(party, "again 0", &again[0]);
            tell(party, "again 1", &again[1]);
            assert_eq!(whole(party, &mut receiver), [[2; 32], [3; 32]].concat());
            party.until("the refusal", |manager, _| {
                if !party.is_in_order {
                    manager.interface().poll();
                }
                let refused = receiver.info().unwrap().refusals;
                let refused = refused.count(Refusal::BadEntryKey);
                assert!(
                    refused == 1 || refused == 0 && !party.is_in_order,
                    "{refused}"
                );
                (refused == 1).then_some(())
            });
        },
        &|party| {
            let early = hear(party, "early 0");
            grow(party, &early);
            party.hear("go");
            scatter(party, &early, &[1; 32], 1);
            party.flush();
            party.tell("half", &[]);
            scatter(party, &hear(party, "early 1"), &[9; 32], 1);
            scatter(party, &hear(party, "again 0"), &[2; 32], 3);
            scatter(party, &hear(party, "again 1"), &[3; 32], 1);
        },
    ]);
}

pub(crate) fn a_round_that_completed_unseen_is_not_taken_for_the_next(world: &World) {
    world.run(&[
        &|party| {
            let mut receiver = receiver(party, 0, Counting::Bits32);
            let unseen = begin(party, &mut receiver);
            tell(party, "unseen", &unseen);
            take_one(party, "go", "sent");
            // Nobody asked; the round is given up.
            let next = begin(party, &mut receiver);
            incomplete(party, &mut receiver);
            tell(party, "next", &next);
            assert_eq!(whole(party, &mut receiver), b"");
        },
        &|party| {
            let unseen = hear(party, "unseen");
            grow(party, &unseen);
            party.hear("go");
            scatter(party, &unseen, &[], 1);
            party.flush();
            party.tell("sent", &[]);
            scatter(party, &hear(party, "next"), &[], 1);
        },
    ]);
}

pub(crate) fn divisions_too_small_are_refused(world: &World) {
    world.alone(&|party| {
        let mut receiver = receiver(party, 1 << 20, Counting::Bits32);
        let member = begin(party, &mut receiver);
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
        &|party| {
            let mut receiver = receiver(party, 3, Counting::Bits64);
            let mut member = begin(party, &mut receiver);
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
                let mut sender = grow(party, other);
                party.send(|_, _| sender.send_last(0, &[], GROW)).unwrap();
                incomplete(party, &mut receiver);
            }
            tell(party, "the last", &member);
            assert_eq!(whole(party, &mut receiver), b"end");
        },
        &|party| scatter(party, &hear(party, "the last"), b"end", 3),
    ]);
}
