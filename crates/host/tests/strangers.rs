//! Strangers from the network: some hold the cluster's secret and lie, some are too many.

mod support;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hamlyn_host::network::hosts::{DOOR_PORT, HostName};
use hamlyn_host::network::letter::{Answer, Request, Side, Sought};
use hamlyn_host::network::{ClusterSecret, NetworkOptions, Security};
use hamlyn_host::process::name::{Name, Namespace};
use hamlyn_host::process::{NetworkUse, Options};
use hamlyn_host::{Address, Connected, Destination, Host, RefusedBecause};
use hamlyn_link::udp::handshake::{COOKIE_MESSAGE_BYTES, Credentials, Initiator, Taken};
use support::{Owner, PATIENCE_NS, after_ns, namespace};

const PATIENCE: Duration = Duration::from_nanos(PATIENCE_NS);

/// A host of its own, on the loopback device.
struct Place {
    address: Ipv4Addr,
    namespace: String,
    secret: ClusterSecret,
    file: PathBuf,
}

impl Place {
    fn new(last: u8) -> Self {
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

    fn open(&self, name: &str) -> Owner {
        let mut network = NetworkOptions::new(Security::Secret(self.file.clone()));
        network.host = Some(HostName::new("here").unwrap());
        network.listen = (self.address, 0).into();
        let mut options = Options::named(name).in_namespace(&self.namespace);
        options.network = NetworkUse::On(Box::new(network));
        Owner::open(options).unwrap()
    }

    fn initiator(&self, request: &Request) -> Initiator {
        let wall_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_millis();
        let credentials = Credentials::Secret(self.secret.clone());
        let letter = request.to_bytes();
        Initiator::new(&credentials, None, 5, &letter, 0, wall_ms as u64).unwrap()
    }

    /// Asks until there is an answer; how many cookies that took.
    fn ask(&self, port: u16, request: &Request) -> (Answer, u32) {
        let socket = self.socket();
        socket.connect((self.address, port)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let mut initiator = self.initiator(request);
        let (begun, mut cookies, mut room) = (std::time::Instant::now(), 0, [0; 2048]);
        loop {
            assert!(begun.elapsed() < PATIENCE, "no answer");
            let now_ns = begun.elapsed().as_nanos() as u64;
            if let Some(bytes) = initiator.poll(now_ns) {
                // It may be that nobody listens yet.
                let _ = socket.send(bytes);
            }
            let Ok(length) = socket.recv(&mut room) else {
                continue;
            };
            match initiator.take(now_ns, &room[..length]) {
                Ok(Taken::Again) => cookies += 1,
                Ok(Taken::Established(established)) => {
                    return (Answer::from_bytes(&established.payload).unwrap(), cookies);
                }
                Err(_) => {}
            }
        }
    }

    fn socket(&self) -> UdpSocket {
        UdpSocket::bind((self.address, 0)).unwrap()
    }

    fn locate(&self, name: &str) -> Request {
        Request::Locate {
            namespace: Namespace::new(&self.namespace).unwrap(),
            sought: Sought::Name(Name::new(name).unwrap()),
        }
    }

    /// Where somebody takes frames, and who it is.
    fn located(&self, name: &str) -> (u16, Destination) {
        let found = self.ask(DOOR_PORT, &self.locate(name)).0;
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

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

fn link_of(destination: Destination) -> Request {
    Request::Link(Side {
        destination,
        group: 0,
        process: 1,
        name: None,
        association: 1 << 31 | 7,
        channels: 16,
        frame_bytes: 1_200,
        paths: 1,
        port: 9,
    })
}

#[test]
fn nobody_elsewhere_takes_a_neighbours_place() {
    let place = Place::new(1);
    let mut victim = place.open("victim");
    let neighbour = place.open("neighbour");
    let (port, located) = place.located("victim");
    assert_eq!(located, victim.identity());
    // Who says that it is of this host comes over the network for nothing.
    let refused = place.ask(port, &link_of(neighbour.identity())).0;
    let reason = RefusedBecause::NOT_ALLOWED.0;
    assert_eq!(refused, Answer::Refused { reason });
    // Of another host it may have whatever number it likes.
    let impostor = Destination {
        node: located.node ^ 1,
        ..neighbour.identity()
    };
    let linked = place.ask(port, &link_of(impostor)).0;
    assert!(matches!(linked, Answer::Linked(_)), "{linked:?}");
    let deadline_ns = after_ns(&victim, PATIENCE_NS);
    let wanted = Address::Destination(neighbour.identity());
    match victim.connect(wanted, deadline_ns).unwrap() {
        Connected::New(peer, _) => assert_eq!(peer.destination.node, 0),
        Connected::Already { .. } => panic!("the impostor has its place"),
    }
}

#[test]
fn a_doorkeeper_that_is_behind_wants_proofs_and_serves_who_has_them() {
    const QUESTIONS: usize = 400;
    let place = Place::new(2);
    let _shop = place.open("shop");
    place.located("shop");
    let questions: Vec<Vec<u8>> = (0..QUESTIONS)
        .map(|_| {
            let mut initiator = place.initiator(&place.locate("shop"));
            initiator.poll(0).unwrap().to_vec()
        })
        .collect();
    let flood = place.socket();
    flood.set_nonblocking(true).unwrap();
    let door = SocketAddr::from((place.address, DOOR_PORT));
    let (mut room, mut proofs, mut answers) = ([0; 2048], 0, 0);
    let begun = std::time::Instant::now();
    // It is behind as soon as the machine gives it less time than us; a first round may find it quick.
    while proofs == 0 {
        assert!(
            begun.elapsed() < PATIENCE,
            "{answers} answers, and no proof was wanted"
        );
        for question in &questions {
            // What its socket has no room for is lost.
            let _ = flood.send_to(question, door);
        }
        while let Ok(length) = flood.recv(&mut room) {
            match length {
                COOKIE_MESSAGE_BYTES => proofs += 1,
                _ => answers += 1,
            }
        }
    }
    assert!(matches!(
        place.ask(DOOR_PORT, &place.locate("shop")).0,
        Answer::Located { .. }
    ));
}

#[test]
fn no_silence_is_waited_for_longer_than_can_be() {
    let place = Place::new(3);
    let open = |seconds| {
        let mut network = NetworkOptions::new(Security::Secret(place.file.clone()));
        network.host = Some(HostName::new("here").unwrap());
        network.listen = (place.address, 0).into();
        network.silence = Duration::from_secs(seconds);
        let mut options = Options::named("quiet").in_namespace(&place.namespace);
        options.network = NetworkUse::On(Box::new(network));
        Owner::open(options).map(|_| ())
    };
    assert_eq!(open(60), Ok(()));
    let refused = open(61).unwrap_err().to_string();
    assert!(
        refused.contains("silence") && refused.contains("61"),
        "{refused}"
    );
}
