use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use hamlyn_link::udp::key_file::HostKey;

use super::*;
use crate::network::NetworkError;
use crate::network::credentials::tell_apart;
use crate::network::options::Security;

#[test]
fn hosts_with_one_number_are_refused() {
    assert_eq!(tell_apart(["zeus", "hera", "Zeus"].into_iter()), Ok(()));
    // Both are 0x93c6f02d.
    let same = ["host-36932", "host-123305"];
    let [one, other] = same.map(|name| HostName::new(name).unwrap());
    let refused = tell_apart(same.into_iter());
    assert_eq!(refused, Err(NetworkError::SameNumber { one, other }));
}

#[test]
fn with_keys_a_host_speaks_for_itself_only() {
    let node = |name: &str| HostName::new(name).unwrap().node();
    let zeus = Identity::Host("Zeus".to_owned());
    assert!(is_of_host(&zeus, node("zeus")));
    assert!(!is_of_host(&zeus, node("hera")));
    assert!(!is_of_host(
        &Identity::Host("no name".to_owned()),
        node("zeus")
    ));
    // Holders of the secret are believed.
    assert!(is_of_host(&Identity::SecretHolder, node("hera")));
}

/// With keys, the list names the host of a ticket; where it is, the resolver knows.
#[test]
fn tickets_find_hosts_by_the_list_of_keys() {
    let file = |what, text: String| {
        let name = format!("hamlyn-resolver-{what}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut open = std::fs::OpenOptions::new();
        open.write(true).create(true).truncate(true).mode(0o600);
        open.open(&path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        path
    };
    let (own_key, other) = (HostKey::generate().unwrap(), HostKey::generate().unwrap());
    let own = file("own", own_key.to_text().to_string());
    let known = file("known", format!("localhost {}\n", other.public()));
    let security = Security::Keys {
        own: own.clone(),
        known: known.clone(),
    };
    let mut options = NetworkOptions::new(security);
    options.host = Some(HostName::new("here").unwrap());
    options.listen = (Ipv4Addr::LOCALHOST, 0).into();
    let namespace = Namespace::new("outside").unwrap();
    let network = Network::open(options, 7, namespace, Box::new(|| {})).unwrap();
    let to = Destination {
        node: HostName::new("localhost").unwrap().node(),
        user: 0,
        interface: 1,
    };
    let deadline_ns = now_ns() + 20_000_000_000;
    let remote = network.by_destination(to, deadline_ns).unwrap();
    assert_eq!(remote.host, "localhost");
    assert!(!remote.name_services.is_empty());
    let stranger = Destination { node: 1, ..to };
    assert!(network.by_destination(stranger, deadline_ns).is_none());
    for path in [own, known] {
        std::fs::remove_file(path).unwrap();
    }
}
