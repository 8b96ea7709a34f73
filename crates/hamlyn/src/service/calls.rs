//! The calls of a client: what each waits for, and the lanes that they go and come by.

use hamlyn_host::Host;

use super::error::CallError;
use super::wire::{LaneSeed, NUMBERS, Status, Word, board_offset, cancellation};
use crate::drop_list::DropList;
use crate::error::{ConnectError, SendError};
use crate::lane::buffers::{Buffers, Remote, WORDS};
use crate::manager::{Arrival, ClassId};
use crate::message::{Message, Target};
use crate::remains::{Leaving, Remains};
use crate::session::Session;
use crate::tasks::{Answerer, Interest};
use crate::wait::Wait;

/// The state of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    Asked,
    /// Given up; the server has not acknowledged that.
    Cancelled,
    Replied(Word),
    /// Its reply is kept.
    Kept,
}

/// Left by a call or a kept reply that is dropped.
#[derive(Clone, Copy, Debug)]
pub(super) enum Note {
    /// A call was given up: its buffer and number.
    GivenUp(u16, u32),
    /// Nothing is kept in that buffer any more.
    GivenBack(u16),
}

/// A call whose reply has not been taken. If this is dropped, the call is cancelled; its server
/// learns of that at the client's next call.
#[derive(Debug)]
pub struct Pending {
    pub(super) index: u16,
    pub(super) number: u32,
    pub(super) notes: DropList<Note>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.notes.note(Note::GivenUp(self.index, self.number));
    }
}

pub(super) struct Calls {
    /// As errors name the service.
    pub(super) to: String,
    pub(super) seed: LaneSeed,
    pub(super) requests: Remote,
    pub(super) board: Target,
    pub(super) replies: Buffers,
    pub(super) class: ClassId,
    pub(super) states: Box<[State]>,
    pub(super) numbers: Box<[u32]>,
    pub(super) notes: DropList<Note>,
    /// Replies that came.
    replies_taken: u64,
    /// The service has ended, after so many replies.
    ends_after: Option<u64>,
    pub(super) broken: Option<&'static str>,
    pub(super) leaving: Leaving,
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            slots: vec![self.replies.name()],
            class: Some(self.class),
            last_word: self.ends_after.is_none().then(|| self.requests.farewell(0)),
            ..Remains::default()
        });
    }
}

impl Calls {
    /// The calls of a client of the lane that is in those bytes.
    pub(super) fn grow<H: Host>(
        session: &mut Session<'_, H>,
        to: &str,
        seed: &[u8],
        left: Wait,
    ) -> Result<Self, ConnectError> {
        let seed = LaneSeed::from_bytes(seed).ok_or(ConnectError::Seed {
            what: "malformed lane descriptor",
        })?;
        let target = session.target(&seed.requests, left)?;
        let board = target.with_ticket(seed.board).ok_or(ConnectError::Seed {
            what: "its board is another interface's",
        })?;
        let outstanding = seed.outstanding;
        let entries = usize::from(outstanding) + WORDS;
        let class = session.core.register_queued(entries)?;
        let opened = Buffers::open(session, class, outstanding, seed.reply_bytes);
        if opened.is_err() {
            session.core.unregister(class);
        }
        // All that was opened is closed with it.
        let mut calls = Self {
            to: to.to_owned(),
            seed,
            requests: Remote::new(target, outstanding, seed.request_bytes),
            board,
            replies: opened?,
            class,
            states: vec![State::Free; usize::from(outstanding)].into(),
            numbers: vec![0; usize::from(outstanding)].into(),
            notes: DropList::default(),
            replies_taken: 0,
            ends_after: None,
            broken: None,
            leaving: session.leaving.clone(),
        };
        let hello = calls.replies.ticket().to_bytes();
        if let Err(error) = calls.requests.greet(session, &hello, left) {
            // A farewell would give away the place, which the next attempt may have.
            calls.ends_after = Some(0);
            return Err(error.into());
        }
        Ok(calls)
    }

    pub(super) fn check_length(&self, request: &[u8]) -> Result<(), CallError> {
        if request.len() <= self.seed.request_bytes as usize {
            return Ok(());
        }
        Err(CallError::TooLong {
            to: self.to.clone(),
            length_bytes: request.len(),
            limit_bytes: self.seed.request_bytes,
        })
    }

    pub(super) fn timed_out(&self) -> CallError {
        let to = self.to.clone();
        CallError::TimedOut { to }
    }

    /// Why no call could be begun in time.
    pub(super) fn no_room(&self) -> CallError {
        if self.states.contains(&State::Free) {
            return self.timed_out();
        }
        CallError::AllOutstanding {
            to: self.to.clone(),
            outstanding: self.seed.outstanding,
        }
    }

    fn state(&self, index: u16) -> State {
        let state = self.states.get(usize::from(index));
        state.copied().unwrap_or(State::Free)
    }

    pub(super) fn set(&mut self, index: u16, state: State) {
        if let Some(entry) = self.states.get_mut(usize::from(index)) {
            *entry = state;
        }
    }

    /// Takes in what has come, and tells of calls that were given up.
    fn poll<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), CallError> {
        while let Some(arrival) = session.core.next_arrival(self.class) {
            self.take(arrival);
        }
        let link = self.requests.target().link();
        // Before anything is sent, which hears of events: what came with the end of the link would
        // still wait.
        let is_drained = session.is_drained(link);
        self.heed_notes(session);
        if let Some(what) = self.broken {
            let to = self.to.clone();
            return Err(CallError::Malformed { to, what });
        }
        if is_drained {
            return Err(session.lost(self.requests.target()).into());
        }
        match self.ends_after {
            Some(replies) if self.replies_taken >= replies => Err(self.dismissed()),
            _ => Ok(()),
        }
    }

    fn dismissed(&self) -> CallError {
        let to = self.to.clone();
        CallError::Dismissed { to }
    }

    /// Fails if its lane is open no longer; for a call that waits. One that was let in, as a reply
    /// shows, is told the end, and how many replies come before.
    fn check_service<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), CallError> {
        if self.replies_taken > 0 || !session.is_closed_there(self.requests.target()) {
            return Ok(());
        }
        self.ends_after = Some(0);
        Err(self.dismissed())
    }

    fn take(&mut self, arrival: Arrival) {
        let index = arrival.metadata_index;
        if arrival.from != self.requests.target().link() {
            self.broken = Some("somebody else has its keys");
        } else if usize::from(index) >= self.states.len() {
            self.ends_after = Some(self.replies.farewell());
        } else {
            self.replies_taken += 1;
            let landed = self.replies.landed(index).and_then(Word::from_lane);
            let state = match (self.state(index), landed) {
                (State::Asked, Some(word)) if word.number == self.number(index) => {
                    State::Replied(word)
                }
                (State::Cancelled, Some(_)) => State::Free,
                (state, _) => {
                    self.broken = Some("a reply that belongs to no call");
                    state
                }
            };
            self.set(index, state);
        }
    }

    fn number(&self, index: u16) -> u32 {
        let number = self.numbers.get(usize::from(index));
        number.copied().unwrap_or_default()
    }

    /// Tells the server of calls that were given up, as far as there is room, and takes back
    /// buffers of replies that were kept.
    fn heed_notes<H: Host>(&mut self, session: &mut Session<'_, H>) {
        let notes = self.notes.clone();
        notes.retain(|&mut note| {
            let (index, number) = match note {
                Note::GivenUp(index, number) => (index, number),
                Note::GivenBack(index) => {
                    self.set(index, State::Free);
                    return false;
                }
            };
            if number != self.number(index) {
                return false;
            }
            match self.state(index) {
                State::Asked => {
                    let data = cancellation(number).to_le_bytes();
                    let message = Message::new(&data).at(board_offset(index)).silent();
                    let sent = session.send(&self.board, &message, Wait::Poll);
                    if matches!(sent, Err(SendError::WouldBlock { .. })) {
                        return true;
                    }
                    self.set(index, State::Cancelled);
                }
                State::Replied(_) => self.set(index, State::Free),
                State::Free | State::Cancelled | State::Kept => {}
            }
            false
        });
    }

    /// Sends a request, if a buffer is free and there is room.
    fn try_start<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        request: &[u8],
    ) -> Result<Option<Pending>, CallError> {
        let free = self.states.iter().position(|&state| state == State::Free);
        let Some(free) = free else {
            // Nothing that comes would free one.
            return match self.states.iter().all(|&state| state == State::Kept) {
                true => Err(CallError::AllKept {
                    to: self.to.clone(),
                    outstanding: self.seed.outstanding,
                }),
                false => Ok(None),
            };
        };
        let (index, number) = (free as u16, (self.numbers[free] + 1) % NUMBERS);
        let word = Word {
            number,
            status: Status::Answered,
            length_bytes: request.len() as u32,
        };
        // Before the server can answer.
        self.replies.arm(index);
        match self.requests.post(session, index, word.to_lane(), request) {
            Ok(_) => {}
            Err(SendError::WouldBlock { .. }) => return Ok(None),
            Err(SendError::PeerLost(lost)) => return Err(lost.into()),
            Err(SendError::Host(error)) => return Err(error.into()),
            Err(error) => return Err(CallError::Send(error)),
        }
        self.numbers[free] = number;
        self.states[free] = State::Asked;
        Ok(Some(Pending {
            index,
            number,
            notes: self.notes.clone(),
        }))
    }

    /// The step of a wait for room: starts a call, if that can be.
    pub(super) fn look_for_room<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        request: &[u8],
    ) -> Result<Option<Pending>, CallError> {
        self.poll(session)?;
        if self.ends_after.is_some() {
            return Err(self.dismissed());
        }
        let started = self.try_start(session, request)?;
        if started.is_none() {
            self.check_service(session)?;
        }
        Ok(started)
    }

    /// The interest of a task that found no reply.
    pub(super) fn interest(&self) -> Interest {
        // There was no room to tell the server of a call that was given up.
        match self.notes.is_empty() {
            false => Interest::Anything,
            true => Interest::Arrivals(self.class, Some(Answerer::from(self.requests.target()))),
        }
    }

    /// The step of a wait for the reply to a call.
    pub(super) fn look_for_reply<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        call: &Pending,
    ) -> Result<Option<Word>, CallError> {
        if !self.notes.is(&call.notes)
            || self.number(call.index) != call.number
            || matches!(self.state(call.index), State::Free | State::Kept)
        {
            let to = self.to.clone();
            return Err(CallError::NotPending { to });
        }
        let mut reply = self.take_reply(session, call)?;
        if reply.is_none() && session.is_closed_there(self.requests.target()) {
            // It may have answered before: its refusals are known sooner than its replies.
            session.poll();
            reply = self.take_reply(session, call)?;
            if reply.is_none() {
                self.check_service(session)?;
            }
        }
        Ok(reply)
    }

    /// Takes in what has come; the reply to the call, if it is there.
    fn take_reply<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        call: &Pending,
    ) -> Result<Option<Word>, CallError> {
        let polled = self.poll(session);
        if self.number(call.index) == call.number
            && let State::Replied(word) = self.state(call.index)
        {
            if word.status == Status::Answered {
                return Ok(Some(word));
            }
            self.set(call.index, State::Free);
            let to = self.to.clone();
            return Err(CallError::Unanswered { to });
        }
        polled.map(|()| None)
    }
}
