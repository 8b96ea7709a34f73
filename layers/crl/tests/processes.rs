//! Nodes in processes that are killed and stopped.

#[path = "../../../crates/hamlyn/tests/support/actor.rs"]
#[allow(dead_code, reason = "each test program uses a part of this module")]
mod actor;

use std::time::Duration;

use hamlyn::Wait;
use hamlyn::host::process::Options;
use hamlyn_am::NodeOptions;
use hamlyn_crl::{
    AmCourier, Courier, CrlError, CrlOptions, RegionHandle, RegionId, Regions, UdmCourier,
};
use hamlyn_udm::{Group, GroupOptions};

use actor::Actor;

const LONG: Wait = Wait::millis(60_000);
const NODES: u32 = 3;
const COUNTS: u64 = 600;

type Crl = hamlyn_crl::Crl<Box<dyn Courier>>;
type Region = hamlyn_crl::Region<Box<dyn Courier>>;

/// Messages of a program, as its name begins.
const UDM: &str = "udm";
const AM: &str = "am";

fn join(base: &str, me: u32) -> Crl {
    let addresses: Vec<String> = (0..NODES).map(|node| format!("{base}-{node}")).collect();
    let host = Options::named(&addresses[me as usize]);
    let options = GroupOptions {
        name: base.into(),
        me,
        addresses,
    };
    let courier: Box<dyn Courier> = if base.starts_with(AM) {
        let node = hamlyn_am::Node::open(host, NodeOptions::default()).unwrap();
        Box::new(AmCourier::open(&node, &options, "main", LONG).unwrap())
    } else {
        let manager = hamlyn::open_with(host, Default::default()).unwrap();
        let group = Group::new(manager, options).unwrap();
        Box::new(UdmCourier::open(&group, "main", LONG).unwrap())
    };
    Crl::open(courier, CrlOptions::default()).unwrap()
}

fn unique(messages: &str, name: &str) -> String {
    format!("{messages}-crl-{name}-{}", std::process::id())
}

/// The region that a node creates first.
fn first_of(node: u32) -> RegionId {
    RegionId::from_u64(u64::from(node) << 32)
}

#[test]
#[ignore = "a role of the other tests"]
fn child() {
    let (role, words) = actor::role().unwrap();
    let (base, me) = words.rsplit_once('/').unwrap();
    let crl = join(base, me.parse().unwrap());
    crl.create(5_000).unwrap();
    crl.barrier().unwrap();
    let regions: Vec<_> = (0..NODES)
        .map(|node| crl.map(first_of(node)).unwrap())
        .collect();
    crl.barrier().unwrap();
    match role.as_str() {
        // Adds one to the region of node 0 until that is lost.
        "adder" => loop {
            let Ok(mut guard) = regions[0].write() else {
                return;
            };
            let next = guard[0].wrapping_add(1);
            guard.fill(next);
        },
        // Holds the regions of nodes 0 and 1 exclusively until it is killed.
        "holder" => {
            let _first = regions[0].write().unwrap();
            let _second = regions[1].write().unwrap();
            actor::say(b"held");
            loop {
                crl.serve(LONG).unwrap();
            }
        }
        // Adds one to the region of node 0 so often.
        "counter" => {
            for _ in 0..COUNTS {
                regions[0].write().unwrap().values::<u64>().unwrap()[7] += 1;
            }
            actor::say(b"counted");
            loop {
                crl.serve(LONG).unwrap();
            }
        }
        // Answers others until the test ends.
        "server" => loop {
            crl.serve(LONG).unwrap();
        },
        role => panic!("no role {role}"),
    }
}

/// Starts the other nodes, and is node 0 with the regions of all.
fn begin(base: &str, roles: [&str; 2]) -> (Crl, Vec<Region>, [Actor; 2]) {
    let mut node = 0;
    let actors = roles.map(|role| {
        node += 1;
        Actor::start(role, &format!("{base}/{node}"))
    });
    let crl = join(base, 0);
    crl.create(5_000).unwrap();
    crl.barrier().unwrap();
    let regions = (0..NODES)
        .map(|node| crl.map(first_of(node)).unwrap())
        .collect();
    crl.barrier().unwrap();
    (crl, regions, actors)
}

/// A node that is killed takes along what only it has, and nothing else.
fn a_killed_holder_fails_its_regions_by_name(messages: &str) {
    let (crl, regions, mut actors) = begin(&unique(messages, "holder"), ["server", "holder"]);
    while crl.serve(Wait::millis(20)).unwrap() {}
    assert_eq!(actors[1].hear(), b"held");
    actors[1].kill();
    let (mut failed, at) = (Vec::new(), regions.iter());
    for region in at {
        let error = region.write().err();
        failed.push(error);
    }
    let lost = |node| {
        Some(CrlError::Lost {
            region: first_of(node),
            node: 2,
        })
    };
    assert_eq!(failed, [lost(0), lost(1), lost(2)]);
    // Regions that had not been with it are as before.
    let own = crl.create(8).unwrap();
    crl.map(own).unwrap().write().unwrap().fill(1);
    assert_eq!(crl.barrier(), Err(CrlError::NodeLost { node: 2 }));
}

/// At whatever instant a node is killed, operations end: granted, or lost by name; and none sees a
/// part of another one.
fn a_node_killed_at_any_instant_leaves_whole_operations(messages: &str) {
    for round in 0..8_u32 {
        let base = unique(messages, &format!("adder-{round}"));
        let (crl, regions, mut actors) = begin(&base, ["adder", "adder"]);
        let mut killed = false;
        for count in 0..160 {
            if count == 1 + round * 15 {
                actors[0].kill();
                killed = true;
            }
            match regions[0].read() {
                Ok(guard) => assert!(guard.iter().all(|byte| *byte == guard[0])),
                Err(error) => {
                    let region = first_of(0);
                    assert_eq!(error, CrlError::Lost { region, node: 1 });
                    assert!(killed);
                    break;
                }
            }
        }
        assert_eq!(crl.map(first_of(2)).map(drop), Ok(()), "others go on");
    }
}

/// A node that is stopped delays those that need it, and no others.
fn a_stopped_node_delays_only_those_that_need_it(messages: &str) {
    let (crl, regions, actors) = begin(&unique(messages, "stopped"), ["server", "server"]);
    regions[0].write().unwrap().fill(1);
    drop(regions[1].write().unwrap());
    actor::stop(actors[1].id());
    // Home here, and home at node 1.
    for _ in 0..50 {
        drop(regions[0].write().unwrap());
        drop(regions[1].write().unwrap());
        regions[1].flush().unwrap();
    }
    actor::go_on(actors[1].id());
    drop(regions[2].write().unwrap());
    assert!(crl.statistics().total() > 100);
}

/// Nodes that are stopped at any instant and go on lose no operation.
fn stops_at_any_instant_lose_nothing(messages: &str) {
    let (_crl, regions, mut actors) = begin(&unique(messages, "counters"), ["counter", "counter"]);
    let ids = [actors[0].id(), actors[1].id()];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for stop in 0..40_u64 {
                let id = ids[stop as usize % 2];
                actor::stop(id);
                std::thread::sleep(Duration::from_micros(stop * 37 % 1_500));
                actor::go_on(id);
                std::thread::sleep(Duration::from_micros(stop * 53 % 900));
            }
        });
        for _ in 0..COUNTS {
            regions[0].write().unwrap().values::<u64>().unwrap()[7] += 1;
        }
        let count = || regions[0].read().unwrap().values::<u64>().unwrap()[7];
        while count() < 3 * COUNTS {
            std::thread::yield_now();
        }
    });
    for actor in &mut actors {
        assert_eq!(actor.hear(), b"counted");
    }
    assert_eq!(
        regions[0].read().unwrap().values::<u64>().unwrap()[7],
        3 * COUNTS
    );
}

/// The tests of these cases with each kind of messages.
macro_rules! over_each {
    ($($case:ident,)*) => {
        over_each! { over_udm, UDM; $($case,)* }
        over_each! { over_am, AM; $($case,)* }
    };
    ($module:ident, $messages:ident; $($case:ident,)*) => {
        mod $module {
            $(
                #[test]
                fn $case() {
                    super::$case(super::$messages);
                }
            )*
        }
    };
}

over_each! {
    a_killed_holder_fails_its_regions_by_name,
    a_node_killed_at_any_instant_leaves_whole_operations,
    a_stopped_node_delays_only_those_that_need_it,
    stops_at_any_instant_lose_nothing,
}
