//! Bulk messages and gets that are longer than a part (`V 3.1`): they go as requests that the layer
//! answers, and end with one handler.

use crate::error::Reason;
use crate::translation::Translation;
use crate::wire::{Arguments, Category, Kept};

/// Transfers that a node has under way at a time.
const TRANSFERS_MAX: usize = 64;

/// A transfer.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) translation: Translation,
    pub(crate) is_get: bool,
    pub(crate) handler: u8,
    pub(crate) arguments: Arguments,
    /// The bytes, of a bulk message.
    pub(crate) data: Vec<u8>,
    /// The place that a get reads, and the place to which the bytes go.
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) length_bytes: u64,
    /// Bytes of a part, but of the last.
    pub(crate) part_bytes: u64,
    /// Bytes of parts that were sent, and of those that were answered.
    pub(crate) sent_bytes: u64,
    done_bytes: u64,
    /// Parts of a get of which the answers had no room: where each begins, and its bytes; and all
    /// bytes that were asked for again.
    again: Vec<(u64, u64)>,
    again_bytes: u64,
    pub(crate) in_flight: u32,
    pub(crate) failed: Option<Reason>,
    /// The message that runs the handler was sent.
    pub(crate) is_last_sent: bool,
    is_over: bool,
}

impl Transfer {
    pub(crate) fn new(
        translation: Translation,
        is_get: bool,
        handler: u8,
        arguments: Arguments,
        part_bytes: u64,
    ) -> Self {
        Self {
            translation,
            is_get,
            handler,
            arguments,
            data: Vec::new(),
            from: 0,
            to: 0,
            length_bytes: 0,
            part_bytes: part_bytes.max(1),
            sent_bytes: 0,
            done_bytes: 0,
            again: Vec::new(),
            again_bytes: 0,
            in_flight: 0,
            failed: None,
            is_last_sent: false,
            is_over: false,
        }
    }

    /// The next part that is to be sent: where it begins, and its bytes.
    pub(crate) fn next_part(&self) -> Option<(u64, u64)> {
        if let Some(&again) = self.again.last() {
            return self.failed.is_none().then_some(again);
        }
        let left = self.length_bytes - self.sent_bytes;
        // A get of nothing is asked for, too: the answer says whether its place is good.
        let is_first = self.is_get && self.length_bytes == 0 && !self.is_last_sent;
        let is_due = self.failed.is_none() && (left > 0 || is_first);
        is_due.then(|| (self.sent_bytes, left.min(self.part_bytes)))
    }

    /// The next part was sent.
    pub(crate) fn part_sent(&mut self, length_bytes: u64) {
        if self.again.pop().is_none() {
            self.sent_bytes += length_bytes;
        }
    }

    /// The rest of a part of a get, whose answer had less than it was asked for, is asked for again.
    pub(crate) fn ask_again(&mut self, begin: u64, length_bytes: u64) {
        self.again.push((begin, length_bytes));
        self.again_bytes += length_bytes;
    }

    /// All parts were answered, and the handler is to run.
    pub(crate) fn is_whole(&self) -> bool {
        self.failed.is_none()
            && self.in_flight == 0
            && self.done_bytes == self.length_bytes + self.again_bytes
            && (!self.is_get || self.length_bytes > 0 || self.is_last_sent)
    }

    /// Nothing of it is under way, and it has failed or its handler was answered.
    pub(crate) fn is_over(&self) -> bool {
        self.in_flight == 0 && (self.failed.is_some() || self.is_over)
    }
}

/// The transfers of a node, by number.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    places: Vec<Option<Box<Transfer>>>,
    count: usize,
}

impl Transfers {
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.count > 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count >= TRANSFERS_MAX
    }

    pub(crate) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.places.len() as u32
    }

    /// Begins a transfer; its number.
    pub(crate) fn insert(&mut self, transfer: Transfer) -> u32 {
        self.count += 1;
        let free = self.places.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[at] = Some(Box::new(transfer));
        at as u32
    }

    pub(crate) fn get(&mut self, number: u32) -> Option<&mut Transfer> {
        self.places.get_mut(number as usize)?.as_deref_mut()
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Box<Transfer>> {
        let transfer = self.places.get_mut(number as usize)?.take()?;
        self.count -= 1;
        Some(transfer)
    }

    /// A request of a transfer was answered, or came back for that reason.
    pub(crate) fn part_ended(&mut self, number: u32, message: &Kept, failed: Option<Reason>) {
        let Some(transfer) = self.get(number) else {
            return;
        };
        transfer.in_flight = transfer.in_flight.saturating_sub(1);
        if let Some(reason) = failed {
            transfer.failed.get_or_insert(reason);
            return;
        }
        let category = message.head().map(|head| head.category);
        match (category, message.body()) {
            (Some(Category::Part), Some(body)) => {
                transfer.done_bytes += body.data.len() as u64;
            }
            (Some(Category::Get), Some(body)) => {
                transfer.done_bytes += body.place.length_bytes;
            }
            _ => transfer.is_over = true,
        }
    }

    /// The data of a part of a get could not be stored here, or were too few.
    pub(crate) fn fail(&mut self, number: u32, reason: Reason) {
        if let Some(transfer) = self.get(number) {
            transfer.failed.get_or_insert(reason);
        }
    }
}
