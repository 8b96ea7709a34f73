//! Regions: mapped by several at once, seen by both sides, and by neither from the other once they
//! were taken back.

use std::io;

use hamlyn_engine::memory::Area as _;
use hamlyn_engine::operation::{Atomic, Change, Width};
use rustix::fs::{FallocateFlags, fallocate, fstat, ftruncate};
use rustix::io::Errno as Failed;

use super::*;
use crate::area::{AreaError, SharedOptions};
use crate::memfd::Unsuitable;
use crate::shared::OutOfRange;

const PAGE: u64 = PAGE_BYTES as u64;

fn area(length_bytes: u64) -> Area {
    Area::shared(SharedOptions::sparse(length_bytes)).unwrap()
}

fn all(area: &Area, access: Access) -> Result<SharedRegion, ShareError> {
    SharedRegion::share(area, 0..area.length_bytes(), access)
}

fn received(region: &SharedRegion) -> ReceivedRegion {
    region.files().duplicate().unwrap()
}

fn attach(region: &SharedRegion, access: Access) -> Arc<AttachedRegion> {
    Arc::new(AttachedRegion::adopt(received(region), access).unwrap())
}

fn window(attached: &Arc<AttachedRegion>) -> DirectWindow {
    attached.direct_window(0..attached.length_bytes()).unwrap()
}

fn word(area: &Area, offset: u64) -> u64 {
    area.load_u64(offset).unwrap()
}

#[test]
fn several_holders_share_the_area_until_it_is_taken_back() {
    let area = area(4 * PAGE - 5);
    area.store_u64(8, 11).unwrap();
    let mut region = all(&area, Access::Writable).unwrap();
    assert_eq!(region.length_bytes(), 4 * PAGE);
    let one = attach(&region, Access::Writable);
    let other = attach(&region, Access::Writable);
    let (one_window, other_window) = (window(&one), window(&other));
    assert_eq!(one_window.load_u64(8), Ok(11));
    one_window.store_u64(3 * PAGE, 12).unwrap();
    assert_eq!(word(&area, 3 * PAGE), 12);
    assert_eq!(other_window.load_u64(3 * PAGE), Ok(12));
    assert!(one.lasts() && other.lasts());
    region.take_back().unwrap();
    region.take_back().unwrap();
    assert!(!one.lasts() && !other_window.lasts());
    // Nobody reaches the owner now, and the owner has what was there.
    one_window.store_u64(8, 99).unwrap();
    assert_eq!((word(&area, 8), word(&area, 3 * PAGE)), (11, 12));
    area.store_u64(8, 13).unwrap();
    assert_eq!(other_window.load_u64(8), Ok(99));
    // It can be region anew, in a file that the former holders do not have.
    let again = all(&area, Access::Writable).unwrap();
    let third = window(&attach(&again, Access::Writable));
    assert_eq!(third.load_u64(8), Ok(13));
    one_window.store_u64(8, 100).unwrap();
    assert_eq!(third.load_u64(8), Ok(13));
    assert!(!one.lasts());
    drop(again);
    third.store_u64(8, 101).unwrap();
    assert_eq!(word(&area, 8), 13, "dropping takes back");
}

#[test]
fn a_holder_that_detaches_tells_no_other() {
    let area = area(PAGE);
    let region = all(&area, Access::Writable).unwrap();
    let one = attach(&region, Access::Writable);
    let other = attach(&region, Access::Writable);
    one.detach();
    assert!(!window(&one).lasts() && other.lasts());
}

#[test]
fn the_word_that_says_whether_it_lasts_can_be_written_by_nobody_else() {
    let area = area(PAGE);
    let region = all(&area, Access::Writable).unwrap();
    let written = rustix::io::pwrite(&received(&region).state, &[0], 0);
    assert_eq!(written, Err(Failed::PERM));
    let state = Memfd::adopt_for_reading(received(&region).state, PAGE_BYTES).unwrap();
    assert_eq!(state.map(Access::Writable).unwrap_err(), Failed::PERM);
}

#[test]
fn the_kernel_lets_readers_only_read() {
    let area = area(2 * PAGE);
    area.store_u64(0, 5).unwrap();
    let mut region = all(&area, Access::ReadOnly).unwrap();
    let reader = attach(&region, Access::ReadOnly);
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
    let file = received(&region).memory;
    assert_eq!(rustix::io::pwrite(&file, &[1], 0), Err(Failed::PERM));
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&file, punch, 0, PAGE), Err(Failed::PERM));
    let again = std::fs::File::options()
        .write(true)
        .read(true)
        .open(format!("/proc/self/fd/{}", fd_number(&file)));
    if let Ok(again) = again {
        let again = Memfd::adopt_sparse(again.into(), 2 * PAGE_BYTES, Access::ReadOnly).unwrap();
        assert_eq!(again.map(Access::Writable).unwrap_err(), Failed::PERM);
    }
    let adopted = AttachedRegion::adopt(received(&region), Access::Writable);
    let sealed = AdoptError::Unsuitable(Unsuitable::WriteSealed);
    assert_eq!(adopted.unwrap_err(), sealed);
    // The owner goes on writing, also when it was taken back.
    region.take_back().unwrap();
    area.store_u64(0, 7).unwrap();
    assert_eq!((word(&area, 0), word(&area, PAGE)), (7, 6));
    assert_eq!(reading.load_u64(0), Ok(5));
    assert!(all(&area, Access::Writable).is_ok());
}

fn fd_number(fd: &OwnedFd) -> i32 {
    use std::os::fd::AsRawFd as _;
    fd.as_raw_fd()
}

#[test]
fn holders_cannot_change_its_size_and_holes_are_zeros() {
    let area = area(3 * PAGE);
    for page in 0..3 {
        area.store_u64(page * PAGE, page + 1).unwrap();
    }
    let mut region = all(&area, Access::Writable).unwrap();
    let file = received(&region).memory;
    for length in [0, PAGE, 4 * PAGE] {
        assert_eq!(ftruncate(&file, length), Err(Failed::PERM));
    }
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, punch, PAGE, PAGE).unwrap();
    assert_eq!(
        [word(&area, 0), word(&area, PAGE), word(&area, 2 * PAGE)],
        [1, 0, 3]
    );
    fallocate(&file, punch, 0, 3 * PAGE).unwrap();
    region.take_back().unwrap();
    assert_eq!(
        [word(&area, 0), word(&area, PAGE), word(&area, 2 * PAGE)],
        [0, 0, 0]
    );
    area.store_u64(PAGE, 4).unwrap();
    assert_eq!(word(&area, PAGE), 4);
}

fn present_pages(region: &SharedRegion) -> u64 {
    fstat(&received(region).memory).unwrap().st_blocks as u64 * 512 / PAGE
}

#[test]
fn only_pages_that_were_touched_take_memory_also_when_it_is_taken_back() {
    let area = area(1 << 36);
    let places = [0, 5 * PAGE, (1 << 20) * PAGE, (1 << 36) - PAGE];
    for (number, place) in places.into_iter().enumerate() {
        area.store_u64(place, number as u64 + 1).unwrap();
    }
    let mut region = all(&area, Access::Writable).unwrap();
    assert_eq!(present_pages(&region), 4);
    let holder = window(&attach(&region, Access::Writable));
    holder.store_u64(9 * PAGE, 9).unwrap();
    region.take_back().unwrap();
    for (number, place) in places.into_iter().enumerate() {
        assert_eq!(word(&area, place), number as u64 + 1);
    }
    assert_eq!(word(&area, 9 * PAGE), 9);
    let again = all(&area, Access::Writable).unwrap();
    assert_eq!(present_pages(&again), 5);
}

#[test]
fn an_owner_chooses_the_address_and_never_where_something_is() {
    // Far from where the kernel and the loader put anything by themselves.
    let free = 0x2a00_0000_0000;
    let at = |address, length_bytes| {
        Area::shared(SharedOptions {
            address: Some(address),
            ..SharedOptions::sparse(length_bytes)
        })
    };
    let here = at(free, 3 * PAGE).unwrap();
    here.store_u64(PAGE, 3).unwrap();
    let own = here.direct_window(0..3 * PAGE).unwrap();
    assert_eq!(own.as_ptr() as usize, free);
    for address in [free, free + PAGE_BYTES] {
        let occupied = AreaError::Occupied {
            address,
            length_bytes: 3 * PAGE,
        };
        assert_eq!(at(address, 3 * PAGE).unwrap_err(), occupied);
    }
    assert_eq!(own.load_u64(PAGE), Ok(3), "nothing was replaced");
    for address in [free + 1, free + 2048, usize::MAX] {
        let refused = at(address, PAGE).unwrap_err();
        assert_eq!(refused, AreaError::Address(address));
    }
    // Not in the lower half of the address space.
    assert!(matches!(
        at(usize::MAX & !0xfff, PAGE),
        Err(AreaError::Memory(_))
    ));
}

#[test]
fn lengths_that_are_impossible_are_refused() {
    for length_bytes in [0, REGION_BYTES_MAX + 1, u64::MAX] {
        let refused = Area::shared(SharedOptions::sparse(length_bytes)).unwrap_err();
        assert_eq!(refused, AreaError::Length(length_bytes));
    }
}

#[test]
fn areas_that_were_not_made_for_it_or_are_region_are_refused() {
    let refused = |area: &Area| all(area, Access::Writable).map(drop);
    let (handover, _reader) = Area::handover(4, PAGE_BYTES as u32).unwrap();
    for area in [Area::new(PAGE).unwrap(), handover] {
        assert_eq!(refused(&area), Err(ShareError::NotSharable));
    }
    let area = area(PAGE);
    let region = all(&area, Access::ReadOnly).unwrap();
    assert_eq!(refused(&area.clone()), Err(ShareError::SharedAlready));
    drop(region);
    assert_eq!(refused(&area), Ok(()));
    assert!(!area.is_private(), "no paranoid slot has it");
}

#[test]
fn ranges_that_are_no_pages_are_refused() {
    let area = area(4 * PAGE - 1);
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
        let refused = SharedRegion::share(&area, start..end, Access::Writable);
        let expected = ShareError::NotPages { start, end };
        assert_eq!(refused.unwrap_err(), expected);
    }
}

fn filled(options: SharedOptions) -> Area {
    let area = Area::shared(options).unwrap();
    for page in 0..area.length_bytes() / PAGE {
        area.fill(page * PAGE, PAGE, page as u8 + 1).unwrap();
    }
    area
}

fn byte(area: &Area, offset: u64) -> u8 {
    let mut byte = [0];
    area.read_at(offset, &mut byte).unwrap();
    byte[0]
}

fn store(region: &AttachedRegion, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
    region.store(offset, bytes, &StreamingHeuristic::new())
}

/// Both kinds of area, as only the pages that are there are copied of a sparse one.
const BOTH: [fn(u64) -> SharedOptions; 2] = [SharedOptions::reserved, SharedOptions::sparse];

#[test]
fn a_part_of_an_area_is_shared_in_a_file_of_its_own() {
    for options in BOTH {
        let area = filled(options(8 * PAGE));
        let elsewhere = area.clone();
        let part = 2 * PAGE..5 * PAGE;
        let mut region = SharedRegion::share(&area, part.clone(), Access::Writable).unwrap();
        let holder = attach(&region, Access::Writable);
        assert_eq!(present_pages(&region), 3, "and nothing else");
        for page in 0..8 {
            for at in [0, PAGE - 1] {
                assert_eq!(byte(&elsewhere, page * PAGE + at), page as u8 + 1);
            }
        }
        store(&holder, 0, &[77]).unwrap();
        store(&holder, 3 * PAGE - 1, &[78]).unwrap();
        assert_eq!(byte(&elsewhere, 2 * PAGE), 77);
        assert_eq!(byte(&area, 5 * PAGE - 1), 78);
        // And back: what the owner writes lies in the same pages.
        area.write_at(3 * PAGE, &[79]).unwrap();
        assert_eq!(window(&holder).load_u8(PAGE), Ok(79));
        for overlapping in [4 * PAGE..6 * PAGE, 0..8 * PAGE] {
            let twice = SharedRegion::share(&elsewhere, overlapping, Access::Writable);
            assert_eq!(twice.unwrap_err(), ShareError::SharedAlready);
        }
        for (offset, len) in [(0, 3 * PAGE_BYTES + 1), (3 * PAGE, 1), (u64::MAX, 1)] {
            assert_eq!(store(&holder, offset, &vec![0; len]), Err(OutOfRange));
        }
        region.take_back().unwrap();
        region.take_back().unwrap();
        assert!(!holder.lasts());
        store(&holder, 0, &[99; 3 * PAGE_BYTES]).unwrap();
        let seen = [1, 2, 3, 5].map(|page| byte(&area, page * PAGE));
        assert_eq!(seen, [2, 77, 79, 6]);
        assert_eq!(byte(&area, 5 * PAGE - 1), 78);
        // The same pages can be shared again, in a file that the former holder does not have.
        let again = SharedRegion::share(&area, part, Access::Writable).unwrap();
        store(&holder, 0, &[100]).unwrap();
        assert_eq!(byte(&area, 2 * PAGE), 77);
        let other = attach(&again, Access::Writable);
        store(&other, 0, &[101]).unwrap();
        assert_eq!(byte(&area, 2 * PAGE), 101);
        // Pages that were taken back are not taken back once more, when somebody else has them.
        region.take_back().unwrap();
        drop(region);
        store(&other, 0, &[102]).unwrap();
        assert_eq!(byte(&area, 2 * PAGE), 102);
        drop(again);
        store(&other, 0, &[103]).unwrap();
        assert_eq!(byte(&area, 2 * PAGE), 102, "dropping takes back");
        // All of it, though its parts have lain in files of their own.
        let whole = SharedRegion::share(&area, 0..8 * PAGE, Access::Writable).unwrap();
        let holder = attach(&whole, Access::Writable);
        let read = |page: u64| window(&holder).load_u8(page * PAGE).unwrap();
        assert_eq!([0, 1, 2, 3, 7].map(read), [1, 2, 102, 79, 8]);
    }
}

#[test]
fn pages_that_are_exchanged_take_no_memory_twice() {
    let area = filled(SharedOptions::sparse(64 * PAGE));
    let file = area.memory().file_blocks();
    let region = SharedRegion::share(&area, 0..32 * PAGE, Access::Writable).unwrap();
    assert_eq!(area.memory().file_blocks() * 2, file);
    assert_eq!(present_pages(&region), 32);
}

#[test]
fn files_of_the_program_are_areas_that_can_be_shared() {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    let sealed = |seals| {
        let file = memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, 2 * PAGE).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    };
    let fixed = SealFlags::SHRINK | SealFlags::GROW;
    let file = sealed(fixed);
    let area = Area::from_file(file.try_clone().unwrap(), 2 * PAGE).unwrap();
    rustix::io::pwrite(&file, &7_u64.to_le_bytes(), 8).unwrap();
    assert_eq!(word(&area, 8), 7);
    assert!(!area.is_private());
    let mut region = all(&area, Access::Writable).unwrap();
    let holder = window(&attach(&region, Access::Writable));
    holder.store_u64(16, 9).unwrap();
    let mut bytes = [0; 8];
    rustix::io::pread(&file, &mut bytes, 16).unwrap();
    assert_eq!((word(&area, 16), bytes), (9, 9_u64.to_le_bytes()));
    region.take_back().unwrap();
    holder.store_u64(16, 10).unwrap();
    rustix::io::pwrite(&file, &[0; 8], 8).unwrap();
    assert_eq!(
        (word(&area, 8), word(&area, 16)),
        (7, 9),
        "it is its own now"
    );
    // A part of it, which leaves the program its file.
    let file = sealed(fixed | SealFlags::SEAL);
    let area = Area::from_file(file.try_clone().unwrap(), 2 * PAGE).unwrap();
    area.store_u64(PAGE, 3).unwrap();
    drop(SharedRegion::share(&area, PAGE..2 * PAGE, Access::Writable).unwrap());
    rustix::io::pread(&file, &mut bytes, PAGE).unwrap();
    assert_eq!((word(&area, PAGE), bytes), (3, 3_u64.to_le_bytes()));
    // Sealed for writers, or by nobody.
    let area = Area::from_file(sealed(fixed | SealFlags::SEAL), 2 * PAGE).unwrap();
    let refused = all(&area, Access::ReadOnly).unwrap_err();
    assert!(matches!(refused, ShareError::Memory(_)), "{refused:?}");
    assert!(all(&area, Access::Writable).is_ok());
    let refused = |file, length| Area::from_file(file, length).unwrap_err();
    for seals in [SealFlags::empty(), SealFlags::SHRINK, SealFlags::GROW] {
        let unsealed = AreaError::Unsuitable(Unsuitable::Unsealed);
        assert_eq!(refused(sealed(seals), 2 * PAGE), unsealed);
    }
    assert_eq!(
        refused(sealed(fixed), PAGE + 1),
        AreaError::Length(PAGE + 1)
    );
    let size = Unsuitable::Size {
        actual_bytes: 2 * PAGE,
    };
    assert_eq!(refused(sealed(fixed), PAGE), AreaError::Unsuitable(size));
}

/// A holder that stores all the time, while the owner takes back: what the owner has read since
/// then stays.
#[test]
fn a_holder_that_never_stops_changes_nothing_afterwards() {
    for (round, part) in (0..50).flat_map(|round| [(round, 0..2 * PAGE), (round, PAGE..2 * PAGE)]) {
        let area = filled(BOTH[round % 2](2 * PAGE));
        let mut region = SharedRegion::share(&area, part, Access::Writable).unwrap();
        let holder = attach(&region, Access::Writable);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || {
                let mut value = 0_u8;
                while !stop.load(Ordering::Relaxed) {
                    value = value.wrapping_add(1);
                    store(&holder, 0, &[value; PAGE_BYTES]).unwrap();
                }
            });
            region.take_back().unwrap();
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

#[test]
fn bytes_of_an_area_count_as_stores_for_the_streaming_heuristic() {
    let owner = filled(SharedOptions::reserved(8 * PAGE));
    let region = all(&owner, Access::Writable).unwrap();
    let holder = attach(&region, Access::Writable);
    let streaming = StreamingHeuristic::with_limit(4 * PAGE);
    let source = Area::new(PAGE).unwrap();
    source.fill(0, PAGE, 42).unwrap();
    for page in 0..8 {
        let stored = holder.store_from(page * PAGE, &source, 0, PAGE, &streaming);
        stored.unwrap();
        assert_eq!(byte(&owner, (page + 1) * PAGE - 1), 42);
    }
    // Nothing is stored outside, so nothing counts.
    let outside = holder.store_from(8 * PAGE, &source, 0, PAGE, &streaming);
    assert_eq!(outside, Err(Denied::OutOfArea));
    assert_eq!(streaming.way(8 * PAGE, 0), StoreKind::NonTemporal);
}

#[test]
fn files_that_are_no_region_are_refused() {
    let area = area(2 * PAGE);
    let region = all(&area, Access::Writable).unwrap();
    let adopt = |received, access| {
        AttachedRegion::adopt(received, access)
            .map(drop)
            .unwrap_err()
    };
    let with_length = |length_bytes| ReceivedRegion {
        length_bytes,
        ..received(&region)
    };
    for length in [0, 1, PAGE + 1, REGION_BYTES_MAX + PAGE, u64::MAX] {
        let refused = adopt(with_length(length), Access::Writable);
        assert_eq!(refused, AdoptError::Length(length));
    }
    let size = Unsuitable::Size {
        actual_bytes: 2 * PAGE,
    };
    let refused = adopt(with_length(PAGE), Access::Writable);
    assert_eq!(refused, AdoptError::Unsuitable(size));
    let ordinary = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    let (pipe, _other) = io::pipe().unwrap();
    for bad in [ordinary(), pipe.into()] {
        let with_bad_memory = ReceivedRegion {
            memory: bad.try_clone().unwrap(),
            ..received(&region)
        };
        let with_bad_state = ReceivedRegion {
            state: bad,
            ..received(&region)
        };
        for received in [with_bad_memory, with_bad_state] {
            let refused = adopt(received, Access::Writable);
            assert!(matches!(refused, AdoptError::Unsuitable(_)));
        }
    }
    // A state that its holders could write, or that could shrink.
    let file = Memfd::create("test", PAGE_BYTES, PAGE_BYTES).unwrap();
    let swapped = ReceivedRegion {
        state: file.into_fd(),
        ..received(&region)
    };
    let unsealed = AdoptError::Unsuitable(Unsuitable::Unsealed);
    assert_eq!(adopt(swapped, Access::Writable), unsealed);
    // For reading only, though it is not sealed so.
    assert_eq!(adopt(received(&region), Access::ReadOnly), unsealed);
}

#[test]
fn windows_have_bounds_and_every_size_of_word() {
    let area = area(PAGE);
    let region = all(&area, Access::Writable).unwrap();
    let attached = attach(&region, Access::Writable);
    let own = area.direct_window(64..128).unwrap();
    let foreign = attached.direct_window(64..128).unwrap();
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
    let crooked = attached.direct_window(4..20).unwrap();
    assert_eq!(crooked.change(4, &add), Ok(0));
    assert_eq!(crooked.change(0, &add), Err(OutOfRange));
    assert_eq!(crooked.change(12, &add), Err(OutOfRange));
    assert_eq!(word(&area, 8), 5);
    // Only what lies there.
    assert!(attached.direct_window(0..PAGE + 1).is_none());
    assert!(attached.direct_window(PAGE + 1..PAGE + 1).is_none());
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
    let region = all(&area, Access::Writable).unwrap();
    let foreign = window(&attach(&region, Access::Writable));
    let own = area.direct_window(0..PAGE).unwrap();
    drop((area, region));
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
            let mut region = all(&area, Access::Writable).unwrap();
            region.take_back().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
