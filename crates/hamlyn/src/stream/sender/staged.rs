//! What a sender has copied because its program would not wait.

use hamlyn_engine::terminus::{SendHandle, SendTag};
use hamlyn_ring::area::Area;

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
    /// Kept as long as the interface pulls from it.
    pub(super) _area: Area,
    pub(super) tag: SendTag,
    /// What a piece that holds all of it is; [`Kind::Next`] if its beginning is sent already.
    pub(super) kind: Kind,
    pub(super) length_bytes: usize,
    pub(super) sent_bytes: usize,
    pub(super) last: Option<SendHandle>,
}

impl Staged {
    /// Whether nothing of it is still to be queued.
    pub(super) fn is_all_queued(&self) -> bool {
        self.sent_bytes == self.length_bytes
    }
}
