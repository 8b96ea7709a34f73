//! How many events a second the world has: programs that flood each other, on one thread.

use std::time::Instant;

use hamlyn::{ManagerOptions, Message, NewSlot, Strategy, Ticket, Wait};
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{self, Settings, Simulation};

const MESSAGES: u64 = 300_000;

fn main() {
    for strategy in Strategy::ALL {
        let mut world = Simulation::new(Settings::default());
        let (one, other) = (world.node(2), world.node(2));
        let options = ManagerOptions {
            strategy,
            ..ManagerOptions::default()
        };
        world.process(one, "receiver", move || {
            let mut manager = hamlyn_sim::host::open(Some("r"), options).unwrap();
            let interface = manager.interface_mut();
            let area = interface.allocate(4096).unwrap();
            let mut queue = interface.open_queue(1 << 10).unwrap();
            let slot = interface
                .open_slot(NewSlot::new(&area).queue(&queue))
                .unwrap();
            let ticket = slot.fast_ticket(0, 4096).unwrap();
            let always = hamlyn::host::Supply::Always;
            interface
                .offer("ticket", always, &ticket.to_bytes())
                .unwrap();
            for _ in 0..MESSAGES {
                interface.rcv_block(&mut queue, Wait::Forever).unwrap();
            }
        });
        world.process(other, "sender", move || {
            let mut manager = hamlyn_sim::host::open(None, options).unwrap();
            let terminus = manager.terminus();
            let interface = manager.interface_mut();
            let to = hamlyn::host::Address::Name("r");
            let bytes = interface.ask(to, "ticket", Wait::Forever).unwrap();
            let ticket = Ticket::from_bytes(&bytes).unwrap();
            let target = interface.target(&ticket, Wait::Forever).unwrap();
            for word in 0..MESSAGES {
                let message = Message::new(&[7; 16]).word(word);
                interface
                    .send_msg(terminus, &target, &message, Wait::Forever)
                    .unwrap();
            }
            interface.flush(Wait::Forever).unwrap();
            world::pause(Span::from_us(100));
        });
        let begun = Instant::now();
        let outcome = world.run(Time::NEVER);
        let took = begun.elapsed().as_secs_f64();
        println!(
            "{:8} {:>9} events in {took:.3} s: {:.2} million/s, {:.3} s of virtual time {:?}",
            strategy.name(),
            outcome.events,
            outcome.events as f64 / took / 1e6,
            outcome.at.as_ns() as f64 / 1e9,
            outcome.failures
        );
    }
}
