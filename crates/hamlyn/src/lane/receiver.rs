//! The receiving end of a lane.

use std::collections::VecDeque;

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::SlotName;
use hamlyn_host::Host;

use super::buffers::{Buffers, WORDS};
use super::wire::BOARD_BYTES;
use super::{LaneOptions, LaneSeed};
use crate::arrival::{Arrival, ClassId};
use crate::error::{OpenError, ReceiveError, SendError};
use crate::lobby::{Greeting, Guest, Unwelcome};
use crate::message::{Message, Target};
use crate::remains::{LastWord, Leaving, Remains};
use crate::session::Session;
use crate::tasks::{Answerer, Interest};
use crate::wait::Wait;

/// The receiving end of a lane. See [the module](crate::lane). When it is dropped, its sender is
/// told by the manager's next call that waits; [`Lane::close`] does not leave it to that.
#[derive(Debug)]
pub struct Lane {
    buffers: Buffers,
    options: LaneOptions,
    class: ClassId,
    /// The link of the first message, which all others must come over.
    from: Option<LinkId>,
    /// The place of credit, once the sender has presented itself.
    board: Option<Target>,
    /// Times that each buffer was given back; and behind them, once the sender was let in.
    given_back: Box<[u64]>,
    /// Those of them of which the sender could not be told.
    untold: Vec<u16>,
    received: u64,
    /// Messages that came before the greeting did.
    early: VecDeque<LaneMessage>,
    /// The number of messages, once the sender has said good-bye.
    told: Option<u64>,
    broken: Option<&'static str>,
    leaving: Leaving,
}

/// A message in a buffer of a lane. Until it is given back ([`Lane::give_back`]), the buffer is
/// not the sender's; one that is dropped instead keeps its buffer for as long as the lane lasts.
#[must_use = "a buffer is the sender's again when its message is given back"]
#[derive(Debug)]
pub struct LaneMessage {
    lane: SlotName,
    index: u16,
    length_bytes: u32,
    tag: u32,
}

impl LaneMessage {
    /// The number of its buffer.
    pub fn index(&self) -> u16 {
        self.index
    }

    /// The number that the sender gave it.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// Its number of bytes.
    pub fn len(&self) -> usize {
        self.length_bytes as usize
    }

    /// True if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length_bytes == 0
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let last_word = self.board.map(|mut target| {
            target.set_metadata_index(0);
            LastWord::new(target, vec![0])
        });
        self.leaving.leave(Remains {
            slots: vec![self.buffers.name()],
            class: Some(self.class),
            last_word,
            ..Remains::default()
        });
    }
}

impl Lane {
    /// Opens a lane, all of whose buffers are free. Does not block; allocates.
    pub fn open<H: Host>(
        session: &mut Session<'_, H>,
        options: LaneOptions,
    ) -> Result<Self, OpenError> {
        options.check()?;
        session.check()?;
        Self::open_any(session, options)
    }

    /// The same with buffers of up to [`LENGTH_BYTES_MAX`](super::wire::LENGTH_BYTES_MAX).
    pub(crate) fn open_any<H: Host>(
        session: &mut Session<'_, H>,
        options: LaneOptions,
    ) -> Result<Self, OpenError> {
        let count = options.buffers;
        let class = session.core.register_queued(usize::from(count) + WORDS)?;
        let opened = Buffers::open(session, class, count, options.buffer_bytes);
        let mut buffers = opened.inspect_err(|_| session.core.unregister(class))?;
        for index in 0..count {
            buffers.arm(index);
        }
        Ok(Self {
            buffers,
            options,
            class,
            from: None,
            board: None,
            given_back: vec![0; usize::from(count) + 1].into(),
            untold: Vec::with_capacity(usize::from(count) + 1),
            received: 0,
            early: VecDeque::new(),
            told: None,
            broken: None,
            leaving: session.leaving.clone(),
        })
    }

    /// Ends the lane, and tells its sender as soon as there is room. Does not block.
    pub fn close<H: Host>(self, session: &mut Session<'_, H>) {
        drop(self);
        session.core.reap();
    }

    /// The seed of its sender.
    pub fn seed(&self) -> LaneSeed {
        LaneSeed {
            ticket: self.buffers.ticket(),
            buffers: self.options.buffers,
            buffer_bytes: self.options.buffer_bytes,
        }
    }

    /// The link to its sender, once something came:
    /// [`identity_of`](crate::Interface::identity_of) says who that is.
    pub fn link(&self) -> Option<LinkId> {
        self.from
    }

    /// The next message, if one has come. Does not block and does not allocate.
    ///
    /// # Errors
    ///
    /// Those after which nothing comes any more: [`ReceiveError::Closed`] if the sender has ended
    /// and all that it sent was received, [`ReceiveError::PeerLost`] if it is gone, and
    /// [`ReceiveError::Malformed`] if it broke the protocol.
    pub fn next<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<Option<LaneMessage>, ReceiveError> {
        session.check()?;
        self.tell_untold(session);
        let message = match self.early.pop_front() {
            Some(message) => Some(message),
            None => self.next_arrived(session),
        };
        if message.is_some() {
            return Ok(message);
        }
        if let Some(what) = self.broken {
            return Err(ReceiveError::Malformed {
                protocol: "lane",
                what,
            });
        }
        if self.told.is_some_and(|told| told <= self.received) {
            return Err(ReceiveError::Closed);
        }
        match (self.from, self.board) {
            (Some(link), Some(board)) if session.is_drained(link) => {
                Err(session.lost(&board).into())
            }
            // It has not said where it is to be answered.
            (Some(link), None) if session.is_drained(link) => {
                let lost = session.lost_over(link);
                Err(lost.map_or(ReceiveError::Closed, ReceiveError::from))
            }
            _ => Ok(None),
        }
    }

    /// Waits for the next message. Nothing if none came in time; otherwise like [`Lane::next`].
    pub fn recv<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        wait: Wait,
    ) -> Result<Option<LaneMessage>, ReceiveError> {
        session.wait_for(wait, |session| self.next(session))
    }

    fn next_arrived<H: Host>(&mut self, session: &mut Session<'_, H>) -> Option<LaneMessage> {
        // As many as can wait: each entry takes one.
        for _ in 0..usize::from(self.options.buffers) + WORDS {
            if self.broken.is_some() {
                break;
            }
            let arrival = session.core.next_arrival(self.class)?;
            match self.take(session, arrival) {
                Ok(None) => {}
                Ok(message) => return message,
                Err(what) => {
                    tracing::debug!(lane = ?self.buffers.name(), what, "a lane is broken");
                    self.broken = Some(what);
                }
            }
        }
        None
    }

    fn take<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        arrival: Arrival,
    ) -> Result<Option<LaneMessage>, &'static str> {
        let Arrival {
            metadata_index: index,
            from,
            ..
        } = arrival;
        if *self.from.get_or_insert(from) != from {
            return Err("a message came from another peer");
        }
        if index < self.options.buffers {
            let word = self.buffers.landed(index);
            let word = word.ok_or("a message is not as long as it says, or not in its buffer")?;
            self.received += 1;
            return Ok(Some(LaneMessage {
                lane: self.buffers.name(),
                index,
                length_bytes: word.length_bytes,
                tag: word.tag,
            }));
        }
        if index > self.options.buffers {
            self.told = Some(self.buffers.farewell());
            return Ok(None);
        }
        let ticket = self.buffers.greeting();
        let ticket = ticket.ok_or("the greeting has no ticket")?;
        if session.led_to(from, &ticket.destination) == Some(false) {
            return Err("the greeting is for another peer");
        }
        self.board = Some(Target::new(from, ticket));
        // It is let in: the word behind the credit says so.
        self.given_back[usize::from(index)] = 1;
        self.untold.push(index);
        self.tell_untold(session);
        Ok(None)
    }

    /// The interest of a task that found no message of a lane which that peer's end point fills.
    pub(crate) fn interest(&self, answerer: Answerer) -> Interest {
        match self.untold.is_empty() {
            true => Interest::Arrivals(self.class, Some(answerer)),
            // Nobody announces room to tell the sender of free buffers.
            false => Interest::Anything,
        }
    }

    /// The bytes of a message; none if it is another lane's. They begin at a multiple of 64.
    pub fn bytes(&self, message: &LaneMessage) -> &[u8] {
        let is_own = message.lane == self.buffers.name();
        let bytes = is_own.then(|| self.buffers.view(message.index, message.length_bytes));
        bytes.flatten().unwrap_or(&[])
    }

    /// Gives the buffer of a message back to the sender. Does not block: if there is no room, the
    /// sender is told by a later call of the lane.
    pub fn give_back<H: Host>(&mut self, session: &mut Session<'_, H>, message: LaneMessage) {
        if message.lane != self.buffers.name() {
            return;
        }
        let index = message.index;
        // Before the sender can know of it: it may fill the buffer at once.
        self.buffers.arm(index);
        if let Some(count) = self.given_back.get_mut(usize::from(index)) {
            *count += 1;
        }
        if !self.tell(session, index) {
            self.untold.push(index);
        }
    }

    /// True if the sender need not be told any more that a buffer is free.
    fn tell<H: Host>(&self, session: &mut Session<'_, H>, index: u16) -> bool {
        let Some(board) = &self.board else {
            return false;
        };
        let data = self.given_back[usize::from(index)].to_le_bytes();
        let message = Message::new(&data).at(u64::from(index) * BOARD_BYTES);
        // One that is gone need not be told.
        let told = session.send(board, &message, Wait::Poll);
        !matches!(told, Err(SendError::WouldBlock { .. }))
    }

    fn tell_untold<H: Host>(&mut self, session: &mut Session<'_, H>) {
        if self.untold.is_empty() {
            return;
        }
        let mut untold = std::mem::take(&mut self.untold);
        untold.retain(|&index| !self.tell(session, index));
        self.untold = untold;
    }
}

impl Guest for Lane {
    type Options = LaneOptions;

    fn open<H: Host>(
        session: &mut Session<'_, H>,
        options: &LaneOptions,
    ) -> Result<Self, OpenError> {
        Lane::open(session, *options)
    }

    fn seed(&self) -> Vec<u8> {
        Lane::seed(self).to_bytes().to_vec()
    }

    fn greeting<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<Option<Greeting>, Unwelcome> {
        while self.board.is_none()
            && let Some(message) = self.next_arrived(session)
        {
            self.early.push_back(message);
        }
        match self.broken {
            Some(_) => Err(Unwelcome::Misbehaved),
            None => Ok(self.board.map(|board| Greeting {
                link: board.link(),
                of: board.ticket().destination,
            })),
        }
    }
}
