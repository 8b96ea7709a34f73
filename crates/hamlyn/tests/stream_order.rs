//! What a stream's sender says may arrive in any order, and long after the extent is gone of which
//! it speaks.

use crate::support::by_hand::{HandSender, Heard};
use crate::support::{LONG, namespace, open, until};
use hamlyn::host::process::ProcessHost;
use hamlyn::stream::{Receiver, StreamOptions};
use hamlyn::{Manager, ReceiveError, Wait};

/// Room for one extent of more pieces beside the first.
const OPTIONS: StreamOptions = StreamOptions {
    pieces: 4,
    piece_bytes: 64,
    limit_bytes: 20 * 64,
    ahead: false,
};
/// Longer than the first extent: 16 pieces.
const LONG_RECORD: u64 = 1000;

struct Scene {
    here: Manager<ProcessHost>,
    there: Manager<ProcessHost>,
    receiver: Receiver,
    sender: HandSender,
}

impl Scene {
    fn new() -> Self {
        let namespace = namespace();
        let (here, there) = (open(&namespace), open(&namespace));
        let receiver = Receiver::new(&here, OPTIONS).unwrap();
        let sender = HandSender::new(&there, receiver.make_seed());
        Self {
            here,
            there,
            receiver,
            sender,
        }
    }

    /// Takes in all that was said so far, of which nothing is a record.
    fn nothing(&mut self) {
        // What was said lies in the link, which this side may not know yet.
        until("the link", || {
            self.here.session().poll();
            self.here.session().peers().next().is_some().then_some(())
        });
        let look = self.receiver.recv(Wait::millis(1));
        assert!(matches!(look, Ok(None)), "{look:?}");
    }

    fn record(&mut self, expected: &[u8]) {
        until("a record", || {
            let record = self.receiver.recv(LONG).unwrap()?;
            assert_eq!(record, expected);
            Some(())
        });
    }

    fn ends(&mut self) {
        let end = self.receiver.recv(LONG);
        assert!(matches!(end, Err(ReceiveError::Closed)), "{end:?}");
    }

    fn breaks(&mut self) {
        let end = until("the end", || self.receiver.recv(LONG).err());
        assert!(
            matches!(
                end,
                ReceiveError::Malformed {
                    protocol: "stream",
                    ..
                }
            ),
            "{end}"
        );
    }

    fn hear(&mut self) -> Heard {
        self.sender.hear()
    }
}

#[test]
fn the_end_before_all_else() {
    let mut scene = Scene::new();
    let _ = &mut scene.there;
    scene.sender.close(0, 2);
    scene.sender.fill(1, b"second");
    scene.sender.fill(0, b"first");
    scene.record(b"first");
    scene.record(b"second");
    scene.ends();
    assert_eq!(scene.receiver.sender(), None);
    drop(scene.receiver);
    // The greeting comes to a slot that is closed, which does no harm.
    scene.sender.hello();
    assert_eq!(scene.here.session().slots_open(), 0);
}

#[test]
fn the_end_before_the_greeting() {
    let mut scene = Scene::new();
    scene.sender.fill(0, b"only");
    scene.sender.close(0, 1);
    scene.sender.hello();
    scene.record(b"only");
    scene.ends();
}

#[test]
fn a_demand_before_the_greeting_is_answered_after_it() {
    let mut scene = Scene::new();
    scene.sender.request_growth(0, 0, LONG_RECORD);
    scene.nothing();
    assert_eq!(scene.receiver.memory_bytes(), 4 * 64);
    scene.sender.hello();
    scene.nothing();
    assert_eq!(scene.hear(), Heard::Extent(1, 16, 1));
    // The first extent is gone; another grow request in it, as if it had crossed, is answered all
    // the same.
    assert_eq!(scene.receiver.memory_bytes(), 16 * 64);
    scene.sender.request_growth(0, 0, LONG_RECORD);
    scene.nothing();
    assert_eq!(scene.hear(), Heard::Credit(1, 2, false));
    // One that cannot be met is refused; the next is not.
    scene.sender.request_growth(1, 0, 1 << 20);
    scene.nothing();
    assert_eq!(scene.hear(), Heard::Credit(1, 3, true));
    scene.sender.request_growth(1, 0, 64);
    scene.nothing();
    assert_eq!(scene.hear(), Heard::Credit(1, 4, false));
    scene.sender.close(1, 0);
    scene.ends();
}

#[test]
fn an_end_in_an_extent_that_is_gone() {
    let mut scene = Scene::new();
    scene.sender.hello();
    scene.sender.fill(0, b"only");
    scene.record(b"only");
    assert_eq!(scene.hear(), Heard::Credit(0, 0, false));
    scene.sender.request_growth(0, 1, LONG_RECORD);
    scene.nothing();
    assert_eq!(scene.hear(), Heard::Extent(1, 16, 1));
    assert_eq!(scene.receiver.memory_bytes(), 16 * 64);
    scene.sender.close(0, 1);
    scene.ends();
}

/// The old extent ends where the grow request says, though its last piece comes later.
#[test]
fn a_demand_and_the_end_before_the_last_piece() {
    let mut scene = Scene::new();
    scene.sender.hello();
    scene.sender.request_growth(0, 2, LONG_RECORD);
    scene.nothing();
    assert_eq!(scene.hear(), Heard::Extent(1, 16, 1));
    scene.sender.close(0, 2);
    scene.sender.fill(1, b"second");
    scene.sender.fill(0, b"first");
    scene.record(b"first");
    scene.record(b"second");
    scene.ends();
}

#[test]
fn ends_and_demands_that_cannot_be_break_the_stream() {
    type Lie = fn(&HandSender, &Manager<ProcessHost>);
    let lies: [Lie; 10] = [
        |sender, _| sender.close(0, 5),
        |sender, _| sender.close(0, u64::MAX),
        |sender, _| sender.close(1, 0),
        |sender, _| sender.close(u64::MAX, 0),
        |sender, _| sender.request_growth(0, 5, 0),
        |sender, _| sender.request_growth(0, u64::MAX, u64::MAX),
        |sender, _| sender.request_growth(1, 0, 1),
        |sender, _| sender.request_growth(u64::MAX, 0, 1),
        // Where the extent before the newest did not end.
        |sender, _| {
            sender.request_growth(0, 0, LONG_RECORD);
            sender.close(0, 1);
        },
        |sender, _| {
            sender.close(0, 1);
            sender.fill(1, b"beyond");
            sender.fill(0, b"last");
        },
    ];
    for lie in lies {
        let mut scene = Scene::new();
        scene.sender.hello();
        lie(&scene.sender, &scene.there);
        scene.breaks();
        drop(scene.receiver);
        assert_eq!(scene.here.session().slots_open(), 0);
    }
}

/// What a piece says of itself is checked before a byte of it is looked at.
#[test]
fn pieces_that_cannot_be_break_the_stream() {
    const BYTES: [u8; 64] = [1; 64];
    // Kind, and length: of no kind, longer than their piece, first ones of records that are not,
    // and a later one without a first.
    let lies = [
        (0, 5),
        (6, 5),
        (1, 65),
        (4, 65),
        (2, 64),
        (2, 0),
        (3, 64),
        // Beyond the last piece.
        (2, 2 * 64 + 1),
        (2, 4 * 64 + 1),
        (2, u32::MAX),
        // Records that share a piece and do not fit it.
        (4, 0),
        (4, 3),
        (4, 64),
    ];
    for (kind, length_bytes) in lies {
        let mut scene = Scene::new();
        scene.sender.hello();
        for index in 0..2 {
            scene.sender.fill(index, b"right");
            scene.record(b"right");
        }
        for index in 2..4 {
            scene.sender.put(index, &BYTES, kind, length_bytes);
        }
        scene.breaks();
        drop(scene.receiver);
        assert_eq!(scene.here.session().slots_open(), 0);
    }
}

/// Of the largest that the limit allows, after any other, and with a queue that has no entry for
/// each of its pieces.
#[test]
fn a_record_of_the_limit_passes_whatever_came_before() {
    const LIMIT: usize = 64 << 10;
    for queue_entries in [16, 128, 4096] {
        let namespace = namespace();
        let options = hamlyn::ManagerOptions {
            queue_entries,
            ..hamlyn::ManagerOptions::default()
        };
        let space = hamlyn::host::process::Options::default().in_namespace(&namespace);
        let here: Manager<ProcessHost> = hamlyn::open_with(space, options).unwrap();
        let mut receiver = Receiver::new(
            &here,
            StreamOptions {
                pieces: 4,
                piece_bytes: 64,
                limit_bytes: LIMIT as u64,
                ahead: false,
            },
        )
        .unwrap();
        let seed = receiver.make_seed();
        let lengths = [
            10,
            LIMIT,
            1,
            LIMIT / 2 + 1,
            LIMIT,
            LIMIT,
            0,
            3 * LIMIT / 4,
            LIMIT,
        ];
        std::thread::scope(|scope| {
            let there = scope.spawn(|| {
                let there = open(&namespace);
                let mut sender = hamlyn::stream::Sender::grow(&there, &seed, LONG).unwrap();
                for length in lengths {
                    sender.send(&vec![length as u8; length], LONG).unwrap();
                }
                let too_long = sender.send(&[0; LIMIT + 1], LONG);
                let limit_bytes = LIMIT as u64;
                let length_bytes = limit_bytes + 1;
                assert_eq!(
                    too_long,
                    Err(hamlyn::SendError::RecordTooLarge {
                        length_bytes,
                        limit_bytes
                    })
                );
                sender.close(LONG).unwrap();
            });
            for length in lengths {
                until("a record", || {
                    let record = receiver.recv(Wait::millis(20)).unwrap()?;
                    assert_eq!(record.len(), length);
                    assert!(record.iter().all(|&byte| byte == length as u8));
                    Some(())
                });
            }
            let end = until("the end", || match receiver.recv(Wait::millis(20)) {
                Ok(None) => None,
                other => Some(other.map(drop)),
            });
            assert_eq!(end, Err(ReceiveError::Closed));
            there.join().unwrap();
        });
    }
}

/// All of the first extent is given back before the stream moves on from it, and then nothing comes
/// that would be released.
#[test]
fn a_demand_is_answered_when_an_extent_was_given_back_early() {
    let mut scene = Scene::new();
    scene.sender.hello();
    scene.sender.request_growth(0, 1, LONG_RECORD);
    scene.nothing();
    assert_eq!(scene.hear(), Heard::Extent(1, 16, 1));
    scene.sender.fill(0, b"late");
    scene.record(b"late");
    scene.sender.request_growth(1, 0, OPTIONS.limit_bytes);
    scene.nothing();
    assert_eq!(scene.hear(), Heard::Extent(2, 20, 2));
}

/// A demand that must wait is answered when what is in its way is released, also if that was kept.
#[test]
fn a_demand_waits_for_what_is_kept() {
    let mut scene = Scene::new();
    scene.sender.hello();
    scene.sender.fill(0, b"kept");
    let kept = until("a record", || {
        let record = scene.receiver.recv(LONG).unwrap()?;
        Some(record.keep())
    });
    scene.sender.request_growth(0, 1, OPTIONS.limit_bytes);
    scene.nothing();
    assert_eq!(scene.receiver.view(&kept), Some(&b"kept"[..]));
    assert_eq!(scene.receiver.memory_bytes(), 4 * 64);
    drop(kept);
    scene.nothing();
    let mut heard = scene.hear();
    while heard == Heard::Credit(0, 0, false) {
        heard = scene.hear();
    }
    assert_eq!(heard, Heard::Extent(1, 20, 1));
}
