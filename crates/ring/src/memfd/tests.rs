//! Memory files: each way in which a peer's may be unsuitable.

use rustix::fs::{SealFlags, fcntl_add_seals};

use super::*;
use crate::shared::PAGE_BYTES;

const LEN: usize = 4 * PAGE_BYTES;

fn foreign(len: u64, seals: SealFlags) -> OwnedFd {
    let fd = memfd_create("foreign", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, len).unwrap();
    fcntl_add_seals(&fd, seals).unwrap();
    fd
}

fn fixed() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW
}

#[test]
fn what_we_make_is_what_we_adopt() {
    let file = Memfd::create("test", LEN, LEN).unwrap();
    let copy = file.as_fd().try_clone_to_owned().unwrap();
    let adopted = Memfd::adopt(copy, LEN).unwrap();
    let (ours, theirs) = (
        file.map(Access::Writable).unwrap(),
        adopted.map(Access::Writable).unwrap(),
    );
    ours.store_u64(64, 7).unwrap();
    assert_eq!(theirs.load_u64(64), Ok(7));
    assert!(ftruncate(&file, 0).is_err(), "sealed against shrinking");
    assert!(
        ftruncate(&file, 2 * LEN as u64).is_err(),
        "sealed against growing"
    );
    assert!(
        fcntl_add_seals(&file, SealFlags::WRITE).is_err(),
        "sealed against seals"
    );
}

#[test]
fn refuses_descriptors_that_are_no_memory_files() {
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    for fd in [OwnedFd::from(socket), OwnedFd::from(null)] {
        assert_eq!(Memfd::adopt(fd, LEN).unwrap_err(), Unsuitable::NotMemory);
    }
}

#[test]
fn refuses_missing_and_forbidding_seals() {
    let adopt = |seals| Memfd::adopt(foreign(LEN as u64, seals), LEN);
    let refused = |seals| adopt(seals).unwrap_err();
    for seals in [SealFlags::empty(), SealFlags::SHRINK, SealFlags::GROW] {
        assert_eq!(refused(seals), Unsuitable::Unsealed);
    }
    for seal in [SealFlags::WRITE, SealFlags::FUTURE_WRITE] {
        assert_eq!(refused(fixed() | seal), Unsuitable::WriteSealed);
    }
    assert!(adopt(fixed()).is_ok());
}

#[test]
fn refuses_another_size() {
    for len in [0, LEN as u64 - 1, LEN as u64 + 1] {
        let refused = Memfd::adopt(foreign(len, fixed()), LEN).unwrap_err();
        assert_eq!(refused, Unsuitable::Size { actual_bytes: len });
    }
}

#[test]
fn a_size_that_no_file_can_have_is_an_error() {
    let error = Memfd::create("huge", usize::MAX, 0).unwrap_err();
    assert!(matches!(
        error,
        MemfdError::System {
            call: "ftruncate",
            ..
        }
    ));
}

#[test]
fn holes_are_zeros() {
    let file = Memfd::create("holes", LEN, LEN).unwrap();
    let mapping = file.map(Access::Writable).unwrap();
    mapping.fill(0, LEN, 0xff).unwrap();
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, hole, 0, LEN as u64).unwrap();
    assert_eq!(mapping.load_u64(8), Ok(0));
}

/// What a holder of the descriptor may do before and after the seal; what its owner may do all the
/// time.
#[test]
fn a_sealed_ring_is_written_only_where_it_was_mapped() {
    let geometry = Geometry::DEFAULT;
    let len = geometry.total_bytes();
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let file = Memfd::create_ring("sealed", geometry, 64).unwrap();
    let copy = file.as_fd().try_clone_to_owned().unwrap();
    let peers = Memfd::adopt(copy, len).unwrap();
    let mapping = peers.map(Access::Writable).unwrap();
    let blocks = || fstat(&file).unwrap().st_blocks;
    let reserved = blocks();
    fallocate(&peers, hole, 0, len as u64).unwrap();
    assert_eq!(blocks(), 0);
    file.seal_ring(geometry, 64).unwrap();
    assert_eq!(blocks(), reserved, "the holes are filled");
    let path = format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(&file.fd)
    );
    let anew = std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let anew = Memfd {
        fd: anew.into(),
        len,
    };
    for holder in [&peers, &anew] {
        assert_eq!(holder.map(Access::Writable).err(), Some(Errno::PERM));
        let punched = fallocate(holder, hole, 0, len as u64);
        assert_eq!(punched, Err(Errno::PERM));
        let written = rustix::io::pwrite(holder, &[1; 8], 0);
        assert_eq!(written, Err(Errno::PERM));
        assert!(fcntl_add_seals(holder, SealFlags::WRITE).is_err());
        assert!(holder.map(Access::ReadOnly).is_ok());
    }
    // The peer's mapping stays as it is, and the owner can reserve more.
    mapping.store_u64(len - 8, 7).unwrap();
    assert_eq!(mapping.load_u64(len - 8), Ok(7));
    let before = blocks();
    let arena = geometry.arena_offset();
    file.reserve(arena..arena + (64 << 10)).unwrap();
    assert!(blocks() >= before + (56 << 10) / 512);
    assert!(file.seal_ring(geometry, 64).is_err(), "once");
}
