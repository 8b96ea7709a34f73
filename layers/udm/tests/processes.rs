//! Nodes in processes of their own, which are stopped and killed: two-case delivery.

#[path = "../../../crates/hamlyn/tests/support/actor.rs"]
#[allow(dead_code, reason = "each test program uses a part of this module")]
mod actor;

use hamlyn::Wait;
use hamlyn_udm::{Error, Group, GroupOptions, InjectError, Mode, Udm, UdmOptions, WORDS_MAX};

use actor::Actor;

const LONG: Wait = Wait::millis(60_000);
/// Messages to a node that is stopped: some times what a ring has.
const FLOOD: u32 = 20_000;
const NUMBER: u16 = 0;
const ANSWER: u16 = 1;

/// State of a node: what it had of each, in order.
type Had = Vec<u32>;

#[test]
#[ignore = "a role of the other tests"]
fn child() {
    let (role, name) = actor::role().unwrap();
    // name:nodes:me
    let mut parts = name.split(':');
    let base = parts.next().unwrap();
    let [nodes, me] = [(); 2].map(|()| parts.next().unwrap().parse().unwrap());
    let mut udm = open(base, nodes, me);
    match role.as_str() {
        "taker" => take(&mut udm),
        "sender" => send(&mut udm, FLOOD),
        "busy" => send_for_ever(&mut udm),
        role => panic!("no role {role}"),
    }
}

fn open(base: &str, nodes: u32, me: u32) -> Udm<Had> {
    open_in_group(base, nodes, me).1
}

fn open_in_group(base: &str, nodes: u32, me: u32) -> (Group, Udm<Had>) {
    let name = |node: u32| format!("{base}-{node}");
    let manager = hamlyn::open(&name(me)).unwrap();
    let options = GroupOptions {
        name: base.into(),
        me,
        addresses: (0..nodes).map(name).collect(),
    };
    let group = Group::new(manager, options).unwrap();
    let options = UdmOptions {
        wait: Wait::millis(20_000),
        ..UdmOptions::default()
    };
    let had = vec![0; nodes as usize];
    let mut udm = Udm::open(&group, "main", options, had, LONG).unwrap();
    udm.on(NUMBER, |arrival| {
        let mut call = arrival.extract();
        let (source, number) = (call.source(), call.word(0));
        // In order, and once.
        assert_eq!(call.state()[source as usize], number);
        call.state()[source as usize] += 1;
        if call.word(1) == 1 {
            call.inject(source, ANSWER, &[number]).unwrap();
        }
        call
    })
    .unwrap();
    udm.on(ANSWER, |arrival| {
        let mut call = arrival.extract();
        let source = call.source() as usize;
        call.state()[source] += 1;
        call
    })
    .unwrap();
    (group, udm)
}

/// Takes what comes, and says how many it has had whenever it is asked.
fn take(udm: &mut Udm<Had>) {
    actor::say(b"ready");
    loop {
        udm.serve(Wait::Forever).unwrap();
    }
}

/// Floods node 0 and exits.
fn send(udm: &mut Udm<Had>, count: u32) {
    actor::say(b"ready");
    actor::listen();
    for number in 0..count {
        udm.inject(0, NUMBER, &[number]).unwrap();
    }
    assert!(udm.flush(LONG).unwrap());
    actor::say(b"sent");
    actor::listen();
}

fn send_for_ever(udm: &mut Udm<Had>) {
    actor::say(b"ready");
    for number in 0.. {
        udm.inject(0, NUMBER, &[number]).unwrap();
    }
}

fn unique(name: &str) -> String {
    format!("udm-{name}-{}", std::process::id())
}

fn start(role: &str, base: &str, nodes: u32, me: u32) -> Actor {
    Actor::start(role, &format!("{base}:{nodes}:{me}"))
}

/// The receiver is stopped as a whole: its sender goes on, at no node's cost, and when the receiver
/// goes on, it has all of the messages in order. Again and again, also between the sender's return
/// to the ring and the end of what waits.
#[test]
fn a_stopped_node_stops_nobody() {
    let base = unique("stopped");
    let mut taker = start("taker", &base, 2, 1);
    let (group, mut udm) = open_in_group(&base, 2, 0);
    assert_eq!(taker.hear(), b"ready");
    let mut sent = 0;
    let mut was_buffered = 0;
    for round in 0..20 {
        actor::stop(taker.id());
        for _ in 0..FLOOD / 20 {
            // None of them is answered.
            udm.inject(1, NUMBER, &[sent]).unwrap();
            sent += 1;
        }
        was_buffered += u32::from(matches!(udm.mode(1), Mode::Buffered { .. }));
        actor::go_on(taker.id());
        if round % 3 == 0 {
            continue;
        }
        // All of it has arrived when the answer to the last is there.
        let before = udm.state()[1];
        udm.inject(1, NUMBER, &[sent, 1]).unwrap();
        sent += 1;
        while udm.state()[1] == before {
            udm.serve(LONG).unwrap();
        }
    }
    assert!(
        was_buffered >= 10,
        "{was_buffered} of 20 stops were buffered"
    );
    // A message of two words takes a line of the log.
    let used = group.log_use(1).unwrap();
    let lines = used.spilled_bytes / 64;
    let least = u64::from(was_buffered * (FLOOD / 20 - 256));
    assert!((least..=u64::from(sent)).contains(&lines), "{used:?}");
    assert!(used.episodes > 0 && (1..=used.spilled_bytes).contains(&used.most_bytes));
    assert_eq!(group.log_use(2), None);
}

/// Senders exit while the receiver is stopped: what they sent is there.
#[test]
fn what_senders_sent_before_their_exit_arrives() {
    let base = unique("exit");
    let mut senders = [start("sender", &base, 3, 1), start("sender", &base, 3, 2)];
    let mut udm = open(&base, 3, 0);
    for sender in &mut senders {
        assert_eq!(sender.hear(), b"ready");
    }
    // This node takes nothing from here on: it is stopped, as far as others see.
    for sender in &mut senders {
        sender.tell(b"go");
    }
    for sender in &mut senders {
        assert_eq!(sender.hear(), b"sent");
        sender.tell(b"exit");
    }
    drop(senders);
    while udm.state()[1..] != [FLOOD, FLOOD] {
        udm.serve(LONG).unwrap();
    }
    for node in [1, 2] {
        while udm.lost(node).is_none() {
            udm.serve(LONG).unwrap();
        }
    }
}

/// A section of any length with traffic keeps no sender waiting, shows nothing before its end, and
/// then everything in order.
#[test]
fn a_section_keeps_no_sender_waiting() {
    let base = unique("section");
    let mut sender = start("sender", &base, 2, 1);
    let mut udm = open(&base, 2, 0);
    assert_eq!(sender.hear(), b"ready");
    let mut section = udm.atomic();
    sender.tell(b"go");
    // It has sent all of it, many times what the ring has, while the section lasts.
    assert_eq!(sender.hear(), b"sent");
    assert!(section.is_available().unwrap());
    assert_eq!(section[1], 0);
    section.end().unwrap();
    assert!(udm.state()[1] > 0, "its end runs what waits");
    while udm.state()[1] < FLOOD {
        udm.serve(LONG).unwrap();
    }
    sender.tell(b"exit");
}

/// The memory that a node lends is full: only messages for this one find no room, by name.
#[test]
fn a_full_node_is_named_and_others_go_on() {
    let base = unique("full");
    let mut takers = [start("taker", &base, 3, 1), start("taker", &base, 3, 2)];
    let (group, mut udm) = open_in_group(&base, 3, 0);
    for taker in &mut takers {
        assert_eq!(taker.hear(), b"ready");
    }
    actor::stop(takers[0].id());
    let bytes = [7; 4096];
    let message = |number: u32| [&number.to_le_bytes(), &bytes[8..]].concat();
    let mut sent: u32 = 0;
    // An injection that waits is slowed when three quarters are full.
    while group.log_use(1).is_none_or(|used| used.pauses < 2) {
        udm.inject_bytes(1, NUMBER, &message(sent)).unwrap();
        sent += 1;
        assert!(sent < 1 << 20);
    }
    let used = group.log_use(1).unwrap();
    assert!(used.waiting_bytes > used.log_bytes / 8 * 5, "{used:?}");
    let full = loop {
        match udm.try_inject_bytes(1, NUMBER, &message(sent)) {
            Ok(()) => sent += 1,
            Err(InjectError::WouldBlock { to: 1 }) => {}
            Err(full) => break full,
        }
    };
    assert!(matches!(full, InjectError::Quota { to: 1, .. }), "{full:?}");
    assert!(sent > 1000, "{sent}");
    // Short messages are queued, as many as it says.
    let before = udm.statistics().sent;
    let mut queued = 0;
    while udm.space_available(1).unwrap() > 0 {
        udm.try_inject(1, NUMBER, &[sent]).unwrap();
        (sent, queued) = (sent + 1, queued + 1);
    }
    assert!(queued > 0 && udm.statistics().sent == before + queued);
    let full = udm.try_inject(1, NUMBER, &[sent]).unwrap_err();
    assert!(matches!(full, InjectError::Quota { to: 1, .. }), "{full:?}");
    assert_eq!(udm.space_available(2), Ok(WORDS_MAX));
    assert!(matches!(
        udm.space_available(9),
        Err(InjectError::NoSuchNode { to: 9, nodes: 3 })
    ));
    for number in 0..1000 {
        udm.inject(2, NUMBER, &[number, u32::from(number == 999)])
            .unwrap();
    }
    while udm.state()[2] == 0 {
        udm.serve(LONG).unwrap();
    }
    actor::go_on(takers[0].id());
    udm.inject(1, NUMBER, &[sent, 1]).unwrap();
    while udm.state()[1] == 0 {
        udm.serve(LONG).unwrap();
    }
}

/// Killed at any instant, a node leaves whole messages only, and is lost by name.
#[test]
fn a_killed_node_leaves_whole_messages() {
    for round in 0..8_u32 {
        let base = unique(&format!("killed{round}"));
        let mut sender = start("busy", &base, 2, 1);
        let mut udm = open(&base, 2, 0);
        assert_eq!(sender.hear(), b"ready");
        while udm.state()[1] < 1 + round * 500 {
            udm.serve(LONG).unwrap();
        }
        sender.kill();
        let sent = loop {
            match udm.inject(1, NUMBER, &[0]) {
                Ok(()) => udm.serve(Wait::millis(1)).unwrap(),
                Err(error) => break error,
            };
        };
        assert!(matches!(sent, InjectError::Lost { to: 1, .. }), "{sent:?}");
        // The handler has compared each number.
        while udm.poll(usize::MAX).unwrap() > 0 {}
        let lost = udm.barrier(LONG);
        assert!(
            matches!(
                lost,
                Err(Error::Lost { node: 1, .. } | Error::Inject(InjectError::Lost { to: 1, .. }))
            ),
            "{lost:?}"
        );
    }
}

/// All that was injected before a barrier has been handled at its end, also by senders that had to
/// wait for room.
#[test]
fn a_barrier_ends_after_all_that_was_injected() {
    const NODES: u32 = 4;
    const ROUNDS: u32 = 20;
    const MESSAGES: u32 = 700;
    let base = &unique("barrier");
    std::thread::scope(|scope| {
        for me in 0..NODES {
            scope.spawn(move || {
                let mut udm = open(base, NODES, me);
                for round in 0..ROUNDS {
                    for number in round * MESSAGES..(round + 1) * MESSAGES {
                        udm.inject(0, NUMBER, &[number]).unwrap();
                    }
                    udm.barrier(LONG).unwrap();
                    if me == 0 {
                        let most = (round + 1) * MESSAGES;
                        assert!(
                            udm.state().iter().all(|had| *had == most),
                            "{:?}",
                            udm.state()
                        );
                    }
                    // The next round begins when this one was looked at.
                    udm.barrier(LONG).unwrap();
                }
                assert!(udm.flush(LONG).unwrap());
            });
        }
    });
}
