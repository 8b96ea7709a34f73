//! A lane of a service: offered to those who come, and then one client's.

use std::collections::VecDeque;

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::SlotName;
use hamlyn_host::Host;
use hamlyn_ring::area::Area;

use super::ServiceOptions;
use super::wire::{BOARD_BYTES, LaneSeed, Word};
use crate::error::OpenError;
use crate::lane::buffers::{Buffers, Remote, WORDS};
use crate::lobby::{Greeting, Guest, Place, Unwelcome};
use crate::manager::ClassId;
use crate::remains::{Leaving, Remains};
use crate::session::Session;
use crate::slot::{NewSlot, Slot};

/// The parts of a lane.
pub(super) struct Opened {
    pub(super) buffers: Buffers,
    /// The calls that its client cancels: a number for each buffer.
    pub(super) board: Area,
    pub(super) board_slot: Slot,
    /// Buffers in which requests landed before the greeting did.
    pub(super) early: Vec<(u16, LinkId)>,
    /// The greeting or the good-bye that came, by its entry, and over which link.
    pub(super) said: Option<(u16, LinkId)>,
    pub(super) class: ClassId,
    pub(super) options: ServiceOptions,
    pub(super) leaving: Leaving,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            slots: vec![self.name(), self.board_slot.name()],
            entries: Some((self.class, usize::from(self.buffers.count()) + WORDS)),
            ..Remains::default()
        });
    }
}

impl Opened {
    pub(super) fn name(&self) -> SlotName {
        self.buffers.name()
    }

    /// Notes a message that came before its client was let in.
    pub(super) fn note_early(&mut self, index: u16, from: LinkId) {
        match index < self.options.outstanding {
            true => self.early.push((index, from)),
            false => self.said = self.said.or(Some((index, from))),
        }
    }
}

impl Guest for Opened {
    type Options = (ClassId, ServiceOptions);

    fn open<H: Host>(
        session: &mut Session<'_, H>,
        &(class, options): &Self::Options,
    ) -> Result<Self, OpenError> {
        let outstanding = options.outstanding;
        let entries = usize::from(outstanding) + WORDS;
        session.core.reserve(class, entries)?;
        let open = |session: &mut Session<'_, H>| {
            let board = session.allocate(u64::from(outstanding) * BOARD_BYTES)?;
            let board_slot = session.open_slot(NewSlot::new(&board))?;
            match Buffers::open(session, class, outstanding, options.request_bytes) {
                Ok(buffers) => Ok((buffers, board, board_slot)),
                Err(error) => {
                    session.close_slot(board_slot)?;
                    Err(error)
                }
            }
        };
        let opened = open(session).inspect_err(|_| session.core.unreserve(class, entries));
        let (mut buffers, board, board_slot) = opened?;
        for index in 0..outstanding {
            buffers.arm(index);
        }
        Ok(Self {
            buffers,
            board,
            board_slot,
            early: Vec::new(),
            said: None,
            class,
            options,
            leaving: session.leaving.clone(),
        })
    }

    fn seed(&self) -> Vec<u8> {
        let seed = LaneSeed {
            requests: self.buffers.ticket(),
            board: self.board_slot.whole_fast(),
            outstanding: self.options.outstanding,
            request_bytes: self.options.request_bytes,
            reply_bytes: self.options.reply_bytes,
        };
        seed.to_bytes().to_vec()
    }

    /// Its client presents itself with a ticket of its own.
    fn greeting<H: Host>(&mut self, _: &mut Session<'_, H>) -> Result<Option<Greeting>, Unwelcome> {
        let Some((index, link)) = self.said else {
            return Ok(None);
        };
        if index > self.options.outstanding {
            return Err(Unwelcome::Left);
        }
        // Requests that came over another link are not this client's.
        let is_alone = self.early.iter().all(|&(_, by)| by == link);
        let ticket = self.buffers.greeting().filter(|_| is_alone);
        let of = ticket.ok_or(Unwelcome::Misbehaved)?.destination;
        Ok(Some(Greeting { link, of }))
    }
}

/// A lane and its client, which is told when it is gone.
pub(super) struct Lane {
    pub(super) _place: Place,
    pub(super) opened: Opened,
    pub(super) client: Remote,
    /// The request in each buffer that the application has, or will have.
    pub(super) held: Box<[Option<Word>]>,
    /// Answers that found no room.
    pub(super) owed: VecDeque<(u16, Word, Vec<u8>)>,
    /// Answers that were sent.
    pub(super) answers: u64,
}

impl Drop for Lane {
    /// What it owes goes before the last word, as soon as there is room.
    fn drop(&mut self) {
        let answers = self.answers + self.owed.len() as u64;
        let owed = self.owed.drain(..);
        let owed = owed.map(|(index, word, data)| self.client.owed(index, word.to_lane(), data));
        for last_word in owed.chain([self.client.farewell(answers)]) {
            self.opened.leaving.leave(Remains {
                last_word: Some(last_word),
                ..Remains::default()
            });
        }
    }
}

impl Lane {
    pub(super) fn link(&self) -> LinkId {
        self.client.target().link()
    }
}
