//! The readers of a publisher: the lanes that are offered to those who come, what each reader has,
//! and what is held for them. Everything that is counted is counted here; nothing that a reader can
//! write is believed but that it gives back its own.

use hamlyn_host::{Destination, Host};

use super::options::{PublisherOptions, SlowReaders};
use super::reader::{Door, Reader, State};
use super::window::Held;
use crate::error::OpenError;
use crate::item::ItemHeader;
use crate::lobby::{Lobby, LobbyOptions};
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
const OFFERED: u16 = 4;
/// The same if readers are to get the newest message though the publisher makes no call.
const OFFERED_AHEAD: u16 = 16;
/// Looks after which the offered lanes are counted, if nothing has made that necessary before.
const LOOKS_BETWEEN_COUNTS: u32 = 64;

/// See the module.
pub(super) struct Readers {
    options: PublisherOptions,
    /// Under which every reader fetches the pool, if it has a head.
    shown: Option<u64>,
    lobby: Lobby<Door>,
    readers: Vec<Reader>,
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
    }
}

impl Readers {
    pub(super) fn bind<H: Host>(
        session: &mut Session<'_, H>,
        item: &str,
        header: ItemHeader,
        options: PublisherOptions,
        held: &Held,
    ) -> Result<Self, OpenError> {
        let (shown, offered) = match options.is_latest() {
            true => (Some(session.share_pool(&held.pool, None)?), OFFERED_AHEAD),
            false => (None, OFFERED),
        };
        let places = LobbyOptions {
            places: options.readers,
            offered,
        };
        let lobby = Lobby::bind_as(session, item, header, places, (options, shown));
        let lobby = lobby.inspect_err(|_| {
            if let Some(number) = shown {
                session.hide_pool(number);
            }
        })?;
        Ok(Self {
            options,
            shown,
            lobby,
            readers: Vec::new(),
            looks: 0,
            lost: 0,
            leaving: session.leaving.clone(),
        })
    }

    pub(super) fn count(&self) -> usize {
        let newcomers = self.readers.iter();
        let newcomers = newcomers.filter(|reader| reader.state == State::Newcomer);
        self.readers.len() - newcomers.count()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost + self.readers.iter().map(|reader| reader.lost).sum::<u64>()
    }

    pub(super) fn lobby(&self) -> &Lobby<Door> {
        &self.lobby
    }

    pub(super) fn misbehaved(&self) -> u64 {
        self.lobby.misbehaved()
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
        held: &mut Held,
        rests: bool,
    ) {
        session.core.reap();
        session.poll();
        for reader in &mut self.readers {
            // A newcomer that says anything more says good-bye, or has had its place.
            reader.hear();
            reader.collect(held);
        }
        self.sweep(session, held);
        self.hear(session);
        self.looks += 1;
        if rests || self.looks >= LOOKS_BETWEEN_COUNTS || self.lobby.is_untidy() {
            self.looks = 0;
            if self.lobby.note_asked(session) {
                self.lobby.dismiss_late(session);
            }
            self.lobby.offer_more(session);
        }
        let mut waiting = Waiting::new(Wait::Poll);
        for reader in &mut self.readers {
            if reader.state == State::Newcomer {
                reader.answer(session, held);
            }
            // Messages that were kept go to readers that have room.
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
        let (depth, is_shown) = (self.options.depth, self.shown.is_some());
        while let Some(admitted) = self.lobby.hear(session) {
            let reader = Reader::new(admitted, depth, is_shown);
            self.readers.extend(reader);
        }
    }

    /// Lets go of readers that are gone, and of all that they had.
    fn sweep<H: Host>(&mut self, session: &mut Session<'_, H>, held: &mut Held) {
        let mut at = 0;
        while at < self.readers.len() {
            let is_gone = session.is_drained(self.readers[at].from);
            if !is_gone && matches!(self.readers[at].state, State::Newcomer | State::Active) {
                at += 1;
                continue;
            }
            let reader = self.readers.swap_remove(at);
            self.lost += reader.lost;
            if reader.state == State::Expelled {
                self.lobby.count_misbehaved();
            }
            reader.end(held);
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
            if reader.state != State::Active {
                continue;
            }
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
