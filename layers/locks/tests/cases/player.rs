//! A program of a case: the first ones are servers, the others clients.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hamlyn::{Manager, Wait};
use hamlyn_am::{Node, NodeOptions, Tag};
use hamlyn_locks::{LockClient, LockError, LockServer, Refusal, ServerOptions, ServerStatistics};

use crate::{Host, Place};

/// Longer than anything takes.
pub(crate) const LONG: Wait = Wait::millis(20_000);
/// A look.
pub(crate) const SHORT: Wait = Wait::millis(5);
/// Looks in vain until a program is taken to be stuck.
const LOOKS_MAX: usize = 6_000;
/// The tag of all servers.
pub(crate) const TAG: Tag = Tag::new(57);

pub(crate) type Role<'a> = dyn Fn(&Player<'_>) -> Result<(), LockError> + Sync + 'a;

/// The place of a case.
#[derive(Clone, Copy)]
pub(crate) struct World(Place);

impl World {
    pub(crate) fn new(place: Place) -> Self {
        Self(place)
    }

    /// Runs so many programs.
    pub(crate) fn run(self, count: usize, role: &Role<'_>) {
        let stage = Stage::default();
        self.0.run(count, &|manager, number, names| {
            let node = Node::new(manager.clone(), NodeOptions::default()).unwrap();
            role(&Player {
                number,
                node,
                manager,
                names,
                stage: &stage,
            })
            .unwrap();
        });
    }
}

/// State that all programs of a case share.
#[derive(Default)]
struct Stage {
    arrived: AtomicUsize,
    finished: AtomicUsize,
    /// The step that a case has come to: programs wait for each other by it.
    step: AtomicU64,
}

/// A program of a case.
pub(crate) struct Player<'a> {
    pub(crate) number: usize,
    pub(crate) node: Node<Host>,
    manager: Manager<Host>,
    /// The names of all.
    pub(crate) names: &'a [String],
    stage: &'a Stage,
}

impl Player<'_> {
    /// The names of the first programs, which are the servers.
    pub(crate) fn servers(&self, count: usize) -> Vec<&str> {
        self.names[..count].iter().map(String::as_str).collect()
    }

    pub(crate) fn server(&self, count: usize, options: ServerOptions) -> LockServer<Host> {
        let own = &self.names[self.number];
        let options = ServerOptions {
            tag: TAG,
            ..options
        };
        LockServer::open(&self.node, own, &self.servers(count), options).unwrap()
    }

    /// Is one of so many servers, until so many clients have finished. Its counts.
    pub(crate) fn serve(
        &self,
        count: usize,
        clients: usize,
    ) -> Result<ServerStatistics, LockError> {
        self.serve_with(count, clients, ServerOptions::default())
    }

    pub(crate) fn serve_with(
        &self,
        count: usize,
        clients: usize,
        options: ServerOptions,
    ) -> Result<ServerStatistics, LockError> {
        let mut server = self.server(count, options);
        let mut looks = 0;
        while self.stage.finished.load(Ordering::SeqCst) < clients {
            match server.serve(SHORT)? {
                0 => looks += 1,
                _ => looks = 0,
            }
            let statistics = server.statistics();
            assert!(looks < LOOKS_MAX, "clients do not finish: {statistics:?}");
        }
        // The last that they have sent.
        while server.serve(SHORT)? > 0 {}
        Ok(server.statistics())
    }

    /// Waits without looking at what comes for locks until so many have finished, and their links
    /// have ended.
    pub(crate) fn await_end_of(&self, finished: usize) -> Result<(), LockError> {
        let (other, mut looks) = (self.node.bundle()?, 0);
        while self.stage.finished.load(Ordering::SeqCst) < finished || self.has_links() {
            other.serve(SHORT)?;
            looks += 1;
            assert!(looks < LOOKS_MAX, "clients do not end");
        }
        Ok(())
    }

    fn has_links(&self) -> bool {
        self.manager.clone().session().peers().next().is_some()
    }

    pub(crate) fn client(&self) -> LockClient<Host> {
        self.client_of(1)
    }

    pub(crate) fn client_of(&self, count: usize) -> LockClient<Host> {
        LockClient::open(&self.node, &self.servers(count), TAG).unwrap()
    }

    /// Has finished. Its node may go.
    pub(crate) fn finish(&self) -> Result<(), LockError> {
        assert!(self.node.flush(LONG)?);
        self.stage.finished.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Has come so far, and waits until all clients of the case have.
    pub(crate) fn arrive(&self, client: &LockClient<Host>, clients: usize) {
        self.stage.arrived.fetch_add(1, Ordering::SeqCst);
        self.serve_until(client, "the others", || {
            self.stage.arrived.load(Ordering::SeqCst) >= clients
        });
    }

    /// The case has come to that step.
    pub(crate) fn reach(&self, step: u64) {
        self.stage.step.store(step, Ordering::SeqCst);
    }

    /// Serves a client until the case has come to that step.
    pub(crate) fn await_step(&self, client: &LockClient<Host>, step: u64) {
        let what = format!("step {step}");
        self.serve_until(client, &what, || {
            self.stage.step.load(Ordering::SeqCst) >= step
        });
    }

    /// Serves a client until that holds.
    pub(crate) fn serve_until(
        &self,
        client: &LockClient<Host>,
        what: &str,
        mut holds: impl FnMut() -> bool,
    ) {
        let mut looks = 0;
        while !holds() {
            client.serve(SHORT).unwrap();
            looks += 1;
            assert!(looks < LOOKS_MAX, "{what} did not come");
        }
    }
}

/// The reason for which a server refused something.
pub(crate) fn refusal<T>(result: Result<T, LockError>) -> Option<Refusal> {
    match result {
        Err(LockError::Refused { refusal, .. }) => Some(refusal),
        _ => None,
    }
}
