//! What one side of a link lends to the other, and what it makes of what it is lent.
//!
//! Each side makes the memory in which it receives, so it is charged for it,
//! and seals it so that it can never shrink. It believes nothing of what the
//! other side made before the kernel has confirmed seals and sizes. Once the other side has
//! mapped it, it is sealed against further writers and holes as well.

use super::codec::Offer;
use super::disposal::ReceivedFile;
use super::options::Settings;
use crate::HostError;
use hamlyn_link::LinkError;
use hamlyn_link::pair::{PairLink, PairParts};
use hamlyn_ring::doorbell::Fence;
use hamlyn_ring::duplex::LineOrder;
use hamlyn_ring::forks::Uninherited;
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::memfd::{Memfd, MemfdError, Unsuitable};
use hamlyn_ring::overflow::{LOG_BYTES_MIN, LogGeometry, LogOptions};
use hamlyn_ring::ready_bitmap::{READY_BITMAP_BYTES, ReadyBit, ReadyBitmap, ReadyBits};
use hamlyn_ring::shared::{Access, Mapping};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What an interface lends to all of its peers, and how it makes more.
pub(super) struct Lender {
    interface: u64,
    geometry: Geometry,
    payload_max_bytes: u32,
    log: Option<LogGeometry>,
    /// Bytes of logs that may still be lent.
    logs_left_bytes: Arc<AtomicU64>,
    patience_ns: u64,
    name: Option<super::name::Name>,
    ready_bitmap: Memfd,
    ready_bits: ReadyBits,
    takes_barriers: bool,
}

/// Memory in which we are to receive over one link, and the peer's number in our ready bitmap.
pub(super) struct Lent {
    receive: Mapping,
    log: Option<LentLog>,
    ready_bit: ReadyBit,
}

/// An overflow log, and its part of what may be lent.
struct LentLog {
    mapping: Mapping,
    geometry: LogGeometry,
    lease: LogLease,
}

/// Dropped with its link: its bytes may be lent again.
struct LogLease {
    left_bytes: Arc<AtomicU64>,
    bytes: u64,
}

/// One peer gets at most such a part of what is left, so that something is left for the next.
const PART_OF_LEFT: u64 = 8;

impl LogLease {
    /// The whole of `wanted`, or as much less as is its due of what is left.
    fn take(left_bytes: &Arc<AtomicU64>, wanted: LogGeometry) -> Option<(LogGeometry, Self)> {
        let mut geometry = None;
        let taken = left_bytes.fetch_update(Relaxed, Relaxed, |left| {
            let due = (left / PART_OF_LEFT).max(u64::from(LOG_BYTES_MIN));
            geometry = wanted.within(due.min(left));
            Some(left - geometry?.bytes())
        });
        let (Ok(_), Some(geometry)) = (taken, geometry) else {
            return None;
        };
        let lease = Self {
            left_bytes: Arc::clone(left_bytes),
            bytes: geometry.bytes(),
        };
        Some((geometry, lease))
    }
}

impl Drop for LogLease {
    fn drop(&mut self) {
        self.left_bytes.fetch_add(self.bytes, Relaxed);
    }
}

/// The files of such memory, for the peer.
pub(super) struct LentFile {
    file: Memfd,
    log: Option<Memfd>,
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
            log: settings.log,
            logs_left_bytes: Arc::new(AtomicU64::new(settings.logs_bytes)),
            patience_ns: settings.patience_ns,
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
        let (log, log_file) = match self.lend_log() {
            Some((log, file)) => (Some(log), Some(file)),
            None => (None, None),
        };
        let lent = Lent {
            receive: mapping,
            log,
            ready_bit: self.ready_bits.lend(),
        };
        let file = LentFile {
            file,
            log: log_file,
            geometry: self.geometry,
            payload_max_bytes,
        };
        Ok((lent, file))
    }

    /// An overflow log, if there are to be some, and some is left for this one, and the system has
    /// room for it: a link works without.
    fn lend_log(&self) -> Option<(LentLog, Memfd)> {
        let (geometry, lease) = LogLease::take(&self.logs_left_bytes, self.log?)?;
        let file = Memfd::create("hamlyn-overflow", geometry.bytes() as usize, 0).ok()?;
        let mapping = file.map(Access::Writable).ok()?;
        let lent = LentLog {
            mapping,
            geometry,
            lease,
        };
        Some((lent, file))
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
            log_bytes: lent
                .log
                .as_ref()
                .map_or(0, |log| log.geometry.bytes() as u32),
        }
    }

    /// The descriptors that go with the offer.
    pub(super) fn descriptors<'a>(&'a self, file: &'a LentFile) -> Vec<BorrowedFd<'a>> {
        let log = file.log.as_ref().map(Memfd::as_fd);
        let always = [file.file.as_fd(), self.ready_bitmap.as_fd()];
        always.into_iter().chain(log).collect()
    }

    /// Makes a link of our half and the peer's.
    pub(super) fn join(
        &self,
        lent: Lent,
        offer: &Offer,
        files: Vec<ReceivedFile>,
        control: &Uninherited,
        order: LineOrder,
    ) -> Result<PairLink, Unlinkable> {
        let send_geometry = Geometry::new(offer.cells, offer.arena_bytes)
            .map_err(|_| Unlinkable::Invalid("its ring has sizes that are not allowed"))?;
        let log_geometry = match offer.log_bytes {
            0 => None,
            bytes => Some(LogGeometry::new(bytes).ok_or(Unlinkable::Invalid(
                "its overflow log has a size that is not allowed",
            ))?),
        };
        // The kernel has said that there are as many as the offer says.
        let [ring, ready_bitmap, rest @ ..] = &files[..] else {
            return Err(Unlinkable::Invalid("it came without its memory"));
        };
        // What is not as it must be is closed aside.
        check(ring, send_geometry.total_bytes())
            .map_err(|error| Unlinkable::Invalid(ring_is(error)))?;
        let not_a_page = "its ready bitmap is not a sealed page of memory";
        check(ready_bitmap, READY_BITMAP_BYTES).map_err(|_| Unlinkable::Invalid(not_a_page))?;
        let not_a_log = "its overflow log is not a sealed memory file of its size";
        for (log, geometry) in rest.iter().zip(log_geometry) {
            check(log, geometry.bytes() as usize).map_err(|_| Unlinkable::Invalid(not_a_log))?;
        }
        let mut files = files.into_iter().map(ReceivedFile::into_fd);
        let ring = adopt(files.next().flatten(), send_geometry.total_bytes())
            .map_err(|error| Unlinkable::Invalid(ring_is(error)))?;
        let ready_bitmap = adopt(files.next().flatten(), READY_BITMAP_BYTES)
            .map_err(|_| Unlinkable::Invalid(not_a_page))?;
        let send_log = match log_geometry {
            Some(geometry) => {
                let log = adopt(files.next().flatten(), geometry.bytes() as usize)
                    .map_err(|_| Unlinkable::Invalid(not_a_log))?;
                let options = LogOptions {
                    geometry,
                    patience_ns: self.patience_ns,
                };
                // A link works without, if there is no room for it here.
                let mapping = log.map(Access::Writable).ok();
                mapping.map(|mapping| (mapping, options))
            }
            None => None,
        };
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
        let (receive_log, log_lease) = match lent.log {
            Some(log) => (Some((log.mapping, log.geometry)), Some(log.lease)),
            None => (None, None),
        };
        let parts = PairParts {
            receive: lent.receive,
            receive_geometry: self.geometry,
            receive_log,
            send_log,
            send,
            send_file: ring.into_fd(),
            send_geometry,
            order,
            peer_bitmap: ready_bitmap,
            bit_at_peer: offer.ready_bit,
            ready_bit: lent.ready_bit.number(),
            lease: Some(Box::new((lent.ready_bit, log_lease))),
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
