//! Flows between two network namespaces joined by a veth pair, which the test makes, and which go with it. Needs root, and `ip`;
//! otherwise it is skipped aloud.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process::Command;

use hamlyn_link::udp::batch::{Batch, Inbox};
use hamlyn_link::udp::envelope::Kind;
use hamlyn_link::udp::mtu::{MtuSettings, PathMtu};
use hamlyn_link::udp::seal::{Key, Opener, Sealer};
use hamlyn_link::udp::socket::{Flow, FlowSettings, SendError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

fn ip(arguments: &str) -> bool {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    output.is_ok_and(|output| output.status.success())
}

/// Two hosts, on one wire.
struct Hosts {
    names: [String; 2],
}

impl Hosts {
    fn new(test: &str) -> Option<Self> {
        let names = ["a", "b"].map(|end| format!("hw{}{test}{end}", std::process::id()));
        let [a, b] = &names;
        let hosts = Self {
            names: names.clone(),
        };
        let commands = [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("-n {a} link add wire type veth peer name wire netns {b}"),
            format!("-n {a} addr add 10.9.8.1/24 dev wire"),
            format!("-n {b} addr add 10.9.8.2/24 dev wire"),
            format!("-n {a} addr add fd09::1/64 dev wire nodad"),
            format!("-n {b} addr add fd09::2/64 dev wire nodad"),
            format!("-n {a} link set wire up"),
            format!("-n {b} link set wire up"),
        ];
        let made = commands.iter().all(|command| ip(command));
        if !made {
            println!("SKIPPED: no network namespaces can be made here (that needs root, and `ip`)");
        }
        made.then_some(hosts)
    }

    fn mtu(&self, bytes: usize) {
        for name in &self.names {
            assert!(ip(&format!("-n {name} link set wire mtu {bytes}")));
        }
    }

    fn flow(&self, host: usize, at: &str) -> Flow {
        let at: SocketAddr = at.parse().expect("an address");
        let name = &self.names[host];
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let file = File::open(format!("/run/netns/{name}")).expect("the namespace");
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(file.as_fd(), kind).expect("entered");
                Flow::bind(at, &FlowSettings::default()).expect("bound")
            });
            inside.join().expect("a flow")
        })
    }

    fn flows(&self, one: &str, other: &str) -> (Flow, Flow) {
        let (mut one, mut other) = (self.flow(0, one), self.flow(1, other));
        one.connect(other.local()).expect("connected");
        other.connect(one.local()).expect("connected");
        (one, other)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

const WIRES: [(&str, &str, usize); 2] = [
    ("10.9.8.1:0", "10.9.8.2:0", 28),
    ("[fd09::1]:0", "[fd09::2]:0", 48),
];

fn take(flow: &Flow, inbox: &mut Inbox, count: usize, mut each: impl FnMut(&mut [u8])) {
    let mut came = 0;
    while came < count {
        poll(&mut [PollFd::new(flow, PollFlags::IN)], None).expect("poll");
        flow.receive(inbox).expect("received");
        while let Some(datagram) = inbox.next() {
            each(datagram.bytes);
            came += 1;
        }
    }
}

#[test]
fn sealed_runs_cross_a_wire_of_any_width() {
    let Some(hosts) = Hosts::new("r") else { return };
    for (from, to, headers_bytes) in WIRES {
        for mtu in [1_500, 9_000, 1_280] {
            hosts.mtu(mtu);
            let (mut one, other) = hosts.flows(from, to);
            let datagram_bytes = mtu - headers_bytes;
            assert_eq!(one.route_datagram_bytes(), Some(datagram_bytes));
            let key = Key::Sealed([1; 32].into());
            let (mut sealer, mut opener) = (Sealer::new(&key, 1), Opener::new(&key, 1));
            let (mut batch, mut inbox) = (Batch::new(), Inbox::new());
            let mut sent = 0_u8;
            while let Some(room) = batch.room(datagram_bytes) {
                let frame_bytes = datagram_bytes - sealer.overhead_bytes();
                room[16..][..frame_bytes].fill(sent);
                let sealed = sealer.seal_in_place(Kind::Data, 0, room, frame_bytes);
                batch.push(sealed.expect("sealed"));
                sent += 1;
            }
            assert_eq!(one.send(&mut batch), Ok(usize::from(sent)));
            let mut next = 0;
            take(&other, &mut inbox, usize::from(sent), |datagram| {
                let opened = opener.open(datagram).expect("opened");
                assert!(opened.frame.iter().all(|&byte| byte == next));
                next += 1;
            });
            // One byte more does not fit, alone or in a run.
            let bytes = datagram_bytes + 1;
            assert_eq!(
                one.send_one(&vec![0; bytes]),
                Err(SendError::TooLong { bytes })
            );
            for _ in 0..2 {
                batch.room(bytes).expect("room");
                batch.push(bytes);
            }
            assert_eq!(one.send(&mut batch), Err(SendError::TooLong { bytes }));
            assert_eq!((batch.drop_first(), batch.waiting()), (Some(bytes), 1));
            assert_eq!(one.send_one(&[0; 100]), Ok(()));
            take(&other, &mut inbox, 1, |_| ());
        }
    }
}

/// Sends what the search wants, and answers what comes, until it is settled. Time passes as it must.
fn settle(mtu: &mut PathMtu, now_ns: &mut u64, one: &mut Flow, other: &Flow, inbox: &mut Inbox) {
    while !mtu.is_settled() {
        *now_ns = (*now_ns).max(mtu.deadline_ns());
        let Some(bytes) = mtu.poll(*now_ns) else {
            continue;
        };
        match one.send_one(&vec![0; bytes]) {
            Ok(()) => take(other, inbox, 1, |datagram| {
                mtu.probe_arrived(*now_ns, datagram.len())
            }),
            Err(SendError::TooLong { bytes }) => mtu.too_long(*now_ns, bytes),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_length_is_found_and_follows_the_wire() {
    let Some(hosts) = Hosts::new("m") else { return };
    for (from, to, headers_bytes) in WIRES {
        hosts.mtu(9_000);
        let (mut one, other) = hosts.flows(from, to);
        let mut inbox = Inbox::new();
        let (mut mtu, mut now_ns) = (PathMtu::new(MtuSettings::default(), 0), 0);
        mtu.route(0, one.route_datagram_bytes().expect("known"));
        settle(&mut mtu, &mut now_ns, &mut one, &other, &mut inbox);
        assert_eq!(mtu.datagram_bytes(), 9_000 - headers_bytes);
        hosts.mtu(1_500);
        let bytes = mtu.datagram_bytes();
        assert_eq!(
            one.send_one(&vec![0; bytes]),
            Err(SendError::TooLong { bytes })
        );
        mtu.too_long(now_ns, bytes);
        settle(&mut mtu, &mut now_ns, &mut one, &other, &mut inbox);
        let best = 1_500 - headers_bytes;
        assert!(mtu.datagram_bytes() <= best && best - mtu.datagram_bytes() < 16);
    }
}
