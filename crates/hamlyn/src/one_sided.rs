//! One-sided operations (decision 0037; `Split-C 2`): a program reads, puts and changes memory of a
//! slot whose owner grants it, and the owner's program does nothing.
//!
//! An operation is carried out by whichever thread takes the packets of the target: with
//! [`Strategy::Proc`](crate::Strategy::Proc) its program, in its calls; with the other strategies
//! its network processor, while the program computes. In a [region](crate::region) that is
//! attached, the initiator carries it out by itself, and it is complete when it has begun.
//!
//! An [`Initiator`] is a program's access to one ticket. Its operations complete in any order, also
//! those to the same place: wait for one before another that depends on it. Each is carried out
//! once, also between hosts. What the owner does not grant
//! ([`NewSlot::rights`](crate::NewSlot::rights)) is refused, and so is what does not lie in the
//! slot.
//!
//! ```
//! use hamlyn::engine::slot::Rights;
//! use hamlyn::one_sided::{Change, InitiatorOptions};
//! use hamlyn::{NewSlot, Wait};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let manager = hamlyn::open_unnamed()?;
//! let mut session = manager.session();
//! let area = session.allocate(4096)?;
//! let slot = session.open_slot(NewSlot::new(&area).rights(Rights::ALL))?;
//!
//! // The ticket would travel to another program; here the interface asks itself.
//! let target = session.target(&slot.fast_ticket(0, 4096)?, Wait::millis(1000))?;
//! let mut counter = session.open_initiator(target, InitiatorOptions::default())?;
//! assert_eq!(session.change(&mut counter, 8, Change::Add, 5, Wait::Forever)?, 0);
//! assert_eq!(session.read_word(&mut counter, 8, Wait::Forever)?, 5);
//! # Ok(())
//! # }
//! ```

use std::sync::{Arc, OnceLock};

use hamlyn_engine::limits::PACKET_PAYLOAD_MAX;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::operation::{ANSWER_BYTES_MAX, AnswerWord, RESPONSES_PER_LINK, ReturnPlace};
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::refusal::Refusal;
use hamlyn_ring::area::Area;
use hamlyn_ring::shared::DirectWindow;

mod completion;
mod error;

pub use completion::CompletionCounter;
pub use error::{OPERATIONS_MAX, OperationError};
pub use hamlyn_engine::operation::{Atomic, Change, Width};

use completion::Completing;
pub(crate) use completion::Tracked;

use crate::message::Target;
use crate::queue::Queue;
use crate::remains::{Leaving, Remains};
use crate::slot::Slot;
use crate::ticket::Ticket;

/// Requests longer than this are made in several packets, so that long ones and short ones share a
/// link.
pub(crate) const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// Where in an initiator's memory landing places begin; before them are the places of values.
pub(crate) const LANDING_START: u64 = 8 * OPERATIONS_MAX as u64;
/// Bytes that a blocking read asks for at a time. They land behind the memory for landing, in a
/// place of their own.
pub(crate) const BLOCKING_READ_BYTES: usize = 64 * 1024;
/// Answers that have come and were not looked at: those of all requests that may be under way, each
/// in several packets.
pub(crate) const ANSWERS_MAX: usize = 16 * RESPONSES_PER_LINK;

const _: () =
    assert!(REQUEST_BYTES_MAX <= PACKET_PAYLOAD_MAX && REQUEST_BYTES_MAX <= ANSWER_BYTES_MAX);
// The low 16 bits of a token name an operation.
const _: () = assert!(OPERATIONS_MAX <= 1 << 16);

/// What an initiator is opened with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InitiatorOptions {
    /// Bytes of memory into which [`Session::begin_read`](crate::Session::begin_read) reads: enough
    /// for all reads that are outstanding at a time.
    pub landing_bytes: u64,
}

impl Default for InitiatorOptions {
    /// 64 KiB.
    fn default() -> Self {
        Self {
            landing_bytes: 64 * 1024,
        }
    }
}

/// Pieces of memory at equal distances, of one length each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strided {
    /// Where the first begins, in the ticket's place.
    pub offset: u64,
    /// How far the beginning of each is from that of the one before.
    pub stride_bytes: u64,
    /// How long each is.
    pub piece_bytes: u64,
    /// How many there are.
    pub pieces: u64,
}

/// An operation that was begun. It stays outstanding until
/// [`Session::finish`](crate::Session::finish) or
/// [`Session::finish_all`](crate::Session::finish_all) has told of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[must_use = "an operation that nobody finishes keeps its place"]
pub struct Operation {
    pub(crate) token: u32,
}

impl Operation {
    /// As a number, for programs that keep it elsewhere.
    pub const fn to_bits(self) -> u32 {
        self.token
    }

    /// What [`Operation::to_bits`] gave. Any other number is an operation that is not outstanding,
    /// or another one.
    pub const fn from_bits(token: u32) -> Self {
        Self { token }
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.token as u16)
    }
}

/// An operation of an initiator.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// Which use of the place.
    generation: u16,
    is_used: bool,
    /// Nobody fetches its result.
    is_given_up: bool,
    /// Requests were all sent.
    is_all_sent: bool,
    /// Bytes for which no answer has come.
    left_bytes: u64,
    /// Those of them that no request has asked for yet: no answer may count them.
    unasked_bytes: u64,
    /// Requests of which the last packet of the answer has not come.
    requests: u32,
    refused: Option<u8>,
}

impl Pending {
    fn is_done(&self) -> bool {
        self.is_all_sent && self.left_bytes == 0 && self.requests == 0
    }
}

/// A program's access to the memory that a ticket names, opened by
/// [`Interface::open_initiator`](crate::Interface::open_initiator). When it is dropped, answers
/// that are under way reach nothing.
#[derive(Debug)]
pub struct Initiator {
    pub(crate) target: Target,
    /// The slot to which answers come.
    pub(crate) slot: SlotName,
    pub(crate) area: Area,
    /// The ticket's place, once it is attached.
    pub(crate) direct: Arc<OnceLock<DirectWindow>>,
    landing_bytes: u64,
    /// Something was given up that was asked for, and may still be carried out.
    pub(crate) has_given_up: bool,
    leaving: Leaving,
}

impl Drop for Initiator {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            initiator: Some(self.slot),
            ..Remains::default()
        });
    }
}

impl Initiator {
    pub(crate) fn new(
        target: Target,
        operations: &Operations,
        area: Area,
        landing_bytes: u64,
        leaving: Leaving,
    ) -> Self {
        Self {
            target,
            slot: operations.slot.name,
            area,
            direct: Arc::clone(&operations.direct),
            landing_bytes,
            has_given_up: false,
            leaving,
        }
    }

    /// How much memory one with so many bytes for landing needs.
    pub(crate) const fn area_bytes(landing_bytes: u64) -> u64 {
        LANDING_START + landing_bytes + BLOCKING_READ_BYTES as u64
    }

    /// Where in the slot blocking reads land.
    pub(crate) fn blocking_read_place(&self) -> u64 {
        LANDING_START + self.landing_bytes
    }

    /// A window on the ticket's place, if it is in an attached region that lasts.
    pub fn window(&self) -> Option<&DirectWindow> {
        self.direct.get().filter(|window| window.lasts())
    }

    /// Whom it asks.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Copies out of the memory into which reads land.
    pub fn landed(&self, offset: u64, into: &mut [u8]) -> Result<(), OperationError> {
        let length_bytes = into.len() as u64;
        let at = self.landing(offset, length_bytes)?;
        let read = self.area.read_at(at, into);
        read.map_err(|_| self.outside(offset, length_bytes))
    }

    /// Where in the slot a landing place is.
    pub(crate) fn landing(&self, offset: u64, length_bytes: u64) -> Result<u64, OperationError> {
        let end = offset.checked_add(length_bytes);
        match end {
            Some(end) if end <= self.landing_bytes => Ok(LANDING_START + offset),
            _ => Err(self.outside(offset, length_bytes)),
        }
    }

    fn outside(&self, offset: u64, length_bytes: u64) -> OperationError {
        OperationError::OutsideLanding {
            offset,
            length_bytes,
            landing_bytes: self.landing_bytes,
        }
    }
}

/// What the interface keeps for an initiator: its slot, the queue of answers, and the operations
/// that are outstanding.
#[derive(Debug)]
pub(crate) struct Operations {
    pub(crate) slot: Slot,
    pub(crate) link: LinkId,
    /// The initiator's place, and a window on it.
    pub(crate) ticket: Ticket,
    pub(crate) direct: Arc<OnceLock<DirectWindow>>,
    pub(crate) queue: Queue,
    /// The memory to which words return.
    area: Area,
    operations: Vec<Pending>,
    free: Vec<u16>,
    is_flooded: bool,
    /// Its initiator is gone: it stays until all that was asked is answered, so that nothing is
    /// asked too often.
    pub(crate) is_left: bool,
    completing: Completing,
}

impl Operations {
    pub(crate) fn new(slot: Slot, target: &Target, queue: Queue, area: Area) -> Self {
        Self {
            slot,
            link: target.link,
            ticket: target.ticket,
            direct: Arc::default(),
            queue,
            area,
            operations: vec![Pending::default(); OPERATIONS_MAX],
            free: (0..OPERATIONS_MAX as u16).rev().collect(),
            is_flooded: false,
            is_left: false,
            completing: Completing::default(),
        }
    }

    /// How many requests have not been answered.
    pub(crate) fn requests(&self) -> u32 {
        self.operations.iter().map(|pending| pending.requests).sum()
    }

    /// Whether answers are under way to operations that nobody waits for.
    pub(crate) fn has_given_up(&self) -> bool {
        self.operations
            .iter()
            .any(|pending| pending.is_used && pending.is_given_up)
    }

    /// How many are outstanding.
    pub(crate) fn outstanding(&self) -> usize {
        let is_it = |pending: &&Pending| pending.is_used && !pending.is_given_up;
        self.operations.iter().filter(is_it).count()
    }

    /// A new operation, of so many bytes.
    pub(crate) fn begin(&mut self, length_bytes: u64) -> Result<Operation, OperationError> {
        if self.is_flooded {
            return Err(OperationError::Flooded);
        }
        let index = self.free.pop().ok_or(OperationError::TooMany)?;
        let pending = &mut self.operations[usize::from(index)];
        let generation = pending.generation.wrapping_add(1);
        *pending = Pending {
            generation,
            is_used: true,
            left_bytes: length_bytes,
            unasked_bytes: length_bytes,
            ..Pending::default()
        };
        Ok(Operation {
            token: u32::from(generation) << 16 | u32::from(index),
        })
    }

    /// A request of it was sent, for so many of its bytes.
    pub(crate) fn asked(&mut self, operation: Operation, bytes: u64) {
        if let Some(pending) = self.pending(operation) {
            debug_assert!(bytes <= pending.unasked_bytes, "no more is asked for");
            pending.requests += 1;
            pending.unasked_bytes -= bytes;
        }
    }

    /// Its only request was sent.
    #[inline]
    pub(crate) fn asked_at_once(&mut self, operation: Operation) {
        if let Some(pending) = self.pending(operation) {
            (pending.requests, pending.is_all_sent) = (1, true);
            pending.unasked_bytes = 0;
        }
    }

    /// Whether one request of it, the last, has no answer yet, none was refused, and its result
    /// will be fetched.
    #[inline]
    pub(crate) fn is_asked_at_once(&mut self, operation: Operation) -> bool {
        self.pending(operation).is_some_and(|pending| {
            pending.requests == 1
                && pending.is_all_sent
                && !pending.is_given_up
                && pending.refused.is_none()
        })
    }

    /// After [`Operations::is_asked_at_once`]: if this answer, which has come, answers for all of
    /// it, it was carried out, and its place is free. Otherwise nothing was done, and the answer is
    /// still to be taken in.
    #[inline]
    pub(crate) fn finish_at_once(&mut self, operation: Operation, word: u64) -> bool {
        let Some(pending) = self.pending(operation) else {
            return false;
        };
        let whole = AnswerWord {
            token: operation.token,
            bytes: pending.left_bytes as u32,
            is_last: true,
            refused: None,
        };
        let is_whole = word == whole.to_bits();
        if is_whole {
            *pending = Pending {
                generation: pending.generation,
                ..Pending::default()
            };
            self.free.push(operation.index() as u16);
        }
        is_whole
    }

    /// It was carried out in memory, or refused.
    pub(crate) fn done_at_once(&mut self, operation: Operation, refused: Option<Refusal>) {
        if let Some(pending) = self.pending(operation) {
            (pending.left_bytes, pending.unasked_bytes) = (0, 0);
            pending.is_all_sent = true;
            pending.refused = refused.map(|refused| refused as u8);
        }
    }

    /// All its requests were sent.
    pub(crate) fn all_asked(&mut self, operation: Operation) {
        if let Some(pending) = self.pending(operation) {
            pending.is_all_sent = true;
        }
    }

    /// Nothing more of it is asked for, and nobody fetches its result.
    pub(crate) fn give_up(&mut self, operation: Operation) {
        if let Some(pending) = self.pending(operation) {
            pending.left_bytes -= std::mem::take(&mut pending.unasked_bytes);
            pending.is_all_sent = true;
            pending.is_given_up = true;
            self.reap(operation);
        }
    }

    fn pending(&mut self, operation: Operation) -> Option<&mut Pending> {
        let generation = (operation.token >> 16) as u16;
        self.operations
            .get_mut(operation.index())
            .filter(|pending| pending.is_used && pending.generation == generation)
    }

    /// Gives the place of a given-up operation back when nothing of it is under way.
    fn reap(&mut self, operation: Operation) {
        if let Some(pending) = self.pending(operation)
            && pending.is_given_up
            && pending.is_done()
        {
            pending.is_used = false;
            let end = pending
                .refused
                .map_or(Ok(()), |reason| Err(OperationError::refused(reason)));
            self.free.push(operation.index() as u16);
            let area = &self.area;
            let word = || {
                let place = ReturnPlace::value_offset(operation.token);
                area.load_u64(place).unwrap_or(0)
            };
            self.completing.ended(operation.index(), end, word);
        }
    }

    /// A queue tells of its end, and has its result.
    pub(crate) fn track(
        &mut self,
        operation: Operation,
        tracked: Tracked,
        has_word: bool,
    ) -> Result<(), OperationError> {
        let pending = self.pending(operation).filter(|it| !it.is_given_up);
        pending.ok_or(OperationError::NotOutstanding)?;
        self.completing.track(operation.index(), tracked, has_word);
        self.give_up(operation);
        Ok(())
    }

    /// Nobody fetches its result; its end is counted.
    pub(crate) fn count(
        &mut self,
        operation: Operation,
        counter: &CompletionCounter,
    ) -> Result<(), OperationError> {
        let pending = self.pending(operation).filter(|it| !it.is_given_up);
        pending.ok_or(OperationError::NotOutstanding)?;
        self.completing.count(operation.index(), counter);
        self.give_up(operation);
        Ok(())
    }

    /// Whether ends of operations are still to be told.
    #[inline]
    pub(crate) fn is_completing(&self) -> bool {
        !self.completing.is_idle()
    }

    pub(crate) fn is_flooded(&self) -> bool {
        self.is_flooded
    }

    pub(crate) fn next_ready(&mut self) -> Option<(Tracked, Result<u64, OperationError>)> {
        self.completing.next_ready()
    }

    /// No answers come any more: what is to be told of is told, as failed unless it was done
    /// before.
    pub(crate) fn all_ended(&mut self, why: &OperationError) {
        let Self {
            operations, free, ..
        } = self;
        self.completing.all_failed(why, |index| {
            if let Some(pending) = operations.get_mut(index)
                && pending.is_used
            {
                pending.is_used = false;
                free.push(index as u16);
            }
        });
    }

    /// Its initiator is gone: counters count its operations, and completion queues tell of them.
    pub(crate) fn leave(&mut self) {
        self.is_left = true;
        self.completing
            .all_failed(&OperationError::Abandoned, |_| {});
    }

    /// A packet of an answer came. Whether its request is answered as a whole.
    pub(crate) fn answered(&mut self, word: u64) -> bool {
        let word = AnswerWord::from_bits(word);
        let operation = Operation { token: word.token };
        let bytes = u64::from(word.bytes);
        let Some(pending) = self.pending(operation) else {
            self.is_flooded = true;
            return false;
        };
        let asked_bytes = pending.left_bytes - pending.unasked_bytes;
        if bytes > asked_bytes || (word.is_last && pending.requests == 0) {
            self.is_flooded = true;
            return false;
        }
        pending.left_bytes -= bytes;
        pending.requests -= u32::from(word.is_last);
        pending.refused = pending.refused.or(word.refused);
        self.reap(operation);
        word.is_last
    }

    /// Answers came that nobody asked for, or more than there is room for.
    pub(crate) fn note_flood(&mut self) {
        self.is_flooded = true;
    }

    /// Whether all of an operation was answered.
    pub(crate) fn is_done(&mut self, operation: Operation) -> bool {
        self.pending(operation)
            .is_none_or(|pending| pending.is_done())
    }

    /// The result of an operation, if it is there. Its place is free afterwards.
    pub(crate) fn fetch(&mut self, operation: Operation) -> Option<Result<(), OperationError>> {
        let is_flooded = self.is_flooded;
        let Some(pending) = self.pending(operation).filter(|it| !it.is_given_up) else {
            return Some(Err(OperationError::NotOutstanding));
        };
        if !pending.is_done() && !is_flooded {
            return None;
        }
        let reason = pending.refused;
        let is_done = pending.is_done();
        pending.is_used = false;
        self.free.push(operation.index() as u16);
        Some(match reason {
            _ if !is_done => Err(OperationError::Flooded),
            None => Ok(()),
            Some(reason) => Err(OperationError::refused(reason)),
        })
    }

    /// One that is outstanding.
    pub(crate) fn any(&self) -> Option<Operation> {
        let is_it = |(_, pending): &(usize, &Pending)| pending.is_used && !pending.is_given_up;
        let (index, pending) = self.operations.iter().enumerate().find(is_it)?;
        Some(Operation {
            token: u32::from(pending.generation) << 16 | index as u32,
        })
    }

    /// Its link is gone: nothing comes any more.
    pub(crate) fn forget(&mut self, operation: Operation) {
        if let Some(pending) = self.pending(operation) {
            pending.is_used = false;
            self.free.push(operation.index() as u16);
        }
    }
}
