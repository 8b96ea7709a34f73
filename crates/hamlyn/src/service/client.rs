//! The calling end of a service.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::ops::Deref;
use std::rc::Rc;

use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Host, HostError};

use super::wire::{LaneSeed, NUMBERS, Status, Word, board_offset, cancellation};
use crate::drop_list::DropList;
use crate::error::{ConnectError, SendError};
use crate::forks::from_forked;
use crate::item::{Greeted, ItemHeader};
use crate::lane::buffers::{Buffers, Remote, WORDS};
use crate::manager::{Arrival, ClassId, Manager, ManagerRef};
use crate::message::{Message, Target};
use crate::peer::PeerLost;
use crate::remains::{LastWord, Leaving, Remains};
use crate::session::Session;
use crate::wait::{Wait, Waiting};

/// A call has no reply.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The request is longer than the service takes.
    #[error(
        "a request of {length_bytes} bytes, but {to} takes at most {limit_bytes}: send it in parts, or over a stream"
    )]
    TooLong {
        /// The service.
        to: String,
        /// Length of the request.
        length_bytes: usize,
        /// The longest.
        limit_bytes: u32,
    },
    /// The time was over. If the call had been sent, it is cancelled; the server may have carried
    /// it out.
    #[error("{to} did not answer in time: wait for longer, or ask again")]
    TimedOut {
        /// The service.
        to: String,
    },
    /// As many calls as may be outstanding are, and none of their replies came in time to make room
    /// for another.
    #[error(
        "{outstanding} calls of {to} are outstanding, which is as many as may be: take a reply, drop a call, or wait for longer"
    )]
    AllOutstanding {
        /// The service.
        to: String,
        /// How many.
        outstanding: u16,
    },
    /// The reply to this call was taken before, or it is another client's call.
    #[error(
        "this call of {to} has no reply to come: it was taken before, or the call is another client's"
    )]
    NotPending {
        /// The service.
        to: String,
    },
    /// All calls that may be outstanding have replies that are kept.
    #[error(
        "replies to all {outstanding} calls of {to} that may be outstanding are kept: drop one"
    )]
    AllKept {
        /// The service.
        to: String,
        /// How many.
        outstanding: u16,
    },
    /// The server dropped the call without an answer.
    #[error("{to} dropped the call without an answer")]
    Unanswered {
        /// The service.
        to: String,
    },
    /// The service ended, or dismissed this client.
    #[error("{to} has ended or dismissed this client: connect again")]
    Dismissed {
        /// The service.
        to: String,
    },
    /// The server is gone.
    #[error(transparent)]
    PeerLost(#[from] PeerLost),
    /// The server wrote something that the protocol does not allow.
    #[error("{to} broke the service protocol: {what}")]
    Malformed {
        /// The service.
        to: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The request could not be sent.
    #[error(transparent)]
    Send(SendError),
    /// Waiting failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// The state of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
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
enum Note {
    /// A call was given up: its buffer and number.
    GivenUp(u16, u32),
    /// What was kept in that buffer is not any more.
    GivenBack(u16),
}

struct Calls {
    /// As errors name the service.
    to: String,
    seed: LaneSeed,
    requests: Remote,
    board: Target,
    replies: Buffers,
    class: ClassId,
    states: Box<[State]>,
    numbers: Box<[u32]>,
    notes: DropList<Note>,
    is_dismissed: bool,
    broken: Option<&'static str>,
    leaving: Leaving,
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            slots: vec![self.replies.name()],
            class: Some(self.class),
            last_word: (!self.is_dismissed).then(|| LastWord {
                target: self.requests.farewell_target(),
                metadata: vec![0],
                word: 0,
            }),
            ..Remains::default()
        });
    }
}

/// The calling end. See [the module](crate::service).
pub struct Client<H: Host = ProcessHost> {
    calls: Calls,
    manager: ManagerRef<H>,
}

/// A call whose reply has not been taken. If this is dropped, the call is cancelled; its server
/// learns of that at the client's next call.
#[derive(Debug)]
pub struct Pending {
    index: u16,
    number: u32,
    notes: DropList<Note>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.notes.note(Note::GivenUp(self.index, self.number));
    }
}

/// A reply, where it landed. It reads as its bytes, which lie from a multiple of 64 on, also if
/// there are none.
pub struct Reply<'a, H: Host = ProcessHost> {
    client: &'a mut Client<H>,
    index: u16,
    length_bytes: u32,
}

impl<H: Host> Reply<'_, H> {
    /// Keeps it beyond the next call. Until that is dropped, the client may have one call less
    /// outstanding.
    pub fn keep(self) -> Kept {
        let (index, length_bytes) = (self.index, self.length_bytes);
        let calls = &mut self.client.calls;
        calls.set(index, State::Kept);
        let notes = calls.notes.clone();
        // Its drop would free the buffer.
        std::mem::forget(self);
        Kept {
            index,
            length_bytes,
            notes,
            in_thread: PhantomData,
        }
    }
}

/// A reply that is kept ([`Reply::keep`]); [`Client::view`] shows it. When this is dropped, its
/// buffer is free for another call at the client's next call. It stays in its thread, so that the
/// client does not wait asleep for that buffer.
#[derive(Debug)]
pub struct Kept {
    index: u16,
    length_bytes: u32,
    notes: DropList<Note>,
    in_thread: PhantomData<Rc<()>>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.notes.note(Note::GivenBack(self.index));
    }
}

impl<H: Host> Deref for Reply<'_, H> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let replies = &self.client.calls.replies;
        replies.view(self.index, self.length_bytes).unwrap_or(&[])
    }
}

impl<H: Host> Drop for Reply<'_, H> {
    fn drop(&mut self) {
        self.client.calls.set(self.index, State::Free);
    }
}

impl<H: Host> fmt::Debug for Reply<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reply").field(&&**self).finish()
    }
}

impl<H: Host> Greeted for Client<H> {
    fn greeted(&self) -> Option<&Target> {
        Some(self.calls.requests.target())
    }
}

impl<H: Host> Client<H> {
    pub(crate) fn connect(
        manager: &Manager<H>,
        to: &str,
        header: ItemHeader,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        manager.connect_to(to, header, wait, |seed, left| {
            Self::grow(manager, to, seed, left)
        })
    }

    /// A client of the lane that is in those bytes.
    fn grow(manager: &Manager<H>, to: &str, seed: &[u8], left: Wait) -> Result<Self, ConnectError> {
        let seed = LaneSeed::from_bytes(seed).ok_or(ConnectError::Seed {
            what: "malformed lane descriptor",
        })?;
        let mut entered = manager.enter()?;
        let target = entered.target(&seed.requests, left)?;
        let board = target.with_ticket(seed.board).ok_or(ConnectError::Seed {
            what: "its board is another interface's",
        })?;
        let outstanding = seed.outstanding;
        let class = entered
            .core
            .register_queued(usize::from(outstanding) + WORDS)?;
        let opened = Buffers::open(&mut entered, class, outstanding, seed.reply_bytes);
        if opened.is_err() {
            entered.core.unregister(class);
        }
        let calls = Calls {
            to: to.to_owned(),
            seed,
            requests: Remote::new(target, outstanding, seed.request_bytes),
            board,
            replies: opened?,
            class,
            states: vec![State::Free; usize::from(outstanding)].into(),
            numbers: vec![0; usize::from(outstanding)].into(),
            notes: DropList::default(),
            is_dismissed: false,
            broken: None,
            leaving: entered.leaving.clone(),
        };
        let hello = calls.replies.ticket().to_bytes();
        let said = calls.requests.greet(&mut entered, &hello, left);
        drop(entered);
        // What was opened is closed with it.
        let client = Self {
            calls,
            manager: manager.hold(),
        };
        said?;
        Ok(client)
    }

    /// Sends a request, and waits for the reply. Blocks for as long as `wait` says; the call is
    /// cancelled when the time is over.
    pub fn call(&mut self, request: &[u8], wait: Wait) -> Result<Reply<'_, H>, CallError> {
        let mut waiting = Waiting::new(wait);
        // From now on, not from the first look that finds nothing.
        let wait = self.manager.enter()?.left(&mut waiting);
        let call = self.start(request, wait)?;
        let left = self.manager.enter()?.left(&mut waiting);
        match self.await_reply(&call, left)? {
            Some(word) => Ok(Reply {
                index: call.index,
                length_bytes: word.length_bytes,
                client: self,
            }),
            None => Err(self.calls.timed_out()),
        }
    }

    /// Sends a request without waiting for the reply. Blocks, for as long as `wait` says, only if
    /// as many calls are outstanding as may be, or if there is no room to send. Allocates if the
    /// link has no room, or to copy what is longer than a packet.
    pub fn start(&mut self, request: &[u8], wait: Wait) -> Result<Pending, CallError> {
        self.manager.check()?;
        let calls = &mut self.calls;
        calls.check_length(request)?;
        let started = self
            .manager
            .enter()?
            .wait_for(wait, |session| calls.look_for_room(session, request));
        started?.ok_or_else(|| calls.no_room())
    }

    /// Waits for the reply to a call. Nothing if it did not come in time; the call goes on, until
    /// it is dropped.
    pub fn reply(&mut self, call: &Pending, wait: Wait) -> Result<Option<Reply<'_, H>>, CallError> {
        let awaited = self.await_reply(call, wait)?;
        Ok(awaited.map(|word| Reply {
            index: call.index,
            length_bytes: word.length_bytes,
            client: self,
        }))
    }

    fn await_reply(&mut self, call: &Pending, wait: Wait) -> Result<Option<Word>, CallError> {
        let calls = &mut self.calls;
        let mut session = self.manager.enter()?;
        session.wait_for(wait, |session| calls.look_for_reply(session, call))
    }

    /// As [`Client::call`], as a future; the manager must be driven ([`Manager::register_waker`]).
    /// If it is dropped before it is done, the call is cancelled, of which its server learns at the
    /// client's next call.
    pub async fn call_async(&mut self, request: &[u8]) -> Result<Reply<'_, H>, CallError> {
        let call = self.start_async(request).await?;
        self.reply_async(&call).await
    }

    /// As [`Client::start`], as a future; the manager must be driven. If it is dropped before it is
    /// done, nothing is sent.
    pub async fn start_async(&mut self, request: &[u8]) -> Result<Pending, CallError> {
        self.manager.check()?;
        let calls = &mut self.calls;
        calls.check_length(request)?;
        let mut start = |session: &mut Session<'_, H>| calls.look_for_room(session, request);
        poll_fn(|context| self.manager.poll_look(context, &mut start)).await
    }

    /// As [`Client::reply`], as a future; the manager must be driven. If it is dropped, the call
    /// goes on until `call` is dropped.
    pub async fn reply_async(&mut self, call: &Pending) -> Result<Reply<'_, H>, CallError> {
        let calls = &mut self.calls;
        let mut look = |session: &mut Session<'_, H>| calls.look_for_reply(session, call);
        let word = poll_fn(|context| self.manager.poll_look(context, &mut look)).await?;
        Ok(Reply {
            index: call.index,
            length_bytes: word.length_bytes,
            client: self,
        })
    }

    /// The bytes of a reply that is kept. Nothing if it is another client's.
    pub fn view(&self, kept: &Kept) -> Option<&[u8]> {
        let calls = &self.calls;
        let is_ours = calls.notes.is(&kept.notes);
        is_ours.then(|| calls.replies.view(kept.index, kept.length_bytes))?
    }

    /// The address of the service.
    pub fn to(&self) -> &str {
        &self.calls.to
    }

    /// Calls that may be outstanding at a time.
    pub fn outstanding_max(&self) -> u16 {
        self.calls.seed.outstanding
    }

    /// Bytes of the longest request.
    pub fn request_bytes_max(&self) -> u32 {
        self.calls.seed.request_bytes
    }
}

impl<H: Host> fmt::Debug for Client<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("to", &self.calls.to)
            .finish_non_exhaustive()
    }
}

impl Calls {
    fn check_length(&self, request: &[u8]) -> Result<(), CallError> {
        if request.len() <= self.seed.request_bytes as usize {
            return Ok(());
        }
        Err(CallError::TooLong {
            to: self.to.clone(),
            length_bytes: request.len(),
            limit_bytes: self.seed.request_bytes,
        })
    }

    fn timed_out(&self) -> CallError {
        let to = self.to.clone();
        CallError::TimedOut { to }
    }

    /// Why no call could be begun in time.
    fn no_room(&self) -> CallError {
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

    fn set(&mut self, index: u16, state: State) {
        if let Some(entry) = self.states.get_mut(usize::from(index)) {
            *entry = state;
        }
    }

    /// Takes in what has come, and tells of calls that were given up.
    fn poll<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), CallError> {
        while let Some(arrival) = session.core.next_arrival(self.class) {
            self.take(arrival);
        }
        self.heed_notes(session);
        if let Some(what) = self.broken {
            let to = self.to.clone();
            return Err(CallError::Malformed { to, what });
        }
        let link = self.requests.target().link();
        if session.is_drained(link) {
            return Err(session.lost(self.requests.target()).into());
        }
        if self.is_dismissed {
            let to = self.to.clone();
            return Err(CallError::Dismissed { to });
        }
        Ok(())
    }

    /// Whether its lane is still open; for one that waits.
    fn check_service<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), CallError> {
        if !session.is_closed_there(self.requests.target()) {
            return Ok(());
        }
        self.is_dismissed = true;
        let to = self.to.clone();
        Err(CallError::Dismissed { to })
    }

    fn take(&mut self, arrival: Arrival) {
        let index = arrival.metadata_index;
        if arrival.from != self.requests.target().link() {
            self.broken = Some("somebody else has its keys");
        } else if usize::from(index) >= self.states.len() {
            self.is_dismissed = true;
        } else {
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
    fn look_for_room<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        request: &[u8],
    ) -> Result<Option<Pending>, CallError> {
        self.poll(session)?;
        let started = self.try_start(session, request)?;
        if started.is_none() {
            self.check_service(session)?;
        }
        Ok(started)
    }

    /// The step of a wait for the reply to a call.
    fn look_for_reply<H: Host>(
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
        polled?;
        self.check_service(session)?;
        Ok(None)
    }
}

from_forked! {
    CallError: Self::Host;
}
