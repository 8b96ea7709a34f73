//! Buffers for messages of one peer: each a piece of memory with a one-shot entry, so that several
//! may be on their way and none lies over another; and two entries more, for words without data: a
//! greeting, and a good-bye.

use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::metadata::MetadataEntry;
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::Host;
use hamlyn_ring::area::HandoverReader;

use super::wire::Word;
use crate::error::{NotSent, OpenError, SendError};

use crate::arrival::ClassId;
use crate::message::{Message, Target};
use crate::one_shot::OneShotSlot;
use crate::remains::LastWord;
use crate::session::Session;
use crate::slot::NewSlot;
use crate::ticket::{TICKET_BYTES, Ticket};
use crate::wait::Wait;

/// Entries for words.
pub(crate) const WORDS: usize = 2;
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
pub(crate) struct Buffers {
    opened: OneShotSlot,
    reader: HandoverReader,
    count: u16,
    length_bytes: u32,
}

impl Buffers {
    /// So many buffers of that length, none of which accepts anything yet, and the entries for
    /// words, which accept one each.
    pub(crate) fn open<H: Host>(
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

    pub(crate) fn count(&self) -> u16 {
        self.count
    }

    pub(crate) fn name(&self) -> SlotName {
        self.opened.slot.name()
    }

    /// The ticket of the first buffer; the others lie behind it.
    pub(crate) fn ticket(&self) -> Ticket {
        self.opened.slot.whole(0, self.opened.key)
    }

    /// Lets one message into a buffer.
    pub(crate) fn arm(&mut self, index: u16) {
        if let Some(entry) = self.opened.metadata.entry(index) {
            self.reader.open_one(u32::from(index));
            entry.arm();
        }
    }

    /// What the message in a buffer says of itself, if that is what landed.
    pub(crate) fn landed(&self, index: u16) -> Option<Word> {
        let entry = self.opened.metadata.entry(index)?;
        if entry.metadata_length_bytes() != 8 {
            return None;
        }
        let word = Word::from_bits(entry.metadata_word());
        let offset = offset_of(index, self.length_bytes);
        let is_right = word.length_bytes <= self.length_bytes
            && entry.has_landed(self.opened.slot.key, offset, word.length_bytes);
        is_right.then_some(word)
    }

    /// The ticket that the greeting brought, if it did.
    pub(crate) fn greeting(&self) -> Option<Ticket> {
        let mut words = [0; USER_METADATA_BYTES];
        let length = self.opened.metadata.entry(self.count)?.metadata(&mut words);
        Ticket::of_slot(words[..length].get(..TICKET_BYTES)?).ok()
    }

    /// The word of the good-bye.
    pub(crate) fn farewell(&self) -> u64 {
        let entry = self.opened.metadata.entry(self.count + 1);
        entry.map_or(0, MetadataEntry::metadata_word)
    }

    /// The bytes in a buffer. They begin at a multiple of 64, also if there are none.
    pub(crate) fn view(&self, index: u16, length_bytes: u32) -> Option<&[u8]> {
        let offset = offset_of(index, self.length_bytes);
        match length_bytes {
            0 => self.reader.view(offset, 1).map(|bytes| &bytes[..0]),
            bytes => self.reader.view(offset, bytes as usize),
        }
    }
}

/// The sending side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    target: Target,
    count: u16,
    length_bytes: u32,
}

impl Remote {
    pub(crate) fn new(target: Target, count: u16, length_bytes: u32) -> Self {
        Self {
            target,
            count,
            length_bytes,
        }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    fn at(&self, index: u16) -> Target {
        let mut target = self.target;
        target.set_metadata_index(index);
        target
    }

    /// Where a message to a buffer goes, and its metadata.
    fn place(&self, index: u16, word: Word) -> (Target, u64, [u8; 8]) {
        let offset = offset_of(index, self.length_bytes);
        (self.at(index), offset, word.to_bits().to_le_bytes())
    }

    /// Sends to a buffer without waiting: what cannot go at once is copied, and goes as the link
    /// has room. [`SendError::WouldBlock`] only if the work queue is full.
    pub(crate) fn post<H: Host>(
        &self,
        session: &mut Session<'_, H>,
        index: u16,
        word: Word,
        data: &[u8],
    ) -> Result<SendHandle, SendError> {
        let (to, offset, metadata) = self.place(index, word);
        let message = Message::new(data).at(offset).metadata(&metadata);
        let terminus = session.core.terminus();
        session.send_copied(terminus, &to, &message)
    }

    /// The same of bytes that become the interface's.
    pub(crate) fn give<H: Host>(
        &self,
        session: &mut Session<'_, H>,
        index: u16,
        word: Word,
        data: Vec<u8>,
    ) -> Result<SendHandle, NotSent> {
        let (to, offset, metadata) = self.place(index, word);
        let message = Message::new(&[]).at(offset).metadata(&metadata);
        let terminus = session.core.terminus();
        session.try_send_owned(terminus, &to, &message, data)
    }

    /// Greets, with words without data.
    pub(crate) fn greet<H: Host>(
        &self,
        session: &mut Session<'_, H>,
        words: &[u8],
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        let message = Message::new(&[]).metadata(words);
        session.send(&self.greeting_target(), &message, wait)
    }

    /// Where a greeting goes.
    pub(crate) fn greeting_target(&self) -> Target {
        self.at(self.count)
    }

    /// A good-bye that says how many messages to buffers there were: it may overtake them.
    pub(crate) fn farewell(&self, sent: u64) -> LastWord {
        LastWord::new(self.at(self.count + 1), sent.to_le_bytes().to_vec())
    }

    /// The message to a buffer that is still to be sent when its sender is gone.
    pub(crate) fn owed(&self, index: u16, word: Word, data: Vec<u8>) -> LastWord {
        let (to, offset, metadata) = self.place(index, word);
        LastWord::new(to, metadata.to_vec()).with_data(offset, data)
    }
}
