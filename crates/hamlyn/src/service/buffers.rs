//! Buffers for messages of one peer: each a piece of memory with a one-shot entry, so that several
//! may be on their way and none lies over another; and two entries more, for words without data: a
//! greeting, and a good-bye.

use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::Host;
use hamlyn_ring::area::HandoverReader;

use super::wire::Word;
use crate::error::{OpenError, SendError};

use crate::arrival::ClassId;
use crate::message::{Message, Target};
use crate::one_shot::OneShotSlot;
use crate::session::Session;
use crate::slot::NewSlot;
use crate::ticket::Ticket;
use crate::wait::Wait;

/// Entries for words.
pub(super) const WORDS: usize = 2;
/// Bytes of the smallest piece.
const PIECE_BYTES_MIN: u32 = 64;

/// Where the piece of a buffer begins.
fn offset_of(index: u16, length_bytes: u32) -> u64 {
    u64::from(index) * u64::from(piece_bytes(length_bytes))
}

fn piece_bytes(length_bytes: u32) -> u32 {
    length_bytes.next_power_of_two().max(PIECE_BYTES_MIN)
}

/// The receiving side.
#[derive(Debug)]
pub(super) struct Buffers {
    opened: OneShotSlot,
    reader: HandoverReader,
    count: u16,
    length_bytes: u32,
}

impl Buffers {
    /// So many buffers of that length, none of which accepts anything yet, and the entries for
    /// words, which accept one each.
    pub(super) fn open<H: Host>(
        session: &mut Session<'_, H>,
        class: ClassId,
        count: u16,
        length_bytes: u32,
    ) -> Result<Self, OpenError> {
        let piece_bytes = piece_bytes(length_bytes);
        let (area, reader) = session.allocate_handover(u32::from(count), piece_bytes)?;
        let new = NewSlot::over(area).range(0..u64::from(count) * u64::from(piece_bytes));
        let opened = OneShotSlot::open(session, class, new, usize::from(count) + WORDS)?;
        for index in 0..count {
            let low = offset_of(index, length_bytes);
            if let Some(entry) = opened.metadata.entry(index) {
                opened.permit(entry, low..low + u64::from(length_bytes));
            }
        }
        // Words have no data, and lie nowhere.
        for index in count..count + WORDS as u16 {
            if let Some(entry) = opened.metadata.entry(index) {
                opened.permit(entry, 0..0);
                entry.arm();
            }
        }
        Ok(Self {
            opened,
            reader,
            count,
            length_bytes,
        })
    }

    pub(super) fn count(&self) -> u16 {
        self.count
    }

    pub(super) fn name(&self) -> SlotName {
        self.opened.slot.name()
    }

    /// The ticket of the first buffer; the others lie behind it.
    pub(super) fn ticket(&self) -> Ticket {
        self.opened.slot.whole(0, self.opened.key)
    }

    /// Lets one message into a buffer.
    pub(super) fn arm(&mut self, index: u16) {
        if let Some(entry) = self.opened.metadata.entry(index) {
            self.reader.open_one(u32::from(index));
            entry.arm();
        }
    }

    /// What the message in a buffer says of itself, if that is what landed.
    pub(super) fn landed(&self, index: u16) -> Option<Word> {
        let entry = self.opened.metadata.entry(index)?;
        if entry.metadata_length_bytes() != 8 {
            return None;
        }
        let word = Word::from_bits(entry.metadata_word())?;
        let offset = offset_of(index, self.length_bytes);
        let is_right = word.length_bytes <= self.length_bytes
            && entry.has_landed(self.opened.slot.key, offset, word.length_bytes);
        is_right.then_some(word)
    }

    /// The words of the greeting.
    pub(super) fn greeting(&self, into: &mut [u8; USER_METADATA_BYTES]) -> usize {
        let entry = self.opened.metadata.entry(self.count);
        entry.map_or(0, |entry| entry.metadata(into))
    }

    /// The bytes in a buffer. They begin at a multiple of 64, also if there are none.
    pub(super) fn view(&self, index: u16, length_bytes: u32) -> Option<&[u8]> {
        let offset = offset_of(index, self.length_bytes);
        match length_bytes {
            0 => self.reader.view(offset, 1).map(|bytes| &bytes[..0]),
            bytes => self.reader.view(offset, bytes as usize),
        }
    }
}

/// The sending side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote {
    target: Target,
    count: u16,
    length_bytes: u32,
}

impl Remote {
    pub(super) fn new(target: Target, count: u16, length_bytes: u32) -> Self {
        Self {
            target,
            count,
            length_bytes,
        }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    fn at(&self, index: u16) -> Target {
        let mut target = self.target;
        target.set_metadata_index(index);
        target
    }

    /// Sends to a buffer without waiting: what cannot go at once is copied, and goes as the link
    /// has room. [`SendError::WouldBlock`] only if the work queue is full.
    pub(super) fn post<H: Host>(
        &self,
        session: &mut Session<'_, H>,
        index: u16,
        word: Word,
        data: &[u8],
    ) -> Result<SendHandle, SendError> {
        let metadata = word.to_bits().to_le_bytes();
        let (to, offset) = (self.at(index), offset_of(index, self.length_bytes));
        let message = Message::new(data).at(offset).metadata(&metadata);
        let terminus = session.core.terminus();
        session.send_copied(terminus, &to, &message)
    }

    /// Greets, with words without data.
    pub(super) fn greet<H: Host>(
        &self,
        session: &mut Session<'_, H>,
        words: &[u8],
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        let message = Message::new(&[]).metadata(words);
        session.send(&self.greeting_target(), &message, wait)
    }

    /// Where a greeting goes.
    pub(super) fn greeting_target(&self) -> Target {
        self.at(self.count)
    }

    /// Where a good-bye goes.
    pub(super) fn farewell_target(&self) -> Target {
        self.at(self.count + 1)
    }
}
