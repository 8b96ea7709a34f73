use super::*;
use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// A memory file of that size, and with pages behind its end.
fn memory(bytes: u64, behind_bytes: u64) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("sent", flags).unwrap();
    if bytes > 0 {
        fallocate(&file, FallocateFlags::empty(), 0, bytes).unwrap();
    }
    if behind_bytes > 0 {
        fallocate(&file, FallocateFlags::KEEP_SIZE, bytes, behind_bytes).unwrap();
    }
    file
}

/// How many threads close what a peer sends so, whatever becomes of the message.
fn closed_aside(message: &[u8], files: &[OwnedFd]) -> u64 {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX + 1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let borrowed: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
    let bytes = [IoSlice::new(message)];
    rustix::net::sendmsg(&theirs, &bytes, &mut control, SendFlags::empty()).unwrap();
    let disposal = Disposal::default();
    drop(receive(&ours, 7, &disposal));
    disposal.begun()
}

/// The last close of a memory file with many pages takes long, and the control thread has others
/// to serve.
#[test]
fn large_memory_files_are_closed_aside() {
    const LARGE: u64 = 8 << 20;
    let region = codec::encode(&Message::Region {
        length_bytes: LARGE,
    });
    let small = [memory(4096, 0)];
    assert_eq!(closed_aside(&region, &small), 0);
    let large = [memory(LARGE, 0)];
    // As it was announced, as too many, and as no message at all.
    assert_eq!(closed_aside(&region, &large), 1);
    let two = [memory(LARGE, 0), memory(LARGE, 0)];
    assert_eq!(closed_aside(&region, &two), 2);
    assert_eq!(closed_aside(b"nothing", &large), 1);
    // Its size says little.
    assert_eq!(closed_aside(&region, &[memory(4096, LARGE)]), 1);
}
