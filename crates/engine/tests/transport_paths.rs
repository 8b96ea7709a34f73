//! An association over two paths of which one fails: what is sent over which, and when
//! (`virtual-networks` 4.3).

use crate::transport_world::message::message;
use crate::transport_world::quick;
use hamlyn_engine::transport::{Association, Incoming, Outgoing, Settings};

/// A frame takes so long over either path.
const WAY_NS: u64 = 20_000;
const STEP_NS: u64 = 10_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A frame that the sender gave to a path.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at_ns: u64,
    path: u8,
    is_data: bool,
    is_retransmission: bool,
}

/// A sender and a receiver, and two paths.
struct Paths {
    sender: Association,
    receiver: Association,
    now_ns: u64,
    offered: u64,
    /// Which paths carry nothing, in either direction.
    is_dead: [bool; 2],
    /// The receiver does nothing: what comes waits.
    is_stopped: bool,
    /// Which path loses the next frame with packets.
    lose_next: Option<u8>,
    /// When it arrives, at the receiver or not, over which path.
    flying: Vec<(u64, bool, u8, Vec<u8>)>,
    sent: Vec<Sent>,
    taken: u64,
}

impl Paths {
    fn new(settings: Settings) -> Self {
        let new = || Association::new(settings).expect("good settings");
        Self {
            sender: new(),
            receiver: new(),
            now_ns: SECOND_NS,
            offered: 0,
            is_dead: [false; 2],
            is_stopped: false,
            lose_next: None,
            flying: Vec::new(),
            sent: Vec::new(),
            taken: 0,
        }
    }

    fn send(&mut self, from_sender: bool) {
        let mut bytes = vec![0; self.sender.settings().frame_bytes];
        loop {
            let end = if from_sender {
                &mut self.sender
            } else {
                &mut self.receiver
            };
            let Some(outgoing) = end.next_frame(self.now_ns, &mut bytes) else {
                return;
            };
            let Outgoing {
                path,
                is_data,
                is_retransmission,
                ..
            } = outgoing;
            if from_sender {
                self.sent.push(Sent {
                    at_ns: self.now_ns,
                    path,
                    is_data,
                    is_retransmission,
                });
            }
            let is_lost = is_data && self.lose_next == Some(path);
            if is_lost {
                self.lose_next = None;
            }
            if !is_lost && !self.is_dead[usize::from(path)] {
                let frame = bytes[..outgoing.length_bytes].to_vec();
                self.flying
                    .push((self.now_ns + WAY_NS, from_sender, path, frame));
            }
        }
    }

    fn arrive(&mut self) {
        let now_ns = self.now_ns;
        let is_stopped = self.is_stopped;
        let comes =
            |flying: &(u64, bool, u8, Vec<u8>)| flying.0 <= now_ns && !(is_stopped && flying.1);
        let (come, flying) = self.flying.drain(..).partition(comes);
        self.flying = flying;
        let come: Vec<_> = come;
        for (_, to_receiver, path, frame) in come {
            let end = if to_receiver {
                &mut self.receiver
            } else {
                &mut self.sender
            };
            if let Incoming::Packets(token) = end.take_frame(now_ns, path, &frame) {
                self.taken += u64::from(token.count());
                end.taken(now_ns, token);
            }
        }
    }

    /// Lets time pass. The sender has a frame to send in every step, if `is_busy`.
    fn run(&mut self, for_ns: u64, is_busy: bool) {
        let end_ns = self.now_ns + for_ns;
        while self.now_ns < end_ns {
            self.now_ns += STEP_NS;
            self.arrive();
            if is_busy && self.sender.ready() < 8 {
                let message = message(self.offered, self.sender.payload_max_bytes());
                assert!(message.offer(&mut self.sender, self.offered).is_ok());
                self.sender.flush();
                self.offered += 1;
            }
            self.send(true);
            if !self.is_stopped {
                self.send(false);
            }
        }
    }

    fn is_inactive(&self, path: u8) -> bool {
        self.sender
            .path_statistics(path)
            .expect("it is one")
            .is_inactive
    }
}

fn two_paths() -> Settings {
    Settings {
        paths: 2,
        delay_target_ns: 250_000,
        ..quick()
    }
}

/// A path that delivers nothing carries probes and no packets, and these ever more seldom, until
/// one is answered; what was in flight on it is sent again over the other.
#[test]
fn a_path_that_was_left_carries_probes_alone() {
    let mut paths = Paths::new(two_paths());
    paths.run(5_000_000, true);
    let is_shared = |sent: &[Sent], path| {
        sent.iter()
            .filter(|sent| sent.is_data && sent.path == path)
            .count()
            > 20
    };
    assert!(is_shared(&paths.sent, 0) && is_shared(&paths.sent, 1));
    paths.is_dead[1] = true;
    while !paths.is_inactive(1) {
        paths.run(STEP_NS, true);
        assert!(paths.now_ns < 2 * SECOND_NS, "the path is not left");
    }
    let statistics = paths.sender.path_statistics(1).unwrap();
    assert_eq!((statistics.deactivations, statistics.in_flight), (1, 0));
    // Three losses are enough.
    assert!(statistics.lost >= 3, "{statistics:?}");
    paths.sent.clear();
    paths.run(5 * SECOND_NS / 2, true);
    let over_it: Vec<_> = paths.sent.iter().filter(|sent| sent.path == 1).collect();
    assert!(over_it.iter().all(|sent| !sent.is_data), "{over_it:?}");
    let pauses_ns: Vec<u64> = over_it
        .windows(2)
        .map(|two| two[1].at_ns - two[0].at_ns)
        .collect();
    assert!(pauses_ns.len() > 8, "{pauses_ns:?}");
    for two in pauses_ns.windows(2) {
        let expected_ns = (2 * two[0]).min(SECOND_NS);
        assert!(two[1].abs_diff(expected_ns) <= 4 * STEP_NS, "{pauses_ns:?}");
    }
    assert!(
        pauses_ns
            .iter()
            .all(|&pause_ns| pause_ns <= SECOND_NS + STEP_NS)
    );
    assert!(is_shared(&paths.sent, 0));
    // The answer to the next probe brings it back.
    paths.is_dead[1] = false;
    paths.run(2 * SECOND_NS, true);
    assert!(!paths.is_inactive(1));
    paths.sent.clear();
    paths.run(5_000_000, true);
    assert!(is_shared(&paths.sent, 1));
    paths.run(SECOND_NS, false);
    assert!(paths.sender.is_idle());
    assert_eq!(paths.taken, paths.offered);
}

/// A frame that is lost on one path is sent again over the other, though both are as busy.
#[test]
fn what_a_path_lost_goes_over_the_other() {
    let mut paths = Paths::new(two_paths());
    paths.run(3_000_000, true);
    for turn in 0..20 {
        let path = turn % 2;
        paths.lose_next = Some(path);
        paths.sent.clear();
        while !paths.sent.iter().any(|sent| sent.is_retransmission) {
            paths.run(STEP_NS, true);
            assert!(
                !paths.is_inactive(path),
                "one loss is no reason to leave it"
            );
        }
        let is_again = |sent: &&Sent| sent.is_retransmission;
        let again = paths.sent.iter().find(is_again).unwrap();
        assert_eq!(again.path, 1 - path, "turn {turn}");
        paths.run(200_000, true);
    }
    assert_eq!(paths.sender.statistics().retransmitted, 20);
}

/// A path on which an answer is late for once is not left for one that has delivered nothing for
/// much longer.
#[test]
fn a_slow_path_is_not_left_for_a_dead_one() {
    // Whichever timeout passes first.
    for turn in 0..40 {
        let mut paths = Paths::new(two_paths());
        paths.run(5_000_000, true);
        paths.is_dead[0] = true;
        while !paths.is_inactive(0) {
            paths.run(STEP_NS, true);
        }
        // Of the other one, nothing is heard any more either, so its timeouts grow: but the worst
        // path is better than none.
        paths.run(turn * 50_000, true);
        paths.is_dead[1] = true;
        paths.run(SECOND_NS / 4, true);
        paths.is_dead[0] = false;
        while paths.is_inactive(0) {
            paths.run(STEP_NS, true);
        }
        let lost = |paths: &Paths| paths.sender.path_statistics(0).unwrap().lost;
        let before = lost(&paths);
        paths.is_stopped = true;
        while lost(&paths) == before {
            paths.run(STEP_NS, true);
        }
        assert!(!paths.is_inactive(0), "turn {turn}");
        paths.is_stopped = false;
        paths.run(SECOND_NS, false);
        assert!(paths.is_inactive(1) && paths.sender.is_idle());
        assert_eq!(paths.taken, paths.offered);
    }
}

/// When all paths have failed, all are tried: the worst is better than none.
#[test]
fn the_last_path_is_never_left() {
    let mut paths = Paths::new(two_paths());
    paths.run(5_000_000, true);
    paths.is_dead = [true; 2];
    paths.run(SECOND_NS / 2, true);
    assert!(!(paths.is_inactive(0) && paths.is_inactive(1)));
    paths.is_dead = [false; 2];
    paths.run(2 * SECOND_NS, false);
    assert!(paths.sender.is_idle() && paths.sender.close_reason().is_none());
    assert_eq!(paths.taken, paths.offered);
}

/// The last path that is used dies while another, which was left long ago, is well again: it is
/// tried as soon as a timeout of the last one has passed, and not only when its next probe is due.
#[test]
fn a_path_that_is_well_again_is_tried_when_the_last_one_dies() {
    let mut paths = Paths::new(two_paths());
    paths.run(5_000_000, true);
    paths.is_dead[0] = true;
    // Until its probes are a second apart; the last one was just sent.
    paths.run(3 * SECOND_NS, true);
    assert!(paths.is_inactive(0));
    paths.sent.clear();
    while paths.sent.iter().all(|sent| sent.path != 0) {
        paths.run(STEP_NS, true);
    }
    paths.run(4 * WAY_NS, true);
    paths.is_dead = [false, true];
    let (taken, died_ns) = (paths.taken, paths.now_ns);
    paths.run(2 * WAY_NS, true);
    let in_flight = paths.taken;
    while paths.taken == in_flight {
        paths.run(STEP_NS, true);
        assert!(
            paths.now_ns < died_ns + 2 * SECOND_NS,
            "nothing comes after {taken}"
        );
    }
    let took_ns = paths.now_ns - died_ns;
    assert!(
        took_ns < SECOND_NS / 5,
        "it took {took_ns} ns to try the other"
    );
    assert!(!paths.is_inactive(0));
}
