//! The sending end of a stream.

mod account;
mod closing;
mod credit;
mod staged;
mod staging;

use hamlyn_engine::limits::DIRECT_BYTES_MAX;
use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::Host;

use account::Account;
use staged::{Cut, Staged};

use super::short_way::ShortWay;
use super::wire::{
    CREDIT_PLACE_BYTES, HELLO, Kind, LIMIT_BYTES_MAX, StreamSeed, packed_bytes, piece_word,
};
use crate::error::{ConnectError, FenceError, OpenError, SendError};

use crate::message::Sending;
use crate::message::{Message, Target};
use crate::queue::Queue;
use crate::remains::Leaving;
use crate::session::Session;
use crate::slot::{NewSlot, Slot};
use crate::tasks::{Answerer, Interest};
use crate::ticket::Ticket;
use crate::wait::{Wait, Waiting};

/// Notifications that may wait at a sender. When a slow sender is overrun, the newest word says all
/// that the lost ones said.
const CREDIT_ENTRIES: usize = 64;
/// Records up to this fraction of a piece may share one.
const PACK_FRACTION: usize = 8;

/// See the module.
#[derive(Debug)]
pub(super) struct Sender {
    /// To the next piece.
    target: Target,
    /// To the control entries.
    control: Target,
    /// Bytes of a piece of the extent that is filled, and of the smallest that there may be: packs
    /// fit each.
    piece_bytes: usize,
    pack_bytes: usize,
    /// The longest record.
    limit_bytes: u64,
    account: Account,
    /// Where credit arrives.
    slot: Slot,
    queue: Queue,
    credit_key_ticket: Ticket,
    /// Small records that share the next piece.
    pack: Vec<u8>,
    staged: Option<Staged>,
    cut: Option<Cut>,
    /// Where the record began that was begun last.
    record_at: u64,
    /// Nothing more can be sent: it is closed, or the rest of a record cannot go.
    is_over: bool,
    /// The receiver was told that nothing more comes; gone when that is handed over.
    closing: Option<SendHandle>,
    leaving: Option<Leaving>,
    /// The longest record that may share a piece.
    small_bytes: usize,
    /// Small records go at once into the pieces before this one, unless there is news.
    at_once: u64,
}

impl Sender {
    /// Grows the sending end from a seed; connects if need be, and presents itself.
    pub(crate) fn grow<H: Host>(
        session: &mut Session<'_, H>,
        seed: &StreamSeed,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        seed.validate()
            .map_err(|what| ConnectError::Seed { what })?;
        let mut target = session.target(&seed.ticket, wait)?;
        target.set_metadata_index(0);
        let Some(control) = target.with_ticket(seed.control()) else {
            unreachable!("both tickets name one interface");
        };
        let interface = &mut **session;
        let leaving = interface.leaving.clone();
        let area = interface
            .allocate(CREDIT_PLACE_BYTES)
            .map_err(OpenError::Host)?;
        let queue = interface.open_queue(CREDIT_ENTRIES)?;
        let slot = match interface.open_slot(NewSlot::new(&area).queue(&queue).entries(1)) {
            Ok(slot) => slot,
            Err(error) => {
                interface.close_queue(queue);
                return Err(error.into());
            }
        };
        let credit_key_ticket =
            slot.fast_ticket(0, CREDIT_PLACE_BYTES)
                .map_err(|_| ConnectError::Seed {
                    what: "its credit slot has no place",
                })?;
        let mut sender = Self {
            target,
            control,
            piece_bytes: seed.piece_bytes as usize,
            pack_bytes: seed.piece_bytes as usize,
            limit_bytes: match seed.limit_bytes {
                LIMIT_BYTES_MAX => u64::MAX,
                limit_bytes => limit_bytes,
            },
            account: Account::new(seed.pieces),
            slot,
            queue,
            credit_key_ticket,
            pack: Vec::new(),
            staged: None,
            cut: None,
            record_at: 0,
            is_over: false,
            closing: None,
            leaving: Some(leaving),
            small_bytes: small_bytes(seed.piece_bytes as usize),
            at_once: 0,
        };
        let hello = sender.credit_key_ticket.to_bytes();
        match sender.send_control(session, HELLO, &hello, wait) {
            Ok(_) => {
                sender.note_way();
                Ok(sender)
            }
            Err(error) => {
                // Nobody knows of it.
                sender.leave(None);
                session.core.reap();
                Err(error.into())
            }
        }
    }

    /// Where it presented itself.
    pub(crate) fn control(&self) -> &Target {
        &self.control
    }

    /// The common case: a small record, and a receiver that keeps up. Whether it was sent.
    #[inline(always)]
    pub(crate) fn send_short(&mut self, way: &mut impl ShortWay, data: &[u8]) -> bool {
        if data.len() > self.small_bytes
            || self.account.next >= self.at_once
            || !way.is_known_empty(&self.queue)
        {
            return false;
        }
        let metadata = piece_word(Kind::Whole, data.len() as u32).to_le_bytes();
        let message = Message::new(data)
            .at(self.next_offset())
            .metadata(&metadata);
        let is_sent = way.send(&self.target, &message);
        if is_sent {
            self.filled();
        }
        is_sent
    }

    /// Sends a record in any case.
    #[inline(never)]
    pub(crate) fn send<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        data: &[u8],
        wait: Wait,
    ) -> Result<(), SendError> {
        let result = self.send_any(session, data, wait);
        self.note_way();
        result
    }

    fn send_any<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        data: &[u8],
        wait: Wait,
    ) -> Result<(), SendError> {
        let is_small = data.len() <= self.small_bytes;
        if is_small && self.at_once > 0 {
            // Nothing is lacking but credit, or there is news.
            self.absorb_some(session);
            if self.may_go_at_once() {
                return self.send_piece(session, Kind::Whole, data.len() as u32, data, wait);
            }
        }
        self.check(session)?;
        let mut waiting = Waiting::new(wait);
        if is_small {
            if self.may_go_at_once() {
                return self.send_piece(session, Kind::Whole, data.len() as u32, data, wait);
            }
            return self.pack(session, data, &mut waiting);
        }
        self.send_pack(session, &mut waiting)?;
        self.send_whole(session, data, &mut waiting)
    }

    /// Sends what was held back.
    pub(crate) fn flush<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        wait: Wait,
    ) -> Result<(), SendError> {
        let result = self.flush_all(session, &mut Waiting::new(wait));
        self.note_way();
        result
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn fence<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        wait: Wait,
    ) -> Result<(), FenceError> {
        let mut waiting = Waiting::new(wait);
        let flushed = self.flush_all(session, &mut waiting);
        self.note_way();
        flushed.map_err(fence_error)?;
        let left = session.left(&mut waiting);
        session.fence_to(&self.target, left)
    }

    fn flush_all<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        waiting: &mut Waiting,
    ) -> Result<(), SendError> {
        self.check(session)?;
        self.send_pack(session, waiting)?;
        self.finish_staged(session, waiting)
    }

    /// The receiver's end of the connection.
    pub(crate) fn receiver(&self) -> hamlyn_host::Destination {
        self.target.ticket().destination
    }

    /// Pieces that could be filled now.
    pub(crate) fn pieces_free(&self) -> u64 {
        self.account.free()
    }

    /// The interest of a task that could not go on.
    pub(crate) fn interest(&self) -> Interest {
        // Once the receiver was asked for memory, nothing goes before it answers. Without a
        // question the link has no room.
        let awaits_answer = self.account.is_held() && !self.is_staging() && self.closing.is_none();
        match awaits_answer {
            true => {
                let receiver = Answerer::from(&self.control);
                Interest::Messages(self.queue.reader.unread(), Some(receiver))
            }
            false => Interest::Anything,
        }
    }

    fn would_block(&self) -> SendError {
        SendError::WouldBlock {
            peer: self.target.ticket().destination,
        }
    }

    /// Whether a small record need not wait for anything.
    fn may_go_at_once(&self) -> bool {
        self.account.is_ahead_little() && self.is_free() && !self.queue.reader.is_pending()
    }

    /// Whether nothing but credit may be in the way of a small record.
    fn is_free(&self) -> bool {
        self.pack.is_empty()
            && !self.is_staging()
            && !self.account.is_held()
            && !self.account.closed
            && !self.is_over
    }

    /// Whether something is copied that must go before the next record.
    fn is_staging(&self) -> bool {
        self.staged.is_some() || self.cut.is_some()
    }

    /// Sets how far small records may go at once; to be called when anything changed but the next
    /// piece.
    fn note_way(&mut self) {
        self.at_once = match self.is_free() {
            true => self.account.released + self.account.pieces.div_ceil(2),
            false => 0,
        };
    }

    /// Takes in what the receiver reported, and refuses to go on if the stream is over.
    fn check<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), SendError> {
        self.drop_staged(session);
        self.absorb(session);
        if self.account.closed {
            return Err(SendError::ClosedByReceiver);
        }
        if self.is_over {
            return Err(SendError::Finished);
        }
        if session.link_end(self.target.link()).is_some() {
            return Err(session.lost(&self.target).into());
        }
        self.push_staged(session)
    }

    fn send_whole<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        data: &[u8],
        waiting: &mut Waiting,
    ) -> Result<(), SendError> {
        let limit_bytes = self.limit_bytes.min(u64::from(u32::MAX));
        let length_bytes = data.len() as u64;
        if length_bytes > limit_bytes {
            return Err(SendError::RecordTooLarge {
                length_bytes,
                limit_bytes,
            });
        }
        let length_bytes = length_bytes as u32;
        self.await_pieces(session, data.len(), waiting)?;
        let left = session.left(waiting);
        if data.len() <= self.piece_bytes {
            return self.send_piece(session, Kind::Whole, length_bytes, data, left);
        }
        // The rest of a record in several pieces must not find that there is no room for it.
        if left == Wait::Poll {
            self.stage(Kind::Whole, data);
            return self.push_staged(session);
        }
        let record_at = self.account.next;
        for (index, part) in data.chunks(self.piece_bytes).enumerate() {
            let left = session.left(waiting);
            let sent = match index {
                0 => self.send_piece(session, Kind::First, length_bytes, part, left),
                _ => self.send_piece(session, Kind::Next, part.len() as u32, part, left),
            };
            self.record_at = record_at;
            match sent {
                Err(SendError::WouldBlock { .. }) if index > 0 => {
                    // What the receiver has of it is not in vain: the rest goes later.
                    self.stage(Kind::Next, &data[index * self.piece_bytes..]);
                    return self.push_staged(session);
                }
                Err(error) => {
                    self.is_over |= index > 0;
                    return Err(error);
                }
                Ok(()) => {}
            }
            let rest = &data[data.len().min((index + 1) * self.piece_bytes)..];
            if self.cut.is_some() && !rest.is_empty() {
                // One piece is cut at a time.
                self.stage(Kind::Next, rest);
                return self.push_staged(session);
            }
        }
        Ok(())
    }

    /// Fills the next piece. What takes several packets never goes at once, so it is copied if its
    /// sender would not wait; and so is the rest of it, if it was cut.
    fn send_piece<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        kind: Kind,
        length_bytes: u32,
        data: &[u8],
        wait: Wait,
    ) -> Result<(), SendError> {
        let metadata = piece_word(kind, length_bytes).to_le_bytes();
        let message = Message::new(data)
            .at(self.next_offset())
            .metadata(&metadata);
        let mut sending = Sending::default();
        let terminus = session.terminus();
        let sent = match session
            .send_short(terminus, &self.target, &message)
            .or_else(|| session.send_at_once(terminus, &self.target, &message))
        {
            Some(handle) => Some(handle),
            None => {
                let sent =
                    session.send_within(terminus, &self.target, &message, &mut sending, wait);
                // The receiver has a part of the piece, whose rest would not follow.
                self.is_over |= sent.is_err() && sending.sent_bytes().is_some();
                sent?
            }
        };
        if sent.is_some() {
            self.filled();
        } else if sending.sent_bytes().is_some() {
            self.keep_cut(sending, metadata, data);
        } else if wait == Wait::Poll && data.len() > DIRECT_BYTES_MAX && !self.is_staging() {
            self.stage(kind, data);
            return self.push_staged(session);
        } else {
            return Err(self.would_block());
        }
        Ok(())
    }

    /// The next piece was filled.
    #[inline]
    fn filled(&mut self) {
        self.account.fill();
        self.target.change_entry(self.account.next_index as u16);
    }

    /// Where the next piece begins.
    #[inline]
    fn next_offset(&self) -> u64 {
        u64::from(self.account.next_index) * self.piece_bytes as u64
    }

    fn send_control<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        which: u16,
        metadata: &[u8],
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        let mut target = self.control;
        target.set_metadata_index(which);
        let message = Message::new(&[]).metadata(metadata);
        session.send(&target, &message, wait)
    }

    /// Adds a small record to those that wait, and sends them if it is time.
    fn pack<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        data: &[u8],
        waiting: &mut Waiting,
    ) -> Result<(), SendError> {
        if self.pack.len() + packed_bytes(data.len()) > self.pack_bytes {
            self.send_pack(session, waiting)?;
        }
        let length = data.len() as u64;
        self.pack.extend_from_slice(&length.to_le_bytes());
        self.pack.extend_from_slice(data);
        self.pack.resize(self.pack.len().next_multiple_of(8), 0);
        if self.account.is_ahead_little() && !self.is_staging() {
            // The record is accepted; if the pack cannot go now, it goes later.
            return self
                .send_pack(session, &mut Waiting::new(Wait::Poll))
                .or_else(no_room);
        }
        Ok(())
    }

    fn send_pack<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        waiting: &mut Waiting,
    ) -> Result<(), SendError> {
        if self.pack.is_empty() {
            return Ok(());
        }
        self.await_pieces(session, 1, waiting)?;
        let left = session.left(waiting);
        let pack = std::mem::take(&mut self.pack);
        let sent = self.send_piece(session, Kind::Packed, pack.len() as u32, &pack, left);
        self.pack = pack;
        sent?;
        self.pack.clear();
        Ok(())
    }
}

/// The longest record of which several may share a piece of that size.
fn small_bytes(piece_bytes: usize) -> usize {
    // What is packed is as long as its bytes rounded up, and the header. There is always room for
    // none.
    let most = (piece_bytes / PACK_FRACTION).saturating_sub(packed_bytes(0));
    most - most % 8
}

/// What a flush that failed means for the fence that it was for.
pub(crate) fn fence_error(error: SendError) -> FenceError {
    match error {
        SendError::WouldBlock { peer } => FenceError::TimedOut { peer },
        SendError::PeerLost(lost) => lost.into(),
        error => error.into(),
    }
}

/// No room now is no failure of what can be done later.
fn no_room(error: SendError) -> Result<(), SendError> {
    match error {
        SendError::WouldBlock { .. } => Ok(()),
        other => Err(other),
    }
}
