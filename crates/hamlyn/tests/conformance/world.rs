//! Worlds: where the parties of a test live, and how they talk besides.
//!
//! A test is written once, over [`World`]. Each party is straight code over a
//! [`Party`]; whether it has a thread, a process, or shares one interface with
//! all others is the world's business.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant};

use hamlyn::engine::limits::PACKET_PAYLOAD_MAX;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Host, Manager, ManagerOptions, ReceiveError, SendError, Strategy, Ticket, Wait};
use hamlyn_sim::host::SimHost;
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{Settings, Simulation};

/// How long a test waits for what must happen; far longer than it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long a party with an interface of its own blocks at a time.
const SLICE: Wait = Wait::millis(2_000);

/// What one party does.
pub(crate) type Role<'a, W> = &'a (dyn Fn(&mut Party<W>) + Sync);

pub(crate) trait World: Sync + Sized {
    type Host: Host + Send + 'static;

    /// `test` is the name under which the test harness knows the test.
    fn new(test: &str) -> Self;

    /// Who drives its interfaces.
    const STRATEGY: Strategy;

    /// Whether messages from one interface to another are announced in the order in which they were sent.
    const IN_ORDER: bool = true;

    /// A manager in this world.
    fn open(&self, options: ManagerOptions) -> Manager<Self::Host>;

    /// Runs the parties, all of which know each other's words.
    fn run(&self, roles: &[Role<'_, Self>]);

    /// Time, by whatever clock there is.
    fn now() -> Duration {
        static BEGUN: OnceLock<Instant> = OnceLock::new();
        BEGUN.get_or_init(Instant::now).elapsed()
    }

    /// Called between two looks at something that has not come.
    fn pause() {
        std::thread::yield_now();
    }

    /// Waits for a manager that parties share.
    fn lock(manager: &Mutex<Manager<Self::Host>>) -> MutexGuard<'_, Manager<Self::Host>> {
        manager
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Runs a party that needs no other.
    fn alone(&self, role: Role<'_, Self>) {
        self.run(&[role]);
    }
}

/// Words that parties say to each other besides their messages: tickets and seeds, mostly.
pub(crate) trait Post: Send + Sync {
    fn put(&self, word: &str, bytes: &[u8]);
    fn get(&self, word: &str) -> Option<Vec<u8>>;
}

pub(crate) struct Party<W: World> {
    manager: Arc<Mutex<Manager<W::Host>>>,
    post: Arc<dyn Post>,
    /// How long its receiving calls may take. [`Wait::Poll`] if it shares its interface.
    wait: Wait,
}

impl<W: World> Party<W> {
    /// Something that takes no time.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Manager<W::Host>) -> R) -> R {
        act(&mut W::lock(&self.manager))
    }

    /// Whether all parties share one interface.
    pub(crate) fn shares_interface(&self) -> bool {
        self.wait == Wait::Poll
    }

    /// Whether what is sent may be received while no party asks for it.
    pub(crate) fn receives_unasked(&self) -> bool {
        self.shares_interface() || W::STRATEGY != Strategy::Proc
    }

    /// Repeats `look` until it finds something.
    pub(crate) fn until<R>(
        &self,
        what: &str,
        mut look: impl FnMut(&mut Manager<W::Host>, Wait) -> Option<R>,
    ) -> R {
        let begun = W::now();
        loop {
            if let Some(found) = self.with(|manager| look(manager, self.wait)) {
                return found;
            }
            assert!(W::now() - begun < PATIENCE, "{what}: it did not come");
            W::pause();
        }
    }

    /// A receiving call, repeated until there is something.
    pub(crate) fn receive<R>(
        &self,
        what: &str,
        mut call: impl FnMut(&mut Manager<W::Host>, Wait) -> Result<Option<R>, ReceiveError>,
    ) -> R {
        self.until(what, |manager, wait| {
            call(manager, wait).unwrap_or_else(|e| panic!("{what}: {e}"))
        })
    }

    /// A sending call, repeated while it would block.
    pub(crate) fn send<R>(
        &self,
        mut call: impl FnMut(&mut Manager<W::Host>, Wait) -> Result<R, SendError>,
    ) -> Result<R, SendError> {
        self.until("sending", |manager, wait| {
            let result = call(manager, wait);
            if let Err(SendError::WouldBlock { .. }) = result {
                manager.interface_mut().poll();
                return None;
            }
            Some(result)
        })
    }

    /// Waits until what was sent is handed to the links, whoever does that.
    pub(crate) fn flush(&self) {
        self.until("handing over", |manager, wait| {
            let flushed = manager.interface_mut().flush(wait).unwrap();
            flushed.then_some(())
        });
    }

    /// Says a word.
    pub(crate) fn tell(&self, word: &str, bytes: &[u8]) {
        self.post.put(word, bytes);
    }

    /// Waits for a word, and moves packets meanwhile.
    pub(crate) fn hear(&self, word: &str) -> Vec<u8> {
        self.until(word, |manager, _| {
            let found = self.post.get(word);
            if found.is_none() {
                manager.interface_mut().poll();
            }
            found
        })
    }

    /// Waits for a word without a look at the interface.
    pub(crate) fn hear_only(&self, word: &str) -> Vec<u8> {
        let begun = W::now();
        loop {
            if let Some(found) = self.post.get(word) {
                return found;
            }
            assert!(W::now() - begun < PATIENCE, "{word}: it did not come");
            W::pause();
        }
    }

    /// Runs the role, and stays until all others are through: the end of a peer interrupts waits.
    fn play(&mut self, role: Role<'_, W>, number: usize, count: usize) {
        role(self);
        self.tell(&format!("end of {number}"), &[]);
        for other in 0..count {
            self.hear(&format!("end of {other}"));
        }
    }

    /// Where messages come in any order, waits for that word: what is sent next must not overtake what was sent before.
    pub(crate) fn keep_order(&self, word: &str) {
        if !W::IN_ORDER {
            self.hear(word);
        }
    }

    /// What was found, as if it had come in order: sorted, where it comes in any.
    pub(crate) fn in_order<T: Ord>(&self, mut found: Vec<T>) -> Vec<T> {
        if !W::IN_ORDER {
            found.sort_unstable();
        }
        found
    }

    /// How much has happened here, for [`Party::taken`]. Nothing but arrivals may happen afterwards: the link must be there.
    pub(crate) fn activity(&self) -> u64 {
        self.with(|manager| manager.interface().activity())
    }

    /// Moves packets until what was sent is taken. Where a word tells nothing about that, until there were so many more of them.
    pub(crate) fn taken(&self, before: u64, packets: u64) {
        if !W::IN_ORDER {
            self.until("all packets", |manager, _| {
                manager.interface_mut().poll();
                (manager.interface().activity() >= before + packets).then_some(())
            });
        }
        self.with(|manager| manager.interface_mut().poll());
    }

    /// Waits until somebody is linked to this party.
    pub(crate) fn linked(&self) {
        self.until("a link", |manager, _| {
            manager.interface_mut().poll();
            let interface = manager.interface();
            interface.peers().next().is_some().then_some(())
        });
    }

    /// Says a ticket.
    pub(crate) fn tell_ticket(&self, word: &str, ticket: &Ticket) {
        self.tell(word, &ticket.to_bytes());
    }

    /// Waits for a ticket.
    pub(crate) fn hear_ticket(&self, word: &str) -> Ticket {
        Ticket::from_bytes(&self.hear(word)).unwrap()
    }
}

#[derive(Default)]
struct Board(Mutex<HashMap<String, Vec<u8>>>);

impl Post for Board {
    fn put(&self, word: &str, bytes: &[u8]) {
        self.0
            .lock()
            .unwrap()
            .insert(word.to_owned(), bytes.to_vec());
    }

    fn get(&self, word: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(word).cloned()
    }
}

pub(crate) fn namespace(test: &str) -> String {
    // Namespaces are short; a sum of the name tells tests of one process apart.
    let sum = test.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("c{}-{:x}", std::process::id(), sum >> 24)
}

/// Who drives the interfaces of a world.
pub(crate) trait Driven: Sync + 'static {
    const STRATEGY: Strategy;
}

macro_rules! driven {
    ($($name:ident)+) => { $(
        pub(crate) enum $name {}

        impl Driven for $name {
            const STRATEGY: Strategy = Strategy::$name;
        }
    )+ };
}

driven!(Proc Np Inject Receive);

fn open_in<S: Driven>(namespace: &str, mut options: ManagerOptions) -> Manager<ProcessHost> {
    options.strategy = S::STRATEGY;
    hamlyn::open_with(Options::default().in_namespace(namespace), options).unwrap()
}

/// Every party a thread with an interface of its own, in one process.
pub(crate) struct Threads<S>(String, PhantomData<fn() -> S>);

impl<S: Driven> World for Threads<S> {
    type Host = ProcessHost;
    const STRATEGY: Strategy = S::STRATEGY;

    fn new(test: &str) -> Self {
        Self(namespace(test), PhantomData)
    }

    fn open(&self, options: ManagerOptions) -> Manager<ProcessHost> {
        open_in::<S>(&self.0, options)
    }

    fn run(&self, roles: &[Role<'_, Self>]) {
        run_as_threads(self, roles);
    }
}

pub(crate) fn run_as_threads<W: World>(world: &W, roles: &[Role<'_, W>]) {
    let post: Arc<dyn Post> = Arc::new(Board::default());
    std::thread::scope(|scope| {
        for (number, &role) in roles.iter().enumerate() {
            let post = post.clone();
            scope.spawn(move || {
                let manager = Arc::new(Mutex::new(world.open(ManagerOptions::default())));
                Party {
                    manager,
                    post,
                    wait: SLICE,
                }
                .play(role, number, roles.len());
            });
        }
    });
}

/// All parties share one interface, which sends to itself. They take turns.
pub(crate) struct Loopback<S>(String, PhantomData<fn() -> S>);

impl<S: Driven> World for Loopback<S> {
    type Host = ProcessHost;
    const STRATEGY: Strategy = S::STRATEGY;

    fn new(test: &str) -> Self {
        Self(namespace(test), PhantomData)
    }

    fn open(&self, options: ManagerOptions) -> Manager<ProcessHost> {
        open_in::<S>(&self.0, options)
    }

    fn run(&self, roles: &[Role<'_, Self>]) {
        let post: Arc<dyn Post> = Arc::new(Board::default());
        let manager = Arc::new(Mutex::new(self.open(ManagerOptions::default())));
        std::thread::scope(|scope| {
            for (number, &role) in roles.iter().enumerate() {
                let (manager, post) = (manager.clone(), post.clone());
                scope.spawn(move || {
                    Party {
                        manager,
                        post,
                        wait: Wait::Poll,
                    }
                    .play(role, number, roles.len());
                });
            }
        });
    }
}

/// Every party a process. The first is the test itself, the others are the same test run anew.
pub(crate) struct Processes<S> {
    strategy: PhantomData<fn() -> S>,
    test: String,
    namespace: String,
    directory: PathBuf,
    role: usize,
}

const NAMESPACE: &str = "HAMLYN_TEST_NAMESPACE";
const ROLE: &str = "HAMLYN_TEST_ROLE";

/// Words as files, put in place whole.
struct Files(PathBuf);

impl Post for Files {
    fn put(&self, word: &str, bytes: &[u8]) {
        let making = self.0.join(format!("{word}.{}", std::process::id()));
        std::fs::write(&making, bytes).unwrap();
        std::fs::rename(&making, self.0.join(word)).unwrap();
    }

    fn get(&self, word: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(word)).ok()
    }
}

impl<S: Driven> World for Processes<S> {
    type Host = ProcessHost;
    const STRATEGY: Strategy = S::STRATEGY;

    fn new(test: &str) -> Self {
        let (namespace, role) = match std::env::var(ROLE) {
            Ok(role) => (std::env::var(NAMESPACE).unwrap(), role.parse().unwrap()),
            Err(_) => (namespace(test), 0),
        };
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&namespace);
        std::fs::create_dir_all(&directory).unwrap();
        Self {
            strategy: PhantomData,
            test: test.to_owned(),
            namespace,
            directory,
            role,
        }
    }

    fn open(&self, options: ManagerOptions) -> Manager<ProcessHost> {
        open_in::<S>(&self.namespace, options)
    }

    fn run(&self, roles: &[Role<'_, Self>]) {
        let mut children = Vec::new();
        if self.role == 0 {
            for role in 1..roles.len() {
                let child = Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", &self.test, "--nocapture", "--test-threads=1"])
                    .env(ROLE, role.to_string())
                    .env(NAMESPACE, &self.namespace)
                    .stdout(Stdio::null())
                    .spawn()
                    .unwrap();
                children.push(Child(child));
            }
        }
        let manager = Arc::new(Mutex::new(self.open(ManagerOptions::default())));
        let post = Arc::new(Files(self.directory.clone()));
        Party {
            manager,
            post,
            wait: SLICE,
        }
        .play(roles[self.role], self.role, roles.len());
        for mut child in children {
            assert!(child.0.wait().unwrap().success(), "another party failed");
        }
    }
}

/// Every party a process of the simulator.
pub(crate) struct SimulatedParties<S, const LAYOUT: u8>(u64, PhantomData<fn() -> S>);

const APART: u8 = 0;
const NEAR: u8 = 1;
const SHARED: u8 = 2;

/// Each on a node of its own.
pub(crate) type Simulated<S> = SimulatedParties<S, APART>;

/// All on one node, where they can grant each other pages.
pub(crate) type SimulatedNear<S> = SimulatedParties<S, NEAR>;

/// All share one interface. They take turns.
pub(crate) type SimulatedLoopback<S> = SimulatedParties<S, SHARED>;

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

/// A board whose words take longer than packets: elsewhere a packet is there when its sender says so.
#[derive(Default)]
struct Mail(Mutex<HashMap<String, (Time, Vec<u8>)>>);

/// Longer than any packet.
const MAIL: Span = Span::from_us(500);

impl Post for Mail {
    fn put(&self, word: &str, bytes: &[u8]) {
        let at = hamlyn_sim::world::now() + MAIL;
        let mut words = self.0.lock().unwrap();
        words.insert(word.to_owned(), (at, bytes.to_vec()));
    }

    fn get(&self, word: &str) -> Option<Vec<u8>> {
        let words = self.0.lock().unwrap();
        let (at, bytes) = words.get(word)?;
        (*at <= hamlyn_sim::world::now()).then(|| bytes.clone())
    }
}

fn run_world(world: Simulation<'_>) {
    let outcome = world.run(END);
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
}

impl<S: Driven, const LAYOUT: u8> World for SimulatedParties<S, LAYOUT> {
    type Host = SimHost;
    const STRATEGY: Strategy = S::STRATEGY;

    fn new(test: &str) -> Self {
        Self(seed(test), PhantomData)
    }

    fn open(&self, mut options: ManagerOptions) -> Manager<SimHost> {
        options.strategy = S::STRATEGY;
        hamlyn_sim::host::open(None, options).unwrap()
    }

    fn now() -> Duration {
        Duration::from_nanos(hamlyn_sim::world::now().as_ns())
    }

    fn pause() {
        hamlyn_sim::world::pause(Span::from_us(1));
    }

    fn lock(manager: &Mutex<Manager<SimHost>>) -> MutexGuard<'_, Manager<SimHost>> {
        // All parties are on one thread: whoever blocked it would wait for himself.
        loop {
            match manager.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => Self::pause(),
            }
        }
    }

    fn run(&self, roles: &[Role<'_, Self>]) {
        let post: Arc<dyn Post> = Arc::new(Mail::default());
        let shared = Arc::new(Mutex::new(None));
        let mut world = simulation(self.0);
        let one_node = world.node(2);
        for (number, &role) in roles.iter().enumerate() {
            let (post, shared) = (post.clone(), shared.clone());
            let node = if LAYOUT == APART {
                world.node(2)
            } else {
                one_node
            };
            world.process(node, &format!("party {number}"), move || {
                let open = || Arc::new(Mutex::new(self.open(ManagerOptions::default())));
                let (manager, wait) = if LAYOUT == SHARED {
                    let mut shared = shared.lock().unwrap();
                    (Arc::clone(shared.get_or_insert_with(open)), Wait::Poll)
                } else {
                    (open(), SLICE)
                };
                Party {
                    manager,
                    post,
                    wait,
                }
                .play(role, number, roles.len());
                // The last to end closes the interface, within the world.
                shared.lock().unwrap().take();
            });
        }
        run_world(world);
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

impl<S> Drop for Processes<S> {
    fn drop(&mut self) {
        if self.role == 0 {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// Bytes that tell where they belong.
pub(crate) fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        })
        .collect()
}
