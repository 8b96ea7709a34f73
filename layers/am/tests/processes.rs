//! Nodes in processes that are killed and stopped; and costs of those that do nothing.

#[path = "../../../crates/hamlyn/tests/support/actor.rs"]
#[allow(dead_code, reason = "each test program uses a part of this module")]
mod actor;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hamlyn::host::process::Options;
use hamlyn::region::SharedOptions;
use hamlyn::{Area, Wait};
use hamlyn_am::{Blocked, Bundle, Endpoint, Error, Node, NodeOptions, Reason, Tag, Translation};
use rustix::time::{ClockId, clock_gettime};

use actor::Actor;

const LONG: Wait = Wait::millis(60_000);
const TAG: Tag = Tag::new(7);
const ASK: u8 = 3;
const ANSWER: u8 = 4;
const KEEP: u8 = 5;
const PUT: u8 = 6;
const SEGMENT: u64 = 4 << 20;

#[test]
#[ignore = "a role of the other tests"]
fn child() {
    let (role, name) = actor::role().unwrap();
    match role.as_str() {
        "server" => serve(&name),
        "client" => ask_for_ever(&name),
        "many" => open_many(),
        role => panic!("no role {role}"),
    }
}

/// Answers until it is killed. Requests to keep are never answered.
fn serve(name: &str) {
    let node = Node::open(Options::named(name), NodeOptions::default()).unwrap();
    let bundle = node.bundle().unwrap();
    let mut endpoint = bundle.endpoint().unwrap();
    endpoint.set_tag(TAG).unwrap();
    let answer = |call: &mut hamlyn_am::Call<'_>, arguments: &[u32]| call.reply(ANSWER, arguments);
    endpoint.on_short(ASK, answer).unwrap();
    let kept = Rc::new(RefCell::new(Vec::new()));
    endpoint
        .on_short(KEEP, move |call, _| {
            kept.borrow_mut().push(call.defer()?);
            Ok(())
        })
        .unwrap();
    // Its own process and its clients share the segment.
    let area = Area::shared(SharedOptions::reserved(SEGMENT)).unwrap();
    endpoint.set_segment(Some((area.clone(), SEGMENT))).unwrap();
    endpoint
        .on_bulk(PUT, move |call, range, arguments| {
            let mut found = vec![0; (range.end - range.start) as usize];
            area.read_at(range.start, &mut found).unwrap();
            assert!(found.iter().all(|&byte| byte == arguments[0] as u8));
            call.reply(ANSWER, arguments)
        })
        .unwrap();
    node.publish("server", &endpoint.name().unwrap()).unwrap();
    loop {
        bundle.serve(Wait::Forever).unwrap();
    }
}

/// Sends requests that are kept, and others, until it is killed.
fn ask_for_ever(name: &str) {
    let client = Client::open(name);
    for _ in 0..4 {
        client
            .endpoint
            .request(&client.to, KEEP, &[], LONG)
            .unwrap();
    }
    loop {
        client
            .endpoint
            .request(&client.to, ASK, &[0], LONG)
            .unwrap();
    }
}

fn unique(name: &str) -> String {
    format!("am-{name}-{}", std::process::id())
}

/// A client of a server.
struct Client {
    node: Node,
    bundle: Bundle,
    endpoint: Endpoint,
    to: Translation,
    answers: Rc<RefCell<Vec<u32>>>,
    returned: Rc<RefCell<Vec<(Reason, u32)>>>,
}

impl Client {
    fn open(server: &str) -> Self {
        let node = Node::open(Options::default(), NodeOptions::default()).unwrap();
        let bundle = node.bundle().unwrap();
        let mut endpoint = bundle.endpoint().unwrap();
        let (answers, returned) = (Rc::default(), Rc::default());
        let seen: Rc<RefCell<Vec<u32>>> = Rc::clone(&answers);
        endpoint
            .on_short(ANSWER, move |_, arguments| {
                seen.borrow_mut().push(arguments[0]);
                Ok(())
            })
            .unwrap();
        let seen: Rc<RefCell<Vec<(Reason, u32)>>> = Rc::clone(&returned);
        endpoint
            .on_returned(move |back| {
                let number = back.arguments.first().copied();
                seen.borrow_mut()
                    .push((back.reason, number.unwrap_or(u32::MAX)));
            })
            .unwrap();
        let name = node.look_up(server, "server", LONG).unwrap();
        let to = endpoint.map(&name, TAG, LONG).unwrap();
        Self {
            node,
            bundle,
            endpoint,
            to,
            answers,
            returned,
        }
    }

    fn outstanding(&self) -> u32 {
        self.endpoint.outstanding().unwrap()
    }

    /// Serves until that holds; a look takes as long as anything may.
    fn serve_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        while !holds() {
            let served = self.bundle.serve(LONG).unwrap();
            let statistics = self.node.statistics();
            assert!(served > 0 || holds(), "{what} did not come: {statistics:?}");
        }
    }
}

/// At whatever instant a server dies, each request is answered or comes back, once.
#[test]
fn a_server_that_is_killed_loses_nothing_silently() {
    let name = unique("killed");
    for round in 0..12_usize {
        let mut server = Actor::start("server", &name);
        let client = Client::open(&name);
        let mut accepted = 0;
        let die_at = round * round * 7;
        let lost = loop {
            match client.endpoint.request(&client.to, ASK, &[accepted], LONG) {
                Ok(()) => accepted += 1,
                Err(Error::PeerLost(_)) => break true,
                Err(error) => panic!("{error}"),
            }
            if client.answers.borrow().len() >= die_at {
                server.kill();
            }
            if accepted == 1_000_000 {
                break false;
            }
        };
        assert!(lost, "its death is known");
        server.kill();
        assert!(!server.ended());
        client.serve_until("all ends", || client.outstanding() == 0);
        // Those that came back have been told.
        let told = || client.answers.borrow().len() + client.returned.borrow().len();
        client.serve_until("what comes back", || told() >= accepted as usize);
        let returned = client.returned.borrow();
        assert!(
            returned
                .iter()
                .all(|(reason, _)| *reason == Reason::Unreachable)
        );
        let mut all: Vec<u32> = client.answers.borrow().clone();
        all.extend(returned.iter().map(|(_, number)| number));
        all.sort();
        assert_eq!(all, (0..accepted).collect::<Vec<_>>(), "each once");
        // Another one of that name is another one.
        drop(returned);
        let _server = Actor::start("server", &name);
        let again = Client::open(&name);
        again.endpoint.request(&again.to, ASK, &[5], LONG).unwrap();
        again.serve_until("the answer", || *again.answers.borrow() == [5]);
        // A translation of before is an error, and does not harm the link that has the place of its
        // own.
        let name_again = client.node.look_up(&name, "server", LONG).unwrap();
        let anew = client.endpoint.map(&name_again, TAG, LONG).unwrap();
        client.endpoint.request(&anew, KEEP, &[], LONG).unwrap();
        for _ in 0..2 {
            let stale = client.endpoint.request(&client.to, ASK, &[], LONG);
            assert!(matches!(stale, Err(Error::PeerLost(_))), "{stale:?}");
        }
        let before = (client.answers.borrow().len(), told());
        client.endpoint.request(&anew, ASK, &[0], LONG).unwrap();
        client.serve_until("the answer", || client.answers.borrow().len() > before.0);
        assert_eq!((client.outstanding(), told()), (1, before.1 + 1));
    }
}

/// At whatever instant a server dies, each transfer is answered or comes back, once.
#[test]
fn a_server_that_is_killed_returns_transfers() {
    let name = unique("transfers");
    for round in 0..12_usize {
        let mut server = Actor::start("server", &name);
        let client = Client::open(&name);
        let mut accepted = 0;
        loop {
            let place = u64::from(accepted % 4) * SEGMENT / 4;
            let data = vec![accepted as u8; SEGMENT as usize / 4 - round];
            let wait = if accepted % 3 == 0 { Wait::Poll } else { LONG };
            let numbers = [accepted];
            match client
                .endpoint
                .transfer(&client.to, PUT, place, &data, &numbers, wait)
            {
                Ok(()) => accepted += 1,
                Err(Error::PeerLost(_)) => break,
                Err(Error::WouldBlock(_)) => drop(client.bundle.serve(Wait::millis(5))),
                Err(error) => panic!("{error}"),
            }
            if accepted % 4 == 0 && round > 0 {
                // The same places are written again.
                client.serve_until("all ends", || client.outstanding() == 0);
            }
            if client.answers.borrow().len() >= round * round {
                server.kill();
            }
            if !client.returned.borrow().is_empty() || accepted == 1_000 {
                break;
            }
        }
        server.kill();
        assert!(!server.ended());
        let told = || client.answers.borrow().len() + client.returned.borrow().len();
        client.serve_until("all ends", || {
            client.outstanding() == 0 && told() >= accepted as usize
        });
        let returned = client.returned.borrow();
        let is_lost = |(reason, _): &(Reason, u32)| *reason == Reason::Unreachable;
        assert!(returned.iter().all(is_lost), "{returned:?}");
        let mut all: Vec<u32> = client.answers.borrow().clone();
        all.extend(returned.iter().map(|(_, number)| number));
        all.sort();
        assert_eq!(all, (0..accepted).collect::<Vec<_>>(), "each once");
    }
}

/// A server that is stopped is slow: its clients' credits are used up, calls that may not wait
/// return, and nothing comes back.
#[test]
fn a_stopped_server_is_slow_and_not_dead() {
    let name = unique("stopped");
    let server = Actor::start("server", &name);
    let client = Client::open(&name);
    client
        .endpoint
        .request(&client.to, ASK, &[0], LONG)
        .unwrap();
    client.serve_until("an answer", || client.answers.borrow().len() == 1);
    actor::stop(server.id());
    let mut sent = 1;
    let blocked = loop {
        match client
            .endpoint
            .request(&client.to, ASK, &[sent], Wait::Poll)
        {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    // One that it had taken before it stopped may have been answered.
    assert_eq!(blocked, Error::WouldBlock(Blocked::Credit));
    assert_eq!(client.outstanding(), 16);
    while client.bundle.serve(Wait::millis(300)).unwrap() > 0 {}
    assert!(client.returned.borrow().is_empty());
    actor::go_on(server.id());
    client.serve_until("all answers", || client.outstanding() == 0);
    assert_eq!(*client.answers.borrow(), (0..sent).collect::<Vec<_>>());
    assert!(client.returned.borrow().is_empty());
}

/// A client that dies leaves its requests behind: their replies reach nobody, and others are
/// served.
#[test]
fn a_client_that_is_killed_harms_no_other() {
    let name = unique("clients");
    let node = Node::open(Options::named(&name), NodeOptions::default()).unwrap();
    let bundle = node.bundle().unwrap();
    let mut endpoint = bundle.endpoint().unwrap();
    endpoint.set_tag(TAG).unwrap();
    let (kept, asked) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Cell::new(0)));
    let deferred = Rc::clone(&kept);
    endpoint
        .on_short(KEEP, move |call, _| {
            deferred.borrow_mut().push(call.defer()?);
            Ok(())
        })
        .unwrap();
    let counted = Rc::clone(&asked);
    endpoint
        .on_short(ASK, move |call, arguments| {
            counted.set(counted.get() + 1);
            call.reply(ANSWER, arguments)
        })
        .unwrap();
    endpoint.on_returned(|back| panic!("{back:?}")).unwrap();
    node.publish("server", &endpoint.name().unwrap()).unwrap();
    let serve_until = |holds: &dyn Fn() -> bool| {
        while !holds() {
            assert!(bundle.serve(LONG).unwrap() > 0);
        }
    };
    let mut one = Actor::start("client", &name);
    let other = Actor::start("client", &name);
    serve_until(&|| kept.borrow().len() == 8 && asked.get() > 500);
    one.kill();
    assert!(!one.ended());
    let before = asked.get();
    serve_until(&|| asked.get() > before + 500);
    let (mut answered, mut stale) = (0, 0);
    for request in kept.borrow_mut().drain(..) {
        match endpoint.reply(request, ANSWER, &[0]) {
            Ok(()) => answered += 1,
            Err(Error::Stale) => stale += 1,
            Err(error) => panic!("{error}"),
        }
    }
    // Its link ends when all that it had sent was taken, and then nobody is there to be answered.
    assert_eq!(answered + stale, 8);
    assert!(answered >= 4, "the other one lives");
    let before = asked.get();
    serve_until(&|| asked.get() > before + 500);
    drop(other);
}

/// The processor time of this thread, in nanoseconds.
fn processor_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A bundle that waits sleeps, also with requests outstanding.
#[test]
fn a_bundle_that_waits_costs_no_processor_time() {
    let name = unique("idle");
    let _server = Actor::start("server", &name);
    let client = Client::open(&name);
    for outstanding in [0, 1] {
        if outstanding > 0 {
            client
                .endpoint
                .request(&client.to, KEEP, &[], LONG)
                .unwrap();
        }
        // Until there is nothing more to attend to.
        while client.bundle.serve(Wait::millis(50)).unwrap() > 0 {}
        let before = processor_ns();
        assert_eq!(client.bundle.serve(Wait::millis(1_000)).unwrap(), 0);
        let took = processor_ns() - before;
        assert!(
            took < 100_000_000,
            "{took} ns with {outstanding} outstanding"
        );
        assert_eq!(client.outstanding(), outstanding);
    }
}

/// Bytes of memory of this process that are present.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

/// In a process of its own, as it counts all of its memory.
fn open_many() {
    // Those that are counted, after some for which memory is had in large pieces.
    const FIRST: u64 = 2_000;
    const ENDPOINTS: u64 = FIRST + 10_000;
    const FRAMES: u16 = 8;
    let options = NodeOptions {
        frames: FRAMES,
        ..NodeOptions::default()
    };
    let node = Node::open(Options::default(), options).unwrap();
    let bundle = node.bundle().unwrap();
    let client = bundle.endpoint().unwrap();
    let mut before = 0;
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for number in 0..ENDPOINTS {
        if number == FIRST {
            before = resident_bytes();
        }
        let mut endpoint = bundle.endpoint().unwrap();
        endpoint.set_tag(Tag::new(number)).unwrap();
        endpoints.push(endpoint);
    }
    let each = resident_bytes().saturating_sub(before) / (ENDPOINTS - FIRST);
    assert!(each <= 1024, "{each} bytes for each endpoint");
    // All of them can be reached.
    let count = Rc::new(Cell::new(0_u64));
    for endpoint in &mut endpoints {
        let counted = Rc::clone(&count);
        endpoint
            .on_short(1, move |_, _| {
                counted.set(counted.get() + 1);
                Ok(())
            })
            .unwrap();
    }
    let step = 97;
    let mut sent = 0;
    for number in (0..ENDPOINTS).step_by(step) {
        let name = endpoints[number as usize].name().unwrap();
        let to = client.map(&name, Tag::new(number), LONG).unwrap();
        client.request(&to, 1, &[], LONG).unwrap();
        sent += 1;
    }
    while count.get() < sent {
        assert!(bundle.serve(LONG).unwrap() > 0);
    }
    let is_resident = |endpoint: &&Endpoint| endpoint.is_resident().unwrap();
    assert!(endpoints.iter().filter(is_resident).count() <= usize::from(FRAMES));
    assert!(node.statistics().unwrap().faults_by_message > sent / 2);
}

#[test]
fn ten_thousand_endpoints_take_a_kibibyte_each() {
    let mut child = Actor::start("many", "");
    assert!(child.ended(), "as it says");
}
