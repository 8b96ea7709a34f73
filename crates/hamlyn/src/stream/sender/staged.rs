//! What a sender has copied because its program would not wait.

use std::collections::VecDeque;

use hamlyn_engine::terminus::SendHandle;

use crate::message::{Sending, Target};
use crate::stream::wire::Kind;

/// What is left of a piece that was cut when the wait for it was over.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) target: Target,
    pub(super) sending: Sending,
    /// All of the piece.
    pub(super) data: Vec<u8>,
    pub(super) metadata: [u8; 8],
}

/// A record, or a pack of them, that was copied because its sender would not wait.
#[derive(Debug)]
pub(super) struct Staged {
    /// Those that are not queued.
    pub(super) pieces: VecDeque<Vec<u8>>,
    /// The kind of the next piece, and the length that it tells.
    pub(super) kind: Kind,
    pub(super) told_bytes: usize,
    pub(super) last: Option<SendHandle>,
}

impl Staged {
    /// Whether nothing of it is still to be queued.
    pub(super) fn is_all_queued(&self) -> bool {
        self.pieces.is_empty()
    }
}
