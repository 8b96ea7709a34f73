//! One port both ways: a host whose network lets nothing pass but what goes to and comes from one
//! port of it. Hosts are addresses of the loopback device; between them is a relay that is such a
//! network, for both.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hamlyn::host::network::hosts::HostName;
use hamlyn::host::network::{NetworkOptions, Security};
use hamlyn::host::process::{NetworkUse, Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::{
    Address, Interface, Manager, ManagerOptions, Message, NewSlot, Queue, Target, Ticket, Wait,
};

const LONG: Wait = Wait::For(Duration::from_secs(20));
const THIS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The relay's address at which the others find this host.
fn seen_as(host: u8) -> IpAddr {
    let process = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, process[2] | 0x80, process[3], host).into()
}

/// A port that nobody has, neither here nor at the relay.
fn free_port() -> u16 {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    socket.local_addr().unwrap().port()
}

fn open(
    name: &str,
    listen: SocketAddr,
    name_service_port: u16,
    others: &[(&str, SocketAddr)],
) -> Manager<Shared> {
    let mut network = NetworkOptions::new(Security::Insecure);
    network.host = Some(HostName::new(name).unwrap());
    network.listen = listen;
    network.name_service_port = name_service_port;
    for (name, door) in others {
        network
            .hosts
            .insert(HostName::new(name).unwrap(), *door)
            .unwrap();
    }
    let namespace = format!("one-port-{}", std::process::id());
    let mut options = Options::named(name).in_namespace(&namespace);
    options.network = NetworkUse::On(Box::new(network));
    hamlyn::open_shared(options, ManagerOptions::default()).unwrap()
}

/// Lets pass, in each direction, what comes from the port that its host has, to one of those that
/// the other has.
struct Relay {
    /// For each host, the relay's sockets that stand for its ports.
    standing: [Vec<UdpSocket>; 2],
    stopped: AtomicBool,
    passed: AtomicU64,
    thrown_away: AtomicU64,
}

impl Relay {
    fn new(ports: [Vec<u16>; 2]) -> Self {
        let mut host = 0;
        let standing = ports.map(|ports| {
            host += 1;
            let socket = |port| {
                let socket = UdpSocket::bind((seen_as(host), port)).unwrap();
                socket.set_nonblocking(true).unwrap();
                socket
            };
            ports.into_iter().map(socket).collect()
        });
        Self {
            standing,
            stopped: AtomicBool::new(false),
            passed: AtomicU64::new(0),
            thrown_away: AtomicU64::new(0),
        }
    }

    fn run(&self) {
        let mut room = vec![0; 1 << 16];
        while !self.stopped.load(Ordering::Relaxed) {
            for (host, from_sockets) in [(0, &self.standing[1]), (1, &self.standing[0])] {
                for to in &self.standing[host] {
                    while let Ok((length, from)) = to.recv_from(&mut room) {
                        let is_of = |socket: &&UdpSocket| {
                            from.ip() == THIS && socket.local_addr().unwrap().port() == from.port()
                        };
                        let Some(standing) = from_sockets.iter().find(is_of) else {
                            self.thrown_away.fetch_add(1, Ordering::Relaxed);
                            continue;
                        };
                        let port = to.local_addr().unwrap().port();
                        let _ = standing.send_to(&room[..length], (THIS, port));
                        self.passed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            std::thread::yield_now();
        }
    }
}

/// Stops the relay, whatever becomes of the test.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Shared = ProcessHost<AnyThread>;

struct Peer {
    manager: Manager<Shared>,
    queue: Queue,
    ticket: Ticket,
}

impl Peer {
    fn new(manager: Manager<Shared>) -> Self {
        let area = manager.session().allocate(64).unwrap();
        let queue = manager.session().open_queue(4096).unwrap();
        let slot = manager
            .session()
            .open_slot(NewSlot::new(&area).queue(&queue))
            .unwrap();
        let ticket = slot.fast_ticket(0, 64).unwrap();
        Self {
            manager,
            queue,
            ticket,
        }
    }

    fn send(&mut self, target: &Target, word: u64) {
        let terminus = self.manager.terminus();
        let message = Message::new(b"through").word(word);
        self.manager
            .session()
            .send_msg(terminus, target, &message, LONG)
            .unwrap();
    }

    fn receive(&mut self) -> u64 {
        let came = self
            .manager
            .session()
            .rcv_block(&mut self.queue, LONG)
            .unwrap();
        came.expect("a message").word
    }
}

/// Where frames of the only link come from.
fn port_of_frames(interface: &Interface<Shared>) -> u16 {
    let (link, _) = interface.peers().next().unwrap();
    interface.connection_state(link).unwrap().local.port()
}

#[test]
fn one_port_is_enough() {
    const ROUNDS: u64 = 500;
    let [one, other, door] = [0; 3].map(|_| free_port());
    let relay = Relay::new([vec![one], vec![other, door]]);
    std::thread::scope(|scope| {
        scope.spawn(|| relay.run());
        let _stop = Stop(&relay.stopped);
        let there = SocketAddr::new(seen_as(2), door);
        let asking = Peer::new(open(
            "asking",
            (THIS, one).into(),
            free_port(),
            &[("asked", there)],
        ));
        let asked = Peer::new(open("asked", (THIS, other).into(), door, &[]));
        let (mut asking, mut asked) = (asking, asked);
        let offered = asked.ticket.to_bytes();
        let supply = hamlyn::host::Supply::Always;
        asked
            .manager
            .session()
            .offer("ticket", supply, &offered)
            .unwrap();
        let bytes = asking
            .manager
            .session()
            .ask(Address::Name("asked/asked"), "ticket", LONG);
        let to_asked = Ticket::from_bytes(&bytes.expect("its offer")).unwrap();
        let to_asked = asking
            .manager
            .session()
            .target(&to_asked, LONG)
            .expect("a link");
        let begun = Instant::now();
        let to_asking = loop {
            asked.manager.session().poll();
            if asked.manager.session().peers().next().is_some() {
                break asked
                    .manager
                    .session()
                    .target(&asking.ticket, Wait::Poll)
                    .unwrap();
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "no link");
        };
        scope.spawn(move || {
            for round in 0..ROUNDS {
                assert_eq!(asked.receive(), round);
                asked.send(&to_asking, round);
            }
            assert_eq!(port_of_frames(&asked.manager.session()), other);
        });
        for round in 0..ROUNDS {
            asking.send(&to_asked, round);
            assert_eq!(asking.receive(), round);
        }
        assert_eq!(port_of_frames(&asking.manager.session()), one);
        assert_eq!(relay.thrown_away.load(Ordering::Relaxed), 0);
        assert!(relay.passed.load(Ordering::Relaxed) > 0);
    });
}
