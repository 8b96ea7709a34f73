//! A message that was extracted.

use std::ops::Range;

use hamlyn::engine::limits::PACKET_PAYLOAD_MAX;
use hamlyn::{Host, PortMessage};

use crate::limits::SHORT_BYTES_MAX;

/// A message: its words, or bytes, and the node that sent it. Words are stored lowest byte first.
#[derive(Debug)]
pub struct Message {
    pub(crate) source: u32,
    pub(crate) handler: u16,
    length_bytes: usize,
    /// The part of the area that was written before it.
    pub(crate) place: Option<(usize, usize)>,
    /// The bytes of one that has as many at most.
    short: [u8; SHORT_BYTES_MAX],
    /// The bytes of a longer one.
    long: Vec<u8>,
}

impl Default for Message {
    fn default() -> Self {
        Self::new()
    }
}

impl Message {
    /// One with nothing in it, for [`Call::extract_next`](crate::Call::extract_next).
    pub const fn new() -> Self {
        Self {
            source: 0,
            handler: 0,
            length_bytes: 0,
            place: None,
            short: [0; SHORT_BYTES_MAX],
            long: Vec::new(),
        }
    }

    /// Makes room for one of any length, so that to extract one into it allocates nothing: for
    /// handlers that interrupt the program ([`Signals`](crate::Signals)). Allocates 64 KiB.
    #[must_use]
    pub fn reserve(mut self) -> Self {
        self.reserve_all();
        self
    }

    pub(crate) fn reserve_all(&mut self) {
        let most = PACKET_PAYLOAD_MAX;
        self.long.reserve(most.saturating_sub(self.long.len()));
    }

    /// The node that sent it.
    #[inline]
    pub fn source(&self) -> u32 {
        self.source
    }

    /// The handler that it names.
    #[inline]
    pub fn handler(&self) -> u16 {
        self.handler
    }

    /// Its number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.length_bytes
    }

    /// True if it has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length_bytes == 0
    }

    /// Its number of words; bytes that fill none do not count.
    #[inline]
    pub fn words(&self) -> usize {
        self.length_bytes / size_of::<u32>()
    }

    /// One of its words; 0 beyond its end.
    #[inline]
    pub fn word(&self, number: usize) -> u32 {
        match self.as_bytes().chunks_exact(size_of::<u32>()).nth(number) {
            Some(bytes) => u32::from_le_bytes(bytes.try_into().unwrap_or_default()),
            None => 0,
        }
    }

    /// The part of this node's area that its sender has written ([`Udm::inject_bulk`]); nothing if
    /// it brings no data.
    ///
    /// [`Udm::inject_bulk`]: crate::Udm::inject_bulk
    #[inline]
    pub fn place(&self) -> Option<Range<usize>> {
        self.place.map(|(begin, end)| begin..end)
    }

    /// Its bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match self.short.get(..self.length_bytes) {
            Some(short) => short,
            None => self.long.get(..self.length_bytes).unwrap_or(&[]),
        }
    }

    /// Loads each byte of a message once: its sender can write it until it is disposed of.
    #[inline]
    pub(crate) fn load<H: Host>(&mut self, source: u32, message: &PortMessage<'_, H>) {
        let length_bytes = message.len();
        self.source = source;
        self.handler = message.handler();
        self.place = None;
        self.length_bytes = length_bytes;
        if length_bytes <= SHORT_BYTES_MAX {
            if length_bytes > 0 {
                message.copy_to(&mut self.short[..length_bytes]);
            }
        } else {
            self.load_long(message);
        }
    }

    #[inline(never)]
    fn load_long<H: Host>(&mut self, message: &PortMessage<'_, H>) {
        if self.long.len() < self.length_bytes {
            self.long.resize(self.length_bytes, 0);
        }
        message.copy_to(&mut self.long[..self.length_bytes]);
    }

    /// The same of bytes of the own memory.
    pub(crate) fn set(&mut self, source: u32, handler: u16, bytes: &[u8]) {
        self.source = source;
        self.handler = handler;
        self.place = None;
        self.length_bytes = bytes.len();
        match self.short.get_mut(..bytes.len()) {
            Some(short) => short.copy_from_slice(bytes),
            None => {
                self.long.clear();
                self.long.extend_from_slice(bytes);
            }
        }
    }
}

/// Words as the bytes of a message, the lowest byte first.
pub(crate) fn to_bytes(words: &[u32]) -> [u8; SHORT_BYTES_MAX] {
    let mut bytes = [0; SHORT_BYTES_MAX];
    for (chunk, word) in bytes.chunks_exact_mut(size_of::<u32>()).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
