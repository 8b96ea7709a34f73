//! Messages that are copied to their reader, over a lane of its own: one buffer for each sample
//! that it may have.

use hamlyn_host::Host;

use super::returns::malformed;
use super::wire::{Lane, NUMBER_BYTES};
use crate::error::{ConnectError, ReceiveError};
use crate::lane::wire::LENGTH_BYTES_MAX;
use crate::lane::{self, LaneMessage, LaneOptions, LaneSeed};
use crate::message::Target;
use crate::session::Session;
use crate::tasks::{Answerer, Interest};

/// The reader's end. See the module.
pub(super) struct Copies {
    lane: lane::Lane,
    /// The buffer of the next message: the publisher fills them in turn.
    next: u16,
    /// Messages that came before that one, as packets of other hosts come in any order.
    early: Vec<LaneMessage>,
    /// The message that the subscriber shows.
    shown: Option<LaneMessage>,
    depth: u16,
}

impl Copies {
    pub(super) fn open<H: Host>(
        session: &mut Session<'_, H>,
        offered: &Lane,
    ) -> Result<Self, ConnectError> {
        let buffer_bytes = offered.message_bytes.checked_add(NUMBER_BYTES as u32);
        let buffer_bytes = buffer_bytes.filter(|&bytes| bytes <= LENGTH_BYTES_MAX);
        let options = LaneOptions {
            buffers: offered.depth,
            buffer_bytes: buffer_bytes.ok_or(ConnectError::Seed {
                what: "its messages may be too long for a copy, which has 2 GiB at most",
            })?,
        };
        Ok(Self {
            lane: lane::Lane::open_any(session, options)?,
            next: 0,
            early: Vec::with_capacity(usize::from(offered.depth)),
            shown: None,
            depth: offered.depth,
        })
    }

    pub(super) fn seed(&self) -> LaneSeed {
        self.lane.seed()
    }

    /// The interest of a task that found no message of that publisher.
    pub(super) fn interest(&self, publisher: &Target) -> Interest {
        self.lane.interest(Answerer::from(publisher))
    }

    /// The bytes of the message that is shown.
    pub(super) fn bytes(&self) -> &[u8] {
        let shown = self.shown.as_ref().map(|shown| self.lane.bytes(shown));
        shown.unwrap_or(&[]).get(NUMBER_BYTES..).unwrap_or(&[])
    }

    /// Gives that message back.
    pub(super) fn give_back<H: Host>(&mut self, session: &mut Session<'_, H>) {
        if let Some(shown) = self.shown.take() {
            self.lane.give_back(session, shown);
        }
    }

    /// The step of a wait for the next message, or for the newest: its number.
    pub(super) fn look<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        publisher: &Target,
        is_latest: bool,
    ) -> Result<Option<u64>, ReceiveError> {
        self.give_back(session);
        let mut newest = None;
        // As many as can have come.
        for _ in 0..self.depth {
            let message = match self.next_in_turn(session) {
                Ok(Some(message)) => message,
                // The next call says what it was.
                Ok(None) | Err(_) if newest.is_some() => break,
                Err(error) => return Err(error),
                Ok(None) if session.is_drained(publisher.link()) => {
                    return Err(session.lost(publisher).into());
                }
                Ok(None) if session.is_closed_there(publisher) => {
                    return Err(ReceiveError::Closed);
                }
                Ok(None) => break,
            };
            let Some(number) = self.lane.bytes(&message).first_chunk() else {
                return Err(malformed("a message without a number"));
            };
            newest = Some(u64::from_le_bytes(*number));
            self.give_back(session);
            self.shown = Some(message);
            if !is_latest {
                break;
            }
        }
        Ok(newest)
    }

    fn next_in_turn<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<Option<LaneMessage>, ReceiveError> {
        loop {
            let is_next = |message: &LaneMessage| message.index() == self.next;
            if let Some(at) = self.early.iter().position(is_next) {
                self.next = (self.next + 1) % self.depth;
                return Ok(Some(self.early.swap_remove(at)));
            }
            match self.lane.next(session)? {
                Some(message) => self.early.push(message),
                None => return Ok(None),
            }
        }
    }
}
