//! What a reader gives back, and what came to it.

use hamlyn_host::Host;

use super::wire::{board_offset, given_back, pair};
use crate::drop_list::DropList;
use crate::error::{ReceiveError, SendError};

use crate::message::{Message, Target};
use crate::session::Session;
use crate::wait::Wait;

pub(super) const fn malformed(what: &'static str) -> ReceiveError {
    ReceiveError::Malformed {
        protocol: "loans",
        what,
    }
}

/// A message in the pool.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) offset: usize,
    pub(super) len: usize,
}

/// A message that came.
#[derive(Clone, Copy)]
pub(super) struct Came {
    pub(super) number: u64,
    /// In the list; nothing if it was copied, and is not to be given back there.
    pub(super) position: Option<u64>,
    /// Nothing if it was copied.
    pub(super) place: Option<Place>,
}

impl Came {
    /// A message that was copied to here.
    pub(super) fn copied(number: u64) -> Self {
        Self {
            number,
            position: None,
            place: None,
        }
    }
}

/// Where samples are given back.
pub(super) struct Returns {
    board: Target,
    depth: u16,
    /// Samples of which the publisher could not be told.
    pub(super) untold: Vec<u64>,
    /// Samples that were kept and are dropped.
    pub(super) released: DropList<u64>,
}

impl Returns {
    pub(super) fn new(board: Target, depth: u16) -> Self {
        Self {
            board,
            depth,
            untold: Vec::with_capacity(usize::from(depth)),
            released: DropList::default(),
        }
    }

    /// Tells the publisher that a sample is given back; later, if there is no room.
    #[inline]
    pub(super) fn give_back<H: Host>(&mut self, session: &mut Session<'_, H>, position: u64) {
        if !self.tell(session, position) {
            self.untold.push(position);
        }
    }

    /// The same of a message that came, unless it was found by the head.
    pub(super) fn give_back_came<H: Host>(&mut self, session: &mut Session<'_, H>, came: Came) {
        if let Some(position) = came.position {
            self.give_back(session, position);
        }
    }

    #[inline]
    fn tell<H: Host>(&self, session: &mut Session<'_, H>, position: u64) -> bool {
        let data = pair(given_back(position), 0);
        let message = Message::new(&data).at(board_offset(position, self.depth));
        let told = session.send(&self.board, &message, Wait::Poll);
        // A publisher that is gone need not be told.
        !matches!(told, Err(SendError::WouldBlock { .. }))
    }

    /// True if samples are to be given back when there is room.
    pub(super) fn owes(&self) -> bool {
        !self.untold.is_empty() || !self.released.is_empty()
    }

    pub(super) fn give_back_released<H: Host>(&mut self, session: &mut Session<'_, H>) {
        let released = self.released.clone();
        released.retain(|&mut position| !self.tell(session, position));
        let mut untold = std::mem::take(&mut self.untold);
        untold.retain(|&position| !self.tell(session, position));
        self.untold = untold;
    }
}
