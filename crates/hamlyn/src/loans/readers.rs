//! The readers of a publisher: the lanes that are offered to those who come, what each reader has,
//! and what is held for them. Everything that is counted is counted here; nothing that a reader can
//! write is believed but that it gives back its own.

use hamlyn_engine::notification::Notification;
use hamlyn_host::{Destination, Host};

use super::options::{PublisherOptions, SlowReaders};
use super::reader::{Door, Newcomer, Reader, State};
use super::window::Held;
use super::wire::FAREWELL;
use crate::error::OpenError;
use crate::item::Bound;
use crate::lobby::{Guest, Lobby};
use crate::remains::{Leaving, Remains};
use crate::session::Session;
use crate::wait::{Wait, Waiting};

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

/// See the module.
pub(super) struct Readers {
    options: PublisherOptions,
    /// Under which every reader fetches the pool, if it has a head.
    shown: Option<u64>,
    lobby: Lobby<Door>,
    readers: Vec<Reader>,
    /// Those that have presented themselves and could not be taken in yet.
    waiting: Vec<Newcomer>,
    looks: u32,
    /// By readers that are gone.
    lost: u64,
    leaving: Leaving,
}

impl Drop for Readers {
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

impl Readers {
    pub(super) fn new<H: Host>(
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

    /// A reader that has no room. If none may lose a message, one that has not been sent all before
    /// has none either.
    #[inline]
    pub(super) fn full(&self) -> Option<Destination> {
        let blocks = self.options.slow_readers == SlowReaders::Block;
        let full = self
            .readers
            .iter()
            .find(|reader| reader.is_full() || blocks && reader.latest.is_some());
        full.map(|reader| reader.to)
    }

    /// Whether all that was published is handed over to all readers, whatever becomes of the
    /// publisher.
    pub(super) fn is_flushed<H: Host>(&self, session: &Session<'_, H>) -> bool {
        // The head shows the newest even when the publisher is gone.
        let shows_newest = self.shown.is_some();
        let mut readers = self.readers.iter();
        readers.all(|reader| reader.is_flushed(session, shows_newest))
    }

    /// Opens lanes until enough are offered, as far as there may be more readers.
    pub(super) fn offer<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bound: &Bound,
    ) -> Result<(), OpenError> {
        let (options, shown) = (&self.options, self.shown);
        let filled = self.readers.len() + self.waiting.len();
        let open = |session: &mut Session<'_, H>| Door::open(session, options, shown);
        self.lobby.offer(session, bound, filled, open)
    }

    /// Takes in what was given back, and nothing else: for a publisher that waits for it.
    #[inline]
    pub(super) fn collect(&mut self, held: &mut Held) {
        for reader in &mut self.readers {
            reader.collect(held);
        }
    }

    /// Takes in what has come: greetings, samples that were given back, good-byes and losses. Of a
    /// publisher that `rests`, those who asked and did not come are seen to as well.
    pub(super) fn look<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bound: &Bound,
        held: &mut Held,
        rests: bool,
    ) {
        session.core.reap();
        session.poll();
        for reader in &mut self.readers {
            reader.hear();
            reader.collect(held);
        }
        self.sweep(session, held);
        self.looks += 1;
        self.hear(session);
        self.take_in(session, held);
        if rests || self.looks >= LOOKS_BETWEEN_COUNTS || self.lobby.is_untidy(session) {
            self.looks = 0;
            self.tidy(session, bound);
        }
        // What was kept goes to readers that have room.
        let mut waiting = Waiting::new(Wait::Poll);
        for reader in &mut self.readers {
            if let Some((index, number)) = reader.latest
                && reader.send(session, held, index, number, &mut waiting)
            {
                reader.latest = None;
                held.release(index);
            }
        }
    }

    /// Hears those that present themselves.
    fn hear<H: Host>(&mut self, session: &mut Session<'_, H>) {
        let mut at = 0;
        while let Some(door) = self.lobby.guest_mut(at) {
            match door.queue.reader.pop() {
                Ok(None) => at += 1,
                told => self.greet(session, at, told.ok().flatten()),
            }
        }
    }

    /// A reader presents itself over a link: with a list or a lane of its own.
    fn greet<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        at: usize,
        told: Option<Notification>,
    ) {
        let Some((door, told)) = self.lobby.guest_mut(at).zip(told) else {
            return self.lobby.dismiss(at);
        };
        let Some(greeting) = door.greeting(told.word) else {
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
    fn take_in<H: Host>(&mut self, session: &mut Session<'_, H>, held: &mut Held) {
        for mut newcomer in std::mem::take(&mut self.waiting) {
            // It says good-bye already, or something else.
            let told = newcomer.door.queue.reader.pop();
            if told != Ok(None) || session.is_drained(newcomer.from) {
                self.leaving.leave(newcomer.door.remains());
                self.lobby.vacate();
                continue;
            }
            match newcomer.route(session, held, self.shown.is_some()) {
                Some(route) => {
                    let depth = self.options.depth;
                    let reader = Reader::new(newcomer, route, held, depth, self.shown.is_some());
                    self.readers.push(reader);
                }
                None => self.waiting.push(newcomer),
            }
        }
    }

    /// Lets go of readers that are gone, and of all that they had.
    fn sweep<H: Host>(&mut self, session: &mut Session<'_, H>, held: &mut Held) {
        let mut at = 0;
        while at < self.readers.len() {
            let is_gone = session.is_drained(self.readers[at].from);
            if !is_gone && self.readers[at].state == State::Active {
                at += 1;
                continue;
            }
            let reader = self.readers.swap_remove(at);
            self.leaving.leave(reader.remains(!is_gone));
            self.lost += reader.lost;
            self.lobby.misbehaved += u64::from(reader.state == State::Expelled);
            self.lobby.vacate();
            reader.end(session, held);
        }
    }

    /// Takes back lanes whose askers did not present themselves, and offers others.
    fn tidy<H: Host>(&mut self, session: &mut Session<'_, H>, bound: &Bound) {
        if self.lobby.begin_tidy(session, bound) {
            self.hear(session);
            self.lobby.dismiss_late(session);
        }
        if let Err(error) = self.offer(session, bound) {
            tracing::debug!(%error, "no lane for another reader of loaned messages");
        }
    }

    /// Sends a message to all readers: where it lies, or a copy. Those that get copies are waited
    /// for as long as `waiting` says.
    #[inline]
    pub(super) fn announce<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        held: &mut Held,
        index: u32,
        waiting: &mut Waiting,
        published: &mut Published,
    ) {
        let number = published.number;
        let keeps = self.options.slow_readers != SlowReaders::Lose;
        for reader in &mut self.readers {
            if let Some((older, _)) = reader.latest.take() {
                held.release(older);
                reader.lost += 1;
            }
            if reader.send(session, held, index, number, waiting) {
                published.readers += 1;
            } else if reader.state != State::Active {
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

    /// Wakes readers on this host that had no room for the newest message: they look at the head.
    pub(super) fn ring<H: Host>(&mut self, session: &mut Session<'_, H>) {
        for reader in &mut self.readers {
            if reader.latest.is_some() {
                reader.ring(session);
            }
        }
    }
}
