//! A host of its own on the loopback device, and somebody who holds its secret.

use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hamlyn_host::Destination;
use hamlyn_host::network::handshake_payload::{Answer, Request, Sought};
use hamlyn_host::network::hosts::{HostName, NAME_SERVICE_PORT};
use hamlyn_host::network::{ClusterSecret, NetworkOptions, Security};
use hamlyn_host::process::name::{Name, Namespace};
use hamlyn_host::process::{NetworkUse, Options};
use hamlyn_link::udp::handshake::{COOKIE_MESSAGE_BYTES, Credentials, Initiator, Taken};

use super::{Owner, TIMEOUT_NS, namespace};

pub(crate) const TIMEOUT: Duration = Duration::from_nanos(TIMEOUT_NS);

/// A host of its own, on the loopback device.
pub(crate) struct Place {
    pub(crate) address: Ipv4Addr,
    pub(crate) namespace: String,
    pub(crate) secret: ClusterSecret,
    pub(crate) file: PathBuf,
}

impl Place {
    pub(crate) fn new(last: u8) -> Self {
        let namespace = namespace();
        let secret = ClusterSecret::generate().unwrap();
        let file = std::env::temp_dir().join(format!("hamlyn-strangers-{namespace}"));
        let mut open = std::fs::OpenOptions::new();
        open.write(true).create(true).truncate(true).mode(0o600);
        let text = secret.to_text();
        open.open(&file)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let process = std::process::id().to_le_bytes();
        Self {
            address: Ipv4Addr::new(127, process[0] | 1, process[1], last),
            namespace,
            secret,
            file,
        }
    }

    pub(crate) fn open(&self, name: &str) -> Owner {
        Owner::open(self.options(name)).unwrap()
    }

    pub(crate) fn options(&self, name: &str) -> Options {
        let mut network = NetworkOptions::new(Security::Secret(self.file.clone()));
        network.host = Some(HostName::new("here").unwrap());
        network.listen = (self.address, 0).into();
        let mut options = Options::named(name).in_namespace(&self.namespace);
        options.network = NetworkUse::On(Box::new(network));
        options
    }

    /// Of somebody who holds the secret.
    pub(crate) fn initiator(&self, interface: u64, request: &Request) -> Initiator {
        self.initiator_of(interface, &request.to_bytes())
    }

    fn initiator_of(&self, interface: u64, payload: &[u8]) -> Initiator {
        let credentials = Credentials::Secret(self.secret.clone());
        Initiator::new(&credentials, None, interface, payload, 0, wall_ms()).unwrap()
    }

    /// Asks until there is an answer; how many cookies that took.
    pub(crate) fn ask(&self, port: u16, interface: u64, request: &Request) -> (Answer, u32) {
        self.ask_in_bytes(port, interface, &request.to_bytes())
    }

    /// The same, with any bytes.
    pub(crate) fn ask_in_bytes(&self, port: u16, interface: u64, payload: &[u8]) -> (Answer, u32) {
        let socket = self.socket();
        socket.connect((self.address, port)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let mut initiator = self.initiator_of(interface, payload);
        let (begun, mut cookies, mut room) = (std::time::Instant::now(), 0, [0; 2048]);
        loop {
            assert!(begun.elapsed() < TIMEOUT, "no answer");
            let now_ns = begun.elapsed().as_nanos() as u64;
            if let Some(bytes) = initiator.poll(now_ns) {
                // It may be that nobody listens yet.
                let _ = socket.send(bytes);
            }
            let Ok(length) = socket.recv(&mut room) else {
                continue;
            };
            match initiator.take(now_ns, &room[..length]) {
                Ok(Taken::Again) => cookies += u32::from(length == COOKIE_MESSAGE_BYTES),
                Ok(Taken::Answered(answered)) => {
                    return (Answer::from_bytes(&answered.payload).unwrap(), cookies);
                }
                Err(_) => {}
            }
        }
    }

    pub(crate) fn socket(&self) -> UdpSocket {
        UdpSocket::bind((self.address, 0)).unwrap()
    }

    pub(crate) fn locate(&self, name: &str) -> Request {
        Request::Locate {
            namespace: Namespace::new(&self.namespace).unwrap(),
            sought: Sought::Name(Name::new(name).unwrap()),
        }
    }

    /// Where somebody takes frames, and who it is.
    pub(crate) fn located(&self, name: &str) -> (u16, Destination) {
        let found = self.ask(NAME_SERVICE_PORT, 0, &self.locate(name)).0;
        let Answer::Located {
            interface,
            node,
            user,
            port,
        } = found
        else {
            panic!("{found:?}");
        };
        (
            port,
            Destination {
                node,
                user,
                interface,
            },
        )
    }
}

pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_millis() as u64
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}
