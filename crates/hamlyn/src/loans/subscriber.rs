//! The reading end.

use std::fmt;
use std::time::Duration;

use hamlyn_engine::notification::Notification;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Host, HostError};
use hamlyn_ring::Errno;
use hamlyn_ring::area::Area;
use hamlyn_ring::pool::{Chunks, SharedPool};

use super::sample::Sample;
use super::wire::{
    END, FAREWELL, FETCHED, GREETING_BYTES, GREETING_FOR_COPIES, GREETING_FOR_VIEWS,
    GREETING_OFFSET, Lane, POOL, POOL_OFFSET, board_offset, entry_offset, given_back, list_bytes,
    pair,
};
use crate::drop_list::DropList;
use crate::error::{ConnectError, OpenError, ReceiveError, SendError};
use crate::interface::Queue;
use crate::item::ItemHeader;
use crate::links::PeerIdentity;
use crate::manager::{Entered, Holder, Manager};
use crate::message::{Message, Target};
use crate::remains::{LastWord, Leaving, Remains};
use crate::slot::{NewSlot, Slot};
use crate::stream::{self, StreamOptions};
use crate::ticket::TICKET_BYTES;
use crate::wait::{Wait, WaitState};

/// How long the publisher's process has to hand its pool over; its program takes no part in that.
const POOL_WAIT: Wait = Wait::millis(2000);
/// A wait for a copy ends now and then, to see whether the publisher is still there.
const COPY_WAIT: Duration = Duration::from_millis(500);
/// A reader that was told of no message yet may not have been let in, and looks at the head of the pool so often.
const LOOK_WAIT: Duration = Duration::from_millis(20);
/// Bytes before a message that is copied: its number.
const NUMBER_BYTES: usize = 8;
/// Notifications of a list besides those of messages.
const WORDS: usize = 3;
/// Bytes of the pieces of a stream of copies, of long messages: what a packet carries.
const PIECE_BYTES: u64 = 16 << 10;
/// How many there may be.
const PIECES_MAX: u64 = 65_535;

const fn malformed(what: &'static str) -> ReceiveError {
    ReceiveError::Malformed {
        protocol: "loans",
        what,
    }
}

/// Where messages are announced that are read in place.
pub(super) struct List {
    lane: Lane,
    publisher: Target,
    slot: Slot,
    area: Area,
    queue: Queue,
    /// There when the publisher has shown it.
    pub(super) pool: Option<SharedPool>,
    /// The publisher is to be told that it was fetched.
    owes_word: bool,
    /// The publisher ended before it could be fetched: what was announced is lost.
    is_missed: bool,
    /// The position of the next message.
    next: u64,
    /// The message that was copied last, found by the head of the pool.
    pub(super) copy: Vec<u8>,
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

pub(super) enum Route<H: Host> {
    Views(Box<List>),
    Copies(Box<Copies<H>>),
}

/// Messages that are copied to here.
pub(super) struct Copies<H: Host> {
    stream: stream::Receiver<H>,
    /// The message that came last.
    pub(super) copy: Vec<u8>,
    /// The position of the next message.
    next: u64,
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
    /// In the list or the stream; nothing if it was found by the head, and is not to be given back.
    pub(super) position: Option<u64>,
    /// Nothing if it was copied.
    pub(super) place: Option<Place>,
}

/// The reading end. See [the module](crate::loans).
pub struct Subscriber<H: Host = ProcessHost> {
    lane: Lane,
    door: Target,
    pub(super) route: Route<H>,
    pub(super) returns: Returns,
    /// The number of the message after the last that came.
    following: Option<u64>,
    lost: u64,
    /// Why nothing comes any more.
    over: Option<ReceiveError>,
    leaving: Leaving,
    pub(super) manager: Holder<H>,
}

impl<H: Host> Subscriber<H> {
    pub(crate) fn connect(
        manager: &Manager<H>,
        to: &str,
        header: ItemHeader,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        manager.connect_to(to, header, wait, |lane, left| {
            Self::grow(manager, lane, left)
        })
    }

    /// A reader of the lane that is in those bytes.
    fn grow(manager: &Manager<H>, lane: &[u8], left: Wait) -> Result<Self, ConnectError> {
        let lane = Lane::from_bytes(lane).ok_or(ConnectError::Seed {
            what: "its lane is none",
        })?;
        let mut entered = manager.enter()?;
        let door = entered.target(&lane.door, left)?;
        let board = door.with_ticket(lane.board).ok_or(ConnectError::Seed {
            what: "its board is another interface's",
        })?;
        let here = entered.interface().identity();
        let is_near = lane.door.destination.node == here.node && lane.door.destination != here;
        let leaving = entered.interface().leaving.clone();
        let mut greeting = [0; GREETING_BYTES];
        let (word, route) = if is_near {
            let list = List::open(&mut entered, lane, door)?;
            let ticket = list.slot.fast_ticket(0, list.slot.length_bytes());
            let ticket = ticket.unwrap_or_else(|_| unreachable!("the slot covers itself"));
            greeting[..TICKET_BYTES].copy_from_slice(&ticket.to_bytes());
            (GREETING_FOR_VIEWS, Route::Views(Box::new(list)))
        } else {
            drop(entered);
            let stream = stream::Receiver::new(manager, stream_options(&lane))?;
            greeting = stream.make_seed().to_bytes();
            entered = manager.enter()?;
            let copies = Copies {
                stream,
                copy: Vec::new(),
                next: 0,
            };
            (GREETING_FOR_COPIES, Route::Copies(Box::new(copies)))
        };
        drop(entered);
        // What was opened is closed with it.
        let mut subscriber = Self {
            lane,
            door,
            route,
            returns: Returns {
                board,
                depth: lane.depth,
                untold: Vec::with_capacity(usize::from(lane.depth)),
                released: DropList::default(),
            },
            following: None,
            lost: 0,
            over: None,
            leaving,
            manager: manager.hold(),
        };
        subscriber.fetch_pool()?;
        let message = Message::new(&greeting).at(GREETING_OFFSET).word(word);
        manager.enter()?.send_msg(&door, &message, left)?;
        Ok(subscriber)
    }

    /// Fetches the pool of a publisher that shows it to all.
    fn fetch_pool(&mut self) -> Result<(), ConnectError> {
        let (Route::Views(list), Some(number)) = (&mut self.route, self.lane.pool) else {
            return Ok(());
        };
        let from = self.door.ticket().destination;
        let mut entered = self.manager.enter()?;
        let pool = entered
            .interface_mut()
            .fetch_pool(from, number, POOL_WAIT)?;
        if Some(pool.length_bytes()) != self.lane.pool_bytes().map(|bytes| bytes as u64) {
            return Err(ConnectError::Seed {
                what: "its pool has another size",
            });
        }
        list.pool = Some(pool);
        Ok(())
    }

    /// The next message. Nothing if none came in time. [`ReceiveError::Closed`] when the publisher has ended and
    /// [`ReceiveError::PeerLost`] when it is gone, after all that it had announced; what it had announced is lost if it was gone
    /// before the first receive ([`Publisher::flush`](super::Publisher::flush)). Does not allocate, but for the first message,
    /// and for copies. Blocks for as long as `wait` says; the first call that finds the publisher's answer fetches its pool, which
    /// takes 2 seconds more if the publisher's process does not hand it over.
    #[inline]
    pub fn recv(&mut self, wait: Wait) -> Result<Option<Sample<'_, H>>, ReceiveError> {
        self.manager.check()?;
        if let Some(error) = &self.over {
            return Err(error.clone());
        }
        let (is_latest, returns) = (self.lane.is_latest(), &mut self.returns);
        let from = self.following.unwrap_or(0);
        let came = match &mut self.route {
            Route::Views(list) => {
                let mut manager = self.manager.enter()?;
                match manager.interface_mut().take_at_hand(&list.queue) {
                    Some(told) if told.word == list.next && !is_latest && list.pool.is_some() => {
                        list.message(&told).map(Some)
                    }
                    told => {
                        let over = &mut self.over;
                        list.next_message(&mut manager, returns, told, over, from, wait)
                    }
                }
            }
            Route::Copies(copies) => {
                copies.next_message(&self.manager, returns, &self.door, is_latest, wait)
            }
        };
        let came = match came {
            Ok(Some(came)) => came,
            Ok(None) => return Ok(None),
            Err(error) => {
                // Waiting may succeed another time.
                if !matches!(error, ReceiveError::Host(_)) {
                    self.over = Some(error.clone());
                }
                return Err(error);
            }
        };
        // A publisher that lies about its numbers is believed, and misleads nobody else.
        let expected = self.following.unwrap_or(came.number);
        self.lost = self
            .lost
            .saturating_add(came.number.saturating_sub(expected));
        self.following = Some(came.number.saturating_add(1));
        Ok(Some(Sample::new(self, came)))
    }

    /// Messages that this reader did not get, between the first and the last that it got: gaps in their numbers.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether messages are read where the publisher wrote them; otherwise they are copied to here.
    pub fn reads_in_place(&self) -> bool {
        matches!(self.route, Route::Views(_))
    }

    /// How many samples this reader may have that are not given back.
    pub fn depth(&self) -> u16 {
        self.lane.depth
    }

    /// Bytes of the longest message.
    pub fn message_bytes_max(&self) -> u32 {
        self.lane.message_bytes
    }

    /// The publisher, as the kernel or the handshake vouches. Nothing if its link ended long ago.
    pub fn publisher(&self) -> Option<PeerIdentity> {
        let link = self.door.link();
        self.manager.enter().ok()?.interface_mut().identity_of(link)
    }

    /// Gives back samples that were kept and are dropped, as the next [`Subscriber::recv`] would: for a program that makes none
    /// for long.
    pub fn reclaim(&mut self) {
        if let Ok(mut manager) = self.manager.enter() {
            self.returns.give_back_released(&mut manager);
        }
    }
}

impl<H: Host> Drop for Subscriber<H> {
    fn drop(&mut self) {
        let (slots, queue) = match &self.route {
            Route::Views(list) => (vec![list.slot.name()], Some(list.queue.id())),
            Route::Copies(_) => (Vec::new(), None),
        };
        self.leaving.leave(Remains {
            slots,
            queue,
            last_word: Some(LastWord {
                target: self.door,
                metadata: Vec::new(),
                word: FAREWELL,
            }),
            ..Remains::default()
        });
    }
}

impl<H: Host> fmt::Debug for Subscriber<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber")
            .field("lane", &self.lane)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

/// Room for as many copies as the reader may have samples: the publisher sends no more. A record lies in one stretch, so that what
/// is left at the end of the memory may stay free.
fn stream_options(lane: &Lane) -> StreamOptions {
    let record_bytes = u64::from(lane.message_bytes) + NUMBER_BYTES as u64;
    let records = u64::from(lane.depth) + 2;
    let mut piece_bytes = record_bytes.next_power_of_two().clamp(64, PIECE_BYTES);
    while record_bytes.div_ceil(piece_bytes) * records > PIECES_MAX {
        piece_bytes *= 2;
    }
    let pieces = record_bytes.div_ceil(piece_bytes) * records;
    StreamOptions {
        pieces: pieces as u32,
        piece_bytes: piece_bytes as u32,
        limit_bytes: pieces * piece_bytes,
    }
}

impl<H: Host> Copies<H> {
    /// The next message that is copied to here.
    fn next_message(
        &mut self,
        manager: &Holder<H>,
        returns: &mut Returns,
        publisher: &Target,
        is_latest: bool,
        wait: Wait,
    ) -> Result<Option<Came>, ReceiveError> {
        returns.give_back_released(&mut manager.enter()?);
        let mut wait_state = WaitState::new(wait);
        let mut newest: Option<Came> = None;
        loop {
            let left = match newest {
                Some(_) => Wait::Poll,
                None => manager.enter()?.interface().left(&mut wait_state),
            };
            let slice = match left {
                Wait::For(left) if left < COPY_WAIT => Wait::For(left),
                Wait::Poll => Wait::Poll,
                _ => Wait::For(COPY_WAIT),
            };
            match self.stream.recv(slice) {
                Ok(Some(record)) => {
                    let Some((number, message)) = record.split_first_chunk::<NUMBER_BYTES>() else {
                        return Err(malformed("a message without a number"));
                    };
                    self.copy.clear();
                    self.copy.extend_from_slice(message);
                    let came = Came {
                        number: u64::from_le_bytes(*number),
                        position: Some(self.next),
                        place: None,
                    };
                    drop(record);
                    self.next += 1;
                    if let Some(older) = newest.replace(came) {
                        returns.give_back_came(&mut manager.enter()?, older);
                    }
                    if !is_latest {
                        return Ok(newest);
                    }
                }
                // The next call says what it was.
                Ok(None) | Err(_) if newest.is_some() => return Ok(newest),
                Err(error) => return Err(error),
                Ok(None) => {
                    let entered = manager.enter()?;
                    if entered.interface().is_drained(publisher.link()) {
                        return Err(entered.interface().lost(publisher).into());
                    }
                    if slice == left {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

impl List {
    fn open<H: Host>(
        manager: &mut Entered<'_, H>,
        lane: Lane,
        publisher: Target,
    ) -> Result<Self, OpenError> {
        let interface = manager.interface_mut();
        let area = interface.allocate(list_bytes(lane.depth))?;
        let queue = interface.open_queue(usize::from(lane.depth) + WORDS)?;
        let slot = match interface.open_slot(NewSlot::new(&area).queue(&queue)) {
            Ok(slot) => slot,
            Err(error) => {
                interface.close_queue(queue);
                return Err(error);
            }
        };
        Ok(Self {
            lane,
            publisher,
            slot,
            area,
            queue,
            pool: None,
            owes_word: false,
            is_missed: false,
            next: 0,
            copy: Vec::new(),
        })
    }

    /// Reads what the publisher says of a message. Each word is loaded once; the view is checked again, against the mapping.
    #[inline]
    fn message(&mut self, told: &Notification) -> Result<Came, ReceiveError> {
        let (lane, publisher) = (&self.lane, &self.publisher);
        if told.from != publisher.link() {
            return Err(malformed("somebody else has its keys"));
        }
        if told.word != self.next {
            return Err(malformed("a message out of turn"));
        }
        let at = entry_offset(told.word, lane.depth);
        let (Ok(place), Ok(number)) = (self.area.load_u64(at), self.area.load_u64(at + 8)) else {
            return Err(malformed("an entry outside the list"));
        };
        let (chunk, len) = (place as u32, (place >> 32) as usize);
        if chunk >= lane.chunks || len > lane.message_bytes as usize || self.pool.is_none() {
            return Err(malformed("a message outside the pool"));
        }
        self.next += 1;
        Ok(Came {
            number,
            position: Some(told.word),
            place: Some(Place {
                offset: Chunks::offset_of(chunk, lane.message_bytes as usize),
                len,
            }),
        })
    }

    #[inline(never)]
    fn next_message<H: Host>(
        &mut self,
        manager: &mut Entered<'_, H>,
        returns: &mut Returns,
        mut told: Option<Notification>,
        over: &mut Option<ReceiveError>,
        from: u64,
        wait: Wait,
    ) -> Result<Option<Came>, ReceiveError> {
        returns.give_back_released(manager);
        let mut newest: Option<Came> = None;
        let mut looks_again = self.lane.is_latest();
        let mut nap = None;
        let mut wait_state = WaitState::new(wait);
        loop {
            if self.owes_word {
                let message = Message::new(&[]).word(FETCHED);
                let said = manager.send_msg(&self.publisher, &message, Wait::Poll);
                self.owes_word = matches!(said, Err(SendError::WouldBlock { .. }));
            }
            if told.is_none() {
                told = manager.interface_mut().next_notification(&mut self.queue)?;
            }
            match told.take() {
                Some(told) if told.word == POOL || told.word == END => {
                    let ended = self.control(manager, &told);
                    let Err(error) = ended else {
                        continue;
                    };
                    match self.newest_of(manager, returns, newest, from)? {
                        None => return Err(error),
                        // The next call says so.
                        newest => {
                            *over = Some(error);
                            return Ok(newest);
                        }
                    }
                }
                Some(_) if self.is_missed => {}
                Some(told) => {
                    let came = self.message(&told)?;
                    if self.lane.is_latest() && came.number < from {
                        // It was found by the head before.
                        returns.give_back_came(manager, came);
                        continue;
                    }
                    if let Some(older) = newest.replace(came) {
                        returns.give_back_came(manager, older);
                    }
                    if !self.lane.is_latest() {
                        return Ok(newest);
                    }
                }
                // It may have been announced before the head says so: then it needs no copy.
                None if looks_again && self.shows_newer(newest, from) => {
                    looks_again = false;
                    manager.interface_mut().poll();
                }
                None => {
                    let newest = self.newest_of(manager, returns, newest, from)?;
                    if newest.is_some() {
                        return Ok(newest);
                    }
                    if manager.interface().is_drained(self.publisher.link()) {
                        return Err(manager.interface().lost(&self.publisher).into());
                    }
                    looks_again = self.lane.is_latest();
                    let is_known = !self.lane.is_latest() || self.next > 0;
                    let pauses = match is_known {
                        true => manager.pause(&mut wait_state)?,
                        false => nap_once(manager, &mut wait_state, &mut nap)?,
                    };
                    if !pauses {
                        return Ok(None);
                    }
                    returns.give_back_released(manager);
                }
            }
        }
    }

    /// Whether the head of the pool says that there is a newer message than the newest that came, and than those before `from`.
    fn shows_newer(&self, newest: Option<Came>, from: u64) -> bool {
        let from = newest.map_or(from, |newest| newest.number.saturating_add(1));
        let (bytes, chunks) = (self.lane.message_bytes as usize, self.lane.chunks);
        let pool = self.pool.as_ref().filter(|_| self.lane.is_latest());
        pool.is_some_and(|pool| pool.shows_newer(bytes, chunks, from))
    }

    /// The newest message that came, or a newer one that the head of the pool shows.
    fn newest_of<H: Host>(
        &mut self,
        manager: &mut Entered<'_, H>,
        returns: &mut Returns,
        newest: Option<Came>,
        from: u64,
    ) -> Result<Option<Came>, ReceiveError> {
        if !self.shows_newer(newest, from) {
            return Ok(newest);
        }
        let from = newest.map_or(from, |newest| newest.number.saturating_add(1));
        let Some(copied) = self.copy_newest(from)? else {
            return Ok(newest);
        };
        if let Some(older) = newest {
            returns.give_back_came(manager, older);
        }
        Ok(Some(copied))
    }

    /// Copies the message that the head of the pool shows, if its number is `from` or more.
    fn copy_newest(&mut self, from: u64) -> Result<Option<Came>, ReceiveError> {
        let Some(pool) = &self.pool else {
            return Ok(None);
        };
        let (bytes, chunks) = (self.lane.message_bytes as usize, self.lane.chunks);
        let missing = bytes.saturating_sub(self.copy.len());
        if self.copy.try_reserve_exact(missing).is_err() {
            let needed = HostError::memory(self.lane.message_bytes.into());
            return Err(needed(Errno::NOMEM).into());
        }
        match pool.copy_newest(bytes, chunks, from, &mut self.copy) {
            Ok(found) => Ok(found.map(|found| Came {
                number: found.number,
                position: None,
                place: None,
            })),
            Err(_) => Err(malformed("a newest message outside the pool")),
        }
    }

    /// The publisher says what is no message: where its pool is, or that it ends.
    #[cold]
    fn control<H: Host>(
        &mut self,
        manager: &mut Entered<'_, H>,
        told: &Notification,
    ) -> Result<(), ReceiveError> {
        let publisher = &self.publisher;
        if told.from != publisher.link() {
            return Err(malformed("somebody else has its keys"));
        }
        if told.word == END {
            return Err(ReceiveError::Closed);
        }
        if self.pool.is_some() {
            return Err(malformed("a second pool"));
        }
        let Ok(number) = self.area.load_u64(POOL_OFFSET) else {
            return Err(malformed("no pool"));
        };
        let from = publisher.ticket().destination;
        let pool = manager.interface_mut().fetch_pool(from, number, POOL_WAIT);
        let pool = match pool {
            Ok(pool) => pool,
            Err(hamlyn_host::ConnectError::Invalid { .. }) => {
                return Err(malformed("its pool is not sealed as it must be"));
            }
            Err(error) => {
                tracing::debug!(%error, "a pool of loaned messages could not be fetched");
                self.is_missed = true;
                return Ok(());
            }
        };
        let expected = self.lane.pool_bytes();
        if Some(pool.length_bytes()) != expected.map(|bytes| bytes as u64) {
            return Err(malformed("its pool has another size"));
        }
        self.pool = Some(pool);
        self.owes_word = true;
        Ok(())
    }
}

/// A step of a wait that looks again after [`LOOK_WAIT`], whether or not it is woken; false when its time is over.
fn nap_once<H: Host>(
    manager: &mut Entered<'_, H>,
    wait_state: &mut WaitState,
    nap: &mut Option<WaitState>,
) -> Result<bool, HostError> {
    let left = match manager.interface().left(wait_state) {
        Wait::Poll | Wait::For(Duration::ZERO) => return Ok(false),
        Wait::For(left) => left.min(LOOK_WAIT),
        Wait::Forever => LOOK_WAIT,
    };
    let state = nap.get_or_insert_with(|| WaitState::new(Wait::For(left)));
    if !manager.pause(state)? {
        *nap = None;
    }
    Ok(true)
}

impl Returns {
    /// Tells the publisher that a sample is given back; later, if there is no room.
    #[inline]
    pub(super) fn give_back<H: Host>(&mut self, manager: &mut Entered<'_, H>, position: u64) {
        if !self.tell(manager, position) {
            self.untold.push(position);
        }
    }

    /// The same of a message that came, unless it was found by the head.
    fn give_back_came<H: Host>(&mut self, manager: &mut Entered<'_, H>, came: Came) {
        if let Some(position) = came.position {
            self.give_back(manager, position);
        }
    }

    #[inline]
    fn tell<H: Host>(&self, manager: &mut Entered<'_, H>, position: u64) -> bool {
        let data = pair(given_back(position), 0);
        let message = Message::new(&data).at(board_offset(position, self.depth));
        let told = manager.send_msg(&self.board, &message, Wait::Poll);
        // A publisher that is gone need not be told.
        !matches!(told, Err(SendError::WouldBlock { .. }))
    }

    fn give_back_released<H: Host>(&mut self, manager: &mut Entered<'_, H>) {
        let released = self.released.clone();
        released.retain(|&mut position| !self.tell(manager, position));
        let mut untold = std::mem::take(&mut self.untold);
        untold.retain(|&position| !self.tell(manager, position));
        self.untold = untold;
    }
}
