use super::*;

const SMALL: &str = r#"
    [defaults]
    delay_ns = 20

    [[switch]]
    name = "s0"
    latency_ns = 300

    [[switch]]
    name = "s1"
    ports = 16
    switching = "store_and_forward"

    [[host]]
    name = "alice"

    [[host]]
    name = "bob"

    [[cable]]
    from = "alice"
    to = "s0:7"

    [[cable]]
    from = "s0:0"
    to = "s1:15"
    ps_per_byte = 800
    buffer_bytes = 4096
    loses_per_million = 7

    [[cable]]
    from = "bob"
    to = "s1:0"
"#;

#[test]
fn a_file_says_what_is_there() {
    let topology = Topology::from_toml(SMALL).unwrap();
    assert_eq!(topology.hosts[1].name, "bob");
    let [s0, s1] = &topology.switches[..] else {
        panic!("two switches")
    };
    assert_eq!(
        (s0.ports, s0.latency, s0.switching),
        (8, Span::from_ns(300), Switching::Wormhole)
    );
    assert_eq!((s1.ports, s1.latency), (16, PAPER_SWITCH_LATENCY));
    assert_eq!(s1.switching, Switching::StoreAndForward);
    let cable = topology.cables[1];
    assert_eq!(cable.ends, [End::Switch(0, 0), End::Switch(1, 15)]);
    assert_eq!((cable.ps_per_byte, cable.delay), (800, Span::from_ns(20)));
    assert_eq!((cable.buffer_bytes, cable.loses_per_million), (4096, 7));
    assert_eq!(topology.cables[0].ends, [End::Host(0), End::Switch(0, 7)]);
    assert_eq!(topology.cables[0].ps_per_byte, PAPER_PS_PER_BYTE);
}

#[test]
fn a_file_may_name_a_generator() {
    let text =
        "[defaults]\nlatency_ns = 100\nbuffer_bytes = 999\n[fat_tree]\narity = 2\nlevels = 3";
    let mut expected = Topology::fat_tree(2, 3).unwrap().buffers(999);
    for switch in &mut expected.switches {
        switch.latency = Span::from_ns(100);
    }
    assert_eq!(Topology::from_toml(text), Ok(expected));
    let text = "[single_switch]\nhosts = 5";
    assert_eq!(Topology::from_toml(text), Ok(Topology::single_switch(5)));
    let text = "[folded_clos]\nleaves = 2\nhosts_per_leaf = 3\nspines = 2\ncables_each = 1";
    assert_eq!(
        Topology::from_toml(text),
        Topology::folded_clos(2, 3, 2, 1).map_err(FileError::from)
    );
}

/// What a file's error says, after one change to [`SMALL`].
fn error(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from));
    let text = SMALL.replacen(from, to, 1);
    Topology::from_toml(&text).unwrap_err().to_string()
}

#[test]
fn errors_name_what_is_wrong_and_what_to_do() {
    let cases = [
        (
            "name = \"bob\"",
            "name = \"s0\"",
            "the name s0 is given twice: names of hosts and switches must differ",
        ),
        (
            "\"s0:7\"",
            "\"s9:7\"",
            "cable 0 names s9:7, which is no host and no switch: add a [[host]] or [[switch]] of this name",
        ),
        (
            "\"s0:7\"",
            "\"s0\"",
            "cable 0 names s0: a switch's end is written \"name:port\", with the port as a number from 0",
        ),
        (
            "\"s0:7\"",
            "\"s0:x\"",
            "cable 0 names s0:x: a switch's end is written \"name:port\", with the port as a number from 0",
        ),
        (
            "\"s0:7\"",
            "\"s0:8\"",
            "cable 0 ends at port 8 of s0, which has ports 0 to 7",
        ),
        (
            "\"s0:7\"",
            "\"s0:0\"",
            "cable 1 ends at port 0 of s0, where cable 0 is already: use another port",
        ),
        (
            "from = \"bob\"",
            "from = \"s0:3\"",
            "host bob has no cable: connect it to a switch",
        ),
        (
            "from = \"bob\"",
            "from = \"alice\"",
            "cable 2 ends at host alice, where cable 0 is already: use another port",
        ),
        (
            "ps_per_byte = 800",
            "ps_per_byte = 0",
            "cable 1 has no rate: ps_per_byte must be at least 1",
        ),
        (
            "loses_per_million = 7",
            "loses_per_million = 1000001",
            "cable 1: 1000001 of a million is more than all: at most 1000000",
        ),
        (
            "buffer_bytes = 4096",
            "buffer_bytes = 649",
            "cable 1 brings 650 bytes to s1 before its head is through: buffer_bytes must be at least that, it is 649",
        ),
        (
            "ports = 16",
            "ports = 0",
            "switch s1 has no ports: give it at least one",
        ),
    ];
    for (from, to, says) in cases {
        assert_eq!(error(from, to), says);
    }
    assert!(error("latency_ns", "latency").starts_with("not a topology file: "));
    assert!(error("latency_ns", "latency").contains("unknown field `latency`"));
    let both = format!("{SMALL}\n[single_switch]\nhosts = 2");
    assert_eq!(
        Topology::from_toml(&both),
        Err(FileError::Both {
            what: "[single_switch]"
        })
    );
    let two = "[single_switch]\nhosts = 2\n[fat_tree]\narity = 2\nlevels = 1";
    assert_eq!(
        Topology::from_toml(two),
        Err(FileError::Both {
            what: "[single_switch]"
        })
    );
    assert_eq!(Topology::from_toml(""), Err(TopologyError::NoHosts.into()));
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
