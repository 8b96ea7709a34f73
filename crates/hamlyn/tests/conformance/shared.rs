//! What the library promises where several threads share one manager: peers are threads, and their
//! one interface talks to itself, with every strategy.

#[macro_use]
mod table;

mod board;
mod completion;
mod completions;
mod datagrams;
#[allow(
    dead_code,
    reason = "the rest is for peers with interfaces of their own"
)]
mod fences;
mod gathering;
mod groups;
mod harm;
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
mod ports;
mod services;
mod stores;
mod stream_races;
mod stream_records;
mod streams;
mod tagged_writes;
mod tasks;

use std::sync::Arc;

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::{Manager, ManagerOptions, Strategy, Wait};

use board::{Board, namespace};
pub(crate) use board::{lock, now, pause_after};
use peer::{KeyValues, Peer, Role};

everything!(loopback, Loopback, Proc);
everything!(loopback_np, Loopback, Np);
everything!(loopback_inject, Loopback, Inject);
everything!(loopback_receive, Loopback, Receive);

pub(crate) type Host = ProcessHost<AnyThread>;

/// Where the peers live.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// All peers share one interface, which sends to itself.
    Loopback,
}

pub(crate) struct World {
    strategy: Strategy,
    namespace: String,
}

impl World {
    pub(crate) fn new(_: Layout, strategy: Strategy, test: &'static str) -> Self {
        let namespace = namespace(test);
        Self {
            strategy,
            namespace,
        }
    }

    /// A manager in this world.
    pub(crate) fn open(&self, options: ManagerOptions) -> Manager<Host> {
        self.open_at(Options::default(), options)
    }

    fn open_at(&self, host: Options, mut options: ManagerOptions) -> Manager<Host> {
        options.strategy = self.strategy;
        let host = host.in_namespace(&self.namespace);
        hamlyn::open_shared(host, options).unwrap()
    }

    /// Runs the peers, all of which see what the others publish.
    pub(crate) fn run(&self, roles: &[Role<'_>]) {
        let key_values: Arc<dyn KeyValues> = Arc::new(Board::default());
        let manager = self.open_at(Options::named("shared"), ManagerOptions::default());
        std::thread::scope(|scope| {
            for (number, &role) in roles.iter().enumerate() {
                let (manager, key_values) = (manager.clone(), key_values.clone());
                scope.spawn(move || {
                    let mut peer = Peer {
                        manager,
                        name: "shared".to_owned(),
                        turn: None,
                        key_values,
                        strategy: self.strategy,
                        is_in_order: true,
                        wait: Wait::Poll,
                    };
                    peer.play(role, number, roles.len());
                });
            }
        });
    }

    /// Runs a peer that needs no other.
    pub(crate) fn alone(&self, role: Role<'_>) {
        self.run(&[role]);
    }
}
