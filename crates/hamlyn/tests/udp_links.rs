//! Links between hosts at their beginning and their end. Hosts are addresses of the loopback device
//! here.

mod support;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use hamlyn::engine::transport::Return;
use hamlyn::host::network::hosts::{HostName, NAME_SERVICE_PORT};
use hamlyn::host::network::{NetworkOptions, Security};
use hamlyn::host::process::{NetworkUse, Options, ProcessHost};
use hamlyn::{
    Address, FenceError, Interface, LinkEnd, Manager, ManagerOptions, Message, NewSlot, SendError,
    Wait,
};

use support::thread_cpu;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Every test has hosts of its own.
fn address(test: u8, host: u8) -> IpAddr {
    let process = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, process[2] | 0x80, process[3], 16 * test + host + 1).into()
}

fn open(test: u8, host: u8) -> Manager<ProcessHost> {
    hamlyn::open_with(options(test, host), ManagerOptions::default()).unwrap()
}

fn options(test: u8, host: u8) -> Options {
    let mut network = NetworkOptions::new(Security::Insecure);
    let name = |host| HostName::new(&format!("h{host}")).unwrap();
    for host in 0..3 {
        let door = SocketAddr::new(address(test, host), NAME_SERVICE_PORT);
        network.hosts.insert(name(host), door).unwrap();
    }
    network.host = Some(name(host));
    network.listen = SocketAddr::new(address(test, host), 0);
    // Those who are silent are not asked before the test is over.
    network.silence = Duration::from_secs(60);
    let namespace = format!("links-{test}-{}", std::process::id());
    let mut options = Options::default().in_namespace(&namespace);
    options.network = NetworkUse::On(Box::new(network));
    options
}

fn until<R>(what: &str, mut look: impl FnMut() -> Option<R>) -> R {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < TIMEOUT, "{what}: it did not come");
    }
}

/// A peer that asks for a link is given one, though the other end believes that there is one: the
/// answer to an earlier request came when no call waited for it any more.
#[test]
fn a_link_whose_other_end_never_was_is_forsaken() {
    let asker = open(1, 0);
    let answerer = open(1, 1);
    let to = answerer.session().identity();
    let (mut asker, mut answerer) = (asker.session(), answerer.session());
    let has_peer = |interface: &mut Interface<ProcessHost>| {
        interface.poll();
        interface.peers().next().is_some()
    };
    // How long to wait, so that it is answered and does not hear it, is tried.
    let mut wait = Duration::from_micros(100);
    until("a link with one end", || {
        match asker.connect(Address::Destination(to), Wait::For(wait)) {
            Ok(link) => {
                asker.disconnect(link);
                until("the end of the other end", || {
                    asker.poll();
                    (!has_peer(&mut answerer)).then_some(())
                });
                wait /= 2;
            }
            Err(_) => wait += wait / 16,
        }
        (0..100).any(|_| has_peer(&mut answerer)).then_some(())
    });
    assert!(!has_peer(&mut asker), "nobody waited for it");
    let link = asker.connect(Address::Destination(to), Wait::For(TIMEOUT));
    assert!(asker.link_end(link.unwrap()).is_none());
    until("the end of the first link", || {
        answerer.poll();
        (answerer.peers().count() == 1).then_some(())
    });
}

#[test]
fn whither_it_went_is_known_though_another_link_has_the_place() {
    const SENT: u64 = 5;
    let sender = open(0, 0);
    let mut first = open(0, 1);
    let mut second = open(0, 2);
    let slot = |manager: &Manager<ProcessHost>| {
        let area = manager.session().allocate(64).unwrap();
        let slot = manager.session().open_slot(NewSlot::new(&area)).unwrap();
        slot.fast_ticket(0, 64).unwrap()
    };
    let (ticket, other) = (slot(&mut first), slot(&mut second));
    let terminus = sender.terminus();
    let target = sender
        .session()
        .target(&ticket, Wait::For(TIMEOUT))
        .unwrap();
    for word in 0..SENT {
        let message = Message::new(b"for nobody").word(word).silent();
        let wait = Wait::For(TIMEOUT);
        sender
            .session()
            .send_msg(terminus, &target, &message, wait)
            .unwrap();
    }
    // It ends without a look at what was sent, and so that its host cannot say why.
    let first = first.detach().unwrap();
    std::thread::spawn(move || drop(first));
    until("the end of the link", || {
        sender.session().poll();
        sender.session().peers().next().is_none().then_some(())
    });
    let end = sender.session().link_end(target.link()).unwrap();
    assert!(matches!(end, LinkEnd::Lost(_)), "{end:?}");
    let next = sender.session().target(&other, Wait::For(TIMEOUT)).unwrap();
    assert_eq!(next.link().index, target.link().index, "the same place");
    // Both are asked for only now.
    let words = (0..SENT).map(|_| {
        let back = sender.session().next_undelivered().expect("it came back");
        assert_eq!(back.to, Some(ticket.destination));
        assert!(matches!(back.reason, Return::Ended(_)), "{back}");
        back.word
    });
    assert_eq!(words.collect::<Vec<_>>(), (0..SENT).collect::<Vec<_>>());
    assert_eq!(sender.session().next_undelivered(), None);
    let late = Message::new(b"late").word(9);
    let error = sender
        .session()
        .send_msg(terminus, &target, &late, Wait::Poll);
    match error.unwrap_err() {
        SendError::PeerLost(lost) => {
            assert_eq!((lost.peer, lost.end), (ticket.destination, end));
        }
        other => panic!("{other}"),
    }
}

/// A host goes away while it is waited for at a fence: what it was sent may have been lost, and
/// comes back.
#[test]
fn a_fence_ends_when_its_peer_leaves() {
    let sender = open(2, 0);
    let receiver = open(2, 1);
    let area = receiver.session().allocate(64).unwrap();
    let slot = receiver.session().open_slot(NewSlot::new(&area)).unwrap();
    let ticket = slot.fast_ticket(0, 64).unwrap();
    let wait = Wait::For(TIMEOUT);
    let target = sender.session().target(&ticket, wait).unwrap();
    let terminus = sender.terminus();
    let message = Message::new(b"for nobody").word(1).silent();
    let sent = sender.session().send_msg(terminus, &target, &message, wait);
    sent.unwrap();
    let peer = ticket.destination;
    let timed_out = Err(FenceError::TimedOut { peer });
    assert_eq!(sender.fence(Wait::millis(5)), timed_out);
    // It takes nothing, and leaves while the sender waits.
    let receiver = receiver.detach().unwrap();
    let leaver = std::thread::spawn(move || drop(receiver));
    match sender.fence(wait) {
        Err(FenceError::PeerLost(lost)) => assert_eq!(lost.peer, peer),
        other => panic!("{other:?}"),
    }
    leaver.join().unwrap();
    let back = until("the packet", || {
        sender.session().poll();
        sender.session().next_undelivered()
    });
    assert!(matches!(back.reason, Return::Ended(_)), "{back}");
}

/// Threads that wait at one interface sleep, also when something has become due for it meanwhile:
/// what a link has of memory is given back some time after the last send.
#[test]
fn threads_that_wait_for_nothing_use_no_processor() {
    const WAIT: Duration = Duration::from_millis(800);
    let here = hamlyn::open_shared(options(3, 0), ManagerOptions::default()).unwrap();
    let there = open(3, 1);
    let area = there.session().allocate(64).unwrap();
    let slot = there.session().open_slot(NewSlot::new(&area)).unwrap();
    let ticket = slot.fast_ticket(0, 64).unwrap();
    let target = here.session().target(&ticket, Wait::For(TIMEOUT)).unwrap();
    let message = Message::new(b"the last");
    let terminus = here.terminus();
    let sent = here
        .session()
        .send_msg(terminus, &target, &message, Wait::For(TIMEOUT));
    sent.unwrap();
    until("its arrival", || {
        there.session().poll();
        (area.load_u64(0).unwrap() != 0).then_some(())
    });
    let used: Duration = std::thread::scope(|scope| {
        let waits = [0, 1].map(|_| {
            let here = here.clone();
            scope.spawn(move || {
                let mut queue = here.session().open_queue(16).unwrap();
                let before = thread_cpu();
                let came = here.session().rcv_block(&mut queue, Wait::For(WAIT));
                assert!(came.unwrap().is_none());
                thread_cpu() - before
            })
        });
        waits.map(|wait| wait.join().unwrap()).iter().sum()
    });
    assert!(used < WAIT / 8, "{used:?} of two threads in {WAIT:?}");
}
