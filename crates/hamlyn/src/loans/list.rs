//! Messages that are read where the publisher wrote them: where they are announced, and the
//! newest, which is found by the head of the pool (decision 0046).

use std::task::Waker;
use std::time::Duration;

use hamlyn_engine::notification::Notification;
use hamlyn_host::{ConnectError as Reach, Host, HostError};
use hamlyn_ring::Errno;
use hamlyn_ring::area::Area;
use hamlyn_ring::pool::{Chunks, SharedPool};

use super::returns::{Came, Place, Returns, malformed};
use super::wire::{END, FETCHED, Lane, POOL, POOL_OFFSET, entry_offset, list_bytes};
use crate::error::{ConnectError, OpenError, ReceiveError, SendError};

use crate::message::{Message, Target};
use crate::queue::Queue;
use crate::region::AttachError;
use crate::remains::{Leaving, Remains};
use crate::session::Session;
use crate::slot::{NewSlot, Slot};
use crate::tasks::{Answerer, Interest};
use crate::wait::{Wait, Waiting};

/// How long the publisher's process has to hand its pool over; its program takes no part in that.
const POOL_WAIT: Wait = Wait::millis(2000);
/// One that does not is asked again after so long, and has so long to answer.
const FETCH_AGAIN_NS: u64 = 200_000_000;
const FETCH_AGAIN: Duration = Duration::from_nanos(FETCH_AGAIN_NS);
const FETCH_WAIT: Wait = Wait::millis(50);
/// A reader that was told of no message yet may not have been let in, and looks at the head of the
/// pool so often.
const LOOK_WAIT: Duration = Duration::from_millis(20);
/// Notifications of a list besides those of messages.
const WORDS: usize = 3;

/// Where messages are announced that are read in place.
pub(super) struct List {
    pub(super) lane: Lane,
    publisher: Target,
    pub(super) slot: Slot,
    area: Area,
    pub(super) queue: Queue,
    pub(super) returns: Returns,
    /// There when the publisher has shown it.
    pub(super) pool: Option<SharedPool>,
    /// The number under which the publisher has shown it, as long as it is not fetched; and when
    /// that was last tried.
    shown: Option<(u64, u64)>,
    /// The publisher is to be told that it was fetched.
    owes_word: bool,
    /// The publisher ended before it could be fetched: what was announced is lost.
    is_missed: bool,
    /// The position of the next message.
    pub(super) next: u64,
    /// The message that was copied last, found by the head of the pool.
    pub(super) copy: Vec<u8>,
    leaving: Leaving,
}

impl Drop for List {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            slots: vec![self.slot.name()],
            queue: Some(self.queue.id()),
            ..Remains::default()
        });
    }
}

impl List {
    pub(super) fn open<H: Host>(
        session: &mut Session<'_, H>,
        lane: Lane,
        publisher: Target,
        board: Target,
    ) -> Result<Self, OpenError> {
        let area = session.allocate(list_bytes(lane.depth))?;
        let queue = session.open_queue(usize::from(lane.depth) + WORDS)?;
        let slot = match session.open_slot(NewSlot::new(&area).queue(&queue)) {
            Ok(slot) => slot,
            Err(error) => {
                session.close_queue(queue);
                return Err(error);
            }
        };
        Ok(Self {
            lane,
            publisher,
            slot,
            area,
            queue,
            returns: Returns::new(board, lane.depth),
            pool: None,
            shown: None,
            owes_word: false,
            is_missed: false,
            next: 0,
            copy: Vec::new(),
            leaving: session.leaving.clone(),
        })
    }

    /// Fetches the pool of a publisher that shows it to all.
    pub(super) fn fetch_shown<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<(), ConnectError> {
        let Some(number) = self.lane.pool else {
            return Ok(());
        };
        let from = self.publisher.ticket().destination;
        let pool = session.attach_pool(from, number, POOL_WAIT);
        let pool = pool.map_err(|error| match error {
            AttachError::Fetch(error) => error.into(),
            _ => ConnectError::Seed {
                what: "its pool is not sealed as it must be",
            },
        })?;
        if Some(pool.length_bytes()) != self.lane.pool_bytes().map(|bytes| bytes as u64) {
            return Err(ConnectError::Seed {
                what: "its pool has another size",
            });
        }
        self.pool = Some(pool);
        Ok(())
    }

    /// Reads what the publisher says of a message. Each word is loaded once; the view is checked
    /// again, against the mapping.
    #[inline]
    pub(super) fn message(&mut self, told: &Notification) -> Result<Came, ReceiveError> {
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

    /// The next message, or the newest; it waits for one as long as `wait` says. `told` was taken
    /// from the queue already. What ended the list goes to `over` if there is a message before it.
    #[inline(never)]
    pub(super) fn next_message<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        told: Option<Notification>,
        over: &mut Option<ReceiveError>,
        from: u64,
        wait: Wait,
    ) -> Result<Option<Came>, ReceiveError> {
        let mut told = told;
        session.wait_within(&mut Waiting::new(wait), |session, waiting| {
            self.returns.give_back_released(session);
            let came = self.look(session, told.take(), over, from)?;
            if came.is_none()
                && let Some(span) = self.look_again()
                && (wait == Wait::Poll || !waiting.polls())
            {
                session.look_within(span);
            }
            Ok(came)
        })
    }

    /// A task waits for a message: its publisher may wait for one that is kept.
    pub(super) fn will_wake_when_released(&self, waker: &Waker) {
        self.returns.released.will_wake(waker);
    }

    /// The interest of a task that found no message.
    pub(super) fn interest(&self) -> Interest {
        // Stores of the publisher into the head of its pool and room are no news; nor is a process
        // that can hand its pool over again.
        let is_silent =
            self.lane.is_latest() || self.shown.is_some() || self.owes_word || self.returns.owes();
        match is_silent {
            true => Interest::Anything,
            false => {
                let publisher = Answerer::from(&self.publisher);
                Interest::Messages(self.queue.reader.unread(), Some(publisher))
            }
        }
    }

    /// When to look again though nothing comes.
    fn look_again(&self) -> Option<Duration> {
        if self.lane.is_latest() && self.next == 0 {
            // What was published before it presented itself is shown by the head, and announced to
            // nobody.
            Some(LOOK_WAIT)
        } else {
            self.pool.is_none().then_some(FETCH_AGAIN)
        }
    }

    /// The step of that wait.
    fn look<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        mut told: Option<Notification>,
        over: &mut Option<ReceiveError>,
        from: u64,
    ) -> Result<Option<Came>, ReceiveError> {
        let mut newest: Option<Came> = None;
        let mut looks_again = self.lane.is_latest();
        loop {
            if self.shown.is_some() && !self.fetch(session)? {
                // Messages stay in the list.
                return match session.is_drained(self.publisher.link()) {
                    true => Err(session.lost(&self.publisher).into()),
                    false => Ok(None),
                };
            }
            if self.owes_word {
                let message = Message::new(&[]).word(FETCHED);
                let said = session.send(&self.publisher, &message, Wait::Poll);
                self.owes_word = matches!(said, Err(SendError::WouldBlock { .. }));
            }
            if told.is_none() {
                told = session.next_notification(&mut self.queue)?;
            }
            match told.take() {
                Some(told) if told.word == POOL || told.word == END => {
                    let ended = self.control(&told);
                    let Err(error) = ended else {
                        continue;
                    };
                    match self.newest_of(session, newest, from)? {
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
                        self.returns.give_back_came(session, came);
                        continue;
                    }
                    if let Some(older) = newest.replace(came) {
                        self.returns.give_back_came(session, older);
                    }
                    if !self.lane.is_latest() {
                        return Ok(newest);
                    }
                }
                // It may have been announced before the head says so: then it needs no copy.
                None if looks_again && self.shows_newer(newest, from) => {
                    looks_again = false;
                    session.poll();
                }
                None => {
                    let newest = self.newest_of(session, newest, from)?;
                    if newest.is_some() {
                        return Ok(newest);
                    }
                    if session.is_drained(self.publisher.link()) {
                        return Err(session.lost(&self.publisher).into());
                    }
                    if session.is_closed_there(&self.publisher) {
                        return Err(ReceiveError::Closed);
                    }
                    return Ok(None);
                }
            }
        }
    }

    /// Whether the head of the pool says that there is a newer message than the newest that came,
    /// and than those before `from`.
    fn shows_newer(&self, newest: Option<Came>, from: u64) -> bool {
        let from = newest.map_or(from, |newest| newest.number.saturating_add(1));
        let (bytes, chunks) = (self.lane.message_bytes as usize, self.lane.chunks);
        let pool = self.pool.as_ref().filter(|_| self.lane.is_latest());
        pool.is_some_and(|pool| pool.shows_newer(bytes, chunks, from))
    }

    /// The newest message that came, or a newer one that the head of the pool shows.
    fn newest_of<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        newest: Option<Came>,
        from: u64,
    ) -> Result<Option<Came>, ReceiveError> {
        if !self.shows_newer(newest, from) {
            return Ok(newest);
        }
        let from = newest.map_or(from, |newest| newest.number.saturating_add(1));
        let copied = match self.copy_newest(from) {
            Ok(Some(copied)) => copied,
            Err(error) if newest.is_none() => return Err(error),
            // What came is good all the same, and the next look meets the error again.
            Ok(None) | Err(_) => return Ok(newest),
        };
        if let Some(older) = newest {
            self.returns.give_back_came(session, older);
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
            Ok(found) => Ok(found.map(|found| Came::copied(found.number))),
            Err(_) => Err(malformed("a newest message outside the pool")),
        }
    }

    /// The publisher says what is no message: where its pool is, or that it ends.
    #[cold]
    fn control(&mut self, told: &Notification) -> Result<(), ReceiveError> {
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
        self.shown = Some((number, 0));
        Ok(())
    }

    /// Fetches the pool that the publisher has shown; false if its process does not hand it over at
    /// present, as one that is stopped.
    #[cold]
    fn fetch<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<bool, ReceiveError> {
        let Some((number, tried_ns)) = self.shown else {
            return Ok(true);
        };
        let wait = match tried_ns {
            0 => POOL_WAIT,
            _ if session.host().now_ns().saturating_sub(tried_ns) < FETCH_AGAIN_NS => {
                return Ok(false);
            }
            _ => FETCH_WAIT,
        };
        let from = self.publisher.ticket().destination;
        let pool = match session.fetch_pool(from, number, wait) {
            Ok(pool) => pool,
            Err(AttachError::Fetch(Reach::Stalled { .. })) => {
                self.shown = Some((number, session.host().now_ns().max(1)));
                return Ok(false);
            }
            Err(AttachError::Unusable(_) | AttachError::Fetch(Reach::Invalid { .. })) => {
                return Err(malformed("its pool is not sealed as it must be"));
            }
            Err(error) => {
                tracing::debug!(%error, "a pool of loaned messages could not be fetched");
                self.shown = None;
                self.is_missed = true;
                return Ok(true);
            }
        };
        let expected = self.lane.pool_bytes();
        if Some(pool.length_bytes()) != expected.map(|bytes| bytes as u64) {
            return Err(malformed("its pool has another size"));
        }
        self.shown = None;
        self.pool = Some(pool);
        self.owes_word = true;
        Ok(true)
    }
}
