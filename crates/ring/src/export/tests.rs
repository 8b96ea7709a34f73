//! Exported areas: mapped by several at once, and by nobody any more once they were taken back.

use std::io;

use hamlyn_engine::operation::{Atomic, Change, Width};
use rustix::fs::{FallocateFlags, fallocate, fstat, ftruncate};
use rustix::io::Errno as Failed;

use super::*;
use crate::memfd::Unsuitable;
use crate::shared::OutOfRange;

const PAGE: u64 = PAGE_BYTES as u64;

fn area(length_bytes: u64) -> Area {
    let options = ExportableOptions {
        length_bytes,
        address: None,
    };
    Area::exportable(options).unwrap()
}

fn twin(files: &ExportFiles) -> ExportFiles {
    let twin = |fd: &OwnedFd| fd.try_clone().unwrap();
    ExportFiles {
        area: twin(&files.area),
        state: twin(&files.state),
    }
}

fn import(files: &ExportFiles, length_bytes: u64, access: Access) -> Arc<ImportedArea> {
    Arc::new(ImportedArea::adopt(twin(files), length_bytes, access).unwrap())
}

fn window(imported: &Arc<ImportedArea>) -> DirectWindow {
    imported.direct_window(0..imported.length_bytes()).unwrap()
}

fn word(area: &Area, offset: u64) -> u64 {
    area.load_u64(offset).unwrap()
}

#[test]
fn several_importers_share_the_area_until_it_is_taken_back() {
    let area = area(4 * PAGE - 5);
    area.store_u64(8, 11).unwrap();
    let (mut exported, files) = ExportedArea::export(&area, Access::Writable).unwrap();
    assert_eq!(exported.length_bytes(), 4 * PAGE);
    let one = import(&files, 4 * PAGE, Access::Writable);
    let other = import(&files, 4 * PAGE, Access::Writable);
    let (one_window, other_window) = (window(&one), window(&other));
    assert_eq!(one_window.load_u64(8), Ok(11));
    one_window.store_u64(3 * PAGE, 12).unwrap();
    assert_eq!(word(&area, 3 * PAGE), 12);
    assert_eq!(other_window.load_u64(3 * PAGE), Ok(12));
    assert!(one.lasts() && other.lasts());
    exported.take_back().unwrap();
    exported.take_back().unwrap();
    assert!(!one.lasts() && !other_window.lasts());
    // Nobody reaches the owner now, and the owner has what was there.
    one_window.store_u64(8, 99).unwrap();
    assert_eq!((word(&area, 8), word(&area, 3 * PAGE)), (11, 12));
    area.store_u64(8, 13).unwrap();
    assert_eq!(other_window.load_u64(8), Ok(99));
    // It can be exported anew, in a file that the former importers do not have.
    let (again, files) = ExportedArea::export(&area, Access::Writable).unwrap();
    let third = window(&import(&files, 4 * PAGE, Access::Writable));
    assert_eq!(third.load_u64(8), Ok(13));
    one_window.store_u64(8, 100).unwrap();
    assert_eq!(third.load_u64(8), Ok(13));
    assert!(!one.lasts());
    drop(again);
    third.store_u64(8, 101).unwrap();
    assert_eq!(word(&area, 8), 13, "dropping takes back");
}

#[test]
fn an_importer_that_lets_go_tells_no_other() {
    let area = area(PAGE);
    let (_exported, files) = ExportedArea::export(&area, Access::Writable).unwrap();
    let one = import(&files, PAGE, Access::Writable);
    let other = import(&files, PAGE, Access::Writable);
    one.let_go();
    assert!(!window(&one).lasts() && other.lasts());
}

#[test]
fn the_word_that_says_whether_it_lasts_can_be_written_by_nobody_else() {
    let area = area(PAGE);
    let (_exported, files) = ExportedArea::export(&area, Access::Writable).unwrap();
    let written = rustix::io::pwrite(&files.state, &[0], 0);
    assert_eq!(written, Err(Failed::PERM));
    let state = Memfd::adopt_for_reading(files.state, PAGE_BYTES).unwrap();
    assert_eq!(state.map(Access::Writable).unwrap_err(), Failed::PERM);
}

#[test]
fn the_kernel_lets_readers_only_read() {
    let area = area(2 * PAGE);
    area.store_u64(0, 5).unwrap();
    let (mut exported, files) = ExportedArea::export(&area, Access::ReadOnly).unwrap();
    let reader = import(&files, 2 * PAGE, Access::ReadOnly);
    let reading = window(&reader);
    assert!(!reader.is_writable() && !reading.is_writable());
    area.store_u64(PAGE, 6).unwrap();
    assert_eq!(
        (reading.load_u64(0), reading.load_u64(PAGE)),
        (Ok(5), Ok(6))
    );
    let add = Atomic::new(Change::Add, Width::Bits64, 1);
    assert_eq!(reading.store_u64(0, 1), Err(OutOfRange));
    assert_eq!(reading.write(0, &[1]), Err(OutOfRange));
    assert_eq!(reading.change(0, &add), Err(OutOfRange));
    // Nor by other means.
    assert_eq!(rustix::io::pwrite(&files.area, &[1], 0), Err(Failed::PERM));
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&files.area, punch, 0, PAGE), Err(Failed::PERM));
    let again = std::fs::File::options()
        .write(true)
        .read(true)
        .open(format!("/proc/self/fd/{}", fd_number(&files.area)));
    if let Ok(again) = again {
        let again = Memfd::adopt_sparse(again.into(), 2 * PAGE_BYTES, Access::ReadOnly).unwrap();
        assert_eq!(again.map(Access::Writable).unwrap_err(), Failed::PERM);
    }
    let adopted = ImportedArea::adopt(twin(&files), 2 * PAGE, Access::Writable);
    let sealed = BorrowError::Unsuitable(Unsuitable::WriteSealed);
    assert_eq!(adopted.unwrap_err(), sealed);
    // The owner goes on writing, also when it was taken back.
    exported.take_back().unwrap();
    area.store_u64(0, 7).unwrap();
    assert_eq!((word(&area, 0), word(&area, PAGE)), (7, 6));
    assert_eq!(reading.load_u64(0), Ok(5));
    assert!(ExportedArea::export(&area, Access::Writable).is_ok());
}

fn fd_number(fd: &OwnedFd) -> i32 {
    use std::os::fd::AsRawFd as _;
    fd.as_raw_fd()
}

#[test]
fn importers_cannot_change_its_size_and_holes_are_zeros() {
    let area = area(3 * PAGE);
    for page in 0..3 {
        area.store_u64(page * PAGE, page + 1).unwrap();
    }
    let (mut exported, files) = ExportedArea::export(&area, Access::Writable).unwrap();
    for length in [0, PAGE, 4 * PAGE] {
        assert_eq!(ftruncate(&files.area, length), Err(Failed::PERM));
    }
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&files.area, punch, PAGE, PAGE).unwrap();
    assert_eq!(
        [word(&area, 0), word(&area, PAGE), word(&area, 2 * PAGE)],
        [1, 0, 3]
    );
    fallocate(&files.area, punch, 0, 3 * PAGE).unwrap();
    exported.take_back().unwrap();
    assert_eq!(
        [word(&area, 0), word(&area, PAGE), word(&area, 2 * PAGE)],
        [0, 0, 0]
    );
    area.store_u64(PAGE, 4).unwrap();
    assert_eq!(word(&area, PAGE), 4);
}

fn present_pages(files: &ExportFiles) -> u64 {
    fstat(&files.area).unwrap().st_blocks as u64 * 512 / PAGE
}

#[test]
fn only_pages_that_were_touched_take_memory_also_when_it_is_taken_back() {
    let area = area(1 << 36);
    let places = [0, 5 * PAGE, (1 << 20) * PAGE, (1 << 36) - PAGE];
    for (number, place) in places.into_iter().enumerate() {
        area.store_u64(place, number as u64 + 1).unwrap();
    }
    let (mut exported, files) = ExportedArea::export(&area, Access::Writable).unwrap();
    assert_eq!(present_pages(&files), 4);
    let importer = window(&import(&files, 1 << 36, Access::Writable));
    importer.store_u64(9 * PAGE, 9).unwrap();
    exported.take_back().unwrap();
    for (number, place) in places.into_iter().enumerate() {
        assert_eq!(word(&area, place), number as u64 + 1);
    }
    assert_eq!(word(&area, 9 * PAGE), 9);
    let (_again, files) = ExportedArea::export(&area, Access::Writable).unwrap();
    assert_eq!(present_pages(&files), 5);
}

#[test]
fn an_owner_chooses_the_address_and_never_where_something_is() {
    // Far from where the kernel and the loader put anything by themselves.
    let free = 0x2a00_0000_0000;
    let at = |address, length_bytes| {
        Area::exportable(ExportableOptions {
            length_bytes,
            address: Some(address),
        })
    };
    let here = at(free, 3 * PAGE).unwrap();
    here.store_u64(PAGE, 3).unwrap();
    let own = here.direct_window(0..3 * PAGE).unwrap();
    assert_eq!(own.as_ptr() as usize, free);
    for address in [free, free + PAGE_BYTES] {
        let occupied = ExportableError::Occupied {
            address,
            length_bytes: 3 * PAGE,
        };
        assert_eq!(at(address, 3 * PAGE).unwrap_err(), occupied);
    }
    assert_eq!(own.load_u64(PAGE), Ok(3), "nothing was replaced");
    for address in [free + 1, free + 2048, usize::MAX] {
        let refused = at(address, PAGE).unwrap_err();
        assert_eq!(refused, ExportableError::Address(address));
    }
    // Not in the lower half of the address space.
    assert!(matches!(
        at(usize::MAX & !0xfff, PAGE),
        Err(ExportableError::Map(_))
    ));
}

#[test]
fn lengths_that_are_impossible_are_refused() {
    for length_bytes in [0, EXPORTED_BYTES_MAX + 1, u64::MAX] {
        let options = ExportableOptions {
            length_bytes,
            address: None,
        };
        let refused = Area::exportable(options).unwrap_err();
        assert_eq!(refused, ExportableError::Length(length_bytes));
    }
}

#[test]
fn areas_that_were_not_made_for_it_or_are_exported_are_refused() {
    let refused = |area: &Area| ExportedArea::export(area, Access::Writable).map(drop);
    let (handover, _reader) = Area::handover(4, PAGE_BYTES as u32).unwrap();
    for area in [
        Area::new(PAGE).unwrap(),
        Area::lendable(PAGE).unwrap(),
        handover,
    ] {
        assert_eq!(refused(&area), Err(ExportError::NotExportable));
    }
    let area = area(PAGE);
    let exported = ExportedArea::export(&area, Access::ReadOnly).unwrap();
    assert_eq!(refused(&area.clone()), Err(ExportError::ExportedAlready));
    drop(exported);
    assert_eq!(refused(&area), Ok(()));
    use hamlyn_engine::memory::Area as _;
    assert!(!area.is_private(), "no paranoid slot has it");
    use crate::lending::{ExportedRegion, LendError};
    let lent = ExportedRegion::lend(&area, 0..PAGE).map(drop);
    assert_eq!(lent, Err(LendError::NotLendable));
}

#[test]
fn files_that_are_no_exported_area_are_refused() {
    let area = area(2 * PAGE);
    let (_exported, files) = ExportedArea::export(&area, Access::Writable).unwrap();
    let adopt = |files, length| {
        let adopted = ImportedArea::adopt(files, length, Access::Writable);
        adopted.map(drop).unwrap_err()
    };
    for length in [0, 1, PAGE + 1, EXPORTED_BYTES_MAX + PAGE, u64::MAX] {
        assert_eq!(adopt(twin(&files), length), BorrowError::Length(length));
    }
    let size = Unsuitable::Size {
        actual_bytes: 2 * PAGE,
    };
    assert_eq!(adopt(twin(&files), PAGE), BorrowError::Unsuitable(size));
    let ordinary = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    let (pipe, _other) = io::pipe().unwrap();
    for bad in [ordinary(), pipe.into()] {
        let with_bad_area = ExportFiles {
            area: bad.try_clone().unwrap(),
            ..twin(&files)
        };
        assert!(matches!(
            adopt(with_bad_area, 2 * PAGE),
            BorrowError::Unsuitable(_)
        ));
        let with_bad_state = ExportFiles {
            state: bad,
            ..twin(&files)
        };
        assert!(matches!(
            adopt(with_bad_state, 2 * PAGE),
            BorrowError::Unsuitable(_)
        ));
    }
    // A state that its importers could write, or that could shrink.
    let swapped = ExportFiles {
        state: Memfd::create("test", PAGE_BYTES, PAGE_BYTES)
            .unwrap()
            .into_fd(),
        ..twin(&files)
    };
    let unsealed = BorrowError::Unsuitable(Unsuitable::Unsealed);
    assert_eq!(adopt(swapped, 2 * PAGE), unsealed);
    // For reading only, though it is not sealed so.
    let adopted = ImportedArea::adopt(twin(&files), 2 * PAGE, Access::ReadOnly);
    assert_eq!(adopted.map(drop), Err(unsealed));
}

#[test]
fn windows_have_bounds_and_every_size_of_word() {
    let area = area(PAGE);
    let (_exported, files) = ExportedArea::export(&area, Access::Writable).unwrap();
    let imported = import(&files, PAGE, Access::Writable);
    let own = area.direct_window(64..128).unwrap();
    let foreign = imported.direct_window(64..128).unwrap();
    for window in [&own, &foreign] {
        assert_eq!(window.length_bytes(), 64);
        for end in [64, 65, 4096, u64::MAX - 3, u64::MAX] {
            assert_eq!(window.load_u8(end), Err(OutOfRange));
            assert_eq!(window.store_u8(end, 1), Err(OutOfRange));
            assert_eq!(window.read(end, &mut [0; 1]), Err(OutOfRange));
        }
        for (bytes, at) in [(2, 63), (4, 61), (8, 57), (8, u64::MAX)] {
            assert_eq!(window.write(at, &[0; 8][..bytes]), Err(OutOfRange));
        }
        assert_eq!(window.load_u16(63), Err(OutOfRange));
        assert_eq!(window.load_u32(61), Err(OutOfRange));
        assert_eq!(window.load_u64(57), Err(OutOfRange));
        assert_eq!(window.store_u64(57, 1), Err(OutOfRange));
    }
    own.store_u64(56, 0x8877_6655_4433_2211).unwrap();
    assert_eq!(foreign.load_u64(56), Ok(0x8877_6655_4433_2211));
    assert_eq!(foreign.load_u32(57), Ok(0x5544_3322));
    assert_eq!(foreign.load_u16(62), Ok(0x8877));
    assert_eq!(foreign.load_u8(63), Ok(0x88));
    foreign.store_u8(63, 0x99).unwrap();
    foreign.store_u16(61, 0xbbaa).unwrap();
    foreign.store_u32(56, 0xddcc_ffee).unwrap();
    assert_eq!(own.load_u64(56), Ok(0x99bb_aa55_ddcc_ffee));
    assert_eq!(word(&area, 128), 0);
    assert_eq!(word(&area, 56), 0);
    // Changes are of words that lie at multiples of their width in the area, whatever the window.
    let add = Atomic::new(Change::Add, Width::Bits64, 5);
    let crooked = imported.direct_window(4..20).unwrap();
    assert_eq!(crooked.change(4, &add), Ok(0));
    assert_eq!(crooked.change(0, &add), Err(OutOfRange));
    assert_eq!(crooked.change(12, &add), Err(OutOfRange));
    assert_eq!(word(&area, 8), 5);
    // Only what lies there.
    assert!(imported.direct_window(0..PAGE + 1).is_none());
    assert!(imported.direct_window(PAGE + 1..PAGE + 1).is_none());
    assert!(area.direct_window(1..u64::MAX).is_none());
    #[expect(clippy::reversed_empty_ranges, reason = "they are to be refused")]
    let reversed = area.direct_window(8..0);
    assert!(reversed.is_none());
    let (handover, _reader) = Area::handover(4, 16).unwrap();
    assert!(handover.direct_window(0..16).is_none());
}

#[test]
fn a_window_keeps_the_memory_of_both_sides() {
    let area = area(PAGE);
    let (exported, files) = ExportedArea::export(&area, Access::Writable).unwrap();
    let foreign = window(&import(&files, PAGE, Access::Writable));
    let own = area.direct_window(0..PAGE).unwrap();
    drop((area, exported, files));
    own.store_u64(0, 1).unwrap();
    foreign.store_u64(8, 2).unwrap();
    assert_eq!((own.load_u64(0), foreign.load_u64(8)), (Ok(1), Ok(2)));
}

#[test]
fn readers_find_every_word_while_it_is_taken_back() {
    let area = area(64 * PAGE);
    let pages = 64;
    for page in 0..pages {
        area.store_u64(page * PAGE, page + 1).unwrap();
    }
    let own = area.direct_window(0..pages * PAGE).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for page in 0..pages {
                    assert_eq!(own.load_u64(page * PAGE), Ok(page + 1));
                }
            }
        });
        for _ in 0..50 {
            let (mut exported, _files) = ExportedArea::export(&area, Access::Writable).unwrap();
            exported.take_back().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
