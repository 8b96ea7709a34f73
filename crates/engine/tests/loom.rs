//! Every order of the accesses by which application and interface meet: notification
//! queue, metadata entry, completion word.
//!
//! This test compiles the engine's own sources, but in a crate whose `atomic` module
//! holds loom's words instead of the processor's. So production code knows nothing
//! of loom and the models run in an ordinary `cargo test`.
#![allow(
    dead_code,
    unreachable_pub,
    unfulfilled_lint_expectations,
    reason = "the sources are a library's"
)]

extern crate alloc;

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}
#[path = "../src/awaited.rs"]
mod awaited;
#[path = "../src/counting.rs"]
mod counting;
#[path = "../src/entry_access.rs"]
mod entry_access;
#[path = "../src/grant.rs"]
mod grant;
#[path = "../src/key.rs"]
mod key;
#[path = "../src/limits.rs"]
mod limits;
#[path = "../src/memory.rs"]
mod memory;
#[path = "../src/message_queue.rs"]
mod message_queue;
#[path = "../src/metadata.rs"]
mod metadata;
#[path = "../src/notification.rs"]
mod notification;
#[path = "../src/operation.rs"]
mod operation;
#[path = "../src/packet.rs"]
mod packet;
#[path = "../src/point.rs"]
mod point;
#[path = "../src/port.rs"]
mod port;
#[path = "../src/port_membership.rs"]
mod port_membership;
#[path = "../src/port_set.rs"]
mod port_set;
#[path = "../src/receive.rs"]
mod receive;
#[path = "../src/receive_messages.rs"]
mod receive_messages;
#[path = "../src/receive_observer.rs"]
mod receive_observer;
#[path = "../src/receive_operations.rs"]
mod receive_operations;
#[path = "../src/receive_short.rs"]
mod receive_short;
#[path = "../src/receive_slots.rs"]
mod receive_slots;
#[path = "../src/received.rs"]
mod received;
#[path = "../src/refusal.rs"]
mod refusal;
#[path = "../src/responder.rs"]
mod responder;
#[path = "../src/slot.rs"]
mod slot;
#[path = "../src/table.rs"]
mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use counting::Counting;
use key::Key;
use limits::USER_METADATA_BYTES;
use memory::{Area, Denied, LinkId, NoWindow, Payload, copy_all};
use metadata::{MetadataArea, Permission};
use notification::{Notification, NotificationReader, queue};
use operation::{REQUEST_WORDS, leading_words};
use packet::{Flags, Header, Kind, SlotName};
use receive::{Received, Receiver};
use refusal::Refusal;
use slot::{Mode, Rights, SlotOptions};

/// Up to so many preemptions per execution; loom's authors find two to three enough.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

const PEER: LinkId = LinkId {
    index: 0,
    generation: 1,
};

fn numbered(number: u64) -> Notification {
    Notification {
        slot: SlotName::from_bits(number as u32 + 1),
        metadata_index: number as u16 + 7,
        word: number + 100,
        from: LinkId::from_bits(number + 1_000),
    }
}

/// A reader and what it knows.
struct Reading {
    reader: NotificationReader,
    position: u64,
    read: u64,
}

impl Reading {
    /// Pops once and checks that what comes is whole and in order.
    fn pop(&mut self) -> bool {
        match self.reader.pop() {
            Ok(Some(notification)) => {
                assert_eq!(
                    notification,
                    numbered(self.position),
                    "torn or out of order"
                );
                self.position += 1;
                self.read += 1;
                true
            }
            Ok(None) => false,
            Err(overrun) => {
                assert!(overrun.lost > 0);
                self.position += overrun.lost;
                true
            }
        }
    }
}

/// One thread pushes so many, another pops twice meanwhile, and the rest after it.
fn read_while_written(pushes: u64) -> Reading {
    let (mut writer, reader) = queue(2).unwrap();
    let mut reading = Reading {
        reader,
        position: 0,
        read: 0,
    };
    let writing =
        thread::spawn(move || (0..pushes).for_each(|number| writer.push(numbered(number))));
    reading.pop();
    reading.pop();
    writing.join().unwrap();
    while reading.pop() {}
    reading
}

#[test]
fn reader_that_keeps_up_sees_every_notification_whole() {
    explore(|| {
        let reading = read_while_written(2);
        assert_eq!((reading.read, reading.reader.lost()), (2, 0));
    });
}

#[test]
fn overrun_while_reading_never_tears_and_counts_every_loss() {
    for pushes in [3, 5] {
        explore(move || {
            let reading = read_while_written(pushes);
            assert!(reading.read >= 2, "what is left is read");
            assert_eq!(
                reading.read + reading.reader.lost(),
                pushes,
                "read and lost together are all"
            );
            assert_eq!(reading.position, pushes);
        });
    }
}

fn permission(number: u64) -> Permission {
    Permission {
        key: Key::from_bits(number),
        low: number * 10,
        high: number * 10 + 5,
    }
}

#[test]
fn packet_is_checked_against_one_permission_and_never_a_mixture() {
    explore(|| {
        let area = MetadataArea::new(1).unwrap();
        area.entry(0).unwrap().permit(permission(1));
        let applications = area.clone();
        let changing = thread::spawn(move || {
            applications.entry(0).unwrap().permit(permission(2));
            applications.entry(0).unwrap().permit(permission(3));
        });
        let seen = area.entry(0).unwrap().permission();
        assert!(
            seen.is_none() || [1, 2, 3].map(permission).contains(&seen.unwrap()),
            "{seen:?}"
        );
        changing.join().unwrap();
        assert_eq!(area.entry(0).unwrap().permission(), Some(permission(3)));
    });
}

/// The same for the fast path, which looks up the permission the shortest way: a packet under the
/// permission before is not let in by the arming that followed the next one.
#[test]
fn short_packet_is_let_in_by_one_permission_and_its_own_arming() {
    explore(|| {
        let area = MetadataArea::new(1).unwrap();
        let entry = area.entry(0).unwrap();
        entry.permit(permission(1));
        let applications = area.clone();
        let changing = thread::spawn(move || {
            let entry = applications.entry(0).unwrap();
            entry.permit(permission(2));
            entry.arm();
        });
        let admitted = |of: Permission| entry.admit_once(of.key, of.low, 1);
        assert_eq!(admitted(permission(1)), None, "it was spent");
        let limits = Some((permission(2).low, permission(2).high));
        let early = admitted(permission(2));
        assert!(early.is_none() || early == limits, "{early:?}");
        changing.join().unwrap();
        assert_eq!(admitted(permission(2)), limits);
    });
}

/// Eight bytes in one word of loom's, so that the application can read while the interface writes.
#[derive(Clone, Debug)]
struct WordArea(Arc<AtomicU64>);

impl Area for WordArea {
    type Window = NoWindow;

    fn window(&self, _: u64, _: u64) -> NoWindow {
        NoWindow
    }

    fn length_bytes(&self) -> u64 {
        100
    }

    fn write(&self, _: u64, from: &[u8]) -> Result<(), Denied> {
        self.0.store(u64::from(from[0]), Ordering::Relaxed);
        Ok(())
    }

    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), Denied> {
        Err(Denied::OutOfArea)
    }
}

#[derive(Clone)]
struct Bytes(u8);

impl Payload<WordArea> for Bytes {
    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        into[..length_bytes].fill(self.0);
    }

    fn words(&self) -> [u64; REQUEST_WORDS] {
        leading_words(&[self.0])
    }

    fn deposit(&self, area: &WordArea, offset: u64) -> Result<(), Denied> {
        area.write(offset, &[self.0])
    }

    fn copy_to(&self, into: &mut [u8]) -> Result<(), Denied> {
        copy_all(&[self.0], into)
    }
}

fn one_shot_slot(
    area: &WordArea,
    metadata: &MetadataArea,
) -> (Receiver<WordArea>, SlotName, NotificationReader) {
    let mut receiver = Receiver::new(None);
    receiver.set_up(0);
    let (queue, reader) = receiver.open_queue(2).unwrap();
    let slot = receiver
        .open_slot(SlotOptions {
            area: area.clone(),
            base: 0,
            length_bytes: 100,
            key: Key::from_bits(0),
            rights: Rights::WRITE,
            mode: Mode::ParanoidOneShot,
            metadata: Some(metadata.clone()),
            queue: Some(queue),
            counting: Counting::Bits32,
        })
        .unwrap();
    (receiver, slot, reader)
}

fn header(slot: SlotName, permission: Permission, flags: Flags) -> Header {
    Header {
        slot,
        metadata_index: 0,
        key: permission.key,
        offset: permission.low,
        length_bytes: 1,
        word: 0,
        metadata_length_bytes: 4,
        flags,
        kind: Kind::WRITE,
    }
}

/// The application gives an entry to another sender while the former one still sends. The entry was
/// spent, or it was armed: then the application changes it between two packets, as a network
/// processor takes them.
#[test]
fn former_holder_of_an_entry_cannot_use_up_its_next_arming() {
    for was_armed in [false, true] {
        explore(move || {
            let area = WordArea(Arc::new(AtomicU64::new(0)));
            let metadata = MetadataArea::new(1).unwrap();
            let (receiver, slot, _reader) = one_shot_slot(&area, &metadata);
            let receiver = loom::sync::Arc::new(loom::sync::Mutex::new(receiver));
            metadata.entry(0).unwrap().permit(permission(1));
            if was_armed {
                metadata.entry(0).unwrap().arm();
            }
            let (applications, lent, seen) = (metadata.clone(), receiver.clone(), area.clone());
            let application = thread::spawn(move || {
                let entry = applications.entry(0).unwrap();
                let change = || {
                    entry.disarm();
                    entry.permit(permission(2));
                    entry.arm();
                };
                if was_armed {
                    let _between_packets = lent.lock().unwrap();
                    change();
                } else {
                    change();
                }
                // From here on nothing of the former holder is written.
                seen.0.load(Ordering::Relaxed)
            });
            let result = receiver.lock().unwrap().receive(
                PEER,
                &header(slot, permission(1), Flags::NONE),
                &Bytes(1),
                None,
            );
            let refused = matches!(
                result,
                Err(Refusal::EntrySpent | Refusal::BadEntryKey | Refusal::OutOfLimits)
            );
            let may_be_in = was_armed && result == Ok(Received::Complete);
            assert!(refused || may_be_in, "{result:?}");
            let seen = application.join().unwrap();
            assert_eq!(seen, area.0.load(Ordering::Relaxed), "written afterwards");
            let entry = metadata.entry(0).unwrap();
            assert!(entry.is_armed(), "used up");
            let result = receiver.lock().unwrap().receive(
                PEER,
                &header(slot, permission(2), Flags::NONE),
                &Bytes(2),
                None,
            );
            assert_eq!(result, Ok(Received::Complete));
        });
    }
}

/// A thread that pops the notification finds data, metadata and a spent entry.
#[test]
fn notification_follows_data_and_metadata() {
    // Not one of the modelled words: whether the model ever came to the point.
    static TOLD: AtomicBool = AtomicBool::new(false);
    explore(|| {
        let area = WordArea(Arc::new(AtomicU64::new(0)));
        let metadata = MetadataArea::new(1).unwrap();
        let (mut receiver, slot, mut reader) = one_shot_slot(&area, &metadata);
        metadata.entry(0).unwrap().permit(permission(1));
        metadata.entry(0).unwrap().arm();
        let interface = thread::spawn(move || {
            receiver.receive(
                PEER,
                &header(slot, permission(1), Flags::NONE),
                &Bytes(7),
                None,
            )
        });
        let application = thread::spawn(move || {
            let told = reader.pop().unwrap().is_some();
            if told {
                let mut bytes = [0; USER_METADATA_BYTES];
                let entry = metadata.entry(0).unwrap();
                assert_eq!(area.0.load(Ordering::Relaxed), 7);
                assert_eq!(entry.metadata(&mut bytes), 4);
                assert_eq!(bytes[..4], [7; 4]);
                assert!(!entry.is_armed());
            }
            told
        });
        TOLD.fetch_or(application.join().unwrap(), Relaxed);
        assert_eq!(interface.join().unwrap(), Ok(Received::Complete));
    });
    assert!(TOLD.load(Relaxed));
}

/// A silent message announces itself by its entry alone: spent means there.
#[test]
fn spent_entry_follows_the_data_of_a_silent_message() {
    // Not one of the modelled words: whether the model ever came to the point.
    static SPENT: AtomicBool = AtomicBool::new(false);
    explore(|| {
        let area = WordArea(Arc::new(AtomicU64::new(0)));
        let metadata = MetadataArea::new(1).unwrap();
        let (mut receiver, slot, _reader) = one_shot_slot(&area, &metadata);
        metadata.entry(0).unwrap().permit(permission(1));
        metadata.entry(0).unwrap().arm();
        let interface = thread::spawn(move || {
            receiver.receive(
                PEER,
                &header(slot, permission(1), Flags::SILENT),
                &Bytes(7),
                None,
            )
        });
        let application = thread::spawn(move || {
            let entry = metadata.entry(0).unwrap();
            let spent = !entry.is_armed();
            if spent {
                assert_eq!(area.0.load(Ordering::Relaxed), 7);
                assert_eq!(entry.metadata_length_bytes(), 4);
            }
            spent
        });
        SPENT.fetch_or(application.join().unwrap(), Relaxed);
        assert_eq!(interface.join().unwrap(), Ok(Received::Complete));
    });
    assert!(SPENT.load(Relaxed));
}
