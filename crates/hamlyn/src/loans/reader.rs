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
use crate::item::Place;
use crate::lane::{self, LaneSender};
use crate::lobby::Guest;
use crate::message::{Message, Target};
use crate::queue::Queue;
use crate::region::Holders;
use crate::remains::{LastWord, Remains};
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
    pub(super) queue: Queue,
    board_slot: Slot,
    board: Area,
}

impl Guest for Door {
    fn remains(&self) -> Remains {
        Remains {
            slots: vec![self.slot.name(), self.board_slot.name()],
            queue: Some(self.queue.id()),
            ..Remains::default()
        }
    }
}

impl Door {
    /// Opens a lane of that publisher, and gives what its reader gets.
    pub(super) fn open<H: Host>(
        session: &mut Session<'_, H>,
        options: &PublisherOptions,
        shown: Option<u64>,
    ) -> Result<(Self, Vec<u8>), OpenError> {
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
        let lane = Lane::new(slot.whole_fast(), board_slot.whole_fast(), options, shown);
        let door = Self {
            slot,
            area,
            queue,
            board_slot,
            board,
        };
        Ok((door, lane.to_bytes()))
    }

    /// The greeting that came with that word, if it is one.
    pub(super) fn greeting(&self, word: u64) -> Option<Greeting> {
        let mut bytes = [0; GREETING_BYTES];
        self.area.read_at(GREETING_OFFSET, &mut bytes).ok()?;
        Greeting::read(word, &bytes)
    }
}

/// A reader that has presented itself.
pub(super) struct Newcomer {
    pub(super) place: Place,
    pub(super) door: Door,
    pub(super) from: LinkId,
    pub(super) greeting: Greeting,
}

impl Newcomer {
    /// What is to be done when the publisher ends before it was taken in.
    pub(super) fn remains(&self) -> Remains {
        let last_word = match &self.greeting {
            Greeting::Views(ticket) => end_of(Target::new(self.from, *ticket)),
            Greeting::Copies(seed) => lane::nothing_follows(seed, self.from),
        };
        Remains {
            last_word: Some(last_word),
            ..self.door.remains()
        }
    }

    /// Shows it the pool, if that is not shown to all, or presents us to its lane; nothing if there
    /// is no room for that at present.
    pub(super) fn route<H: Host>(
        &self,
        session: &mut Session<'_, H>,
        held: &Held,
        is_shown: bool,
    ) -> Option<Route> {
        let ticket = match &self.greeting {
            Greeting::Views(ticket) => *ticket,
            Greeting::Copies(seed) => {
                let lane = LaneSender::connect(session, seed, Wait::Poll);
                return Some(Route::Copies(Box::new(lane.ok()?)));
            }
        };
        let list = Target::new(self.from, ticket);
        if is_shown {
            return Some(Route::Views { list, number: None });
        }
        let number = session
            .show_pool(&held.pool, Holders::One(self.from))
            .ok()?;
        let data = pair(number, 0);
        let message = Message::new(&data).at(POOL_OFFSET).word(POOL);
        if session.send(&list, &message, Wait::Poll).is_err() {
            session.hide_pool(number);
            return None;
        }
        let number = Some(number);
        Some(Route::Views { list, number })
    }
}

pub(super) enum Route {
    Views {
        list: Target,
        /// Under which it fetches the pool, if it is shown to this reader alone.
        number: Option<u64>,
    },
    Copies(Box<LaneSender>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
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

impl Reader {
    pub(super) fn new(
        newcomer: Newcomer,
        route: Route,
        held: &mut Held,
        depth: u16,
        is_shown: bool,
    ) -> Self {
        let is_copied = matches!(route, Route::Copies(_));
        // Others look at the head.
        let newest = held.newest().filter(|_| is_copied);
        if let Some((index, _)) = newest {
            held.hold_again(index);
        }
        Self {
            is_fetched: is_copied || is_shown,
            to: newcomer.greeting.to(),
            _place: newcomer.place,
            door: newcomer.door,
            from: newcomer.from,
            route,
            window: Window::new(depth),
            latest: newest,
            lost: 0,
            state: State::Active,
        }
    }

    /// What is to be done when it is gone. A lane tells its receiver by itself.
    pub(super) fn remains(&self, is_there: bool) -> Remains {
        let last_word = match &self.route {
            Route::Views { list, .. } if is_there => Some(end_of(*list)),
            _ => None,
        };
        Remains {
            last_word,
            ..self.door.remains()
        }
    }

    /// Gives back all that is held for it.
    pub(super) fn end<H: Host>(self, session: &mut Session<'_, H>, held: &mut Held) {
        let latest = self.latest.map(|(chunk, _)| chunk);
        latest.into_iter().for_each(|chunk| held.release(chunk));
        for sent in self.window.sent {
            if let Sent::InPlace(chunk) = sent {
                held.take_back(chunk);
            }
        }
        if let Route::Views {
            number: Some(number),
            ..
        } = self.route
        {
            session.hide_pool(number);
        }
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        match &self.route {
            Route::Views { .. } => self.window.is_full(),
            Route::Copies(lane) => !lane.is_next_free(),
        }
    }

    /// Whether all that was published for it is handed over.
    pub(super) fn is_flushed<H: Host>(&self, session: &Session<'_, H>, shows_newest: bool) -> bool {
        match &self.route {
            Route::Views { .. } => {
                (self.latest.is_none() || shows_newest)
                    && (self.is_fetched || self.window.head == 0)
            }
            Route::Copies(lane) => self.latest.is_none() && lane.is_flushed(session),
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
            Route::Copies(lane) => copy(session, lane, held.chunk(index).marked(), waiting),
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

    /// Hears whether it has the pool, and whether it says good-bye.
    pub(super) fn hear(&mut self) {
        let is_farewell =
            |told: &Option<Notification>| told.is_some_and(|told| told.word == FAREWELL);
        loop {
            match self.door.queue.reader.pop() {
                Ok(None) => return,
                Ok(Some(told)) if told.word == FETCHED && !self.is_fetched => {
                    self.is_fetched = true;
                }
                Ok(told) if is_farewell(&told) => {
                    self.state = State::Leaving;
                    return;
                }
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
    match copied? {
        Some(_) => Ok(()),
        None => Err(SendError::WouldBlock {
            peer: lane.target().ticket().destination,
        }),
    }
}

/// Says that no more messages come to that list.
fn end_of(list: Target) -> LastWord {
    LastWord {
        target: list,
        metadata: Vec::new(),
        word: END,
    }
}
