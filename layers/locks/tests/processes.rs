//! Clients and servers in processes that are killed and stopped.

#[path = "../../../crates/hamlyn/tests/support/actor.rs"]
#[allow(dead_code, reason = "each test program uses a part of this module")]
mod actor;

use hamlyn::Wait;
use hamlyn::host::process::Options;
use hamlyn_am::{Node, NodeOptions, Tag};
use hamlyn_locks::{Lock, LockClient, LockError, LockServer, Mode, ServerOptions, ValueBlock};

use actor::Actor;

const LONG: Wait = Wait::millis(60_000);

/// Returns when the actor says that it is ready.
fn start(role: &str, name: &str) -> Actor {
    let mut actor = Actor::start(role, name);
    assert_eq!(actor.hear(), b"ready");
    actor
}

#[test]
#[ignore = "a role of the other tests"]
fn child() {
    let (role, name) = actor::role().unwrap();
    match role.as_str() {
        "server" => serve(&name),
        "holder" => hold(&name),
        "busy" => lock_for_ever(&name),
        role => panic!("no role {role}"),
    }
}

fn serve(name: &str) {
    let node = Node::open(Options::named(name), NodeOptions::default()).unwrap();
    let mut server = LockServer::open(&node, name, &[name], ServerOptions::default()).unwrap();
    actor::say(b"ready");
    loop {
        server.serve(Wait::Forever).unwrap();
    }
}

fn client(server: &str) -> LockClient {
    let node = Node::open(Options::default(), NodeOptions::default()).unwrap();
    LockClient::open(&node, &[server], Tag::Any).unwrap()
}

/// Holds a lock until it is killed.
fn hold(name: &str) {
    let client = client(name);
    let mut lock = client.acquire("row", Mode::Ex, LONG).unwrap();
    lock.set_value(b"never written").unwrap();
    actor::say(b"ready");
    loop {
        client.serve(Wait::Forever).unwrap();
    }
}

/// Locks in all ways until it is killed.
fn lock_for_ever(name: &str) {
    let client = client(name);
    actor::say(b"ready");
    for number in 0_u64.. {
        let mut lock = client.acquire("row", Mode::Pr, LONG).unwrap();
        if lock.try_convert(Mode::Ex, LONG).is_ok() {
            lock.set_value(&number.to_le_bytes()).unwrap();
        }
        drop(lock);
        drop(client.acquire("row", Mode::Ex, LONG).unwrap());
    }
}

fn unique(name: &str) -> String {
    format!("locks-{name}-{}", std::process::id())
}

#[test]
fn the_lock_of_a_holder_that_is_killed_is_released() {
    let name = unique("holder");
    let _server = start("server", &name);
    let client = client(&name);
    let keeps = client.acquire("row", Mode::Nl, LONG).unwrap();
    for _ in 0..8 {
        let mut holder = start("holder", &name);
        let waiting = client.enqueue("row", Mode::Ex, LONG).unwrap();
        assert_eq!(waiting.granted(Wait::millis(20)), Err(LockError::TimedOut));
        holder.kill();
        waiting.granted(LONG).unwrap();
        assert!(matches!(waiting.value().unwrap(), ValueBlock::NotValid(_)));
        // The next one finds it written again.
        let mut waiting = waiting;
        waiting.set_value(b"good").unwrap();
        waiting.release().unwrap();
        let next = client.acquire("row", Mode::Pr, LONG).unwrap();
        assert!(matches!(next.value().unwrap(), ValueBlock::Valid(_)));
    }
    drop(keeps);
}

/// At whatever instant clients are killed, the server and others go on, and no lock stays behind.
#[test]
fn clients_that_are_killed_at_any_instant_leave_no_lock() {
    let name = unique("busy");
    let _server = start("server", &name);
    let client = client(&name);
    for round in 0..12_u64 {
        let mut one = start("busy", &name);
        let other = start("busy", &name);
        let turns = 5 + round * 7;
        for _ in 0..turns {
            drop(client.acquire("row", Mode::Ex, LONG).unwrap());
        }
        one.kill();
        for _ in 0..turns {
            drop(client.acquire("row", Mode::Ex, LONG).unwrap());
        }
        drop((one, other));
        drop(client.acquire("row", Mode::Ex, LONG).unwrap());
    }
}

/// A client that is stopped is slow, and keeps its locks.
#[test]
fn a_stopped_holder_keeps_its_lock() {
    let name = unique("stopped");
    let _server = start("server", &name);
    let client = client(&name);
    let holder = start("holder", &name);
    actor::stop(holder.id());
    let waiting = client.enqueue("row", Mode::Cr, LONG).unwrap();
    assert_eq!(waiting.granted(Wait::millis(500)), Err(LockError::TimedOut));
    // Others are served meanwhile.
    drop(client.acquire("other", Mode::Ex, LONG).unwrap());
    actor::go_on(holder.id());
    assert_eq!(waiting.granted(Wait::millis(100)), Err(LockError::TimedOut));
    drop(holder);
    waiting.granted(LONG).unwrap();
}

#[test]
fn a_server_that_is_killed_is_an_error_and_another_one_takes_its_place() {
    let name = unique("server");
    let (client, other) = (client(&name), client(&name));
    for _ in 0..4 {
        let mut server = start("server", &name);
        let mut held = client.acquire("row", Mode::Pr, LONG).unwrap();
        let waiting = other.enqueue("row", Mode::Ex, LONG).unwrap();
        held.begin_convert(Mode::Pw, LONG).unwrap();
        held.granted(LONG).unwrap();
        server.kill();
        let is_lost = |result| matches!(result, Err(LockError::ServerLost { .. }));
        assert!(is_lost(waiting.granted(LONG)));
        while held.mode().is_some() {
            client.serve(Wait::millis(5)).unwrap();
        }
        assert!(is_lost(held.granted(LONG)));
        assert_eq!(held.mode(), None);
        let released: Result<(), LockError> = Lock::release(held);
        assert!(is_lost(released));
        // Without a server the error comes at once, or in time.
        drop(server);
        assert!(client.acquire("row", Mode::Ex, Wait::millis(20)).is_err());
    }
}
