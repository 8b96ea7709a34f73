//! What the library promises, in processes: peers as threads, as processes, and as hosts of a
//! network, with every strategy.

#[macro_use]
mod table;

mod attached;
mod board;
mod cluster;
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

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hamlyn::host::process::{NetworkUse, Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions, Strategy, Wait};

use board::{Board, namespace};
pub(crate) use board::{lock, now, pause_after};
use cluster::Cluster;
use peer::{KeyValues, Peer, Role};

everything!(threads, Threads, Proc);
everything!(processes, Processes, Proc);
everything!(threads_np, Threads, Np);
everything!(processes_np, Processes, Np);
everything!(threads_inject, Threads, Inject);
everything!(processes_inject, Processes, Inject);
everything!(threads_receive, Threads, Receive);
everything!(processes_receive, Processes, Receive);
everything!(overflowing_threads, OverflowingThreads, Proc);
everything!(overflowing_processes, OverflowingProcesses, Proc);
everything!(overflowing_threads_np, OverflowingThreads, Np);
everything!(overflowing_threads_inject, OverflowingThreads, Inject);
everything!(hosts, SealedHosts, Proc);
everything!(hosts_np, SealedHosts, Np);
everything!(hosts_inject, SealedHosts, Inject);
everything!(hosts_receive, SealedHosts, Receive);
everything!(clear_hosts, ClearHosts, Proc);
everything!(clear_hosts_np, ClearHosts, Np);
between_interfaces!(placing_threads, Threads, Proc);
between_interfaces!(placing_processes, Processes, Proc);
between_interfaces!(placing_overflowing_threads, OverflowingThreads, Proc);
between_interfaces!(placing_threads_np, Threads, Np);
between_interfaces!(placing_processes_np, Processes, Np);
between_interfaces!(placing_threads_inject, Threads, Inject);
between_interfaces!(placing_processes_inject, Processes, Inject);
between_interfaces!(placing_threads_receive, Threads, Receive);
between_interfaces!(placing_processes_receive, Processes, Receive);
among_several!(several_threads, Threads, Proc);
among_several!(several_overflowing_threads, OverflowingThreads, Proc);
among_several!(several_threads_np, Threads, Np);
among_several!(several_threads_inject, Threads, Inject);
among_several!(several_threads_receive, Threads, Receive);
among_several!(several_processes, Processes, Proc);
among_several!(several_processes_np, Processes, Np);
among_several!(several_hosts, SealedHosts, Proc);
among_several!(several_hosts_np, SealedHosts, Np);
among_several!(several_clear_hosts, ClearHosts, Proc);
with_processor!(attentive_threads, Threads, Np);
with_processor!(attentive_threads_inject, Threads, Inject);
with_processor!(attentive_threads_receive, Threads, Receive);
with_processor!(attentive_processes, Processes, Np);
with_processor!(attentive_processes_inject, Processes, Inject);
with_processor!(attentive_processes_receive, Processes, Receive);
with_processor!(attentive_hosts, SealedHosts, Np);
with_processor!(attentive_hosts_inject, SealedHosts, Inject);
with_processor!(attentive_hosts_receive, SealedHosts, Receive);
while_nobody_receives!(full_threads, Threads, Proc);
while_nobody_receives!(full_processes, Processes, Proc);

/// Cells of rings that overflow, and memory behind them for each peer.
const OVERFLOWING_CELLS: u32 = 16;
const OVERFLOW_BYTES: u32 = 4 << 20;

/// How long a peer blocks at a time.
const SLICE: Wait = Wait::millis(2_000);

pub(crate) type Host = ProcessHost;

/// Where the peers live.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Every peer a thread with an interface of its own, in one process.
    Threads,
    /// Every peer a process. The first is the test itself, the others are the same test run anew.
    Processes,
    /// The same with rings of a few cells, which overflow as soon as they are full.
    OverflowingThreads,
    OverflowingProcesses,
    /// Every peer a thread on a host of its own; the hosts share the secret of a cluster,
    SealedHosts,
    /// or trust the network.
    ClearHosts,
}

pub(crate) struct World {
    layout: Layout,
    strategy: Strategy,
    /// The name under which the test harness knows the test.
    test: &'static str,
    namespace: String,
    /// Which peer this process is.
    role: usize,
    cluster: Option<Cluster>,
}

const NAMESPACE: &str = "HAMLYN_TEST_NAMESPACE";
const ROLE: &str = "HAMLYN_TEST_ROLE";

impl World {
    pub(crate) fn new(layout: Layout, strategy: Strategy, test: &'static str) -> Self {
        let again = std::env::var(ROLE).ok();
        let namespace = match &again {
            Some(_) => std::env::var(NAMESPACE).unwrap(),
            None => namespace(test),
        };
        let cluster = match layout {
            Layout::SealedHosts => Some(Cluster::new(&namespace, true)),
            Layout::ClearHosts => Some(Cluster::new(&namespace, false)),
            _ => None,
        };
        Self {
            layout,
            strategy,
            test,
            role: again.map_or(0, |role| role.parse().unwrap()),
            namespace,
            cluster,
        }
    }

    fn overflows(&self) -> bool {
        let layout = self.layout;
        layout == Layout::OverflowingThreads || layout == Layout::OverflowingProcesses
    }

    /// A manager in this world.
    pub(crate) fn open(&self, options: ManagerOptions) -> Manager<Host> {
        self.open_at(Options::default(), options).0
    }

    /// The same; and what the others call its host.
    fn open_at(&self, host: Options, mut options: ManagerOptions) -> (Manager<Host>, String) {
        options.strategy = self.strategy;
        let mut host = host.in_namespace(&self.namespace);
        if self.overflows() {
            (host.cells, host.patience) = (OVERFLOWING_CELLS, Duration::ZERO);
            host.buffer_bytes_per_peer = OVERFLOW_BYTES;
        }
        let mut prefix = String::new();
        if let Some(cluster) = &self.cluster {
            let network = cluster.next_host();
            let name = network.host.as_ref().map(ToString::to_string);
            prefix = name.unwrap_or_default() + "/";
            host.network = NetworkUse::On(Box::new(network));
        }
        (hamlyn::open_with(host, options).unwrap(), prefix)
    }

    /// Runs the peers, all of which see what the others publish.
    pub(crate) fn run(&self, roles: &[Role<'_>]) {
        if let Layout::Processes | Layout::OverflowingProcesses = self.layout {
            return self.run_as_processes(roles);
        }
        let key_values: Arc<dyn KeyValues> = Arc::new(Board::default());
        std::thread::scope(|scope| {
            for (number, &role) in roles.iter().enumerate() {
                let key_values = key_values.clone();
                scope.spawn(move || {
                    self.peer(key_values, number)
                        .play(role, number, roles.len())
                });
            }
        });
    }

    /// Runs a peer that needs no other.
    pub(crate) fn alone(&self, role: Role<'_>) {
        self.run(&[role]);
    }

    fn run_as_processes(&self, roles: &[Role<'_>]) {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&self.namespace);
        std::fs::create_dir_all(&directory).unwrap();
        let key_values = Arc::new(Files(directory.clone()));
        let _rest = (self.role == 0).then(|| Rest(directory));
        let mut children = Vec::new();
        if self.role == 0 {
            for role in 1..roles.len() {
                let child = Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", self.test, "--nocapture", "--test-threads=1"])
                    .env(ROLE, role.to_string())
                    .env(NAMESPACE, &self.namespace)
                    .stdout(Stdio::null())
                    .spawn()
                    .unwrap();
                children.push(Child(child));
            }
        }
        self.peer(key_values, self.role)
            .play(roles[self.role], self.role, roles.len());
        for mut child in children {
            assert!(child.0.wait().unwrap().success(), "another peer failed");
        }
    }

    fn peer(&self, key_values: Arc<dyn KeyValues>, number: usize) -> Peer {
        let host = Options::named(&format!("peer-{number}"));
        let (manager, prefix) = self.open_at(host, ManagerOptions::default());
        Peer {
            manager,
            name: format!("{prefix}peer-{number}"),
            turn: None,
            key_values,
            strategy: self.strategy,
            is_in_order: self.cluster.is_none(),
            wait: SLICE,
        }
    }
}

/// Values as files, put in place whole.
struct Files(PathBuf);

impl KeyValues for Files {
    fn put(&self, key: &str, bytes: &[u8]) {
        let part = self.0.join(format!("{key}.{}", std::process::id()));
        std::fs::write(&part, bytes).unwrap();
        std::fs::rename(&part, self.0.join(key)).unwrap();
    }

    fn get(&self, key: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(key)).ok()
    }
}

/// Killed when dropped, so that a failed test leaves no process.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What processes published, removed in the end.
struct Rest(PathBuf);

impl Drop for Rest {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
