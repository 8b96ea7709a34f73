use crate::network::{Event, Fabric, Frame, HostId, Network, Routing};
use crate::random::Random;
use crate::time::Time;

use super::*;

/// Alice and Bob at a switch each, and a cable between the switches.
fn small() -> Topology {
    let mut topology = Topology::default();
    topology.add_switch("s0".into(), 8);
    topology.add_switch("s1".into(), 16);
    topology.add_host(End::Switch(0, 7));
    topology.connect(End::Switch(0, 0), End::Switch(1, 15));
    topology.add_host(End::Switch(1, 0));
    for cable in &mut topology.cables {
        cable.delay = Span::from_ns(20);
    }
    topology.cables[1].ps_per_byte = 800;
    topology.cables[1].buffer_bytes = 4096;
    topology
}

#[test]
fn errors_name_what_is_wrong_and_what_to_do() {
    type Change = fn(&mut Topology);
    let cases: [(Change, &str); 8] = [
        (
            |small| small.cables[0].ends[1] = End::Switch(0, 8),
            "cable 0 ends at port 8 of s0, which has ports 0 to 7",
        ),
        (
            |small| small.cables[0].ends[1] = End::Switch(0, 0),
            "cable 1 ends at port 0 of s0, where cable 0 is already: use another port",
        ),
        (
            |small| small.cables[2].ends[0] = End::Switch(0, 3),
            "host h1 has no cable: connect it to a switch",
        ),
        (
            |small| small.cables[2].ends[0] = End::Host(0),
            "cable 2 ends at host h0, where cable 0 is already: use another port",
        ),
        (
            |small| small.cables[1].ps_per_byte = 0,
            "cable 1 has no rate: ps_per_byte must be at least 1",
        ),
        (
            |small| small.cables[1].loses_per_million = 1_000_001,
            "cable 1: 1000001 of a million is more than all: at most 1000000",
        ),
        (
            |small| small.cables[1].buffer_bytes = 649,
            "cable 1 brings 650 bytes to s0 before its head is through: buffer_bytes must be at least that, it is 649",
        ),
        (
            |small| small.switches[1].ports = 0,
            "switch s1 has no ports: give it at least one",
        ),
    ];
    assert_eq!(small().check(), Ok(()));
    for (change, says) in cases {
        let mut topology = small();
        change(&mut topology);
        assert_eq!(topology.check().unwrap_err().to_string(), says);
    }
    assert_eq!(Topology::default().check(), Err(TopologyError::NoHosts));
}

#[test]
fn ends_that_do_not_exist_are_named() {
    let mut topology = Topology::single_switch(2);
    topology.connect(End::Host(2), End::Switch(0, 5));
    assert_eq!(
        topology.check().unwrap_err().to_string(),
        "cable 2 ends at host number 2, which does not exist: add it or correct the cable"
    );
    topology.cables[2].ends[0] = End::Switch(4, 1);
    assert_eq!(
        topology.check().unwrap_err().to_string(),
        "cable 2 ends at port 1 of switch number 4, which does not exist: add it or correct the cable"
    );
}

#[test]
fn generators_make_what_they_say() {
    for (arity, levels, hosts, switches, cables) in [
        (4, 3, 64, 48, 192),
        (4, 5, 1024, 1280, 5120),
        (2, 3, 8, 12, 24),
        (32, 2, 1024, 64, 2048),
        (8, 1, 8, 1, 8),
    ] {
        let topology = Topology::fat_tree(arity, levels).unwrap();
        let counts = (
            topology.host_count(),
            topology.switches.len(),
            topology.cables.len(),
        );
        assert_eq!(counts, (hosts, switches, cables));
        assert!(
            topology
                .switches
                .iter()
                .all(|switch| switch.ports == arity * 2)
        );
        assert_eq!(topology.check(), Ok(()));
    }
    for clos in [(2, 4, 4, 1), (8, 8, 8, 2), (1, 1, 1, 1)] {
        let topology = Topology::folded_clos(clos.0, clos.1, clos.2, clos.3).unwrap();
        assert_eq!(topology.host_count(), usize::from(clos.0 * clos.1));
        assert_eq!(topology.check(), Ok(()));
    }
    for switches in [0, 1, 2, 9] {
        assert_eq!(Topology::line(switches).check(), Ok(()));
    }
    assert_eq!(
        Topology::single_switch(0).check(),
        Err(TopologyError::NoHosts)
    );
    assert_eq!(Topology::single_switch(100).check(), Ok(()));
    for (arity, levels) in [(0, 2), (2, 0), (2, 13), (u16::MAX, 5)] {
        assert!(Topology::fat_tree(arity, levels).is_err());
    }
    assert!(Topology::folded_clos(0, 1, 1, 1).is_err());
    assert!(Topology::folded_clos(60_000, 1, 1, 2).is_err());
    assert!(Topology::folded_clos(1, 60_000, 300, 300).is_err());
}

/// The network of the virtual networks, as far as its paper describes it, and one that cannot be.
#[test]
fn subclusters_join_all_hosts() {
    let shape = Subclusters {
        hosts: 100,
        switches: 40,
        ports: 8,
        clusters: 3,
        joining: 2,
        joining_cables: 11,
    };
    let topology = Topology::subclusters(&shape).unwrap();
    topology.check().unwrap();
    assert_eq!((topology.hosts.len(), topology.switches.len()), (100, 40));
    let joining = |end: &End| matches!(end, End::Switch(at, _) if *at >= 38);
    let cables = topology.cables.iter();
    let joined = cables.filter(|cable| cable.ends.iter().any(joining));
    assert_eq!(joined.count(), 11);
    for from in (0..100).step_by(7) {
        let mut fabric = Fabric::new(&topology, Routing::Pair, &mut Random::new(1)).unwrap();
        let mut came = 0;
        for to in (0..100).filter(|&to| to != from) {
            let frame = Frame::new(to.into(), HostId(from), HostId(to), 40, ());
            let at = Time::from_ns(u64::from(to) * 10_000);
            assert!(fabric.send(at, frame).is_ok(), "{from} to {to}");
            fabric.advance(at + Span::from_us(10), &mut |event| {
                came += u32::from(matches!(event, Event::Delivered { .. }));
            });
        }
        assert_eq!(came, 99, "from {from}");
    }
    let wrong = [
        Subclusters {
            joining: 5,
            ..shape
        },
        Subclusters {
            clusters: 0,
            ..shape
        },
        Subclusters {
            clusters: 20,
            ..shape
        },
        Subclusters {
            hosts: 300,
            ..shape
        },
        Subclusters {
            switches: 2,
            ..shape
        },
    ];
    for shape in wrong {
        assert!(Topology::subclusters(&shape).is_err(), "{shape:?}");
    }
}

#[test]
fn what_is_too_large_for_memory_is_refused() {
    let mut topology = Topology::single_switch(1);
    for at in 1..6_000 {
        topology.add_switch(format!("s{at}"), 8);
        topology.add_host(End::Switch(at, 0));
    }
    let (switches, with_hosts) = (6_000, 6_000);
    assert_eq!(
        topology.check(),
        Err(TopologyError::TooLarge {
            switches,
            with_hosts
        })
    );
}
