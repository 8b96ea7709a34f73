//! Messages as they travel: a word, arguments, for some a place, data, and for the first ones of a
//! translation an introduction.
//!
//! The word has the handler, the number of arguments, the category and the number of the sender's
//! endpoint. The stamp of a message travels as what a port calls its handler.

use crate::spares::Spares;

/// Most arguments of a message, of 32 bits each.
pub const ARGUMENTS_MAX: usize = 16;
/// Requests that a node may have outstanding over one link. With as many answers, a message of
/// credits and 14 packets of data they are the 63 refusals that an interface keeps for a link.
pub(crate) const RECORDS: usize = 24;
/// Bytes of the word, and of the longest message beside its data.
const WORD_BYTES: usize = 8;
pub(crate) const OVERHEAD_BYTES: usize =
    WORD_BYTES + 4 * ARGUMENTS_MAX + PLACE_BYTES + INTRODUCTION_BYTES;
const PLACE_BYTES: usize = 16;
/// Bytes of an introduction.
pub(crate) const INTRODUCTION_BYTES: usize = 32;
/// Bytes of the longest message of credits.
pub(crate) const CREDITS_BYTES: usize = WORD_BYTES + 2 * RECORDS;
/// Bytes of the longest message that tells of room.
pub(crate) const ROOM_BYTES: usize = WORD_BYTES + 4 * RECORDS;
/// Bytes of a name as it travels.
pub const NAME_BYTES: usize = 20 + INTRODUCTION_BYTES;
/// A message of so many bytes lies in its record; a longer one in memory of its own.
const INLINE_BYTES: usize = 128;

/// The number of a record, and the use of it: an answer has that of its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp(u16);

impl Stamp {
    /// The stamp of credits: no record has this number.
    pub(crate) const CREDITS: Self = Self(31);

    pub(crate) fn new(number: usize, uses: u8) -> Self {
        Self(number as u16 & 31 | u16::from(uses & 127) << 5)
    }

    pub(crate) fn from_bits(bits: u16) -> Self {
        Self(bits & 0xfff)
    }

    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    pub(crate) fn number(self) -> usize {
        usize::from(self.0 & 31)
    }

    pub(crate) fn uses(self) -> u8 {
        (self.0 >> 5) as u8
    }
}

/// The kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Category {
    /// Arguments alone, for a handler.
    Short,
    /// And data, which the handler is shown.
    Medium,
    /// And data for a place in the segment.
    Bulk,
    /// The same, whose data were written there before. In their stead it proves to which slot.
    Stored,
    /// A question for the segment, if it has that place and that handler.
    Ask,
    /// A request for data of the segment, with a ticket of the place for them. The layer answers it
    /// when they are written.
    Get,
    /// The tickets of a segment.
    Tickets,
    /// A request comes back, for a reason.
    Return,
    /// A reply is rejected, for a reason.
    Reject,
    /// Stamps of requests that have no other answer.
    Credits,
    /// A port has room again, whose name is the argument: what it refused can be sent again.
    Room,
}

const CATEGORIES: [Category; 11] = [
    Category::Short,
    Category::Medium,
    Category::Bulk,
    Category::Stored,
    Category::Ask,
    Category::Get,
    Category::Tickets,
    Category::Return,
    Category::Reject,
    Category::Credits,
    Category::Room,
];

impl Category {
    fn has_place(self) -> bool {
        matches!(self, Self::Bulk | Self::Stored | Self::Ask | Self::Get)
    }
}

/// The word of a message: the handler in the lowest byte, then the number of arguments, the
/// category, whether an introduction follows, 16 bits for the sender's endpoint, and the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head(u64);

impl Head {
    const ARGUMENTS: u32 = 8;
    const CATEGORY: u32 = 16;
    const INTRODUCED: u64 = 1 << 24;
    const SOURCE: u32 = 32;
    const REASON: u32 = 48;
    /// All bits that are zero where a word and arguments are all of a message.
    const NOT_PLAIN: u64 = 0xff << Self::CATEGORY | Self::INTRODUCED;

    /// A message without arguments.
    pub(crate) const fn new(category: Category, handler: u8) -> Self {
        Self(handler as u64 | (category as u64) << Self::CATEGORY)
    }

    /// The message of the endpoint with that number.
    #[inline]
    pub(crate) const fn of_endpoint(self, number: u16) -> Self {
        Self(self.0 | (number as u64) << Self::SOURCE)
    }

    /// A return or a rejection for that reason.
    pub(crate) const fn for_reason(self, code: u8) -> Self {
        Self(self.0 | (code as u64) << Self::REASON)
    }

    const fn with_arguments(self, count: u8) -> Self {
        Self(self.0 | (count as u64) << Self::ARGUMENTS)
    }

    const fn introduced(self) -> Self {
        Self(self.0 | Self::INTRODUCED)
    }

    /// Nothing if no message has such a word.
    #[inline]
    pub(crate) fn from_word(word: u64) -> Option<Self> {
        let head = Self(word);
        let is_category = usize::from((word >> Self::CATEGORY) as u8) < CATEGORIES.len();
        (is_category && usize::from(head.arguments()) <= ARGUMENTS_MAX).then_some(head)
    }

    pub(crate) fn category(self) -> Category {
        let number = usize::from((self.0 >> Self::CATEGORY) as u8);
        // Every word has one.
        CATEGORIES.get(number).copied().unwrap_or(Category::Short)
    }

    #[inline]
    pub(crate) const fn handler(self) -> u8 {
        self.0 as u8
    }

    /// Number of arguments, 16 at most.
    #[inline]
    pub(crate) const fn arguments(self) -> u8 {
        (self.0 >> Self::ARGUMENTS) as u8
    }

    pub(crate) const fn is_introduced(self) -> bool {
        self.0 & Self::INTRODUCED != 0
    }

    /// The number of the sender's endpoint.
    #[inline]
    pub(crate) const fn source(self) -> u16 {
        (self.0 >> Self::SOURCE) as u16
    }

    /// Of a return or a rejection.
    pub(crate) const fn reason(self) -> u8 {
        (self.0 >> Self::REASON) as u8
    }

    /// True if a message of so many bytes has nothing but arguments.
    #[inline]
    pub(crate) const fn is_plain(self, length_bytes: usize) -> bool {
        self.0 & Self::NOT_PLAIN == 0 && length_bytes == short_bytes(self.arguments())
    }
}

/// Bytes of a message that has nothing but arguments.
#[inline]
const fn short_bytes(arguments: u8) -> usize {
    WORD_BYTES + 4 * arguments as usize
}

/// A place in a segment, or the end of what is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    /// All bytes of a bulk message, or those that are asked for.
    pub(crate) length_bytes: u64,
}

/// The arguments of a message, of which so many count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arguments {
    words: [u32; ARGUMENTS_MAX],
    count: u8,
}

impl Arguments {
    pub(crate) const NONE: Self = Self {
        words: [0; ARGUMENTS_MAX],
        count: 0,
    };

    /// The first of `arguments`, as many as a message has.
    pub(crate) fn new(arguments: &[u32]) -> Self {
        let mut words = [0; ARGUMENTS_MAX];
        let count = arguments.len().min(ARGUMENTS_MAX);
        words[..count].copy_from_slice(&arguments[..count]);
        Self {
            words,
            count: count as u8,
        }
    }

    /// Those of a message whose words, from the second one on, `word` tells.
    #[inline(always)]
    pub(crate) fn read(count: u8, word: impl Fn(usize) -> u64) -> Self {
        let mut words = [0; ARGUMENTS_MAX];
        let count = count.min(ARGUMENTS_MAX as u8);
        for pair in 0..usize::from(count).div_ceil(2) {
            let both = word(1 + pair);
            words[2 * pair] = both as u32;
            words[2 * pair + 1] = (both >> 32) as u32;
        }
        Self { words, count }
    }

    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.words[..usize::from(self.count)]
    }
}

/// A message, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a> {
    pub(crate) arguments: Arguments,
    pub(crate) place: Place,
    pub(crate) data: &'a [u8],
    pub(crate) introduction: Option<&'a [u8; INTRODUCTION_BYTES]>,
}

/// Takes the bytes of a message apart, whose word was read. Total.
pub(crate) fn parse(head: Head, bytes: &[u8]) -> Option<Body<'_>> {
    let mut rest = bytes.get(WORD_BYTES..)?;
    let mut introduction = None;
    if head.is_introduced() {
        let (before, last) = rest.split_last_chunk::<INTRODUCTION_BYTES>()?;
        (rest, introduction) = (before, Some(last));
    }
    let (words, mut data) = rest.split_at_checked(4 * usize::from(head.arguments()))?;
    let mut arguments = Arguments::NONE;
    arguments.count = head.arguments();
    for (argument, bytes) in arguments.words.iter_mut().zip(words.as_chunks::<4>().0) {
        *argument = u32::from_le_bytes(*bytes);
    }
    let mut place = Place::default();
    if head.category().has_place() {
        let (offset, after) = data.split_first_chunk()?;
        let (length, after) = after.split_first_chunk()?;
        place.offset = u64::from_le_bytes(*offset);
        place.length_bytes = u64::from_le_bytes(*length);
        data = after;
    }
    Some(Body {
        arguments,
        place,
        data,
        introduction,
    })
}

/// A message that lists things, at most as many as it has bytes for, and its length.
pub(crate) fn list_message<const BYTES: usize, const ITEM_BYTES: usize>(
    category: Category,
    items: impl Iterator<Item = [u8; ITEM_BYTES]>,
) -> ([u8; BYTES], usize) {
    let mut bytes = [0; BYTES];
    let head = Head::new(category, 0);
    bytes[..WORD_BYTES].copy_from_slice(&head.0.to_le_bytes());
    let places = bytes[WORD_BYTES..].as_chunks_mut::<ITEM_BYTES>().0;
    let mut length_bytes = WORD_BYTES;
    for (place, item) in places.iter_mut().zip(items) {
        *place = item;
        length_bytes += ITEM_BYTES;
    }
    (bytes, length_bytes)
}

/// The things that such a message lists, of which `bytes` is the beginning.
pub(crate) fn listed<const ITEM_BYTES: usize>(bytes: &[u8]) -> &[[u8; ITEM_BYTES]] {
    bytes.get(WORD_BYTES..).unwrap_or(&[]).as_chunks().0
}

/// A message as it is kept.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    length_bytes: u32,
    inline: [u8; INLINE_BYTES],
    long: Vec<u8>,
}

impl Kept {
    pub(crate) fn new() -> Self {
        Self {
            length_bytes: 0,
            inline: [0; INLINE_BYTES],
            long: Vec::new(),
        }
    }

    /// Its bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        let length = self.length_bytes as usize;
        match length <= INLINE_BYTES {
            true => &self.inline[..length],
            false => &self.long,
        }
    }

    /// Its word, if it has one.
    pub(crate) fn head(&self) -> Option<Head> {
        let word = self.bytes().first_chunk().copied();
        Head::from_word(u64::from_le_bytes(word?))
    }

    /// Its parts.
    pub(crate) fn body(&self) -> Option<Body<'_>> {
        parse(self.head()?, self.bytes())
    }

    /// Keeps a message that consists of a word and arguments. The fast path.
    #[inline]
    pub(crate) fn write_short(&mut self, head: Head, arguments: &[u32]) {
        let count = arguments.len().min(ARGUMENTS_MAX);
        let head = head.with_arguments(count as u8);
        self.inline[..WORD_BYTES].copy_from_slice(&head.0.to_le_bytes());
        let places = self.inline[WORD_BYTES..].as_chunks_mut::<4>().0;
        for (place, argument) in places.iter_mut().zip(arguments) {
            *place = argument.to_le_bytes();
        }
        self.length_bytes = short_bytes(count as u8) as u32;
    }

    /// Keeps any message. One that is longer than 128 bytes takes a spare, or allocates.
    #[inline(never)]
    pub(crate) fn write(
        &mut self,
        head: Head,
        arguments: &[u32],
        place: Place,
        data: &[u8],
        introduction: Option<&[u8; INTRODUCTION_BYTES]>,
        spares: &Spares,
    ) {
        let head = match introduction {
            Some(_) => head.introduced(),
            None => head,
        };
        self.write_short(head, arguments);
        let mut place_bytes = [0; PLACE_BYTES];
        place_bytes[..8].copy_from_slice(&place.offset.to_le_bytes());
        place_bytes[8..].copy_from_slice(&place.length_bytes.to_le_bytes());
        let place = match head.category().has_place() {
            true => &place_bytes[..],
            false => &[],
        };
        let introduction = introduction.map_or(&[][..], |introduction| introduction);
        let begun = self.length_bytes as usize;
        let length = begun + place.len() + data.len() + introduction.len();
        self.length_bytes = length as u32;
        if length <= INLINE_BYTES {
            let mut at = begun;
            for part in [place, data, introduction] {
                self.inline[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
            return;
        }
        if self.long.capacity() == 0 {
            self.long = spares.take();
        }
        self.long.clear();
        self.long.reserve_exact(length);
        for part in [&self.inline[..begun], place, data, introduction] {
            self.long.extend_from_slice(part);
        }
    }

    /// Forgets the message; the memory of a long one is for the next one of its node.
    #[inline]
    pub(crate) fn clear(&mut self, spares: &Spares) {
        self.length_bytes = 0;
        if self.long.capacity() > 0 {
            spares.put(std::mem::take(&mut self.long));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_none(word: u64, bytes: Vec<u8>) {
            if let Some(head) = Head::from_word(word) {
                let _ = parse(head, &bytes);
            }
        }

        #[test]
        fn messages_come_apart_as_they_were_put_together(
            category in 0..CATEGORIES.len(),
            handler: u8,
            source: u16,
            reason: u8,
            arguments in prop::collection::vec(any::<u32>(), 0..=ARGUMENTS_MAX),
            offset: u64,
            data in prop::collection::vec(any::<u8>(), 0..300),
            introduction in prop::option::of(any::<[u8; INTRODUCTION_BYTES]>()),
        ) {
            let category = CATEGORIES[category];
            let head = Head::new(category, handler).of_endpoint(source).for_reason(reason);
            let place = Place { offset, length_bytes: data.len() as u64 };
            let spares = Spares::default();
            let mut kept = Kept::new();
            kept.write(head, &arguments, place, &data, introduction.as_ref(), &spares);
            let found = kept.head().unwrap();
            prop_assert_eq!((found.category(), found.handler()), (category, handler));
            prop_assert_eq!((found.source(), found.reason()), (source, reason));
            let body = kept.body().unwrap();
            prop_assert_eq!(body.arguments.as_slice(), &arguments[..]);
            prop_assert_eq!(body.data, &data[..]);
            prop_assert_eq!(body.introduction, introduction.as_ref());
            let expected = if category.has_place() { place } else { Place::default() };
            prop_assert_eq!(body.place, expected);
            prop_assert!(kept.bytes().len() <= data.len() + OVERHEAD_BYTES);
            let words = kept.bytes().chunks(8).map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(word)
            });
            let words: Vec<u64> = words.collect();
            let read = Arguments::read(found.arguments(), |number| words[number]);
            prop_assert_eq!(read.as_slice(), &arguments[..]);
        }

        #[test]
        fn stamps_keep_number_and_use(number in 0..RECORDS, uses in 0_u8..128) {
            let stamp = Stamp::from_bits(Stamp::new(number, uses).bits());
            prop_assert_eq!((stamp.number(), stamp.uses()), (number, uses));
            prop_assert!(stamp.number() != Stamp::CREDITS.number());
        }
    }
}
