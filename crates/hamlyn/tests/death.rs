//! Peers that die, at any instant, or leave. Whatever depended on them ends with an error
//! at once, all of it is freed, and nobody else is concerned.

mod support;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use hamlyn::host::LossCause;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::lane::{Lane, LaneOptions, LaneSeed, LaneSender};
use hamlyn::stream::{Receiver, Sender, StreamOptions, StreamSeed};
use hamlyn::{
    FenceError, LinkEnd, Manager, ManagerOptions, Message, NewSlot, PeerLost, ReceiveError,
    SendError, Strategy, Target, Ticket, Wait, datagram, group, tagged_write,
};
use support::actor::{Actor, listen, role, say};
use support::{LONG, Random, descriptors, namespace, open, until};

/// A death must be known within 100 ms; on a loaded machine the test is more patient.
const KNOWN_WITHIN: Duration = Duration::from_secs(2);
/// Descriptors are counted, so the tests of this file take turns.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

const OPTIONS: StreamOptions = StreamOptions {
    pieces: 4,
    piece_bytes: 1024,
    limit_bytes: 1 << 16,
    ahead: false,
};

/// What the children do.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Some((role, namespace)) = role() else {
        return;
    };
    let manager = open(&namespace);
    match role.as_str() {
        "send" => send_for_ever(&manager),
        "receive" => receive_for_ever(&manager),
        "idle" => idle(&manager),
        "fill" => fill_for_ever(&manager),
        "hold" => hold_for_ever(&manager),
        "leave" => {
            let ticket = Ticket::from_bytes(&listen()).unwrap();
            let sender = tagged_write::Sender::grow(&manager, &ticket, LONG).unwrap();
            sender.send(0, b"last", 9, LONG).unwrap();
        }
        other => panic!("{other}"),
    }
}

/// Everything at once, until killed: tags, datagrams, records, a part of a group.
fn send_for_ever(manager: &Manager<ProcessHost>) {
    let ticket = |bytes: Vec<u8>| Ticket::from_bytes(&bytes).unwrap();
    let tags = tagged_write::Sender::grow(manager, &ticket(listen()), LONG).unwrap();
    let outbox = datagram::Sender::grow(manager, &ticket(listen()), LONG).unwrap();
    let seed = StreamSeed::from_bytes(&listen()).unwrap();
    let mut stream = Sender::grow(manager, &seed, LONG).unwrap();
    let member = group::Member::from_bytes(&listen()).unwrap();
    let mut part = group::Sender::grow(manager, &member, LONG).unwrap();
    say(b"begun");
    for number in 0_u64.. {
        let data = vec![number as u8; (number * 97 % 3000) as usize];
        tags.send(0, &data[..data.len().min(60)], number, LONG)
            .unwrap();
        outbox.send(&vec![1; 40_000], LONG).unwrap();
        stream.send(&data, LONG).unwrap();
        part.send(0, &data, LONG).unwrap();
    }
}

/// Receives records until killed, and answers nothing.
fn receive_for_ever(manager: &Manager<ProcessHost>) {
    let mut receiver = Receiver::new(manager, OPTIONS).unwrap();
    say(&receiver.make_seed().to_bytes());
    let mut tags = tagged_write::Receiver::new(manager, 64, 16).unwrap();
    say(&tags.ticket().to_bytes());
    loop {
        let _ = receiver.recv(Wait::millis(10));
        let _ = tags.get_tag(Wait::Poll);
    }
}

/// Fills a lane until killed.
fn fill_for_ever(manager: &Manager<ProcessHost>) {
    let seed = LaneSeed::from_bytes(&listen()).unwrap();
    let mut sender = LaneSender::connect(&mut manager.session(), &seed, LONG).unwrap();
    for tag in 0_u32.. {
        let data = vec![tag as u8; tag as usize * 97 % 3000];
        let sent = sender.send(&mut manager.session(), tag, &data, LONG);
        sent.unwrap();
    }
}

/// Takes messages of a lane until killed, and gives the first back.
fn hold_for_ever(manager: &Manager<ProcessHost>) {
    let mut session = manager.session();
    let mut lane = Lane::open(&mut session, LaneOptions::default()).unwrap();
    say(&lane.seed().to_bytes());
    let mut held = Vec::new();
    loop {
        let Some(message) = lane.recv(&mut session, LONG).unwrap() else {
            continue;
        };
        match message.tag() {
            0 => lane.give_back(&mut session, message),
            _ => held.push(message),
        }
        if held.len() == 2 {
            say(b"held");
        }
    }
}

/// Promises memory and then does nothing with it.
fn idle(manager: &Manager<ProcessHost>) {
    let area = manager.session().allocate(64 << 20).unwrap();
    let slot = manager
        .session()
        .open_slot(NewSlot::new(&area).entries(1))
        .unwrap();
    say(&slot.ticket(0, 0, 64 << 20).unwrap().to_bytes());
    let mut inbox = Receiver::new(manager, OPTIONS).unwrap();
    say(&inbox.make_seed().to_bytes());
    // Connected by now; from here on deaf.
    let _ = inbox.recv(Wait::Poll);
    until("a link", || {
        manager.session().poll();
        manager.session().peers().next().map(|_| ())
    });
    say(b"deaf");
    listen();
}

#[test]
fn a_lane_whose_sender_is_killed_gives_what_came_and_ends() {
    let _alone = alone();
    let namespace = namespace();
    let manager = open(&namespace);
    let mut random = Random::new(3);
    for _ in 0..10 {
        let mut session = manager.session();
        let mut lane = Lane::open(&mut session, LaneOptions::default()).unwrap();
        let mut child = Actor::start("fill", &namespace);
        child.tell(&lane.seed().to_bytes());
        let last = 1 + random.below(200) as u32;
        let mut next = 0;
        let ended = loop {
            match lane.recv(&mut session, LONG) {
                Ok(None) => panic!("neither a message nor an end"),
                Ok(Some(message)) => {
                    let tag = message.tag();
                    assert_eq!(tag, next);
                    next += 1;
                    let length = tag as usize * 97 % 3000;
                    assert_eq!(lane.bytes(&message), vec![tag as u8; length]);
                    lane.give_back(&mut session, message);
                    if tag == last {
                        child.kill();
                    }
                }
                Err(error) => break error,
            }
        };
        assert!(next > last, "{next}");
        assert!(matches!(ended, ReceiveError::PeerLost(_)), "{ended}");
    }
}

#[test]
fn what_a_killed_receiver_of_a_lane_had_not_given_back_is_the_senders() {
    let _alone = alone();
    let namespace = namespace();
    let manager = open(&namespace);
    let mut child = Actor::start("hold", &namespace);
    let seed = LaneSeed::from_bytes(&child.hear()).unwrap();
    let mut session = manager.session();
    let mut sender = LaneSender::connect(&mut session, &seed, LONG).unwrap();
    for tag in 0..3 {
        let sent = sender.try_send_kept(&mut session, tag, vec![tag as u8; 1000]);
        sent.unwrap();
    }
    drop(session);
    assert_eq!(child.hear(), b"held");
    until("credit for the first", || {
        manager.session().poll();
        sender.is_free(0).then_some(())
    });
    child.kill();
    let lost = until("the loss", || {
        let mut session = manager.session();
        match sender.send(&mut session, 3, b"late", Wait::millis(10)) {
            Ok(_) | Err(SendError::WouldBlock { .. }) => None,
            Err(error) => Some(error),
        }
    });
    assert!(matches!(lost, SendError::PeerLost(_)), "{lost}");
    let kept = sender.take_kept();
    let kept: Vec<_> = kept
        .iter()
        .map(|kept| (kept.tag, kept.data.len()))
        .collect();
    assert_eq!(kept, [(1, 1000), (2, 1000)]);
}

/// Everything that one peer can be the sender of.
struct Ends {
    tags: tagged_write::Receiver,
    inbox: datagram::Receiver,
    stream: Receiver,
    group: group::Receiver,
    queue: hamlyn::Queue,
}

impl Ends {
    fn open(manager: &Manager<ProcessHost>, actor: &mut Actor) -> Self {
        let tags = tagged_write::Receiver::new(manager, 64, 1024).unwrap();
        let mut inbox = datagram::Receiver::new(manager, 50_000).unwrap();
        inbox.ready();
        let stream = Receiver::new(manager, OPTIONS).unwrap();
        let mut group = group::Receiver::new(manager, 3000, Default::default()).unwrap();
        let queue = manager.session().open_queue(16).unwrap();
        actor.tell(&tags.ticket().to_bytes());
        actor.tell(&inbox.ticket().to_bytes());
        actor.tell(&stream.make_seed().to_bytes());
        actor.tell(&group.begin().unwrap().to_bytes());
        Self {
            tags,
            inbox,
            stream,
            group,
            queue,
        }
    }

    /// Works as long as the peer lives, a bounded number of times.
    fn work(&mut self, _: &Manager<ProcessHost>, times: u64) {
        for _ in 0..times {
            let _ = self.tags.get_tag(Wait::Poll);
            if let Ok(Some(datagram)) = self.inbox.recv(Wait::Poll) {
                assert!(datagram.iter().all(|&byte| byte == 1));
            }
            if let Ok(Some(record)) = self.stream.recv(Wait::Poll) {
                let bytes = &*record;
                assert!(bytes.iter().all(|&byte| byte == bytes[0]));
            }
        }
    }

    /// The loss is told, every wait bound to that peer ends with it, and no other wait fails
    /// because of it. What was sent before comes first.
    fn all_lose(&mut self, manager: &Manager<ProcessHost>) {
        const SOON: Wait = Wait::millis(1);
        let lost = support::next_loss(manager, LONG);
        died(lost.expect("the loss"));
        until("the last tag", || match self.tags.get_tag(SOON) {
            Ok(Some(_)) | Err(ReceiveError::Overrun(_)) => None,
            other => {
                assert_eq!(other, Ok(None));
                Some(())
            }
        });
        until("the last datagram", || {
            self.inbox.ready();
            let came = self.inbox.recv(SOON).expect("no error");
            came.is_none().then_some(())
        });
        self.group.recv(SOON).expect("no error");
        assert_eq!(manager.session().rcv_block(&mut self.queue, SOON), Ok(None));
        // A stream that knows its peer is bound to it, so it stays lost.
        let end = until("the end of the stream", || {
            match self.stream.recv(SOON).map(|record| record.is_some()) {
                Ok(true) => None,
                other => Some(other),
            }
        });
        match (self.stream.sender(), end) {
            (None, end) => assert_eq!(end, Ok(false)),
            (Some(_), Err(ReceiveError::PeerLost(lost))) => {
                died(lost);
                let again = self.stream.recv(SOON);
                assert!(matches!(again, Err(ReceiveError::PeerLost(again)) if again == lost));
            }
            (Some(_), other) => panic!("{other:?}"),
        }
    }

    fn close(self, manager: &Manager<ProcessHost>) {
        drop((self.tags, self.inbox, self.stream, self.group));
        manager.session().close_queue(self.queue);
    }
}

fn died(lost: PeerLost) {
    assert_eq!(lost.end, LinkEnd::Lost(LossCause::Died));
    assert!(lost.to_string().contains("its process ended"), "{lost}");
}

/// A third party that must not notice anything.
struct Bystander {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: std::thread::JoinHandle<u64>,
}

impl Bystander {
    fn start(namespace: &str, ticket: Ticket) -> Self {
        let stop = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
        let (namespace, stopped) = (namespace.to_owned(), stop.clone());
        let thread = std::thread::spawn(move || {
            let manager = open(&namespace);
            let sender = tagged_write::Sender::grow(&manager, &ticket, LONG).unwrap();
            let mut sent = 0;
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                sender.send(0, &[2; 16], sent, LONG).unwrap();
                sent += 1;
                std::thread::sleep(Duration::from_micros(200));
            }
            sender.send(0, &[2; 16], u64::MAX, LONG).unwrap();
            // What had no room in the link would end with the manager.
            assert_eq!(manager.session().flush(LONG), Ok(true));
            sent
        });
        Self { stop, thread }
    }

    /// Whatever it sent is there.
    fn end(self, _: &Manager<ProcessHost>, receiver: &mut tagged_write::Receiver) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let mut taken = 0;
        until("the bystander's last tag", || {
            match receiver.get_tag(LONG) {
                Ok(Some(u64::MAX)) => Some(()),
                Ok(Some(tag)) => {
                    assert!(tag >= taken);
                    taken = tag + 1;
                    None
                }
                Ok(None) | Err(ReceiveError::Overrun(_)) => None,
                Err(error) => panic!("{error}"),
            }
        });
        let sent = self.thread.join().unwrap();
        assert_eq!(taken, sent);
        assert!(sent > 0);
    }
}

#[test]
fn every_wait_ends_when_its_sender_is_killed_at_any_instant() {
    const ROUNDS: u64 = 40;
    let _alone = alone();
    let namespace = namespace();
    let survivor = open(&namespace);
    let mut friend = tagged_write::Receiver::new(&survivor, 64, 1 << 16).unwrap();
    let bystander = Bystander::start(&namespace, friend.ticket());
    until("the bystander", || friend.get_tag(LONG).unwrap());
    let baseline = (descriptors(), survivor.session().slots_open());
    let mut random = Random::new(1);
    let mut known = Vec::new();
    for round in 0..ROUNDS {
        let mut actor = Actor::start("send", &namespace);
        let mut ends = Ends::open(&survivor, &mut actor);
        if round % 4 > 0 {
            // Otherwise it is killed while it connects, or says hello.
            assert_eq!(actor.hear(), b"begun");
        } else {
            until("a link", || {
                survivor.session().poll();
                (survivor.session().peers().count() == 2).then_some(())
            });
        }
        let times = random.below(300);
        ends.work(&survivor, times);
        random.dawdle(Duration::from_micros(500));
        let killed = Instant::now();
        actor.kill();
        ends.all_lose(&survivor);
        known.push(killed.elapsed());
        assert!(actor.id() > 0 && !actor.ended());
        ends.close(&survivor);
        assert_eq!(
            survivor.session().peers().count(),
            1,
            "only the bystander is linked"
        );
        assert_eq!(survivor.session().slots_open(), baseline.1);
        drop(actor);
        until("descriptors are closed", || {
            (descriptors() <= baseline.0).then_some(())
        });
    }
    known.sort();
    println!(
        "known and drained after {:?} (median), {:?} (worst)",
        known[known.len() / 2],
        known[known.len() - 1]
    );
    assert!(known[known.len() - 1] < KNOWN_WITHIN, "{known:?}");
    bystander.end(&survivor, &mut friend);
}

/// A fence that waits for a peer that is killed reports that, and nothing else; it waits for
/// another peer as before.
#[test]
fn a_fence_ends_when_its_peer_is_killed() {
    let _alone = alone();
    for (round, strategy) in (0..).zip(Strategy::ALL.repeat(2)) {
        let namespace = namespace();
        let options = ManagerOptions {
            strategy,
            ..ManagerOptions::default()
        };
        let host = Options::default().in_namespace(&namespace);
        let survivor = hamlyn::open_with(host, options).unwrap();
        let mut tags = tagged_write::Receiver::new(&survivor, 64, 16).unwrap();
        let itself = tagged_write::Sender::grow(&survivor, &tags.ticket(), LONG).unwrap();
        let mut actor = Actor::start("idle", &namespace);
        let ticket = Ticket::from_bytes(&actor.hear()).unwrap();
        let seed = StreamSeed::from_bytes(&actor.hear()).unwrap();
        let _stream = Sender::grow(&survivor, &seed, LONG).unwrap();
        assert_eq!(actor.hear(), b"deaf");
        let peer = ticket.destination;
        let target = survivor.session().target(&ticket, LONG).unwrap();
        let terminus = survivor.terminus();
        let message = Message::new(b"never taken");
        let sent = survivor
            .session()
            .send_msg(terminus, &target, &message, LONG);
        sent.unwrap();
        itself.send(0, b"taken", round, LONG).unwrap();
        let short = Wait::millis(1);
        // What it sends to itself may take as long, on a loaded machine.
        until(
            "a fence that waits for that peer alone",
            || match survivor.fence(short) {
                Err(FenceError::TimedOut { peer: silent }) => (silent == peer).then_some(()),
                other => panic!("{strategy:?}: {other:?}"),
            },
        );
        assert_eq!(itself.fence(LONG), Ok(()));
        let fenced = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random::new(round);
                random.dawdle(Duration::from_micros(500));
                actor.kill();
            });
            match round < 4 {
                true => survivor.session().fence_link(target.link(), LONG),
                _ => survivor.fence(LONG),
            }
        });
        match fenced {
            Err(FenceError::PeerLost(lost)) => {
                assert_eq!(lost.peer, peer);
                died(lost);
            }
            other => panic!("{strategy:?}: {other:?}"),
        }
        // It is told once.
        assert_eq!(survivor.fence(LONG), Ok(()));
        assert_eq!(tags.get_tag(LONG), Ok(Some(round)));
    }
}

/// What a peer had not taken when it died is told by the next fence, though its link has ended long
/// ago.
#[test]
fn a_fence_tells_of_peers_that_died_with_messages_under_way() {
    let _alone = alone();
    let namespace = namespace();
    let survivor = open(&namespace);
    let mut actor = Actor::start("idle", &namespace);
    let ticket = Ticket::from_bytes(&actor.hear()).unwrap();
    let seed = StreamSeed::from_bytes(&actor.hear()).unwrap();
    let stream = Sender::grow(&survivor, &seed, LONG).unwrap();
    assert_eq!(actor.hear(), b"deaf");
    let outbox = tagged_write::Sender::grow(&survivor, &ticket, LONG).unwrap();
    outbox.send(0, b"never taken", 1, LONG).unwrap();
    actor.kill();
    let lost = support::next_loss(&survivor, LONG);
    died(lost.expect("the loss"));
    drop(stream);
    match survivor.fence(LONG) {
        Err(FenceError::PeerLost(lost)) => {
            assert_eq!(lost.peer, ticket.destination);
            died(lost);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(survivor.fence(LONG), Ok(()));
    assert!(matches!(outbox.fence(LONG), Err(FenceError::PeerLost(_))));
}

fn loses(what: &str, mut send: impl FnMut() -> Result<(), SendError>) {
    until(what, || match send() {
        Ok(()) | Err(SendError::WouldBlock { .. }) => None,
        Err(SendError::PeerLost(lost)) => {
            assert!(matches!(lost.end, LinkEnd::Lost(_)), "{lost}");
            Some(())
        }
        Err(error) => panic!("{what}: {error}"),
    });
}

#[test]
fn every_ticket_and_sender_ends_when_its_receiver_is_killed_at_any_instant() {
    const ROUNDS: u64 = 25;
    let _alone = alone();
    let namespace = namespace();
    let survivor = open(&namespace);
    let baseline = (descriptors(), survivor.session().slots_open());
    let mut random = Random::new(2);
    let mut known = Vec::new();
    for _ in 0..ROUNDS {
        let mut actor = Actor::start("receive", &namespace);
        let seed = StreamSeed::from_bytes(&actor.hear()).unwrap();
        let ticket = Ticket::from_bytes(&actor.hear()).unwrap();
        let mut stream = Sender::grow(&survivor, &seed, LONG).unwrap();
        let tags = tagged_write::Sender::grow(&survivor, &ticket, LONG).unwrap();
        for number in 0..random.below(200) {
            let record = vec![1; (number * 31 % 2500) as usize];
            let wait = if random.below(3) == 0 {
                Wait::Poll
            } else {
                LONG
            };
            match stream.send(&record, wait) {
                Ok(()) | Err(SendError::WouldBlock { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let killed = Instant::now();
        actor.kill();
        loses("a stream", || stream.send(&[3; 1024], LONG));
        loses("a ticket", || tags.send(0, &[], 1, LONG).map(|_| ()));
        known.push(killed.elapsed());
        assert!(stream.close(Wait::millis(1)).is_err());
        // The ticket of the dead cannot be used again either; a new one can.
        let error = tagged_write::Sender::grow(&survivor, &ticket, LONG).unwrap_err();
        assert!(
            error.to_string().contains("ask for a new ticket"),
            "{error}"
        );
        assert!(!actor.ended());
        drop(actor);
        until("the link is forgotten", || {
            survivor.session().poll();
            (survivor.session().peers().count() == 0).then_some(())
        });
        assert_eq!(survivor.session().slots_open(), baseline.1);
        until("descriptors are closed", || {
            (descriptors() <= baseline.0).then_some(())
        });
    }
    known.sort();
    println!(
        "known after {:?} (median), {:?} (worst)",
        known[known.len() / 2],
        known[known.len() - 1]
    );
    assert!(known[known.len() - 1] < KNOWN_WITHIN, "{known:?}");
}

/// Sends to somebody who never takes anything, until he is killed.
fn blocked_until_killed(
    seed: u64,
    send: impl Fn(&Manager<ProcessHost>, &Target, StreamSeed) -> Result<(), SendError>,
) -> Duration {
    let _alone = alone();
    let namespace = namespace();
    let mut survivor = open(&namespace);
    let mut actor = Actor::start("idle", &namespace);
    let ticket = Ticket::from_bytes(&actor.hear()).unwrap();
    let seed_of_stream = StreamSeed::from_bytes(&actor.hear()).unwrap();
    let target = survivor.session().target(&ticket, LONG).unwrap();
    assert_eq!(actor.hear(), b"deaf");
    let mut random = Random::new(seed);
    let (begun, killed) = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            // By then the sender sleeps, or is about to; both must do.
            random.dawdle(Duration::from_millis(30));
            let killed = Instant::now();
            actor.kill();
            killed
        });
        let begun = Instant::now();
        let result = send(&mut survivor, &target, seed_of_stream);
        let ended = Instant::now();
        assert!(matches!(result, Err(SendError::PeerLost(_))), "{result:?}");
        assert!(begun.elapsed() < support::TIMEOUT);
        (ended, killer.join().unwrap())
    });
    begun.saturating_duration_since(killed)
}

#[test]
fn a_long_send_ends_when_its_receiver_is_killed() {
    let data = vec![1; 64 << 20];
    let mut known: Vec<Duration> = (0..8)
        .map(|seed| {
            blocked_until_killed(seed, |manager, target, _| {
                let terminus = manager.terminus();
                let message = Message::new(&data);
                let sent = manager
                    .session()
                    .send_msg(terminus, target, &message, Wait::Forever);
                sent.map(|_| ())
            })
        })
        .collect();
    known.sort();
    println!("a long send ended {:?} after the kill (worst)", known[7]);
    assert!(known[7] < KNOWN_WITHIN);
}

#[test]
fn a_stream_that_waits_for_credit_ends_when_its_receiver_is_killed() {
    for seed in 0..5 {
        let known = blocked_until_killed(seed, |manager, _, seed| {
            let mut stream = Sender::grow(manager, &seed, LONG).map_err(|error| match error {
                hamlyn::ConnectError::Send(error) => error,
                other => panic!("{other}"),
            })?;
            loop {
                stream.send(&[1; 1000], Wait::Forever)?;
            }
        });
        assert!(known < KNOWN_WITHIN, "{known:?}");
    }
}

#[test]
fn a_peer_that_leaves_is_heard_to_the_end() {
    let _alone = alone();
    let namespace = namespace();
    let survivor = open(&namespace);
    for _ in 0..5 {
        let mut receiver = tagged_write::Receiver::new(&survivor, 64, 16).unwrap();
        let mut actor = Actor::start("leave", &namespace);
        actor.tell(&receiver.ticket().to_bytes());
        assert!(actor.ended());
        // It is gone before we look; what it said is there all the same.
        assert_eq!(receiver.get_tag(LONG), Ok(Some(9)));
        let mut bytes = [0; 4];
        receiver.area().read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"last");
        drop(receiver);
        until("the loss", || {
            survivor.session().poll();
            (survivor.session().peers().count() == 0).then_some(())
        });
    }
}

/// Grown, filled, closed and gone before the receiver looks for the first time.
#[test]
fn a_stream_whose_sender_has_left_is_received_whole() {
    let _alone = alone();
    let namespace = namespace();
    for closes in [true, false] {
        let survivor = open(&namespace);
        let mut receiver = Receiver::new(&survivor, OPTIONS).unwrap();
        let seed = receiver.make_seed();
        let identity = std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let manager = open(&namespace);
                let mut sender = Sender::grow(&manager, &seed, LONG).unwrap();
                sender.send(b"one", LONG).unwrap();
                sender.send(&[2; 1500], LONG).unwrap();
                if closes {
                    sender.close(LONG).unwrap();
                }
                manager.session().identity()
            });
            sender.join().unwrap()
        });
        for expected in [&b"one"[..], &[2; 1500]] {
            let record = receiver.recv(LONG).expect("no error");
            let record = record.expect("a record");
            assert_eq!(record, expected);
        }
        assert_eq!(receiver.sender().map(|it| it.interface), Some(identity));
        match receiver.recv(LONG) {
            // To drop it is to close it, if all was sent.
            Err(ReceiveError::Closed) => {}
            other => panic!("closed {closes}: {other:?}"),
        }
        drop(receiver);
        assert_eq!(survivor.session().slots_open(), 0);
    }
}

#[test]
fn a_restarted_peer_is_served_and_old_tickets_are_not() {
    let _alone = alone();
    let namespace = namespace();
    let survivor = open(&namespace);
    let mut old: Option<Ticket> = None;
    for round in 0..5 {
        let mut actor = Actor::start("receive", &namespace);
        let seed = StreamSeed::from_bytes(&actor.hear()).unwrap();
        let ticket = Ticket::from_bytes(&actor.hear()).unwrap();
        let mut stream = Sender::grow(&survivor, &seed, LONG).unwrap();
        stream.send(b"to the new one", LONG).unwrap();
        if let Some(old) = old {
            let error = survivor.session().target(&old, LONG).unwrap_err();
            assert!(
                error.to_string().contains("restarted"),
                "round {round}: {error}"
            );
        }
        old = Some(ticket);
        actor.kill();
        loses("a stream", || stream.send(&[3; 1024], LONG));
        let _ = stream.close(Wait::Poll);
    }
}
