//! What is left of hosts: nothing. One test at a time, since it counts what
//! belongs to the whole process.

mod support;

use hamlyn_host::process::codec::{self, Message};
use hamlyn_host::{Address, ConnectError, Connected, Event, Host, HostError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;
use std::time::Instant;
use support::raw::{Memory, Raw};
use support::*;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn descriptors() -> usize {
    // One of them is the directory itself.
    fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

fn mappings() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("memfd:")).count()
}

/// The control threads of this process, and how often each of them went to sleep.
fn control_threads() -> Vec<(String, u64)> {
    let mut control_threads = Vec::new();
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        // A thread may end while we look.
        let Ok(status) = fs::read_to_string(task.join("status")) else {
            continue;
        };
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once('\t')?.1.to_owned())
        };
        if field("Name:").is_some_and(|name| name == "hamlyn-control") {
            let slept = field("voluntary_ctxt_switches:").unwrap();
            control_threads.push((task.display().to_string(), slept.parse().unwrap()));
        }
    }
    control_threads
}

fn names_in(directory: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("hamlyn"))
        .collect()
}

#[test]
fn nothing_is_left() {
    let _one = ONE_AT_A_TIME.lock();
    let on_file_systems = || [names_in("/dev/shm"), names_in("/tmp")];
    let before = (descriptors(), mappings());
    let files_before = on_file_systems();
    let namespace = namespace();
    for _ in 0..20 {
        let mut alice = named(&namespace, "alice");
        let mut bob = named(&namespace, "bob");
        let interface = bob.identity().interface;
        let ((to_bob, here), (_, there)) = pair(&mut alice, &mut bob);
        let myself = connect(&mut alice, Address::Name("alice"));
        // Refused, with descriptors of all kinds on their way.
        let memory = Memory::new();
        let hello = codec::encode(&Message::Hello(memory.offer(1)));
        let [ring, bell] = memory.descriptors();
        for descriptors in [vec![ring], vec![ring; 3], vec![bell, ring], vec![ring; 8]] {
            let client = Raw::connect(&namespace, interface);
            assert!(client.send(&hello, &descriptors));
            client.refusal();
        }
        for descriptors in [vec![ring], vec![ring, bell]] {
            let client = Raw::connect(&namespace, interface);
            assert!(client.send(b"garbage", &descriptors));
            client.refusal();
        }
        let stalled = Raw::connect(&namespace, interface);
        stalled.greeted();
        let unmapped = Raw::connect(&namespace, interface);
        unmapped.greeted();
        unmapped.hello(&memory, 1);
        assert!(matches!(unmapped.message(), Some(Message::Welcome(_))));
        let _ = alice.connect(Address::Name("nobody"), 0).err().unwrap();
        alice.disconnect(to_bob.token);
        lost(&mut bob);
        let never_fetched = alice.connect(Address::Name("bob"), after_ns(&alice, TIMEOUT_NS));
        drop((here, there, myself, never_fetched));
    }
    // On a busy machine some of it is let go a moment after its host ended.
    let ended = Instant::now();
    while (descriptors(), mappings()) != before {
        let left = (descriptors(), mappings());
        let is_late = ended.elapsed().as_nanos() >= u128::from(TIMEOUT_NS);
        assert!(!is_late, "{left:?} are left, of {before:?} before");
        std::thread::yield_now();
    }
    // A thread that was joined may be shown for a moment longer.
    while !control_threads().is_empty() {
        assert!(ended.elapsed().as_nanos() < u128::from(TIMEOUT_NS));
        std::thread::yield_now();
    }
    assert_eq!(on_file_systems(), files_before);
    let sockets = fs::read_to_string("/proc/net/unix").unwrap();
    assert!(!sockets.contains(&namespace), "an address is still bound");
}

#[test]
fn an_idle_control_thread_does_not_wake() {
    let _one = ONE_AT_A_TIME.lock();
    let namespace = namespace();
    let mut alice = unnamed(&namespace);
    let mut bob = unnamed(&namespace);
    let _link = pair(&mut alice, &mut bob);
    // The last of their work may still be under way.
    let deadline_ns = after_ns(&alice, TIMEOUT_NS);
    let mut before = control_threads();
    loop {
        alice.prepare_sleep();
        let until_ns = after_ns(&alice, 300_000_000);
        alice.sleep(Some(until_ns)).unwrap();
        alice.end_sleep();
        let after = control_threads();
        if before == after && after.len() == 2 {
            return;
        }
        before = after;
        assert!(
            alice.now_ns() < deadline_ns,
            "the control threads do not rest"
        );
    }
}

#[test]
fn out_of_descriptors() {
    let _one = ONE_AT_A_TIME.lock();
    let namespace = namespace();
    let mut alice = named(&namespace, "alice");
    let mut bob = unnamed(&namespace);
    let limit = getrlimit(Resource::Nofile);
    for room in 0..12 {
        let scarce = Rlimit {
            current: Some(descriptors() as u64 + room),
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, scarce).unwrap();
        let deadline_ns = after_ns(&bob, 30_000_000);
        let result = bob.connect(Address::Name("alice"), deadline_ns);
        setrlimit(Resource::Nofile, limit).unwrap();
        match result {
            Err(
                ConnectError::Host(HostError::Descriptors { .. })
                | ConnectError::Refused { .. }
                | ConnectError::Stalled { .. },
            ) => {}
            Err(error) => panic!("room for {room}: {error:?}"),
            Ok(Connected::Already { .. }) => panic!("linked already"),
            Ok(Connected::New(peer, _)) => bob.disconnect(peer.token),
        }
        while alice.next_event().is_some() {}
    }
    // Both recover.
    let (_, mut here) = connect(&mut bob, Address::Name("alice"));
    assert!(try_send(&mut here, b"hello"));
    let mut links = Vec::new();
    wait_for(&mut alice, |alice| {
        while let Some(event) = alice.next_event() {
            if let Event::Linked(_, link) = event {
                links.push(link);
            }
        }
        links.iter_mut().find_map(try_receive)
    });
}
