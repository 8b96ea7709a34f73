//! The other side of a link, in the hands of a test: it shakes hands as it should, and then has
//! all the memory that the two sides share.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

use hamlyn::Destination;
use hamlyn_host::process::codec::{self, Message, Offer};
use hamlyn_host::process::name::Namespace;
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::ready_bitmap::READY_BITMAP_BYTES;
use hamlyn_ring::shared::{Access, Mapping};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

pub(crate) struct RawLink {
    pub(crate) socket: OwnedFd,
    /// Where the victim receives: we write.
    pub(crate) to_victim: Mapping,
    pub(crate) to_victim_geometry: Geometry,
    /// Where we receive: the victim writes.
    pub(crate) from_victim: Mapping,
    /// The victim's ready bitmap.
    pub(crate) ready_bitmap: Mapping,
    /// The overflow log of the victim, if it lends one, and its file.
    pub(crate) log: Option<(Mapping, OwnedFd)>,
    /// The one that it is lent, if it is.
    pub(crate) own_log: Option<Mapping>,
}

/// Bytes of the log that is lent to a victim.
pub(crate) const LOG_BYTES: u32 = 1 << 20;

impl RawLink {
    /// Connects to the victim, as that interface. Nothing if the victim would not have us.
    pub(crate) fn connect(namespace: &str, victim: Destination, interface: u64) -> Option<Self> {
        Self::connect_with(namespace, victim, interface, None)
    }

    /// The same with an overflow log for the victim.
    pub(crate) fn connect_with(
        namespace: &str,
        victim: Destination,
        interface: u64,
        own_log: Option<Memfd>,
    ) -> Option<Self> {
        let address = Namespace::new(namespace)
            .unwrap()
            .interface_address(victim.interface);
        let kind = SocketType::SEQPACKET;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).ok()?;
        rustix::net::connect(&socket, &address.unwrap()).ok()?;
        let geometry = Geometry::DEFAULT;
        let payload_max_bytes = 16 * 1024;
        let memory = Memfd::create_ring("test-ring", geometry, payload_max_bytes).unwrap();
        let ready_bitmap =
            Memfd::create("test-ready-bits", READY_BITMAP_BYTES, READY_BITMAP_BYTES).unwrap();
        let hello = codec::encode(&Message::Hello(Offer {
            interface,
            name: None,
            cells: geometry.cells(),
            arena_bytes: geometry.arena_bytes(),
            payload_max_bytes: payload_max_bytes as u32,
            takes_barriers: false,
            log_bytes: own_log.as_ref().map_or(0, |log| log.len() as u32),
            ready_bit: 0,
        }));
        let always = [memory.as_fd(), ready_bitmap.as_fd()];
        let log_file = own_log.as_ref().map(Memfd::as_fd);
        let descriptors: Vec<_> = always.into_iter().chain(log_file).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let parts = [IoSlice::new(&hello)];
        rustix::net::sendmsg(&socket, &parts, &mut control, SendFlags::NOSIGNAL).ok()?;
        loop {
            let (message, mut descriptors) = receive(&socket)?;
            match codec::decode(&message).ok()? {
                Message::Greeting { .. } => {}
                Message::Welcome(offer) => {
                    let to_victim_geometry = Geometry::new(offer.cells, offer.arena_bytes).unwrap();
                    let ring = descriptors.remove(0);
                    let length = to_victim_geometry.total_bytes();
                    let ring = Memfd::adopt(ring, length).unwrap();
                    let ready_bitmap = descriptors.remove(0);
                    let ready_bitmap = Memfd::adopt(ready_bitmap, READY_BITMAP_BYTES).unwrap();
                    let to_victim = ring.map(Access::Writable).unwrap();
                    let log = descriptors.pop().map(|log| {
                        let log = Memfd::adopt(log, offer.log_bytes as usize).unwrap();
                        (log.map(Access::Writable).unwrap(), log.into_fd())
                    });
                    let mapped = codec::encode(&Message::Mapped);
                    rustix::net::send(&socket, &mapped, SendFlags::NOSIGNAL).ok()?;
                    let (sealed, _) = receive(&socket)?;
                    assert_eq!(codec::decode(&sealed), Ok(Message::Sealed));
                    return Some(Self {
                        socket,
                        to_victim,
                        to_victim_geometry,
                        from_victim: memory.map(Access::Writable).unwrap(),
                        ready_bitmap: ready_bitmap.map(Access::Writable).unwrap(),
                        log,
                        own_log: own_log.map(|log| log.map(Access::Writable).unwrap()),
                    });
                }
                _ => return None,
            }
        }
    }

    /// Rings the victim. Whether it still listens.
    pub(crate) fn ring(&self) -> bool {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(&self.socket, &[1], flags) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => true,
            Err(_) => false,
        }
    }
}

/// A message and its descriptors; nothing if the other side hung up.
pub(crate) fn receive(socket: &OwnedFd) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; 2 * codec::MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(socket, &mut parts, &mut control, flags).ok()?;
    let length = received.bytes;
    if length == 0 {
        return None;
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    bytes.truncate(length);
    Some((bytes, descriptors))
}

/// A socket to the control thread of an interface.
pub(crate) fn connect_to(namespace: &str, interface: u64) -> OwnedFd {
    let address = Namespace::new(namespace)
        .unwrap()
        .interface_address(interface)
        .unwrap();
    let kind = SocketType::SEQPACKET;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    socket
}

/// Sends a message of the handshake.
pub(crate) fn say_to(socket: &OwnedFd, message: &Message, descriptors: &[&OwnedFd]) {
    let descriptors: Vec<_> = descriptors.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    }
    let bytes = codec::encode(message);
    let parts = [IoSlice::new(&bytes)];
    // The other side may have hung up in disgust.
    let _ = rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL);
}
