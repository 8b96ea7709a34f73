//! Every cause that keeps two hosts from connecting is told apart. Needs root, and `ip`; otherwise
//! it is skipped aloud.

mod support;

use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use hamlyn_host::network::hosts::{HostName, Hosts};
use hamlyn_host::network::{ClusterSecret, HostKey, NetworkOptions, Security};
use hamlyn_host::process::{NetworkUse, Options};
use hamlyn_host::{Address, Connector, Host, Supply};
use hamlyn_testbed::{TestHost, Testbed};
use support::{Owner, TIMEOUT_NS, after_ns, namespace};

/// Time for several attempts.
const SHORT_NS: u64 = 1_000_000_000;

/// The hosts `a`, which asks, and `b`, on which the program `shop` offers a ticket.
struct Cluster {
    testbed: Testbed,
    namespace: String,
    directory: PathBuf,
}

impl Cluster {
    fn new() -> Option<Self> {
        let testbed = Testbed::or_skip(2)?;
        let namespace = namespace();
        let directory = std::env::temp_dir().join(format!("hamlyn-network-errors-{namespace}"));
        std::fs::create_dir_all(&directory).unwrap();
        Some(Self {
            testbed,
            namespace,
            directory,
        })
    }

    fn asker(&self) -> &TestHost {
        &self.testbed.hosts()[0]
    }

    fn listener(&self) -> &TestHost {
        &self.testbed.hosts()[1]
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.join(name);
        let mut open = std::fs::OpenOptions::new();
        open.write(true).create(true).truncate(true).mode(0o600);
        let mut file = open.open(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        path
    }

    fn secret(&self, name: &str) -> Security {
        let text = ClusterSecret::generate().unwrap().to_text();
        Security::Secret(self.file(name, &text))
    }

    fn keys(&self, name: &str, own: &HostKey, known: &[(&str, &HostKey)]) -> Security {
        let lines = known
            .iter()
            .map(|(name, key)| format!("{name} {}\n", key.public()));
        Security::Keys {
            own: self.file(&format!("{name}.key"), &own.to_text()),
            known: self.file(&format!("{name}.known"), &lines.collect::<String>()),
        }
    }

    /// A program of the host that calls itself so and knows one other by that name.
    fn options(&self, security: &Security, host: &str, other: &str) -> Options {
        let mut network = NetworkOptions::new(security.clone());
        network.host = Some(HostName::new(host).unwrap());
        let at = self.listener().address();
        network.hosts = Hosts::parse(&format!("{other} {at}")).unwrap();
        let mut options = Options::default().in_namespace(&self.namespace);
        options.network = NetworkUse::On(Box::new(network));
        options
    }

    /// The same, with a name of its own, on the second host.
    fn shop(&self, security: &Security, host: &str) -> Owner {
        let mut options = self.options(security, host, "nobody");
        options.name = Some("shop".to_owned());
        let mut shop = self
            .listener()
            .within(|| Owner::open(options))
            .unwrap()
            .unwrap();
        shop.offer("ticket", Supply::Always, b"ticket").unwrap();
        shop
    }

    /// What the first host is told that connects so.
    fn refusal(&self, options: Options, to: &str, wait_ns: u64) -> String {
        let connect = || {
            let mut asker = Owner::open(options).unwrap();
            let deadline_ns = after_ns(&asker, wait_ns);
            let (to, item) = (Address::Name(to), "ticket");
            let asked = asker.ask(to, item, deadline_ns);
            let connected = asked.and_then(|_| asker.connector().connect(to, deadline_ns));
            connected.map(|_| ()).unwrap_err().to_string()
        };
        self.asker().within(connect).unwrap()
    }

    fn ip(&self, host: &TestHost, arguments: &[&str]) {
        let ip = ["ip"].iter().chain(arguments);
        let mut command = host.command("env");
        assert!(command.args(ip).status().unwrap().success());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[track_caller]
fn names(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[test]
fn another_secret_is_told_on_both_sides() {
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let shop = cluster.shop(&cluster.secret("one"), "b");
    let asker = cluster.options(&cluster.secret("other"), "a", "b");
    let told = cluster.refusal(asker, "b/shop", SHORT_NS);
    names(
        &told,
        &["\"b/shop\"", "10.77.0.2:7407", "HAMLYN_SECRET", "firewall"],
    );
    assert!(shop.rendezvous_counters().unauthentic > 0);
}

#[test]
fn another_kind_of_security_is_told_on_both_sides() {
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let shop = cluster.shop(&cluster.secret("one"), "b");
    let asker = cluster.options(&Security::Insecure, "a", "b");
    let told = cluster.refusal(asker, "b/shop", SHORT_NS);
    names(&told, &["\"b/shop\"", "10.77.0.2:7407", "HAMLYN_SECRET"]);
    assert!(shop.rendezvous_counters().unauthentic > 0);
}

#[test]
fn a_key_that_is_not_known_is_told_on_both_sides() {
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let (a, b) = (HostKey::generate().unwrap(), HostKey::generate().unwrap());
    let shop = cluster.shop(&cluster.keys("b", &b, &[("b", &b)]), "b");
    let asker = cluster.keys("a", &a, &[("b", &b)]);
    let asker = cluster.options(&asker, "a", "b");
    let told = cluster.refusal(asker, "b/shop", SHORT_NS);
    names(&told, &["\"b/shop\"", "10.77.0.2:7407", "HAMLYN_KNOWN"]);
    assert!(shop.rendezvous_counters().unauthentic > 0);
}

#[test]
fn a_host_that_calls_itself_otherwise_is_told() {
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let secret = cluster.secret("one");
    let _shop = cluster.shop(&secret, "b");
    let asker = cluster.options(&secret, "a", "alias.example");
    let told = cluster.refusal(asker, "alias.example/shop", SHORT_NS);
    names(&told, &["alias.example", "calls itself", "HAMLYN_HOST"]);
}

#[test]
fn two_hosts_of_one_name_are_told() {
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let secret = cluster.secret("one");
    let _shop = cluster.shop(&secret, "vm");
    let asker = cluster.options(&secret, "vm", "b");
    let told = cluster.refusal(asker, "b/shop", SHORT_NS);
    names(&told, &["b", "vm", "HAMLYN_HOST"]);
}

/// Each host's list decides: the own one when a program starts, the peer's when it connects.
#[test]
fn a_name_that_is_not_that_of_the_key_is_told() {
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let (a, b) = (HostKey::generate().unwrap(), HostKey::generate().unwrap());
    let own = cluster.keys("own", &a, &[("hera", &a), ("b", &b)]);
    let refused = Owner::open(cluster.options(&own, "other", "b")).map(|_| ());
    names(
        &refused.unwrap_err().to_string(),
        &["hera", "other", "HAMLYN_HOST"],
    );
    let _shop = cluster.shop(&cluster.keys("b", &b, &[("hera", &a), ("b", &b)]), "b");
    let asker = cluster.keys("a", &a, &[("b", &b)]);
    let asker = cluster.options(&asker, "other", "b");
    let told = cluster.refusal(asker, "b/shop", TIMEOUT_NS);
    names(&told, &["key", "HAMLYN_HOST"]);
    // And the other way.
    let asker = cluster.keys("c", &a, &[("zeus", &b), ("other", &a)]);
    let asker = cluster.options(&asker, "other", "zeus");
    let told = cluster.refusal(asker, "zeus/shop", TIMEOUT_NS);
    names(&told, &["key", "HAMLYN_HOST"]);
}

#[test]
fn a_program_without_a_network_is_told_how_to_join_one() {
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let mut options = Options::default().in_namespace(&cluster.namespace);
    options.network = NetworkUse::Off;
    let told = cluster.refusal(options, "b/shop", 1);
    names(&told, &["\"b/shop\"", "HAMLYN_SECRET", "HAMLYN_KEY"]);
}

/// The network may come up a second after the program.
#[test]
fn a_missing_route_is_waited_for_and_told() {
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let secret = cluster.secret("one");
    let _shop = cluster.shop(&secret, "b");
    let (a, own) = (cluster.asker(), cluster.asker().address());
    let own = format!("{own}/24");
    cluster.ip(a, &["address", "delete", &own, "dev", "eth0"]);
    let options = || cluster.options(&secret, "a", "b");
    let told = cluster.refusal(options(), "b/shop", SHORT_NS / 4);
    names(&told, &["10.77.0.2:7407", "b", "unreachable"]);
    let ask = || {
        let mut asker = Owner::open(options()).unwrap();
        let deadline_ns = after_ns(&asker, TIMEOUT_NS);
        asker.ask(Address::Name("b/shop"), "ticket", deadline_ns)
    };
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| a.within(ask).unwrap());
        // Usually it has tried by then; if it has not, it finds the route at once.
        std::thread::sleep(std::time::Duration::from_millis(100));
        cluster.ip(a, &["address", "replace", &own, "dev", "eth0"]);
        assert_eq!(asked.join().unwrap().unwrap(), b"ticket");
    });
}

/// The address of the cable's end that every network interface has.
fn link_local(host: &TestHost) -> Ipv6Addr {
    let mut command = host.command("cat");
    let table = command.arg("/proc/net/if_inet6").output().unwrap().stdout;
    let table = String::from_utf8(table).unwrap();
    let line = table.lines().find(|line| line.starts_with("fe80")).unwrap();
    u128::from_str_radix(&line[..32], 16).unwrap().into()
}

#[test]
fn a_link_local_address_needs_its_interface() {
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let at = link_local(cluster.listener());
    let refused = Hosts::parse(&format!("b {at}")).map(|_| ()).unwrap_err();
    names(&refused.to_string(), &["link-local", "%"]);
    let secret = cluster.secret("one");
    let _shop = cluster.shop(&secret, "b");
    let connect = || {
        let mut options = cluster.options(&secret, "a", "nobody");
        let NetworkUse::On(network) = &mut options.network else {
            unreachable!("it is on the network");
        };
        network.hosts = Hosts::parse(&format!("b {at}%eth0")).unwrap();
        let mut asker = Owner::open(options).unwrap();
        let deadline_ns = after_ns(&asker, TIMEOUT_NS);
        let to = Address::Name("b/shop");
        let given = asker.ask(to, "ticket", deadline_ns).unwrap();
        assert_eq!(given, b"ticket");
        asker.connector().connect(to, deadline_ns).unwrap();
    };
    cluster.asker().within(connect).unwrap();
}

#[test]
fn addresses_are_read_with_and_without_port_and_interface() {
    let lo = "[::1%lo]:9".to_owned();
    let hosts = Hosts::parse(&format!("b 192.0.2.1 192.0.2.1:9 fd00::1 {lo} fe80::1%1")).unwrap();
    let listed = hosts.listed(&HostName::new("b").unwrap());
    assert_eq!(listed.len(), 5);
    let scope = |at: &SocketAddr| match at {
        SocketAddr::V6(at) => at.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    assert_eq!(
        listed.iter().map(scope).collect::<Vec<_>>(),
        [0, 0, 0, 1, 1]
    );
    for (bad, word) in [
        ("fe80::1%none", "none"),
        ("10.0.0", "address"),
        ("fe80::1", "%"),
    ] {
        let refused = Hosts::parse(&format!("b {bad}")).map(|_| ()).unwrap_err();
        names(&refused.to_string(), &[word]);
    }
}
