use super::*;

#[test]
fn a_table_is_read() {
    let text = "# the cluster\none 192.0.2.1\n Two 192.0.2.2:9000 [2001:db8::2]:9001 # and more\n\nthree 2001:db8::3\n";
    let hosts = Hosts::parse(text).unwrap();
    let name = |name| HostName::new(name).unwrap();
    assert_eq!(
        hosts.addresses(&name("ONE"), 0),
        ["192.0.2.1:7407".parse().unwrap()]
    );
    let two = [
        "192.0.2.2:9000".parse().unwrap(),
        "[2001:db8::2]:9001".parse().unwrap(),
    ];
    assert_eq!(hosts.addresses(&name("two"), 0), two);
    assert_eq!(hosts.by_node(name("two").node()), Some(&name("two")));
    assert!(hosts.contains(&name("three")) && !hosts.contains(&name("four")));
}

#[test]
fn a_resolver_that_does_not_answer_is_not_waited_for() {
    let (end, ended) = mpsc::channel::<()>();
    let stuck = move || ended.recv().is_ok();
    assert_eq!(within(Duration::from_millis(10), stuck), None);
    assert_eq!(within(Duration::from_secs(20), || 7), Some(7));
    drop(end);
}

#[test]
fn what_is_no_table_is_refused_with_its_line() {
    for (text, line) in [("one", 1), ("one 1.2.3.4\ntwo 1.2.3\n", 2)] {
        match Hosts::parse(text) {
            Err(NetworkError::HostsLine { line: at, .. }) => assert_eq!(at, line),
            other => panic!("{other:?}"),
        }
    }
    for bad in ["a/b 1.2.3.4", "ä 1.2.3.4"] {
        assert!(matches!(
            Hosts::parse(bad),
            Err(NetworkError::HostName { .. })
        ));
    }
}

#[test]
fn a_host_is_its_name_in_any_letters() {
    let (one, other) = (HostName::new("Node-7"), HostName::new("node-7"));
    assert_eq!(one.clone().unwrap().node(), other.unwrap().node());
    assert_ne!(one.unwrap().node(), HostName::new("node-8").unwrap().node());
    assert!(HostName::new(&"x".repeat(64)).is_err());
}

#[test]
fn two_hosts_of_one_number_are_refused() {
    let mut seen = BTreeMap::new();
    let (one, other) = (0_u64..)
        .find_map(|number| {
            let name = HostName::new(&format!("h{number}")).unwrap();
            let before = seen.insert(name.node(), name.clone())?;
            Some((before, name))
        })
        .unwrap();
    let mut hosts = Hosts::new();
    let address = "192.0.2.1:1".parse().unwrap();
    hosts.insert(one, address).unwrap();
    assert!(matches!(
        hosts.insert(other, address),
        Err(NetworkError::SameNumber { .. })
    ));
}
