//! ExportedRegion pages: seen by both sides while the grant lasts, and by neither from the other
//! afterwards.

use rustix::fs::SealFlags;

use super::*;

const PAGE: u64 = PAGE_BYTES as u64;

fn filled(pages: u64) -> Area {
    let area = Area::lendable(pages * PAGE).unwrap();
    for page in 0..pages {
        area.fill(page * PAGE, PAGE, page as u8 + 1).unwrap();
    }
    area
}

fn byte(area: &Area, offset: u64) -> u8 {
    let mut byte = [0];
    area.read_at(offset, &mut byte).unwrap();
    byte[0]
}

#[test]
fn what_the_borrower_stores_is_in_the_area_until_it_is_taken_back() {
    let area = filled(8);
    let elsewhere = area.clone();
    let (mut lent, file) = ExportedRegion::lend(&area, 2 * PAGE..5 * PAGE).unwrap();
    let borrowed = ImportedRegion::adopt(file, lent.length_bytes()).unwrap();
    // Nothing changed by that.
    for page in 0..8 {
        for at in [0, PAGE - 1] {
            assert_eq!(byte(&elsewhere, page * PAGE + at), page as u8 + 1);
        }
    }
    assert!(borrowed.lasts());
    borrowed.store(0, &[77]).unwrap();
    borrowed.store(3 * PAGE - 1, &[78]).unwrap();
    assert_eq!(byte(&elsewhere, 2 * PAGE), 77);
    assert_eq!(byte(&area, 5 * PAGE - 1), 78);
    // And back: what the owner writes lies in the same pages.
    area.write_at(3 * PAGE, &[79]).unwrap();
    assert_eq!(borrowed.mapping.load_u64(PAGE_BYTES).unwrap() as u8, 79);
    let twice = ExportedRegion::lend(&elsewhere, 4 * PAGE..6 * PAGE).map(|_| ());
    assert_eq!(twice.unwrap_err(), LendError::LentAlready);
    lent.take_back().unwrap();
    lent.take_back().unwrap();
    assert!(!borrowed.lasts());
    for at in (0..3 * PAGE).step_by(512) {
        borrowed.store(at, &[99; 512]).unwrap();
    }
    assert_eq!(byte(&area, 2 * PAGE), 77);
    assert_eq!(byte(&elsewhere, 5 * PAGE - 1), 78);
    assert_eq!(byte(&area, 3 * PAGE), 79);
    assert_eq!((byte(&area, PAGE), byte(&area, 5 * PAGE)), (2, 6));
    // The same pages can be lent again, in a file that the former borrower does not have.
    let (again, file) = ExportedRegion::lend(&area, 2 * PAGE..5 * PAGE).unwrap();
    borrowed.store(0, &[100]).unwrap();
    assert_eq!(byte(&area, 2 * PAGE), 77);
    let other = ImportedRegion::adopt(file, 3 * PAGE).unwrap();
    other.store(0, &[101]).unwrap();
    assert_eq!(byte(&area, 2 * PAGE), 101);
    // What was taken back is not taken back once more, when somebody else has it.
    lent.take_back().unwrap();
    drop(lent);
    other.store(0, &[102]).unwrap();
    assert_eq!(byte(&area, 2 * PAGE), 102);
    drop(again);
    other.store(0, &[103]).unwrap();
    assert_eq!(byte(&area, 2 * PAGE), 102, "dropping takes back");
}

#[test]
fn a_file_has_the_pages_that_are_lent_and_no_others() {
    let area = filled(4);
    let (lent, file) = ExportedRegion::lend(&area, PAGE..2 * PAGE).unwrap();
    let borrowed = ImportedRegion::adopt(file, lent.length_bytes()).unwrap();
    assert_eq!(borrowed.mapping.len(), 2 * PAGE_BYTES);
    for (offset, len) in [
        (0, PAGE_BYTES + 1),
        (PAGE, 1),
        (u64::MAX, 1),
        (1, PAGE_BYTES),
    ] {
        assert_eq!(borrowed.store(offset, &vec![0; len]), Err(OutOfRange));
    }
    assert!(borrowed.lasts(), "nor can the word be stored by mistake");
    borrowed.store(PAGE, &[]).unwrap();
}

#[test]
fn what_cannot_be_lent_is_refused() {
    let refused = |area: &Area, range| ExportedRegion::lend(area, range).map(|_| ()).unwrap_err();
    let plain = Area::new(4 * PAGE).unwrap();
    assert_eq!(refused(&plain, 0..PAGE), LendError::NotLendable);
    let (handover, _reader) = Area::handover(4, PAGE_BYTES as u32).unwrap();
    assert_eq!(refused(&handover, 0..PAGE), LendError::NotLendable);
    let area = filled(4);
    for (start, end) in [
        (0, 0),
        (0, 1),
        (1, PAGE),
        (PAGE, PAGE),
        (2 * PAGE, PAGE),
        (0, 5 * PAGE),
        (4 * PAGE, 5 * PAGE),
        (u64::MAX, 0),
        (0, u64::MAX),
    ] {
        let expected = LendError::NotPages { start, end };
        assert_eq!(refused(&area, start..end), expected);
    }
    assert!(ExportedRegion::lend(&area, 0..4 * PAGE).is_ok());
    // Lengths that are no whole pages are made so.
    assert!(ExportedRegion::lend(&Area::lendable(1).unwrap(), 0..PAGE).is_ok());
}

#[test]
fn files_that_are_not_lent_pages_are_refused() {
    let file = |len| Memfd::create("test", len, 0).unwrap().into_fd();
    for length in [0, 1, PAGE + 1, LENT_BYTES_MAX + PAGE, u64::MAX - PAGE + 1] {
        let refused = ImportedRegion::adopt(file(PAGE_BYTES), length).map(|_| ());
        assert_eq!(refused.unwrap_err(), BorrowError::Length(length));
    }
    for len in [PAGE_BYTES, 3 * PAGE_BYTES] {
        let refused = ImportedRegion::adopt(file(len), PAGE)
            .map(|_| ())
            .unwrap_err();
        assert!(matches!(
            refused,
            BorrowError::Unsuitable(Unsuitable::Size { .. })
        ));
    }
    let unsealed = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&unsealed, 2 * PAGE).unwrap();
    let refused = ImportedRegion::adopt(unsealed, PAGE)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(refused, BorrowError::Unsuitable(Unsuitable::Unsealed));
    let unwritable = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::ALLOW_SEALING);
    let unwritable = unwritable.unwrap();
    rustix::fs::ftruncate(&unwritable, 2 * PAGE).unwrap();
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE;
    rustix::fs::fcntl_add_seals(&unwritable, seals).unwrap();
    let refused = ImportedRegion::adopt(unwritable, PAGE)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(refused, BorrowError::Unsuitable(Unsuitable::WriteSealed));
    assert!(ImportedRegion::adopt(file(2 * PAGE_BYTES), PAGE).is_ok());
}

/// A borrower that stores all the time, while the owner takes back: what the owner has read
/// since then stays.
#[test]
fn a_borrower_that_never_stops_changes_nothing_afterwards() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let area = filled(2);
    for _ in 0..50 {
        let (mut lent, file) = ExportedRegion::lend(&area, 0..2 * PAGE).unwrap();
        let borrowed = ImportedRegion::adopt(file, 2 * PAGE).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || {
                let mut value = 0_u8;
                while !stop.load(Ordering::Relaxed) {
                    value = value.wrapping_add(1);
                    borrowed.store(0, &[value; 2 * PAGE_BYTES]).unwrap();
                }
            });
            lent.take_back().unwrap();
            let mut before = [0; 2 * PAGE_BYTES];
            let mut after = [0; 2 * PAGE_BYTES];
            area.read_at(0, &mut before).unwrap();
            for _ in 0..20 {
                std::thread::yield_now();
                area.read_at(0, &mut after).unwrap();
                assert!(before == after);
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

/// Another thread uses the area while its pages are exchanged: it finds the old ones or the new.
#[test]
fn others_may_read_meanwhile() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let area = filled(4);
    let reading = area.clone();
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let thread = std::thread::spawn({
        let stop = stop.clone();
        move || {
            let mut bytes = [0; 4 * PAGE_BYTES];
            let mut rounds = 0_u64;
            while !stop.load(Ordering::Relaxed) || rounds == 0 {
                reading.read_at(0, &mut bytes).unwrap();
                let page = |at: usize| &bytes[at * PAGE_BYTES..(at + 1) * PAGE_BYTES];
                for at in 0..4 {
                    assert!(page(at).iter().all(|&byte| byte == at as u8 + 1));
                }
                rounds += 1;
            }
        }
    });
    for _ in 0..100 {
        let (mut lent, _file) = ExportedRegion::lend(&area, PAGE..3 * PAGE).unwrap();
        lent.take_back().unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

#[test]
fn bytes_of_an_area_count_as_stores_for_the_streaming_heuristic() {
    let owner = filled(8);
    let (lent, file) = ExportedRegion::lend(&owner, 0..8 * PAGE).unwrap();
    let mut borrowed = ImportedRegion::adopt(file, lent.length_bytes()).unwrap();
    borrowed.streaming = StreamingHeuristic::with_limit(4 * PAGE);
    let source = Area::new(PAGE).unwrap();
    source.fill(0, PAGE, 42).unwrap();
    for page in 0..8 {
        borrowed.store_from(page * PAGE, &source, 0, PAGE).unwrap();
        assert_eq!(byte(&owner, (page + 1) * PAGE - 1), 42);
    }
    // Nothing is stored outside, so nothing counts.
    assert_eq!(
        borrowed.store_from(8 * PAGE, &source, 0, PAGE),
        Err(Denied::OutOfArea)
    );
    let next = borrowed.streaming.way(8 * PAGE, 0);
    assert_eq!(next, StoreKind::NonTemporal);
}
