//! Many peers at one receiver: those that are silent cost nothing, those that come back are heard,
//! and whatever is written into the ready bitmap only delays (decision 0005).

use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::host::{Address, ConnectError, HostError, RefusedBecause};
use hamlyn::{Manager, ManagerOptions, Message, NewSlot, Queue, Slot, Strategy, Target, Wait};
use hamlyn_ring::poll_set::SWEEP_POLLS;
use hamlyn_ring::ready_bitmap::READY_BITMAP_BYTES;

use crate::support::raw_link::RawLink;
use crate::support::{LONG, Random, namespace, open, open_shared, until};

const PEERS: usize = 30;
const HOSTILE: u64 = 0xBAD;

struct Sender {
    manager: Manager<ProcessHost<AnyThread>>,
    target: Target,
}

impl Sender {
    fn send(&mut self, word: u64) {
        let terminus = self.manager.terminus();
        let message = Message::new(&[7; 8]).word(word);
        self.manager
            .session()
            .send_msg(terminus, &self.target, &message, LONG)
            .unwrap();
    }
}

struct Scene {
    here: Manager<ProcessHost>,
    queue: Queue,
    _slot: Slot,
    senders: Vec<Sender>,
}

/// A receiver with peers that have been silent for long.
fn scene(namespace: &str) -> Scene {
    let mut options = Options::default().in_namespace(namespace);
    options.spin_ns = Some(0);
    let here = hamlyn::open_with(options, ManagerOptions::default()).unwrap();
    let area = here.session().allocate(64).unwrap();
    let mut queue = here.session().open_queue(1024).unwrap();
    let slot = here
        .session()
        .open_slot(NewSlot::new(&area).queue(&queue))
        .unwrap();
    let ticket = slot.fast_ticket(0, 64).unwrap();
    let mut senders = Vec::new();
    for _ in 0..PEERS {
        let manager = open_shared(namespace);
        let target = manager.session().target(&ticket, LONG).unwrap();
        senders.push(Sender { manager, target });
    }
    for (number, sender) in senders.iter_mut().enumerate() {
        sender.send(number as u64);
    }
    for _ in 0..PEERS {
        assert!(
            here.session()
                .rcv_block(&mut queue, LONG)
                .unwrap()
                .is_some()
        );
    }
    silence(&here, &mut queue);
    Scene {
        here,
        queue,
        _slot: slot,
        senders,
    }
}

/// Polls until none of many links is active that need not be.
fn silence(here: &Manager<ProcessHost>, queue: &mut Queue) {
    for _ in 0..20_000 {
        assert_eq!(here.session().rcv(queue).unwrap(), None);
    }
}

/// How many polls it takes until a message is there; none if it takes more than `most`.
fn polls_until_heard(scene: &mut Scene, most: u32, mut before: impl FnMut()) -> Option<(u32, u64)> {
    for polls in 1..=most {
        before();
        if let Some(notification) = scene.here.session().rcv(&mut scene.queue).unwrap() {
            return Some((polls, notification.word));
        }
    }
    None
}

#[test]
fn a_silent_peer_that_sends_again_is_heard_at_once() {
    let mut scene = scene(&namespace());
    for round in 0..3 {
        for sender in 0..PEERS {
            let word = (round * PEERS + sender) as u64;
            scene.senders[sender].send(word);
            let heard = polls_until_heard(&mut scene, 3, || ());
            assert!(
                matches!(heard, Some((_, found)) if found == word),
                "{heard:?}"
            );
        }
        silence(&scene.here, &mut scene.queue);
    }
}

#[test]
fn notes_that_are_wiped_out_or_forged_only_delay() {
    let namespace = namespace();
    let mut scene = scene(&namespace);
    let identity = scene.here.session().identity();
    let hostile = RawLink::connect(&namespace, identity, HOSTILE).unwrap();
    scene.here.session().poll();
    // All links but those that are always active are swept in this many polls.
    let round = SWEEP_POLLS * (PEERS as u32 + 1);
    for forged in [0, u64::MAX] {
        for number in 0..PEERS {
            scene.senders[number].send(number as u64);
            let heard = polls_until_heard(&mut scene, 2 * round, || {
                for offset in (0..READY_BITMAP_BYTES).step_by(8) {
                    hostile.ready_bitmap.store_u64(offset, forged).unwrap();
                }
            });
            assert!(
                matches!(heard, Some((_, found)) if found == number as u64),
                "{heard:?} of {number} with ready bits of {forged:x}"
            );
        }
        for offset in (0..READY_BITMAP_BYTES).step_by(8) {
            hostile.ready_bitmap.store_u64(offset, 0).unwrap();
        }
        silence(&scene.here, &mut scene.queue);
    }
}

/// The receiver always sleeps, and somebody always writes anything into the ready bitmap.
#[test]
fn nobody_sleeps_beside_a_message_whatever_stands_in_the_ready_bitmap() {
    const MESSAGES: u64 = 2_000;
    let namespace = namespace();
    let mut scene = scene(&namespace);
    let identity = scene.here.session().identity();
    let hostile = RawLink::connect(&namespace, identity, HOSTILE).unwrap();
    let stop = AtomicBool::new(false);
    let mut senders = std::mem::take(&mut scene.senders);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(5);
            while !stop.load(Ordering::Relaxed) {
                let offset = random.below(READY_BITMAP_BYTES as u64 / 8) as usize * 8;
                let value = [0, u64::MAX, random.next()][random.below(3) as usize];
                let _ = hostile.ready_bitmap.store_u64(offset, value);
            }
        });
        scope.spawn(|| {
            let mut random = Random::new(6);
            for number in 0..MESSAGES {
                let sender = random.below(PEERS as u64) as usize;
                senders[sender].send(number);
                random.dawdle(std::time::Duration::from_micros(50));
            }
        });
        let mut heard = vec![false; MESSAGES as usize];
        for _ in 0..MESSAGES {
            let taken = scene
                .here
                .session()
                .rcv_block(&mut scene.queue, LONG)
                .unwrap();
            let word = taken.expect("it was sent").word as usize;
            assert!(
                !std::mem::replace(&mut heard[word], true),
                "{word} came twice"
            );
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn busy_peers_have_equal_shares() {
    const EACH: usize = 60;
    let mut scene = scene(&namespace());
    for _ in 0..EACH {
        for (number, sender) in scene.senders.iter_mut().enumerate() {
            sender.send(number as u64);
        }
    }
    let mut had = [0_usize; PEERS];
    // Half of all messages; a turn is 32 of them.
    for _ in 0..PEERS * EACH / 2 {
        let taken = scene
            .here
            .session()
            .rcv_block(&mut scene.queue, Wait::Poll)
            .unwrap();
        had[taken.expect("it was sent").word as usize] += 1;
    }
    let share = EACH / 2;
    assert!(had.iter().all(|had| *had <= share + 32), "{had:?}");
    let served = had.iter().filter(|had| **had > 0).count();
    assert!(served >= PEERS / 2 - 1, "{had:?}");
}

/// Links that the busy peer allows itself.
const ALLOWED: u32 = 4;

fn open_busy(namespace: &str, strategy: Strategy) -> Manager<ProcessHost> {
    let mut options = Options::named("busy").in_namespace(namespace);
    options.links_max = ALLOWED;
    let with = ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    };
    hamlyn::open_with(options, with).unwrap()
}

#[test]
fn peers_that_come_and_go_unheard_count_against_the_limit() {
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let busy = open_busy(&namespace, strategy);
        let come = || {
            let peer = open(&namespace);
            peer.session().connect(Address::Name("busy"), LONG)
        };
        for _ in 0..ALLOWED {
            come().unwrap();
        }
        // However busy a network processor is for an application that computes.
        for _ in 0..ALLOWED {
            let refused = come();
            let is_too_many = matches!(
                refused,
                Err(ConnectError::Refused {
                    reason: RefusedBecause::TOO_MANY,
                    ..
                })
            );
            assert!(is_too_many, "{strategy:?}: {refused:?}");
        }
        until("room for another", || {
            busy.session().poll();
            come().ok()
        });
    }
}

/// A program that only connects hears by that of peers that left.
#[test]
fn peers_that_left_are_no_limit_to_who_connects_to_others() {
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let busy = open_busy(&namespace, strategy);
        for number in 0..4 * ALLOWED {
            let options = Options::named("peer").in_namespace(&namespace);
            let peer = hamlyn::open_with(options, ManagerOptions::default()).unwrap();
            until("a link to another", || {
                let linked = busy.session().connect(Address::Name("peer"), LONG);
                // It may take a while until it is known that the last one left.
                assert!(
                    matches!(
                        linked,
                        Ok(_) | Err(ConnectError::Host(HostError::LinksFull { .. }))
                    ),
                    "{strategy:?}, {number}: {linked:?}"
                );
                linked.ok()
            });
            drop(peer);
        }
    }
}
