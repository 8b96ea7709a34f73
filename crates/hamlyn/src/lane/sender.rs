//! The sending end of a lane.

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::terminus::{Completion, SendHandle};
use hamlyn_host::Host;
use hamlyn_ring::area::Area;

use super::LaneSeed;
use super::buffers::Remote;
use super::wire::{BOARD_BYTES, Word};
use crate::error::{ConnectError, NotSent, SendError};
use crate::item::EndPoint;
use crate::lobby;
use crate::message::Target;
use crate::remains::{LastWord, Leaving, Remains};
use crate::session::Session;
use crate::slot::{NewSlot, Slot};
use crate::wait::{Wait, Waiting};

/// A message that was sent, and for which no credit came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The number of its buffer.
    pub index: u16,
    /// The number that its sender gave it.
    pub tag: u32,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// The sending end of a lane. See [the module](crate::lane). When it is dropped, the receiver is
/// told by the manager's next call that waits; [`LaneSender::close`] does not leave it to that.
#[derive(Debug)]
pub struct LaneSender {
    remote: Remote,
    seed: LaneSeed,
    /// Times that each buffer was given back, as the receiver says; and behind them, whether it has
    /// let us in.
    board: Area,
    slot: Slot,
    /// Times that each was filled.
    filled: Box<[u64]>,
    /// The buffer at which the search for a free one begins.
    next: u16,
    kept: Vec<Kept>,
    sent: u64,
    /// The message that was sent last.
    last: Option<SendHandle>,
    has_greeted: bool,
    leaving: Leaving,
}

impl Drop for LaneSender {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            slots: vec![self.slot.name()],
            // If the greeting did not leave, another attempt may be the sender.
            last_word: self.has_greeted.then(|| self.remote.farewell(self.sent)),
            ..Remains::default()
        });
    }
}

impl LaneSender {
    /// Makes this program the sender of a lane: connects to the receiver's interface, if there is
    /// no link, and presents itself. Blocks for as long as `wait` says, for that only. A lane has
    /// one sender: of another one the greeting is refused, as a fence shows.
    pub fn connect<H: Host>(
        session: &mut Session<'_, H>,
        seed: &LaneSeed,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        let mut waiting = Waiting::new(wait);
        let left = session.left(&mut waiting);
        let mut target = session.target(&seed.ticket, left)?;
        target.set_metadata_index(0);
        let buffers = usize::from(seed.buffers);
        let board = session
            .allocate((u64::from(seed.buffers) + 1) * BOARD_BYTES)
            .map_err(crate::OpenError::Host)?;
        let slot = session.open_slot(NewSlot::new(&board).entries(1))?;
        let board_ticket = slot.whole_fast();
        // Dropping it closes what was opened.
        let mut sender = Self {
            remote: Remote::new(target, seed.buffers, seed.buffer_bytes),
            seed: *seed,
            board,
            slot,
            filled: vec![0; buffers].into(),
            next: 0,
            kept: Vec::new(),
            sent: 0,
            last: None,
            has_greeted: false,
            leaving: session.leaving.clone(),
        };
        let left = session.left(&mut waiting);
        sender
            .remote
            .greet(session, &board_ticket.to_bytes(), left)?;
        sender.has_greeted = true;
        Ok(sender)
    }

    /// Makes this program the sender of a lane that a [`Lobby<Lane>`](crate::lobby::Lobby) offers
    /// under `to`, an address or what was looked up there, for that protocol. Blocks for as long as
    /// `wait` says, while nobody has the name, all places are taken, or this program's share is
    /// ([`crate::lobby::connect`]). It need not wait until it is let in: what it sends until then
    /// lies in the lane.
    pub fn connect_to<'a, H: Host>(
        session: &mut Session<'_, H>,
        to: impl Into<EndPoint<'a>>,
        protocol: &'static str,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        lobby::connect(session, to, protocol, wait, |session, seed, left| {
            let sender = Self::connect(session, &LaneSeed::from_bytes(seed)?, left)?;
            let greeted = sender.remote.greeting_target();
            Ok((sender, greeted))
        })
    }

    /// True if the receiver has let this program in: it has taken its greeting in, as its next look
    /// after that does. Does not block; credit and this word come with packets.
    pub fn is_admitted(&self) -> bool {
        let offset = u64::from(self.seed.buffers) * BOARD_BYTES;
        self.board.load_u64(offset) == Ok(1)
    }

    /// Waits until the receiver has let this program in. False if it has not in that time: it
    /// computes, or the time is too short. A program that has both ends must not wait here for
    /// itself.
    ///
    /// # Errors
    ///
    /// [`SendError::ClosedByReceiver`] if the lane has ended, because the receiver did or refused
    /// the greeting, and [`SendError::PeerLost`].
    pub fn await_admission<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        wait: Wait,
    ) -> Result<bool, SendError> {
        let admitted = session.wait_for(wait, |session| match self.is_admitted() {
            true => Ok(Some(())),
            false => self
                .no_room(session)
                .map(|_| self.is_admitted().then_some(())),
        });
        Ok(admitted?.is_some())
    }

    /// Ends the lane, and tells the receiver as soon as there is room: it gets all that was sent,
    /// and then learns that nothing more comes. Does not block.
    pub fn close<H: Host>(self, session: &mut Session<'_, H>) {
        drop(self);
        session.core.reap();
    }

    /// The receiver's end.
    pub fn target(&self) -> &Target {
        self.remote.target()
    }

    /// Bytes of each buffer: the longest message.
    pub fn buffer_bytes(&self) -> u32 {
        self.seed.buffer_bytes
    }

    /// Number of buffers.
    pub fn buffers(&self) -> u16 {
        self.seed.buffers
    }

    /// True if that buffer is free: it was never filled, or given back since.
    pub fn is_free(&self, index: u16) -> bool {
        // A receiver that says anything else gives nothing back.
        self.filled.get(usize::from(index)).is_some_and(|&filled| {
            self.board.load_u64(u64::from(index) * BOARD_BYTES) == Ok(filled)
        })
    }

    /// Number of free buffers, as far as credit has come.
    pub fn credits(&self) -> usize {
        let free = (0..self.seed.buffers).filter(|&index| self.is_free(index));
        free.count()
    }

    /// The next free buffer, from that after the last on.
    fn next_free(&self) -> Option<u16> {
        let all = (self.next..self.seed.buffers).chain(0..self.next);
        let mut free = all.filter(|&index| self.is_free(index));
        free.next()
    }

    fn check<H: Host>(&self, session: &mut Session<'_, H>) -> Result<(), SendError> {
        session.check()?;
        let is_closed = self.slot.metadata().and_then(|area| area.entry(0));
        if is_closed.is_some_and(|entry| entry.metadata_length_bytes() != 0) {
            return Err(SendError::ClosedByReceiver);
        }
        let target = self.remote.target();
        if session.link_end(target.link()).is_some() {
            return Err(session.lost(target).into());
        }
        Ok(())
    }

    fn word(&self, tag: u32, length: usize) -> Result<Word, SendError> {
        let limit_bytes = self.seed.buffer_bytes;
        match u32::try_from(length) {
            Ok(length_bytes) if length_bytes <= limit_bytes => Ok(Word { tag, length_bytes }),
            _ => Err(SendError::RecordTooLarge {
                length_bytes: length as u64,
                limit_bytes: limit_bytes.into(),
            }),
        }
    }

    /// Sends a message to the next free buffer: the number of that. Nothing if none is free, or
    /// there is no room to send. Does not block; moves packets if nothing could be sent. Bytes that
    /// must wait are copied.
    pub fn try_send<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        tag: u32,
        bytes: &[u8],
    ) -> Result<Option<u16>, SendError> {
        if let Some(index) = self.next_free() {
            return self.try_send_to(session, index, tag, bytes);
        }
        self.no_room(session)
    }

    /// The same to a buffer of the caller's choice, which must be free.
    pub fn try_send_to<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        index: u16,
        tag: u32,
        bytes: &[u8],
    ) -> Result<Option<u16>, SendError> {
        self.check(session)?;
        let word = self.word(tag, bytes.len())?;
        if !self.is_free(index) {
            return self.no_room(session);
        }
        match self.remote.post(session, index, word, bytes) {
            Ok(handle) => self.last = Some(handle),
            Err(SendError::WouldBlock { .. }) => return self.no_room(session),
            Err(error) => return Err(error),
        }
        self.note_sent(index);
        Ok(Some(index))
    }

    /// The same to the buffer after that which was filled last, so that the receiver knows the
    /// order of messages.
    pub(crate) fn try_send_in_turn<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bytes: &[u8],
    ) -> Result<Option<u16>, SendError> {
        self.try_send_to(session, self.next, 0, bytes)
    }

    /// True if that buffer is free.
    pub(crate) fn is_next_free(&self) -> bool {
        self.is_free(self.next)
    }

    /// True if all that was sent is handed over to the link.
    pub(crate) fn is_flushed<H: Host>(&self, session: &Session<'_, H>) -> bool {
        let last = self.last.map(|last| session.completion(last));
        !matches!(last, Some(Ok(Completion::Pending)))
    }

    /// Sends bytes to the next free buffer, and keeps them until credit comes for it: if the
    /// message is refused, or the receiver ends, [`LaneSender::take_kept`] has them. The number of
    /// the buffer. Does not block.
    ///
    /// # Errors
    ///
    /// Each gives the bytes back; [`SendError::WouldBlock`] if no buffer is free or there is no
    /// room to send.
    pub fn try_send_kept<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        tag: u32,
        data: Vec<u8>,
    ) -> Result<u16, NotSent> {
        self.drop_credited();
        match self.try_send(session, tag, &data) {
            Ok(Some(index)) => {
                self.kept.push(Kept { index, tag, data });
                Ok(index)
            }
            Ok(None) => Err(NotSent {
                error: self.would_block(),
                data,
            }),
            Err(error) => Err(NotSent { error, data }),
        }
    }

    /// Waits until a message is sent, as [`LaneSender::try_send`]: the number of its buffer. Blocks
    /// for as long as `wait` says; [`SendError::WouldBlock`] if the time is over.
    pub fn send<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        tag: u32,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<u16, SendError> {
        self.wait_to_send(session, wait, |sender, session| {
            sender.try_send(session, tag, bytes)
        })
    }

    /// The same to a buffer of the caller's choice, as soon as that is free.
    pub fn send_to<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        index: u16,
        tag: u32,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<u16, SendError> {
        self.wait_to_send(session, wait, |sender, session| {
            sender.try_send_to(session, index, tag, bytes)
        })
    }

    fn wait_to_send<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        wait: Wait,
        mut attempt: impl FnMut(&mut Self, &mut Session<'_, H>) -> Result<Option<u16>, SendError>,
    ) -> Result<u16, SendError> {
        let sent = session.wait_for_room(wait, |session| attempt(self, session))?;
        sent.ok_or_else(|| self.would_block())
    }

    pub(crate) fn would_block(&self) -> SendError {
        SendError::WouldBlock {
            peer: self.remote.target().ticket().destination,
        }
    }

    /// Waits until a message is sent, as [`LaneSender::try_send_kept`]: the number of its buffer.
    /// Blocks for as long as `wait` says. Each error gives the bytes back.
    pub fn send_kept<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        tag: u32,
        data: Vec<u8>,
        wait: Wait,
    ) -> Result<u16, NotSent> {
        let target = *self.remote.target();
        session.wait_to_give(&target, data, wait, |session, data| {
            self.try_send_kept(session, tag, data)
        })
    }

    /// The messages that were sent to be kept and for which no credit came, the oldest first. The
    /// receiver may have had those that are under way.
    pub fn take_kept(&mut self) -> Vec<Kept> {
        self.drop_credited();
        std::mem::take(&mut self.kept)
    }

    fn drop_credited(&mut self) {
        let mut kept = std::mem::take(&mut self.kept);
        kept.retain(|kept| !self.is_free(kept.index));
        self.kept = kept;
    }

    fn note_sent(&mut self, index: u16) {
        if let Some(filled) = self.filled.get_mut(usize::from(index)) {
            *filled += 1;
        }
        // Of the message that was there before nothing can come back.
        self.kept.retain(|kept| kept.index != index);
        self.next = (index + 1) % self.seed.buffers;
        self.sent += 1;
    }

    /// Moves packets, and finds out whether the lane is still there.
    fn no_room<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<Option<u16>, SendError> {
        session.poll();
        self.check(session)?;
        match session.is_closed_there(self.remote.target()) {
            true => Err(SendError::ClosedByReceiver),
            false => Ok(None),
        }
    }
}

/// The word that the receiver of a lane is told, over that link, if no sender comes.
pub(crate) fn nothing_follows(seed: &LaneSeed, link: LinkId) -> LastWord {
    let remote = Remote::new(Target::new(link, seed.ticket), seed.buffers, 0);
    remote.farewell(0)
}
