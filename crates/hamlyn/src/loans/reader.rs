//! One reader of a publisher, from the lane that was offered to it to its end.

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::notification::Notification;
use hamlyn_host::{Destination, Host};
use hamlyn_ring::area::Area;

use super::options::PublisherOptions;
use super::window::{Held, Sent, Window};
use super::wire::{
    DOOR_BYTES, END, FAREWELL, FETCHED, GREETING_BYTES, GREETING_OFFSET, Greeting, Lane, POOL,
    POOL_OFFSET, board_bytes, entry_offset, pair, place,
};
use crate::error::{OpenError, SendError};
use crate::lane::{self, LaneSeed, LaneSender};
use crate::lobby::{self, Admitted, Guest, Place, Unwelcome};
use crate::message::{Message, Target};
use crate::queue::Queue;
use crate::region::Holders;
use crate::remains::{LastWord, Leaving, Remains};
use crate::session::Session;
use crate::slot::{NewSlot, Slot};
use crate::wait::{Wait, Waiting};

/// Notifications of a lane that may wait. Of a reader that sends more the oldest are lost, and it
/// with them.
const DOOR_ENTRIES: usize = 4;

/// Our end of a lane.
pub(super) struct Door {
    slot: Slot,
    area: Area,
    queue: Queue,
    board_slot: Slot,
    board: Area,
    /// The bytes that its reader gets.
    lane: Lane,
    /// How its reader wants its messages, once it has presented itself.
    greeting: Option<Greeting>,
    leaving: Leaving,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            slots: vec![self.slot.name(), self.board_slot.name()],
            queue: Some(self.queue.id()),
            ..Remains::default()
        });
    }
}

impl Guest for Door {
    /// With the number under which every reader fetches the pool, if it has a head.
    type Options = (PublisherOptions, Option<u64>);

    fn open<H: Host>(
        session: &mut Session<'_, H>,
        (options, shown): &Self::Options,
    ) -> Result<Self, OpenError> {
        let area = session.allocate(DOOR_BYTES)?;
        let board = session.allocate(board_bytes(options.depth))?;
        let queue = session.open_queue(DOOR_ENTRIES)?;
        let slot = match session.open_slot(NewSlot::new(&area).queue(&queue)) {
            Ok(slot) => slot,
            Err(error) => {
                session.close_queue(queue);
                return Err(error);
            }
        };
        let board_slot = match session.open_slot(NewSlot::new(&board)) {
            Ok(board_slot) => board_slot,
            Err(error) => {
                session.close_slot(slot)?;
                session.close_queue(queue);
                return Err(error);
            }
        };
        let lane = Lane::new(slot.whole_fast(), board_slot.whole_fast(), options, *shown);
        Ok(Self {
            slot,
            area,
            queue,
            board_slot,
            board,
            lane,
            greeting: None,
            leaving: session.leaving.clone(),
        })
    }

    fn seed(&self) -> Vec<u8> {
        self.lane.to_bytes()
    }

    fn greeting<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<Option<lobby::Greeting>, Unwelcome> {
        let told = match session.pop(&mut self.queue) {
            Ok(None) => return Ok(None),
            Ok(Some(told)) if told.word == FAREWELL => return Err(Unwelcome::Left),
            told => told.map_err(|_| Unwelcome::Left)?,
        };
        let mut bytes = [0; GREETING_BYTES];
        let read = self.area.read_at(GREETING_OFFSET, &mut bytes).ok();
        let told = told.filter(|_| read.is_some());
        self.greeting = told.and_then(|told| Greeting::read(told.word, &bytes));
        match told.zip(self.greeting.as_ref()) {
            Some((told, greeting)) => Ok(Some(lobby::Greeting {
                link: told.from,
                of: greeting.to(),
            })),
            None => Err(Unwelcome::Misbehaved),
        }
    }
}

/// Where messages go, from when there was room to tell the reader so.
enum Route {
    Views {
        list: Target,
        /// Under which it fetches the pool, if it is shown to this reader alone.
        number: Option<u64>,
    },
    Copies {
        seed: LaneSeed,
        lane: Option<Box<LaneSender>>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It has presented itself, and is to be answered.
    Newcomer,
    Active,
    /// It ended, or cannot be reached.
    Leaving,
    /// It broke the protocol.
    Expelled,
}

pub(super) struct Reader {
    _place: Place,
    door: Door,
    pub(super) from: LinkId,
    pub(super) to: Destination,
    route: Route,
    /// The messages that it reads in place.
    window: Window,
    /// The message that it gets when it has room: a chunk, and its number.
    pub(super) latest: Option<(u32, u64)>,
    /// It has the pool, if it needs it.
    is_fetched: bool,
    pub(super) lost: u64,
    pub(super) state: State,
}

impl Drop for Reader {
    /// A lane tells its receiver by itself.
    fn drop(&mut self) {
        let (pool, last_word) = match &self.route {
            Route::Views { list, number } => (*number, Some(LastWord::fast(*list, END))),
            Route::Copies { seed, lane: None } => {
                (None, Some(lane::nothing_follows(seed, self.from)))
            }
            Route::Copies { .. } => (None, None),
        };
        self.door.leaving.leave(Remains {
            pool,
            last_word,
            ..Remains::default()
        });
    }
}

impl Reader {
    pub(super) fn new(admitted: Admitted<Door>, depth: u16, is_shown: bool) -> Option<Self> {
        let Admitted {
            guest: door,
            link: from,
            place,
        } = admitted;
        let greeting = door.greeting?;
        let (route, is_fetched) = match greeting {
            Greeting::Views(ticket) => {
                let list = Target::new(from, ticket);
                (Route::Views { list, number: None }, is_shown)
            }
            Greeting::Copies(seed) => (Route::Copies { seed, lane: None }, true),
        };
        Some(Self {
            _place: place,
            door,
            from,
            to: greeting.to(),
            route,
            window: Window::new(depth),
            latest: None,
            is_fetched,
            lost: 0,
            state: State::Newcomer,
        })
    }

    /// Answers a newcomer: shows it the pool, if that is not shown to all, or presents us to its
    /// lane. It is tried again if there is no room for that at present.
    pub(super) fn answer<H: Host>(&mut self, session: &mut Session<'_, H>, held: &mut Held) {
        match &mut self.route {
            Route::Views { .. } if self.is_fetched => {}
            Route::Views { list, number } => {
                let holders = Holders::One(self.from);
                let Ok(shown) = session.show_pool(&held.pool, holders) else {
                    return;
                };
                let data = pair(shown, 0);
                let message = Message::new(&data).at(POOL_OFFSET).word(POOL);
                if session.send(list, &message, Wait::Poll).is_err() {
                    return session.hide_pool(shown);
                }
                *number = Some(shown);
            }
            Route::Copies { seed, lane } => {
                let Ok(sender) = LaneSender::connect(session, seed, Wait::Poll) else {
                    return;
                };
                *lane = Some(Box::new(sender));
                // Others look at the head.
                self.latest = held.newest();
                if let Some((index, _)) = self.latest {
                    held.hold_again(index);
                }
            }
        }
        self.state = State::Active;
    }

    /// Gives back all that is held for it.
    pub(super) fn end(self, held: &mut Held) {
        if let Some((chunk, _)) = self.latest {
            held.release(chunk);
        }
        for sent in &self.window.sent {
            if let Sent::InPlace(chunk) = *sent {
                held.take_back(chunk);
            }
        }
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        match &self.route {
            Route::Views { .. } => self.window.is_full(),
            Route::Copies { lane, .. } => lane.as_ref().is_some_and(|lane| !lane.is_next_free()),
        }
    }

    /// True if all that was published for it is handed over.
    pub(super) fn is_flushed<H: Host>(&self, session: &Session<'_, H>, shows_newest: bool) -> bool {
        match &self.route {
            Route::Views { .. } => {
                (self.latest.is_none() || shows_newest)
                    && (self.is_fetched || self.window.head == 0)
            }
            Route::Copies { lane, .. } => {
                let mut lane = lane.iter();
                self.latest.is_none() && lane.all(|lane| lane.is_flushed(session))
            }
        }
    }

    /// Sends it a message, if it has room for one more: where it lies, or a copy, for which it is
    /// waited.
    #[inline]
    pub(super) fn send<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        held: &mut Held,
        index: u32,
        number: u64,
        waiting: &mut Waiting,
    ) -> bool {
        let sent = match &mut self.route {
            Route::Copies { lane, .. } => match lane {
                Some(lane) => copy(session, lane, held.chunk(index).marked(), waiting),
                None => return false,
            },
            Route::Views { list, .. } => {
                let position = self.window.head;
                if self.window.is_full() || !held.may_lend(index) {
                    return false;
                }
                let data = pair(place(index, held.chunk(index).len()), number);
                let depth = self.window.sent.len() as u16;
                let message = Message::new(&data)
                    .at(entry_offset(position, depth))
                    .word(position);
                // It holds the chunk from now on.
                session.send(list, &message, Wait::Poll).map(|_| {
                    held.lend(index);
                    self.window.push(Sent::InPlace(index));
                })
            }
        };
        self.note(sent)
    }

    /// Has it look at the head of the pool.
    pub(super) fn ring<H: Host>(&mut self, session: &mut Session<'_, H>) {
        if let Route::Views { list, .. } = &self.route {
            let rung = session.send(list, &Message::new(&[]).silent(), Wait::Poll);
            // Where there is no room, the reader has still to take what came before, and looks
            // then.
            self.note(rung.map(drop));
        }
    }

    /// True if it was sent; one that cannot be reached goes.
    #[inline]
    fn note(&mut self, sent: Result<(), SendError>) -> bool {
        if !matches!(sent, Ok(()) | Err(SendError::WouldBlock { .. })) {
            self.state = State::Leaving;
        }
        sent.is_ok()
    }

    /// Takes in what it gave back.
    #[inline]
    pub(super) fn collect(&mut self, held: &mut Held) {
        self.window.collect(&self.door.board, held);
    }

    fn may_fetch(&self) -> bool {
        self.state == State::Active && !self.is_fetched
    }

    /// Hears whether it has the pool, and whether it says good-bye.
    pub(super) fn hear(&mut self) {
        let is_farewell =
            |told: &Option<Notification>| told.is_some_and(|told| told.word == FAREWELL);
        // Of one that was found gone before, nothing counts that it had said.
        while self.state != State::Leaving {
            match self.door.queue.reader.pop() {
                Ok(None) => return,
                Ok(Some(told)) if told.word == FETCHED && self.may_fetch() => {
                    self.is_fetched = true;
                }
                Ok(told) if is_farewell(&told) => self.state = State::Leaving,
                // Whatever else it says, it has had its place.
                _ => {
                    self.state = State::Expelled;
                    return;
                }
            }
        }
    }
}

/// Copies a message to a reader, if it has room for one more.
#[cold]
fn copy<H: Host>(
    session: &mut Session<'_, H>,
    lane: &mut LaneSender,
    message: &[u8],
    waiting: &mut Waiting,
) -> Result<(), SendError> {
    let copied = session.wait_within(waiting, |session, _| {
        lane.try_send_in_turn(session, message)
    });
    copied?.map(drop).ok_or_else(|| lane.would_block())
}
