//! A peer that says whatever a test wants it to say.

use super::TIMEOUT_NS;
use hamlyn_host::process::codec::{self, Message, Offer};
use hamlyn_host::process::name::{Name, Namespace};
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::ready_bitmap::READY_BITMAP_BYTES;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

fn socket() -> OwnedFd {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

/// One end of a socket.
pub(crate) struct Raw(pub(crate) OwnedFd);

impl Raw {
    pub(crate) fn connect(namespace: &str, interface: u64) -> Self {
        let address = Namespace::new(namespace)
            .unwrap()
            .interface_address(interface);
        let socket = socket();
        rustix::net::connect(&socket, &address.unwrap()).unwrap();
        Self(socket)
    }

    /// Sends bytes and descriptors. Whether that was possible.
    pub(crate) fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> bool {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        let bytes = [IoSlice::new(bytes)];
        rustix::net::sendmsg(&self.0, &bytes, &mut control, SendFlags::NOSIGNAL).is_ok()
    }

    /// The next message, or nothing if the other end closed. Descriptors that
    /// come with it are dropped by the kernel.
    pub(crate) fn receive(&self) -> Option<Vec<u8>> {
        let timeout = Timespec {
            tv_sec: (TIMEOUT_NS / 1_000_000_000) as i64,
            tv_nsec: 0,
        };
        loop {
            let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
            let ready = rustix::event::poll(&mut polled, Some(&timeout)).unwrap();
            assert!(ready > 0, "nothing came");
            let mut bytes = vec![0; 2 * codec::MESSAGE_BYTES_MAX];
            match rustix::net::recv(&self.0, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return None,
                Ok((length, _)) => {
                    bytes.truncate(length);
                    return Some(bytes);
                }
                Err(rustix::io::Errno::CONNRESET | rustix::io::Errno::AGAIN) => {}
                Err(errno) => panic!("{errno}"),
            }
        }
    }

    /// The next message, and the descriptors that come with it. Blocks.
    pub(crate) fn message_with_descriptors(&self) -> (Message, Vec<OwnedFd>) {
        let mut bytes = vec![0; codec::MESSAGE_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let length = rustix::net::recvmsg(&self.0, &mut into, &mut control, flags)
            .unwrap()
            .bytes;
        let mut descriptors = Vec::new();
        for ancillary in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = ancillary {
                descriptors.extend(rights);
            }
        }
        (codec::decode(&bytes[..length]).unwrap(), descriptors)
    }

    pub(crate) fn message(&self) -> Option<Message> {
        self.receive().map(|bytes| codec::decode(&bytes).unwrap())
    }

    /// The reason for which the listener closes.
    pub(crate) fn refusal(&self) -> u16 {
        loop {
            match self.message() {
                Some(Message::Greeting { .. }) => {}
                Some(Message::Refusal { reason }) => {
                    assert_eq!(self.receive(), None, "a refusal is the end");
                    return reason;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn greeted(&self) -> u64 {
        match self.message() {
            Some(Message::Greeting { interface }) => interface,
            other => panic!("{other:?}"),
        }
    }

    /// Shakes hands as a correct peer does.
    pub(crate) fn shake_hands(&self, memory: &Memory, interface: u64) {
        self.greeted();
        self.hello(memory, interface);
        assert!(matches!(self.message(), Some(Message::Welcome(_))));
        assert!(self.send(&codec::encode(&Message::Mapped), &[]));
        assert_eq!(self.message(), Some(Message::Sealed));
    }

    /// Says hello as a correct peer does.
    pub(crate) fn hello(&self, memory: &Memory, interface: u64) {
        let hello = codec::encode(&Message::Hello(memory.offer(interface)));
        assert!(self.send(&hello, &memory.descriptors()));
    }
}

/// A listener.
pub(crate) struct RawListener(OwnedFd);

impl RawListener {
    pub(crate) fn named(namespace: &str, name: &str) -> Self {
        let namespace = Namespace::new(namespace).unwrap();
        Self::at(&namespace.name_address(&Name::new(name).unwrap()).unwrap())
    }

    pub(crate) fn of_interface(namespace: &str, interface: u64) -> Self {
        let namespace = Namespace::new(namespace).unwrap();
        Self::at(&namespace.interface_address(interface).unwrap())
    }

    fn at(address: &SocketAddrUnix) -> Self {
        let socket = socket();
        rustix::net::bind(&socket, address).unwrap();
        rustix::net::listen(&socket, 16).unwrap();
        Self(socket)
    }

    pub(crate) fn accept(&self) -> Raw {
        Raw(rustix::net::accept_with(&self.0, SocketFlags::CLOEXEC).unwrap())
    }
}

/// The memory that a correct peer lends.
pub(crate) struct Memory {
    pub(crate) ring: Memfd,
    pub(crate) ready_bitmap: Memfd,
}

impl Memory {
    pub(crate) fn new() -> Self {
        let geometry = Geometry::DEFAULT;
        Self {
            ring: Memfd::create("test-ring", geometry.total_bytes(), 4096).unwrap(),
            ready_bitmap: Memfd::create("test-ready-bits", READY_BITMAP_BYTES, READY_BITMAP_BYTES)
                .unwrap(),
        }
    }

    pub(crate) fn offer(&self, interface: u64) -> Offer {
        Offer {
            interface,
            name: None,
            cells: Geometry::DEFAULT.cells(),
            arena_bytes: Geometry::DEFAULT.arena_bytes(),
            payload_max_bytes: 1024,
            takes_barriers: false,
            log_bytes: 0,
            ready_bit: 0,
        }
    }

    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.ring.as_fd(), self.ready_bitmap.as_fd()]
    }
}
