//! A hostile interface in the world: it has no library, only a link, and sends whatever packets it
//! likes beside an honest program. It may end its own link, and do nothing else.

use std::collections::BTreeMap;
use std::sync::Mutex;

use hamlyn::engine::key::Key;
use hamlyn::engine::limits::FAST_INDEX;
use hamlyn::engine::slot::Mode;
use hamlyn::{ManagerOptions, Message, NewSlot, Strategy, Ticket, Wait};
use hamlyn_engine::memory::Part;
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_host::{Address, Connected, Host, Supply};
use hamlyn_link::{Link, TransmitEnd};
use hamlyn_sim::host::SimHost;
use hamlyn_sim::random::Random;
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{self, Settings, Simulation};

const SLOTS: u64 = 4;
const SLOT_BYTES: u64 = 256;
const HONEST: u64 = 300;
const WILD: u64 = 3_000;
const FOREVER: Wait = Wait::Forever;

fn ticket(name: &str, host: &mut SimHost) -> Ticket {
    let bytes = host.ask(Address::Name("victim"), name, u64::MAX).unwrap();
    Ticket::from_bytes(&bytes).unwrap()
}

/// A packet that is nearly right, or not at all, but never opens anything: its key is not one of
/// the slots'.
fn wild_header(random: &mut Random, known: &Ticket, keys: &[Key]) -> Header {
    let near = |random: &mut Random, value: u64| match random.below(4) {
        0 => value,
        1 => value.wrapping_add(random.below(3)).wrapping_sub(1),
        2 => random.below(1 << 12),
        _ => random.bits(),
    };
    let key = Key::from_bits(random.bits());
    assert!(!keys.contains(&key));
    let index = known.slot.index();
    Header {
        slot: SlotName::new(
            near(random, index.into()) as u16,
            near(random, known.slot.generation().into()) as u16,
        ),
        metadata_index: *random.one_of(&[0, 1, 7, FAST_INDEX]).unwrap(),
        key,
        offset: near(random, SLOT_BYTES),
        length_bytes: 0,
        word: random.bits(),
        metadata_length_bytes: 0,
        flags: Flags(random.below(256) as u8 & !Flags::PLACED.0),
        kind: Kind(if random.below(3) == 0 {
            random.below(256) as u8
        } else {
            0
        }),
    }
}

/// Sends packets until the link takes no more, as the other side has ended it, or all are sent.
fn attack(seed: u64) {
    let mut random = Random::new(seed);
    let mut host = SimHost::open(None).unwrap();
    let known = ticket("honest", &mut host);
    let keys = [known.key];
    let Ok(Connected::New(_, link)) = host.connect(Address::Name("victim"), u64::MAX) else {
        panic!("there was no link yet");
    };
    let (mut transmit, _receive) = link.split();
    for _ in 0..WILD {
        let mut header = wild_header(&mut random, &known, &keys);
        let data = vec![0xbd; random.below(300) as usize];
        let metadata = vec![0xbd; random.below(61) as usize];
        header.length_bytes = data.len() as u32;
        header.metadata_length_bytes = metadata.len() as u8;
        let parts = [Part::Bytes(&data)];
        while transmit.try_send(&header, &metadata, &parts).is_err() {
            world::pause(Span::from_us(5));
            if world::now() > Time::from_ns(1_000_000_000) {
                return;
            }
        }
    }
    world::pause(Span::from_us(2_000));
}

/// Honest messages beside the attack. Bad keys are a reason to cut the attacker off, or not, by
/// their budget.
fn victim(strategy: Strategy, bad_keys_max: u32, heard: &Mutex<u64>) {
    let options = ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    };
    let manager = hamlyn_sim::host::open(Some("victim"), options).unwrap();
    manager.session().set_bad_keys_max(bad_keys_max);
    let area = manager.session().allocate(SLOTS * SLOT_BYTES).unwrap();
    let mut queue = manager.session().open_queue(1024).unwrap();
    let mut slots = Vec::new();
    for number in 0..SLOTS {
        let from = number * SLOT_BYTES;
        let new = NewSlot::new(&area)
            .range(from..from + SLOT_BYTES)
            .queue(&queue)
            .entries(2);
        let new = match number {
            1 => new.mode(Mode::Paranoid),
            2 => new.mode(Mode::ParanoidOneShot),
            _ => new,
        };
        slots.push(manager.session().open_slot(new).unwrap());
    }
    let ticket = slots[0].fast_ticket(0, SLOT_BYTES).unwrap();
    let always = Supply::Always;
    manager
        .session()
        .offer("honest", always, &ticket.to_bytes())
        .unwrap();
    let mut expected = BTreeMap::new();
    while *heard.lock().unwrap() < HONEST {
        let Ok(Some(came)) = manager.session().rcv_block(&mut queue, Wait::millis(100)) else {
            // The attacker is lost, which interrupts the wait.
            continue;
        };
        assert!(came.is_fast() && came.slot == ticket.slot, "{came:?}");
        let place = came.word % (SLOT_BYTES / 16) * 16;
        expected.insert(place, came.word);
        *heard.lock().unwrap() += 1;
    }
    for (place, word) in expected {
        let mut bytes = [0; 16];
        area.read_at(place, &mut bytes).unwrap();
        assert_eq!(bytes, [word as u8; 16]);
    }
    let mut others = vec![0; ((SLOTS - 1) * SLOT_BYTES) as usize];
    area.read_at(SLOT_BYTES, &mut others).unwrap();
    assert!(others.iter().all(|byte| *byte == 0));
}

fn honest() {
    let manager = hamlyn_sim::host::open(None, ManagerOptions::default()).unwrap();
    let terminus = manager.terminus();
    let victim = Address::Name("victim");
    let bytes = manager.session().ask(victim, "honest", FOREVER).unwrap();
    let ticket = Ticket::from_bytes(&bytes).unwrap();
    let target = manager.session().target(&ticket, FOREVER).unwrap();
    for word in 0..HONEST {
        let data = [word as u8; 16];
        let message = Message::new(&data)
            .at(word % (SLOT_BYTES / 16) * 16)
            .word(word);
        manager
            .session()
            .send_msg(terminus, &target, &message, FOREVER)
            .unwrap();
        world::pause(Span::from_us(1));
    }
    manager.session().flush(FOREVER).unwrap();
    world::pause(Span::from_us(5_000));
}

#[test]
fn whatever_it_sends_does_nothing_and_stops_nobody() {
    for (number, strategy) in Strategy::ALL.into_iter().enumerate() {
        for (seed, bad_keys_max) in [(1, 50), (2, u32::MAX)] {
            let heard = Mutex::new(0);
            let mut world = Simulation::new(Settings {
                seed: seed + number as u64 * 10,
                ..Settings::default()
            });
            let nodes = [world.node(2), world.node(1), world.node(1)];
            world.process(nodes[0], "victim", || {
                victim(strategy, bad_keys_max, &heard)
            });
            world.process(nodes[1], "honest", honest);
            world.process(nodes[2], "hostile", move || attack(seed));
            let outcome = world.run(Time::from_ns(5_000_000_000));
            assert_eq!(outcome.failures, Vec::<String>::new(), "{strategy:?}");
            assert_eq!(*heard.lock().unwrap(), HONEST);
        }
    }
}
