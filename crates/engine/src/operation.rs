//! One-sided operations: an initiator reads, puts and changes memory of a slot that grants it, and
//! the target's engine answers (decision 0037; `Split-C 2`).
//!
//! A request is a packet in fast mode whose [`Kind`] says what is asked. It is checked as every
//! packet is: slot, key, bounds, right. The answer is an ordinary [`Kind::WRITE`] in fast mode to a
//! slot that the initiator keeps for this one target, so an answer can reach no other memory and
//! needs no check of its own. Its word says which operation it answers and how it went.
//!
//! | request | data | metadata | answer |
//! |---|---|---|---|
//! | read | return key, then return offset and length, 32 bits each | none | the bytes, in as many packets as it takes |
//! | put | the bytes | return key | no data |
//! | atomic | return key, operand, and of compare-and-swap the value expected | none | the old value, at eight times the low 16 bits of the token |
//!
//! The header's word of a request holds the return slot in its upper half and the token in its
//! lower half.
//!
//! Refused: what names an entry, a width or an operation that there is not, a place that is not
//! aligned to the width, and more requests of one link than [`RESPONSES_PER_LINK`] that have no
//! answer yet. A refused request is answered, too, if it says where to.

use crate::key::Key;
use crate::packet::{Address, Flags, Header, Kind, SlotName};
use crate::refusal::Refusal;

/// Requests of one link that may be without answer at a time.
pub const RESPONSES_PER_LINK: usize = 64;
/// Bytes that the word of an answer can tell; a request asks for no more.
pub const ANSWER_BYTES_MAX: usize = (1 << 23) - 1;
/// Bytes of data of a request to read.
pub const READ_REQUEST_BYTES: u32 = 16;
/// Bytes of data of an atomic request; compare-and-swap has one word more.
pub const ATOMIC_REQUEST_BYTES: u32 = 16;
/// Words of a request's data that the engine looks at.
pub const REQUEST_WORDS: usize = 3;
/// Bytes of metadata of a put: the return key.
pub const PUT_METADATA_BYTES: u8 = 8;

// A request never asks for more than fits a packet, if its initiator follows the rules.
const _: () = assert!(crate::limits::PACKET_PAYLOAD_MAX <= ANSWER_BYTES_MAX);

impl Kind {
    /// Send back bytes of the slot.
    pub const READ: Kind = Kind(1);
    /// Deposit the data, and say that they are in their place.
    pub const PUT: Kind = Kind(2);
    /// Change a word of the slot atomically, and send back what it was: the lower five bits say
    /// how.
    const ATOMIC: u8 = 0x40;
    const ATOMIC_MASK: u8 = 0x1f;

    /// Whether an answer is asked for.
    #[inline]
    pub const fn is_request(self) -> bool {
        matches!(self, Self::READ | Self::PUT) || self.0 & !Self::ATOMIC_MASK == Self::ATOMIC
    }
}

/// What an atomic operation does with the word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Change {
    /// Adds; wraps.
    Add = 0,
    /// Bitwise and.
    And = 1,
    /// Bitwise or.
    Or = 2,
    /// Bitwise exclusive or.
    Xor = 3,
    /// Stores the operand.
    Swap = 4,
    /// Stores the operand if the word is what is expected.
    CompareSwap = 5,
    /// The lesser, of numbers with sign.
    Min = 6,
    /// The greater, of numbers with sign.
    Max = 7,
    /// Adds floating-point numbers.
    FloatAdd = 8,
}

/// How many bits a word that is changed has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Width {
    /// Four bytes.
    Bits32 = 0,
    /// Eight bytes.
    Bits64 = 1,
}

impl Width {
    /// That of a change that a packet of this kind asks for.
    #[inline]
    const fn of_kind(kind: Kind) -> Self {
        match kind.0 & 0x10 {
            0 => Self::Bits32,
            _ => Self::Bits64,
        }
    }

    /// In bytes.
    #[inline]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }
}

/// An atomic operation on a word, which is little endian.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Atomic {
    /// What it does.
    pub change: Change,
    /// On how many bits.
    pub width: Width,
    /// With what; of 32 bits, the lower half.
    pub operand: u64,
    /// What [`Change::CompareSwap`] expects.
    pub expected: u64,
}

impl Atomic {
    /// A change that expects nothing: any but [`Change::CompareSwap`].
    #[inline]
    pub const fn new(change: Change, width: Width, operand: u64) -> Self {
        Self {
            change,
            width,
            operand,
            expected: 0,
        }
    }
}

impl Change {
    /// All of them.
    pub const ALL: [Change; 9] = [
        Self::Add,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::Swap,
        Self::CompareSwap,
        Self::Min,
        Self::Max,
        Self::FloatAdd,
    ];
}

impl Atomic {
    /// The kind of a packet that asks for it.
    pub const fn kind(&self) -> Kind {
        Kind(Kind::ATOMIC | (self.width as u8) << 4 | self.change as u8)
    }

    /// What a packet of that kind with one operand asks for: nothing, if the operation needs more
    /// or there is none such.
    #[inline]
    pub(crate) fn of_kind(kind: Kind, operand: u64) -> Option<Self> {
        if kind.0 & !Kind::ATOMIC_MASK != Kind::ATOMIC {
            return None;
        }
        let &change = Change::ALL.get(usize::from(kind.0 & 0xf))?;
        let width = Width::of_kind(kind);
        (change != Change::CompareSwap).then_some(Self::new(change, width, operand))
    }

    /// How many bytes of data the request has.
    pub const fn request_bytes(&self) -> u32 {
        match self.change {
            Change::CompareSwap => ATOMIC_REQUEST_BYTES + 8,
            _ => ATOMIC_REQUEST_BYTES,
        }
    }

    /// What the word becomes.
    pub fn changed(&self, before: u64) -> u64 {
        let (operand, expected) = (self.operand, self.expected);
        match self.width {
            Width::Bits64 => match self.change {
                Change::Min => (before as i64).min(operand as i64) as u64,
                Change::Max => (before as i64).max(operand as i64) as u64,
                Change::FloatAdd => (f64::from_bits(before) + f64::from_bits(operand)).to_bits(),
                Change::CompareSwap if before != expected => before,
                _ => self.changed_bits(before),
            },
            Width::Bits32 => {
                let (before, operand) = (before as u32, operand as u32);
                u64::from(match self.change {
                    Change::Min => (before as i32).min(operand as i32) as u32,
                    Change::Max => (before as i32).max(operand as i32) as u32,
                    Change::FloatAdd => {
                        (f32::from_bits(before) + f32::from_bits(operand)).to_bits()
                    }
                    Change::CompareSwap if before != expected as u32 => before,
                    _ => self.changed_bits(u64::from(before)) as u32,
                })
            }
        }
    }

    /// The changes that look at each bit alike, and those that need no look.
    const fn changed_bits(&self, before: u64) -> u64 {
        match self.change {
            Change::Add => before.wrapping_add(self.operand),
            Change::And => before & self.operand,
            Change::Or => before | self.operand,
            Change::Xor => before ^ self.operand,
            _ => self.operand,
        }
    }
}

/// Where the answer to a request goes: to a slot of its initiator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReturnPlace {
    /// The slot.
    pub slot: SlotName,
    /// Its key.
    pub key: Key,
    /// Where in it.
    pub offset: u64,
    /// Which operation, as its initiator calls it.
    pub token: u32,
}

impl ReturnPlace {
    /// Where the value of an atomic operation lands, in the slot that its answer goes to.
    pub const fn value_offset(token: u32) -> u64 {
        (token & 0xffff) as u64 * 8
    }
}

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// To read so many bytes.
    Read(u32),
    /// To put the data that came.
    Put,
    /// To change a word.
    Atomic(Atomic),
}

impl Request {
    /// How many bytes an answer to a packet answers for in all, whether the request is carried out
    /// or not.
    pub(crate) fn answered_bytes(header: &Header, words: [u64; REQUEST_WORDS]) -> u32 {
        match header.kind {
            Kind::READ => (words[1] >> 32) as u32,
            Kind::PUT => header.length_bytes,
            kind => Width::of_kind(kind).bytes() as u32,
        }
    }

    /// What a packet asks for, and where its answer goes. `words` are the first of its data,
    /// `metadata_word` of its metadata. Nothing as a return place, if the packet does not say
    /// enough to be answered.
    pub(crate) fn decode(
        header: &Header,
        words: [u64; REQUEST_WORDS],
        metadata_word: u64,
    ) -> (Option<ReturnPlace>, Result<Self, Refusal>) {
        let (kind, length) = (header.kind, header.length_bytes);
        let token = header.word as u32;
        let place = |key, offset| ReturnPlace {
            slot: SlotName::from_bits((header.word >> 32) as u32),
            key: Key::from_bits(key),
            offset,
            token,
        };
        if kind == Kind::PUT {
            let is_whole = header.metadata_length_bytes == PUT_METADATA_BYTES;
            let back = is_whole.then(|| place(metadata_word, 0));
            return (back, back.map(|_| Self::Put).ok_or(Refusal::BadMetadata));
        }
        if length < READ_REQUEST_BYTES {
            return (None, Err(Refusal::BadRequest));
        }
        if kind == Kind::READ {
            let back = place(words[0], words[1] & u64::from(u32::MAX));
            let wanted = (words[1] >> 32) as u32;
            let is_plain = length == READ_REQUEST_BYTES
                && header.metadata_length_bytes == 0
                && wanted as usize <= ANSWER_BYTES_MAX;
            let read = Self::Read(wanted);
            return (
                Some(back),
                is_plain.then_some(read).ok_or(Refusal::BadRequest),
            );
        }
        let back = place(words[0], ReturnPlace::value_offset(token));
        let Some(&change) = Change::ALL.get(usize::from(kind.0 & 0xf)) else {
            return (Some(back), Err(Refusal::NoSuchOperation));
        };
        let atomic = Atomic {
            change,
            width: Width::of_kind(kind),
            operand: words[1],
            expected: words[2],
        };
        let is_plain = length == atomic.request_bytes() && header.metadata_length_bytes == 0;
        (
            Some(back),
            is_plain
                .then_some(Self::Atomic(atomic))
                .ok_or(Refusal::BadRequest),
        )
    }
}

/// A request whose data fit its cell: what the fast path looks at, as it came, or as it is to be
/// sent. A read, or a change of a word with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortRequest {
    /// What is asked for.
    pub kind: Kind,
    /// Of which slot.
    pub to: Address,
    /// The key.
    pub key: Key,
    /// Where in the slot.
    pub offset: u64,
    /// The return slot in the upper half, the token in the lower.
    pub word: u64,
    /// The return key; then of a read where the bytes go and how many they are, of a change the
    /// operand.
    pub data: [u64; 2],
}

impl ShortRequest {
    /// How many bytes of data it has.
    pub const BYTES: u32 = READ_REQUEST_BYTES;

    /// The same as a header.
    pub const fn header(&self) -> Header {
        Header {
            slot: self.to.slot(),
            metadata_index: self.to.metadata_index(),
            key: self.key,
            offset: self.offset,
            length_bytes: Self::BYTES,
            word: self.word,
            metadata_length_bytes: 0,
            flags: Flags::NONE,
            kind: self.kind,
        }
    }
}

const _: () = assert!(READ_REQUEST_BYTES == ATOMIC_REQUEST_BYTES);

/// The word of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnswerWord {
    /// Which operation.
    pub token: u32,
    /// How many bytes of the request this packet answers for: those that it brings, or that a put
    /// has put, or that will never come. Those of all packets of an answer are together what was
    /// asked for.
    pub bytes: u32,
    /// Whether the request has no more packets of answer under way than there are on their way now:
    /// the last was sent.
    pub is_last: bool,
    /// Why the request was refused, by the place of the reason in [`Refusal::ALL`].
    pub refused: Option<u8>,
}

impl AnswerWord {
    /// As it travels.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        let refused = match self.refused {
            Some(reason) => reason as u64 + 1,
            None => 0,
        };
        let bytes = self.bytes as u64 & ANSWER_BYTES_MAX as u64;
        self.token as u64 | bytes << 32 | (self.is_last as u64) << 55 | refused << 56
    }

    /// As it travelled.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        let refused = (bits >> 56) as u8;
        Self {
            token: bits as u32,
            bytes: (bits >> 32) as u32 & ANSWER_BYTES_MAX as u32,
            is_last: bits >> 55 & 1 != 0,
            refused: match refused {
                0 => None,
                reason => Some(reason - 1),
            },
        }
    }

    /// The reason, if this version knows it.
    pub fn refusal(self) -> Option<Refusal> {
        Refusal::ALL.get(usize::from(self.refused?)).copied()
    }
}

/// The first words of some bytes, lowest byte first; zero beyond them.
pub fn leading_words(bytes: &[u8]) -> [u64; REQUEST_WORDS] {
    let mut words = [0; REQUEST_WORDS];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(size_of::<u64>())) {
        let mut whole = [0; size_of::<u64>()];
        whole[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(whole);
    }
    words
}
