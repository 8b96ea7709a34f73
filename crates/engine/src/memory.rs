//! What a host lends to the engine: areas to write into, payloads to take
//! from, and a sink for packets. The engine decides *whether* and *where*; the
//! copying itself is done by the host, which lends the memory.

use core::sync::atomic::AtomicU64;

use crate::limits::{MORE_WORDS, SHORT_WORDS, USER_METADATA_BYTES};
use crate::operation::{Atomic, REQUEST_WORDS};
use crate::packet::{Header, PortAddress, Short, short_bytes};
use crate::point::Point;

/// Why a host would not carry out a copy that the engine had checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Denied {
    /// The range does not lie in the area.
    #[error("the range does not lie in the area: name bytes within its length")]
    OutOfArea,
    /// The piece is in the application's hands (see `Area::message_complete`).
    #[error("the piece is in the application's hands: open it first")]
    InUse,
}

/// A message area or send-buffer area (`Hamlyn 2.2`): a contiguous region of
/// an application's memory. Clones name the same memory.
pub trait Area: Clone {
    /// See [`Area::window`].
    type Window: Window;

    /// Its size.
    fn length_bytes(&self) -> u64;

    /// Whether only this process can ever write it.
    fn is_private(&self) -> bool {
        true
    }

    /// Copies `from` into the area.
    fn write(&self, offset: u64, from: &[u8]) -> Result<(), Denied>;

    /// A window on a part of the area: an empty one if the range does not lie in the area, and for
    /// an area that decides at each write whether it may be.
    fn window(&self, offset: u64, length_bytes: u64) -> Self::Window;

    /// Writes the first bytes of some words, lowest byte first.
    #[inline]
    fn write_short(&self, offset: u64, data: ShortData) -> Result<(), Denied> {
        let bytes = short_bytes(data.words);
        let bytes = bytes.get(..data.length_bytes).ok_or(Denied::OutOfArea)?;
        self.write(offset, bytes)
    }

    /// Writes short data, with which a message is complete, and does [`Area::message_complete`].
    /// False, and nothing was done, if the data may not be written, or if the two steps do it as
    /// fast.
    #[inline(always)]
    fn complete_with_short(
        &self,
        offset: u64,
        data: &impl ShortSource,
        low: u64,
        high: u64,
    ) -> bool {
        let _ = (offset, data, low, high);
        false
    }

    /// Copies out of the area.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Denied>;

    /// Changes a word, which lies at a multiple of its width, and returns what it was. An area that
    /// others access meanwhile makes the change atomic.
    fn change(&self, offset: u64, atomic: &Atomic) -> Result<u64, Denied> {
        let mut bytes = [0; 8];
        let width = atomic.width.bytes() as usize;
        self.read(offset, &mut bytes[..width])?;
        let before = u64::from_le_bytes(bytes);
        let after = atomic.changed(before).to_le_bytes();
        self.write(offset, &after[..width])?;
        Ok(before)
    }

    /// Told when a message that was guarded by a one-shot entry is complete:
    /// nothing more is written between `low` and `high` until the application
    /// re-arms the entry (`Hamlyn 2.7`). An area that hands out references to
    /// its bytes enforces this by itself.
    fn message_complete(&self, low: u64, high: u64) {
        let _ = (low, high);
    }
}

/// A part of an area, or nothing, into which short data are written: a slot, as the fast path of
/// reception sees it. The engine relies on its bounds.
pub trait Window: core::fmt::Debug {
    /// A window on nothing.
    fn empty() -> Self;

    /// Writes short data `offset` bytes after the beginning of the window. False, and
    /// nothing is written, unless all of it lies inside.
    fn write_short(&self, offset: u64, data: &impl ShortSource) -> bool;
}

/// The data of a packet, which are moved word by word; each word is asked for once at most.
pub trait ShortSource {
    /// The number of bytes, together.
    fn length_bytes(&self) -> usize;
    /// The word of that number, below [`SHORT_WORDS`], lowest byte first; anything beyond
    /// [`ShortSource::first_bytes`].
    fn data_word<const NUMBER: usize>(&self) -> u64;

    /// The number of bytes in these words: all of them, or whole words, and [`ShortSource::more`]
    /// has the others.
    #[inline(always)]
    fn first_bytes(&self) -> usize {
        self.length_bytes()
    }

    /// The words after those, so many at a time, by number from 0 on, where they lie: others may
    /// write them at any time. Anything beyond the length.
    #[inline(always)]
    fn more(&self, number: usize) -> &[AtomicU64; MORE_WORDS] {
        static NONE: [AtomicU64; MORE_WORDS] = [const { AtomicU64::new(0) }; MORE_WORDS];
        let _ = number;
        &NONE
    }

    /// A copy of all of it, if it has no more than the words.
    #[inline]
    fn copied_data(&self) -> ShortData {
        ShortData {
            words: [
                self.data_word::<0>(),
                self.data_word::<1>(),
                self.data_word::<2>(),
                self.data_word::<3>(),
            ],
            length_bytes: self.length_bytes(),
        }
    }
}

impl ShortSource for ShortData {
    #[inline(always)]
    fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    #[inline(always)]
    fn data_word<const NUMBER: usize>(&self) -> u64 {
        self.words[NUMBER]
    }
}

/// The data of a short packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortData {
    /// In words, lowest byte first; anything beyond the length.
    pub words: [u64; SHORT_WORDS],
    /// How many bytes.
    pub length_bytes: usize,
}

/// For areas without windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NoWindow;

impl Window for NoWindow {
    fn empty() -> Self {
        Self
    }

    fn write_short(&self, _: u64, _: &impl ShortSource) -> bool {
        false
    }
}

/// The bytes that came with a packet, wherever they lie; they are not checked,
/// and they may change while they are copied.
pub trait Payload<A: Area> {
    /// True if its sender may map memory of this host, so that its data can be in their place.
    #[inline(always)]
    fn shares_memory(&self) -> bool {
        true
    }

    /// Copies the packet's metadata; `into` is exactly as long as the header
    /// says, which the engine has bounded.
    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize);

    /// Metadata of at most eight bytes as a number, lowest byte first, if they are at
    /// hand that way; a short cut that spares the copy.
    #[inline]
    fn metadata_word(&self) -> Option<u64> {
        None
    }

    /// The first words of the packet's data, lowest byte first; zero beyond its data.
    fn words(&self) -> [u64; REQUEST_WORDS];

    /// Copies the packet's data, all of it, to its place.
    fn deposit(&self, area: &A, offset: u64) -> Result<(), Denied>;

    /// Copies the packet's data, which are as long as `into`, for the queue of a port.
    fn copy_to(&self, into: &mut [u8]) -> Result<(), Denied>;

    /// The receiving half passes that point in its work on the packet. Nothing, unless somebody
    /// listens.
    #[inline(always)]
    fn passes(&self, point: Point) {
        let _ = point;
    }
}

/// Copies data that are a slice: [`Payload::copy_to`] where they are.
pub fn copy_all(from: &[u8], into: &mut [u8]) -> Result<(), Denied> {
    if from.len() != into.len() {
        return Err(Denied::OutOfArea);
    }
    into.copy_from_slice(from);
    Ok(())
}

/// A piece of an outgoing packet's data.
#[derive(Clone, Copy)]
pub enum Part<'a, A> {
    /// Bytes at hand: direct I/O.
    Bytes(&'a [u8]),
    /// Bytes to be pulled from a send-buffer area.
    Area {
        /// The area.
        area: &'a A,
        /// Where in it.
        offset: u64,
        /// How many.
        length_bytes: u32,
    },
}

impl<A> Part<'_, A> {
    /// Its length.
    #[inline]
    pub fn length_bytes(&self) -> usize {
        match self {
            Part::Bytes(bytes) => bytes.len(),
            Part::Area { length_bytes, .. } => *length_bytes as usize,
        }
    }
}

/// Why a link did not take a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsent {
    /// No room at present; offer it again.
    Full,
    /// The link is gone; no packet will ever be taken.
    Gone,
}

/// Where outgoing packets go: the host's links.
pub trait TxLinks<A: Area> {
    /// Whether they ever take a packet. Otherwise messages are only queued, and nothing is done to
    /// send them.
    const TAKES: bool = true;

    /// The largest payload (metadata and data together) of a packet for `link`,
    /// or nothing if there is no such link any more.
    fn payload_max_bytes(&self, link: LinkId) -> Option<usize>;

    /// Whether a packet might be taken. No only if nothing has changed since the link was last
    /// found full; asked before a packet is made, as making one takes longer.
    fn may_take(&self, link: LinkId) -> bool {
        let _ = link;
        true
    }

    /// Offers one packet. `metadata` and `parts` have the lengths that the header says.
    fn offer(
        &mut self,
        link: LinkId,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, A>],
    ) -> Result<(), Unsent>;

    /// Offers a short packet, for which a link may have a fast path: makes it only when there is
    /// room for it. Whether it was taken; why not, [`TxLinks::offer`] tells.
    #[inline]
    fn offer_short<M>(&mut self, link: LinkId, short: M) -> bool
    where
        Short: From<M>,
    {
        let short = Short::from(short);
        let header = short.header();
        let (bytes, metadata) = (short.bytes(), short.word.to_le_bytes());
        let metadata = &metadata[..usize::from(header.metadata_length_bytes)];
        self.offer(link, &header, metadata, &[Part::Bytes(&bytes)])
            .is_ok()
    }

    /// Offers a packet that is short but for its `data`, of which it has the first words, to a link
    /// that may have cells for them. True if it was taken; if not, [`TxLinks::offer`] tells why.
    #[inline]
    fn offer_in_cells(&mut self, link: LinkId, short: &Short, data: &[u8]) -> bool {
        let _ = (link, short, data);
        false
    }

    /// Offers a message to a port, where a link has a fast path for it. True if it was taken; if
    /// not, [`TxLinks::offer`] may take it, or tells why not.
    #[inline]
    fn offer_message(&mut self, link: LinkId, to: &PortAddress, handler: u16, data: &[u8]) -> bool {
        let _ = (link, to, handler, data);
        false
    }

    /// Offers short packets one after the other: asks for the `next` one only when there is room
    /// for it, until there is none. How many were taken; none, where there is no fast path for
    /// them.
    #[inline]
    fn offer_shorts(&mut self, link: LinkId, next: impl FnMut() -> Option<Short>) -> usize {
        let _ = (link, next);
        0
    }

    /// The transmitting half passes that point in its work for these links. Nothing, unless
    /// somebody listens.
    #[inline(always)]
    fn passes(&self, point: Point) {
        let _ = point;
    }
}

/// Names a link of this interface. Never used twice for different links.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct LinkId {
    /// Place in the host's table.
    pub index: u32,
    /// Which use of that place.
    pub generation: u32,
}

impl LinkId {
    /// Both as one number.
    #[inline(always)]
    pub const fn to_bits(self) -> u64 {
        self.index as u64 | (self.generation as u64) << 32
    }

    /// The link that [`LinkId::to_bits`] gave as this number.
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            index: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}
