//! Peers that are killed, at any instant. The survivor learns of it from the
//! operating system, and nothing of them is left.

mod support;

use hamlyn_host::process::Options;
use hamlyn_host::{Address, ConnectError, Connected, Event, Host, LossCause};
use hamlyn_link::ReceiveEnd;
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::raw::{Memory, Raw};
use support::*;

const ROLE: &str = "HAMLYN_TEST_ROLE";
const NAMESPACE: &str = "HAMLYN_TEST_NAMESPACE";
/// What a child prints when it is ready, since the test harness prints, too.
const READY: &str = "child:";

/// A death must be known within 100 ms; on a loaded machine the test is more patient.
const KNOWN_WITHIN: Duration = Duration::from_secs(5);

/// This program again, in another role. Killed when dropped.
struct Actor(Child);

impl Actor {
    fn command(role: &str, namespace: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(NAMESPACE, namespace)
            .stdout(Stdio::piped());
        command
    }

    /// Starts it and waits until it is ready; what it says then is the second value.
    fn start(mut command: Command) -> (Self, String) {
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.lines().map_while(Result::ok);
        let said = lines.find_map(|line| {
            let (_, said) = line.split_once(READY)?;
            Some(said.to_owned())
        });
        let actor = Self(child);
        (actor, said.expect("the child is ready"))
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the children do.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let namespace = std::env::var(NAMESPACE).unwrap();
    match role.as_str() {
        "echo" => echo(&namespace),
        "connect" => connect_for_ever(&namespace),
        "lend_socket" => lend_socket(&namespace),
        "stranger" => stranger(&namespace),
        "contained" => contained(&namespace),
        other => panic!("{other}"),
    }
}

fn echo(namespace: &str) {
    let mut host = named(namespace, "child");
    println!("{READY}");
    let (_, mut link) = linked(&mut host);
    loop {
        if let Some(bytes) = try_receive(&mut link) {
            let _ = try_send(&mut link, &bytes);
        }
        link.receive.return_credit();
    }
}

fn connect_for_ever(namespace: &str) {
    println!("{READY}");
    loop {
        let mut host = unnamed(namespace);
        for _ in 0..10 {
            let (peer, link) = connect(&mut host, Address::Name("parent"));
            host.disconnect(peer.token);
            drop(link);
        }
    }
}

/// Makes a link, and leaves its socket to a process that knows nothing of it.
fn lend_socket(namespace: &str) {
    let interface = std::env::var("HAMLYN_TEST_INTERFACE").unwrap();
    let raw = Raw::connect(namespace, interface.parse().unwrap());
    raw.shake_hands(&Memory::new(), 1);
    let mut heir = Command::new("sleep")
        .arg("1000")
        .stdin(Stdio::from(raw.0.try_clone().unwrap()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    println!("{READY}{}", heir.id());
    // Not for long: we are killed first.
    let _ = heir.wait();
}

fn stranger(namespace: &str) {
    let mut host = unnamed(namespace);
    let mut outcome = |name| {
        let deadline_ns = after_ns(&host, TIMEOUT_NS);
        match host.connect(Address::Name(name), deadline_ns) {
            Ok(_) => "linked".to_owned(),
            Err(ConnectError::Refused { reason, .. }) => format!("refused {}", reason.0),
            Err(ConnectError::NotAllowed { user, .. }) => format!("not allowed {user}"),
            Err(error) => format!("{error:?}"),
        }
    };
    println!("{READY}{}; {}", outcome("parent"), outcome("listing"));
    std::thread::park();
}

/// In a process namespace of its own, from which the parent cannot be seen.
fn contained(namespace: &str) {
    let mut host = unnamed(namespace);
    let (peer, mut link) = connect(&mut host, Address::Name("parent"));
    println!("{READY}process {}", peer.process);
    // Until the parent closes, which is known without seeing its process.
    let echo = packet(&mut host, &mut link);
    assert!(try_send(&mut link, &echo));
    let (token, cause) = lost(&mut host);
    assert_eq!(token, peer.token);
    std::process::exit(if cause == LossCause::Closed { 0 } else { 1 });
}

/// Instants spread over `span`, the same in every run.
fn instant(round: u32, span: Duration) -> Duration {
    span * (round * 7919 % 1009) / 1009
}

fn report(what: &str, mut known_after: Vec<Duration>) {
    known_after.sort_unstable();
    let median = known_after[known_after.len() / 2];
    let longest = known_after[known_after.len() - 1];
    println!("{what} was known after {median:?} (median), {longest:?} (longest)");
    assert!(longest < KNOWN_WITHIN);
}

#[test]
fn killed_in_the_middle_of_traffic() {
    const ROUNDS: u32 = 25;
    let namespace = namespace();
    let mut parent = named(&namespace, "parent");
    let mut known_after = Vec::new();
    for round in 0..ROUNDS {
        let (mut actor, _) = Actor::start(Actor::command("echo", &namespace));
        let (peer, mut link) = connect(&mut parent, Address::Name("child"));
        assert_eq!(peer.process, actor.0.id());
        let began = Instant::now();
        while began.elapsed() < instant(round, Duration::from_millis(10)) {
            let _ = try_send(&mut link, &[round as u8; 300]);
            let _ = try_receive(&mut link);
            link.receive.return_credit();
        }
        let killed = Instant::now();
        actor.0.kill().unwrap();
        assert_eq!(lost(&mut parent), (peer.token, LossCause::Died));
        known_after.push(killed.elapsed());
        // What it sent before it died can be received, and sending does no harm.
        while try_receive(&mut link).is_some() {}
        while try_send(&mut link, &[1; 300]) {}
        actor.kill();
    }
    report("a death in traffic", known_after);
}

#[test]
fn killed_in_the_middle_of_a_handshake() {
    const ROUNDS: u32 = 40;
    let namespace = namespace();
    let mut parent = named(&namespace, "parent");
    let mut live = HashSet::new();
    for round in 0..ROUNDS {
        let (mut actor, _) = Actor::start(Actor::command("connect", &namespace));
        // From its first link on, it connects and disconnects without end.
        live.insert(linked(&mut parent).0.token);
        let began = Instant::now();
        let pause = instant(round, Duration::from_millis(4));
        let take = |parent: &mut Owner, live: &mut HashSet<u64>| {
            while let Some(event) = parent.next_event() {
                match event {
                    Event::Linked(peer, _) => assert!(live.insert(peer.token)),
                    Event::Lost { token, .. } => assert!(live.remove(&token)),
                }
            }
        };
        while began.elapsed() < pause {
            take(&mut parent, &mut live);
        }
        actor.kill();
        // Whatever was linked is lost, and the half-made is forgotten.
        let mut honest = unnamed(&namespace);
        let (_, mut here) = connect(&mut honest, Address::Name("parent"));
        let identity = honest.identity();
        let mut there = wait_for(&mut parent, |parent| {
            match parent.next_event()? {
                Event::Linked(peer, link) if peer.destination == identity => return Some(link),
                Event::Linked(peer, _) => assert!(live.insert(peer.token)),
                Event::Lost { token, .. } => assert!(live.remove(&token)),
            }
            None
        });
        exchange(&mut here, &mut there);
        let mut honest_lost = false;
        drop(honest);
        while !honest_lost || !live.is_empty() {
            match event(&mut parent) {
                Event::Linked(peer, _) => assert!(live.insert(peer.token)),
                Event::Lost { token, .. } => honest_lost |= !live.remove(&token),
            }
        }
    }
    let counters = parent.rendezvous_counters();
    println!("handshakes: {counters:?}");
    assert_eq!(counters.invalid + counters.version, 0);
}

#[test]
fn a_server_killed_while_we_connect_to_it() {
    const ROUNDS: u32 = 30;
    let namespace = namespace();
    let mut parent = named(&namespace, "parent");
    for round in 0..ROUNDS {
        let (mut actor, _) = Actor::start(Actor::command("echo", &namespace));
        let pause = instant(round, Duration::from_micros(600));
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                let began = Instant::now();
                while began.elapsed() < pause {
                    std::hint::spin_loop();
                }
                actor.kill();
            });
            let deadline_ns = after_ns(&parent, 50_000_000);
            parent.connect(Address::Name("child"), deadline_ns)
        });
        match result {
            Ok(Connected::New(peer, _link)) => {
                assert_eq!(lost(&mut parent), (peer.token, LossCause::Died));
            }
            Ok(Connected::Already { token }) => panic!("linked already: {token}"),
            Err(ConnectError::Absent { .. } | ConnectError::Stalled { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(parent.next_event().is_none());
}

#[test]
fn a_death_is_known_though_somebody_holds_the_socket() {
    let namespace = namespace();
    let mut parent = named(&namespace, "parent");
    let mut command = Actor::command("lend_socket", &namespace);
    let interface = parent.identity().interface;
    command.env("HAMLYN_TEST_INTERFACE", interface.to_string());
    let (mut actor, heir) = Actor::start(command);
    let heir: i32 = heir.parse().unwrap();
    let (peer, _link) = linked(&mut parent);
    let killed = Instant::now();
    actor.0.kill().unwrap();
    assert_eq!(lost(&mut parent), (peer.token, LossCause::Died));
    let known_after = killed.elapsed();
    // It is alive still, and has the socket.
    let heir = rustix::process::Pid::from_raw(heir).unwrap();
    assert!(rustix::process::test_kill_process(heir).is_ok());
    rustix::process::kill_process(heir, rustix::process::Signal::KILL).unwrap();
    actor.kill();
    report("a death behind a held socket", vec![known_after]);
}

#[test]
fn a_real_stranger_is_refused() {
    const STRANGER: u32 = 12345;
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can start a process of another user");
        return;
    }
    let namespace = namespace();
    let parent = named(&namespace, "parent");
    let mut listing = Options::named("listing").in_namespace(&namespace);
    listing.access = hamlyn_host::process::Access::Listed {
        users: vec![STRANGER],
        groups: vec![],
    };
    let mut listing = Owner::open(listing).unwrap();
    let mut command = Actor::command("stranger", &namespace);
    command.uid(STRANGER).gid(STRANGER);
    match command.spawn() {
        Ok(mut child) => {
            let _ = child.kill();
            let _ = child.wait();
        }
        Err(error) => {
            println!("SKIPPED: the test program cannot be run by another user: {error}");
            return;
        }
    }
    let (_actor, said) = Actor::start(command);
    // Root may connect to anybody by default; but a stranger to root only if it is
    // listed, and the stranger's own list allows root.
    assert_eq!(said, "refused 1; linked");
    assert!(parent.rendezvous_counters().not_allowed >= 1);
    let (peer, _link) = linked(&mut listing);
    assert_eq!((peer.destination.user, peer.group), (STRANGER, STRANGER));
}

#[test]
fn a_peer_whose_process_cannot_be_seen() {
    let namespace = namespace();
    let mut parent = named(&namespace, "parent");
    let inner = Actor::command("contained", &namespace);
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]);
    command.arg(inner.get_program()).args(inner.get_args());
    command.env(ROLE, "contained").env(NAMESPACE, &namespace);
    let works = Command::new("unshare")
        .args(["--pid", "--fork", "true"])
        .status();
    if !works.is_ok_and(|status| status.success()) {
        println!("SKIPPED: process namespaces cannot be made here");
        return;
    }
    command.stdout(Stdio::piped());
    let (mut actor, said) = Actor::start(command);
    assert_eq!(said, "process 0");
    // From outside one can look in.
    let (peer, mut link) = linked(&mut parent);
    assert_ne!(peer.process, 0);
    assert!(try_send(&mut link, b"hello"));
    assert_eq!(packet(&mut parent, &mut link), b"hello");
    drop(parent);
    assert!(actor.0.wait().unwrap().success());
}
