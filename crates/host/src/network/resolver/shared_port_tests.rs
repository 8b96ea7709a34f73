//! A host's port whose programs are stopped but for one: the system leads each source port to one
//! of them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn_link::udp::handshake::{Heard, MESSAGE_BYTES_MAX};

use super::*;
use crate::network::handshake_payload::Answer;
use crate::network::options::Security;

/// Source ports that lead to stopped programs, one after the other: with three of four programs
/// stopped, fewer than one look-up in a hundred has as many.
const STOPPED_PORTS: usize = 16;
const WAIT_NS: u64 = 5_000_000_000;

/// Answers look-ups, but only those from the last of so many source ports and from later ones.
fn serve(socket: &UdpSocket, stopped: usize, is_over: &AtomicBool) {
    let mut responder = Responder::new(&Credentials::Insecure, 0).unwrap();
    let located = Answer::Located {
        interface: 2,
        node: HostName::new("there").unwrap().node(),
        user: 0,
        port: 1,
    };
    let mut to_stopped = BTreeSet::new();
    let mut room = [0; MESSAGE_BYTES_MAX];
    while !is_over.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut room) else {
            continue;
        };
        if to_stopped.contains(&from) || to_stopped.len() < stopped {
            to_stopped.insert(from);
            continue;
        }
        let heard = responder.take(now_ns(), wall_ms(), from, &room[..length], false);
        match heard {
            Ok(Heard::Reply(bytes)) => _ = socket.send_to(bytes, from),
            Ok(Heard::Said(said)) => {
                let answer = responder.answer(said.number, &located.to_bytes());
                let (to, bytes) = answer.unwrap().unwrap();
                socket.send_to(bytes, to).unwrap();
            }
            Err(_) => {}
        }
    }
}

#[test]
fn stopped_programs_of_a_host_do_not_hide_the_one_that_runs() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let pause = std::time::Duration::from_millis(10);
    socket.set_read_timeout(Some(pause)).unwrap();
    let mut options = NetworkOptions::new(Security::Insecure);
    options.host = Some(HostName::new("here").unwrap());
    options.listen = (Ipv4Addr::LOCALHOST, 0).into();
    let there = HostName::new("there").unwrap();
    let door = socket.local_addr().unwrap();
    options.hosts.insert(there, door).unwrap();
    let namespace = Namespace::new("outside").unwrap();
    let network = Network::open(options, 7, namespace, Box::new(|| {})).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| serve(&socket, STOPPED_PORTS, &is_over));
        let deadline_ns = now_ns() + WAIT_NS;
        let remote = network.by_name("there/name", deadline_ns).unwrap().unwrap();
        let found = network.find(&remote, deadline_ns);
        is_over.store(true, Ordering::Relaxed);
        assert!(found.is_ok_and(|found| found.who.interface == 2));
    });
}
