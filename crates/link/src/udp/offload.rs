//! Segmentation offload: whether the kernel cuts runs of datagrams for us, and how long it cuts at
//! present.
//!
//! The length of segments is a property of the socket (`UDP_SEGMENT`), set only when it changes; so
//! a run needs no control message, and a single datagram goes by the plainest call there is. What
//! is refused once is not asked for again: a driver that cannot compute checksums says so only when
//! it is used.

use std::os::fd::BorrowedFd;

use nix::sys::socket::{getsockopt, setsockopt, sockopt};

use super::batch::BATCH_DATAGRAMS;

/// What one socket's kernel does for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Offload {
    /// The kernel cuts runs.
    segments: bool,
    /// The kernel joins runs, and says so.
    joins: bool,
    /// What the socket is set to: zero is no cutting.
    segment_bytes: u16,
}

impl Offload {
    /// Asks the kernel, once for a socket. What is not `wanted` is not used.
    pub(super) fn probe(socket: BorrowedFd<'_>, wanted: bool) -> Self {
        let segments = wanted && getsockopt(&socket, sockopt::UdpGsoSegment).is_ok();
        let joins = wanted && setsockopt(&socket, sockopt::UdpGroSegment, &true).is_ok();
        Self {
            segments,
            joins,
            segment_bytes: 0,
        }
    }

    pub(super) fn segments(self) -> bool {
        self.segments
    }

    pub(super) fn joins(self) -> bool {
        self.joins
    }

    /// How many datagrams one call may take.
    #[inline]
    pub(super) fn datagrams_max(self) -> usize {
        if self.segments { BATCH_DATAGRAMS } else { 1 }
    }

    /// Sees to it that the kernel cuts a run of so many datagrams, the first of which has so many
    /// bytes, as it was put together. False if it cannot, which is known from then on: the run is
    /// to be made anew.
    #[inline]
    pub(super) fn prepare(
        &mut self,
        socket: BorrowedFd<'_>,
        datagrams: usize,
        segment_bytes: u16,
    ) -> bool {
        // A single datagram that is not longer than a segment goes uncut, whatever that is set to.
        let is_set = match datagrams {
            0 | 1 => self.segment_bytes == 0 || segment_bytes <= self.segment_bytes,
            _ => segment_bytes == self.segment_bytes,
        };
        is_set || self.set(socket, segment_bytes)
    }

    #[cold]
    fn set(&mut self, socket: BorrowedFd<'_>, segment_bytes: u16) -> bool {
        if setsockopt(&socket, sockopt::UdpGsoSegment, &i32::from(segment_bytes)).is_ok() {
            self.segment_bytes = segment_bytes;
            return true;
        }
        self.give_up(socket);
        false
    }

    /// Whether a datagram of this length may have been refused only because of what is set for
    /// runs.
    pub(super) fn is_stricter(self, datagram_bytes: usize) -> bool {
        datagram_bytes < usize::from(self.segment_bytes)
    }

    /// Nothing is cut until the next run.
    pub(super) fn rest(&mut self, socket: BorrowedFd<'_>) {
        self.set(socket, 0);
    }

    /// Nothing is cut any more.
    pub(super) fn give_up(&mut self, socket: BorrowedFd<'_>) {
        // If even this fails nothing was ever set.
        let _ = setsockopt(&socket, sockopt::UdpGsoSegment, &0);
        self.segments = false;
        self.segment_bytes = 0;
    }
}
