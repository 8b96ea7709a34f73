//! Both sides against a list, the reading side alone with a writer that lies, and both on the model
//! checker's atomics.

use core::sync::atomic::Ordering;
use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::geometry::Geometry;
use crate::shared::PAGE_BYTES;

struct Sides {
    mapping: Arc<Mapping>,
    writer: Reporter<SharedReports>,
    reader: ReportReader<SharedReports>,
}

fn sides() -> Sides {
    let geometry = Geometry::DEFAULT;
    let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let memory = || SharedReports::new(&mapping, geometry).unwrap();
    let (writer, reader) = (Reporter::new(memory()), ReportReader::new(memory()));
    Sides {
        mapping,
        writer,
        reader,
    }
}

fn report(number: u64) -> Report {
    [number, !number, number << 7, number ^ 0x55]
}

#[test]
fn reports_lie_within_the_control_page_beside_nothing_else() {
    let geometry = Geometry::DEFAULT;
    let words = [
        geometry.consumed_offset(),
        geometry.refused_offset(),
        geometry.awaited_offset(),
        geometry.attention_offset(),
        geometry.wake_offset(),
    ];
    assert!(
        words
            .iter()
            .all(|&word| word + 8 <= geometry.reports_offset())
    );
    let end = geometry.reports_offset() + REPORT_LINES * LINE_BYTES;
    assert!(end <= PAGE_BYTES && end <= geometry.cells_offset());
    let mut sides = sides();
    for number in 0..3 * REPORTS {
        sides.writer.add(&report(number));
    }
    for word in words
        .iter()
        .filter(|&&word| word != geometry.refused_offset())
    {
        assert_eq!(sides.mapping.load_u64(*word), Ok(0));
    }
}

proptest! {
    /// Whatever is written and fetched in whatever order, what is shown is the newest that were not
    /// fetched, in order, and the others are counted.
    #[test]
    fn what_is_not_fetched_is_counted(steps in prop::collection::vec((0..90_u64, 0..90_u64), 1..12)) {
        let mut sides = sides();
        let (mut kept, mut written, mut missed) = (VecDeque::new(), 0, 0);
        for (adds, fetches) in steps {
            for _ in 0..adds {
                sides.writer.add(&report(written));
                kept.push_back(report(written));
                written += 1;
            }
            prop_assert_eq!(sides.reader.count(written), Ok(written));
            let newest = written.checked_sub(1).map(report);
            prop_assert_eq!(sides.reader.last(written), Ok(newest));
            for _ in 0..fetches {
                while kept.len() as u64 > REPORTS_KEPT {
                    kept.pop_front();
                    missed += 1;
                }
                prop_assert_eq!(sides.reader.next(written), Ok(kept.pop_front()));
                prop_assert_eq!(sides.reader.missed(), missed);
            }
        }
    }
}

#[test]
fn a_count_that_cannot_be_is_refused() {
    let count_at = Geometry::DEFAULT.refused_offset();
    for lie in [8, u64::MAX, 1 << 63] {
        let mut sides = sides();
        sides.mapping.store_u64(count_at, lie).unwrap();
        assert_eq!(
            sides.reader.count(7),
            Err(Miscounted),
            "more than were sent"
        );
        assert_eq!(sides.reader.next(7), Err(Miscounted));
        assert_eq!(sides.reader.last(7), Err(Miscounted));
    }
    let mut sides = sides();
    for number in 0..5 {
        sides.writer.add(&report(number));
    }
    assert_eq!(sides.reader.count(7), Ok(5));
    sides.mapping.store_u64(count_at, 4).unwrap();
    assert_eq!(sides.reader.next(7), Err(Miscounted), "taken back");
}

/// Two places on the model checker's atomics: the writer generations the reader at once.
struct Modelled {
    places: [[loom::sync::atomic::AtomicU64; 2]; 2],
    count: loom::sync::atomic::AtomicU64,
    consumed: loom::sync::atomic::AtomicU64,
    is_fenced: bool,
}

impl ReportMemory for loom::sync::Arc<Modelled> {
    fn store(&self, number: u64, report: &Report) {
        if self.is_fenced {
            loom::sync::atomic::fence(Ordering::Release);
        }
        let place = &self.places[number as usize % 2];
        place[0].store(report[0], Ordering::Relaxed);
        place[1].store(report[1], Ordering::Relaxed);
    }
    fn load(&self, number: u64) -> Report {
        let place = &self.places[number as usize % 2];
        let report = [
            place[0].load(Ordering::Relaxed),
            place[1].load(Ordering::Relaxed),
            0,
            0,
        ];
        loom::sync::atomic::fence(Ordering::Acquire);
        report
    }
    fn store_count(&self, count: u64) {
        self.count.store(count, Ordering::Release);
    }
    fn load_count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }
}

/// Reports are written while they are read; a reader that says so by the count alone, with two
/// places.
fn no_torn_report_is_shown(is_fenced: bool) {
    loom::model(move || {
        let memory = loom::sync::Arc::new(Modelled {
            places: Default::default(),
            count: loom::sync::atomic::AtomicU64::new(0),
            consumed: loom::sync::atomic::AtomicU64::new(0),
            is_fenced,
        });
        let writer = {
            let memory = loom::sync::Arc::clone(&memory);
            loom::thread::spawn(move || {
                let mut writer = Reporter::new(memory);
                for number in 1..=3 {
                    writer.add(&[number, number, 0, 0]);
                }
            })
        };
        let reader = ReportReader::new(memory);
        let count = reader.memory.load_count();
        if let Some(last) = count.checked_sub(1) {
            let report = reader.memory.load(last);
            // As `ReportReader::read`, where one of two places can be read at a time.
            if reader.memory.load_count() - last <= 1 {
                assert_eq!(report, [last + 1, last + 1, 0, 0], "torn");
            }
        }
        writer.join().unwrap();
    });
}

#[test]
fn the_model_checker_finds_no_torn_report() {
    no_torn_report_is_shown(true);
}

#[test]
fn without_the_fence_the_checker_finds_a_torn_report() {
    assert!(std::panic::catch_unwind(|| no_torn_report_is_shown(false)).is_err());
}

/// A sender that sees the credit of a packet sees that it was refused.
#[test]
fn a_report_is_there_before_the_credit() {
    loom::model(|| {
        let memory = loom::sync::Arc::new(Modelled {
            places: Default::default(),
            count: loom::sync::atomic::AtomicU64::new(0),
            consumed: loom::sync::atomic::AtomicU64::new(0),
            is_fenced: true,
        });
        let consumer = {
            let memory = loom::sync::Arc::clone(&memory);
            loom::thread::spawn(move || {
                let mut writer = Reporter::new(loom::sync::Arc::clone(&memory));
                writer.add(&[7, 7, 0, 0]);
                memory.consumed.store(1, Ordering::Release);
            })
        };
        if memory.consumed.load(Ordering::Acquire) == 1 {
            let mut reader = ReportReader::new(loom::sync::Arc::clone(&memory));
            assert_eq!(reader.count(1), Ok(1));
            assert_eq!(reader.last(1), Ok(Some([7, 7, 0, 0])));
        }
        consumer.join().unwrap();
    });
}
