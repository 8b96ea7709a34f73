//! Modes of copies, and what a region needs of its node.

use crate::id::NodeSet;
use crate::memory::Memory;
use crate::message::{Message, Outgoing};

/// The use that a copy has, or an operation needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Mode {
    /// Reading, beside other nodes.
    Shared,
    /// Writing, by this node alone.
    Exclusive,
}

/// The parts of a node that a region needs.
pub(crate) struct Cx<'a, O> {
    pub(crate) me: u32,
    pub(crate) lost: NodeSet,
    pub(crate) out: &'a mut O,
    /// Messages sent, by kind.
    pub(crate) sent: &'a mut [u64],
    /// The number of the last request.
    pub(crate) numbers: &'a mut u32,
}

impl<O: Outgoing> Cx<'_, O> {
    pub(crate) fn send(&mut self, to: u32, message: Message) {
        self.send_bytes(to, message, &[]);
    }

    pub(crate) fn send_bytes(&mut self, to: u32, message: Message, bytes: &[u8]) {
        // Only a peer that breaks the rules names this node as a third one.
        if to != self.me && !self.lost.contains(to) {
            self.sent[message.kind as usize] += 1;
            self.out.send(to, &message, bytes);
        }
    }

    /// Sends a copy, in pieces if it is long.
    pub(crate) fn send_copy(&mut self, to: u32, message: Message, memory: &Memory) {
        let memory = memory.borrow();
        let bytes = memory.as_slice();
        let piece_bytes = self.out.piece_bytes();
        self.send_bytes(to, message, &bytes[..bytes.len().min(piece_bytes)]);
        for at in (piece_bytes..bytes.len()).step_by(piece_bytes) {
            let piece = &bytes[at..bytes.len().min(at + piece_bytes)];
            self.send_bytes(to, message.at(at), piece);
        }
    }

    /// Zero is the number of no request.
    pub(crate) fn number(&mut self) -> u32 {
        *self.numbers = self.numbers.wrapping_add(1).max(1);
        *self.numbers
    }
}
