//! Programs on different hosts of a bad network: what was sent comes, or its sender is told why
//! not.

use std::sync::Mutex;

use hamlyn::engine::key::Key;
use hamlyn::host::{Address, Supply};
use hamlyn::{ManagerOptions, Message, NewSlot, Ticket, Wait};
use hamlyn_sim::network::impairment::Cut;
use hamlyn_sim::network::{HostId, Impairment, Mesh};
use hamlyn_sim::random::Random;
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{self, ProcessId, Settings, Simulation};

const TIMEOUT: Span = Span::from_us(5_000);
const WAY: Impairment = Impairment::Delay {
    delay_ps: 2_000_000,
};
const LOSS: Impairment = Impairment::Lose {
    per_million: 100_000,
    run_frames: 1,
};

/// What the sender does when all is sent.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// It sends on, until it is told that its peer is lost.
    Insists,
    /// It ends at once.
    Leaves,
}

/// What came, in order; and what the sender was told last, and what came back to it.
#[derive(Debug, Default)]
struct Seen {
    came: Vec<u64>,
    told: String,
    back: Vec<String>,
    at: u64,
}

/// A program that sends so many words to one of another host; `inject` injects faults into them,
/// `wrong` a word that is sent with a wrong key.
fn send_words(
    parts: &[Impairment],
    words: u64,
    wrong: Option<u64>,
    then: Then,
    inject: impl FnOnce(&mut Simulation<'_>, [ProcessId; 2]),
) -> Seen {
    let seen = Mutex::new(Seen::default());
    let mut world = Simulation::new(Settings::default());
    let (one, other) = (world.node(1), world.node(1));
    let network = Mesh::new(2, parts, &mut Random::new(5)).unwrap();
    world.set_network(Box::new(network), TIMEOUT);
    let taker = world.process(one, "taker", || {
        let options = ManagerOptions::default();
        let manager = hamlyn_sim::host::open(Some("taker"), options).unwrap();
        let area = manager.session().allocate(64).unwrap();
        let mut queue = manager.session().open_queue(256).unwrap();
        let slot = manager
            .session()
            .open_slot(NewSlot::new(&area).queue(&queue))
            .unwrap();
        let ticket = slot.fast_ticket(0, 64).unwrap().to_bytes();
        manager
            .session()
            .offer("ticket", Supply::Always, &ticket)
            .unwrap();
        let least = words - u64::from(wrong.is_some());
        let mut quiet = 0;
        while (seen.lock().unwrap().came.len() as u64) < least && quiet < 20 {
            match manager.session().rcv_block(&mut queue, Wait::millis(10)) {
                Ok(Some(came)) => seen.lock().unwrap().came.push(came.word),
                // The loss of a peer interrupts waits.
                _ => quiet += 1,
            }
        }
        world::pause(TIMEOUT * 4);
    });
    let giver = world.process(other, "giver", || {
        let options = ManagerOptions::default();
        let manager = hamlyn_sim::host::open(Some("giver"), options).unwrap();
        let terminus = manager.terminus();
        let taker = Address::Name("taker");
        let bytes = manager
            .session()
            .ask(taker, "ticket", Wait::Forever)
            .unwrap();
        let right = Ticket::from_bytes(&bytes).unwrap();
        let mut other = right;
        other.key = Key::from_bits(right.key.to_bits() ^ 1);
        let [right, other] =
            [right, other].map(|ticket| manager.session().target(&ticket, Wait::Forever).unwrap());
        let mut number = 0;
        let end = loop {
            if number >= words && then == Then::Leaves {
                break None;
            }
            let target = if wrong == Some(number) {
                &other
            } else {
                &right
            };
            let message = Message::new(&[1; 16]).word(number);
            if let Err(error) =
                manager
                    .session()
                    .send_msg(terminus, target, &message, Wait::Forever)
            {
                break Some(error.to_string());
            }
            number += 1;
            world::pause(Span::from_us(5));
        };
        let _ = manager.session().flush(Wait::millis(5));
        if wrong.is_some() {
            world::pause(Span::from_us(2_000));
            let _ = manager.session().flush(Wait::Poll);
        }
        let mut seen = seen.lock().unwrap();
        seen.told = end.unwrap_or_default();
        seen.at = world::now().as_ns();
        while let Some(back) = manager.session().next_undelivered() {
            seen.back.push(format!("{} {}", back.word, back.reason));
        }
    });
    inject(&mut world, [taker, giver]);
    let outcome = world.run(Time::from_ns(2_000_000_000));
    assert_eq!(outcome.failures, Vec::<String>::new());
    seen.into_inner().unwrap()
}

fn sorted(mut words: Vec<u64>) -> Vec<u64> {
    words.sort_unstable();
    words
}

#[test]
fn what_was_sent_comes_though_its_sender_has_left() {
    let seen = send_words(&[WAY, LOSS], 100, None, Then::Leaves, |_, _| ());
    assert_eq!(sorted(seen.came), (0..100).collect::<Vec<_>>());
    assert_eq!(seen.told, "");
}

#[test]
fn a_killed_peer_answers_nothing() {
    let killed_ns = 1_000_000;
    let seen = send_words(
        &[WAY, LOSS],
        u64::MAX,
        None,
        Then::Insists,
        |world, [taker, _]| {
            world.at(Time::from_ns(killed_ns), move || world::kill(taker));
        },
    );
    assert!(
        seen.told.contains("neither it nor its host answers"),
        "{}",
        seen.told
    );
    let took_ns = seen.at - killed_ns;
    let timeout_ns = TIMEOUT.as_ns();
    assert!((timeout_ns..3 * timeout_ns).contains(&took_ns), "{took_ns}");
    // What was not acknowledged comes back.
    assert!(!seen.back.is_empty());
    let silence = |back: &String| back.ends_with("the peer does not answer");
    assert!(seen.back.iter().all(silence), "{:?}", seen.back);
}

#[test]
fn a_peer_that_leaves_says_so() {
    let seen = send_words(&[WAY], 10, None, Then::Insists, |_, _| ());
    assert!(seen.told.contains("closed its interface"), "{}", seen.told);
    assert_eq!(sorted(seen.came), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_stopped_program_is_slow_and_not_dead() {
    let for_ns = 4 * TIMEOUT.as_ns();
    let seen = send_words(
        &[WAY, LOSS],
        300,
        None,
        Then::Leaves,
        |world, [taker, _]| {
            world.at(Time::from_ns(300_000), move || world::stop(taker));
            world.at(Time::from_ns(300_000 + for_ns), move || {
                world::resume(taker)
            });
        },
    );
    assert_eq!(sorted(seen.came), (0..300).collect::<Vec<_>>());
}

#[test]
fn a_partition_that_heals_is_not_noticed_and_a_long_one_is() {
    let apart = |for_ps| Impairment::Partition {
        cuts: vec![Cut {
            from_ps: 500_000_000,
            until_ps: 500_000_000 + for_ps,
            one: vec![HostId(0)],
            other: vec![HostId(1)],
        }],
    };
    let short = apart(TIMEOUT.as_ps() / 2);
    let seen = send_words(&[WAY, short], 300, None, Then::Leaves, |_, _| ());
    assert_eq!(sorted(seen.came), (0..300).collect::<Vec<_>>());
    let long = apart(4 * TIMEOUT.as_ps());
    let seen = send_words(&[WAY, long], 100_000, None, Then::Leaves, |_, _| ());
    assert!(
        seen.told.contains("neither it nor its host answers"),
        "{}",
        seen.told
    );
}

#[test]
fn what_is_refused_comes_back_with_the_reason_and_nothing_else_does() {
    let seen = send_words(&[WAY, LOSS], 50, Some(17), Then::Leaves, |_, _| ());
    let all_others = (0..50).filter(|word| *word != 17).collect::<Vec<_>>();
    assert_eq!(sorted(seen.came), all_others);
    assert_eq!(seen.back.len(), 1, "{:?}", seen.back);
    assert!(seen.back[0].starts_with("17 refused"), "{:?}", seen.back);
}
