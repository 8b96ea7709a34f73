//! A message that was extracted.

use hamlyn::{Host, PortMessage};

use crate::limits::SHORT_BYTES_MAX;

const CHUNK_BYTES: usize = size_of::<u64>();

/// A message: its words, or bytes, and the node that sent it. Words are stored lowest byte first.
#[derive(Debug)]
pub struct Message {
    pub(crate) source: u32,
    pub(crate) handler: u16,
    length_bytes: usize,
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
            short: [0; SHORT_BYTES_MAX],
            long: Vec::new(),
        }
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
        self.length_bytes = length_bytes;
        if length_bytes <= SHORT_BYTES_MAX {
            let chunks = self.short.chunks_exact_mut(CHUNK_BYTES);
            for (number, chunk) in chunks.enumerate().take(length_bytes.div_ceil(CHUNK_BYTES)) {
                chunk.copy_from_slice(&message.word(number).to_le_bytes());
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

/// Words as the bytes of a message.
#[inline]
pub(crate) fn bytes_of<'a>(
    words: &[u32],
    buffer: &'a mut [u8; SHORT_BYTES_MAX],
) -> Option<&'a [u8]> {
    let into = buffer.get_mut(..size_of_val(words))?;
    for (chunk, word) in into.chunks_exact_mut(size_of::<u32>()).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    Some(into)
}
