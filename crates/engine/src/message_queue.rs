//! The queue of a port: messages that wait, in its own memory.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::limits::PORT_QUEUE_UNIT_BYTES;
use crate::memory::LinkId;
use crate::refusal::Refusal;

/// A message of a port, whose bytes are in the memory of its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// The handler that it is for.
    pub handler: u16,
    /// Its number of bytes.
    pub length_bytes: u32,
    /// The link over which it came.
    pub from: LinkId,
}

/// A message that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    arrived: Arrived,
    /// Its first byte in the queue.
    at: u32,
    /// Bytes that are free again when it is taken: its own, and those skipped before them, as it
    /// lies in one piece.
    taken_bytes: u32,
}

/// The bytes that a message of that length counts in a queue: units that it begins, one at least.
const fn counted_bytes(length_bytes: u32) -> u32 {
    const UNIT: u32 = PORT_QUEUE_UNIT_BYTES;
    match length_bytes {
        0 => UNIT,
        _ => length_bytes.saturating_add(UNIT - 1) / UNIT * UNIT,
    }
}

/// Memory of a queue that is of no port: ports that take turns at being parked, one after the other,
/// do so without the system, which would map and clear it each time.
#[derive(Debug)]
pub(crate) struct Spare {
    bytes: Box<[u8]>,
    waiting: VecDeque<Waiting>,
}

pub(crate) type Spares = Vec<Spare>;

/// Spares that are kept.
pub(crate) const SPARES_MAX: usize = 4;

/// Messages that wait, in order, each in one piece.
#[derive(Debug)]
pub(crate) struct MessageQueue {
    /// None while the port is parked and no message waits.
    pub(crate) bytes: Box<[u8]>,
    pub(crate) queue_bytes: u32,
    pub(crate) waiting: VecDeque<Waiting>,
    /// The first byte that the next one may take.
    end: u32,
    pub(crate) used_bytes: u32,
    peer_bytes: u32,
    /// Bytes that messages of a link take, by the index of the link; of which generation it is.
    pub(crate) peers: Vec<(u32, u32)>,
    pub(crate) queued: u64,
}

impl MessageQueue {
    pub(crate) fn new(queue_bytes: u32, peer_bytes: u32, spares: &mut Spares) -> Self {
        let mut queue = Self {
            bytes: Box::default(),
            queue_bytes,
            waiting: VecDeque::new(),
            end: 0,
            used_bytes: 0,
            peer_bytes,
            peers: Vec::new(),
            queued: 0,
        };
        queue.reserve(spares);
        queue
    }

    /// Has memory for messages: that of another one, if there is a spare one of its length.
    pub(crate) fn reserve(&mut self, spares: &mut Spares) {
        if !self.bytes.is_empty() {
            return;
        }
        let fits = |spare: &Spare| spare.bytes.len() == self.queue_bytes as usize;
        let spare = match spares.iter().position(fits) {
            Some(at) => spares.swap_remove(at),
            None => Spare {
                bytes: vec![0; self.queue_bytes as usize].into_boxed_slice(),
                waiting: VecDeque::with_capacity(
                    (self.queue_bytes / PORT_QUEUE_UNIT_BYTES) as usize,
                ),
            },
        };
        (self.bytes, self.waiting) = (spare.bytes, spare.waiting);
    }

    /// Gives its memory back, unless messages wait there.
    pub(crate) fn release(&mut self, spares: &mut Spares) {
        if self.bytes.is_empty() || !self.waiting.is_empty() {
            return;
        }
        let spare = Spare {
            bytes: core::mem::take(&mut self.bytes),
            waiting: core::mem::take(&mut self.waiting),
        };
        self.peers = Vec::new();
        self.end = 0;
        self.used_bytes = 0;
        if spares.len() < SPARES_MAX {
            spares.push(spare);
        }
    }

    /// Reserves memory for the count of links up to that index.
    pub(crate) fn reserve_peers(&mut self, index: usize) {
        if self.peers.len() <= index {
            self.peers.resize(index + 1, (0, 0));
        }
    }

    /// The bytes that messages of that link take.
    pub(crate) fn peer(&mut self, from: LinkId) -> &mut u32 {
        let index = from.index as usize;
        self.reserve_peers(index);
        let (generation, bytes) = &mut self.peers[index];
        if *generation != from.generation {
            (*generation, *bytes) = (from.generation, 0);
        }
        bytes
    }

    /// Puts in a message, which `fill` stores.
    pub(crate) fn push(
        &mut self,
        arrived: Arrived,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let capacity = self.bytes.len() as u32;
        let needed = counted_bytes(arrived.length_bytes);
        let allowed = self.peer_bytes;
        if needed > capacity || needed > allowed.saturating_sub(*self.peer(arrived.from)) {
            return Err(Refusal::QueueFull);
        }
        if self.used_bytes == 0 {
            // The first lines stay warm.
            self.end = 0;
        }
        let skipped = if capacity - self.end < needed {
            capacity - self.end
        } else {
            0
        };
        if skipped + needed > capacity - self.used_bytes {
            return Err(Refusal::QueueFull);
        }
        let at = (self.end + skipped) % capacity;
        let place = at as usize..(at + arrived.length_bytes) as usize;
        fill(self.bytes.get_mut(place).ok_or(Refusal::QueueFull)?)?;
        *self.peer(arrived.from) += needed;
        self.end = (at + needed) % capacity;
        self.used_bytes += skipped + needed;
        self.queued += 1;
        self.waiting.push_back(Waiting {
            arrived,
            at,
            taken_bytes: skipped + needed,
        });
        Ok(())
    }

    /// Takes out the next message, whose bytes `read` is shown.
    pub(crate) fn pop(&mut self, read: impl FnOnce(&[u8])) -> Option<Arrived> {
        let Waiting {
            arrived,
            at,
            taken_bytes,
        } = self.waiting.pop_front()?;
        read(&self.bytes[at as usize..(at + arrived.length_bytes) as usize]);
        self.used_bytes -= taken_bytes;
        let needed = counted_bytes(arrived.length_bytes);
        // A new link may have the place of the one over which it came.
        if let Some((generation, bytes)) = self.peers.get_mut(arrived.from.index as usize)
            && *generation == arrived.from.generation
        {
            *bytes -= needed;
        }
        Some(arrived)
    }
}
