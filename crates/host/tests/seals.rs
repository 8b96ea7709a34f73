//! What a peer can do with the descriptor of our ring, once it has mapped it: nothing more. And
//! peers that never map it. That a sealed ring cannot be mapped anew is seen in
//! `hamlyn_ring::memfd`.

mod support;

use hamlyn_host::process::Options;
use hamlyn_host::process::codec::{self, Message};
use hamlyn_host::{Address, Host};
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::memfd::{Memfd, Unsuitable};
use hamlyn_ring::shared::{Access, Mapping};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{
    FallocateFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate,
};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use support::raw::{Memory, Raw, RawListener};
use support::*;

fn total_bytes(file: &OwnedFd) -> usize {
    fstat(file).unwrap().st_size as usize
}

fn adopt(file: &OwnedFd) -> Result<Memfd, Unsuitable> {
    Memfd::adopt(file.try_clone().unwrap(), total_bytes(file))
}

/// Maps the ring as a peer does, while it may.
fn map(file: &OwnedFd) -> Mapping {
    let seals = fcntl_get_seals(file).unwrap();
    assert!(!seals.intersects(SealFlags::FUTURE_WRITE | SealFlags::SEAL));
    adopt(file).unwrap().map(Access::Writable).unwrap()
}

/// All that a hostile peer may try with the descriptor; the kernel refuses it.
fn nothing_more_can_be_done(file: &OwnedFd, mapping: &Mapping) {
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let length = total_bytes(file) as u64;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let anew = File::options().read(true).write(true).open(path).unwrap();
    for descriptor in [file.as_fd(), anew.as_fd()] {
        for (offset, length) in [(0, length), (4096, 4096), (length - 4096, 4096)] {
            let punched = fallocate(descriptor, hole, offset, length);
            assert_eq!(punched, Err(Errno::PERM));
        }
        for length in [0, length - 4096, length + 4096] {
            assert_eq!(ftruncate(descriptor, length), Err(Errno::PERM));
        }
        for seal in [SealFlags::WRITE, SealFlags::SEAL] {
            assert_eq!(fcntl_add_seals(descriptor, seal), Err(Errno::PERM));
        }
        let copy = descriptor.try_clone_to_owned().unwrap();
        assert_eq!(adopt(&copy).unwrap_err(), Unsuitable::WriteSealed);
        let written = File::from(copy).write_at(&[1; 8], 4096);
        let errno = written.unwrap_err().raw_os_error();
        assert_eq!(errno, Some(Errno::PERM.raw_os_error()));
    }
    // What it has mapped is what it may write.
    let at = Geometry::DEFAULT.awaited_offset();
    mapping.store_u64(at, 7).unwrap();
    assert_eq!(mapping.load_u64(at), Ok(7));
}

#[test]
fn the_ring_of_a_listener_is_sealed_when_its_peer_has_mapped_it() {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    let peer = Raw::connect(&namespace, victim.identity().interface);
    peer.greeted();
    peer.hello(&Memory::new(), 1);
    let (message, descriptors) = peer.message_with_descriptors();
    assert!(matches!(message, Message::Welcome(_)), "{message:?}");
    let mapping = map(&descriptors[0]);
    assert!(peer.send(&codec::encode(&Message::Mapped), &[]));
    assert_eq!(peer.message(), Some(Message::Sealed));
    let (_, _link) = linked(&mut victim);
    nothing_more_can_be_done(&descriptors[0], &mapping);
}

#[test]
fn the_ring_of_a_connector_is_sealed_when_its_peer_has_mapped_it() {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    let listener = RawListener::named(&namespace, "server");
    let deadline_ns = after_ns(&victim, TIMEOUT_NS);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let client = listener.accept();
            client.send(&codec::encode(&Message::Greeting { interface: 7 }), &[]);
            let (message, descriptors) = client.message_with_descriptors();
            assert!(matches!(message, Message::Hello(_)), "{message:?}");
            let mapping = map(&descriptors[0]);
            let memory = Memory::new();
            let welcome = codec::encode(&Message::Welcome(memory.offer(7)));
            client.send(&welcome, &memory.descriptors());
            assert_eq!(client.message(), Some(Message::Mapped));
            client.send(&codec::encode(&Message::Sealed), &[]);
            nothing_more_can_be_done(&descriptors[0], &mapping);
        });
        assert!(victim.connect(Address::Name("server"), deadline_ns).is_ok());
    });
}

#[test]
fn who_does_not_map_gets_no_link_and_keeps_nobody_from_one() {
    let namespace = namespace();
    let mut options = Options::default().in_namespace(&namespace);
    options.links_max = 2;
    // Those who are not silent have spoken by then, on a loaded machine, too.
    options.handshake_timeout = Duration::from_secs(2);
    let mut victim = Owner::open(options).unwrap();
    let interface = victim.identity().interface;
    let memory = Memory::new();
    // Silent; or with something else to say.
    let hello = codec::encode(&Message::Hello(memory.offer(1)));
    for said in [None, Some(hello), Some(vec![1])] {
        let peer = Raw::connect(&namespace, interface);
        peer.greeted();
        peer.hello(&memory, 1);
        assert!(matches!(peer.message(), Some(Message::Welcome(_))));
        if let Some(said) = &said {
            peer.send(said, &[]);
            assert_eq!(peer.refusal(), hamlyn_host::RefusedBecause::INVALID.0);
        } else {
            assert_eq!(peer.receive(), None, "its time is up");
        }
        assert!(victim.next_event().is_none());
    }
    let counters = victim.rendezvous_counters();
    assert_eq!((counters.stalled, counters.invalid), (1, 2));
    assert_eq!(counters.accepted, 0);
    // Its places are free again, and so is its name.
    for number in [1, 2] {
        let peer = Raw::connect(&namespace, interface);
        peer.shake_hands(&memory, number);
        linked(&mut victim);
    }
}

#[test]
fn holes_that_were_punched_before_the_seal_are_filled() {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    let peer = Raw::connect(&namespace, victim.identity().interface);
    peer.greeted();
    peer.hello(&Memory::new(), 1);
    let (_, descriptors) = peer.message_with_descriptors();
    let blocks = || fstat(&descriptors[0]).unwrap().st_blocks;
    let reserved = blocks();
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let length = total_bytes(&descriptors[0]) as u64;
    fallocate(&descriptors[0], hole, 0, length).unwrap();
    assert!(blocks() < reserved);
    assert!(peer.send(&codec::encode(&Message::Mapped), &[]));
    assert_eq!(peer.message(), Some(Message::Sealed));
    linked(&mut victim);
    assert_eq!(blocks(), reserved);
}

#[test]
fn who_forbids_seals_gets_no_link() {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    let peer = Raw::connect(&namespace, victim.identity().interface);
    peer.greeted();
    peer.hello(&Memory::new(), 1);
    let (_, descriptors) = peer.message_with_descriptors();
    fcntl_add_seals(&descriptors[0], SealFlags::SEAL).unwrap();
    assert!(peer.send(&codec::encode(&Message::Mapped), &[]));
    peer.refusal();
    assert!(victim.next_event().is_none());
}
