//! Handlers that interrupt the program's own thread by a signal, and never in its sections.

#[path = "../../../crates/hamlyn/tests/support/actor.rs"]
#[allow(dead_code, reason = "each test program uses a part of this module")]
mod actor;
#[path = "signals/allocations.rs"]
mod allocations;
#[path = "signals/limits.rs"]
mod limits;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hamlyn::Wait;
use hamlyn_udm::{Error, Group, GroupOptions, SignalOptions, Signals, Suspension, Udm, UdmOptions};

use actor::Actor;

const LONG: Wait = Wait::millis(60_000);
const AREA_BYTES: usize = 1 << 20;
/// Handlers: counts the message, counts it and answers, is the answer, brings data.
const COUNT: u16 = 0;
const ASK: u16 = 1;
const ANSWER: u16 = 2;
const DATA: u16 = 3;
/// Injects for node 1 as many as find room.
const FILL: u16 = 4;
/// Messages that a handler injects in all: more than a node lends memory for.
const FLOOD: u32 = 300_000;

/// What handlers tell a program that computes, and cannot look into the state.
#[derive(Default)]
struct Seen {
    handled: AtomicU32,
    sent: AtomicU32,
    /// Handlers that ran in a section, or saw what one had changed in part, or another order.
    wrong: AtomicU32,
    is_in_section: AtomicBool,
}

struct State {
    seen: Arc<Seen>,
    first: u64,
    second: u64,
    next: [u32; 4],
}

fn group(base: &str, nodes: u32, me: u32) -> Group {
    let name = |node: u32| format!("{base}-{node}");
    let manager = hamlyn::open(&name(me)).unwrap();
    let options = GroupOptions {
        name: base.into(),
        me,
        addresses: (0..nodes).map(name).collect(),
    };
    Group::new(manager, options).unwrap()
}

/// A node whose handlers do only what the handler of a signal may do.
fn open_in(group: &Group, seen: Arc<Seen>) -> Udm<State> {
    let state = State {
        seen,
        first: 0,
        second: 0,
        next: [0; 4],
    };
    let options = UdmOptions {
        wait: Wait::millis(20_000),
        area_bytes: AREA_BYTES,
        ..UdmOptions::default()
    };
    let mut udm = Udm::open(group, "main", options, state, LONG).unwrap();
    for answers in [false, true] {
        udm.on(COUNT + u16::from(answers), move |arrival| {
            let mut call = arrival.extract();
            let (source, number) = (call.source(), call.word(0));
            let state = call.state();
            let next = &mut state.next[source as usize];
            let is_right = state.first == state.second
                && !state.seen.is_in_section.load(Relaxed)
                && *next == number;
            *next += 1;
            state.first += 1;
            std::hint::black_box(&state.first);
            state.second += 1;
            state.seen.wrong.fetch_add(u32::from(!is_right), Relaxed);
            state.seen.handled.fetch_add(1, Relaxed);
            if answers && call.inject(source, ANSWER, &[number]).is_err() {
                call.state().seen.wrong.fetch_add(1, Relaxed);
            }
            call
        })
        .unwrap();
    }
    udm.on(ANSWER, |arrival| {
        let mut call = arrival.extract();
        call.state().first += 1;
        call.state().second += 1;
        call
    })
    .unwrap();
    udm.on(DATA, |arrival| {
        let mut call = arrival.extract();
        let number = call.word(0);
        let (data, state) = call.data();
        let is_right = data.len() == AREA_BYTES && data.iter().all(|byte| *byte == number as u8);
        state.seen.wrong.fetch_add(u32::from(!is_right), Relaxed);
        state.seen.handled.fetch_add(1, Relaxed);
        call
    })
    .unwrap();
    udm.on(FILL, |arrival| {
        let mut call = arrival.extract();
        let begin = call.state().next[1];
        let inject = |number: &u32| call.try_inject(1, COUNT, &[*number]).is_ok();
        let sent = (begin..FLOOD).take_while(inject).count() as u32;
        call.state().next[1] += sent;
        call.state().seen.sent.fetch_add(sent, Relaxed);
        call.state().seen.handled.fetch_add(1, Relaxed);
        call
    })
    .unwrap();
    udm
}

fn open(base: &str, nodes: u32, me: u32) -> (Udm<State>, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    (open_in(&group(base, nodes, me), Arc::clone(&seen)), seen)
}

fn by_signal(udm: Udm<State>) -> Signals<State> {
    // SAFETY: the handlers above do only what the handler of a signal may do.
    unsafe { udm.with_signals(SignalOptions::default()) }.unwrap()
}

fn section(signals: &Signals<State>) -> Suspension<'_, State> {
    signals.atomic().unwrap()
}

/// Computes, without a call, until so many messages were handled.
fn compute_until(seen: &Seen, handled: u32) {
    let begun = Instant::now();
    while seen.handled.load(Relaxed) < handled {
        std::hint::spin_loop();
        assert!(begun.elapsed() < Duration::from_secs(60), "no interrupt");
    }
}

fn finish(signals: &Signals<State>) {
    let mut last = section(signals);
    last.barrier(LONG).unwrap();
    assert!(last.flush(LONG).unwrap());
    last.end().unwrap();
}

#[test]
#[ignore = "a role of the other tests"]
fn child() {
    let (role, name) = actor::role().unwrap();
    // name:nodes:me:count
    let mut parts = name.split(':');
    let base = parts.next().unwrap();
    let [nodes, me, count] = [(); 3].map(|()| parts.next().unwrap().parse().unwrap());
    let group = group(base, nodes, me);
    let mut udm = open_in(&group, Arc::default());
    actor::say(b"ready");
    // One message after the other, each when the last one is answered.
    let ask = |udm: &mut Udm<State>, numbers: Range<u32>| {
        for number in numbers {
            udm.inject(0, ASK, &[number]).unwrap();
            while udm.state().first <= u64::from(number) {
                udm.serve(LONG).unwrap();
            }
        }
    };
    match role.as_str() {
        "asker" => ask(&mut udm, 0..count),
        // With a second end point that the other node opens in between.
        "two" => {
            ask(&mut udm, 0..count);
            udm.barrier(LONG).unwrap();
            let mut other = Udm::open(&group, "other", UdmOptions::default(), (), LONG).unwrap();
            other.barrier(LONG).unwrap();
            assert!(other.flush(LONG).unwrap());
            actor::listen();
            ask(&mut udm, count..2 * count);
            drop(other);
        }
        "sender" => {
            actor::listen();
            for number in 0..count {
                udm.inject(0, COUNT, &[number]).unwrap();
            }
            assert!(udm.flush(LONG).unwrap());
            actor::say(b"sent");
        }
        // Long ones, and data in many pieces.
        "loader" => {
            for number in 0..count {
                let mut bytes = vec![0; 4096];
                bytes[..4].copy_from_slice(&number.to_le_bytes());
                udm.inject_bytes(0, COUNT, &bytes).unwrap();
            }
            udm.inject_bulk(0, DATA, &[7], &vec![7; AREA_BYTES], 0)
                .unwrap();
        }
        // Has a handler of the other node inject whenever it is told to.
        "filler" => {
            while actor::listen() == b"go" {
                udm.inject(0, FILL, &[]).unwrap();
            }
        }
        // Until the other node is gone.
        "busy" => {
            let mut numbers = 0..;
            let inject = |number| udm.inject(0, COUNT, &[number]).is_ok();
            assert!(!numbers.all(inject));
            return;
        }
        // Takes nothing until it is told to.
        "away" => {
            actor::listen();
            let mut next = 0;
            while next < FLOOD {
                let Some(message) = udm.extract().unwrap() else {
                    continue;
                };
                // The node finds room for the others when some are taken.
                assert_eq!(message.word(0), next);
                next += 1;
            }
        }
        role => panic!("no role {role}"),
    }
    // Some tests end before.
    if udm.barrier(LONG).is_ok() {
        assert!(udm.flush(LONG).unwrap());
    }
}

fn unique(name: &str) -> String {
    format!("udm-signal-{name}-{}", std::process::id())
}

fn start(role: &str, base: &str, nodes: u32, me: u32, count: u32) -> Actor {
    Actor::start(role, &format!("{base}:{nodes}:{me}:{count}"))
}

/// A program that computes, and makes no call, is interrupted in its own thread.
#[test]
fn a_program_that_computes_is_interrupted() {
    const COUNT: u32 = 200;
    let base = unique("computes");
    let mut asker = start("asker", &base, 2, 1, COUNT);
    let (udm, seen) = open(&base, 2, 0);
    let signals = by_signal(udm);
    assert_eq!(asker.hear(), b"ready");
    let allocations = allocations::while_computing(|| compute_until(&seen, COUNT));
    assert_eq!(allocations, 0);
    assert_eq!(seen.wrong.load(Relaxed), 0);
    // The first ones may have come before it was interrupted.
    assert!(section(&signals).statistics().upcalls >= u64::from(COUNT) / 2);
    finish(&signals);
}

/// Long messages and data interrupt it, too, and no interrupt allocates.
#[test]
fn long_messages_and_data_interrupt_it() {
    const COUNT: u32 = 3_000;
    let base = unique("data");
    let mut loader = start("loader", &base, 2, 1, COUNT);
    let (udm, seen) = open(&base, 2, 0);
    let signals = by_signal(udm);
    assert_eq!(loader.hear(), b"ready");
    let allocations = allocations::while_computing(|| compute_until(&seen, COUNT + 1));
    assert_eq!(allocations, 0);
    assert_eq!(seen.wrong.load(Relaxed), 0);
    finish(&signals);
}

/// A handler that injects finds no room at last, queues nothing and allocates nothing: neither on
/// the way to a ring that is new, nor in the memory that the node lends, nor beyond.
#[test]
fn a_handler_that_injects_allocates_nothing() {
    let base = unique("fills");
    let mut away = start("away", &base, 3, 1, 0);
    let mut filler = start("filler", &base, 3, 2, 0);
    let (udm, seen) = open(&base, 3, 0);
    let signals = by_signal(udm);
    assert_eq!(away.hear(), b"ready");
    assert_eq!(filler.hear(), b"ready");
    let mut sent = 0;
    while sent < FLOOD {
        let before = seen.handled.load(Relaxed);
        filler.tell(b"go");
        let allocations = allocations::while_computing(|| compute_until(&seen, before + 1));
        assert_eq!(allocations, 0);
        let now = seen.sent.load(Relaxed);
        if sent == 0 {
            assert!((1..FLOOD).contains(&now), "{now} found room");
            away.tell(b"go");
        }
        sent = now;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1) {}
    }
    filler.tell(b"done");
    finish(&signals);
}

/// A section holds handlers off, however many messages come, and its end runs them.
#[test]
fn a_section_holds_handlers_off_and_its_end_runs_them() {
    const COUNT: u32 = 1_000;
    let base = unique("section");
    let mut sender = start("sender", &base, 2, 1, COUNT);
    let (udm, seen) = open(&base, 2, 0);
    let signals = by_signal(udm);
    assert_eq!(sender.hear(), b"ready");
    let mut held = section(&signals);
    sender.tell(b"go");
    assert_eq!(sender.hear(), b"sent");
    assert!(held.is_available().unwrap());
    // Another section cannot begin in this one, and neither sees a handler.
    assert_eq!(signals.atomic().err(), Some(Error::SectionOpen));
    assert_eq!(seen.handled.load(Relaxed), 0);
    held.end().unwrap();
    assert_eq!(seen.handled.load(Relaxed), COUNT);
    assert_eq!(seen.wrong.load(Relaxed), 0);
    finish(&signals);
}

/// A random number of a program that must not allocate.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Signals find the program anywhere: in sections, in calls, in computations, in the allocator. No
/// handler runs where none may, and each message is handled once, in order.
#[test]
fn signals_anywhere_break_nothing() {
    const COUNT: u32 = 100_000;
    let base = unique("anywhere");
    let mut sender = start("sender", &base, 2, 1, COUNT);
    let group = group(&base, 2, 0);
    let seen = Arc::new(Seen::default());
    let signals = by_signal(open_in(&group, Arc::clone(&seen)));
    assert_eq!(sender.hear(), b"ready");
    sender.tell(b"go");
    let mut state = 88_172_645_463_325_252;
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    let (mut sections, mut answers) = (0, 0);
    let begun = Instant::now();
    while seen.handled.load(Relaxed) < COUNT {
        assert!(begun.elapsed() < Duration::from_secs(60), "no interrupt");
        match random(&mut state) % 8 {
            0..3 => {
                let mut held = section(&signals);
                seen.is_in_section.store(true, Relaxed);
                let before = seen.handled.load(Relaxed);
                let State { first, second, .. } = held.state_mut();
                let was_whole = first == second;
                *first += 1;
                std::hint::black_box(&first);
                *second += 1;
                let is_kept = was_whole && seen.handled.load(Relaxed) == before;
                seen.wrong.fetch_add(u32::from(!is_kept), Relaxed);
                seen.is_in_section.store(false, Relaxed);
                held.end().unwrap();
                sections += 1;
            }
            3 => {
                // Calls that send, look and wait.
                let mut held = section(&signals);
                held.inject(1, ANSWER, &[0]).unwrap();
                answers += 1;
                held.await_message(Wait::millis(0)).unwrap();
                held.end().unwrap();
            }
            4 => {
                // A call of the group has the interface, and no section is open.
                while group.next_event().is_some() {}
                group.log_use(1);
            }
            5 => {
                let length = random(&mut state) as usize % 20_000;
                blocks.push(vec![1; length]);
                let most = random(&mut state) as usize % 50;
                blocks.truncate(most);
            }
            _ => {
                let begun = Instant::now();
                let span = Duration::from_nanos(random(&mut state) % 20_000);
                while begun.elapsed() < span {
                    std::hint::spin_loop();
                }
            }
        }
    }
    assert_eq!(sender.hear(), b"sent");
    assert_eq!(seen.wrong.load(Relaxed), 0);
    let held = section(&signals);
    assert_eq!(held.state().first, u64::from(COUNT) + sections);
    assert!(held.statistics().upcalls > 0);
    assert_eq!(held.statistics().sent, answers);
    drop(held);
    finish(&signals);
}

/// A call that has the interface is not entered again: the handler runs soon after its end.
#[test]
fn a_call_is_not_entered_again() {
    const COUNT: u32 = 100;
    let base = unique("call");
    let mut sender = start("sender", &base, 2, 1, COUNT);
    let manager = hamlyn::open(&format!("{base}-0")).unwrap();
    let addresses = (0..2).map(|node| format!("{base}-{node}")).collect();
    let options = GroupOptions {
        name: base.clone(),
        me: 0,
        addresses,
    };
    let group = Group::new(manager.clone(), options).unwrap();
    let seen = Arc::new(Seen::default());
    let signals = by_signal(open_in(&group, Arc::clone(&seen)));
    assert_eq!(sender.hear(), b"ready");
    let session = manager.session();
    sender.tell(b"go");
    assert_eq!(sender.hear(), b"sent");
    assert_eq!(seen.handled.load(Relaxed), 0);
    drop(session);
    compute_until(&seen, COUNT);
    assert_eq!(seen.wrong.load(Relaxed), 0);
    finish(&signals);
}

/// Senders that are killed or stopped while they ring, at any instant, harm nobody.
#[test]
fn killed_and_stopped_senders_harm_nobody() {
    const COUNT: u32 = 2_000;
    let base = unique("killed");
    let mut asker = start("asker", &base, 4, 1, COUNT);
    let mut busy = [2, 3].map(|me| start("busy", &base, 4, me, 0));
    let (udm, seen) = open(&base, 4, 0);
    let signals = by_signal(udm);
    for actor in [&mut asker].into_iter().chain(&mut busy) {
        assert_eq!(actor.hear(), b"ready");
    }
    let stopped = busy[1].id();
    for round in 0..20 {
        let before = seen.handled.load(Relaxed);
        compute_until(&seen, before + 10 * (round + 1));
        actor::stop(stopped);
        let before = seen.handled.load(Relaxed);
        compute_until(&seen, before + 1);
        actor::go_on(stopped);
    }
    // It computes all the while; the loss is told in a section, as that frees memory.
    let before = seen.handled.load(Relaxed);
    let allocations = allocations::while_computing(|| {
        busy[0].kill();
        compute_until(&seen, before + 20_000);
    });
    assert_eq!(allocations, 0);
    while section(&signals).lost(2).is_none() {}
    busy[1].kill();
    while section(&signals).lost(3).is_none() {}
    drop(busy);
    let asked = |signals: &Signals<State>| section(signals).state().next[1];
    let begun = Instant::now();
    while asked(&signals) < COUNT {
        let before = Instant::now();
        while before.elapsed() < Duration::from_millis(1) {}
        assert!(begun.elapsed() < Duration::from_secs(60), "no interrupt");
    }
    assert_eq!(seen.wrong.load(Relaxed), 0);
}
