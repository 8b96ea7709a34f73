//! Both sides connect at once: one link survives, on both sides.

mod support;

use hamlyn_host::{Address, Connected, Event, Host};
use hamlyn_link::pair::PairLink;
use std::sync::Barrier;
use support::*;

/// The link that a connection came to, in whatever way.
fn settle(host: &mut Owner, connected: Connected<PairLink>) -> (u64, PairLink) {
    match connected {
        Connected::New(peer, link) => (peer.token, link),
        Connected::Already { token } => {
            let (peer, link) = linked(host);
            assert_eq!(peer.token, token);
            (token, link)
        }
    }
}

#[test]
fn one_link_survives() {
    const ROUNDS: usize = 400;
    let mut news = [0; 3];
    let mut collisions = 0;
    for round in 0..ROUNDS {
        let namespace = namespace();
        let mut hosts = [named(&namespace, "a"), named(&namespace, "b")];
        let [a, b] = &mut hosts;
        let destinations = [b.identity(), a.identity()];
        let start = Barrier::new(2);
        let attempt = |host: &mut Owner, name, destination| {
            let to = match round % 2 {
                0 => Address::Name(name),
                _ => Address::Destination(destination),
            };
            start.wait();
            host.connect(to, after_ns(host, TIMEOUT_NS)).unwrap()
        };
        let (at_a, at_b) = std::thread::scope(|scope| {
            let at_a = scope.spawn(|| attempt(a, "b", destinations[0]));
            let at_b = attempt(b, "a", destinations[1]);
            (at_a.join().unwrap(), at_b)
        });
        let new = [&at_a, &at_b]
            .iter()
            .filter(|connected| matches!(connected, Connected::New(..)))
            .count();
        assert!(new <= 1, "two links");
        news[new] += 1;
        let ((token, mut here), (_, mut there)) = (settle(a, at_a), settle(b, at_b));
        exchange(&mut here, &mut there);
        assert!(a.next_event().is_none() && b.next_event().is_none());
        collisions += a.rendezvous_counters().simultaneous + b.rendezvous_counters().simultaneous;
        a.disconnect(token);
        assert!(matches!(event(b), Event::Lost { .. }));
    }
    println!("links made by neither, one, both: {news:?}; refused as simultaneous: {collisions}");
    assert_eq!(news, [0, ROUNDS, 0]);
}

#[test]
fn many_connect_to_each_other_at_once() {
    const HOSTS: usize = 6;
    let namespace = namespace();
    let names: Vec<String> = (0..HOSTS).map(|number| format!("host/{number}")).collect();
    let start = Barrier::new(HOSTS);
    let end = Barrier::new(HOSTS);
    std::thread::scope(|scope| {
        for (own, name) in names.iter().enumerate() {
            let mut host = named(&namespace, name);
            let (names, start, end) = (&names, &start, &end);
            scope.spawn(move || {
                start.wait();
                let mut links = Vec::new();
                for (other, name) in names.iter().enumerate() {
                    let deadline_ns = after_ns(&host, TIMEOUT_NS);
                    if other != own
                        && let Connected::New(peer, link) =
                            host.connect(Address::Name(name), deadline_ns).unwrap()
                    {
                        links.push((peer, link));
                    }
                }
                while links.len() < HOSTS - 1 {
                    links.push(linked(&mut host));
                }
                let mut peers: Vec<u64> = links
                    .iter()
                    .map(|(peer, _)| peer.destination.interface)
                    .collect();
                peers.sort_unstable();
                peers.dedup();
                assert_eq!(peers.len(), HOSTS - 1, "one link to each");
                // Everybody says its number on every link, and hears all others.
                for (_, link) in &mut links {
                    assert!(try_send(link, &[own as u8]));
                }
                for (_, link) in &mut links {
                    packet(&mut host, link);
                }
                end.wait();
            });
        }
    });
}

#[test]
fn a_burst_of_clients_is_served() {
    // More than one user may have under way at a time.
    const CLIENTS: usize = 80;
    let namespace = namespace();
    let mut server = named(&namespace, "server");
    let start = Barrier::new(CLIENTS);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let mut client = unnamed(&namespace);
            let start = &start;
            scope.spawn(move || {
                start.wait();
                let (_, mut link) = connect(&mut client, Address::Name("server"));
                let echo = packet(&mut client, &mut link);
                assert!(try_send(&mut link, &echo));
                lost(&mut client);
            });
        }
        let mut links: Vec<_> = (0..CLIENTS).map(|_| linked(&mut server)).collect();
        for (peer, link) in &mut links {
            let bytes = peer.token.to_le_bytes();
            assert!(try_send(link, &bytes));
            let echo = packet(&mut server, link);
            assert_eq!(echo, bytes);
        }
        println!("{:?}", server.rendezvous_counters());
        drop(server);
    });
}
