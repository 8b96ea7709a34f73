//! What the library promises, in the simulator: peers on nodes of their own, on one node, and as
//! one interface that talks to itself, with every strategy.

#[macro_use]
mod table;

mod attached;
mod completion;
mod completions;
mod datagrams;
mod fences;
mod gathering;
mod groups;
mod harm;
mod independence;
mod lanes;
mod loans;
mod lobbies;
mod look_ups;
mod low_level;
mod managers;
mod many;
mod modes;
mod names;
mod one_sided;
mod peer;
mod pieces;
mod placing;
mod ports;
mod relinking;
mod services;
mod stores;
mod stream_races;
mod stream_records;
mod streams;
mod tagged_writes;
mod tasks;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use hamlyn::engine::limits::PACKET_PAYLOAD_MAX;
use hamlyn::{Manager, ManagerOptions, Strategy, Wait};
use hamlyn_sim::host::SimHost;
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{Settings, Simulation};

use peer::{KeyValues, Peer, Role};

everything!(simulated, Apart, Proc);
everything!(simulated_loopback, Shared, Proc);
everything!(simulated_np, Apart, Np);
everything!(simulated_loopback_np, Shared, Np);
everything!(simulated_inject, Apart, Inject);
everything!(simulated_loopback_inject, Shared, Inject);
everything!(simulated_receive, Apart, Receive);
everything!(simulated_loopback_receive, Shared, Receive);
between_interfaces!(placing_simulated, Near, Proc);
between_interfaces!(placing_simulated_np, Near, Np);
between_interfaces!(placing_simulated_inject, Near, Inject);
between_interfaces!(placing_simulated_receive, Near, Receive);
among_several!(several_simulated, Apart, Proc);
among_several!(several_simulated_np, Apart, Np);
among_several!(several_near_simulated, Near, Proc);
with_processor!(attentive_simulated, Apart, Np);
with_processor!(attentive_simulated_inject, Apart, Inject);
with_processor!(attentive_simulated_receive, Apart, Receive);
while_nobody_receives!(full_simulated, Near, Proc);

/// How long a peer blocks at a time.
const SLICE: Wait = Wait::millis(2_000);

pub(crate) type Host = SimHost;

thread_local! {
    /// The manager of a world in which peers share one. A world runs on one thread.
    static SHARED: RefCell<Option<Manager<Host>>> = const { RefCell::new(None) };
}

/// Where the peers live; each is a process of the simulator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each on a node of its own.
    Apart,
    /// All on one node, where they can grant each other pages.
    Near,
    /// All share one interface. They take turns.
    Shared,
}

pub(crate) struct World {
    layout: Layout,
    strategy: Strategy,
    seed: u64,
}

impl World {
    pub(crate) fn new(layout: Layout, strategy: Strategy, test: &'static str) -> Self {
        let seed = seed(test);
        Self {
            layout,
            strategy,
            seed,
        }
    }

    /// A manager in this world.
    pub(crate) fn open(&self, options: ManagerOptions) -> Manager<Host> {
        self.open_named(None, options)
    }

    fn open_named(&self, name: Option<&str>, mut options: ManagerOptions) -> Manager<Host> {
        options.strategy = self.strategy;
        hamlyn_sim::host::open(name, options).unwrap()
    }

    /// Runs the peers, all of which see what the others publish.
    pub(crate) fn run(&self, roles: &[Role<'_>]) {
        let key_values: Arc<dyn KeyValues> = Arc::new(Mail::default());
        let turn = Arc::default();
        let mut world = simulation(self.seed);
        let one_node = world.node(2);
        for (number, &role) in roles.iter().enumerate() {
            let (key_values, turn) = (key_values.clone(), Arc::clone(&turn));
            let node = if self.layout == Layout::Apart {
                world.node(2)
            } else {
                one_node
            };
            world.process(node, &format!("peer {number}"), move || {
                let is_shared = self.layout == Layout::Shared;
                let _turn = lock(&turn);
                let name = match is_shared {
                    true => "shared".to_owned(),
                    false => format!("peer-{number}"),
                };
                let open = || self.open_named(Some(&name), ManagerOptions::default());
                let manager = match is_shared {
                    true => {
                        SHARED.with(|shared| shared.borrow_mut().get_or_insert_with(open).clone())
                    }
                    false => open(),
                };
                drop(_turn);
                let wait = if is_shared { Wait::Poll } else { SLICE };
                Peer {
                    manager,
                    name,
                    turn: is_shared.then_some(turn),
                    key_values,
                    strategy: self.strategy,
                    is_in_order: true,
                    wait,
                }
                .play(role, number, roles.len());
                // The last to end closes the interface, within the world.
                SHARED.with(|shared| drop(shared.take()));
            });
        }
        let outcome = world.run(END);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    }

    /// Runs a peer that needs no other.
    pub(crate) fn alone(&self, role: Role<'_>) {
        self.run(&[role]);
    }
}

/// Time, by the clock of the world.
pub(crate) fn now() -> Duration {
    Duration::from_nanos(hamlyn_sim::world::now().as_ns())
}

/// Called between two looks at something that has not come for so long. Looks become rare: else
/// one who waits for seconds of the world looks millions of times.
pub(crate) fn pause_after(waited: Duration) {
    let ns = (waited.as_nanos() as u64 / 32).clamp(1_000, 100_000);
    hamlyn_sim::world::pause(Span::from_ns(ns));
}

/// Waits for one's turn with a manager that peers share.
pub(crate) fn lock(turn: &Mutex<()>) -> MutexGuard<'_, ()> {
    // All peers are on one thread, so a lock that blocked it would never be free.
    loop {
        match turn.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            // Some hold it for a long wait.
            Err(TryLockError::WouldBlock) => hamlyn_sim::world::pause(Span::from_us(10)),
        }
    }
}

/// Longer than any test, by the clock of the world.
const END: Time = Time::from_ns(600_000_000_000);

fn seed(test: &str) -> u64 {
    test.bytes().fold(17, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(u64::from(byte))
    })
}

fn simulation<'a>(seed: u64) -> Simulation<'a> {
    Simulation::new(Settings {
        seed,
        packet_payload_bytes: PACKET_PAYLOAD_MAX,
        ..Settings::default()
    })
}

/// A board whose values take longer than packets: elsewhere a packet is there when its sender says
/// so.
#[derive(Default)]
struct Mail(Mutex<HashMap<String, (Time, Vec<u8>)>>);

/// Longer than any packet.
const MAIL: Span = Span::from_us(500);

impl KeyValues for Mail {
    fn put(&self, key: &str, bytes: &[u8]) {
        let at = hamlyn_sim::world::now() + MAIL;
        let mut values = self.0.lock().unwrap();
        values.insert(key.to_owned(), (at, bytes.to_vec()));
    }

    fn get(&self, key: &str) -> Option<Vec<u8>> {
        let values = self.0.lock().unwrap();
        let (at, bytes) = values.get(key)?;
        (*at <= hamlyn_sim::world::now()).then(|| bytes.clone())
    }
}
