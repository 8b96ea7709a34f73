//! What one side of a link lends to the other, and what it makes of what it is lent.
//!
//! Each side makes the memory in which it receives, so it is charged for it,
//! and seals it so that it can never shrink. It believes nothing of what the
//! other side made before the kernel has confirmed seals and sizes. Once the other side has
//! mapped it, it is sealed against further writers and holes as well.

use super::codec::Offer;
use super::disposal::ReceivedFile;
use super::exchange::DESCRIPTORS;
use super::options::Settings;
use crate::HostError;
use hamlyn_link::LinkError;
use hamlyn_link::pair::{PairLink, PairParts};
use hamlyn_ring::doorbell::Fence;
use hamlyn_ring::duplex::LineOrder;
use hamlyn_ring::forks::Uninherited;
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::memfd::{Memfd, MemfdError, Unsuitable};
use hamlyn_ring::ready_bitmap::{READY_BITMAP_BYTES, ReadyBit, ReadyBitmap, ReadyBits};
use hamlyn_ring::shared::{Access, Mapping};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::Arc;

/// What an interface lends to all of its peers, and how it makes more.
pub(super) struct Lender {
    interface: u64,
    geometry: Geometry,
    payload_max_bytes: u32,
    name: Option<super::name::Name>,
    ready_bitmap: Memfd,
    ready_bits: ReadyBits,
    takes_barriers: bool,
}

/// Memory in which we are to receive over one link, and the peer's number in our ready bitmap.
pub(super) struct Lent {
    receive: Mapping,
    ready_bit: ReadyBit,
}

/// The file of such memory, for the peer.
pub(super) struct LentFile {
    file: Memfd,
    geometry: Geometry,
    payload_max_bytes: usize,
}

impl LentFile {
    /// The peer has mapped it: nobody needs to write it through a descriptor any more.
    pub(super) fn seal(self) -> Result<(), HostError> {
        self.file
            .seal_ring(self.geometry, self.payload_max_bytes)
            .map_err(memory)
    }
}

/// Why a link could not be made of two offers.
#[derive(Debug)]
pub(super) enum Unlinkable {
    /// What the peer lends cannot be used.
    Invalid(&'static str),
    /// We ran out of something.
    Host(HostError),
}

impl Lender {
    /// The lender of an interface, and the ready bitmap that its peers will write.
    pub(super) fn new(
        interface: u64,
        settings: &Settings,
    ) -> Result<(Self, ReadyBitmap), HostError> {
        let ready_bitmap =
            Memfd::create("hamlyn-ready-bits", READY_BITMAP_BYTES, READY_BITMAP_BYTES)
                .map_err(memory)?;
        let page = ready_bitmap
            .map(Access::Writable)
            .map_err(HostError::memory(READY_BITMAP_BYTES as u64))?;
        let (ready_bits, bitmap) = ReadyBits::new(Arc::new(page)).map_err(|_| invalid("mmap"))?;
        // From now on this process passes the barriers of those that go to sleep.
        let takes_barriers = membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok();
        let lender = Self {
            interface,
            geometry: settings.geometry,
            payload_max_bytes: settings.payload_max_bytes,
            name: settings.name.clone(),
            ready_bitmap,
            ready_bits,
            takes_barriers,
        };
        Ok((lender, bitmap))
    }

    /// All bits of the bitmap.
    pub(super) fn ready_bits(&self) -> ReadyBits {
        self.ready_bits.clone()
    }

    /// Whether barriers work here, in both directions.
    pub(super) fn takes_barriers(&self) -> bool {
        self.takes_barriers
    }

    /// Makes the memory for one more link.
    pub(super) fn lend(&self) -> Result<(Lent, LentFile), HostError> {
        let payload_max_bytes = self.payload_max_bytes as usize;
        let total_bytes = self.geometry.total_bytes();
        let file =
            Memfd::create_ring("hamlyn-ring", self.geometry, payload_max_bytes).map_err(memory)?;
        let mapping = file
            .map(Access::Writable)
            .map_err(HostError::memory(total_bytes as u64))?;
        let lent = Lent {
            receive: mapping,
            ready_bit: self.ready_bits.lend(),
        };
        let file = LentFile {
            file,
            geometry: self.geometry,
            payload_max_bytes,
        };
        Ok((lent, file))
    }

    /// What we say of it.
    pub(super) fn offer(&self, lent: &Lent) -> Offer {
        Offer {
            interface: self.interface,
            name: self.name.clone(),
            cells: self.geometry.cells(),
            arena_bytes: self.geometry.arena_bytes(),
            payload_max_bytes: self.payload_max_bytes,
            takes_barriers: self.takes_barriers,
            ready_bit: lent.ready_bit.number(),
        }
    }

    /// The descriptors that go with the offer.
    pub(super) fn descriptors<'a>(&'a self, file: &'a LentFile) -> [BorrowedFd<'a>; DESCRIPTORS] {
        [file.file.as_fd(), self.ready_bitmap.as_fd()]
    }

    /// Makes a link of our half and the peer's.
    pub(super) fn join(
        &self,
        lent: Lent,
        offer: &Offer,
        files: [ReceivedFile; DESCRIPTORS],
        control: &Uninherited,
        order: LineOrder,
    ) -> Result<PairLink, Unlinkable> {
        let send_geometry = Geometry::new(offer.cells, offer.arena_bytes)
            .map_err(|_| Unlinkable::Invalid("its ring has sizes that are not allowed"))?;
        // What is not as it must be is closed aside.
        let [ring, ready_bitmap] = &files;
        check(ring, send_geometry.total_bytes())
            .map_err(|error| Unlinkable::Invalid(ring_is(error)))?;
        let not_a_page = "its ready bitmap is not a sealed page of memory";
        check(ready_bitmap, READY_BITMAP_BYTES).map_err(|_| Unlinkable::Invalid(not_a_page))?;
        let [ring, ready_bitmap] = files.map(ReceivedFile::into_fd);
        let ring = adopt(ring, send_geometry.total_bytes())
            .map_err(|error| Unlinkable::Invalid(ring_is(error)))?;
        let ready_bitmap =
            adopt(ready_bitmap, READY_BITMAP_BYTES).map_err(|_| Unlinkable::Invalid(not_a_page))?;
        let send = ring
            .map(Access::Writable)
            .map_err(HostError::memory(ring.len() as u64))?;
        let ready_bitmap = ready_bitmap
            .map(Access::Writable)
            .map_err(HostError::memory(READY_BITMAP_BYTES as u64))?;
        let doorbell = control
            .try_clone()
            .map_err(|_| HostError::Descriptors { needed: 1 })?;
        let fence = self.fence(offer.takes_barriers);
        let parts = PairParts {
            receive: lent.receive,
            receive_geometry: self.geometry,
            send,
            send_file: ring.into_fd(),
            send_geometry,
            order,
            peer_bitmap: ready_bitmap,
            bit_at_peer: offer.ready_bit,
            ready_bit: lent.ready_bit.number(),
            ready_bit_lease: Some(Box::new(lent.ready_bit)),
            fence,
            doorbell,
            // Each side has reserved memory for what it offered, so for the lesser of both.
            payload_max_bytes: self.payload_max_bytes.min(offer.payload_max_bytes) as usize,
        };
        PairLink::new(parts)
            .map_err(|_| Unlinkable::Invalid("its memory does not fit its own description"))
    }

    /// A link of the interface with itself, whose doorbell is `waker`.
    pub(super) fn loopback(&self, waker: OwnedFd) -> Result<PairLink, HostError> {
        let payload_max_bytes = self.payload_max_bytes as usize;
        let fence = self.fence(true);
        PairLink::to_itself(self.geometry, payload_max_bytes, fence, waker).map_err(|error| {
            match error {
                LinkError::Memory(error) => memory(error),
                LinkError::Map(errno) => {
                    HostError::memory(self.geometry.total_bytes() as u64)(errno)
                }
                _ => invalid("mmap"),
            }
        })
    }

    /// Which side pays for barriers on a link.
    fn fence(&self, peer_takes_barriers: bool) -> Fence {
        if self.takes_barriers && peer_takes_barriers {
            Fence::Light
        } else {
            Fence::Heavy
        }
    }
}

impl From<HostError> for Unlinkable {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

fn check(file: &ReceivedFile, bytes: usize) -> Result<(), Unsuitable> {
    Memfd::check(file.borrowed().ok_or(Unsuitable::NotMemory)?, bytes)
}

fn adopt(file: Option<OwnedFd>, bytes: usize) -> Result<Memfd, Unsuitable> {
    Memfd::adopt(file.ok_or(Unsuitable::NotMemory)?, bytes)
}

fn ring_is(error: Unsuitable) -> &'static str {
    match error {
        Unsuitable::NotMemory => "its ring is not a memory file",
        Unsuitable::Pages => "its ring does not consist of ordinary pages",
        Unsuitable::Unsealed => "its ring could shrink: it is not sealed",
        Unsuitable::WriteSealed => "its ring cannot be written",
        Unsuitable::Size { .. } => "its ring has not the size that it announced",
        _ => "its ring cannot be used",
    }
}

fn memory(error: MemfdError) -> HostError {
    match error {
        MemfdError::Memory {
            needed_bytes,
            errno,
        } => HostError::memory(needed_bytes)(errno),
        MemfdError::System { call, errno } => super::HostError::system(call, 1, errno),
        _ => invalid("memfd_create"),
    }
}

fn invalid(call: &'static str) -> HostError {
    super::HostError::system(call, 0, rustix::io::Errno::INVAL)
}
