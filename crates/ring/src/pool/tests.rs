//! Pools: chunks are given out once, readers see what the owner writes and can write nothing, and
//! files that are not sealed in full are refused.

use std::collections::HashMap;

use proptest::prelude::*;
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create,
};

use rustix::fd::OwnedFd;

use super::*;
use crate::Errno;
use crate::memfd::Unsuitable;

fn descriptor(pool: &Pool) -> OwnedFd {
    pool.files().duplicate().unwrap().memory
}

fn adopt(memory: OwnedFd, length_bytes: u64) -> Result<SharedPool, AdoptError> {
    let (_word, state) = LastingWord::new().unwrap();
    SharedPool::adopt(ReceivedRegion {
        memory,
        state: state.into_fd(),
        length_bytes,
    })
}

fn reader(pool: &Pool) -> SharedPool {
    SharedPool::adopt(pool.files().duplicate().unwrap()).unwrap()
}

#[test]
fn a_reader_is_told_of_the_end_of_a_pool() {
    let pool = Pool::new(1000, 3).unwrap();
    let shared = reader(&pool);
    assert!(shared.region().lasts());
    drop(pool);
    assert!(!shared.region().lasts());
    assert!(shared.view(0, 8).is_some(), "and keeps its mapping");
}

#[test]
fn a_reader_sees_what_the_owner_writes_in_place() {
    let mut pool = Pool::new(1000, 3).unwrap();
    let shared = reader(&pool);
    let mut chunk = pool.chunks().take(5).unwrap();
    chunk.copy_from_slice(b"hello");
    chunk.set_mark(7);
    let at = Chunks::offset_of(chunk.index(), 1000);
    let view = shared.view(at, 5).unwrap();
    let mut read = [0; 5];
    view.read_at(0, &mut read).unwrap();
    assert_eq!(&read, b"hello");
    assert_eq!(chunk.marked(), b"\x07\0\0\0\0\0\0\0hello");
    assert!(view.read_at(1, &mut read).is_err());
    assert!(view.read_at(usize::MAX, &mut read).is_err());
    let start = shared.view(0, 1).unwrap().as_ptr();
    assert_eq!(view.as_ptr().addr() - start.addr(), at);
    pool.chunks().give_back(chunk);
}

#[test]
fn the_newest_version_is_copied_out_of_a_pool_with_a_head() {
    const BYTES: usize = 4096 - 64;
    let mut pool = Pool::with_head(BYTES, 3).unwrap();
    assert_eq!(
        file_bytes_with_head(BYTES, 3),
        file_bytes(BYTES, 3).map(|bytes| bytes + PAGE_BYTES)
    );
    let shared = reader(&pool);
    let mut into = Vec::with_capacity(BYTES);
    for number in 0..20 {
        let from = number;
        assert!(!shared.shows_newer(BYTES, 3, from));
        assert_eq!(shared.copy_newest(BYTES, 3, from, &mut into), Ok(None));
        let mut chunk = pool.chunks().take(number as usize * 200).unwrap();
        pool.begin_version(&mut chunk);
        chunk.fill(number as u8);
        pool.finish_version(&mut chunk, number);
        pool.show_newest(&chunk);
        assert!(shared.shows_newer(BYTES, 3, from));
        let found = shared.copy_newest(BYTES, 3, from, &mut into);
        let length_bytes = chunk.len();
        assert_eq!(
            found,
            Ok(Some(Newest {
                number,
                length_bytes
            }))
        );
        assert_eq!(into, &*chunk);
        // Being written again, it is none.
        pool.begin_version(&mut chunk);
        assert_eq!(shared.copy_newest(BYTES, 3, from, &mut into), Ok(None));
        pool.finish_version(&mut chunk, number);
        pool.chunks().give_back(chunk);
    }
    // A reader whose pool has fewer chunks is shown one that it does not have.
    let mut held: Vec<_> = (0..2).map(|_| pool.chunks().take(1).unwrap()).collect();
    let mut last = pool.chunks().take(1).unwrap();
    pool.finish_version(&mut last, 20);
    pool.show_newest(&last);
    let few = last.index();
    let found = crate::newest::copy_newest(&pool.words(), few, BYTES, 0, |_, _| {});
    assert_eq!(found, Err(OutsidePool));
    held.drain(..)
        .for_each(|chunk| pool.chunks().give_back(chunk));
}

#[test]
fn what_lies_outside_the_pool_has_no_view() {
    let pool = Pool::new(64, 1).unwrap();
    let shared = reader(&pool);
    let len = shared.length_bytes() as usize;
    assert!(shared.view(len, 0).is_some());
    for (offset, bytes) in [(len, 1), (0, len + 1), (usize::MAX, 2), (2, usize::MAX)] {
        assert!(shared.view(offset, bytes).is_none(), "{offset} {bytes}");
    }
}

#[test]
fn nobody_else_can_write_a_pool_or_take_its_pages() {
    let pool = Pool::new(4096, 2).unwrap();
    let file = descriptor(&pool);
    assert_eq!(rustix::io::pwrite(&file, &[1], 0), Err(Errno::PERM));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&file, hole, 0, 4096), Err(Errno::PERM));
    assert_eq!(ftruncate(&file, 0), Err(Errno::PERM));
    let len = pool.length_bytes() as usize;
    let writable = Memfd::adopt(file, len).map(|_| ());
    assert_eq!(writable, Err(Unsuitable::WriteSealed));
}

/// A file as a hostile owner could send it.
fn file(len: u64, present: u64, seals: SealFlags) -> OwnedFd {
    let fd = memfd_create("hostile", MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, len).unwrap();
    rustix::io::pwrite(&fd, &vec![0; present as usize], 0).unwrap();
    fcntl_add_seals(&fd, seals).unwrap();
    fd
}

/// Such a file none of whose pages was written, with pages reserved from there on.
fn reserved(len: u64, from: u64, reserved: u64) -> OwnedFd {
    let fd = memfd_create("hostile", MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, len).unwrap();
    fallocate(&fd, FallocateFlags::KEEP_SIZE, from, reserved).unwrap();
    let all = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE;
    fcntl_add_seals(&fd, all).unwrap();
    fd
}

#[test]
fn files_that_are_not_sealed_in_full_are_refused() {
    let len = 4 * PAGE_BYTES as u64;
    let fixed = SealFlags::SHRINK | SealFlags::GROW;
    let all = fixed | SealFlags::FUTURE_WRITE;
    assert!(adopt(file(len, len, all), len).is_ok());
    assert!(adopt(file(len, len, fixed | SealFlags::WRITE), len).is_ok());
    let refused = |file, len| match adopt(file, len) {
        Err(AdoptError::Unsuitable(why)) => why,
        other => panic!("{other:?}"),
    };
    for seals in [
        SealFlags::empty(),
        fixed,
        SealFlags::SHRINK | SealFlags::FUTURE_WRITE,
        SealFlags::GROW | SealFlags::FUTURE_WRITE,
    ] {
        assert_eq!(refused(file(len, len, seals), len), Unsuitable::Unsealed);
    }
    let page = PAGE_BYTES as u64;
    for present in [0, 1, page, len - page] {
        assert_eq!(refused(file(len, present, all), len), Unsuitable::Holes);
    }
    // As many pages as the file has, but behind its end; or half of them.
    for (from, pages) in [(len, len), (len, 4 * len), (len / 2, len), (0, len)] {
        assert_eq!(refused(reserved(len, from, pages), len), Unsuitable::Holes);
    }
    assert_eq!(
        refused(file(len, len - 1, all), len + 4096),
        Unsuitable::Size { actual_bytes: len }
    );
    let short = len - PAGE_BYTES as u64;
    assert_eq!(
        refused(file(short, short, all), len),
        Unsuitable::Size {
            actual_bytes: short
        }
    );
    for length in [0, 1, len + 1, u64::MAX, POOL_BYTES_MAX + 1] {
        assert!(matches!(
            adopt(file(len, len, all), length),
            Err(AdoptError::Length(_))
        ));
    }
}

#[test]
fn pools_that_cannot_be_are_refused() {
    for (bytes, count) in [
        (0, 1),
        (1, 0),
        (usize::MAX, 1),
        (1 << 32, 1),
        (1 << 20, 1 << 13),
        (1, u32::MAX),
    ] {
        assert!(matches!(
            Pool::new(bytes, count),
            Err(PoolError::Size { .. })
        ));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Chunks never overlap: each keeps its bytes whatever happens to the others, and all come
    /// back.
    #[test]
    fn each_chunk_has_one_owner(steps in prop::collection::vec((0u8..3, 0usize..200), 1..200)) {
        const BYTES: usize = 150;
        const COUNT: u32 = 5;
        let mut pool = Pool::new(BYTES, COUNT).unwrap();
        let shared = reader(&pool);
        let mut out: HashMap<u32, (Chunk, u8)> = HashMap::new();
        for (at, (step, len)) in steps.into_iter().enumerate() {
            let fill = at as u8 | 1;
            if step < 2 {
                let chunk = pool.chunks().take(len);
                let expected = len <= BYTES && out.len() < COUNT as usize;
                prop_assert_eq!(chunk.is_some(), expected);
                if let Some(mut chunk) = chunk {
                    prop_assert_eq!(chunk.len(), len);
                    chunk.fill(fill);
                    chunk.set_mark(u64::from(fill));
                    prop_assert!(out.insert(chunk.index(), (chunk, fill)).is_none());
                }
            } else if let Some(&index) = out.keys().nth(len % out.len().max(1)) {
                let (chunk, _) = out.remove(&index).unwrap();
                pool.chunks().give_back(chunk);
            }
            for (&index, (chunk, fill)) in &out {
                prop_assert!(chunk.iter().all(|byte| byte == fill));
                let view = shared.view(Chunks::offset_of(index, BYTES), chunk.len()).unwrap();
                let mut read = vec![0; view.len()];
                view.read_at(0, &mut read).unwrap();
                prop_assert_eq!(&read[..], &**chunk);
            }
            prop_assert_eq!(pool.state().free() + out.len(), COUNT as usize);
        }
    }
}
