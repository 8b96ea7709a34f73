//! Forked children: each call with an object of the parent is refused, an end of the child changes
//! nothing for the parent, and the child opens interfaces of its own. On one host with every
//! strategy, and between hosts with encryption.

mod support;

#[path = "fork/ends.rs"]
mod ends;
#[path = "fork/lower.rs"]
mod lower;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hamlyn::host::network::hosts::{HostName, NAME_SERVICE_PORT};
use hamlyn::host::network::{ClusterSecret, NetworkOptions, Security};
use hamlyn::host::process::{NetworkUse, Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::{Host, Manager, ManagerOptions, Strategy, Wait};

use ends::Ends;
use lower::Lower;
use support::{LONG, namespace, open, until};

const STRATEGIES: [Strategy; 4] = [
    Strategy::Proc,
    Strategy::Np,
    Strategy::Inject,
    Strategy::Receive,
];

unsafe extern "C" {
    fn fork() -> i32;
    fn _exit(status: i32) -> !;
    fn alarm(seconds: u32) -> u32;
    fn signal(number: i32, handler: usize) -> usize;
    fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
    fn getppid() -> i32;
    fn kill(process: i32, signal: i32) -> i32;
}

const SIGKILL: i32 = 9;
const SIGSEGV: i32 = 11;
/// No child takes so long, but one that waits for ever.
const CHILD_SECONDS: u32 = 30;

/// The faults that a child found.
#[derive(Default)]
pub(crate) struct Complaints(String);

impl Complaints {
    pub(crate) fn add(&mut self, complaint: &str) {
        self.0 += complaint;
        self.0 += "\n";
    }

    /// The call must say that its object is the parent's.
    pub(crate) fn refused<T, E: std::error::Error>(&mut self, call: &str, result: Result<T, E>) {
        match result {
            Ok(_) => self.add(&format!("{call} was done")),
            Err(error) => {
                let told = format!("{error}");
                if !format!("{error:?}").contains("Forked") || !told.contains("in the child") {
                    self.add(&format!("{call}: {error:?} {told}"));
                }
            }
        }
    }
}

/// Runs `act` in a forked child, which then ends without destructors. What it complains of fails
/// the test.
pub(crate) fn in_child(act: impl FnOnce(&mut Complaints)) {
    let child = Child::fork(act);
    let complaints = child.end();
    assert!(complaints.is_empty(), "in the child: {complaints}");
}

/// A forked child that lives until its parent lets it go, or has read what it says.
struct Child {
    number: i32,
    says: std::io::PipeReader,
}

impl Child {
    fn fork(act: impl FnOnce(&mut Complaints)) -> Self {
        let (says, mut said) = std::io::pipe().unwrap();
        // SAFETY: the child runs `act` and ends. It holds no lock of the test program, and takes
        // none but those of a panic, after which the alarm ends it if they are taken.
        let number = unsafe { fork() };
        assert!(number >= 0, "fork failed");
        if number > 0 {
            return Self { number, says };
        }
        // SAFETY: 0 is the default: the child ends.
        unsafe {
            signal(SIGSEGV, 0);
            alarm(CHILD_SECONDS);
        }
        let mut complaints = Complaints::default();
        if catch_unwind(AssertUnwindSafe(|| act(&mut complaints))).is_err() {
            complaints.add("it panicked");
        }
        let _ = said.write_all(complaints.0.as_bytes());
        // SAFETY: ends this process, whose memory nobody else uses.
        unsafe { _exit(0) }
    }

    /// Waits for its end.
    fn end(mut self) -> String {
        let mut complaints = String::new();
        self.says.read_to_string(&mut complaints).unwrap();
        let mut status = -1;
        // SAFETY: waits for our child, and stores how it ended.
        let ended = unsafe { waitpid(self.number, &raw mut status, 0) };
        assert_eq!(ended, self.number);
        if status != 0 {
            complaints += &format!("it ended with the status {status:#x}\n");
        }
        complaints
    }
}

fn with_strategy(strategy: Strategy) -> ManagerOptions {
    ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    }
}

fn named(options: &Options, name: &str) -> Options {
    let mut options = options.clone();
    options.name = Some(name.to_owned());
    options
}

/// A manager with a name, and one without.
fn pair(strategy: Strategy) -> [Manager<ProcessHost>; 2] {
    let options = Options::default().in_namespace(&namespace());
    let named = hamlyn::open_with(named(&options, "there"), with_strategy(strategy));
    let other = hamlyn::open_with(options, with_strategy(strategy));
    [named.unwrap(), other.unwrap()]
}

fn shared_pair(strategy: Strategy) -> [Manager<ProcessHost<AnyThread>>; 2] {
    let options = Options::default().in_namespace(&namespace());
    let named = hamlyn::open_shared(named(&options, "there"), with_strategy(strategy));
    let other = hamlyn::open_shared(options, with_strategy(strategy));
    [named.unwrap(), other.unwrap()]
}

/// The address of a host: each test has its own.
fn address(test: u8, host: u8) -> Ipv4Addr {
    let process = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, process[2] | 0x80, process[3], 16 * test + host + 1)
}

/// The same on two hosts, which are addresses of the loopback device, with a secret.
fn hosts(test: u8, strategy: Strategy) -> [Manager<ProcessHost>; 2] {
    let address = |host: u8| IpAddr::from(address(test, host));
    let name = |host| HostName::new(&format!("h{host}")).unwrap();
    let secret = std::env::temp_dir().join(format!("hamlyn-fork-{}-{test}", std::process::id()));
    let mut open = std::fs::OpenOptions::new();
    open.write(true).create(true).truncate(true).mode(0o600);
    let mut file = open.open(&secret).unwrap();
    file.write_all(ClusterSecret::generate().unwrap().to_text().as_bytes())
        .unwrap();
    let namespace = namespace();
    let managers = [0, 1].map(|host| {
        let mut network = NetworkOptions::new(Security::Secret(secret.clone()));
        for host in 0..2 {
            let door = SocketAddr::new(address(host), NAME_SERVICE_PORT);
            network.hosts.insert(name(host), door).unwrap();
        }
        network.host = Some(name(host));
        network.listen = SocketAddr::new(address(host), 0);
        let options = match host {
            0 => Options::named("there"),
            _ => Options::default(),
        };
        let mut options = options.in_namespace(&namespace);
        options.network = NetworkUse::On(Box::new(network));
        hamlyn::open_with(options, with_strategy(strategy)).unwrap()
    });
    std::fs::remove_file(secret).unwrap();
    managers
}

/// Children use all that they inherited, close it, and end; the parent has lost nothing.
fn a_child_changes_nothing<H: Host>(managers: [Manager<H>; 2], at: &str) {
    let mut ends = Ends::new(managers, at);
    ends.exchange(0);
    in_child(|complaints| ends.use_all(complaints));
    ends.exchange(1);
    let mut lower = Lower::new(&ends.managers[0], &ends.managers[1]);
    lower.exchange(&ends.managers, 0);
    in_child(|complaints| lower.use_all(&ends.managers, complaints));
    lower.exchange(&ends.managers, 1);
    ends.exchange(2);
    // As a program ends whose child returns from `main`.
    let (mut lower, mut ends) = dropped_in_child((lower, ends));
    ends.exchange(3);
    lower.exchange(&ends.managers, 2);
}

fn dropped_in_child<T>(all: T) -> T {
    let mut all = Some(all);
    let child = Child::fork(|_| drop(all.take()));
    let complaints = child.end();
    assert!(complaints.is_empty(), "in the child: {complaints}");
    all.expect("the parent's is the parent's")
}

#[test]
fn a_child_changes_nothing_on_one_host() {
    for strategy in STRATEGIES {
        a_child_changes_nothing(pair(strategy), "there");
    }
}

#[test]
fn a_child_changes_nothing_of_shared_managers() {
    for strategy in STRATEGIES {
        a_child_changes_nothing(shared_pair(strategy), "there");
    }
}

#[test]
fn a_child_changes_nothing_between_hosts() {
    for (test, strategy) in (0..).zip(STRATEGIES) {
        a_child_changes_nothing(hosts(test, strategy), "h0/there");
    }
}

/// Another thread of the parent has the manager when the child is forked: its lock is never given
/// back there.
#[test]
fn a_child_waits_for_no_thread_of_its_parent() {
    for strategy in STRATEGIES {
        let [there, here] = shared_pair(strategy);
        let receiver = there.bind_datagram("inbox", 64).unwrap();
        let sender = here.connect_datagram("there/inbox", LONG).unwrap();
        let (taken, is_taken) = std::sync::mpsc::channel();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let held = there.clone();
        std::thread::scope(|scope| {
            let holder = held.clone();
            scope.spawn(move || {
                let _in_hand = holder.session();
                taken.send(()).unwrap();
                is_done.recv().unwrap();
            });
            is_taken.recv().unwrap();
            let mut all = Some((receiver, held, there));
            let child = Child::fork(|complaints| {
                let (mut receiver, held, there) = all.take().unwrap();
                complaints.refused("recv", receiver.recv(LONG));
                complaints.refused("poll_nowait", held.poll_nowait());
                complaints.refused("send", sender.send(b"from the child", LONG));
                drop((receiver, held, there));
            });
            let complaints = child.end();
            assert!(complaints.is_empty(), "in the child: {complaints}");
            done.send(()).unwrap();
            let (mut receiver, ..) = all.take().unwrap();
            sender.send(b"from the parent", LONG).unwrap();
            let datagram = receiver.recv(LONG).unwrap().expect("it was sent");
            assert_eq!(datagram, b"from the parent");
        });
    }
}

/// A child, and a child of it, open interfaces of their own and talk to the parent.
#[test]
fn children_open_their_own() {
    let namespace = namespace();
    let parent = hamlyn::open_with(
        Options::named("parent").in_namespace(&namespace),
        ManagerOptions::default(),
    )
    .unwrap();
    let mut inbox = parent.bind_stream("log", Default::default()).unwrap();
    let mut second = parent.bind_stream("log2", Default::default()).unwrap();
    let child = Child::fork(|complaints| {
        let own = open(&namespace);
        let mut sender = own.connect_stream("parent/log", LONG).unwrap();
        sender.send(b"child", LONG).unwrap();
        sender.close(LONG).unwrap();
        in_child(|complaints| {
            complaints.refused("send", sender.send(b"grandchild", LONG));
            complaints.refused("the parent's", parent.poll_nowait());
            let own = open(&namespace);
            let mut sender = own.connect_stream("parent/log2", LONG).unwrap();
            sender.send(b"grandchild", LONG).unwrap();
            sender.close(LONG).unwrap();
        });
        complaints.refused("the parent's", parent.poll_nowait());
        own.poll_nowait().unwrap();
    });
    assert_eq!(inbox.recv(LONG).unwrap().unwrap(), b"child");
    assert_eq!(second.recv(LONG).unwrap().unwrap(), b"grandchild");
    let complaints = child.end();
    assert!(complaints.is_empty(), "in the child: {complaints}");
}

/// A child that lives on with what it inherited, until the pipe is closed.
fn living_child() -> (Child, std::io::PipeWriter) {
    let (mut waits, ends) = std::io::pipe().unwrap();
    let mut copy = Some(ends);
    let child = Child::fork(|_| {
        drop(copy.take());
        let _ = waits.read(&mut [0]);
    });
    (child, copy.take().unwrap())
}

#[test]
fn a_name_is_free_though_a_child_lives_on() {
    let options = Options::default().in_namespace(&namespace());
    let named = named(&options, "mine");
    let open = || hamlyn::open_with(named.clone(), ManagerOptions::default());
    let first = open().unwrap();
    let (child, ends) = living_child();
    drop(first);
    // The child may not have run yet.
    let second = until("the name", || open().ok());
    let receiver = second.bind_datagram("inbox", 64).unwrap();
    let other = hamlyn::open_with(options, ManagerOptions::default()).unwrap();
    other.connect_datagram("mine/inbox", LONG).unwrap();
    drop((receiver, ends));
    assert_eq!(child.end(), "");
}

/// Sockets of UDP at that address.
fn sockets_at(address: Ipv4Addr) -> usize {
    let at = format!("{:08X}:", u32::from_le_bytes(address.octets()));
    let all = std::fs::read_to_string("/proc/net/udp").unwrap();
    let local = all
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    local.filter(|local| local.starts_with(&at)).count()
}

/// Datagrams that came to a child's copy of a port would be lost.
#[test]
fn ports_are_free_though_a_child_lives_on() {
    let [there, here] = hosts(8, Strategy::Proc);
    let mut receiver = there.bind_datagram("inbox", 64).unwrap();
    let (child, ends) = living_child();
    let sender = here.connect_datagram("h0/there/inbox", LONG).unwrap();
    sender.send(b"after the fork", LONG).unwrap();
    let came = until("the datagram", || {
        here.poll_nowait().unwrap();
        receiver.recv(Wait::Poll).unwrap().map(|came| came.to_vec())
    });
    assert_eq!(came, b"after the fork");
    assert!(sockets_at(address(8, 0)) >= 2);
    drop((receiver, there));
    until("the end of its sockets", || {
        (sockets_at(address(8, 0)) == 0).then_some(())
    });
    drop(ends);
    assert_eq!(child.end(), "");
}

/// The sockets of a killed process are gone, though a child of it lives on.
#[test]
fn a_death_is_seen_though_a_child_lives_on() {
    let options = Options::default().in_namespace(&namespace());
    let watcher = hamlyn::open_with(named(&options, "watcher"), ManagerOptions::default());
    let watcher = watcher.unwrap();
    let mut inbox = watcher.bind_datagram("inbox", 64).unwrap();
    let (mut waits, ends) = std::io::pipe().unwrap();
    let mut copy = Some(ends);
    let (mut tells, mut told) = std::io::pipe().unwrap();
    let victim = Child::fork(|_| {
        drop(copy.take());
        let named = named(&options, "victim");
        let own = hamlyn::open_with(named, ManagerOptions::default()).unwrap();
        let sender = own.connect_datagram("watcher/inbox", LONG).unwrap();
        sender.send(b"here", LONG).unwrap();
        own.flush(LONG).unwrap();
        // SAFETY: the child only reads from a pipe, says who it is, and ends.
        unsafe {
            if fork() == 0 {
                alarm(CHILD_SECONDS);
                let parent = getppid();
                let _ = told.write_all(&[1]);
                kill(parent, SIGKILL);
                let _ = waits.read(&mut [0]);
                _exit(0);
            }
        }
        let _ = waits.read(&mut [0]);
    });
    assert_eq!(inbox.recv(LONG).unwrap().unwrap(), b"here");
    drop(told);
    tells.read_exact(&mut [0]).unwrap();
    let begun = std::time::Instant::now();
    support::next_loss(&watcher, LONG).expect("it was killed");
    let again = until("its name", || {
        let named = named(&options, "victim");
        hamlyn::open_with(named, ManagerOptions::default()).ok()
    });
    assert!(begun.elapsed() < std::time::Duration::from_secs(CHILD_SECONDS.into()));
    drop((again, copy));
    let mut status = -1;
    // SAFETY: waits for our child, and stores how it ended.
    unsafe { waitpid(victim.number, &raw mut status, 0) };
    assert_eq!(status, SIGKILL, "the victim was killed");
}

/// Programs that are started are not forked children.
#[test]
fn programs_are_started_as_ever() {
    let manager = open(&namespace());
    let status = std::process::Command::new("true").status().unwrap();
    assert!(status.success());
    manager.poll_nowait().unwrap();
}
