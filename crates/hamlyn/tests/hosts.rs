//! Programs on hosts of their own: network namespaces joined by cables, which the test makes.
//! Whatever happens to a peer, its host or the way to it is an error that says so, and never a wait
//! without end. Needs root, and `ip`; otherwise it is skipped aloud.

mod support;

use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use hamlyn::host::network::hosts::{HostName, Hosts, NAME_SERVICE_PORT};
use hamlyn::host::network::{ClusterSecret, NetworkOptions, Security};
use hamlyn::host::process::{NetworkUse, Options, ProcessHost};
use hamlyn::host::{Address, ConnectError, Supply};
use hamlyn::stream::{Receiver, Sender, StreamOptions, StreamSeed};
use hamlyn::{Manager, ManagerOptions, NewSlot, ReceiveError, SendError, Ticket, Wait};
use hamlyn_testbed::{TestHost, Testbed};
use support::actor::{Actor, listen, role, say, stop};

/// Longer than it takes until silence is noticed.
const LONG: Wait = Wait::For(Duration::from_secs(60));
const THERE: Address<'_> = Address::Name("b/there");
const OPTIONS: StreamOptions = StreamOptions {
    pieces: 64,
    piece_bytes: 1024,
    limit_bytes: 1 << 20,
    ahead: false,
};

/// Hosts that share a secret and know each other's names.
struct Cluster {
    testbed: Testbed,
    directory: PathBuf,
}

impl Cluster {
    /// Nothing, said aloud, for a user who may not have one.
    fn new(test: &str, hosts: usize, address: impl Fn(&TestHost) -> IpAddr) -> Option<Self> {
        let testbed = Testbed::or_skip(hosts)?;
        let name = format!("hosts-{}-{test}", std::process::id());
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let line = |host: &TestHost| format!("{} {}\n", host.name(), address(host));
        let table: String = testbed.hosts().iter().map(line).collect();
        std::fs::write(directory.join("hosts"), table).unwrap();
        let mut open = std::fs::OpenOptions::new();
        open.write(true).create(true).truncate(true).mode(0o600);
        let secret = ClusterSecret::generate().unwrap().to_text();
        let mut file = open.open(directory.join("secret")).unwrap();
        file.write_all(secret.as_bytes()).unwrap();
        Some(Self { testbed, directory })
    }

    /// A process of that host.
    fn start(&self, host: usize, role: &str) -> Actor {
        let host = &self.testbed.hosts()[host];
        let mut program = host.command(std::env::current_exe().unwrap());
        program
            .env("HAMLYN_HOST", host.name())
            .env("HAMLYN_HOSTS", self.directory.join("hosts"))
            .env("HAMLYN_SECRET", self.directory.join("secret"));
        Actor::start_by(program, role, "hosts")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn v4(host: &TestHost) -> IpAddr {
    host.address().into()
}

fn v6(host: &TestHost) -> IpAddr {
    host.address_6().into()
}

/// What the children do.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Some((role, namespace)) = role() else {
        return;
    };
    match role.as_str() {
        "receive" => receive(&namespace),
        "send" => send(&namespace),
        "stand" => stand(Options::default().in_namespace(&namespace)),
        "stand named" => stand(Options::named("there").in_namespace(&namespace)),
        other => panic!("{other}"),
    }
}

/// Offers a stream, and says of each record that is asked for that it came, and in the end how the
/// stream did.
fn receive(namespace: &str) {
    let options = Options::named("there").in_namespace(namespace);
    let manager = hamlyn::open_with(options, ManagerOptions::default()).unwrap();
    let mut receiver = Receiver::new(&manager, OPTIONS).unwrap();
    let seed = receiver.make_seed().to_bytes();
    manager
        .session()
        .offer("seed", Supply::Always, &seed)
        .unwrap();
    say(b"ready");
    let mut next = 0;
    loop {
        match receiver.recv(LONG) {
            Ok(Some(record)) => {
                let bytes = &*record;
                assert_eq!(bytes[..8], u64::to_le_bytes(next));
                assert!(bytes[8..].iter().all(|&byte| byte == next as u8));
                let is_last = bytes.len() == 8;
                next += 1;
                if is_last {
                    say(&u64::to_le_bytes(next));
                }
            }
            Ok(None) => {}
            Err(ReceiveError::PeerLost(lost)) => {
                say(lost.to_string().as_bytes());
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    listen();
}

/// A program that is only there, and offers a ticket.
fn stand(options: Options) {
    let manager = hamlyn::open_with(options, ManagerOptions::default()).unwrap();
    let area = manager.session().allocate(64).unwrap();
    let slot = manager.session().open_slot(NewSlot::new(&area)).unwrap();
    let ticket = slot.fast_ticket(0, 64).unwrap().to_bytes();
    manager
        .session()
        .offer("ticket", Supply::Always, &ticket)
        .unwrap();
    say(b"ready");
    listen();
}

/// Does what it is told, one word after the other, and says how that ended.
fn send(namespace: &str) {
    let options = Options::default().in_namespace(namespace);
    let manager = hamlyn::open_with(options, ManagerOptions::default()).unwrap();
    let mut stream = None;
    let mut sent = 0_u64;
    let mut former = None;
    loop {
        let word = String::from_utf8(listen()).unwrap();
        let said = match word.split_once(' ').unwrap_or((&word, "")) {
            ("grow", "") => {
                let seed = manager.session().ask(THERE, "seed", LONG).unwrap();
                let seed = StreamSeed::from_bytes(&seed).unwrap();
                sent = 0;
                stream = Some(Sender::grow(&manager, &seed, LONG).unwrap());
                former = Some(seed);
                "grown".to_owned()
            }
            ("send", count) => {
                let stream = stream.as_mut().unwrap();
                let records = count.parse().unwrap();
                match send_records(&manager, stream, &mut sent, records) {
                    Ok(()) => "sent".to_owned(),
                    Err(SendError::PeerLost(lost)) => lost.to_string(),
                    Err(error) => panic!("{error}"),
                }
            }
            ("wait", "") => {
                let lost = support::next_loss(&manager, LONG);
                lost.expect("the loss").to_string()
            }
            // How long frames are.
            ("frames", "") => {
                let (link, _) = manager.session().peers().next().unwrap();
                let state = manager.session().connection_state(link).unwrap();
                state.frame_bytes.to_string()
            }
            // The ticket of the process before it.
            ("former", "") => {
                let grown = Sender::grow(&manager, former.as_ref().unwrap(), LONG);
                grown
                    .err()
                    .map_or("grown".to_owned(), |why| why.to_string())
            }
            other => panic!("{other:?}"),
        };
        say(said.as_bytes());
    }
}

/// As many records, of all lengths, the last of which says that it is.
fn send_records(
    _: &Manager<ProcessHost>,
    stream: &mut Sender,
    sent: &mut u64,
    count: u64,
) -> Result<(), SendError> {
    for left in (0..count).rev() {
        let length = if left == 0 {
            8
        } else {
            9 + *sent as usize * 37 % 4000
        };
        let mut bytes = vec![*sent as u8; length];
        bytes[..8].copy_from_slice(&sent.to_le_bytes());
        stream.send(&bytes, LONG)?;
        *sent += 1;
    }
    stream.flush(LONG)
}

fn does(actor: &mut Actor, word: &str) -> String {
    actor.tell(word.as_bytes());
    hears(actor)
}

fn hears(actor: &mut Actor) -> String {
    String::from_utf8(actor.hear()).unwrap()
}

/// A receiver on the second host, and a sender on the first that has sent some records.
fn talk(cluster: &Cluster) -> (Actor, Actor) {
    let mut receiver = cluster.start(1, "receive");
    assert_eq!(hears(&mut receiver), "ready");
    let mut sender = cluster.start(0, "send");
    assert_eq!(does(&mut sender, "grow"), "grown");
    exchange(&mut sender, &mut receiver, 500);
    (sender, receiver)
}

fn exchange(sender: &mut Actor, receiver: &mut Actor, records: u64) {
    assert_eq!(does(sender, &format!("send {records}")), "sent");
    let came = receiver.hear().try_into().unwrap();
    assert_eq!(u64::from_le_bytes(came), records);
}

#[test]
fn programs_of_two_hosts_talk_in_either_family() {
    for (family, address) in [("4", v4 as fn(&TestHost) -> IpAddr), ("6", v6)] {
        let Some(cluster) = Cluster::new(family, 2, address) else {
            return;
        };
        talk(&cluster);
    }
}

#[test]
fn nothing_is_lost_when_a_cable_is_cut_for_a_moment() {
    let Some(cluster) = Cluster::new("moment", 3, v4) else {
        return;
    };
    let mut receiver = cluster.start(1, "receive");
    assert_eq!(hears(&mut receiver), "ready");
    let mut sender = cluster.start(0, "send");
    assert_eq!(does(&mut sender, "grow"), "grown");
    sender.tell(b"send 20000");
    for cut in [0, 1, 1, 0] {
        cluster.testbed.cut(cut).unwrap();
        cluster.testbed.mend(cut).unwrap();
    }
    assert_eq!(hears(&mut sender), "sent");
    let came = receiver.hear().try_into().unwrap();
    assert_eq!(u64::from_le_bytes(came), 20_000);
}

/// Nobody says that a way is narrow; it is found out.
#[test]
fn a_way_may_carry_less_than_both_ends_believe() {
    let Some(cluster) = Cluster::new("narrow", 3, v4) else {
        return;
    };
    cluster.testbed.narrow(1, 1_300).unwrap();
    let (mut sender, _receiver) = talk(&cluster);
    let longest: usize = does(&mut sender, "frames").parse().unwrap();
    assert!((1_190..1_272).contains(&longest), "{longest}");
}

/// What is in long frames by then arrives as well.
#[test]
fn a_way_may_become_narrower() {
    let Some(cluster) = Cluster::new("narrower", 2, v4) else {
        return;
    };
    cluster.testbed.set_mtu_bytes(9_000).unwrap();
    let (mut sender, mut receiver) = talk(&cluster);
    sender.tell(b"send 20000");
    for mtu_bytes in [1_500, 1_280, 3_000, 1_400] {
        cluster.testbed.set_mtu_bytes(mtu_bytes).unwrap();
    }
    assert_eq!(hears(&mut sender), "sent");
    let came = receiver.hear().try_into().unwrap();
    assert_eq!(u64::from_le_bytes(came), 20_500);
    let longest: usize = does(&mut sender, "frames").parse().unwrap();
    assert!(longest < 1_372, "{longest}");
}

#[test]
fn a_host_that_vanishes_is_missed_though_nothing_is_under_way() {
    let Some(cluster) = Cluster::new("idle", 3, v4) else {
        return;
    };
    let (mut sender, mut receiver) = talk(&cluster);
    sender.tell(b"wait");
    cluster.testbed.cut(1).unwrap();
    for actor in [&mut sender, &mut receiver] {
        let said = hears(actor);
        assert!(said.contains("neither it nor its host answers"), "{said}");
    }
}

#[test]
fn a_host_that_vanishes_is_missed_by_its_senders() {
    let Some(cluster) = Cluster::new("busy", 3, v4) else {
        return;
    };
    let (mut sender, _receiver) = talk(&cluster);
    cluster.testbed.cut(0).unwrap();
    let said = does(&mut sender, "send 100000");
    assert!(said.contains("neither it nor its host answers"), "{said}");
}

#[test]
fn a_killed_process_is_missed_and_its_successor_is_another() {
    let Some(cluster) = Cluster::new("kill", 2, v4) else {
        return;
    };
    let (mut sender, mut receiver) = talk(&cluster);
    receiver.kill();
    assert!(!receiver.ended());
    let said = does(&mut sender, "send 1000");
    assert!(said.contains("its process ended"), "{said}");
    let mut successor = cluster.start(1, "receive");
    assert_eq!(hears(&mut successor), "ready");
    let said = does(&mut sender, "former");
    assert!(said.contains("gone"), "{said}");
    assert_eq!(does(&mut sender, "grow"), "grown");
    exchange(&mut sender, &mut successor, 500);
    // One that is only idle is missed, too.
    sender.tell(b"wait");
    successor.kill();
    let said = hears(&mut sender);
    assert!(
        said.contains("its process ended") || said.contains("answers"),
        "{said}"
    );
}

/// How many processes of the host of that process take requests at the port of the name service.
fn name_services(process: u32) -> usize {
    let port = format!(":{NAME_SERVICE_PORT:04X} ");
    let tables = ["udp", "udp6"].map(|table| {
        std::fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default()
    });
    let sockets = tables.iter().flat_map(|table| table.lines());
    sockets.filter(|line| line.contains(&port)).count()
}

/// They share the port of the name service, and the system leads most requests to those that are
/// stopped.
#[test]
fn three_stopped_programs_do_not_hide_a_fourth() {
    const STOPPED: usize = 3;
    const WAIT: Wait = Wait::For(Duration::from_secs(5));
    let Some(cluster) = Cluster::new("stopped", 2, v4) else {
        return;
    };
    let mut running = cluster.start(1, "stand named");
    assert_eq!(hears(&mut running), "ready");
    let mut stopped: Vec<Actor> = (0..STOPPED).map(|_| cluster.start(1, "stand")).collect();
    for actor in &mut stopped {
        assert_eq!(hears(actor), "ready");
    }
    while name_services(running.id()) < STOPPED + 1 {
        std::thread::yield_now();
    }
    for actor in &stopped {
        stop(actor.id());
    }
    let mut options = NetworkOptions::new(Security::Secret(cluster.directory.join("secret")));
    options.host = Some(HostName::new("a").unwrap());
    options.hosts = Hosts::read(&cluster.directory.join("hosts")).unwrap();
    let connect = || {
        let mut here = Options::default().in_namespace("hosts");
        here.network = NetworkUse::On(Box::new(options.clone()));
        let manager = hamlyn::open_with(here, ManagerOptions::default()).unwrap();
        let ticket = manager.session().ask(THERE, "ticket", WAIT);
        let ticket = Ticket::from_bytes(&ticket.expect("its offer")).unwrap();
        manager.session().target(&ticket, WAIT).expect("a link");
    };
    let done = cluster.testbed.hosts()[0].within(|| (0..8).for_each(|_| connect()));
    done.unwrap();
}

#[test]
fn a_name_that_nobody_has_is_not_waited_for_longer_than_asked() {
    let Some(cluster) = Cluster::new("none", 2, v4) else {
        return;
    };
    let mut options = NetworkOptions::new(Security::Secret(cluster.directory.join("secret")));
    options.hosts = Hosts::read(&cluster.directory.join("hosts")).unwrap();
    let ask = |name: &str| {
        let mut here = Options::default().in_namespace("none");
        here.network = NetworkUse::On(Box::new(options.clone()));
        let manager = hamlyn::open_with(here, ManagerOptions::default()).unwrap();
        manager
            .session()
            .ask(Address::Name(name), "seed", Wait::millis(50))
            .unwrap_err()
    };
    let asked = cluster.testbed.hosts()[0].within(|| ["b/nobody", "c/nobody"].map(ask));
    let [nobody, unknown] = asked.unwrap();
    assert!(
        matches!(
            nobody,
            ConnectError::Stalled { .. } | ConnectError::Absent { .. }
        ),
        "{nobody}"
    );
    assert!(
        matches!(unknown, ConnectError::UnknownHost { .. }),
        "{unknown}"
    );
}
