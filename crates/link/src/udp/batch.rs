//! Buffers for datagrams: those to be sent, and those that came.
//!
//! Datagrams to be sent lie end to end in one buffer, which is how segmentation offload wants them:
//! the kernel cuts a run of equal lengths, whose last may be shorter. The kernel may have joined
//! several received datagrams; they are given out one by one, and are read and decrypted in place.
//! Their packet headers say where they were joined; a forged datagram among them may lie about
//! that, and is outvoted. Both buffers refuse what does not fit; neither allocates after it was
//! made.

use core::ops::Range;
use std::net::SocketAddr;

use super::DATAGRAM_BYTES_MAX;
use super::packet_header::{PACKET_HEADER_BYTES, claimed_bytes};

/// Datagrams of one batch: so many segments the kernel cuts in one call.
pub const BATCH_DATAGRAMS: usize = 64;
/// So many lying datagrams at the beginning of a run are seen through; with more it is lost.
const LIARS_MAX: usize = 4;
/// What one call of the kernel may bring: joined datagrams are as long as one packet of IP at most.
pub(crate) const INBOX_BYTES: usize = 65_536;

/// Datagrams to be sent to one peer, in order.
#[derive(Debug)]
pub struct Batch {
    bytes: Box<[u8]>,
    lengths: [u16; BATCH_DATAGRAMS],
    /// Those before it are sent.
    first: usize,
    /// Those before it are there.
    count: usize,
    /// Where the first that is not sent begins.
    start: usize,
    /// Where the next one goes.
    end: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// An empty batch. Allocates 64 KiB; nothing else does.
    pub fn new() -> Self {
        Self {
            bytes: vec![0; DATAGRAM_BYTES_MAX].into_boxed_slice(),
            lengths: [0; BATCH_DATAGRAMS],
            first: 0,
            count: 0,
            start: 0,
            end: 0,
        }
    }

    /// Room for one more datagram of up to `bytes` bytes, to be written to and then
    /// [`Batch::push`]ed. Nothing if the batch is full: then it must be sent first.
    #[inline]
    pub fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if self.count == BATCH_DATAGRAMS {
            return None;
        }
        self.bytes.get_mut(self.end..self.end.checked_add(bytes)?)
    }

    /// The first `bytes` bytes of the room are a datagram. Does nothing with none, nor with more
    /// than there is room for.
    #[inline]
    pub fn push(&mut self, bytes: usize) {
        let fits = bytes <= self.bytes.len() - self.end && self.count < BATCH_DATAGRAMS;
        debug_assert!(fits, "more was written than there is room for");
        if bytes > 0 && fits {
            self.lengths[self.count] = bytes as u16;
            self.count += 1;
            self.end += bytes;
        }
    }

    /// How many datagrams wait to be sent.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.count - self.first
    }

    /// Whether none waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == self.count
    }

    /// Forgets all that was not sent.
    #[inline]
    pub fn clear(&mut self) {
        self.first = 0;
        self.count = 0;
        self.start = 0;
        self.end = 0;
    }

    /// The datagrams to be sent next in one call, at most `datagrams_max`: end to end, each of
    /// `segment_bytes` but the last, which may be shorter.
    #[inline]
    pub(super) fn run(&self, datagrams_max: usize) -> Option<Run<'_>> {
        let waiting = self.lengths.get(self.first..self.count)?;
        let &segment = waiting.first()?;
        let mut datagrams = 0;
        let mut bytes = 0;
        for &length in waiting.iter().take(datagrams_max) {
            if length > segment {
                break;
            }
            datagrams += 1;
            bytes += usize::from(length);
            if length < segment {
                break;
            }
        }
        Some(Run {
            bytes: &self.bytes[self.start..self.start + bytes],
            datagrams,
            segment_bytes: segment,
        })
    }

    /// So many datagrams, of so many bytes together, are done with.
    #[inline]
    pub(super) fn done(&mut self, datagrams: usize, bytes: usize) {
        self.first += datagrams;
        self.start += bytes;
        if self.first >= self.count {
            self.clear();
        }
    }

    /// The first one that waits.
    pub fn first(&self) -> Option<&[u8]> {
        let length = usize::from(*self.lengths[..self.count].get(self.first)?);
        self.bytes.get(self.start..self.start + length)
    }

    /// Leaves out the first one that waits, however it came that it cannot be sent. Its length in
    /// bytes.
    pub fn drop_first(&mut self) -> Option<usize> {
        let length = usize::from(*self.lengths[..self.count].get(self.first)?);
        self.done(1, length);
        Some(length)
    }
}

/// What one call sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) datagrams: usize,
    pub(super) segment_bytes: u16,
}

/// Datagrams that came.
#[derive(Debug)]
pub struct Inbox {
    pub(super) bytes: Vec<u8>,
    /// The bytes that are not given out yet.
    rest: Range<usize>,
    /// How long each is, not zero if there are any; the last may be shorter.
    segment_bytes: usize,
    source: Option<SocketAddr>,
    /// How long ago the first of them came when the call brought them, if the system said so.
    waited_ns: Option<u64>,
    current: Range<usize>,
}

/// One datagram that came. It stays where it is until the next one is asked for.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// Where in the inbox it begins.
    pub at: usize,
    /// Its bytes, which may be decrypted in place.
    pub bytes: &'a mut [u8],
    /// Who sent it; nothing if the socket is connected: then its peer sent it.
    pub source: Option<SocketAddr>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Inbox {
    /// An empty one. Allocates 64 KiB; nothing else does. One serves any number of sockets, in
    /// turn.
    pub fn new() -> Self {
        Self {
            bytes: vec![0; INBOX_BYTES],
            rest: 0..0,
            segment_bytes: 0,
            source: None,
            waited_ns: None,
            current: 0..0,
        }
    }

    /// The next datagram, if there is one.
    #[expect(
        clippy::should_implement_trait,
        reason = "it lends: an iterator could not"
    )]
    #[inline]
    pub fn next(&mut self) -> Option<Datagram<'_>> {
        if self.rest.is_empty() {
            return None;
        }
        self.current = self.first();
        self.rest.start = self.current.end;
        Some(Datagram {
            at: self.current.start,
            bytes: &mut self.bytes[self.current.clone()],
            source: self.source,
        })
    }

    /// The datagram that [`Inbox::next`] would give out.
    #[inline]
    pub fn peek(&self) -> Option<&[u8]> {
        (!self.rest.is_empty()).then(|| &self.bytes[self.first()])
    }

    /// Where the first that is not given out lies, if there is one.
    #[inline]
    fn first(&self) -> Range<usize> {
        self.rest.start..self.rest.end.min(self.rest.start + self.segment_bytes)
    }

    /// All its memory, as it is; offsets of datagrams are offsets in it.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Gives its memory away, with the datagrams that were given out in it, for another. What it
    /// still held is gone. Allocates if the other one is shorter.
    pub fn exchange(&mut self, memory: &mut Vec<u8>) {
        self.fill(0, None, None);
        memory.resize(INBOX_BYTES, 0);
        core::mem::swap(&mut self.bytes, memory);
    }

    /// The datagram that was given out last, as it is now; empty if there was none since the inbox
    /// was filled.
    #[inline]
    pub fn current(&self) -> &[u8] {
        &self.bytes[self.current.clone()]
    }

    /// Whether all of them were given out.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Puts there what a call would bring, as far as there is room: one datagram, or several of one
    /// source, end to end and as long as each other but for the last, if a system `joins` them; a
    /// single one has hardly more bytes than that then. For sockets that are none of the system's.
    pub fn load(&mut self, came: &[u8], joins: Option<usize>, from: SocketAddr) {
        let bytes = came.len().min(self.bytes.len());
        self.bytes[..bytes].copy_from_slice(&came[..bytes]);
        self.fill(bytes, joins, Some(from));
    }

    /// Says how long ago the first of them came. By the socket that filled it.
    #[inline]
    pub fn note_wait(&mut self, waited_ns: u64) {
        self.waited_ns = Some(waited_ns);
    }

    /// How long ago the first of them came when the call brought them, if that is known.
    #[inline]
    pub fn waited_ns(&self) -> Option<u64> {
        self.waited_ns
    }

    /// Says that nothing came. What it still held is gone.
    pub fn empty(&mut self) {
        self.fill(0, None, None);
    }

    /// What one call brought: one datagram, or several if the kernel may have joined them. A single
    /// one has hardly more than `single_bytes_max` bytes.
    #[inline]
    pub(super) fn fill(
        &mut self,
        bytes: usize,
        single_bytes_max: Option<usize>,
        from: Option<SocketAddr>,
    ) {
        let bytes = bytes.min(self.bytes.len());
        self.rest = 0..bytes;
        self.current = 0..0;
        let joined = &self.bytes[..bytes];
        self.segment_bytes = single_bytes_max.map_or(bytes, |single| segment_bytes(joined, single));
        self.source = from;
        self.waited_ns = None;
    }
}

/// How long the datagrams are that were joined; the last may be shorter. The kernel joins only
/// equal ones of one source and port, so the length on which most of them agree is right, whatever
/// a few of them say.
#[inline]
fn segment_bytes(joined: &[u8], single_bytes_max: usize) -> usize {
    let all = joined.len();
    let claimed = claimed_bytes(joined).filter(|&claimed| claimed <= all);
    match claimed {
        // If this is a lie it costs others no more than one datagram has.
        Some(claimed)
            if claimed <= single_bytes_max && (claimed == all || is_agreed(joined, claimed)) =>
        {
            claimed
        }
        _ => search(joined).or(claimed).unwrap_or(all),
    }
}

/// Whether at least half of the datagrams but the first, whose word it is, are so long, as they say
/// themselves.
fn is_agreed(joined: &[u8], segment_bytes: usize) -> bool {
    let (mut others, mut agreed) = (0, 0);
    for datagram in joined.chunks(segment_bytes).skip(1) {
        others += 1;
        agreed += usize::from(claimed_bytes(datagram) == Some(datagram.len()));
    }
    agreed * 2 >= others
}

/// The first datagram lies. One of the next few does not: it begins at a multiple of its length, or
/// is the second and the last. The work is bounded by the number of bytes, but for a small factor:
/// to try a length costs one look at each datagram of that length.
#[cold]
fn search(joined: &[u8]) -> Option<usize> {
    let all = joined.len();
    let may_be = |at: usize| {
        let claimed = claimed_bytes(&joined[at..])?;
        let segment = match claimed {
            _ if at + claimed == all && claimed < at => at,
            _ if at.is_multiple_of(claimed) && at / claimed <= LIARS_MAX => claimed,
            _ => return None,
        };
        is_agreed(joined, segment).then_some(segment)
    };
    (PACKET_HEADER_BYTES..all).find_map(may_be)
}

#[cfg(test)]
mod tests;
