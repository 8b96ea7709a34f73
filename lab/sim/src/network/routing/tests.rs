use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::topology::{Switch, Switching};
use super::*;
use crate::time::Span;

/// Every step that the tables allow: which cable may be asked for while which is held. Checks that
/// every way ends.
fn dependencies(topology: &Topology) -> BTreeSet<((usize, u16), (usize, u16))> {
    let routes = Routes::new(topology);
    let mut ends = BTreeMap::new();
    let mut edges = BTreeSet::new();
    for cable in &topology.cables {
        let [one, other] = cable.ends;
        for (from, to) in [(one, other), (other, one)] {
            match (from, to) {
                (End::Switch(at, port), End::Switch(to, _)) => {
                    ends.insert((at as usize, port), to as usize);
                }
                (End::Host(_), End::Switch(at, _)) => {
                    edges.insert(at as usize);
                }
                _ => {}
            }
        }
    }
    let mut steps = BTreeSet::new();
    for &from in &edges {
        for &to in &edges {
            let mut open = vec![(from, false, None)];
            let mut seen = BTreeSet::new();
            while let Some((at, came_down, held)) = open.pop() {
                if at == to || !seen.insert((at, came_down, held)) {
                    continue;
                }
                let ports = routes.list(routes.towards(at, came_down, to));
                assert!(!ports.is_empty(), "no way from {from} by {at} to {to}");
                for &port in ports {
                    let asked = (at, port);
                    if let Some(held) = held {
                        steps.insert((held, asked));
                    }
                    let next = ends[&asked];
                    open.push((next, routes.is_down(at, next), Some(asked)));
                }
            }
        }
    }
    steps
}

/// Whether nobody can wait for himself: all can be taken away, one after the other, that nothing
/// leads to.
fn has_no_circle(mut steps: BTreeSet<((usize, u16), (usize, u16))>) -> bool {
    loop {
        let asked: BTreeSet<_> = steps.iter().map(|&(_, asked)| asked).collect();
        let before = steps.len();
        steps.retain(|(held, _)| asked.contains(held));
        if steps.len() == before {
            return steps.is_empty();
        }
    }
}

/// Switches, connected somehow, and hosts on some of them.
pub(crate) fn any_network() -> impl Strategy<Value = Topology> {
    let cables = prop::collection::vec((any::<u32>(), any::<u32>()), 0..12);
    let hosts = prop::collection::vec(any::<u32>(), 1..8);
    (1..10u32, cables, hosts, any::<u64>()).prop_map(|(switches, cables, hosts, seed)| {
        let mut topology = Topology::default();
        let mut used = vec![0; switches as usize];
        let mut port = |at: u32| {
            used[at as usize] += 1;
            End::Switch(at, used[at as usize] - 1)
        };
        for at in 0..switches {
            topology.add_switch(format!("s{at}"), 64);
        }
        // A tree, so that it is connected, and then anything.
        let mut random = crate::random::Random::new(seed);
        for at in 1..switches {
            let other = random.below(at.into()) as u32;
            let (one, other) = (port(at), port(other));
            topology.connect(one, other);
        }
        for (one, other) in cables {
            let (one, other) = (port(one % switches), port(other % switches));
            topology.connect(one, other);
        }
        for host in hosts {
            let at = port(host % switches);
            topology.add_host(at);
        }
        topology
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_hosts_reach_each_other_and_nothing_waits_in_a_circle(topology in any_network()) {
        prop_assert!(topology.check().is_ok());
        prop_assert!(has_no_circle(dependencies(&topology)));
    }
}

#[test]
fn circles_are_found_by_the_test() {
    let circle = [((0, 0), (1, 0)), ((1, 0), (2, 0)), ((2, 0), (0, 0))];
    assert!(!has_no_circle(circle.into()));
    assert!(has_no_circle(circle[..2].iter().copied().collect()));
}

#[test]
fn trees_have_all_their_shortest_ways() {
    let topology = Topology::fat_tree(4, 3).unwrap();
    let routes = Routes::new(&topology);
    assert!(has_no_circle(dependencies(&topology)));
    // Up: any of four, twice; down: one.
    let ports = |at, came_down, to| routes.list(routes.towards(at, came_down, to)).len();
    assert_eq!((ports(0, false, 15), ports(16, false, 15)), (4, 4));
    assert_eq!((ports(32, false, 15), ports(16, true, 0)), (1, 1));
    assert_eq!([0, 16, 32].map(|at| routes.height(at)), [0, 1, 2]);
    let clos = Topology::folded_clos(2, 4, 1, 4).unwrap();
    let routes = Routes::new(&clos);
    let up = routes.list(routes.towards(0, false, 1));
    assert_eq!(up, [4, 5, 6, 7], "cables side by side are different ways");
}

#[test]
fn a_ring_falls_back_to_a_root_if_heights_leave_hosts_apart() {
    // 5 - 1 - 6 by height: the middle one is a valley that no way crosses.
    let mut topology = Topology::default();
    for name in ["a", "b", "c"] {
        topology.switches.push(Switch {
            name: name.into(),
            ports: 4,
            latency: Span::ZERO,
            switching: Switching::Wormhole,
        });
    }
    topology.add_host(End::Switch(1, 0));
    topology.add_host(End::Switch(2, 0));
    topology.add_host(End::Switch(0, 0));
    topology.connect(End::Switch(1, 1), End::Switch(0, 1));
    topology.connect(End::Switch(2, 1), End::Switch(0, 2));
    let routes = Routes::new(&topology);
    assert_eq!(routes.list(routes.towards(1, false, 2)), [1]);
    assert!(has_no_circle(dependencies(&topology)));
}

#[test]
fn choices_are_fixed_by_what_they_are_made_for() {
    let place = (3, 1);
    let choose = |routing: Routing, from, to, flow| {
        routing.choose((HostId(from), HostId(to), flow), place, 4)
    };
    let spread = |routing: Routing, by: fn(u32) -> (u32, u32, u32)| {
        let choices = (0..64)
            .map(by)
            .map(|(from, to, flow)| choose(routing, from, to, flow));
        choices.collect::<BTreeSet<_>>().len()
    };
    assert_eq!(spread(Routing::Pair, |at| (1, 2, at)), 1);
    assert_eq!(spread(Routing::Pair, |at| (at, 2, 0)), 4);
    assert_eq!(spread(Routing::Flow, |at| (1, 2, at)), 4);
    assert_eq!(spread(Routing::Destination, |at| (at, 7, at)), 1);
    assert_eq!(
        choose(Routing::Destination, 0, 7, 0),
        Some(1),
        "the digit of the height"
    );
    for routing in Routing::ALL {
        assert_eq!(choose(routing, 0, 1, 2).is_some(), routing.keeps_order());
    }
}
