//! Hosts of a network: what goes over the wire, with every check and every fault of it but loss.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use hamlyn::host::network::hosts::{HostName, NAME_SERVICE_PORT};
use hamlyn::host::network::{ClusterSecret, NetworkOptions, Security};

/// Hosts that share the secret of a cluster, or trust the network. They have addresses of the
/// loopback device.
pub(crate) struct Cluster {
    /// Hosts so far.
    opened: AtomicU8,
    secret: Option<PathBuf>,
    /// The address of the first host.
    network: Ipv4Addr,
}

/// Hosts of a cluster at most: their addresses differ in the last five bits.
const HOSTS_MAX: u8 = 1 << 5;
/// Clusters of a process, until addresses are used again.
const CLUSTERS_MAX: u32 = 1 << 11;

/// The first address of a cluster, that nobody else has at the time.
fn new_network() -> Ipv4Addr {
    static CLUSTERS: AtomicU32 = AtomicU32::new(0);
    let cluster = CLUSTERS.fetch_add(1, Ordering::Relaxed) % CLUSTERS_MAX;
    let process = std::process::id() % 240 + 1;
    Ipv4Addr::from_bits(127 << 24 | process << 16 | cluster << 5)
}

fn new_secret(namespace: &str) -> PathBuf {
    let secret = std::env::temp_dir().join(format!("hamlyn-secret-{namespace}"));
    let text = ClusterSecret::generate().unwrap().to_text();
    let mut open = std::fs::OpenOptions::new();
    open.write(true).create(true).truncate(true).mode(0o600);
    let mut file = open.open(&secret).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    secret
}

impl Cluster {
    pub(crate) fn new(namespace: &str, is_sealed: bool) -> Self {
        Self {
            opened: AtomicU8::new(0),
            secret: is_sealed.then(|| new_secret(namespace)),
            network: new_network(),
        }
    }

    fn host(&self, number: u8) -> (HostName, IpAddr) {
        let address = Ipv4Addr::from_bits(self.network.to_bits() + u32::from(number) + 1);
        (
            HostName::new(&format!("h{number}")).unwrap(),
            address.into(),
        )
    }

    /// One host more.
    pub(crate) fn next_host(&self) -> NetworkOptions {
        let mut options = NetworkOptions::new(match &self.secret {
            Some(file) => Security::Secret(file.clone()),
            None => Security::Insecure,
        });
        for number in 0..HOSTS_MAX - 1 {
            let (name, address) = self.host(number);
            let door = SocketAddr::new(address, NAME_SERVICE_PORT);
            options.hosts.insert(name, door).unwrap();
        }
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        assert!(number < HOSTS_MAX - 1);
        let (name, address) = self.host(number);
        options.host = Some(name);
        options.listen = SocketAddr::new(address, 0);
        options
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(secret) = &self.secret {
            let _ = std::fs::remove_file(secret);
        }
    }
}
