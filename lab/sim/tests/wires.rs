//! The product's UDP endpoint in the world: what its sockets, paths and keys are like changes
//! nothing of what comes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hamlyn::stream::StreamOptions;
use hamlyn::{ConnectionState, ManagerOptions, Wait};
use hamlyn_sim::link::{SocketLimits, WireSettings};
use hamlyn_sim::network::impairment::WhenFull;
use hamlyn_sim::network::{Impairment, Mesh};
use hamlyn_sim::random::Random;
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{self, Outcome, Settings, Simulation};

const TIMEOUT: Span = Span::from_us(50_000);
/// Longer than it takes to find out that a way has become narrower.
const LONG_TIMEOUT: Span = Span::from_us(5_000_000);
const WAY: Impairment = Impairment::Delay {
    delay_ps: 2_000_000,
};
const MESSAGES: u64 = 200;
const MESSAGE_BYTES: usize = 20_000;

/// What the message of that number says.
fn contents(number: u64) -> Vec<u8> {
    let byte = |at: usize| (number as usize * 7 + at * 13 + at / 251) as u8;
    (0..MESSAGE_BYTES).map(byte).collect()
}

/// One host sends another long messages over such a wire, for `span` altogether, with such a
/// timeout, and each must come as it was sent, once. How the world ended, and the sender's link at
/// its end.
fn carry(
    seed: u64,
    wire: WireSettings,
    parts: &[Impairment],
    [span, timeout]: [Span; 2],
    inject: impl FnOnce(&mut Simulation<'_>),
) -> (Outcome, ConnectionState) {
    let (came, state) = (AtomicU64::new(0), Mutex::new(None));
    let settings = Settings {
        seed,
        wire,
        records: true,
        ..Settings::default()
    };
    let mut world = Simulation::new(settings);
    let (one, other) = (world.node(1), world.node(1));
    let network = Mesh::new(2, parts, &mut Random::new(seed)).unwrap();
    world.set_network(Box::new(network), timeout);
    world.process(one, "taker", || {
        let manager = hamlyn_sim::host::open(Some("taker"), ManagerOptions::default()).unwrap();
        let mut records = manager
            .bind_stream("records", StreamOptions::default())
            .unwrap();
        for number in 0..MESSAGES {
            let record = records.recv(Wait::Forever).unwrap().expect("a record");
            assert!(*record == contents(number)[..], "{number}");
            came.fetch_add(1, Relaxed);
        }
        assert!(records.recv(Wait::Forever).is_err(), "it is closed");
    });
    world.process(other, "giver", || {
        let manager = hamlyn_sim::host::open(None, ManagerOptions::default()).unwrap();
        let mut records = manager
            .connect_stream("taker/records", Wait::Forever)
            .unwrap();
        for number in 0..MESSAGES {
            records.send(&contents(number), Wait::Forever).unwrap();
            world::pause(Span::from_ps(span.as_ps() / MESSAGES));
        }
        records.flush(Wait::Forever).unwrap();
        records.fence(Wait::Forever).unwrap();
        let (link, _) = manager.session().peers().next().expect("a link");
        *state.lock().unwrap() = manager.session().connection_state(link);
        records.close(Wait::Forever).unwrap();
    });
    inject(&mut world);
    let outcome = world.run(Time::from_ns(60_000_000_000));
    assert_eq!(outcome.failures, Vec::<String>::new(), "seed {seed}");
    assert_eq!(came.into_inner(), MESSAGES);
    (outcome, state.into_inner().unwrap().expect("a link"))
}

fn bad_network() -> [Impairment; 5] {
    [
        WAY,
        Impairment::Lose {
            per_million: 50_000,
            run_frames: 2,
        },
        Impairment::Duplicate {
            per_million: 100_000,
        },
        Impairment::Reorder {
            per_million: 100_000,
            up_to_ps: 20_000_000,
        },
        Impairment::Damage {
            per_million: 100_000,
        },
    ]
}

/// What is damaged, doubled, late or lost on the way is not what comes, sealed or in the clear; and
/// a seed is one history, handshake and sealed bytes included, as each datagram counts in the sum.
#[test]
fn a_bad_network_is_not_noticed_sealed_or_in_the_clear() {
    for is_encrypted in [false, true] {
        let wire = WireSettings {
            is_encrypted,
            ..WireSettings::default()
        };
        let span = [Span::from_us(20_000), TIMEOUT];
        for seed in 0..3 {
            let (outcome, state) = carry(seed, wire, &bad_network(), span, |_| ());
            assert_eq!(state.is_encrypted, is_encrypted);
            assert!(outcome.trace.contains("is damaged"));
            assert!(state.transport.retransmitted > 0, "{state:?}");
            let (again, _) = carry(seed, wire, &bad_network(), span, |_| ());
            assert_eq!(outcome, again);
        }
        let (one, _) = carry(0, wire, &[WAY], span, |_| ());
        let (other, _) = carry(1, wire, &[WAY], span, |_| ());
        assert_ne!(one.sum, other.sum, "its keys are others");
    }
}

/// Frames become as long as the way carries, though nobody says how long that is; and short again
/// when it becomes narrower in silence.
#[test]
fn frames_are_as_long_as_the_way_carries() {
    const OUT_BYTES: usize = 8_952;
    const WAY_BYTES: usize = 4_100;
    const NARROW_BYTES: usize = 1_300;
    let wire = WireSettings {
        is_encrypted: true,
        limits: SocketLimits {
            out_bytes_max: OUT_BYTES,
            way_bytes_max: WAY_BYTES,
            ..SocketLimits::default()
        },
        ..WireSettings::default()
    };
    // Header and tag of a datagram, and how exactly the length is searched for.
    let besides = 32 + 16;
    let span = [Span::from_us(10_000_000), LONG_TIMEOUT];
    let (outcome, state) = carry(1, wire, &[WAY], span, |_| ());
    assert!(outcome.trace.contains("too long for the way"));
    let longest = WAY_BYTES - besides..=WAY_BYTES - 32;
    assert!(longest.contains(&state.frame_bytes), "{state:?}");
    let (_, state) = carry(1, wire, &[WAY], span, |world| {
        world.at(Time::from_ns(6_000_000_000), || {
            world::set_way_bytes_max(NARROW_BYTES);
        });
    });
    let longest = NARROW_BYTES - besides..=NARROW_BYTES - 32;
    assert!(longest.contains(&state.frame_bytes), "{state:?}");
}

/// A socket that is full most of the time delays what is sent, and nothing else.
#[test]
fn a_full_socket_keeps_nothing_back() {
    const EVENTS_MAX: u64 = 100_000;
    let wire = WireSettings {
        limits: SocketLimits {
            waiting_frames_max: 1,
            ..SocketLimits::default()
        },
        ..WireSettings::default()
    };
    let parts = [
        WAY,
        Impairment::Buffer {
            limit_bytes: 10_000,
            when_full: WhenFull::Refuse,
        },
        Impairment::Bandwidth { ps_per_byte: 1_000 },
    ];
    let (outcome, _) = carry(1, wire, &parts, [Span::from_us(1_000), TIMEOUT], |_| ());
    // Nobody looks at a full socket without a pause.
    assert!(outcome.events < EVENTS_MAX, "{} events", outcome.events);
}

/// A port that is full loses what comes, and its sender sends it again.
#[test]
fn a_full_port_loses_what_is_sent_again() {
    let wire = WireSettings {
        limits: SocketLimits {
            unread_bytes_max: 20_000,
            ..SocketLimits::default()
        },
        ..WireSettings::default()
    };
    let (outcome, state) = carry(1, wire, &[WAY], [Span::from_us(1_000), TIMEOUT], |_| ());
    assert!(outcome.trace.contains("finds no room"));
    assert!(state.transport.retransmitted > 0, "{state:?}");
}

/// A link of several paths uses them all.
#[test]
fn frames_take_several_paths() {
    let wire = WireSettings {
        paths: 3,
        ..WireSettings::default()
    };
    let (_, state) = carry(
        1,
        wire,
        &bad_network(),
        [Span::from_us(20_000), TIMEOUT],
        |_| (),
    );
    assert_eq!(state.paths.len(), 3);
    assert!(
        state
            .paths
            .iter()
            .all(|path| path.sent > 0 && path.round_trip_ns > 0),
        "{state:?}"
    );
}
