//! Two programs that wait for ever, and senders that look late whether they must ring.
#![allow(unreachable_pub, reason = "a module of several tests")]

use hamlyn::{ManagerOptions, Message, NewSlot, Strategy, Ticket, Wait};
use hamlyn_sim::random::Random;
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{self, Outcome, Settings, Simulation};

const MESSAGES: u64 = 200;

/// One program sends to another, at random intervals, which answers now and then; both wait for
/// ever.
fn history(seed: u64, strategy: Strategy) -> Outcome {
    let settings = Settings {
        seed,
        ring_delay: Span::from_us(20),
        link_packets: 4,
        ..Settings::default()
    };
    let mut world = Simulation::new(settings);
    let node = world.node(2);
    let processes = [("one", "other", true), ("other", "one", false)];
    for (name, peer, leads) in processes {
        world.process(node, name, move || {
            let options = ManagerOptions {
                strategy,
                ..ManagerOptions::default()
            };
            let manager = hamlyn_sim::host::open(Some(name), options).unwrap();
            let terminus = manager.terminus();
            let area = manager.session().allocate(64).unwrap();
            let mut queue = manager.session().open_queue(1024).unwrap();
            let slot = NewSlot::new(&area).queue(&queue);
            let ticket = manager
                .session()
                .open_slot(slot)
                .unwrap()
                .fast_ticket(0, 64)
                .unwrap();
            let always = hamlyn::host::Supply::Always;
            manager
                .session()
                .offer("ticket", always, &ticket.to_bytes())
                .unwrap();
            let peer = hamlyn::host::Address::Name(peer);
            let bytes = manager
                .session()
                .ask(peer, "ticket", Wait::Forever)
                .unwrap();
            let ticket = Ticket::from_bytes(&bytes).unwrap();
            let target = manager.session().target(&ticket, Wait::Forever).unwrap();
            let mut random = Random::new(seed);
            for word in 0..MESSAGES {
                // Both draw the same, so both know who is to send.
                let (idle, answers) = (random.below(60_000), random.below(3) == 0);
                let sends = leads != answers;
                if sends {
                    world::pause(Span::from_ns(idle));
                    let message = Message::new(&[1; 16]).word(word);
                    manager
                        .session()
                        .send_msg(terminus, &target, &message, Wait::Forever)
                        .unwrap();
                    // The other receives afterwards, and sleeps until then. Who sends is drawn;
                    // whether it is fenced is not.
                    if word % 5 == 0 && word + 1 < MESSAGES {
                        let fenced = manager.session().fence(Wait::Forever);
                        assert_eq!(fenced, Ok(()));
                    }
                } else {
                    let came = manager
                        .session()
                        .rcv_block(&mut queue, Wait::Forever)
                        .unwrap();
                    assert_eq!(came.unwrap().word, word);
                }
            }
            manager.session().flush(Wait::Forever).unwrap();
            world::pause(Span::from_us(100));
        });
    }
    world.run(Time::NEVER)
}

/// The first seed in which somebody sleeps for ever.
pub fn sleeper(strategy: Strategy) -> Option<(u64, Vec<String>)> {
    (0..60).find_map(|seed| {
        let failures = history(seed, strategy).failures;
        (!failures.is_empty()).then_some((seed, failures))
    })
}
