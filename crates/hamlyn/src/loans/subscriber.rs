//! The reading end.

use std::fmt;
use std::time::Duration;

use hamlyn_host::Host;
use hamlyn_host::process::ProcessHost;

use super::list::List;
use super::returns::{Came, Returns, malformed};
use super::wire::{
    FAREWELL, GREETING_BYTES, GREETING_FOR_COPIES, GREETING_FOR_VIEWS, GREETING_OFFSET, Lane,
};
use crate::drop_list::DropList;
use crate::error::{ConnectError, ReceiveError};

use crate::item::{Greeted, ItemHeader};
use crate::manager::{Manager, ManagerRef};
use crate::message::{Message, Target};
use crate::peer::PeerIdentity;
use crate::remains::{LastWord, Leaving, Remains};
use crate::stream::{self, StreamOptions};
use crate::ticket::TICKET_BYTES;
use crate::wait::{Wait, Waiting};

/// A wait for a copy ends now and then, to see whether the publisher is still there.
const COPY_WAIT: Duration = Duration::from_millis(500);
/// Bytes before a message that is copied: its number.
const NUMBER_BYTES: usize = 8;
/// Bytes of the pieces of a stream of copies, of long messages: what a packet carries.
const PIECE_BYTES: u64 = 16 << 10;
/// How many there may be.
const PIECES_MAX: u64 = 65_535;

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
    pub(super) manager: ManagerRef<H>,
}

impl<H: Host> Greeted for Subscriber<H> {
    fn greeted(&self) -> Option<&Target> {
        Some(&self.door)
    }
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
            what: "malformed lane descriptor",
        })?;
        let mut entered = manager.enter()?;
        let door = entered.target(&lane.door, left)?;
        let board = door.with_ticket(lane.board).ok_or(ConnectError::Seed {
            what: "its board is another interface's",
        })?;
        let here = entered.identity();
        let is_near = lane.door.destination.node == here.node && lane.door.destination != here;
        let leaving = entered.leaving.clone();
        let mut greeting = [0; GREETING_BYTES];
        let (word, route) = if is_near {
            let list = List::open(&mut entered, lane, door)?;
            greeting[..TICKET_BYTES].copy_from_slice(&list.slot.whole_fast().to_bytes());
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
        if let Route::Views(list) = &mut subscriber.route {
            list.fetch_shown(&mut manager.enter()?)?;
        }
        let message = Message::new(&greeting).at(GREETING_OFFSET).word(word);
        manager.enter()?.send(&door, &message, left)?;
        Ok(subscriber)
    }

    /// The message that [`Subscriber::recv`] shows.
    #[inline]
    pub(super) fn next_message(&mut self, wait: Wait) -> Result<Option<Came>, ReceiveError> {
        self.manager.check()?;
        if let Some(error) = &self.over {
            return Err(error.clone());
        }
        let (is_latest, returns) = (self.lane.is_latest(), &mut self.returns);
        let from = self.following.unwrap_or(0);
        let came = match &mut self.route {
            Route::Views(list) => {
                let mut session = self.manager.enter()?;
                // Without a pool, messages stay in the list.
                let told = match list.pool {
                    Some(_) => session.take_at_hand(&list.queue),
                    None => None,
                };
                match told {
                    Some(told) if told.word == list.next && !is_latest => {
                        list.message(&told).map(Some)
                    }
                    told => {
                        let over = &mut self.over;
                        list.next_message(&mut session, returns, told, over, from, wait)
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
        Ok(Some(came))
    }

    /// Messages that this reader did not get, between the first and the last that it got: gaps in
    /// their numbers.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether messages are read where the publisher wrote them; otherwise they are copied to
    /// here. With [`SlowReaders::Latest`](super::SlowReaders::Latest) the newest is copied if it
    /// was not announced to this reader.
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
        self.manager.enter().ok()?.identity_of(link)
    }

    /// Gives back samples that were kept and are dropped, as the next [`Subscriber::recv`] would:
    /// for a program that makes none for long.
    pub fn reclaim(&mut self) {
        if let Ok(mut session) = self.manager.enter() {
            self.returns.give_back_released(&mut session);
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

/// Room for as many copies as the reader may have samples: the publisher sends no more. A record
/// lies in one stretch, so that what is left at the end of the memory may stay free.
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
        manager: &ManagerRef<H>,
        returns: &mut Returns,
        publisher: &Target,
        is_latest: bool,
        wait: Wait,
    ) -> Result<Option<Came>, ReceiveError> {
        returns.give_back_released(&mut manager.enter()?);
        let mut waiting = Waiting::new(wait);
        let mut newest: Option<Came> = None;
        loop {
            let left = match newest {
                Some(_) => Wait::Poll,
                None => manager.enter()?.left(&mut waiting),
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
                    let mut entered = manager.enter()?;
                    if entered.is_drained(publisher.link()) {
                        return Err(entered.lost(publisher).into());
                    }
                    if entered.is_closed_there(publisher) {
                        return Err(ReceiveError::Closed);
                    }
                    if slice == left {
                        return Ok(None);
                    }
                }
            }
        }
    }
}
