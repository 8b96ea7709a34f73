//! The readers of a publisher: the lanes that are offered to those who come, what each reader has,
//! and what is held for them. Everything that is counted is counted here; nothing that a reader can
//! write is believed but that it gives back its own.

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::notification::Notification;
use hamlyn_host::{Destination, Host};
use hamlyn_ring::area::Area;

use super::options::{PublisherOptions, SlowReaders};
use super::window::{Held, Sent, Window};
use super::wire::{
    DOOR_BYTES, END, FAREWELL, FETCHED, GREETING_BYTES, GREETING_OFFSET, Greeting, Lane, POOL,
    POOL_OFFSET, board_bytes, entry_offset, pair, place,
};
use crate::error::{OpenError, SendError};

use crate::item::{Bound, Place};
use crate::lobby::{Guest, Lobby};
use crate::manager::ManagerRef;
use crate::message::{Message, Target};
use crate::queue::Queue;
use crate::region::Holders;
use crate::remains::{LastWord, Leaving, Remains};
use crate::session::Session;
use crate::slot::{NewSlot, Slot};
use crate::stream;
use crate::wait::Wait;

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Published {
    /// Its number: they count all that was published.
    pub number: u64,
    /// Readers to which it went, or, with [`SlowReaders::Latest`], for which it is kept.
    pub readers: usize,
    /// Readers that had no room.
    pub lost: usize,
}

/// Lanes that are offered at a time.
const OFFERED: usize = 4;
/// The same if readers are to get the newest message though the publisher makes no call.
const OFFERED_AHEAD: usize = 16;
/// Looks after which the offered lanes are counted, if nothing has made that necessary before.
const LOOKS_BETWEEN_COUNTS: u32 = 64;
/// Notifications of a lane that may wait. Of a reader that sends more the oldest are lost, and it
/// with them.
const DOOR_ENTRIES: usize = 4;

/// Our end of a lane.
struct Door {
    slot: Slot,
    area: Area,
    queue: Queue,
    board_slot: Slot,
    board: Area,
}

/// A reader that has presented itself.
struct Newcomer {
    place: Place,
    door: Door,
    from: LinkId,
    greeting: Greeting,
}

enum Route<H: Host> {
    Views {
        list: Target,
        /// Under which it fetches the pool, if it is shown to this reader alone.
        number: Option<u64>,
    },
    Copies(Box<stream::Sender<H>>),
}

struct Reader<H: Host> {
    _place: Place,
    door: Door,
    from: LinkId,
    to: Destination,
    route: Route<H>,
    window: Window,
    /// What it gets when it has room: a chunk, and the number of its message.
    latest: Option<(u32, u64)>,
    /// It has the pool, if it needs it.
    is_fetched: bool,
    /// A copy is not handed over in full.
    is_unflushed: bool,
    lost: u64,
    /// It is to go,
    is_over: bool,
    /// because it broke the protocol.
    is_bad: bool,
}

/// See the module.
pub(super) struct Readers<H: Host> {
    options: PublisherOptions,
    /// Under which every reader fetches the pool, if it has a head.
    shown: Option<u64>,
    lobby: Lobby<Door>,
    readers: Vec<Reader<H>>,
    /// Those that have presented themselves and could not be taken in yet.
    waiting: Vec<Newcomer>,
    copied: usize,
    looks: u32,
    /// By readers that are gone.
    lost: u64,
    leaving: Leaving,
}

impl<H: Host> Drop for Readers<H> {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            pool: self.shown,
            ..Remains::default()
        });
        for newcomer in &self.waiting {
            self.leaving.leave(newcomer.remains());
        }
        for reader in &self.readers {
            self.leaving.leave(reader.remains(true));
        }
    }
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
    fn remains_with(&self, last_word: Option<LastWord>) -> Remains {
        Remains {
            last_word,
            ..self.remains()
        }
    }
}

impl LastWord {
    /// No more messages come to that list.
    fn end_of(list: Target) -> Self {
        Self {
            target: list,
            metadata: Vec::new(),
            word: END,
        }
    }
}

impl Newcomer {
    fn to(&self) -> Destination {
        self.greeting.to()
    }

    /// What is to be done when the publisher ends before it was taken in.
    fn remains(&self) -> Remains {
        let last_word = match &self.greeting {
            Greeting::Views(ticket) => LastWord::end_of(Target::new(self.from, *ticket)),
            Greeting::Copies(seed) => stream::nothing_follows(seed, self.from),
        };
        self.door.remains_with(Some(last_word))
    }

    /// Shows it the pool, if that is not shown to all, or grows its stream; nothing if there is no
    /// room for that at present.
    fn route<H: Host>(
        &self,
        manager: &ManagerRef<H>,
        held: &Held,
        is_shown: bool,
    ) -> Option<Route<H>> {
        match &self.greeting {
            Greeting::Views(ticket) if is_shown => Some(Route::Views {
                list: Target::new(self.from, *ticket),
                number: None,
            }),
            Greeting::Views(ticket) => {
                let mut session = manager.enter().ok()?;
                let list = Target::new(self.from, *ticket);
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
            Greeting::Copies(seed) => {
                let sender = stream::Sender::grow(manager, seed, Wait::Poll);
                Some(Route::Copies(Box::new(sender.ok()?)))
            }
        }
    }
}

impl<H: Host> Reader<H> {
    /// What is to be done when it is gone. A stream tells its receiver by itself.
    fn remains(&self, is_there: bool) -> Remains {
        let last_word = match &self.route {
            Route::Views { list, .. } if is_there => Some(LastWord::end_of(*list)),
            _ => None,
        };
        self.door.remains_with(last_word)
    }
}

impl<H: Host> Readers<H> {
    pub(super) fn new(
        session: &mut Session<'_, H>,
        options: PublisherOptions,
        held: &Held,
    ) -> Result<Self, OpenError> {
        let (shown, ahead) = match options.is_latest() {
            true => (Some(session.share_pool(&held.pool, None)?), OFFERED_AHEAD),
            false => (None, OFFERED),
        };
        Ok(Self {
            options,
            shown,
            lobby: Lobby::new(options.readers, ahead, session.leaving.clone()),
            readers: Vec::new(),
            waiting: Vec::new(),
            copied: 0,
            looks: 0,
            lost: 0,
            leaving: session.leaving.clone(),
        })
    }

    pub(super) fn count(&self) -> usize {
        self.readers.len()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost + self.readers.iter().map(|reader| reader.lost).sum::<u64>()
    }

    pub(super) fn misbehaved(&self) -> u64 {
        self.lobby.misbehaved
    }

    #[inline]
    pub(super) fn has_copied(&self) -> bool {
        self.copied > 0
    }

    /// A reader that has no room. If none may lose a message, one that has not been sent all before
    /// has none either.
    #[inline]
    pub(super) fn full(&self) -> Option<Destination> {
        let blocks = self.options.slow_readers == SlowReaders::Block;
        let full = self.readers.iter().find(|reader| {
            let is_behind = reader.latest.is_some() || reader.is_unflushed;
            reader.window.is_full() || blocks && is_behind
        });
        full.map(|reader| reader.to)
    }

    /// Whether all that was published is handed over to all readers, whatever becomes of the
    /// publisher.
    pub(super) fn is_flushed(&self) -> bool {
        self.readers.iter().all(|reader| {
            // The head shows the newest even when the publisher is gone.
            let sees_newest = self.shown.is_some() && matches!(reader.route, Route::Views { .. });
            let is_behind = reader.latest.is_some() && !sees_newest || reader.is_unflushed;
            !is_behind && (reader.is_fetched || reader.window.head == 0)
        })
    }

    /// Opens lanes until enough are offered, as far as there may be more readers.
    pub(super) fn offer(
        &mut self,
        session: &mut Session<'_, H>,
        bound: &Bound,
    ) -> Result<(), OpenError> {
        let (options, shown) = (&self.options, self.shown);
        let filled = self.readers.len() + self.waiting.len();
        let open = |session: &mut Session<'_, H>| open_lane(session, options, shown);
        self.lobby.offer(session, bound, filled, open)
    }

    /// Takes in what was given back, and nothing else: for a publisher that waits for it.
    #[inline]
    pub(super) fn collect(&mut self, manager: &ManagerRef<H>, held: &mut Held) {
        let Ok(mut entered) = manager.enter() else {
            return;
        };
        entered.poll();
        drop(entered);
        for reader in &mut self.readers {
            reader.window.collect(&reader.door.board, held);
        }
    }

    /// Takes in what has come: greetings, samples that were given back, good-byes and losses.
    pub(super) fn look(&mut self, manager: &ManagerRef<H>, bound: &Bound, held: &mut Held) {
        let Ok(mut entered) = manager.enter() else {
            return;
        };
        entered.core.reap();
        entered.poll();
        for reader in &mut self.readers {
            reader.collect(held);
        }
        self.sweep(&mut entered, held);
        self.looks += 1;
        self.hear(&mut entered);
        if !self.waiting.is_empty() {
            drop(entered);
            self.take_in(manager, held);
            entered = match manager.enter() {
                Ok(entered) => entered,
                Err(_) => return,
            };
        }
        if self.looks >= LOOKS_BETWEEN_COUNTS || self.lobby.is_untidy(&mut entered) {
            self.looks = 0;
            self.tidy(&mut entered, bound);
        }
        self.send_latest(&mut entered, held);
        drop(entered);
        self.copy_latest(held);
    }

    /// Hears those that present themselves.
    fn hear(&mut self, session: &mut Session<'_, H>) {
        let mut at = 0;
        while let Some(door) = self.lobby.guest_mut(at) {
            match door.queue.reader.pop() {
                Ok(None) => at += 1,
                told => self.greet(session, at, told.ok().flatten()),
            }
        }
    }

    /// A reader presents itself over a link: with a list or a stream of its own.
    fn greet(&mut self, session: &mut Session<'_, H>, at: usize, told: Option<Notification>) {
        let Some((door, told)) = self.lobby.guest_mut(at).zip(told) else {
            return self.lobby.dismiss(at);
        };
        let mut bytes = [0; GREETING_BYTES];
        let is_read = door.area.read_at(GREETING_OFFSET, &mut bytes).is_ok();
        let greeting = is_read.then(|| Greeting::read(told.word, &bytes)).flatten();
        let Some(greeting) = greeting else {
            return match told.word {
                FAREWELL => self.lobby.dismiss(at),
                _ => self.lobby.refuse(at),
            };
        };
        let admitted = self.lobby.admit(session, at, told.from, &greeting.to());
        self.waiting.extend(admitted.map(|(place, door)| Newcomer {
            place,
            door,
            from: told.from,
            greeting,
        }));
    }

    /// Takes in those that have presented themselves. Whoever finds a full link, or no room among
    /// what waits to be fetched, is tried again at the next look.
    fn take_in(&mut self, manager: &ManagerRef<H>, held: &mut Held) {
        for mut newcomer in std::mem::take(&mut self.waiting) {
            // It says good-bye already, or something else.
            let told = newcomer.door.queue.reader.pop();
            let is_gone = match manager.enter() {
                Ok(entered) => entered.is_drained(newcomer.from),
                Err(_) => true,
            };
            if told != Ok(None) || is_gone {
                self.leaving.leave(newcomer.door.remains());
                self.lobby.vacate();
                continue;
            }
            let shown = self.shown.is_some();
            let Some(route) = newcomer.route(manager, held, shown) else {
                self.waiting.push(newcomer);
                continue;
            };
            let to = newcomer.to();
            let is_copied = matches!(route, Route::Copies(_));
            self.copied += usize::from(is_copied);
            // Others look at the head.
            let newest = held.newest().filter(|_| is_copied);
            if let Some((index, _)) = newest {
                held.hold_again(index);
            }
            self.readers.push(Reader {
                is_fetched: is_copied || shown,
                _place: newcomer.place,
                door: newcomer.door,
                from: newcomer.from,
                to,
                route,
                window: Window::new(self.options.depth),
                latest: newest,
                is_unflushed: false,
                lost: 0,
                is_over: false,
                is_bad: false,
            });
        }
    }

    /// Lets go of readers that are gone, and of all that they had.
    fn sweep(&mut self, session: &mut Session<'_, H>, held: &mut Held) {
        let mut at = 0;
        while at < self.readers.len() {
            let is_gone = session.is_drained(self.readers[at].from);
            if !is_gone && !self.readers[at].is_over {
                at += 1;
                continue;
            }
            let reader = self.readers.swap_remove(at);
            self.leaving.leave(reader.remains(!is_gone));
            self.lost += reader.lost;
            self.lobby.misbehaved += u64::from(reader.is_bad);
            self.lobby.vacate();
            let latest = reader.latest.map(|(chunk, _)| chunk);
            latest.into_iter().for_each(|chunk| held.release(chunk));
            for sent in reader.window.sent {
                if let Sent::InPlace(chunk) = sent {
                    held.take_back(chunk);
                }
            }
            match reader.route {
                Route::Views { number, .. } => {
                    number
                        .into_iter()
                        .for_each(|number| session.hide_pool(number));
                }
                Route::Copies(_) => self.copied -= 1,
            }
        }
    }

    /// Takes back lanes whose askers did not present themselves, and offers others.
    fn tidy(&mut self, session: &mut Session<'_, H>, bound: &Bound) {
        if self.lobby.begin_tidy(session, bound) {
            self.hear(session);
            self.lobby.dismiss_late(session);
        }
        if let Err(error) = self.offer(session, bound) {
            tracing::debug!(%error, "no lane for another reader of loaned messages");
        }
    }

    /// Tells all readers on this host where a message lies.
    #[inline]
    pub(super) fn announce(
        &mut self,
        session: &mut Session<'_, H>,
        held: &mut Held,
        index: u32,
        number: u64,
        published: &mut Published,
    ) {
        let depth = self.options.depth;
        let keeps = self.options.slow_readers != SlowReaders::Lose;
        for reader in &mut self.readers {
            if let Route::Copies(_) = reader.route {
                continue;
            }
            if let Some((older, _)) = reader.latest.take() {
                held.release(older);
                reader.lost += 1;
            }
            if reader.tell(session, held, index, number, depth) {
                published.readers += 1;
            } else if reader.is_over {
                // The next look lets it go.
            } else if keeps {
                held.hold_again(index);
                reader.latest = Some((index, number));
                published.readers += 1;
            } else {
                reader.lost += 1;
                published.lost += 1;
            }
        }
    }

    /// Copies a message to all readers that need copies.
    #[cold]
    pub(super) fn copy(
        &mut self,
        held: &mut Held,
        index: u32,
        wait: Wait,
        published: &mut Published,
    ) {
        let keeps = self.options.slow_readers != SlowReaders::Lose;
        for reader in &mut self.readers {
            let Route::Copies(_) = &reader.route else {
                continue;
            };
            if let Some((older, _)) = reader.latest.take() {
                held.release(older);
                reader.lost += 1;
            }
            match reader.copy(held, index, wait) {
                Ok(()) => published.readers += 1,
                Err(SendError::WouldBlock { .. }) if keeps => {
                    held.hold_again(index);
                    reader.latest = Some((index, published.number));
                    published.readers += 1;
                }
                Err(SendError::WouldBlock { .. }) => {
                    reader.lost += 1;
                    published.lost += 1;
                }
                Err(_) => reader.is_over = true,
            }
        }
    }

    /// Wakes readers on this host that had no room for the newest message: they look at the head.
    pub(super) fn ring(&mut self, session: &mut Session<'_, H>) {
        for reader in &mut self.readers {
            if let (Route::Views { list, .. }, Some(_)) = (&reader.route, reader.latest) {
                let rung = session.send(list, &Message::new(&[]).silent(), Wait::Poll);
                // Where there is no room, the reader has still to take what came before, and looks
                // then.
                reader.is_over |= !matches!(rung, Ok(_) | Err(SendError::WouldBlock { .. }));
            }
        }
    }

    /// Sends what was kept to readers that have room.
    fn send_latest(&mut self, session: &mut Session<'_, H>, held: &mut Held) {
        let depth = self.options.depth;
        for reader in &mut self.readers {
            if let (Route::Views { .. }, Some((index, number))) = (&reader.route, reader.latest)
                && reader.tell(session, held, index, number, depth)
            {
                reader.latest = None;
                held.release(index);
            }
        }
    }

    fn copy_latest(&mut self, held: &mut Held) {
        if self.copied == 0 {
            return;
        }
        for reader in &mut self.readers {
            // What a call before left to be sent.
            let flushed = reader.flush();
            reader.is_over |= flushed.is_err();
            if let Some((index, _)) = reader.latest {
                if matches!(reader.route, Route::Views { .. }) {
                    continue;
                }
                match reader.copy(held, index, Wait::Poll) {
                    Err(SendError::WouldBlock { .. }) => continue,
                    copied => reader.is_over |= copied.is_err(),
                }
                reader.latest = None;
                held.release(index);
            }
        }
    }
}

impl<H: Host> Reader<H> {
    /// Tells it where a message lies, if it has room for one more. It holds the chunk from then on.
    #[inline]
    fn tell(
        &mut self,
        session: &mut Session<'_, H>,
        held: &mut Held,
        index: u32,
        number: u64,
        depth: u16,
    ) -> bool {
        let Route::Views { list, .. } = &self.route else {
            return false;
        };
        let position = self.window.head;
        if self.window.is_full() || !held.may_lend(index) {
            return false;
        }
        let data = pair(place(index, held.chunk(index).len()), number);
        let message = Message::new(&data)
            .at(entry_offset(position, depth))
            .word(position);
        match session.send(list, &message, Wait::Poll) {
            Ok(_) => {
                held.lend(index);
                self.window.push(Sent::InPlace(index));
                true
            }
            Err(SendError::WouldBlock { .. }) => false,
            Err(_) => {
                self.is_over = true;
                false
            }
        }
    }

    /// Copies a message to it, if it has room for one more.
    fn copy(&mut self, held: &Held, index: u32, wait: Wait) -> Result<(), SendError> {
        let Route::Copies(stream) = &mut self.route else {
            return Ok(());
        };
        if self.window.is_full() {
            return Err(SendError::WouldBlock { peer: self.to });
        }
        stream.send(held.chunk(index).marked(), wait)?;
        self.window.push(Sent::Copied);
        // What is small does not wait for more.
        self.flush()
    }

    fn flush(&mut self) -> Result<(), SendError> {
        let Route::Copies(stream) = &mut self.route else {
            return Ok(());
        };
        let flushed = stream.flush(Wait::Poll);
        self.is_unflushed = matches!(flushed, Err(SendError::WouldBlock { .. }));
        match self.is_unflushed {
            true => Ok(()),
            false => flushed,
        }
    }

    /// Takes in what it gave back, and whether it says good-bye.
    fn collect(&mut self, held: &mut Held) {
        loop {
            match self.door.queue.reader.pop() {
                Ok(None) => break,
                Ok(Some(told)) if told.word == FETCHED && !self.is_fetched => {
                    self.is_fetched = true;
                }
                // Good-bye; and whatever else it says, it has had its place.
                told => {
                    let is_farewell = |told: &Option<Notification>| {
                        told.is_some_and(|told| told.word == FAREWELL)
                    };
                    self.is_bad = !told.as_ref().is_ok_and(is_farewell);
                    self.is_over = true;
                    break;
                }
            }
        }
        self.window.collect(&self.door.board, held);
    }
}

/// Opens a lane of that publisher, and gives what its reader gets.
fn open_lane<H: Host>(
    session: &mut Session<'_, H>,
    options: &PublisherOptions,
    shown: Option<u64>,
) -> Result<(Door, Vec<u8>), OpenError> {
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
    let door = Door {
        slot,
        area,
        queue,
        board_slot,
        board,
    };
    Ok((door, lane.to_bytes()))
}
